"""Workloads: from a file to the jobs of one queue. Each type has one file; `KINDS` names the types."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.base.documents import KeyPath, YamlDocument, read_yaml, validated
from harness.base.errors import InputError
from harness.jobs.workloads.base import LoadedWorkload, Scale, Workload
from harness.model.jobs import JobSpec

#: Value of ``kind`` -> "module:class", imported on demand.
KINDS: dict[str, str] = {
    "bins": "harness.jobs.workloads.bins:BinsWorkload",
    "sequence": "harness.jobs.workloads.sequence:SequenceWorkload",
    "swim": "harness.jobs.workloads.swim:TraceWorkload",
    "sls": "harness.jobs.workloads.sls:SlsWorkload",
    "recorded": "harness.jobs.workloads.recorded:RecordedWorkload",
    "programs": "harness.jobs.workloads.programs:ProgramsWorkload",
}


def workload_class(kind: str) -> type[Workload]:
    """Return the class of a type of workload."""
    found: type[Workload] = pkgutil.resolve_name(KINDS[kind])
    return found


def workload_of(document: YamlDocument, *, folder: Path, data: object = None, at: KeyPath = ()) -> LoadedWorkload:
    """Return the workload that `document` (or `data` at key path `at` of it) describes.

    Raises InputError with file, line and key.
    """
    found = document.data if data is None else data
    if not isinstance(found, dict):
        raise InputError("a workload is a mapping", where=document.where(at), hint="see docs/reference/workloads.md")
    kind = found.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = "give kind: one of " + ", ".join(KINDS)
        raise InputError(f"workload of kind {str(kind)[:40]!r}", where=document.where((*at, "kind")), hint=hint)
    return LoadedWorkload(validated(workload_class(kind), document, data=found, at=at), document, at, folder)


def load_workload(path: Path, but: Mapping[str, object] | None = None) -> LoadedWorkload:
    """Return the workload of a file, with the keys in `but` changed.

    Raises InputError with file, line and key.
    """
    document = read_yaml(path)
    if but and isinstance(document.data, dict):
        return workload_of(document, folder=path.parent, data={**document.data, **but})
    return workload_of(document, folder=path.parent)


def check_scale(spec: Workload, scale: Scale, where: str) -> None:
    """Raise InputError for a factor that a workload of this type cannot have."""
    if spec.lists_tasks and scale.tasks != 1.0:
        what = f"scale.tasks is {scale.tasks:g}, but a trace of kind {spec.kind} lists its tasks one by one"
        raise InputError(what, where=where, hint="leave tasks out; durations and gaps may be scaled")


def build_jobs(
    workload: LoadedWorkload, *, queue: str, seed: int, start_s: float = 0.0, scale: Scale | None = None
) -> Iterable[JobSpec]:
    """Return the jobs of one queue, as `Workload.build` describes. Raises InputError with file, line and key."""
    by = scale or Scale()
    check_scale(workload.spec, by, workload.where("trace"))
    return workload.spec.build(workload, queue=queue, seed=seed, start_s=start_s, scale=by)
