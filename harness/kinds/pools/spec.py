"""The files of ``kind: cloud`` (HotCloud 2011, pools and their cost). The keys: docs/reference/progress-share.md."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Strict
from harness.experiments.spec import Seed, Slug

Number = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class InstanceSpec(Strict):
    price_hour: Number
    disk_gb: Number
    cores: Count
    cu: Number
    memory_gb: Number
    gpu: bool = False


class QuerySpec(Strict):
    work_cu_h: Number
    memory_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    gpu_speed: Number = 1.0
    rates: dict[str, Number] = Field(default_factory=dict)


class CloudConfiguration(Strict):
    core: dict[str, Count] = Field(min_length=1, max_length=1)
    accelerators: dict[str, Count] = Field(default_factory=dict, max_length=100)


class StorageSpec(Strict):
    """What the core pool must hold: ``data_gb`` with its ``replicas``, on nodes of one of ``types``."""

    data_gb: Number
    replicas: Annotated[int, Field(ge=1, le=100)] = 3
    types: list[str] = Field(min_length=1, max_length=100)


class DriverSpec(Strict):
    """What the cloud driver is asked besides: accelerators of ``types`` by ``deadline_h``.

    For this ``core`` pool, or for one that it sizes by the ``storage`` and by the queries. ``kinds``: how many types of
    accelerators it may mix (absent: any number).
    """

    core: dict[str, Count] | None = Field(None, min_length=1, max_length=1)
    storage: StorageSpec | None = None
    types: list[str] = Field(min_length=1, max_length=100)
    deadline_h: Number
    most: Annotated[int, Field(ge=1, le=10_000)] = 100
    kinds: Annotated[int, Field(ge=1, le=100)] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.core is None) == (self.storage is None):
            raise ValueError("give the driver either its core pool or what that must store (storage)")
        if self.storage is not None and self.kinds is not None:
            raise ValueError("kinds goes with a core pool that is given")
        return self


class DockerTasks(Strict):
    """What a query is on containers: ``count`` tasks of a program of ``workloads/cloud/work.py`` of a ``size``."""

    program: Literal["crypto", "sort"]
    size: Annotated[int, Field(ge=1, le=1_000_000_000)]
    count: Count


class DockerCloud(Strict):
    """How the experiment runs on containers (``--backend docker``).

    ``hour_s``: an hour of prices and deadlines on the wall clock. ``cpus_per_cu``: the CPU limit that stands for a
    compute unit, ``mb_per_gb``: the MiB that a NodeManager advertises for a GB. ``tasks`` by query. ``waves``: how many
    tasks a core each node type runs for each query to measure its computing rate. ``periods``: how often the driver
    decides, after the first time by what it has seen.
    """

    hour_s: Annotated[float, Field(ge=5, le=3600)] = 60.0
    cpus_per_cu: Annotated[float, Field(gt=0, le=4)]
    mb_per_gb: Annotated[float, Field(ge=1, le=1024)] = 256.0
    tasks: dict[Slug, DockerTasks]
    waves: Annotated[int, Field(ge=1, le=20)] = 2
    periods: Annotated[int, Field(ge=1, le=100)] = 2
    time_limit_s: Annotated[float, Field(ge=1, le=86_400)] = 900.0


class CloudExperiment(Strict):
    """Production queries every ``period_h`` on core nodes with or without accelerators."""

    kind: Literal["cloud"]
    experiment: Slug
    description: str = ""
    instance_types: str | dict[str, InstanceSpec] = "ec2-2011"
    period_h: Number
    queries: dict[Slug, QuerySpec] = Field(min_length=1, max_length=1000)
    configurations: dict[Slug, CloudConfiguration] = Field(min_length=1, max_length=1000)
    driver: DriverSpec | None = None
    docker: DockerCloud | None = None
    seed: Seed = 1

    @model_validator(mode="after")
    def _queries_have_tasks(self) -> Self:
        if self.docker is not None and self.docker.tasks.keys() != self.queries.keys():
            raise ValueError("docker.tasks names other queries than queries")
        return self
