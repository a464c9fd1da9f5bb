"""``naive-hltrf``: long-term fairness level by level (LTYARN section 5.2.1). It can starve a leaf: see ``hltrf``."""

from __future__ import annotations

from harness.policies.longterm import LongTermPolicy


class NaiveHltrf(LongTermPolicy):
    """From the root down, the demanding child whose subtree has the smallest accumulated / weight.

    From outside, the weights are the result of water-filling over a horizon, level by level
    (docs/decisions/horizon.md).
    """

    name = "naive-hltrf"
    weighs = True

    def affinity(self) -> float:
        """Return 1: siblings are compared at every level."""
        return 1.0
