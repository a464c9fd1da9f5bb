"""Detect debts that stay unpaid because the weights must not trigger preemption. No I/O.

If the Capacity Scheduler preempts, shares change only as fast as containers end by themselves
(harness.control.preemption). With long containers, a queue with a debt may wait for hours without more than its due.
The administrator is told, because a budget of killed work (`preemption_budget_mb_s`) would speed this up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from harness.base.words import seconds
from harness.control.changes import debt_words, percent
from harness.control.preemption import HeldBack

#: A queue with a debt that is held back at its due for this long causes an alarm, seconds. An assumed value.
UNPAID_S = 600.0
#: Maximum number of queues named in the alarm.
_MOST_NAMED = 3
#: Debts are compared with the accumulated resources, but at most with the cluster's capacity over this time, seconds.
_DAY_S = 86_400.0


@dataclass(slots=True)
class UnpaidDebts:
    """The queues with a debt that are held back without more than their due, and the times since when they are."""

    _since_s: dict[str, float] = field(default_factory=dict)
    _looked_s: float = -math.inf

    @classmethod
    def restored(cls, document: object) -> Self:
        """Restore the state from a `document`; invalid content yields an empty state."""
        match document:
            case {"looked_s": float(looked_s), "since_s": dict(since_s)}:
                known = {str(name): at_s for name, at_s in since_s.items() if isinstance(at_s, float)}
                return cls(known, looked_s)
        return cls()

    def document(self) -> dict[str, object] | None:
        """Return the state for the ledger, as JSON values; None before the first poll."""
        return {"looked_s": self._looked_s, "since_s": dict(self._since_s)} if self._looked_s > -math.inf else None

    def look(
        self,
        now_s: float,
        held: Mapping[str, HeldBack],
        owed: Mapping[str, float],
        *,
        accumulated: float,
        capacity: float,
        unit: str,
    ) -> str | None:
        """Return a message for the administrator; None while no debt has been unpaid for `UNPAID_S`.

        Parameters
        ----------
        now_s
            Present time, seconds.
        held
            The leaves that are held back now.
        owed
            Queue -> its debt (negative: it owes), in the unit of `accumulated`.
        accumulated
            Sum of all accumulated resources, in resource-seconds.
        capacity
            The cluster's capacity in the same resource.
        unit
            The accumulated resource: memory, vcores or dominant.
        """
        if not 0.0 <= now_s - self._looked_s <= UNPAID_S:
            # The last poll is too long ago: the queues may have got more than their due meanwhile.
            self._since_s = {}
        self._looked_s = now_s
        whole = min(accumulated, capacity * _DAY_S)
        debts = {name: owed[name] for name in held if owed.get(name, 0.0) > 0}
        words = {name: debt_words(debt, whole, unit, debts.values()) for name, debt in debts.items()}
        unpaid = {name: text for name, text in words.items() if text and not held[name].above_due}
        self._since_s = {name: self._since_s.get(name, now_s) for name in unpaid}
        # The queues that have waited longest come first.
        late = sorted((since, name) for name, since in self._since_s.items() if now_s - since >= UNPAID_S)
        if not late:
            return None
        said = [
            f"{name} is {unpaid[name]} and has waited {seconds(math.floor(now_s - since))} without more than its due "
            f"({percent(held[name].due)} of the cluster; by its debt it would have {percent(held[name].planned)})"
            for since, name in late[:_MOST_NAMED]
        ]
        if len(late) > _MOST_NAMED:
            said.append(f"so are {len(late) - _MOST_NAMED} more")
        return (
            f"{'; '.join(said)}: preemption is on, so shares move only as fast as containers end by themselves; "
            "`preemption_budget_mb_s` lets them go further, and kills containers for it up to a limit of yours"
        )
