"""Applications in the scheduler: they come, ask and go; limits on how many run at once.

Facts: FairScheduler.addApplicationAttempt/removeApplicationAttempt/allocate, MaxRunningAppsEnforcer, AppSchedulingInfo
of Hadoop 3.4.2. One case differs: where applications of the same millisecond wait both for their queue and for their
user, Hadoop can start one of them twice; here it starts once.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

import numpy as np

from harness.sim.containers import app_hash, by_hash, find_ask, free_if_gone, settle_given
from harness.sim.fair.containers import (
    change_pending,
    complete,
    drop_ask,
    lower_bounds,
    mark_asks,
    mark_dirty,
    put_ask,
    unreserve,
)
from harness.sim.fair.order import place
from harness.sim.fair.state import APP_END, IGNORED, INVALID_ASK, NEED_ROOM, REJECTED, SOME_SHARES, S
from harness.sim.fair.turns import seat
from harness.sim.kernel import kernel
from harness.sim.lists import linked

_LONG_MAX = 2**63 - 1

#: A queue's applications that run, and that wait; a user's that wait.
_into_running, _out_of_running = linked("run_head", "run_tail", "run_prev", "run_next")
_into_waiting, _out_of_waiting = linked("nr_head", "nr_tail", "nr_prev", "nr_next")
_into_users, _out_of_users = linked("nr_head", "nr_tail", "user_prev", "user_next")


@kernel
def name_key(app_id: int) -> int:
    """A number that orders application ids as their names are ordered as text (application_<ts>_0001 ...)."""
    digits, scale = 4, 10000
    while app_id >= scale:
        digits += 1
        scale *= 10
    padded = app_id
    for _ in range(10 - digits):
        padded *= 10
    return padded * 16 + digits


@kernel
def normalize(s: S, leaf: int, mb: int, vcores: int) -> tuple[int, int]:
    """An ask's size as the scheduler takes it: up to minimum and increment, down to the largest allocation."""
    g = s.g[0]
    top_mb, top_vcores = g.conf_max_mb, g.conf_max_vcores
    if g.max_by_nodes == 1 and g.node_max_known == 1:
        top_mb, top_vcores = min(top_mb, g.node_max_mb), min(top_vcores, g.node_max_vcores)
    q = s.q[leaf]
    top_mb, top_vcores = min(top_mb, q.max_c_mb), min(top_vcores, q.max_c_vcores)
    mb, vcores = max(mb, g.min_mb), max(vcores, g.min_vcores)
    if g.inc_mb > 0:
        mb = (mb + g.inc_mb - 1) // g.inc_mb * g.inc_mb
    if g.inc_vcores > 0:
        vcores = (vcores + g.inc_vcores - 1) // g.inc_vcores * g.inc_vcores
    return min(mb, top_mb), min(vcores, top_vcores)


@kernel
def _can_run(s: S, leaf: int, user: int) -> bool:
    """MaxRunningAppsEnforcer.canAppBeRunnable."""
    if s.u[user].n_run >= s.u[user].max_apps:
        return False
    p = leaf
    while p >= 0:
        if s.q[p].n_run >= s.q[p].max_apps:
            return False
        p = s.q[p].parent
    return True


@kernel
def _count_running(s: S, leaf: int, more: int) -> None:
    """One more (or less) application runs in a leaf. Fair shares are for queues in which one does."""
    s.g[0].shares_dirty = max(s.g[0].shares_dirty, SOME_SHARES)
    p = leaf
    while p >= 0:
        q = s.q[p]
        ran = q.n_run > 0
        q.n_run += more
        if ran != (q.n_run > 0) and q.parent >= 0:
            q.turned = 1 - q.turned
            s.q[q.parent].n_turned += 2 * q.turned - 1
        p = q.parent


@kernel
def _start(s: S, i: int) -> None:
    """The application becomes runnable."""
    x = s.a[i]
    x.runnable = 1
    q = s.q[x.q]
    _into_running(s.a, q, i, q.run_tail)
    q.members_dirty = 1
    _count_running(s, x.q, 1)
    s.u[x.user].n_run += 1
    r = x.req_head
    while r >= 0:
        lower_bounds(s, i, s.r[r].mb, s.r[r].vcores)
        r = s.r[r].next
    place(s, i)


@kernel
def _wait(s: S, i: int) -> None:
    """The application joins those that wait, at its queue's and its user's end of the line."""
    x = s.a[i]
    x.runnable = 0
    q, u = s.q[x.q], s.u[x.user]
    _into_waiting(s.a, q, i, q.nr_tail)
    q.n_nonrun += 1
    _into_users(s.a, u, i, u.nr_tail)


@kernel
def _no_longer_waits(s: S, i: int) -> None:
    x = s.a[i]
    q = s.q[x.q]
    _out_of_waiting(s.a, q, i)
    q.n_nonrun -= 1
    _out_of_users(s.a, s.u[x.user], i)


@kernel
def _list_time(s: S, i: int) -> int:
    return s.a[i].start_ms if i >= 0 else _LONG_MAX


@kernel
def _line_up(s: S, base: int, n: int, which: int, time: int) -> int:
    """java.util.PriorityQueue.offer of (time, list); entries are two words from work[base]."""
    w = s.work
    k = n
    while k > 0:
        above = (k - 1) >> 1
        if time >= w[base + 2 * above]:
            break
        w[base + 2 * k], w[base + 2 * k + 1] = w[base + 2 * above], w[base + 2 * above + 1]
        k = above
    w[base + 2 * k], w[base + 2 * k + 1] = time, which
    return n + 1


@kernel
def _next_up(s: S, base: int, n: int) -> int:
    """java.util.PriorityQueue.poll; the head has been read already. The new size."""
    w = s.work
    n -= 1
    time, which = w[base + 2 * n], w[base + 2 * n + 1]
    k = 0
    while 2 * k + 1 < n:
        below = 2 * k + 1
        if below + 1 < n and w[base + 2 * below] > w[base + 2 * below + 2]:
            below += 1
        if time <= w[base + 2 * below]:
            break
        w[base + 2 * k], w[base + 2 * k + 1] = w[base + 2 * below], w[base + 2 * below + 1]
        k = below
    if n > 0:
        w[base + 2 * k], w[base + 2 * k + 1] = time, which
    return n


@kernel
def _let_run(s: S, top: int, user: int, most: int) -> None:
    """MaxRunningAppsEnforcer.updateAppsRunnability: waiting applications below `top` (-1: none) and of `user` (-1).

    `most`: how many may start at most, -1: as many as lists were gathered.
    """
    w = s.work
    # Lists: w[3k]: next application, w[3k + 1]: 0 a queue's list, 1 a user's.
    n_lists = 0
    if top >= 0:
        # Leaves below `top`, depth first in order of creation, through queues that have room.
        p, going_down = top, True
        while True:
            q = s.q[p]
            if going_down and q.n_run < q.max_apps:
                if q.leaf == 1:
                    w[2 * n_lists], w[2 * n_lists + 1] = q.nr_head, 0
                    n_lists += 1
                elif q.first_child >= 0:
                    p = q.first_child
                    continue
            if p == top:
                break
            if q.next_sibling >= 0:
                p, going_down = q.next_sibling, True
            else:
                p, going_down = q.parent, False
    if user >= 0:
        w[2 * n_lists], w[2 * n_lists + 1] = s.u[user].nr_head, 1
        n_lists += 1
    if most < 0:
        most = n_lists
    base = 2 * n_lists
    n = 0
    for k in range(n_lists):
        n = _line_up(s, base, n, k, _list_time(s, w[2 * k]))
    started = base + 2 * n_lists
    n_started, previous = 0, -1
    while n > 0 and w[base] != _LONG_MAX:
        which = w[base + 1]
        n = _next_up(s, base, n)
        i = w[2 * which]
        after = s.a[i].nr_next if w[2 * which + 1] == 0 else s.a[i].user_next
        w[2 * which] = after
        n = _line_up(s, base, n, which, _list_time(s, after))
        if i == previous:
            continue
        if s.a[i].runnable == 0 and _can_run(s, s.a[i].q, s.a[i].user):
            _start(s, i)
            w[started + n_started] = i
            n_started += 1
            if n_started >= most:
                break
        previous = i
    for k in range(n_started):
        _no_longer_waits(s, w[started + k])


@kernel
def let_run_after_reload(s: S) -> None:
    """MaxRunningAppsEnforcer.updateRunnabilityOnReload."""
    _let_run(s, 0, -1, _LONG_MAX)


@kernel
def _new_attempt(s: S, i: int, am_mb: int, am_vcores: int, now: int) -> None:
    g, x = s.g[0], s.a[i]
    g.serial += 1
    x.attempt += 1
    x.serial = g.serial
    x.am_running, x.am_mb, x.am_vcores, x.start_ms, x.cid, x.started = 0, 0, 0, now, 0, 0
    x.usage_mb, x.usage_vcores, x.pending_mb, x.pending_vcores, x.demand_mb, x.demand_vcores = 0, 0, 0, 0, 0, 0
    x.fair_mb, x.fair_vcores, x.n_asks, x.n_req, x.req_head, x.req_cap = 0, 0, 0, 0, -1, 16
    x.live_head, x.live_tail, x.n_live, x.live_cap, x.heap, x.reservable = -1, -1, 0, 16, -1, 0
    x.fstarve_mb, x.fstarve_vcores, x.mstarve_mb, x.mstarve_vcores = 0, 0, 0, 0
    x.last_at_fair_ms, x.next_check_ms, x.preempt_mb, x.preempt_vcores, x.n_reserved = now, 0, 0, 0, 0
    x.weight = np.float32(0.0) if g.size_weight == 1 else np.float32(1.0)
    x.alive = 1
    if _can_run(s, x.q, x.user):
        _start(s, i)
    else:
        _wait(s, i)
    if x.managed == 1 and am_mb >= 0:
        _put(s, i, 0, -1, 1, am_mb, am_vcores, now)


@kernel
def add_app(s: S, leaf: int, user: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> int:
    """An application arrives; its slot, or NEED_ROOM, or REJECTED.

    `managed`: it has an AM, which is its first container; `am_mb` < 0: the AM is not asked for here but by the first
    `ask`. `app_id` < 1: the next number.
    """
    g, q = s.g[0], s.q[leaf]
    if g.n_free_app < 1 or g.n_free_r < 1 or q.n_run + q.n_nonrun + 1 > q.heap_cap:
        return NEED_ROOM
    if app_id < 1:
        app_id = g.next_app_id
    g.next_app_id = max(g.next_app_id, app_id + 1)
    if managed and am_mb >= 0 and ((q.max_mb == 0 and am_mb > 0) or (q.max_vcores == 0 and am_vcores > 0)):
        return REJECTED
    i = g.free_app
    x = s.a[i]
    g.free_app = x.free_next
    g.n_free_app -= 1
    x.q, x.user, x.id, x.name_key, x.managed = leaf, user, app_id, name_key(app_id), 1 if managed else 0
    x.attempt, x.n, x.dirty, x.key, x.integral, x.integral_ms, x.tag = 0, 0, 0, 0.0, 0.0, now, 0
    x.omega, x.kg, x.phi, x.ahead_a, x.ahead_b, x.more_mb, x.more_vc = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x.hash = app_hash(s, app_id)
    _new_attempt(s, i, am_mb, am_vcores, now)
    return i


@kernel
def _put(s: S, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int, now: int) -> None:
    x = s.a[i]
    mb, vcores = normalize(s, x.q, mb, vcores)
    r = find_ask(s.r, x, priority, alloc_id)
    if r < 0:
        if count <= 0:
            return
        r = put_ask(s, i, priority, alloc_id)
    settle_given(s, r)
    e = s.r[r]
    count = max(count, 0)
    change_pending(s, i, now, count * mb - e.count * e.mb, count * vcores - e.count * e.vcores)
    x.n_asks += count - e.count
    if e.mb != mb or e.vcores != vcores:
        mark_asks(s, x.q)
    e.count, e.mb, e.vcores = count, mb, vcores
    if mb >= s.g[0].reserve_mb or vcores >= s.g[0].reserve_vcores:
        s.g[0].large_asks = 1
    if count == 0:
        drop_ask(s, i, r)
    elif x.runnable == 1:
        lower_bounds(s, i, mb, vcores)
    place(s, i)


@kernel
def ask(s: S, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int, now: int) -> int:
    """`count` containers of this size are outstanding from now on under (priority, alloc_id); 0 takes the ask back.

    `alloc_id` is -1 where AMs give none. INVALID_ASK where the queue may use nothing of a resource that is wanted.
    """
    x = s.a[i]
    if x.alive == 0:
        return IGNORED
    if s.g[0].n_free_r < 1:
        return NEED_ROOM
    q = s.q[x.q]
    if (q.max_mb == 0 and mb > 0) or (q.max_vcores == 0 and vcores > 0):
        return INVALID_ASK
    _put(s, i, priority, alloc_id, count, mb, vcores, now)
    return 0


@kernel
def stops_running(s: S, i: int) -> None:
    """A runnable application leaves its queue's and its user's lists."""
    x = s.a[i]
    q = s.q[x.q]
    _out_of_running(s.a, q, i)
    q.members_dirty = 1
    if x.am_running == 1:
        q.am_mb -= x.am_mb
        q.am_vcores -= x.am_vcores
    seat(s, x.q)
    s.u[x.user].n_run -= 1
    _count_running(s, x.q, -1)


@kernel
def let_others_run(s: S, old: int, user: int) -> None:
    """MaxRunningAppsEnforcer.updateRunnabilityOnAppRemoval."""
    highest, p = -1, old
    while p >= 0:
        if s.q[p].n_run == s.q[p].max_apps - 1:
            highest = p
        p = s.q[p].parent
    of_user = user if s.u[user].n_run == s.u[user].max_apps - 1 else -1
    if highest >= 0 or of_user >= 0:
        _let_run(s, highest, of_user, -1)


@kernel
def _remove_attempt(s: S, i: int, now: int) -> None:
    x = s.a[i]
    n = by_hash(s, x.live_head, True, x.live_cap, s.work, 0)
    for k in range(n):
        c = s.work[k]
        complete(s, c, APP_END, now, True)
        free_if_gone(s, c)
    if x.n_reserved > 0:
        for ni in range(len(s.n)):
            if s.n[ni].alive == 1 and s.n[ni].res_app == i:
                unreserve(s, ni, now)
    while x.req_head >= 0:
        r = x.req_head
        e = s.r[r]
        change_pending(s, i, now, -e.count * e.mb, -e.count * e.vcores)
        drop_ask(s, i, r)
    x.n_asks = 0
    x.alive = 0
    place(s, i)
    q = s.q[x.q]
    q.sum_mb -= x.demand_mb
    q.sum_vcores -= x.demand_vcores
    x.demand_mb, x.demand_vcores = 0, 0
    s.g[0].demand_dirty = 1
    if x.runnable == 0:
        _no_longer_waits(s, i)
        return
    stops_running(s, i)
    let_others_run(s, x.q, x.user)


@kernel
def _end_room(s: S, i: int) -> bool:
    x, g = s.a[i], s.g[0]
    return g.n_log + x.n_live + x.n_reserved + 4 <= len(s.log) and g.n_free_r >= x.n_live + 1


@kernel
def end_app(s: S, i: int, now: int) -> int:
    """The application is over: what still runs is killed (APP_END). Its slot is recycled at the next update."""
    if s.a[i].alive == 0:
        return IGNORED
    if not _end_room(s, i):
        return NEED_ROOM
    _remove_attempt(s, i, now)
    mark_dirty(s, i)
    return 0


@kernel
def restart_app(s: S, i: int, am_mb: int, am_vcores: int, now: int) -> int:
    """The attempt failed: as `end_app`, then a new attempt in the same slot; asks are gone, `n` goes on counting."""
    if s.a[i].alive == 0:
        return IGNORED
    if not _end_room(s, i):
        return NEED_ROOM
    _remove_attempt(s, i, now)
    _new_attempt(s, i, am_mb, am_vcores, now)
    return 0
