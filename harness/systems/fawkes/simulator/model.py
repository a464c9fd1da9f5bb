"""The inputs of the simulator: job profiles, MR-clusters and their jobs, constants of nodes and network."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from harness.systems.fawkes.shares import Weighting

#: Data stored by a node. core: input and output; transient-core: only output; transient: nothing (section 3.2).
NodeKind = Literal["core", "transient-core", "transient"]
#: Kind of the nodes by which MR-clusters grow. Transient nodes leave by instant preemption, transient-core ones by
#: delayed preemption.
Growth = Literal["transient-core", "transient"]


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of nodes and network (section 5.1), and data rates; 1 GB is 10^9 bytes.

    ``replication_gb_s`` is the rate at which one node copies its data to another when it leaves. Transfers run between
    pairs of nodes: at most half of all storage nodes send at once, and only nodes that stay receive
    (docs/reference/fawkes.md). ``slow_start`` is the fraction of a job's maps that must have ended before its reduces
    start (0.05 by default in Hadoop 1). ``load_gb_s`` is the rate per core node of loading and saving. ``wan`` sets how
    much longer transfers between sites take: by the factor 1 + wan (1 - 1 / sites).
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
    #: Task durations are uniform within this fraction around their mean.
    spread: float = 0.1


@dataclass(frozen=True, slots=True)
class Profile:
    """The resource use of one kind of MapReduce job on a fully loaded MR-cluster of core nodes only.

    A map takes ``map_s`` per block. A reduce takes ``reduce_s``, plus ``reduce_s_gb`` per GB that it receives. ``read``
    is the fraction of a map that waits for the disks of core nodes. ``write`` is the fraction of a reduce that waits
    for the disks that store output, and ``shuffle`` the fraction that waits for the network. ``shuffled`` and
    ``output`` are ratios to the input size. ``reduces_gb`` is the number of reduces per GB of input; a job has at least
    two.
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
        """Return the number of maps for an input size in GB: one per block, at least 1.

        As in Hadoop, a remainder of at most a tenth of a block is added to the block before it.
        """
        return max(1, math.ceil(input_gb / constants.block_gb - 0.1))

    def reduces(self, input_gb: float) -> int:
        """Return the number of reduces for an input size in GB, at least 2."""
        return max(2, math.ceil(input_gb * self.reduces_gb - 1e-9))

    def one_reduce_s(self, input_gb: float) -> float:
        """Return the duration of one reduce without contention, s."""
        return self.reduce_s + self.reduce_s_gb * self.shuffled * input_gb / self.reduces(input_gb)


@dataclass(frozen=True, slots=True)
class MRJob:
    """A MapReduce job, submitted at ``submit_s`` or when all jobs in ``after`` (of the same MR-cluster) have ended."""

    id: str
    profile: Profile
    input_gb: float
    submit_s: float = 0.0
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterSetup:
    """One MR-cluster of a simulation: its core nodes, request time, data and jobs.

    With ``from_activation`` the ``submit_s`` of its jobs count from its activation. ``fixed`` are further nodes that it
    has from the beginning (micro-experiments). With ``ready`` its data are already there and nothing is loaded.
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
    #: True if the input lies on all nodes that store data, not only on core nodes.
    everywhere: bool = False
    #: At activation, ``shrink_by`` transient-core nodes leave, each with ``shrink_gb`` GB of data (section 6.4).
    shrink_by: int = 0
    shrink_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Setup:
    """The input of one simulation. With ``policy`` None, MR-clusters keep their size (micro-experiments)."""

    nodes: int
    clusters: tuple[ClusterSetup, ...]
    policy: Weighting | None
    growth: Growth = "transient-core"
    constants: Constants = field(default_factory=Constants)
    sample_s: float = 10.0
    seed: int = 1
    time_limit_s: float = 1e6
    #: Execution time alone on the reference MR-cluster by (profile name, input GB), s; slowdowns are relative to it.
    reference_s: dict[tuple[str, float], float] = field(default_factory=dict)
