"""The base of all workload types: a model of the workload's part of a file, which creates the jobs.

A type is a class in a file of its own and a line in `harness.jobs.workloads.KINDS`. All random choices come from the
seed. Task durations are not drawn here, because the simulator draws each when the task starts. harness.experiments
decides which queue runs which workload.
"""

from __future__ import annotations

import math
import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from harness.base.documents import KeyPath, Seconds, Strict, YamlDocument
from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, Stage, mapreduce_stages
from harness.model.resources import Resource
from harness.traces.spec import ArrivalsSpec, DemandSpec, TaskSpec
from harness.traces.swim import SwimRow, read_swim


class Workload(Strict):
    """The jobs of one queue, as a file describes them."""

    #: Whether it is a trace that lists each task. Then numbers of tasks cannot be scaled, and the trace gives the sizes
    #: of containers.
    lists_tasks: ClassVar[bool] = False
    #: Whether jobs may have other stages than maps and reduces.
    has_stages: ClassVar[bool] = True

    kind: str
    """The type of the workload."""
    about: str = ""
    """A description in words."""
    start_s: Seconds = 0.0
    """Added to every submission."""

    def trace_name(self) -> str | None:
        """Return the trace file that it reads, if any, relative to the workload's folder."""
        return None

    def demands(self) -> Iterator[tuple[str, Resource]]:
        """Yield (label, size) of each type of container that it requests.

        A trace that lists each task yields nothing here, because the sizes are in the trace.
        """
        for name in type(self).model_fields:
            said = getattr(self, name)
            demand = said.demand if isinstance(said, TaskSpec) else said
            if isinstance(demand, DemandSpec):
                yield name, demand.resource()

    @abstractmethod
    def build(
        self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale
    ) -> Iterable[JobSpec]:
        """Return the jobs of one queue: a list, or for a whole trace an iterator in ascending order of submission.

        ``queue`` is the leaf's full path, ``start_s`` is added to every submission. Ids are the same for every policy:
        the trace's own (``sls``, ``recorded``), or else ``<leaf>-<number>``. Raises InputError with file, line and key.
        """


class MapReduceWorkload(Workload):
    """Settings of AMs and reduces that workloads without a list of tasks share."""

    am: DemandSpec
    """A master's container: `memory_mb`, `vcores`."""
    slow_start: float = Field(default=0.05, ge=0, le=1, allow_inf_nan=False)
    """The part of the maps that must have ended before reduces are asked for; the default is Hadoop's."""
    tail: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """The part of a reduce's duration that it works only when all maps have ended: its sort and reduce phases. With 0
    all of its work may overlap with maps. On MRv1's slots a reduce works after its fetch, whatever stands here."""


@dataclass(frozen=True, slots=True)
class LoadedWorkload:
    """A workload, its file (for messages) and the folder to which the paths of its traces are relative."""

    spec: Workload
    document: YamlDocument
    at: KeyPath
    folder: Path

    def where(self, *path: str | int) -> str:
        """Return ``file:line: key`` for messages."""
        full = (*self.at, *path)
        return f"{self.document.where(full)}: {'.'.join(map(str, full))}" if full else self.document.where()

    def trace(self) -> Path | None:
        """Return the trace file that the workload reads, if any."""
        name = self.spec.trace_name()
        return None if name is None else self.folder / name


@dataclass(frozen=True, slots=True)
class Scale:
    """Factors on a workload: numbers of tasks (at least 1 remains), durations of tasks, times between submissions.

    Traces that list each task (``sls``, ``recorded``) take no factor on numbers of tasks (`check_scale`).
    """

    tasks: float = 1.0
    durations: float = 1.0
    gaps: float = 1.0

    def count(self, tasks: int) -> int:
        """Return a scaled number of tasks; a number above 0 stays above 0."""
        return max(1, math.floor(tasks * self.tasks + 0.5)) if tasks else 0


def milliseconds(seconds: float) -> float:
    """Return seconds as whole milliseconds (rounded half up), as the simulator counts time."""
    return math.floor(seconds * 1000.0 + 0.5) / 1000.0


def leaf(queue: str) -> str:
    """Return the last part of a queue's path."""
    return queue.rpartition(".")[2]


def mapreduce(
    maps: int,
    reduces: int,
    map_task: TaskSpec,
    reduce_task: TaskSpec,
    slow_start: float,
    by: Scale,
    *,
    tail: float = 0.0,
) -> tuple[Stage, ...]:
    """Return MapReduce's stages, scaled; ``slow_start`` and ``tail`` are a workload's (`MapReduceWorkload`)."""
    both = (map_task, reduce_task)
    of_map, of_reduce = ((task.demand.resource(), task.duration.duration(by.durations)) for task in both)
    return mapreduce_stages(by.count(maps), by.count(reduces), of_map, of_reduce, slow_start, tail)


def age(path: Path) -> tuple[int, ...]:
    """Return a value that changes when a file changes, as the key of cached contents."""
    try:
        found = path.stat()
    except OSError:
        return ()  # reading the file reports the reason
    return found.st_mtime_ns, found.st_size


#: A trace of at most this many bytes is cached from one run of a process to the next.
KEPT_BYTES = 16 << 20


def swim_rows(path: Path, first: int | None) -> Iterator[SwimRow]:
    """Return the first rows of a SWIM trace, or all."""
    known = age(path)
    if known and known[1] <= KEPT_BYTES:
        return iter(_kept_rows(path, first, *known))
    return islice(read_swim(path), first)


@lru_cache(maxsize=4)
def _kept_rows(path: Path, first: int | None, *_: int) -> tuple[SwimRow, ...]:
    return tuple(islice(read_swim(path), first))


def arrival_times(workload: LoadedWorkload, arrivals: ArrivalsSpec, count: int, queue: str, seed: int) -> list[float]:
    """Return the arrival times of jobs, in seconds: those of a SWIM trace's first jobs, or random with a mean gap.

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
    times = [float(row.submit_s) for row in swim_rows(trace, count)]
    if len(times) < count:
        what = f"the trace has {len(times)} jobs, the bins have {count}"
        raise InputError(what, where=workload.where("arrivals", "trace"), hint="take a longer trace or fewer jobs")
    return times


def scaled(jobs: Iterable[JobSpec], shift_s: float, by: Scale) -> Iterator[JobSpec]:
    """Return a trace's jobs with times scaled and then shifted.

    The start-up times of AMs and executors are not scaled.
    """
    # Equal jobs of a trace share their stages, which are stored once; the scaled jobs must share them, too.
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
