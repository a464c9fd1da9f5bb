"""The Spark programs of a run: submits them through REST, and reads their logs and answers.

What a driver logged becomes stages and task records.
"""

from __future__ import annotations

import math
import re
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, RunInvalid
from harness.clusters.processes import free_mb
from harness.jobs.data.targets import Target
from harness.jobs.engines.attempts import Attempt, Verdict
from harness.jobs.engines.base import EnginePrograms, ProgramJob, Site, Sizing, write_answer
from harness.jobs.engines.cluster import last_lines, on_this_machine, running_nodes, told_by_yarn
from harness.jobs.replay import JobRecord
from harness.jobs.spark import catalogue
from harness.jobs.spark.answers import check
from harness.jobs.spark.events import asked_ms, read_events
from harness.jobs.spark.installation import version
from harness.jobs.spark.plan import Input, Plan, SparkPlace, SparkSizes, fits, plan
from harness.jobs.spark.site import SparkNodes, check_limit, read_input
from harness.jobs.submit import scheduler_address
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, Stage
from harness.traces.spec import ProgramSpec
from harness.yarn.answers import AppStatus

#: Name of a stage of one task for the driver's work between its stages, while the executors wait.
DRIVER = "driver"
#: Lines of Spark's log4j2 log that report success.
_LOGGED = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|DEBUG) ")
_EXCEPTION = re.compile(r"^(pyspark|py4j|[A-Za-z_.]*(Error|Exception))\S*: ")


@dataclass(frozen=True, slots=True)
class Submitted:
    """A program that the ResourceManager accepted. ``app``: the application's id."""

    app: str
    program: catalogue.SparkProgram
    plan: Plan
    settings: Mapping[str, str]
    data: Input


def sizes_of(program: ProgramSpec, sizing: Sizing, executors: int) -> SparkSizes:
    """Return the container sizes that a program requests. Raises CallError for containers that are too small."""
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
    """Submits Spark programs to one ResourceManager."""

    def __init__(self, site: Site, jobs: Sequence[ProgramJob]) -> None:
        self.site, self.nodes = site, SparkNodes(site.shared)
        self.jobs = {job.spec.id: job for job in jobs}
        self._scheduler: str | None = None
        self._submitted: dict[str, Submitted] = {}
        #: Job id -> its attempts, and when its driver asked for executors.
        self._read: dict[str, tuple[list[Attempt], int]] = {}

    def close(self) -> None:
        """No-op: a run's files in the cluster's folder are removed with that folder."""

    def prepare(self) -> None:
        """Make Spark and the data available to the nodes, before the run's measurements begin.

        Raises InputError, RunTimedOut.
        """
        self.nodes.home(self.site.progress)
        for job in self.jobs.values():
            program = catalogue.programs()[job.application]
            self.nodes.data(read_input(program, self.site.folders[job.inputs[0]]), self.site.progress)
            self.check_room(sizes_of(job.program, job.sizing, job.executors))

    def check_room(self, sizes: SparkSizes) -> None:
        """Refuse programs that do not fit into the nodes, into their containers or into this machine.

        Raises InputError.
        """
        nodes, where = [node.total for node in running_nodes(self.site.rest)], self.site.rest.http.current
        if (why := fits(sizes, nodes)) is not None:
            raise InputError(why, where=where, hint="ask for fewer or smaller executors, or give the nodes more")
        asked = sizes.am_mb + sizes.executors * sizes.executor_mb
        check_limit(min(asked, max(node.memory_mb for node in nodes)), self.nodes.node_limit_mb(), where)
        free = free_mb() if on_this_machine(self.site.rest) else None
        if free is not None and asked > free:
            raise InputError(
                f"memory is short: the application master and {sizes.executors} executor(s) take {asked} MB, this "
                f"machine has {free} MB left",
                where=where,
                hint="ask for fewer or smaller executors, or wait",
            )

    def document(self) -> dict[str, Any]:
        """Return version and settings of the engine that all runs share, for ``run.json``."""
        every = [one.plan.properties for one in self._submitted.values()]
        shared = {k: v for k, v in every[0].items() if all(one.get(k) == v for one in every)} if every else {}
        return {"engine": "Spark", "python": self.site.python, "spark": version(), "properties": shared}

    def submit(self, job_id: str) -> str:
        """Make a job's files available to the nodes and submit it (again, if it was before).

        Return the application's id.

        Raises CallError and InputError for settings or data that cannot be used.
        """
        job = self.jobs[job_id]
        program = catalogue.programs()[job.application]
        settings = program.settings_with(job.program.settings)
        given = read_input(program, self.site.folders[job.inputs[0]])
        if self._scheduler is None:
            self._scheduler = scheduler_address(self.site.rest)
        home, data = self.nodes.home(self.site.progress), self.nodes.data(given, self.site.progress)
        loopback = self.nodes.volume is None and on_this_machine(self.site.rest)
        sizes = replace(
            sizes_of(job.program, job.sizing, job.executors), read_tasks=job.maps, shuffle_tasks=job.reduces
        )
        heartbeat = {"spark.yarn.scheduler.heartbeat.interval-ms": str(self.site.am_heartbeat_ms)}
        name = f"{program.name}-{uuid.uuid4().hex[:12]}"
        planned = plan(
            program,
            settings,
            sizes,
            SparkPlace(home, self.site.shared.path, self.site.python, self._scheduler, loopback),
            data,
            queue=job.spec.queue,
            name=name,
            tags=[self.site.tag, name],
            source=data_path("workloads", "spark", program.file).read_bytes(),
            properties={**heartbeat, **self.site.properties},
        )
        self.site.shared.write(planned.files)
        try:
            app = self.site.rest.submit(planned.submission)
        except BaseException:
            # An interrupted submission, or one without an answer, may have been accepted.
            self.site.rest.kill_tagged(name)
            raise
        self._submitted[job_id] = Submitted(app, program, planned, settings, given)
        return app

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the executors and tasks measured so far, also for a job that was killed or failed."""
        return read_events(self._events(job_id))

    def why(self, job_id: str, status: AppStatus) -> str:
        """Return the reason of a failed job: YARN's message, and the last lines of its log."""
        submitted = self._submitted[job_id]
        return f"{submitted.program.name} failed; {told_by_yarn(status)}; {self._log_words(submitted)}"

    def record(self, job_id: str, status: AppStatus | None = None) -> JobRecord:
        """Return the record of tasks that the driver has logged so far. Raises InputError."""
        lines = self._events(job_id)
        attempts, asked = read_events(lines), asked_ms(lines)
        self._read[job_id] = attempts, asked
        return record_of(attempts, asked)

    def measured(self, job_id: str, status: AppStatus | None) -> JobSpec:
        """Return a job as it ran: stages in their order, with the driver's time before, between and after them."""
        spec = self.jobs[job_id].spec
        attempts, asked = self._read.get(job_id, ([], 0))
        stages = stages_of(attempts, spec, status, asked)
        spec = replace(spec, executors_least=least_executors(spec.executors), executors_wait_s=_WAIT_S)
        return replace(spec, stages=stages) if stages else spec

    def check(self, job_id: str, status: AppStatus | None = None) -> Verdict | None:
        """Return whether the answer is right. Raises RunInvalid if there is no answer; InputError, CallError."""
        one = self._submitted[job_id]
        return check(one.program, one.settings, one.data, self._answer(one))

    def deliver(self, job_id: str, output: Path | Target) -> None:
        """Write the answer to a file. Raises RunInvalid if there is no answer, and InputError."""
        write_answer(output, self._answer(self._submitted[job_id]))

    def _events(self, job_id: str) -> list[str]:
        """Return the lines of the event log that have been written so far."""
        app = self._submitted[job_id].app
        for name in (f"{app}_1", f"{app}_1.inprogress", app):
            content = self.site.shared.read(name)
            if content is not None:
                return content.decode(errors="replace").splitlines()
        return []

    def _answer(self, submitted: Submitted) -> bytes:
        content = self.site.shared.read(submitted.plan.answer)
        if content is None:
            raise RunInvalid(f"{submitted.program.name} ended well and left no answer; {self._log_words(submitted)}")
        return content

    def _log_words(self, submitted: Submitted) -> str:
        content = self.site.shared.read(submitted.plan.log)
        lines = driver_lines((content or b"").decode(errors="replace"))
        return f"its log ends: {' | '.join(lines)}" if lines else "it left no log"


def driver_lines(log: str) -> list[str]:
    """Return the lines of a driver's log that show the cause.

    The program's own exception if there is one, else the end.
    """
    lines = [line for line in log.splitlines() if not _LOGGED.match(line)]
    # Java's messages after Python's only report that the program ended; before Python's, the first one is the cause.
    traces = [number for number, line in enumerate(lines) if line.startswith("Traceback ")]
    for number in range(traces[-1] if traces else 0, len(lines)):
        if _EXCEPTION.match(lines[number]):
            # The message that Java passed to Python follows below, up to its stack trace.
            end = number + 1
            while end < min(number + 4, len(lines)) and not lines[end].lstrip().startswith("at "):
                end += 1
            return last_lines("\n".join(lines[max(number - 3, 0) : end]))
    return last_lines("\n".join(lines))


def _stage_of(attempt: Attempt) -> tuple[str, int]:
    """Return (stage, number of the task) of a task's name, ``stage_0003_0_task_000012``."""
    stage, _, number = attempt.task.rpartition("_task_")
    return stage, int(number)


def _groups(attempts: Sequence[Attempt]) -> list[tuple[str, dict[tuple[str, int], int]]]:
    """Return the stages in order of their starts: name, and (Spark's stage, number of the task) -> number here.

    Stages that ran side by side (two inputs of a join) are joined into one, because their tasks shared the executors'
    slots.
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
    """Return the record of an application, from which a run's tables are made, from its attempts.

    Stages are numbered in their order from 1, because in `stages_of` the driver is the first one. ``asked``: when the
    driver asked for its executors, milliseconds since 1970 (0: not known). A task runs in an executor's container,
    which exists before it, so the task counts as asked for, granted and launched when it begins.
    """
    tasks = [one for one in attempts if one.kind == "task"]
    order = {key: (2 * at + 1, n) for at, (_, numbers) in enumerate(_groups(tasks)) for key, n in numbers.items()}
    last_ms = max((max(one.started_ms, one.ended_ms) for one in attempts), default=0)
    why = next((one.error for one in tasks if one.outcome == "failed"), "")
    return JobRecord(
        first_heartbeat_ms=asked,
        ended_ms=last_ms,
        tasks=tuple(one.record(*order[_stage_of(one)], last_ms) for one in tasks),
        why=why,
        executors_ms=tuple(one.started_ms for one in attempts if one.kind == "executor"),
    )


#: A driver begins with four fifths of its executors, or half a minute after its creation (Spark 4.0.5,
#: CoarseGrainedSchedulerBackend.isReady, by its byte code): ``spark.scheduler.minRegisteredResourcesRatio`` and
#: ``maxRegisteredResourcesWaitingTime``.
_LEAST_PART, _WAIT_S = 0.8, 30.0


def least_executors(wanted: int) -> int:
    """Return how many executors must be registered before a driver begins."""
    return math.ceil(_LEAST_PART * wanted)


def _ready_ms(asked: int, registered: Sequence[int], wanted: int) -> int:
    """Return when a driver begins.

    ``asked``: when it asked for its executors, which is when it was created; 0: not known.
    """
    times, least = sorted(registered), least_executors(wanted)
    ready = [times[least - 1]] if len(times) >= least > 0 else []
    if asked:
        ready.append(asked + round(1000 * _WAIT_S))
    return min(ready, default=0)


def stages_of(
    attempts: Sequence[Attempt], spec: JobSpec, status: AppStatus | None, asked: int = 0
) -> tuple[Stage, ...]:
    """Return the stages with each task's time, one after the other, and between them the driver as a stage of one task.

    The driver's first stage begins when the driver did (``asked``: as in `record_of`); its last one ends with the
    application.
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
        # A task without an end was aborted with its job, so it takes no time.
        add(name, [max(one.ended_ms - one.started_ms, 1) / 1000.0 for one in own])
        now = max(now, *(max(one.started_ms, one.ended_ms) for one in own))
    if status is not None and status.finished_ms > now:
        add(f"{DRIVER} {len(groups)}", [(status.finished_ms - now) / 1000.0])
    return tuple(stages)
