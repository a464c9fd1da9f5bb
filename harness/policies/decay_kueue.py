"""``decay-kueue``: Kueue's admission fair sharing. The queue with the least smoothed usage / weight is admitted next.

Kueue documentation, "Admission Fair Sharing": every sampling interval

    usage = (1 - A) before + A now,    A = 1 - 0.5^(sampling / half-life)

of each resource, summed with the resources' weights and divided by the queue's weight. Until the next sample, an
admitted request counts at once, multiplied by A (the entry penalty).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.ledger.decay import half_life_factor
from harness.model.snapshot import Snapshot
from harness.policies.base import number
from harness.policies.decay import DecayPolicy, DecaySettings
from harness.policies.longterm import HORIZON_TASKS, basis_of, mean_task_s
from harness.policies.tree import Tree
from harness.policies.weights import long_term_shares, share_weights


@dataclass(frozen=True, slots=True)
class KueueSettings(DecaySettings):
    """Settings of Kueue's policy; times in seconds."""

    half_life: float = number(7 * 86_400.0, above=0, doc="usageHalfLifeTime")
    sampling: float = number(300.0, above=0, doc="usageSamplingInterval, which sets the entry penalty")


class DecayKueue(DecayPolicy):
    """Kueue's admission fair sharing: usage that fades, with a penalty on entry.

    From outside: the horizon law of ``ltrf`` over its own memory.

    The usage of one resource counts, so Kueue's weights of resources have no effect; ``dominant`` counts the larger of
    both.

    The ledger's continuous decay equals Kueue's at every sampling instant. The entry penalty is applied to the running
    containers. If containers end within a sampling interval, these are the ones admitted in it.
    """

    name = "decay-kueue"
    Settings: ClassVar[type] = KueueSettings
    settings: KueueSettings

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """Return the smoothed usage, in units of the resource."""
        return self._smoothed(counted)

    def penalty(self) -> float:
        """Return A: the fraction of a request that counts at its admission."""
        return 1.0 - half_life_factor(self.settings.sampling, self.settings.half_life)

    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        a = self.penalty()
        return [
            (self._smoothed(counted[q]) + a * held[q]) / float(tree.entitlement[q])
            if tree.entitlement[q] > 0
            else math.inf
            for q in range(len(tree.names))
        ]

    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        # The least-usage rule is the long-term rule with decaying usage, so the same horizon law applies from outside.
        horizon_s = max(HORIZON_TASKS * mean_task_s(snapshot), snapshot.period_s)
        basis = basis_of(tree, snapshot, counted, self.settings.resource, horizon_s)
        return share_weights(tree, long_term_shares(tree, basis, 1.0))
