"""State of everything around the scheduler, as arrays for compiled code: clock, events, jobs, stages, tasks, nodes.

The scheduler's own state is harness.sim.fair's; what happens to this state is harness.sim.events', .apps' and
.loop's business. Slots are recycled by free lists and arrays double when they are full (Python does that, between two
calls of compiled code), so memory follows what runs at once. Times are int64 milliseconds of virtual time.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.sim.arrays import Arrays, record, zeros

#: "Never" of times in the compiled loop.
NEVER = 1 << 62

#: Job kinds, in the order of `harness.model.jobs.JobKind`.
MAPREDUCE, SPARK, DAG, SERVICE = range(4)
JOB_KINDS = ("mapreduce", "spark", "dag", "service")

#: A job's states.
J_FREE, J_WAITING, J_SUBMITTED, J_RUNNING, J_ENDED = range(5)

#: What a live container is for.
R_AM, R_TASK, R_EXECUTOR, R_SERVICE = range(4)

#: Why the compiled loop came back to Python.
(
    DONE,  # nothing is left to happen
    NEED_JOBS,  # the next job of the input is to be read
    NEED_ROOM,  # an array is full: grow it and call again
    SAMPLES_FULL,  # take the samples away
    ENDED_FULL,  # take the ended jobs away
    TASKS_FULL,  # take the task log away
    TICK,  # a control tick is due
    LIMIT,  # the time limit
    KEYS,  # a user's policy has to give its keys
    WAITS_FULL,  # take the log of waits away
    PAUSE,  # progress
    PARTS,  # the scheduler's update is done: with a horizon, the queues' parts are filled anew
    CALLS_FULL,  # take what was asked of the scheduler away
) = range(13)

#: Most stages of a job: their dependencies are bits of an int64.
MAX_STAGES = 62
#: Most stages of a Spark application whose stages come one after another.
MOST_CHAINED = 256

#: ``pause_after``: events and heartbeats until the loop comes back for progress; ``pause_ms``: when it comes back if
#: nothing has started or ended since it last looked; ``still_ms``: from one such look to the next; ``still_events``:
#: starts and ends at the last one; ``feed_ms``: submission of the last job that was read; NEVER: all were;
#: ``end_hb_ms``: -1: none; ``am_lag_ms``: am_response_heartbeats x am_hb_ms; ``user_keys``: the policy's keys come from
#: Python; ``keys_at``: or from compiled code (harness.sim.keyed): its address, and that of what it works on;
#: ``ends_free``: a block of W.ends; ``burst``: most tasks that one event may start inside executors; ``need_room``: a
#: kernel of the scheduler has changed nothing for want of room; ``cross_ms``: the earliest of the jobs'; ``round_ms``:
#: begin of the round that the quanta were last made for; ``ring_stale``: nodes came or went; ``beat_again``: the
#: heartbeat that is due has begun; ``am_lost``: some AM was lost and is to be started anew; ``live_jobs``: submitted or
#: waiting, endless services excluded; ``started``: containers; ``preempt_ms`` to ``preempt_limit``: of MapReduce's
#: masters (`harness.sim.setup.MapReduceMaster`), ``hanging_ms`` -1: never; ``skipped``: heartbeats that were passed
#: over one by one, ``leapt``: many at a time; ``quiet``: how many were since anything has changed, or one more than
#: ``ring_n`` once ``quiet_end_ms`` is known: when the next process ends.
GLOBALS = record(
    "now limit_ms next_update_ms next_sample_ms next_tick_ms sample_ms tick_ms pause_after pause_ms still_ms "
    "still_events feed_ms node_hb_ms end_hb_ms am_hb_ms am_lag_ms am_start_ms container_start_ms update_ms "
    "reduce_preempt_ms preempt_ms hanging_ms map_limit reduce_limit no_headroom rampup_limit:d preempt_limit:d "
    "speculation_ms skip user_keys keys_fresh keys_at keys_of record_tasks record_calls calls_n "
    "update_noted_ms failure:d max_attempts straggler:d straggler_factor:d speculation speculation_factor:d heap_n "
    "ring_n ring_at ring_base_ms job_free redo_free redo_left inner_free inner_left live_runs ends_free burst "
    "need_room cross_ms round_ms ring_stale beat_again am_lost live_jobs waiting_jobs sample_n ended_n task_n started "
    "ended heartbeats skipped leapt quiet quiet_end_ms updates jobs_done jobs_failed last_end_ms",
    lines=False,
)

#: ``am_ms``: when the AM's container was granted, NEVER: not yet; ``am0_ms``: the AM's first heartbeat; ``mb_ms``: of
#: ended containers; ``task_ms``: sum over finished tasks; ``key``: of its random draws; ``app``: in the scheduler, -1:
#: none; ``row``: in the result; ``first_am_ms``: of the first attempt; ``act_ms``: latest AM heartbeat that is in the
#: event heap; ``am_start_ms``: from its grant to that heartbeat, -1: as all; ``ex_start_ms``: an executor's, -1: as
#: all; ``am_end_ms``: from when it has heard of all tasks until it ends; ``over_ms``: when that is, 0: not yet;
#: ``ex_wanted``: executors, or a service's containers, asked for and not yet there; ``ex_owed``: to be asked for again
#: at the AM's next heartbeat; ``ex_wait_ms``: at the latest it begins so long after its first heartbeat; ``q_ms``:
#: quantum; ``q_sum_ms``: of its ended tasks, and their number; ``ahead_a``: its part of X.ahead_a and X.ahead_b;
#: ``cross_ms``: when the next of its running tasks will have run for a quantum; ``omega``: its weight among its leaf's
#: applications; ``gen``: counts the slot's uses, so that events of former ones are known; ``followers``: head of the
#: list of jobs that wait for this one; ``next``: in that list, or in the free list; ``ex_least``: executors that take
#: tasks before the driver begins; ``ex_head``: list of live executors; ``am_first``: 1: a Spark driver that has not
#: been up, 2: one that waits for executors; ``endless``: a service without a lifetime: the run does not wait for it;
#: ``maps_at``, ``reduces_at``: its stages where its master decides as MapReduce's, -1: none; ``delays``: some stage of
#: a Spark application begins some time after it could; ``chained``: each of its stages waits for the one before;
#: ``dynamic``: its executors follow its tasks (W.dyn).
JOB = record(
    "am_ms am0_ms mb_ms vc_ms task_ms tasks_done key queue:i kind:i app:i state:i row submit_ms first_am_ms act_ms "
    "am_start_ms ex_start_ms am_end_ms over_ms lifetime_ms think_ms ex_mb am_mb am_vc ex_vc ex_wanted ex_owed "
    "ex_wait_ms failed_attempts q_ms:d q_sum_ms:d q_n:d ahead_a:d ahead_b:d cross_ms omega:d gen:i followers:i next:i "
    "user:i executors:i ex_slots:i ex_least:i ex_head:i stages:i stages_done:i failed:i reduce_check:i spec_on:i "
    "restarts:i am_lost:i am_first:i endless:i maps_at:i reduces_at:i delays:i chained:i dynamic:i"
)

#: ``next_task``: the next fresh task to be started; ``wanted``: outstanding at the scheduler; ``sum_ms``: over finished
#: tasks; ``bucket_ms``: the AM heartbeat that brings the latest completions; ``kind``: of the distribution; ``open``:
#: 1: all that it waits for has ended, its tasks may end; ``run_head``: list of its live containers; ``redo_n``: in the
#: redo list; ``feeds``: bits: the stages that wait for it; ``after``: bits: the stages that it waits for; ``asked``:
#: fresh tasks that were asked for so far; ``redo_head``: attempts to be asked for again; ``redo_asked``: of those,
#: asked for; ``sealed``: 1: its AM knows that all its tasks have ended; ``scheduled``: reduces that the master wants to
#: be asked for now; ``started``: 1: slow start has been reached; ``since_ms``: when maps were first asked for;
#: ``delay_ms``: so long after all that it waits for a Spark driver submits it; ``ready_ms``: when that is, 0: not
#: known yet; ``leaves``: what its tasks leave on their executors (harness.sim.dynamic).
STAGE = record(
    "next_task tasks done running wanted sum_ms bucket_ms in_bucket kind:i open:i run_head:i redo_n:i values feeds "
    "a:d b:d first_value after mb slow_start:d vc asked redo_head:i redo_tail:i priority:i redo_asked:i sealed:i "
    "scheduled started:i since_ms delay_ms ready_ms leaves:i"
)

#: One for each container slot of the scheduler. ``end_ms``: NEVER: not known (yet); ``at``: its end, in W.ends;
#: ``twin``: the other of a speculative pair, -1; ``st_prev``: in the stage's, or the job's list of executors;
#: ``hold_ms``: what end_ms would be if the stage were open; ``attempt``: draws of this number; ``fails``: attempts of
#: the task that failed before; ``idle``: free slots of an executor; ``inner``: head of the executor's running tasks;
#: ``spent``: the number of its copy that failed, below the next attempt's. Of an executor that dynamic allocation
#: asked for: ``up``, ``keeps``: harness.sim.dynamic; ``hold_ms``: since when it is idle, NEVER: it is not.
RUN = record(
    "start_ms end_ms granted_ms node:i at:i twin:i job:i stage:i st_prev:i st_next:i live:i kind:i gen:i mb vc "
    "hold_ms task attempt:i spent:i will_fail:i fails:i idle:i inner:i up:i keeps:i"
)

#: Spark's dynamic allocation of a job (harness.sim.dynamic). ``target``: executors that it wants; ``to_add``: so many
#: more it wants next; ``add_ms``: when that is, NEVER: no task waits; ``next_ms``: when it looks next; ``zero_ms``: it
#: looks every 100 ms from then on; ``asked_ms``: when its allocator last had a new target; ``live``: executors that
#: were granted and do not go; ``up``: of these, take tasks; ``going``: whose containers are to be given back;
#: ``beginning``: no stage was submitted yet; the others are its settings, NEVER: for ever.
DYN = record(
    "target to_add add_ms next_ms zero_ms asked_ms live up going beginning least most initial ratio:d backlog_ms "
    "sustained_ms idle_ms cached_ms shuffle_ms",
    lines=False,
)

#: An attempt that has to be asked for again, or a speculative copy.
REDO = record("task attempt fails copy_of copy_gen since_ms next", lines=False)

#: A task that runs inside an executor. ``run``: the executor's container.
INNER = record("start_ms run stage task attempt fails will_fail dead gen prev next", lines=False)

#: ``until_ms``: when a node that is being decommissioned goes at the latest; ``filled``: ends in that block;
#: ``head``: its first block of W.ends, -1.
NODE = record("next_end_ms filled:i head:i up:i speed:d mb vc phase_ms until_ms", lines=False)

#: An end and its container; the first of a block: its soonest end and the next block (harness.sim.ends).
END = record("ms c")

#: Records of a block.
BLOCK = 16

#: An ended job, for the result.
ENDED = record(
    "row started_ms finished_ms submit_ms mb_ms vc_ms task_ms tasks_done failed_attempts failed", lines=False
)

TASKLOG = record("row granted_ms start_ms end_ms stage task attempt node outcome", lines=False)

#: What was asked of the scheduler (harness.sim.calls).
CALL = record("t kind a b c d e", lines=False)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, GLOBALS, 1]
    heap_t: Annotated[np.ndarray, np.int64, 1]
    heap_v: Annotated[np.ndarray, np.int64, 1]
    jobs: Annotated[np.ndarray, JOB, 1]
    dyn: Annotated[np.ndarray, DYN, 1]  # by the same slots
    stages: Annotated[np.ndarray, STAGE, 2]  # (jobs, most stages of a job)
    runs: Annotated[np.ndarray, RUN, 1]
    redo: Annotated[np.ndarray, REDO, 1]
    inner: Annotated[np.ndarray, INNER, 1]
    nodes: Annotated[np.ndarray, NODE, 1]
    ends: Annotated[np.ndarray, END, 1]
    ring: Annotated[np.ndarray, np.int64, 1]  # nodes that are up, by phase
    ring_ms: Annotated[np.ndarray, np.int64, 1]  # their phases
    values: Annotated[np.ndarray, np.float64, 1]  # of empirical and listed durations, seconds
    ended: Annotated[np.ndarray, ENDED, 1]
    tasklog: Annotated[np.ndarray, TASKLOG, 1]
    calls: Annotated[np.ndarray, CALL, 1]
    sizes: Annotated[np.ndarray, np.int64, 2]  # (changes of nodes, 2): MiB and vcores from then on
    scratch: Annotated[np.ndarray, np.int64, 1]  # containers that end at one heartbeat
    samp_t: Annotated[np.ndarray, np.int64, 2]  # (samples, 3): ms, cluster's MiB and vcores
    samp_i: Annotated[np.ndarray, np.int64, 3]  # (samples, queues, 6)
    samp_f: Annotated[np.ndarray, np.float64, 3]  # (samples, queues, 6)


class W(Arrays, _Fields):  # type: ignore[misc]
    """The world around the scheduler. `g` has one record; the others are indexed by slot."""


def linked(array: NDArray[Any], first: int, head: int) -> int:
    """Chain ``array[first:]`` into a free list through ``next``, in order, before `head`; the new head."""
    n = len(array)
    if first >= n:
        return head
    array["next"][first:] = np.arange(first + 1, n + 1)
    array["next"][n - 1] = head
    return first


def grown(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """A copy with room for `size` along an axis; the new part is zero."""
    shape = list(array.shape)
    if size <= shape[axis]:
        return array
    shape[axis] = size
    wide = zeros(tuple(shape), array.dtype)
    wide[tuple(slice(0, n) for n in array.shape)] = array
    return wide


def new_world(
    nodes: int, queues: int, *, containers: int, sample_rows: int = 1024, log_rows: int = 1, resizes: int = 0
) -> W:
    """An empty world for so many nodes and queues; `containers`: slots of the scheduler."""
    world = W.empty(
        g=1,
        heap_t=1024,
        heap_v=1024,
        jobs=64,
        dyn=64,
        stages=(64, 4),
        runs=containers,
        redo=256,
        inner=256,
        nodes=nodes,
        ring=nodes,
        ring_ms=nodes,
        values=1024,
        ended=4096,
        tasklog=log_rows,
        calls=1,
        sizes=(max(resizes, 1), 2),
        scratch=1024,
        samp_t=(sample_rows, 3),
        samp_i=(sample_rows, queues, 6),
        samp_f=(sample_rows, queues, 6),
    )
    g = world.g
    g["job_free"] = linked(world.jobs, 0, -1)
    g["redo_free"] = linked(world.redo, 0, -1)
    g["redo_left"] = len(world.redo)
    g["inner_free"] = linked(world.inner, 0, -1)
    g["inner_left"] = len(world.inner)
    g["ends_free"] = -1
    world.nodes["next_end_ms"] = NEVER
    world.nodes["head"] = -1
    return _with_ends(world, containers)


def _with_ends(world: W, containers: int) -> W:
    """The world with blocks of ends for so many containers, however they stand on the nodes."""
    had, blocks = len(world.ends) // BLOCK, len(world.nodes) + containers // (BLOCK - 1) + 1
    if blocks <= had:
        return world
    ends = grown(world.ends, blocks * BLOCK)
    ends["c"][had * BLOCK :: BLOCK] = BLOCK * np.arange(had + 1, blocks + 1)
    ends["c"][(blocks - 1) * BLOCK] = world.g["ends_free"][0]
    world.g["ends_free"] = had * BLOCK
    return world._replace(ends=ends)


def with_room(world: W, *, containers: int) -> W:
    """The world with room for one more event wherever `harness.sim.loop.short_of_room` looks, and to spare.

    `containers`: slots of the scheduler now.
    """
    g = world.g
    used = len(world.inner) - int(g["inner_left"][0])
    live = int(g["live_runs"][0]) + used + 1024
    burst = int(g["burst"][0])
    inner = _doubled(len(world.inner), used + burst + 64)
    redo = _doubled(len(world.redo), len(world.redo) - int(g["redo_left"][0]) + live)
    world = _with_ends(world, containers)._replace(
        runs=grown(world.runs, containers),
        scratch=grown(world.scratch, _doubled(len(world.scratch), live)),
    )
    # As many as `harness.sim.loop.most_events`.
    world = with_events(world, 5 * len(world.runs) + len(world.jobs) + burst + 64)
    for name, size in (("redo", redo), ("inner", inner)):
        table = getattr(world, name)
        if size > len(table):
            wide = grown(table, size)
            g[f"{name}_free"] = linked(wide, len(table), int(g[f"{name}_free"][0]))
            g[f"{name}_left"] += size - len(table)
            world = world._replace(**{name: wide})
    return world


def with_events(world: W, more: int) -> W:
    """The world with room for so many events more."""
    size = _doubled(len(world.heap_t), int(world.g["heap_n"][0]) + more)
    if size == len(world.heap_t):
        return world
    return world._replace(heap_t=grown(world.heap_t, size), heap_v=grown(world.heap_v, size))


def with_jobs(world: W, *, stages: int) -> W:
    """The world with a free slot for a job of so many stages."""
    g = world.g
    if int(g["job_free"][0]) < 0:
        old = len(world.jobs)
        table = grown(world.jobs, 2 * old)
        g["job_free"] = linked(table, old, -1)
        world = world._replace(jobs=table, dyn=grown(world.dyn, 2 * old), stages=grown(world.stages, 2 * old))
    if stages > world.stages.shape[1]:
        world = world._replace(stages=grown(world.stages, max(stages, world.stages.shape[1] + 4), 1))
    return world


def _doubled(size: int, least: int) -> int:
    while size < least:
        size *= 2
    return size
