"""From accumulated resources to Fair Scheduler weights: fill by level, flat or between; lift starved paths.

Weights decide who gets the next container through usage / weight (smallest first). What is written is finite, within
[WEIGHT_MIN, WEIGHT_MAX] and exact in float32: see docs/decisions/weights.md. The law: docs/decisions/horizon.md.
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

#: Weights carry this many binary digits: exact in float32 (24) and short as decimals, and a target that moves by less
#: than 1 in 4,000 is not a new weight.
WEIGHT_BITS = 12
#: What the weights of the waiting children of one queue sum to before floors and lifts: three decades below
#: WEIGHT_MAX, so that idle and lifted queues have room above, and six above WEIGHT_MIN.
LEVEL_SUM = 1000.0
#: How many containers beyond what it holds a starved queue is lifted by (docs/decisions/weights.md).
LIFT_CONTAINERS = 2

#: Of more queues than this, those that have enough are found in one sweep (`satisfied`), not in as many fillings as it
#: may take one by one.
MANY = 16

#: The compiled code, where it is used (`use_compiled`).
_kernel: list[Any] = []

_SCALE = float(1 << WEIGHT_BITS)
_frexp, _ldexp = math.frexp, math.ldexp


def _on_grid(value: float, rounding: Callable[[float], int]) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(rounding(mantissa * _SCALE), exponent - WEIGHT_BITS)


#: The smallest and the largest weight on the grid within [WEIGHT_MIN, WEIGHT_MAX].
GRID_MIN, GRID_MAX = _on_grid(WEIGHT_MIN, math.ceil), _on_grid(WEIGHT_MAX, math.floor)


def grid_weight(value: float) -> float:
    """The nearest weight on the grid: 12 significant bits, within [WEIGHT_MIN, WEIGHT_MAX]; NaN is the smallest."""
    if not value > GRID_MIN:
        return GRID_MIN
    if value >= GRID_MAX:
        return GRID_MAX
    mantissa, exponent = _frexp(value)
    return _ldexp(round(mantissa * _SCALE), exponent - WEIGHT_BITS)


#: Siblings to be served strictly in order have weights this factor apart: four ranks from WEIGHT_MAX down to GRID_MIN.
RANK_FACTOR = 1000.0
RANKS = 4


def rank_weight(rank: int) -> float:
    """Return the weight of a place among siblings (0 first).

    Of any two siblings the first gets all it asks for, as long as it holds less than 1,000 times what the other holds.
    From the fourth place on all weights are equal.
    """
    weight = WEIGHT_MAX / RANK_FACTOR ** min(rank, RANKS - 1)
    # 1e-3 is not a float32: the grid's smallest weight is the lowest rank.
    return weight if weight >= 1 else GRID_MIN


#: A queue that is idle at the tick may get this many times the weight of all that wait together: when its burst comes
#: it has all but one part in a hundred of what it is owed, and two such queues still leave room below WEIGHT_MAX.
MOST_FOR_IDLE = 100


class Basis(NamedTuple):
    """What a filling goes by: u of every queue (a parent's the sum of its leaves'), R, H, and with demands who waits.

    Of every queue what it demands, and whether it wants more than it holds. ``demand`` None: everybody wants all.
    """

    used: Sequence[float]
    capacity: float
    horizon_s: float
    demand: Sequence[float] | None = None
    waiting: Sequence[bool] = ()


def fill(
    members: Sequence[int], entitlement: Sequence[float], room: float, basis: Basis
) -> tuple[dict[int, float], dict[int, float]]:
    """(x of those who wait for more than they hold, ratio of the others to all of those) among some queues.

    Without demands everybody waits. With them, the waiting queues are filled with what the others leave them, again
    without those whose demand is smaller than their x; each of the others gets p / (1 - p) of the weight of all who
    wait, p being its part if it alone joined them with demand without end.
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
    """Level by level: each queue's part (0..1) of what its parent hands on, by water-filling among its siblings.

    A level fills what its parent was filled with, at least the parent's own share: a group that owes would otherwise
    have nothing to divide, and its children's order would fall back to horizon 0. With demands, the parts of those who
    wait sum to 1, and the others' are ratios to these.
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
        if total <= 0:  # far down under tiny weights the room is less than a float holds: as with horizon 0
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

    Shares are parts of the parent's; they are NaN below a parent that got nothing, because it does not tell how to
    divide it.
    """
    x, ratios = fill(tree.leaves, tree.entitlement, basis.capacity, basis)
    return parts_of_fill(tree, x, ratios, basis)


def parts_of_fill(tree: Tree, x: dict[int, float], ratios: dict[int, float], basis: Basis) -> list[float]:
    """Parts of the parent's of all queues, from what leaves are filled with (see `fill`); NaN as in `flat_shares`."""
    filled: list[float] = [0] * len(tree.names)
    for q, amount in x.items():
        filled[q] = amount
    if basis.demand is not None:
        # What the others want or hold flows through their parents too.
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
    """The end of `flat_shares` where no queue stands between the root and the leaves: the same sums, without a tree."""
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
    """Each queue's part of its parent's under long-term fairness: 1 level by level, 0 flat, in between their mixture.

    The mixture is taken of the parts below each parent, affinity x level + (1 - affinity) x flat, so that both ends
    are exact and every part stays between them. Exact on fractions.
    """
    floats = type(basis.capacity) is float and type(tree.entitlement[0]) is float  # fractions on paper
    if _kernel and floats and basis.demand is not None and 0 < basis.horizon_s < math.inf:
        return compiled_shares(tree, basis, affinity)
    return plain_shares(tree, basis, affinity)


def use_compiled() -> None:
    """From now on parts and weights are compiled code's, in this process: the same, in a tenth of the time.

    numba loads; compiling takes some seconds where nothing is kept on disk. For simulations: a controller beside a
    ResourceManager must not stand still so long, has nowhere to keep code, and has a whole period for each tick.
    """
    from harness.policies import weights_kernel

    _kernel[:] = [weights_kernel]


def _tables(tree: Tree) -> tuple[Any, Any]:
    """The tree as compiled code takes it (harness.policies.weights_kernel)."""
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
    """(compiled `weights_kernel.weigh`, its two tables, where it answers) for a tree; None: nothing is compiled."""
    if not _kernel or type(tree.entitlement[-1]) is not float or not tree.leaves:
        return None
    kernel, (integers, reals) = _kernel[0], _tables(tree)
    return kernel.weigh, integers, reals, reals[kernel.WEIGHTS]


def plain_shares(tree: Tree, basis: Basis, affinity: float) -> list[float]:
    """`long_term_shares` without compiled code."""
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
    """Leaves filled against each other whatever tree stands above: each one's part of R (0 for parents).

    Of those who wait the parts of what they are filled with, of the others the ratio to all who wait.
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
    """Weights on the grid from parts of the parent's; the root's is 1."""
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

    At each level on the path the queue's usage / weight is put below the smallest of its demanding siblings that are
    not lifted themselves, with room for LIFT_CONTAINERS more containers, and not more: a freed container then reaches
    the starved leaf, whatever its parent has used, and after that its siblings come first again even before the next
    tick. Siblings without demand do not compete. Several starved leaves share the places in the order of their usage.

    Parameters
    ----------
    usage : what each queue holds now, in the unit the scheduler compares (see `usage_of`).
    container : the size of one container of each starved leaf, same unit, by queue index.
    """
    lifted: dict[int, float] = {}
    for leaf in starved:
        for queue in tree.path(leaf):
            lifted[queue] = max(lifted.get(queue, 0.0), container[leaf])
    queues = [snapshot.queues[name] for name in tree.names]
    for above in {tree.parent[queue] for queue in lifted}:
        siblings = tree.children[above]
        # A demanding sibling that holds nothing has the smallest key there is, whatever its weight: it goes first once.
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
        # No room above: lower the others instead.
        excess = max(wanted.values()) / GRID_MAX
        if excess > 1.0:
            wanted = {q: weight / excess for q, weight in wanted.items()}
            for q in siblings:
                if q not in lifted:
                    weights[q] = grid_weight(weights[q] / excess)
        for q, weight in wanted.items():
            # Upwards: rounding must not take the lead away again. Never below what the filling gave it.
            weights[q] = max(weights[q], min(grid_weight(weight * (1 + 1 / _SCALE)), GRID_MAX))


def usage_of(allocated: Resource, capacity: Resource, dominant: bool) -> float:
    """What the Fair Scheduler divides by the weight: MiB under ``fair``, the dominant share under ``drf``."""
    return allocated.dominant_share(capacity) if dominant else float(allocated.memory_mb)


def named(tree: Tree, weights: Sequence[float]) -> Mapping[str, float]:
    """Queue path -> weight, without the root (whose weight nobody reads)."""
    return dict(zip(tree.names[1:], weights[1:], strict=True))
