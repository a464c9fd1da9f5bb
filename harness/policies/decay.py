"""Base of the ``decay-*`` policies, whose usage decays as in other schedulers. Each rule is in its own file.

Their ledger is the ordinary one with a half-life or a window (harness.ledger.decay); ``counted`` below is its value, D
= integral of g(s) 0.5^((t - s) / half-life) ds in resource-seconds. Times are seconds (on paper: steps).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from harness.ledger.decay import LN2
from harness.model.plan import LedgerSettings, Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, number, word
from harness.policies.longterm import used_by_queue
from harness.policies.tree import Tree, tree_of
from harness.policies.weights import RANKS, named, rank_weight, share_weights

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class DecaySettings:
    """Settings of every policy of this family."""

    resource: str = word("vcores", "memory", "vcores", "dominant", doc="whose usage is remembered")
    half_life: float = number(DAY_S, above=0, doc="what was used this long ago counts half")


class DecayPolicy(Policy):
    """Base class: subclasses convert decayed usage to keys (inside) and weights (from outside)."""

    Settings: ClassVar[type] = DecaySettings
    settings: DecaySettings
    gives_back: ClassVar[bool] = True
    #: Whether keys order all leaves together, or siblings at each level.
    flat: ClassVar[bool] = False

    def ledger_settings(self) -> LedgerSettings:
        """Return the settings of this policy's ledger."""
        return LedgerSettings(resource=self.settings.resource, half_life_s=self.settings.half_life)  # type: ignore[arg-type]

    @abstractmethod
    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        """Return the Fair Scheduler weights of all queues in the tree's order.

        ``counted``: D of every queue, in the tree's order; for a parent, the sum of its leaves'.
        """

    @abstractmethod
    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        """Return the keys of all queues in the tree's order; among siblings, the smallest key comes first.

        ``held``: present allocation of every queue, in units of the resource.
        """

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return an order by keys (inside) and the weights (from outside)."""
        order = Order(measure="keys", flat=self.flat, ledger=self.ledger_settings())
        snapshot = _since_the_ledger_began(snapshot, ledger)
        tree = tree_of(snapshot)
        if not tree.leaves:
            return Plan(order=order)
        weights = self._weights(tree, snapshot, used_by_queue(tree, ledger))
        return Plan(order=order, weights=named(tree, weights))

    def keys(self, snapshot: Snapshot, ledger: LedgerView) -> Mapping[str, float]:
        """Return each queue's key from its decayed usage."""
        snapshot = _since_the_ledger_began(snapshot, ledger)
        tree = tree_of(snapshot)
        found = self._keys(tree, snapshot, used_by_queue(tree, ledger), self._held(tree, snapshot))
        return dict(zip(tree.names, found, strict=True))

    def _held(self, tree: Tree, snapshot: Snapshot) -> list[float]:
        held = [0.0] * len(tree.names)
        for q in tree.leaves:
            held[q] = snapshot.queues[tree.names[q]].allocated.amount(self.settings.resource, snapshot.capacity)
        return tree.sum_up(held)

    def _smoothed(self, counted: float) -> float:
        """Return lambda D: the smoothed usage, in units of the resource."""
        return counted * LN2 / self.settings.half_life


def _since_the_ledger_began(snapshot: Snapshot, ledger: LedgerView) -> Snapshot:
    """Return the snapshot with its time measured from the ledger's start.

    The rules need the age of the accounts, while a real controller's clock counts from 1970.
    """
    return replace(snapshot, time_s=snapshot.time_s - ledger.start_s) if ledger.start_s else snapshot


def by_shares(tree: Tree, shares: Sequence[float]) -> list[float]:
    """Return weights of all queues in proportion to their shares among siblings."""
    part = [1.0] * len(tree.names)
    for above in tree.parents:
        siblings = tree.children[above]
        given = shares if sum(shares[q] for q in siblings) > 0 else tree.entitlement
        total = sum(given[q] for q in siblings)
        for q in siblings:
            part[q] = given[q] / total
    return share_weights(tree, part)


def share_keys(shares: Sequence[float], held: Sequence[float], unit: float) -> list[float]:
    """Return the keys held / share, which divide containers in proportion to the shares.

    Of the queues that hold nothing, the one with the larger share comes first.
    """
    # The tie-break is far smaller than one container and far larger than rounding errors of the held amount.
    return [(h + unit * 1e-6) / s if s > 0 else math.inf for h, s in zip(held, shares, strict=True)]


def by_ranks(tree: Tree, rank: Sequence[int]) -> list[float]:
    """Return weights that serve siblings by rank (0 first), as far as weights allow (see `harness.policies.fifo`)."""
    return [1.0, *(rank_weight(rank[q]) for q in range(1, len(tree.names)))]


def asking_ranks(tree: Tree, keys: Sequence[float], asks: Sequence[bool]) -> list[int]:
    """Return `dense_ranks`; if weights cannot distinguish that many ranks, rank only the siblings that demand more.

    The other siblings then have the rank of the next sibling in the order that demands more.
    """
    rank = dense_ranks(tree, keys)
    for above in tree.parents:
        siblings = tree.children[above]
        asking = sorted({keys[q] for q in siblings if asks[q]})
        if asking and max(rank[q] for q in siblings) >= RANKS:
            for q in siblings:
                rank[q] = bisect_left(asking, keys[q])
    return rank


def dense_ranks(tree: Tree, keys: Sequence[float]) -> list[int]:
    """Return each queue's rank among its siblings by ascending key; equal keys share a rank."""
    rank = [0] * len(tree.names)
    for above in tree.parents:
        siblings = tree.children[above]
        places = {key: place for place, key in enumerate(sorted({keys[q] for q in siblings}))}
        for q in siblings:
            rank[q] = places[keys[q]]
    return rank
