"""Guards: limits that an administrator sets on side effects while weights are in force. No I/O.

`GuardWatch` checks every poll and reports when a guard is exceeded; the controller then releases. Conditions from
before the first poll do not count, because the controller has not caused them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from harness.base.documents import Strict
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.tree import tree_of

#: Number of consecutive slow answers that trigger the guard; a single one may be a garbage collection pause.
SLOW_LOOKS = 3
_HOUR_MS = 3_600_000
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class Guards(Strict):
    """The configured limits (None: no limit). If one is exceeded, the controller restores the configuration."""

    longest_wait_s: Seconds | None = None
    """Longest time that a leaf may wait for a container while it holds less than its entitlement, seconds."""
    refused_per_hour: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Largest number of applications that the RM may refuse within an hour. A refused application fails before it gets
    a container."""
    rm_response_s: Seconds | None = None
    """Longest time that the RM may take to show its queues, seconds. The guard triggers if three answers in a row take
    longer."""
    foreign_edit: bool = False
    """Whether to release when somebody else changes a value that the controller writes. Otherwise the controller
    continues, and a share that an administrator wrote becomes the queue's entitlement."""


class GuardWatch:
    """Checks each poll against the guards.

    ``flat``: leaves are entitled by their own weights, ignoring the tree. ``dominant``: a queue's usage is its dominant
    share instead of its share of the memory, because the scheduler compares queues by it.
    """

    def __init__(self, guards: Guards, *, flat: bool = False, dominant: bool = False) -> None:
        self._guards, self._flat, self._dominant = guards, flat, dominant
        self.begin()

    def begin(self) -> None:
        """Restart counting at the next poll."""
        self._since_s: float | None = None
        self._slow = 0
        #: Refused applications -> end by the RM's clock; ends before `_floor_ms` do not count.
        self._refused: dict[str, int] = {}
        self._floor_ms: int | None = None

    def look(self, snapshot: Snapshot, refused: Mapping[str, int], latest_ms: int, answer_s: float) -> str:
        """Describe the guard that is exceeded ('': none).

        Parameters
        ----------
        snapshot : Snapshot
            The poll.
        refused : Mapping[str, int]
            Applications that the RM has refused -> time of the refusal (ms, the RM's clock). Applications reported in
            an earlier call may be missing.
        latest_ms : int
            Latest end of an application that the RM has shown (ms, the RM's clock).
        answer_s : float
            Time that the RM took to show its queues, seconds.
        """
        if self._since_s is None:
            self._since_s = snapshot.time_s
        return self._waits(snapshot) or self._refusals(refused, latest_ms) or self.answered(answer_s)

    def answered(self, answer_s: float) -> str:
        """Like `look`, for a request that failed after ``answer_s``."""
        limit = self._guards.rm_response_s
        self._slow = self._slow + 1 if limit is not None and answer_s > limit else 0
        if self._slow < SLOW_LOOKS:
            return ""
        return f"the ResourceManager took {answer_s:.1f} s to answer, {self._slow} times in a row more than {limit:g} s"

    def _waits(self, snapshot: Snapshot) -> str:
        limit = self._guards.longest_wait_s
        if limit is None:
            return ""
        shares = entitled_shares(snapshot, flat=self._flat)
        whole = max(snapshot.capacity.memory_mb, 1)
        for queue in snapshot.leaves():
            waited = self._waited_s(queue, snapshot.time_s)
            held = queue.allocated.memory_mb / whole
            if self._dominant:
                held = queue.allocated.dominant_share(snapshot.capacity)
            if waited > limit and held < shares[queue.name]:
                return (
                    f"{queue.name} has waited {waited:.0f} s for a container, more than {limit:g} s, "
                    f"and holds {100 * held:.0f} % of the cluster; its part is {100 * shares[queue.name]:.0f} %"
                )
        return ""

    def _waited_s(self, queue: QueueView, now_s: float) -> float:
        """Return the seconds for which the queue is known to have waited without getting a container.

        Without container counts, a container that starts between two polls goes unnoticed if another one ends. The
        waiting time of a queue that holds containers is then unknown and counts as 0.
        """
        if queue.backlog_since_s is None or (queue.allocated.memory_mb > 0 and queue.ended_containers is None):
            return 0.0
        return now_s - max(queue.backlog_since_s, queue.last_start_s or 0.0, self._since_s or 0.0)

    def _refusals(self, refused: Mapping[str, int], latest_ms: int) -> str:
        limit = self._guards.refused_per_hour
        if limit is None:
            return ""
        if self._floor_ms is None:
            self._floor_ms = latest_ms
        floor = self._floor_ms = max(self._floor_ms, latest_ms - _HOUR_MS)
        known = {**self._refused, **refused}
        self._refused = {app: ended_ms for app, ended_ms in known.items() if ended_ms > floor}
        if len(self._refused) <= limit:
            return ""
        last = max(self._refused, key=lambda app: (self._refused[app], app))
        return f"the ResourceManager refused {len(self._refused)} applications within an hour, at last {last}"


def entitled_shares(snapshot: Snapshot, *, flat: bool) -> dict[str, float]:
    """Return leaf -> the fraction of the cluster that it is entitled to, whether or not other queues are active."""
    tree = tree_of(snapshot)
    part = tree.flat_share if flat else tree.share
    return {tree.names[leaf]: part[leaf] for leaf in tree.leaves}
