"""Weights within a ratio of the entitlements, so that no queue is at another's mercy. Pure.

A policy's weights say who gets the next container, and may differ by a million to one. Bounded by M, no queue's weight
is more than M times as much against a sibling's as the entitlements say, whatever the policy wants: of two queues with
equal entitlements the one has at most M times the other's usage while both wait.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.base.sums import left_fold_sum
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.weights import grid_weight

#: Rounding to the grid of weights moves each by at most this part.
_ROUNDING = 2.0**-12


def bounded(weights: Mapping[str, float], snapshot: Snapshot, max_ratio: float) -> dict[str, float]:
    """The weights of a plan, on the entitlements' own scale and within `max_ratio` of them, siblings by siblings.

    With r = weight / entitlement, the siblings' r lie within a factor of `max_ratio`, and each weight within
    [entitlement / max_ratio, entitlement x max_ratio]. Whoever waits for containers and is put first keeps its place;
    those far behind are raised to the bound; an idle queue above all that wait is put beside the first. Where a plan
    leaves some siblings out, these keep their entitlement, r = 1, and the others are bounded around it. Equal r mean
    the entitlements themselves.

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
        ratios = {queue.name: weights[queue.name] / _entitlement(queue) for queue in named}
        if ratios:
            found.update(_level(siblings, named, ratios, max_ratio))
    return {name: found[name] for name in weights if name in found}


def _level(
    siblings: list[QueueView], named: list[QueueView], ratios: dict[str, float], max_ratio: float
) -> dict[str, float]:
    inside = max(max_ratio * (1.0 - 2 * _ROUNDING), 1.0)
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
        total = left_fold_sum(_entitlement(q) for q in named)
        scale = total / left_fold_sum(kept[q.name] * _entitlement(q) for q in named)
    found = {q.name: min(max(ratios[q.name], low), top) * scale * _entitlement(q) for q in named}
    # Entitlements near the ends of the range of weights: all by one factor, so that their ratios stay.
    over, under = max(found.values()) / WEIGHT_MAX, WEIGHT_MIN / min(found.values())
    if over > 1.0:
        found = {name: weight / over for name, weight in found.items()}
    elif under > 1.0:
        found = {name: weight * under for name, weight in found.items()}
    return {q.name: _rounded(found[q.name], _entitlement(q)) for q in named}


def _rounded(weight: float, entitlement: float) -> float:
    """On the grid of weights; the entitlement itself where it is that."""
    return entitlement if abs(weight - entitlement) <= entitlement * _ROUNDING else grid_weight(weight)


def _entitlement(queue: QueueView) -> float:
    return queue.weight if WEIGHT_MIN <= queue.weight <= WEIGHT_MAX else 1.0
