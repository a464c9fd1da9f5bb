"""Keep weights within a ratio of the entitlements, so that no queue starves another. No I/O.

The weights that a policy plans may differ by a factor of a million. With the bound M, the weight ratio of two siblings
differs from their entitlement ratio by at most the factor M. While two queues with equal entitlements both wait, the
share of one is then at most M times the share of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.base.sums import left_fold_sum
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.weights import grid_weight

#: Rounding to the weight grid changes a weight by at most this fraction.
ROUNDING = 2.0**-12


def bounded(weights: Mapping[str, float], snapshot: Snapshot, max_ratio: float) -> dict[str, float]:
    """Scale a plan's weights, per sibling group, to the entitlements and limit them to `max_ratio` times those.

    With r = weight / entitlement, the r of siblings lie within a factor of `max_ratio`, and each weight lies within
    [entitlement / max_ratio, entitlement x max_ratio]. The waiting queue with the highest r keeps it, queues far below
    are raised to the bound, and an idle queue above all waiting ones is lowered to the highest waiting r. If a plan
    omits some siblings, these keep their entitlement (r = 1), and the others are bounded around it. Equal r give the
    entitlements themselves.

    Raises ValueError for a ratio below 1.
    """
    if not 1.0 <= max_ratio < math.inf:
        raise ValueError(f"max_ratio is {max_ratio:g}, not a finite number of at least 1")
    level: dict[str | None, list[QueueView]] = {}
    for queue in snapshot.queues.values():
        level.setdefault(queue.parent, []).append(queue)
    found: dict[str, float] = {}
    for siblings in level.values():
        named = [queue for queue in siblings if queue.name in weights]
        ratios = {queue.name: weights[queue.name] / entitlement(queue) for queue in named}
        if ratios:
            found.update(_level(siblings, named, ratios, max_ratio))
    return {name: found[name] for name in weights if name in found}


def _level(
    siblings: list[QueueView], named: list[QueueView], ratios: dict[str, float], max_ratio: float
) -> dict[str, float]:
    inside = max(max_ratio * (1.0 - 2 * ROUNDING), 1.0)
    waiting = [ratios[q.name] for q in named if q.pending_containers > 0 or q.demand != q.allocated]
    top = max(waiting or ratios.values())
    if len(named) < len(siblings):
        top = max(top, 1.0)
        low = top / inside
        if low > 1.0:
            top, low = inside, 1.0
        scale = 1.0
    else:
        low = top / inside
        kept = {name: min(max(ratio, low), top) for name, ratio in ratios.items()}
        total = left_fold_sum(entitlement(q) for q in named)
        scale = total / left_fold_sum(kept[q.name] * entitlement(q) for q in named)
    found = {q.name: min(max(ratios[q.name], low), top) * scale * entitlement(q) for q in named}
    # Entitlements near the ends of the weight range are scaled by one factor, which preserves their ratios.
    over, under = max(found.values()) / WEIGHT_MAX, WEIGHT_MIN / min(found.values())
    if over > 1.0:
        found = {name: weight / over for name, weight in found.items()}
    elif under > 1.0:
        found = {name: weight * under for name, weight in found.items()}
    return {q.name: _rounded(found[q.name], entitlement(q)) for q in named}


def _rounded(weight: float, entitlement: float) -> float:
    """Round to the weight grid; a weight within rounding of the entitlement becomes the entitlement."""
    return entitlement if abs(weight - entitlement) <= entitlement * ROUNDING else grid_weight(weight)


def entitlement(queue: QueueView) -> float:
    """Return a queue's entitlement; 1, the weight of a queue without one, if it is outside the range of weights."""
    return queue.weight if WEIGHT_MIN <= queue.weight <= WEIGHT_MAX else 1.0
