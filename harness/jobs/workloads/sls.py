"""Jobs of a Hadoop SLS trace."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from harness.base.documents import Name
from harness.base.errors import InputError
from harness.jobs.workloads.base import LoadedWorkload, Scale, Workload, age, scaled
from harness.model.jobs import JobSpec
from harness.traces.sls import load_jobs


@lru_cache(maxsize=2)
def _jobs(path: Path, *_: int) -> list[JobSpec]:
    """Return the jobs of a trace, cached while the file does not change: every queue and run of a sweep reads them."""
    return load_jobs(path)


class SlsWorkload(Workload):
    """Jobs of a Hadoop SLS trace (JSON); with ``only``, only the jobs of that queue."""

    lists_tasks = True

    kind: Literal["sls"]
    trace: Name
    """Hadoop SLS' JSON."""
    only: Name | None = None
    """Only the jobs of this queue of the trace; none: all."""

    def trace_name(self) -> str | None:
        """The SLS trace."""
        return self.trace

    def build(self, workload: LoadedWorkload, *, queue: str, seed: int, start_s: float, scale: Scale) -> list[JobSpec]:
        """Return the trace's jobs."""
        path = workload.trace()
        assert path is not None
        jobs = _jobs(path, *age(path))
        if self.only is not None:
            wanted = self.only if self.only.startswith("root.") else f"root.{self.only}"
            jobs = [job for job in jobs if job.queue == wanted]
            if not jobs:
                raise InputError(f"no job of queue {self.only!r}", where=str(path), hint="correct 'only'")
        return [replace(job, queue=queue) for job in scaled(jobs, start_s + self.start_s, scale)]
