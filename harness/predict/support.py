"""What yarnfair does with each feature of a cluster: a table of features and verbs, and its row for a cluster at hand.

A refusal is not written down here: each feature has an example of a configuration, and what `enforce` and the simulator
say of it (`harness.yarn.capacity.traps`, `harness.sim.capacity.conf.UNCOVERED` and what reads a scheduler's file) is
the cell. What is written down is the test that shows how the rest works; a cell without one is "not tried".
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.base.errors import InputError
from harness.experiments.scheduler_file import left_out
from harness.model.queues import AllocationFile, SchedulerName
from harness.sim.capacity.preempt_conf import INTRA_QUEUE, PREEMPTION_PREFIX
from harness.sim.scheduler_file import Dropped
from harness.traces.recording import scheduler_properties
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.monitors import ENABLE, POLICIES, QUEUE_MANAGEMENT, may_run_monitor
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX, parse_configuration, shown_properties
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.source import StoreSource
from harness.yarn.capacity.traps import Trap, fair_traps, find_traps, preemption_is_on
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.fair.javanum import parse_boolean
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.preemption import ENABLE as FAIR_PREEMPTION
from harness.yarn.fair.preemption import is_on as fair_preemption_is_on
from harness.yarn.files import ConfigStore
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.releases import ASSUMED, asynchronous_by_default
from harness.yarn.rest import RestClient, shown_site

Word = Literal["works", "counted but not steered", "refused", "not tried", "unknown"]
Verb = Literal["record", "assess", "whatif", "plan", "usage", "enforce"]
_FOLLOWING = "tests/traces/test_following.py::"
#: Each is a command.
VERBS: tuple[Verb, ...] = ("record", "assess", "whatif", "plan", "usage", "enforce")


@dataclass(frozen=True, slots=True)
class Cell:
    """What one verb does with one feature.

    Parameters
    ----------
    word
        How it is.
    why
        What is refused or left out, and where it is not as one would expect; "" where there is nothing to say.
    test
        The test that shows it, ``path::name``; "" where nobody has tried, and where the code's own words are the cell.
    """

    word: Word
    why: str = ""
    test: str = ""

    def text(self) -> str:
        """Return it as a person reads it."""
        return f"{self.word}: {self.why}" if self.why else self.word


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as far as its features show.

    Parameters
    ----------
    scheduler
        Which one the RM has.
    values
        The Capacity Scheduler's properties, with their prefix.
    site
        The RM's own (``/conf``).
    hadoop
        Its release.
    file
        The text of an allocation file, of an example.
    version
        Its release in full, as the RM has it.
    nodes_gone
        How many nodes it has lost, decommissioned or is about to.
    site_shown
        Whether the RM shows its own properties. If not, what they decide is unknown.
    whole
        Whether ``values`` are all of the Capacity Scheduler's properties, not those alone that its queues show.
    """

    scheduler: SchedulerName
    values: Mapping[str, str] = field(default_factory=dict)
    site: Mapping[str, str] = field(default_factory=dict)
    hadoop: tuple[int, int] = ASSUMED
    file: str = ""
    version: str = ""
    nodes_gone: int = 0
    site_shown: bool = True
    whole: bool = True

    def on(self, name: str, default: bool = False) -> bool:
        """Return whether a switch is on, in the scheduler's properties or in the RM's own."""
        return parse_boolean((self.values.get(name) or self.site.get(name) or "").strip(), default)

    def switched(self, end: str) -> bool:
        """Return whether any queue has this switch on."""
        return any(name.endswith(end) and text.strip().lower() == "true" for name, text in self.values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A row of the table.

    Parameters
    ----------
    key
        How JSON calls it.
    group, title
        How a person does.
    has
        Whether a cluster has it.
    example
        A cluster that has it, and no other danger.
    traps
        Traps of `enforce` that are about it.
    uncovered
        What the simulator calls it where it does not cover it.
    played_without
        Whether it changes the scheduler's decisions while no recording has it: a replay is then one without it.
    shown
        Cells of verbs that nothing refuses.
    """

    key: str
    group: str
    title: str
    has: Callable[[Cluster], bool]
    example: Cluster
    traps: tuple[str, ...] = ()
    uncovered: str = ""
    played_without: bool = False
    shown: Mapping[Verb, Cell] = field(default_factory=dict)

    def cell(self, verb: Verb, cluster: Cluster | None = None) -> Cell:
        """Return what a verb does with it: on a cluster at hand (which has it), or on the example."""
        found: Cell | None = None
        if verb == "enforce":
            found = self._enforced(self.example if cluster is None else cluster)
        elif verb in ("whatif", "plan"):
            found = self._simulated(cluster)
        if found is None and self.played_without and verb in ("assess", "whatif", "plan") and not self._recorded():
            found = Cell("counted but not steered", f"a recording does not have it: played without {self.title}")
        return found or self.shown.get(verb, Cell("not tried"))

    def _enforced(self, cluster: Cluster) -> Cell | None:
        """What `enforce` itself says of it, where that is no plain yes."""
        try:
            found = enforce_traps(cluster)
        except InputError as error:
            return Cell("refused", error.what)
        # Where shares can be kept from setting preemption going, it is steered beside.
        own = [trap for trap in found if trap.name in self.traps and trap.preemption is None]
        for trap in own:
            if trap.blocking:
                return Cell("refused", f"{trap.what}; {trap.hint} (or `accept: [{trap.name}]`)")
        return Cell("counted but not steered", own[0].what) if own else None

    def _simulated(self, cluster: Cluster | None = None) -> Cell | None:
        """What the simulator says of a scheduler's file with it; of a cluster at hand, by the names of its queues."""
        try:
            own = self._uncovered(self.example)
        except InputError as error:
            return Cell("refused", error.what)
        if not own:
            return None
        if cluster is not None and cluster.values:
            # What else is wrong with the cluster's own file is not this feature's.
            with contextlib.suppress(InputError):
                own = self._uncovered(cluster) or own
        more = f" and {len(own) - 1} more" if own[1:] else ""
        return Cell("refused", f"a scheduler's file with {own[0].name}{more} ({own[0].what}; `--drop` leaves it out)")

    def _uncovered(self, cluster: Cluster) -> list[Dropped]:
        """Return the settings of a cluster that are this feature's and that the simulator does not cover."""
        text = cluster.file or render_properties(
            {name.removeprefix(PREFIX): value for name, value in cluster.values.items()}
        )
        left = left_out(text.encode(), source="FILE", conf=dict(cluster.site))
        return [one for one in left if one.what == self.uncovered]

    def _recorded(self) -> bool:
        """Whether the first line of a recording would have any of its settings."""
        return bool(scheduler_properties(self.example.site))


def enforce_traps(cluster: Cluster) -> tuple[Trap, ...]:
    """Return what `enforce` says of a cluster before it writes; InputError where it cannot steer its queues at all."""
    if cluster.scheduler == "fair":
        file = parse_allocations(cluster.file.encode(), source="FILE") if cluster.file else AllocationFile()
        return fair_traps(cluster.hadoop, cluster.site if cluster.site_shown else None, file)
    tree = queue_tree(cluster.values, source="its configuration")
    return find_traps(cluster.values, cluster.site if cluster.site_shown else None, tree, cluster.hadoop)


_BASE = {
    f"{PREFIX}root.queues": "a,b",
    f"{PREFIX}root.a.capacity": "50",
    f"{PREFIX}root.b.capacity": "50",
    f"{PREFIX}root.a.user-limit-factor": "-1",
    f"{PREFIX}root.b.user-limit-factor": "-1",
    f"{PREFIX}global-queue-max-application": "10000",
    f"{PREFIX}maximum-am-resource-percent": "1000",
}
_SITE = {"yarn.acl.enable": "true", "yarn.admin.acl": "admin"}
_STORE = "yarn.scheduler.configuration.store.class"
_STORES = "configuration store"
_FILE = "<allocations><queue name='a'/><queue name='b'/></allocations>"
_TIMED_FILE = _FILE.replace(
    "</allocations>", "<defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout></allocations>"
)
CAPACITY_BASE = Cluster("capacity", _BASE, _SITE)
FAIR_BASE = Cluster("fair", site=_SITE, file=_FILE)


def _capacity(values: Mapping[str, str] | None = None, site: Mapping[str, str] | None = None) -> Cluster:
    """Return the example of a Capacity Scheduler with more properties, and with more of the RM's own."""
    return replace(CAPACITY_BASE, values={**_BASE, **(values or {})}, site={**_SITE, **(site or {})})


#: One of the example's queues creates queues, which hold no user to a multiple of their share.
_CREATING_V1_EXAMPLE = {
    f"{PREFIX}root.b.auto-create-child-queue.enabled": "true",
    f"{PREFIX}root.b.leaf-queue-template.user-limit-factor": "-1",
}


def _each(*values: str) -> dict[str, str]:
    """Return capacities of the example's two queues."""
    return {f"{PREFIX}root.{queue}.capacity": value for queue, value in zip("ab", values, strict=True)}


def _mode(cluster: Cluster) -> set[str]:
    """Return the kinds of capacity that a cluster's queues have."""
    texts = [
        "".join(text.split())
        for name, text in cluster.values.items()
        if name.startswith(f"{PREFIX}root.") and name.endswith(".capacity") and ".template." not in name
    ]
    found = {"absolute" if text.startswith("[") else "weight" if text.endswith("w") else "percent" for text in texts}
    if cluster.values.get(f"{PREFIX}legacy-queue-mode.enabled", "").strip().lower() == "false":
        found.add("flexible")
    return found


def _is(scheduler: SchedulerName) -> Callable[[Cluster], bool]:
    return lambda cluster: cluster.scheduler == scheduler


def _of_mode(kind: str) -> Callable[[Cluster], bool]:
    return lambda cluster: cluster.scheduler == "capacity" and kind in _mode(cluster)


def _preempts(cluster: Cluster) -> bool:
    if cluster.scheduler != "capacity":
        return False
    try:
        tree = queue_tree(cluster.values, source="its configuration")
    except InputError:
        # Of queues that cannot be steered the root's word counts for all.
        tree = {}
    return preemption_is_on(cluster.values, cluster.site, tree, cluster.hadoop)


def _managed(cluster: Cluster) -> bool:
    runs = cluster.on(ENABLE) and may_run_monitor(cluster.values, cluster.site, QUEUE_MANAGEMENT)
    return runs and _creating_v1(cluster)


def _creating_v1(cluster: Cluster) -> bool:
    return cluster.scheduler == "capacity" and cluster.switched(".auto-create-child-queue.enabled")


def _creating_v2(cluster: Cluster) -> bool:
    return cluster.scheduler == "capacity" and cluster.switched(".auto-queue-creation-v2.enabled")


def _stored(kind: str) -> Callable[[Cluster], bool]:
    # Where nothing is said it is a file (YarnConfiguration.DEFAULT_CONFIGURATION_STORE).
    # An RM that does not show its properties does not tell.
    return lambda cluster: (
        cluster.scheduler == "capacity" and bool(cluster.site) and cluster.site.get(_STORE, "file").strip() == kind
    )


def _zk_log(cluster: Cluster) -> bool:
    return _stored("zk")(cluster) and cluster.site.get("yarn.scheduler.configuration.store.max-logs", "") != "0"


def _types(cluster: Cluster) -> list[str]:
    """Return the resource types beside memory and vcores."""
    names = [name.strip() for name in cluster.site.get("yarn.resource-types", "").split(",")]
    return [name for name in names if name and name not in ("memory-mb", "vcores", "memory")]


def _release(first: tuple[int, int], before: tuple[int, int] | None) -> Callable[[Cluster], bool]:
    return lambda cluster: first <= cluster.hadoop and (before is None or cluster.hadoop < before)


def _works(test: str, why: str = "") -> Cell:
    return Cell("works", why, test)


def _counted(why: str, test: str) -> Cell:
    return Cell("counted but not steered", why, test)


_OWN = "tests/predict/test_support.py::"
_VERSIONS = "tests/cluster/test_live_versions.py::"
_LIVE_CAPACITY = "tests/cluster/test_live_capacity.py::"
_ENTITLED = "tests/predict/test_entitlements.py::"
_USAGE = _works("tests/predict/test_usage.py::test_the_command")
_USAGE_CAPACITY = _works(f"{_OWN}test_a_statement_has_a_capacity_schedulers_dues")
_TREES = _works(f"{_ENTITLED}test_a_capacity_scheduler_s_tree_has_one_entitlement_everywhere")
_WHATIF = _works("tests/report/test_whatif.py::test_weights_are_what_queues_get_and_the_past_is_made_up_for")
_WHATIF_CAPACITY = _works("tests/report/test_whatif.py::test_a_capacity_trace_is_played_by_the_capacity_scheduler")
_PLAN = _works("tests/predict/test_plan.py::test_who_gets_more_is_sooner_and_the_other_later")
_PLAN_CAPACITY = _works(
    "tests/predict/test_plan.py::test_applications_of_a_queue_that_is_gone_are_refused_and_a_gate_is_red"
)
_PLAN_MODES = _works("tests/predict/test_plan.py::test_the_same_shares_in_another_mode_change_nothing")
_ON_VERSIONS = _works(f"{_VERSIONS}test_the_capacity_scheduler")
_READ_CAPACITY = _works("tests/cluster/test_live_readings.py::test_on_the_capacity_scheduler")
_READ_FAIR = _works("tests/cluster/test_live_readings.py::test_on_the_fair_scheduler")
_READ_SECURE = _works(
    "tests/cluster/test_live_secure_loads.py::test_containers_are_accounted_and_an_experiment_runs_with_a_keytab"
)
_READ_PAIR = _works("tests/cluster/test_live_pair.py::test_the_controller_follows_a_failover")
#: The verbs that read a recorded trace and never contact a ResourceManager.
_OFFLINE: dict[Verb, Cell] = {"usage": _USAGE, "whatif": _WHATIF, "plan": _PLAN}
_ONE_PARTITION = _counted(
    "nodes of all labels count as one cluster", f"{_OWN}test_a_recording_takes_the_nodes_of_all_labels_as_one_cluster"
)
_TWO_TYPES = _counted(
    "memory and vcores alone; other types are not recorded", f"{_OWN}test_a_recording_counts_memory_and_vcores_alone"
)
_KEPT_NEAR = "shares stay near what is in use"
_PLAYED_NEAR = _works(
    f"{_OWN}test_a_policy_is_played_within_the_bound_of_enforce", f"{_KEPT_NEAR}, as `enforce` keeps them"
)
_NO_TIMEOUTS = _counted(
    "the switch, without the time-outs, which are in the allocation file",
    f"{_OWN}test_a_recording_has_the_switch_of_fair_preemption_and_no_time_outs",
)
_STORE_WRITES = _works(
    "tests/cluster/test_live_stores.py::test_a_hundred_writes_with_another_writer_between_lose_nothing"
)


def _store(kind: str, **more: Cell) -> Feature:
    return Feature(
        key=f"store-{kind}",
        group=_STORES,
        title="configuration in a file" if kind == "file" else f"configuration in the store {kind}",
        has=_stored(kind),
        example=replace(CAPACITY_BASE, site={**_SITE, _STORE: kind}),
        traps=("zk-log",),
        shown={**_OFFLINE, "enforce": _STORE_WRITES, **more},  # type: ignore[dict-item]
    )


FEATURES: tuple[Feature, ...] = (
    Feature(
        key="fair",
        group="scheduler",
        title="Fair Scheduler",
        has=_is("fair"),
        example=FAIR_BASE,
        shown={
            "record": _works("tests/traces/test_following.py::test_what_was_recorded_in_pieces_is_what_ran"),
            "assess": _works("tests/predict/test_rm.py::test_with_the_history_server_there_is_one"),
            "whatif": _WHATIF,
            "plan": _PLAN,
            "usage": _USAGE,
            "enforce": _works("tests/cluster/test_live_enforce.py::test_once_dry_run_release_and_the_views"),
        },
    ),
    Feature(
        key="capacity",
        group="scheduler",
        title="Capacity Scheduler",
        has=_is("capacity"),
        example=CAPACITY_BASE,
        shown={
            "record": _works(f"{_LIVE_CAPACITY}test_a_trace_has_the_scheduler_its_limits_and_the_users"),
            "assess": _works("tests/predict/test_rm.py::test_on_the_capacity_scheduler"),
            "whatif": _WHATIF_CAPACITY,
            "plan": _PLAN_CAPACITY,
            "usage": _USAGE_CAPACITY,
            "enforce": _works(f"{_LIVE_CAPACITY}test_shares_are_in_force_and_everything_goes_back"),
        },
    ),
    *(
        Feature(
            key=f"capacity-{kind}",
            group="capacity mode",
            title=title,
            has=_of_mode(kind),
            example=_capacity(
                {
                    **_each(*capacities),
                    # Beside absolute capacities the limit of applications is each queue's own.
                    **{f"{PREFIX}root.{queue}.maximum-applications": "10000" for queue in "ab"},
                }
            ),
            shown={
                "record": _ON_VERSIONS,
                "assess": _TREES,
                "whatif": _TREES,
                "plan": _PLAN_MODES,
                "usage": _USAGE_CAPACITY,
                "enforce": _ON_VERSIONS,
            },
        )
        for kind, title, capacities in (
            ("percent", "percentages", ("50", "50")),
            ("weight", "weights", ("1w", "2w")),
            ("absolute", "absolute resources", ("[memory=1024,vcores=1]", "[memory=1024,vcores=1]")),
        )
    ),
    Feature(
        key="capacity-flexible",
        group="capacity mode",
        title="flexible mode (`legacy-queue-mode.enabled=false`)",
        has=_of_mode("flexible"),
        example=_capacity({f"{PREFIX}legacy-queue-mode.enabled": "false"}),
        traps=("queue-mode",),
        uncovered="the new queue mode",
        shown={
            "record": _READ_CAPACITY,
            "assess": replace(
                _READ_CAPACITY,
                word="counted but not steered",
                why="played with the capacities in effect, those of memory: other resources may have others",
            ),
            "usage": _READ_CAPACITY,
        },
    ),
    Feature(
        key="fair-preemption",
        group="preemption",
        title="the Fair Scheduler's preemption",
        has=lambda cluster: cluster.scheduler == "fair" and fair_preemption_is_on(cluster.site),
        example=replace(FAIR_BASE, site={**_SITE, FAIR_PREEMPTION: "true"}, file=_TIMED_FILE),
        traps=("preemption",),
        shown={
            "record": _NO_TIMEOUTS,
            "assess": replace(_NO_TIMEOUTS, why="a recording has no time-outs: played as if nothing were preempted"),
            "whatif": _works(
                f"{_OWN}test_a_fair_schedulers_file_is_played_with_its_preemption", "of a scheduler's file"
            ),
            "plan": _works(f"{_OWN}test_a_fair_schedulers_file_is_played_with_its_preemption"),
            "usage": _READ_FAIR,
        },
    ),
    Feature(
        key="capacity-preemption",
        group="preemption",
        title="the Capacity Scheduler's preemption",
        has=_preempts,
        example=_capacity(site={ENABLE: "true"}),
        traps=("preemption",),
        shown={
            "record": _works(f"{_OWN}test_a_recording_has_the_settings_of_preemption"),
            **dict.fromkeys(("assess", "whatif", "plan"), _PLAYED_NEAR),
            "usage": _READ_CAPACITY,
            "enforce": _works(
                "tests/control/test_preemption.py::test_a_controller_keeps_shares_near_what_is_in_use",
                f"{_KEPT_NEAR}; `accept: [preemption]` lets them go all the way",
            ),
        },
    ),
    Feature(
        key="capacity-preemption-inside",
        group="preemption",
        title="the Capacity Scheduler's preemption inside queues (`intra-queue-preemption.enabled`)",
        has=lambda cluster: _preempts(cluster) and cluster.on(INTRA_QUEUE),
        example=_capacity(site={ENABLE: "true", INTRA_QUEUE: "true"}),
        traps=("preemption",),
        uncovered="preemption inside queues",
        shown={
            "record": _works(f"{_OWN}test_a_recording_has_the_settings_of_preemption"),
            "assess": Cell(
                "refused",
                "preemption inside queues: not covered by the simulator",
                f"{_OWN}test_a_recording_with_preemption_inside_queues_is_refused",
            ),
        },
    ),
    Feature(
        key="asynchronous",
        group="scheduling",
        title="asynchronous scheduling",
        has=lambda cluster: (
            cluster.scheduler == "capacity" and cluster.on(ASYNCHRONOUS, asynchronous_by_default(cluster.hadoop))
        ),
        example=_capacity({ASYNCHRONOUS: "true"}),
        traps=("asynchronous",),
        uncovered="asynchronous scheduling",
        played_without=True,
        shown={"record": _READ_CAPACITY, "usage": _READ_CAPACITY},
    ),
    Feature(
        key="multi-node",
        group="scheduling",
        title="multi-node placement",
        has=lambda cluster: cluster.scheduler == "capacity" and cluster.on(f"{PREFIX}multi-node-placement-enabled"),
        example=_capacity({f"{PREFIX}multi-node-placement-enabled": "true"}),
        traps=("multi-node",),
        uncovered="multi-node placement",
        played_without=True,
        shown={"record": _READ_CAPACITY, "usage": _READ_CAPACITY},
    ),
    Feature(
        key="continuous",
        group="scheduling",
        title="the Fair Scheduler's continuous scheduling",
        has=lambda cluster: (
            cluster.scheduler == "fair" and cluster.on("yarn.scheduler.fair.continuous-scheduling-enabled")
        ),
        example=replace(FAIR_BASE, site={**_SITE, "yarn.scheduler.fair.continuous-scheduling-enabled": "true"}),
        played_without=True,
        shown={"record": _READ_FAIR, "usage": _READ_FAIR},
    ),
    Feature(
        key="node-labels",
        group="labels",
        title="node labels",
        has=lambda cluster: cluster.scheduler == "capacity" and cluster.on("yarn.node-labels.enabled"),
        example=_capacity({f"{PREFIX}root.a.accessible-node-labels": "gpu"}, {"yarn.node-labels.enabled": "true"}),
        traps=("node-labels",),
        uncovered="node labels",
        played_without=True,
        shown={"record": _ONE_PARTITION, "usage": _ONE_PARTITION},
    ),
    Feature(
        key="auto-created-v1",
        group="auto-created queues",
        title="`auto-create-child-queue` (legacy)",
        has=_creating_v1,
        example=_capacity(_CREATING_V1_EXAMPLE),
        traps=("auto-created",),
        uncovered="auto-created queues",
        shown={
            "record": _works("tests/control/test_auto_created.py::test_the_controller_and_a_recording_count_them"),
            "assess": _works(f"{_ENTITLED}test_a_parent_without_children_is_played_as_a_leaf"),
            "usage": _USAGE_CAPACITY,
        },
    ),
    Feature(
        key="auto-created-managed",
        group="auto-created queues",
        title=f"`auto-create-child-queue` with {QUEUE_MANAGEMENT.rpartition('.')[2]}",
        has=_managed,
        example=_capacity(
            _CREATING_V1_EXAMPLE,
            {ENABLE: "true", POLICIES: QUEUE_MANAGEMENT},
        ),
        traps=("refresh-deadlock",),
        uncovered="auto-created queues",
        shown={"record": _READ_CAPACITY, "assess": _READ_CAPACITY, "usage": _READ_CAPACITY},
    ),
    Feature(
        key="auto-created-v2",
        group="auto-created queues",
        title="`auto-queue-creation-v2`",
        has=_creating_v2,
        example=_capacity({**_each("1w", "1w"), f"{PREFIX}root.b.auto-queue-creation-v2.enabled": "true"}),
        traps=("auto-created",),
        shown={
            "record": _READ_CAPACITY,
            "assess": _READ_CAPACITY,
            "usage": _READ_CAPACITY,
            **dict.fromkeys(
                ("whatif", "plan"),
                _works(
                    "tests/experiments/test_scheduler_file.py::"
                    "test_queues_that_applications_create_have_their_templates",
                    "the queues that the load creates are there from the beginning",
                ),
            ),
        },
    ),
    Feature(
        key="fair-ad-hoc",
        group="auto-created queues",
        title="the Fair Scheduler's ad hoc queues",
        # By default it makes queues (yarn.scheduler.fair.allow-undeclared-pools).
        has=lambda cluster: (
            cluster.scheduler == "fair" and cluster.on("yarn.scheduler.fair.allow-undeclared-pools", True)
        ),
        example=FAIR_BASE,
        shown={
            "record": _READ_FAIR,
            "assess": _READ_FAIR,
            "usage": _READ_FAIR,
            "whatif": _works(
                "tests/experiments/test_scheduler_file.py::"
                "test_applications_come_where_the_rules_of_an_allocation_file_place_them"
            ),
            "plan": _works("tests/predict/test_plan.py::test_nodes_and_an_application_more"),
            "enforce": _works(
                "tests/cluster/test_live_enforce.py::test_queues_of_users_who_come_get_weights_of_their_own"
            ),
        },
    ),
    Feature(
        key="size",
        group="autoscaling",
        title="nodes that leave and come",
        has=lambda cluster: cluster.nodes_gone > 0,
        example=replace(FAIR_BASE, nodes_gone=1),
        shown={
            "record": _works(
                f"{_FOLLOWING}test_nodes_that_come_and_go_are_recorded_over_a_restart_of_the_recorder",
                "with `--follow`; a recording of what the RM retains has the nodes of its moment",
            ),
            **dict.fromkeys(
                ("assess", "whatif", "plan"),
                _works(
                    "tests/traces/test_nodes.py::test_a_replay_has_the_nodes_of_every_moment",
                    "of a `--follow` recording",
                ),
            ),
            "usage": _works("tests/predict/test_usage.py::test_a_due_is_of_what_was_there_then"),
            "enforce": _works(
                "tests/cluster/test_live_enforce.py::test_a_node_that_is_killed",
                "on the Fair Scheduler; an account goes by the capacity of the latest observation",
            ),
        },
    ),
    Feature(
        key="resource-types",
        group="resource types",
        title="types beside memory and vcores (GPUs)",
        has=lambda cluster: bool(_types(cluster)),
        example=_capacity(
            {
                **_each("[memory=1024,vcores=1,yarn.io/gpu=1]", "[memory=1024,vcores=1,yarn.io/gpu=1]"),
                **{f"{PREFIX}root.{queue}.maximum-applications": "10000" for queue in "ab"},
            },
            {"yarn.resource-types": "yarn.io/gpu"},
        ),
        uncovered="other resources than memory and vcores",
        shown={
            "record": _TWO_TYPES,
            "assess": _TWO_TYPES,
            "usage": _TWO_TYPES,
            "enforce": _counted(
                "accounts are of memory and vcores; of the others every queue keeps its guarantee",
                "tests/control/test_capacity_owner.py::test_a_debt_moves_no_guarantee_of_what_is_not_counted",
            ),
        },
    ),
    Feature(
        key="kerberos",
        group="security",
        title="Kerberos",
        has=lambda cluster: cluster.site.get("hadoop.security.authentication", "").strip() == "kerberos",
        example=replace(FAIR_BASE, site={**_SITE, "hadoop.security.authentication": "kerberos"}),
        shown={
            **_OFFLINE,
            "record": _READ_SECURE,
            "assess": _READ_SECURE,
            "enforce": _works(
                "tests/cluster/test_live_secure.py::test_enforce_goes_on_over_tickets_that_end_and_a_kdc_that_is_down",
            ),
        },
    ),
    Feature(
        key="ha",
        group="high availability",
        title="several ResourceManagers",
        has=lambda cluster: cluster.on("yarn.resourcemanager.ha.enabled"),
        example=replace(FAIR_BASE, site={**_SITE, "yarn.resourcemanager.ha.enabled": "true"}),
        shown={
            **_OFFLINE,
            "record": _READ_PAIR,
            "assess": _READ_PAIR,
            "enforce": _works("tests/cluster/test_live_pair.py::test_the_controller_follows_a_failover"),
        },
    ),
    _store("file", record=_ON_VERSIONS, assess=_ON_VERSIONS),
    _store("memory", record=_ON_VERSIONS, assess=_ON_VERSIONS),
    _store("leveldb", record=_READ_CAPACITY, assess=_READ_CAPACITY),
    replace(
        _store("zk"),
        title="configuration in the store zk, `store.max-logs` 0",
        has=lambda cluster: _stored("zk")(cluster) and not _zk_log(cluster),
        example=replace(
            CAPACITY_BASE, site={**_SITE, _STORE: "zk", "yarn.scheduler.configuration.store.max-logs": "0"}
        ),
    ),
    replace(
        _store("zk"),
        key="store-zk-log",
        title="configuration in the store zk with its log (the default)",
        has=_zk_log,
    ),
    _store("fs", record=_READ_CAPACITY, assess=_READ_CAPACITY),
    Feature(
        key="hadoop-3.3-fair",
        group="Hadoop",
        title="Hadoop 3.3 and before, Fair Scheduler",
        has=lambda cluster: cluster.scheduler == "fair" and cluster.hadoop < (3, 4),
        example=replace(FAIR_BASE, hadoop=(3, 3)),
        traps=("read-back",),
        shown={
            **_OFFLINE,
            "record": _works(f"{_VERSIONS}test_the_fair_scheduler"),
            "assess": _works(f"{_VERSIONS}test_the_fair_scheduler"),
        },
    ),
    Feature(
        key="hadoop-3.3-capacity",
        group="Hadoop",
        title="Hadoop 3.3 and before, Capacity Scheduler",
        has=lambda cluster: cluster.scheduler == "capacity" and cluster.hadoop < (3, 4),
        example=replace(
            CAPACITY_BASE,
            hadoop=(3, 3),
            # Before 3.4 a factor of -1 refuses every application.
            values={name: "1000" if name.endswith("-factor") else text for name, text in _BASE.items()},
        ),
        shown={**_OFFLINE, "record": _ON_VERSIONS, "assess": _ON_VERSIONS, "enforce": _ON_VERSIONS},
    ),
    Feature(
        key="hadoop-3.4",
        group="Hadoop",
        title="Hadoop 3.4",
        has=_release((3, 4), (3, 5)),
        example=CAPACITY_BASE,
        shown={**_OFFLINE, "record": _ON_VERSIONS, "assess": _ON_VERSIONS, "enforce": _ON_VERSIONS},
    ),
    Feature(
        key="hadoop-3.5",
        group="Hadoop",
        title="Hadoop 3.5",
        has=_release((3, 5), None),
        example=replace(CAPACITY_BASE, hadoop=(3, 5), values={**_BASE, ASYNCHRONOUS: "false"}),
        shown={
            **_OFFLINE,
            "record": _ON_VERSIONS,
            "assess": _ON_VERSIONS,
            "enforce": replace(_ON_VERSIONS, why="asynchronous scheduling, its default, is a row of its own"),
        },
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A feature that the cluster at hand has or may have, and what each verb does with it."""

    feature: Feature
    cells: Mapping[Verb, Cell]

    @property
    def unknown(self) -> bool:
        """Whether the cluster does not show if it has the feature."""
        return all(cell.word == "unknown" for cell in self.cells.values())

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found: dict[str, Any] = {"group": self.feature.group, "title": self.feature.title}
        return found | {verb: {"word": cell.word, "why": cell.why} for verb, cell in self.cells.items()}


def rows(cluster: Cluster) -> list[Row]:
    """Return the rows of the features that a cluster has, and of those of which it does not show whether it does."""
    found = []
    for feature in FEATURES:
        if (why := _unknown(feature, cluster)) is not None:
            found.append(Row(feature, dict.fromkeys(VERBS, Cell("unknown", why))))
        elif feature.has(cluster):
            found.append(Row(feature, {verb: feature.cell(verb, cluster) for verb in VERBS}))
    return found


def _unknown(feature: Feature, cluster: Cluster) -> str | None:
    """Return why it is unknown whether a cluster has a feature; None if that is known.

    It is unknown where settings that are not shown could change the answer.
    """
    # Which of the stores it is makes no difference but for this one.
    if (cluster.site_shown and cluster.whole) or (feature.group == _STORES and feature.key != "store-zk-log"):
        return None
    plain = CAPACITY_BASE if feature.example.scheduler == "capacity" else FAIR_BASE
    site = {} if cluster.site_shown else _unlike(feature.example.site, plain.site)
    # What queues are set to the RM shows in its queues, whatever its configuration is kept in.
    hidden = _unlike(feature.example.values, plain.values)
    hidden = {
        name: text
        for name, text in hidden.items()
        if not name.startswith(f"{PREFIX}root.") or (cluster.hadoop < (3, 4) and name.endswith(_SHOWN_SINCE_3_4))
    }
    # The rules of preemption may be in either file, its switch in yarn-site.xml alone.
    own = _unlike(feature.example.site, plain.site)
    hidden |= {name: text for name, text in own.items() if name.startswith(PREEMPTION_PREFIX)}
    values = {} if cluster.whole else {name: text for name, text in hidden.items() if name not in cluster.site}
    if not site and not values:
        return None
    # The settings of the example, and the other value of each switch.
    both = ((values, site), (_switched(values), _switched(site)))
    answers = {
        feature.has(replace(cluster, values={**cluster.values, **first}, site={**cluster.site, **second}))
        for first, second in both
    }
    if answers <= {feature.has(cluster)}:
        return None
    return (
        "the ResourceManager does not show /conf, which decides: let this user read it"
        if site
        else "capacity-scheduler.xml decides, which the ResourceManager does not show: give it with --allocations"
    )


_SHOWN_SINCE_3_4 = ".auto-create-child-queue.enabled"


def _unlike(own: Mapping[str, str], plain: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in own.items() if plain.get(name) != text}


def _switched(settings: Mapping[str, str]) -> dict[str, str]:
    other = {"true": "false", "false": "true"}
    return {name: other.get(text, text) for name, text in settings.items()}


def cluster_at(rest: RestClient, values: Mapping[str, str] | None = None) -> Cluster:
    """Return the features that a ResourceManager shows.

    Parameters
    ----------
    rest
        The ResourceManager.
    values
        The properties of its capacity-scheduler.xml, where that is at hand. None: its store is asked, then what
        ``/scheduler`` shows.

    Raises
    ------
    YarnfairError
        It does not answer.
    """
    info = rest.info()
    capacity = rest.scheduler().type == CAPACITY
    found: Mapping[str, str] = {}
    whole = True
    if capacity:
        try:
            found = values if values is not None else StoreSource(rest.http).read().values
        except Refused:
            found, whole = shown_properties(rest.scheduler_with_limits()[1]), False
    site = shown_site(rest)
    gone: tuple[str, ...] = ("LOST", "DECOMMISSIONED", "DECOMMISSIONING", "SHUTDOWN")
    return Cluster(
        "capacity" if capacity else "fair",
        found,
        site or {},
        info.hadoop,
        version=info.version,
        nodes_gone=sum(node.state in gone for node in rest.nodes(gone)),
        site_shown=site is not None,
        whole=whole,
    )


def lines(found: list[Row]) -> Iterator[str]:
    """Return what a person reads, in 80 columns: a feature a line, and below them the reasons of what is no plain yes.

    Reasons are whole lines, for the caller to fold.
    """
    yield f"{'can I use it?':<{_TITLE}}" + _columns(VERBS)
    unknown: dict[str, list[str]] = {}
    for row in found:
        if row.unknown:
            unknown.setdefault(row.cells["enforce"].why, []).append(row.feature.title)
            continue
        *before, last = textwrap.wrap(row.feature.title, _TITLE - 1, break_on_hyphens=False, subsequent_indent=" ")
        yield from before
        yield f"{last:<{_TITLE}}" + _columns(_SHORT.get(row.cells[verb].word, row.cells[verb].word) for verb in VERBS)
    for row in found:
        reasons: dict[str, list[str]] = {}
        for verb, cell in row.cells.items():
            if cell.why and cell.word != "works" and not row.unknown:
                reasons.setdefault(cell.text(), []).append(verb)
        for reason, verbs in reasons.items():
            yield f"{', '.join(verbs)}, {row.feature.title}: {reason}"
    for why, titles in unknown.items():
        yield f"unknown whether the cluster has {', '.join(titles)}: {why}"


#: How many columns a title has, and each of the cells; together 80.
_TITLE, _CELL = 27, 9
_SHORT = {"counted but not steered": "counted", "not tried": "untried"}


def _columns(words: Iterable[str]) -> str:
    return "".join(f"{word:<{_CELL}}" for word in words).rstrip()


def seen(rest: RestClient, file: ConfigStore | None = None) -> list[Row]:
    """Return the rows of the cluster that answers; nothing where it does not show enough, which other checks say.

    ``file``: its capacity-scheduler.xml, where that is at hand.
    """
    try:
        values = None if file is None else parse_configuration(file.read(), source=file.name).values
        return rows(cluster_at(rest, values))
    except (Unreachable, Refused, BadAnswer, InputError):
        return []
