"""Runs single programs on an existing cluster, as an experiment with one queue.

The cluster's queues and policy are not changed. A run's files are in a folder of its own, which the nodes can see and
which is removed at the end; only the output stays.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.documents import YamlDocument
from harness.base.errors import CallError, InputError, RunTimedOut, YarnfairError
from harness.clusters.shared import ContainerFolder, LocalFolder, SharedFolder
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.curves import JobRun
from harness.experiments.real.programs import NO_TOKENS, ProgramLoad, Programs, program_jobs
from harness.experiments.real.run import RealRun
from harness.experiments.real.start import client_of
from harness.experiments.resolve import LoadedExperiment, load_experiment, variants_of
from harness.jobs.data.generate import read_manifest
from harness.jobs.data.targets import Target, target_of
from harness.jobs.engines import engine_of, find
from harness.jobs.engines.attempts import Attempt, Verdict, summary
from harness.jobs.engines.base import Request
from harness.results.store import RunDirectory
from harness.traces.spec import DataSpec
from harness.yarn.answers import AppStatus
from harness.yarn.errors import Refused

_OWN_CLIENT = "use the engine's own client there; `run --rm` replays tasks there"


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one program.

    Parameters
    ----------
    apps
        Its applications in the order of their submission.
    attempts
        Its task attempts.
    seconds
        Time from its submission to its end.
    verdict
        Whether the answer is correct; None: not checked.
    why
        The reason of a failure, with the last lines of the log.
    """

    apps: tuple[AppStatus, ...]
    attempts: tuple[Attempt, ...]
    seconds: float
    verdict: Verdict | None
    why: str | None = None


def check_request(request: Request) -> None:
    """Raise CallError for a request that no cluster can run: invalid program, settings, sizes or locations."""
    own, one = engine_of(request.program), find(request.program)
    if len(request.inputs) != len(one.data):
        raise CallError(
            f"{one.name} reads {' and '.join(one.data)}, given are {len(request.inputs)} folder(s)",
            where="--input",
            hint="give one for each, in this order",
        )
    for place, option in (*((place, "--input") for place in request.inputs), (request.output, "--output")):
        if not own.uses_hdfs and not isinstance(place, Path):
            what = f"{one.name} reads and writes folders of this machine, not HDFS"
            raise CallError(what, where=option, hint="give a folder")
    own.check(*own.sized(request))


def experiment_of(requests: Sequence[Request]) -> tuple[LoadedExperiment, dict[DataSpec, Path | Target]]:
    """Return programs of one engine as an experiment that runs them one after another, and the locations of their data.

    Raises InputError or CallError.
    """
    first, programs, data = requests[0], [], dict[DataSpec, Path | Target]()
    for request in requests:
        program, sizing = engine_of(request.program).sized(request)
        programs.append(program.model_dump(exclude_none=True))
    for kind, place in zip(find(first.program).data, first.inputs, strict=True):
        manifest = read_manifest(target_of(place))
        # Data without a manifest is read as it is: its requested size is unknown.
        size, seed = ("1", 0) if manifest is None else (str(manifest.size), manifest.seed)
        data[DataSpec(kind=kind, size=size, seed=seed)] = place
    workload = {
        "kind": "programs",
        "am": {"memory_mb": sizing.am.memory_mb, "vcores": sizing.am.vcores},
        "task": {"memory_mb": sizing.task.memory_mb, "vcores": sizing.task.vcores},
        "data": {spec.kind: spec.model_dump() for spec in data},
        "submission": {"think_s": 0.0},
        "programs": programs,
        **({} if first.check else {"answers": "leave"}),
    }
    path = first.queue.removeprefix("root.")
    queues: Any = None
    for name in reversed(path.split(".")):
        queues = {name: None if queues is None else {"children": queues}}
    document = {
        "experiment": "job",
        # Nodes of any size, because the engines check the existing nodes.
        "cluster": {"nodes": [{"memory_mb": 2**40, "vcores": 2**20}]},
        "queues": queues,
        "workloads": {path: {"inline": workload}},
        "policies": ["fair"],
        "limits": {"time_limit_s": first.timeout_s},
    }
    return load_experiment("job", YamlDocument("job", document, {})), data


class ProgramRunner:
    """Runs programs on one cluster, one call after the other.

    ``cluster.shared``: a volume of containers, or a folder below which a run stores what it needs.
    """

    def __init__(self, cluster: RealCluster, progress: Callable[[str], None] = lambda _: None) -> None:
        self._cluster, self._progress = cluster, progress
        #: The measurements of the last run, however it ended, and its start.
        self.attempts: list[Attempt] = []
        self.zero_ms = 0

    def run(self, *requests: Request, on_step: Callable[[list[AppStatus]], None] = lambda _: None) -> list[Done]:
        """Run programs of one engine one after another on the same data and queue, and check their answers.

        At the end, also after an error, nothing continues to run and only the outputs stay. Raises RunTimedOut,
        InputError or CallError.
        """
        self.attempts = []
        for request in requests:
            check_request(request)
            if (output := target_of(request.output)).exists():
                raise InputError("is there already", where=output.name, hint="give another --output, or remove it")
        experiment, data = experiment_of(requests)
        with client_of(self._cluster) as client:
            try:
                client.rest.info()
            except Refused as error:
                if error.status == 401:
                    raise InputError(
                        f"programs {NO_TOKENS}", where=client.rest.http.current, hint=_OWN_CLIENT
                    ) from None
                raise
            engine_of(requests[0].program).check_room(client.rest, program_jobs(experiment, 1)[0])
        tag = f".job-{uuid.uuid4().hex[:12]}"
        (variant,) = variants_of(experiment)
        with self._shared(tag) as shared, tempfile.TemporaryDirectory(prefix="yarnfair-job-") as work:
            cluster = replace(self._cluster, shared=shared)
            programs = Programs(experiment, cluster, data, self._progress, requests)
            directory = RunDirectory(Path(work), experiment.described())
            with RealRun(experiment, variant, directory, cluster, programs, tag=tag) as run:
                try:
                    outcome = run.run(lambda _: on_step([job.status for job in run.jobs if job.status is not None]))
                finally:
                    self.zero_ms = run.zero_ms
                    measured = {job.spec.id: _attempts(job, run.load) for job in run.jobs}
                    self.attempts = [attempt for found in measured.values() for attempt in found]
                if outcome.exit_code == 5:
                    raise RunTimedOut(outcome.why or "", hint="raise --timeout")
                assert run.load is not None
                return [_done(run.jobs, run.load, request, measured) for request in requests]

    @contextlib.contextmanager
    def _shared(self, tag: str) -> Iterator[SharedFolder]:
        """Provide a folder for the run that the nodes see, for the duration of the context."""
        above, shared = self._cluster.shared, None  # type: SharedFolder, SharedFolder | None
        if isinstance(above, ContainerFolder):
            shared = above.beside(f"yarnfair-{tag.removeprefix('.')}")
        else:
            assert isinstance(above, LocalFolder)
            shared = LocalFolder(above.folder / tag)
        try:
            yield shared
        finally:
            shared.remove()


def _attempts(job: JobRun, load: ProgramLoad | None) -> list[Attempt]:
    # A job whose records cannot be read has no attempts to show, but its run is still valid.
    with contextlib.suppress(YarnfairError):
        return load.of(job.spec.id).attempts(job.spec.id) if load is not None and job.tries else []
    return []


def _done(
    jobs: Sequence[JobRun], load: ProgramLoad, request: Request, measured: Mapping[str, Sequence[Attempt]]
) -> Done:
    """Return the result of a program."""
    own = [job for job in jobs if load.by_id[job.spec.id].application == request.program.lower()]
    verdict = load.verdicts.get(own[-1].spec.id)
    failed = next((job for job in own if job.failed and (verdict is None or verdict.wrong is None)), None)
    return Done(
        tuple(job.status for job in own if job.status is not None),
        tuple(attempt for job in own for attempt in measured[job.spec.id]),
        own[-1].finished_s - own[0].submitted_s,
        verdict,
        None if failed is None else failed.record.why or f"{request.program} failed",
    )


def document(request: Request, done: Done) -> dict[str, Any]:
    """Return the document that ``--json`` prints."""
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
