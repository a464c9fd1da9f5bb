"""Task attempts, compiled: their lists, the choice of the next one, their durations, and what an AM knows of them.

These functions do not call the scheduler. harness.sim.apps and harness.sim.spark use them.
"""

from __future__ import annotations

import math

from harness.base.errors import InternalError
from harness.sim.durations import (
    ATTEMPTS,
    LISTED,
    STREAM_DURATION,
    STREAM_FAILS,
    STREAM_FAILS_AT,
    STREAM_STRAGGLES,
    draw_ms,
    unit,
    whole_ms,
)
from harness.sim.dynamic import submitted
from harness.sim.ends import set_end
from harness.sim.events import E_ACT, E_BEAT, push
from harness.sim.kernel import kernel
from harness.sim.lists import pool, stacked
from harness.sim.world import NEVER, StageRecord, World

#: How an attempt ended (TaskLogRecord.outcome).
FINISHED, FAILED, KILLED = 0, 1, 2

#: How an attempt will end by itself (RunRecord.will_fail, InnerTaskRecord.will_fail). IS_REPEATED is a recorded attempt
#: that did not succeed: the task is repeated however often this happens, and the job's attempt limit does not apply.
SUCCEEDS, FAILS, IS_REPEATED = 0, 1, 2

#: Values of RunRecord.twin: a speculative copy of this attempt was requested and has no container yet; the other
#: attempt of the speculative pair has ended first.
COPY_ASKED, BEATEN = -2, -3

#: Value of RunRecord.twin for a reduce: its AM is having it killed to make room for maps.
PREEMPTED = -4


# --- lists ---

#: Lists of a stage's live containers and of a Spark job's executors; pool of ``redo``.
_into_stage, _out_of_stage = stacked("run_head", "st_prev", "st_next")
into_executors, out_of_executors = stacked("ex_head", "st_prev", "st_next")
_take_slot, _free_slot = pool("redo_free", "next", "redo_left", kept=None)


@kernel
def into_stage(W: World, c: int, j: int, s: int) -> None:
    """Add a container to a stage's list of live containers."""
    _into_stage(W.runs, W.stages[j, s], c)
    W.stages[j, s].running += 1


@kernel
def out_of_stage(W: World, c: int, j: int, s: int) -> None:
    """Remove a container from a stage's list of live containers."""
    _out_of_stage(W.runs, W.stages[j, s], c)
    W.stages[j, s].running -= 1


@kernel
def inner_used(W: World) -> int:
    """Return how many tasks run inside executors."""
    return len(W.inner) - W.g[0].inner_left


@kernel
def put_redo(W: World, j: int, s: int, task: int, attempt: int, fails: int, copy_of: int) -> None:
    """Append a task to its stage's list of attempts to request again.

    ``fails``: number of earlier attempts that failed; ``copy_of``: the container that the attempt duplicates, or -1.
    """
    r = _take_slot(W.redo, W.g[0])
    W.redo[r].task = task
    W.redo[r].attempt = attempt
    W.redo[r].fails = fails
    W.redo[r].copy_of = copy_of
    W.redo[r].copy_gen = W.runs[copy_of].gen if copy_of >= 0 else 0
    W.redo[r].since_ms = W.g[0].now
    W.redo[r].next = -1
    st = W.stages[j, s]
    if st.redo_n == 0:
        st.redo_head = r
    else:
        W.redo[st.redo_tail].next = r
    st.redo_tail = r
    st.redo_n += 1


@kernel
def take_redo(W: World, j: int, s: int) -> int:
    """Remove and free the first entry of a stage's list; return its slot, readable until the next `put_redo`."""
    st = W.stages[j, s]
    r = st.redo_head
    st.redo_head = W.redo[r].next
    st.redo_n -= 1
    if st.redo_asked > 0:
        st.redo_asked -= 1
    _free_slot(W.redo, W.g[0], r)
    return r


@kernel
def _is_stale(W: World, r: int) -> bool:
    """Return whether a speculative copy is unnecessary, because its original has ended."""
    redo = W.redo[r]
    if redo.copy_of < 0:
        return False
    other = W.runs[redo.copy_of]
    return other.gen != redo.copy_gen or other.live == 0 or other.twin != COPY_ASKED


@kernel
def drop_stale_copies(W: World, j: int, s: int) -> None:
    """Discard a stage's speculative copies that wait for a container although their originals have ended."""
    st = W.stages[j, s]
    before, r = -1, st.redo_head
    for _ in range(st.redo_n):
        after = W.redo[r].next
        if _is_stale(W, r):
            if before < 0:
                st.redo_head = after
            else:
                W.redo[before].next = after
            if st.redo_tail == r:
                st.redo_tail = before
            st.redo_n -= 1
            _free_slot(W.redo, W.g[0], r)
        else:
            before = r
        r = after
    st.redo_asked = min(st.redo_asked, st.redo_n)


@kernel
def drop_redo(W: World, j: int) -> None:
    """Discard all tasks of a job that are queued for another attempt."""
    for s in range(W.jobs[j].stages):
        while W.stages[j, s].redo_n > 0:
            take_redo(W, j, s)


# --- the AM's clock ---


@kernel
def am_hears(W: World, j: int, now: int) -> int:
    """Return the time of the AM's first heartbeat at or after `now`, ms."""
    first = W.jobs[j].am0_ms
    if now <= first:
        return first
    period = W.g[0].am_hb_ms
    return first + (now - first + period - 1) // period * period


@kernel
def wake(W: World, j: int, now: int) -> None:
    """Schedule the AM's reaction (E_ACT) to its first response at or after `now`, unless it is scheduled already."""
    job = W.jobs[j]
    if job.am_ms == NEVER:
        return
    at = am_hears(W, j, now) + W.g[0].am_lag_ms
    if job.act_ms < at:
        job.act_ms = at
        push(W, at, E_ACT, job.gen, j)


# --- tasks ---


@kernel
def work_ms(W: World, j: int, s: int, task: int, attempt: int, failed: int, node: int) -> tuple[int, int]:
    """Return how long an attempt works on a node, ms, and how it ends (SUCCEEDS, FAILS or IS_REPEATED).

    ``failed``: number of earlier failed attempts of the task.
    """
    g, st, key = W.g[0], W.stages[j, s], W.jobs[j].key
    ends = SUCCEEDS
    if st.kind == LISTED:
        ms = W.values[st.first_value + task] * 1000.0
    elif st.kind == ATTEMPTS:
        # Only attempts that ended by themselves advance in the recorded list; a lost or preempted attempt is repeated.
        at = int(W.values[st.first_value + task]) + failed
        last = int(W.values[st.first_value + task + 1]) - 1
        if at < last:
            ends = IS_REPEATED
        ms = W.values[st.first_value + min(at, last)] * 1000.0
    else:
        u = unit(key, s, task, attempt, STREAM_DURATION)
        ms = draw_ms(u, st.kind, st.a, st.b, W.values, st.first_value, st.values)
    if g.straggler > 0.0 and unit(key, s, task, attempt, STREAM_STRAGGLES) < g.straggler:
        ms *= g.straggler_factor
    if g.failure > 0.0 and ends == SUCCEEDS and unit(key, s, task, attempt, STREAM_FAILS) < g.failure:
        ends = FAILS
        ms *= unit(key, s, task, attempt, STREAM_FAILS_AT)
    return whole_ms(ms / W.nodes[node].speed), ends


@kernel
def ends_at(W: World, c: int, at: int) -> None:
    """Set the time (ms) at which the container's process will exit; schedule the heartbeat that reports it, if any."""
    set_end(W, c, at)
    if W.g[0].end_hb_ms >= 0:
        push(W, at + W.g[0].end_hb_ms, E_BEAT, 0, W.runs[c].node)


@kernel
def next_attempt(W: World, c: int, j: int, s: int) -> bool:
    """Give container `c` the next attempt of its stage; return False if none is left."""
    st, run = W.stages[j, s], W.runs[c]
    while st.redo_n > 0 and (st.redo_asked > 0 or st.next_task >= st.tasks):
        r = take_redo(W, j, s)
        copy_of = W.redo[r].copy_of
        if _is_stale(W, r):
            continue
        if copy_of >= 0:
            W.runs[copy_of].twin = c
            run.twin = copy_of
        run.task = W.redo[r].task
        run.attempt = W.redo[r].attempt
        run.fails = W.redo[r].fails
        return True
    if st.next_task < st.tasks:
        run.task = st.next_task
        run.attempt = 0
        run.fails = 0
        st.next_task += 1
        return True
    return False


@kernel
def log_attempt(
    W: World, row: int, stage: int, task: int, attempt: int, node: int, granted: int, start: int, end: int, outcome: int
) -> None:
    """Append an attempt to the task log; times are in ms."""
    g = W.g[0]
    if g.task_n >= len(W.tasklog):
        raise InternalError("the simulator's engine has no free record left in its log of tasks")
    entry = W.tasklog[g.task_n]
    g.task_n += 1
    entry.row = row
    entry.granted_ms = granted
    entry.start_ms = start
    entry.end_ms = end
    entry.stage = stage
    entry.task = task
    entry.attempt = attempt
    entry.node = node
    entry.outcome = outcome


# --- stages, as the AM sees them ---


@kernel
def waiting(st: StageRecord) -> int:
    """Return the number of a stage's tasks without a container, including attempts to be repeated."""
    return st.tasks - st.next_task + st.redo_n


@kernel
def feeds_early(W: World, j: int, s: int) -> bool:
    """Return whether some stage that depends on `s` requests tasks before `s` has ended (slow start below 1)."""
    for f in range(W.jobs[j].stages):
        st = W.stages[j, f]
        if (W.stages[j, s].feeds >> f) & 1 and st.slow_start < 1.0 and st.asked < st.tasks:
            return True
    return False


@kernel
def known_done(W: World, j: int, s: int, now: int) -> int:
    """Return how many tasks of a stage the AM knows to have ended."""
    st = W.stages[j, s]
    if st.in_bucket > 0 and st.bucket_ms + W.g[0].am_lag_ms > now:
        return st.done - st.in_bucket
    return st.done


@kernel
def open_stage(W: World, j: int, s: int, now: int) -> None:
    """Open a stage whose dependencies have ended; its running tasks may end from now on, after their tails."""
    W.stages[j, s].open = 1
    c = W.stages[j, s].run_head
    while c >= 0:
        run = W.runs[c]
        if run.end_ms == NEVER and run.task >= 0:
            tail_ms = int(W.stages[j, s].tail * (run.hold_ms - run.start_ms))
            ends_at(W, c, max(run.hold_ms, now + tail_ms))
        c = run.st_next


@kernel
def _waits_for_driver(W: World, j: int, s: int, now: int) -> bool:
    """Return whether a Spark driver still delays the submission of a stage whose dependencies have ended."""
    st = W.stages[j, s]
    if st.delay_ms > 0 and st.ready_ms == 0:
        st.ready_ms = now + st.delay_ms
        push(W, st.ready_ms, E_ACT, W.jobs[j].gen, j)
    return now < st.ready_ms


@kernel
def seal(W: World, j: int, now: int) -> None:
    """Seal the stages that the AM knows to have ended, and open the stages that depend on them."""
    job = W.jobs[j]
    again = True
    while again:
        again = False
        for s in range(job.stages):
            st = W.stages[j, s]
            if st.sealed == 0 and st.open == 1 and (st.tasks == 0 or known_done(W, j, s, now) >= st.tasks):
                st.sealed = 1
                job.stages_done += 1
        for s in range(job.stages):
            if W.stages[j, s].open == 0:
                ready = True
                if job.chained == 1:
                    ready = s == 0 or W.stages[j, s - 1].sealed == 1
                else:
                    for d in range(job.stages):
                        if (W.stages[j, s].after >> d) & 1 and W.stages[j, d].sealed == 0:
                            ready = False
                            break
                if ready and job.delays == 1 and _waits_for_driver(W, j, s, now):
                    ready = False
                if ready:
                    open_stage(W, j, s, now)
                    if job.dynamic == 1:
                        submitted(W, j, now)
                    again = True


@kernel
def may_ask(W: World, j: int, s: int, now: int) -> int:
    """Return how many of a stage's tasks may be requested in total; -1: nothing, not even repeated attempts."""
    st = W.stages[j, s]
    if st.open == 1:
        return st.tasks
    total = 0
    known = 0
    waiting = False
    for d in range(W.jobs[j].stages):
        if (st.after >> d) & 1:
            dep = W.stages[j, d]
            total += dep.tasks
            known += known_done(W, j, d, now)
            if dep.next_task < dep.tasks or dep.redo_n > 0:
                waiting = True
                if dep.running == 0 and known > 0:
                    return -1
    if known < st.slow_start * total:
        return -1
    if not waiting:
        return st.tasks
    return math.ceil(st.tasks * (known / total))
