"""The queue tree in a ResourceManager's ``/scheduler``, for both schedulers, as frozen dataclasses. No I/O.

Answers are validated as in `harness.yarn.answers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.base.sums import left_fold_sum
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import JAVA_INT_MAX
from harness.model.resources import Resource
from harness.yarn.answers import AppList, Fields, possible_queue
from harness.yarn.errors import BadAnswer

#: Deeper than any real queue tree; a hostile answer may nest without limit.
MAX_QUEUE_DEPTH = 64
FAIR, CAPACITY = "fairScheduler", "capacityScheduler"
#: Tolerance of the sum of siblings' percentages, which has to be 100 (Hadoop's ``AbstractParentQueue.PRECISION``).
_SUM_PERCENT = 0.05
#: A weight, a percentage of the parent, or MiB of an absolute amount of memory.
CapacityKind = Literal["weight", "percent", "absolute"]


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """A queue. `maximum` and `minimum` are resolved; `maximum` is capped at the cluster's size.

    For the Capacity Scheduler, `minimum` is zero (capacities are shares), `steady_share` and `fair_share` are the
    effective capacity, and `setting` is the configured capacity (weight, percentage, or MiB of absolute memory).
    """

    path: str
    parent: str | None
    leaf: bool
    policy: str
    minimum: Resource
    maximum: Resource
    used: Resource
    am_maximum: Resource
    demand: Resource
    steady_share: Resource
    fair_share: Resource
    reserved: Resource
    containers_allocated: int
    containers_pending: int
    max_apps: int
    pending_apps: int  # leaves only; 0 for parents
    active_apps: int  # leaves only; 0 for parents
    preemptable: bool
    setting: float | None = None  # Capacity Scheduler only
    priority: int = 0  # Capacity Scheduler only
    maximum_capacity: float | None = None  # Capacity Scheduler only, percent of the parent; None: not shown
    kind: CapacityKind | None = None  # Capacity Scheduler only: unit of `setting`
    capacity_percent: float = 0.0  # Capacity Scheduler only: the capacity in effect, percent of the parent


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """The queue tree: `queues` by full path, parents before children, siblings by name. `capacity`: the cluster."""

    type: str
    capacity: Resource
    queues: Mapping[str, QueueStatus]

    def ends(self) -> frozenset[str]:
        """Return the queues without children: leaves, and parents whose children are created on demand.

        A parent without children has a share of the cluster, too.
        """
        parents = {queue.parent for queue in self.queues.values()}
        return frozenset(path for path, queue in self.queues.items() if queue.parent and path not in parents)


def in_full(apps: AppList, queues: Mapping[str, QueueStatus]) -> AppList:
    """Return the applications with full queue paths.

    Before Hadoop 3.4, a Capacity Scheduler shows the queue name that the user gave; before 3.3, it shows the leaf's
    short name. A name that matches no leaf, or several, is kept.
    """
    if named_in_full(apps):
        return apps
    known = [path for path, queue in queues.items() if queue.leaf]
    often = Counter(path.rpartition(".")[2] for path in known)
    full = {name: path for path in known if often[name := path.rpartition(".")[2]] == 1}
    return AppList((replace(app, queue=full.get(app.queue, app.queue)) for app in apps), apps.skipped)


def named_in_full(apps: AppList) -> bool:
    """Return whether each application's queue is a path."""
    return all(app.queue.startswith("root.") for app in apps)


def scheduler(document: object, where: str) -> SchedulerStatus:
    """Read ``/scheduler`` of a Fair or a Capacity Scheduler; BadAnswer for any other scheduler."""
    info = Fields(document, where, "answer").object("scheduler").object("schedulerInfo")
    kind = info.text("type")
    if kind == CAPACITY:
        queues = _tree(info, where, _capacity_queue, "queues")
        return SchedulerStatus(kind, _capacity_cluster(info, where), {**queues, "root": _capacity_root(queues)})
    if kind != FAIR:
        raise BadAnswer(
            f"the scheduler is {kind!r}, neither the Fair nor the Capacity Scheduler",
            where=where,
            hint="set yarn.resourcemanager.scheduler.class to the class of one of them",
        )
    root = info.object("rootQueue")
    return SchedulerStatus(kind, root.resource("clusterResources"), _tree(root, where, _queue, "childQueues"))


def _tree(
    root: Fields, where: str, read: Callable[[Fields, str | None], QueueStatus], below: str
) -> dict[str, QueueStatus]:
    """Return the queues of a tree, parents before children, siblings by name."""
    found: dict[str, QueueStatus] = {}
    waiting: list[tuple[Fields, str | None, int]] = [(root, None, 0)]
    while waiting:
        fields, parent, depth = waiting.pop()
        if depth > MAX_QUEUE_DEPTH:
            raise BadAnswer(f"queues nested more than {MAX_QUEUE_DEPTH} deep", where=where)
        queue = read(fields, parent)
        fits = queue.path == "root" if parent is None else queue.path.startswith(f"{parent}.")
        if not fits or queue.path in found:
            raise BadAnswer(f"queue {queue.path!r} below {parent!r}", where=where)
        found[queue.path] = queue
        waiting += [(child, queue.path, depth + 1) for child in fields.objects(below, "queue")]
    return {path: found[path] for path in sorted(found, key=lambda path: path.split("."))}


def _queue(fields: Fields, parent: str | None) -> QueueStatus:
    leaf = fields.text("type", "") == "fairSchedulerLeafQueueInfo"
    return QueueStatus(
        path=possible_queue(fields.text("queueName"), fields.where),
        parent=parent,
        leaf=leaf,
        policy=fields.text("schedulingPolicy"),
        minimum=fields.resource("minResources"),
        maximum=fields.resource("maxResources"),
        used=fields.resource("usedResources"),
        am_maximum=fields.resource("amMaxResources"),
        demand=fields.resource("demandResources"),
        steady_share=fields.resource("steadyFairResources"),
        fair_share=fields.resource("fairResources"),
        reserved=fields.resource("reservedResources"),
        containers_allocated=fields.integer("allocatedContainers"),
        containers_pending=fields.integer("pendingContainers"),
        max_apps=fields.integer("maxApps"),
        pending_apps=fields.integer("numPendingApps") if leaf else 0,
        active_apps=fields.integer("numActiveApps") if leaf else 0,
        preemptable=fields.flag("preemptable", True),
    )


def _capacity_root(queues: Mapping[str, QueueStatus]) -> QueueStatus:
    """Return the root queue with the sum of its children's usage, which a Capacity Scheduler's answer does not show."""
    below = [queue for queue in queues.values() if queue.parent == "root"]
    used, demand, reserved = (
        left_fold_sum((getattr(queue, name) for queue in below), Resource()) for name in ("used", "demand", "reserved")
    )
    return replace(queues["root"], used=used, demand=demand, reserved=reserved)


def default_partition(fields: Fields, outer: str, item: str) -> Fields | None:
    """Return a queue's resources in the default partition; None if the answer has none."""
    for found in fields.object(outer).objects_of(item):
        if found.text("partitionName", "") == "":
            return found
    return None


def _capacity_cluster(root: Fields, where: str) -> Resource:
    own = default_partition(root, "capacities", "queueCapacitiesByPartition")
    if own is None:
        raise BadAnswer("the root queue has no capacity in the default partition", where=where)
    return own.resource("effectiveMinResource")


def capacity_limits(document: object, where: str) -> dict[str, str]:
    """Return the limits of queues in a Capacity Scheduler's ``/scheduler``, as settings without their prefix.

    These are maximum capacities, limits of users, applications and AMs, ordering policies, priorities, and whether
    preemption is disabled for a leaf. Capacities are in `QueueStatus.setting`. The maximum of a queue with absolute
    resources is left out, because the RM shows its effective maximum instead of the setting.

    ``queues`` of a parent with several children is their order, in which siblings of equal use and equal capacity are
    tried: as configured, and after a refresh that of Hadoop's hash table. The RM shows leaves before parents
    (CapacitySchedulerInfo.getQueues of 3.4.2), so the order between a leaf and a parent is not known.
    """
    found: dict[str, str] = {}
    waiting = [(Fields(document, where, "answer").object("scheduler").object("schedulerInfo"), "")]
    while waiting:
        fields, parent = waiting.pop()
        path = capacity_path(fields, parent)
        children = list(fields.objects("queues", "queue"))
        waiting += [(child, path) for child in children]
        if len(children) > 1:
            found[f"{path}.queues"] = ",".join(capacity_path(child, path).rpartition(".")[2] for child in children)
        leaf = fields.text("type", "") == "capacitySchedulerLeafQueueInfo"
        policy = fields.text("orderingPolicyInfo", "")
        if policy in (("fifo", "fair") if leaf else ("utilization", "priority-utilization")):
            found[f"{path}.ordering-policy"] = policy
        priority = fields.number("queuePriority", 0.0)
        if priority:
            found[f"{path}.priority"] = f"{priority:.0f}"
        own = default_partition(fields, "capacities", "queueCapacitiesByPartition")
        if path != "root" and not (own is not None and _absolute(fields, own, parent)):
            found[f"{path}.maximum-capacity"] = _number_text(min(fields.number("maxCapacity", 100.0), 100.0))
        parallel = fields.integer("maxParallelApps", JAVA_INT_MAX)
        if parallel < JAVA_INT_MAX:
            found[f"{path}.max-parallel-apps"] = str(parallel)
        if not leaf:
            continue
        for name, key, default in (
            ("userLimit", "minimum-user-limit-percent", 100.0),
            ("userLimitFactor", "user-limit-factor", 1.0),
            ("configuredMaxAMResourceLimit", "maximum-am-resource-percent", 0.1),
        ):
            found[f"{path}.{key}"] = _number_text(fields.number(name, default))
        found[f"{path}.maximum-applications"] = str(fields.integer("maxApplications"))
        if fields.flag("preemptionDisabled", False):
            found[f"{path}.disable_preemption"] = "true"
    return found


def _number_text(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".") or "0"


def capacity_path(fields: Fields, parent: str | None) -> str:
    """Return a queue's full path; before Hadoop 3.4, an answer contains only names."""
    name = fields.text("queueName", "")
    return fields.text("queuePath", f"{parent}.{name}" if parent and name else "" if parent else "root")


def _absolute(fields: Fields, own: Fields, parent: str | None) -> bool:
    """Return whether a queue has absolute resources.

    Hadoop 3.2 does not show this directly, but only such queues have a configured minimum there.
    """
    if "isAbsoluteResource" in fields or not parent or "configuredMinResource" not in own:
        return fields.flag("isAbsoluteResource", False)
    return own.resource("configuredMinResource").memory_mb > 0


def _capacity_queue(fields: Fields, parent: str | None) -> QueueStatus:
    leaf = fields.text("type", "") == "capacitySchedulerLeafQueueInfo"
    own = default_partition(fields, "capacities", "queueCapacitiesByPartition")
    usage = None if parent is None else default_partition(fields, "resources", "resourceUsagesByPartition")
    nothing = Resource()
    guaranteed = own.resource("effectiveMinResource") if own is not None else nothing
    used = usage.resource("used") if usage is not None else nothing
    pending = usage.resource("pending") if usage is not None else nothing
    reserved = usage.resource("reserved") if usage is not None else nothing
    weight = fields.number("weight", -1.0)
    absolute = own is not None and _absolute(fields, own, parent)
    if own is not None and absolute:
        setting = float(own.resource("configuredMinResource").memory_mb)
    else:
        setting = weight if weight >= 0 else fields.number("capacity")
    return QueueStatus(
        path=possible_queue(capacity_path(fields, parent), fields.where),
        parent=parent,
        leaf=leaf,
        policy=fields.text("orderingPolicyInfo", "utilization"),
        minimum=nothing,
        maximum=own.resource("effectiveMaxResource") if own is not None else nothing,
        # Reserved resources are not in use yet.
        used=used - reserved,
        am_maximum=usage.resource("amLimit") if leaf and usage is not None else nothing,
        demand=used - reserved + pending,
        steady_share=guaranteed,
        fair_share=guaranteed,
        reserved=reserved,
        containers_allocated=fields.count("allocatedContainers", 0),
        containers_pending=fields.count("pendingContainers", 0),
        max_apps=fields.integer("maxApplications") if leaf else JAVA_INT_MAX,
        pending_apps=fields.count("numPendingApplications") if leaf else 0,
        active_apps=fields.count("numActiveApplications") if leaf else 0,
        preemptable=not fields.flag("preemptionDisabled", True),
        setting=setting,
        priority=int(fields.number("queuePriority", 0.0)),
        maximum_capacity=fields.number("maxCapacity") if "maxCapacity" in fields and not absolute else None,
        kind="absolute" if absolute else "weight" if weight >= 0 else "percent",
        capacity_percent=fields.number("capacity", 0.0),
    )


def comparable_settings(status: SchedulerStatus) -> dict[str, float]:
    """Return the capacities of a Capacity Scheduler's queues in figures that are comparable among siblings.

    These are the configured capacities (`QueueStatus.setting`). In the flexible queue mode
    (``legacy-queue-mode.enabled=false``, Hadoop 3.4) one sibling may have a weight and another a percentage or an
    amount. Then the effective capacities are returned, in percent of the parent's; if they differ between a queue's
    resources, those of memory.
    """
    kinds: dict[str | None, set[CapacityKind | None]] = {}
    for queue in status.queues.values():
        kinds.setdefault(queue.parent, set()).add(queue.kind)
    return {
        path: queue.capacity_percent if len(kinds[queue.parent]) > 1 else queue.setting
        for path, queue in status.queues.items()
        if queue.setting is not None
    }


def parts_of_parents(status: SchedulerStatus) -> dict[str, float]:
    """Return the guaranteed fraction of the parent's capacity for queues whose guarantees do not add up to all of it.

    A Capacity Scheduler requires that configured percentages of siblings add up to 100. Children that it creates from a
    template of the legacy queue mode (``ManagedParentQueue``) each have the template's percentage, so that together
    they may have less than 100. The children of all other parents are not in the result.

    Returns
    -------
    dict[str, float]
        Queue -> fraction of its parent's capacity.
    """
    children: dict[str, list[QueueStatus]] = {}
    for queue in status.queues.values() if status.type == CAPACITY else ():
        if queue.parent is not None:
            children.setdefault(queue.parent, []).append(queue)
    found: dict[str, float] = {}
    for siblings in children.values():
        whole = sum(queue.capacity_percent for queue in siblings)
        if all(queue.kind == "percent" for queue in siblings) and whole < 100.0 - _SUM_PERCENT:
            found |= {queue.path: queue.capacity_percent / 100.0 for queue in siblings}
    return found


def steady_weights(status: SchedulerStatus) -> dict[str, float]:
    """Estimate a Fair Scheduler's weights by the ratio of its steady fair shares; the mean of siblings is 1.

    REST does not show weights. Steady fair shares are proportional to them, except for queues with minimum or maximum
    shares.
    """
    sums: dict[str | None, list[float]] = {}
    for queue in status.queues.values():
        sums.setdefault(queue.parent, []).append(max(float(queue.steady_share.memory_mb), 0.0))
    means = {parent: sum(shares) / len(shares) for parent, shares in sums.items()}
    return {
        path: max(queue.steady_share.memory_mb, 0) / means[queue.parent] if means[queue.parent] > 0 else 1.0
        for path, queue in status.queues.items()
    }


def with_created(entitlements: Mapping[str, float], status: SchedulerStatus) -> dict[str, float]:
    """Return the entitlements including those of queues that a Capacity Scheduler has created by itself.

    Entitlements in a Capacity Scheduler are fractions of the cluster. If the configuration names none of a parent's
    children, the children share the parent's entitlement in the ratio of their capacities. A created queue with
    configured siblings has the same ratio of entitlement to capacity as these, and all of them together have what the
    configured ones have without it: a created queue does not raise its parent's entitlement.

    The same holds for configured queues that the ResourceManager does not have: their siblings have what all of them
    have together. Configuration and ResourceManager differ while an administrator edits queues, and for as long as the
    ResourceManager reads another file.
    """
    if status.type != CAPACITY:
        return dict(entitlements)
    found, comparable = _without_missing(entitlements, status), comparable_settings(status)
    entitlements = dict(found)
    children: dict[str, list[QueueStatus]] = {}
    for queue in status.queues.values():
        if queue.parent is not None:
            children.setdefault(queue.parent, []).append(queue)
    for parent in status.queues:
        created = [queue for queue in children.get(parent, ()) if queue.path not in entitlements]
        if not created:
            continue
        own = {queue.path: comparable.get(queue.path, 0.0) for queue in children[parent]}
        if not any(own.values()):
            own = dict.fromkeys(own, 1.0)
        named = [path for path in own if path in entitlements and own[path] > 0]
        part = sum(entitlements[path] for path in named) if named else found.get(parent, 1.0)
        whole = sum(own[path] for path in named) if named else sum(own.values())
        shares = {path: entitlements[path] for path in named}
        shares |= {queue.path: part * own[queue.path] / whole for queue in created}
        # Without configured siblings, this sum is the part itself.
        scale = part / sum(shares.values())
        found |= {path: min(max(share * scale, WEIGHT_MIN), WEIGHT_MAX) for path, share in shares.items()}
    return found


def _without_missing(entitlements: Mapping[str, float], status: SchedulerStatus) -> dict[str, float]:
    """Return the entitlements after those of queues that do not exist have passed to their siblings."""
    found = dict(entitlements)
    missing = [path for path in entitlements if path not in status.queues]
    parents = {path.rpartition(".")[0] for path in missing} & status.queues.keys()
    for parent in sorted(parents, key=lambda path: path.count(".")):
        siblings = [path for path in entitlements if path.rpartition(".")[0] == parent]
        here = [path for path in siblings if path in status.queues]
        part = sum(found[path] for path in here)
        if not part:
            continue
        scale = sum(found[path] for path in siblings) / part
        for path in found:
            if any(f"{path}.".startswith(f"{top}.") for top in here):
                found[path] = min(found[path] * scale, WEIGHT_MAX)
    return found
