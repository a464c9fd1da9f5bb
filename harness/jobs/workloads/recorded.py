"""Jobs of a recorded trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from harness.base.documents import Name
from harness.jobs.recorded import read_trace
from harness.jobs.workloads.base import LoadedWorkload, Scale, Workload, scaled
from harness.model.jobs import JobSpec


class RecordedWorkload(Workload):
    """Jobs of a recorded trace (harness.jobs.recorded): those of the queue ``only``."""

    lists_tasks = True

    kind: Literal["recorded"]
    trace: Name
    only: Name

    def trace_name(self) -> str | None:
        return self.trace

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        path = workload.trace()
        assert path is not None
        wanted = self.only if self.only.startswith("root.") else f"root.{self.only}"
        jobs = [job.spec() for job in read_trace(path).jobs if job.queue == wanted]
        own = {job.id for job in jobs}
        # What follows a job of another queue comes when it came.
        return [
            replace(job, queue=queue, after_job=job.after_job if job.after_job in own else None)
            for job in scaled(jobs, start_s + self.start_s, scale)
        ]
