"""Convert accumulated resources to Fair Scheduler weights by water-filling; raise the weights of starved leaves' paths.

The queue with the smallest usage / weight gets the next container. Written weights are finite, within [WEIGHT_MIN,
WEIGHT_MAX] and exact in float32 (docs/decisions/weights.md). docs/decisions/horizon.md explains the water-filling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.sums import left_fold_sum
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.resources import Resource
from harness.model.snapshot import Figures, Snapshot
from harness.policies.filling import Joining, satisfied, water_fill
from harness.policies.tree import Tree
from harness.policies.weighing import WeighingSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Number of binary digits of a weight. Such weights are exact in float32 (24 digits) and short as decimals, and small
#: changes (below 1 in 4,000) do not lead to a new weight.
WEIGHT_BITS = 12
#: Sum of the weights of a queue's waiting children, before limits and lifts are applied. It is a factor of 1e3 below
#: WEIGHT_MAX, for the weights of idle and lifted queues, and a factor of 1e6 above WEIGHT_MIN.
LEVEL_SUM = 1000.0
#: A starved queue's weight is raised so that it may get this many more containers (docs/decisions/weights.md).
LIFT_CONTAINERS = 2

#: With more queues than this, satisfied queues are found in one sweep (`satisfied`) instead of by repeated filling.
MANY = 16

#: The module with the compiled code, once `use_compiled` was called; else empty.
_kernel: list[Any] = []

_SCALE = float(1 << WEIGHT_BITS)
_frexp, _ldexp = math.frexp, math.ldexp


def _on_grid(value: float, rounding: Callable[[float], int]) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(rounding(mantissa * _SCALE), exponent - WEIGHT_BITS)


#: The smallest and the largest weight on the grid within [WEIGHT_MIN, WEIGHT_MAX].
GRID_MIN, GRID_MAX = _on_grid(WEIGHT_MIN, math.ceil), _on_grid(WEIGHT_MAX, math.floor)


def grid_weight(value: float) -> float:
    """Round to the nearest weight on the grid: 12 significant bits, in [WEIGHT_MIN, WEIGHT_MAX].

    NaN gives the smallest.
    """
    if not value > GRID_MIN:
        return GRID_MIN
    if value >= GRID_MAX:
        return GRID_MAX
    mantissa, exponent = _frexp(value)
    return _ldexp(round(mantissa * _SCALE), exponent - WEIGHT_BITS)


#: Factor between the weights of siblings in strict order: four ranks from WEIGHT_MAX down to GRID_MIN.
RANK_FACTOR = 1000.0
RANKS = 4


def rank_weight(rank: int) -> float:
    """Return the weight of a rank among siblings (0 first).

    Of two siblings with consecutive ranks, the first is served as long as it holds less than 1,000 times what the other
    holds. From the fourth rank on, all weights are equal.
    """
    weight = WEIGHT_MAX / RANK_FACTOR ** min(rank, RANKS - 1)
    # 1e-3 is not exact in float32, so the lowest rank has the smallest weight of the grid.
    return weight if weight >= 1 else GRID_MIN


#: Largest weight of an idle queue relative to the sum of all waiting queues' weights. With it, the queue gets at least
#: 99 % of the parent's share at its next burst, and the weights of two such queues are still below WEIGHT_MAX.
MOST_FOR_IDLE = 100


class Basis(NamedTuple):
    """The input of a water-filling.

    ``used``: accumulated resources u of every queue, resource-seconds; for a parent, the sum of its leaves'.
    ``capacity``: R, in resource units. ``horizon_s``: H. ``demand``: demand of every queue, in resource units (None:
    unlimited). ``waiting``: whether each queue demands more than it holds.
    """

    used: Sequence[float]
    capacity: float
    horizon_s: float
    demand: Sequence[float] | None = None
    waiting: Sequence[bool] = ()


def fill(
    members: Sequence[int], entitlement: Sequence[float], room: float, basis: Basis
) -> tuple[dict[int, float], dict[int, float]]:
    """Return (x of the waiting queues, ratio of each other queue to the sum of all waiting ones) among ``members``.

    Without demands, every queue waits. With demands, the waiting queues are filled with the amount that the others
    leave. Queues whose demand is smaller than their x are then treated like the others, and the filling is repeated.
    The ratio of another queue is p / (1 - p), where p is its fraction if it alone joined the waiting queues with
    unlimited demand.
    """
    used, _, horizon_s, demand, waiting = basis
    everyone = list(members)
    if demand is None:
        x = water_fill([used[q] for q in everyone], [entitlement[q] for q in everyone], room, horizon_s)
        return dict(zip(everyone, x, strict=True)), {}
    left = room - left_fold_sum(demand[q] for q in everyone if not waiting[q])
    short = [q for q in everyone if waiting[q]]
    if len(short) > MANY:
        have_enough = satisfied(
            [used[q] for q in short], [entitlement[q] for q in short], [demand[q] for q in short], left, horizon_s
        )
        given = left_fold_sum(demand[q] for q, enough in zip(short, have_enough, strict=True) if enough)
        if left - given >= room / MOST_FOR_IDLE:
            left -= given
            short = [q for q, enough in zip(short, have_enough, strict=True) if not enough]
    x = []
    while short:
        left = max(left, room / MOST_FOR_IDLE)
        x = water_fill([used[q] for q in short], [entitlement[q] for q in short], left, horizon_s)
        enough = [q for q, amount in zip(short, x, strict=True) if demand[q] <= amount]
        if not enough:
            break
        left -= left_fold_sum(demand[q] for q in enough)
        leaving = set(enough)
        short = [q for q in short if q not in leaving]
    if not short:
        x = water_fill([used[q] for q in everyone], [entitlement[q] for q in everyone], room, horizon_s)
        return dict(zip(everyone, x, strict=True)), {}
    ratios: dict[int, float] = {}
    if len(short) < len(everyone):
        joining = Joining([used[q] for q in short], [entitlement[q] for q in short], room, horizon_s)
        competing = set(short)
        for q in everyone:
            if q not in competing:
                part = joining.part(used[q], entitlement[q])
                ratios[q] = min(part / (1 - part), MOST_FOR_IDLE) if part < 1 else MOST_FOR_IDLE
    return dict(zip(short, x, strict=True)), ratios


def level_shares(tree: Tree, basis: Basis) -> list[float]:
    """Return each queue's fraction (0..1) of its parent's amount, by water-filling among siblings, level by level.

    The amount that siblings divide is their parent's x, but at least the parent's entitled share. Otherwise a group
    that owes resources would have nothing to divide, and its children would be ordered as with horizon 0. With demands,
    the fractions of waiting queues sum to 1, and those of the others are ratios to this sum.
    """
    capacity = basis.capacity
    part: list[float] = [1] * len(tree.names)
    filled = [capacity] * len(tree.names)
    for above in tree.parents:
        siblings = tree.children[above]
        if len(siblings) == 1:
            filled[siblings[0]] = filled[above]
            continue
        room = max(filled[above], tree.share[above] * capacity)
        x, ratios = fill(siblings, tree.entitlement, room, basis)
        total = left_fold_sum(x.values())
        if total <= 0:  # the amount underflowed, because of tiny weights of the ancestors: order as with horizon 0
            own = [tree.entitlement[q] for q in siblings]
            for q, weight in zip(siblings, own, strict=True):
                filled[q] = 0.0
                part[q] = weight / left_fold_sum(own) if left_fold_sum(own) > 0 else 1 / len(own)
            continue
        for q, amount in x.items():
            filled[q] = amount
            part[q] = amount / total
        for q, ratio in ratios.items():
            filled[q] = room * ratio / (1 + ratio)
            part[q] = ratio
    return part


def flat_shares(tree: Tree, basis: Basis) -> list[float]:
    """Water-fill all leaves together by their own weights; a parent gets the sum of its leaves' shares.

    Returns each queue's fraction of its parent's share; NaN below a parent with the share 0.
    """
    x, ratios = fill(tree.leaves, tree.entitlement, basis.capacity, basis)
    return parts_of_fill(tree, x, ratios, basis)


def parts_of_fill(tree: Tree, x: dict[int, float], ratios: dict[int, float], basis: Basis) -> list[float]:
    """Convert the leaves' filling (see `fill`) to each queue's fraction of its parent's share.

    As in `flat_shares`, the fractions are NaN below a parent with the share 0.
    """
    filled: list[float] = [0] * len(tree.names)
    for q, amount in x.items():
        filled[q] = amount
    if basis.demand is not None:
        # A parent's amount includes the demands of its leaves that are not waiting.
        for q in ratios:
            filled[q] = min(basis.demand[q], basis.capacity)
    if len(tree.parents) == 1:
        return _one_level(tree, filled, x, ratios)
    parent = tree.parent
    flow = tree.sum_up(filled)
    burst, crowded = flow, flow
    if ratios:
        waits_below: list[float] = [0] * len(tree.names)
        total = left_fold_sum(x.values())
        for q in tree.leaves:
            filled[q] = ratios.get(q, 0) * total
            waits_below[q] = 1 if q in x else 0
        burst, crowded = tree.sum_up(filled), tree.sum_up(waits_below)
    part: list[float] = [1] * len(tree.names)
    for q in range(1, len(part)):
        above = flow[parent[q]]
        if above <= 0:
            part[q] = math.nan
        elif not ratios or crowded[q] > 0:
            part[q] = flow[q] / above
        else:
            part[q] = min(max(flow[q], burst[q]) / above, MOST_FOR_IDLE)
    return part


def _one_level(tree: Tree, filled: list[float], x: dict[int, float], ratios: dict[int, float]) -> list[float]:
    """Compute `parts_of_fill` for a tree whose leaves are all children of the root, which takes less time."""
    above: float = 0
    for q in range(len(filled) - 1, 0, -1):
        above += filled[q]
    total = left_fold_sum(x.values())
    part: list[float] = [1] * len(filled)
    for q in range(1, len(filled)):
        if above <= 0:
            part[q] = math.nan
        elif q in ratios:
            part[q] = min(max(filled[q], ratios[q] * total) / above, MOST_FOR_IDLE)
        else:
            part[q] = filled[q] / above
    return part


def long_term_shares(tree: Tree, basis: Basis, affinity: float) -> list[float]:
    """Return each queue's fraction of its parent's share under long-term fairness.

    ``affinity`` 1 fills level by level (`level_shares`) and 0 fills all leaves together (`flat_shares`). In between,
    the result is affinity x level + (1 - affinity) x flat below each parent. It is exact for fractions.
    """
    floats = type(basis.capacity) is float and type(tree.entitlement[0]) is float  # fractions on paper
    if _kernel and floats and basis.demand is not None and 0 < basis.horizon_s < math.inf:
        return compiled_shares(tree, basis, affinity)
    return plain_shares(tree, basis, affinity)


def use_compiled() -> None:
    """Use compiled code for shares and weights in this process: the same results in a tenth of the time.

    This loads numba; compiling takes some seconds without a cache on disk. It is for simulations only: a real
    controller must not pause for so long, and a tick need not be faster.
    """
    from harness.policies import weights_kernel

    _kernel[:] = [weights_kernel]


def _tables(tree: Tree) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the tree in the form for compiled code (harness.policies.weights_kernel)."""
    if not tree.arrays:
        import numpy as np

        from harness.policies import weights_kernel as kernel

        n = len(tree.names)
        integers, reals = np.zeros((kernel.INTEGERS, n + 1), np.int64), np.zeros((kernel.REALS, n))
        integers[kernel.PARENT, :n] = tree.parent
        family = [child for siblings in tree.children for child in siblings]
        integers[kernel.CHILD, : len(family)] = family
        integers[kernel.CHILDREN_AT, 1:] = np.cumsum([len(siblings) for siblings in tree.children])
        for row, queues in ((kernel.LEAF, tree.leaves), (kernel.ABOVE, tree.parents)):
            integers[row, : len(queues)] = queues
            integers[row, n] = len(queues)
        reals[kernel.ENTITLEMENT], reals[kernel.SHARE] = tree.entitlement, tree.share
        tree.arrays[:] = integers, reals
    integers, reals = tree.arrays
    return integers, reals


def compiled_shares(tree: Tree, basis: Basis, affinity: float) -> list[float]:
    """Compute the shares of all queues by the compiled kernel, in the tree's order."""
    from harness.policies import weights_kernel as kernel

    integers, reals = _tables(tree)
    reals[kernel.USED], reals[kernel.DEMAND], reals[kernel.WAITING] = basis.used, basis.demand, basis.waiting
    kernel.parts_of_tree(integers, reals, float(basis.capacity), float(basis.horizon_s), float(affinity))
    found: list[float] = reals[kernel.LEVELS].tolist()
    return found


@dataclass(frozen=True, slots=True)
class CompiledWeighing:
    """Computes the weights of a tree with compiled code.

    Parameters
    ----------
    tree
        The tree as the two tables of `harness.policies.weights_kernel`.
    settings
        The constant inputs.
    """

    tree: tuple[NDArray[np.int64], NDArray[np.float64]]
    settings: WeighingSettings

    def weights(
        self,
        figures: Figures,
        columns: NDArray[np.float64],
        before: NDArray[np.float64],
        period_s: float,
        since_ms: float,
    ) -> NDArray[np.float64] | None:
        """Return ``before`` itself if the weights do not change, otherwise the new weights.

        The next call overwrites the new weights. None if a leaf may have waited since ``since_ms``.
        """
        kernel = _kernel[0]
        integers, reals = self.tree
        code = kernel.weigh(
            integers, reals, figures.table, figures.rows, columns, before, self.settings, period_s, since_ms
        )
        return (before, reals[kernel.WEIGHTS], None)[code]


def weighing(tree: Tree, settings: WeighingSettings) -> CompiledWeighing | None:
    """Return the compiled weighing of a tree; None if nothing is compiled, or for a tree on which it cannot be used."""
    if not _kernel or type(tree.entitlement[-1]) is not float or not tree.leaves:
        return None
    return CompiledWeighing(_tables(tree), settings)


def plain_shares(tree: Tree, basis: Basis, affinity: float) -> list[float]:
    """Return `long_term_shares` without compiled code."""
    if affinity >= 1:
        return level_shares(tree, basis)
    flat = flat_shares(tree, basis)
    if affinity <= 0 and not any(f != f for f in flat):
        return flat
    level = level_shares(tree, basis)
    if affinity <= 0:
        return [f if f == f else v for f, v in zip(flat, level, strict=True)]
    rest = 1 - affinity
    return [affinity * v + rest * f if f == f else v for f, v in zip(flat, level, strict=True)]


def leaf_parts(tree: Tree, basis: Basis) -> list[float]:
    """Water-fill all leaves together, regardless of the tree; return each leaf's fraction (0 for parents).

    For a waiting leaf it is the fraction of the filled amount, for another leaf the ratio to the sum of all waiting
    leaves.
    """
    x, ratios = fill(tree.leaves, tree.entitlement, basis.capacity, basis)
    total = left_fold_sum(x.values())
    part: list[float] = [0] * len(tree.names)
    for q, amount in x.items():
        part[q] = amount / total
    for q, ratio in ratios.items():
        part[q] = ratio
    return part


def share_weights(tree: Tree, shares: Sequence[float]) -> list[float]:
    """Convert each queue's fraction of its parent's share to a weight on the grid; the root's weight is 1."""
    if len(shares) > MANY:
        import numpy as np

        wanted = np.fmax(np.array([LEVEL_SUM * part for part in shares], dtype=float), GRID_MIN)  # NaN gives GRID_MIN
        mantissa, exponent = np.frexp(np.minimum(wanted, GRID_MAX))
        found: list[float] = np.ldexp(np.rint(mantissa * _SCALE), exponent - WEIGHT_BITS).tolist()
        found[0] = 1.0
        return found
    weights = [grid_weight(LEVEL_SUM * part) for part in shares]
    weights[0] = 1.0
    return weights


def lift(
    tree: Tree,
    snapshot: Snapshot,
    weights: list[float],
    starved: Sequence[int],
    usage: Sequence[float],
    container: Sequence[float],
) -> None:
    """Raise, in place, the weights along the paths of starved leaves so that each comes first at every level.

    At each level of the path, the weight is such that the queue's usage / weight reaches the smallest value of its
    demanding siblings after LIFT_CONTAINERS more containers. A freed container then reaches the starved leaf, whatever
    its parent has used, and after LIFT_CONTAINERS of them its siblings come first again, even before the next tick.
    Siblings without demand, or on another starved leaf's path, do not count. Several starved leaves are ordered by
    their usage.

    Parameters
    ----------
    tree, snapshot
        The queues.
    weights : list[float]
        The weights, in the tree's order; changed in place.
    starved : Sequence[int]
        Indices of the starved leaves.
    usage : Sequence[float]
        Present usage of each queue, in the unit that the scheduler compares (see `usage_of`).
    container : Sequence[float]
        By queue index, the size of one container of each starved leaf, in the unit of ``usage``.
    """
    lifted: dict[int, float] = {}
    for leaf in starved:
        for queue in tree.path(leaf):
            lifted[queue] = max(lifted.get(queue, 0.0), container[leaf])
    queues = [snapshot.queues[name] for name in tree.names]
    for above in {tree.parent[queue] for queue in lifted}:
        siblings = tree.children[above]
        # A demanding sibling that holds nothing has the key 0 whatever its weight, so it gets one container first.
        rivals = [
            usage[q] / weights[q]
            for q in siblings
            if q not in lifted and usage[q] > 0 and queues[q].demand != queues[q].allocated
        ]
        ours = [q for q in siblings if q in lifted]
        if not rivals and len(ours) == 1:
            continue
        if rivals:
            lowest = min(rivals)
        else:
            lowest = left_fold_sum(usage[q] for q in ours) / left_fold_sum(weights[q] for q in ours) or 1.0
        wanted = {q: (usage[q] + LIFT_CONTAINERS * lifted[q]) / lowest for q in ours}
        # If a weight would exceed the range, lower the siblings' weights instead.
        excess = max(wanted.values()) / GRID_MAX
        if excess > 1.0:
            wanted = {q: weight / excess for q, weight in wanted.items()}
            for q in siblings:
                if q not in lifted:
                    weights[q] = grid_weight(weights[q] / excess)
        for q, weight in wanted.items():
            # Round upwards, so that the queue still comes first. Never fall below the weight from the water filling.
            weights[q] = max(weights[q], min(grid_weight(weight * (1 + 1 / _SCALE)), GRID_MAX))


def usage_of(allocated: Resource, capacity: Resource, dominant: bool) -> float:
    """Return the usage that the Fair Scheduler divides by the weight: MiB, or with ``dominant`` the dominant share."""
    return allocated.dominant_share(capacity) if dominant else float(allocated.memory_mb)


def named(tree: Tree, weights: Sequence[float]) -> Mapping[str, float]:
    """Return queue path -> weight, without the root (whose weight has no effect)."""
    return dict(zip(tree.names[1:], weights[1:], strict=True))
