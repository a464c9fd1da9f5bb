"""Spark programs of a run: submitted by harness.jobs.spark's client, their records and times in a run's terms."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.jobs.applications.answers import Verdict
from harness.jobs.applications.history import Attempt
from harness.jobs.applications.plan import ProgramJob
from harness.jobs.replay import JobRecord, TaskRecord
from harness.jobs.spark import catalogue
from harness.jobs.spark.client import SparkClient, SparkRequest, Submitted, engine_document
from harness.jobs.spark.plan import SparkSizes
from harness.jobs.spark.site import SparkSite, read_input
from harness.jobs.spec import DataSpec, ProgramSpec, ProgramsWorkload
from harness.model.errors import RunInvalid
from harness.model.jobs import Duration, JobSpec, Stage
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: What the driver does between its stages, as a stage of one task: the executors wait meanwhile.
DRIVER = "driver"


def sizes_of(workload: ProgramsWorkload, program: ProgramSpec, executors: int) -> SparkSizes:
    """What a program asks for. Raises CallError for containers that are too small."""
    assert program.executors is not None
    demand = program.executors.demand
    return SparkSizes(
        executors=executors,
        executor_mb=demand.memory_mb,
        executor_cores=demand.vcores,
        am_mb=workload.am.memory_mb,
        read_tasks=program.maps or 4,
        shuffle_tasks=program.reduces or 2,
    )


class SparkPrograms:
    """Submits Spark programs to one ResourceManager. ``data``: folders of this machine; ``tag`` marks applications."""

    def __init__(
        self,
        rest: RestClient,
        site: SparkSite,
        data: Mapping[DataSpec, Path],
        jobs: Sequence[ProgramJob],
        *,
        tag: str,
        am_heartbeat_ms: int = 1000,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.client = SparkClient(rest, site, tag=tag, progress=progress)
        self.site, self.data, self._progress = site, data, progress
        self.jobs = {job.spec.id: job for job in jobs}
        self._heartbeat_ms = am_heartbeat_ms
        self._submitted: dict[str, Submitted] = {}
        self._attempts: dict[str, list[Attempt]] = {}
        # Answers are not written anywhere but there, and only when they are checked.
        self._work = tempfile.TemporaryDirectory(prefix="yarnfair-spark-")

    def close(self) -> None:
        self._work.cleanup()

    def prepare(self) -> None:
        """Puts Spark and the data where the nodes see them, before anything counts. Raises InputError, RunTimedOut."""
        self.site.home(self._progress)
        for job in self.jobs.values():
            program = catalogue.program(job.application)
            self.site.data(read_input(program, self.data[job.inputs[0]]), self._progress)
            self.client.check_room(sizes_of(job.workload, job.program, job.executors))

    def document(self) -> dict[str, Any]:
        """Version and settings of the engine, for ``run.json``."""
        return {"engine": "Spark", "python": self.site.python, **engine_document(list(self._submitted.values()))}

    def submit(self, job_id: str) -> str:
        """Submits a job (again, if it was before); the application's id."""
        job = self.jobs[job_id]
        sizes = replace(
            sizes_of(job.workload, job.program, job.executors), read_tasks=job.maps, shuffle_tasks=job.reduces
        )
        request = SparkRequest(
            catalogue.program(job.application),
            self.data[job.inputs[0]],
            Path(self._work.name) / f"{job_id.replace('/', '_')}-{len(self._submitted)}",
            job.spec.queue,
            sizes,
            job.program.settings,
            properties={"spark.yarn.scheduler.heartbeat.interval-ms": str(self._heartbeat_ms)},
        )
        submitted = self._submitted[job_id] = self.client.submit(request)
        return submitted.app

    def record(self, job_id: str) -> JobRecord:
        """What the driver has logged so far of its tasks. Raises InputError."""
        submitted = self._submitted[job_id]
        attempts = self._attempts[job_id] = self.client.attempts(submitted)
        return record_of(attempts)

    def why(self, job_id: str, status: AppStatus) -> str:
        """Why a job failed, with its log's last lines."""
        return self.client.why(self._submitted[job_id], status)

    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """A job as it ran: stages in their order, with what the driver took before, between and after them."""
        spec = self.jobs[job_id].spec
        stages = stages_of(self._attempts.get(job_id, []), spec, status)
        return replace(spec, stages=stages) if stages else spec

    def check(self, job_id: str, status: AppStatus) -> Verdict | None:
        """Whether the answer is right. Raises InputError, CallError."""
        try:
            return self.client.collect(self._submitted[job_id], status).verdict
        except RunInvalid as error:
            return Verdict(0, error.what)


def _stage_of(attempt: Attempt) -> tuple[str, int]:
    """(stage, number of the task) of a task's name, ``stage_0003_0_task_000012``."""
    stage, _, number = attempt.task.rpartition("_task_")
    return stage, int(number)


def record_of(attempts: Sequence[Attempt]) -> JobRecord:
    """The tasks as a run's tables have them: stages numbered in their order, from 1 (`stages_of` has the driver first).

    A task runs in an executor's container, which is there before: it was asked for, granted and launched when it began.
    """
    tasks = [one for one in attempts if one.kind == "task"]
    order = {name: at for at, name in enumerate(sorted({_stage_of(one)[0] for one in tasks}))}
    last_ms = max((max(one.started_ms, one.ended_ms) for one in attempts), default=0)
    rows = []
    for one in tasks:
        name, number = _stage_of(one)
        started, ended = one.started_ms, one.ended_ms or last_ms
        outcome = one.outcome if one.outcome != "unknown" else "killed"
        attempt = int(one.attempt.rpartition("_")[2])
        rows.append(
            TaskRecord(
                2 * order[name] + 1,
                number,
                attempt,
                one.container or "-",
                one.node or "-",
                *(started, started, started, started, started),
                *(ended, ended),
                outcome,
            )
        )
    first_ms = min((one.started_ms for one in attempts), default=0)
    why = next((one.error for one in tasks if one.outcome == "failed"), "")
    # The driver does not say when it first called the RM: `submitted_ms` is the first executor's registration.
    return JobRecord(submitted_ms=first_ms, ended_ms=last_ms, tasks=tuple(rows), why=why)


def stages_of(attempts: Sequence[Attempt], spec: JobSpec, status: AppStatus | None) -> tuple[Stage, ...]:
    """The stages with each task's time, one after the other, and between them the driver as a stage of one task.

    The first of these is from the first executor on, the last one until the application ended.
    """
    tasks: dict[str, dict[int, Attempt]] = defaultdict(dict)
    for one in attempts:
        if one.kind == "task":
            name, number = _stage_of(one)
            if one.outcome == "finished" or number not in tasks[name]:
                tasks[name][number] = one
    if not tasks:
        return ()
    stages: list[Stage] = []
    now = min(one.started_ms for one in attempts)

    def add(name: str, seconds: Sequence[float]) -> None:
        after = (stages[-1].name,) if stages else ()
        times = tuple(max(value, 0.001) for value in seconds)
        stages.append(Stage(name, len(times), spec.executor_demand, Duration("listed", values_s=times), after))

    for at, (name, own) in enumerate(sorted(tasks.items())):
        began = min(one.started_ms for one in own.values())
        add(f"{DRIVER} {at}", [(began - now) / 1000.0])
        # What never ended was cut with its job: a moment.
        add(name, [max(own[number].ended_ms - own[number].started_ms, 1) / 1000.0 for number in sorted(own)])
        now = max(now, max(max(one.started_ms, one.ended_ms) for one in own.values()))
    if status is not None and status.finished_ms > now:
        add(f"{DRIVER} {len(tasks)}", [(status.finished_ms - now) / 1000.0])
    return tuple(stages)
