"""Workloads of programs as jobs: the application of each, its data, its size, and its time of submission.

One YARN application is one job: Grep and the join, which are two Hadoop jobs one after the other, are two jobs, ``x``
and ``x.2``. The durations of tasks are unknown before the run; the engines (harness.jobs.engines) run the programs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Positive
from harness.base.errors import CallError, InputError
from harness.jobs.data.generate import read_size
from harness.jobs.engines import ENGINES, engine, engine_of, members
from harness.jobs.engines.base import Answers, ProgramJob, ProgramRun, Sizing
from harness.jobs.workloads.base import LoadedWorkload, Scale, Workload, arrival_times, milliseconds
from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.traces.spec import ArrivalsSpec, DataSpec, DemandSpec, ProgramSpec, SubmissionSpec

#: No scaling.
WHOLE = Scale()


class ProgramsWorkload(Workload):
    """Programs that compute, on a real cluster.

    They are submitted in turn (``submission``), or in an order shuffled by the seed, as a trace's first jobs arrive
    (``arrivals``).
    """

    kind: Literal["programs"]
    am: DemandSpec
    task: DemandSpec
    slow_start: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    data: dict[Name, DataSpec] = Field(min_length=1, max_length=100)
    submission: SubmissionSpec | None = None
    arrivals: ArrivalsSpec | None = None
    programs: list[ProgramSpec] = Field(min_length=1, max_length=10_000)
    rounds: int = Field(default=1, ge=1, le=100_000)
    #: A factor on the number of jobs of each program; at least one remains.
    jobs_factor: Positive = 1.0
    #: ``keep``: answers are checked and kept in the run directory; ``leave``: neither, for data larger than this
    #: machine's memory; None: answers are only checked.
    answers: Answers = None

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
        """The trace that arrivals are taken from; None: no trace."""
        return self.arrivals.trace if self.arrivals is not None else None

    def demands(self) -> Iterator[tuple[str, Resource]]:
        """Yield what each kind of container asks for, with a label for messages."""
        yield from super().demands()
        for program in self.programs:
            name = program.type or program.application
            if program.executors is not None:
                yield f"{name}, executors", program.executors.demand.resource()
            for label, demand in (("map", program.map_demand), ("reduce", program.reduce_demand)):
                if demand is not None:
                    yield f"{name}, {label}", demand.resource()

    def sizing(self) -> Sizing:
        """Return the sizing that it gives for all of its programs."""
        return Sizing(self.am.resource(), self.task.resource(), self.slow_start, self.answers)

    def engines(self) -> set[str]:
        """The names of the engines that run its programs."""
        names = {one.application.lower() for program in self.programs for one in members_of(program)}
        return {name for name in ENGINES if not names.isdisjoint(engine(name).programs())}

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        """Return the programs' jobs."""
        return [one.spec for one in programs_of(workload, queue=queue, seed=seed, start_s=start_s, scale=scale)]


def members_of(program: ProgramSpec) -> list[ProgramSpec]:
    """Return a program, or the programs of a group in turn."""
    return [program.model_copy(update={"application": name}) for name in members(program.application)]


def programs_of(
    workload: LoadedWorkload, *, queue: str, seed: int, start_s: float = 0.0, scale: Scale | None = None
) -> list[ProgramJob]:
    """Return the jobs of one queue, in order of submission; ids are ``<leaf>-<number>``, the same for every policy.

    Raises InputError with file, line and key: an unknown application, data of a type that it does not read ...
    """
    spec, by = workload.spec, scale or Scale()
    assert isinstance(spec, ProgramsWorkload)
    if by.durations != 1.0:
        raise InputError(
            "durations of programs cannot be scaled", where=workload.where("kind"), hint="take smaller data sets"
        )
    for at, program in enumerate(spec.programs):
        for member in members_of(program):
            _check(workload, spec, member, at)
    programs = [
        member
        for program in spec.programs
        for _ in range(max(1, math.floor(program.jobs * spec.jobs_factor + 0.5)))
        for member in members_of(program)
    ] * spec.rounds
    first_s = start_s + spec.start_s
    times: list[float | None]
    if spec.arrivals is not None:
        # The same shuffle as for bins (harness.jobs.workloads.bins).
        random.Random(f"{seed}/{queue}/order of bins").shuffle(programs)
        times = list(arrival_times(workload, spec.arrivals, len(programs), queue, seed))
    else:
        assert spec.submission is not None
        every_s = spec.submission.every_s
        times = [number * every_s if every_s is not None else None for number in range(len(programs))]
    jobs: list[ProgramJob] = []
    for number, (program, time_s) in enumerate(zip(programs, times, strict=True), start=1):
        one = jobs_of_program(spec, program, queue, f"{queue.rpartition('.')[2]}-{number:04d}", by)
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
    """Raise InputError for a program that cannot be run."""
    try:
        engine = engine_of(program.application)
        engine.check(program, spec.sizing())
        kinds = engine.programs()[program.application.lower()].data
        given = [spec.data[name].kind for name in program.input]
        if given != list(kinds):
            raise CallError(
                f"{program.application} reads {' and '.join(kinds)}, given are {', '.join(given)}",
                hint="name data sets of these kinds",
            )
        for name in program.input:
            read_size(spec.data[name].size)
    except CallError as error:
        raise InputError(error.what, where=workload.where("programs", at), hint=error.hint) from None


def jobs_of_program(
    spec: ProgramsWorkload, program: ProgramSpec, queue: str, identity: str, by: Scale = WHOLE
) -> list[ProgramJob]:
    """Return the jobs of one run of a program, in turn, without the submission time of the first."""
    inputs = tuple(spec.data[data] for data in program.input)
    run = ProgramRun(program, inputs, spec.sizing(), queue, identity, by.count)
    return engine_of(program.application).jobs(run)
