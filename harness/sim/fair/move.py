"""The move of an application, with its containers and asks, to another leaf queue.

Follows FairScheduler.moveApplication, verifyMoveDoesNotViolateConstraints and executeMove of Hadoop 3.4.2. As there,
the AM of a running application leaves the old leaf's AM usage and is not added to the new leaf's.
"""

from __future__ import annotations

from harness.sim.attempts import change_usage
from harness.sim.enforcer import update_runnability_on_app_removal
from harness.sim.fair.apps import start, stops_running
from harness.sim.fair.containers import change_pending, lower_bounds, mark_asks
from harness.sim.fair.order import place
from harness.sim.fair.state import IGNORED, NEED_ROOM, REJECTED, State
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import settle
from harness.sim.waiting import can_run, no_longer_waits, wait


@kernel
def _violates(s: State, i: int, target: int) -> bool:
    """Return whether the move of a runnable application would exceed a limit of `target` or its ancestors.

    Only queues below the lowest common ancestor of both leaves are checked.
    """
    x = s.a[i]
    p = target
    while p >= 0:
        above = x.q
        while above >= 0 and above != p:
            above = s.q[above].parent
        if above == p:
            return False
        q = s.q[p]
        if q.n_run == q.max_apps:
            return True
        if q.usage_mb + x.usage_mb > q.max_mb or q.usage_vcores + x.usage_vcores > q.max_vcores:
            return True
        p = q.parent
    return False


@kernel
def move_app(s: State, i: int, target: int, now: int) -> int:
    """Move application i to the leaf `target`; return 0, IGNORED, NEED_ROOM, or REJECTED (a limit forbids it)."""
    x = s.a[i]
    if x.alive == 0:
        return IGNORED
    old = x.q
    if old == target:
        return 0
    was_runnable = x.runnable == 1
    if was_runnable and _violates(s, i, target):
        return REJECTED
    q = s.q[target]
    if q.n_run + q.n_nonrun + 1 > q.heap_cap:
        return NEED_ROOM
    runs = was_runnable or can_run(s, target, x.user)
    settle(s, old, now)
    settle(s, target, now)
    # Remove it from the old leaf's heap and counts; `place` checks `alive`.
    x.alive = 0
    place(s, i)
    if was_runnable:
        stops_running(s, i)
    else:
        no_longer_waits(s, i)
    mb, vcores, pending_mb, pending_vcores = x.usage_mb, x.usage_vcores, x.pending_mb, x.pending_vcores
    change_usage(s, i, now, -mb, -vcores)
    change_pending(s, i, -pending_mb, -pending_vcores)
    s.q[old].sum_mb -= x.demand_mb
    s.q[old].sum_vcores -= x.demand_vcores
    x.q = target
    q.sum_mb += x.demand_mb
    q.sum_vcores += x.demand_vcores
    change_usage(s, i, now, mb, vcores)
    change_pending(s, i, pending_mb, pending_vcores)
    x.alive = 1
    if runs:
        start(s, i)
    else:
        wait(s, i)
    r = x.req_head
    while r >= 0:
        lower_bounds(s, i, s.r[r].mb, s.r[r].vcores)
        r = s.r[r].next
    place(s, i)
    q.members_dirty = 1
    mark_asks(s, x.q)
    mark_asks(s, old)
    s.g[0].demand_dirty = 1
    if s.xg[0].on == 1:
        away = x.n_live - (1 if x.am_running == 1 else 0)
        s.x[old].running -= away
        s.x[target].running += away
        if s.x[old].by_apps == 1:
            s.x[old].omega -= x.omega
        if s.x[target].by_apps == 1:
            s.x[target].omega += x.omega
        s.x[old].more_mb -= x.more_mb
        s.x[old].more_vc -= x.more_vc
        s.x[target].more_mb += x.more_mb
        s.x[target].more_vc += x.more_vc
    settle(s, old, now)
    settle(s, target, now)
    if was_runnable:
        update_runnability_on_app_removal(s, old, x.user, now)
    return 0
