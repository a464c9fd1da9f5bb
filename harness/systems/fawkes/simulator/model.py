"""What is simulated: profiles of MapReduce jobs, MR-clusters and their jobs, the constants of nodes and network."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from harness.systems.fawkes.shares import Weighting

#: core: input and output data; transient-core: output data only; transient: none (section 3.2).
NodeKind = Literal["core", "transient-core", "transient"]
#: What MR-clusters grow with; transient nodes leave by instant, transient-core ones by delayed preemption.
Growth = Literal["transient-core", "transient"]


@dataclass(frozen=True, slots=True)
class Constants:
    """Nodes and network (section 5.1), and the rates at which data move; GB are 10^9 bytes.

    ``replication_gb_s``: one transfer of a node's data to another when it leaves. Transfers run in pairs of nodes, at
    most half of all storage nodes at once, and only into nodes that stay (docs/reference/fawkes.md).
    ``slow_start``: the part of a job's maps that have ended when its reduces may start (Hadoop 1's default is 0.05).
    ``load_gb_s``: loading and saving, a core node. ``wan``: how much longer a transfer between sites takes.
    """

    map_slots: int = 6
    reduce_slots: int = 2
    block_gb: float = 0.128
    replicas: int = 3
    storage_gb: float = 2000.0
    replication_gb_s: float = 0.06
    load_gb_s: float = 0.04
    wan: float = 1.0
    job_setup_s: float = 10.0
    slow_start: float = 1.0
    #: Durations of tasks spread evenly by this part around their mean.
    spread: float = 0.1


@dataclass(frozen=True, slots=True)
class Profile:
    """How one kind of MapReduce job behaves on a fully loaded MR-cluster of core nodes only.

    ``map_s`` a block; a reduce takes ``reduce_s`` and ``reduce_s_gb`` for each GB that it is sent. ``read`` is the part
    of a map that waits for the disks of the core nodes, ``write`` the part of a reduce that waits for the disks that
    take output, ``shuffle`` the part of a reduce that waits for the network. ``shuffled`` and ``output`` are ratios to
    the input data; ``reduces_gb`` is the number of reduces for each GB of input, two at least.
    """

    name: str
    map_s: float
    reduce_s: float = 0.0
    reduce_s_gb: float = 0.0
    read: float = 0.0
    shuffle: float = 0.0
    write: float = 0.0
    shuffled: float = 0.0
    output: float = 0.0
    reduces_gb: float = 0.1

    def maps(self, input_gb: float, constants: Constants) -> int:
        """Return the number of maps for an input size in GB: one for each block, at least 1.

        As in Hadoop, a last block of up to a tenth of a block's size belongs to the block before it.
        """
        return max(1, math.ceil(input_gb / constants.block_gb - 0.1))

    def reduces(self, input_gb: float) -> int:
        """Return the number of reduces for an input size in GB, at least 2."""
        return max(2, math.ceil(input_gb * self.reduces_gb - 1e-9))

    def one_reduce_s(self, input_gb: float) -> float:
        """Seconds of one reduce without contention."""
        return self.reduce_s + self.reduce_s_gb * self.shuffled * input_gb / self.reduces(input_gb)


@dataclass(frozen=True, slots=True)
class MRJob:
    """One MR-job: submitted at ``submit_s``, or when all jobs that ``after`` names (of its MR-cluster) have ended."""

    id: str
    profile: Profile
    input_gb: float
    submit_s: float = 0.0
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterSetup:
    """One MR-cluster: its minimum number of core nodes, when it is requested, its data, its jobs.

    ``submit_s`` of jobs counts from its activation when ``from_activation``. ``fixed``: nodes that it has from the
    beginning besides its core (micro-experiments). ``ready``: the data are there, nothing is loaded.
    """

    name: str
    core: int
    jobs: tuple[MRJob, ...]
    arrival_s: float = 0.0
    data_gb: float = 0.0
    from_activation: bool = False
    fixed: tuple[tuple[NodeKind, int], ...] = ()
    ready: bool = False
    sites: int = 1
    #: The input lies on all nodes that store anything, not on the core alone.
    everywhere: bool = False
    #: At its activation so many transient-core nodes leave, each with so many GB (section 6.4).
    shrink_by: int = 0
    shrink_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Setup:
    """One simulation. ``policy`` None: MR-clusters stay as they are (micro-experiments)."""

    nodes: int
    clusters: tuple[ClusterSetup, ...]
    policy: Weighting | None
    growth: Growth = "transient-core"
    constants: Constants = field(default_factory=Constants)
    sample_s: float = 10.0
    seed: int = 1
    time_limit_s: float = 1e6
    #: Execution time alone on the reference MR-cluster by (profile, input), for slowdowns.
    reference_s: dict[tuple[str, float], float] = field(default_factory=dict)
