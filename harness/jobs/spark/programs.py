"""Spark programs of a run: submitted by harness.jobs.spark's client, their records and times in a run's terms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.jobs.data.targets import Target
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import EnginePrograms, ProgramJob, Sizing, write_answer
from harness.jobs.replay import JobRecord, TaskRecord
from harness.jobs.spark import catalogue
from harness.jobs.spark.answers import check
from harness.jobs.spark.client import SparkClient, Submitted, engine_document
from harness.jobs.spark.events import asked_ms, read_events
from harness.jobs.spark.plan import SparkSizes
from harness.jobs.spark.site import SparkSite, read_input
from harness.jobs.spec import DataSpec, ProgramSpec
from harness.model.jobs import Duration, JobSpec, Stage
from harness.yarn.answers import AppStatus
from harness.yarn.rest import RestClient

#: What the driver does between its stages, as a stage of one task: the executors wait meanwhile.
DRIVER = "driver"


def sizes_of(program: ProgramSpec, sizing: Sizing, executors: int) -> SparkSizes:
    """What a program asks for. Raises CallError for containers that are too small."""
    assert program.executors is not None
    demand = program.executors.demand
    return SparkSizes(
        executors=executors,
        executor_mb=demand.memory_mb,
        executor_cores=demand.vcores,
        am_mb=sizing.am.memory_mb,
        read_tasks=program.maps or 4,
        shuffle_tasks=program.reduces or 2,
    )


class SparkPrograms(EnginePrograms):
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
        properties: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.client = SparkClient(rest, site, tag=tag, progress=progress)
        self.site, self.data, self._progress = site, data, progress
        self.jobs = {job.spec.id: job for job in jobs}
        self._heartbeat_ms = am_heartbeat_ms
        self._submitted: dict[str, Submitted] = {}
        #: What was read of a job: its attempts, and when its driver asked for executors.
        self._read: dict[str, tuple[list[Attempt], int]] = {}
        self._properties = properties or {}

    def close(self) -> None:
        """Nothing: what a run has put into the cluster's folder goes with that."""

    def prepare(self) -> None:
        """Puts Spark and the data where the nodes see them, before anything counts. Raises InputError, RunTimedOut."""
        self.site.home(self._progress)
        for job in self.jobs.values():
            program = catalogue.program(job.application)
            self.site.data(read_input(program, self.data[job.inputs[0]]), self._progress)
            self.client.check_room(sizes_of(job.program, job.sizing, job.executors))

    def document(self) -> dict[str, Any]:
        """Version and settings of the engine, for ``run.json``."""
        return {"engine": "Spark", "python": self.site.python, **engine_document(list(self._submitted.values()))}

    def submit(self, job_id: str) -> str:
        """Submits a job (again, if it was before); the application's id."""
        job = self.jobs[job_id]
        sizes = replace(
            sizes_of(job.program, job.sizing, job.executors), read_tasks=job.maps, shuffle_tasks=job.reduces
        )
        heartbeat = {"spark.yarn.scheduler.heartbeat.interval-ms": str(self._heartbeat_ms)}
        submitted = self._submitted[job_id] = self.client.submit(
            catalogue.program(job.application),
            self.data[job.inputs[0]],
            sizes,
            queue=job.spec.queue,
            settings=job.program.settings,
            properties={**heartbeat, **self._properties},
        )
        return submitted.app

    def attempts(self, job_id: str) -> list[Attempt]:
        """What was measured so far: executors and tasks, of a job that was killed or failed too."""
        return read_events(self.client.events(self._submitted[job_id]))

    def why(self, job_id: str, status: AppStatus) -> str:
        """The reason of a job that failed: what YARN says, and its log's last lines."""
        return self.client.why(self._submitted[job_id], status)

    def record(self, job_id: str, status: AppStatus | None = None) -> JobRecord:
        """What the driver has logged so far of its tasks. Raises InputError."""
        submitted = self._submitted[job_id]
        lines = self.client.events(submitted)
        attempts, asked = read_events(lines), asked_ms(lines)
        self._read[job_id] = attempts, asked
        return record_of(attempts, asked)

    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """A job as it ran: stages in their order, with what the driver took before, between and after them."""
        spec = self.jobs[job_id].spec
        attempts, asked = self._read.get(job_id, ([], 0))
        stages = stages_of(attempts, spec, status, asked)
        spec = replace(spec, executors_least=least_executors(spec.executors), executors_wait_s=_WAIT_S)
        return replace(spec, stages=stages) if stages else spec

    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Whether the answer is right. Raises RunInvalid where there is none, InputError, CallError."""
        one = self._submitted[job_id]
        return check(one.program, one.settings, one.data, self.client.answer(one))

    def deliver(self, job_id: str, output: Path | Target) -> None:
        """The answer as a file. Raises RunInvalid where there is none, InputError."""
        write_answer(output, self.client.answer(self._submitted[job_id]))


def _stage_of(attempt: Attempt) -> tuple[str, int]:
    """(stage, number of the task) of a task's name, ``stage_0003_0_task_000012``."""
    stage, _, number = attempt.task.rpartition("_task_")
    return stage, int(number)


def _groups(attempts: Sequence[Attempt]) -> list[tuple[str, dict[tuple[str, int], int]]]:
    """The stages in their order: name, and (Spark's stage, number of the task) -> number here, in order of starts.

    Stages that ran side by side (two inputs of a join) are one: their tasks shared the executors' slots.
    """
    tasks: dict[str, dict[int, int]] = defaultdict(dict)
    spans: dict[str, tuple[int, int]] = {}
    for one in attempts:
        if one.kind == "task":
            name, number = _stage_of(one)
            tasks[name][number] = min(one.started_ms, tasks[name].get(number, one.started_ms))
            first, last = spans.get(name, (one.started_ms, 0))
            spans[name] = min(first, one.started_ms), max(last, one.started_ms, one.ended_ms)
    groups: list[list[str]] = []
    until = 0
    for name in sorted(spans, key=lambda name: (spans[name][0], name)):
        if groups and spans[name][0] < until:
            groups[-1].append(name)
        else:
            groups.append([name])
        until = max(until, spans[name][1])
    found = []
    for group in groups:
        starts = sorted((at, name, number) for name in group for number, at in tasks[name].items())
        found.append(("+".join(sorted(group)), {(name, number): n for n, (_, name, number) in enumerate(starts)}))
    return found


def record_of(attempts: Sequence[Attempt], asked: int = 0) -> JobRecord:
    """The tasks as a run's tables have them: stages numbered in their order, from 1 (`stages_of` has the driver first).

    ``asked``: when the driver asked for its executors, milliseconds since 1970, 0: not known. A task runs in an
    executor's container, which is there before: it was asked for, granted and launched when it began.
    """
    tasks = [one for one in attempts if one.kind == "task"]
    order = {key: (2 * at + 1, n) for at, (_, numbers) in enumerate(_groups(tasks)) for key, n in numbers.items()}
    last_ms = max((max(one.started_ms, one.ended_ms) for one in attempts), default=0)
    rows = []
    for one in tasks:
        stage, number = order[_stage_of(one)]
        started, ended = one.started_ms, one.ended_ms or last_ms
        outcome = one.outcome if one.outcome != "unknown" else "killed"
        attempt = int(one.attempt.rpartition("_")[2])
        rows.append(
            TaskRecord(
                stage,
                number,
                attempt,
                one.container or "-",
                one.node or "-",
                *(started, started, started, started, started),
                *(ended, ended),
                outcome,
            )
        )
    why = next((one.error for one in tasks if one.outcome == "failed"), "")
    return JobRecord(
        first_heartbeat_ms=asked,
        ended_ms=last_ms,
        tasks=tuple(rows),
        why=why,
        executors_ms=tuple(one.started_ms for one in attempts if one.kind == "executor"),
    )


#: A driver begins with four fifths of its executors, or half a minute after it was made (Spark 4.0.5,
#: CoarseGrainedSchedulerBackend.isReady, by its byte code): ``spark.scheduler.minRegisteredResourcesRatio`` and
#: ``maxRegisteredResourcesWaitingTime``.
_LEAST_PART, _WAIT_S = 0.8, 30.0


def least_executors(wanted: int) -> int:
    """How many executors have to be there before a driver begins."""
    return math.ceil(_LEAST_PART * wanted)


def _ready_ms(asked: int, registered: Sequence[int], wanted: int) -> int:
    """When a driver begins. ``asked``: when it asked for its executors, which is when it was made; 0: not known."""
    times, least = sorted(registered), least_executors(wanted)
    ready = [times[least - 1]] if len(times) >= least > 0 else []
    if asked:
        ready.append(asked + round(1000 * _WAIT_S))
    return min(ready, default=0)


def stages_of(
    attempts: Sequence[Attempt], spec: JobSpec, status: AppStatus | None, asked: int = 0
) -> tuple[Stage, ...]:
    """The stages with each task's time, one after the other, and between them the driver as a stage of one task.

    The first of these is from when the driver began (``asked``: as in `record_of`), the last one until the application
    ended.
    """
    tasks: dict[tuple[str, int], Attempt] = {}
    for one in attempts:
        if one.kind == "task" and (one.outcome == "finished" or _stage_of(one) not in tasks):
            tasks[_stage_of(one)] = one
    if not tasks:
        return ()
    stages: list[Stage] = []
    first_ms = min(one.started_ms for one in tasks.values())
    ready_ms = _ready_ms(asked, [one.started_ms for one in attempts if one.kind == "executor"], spec.executors)
    now = min(ready_ms or first_ms, first_ms)

    def add(name: str, seconds: Sequence[float]) -> None:
        after = (stages[-1].name,) if stages else ()
        times = tuple(max(value, 0.001) for value in seconds)
        stages.append(Stage(name, len(times), spec.executor_demand, Duration("listed", values_s=times), after))

    groups = _groups(attempts)
    for at, (name, numbers) in enumerate(groups):
        own = [tasks[key] for key in numbers]
        began = min(one.started_ms for one in own)
        add(f"{DRIVER} {at}", [(began - now) / 1000.0])
        # What never ended was cut with its job: a moment.
        add(name, [max(one.ended_ms - one.started_ms, 1) / 1000.0 for one in own])
        now = max(now, *(max(one.started_ms, one.ended_ms) for one in own))
    if status is not None and status.finished_ms > now:
        add(f"{DRIVER} {len(groups)}", [(status.finished_ms - now) / 1000.0])
    return tuple(stages)
