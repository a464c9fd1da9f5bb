"""Input (`SimSetup`) and output (`SimResult`) of a simulated run. Contains values only; nothing runs here.

The run itself is `harness.sim.simulate`; `harness.control.virtual` connects an external policy to it.
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
    """Delays of communication between YARN's parts; the same for every policy. Milliseconds, or counts.

    Sources: Hadoop 3.4.2's defaults (``yarn.resourcemanager.nodemanagers.heartbeat-interval-ms`` 1000,
    ``yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms`` 1000, ``yarn.scheduler.fair.update-interval-ms`` 500).
    """

    #: Period of a NodeManager's heartbeats; each node has its own phase, drawn from the run's seed.
    node_heartbeat_ms: int = 1000
    #: From a container's end to the extra heartbeat that its node sends because of it (Hadoop 3.4.2's
    #: ContainerImpl$ContainerDoneTransition; the regular period is unchanged). -1: the end waits for a regular
    #: heartbeat.
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
    #: If a later stage of a DAG holds containers while an earlier stage waits and none of its tasks runs, the later
    #: stage releases one container after this time.
    reduce_preempt_ms: int = 5000
    #: Period at which an AM looks for tasks worth a speculative copy.
    speculation_ms: int = 1000


@dataclass(frozen=True, slots=True)
class MapReduceMaster:
    """Settings by which the AM of a MapReduce job with a map and a reduce stage requests containers.

    Notes
    -----
    The defaults are those of RMContainerAllocator of Hadoop 3.4.2. ``mapreduce.job.reduce.slowstart.completedmaps`` is
    a setting of each stage (`harness.model.jobs.Stage.slow_start`).
    """

    #: ``yarn.app.mapreduce.am.job.reduce.rampup.limit``: largest fraction of a job's resources for reduces while maps
    #: wait.
    rampup_limit: float = 0.5
    #: ``yarn.app.mapreduce.am.job.reduce.preemption.limit``: largest fraction of resources taken from reduces at once.
    preemption_limit: float = 0.5
    #: ``mapreduce.job.reducer.preempt.delay.sec``: how long maps wait without headroom until reduces are preempted.
    preempt_delay_s: float = 0.0
    #: ``mapreduce.job.reducer.unconditional-preempt.delay.sec``: the same time with headroom; negative: never.
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

    Parameters
    ----------
    jobs
        An iterator in ascending order of ``submit_s``, which is read as virtual time proceeds, so that a trace of any
        length needs little memory; or a list or tuple in any order. A job with ``after_job`` is listed after the job
        that it names.
    entitlements
        w_i of the papers by full queue path, including parents; a queue that is not named has weight 1. S_i of LTYARN
        eq. (2) is computed from these, over all queues, active or not. They are not the Fair Scheduler's weights, which
        are in ``allocations`` and which an external policy rewrites.
    scheduler
        The name of the simulated scheduler in `harness.sim.schedulers`.
    capacity
        Settings of the Capacity Scheduler, without their prefix. They supplement or replace those made from
        ``allocations`` (harness.sim.capacity.tree), which names the queues. With ``capacity_complete`` they are the
        whole configuration, and nothing is made from ``allocations``.
    policy
        The policy; None: the scheduler runs with its configuration as it is.
    mode
        ``inside``: the plan's order is evaluated in the scheduler at each assignment. ``outside``: the stock scheduler
        runs, and each ``period_s`` the control core writes the plan's attributes, which take effect
        ``actuation_delay_s`` later (0.02 s: the admin RPC). With ``poll_s`` > 0, the RM's own check of the allocation
        file is modelled instead: every ``poll_s`` seconds, if the file has not changed for 5 s.
    control_phase_s
        Time of the control core's first poll.
    counts_phase_s
        Time at which an RM first refreshes the container counts that it reports, which it does every 10 s. With
        ``task_lengths`` of ``containers``, they are the source of task lengths. None: counts are exact at every poll.
    asked_s, asked_phase_s
        Period, and first time, at which another client requests the RM's applications; the answers to the control core
        are then up to 3 s old. 0: there is no other client, and the core's values are exact.
    max_ratio
        External weights stay within this ratio of the entitlements (harness.control.bound); None: unbounded.
    write_threshold
        Weights of siblings are only written if one of their shares changes by at least this fraction
        (harness.control.threshold).
    preemption
        The rule that keeps external weights in the range in which preemption kills nothing for them
        (harness.control.preemption); None: weights are the policy's.
    preemption_budget_mb_s
        How much work preemption may kill within any hour for external weights (harness.control.killed), MiB·s.
    task_lengths
        Source of the mean task length for the control core: ``work``, the exact value of the finished tasks, or
        ``containers``, what a ResourceManager shows (harness.control.app_observer.Lengths), as on a real cluster.
    resource
        Unit of the fairness integrals (memory: MiB; vcores; dominant: MiB of the dominant share).
    sample_s
        Period of the samples in the result, from 0 on.
    time_limit_s
        Virtual time at which an unfinished run stops.
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
    #: User -> groups, the primary one first, for a served cluster's placement rules.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_ratio: float | None = None
    write_threshold: float = 0.0
    preemption: PreemptionRule | None = None
    preemption_budget_mb_s: float = 0.0
    task_lengths: Literal["work", "containers"] = "work"
    conf: Mapping[str, str] = field(default_factory=dict)
    #: Queue path -> how it divides among its applications or children, where it has its own setting.
    queue_orders: Mapping[str, QueueOrder] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)
    mapreduce: MapReduceMaster = field(default_factory=MapReduceMaster)
    faults: TaskFaults = field(default_factory=TaskFaults)
    #: The Fair Scheduler of this release: ``2.2``; None: as present releases have it.
    hadoop: Literal["2.2"] | None = None
    resource: ResourceName = "memory"
    seed: int = 0
    sample_s: float = 1.0
    time_limit_s: float = 1e7
    record_tasks: bool = False
    #: Record the calls of the scheduler as a decision script (harness.sim.calls). For Hadoop's orders only.
    record_script: bool = False
    #: Record the decisions of MapReduce AMs (``SimResult.masters``) also without a script, for any scheduler.
    record_masters: bool = False
    #: Record the controller's decisions and what it wrote (outside only).
    record_decisions: bool = True
    #: Skip heartbeats that cannot change anything; False only to show that it makes no difference.
    skip_heartbeats: bool = True
    #: Whether to stop a run that can never end (for example, if AMs fill the cluster) before the time limit.
    stop_when_stuck: bool = True


@dataclass(slots=True)
class Progress:
    """Argument of ``on_progress``, which is called some times per second of wall time.

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

    Columns are in the order of ``queues`` (full paths, including parents). Memory is in MiB, times are in seconds.
    Integrals up to the sample's time are in MiB·s (or the unit of ``SimSetup.resource``); they are exact, not sums over
    samples.
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
    counted: NDArray[np.float64]  # accumulated as the policy's ledger settings count it (inside only; otherwise plain)
    due: NDArray[np.float64]  # integral of min(d_i, S_i); 0 for parents
    running: NDArray[np.int64]  # live containers, AMs excluded
    #: As ``due``, with S_i from the leaves' own weights, regardless of the tree; None if both are equal.
    due_flat: NDArray[np.float64] | None = None
    quantum_s: NDArray[np.float64] | None = None  # Q, NaN until a queue's first application; None without a quantum


@dataclass(frozen=True, slots=True)
class Preempted:
    """The work that preemption has killed: the number of containers, and their resources times their lifetimes."""

    containers: int
    memory_mb_s: float
    vcore_s: float


@dataclass(slots=True)
class SimResult:
    """The result of one run. Times in seconds of virtual time; resources in MiB·s and vcore·s.

    ``jobs``: column name -> list or array, one row per job in order of submission: id, name, queue, kind, submitted_s,
    started_s (AM's container), finished_s (NaN: not finished), tasks, failed (bool), attempts_failed, memory_mb_s,
    vcore_s, task_s (mean duration of its finished tasks, NaN: none). ``tasks`` (with ``record_tasks``): job (row in
    ``jobs``), stage (its position among the job's stages, by priority), task, attempt, node (index), granted_ms,
    start_ms, end_ms, outcome (0 finished, 1 failed, 2 killed). ``max_wait_s`` / ``max_wait_at_s``: by leaf, the longest
    time that a leaf with pending containers went without getting one, and when that time ended.
    ``mean_between_ends_s``: by queue (parents too), mean time between two container ends in its subtree. ``writes``:
    (time_s, {queue: weight}) as they took effect (outside only).
    """

    jobs: dict[str, Any]
    samples: Samples
    makespan_s: float
    end_s: float
    finished: bool
    failed_jobs: int
    events: int  # number of container starts and ends
    assignments: int
    heartbeats: int  # heartbeats with an effect
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
    #: With ``record_masters`` or ``record_script``: input and result of the decisions of MapReduce AMs
    #: (harness.sim.calls).
    masters: list[dict[str, int]] | None = None
    #: Why the run, which was stopped, could never have ended; '' if it was not stopped.
    stuck: str = ""
    #: Why a policy's own keys were computed in Python to the end; '' if they were compiled, or were needed too seldom.
    keys_in_python: str = ""
    #: The work that preemption has killed; None where it is off, and for schedulers that do not count it.
    preempted: Preempted | None = None


#: Callback that receives a `Progress` several times per second.
ProgressCallback = Callable[[Progress], None]
