"""What a policy sees: the queue tree with demands and allocations at one instant. No history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.model.resources import UNBOUNDED, ZERO, Resource


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue at one instant.

    ``weight`` is the queue's *entitlement* (w_i of the papers), from the experiment or the policy configuration;
    it is not the Fair Scheduler weight that a plan writes. ``demand`` is allocated plus pending, AMs included.
    Times are seconds on the snapshot's clock.
    """

    name: str  # full path, "root.a.b"
    parent: str | None  # None for root
    leaf: bool
    weight: float = 1.0
    allocated: Resource = ZERO
    demand: Resource = ZERO
    min_share: Resource = ZERO
    max_share: Resource = UNBOUNDED
    pending_containers: int = 0
    running_apps: int = 0
    #: When its present backlog began (None: nothing pending). Waiting counts from the later of the two.
    backlog_since_s: float | None = None
    #: When it last got a container (None: never).
    last_start_s: float | None = None
    #: Mean duration of its finished tasks (None: none finished yet); T_avg of LTYARN eq. (7).
    mean_task_s: float | None = None
    #: Submission time of its oldest application that still asks for containers (None: none does).
    oldest_pending_app_s: float | None = None
    #: Applications that hold no container yet (None: not known).
    waiting_apps: int | None = None
    #: Applications and containers that ended since the snapshot before (None: not known).
    ended_apps: int | None = None
    ended_containers: int | None = None
    #: The minimum share that the scheduler goes by, where ``min_share`` is what the administrator configured (None: the
    #: same).
    min_share_in_force: Resource | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queues at one instant. ``queues`` is keyed by full path, parents before children, siblings by name.

    ``period_s`` is the time until the next snapshot of a controller outside the scheduler (0 inside it).
    """

    time_s: float
    capacity: Resource
    queues: Mapping[str, QueueView]
    period_s: float = 0.0

    def leaves(self) -> list[QueueView]:
        """Leaf queues in the order of ``queues``."""
        return [queue for queue in self.queues.values() if queue.leaf]

    def children(self, name: str) -> list[QueueView]:
        """Immediate children of a queue in the order of ``queues``."""
        return [queue for queue in self.queues.values() if queue.parent == name]
