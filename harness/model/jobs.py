"""Jobs for the simulator and for real clusters: stages of tasks with demands, durations and dependencies.

A job is one YARN application. harness.jobs and harness.experiments read jobs from workload files and traces;
harness.sim and harness.clusters run them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.model.resources import Resource

JobKind = Literal["mapreduce", "spark", "dag", "service"]


@dataclass(frozen=True, slots=True)
class Duration:
    """A distribution of task durations in seconds; a draw is rounded to integer milliseconds (at least 1).

    ``constant``: value_s. ``lognormal``: exp(N(mu, sigma)) seconds. ``exponential``: mean value_s. ``uniform``: low_s
    to high_s. ``empirical``: one of values_s, each equally likely. ``listed``: the k-th task of the stage takes
    values_s[k] (a recorded trace), with as many values as tasks. With ``attempts``, ``attempts[k]`` values belong to
    the k-th task, one for each attempt: all attempts but the last fail, and each is requested when the previous one
    has ended.
    """

    kind: Literal["constant", "lognormal", "exponential", "uniform", "empirical", "listed"] = "constant"
    value_s: float = 0.0
    mu: float = 0.0
    sigma: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    values_s: tuple[float, ...] = ()
    attempts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks of one kind within a job.

    ``after`` names earlier stages of the same job. The stage's tasks are requested when the fraction ``slow_start`` of
    those stages' tasks has ended (MapReduce: reduces after slow-start; 1.0: a barrier), and none of them ends before
    all tasks of those stages have ended (a reduce waits for the last map). ``tail`` is the fraction of each task's
    duration that it works only after that: a reduce sorts and reduces when it has the output of every map, so that no
    more than its start and its shuffle overlap with maps. ``priority`` is YARN's (smaller first).

    For Spark: ``delay_s`` is the time from the end of all earlier stages until the driver submits this one.
    ``shuffles``: later stages read shuffle data that the stage's tasks leave on their executors. ``caches``: the
    executors hold cached blocks of the stage. Both only affect dynamic allocation.
    """

    name: str
    tasks: int
    demand: Resource
    duration: Duration
    after: tuple[str, ...] = ()
    slow_start: float = 1.0
    priority: int = 20
    delay_s: float = 0.0
    shuffles: bool = False
    caches: bool = False
    tail: float = 0.0


#: Requested resources and duration of the tasks.
Work = tuple[Resource, Duration]


def mapreduce_stages(
    maps: int, reduces: int, of_map: Work, of_reduce: Work, slow_start: float, tail: float = 0.0
) -> tuple[Stage, ...]:
    """Return the stages of a MapReduce job, with the AM's priorities: 10 for reduces, 20 for maps (smaller first).

    ``slow_start`` and ``tail`` are the reduces' (see `Stage`).
    """
    if not reduces:
        return (Stage("map", maps, *of_map),)
    reduce = Stage("reduce", reduces, *of_reduce, ("map",), slow_start, priority=10, tail=tail)
    return Stage("map", maps, *of_map), reduce


@dataclass(frozen=True, slots=True)
class DynamicAllocation:
    """Settings of Spark's dynamic allocation (``spark.dynamicAllocation.*``).

    Attributes
    ----------
    least, most, initial : int
        ``minExecutors``, ``maxExecutors``, and the initial number of executors.
    ratio : float
        ``executorAllocationRatio``: the requested fraction of the executors that would run all tasks at once.
    backlog_s, sustained_s : float
        ``schedulerBacklogTimeout`` and ``sustainedSchedulerBacklogTimeout``: the times that tasks wait before more
        executors are requested, first and from then on.
    idle_s : float
        ``executorIdleTimeout``: an executor without tasks is removed after this time.
    cached_s : float or None
        ``cachedExecutorIdleTimeout``: an idle executor with cached blocks is removed after this time. None: never.
    tracks_shuffles : bool
        Whether executors with shuffle data are kept (``shuffleTracking.enabled`` without the external shuffle service).
    shuffle_s : float or None
        ``shuffleTracking.timeout``: an idle executor with shuffle data is removed after this time. None: never.
    """

    least: int = 0
    most: int = 2**31 - 1
    initial: int = 0
    ratio: float = 1.0
    backlog_s: float = 1.0
    sustained_s: float = 1.0
    idle_s: float = 60.0
    cached_s: float | None = None
    tracks_shuffles: bool = False
    shuffle_s: float | None = None


def most_executors(dynamic: DynamicAllocation, tasks: int, slots: int) -> int:
    """Return the largest number of executors under dynamic allocation for ``tasks`` tasks, with ``slots`` in each."""
    return min(max(math.ceil(tasks * dynamic.ratio / slots), dynamic.initial, 1), dynamic.most)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One application.

    ``mapreduce`` / ``dag``: each task is a container of its own. ``spark``: ``executors`` containers of
    ``executor_demand`` are requested at the start and held until the application ends; tasks run inside them,
    ``executor_slots`` at a time in each. The driver starts the first stage when ``executors_least`` executors are
    ready, at the latest ``executors_wait_s`` after it has requested them. With ``dynamic``, the number of executors
    follows the tasks, as in Spark's dynamic allocation, and ``executors`` is the upper limit. ``service``: the tasks
    hold containers until the application ends.

    The application is submitted at ``submit_s``, or, with ``after_job``, ``think_s`` after that job has ended. With
    ``lifetime_s`` it ends exactly this time after its submission, with all its containers and pending requests; this
    describes a service or a job that was killed.

    Overheads besides the tasks (None: the run's delays): ``am_start_s`` from the grant of the AM's container to the
    AM's first heartbeat, ``executor_start_s`` from when the AM gets an executor's container until the executor takes
    tasks, ``am_end_s`` from when the AM knows that all tasks have ended until it ends.
    """

    id: str
    queue: str  # full path of a leaf, "root.facebook"
    kind: JobKind
    am: Resource
    stages: tuple[Stage, ...]
    user: str = "yarnfair"
    name: str = ""  # job type, such as "uservisits aggregation"
    submit_s: float = 0.0
    after_job: str | None = None
    think_s: float = 0.0
    executors: int = 0
    executor_demand: Resource = field(default_factory=Resource)
    executor_slots: int = 1
    executors_least: int = 0
    executors_wait_s: float = 0.0
    lifetime_s: float | None = None
    am_start_s: float | None = None
    executor_start_s: float | None = None
    am_end_s: float = 0.0
    dynamic: DynamicAllocation | None = None


@dataclass(frozen=True, slots=True)
class TaskFaults:
    """Faults of tasks, as probabilities per task attempt (drawn with the run's seed).

    A failed attempt ends at a uniformly drawn fraction of its duration, and the task is requested again; after
    ``max_attempts`` the job fails. A straggler takes ``straggler_factor`` times as long. With ``speculation``, a copy
    is requested when a task has run ``speculation_factor`` times the mean of its stage's finished tasks, and the
    attempt that ends first counts.
    """

    failure: float = 0.0
    max_attempts: int = 4
    straggler: float = 0.0
    straggler_factor: float = 5.0
    speculation: bool = False
    speculation_factor: float = 2.0


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A change of a node during its lifetime: at ``at_s`` seconds it begins to offer ``size`` (MiB, vcores).

    ``size`` None: graceful decommissioning begins. Running containers continue, and no new ones are placed.
    """

    at_s: float
    size: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A NodeManager: resources, rack, computing speed (1 = reference), and the times when it joins and leaves, s."""

    name: str
    memory_mb: int
    vcores: int
    rack: str = "/default-rack"
    speed: float = 1.0
    join_s: float = 0.0
    leave_s: float | None = None
    #: Changes in chronological order. A decommissioning node stays beyond ``leave_s`` until its containers have ended.
    changes: tuple[NodeChange, ...] = ()


def decided_by_hadoop(job: JobSpec, stages: Sequence[Stage], map_limit: int, reduce_limit: int) -> tuple[int, int]:
    """Return the indices of a job's map and reduce stages if MapReduce's AM controls when reduces start; else -1.

    Without early reduces and without limits on running tasks, the AM has nothing to decide.
    """
    if job.kind != "mapreduce" or len(stages) > 2:
        return -1, -1
    reduces = [at for at, stage in enumerate(stages) if stage.after]
    if not reduces:
        return (0, -1) if len(stages) == 1 and map_limit > 0 else (-1, -1)
    if stages[reduces[0]].slow_start >= 1.0 and map_limit <= 0 and reduce_limit <= 0:
        return -1, -1
    return 1 - reduces[0], reduces[0]
