"""Spark's dynamic allocation, compiled: the number of executors that a driver requests, and those that it releases.

Follows Spark 4.0: ``ExecutorAllocationManager`` (``schedule``, ``addExecutors``, ``decrementExecutors``,
``removeExecutors``) sets the target and selects idle executors, and ``YarnAllocator.updateResourceRequests`` requests
missing executors or cancels requests.
"""

from __future__ import annotations

from harness.sim import nodes
from harness.sim.asking import ask
from harness.sim.calls import C_RELEASE, note
from harness.sim.dynamic import (
    GOING,
    STARTING,
    UP,
    executors_needed,
    expires_ms,
    hears,
    look_at,
    wake_allocator,
)
from harness.sim.events import E_ACT, push
from harness.sim.granted import drain
from harness.sim.kernel import kernel
from harness.sim.state import NEED_ROOM, SchedulerState
from harness.sim.world import J_RUNNING, NEVER, World


@kernel
def _last_executor(W: World, j: int) -> int:
    """Return the executor that was granted first (the end of the list), or -1 if there is none."""
    c = W.jobs[j].ex_head
    while c >= 0 and W.runs[c].st_next >= 0:
        c = W.runs[c].st_next
    return c


@kernel
def _goes(W: World, j: int, c: int) -> None:
    """Mark an executor for removal; its container is released at the allocator's next exchange with YARN."""
    d, run = W.dyn[j], W.runs[c]
    d.live -= 1
    if run.up == UP:
        d.up -= 1
    d.going += 1
    run.up = GOING
    run.idle = 0
    run.hold_ms = NEVER


@kernel
def _retarget(W: World, j: int, now: int) -> bool:
    """Set the target from the number of tasks that wait or run; return whether the target has changed."""
    d = W.dyn[j]
    needed, old = executors_needed(W, j), d.target
    if needed < old:
        d.target = max(needed, d.least)
        d.to_add = 1
        return d.target != old
    if d.add_ms > now:
        return False
    if old >= d.most:
        d.to_add = 1
        return False
    target = min(max(old, d.up) + d.to_add, needed)
    target = max(min(target, d.most), d.least)
    d.target = target
    if target == old:
        d.to_add = 1
        return False
    if target > old:
        d.to_add = 2 * d.to_add if target - old == d.to_add else 1
        d.add_ms = now + d.sustained_ms
    return True


@kernel
def _remove_idle(W: World, j: int, now: int) -> bool:
    """Mark executors whose idle timeout has passed for removal, as far as the target and the minimum allow it."""
    d = W.dyn[j]
    left = d.up
    found = False
    c = _last_executor(W, j)
    while c >= 0:
        if expires_ms(W, j, c) <= now and left - 1 >= d.least and left - 1 >= d.target:
            _goes(W, j, c)
            left -= 1
            found = True
        c = W.runs[c].st_prev
    return found


@kernel
def look(W: World, j: int, now: int) -> None:
    """Run one round of the manager: set the target and remove executors that have been idle for too long."""
    d, job = W.dyn[j], W.jobs[j]
    if d.next_ms != now or job.state != J_RUNNING:
        return
    d.next_ms = NEVER
    expired, soonest = False, NEVER
    c = job.ex_head
    while c >= 0:
        at = expires_ms(W, j, c)
        if at <= now:
            expired = True
        else:
            soonest = min(soonest, at)
        c = W.runs[c].st_next
    if expired:
        d.beginning = 0
    if d.beginning == 0 and _retarget(W, j, now):
        d.asked_ms = now
        push(W, now, E_ACT, job.gen, j)  # the allocator's next exchange is now
    if expired and _remove_idle(W, j, now):
        wake_allocator(W, j, now + 1)
    if now < d.add_ms < NEVER:
        soonest = min(soonest, d.add_ms)
    if soonest < NEVER:
        look_at(W, j, soonest)


@kernel
def _cancel_unheard(W: World, j: int, excess: int, now: int) -> None:
    """Cancel surplus containers that were granted but not yet fetched by the allocator."""
    g, job = W.g[0], W.jobs[j]
    start_ms = g.container_start_ms if job.ex_start_ms < 0 else job.ex_start_ms
    c = job.ex_head
    while c >= 0 and excess > 0:
        if W.runs[c].up == STARTING and W.runs[c].start_ms - start_ms > now:
            _goes(W, j, c)
            excess -= 1
        c = W.runs[c].st_next


@kernel
def request(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Request missing executors or cancel surplus requests, and release the containers of removed executors."""
    g, job, d = W.g[0], W.jobs[j], W.dyn[j]
    missing = d.target - job.ex_wanted - d.live
    if missing > 0 and ask(S, W, j, 1, job.ex_wanted + missing, job.ex_mb, job.ex_vc, now):
        job.ex_wanted += missing
    elif missing < 0:
        cancelled = min(job.ex_wanted, -missing)
        if cancelled > 0 and ask(S, W, j, 1, job.ex_wanted - cancelled, job.ex_mb, job.ex_vc, now):
            job.ex_wanted -= cancelled
        if -missing > cancelled:
            _cancel_unheard(W, j, -missing - cancelled, now)
    if d.going == 0:
        return
    if hears(W, j, now) > now:
        wake_allocator(W, j, now)
        return
    c = _last_executor(W, j)
    while c >= 0:
        before = W.runs[c].st_prev
        if W.runs[c].up == GOING:
            app, n = S.a[job.app].id, S.c[c].n
            if nodes.release(S, c, now) == NEED_ROOM:
                g.need_room = 1
                return
            note(W, now, C_RELEASE, app, n, 0, 0, 0)
            drain(S, W, now)
        c = before
