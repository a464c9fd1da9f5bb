"""Slot pools, the value of an order of jobs, and a random local search, compiled.

This is the compiled form of `harness.systems.mrorder.ordering.estimator` for the search in search_kernel.py. All
arithmetic uses integers. The slots of a pool are in groups: ``t`` has the times at which the groups become free,
ascending, ``c`` the number of slots in each, and ``n_groups`` is the number of groups. ``work`` is scratch space, and
``far`` is later than any time.
"""

from __future__ import annotations

from numba import njit

from harness.base.machine_code import kernel_options


@njit(**kernel_options())
def waves(free, until, duration):  # type: ignore[no-untyped-def]
    """Return how many tasks of `duration` one slot starts from `free` on and before `until`."""
    if until <= free:
        return 0
    return -((free - until) // duration)


@njit(**kernel_options())
def line_up(t, c, n_groups, tasks, duration, work):  # type: ignore[no-untyped-def]
    """Find the groups of slots that start some of `tasks` > 0 tasks of `duration` > 0.

    Let ``level`` be the time at which the last of these groups becomes free. For each group, the time of its first
    start from ``level`` on and its number of slots are written to work[0:2], sorted by time. Returns the number of
    these groups, the number of full rounds that all of them do from there, and the number of tasks in the round after
    that (at least 1).
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


@njit(**kernel_options())
def last_start(t, c, n_groups, tasks, duration, work):  # type: ignore[no-untyped-def]
    """Return when the last of `tasks` > 0 tasks would start."""
    if duration == 0:
        return t[0]
    _, rounds, left = line_up(t, c, n_groups, tasks, duration, work)
    k = 0
    while left > work[1, k]:
        left -= work[1, k]
        k += 1
    return work[0, k] + rounds * duration


@njit(**kernel_options())
def start(t, c, n_groups, tasks, duration, before, work):  # type: ignore[no-untyped-def]
    """Start up to `tasks` tasks as early as slots are free, none at `before` or later, and update t and c.

    Returns the number of groups, the number of tasks started, and when the last of them started.
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
    # Write to work[2:4] the slots that have no task in the last round, then those that have one, each sorted by time.
    # Then merge both with the groups that take no part.
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


@njit(**kernel_options())
def idle_until(t, c, n_groups, time):  # type: ignore[no-untyped-def]
    """Keep slots that become free before `time` idle until then, and return the number of groups."""
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


@njit(**kernel_options())
def run_reduces(t, c, n_groups, order, placed, left, released, ends, b, horizon, far, work):  # type: ignore[no-untyped-def]
    """Run the reduces of the first `placed` jobs of `order`, as far as no other job can interfere.

    Other jobs come later in the order and have no reduce ready before `horizon`. After the horizon they get a slot only
    when no reduce of the placed jobs waits. So the schedule is certain until slots are free and no reduce of the placed
    jobs is released. Updates t, c, left and ends, and returns the number of groups.
    """
    while True:
        first = far
        for k in range(placed):
            j = order[k]
            if left[j] > 0 and released[j] < first:
                first = released[j]
        if first == far:
            return n_groups
        now = max(t[0], first)
        if now > horizon and first > t[0]:
            return n_groups
        limit = far
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


@njit(**kernel_options())
def value_of(order, jobs, slots, total, far, row, work):  # type: ignore[no-untyped-def]
    """Return the makespan of an order, or with `total` its total completion time. `row` and `work` are scratch space.

    ``jobs`` has the rows of `Instance.jobs`.
    """
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


@njit(**kernel_options())
def improve(order, best, jobs, slots, total, far, row, work, moves, seed, trials):  # type: ignore[no-untyped-def]
    """Improve an order by random moves (move one job, or swap two) that are kept if they do not worsen it.

    After many moves without success, the search restarts from the best order with several moves at once. Finally
    `order` holds the best order; its value and the state of the random generator are returned.
    """
    n = len(order)
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
