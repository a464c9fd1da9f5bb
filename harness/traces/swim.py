"""SWIM's Facebook trace (FB-2009, one row a job): strict loading, row by row, and the whole trace as MapReduce jobs.

The trace has bytes and submission times, but neither task durations nor numbers of reduces; `swim_jobs` describes their
replacements. harness.jobs.workloads decides which part of which trace a workload uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import InputError
from harness.base.files import open_whole, reading
from harness.model.jobs import JobSpec, Work, mapreduce_stages
from harness.model.resources import Resource

#: One map reads one split of this many bytes (64 MiB, Hadoop's block size of the papers' time).
SPLIT_BYTES = 64 * 2**20
#: One reduce for this much shuffled data (hive.exec.reducers.bytes.per.reducer until Hive 0.13) ...
REDUCE_BYTES = 10**9
#: ... up to this many reduces (hive.exec.reducers.max).
MOST_REDUCES = 999
COLUMNS = ("job id", "submit time (s)", "gap (s)", "map input bytes", "shuffle bytes", "reduce output bytes")


@dataclass(frozen=True, slots=True)
class SwimRow:
    """One job of a SWIM trace. Times in seconds, sizes in bytes."""

    id: str
    submit_s: int
    input_bytes: int
    shuffle_bytes: int
    output_bytes: int

    @property
    def maps(self) -> int:
        """Return max(1, ceil(input / 64 MiB))."""
        return max(1, -(-self.input_bytes // SPLIT_BYTES))

    @property
    def reduces(self) -> int:
        """Return 0 without shuffled data (a map-only job), else one for each started 10^9 bytes, at most 999."""
        return min(MOST_REDUCES, -(-self.shuffle_bytes // REDUCE_BYTES))


def _number(text: str, column: int, where: str) -> int:
    # int() would accept "1_000", " 7 " and digits of other alphabets, which a valid trace does not have.
    if not (text.isascii() and text.isdigit()):
        what = f"column {column + 1} ({COLUMNS[column]}) is {text[:40]!r}, not a whole number from 0 up"
        raise InputError(what, where=where, hint="restore the line from the original trace")
    if len(text) > 18:
        raise InputError(f"column {column + 1} ({COLUMNS[column]}) is beyond 10^18", where=where, hint="correct it")
    return int(text)


def read_swim(path: Path) -> Iterator[SwimRow]:
    """Yield the rows of a SWIM trace, one by one, in the file's order (ascending submission times).

    Raises InputError with ``file:line`` for a file that is missing, empty or truncated, a line without exactly six
    tab-separated columns, anything but whole numbers from 0 up, decreasing submission times, or a repeated job id.
    """
    name = str(path)
    with reading(path, "check the path of the trace"):
        stream = open_whole(path)
    seen: set[str] = set()
    before, at = -1, 0
    with stream:
        while True:
            with reading(path, "check the file"):
                raw = stream.readline(100_000)
            if not raw:
                break
            at += 1
            where = f"{name}:{at}"
            if not raw.endswith(b"\n"):
                # Even a line with six columns may be truncated: "250" of "2500".
                raise InputError(
                    "the last line is cut off (no end of line)", where=where, hint="restore the whole trace"
                )
            try:
                fields = raw.decode("utf-8").rstrip("\r\n").split("\t")
            except UnicodeDecodeError:
                raise InputError("not UTF-8 text", where=where, hint="restore the trace") from None
            if len(fields) != len(COLUMNS):
                what = f"{len(fields)} tab-separated column(s) where a SWIM trace has {len(COLUMNS)}"
                raise InputError(what, where=where, hint="restore the line: " + ", ".join(COLUMNS))
            submit, _gap, size, shuffle, output = (_number(fields[i], i, where) for i in range(1, 6))
            if submit < before:
                what = f"submission time {submit} s comes before the previous line's {before} s"
                raise InputError(what, where=where, hint="sort the trace by its second column")
            if not fields[0] or fields[0] in seen:
                what = f"job id {fields[0][:40]!r} is empty or appears twice"
                raise InputError(what, where=where, hint="give each job an id of its own")
            seen.add(fields[0])
            before = submit
            yield SwimRow(fields[0], submit, size, shuffle, output)
    if at == 0:
        raise InputError("the trace is empty", where=name, hint="give it at least one job")


def swim_jobs(
    rows: Iterator[SwimRow],
    *,
    queue: str,
    of_map: Work,
    of_reduce: Work,
    am: Resource,
    slow_start: float,
    tail: float = 0.0,
    start_s: float = 0.0,
    time_scale: float = 1.0,
) -> Iterator[JobSpec]:
    """Yield each row as a MapReduce job, in the rows' order: `SwimRow.maps` maps, `SwimRow.reduces` reduces.

    Durations are the given distributions, the same for every job, because the trace has none; submission is at
    ``start_s + time_scale * row.submit_s``.
    """
    for row in rows:
        yield JobSpec(
            id=row.id,
            queue=queue,
            kind="mapreduce",
            am=am,
            stages=mapreduce_stages(row.maps, row.reduces, of_map, of_reduce, slow_start, tail),
            name="map-only" if not row.reduces else "map-reduce",
            submit_s=start_s + time_scale * row.submit_s,
        )
