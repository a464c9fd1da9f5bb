"""Users of a leaf: which users are active, their usage, and the limit per user.

Follows UsersManager, AbstractCSQueue.updateUsedCapacity of Hadoop 3.4.2. All users have weight 1.
"""

from __future__ import annotations

from harness.sim.capacity.resources import (
    compare_in,
    divide_up,
    hundredth_up,
    ratio,
    round_down,
    round_up,
    times,
    times_up,
)
from harness.sim.capacity.state import MUT_USERLIMIT, MUT_USERSUM, State
from harness.sim.java import single
from harness.sim.kernel import kernel
from harness.sim.lists import linked

_F0 = single(0.0)
_FAR = 2**50
_into_leaf, _out_of_leaf = linked("user_head", "user_tail", "prev", "next")


@kernel
def ensure_user(s: State, u: int) -> None:
    """Add a user that the leaf does not know, as not active (UsersManager.getUserAndAddIfAbsent)."""
    x = s.u[u]
    if x.in_map == 1:
        return
    q = s.q[x.q]
    x.in_map, x.on = 1, 2
    x.used_mb, x.used_vcores, x.am_mb, x.am_vcores, x.pend, x.act = 0, 0, 0, 0, 0, 0
    x.ratio = _F0
    _into_leaf(s.u, q, u, q.user_tail)
    q.n_users += 1
    while 4 * q.n_users >= 3 * q.users_cap:
        q.users_cap *= 2
    q.stuck = 0


@kernel
def count_apps(s: State, u: int, pend: int, act: int) -> None:
    """Change a user's numbers of pending and active applications."""
    x = s.u[u]
    q = s.q[x.q]
    if x.pend > 0 and x.act <= 0:
        q.n_only_pending -= 1
    x.pend += pend
    x.act += act
    if x.pend > 0 and x.act <= 0:
        q.n_only_pending += 1


@kernel
def forget_user(s: State, u: int) -> None:
    """Forget a user after the last application of the user has ended, or one that a limit of parallel ones blocks."""
    x = s.u[u]
    q = s.q[x.q]
    if x.pend > 0 and x.act <= 0:
        q.n_only_pending -= 1
    _out_of_leaf(s.u, q, u)
    q.n_users -= 1
    if x.on == 1:
        q.n_on -= 1
    q.on_weight = single(q.n_on)
    x.in_map, x.on = 0, 0
    q.stuck = 0
    if s.g[0].limited == 1:
        i = q.act_head
        while i >= 0:
            y = s.a[i]
            if y.uq == u and y.seen == 1:
                y.seen, y.old_mb, y.old_vcores = 2, x.used_mb, x.used_vcores
            i = y.act_next


@kernel
def use(s: State, u: int, mb: int, vcores: int) -> None:
    """Change a user's usage and, in float32, the queue's sum of the users' ratios."""
    g = s.g[0]
    ensure_user(s, u)
    x = s.u[u]
    q = s.q[x.q]
    x.used_mb += mb
    x.used_vcores += vcores
    if x.on == 1:
        q.on_mb += mb
        q.on_vcores += vcores
    q.version += 1
    now = ratio(s, x.used_mb, x.used_vcores, g.label_mb, g.label_vcores)
    q.user_ratios = single(q.user_ratios + single(now - x.ratio))
    x.ratio = now


@kernel
def sum_ratios(s: State, k: int) -> None:
    """Recompute the sum of the users' ratios in the order of Hadoop's hash table."""
    g, q, work = s.g[0], s.q[k], s.work
    if g.mutations & MUT_USERSUM:
        return
    n, u = 0, q.user_head
    while u >= 0:
        x = s.u[u]
        x.ratio = ratio(s, x.used_mb, x.used_vcores, g.label_mb, g.label_vcores)
        bucket = (x.hash ^ (x.hash >> 16)) & (q.users_cap - 1)
        at = n
        while at > 0 and work[2 * at - 2] > bucket:
            work[2 * at], work[2 * at + 1] = work[2 * at - 2], work[2 * at - 1]
            at -= 1
        work[2 * at], work[2 * at + 1] = bucket, u
        n += 1
        u = x.next
    total = _F0
    for at in range(n):
        total = single(total + s.u[work[2 * at + 1]].ratio)
    q.user_ratios = total


@kernel
def wake(s: State, i: int) -> None:
    """Note that an application has asks now, so that its user may become active (UsersManager.activateApplication)."""
    x = s.a[i]
    u, q = s.u[x.uq], s.q[x.q]
    if u.in_map == 1 and u.act <= 0:
        return
    if u.n_listed == 0:
        q.n_active_users += 1
        q.version += 1
        ensure_user(s, x.uq)
        if u.on == 2:
            u.on = 1
            q.n_on += 1
            q.on_weight = single(q.n_on)
            q.on_mb += u.used_mb
            q.on_vcores += u.used_vcores
    if x.listed == 0:
        x.listed = 1
        u.n_listed += 1


@kernel
def sleep(s: State, i: int) -> None:
    """Note that an application has no more asks, so that its user may become inactive.

    Follows UsersManager.deactivateApplication.
    """
    x = s.a[i]
    u, q = s.u[x.uq], s.q[x.q]
    if u.n_listed == 0:
        return
    if x.listed == 1:
        x.listed = 0
        u.n_listed -= 1
    if u.n_listed == 0:
        q.n_active_users -= 1
        q.version += 1
        if u.in_map == 1 and u.on == 1:
            u.on = 2
            q.n_on -= 1
            q.on_weight = single(q.n_on)
            q.on_mb -= u.used_mb
            q.on_vcores -= u.used_vcores


@kernel
def limit_now(s: State, k: int) -> tuple[int, int]:
    """Return the limit of one active user of a leaf, MB and vcores (UsersManager.computeUserLimit)."""
    g, q = s.g[0], s.q[k]
    if g.mutations & MUT_USERLIMIT:
        return _FAR, _FAR
    label_mb, label_vcores = g.label_mb, g.label_vcores
    used_mb, used_vcores = times_up(s, label_mb, label_vcores, q.user_ratios)
    now_mb, now_vcores = q.floor_mb, q.floor_vcores
    if compare_in(s, label_mb, label_vcores, used_mb, used_vcores, now_mb, now_vcores) >= 0:
        now_mb, now_vcores = used_mb + g.min_mb, used_vcores + g.min_vcores
    mb, vcores = divide_up(s, q.on_mb + g.min_mb, q.on_vcores + g.min_vcores, q.on_weight)
    part_mb, part_vcores = times(now_mb, now_vcores, q.mulp)
    part_mb, part_vcores = hundredth_up(s, part_mb, part_vcores)
    if compare_in(s, label_mb, label_vcores, mb, vcores, part_mb, part_vcores) < 0:
        mb, vcores = part_mb, part_vcores
    if q.ulf == single(-1.0) or (q.eff_mb == 0 and q.eff_vcores == 0):
        cap_mb, cap_vcores = round_down(s, q.effmax_mb, q.effmax_vcores)
    else:
        cap_mb, cap_vcores = times(q.floor_mb, q.floor_vcores, q.ulf)
    if compare_in(s, label_mb, label_vcores, mb, vcores, cap_mb, cap_vcores) > 0:
        mb, vcores = cap_mb, cap_vcores
    mb, vcores = round_up(s, mb, vcores)
    return round_down(s, mb, vcores)


@kernel
def refresh_limit(s: State, k: int) -> None:
    """Update the user limit if anything about the users has changed since the last computation."""
    q = s.q[k]
    if q.U_version == q.version:
        return
    q.U_mb, q.U_vcores = limit_now(s, k)
    q.only_pending = q.n_only_pending
    q.U_version = q.version


@kernel
def show_headroom(s: State, i: int) -> None:
    """Compute the user limit for an AM's headroom, as CapacityScheduler.allocate does.

    The time of this computation matters: it also stores the number of users that have only waiting applications, on
    which the AM limit per user depends.
    """
    if s.a[i].seen > 0:
        refresh_limit(s, s.a[i].q)


@kernel
def headroom(s: State, i: int) -> tuple[int, int, int]:
    """Return an application's headroom (MB, vcores), and whether vcores count.

    The user limit is the present one, as in CapacityScheduler.allocate, but the leaf's limit is that of its last
    consideration. Before the leaf first considers the attempt, the headroom is 0. If Hadoop has forgotten the user
    since the last consideration, the usage is the one when it did. Follows FiCaSchedulerApp.getHeadroom,
    CapacityHeadroomProvider.getHeadroom and AbstractLeafQueue.getHeadroom.
    """
    g, x = s.g[0], s.a[i]
    if x.seen == 0:
        return 0, 0, g.drf
    q, u, root = s.q[x.q], s.u[x.uq], s.q[0]
    mb, vcores = q.U_mb, q.U_vcores
    if q.U_version != q.version:
        mb, vcores = limit_now(s, x.q)
    used_mb, used_vcores = u.used_mb, u.used_vcores
    if x.seen == 2:
        used_mb, used_vcores = x.old_mb, x.old_vcores
    mb = min(max(mb - used_mb, 0), max(q.L_mb - q.used_mb, 0))
    vcores = min(max(vcores - used_vcores, 0), max(q.L_vcores - q.used_vcores, 0))
    mb, vcores = round_down(s, mb, vcores)
    free_mb, free_vcores = g.label_mb - root.used_mb, g.label_vcores - root.used_vcores
    if compare_in(s, g.label_mb, g.label_vcores, free_mb, free_vcores, mb, vcores) <= 0:
        mb, vcores = free_mb, free_vcores
    return max(mb, 0), vcores, g.drf
