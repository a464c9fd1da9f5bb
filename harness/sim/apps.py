"""Applications, compiled: what their masters ask for, when tasks start and end, what is done about failures.

MapReduce and DAGs (each task a container), Spark (tasks inside executors that are held to the end), services. The
scheduler is asked through harness.sim.scheduler's kernels; when things happen is harness.sim.loop's business.

What an AM knows. It heartbeats every ``am_hb_ms`` from its first heartbeat on, and acts on a response ``am_lag_ms``
after it came. So a container that was granted at t starts its work at the AM's first heartbeat at or after t, plus the
lag; completions that the scheduler learnt of at t count for the AM from the same moment on.

Tasks are handed out in the order of their numbers, first those whose former attempt was lost or failed. A stage that
waits for others asks for its tasks when ``slow_start`` of theirs have ended: as many as that fraction while some of
theirs still wait for a container, all when all of theirs have one (so that a job's reduces cannot take every container
that its maps need); a job whose reduces hold containers while its maps wait and none runs gives reduces back, one each
``reduce_preempt_ms``.
"""

from __future__ import annotations

import math
from typing import Any

from harness.sim.durations import (
    LISTED,
    STREAM_DURATION,
    STREAM_FAILS,
    STREAM_FAILS_AT,
    STREAM_STRAGGLES,
    draw_ms,
    unit,
    whole_ms,
)
from harness.sim.events import (
    E_ACT,
    E_ARRIVE,
    E_EXECUTOR,
    E_INNER,
    E_LIFETIME,
    E_REDUCE_CHECK,
    E_SPECULATE,
    USE_MASK,
    push,
)
from harness.sim.kernel import kernel
from harness.sim.quantum import assume, begin, learn
from harness.sim.scheduler import apps as fs_apps
from harness.sim.scheduler import nodes as fs_nodes
from harness.sim.scheduler.longterm import container_ended, container_started, settle, task_ended
from harness.sim.scheduler.state import ASSIGNED, COMPLETED, NEED_ROOM
from harness.sim.scheduler.state import FINISHED as EXITED
from harness.sim.world import (
    J_ENDED,
    J_FREE,
    J_RUNNING,
    J_SUBMITTED,
    NEVER,
    R_AM,
    R_EXECUTOR,
    R_SERVICE,
    R_TASK,
    SERVICE,
    SPARK,
)

#: How a run of a container ended, in the task log.
FINISHED, FAILED, KILLED = 0, 1, 2

#: Of a speculative pair: the copy was asked for and has no container yet.
COPY_ASKED = -2


# --- lists ---


@kernel
def _into_node(W: Any, c: int, node: int) -> Any:
    head = W.nodes[node].head
    W.runs[c].node = node
    W.runs[c].node_prev = -1
    W.runs[c].node_next = head
    if head >= 0:
        W.runs[head].node_prev = c
    W.nodes[node].head = c


@kernel
def _out_of_node(W: Any, c: int) -> Any:
    before, after = W.runs[c].node_prev, W.runs[c].node_next
    if before >= 0:
        W.runs[before].node_next = after
    else:
        W.nodes[W.runs[c].node].head = after
    if after >= 0:
        W.runs[after].node_prev = before


@kernel
def _into_stage(W: Any, c: int, j: int, s: int) -> Any:
    head = W.stages[j, s].run_head
    W.runs[c].st_prev = -1
    W.runs[c].st_next = head
    if head >= 0:
        W.runs[head].st_prev = c
    W.stages[j, s].run_head = c
    W.stages[j, s].running += 1


@kernel
def _out_of_stage(W: Any, c: int, j: int, s: int) -> Any:
    before, after = W.runs[c].st_prev, W.runs[c].st_next
    if before >= 0:
        W.runs[before].st_next = after
    else:
        W.stages[j, s].run_head = after
    if after >= 0:
        W.runs[after].st_prev = before
    W.stages[j, s].running -= 1


@kernel
def _into_executors(W: Any, c: int, j: int) -> Any:
    head = W.jobs[j].ex_head
    W.runs[c].st_prev = -1
    W.runs[c].st_next = head
    if head >= 0:
        W.runs[head].st_prev = c
    W.jobs[j].ex_head = c


@kernel
def _out_of_executors(W: Any, c: int, j: int) -> Any:
    before, after = W.runs[c].st_prev, W.runs[c].st_next
    if before >= 0:
        W.runs[before].st_next = after
    else:
        W.jobs[j].ex_head = after
    if after >= 0:
        W.runs[after].st_prev = before


@kernel
def _put_redo(W: Any, j: int, s: int, task: int, attempt: int, fails: int, copy_of: int) -> Any:
    g = W.g[0]
    r = g.redo_free
    g.redo_free = W.redo[r].next
    g.redo_left -= 1
    W.redo[r].task = task
    W.redo[r].attempt = attempt
    W.redo[r].fails = fails
    W.redo[r].copy_of = copy_of
    W.redo[r].copy_gen = W.runs[copy_of].gen if copy_of >= 0 else 0
    W.redo[r].next = -1
    st = W.stages[j, s]
    if st.redo_n == 0:
        st.redo_head = r
    else:
        W.redo[st.redo_tail].next = r
    st.redo_tail = r
    st.redo_n += 1


@kernel
def _take_redo(W: Any, j: int, s: int) -> Any:
    """Unlink and free the first; its slot, whose contents stay readable until the next `_put_redo`."""
    g = W.g[0]
    st = W.stages[j, s]
    r = st.redo_head
    st.redo_head = W.redo[r].next
    st.redo_n -= 1
    if st.redo_asked > 0:
        st.redo_asked -= 1
    W.redo[r].next = g.redo_free
    g.redo_free = r
    g.redo_left += 1
    return r


@kernel
def _drop_redo(W: Any, j: int) -> Any:
    for s in range(W.jobs[j].stages):
        while W.stages[j, s].redo_n > 0:
            _take_redo(W, j, s)


# --- the AM's clock ---


@kernel
def am_hears(W: Any, j: int, now: int) -> Any:
    """When the AM's response to its first heartbeat at or after `now` comes."""
    first = W.jobs[j].am0_ms
    if now <= first:
        return first
    period = W.g[0].am_hb_ms
    return first + (now - first + period - 1) // period * period


@kernel
def wake(W: Any, j: int, now: int) -> Any:
    """The AM will act on what the scheduler knows at `now`."""
    job = W.jobs[j]
    if job.am_ms == NEVER:
        return
    at = am_hears(W, j, now) + W.g[0].am_lag_ms
    if job.act_ms < at:
        job.act_ms = at
        push(W, at, E_ACT, job.gen, j)


# --- tasks ---


@kernel
def _work_ms(W: Any, j: int, s: int, task: int, attempt: int, node: int) -> Any:
    """(how long an attempt works on a node, whether it then fails)."""
    g, st, key = W.g[0], W.stages[j, s], W.jobs[j].key
    if st.kind == LISTED:
        ms = W.values[st.first_value + task] * 1000.0
    else:
        u = unit(key, s, task, attempt, STREAM_DURATION)
        ms = draw_ms(u, st.kind, st.a, st.b, W.values, st.first_value, st.values)
    if g.straggler > 0.0 and unit(key, s, task, attempt, STREAM_STRAGGLES) < g.straggler:
        ms *= g.straggler_factor
    fails = 0
    if g.failure > 0.0 and unit(key, s, task, attempt, STREAM_FAILS) < g.failure:
        fails = 1
        ms *= unit(key, s, task, attempt, STREAM_FAILS_AT)
    return whole_ms(ms / W.nodes[node].speed), fails


@kernel
def _ends_at(W: Any, c: int, at: int) -> Any:
    """The container's process will exit at that time."""
    W.runs[c].end_ms = at
    node = W.runs[c].node
    if at < W.nodes[node].next_end_ms:
        W.nodes[node].next_end_ms = at


@kernel
def _next_attempt(W: Any, c: int, j: int, s: int) -> Any:
    """Give container `c` a task of the stage; False: none is left for it."""
    st, run = W.stages[j, s], W.runs[c]
    while st.redo_n > 0 and (st.redo_asked > 0 or st.next_task >= st.tasks):
        r = _take_redo(W, j, s)
        copy_of = W.redo[r].copy_of
        if copy_of >= 0:
            other = W.runs[copy_of]
            if other.gen != W.redo[r].copy_gen or other.live == 0 or other.twin != COPY_ASKED:
                continue
            other.twin = c
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
def on_assigned(S: Any, W: Any, entry: Any, now: int) -> Any:
    """A container was granted: it becomes its application's AM, a task, an executor or a service's."""
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
    run.fails = 0
    run.will_fail = 0
    run.twin = -1
    run.inner = -1
    run.idle = 0
    run.granted_ms = now
    run.start_ms = now
    run.end_ms = NEVER
    run.hold_ms = NEVER
    _into_node(W, c, node)
    container_started(S, job.queue, entry.app, now, job.am_ms == NEVER)
    if job.am_ms == NEVER:
        run.kind = R_AM
        _am_up(W, j, now)
        return
    if S.xg[0].quantum == 1:
        g.cross_ms = now  # counted before the next choice
        job.cross_ms = now
    start = am_hears(W, j, now) + g.am_lag_ms + g.container_start_ms
    run.start_ms = start
    if job.kind == SPARK:
        run.kind = R_EXECUTOR
        job.ex_wanted -= 1
        _into_executors(W, c, j)
        push(W, start, E_EXECUTOR, run.gen, c)
        return
    if job.kind == SERVICE:
        run.kind = R_SERVICE
        s = entry.priority - 1
        run.stage = s
        W.stages[j, s].wanted -= 1
        _into_stage(W, c, j, s)
        return
    run.kind = R_TASK
    s = entry.priority - 1
    st = W.stages[j, s]
    run.stage = s
    st.wanted -= 1
    _into_stage(W, c, j, s)
    if not _next_attempt(W, c, j, s):
        # Asked for in vain (its original ended meanwhile): the AM gives it back as soon as it sees it.
        _ends_at(W, c, start)
        return
    ms, fails = _work_ms(W, j, s, run.task, run.attempt, node)
    run.will_fail = fails
    if st.open == 1 or fails == 1:
        _ends_at(W, c, start + ms)
    else:
        run.hold_ms = start + ms
        if job.reduce_check == 0:
            job.reduce_check = 1
            push(W, now + g.reduce_preempt_ms, E_REDUCE_CHECK, job.gen, j)
    if st.wanted == 0 and st.next_task == st.tasks and st.feeds != 0:
        wake(W, j, now)


@kernel
def _am_up(W: Any, j: int, now: int) -> Any:
    g, job = W.g[0], W.jobs[j]
    job.am_ms = now
    job.am0_ms = now + g.am_start_ms
    if job.first_am_ms == NEVER:
        job.first_am_ms = now
    job.state = J_RUNNING
    job.act_ms = job.am0_ms
    push(W, job.am0_ms, E_ACT, job.gen, j)
    if g.speculation == 1 and job.spec_on == 0 and job.kind != SPARK and job.kind != SERVICE:
        job.spec_on = 1
        push(W, job.am0_ms + g.speculation_ms, E_SPECULATE, job.gen, j)


@kernel
def _log(
    W: Any, row: int, stage: int, task: int, attempt: int, node: int, granted: int, start: int, end: int, outcome: int
) -> Any:
    g = W.g[0]
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


@kernel
def on_completed(S: Any, W: Any, c: int, finished: Any, now: int) -> Any:
    """The scheduler dropped a container. ``finished``: its process had ended by itself, else it was killed."""
    g, run = W.g[0], W.runs[c]
    if run.live == 0:
        return
    j = run.job
    job = W.jobs[j]
    g.ended += 1
    g.live_runs -= 1
    run.live = 0
    run.gen = (run.gen + 1) & USE_MASK
    _out_of_node(W, c)
    held = now - run.granted_ms
    job.mb_ms += held * run.mb
    job.vc_ms += held * run.vc
    ended = job.state == J_ENDED
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
        _out_of_executors(W, c, j)
        t = run.inner
        while t >= 0:
            task = W.inner[t]
            if not ended:
                _put_redo(W, j, task.stage, task.task, task.attempt + 1, task.fails, -1)
                W.stages[j, task.stage].running -= 1
            if g.record_tasks == 1:
                _log(
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
        if not ended:
            job.ex_owed += 1
            wake(W, j, now)
        return
    s = run.stage
    _out_of_stage(W, c, j, s)
    if run.kind == R_SERVICE:
        if not ended:
            W.stages[j, s].asked -= 1
            wake(W, j, now)
        return
    if run.task < 0:
        return
    end = min(run.end_ms, now)
    outcome = KILLED
    if finished and run.twin != -3:
        outcome = FAILED if run.will_fail == 1 else FINISHED
    if g.record_tasks == 1:
        _log(W, job.row, s, run.task, run.attempt, run.node, run.granted_ms, run.start_ms, end, outcome)
    if ended or run.twin == -3:
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
            # The AM kills the slower of the two when it hears of the faster one's end.
            other = W.runs[twin]
            other.twin = -3
            _ends_at(W, twin, min(other.end_ms, heard + g.am_lag_ms))
        if st.done >= st.tasks or (st.feeds != 0 and _feeds_early(W, j, s)):
            wake(W, j, now)
        return
    fails = run.fails
    if outcome == FAILED:
        job.failed_attempts += 1
        fails += 1
        if fails >= g.max_attempts:
            job.failed = 1
            wake(W, j, now)
            return
    if twin >= 0:
        W.runs[twin].twin = -1
        W.runs[twin].fails = fails
        return
    _put_redo(W, j, s, run.task, run.attempt + 1, fails, -1)
    wake(W, j, now)


@kernel
def _feeds_early(W: Any, j: int, s: int) -> Any:
    """Whether a stage that waits for `s` may ask for tasks before `s` has ended."""
    for f in range(W.jobs[j].stages):
        st = W.stages[j, f]
        if (W.stages[j, s].feeds >> f) & 1 and st.slow_start < 1.0 and st.asked < st.tasks:
            return True
    return False


# --- the AM acts ---


@kernel
def _known(W: Any, j: int, s: int, now: int) -> Any:
    """Tasks of a stage that the AM knows to have ended."""
    st = W.stages[j, s]
    if st.in_bucket > 0 and st.bucket_ms + W.g[0].am_lag_ms > now:
        return st.done - st.in_bucket
    return st.done


@kernel
def _open(W: Any, j: int, s: int, now: int) -> Any:
    """All that a stage waits for has ended: its tasks may end."""
    W.stages[j, s].open = 1
    c = W.stages[j, s].run_head
    while c >= 0:
        if W.runs[c].end_ms == NEVER and W.runs[c].task >= 0:
            _ends_at(W, c, max(W.runs[c].hold_ms, now))
        c = W.runs[c].st_next


@kernel
def seal(W: Any, j: int, now: int) -> Any:
    """Mark the stages that the AM knows to be done, and open those that waited for them."""
    job = W.jobs[j]
    again = True
    while again:
        again = False
        for s in range(job.stages):
            st = W.stages[j, s]
            if st.sealed == 0 and st.open == 1 and (st.tasks == 0 or _known(W, j, s, now) >= st.tasks):
                st.sealed = 1
                job.stages_done += 1
        for s in range(job.stages):
            if W.stages[j, s].open == 0:
                ready = True
                for d in range(job.stages):
                    if (W.stages[j, s].after >> d) & 1 and W.stages[j, d].sealed == 0:
                        ready = False
                        break
                if ready:
                    _open(W, j, s, now)
                    again = True


@kernel
def _may_ask(W: Any, j: int, s: int, now: int) -> Any:
    """How many of a stage's tasks may have been asked for so far; -1: none, nor former attempts again."""
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
            known += _known(W, j, d, now)
            if dep.next_task < dep.tasks or dep.redo_n > 0:
                waiting = True
                if dep.running == 0 and known > 0:
                    return -1
    if known < st.slow_start * total:
        return -1
    if not waiting:
        return st.tasks
    return math.ceil(st.tasks * (known / total))


@kernel
def act(S: Any, W: Any, j: int, now: int) -> Any:
    """The AM acts on all that it has heard: asks, opens stages, ends the job."""
    job = W.jobs[j]
    if job.state != J_RUNNING or now < job.am0_ms:
        return
    if job.failed == 1:
        finish(S, W, j, now)
        return
    if job.kind == SPARK:
        if job.am_first == 1:
            job.am_first = 0
            seal(W, j, now)
        if job.stages_done == job.stages:
            finish(S, W, j, now)
        elif job.ex_owed > 0 and _ask(S, W, j, 1, job.ex_wanted + job.ex_owed, job.ex_mb, job.ex_vc, now):
            job.ex_wanted += job.ex_owed
            job.ex_owed = 0
        return
    if job.kind == SERVICE:
        for s in range(job.stages):
            st = W.stages[j, s]
            more = st.tasks - st.asked
            if more > 0 and _ask(S, W, j, s + 1, st.wanted + more, st.mb, st.vc, now):
                st.wanted += more
                st.asked = st.tasks
        return
    seal(W, j, now)
    if job.stages_done == job.stages:
        finish(S, W, j, now)
        return
    for s in range(job.stages):
        st = W.stages[j, s]
        if st.sealed == 1 or (st.asked >= st.tasks and st.redo_n <= st.redo_asked):
            continue
        allowed = _may_ask(W, j, s, now)
        if allowed < 0:
            continue
        fresh = max(allowed - st.asked, 0)
        more = fresh + st.redo_n - st.redo_asked
        if more > 0 and _ask(S, W, j, s + 1, st.wanted + more, st.mb, st.vc, now):
            st.asked += fresh
            st.redo_asked = st.redo_n
            st.wanted += more


@kernel
def _ask(S: Any, W: Any, j: int, priority: int, count: int, mb: int, vc: int, now: int) -> Any:
    """Set the outstanding total of a priority; False: nothing was changed (no room, or the job cannot be)."""
    g, job = W.g[0], W.jobs[j]
    if job.failed == 1:
        return False
    code = fs_apps.ask(S, job.app, priority, -1, count, mb, vc, now)
    if code == NEED_ROOM:
        g.need_room = 1
        return False
    if code < 0:
        job.failed = 1
        push(W, now, E_ACT, job.gen, j)
        return False
    settle(S, job.queue, now)
    return True


@kernel
def check_reduces(S: Any, W: Any, j: int, now: int) -> Any:
    """Give one held task back if what it waits for waits for containers and none of it runs."""
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
            if not _ask(S, W, j, s + 1, 0, st.mb, st.vc, now):
                return
            st.asked -= st.wanted - st.redo_asked
            st.redo_asked = 0
            st.wanted = 0
        if fs_nodes.release(S, st.run_head, now) == NEED_ROOM:
            W.g[0].need_room = 1
            return
        drain(S, W, now)
        break
    if held:
        push(W, now + W.g[0].reduce_preempt_ms, E_REDUCE_CHECK, job.gen, j)
    else:
        job.reduce_check = 0


@kernel
def speculate(W: Any, j: int, now: int) -> Any:
    """Ask for copies of tasks that take much longer than their stage's mean."""
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
                if run.task >= 0 and run.twin == -1 and now - run.start_ms > limit and run.end_ms > now:
                    if g.redo_left <= g.live_runs + g.inner_used:
                        break
                    _put_redo(W, j, s, run.task, run.attempt + 1, run.fails, c)
                    run.twin = COPY_ASKED
                    found = True
                c = run.st_next
        if found:
            wake(W, j, now)
    push(W, now + g.speculation_ms, E_SPECULATE, job.gen, j)


# --- Spark: tasks inside executors ---


@kernel
def _fill_executor(W: Any, j: int, c: int, now: int) -> Any:
    """Start tasks of open stages in an executor's idle slots."""
    g, job, run = W.g[0], W.jobs[j], W.runs[c]
    s = 0
    while run.idle > 0 and s < job.stages:
        st = W.stages[j, s]
        if st.open == 0 or st.sealed == 1 or (st.next_task >= st.tasks and st.redo_n == 0):
            s += 1
            continue
        t = g.inner_free
        g.inner_free = W.inner[t].next
        g.inner_used += 1
        task = W.inner[t]
        if st.redo_n > 0:
            r = _take_redo(W, j, s)
            task.task = W.redo[r].task
            task.attempt = W.redo[r].attempt
            task.fails = W.redo[r].fails
        else:
            task.task = st.next_task
            task.attempt = 0
            task.fails = 0
            st.next_task += 1
        ms, fails = _work_ms(W, j, s, task.task, task.attempt, run.node)
        task.will_fail = fails
        task.start_ms = now
        task.run = c
        task.stage = s
        task.dead = 0
        task.prev = -1
        task.next = run.inner
        if run.inner >= 0:
            W.inner[run.inner].prev = t
        run.inner = t
        run.idle -= 1
        st.running += 1
        push(W, now + ms, E_INNER, task.gen, t)


@kernel
def _fill_executors(W: Any, j: int, now: int) -> Any:
    c = W.jobs[j].ex_head
    while c >= 0:
        if W.runs[c].idle > 0:
            _fill_executor(W, j, c, now)
        c = W.runs[c].st_next


@kernel
def executor_up(W: Any, c: int, use: int, now: int) -> Any:
    """An executor begins to take tasks (if it still lives)."""
    run = W.runs[c]
    if run.gen != use or run.live == 0:
        return
    run.idle = W.jobs[run.job].ex_slots
    _fill_executor(W, run.job, c, now)


@kernel
def inner_ended(S: Any, W: Any, t: int, now: int) -> Any:
    """A task inside an executor ends; dead ones (their executor went) only leave their slot."""
    g, task = W.g[0], W.inner[t]
    dead, c = task.dead, task.run
    if dead == 0:
        if task.prev >= 0:
            W.inner[task.prev].next = task.next
        else:
            W.runs[c].inner = task.next
        if task.next >= 0:
            W.inner[task.next].prev = task.prev
    task.gen = (task.gen + 1) & USE_MASK
    s, number, attempt, fails, failing, start = (
        task.stage,
        task.task,
        task.attempt,
        task.fails,
        task.will_fail,
        task.start_ms,
    )
    task.next = g.inner_free
    g.inner_free = t
    g.inner_used -= 1
    if dead == 1:
        return
    run = W.runs[c]
    j = run.job
    job, st = W.jobs[j], W.stages[j, s]
    run.idle += 1
    st.running -= 1
    if g.record_tasks == 1:
        outcome = FAILED if failing == 1 else FINISHED
        _log(W, job.row, s, number, attempt, run.node, run.granted_ms, start, now, outcome)
    if failing == 1:
        job.failed_attempts += 1
        if fails + 1 >= g.max_attempts:
            job.failed = 1
            push(W, now, E_ACT, job.gen, j)
            return
        _put_redo(W, j, s, number, attempt + 1, fails + 1, -1)
        _fill_executors(W, j, now)
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
            _fill_executors(W, j, now)
    else:
        _fill_executor(W, j, c, now)


# --- jobs ---


@kernel
def arrive(S: Any, W: Any, j: int, now: int) -> Any:
    """A job is submitted."""
    g, job = W.g[0], W.jobs[j]
    unmanaged = job.am_mb == 0 and job.am_vc == 0
    app = fs_apps.add_app(S, job.queue, job.user, not unmanaged, job.am_mb, job.am_vc, 0, now)
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
    if S.xg[0].quantum == 1:
        begin(S, W, j)
    S.a[app].tag = j
    S.a[app].tag2 = 0
    settle(S, job.queue, now)
    if unmanaged:
        _am_up(W, j, now)
    if job.lifetime_ms < NEVER:
        push(W, now + job.lifetime_ms, E_LIFETIME, job.gen, j)


@kernel
def drain(S: Any, W: Any, now: int) -> Any:
    """Pass on what the scheduler did since the last call."""
    n = S.g[0].n_log
    for i in range(n):
        entry = S.log[i]
        if entry.kind == ASSIGNED:
            on_assigned(S, W, entry, now)
        elif entry.kind == COMPLETED:
            on_completed(S, W, entry.c, entry.why == EXITED, now)
    S.g[0].n_log = 0


@kernel
def restart_lost(S: Any, W: Any, now: int) -> Any:
    """Start the AMs anew that were lost."""
    g = W.g[0]
    g.am_lost = 0
    for j in range(len(W.jobs)):
        if W.jobs[j].am_lost == 1:
            _restart(S, W, j, now)


@kernel
def _restart(S: Any, W: Any, j: int, now: int) -> Any:
    """The AM was lost: a new attempt. Ended tasks stay ended, but for Spark, whose driver held them."""
    g, job = W.g[0], W.jobs[j]
    if job.state == J_ENDED or job.state == J_FREE:
        job.am_lost = 0
        return
    if fs_apps.restart_app(S, job.app, job.am_mb, job.am_vc, now) == NEED_ROOM:
        g.need_room = 1
        g.am_lost = 1
        return
    job.am_lost = 0
    job.state = J_SUBMITTED
    job.restarts += 1
    job.am_ms = NEVER
    job.act_ms = 0
    drain(S, W, now)
    settle(S, job.queue, now)
    if S.xg[0].quantum == 1:
        assume(S, W, j, now)
    job.ex_wanted = 0
    job.ex_owed = job.executors
    job.am_first = 1
    for s in range(job.stages):
        st = W.stages[j, s]
        if job.kind == SPARK:
            while st.redo_n > 0:
                _take_redo(W, j, s)
            st.done = 0
            st.next_task = 0
            st.sealed = 0
            st.open = 0
        elif job.kind == SERVICE:
            st.asked = 0
        else:
            st.asked -= st.wanted - st.redo_asked
        st.redo_asked = 0
        st.wanted = 0
    if job.kind == SPARK:
        job.stages_done = 0


@kernel
def finish(S: Any, W: Any, j: int, now: int) -> Any:
    """The application ends, and with it every container that it holds."""
    g, job = W.g[0], W.jobs[j]
    if job.state == J_ENDED or job.state == J_FREE:
        return
    if job.app >= 0:
        if fs_apps.end_app(S, job.app, now) == NEED_ROOM:
            g.need_room = 1
            return
        job.state = J_ENDED
        drain(S, W, now)
        settle(S, job.queue, now)
        if S.xg[0].quantum == 1:
            assume(S, W, j, now)
    _drop_redo(W, j)
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
