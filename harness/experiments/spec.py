"""Experiment files as models: the schema of ``experiments/*.yaml`` (docs/reference/experiment-file.md)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from harness.base.documents import Name, Positive, Seconds, Strict
from harness.model.jobs import NodeChange
from harness.model.plan import Mode, SchedulingPolicy
from harness.model.queues import BAD_IN_NAME, ROOT
from harness.sim.schedulers import SCHEDULERS
from harness.traces.spec import DelaysSpec

Weight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Seeds = Seed | Annotated[list[Seed], Field(min_length=1, max_length=10_000)]
#: A name that is also valid for a folder.
Slug = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@=,+-]*$")]
QueueName = Annotated[str, Field(min_length=1, max_length=100, pattern=f"^[^{BAD_IN_NAME}]+$")]
Scalar = str | int | float | bool


def _known(name: str) -> str:
    if name not in SCHEDULERS:
        raise ValueError(f"it should be {' or '.join(map(repr, SCHEDULERS))}")
    return name


#: The scheduler of an experiment that names none.
DEFAULT_SCHEDULER: Final = "fair"
#: A scheduler of the simulator, or of a user's package.
SimulatedSchedulerName = Annotated[str, AfterValidator(_known)]


def combinations(lists: Mapping[str, Sequence[object]]) -> Iterator[dict[str, Any]]:
    """Return each combination of the listed values, by their keys."""
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def short_for(key: str) -> BeforeValidator:
    """Expand a plain text to a mapping with this key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class PolicySpec(Strict):
    """A policy with its settings."""

    policy: Name
    """A [policy](policies.md)'s name. A text alone means this."""
    settings: dict[str, Scalar] = Field(default_factory=dict)
    """The policy's settings."""


class NodeChangeSpec(Strict):
    """A change of nodes during their lifetime: other resources, or graceful decommissioning."""

    at_s: Seconds
    """Time of the change."""
    memory_mb: int | None = Field(default=None, ge=1, le=2**40)
    """Memory of each node after the change, MiB; given together with `vcores`."""
    vcores: int | None = Field(default=None, ge=1, le=2**20)
    """Vcores of each node after the change."""
    decommission: bool = False
    """Given instead: graceful decommissioning begins. The nodes leave at `leave_s`, or later, when their containers
    have ended, after an hour at the latest."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.memory_mb is None) != (self.vcores is None) or self.decommission == (self.memory_mb is not None):
            raise ValueError("give either memory_mb and vcores, or decommission: true")
        return self

    def change(self) -> NodeChange:
        """Return the change in the simulator's form."""
        if self.memory_mb is None or self.vcores is None:
            return NodeChange(self.at_s, None)
        return NodeChange(self.at_s, (self.memory_mb, self.vcores))


class NodeGroupSpec(Strict):
    """``count`` equal nodes, from join_s to leave_s. ``speed``: computing rate, 1 is the reference."""

    count: int = Field(default=1, ge=1, le=100_000)
    """Number of equal nodes."""
    memory_mb: int = Field(ge=1, le=2**40)
    """Memory of each, MiB."""
    vcores: int = Field(ge=1, le=2**20)
    """Virtual cores of each."""
    rack: Name = "/default-rack"
    """Their rack."""
    speed: Factor = 1.0
    """Computing rate; 1 is the reference."""
    join_s: Seconds = 0.0
    """When they join."""
    leave_s: Seconds | None = None
    """When they leave; none: never."""
    changes: list[NodeChangeSpec] | None = Field(default=None, max_length=10_000)
    """Changes of the nodes while they are in the cluster, in order of time."""
    price_hour: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None
    """Price of one node per started hour, dollars. If every group has a price, the summary has `cost_dollars`."""

    @model_serializer(mode="wrap")
    def _without_changes(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write nodes without changes as in earlier versions, because an experiment's hash includes them."""
        found: dict[str, Any] = as_usual(self)
        if self.changes is None:
            found.pop("changes", None)
        return found


class ClusterSpec(Strict):
    """The nodes."""

    nodes: list[NodeGroupSpec] = Field(min_length=1, max_length=100_000)
    """Groups of equal nodes."""


class LimitSpec(Strict):
    """A minimum or maximum of a queue."""

    memory_mb: int = Field(ge=0, le=2**50)
    vcores: int = Field(ge=0, le=2**30)


class MinSlotsSpec(Strict):
    """MRv1's minMaps and minReduces of a pool: a pool below them that asks for more comes first."""

    map: int = Field(default=0, ge=0, le=10**6)
    """Minimum number of maps."""
    reduce: int = Field(default=0, ge=0, le=10**6)
    """Minimum number of reduces."""


class QueueSpec(Strict):
    """A queue: its entitlement (w_i of the papers) and its settings in the Fair Scheduler's allocation file."""

    weight: Weight = 1.0
    """The entitlement w_i."""
    min_resources: LimitSpec | None = None
    """Minimum: `memory_mb`, `vcores`."""
    min_slots: MinSlotsSpec | None = None
    """With `slots`: the minimum numbers of tasks of a pool, `map` and `reduce`."""
    max_resources: LimitSpec | None = None
    """Maximum: `memory_mb`, `vcores`."""
    max_running_apps: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Maximum number of running applications."""
    max_am_share: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Fraction of the fair share that AMs may use; -1: no limit."""
    scheduling_policy: SchedulingPolicy | None = None
    """How it divides, where that is its own choice: [below](#a-queues-own-choice)."""
    quantum_s: Seconds | None = None
    """Its own quantum Q (LTYARN 6.2.3)."""
    round_s: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    """Its own length of rounds L."""
    application_weights: dict[str, Weight] = Field(default_factory=dict, max_length=1000)
    """Weights of a leaf's applications by their names; others 1."""
    children: dict[QueueName, QueueSpec | None] | None = Field(default=None, min_length=1)
    """Name → queue: makes it a parent."""

    @model_validator(mode="after")
    def _am_share(self) -> Self:
        if self.max_am_share is not None and self.max_am_share != -1.0 and not 0 <= self.max_am_share <= 1:
            raise ValueError("max_am_share is a part from 0 to 1, or -1 (no limit)")
        return self


class ScaleSpec(Strict):
    """Factors on a workload: numbers of tasks, durations of tasks, times between submissions."""

    tasks: Factor = 1.0
    """Factor on numbers of tasks."""
    durations: Factor = 1.0
    """Factor on durations."""
    gaps: Factor = 1.0
    """Factor on times between submissions."""


class WorkloadUse(Strict):
    """One queue's workload: a file (``use``) or written here (``inline``), when it starts, how it is scaled.

    ``but``: keys of the workload that differ from the file.
    """

    use: Name | None = None
    """A name in `workloads/`, or a file ending in `.yaml` beside the experiment. A text alone means this."""
    inline: dict[str, Any] | None = None
    """The [workload](workloads.md) itself."""
    but: dict[str, Any] = Field(default_factory=dict)
    """Keys whose values differ from the file's."""
    start_s: Seconds = 0.0
    """When it starts."""
    scale: ScaleSpec = ScaleSpec()
    """Factors on it."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.use is None) == (self.inline is None):
            raise ValueError("give either use (a workload file) or inline (the workload itself)")
        if self.inline is not None and self.but:
            raise ValueError("but changes a workload file; write the change into inline itself")
        return self


class PolicyUse(PolicySpec):
    """One policy, or with ``vary`` one for each combination of the listed values (settings, or ``period_s``)."""

    policy: Name
    """A [policy](policies.md)'s name, or `file.py:Class`. A text alone means this; `NAME@outside` from outside."""
    mode: Mode = "inside"
    """`inside` the scheduler, or from `outside`."""
    period_s: Positive | None = None
    """Control period from outside; none: the experiment's."""
    vary: dict[str, Annotated[list[Scalar], Field(min_length=1, max_length=1000)]] = Field(default_factory=dict)
    """Settings (or `period_s`) → values: a variant for each combination."""
    name: Slug | None = None
    """Name of the variant."""
    in_rm: bool = False
    """On a real cluster [inside its RM](../how-to/inside-the-rm.md); in the simulator inside."""
    scheduler: SimulatedSchedulerName | None = None
    """Of this variant alone; none: the experiment's."""
    poll: bool = False
    """From outside: the RM finds the file by its own poll every 10 s."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.in_rm and self.mode != "inside":
            raise ValueError("in_rm is for a policy inside")
        if self.poll and self.mode != "outside":
            raise ValueError("poll is for a policy from outside")
        both = sorted(set(self.settings) & set(self.vary))
        if both:
            raise ValueError(f"{both[0]} is in both settings and vary")
        if self.mode == "inside" and (self.period_s is not None or "period_s" in self.vary):
            raise ValueError("period_s is the control period from outside; it has no meaning inside")
        return self


class ActuationSpec(Strict):
    """How a weight from outside takes effect.

    It takes effect ``delay_s`` after it is written (the admin RPC) or, with ``poll_s``, when the RM's own poll finds
    the file. ``max_ratio``: bound of weights relative to the entitlements (null: none). For ``task_lengths`` see
    `SimSetup`.
    """

    delay_s: Seconds = 0.02
    """From writing a weight to its effect (the admin RPC)."""
    poll_s: Seconds = 0.0
    """Period of the RM's own poll of the file, instead; 0: none."""
    max_ratio: float | None = Field(default=None, ge=1, le=1e12, allow_inf_nan=False)
    """Weights within this ratio of the entitlements; none: as the policy has them."""
    accept_preemption: bool = False
    """Beside the Capacity Scheduler's preemption, weights as the policy has them (`accept: [preemption]` of `enforce`);
    else near what is in use, as `enforce` keeps them. It kills more."""
    preemption_budget_mb_s: float = Field(default=0.0, ge=0, le=1e15, allow_inf_nan=False)
    """Beside the Capacity Scheduler's preemption, how much work may be killed within any hour, MiB·s (the same key of
    `enforce`)."""
    task_lengths: Literal["work", "containers"] = "work"
    """What the simulated controller knows of the mean task length: of tasks' `work`, or as on a real cluster of
    `containers` (Spark's are executors; masters count only where an application is nothing else)."""


class MapReduceSpec(Strict):
    """`harness.sim.setup.MapReduceMaster`: Hadoop's settings of a MapReduce AM, with Hadoop's defaults."""

    rampup_limit: Fraction = 0.5
    """`yarn.app.mapreduce.am.job.reduce.rampup.limit`: most of a job's resources for reduces while its maps wait."""
    preemption_limit: Fraction = 0.5
    """`yarn.app.mapreduce.am.job.reduce.preemption.limit`: most of them taken from reduces at once for starved maps."""
    preempt_delay_s: Seconds = 0.0
    """`mapreduce.job.reducer.preempt.delay.sec`: how long maps wait without headroom before reduces are preempted."""
    unconditional_preempt_delay_s: float = Field(default=300.0, ge=-1, le=1e6, allow_inf_nan=False)
    """`mapreduce.job.reducer.unconditional-preempt.delay.sec`: and whatever the headroom; -1: never."""
    running_map_limit: int = Field(default=0, ge=0, le=10**9)
    """`mapreduce.job.running.map.limit`; 0: none."""
    running_reduce_limit: int = Field(default=0, ge=0, le=10**9)
    """`mapreduce.job.running.reduce.limit`; 0: none."""
    headroom: Literal["scheduler", "none"] = "scheduler"
    """What the master is told: what the `scheduler` reports, or always 0 (`none`), as Hadoop 2.2's Fair Scheduler."""


class FaultsSpec(Strict):
    """Faults of tasks: `harness.model.jobs.TaskFaults`."""

    failure: Fraction = 0.0
    """Fraction of the attempts that fail."""
    max_attempts: int = Field(default=4, ge=1, le=100)
    """Number of failed attempts of one task at which its job fails."""
    straggler: Fraction = 0.0
    """Fraction of the attempts that straggle."""
    straggler_factor: Factor = 5.0
    """Factor on the duration of these attempts."""
    speculation: bool = False
    """Whether slow tasks are copied (with `slots`: by LATE)."""
    speculation_factor: Factor = 2.0
    """A task is copied once it has run for this many times the mean duration."""


class ShuffleSpec(Strict):
    """The network as MRv1's reduces see it.

    Rates are MB/s into a node and through the cluster (0: no limit). ``mb_per_map`` is a map's output for the reduces,
    by job type (``default`` for the others).
    """

    node_mb_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """Rate into a node, MB/s; 0: no limit."""
    cluster_mb_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """Rate through the cluster, MB/s, shared evenly; 0: no limit."""
    mb_per_map: dict[str, Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]] = Field(default_factory=dict)
    """Job type (or `default`) → MB that a map leaves for the reduces."""


class SlotsSpec(Strict):
    """An MRv1 cluster: every node has this many map and reduce slots."""

    map: int = Field(ge=0, le=10_000)
    """Map slots of a node."""
    reduce: int = Field(ge=0, le=10_000)
    """Reduce slots of a node."""
    map_weight: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] = 1.0
    """Weight of a map slot; a lent slot holds as many tasks of the other type as fit its weight."""
    reduce_weight: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] = 1.0
    """Weight of a reduce slot."""
    heartbeat_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.0
    """Heartbeat period of a tasktracker; 0: slots are assigned at once."""
    locality_delay_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.5
    """Delay scheduling: how long to wait for a node-local slot, then for a rack-local one; 0: not at all."""
    replicas: int = Field(default=3, ge=0, le=100)
    """Number of replicas of each map's block, placed as by HDFS; 0: locality does not matter."""
    rack_factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    """Factor on the duration of a map whose block is on another node of its rack."""
    remote_factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    """Factor on the duration of a map whose block is in another rack."""
    speculative_lag_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 60.0
    """Minimum time that a task has run before LATE may copy it."""
    shuffle: ShuffleSpec = ShuffleSpec()
    """The network through which reduces fetch the output of maps."""
    masters: bool = False
    """With `mode=containers`: each job holds a container for its master."""


class LimitsSpec(Strict):
    """Limits of a run, in virtual seconds.

    ``duration_s``: the run is observed that long and then cut, as intended. ``time_limit_s``: a run that has not ended
    by then has timed out (exit code 5).
    """

    duration_s: Positive | None = None
    """The run is cut after this time, as intended; none: it runs to its end."""
    time_limit_s: Positive = 1e6
    """A run that has not ended by then has timed out (exit code 5). On a real cluster, where the file sets none: five
    times what the simulator takes, at least 1,800 s, or a day where the simulator does not know."""


def _policy(value: object) -> Any:
    """Expand a text such as ``ltrf@outside`` to the mapping that it abbreviates."""
    if not isinstance(value, str):
        return value
    name, at, mode = value.rpartition("@")
    return {"policy": name, "mode": mode} if at else {"policy": value}


class Experiment(Strict):
    """One experiment file."""

    experiment: Slug
    """Its name, also of the folder below `runs/`."""
    about: str = ""
    """A line for the report."""
    cluster: ClusterSpec
    """The nodes."""
    queues: dict[QueueName, QueueSpec | None] = Field(min_length=1)
    """Name → queue."""
    workloads: dict[str, Annotated[WorkloadUse, short_for("use")]] = Field(min_length=1)
    """Leaf (its name, or `Group1.Facebook`) → its workload."""
    max_am_share: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.5
    """`queueMaxAMShareDefault`: the part of a queue's fair share that AMs may take; -1: no limit."""
    min_share_preemption_timeout_s: Seconds | None = None
    """`defaultMinSharePreemptionTimeout`: how long a queue below its minimum share waits before containers of others
    are killed for it. Needs `yarn.scheduler.fair.preemption: true` in `conf`; none: never."""
    scheduler: SimulatedSchedulerName = DEFAULT_SCHEDULER
    """`fair`, `capacity` or `fifo`: which of Hadoop's [schedulers](scheduler.md) decides, or one of an installed
    package. Policy `fair` needs the first, `capacity` the second; on the Capacity Scheduler every other policy acts
    from outside, through weights. The FIFO scheduler takes policy `fifo`."""
    capacity: dict[str, Scalar] = Field(default_factory=dict)
    """Settings of the Capacity Scheduler, without their prefix (`root.a.user-limit-factor: 1`), beside those that
    come from `queues`: weights, maxima, the leaves' policies, limits of applications and AMs."""
    hadoop: Literal["2.2"] | None = None
    """In the simulator: `"2.2"` plays the Fair Scheduler of Hadoop 2.2, [which the papers
    have](simulator.md#how-does-hadoop-22-differ); none: that of the present releases."""
    policies: list[Annotated[PolicyUse, BeforeValidator(_policy)]] = Field(min_length=1, max_length=10_000)
    """The policies to run."""
    seed: Seeds = 1
    """A number, or a list: every policy runs with each."""
    period_s: Positive = 15.0
    """Control period from outside."""
    sample_s: Annotated[float, Field(ge=0.1, le=1e6, allow_inf_nan=False)] = 1.0
    """Period of the samples."""
    resource: Literal["memory", "vcores", "dominant"] = "memory"
    """The resource in which fairness is measured: `memory`, `vcores`, `dominant`."""
    limits: LimitsSpec = LimitsSpec()
    """When a run ends."""
    conf: dict[str, Scalar] = Field(default_factory=dict)
    """Hadoop's settings, `yarn.scheduler.fair.*` and so on."""
    actuation: ActuationSpec = ActuationSpec()
    """How a weight from outside takes effect."""
    delays: DelaysSpec = DelaysSpec()
    """Delays of communication ([simulator](simulator.md)); the others have the simulator's defaults."""
    mapreduce: MapReduceSpec = MapReduceSpec()
    """How MapReduce's masters ask for containers, in the simulator: keys below."""
    faults: FaultsSpec = FaultsSpec()
    """Attempts that fail or straggle, and copies."""
    slots: SlotsSpec | None = None
    """Makes the cluster MRv1's: [below](#clusters-of-map-and-reduce-slots)."""

    @model_validator(mode="after")
    def _of_its_release(self) -> Self:
        if self.hadoop is None:
            return self
        if self.scheduler != "fair" or any(use.scheduler not in (None, "fair") for use in self.policies):
            raise ValueError(f"hadoop: {self.hadoop!r} is for the Fair Scheduler")
        shares = [self.max_am_share, *(queue.max_am_share for queue in self.all_queues().values())]
        if any(share not in (None, -1.0) for share in shares):
            raise ValueError(f"Hadoop {self.hadoop}'s Fair Scheduler has no maxAMShare: write max_am_share: -1")
        return self

    @property
    def seeds(self) -> list[int]:
        """The seeds as a list."""
        return self.seed if isinstance(self.seed, list) else [self.seed]

    def all_queues(self) -> dict[str, QueueSpec]:
        """Return full path -> queue, parents before children; queues that are not described have the defaults."""
        found: dict[str, QueueSpec] = {}

        def walk(queues: Mapping[str, QueueSpec | None], above: str) -> None:
            for name, given in queues.items():
                queue = found[f"{above}.{name}"] = given or QueueSpec()
                walk(queue.children or {}, f"{above}.{name}")

        walk(self.queues, ROOT)
        return found
