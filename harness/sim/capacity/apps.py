"""Applications in the Capacity Scheduler: their arrival and end, and changes of their priority.

Follows AbstractLeafQueue.submitApplication and CapacityScheduler.doneApplicationAttempt of Hadoop 3.4.2. The asks are
in harness.sim.attempts.
"""

from __future__ import annotations

from harness.sim.attempts import begin_attempt, put
from harness.sim.capacity.activation import activate
from harness.sim.capacity.order import (
    drop_stale,
    forget_stale,
    into_waiting,
    join_waiting,
    leave_active,
    leave_waiting,
    out_of_waiting,
    place_app,
)
from harness.sim.capacity.parallel import arrive, gone, release_room, untrack
from harness.sim.capacity.resources import normalize
from harness.sim.capacity.state import DRAINING, MUT_APPPRIORITY, NEED_ROOM, REJECTED, RUNNING, STOPPED, State
from harness.sim.capacity.users import count_apps, ensure_user, forget_user, sleep
from harness.sim.containers import free_app, new_app
from harness.sim.kernel import kernel


@kernel
def _new_attempt(s: State, i: int, now: int) -> None:
    g, x = s.g[0], s.a[i]
    begin_attempt(s, i, now)
    x.used_mb, x.used_vcores, x.reserved_mb, x.reserved_vcores, x.cu, x.cp, x.held_head = 0, 0, 0, 0, 0, 0, -1
    x.integral, x.integral_ms, x.more_mb, x.more_vc = 0.0, now, 0.0, 0.0
    x.active, x.waiting, x.in_asks, x.stale, x.ghost = 0, 0, 0, 0, 0
    x.seen, x.runnable, x.n_runnable, x.held_back = 0, 0, 0, 0
    mb, vcores = g.min_mb, g.min_vcores
    if x.am_ask == 1:
        mb, vcores = normalize(s, x.q, x.am_mb, x.am_vcores)
    x.am_mb, x.am_vcores = mb, vcores
    arrive(s, i, now)
    if x.am_ask == 1:
        put(s, i, 0, -1, 1, mb, vcores)


@kernel
def add_app(s: State, uq: int, priority: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> int:
    """Add an application of a user to a leaf (`uq`: `Scheduler.user_slot`); return its slot, NEED_ROOM or REJECTED.

    `managed`: it has an AM, which is its first container. `am_mb` < 0: this call does not ask for the AM's container.
    `app_id` < 1: use the next number.
    """
    g, u = s.g[0], s.u[uq]
    k = u.q
    q = s.q[k]
    if g.n_free_app < 1 or g.n_free_r < 1 or g.n_log + q.n_waiting + 2 > len(s.log):
        return NEED_ROOM
    if app_id < 1:
        app_id = g.next_app_id
    g.next_app_id = max(g.next_app_id, app_id + 1)
    if q.state != RUNNING or q.n_active + q.n_waiting + q.n_nonrun >= q.max_apps:
        return REJECTED
    ensure_user(s, uq)
    if u.act + u.pend >= q.max_user_apps:
        return REJECTED
    p = k
    while p >= 0:
        if s.q[p].state != RUNNING:
            return REJECTED
        p = s.q[p].parent
    p = k
    while p >= 0:
        s.q[p].n_apps += 1
        p = s.q[p].parent
    i = new_app(s, k, u.person, app_id, 1 if managed else 0)
    x = s.a[i]
    x.uq, x.am_ask, x.am_mb, x.am_vcores, x.listed = uq, 1 if am_mb >= 0 else 0, am_mb, am_vcores, 0
    x.priority = clamp_priority(s, priority)
    _new_attempt(s, i, now)
    return i


@kernel
def add_app_of_user(
    s: State, leaf: int, user: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int
) -> int:
    """Add an application as `add_app` does, without a priority; ``user`` is the user's slot in this leaf."""
    return add_app(s, user, 0, managed, am_mb if managed else -1, am_vcores, app_id, now)


@kernel
def clamp_priority(s: State, priority: int) -> int:
    """Return an application's priority as the scheduler accepts it (yarn.cluster.max-application-priority)."""
    if s.g[0].mutations & MUT_APPPRIORITY:
        return 0
    return max(min(priority, s.g[0].max_priority), 0)


@kernel
def set_priority(s: State, i: int, priority: int) -> int:
    """Change an application's priority (clamped to the cluster's range), and its position in its leaf's lists."""
    x = s.a[i]
    priority = clamp_priority(s, priority)
    if x.priority == priority:
        return 0
    x.priority = priority
    forget_stale(s, i)
    if x.waiting == 1:
        leave_waiting(s, i)
    # As in Hadoop, an application that max-parallel-apps blocks also joins the waiting list here.
    if x.waiting == 1 or x.active == 0:
        join_waiting(s, i)
    place_app(s, i)
    return 0


@kernel
def end_records(s: State, i: int) -> int:
    """Return how many log records the end and restart of an application may need: one for each possible activation."""
    return 2 * s.q[s.a[i].q].n_waiting + release_room(s)


@kernel
def leave(s: State, i: int, now: int) -> None:
    """Remove an attempt that has ended from the lists of its queue and its user."""
    x = s.a[i]
    k = x.q
    q = s.q[k]
    drop_stale(s, i)
    ensure_user(s, x.uq)
    u = s.u[x.uq]
    untrack(s, i)
    if x.active == 1:
        leave_active(s, i)
        q.am_mb -= x.am_mb
        q.am_vcores -= x.am_vcores
        u.am_mb -= x.am_mb
        u.am_vcores -= x.am_vcores
        count_apps(s, x.uq, 0, -1)
    else:
        if x.waiting == 1:
            leave_waiting(s, i)
        # Hadoop also decrements the count for a blocked application, although it never incremented it.
        count_apps(s, x.uq, -1, 0)
    if u.act + u.pend == 0:
        forget_user(s, x.uq)
    # An application that became active because of its asks is still in the waiting list, so it may be activated
    # although its attempt has ended.
    x.ghost = 1
    activate(s, k, now)
    gone(s, i)


@kernel
def forget(s: State, i: int) -> None:
    """Remove an ended application from its queues, of which draining ones may stop.

    The application's slot is freed unless the waiting or the active list still contains its attempt.
    """
    x = s.a[i]
    sleep(s, i)
    p = x.q
    while p >= 0:
        q = s.q[p]
        q.n_apps -= 1
        if q.state == DRAINING and q.n_apps == 0:
            q.state = STOPPED
        p = q.parent
    drop_stale(s, i)
    x.alive = 0
    if x.active == 1 or x.waiting == 1:
        x.ghost = 1
        return
    free_app(s.a, s.g[0], i)


@kernel
def _leave_ghost(s: State, i: int) -> None:
    """Move an ended attempt that is still on the waiting list to another slot."""
    x = s.a[i]
    j = new_app(s, x.q, x.user, x.id, x.managed)
    y = s.a[j]
    y.uq, y.priority, y.attempt = x.uq, x.priority, x.attempt
    y.am_mb, y.am_vcores, y.start_ms, y.cu, y.cp = x.am_mb, x.am_vcores, x.start_ms, 0, 0
    y.alive, y.ghost, y.active, y.in_asks, y.stale, y.req_head, y.listed = 0, 1, 0, 0, 0, -1, 0
    y.used_mb, y.used_vcores, y.reserved_mb, y.reserved_vcores, y.pending_mb, y.pending_vcores = 0, 0, 0, 0, 0, 0
    y.am_running, y.live_head, y.held_head, y.n_live, y.n_reserved, y.n_asks, y.waiting = 1, -1, -1, 0, 0, 0, 1
    into_waiting(s.a, s.q[x.q], j, i)
    out_of_waiting(s.a, s.q[x.q], i)


@kernel
def again(s: State, i: int, am_mb: int, am_vcores: int, now: int) -> None:
    """Start a new attempt of an application after an earlier attempt has ended."""
    x = s.a[i]
    if x.waiting == 1 or x.active == 1:
        _leave_ghost(s, i)
    if am_mb >= 0:
        x.am_mb, x.am_vcores = am_mb, am_vcores
    _new_attempt(s, i, now)
