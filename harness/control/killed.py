"""Count the work that preemption has killed within the last hour, and compare it with the budget. No I/O.

A scheduler with preemption enforces a share below a queue's usage by killing containers (harness.control.preemption).
The ResourceManager shows for each application how much work it has lost (``preemptedMemorySeconds``: the memory of each
preempted container times the time that it had run). While less than the budget was lost within the last hour, shares
may fall below the queues' usage, as far as the rest of the budget allows. All losses count, including those that
preemption would have caused without the controller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.model.snapshot import Snapshot

#: The time over which losses are summed, seconds.
WINDOW_S = 3600.0
#: Losses within this time are stored as one sum, to keep the ledger small, seconds.
_STEP_S = 10.0
#: Counters of this many applications are remembered; an RM retains 1,000 ended ones by default.
_MOST_APPS = 10_000


class KilledWork:
    """The work lost within the last hour and its budget, in MiB·s.

    Parameters
    ----------
    budget_mb_s
        Work that may be lost within any hour. 0: no share falls below the usage.
    """

    def __init__(self, budget_mb_s: float = 0.0) -> None:
        self.budget_mb_s = budget_mb_s
        #: [time, amount] of the losses of the last hour, in chronological order.
        self._losses: list[list[float]] = []
        #: Application -> its last counter, without counters of 0, the latest last; None before the first poll.
        self._seen: dict[str, float] | None = None
        #: Time of the very first poll, and what may have been lost within the hour before it, MiB·s.
        self._began_s, self._unknown_mb_s = -math.inf, 0.0

    def count(self, now_s: float, mb_s: float) -> None:
        """Add a loss since the previous poll."""
        if mb_s <= 0:
            return
        if self._losses and now_s - self._losses[-1][0] < _STEP_S:
            self._losses[-1][1] += mb_s
        else:
            self._losses.append([now_s, mb_s])

    def observe(self, now_s: float, counters: Mapping[str, float], *, rm_age_s: float = math.inf) -> None:
        """Count the losses since the last poll from the applications' counters.

        The counters of the very first poll do not count as losses, because the time of those losses is unknown. They
        are taken off the budget for an hour, because another controller, whose ledger this one does not have, may have
        spent it. At later polls, the whole counter of a new application counts. If a counter fell, because a restarted
        ResourceManager lacks the application's history, the lower value becomes the new base.

        Parameters
        ----------
        now_s
            Time of the poll, seconds.
        counters
            Application -> MiB·s that it has lost so far. Applications without losses may be missing.
        rm_age_s
            Time since the ResourceManager was started, seconds. If that is less than an hour, its counters do not show
            earlier losses, so the very first poll takes the whole budget as spent.
        """
        if self._seen is None:
            self._seen = {app: amount for app, amount in counters.items() if amount > 0}
            young = rm_age_s < WINDOW_S
            self._began_s, self._unknown_mb_s = now_s, math.inf if young else sum(self._seen.values())
            return
        lost = 0.0
        for app, amount in counters.items():
            if amount > 0:
                lost += max(amount - self._seen.pop(app, 0.0), 0.0)
                self._seen[app] = amount  # moves the application to the end of the dictionary
        self.count(now_s, lost)
        for app in list(self._seen)[:-_MOST_APPS]:
            del self._seen[app]

    def lost_mb_s(self, now_s: float) -> float:
        """Return the work lost within the last hour, MiB·s."""
        self._losses = [loss for loss in self._losses if loss[0] > now_s - WINDOW_S]
        return sum(amount for _, amount in self._losses)

    def spare(self, snapshot: Snapshot) -> float:
        """Return the fraction of the cluster whose containers may be killed within the rest of the budget.

        The work lost with a container is estimated as its memory times the mean task length of its queue, or times an
        hour if that length is unknown. Shorter lengths than a control period count as one, because the samples of a
        period do not show them. The real loss is larger for containers that have run longer than a task, such as
        ApplicationMasters.
        """
        left = self.budget_mb_s - self.lost_mb_s(snapshot.time_s)
        if snapshot.time_s - self._began_s <= WINDOW_S:
            left -= self._unknown_mb_s
        if left <= 0 or self.budget_mb_s <= 0:
            return 0.0
        held = sum(leaf.allocated.memory_mb for leaf in snapshot.leaves())
        work = sum(
            leaf.allocated.memory_mb
            * (WINDOW_S if leaf.mean_task_s is None else max(leaf.mean_task_s, snapshot.period_s))
            for leaf in snapshot.leaves()
        )
        if held <= 0 or work <= 0:
            return 1.0
        return min(left * held / work / max(snapshot.capacity.memory_mb, 1), 1.0)

    def shift(self, by_s: float) -> None:
        """Move all times by ``by_s`` seconds, after their clock was found to be wrong."""
        for loss in self._losses:
            loss[0] += by_s
        self._began_s += by_s

    def document(self) -> dict[str, Any]:
        """Return the state for the ledger, as JSON values."""
        # JSON has no infinity.
        amount = None if math.isinf(self._unknown_mb_s) else self._unknown_mb_s
        unknown = [self._began_s, amount] if math.isfinite(self._began_s) else None
        return {"losses": self._losses, "seen": self._seen, "unknown": unknown}

    def restore(self, document: object) -> None:
        """Restore the state from a `document`; invalid content is ignored."""
        try:
            losses = [[float(at), float(amount)] for at, amount in document["losses"]]  # type: ignore[index]
            seen = document["seen"]  # type: ignore[index]
            kept = None if seen is None else {str(app): float(amount) for app, amount in seen.items()}
            # Ledgers of earlier versions do not have it.
            began_s, amount = document.get("unknown") or (-math.inf, 0.0)  # type: ignore[attr-defined]
            began_s, unknown_mb_s = float(began_s), math.inf if amount is None else float(amount)
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        self._losses, self._seen = losses, kept
        self._began_s, self._unknown_mb_s = began_s, unknown_mb_s
