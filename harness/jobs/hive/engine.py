"""Hive on Tez as an engine of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.base.errors import CallError, InputError
from harness.clusters.shared import LocalFolder
from harness.jobs.data.targets import folder_of
from harness.jobs.engines.base import (
    UNKNOWN,
    Asked,
    Engine,
    Program,
    ProgramClient,
    ProgramCluster,
    ProgramJob,
    Site,
    Sizing,
)
from harness.jobs.engines.cluster import Sizes
from harness.jobs.hive import catalogue
from harness.jobs.hive.client import SIZES, HiveClient, HiveRequest
from harness.jobs.hive.programs import HivePrograms
from harness.jobs.hive.server import BOTH_MB
from harness.jobs.spec import DataSpec, ProgramSpec
from harness.model.jobs import JobSpec, Stage

_LOCAL, _MEND = "Hive's queries run on clusters of this machine's processes", "use --backend local"


class Hive(Engine):
    """TPC-H's queries by Hive."""

    name = "hive"
    groups = catalogue.GROUPS
    beside_mb = BOTH_MB

    def programs(self) -> Mapping[str, Program]:
        return catalogue.programs()

    def settings_of(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        return catalogue.settings_of(catalogue.programs()[name.lower()], given)

    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        self.settings_of(program.application, program.settings)
        if program.maps is None or program.executors is not None:
            raise CallError(f"{program.application} is Hive's", mend="give maps, and no executors")

    def jobs(
        self,
        program: ProgramSpec,
        inputs: tuple[DataSpec, ...],
        sizing: Sizing,
        queue: str,
        identity: str,
        count: Callable[[int], int],
    ) -> list[ProgramJob]:
        demand = program.map_demand.resource() if program.map_demand else sizing.task
        stage, name = Stage("tasks", 1, demand, UNKNOWN), program.type or program.application
        spec = JobSpec(identity, queue, "dag", sizing.am, (stage,), name=name)
        maps, reduces = count(program.maps or 0), count(program.reduces or 1)
        return [ProgramJob(self.name, spec, program, inputs, sizing, maps, reduces, 0, 1, 1, identity)]

    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> HivePrograms:
        if not isinstance(site.shared, LocalFolder):
            raise InputError(_LOCAL, where=jobs[0].spec.id, mend=_MEND)
        folder = site.shared.folder / f"hive-{site.tag}"
        return HivePrograms(site.rest, folder, site.data, jobs, progress=site.progress)

    def request(self, asked: Asked) -> HiveRequest:
        found = catalogue.programs()[asked.program.lower()]
        catalogue.settings_of(found, asked.settings)
        sizes = Sizes(asked.task_mb or SIZES.task_mb, asked.am_mb or SIZES.am_mb, asked.maps, asked.reduces)
        source, output = folder_of(asked.inputs, asked.output, found.name)
        return HiveRequest(
            found, source, output, asked.queue, sizes, asked.settings, asked.check, asked.timeout_s, asked.properties
        )

    def client(self, cluster: ProgramCluster) -> ProgramClient:
        if cluster.shared is not None:
            raise InputError(_LOCAL, where=cluster.rest.http.current, mend=_MEND)
        return HiveClient(cluster.rest, progress=cluster.progress, stop=cluster.stop)
