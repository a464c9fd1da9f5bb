"""``decay-slurm``: Slurm's Fair Tree over usage that halves every PriorityDecayHalfLife.

Slurm documentation, "Fair Tree Fairshare Algorithm": among siblings LF = S / U with S the shares over the siblings' sum
and U the decayed usage over the parent's; depth first, higher LF first. Siblings without usage come before all others
(LF infinite; 0 with no shares). Leaves with equal LF (by twelve digits) have one rank; parents with equal LF have their
children merged before these are sorted; a leaf equal to a parent has the rank of that parent's best leaf.

Fairshare=parent (setting ``parent``): the children of such a parent queue compete beside its siblings, by their own
shares and their part of the grandparent's usage; such a leaf has no shares of its own and comes first (LF infinite).

Discrete decay (setting ``calc_period``): Slurm sums usage, decays it and computes ranks once every PriorityCalcPeriod;
in between, ranks do not change. With 0, the default, the ranks are computed at each call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from harness.base.errors import CallError
from harness.model.snapshot import Snapshot
from harness.policies.base import number, text
from harness.policies.decay import DAY_S, DecayPolicy, DecaySettings, asking_ranks, by_ranks
from harness.policies.longterm import demands
from harness.policies.tree import Tree


@dataclass(frozen=True, slots=True)
class SlurmSettings(DecaySettings):
    """Settings of Slurm's policy, with its names; times in seconds."""

    half_life: float = number(7 * DAY_S, above=0, doc="PriorityDecayHalfLife")
    parent: str = text("", doc="full names of queues with Fairshare=parent, commas between them")
    calc_period: float = number(
        0, at_least=0, doc="PriorityCalcPeriod: usage and ranks change at its multiples only (Slurm: 300); 0: at once"
    )


class DecaySlurm(DecayPolicy):
    """Slurm's Fair Tree on usage that fades: whoever is ranked first gets all it asks for, then the next.

    From outside: ranks as ``fifo``'s, by level fairshare.
    """

    name = "decay-slurm"
    Settings: ClassVar[type] = SlurmSettings
    #: Ranks cover all leaves together, because leaves of tied parents are interleaved.
    flat: ClassVar[bool] = True
    settings: SlurmSettings

    def __init__(self, settings: Any = None, exact: Mapping[str, Fraction] | None = None) -> None:
        super().__init__(settings, exact)
        #: Number of the last ``calc_period`` with a poll, and the usage by queue at its first poll.
        self._period, self._stands = -1, dict[str, float]()

    def _as_calculated(self, tree: Tree, time_s: float, counted: Sequence[float]) -> Sequence[float]:
        """Return usage as of the latest calculation: the first poll in each period."""
        if self.settings.calc_period == 0:
            return counted
        period = math.floor(time_s / self.settings.calc_period)
        if period != self._period:
            self._period, self._stands = period, dict(zip(tree.names, counted, strict=True))
        return [self._stands.get(name, 0.0) for name in tree.names]

    def _through(self, tree: Tree) -> frozenset[int]:
        """Return the queues with Fairshare=parent."""
        names = [name.strip() for name in self.settings.parent.split(",") if name.strip()]
        for name in names:
            if tree.index.get(name, 0) == 0:
                raise CallError(
                    f"parent names {name!r}, which is not a queue", where="--set", hint="give root.a,root.b.c"
                )
        return frozenset(tree.index[name] for name in names)

    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        # Depth first by LF is strict order level by level; weights cannot merge children of tied parents.
        _, asks = demands(tree, snapshot, self.settings.resource)
        for leaf in tree.leaves:
            if asks[leaf]:
                for q in tree.path(leaf):
                    asks[q] = True
        counted = self._as_calculated(tree, snapshot.time_s, counted)
        return by_ranks(tree, asking_ranks(tree, [-lf for lf in self._level_fs(tree, counted)], asks))

    def _level_fs(self, tree: Tree, counted: Sequence[float]) -> list[float]:
        """Return LF for weights, which cannot merge the children of a queue with its siblings.

        At each level, a queue with Fairshare=parent has the LF of its best child.
        """
        through = self._through(tree)
        lf = level_fs(tree, counted, through)
        for q in reversed(tree.parents):
            if q in through:
                lf[q] = max(lf[child] for child in tree.children[q])
        return lf

    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        keys = [math.inf] * len(tree.names)
        counted = self._as_calculated(tree, snapshot.time_s, counted)
        for leaf, rank in fair_tree(tree, counted, self._through(tree)).items():
            keys[leaf] = float(rank)
        return keys


def members(tree: Tree, above: int, through: frozenset[int] = frozenset()) -> list[int]:
    """Return the competitors below a queue: its children, with parents in ``through`` replaced by their own members."""
    found: list[int] = []
    for q in tree.children[above]:
        found += members(tree, q, through) if q in through and tree.children[q] else [q]
    return found


def level_fs(tree: Tree, usage: Sequence[float], through: frozenset[int] = frozenset()) -> list[float]:
    """Return LF of every queue, from 0 to infinity (1 for the root).

    ``usage``: decayed usage of every queue; for a parent, the sum. ``through``: queues with Fairshare=parent. Parents
    among them have the LF 0.
    """
    found = [0.0] * len(tree.names)
    found[0] = 1.0
    for above in tree.parents:
        if above in through:
            continue
        siblings = members(tree, above, through)
        shares = sum(tree.entitlement[q] for q in siblings if q not in through)
        for q in siblings:
            s = float(tree.entitlement[q] / shares) if shares > 0 else 0.0
            u = usage[q] / usage[above] if usage[above] > 0 else 0.0
            if q in through:
                found[q] = math.inf
                continue
            # Round to twelve digits, so that queues with equal usage tie in spite of rounding errors.
            found[q] = 0.0 if s == 0 else math.inf if u == 0 else float(f"{s / u:.12g}")
    return found


def fair_tree(tree: Tree, usage: Sequence[float], through: frozenset[int] = frozenset()) -> dict[int, int]:
    """Return leaf -> its rank, 0 first.

    Equal leaves have equal ranks, and the next rank counts all leaves before it.
    """
    lf = level_fs(tree, usage, through)
    rank: dict[int, int] = {}
    leaves = set(tree.leaves)
    current = 0

    def visit(siblings: list[int], tied: bool) -> None:
        nonlocal current
        # At equal LF, leaves come before parents.
        ordered = sorted(siblings, key=lambda q: (-lf[q], q not in leaves))
        before: float | None = None
        at = 0
        while at < len(ordered):
            q = ordered[at]
            same = tied if at == 0 else lf[q] == before
            before = lf[q]
            if q in leaves:
                if not same:
                    current = len(rank)
                rank[q] = current
                at += 1
                continue
            group = [q]
            while at + len(group) < len(ordered) and lf[ordered[at + len(group)]] == lf[q]:
                group.append(ordered[at + len(group)])
            visit([child for parent in group for child in members(tree, parent, through)], same)
            at += len(group)

    visit(members(tree, 0, through), False)
    return rank
