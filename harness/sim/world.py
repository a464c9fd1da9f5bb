"""State of everything around the scheduler, as arrays for compiled code: clock, events, jobs, stages, tasks, nodes.

The scheduler's own state is defined in its package (harness.sim.fair, .capacity or .fifo). Slots are recycled through
free lists, and Python doubles full arrays between two calls of compiled code. Memory therefore depends on how much runs
at the same time, not on the length of the run. Times are int64 milliseconds of virtual time.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.sim.arrays import Arrays, record, zeros

#: A time that is never reached, ms.
NEVER = 1 << 62

#: Job kinds, in the order of `harness.model.jobs.JobKind`.
MAPREDUCE, SPARK, DAG, SERVICE = range(4)
JOB_KINDS = ("mapreduce", "spark", "dag", "service")

#: States of a job (JOB.state).
J_FREE, J_WAITING, J_SUBMITTED, J_RUNNING, J_ENDED = range(5)

#: Uses of a live container (RUN.kind): AM, task, executor of Spark, instance of a service.
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
    WAITS_FULL,  # not in use
    PAUSE,  # report progress, and check whether the run is stuck
    PARTS,  # recompute the queues' shares over the horizon, after an update of the scheduler
    CALLS_FULL,  # empty the table of recorded calls of the scheduler
) = range(13)

#: Largest number of stages of a job, because their dependencies are bits of an int64.
MAX_STAGES = 62
#: Largest number of stages of a Spark application in which each stage depends on the one before.
MOST_CHAINED = 256

#: The clock, the settings of the run and the counters of the loop: one record. Fields named ``*_ms`` are times or
#: durations in milliseconds.
GLOBALS = record(
    "now",  # virtual time
    "limit_ms",  # time limit of the run
    "next_update_ms",  # time of the scheduler's next update (``FairScheduler.update``)
    "next_sample_ms",  # time of the next sample
    "next_tick_ms",  # time at which Python runs the next control tick; NEVER: the run has none
    "sample_ms",  # period of samples
    "tick_ms",  # not in use
    "pause_after",  # number of events and heartbeats since the start at which the loop returns PAUSE
    "pause_ms",  # time of the next check whether the run is stuck
    "still_ms",  # period of the checks whether the run is stuck
    "still_events",  # container starts and ends up to the last such check; -1: there was no check
    "feed_ms",  # submission time of the last job read from the input; NEVER: all jobs were read
    "node_hb_ms",  # heartbeat period of NodeManagers
    "end_hb_ms",  # delay from a container's end to the extra heartbeat that its node sends; -1: it sends none
    "am_hb_ms",  # heartbeat period of AMs
    "am_lag_ms",  # delay from a response until the AM acts on it: a number of its heartbeats, times their period
    "am_start_ms",  # delay from the grant of the AM's container to the AM's first heartbeat
    "container_start_ms",  # delay from the launch of a task's container to the start of its work
    "update_ms",  # period of the scheduler's updates
    "reduce_preempt_ms",  # DAG jobs: period of the check whether a task must release its container
    "preempt_ms",  # MapReduce AM: how long maps wait without headroom until reduces are preempted
    "hanging_ms",  # MapReduce AM: how long maps wait despite headroom until reduces are preempted; -1: for ever
    "map_limit reduce_limit",  # MapReduce AM: largest numbers of running maps and reduces of a job; 0: no limit
    "no_headroom",  # MapReduce AM: 1: the headroom is always reported as 0, as in Hadoop 2.2 (YARN-1959)
    "rampup_limit:d",  # MapReduce AM: largest fraction of a job's resources for reduces while maps wait (0 to 1)
    "preempt_limit:d",  # MapReduce AM: largest fraction of a job's resources preempted from reduces at once (0 to 1)
    "speculation_ms",  # period of the AMs' search for tasks that need a speculative copy
    "skip",  # 1: heartbeats that change nothing are skipped
    "user_keys",  # 1: queues are ordered by the keys of a user's policy
    "keys_fresh",  # 1: these keys are up to date
    # addresses of the compiled key function and of its data (harness.sim.keyed); 0: Python computes the keys
    "keys_at keys_of",
    "record_tasks",  # 1: each task attempt is written to ``tasklog``
    "record_calls calls_n",  # 1: calls of the scheduler are written to ``calls``; number of records there
    "update_noted_ms",  # time of the last update written to ``calls``; -1: none
    "failure:d",  # probability that a task attempt fails (0 to 1)
    "max_attempts",  # number of failed attempts of one task at which its job fails
    # probability that an attempt is a straggler (0 to 1), and the factor by which its duration is then multiplied
    "straggler:d straggler_factor:d",
    # 1: slow tasks get a speculative copy; how many times their stage's mean duration they must have run before that
    "speculation speculation_factor:d",
    "heap_n",  # number of events in the heap (``heap_t``, ``heap_v``)
    # number of nodes in the ring of heartbeats, position of the next one, and start of the present heartbeat period
    "ring_n ring_at ring_base_ms",
    "job_free",  # first free slot of ``jobs``
    "redo_free redo_left",  # first free slot of ``redo``, and number of free slots
    "inner_free inner_left",  # first free slot of ``inner``, and number of free slots
    "live_runs",  # number of live containers
    "ends_free",  # first free block of ``ends``
    "burst",  # upper bound of the tasks that one event may start inside executors
    "need_room",  # 1: a kernel of the scheduler returned without a change because an array is full
    "cross_ms",  # earliest ``cross_ms`` of all jobs
    "round_ms",  # start of the ledger's round for which assumed execution times were last recomputed
    "ring_stale",  # 1: nodes joined or left, so the ring has to be rebuilt
    "beat_again",  # 1: a heartbeat was interrupted for lack of room and continues at the next call of the loop
    "am_lost",  # 1: some AM's container was lost, and a new attempt must be started
    "live_jobs",  # number of jobs that have not ended, without services that never end
    "waiting_jobs",  # number of jobs that were read and not submitted yet
    "sample_n ended_n task_n",  # numbers of records in the samples, in ``ended`` and in ``tasklog``
    "started ended",  # numbers of containers that have started and ended so far
    "heartbeats",  # number of processed heartbeats of nodes so far
    "skipped leapt",  # numbers of heartbeats that were skipped one at a time, and in groups
    "quiet",  # number of heartbeats since the last change; ``ring_n`` + 1 once ``quiet_end_ms`` is known
    "quiet_end_ms",  # time at which the next process on any node ends
    "updates",  # number of the scheduler's updates so far
    "jobs_done jobs_failed",  # number of jobs that have ended so far, and how many of them failed
    "last_end_ms",  # time at which a job last ended
    lines=False,
)

#: A job. Times and durations (``*_ms``) are in milliseconds, memory is in MiB.
JOB = record(
    "am_ms",  # time at which the AM's container was granted; NEVER: not yet
    "am0_ms",  # time of the AM's first heartbeat
    "mb_ms vc_ms",  # memory and vcores of its ended containers, integrated over time (MiB ms, vcore ms)
    "task_ms tasks_done",  # total duration of its finished tasks, and their number
    "key",  # key of its random draws
    "queue:i",  # slot of its queue in the scheduler
    "kind:i",  # one of MAPREDUCE ... SERVICE
    "app:i",  # slot of its application in the scheduler; -1: it has none
    "state:i",  # one of J_FREE ... J_ENDED
    "row",  # its row in the result's table of jobs
    "submit_ms",  # submission time
    "first_am_ms",  # time at which the AM's container of its first attempt was granted
    "act_ms",  # time of its latest scheduled E_ACT event
    "am_start_ms",  # delay from the grant of the AM's container to its first heartbeat; -1: ``g.am_start_ms``
    "ex_start_ms",  # delay until an executor takes tasks, from when the AM learns of its container; -1: the general one
    "am_end_ms",  # delay until the AM ends, from when it has learnt that all tasks have ended
    "over_ms",  # time at which the AM ends; 0: not known yet
    "lifetime_ms",  # lifetime of a service; NEVER: unlimited
    "think_ms",  # delay from the end of the job that it follows to its own submission
    "ex_mb",  # memory of one executor
    "am_mb am_vc",  # memory and vcores of the AM's container
    "ex_vc",  # vcores of one executor
    "ex_wanted",  # number of executors' containers that are outstanding at the scheduler
    "ex_owed",  # number of executors to request again at the AM's next heartbeat
    "ex_wait_ms",  # how long after its first heartbeat a driver waits for executors at most
    "failed_attempts",  # number of task attempts that have failed
    "q_ms:d",  # its quantum, ms
    "q_sum_ms:d q_n:d",  # total duration of its ended tasks, from which the quantum is computed, and their number
    "ahead_a:d ahead_b:d",  # its part of ``ahead_a`` and ``ahead_b`` of its queue (`harness.sim.longterm_state.X`)
    "cross_ms",  # time at which the next of its running tasks will have run for a quantum
    "omega:d",  # its weight among the applications of its leaf
    "gen:i",  # number of uses of the slot, by which events of an earlier job are recognised
    "followers:i",  # head of the list of jobs that are submitted after this job has ended
    "next:i",  # next job in such a list, or next free slot
    "user:i",  # slot of its user in the scheduler
    "executors:i",  # number of executors that it requests
    "ex_slots:i",  # number of tasks that one executor runs at once
    "ex_least:i",  # number of executors that must take tasks before the driver begins
    "ex_head:i",  # head of the list of its live executors
    "stages:i stages_done:i",  # number of its stages, and how many have ended
    "failed:i",  # 1: it has failed
    "reduce_check:i",  # 1: an E_REDUCE_CHECK event is in the heap
    "spec_on:i",  # 1: an E_SPECULATE event is in the heap
    "restarts:i",  # number of attempts that were lost with their AM
    "am_lost:i",  # 1: its AM was lost
    "am_first:i",  # 1: a Spark driver before its first heartbeat; 2: a Spark driver that waits for executors
    "endless:i",  # 1: a service without a lifetime; the run ends without it
    "maps_at:i reduces_at:i",  # its map stage and reduce stage, for a MapReduce AM (harness.sim.master); -1: none
    "delays:i",  # 1: some stage of a Spark application begins later than its dependencies allow
    "chained:i",  # 1: each of its stages depends on the one before
    "dynamic:i",  # 1: Spark's dynamic allocation determines the number of executors (``dyn``)
)

#: A stage of a job. Times and durations (``*_ms``) are in milliseconds, memory is in MiB.
STAGE = record(
    "next_task",  # number of the first task that has not been started
    "tasks done running",  # numbers of its tasks, of ended tasks and of running attempts
    "wanted",  # number of containers that are outstanding at the scheduler
    "sum_ms",  # total duration of its finished tasks
    # the AM's heartbeat that reports the latest completions, and the number of these completions
    "bucket_ms in_bucket",
    "kind:i",  # distribution of the tasks' durations (harness.sim.durations)
    "open:i",  # 1: all stages that it depends on have ended, so its tasks may end
    "run_head:i",  # head of the list of its live containers
    "redo_n:i",  # length of the list of attempts to request again
    "values",  # number of values of an empirical or listed distribution
    "feeds",  # bit set of the stages that depend on it
    "a:d b:d",  # parameters of the distribution (`harness.sim.durations.draw_ms`)
    "first_value",  # index of its first value in the world's ``values``
    "after",  # bit set of the stages that it depends on
    "mb",  # memory of a task
    # fraction (0 to 1) of the tasks of the stages that it depends on that must have ended before it requests tasks
    "slow_start:d",
    "vc",  # vcores of a task
    "asked",  # number of tasks requested so far, without repeated attempts
    "redo_head:i redo_tail:i",  # first and last entry of the list of attempts to request again
    "priority:i",  # priority of its asks
    "redo_asked:i",  # number of entries of that list that were requested
    "sealed:i",  # 1: the AM knows that all its tasks have ended
    "scheduled",  # number of reduces that a MapReduce AM has scheduled and that have no container yet
    "started:i",  # 1: the MapReduce AM has reached the slow start of reduces
    "since_ms",  # time at which the MapReduce AM first requested maps; NEVER: not yet
    "delay_ms",  # how long a Spark driver waits before it submits the stage, once its dependencies have ended
    "ready_ms",  # time at which that delay is over; 0: not known yet
    "leaves:i",  # data that its tasks leave in their executors (SHUFFLED, CACHED of harness.sim.dynamic)
)

#: What runs in a container, indexed by the container's slot in the scheduler. Times (``*_ms``) are in milliseconds.
RUN = record(
    "start_ms",  # time at which its work starts
    "end_ms",  # time at which its process exits; NEVER: not known (yet)
    "granted_ms",  # time at which the scheduler granted the container
    "node:i",  # slot of its node
    "at:i",  # index of its end in ``ends``
    "twin:i",  # container of the other attempt of a speculative pair; -1: none; COPY_ASKED ... PREEMPTED of .tasks
    "job:i stage:i",  # slot of its job, and its stage; -1: no stage
    "st_prev:i st_next:i",  # neighbours in the stage's list of containers, or in the job's list of executors
    "live:i",  # 1: the slot is in use
    "kind:i",  # one of R_AM, R_TASK, R_EXECUTOR, R_SERVICE
    "gen:i",  # number of uses of the slot, by which events of an earlier container are recognised
    "mb vc",  # memory (MiB) and vcores of the container
    # of a task: the time at which it will end if its stage opens before; of an executor: since when it is idle, NEVER:
    # it is not idle
    "hold_ms",
    "task",  # number of its task in the stage; -1: none
    "attempt:i",  # number of the attempt, on which random draws depend
    "spent:i",  # highest number of a failed attempt that ran beside this one; the next attempt gets a higher number
    "will_fail:i",  # how the attempt will end (SUCCEEDS, FAILS or IS_REPEATED of harness.sim.tasks)
    "fails:i",  # number of earlier attempts of the task that failed
    "idle:i",  # number of free slots of an executor
    "inner:i",  # head of the list of tasks that run in an executor
    "up:i keeps:i",  # state of an executor, and data that tasks have left in it (harness.sim.dynamic)
)

#: State and settings of Spark's dynamic allocation for a job (harness.sim.dynamic). Times (``*_ms``) are in
#: milliseconds.
DYN = record(
    "target",  # number of executors that the application wants
    "to_add",  # number of executors by which the target is raised next
    "add_ms",  # time at which the target is raised next; NEVER: no task waits
    "next_ms",  # time of the manager's next scheduled round; NEVER: none
    "zero_ms",  # time of the manager's first round; rounds take place at multiples of 100 ms after it
    "asked_ms",  # time at which the allocator last received a new target
    "live",  # number of granted executors that are not to be released
    "up",  # number of these executors that take tasks
    "going",  # number of executors whose containers are to be released
    "beginning",  # 1: no stage was submitted yet
    "least most initial",  # settings: minimum, maximum and initial number of executors
    "ratio:d",  # setting: ``executorAllocationRatio``, executor slots per task that waits or runs
    # settings: how long tasks must wait until executors are added, for the first time and for each later time
    "backlog_ms sustained_ms",
    # settings: idle timeouts of an executor in general, with cached blocks, and with shuffle files
    "idle_ms cached_ms shuffle_ms",
    lines=False,
)

#: An attempt to request again, or a speculative copy that waits for a container.
REDO = record(
    "task attempt fails",  # number of the task, number of the attempt, and number of earlier attempts that failed
    "copy_of copy_gen",  # the container whose attempt it duplicates (-1: it is no copy), and ``gen`` of that slot
    "since_ms",  # time since which it waits, ms
    "next",  # next entry in the stage's list, or next free slot
    lines=False,
)

#: A task that runs inside an executor.
INNER = record(
    "start_ms",  # start time, ms
    "run",  # slot of the executor's container
    "stage task attempt fails",  # stage, number of the task, number of the attempt, and earlier attempts that failed
    "will_fail",  # how the attempt will end (SUCCEEDS, FAILS or IS_REPEATED of harness.sim.tasks)
    "dead",  # 1: it ended with its executor, and its event is still in the heap
    "gen",  # number of uses of the slot, by which events of an earlier task are recognised
    "prev next",  # neighbours in the executor's list
    lines=False,
)

#: A node.
NODE = record(
    "next_end_ms",  # earliest end of a process on it, ms; NEVER: none is known
    "filled:i head:i",  # number of ends in its first block of ``ends``, and index of that block; -1: none
    "up:i",  # 1: it is registered
    "speed:d",  # factor by which tasks run faster than their durations state
    "mb vc",  # memory (MiB) and vcores
    "phase_ms",  # offset of its heartbeats in the heartbeat period, ms
    "until_ms",  # time at which graceful decommissioning ends at the latest, ms
    lines=False,
)

#: The end of a process, by container. The first record of a block has the block's earliest end and the index of the
#: next block (harness.sim.ends).
END = record(
    "ms c",  # time, ms, and slot of the container
)

#: Number of records of a block of ``ends``.
BLOCK = 16

#: An ended job, for the result.
ENDED = record(
    "row",  # its row in the result's table of jobs
    "started_ms finished_ms submit_ms",  # times of its first container, its end and its submission, ms
    "mb_ms vc_ms",  # memory and vcores of its containers, integrated over time (MiB ms, vcore ms)
    "task_ms tasks_done",  # total duration of its finished tasks, ms, and their number
    "failed_attempts",  # number of task attempts that have failed
    "failed",  # 1: it has failed
    lines=False,
)

#: A task attempt, for the result.
TASKLOG = record(
    "row",  # row of its job in the result's table of jobs
    "granted_ms start_ms end_ms",  # grant of its container, start and end of its work, ms
    "stage task attempt",  # stage, number of the task and number of the attempt
    "node",  # slot of its node
    "outcome",  # FINISHED, FAILED or KILLED of harness.sim.tasks
    lines=False,
)

#: A recorded call of the scheduler (harness.sim.calls).
CALL = record(
    "t kind",  # time, ms, and kind of the call (C_JOIN ...)
    "a b c d e",  # its arguments
    lines=False,
)


class _Fields(NamedTuple):
    g: Annotated[np.ndarray, GLOBALS, 1]  # the clock, the settings and the counters: one record
    heap_t: Annotated[np.ndarray, np.int64, 1]  # the event heap: times, ms
    heap_v: Annotated[np.ndarray, np.int64, 1]  # the event heap: packed events (harness.sim.events)
    jobs: Annotated[np.ndarray, JOB, 1]  # jobs, by slot
    dyn: Annotated[np.ndarray, DYN, 1]  # dynamic allocation of jobs, by the slots of ``jobs``
    stages: Annotated[np.ndarray, STAGE, 2]  # stages, by slot of the job and number of the stage
    runs: Annotated[np.ndarray, RUN, 1]  # what runs in containers, by the scheduler's slots
    redo: Annotated[np.ndarray, REDO, 1]  # attempts to request again, by slot
    inner: Annotated[np.ndarray, INNER, 1]  # tasks that run inside executors, by slot
    nodes: Annotated[np.ndarray, NODE, 1]  # nodes, by the scheduler's slots
    ends: Annotated[np.ndarray, END, 1]  # blocks of ends of processes (harness.sim.ends)
    ring: Annotated[np.ndarray, np.int64, 1]  # slots of the registered nodes, ordered by the phase of their heartbeats
    ring_ms: Annotated[np.ndarray, np.int64, 1]  # the phases of these nodes, ms
    values: Annotated[np.ndarray, np.float64, 1]  # values of empirical and listed durations, seconds
    ended: Annotated[np.ndarray, ENDED, 1]  # ended jobs, for the result
    tasklog: Annotated[np.ndarray, TASKLOG, 1]  # task attempts, for the result
    calls: Annotated[np.ndarray, CALL, 1]  # recorded calls of the scheduler
    sizes: Annotated[np.ndarray, np.int64, 2]  # (changes of nodes' capacities, 2): MiB and vcores after the change
    scratch: Annotated[np.ndarray, np.int64, 1]  # slots of the containers that end at one heartbeat
    samp_t: Annotated[np.ndarray, np.int64, 2]  # (samples, 3): time (ms), cluster's memory (MiB) and vcores
    samp_i: Annotated[np.ndarray, np.int64, 3]  # (samples, queues, 6): columns I_MB ... of harness.sim.loop
    samp_f: Annotated[np.ndarray, np.float64, 3]  # (samples, queues, 6): columns F_ACC ... of harness.sim.loop


class W(Arrays, _Fields):  # type: ignore[misc]
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
) -> W:
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
    """Return the world with enough blocks of ends for this many containers in any distribution over the nodes."""
    had, blocks = len(world.ends) // BLOCK, len(world.nodes) + containers // (BLOCK - 1) + 1
    if blocks <= had:
        return world
    ends = grown(world.ends, blocks * BLOCK)
    ends["c"][had * BLOCK :: BLOCK] = BLOCK * np.arange(had + 1, blocks + 1)
    ends["c"][(blocks - 1) * BLOCK] = world.g["ends_free"][0]
    world.g["ends_free"] = had * BLOCK
    return world._replace(ends=ends)


def with_room(world: W, *, containers: int) -> W:
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


def with_events(world: W, more: int) -> W:
    """Return the world with space for `more` further events in the heap."""
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
