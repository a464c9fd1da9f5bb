"""Water-filling: how much each queue would have to get over a horizon for the accumulated resources to level out.

Pure arithmetic on sequences of numbers, the same for floats (from outside) and for fractions (on paper). No queues,
no weights of the Fair Scheduler: those are in harness.policies.weights. The law and its horizon:
docs/decisions/horizon.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", float, Fraction)


def water_fill(
    used: Sequence[Number], entitlements: Sequence[Number], capacity: Number, horizon_s: Number | float
) -> list[Number]:
    """The x that maximises the smallest (u_i + H x_i) / w_i subject to 0 <= x_i <= R and sum x_i = R.

    Parameters
    ----------
    used : u_i, accumulated resources, resource-seconds (or seconds of the cluster).
    entitlements : w_i > 0, in any unit.
    capacity : R > 0, in resource units.
    horizon_s : H >= 0. 0 is LTRF itself: all to the smallest u_i / w_i (ties by entitlement); infinity is memoryless.

    Returns
    -------
    x_i, in resource units. The level is ``lambda`` with x_i = max(lambda w_i - u_i, 0) / H; x_i <= R follows from the
    sum. O(n log n).
    """
    n = len(used)
    if n == 1:
        return [capacity]
    if n == 0:
        return []
    if horizon_s == math.inf:
        total = sum(entitlements[1:], entitlements[0])
        return [capacity * w / total for w in entitlements]
    keys = [u / w for u, w in zip(used, entitlements, strict=True)]
    order = sorted(range(n), key=keys.__getitem__)
    lowest = keys[order[0]]
    if horizon_s == 0:
        first = [i for i in order if keys[i] == lowest]
        total = sum((entitlements[i] for i in first[1:]), entitlements[first[0]])
        x = [capacity * 0] * n
        for i in first:
            x[i] = capacity * entitlements[i] / total
        return x
    # Everything is measured from the lowest key: the level is then of the size of H R, whatever has been used before.
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
