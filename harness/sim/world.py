"""State of everything around the scheduler, as arrays for compiled code: clock, events, jobs, stages, tasks, nodes.

The scheduler's own state is defined in its package (harness.sim.fair, .capacity or .fifo). Slots are recycled through
free lists, and Python doubles full arrays between two calls of compiled code. Memory therefore depends on how much runs
at the same time, not on the length of the run. Times are int64 milliseconds of virtual time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.sim.arrays import Arrays, Column, Cube, Int32, Record, Table, zeros

#: A time that is never reached, ms.
NEVER = 1 << 62

#: Job kinds, in the order of `harness.model.jobs.JobKind`.
MAPREDUCE, SPARK, DAG, SERVICE = range(4)
JOB_KINDS = ("mapreduce", "spark", "dag", "service")

#: States of a job (JobRecord.state).
J_FREE, J_WAITING, J_SUBMITTED, J_RUNNING, J_ENDED = range(5)

#: Uses of a live container (RunRecord.kind): AM, task, executor of Spark, instance of a service.
R_AM, R_TASK, R_EXECUTOR, R_SERVICE = range(4)

#: Why the compiled loop returned to Python, and what Python does before it calls the loop again.
(
    DONE,  # all jobs have ended
    NEED_JOBS,  # read the next job of the input
    NEED_ROOM,  # enlarge a full array
    SAMPLES_FULL,  # empty the table of samples
    ENDED_FULL,  # empty the table of ended jobs
    TASKS_FULL,  # empty the task log
    TICK,  # run the control tick that is due
    LIMIT,  # the time limit is reached
    KEYS,  # compute the queues' keys with the user's policy
    PAUSE,  # report progress, and check whether the run is stuck
    PARTS,  # recompute the queues' shares over the horizon, after an update of the scheduler
    CALLS_FULL,  # empty the table of recorded calls of the scheduler
) = range(12)

#: Largest number of stages of a job, because their dependencies are bits of an int64.
MAX_STAGES = 62
#: Largest number of stages of a Spark application in which each stage depends on the one before.
MOST_CHAINED = 256


class WorldGlobals(Record, lines=False):
    """The clock, the settings of the run and the counters of the loop: one record.

    Fields named ``*_ms`` are times or durations in milliseconds.
    """

    now: int  # virtual time
    limit_ms: int  # time limit of the run
    next_update_ms: int  # time of the scheduler's next update (``FairScheduler.update``)
    next_sample_ms: int  # time of the next sample
    next_tick_ms: int  # time at which Python runs the next control tick; NEVER: the run has none
    sample_ms: int  # period of samples
    pause_after: int  # number of events and heartbeats since the start at which the loop returns PAUSE
    pause_ms: int  # time of the next check whether the run is stuck
    still_ms: int  # period of the checks whether the run is stuck
    still_events: int  # container starts and ends up to the last such check; -1: there was no check
    feed_ms: int  # submission time of the last job read from the input; NEVER: all jobs were read
    node_hb_ms: int  # heartbeat period of NodeManagers
    end_hb_ms: int  # delay from a container's end to the extra heartbeat that its node sends; -1: it sends none
    am_hb_ms: int  # heartbeat period of AMs
    am_lag_ms: int  # delay from a response until the AM acts on it: a number of its heartbeats, times their period
    am_start_ms: int  # delay from the grant of the AM's container to the AM's first heartbeat
    container_start_ms: int  # delay from the launch of a task's container to the start of its work
    update_ms: int  # period of the scheduler's updates
    reduce_preempt_ms: int  # DAG jobs: period of the check whether a task must release its container
    preempt_ms: int  # MapReduce AM: how long maps wait without headroom until reduces are preempted
    hanging_ms: int  # MapReduce AM: how long maps wait despite headroom until reduces are preempted; -1: for ever
    map_limit: int  # MapReduce AM: largest number of running maps of a job; 0: no limit
    reduce_limit: int  # MapReduce AM: largest number of running reduces of a job; 0: no limit
    no_headroom: int  # MapReduce AM: 1: the headroom is always reported as 0, as in Hadoop 2.2 (YARN-1959)
    rampup_limit: float  # MapReduce AM: largest fraction of a job's resources for reduces while maps wait (0 to 1)
    preempt_limit: float  # MapReduce AM: largest fraction of a job's resources preempted from reduces at once (0 to 1)
    speculation_ms: int  # period of the AMs' search for tasks that need a speculative copy
    skip: int  # 1: heartbeats that change nothing are skipped
    user_keys: int  # 1: queues are ordered by the keys of a user's policy
    keys_fresh: int  # 1: these keys are up to date
    keys_at: int  # address of the compiled key function (harness.sim.keyed); 0: Python computes the keys
    keys_of: int  # address of this function's data
    record_tasks: int  # 1: each task attempt is written to ``tasklog``
    record_calls: int  # 1: calls of the scheduler are written to ``calls``
    calls_n: int  # number of records in ``calls``
    update_noted_ms: int  # time of the last update written to ``calls``; -1: none
    failure: float  # probability that a task attempt fails (0 to 1)
    max_attempts: int  # number of failed attempts of one task at which its job fails
    straggler: float  # probability that an attempt is a straggler (0 to 1)
    straggler_factor: float  # factor by which a straggler's duration is multiplied
    speculation: int  # 1: slow tasks get a speculative copy
    speculation_factor: float  # how many times its stage's mean duration a task must have run before it gets a copy
    heap_n: int  # number of events in the heap (``heap_t``, ``heap_v``)
    ring_n: int  # number of nodes in the ring of heartbeats
    ring_at: int  # position in the ring of the next heartbeat
    ring_base_ms: int  # start of the present heartbeat period
    job_free: int  # first free slot of ``jobs``
    redo_free: int  # first free slot of ``redo``
    redo_left: int  # number of free slots of ``redo``
    inner_free: int  # first free slot of ``inner``
    inner_left: int  # number of free slots of ``inner``
    live_runs: int  # number of live containers
    ends_free: int  # first free block of ``ends``
    burst: int  # upper bound of the tasks that one event may start inside executors
    need_room: int  # 1: a kernel of the scheduler returned without a change because an array is full
    cross_ms: int  # earliest ``cross_ms`` of all jobs
    round_ms: int  # start of the ledger's round for which assumed execution times were last recomputed
    ring_stale: int  # 1: nodes joined or left, so the ring has to be rebuilt
    beat_again: int  # 1: a heartbeat was interrupted for lack of room and continues at the next call of the loop
    am_lost: int  # 1: some AM's container was lost, and a new attempt must be started
    live_jobs: int  # number of jobs that have not ended, without services that never end
    waiting_jobs: int  # number of jobs that were read and not submitted yet
    sample_n: int  # number of samples in ``samp_t``
    ended_n: int  # number of records in ``ended``
    task_n: int  # number of records in ``tasklog``
    started: int  # number of containers that have started so far
    ended: int  # number of containers that have ended so far
    heartbeats: int  # number of processed heartbeats of nodes so far
    skipped: int  # number of heartbeats that were skipped one at a time
    leapt: int  # number of heartbeats that were skipped in groups
    quiet: int  # number of heartbeats since the last change; ``ring_n`` + 1 once ``quiet_end_ms`` is known
    quiet_end_ms: int  # time at which the next process on any node ends
    updates: int  # number of the scheduler's updates so far
    jobs_done: int  # number of jobs that have ended so far
    jobs_failed: int  # number of these jobs that failed
    last_end_ms: int  # time at which a job last ended


class JobRecord(Record):
    """A job. Times and durations (``*_ms``) are in milliseconds, memory is in MiB."""

    am_ms: int  # time at which the AM's container was granted; NEVER: not yet
    am0_ms: int  # time of the AM's first heartbeat
    mb_ms: int  # memory of its ended containers, integrated over time (MiB ms)
    vc_ms: int  # vcores of its ended containers, integrated over time (vcore ms)
    task_ms: int  # total duration of its finished tasks
    tasks_done: int  # number of its finished tasks
    key: int  # key of its random draws
    queue: Int32  # slot of its queue in the scheduler
    kind: Int32  # one of MAPREDUCE ... SERVICE
    app: Int32  # slot of its application in the scheduler; -1: it has none
    state: Int32  # one of J_FREE ... J_ENDED
    row: int  # its row in the result's table of jobs
    submit_ms: int  # submission time
    first_am_ms: int  # time at which the AM's container of its first attempt was granted
    act_ms: int  # time of its latest scheduled E_ACT event
    am_start_ms: int  # delay from the grant of the AM's container to its first heartbeat; -1: ``g.am_start_ms``
    # delay until an executor takes tasks, from when the AM learns of its container; -1: the general one
    ex_start_ms: int
    am_end_ms: int  # delay until the AM ends, from when it has learnt that all tasks have ended
    over_ms: int  # time at which the AM ends; 0: not known yet
    lifetime_ms: int  # lifetime of a service; NEVER: unlimited
    think_ms: int  # delay from the end of the job that it follows to its own submission
    ex_mb: int  # memory of one executor
    am_mb: int  # memory of the AM's container
    am_vc: int  # vcores of the AM's container
    ex_vc: int  # vcores of one executor
    ex_wanted: int  # number of executors' containers that are outstanding at the scheduler
    ex_owed: int  # number of executors to request again at the AM's next heartbeat
    ex_wait_ms: int  # how long after its first heartbeat a driver waits for executors at most
    failed_attempts: int  # number of task attempts that have failed
    q_ms: float  # its quantum, ms
    q_sum_ms: float  # total duration of its ended tasks, from which the quantum is computed
    q_n: float  # number of these tasks
    ahead_a: float  # its part of its queue's ``ahead_a`` (`harness.sim.longterm_state.LongTermRecord`)
    ahead_b: float  # its part of its queue's ``ahead_b``
    cross_ms: int  # time at which the next of its running tasks will have run for a quantum
    omega: float  # its weight among the applications of its leaf
    gen: Int32  # number of uses of the slot, by which events of an earlier job are recognised
    followers: Int32  # head of the list of jobs that are submitted after this job has ended
    next: Int32  # next job in such a list, or next free slot
    user: Int32  # slot of its user in the scheduler
    executors: Int32  # number of executors that it requests
    ex_slots: Int32  # number of tasks that one executor runs at once
    ex_least: Int32  # number of executors that must take tasks before the driver begins
    ex_head: Int32  # head of the list of its live executors
    stages: Int32  # number of its stages
    stages_done: Int32  # number of its stages that have ended
    failed: Int32  # 1: it has failed
    reduce_check: Int32  # 1: an E_REDUCE_CHECK event is in the heap
    spec_on: Int32  # 1: an E_SPECULATE event is in the heap
    restarts: Int32  # number of attempts that were lost with their AM
    am_lost: Int32  # 1: its AM was lost
    am_first: Int32  # 1: a Spark driver before its first heartbeat; 2: a Spark driver that waits for executors
    endless: Int32  # 1: a service without a lifetime; the run ends without it
    maps_at: Int32  # its map stage, for a MapReduce AM (harness.sim.master); -1: none
    reduces_at: Int32  # its reduce stage, for a MapReduce AM; -1: none
    delays: Int32  # 1: some stage of a Spark application begins later than its dependencies allow
    chained: Int32  # 1: each of its stages depends on the one before
    dynamic: Int32  # 1: Spark's dynamic allocation determines the number of executors (``dyn``)


class StageRecord(Record):
    """A stage of a job. Times and durations (``*_ms``) are in milliseconds, memory is in MiB."""

    next_task: int  # number of the first task that has not been started
    tasks: int  # number of its tasks
    done: int  # number of its tasks that have ended
    running: int  # number of its running attempts
    wanted: int  # number of containers that are outstanding at the scheduler
    sum_ms: int  # total duration of its finished tasks
    bucket_ms: int  # the AM's heartbeat that reports the latest completions
    in_bucket: int  # number of these completions
    kind: Int32  # distribution of the tasks' durations (harness.sim.durations)
    open: Int32  # 1: all stages that it depends on have ended, so its tasks may end
    run_head: Int32  # head of the list of its live containers
    redo_n: Int32  # length of the list of attempts to request again
    values: int  # number of values of an empirical or listed distribution
    feeds: int  # bit set of the stages that depend on it
    a: float  # first parameter of the distribution (`harness.sim.durations.draw_ms`)
    b: float  # second parameter of the distribution
    first_value: int  # index of its first value in the world's ``values``
    after: int  # bit set of the stages that it depends on
    mb: int  # memory of a task
    # fraction (0 to 1) of the tasks of the stages that it depends on that must have ended before it requests
    # tasks
    slow_start: float
    tail: float  # fraction (0 to 1) of a task's duration that it works only after all these tasks have ended
    vc: int  # vcores of a task
    asked: int  # number of tasks requested so far, without repeated attempts
    redo_head: Int32  # first entry of the list of attempts to request again
    redo_tail: Int32  # last entry of that list
    priority: Int32  # priority of its asks
    redo_asked: Int32  # number of entries of that list that were requested
    sealed: Int32  # 1: the AM knows that all its tasks have ended
    scheduled: int  # number of reduces that a MapReduce AM has scheduled and that have no container yet
    started: Int32  # 1: the MapReduce AM has reached the slow start of reduces
    since_ms: int  # time at which the MapReduce AM first requested maps; NEVER: not yet
    delay_ms: int  # how long a Spark driver waits before it submits the stage, once its dependencies have ended
    ready_ms: int  # time at which that delay is over; 0: not known yet
    leaves: Int32  # data that its tasks leave in their executors (SHUFFLED, CACHED of harness.sim.dynamic)


class RunRecord(Record):
    """What runs in a container, indexed by the container's slot in the scheduler.

    Times (``*_ms``) are in milliseconds.
    """

    start_ms: int  # time at which its work starts
    end_ms: int  # time at which its process exits; NEVER: not known (yet)
    granted_ms: int  # time at which the scheduler granted the container
    node: Int32  # slot of its node
    at: Int32  # index of its end in ``ends``
    twin: Int32  # container of the other attempt of a speculative pair; -1: none; COPY_ASKED ... PREEMPTED of .tasks
    job: Int32  # slot of its job
    stage: Int32  # its stage; -1: none
    st_prev: Int32  # previous one in the stage's list of containers, or in the job's list of executors
    st_next: Int32  # next one in that list
    live: Int32  # 1: the slot is in use
    kind: Int32  # one of R_AM, R_TASK, R_EXECUTOR, R_SERVICE
    gen: Int32  # number of uses of the slot, by which events of an earlier container are recognised
    mb: int  # memory of the container (MiB)
    vc: int  # vcores of the container
    # of a task: the time at which it will end if its stage opens before; of an executor: since when it is idle,
    # NEVER: it is not idle
    hold_ms: int
    task: int  # number of its task in the stage; -1: none
    attempt: Int32  # number of the attempt, on which random draws depend
    spent: Int32  # highest number of a failed attempt that ran beside this one; the next attempt gets a higher number
    will_fail: Int32  # how the attempt will end (SUCCEEDS, FAILS or IS_REPEATED of harness.sim.tasks)
    fails: Int32  # number of earlier attempts of the task that failed
    idle: Int32  # number of free slots of an executor
    inner: Int32  # head of the list of tasks that run in an executor
    up: Int32  # state of an executor (harness.sim.dynamic)
    keeps: Int32  # data that tasks have left in an executor (harness.sim.dynamic)


class DynamicRecord(Record, lines=False):
    """State and settings of Spark's dynamic allocation for a job (harness.sim.dynamic).

    Times (``*_ms``) are in milliseconds.
    """

    target: int  # number of executors that the application wants
    to_add: int  # number of executors by which the target is raised next
    add_ms: int  # time at which the target is raised next; NEVER: no task waits
    next_ms: int  # time of the manager's next scheduled round; NEVER: none
    zero_ms: int  # time of the manager's first round; rounds take place at multiples of 100 ms after it
    asked_ms: int  # time at which the allocator last received a new target
    live: int  # number of granted executors that are not to be released
    up: int  # number of these executors that take tasks
    going: int  # number of executors whose containers are to be released
    beginning: int  # 1: no stage was submitted yet
    least: int  # setting: minimum number of executors
    most: int  # setting: maximum number of executors
    initial: int  # setting: initial number of executors
    ratio: float  # setting: ``executorAllocationRatio``, executor slots per task that waits or runs
    backlog_ms: int  # setting: how long tasks must wait until executors are added for the first time
    sustained_ms: int  # setting: how long tasks must wait for each later time
    idle_ms: int  # setting: idle timeout of an executor
    cached_ms: int  # setting: idle timeout of an executor with cached blocks
    shuffle_ms: int  # setting: idle timeout of an executor with shuffle files


class RepeatRecord(Record, lines=False):
    """An attempt to request again, or a speculative copy that waits for a container."""

    task: int  # number of the task
    attempt: int  # number of the attempt
    fails: int  # number of earlier attempts that failed
    copy_of: int  # the container whose attempt it duplicates; -1: it is no copy
    copy_gen: int  # ``gen`` of that container's slot
    since_ms: int  # time since which it waits, ms
    next: int  # next entry in the stage's list, or next free slot


class InnerTaskRecord(Record, lines=False):
    """A task that runs inside an executor."""

    start_ms: int  # start time, ms
    run: int  # slot of the executor's container
    stage: int  # its stage
    task: int  # number of the task
    attempt: int  # number of the attempt
    fails: int  # number of earlier attempts that failed
    will_fail: int  # how the attempt will end (SUCCEEDS, FAILS or IS_REPEATED of harness.sim.tasks)
    dead: int  # 1: it ended with its executor, and its event is still in the heap
    gen: int  # number of uses of the slot, by which events of an earlier task are recognised
    prev: int  # previous one in the executor's list
    next: int  # next one in the executor's list, or next free slot


class WorldNodeRecord(Record, lines=False):
    """A node."""

    next_end_ms: int  # earliest end of a process on it, ms; NEVER: none is known
    filled: Int32  # number of ends in its first block of ``ends``
    head: Int32  # index of that block; -1: none
    up: Int32  # 1: it is registered
    speed: float  # factor by which tasks run faster than their durations state
    mb: int  # memory (MiB)
    vc: int  # vcores
    phase_ms: int  # offset of its heartbeats in the heartbeat period, ms
    until_ms: int  # time at which graceful decommissioning ends at the latest, ms


class EndRecord(Record):
    """The end of a process, by container.

    The first record of a block has the block's earliest end and the index of the next block (harness.sim.ends).
    """

    ms: int  # time, ms
    c: int  # slot of the container


#: Number of records of a block of ``ends``.
BLOCK = 16


class EndedJobRecord(Record, lines=False):
    """An ended job, for the result."""

    row: int  # its row in the result's table of jobs
    started_ms: int  # time at which its first container started, ms
    finished_ms: int  # time at which it ended, ms
    submit_ms: int  # time of its submission, ms
    mb_ms: int  # memory of its containers, integrated over time (MiB ms)
    vc_ms: int  # vcores of its containers, integrated over time (vcore ms)
    task_ms: int  # total duration of its finished tasks, ms
    tasks_done: int  # number of its finished tasks
    failed_attempts: int  # number of task attempts that have failed
    failed: int  # 1: it has failed


class TaskLogRecord(Record, lines=False):
    """A task attempt, for the result."""

    row: int  # row of its job in the result's table of jobs
    granted_ms: int  # time at which its container was granted, ms
    start_ms: int  # start of its work, ms
    end_ms: int  # end of its work, ms
    stage: int  # its stage
    task: int  # number of the task
    attempt: int  # number of the attempt
    node: int  # slot of its node
    outcome: int  # FINISHED, FAILED or KILLED of harness.sim.tasks


class CallRecord(Record, lines=False):
    """A recorded call of the scheduler (harness.sim.calls)."""

    t: int  # time, ms
    kind: int  # kind of the call (C_JOIN ... of harness.sim.calls)
    a: int  # its first argument
    b: int  # its second argument
    c: int  # its third argument
    d: int  # its fourth argument
    e: int  # its fifth argument


class _Fields(NamedTuple):
    g: Column[WorldGlobals]  # the clock, the settings and the counters: one record
    heap_t: Column[int]  # the event heap: times, ms
    heap_v: Column[int]  # the event heap: packed events (harness.sim.events)
    jobs: Column[JobRecord]  # jobs, by slot
    dyn: Column[DynamicRecord]  # dynamic allocation of jobs, by the slots of ``jobs``
    stages: Table[StageRecord]  # stages, by slot of the job and number of the stage
    runs: Column[RunRecord]  # what runs in containers, by the scheduler's slots
    redo: Column[RepeatRecord]  # attempts to request again, by slot
    inner: Column[InnerTaskRecord]  # tasks that run inside executors, by slot
    nodes: Column[WorldNodeRecord]  # nodes, by the scheduler's slots
    ends: Column[EndRecord]  # blocks of ends of processes (harness.sim.ends)
    ring: Column[int]  # slots of the registered nodes, ordered by the phase of their heartbeats
    ring_ms: Column[int]  # the phases of these nodes, ms
    values: Column[float]  # values of empirical and listed durations, seconds
    ended: Column[EndedJobRecord]  # ended jobs, for the result
    tasklog: Column[TaskLogRecord]  # task attempts, for the result
    calls: Column[CallRecord]  # recorded calls of the scheduler
    sizes: Table[int]  # (changes of nodes' capacities, 2): MiB and vcores after the change
    scratch: Column[int]  # slots of the containers that end at one heartbeat
    samp_t: Table[int]  # (samples, 3): time (ms), cluster's memory (MiB) and vcores
    samp_i: Cube[int]  # (samples, queues, 6): columns I_MB ... of harness.sim.loop
    samp_f: Cube[float]  # (samples, queues, 6): columns F_ACC ... of harness.sim.loop


class World(Arrays, _Fields):  # type: ignore[misc]
    """The world around the scheduler."""


def linked(array: NDArray[Any], first: int, head: int) -> int:
    """Put the slots ``array[first:]`` in front of the free list that begins at `head`; return the new head."""
    n = len(array)
    if first >= n:
        return head
    array["next"][first:] = np.arange(first + 1, n + 1)
    array["next"][n - 1] = head
    return first


def grown(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """Return the array extended with zeros to at least `size` elements along an axis."""
    shape = list(array.shape)
    if size <= shape[axis]:
        return array
    shape[axis] = size
    wide = zeros(tuple(shape), array.dtype)
    wide[tuple(slice(0, n) for n in array.shape)] = array
    return wide


def new_world(
    nodes: int, queues: int, *, containers: int, sample_rows: int = 1024, log_rows: int = 1, resizes: int = 0
) -> World:
    """Return an empty world.

    Parameters
    ----------
    nodes, queues, containers
        Numbers of the scheduler's slots.
    sample_rows, log_rows
        Numbers of samples and of records of the task log that the world holds until Python takes them.
    resizes
        Number of changes of nodes' capacities in the run.
    """
    world = World.empty(
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


def _with_ends(world: World, containers: int) -> World:
    """Return the world with enough blocks of ends for this many containers in any distribution over the nodes."""
    had, blocks = len(world.ends) // BLOCK, len(world.nodes) + containers // (BLOCK - 1) + 1
    if blocks <= had:
        return world
    ends = grown(world.ends, blocks * BLOCK)
    ends["c"][had * BLOCK :: BLOCK] = BLOCK * np.arange(had + 1, blocks + 1)
    ends["c"][(blocks - 1) * BLOCK] = world.g["ends_free"][0]
    world.g["ends_free"] = had * BLOCK
    return world._replace(ends=ends)


def with_room(world: World, *, containers: int) -> World:
    """Return the world with space for more than one event in every array that `harness.sim.loop.short_of_room` checks.

    `containers`: the scheduler's number of container slots.
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
    # The same number as in `harness.sim.loop.most_events`.
    world = with_events(world, 5 * len(world.runs) + len(world.jobs) + burst + 64)
    for name, size in (("redo", redo), ("inner", inner)):
        table = getattr(world, name)
        if size > len(table):
            wide = grown(table, size)
            g[f"{name}_free"] = linked(wide, len(table), int(g[f"{name}_free"][0]))
            g[f"{name}_left"] += size - len(table)
            world = world._replace(**{name: wide})
    return world


def with_events(world: World, more: int) -> World:
    """Return the world with space for `more` further events in the heap."""
    size = _doubled(len(world.heap_t), int(world.g["heap_n"][0]) + more)
    if size == len(world.heap_t):
        return world
    return world._replace(heap_t=grown(world.heap_t, size), heap_v=grown(world.heap_v, size))


def with_jobs(world: World, *, stages: int) -> World:
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
