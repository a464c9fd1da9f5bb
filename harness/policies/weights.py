"""Converts accumulated resources to Fair Scheduler weights: filling by level, flat or mixed; lifting of starved paths.

The queue with the smallest usage / weight gets the next container. Written weights are finite, within [WEIGHT_MIN,
WEIGHT_MAX] and exact in float32: see docs/decisions/weights.md. The law: docs/decisions/horizon.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.base.sums import left_fold_sum
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.resources import Resource
from harness.model.snapshot import Snapshot
from harness.policies.filling import Joining, satisfied, water_fill
from harness.policies.tree import Tree

#: Weights have this many binary digits: exact in float32 (24), short as decimals, and a target that moves by less than
#: 1 in 4,000 is not a new weight.
WEIGHT_BITS = 12
#: The sum of weights of a queue's waiting children before floors and lifts: three decades below WEIGHT_MAX, which
#: leaves room above for idle and lifted queues, and six above WEIGHT_MIN.
LEVEL_SUM = 1000.0
#: By how many containers beyond its allocation a starved queue is lifted (docs/decisions/weights.md).
LIFT_CONTAINERS = 2

#: With more queues than this, satisfied ones are found in one sweep (`satisfied`), not by repeated filling.
MANY = 16

#: The compiled code, if it is in use (`use_compiled`).
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

    Of any two siblings the first gets all it asks for, as long as it holds less than 1,000 times what the other holds.
    From the fourth rank on all weights are equal.
    """
    weight = WEIGHT_MAX / RANK_FACTOR ** min(rank, RANKS - 1)
    # 1e-3 is not a float32: the grid's smallest weight is the lowest rank.
    return weight if weight >= 1 else GRID_MIN


#: An idle queue may get this many times the weight of all waiting queues: when its burst comes it has all but a
#: hundredth of what it is owed, and two such queues still leave room below WEIGHT_MAX.
MOST_FOR_IDLE = 100


class Basis(NamedTuple):
    """The input of a filling: u of every queue (a parent's is the sum of its leaves'), R, H, and optionally demands.

    For every queue its demand, and whether it wants more than it holds. ``demand`` None: every queue wants everything.
    """

    used: Sequence[float]
    capacity: float
    horizon_s: float
    demand: Sequence[float] | None = None
    waiting: Sequence[bool] = ()


def fill(
    members: Sequence[int], entitlement: Sequence[float], room: float, basis: Basis
) -> tuple[dict[int, float], dict[int, float]]:
    """Return (x of the waiting queues, ratio of each other queue to all waiting ones) among some queues.

    Without demands every queue waits. With demands, the waiting queues are filled with what the others leave,
    repeatedly without those whose demand is smaller than their x; each other queue gets p / (1 - p) of the weight of
    all waiting ones, where p is its fraction if it alone joined them with unlimited demand.
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

    A level divides what its parent was filled with, at least the parent's own share: otherwise an indebted group would
    have nothing to divide, and its children's order would fall back to horizon 0. With demands, the fractions of
    waiting queues sum to 1, and those of the others are ratios to these.
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
        if total <= 0:  # deep below tiny weights the amount is smaller than a float can hold: as with horizon 0
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
    """Fill the leaves against each other by their own weights; a parent has the sum of its leaves' shares.

    Shares are fractions of the parent's; they are NaN below a parent that got nothing, which cannot be divided.
    """
    x, ratios = fill(tree.leaves, tree.entitlement, basis.capacity, basis)
    return parts_of_fill(tree, x, ratios, basis)


def parts_of_fill(tree: Tree, x: dict[int, float], ratios: dict[int, float], basis: Basis) -> list[float]:
    """Return fractions of the parent's for all queues from the leaves' filling (see `fill`).

    NaN as in `flat_shares`.
    """
    filled: list[float] = [0] * len(tree.names)
    for q, amount in x.items():
        filled[q] = amount
    if basis.demand is not None:
        # What the others want or hold also passes through their parents.
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
    """Finish `flat_shares` if no queue is between the root and the leaves: the same sums, without a tree."""
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
    """Return each queue's fraction of its parent's under long-term fairness (1: by level, 0: flat, in between: mixed).

    The mixture is computed below each parent, affinity x level + (1 - affinity) x flat, so that both ends are exact and
    every fraction is between them. Exact on fractions.
    """
    floats = type(basis.capacity) is float and type(tree.entitlement[0]) is float  # fractions on paper
    if _kernel and floats and basis.demand is not None and 0 < basis.horizon_s < math.inf:
        return compiled_shares(tree, basis, affinity)
    return plain_shares(tree, basis, affinity)


def use_compiled() -> None:
    """Use compiled code for shares and weights in this process: the same results, in a tenth of the time.

    This loads numba; compiling takes some seconds without a cache on disk. For simulations only: a real controller must
    not pause that long, has no cache, and has a whole period for each tick.
    """
    from harness.policies import weights_kernel

    _kernel[:] = [weights_kernel]


def _tables(tree: Tree) -> tuple[Any, Any]:
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


def weighing(tree: Tree) -> tuple[Any, ...] | None:
    """Return (compiled `weights_kernel.weigh`, its two tables, the row with its result) for a tree.

    None: nothing is compiled.
    """
    if not _kernel or type(tree.entitlement[-1]) is not float or not tree.leaves:
        return None
    kernel, (integers, reals) = _kernel[0], _tables(tree)
    return kernel.weigh, integers, reals, reals[kernel.WEIGHTS]


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
    """Fill all leaves against each other regardless of the tree; return each one's fraction of R (0 for parents).

    For waiting leaves it is the fraction of the filled amount, for others the ratio to all waiting ones.
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
    """Return weights on the grid from fractions of the parent's; the root's is 1."""
    if len(shares) > MANY:
        import numpy as np

        wanted = np.fmax(np.array([LEVEL_SUM * part for part in shares], dtype=float), GRID_MIN)  # NaN is the smallest
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

    At each level of the path, the queue's usage / weight is set below the smallest value of its demanding siblings that
    are not lifted, with room for exactly LIFT_CONTAINERS more containers: a freed container then reaches the starved
    leaf, whatever its parent has used, and after that its siblings come first again even before the next tick. Siblings
    without demand do not compete. Several starved leaves are ordered by their usage.

    Parameters
    ----------
    usage : what each queue holds now, in the unit that the scheduler compares (see `usage_of`).
    container : the size of one container of each starved leaf, same unit, by queue index.
    """
    lifted: dict[int, float] = {}
    for leaf in starved:
        for queue in tree.path(leaf):
            lifted[queue] = max(lifted.get(queue, 0.0), container[leaf])
    queues = [snapshot.queues[name] for name in tree.names]
    for above in {tree.parent[queue] for queue in lifted}:
        siblings = tree.children[above]
        # A demanding sibling that holds nothing has the smallest possible key, whatever its weight: it comes first
        # once.
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
        # There is no room above: lower the others instead.
        excess = max(wanted.values()) / GRID_MAX
        if excess > 1.0:
            wanted = {q: weight / excess for q, weight in wanted.items()}
            for q in siblings:
                if q not in lifted:
                    weights[q] = grid_weight(weights[q] / excess)
        for q, weight in wanted.items():
            # Round upwards, so that rounding does not undo the lead. Never below the filling's result.
            weights[q] = max(weights[q], min(grid_weight(weight * (1 + 1 / _SCALE)), GRID_MAX))


def usage_of(allocated: Resource, capacity: Resource, dominant: bool) -> float:
    """Return what the Fair Scheduler divides by the weight: MiB under ``fair``, the dominant share under ``drf``."""
    return allocated.dominant_share(capacity) if dominant else float(allocated.memory_mb)


def named(tree: Tree, weights: Sequence[float]) -> Mapping[str, float]:
    """Return queue path -> weight, without the root (whose weight has no effect)."""
    return dict(zip(tree.names[1:], weights[1:], strict=True))
