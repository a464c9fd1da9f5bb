"""Applications, compiled: the AMs' requests, the start and end of tasks, and the handling of failures.

Covers MapReduce and DAGs (one container per task), Spark (tasks inside executors) and services. The scheduler is called
through `harness.sim.nodes` and `harness.sim.ops`; `harness.sim.loop` processes the events.

An AM heartbeats every ``am_hb_ms``, counted from its first heartbeat, and acts on a response ``am_lag_ms`` after the
response. A container that is granted at t therefore starts its work at the AM's first heartbeat at or after t, plus the
lag. The AM learns of completions in the same way.

Tasks are started in the order of their numbers; tasks whose earlier attempt was lost or failed come first. A stage that
depends on other stages requests its tasks when the fraction ``slow_start`` of the tasks of those stages has ended. A
MapReduce AM then decides like Hadoop's (harness.sim.master). In a DAG, while some tasks of the earlier stages still
wait for a container, a stage requests the same fraction of its own tasks as has ended in those stages; afterwards it
requests all of its tasks. If a stage holds containers while tasks of earlier stages wait and none of them runs, the
stage releases one container every ``reduce_preempt_ms``.
"""

from __future__ import annotations

from harness.sim import nodes, ops
from harness.sim.allocation import request
from harness.sim.asking import ask
from harness.sim.calls import (
    C_APP,
    C_END,
    C_RELEASE,
    C_RESTART,
    note,
)
from harness.sim.dynamic import set_target
from harness.sim.events import E_ACT, E_ARRIVE, E_LIFETIME, E_REDUCE_CHECK, E_SPECULATE, USE_MASK, push
from harness.sim.granted import am_up, drain
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import settle
from harness.sim.master import beat
from harness.sim.members import joins, leaves
from harness.sim.quantum import assume, begin, leave
from harness.sim.spark import enough_executors, fill_executors
from harness.sim.state import NEED_ROOM, SchedulerState
from harness.sim.tasks import COPY_ASKED, IS_REPEATED, drop_redo, inner_used, may_ask, put_redo, seal, take_redo, wake
from harness.sim.world import J_ENDED, J_FREE, J_RUNNING, J_SUBMITTED, NEVER, SERVICE, SPARK, World

# --- actions of the AM ---


@kernel
def act(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Let a job's AM react to its latest response: request containers, open stages, or end the job."""
    job = W.jobs[j]
    if job.state != J_RUNNING or now < job.am0_ms:
        return
    if job.failed == 1:
        finish(S, W, j, now)
        return
    if job.kind == SPARK:
        if job.am_first == 1:
            job.am_first = 2
            if job.dynamic == 1:
                W.dyn[j].zero_ms = now
                W.dyn[j].asked_ms = now
            if job.ex_least > 0:
                push(W, now + job.ex_wait_ms, E_ACT, job.gen, j)
        if job.am_first == 2 and (job.ex_least == 0 or enough_executors(W, j, now)):
            job.am_first = 0
            seal(W, j, now)
            fill_executors(W, j, now)
        elif job.am_first == 0 and job.delays == 1 and job.stages_done < job.stages:
            seal(W, j, now)
            fill_executors(W, j, now)
        if job.am_first == 0 and job.stages_done == job.stages:
            _through(S, W, j, now)
        elif job.ex_owed > 0 and ask(S, W, j, 1, job.ex_wanted + job.ex_owed, job.ex_mb, job.ex_vc, now):
            job.ex_wanted += job.ex_owed
            job.ex_owed = 0
        if job.dynamic == 1 and job.state == J_RUNNING:
            request(S, W, j, now)
        return
    if job.kind == SERVICE:
        for s in range(job.stages):
            st = W.stages[j, s]
            more = st.tasks - st.asked
            if more > 0 and ask(S, W, j, s + 1, st.wanted + more, st.mb, st.vc, now):
                st.wanted += more
                st.asked = st.tasks
        return
    seal(W, j, now)
    if job.stages_done == job.stages:
        _through(S, W, j, now)
        return
    if job.maps_at >= 0:
        beat(S, W, j, now)
        return
    for s in range(job.stages):
        st = W.stages[j, s]
        if st.sealed == 1 or (st.asked >= st.tasks and st.redo_n <= st.redo_asked):
            continue
        allowed = may_ask(W, j, s, now)
        if allowed < 0:
            continue
        fresh = max(allowed - st.asked, 0)
        more = fresh + st.redo_n - st.redo_asked
        if more > 0 and ask(S, W, j, s + 1, st.wanted + more, st.mb, st.vc, now):
            st.asked += fresh
            st.redo_asked = st.redo_n
            st.wanted += more


@kernel
def _through(S: SchedulerState, W: World, j: int, now: int) -> None:
    """End a job whose tasks have all ended, once its AM has finished its remaining work (commit, history)."""
    job = W.jobs[j]
    if job.lifetime_ms < NEVER:
        return  # a service ends with its lifetime
    if job.over_ms == 0 and job.am_end_ms > 0:
        job.over_ms = now + job.am_end_ms
        push(W, job.over_ms, E_ACT, job.gen, j)
    elif now >= job.over_ms:
        finish(S, W, j, now)


@kernel
def check_reduces(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Release one task's container if the tasks on which it depends wait for containers and none of them runs.

    The check is repeated every ``reduce_preempt_ms`` as long as the job holds containers of stages that are not open.
    """
    job = W.jobs[j]
    if job.state != J_RUNNING:
        job.reduce_check = 0
        return
    held = False
    for s in range(job.stages):
        st = W.stages[j, s]
        if st.open == 1 or st.running == 0:
            continue
        held = True
        blocked = False
        for d in range(job.stages):
            dep = W.stages[j, d]
            if (st.after >> d) & 1 and dep.wanted > 0 and dep.running == 0:
                blocked = True
        if not blocked:
            continue
        if st.wanted > 0:
            if not ask(S, W, j, s + 1, 0, st.mb, st.vc, now):
                return
            st.asked -= st.wanted - st.redo_asked
            st.redo_asked = 0
            st.wanted = 0
        c = st.run_head
        n = S.c[c].n
        if nodes.release(S, c, now) == NEED_ROOM:
            W.g[0].need_room = 1
            return
        note(W, now, C_RELEASE, S.a[job.app].id, n, 0, 0, 0)
        drain(S, W, now)
        break
    if held:
        push(W, now + W.g[0].reduce_preempt_ms, E_REDUCE_CHECK, job.gen, j)
    else:
        job.reduce_check = 0


@kernel
def speculate(W: World, j: int, now: int) -> None:
    """Request speculative copies of tasks that have run much longer than their stage's mean duration."""
    g, job = W.g[0], W.jobs[j]
    if job.state == J_RUNNING:
        found = False
        for s in range(job.stages):
            st = W.stages[j, s]
            if st.open == 0 or st.done == 0:
                continue
            limit = g.speculation_factor * st.sum_ms / st.done
            c = st.run_head
            while c >= 0:
                run = W.runs[c]
                slow = run.task >= 0 and run.twin == -1 and now - run.start_ms > limit and run.end_ms > now
                if slow and run.will_fail != IS_REPEATED:
                    if g.redo_left <= g.live_runs + inner_used(W):
                        break
                    put_redo(W, j, s, run.task, max(run.attempt, run.spent) + 1, run.fails, c)
                    run.twin = COPY_ASKED
                    found = True
                c = run.st_next
        if found:
            wake(W, j, now)
    push(W, now + g.speculation_ms, E_SPECULATE, job.gen, j)


# --- jobs ---


@kernel
def arrive(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Submit a job to the scheduler; a rejected job has failed."""
    g, job = W.g[0], W.jobs[j]
    unmanaged = job.am_mb == 0 and job.am_vc == 0
    app = ops.add_app(S, job.queue, job.user, not unmanaged, job.am_mb, job.am_vc, 0, now)
    if app == NEED_ROOM:
        g.need_room = 1
        return
    job.state = J_SUBMITTED
    job.submit_ms = now
    g.waiting_jobs -= 1
    if app < 0:
        job.failed = 1
        job.app = -1
        finish(S, W, j, now)
        return
    job.app = app
    note(W, now, C_APP, S.a[app].id, job.row, 0, 0, 0)
    if S.xg[0].quantum == 1:
        begin(S, W, j)
    S.a[app].tag = j
    if S.x[job.queue].by_apps == 1:
        joins(S, W, j, now)
    settle(S, job.queue, now)
    if unmanaged:
        am_up(W, j, now)
    if job.lifetime_ms < NEVER:
        push(W, now + job.lifetime_ms, E_LIFETIME, job.gen, j)


@kernel
def restart_lost(S: SchedulerState, W: World, now: int) -> None:
    """Start a new attempt of every job whose AM was lost."""
    g = W.g[0]
    g.am_lost = 0
    for j in range(len(W.jobs)):
        if W.jobs[j].am_lost == 1:
            _restart(S, W, j, now)


@kernel
def _restart(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Start a new attempt of a job whose AM was lost.

    Ended tasks stay ended, except those of Spark, whose results were lost with the driver.
    """
    g, job = W.g[0], W.jobs[j]
    if job.state == J_ENDED or job.state == J_FREE:
        job.am_lost = 0
        return
    if nodes.restart_app(S, job.app, job.am_mb, job.am_vc, now) == NEED_ROOM:
        g.need_room = 1
        g.am_lost = 1
        return
    note(W, now, C_RESTART, S.a[job.app].id, 0, 0, 0, 0)
    job.am_lost = 0
    job.state = J_SUBMITTED
    job.restarts += 1
    job.am_ms = NEVER
    job.act_ms = 0
    job.over_ms = 0
    drain(S, W, now)
    settle(S, job.queue, now)
    if S.xg[0].quantum == 1:
        assume(S, W, j, now)
    job.ex_wanted = 0
    job.ex_owed = job.executors
    if job.dynamic == 1:
        job.ex_owed = 0
        set_target(W, j, W.dyn[j].initial)
    job.am_first = 1
    for s in range(job.stages):
        st = W.stages[j, s]
        if job.kind == SPARK:
            while st.redo_n > 0:
                take_redo(W, j, s)
            st.done = 0
            st.next_task = 0
            st.sealed = 0
            st.open = 0
            st.ready_ms = 0
        elif job.kind == SERVICE:
            st.asked = 0
        else:
            st.asked -= st.wanted - st.redo_asked
        st.redo_asked = 0
        st.wanted = 0
        st.scheduled = 0
        st.started = 0
        st.since_ms = NEVER
    if job.kind == SPARK:
        job.stages_done = 0


@kernel
def finish(S: SchedulerState, W: World, j: int, now: int) -> None:
    """End a job: end its application and all its containers, and schedule the jobs that follow it."""
    g, job = W.g[0], W.jobs[j]
    if job.state == J_ENDED or job.state == J_FREE:
        return
    if job.app >= 0:
        if nodes.end_app(S, job.app, now) == NEED_ROOM:
            g.need_room = 1
            return
        note(W, now, C_END, S.a[job.app].id, 0, 0, 0, 0)
        job.state = J_ENDED
        drain(S, W, now)
        settle(S, job.queue, now)
        if S.x[job.queue].by_apps == 1:
            leaves(S, W, j, now)
        if S.xg[0].quantum == 1:
            leave(S, W, j)
            assume(S, W, j, now)
    drop_redo(W, j)
    entry = W.ended[g.ended_n]
    g.ended_n += 1
    entry.row = job.row
    entry.started_ms = job.first_am_ms
    entry.finished_ms = now
    entry.submit_ms = job.submit_ms
    entry.mb_ms = job.mb_ms
    entry.vc_ms = job.vc_ms
    entry.task_ms = job.task_ms
    entry.tasks_done = job.tasks_done
    entry.failed_attempts = job.failed_attempts
    entry.failed = job.failed
    g.jobs_done += 1
    S.x[job.queue].apps_done += 1
    g.jobs_failed += job.failed
    g.last_end_ms = now
    if job.endless == 0:
        g.live_jobs -= 1
    f = job.followers
    while f >= 0:
        after = W.jobs[f].next
        push(W, now + W.jobs[f].think_ms, E_ARRIVE, W.jobs[f].gen, f)
        f = after
    job.gen = (job.gen + 1) & USE_MASK
    job.state = J_FREE
    job.next = g.job_free
    g.job_free = j
