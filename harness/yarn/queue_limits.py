"""The limits of each queue in a ResourceManager's ``/scheduler``, and the usage that counts against them. No I/O.

They explain why an application or a container waits although its queue has a share, in both schedulers.
`harness.yarn.queue_answers` parses the figures that the controller needs in each period.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from harness.model.queues import JAVA_INT_MAX
from harness.model.resources import ZERO, Resource
from harness.yarn.answers import Fields
from harness.yarn.queue_answers import CAPACITY, MAX_QUEUE_DEPTH, capacity_path, default_partition

#: Memory share and dominant share of a queue must differ by this factor to determine which one its scheduler compares.
_TOLD_APART = 1.05


#: How a queue was created (``creationMethod``) -> the templates of such leaves and of such parents.
_TEMPLATES = {
    "dynamicLegacy": ("leaf-queue-template", "leaf-queue-template"),
    "dynamicFlexible": ("auto-queue-creation-v2.leaf-template", "auto-queue-creation-v2.parent-template"),
}


@dataclass(frozen=True, slots=True)
class UserUse:
    """One user's usage in a leaf of a Capacity Scheduler, and the user's limits there.

    ``active``: whether some running application of the user has asked for more (``isActive``).
    """

    name: str
    used: Resource
    limit: Resource
    am_used: Resource
    am_limit: Resource
    waiting_apps: int
    active: bool = True


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of one queue, and what counts against them.

    Parameters
    ----------
    path, parent
        The queue, and the one above it (None: root).
    leaf
        Whether it takes applications.
    state
        ``RUNNING``; a Capacity Scheduler's queue that is ``STOPPED`` or ``DRAINING`` takes none.
    am_used, am_limit
        What ApplicationMasters hold, and may hold. A Fair Scheduler shows a limit of zero where there is none.
    max_running
        How many applications may run in its subtree; None: any number.
    running, applications
        How many applications may run now under that limit, and how many there are; 0 for a Fair Scheduler's queues,
        which do not show them.
    users
        The Capacity Scheduler's users, by name.
    capacity
        The Capacity Scheduler's capacity as a property has it, ``40`` or ``2w`` or ``[memory=8192,vcores=8]``.
    settings
        The Capacity Scheduler's settings as they are, by their key without prefix (``user-limit-factor``).
    creation
        How a Capacity Scheduler's queue creates queues below it: ``legacy``, ``flexible`` (version 2) or ``off``; "":
        the RM does not show it (before Hadoop 3.4).
    created
        Whether the scheduler has created this queue by itself.
    template
        Where the settings of a created queue are: the path of the template in the queue above it. "": in the queue's
        own properties.
    """

    path: str
    parent: str | None
    leaf: bool
    state: str = "RUNNING"
    am_used: Resource = ZERO
    am_limit: Resource = ZERO
    max_running: int | None = None
    running: int = 0
    applications: int = 0
    users: tuple[UserUse, ...] = ()
    capacity: str = ""
    settings: Mapping[str, float] | None = None
    creation: str = ""
    created: bool = False
    template: str = ""

    def name_of(self, key: str) -> str:
        """Return the path of one of the queue's settings, without the scheduler's prefix."""
        return f"{self.template or self.path}.{key}"

    def setting(self, key: str) -> float | None:
        """Return one of the Capacity Scheduler's settings; None if the answer does not show it."""
        return (self.settings or {}).get(key)


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """The limits of all queues by path.

    ``dominant``: whether the scheduler compares dominant shares (None: unknown from the answer).
    """

    queues: Mapping[str, QueueLimits]
    dominant: bool | None = None

    def upwards(self, path: str) -> Iterator[QueueLimits]:
        """Yield a queue and all its ancestors, root last."""
        at: str | None = path
        while at is not None and (found := self.queues.get(at)) is not None:
            yield found
            at = found.parent


def scheduler_limits(document: object, where: str) -> SchedulerLimits:
    """Read the limits in ``/scheduler`` of a Fair or a Capacity Scheduler.

    Raises
    ------
    BadAnswer
        A limit has an invalid number.
    """
    info = Fields(document, where, "answer").object("scheduler").object("schedulerInfo")
    if info.text("type", "") == CAPACITY:
        found = dict(_capacity(info))
        return SchedulerLimits(_with_sums(found), _is_dominant(info))
    root = info.object("rootQueue")
    return SchedulerLimits(dict(_fair(root)), root.text("schedulingPolicy", "").lower() == "drf")


def _fair(root: Fields) -> Iterator[tuple[str, QueueLimits]]:
    waiting: list[tuple[Fields, str | None, int]] = [(root, None, 0)]
    while waiting:
        fields, parent, depth = waiting.pop()
        path = fields.text("queueName", "")
        most = fields.integer("maxApps", JAVA_INT_MAX)
        yield (
            path,
            QueueLimits(
                path,
                parent,
                fields.text("type", "") == "fairSchedulerLeafQueueInfo",
                am_used=_resource(fields, "amUsedResources"),
                am_limit=_resource(fields, "amMaxResources"),
                max_running=most if most < JAVA_INT_MAX else None,
            ),
        )
        if depth < MAX_QUEUE_DEPTH:
            waiting += [(child, path, depth + 1) for child in fields.objects("childQueues", "queue")]


def _capacity(root: Fields) -> Iterator[tuple[str, QueueLimits]]:
    waiting: list[tuple[Fields, str | None, str, int]] = [(root, None, "", 0)]
    while waiting:
        fields, parent, above, depth = waiting.pop()
        path = capacity_path(fields, parent)
        creation = fields.text("creationMethod", "")
        # A template of version 2 for queues below a created one is that of the queue above, with a wildcard.
        own = f"{above}.*" if creation == "dynamicFlexible" else path
        leaf = fields.text("type", "") == "capacitySchedulerLeafQueueInfo"
        most = fields.integer("maxParallelApps", JAVA_INT_MAX)
        settings = {"maximum-capacity": fields.number("maxCapacity", 100.0)}
        for name, key in (
            ("userLimit", "minimum-user-limit-percent"),
            ("userLimitFactor", "user-limit-factor"),
            ("configuredMaxAMResourceLimit", "maximum-am-resource-percent"),
        ):
            if name in fields:
                settings[key] = fields.number(name)
        running = fields.count("numActiveApplications", 0) + fields.count("numPendingApplications", 0) if leaf else 0
        yield (
            path,
            QueueLimits(
                path,
                parent,
                leaf,
                state=fields.text("state", "RUNNING"),
                am_used=_resource(fields, "usedAMResource"),
                am_limit=_resource(fields, "AMResourceLimit"),
                max_running=most if most < JAVA_INT_MAX else None,
                running=running,
                applications=fields.count("numApplications", running),
                users=tuple(_users(fields)) if leaf else (),
                capacity=_capacity_text(fields),
                settings=settings,
                creation=fields.text("autoCreationEligibility", ""),
                created=creation.startswith("dynamic"),
                template=f"{above}.{_TEMPLATES[creation][not leaf]}" if creation in _TEMPLATES else "",
            ),
        )
        if depth < MAX_QUEUE_DEPTH:
            waiting += [(child, path, own, depth + 1) for child in fields.objects("queues", "queue")]


def _capacity_text(fields: Fields) -> str:
    own = default_partition(fields, "capacities", "queueCapacitiesByPartition") if "capacities" in fields else None
    if fields.flag("isAbsoluteResource", False) and own is not None:
        least = own.resource("configuredMinResource")
        return f"[memory={least.memory_mb},vcores={least.vcores}]"
    weight = fields.number("weight", -1.0)
    return f"{weight:g}w" if weight >= 0 else f"{fields.number('capacity', 0.0):g}"


def _users(fields: Fields) -> Iterator[UserUse]:
    queue_limit = _resource(fields, "userAMResourceLimit")
    for user in fields.objects("users", "user"):
        usage = default_partition(user, "resources", "resourceUsagesByPartition")
        own = _resource(usage, "amLimit") if usage is not None else ZERO
        yield UserUse(
            name=user.text("username", ""),
            used=_resource(user, "resourcesUsed"),
            limit=_resource(user, "userResourceLimit"),
            am_used=_resource(user, "AMResourceUsed"),
            am_limit=own if own != ZERO else queue_limit,
            waiting_apps=user.count("numPendingApplications", 0),
            active=user.flag("isActive", True),
        )


def _with_sums(found: dict[str, QueueLimits]) -> dict[str, QueueLimits]:
    """Add the number of running applications below each parent, which a Capacity Scheduler's answer does not show."""
    running = dict.fromkeys(found, 0)
    for queue in found.values():
        at: str | None = queue.path if queue.leaf else None
        while at is not None and at in found:
            running[at] += queue.running
            at = found[at].parent
    return {
        path: queue
        if queue.leaf
        else replace(queue, leaf=False, am_used=ZERO, am_limit=ZERO, running=running[path], users=())
        for path, queue in found.items()
    }


def _is_dominant(root: Fields) -> bool | None:
    """Return whether queues' used capacities are dominant shares; None if both shares are equal in each queue.

    No answer shows the calculator, but it determines a queue's ``absoluteUsedCapacity``.
    """
    whole = default_partition(root, "capacities", "queueCapacitiesByPartition")
    if whole is None:
        return None
    cluster = whole.resource("effectiveMinResource")
    if cluster.memory_mb <= 0 or cluster.vcores <= 0:
        return None
    waiting = [root]
    while waiting:
        fields = waiting.pop()
        waiting += list(fields.objects("queues", "queue"))
        used = _resource(fields, "resourcesUsed")
        memory, vcores = used.memory_mb / cluster.memory_mb, used.vcores / cluster.vcores
        shown = fields.number("absoluteUsedCapacity", 0.0) / 100.0
        if vcores > _TOLD_APART * memory and memory > 0 and shown > 0:
            return abs(shown - vcores) < abs(shown - memory)
    return None


def _resource(fields: Fields, name: str) -> Resource:
    return fields.resource(name) if name in fields else ZERO
