"""Jobs one after another: MapReduce, DAGs of stages, Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Strict
from harness.jobs.workloads.base import LoadedWorkload, MapReduceWorkload, Scale, leaf, mapreduce, milliseconds
from harness.model.jobs import JobSpec, Stage, most_executors
from harness.model.resources import Resource
from harness.traces.spec import (
    MOST_TASKS,
    DemandSpec,
    ExecutorsSpec,
    StageSpec,
    SubmissionSpec,
    Tasks,
    TaskSpec,
    check_order,
)


class JobTemplate(Strict):
    """One job of a ``sequence``: MapReduce (``maps``, ``reduces``), a DAG (``stages``) or Spark (``executors``)."""

    name: Name
    """Its name in tables."""
    maps: int | None = Field(default=None, ge=1, le=MOST_TASKS)
    """MapReduce: number of maps."""
    reduces: Tasks = 0
    """MapReduce: number of reduces."""
    map: TaskSpec | None = None
    """Instead of `task`, for maps."""
    reduce: TaskSpec | None = None
    """Instead of `task`, for reduces."""
    stages: list[StageSpec] | None = Field(default=None, min_length=1, max_length=1000)
    """A DAG, or Spark: `name`, `tasks`, `after` (earlier stages), `slow_start`, `demand`, `duration`; a DAG's also
    `tail`, as MapReduce's reduces."""
    executors: ExecutorsSpec | None = None
    """Spark: `count`, `slots` (tasks at once in each), `demand`; with `dynamic` their number
    [follows the tasks](simulator.md#how-does-sparks-dynamic-allocation-ask-for-executors), and `count` is the most."""
    iterations: int = Field(default=1, ge=1, le=10_000)
    """How often the stages run, one iteration after another."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.maps is None) == (self.stages is None):
            raise ValueError("give either maps (MapReduce) or stages (a DAG, or Spark with executors)")
        if self.maps is not None and (self.executors is not None or self.iterations != 1):
            raise ValueError("executors and iterations belong to stages, not to maps")
        if self.stages is not None:
            if self.reduces or self.map is not None or self.reduce is not None:
                raise ValueError("reduces, map and reduce belong to maps, not to stages")
            if len(self.stages) * self.iterations > 100_000:
                raise ValueError("more than 100,000 stages")
            check_order(self.stages)
            for stage in self.stages:
                if stage.tail and self.executors is not None:
                    raise ValueError(
                        f"stage {stage.name!r} has a tail; Spark begins a stage when those before it have ended"
                    )
                if stage.tail and not stage.after:
                    raise ValueError(f"stage {stage.name!r} has a tail, and comes after no other")
        return self


class SequenceWorkload(MapReduceWorkload):
    """Jobs one after another, the list ``rounds`` times over (Purdue, TPC-H, Spark)."""

    kind: Literal["sequence"]
    submission: SubmissionSpec
    """`every_s`, or `think_s` after the job before has ended."""
    task: TaskSpec
    """`demand` and `duration`, for jobs and stages that have none."""
    jobs: list[JobTemplate] = Field(min_length=1, max_length=10_000)
    """The jobs in their order."""
    rounds: int = Field(default=1, ge=1, le=100_000)
    """How often the list of jobs is repeated."""

    def demands(self) -> Iterator[tuple[str, Resource]]:
        """Yield what each kind of container asks for, with a label for messages."""
        yield from super().demands()
        for job in self.jobs:
            for label, found in (("map", job.map), ("reduce", job.reduce), ("executors", job.executors)):
                if found is not None:
                    yield f"job {job.name!r}, {label}", found.demand.resource()
            for stage in job.stages or ():
                if stage.demand is not None:
                    yield f"job {job.name!r}, stage {stage.name!r}", stage.demand.resource()

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        """Return the list's jobs, ``rounds`` times over."""
        jobs: list[JobSpec] = []
        first_s = start_s + self.start_s
        for number in range(1, len(self.jobs) * self.rounds + 1):
            job = _templated(self, self.jobs[(number - 1) % len(self.jobs)], scale)
            job = replace(job, id=f"{leaf(queue)}-{number:04d}", queue=queue)
            if self.submission.every_s is not None:
                gap_s = self.submission.every_s * scale.gaps
                job = replace(job, submit_s=milliseconds(first_s + (number - 1) * gap_s))
            else:
                assert self.submission.think_s is not None
                job = replace(job, submit_s=milliseconds(first_s))
                if jobs:
                    job = replace(
                        job, after_job=jobs[-1].id, think_s=milliseconds(self.submission.think_s * scale.gaps)
                    )
            jobs.append(job)
        return jobs


def _templated(spec: SequenceWorkload, template: JobTemplate, by: Scale) -> JobSpec:
    am = spec.am.resource()
    if template.maps is not None:
        maps, reduces = template.map or spec.task, template.reduce or spec.task
        stages = mapreduce(template.maps, template.reduces, maps, reduces, spec.slow_start, by, tail=spec.tail)
        return JobSpec(id="", queue="", kind="mapreduce", am=am, stages=stages, name=template.name)
    assert template.stages is not None
    executors = template.executors
    built: list[Stage] = []
    for turn in range(template.iterations):
        for at, stage in enumerate(template.stages):
            # An iteration begins when the previous one has ended; with a single iteration, names are not changed.
            suffix = f" #{turn + 1}" if template.iterations > 1 else ""
            after = tuple(name + suffix for name in stage.after)
            if at == 0 and turn:
                after = (*after, built[-1].name)
            demand: DemandSpec = stage.demand or (executors.demand if executors else spec.task.demand)
            duration = (stage.duration or spec.task.duration).duration(by.durations)
            built.append(
                Stage(
                    stage.name + suffix,
                    by.count(stage.tasks),
                    demand.resource(),
                    duration,
                    after,
                    stage.slow_start,
                    tail=stage.tail,
                )
            )
    if executors is None:
        return JobSpec(id="", queue="", kind="dag", am=am, stages=tuple(built), name=template.name)
    dynamic = executors.dynamic.settings() if executors.dynamic is not None else None
    most = executors.count
    if dynamic is not None:
        # The count is an upper bound; the initial and the least number must not exceed the bound.
        dynamic = replace(dynamic, most=min(dynamic.most, executors.count))
        dynamic = replace(dynamic, initial=min(dynamic.initial, dynamic.most), least=min(dynamic.least, dynamic.most))
        most = most_executors(dynamic, sum(stage.tasks for stage in built), executors.slots)
        fed = {name for stage in built for name in stage.after}
        built = [replace(stage, shuffles=stage.name in fed) for stage in built]
    return JobSpec(
        id="",
        queue="",
        kind="spark",
        am=am,
        stages=tuple(built),
        name=template.name,
        executors=most,
        executor_demand=executors.demand.resource(),
        executor_slots=executors.slots,
        dynamic=dynamic,
    )
