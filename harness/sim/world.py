"""State of everything around the scheduler, as arrays for compiled code: clock, events, jobs, stages, tasks, nodes.

The scheduler's own state is harness.sim.fair's; what happens to this state is harness.sim.events', .apps' and
.loop's business. Slots are recycled by free lists and arrays double when they are full (Python does that, between two
calls of compiled code), so memory follows what runs at once. Times are int64 milliseconds of virtual time.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.sim.arrays import Arrays, in_lines, zeros

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

GLOBALS = np.dtype(
    [
        ("now", "i8"),
        ("limit_ms", "i8"),
        ("next_update_ms", "i8"),
        ("next_sample_ms", "i8"),
        ("next_tick_ms", "i8"),
        ("sample_ms", "i8"),
        ("tick_ms", "i8"),
        ("pause_after", "i8"),  # events and heartbeats until the loop comes back for progress
        ("pause_ms", "i8"),  # when it comes back if nothing has started or ended since it last looked
        ("still_ms", "i8"),  # from one such look to the next
        ("still_events", "i8"),  # starts and ends at the last one
        ("feed_ms", "i8"),  # submission of the last job that was read; NEVER: all were
        ("node_hb_ms", "i8"),
        ("end_hb_ms", "i8"),  # -1: none
        ("am_hb_ms", "i8"),
        ("am_lag_ms", "i8"),  # am_response_heartbeats x am_hb_ms
        ("am_start_ms", "i8"),
        ("container_start_ms", "i8"),
        ("update_ms", "i8"),
        ("reduce_preempt_ms", "i8"),
        ("speculation_ms", "i8"),
        ("skip", "i8"),
        ("user_keys", "i8"),  # the policy's keys come from Python
        ("keys_fresh", "i8"),
        ("keys_at", "i8"),  # or from compiled code (harness.sim.keyed): its address, and that of what it works on
        ("keys_of", "i8"),
        ("record_tasks", "i8"),
        ("record_calls", "i8"),
        ("calls_n", "i8"),
        ("update_noted_ms", "i8"),
        ("failure", "f8"),
        ("max_attempts", "i8"),
        ("straggler", "f8"),
        ("straggler_factor", "f8"),
        ("speculation", "i8"),
        ("speculation_factor", "f8"),
        ("heap_n", "i8"),
        ("ring_n", "i8"),
        ("ring_at", "i8"),
        ("ring_base_ms", "i8"),
        ("job_free", "i8"),
        ("redo_free", "i8"),
        ("redo_left", "i8"),
        ("inner_free", "i8"),
        ("inner_used", "i8"),
        ("live_runs", "i8"),
        ("ends_free", "i8"),  # a block of W.ends
        ("burst", "i8"),  # most tasks that one event may start inside executors
        ("need_room", "i8"),  # a kernel of the scheduler has changed nothing for want of room
        ("cross_ms", "i8"),  # the earliest of the jobs'
        ("round_ms", "i8"),  # begin of the round that the quanta were last made for
        ("ring_stale", "i8"),  # nodes came or went
        ("beat_again", "i8"),  # the heartbeat that is due has begun
        ("am_lost", "i8"),  # some AM was lost and is to be started anew
        ("live_jobs", "i8"),  # submitted or waiting, endless services excluded
        ("waiting_jobs", "i8"),
        ("sample_n", "i8"),
        ("ended_n", "i8"),
        ("task_n", "i8"),
        ("started", "i8"),  # containers
        ("ended", "i8"),
        ("heartbeats", "i8"),
        ("skipped", "i8"),
        ("updates", "i8"),
        ("jobs_done", "i8"),
        ("jobs_failed", "i8"),
        ("last_end_ms", "i8"),
    ],
    align=True,
)

JOB = in_lines(
    np.dtype(
        [
            ("am_ms", "i8"),  # when the AM's container was granted, NEVER: not yet
            ("am0_ms", "i8"),  # the AM's first heartbeat
            ("mb_ms", "i8"),  # of ended containers
            ("vc_ms", "i8"),
            ("task_ms", "i8"),  # sum over finished tasks
            ("tasks_done", "i8"),
            ("key", "i8"),  # of its random draws
            ("queue", "i4"),
            ("kind", "i4"),
            ("app", "i4"),  # in the scheduler, -1: none
            ("state", "i4"),
            ("row", "i8"),  # in the result
            ("submit_ms", "i8"),
            ("first_am_ms", "i8"),  # of the first attempt
            ("act_ms", "i8"),  # latest AM heartbeat that is in the event heap
            ("am_start_ms", "i8"),  # from its grant to that heartbeat, -1: as all
            ("ex_start_ms", "i8"),  # an executor's, -1: as all
            ("am_end_ms", "i8"),  # from when it has heard of all tasks until it ends
            ("over_ms", "i8"),  # when that is, 0: not yet
            ("lifetime_ms", "i8"),
            ("think_ms", "i8"),
            ("ex_mb", "i8"),
            ("am_mb", "i8"),
            ("am_vc", "i8"),
            ("ex_vc", "i8"),
            ("ex_wanted", "i8"),  # executors, or a service's containers, asked for and not yet there
            ("ex_owed", "i8"),  # to be asked for again at the AM's next heartbeat
            ("ex_wait_ms", "i8"),  # at the latest it begins so long after its first heartbeat
            ("failed_attempts", "i8"),
            ("q_ms", "f8"),  # quantum
            ("q_sum_ms", "f8"),  # of its ended tasks, and their number
            ("q_n", "f8"),
            ("ahead_a", "f8"),  # its part of X.ahead_a and X.ahead_b
            ("ahead_b", "f8"),
            ("cross_ms", "i8"),  # when the next of its running tasks will have run for a quantum
            ("omega", "f8"),  # its weight among its leaf's applications
            ("gen", "i4"),  # counts the slot's uses, so that events of former ones are known
            ("followers", "i4"),  # head of the list of jobs that wait for this one
            ("next", "i4"),  # in that list, or in the free list
            ("user", "i4"),
            ("executors", "i4"),
            ("ex_slots", "i4"),
            ("ex_least", "i4"),  # executors that take tasks before the driver begins
            ("ex_head", "i4"),  # list of live executors
            ("stages", "i4"),
            ("stages_done", "i4"),
            ("failed", "i4"),
            ("reduce_check", "i4"),
            ("spec_on", "i4"),
            ("restarts", "i4"),
            ("am_lost", "i4"),
            ("am_first", "i4"),  # 1: a Spark driver that has not been up, 2: one that waits for executors
            ("endless", "i4"),  # a service without a lifetime: the run does not wait for it
        ],
        align=True,
    )
)

STAGE = in_lines(
    np.dtype(
        [
            ("next_task", "i8"),  # the next fresh task to be started
            ("tasks", "i8"),
            ("done", "i8"),
            ("running", "i8"),
            ("wanted", "i8"),  # outstanding at the scheduler
            ("sum_ms", "i8"),  # over finished tasks
            ("bucket_ms", "i8"),  # the AM heartbeat that brings the latest completions
            ("in_bucket", "i8"),
            ("kind", "i4"),  # of the distribution
            ("open", "i4"),  # 1: all that it waits for has ended, its tasks may end
            ("run_head", "i4"),  # list of its live containers
            ("redo_n", "i4"),  # in the redo list
            ("values", "i8"),
            ("feeds", "i8"),  # bits: the stages that wait for it
            ("a", "f8"),
            ("b", "f8"),
            ("first_value", "i8"),
            ("after", "i8"),  # bits: the stages that it waits for
            ("mb", "i8"),
            ("slow_start", "f8"),
            ("vc", "i8"),
            ("asked", "i8"),  # fresh tasks that were asked for so far
            ("redo_head", "i4"),  # attempts to be asked for again
            ("redo_tail", "i4"),
            ("priority", "i4"),
            ("redo_asked", "i4"),  # of those, asked for
            ("sealed", "i4"),  # 1: its AM knows that all its tasks have ended
        ],
        align=True,
    )
)

#: One for each container slot of the scheduler.
RUN = in_lines(
    np.dtype(
        [
            ("start_ms", "i8"),
            ("end_ms", "i8"),  # NEVER: not known (yet)
            ("granted_ms", "i8"),
            ("node", "i4"),
            ("at", "i4"),  # its end, in W.ends
            ("twin", "i4"),  # the other of a speculative pair, -1
            ("job", "i4"),
            ("stage", "i4"),
            ("st_prev", "i4"),  # in the stage's, or the job's list of executors
            ("st_next", "i4"),
            ("live", "i4"),
            ("kind", "i4"),
            ("gen", "i4"),
            ("mb", "i8"),
            ("vc", "i8"),
            ("hold_ms", "i8"),  # what end_ms would be if the stage were open
            ("task", "i8"),
            ("attempt", "i4"),  # draws of this number
            ("will_fail", "i4"),
            ("fails", "i4"),  # attempts of the task that failed before
            ("idle", "i4"),  # free slots of an executor
            ("inner", "i4"),  # head of the executor's running tasks
        ],
        align=True,
    )
)

#: An attempt that has to be asked for again, or a speculative copy.
REDO = np.dtype(
    [("task", "i8"), ("attempt", "i8"), ("fails", "i8"), ("copy_of", "i8"), ("copy_gen", "i8"), ("next", "i8")],
    align=True,
)

#: A task that runs inside an executor.
INNER = np.dtype(
    [
        ("start_ms", "i8"),
        ("run", "i8"),  # the executor's container
        ("stage", "i8"),
        ("task", "i8"),
        ("attempt", "i8"),
        ("fails", "i8"),
        ("will_fail", "i8"),
        ("dead", "i8"),
        ("gen", "i8"),
        ("prev", "i8"),
        ("next", "i8"),
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("next_end_ms", "i8"),
        ("filled", "i4"),  # ends in that block
        ("head", "i4"),  # its first block of W.ends, -1
        ("up", "i4"),
        ("speed", "f8"),
        ("mb", "i8"),
        ("vc", "i8"),
        ("phase_ms", "i8"),
        ("leave_ms", "i8"),
    ],
    align=True,
)

#: An end and its container; the first of a block: its soonest end and the next block (harness.sim.ends).
END = np.dtype([("ms", "i8"), ("c", "i8")], align=True)

#: Records of a block.
BLOCK = 16

#: An ended job, for the result.
ENDED = np.dtype(
    [
        ("row", "i8"),
        ("started_ms", "i8"),
        ("finished_ms", "i8"),
        ("submit_ms", "i8"),
        ("mb_ms", "i8"),
        ("vc_ms", "i8"),
        ("task_ms", "i8"),
        ("tasks_done", "i8"),
        ("failed_attempts", "i8"),
        ("failed", "i8"),
    ],
    align=True,
)

TASKLOG = np.dtype(
    [
        ("row", "i8"),
        ("granted_ms", "i8"),
        ("start_ms", "i8"),
        ("end_ms", "i8"),
        ("stage", "i8"),
        ("task", "i8"),
        ("attempt", "i8"),
        ("node", "i8"),
        ("outcome", "i8"),
    ],
    align=True,
)

#: What was asked of the scheduler (harness.sim.calls).
CALL = np.dtype([(name, "i8") for name in ("t", "kind", "a", "b", "c", "d", "e")], align=True)


class _Fields(NamedTuple):
    g: NDArray[Any]
    heap_t: NDArray[np.int64]
    heap_v: NDArray[np.int64]
    jobs: NDArray[Any]
    stages: NDArray[Any]  # (jobs, most stages of a job)
    runs: NDArray[Any]
    redo: NDArray[Any]
    inner: NDArray[Any]
    nodes: NDArray[Any]
    ends: NDArray[Any]
    ring: NDArray[np.int64]  # nodes that are up, by phase
    ring_ms: NDArray[np.int64]  # their phases
    values: NDArray[np.float64]  # of empirical and listed durations, seconds
    ended: NDArray[Any]
    tasklog: NDArray[Any]
    calls: NDArray[Any]
    scratch: NDArray[np.int64]  # containers that end at one heartbeat
    samp_t: NDArray[np.int64]  # (samples, 3): ms, cluster's MiB and vcores
    samp_i: NDArray[np.int64]  # (samples, queues, 6)
    samp_f: NDArray[np.float64]  # (samples, queues, 6)


class W(Arrays, _Fields):  # type: ignore[misc]
    """The world around the scheduler. `g` has one record; the others are indexed by slot."""

    layout: ClassVar = {
        "g": (GLOBALS, 1),
        "heap_t": (np.dtype(np.int64), 1),
        "heap_v": (np.dtype(np.int64), 1),
        "jobs": (JOB, 1),
        "stages": (STAGE, 2),
        "runs": (RUN, 1),
        "redo": (REDO, 1),
        "inner": (INNER, 1),
        "nodes": (NODE, 1),
        "ends": (END, 1),
        "ring": (np.dtype(np.int64), 1),
        "ring_ms": (np.dtype(np.int64), 1),
        "values": (np.dtype(np.float64), 1),
        "ended": (ENDED, 1),
        "tasklog": (TASKLOG, 1),
        "calls": (CALL, 1),
        "scratch": (np.dtype(np.int64), 1),
        "samp_t": (np.dtype(np.int64), 2),
        "samp_i": (np.dtype(np.int64), 3),
        "samp_f": (np.dtype(np.float64), 3),
    }


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


def new_world(nodes: int, queues: int, *, containers: int, sample_rows: int = 1024, log_rows: int = 1) -> W:
    """An empty world for so many nodes and queues; `containers`: slots of the scheduler."""
    world = W(
        g=zeros(1, GLOBALS),
        heap_t=zeros(1024, np.int64),
        heap_v=zeros(1024, np.int64),
        jobs=zeros(64, JOB),
        stages=zeros((64, 4), STAGE),
        runs=zeros(containers, RUN),
        redo=zeros(256, REDO),
        inner=zeros(256, INNER),
        nodes=zeros(nodes, NODE),
        ends=zeros(0, END),
        ring=zeros(nodes, np.int64),
        ring_ms=zeros(nodes, np.int64),
        values=zeros(1024, np.float64),
        ended=zeros(4096, ENDED),
        tasklog=zeros(log_rows, TASKLOG),
        calls=zeros(1, CALL),
        scratch=zeros(1024, np.int64),
        samp_t=zeros((sample_rows, 3), np.int64),
        samp_i=zeros((sample_rows, queues, 6), np.int64),
        samp_f=zeros((sample_rows, queues, 6), np.float64),
    )
    g = world.g
    g["job_free"] = linked(world.jobs, 0, -1)
    g["redo_free"] = linked(world.redo, 0, -1)
    g["redo_left"] = len(world.redo)
    g["inner_free"] = linked(world.inner, 0, -1)
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
    live = int(g["live_runs"][0] + g["inner_used"][0]) + 1024
    burst = int(g["burst"][0])
    heap = _doubled(len(world.heap_t), int(g["heap_n"][0]) + 2 * live + burst)
    inner = _doubled(len(world.inner), int(g["inner_used"][0]) + burst + 64)
    redo = _doubled(len(world.redo), len(world.redo) - int(g["redo_left"][0]) + live)
    if redo > len(world.redo):
        g["redo_left"] += redo - len(world.redo)
    world = _with_ends(world, containers)._replace(
        heap_t=grown(world.heap_t, heap),
        heap_v=grown(world.heap_v, heap),
        runs=grown(world.runs, containers),
        scratch=grown(world.scratch, _doubled(len(world.scratch), live)),
    )
    for name, size in (("redo", redo), ("inner", inner)):
        table = getattr(world, name)
        if size > len(table):
            wide = grown(table, size)
            g[f"{name}_free"] = linked(wide, len(table), int(g[f"{name}_free"][0]))
            world = world._replace(**{name: wide})
    return world


def with_jobs(world: W, *, stages: int) -> W:
    """The world with a free slot for a job of so many stages."""
    g = world.g
    if int(g["job_free"][0]) < 0:
        old = len(world.jobs)
        table = grown(world.jobs, 2 * old)
        g["job_free"] = linked(table, old, -1)
        world = world._replace(jobs=table, stages=grown(world.stages, 2 * old))
    if stages > world.stages.shape[1]:
        world = world._replace(stages=grown(world.stages, max(stages, world.stages.shape[1] + 4), 1))
    return world


def _doubled(size: int, least: int) -> int:
    while size < least:
        size *= 2
    return size
