"""``decay-kai``: KAI Scheduler's time-aware fairness. Weights that shrink with what was used.

KAI Scheduler documentation, "Time Aware Fairness": what is left beyond deserved quotas is divided in proportion to

    P_i = max(0, W_i + k (W_i - U_i))

with W_i the weight over the siblings' sum and U_i the usage over the cluster's capacity in a window that slides or
tumbles, recent usage counting more if there is a half-life.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.base.errors import CallError
from harness.ledger.decay import LN2, half_life_factor
from harness.model.plan import LedgerSettings
from harness.model.snapshot import Snapshot
from harness.policies.base import number, word
from harness.policies.decay import DAY_S, DecayPolicy, by_shares, share_keys
from harness.policies.longterm import capacity_of
from harness.policies.tree import Tree


@dataclass(frozen=True, slots=True)
class KaiSettings:
    resource: str = word("vcores", "memory", "vcores", "dominant", doc="whose usage is remembered")
    k: float = number(1.0, at_least=0, doc="kValue: how much usage matters; 0 is memoryless")
    window: float = number(7 * DAY_S, above=0, infinite=True, doc="windowSize")
    window_type: str = word("sliding", "sliding", "tumbling", doc="windowType")
    half_life: float = number(math.inf, above=0, infinite=True, doc="halfLifePeriod; inf: none")


class DecayKai(DecayPolicy):
    """U is relative to what the cluster could have given in the same time. Every P 0: the weights alone decide.

    A sliding window and a half-life together are not offered: a half-life well below the window hides its edge.
    """

    name = "decay-kai"
    Settings: ClassVar[type] = KaiSettings
    settings: KaiSettings  # type: ignore[assignment]

    def ledger_settings(self) -> LedgerSettings:
        s = self.settings
        sliding = s.window_type == "sliding" and s.window != math.inf
        half_life = None if s.half_life == math.inf else s.half_life
        if sliding and half_life is not None:
            # The default window gives way to a half-life that was asked for.
            if s.window != KaiSettings().window:
                raise CallError(
                    "a sliding window goes with no half_life",
                    where="--set",
                    mend="set window=inf, or window_type=tumbling, or drop half_life",
                )
            sliding = False
        return LedgerSettings(
            resource=s.resource,  # type: ignore[arg-type]
            half_life_s=half_life,
            window_s=s.window if sliding else None,
            round_s=s.window if s.window_type == "tumbling" and s.window != math.inf else None,
        )

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """U: usage over what the cluster could have given."""
        available = capacity * self._remembered_s(time_s)
        return counted / available if available > 0 else 0.0

    def _remembered_s(self, time_s: float) -> float:
        """Seconds that a rate of 1 since the start would count now."""
        s, ledger = self.settings, self.ledger_settings()
        since = time_s
        if ledger.round_s is not None:
            since = time_s % s.window or s.window
            since = min(since, time_s)
        if ledger.half_life_s is not None:
            return (1.0 - half_life_factor(since, s.half_life)) * s.half_life / LN2
        return since if ledger.window_s is None else min(since, s.window)

    def portions(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        """P of every queue, normalised over its siblings (1 for the root)."""
        capacity = capacity_of(snapshot, self.settings.resource)
        found = [1.0] * len(tree.names)
        for above in tree.parents:
            siblings = tree.children[above]
            total = sum(tree.entitlement[q] for q in siblings)
            w = {q: float(tree.entitlement[q] / total) if total > 0 else 1.0 / len(siblings) for q in siblings}
            p = {
                q: max(0.0, w[q] + self.settings.k * (w[q] - self.figure(snapshot.time_s, counted[q], capacity)))
                for q in siblings
            }
            whole = sum(p.values())
            for q in siblings:
                found[q] = p[q] / whole if whole > 0 else w[q]
        return found

    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        return by_shares(tree, self.portions(tree, snapshot, counted))

    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        unit = 1.0 if self.settings.resource != "dominant" else 1.0 / max(snapshot.capacity.vcores, 1)
        return share_keys(self.portions(tree, snapshot, counted), held, unit)
