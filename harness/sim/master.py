"""The heartbeat of a MapReduce AM, compiled: it requests and preempts tasks by the rules of `harness.sim.mapreduce`.

Follows RMContainerAllocator.heartbeat. The AM requests all maps at once. A reduce is first pending, then scheduled
(requested) by `schedule_reduces`, and then it holds a container. While maps wait for containers, the AM decides at each
heartbeat, because its headroom changes.

The simulated AM differs from Hadoop's in four points. It learns that a map has finished when the container has ended,
whereas Hadoop's AM is told by the task before that. It changes the scheduler's outstanding total by a difference, so
that an ask never overlaps with a grant that the AM has not learnt of. It requests a failed map again at the priority of
all maps. The progress of a reduce, by which preemption selects, is 0 until its work has started, and equal for all
reduces that have started.
"""

from __future__ import annotations

from harness.sim.asking import ask
from harness.sim.calls import C_DECIDED, C_MAPS, C_REDUCES, note
from harness.sim.events import E_ACT, push
from harness.sim.kernel import kernel
from harness.sim.mapreduce import NONE, headroom, reached_slow_start, schedule_reduces, to_preempt
from harness.sim.state import SchedulerState
from harness.sim.tasks import PREEMPTED, am_hears, drop_stale_copies, ends_at, known_done, waiting
from harness.sim.world import NEVER, World


@kernel
def _total(S: SchedulerState, W: World, j: int, s: int, count: int, limit: int, now: int) -> bool:
    """Set the number of outstanding containers of a stage to `count`, within the job's limit on running tasks.

    Returns False if an array is too small. The limit does not apply to a stage with no more tasks than it allows.
    Follows RMContainerAllocator.applyConcurrentTaskLimits.
    """
    st = W.stages[j, s]
    if limit > 0 and st.tasks > limit:
        count = min(count, max(0, limit - st.running))
    if count == st.wanted:
        return True
    if not ask(S, W, j, s + 1, count, st.mb, st.vc, now):
        return False
    st.redo_asked = min(st.redo_n, count)
    st.asked = st.next_task + count - st.redo_asked
    st.wanted = count
    return True


@kernel
def _waited(W: World, j: int, s: int, now: int, ms: int) -> int:
    """Return how many of a stage's waiting tasks have waited for longer than `ms`; all of them if `ms` is not positive.

    Follows getNumHangingRequests.
    """
    st = W.stages[j, s]
    if ms <= 0:
        return waiting(st)
    n = 0
    if now - st.since_ms > ms:
        n = st.tasks - st.next_task
    r = st.redo_head
    while r >= 0:
        if now - W.redo[r].since_ms > ms:
            n += 1
        r = W.redo[r].next
    return n


@kernel
def _preempt(W: World, j: int, s: int, count: int, now: int) -> None:
    """Kill `count` reduces: those with the least progress, and among these the ones that were assigned first.

    The AM counts a reduce among its running ones until it learns that the reduce has ended. If a reduce is selected
    again in the meantime, no other reduce is killed instead. Follows AssignedRequests.preemptReduce.
    """
    last = W.stages[j, s].run_head
    while last >= 0 and W.runs[last].st_next >= 0:
        last = W.runs[last].st_next
    for working in range(2):
        c = last
        while c >= 0 and count > 0:
            run = W.runs[c]
            if (run.start_ms <= now) == (working == 1):
                count -= 1
                if run.twin != PREEMPTED and run.end_ms > now and run.task >= 0:
                    run.twin = PREEMPTED
                    ends_at(W, c, now)
            c = run.st_prev


@kernel
def beat(S: SchedulerState, W: World, j: int, now: int) -> None:
    """Run one heartbeat of a job's MapReduce AM: update its asks and preempt reduces if maps cannot run."""
    g, job = W.g[0], W.jobs[j]
    m = W.stages[j, job.maps_at]
    # RMContainerAllocator forgets the request of an attempt that the task's other attempt has made unnecessary
    # (CONTAINER_DEALLOCATE): it does not count as a waiting map, and no reduce is killed for it.
    if g.speculation == 1:
        drop_stale_copies(W, j, job.maps_at)
        if job.reduces_at >= 0:
            drop_stale_copies(W, j, job.reduces_at)
    maps = waiting(m)
    if m.since_ms == NEVER:
        m.since_ms = now
    if not _total(S, W, j, job.maps_at, maps, g.map_limit, now) or job.reduces_at < 0:
        return
    r = W.stages[j, job.reduces_at]
    pending = waiting(r) - r.scheduled
    if pending + r.scheduled + r.running == 0:
        return
    done = known_done(W, j, job.maps_at, now)
    room_mb, room_vc, cpu = headroom(S, W, j)
    long_waiting = too_long = 0
    if maps > 0 and m.running == 0:
        long_waiting = _waited(W, j, job.maps_at, now, g.preempt_ms)
        too_long = 0 if g.hanging_ms < 0 else _waited(W, j, job.maps_at, now, g.hanging_ms)
    count = to_preempt(
        maps,
        m.running,
        long_waiting,
        too_long,
        r.scheduled,
        r.running,
        m.mb,
        m.vc,
        r.mb,
        r.vc,
        room_mb,
        room_vc,
        cpu,
        g.preempt_limit,
    )
    wanted = r.scheduled
    if count != NONE:
        wanted = 0
    else:
        if r.started == 0 and pending > 0 and reached_slow_start(m.tasks, done, r.slow_start):
            r.started = 1
        if r.started == 1:
            wanted += schedule_reduces(
                m.tasks,
                done,
                maps,
                r.scheduled,
                m.running,
                r.running,
                m.mb,
                m.vc,
                r.mb,
                r.vc,
                pending,
                room_mb,
                room_vc,
                cpu,
                g.rampup_limit,
            )
    if g.record_calls == 1:
        note(W, now, C_MAPS, S.a[job.app].id, m.tasks, done, maps, m.running)
        note(W, now, C_REDUCES, pending, r.scheduled, r.running, long_waiting, too_long)
        note(W, now, C_DECIDED, room_mb, room_vc, cpu, wanted, count)
    if not _total(S, W, j, job.reduces_at, wanted, g.reduce_limit, now):
        return
    r.scheduled = wanted
    if count > 0:
        _preempt(W, j, job.reduces_at, count, now)
    if maps > 0 and (r.started == 1 or r.running > 0):
        at = am_hears(W, j, now + 1)
        if job.act_ms < at:
            job.act_ms = at
            push(W, at, E_ACT, job.gen, j)
