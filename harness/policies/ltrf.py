"""``ltrf``: long-term resource fairness (LTYARN Algorithm 1), which compares all leaves regardless of the tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from harness.base.errors import CallError
from harness.model.plan import LedgerSettings
from harness.model.snapshot import Figures, Snapshot
from harness.policies.base import CountedLedger, LedgerView, number
from harness.policies.longterm import LongTermPolicy, LongTermSettings, mean_task_s
from harness.policies.reserve import reserve_shares
from harness.policies.tree import Tree
from harness.policies.weights import Basis, CompiledWeighing, long_term_shares

#: The reserve for ``reserve_s=auto`` is one mean task length, which is about the time that a burst waits for others'
#: containers, plus `RESERVE_PERIODS` periods, because dues are known only from polls and weights change only at ticks.
#: It is at most `RESERVE_TASKS` mean task lengths.
RESERVE_PERIODS, RESERVE_TASKS = 4.0, 4.0
#: Time to fill the reserve, in mean task lengths. If it is filled faster, the delayed queues lose more at the start.
REFILL_TASKS = 1.5
#: If the period is longer than this many mean task lengths, there is no reserve, because a stage of tasks ends before
#: the weight can follow.
LONGEST_PERIOD_TASKS = 2.0


@dataclass(frozen=True, slots=True)
class LtrfSettings(LongTermSettings):
    """Settings of ``ltrf``: those of every long-term policy, and its own."""

    reserve_s: float | str = number(
        0.0,
        at_least=0,
        words=("auto",),
        doc="from outside: what was due comes first, and queues that pause keep a surplus of this many seconds of "
        "their share; auto: one mean task length and four periods, at most four task lengths, and none where the "
        "period is longer than two of them; 0: none; not with window",
    )


class Ltrf(LongTermPolicy):
    """The demanding leaf with the smallest accumulated / weight gets the next container; the tree is ignored.

    From outside, the weights are the result of water-filling over a horizon among all leaves
    (docs/decisions/horizon.md). A parent's weight is the sum of its leaves'.
    """

    name = "ltrf"
    weighs = True
    ignores_tree = True
    detail_figure = True
    Settings = LtrfSettings
    settings: LtrfSettings

    def affinity(self) -> float:
        """Return 0: all leaves are compared with each other, whatever their parents."""
        return 0.0

    def _compiled_weighing(self, figures: Figures) -> CompiledWeighing | None:
        return None if self.settings.reserve_s != 0 else super()._compiled_weighing(figures)

    def ledger_settings(self) -> LedgerSettings:
        """Return the ledger settings of the base class; with a reserve, the ledger also counts dues."""
        base = super().ledger_settings()
        if self.settings.reserve_s == 0:
            return base
        if self.settings.window != math.inf:
            raise CallError("a reserve goes with no sliding window", where="--set", hint="drop window or reserve_s")
        return replace(base, count_due=True)

    def _shares(self, tree: Tree, snapshot: Snapshot, ledger: LedgerView, basis: Basis, affinity: float) -> list[float]:
        known = ledger.surplus if isinstance(ledger, CountedLedger) else {}
        if self.settings.reserve_s == 0 or not known:
            return long_term_shares(tree, basis, affinity)
        surplus = [0.0] * len(tree.names)
        for q in tree.leaves:
            value = known.get(tree.names[q], 0.0)
            surplus[q] = value if -math.inf < value < math.inf else 0.0
        task_s = mean_task_s(snapshot)
        given = self.settings.reserve_s
        if given == "auto" and snapshot.period_s > LONGEST_PERIOD_TASKS * task_s:
            return long_term_shares(tree, basis, affinity)
        reserve_s = reserve_for(snapshot.period_s, task_s) if given == "auto" else float(given)
        refill_s = REFILL_TASKS * task_s
        return reserve_shares(tree, basis, surplus, reserve_s, refill_s)


def reserve_for(period_s: float, task_s: float) -> float:
    """Return the reserve for ``auto``, in seconds of a queue's share."""
    return min(task_s + RESERVE_PERIODS * period_s, RESERVE_TASKS * task_s)
