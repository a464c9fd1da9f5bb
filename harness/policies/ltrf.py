"""``ltrf``: long-term resource fairness (LTYARN Algorithm 1). Leaves against each other, whatever tree stands above."""

from __future__ import annotations

from harness.policies.longterm import LongTermPolicy


class Ltrf(LongTermPolicy):
    """The demanding leaf with the smallest accumulated / weight gets the next container; the tree is ignored."""

    name = "ltrf"

    def shape(self) -> tuple[bool, float]:
        return True, 0.0
