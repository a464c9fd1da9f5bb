"""Selects the waiting applications that start when an application ends or limits change, for all schedulers.

Follows MaxRunningAppsEnforcer of Hadoop 3.4.2, and CSMaxRunningAppsEnforcer, which was modelled on it. One case
differs: if applications of the same millisecond wait both for their queue and for their user, Hadoop's Fair Scheduler
can start one of them twice; here it starts once.
"""

from __future__ import annotations

from harness.sim import ops
from harness.sim.kernel import kernel
from harness.sim.state import SchedulerState

_NEVER = 2**63 - 1


@kernel
def update_runnability_on_app_removal(s: SchedulerState, leaf: int, user: int, now: int) -> None:
    """Start the applications that may run after an application of a user has left a leaf.

    Candidates come from the waiting lists of the leaves below the highest queue that was full, and from the user's
    list; at most as many start as there are lists. Follows updateRunnabilityOnAppRemoval.
    """
    highest, p = -1, leaf
    while p >= 0:
        if ops.remaining_app_slots(s, p) == 1:
            highest = p
        p = s.q[p].parent
    n = _gather(s, highest) if highest >= 0 else 0
    u = s.u[user]
    own = u.n_run == u.max_apps - 1
    if own:
        s.work[n] = u.nr_head
    _let_run(s, n, own, n + 1 if own else n, now)


@kernel
def let_all_run(s: SchedulerState, now: int) -> None:
    """Start every application that may run after a change of settings (updateRunnabilityOnReload)."""
    _let_run(s, _gather(s, 0), False, _NEVER, now)


@kernel
def _gather(s: SchedulerState, top: int) -> int:
    """Write the first waiting application of each leaf below `top` into `work`; return their number.

    The leaves are visited depth first, in the order of each parent's children. Queues without free application slots
    are skipped.
    """
    n, p, going_down = 0, top, True
    while True:
        q = s.q[p]
        if going_down and ops.remaining_app_slots(s, p) > 0:
            if q.leaf == 1:
                s.work[n] = q.nr_head
                n += 1
            elif q.first_child >= 0:
                p = q.first_child
                continue
        if p == top:
            return n
        going_down = q.next_sibling >= 0
        p = q.next_sibling if going_down else q.parent


@kernel
def _time(s: SchedulerState, which: int) -> int:
    i = s.work[which]
    return s.a[i].start_ms if i >= 0 else _NEVER


@kernel
def _down(s: SchedulerState, heap: int, n: int, which: int) -> None:
    """Put `which` into the heap from the root down, as Java's PriorityQueue.siftDown does.

    Entries with equal times therefore do not keep their order of insertion, as in Hadoop.
    """
    work, k = s.work, 0
    time = _time(s, which)
    while 2 * k + 1 < n:
        child = 2 * k + 1
        if child + 1 < n and _time(s, work[heap + child]) > _time(s, work[heap + child + 1]):
            child += 1
        if time <= _time(s, work[heap + child]):
            break
        work[heap + k] = work[heap + child]
        k = child
    work[heap + k] = which


@kernel
def _up(s: SchedulerState, heap: int, k: int, which: int) -> None:
    work = s.work
    time = _time(s, which)
    while k > 0:
        above = (k - 1) // 2
        if time >= _time(s, work[heap + above]):
            break
        work[heap + k] = work[heap + above]
        k = above
    work[heap + k] = which


@kernel
def _let_run(s: SchedulerState, leaves: int, own: bool, most: int, now: int) -> None:
    """Start applications of several lists in the order of their start times, at most `most`, if limits allow it.

    ``work[:leaves]`` has the first application of each leaf's list, and ``work[leaves]`` that of the user's list, if
    `own`. Follows updateAppsRunnability.
    """
    work = s.work
    n = leaves + 1 if own else leaves
    heap = s.g[0].n_queues + 1
    done = 2 * heap
    for which in range(n):
        _up(s, heap, which, which)
    before, let_in = -1, 0
    while n > 0 and let_in < most:
        which = work[heap]
        i = work[which]
        if i < 0:
            break
        last = work[heap + n - 1]
        if n > 1:
            _down(s, heap, n - 1, last)
        work[which] = s.a[i].user_next if which == leaves else s.a[i].nr_next
        _up(s, heap, n - 1, which)
        if i == before:
            continue
        if ops.starts(s, i, now):
            work[done + let_in] = i
            let_in += 1
        before = i
    for at in range(let_in):
        ops.stop_waiting(s, work[done + at])
