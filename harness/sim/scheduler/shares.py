"""Fair shares of siblings, as Hadoop 3.4.2's ComputeFairShares computes them, in compiled code.

The one definition in the project: the engine's updates and ``yarnfair shares`` call it. One resource at a time, over
parallel arrays; how a queue tree is walked is not known here. Types are Java's: weights are floats widened to doubles,
products and comparisons are doubles, shares are cut to longs.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

LONG_MAX = 2**63 - 1
_TWO_63 = 2.0**63

#: `compute_shares` answers this when Hadoop's loop would never end (every weight that could take more is NaN).
HANGS = -1
DONE = 0


@njit(cache=True, inline="always")
def share_at(weight: float, ratio: float, min_share: int, max_share: int) -> int:
    """ComputeFairShares.computeShare: (long) min(max(weight x ratio, min), max), NaN giving 0."""
    share = float(weight) * ratio
    if share != share:
        return 0
    low = float(min_share)
    if share < low:
        share = low
    high = float(max_share)
    if share > high:
        share = high
    # Java's cast saturates.
    if share >= _TWO_63:
        return LONG_MAX
    return int(share)


@njit(cache=True, inline="always")
def safe_add(a: int, b: int) -> int:
    """Sum of two longs that are not negative; beyond the largest long it is that."""
    # Compared before adding: compiled code may assume that a sum does not overflow.
    if a > LONG_MAX - b:
        return LONG_MAX
    return a + b


@njit(cache=True)
def used_at(
    ratio: float,
    weight: NDArray[np.float32],
    min_share: NDArray[np.int64],
    max_share: NDArray[np.int64],
    fixed: NDArray[np.bool_],
    count: int,
) -> int:
    """Resources used by all schedulables that are not fixed, at this ratio of weight to resource."""
    taken = 0
    for i in range(count):
        if not fixed[i]:
            taken = safe_add(taken, share_at(weight[i], ratio, min_share[i], max_share[i]))
            if taken == LONG_MAX:
                break
    return taken


@njit(cache=True)
def compute_shares(
    total: int,
    weight: NDArray[np.float32],
    min_share: NDArray[np.int64],
    max_share: NDArray[np.int64],
    active: NDArray[np.bool_],
    share: NDArray[np.int64],
    fixed: NDArray[np.bool_],
    count: int,
) -> int:
    """Fair shares of the first `count` schedulables below one parent, of one resource.

    Parameters
    ----------
    total : the parent's share of the resource (memory in MiB, or vcores).
    weight, min_share, max_share : of each schedulable; max_share as FSQueue.getMaxShare gives it.
    active : False for a queue without a runnable application, whose instantaneous share is 0. For steady shares and
        for applications, all True.
    share : out, in the unit of `total`. It is written in full, but for HANGS.
    fixed : scratch space of the same length.

    Returns DONE; or HANGS where the ResourceManager would loop for ever under its lock (shares are then as they
    were, but for fixed ones).

    Source: ComputeFairShares.computeSharesInternal: shares that are fixed first, then the ratio R by doubling from 1
    and 25 bisections, the right bound taken.
    """
    taken = 0
    open_count = 0
    for i in range(count):
        value = -1
        if max_share[i] <= 0 or not active[i]:
            value = 0
        elif weight[i] <= np.float32(0.0):
            value = min_share[i] if min_share[i] > 0 else 0
        if value < 0:
            fixed[i] = False
            open_count += 1
        else:
            fixed[i] = True
            share[i] = value
            taken = safe_add(taken, value)
    if open_count == 0:
        return DONE
    total_max = 0
    for i in range(count):
        if not fixed[i]:
            total_max = safe_add(max_share[i], total_max)
            if total_max == LONG_MAX:
                break
    rest = total - taken
    if rest < 0:
        rest = 0
    if total_max < rest:
        rest = total_max
    ratio_max = 1.0
    while used_at(ratio_max, weight, min_share, max_share, fixed, count) < rest:
        if ratio_max == np.inf:
            return HANGS
        ratio_max *= 2.0
    left, right = 0.0, ratio_max
    for _ in range(25):
        middle = (left + right) / 2.0
        used = used_at(middle, weight, min_share, max_share, fixed, count)
        if used == rest:
            right = middle
            break
        if used < rest:
            left = middle
        else:
            right = middle
    for i in range(count):
        if not fixed[i]:
            share[i] = share_at(weight[i], right, min_share[i], max_share[i])
    return DONE
