"""One program by itself on a real cluster, of whichever engine: to its end, measured, checked, delivered.

Everything that a run needs lies in a folder of its own where the nodes see it, and goes with its end.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, RunInvalid, RunTimedOut, YarnfairError
from harness.clusters.shared import ContainerFolder, LocalFolder, SharedFolder
from harness.jobs.data.generate import read_manifest
from harness.jobs.data.targets import Target, target_of
from harness.jobs.engines import engine_of, find
from harness.jobs.engines.attempts import Attempt, Verdict, summary
from harness.jobs.engines.base import Done, EnginePrograms, ProgramCluster, ProgramJob, Request, Site
from harness.jobs.spec import DataSpec
from harness.yarn.answers import AppStatus

_POLL_S = 0.5


def check_request(request: Request) -> None:
    """Raises CallError for what cannot be run, whichever the cluster: a program, settings, sizes, places."""
    own, one = engine_of(request.program), find(request.program)
    if len(request.inputs) != len(one.data):
        raise CallError(
            f"{one.name} reads {' and '.join(one.data)}, given are {len(request.inputs)} folder(s)",
            where="--input",
            mend="give one for each, in this order",
        )
    for place, option in (*((place, "--input") for place in request.inputs), (request.output, "--output")):
        if not own.uses_hdfs and not isinstance(place, Path):
            raise CallError(f"{one.name} reads and writes folders of this machine, not HDFS", where=option)
    own.check(*own.sized(request))


def jobs_of(request: Request) -> tuple[list[ProgramJob], dict[DataSpec, Path | Target]]:
    """The program as an experiment has it: its jobs, and where its data lies. Raises InputError, CallError."""
    own, one = engine_of(request.program), find(request.program)
    data: dict[DataSpec, Path | Target] = {}
    for kind, place in zip(one.data, request.inputs, strict=True):
        manifest = read_manifest(target_of(place))
        # What has no manifest is read as it is: nobody knows how much was asked for.
        size, seed = ("0", 0) if manifest is None else (str(manifest.size), manifest.seed)
        data[DataSpec(kind=kind, size=size, seed=seed)] = place
    program, sizing = own.sized(request)
    return own.jobs(program, tuple(data), sizing, request.queue, one.name, lambda number: number), data


class ProgramRunner:
    """Runs programs of any engine on one cluster, one after the other."""

    def __init__(self, cluster: ProgramCluster) -> None:
        self._cluster = cluster
        #: What was measured of the last run, however it ended, and when its first job was submitted.
        self.attempts: list[Attempt] = []
        self.zero_ms = 0

    def run(self, request: Request, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> Done:
        """To its end, checked.

        Raises RunInvalid for a job that failed (why, with its log's last lines), RunTimedOut, InputError, CallError.
        However it ends, nothing of it runs on, and nothing of it stays but the output (in a volume: what was copied).
        """
        self.attempts, cluster, end = [], self._cluster, time.monotonic() + request.timeout_s
        check_request(request)
        jobs, data = jobs_of(request)
        output = target_of(request.output)
        if output.exists():
            raise InputError("is there already", where=output.name, mend="give another --output, or remove it")
        own, name = engine_of(request.program), jobs[0].application
        with self._site(request, data) as site:
            programs = own.load(site, jobs)
            own.check_room(cluster.rest, jobs[0])
            try:
                programs.prepare()
                began, self.zero_ms = time.monotonic(), time.time_ns() // 1_000_000
                ended: list[AppStatus] = []
                for job in jobs:
                    cluster.progress(f"{name}: job {job.step} of {job.steps}")
                    ended.append(self._follow(programs, job, site.tag, request, end, on_step))
                seconds = time.monotonic() - began
                verdict: Verdict | None = None
                if request.check:
                    cluster.progress(f"{name}: checking the answer")
                    verdict = programs.check(jobs[-1].spec.id, ended[-1])
                programs.deliver(jobs[-1].spec.id, request.output)
            finally:
                cluster.rest.kill_tagged(site.tag)
                with contextlib.suppress(YarnfairError):
                    programs.close()
        return Done(tuple(ended), tuple(self.attempts), seconds, verdict, self.zero_ms)

    @contextlib.contextmanager
    def _site(self, request: Request, data: Mapping[DataSpec, Path | Target]) -> Iterator[Site]:
        """The cluster with a folder of the run's own, as long as the context."""
        cluster, tag = self._cluster, f".job-{uuid.uuid4().hex[:12]}"
        shared: SharedFolder
        if isinstance(cluster.shared, ContainerFolder):
            shared = cluster.shared.beside(f"yarnfair-{tag.removeprefix('.')}")
        else:
            shared = LocalFolder(cluster.work.absolute() / tag)
        try:
            yield Site(cluster.rest, shared, cluster.python, data, tag, request=request, progress=cluster.progress)
        finally:
            shared.remove()

    def _follow(
        self,
        programs: EnginePrograms,
        job: ProgramJob,
        tag: str,
        request: Request,
        end: float,
        on_step: Callable[[list[AppStatus]], None],
    ) -> AppStatus:
        """Submits a job and waits until it has ended well."""
        identity = job.spec.id
        app = programs.submit(identity)
        try:
            status = self._wait(programs, job, app, request, end, on_step)
        except BaseException:
            programs.kill()
            self._cluster.rest.kill_tagged(tag)
            raise
        finally:
            with contextlib.suppress(YarnfairError):
                self.attempts += programs.attempts(identity)
        if status.final_status != "SUCCEEDED":
            raise RunInvalid(programs.why(identity, status))
        return status

    def _wait(
        self,
        programs: EnginePrograms,
        job: ProgramJob,
        app: str | None,
        request: Request,
        end: float,
        on_step: Callable[[list[AppStatus]], None],
    ) -> AppStatus:
        while True:
            try:
                app = app or programs.taken(job.spec.id)
                if app is not None:
                    status = self._cluster.rest.app(app)
                    on_step([status])
                    if status.final:
                        return status
            except RunInvalid:
                raise
            except YarnfairError:
                pass  # An answer that fails is no end of a run: its time is.
            if time.monotonic() >= end:
                raise RunTimedOut(
                    f"{job.application} had not ended after {request.timeout_s:g} s", where=app, mend="raise --timeout"
                )
            time.sleep(_POLL_S)


def document(request: Request, done: Done) -> dict[str, Any]:
    """The result as ``--json`` prints it."""
    output, program = request.output, find(request.program)
    return {
        "application": program.name,
        "suite": program.suite,
        "output": str(output) if isinstance(output, Path) else output.name,
        "seconds": done.seconds,
        "applications": [
            {
                "id": app.id,
                "queue": app.queue,
                "final_status": app.final_status,
                "elapsed_s": (app.finished_ms - app.started_ms) / 1000.0,
                "memory_mb_s": app.memory_seconds,
                "vcore_s": app.vcore_seconds,
            }
            for app in done.apps
        ],
        "tasks": summary(done.attempts),
        "answer": None
        if done.verdict is None
        else {"right": done.verdict.wrong is None, "records": done.verdict.records, "wrong": done.verdict.wrong},
    }
