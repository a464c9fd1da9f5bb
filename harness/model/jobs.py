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
    values_s[k] (a recorded trace); as many values as tasks. With ``attempts``, ``attempts[k]`` values belong to the
    k-th task, one for each attempt: all but the last attempt end without success, and each is asked for when the one
    before it has ended.
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

    ``after`` names stages of the same job; the stage's tasks are asked for when the fraction ``slow_start`` of those
    stages' tasks has ended (MapReduce: reduces after slow-start; 1.0: a barrier), and none of its tasks ends before all
    of those stages' tasks have (a reduce waits for the last map). ``priority`` is YARN's (smaller first).

    For Spark: ``delay_s`` is the time from the end of all of those stages until the driver submits this one.
    ``shuffles``: later stages read what its tasks leave on their executors; ``caches``: their executors hold cached
    blocks. Both only matter to dynamic allocation.
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


#: Requested resources and duration of the tasks.
Work = tuple[Resource, Duration]


def mapreduce_stages(maps: int, reduces: int, of_map: Work, of_reduce: Work, slow_start: float) -> tuple[Stage, ...]:
    """Return MapReduce's two stages, with the AM's priorities: reduces before maps (10, 20)."""
    if not reduces:
        return (Stage("map", maps, *of_map),)
    return Stage("map", maps, *of_map), Stage("reduce", reduces, *of_reduce, ("map",), slow_start, priority=10)


@dataclass(frozen=True, slots=True)
class DynamicAllocation:
    """Settings of Spark's dynamic allocation (``spark.dynamicAllocation.*``).

    Attributes
    ----------
    least, most, initial : int
        ``minExecutors``, ``maxExecutors``, and the initial number of executors.
    ratio : float
        ``executorAllocationRatio``: the requested fraction of the executors that all tasks could use at once.
    backlog_s, sustained_s : float
        ``schedulerBacklogTimeout`` and ``sustainedSchedulerBacklogTimeout``: the times that tasks wait before more
        executors are requested, first and from then on.
    idle_s : float
        ``executorIdleTimeout``: an executor without tasks is removed after this time.
    cached_s : float or None
        ``cachedExecutorIdleTimeout``: the same for an executor with cached blocks. None: never.
    tracks_shuffles : bool
        Executors keep what they have shuffled (``shuffleTracking.enabled`` without the external shuffle service).
    shuffle_s : float or None
        ``shuffleTracking.timeout``: such an executor is removed after this time. None: never.
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
    """Return how many executors dynamic allocation may hold for a number of tasks, with ``slots`` in each."""
    return min(max(math.ceil(tasks * dynamic.ratio / slots), dynamic.initial, 1), dynamic.most)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One application.

    ``mapreduce`` / ``dag``: each task is a container of its own. ``spark``: ``executors`` containers of
    ``executor_demand`` are asked for at the start and held until the application ends; stages' tasks run inside,
    ``executor_slots`` at once each. The driver begins when ``executors_least`` of them take tasks, at the latest
    ``executors_wait_s`` after it has asked for them. With ``dynamic`` their number follows the tasks, as in Spark's
    dynamic allocation, and ``executors`` is the upper limit. ``service``: its tasks hold containers until it ends.
    Submitted at ``submit_s``, or, with ``after_job``, ``think_s`` after that job has ended. With ``lifetime_s`` it ends
    exactly this time after its submission, together with everything that it still holds or asks for: a service, or a
    job that was killed.

    Overheads besides its tasks (None: the run's delays): ``am_start_s`` from the grant of its master's container to the
    master's first heartbeat, ``executor_start_s`` from when the master has an executor's container until that takes
    tasks, ``am_end_s`` from when the master knows that all tasks have ended until it ends.
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

    A failed attempt ends at a uniform fraction of its duration and is asked for again; after ``max_attempts`` the job
    fails. A straggler takes ``straggler_factor`` times as long; with ``speculation`` a copy is asked for when a task
    has run ``speculation_factor`` times the mean of its stage's finished tasks, and the first of the two to end wins.
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
    """A NodeManager: its resources, its rack, its computing rate (1 = reference), and when it exists (seconds)."""

    name: str
    memory_mb: int
    vcores: int
    rack: str = "/default-rack"
    speed: float = 1.0
    join_s: float = 0.0
    leave_s: float | None = None
    #: In order of time. A decommissioning node stays beyond ``leave_s`` until its containers have ended.
    changes: tuple[NodeChange, ...] = ()


def decided_by_hadoop(job: JobSpec, stages: Sequence[Stage], map_limit: int, reduce_limit: int) -> tuple[int, int]:
    """Return the indices of a job's map and reduce stages if its master decides as MapReduce's does; -1: no such stage.

    Without early reduces and without limits on running tasks, there is nothing to decide.
    """
    if job.kind != "mapreduce" or len(stages) > 2:
        return -1, -1
    reduces = [at for at, stage in enumerate(stages) if stage.after]
    if not reduces:
        return (0, -1) if len(stages) == 1 and map_limit > 0 else (-1, -1)
    if stages[reduces[0]].slow_start >= 1.0 and map_limit <= 0 and reduce_limit <= 0:
        return -1, -1
    return 1 - reduces[0], reduces[0]
