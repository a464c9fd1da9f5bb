"""Jobs of a recorded trace."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from harness.base.documents import Name
from harness.jobs.workloads.base import LoadedWorkload, Scale, Workload, age, scaled
from harness.model.jobs import JobSpec
from harness.model.resources import increments
from harness.traces.nodes import largest_mb
from harness.traces.recorded import Header, JobLine, Trace, read_trace


@lru_cache(maxsize=2)
def _trace(path: Path, *_: int) -> Trace:
    """Return a trace, cached while the file does not change.

    Every queue of a replay reads its own jobs, more than once.
    """
    return read_trace(path)


def _sizes_mb(header: Header) -> tuple[int, int]:
    """Return the largest container that a node holds, a multiple of the step, and the step.

    If the largest node is smaller than one step, the first is the node's size.
    """
    most_mb, step_mb = largest_mb(header.nodes, header.changes or ()), increments(header.conf).memory_mb
    return most_mb // step_mb * step_mb or most_mb, step_mb


def within(job: JobLine, most_mb: int, step_mb: int) -> JobLine:
    """Return the job with sizes of ``integrals`` limited to a number of MB, each rounded to the nearest grantable size.

    The ResourceManager's sums are whole seconds: a single container of 1.9 s, which counts as one vcore-second, appears
    with nearly twice its memory; many short containers of 512 MB appear with some 530, which the scheduler would round
    up to 768.
    """
    if job.detail != "integrals":
        return job

    def held(memory_mb: int) -> dict[str, int]:
        return {"memory_mb": min(max(round(memory_mb / step_mb), 1) * step_mb, most_mb)}

    am = job.am.model_copy(update=held(job.am.memory_mb))
    stages = [stage.model_copy(update=held(stage.memory_mb)) for stage in job.stages]
    return job.model_copy(update={"am": am, "stages": stages})


class RecordedWorkload(Workload):
    """Jobs of a recorded trace (harness.traces.recorded): those of the queue ``only``."""

    lists_tasks = True

    kind: Literal["recorded"]
    trace: Name
    """Of [`yarnfair record`](trace.md)."""
    only: Name
    """The queue's full path there."""

    def trace_name(self) -> str | None:
        """The recorded trace."""
        return self.trace

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        """Return the trace's jobs of the queue ``only``."""
        path = workload.trace()
        assert path is not None
        wanted = self.only if self.only.startswith("root.") else f"root.{self.only}"
        trace = _trace(path, *age(path))
        sizes_mb = _sizes_mb(trace.header)
        jobs = [within(job, *sizes_mb).spec() for job in trace.jobs if job.queue == wanted]
        own = {job.id for job in jobs}
        # A job that follows a job of another queue is submitted at its recorded time.
        return [
            replace(job, queue=queue, after_job=job.after_job if job.after_job in own else None)
            for job in scaled(jobs, start_s + self.start_s, scale)
        ]
