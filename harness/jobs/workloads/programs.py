"""Workloads of programs as jobs: which application each is, on which data, how large, when it is submitted.

One application of YARN's is one job: Grep and the join, which are two Hadoop jobs one after the other, are two, ``x``
and ``x.2``. How long tasks take is not known before they ran; running them is harness.jobs.applications.programs'.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Positive
from harness.base.errors import CallError, InputError
from harness.jobs.applications.catalogue import APPLICATIONS, Application, application, settings_of
from harness.jobs.data.generate import read_size
from harness.jobs.hive import catalogue as hive
from harness.jobs.spark import catalogue as spark
from harness.jobs.spark.plan import SparkSizes
from harness.jobs.spec import ArrivalsSpec, DataSpec, DemandSpec, ProgramSpec, SubmissionSpec
from harness.jobs.workloads.base import LoadedWorkload, Scale, Workload, arrival_times, milliseconds
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource

#: Stands where a task's time would: nobody knows it yet.
UNKNOWN = Duration("constant", value_s=1.0)


class ProgramsWorkload(Workload):
    """Programs that compute, on a real cluster: in turn (``submission``), or in an order shuffled by the seed, as a
    trace's first jobs arrive (``arrivals``)."""

    kind: Literal["programs"]
    am: DemandSpec
    task: DemandSpec
    slow_start: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    data: dict[Name, DataSpec] = Field(min_length=1, max_length=100)
    submission: SubmissionSpec | None = None
    arrivals: ArrivalsSpec | None = None
    programs: list[ProgramSpec] = Field(min_length=1, max_length=10_000)
    rounds: int = Field(default=1, ge=1, le=100_000)
    #: A factor on how many jobs each program is; one at least stays.
    jobs_factor: Positive = 1.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.submission is None) == (self.arrivals is None):
            raise ValueError("give either submission or arrivals")
        if self.arrivals is not None and self.rounds != 1:
            raise ValueError("rounds belong to submission: with arrivals, say how many jobs each program is")
        for one in self.programs:
            for name in one.input:
                if name not in self.data:
                    raise ValueError(f"{one.application} reads {name!r}, which is not under data")
        return self

    def trace_name(self) -> str | None:
        return self.arrivals.trace if self.arrivals is not None else None

    def demands(self) -> Iterator[tuple[str, Resource]]:
        yield "am", self.am.resource()
        yield "task", self.task.resource()
        for program in self.programs:
            name = program.type or program.application
            if program.executors is not None:
                yield f"{name}, executors", program.executors.demand.resource()
            for label, demand in (("map", program.map_demand), ("reduce", program.reduce_demand)):
                if demand is not None:
                    yield f"{name}, {label}", demand.resource()

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        return [one.spec for one in programs_of(workload, queue=queue, seed=seed, start_s=start_s, scale=scale)]


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """One application of YARN's that computes.

    ``spec``: what is known of it before it ran. ``step``: which of its program's jobs it is, from 1; ``first``: the id
    of the program's first one; ``inputs``: data sets in the order that the application reads them.
    """

    spec: JobSpec
    program: ProgramSpec
    inputs: tuple[DataSpec, ...]
    workload: ProgramsWorkload
    maps: int
    reduces: int
    executors: int
    step: int
    steps: int
    first: str

    @property
    def application(self) -> str:
        return self.program.application.lower()

    @property
    def engine(self) -> str:
        """``mapreduce``, ``spark`` or ``hive``."""
        if self.program.executors is not None:
            return "spark"
        return "hive" if self.application in hive.programs() else "mapreduce"


def programs_of(
    workload: LoadedWorkload, *, queue: str, seed: int, start_s: float = 0.0, scale: Scale | None = None
) -> list[ProgramJob]:
    """The jobs of one queue, in order of submission; ids are ``<leaf>-<number>``, the same for every policy.

    Raises InputError with file, line and key: an unknown application, data of another kind than it reads ...
    """
    spec, by = workload.spec, scale or Scale()
    assert isinstance(spec, ProgramsWorkload)
    if by.durations != 1.0:
        raise InputError(
            "durations of programs cannot be scaled", where=workload.where("kind"), mend="take smaller data sets"
        )
    for at, program in enumerate(spec.programs):
        _check(workload, spec, program, at)
    programs = [
        program for program in spec.programs for _ in range(max(1, math.floor(program.jobs * spec.jobs_factor + 0.5)))
    ] * spec.rounds
    first_s = start_s + spec.start_s
    times: list[float | None]
    if spec.arrivals is not None:
        # The same shuffle as of bins (harness.jobs.workloads.bins).
        random.Random(f"{seed}/{queue}/order of bins").shuffle(programs)
        times = list(arrival_times(workload, spec.arrivals, len(programs), queue, seed))
    else:
        assert spec.submission is not None
        every_s = spec.submission.every_s
        times = [number * every_s if every_s is not None else None for number in range(len(programs))]
    jobs: list[ProgramJob] = []
    for number, (program, time_s) in enumerate(zip(programs, times, strict=True), start=1):
        one = _jobs(spec, program, queue, f"{queue.rpartition('.')[2]}-{number:04d}", by)
        if time_s is not None:
            one[0] = _submitted(one[0], submit_s=milliseconds(first_s + by.gaps * time_s))
        elif not jobs:
            one[0] = _submitted(one[0], submit_s=milliseconds(first_s))
        else:
            assert spec.submission is not None
            think_s = milliseconds((spec.submission.think_s or 0.0) * by.gaps)
            one[0] = replace(one[0], spec=replace(one[0].spec, after_job=jobs[-1].spec.id, think_s=think_s))
        jobs += one
    return jobs


def _submitted(job: ProgramJob, submit_s: float) -> ProgramJob:
    return replace(job, spec=replace(job.spec, submit_s=submit_s))


def _check(workload: LoadedWorkload, spec: ProgramsWorkload, program: ProgramSpec, at: int) -> None:
    """Raises InputError for what cannot be run."""
    where = workload.where("programs", at)
    try:
        kinds: Sequence[str]
        if program.executors is not None:
            kinds = _spark_data(spec, program)
        elif program.application.lower() in hive.programs():
            query = hive.programs()[program.application.lower()]
            hive.settings_of(query, program.settings)
            kinds = query.data
        else:
            found = application(program.application)
            settings_of(found, program.settings)
            kinds = found.data
            if found.reduces and not program.reduces:
                raise CallError(f"{found.name} needs reduces", mend="say how many")
            if program.reduces and not found.reduces and found.name != "fbgrep":
                raise CallError(f"{found.name} has no reduces", mend="leave them out")
        given = [spec.data[name].kind for name in program.input]
        if given != list(kinds):
            raise CallError(
                f"{program.application} reads {' and '.join(kinds)}, given are {', '.join(given)}",
                mend="name data sets of these kinds",
            )
        for name in program.input:
            read_size(spec.data[name].size)
    except CallError as error:
        raise InputError(error.what, where=where, mend=error.mend) from None


def _spark_data(spec: ProgramsWorkload, program: ProgramSpec) -> Sequence[str]:
    """The kinds of data that a Spark program reads. Raises CallError for what cannot be run."""
    found = spark.program(program.application)
    spark.settings_of(found, program.settings)
    spark_sizes(spec, program, 1)
    return found.data


def spark_sizes(workload: ProgramsWorkload, program: ProgramSpec, executors: int) -> SparkSizes:
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


def jobs_of_program(spec: ProgramsWorkload, program: ProgramSpec, queue: str, identity: str) -> list[ProgramJob]:
    """The jobs of one program of a workload, submitted one after the other; the first at 0."""
    return _jobs(spec, program, queue, identity, Scale())


def _jobs(spec: ProgramsWorkload, program: ProgramSpec, queue: str, identity: str, by: Scale) -> list[ProgramJob]:
    """The jobs of one run of a program: when the first is submitted is not said yet."""
    am, name = spec.am.resource(), program.type or program.application
    inputs = tuple(spec.data[data] for data in program.input)
    if program.executors is not None:
        executors = program.executors
        count, demand = by.count(executors.count), executors.demand.resource()
        job = JobSpec(
            identity,
            queue,
            "spark",
            am,
            (Stage("tasks", 1, demand, UNKNOWN),),
            name=name,
            executors=count,
            executor_demand=demand,
            executor_slots=executors.slots,
        )
        maps, reduces = by.count(program.maps or 4), by.count(program.reduces or 2)
        return [ProgramJob(job, program, inputs, spec, maps, reduces, count, 1, 1, identity)]
    assert program.maps is not None
    if program.application.lower() in hive.programs():
        demand = (program.map_demand or spec.task).resource()
        job = JobSpec(identity, queue, "dag", am, (Stage("tasks", 1, demand, UNKNOWN),), name=name)
        maps, reduces = by.count(program.maps), by.count(program.reduces or 1)
        return [ProgramJob(job, program, inputs, spec, maps, reduces, 0, 1, 1, identity)]
    found: Application = APPLICATIONS[program.application.lower()]
    maps, reduces = by.count(program.maps), by.count(program.reduces)
    jobs: list[ProgramJob] = []
    for step in range(1, found.steps + 1):
        if step > 1:
            # What the step before wrote, a file a reduce; Grep's sort is into one.
            maps, reduces = max(reduces, 1), 1 if found.name == "grep" else reduces
        demand = (program.map_demand or spec.task).resource()
        stages = [Stage("map", maps, demand, UNKNOWN, priority=20)]
        if reduces:
            demand = (program.reduce_demand or spec.task).resource()
            stages.append(Stage("reduce", reduces, demand, UNKNOWN, ("map",), spec.slow_start, priority=10))
        own = identity if step == 1 else f"{identity}.{step}"
        job = JobSpec(
            own, queue, "mapreduce", am, tuple(stages), name=name, after_job=jobs[-1].spec.id if jobs else None
        )
        jobs.append(ProgramJob(job, program, inputs, spec, maps, reduces, 0, step, found.steps, identity))
    return jobs
