"""Converts traces of other systems to yarnfair's format: the reader, its assumptions, and the nodes for the replay."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from harness.base.documents import LONGEST_S
from harness.base.errors import CallError, InputError
from harness.predict.foreign import Lacks, cluster_file, trace_of_reading
from harness.traces.accounting import executors_mb
from harness.traces.formats import FORMATS, Assumptions, ConvertibleFormat, Reading, TimedJob, TraceFormat
from harness.traces.recorded import JobLine, NodeLine, Trace

#: The node size that is assumed if neither the files nor the user give nodes.
NODE_MB, NODE_VCORES = 65_536, 16
#: Options of `data convert` by the fields of `Assumptions`.
OPTIONS: Mapping[str, str] = {
    "memory_mb": "--memory",
    "vcores": "--vcores",
    "am_memory_mb": "--am-memory",
    "am_vcores": "--am-vcores",
    "queue_by": "--queue-by",
    "machine_memory_mb": "--machine-memory",
    "machine_vcores": "--machine-vcores",
    "cpu_unit": "--cpu-unit",
    "gpus_as_vcores": "--gpus-as-vcores",
    "columns": "--columns",
    "from_s": "--from",
    "until_s": "--until",
}
#: Options that every convertible format accepts.
_EVERYWHERE = frozenset(("from_s", "until_s"))


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes for the replay. ``count`` None: as many as the jobs held at once."""

    count: int | None = None
    memory_mb: int | None = None
    vcores: int | None = None

    @property
    def given(self) -> bool:
        """Return whether the user gives any nodes."""
        return any(getattr(self, one.name) is not None for one in fields(self))


def kind_of(format: TraceFormat) -> str:
    """Return the name of a format for `data convert`."""
    if isinstance(format, ConvertibleFormat):
        return format.kind
    return re.sub(r"[^a-z0-9]+", "-", format.name.lower()).strip("-")


def kinds() -> dict[str, TraceFormat]:
    """Return the formats by their names for `data convert`."""
    return {kind_of(one): one for one in FORMATS}


def converted(
    kind: str,
    paths: Sequence[Path],
    into: Path,
    *,
    assumed: Assumptions,
    cluster: Path | None = None,
    nodes: Nodes | None = None,
) -> Trace:
    """Convert files of another system to a trace of yarnfair.

    Parameters
    ----------
    kind : str
        One of `kinds`.
    paths : sequence of Path
        The files of one trace, or folders of them.
    into : Path
        The trace that is written.
    assumed : Assumptions
        The user's values for what the format leaves open.
    cluster : Path, optional
        A file of nodes and queues, as for ``assess``.
    nodes : Nodes, optional
        Nodes to use instead of those of the files or of a default.

    Raises
    ------
    CallError
        The kind does not exist, or an option does not apply to it.
    InputError
        Files are not in this format, or contain no job.
    """
    nodes = nodes or Nodes()
    format = kinds().get(kind)
    if format is None:
        raise CallError(f"no such kind: {kind[:60]}", where="KIND", hint=f"choose one of {', '.join(kinds())}")
    if cluster is not None and nodes.given:
        raise CallError("both give the nodes", where="--cluster, --nodes", hint="leave out one of them")
    check_target(paths, into)
    header = None if cluster is None else cluster_file(cluster)
    if isinstance(format, ConvertibleFormat):
        _check(format, assumed)
        reading = format.read_files(paths, assumed)
    else:
        if len(paths) != 1 or assumed.given():
            raise CallError(
                f"{format.name} is read from one file or folder, and leaves nothing open that can be set here",
                where="FILES" if len(paths) != 1 else OPTIONS[assumed.given()[0]],
                hint="call it once for each, without options for assumptions",
            )
        reading = format.read(paths[0])
    if header is None and reading.jobs:
        reading = _on_nodes(reading, nodes)
    if assumed.from_s is not None or assumed.until_s is not None:
        span = " ".join(
            f"{word} {value:g} s" for word, value in (("from", assumed.from_s), ("before", assumed.until_s)) if value
        )
        reading = replace(reading, assumed=[*reading.assumed, f"only jobs submitted {span}".rstrip()])
    found = trace_of_reading(reading, format, ", ".join(map(str, paths)), header, into)
    if isinstance(found, Lacks):
        raise InputError(found.what, where=str(paths[0]), hint="give other files, or another span of time")
    return found


def check_target(paths: Sequence[Path], into: Path) -> None:
    """Raise CallError if the new trace would replace one of the files that it is made from."""
    if any(path.exists() and into.exists() and path.samefile(into) for path in paths):
        raise CallError("would be overwritten", where="--out", hint="write the trace to another file")


def _check(format: ConvertibleFormat, assumed: Assumptions) -> None:
    """Raise CallError for options that a format does not leave open, or invalid values."""
    for name in assumed.given():
        if name not in format.settable and name not in _EVERYWHERE:
            open_ones = ", ".join(OPTIONS[one] for one in format.settable)
            raise CallError(f"{format.name} does not leave this open", where=OPTIONS[name], hint=f"it has {open_ones}")
    if assumed.queue_by is not None and assumed.queue_by not in format.queues:
        raise CallError(
            f"{format.name} has no {assumed.queue_by[:40]!r}",
            where="--queue-by",
            hint=f"choose one of {', '.join(format.queues)}",
        )
    if None not in (assumed.from_s, assumed.until_s) and (assumed.from_s or 0.0) >= (assumed.until_s or 0.0):
        raise CallError("no time lies between them", where="--from, --until", hint="give a later --until")


def _on_nodes(reading: Reading, nodes: Nodes) -> Reading:
    """Return the reading with the user's nodes, or else with as many nodes as its jobs held at once."""
    if reading.nodes and not nodes.given:
        return reading
    largest_mb = largest_vcores = 0
    for job in reading.jobs:
        sizes = [(job.line.am.memory_mb, job.line.am.vcores)]
        sizes += [(stage.memory_mb, stage.vcores) for stage in job.line.stages]
        largest_mb = max(largest_mb, *(mb for mb, _ in sizes))
        largest_vcores = max(largest_vcores, *(vcores for _, vcores in sizes))
    # Containers are rounded up to the scheduler's step of 1,024 MB.
    memory_mb = nodes.memory_mb or max(NODE_MB, -(-largest_mb // 1024) * 1024)
    vcores = nodes.vcores or max(NODE_VCORES, largest_vcores)
    count = nodes.count
    sentences = []
    if count is None:
        peak_mb, peak_vcores = peak_of(reading.jobs)
        count = max(math.ceil(peak_mb / memory_mb), math.ceil(peak_vcores / vcores), 1)
        sentences = [
            f"{count:,} nodes of {memory_mb:,} MB and {vcores:,} vcores: as much as the jobs held at once at most, "
            "each by what it held on average",
            *_assumed_of_spark([job.line for job in reading.jobs]),
        ]
    elif not (nodes.memory_mb and nodes.vcores):
        sentences = [f"nodes of {memory_mb:,} MB and {vcores:,} vcores"]
    if count > 100_000:
        raise InputError(
            f"the jobs held {count:,} nodes of {memory_mb:,} MB and {vcores:,} vcores at once",
            hint="give larger nodes: --node-memory, --node-vcores",
        )
    if any(job.line.am.memory_mb or job.line.am.vcores for job in reading.jobs):
        sentences.append("masters may take all of a queue (no limit on their share)")
    line = NodeLine(count=count, memory_mb=memory_mb, vcores=vcores)
    return replace(reading, nodes=[line], conf={}, assumed_of_nodes=sentences)


def _assumed_of_spark(lines: Sequence[JobLine]) -> list[str]:
    """Describe what `peak_of` assumes about Spark applications."""
    spark = [line for line in lines if line.executors is not None]
    whole = sum(line.executors is not None and line.executors.held_mb is None for line in spark)
    unended = sum(line.finished_s is None for line in spark)
    found = []
    if whole:
        found.append(f"for these nodes, Spark applications ({whole:,}) had `executors.count` executors all the time")
    if unended:
        found.append(f"for these nodes, Spark applications without an end ({unended:,}) ran until the last job ended")
    return found


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    """What a job held on average, and from when to when, in seconds."""

    begin_s: float
    end_s: float
    mb: float
    vcores: float


def peak_of(jobs: Sequence[TimedJob]) -> tuple[float, float]:
    """Return the most MB and vcores that jobs held at once, with each job's average while it ran.

    A job with unknown running time counts from its submission, with all its tasks at once. A Spark application holds
    its executors regardless of tasks; without an end, it holds them until the last job's end.
    """
    spans: list[_Span] = []
    unended: list[_Span] = []
    for job in jobs:
        line, executors = job.line, job.line.executors
        submitted_s = job.submitted_ms / 1000.0
        longest_s = max((max(stage.held_s(), default=0.0) for stage in line.stages), default=0.0)
        begin_s = submitted_s + (line.started_s or 0.0)
        end_s = submitted_s + line.finished_s if line.finished_s is not None else begin_s + longest_s
        ran_s = min(max(end_s - begin_s, longest_s, 0.001), LONGEST_S)
        if executors is None:
            work = [(stage, math.fsum(stage.held_s())) for stage in line.stages]
            mb = math.fsum(stage.memory_mb * held_s for stage, held_s in work) / ran_s
            vcores = math.fsum(stage.vcores * held_s for stage, held_s in work) / ran_s
        else:
            mb = executors_mb(executors)
            vcores = mb / executors.memory_mb * executors.vcores
        span = _Span(begin_s, begin_s + ran_s, mb + line.am.memory_mb, vcores + line.am.vcores)
        (unended if executors is not None and line.finished_s is None else spans).append(span)
    last_s = max((one.end_s for one in (*spans, *unended)), default=0.0)
    spans += [replace(one, end_s=last_s) for one in unended]
    held: list[tuple[float, float, float]] = []
    mb = vcores = most_mb = most_vcores = 0.0
    for one in sorted(spans):
        while held and held[0][0] <= one.begin_s:
            _, less_mb, less_vcores = heapq.heappop(held)
            mb, vcores = mb - less_mb, vcores - less_vcores
        heapq.heappush(held, (one.end_s, one.mb, one.vcores))
        mb, vcores = mb + one.mb, vcores + one.vcores
        most_mb, most_vcores = max(most_mb, mb), max(most_vcores, vcores)
    return most_mb, most_vcores
