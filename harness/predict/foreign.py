"""Reads traces that yarnfair did not record as recordings: every format of `harness.traces.formats`.

No format has the queues' weights, and most have no cluster: a user's file or a ResourceManager adds these. `Lacks`
names what is missing in one line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.documents import read_yaml, validated
from harness.base.errors import InputError
from harness.base.files import reading
from harness.predict.simulated_run import trace_of_run
from harness.traces.formats import Reading, TraceFormat, Unreadable, format_of, head_of
from harness.traces.recorded import (
    Header,
    JobLine,
    LeftOutLine,
    NoteLine,
    Trace,
    put_trace,
    read_trace,
    with_used,
)
from harness.traces.spec import DelaysSpec

#: Trace format -> what none of its traces can contain. SLS is not listed, because its times are those of containers.
_LACKING = dict.fromkeys(
    ("job history", "Rumen"),
    "what containers took besides the tasks' times (a recording with --history has it)",
)


@dataclass(frozen=True, slots=True)
class Lacks:
    """Why a trace allows no verdict, in one line. ``file``: whether a file of nodes and queues would help."""

    what: str
    file: bool = False


def cluster_file(path: Path) -> Header:
    """Read a user's file of nodes and queues: YAML with the keys of a trace's first line. Raises InputError."""
    document = read_yaml(path)
    try:
        return validated(Header, document)
    except InputError as error:
        hint = "correct it (docs/how-to/assess.md shows such a file)"
        close = error.hint if error.hint and error.hint.startswith("did you mean") else None
        raise InputError(error.what, where=error.where, hint=close or hint) from None


def any_trace(path: Path, cluster: Header | None, into: Path) -> Trace | Lacks:
    """Read a trace of yarnfair, a run directory, or a foreign trace.

    A simulated run and a foreign trace are converted to a trace of yarnfair, which is written to ``into``. A foreign
    trace gets the nodes and queues of ``cluster`` (None: its own, if it has any). Raises InputError for an unreadable
    file or another format.
    """
    if path.is_dir():
        if (path / "trace.jsonl").exists():
            return read_trace(path / "trace.jsonl")
        if (path / "run.json").exists():
            return trace_of_run(path, into)
    with reading(path):
        head = head_of(path)
        if b'"trace"' in head[:200] and b'"yarnfair"' in head[:200]:
            return read_trace(path)
        found = format_of(path, head)
        if isinstance(found, Unreadable):
            raise InputError(found.what, where=str(path), hint=found.hint)
        if found is None and path.is_dir():
            raise _no_trace_in(path)
        if found is None:
            # The reader of our own format reports the problem.
            return read_trace(path)
        return trace_of_reading(found.read(path), found, str(path), cluster, into)


def _no_trace_in(folder: Path) -> InputError:
    """Describe what a folder without a trace contains instead, by its first files."""
    for file in sorted(one for one in folder.rglob("*") if one.is_file())[:20]:
        found = format_of(file, head_of(file))
        if isinstance(found, Unreadable):
            return InputError(f"no trace: {file.name} is {found.what}", where=str(folder), hint=found.hint)
        if isinstance(found, TraceFormat):
            return InputError(
                "no trace: of a folder, MapReduce job history (*.jhist) and Spark event logs are read",
                where=str(folder),
                hint=f"give the file itself: {file}",
            )
    return InputError(
        "no trace: it holds no trace.jsonl, run.json, *.jhist or Spark event log",
        where=str(folder),
        hint="give a run directory, or a folder of MapReduce job history files or of Spark's event logs",
    )


def trace_of_reading(
    reading: Reading, format: TraceFormat, path: str, cluster: Header | None, into: Path
) -> Trace | Lacks:
    """Write a reader's result for a foreign trace as a trace of yarnfair to ``into``."""
    left_out = reading.account.lines()
    if not reading.jobs:
        why = "; ".join(dict.fromkeys(line.reason for line in left_out)) or "it is empty"
        return Lacks(f"the {format.name} trace has no job that can be played ({why})")
    if cluster is None and not reading.nodes:
        what = f"the {format.name} trace says nothing about the cluster's nodes and the queues' weights"
        return Lacks(what, file=True)
    return _as_ours(reading, left_out, cluster, f"{path} ({format.name})", into)


def played_trace(path: Path, cluster: Path | None, into: Path) -> Trace:
    """Read as `any_trace`, for callers that can only replay: ``cluster`` is the user's file.

    Missing data are an InputError.
    """
    found = any_trace(path, None if cluster is None else cluster_file(cluster), into)
    if isinstance(found, Lacks):
        hint = "give --cluster FILE (docs/how-to/assess.md shows one)" if found.file else "give another trace"
        raise InputError(found.what, where=str(path), hint=hint)
    return found


def _as_ours(reading: Reading, left_out: list[LeftOutLine], cluster: Header | None, source: str, into: Path) -> Trace:
    """Write the trace and read it again, so that an invalid one is refused like any other."""
    zero_ms = min(job.submitted_ms for job in reading.jobs)
    jobs = [_moved(job.line, (job.submitted_ms - zero_ms) / 1000.0) for job in reading.jobs]
    queues = cluster.queues if cluster is not None else {}
    parents = {path.rpartition(".")[0] for path in queues}
    for job in jobs:
        if job.queue in parents:
            raise InputError(
                f"its queue {job.queue} has queues below it on the cluster",
                where=source,
                hint="give the cluster on which it was recorded",
            )
    ordered = with_used(queues, (job.queue for job in jobs))
    more: dict[str, list[Any]] = {"left_out": left_out, "assumed": [*reading.assumed], "unknown": [*reading.unknown]}
    if cluster is None:
        more["assumed"] += reading.assumed_of_nodes
        header = Header(source=source, nodes=[*reading.nodes], queues=ordered, max_am_share=-1.0, conf={**reading.conf})
    else:
        header = cluster.model_copy(update={"source": source, "queues": ordered, "zero_ms": None})
        if "max_am_share" not in cluster.model_fields_set and not any(
            job.am.memory_mb or job.am.vcores for job in jobs
        ):
            # The Capacity Scheduler counts its smallest container for an application without an AM.
            header = header.model_copy(update={"max_am_share": -1.0})
    # A user's setting takes precedence over one that the format needs.
    capacity = {**reading.capacity, **(header.capacity or {})}
    delays = reading.delays.model_dump(exclude_none=True) | header.delays.model_dump(exclude_none=True)
    header = header.model_copy(update={**more, "capacity": capacity or None, "delays": DelaysSpec(**delays)})
    until_s = max(job.finished_s or job.submit_s for job in jobs)
    lacking = _LACKING.get(reading.format)
    notes = () if lacking is None else (NoteLine(note=lacking, from_s=0.0, until_s=until_s),)
    try:
        return replace(put_trace(into, header, jobs), notes=notes)
    except InputError as error:
        # The message names the user's file, not the one that was made from it.
        into.unlink(missing_ok=True)
        place = "" if error.where is None else f" (in the trace made of it, {error.where.removeprefix(f'{into}:')})"
        raise InputError(f"{error.what}{place}", where=source, hint=error.hint) from None


def _moved(job: JobLine, by_s: float) -> JobLine:
    times = {
        name: round(max(value + by_s, 0.0), 3)
        for name in ("submit_s", "started_s", "finished_s")
        if (value := getattr(job, name)) is not None
    }
    return job.model_copy(update=times)
