"""What a simulated run is given (`SimSetup`) and what it answers (`SimResult`). Values only: nothing runs here.

The run itself is `harness.sim.simulate`; a policy that acts from outside is joined to it by `harness.control.virtual`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness.model.jobs import JobSpec, NodeSpec, TaskFaults
from harness.model.plan import Mode, QueueOrder, ResourceName
from harness.model.preemption import PreemptionRule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.model.queues import AllocationFile


@dataclass(frozen=True, slots=True)
class Delays:
    """How long YARN's parts take to hear of each other; the same for every policy. Milliseconds, or counts.

    Sources: Hadoop 3.4.2's defaults (``yarn.resourcemanager.nodemanagers.heartbeat-interval-ms`` 1000,
    ``yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms`` 1000, ``yarn.scheduler.fair.update-interval-ms`` 500).
    """

    #: Period of a NodeManager's heartbeats; each node has its own phase, drawn from the run's seed.
    node_heartbeat_ms: int = 1000
    #: From a container's end to the heartbeat that its node sends because of it, out of its turn (Hadoop 3.4.2's
    #: ContainerImpl$ContainerDoneTransition; the regular ones keep their beat). -1: the end waits for a regular one.
    end_heartbeat_ms: int = -1
    #: Period of an application master's heartbeats; its phase follows from when its container started.
    am_heartbeat_ms: int = 1000
    #: An AM acts on a response this many of its heartbeats after the response came (MRAppMaster 0; SLS' masters 1).
    am_response_heartbeats: int = 1
    #: From the grant of the AM's container to its first heartbeat.
    am_start_ms: int = 0
    #: From the launch of a task's container to the start of its work (0: durations include it).
    container_start_ms: int = 0
    #: Period of ``FairScheduler.update()``.
    update_ms: int = 500
    #: A DAG whose later stage holds containers while the former one waits and none of that runs gives one back after
    #: this.
    reduce_preempt_ms: int = 5000
    #: Period at which an AM looks for tasks worth a speculative copy.
    speculation_ms: int = 1000


@dataclass(frozen=True, slots=True)
class MapReduceMaster:
    """How the master of a MapReduce job with a map and a reduce stage asks for containers, with Hadoop's defaults.

    Notes
    -----
    Hadoop 3.4.2's RMContainerAllocator. ``mapreduce.job.reduce.slowstart.completedmaps`` is each stage's own
    (`harness.model.jobs.Stage.slow_start`).
    """

    #: ``yarn.app.mapreduce.am.job.reduce.rampup.limit``: most of a job's resources for reduces while maps wait.
    rampup_limit: float = 0.5
    #: ``yarn.app.mapreduce.am.job.reduce.preemption.limit``: most of them taken from reduces at once.
    preemption_limit: float = 0.5
    #: ``mapreduce.job.reducer.preempt.delay.sec``: how long maps wait without headroom until reduces are preempted.
    preempt_delay_s: float = 0.0
    #: ``mapreduce.job.reducer.unconditional-preempt.delay.sec``: and with headroom; negative: never.
    unconditional_preempt_delay_s: float = 300.0
    #: ``mapreduce.job.running.map.limit``; 0: none.
    running_map_limit: int = 0
    #: ``mapreduce.job.running.reduce.limit``; 0: none.
    running_reduce_limit: int = 0
    #: ``scheduler``: what the scheduler reports; ``none``: always 0, as the Fair Scheduler of Hadoop 2.2 (YARN-1959).
    headroom: Literal["scheduler", "none"] = "scheduler"


@dataclass(frozen=True, slots=True)
class SimSetup:
    """One run of the simulator.

    jobs
        In ascending order of ``submit_s`` when it is an iterator (it is read as virtual time goes on, so a trace of
        any length needs little memory); a list or tuple may have any order. A job with ``after_job`` comes after the
        job that it names.
    entitlements
        w_i of the papers by full queue path, parents too; a queue that is not named has weight 1. From these come
        S_i of LTYARN eq. (2), over all queues whether they are active or not. They are not the Fair Scheduler's
        weights, which stand in ``allocations`` and are what a policy from outside rewrites.
    scheduler, capacity
        Which of Hadoop's schedulers decides, by its name in `harness.sim.schedulers`. ``capacity``: settings of the
        Capacity Scheduler (without their prefix), beside or instead of those made from ``allocations``
        (harness.sim.capacity.tree); its queues are those of there. With ``capacity_complete`` they are the whole
        configuration, and nothing is made from ``allocations``.
    policy, mode
        ``inside``: the plan's order is evaluated in the scheduler at each allocation. ``outside``: the stock Fair
        Scheduler allocates, and each ``period_s`` the control core writes the plan's attributes, which take effect
        ``actuation_delay_s`` later (0.02 s: the admin RPC; ``poll_s`` > 0 models the RM's own poll of the allocation
        file instead: every ``poll_s`` seconds, if the file has been still for 5 s). None: the allocation file as it is.
    control_phase_s
        When the control core looks for the first time.
    counts_phase_s
        When an RM first renews the counts of containers that it shows, which it does every 10 s; they are what
        ``task_lengths`` of ``containers`` come from. None: they are exact at every look.
    asked_s, asked_phase_s
        So often, and from when on, somebody else asks the RM for its applications: what it shows of them is then up to
        3 s old when the control core looks. 0: nobody does, and what the core is shown is exact.
    max_ratio
        Weights from outside are within this ratio of the entitlements (harness.control.bound); None: as the policy has
        them.
    write_threshold
        Siblings' weights are written where one of their shares changes by this fraction (harness.control.threshold).
    preemption
        The rule by which weights from outside stay where preemption kills nothing for them
        (harness.control.preemption); None: they go where the policy has them.
    task_lengths
        What the control core is told of the mean task length: of the finished tasks' ``work``, exactly, or what a
        ResourceManager shows of ``containers`` (harness.control.app_observer.Lengths), as on a real cluster.
    resource
        What the fairness integrals are counted in (memory: MiB; vcores; dominant: MiB of the dominant share).
    sample_s
        Period of the samples in the result, from 0 on.
    time_limit_s
        The run stops there (virtual time), unfinished.
    """

    nodes: tuple[NodeSpec, ...]
    allocations: AllocationFile
    jobs: Iterable[JobSpec]
    entitlements: Mapping[str, float] = field(default_factory=dict)
    policy: Any = None  # harness.policies.Policy
    mode: Mode = "inside"
    period_s: float = 1.0
    actuation_delay_s: float = 0.02
    poll_s: float = 0.0
    control_phase_s: float = 0.0
    counts_phase_s: float | None = None
    asked_s: float = 0.0
    asked_phase_s: float = 0.0
    scheduler: str = "fair"
    capacity: Mapping[str, str] = field(default_factory=dict)
    capacity_complete: bool = False
    #: User -> groups, the primary one first: a served cluster's placement rules look at them.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_ratio: float | None = None
    write_threshold: float = 0.0
    preemption: PreemptionRule | None = None
    task_lengths: Literal["work", "containers"] = "work"
    conf: Mapping[str, str] = field(default_factory=dict)
    #: Queue path -> how it divides among its applications or children, where it has a choice of its own.
    queue_orders: Mapping[str, QueueOrder] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)
    mapreduce: MapReduceMaster = field(default_factory=MapReduceMaster)
    faults: TaskFaults = field(default_factory=TaskFaults)
    resource: ResourceName = "memory"
    seed: int = 0
    sample_s: float = 1.0
    time_limit_s: float = 1e7
    record_tasks: bool = False
    #: Keep what the scheduler was asked as a decision script (harness.sim.calls). For Hadoop's orders only.
    record_script: bool = False
    #: Keep the controller's decisions and what it wrote (outside only).
    record_decisions: bool = True
    #: Heartbeats that cannot change anything are skipped; False only to show that it makes no difference.
    skip_heartbeats: bool = True
    #: Whether a run that can never end any more (masters fill the cluster) is stopped before the time limit.
    stop_when_stuck: bool = True


@dataclass(slots=True)
class Progress:
    """What ``on_progress`` receives, some times a second of wall time.

    ``so_far`` computes the result up to this moment; the run itself is not affected by the call.
    """

    time_s: float
    jobs_done: int
    jobs_seen: int
    events: int
    wall_s: float
    so_far: Callable[[], SimResult]


@dataclass(slots=True)
class Samples:
    """The queues over time: arrays of shape (samples, queues), except ``time_s`` and ``capacity_*`` (samples,).

    Columns are in the order of ``queues`` (full paths, parents included). Memory in MiB, times in seconds, integrals
    in MiB·s (or the unit of ``SimSetup.resource``) up to the sample's time, exact, not sums over samples.
    """

    queues: tuple[str, ...]
    leaf: NDArray[np.bool_]  # (queues,)
    share_fraction: NDArray[np.float64]  # (queues,) S_i / capacity, from the entitlements
    time_s: NDArray[np.float64]
    capacity_mb: NDArray[np.int64]
    capacity_vcores: NDArray[np.int64]
    allocated_mb: NDArray[np.int64]
    allocated_vcores: NDArray[np.int64]
    demand_mb: NDArray[np.int64]  # allocated + pending, AMs included
    demand_vcores: NDArray[np.int64]
    fair_share_mb: NDArray[np.int64]  # instantaneous, as of the scheduler's last update
    weight: NDArray[np.float64]  # the Fair Scheduler's
    accumulated: NDArray[np.float64]  # plain integral of the allocation
    counted: NDArray[np.float64]  # accumulated as the policy's ledger settings count it (inside only; else plain)
    due: NDArray[np.float64]  # integral of min(d_i, S_i); 0 for parents
    running: NDArray[np.int64]  # live containers, AMs excluded
    #: As ``due``, S_i by the leaves' own weights, whatever tree stands above; None where both are the same.
    due_flat: NDArray[np.float64] | None = None
    quantum_s: NDArray[np.float64] | None = None  # Q, NaN until a queue's first application; None without a quantum


@dataclass(frozen=True, slots=True)
class Preempted:
    """What preemption has killed: the containers' number, and what they had held until then."""

    containers: int
    memory_mb_s: float
    vcore_s: float


@dataclass(slots=True)
class SimResult:
    """What one run gave. Times in seconds of virtual time; resources in MiB·s and vcore·s.

    ``jobs``: column name -> list or array, one row a job in order of submission: id, name, queue, kind, submitted_s,
    started_s (AM's container), finished_s (NaN: not finished), tasks, failed (bool), attempts_failed,
    memory_mb_s, vcore_s, task_s (mean duration of its finished tasks, NaN: none).
    ``tasks`` (with ``record_tasks``): job (row in ``jobs``), stage (its place among the job's, by priority), task,
    attempt, node (index), granted_ms, start_ms, end_ms, outcome (0 finished, 1 failed, 2 killed).
    ``max_wait_s`` / ``max_wait_at_s``: by leaf, the longest time that a leaf with pending containers went without
    getting one, and when that time ended. ``mean_between_ends_s``: by queue (parents too), mean time between two
    container ends in its subtree. ``writes``: (time_s, {queue: weight}) as they took effect (outside only).
    """

    jobs: dict[str, Any]
    samples: Samples
    makespan_s: float
    end_s: float
    finished: bool
    failed_jobs: int
    events: int  # container starts + ends
    assignments: int
    heartbeats: int  # that did something
    heartbeats_skipped: int
    updates: int
    ticks: int
    max_wait_s: dict[str, float]
    max_wait_at_s: dict[str, float]
    mean_between_ends_s: dict[str, float]
    wall_s: float
    tasks: dict[str, Any] | None = None
    writes: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    script: dict[str, Any] | None = None  # with ``record_script``
    #: With ``record_script``: what MapReduce's masters knew and decided (harness.sim.calls), for those who check it.
    masters: list[dict[str, int]] | None = None
    #: Why the run could never have ended, in words: it was stopped ('': it was not).
    stuck: str = ""
    #: Why a policy's own keys were asked for in Python to the end, in words ('': they were not, or seldom).
    keys_in_python: str = ""
    #: What the scheduler's preemption has killed; None where it is off, and of schedulers that do not count it.
    preempted: Preempted | None = None


#: Called with a `Progress` now and then.
ProgressCallback = Callable[[Progress], None]
