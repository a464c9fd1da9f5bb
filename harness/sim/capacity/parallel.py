"""Limits of applications that run in parallel: max-parallel-apps of queues and users.

Follows CSMaxRunningAppsEnforcer and AbstractLeafQueue.addApplicationAttempt of Hadoop 3.4.2. An application beyond a
limit is blocked: it neither waits for activation nor is active. Hadoop's counting errors are reproduced.
harness.sim.enforcer selects the application that runs next when one ends.
"""

from __future__ import annotations

from harness.sim.capacity.activation import activate
from harness.sim.capacity.order import join_waiting
from harness.sim.capacity.resources import compare
from harness.sim.capacity.state import MUT_PARALLEL, State
from harness.sim.capacity.users import count_apps, ensure_user
from harness.sim.kernel import kernel
from harness.sim.waiting import can_run, no_longer_waits, wait


@kernel
def remaining_app_slots(s: State, k: int) -> int:
    """Return how many more applications a queue may run (max-parallel-apps)."""
    return s.q[k].parallel - s.q[k].n_runnable


@kernel
def release_room(s: State) -> int:
    """Return the number of log records that starting blocked applications may need: at most one per application."""
    g = s.g[0]
    return len(s.a) - g.n_free_app if g.n_held_back > 0 else 0


@kernel
def _check(s: State, i: int) -> bool:
    """Update whether an application may run (Hadoop's checkRunnabilityWithUpdate)."""
    x = s.a[i]
    x.runnable = 1 if s.g[0].mutations & MUT_PARALLEL or can_run(s, x.q, x.user) else 0
    return x.runnable == 1


@kernel
def _count(s: State, i: int, by: int) -> None:
    """Add `by` to the numbers of runnable applications of the user and of the leaf's ancestors.

    `_enter` and `untrack` count those of the leaf, for which Hadoop has a list.
    """
    x = s.a[i]
    s.u[x.user].n_run += by
    p = s.q[x.q].parent
    while p >= 0:
        s.q[p].n_runnable += by
        p = s.q[p].parent


@kernel
def _enter(s: State, i: int, now: int) -> None:
    """Add a runnable application to its leaf (AbstractLeafQueue.addApplicationAttempt)."""
    g, x = s.g[0], s.a[i]
    x.n_runnable += 1
    s.q[x.q].n_runnable += 1
    count_apps(s, x.uq, 1, 0)
    if x.waiting == 0:
        join_waiting(s, i)
    if compare(s, g.cluster_mb, g.cluster_vcores, 0, 0) > 0:
        activate(s, x.q, now)


@kernel
def _hold_back(s: State, i: int) -> None:
    s.a[i].held_back = 1
    wait(s, i)
    s.g[0].n_held_back += 1


@kernel
def let_go(s: State, i: int) -> None:
    """Remove an application from the held-back lists."""
    if s.a[i].held_back == 1:
        s.a[i].held_back = 0
        no_longer_waits(s, i)
        s.g[0].n_held_back -= 1


@kernel
def starts(s: State, i: int, now: int) -> bool:
    """Admit an application that was held back if the limits allow it; return whether it was admitted."""
    if not _check(s, i):
        return False
    _count(s, i, 1)
    ensure_user(s, s.a[i].uq)
    _enter(s, i, now)
    return True


@kernel
def arrive(s: State, i: int, now: int) -> None:
    """Add a new attempt to its leaf, where it waits for its activation or is blocked by a limit."""
    if not starts(s, i, now):
        ensure_user(s, s.a[i].uq)
        _hold_back(s, i)


@kernel
def untrack(s: State, i: int) -> None:
    """Remove an attempt from its leaf's list of runnable applications, or else from the held-back list."""
    x = s.a[i]
    if x.n_runnable > 0:
        x.n_runnable -= 1
        s.q[x.q].n_runnable -= 1
    else:
        let_go(s, i)


@kernel
def gone(s: State, i: int) -> None:
    """Stop counting an attempt that has ended, whether it ran or was blocked."""
    if s.a[i].runnable == 0:
        let_go(s, i)
    else:
        _count(s, i, -1)
