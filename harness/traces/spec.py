"""The models that workload types share: containers, task durations, stages, submissions, data, programs.

Strict: unknown keys are errors, numbers are finite and in range, stages name only earlier stages (so no cycles).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Protocol, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Positive, Seconds, Strict
from harness.model.jobs import Duration, DynamicAllocation
from harness.model.resources import Resource

#: Bounds far above those of any experiment here; a larger number is a typing mistake.
MOST_TASKS, MOST_JOBS = 10_000_000, 10_000_000

Tasks = Annotated[int, Field(ge=0, le=MOST_TASKS)]


class MasterSpec(Strict):
    """An AM's container: MiB and vcores; both 0: no container (an unmanaged AM)."""

    memory_mb: int = Field(ge=0, le=2**40)
    vcores: int = Field(default=1, ge=0, le=2**20)

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.memory_mb == 0) != (self.vcores == 0):
            raise ValueError("a container has memory and vcores: give both, or 0 for both where there is none")
        return self

    def resource(self) -> Resource:
        """Return the demand as a resource."""
        return Resource(self.memory_mb, self.vcores)


class DemandSpec(MasterSpec):
    """A container's size: MiB of memory and virtual cores."""

    memory_mb: int = Field(ge=1, le=2**40)
    vcores: int = Field(default=1, ge=1, le=2**20)


class LognormalSpec(Strict):
    """``mean_s`` with ``sigma`` (of the logarithm), or ``mu_ms`` with ``sigma``: exp(N(mu, sigma)) milliseconds."""

    mean_s: Positive | None = None
    mu_ms: float | None = Field(default=None, ge=-20, le=40, allow_inf_nan=False)
    sigma: float = Field(ge=0, le=5, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.mean_s is None) == (self.mu_ms is None):
            raise ValueError("give either mean_s or mu_ms")
        return self


class OneKey(Strict):
    """Exactly one of the keys."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(getattr(self, key) is not None for key in type(self).model_fields) != 1:
            raise ValueError("give exactly one of " + ", ".join(type(self).model_fields))
        return self


class UniformSpec(Strict):
    """A uniform distribution between two durations."""

    low_s: Seconds
    high_s: Seconds

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.high_s < self.low_s:
            raise ValueError("high_s is below low_s")
        return self


class DurationSpec(OneKey):
    """One distribution of task durations: exactly one of the keys."""

    constant_s: Positive | None = None
    exponential_mean_s: Positive | None = None
    lognormal: LognormalSpec | None = None
    uniform: UniformSpec | None = None
    values_s: list[Positive] | None = Field(default=None, min_length=1, max_length=100_000)

    def duration(self, scale: float = 1.0) -> Duration:
        """Return the distribution in the simulator's form, with every draw multiplied by `scale`."""
        if self.constant_s is not None:
            return Duration("constant", value_s=self.constant_s * scale)
        if self.exponential_mean_s is not None:
            return Duration("exponential", value_s=self.exponential_mean_s * scale)
        if self.uniform is not None:
            return Duration("uniform", low_s=self.uniform.low_s * scale, high_s=self.uniform.high_s * scale)
        if self.values_s is not None:
            return Duration("empirical", values_s=tuple(value * scale for value in self.values_s))
        assert self.lognormal is not None
        sigma = self.lognormal.sigma
        if self.lognormal.mean_s is not None:
            mu = math.log(self.lognormal.mean_s) - sigma * sigma / 2  # mean = exp(mu + sigma^2 / 2)
        else:
            assert self.lognormal.mu_ms is not None
            mu = self.lognormal.mu_ms - math.log(1000.0)
        # Rounded, because the last digit of a C library's log differs among machines.
        return Duration("lognormal", mu=round(mu + math.log(scale), 12), sigma=sigma)


class TaskSpec(Strict):
    """Tasks of one type: the container size and duration of each."""

    demand: DemandSpec
    duration: DurationSpec


class StageSpec(Strict):
    """One stage of a DAG or Spark job.

    ``after`` names earlier stages; ``slow_start`` is the fraction of these that must have ended before this stage's
    tasks are requested; ``tail`` is the fraction of each task's duration that it works only when all of these have
    ended (`harness.model.jobs.Stage`).
    """

    name: Name
    tasks: int = Field(ge=1, le=MOST_TASKS)
    after: list[str] = Field(default_factory=list)
    slow_start: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    tail: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    demand: DemandSpec | None = None
    duration: DurationSpec | None = None


class NamedStage(Protocol):
    """The fields of a stage that `check_order` needs."""

    name: str
    after: list[str]


def check_order(stages: Sequence[NamedStage]) -> None:
    """Raise ValueError if a stage names one that is not earlier, or two have the same name."""
    known: set[str] = set()
    for stage in stages:
        for before in stage.after:
            if before not in known:
                raise ValueError(f"stage {stage.name!r} comes after {before!r}, which is not an earlier stage")
        if stage.name in known:
            raise ValueError(f"two stages are named {stage.name!r}")
        known.add(stage.name)


class DynamicSpec(Strict):
    """Settings of Spark's dynamic allocation; missing ones have Spark's default."""

    min: int = Field(default=0, ge=0, le=2**31 - 1)
    """`spark.dynamicAllocation.minExecutors`."""
    max: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """`spark.dynamicAllocation.maxExecutors`; without it there is no limit."""
    initial: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """`spark.dynamicAllocation.initialExecutors`; without it, `min`."""
    ratio: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    """`executorAllocationRatio`."""
    backlog_s: Positive = 1.0
    """`schedulerBacklogTimeout`: seconds for which tasks wait before more executors are requested."""
    sustained_s: Positive | None = None
    """`sustainedSchedulerBacklogTimeout`: interval of further requests while tasks still wait, seconds; none:
    `backlog_s`."""
    idle_s: Positive = 60.0
    """`executorIdleTimeout`: seconds after which an executor without tasks is removed."""
    cached_s: Positive | None = None
    """`cachedExecutorIdleTimeout`: the same for an executor with cached blocks; none: it is never removed."""
    tracks_shuffles: bool = False
    """`shuffleTracking.enabled` without the external shuffle service: an executor with shuffle data is kept."""
    shuffle_s: Positive | None = None
    """`shuffleTracking.timeout`: seconds after which an idle executor with shuffle data is removed nevertheless; none:
    never."""

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.max is not None and self.max < max(self.min, self.initial or 0):
            raise ValueError("max is below min or initial")
        return self

    def settings(self) -> DynamicAllocation:
        """Return the settings in the simulator's form."""
        most = 2**31 - 1 if self.max is None else self.max
        return DynamicAllocation(
            least=self.min,
            most=most,
            initial=max(self.min, self.initial or 0),
            ratio=self.ratio,
            backlog_s=self.backlog_s,
            sustained_s=self.sustained_s or self.backlog_s,
            idle_s=self.idle_s,
            cached_s=self.cached_s,
            tracks_shuffles=self.tracks_shuffles,
            shuffle_s=self.shuffle_s,
        )

    @classmethod
    def of(cls, settings: DynamicAllocation) -> Self:
        """Return the line for these settings."""
        return cls(
            min=settings.least,
            max=settings.most if settings.most < 2**31 - 1 else None,
            initial=settings.initial,
            ratio=settings.ratio,
            backlog_s=settings.backlog_s,
            sustained_s=settings.sustained_s,
            idle_s=settings.idle_s,
            cached_s=settings.cached_s,
            tracks_shuffles=settings.tracks_shuffles,
            shuffle_s=settings.shuffle_s,
        )


class ExecutorsSpec(Strict):
    """Spark's executors: containers held from the start to the end of the application, or as ``dynamic`` determines."""

    count: int = Field(ge=1, le=100_000)
    slots: int = Field(default=1, ge=1, le=1024)
    demand: DemandSpec
    dynamic: DynamicSpec | None = None


class SubmissionSpec(OneKey):
    """When the jobs of a sequence are submitted: at a fixed interval, or a given time after the previous one ended."""

    every_s: Seconds | None = None
    think_s: Seconds | None = None


class ArrivalsSpec(OneKey):
    """Submission times: of a SWIM trace's first jobs, or at random with a mean gap (exponential, by the seed)."""

    trace: Name | None = None
    mean_gap_s: Positive | None = None


class DataSpec(Strict):
    """A data set of harness.jobs.data, as ``yarnfair data generate`` makes it."""

    kind: Name
    size: Name
    seed: int = Field(default=1, ge=0, le=2**40)


class ProgramSpec(Strict):
    """One application of `yarnfair job list`, run ``jobs`` times. ``input``: a data set for each type that it reads.

    MapReduce takes ``maps`` and ``reduces``, whose containers are the workload's ``task`` by default; Spark takes
    ``executors``, and numbers of tasks for reading and after a shuffle.
    """

    type: Name | None = None
    application: Name
    input: list[Name] = Field(min_length=1, max_length=10)
    maps: int | None = Field(default=None, ge=1, le=MOST_TASKS)
    reduces: Tasks = 0
    map_demand: DemandSpec | None = None
    reduce_demand: DemandSpec | None = None
    executors: ExecutorsSpec | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    jobs: int = Field(default=1, ge=1, le=MOST_JOBS)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.maps is None and self.executors is None:
            raise ValueError("give maps (MapReduce) or executors (Spark)")
        if self.executors is not None and self.executors.slots != self.executors.demand.vcores:
            raise ValueError("an executor has as many slots as it asks for vcores")
        if self.executors is not None and (self.map_demand or self.reduce_demand):
            raise ValueError("Spark's tasks run in executors: give their demand")
        return self


class DelaysSpec(Strict):
    """`harness.sim.setup.Delays`; missing values keep their defaults."""

    node_heartbeat_ms: int | None = Field(default=None, ge=1, le=10**7)
    """Interval of a node's heartbeats; each node has its own phase, drawn from the seed."""
    end_heartbeat_ms: int | None = Field(default=None, ge=-1, le=10**7)
    """Time from a container's end to the additional heartbeat that its node then sends, as in Hadoop; -1: the node
    sends none, and the end waits for the next regular one."""
    am_heartbeat_ms: int | None = Field(default=None, ge=1, le=10**7)
    """Interval of a master's heartbeats; the phase follows from when its container was granted."""
    am_response_heartbeats: int | None = Field(default=None, ge=0, le=1)
    """A master acts on a response this many heartbeats after it came: 0 as MapReduce's own, 1 as Hadoop SLS'."""
    am_start_ms: int | None = Field(default=None, ge=0, le=10**9)
    """Time from the grant of a master's container to its first heartbeat."""
    container_start_ms: int | None = Field(default=None, ge=0, le=10**9)
    """Time from the launch of a container to the start of its work (task durations include it)."""
    update_ms: int | None = Field(default=None, ge=1, le=10**7)
    """Interval of the scheduler's update."""
