"""The search for the best order, compiled: depth-first branch and bound, and a random local search.

Pure integer arithmetic on arrays. Everything here also runs uncompiled on object arrays (`plain_kernel`), for times
that do not fit 64 bits. What the arrays mean stands in search.py, why the bounds hold in
docs/decisions/ordering-search.md.

Naming: t, c are the groups of a slot pool (free at, how many; times increasing), n_groups their number; m, a are maps
and map time of each job, r, b reduces and reduce time; `far` is later than any time.
"""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

from numba import njit
from numba.core.registry import CPUDispatcher


@njit(cache=True)
def waves(free, until, duration):  # type: ignore[no-untyped-def]
    """How many tasks of `duration` one slot starts from `free` on, strictly before `until`."""
    if until <= free:
        return 0
    return -((free - until) // duration)


@njit(cache=True)
def line_up(t, c, n_groups, tasks, duration, work):  # type: ignore[no-untyped-def]
    """The groups that start some of `tasks` > 0 tasks of `duration` > 0, as (time, count) in work[0:2], by time.

    Returns how many groups take part, how many whole rounds they all do, and how many tasks the last round has
    (1 to all slots of these).
    """
    taking = n_groups
    while True:
        level = t[taking - 1]
        earlier = 0
        for g in range(taking - 1):
            earlier += c[g] * waves(t[g], level, duration)
        if earlier < tasks:
            break
        taking -= 1
    width = 0
    for g in range(taking):
        time = t[g] + waves(t[g], level, duration) * duration
        k = g
        while k > 0 and work[0, k - 1] > time:
            work[0, k] = work[0, k - 1]
            work[1, k] = work[1, k - 1]
            k -= 1
        work[0, k] = time
        work[1, k] = c[g]
        width += c[g]
    rounds = (tasks - earlier - 1) // width
    return taking, rounds, tasks - earlier - rounds * width


@njit(cache=True)
def last_start(t, c, n_groups, tasks, duration, work):  # type: ignore[no-untyped-def]
    """When the last of `tasks` > 0 tasks would start."""
    if duration == 0:
        return t[0]
    _, rounds, left = line_up(t, c, n_groups, tasks, duration, work)
    k = 0
    while left > work[1, k]:
        left -= work[1, k]
        k += 1
    return work[0, k] + rounds * duration


@njit(cache=True)
def start(t, c, n_groups, tasks, duration, before, work):  # type: ignore[no-untyped-def]
    """Start up to `tasks` tasks as early as slots are free, none at `before` or later; changes t and c.

    Returns the number of groups, of tasks started, and when the last of these started.
    """
    if t[0] >= before or tasks == 0:
        return n_groups, 0, -1
    if duration == 0:
        return n_groups, tasks, t[0]
    room = 0
    for g in range(n_groups):
        if t[g] >= before or room >= tasks:
            break
        room += c[g] * min(waves(t[g], before, duration), tasks)
    tasks = min(tasks, room)
    taking, rounds, left = line_up(t, c, n_groups, tasks, duration, work)
    # work[2:4]: the slots that do one round less, then those of the last round, both by time; then the other groups.
    last = 0
    idle = 0
    spent = left
    for k in range(taking):
        now = work[0, k] + rounds * duration
        used = min(spent, work[1, k])
        spent -= used
        if used > 0:
            last = now
        if work[1, k] > used:
            work[2, idle] = now
            work[3, idle] = work[1, k] - used
            idle += 1
    size = idle
    spent = left
    for k in range(taking):
        used = min(spent, work[1, k])
        if used == 0:
            break
        spent -= used
        work[2, size] = work[0, k] + (rounds + 1) * duration
        work[3, size] = used
        size += 1
    kept = n_groups - taking
    for g in range(kept):
        work[0, g] = t[taking + g]
        work[1, g] = c[taking + g]
    i = 0
    g = 0
    out = 0
    while i < size or g < kept:
        if g == kept or (i < size and work[2, i] <= work[0, g]):
            time, count = work[2, i], work[3, i]
            i += 1
        else:
            time, count = work[0, g], work[1, g]
            g += 1
        if out > 0 and t[out - 1] == time:
            c[out - 1] += count
        else:
            t[out] = time
            c[out] = count
            out += 1
    return out, tasks, last


@njit(cache=True)
def idle_until(t, c, n_groups, time):  # type: ignore[no-untyped-def]
    """Slots that are free before `time` stay idle until then; returns the number of groups."""
    merged = 0
    count = 0
    while merged < n_groups and t[merged] <= time:
        count += c[merged]
        merged += 1
    if merged == 0:
        return n_groups
    t[0] = time
    c[0] = count
    for g in range(merged, n_groups):
        t[g - merged + 1] = t[g]
        c[g - merged + 1] = c[g]
    return n_groups - merged + 1


@njit(cache=True)
def run_reduces(t, c, n_groups, order, placed, left, released, ends, b, horizon, far, work):  # type: ignore[no-untyped-def]
    """All starts of reduces before `horizon`, of the first `placed` jobs of `order`; changes t, c, left and ends."""
    while True:
        first = far
        for k in range(placed):
            j = order[k]
            if left[j] > 0 and released[j] < first:
                first = released[j]
        if first == far:
            return n_groups
        now = max(t[0], first)
        if now >= horizon:
            return n_groups
        limit = horizon
        job = -1
        for k in range(placed):
            j = order[k]
            if left[j] > 0:
                if released[j] <= now:
                    job = j
                    break
                limit = min(limit, released[j])
        n_groups = idle_until(t, c, n_groups, now)
        n_groups, started, last = start(t, c, n_groups, left[job], b[job], limit, work)
        left[job] -= started
        ends[job] = last + b[job]


@njit(cache=True)
def value_of(order, jobs, slots, total, far, row, work):  # type: ignore[no-untyped-def]
    """The makespan of an order, or (`total`) its total completion time; `jobs` is (m, a, r, b), `row` scratch."""
    n = len(order)
    t, c, left, released, ends = row[0], row[1], row[2], row[3], row[4]
    t[0] = 0
    c[0] = slots[0]
    groups = 1
    for k in range(n):
        j = order[k]
        released[j] = 0
        if jobs[0, j] > 0:
            groups, _, last = start(t, c, groups, jobs[0, j], jobs[1, j], far, work)
            released[j] = last + jobs[1, j]
        left[j] = jobs[2, j]
        ends[j] = released[j]
    t[0] = 0
    c[0] = slots[1]
    run_reduces(t, c, 1, order, n, left, released, ends, jobs[3], far, far, work)
    value = 0
    for j in range(n):
        value = value + ends[j] if total else max(value, ends[j])
    return value


@njit(cache=True)
def improve(order, best, jobs, slots, total, far, rows, moves, work, seed, trials):  # type: ignore[no-untyped-def]
    """Random moves (a job elsewhere, two jobs exchanged) that do not worsen; now and then a kick away from the best.

    `order` holds the best order at the end. Returns its value and the generator's state.
    """
    n = len(order)
    row = rows
    current = moves[0]
    trial = moves[1]
    for k in range(n):
        current[k] = order[k]
    value = best
    stale = 0
    for _ in range(trials):
        kicks = 1
        if stale > 40 * n:
            for k in range(n):
                current[k] = order[k]
            kicks = 4
            stale = 0
        for k in range(n):
            trial[k] = current[k]
        for _ in range(kicks):
            seed = (seed * 1103515245 + 12345) % 2147483648
            i = (seed >> 8) % n
            seed = (seed * 1103515245 + 12345) % 2147483648
            j = (seed >> 8) % n
            seed = (seed * 1103515245 + 12345) % 2147483648
            moved = trial[i]
            if (seed >> 16) % 2 == 0:
                trial[i] = trial[j]
                trial[j] = moved
            elif i < j:
                for k in range(i, j):
                    trial[k] = trial[k + 1]
                trial[j] = moved
            else:
                for k in range(i, j, -1):
                    trial[k] = trial[k - 1]
                trial[j] = moved
        found = value_of(trial[:n], jobs, slots, total, far, row, work)
        stale += 1
        if found <= value or kicks > 1:
            if found < best:
                best = found
                stale = 0
                for k in range(n):
                    order[k] = trial[k]
            value = found
            for k in range(n):
                current[k] = trial[k]
    return best, seed


@njit(cache=True)
def place(j, depth, order, used, jobs, slots, by, tails, total, far, maps, reduces, released, nexts, work):  # type: ignore[no-untyped-def]
    """Put job `j` at position `depth` of `order`: fills level depth + 1 of `maps` and `reduces`.

    Returns a lower bound on the value of every order that begins so; the value itself when the order is complete.
    `by` are job sequences (rows: Johnson, tail descending, map work ascending, reduce work ascending).
    """
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
    return settle(depth + 1, order, used, jobs, slots, by, tails, total, far, maps, reduces, released, nexts, work)


@njit(cache=True)
def settle(placed, order, used, jobs, slots, by, tails, total, far, maps, reduces, released, nexts, work):  # type: ignore[no-untyped-def]
    """The reduces of the `placed` jobs as far as no later job can interfere, then the bounds. See `place`."""
    n = len(order)
    m, a, r, b = jobs[0], jobs[1], jobs[2], jobs[3]
    t, c = maps[placed, 0], maps[placed, 1]
    groups = maps[placed, 2, 0]
    # No job that is still to be placed ends its maps before `horizon`, wherever it is placed.
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
    reduces[placed, 4, 0] = r_groups
    if total:
        return bound_total(placed, order, used, jobs, slots, by, tails, maps, reduces, released, nexts, horizon, work)
    return bound_makespan(placed, order, used, jobs, slots, by, tails, maps, reduces, released, nexts, horizon)


@njit(cache=True)
def bound_makespan(placed, order, used, jobs, slots, by, tails, maps, reduces, released, nexts, horizon):  # type: ignore[no-untyped-def]
    """A lower bound on the makespan of every order that begins with the placed jobs."""
    n = len(order)
    m, a, r, b = jobs[0], jobs[1], jobs[2], jobs[3]
    bound = 0
    work_left = 0
    for k in range(placed):
        j = order[k]
        end = reduces[placed, 3, j]
        if reduces[placed, 2, j] > 0:
            work_left += reduces[placed, 2, j] * b[j]
            end = max(released[j], horizon) - (-reduces[placed, 2, j] // slots[1]) * b[j]
        bound = max(bound, end)
    if placed == n:
        return bound
    reduce_work = 0
    for j in range(n):
        if used[j] == 0:
            reduce_work += r[j] * b[j]
            bound = max(bound, nexts[j] + tails[j])
    # All reduce work that is left, on slots that start none of it before the horizon.
    if slots[1] > 0:
        free = 0
        for g in range(reduces[placed, 4, 0]):
            free += reduces[placed, 1, g] * max(reduces[placed, 0, g], horizon)
        bound = max(bound, -(-(free + work_left + reduce_work) // slots[1]))
    if slots[0] == 0:
        return bound
    # Map slots give the jobs to come at most slots * time - base by any time from the horizon on.
    t, c = maps[placed, 0], maps[placed, 1]
    groups = maps[placed, 2, 0]
    base = 0
    for g in range(groups):
        base += c[g] * min(t[g], horizon)
    # Lemma 3.3 on the jobs to come: Johnson's order of their fluid times.
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
    # Each job's own reduces after its maps: the longest ones first is the best for the worst of them.
    done = base
    for k in range(n):
        j = by[1, k]
        if used[j] == 0:
            done += m[j] * a[j]
            bound = max(bound, -(-done // slots[0]) + tails[j])
    return bound


@njit(cache=True)
def bound_total(placed, order, used, jobs, slots, by, tails, maps, reduces, released, nexts, horizon, work):  # type: ignore[no-untyped-def]
    """A lower bound on the total completion time of every order that begins with the placed jobs."""
    n = len(order)
    m, a, r, b = jobs[0], jobs[1], jobs[2], jobs[3]
    ended = 0
    alone = 0
    size = 0
    for k in range(placed):
        j = order[k]
        if reduces[placed, 2, j] > 0:
            end = max(released[j], horizon) - (-reduces[placed, 2, j] // slots[1]) * b[j]
            alone += end
            work[0, size] = end
            size += 1
        else:
            ended += reduces[placed, 3, j]
    if placed == n:
        return ended
    # Maps: the k-th job to end its maps does so when the k smallest could have been done; its own reduces follow.
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
            work[0, size] = nexts[j] + tails[j]
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
            by_maps += max(level, work[1, at]) + tails[j]
            at += 1
    # Reduces: the k-th job of those not ended ends when the k smallest rests could have been done.
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
                free = max(reduces[placed, 0, g], horizon)
                if slots_in > 0 and slots_in * free - moment >= done:
                    break
                slots_in += reduces[placed, 1, g]
                moment += reduces[placed, 1, g] * free
                g += 1
            level = -(-(done + moment) // slots_in)
        by_reduces += max(level, work[0, i])
    return ended + max(by_maps, by_reduces)


@njit(cache=True)
def expand(
    depth, state, order, used, jobs, slots, by, tails, twins, total, far, maps, reduces, released, nexts, stack, work
):  # type: ignore[no-untyped-def]
    """The jobs to try at position `depth` that may beat the best value, lowest bound first (ties: Johnson's order)."""
    size = 0
    for i in range(len(order)):
        j = by[0, i]
        if used[j] == 1 or (twins[j] >= 0 and used[twins[j]] == 0):
            continue
        bound = place(j, depth, order, used, jobs, slots, by, tails, total, far, maps, reduces, released, nexts, work)
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


@njit(cache=True)
def branch(
    state,
    best_order,
    order,
    used,
    jobs,
    slots,
    by,
    tails,
    twins,
    total,
    far,
    maps,
    reduces,
    released,
    nexts,
    stack,
    work,
    until,
):  # type: ignore[no-untyped-def]
    """Depth-first search on from `state` (depth, best value, bounds taken) until about `until` bounds are taken.

    `stack` has for each depth: the jobs to try there, their bounds, and in [2, 0:2] how many and the next one.
    `twins[j]` is the job before j in the file that is equal to it (-1: none): of equal jobs the first goes first.
    Returns whether the search is complete.
    """
    n = len(order)
    depth = state[0]
    while depth >= 0:
        count, at = stack[depth, 2, 0], stack[depth, 2, 1]
        if at > 0:
            used[order[depth]] = 0
        if at == count or stack[depth, 1, at] >= state[1]:
            # The bounds increase along the row: nothing behind can be better either.
            stack[depth, 2, 0] = 0
            stack[depth, 2, 1] = 0
            depth -= 1
            continue
        if state[2] >= until:
            state[0] = depth
            return False
        j = stack[depth, 0, at]
        stack[depth, 2, 1] = at + 1
        bound = place(j, depth, order, used, jobs, slots, by, tails, total, far, maps, reduces, released, nexts, work)
        if depth + 1 < n:
            depth += 1
            expand(
                depth,
                state,
                order,
                used,
                jobs,
                slots,
                by,
                tails,
                twins,
                total,
                far,
                maps,
                reduces,
                released,
                nexts,
                stack,
                work,
            )
        elif bound < state[1]:
            state[1] = bound
            for k in range(n):
                best_order[k] = order[k]
    state[0] = depth
    return True


def plain_kernel() -> Any:
    """The same functions uncompiled, for arrays of Python integers of any size (dtype object)."""
    names: dict[str, Any] = dict(globals())
    for name, function in globals().items():
        if isinstance(function, CPUDispatcher):
            names[name] = FunctionType(function.py_func.__code__, names, name)
    return SimpleNamespace(**names)
