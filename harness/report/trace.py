"""A run as a trace for Perfetto: Chrome's JSON trace format, written event by event.

A queue is a process; its jobs are slices, stacked if they overlap; its allocation and demand are counters; the
controller's decisions are instants of a separate process. A second of the run is a second of the trace. Format:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.base.errors import CallError, InputError
from harness.base.files import plain, read_json
from harness.base.outputs import write_output_by
from harness.results.catalogue import number
from harness.results.runs import decision_lines, find_runs, kind_of, run_info

Event = dict[str, Any]

#: Columns of allocations.parquet that become counters, with their names.
COUNTERS = {
    "allocated_mb": "allocated (MiB)",
    "demand_mb": "demand (MiB)",
    "running": "running tasks",
    "weight": "weight",
}
#: The integral whose last value is the queue's `resource_seconds`.
ACCUMULATED = "accumulated"
_JOB_COLUMNS = ("job", "type", "queue", "submitted_s", "started_s", "finished_s", "failed", "tasks", "memory_mb_s")
_CONTROLLER = 1
#: Number of table rows that are in memory at once.
_ROWS = 10_000


@dataclass(slots=True)
class _Queue:
    """The state of a queue between two rows: its process, its counters, and when its job rows are free."""

    pid: int
    shown: dict[str, float] = field(default_factory=dict)
    accumulated: tuple[float, float] | None = None  # the last sample not written yet: (time_s, value)
    whole: bool = False  # the integral is written up to the run's end
    free: list[tuple[float, int]] = field(default_factory=list)


class _Trace:
    """The events of one run directory.

    Memory depends on the number of queues and concurrent jobs, not on the run's length.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        info = run_info(run)
        experiment = info.get("experiment")
        kind = experiment.get("kind") if isinstance(experiment, Mapping) else None
        if kind is not None:
            hint = "give a run of YARN's queues; `yarnfair report` without --trace makes the page"
            raise InputError(f"no trace of runs of kind {str(kind)[:60]}", where=str(run), hint=hint)
        summary = read_json(run / "summary.json") if (run / "summary.json").exists() else {}
        end = summary.get("makespan_s")
        self.makespan_s = float(end) if isinstance(end, int | float) else math.inf
        self.end_s = 0.0
        self.queues: dict[str, _Queue] = {}

    def events(self) -> Iterator[Event]:
        yield {"ph": "M", "name": "process_name", "pid": _CONTROLLER, "args": {"name": "controller"}}
        yield from self._samples()
        yield from self._jobs()
        yield from self._decisions()

    def _queue(self, name: str) -> Iterator[Event]:
        """Yield the events that introduce a queue; none if it is known."""
        if name not in self.queues:
            pid = _CONTROLLER + 1 + len(self.queues)
            self.queues[name] = _Queue(pid)
            yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
            yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}

    def _rows(self, table: str, needed: tuple[str, ...], wanted: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        path = self.run / table
        if not path.exists():
            return
        try:
            with pq.ParquetFile(path) as file:
                there = file.schema_arrow.names
                if lacking := [name for name in needed if name not in there]:
                    what = f"columns {', '.join(lacking)} are missing"
                    raise InputError(what, where=str(path), hint="run it again")
                for batch in file.iter_batches(_ROWS, columns=[name for name in wanted if name in there]):
                    yield from batch.to_pylist()
        except (OSError, ValueError) as error:  # pyarrow's own errors are one or the other
            what = f"not a readable parquet file ({str(error).splitlines()[0][:120]})"
            raise InputError(what, where=str(path), hint="run it again") from None

    def _samples(self) -> Iterator[Event]:
        needed = ("time_s", "queue", "allocated_mb", "accumulated_mb_s")
        for row in self._rows("allocations.parquet", needed, (*needed, *COUNTERS)):
            yield from self._queue(row["queue"])
            queue, time_s = self.queues[row["queue"]], row["time_s"]
            self.end_s = max(self.end_s, time_s)
            moved = False
            for column, name in COUNTERS.items():
                value = row.get(column)
                if value is not None and queue.shown.get(column) != value:
                    moved = True
                    queue.shown[column] = value
                    yield _counter(queue.pid, name, time_s, value)
            if queue.whole:
                continue
            # Between two changes the integral is a straight line, so its corners suffice.
            queue.whole = time_s >= self.makespan_s
            if moved or queue.whole:
                yield _counter(queue.pid, ACCUMULATED, time_s, row["accumulated_mb_s"])
                queue.accumulated = None
            else:
                queue.accumulated = (time_s, row["accumulated_mb_s"])
        for queue in self.queues.values():
            if queue.accumulated is not None and not queue.whole:
                yield _counter(queue.pid, ACCUMULATED, *queue.accumulated)

    def _jobs(self) -> Iterator[Event]:
        needed = ("job", "queue", "submitted_s", "finished_s")
        for job in self._rows("jobs.parquet", needed, _JOB_COLUMNS):
            begin_s = number(job["submitted_s"])
            if begin_s is None:
                continue  # the run was cut before its submission
            yield from self._queue(job["queue"])
            queue = self.queues[job["queue"]]
            finished_s, started_s = number(job["finished_s"]), number(job.get("started_s"))
            end_s = finished_s if finished_s is not None else max(self.end_s, begin_s)
            if queue.free and queue.free[0][0] <= begin_s:
                row = heapq.heappop(queue.free)[1]
            else:
                row = len(queue.free) + 1
                name = {"name": f"jobs {row}"}
                yield {"ph": "M", "name": "thread_name", "pid": queue.pid, "tid": row, "args": name}
            heapq.heappush(queue.free, (end_s, row))
            state = "failed" if job.get("failed") else "ended" if finished_s is not None else "open"
            said: Event = {"state": state}
            said |= {key: job[key] for key in ("type", "tasks", "memory_mb_s") if key in job}
            slice_: Event = {"ph": "X", "cat": "job", "pid": queue.pid, "tid": row, "ts": _us(begin_s)}
            yield {**slice_, "name": str(job["job"]), "dur": _us(end_s - begin_s), "args": said}
            waits_s = (started_s if started_s is not None else end_s) - begin_s
            if 0 < waits_s <= end_s - begin_s:
                yield {**slice_, "name": "waits", "cat": "waiting", "dur": _us(waits_s)}

    def _decisions(self) -> Iterator[Event]:
        for _, entry in decision_lines(self.run):
            time_s = number(entry.get("time_s")) if entry is not None else None
            if entry is not None and time_s is not None:
                said = {key: value for key, value in entry.items() if key != "time_s"}
                instant = {"ph": "i", "s": "t", "cat": "decision", "pid": _CONTROLLER, "tid": 1}
                yield {**instant, "name": kind_of(entry), "ts": _us(time_s), "args": said}


def _us(seconds: float) -> float:
    """Return microseconds, rounded to the nanosecond as in Perfetto."""
    return round(seconds * 1e6, 3)


def _counter(pid: int, name: str, time_s: float, value: float) -> Event:
    return {"ph": "C", "name": name, "pid": pid, "ts": _us(time_s), "args": {"value": value}}


@dataclass(frozen=True, slots=True)
class WrittenTrace:
    """Size of a written trace, and number of its events."""

    size: int
    events: int


def write_trace(run: Path, out: Path) -> WrittenTrace:
    """Write the trace of one run to `out` atomically; the same run gives the same bytes.

    Raises CallError if `run` has several runs; InputError if it is no run, its type has no queues, a file in it is
    damaged, or `out` cannot be written.
    """
    found = find_runs(run) if run.is_dir() else [run]
    if len(found) > 1:
        named = ", ".join(path.name for path in found[:3])
        raise CallError(f"a trace is of one run, and {len(found)} are here", where=str(run), hint=f"give one: {named}")
    events = _Trace(found[0]).events()
    count = itertools.count()

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write('{"displayTimeUnit":"ms","traceEvents":[')
            for event in events:
                stream.write(",\n" if next(count) else "\n")
                stream.write(json.dumps(plain(event), ensure_ascii=False, allow_nan=False, separators=(",", ":")))
            stream.write("\n]}\n")

    size = write_output_by(out, write, hint="choose another --trace FILE")
    return WrittenTrace(size, next(count))
