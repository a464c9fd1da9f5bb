"""Compiled water-filling of a whole tree: the functions of `harness.policies.weights` on two tables of numbers.

Sums are computed in the same order, so the results are equal to the last bit (tests/policies/test_weights_kernel.py).
The kernels require floats and a horizon 0 < H < infinity; the plain functions cover other horizons and fractions.
All data are in a table of integers N and a table of reals T, because functions of few arrays compile fastest.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from harness.base.machine_code import kernel_options
from harness.model.snapshot import BACKLOG, LAST_START, PENDING_MB, PENDING_N, PENDING_VC, TASK_MS, TASKS
from harness.policies.weighing import WeighingSettings

#: The two tables.
Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

#: Rows of the integer table, with one column per queue plus one: parent; offset of its children; all children, family
#: by family; leaves; queues with children from the root down; then scratch rows. The last column of the rows of leaves
#: and of queues with children is their number.
PARENT, CHILDREN_AT, CHILD, LEAF, ABOVE = range(5)
_SHORT, _KEPT, _ORDER, _SPARE, _ENDS, INTEGERS = range(5, 11)
#: Rows of the table of reals, with one column per queue: entitlement w_i; the queue's fraction of the cluster, level by
#: level; accumulated resources u_i; demand; 1 if the queue waits, else 0; the shares of the flat and of the level-wise
#: computation; then scratch rows, and the row of the weights.
ENTITLEMENT, SHARE, USED, DEMAND, WAITING, FLAT, LEVELS = range(7)
_X, _RATIO, _COMPETES, _ENOUGH, _FILLED, _FLOW, _BURST, _CROWDED, _A, _B, _C, _D, _E, _F, WEIGHTS, REALS = range(7, 23)

_MANY, _MOST_FOR_IDLE = 16, 100
_LEVEL_SUM, _BITS, _SCALE = 1000.0, 12, 4096.0
_OPTIONS = kernel_options(error_model="numpy", no_cfunc_wrapper=True)


@njit(**_OPTIONS)
def _sort(N: Integers, T: Reals, order: int, key: int, tie: int, n: int) -> None:
    """Sort the first n entries k of row ``order`` of N by T[key, k], then by T[tie, k]; the sort is stable."""
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                take = j
                if i < middle:
                    a = N[order, i]
                    take = i
                    if j < high:
                        b = N[order, j]
                        if T[key, b] < T[key, a] or (T[key, b] == T[key, a] and T[tie, b] < T[tie, a]):
                            take = j
                N[_SPARE, k] = N[order, take]
                if i < middle and take == i:
                    i += 1
                else:
                    j += 1
        for k in range(n):
            N[order, k] = N[_SPARE, k]
        width *= 2


@njit(**_OPTIONS)
def _water_fill(N: Integers, T: Reals, row: int, at: int, n: int, capacity: float, horizon: float) -> None:
    """Apply `filling.water_fill` to the n queues in row ``row`` of N from position ``at``; store x in row _X of T."""
    if n == 1:
        T[_X, N[row, at]] = capacity
        return
    for k in range(n):
        q = N[row, at + k]
        T[_A, k], T[_B, k], N[_ORDER, k] = T[USED, q] / T[ENTITLEMENT, q], 0.0, k
    _sort(N, T, _ORDER, _A, _B, n)
    lowest = T[_A, N[_ORDER, 0]]
    pool = capacity * horizon
    weight_sum = T[ENTITLEMENT, N[row, at + N[_ORDER, 0]]]
    deficit_sum = 0.0
    level = pool / weight_sum
    for position in range(1, n):
        k = N[_ORDER, position]
        above = T[_A, k] - lowest
        if above >= level:
            break
        weight = T[ENTITLEMENT, N[row, at + k]]
        weight_sum = weight_sum + weight
        deficit_sum = deficit_sum + weight * above
        level = (pool + deficit_sum) / weight_sum
    for k in range(n):
        q = N[row, at + k]
        above = T[_A, k] - lowest
        T[_X, q] = (level - above) * T[ENTITLEMENT, q] / horizon if above < level else 0.0


@njit(**_OPTIONS)
def _satisfied(N: Integers, T: Reals, n: int, amount: float, horizon: float) -> None:
    """Apply `filling.satisfied` to the n queues in row _SHORT; set T[_ENOUGH, k] to 1.0 if the k-th has enough."""
    for k in range(n):
        q = N[_SHORT, k]
        T[_A, k] = T[USED, q] / T[ENTITLEMENT, q]
        T[_C, k] = (T[USED, q] + horizon * T[DEMAND, q]) / T[ENTITLEMENT, q]
        T[_B, k] = T[_ENOUGH, k] = 0.0
        N[_ORDER, k] = N[_ENDS, k] = k
    _sort(N, T, _ORDER, _A, _B, n)
    _sort(N, T, _ENDS, _C, _B, n)
    pool = amount * horizon
    level, slope, filled = min(T[_A, N[_ORDER, 0]], T[_C, N[_ENDS, 0]]), 0.0, 0.0
    i = j = 0
    while j < n:
        begins = i < n and T[_A, N[_ORDER, i]] <= T[_C, N[_ENDS, j]]
        k = N[_ORDER, i] if begins else N[_ENDS, j]
        at = T[_A, k] if begins else T[_C, k]
        filled += slope * (at - level)
        if filled > pool:
            return
        level = at
        weight = T[ENTITLEMENT, N[_SHORT, k]]
        if begins:
            slope += weight
            i += 1
        else:
            slope -= weight
            T[_ENOUGH, k] = 1.0
            j += 1


@njit(**_OPTIONS)
def _ratios(N: Integers, T: Reals, row: int, at: int, n: int, m: int, room: float, horizon: float) -> None:
    """Compute row _RATIO of the queues that do not compete, relative to the m that do (`filling.Joining`)."""
    for k in range(m):
        q = N[_SHORT, k]
        T[_A, k], T[_B, k], N[_ORDER, k] = T[USED, q] / T[ENTITLEMENT, q], T[ENTITLEMENT, q], k
    _sort(N, T, _ORDER, _A, _B, m)
    lowest = T[_A, N[_ORDER, 0]]
    pool = room * horizon
    weight_sum = deficit_sum = 0.0
    for position in range(m):
        k = N[_ORDER, position]
        above = T[_A, k] - lowest
        T[_C, position] = above
        T[_D, position] = above * weight_sum - deficit_sum
        weight_sum += T[_B, k]
        deficit_sum += T[_B, k] * above
        T[_E, position], T[_F, position] = weight_sum, deficit_sum
    for k in range(n):
        q = N[row, at + k]
        if T[_COMPETES, q] > 0.0:
            continue
        weight = T[ENTITLEMENT, q]
        own = T[USED, q] / weight - lowest
        low, high = 0, m
        while low < high:
            middle = (low + high) // 2
            if T[_D, middle] + weight * max(T[_C, middle] - own, 0.0) >= pool:
                high = middle
            else:
                low = middle + 1
        part = 1.0
        if low > 0:
            level = (pool + T[_F, low - 1] + weight * own) / (T[_E, low - 1] + weight)
            part = min(max(weight * (level - own) / pool, 0.0), 1.0)
        T[_RATIO, q] = min(part / (1 - part), _MOST_FOR_IDLE) if part < 1 else _MOST_FOR_IDLE


@njit(**_OPTIONS)
def _fill(N: Integers, T: Reals, row: int, at: int, n: int, room: float, horizon: float) -> float:
    """Compute `weights.fill`: store x of the competing queues and the ratio of the others; return the sum of x."""
    idle = 0.0
    m = 0
    for k in range(n):
        q = N[row, at + k]
        T[_COMPETES, q] = 0.0
        if T[WAITING, q] > 0.0:
            N[_SHORT, m] = q
            m += 1
        else:
            idle += T[DEMAND, q]
    left = room - idle
    least = room / _MOST_FOR_IDLE
    swept = m <= _MANY
    while m > 0:
        if swept:
            left = max(left, least)
            _water_fill(N, T, _SHORT, 0, m, left, horizon)
            for k in range(m):
                q = N[_SHORT, k]
                T[_ENOUGH, k] = 1.0 if T[DEMAND, q] <= T[_X, q] else 0.0
        else:
            _satisfied(N, T, m, left, horizon)
        taken = 0.0
        still = 0
        for k in range(m):
            q = N[_SHORT, k]
            if T[_ENOUGH, k] > 0.0:
                taken += T[DEMAND, q]
            else:
                N[_KEPT, still] = q
                still += 1
        if swept and still == m:
            break
        if swept or left - taken >= least:
            left -= taken
            for k in range(still):
                N[_SHORT, k] = N[_KEPT, k]
            m = still
        swept = True
    if m == 0:
        for k in range(n):
            N[_SHORT, k] = N[row, at + k]
        m = n
        _water_fill(N, T, _SHORT, 0, n, room, horizon)
    total = 0.0
    for k in range(m):
        q = N[_SHORT, k]
        T[_COMPETES, q] = 1.0
        total += T[_X, q]
    if m < n:
        _ratios(N, T, row, at, n, m, room, horizon)
    return total


@njit(**_OPTIONS)
def _sum_up(N: Integers, T: Reals, row: int, total: int, n: int) -> None:
    # Each queue's sum over its subtree; parents precede their children.
    for q in range(n):
        T[total, q] = T[row, q]
    for q in range(n - 1, 0, -1):
        T[total, N[PARENT, q]] += T[total, q]


@njit(**_OPTIONS)
def _flat(N: Integers, T: Reals, n: int, capacity: float, horizon: float) -> bool:
    """Compute `weights.flat_shares`; return whether a parent's share is 0, so that the fractions below it are NaN."""
    leaves = N[LEAF, n]
    total = _fill(N, T, LEAF, 0, leaves, capacity, horizon)
    for q in range(n):
        T[_FILLED, q] = T[_CROWDED, q] = T[_BURST, q] = 0.0
    ratios = 0
    for k in range(leaves):
        q = N[LEAF, k]
        if T[_COMPETES, q] > 0.0:
            T[_FILLED, q], T[_CROWDED, q] = T[_X, q], 1.0
        else:
            T[_FILLED, q], T[_BURST, q] = min(T[DEMAND, q], capacity), T[_RATIO, q] * total
            ratios += 1
    _sum_up(N, T, _FILLED, _FLOW, n)
    _sum_up(N, T, _BURST, _ENOUGH, n)
    _sum_up(N, T, _CROWDED, _X, n)
    T[FLAT, 0] = 1.0
    unknown = False
    for q in range(1, n):
        above = T[_FLOW, N[PARENT, q]]
        if above <= 0:
            T[FLAT, q] = math.nan
            unknown = True
        elif ratios == 0 or T[_X, q] > 0.0:
            T[FLAT, q] = T[_FLOW, q] / above
        else:
            T[FLAT, q] = min(max(T[_FLOW, q], T[_ENOUGH, q]) / above, _MOST_FOR_IDLE)
    return unknown


@njit(**_OPTIONS)
def _levels(N: Integers, T: Reals, n: int, capacity: float, horizon: float) -> None:
    """Compute `weights.level_shares`, the shares of all queues level by level."""
    for q in range(n):
        T[LEVELS, q], T[_FILLED, q] = 1.0, capacity
    for k in range(N[ABOVE, n]):
        above = N[ABOVE, k]
        at = N[CHILDREN_AT, above]
        many = N[CHILDREN_AT, above + 1] - at
        if many == 1:
            T[_FILLED, N[CHILD, at]] = T[_FILLED, above]
            continue
        room = max(T[_FILLED, above], T[SHARE, above] * capacity)
        total = _fill(N, T, CHILD, at, many, room, horizon)
        own = 0.0
        if total <= 0:
            for i in range(at, at + many):
                own += T[ENTITLEMENT, N[CHILD, i]]
        for i in range(at, at + many):
            q = N[CHILD, i]
            if total <= 0:
                T[_FILLED, q] = 0.0
                T[LEVELS, q] = T[ENTITLEMENT, q] / own if own > 0 else 1 / many
            elif T[_COMPETES, q] > 0.0:
                T[_FILLED, q] = T[_X, q]
                T[LEVELS, q] = T[_X, q] / total
            else:
                ratio = T[_RATIO, q]
                T[_FILLED, q] = room * ratio / (1 + ratio)
                T[LEVELS, q] = ratio


@njit(**_OPTIONS)
def parts_of_tree(N: Integers, T: Reals, capacity: float, horizon: float, affinity: float) -> None:
    """Compute `weights.long_term_shares` and store them in the row LEVELS of the reals."""
    n = N.shape[1] - 1
    flat_only = False
    if affinity < 1:
        flat_only = not _flat(N, T, n, capacity, horizon) and affinity <= 0
    if not flat_only:
        _levels(N, T, n, capacity, horizon)
    if affinity < 1:
        for q in range(n):
            flat = T[FLAT, q]
            if flat_only or (affinity <= 0 and flat == flat):
                T[LEVELS, q] = flat
            elif flat == flat:
                T[LEVELS, q] = affinity * T[LEVELS, q] + (1 - affinity) * flat


@njit(**_OPTIONS)
def _waits_since_ms(figures: Integers, row: int) -> float:
    """Return the time since which a leaf waits, ms (`longterm._begins_ms`)."""
    backlog, last = figures[row, BACKLOG], figures[row, LAST_START]
    if backlog < 0 and (figures[row, PENDING_N] <= 0 or last < 0):
        return math.inf
    return float(max(backlog, last))


@njit(**_OPTIONS)
def weigh(
    N: Integers,
    T: Reals,
    figures: Integers,
    rows: Integers,
    columns: Reals,
    before: Reals,
    settings: WeighingSettings,
    period_s: float,
    since_ms: float,
) -> int:
    """Compute the weights of `LongTermPolicy.plan` and store them in the row WEIGHTS.

    Parameters
    ----------
    N, T
        The tree as tables.
    figures : array of shape (rows, columns)
        The table of `harness.model.snapshot.Figures`.
    rows : array of shape (queues,)
        Row of each queue in ``figures``.
    columns : array of shape (3, leaves)
        A ledger's three parts of the leaves' accumulated resources.
    before : array of shape (queues,)
        The previous weights.
    settings
        What does not change from one call to the next.
    period_s
        Smallest horizon, seconds.
    since_ms
        Time in ms. The function has no result if a leaf may have waited since then.

    Returns
    -------
    int
        0 if the weights equal ``before``, 1 if they differ, 2 if there is no result.
    """
    n = N.shape[1] - 1
    for q in range(n):
        row = rows[q]
        T[DEMAND, q] = float(figures[row, settings.held] + figures[row, settings.pending])
        T[WAITING, q] = 1.0 if figures[row, PENDING_MB] > 0 or figures[row, PENDING_VC] > 0 else 0.0
        T[USED, q] = 0.0
    total = 0.0
    known = 0
    for k in range(N[LEAF, n]):
        q = N[LEAF, k]
        row = rows[q]
        if _waits_since_ms(figures, row) <= since_ms:
            return 2
        used = columns[0, k] + columns[1, k] + columns[2, k]
        T[USED, q] = used if 0.0 <= used < math.inf else 0.0
        if figures[row, TASKS] != 0:
            mean = figures[row, TASK_MS] / (1000.0 * figures[row, TASKS])
            if 0.0 < mean < settings.longest_task_s:
                total += mean
                known += 1
    for q in range(n - 1, 0, -1):
        T[USED, N[PARENT, q]] += T[USED, q]
    horizon_s = settings.horizon_s
    if horizon_s < 0.0:
        task_s = total / known if known > 0 else settings.first_task_s
        horizon_s = max(settings.horizon_tasks * task_s, period_s)
    parts_of_tree(N, T, settings.capacity, horizon_s, settings.affinity)
    T[WEIGHTS, 0] = 1.0
    for q in range(1, n):
        wanted = _LEVEL_SUM * T[LEVELS, q]
        if not wanted > settings.lowest:
            T[WEIGHTS, q] = settings.lowest
        elif wanted >= settings.highest:
            T[WEIGHTS, q] = settings.highest
        else:
            mantissa, exponent = math.frexp(wanted)
            T[WEIGHTS, q] = math.ldexp(np.rint(mantissa * _SCALE), exponent - _BITS)
    for q in range(1, n):
        if T[WEIGHTS, q] != before[q]:
            return 1
    return 0
