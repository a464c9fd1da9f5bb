"""Bins of MapReduce jobs in an order shuffled by the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from harness.base.documents import Name, Strict
from harness.jobs.workloads.base import (
    LoadedWorkload,
    MapReduceWorkload,
    Scale,
    arrival_times,
    leaf,
    mapreduce,
    milliseconds,
)
from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.traces.spec import MOST_JOBS, MOST_TASKS, ArrivalsSpec, DemandSpec, Tasks, TaskSpec


class BinSpec(Strict):
    """One row of LTYARN Table 3; with demands of its own, of QKnober's Table 1."""

    type: Name
    """Its name in tables."""
    maps: int = Field(ge=1, le=MOST_TASKS)
    """Maps of each job."""
    reduces: Tasks = 0
    """Reduces of each job."""
    jobs: int = Field(ge=1, le=MOST_JOBS)
    """Number of jobs."""
    map_demand: DemandSpec | None = None
    """Instead of `map.demand`."""
    reduce_demand: DemandSpec | None = None
    """Instead of `reduce.demand`."""


class BinsWorkload(MapReduceWorkload):
    """Bins of MapReduce jobs in an order shuffled by the seed (LTYARN section 7.2, Facebook)."""

    has_stages = False

    kind: Literal["bins"]
    arrivals: ArrivalsSpec
    """When the jobs come: `trace` (as the first jobs of a SWIM trace), or `mean_gap_s` (at random)."""
    map: TaskSpec
    """`demand` and `duration` of a map."""
    reduce: TaskSpec
    """`demand` and `duration` of a reduce."""
    bins: list[BinSpec] = Field(min_length=1, max_length=10_000)
    """Rows of jobs; the seed shuffles all jobs."""

    def trace_name(self) -> str | None:
        """The trace that arrivals are taken from; None: no trace."""
        return self.arrivals.trace

    def demands(self) -> Iterator[tuple[str, Resource]]:
        """Yield what each kind of container asks for, with a label for messages."""
        yield from super().demands()
        for row in self.bins:
            for label, demand in (("map", row.map_demand), ("reduce", row.reduce_demand)):
                if demand is not None:
                    yield f"bin {row.type!r}, {label}", demand.resource()

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        """Return the jobs in shuffled order with their arrival times."""
        # Each queue and purpose has its own random stream, so that adding a workload does not change the others.
        bins = [row for row in self.bins for _ in range(row.jobs)]
        random.Random(f"{seed}/{queue}/order of bins").shuffle(bins)
        times = arrival_times(workload, self.arrivals, len(bins), queue, seed)
        return [
            JobSpec(
                id=f"{leaf(queue)}-{number:04d}",
                queue=queue,
                kind="mapreduce",
                am=self.am.resource(),
                stages=mapreduce(
                    row.maps,
                    row.reduces,
                    _sized(self.map, row.map_demand),
                    _sized(self.reduce, row.reduce_demand),
                    self.slow_start,
                    scale,
                    tail=self.tail,
                ),
                name=row.type,
                submit_s=milliseconds(start_s + self.start_s + scale.gaps * time),
            )
            for number, (row, time) in enumerate(zip(bins, times, strict=True), start=1)
        ]


def _sized(task: TaskSpec, demand: DemandSpec | None) -> TaskSpec:
    return task if demand is None else task.model_copy(update={"demand": demand})
