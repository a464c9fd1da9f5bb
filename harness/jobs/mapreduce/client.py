"""MapReduce programs one by one on a cluster, submitted through REST as in experiments; their outputs are kept.

What stages a program lies beside its output, in a folder of this machine or in HDFS, and goes with its end. The
containers of a Docker cluster do not see this machine's files: data are copied into the volume that all of them mount.
"""

from __future__ import annotations

import contextlib
import getpass
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from harness.base.errors import CallError, InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.clusters import jars
from harness.clusters.shared import ContainerFolder
from harness.jobs.data.generate import read_manifest
from harness.jobs.data.targets import HdfsTarget, Target
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import Done, ProgramJob, Sizing
from harness.jobs.engines.cluster import Sizes, available_mb, check_memory, on_this_machine
from harness.jobs.mapreduce.catalogue import Application
from harness.jobs.mapreduce.places import ContainerPlace, HdfsPlace, LocalPlace
from harness.jobs.mapreduce.programs import MapReducePrograms, Staged, jobs_of
from harness.jobs.mapreduce.storage import DataSet, exists, open_data, target_of
from harness.jobs.spark.site import ContainerSite, check_limit
from harness.jobs.spec import DataSpec, ProgramSpec
from harness.model.data import data_path
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Request:
    """One run of one application."""

    application: Application
    inputs: tuple[Path | Target, ...]
    output: Path | Target
    queue: str = "default"
    sizes: Sizes = field(default_factory=Sizes)
    settings: Mapping[str, str] = field(default_factory=dict)
    python: str = "python3"
    check: bool = True
    timeout_s: float = 1800.0
    #: More properties of the jobs (``-D``).
    properties: Mapping[str, str] = field(default_factory=dict)


def streaming_jar(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Hadoop Streaming's jar, resolved by Maven the first time. Raises InputError, RunTimedOut."""
    return jars.find_one("hadoop-streaming-", data_path("workloads", "streaming-pom.xml"), progress=progress)


def data_sets(request: Request) -> list[DataSet]:
    """The inputs, each checked for what it is.

    Raises CallError for another number of inputs than the application has, InputError for data that cannot be used.
    """
    wanted = request.application.data
    if len(request.inputs) != len(wanted):
        raise CallError(
            f"{request.application.name} reads {' and '.join(wanted)}, given are {len(request.inputs)} folder(s)",
            where="--input",
            mend="give one for each, in this order",
        )
    return [open_data(target_of(place), kind) for kind, place in zip(wanted, request.inputs, strict=True)]


@dataclass
class Client:
    """Runs MapReduce programs on one cluster. ``shared`` None: its nodes see this machine's files.

    ``stop``: set, what runs ends as when it is interrupted.
    """

    rest: RestClient
    shared: ContainerFolder | None = None
    progress: Callable[[str], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)
    #: What was measured of the last run, however it ended.
    attempts: list[Attempt] = field(default_factory=list)
    zero_ms: int = 0

    def run(self, request: Request, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a job that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        However it ends, nothing of it runs on, and nothing of it stays but the output (in a volume: the data set).
        """
        self.attempts = []
        places = (*request.inputs, request.output)
        if self.shared is not None and not all(isinstance(one, Path) for one in places):
            raise InputError(
                "a Docker cluster's programs read and write folders of this machine, which are copied, not HDFS",
                where=request.application.name,
                mend="give folders",
            )
        jobs, data = program_jobs(request, copied=self.shared is not None)
        output = target_of(request.output)
        if exists(output):
            raise InputError("is there already", where=output.name, mend="give another --output, or remove it")
        free = available_mb(Path("/proc/meminfo").read_text()) if on_this_machine(self.rest) else None
        check_memory(request.sizes, self.rest, free_mb=free)
        tag = f".job-{uuid.uuid4().hex[:12]}"
        programs = self._programs(request, jobs, data, tag)
        began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
        ended: list[AppStatus] = []
        try:
            programs.prepare()
            for job in jobs:
                self.progress(f"{request.application.name}: job {job.step} of {job.steps}")
                app = programs.submit(job.spec.id)
                try:
                    ended.append(self._wait(app, request, began, on_step))
                except BaseException:
                    self.rest.kill_tagged(tag)
                    raise
                finally:
                    with contextlib.suppress(YarnfairError):
                        self.attempts += programs.attempts(job.spec.id)
                if ended[-1].final_status != "SUCCEEDED":
                    raise RunInvalid(_why(programs, job, ended[-1]))
            seconds = time.monotonic() - began
            verdict: Verdict | None = None
            if request.check:
                self.progress("checking the answer")
                verdict = programs.check(jobs[-1].spec.id)
            programs.deliver(jobs[-1].spec.id, request.output)
        finally:
            self.rest.kill_tagged(tag)
            with contextlib.suppress(YarnfairError):
                programs.close()
        return Done(tuple(ended), tuple(self.attempts), seconds, verdict, self.zero_ms)

    def _programs(
        self, request: Request, jobs: list[ProgramJob], data: Mapping[DataSpec, Path | Target], tag: str
    ) -> MapReducePrograms:
        """The request's jobs where its cluster can have them."""
        properties, sizes = dict(request.properties), request.sizes
        place: LocalPlace | HdfsPlace | ContainerPlace
        if self.shared is not None:
            nodes = [node.total.memory_mb for node in self.rest.nodes() if node.state == "RUNNING"]
            most = max(sizes.maps, sizes.reduces) * sizes.task_mb + sizes.am_mb
            check_limit(min(most, max(nodes)), ContainerSite(self.shared).node_limit_mb(), self.rest.http.current)
            place = ContainerPlace(self.shared)
        else:
            if isinstance(request.output, HdfsTarget):
                above = str(PurePosixPath(request.output.folder).parent)
                place = HdfsPlace(replace(request.output, folder=above))
            else:
                assert isinstance(request.output, Path)
                place = LocalPlace(request.output.absolute().parent)
            # The master looks for its job on the default file system alone.
            properties = {"fs.defaultFS": place.file_system, **properties}
        # The user whose name the ResourceManager is asked with: the master looks for its job below it.
        user, jar = getpass.getuser(), streaming_jar(self.progress)
        site = Staged(place, data, jar, request.python, user=user, carries_jar=self.shared is None)
        return MapReducePrograms(self.rest, site, jobs, tag=tag, properties=properties)

    def _wait(self, app: str, request: Request, began: float, on_step: Callable[[list[AppStatus]], None]) -> AppStatus:
        while True:
            with contextlib.suppress(YarnfairError):
                status = self.rest.app(app)
                on_step([status])
                if status.final:
                    return status
            if time.monotonic() - began >= request.timeout_s:
                raise RunTimedOut(
                    f"{request.application.name} had not ended after {request.timeout_s:g} s", mend="raise --timeout"
                )
            if self.stop.wait(_POLL_S):
                raise RunInvalid(f"{request.application.name} was interrupted")


def program_jobs(request: Request, *, copied: bool) -> tuple[list[ProgramJob], dict[DataSpec, Path | Target]]:
    """The program as an experiment has it: its Hadoop jobs, and where its data lies.

    ``copied``: the data goes into a volume, under the name that its manifest gives it. Raises InputError, CallError.
    """
    data: dict[str, DataSpec] = {}
    places: dict[DataSpec, Path | Target] = {}
    for kind, place, found in zip(request.application.data, request.inputs, data_sets(request), strict=True):
        manifest = read_manifest(found.target)
        if manifest is None and copied:
            make = f"yarnfair data generate {kind} --size 10MB --out FOLDER"
            where = found.target.name
            raise InputError("no manifest.json, which says what data it is", where=where, mend=f"make it: {make}")
        spec = DataSpec(kind=kind, size=str(found.size))
        if manifest is not None:
            spec = DataSpec(kind=kind, size=str(manifest.size), seed=manifest.seed)
        data[kind], places[spec] = spec, place
    sizes, name = request.sizes, request.application.name
    program = ProgramSpec(
        application=name,
        input=list(data),
        maps=sizes.maps,
        reduces=sizes.reduces if request.application.reduces else 0,
        settings=dict(request.settings),
    )
    sizing = Sizing(Resource(sizes.am_mb, 1), Resource(sizes.task_mb, 1))
    return jobs_of(program, tuple(data.values()), sizing, request.queue, name), places


def _why(programs: MapReducePrograms, job: ProgramJob, status: AppStatus) -> str:
    """The reason of a failed job: what YARN says, and the failed attempt's log."""
    told = " ".join(status.diagnostics.split())[:300]
    said = f"{job.application} failed; {status.id} {status.final_status}: {told or 'no reason given'}"
    with contextlib.suppress(YarnfairError):
        if why := programs.record(job.spec.id).why:
            return f"{said}; {why}"
    return said
