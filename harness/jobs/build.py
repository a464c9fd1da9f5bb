"""From a workload file to the jobs of one queue: `load_workload`, `build_jobs`. What is random comes from the seed.

Task durations are not drawn here (the simulator draws each when the task starts); experiments, and which queue runs
which workload, are harness.experiments' business.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from harness.base.documents import KeyPath, YamlDocument, read_yaml, validated
from harness.base.errors import InputError
from harness.jobs.spec import (
    KINDS,
    ArrivalsSpec,
    BinsWorkload,
    DemandSpec,
    JobTemplate,
    ProgramsWorkload,
    RecordedWorkload,
    SequenceWorkload,
    SlsWorkload,
    TaskSpec,
    TraceWorkload,
    Workload,
)
from harness.jobs.swim import read_swim, swim_jobs
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource


@dataclass(frozen=True, slots=True)
class LoadedWorkload:
    """A workload, the file it stands in (for messages) and the folder that its traces are relative to."""

    spec: Workload
    document: YamlDocument
    at: KeyPath
    folder: Path

    def where(self, *path: str | int) -> str:
        """``file:line: key`` for messages."""
        full = (*self.at, *path)
        return f"{self.document.where(full)}: {'.'.join(map(str, full))}" if full else self.document.where()

    def trace(self) -> Path | None:
        """The trace file that the workload reads, if any."""
        spec = self.spec
        if isinstance(spec, TraceWorkload | SlsWorkload | RecordedWorkload):
            return self.folder / spec.trace
        if isinstance(spec, BinsWorkload | ProgramsWorkload):
            arrivals = spec.arrivals
            return self.folder / arrivals.trace if arrivals is not None and arrivals.trace is not None else None
        return None


@dataclass(frozen=True, slots=True)
class Scale:
    """Factors on a workload: numbers of tasks (at least 1 stays), durations of tasks, times between submissions.

    Traces that list each task (``sls``, ``recorded``) take no factor on numbers of tasks (`check_scale`).
    """

    tasks: float = 1.0
    durations: float = 1.0
    gaps: float = 1.0

    def count(self, tasks: int) -> int:
        """A number of tasks, scaled; what was there stays there."""
        return max(1, math.floor(tasks * self.tasks + 0.5)) if tasks else 0


def workload_of(document: YamlDocument, *, folder: Path, data: Any = None, at: KeyPath = ()) -> LoadedWorkload:
    """The workload that `document` (or `data` at key path `at` of it) describes.

    Raises InputError with file, line and key.
    """
    found = document.data if data is None else data
    if not isinstance(found, dict):
        raise InputError("a workload is a mapping", where=document.where(at), mend="see docs/reference/workloads.md")
    kind = found.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        mend = "give kind: one of " + ", ".join(KINDS)
        raise InputError(f"workload of kind {str(kind)[:40]!r}", where=document.where((*at, "kind")), mend=mend)
    return LoadedWorkload(validated(KINDS[kind], document, data=found, at=at), document, at, folder)


def load_workload(path: Path, but: Mapping[str, Any] | None = None) -> LoadedWorkload:
    """The workload of a file, with the keys in `but` other than there.

    Raises InputError with file, line and key.
    """
    document = read_yaml(path)
    if but and isinstance(document.data, dict):
        return workload_of(document, folder=path.parent, data={**document.data, **but})
    return workload_of(document, folder=path.parent)


def check_scale(spec: Workload, scale: Scale, where: str) -> None:
    """InputError for a factor that a workload of this kind cannot have."""
    if isinstance(spec, SlsWorkload | RecordedWorkload) and scale.tasks != 1.0:
        what = f"scale.tasks is {scale.tasks:g}, but a trace of kind {spec.kind} lists its tasks one by one"
        raise InputError(what, where=where, mend="leave tasks out; durations and gaps may be scaled")


def demands(spec: Workload) -> Iterator[tuple[str, Resource]]:
    """(what it is, size) of each container that a workload asks for; not for traces, whose jobs say it."""
    if isinstance(spec, SlsWorkload | RecordedWorkload):
        return
    yield "am", spec.am.resource()
    if isinstance(spec, ProgramsWorkload):
        yield "task", spec.task.resource()
        for program in spec.programs:
            name = program.type or program.application
            if program.executors is not None:
                yield f"{name}, executors", program.executors.demand.resource()
            for label, demand in (("map", program.map_demand), ("reduce", program.reduce_demand)):
                if demand is not None:
                    yield f"{name}, {label}", demand.resource()
    elif isinstance(spec, SequenceWorkload):
        yield "task", spec.task.demand.resource()
        for job in spec.jobs:
            for label, found in (("map", job.map), ("reduce", job.reduce), ("executors", job.executors)):
                if found is not None:
                    yield f"job {job.name!r}, {label}", found.demand.resource()
            for stage in job.stages or ():
                if stage.demand is not None:
                    yield f"job {job.name!r}, stage {stage.name!r}", stage.demand.resource()
    else:
        yield "map", spec.map.demand.resource()
        yield "reduce", spec.reduce.demand.resource()
        for row in spec.bins if isinstance(spec, BinsWorkload) else ():
            for label, demand in (("map", row.map_demand), ("reduce", row.reduce_demand)):
                if demand is not None:
                    yield f"bin {row.type!r}, {label}", demand.resource()


def build_jobs(
    workload: LoadedWorkload, *, queue: str, seed: int, start_s: float = 0.0, scale: Scale | None = None
) -> Iterable[JobSpec]:
    """The jobs of one queue: a list, or for a whole trace an iterator in ascending order of submission.

    ``queue`` is the leaf's full path, ``start_s`` is added to every submission. Ids are ``<leaf>-<number>`` and
    the same for every policy.

    Raises InputError with file, line and key.
    """
    spec, by = workload.spec, scale or Scale()
    check_scale(spec, by, workload.where("trace"))
    if isinstance(spec, BinsWorkload):
        return _bins(workload, spec, queue, seed, start_s, by)
    if isinstance(spec, SequenceWorkload):
        return _sequence(spec, queue, start_s, by)
    if isinstance(spec, TraceWorkload):
        return _trace(workload, spec, queue, start_s, by)
    if isinstance(spec, RecordedWorkload):
        return _recorded(workload, spec, queue, start_s, by)
    if isinstance(spec, ProgramsWorkload):
        from harness.jobs.applications.plan import programs_of

        return [program.spec for program in programs_of(workload, queue=queue, seed=seed, start_s=start_s, scale=by)]
    return _sls(workload, spec, queue, start_s, by)


def _leaf(queue: str) -> str:
    return queue.rpartition(".")[2]


def milliseconds(seconds: float) -> float:
    """Seconds rounded to whole milliseconds (half up), as the simulator counts time."""
    return math.floor(seconds * 1000.0 + 0.5) / 1000.0


def _mapreduce(
    maps: int, reduces: int, map_task: TaskSpec, reduce_task: TaskSpec, slow_start: float, by: Scale
) -> tuple[Stage, ...]:
    """MapReduce's two stages, with the AM's priorities: reduces before maps (10, 20)."""
    stages = [
        Stage("map", by.count(maps), map_task.demand.resource(), map_task.duration.duration(by.durations), priority=20)
    ]
    if reduces:
        demand, duration = reduce_task.demand.resource(), reduce_task.duration.duration(by.durations)
        stages.append(Stage("reduce", by.count(reduces), demand, duration, ("map",), slow_start, priority=10))
    return tuple(stages)


def _bins(
    workload: LoadedWorkload, spec: BinsWorkload, queue: str, seed: int, start_s: float, by: Scale
) -> list[JobSpec]:
    # A stream of its own for each queue and purpose: adding a workload does not change the others.
    bins = [row for row in spec.bins for _ in range(row.jobs)]
    random.Random(f"{seed}/{queue}/order of bins").shuffle(bins)
    times = arrival_times(workload, spec.arrivals, len(bins), queue, seed)
    return [
        JobSpec(
            id=f"{_leaf(queue)}-{number:04d}",
            queue=queue,
            kind="mapreduce",
            am=spec.am.resource(),
            stages=_mapreduce(
                row.maps,
                row.reduces,
                _sized(spec.map, row.map_demand),
                _sized(spec.reduce, row.reduce_demand),
                spec.slow_start,
                by,
            ),
            name=row.type,
            submit_s=milliseconds(start_s + spec.start_s + by.gaps * time),
        )
        for number, (row, time) in enumerate(zip(bins, times, strict=True), start=1)
    ]


def arrival_times(workload: LoadedWorkload, arrivals: ArrivalsSpec, count: int, queue: str, seed: int) -> list[float]:
    """When so many jobs come, in seconds: as a SWIM trace's first ones, or at random with a mean gap.

    Raises InputError for a trace that has fewer jobs.
    """
    trace = workload.trace()
    if trace is None:
        assert arrivals.mean_gap_s is not None
        draws, now, times = random.Random(f"{seed}/{queue}/arrivals"), 0.0, []
        for _ in range(count):
            now += draws.expovariate(1.0 / arrivals.mean_gap_s)
            times.append(now)
        return times
    times = [float(row.submit_s) for row in islice(read_swim(trace), count)]
    if len(times) < count:
        what = f"the trace has {len(times)} jobs, the bins have {count}"
        raise InputError(what, where=workload.where("arrivals", "trace"), mend="take a longer trace or fewer jobs")
    return times


def _sized(task: TaskSpec, demand: DemandSpec | None) -> TaskSpec:
    return task if demand is None else task.model_copy(update={"demand": demand})


def _sequence(spec: SequenceWorkload, queue: str, start_s: float, by: Scale) -> list[JobSpec]:
    jobs: list[JobSpec] = []
    first_s = start_s + spec.start_s
    for number in range(1, len(spec.jobs) * spec.rounds + 1):
        job = _templated(spec, spec.jobs[(number - 1) % len(spec.jobs)], by)
        job = replace(job, id=f"{_leaf(queue)}-{number:04d}", queue=queue)
        if spec.submission.every_s is not None:
            gap_s = spec.submission.every_s * by.gaps
            job = replace(job, submit_s=milliseconds(first_s + (number - 1) * gap_s))
        else:
            assert spec.submission.think_s is not None
            job = replace(job, submit_s=milliseconds(first_s))
            if jobs:
                job = replace(job, after_job=jobs[-1].id, think_s=milliseconds(spec.submission.think_s * by.gaps))
        jobs.append(job)
    return jobs


def _templated(spec: SequenceWorkload, template: JobTemplate, by: Scale) -> JobSpec:
    am = spec.am.resource()
    if template.maps is not None:
        maps, reduces = template.map or spec.task, template.reduce or spec.task
        stages = _mapreduce(template.maps, template.reduces, maps, reduces, spec.slow_start, by)
        return JobSpec(id="", queue="", kind="mapreduce", am=am, stages=stages, name=template.name)
    assert template.stages is not None
    executors = template.executors
    built: list[Stage] = []
    for turn in range(template.iterations):
        for at, stage in enumerate(template.stages):
            # An iteration begins when the one before has ended; with one iteration names stay as written.
            suffix = f" #{turn + 1}" if template.iterations > 1 else ""
            after = tuple(name + suffix for name in stage.after)
            if at == 0 and turn:
                after = (*after, built[-1].name)
            demand: DemandSpec = stage.demand or (executors.demand if executors else spec.task.demand)
            duration = (stage.duration or spec.task.duration).duration(by.durations)
            built.append(
                Stage(stage.name + suffix, by.count(stage.tasks), demand.resource(), duration, after, stage.slow_start)
            )
    if executors is None:
        return JobSpec(id="", queue="", kind="dag", am=am, stages=tuple(built), name=template.name)
    return JobSpec(
        id="",
        queue="",
        kind="spark",
        am=am,
        stages=tuple(built),
        name=template.name,
        executors=executors.count,
        executor_demand=executors.demand.resource(),
        executor_slots=executors.slots,
    )


def _trace(workload: LoadedWorkload, spec: TraceWorkload, queue: str, start_s: float, by: Scale) -> Iterator[JobSpec]:
    path = workload.trace()
    assert path is not None
    rows: Iterator[Any] = read_swim(path)
    if spec.first is not None:
        rows = islice(rows, spec.first)
    rows = islice(rows, spec.part - 1, None, spec.parts)
    jobs = swim_jobs(
        rows,
        queue=queue,
        map_demand=spec.map.demand.resource(),
        map_duration=spec.map.duration.duration(by.durations),
        reduce_demand=spec.reduce.demand.resource(),
        reduce_duration=spec.reduce.duration.duration(by.durations),
        am=spec.am.resource(),
        slow_start=spec.slow_start,
        start_s=start_s + spec.start_s,
        time_scale=spec.time_scale * by.gaps,
    )
    for job in jobs:
        stages = tuple(replace(stage, tasks=by.count(stage.tasks)) for stage in job.stages)
        yield replace(job, id=f"{_leaf(queue)}-{job.id}", stages=stages, submit_s=milliseconds(job.submit_s))


def _sls(workload: LoadedWorkload, spec: SlsWorkload, queue: str, start_s: float, by: Scale) -> list[JobSpec]:
    from harness.jobs.sls import load_jobs

    path = workload.trace()
    assert path is not None
    jobs = load_jobs(path)
    if spec.only is not None:
        wanted = spec.only if spec.only.startswith("root.") else f"root.{spec.only}"
        jobs = [job for job in jobs if job.queue == wanted]
        if not jobs:
            raise InputError(f"no job of queue {spec.only!r}", where=str(path), mend="correct 'only'")
    return [replace(job, queue=queue) for job in _scaled(jobs, start_s + spec.start_s, by)]


def _scaled(jobs: Iterable[JobSpec], shift_s: float, by: Scale) -> Iterator[JobSpec]:
    """A trace's jobs with its times scaled and then shifted; what masters and executors take to start stays."""
    # Equal jobs of a trace share their stages, and are to share them afterwards: they are stored once.
    made: dict[int, tuple[tuple[Stage, ...], tuple[Stage, ...]]] = {}
    for job in jobs:
        stages = job.stages
        if by.durations != 1.0:
            if id(stages) not in made:
                made[id(stages)] = stages, tuple(replace(one, duration=_longer(one, by.durations)) for one in stages)
            stages = made[id(stages)][1]
        submit_s = milliseconds(job.submit_s * by.gaps + shift_s)
        yield replace(job, stages=stages, submit_s=submit_s, think_s=job.think_s * by.gaps)


def _longer(stage: Stage, factor: float) -> Duration:
    assert stage.duration.kind == "listed"
    return replace(stage.duration, values_s=tuple(value * factor for value in stage.duration.values_s))


def _recorded(workload: LoadedWorkload, spec: RecordedWorkload, queue: str, start_s: float, by: Scale) -> list[JobSpec]:
    from harness.jobs.recorded import read_trace

    path = workload.trace()
    assert path is not None
    wanted = spec.only if spec.only.startswith("root.") else f"root.{spec.only}"
    jobs = [job.spec() for job in read_trace(path).jobs if job.queue == wanted]
    own = {job.id for job in jobs}
    # What follows a job of another queue comes when it came.
    return [
        replace(job, queue=queue, after_job=job.after_job if job.after_job in own else None)
        for job in _scaled(jobs, start_s + spec.start_s, by)
    ]
