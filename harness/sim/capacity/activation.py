"""Activation of a leaf's applications, as many as its AM limits allow.

Follows AbstractLeafQueue.activateApplications of Hadoop 3.4.2.
"""

from __future__ import annotations

from harness.sim.capacity.order import join_active, leave_waiting
from harness.sim.capacity.resources import compare, div32, fits, times_up
from harness.sim.capacity.state import ACTIVATED, MUT_AMLIMIT, MUT_LAG, State
from harness.sim.capacity.users import count_apps, ensure_user
from harness.sim.containers import log
from harness.sim.java import single
from harness.sim.kernel import kernel

_FAR = 2**50
_F1, _F100 = single(1.0), single(100.0)


@kernel
def set_am_limit(s: State, k: int) -> None:
    """Set a leaf's AM limit from the limit with which the leaf was last considered, or else its effective capacity."""
    g, q = s.g[0], s.q[k]
    mb, vcores = q.eff_mb, q.eff_vcores
    if fits(s, mb, vcores, q.L_mb, q.L_vcores) and g.mutations & MUT_LAG == 0:
        mb, vcores = q.L_mb, q.L_vcores
    q.am_limit_mb, q.am_limit_vcores = times_up(s, mb, vcores, q.am_pct)
    if g.mutations & MUT_AMLIMIT:
        q.am_limit_mb = q.am_limit_vcores = _FAR


@kernel
def user_am_limit(s: State, k: int) -> tuple[int, int]:
    """Return what the AMs of one user may hold in a leaf (MB, vcores)."""
    q = s.q[k]
    if s.g[0].mutations & MUT_AMLIMIT:
        return _FAR, _FAR
    users = max(q.n_active_users + q.only_pending, 1)
    part = min(max(div32(q.mulp, _F100), div32(_F1, single(users))), _F1)
    by = q.am_pct
    if q.ulf != single(-1.0):
        by = single(single(q.am_pct * part) * q.ulf)
    mb, vcores = times_up(s, q.eff_mb, q.eff_vcores, by)
    if compare(s, mb, vcores, q.am_limit_mb, q.am_limit_vcores) > 0:
        return q.am_limit_mb, q.am_limit_vcores
    return mb, vcores


@kernel
def activate(s: State, k: int, now: int) -> None:
    """Activate a leaf's waiting applications within its AM limits (AbstractLeafQueue.activateApplications).

    The user limit is computed once, for the first application that needs it.
    """
    q = s.q[k]
    set_am_limit(s, k)
    known, of_user_mb, of_user_vcores = False, 0, 0
    i = q.wait_head
    while i >= 0:
        x = s.a[i]
        after = x.wait_next
        first = q.n_active == 0 or compare(s, q.am_mb, q.am_vcores, 0, 0) <= 0
        if first or fits(s, x.am_mb + q.am_mb, x.am_vcores + q.am_vcores, q.am_limit_mb, q.am_limit_vcores):
            ensure_user(s, x.uq)
            u = s.u[x.uq]
            if not known:
                of_user_mb, of_user_vcores = user_am_limit(s, k)
                known = True
            if first or fits(s, x.am_mb + u.am_mb, x.am_vcores + u.am_vcores, of_user_mb, of_user_vcores):
                count_apps(s, x.uq, -1, 1)
                leave_waiting(s, i)
                join_active(s, i)
                q.am_mb += x.am_mb
                q.am_vcores += x.am_vcores
                u.am_mb += x.am_mb
                u.am_vcores += x.am_vcores
                if x.ghost == 0 and x.runnable == 1:
                    log(s, now, ACTIVATED, i, -1)
                    e = s.log[s.g[0].n_log - 1]
                    e.mb, e.vcores = x.am_mb, x.am_vcores
        i = after
