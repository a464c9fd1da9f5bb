"""Water-filling: the shares over a horizon that would equalise the queues' accumulated resources.

Pure arithmetic on sequences of numbers, the same for floats (from outside) and for fractions (on paper). Queues and
Fair Scheduler weights are in harness.policies.weights. The law and its horizon: docs/decisions/horizon.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from harness.base.sums import left_fold_sum

Number = TypeVar("Number", float, Fraction)


def water_fill(
    used: Sequence[Number], entitlements: Sequence[Number], capacity: Number, horizon_s: Number | float
) -> list[Number]:
    """Return the x that maximises the smallest (u_i + H x_i) / w_i subject to 0 <= x_i <= R and sum x_i = R.

    Parameters
    ----------
    used : Sequence[Number]
        u_i, accumulated resources in resource-seconds (or seconds of the cluster).
    entitlements : Sequence[Number]
        w_i > 0, in any unit.
    capacity : Number
        R > 0, in resource units.
    horizon_s : Number or float
        H >= 0. With 0 (LTRF itself), everything goes to the smallest u_i / w_i (ties are divided by entitlement); with
        infinity, the result is memoryless.

    Returns
    -------
    list[Number]
        x_i, in resource units: x_i = max(lambda w_i - u_i, 0) / H, where the level lambda is such that the sum is R.

    Notes
    -----
    Takes O(n log n).
    """
    n = len(used)
    if n == 1:
        return [capacity]
    if n == 0:
        return []
    if horizon_s == math.inf:
        total = left_fold_sum(entitlements[1:], entitlements[0])
        return [capacity * w / total for w in entitlements]
    keys = [u / w for u, w in zip(used, entitlements, strict=True)]
    order = sorted(range(n), key=keys.__getitem__)
    lowest = keys[order[0]]
    if horizon_s == 0:
        first = [i for i in order if keys[i] == lowest]
        total = left_fold_sum((entitlements[i] for i in first[1:]), entitlements[first[0]])
        x = [capacity * 0] * n
        for i in first:
            x[i] = capacity * entitlements[i] / total
        return x
    # Levels are relative to the lowest key u / w, so they have the magnitude of H R, however large the past usage.
    pool = capacity * horizon_s  # type: ignore[operator]
    weight_sum = entitlements[order[0]]
    deficit_sum = weight_sum * 0
    level = pool / weight_sum
    for position in range(1, n):
        i = order[position]
        above = keys[i] - lowest
        if above >= level:
            break
        weight_sum = weight_sum + entitlements[i]
        deficit_sum = deficit_sum + entitlements[i] * above
        level = (pool + deficit_sum) / weight_sum
    return [
        (level - (key - lowest)) * w / horizon_s if key - lowest < level else capacity * 0  # type: ignore[operator,misc]
        for key, w in zip(keys, entitlements, strict=True)
    ]


def satisfied(
    used: Sequence[float], entitlements: Sequence[float], demands: Sequence[float], amount: float, horizon_s: float
) -> list[bool]:
    """Return which queues get their whole demand if `amount` is water-filled with the demands as upper bounds.

    The result equals that of repeated filling, each time without the queues whose demand is at most their x. It takes
    O(n log n): one sweep of the level over the points where a queue begins to be filled (u / w) and where it reaches
    its demand ((u + H d) / w).
    """
    n = len(used)
    if not 0 < horizon_s < math.inf:
        # H = 0: fill one queue after the other by u / w. Infinite H: ignore u, and raise a common level of x / w.
        keys = [(u if horizon_s == 0 else d) / w for u, d, w in zip(used, demands, entitlements, strict=True)]
        left, weight = amount, math.fsum(entitlements)
        enough = [False] * n
        for i in sorted(range(n), key=keys.__getitem__):
            least = left if horizon_s == 0 else left * entitlements[i] / weight
            if demands[i] > least:
                break
            enough[i] = True
            left, weight = left - demands[i], weight - entitlements[i]
        return enough
    begin = [u / w for u, w in zip(used, entitlements, strict=True)]
    full = [(u + horizon_s * d) / w for u, d, w in zip(used, demands, entitlements, strict=True)]
    points = begin + full
    enough = [False] * n
    level, slope, filled, pool = min(points), 0.0, 0.0, amount * horizon_s
    # The sort is stable: at the same level, the points where queues begin come before those where they are full.
    for point in sorted(range(2 * n), key=points.__getitem__):
        at = points[point]
        filled += slope * (at - level)
        if filled > pool:
            break
        level = at
        if point < n:
            slope += entitlements[point]
        else:
            slope -= entitlements[point - n]
            enough[point - n] = True
    return enough


def bounded_fill(
    used: Sequence[float],
    entitlements: Sequence[float],
    least: Sequence[float],
    most: Sequence[float],
    amount: float,
    horizon_s: float,
) -> list[float]:
    """Water-fill `amount` with least_i <= x_i <= most_i, up to the highest level that `amount` reaches, O(n log n).

    Parameters
    ----------
    used, entitlements, horizon_s
        See `water_fill`.
    least, most : Sequence[float]
        Bounds, in resource units: 0 <= least_i <= most_i, with sum least <= amount <= sum most.
    amount : float
        The amount to divide, in resource units.

    Returns
    -------
    list[float]
        x_i = min(max(least_i, (level w_i - u_i) / H), most_i). With H = 0, the queues are filled one after the other by
        u / w; with infinite H, u is ignored.
    """
    n = len(used)
    x = list(least)
    left = amount - math.fsum(least)
    if horizon_s == 0:
        for i in sorted(range(n), key=lambda i: used[i] / entitlements[i]):
            given = min(most[i] - x[i], max(left, 0.0))
            x[i] += given
            left -= given
        return x
    known, span = ([0.0] * n, 1.0) if horizon_s == math.inf else (used, horizon_s)
    points = []
    for i in range(n):
        points.append(((known[i] + span * least[i]) / entitlements[i], entitlements[i]))
        points.append(((known[i] + span * most[i]) / entitlements[i], -entitlements[i]))
    points.sort()
    level, slope, pool = (points[0][0] if points else 0.0), 0.0, left * span
    for at, change in points:
        if slope > 0 and slope * (at - level) >= pool:
            level += max(pool, 0.0) / slope
            break
        pool -= slope * (at - level)
        level = at
        slope += change
    return [
        min(max(low, (level * w - u) / span), high)
        for u, w, low, high in zip(known, entitlements, least, most, strict=True)
    ]


class Joining:
    """Compute the fraction of R (0 to 1) that one more queue would get if it joined a set of queues.

    The result of `part` equals the last element of ``water_fill([*used, u], [*entitlements, w], ...) / capacity``. It
    takes O(log n) after a preparation of O(n log n).
    """

    def __init__(self, used: Sequence[float], entitlements: Sequence[float], capacity: float, horizon_s: float) -> None:
        self._used, self._entitlements, self._capacity, self._horizon_s = used, entitlements, capacity, horizon_s
        if not 0 < horizon_s < math.inf:
            return
        order = sorted((u / w, w) for u, w in zip(used, entitlements, strict=True))
        self._lowest = order[0][0]
        self._pool = capacity * horizon_s
        #: Keys relative to the lowest, ascending; for each key, the amount that lifts all lower queues to it, and the
        #: sums of weight and of weight x key over the queues before it.
        self._keys: list[float] = []
        self._cost: list[float] = []
        self._weights: list[float] = []
        self._deficits: list[float] = []
        weights = deficits = 0.0
        for key, weight in order:
            above = key - self._lowest
            self._keys.append(above)
            self._cost.append(above * weights - deficits)
            weights += weight
            deficits += weight * above
            self._weights.append(weights)
            self._deficits.append(deficits)

    def part(self, used: float, entitlement: float) -> float:
        """Return the fraction of R that a queue with this usage and entitlement gets if it joins."""
        if not 0 < self._horizon_s < math.inf:
            with_it = [*self._used, used], [*self._entitlements, entitlement]
            return water_fill(*with_it, self._capacity, self._horizon_s)[-1] / self._capacity
        own = used / entitlement - self._lowest
        pool = self._pool
        # Count the queues below the level: the ones whose key is reached with less than the pool if the joiner is
        # filled, too.
        keys, cost = self._keys, self._cost
        below, high = 0, len(keys)
        while below < high:  # `bisect_left` with the key computed inline, which is faster
            middle = (below + high) // 2
            above = keys[middle] - own
            if cost[middle] + (entitlement * above if above > 0.0 else 0.0) >= pool:
                high = middle
            else:
                below = middle + 1
        if below == 0:
            return 1.0
        level = (pool + self._deficits[below - 1] + entitlement * own) / (self._weights[below - 1] + entitlement)
        return min(max(entitlement * (level - own) / pool, 0.0), 1.0)
