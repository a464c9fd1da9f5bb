"""Effects of granted and completed containers on applications, compiled.

A granted container starts an AM, a task, an executor or a service instance, which ends or is lost when the container
completes. harness.sim.apps computes the requests that AMs then make.
"""

from __future__ import annotations

from harness.sim.dynamic import backlog, executor_gone, hears, look_at, wake_allocator
from harness.sim.ends import into_node, out_of_node
from harness.sim.events import E_ACT, E_EXECUTOR, E_REDUCE_CHECK, E_SPECULATE, USE_MASK, push
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import container_ended, container_started, task_ended
from harness.sim.quantum import learn
from harness.sim.state import ASSIGNED, COMPLETED, LogRecord, SchedulerState
from harness.sim.state import FINISHED as EXITED
from harness.sim.tasks import (
    BEATEN,
    FAILED,
    FAILS,
    FINISHED,
    KILLED,
    PREEMPTED,
    SUCCEEDS,
    am_hears,
    ends_at,
    feeds_early,
    into_executors,
    into_stage,
    log_attempt,
    next_attempt,
    out_of_executors,
    out_of_stage,
    put_redo,
    waiting,
    wake,
    work_ms,
)
from harness.sim.weighing import weigh
from harness.sim.world import J_ENDED, J_RUNNING, NEVER, R_AM, R_EXECUTOR, R_SERVICE, R_TASK, SERVICE, SPARK, World


@kernel
def on_assigned(S: SchedulerState, W: World, entry: LogRecord, now: int) -> None:
    """Use a granted container as its application's AM, a task, an executor or a service instance."""
    g = W.g[0]
    c, node = entry.c, entry.node
    j = S.a[entry.app].tag
    job, run = W.jobs[j], W.runs[c]
    run.mb = entry.mb
    run.vc = entry.vcores
    g.started += 1
    g.live_runs += 1
    run.live = 1
    run.job = j
    run.stage = -1
    run.task = -1
    run.attempt = 0
    run.spent = 0
    run.fails = 0
    run.will_fail = 0
    run.twin = -1
    run.inner = -1
    run.idle = 0
    run.granted_ms = now
    run.start_ms = now
    run.end_ms = NEVER
    run.hold_ms = NEVER
    run.up = 0
    run.keeps = 0
    into_node(W, c, node)
    if S.xg[0].weighted == 1:
        weigh(S, W, c, 1.0)
    container_started(S, job.queue, entry.app, now, job.am_ms == NEVER)
    if job.am_ms == NEVER:
        run.kind = R_AM
        am_up(W, j, now)
        return
    if S.xg[0].quantum == 1:
        g.cross_ms = now  # counted before the next choice
        job.cross_ms = now
    heard = am_hears(W, j, now) + g.am_lag_ms
    start = heard + g.container_start_ms
    run.start_ms = start
    if job.kind == SPARK:
        if job.dynamic == 1:
            heard = hears(W, j, now)
            start = heard + g.container_start_ms
            run.start_ms = start
            W.dyn[j].live += 1
        if job.ex_start_ms >= 0:
            start = heard + job.ex_start_ms
            run.start_ms = start
        run.kind = R_EXECUTOR
        job.ex_wanted -= 1
        into_executors(W.runs, job, c)
        push(W, start, E_EXECUTOR, run.gen, c)
        return
    if job.kind == SERVICE:
        run.kind = R_SERVICE
        s = entry.priority - 1
        run.stage = s
        W.stages[j, s].wanted -= 1
        into_stage(W, c, j, s)
        return
    run.kind = R_TASK
    s = entry.priority - 1
    st = W.stages[j, s]
    run.stage = s
    st.wanted -= 1
    if s == job.reduces_at:
        st.scheduled -= 1
    into_stage(W, c, j, s)
    if not next_attempt(W, c, j, s):
        # The original ended in the meantime, so the copy is not needed: the AM releases the container when it sees it.
        ends_at(W, c, start)
        return
    ms, ends = work_ms(W, j, s, run.task, run.attempt, run.fails, node)
    run.will_fail = ends
    if st.open == 1 or ends != SUCCEEDS:
        ends_at(W, c, start + ms)
    else:
        run.hold_ms = start + ms
        if job.reduce_check == 0 and job.maps_at < 0:
            job.reduce_check = 1
            push(W, now + g.reduce_preempt_ms, E_REDUCE_CHECK, job.gen, j)
    if st.wanted == 0 and st.next_task == st.tasks and st.feeds != 0:
        wake(W, j, now)


@kernel
def am_up(W: World, j: int, now: int) -> None:
    """Start a job's application master at time `now` (ms)."""
    g, job = W.g[0], W.jobs[j]
    job.am_ms = now
    job.am0_ms = now + (g.am_start_ms if job.am_start_ms < 0 else job.am_start_ms)
    if job.first_am_ms == NEVER:
        job.first_am_ms = now
    job.state = J_RUNNING
    job.act_ms = job.am0_ms
    push(W, job.am0_ms, E_ACT, job.gen, j)
    if g.speculation == 1 and job.spec_on == 0 and job.kind != SPARK and job.kind != SERVICE:
        job.spec_on = 1
        push(W, job.am0_ms + g.speculation_ms, E_SPECULATE, job.gen, j)


@kernel
def on_completed(S: SchedulerState, W: World, c: int, finished: bool, now: int) -> None:
    """Handle a completed container. ``finished``: its process ended by itself; otherwise it was killed or released."""
    g, run = W.g[0], W.runs[c]
    if run.live == 0:
        return
    j = run.job
    job = W.jobs[j]
    g.ended += 1
    g.live_runs -= 1
    run.live = 0
    run.gen = (run.gen + 1) & USE_MASK
    out_of_node(W, c)
    held = now - run.granted_ms
    job.mb_ms += held * run.mb
    job.vc_ms += held * run.vc
    ended = job.state == J_ENDED
    if S.xg[0].weighted == 1:
        weigh(S, W, c, -1.0)
    container_ended(S, job.queue, job.app, now, run.kind == R_AM)
    if S.xg[0].quantum == 1:
        g.cross_ms = now
        job.cross_ms = now
        if finished and run.kind != R_AM:
            learn(S, W, j, held)
    if run.kind == R_AM:
        if not ended:
            job.am_lost = 1
            g.am_lost = 1
        return
    if run.kind == R_EXECUTOR:
        out_of_executors(W.runs, job, c)
        t = run.inner
        while t >= 0:
            task = W.inner[t]
            if not ended:
                put_redo(W, j, task.stage, task.task, task.attempt + 1, task.fails, -1)
                W.stages[j, task.stage].running -= 1
            if g.record_tasks == 1:
                log_attempt(
                    W,
                    job.row,
                    task.stage,
                    task.task,
                    task.attempt,
                    run.node,
                    run.granted_ms,
                    task.start_ms,
                    now,
                    KILLED,
                )
            task.dead = 1
            t = task.next
        run.inner = -1
        if job.dynamic == 1:
            executor_gone(W, j, c)
            if not ended:
                backlog(W, j, now)
                look_at(W, j, now)
                wake_allocator(W, j, now)
        elif not ended:
            job.ex_owed += 1
            wake(W, j, now)
        return
    s = run.stage
    out_of_stage(W, c, j, s)
    if run.kind == R_SERVICE:
        if not ended:
            W.stages[j, s].asked -= 1
            wake(W, j, now)
        return
    if run.task < 0:
        return
    end = min(run.end_ms, now)
    outcome = KILLED
    if finished and run.twin != BEATEN and run.twin != PREEMPTED:
        outcome = FINISHED if run.will_fail == SUCCEEDS else FAILED
    if g.record_tasks == 1:
        log_attempt(W, job.row, s, run.task, run.attempt, run.node, run.granted_ms, run.start_ms, end, outcome)
    if ended or run.twin == BEATEN:
        return
    st = W.stages[j, s]
    twin = run.twin
    if outcome == FINISHED:
        st.done += 1
        st.sum_ms += end - run.start_ms
        job.task_ms += end - run.start_ms
        job.tasks_done += 1
        task_ended(S, job.queue, end - run.start_ms)
        heard = am_hears(W, j, now)
        if st.bucket_ms != heard:
            st.bucket_ms = heard
            st.in_bucket = 0
        st.in_bucket += 1
        if twin >= 0:
            # The AM kills the slower of the two attempts when it hears that the faster one has ended.
            other = W.runs[twin]
            other.twin = BEATEN
            ends_at(W, twin, min(other.end_ms, heard + g.am_lag_ms))
        held_back = job.maps_at >= 0 and st.wanted < waiting(st)  # because of a limit on running tasks
        if st.done >= st.tasks or held_back or (st.feeds != 0 and feeds_early(W, j, s)):
            wake(W, j, now)
        return
    fails = run.fails
    if outcome == FAILED:
        job.failed_attempts += 1
        fails += 1
        if run.will_fail == FAILS and fails >= g.max_attempts:
            job.failed = 1
            wake(W, j, now)
            return
    if twin >= 0:
        W.runs[twin].twin = -1
        W.runs[twin].fails = fails
        W.runs[twin].spent = max(W.runs[twin].spent, run.attempt, run.spent)
        return
    put_redo(W, j, s, run.task, max(run.attempt, run.spent) + 1, fails, -1)
    wake(W, j, now)


@kernel
def drain(S: SchedulerState, W: World, now: int) -> None:
    """Handle the assignments and completions that the scheduler has logged since the last call; empty the log."""
    n = S.g[0].n_log
    for i in range(n):
        entry = S.log[i]
        if entry.kind == ASSIGNED:
            on_assigned(S, W, entry, now)
        elif entry.kind == COMPLETED:
            on_completed(S, W, entry.c, entry.why == EXITED, now)
    S.g[0].n_log = 0
