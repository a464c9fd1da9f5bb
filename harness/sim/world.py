"""State of everything around the scheduler, as arrays for compiled code: clock, events, jobs, stages, tasks, nodes.

The scheduler's own state is in harness.sim.fair; harness.sim.events, .apps and .loop change this state. Slots are
recycled by free lists and arrays double when they are full (Python does that, between two calls of compiled code), so
memory depends on what runs at the same time. Times are int64 milliseconds of virtual time.
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

#: Uses of a live container.
R_AM, R_TASK, R_EXECUTOR, R_SERVICE = range(4)

#: Why the compiled loop came back to Python.
(
    DONE,  # no event is left
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
    PARTS,  # the scheduler's update is done: with a horizon, the queues' parts are recomputed
    CALLS_FULL,  # take the recorded calls of the scheduler away
) = range(13)

#: Most stages of a job: their dependencies are bits of an int64.
MAX_STAGES = 62
#: Most stages of a Spark application whose stages come one after another.
MOST_CHAINED = 256

#: The clock, the settings of the run and the counters of the loop: one record.
GLOBALS = record(
    "now",  # virtual time
    "limit_ms",  # the run's time limit
    "next_update_ms",  # when the scheduler's thread of updates is due (``FairScheduler.update``)
    "next_sample_ms",  # when the next sample is due
    "next_tick_ms",  # when Python is called for control or for a new plan; NEVER: not at all
    "sample_ms",  # from one sample to the next
    "tick_ms",  # not in use
    "pause_after",  # events and heartbeats until the loop returns to Python to tell its progress
    "pause_ms",  # when the loop returns to Python if nothing has started or ended since it last looked
    "still_ms",  # time from one check for a standstill to the next
    "still_events",  # starts and ends of containers at the last such check; -1: there was none
    "feed_ms",  # submission of the last job that was read from the input; NEVER: all were read
    "node_hb_ms",  # period of a NodeManager's heartbeats
    "end_hb_ms",  # from a container's end to the heartbeat that its node sends because of it; -1: it sends none
    "am_hb_ms",  # period of an application master's heartbeats
    "am_lag_ms",  # how late a master acts on a response: so many of its heartbeats, times their period
    "am_start_ms",  # from the grant of a master's container to its first heartbeat
    "container_start_ms",  # from the launch of a task's container to the start of its work
    "update_ms",  # period of the scheduler's updates
    "reduce_preempt_ms",  # how long maps of a DAG wait until one of its reduces is given back
    "preempt_ms",  # MapReduce's masters: how long maps wait without headroom until reduces are preempted
    "hanging_ms",  # MapReduce's masters: how long maps wait with headroom until then; -1: for ever
    "map_limit reduce_limit",  # MapReduce's masters: most maps and most reduces of a job at once; 0: no limit
    "no_headroom",  # MapReduce's masters: 1: they are always told a headroom of 0, as by Hadoop 2.2 (YARN-1959)
    "rampup_limit:d",  # MapReduce's masters: most of a job's resources for reduces while maps wait, 0 to 1
    "preempt_limit:d",  # MapReduce's masters: most of a job's resources taken from reduces at once, 0 to 1
    "speculation_ms",  # period at which a master looks for tasks worth a speculative copy
    "skip",  # 1: heartbeats that change nothing are skipped
    "user_keys",  # 1: queues are ordered by the keys of a user's policy
    "keys_fresh",  # 1: these keys are up to date
    # addresses of the compiled keys and of what they work on (harness.sim.keyed); 0: Python makes the keys
    "keys_at keys_of",
    "record_tasks",  # 1: each attempt of a task is written to ``tasklog``
    "record_calls calls_n",  # 1: calls of the scheduler are written to ``calls``; number of these records
    "update_noted_ms",  # time of the last update that was written to ``calls``; -1: none
    "failure:d",  # probability that an attempt of a task fails
    "max_attempts",  # failed attempts of one task that make its job fail
    # probability that an attempt is a straggler, and how many times as long it takes then
    "straggler:d straggler_factor:d",
    "speculation speculation_factor:d",  # 1: slow tasks get a copy; how many times the mean time they must have run
    "heap_n",  # events in the heap (``heap_t``, ``heap_v``)
    # nodes in the ring of heartbeats, the next one's place, and when the present turn began
    "ring_n ring_at ring_base_ms",
    "job_free",  # first free slot of ``jobs``
    "redo_free redo_left",  # first free slot of ``redo``, and how many are free
    "inner_free inner_left",  # first free slot of ``inner``, and how many are free
    "live_runs",  # containers that live
    "ends_free",  # first free block of ``ends``
    "burst",  # most tasks that one event may start inside executors
    "need_room",  # 1: a kernel of the scheduler has changed nothing because an array is full
    "cross_ms",  # the earliest ``cross_ms`` of all jobs
    "round_ms",  # begin of the round that the quanta were last made for
    "ring_stale",  # 1: nodes joined or left, so the ring has to be rebuilt
    "beat_again",  # 1: the heartbeat that is due has begun and goes on when the loop is called again
    "am_lost",  # 1: some master's container was lost, and a new attempt is to be started
    "live_jobs",  # jobs that are submitted or wait for another one, without services that never end
    "waiting_jobs",  # jobs that wait for another one
    "sample_n ended_n task_n",  # records in the samples, in ``ended`` and in ``tasklog``
    "started ended",  # containers that have started and ended so far
    "heartbeats",  # heartbeats of nodes so far
    "skipped leapt",  # heartbeats that were skipped one by one, and many at a time
    "quiet",  # heartbeats since anything changed; one more than ``ring_n`` once ``quiet_end_ms`` is known
    "quiet_end_ms",  # when the next process ends
    "updates",  # updates of the scheduler so far
    "jobs_done jobs_failed",  # jobs that have ended so far, and those of them that failed
    "last_end_ms",  # when a job last ended
    lines=False,
)

#: A job. Amounts of memory are in MiB, integrals in MiB (or vcores) times milliseconds.
JOB = record(
    "am_ms",  # when the master's container was granted; NEVER: not yet
    "am0_ms",  # the master's first heartbeat
    "mb_ms vc_ms",  # memory and vcores over time of the containers that have ended
    "task_ms tasks_done",  # sum of the times of finished tasks, and their number
    "key",  # key of its random draws
    "queue:i",  # its queue in the scheduler
    "kind:i",  # one of `JOB_KINDS`
    "app:i",  # its application in the scheduler; -1: none
    "state:i",  # one of J_FREE ... J_ENDED
    "row",  # its row in the result
    "submit_ms",  # when it is submitted
    "first_am_ms",  # when the container of its first attempt's master was granted
    "act_ms",  # the latest heartbeat of its master that stands in the event heap
    "am_start_ms",  # from the grant of the master's container to its first heartbeat; -1: as ``g.am_start_ms``
    "ex_start_ms",  # from the grant of an executor's container until it takes tasks; -1: as other containers
    "am_end_ms",  # from when the master has heard of all tasks until it ends
    "over_ms",  # when that is; 0: not yet
    "lifetime_ms",  # a service's lifetime; NEVER: it has none
    "think_ms",  # from the end of the job that it follows to its own submission
    "ex_mb",  # memory of one executor
    "am_mb am_vc",  # size of the master's container
    "ex_vc",  # vcores of one executor
    "ex_wanted",  # containers of executors, or of a service, that were asked for and are not yet there
    "ex_owed",  # executors to be asked for again at the master's next heartbeat
    "ex_wait_ms",  # how long after its first heartbeat the driver waits for executors at most
    "failed_attempts",  # attempts of tasks that have failed
    "q_ms:d",  # its quantum
    "q_sum_ms:d q_n:d",  # sum over its ended tasks for the quantum, and their number
    "ahead_a:d ahead_b:d",  # its part of ``ahead_a`` and ``ahead_b`` of its queue (`harness.sim.longterm_state.X`)
    "cross_ms",  # when the next of its running tasks will have run for a quantum
    "omega:d",  # its weight among the applications of its leaf
    "gen:i",  # how often the slot was used, to recognise events of an earlier job
    "followers:i",  # first of the list of jobs that wait for this one
    "next:i",  # the next job in that list, or in the list of free slots
    "user:i",  # its user in the scheduler
    "executors:i",  # executors that it wants in all
    "ex_slots:i",  # tasks that an executor runs at once
    "ex_least:i",  # executors that must take tasks before the driver begins
    "ex_head:i",  # first of the list of its live executors
    "stages:i stages_done:i",  # its stages, and how many have ended
    "failed:i",  # 1: it has failed
    "reduce_check:i",  # 1: a look at whether reduces are to be given back stands in the event heap
    "spec_on:i",  # 1: a look for slow tasks stands in the event heap
    "restarts:i",  # attempts of the application that were lost with their master
    "am_lost:i",  # 1: its master was lost
    "am_first:i",  # 1: a Spark driver that has not been up yet; 2: one that waits for executors
    "endless:i",  # 1: a service without a lifetime, for which the run does not wait
    "maps_at:i reduces_at:i",  # the stages about which its master decides as MapReduce's does; -1: none
    "delays:i",  # 1: some stage of a Spark application begins later than its dependencies allow
    "chained:i",  # 1: each of its stages depends on the one before
    "dynamic:i",  # 1: its executors follow its tasks (``dyn``)
)

#: A stage of a job.
STAGE = record(
    "next_task",  # the next task that has not been started
    "tasks done running",  # its tasks, those that have ended and those that run
    "wanted",  # containers that are outstanding at the scheduler
    "sum_ms",  # sum of the times of finished tasks
    "bucket_ms in_bucket",  # the master's heartbeat that brings the latest completions, and how many these are
    "kind:i",  # distribution of the tasks' durations (harness.sim.durations)
    "open:i",  # 1: all that it waits for has ended, so its tasks may end
    "run_head:i",  # first of the list of its live containers
    "redo_n:i",  # attempts in the list of those to be asked for again
    "values",  # values of an empirical or listed distribution
    "feeds",  # bits: the stages that wait for it
    "a:d b:d",  # parameters of the distribution
    "first_value",  # where its values begin in ``values`` of the world
    "after",  # bits: the stages that it waits for
    "mb",  # memory of a task
    "slow_start:d",  # part of the stages before it that must have ended before its tasks are asked for
    "vc",  # vcores of a task
    "asked",  # tasks that were asked for so far, without repetitions
    "redo_head:i redo_tail:i",  # the list of attempts to be asked for again
    "priority:i",  # priority of its asks
    "redo_asked:i",  # attempts of that list that were asked for
    "sealed:i",  # 1: its master knows that all its tasks have ended
    "scheduled",  # reduces that the master wants to be asked for now
    "started:i",  # 1: slow start has been reached
    "since_ms",  # when maps were first asked for; NEVER: not yet
    "delay_ms",  # how long a Spark driver waits before it submits the stage, once all that it waits for has ended
    "ready_ms",  # when that time is over; 0: not known yet
    "leaves:i",  # what its tasks leave in their executors (bits of harness.sim.dynamic)
)

#: What runs in a container, by the container's slot in the scheduler.
RUN = record(
    "start_ms",  # when its work starts
    "end_ms",  # when it ends; NEVER: not known (yet)
    "granted_ms",  # when the scheduler granted the container
    "node:i",  # its node
    "at:i",  # position of its end in ``ends``
    "twin:i",  # the other one of a speculative pair; -1: none
    "job:i stage:i",  # its job and its stage
    "st_prev:i st_next:i",  # its neighbours in the stage's list, or in the job's list of executors
    "live:i",  # 1: the slot is in use
    "kind:i",  # one of R_AM, R_TASK, R_EXECUTOR, R_SERVICE
    "gen:i",  # how often the slot was used, to recognise events of an earlier container
    "mb vc",  # size of the container
    "hold_ms",  # a task's end if its stage were open; since when an executor is idle, NEVER: it is not
    "task",  # the number of its task
    "attempt:i",  # the number of its attempt, which random draws depend on
    "spent:i",  # the number of its copy that failed, where that is below the next attempt's
    "will_fail:i",  # how the attempt will end (SUCCEEDS, FAILS or IS_REPEATED of harness.sim.tasks)
    "fails:i",  # attempts of the task that failed before
    "idle:i",  # free slots of an executor
    "inner:i",  # first of the list of tasks that run in an executor
    "up:i keeps:i",  # state of an executor, and what tasks have left in it (harness.sim.dynamic)
)

#: Spark's dynamic allocation of a job (harness.sim.dynamic).
DYN = record(
    "target",  # executors that it wants
    "to_add",  # how many more it wants next
    "add_ms",  # when it wants them; NEVER: no task waits
    "next_ms",  # when it looks next
    "zero_ms",  # from when on it looks every 100 ms
    "asked_ms",  # when its allocator last had a new target
    "live",  # executors that were granted and are not given back
    "up",  # of these, those that take tasks
    "going",  # executors whose containers are to be given back
    "beginning",  # 1: no stage was submitted yet
    "least most initial",  # its setting: fewest, most and first executors
    "ratio:d",  # its setting: executors for each task that waits or runs
    "backlog_ms sustained_ms",  # its settings: how long tasks wait until executors are added, first and from then on
    # its settings: how long an idle executor is kept, also with cached blocks or shuffle files
    "idle_ms cached_ms shuffle_ms",
    lines=False,
)

#: An attempt that has to be asked for again, or a speculative copy.
REDO = record(
    "task attempt fails",  # its task, its number, and how many attempts failed before
    "copy_of copy_gen",  # the container of which it is a copy, and that slot's ``gen``; -1: it is none
    "since_ms",  # since when it waits
    "next",  # the next one in the stage's list, or in the list of free slots
    lines=False,
)

#: A task that runs inside an executor.
INNER = record(
    "start_ms",  # when it starts
    "run",  # the executor's container
    "stage task attempt fails",  # its stage, its number, its attempt and how many attempts failed before
    "will_fail",  # how the attempt will end (SUCCEEDS, FAILS or IS_REPEATED of harness.sim.tasks)
    "dead",  # 1: it ended with its executor, and its event is still in the heap
    "gen",  # how often the slot was used, to recognise events of an earlier task
    "prev next",  # its neighbours in the executor's list
    lines=False,
)

#: A node.
NODE = record(
    "next_end_ms",  # the soonest end of a container on it
    "filled:i head:i",  # ends in its first block of ``ends``, and that block; -1: none
    "up:i",  # 1: it takes part
    "speed:d",  # how fast work goes on it; 1: as the durations say
    "mb vc",  # its size
    "phase_ms",  # when its heartbeats come within their period
    "until_ms",  # when a node that is being decommissioned goes at the latest
    lines=False,
)

#: An end and its container; the first of a block: its soonest end and the next block (harness.sim.ends).
END = record(
    "ms c",  # when it is, and whose
)

#: Records of a block.
BLOCK = 16

#: An ended job, for the result.
ENDED = record(
    "row",  # its row in the result's table of jobs
    "started_ms finished_ms submit_ms",  # its first container, its end and its submission
    "mb_ms vc_ms",  # memory and vcores over time of its containers
    "task_ms tasks_done",  # sum of the times of finished tasks, and their number
    "failed_attempts",  # attempts of tasks that have failed
    "failed",  # 1: it has failed
    lines=False,
)

#: An attempt of a task, for the result.
TASKLOG = record(
    "row",  # the row of its job there
    "granted_ms start_ms end_ms",  # when its container was granted, when its work started, and when it ended
    "stage task attempt",  # what it was
    "node",  # where it ran
    "outcome",  # 0: it finished; 1: it failed; 2: it was killed
    lines=False,
)

#: Recorded calls of the scheduler (harness.sim.calls).
CALL = record(
    "t kind",  # when, and which call
    "a b c d e",  # its arguments
    lines=False,
)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, GLOBALS, 1]  # the clock and the counters: one record
    heap_t: Annotated[np.ndarray, np.int64, 1]  # the event heap: times
    heap_v: Annotated[np.ndarray, np.int64, 1]  # the event heap: what happens (harness.sim.events)
    jobs: Annotated[np.ndarray, JOB, 1]  # jobs, by slot
    dyn: Annotated[np.ndarray, DYN, 1]  # by the same slots
    stages: Annotated[np.ndarray, STAGE, 2]  # (jobs, most stages of a job)
    runs: Annotated[np.ndarray, RUN, 1]  # what runs in containers, by the scheduler's slots
    redo: Annotated[np.ndarray, REDO, 1]  # attempts to be asked for again
    inner: Annotated[np.ndarray, INNER, 1]  # tasks that run inside executors
    nodes: Annotated[np.ndarray, NODE, 1]  # nodes, by the scheduler's slots
    ends: Annotated[np.ndarray, END, 1]  # blocks of ends of containers (harness.sim.ends)
    ring: Annotated[np.ndarray, np.int64, 1]  # nodes that are up, by phase
    ring_ms: Annotated[np.ndarray, np.int64, 1]  # their phases
    values: Annotated[np.ndarray, np.float64, 1]  # of empirical and listed durations, seconds
    ended: Annotated[np.ndarray, ENDED, 1]  # ended jobs, for the result
    tasklog: Annotated[np.ndarray, TASKLOG, 1]  # attempts of tasks, for the result
    calls: Annotated[np.ndarray, CALL, 1]  # recorded calls of the scheduler
    sizes: Annotated[np.ndarray, np.int64, 2]  # (changes of nodes, 2): MiB and vcores from then on
    scratch: Annotated[np.ndarray, np.int64, 1]  # containers that end at one heartbeat
    samp_t: Annotated[np.ndarray, np.int64, 2]  # (samples, 3): ms, cluster's MiB and vcores
    samp_i: Annotated[np.ndarray, np.int64, 3]  # (samples, queues, 6): I_MB ... of harness.sim.loop
    samp_f: Annotated[np.ndarray, np.float64, 3]  # (samples, queues, 6): F_ACC ... of harness.sim.loop


class W(Arrays, _Fields):  # type: ignore[misc]
    """The world around the scheduler. `g` has one record; the others are indexed by slot."""


def linked(array: NDArray[Any], first: int, head: int) -> int:
    """Link ``array[first:]`` into a free list through ``next``, in order, before `head`; return the new head."""
    n = len(array)
    if first >= n:
        return head
    array["next"][first:] = np.arange(first + 1, n + 1)
    array["next"][n - 1] = head
    return first


def grown(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """Return a copy with room for `size` along an axis; the new part is zero."""
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
    """Return an empty world for this many nodes and queues; `containers`: slots of the scheduler."""
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
    """Return the world with blocks of ends for this many containers, however they are spread over the nodes."""
    had, blocks = len(world.ends) // BLOCK, len(world.nodes) + containers // (BLOCK - 1) + 1
    if blocks <= had:
        return world
    ends = grown(world.ends, blocks * BLOCK)
    ends["c"][had * BLOCK :: BLOCK] = BLOCK * np.arange(had + 1, blocks + 1)
    ends["c"][(blocks - 1) * BLOCK] = world.g["ends_free"][0]
    world.g["ends_free"] = had * BLOCK
    return world._replace(ends=ends)


def with_room(world: W, *, containers: int) -> W:
    """Return the world with room for more than one event in every array that `harness.sim.loop.short_of_room` checks.

    `containers`: present number of slots of the scheduler.
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
    """Return the world with room for this many more events."""
    size = _doubled(len(world.heap_t), int(world.g["heap_n"][0]) + more)
    if size == len(world.heap_t):
        return world
    return world._replace(heap_t=grown(world.heap_t, size), heap_v=grown(world.heap_v, size))


def with_jobs(world: W, *, stages: int) -> W:
    """Return the world with a free slot for a job with this many stages."""
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
