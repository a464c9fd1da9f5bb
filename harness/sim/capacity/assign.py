"""Assignment at a node's heartbeat: from the root down to an application, one container or reservation at a time.

Follows CapacityScheduler.allocateContainersToNode and tryCommit, AbstractParentQueue and AbstractLeafQueue
.assignContainers, and RegularContainerAllocator of Hadoop 3.4.2.
"""

from __future__ import annotations

import numpy as np

from harness.sim.attempts import grant
from harness.sim.capacity.capacities import child_limit, leaf_limit
from harness.sim.capacity.containers import (
    charge,
    drop_reservation,
    find_held,
    reserve,
    unreserve,
)
from harness.sim.capacity.order import app_before, exclude, first_child, look_at_stale, mark_stale, place_child
from harness.sim.capacity.resources import compare, div32, fits, has_room, positive, ratio, smaller
from harness.sim.capacity.state import (
    LIMIT,
    MUT_BLOCKED,
    MUT_HASHORDER,
    MUT_RESERVE,
    MUT_STALE,
    MUT_STARVE,
    NOTHING,
    PROPOSED,
    State,
)
from harness.sim.capacity.users import refresh_limit, sleep
from harness.sim.containers import find_ask, log_container
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel
from harness.sim.state import ASSIGNED

_F1 = single(1.0)


@kernel
def _wants_more(s: State, i: int, r: int) -> bool:
    """Return whether an ask may reserve a further node.

    It may as long as its outstanding count plus the starvation bonus exceeds the number of nodes reserved for it.
    """
    g, e = s.g[0], s.r[r]
    h = find_held(s.h, s.a[i], e.priority, e.alloc_id)
    if h < 0:
        return e.count > 0
    have, starved = s.h[h].n, 0
    if g.mutations & MUT_STARVE == 0:
        mb, vcores = s.q[s.a[i].q].largest_mb, s.q[s.a[i].q].largest_vcores
        most = ratio(s, mb - g.min_mb, vcores - g.min_vcores, mb, vcores)
        size = ratio(s, e.mb, e.vcores, mb, vcores)
        by = single(_F1 - min(size, most))
        starved = to_long(np.float64(single(div32(single(s.h[h].again), single(have)) * by)))
    return starved + e.count - have > 0


@kernel
def _to_give(s: State, i: int, r: int, mb: int, vcores: int) -> int:
    """Return the node whose reservation an application gives up for its ask: the first one large enough, or -1."""
    e = s.r[r]
    h = find_held(s.h, s.a[i], e.priority, e.alloc_id)
    if h < 0:
        return -1
    best, lowest = -1, 0
    ni = s.h[h].head
    while ni >= 0:
        node = s.n[ni]
        if fits(s, mb, vcores, node.res_mb, node.res_vcores):
            bucket = (node.hash ^ (node.hash >> 16)) & (s.h[h].cap - 1)
            if s.g[0].mutations & MUT_HASHORDER:
                bucket = -ni
            if best < 0 or bucket < lowest:
                best, lowest = ni, bucket
        ni = node.res_next
    return best


@kernel
def _offer(s: State, i: int, ni: int, head_mb: int, head_vcores: int, need_mb: int, need_vcores: int) -> int:
    """Try to serve one application on a node; return PROPOSED (proposal in Globals.p_*), LIMIT or NOTHING.

    Follows RegularContainerAllocator.

    Parameters
    ----------
    head_mb, head_vcores
        Headroom of the leaf.
    need_mb, need_vcores
        Resources by which the user exceeds the user limit; reservations of at least this size must be given up.
    """
    g, x, node = s.g[0], s.a[i], s.n[ni]
    if not positive(s, x.pending_mb, x.pending_vcores):
        return NOTHING
    look = g.look == 1
    r = x.req_head
    while r >= 0:
        e = s.r[r]
        if not look and not _wants_more(s, i, r):
            r = e.next
            continue
        back_mb, back_vcores = (x.reserved_mb, x.reserved_vcores) if look else (0, 0)
        if not fits(s, e.mb, e.vcores, head_mb + back_mb, head_vcores + back_vcores):
            return LIMIT
        if not fits(s, e.mb, e.vcores, node.total_mb, node.total_vcores):
            return NOTHING
        more = _wants_more(s, i, r)
        if compare(s, e.mb - head_mb, e.vcores - head_vcores, need_mb, need_vcores) >= 0:
            need_mb, need_vcores = e.mb - head_mb, e.vcores - head_vcores
        over = positive(s, need_mb, need_vcores)
        g.p_app, g.p_ask, g.p_give = i, r, -1
        if has_room(s, node.avail_mb, node.avail_vcores, e.mb, e.vcores):
            if look and (not more or over):
                if over:
                    g.p_give = _to_give(s, i, r, need_mb, need_vcores)
                else:
                    g.p_give = _to_give(s, i, r, e.mb, e.vcores)
                if g.p_give < 0:
                    return NOTHING
            g.p_reserve = 0
            return PROPOSED
        if more and not (look and over) and g.mutations & MUT_RESERVE == 0:
            g.p_reserve = 1
            return PROPOSED
        return NOTHING
    return NOTHING


@kernel
def _passes(s: State, i: int, used_mb: int, used_vcores: int, lim_mb: int, lim_vcores: int) -> bool:
    """Return whether a full queue tries an application, because the queue would have room without its reservations."""
    x = s.a[i]
    return positive(s, x.reserved_mb, x.reserved_vcores) and (
        compare(s, used_mb - x.reserved_mb, used_vcores - x.reserved_vcores, lim_mb, lim_vcores) < 0
    )


@kernel
def _reaches(s: State, k: int, i: int, lim_mb: int, lim_vcores: int) -> bool:
    """Return whether a full queue reaches application i (-1: its first one), before an application stops it.

    In Hadoop's order, the queue stops at the first application that `_passes` rejects.
    """
    q = s.q[k]
    j, first = q.act_head, -1
    while j >= 0:
        comes = i >= 0 and (j == i or app_before(s, j, i))
        if comes and not _passes(s, j, q.used_mb, q.used_vcores, lim_mb, lim_vcores):
            return False
        if first < 0 or app_before(s, j, first):
            first = j
        j = s.a[j].act_next
    return i >= 0 or _passes(s, first, q.used_mb, q.used_vcores, lim_mb, lim_vcores)


@kernel
def _refused(s: State, i: int) -> bool:
    """Return whether the leaf skips an application because of its user's limit.

    If the number of parallel applications is limited, Hadoop may forget a user together with a blocked application, and
    add the user again without increasing the version of the users. Until that version changes, Hadoop uses its earlier
    result for this user and the size of reservations for which it was computed.
    """
    x = s.a[i]
    k = x.q
    q, u = s.q[k], s.u[x.uq]
    if s.g[0].limited == 0:
        refresh_limit(s, k)
    elif u.cached != q.version + 1:
        u.cached, u.barred = q.version + 1, 0
        if u.in_map == 1:
            refresh_limit(s, k)
    if u.in_map == 1:
        x.seen = 1
    if u.barred == 1 and x.reserved_mb <= u.barred_mb and x.reserved_vcores <= u.barred_vcores:
        return True
    back_mb, back_vcores = (x.reserved_mb, x.reserved_vcores) if s.g[0].look == 1 else (0, 0)
    if u.in_map == 1 and compare(s, u.used_mb - back_mb, u.used_vcores - back_vcores, q.U_mb, q.U_vcores) <= 0:
        return False
    if s.g[0].limited == 1 and (
        u.barred == 0 or (u.barred_mb <= x.reserved_mb and u.barred_vcores <= x.reserved_vcores)
    ):
        u.barred, u.barred_mb, u.barred_vcores = 1, x.reserved_mb, x.reserved_vcores
    return True


@kernel
def _leaf(s: State, k: int, ni: int, limit_mb: int, limit_vcores: int) -> int:
    """Offer a node to a leaf; return PROPOSED, LIMIT (headroom in Globals.h_*) or NOTHING.

    Follows AbstractLeafQueue.assignContainers.
    """
    g, q = s.g[0], s.q[k]
    if q.fair == 1:
        look_at_stale(s, k)
    if q.n_active == 0:
        return NOTHING
    lim_mb, lim_vcores = smaller(s, q.effmax_mb, q.effmax_vcores, limit_mb, limit_vcores)
    full = compare(s, q.used_mb, q.used_vcores, lim_mb, lim_vcores) >= 0
    if full and not (g.look == 1 and positive(s, q.reserved_mb, q.reserved_vcores)):
        return NOTHING
    if full and not _reaches(s, k, -1, lim_mb, lim_vcores):
        return NOTHING
    i = q.act_head
    while i >= 0 and s.u[s.a[i].uq].in_map == 0:
        i = s.a[i].act_next
    if i >= 0:
        q.L_mb, q.L_vcores = leaf_limit(s, k, limit_mb, limit_vcores)
    if q.stuck == q.version + 1:
        return NOTHING
    answer, stop = _ask_apps(s, k, ni, full, lim_mb, lim_vcores)
    if g.limited == 1 or q.unseen == 1:
        _pass_over(s, k, stop, full, lim_mb, lim_vcores)
    return answer


@kernel
def _pass_over(s: State, k: int, stop: int, full: bool, lim_mb: int, lim_vcores: int) -> None:
    """Check a leaf's active applications without asks, up to the one at which the leaf stopped (-1: all of them)."""
    g, q = s.g[0], s.q[k]
    q.unseen = 0
    i = q.act_head
    while i >= 0:
        x = s.a[i]
        if x.in_asks == 0:
            passed = (stop < 0 or app_before(s, i, stop)) and not (full and not _reaches(s, k, i, lim_mb, lim_vcores))
            if passed and (g.limited == 1 or x.seen == 0):
                _refused(s, i)
            if x.seen == 0:
                q.unseen = 1
        i = x.act_next


@kernel
def _ask_apps(s: State, k: int, ni: int, full: bool, lim_mb: int, lim_vcores: int) -> tuple[int, int]:
    """Offer a node to a leaf's active applications with asks, in order.

    Returns the leaf's result, and the application at which the leaf stopped (-1: it tried all of them).
    """
    g, q = s.g[0], s.q[k]
    head_mb, head_vcores = lim_mb - q.used_mb, lim_vcores - q.used_vcores
    all_over = True
    i = q.ask_head
    while i >= 0:
        if full and not _reaches(s, k, i, lim_mb, lim_vcores):
            return NOTHING, i
        x = s.a[i]
        u = s.u[x.uq]
        if _refused(s, i):
            i = x.ask_next
            continue
        need_mb, need_vcores = 0, 0
        if compare(s, u.used_mb, u.used_vcores, q.U_mb, q.U_vcores) > 0:
            need_mb, need_vcores = u.used_mb - q.U_mb, u.used_vcores - q.U_vcores
        all_over = False
        answer = _offer(s, i, ni, head_mb, head_vcores, need_mb, need_vcores)
        if answer == PROPOSED:
            return PROPOSED, i
        if answer == LIMIT:
            g.h_mb, g.h_vcores = head_mb, head_vcores
            return LIMIT, i
        i = x.ask_next
    if all_over and not full and not positive(s, q.reserved_mb, q.reserved_vcores):
        q.stuck = q.version + 1
    return NOTHING, -1


@kernel
def _may_enter(s: State, k: int, limit_mb: int, limit_vcores: int) -> bool:
    """Return whether a parent queue is below its limit (AbstractCSQueue.canAssignToThisQueue)."""
    q = s.q[k]
    mb, vcores = smaller(s, q.effmax_mb, q.effmax_vcores, limit_mb, limit_vcores)
    if compare(s, q.used_mb, q.used_vcores, mb, vcores) < 0:
        return True
    return (
        s.g[0].look == 1
        and compare(s, q.reserved_mb, q.reserved_vcores, 0, 0) > 0
        and compare(s, q.used_mb - q.reserved_mb, q.used_vcores - q.reserved_vcores, mb, vcores) < 0
    )


@kernel
def _enter(s: State, depth: int, k: int, limit_mb: int, limit_vcores: int) -> None:
    f = s.f[depth]
    f.q, f.limited, f.aside, f.blocked_mb, f.blocked_vcores = k, 0, 0, 0, 0
    f.lim_mb, f.lim_vcores = smaller(s, limit_mb, limit_vcores, s.q[k].effmax_mb, s.q[k].effmax_vcores)


@kernel
def _put_back(s: State, n: int, until: int) -> int:
    """Restore children that were excluded from the tournament; return how many stay excluded."""
    while n > until:
        n -= 1
        place_child(s, s.work[n])
    return n


@kernel
def _propose(s: State, ni: int) -> bool:
    """Descend the tree for a node without a reservation; return whether there is a proposal (Globals.p_*)."""
    g, node, work = s.g[0], s.n[ni], s.work
    root = s.q[0]
    if not positive(s, root.pending_mb, root.pending_vcores):
        return False
    if not fits(s, g.min_mb, g.min_vcores, node.avail_mb, node.avail_vcores):
        return False
    if not _may_enter(s, 0, g.label_mb, g.label_vcores):
        return False
    depth, aside = 0, 0
    _enter(s, 0, 0, g.label_mb, g.label_vcores)
    while True:
        f = s.f[depth]
        child = first_child(s, f.q)
        if child >= 0:
            mb, vcores = child_limit(s, f.q, f.lim_mb, f.lim_vcores, f.blocked_mb, f.blocked_vcores, child)
            answer, head_mb, head_vcores = NOTHING, 0, 0
            if s.q[child].leaf == 1:
                answer = _leaf(s, child, ni, mb, vcores)
                if answer == PROPOSED:
                    _put_back(s, aside, 0)
                    return True
                if answer == LIMIT:
                    head_mb, head_vcores = g.h_mb, g.h_vcores
            elif _may_enter(s, child, mb, vcores):
                depth += 1
                _enter(s, depth, child, mb, vcores)
                continue
        else:
            aside = _put_back(s, aside, aside - f.aside)
            if depth == 0:
                return False
            answer = LIMIT if f.limited == 1 else NOTHING
            head_mb, head_vcores, child = f.blocked_mb, f.blocked_vcores, f.q
            depth -= 1
            f = s.f[depth]
        if answer == LIMIT:
            f.limited = 1
            if compare(s, head_mb, head_vcores, 0, 0) >= 0 and g.mutations & MUT_BLOCKED == 0:
                f.blocked_mb += head_mb
                f.blocked_vcores += head_vcores
        exclude(s, child)
        work[aside] = child
        aside += 1
        f.aside += 1


@kernel
def _allocate(s: State, i: int, r: int, ni: int, mb: int, vcores: int, cid: int, reserved: bool, now: int) -> None:
    """Serve application i's ask r with a container on a node. The caller charges the queue and the user."""
    x = s.a[i]
    c = grant(s, i, r, ni, mb, vcores, cid, reserved, now)
    x.am_running = 1
    if x.req_head < 0:
        sleep(s, i)
    x.used_mb += s.c[c].ask_mb
    x.used_vcores += s.c[c].ask_vcores
    log_container(s, now, ASSIGNED, c, 0)


@kernel
def _commit(s: State, ni: int, now: int) -> None:
    """Carry out the proposal in Globals.p_*, unless it exceeds a limit now (CapacityScheduler.tryCommit)."""
    g = s.g[0]
    if s.n[ni].draining == 1:  # FiCaSchedulerApp.accept requires the node to be RUNNING
        return
    i, r, give = g.p_app, g.p_ask, g.p_give
    x = s.a[i]
    k, mb, vcores = x.q, s.r[r].mb, s.r[r].vcores
    refresh_limit(s, k)
    q, u = s.q[k], s.u[x.uq]
    back_mb, back_vcores = 0, 0
    if give >= 0:
        back_mb, back_vcores = s.n[give].res_mb, s.n[give].res_vcores
    if compare(s, u.used_mb - back_mb, u.used_vcores - back_vcores, q.U_mb, q.U_vcores) > 0:
        return
    p = k
    while p >= 0:
        y = s.q[p]
        if not fits(s, y.used_mb + mb - back_mb, y.used_vcores + vcores - back_vcores, y.effmax_mb, y.effmax_vcores):
            return
        p = y.parent
    if g.p_reserve == 0:
        x.cid += 1
        _allocate(s, i, r, ni, mb, vcores, x.cid, False, now)
        if give >= 0:
            drop_reservation(s, give, now)
    else:
        reserve(s, i, r, ni, now)
    charge(s, i, mb, vcores)
    # In Hadoop, an AM's heartbeat computes the user limit as part of the headroom. Here an AM that fetches its
    # container at once heartbeats now; after a reservation there is nothing to fetch.
    if g.p_reserve == 0 and g.manual_acquire == 0:
        refresh_limit(s, k)
    if g.mutations & MUT_STALE == 0:
        mark_stale(s, i)


@kernel
def _from_reservation(s: State, ni: int, now: int) -> None:
    """Serve a node that has a reservation; no other application is tried there."""
    node = s.n[ni]
    i = node.res_app
    r = find_ask(s.r, s.a[i], node.res_priority, node.res_alloc_id)
    if r < 0:
        drop_reservation(s, ni, now)
        return
    mb, vcores = s.r[r].mb, s.r[r].vcores
    if node.draining == 1 or not fits(s, mb, vcores, node.total_mb, node.total_vcores):
        return
    if has_room(s, node.avail_mb, node.avail_vcores, mb, vcores):
        if not fits(s, mb, vcores, node.avail_mb, node.avail_vcores):
            return
        cid, size_mb, size_vcores = node.res_cid, node.res_mb, node.res_vcores
        unreserve(s, ni, now)
        _allocate(s, i, r, ni, size_mb, size_vcores, cid, True, now)
    else:
        s.h[node.res_h].again += 1


@kernel
def attempt(s: State, ni: int, now: int) -> int:
    """Assign a node's free space; return the number of rounds that made a proposal."""
    g, node = s.g[0], s.n[ni]
    rounds = 0
    while True:
        if node.res_app >= 0:
            _from_reservation(s, ni, now)
            return rounds + 1
        if not has_room(s, node.avail_mb, node.avail_vcores, g.min_mb, g.min_vcores):
            return rounds
        if not _propose(s, ni):
            return rounds
        reserving = g.p_reserve
        _commit(s, ni, now)
        rounds += 1
        if rounds >= g.off_max or reserving == 1 or g.multi == 0 or (g.con_max != -1 and rounds >= g.con_max):
            return rounds
