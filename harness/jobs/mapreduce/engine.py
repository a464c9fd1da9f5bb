"""MapReduce as an engine of programs: submitted through REST alone, in experiments and one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.base.errors import CallError
from harness.clusters.shared import ContainerFolder
from harness.jobs.engines.base import (
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
from harness.jobs.mapreduce.catalogue import APPLICATIONS, settings_of
from harness.jobs.mapreduce.client import Client, Request, streaming_jar
from harness.jobs.mapreduce.places import LocalPlace, place_of
from harness.jobs.mapreduce.programs import MapReducePrograms, Staged, jobs_of
from harness.jobs.spec import DataSpec, ProgramSpec


class MapReduce(Engine):
    """Purdue's and Facebook's applications."""

    name = "mapreduce"

    def programs(self) -> Mapping[str, Program]:
        return APPLICATIONS

    def settings_of(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        return settings_of(APPLICATIONS[name.lower()], given)

    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        found = APPLICATIONS[program.application.lower()]
        settings_of(found, program.settings)
        if program.maps is None or program.executors is not None:
            raise CallError(f"{found.name} is MapReduce's", mend="give maps, and no executors")
        if found.reduces and not program.reduces:
            raise CallError(f"{found.name} needs reduces", mend="say how many")
        if program.reduces and not found.reduces and found.name != "fbgrep":
            raise CallError(f"{found.name} has no reduces", mend="leave them out")

    def jobs(
        self,
        program: ProgramSpec,
        inputs: tuple[DataSpec, ...],
        sizing: Sizing,
        queue: str,
        identity: str,
        count: Callable[[int], int],
    ) -> list[ProgramJob]:
        return jobs_of(program, inputs, sizing, queue, identity, count)

    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> MapReducePrograms:
        place = place_of(site.shared)
        if isinstance(place, LocalPlace) and site.elsewhere:
            place = LocalPlace(place.folder, data_as_it_is=False)
        staged = Staged(
            place, site.data, streaming_jar(site.progress), site.python, am_heartbeat_ms=site.am_heartbeat_ms
        )
        return MapReducePrograms(site.rest, staged, jobs, tag=site.tag)

    def request(self, asked: Asked) -> Request:
        found, default = APPLICATIONS[asked.program.lower()], Sizes()
        settings_of(found, asked.settings)
        sizes = Sizes(
            default.task_mb if asked.task_mb is None else asked.task_mb,
            default.am_mb if asked.am_mb is None else asked.am_mb,
            asked.maps,
            asked.reduces,
        )
        return Request(
            found,
            asked.inputs,
            asked.output,
            asked.queue,
            sizes,
            asked.settings,
            asked.python,
            asked.check,
            asked.timeout_s,
            asked.properties,
        )

    def client(self, cluster: ProgramCluster) -> ProgramClient:
        shared = cluster.shared
        assert shared is None or isinstance(shared, ContainerFolder)
        folder = None if shared is None else shared.beside("yarnfair-jobs")
        return Client(cluster.rest, folder, cluster.progress, cluster.stop)
