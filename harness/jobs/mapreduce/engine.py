"""MapReduce as an engine of programs: submitted through REST only, in experiments and one by one."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from harness.base.errors import CallError, InputError
from harness.clusters import jars
from harness.clusters.shared import ContainerFolder
from harness.jobs.data.generate import how_to_make, read_manifest
from harness.jobs.data.targets import HdfsTarget, Target, target_of
from harness.jobs.engines.base import Engine, Program, ProgramJob, ProgramRun, Request, Site, Sizing
from harness.jobs.mapreduce.catalogue import APPLICATIONS
from harness.jobs.mapreduce.places import ContainerPlace, HdfsPlace, LocalStore, place_of
from harness.jobs.mapreduce.programs import MapReducePrograms, jobs_of
from harness.jobs.spark.site import check_limit
from harness.model.data import data_path
from harness.traces.spec import ProgramSpec


def streaming_jar(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return Hadoop Streaming's jar, resolved by Maven the first time. Raises InputError, RunTimedOut."""
    return jars.find_one("hadoop-streaming-", data_path("workloads", "streaming-pom.xml"), progress=progress)


class MapReduce(Engine):
    """Purdue's and Facebook's applications."""

    name = "mapreduce"
    uses_hdfs = True

    def programs(self) -> Mapping[str, Program]:
        """Return Purdue's and Facebook's applications by name."""
        return APPLICATIONS

    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        """Check a program's settings, maps and reduces. Raises CallError."""
        found = APPLICATIONS[program.application.lower()]
        found.settings_with(program.settings)
        if program.maps is None or program.executors is not None:
            raise CallError(f"{found.name} is MapReduce's", hint="give maps, and no executors")
        if found.reduces and not program.reduces:
            raise CallError(f"{found.name} needs reduces", hint="say how many")
        if program.reduces and not found.reduces and found.name != "fbgrep":
            raise CallError(f"{found.name} has no reduces", hint="leave them out")

    def jobs(self, run: ProgramRun) -> list[ProgramJob]:
        """Return the jobs of a run."""
        return jobs_of(run)

    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> MapReducePrograms:
        """Return the programs, with the folder in which the cluster finds its files."""
        if site.output is not None:
            return self._load_one(site, site.output, jobs)
        place = place_of(site.shared)
        if isinstance(place, LocalStore) and site.elsewhere:
            place = LocalStore(place.folder, data_as_it_is=False)
        return MapReducePrograms(site, place, jobs, streaming_jar(site.progress))

    def sized(self, request: Request) -> tuple[ProgramSpec, Sizing]:
        """Return the program and its sizing; a program without a reduce phase gets no reduces."""
        program, sizing = super().sized(request)
        if not APPLICATIONS[request.program.lower()].reduces:
            program = program.model_copy(update={"reduces": 0})
        return program, sizing

    def _load_one(self, site: Site, output: Path | Target, jobs: Sequence[ProgramJob]) -> MapReducePrograms:
        """Load a single program.

        Its files are staged beside its output, on the output's file system; in a Docker cluster, in the volume, into
        which its data are copied.
        """
        place: LocalStore | HdfsPlace | ContainerPlace
        if copied := isinstance(site.shared, ContainerFolder):
            place = ContainerPlace(site.shared.beside("yarnfair-jobs"))
            self._check_copied(site, site.shared, jobs[0])
        else:
            if isinstance(output, HdfsTarget):
                place = HdfsPlace(replace(output, folder=str(PurePosixPath(output.folder).parent)))
            else:
                assert isinstance(output, Path)
                place = LocalStore(output.absolute().parent)
            # The AM looks for its job only on the default file system.
            site = replace(site, properties={"fs.defaultFS": place.file_system, **site.properties})
        # The user of requests to the ResourceManager: the AM looks for its job below this user's folder.
        user, jar = getpass.getuser(), streaming_jar(site.progress)
        return MapReducePrograms(site, place, jobs, jar, user=user, carries_jar=not copied)

    def _check_copied(self, site: Site, shared: ContainerFolder, job: ProgramJob) -> None:
        """Refuse data that cannot be copied into a volume, and sizes that exceed the containers in which nodes run."""
        places = (*site.data.values(), site.output)
        if not all(isinstance(one, Path) for one in places):
            raise InputError(
                "programs on a Docker cluster use folders of this machine, copied in and out, not HDFS",
                where=job.application,
                hint="give folders",
            )
        for spec, place in site.data.items():
            if read_manifest(target_of(place)) is None:
                what, where = "no manifest.json, which says what data it is", target_of(place).name
                raise InputError(what, where=where, hint=how_to_make(spec.kind, "FOLDER"))
        nodes = [node.total.memory_mb for node in site.rest.nodes() if node.state == "RUNNING"]
        most = max(job.maps, job.reduces) * job.sizing.task.memory_mb + job.sizing.am.memory_mb
        check_limit(min(most, max(nodes)), shared.node_limit_mb(), site.rest.http.current)
