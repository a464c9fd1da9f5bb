"""MapReduce programs one by one on a Docker cluster, whose containers do not see this machine's files.

The data set is copied into the volume that all of them mount, the job submitted through REST alone (as in experiments:
harness.jobs.mapreduce.programs), the output fetched from there.
"""

from __future__ import annotations

import contextlib
import getpass
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.clusters.shared import ContainerFolder
from harness.jobs.data.generate import read_manifest
from harness.jobs.data.targets import FolderTarget
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import Done, ProgramJob, Sizing
from harness.jobs.engines.cluster import available_mb, check_memory, on_this_machine
from harness.jobs.mapreduce.client import Request, data_sets, streaming_jar
from harness.jobs.mapreduce.places import ContainerPlace
from harness.jobs.mapreduce.programs import MapReducePrograms, Staged, jobs_of
from harness.jobs.spark.site import ContainerSite, check_limit
from harness.jobs.spec import DataSpec, ProgramSpec
from harness.model.resources import Resource
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

_POLL_S = 0.5


@dataclass
class ContainerClient:
    """Runs MapReduce programs on one Docker cluster. ``stop``: set, what runs ends as when it is interrupted."""

    rest: RestClient
    shared: ContainerFolder
    progress: Callable[[str], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)
    #: What was measured of the last run, however it ended.
    attempts: list[Attempt] = field(default_factory=list)
    zero_ms: int = 0

    def run(self, request: Request, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a job that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        However it ends, nothing of it runs on, and nothing of it stays in the volume but the data set.
        """
        self.attempts = []
        if not isinstance(request.output, Path) or not all(isinstance(one, Path) for one in request.inputs):
            raise InputError(
                "a Docker cluster's programs read and write folders of this machine, which are copied, not HDFS",
                where=request.application.name,
                mend="give folders",
            )
        if request.output.exists():
            raise InputError("is there already", where=str(request.output), mend="give another --output, or remove it")
        data_sets(request)
        free = available_mb(Path("/proc/meminfo").read_text()) if on_this_machine(self.rest) else None
        check_memory(request.sizes, self.rest, free_mb=free)
        nodes = [node.total.memory_mb for node in self.rest.nodes() if node.state == "RUNNING"]
        most = max(request.sizes.maps, request.sizes.reduces) * request.sizes.task_mb + request.sizes.am_mb
        check_limit(min(most, max(nodes)), ContainerSite(self.shared).node_limit_mb(), self.rest.http.current)
        jobs, data = _jobs(request)
        tag = f"job-{uuid.uuid4().hex[:12]}"
        # The user whose name the ResourceManager is asked with: the master looks for its job below it.
        site = Staged(
            ContainerPlace(self.shared), data, streaming_jar(self.progress), request.python, user=getpass.getuser()
        )
        programs = MapReducePrograms(self.rest, site, jobs, tag=tag, properties=request.properties)
        began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
        ended: list[AppStatus] = []
        try:
            programs.prepare()
            for job in jobs:
                name = f"{request.application.name}: job {job.step} of {job.steps}"
                self.progress(name)
                app = programs.submit(job.spec.id)
                try:
                    ended.append(self._wait(app, request, began, on_step))
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
            programs.fetch(jobs[-1].spec.id, request.output)
        finally:
            self.rest.kill_tagged(tag)
            with contextlib.suppress(YarnfairError):
                programs.close()
        return Done(tuple(ended), tuple(self.attempts), seconds, verdict, self.zero_ms)

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


def _jobs(request: Request) -> tuple[list[ProgramJob], dict[DataSpec, Path]]:
    """The program as an experiment has it: its Hadoop jobs, and where its data lies. Raises InputError."""
    data: dict[str, DataSpec] = {}
    folders: dict[DataSpec, Path] = {}
    for number, folder in enumerate(request.inputs):
        assert isinstance(folder, Path)
        manifest = read_manifest(FolderTarget(folder))
        if manifest is None:
            make = f"yarnfair data generate {request.application.data[number]} --size 10MB --out FOLDER"
            raise InputError("no manifest.json, which says what data it is", where=str(folder), mend=f"make it: {make}")
        spec = DataSpec(kind=manifest.kind, size=str(manifest.size), seed=manifest.seed)
        data[str(number)], folders[spec] = spec, folder
    sizes, name = request.sizes, request.application.name
    program = ProgramSpec(
        application=name,
        input=list(data),
        maps=sizes.maps,
        reduces=sizes.reduces if request.application.reduces else 0,
        settings=dict(request.settings),
    )
    sizing = Sizing(Resource(sizes.am_mb, 1), Resource(sizes.task_mb, 1))
    return jobs_of(program, tuple(data.values()), sizing, request.queue, name), folders


def _why(programs: MapReducePrograms, job: ProgramJob, status: AppStatus) -> str:
    """The reason of a failed job: what YARN says, and the failed attempt's log."""
    told = " ".join(status.diagnostics.split())[:300]
    said = f"{job.application} failed; {status.id} {status.final_status}: {told or 'no reason given'}"
    with contextlib.suppress(YarnfairError):
        if why := programs.record(job.spec.id).why:
            return f"{said}; {why}"
    return said
