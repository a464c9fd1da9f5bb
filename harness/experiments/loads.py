"""A queue's workload in an experiment: the containers that it requests, and its part of the experiment's hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.files import open_whole, reading
from harness.experiments.spec import Experiment
from harness.jobs.workloads import build_jobs
from harness.jobs.workloads.base import LoadedWorkload, Scale
from harness.jobs.workloads.programs import ProgramsWorkload
from harness.model.resources import Resource


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """One leaf's workload, with its start and scale."""

    queue: str  # full path
    workload: LoadedWorkload
    start_s: float
    scale: Scale


def program_loads(loads: Sequence[QueueLoad]) -> list[tuple[QueueLoad, ProgramsWorkload]]:
    """Return the loads of programs that compute, and these programs."""
    return [(load, spec) for load in loads if isinstance(spec := load.workload.spec, ProgramsWorkload)]


def sizes_of(load: QueueLoad) -> Iterator[tuple[str, Resource]]:
    """Return (description, size) of every type of container that a workload asks for."""
    yield from load.workload.spec.demands()
    if load.workload.spec.lists_tasks:
        for job in build_jobs(load.workload, queue=load.queue, seed=0):
            yield f"job {job.id}, am", job.am
            for stage in job.stages:
                yield f"job {job.id}, {stage.name}", stage.demand


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file. Raises InputError if it is unreadable."""
    with reading(path), open_whole(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def resolved_document(spec: Experiment, loads: Sequence[QueueLoad]) -> dict[str, Any]:
    """Return everything on which an experiment's results depend, except policies and seeds.

    A key that is absent or null is left out, so that a new optional key changes no hash.
    """
    left_out = {"policies", "seed", "workloads", "period_s"}
    document = spec.model_dump(mode="json", exclude=left_out, exclude_none=True)
    document["workloads"] = {}
    for load in loads:
        trace = load.workload.trace()
        document["workloads"][load.queue] = {
            "start_s": load.start_s,
            "scale": {"tasks": load.scale.tasks, "durations": load.scale.durations, "gaps": load.scale.gaps},
            "workload": load.workload.spec.model_dump(mode="json", exclude_none=True),
            **({"trace_sha256": file_hash(trace)} if trace is not None else {}),
        }
    return document
