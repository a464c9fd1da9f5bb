"""Tables of other systems' traces: reads rows as text by column, and builds jobs from them.

A reader of such a trace declares its tables (`Table`), collects the rows of each job, and passes jobs to `job_of`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from harness.base.documents import LONGEST_S
from harness.base.errors import InputError
from harness.base.files import no_constant, reading
from harness.base.words import plain_number
from harness.sim.world import MAX_STAGES
from harness.traces.accounting import NOT_WANTED, Totals
from harness.traces.formats.base import (
    MOST_MB,
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    bad_line,
    queue_path,
)
from harness.traces.formats.compressed import PlainLines, plain_head
from harness.traces.mapreduce import MAP_PRIORITY
from harness.traces.nodes import node_lines
from harness.traces.recorded import Detail, JobLine, NodeLine, StageLine
from harness.yarn.capacity.convert import DOMINANT

#: By default the Capacity Scheduler compares memory only, but these jobs request vcores, too.
COUNT_VCORES = {"resource-calculator": DOMINANT}
#: Texts that stand for a missing number.
_MISSING = frozenset(("", "nan", "none", "null", "na", "\\n"))
_HEAD_BYTES = 65_536
_SAMPLE = 20
MOST_VCORES = 1 << 20

Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a format.

    Attributes
    ----------
    name : str
        Its name in the trace's documentation.
    columns : tuple of str
        In the documented order, for files without a line of names.
    needed : frozenset of str
        The columns that a file with a line of names must have.
    numbers : frozenset of str
        The columns with a number or nothing, by which a file without a line of names is recognised.
    words : frozenset of str
        The possible values of the column ``status``, in a file without a line of names.
    headed : bool
        Whether only files with a line of names (or JSON objects) can be files of this table.
    """

    name: str
    columns: tuple[str, ...]
    needed: frozenset[str]
    numbers: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    headed: bool = False


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table, with the names of its columns. ``form``: ``names``, ``bare`` or ``json``."""

    path: Path
    table: Table
    columns: tuple[str, ...]
    form: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its location, and its fields as text.

    If it cannot be read, ``fields`` is None and ``problem`` has the reason.
    """

    where: str
    fields: Fields | None
    problem: str = ""


class TableReader(ABC):
    """The base class of readers of tables: recognises their files, and reads one file with default assumptions."""

    layout: Sequence[Table]

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a file with these first bytes is one of the tables."""
        return table_of(path, head, self.layout) is not None

    def read(self, path: Path) -> Reading:
        """Read one file, or the files of a folder."""
        return self.read_files([path])

    @abstractmethod
    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the files of one trace; bad records are left out and counted."""


def column_name(name: str) -> str:
    """Return a column's name in a normalised spelling: ``Job ID``, ``JOBID`` and ``job_id`` are the same."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def table_of(
    path: Path, head: bytes, tables: Sequence[Table], columns: tuple[str, ...] | None = None
) -> TableFile | None:
    """Return the table to which a file with these first bytes (decompressed) belongs; None if it belongs to none.

    ``columns``: the user's names of the columns of a file without a line of names.
    """
    lines = [line.removesuffix("\r") for line in head.decode("utf-8-sig", "replace").split("\n")]
    # The last line may be truncated.
    lines = [line for line in (lines[:-1] or lines) if line.strip()][:_SAMPLE]
    if not lines:
        return None
    if lines[0].lstrip().startswith("{"):
        return _json_table(path, lines, tables)
    first = tuple(column_name(word) for word in _words(lines[0]) or ())
    known = [table for table in tables if {column_name(name) for name in table.needed} <= set(first)]
    if known and len(set(first)) == len(first):
        # If two tables fit, the one with more of its columns in the file is taken.
        best = max(known, key=lambda table: len({column_name(name) for name in table.needed}))
        return TableFile(path, best, first, "names")
    if columns is not None:
        named = tuple(column_name(name) for name in columns)
        known = [table for table in tables if {column_name(name) for name in table.needed} <= set(named)]
        return TableFile(path, known[0], named, "bare") if known else None
    for table in tables:
        if not table.headed and 2 * sum(_fits(line, table) for line in lines) > len(lines):
            return TableFile(path, table, tuple(column_name(name) for name in table.columns), "bare")
    return None


def _json_table(path: Path, lines: Sequence[str], tables: Sequence[Table]) -> TableFile | None:
    for line in lines:
        fields = _flat(line)
        if isinstance(fields, str):
            continue
        known = [table for table in tables if {column_name(name) for name in table.needed} <= set(fields)]
        if known:
            best = max(known, key=lambda table: len(table.needed))
            return TableFile(path, best, (), "json")
    return None


def _fits(line: str, table: Table) -> bool:
    words = _words(line)
    return (
        words is not None
        and len(words) == len(table.columns)
        and all(
            word.strip() in table.words
            if name == "status" and table.words
            else name not in table.numbers or _number_or_nothing(word)
            for name, word in zip(table.columns, words, strict=True)
        )
    )


def _number_or_nothing(word: str) -> bool:
    if word.strip().lower() in _MISSING:
        return True
    try:
        plain_number(word)
    except ValueError:
        return False
    return True


def _words(line: str) -> list[str] | None:
    """Return the fields of a line; None if a quote is not closed. A line is a row, so damage affects only that row."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return None


def _flat(line: str) -> dict[str, str] | str:
    """Return the fields of a JSON object as text, those of nested objects as ``outer.inner``.

    If the line is no such object, return a text that says why.
    """
    try:
        document = json.loads(line, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        return f"no JSON ({str(error)[:60]})"
    if not isinstance(document, dict):
        return f"expected an object, found {type(document).__name__}"
    found: dict[str, str] = {}
    for name, value in document.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for key, item in inner:
            found[column_name(f"{name}.{key}" if key else str(name))] = _as_text(item)
    return found


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def rows_of(file: TableFile, collector: Collector, broken: list[str]) -> Iterator[Row]:
    """Yield each row of a file, counted as a record.

    ``broken`` gets a sentence if the rest of the file cannot be read.
    """
    lines = PlainLines(file.path)
    for number, raw in enumerate(lines, 1):
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            if file.form == "names":
                continue
        if not raw.strip():
            continue
        where = f"{file.path}:{number}"
        collector.count(Totals(records=1))
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            yield Row(where, None, "no UTF-8 text")
            continue
        if file.form == "json":
            fields = _flat(line)
            yield Row(where, None, fields) if isinstance(fields, str) else Row(where, fields)
            continue
        words = _words(line)
        if words is None:
            yield Row(where, None, "a quote is not closed")
        elif len(words) != len(file.columns):
            yield Row(where, None, f"{len(words)} fields in a line, {len(file.columns)} columns")
        else:
            yield Row(where, {name: word.strip() for name, word in zip(file.columns, words, strict=True)})
    note_broken(lines, collector, broken)


def note_broken(lines: PlainLines, collector: Collector, broken: list[str]) -> None:
    """Count the unreadable rest of a file, whose size is unknown."""
    if lines.broken:
        broken.append(collector.rest_unread(lines.path, lines.number, lines.broken))


def files_by_table(
    paths: Sequence[Path], tables: Sequence[Table], what: str, columns: tuple[str, ...] | None = None
) -> dict[str, list[TableFile]]:
    """Return table name -> files. Raises InputError for a file that belongs to none of the tables."""
    found: dict[str, list[TableFile]] = {}
    for path in files_in(paths):
        with reading(path):
            file = table_of(path, plain_head(path, _HEAD_BYTES), tables, columns)
        if file is None:
            raise InputError(
                f"no table of {what}",
                where=str(path),
                hint=f"give {', '.join(table.name for table in tables)} with the columns that "
                "docs/reference/trace.md lists",
            )
        found.setdefault(file.table.name, []).append(file)
    return found


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the files in the given folders in the order of their names."""
    found: list[Path] = []
    for path in paths:
        with reading(path):
            found += sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    return found


def needed_files(files: Mapping[str, list[TableFile]], name: str, what: str) -> list[TableFile]:
    """Return the files of a table that a format requires. Raises InputError if there are none."""
    if name not in files:
        given = ", ".join(str(one.path) for listed in files.values() for one in listed)
        raise InputError(f"{what} needs the table {name}", where=given or None, hint=f"give the files of {name}, too")
    return files[name]


def number(fields: Fields, name: str, *, most: float = 1000 * LONGEST_S, least: float = 0.0) -> float | None:
    """Return a field as a number in this range; None if it is missing. Raises BadRecord for any other text."""
    text = fields.get(column_name(name), "")
    if text.lower() in _MISSING:
        return None
    try:
        value = plain_number(text)
    except ValueError:
        raise BadRecord(f"{name} is {text[:40]!r}, not a number") from None
    if not (math.isfinite(value) and least <= value <= most):
        raise BadRecord(f"{name} is {text[:40]}, outside {least:g} to {most:g}")
    return value


def whole(fields: Fields, name: str, *, most: float = 10_000_000, least: float = 0.0) -> int | None:
    """Return a field as a whole number, as `number` does."""
    value = number(fields, name, most=most, least=least)
    if value is None:
        return None
    if not value.is_integer():
        raise BadRecord(f"{name} is {fields[column_name(name)][:40]}, not a whole number")
    return int(value)


def text(fields: Fields, name: str) -> str:
    """Return a field as text, empty if it is missing."""
    value = fields.get(column_name(name), "")
    return "" if value.lower() in _MISSING else value


def size_of(memory_mb: float | None, vcores: float | None, default_mb: int, default_vcores: int) -> tuple[int, int]:
    """Return a container's size in whole MiB and vcores, rounded up, at least 1 of each; the defaults if it is unknown.

    Raises BadRecord for a size that no machine has.
    """
    mb = default_mb if memory_mb is None else max(math.ceil(memory_mb - 1e-9), 1)
    cores = default_vcores if vcores is None else max(math.ceil(vcores - 1e-9), 1)
    if mb > MOST_MB:
        raise BadRecord(f"a container of more than {MOST_MB:,} MB")
    if cores > MOST_VCORES:
        raise BadRecord(f"a container of more than {MOST_VCORES:,} vcores")
    return mb, cores


@dataclass(frozen=True, slots=True)
class Work:
    """Tasks of one size that can all begin when those of ``parents`` have ended.

    Attributes
    ----------
    name : str
        Unique in its job.
    memory_mb, vcores : int
        The size of each task's container.
    tasks_s : tuple of float
        Seconds that each attempt took.
    retry_of : tuple of (int or None)
        As in a trace; empty: no attempt repeats another.
    parents : frozenset of str
        Names of other works; names that the job does not have are ignored.
    slow_start : float
        The fraction of the parents' tasks that must have ended.
    priority : int
        The priority of the asks.
    waits_s : tuple of float
        Seconds of each attempt in which it only waited for the parents' tasks; empty: none did.
    tail : float
        The fraction of the rest that comes after all of the parents' tasks.
    """

    name: str
    memory_mb: int
    vcores: int
    tasks_s: tuple[float, ...]
    retry_of: tuple[int | None, ...] = ()
    parents: frozenset[str] = frozenset()
    slow_start: float = 1.0
    priority: int = MAP_PRIORITY
    waits_s: tuple[float, ...] = ()
    tail: float = 0.0


def stages_of(works: Sequence[Work]) -> tuple[list[StageLine], bool]:
    """Return the stages of a job, and whether they were joined by levels because there are too many for the simulator.

    Raises
    ------
    BadRecord
        Works wait for each other in a cycle, or there are too many levels and sizes.
    """
    ordered = _in_order(works)
    joined = len(ordered) > MAX_STAGES
    if joined:
        ordered = _by_levels(ordered)
    if len(ordered) > MAX_STAGES:
        raise BadRecord(f"more than {MAX_STAGES} levels of tasks and sizes, which the simulator does not take")
    names = {work.name for work in works} if not joined else {work.name for work in ordered}
    return [
        StageLine(
            name=work.name,
            memory_mb=work.memory_mb,
            vcores=work.vcores,
            tasks_s=[round(seconds, 3) for seconds in work.tasks_s],
            retry_of=list(work.retry_of) if any(before is not None for before in work.retry_of) else [],
            after=sorted(work.parents & names),
            slow_start=work.slow_start if work.parents & names else 1.0,
            waits_s=[round(seconds, 3) for seconds in work.waits_s],
            tail=work.tail,
            priority=work.priority,
        )
        for work in ordered
    ], joined


def _in_order(works: Sequence[Work]) -> list[Work]:
    """Return the works breadth first, with parents before children. Raises BadRecord."""
    by_name = {work.name: work for work in works}
    if len(by_name) < len(works):
        raise BadRecord("two tasks of one name")
    waits = {work.name: len(work.parents & by_name.keys() - {work.name}) for work in works}
    children: dict[str, list[str]] = {}
    for work in works:
        for parent in work.parents & by_name.keys() - {work.name}:
            children.setdefault(parent, []).append(work.name)
    ready = [work.name for work in works if not waits[work.name]]
    found: list[Work] = []
    for name in ready:
        found.append(replace(by_name[name], parents=by_name[name].parents - {name}))
        for child in children.get(name, ()):
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    if len(found) < len(works):
        raise BadRecord("its tasks wait for each other in a circle")
    return found


def _by_levels(ordered: Sequence[Work]) -> list[Work]:
    """Return works joined by depth and size; a depth begins when the previous one has ended.

    The depth of a work is the length of the longest chain of its predecessors.
    """
    level: dict[str, int] = {}
    for work in ordered:
        level[work.name] = 1 + max((level[parent] for parent in work.parents if parent in level), default=-1)
    groups: dict[tuple[int, int, int], list[Work]] = {}
    for work in ordered:
        groups.setdefault((level[work.name], work.memory_mb, work.vcores), []).append(work)
    names = {key: f"level-{key[0]}-{key[1]}MB-{key[2]}" for key in groups}
    found = []
    for key in sorted(groups):
        tasks_s: list[float] = []
        retry_of: list[int | None] = []
        for work in groups[key]:
            base = len(tasks_s)
            tasks_s += work.tasks_s
            befores = work.retry_of or (None,) * len(work.tasks_s)
            retry_of += [None if before is None else base + before for before in befores]
        parents = frozenset(names[other] for other in groups if other[0] == key[0] - 1)
        found.append(Work(names[key], key[1], key[2], tuple(tasks_s), tuple(retry_of), parents))
    return found


def job_of(
    name: str,
    works: Sequence[Work],
    assumed: Assumptions,
    *,
    queue: str,
    user: str,
    title: str = "",
    submitted_s: float,
    clock_s: float,
    started_s: float | None,
    finished_s: float | None,
    tasks: int,
    records: int,
    joined: list[str],
    detail: Detail = "tasks",
    kind: Literal["dag", "mapreduce"] = "dag",
) -> TimedJob | str:
    """Return a job of a foreign trace, or why it is left out.

    Parameters
    ----------
    submitted_s, started_s, finished_s : float
        Seconds of the trace's own clock.
    clock_s : float
        The origin of ``--from`` and ``--until``.
    tasks, records : int
        The number of tasks to which its attempts belong, and of its records.
    joined : list of str
        Gets the job's name if its stages were joined by levels.
    kind : str
        ``mapreduce``: Hadoop's own AM decides when reduces are asked for.

    Raises
    ------
    BadRecord
        The values are not valid in a line of a trace.
    """
    if not assumed.includes(submitted_s - clock_s):
        return NOT_WANTED
    try:
        stages, by_levels = stages_of(works)
        line = JobLine(
            job=name,
            queue=queue_path(queue or "default"),
            user=user or "unknown",
            name=title[:1000],
            kind=kind,
            submit_s=0.0,
            am=assumed.master(),
            am_start_s=None if assumed.am_memory_mb else 0.0,
            stages=stages,
            started_s=None if started_s is None else round(max(started_s - submitted_s, 0.0), 3),
            finished_s=None if finished_s is None else round(max(finished_s - submitted_s, 0.0), 3),
            detail=detail,
        )
    except ValidationError as error:
        raise bad_line(error) from None
    if by_levels:
        joined.append(name)
    return TimedJob(round(1000 * submitted_s), line, tasks, records)


def joined_sentence(joined: Sequence[str]) -> list[str]:
    """Return a sentence on what is assumed of jobs whose stages were joined by levels."""
    if not joined:
        return []
    return [
        f"tasks of jobs with more than {MAX_STAGES} kinds of tasks are grouped by depth (the longest chain of "
        f"predecessors), and a depth starts when the previous one has ended ({len(joined):,} jobs)"
    ]


def checked_nodes(sizes: Mapping[tuple[int, int], int]) -> list[NodeLine]:
    """Return nodes by size, each (MiB, vcores) with its count; empty if one of them is impossible."""
    try:
        return node_lines(sizes)
    except ValidationError:
        return []
