"""Notice debts that are not paid because shares stay within what preemption leaves alone. Pure.

Where the Capacity Scheduler preempts, shares move only as fast as containers end by themselves
(harness.control.preemption). Of long containers few end, and a queue that is owed may then wait for hours at no more
than its due. That is what an administrator has to weigh against killed work, so it must not pass unsaid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from harness.base.words import seconds
from harness.control.changes import debt_words, percent
from harness.control.preemption import HeldBack

#: How long a queue that is owed is held back at no more than its due before that is an alarm, seconds. Assumed.
UNPAID_S = 600.0
#: At most this many queues are named in the alarm.
_MOST_NAMED = 3
#: A debt counts from this part of what was accumulated on, but of no more than of a day of the whole cluster.
_DAY_S = 86_400.0


@dataclass(slots=True)
class UnpaidDebts:
    """Since when each queue that is owed has been held back without getting more than its due."""

    _since_s: dict[str, float] = field(default_factory=dict)
    _looked_s: float = -math.inf

    @classmethod
    def restored(cls, document: object) -> Self:
        """Return what `document` gave; nothing is known from one that is not its."""
        match document:
            case {"looked_s": float(looked_s), "since_s": dict(since_s)}:
                known = {str(name): at_s for name, at_s in since_s.items() if isinstance(at_s, float)}
                return cls(known, looked_s)
        return cls()

    def document(self) -> dict[str, object] | None:
        """Return what a restarted controller must know; None before the first look."""
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
        """Return what an administrator must be told; None while no debt has been unpaid for long.

        Parameters
        ----------
        now_s
            The present, seconds.
        held
            The leaves that are held back now.
        owed
            By queue: what it is owed (negative: it owes), in the unit of `accumulated`.
        accumulated
            All accumulated resources.
        capacity
            The cluster's, in the same unit per second.
        unit
            What is counted: memory, vcores or dominant.
        """
        if not 0.0 <= now_s - self._looked_s <= UNPAID_S:
            # Nobody knows what the queues had in between.
            self._since_s = {}
        self._looked_s = now_s
        whole = min(accumulated, capacity * _DAY_S)
        words = {name: debt_words(owed.get(name, 0.0), whole, unit) for name in held if owed.get(name, 0.0) > 0}
        unpaid = {name: text for name, text in words.items() if text and not held[name].above_due}
        self._since_s = {name: self._since_s.get(name, now_s) for name in unpaid}
        # The earliest first.
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
