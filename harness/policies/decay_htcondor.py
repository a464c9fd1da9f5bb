"""``decay-htcondor``: HTCondor's user priorities. Resources in inverse proportion to smoothed usage.

HTCondor manual, "User Priorities and Negotiation": the real user priority is

    pi(t) = beta pi(t - d) + (1 - beta) usage,    beta = 0.5^(d / half-life)

never below 0.5, where everybody begins; the effective priority is pi times the user's priority factor, and the pool is
divided in inverse proportion to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.ledger.decay import half_life_factor
from harness.model.snapshot import Snapshot
from harness.policies.decay import DecayPolicy, by_shares, share_keys
from harness.policies.tree import Tree

#: The best real user priority, which is also everybody's first.
FLOOR = 0.5


class DecayHtcondor(DecayPolicy):
    """The priority factor is 1 / weight. The smoothed usage is in units of the resource (cores, as in HTCondor; MiB for
    ``resource=memory``, where the floor of 0.5 is next to nothing; parts of the cluster for ``dominant``, where it is
    half a core's).

    The ledger knows no floor: the first 0.5 fades from its beginning whatever happens, where HTCondor's recursion is
    raised to 0.5 at every sample. After a pause the answer is less than half a core below HTCondor's, never above.
    """

    name = "decay-htcondor"

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """The real user priority pi."""
        return self._priority(time_s, counted, FLOOR)

    def _priority(self, time_s: float, counted: float, floor: float) -> float:
        return max(floor, self._smoothed(counted) + floor * half_life_factor(time_s, self.settings.half_life))

    def _slices(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        # The dominant resource is counted in parts of the cluster: there half a core is that part of its cores.
        floor = FLOOR / max(snapshot.capacity.vcores, 1) if self.settings.resource == "dominant" else FLOOR
        return [
            float(tree.entitlement[q]) / self._priority(snapshot.time_s, counted[q], floor)
            for q in range(len(tree.names))
        ]

    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        return by_shares(tree, self._slices(tree, snapshot, counted))

    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        unit = 1.0 if self.settings.resource != "dominant" else 1.0 / max(snapshot.capacity.vcores, 1)
        return share_keys(self._slices(tree, snapshot, counted), held, unit)
