"""The features of clusters: an example of each, how to find it in a cluster, and the test that shows how it works.

Refusals are not listed here. Each feature has an example of a configuration, and its cells for `enforce` and the
simulator are computed from it: by `harness.yarn.capacity.traps`, `harness.sim.capacity.conf.UNCOVERED` and the reader
of a scheduler's file. Listed are only the tests that show that the rest works; a cell without a test is "not tried".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.base.errors import InputError
from harness.model.queues import SchedulerName
from harness.predict.feature import Cell, Cluster, Feature, Verb
from harness.sim.capacity.preempt_conf import INTRA_QUEUE
from harness.yarn.capacity.monitors import ENABLE, POLICIES, QUEUE_MANAGEMENT, may_run_monitor
from harness.yarn.capacity.properties import ASYNCHRONOUS, PREFIX
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.traps import preemption_is_on
from harness.yarn.fair.preemption import ENABLE as FAIR_PREEMPTION
from harness.yarn.fair.preemption import is_on as fair_preemption_is_on
from harness.yarn.releases import asynchronous_by_default

_FOLLOWING = "tests/traces/test_following.py::"
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
STORES = "configuration store"
_FILE = "<allocations><queue name='a'/><queue name='b'/></allocations>"
_TIMED_FILE = _FILE.replace(
    "</allocations>", "<defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout></allocations>"
)
CAPACITY_BASE = Cluster("capacity", _BASE, _SITE)
FAIR_BASE = Cluster("fair", site=_SITE, file=_FILE)


def _capacity(values: Mapping[str, str] | None = None, site: Mapping[str, str] | None = None) -> Cluster:
    """Return the example of a Capacity Scheduler with additional properties, of its own and of the ResourceManager."""
    return replace(CAPACITY_BASE, values={**_BASE, **(values or {})}, site={**_SITE, **(site or {})})


_FILE_TESTS = "tests/experiments/test_scheduler_file.py::"
_EARLY = "the queues that the load creates are there from the beginning"
#: One of the example's queues creates queues, whose users are not limited to a multiple of the queue's share.
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
        # Without a tree of queues that can be steered, the root's setting decides for all.
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
    # The default is a file (YarnConfiguration.DEFAULT_CONFIGURATION_STORE). If an RM does not show its properties, no
    # store is known.
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
        group=STORES,
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
                    # With absolute capacities, each queue has its own limit of applications.
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
        told="played without asynchronous scheduling; a recording says whether the cluster has it, and the answer is "
        "unsure then",
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
        shown={
            "record": _works("tests/control/test_auto_created.py::test_the_controller_and_a_recording_count_them"),
            "assess": _works(f"{_ENTITLED}test_a_parent_without_children_is_played_as_a_leaf"),
            "usage": _USAGE_CAPACITY,
            **dict.fromkeys(
                ("whatif", "plan"), _works(f"{_FILE_TESTS}test_queues_of_the_legacy_way_have_their_template", _EARLY)
            ),
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
        shown={
            "record": _READ_CAPACITY,
            "assess": _READ_CAPACITY,
            "usage": _READ_CAPACITY,
            **dict.fromkeys(
                ("whatif", "plan"),
                _works(
                    f"{_FILE_TESTS}test_queues_of_the_legacy_way_have_their_template",
                    f"{_EARLY}, and keep their guarantees where the policy would hand them over by demand",
                ),
            ),
        },
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
                _works(f"{_FILE_TESTS}test_queues_that_applications_create_have_their_templates", _EARLY),
            ),
        },
    ),
    Feature(
        key="fair-ad-hoc",
        group="auto-created queues",
        title="the Fair Scheduler's ad hoc queues",
        # Hadoop's default allows undeclared pools.
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
