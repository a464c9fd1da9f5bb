"""Spark as an engine of programs."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.base.errors import CallError, InputError
from harness.clusters.shared import ContainerFolder, LocalFolder, SharedFolder
from harness.jobs.data.targets import folder_of
from harness.jobs.engines.attempts import Attempt
from harness.jobs.engines.base import (
    UNKNOWN,
    Asked,
    Done,
    Engine,
    Program,
    ProgramClient,
    ProgramCluster,
    ProgramJob,
    Site,
    Sizing,
)
from harness.jobs.spark import catalogue
from harness.jobs.spark.client import SparkClient, SparkRequest
from harness.jobs.spark.plan import SparkSizes
from harness.jobs.spark.programs import SparkPrograms, sizes_of
from harness.jobs.spark.site import SparkSite, site_of
from harness.jobs.spec import DataSpec, ProgramSpec
from harness.model.jobs import JobSpec, Stage
from harness.yarn.answers import AppStatus


class Spark(Engine):
    """TPC-H's queries by Spark SQL, k-means and ALS by MLlib."""

    name = "spark"
    groups = catalogue.GROUPS

    def programs(self) -> Mapping[str, Program]:
        return catalogue.programs()

    def settings_of(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        return catalogue.settings_of(catalogue.program(name), given)

    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        self.settings_of(program.application, program.settings)
        if program.executors is None:
            raise CallError(f"{program.application} is Spark's", mend="give executors")
        sizes_of(program, sizing, 1)

    def jobs(
        self,
        program: ProgramSpec,
        inputs: tuple[DataSpec, ...],
        sizing: Sizing,
        queue: str,
        identity: str,
        count: Callable[[int], int],
    ) -> list[ProgramJob]:
        asked = program.executors
        assert asked is not None
        executors, demand = count(asked.count), asked.demand.resource()
        spec = JobSpec(
            identity,
            queue,
            "spark",
            sizing.am,
            (Stage("tasks", 1, demand, UNKNOWN),),
            name=program.type or program.application,
            executors=executors,
            executor_demand=demand,
            executor_slots=asked.slots,
        )
        maps, reduces = count(program.maps or 4), count(program.reduces or 2)
        return [ProgramJob(self.name, spec, program, inputs, sizing, maps, reduces, executors, 1, 1, identity)]

    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> SparkPrograms:
        if isinstance(site.shared, LocalFolder):
            site.shared.write({})
        return SparkPrograms(
            site.rest,
            site_of(site.shared, site.python),
            site.data,
            jobs,
            tag=site.tag,
            am_heartbeat_ms=site.am_heartbeat_ms,
            progress=site.progress,
        )

    def request(self, asked: Asked) -> SparkRequest:
        found, default = catalogue.program(asked.program), SparkSizes()
        catalogue.settings_of(found, asked.settings)
        sizes = SparkSizes(
            asked.executors,
            default.executor_mb if asked.executor_mb is None else asked.executor_mb,
            asked.executor_cores,
            default.am_mb if asked.am_mb is None else asked.am_mb,
            asked.maps,
            asked.reduces,
        )
        source, output = folder_of(asked.inputs, asked.output, found.name)
        return SparkRequest(
            found, source, output, asked.queue, sizes, asked.settings, asked.check, asked.timeout_s, asked.properties
        )

    def client(self, cluster: ProgramCluster) -> ProgramClient:
        return _OneByOne(cluster)


class _OneByOne:
    """Each run has a folder of its own, where the nodes see it, for as long as it lasts."""

    def __init__(self, cluster: ProgramCluster) -> None:
        self._cluster = cluster
        self.attempts: list[Attempt] = []
        self.zero_ms = 0

    def run(self, request: SparkRequest, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        self.attempts = []
        with self._site() as site:
            client = SparkClient(self._cluster.rest, site, progress=self._cluster.progress, stop=self._cluster.stop)
            try:
                return client.run(request, on_step)
            finally:
                for submitted in client.submitted:
                    self.zero_ms = submitted.zero_ms
                    with contextlib.suppress(InputError):
                        self.attempts += client.attempts(submitted)

    @contextlib.contextmanager
    def _site(self) -> Iterator[SparkSite]:
        name = f"yarnfair-spark-{uuid.uuid4().hex[:12]}"
        shared: SharedFolder
        if isinstance(self._cluster.shared, ContainerFolder):
            shared = self._cluster.shared.beside(name)
        else:
            shared = LocalFolder(self._cluster.work.absolute() / f".{name}")
        try:
            yield site_of(shared, self._cluster.python)
        finally:
            shared.remove()
