"""The model: a cluster of map and reduce slots, and MapReduce jobs. `harness.systems.dynamicmr.rules` has the rules.

Times are whole milliseconds. A slot's weight is its amount of the node's resources (tang-thesis section 4.2.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from harness.base.errors import InputError
from harness.systems.dynamicmr.rules import Rules

#: Larger inputs are rejected as mistakes: this engine is for clusters of the size in the thesis.
MAX_NODES, MAX_SLOTS, MAX_TASKS = 10_000, 10_000, 5_000_000


@dataclass(frozen=True, slots=True)
class SlotNode:
    """A tasktracker: its slots, its rack and its speed (1: the reference)."""

    name: str
    map_slots: int
    reduce_slots: int
    rack: str = "/default-rack"
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Shuffle:
    """The network limits for reduces: MB/s into one node and through the whole cluster; 0 means no limit.

    Reduces that fetch share both limits evenly: each gets min(node limit / fetches on its node, cluster limit / all
    fetches).
    """

    node_mb_s: float = 0.0
    cluster_mb_s: float = 0.0

    @property
    def limited(self) -> bool:
        """Whether the network limits the shuffle."""
        return self.node_mb_s > 0 or self.cluster_mb_s > 0


@dataclass(frozen=True, slots=True)
class SlotCluster:
    """The tasktrackers and the settings of the whole cluster.

    heartbeat_ms
        Period of a tasktracker's heartbeats, which are evenly staggered. 0: slots are filled at the instant at which a
        task ends or a job arrives, which is what closed forms assume.
    locality_delay_ms
        Delay scheduling: a job waits this long for a node-local slot, and as long again for a rack-local one.
    rack_factor, remote_factor
        Factor on the time of a map whose block is on another node of the rack, or on another rack.
    """

    nodes: tuple[SlotNode, ...]
    map_weight: Fraction = Fraction(1)
    reduce_weight: Fraction = Fraction(1)
    heartbeat_ms: int = 0
    locality_delay_ms: int = 0
    replicas: int = 3
    rack_factor: float = 1.0
    remote_factor: float = 1.0
    shuffle: Shuffle = field(default_factory=Shuffle)
    #: Whether a job under `containers` holds one container for its application master.
    masters: bool = False

    def units(self) -> tuple[int, int]:
        """Return the weights of a map and of a reduce task as integers, scaled by their common denominator."""
        whole = lcm(self.map_weight.denominator, self.reduce_weight.denominator)
        return int(self.map_weight * whole), int(self.reduce_weight * whole)

    def check(self) -> None:
        """Raise InputError for an invalid cluster."""
        if not self.nodes:
            raise InputError("the cluster has no node", hint="give at least one")
        if len(self.nodes) > MAX_NODES:
            raise InputError(f"{len(self.nodes)} nodes", hint=f"give at most {MAX_NODES}")
        for node in self.nodes:
            for slots in (node.map_slots, node.reduce_slots):
                if not 0 <= slots <= MAX_SLOTS:
                    raise InputError(f"{slots} slots", where=f"node {node.name}", hint=f"give 0 to {MAX_SLOTS}")
            if not 1e-6 <= node.speed <= 1e6:
                raise InputError(f"speed {node.speed}", where=f"node {node.name}", hint="give 1e-6 to 1e6")
        for weight in (self.map_weight, self.reduce_weight):
            if not Fraction(1, 1000) <= weight <= 1000 or weight.denominator > 1000:
                raise InputError(f"a slot's weight is {float(weight):g}", hint="give 0.001 to 1000, to 3 decimals")


@dataclass(frozen=True, slots=True)
class SlotJob:
    """A MapReduce job with the time of each map and each reduce on a node of speed 1, in milliseconds.

    ``shuffle_mb`` is the data that all its reduces fetch together. ``slow_start`` is the fraction of the maps that must
    have ended before reduces start. The job is submitted at ``submit_ms``, or ``think_ms`` after the end of the job
    ``after``.
    """

    id: str
    pool: str
    maps_ms: tuple[int, ...]
    reduces_ms: tuple[int, ...]
    submit_ms: int = 0
    slow_start: float = 0.05
    shuffle_mb: float = 0.0
    name: str = ""
    after: str | None = None
    think_ms: int = 0


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of attempts, drawn with the run's seed: failure at a uniformly drawn point, and straggling."""

    failure: float = 0.0
    max_attempts: int = 4
    straggler: float = 0.0
    straggler_factor: float = 5.0


@dataclass(frozen=True, slots=True)
class SlotRun:
    """The input of one run: cluster, jobs and rules. ``pools`` without jobs have a share too.

    ``sample_ms`` is the period of samples; 0: one sample at each instant at which something starts or ends.
    """

    cluster: SlotCluster
    jobs: tuple[SlotJob, ...]
    rules: Rules
    faults: Faults = field(default_factory=Faults)
    pools: tuple[str, ...] = ()
    seed: int = 0
    sample_ms: int = 1000
    time_limit_ms: int = 10**12

    def check(self) -> None:
        """Raise InputError for an invalid cluster or invalid jobs."""
        self.cluster.check()
        slots = [sum(n.map_slots for n in self.cluster.nodes), sum(n.reduce_slots for n in self.cluster.nodes)]
        seen: set[str] = set()
        tasks = 0
        lends = self.rules.sharing in ("dependent", "independent", "containers")
        for job in self.jobs:
            if job.id in seen:
                raise InputError("two jobs have this name", where=f"job {job.id}", hint="rename one")
            seen.add(job.id)
            tasks += len(job.maps_ms) + len(job.reduces_ms)
            if any(time < 1 for time in (*job.maps_ms, *job.reduces_ms)):
                raise InputError("a task takes no time", where=f"job {job.id}", hint="give at least a millisecond")
            for kind, times, own in (("map", job.maps_ms, slots[0]), ("reduce", job.reduces_ms, slots[1])):
                if times and not own and not (lends and any(slots)):
                    raise InputError(
                        f"no {kind} slot for its {kind}s", where=f"job {job.id}", hint=f"give {kind} slots"
                    )
        if tasks > MAX_TASKS:
            raise InputError(f"{tasks} tasks", hint=f"give at most {MAX_TASKS:,}")


@dataclass(slots=True)
class SlotCounts:
    """Counts of what happened in one run."""

    node_local: int = 0
    rack_local: int = 0
    remote: int = 0
    speculative_maps: int = 0
    speculative_reduces: int = 0
    speculative_won: int = 0
    killed_slow: int = 0
    failed: int = 0
    reclaimed: int = 0
    maps_on_reduce_slots: int = 0
    reduces_on_map_slots: int = 0
    prescheduled: int = 0
    most_maps: int = 0
    most_reduces: int = 0
    starts: int = 0
    ends: int = 0


@dataclass(slots=True)
class SlotJobEnd:
    """The outcome of one job. Times are in ms; -1 means never."""

    id: str
    pool: str
    name: str
    submitted_ms: int
    started_ms: int = -1
    finished_ms: int = -1
    failed: bool = False
    tasks: int = 0
    attempts_failed: int = 0
    task_ms: int = 0  # sum over successful attempts
    tasks_ended: int = 0
    unit_ms: int = 0  # slot weight times holding time, in the cluster's units


@dataclass(slots=True)
class SlotSample:
    """The pools at one instant: running tasks by kind, units held and demanded, and time integrals."""

    time_ms: int
    maps: list[int]
    reduces: list[int]
    held: list[int]  # units
    demand: list[int]  # units, including those held
    accumulated: list[float]  # unit x ms
    due: list[float]
    shuffle_mb_s: float


@dataclass(slots=True)
class SlotResult:
    """The result of one run. The lists in samples are in the order of ``pools``."""

    pools: tuple[str, ...]
    jobs: list[SlotJobEnd]
    samples: list[SlotSample]
    counts: SlotCounts
    makespan_ms: int
    end_ms: int
    finished: bool
    heartbeats: int
    longest_wait_ms: dict[str, int]
    longest_wait_at_ms: dict[str, int]
    shuffle_peak_mb_s: float = 0.0
    shuffle_mb: float = 0.0

    @property
    def failed_jobs(self) -> int:
        """The number of jobs that have failed."""
        return sum(job.failed for job in self.jobs)
