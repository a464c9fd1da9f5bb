"""Convert a Fair Scheduler's allocation file to properties of the Capacity Scheduler, in weight mode.

Follows Hadoop's ``yarn fs2cs`` (3.4.2, package fair.converter), with corrections where that omits settings or writes
settings that the Capacity Scheduler refuses (listed in docs/how-to/move-to-the-capacity-scheduler.md). Every setting of
an allocation file is either converted or reported: in ``changes`` if it works differently afterwards, in ``lost`` if it
has no counterpart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.base.errors import InputError
from harness.model.queues import (
    JAVA_INT_MAX,
    JAVA_LONG_MAX,
    NEVER_MS,
    NO_APP_LIMIT,
    ROOT,
    AllocationFile,
    PlacementRule,
    Queue,
    QueueSettings,
    QueueTree,
    ResourceLimit,
    ensure_root_prefix,
)
from harness.model.resources import UNBOUNDED, ZERO, Resource
from harness.yarn.capacity.loading.placement import queue_names
from harness.yarn.capacity.loading.reading import Reading
from harness.yarn.capacity.loading.start import read_tree
from harness.yarn.capacity.mapping import QueueNames, Refused, check_json
from harness.yarn.capacity.properties import ENOUGH, PREFIX
from harness.yarn.capacity.queues import MOST_WEIGHT
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.javanum import weight_text
from harness.yarn.fair.manager import queue_tree

DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.{}"
#: Limit of applications per queue, regardless of its weight; the Fair Scheduler has no such limit.
MOST_APPS = 10_000
_ACLS = {
    "aclSubmitApps": "acl_submit_applications",
    "aclAdministerApps": "acl_administer_queue",
    "aclAdministerReservations": "acl_administer_reservations",
    "aclListReservations": "acl_list_reservations",
    "aclSubmitReservations": "acl_submit_reservations",
}
#: Placement rule of the Fair Scheduler -> policy of a mapping rule.
_POLICIES = {
    "specified": "specified",
    "user": "user",
    "primaryGroup": "primaryGroup",
    "secondaryGroupExistingQueue": "secondaryGroup",
}
_NESTED = {"primaryGroup": "primaryGroupUser", "secondaryGroupExistingQueue": "secondaryGroupUser"}
#: Hadoop's rules without a <queuePlacementPolicy>, unless yarn-site.xml configures others.
_USUAL_RULES = (PlacementRule("specified"), PlacementRule("user"))


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on the conversion of one queue (None: of the whole cluster)."""

    queue: str | None
    what: str

    def line(self) -> str:
        """Describe the remark for a person."""
        return f"queue {self.queue}: {self.what}" if self.queue else self.what


@dataclass(slots=True)
class Conversion:
    """The result of a conversion.

    ``properties``: the Capacity Scheduler's properties, without their prefix. ``site``: properties of
    ``yarn-site.xml``. ``changes`` and ``lost``: remarks on settings that work differently or have no counterpart.
    """

    properties: dict[str, str] = field(default_factory=dict)
    site: dict[str, str] = field(default_factory=dict)
    changes: list[Note] = field(default_factory=list)
    lost: list[Note] = field(default_factory=list)


def convert_allocations(
    file: AllocationFile, *, cluster: Resource | None = None, fixed_queues: bool = False
) -> Conversion:
    """Return the Capacity Scheduler's properties for an allocation file.

    Parameters
    ----------
    file : AllocationFile
        The allocation file.
    cluster : Resource or None
        The cluster's resources, by which maxima given as amounts are converted to percentages.
    fixed_queues : bool
        Whether placement rules only use existing queues, so that applications never create queues.

    Raises
    ------
    InputError
        The Capacity Scheduler does not support a queue's name.
    """
    tree = queue_tree(file)
    return _Converter(file, tree, cluster, fixed_queues).convert()


class _Converter:
    def __init__(self, file: AllocationFile, tree: QueueTree, cluster: Resource | None, fixed_queues: bool) -> None:
        self.file, self.tree, self.cluster = file, tree, cluster
        self.out = Conversion()
        self.dominant = file.default_scheduling_policy == "drf" or any(queue.policy == "drf" for queue in tree)
        # Hadoop ignores a policy without rules.
        self.rules = file.placement_rules or _USUAL_RULES
        self.creating = not fixed_queues and any(map(self._creates, self.rules))
        #: Absolute maximum of each queue, as a fraction of the cluster.
        self.maxima: dict[str, float] = {}

    def change(self, queue: str | None, what: str) -> None:
        self.out.changes.append(Note(queue, what))

    def lose(self, queue: str | None, what: str) -> None:
        self.out.lost.append(Note(queue, what))

    def convert(self) -> Conversion:
        say = self.out.properties
        children: dict[str, list[Queue]] = {}
        for queue in self.tree:
            if queue.parent is not None:
                children.setdefault(queue.parent, []).append(queue)
        self._whole()
        for queue in self.tree:
            below = children.get(queue.path, [])
            if below:
                say[f"{queue.path}.queues"] = ",".join(self._name(child) for child in below)
                self._weights(below)
            self._queue(queue, bool(below))
        if ROOT not in children:
            self.change(
                None, "there is no queue, and the Capacity Scheduler does not start without one: root.default is made"
            )
            self._queue(
                Queue(
                    f"{ROOT}.default",
                    ROOT,
                    leaf=True,
                    max_am_share=self.file.queue_max_am_share_default,
                    max_running_apps=self.file.queue_max_apps_default,
                ),
                False,
            )
            say.update({f"{ROOT}.queues": "default", f"{ROOT}.default.capacity": "1w"})
        for refused in self.tree.refused:
            self.lose(refused.path, f"the Fair Scheduler does not make this queue itself ({refused.why})")
        self._placement()
        self._site()
        return self.out

    # ---- the whole cluster

    def _whole(self) -> None:
        say, file = self.out.properties, self.file
        say[f"{ROOT}.capacity"] = "1w"
        if self.dominant:
            say["resource-calculator"] = DOMINANT
        else:
            self.change(None, "vcores no longer count: with memory alone compared, a node's vcores may be overbooked")
        say["maximum-am-resource-percent"] = self._am_share(file.queue_max_am_share_default, None)
        say["global-queue-max-application"] = str(MOST_APPS)
        if file.queue_max_apps_default != NO_APP_LIMIT:
            say["max-parallel-apps"] = str(file.queue_max_apps_default)
        if file.user_max_apps_default != NO_APP_LIMIT:
            say["user.max-parallel-apps"] = str(file.user_max_apps_default)
        for user, most in file.user_max_apps.items():
            say[f"user.{user}.max-parallel-apps"] = str(most)
        for what, said in (
            ("reservation-planner", file.reservation_planner),
            ("reservation-agent", file.reservation_agent),
            ("reservation-policy", file.reservation_policy),
        ):
            if said is not None:
                self.lose(None, f"<{what}> {said}: the reservation system is set up anew")
        self.change(
            None,
            "ApplicationMasters are held to a part of what their queue may have at most, and those of one user to a "
            "part of the queue's share: more or fewer than before may run",
        )

    def _am_share(self, share: float, queue: str | None) -> str:
        if abs(share + 1) < 1e-4:
            # Write a value that is no limit. With 1, which fs2cs writes, AMs would be limited to the queue's share.
            return f"{ENOUGH:g}"
        if share != share or share < 0:
            self.change(queue, "its AM share let no ApplicationMaster start; one at a time does now")
            return "0"
        if share == 0:
            self.change(queue, "an AM share of 0 let no ApplicationMaster start; one at a time does now")
        return weight_text(min(share, 1.0))

    # ---- queues

    def _name(self, queue: Queue) -> str:
        name = queue.path.rpartition(".")[2]
        if "," in name or name != name.strip():
            raise InputError(
                f"queue {queue.path!r}: the Capacity Scheduler reads such a name as another",
                hint="rename it: no comma, no white space at its ends",
            )
        return name

    def _weights(self, siblings: list[Queue]) -> None:
        given = {}
        for queue in siblings:
            weight = queue.weight
            if not (math.isfinite(weight) and weight > 0) and weight != math.inf:
                self.change(queue.path, f"weight {weight:g} becomes 0: served after all others")
                weight = 0.0
            given[queue.path] = weight
        most = max(given.values())
        if most > MOST_WEIGHT:
            scale = most / MOST_WEIGHT if math.isfinite(most) else math.inf
            above = siblings[0].parent
            self.change(
                above, f"its children's weights are scaled down: {MOST_WEIGHT:g} is the largest that Hadoop takes"
            )
            given = {
                path: MOST_WEIGHT if weight == math.inf else (0.0 if scale == math.inf else weight / scale)
                for path, weight in given.items()
            }
        for path, weight in given.items():
            self.out.properties[f"{path}.capacity"] = f"{_plain(weight)}w"

    def _queue(self, queue: Queue, parent: bool) -> None:
        say, path = self.out.properties, queue.path
        settings = self.file.settings.get(path) or QueueSettings(path)
        say[f"{path}.maximum-capacity"] = self._maximum(queue)
        if queue.leaf:
            say[f"{path}.ordering-policy"] = "fifo" if queue.policy == "fifo" else "fair"
            # Hadoop's default limits a single user to the queue's share.
            say[f"{path}.user-limit-factor"] = "-1"
            if queue.policy == "fair" and self.dominant:
                self.change(path, "shares by the dominant resource now, as the whole cluster does")
        elif self.creating:
            say[f"{path}.auto-queue-creation-v2.enabled"] = "true"
        elif not parent:
            self.change(path, "a parent without children becomes a leaf")
        if queue.max_am_share != self.file.queue_max_am_share_default:
            say[f"{path}.maximum-am-resource-percent"] = self._am_share(queue.max_am_share, path)
        if queue.max_running_apps != self.file.queue_max_apps_default:
            say[f"{path}.max-parallel-apps"] = str(queue.max_running_apps)
        self._largest_container(queue)
        above = self.tree[queue.parent] if queue.parent else None
        if not queue.preemptable and (above is None or above.preemptable):
            say[f"{path}.disable_preemption"] = "true"
        self._acls(path, settings)
        self._without_counterpart(queue, settings)

    def _maximum(self, queue: Queue) -> str:
        above = 1.0 if queue.parent is None else self.maxima[queue.parent]
        part = self._part(queue)
        self.maxima[queue.path] = min(above, part)
        if part >= above:
            return "100"
        # Some readers round a float32 percentage below 0.001 to 0. A maximum of 0 means that nothing runs, as in the
        # allocation file.
        return _plain(100.0 * part / above)

    def _part(self, queue: Queue) -> float:
        """Return the queue's maximum as a fraction of the cluster; 1 if it has none or it is not known."""
        limit = queue.max_limit
        if _unlimited(limit):
            return 1.0
        if limit.absolute is not None and self.cluster is None:
            self.lose(
                queue.path, f"its maximum of {_amount(limit.absolute)}: give the cluster's size to have it in per cent"
            )
            return 1.0
        if limit.absolute is None:
            memory, vcores = limit.memory_fraction, limit.vcores_fraction
        else:
            assert self.cluster is not None
            most = limit.absolute.at_least(queue.min_share)
            memory = most.memory_mb / max(self.cluster.memory_mb, 1)
            vcores = most.vcores / max(self.cluster.vcores, 1)
            self.change(queue.path, f"its maximum of {_amount(most)} is a part of the cluster now, and grows with it")
        part = min(memory, vcores) if self.dominant else memory
        if memory != vcores and min(memory, vcores) < 1:
            other = "the smaller part holds for both" if self.dominant else "vcores are not limited"
            self.change(queue.path, f"one maximum for memory and vcores: {other}")
        return max(0.0, part)

    def _largest_container(self, queue: Queue) -> None:
        own = queue.max_container_allocation
        above = self.tree[queue.parent].max_container_allocation if queue.parent else UNBOUNDED
        if own == above:
            return
        say, path = self.out.properties, queue.path
        if own.memory_mb != above.memory_mb and own.memory_mb < JAVA_INT_MAX:
            say[f"{path}.maximum-allocation-mb"] = str(own.memory_mb)
        if own.vcores != above.vcores and 0 <= own.vcores < JAVA_INT_MAX:
            say[f"{path}.maximum-allocation-vcores"] = str(own.vcores)
        self.change(
            path,
            f"its largest container, {_amount(own)}, must be within yarn.scheduler.maximum-allocation-mb and -vcores, "
            "or the RM does not start",
        )

    def _acls(self, path: str, settings: QueueSettings) -> None:
        for kind, text in settings.acls.items():
            # The default is nobody below root, and everybody for root.
            if text.strip() or path == ROOT:
                self.out.properties[f"{path}.{_ACLS[kind]}"] = text

    def _without_counterpart(self, queue: Queue, settings: QueueSettings) -> None:
        path = queue.path
        if queue.min_share != ZERO:
            self.lose(path, f"its minimum share of {_amount(queue.min_share)}: a larger weight is the nearest to it")
        if settings.minimum_dropped or settings.container_maximum_dropped:
            self.lose(path, "a minimum or largest container in per cent, which the Fair Scheduler ignores as well")
        if queue.max_child_limit is not None and not _unlimited(queue.max_child_limit):
            self.lose(path, "<maxChildResources>, the maximum of queues that applications make")
        if settings.reservable:
            self.lose(path, "<reservation/>: make it reservable by hand")
        inherits = self.tree[queue.parent] if queue.parent else None
        default = (NEVER_MS, NEVER_MS, 0.5)
        own = _preemption(queue)
        if own != (_preemption(inherits) if inherits else default):
            self.lose(path, "its preemption time-outs and threshold: the Capacity Scheduler has them for all queues")

    # ---- placement

    def _creates(self, rule: PlacementRule) -> bool:
        if rule.name == "reject":
            return False
        if rule.name == "default":
            return rule.create and ensure_root_prefix(rule.queue or "default") not in self.tree
        return rule.create or (rule.parent is not None and rule.parent.create)

    def _placement(self) -> None:
        say = self.out.properties
        if not self.file.placement_rules:
            self.change(None, "no <queuePlacementPolicy>: the rules that Hadoop has without one are written")
        if any(rule.name == "specified" for rule in self.rules):
            self._names_alone()
        if any(not queue.leaf and queue.parent is not None for queue in self.tree):
            self.change(
                None,
                "an application for which a rule finds a queue with children was rejected, and is placed by the next "
                "rule now",
            )
        rules = []
        for rule in self.rules:
            made = self._rule(rule)
            if made is not None and self._places(rule, made):
                rules.append(made)
            elif made is not None and rule.name == "default":
                # The Fair Scheduler rejects applications that such a rule places.
                rules.append(
                    {"type": "user", "matches": "*", "policy": "reject", "fallbackResult": "skip", "create": False}
                )
                self.change(None, "the default rule rejects, since its queue cannot take applications")
        say["mapping-rule-format"] = "json"
        say["queue-mappings-override.enable"] = "true"
        say["mapping-rule-json"] = json.dumps({"rules": rules})
        if self.creating:
            self.change(None, "queues that applications make get weight 1, and `yarnfair enforce` does not steer them")

    def _names_alone(self) -> None:
        """Add remarks about applications that name a queue.

        The two schedulers accept different forms of names: paths, or only short names.
        """
        paths: dict[str, list[str]] = {}
        for queue in self.tree:
            if queue.parent is not None:
                paths.setdefault(queue.path.rpartition(".")[2], []).append(queue.path)
        several = [name for name, found in paths.items() if len(found) > 1]
        if several:
            shown = ", ".join(several[:5]) + (f" and {len(several) - 5} more" if len(several) > 5 else "")
            self.change(
                None,
                f"several queues are called {shown}: an application that asks for one by its name alone, without its "
                "path from root, is placed by the next rule",
            )
        deep = [found[0] for found in paths.values() if len(found) == 1 and found[0].count(".") > 1]
        if deep:
            name = deep[0].rpartition(".")[2]
            self.change(
                None,
                f"a queue's name alone means the queue of that name at any depth: {name} is {deep[0]} now, and was "
                f"{ROOT}.{name}",
            )

    @cached_property
    def _names(self) -> QueueNames:
        """Return the converted queues in the form in which mapping rules name them."""
        root = read_tree(Reading(Settings({PREFIX + key: text for key, text in self.out.properties.items()})))
        assert root is not None, "root.queues is written before"
        return queue_names(root)

    def _places(self, rule: PlacementRule, made: dict[str, Any]) -> bool:
        """Return whether Hadoop accepts a rule; a refused rule would prevent the RM's start, so it is left out."""
        refusals: list[Refused] = []
        check_json(json.dumps({"rules": [made]}), self._names, report=refusals.append)
        for refused in refusals:
            reason = refused.what.removeprefix("mapping rule 1: ")
            inner = f" with its parent rule {rule.parent.name}" if rule.parent is not None else ""
            self.lose(None, f"placement rule {rule.name}{inner}, which the Capacity Scheduler refuses: {reason}")
        return not refusals

    def _rule(self, rule: PlacementRule) -> dict[str, Any] | None:
        made: dict[str, Any] = {"type": "user", "matches": "*", "fallbackResult": "skip"}
        create = self.creating and rule.create
        if rule.name == "reject":
            return {**made, "policy": "reject", "create": False}
        if rule.name == "default":
            # The Fair Scheduler rejects an application that this rule cannot place. Without this setting, the Capacity
            # Scheduler would place it into the queue that the application names.
            made["fallbackResult"] = "reject"
            target = ensure_root_prefix(rule.queue or "default")
            if target == f"{ROOT}.default" and target in self.tree:
                return {**made, "policy": "defaultQueue", "create": create}
            return {**made, "policy": "custom", "customPlacement": target, "create": create}
        parent = rule.parent
        if rule.name in ("user", "nestedUserQueue") and parent is not None:
            if parent.name == "default":
                above = ensure_root_prefix(parent.queue or "default")
                if above not in self.tree and not parent.create:
                    # The rule places nothing: the queue neither exists nor may be created.
                    return None
                return {**made, "policy": "user", "parentQueue": above, "create": create}
            create = self.creating and (rule.create or parent.create)
            if rule.create != parent.create:
                self.change(None, f"placement rule {rule.name}: one setting for making the queue and its parent")
            if parent.name in _NESTED and parent.parent is None:
                return {**made, "policy": _NESTED[parent.name], "parentQueue": ROOT, "create": create}
        policy = _POLICIES.get(rule.name)
        if policy is None or parent is not None:
            self.lose(None, f"placement rule {rule.name}{' with its parent rule' if parent else ''}")
            return None
        if policy != "specified":
            made["parentQueue"] = ROOT
        return {**made, "policy": policy, "create": create}

    def _site(self) -> None:
        site = self.out.site
        site["yarn.resourcemanager.scheduler.class"] = _SCHEDULER.format("CapacityScheduler")
        if self.creating:
            site["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
            site["yarn.resourcemanager.scheduler.monitor.policies"] = ",".join(
                map(_SCHEDULER.format, ("AutoCreatedQueueDeletionPolicy", "QueueConfigurationAutoRefreshPolicy"))
            )
            site["yarn.scheduler.capacity.auto-queue-creation-v2.queue-expiration-time"] = "10"
        self.change(
            None,
            "requests are rounded up to multiples of yarn.scheduler.minimum-allocation-mb and -vcores: set these to "
            "the Fair Scheduler's increments; carry preemption, size-based weight and assignmultiple over by hand",
        )


def _plain(value: float) -> str:
    """Format a float32 as its shortest decimal without an exponent."""
    text = weight_text(value)
    return format(float(text), "f") if "e" in text and value >= 1e-6 else format(value, ".12f") if "e" in text else text


def _unlimited(limit: ResourceLimit) -> bool:
    if limit.absolute is None:
        return limit.memory_fraction >= 1 and limit.vcores_fraction >= 1
    return limit.absolute.memory_mb >= JAVA_LONG_MAX and limit.absolute.vcores >= JAVA_INT_MAX


def _amount(resource: Resource) -> str:
    return f"{resource.memory_mb} MB, {resource.vcores} vcores"


def _preemption(queue: Queue) -> tuple[int, int, float]:
    return (
        queue.min_share_preemption_timeout_ms,
        queue.fair_share_preemption_timeout_ms,
        queue.fair_share_preemption_threshold,
    )


def render_properties(properties: Mapping[str, str]) -> str:
    """Render ``capacity-scheduler.xml`` with these properties, whose names lack the prefix."""
    full = {name if name.startswith("yarn.") else PREFIX + name: value for name, value in properties.items()}
    return render_configuration(full)


def render_configuration(values: Mapping[str, str]) -> str:
    """Render ``capacity-scheduler.xml`` with these properties, by their full names."""
    from harness.model.data import templates

    return templates(keep_trailing_newline=True).get_template("capacity-scheduler.xml.j2").render(properties=values)
