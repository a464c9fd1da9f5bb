"""Allocation files and queue trees as values: the content of the Fair Scheduler's file, and the resulting queues.

There are two layers. `AllocationFile` contains the attributes of a file (None if not set), and its methods return
Hadoop's value in effect (the queue's own or the default). `QueueTree` contains the queues that the ResourceManager
creates from the file, with every setting in effect.
harness.yarn.fair reads and writes files; harness.sim computes fair shares.

Follows Hadoop 3.4.2 (AllocationConfiguration, ConfigurableResource, FSQueue). Weights, AM shares and thresholds are
Java floats: Python floats here that hold a float32's value (NaN and infinities included).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.model.resources import UNBOUNDED, ZERO, Resource

QueuePolicy = Literal["fair", "drf", "fifo"]
SchedulerName = Literal["fair", "capacity"]

#: Characters that a queue name may not contain (for a regular expression's class): white space, dots, and characters
#: with a meaning in lists, paths and XML.
BAD_IN_NAME = r"\s.,/\\<>&\"'\x00-\x1f\x7f-\x9f"
ROOT = "root"
JAVA_INT_MAX = 2**31 - 1
JAVA_LONG_MAX = 2**63 - 1
#: Values that mean no timeout and no limit.
NEVER_MS = JAVA_LONG_MAX
NO_APP_LIMIT = JAVA_INT_MAX


def java_cast(value: float, limit: int) -> int:
    """Cast a double as Java does to long or int (`limit`: its largest value): toward zero, saturating, NaN gives 0."""
    if value != value:
        return 0
    if value >= limit:
        return limit
    if value <= -limit - 1:
        return -limit - 1
    return int(value)


def ensure_root_prefix(name: str) -> str:
    """Return the full path of a queue whose name may lack the prefix ``root.`` (QueueManager.ensureRootPrefix)."""
    return name if name == ROOT or name.startswith(ROOT + ".") else f"{ROOT}.{name}"


def upwards(path: str) -> Iterator[str]:
    """Yield a queue's path and those of the queues above it, up to the root; nothing for an empty path."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def cluster_parts(own: Mapping[str, float], whole: float = 1.0) -> dict[str, float]:
    """Return the fraction of the cluster to which each queue is entitled by its scheduler, level by level.

    Parameters
    ----------
    own : mapping of str to float
        Path -> the queue's value relative to its siblings: a weight, a percentage of the parent, or MiB, in any order.
        Siblings share a unit; queues of different parents may not. The root's value is ignored.
    whole : float
        The value of the root in the result.

    Returns
    -------
    dict of str to float
        By queue, in the unit of ``whole``. Siblings with a sum of 0 get 0.
    """
    children: dict[str, list[str]] = {}
    for path in own:
        if path != ROOT:
            children.setdefault(path.rpartition(".")[0], []).append(path)
    parts = {ROOT: whole}
    for parent in sorted(children, key=lambda path: path.count(".")):
        below = children[parent]
        total = sum(own[child] for child in below) or 1.0
        parts.update({child: parts[parent] * own[child] / total for child in below})
    return parts


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    """A limit in absolute resources, or else in fractions of the cluster (ConfigurableResource)."""

    absolute: Resource | None = None
    memory_fraction: float = 1.0
    vcores_fraction: float = 1.0

    def resolve(self, cluster: Resource) -> Resource:
        """Return the limit in a cluster of this size, truncated as Hadoop casts doubles."""
        if self.absolute is not None:
            return self.absolute
        return Resource(
            java_cast(cluster.memory_mb * self.memory_fraction, JAVA_LONG_MAX),
            java_cast(cluster.vcores * self.vcores_fraction, JAVA_INT_MAX),
        )


UNLIMITED = ResourceLimit(UNBOUNDED)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """One queue's settings in an allocation file; None: not set.

    ``name`` is the key under which Hadoop stores the settings: the full path, except for a top element ``<queue
    name="Root">`` (not all lower case), whose settings Hadoop stores under ``Root...`` and never uses. Hadoop ignores a
    minimum or a container maximum given in percent (``minimum_dropped``, ``container_maximum_dropped``).
    """

    name: str
    weight: float | None = None
    min_resources: Resource | None = None
    max_resources: ResourceLimit | None = None
    max_child_resources: ResourceLimit | None = None
    max_container_allocation: Resource | None = None
    max_running_apps: int | None = None
    max_am_share: float | None = None
    min_share_preemption_timeout_ms: int | None = None
    fair_share_preemption_timeout_ms: int | None = None
    fair_share_preemption_threshold: float | None = None
    preemptable: bool = True
    scheduling_policy: QueuePolicy | None = None
    reservable: bool = False
    #: aclSubmitApps, aclAdministerApps, aclAdministerReservations, aclListReservations, aclSubmitReservations -> text
    acls: Mapping[str, str] = field(default_factory=dict)
    minimum_dropped: bool = False
    container_maximum_dropped: bool = False


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """One rule of ``queuePlacementPolicy``."""

    name: str
    create: bool = True
    queue: str | None = None
    parent: PlacementRule | None = None


@dataclass(frozen=True, slots=True)
class AllocationFile:
    """An allocation file as Hadoop reads it. The methods take a queue's full path and return the value in effect.

    ``configured_leaves`` and ``configured_parents`` contain paths in the order of the file, each once. A queue that the
    file defines twice may be in both.
    """

    settings: Mapping[str, QueueSettings] = field(default_factory=dict)
    configured_leaves: tuple[str, ...] = ()
    configured_parents: tuple[str, ...] = ()
    user_max_apps: Mapping[str, int] = field(default_factory=dict)
    user_max_apps_default: int = NO_APP_LIMIT
    queue_max_apps_default: int = NO_APP_LIMIT
    queue_max_resources_default: ResourceLimit = UNLIMITED
    queue_max_am_share_default: float = 0.5
    default_min_share_preemption_timeout_ms: int = NEVER_MS
    default_fair_share_preemption_timeout_ms: int = NEVER_MS
    default_fair_share_preemption_threshold: float = 0.5
    default_scheduling_policy: QueuePolicy = "fair"
    #: None: the file has no ``queuePlacementPolicy``, so yarn-site.xml decides.
    placement_rules: tuple[PlacementRule, ...] | None = None
    reservation_planner: str | None = None
    reservation_agent: str | None = None
    reservation_policy: str | None = None
    _configured: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_configured", frozenset((*self.configured_leaves, *self.configured_parents)))

    def _of(self, name: str) -> QueueSettings:
        return self.settings.get(name) or QueueSettings(name)

    def configured(self, name: str) -> bool:
        """Return whether the file names this queue (otherwise it is an ad hoc queue)."""
        return name in self._configured

    def weight(self, name: str) -> float:
        """Return the queue's weight; 1 if not set."""
        weight = self._of(name).weight
        return 1.0 if weight is None else weight

    def min_resources(self, name: str) -> Resource:
        """Return the queue's minimum share; zero if not set."""
        return self._of(name).min_resources or ZERO

    def max_resources(self, name: str) -> ResourceLimit:
        """Return the queue's maximum resources, or the file's default."""
        return self._of(name).max_resources or self.queue_max_resources_default

    def max_child_resources(self, name: str) -> ResourceLimit | None:
        """Return the maximum resources of the queue's dynamic children; None if not set."""
        return self._of(name).max_child_resources

    def max_container_allocation(self, name: str) -> Resource:
        """Return the queue's own value. If it is UNBOUNDED, the nearest ancestor's value applies (see `Queue`)."""
        return self._of(name).max_container_allocation or UNBOUNDED

    def max_running_apps(self, name: str) -> int:
        """Return the queue's limit of running applications, or the file's default."""
        limit = self._of(name).max_running_apps
        return self.queue_max_apps_default if limit is None else limit

    def max_am_share(self, name: str) -> float:
        """Return the fraction of the queue's fair share that AMs may take, or the file's default."""
        share = self._of(name).max_am_share
        return self.queue_max_am_share_default if share is None else share

    def max_user_apps(self, user: str) -> int:
        """Return the user's limit of running applications, or the file's default."""
        return self.user_max_apps.get(user, self.user_max_apps_default)

    def scheduling_policy(self, name: str) -> QueuePolicy:
        """Return the queue's scheduling policy, or the file's default."""
        return self._of(name).scheduling_policy or self.default_scheduling_policy


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue in the Fair Scheduler, with every setting in effect."""

    path: str
    parent: str | None  # None for root
    leaf: bool
    policy: QueuePolicy = "fair"
    weight: float = 1.0
    min_share: Resource = ZERO
    max_limit: ResourceLimit = UNLIMITED
    max_child_limit: ResourceLimit | None = None
    max_container_allocation: Resource = UNBOUNDED  # the nearest ancestor's if its own is unbounded
    max_running_apps: int = NO_APP_LIMIT
    max_am_share: float = 0.5
    min_share_preemption_timeout_ms: int = NEVER_MS
    fair_share_preemption_timeout_ms: int = NEVER_MS
    fair_share_preemption_threshold: float = 0.5
    preemptable: bool = True
    #: Whether the queue is not in the file: it was created for an application and is removed when empty.
    dynamic: bool = False

    def max_share(self, cluster: Resource) -> Resource:
        """Return the maximum share in a cluster of this size, at least the minimum share (FSQueue.getMaxShare)."""
        return self.max_limit.resolve(cluster).at_least(self.min_share)


@dataclass(frozen=True, slots=True)
class RefusedQueue:
    """A queue of the file that the ResourceManager does not create; it only logs an error."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class QueueTree:
    """All queues, parents before children, siblings in byte order of their names; root always exists."""

    queues: Mapping[str, Queue]
    refused: tuple[RefusedQueue, ...] = ()

    def __iter__(self) -> Iterator[Queue]:
        return iter(self.queues.values())

    def __getitem__(self, path: str) -> Queue:
        return self.queues[path]

    def __contains__(self, path: object) -> bool:
        return path in self.queues

    def leaves(self) -> list[Queue]:
        """Return the leaf queues, in the order of the tree."""
        return [queue for queue in self if queue.leaf]

    def children(self, path: str) -> list[Queue]:
        """Return the immediate children of a queue, in the order of the tree."""
        return [queue for queue in self if queue.parent == path]
