"""Applications in the Fair Scheduler: their arrival, whether they are runnable, and their end.

Follows FairScheduler.addApplicationAttempt/removeApplicationAttempt and MaxRunningAppsEnforcer of Hadoop 3.4.2. Asks
are in harness.sim.attempts, the choice of the next application to run in harness.sim.enforcer.
"""

from __future__ import annotations

from harness.sim.attempts import begin_attempt, put
from harness.sim.containers import app_hash, new_app
from harness.sim.fair.containers import lower_bounds
from harness.sim.fair.order import place
from harness.sim.fair.state import NEED_ROOM, REJECTED, SOME_SHARES, State
from harness.sim.fair.turns import seat
from harness.sim.java import single
from harness.sim.kernel import kernel
from harness.sim.lists import linked
from harness.sim.waiting import can_run, no_longer_waits, wait

#: List of a queue's running applications.
_into_running, _out_of_running = linked("run_head", "run_tail", "run_prev", "run_next")


@kernel
def name_key(app_id: int) -> int:
    """Return a number that sorts application ids as their names sort as text (application_<ts>_0001 ...)."""
    digits, scale = 4, 10000
    while app_id >= scale:
        digits += 1
        scale *= 10
    padded = app_id
    for _ in range(10 - digits):
        padded *= 10
    return padded * 16 + digits


@kernel
def remaining_app_slots(s: State, k: int) -> int:
    """Return how many more applications a queue may run (maxRunningApps)."""
    return s.q[k].max_apps - s.q[k].n_run


@kernel
def normalize(s: State, leaf: int, mb: int, vcores: int) -> tuple[int, int]:
    """Return the resources (MB, vcores) of an ask as the scheduler normalises them.

    They are raised to the minimum, rounded up to a multiple of the increment, and limited to the maximum allocation.
    """
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
def _count_running(s: State, leaf: int, more: int) -> None:
    """Add `more` to the number of runnable applications of a leaf and its ancestors.

    Only queues with runnable applications get fair shares, so the next update recomputes shares.
    """
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
def start(s: State, i: int) -> None:
    """Make application i runnable."""
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
def starts(s: State, i: int, now: int) -> bool:
    """Make a waiting application runnable if the limits allow it; return whether it was made runnable."""
    x = s.a[i]
    if x.runnable == 1 or s.g[0].holds_apps == 1 or not can_run(s, x.q, x.user):
        return False
    start(s, i)
    return True


@kernel
def new_attempt(s: State, i: int, am_mb: int, am_vcores: int, now: int) -> None:
    """Start an attempt of an application, which waits if limits on running applications are reached."""
    g, x = s.g[0], s.a[i]
    begin_attempt(s, i, now)
    x.am_mb, x.am_vcores, x.demand_mb, x.demand_vcores, x.fair_mb, x.fair_vcores = 0, 0, 0, 0, 0, 0
    x.runnable, x.heap, x.reservable = 0, -1, 0
    x.fstarve_mb, x.fstarve_vcores, x.mstarve_mb, x.mstarve_vcores = 0, 0, 0, 0
    x.last_at_fair_ms, x.next_check_ms, x.preempt_mb, x.preempt_vcores = now, 0, 0, 0
    x.weight = single(0.0) if g.size_weight == 1 else single(1.0)
    if not starts(s, i, now):
        wait(s, i)
        g.demand_dirty = max(g.demand_dirty, g.holds_apps)  # the next update starts it
    if x.managed == 1 and am_mb >= 0:
        mb, vcores = normalize(s, x.q, am_mb, am_vcores)
        put(s, i, 0, -1, 1, mb, vcores)


@kernel
def has_none_of(s: State, leaf: int, mb: int, vcores: int) -> bool:
    """Return whether a leaf's maximum is 0 for a requested resource."""
    q = s.q[leaf]
    return (q.max_mb == 0 and mb > 0) or (q.max_vcores == 0 and vcores > 0)


@kernel
def add_app(s: State, leaf: int, user: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> int:
    """Add an application; return its slot, or NEED_ROOM, or REJECTED.

    `managed`: it has an AM, which is its first container. `am_mb` < 0: the first `ask` requests the AM's container, not
    this call. `app_id` < 1: use the next number.
    """
    g, q = s.g[0], s.q[leaf]
    if g.n_free_app < 1 or g.n_free_r < 1 or q.n_run + q.n_nonrun + 1 > q.heap_cap:
        return NEED_ROOM
    if app_id < 1:
        app_id = g.next_app_id
    g.next_app_id = max(g.next_app_id, app_id + 1)
    if managed and am_mb >= 0 and has_none_of(s, leaf, am_mb, am_vcores):
        return REJECTED
    i = new_app(s, leaf, user, app_id, 1 if managed else 0)
    x = s.a[i]
    x.name_key, x.dirty, x.key, x.integral, x.integral_ms = name_key(app_id), 0, 0.0, 0.0, now
    x.omega, x.kg, x.phi, x.ahead_a, x.ahead_b, x.more_mb, x.more_vc = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x.hash = app_hash(s, app_id)
    new_attempt(s, i, am_mb, am_vcores, now)
    return i


@kernel
def stops_running(s: State, i: int) -> None:
    """Remove a runnable application from the lists of its queue and its user."""
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
def leave(s: State, i: int, now: int) -> None:
    """Remove an attempt that has ended from the lists of its queue and its user."""
    x = s.a[i]
    x.alive = 0
    place(s, i)
    q = s.q[x.q]
    q.sum_mb -= x.demand_mb
    q.sum_vcores -= x.demand_vcores
    x.demand_mb, x.demand_vcores = 0, 0
    s.g[0].demand_dirty = 1
    if x.runnable == 0:
        no_longer_waits(s, i)
    else:
        stops_running(s, i)
