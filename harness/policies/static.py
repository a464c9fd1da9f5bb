"""``static``: every queue has its share S_i and no more, used or not. What sharing is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from harness.model.plan import Order, Plan
from harness.model.resources import Resource
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag
from harness.policies.fair import entitlement_weights
from harness.policies.tree import tree_of
from harness.policies.vectors import Division, VectorScenario, static_shares


@dataclass(frozen=True, slots=True)
class StaticSettings:
    integral: bool = flag(doc="with several resources on paper: whole tasks")


class Static(Policy):
    """Maximum shares S_i (eq. 2, level by level in a tree), inside and from outside; inactive queues count.

    The cluster is divided without remainder: memory and vcores to whole units by largest remainder, ties by name.
    """

    name = "static"
    Settings = StaticSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        tree = tree_of(snapshot)
        leaves = sorted(tree.leaves, key=lambda q: tree.names[q].encode())
        shares = [tree.share[q] for q in leaves]
        memory = largest_remainder(snapshot.capacity.memory_mb, shares)
        vcores = largest_remainder(snapshot.capacity.vcores, shares)
        return Plan(
            order=Order(measure="stock"),
            weights=entitlement_weights(snapshot),
            max_shares={tree.names[q]: Resource(m, v) for q, m, v in zip(leaves, memory, vcores, strict=True)},
        )

    def divide(self, scenario: VectorScenario) -> Division:
        tasks = static_shares(scenario)
        return Division(tuple(Fraction(int(count)) for count in tasks) if self.settings.integral else tasks)


def largest_remainder(total: int, shares: Sequence[float]) -> list[int]:
    """Whole units in proportion to the shares, summing to `total`: floors, then one each by largest remainder.

    Ties go to the earlier. Works on floats and, exactly, on fractions.
    """
    scale = sum(shares)
    if not shares or scale <= 0:
        return [0] * len(shares)
    quotas = [total * share / scale for share in shares]
    units = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda i: units[i] - quotas[i])
    for i in by_remainder[: total - sum(units)]:
        units[i] += 1
    return units
