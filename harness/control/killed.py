"""Count the work that preemption has killed within the last hour, and keep it within the administrator's budget. Pure.

Where the scheduler preempts, a share below what a queue uses is enforced by killing (harness.control.preemption). The
ResourceManager tells for each application how much work it has lost (``preemptedMemorySeconds``: the memory of each
preempted container times the time that it had run). While less than the budget was lost within the last hour, shares
may move below what queues use, as far as the rest of the budget allows. It makes no difference for whom a container
was killed: what preemption would have killed without the controller counts, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.snapshot import Snapshot

#: The time over which losses are summed, seconds.
WINDOW_S = 3600.0
#: Losses are summed up over this time, so that few have to be stored, seconds.
_STEP_S = 10.0
#: Counters of this many applications are remembered; an RM retains 1,000 ended ones by default.
_MOST_APPS = 10_000


class KilledWork:
    """The work lost within the last hour, and the budget. MiB·s.

    Parameters
    ----------
    budget_mb_s
        What may be lost within any hour; 0: no share moves below what is in use.
    """

    def __init__(self, budget_mb_s: float = 0.0) -> None:
        self.budget_mb_s = budget_mb_s
        #: Time and amount of the losses of the last hour, in order.
        self._losses: list[list[float]] = []
        #: Application -> its counter when it was seen last, without those at 0; None before the first poll.
        self._seen: dict[str, float] | None = None

    def count(self, now_s: float, mb_s: float) -> None:
        """Add a loss since the previous poll."""
        if mb_s <= 0:
            return
        if self._losses and now_s - self._losses[-1][0] < _STEP_S:
            self._losses[-1][1] += mb_s
        else:
            self._losses.append([now_s, mb_s])

    def observe(self, now_s: float, counters: Mapping[str, float]) -> None:
        """Count the losses that applications' counters show.

        What the counters of the very first poll show was lost at an unknown time before, and does not count. Later, an
        application that is new has lost everything since. A counter that went back (a ResourceManager without the
        application's history) starts again.

        Parameters
        ----------
        now_s
            Time of the poll.
        counters
            Application -> memory-seconds that it has lost so far; those that have lost nothing may be missing.
        """
        if self._seen is None:
            self._seen = {app: amount for app, amount in counters.items() if amount > 0}
            return
        lost = 0.0
        for app, amount in counters.items():
            if amount > 0:
                lost += max(amount - self._seen.pop(app, 0.0), 0.0)
                self._seen[app] = amount  # last, as the one that was seen last
        self.count(now_s, lost)
        for app in list(self._seen)[:-_MOST_APPS]:
            del self._seen[app]

    def lost_mb_s(self, now_s: float) -> float:
        """Return what was lost within the last hour."""
        self._losses = [loss for loss in self._losses if loss[0] > now_s - WINDOW_S]
        return sum(amount for _, amount in self._losses)

    def spare(self, snapshot: Snapshot) -> float:
        """Return the fraction of the cluster whose containers may be killed within the rest of the budget.

        The work lost with a container is estimated as its memory times the mean task length of its queue, or times an
        hour where that length is unknown. Containers that have run for longer than a task, such as masters, lose more.
        """
        left = self.budget_mb_s - self.lost_mb_s(snapshot.time_s)
        if left <= 0 or self.budget_mb_s <= 0:
            return 0.0
        held = sum(leaf.allocated.memory_mb for leaf in snapshot.leaves())
        work = sum(
            leaf.allocated.memory_mb * (WINDOW_S if leaf.mean_task_s is None else leaf.mean_task_s)
            for leaf in snapshot.leaves()
        )
        if held <= 0 or work <= 0:
            return 1.0
        return min(left * held / work / max(snapshot.capacity.memory_mb, 1), 1.0)

    def shift(self, by_s: float) -> None:
        """Move all times, after the clock was set."""
        for loss in self._losses:
            loss[0] += by_s

    def document(self) -> dict[str, Any]:
        """Return what has to survive a restart."""
        return {"losses": self._losses, "seen": self._seen}

    def restore(self, document: object) -> None:
        """Take over what an earlier process stored; anything else is ignored."""
        try:
            losses = [[float(at), float(amount)] for at, amount in document["losses"]]  # type: ignore[index]
            seen = document["seen"]  # type: ignore[index]
            kept = None if seen is None else {str(app): float(amount) for app, amount in seen.items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        self._losses, self._seen = losses, kept
