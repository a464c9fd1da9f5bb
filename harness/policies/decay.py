"""Shared by the ``decay-*`` policies: memory that fades as in other schedulers. Each rule is in its own file.

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

        ``counted``: of every queue; a parent's is a sum.
        """

    @abstractmethod
    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        """Return the keys of all queues: the sibling with the smallest comes first.

        ``held``: present allocation, ledger's unit.
        """

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return keys for the scheduler inside and weights for one outside."""
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
        """Return lambda D: the mean rate of the usage that is remembered, in units of the resource."""
        return counted * LN2 / self.settings.half_life


def _since_the_ledger_began(snapshot: Snapshot, ledger: LedgerView) -> Snapshot:
    """Return the snapshot at a time measured from the ledger's start.

    A real controller's clock begins in 1970, but usage only exists since the ledger began.
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
    """Return keys that divide containers in proportion to shares: held / share; at 0, the larger share comes first."""
    # The tie-break is far smaller than one container and far larger than rounding errors of the held amount.
    return [(h + unit * 1e-6) / s if s > 0 else math.inf for h, s in zip(held, shares, strict=True)]


def by_ranks(tree: Tree, rank: Sequence[int]) -> list[float]:
    """Return weights that serve siblings in the order of their ranks (0 first), as far as possible: see ``fifo``."""
    return [1.0, *(rank_weight(rank[q]) for q in range(1, len(tree.names)))]


def asking_ranks(tree: Tree, keys: Sequence[float], asks: Sequence[bool]) -> list[int]:
    """Return `dense_ranks`, but rank only the asking siblings if there are more ranks than weights can distinguish.

    A sibling that does not ask then has the rank of the first asking sibling after it, and uses no rank of its own.
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
