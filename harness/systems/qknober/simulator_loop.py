"""The compiled event loop of `harness.systems.qknober.simulator`, which places tasks on servers."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from harness.base.machine_code import kernel_options

RULES = {"static": 0, "drf": 1, "tetris": 2, "qknober": 3}
_STATIC, _DRF, _TETRIS, _QKNOBER = 0, 1, 2, 3
#: Default number of pending tasks that a user offers.
WINDOW = 8
_TINY = 1e-9
_MOST_COUNTED = 4096  # limit of the pending tasks of one user that are counted in its mean demand
#: Values in place of an offer's task: no task of the user fits on any server; the search has not been done yet.
_NOTHING, _UNKNOWN = -1, -2


class _Shown(NamedTuple):
    """The pending tasks that the rules see, and the resources that users hold.

    Parameters
    ----------
    first
        The oldest pending task of each user, or -1.
    after
        For each pending task, the next one of the same user, or -1.
    demand
        The demand of each task: one row per task, one column per resource, as fractions of the cluster.
    held
        The resources that each user holds: one row per user, one column per resource, as fractions of the cluster.
    weights
        Each user's weight; their sum is 1.
    rule
        One of the values of `RULES`.
    window
        The number of oldest pending tasks that a user offers.
    """

    first: np.ndarray
    after: np.ndarray
    demand: np.ndarray
    held: np.ndarray
    weights: np.ndarray
    rule: int
    window: int


class _Jobs(NamedTuple):
    """The jobs that tasks belong to.

    Parameters
    ----------
    of
        The job of each task.
    left
        The remaining work of each job: the sum over its unfinished tasks.
    remaining
        Weight of the remaining work in Tetris' score (0: not used).
    """

    of: np.ndarray
    left: np.ndarray
    remaining: float


@njit(**kernel_options())
def _fits(task, idle, demand):  # type: ignore[no-untyped-def]
    for k in range(idle.shape[0]):  # noqa: SIM110 - compiled: no generators
        if demand[task, k] > idle[k] + _TINY:
            return False
    return True


@njit(**kernel_options())
def _affinity(task, idle, demand):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(idle.shape[0]):
        total += demand[task, k] * idle[k]
    return total


@njit(**kernel_options())
def _within(task, user, held, weights, demand):  # type: ignore[no-untyped-def]
    """Return whether a task fits into the user's own part besides what it holds.

    A task larger than the part may run alone.
    """
    for k in range(demand.shape[1]):
        # Held amounts up to _TINY are rounding errors of sums; counting them would keep a large task out for ever.
        if held[user, k] > _TINY and held[user, k] + demand[task, k] > weights[user] + _TINY:
            return False
    return True


@njit(**kernel_options())
def _level(user, held, weights):  # type: ignore[no-untyped-def]
    most = 0.0
    for k in range(held.shape[1]):
        most = max(most, held[user, k])
    return most / weights[user]


@njit(**kernel_options())
def _best_of(user, idle, shown, jobs, epsilon):  # type: ignore[no-untyped-def]
    """Return (task, score) of a user for a server, or (-1, -inf).

    The task is the oldest that fits (static, drf), or the one with the greatest affinity minus ``epsilon`` times the
    remaining work of its job.
    """
    demand, rule = shown.demand, shown.rule
    best, most = -1, -np.inf
    task, seen = shown.first[user], 0
    while task >= 0 and seen < shown.window:
        if _fits(task, idle, demand) and (rule != _STATIC or _within(task, user, shown.held, shown.weights, demand)):
            score = _affinity(task, idle, demand) - epsilon * jobs.left[jobs.of[task]]
            if score > most:
                best, most = task, score
            if rule <= _DRF:
                break
        task = shown.after[task]
        seen += 1
    return best, most


@njit(**kernel_options())
def _epsilon(idle, order, cut, pending, shown, jobs):  # type: ignore[no-untyped-def]
    """Return epsilon: ``remaining`` times mean affinity over mean remaining work of the competing tasks."""
    aligned, work, before = 0.0, 0.0, 0
    for user in order:
        if before >= cut and work > 0:
            break
        before += pending[user]
        task, seen = shown.first[user], 0
        while task >= 0 and seen < shown.window:
            if _fits(task, idle, shown.demand):
                aligned += _affinity(task, idle, shown.demand)
                work += jobs.left[jobs.of[task]]
            task = shown.after[task]
            seen += 1
    return jobs.remaining * aligned / work if work > 0 else 0.0


@njit(**kernel_options())
def _choose(idle, levels, pending, fair, knob, shown, jobs):  # type: ignore[no-untyped-def]
    """Return the task that the rule places on a server next, or -1."""
    n, rule = len(levels), shown.rule
    if rule <= _DRF or rule == _QKNOBER:
        # Lowest level first; under QKnober only users below their fair part. Users whose tasks do not fit here are
        # skipped.
        chosen, lowest = -1, np.inf if rule <= _DRF else fair - _TINY
        for user in range(n):
            if pending[user] and levels[user] < lowest:
                task, _ = _best_of(user, idle, shown, jobs, 0.0)
                if task >= 0:
                    chosen, lowest = task, levels[user]
        if rule <= _DRF or chosen >= 0:
            return chosen
        cut = np.int64(1) << 60
    else:
        total = 0
        for user in range(n):
            total += pending[user]
        cut = np.int64(max(1, np.ceil((1.0 - knob) * total)))
    best, most = -1, -np.inf
    if rule == _TETRIS:
        before = 0
        order = np.argsort(levels, kind="mergesort")
        epsilon = 0.0
        if jobs.remaining > 0:
            epsilon = _epsilon(idle, order, cut, pending, shown, jobs)
        for user in order:
            if not pending[user]:
                continue
            if before >= cut and best >= 0:
                break
            before += pending[user]
            task, score = _best_of(user, idle, shown, jobs, epsilon)
            if score > most:
                best, most = task, score
        return best
    low = np.inf
    for user in range(n):
        if pending[user]:
            task, score = _best_of(user, idle, shown, jobs, 0.0)
            # Equal affinities are equally efficient: the user with the lower level is served, as in the policy.
            if score > most or (score == most and levels[user] < low):
                best, most, low = task, score, levels[user]
    return best


@njit(**kernel_options())
def _offer(user, idle, shown):  # type: ignore[no-untyped-def]
    """Return (task, server, affinity) of the user's oldest offered task that fits on some server, or (-1, -1, -1.0)."""
    demand, rule = shown.demand, shown.rule
    task, seen = shown.first[user], 0
    while task >= 0 and seen < shown.window:
        if rule != _STATIC or _within(task, user, shown.held, shown.weights, demand):
            target, most = -1, -1.0
            for server in range(len(idle)):
                if _fits(task, idle[server], demand):
                    score = _affinity(task, idle[server], demand)
                    if score > most:
                        target, most = server, score
                    if rule <= _DRF:
                        break
            if target >= 0:
                return task, target, most
        task = shown.after[task]
        seen += 1
    return -1, -1, -1.0


@njit(**kernel_options())
def _renew(user, offers, scores, idle, shown):  # type: ignore[no-untyped-def]
    """Return whether some task of a user fits on a server (its offer); an offer of _UNKNOWN is found first."""
    if offers[user, 0] == _UNKNOWN:
        task, target, score = _offer(user, idle, shown)
        offers[user, 0], offers[user, 1], scores[user] = task, target, score
    return offers[user, 0] >= 0


@njit(**kernel_options())
def _choose_new(offers, scores, idle, levels, pending, fair, knob, shown, jobs):  # type: ignore[no-untyped-def]
    """Return the user that the rule serves next, or -1.

    Candidates are the users whose entry in ``offers`` (task, server) is not _NOTHING. They are compared by their levels
    and by the affinities of their offers (``scores``).
    """
    n, rule = len(levels), shown.rule
    if rule <= _DRF or rule == _QKNOBER:
        # By level. A user whose tasks fit nowhere is skipped until the next instant, because nothing becomes free
        # before.
        below = np.inf if rule <= _DRF else fair - _TINY
        while True:
            chosen, lowest = -1, below
            for user in range(n):
                if pending[user] and offers[user, 0] != _NOTHING and levels[user] < lowest:
                    chosen, lowest = user, levels[user]
            if chosen < 0:
                break
            if _renew(chosen, offers, scores, idle, shown):
                return chosen
        if rule <= _DRF:
            return -1
    order: Any = np.arange(n)
    cut = np.int64(1) << 60
    if rule == _TETRIS:
        order, cut = np.argsort(levels, kind="mergesort"), np.int64(max(1, np.ceil((1.0 - knob) * pending.sum())))
    epsilon = 0.0
    if rule == _TETRIS and jobs.remaining > 0:
        aligned, work, before = 0.0, 0.0, 0
        for user in order:
            if before >= cut and work > 0:
                break
            before += pending[user]
            if pending[user] and _renew(user, offers, scores, idle, shown):
                aligned += scores[user]
                work += jobs.left[jobs.of[offers[user, 0]]]
        epsilon = jobs.remaining * aligned / work if work > 0 else 0.0
    best, most, before = -1, -np.inf, 0
    for user in order:
        if before >= cut and best >= 0:
            break
        before += pending[user]
        if pending[user] and _renew(user, offers, scores, idle, shown):
            score = scores[user] - epsilon * jobs.left[jobs.of[offers[user, 0]]]
            if score > most or (score == most and levels[user] < levels[best]):
                best, most = user, score
    return best


@njit(**kernel_options())
def _mean_demands(held, idle_all, first, after, demand, mean):  # type: ignore[no-untyped-def]
    """Compute each user's mean demand, up to a factor.

    It counts running tasks, and pending tasks in order until the idle resources are used up.
    """
    n, m = held.shape
    for user in range(n):
        for k in range(m):
            mean[user, k] = held[user, k]
        task, counted = first[user], 0
        left = idle_all.copy()
        while task >= 0 and counted < _MOST_COUNTED:
            # Count at least one pending task, so that a new user's demand is known even if the cluster is full.
            if counted and not _fits(task, left, demand):
                break
            for k in range(m):
                mean[user, k] += demand[task, k]
                left[k] -= demand[task, k]
            task = after[task]
            counted += 1


@njit(**kernel_options())
def _update(held, idle_all, first, after, demand, weights, rho, mean):  # type: ignore[no-untyped-def]
    """Return (rho * s^max / w, theta of Theorem 1), computed from the users' mean demands by eq. (11)."""
    n, m = held.shape
    _mean_demands(held, idle_all, first, after, demand, mean)
    used = np.zeros(m)
    for user in range(n):
        most = mean[user].max()
        if most > 0:
            for k in range(m):
                mean[user, k] /= most
                used[k] += weights[user] * mean[user, k]
    phi = used.max()
    if phi <= 0:
        return 0.0, 0.0
    theta = 0.0
    for user in range(n):
        alone = np.inf
        for k in range(m):
            if mean[user, k] > 0:
                alone = min(alone, max(0.0, 1.0 - rho * used[k] / phi) / mean[user, k])
        if alone < np.inf:
            theta = max(theta, alone / weights[user])
    return rho / phi, theta


@njit(**kernel_options())
def _gap(levels, pending):  # type: ignore[no-untyped-def]
    """Return the largest s_i / w_i minus the lowest of a user with waiting tasks; 0 if no task waits."""
    low, high = np.inf, 0.0
    for user in range(len(levels)):
        high = max(high, levels[user])
        if pending[user]:
            low = min(low, levels[user])
    return max(0.0, high - low) if low < np.inf else 0.0


@njit(**kernel_options())
def _twice(rows):  # type: ignore[no-untyped-def]
    """Return a copy of the array with twice the number of rows."""
    found = np.zeros((2 * rows.shape[0], rows.shape[1]))
    found[: rows.shape[0]] = rows
    return found


@njit(**kernel_options())
def run_loop(  # type: ignore[no-untyped-def]
    servers, weights, users, submit, duration, demand, rule, knob, update_ms, sample_ms, window, job, remaining
):
    """Run the load and return (figures, waits in ms, samples, shares).

    ``job`` is the job number of each task, from 0. ``remaining`` is the weight of remaining work (0: not used).
    ``figures`` has: end (ms), mean soft fairness, mean theta, decisions, tasks that never ran, then the mean
    utilisation of each resource until the end and until the last submission.
    """
    n, m, tasks = len(weights), servers.shape[1], len(users)
    idle = servers.copy()
    idle_all = np.ones(m)
    held = np.zeros((n, m))
    levels = np.zeros(n)
    pending = np.zeros(n, np.int64)
    first = np.full(n, -1, np.int64)
    last = np.full(n, -1, np.int64)
    after = np.full(tasks, -1, np.int64)
    before = np.full(tasks, -1, np.int64)
    place = np.full(tasks, -1, np.int64)
    offers, scores = np.zeros((n, 2), np.int64), np.zeros(n)  # the candidates of `_choose_new`
    wait = np.zeros(tasks, np.int64)
    mean = np.zeros((n, m))
    work, left = np.zeros(tasks), np.zeros(job.max() + 1 if tasks else 0)  # unfinished work of tasks, of jobs
    for task in range(tasks):
        work[task] = duration[task] * demand[task].sum()
        left[job[task]] += work[task]
    shown = _Shown(first, after, demand, held, weights, rule, window)
    jobs = _Jobs(job, left, remaining)
    ends = [(np.int64(0), np.int64(0))]
    ends.pop()
    figures = np.zeros(5 + 2 * m)
    now: Any = np.int64(0)
    arrived, waiting, fair, theta = 0, 0, 0.0, 0.0
    next_update = np.int64(0)
    soft, estimated, contended = 0.0, 0.0, 0.0
    queue = np.zeros(tasks + 1, np.int64)  # tasks that ended at this instant
    last_submit = submit[tasks - 1] if tasks else 0
    taken, next_sample = 0, np.int64(0)
    rows = 64 if sample_ms else 0
    samples, shares = np.zeros((rows, m + 3)), np.zeros((rows, n))
    while arrived < tasks or len(ends):
        # Find the next instant.
        then = np.int64(1) << 62
        if arrived < tasks:
            then = submit[arrived]
        if len(ends):
            then = min(then, ends[0][0])
        if rule == _QKNOBER and waiting and next_update > now:
            then = min(then, next_update)
        span = float(then - now)
        if span > 0:
            for k in range(m):
                figures[5 + k] += span * (1.0 - idle_all[k])
                if now < last_submit:
                    figures[5 + m + k] += float(min(then, last_submit) - now) * (1.0 - idle_all[k])
            if waiting:
                soft += span * _gap(levels, pending)
                estimated += span * theta
                contended += span
        while sample_ms and next_sample < then:
            # The state does not change before the next instant, so it holds at all samples until then.
            if taken == len(samples):
                samples, shares = _twice(samples), _twice(shares)
            for k in range(m):
                samples[taken, k] = 1.0 - idle_all[k]
            samples[taken, m] = _gap(levels, pending) if waiting else 0.0
            samples[taken, m + 1] = theta if waiting else 0.0
            samples[taken, m + 2] = waiting
            for user in range(n):
                shares[taken, user] = levels[user] * weights[user]
            taken += 1
            next_sample += sample_ms
        now = then
        # Tasks that end: their servers have idle resources again.
        freed = 0
        while len(ends) and ends[0][0] == now:
            _, ended = heapq.heappop(ends)
            user, host = users[ended], place[ended]
            for k in range(m):
                idle[host, k] += demand[ended, k]
                held[user, k] = max(0.0, held[user, k] - demand[ended, k])
                idle_all[k] += demand[ended, k]
            levels[user] = _level(user, held, weights)
            left[job[ended]] -= work[ended]
            queue[freed] = ended
            freed += 1
        fresh = arrived
        while arrived < tasks and submit[arrived] == now:
            user = users[arrived]
            if last[user] >= 0:
                after[last[user]] = arrived
                before[arrived] = last[user]
            else:
                first[user] = arrived
            last[user] = arrived
            pending[user] += 1
            waiting += 1
            arrived += 1
        if rule == _QKNOBER and now >= next_update:
            fair, theta = _update(held, idle_all, first, after, demand, weights, knob, mean)
            next_update = now + update_ms
        several = False
        for at in range(fresh + 1, arrived):
            several = several or users[at] != users[fresh]
        # First fill the servers on which tasks ended, then place the new tasks one after another. Under static, an end
        # also makes room within the user's own part, which the user may use on any server.
        alone = 0 if several else arrived - fresh
        for step in range(freed + alone + 1):
            server: Any = -1
            only: Any = -1
            if step < freed:
                server = place[queue[step]]
                if rule == _STATIC:
                    only = users[queue[step]]
            elif step < freed + alone:
                only = users[fresh + step - freed]
            elif several or (waiting and not len(ends)):
                # The rule chooses among users with new tasks or, if nothing runs, among all users, since no later end
                # would trigger a placement.
                offers[:] = _NOTHING if len(ends) else _UNKNOWN
                for at in range(fresh, arrived):
                    offers[users[at]] = _UNKNOWN
            else:
                break
            while waiting:
                task = -1
                if server >= 0:
                    figures[3] += 1
                    task = _choose(idle[server], levels, pending, fair, knob, shown, jobs)
                    target = server
                    if task < 0:
                        server = -1
                        if only < 0:
                            break
                        continue
                elif only >= 0:
                    if pending[only]:
                        task, target, _ = _offer(only, idle, shown)
                        figures[3] += 1
                else:
                    user = _choose_new(offers, scores, idle, levels, pending, fair, knob, shown, jobs)
                    figures[3] += 1
                    if user >= 0:
                        task, target = offers[user, 0], offers[user, 1]
                        for other in range(n):
                            if other == user or (offers[other, 0] >= 0 and offers[other, 1] == target):
                                offers[other, 0] = _UNKNOWN
                if task < 0:
                    break
                user = users[task]
                if before[task] >= 0:
                    after[before[task]] = after[task]
                else:
                    first[user] = after[task]
                if after[task] >= 0:
                    before[after[task]] = before[task]
                else:
                    last[user] = before[task]
                pending[user] -= 1
                waiting -= 1
                place[task] = target
                wait[task] = now - submit[task]
                for k in range(m):
                    idle[target, k] -= demand[task, k]
                    idle_all[k] -= demand[task, k]
                    held[user, k] += demand[task, k]
                levels[user] = _level(user, held, weights)
                heapq.heappush(ends, (now + duration[task], np.int64(task)))
    figures[0], figures[4] = now, waiting
    figures[1], figures[2] = (soft / contended, estimated / contended) if contended else (0.0, 0.0)
    figures[5 : 5 + m] /= max(1.0, float(now))
    figures[5 + m : 5 + 2 * m] /= max(1.0, float(last_submit))
    return figures, wait, samples[:taken], shares[:taken]
