"""Depth-first branch and bound over job orders, compiled.

It also runs uncompiled on object arrays (see `kernel`), for times that do not fit into 64 bits.
docs/decisions/ordering-search.md proves the bounds.
"""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core.registry import CPUDispatcher

from harness.base.machine_code import kernel_options
from harness.systems.mrorder.ordering import slot_kernel
from harness.systems.mrorder.ordering.slot_kernel import idle_until, last_start, run_reduces, start


class Instance(NamedTuple):
    """The input of the search: jobs, slots and objective. Times are integers in one unit.

    Parameters
    ----------
    jobs
        Four rows with one column per job: number of maps, time of one map, number of reduces, time of one reduce.
    slots
        The numbers of map slots and of reduce slots.
    by
        Four orders of all jobs: Johnson's rule, own reduce time ``tails`` (longest first), map work (least first),
        reduce work (least first).
    tails
        For each job, the time of its reduces if they use all reduce slots.
    twins
        For each job, the last job before it in the file that is equal to it, or -1. Of equal jobs the first is placed
        first.
    total
        Whether to minimise the total completion time instead of the makespan.
    far
        A time later than every time of the search.
    """

    jobs: np.ndarray
    slots: np.ndarray
    by: np.ndarray
    tails: np.ndarray
    twins: np.ndarray
    total: bool
    far: int


class Memory(NamedTuple):
    """The working memory of the search. ``depth`` is the number of jobs placed.

    Parameters
    ----------
    order
        The placed jobs in their order.
    used
        Whether each job is placed.
    maps
        Three rows per depth: the time at which each group of map slots becomes free, the number of slots in each group,
        and (first entry of the third row) the number of groups.
    reduces
        Five rows per depth: the same two rows for reduce slots, for each job the number of reduces that have not
        started, for each job its end so far, and (first entry of the fifth row) the number of groups.
    released
        When the maps of each placed job end.
    nexts
        For each job that is not placed, when its maps would end if it were placed next.
    soonest
        For each job that is not placed, its earliest possible end, if no other unplaced job's reduces came before its
        own.
    stack
        Three rows per depth: the jobs to try, their bounds, and (in the third row) their number and the index of the
        next.
    work
        Four rows of scratch space.
    """

    order: np.ndarray
    used: np.ndarray
    maps: np.ndarray
    reduces: np.ndarray
    released: np.ndarray
    nexts: np.ndarray
    soonest: np.ndarray
    stack: np.ndarray
    work: np.ndarray


@njit(**kernel_options())
def place(j, depth, instance, memory):  # type: ignore[no-untyped-def]
    """Put job `j` at position `depth` of `order`, and fill level depth + 1 of `maps` and `reduces`.

    Returns a lower bound on the value of all orders with this beginning; for a complete order this is its value.
    """
    jobs, far = instance.jobs, instance.far
    order, used, maps = memory.order, memory.used, memory.maps
    released, work = memory.released, memory.work
    m, a = jobs[0], jobs[1]
    t, c = maps[depth + 1, 0], maps[depth + 1, 1]
    groups = maps[depth, 2, 0]
    for g in range(groups):
        t[g] = maps[depth, 0, g]
        c[g] = maps[depth, 1, g]
    released[j] = 0
    if m[j] > 0:
        groups, _, last = start(t, c, groups, m[j], a[j], far, work)
        released[j] = last + a[j]
    maps[depth + 1, 2, 0] = groups
    order[depth] = j
    used[j] = 1
    return settle(depth + 1, instance, memory)


@njit(**kernel_options())
def settle(placed, instance, memory):  # type: ignore[no-untyped-def]
    """Run the reduces of the `placed` jobs as far as no later job can interfere, then return the bound of `place`."""
    jobs, slots, tails = instance.jobs, instance.slots, instance.tails
    total, far = instance.total, instance.far
    order, used, maps = memory.order, memory.used, memory.maps
    reduces, released, nexts = memory.reduces, memory.released, memory.nexts
    soonest, work = memory.soonest, memory.work
    n = len(order)
    m, a, r, b = jobs[0], jobs[1], jobs[2], jobs[3]
    t, c = maps[placed, 0], maps[placed, 1]
    groups = maps[placed, 2, 0]
    # `horizon` is the earliest time at which an unplaced job can end its maps, at any position.
    horizon = far
    for j in range(n):
        if used[j] == 0:
            nexts[j] = 0
            if m[j] > 0:
                nexts[j] = last_start(t, c, groups, m[j], a[j], work) + a[j]
            horizon = min(horizon, nexts[j])
    rt, rc, left, ends = reduces[placed, 0], reduces[placed, 1], reduces[placed, 2], reduces[placed, 3]
    r_groups = 1
    if placed == 0:
        rt[0] = 0
        rc[0] = slots[1]
    else:
        before = reduces[placed - 1]
        r_groups = before[4, 0]
        for g in range(r_groups):
            rt[g] = before[0, g]
            rc[g] = before[1, g]
        for k in range(placed - 1):
            left[order[k]] = before[2, order[k]]
            ends[order[k]] = before[3, order[k]]
        j = order[placed - 1]
        left[j] = r[j]
        ends[j] = released[j]
    r_groups = run_reduces(rt, rc, r_groups, order, placed, left, released, ends, b, horizon, far, work)
    if horizon < far:
        # No further reduce can start before the horizon.
        r_groups = idle_until(rt, rc, r_groups, horizon)
        for j in range(n):
            if used[j] == 0:
                soonest[j] = nexts[j]
                if r[j] > 0:
                    alone = last_start(rt, rc, r_groups, r[j], b[j], work) + b[j]
                    soonest[j] = max(nexts[j] + tails[j], alone)
    reduces[placed, 4, 0] = r_groups
    if total:
        return bound_total(placed, horizon, instance, memory)
    return bound_makespan(placed, horizon, instance, memory)


@njit(**kernel_options())
def bound_makespan(placed, horizon, instance, memory):  # type: ignore[no-untyped-def]
    """Return a lower bound on the makespan of all orders that begin with the placed jobs."""
    jobs, slots, by = instance.jobs, instance.slots, instance.by
    tails = instance.tails
    order, used, maps = memory.order, memory.used, memory.maps
    reduces, released, soonest = memory.reduces, memory.released, memory.soonest
    n = len(order)
    m, a, r, b = jobs[0], jobs[1], jobs[2], jobs[3]
    bound = 0
    work_left = 0
    for k in range(placed):
        j = order[k]
        end = reduces[placed, 3, j]
        if reduces[placed, 2, j] > 0:
            work_left += reduces[placed, 2, j] * b[j]
            end = max(end, max(released[j], horizon) - (-reduces[placed, 2, j] // slots[1]) * b[j])
        bound = max(bound, end)
    if placed == n:
        return bound
    reduce_work = 0
    for j in range(n):
        if used[j] == 0:
            reduce_work += r[j] * b[j]
            bound = max(bound, soonest[j])
    # Bound 1: all remaining reduce work.
    if slots[1] > 0:
        free = 0
        for g in range(reduces[placed, 4, 0]):
            free += reduces[placed, 1, g] * reduces[placed, 0, g]
        bound = max(bound, -(-(free + work_left + reduce_work) // slots[1]))
    if slots[0] == 0:
        return bound
    # From the horizon on, map slots can do at most slots * time - base of the unplaced jobs' work by any time.
    t, c = maps[placed, 0], maps[placed, 1]
    groups = maps[placed, 2, 0]
    base = 0
    for g in range(groups):
        base += c[g] * min(t[g], horizon)
    # Bound 2, Lemma 3.3 for the unplaced jobs: Johnson's order of their fluid times.
    if slots[1] > 0:
        done = base
        later = reduce_work
        for k in range(n):
            j = by[0, k]
            if used[j] == 0:
                done += m[j] * a[j]
                path = slots[1] * max(done, horizon * slots[0]) + slots[0] * later
                bound = max(bound, -(-path // (slots[0] * slots[1])))
                later -= r[j] * b[j]
    # Bound 3: each job's own reduces follow its maps. The largest such end is smallest if long reduces come first.
    done = base
    for k in range(n):
        j = by[1, k]
        if used[j] == 0:
            done += m[j] * a[j]
            bound = max(bound, -(-done // slots[0]) + tails[j])
    return bound


@njit(**kernel_options())
def bound_total(placed, horizon, instance, memory):  # type: ignore[no-untyped-def]
    """Return a lower bound on the total completion time of all orders that begin with the placed jobs."""
    jobs, slots, by = instance.jobs, instance.slots, instance.by
    tails = instance.tails
    order, used, maps = memory.order, memory.used, memory.maps
    reduces, released, nexts = memory.reduces, memory.released, memory.nexts
    soonest, work = memory.soonest, memory.work
    n = len(order)
    m, a, r, b = jobs[0], jobs[1], jobs[2], jobs[3]
    ended = 0
    alone = 0
    size = 0
    for k in range(placed):
        j = order[k]
        if reduces[placed, 2, j] > 0:
            end = max(released[j], horizon) - (-reduces[placed, 2, j] // slots[1]) * b[j]
            end = max(end, reduces[placed, 3, j])
            alone += end
            work[0, size] = end
            size += 1
        else:
            ended += reduces[placed, 3, j]
    if placed == n:
        return ended
    # Bound by maps: the k-th job to end its maps cannot do so before the k smallest map works could be done. Its
    # reduces start after that, when a reduce slot is free.
    ready = reduces[placed, 0, 0] if slots[1] > 0 else 0
    for j in range(n):
        if used[j] == 0 and r[j] == 0:
            ready = 0
    t, c = maps[placed, 0], maps[placed, 1]
    groups = maps[placed, 2, 0]
    pending = size
    for j in range(n):
        if used[j] == 0:
            k = size
            while k > pending and work[1, k - 1] > nexts[j]:
                work[1, k] = work[1, k - 1]
                k -= 1
            work[1, k] = nexts[j]
            work[0, size] = soonest[j]
            size += 1
    by_maps = alone
    done = 0
    slots_in = 0
    moment = 0
    g = 0
    at = pending
    for k in range(n):
        j = by[2, k]
        if used[j] == 0:
            done += m[j] * a[j]
            level = 0
            if done > 0:
                while g < groups and (slots_in == 0 or slots_in * t[g] - moment < done):
                    slots_in += c[g]
                    moment += c[g] * t[g]
                    g += 1
                level = -(-(done + moment) // slots_in)
            by_maps += max(level, work[1, at], ready) + tails[j]
            at += 1
    # Bound by reduces: the k-th of the unfinished jobs cannot end before the k smallest remaining works could be done.
    for i in range(1, size):
        end = work[0, i]
        k = i
        while k > 0 and work[0, k - 1] > end:
            work[0, k] = work[0, k - 1]
            k -= 1
        work[0, k] = end
    for i in range(size):
        work[2, i] = 0
    filled = 0
    for k in range(n):
        j = by[3, k]
        if used[j] == 0:
            work[2, filled] = r[j] * b[j]
            filled += 1
    for k in range(placed):
        j = order[k]
        if reduces[placed, 2, j] > 0:
            rest = reduces[placed, 2, j] * b[j]
            i = filled
            while i > 0 and work[2, i - 1] > rest:
                work[2, i] = work[2, i - 1]
                i -= 1
            work[2, i] = rest
            filled += 1
    by_reduces = 0
    done = 0
    slots_in = 0
    moment = 0
    g = 0
    groups = reduces[placed, 4, 0]
    for i in range(size):
        done += work[2, i]
        level = 0
        if done > 0:
            while g < groups:
                free = reduces[placed, 0, g]
                if slots_in > 0 and slots_in * free - moment >= done:
                    break
                slots_in += reduces[placed, 1, g]
                moment += reduces[placed, 1, g] * free
                g += 1
            level = -(-(done + moment) // slots_in)
        by_reduces += max(level, work[0, i])
    return ended + max(by_maps, by_reduces)


@njit(**kernel_options())
def expand(depth, state, instance, memory):  # type: ignore[no-untyped-def]
    """Store the jobs to try at position `depth` whose bounds are below the best value, smallest bound first.

    Jobs with equal bounds are in Johnson's order.
    """
    by, twins = instance.by, instance.twins
    order, used, stack = memory.order, memory.used, memory.stack
    size = 0
    for i in range(len(order)):
        j = by[0, i]
        if used[j] == 1 or (twins[j] >= 0 and used[twins[j]] == 0):
            continue
        bound = place(j, depth, instance, memory)
        used[j] = 0
        state[2] += 1
        if bound >= state[1]:
            continue
        k = size
        while k > 0 and stack[depth, 1, k - 1] > bound:
            stack[depth, 0, k] = stack[depth, 0, k - 1]
            stack[depth, 1, k] = stack[depth, 1, k - 1]
            k -= 1
        stack[depth, 0, k] = j
        stack[depth, 1, k] = bound
        size += 1
    stack[depth, 2, 0] = size
    stack[depth, 2, 1] = 0


@njit(**kernel_options())
def branch(state, best_order, instance, memory, until):  # type: ignore[no-untyped-def]
    """Continue the depth-first search until about `until` bounds have been computed in all.

    ``state`` is (depth, best value, bounds computed). Returns whether the search is complete.
    """
    order, used, stack = memory.order, memory.used, memory.stack
    n = len(order)
    depth = state[0]
    while depth >= 0:
        count, at = stack[depth, 2, 0], stack[depth, 2, 1]
        if at > 0:
            used[order[depth]] = 0
        if at == count or stack[depth, 1, at] >= state[1]:
            # Bounds increase along the row, so none of the following jobs can be better either.
            stack[depth, 2, 0] = 0
            stack[depth, 2, 1] = 0
            depth -= 1
            continue
        if state[2] >= until:
            state[0] = depth
            return False
        j = stack[depth, 0, at]
        stack[depth, 2, 1] = at + 1
        bound = place(j, depth, instance, memory)
        if depth + 1 < n:
            depth += 1
            expand(depth, state, instance, memory)
        elif bound < state[1]:
            state[1] = bound
            for k in range(n):
                best_order[k] = order[k]
    state[0] = depth
    return True


def kernel(*, compiled: bool) -> Any:
    """Return the functions of both kernel modules.

    They are compiled for int64 arrays, or with ``compiled=False`` plain for Python integers of any size.
    """
    names: dict[str, Any] = {**vars(slot_kernel), **globals()}
    if not compiled:
        for name, function in list(names.items()):
            if isinstance(function, CPUDispatcher):
                # The plain functions get their own namespace, so that they call each other and not the compiled ones.
                names[name] = FunctionType(function.py_func.__code__, names, name)
    return SimpleNamespace(**names)
