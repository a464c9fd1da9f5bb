"""Applications that a limit on running applications blocks, for all schedulers: the limits and the waiting lists.

Follows MaxRunningAppsEnforcer.canAppBeRunnable and CSMaxRunningAppsEnforcer.checkRunnabilityWithUpdate of Hadoop 3.4.2.
"""

from __future__ import annotations

from harness.sim import ops
from harness.sim.kernel import kernel
from harness.sim.lists import linked
from harness.sim.state import SchedulerState

#: Lists of a queue's and of a user's waiting applications.
_into_waiting, _out_of_waiting = linked("nr_head", "nr_tail", "nr_prev", "nr_next")
_into_users, _out_of_users = linked("nr_head", "nr_tail", "user_prev", "user_next")


@kernel
def can_run(s: SchedulerState, leaf: int, user: int) -> bool:
    """Return whether the user, the leaf and its ancestors are below their limits on running applications."""
    if s.u[user].n_run >= s.u[user].max_apps:
        return False
    p = leaf
    while p >= 0:
        if ops.remaining_app_slots(s, p) <= 0:
            return False
        p = s.q[p].parent
    return True


@kernel
def wait(s: SchedulerState, i: int) -> None:
    """Append the application to the waiting lists of its queue and its user."""
    x = s.a[i]
    q, u = s.q[x.q], s.u[x.user]
    _into_waiting(s.a, q, i, q.nr_tail)
    q.n_nonrun += 1
    _into_users(s.a, u, i, u.nr_tail)


@kernel
def no_longer_waits(s: SchedulerState, i: int) -> None:
    """Remove the application from the waiting lists."""
    x = s.a[i]
    q = s.q[x.q]
    _out_of_waiting(s.a, q, i)
    q.n_nonrun -= 1
    _out_of_users(s.a, s.u[x.user], i)
