"""Spark applications, compiled: tasks inside executors.

Executors are held to the end of the application, or dynamic allocation adds and removes them. The driver learns of its
tasks' ends at once. Its requests to the scheduler are in harness.sim.apps, like those of other AMs.
"""

from __future__ import annotations

from harness.sim.dynamic import GOING, UP, backlog, idle_from, look_at
from harness.sim.events import E_ACT, E_INNER, USE_MASK, push
from harness.sim.kernel import kernel
from harness.sim.lists import pool, stacked
from harness.sim.longterm_kernels import task_ended
from harness.sim.state import SchedulerState
from harness.sim.tasks import FAILED, FAILS, FINISHED, SUCCEEDS, log_attempt, put_redo, seal, take_redo, work_ms
from harness.sim.world import NEVER, World

#: No limit on the number of tasks that `_fill_executor` starts.
_ALL = 1 << 30

_into_executor, _out_of_executor = stacked("inner", "prev", "next")
_take_slot, _free_slot = pool("inner_free", "next", "inner_left", kept="gen")


@kernel
def _fill_executor(W: World, j: int, c: int, most: int, now: int) -> int:
    """Start at most `most` tasks of open stages in an executor's idle slots; return how many were started."""
    g, job, run = W.g[0], W.jobs[j], W.runs[c]
    s = 0
    started = 0
    while run.idle > 0 and s < job.stages and started < most:
        st = W.stages[j, s]
        if st.open == 0 or st.sealed == 1 or (st.next_task >= st.tasks and st.redo_n == 0):
            s += 1
            continue
        t = _take_slot(W.inner, g)
        task = W.inner[t]
        if st.redo_n > 0:
            r = take_redo(W, j, s)
            task.task = W.redo[r].task
            task.attempt = W.redo[r].attempt
            task.fails = W.redo[r].fails
        else:
            task.task = st.next_task
            task.attempt = 0
            task.fails = 0
            st.next_task += 1
        ms, ends = work_ms(W, j, s, task.task, task.attempt, task.fails, run.node)
        task.will_fail = ends
        task.start_ms = now
        task.run = c
        task.stage = s
        task.dead = 0
        _into_executor(W.inner, run, t)
        run.idle -= 1
        st.running += 1
        started += 1
        push(W, now + ms, E_INNER, task.gen, t)
    if started > 0 and job.dynamic == 1:
        run.hold_ms = NEVER
    return started


@kernel
def _spread(W: World, j: int, now: int) -> None:
    """Give tasks to executors in turn, one at a time, beginning with a pseudorandom executor.

    Follows ``TaskSchedulerImpl.resourceOffers``, which shuffles the executors.
    """
    count = 0
    c = W.jobs[j].ex_head
    while c >= 0:
        count += 1
        c = W.runs[c].st_next
    if count == 0:
        return
    first = W.jobs[j].ex_head
    for _ in range(now * 2654435761 % 4294967296 % count):
        first = W.runs[first].st_next
    started = 1
    while started > 0:
        started = 0
        c = first
        for _ in range(count):
            if W.runs[c].idle > 0:
                started += _fill_executor(W, j, c, 1, now)
            c = W.runs[c].st_next
            if c < 0:
                c = W.jobs[j].ex_head


@kernel
def fill_executors(W: World, j: int, now: int) -> None:
    """Give tasks to all of a job's executors that have idle slots."""
    if W.jobs[j].dynamic == 1:
        _spread(W, j, now)
        backlog(W, j, now)
        return
    c = W.jobs[j].ex_head
    while c >= 0:
        if W.runs[c].idle > 0:
            _fill_executor(W, j, c, _ALL, now)
        c = W.runs[c].st_next


@kernel
def enough_executors(W: World, j: int, now: int) -> bool:
    """Return whether a driver may begin: enough executors take tasks, or its waiting time (``ex_wait_ms``) is over."""
    job = W.jobs[j]
    if now >= job.am0_ms + job.ex_wait_ms:
        return True
    count = 0
    c = job.ex_head
    while c >= 0:
        if W.runs[c].start_ms <= now:
            count += 1
        c = W.runs[c].st_next
    return count >= job.ex_least


@kernel
def executor_up(W: World, c: int, use: int, now: int) -> None:
    """Let an executor begin to take tasks, if it is still live (`use`: the expected ``gen`` of its slot)."""
    run = W.runs[c]
    if run.gen != use or run.live == 0:
        return
    job = W.jobs[run.job]
    if job.dynamic == 1:
        if run.up == GOING:
            return
        run.up = UP
        W.dyn[run.job].up += 1
        idle_from(W, run.job, c, now)
        look_at(W, run.job, now)
    run.idle = job.ex_slots
    if job.am_first == 2:
        if enough_executors(W, run.job, now):
            push(W, now, E_ACT, job.gen, run.job)
        return
    _fill_executor(W, run.job, c, _ALL, now)
    if job.dynamic == 1:
        backlog(W, run.job, now)


@kernel
def _looked_at(W: World, j: int, c: int, now: int) -> None:
    """Update dynamic allocation after a task in an executor has ended and the next tasks have started."""
    if W.runs[c].idle == W.jobs[j].ex_slots:
        idle_from(W, j, c, now)
    backlog(W, j, now)
    look_at(W, j, now + 1)


@kernel
def inner_ended(S: SchedulerState, W: World, t: int, now: int) -> None:
    """End a task inside an executor; if the executor has ended before, only free the task's slot."""
    g, task = W.g[0], W.inner[t]
    dead, c = task.dead, task.run
    if dead == 0:
        _out_of_executor(W.inner, W.runs[c], t)
    task.gen = (task.gen + 1) & USE_MASK
    s, number, attempt, fails, failing, start = (
        task.stage,
        task.task,
        task.attempt,
        task.fails,
        task.will_fail,
        task.start_ms,
    )
    _free_slot(W.inner, g, t)
    if dead == 1:
        return
    run = W.runs[c]
    j = run.job
    job, st = W.jobs[j], W.stages[j, s]
    run.idle += 1
    st.running -= 1
    if job.dynamic == 1:
        run.keeps |= st.leaves
    if g.record_tasks == 1:
        outcome = FINISHED if failing == SUCCEEDS else FAILED
        log_attempt(W, job.row, s, number, attempt, run.node, run.granted_ms, start, now, outcome)
    if failing != SUCCEEDS:
        job.failed_attempts += 1
        if failing == FAILS and fails + 1 >= g.max_attempts:
            job.failed = 1
            push(W, now, E_ACT, job.gen, j)
            return
        put_redo(W, j, s, number, attempt + 1, fails + 1, -1)
        fill_executors(W, j, now)
        if job.dynamic == 1:
            _looked_at(W, j, c, now)
        return
    st.done += 1
    st.sum_ms += now - start
    job.task_ms += now - start
    job.tasks_done += 1
    task_ended(S, job.queue, now - start)
    if st.done >= st.tasks:
        seal(W, j, now)
        if job.stages_done == job.stages:
            push(W, now, E_ACT, job.gen, j)
        else:
            fill_executors(W, j, now)
    else:
        _fill_executor(W, j, c, _ALL, now)
    if job.dynamic == 1:
        _looked_at(W, j, c, now)
