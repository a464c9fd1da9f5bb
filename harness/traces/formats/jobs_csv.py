"""A user's own table of jobs, as CSV with a line of column names: the simplest way to provide a load.

The columns ``submit_s``, ``tasks`` and ``task_s`` are required; ``job``, ``queue``, ``user``, ``name``, ``memory_mb``,
``vcores``, ``am_memory_mb``, ``am_vcores`` and ``finished_s`` are optional. Other columns are ignored and reported.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.base.documents import LONGEST_S
from harness.base.errors import InputError
from harness.base.files import reading
from harness.base.words import plain_number
from harness.traces.accounting import NOT_WANTED, UNREADABLE, Totals
from harness.traces.formats.base import (
    MOST_MB,
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    bad_line,
    missing_queues,
    queue_path,
)
from harness.traces.formats.compressed import readable_bytes
from harness.traces.formats.tables import files_in
from harness.traces.recorded import JobLine, StageLine
from harness.traces.spec import MasterSpec

MAX_BYTES = 1 << 30
MOST_TASKS = 1_000_000
REQUIRED = ("submit_s", "tasks", "task_s")
#: The optional columns, with the value for an empty field or a missing column.
OPTIONAL = {
    "job": "the number of the row",
    "queue": "root.default",
    "user": "unknown",
    "name": "none",
    "memory_mb": "1024",
    "vcores": "1",
    "am_memory_mb": "1024",
    "am_vcores": "1",
    "finished_s": "unknown",
}


@dataclass(slots=True)
class _Missing:
    """The numbers of rows without a queue, and without the memory of their tasks."""

    queues: int = 0
    sizes: int = 0


class JobsCsv:
    """Reader of a table of jobs."""

    name = "CSV"
    versions = f"a table of jobs with the columns {', '.join(REQUIRED)} and, if wanted, {', '.join(OPTIONAL)}"
    lacks = "nodes; weights of queues"
    assumes = "tasks of 1,024 MB and 1 vcore, equally long; a master of the same size; `root.default`"
    kind = "csv"
    tables = ("the table (needed)",)
    settable: Mapping[str, str] = {
        "memory_mb": "1024: of a task where memory_mb is empty",
        "vcores": "1: of a task where vcores is empty",
        "am_memory_mb": "1024: of a master where am_memory_mb is empty",
        "am_vcores": "1: of a master where am_vcores is empty",
        "queue_by": "queue; else user or none",
    }
    queues = ("queue", "user", "none")

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the first line has the names of all required columns."""
        return set(REQUIRED) <= set(_columns(head.decode("utf-8-sig", "replace")))

    def read(self, path: Path) -> Reading:
        """Read the table."""
        return self.read_files([path])

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read tables, each with its line of names. Memory use: the largest file, and the jobs."""
        collector = Collector()
        missing = _Missing()
        ignored: dict[str, None] = {}
        broken: list[str] = []
        files = files_in(paths)
        for at, path in enumerate(files, 1):
            # Rows without a name are numbered; a prefix distinguishes the numbers of further files.
            prefix = f"{at}-" if at > 1 else ""
            ignored |= dict.fromkeys(self._read_one(path, assumed, collector, missing, prefix, broken))
        memory_mb = assumed.memory_mb or int(OPTIONAL["memory_mb"])
        sentences = [
            f"{what} ({count:,} jobs)"
            for what, count in (
                ("jobs without a queue are in root.default", missing.queues),
                (f"tasks without a size have {memory_mb:,} MB", missing.sizes),
            )
            if count
        ]
        if ignored:
            sentences.append(f"columns that are not read: {', '.join([*ignored][:10])}")
        unknown = [*missing_queues(missing.queues, len(collector.jobs)), *broken]
        return collector.finish(self.name, assumed=sentences, unknown=unknown)

    def _read_one(
        self, path: Path, assumed: Assumptions, collector: Collector, missing: _Missing, prefix: str, broken: list[str]
    ) -> list[str]:
        """Read one table; return the names of the columns that are ignored."""
        with reading(path, "check the path, or split the file"):
            read = readable_bytes(path, MAX_BYTES)
            text = read.text().removeprefix("\ufeff")
        if read.broken:
            # The beginning of a truncated line is not a row.
            text = text[: text.rfind("\n") + 1]
            broken.append(collector.rest_unread(path, text.count("\n"), read.broken))
        columns = _columns(text)
        if lacking := [name for name in REQUIRED if name not in columns]:
            raise InputError(
                f"no column {', '.join(lacking)}",
                where=f"{path}:1",
                hint="name the columns in the first line (docs/reference/trace.md lists them)",
            )
        # Strict, because otherwise an unclosed quote takes everything up to the end of the file as one field.
        rows = csv.reader(io.StringIO(text), _dialect(text), strict=True)
        records: list[tuple[int, int, list[str]]] = []
        try:
            next(rows)
            if rows.line_num > 1:
                raise csv.Error("a name of a column goes over several lines")
            begin = rows.line_num
            for words in rows:
                if any(word.strip() for word in words):
                    records.append((begin + 1, rows.line_num, words))
                begin = rows.line_num
        except csv.Error as error:
            where = f"{path}:{rows.line_num}"
            if "end of data" in str(error):
                error, where = csv.Error("a quote is not closed"), f"{path}:{begin + 1}"
            raise InputError(f"no table: {error}", where=where, hint="correct that line") from None
        at = columns.index("job") if "job" in columns else -1
        taken = {words[at].strip() for _, _, words in records if at >= 0 and len(words) == len(columns)}
        for number, (first, last, words) in enumerate(records, 1):
            where = f"{path}:{first}"
            lines = last - first + 1
            collector.count(Totals(records=lines, jobs=lines))
            try:
                if lines > 1:
                    # Each line may have been a job, because a missing quote joins lines.
                    raise BadRecord("a field in quotes goes over several lines")
                if len(words) != len(columns):
                    raise BadRecord(f"{len(words)} fields in a line, {len(columns)} columns")
                fields = {name: word.strip() for name, word in zip(columns, words, strict=True)}
                name = _free(f"{prefix}{number}", taken)
                made = _timed(fields, name, assumed, collector, where)
            except BadRecord as error:
                collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=lines, jobs=lines), where)
                continue
            if isinstance(made, str):
                collector.leave_out(made, Totals(records=lines, jobs=lines), where)
                continue
            totals = made.totals()
            collector.count(Totals(0, 0, totals.tasks, totals.attempts, totals.container_ms))
            collector.keep(made, where)
            missing.queues += not _queue(fields, assumed)
            missing.sizes += not fields.get("memory_mb")
        return [name for name in columns if name and name not in (*REQUIRED, *OPTIONAL)]


def _dialect(text: str) -> type[csv.Dialect]:
    """Return the separator that occurs most often in the first line: comma, semicolon or tabulator."""
    first = text.partition("\n")[0]

    class Table(csv.excel):
        delimiter = max(",;\t", key=first.count)

    return Table


def _columns(text: str) -> list[str]:
    """Return the column names in the first line; none if one occurs twice or the line cannot be read."""
    try:
        names = [word.strip() for word in next(csv.reader(io.StringIO(text.partition("\n")[0]), _dialect(text)), [])]
    except csv.Error:
        return []
    return names if len(set(names)) == len(names) else []


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name for a job without one that no other row has."""
    while name in taken:
        name = f"row-{name}"
    return name


def _number(fields: Mapping[str, str], name: str, default: float | None, *, most: float) -> float:
    """Return a field as a number from 0 on. Raises BadRecord."""
    text = fields.get(name, "")
    if not text:
        if default is None:
            raise BadRecord(f"{name} is empty")
        return default
    try:
        value = plain_number(text)
    except ValueError:
        raise BadRecord(f"{name} is {text[:40]!r}, not a number") from None
    if not (math.isfinite(value) and 0 <= value <= most):
        raise BadRecord(f"{name} is {text[:40]}, outside 0 to {most:g}")
    return value


def _default(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _whole(fields: Mapping[str, str], name: str, default: int | None, *, most: int) -> int:
    value = _number(fields, name, default, most=most)
    if not float(value).is_integer():
        raise BadRecord(f"{name} is {fields[name][:40]}, not a whole number")
    return int(value)


def _queue(fields: Mapping[str, str], assumed: Assumptions) -> str:
    """Return the queue of a row; empty if the row has none."""
    return fields.get({"queue": "queue", "user": "user"}.get(assumed.queue_by or "queue", ""), "")


def _timed(
    fields: Mapping[str, str], number: str, assumed: Assumptions, collector: Collector, where: str
) -> TimedJob | str:
    """Return a row as a job, or the reason why it is left out. Raises BadRecord."""
    submit_s = _number(fields, "submit_s", None, most=LONGEST_S * 1000)
    if not assumed.includes(submit_s):
        return NOT_WANTED
    tasks = _whole(fields, "tasks", None, most=MOST_TASKS)
    task_s = _number(fields, "task_s", None, most=LONGEST_S)
    finished_s = _number(fields, "finished_s", -1.0, most=LONGEST_S * 1000)
    if 0 <= finished_s < submit_s:
        raise BadRecord("finished_s is before submit_s")
    if not tasks:
        raise BadRecord("no tasks")
    collector.expect(tasks, where)
    try:
        line = JobLine(
            job=fields.get("job") or number,
            queue=queue_path(_queue(fields, assumed) or "default"),
            user=fields.get("user") or "unknown",
            name=fields.get("name", "")[:1000],
            kind="dag",
            submit_s=0.0,
            am=MasterSpec(
                memory_mb=_whole(fields, "am_memory_mb", _default(assumed.am_memory_mb, 1024), most=MOST_MB),
                vcores=_whole(fields, "am_vcores", _default(assumed.am_vcores, 1), most=1 << 20),
            ),
            stages=[
                StageLine(
                    name="tasks",
                    memory_mb=_whole(fields, "memory_mb", _default(assumed.memory_mb, 1024), most=MOST_MB),
                    vcores=_whole(fields, "vcores", _default(assumed.vcores, 1), most=1 << 20),
                    tasks_s=[round(task_s, 3)] * tasks,
                )
            ],
            finished_s=round(finished_s - submit_s, 3) if finished_s >= 0 else None,
        )
    except ValidationError as error:
        raise bad_line(error) from None
    return TimedJob(round(1000 * submit_s), line, tasks)
