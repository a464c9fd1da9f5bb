"""``decay-htcondor``: HTCondor's user priorities. Shares are inversely proportional to smoothed usage.

HTCondor manual, "User Priorities and Negotiation": the real user priority is

    pi(t) = beta pi(t - d) + (1 - beta) usage,    beta = 0.5^(d / half-life)

never below 0.5, which is also the initial value; the effective priority is pi times the user's priority factor, and the
pool is divided in inverse proportion to it.

Group quotas (``groups=quota``): a parent queue is an accounting group that accepts surplus. Groups get their quotas
(their weights) regardless of usage; only users (leaves) are compared by priority. The leaves beside groups divide the
sum of their weights among those that have demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.ledger.decay import half_life_factor
from harness.model.snapshot import Snapshot
from harness.policies.base import word
from harness.policies.decay import DecayPolicy, DecaySettings, by_shares, share_keys
from harness.policies.longterm import demands
from harness.policies.tree import Tree

#: The best real user priority, which is also the initial one.
FLOOR = 0.5


@dataclass(frozen=True, slots=True)
class HtcondorSettings(DecaySettings):
    """Settings of HTCondor's policy."""

    groups: str = word("quota", "quota", "priority", doc="parent queues: by quota as accounting groups, or by priority")


class DecayHtcondor(DecayPolicy):
    """HTCondor's user priority: usage that fades with a half-life, over the weight.

    From outside: the shares as weights.

    The priority factor is 1 / weight. The smoothed usage is in units of the resource: cores, as in HTCondor; MiB for
    ``resource=memory``, where the floor of 0.5 has hardly any effect; fractions of the cluster for ``dominant``, where
    the floor is the fraction of half a core.

    HTCondor's recursion is raised to 0.5 at every sample. The ledger has no such floor: the initial 0.5 decays from
    the ledger's start. After a pause, the result is therefore up to half a core below HTCondor's, and never above.
    """

    name = "decay-htcondor"
    Settings: ClassVar[type] = HtcondorSettings
    settings: HtcondorSettings

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """Return the real user priority pi."""
        return self._priority(time_s, counted, FLOOR)

    def _priority(self, time_s: float, counted: float, floor: float) -> float:
        return max(floor, self._smoothed(counted) + floor * half_life_factor(time_s, self.settings.half_life))

    def _slices(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        # The dominant resource is counted in fractions of the cluster, so half a core is that fraction of its cores.
        floor = FLOOR / max(snapshot.capacity.vcores, 1) if self.settings.resource == "dominant" else FLOOR
        slices = [
            float(tree.entitlement[q]) / self._priority(snapshot.time_s, counted[q], floor)
            for q in range(len(tree.names))
        ]
        if self.settings.groups == "quota":
            demand, _ = demands(tree, snapshot, self.settings.resource)
            asks = [amount > 0 for amount in demand]
            for above in tree.parents:
                self._by_quota(tree, above, slices, asks)
        return slices

    def _by_quota(self, tree: Tree, above: int, slices: list[float], asks: Sequence[bool]) -> None:
        """Set, in place, the groups' shares to their quotas, and divide the rest among the leaves beside them."""
        siblings = tree.children[above]
        groups = [q for q in siblings if tree.children[q]]
        if not groups:
            return
        leaves = [q for q in siblings if not tree.children[q]]
        quota = float(sum(tree.entitlement[q] for q in leaves))
        asking = sum(slices[q] for q in leaves if asks[q])
        for q in leaves:
            # A leaf without demand gets the share that it would have if it joined the leaves with demand.
            whole = asking if asks[q] else asking + slices[q]
            slices[q] = quota * slices[q] / whole if whole > 0 else 0.0
        for q in groups:
            slices[q] = float(tree.entitlement[q])

    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        return by_shares(tree, self._slices(tree, snapshot, counted))

    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        unit = 1.0 if self.settings.resource != "dominant" else 1.0 / max(snapshot.capacity.vcores, 1)
        return share_keys(self._slices(tree, snapshot, counted), held, unit)
