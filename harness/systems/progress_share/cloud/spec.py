"""Models of the files of ``kind: cloud`` (HotCloud 2011, pools and their cost).

docs/reference/progress-share.md describes the keys.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Strict
from harness.experiments.spec import Seed, Slug

Number = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class InstanceSpec(Strict):
    """An instance type: price, disk, memory and cores."""

    price_hour: Number
    """Dollars a started hour."""
    disk_gb: Number
    """Disk."""
    cores: Count
    """Cores."""
    cu: Number
    """Compute units."""
    memory_gb: Number
    """Memory."""
    gpu: bool = False
    """Whether it has a GPU."""


class QuerySpec(Strict):
    """A production query: its work, the memory of its tasks, and its computing rates."""

    work_cu_h: Number
    """Its work, hours of one compute unit."""
    memory_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """Memory that a task needs."""
    gpu_speed: Number = 1.0
    """How many times as fast a GPU makes it."""
    rates: dict[str, Number] = Field(default_factory=dict)
    """Node type → computing rate, where it is not the type's compute units."""
    deadline_h: Number | None = None
    """By when it has to end, where that is before the driver's deadline."""


class CloudConfiguration(Strict):
    """A configuration: its core nodes and its accelerators."""

    core: dict[str, Count] = Field(min_length=1, max_length=1)
    """Node type → number."""
    accelerators: dict[str, Count] = Field(default_factory=dict, max_length=100)
    """Node type → number."""


class StorageSpec(Strict):
    """What a core pool sized by the driver must store: ``data_gb`` plus incoming data, with ``replicas``.

    Its nodes are of one of ``types``.
    """

    data_gb: Number
    """The data at the beginning of a period."""
    incoming_gb_h: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    """Data that come in every hour."""
    replicas: Annotated[int, Field(ge=1, le=100)] = 3
    """Of each block."""
    types: list[str] = Field(min_length=1, max_length=100)
    """Node types that may hold them."""


class DriverSpec(Strict):
    """The task of the cloud driver: choose accelerators of ``types`` so that the queries end by ``deadline_h``.

    The core pool is either given (``core``) or sized by the driver from ``storage`` and the queries. ``kinds`` limits
    how many types of accelerators it may mix (absent: no limit).
    """

    core: dict[str, Count] | None = Field(None, min_length=1, max_length=1)
    """The core pool, where it is given: node type → number."""
    storage: StorageSpec | None = None
    """What the core pool must hold, where the driver sizes it."""
    types: list[str] = Field(min_length=1, max_length=100)
    """Accelerators that it may take."""
    deadline_h: Number
    """By when all queries have to end."""
    most: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Most accelerators."""
    kinds: Annotated[int, Field(ge=1, le=100)] | None = None
    """How many types of accelerators it may mix; none: any number. Goes with `core`."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.core is None) == (self.storage is None):
            raise ValueError("give the driver either its core pool or what that must store (storage)")
        if self.storage is not None and self.kinds is not None:
            raise ValueError("kinds goes with a core pool that is given")
        return self


class DockerTasks(Strict):
    """A query on containers: ``count`` tasks that run a program of ``workloads/cloud/work.py`` with this ``size``."""

    program: Literal["crypto", "sort"]
    """`crypto`: a chain of hashes; `sort`: numbers written, read, sorted, written (`workloads/cloud/work.py`)."""
    size: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """Its size."""
    count: Count
    """How many."""


class DockerCloud(Strict):
    """How the experiment runs on containers (``--backend docker``).

    ``hour_s`` is the wall-clock length of an hour of prices and deadlines, in seconds. ``cpus_per_cu`` is the CPU limit
    per compute unit, ``mb_per_gb`` the MiB that a NodeManager advertises per GB. ``tasks`` defines the tasks of each
    query. ``waves`` is the number of tasks per core that each node type runs to measure its computing rate for a query.
    ``periods`` is how often the driver decides; from the second time on it uses the history.
    """

    hour_s: Annotated[float, Field(ge=5, le=3600)] = 60.0
    """An hour of prices, periods and deadlines on the wall clock."""
    cpus_per_cu: Annotated[float, Field(gt=0, le=4)]
    """The CPU limit that stands for a compute unit."""
    mb_per_gb: Annotated[float, Field(ge=1, le=1024)] = 256.0
    """The MiB that a NodeManager advertises for a GB."""
    tasks: dict[Slug, DockerTasks]
    """Query → its tasks."""
    waves: Annotated[int, Field(ge=1, le=20)] = 2
    """Tasks a core of each type by which a rate is measured."""
    periods: Annotated[int, Field(ge=1, le=100)] = 2
    """How often the driver decides."""
    time_limit_s: Annotated[float, Field(ge=1, le=86_400)] = 900.0
    """How long queries submitted together may take (exit code 5)."""


class CloudExperiment(Strict):
    """``kind: cloud``: production queries every ``period_h`` hours on core nodes, with or without accelerators."""

    kind: Literal["cloud"]
    """`cloud`."""
    experiment: Slug
    """Its name."""
    description: str = ""
    """A line for the report."""
    instance_types: str | dict[str, InstanceSpec] = "ec2-2011"
    """A table in `workloads/cloud/` (`ec2-2011` is the paper's Table 1), or your own: name → instance type."""
    period_h: Number
    """Hours from one arrival of the queries to the next."""
    queries: dict[Slug, QuerySpec] = Field(min_length=1, max_length=1000)
    """Name → query."""
    configurations: dict[Slug, CloudConfiguration] = Field(min_length=1, max_length=1000)
    """Name → core nodes and accelerators."""
    driver: DriverSpec | None = None
    """What the cloud driver is asked."""
    docker: DockerCloud | None = None
    """How it runs on containers."""
    seed: Seed = 1
    """A number."""

    @model_validator(mode="after")
    def _queries_have_tasks(self) -> Self:
        if self.docker is not None and self.docker.tasks.keys() != self.queries.keys():
            raise ValueError("docker.tasks names other queries than queries")
        return self
