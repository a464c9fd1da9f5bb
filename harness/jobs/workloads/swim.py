"""A whole SWIM trace, or one part of a trace that is divided among several queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Name, Positive
from harness.jobs.workloads.base import LoadedWorkload, MapReduceWorkload, Scale, leaf, milliseconds, swim_rows
from harness.model.jobs import JobSpec
from harness.traces.spec import TaskSpec
from harness.traces.swim import swim_jobs


class TraceWorkload(MapReduceWorkload):
    """A whole SWIM trace, read during the run (harness.traces.swim describes how reduces are modelled).

    With ``parts``, only every ``parts``-th job from number ``part`` on: the trace is divided among that many queues.
    """

    has_stages = False

    kind: Literal["swim"]
    trace: Name
    """The SWIM trace."""
    map: TaskSpec
    """`demand` and `duration` of a map. A job has max(1, ⌈input bytes / 64 MiB⌉)."""
    reduce: TaskSpec
    """`demand` and `duration` of a reduce. One for each 10⁹ shuffled bytes begun, at most 999; none without."""
    first: int | None = Field(default=None, ge=1)
    """Number of its first jobs that are read; none: all."""
    parts: int = Field(default=1, ge=1, le=100_000)
    """Only every `parts`-th job."""
    part: int = Field(default=1, ge=1)
    """Number of the first job that is taken, from 1."""
    time_scale: Positive = 1.0
    """A factor on its times."""

    @model_validator(mode="after")
    def _part_is_one_of_them(self) -> Self:
        if self.part > self.parts:
            raise ValueError(f"part {self.part} of {self.parts}")
        return self

    def trace_name(self) -> str | None:
        """The SWIM trace."""
        return self.trace

    def build(
        self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale
    ) -> Iterator[JobSpec]:
        """Yield the trace's jobs as they are read."""
        path = workload.trace()
        assert path is not None
        rows: Iterator[Any] = swim_rows(path, self.first)
        rows = islice(rows, self.part - 1, None, self.parts)
        jobs = swim_jobs(
            rows,
            queue=queue,
            of_map=(self.map.demand.resource(), self.map.duration.duration(scale.durations)),
            of_reduce=(self.reduce.demand.resource(), self.reduce.duration.duration(scale.durations)),
            am=self.am.resource(),
            slow_start=self.slow_start,
            tail=self.tail,
            start_s=start_s + self.start_s,
            time_scale=self.time_scale * scale.gaps,
        )
        for job in jobs:
            stages = tuple(replace(stage, tasks=scale.count(stage.tasks)) for stage in job.stages)
            yield replace(job, id=f"{leaf(queue)}-{job.id}", stages=stages, submit_s=milliseconds(job.submit_s))
