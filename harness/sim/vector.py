"""A small simulator of its own: tasks of several resources on servers of different sizes, placed by affinity.

QKnober's section 6.1 (C1 to C3) and Algorithm 1 choose a *task for a server*: which task is best depends on what is
idle on that one server. The Fair Scheduler orders queues before it looks at a node, so its engine cannot say that, and
it knows two resources. Here there are servers, users, tasks with any number of resources, and four rules:

``static``    a user may hold its own part of every resource, no more;
``drf``       the user with the lowest s_i / w_i that has a task which fits; of its tasks the oldest;
``tetris``    of the first 1 - f of all pending tasks, users by s_i / w_i, the one with the greatest affinity;
``qknober``   as long as the lowest s_i / w_i is below rho * s_i^max / w_i, that user's task with the greatest affinity;
              else the task of any user with the greatest affinity. s^max by eq. (11) every ``update_s`` (MDRS updater)
              from each user's mean demand: what runs, and pending tasks in order until the idle space is full (C2).

Affinity is the dot product of demand and the server's idle resources, as fractions of the cluster. Every user shows its
``WINDOW`` oldest pending tasks. A server is filled when a task on it has ended, and a new task goes to the server with
the greatest affinity (static, drf: the first on which it fits). Deterministic; times are whole milliseconds.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

RULES = {"static": 0, "drf": 1, "tetris": 2, "qknober": 3}
_STATIC, _DRF, _TETRIS, _QKNOBER = 0, 1, 2, 3
WINDOW = 8
_TINY = 1e-9
_MOST_COUNTED = 4096  # pending tasks of one user that fill the idle space in its mean demand

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VectorLoad:
    """Servers (count x resources) and tasks in order of submission: user, submission, duration, demand (x resources).

    ``weights`` by user, above 0. Amounts are in the trace's units, times in milliseconds.
    """

    servers: Floats
    weights: Floats
    user: Ints
    submit_ms: Ints
    duration_ms: Ints
    demand: Floats


@dataclass(frozen=True, slots=True)
class VectorRun:
    """What came of it. ``wait_ms`` by task. ``soft_fairness`` is the time mean, while somebody waits, of the largest
    s_i / w_i (weights summing to 1) above the lowest of a user who waits; ``utilisation`` the time mean by resource
    until the last submission (``busy``) and until the end (``utilisation``)."""

    makespan_s: float
    utilisation: list[float]
    busy: list[float]
    soft_fairness: float
    estimated_soft_fairness: float
    mean_completion_s: float
    decisions: int
    #: What was asked for by ``sample_s``: seconds, and for each sample the parts of the resources in use (samples x
    #: resources), the soft fairness degree and theta as they were, how many tasks waited, and s_i by user.
    sample_s: Floats
    samples: Floats  # samples x (resources + 3): in use, soft fairness, theta, tasks waiting
    shares: Floats  # samples x users
    wait_ms: Ints


def simulate(
    load: VectorLoad, rule: str, knob: float = 0.0, *, update_s: float = 60.0, sample_s: float = 0.0
) -> VectorRun:
    """The load under a rule; ``knob`` is rho of ``qknober`` and f of ``tetris``. Every task must fit on some server.

    ``sample_s``: how often the state is noted, in virtual seconds (0: never).
    """
    capacity = load.servers.sum(axis=0)
    weights = load.weights / load.weights.sum()
    figures, wait, samples, shares = _run(
        np.ascontiguousarray(load.servers / capacity),
        weights,
        load.user,
        load.submit_ms,
        load.duration_ms,
        np.ascontiguousarray(load.demand / capacity),
        RULES[rule],
        float(knob),
        int(update_s * 1000),
        int(sample_s * 1000),
    )
    m = len(capacity)
    return VectorRun(
        makespan_s=float(figures[0]) / 1000,
        utilisation=[float(x) for x in figures[5 : 5 + m]],
        busy=[float(x) for x in figures[5 + m : 5 + 2 * m]],
        soft_fairness=float(figures[1]),
        estimated_soft_fairness=float(figures[2]),
        mean_completion_s=float((wait + load.duration_ms).mean() / 1000) if len(wait) else 0.0,
        decisions=int(figures[3]),
        sample_s=np.arange(len(samples), dtype=np.float64) * sample_s,
        samples=samples,
        shares=shares,
        wait_ms=wait,
    )


@njit(cache=True)
def _fits(task, idle, demand):  # type: ignore[no-untyped-def]
    for k in range(idle.shape[0]):  # noqa: SIM110 - compiled: no generators
        if demand[task, k] > idle[k] + _TINY:
            return False
    return True


@njit(cache=True)
def _affinity(task, idle, demand):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(idle.shape[0]):
        total += demand[task, k] * idle[k]
    return total


@njit(cache=True)
def _within(task, user, held, weights, demand):  # type: ignore[no-untyped-def]
    """Whether a user's own part holds the task besides what it has. A task larger than the part may run alone."""
    for k in range(demand.shape[1]):
        if held[user, k] > 0 and held[user, k] + demand[task, k] > weights[user] + _TINY:
            return False
    return True


@njit(cache=True)
def _level(user, held, weights):  # type: ignore[no-untyped-def]
    most = 0.0
    for k in range(held.shape[1]):
        most = max(most, held[user, k])
    return most / weights[user]


@njit(cache=True)
def _best_of(user, idle, first, after, demand, held, weights, rule):  # type: ignore[no-untyped-def]
    """(task, affinity) of a user for a server: the oldest that fits (static, drf) or the one with the most affinity."""
    best, most = -1, -1.0
    task, seen = first[user], 0
    while task >= 0 and seen < WINDOW:
        if _fits(task, idle, demand) and (rule != _STATIC or _within(task, user, held, weights, demand)):
            score = _affinity(task, idle, demand)
            if score > most:
                best, most = task, score
            if rule <= _DRF:
                break
        task = after[task]
        seen += 1
    return best, most


@njit(cache=True)
def _choose(idle, levels, pending, fair, first, after, demand, held, weights, rule, knob):  # type: ignore[no-untyped-def]
    """The task for a server, or -1."""
    n = len(levels)
    if rule <= _DRF:
        chosen, lowest = -1, np.inf
        for user in range(n):
            if pending[user] and levels[user] < lowest:
                task, _ = _best_of(user, idle, first, after, demand, held, weights, rule)
                if task >= 0:
                    chosen, lowest = task, levels[user]
        return chosen
    if rule == _QKNOBER:
        # Users below their fair part, lowest first; one whose tasks do not fit here does not hold the server up.
        chosen, lowest = -1, np.inf
        for user in range(n):
            if pending[user] and levels[user] < fair - _TINY and levels[user] < lowest:
                task, _ = _best_of(user, idle, first, after, demand, held, weights, rule)
                if task >= 0:
                    chosen, lowest = task, levels[user]
        if chosen >= 0:
            return chosen
        cut = np.int64(1) << 60
    else:
        total = 0
        for user in range(n):
            total += pending[user]
        cut = np.int64(max(1, np.ceil((1.0 - knob) * total)))
    best, most = -1, -1.0
    if rule == _TETRIS:
        before = 0
        for user in np.argsort(levels, kind="mergesort"):
            if not pending[user]:
                continue
            if before >= cut and best >= 0:
                break
            before += pending[user]
            task, score = _best_of(user, idle, first, after, demand, held, weights, rule)
            if score > most:
                best, most = task, score
        return best
    for user in range(n):
        if pending[user]:
            task, score = _best_of(user, idle, first, after, demand, held, weights, rule)
            if score > most:
                best, most = task, score
    return best


@njit(cache=True)
def _mean_demands(held, idle_all, first, after, demand, mean):  # type: ignore[no-untyped-def]
    """Mean demand of each user, up to scale: what runs, and pending tasks in order until the idle space is full."""
    n, m = held.shape
    for user in range(n):
        for k in range(m):
            mean[user, k] = held[user, k]
        task, counted = first[user], 0
        left = idle_all.copy()
        while task >= 0 and counted < _MOST_COUNTED:
            # At least one, so that a full cluster learns what a new user is like.
            if counted and not _fits(task, left, demand):
                break
            for k in range(m):
                mean[user, k] += demand[task, k]
                left[k] -= demand[task, k]
            task = after[task]
            counted += 1


@njit(cache=True)
def _update(held, idle_all, first, after, demand, weights, rho, mean):  # type: ignore[no-untyped-def]
    """(rho * s^max / w, theta of Theorem 1) from the users' mean demands, eq. (11)."""
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


@njit(cache=True)
def _gap(levels, pending):  # type: ignore[no-untyped-def]
    """The largest s_i / w_i above the lowest of a user who waits; 0 when nobody does."""
    low, high = np.inf, 0.0
    for user in range(len(levels)):
        high = max(high, levels[user])
        if pending[user]:
            low = min(low, levels[user])
    return max(0.0, high - low) if low < np.inf else 0.0


@njit(cache=True)
def _twice(rows):  # type: ignore[no-untyped-def]
    """The array with room for as many rows again."""
    found = np.zeros((2 * rows.shape[0], rows.shape[1]))
    found[: rows.shape[0]] = rows
    return found


@njit(cache=True)
def _run(  # type: ignore[no-untyped-def]
    servers, weights, users, submit, duration, demand, rule, knob, update_ms, sample_ms
):
    n, m, tasks, count = len(weights), servers.shape[1], len(users), len(servers)
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
    wait = np.zeros(tasks, np.int64)
    mean = np.zeros((n, m))
    ends = [(np.int64(0), np.int64(0))]
    ends.pop()
    figures = np.zeros(5 + 2 * m)
    now: Any = np.int64(0)
    arrived, waiting, fair, theta = 0, 0, 0.0, 0.0
    next_update = np.int64(0)
    soft, estimated, contended = 0.0, 0.0, 0.0
    queue = np.zeros(tasks + 1, np.int64)  # tasks that may be placed now
    last_submit = submit[tasks - 1] if tasks else 0
    taken, next_sample = 0, np.int64(0)
    rows = 64 if sample_ms else 0
    samples, shares = np.zeros((rows, m + 3)), np.zeros((rows, n))
    while arrived < tasks or len(ends):
        # The next instant.
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
            # The state until now's next instant is what holds at the samples in between.
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
        # Ends: servers that have room again.
        freed = 0
        while len(ends) and ends[0][0] == now:
            _, ended = heapq.heappop(ends)
            user, host = users[ended], place[ended]
            for k in range(m):
                idle[host, k] += demand[ended, k]
                held[user, k] = max(0.0, held[user, k] - demand[ended, k])
                idle_all[k] += demand[ended, k]
            levels[user] = _level(user, held, weights)
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
        # First the servers on which something ended, then, one after another, what is new. Under static an end also
        # gives room within the user's own part, which may lie on any server.
        for step in range(freed + (arrived - fresh)):
            server: Any = -1
            only: Any = -1
            if step < freed:
                server = place[queue[step]]
                if rule == _STATIC:
                    only = users[queue[step]]
            else:
                only = users[fresh + step - freed]
            while waiting:
                task = -1
                if server >= 0:
                    figures[3] += 1
                    task = _choose(idle[server], levels, pending, fair, first, after, demand, held, weights, rule, knob)
                    target = server
                    if task < 0:
                        server = -1
                        if only < 0:
                            break
                        continue
                elif only >= 0 and pending[only]:
                    target, most = -1, -1.0
                    candidate, seen = first[only], 0
                    while candidate >= 0 and seen < WINDOW and task < 0:
                        if rule != _STATIC or _within(candidate, only, held, weights, demand):
                            for s in range(count):
                                if _fits(candidate, idle[s], demand):
                                    if rule <= _DRF:
                                        task, target = candidate, s
                                        break
                                    score = _affinity(candidate, idle[s], demand)
                                    if score > most:
                                        task, target, most = candidate, s, score
                        candidate = after[candidate]
                        seen += 1
                    figures[3] += 1
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
    figures[0] = now
    figures[1] = soft / contended if contended else 0.0
    figures[2] = estimated / contended if contended else 0.0
    for k in range(m):
        figures[5 + k] /= max(1.0, float(now))
        figures[5 + m + k] /= max(1.0, float(last_submit))
    return figures, wait, samples[:taken], shares[:taken]
