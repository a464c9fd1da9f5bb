"""State of Spark's dynamic allocation, compiled: an application's target, its idle executors, and the next round.

In Spark 4.0 the ``ExecutorAllocationManager`` runs every 100 ms, and ``ExecutorMonitor`` measures how long an executor
has been without a task. Here the manager runs only when something may have changed, at one of the times at which
Spark's would. The resulting requests are in harness.sim.allocation.
"""

from __future__ import annotations

import math

from harness.sim.events import E_ACT, E_ALLOCATE, push
from harness.sim.kernel import kernel
from harness.sim.world import NEVER, World

#: Period of Spark's manager, and the time after which its allocator asks YARN again after a larger request.
LOOKS_MS, ASKS_AGAIN_MS = 100, 200

#: States of an executor (RunRecord.up): its container is granted and it starts; it takes tasks; it will be released at
#: the master's next heartbeat.
STARTING, UP, GOING = 0, 1, 2

#: Bits for data that tasks leave in their executor: shuffle files, cached blocks (of an executor RunRecord.keeps, of a
#: stage StageRecord.leaves).
SHUFFLED, CACHED = 1, 2


@kernel
def set_target(W: World, j: int, target: int) -> None:
    """Reset an application's dynamic allocation to a target of `target` executors, of which none is granted yet."""
    d = W.dyn[j]
    d.target = target
    d.to_add = 1
    d.beginning = 1
    d.add_ms = NEVER
    d.next_ms = NEVER
    d.live = 0
    d.up = 0
    d.going = 0


@kernel
def look_at(W: World, j: int, at: int) -> None:
    """Schedule the manager's first round at or after `at` (ms); possible rounds are 100 ms apart."""
    d = W.dyn[j]
    at = d.zero_ms + (max(at - d.zero_ms, 0) + LOOKS_MS - 1) // LOOKS_MS * LOOKS_MS
    if at < d.next_ms:
        d.next_ms = at
        push(W, at, E_ALLOCATE, W.jobs[j].gen, j)


@kernel
def hears(W: World, j: int, now: int) -> int:
    """Return the time of the allocator's next exchange with YARN at or after `now`, ms.

    In an exchange it requests containers and learns of granted and ended ones. Exchanges take place at once after a new
    target, then after 200 ms, 400 ms and so on, up to the AM's heartbeat interval (``ApplicationMaster``).
    """
    at = max(W.dyn[j].asked_ms, W.jobs[j].am0_ms)
    step, most = ASKS_AGAIN_MS, W.g[0].am_hb_ms
    while at < now:
        if step >= most:
            return at + (now - at + most - 1) // most * most
        at += step
        step *= 2
    return at


@kernel
def wake_allocator(W: World, j: int, now: int) -> None:
    """Schedule the allocator's next exchange with YARN."""
    at = hears(W, j, now)
    job = W.jobs[j]
    if job.act_ms != at:
        job.act_ms = at
        push(W, at, E_ACT, job.gen, j)


@kernel
def waiting_tasks(W: World, j: int) -> int:
    """Return the number of tasks of submitted stages that do not run."""
    n = 0
    for s in range(W.jobs[j].stages):
        st = W.stages[j, s]
        if st.open == 1 and st.sealed == 0:
            n += st.tasks - st.next_task + st.redo_n
    return n


@kernel
def executors_needed(W: World, j: int) -> int:
    """Return the number of executors that could run all waiting and running tasks at once."""
    n = 0
    for s in range(W.jobs[j].stages):
        st = W.stages[j, s]
        if st.open == 1 and st.sealed == 0:
            n += st.tasks - st.next_task + st.redo_n + st.running
    return math.ceil(n * W.dyn[j].ratio / W.jobs[j].ex_slots)


@kernel
def backlog(W: World, j: int, now: int) -> None:
    """Start the timer for requesting more executors if tasks wait; stop it if none waits."""
    d = W.dyn[j]
    if waiting_tasks(W, j) == 0:
        d.add_ms = NEVER
        d.to_add = 1
    elif d.add_ms == NEVER:
        d.add_ms = now + d.backlog_ms
        look_at(W, j, d.add_ms)


@kernel
def submitted(W: World, j: int, now: int) -> None:
    """Start the timer for requesting executors and schedule the manager's next rounds, after a stage was submitted."""
    d = W.dyn[j]
    d.beginning = 0
    if d.add_ms == NEVER:
        d.add_ms = now + d.backlog_ms
    look_at(W, j, d.add_ms)
    look_at(W, j, now + 1)


@kernel
def expires_ms(W: World, j: int, c: int) -> int:
    """Return the time at which an executor exceeds its idle timeout, ms."""
    d, run = W.dyn[j], W.runs[c]
    if run.up != UP or run.hold_ms == NEVER:
        return NEVER
    timeout = d.idle_ms
    if run.keeps != 0:
        timeout = NEVER
        if run.keeps & CACHED:
            timeout = min(timeout, d.cached_ms)
        if run.keeps & SHUFFLED:
            timeout = min(timeout, d.shuffle_ms)
    return NEVER if timeout >= NEVER else run.hold_ms + timeout


@kernel
def idle_from(W: World, j: int, c: int, now: int) -> None:
    """Mark an executor as idle from now on; ``hold_ms`` of its container stores the time."""
    W.runs[c].hold_ms = now
    at = expires_ms(W, j, c)
    if at < NEVER:
        look_at(W, j, at)


@kernel
def executor_gone(W: World, j: int, c: int) -> None:
    """Update the counts of executors after an executor's container was released, was killed or was lost."""
    d, run = W.dyn[j], W.runs[c]
    if run.up == GOING:
        d.going -= 1
        return
    d.live -= 1
    if run.up == UP:
        d.up -= 1
