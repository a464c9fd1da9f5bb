"""Experiment files as models: what may stand in ``experiments/*.yaml`` (docs/reference/experiment-file.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from harness.base.documents import Name, Positive, Seconds, Strict

Weight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Milliseconds = Annotated[int, Field(ge=0, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
#: Also a folder name.
Slug = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@=,+-]*$")]
#: No dots (they separate levels), no white space (the RM trims it).
QueueName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^.\s\x00-\x1f<>&\"']+$")]
Scalar = str | int | float | bool
#: Which of Hadoop's schedulers decides.
Scheduler = Literal["fair", "capacity"]


class NodeGroupSpec(Strict):
    """``count`` equal nodes. ``speed``: computing rate, 1 is the reference. They are there from join_s to leave_s."""

    count: int = Field(default=1, ge=1, le=100_000)
    memory_mb: int = Field(ge=1, le=2**40)
    vcores: int = Field(ge=1, le=2**20)
    rack: Name = "/default-rack"
    speed: Factor = 1.0
    join_s: Seconds = 0.0
    leave_s: Seconds | None = None
    #: What one of them costs, by the started hour; with it on every group a summary has ``cost_dollars``.
    price_hour: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None


class ClusterSpec(Strict):
    """The nodes."""

    nodes: list[NodeGroupSpec] = Field(min_length=1, max_length=10_000)


class LimitSpec(Strict):
    """A minimum or maximum of a queue."""

    memory_mb: int = Field(ge=0, le=2**50)
    vcores: int = Field(ge=0, le=2**30)


class QueueSpec(Strict):
    """A queue: its entitlement (w_i of the papers) and what the Fair Scheduler's allocation file says of it."""

    weight: Weight = 1.0
    min_resources: LimitSpec | None = None
    max_resources: LimitSpec | None = None
    max_running_apps: int | None = Field(default=None, ge=0, le=2**31 - 1)
    max_am_share: Annotated[float, Field(allow_inf_nan=False)] | None = None
    #: Between a leaf's applications or a parent's children: as Hadoop has it, or ``ltrf``, long-term (simulator).
    scheduling_policy: Literal["fair", "drf", "fifo", "ltrf"] | None = None
    #: Its own time quantum Q and length of rounds L (LTYARN 6.2.3), and the weights of its applications by name.
    quantum_s: Seconds | None = None
    round_s: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    application_weights: dict[str, Weight] = Field(default_factory=dict, max_length=1000)
    children: dict[QueueName, QueueSpec | None] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _am_share(self) -> Self:
        if self.max_am_share is not None and self.max_am_share != -1.0 and not 0 <= self.max_am_share <= 1:
            raise ValueError("max_am_share is a part from 0 to 1, or -1 (no limit)")
        return self


class ScaleSpec(Strict):
    """Factors on a workload: numbers of tasks, durations of tasks, times between submissions."""

    tasks: Factor = 1.0
    durations: Factor = 1.0
    gaps: Factor = 1.0


class WorkloadUse(Strict):
    """One queue's workload: a file (``use``) or written here (``inline``), when it starts, how it is scaled.

    ``but``: keys of the workload that are other than in the file.
    """

    use: Name | None = None
    inline: dict[str, Any] | None = None
    but: dict[str, Any] = Field(default_factory=dict)
    start_s: Seconds = 0.0
    scale: ScaleSpec = ScaleSpec()

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.use is None) == (self.inline is None):
            raise ValueError("give either use (a workload file) or inline (the workload itself)")
        if self.inline is not None and self.but:
            raise ValueError("but changes a workload file; write the change into inline itself")
        return self


class PolicyUse(Strict):
    """One policy, or with ``vary`` one for each combination of the listed values (settings, or ``period_s``)."""

    policy: Name
    mode: Literal["inside", "outside"] = "inside"
    period_s: Positive | None = None
    settings: dict[str, Scalar] = Field(default_factory=dict)
    vary: dict[str, Annotated[list[Scalar], Field(min_length=1, max_length=1000)]] = Field(default_factory=dict)
    name: Slug | None = None
    #: On a real cluster: the policy inside the RM (harness.clusters.inrm), not from outside. In the simulator: inside.
    in_rm: bool = False
    #: Of this variant alone; none: the experiment's.
    scheduler: Scheduler | None = None
    #: From outside: the RM finds the file by its own poll; the admin RPC is not called.
    poll: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.in_rm and self.mode != "inside":
            raise ValueError("in_rm is for a policy inside")
        if self.poll and self.mode != "outside":
            raise ValueError("poll is for a policy from outside")
        both = sorted(set(self.settings) & set(self.vary))
        if both:
            raise ValueError(f"{both[0]} stands in settings and in vary")
        if self.mode == "inside" and (self.period_s is not None or "period_s" in self.vary):
            raise ValueError("period_s is the control period from outside; it has no meaning inside")
        return self


class ActuationSpec(Strict):
    """How a weight from outside takes effect: ``delay_s`` after it is written (the admin RPC), or, with ``poll_s``,
    when the RM's own poll finds the file. ``max_ratio``: weights are within this ratio of the entitlements (null: as
    the policy has them). What the simulated controller knows of ``task_lengths``: `SimSetup`."""

    delay_s: Seconds = 0.02
    poll_s: Seconds = 0.0
    max_ratio: float | None = Field(default=None, ge=1, le=1e12, allow_inf_nan=False)
    task_lengths: Literal["work", "containers"] = "work"


class DelaysSpec(Strict):
    """`harness.sim.setup.Delays`; what is not named keeps its default."""

    node_heartbeat_ms: int | None = Field(default=None, ge=1, le=10**7)
    am_heartbeat_ms: int | None = Field(default=None, ge=1, le=10**7)
    am_response_heartbeats: int | None = Field(default=None, ge=0, le=1)
    am_start_ms: Milliseconds | None = None
    container_start_ms: Milliseconds | None = None
    update_ms: int | None = Field(default=None, ge=1, le=10**7)


class FaultsSpec(Strict):
    """`harness.model.jobs.TaskFaults`."""

    failure: Fraction = 0.0
    max_attempts: int = Field(default=4, ge=1, le=100)
    straggler: Fraction = 0.0
    straggler_factor: Factor = 5.0
    speculation: bool = False
    speculation_factor: Factor = 2.0


class ShuffleSpec(Strict):
    """The network as MRv1's reduces see it: MB/s into a node and through the cluster (0: no limit);
    ``mb_per_map``: what a map leaves for the reduces, by job type (``default`` for the others)."""

    node_mb_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    cluster_mb_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    mb_per_map: dict[str, Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]] = Field(default_factory=dict)


class SlotsSpec(Strict):
    """The cluster as MRv1 has it: every node with so many map and reduce slots (harness.sim.slots)."""

    map: int = Field(ge=0, le=10_000)
    reduce: int = Field(ge=0, le=10_000)
    map_weight: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] = 1.0
    reduce_weight: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] = 1.0
    heartbeat_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.0
    locality_delay_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.5
    replicas: int = Field(default=3, ge=0, le=100)
    rack_factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    remote_factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    speculative_lag_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 60.0
    shuffle: ShuffleSpec = ShuffleSpec()
    masters: bool = False


class LimitsSpec(Strict):
    """``duration_s``: the run is watched that long and then cut, as meant. ``time_limit_s``: a run that has not ended
    by then has timed out (exit code 5). Virtual time."""

    duration_s: Positive | None = None
    time_limit_s: Positive = 1e6


def _policy(value: Any) -> Any:
    """``ltrf@outside`` as the mapping that it is short for."""
    if not isinstance(value, str):
        return value
    name, at, mode = value.rpartition("@")
    return {"policy": name, "mode": mode} if at else {"policy": value}


def _workload(value: Any) -> Any:
    """A workload's name as the mapping that it is short for."""
    return {"use": value} if isinstance(value, str) else value


class Experiment(Strict):
    """One experiment file."""

    experiment: Slug
    about: str = ""
    cluster: ClusterSpec
    queues: dict[QueueName, QueueSpec | None] = Field(min_length=1)
    workloads: dict[str, Annotated[WorkloadUse, BeforeValidator(_workload)]] = Field(min_length=1)
    #: queueMaxAMShareDefault: the part of a queue's fair share that AMs may take; -1: no limit.
    max_am_share: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.5
    #: defaultMinSharePreemptionTimeout (needs yarn.scheduler.fair.preemption in conf); none: minimum shares only wait.
    min_share_preemption_timeout_s: Seconds | None = None
    #: In the simulator; a single policy may name another.
    scheduler: Scheduler = "fair"
    #: Settings of the Capacity Scheduler, without their prefix, beside or instead of those that come from ``queues``.
    capacity: dict[str, Scalar] = Field(default_factory=dict)
    policies: list[Annotated[PolicyUse, BeforeValidator(_policy)]] = Field(min_length=1, max_length=10_000)
    seed: Seed | Annotated[list[Seed], Field(min_length=1, max_length=10_000)] = 1
    period_s: Positive = 15.0
    sample_s: Annotated[float, Field(ge=0.1, le=1e6, allow_inf_nan=False)] = 1.0
    resource: Literal["memory", "vcores", "dominant"] = "memory"
    limits: LimitsSpec = LimitsSpec()
    conf: dict[str, Scalar] = Field(default_factory=dict)
    actuation: ActuationSpec = ActuationSpec()
    delays: DelaysSpec = DelaysSpec()
    faults: FaultsSpec = FaultsSpec()
    slots: SlotsSpec | None = None

    @property
    def seeds(self) -> list[int]:
        return self.seed if isinstance(self.seed, list) else [self.seed]
