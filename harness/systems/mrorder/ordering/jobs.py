"""MapReduce jobs and slots as the input of job ordering (tang-thesis section 3.3.1), and the CSV format of jobs.

All functions are pure. The estimator computes how long jobs take.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm

from harness.base.errors import CallError, InputError

COLUMNS = ("job", "maps", "map_seconds", "reduces", "reduce_seconds")
#: Optional columns: when a job arrives, and the seconds of each of its tasks, separated by spaces.
MORE_COLUMNS = ("arrival_seconds", "map_task_seconds", "reduce_task_seconds")

#: Larger numbers of tasks and longer times are rejected as mistakes. Limiting the decimals keeps exact sums short.
MAX_TASKS = 10**12
MAX_TASK_S = 10**12
MAX_DECIMALS = 30
MAX_NAME = 1000

_INTEGER = re.compile(r"\d{1,40}", re.ASCII)
_DECIMAL = re.compile(r"(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True)
class MapReduceJob:
    """One job: `maps` tasks of `map_s` seconds each, then `reduces` tasks of `reduce_s` seconds each (Table 3.2).

    `map_task_s` and `reduce_task_s` are the times of single tasks if these differ; ordering then uses the averages
    `map_s` and `reduce_s`. `arrival_s` is when the job arrives, for online ordering.
    """

    name: str
    maps: int
    map_s: Fraction
    reduces: int
    reduce_s: Fraction
    arrival_s: Fraction | None = None
    map_task_s: tuple[Fraction, ...] | None = None
    reduce_task_s: tuple[Fraction, ...] | None = None

    @property
    def varies(self) -> bool:
        """Whether tasks have their own times."""
        return self.map_task_s is not None or self.reduce_task_s is not None


@dataclass(frozen=True)
class Slots:
    """The numbers of map and reduce slots of the whole cluster, |S^M| and |S^R|."""

    maps: int
    reduces: int

    def check(self, jobs: tuple[MapReduceJob, ...]) -> None:
        """Raise CallError if there are tasks of a kind but no slot of that kind."""
        for kind, slots, tasks in (
            ("map", self.maps, sum(job.maps for job in jobs)),
            ("reduce", self.reduces, sum(job.reduces for job in jobs)),
        ):
            if slots < 1 and tasks:
                raise CallError(
                    f"{slots} {kind} slots for {tasks} {kind} tasks: the jobs would never end",
                    hint=f"give --{kind}-slots at least 1",
                )


@dataclass(frozen=True)
class ScaledTimes:
    """The jobs' task times as integers in units of 1/`per_second` s, so that every sum is exact."""

    per_second: int
    map_times: tuple[int, ...]
    reduce_times: tuple[int, ...]


def scaled(jobs: tuple[MapReduceJob, ...]) -> ScaledTimes:
    """Return the jobs' average task times as integers over a common denominator."""
    per_second = lcm(1, *(time.denominator for job in jobs for time in (job.map_s, job.reduce_s)))
    return ScaledTimes(
        per_second,
        tuple(int(job.map_s * per_second) for job in jobs),
        tuple(int(job.reduce_s * per_second) for job in jobs),
    )


def parse_jobs(text: str, source: str) -> tuple[MapReduceJob, ...]:
    """Parse a CSV with the columns job, maps, map_seconds, reduces and reduce_seconds; jobs keep the file's order.

    Columns may be in any order; `MORE_COLUMNS` are optional, and all others are ignored. A time may be left out if
    there are no tasks, or if the times of single tasks are given, whose mean is then used. An empty cell in a column of
    task times means that the job's tasks are equal. Either all jobs have an arrival or none. `source` is the name in
    error messages. Raises InputError with the line.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    jobs: list[MapReduceJob] = []
    line_of: dict[str, int] = {}
    place: dict[str, int] | None = None
    try:
        for row in reader:
            where = f"{source}, line {reader.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            if place is None:
                place = _header(row, where)
                width = len(row)
                continue
            if len(row) != width:
                raise InputError(
                    f"{len(row)} fields where the header has {width}", where=where, hint="one field a column"
                )
            job = _job({column: row[index].strip() for column, index in place.items()}, where)
            if job.name in line_of:
                raise InputError(
                    f"job {job.name!r} stands in line {line_of[job.name]} already",
                    where=where,
                    hint="give each job a name of its own",
                )
            line_of[job.name] = reader.line_num
            jobs.append(job)
    except csv.Error as error:
        raise InputError(
            f"not CSV: {error}", where=f"{source}, line {reader.line_num}", hint=f"write {','.join(COLUMNS)}"
        ) from error
    for job in jobs:
        if (job.arrival_s is None) != (jobs[0].arrival_s is None):
            late = job if job.arrival_s is None else jobs[0]
            raise InputError(
                f"job {late.name!r} has no arrival_seconds, and others have",
                where=f"{source}, line {line_of[late.name]}",
                hint="say when it arrives (0: at once), or empty the column",
            )
    if not jobs:
        raise InputError("no jobs in it", where=source, hint=f"write {','.join(COLUMNS)} and a line for each job")
    return tuple(jobs)


def _header(row: list[str], where: str) -> dict[str, int]:
    names = [cell.strip().lower() for cell in row]
    missing = [column for column in COLUMNS if column not in names]
    if missing:
        raise InputError(
            f"the header lacks {', '.join(missing)}", where=where, hint=f"begin the file with {','.join(COLUMNS)}"
        )
    known = [*COLUMNS, *MORE_COLUMNS]
    twice = [column for column in known if names.count(column) > 1]
    if twice:
        raise InputError(f"the header has {', '.join(twice)} more than once", where=where, hint="leave one of them")
    return {column: names.index(column) for column in known if column in names}


def _job(cells: dict[str, str], where: str) -> MapReduceJob:
    name = cells["job"]
    if not name:
        raise InputError("the job has no name", where=where, hint="fill in column job")
    if not name.isprintable() or len(name) > MAX_NAME:
        raise InputError(
            f"the name {_shown(name)} cannot be printed on a line",
            where=where,
            hint=f"give at most {MAX_NAME} printable characters",
        )
    maps, reduces = _count(cells, "maps", where), _count(cells, "reduces", where)
    map_task_s = _task_times(cells, "map_task_seconds", maps, "maps", where)
    reduce_task_s = _task_times(cells, "reduce_task_seconds", reduces, "reduces", where)
    return MapReduceJob(
        name,
        maps,
        _average(cells, "map_seconds", where, maps, map_task_s),
        reduces,
        _average(cells, "reduce_seconds", where, reduces, reduce_task_s),
        _seconds(cells, "arrival_seconds", where) if cells.get("arrival_seconds") else None,
        map_task_s,
        reduce_task_s,
    )


def _task_times(cells: dict[str, str], column: str, tasks: int, count: str, where: str) -> tuple[Fraction, ...] | None:
    """Return the seconds of each task, or None if they are not given."""
    texts = cells.get(column, "").split()
    if not texts:
        return None
    if len(texts) != tasks:
        raise InputError(
            f"{column} has {len(texts)} times, {count} is {tasks}",
            where=where,
            hint="give one time a task with spaces between, or leave the cell empty",
        )
    return tuple(_number(text, column, where) for text in texts)


def _average(
    cells: dict[str, str], column: str, where: str, tasks: int, task_s: tuple[Fraction, ...] | None
) -> Fraction:
    """Return the average time of a task in seconds: the given one, or the mean over the tasks."""
    if not cells[column] and (task_s is not None or tasks == 0):
        return sum(task_s, Fraction(0)) / tasks if task_s else Fraction(0)
    return _seconds(cells, column, where)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _count(cells: dict[str, str], column: str, where: str) -> int:
    text = cells[column]
    if not _INTEGER.fullmatch(text) or int(text) > MAX_TASKS:
        raise InputError(
            f"{column} is {_shown(text)}", where=where, hint=f"give a whole number from 0 to {MAX_TASKS:_}"
        )
    return int(text)


def _seconds(cells: dict[str, str], column: str, where: str) -> Fraction:
    return _number(cells[column], column, where)


def _number(text: str, column: str, where: str) -> Fraction:
    hint = f"give seconds from 0 to {MAX_TASK_S:_}, with at most {MAX_DECIMALS} decimals"
    if not _DECIMAL.fullmatch(text):
        raise InputError(f"{column} is {_shown(text)}", where=where, hint=hint)
    number = Decimal(text)
    exponent = number.normalize().as_tuple().exponent
    if number > MAX_TASK_S or (isinstance(exponent, int) and exponent < -MAX_DECIMALS):
        raise InputError(f"{column} is {_shown(text)}", where=where, hint=hint)
    return Fraction(number)
