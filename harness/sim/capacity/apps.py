"""Applications in the scheduler: they come, are activated, ask and go.

Facts: AbstractLeafQueue.submitApplication, AppSchedulingInfo of Hadoop 3.4.2.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.capacity.activation import activate
from harness.sim.capacity.containers import (
    change_pending,
    complete,
    drop_ask,
    drop_reservation,
    forget_app,
    put_ask,
)
from harness.sim.capacity.order import (
    drop_stale,
    forget_stale,
    into_waiting,
    join_waiting,
    leave_active,
    leave_waiting,
    mark_stale,
    out_of_waiting,
    place_app,
)
from harness.sim.capacity.parallel import arrive, let_others_in, release_room, untrack
from harness.sim.capacity.resources import normalize
from harness.sim.capacity.state import (
    APP_END,
    DRAINING,
    IGNORED,
    MUT_APPPRIORITY,
    NEED_ROOM,
    REJECTED,
    RUNNING,
    STOPPED,
    S,
)
from harness.sim.capacity.users import count_apps, ensure_user, forget_user, show_headroom, sleep, wake
from harness.sim.containers import by_hash, find_ask, free_if_gone, settle_given
from harness.sim.kernel import kernel


@kernel
def _put(s: S, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int) -> None:
    x = s.a[i]
    r = find_ask(s.r, x, priority, alloc_id)
    if count <= 0:
        if r >= 0:
            e = s.r[r]
            change_pending(s, i, -e.count * e.mb, -e.count * e.vcores)
            e.count = 0
            drop_ask(s, i, r)
        if x.req_head < 0:
            sleep(s, i)
    else:
        if r < 0:
            r = put_ask(s, i, priority, alloc_id)
            wake(s, i)
        else:
            settle_given(s, r)
        e = s.r[r]
        change_pending(s, i, count * mb - e.count * e.mb, count * vcores - e.count * e.vcores)
        e.count, e.mb, e.vcores = count, mb, vcores
    s.q[x.q].stuck = 0
    if s.q[x.q].sized == 1 and (x.managed == 0 or x.am_running == 1):
        mark_stale(s, i)


@kernel
def ask(s: S, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int, now: int) -> int:
    """An application asks for `count` containers under (priority, alloc_id), instead of what it asked for there."""
    if s.g[0].n_free_r < 1:
        return NEED_ROOM
    mb, vcores = normalize(s, mb, vcores)
    _put(s, i, priority, alloc_id, count, mb, vcores)
    show_headroom(s, i)
    return 0


@kernel
def _new_attempt(s: S, i: int, now: int) -> None:
    g, x = s.g[0], s.a[i]
    g.serial += 1
    x.attempt += 1
    x.serial = g.serial
    x.am_running, x.start_ms, x.cid, x.started = 0, now, 0, 0
    x.used_mb, x.used_vcores, x.reserved_mb, x.reserved_vcores, x.pending_mb, x.pending_vcores = 0, 0, 0, 0, 0, 0
    x.usage_mb, x.usage_vcores, x.integral, x.integral_ms, x.more_mb, x.more_vc = 0, 0, 0.0, now, 0.0, 0.0
    x.cu, x.cp, x.n_req, x.req_head, x.req_cap = 0, 0, 0, -1, 16
    x.live_head, x.live_tail, x.n_live, x.live_cap, x.held_head, x.n_held = -1, -1, 0, 16, -1, 0
    x.active, x.waiting, x.in_asks, x.stale, x.alive, x.ghost = 0, 0, 0, 0, 1, 0
    x.seen, x.runnable, x.n_runnable, x.held_back = 0, 0, 0, 0
    mb, vcores = g.min_mb, g.min_vcores
    if x.am_ask == 1:
        mb, vcores = normalize(s, x.am_mb, x.am_vcores)
    x.am_mb, x.am_vcores = mb, vcores
    arrive(s, i, now)
    if x.am_ask == 1:
        _put(s, i, 0, -1, 1, mb, vcores)


@kernel
def add_app(s: S, uq: int, priority: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> int:
    """An application of a user in a leaf (`uq`: `Scheduler.user_in`) arrives; its slot, NEED_ROOM or REJECTED.

    `managed`: it has an AM, which is its first container; `am_mb` < 0: the AM is not asked for here. `app_id` < 1: the
    next number.
    """
    g, u = s.g[0], s.u[uq]
    k = u.q
    q = s.q[k]
    if g.n_free_app < 1 or g.n_free_r < 1 or g.n_log + q.n_waiting + 2 > len(s.log):
        return NEED_ROOM
    if app_id < 1:
        app_id = g.next_app_id
    g.next_app_id = max(g.next_app_id, app_id + 1)
    if q.state != RUNNING or q.n_active + q.n_waiting + q.n_held_back >= q.max_apps:
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
    i = g.free_app
    x = s.a[i]
    g.free_app = x.free_next
    g.n_free_app -= 1
    x.q, x.user, x.uq, x.id, x.managed, x.am_ask = k, u.user, uq, app_id, 1 if managed else 0, 1 if am_mb >= 0 else 0
    x.am_mb, x.am_vcores, x.listed, x.attempt, x.n, x.tag = am_mb, am_vcores, 0, 0, 0, 0
    x.priority = clamp_priority(s, priority)
    _new_attempt(s, i, now)
    return i


@kernel
def clamp_priority(s: S, priority: int) -> int:
    """An application's priority as the scheduler takes it (yarn.cluster.max-application-priority)."""
    if s.g[0].mutations & MUT_APPPRIORITY:
        return 0
    return max(min(priority, s.g[0].max_priority), 0)


@kernel
def set_priority(s: S, i: int, priority: int) -> int:
    """An application's priority changes."""
    x = s.a[i]
    priority = clamp_priority(s, priority)
    if x.priority == priority:
        return 0
    x.priority = priority
    forget_stale(s, i)
    if x.waiting == 1:
        leave_waiting(s, i)
    # One that is held back for a number of parallel applications is among the waiting from now on, too.
    if x.waiting == 1 or x.active == 0:
        join_waiting(s, i)
    place_app(s, i)
    return 0


@kernel
def _stop(s: S, i: int, now: int) -> None:
    """The attempt goes: containers are killed, reservations and asks dropped."""
    x = s.a[i]
    k = x.q
    q = s.q[k]
    n = by_hash(s, x.live_head, True, x.live_cap, s.work, 0)
    for at in range(n):
        c = s.work[at]
        complete(s, c, APP_END, now, True)
        free_if_gone(s, c)
    while x.held_head >= 0:
        h = s.h[x.held_head]
        best, lowest, ni = -1, 0, h.head
        while ni >= 0:
            bucket = (s.n[ni].hash ^ (s.n[ni].hash >> 16)) & (h.cap - 1)
            if best < 0 or bucket < lowest:
                best, lowest = ni, bucket
            ni = s.n[ni].res_next
        drop_reservation(s, best, now)
    change_pending(s, i, -x.pending_mb, -x.pending_vcores)
    while x.req_head >= 0:
        drop_ask(s, i, x.req_head)
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
        # Hadoop counts one that was held back down, too, though it never counted it up.
        count_apps(s, x.uq, -1, 0)
    if u.act + u.pend == 0:
        forget_user(s, x.uq)
    # One that asks had let in still stands among the waiting: it may be activated, but there is no attempt any more.
    x.ghost = 1
    activate(s, k, now)
    let_others_in(s, i, now)


@kernel
def _stop_room(s: S, i: int) -> bool:
    g, x = s.g[0], s.a[i]
    return (
        g.n_log + x.n_live + x.n_held + s.q[x.q].n_waiting + release_room(s) + 4 <= len(s.log)
        and g.n_free_r >= x.n_live + 1
        and g.n_free_app >= 1
        and len(s.work) > x.n_live + 1
    )


@kernel
def end_app(s: S, i: int, now: int) -> int:
    """An application ends; its live containers are killed."""
    if s.a[i].alive == 0:
        return IGNORED
    if not _stop_room(s, i):
        return NEED_ROOM
    _stop(s, i, now)
    sleep(s, i)
    p = s.a[i].q
    while p >= 0:
        q = s.q[p]
        q.n_apps -= 1
        if q.state == DRAINING and q.n_apps == 0:
            q.state = STOPPED
        p = q.parent
    forget_app(s, i)
    return 0


@kernel
def _leave_ghost(s: S, i: int) -> None:
    """The attempt that has gone still stands among the waiting: another slot takes its place there."""
    g, x = s.g[0], s.a[i]
    j = g.free_app
    g.free_app = s.a[j].free_next
    g.n_free_app -= 1
    y = s.a[j]
    y.q, y.user, y.uq, y.id, y.priority, y.attempt = x.q, x.user, x.uq, x.id, x.priority, x.attempt
    y.am_mb, y.am_vcores, y.start_ms, y.cu, y.cp = x.am_mb, x.am_vcores, x.start_ms, 0, 0
    y.alive, y.ghost, y.active, y.in_asks, y.stale, y.req_head, y.listed = 0, 1, 0, 0, 0, -1, 0
    y.used_mb, y.used_vcores, y.reserved_mb, y.reserved_vcores, y.pending_mb, y.pending_vcores = 0, 0, 0, 0, 0, 0
    y.managed, y.am_running, y.live_head, y.held_head, y.n_live, y.n_held = x.managed, 1, -1, -1, 0, 0
    y.waiting = 1
    into_waiting(s.a, s.q[x.q], j, i)
    out_of_waiting(s.a, s.q[x.q], i)


@kernel
def restart_app(s: S, i: int, am_mb: int, am_vcores: int, now: int) -> int:
    """An application's attempt has failed; a new one begins."""
    x = s.a[i]
    if x.alive == 0:
        return IGNORED
    if not _stop_room(s, i) or s.g[0].n_log + x.n_live + x.n_held + 2 * s.q[x.q].n_waiting + release_room(s) + 8 > len(
        s.log
    ):
        return NEED_ROOM
    _stop(s, i, now)
    if x.waiting == 1 or x.active == 1:
        _leave_ghost(s, i)
    if am_mb >= 0:
        x.am_mb, x.am_vcores = am_mb, am_vcores
    _new_attempt(s, i, now)
    return 0
