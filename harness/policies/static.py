"""``static``: every queue has exactly its share S_i, used or not. The reference for gains and losses by sharing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from harness.model.plan import Order, Plan
from harness.model.resources import ZERO, Resource
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag
from harness.policies.fair import entitlement_weights
from harness.policies.limits import SMALLEST_MB
from harness.policies.tree import tree_of
from harness.policies.vectors import Division, VectorScenario, static_shares


@dataclass(frozen=True, slots=True)
class StaticSettings:
    """Settings of static partitioning."""

    integral: bool = flag(doc="with several resources on paper: whole tasks")


class Static(Policy):
    """A fixed part of the cluster for each queue, by weight, used or not: maximum shares S_i (eq. 2).

    Level by level in a tree, inside and from outside.

    The cluster's memory and vcores are divided completely into whole units by the largest remainder method; ties are
    broken by name. A queue with a share above 0 may hold at least one small container (1 vcore and 1 GiB, or less if
    the cluster has less memory per vcore), because the ResourceManager refuses every application of a queue whose
    maximum share is 0. The sum may then exceed the cluster. No maximum share is above the administrator's. Without
    nodes there are no maximum shares.
    """

    name = "static"
    Settings = StaticSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return maximum resources that divide the cluster by the entitlements."""
        tree = tree_of(snapshot)
        leaves = sorted(tree.leaves, key=lambda q: [part.encode() for part in tree.names[q].split(".")])
        shares = [tree.share[q] for q in leaves]
        memory = largest_remainder(snapshot.capacity.memory_mb, shares)
        vcores = largest_remainder(snapshot.capacity.vcores, shares)
        most: dict[str, Resource] = {}
        # Before any node has registered there is nothing to divide.
        if snapshot.capacity.memory_mb > 0 and snapshot.capacity.vcores > 0:
            least = _smallest(snapshot.capacity)
            for q, share, m, v in zip(leaves, shares, memory, vcores, strict=True):
                own = Resource(m, v).at_least(least if share > 0 else ZERO)
                most[tree.names[q]] = own.within(snapshot.queues[tree.names[q]].max_share)
        return Plan(order=Order(measure="stock"), weights=entitlement_weights(snapshot), max_shares=most)

    def divide(self, scenario: VectorScenario) -> Division:
        """Return each user's number of tasks under static partitioning."""
        tasks = static_shares(scenario)
        return Division(tuple(Fraction(int(count)) for count in tasks) if self.settings.integral else tasks)


def _smallest(capacity: Resource) -> Resource:
    """Return one vcore with Hadoop's smallest container memory, or the cluster's memory per vcore if that is less.

    On paper, where a unit is a MiB and a vcore, there is no minimum: a queue with a small share may get nothing.
    """
    if capacity.memory_mb <= capacity.vcores:
        return ZERO
    return Resource(max(min(SMALLEST_MB, capacity.memory_mb // capacity.vcores), 1), 1)


def largest_remainder(total: int, shares: Sequence[float]) -> list[int]:
    """Divide `total` into whole units in proportion to the shares by the largest remainder method.

    Ties go to the queue that comes first. The result is exact for fractions.
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
