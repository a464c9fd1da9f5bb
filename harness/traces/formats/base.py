"""The result of a reader of a format, and the interface of a reader."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import ValidationError

from harness.base.documents import LONGEST_S
from harness.base.errors import InputError
from harness.model.queues import BAD_IN_NAME, ROOT
from harness.traces.accounting import DUPLICATE, UNREADABLE, Account, Totals, container_ms, total
from harness.traces.recorded import JobLine, NodeLine, full_name
from harness.traces.spec import DelaysSpec, MasterSpec

#: Larger clock values in milliseconds are no times since 1970 (the year 5138).
LATEST_MS = 100_000_000_000_000
#: Maximum container size in MiB (16 TiB): no node has more, and a single wrong value would determine all node sizes.
MOST_MB = 1 << 24
#: Maximum number of tasks of a trace: each takes some 80 bytes in memory and in the written file.
MOST_TASKS = 10_000_000
#: Maximum number of listed reasons; other problems are counted together.
_MOST_REASONS = 100
#: As in an experiment file.
_QUEUE_NAME = re.compile(f"[^{BAD_IN_NAME}]{{1,100}}")


@dataclass(frozen=True, slots=True)
class TimedJob:
    """A job whose line has its times in seconds since it was submitted.

    Attributes
    ----------
    submitted_ms : int
        Its submission, by the trace's own clock.
    line : JobLine
        The job, with ``submit_s`` 0.
    tasks : int
        Number of tasks to which its attempts belong.
    records : int
        Number of records of the file from which it was made.
    """

    submitted_ms: int
    line: JobLine
    tasks: int
    records: int = 1

    def totals(self) -> Totals:
        """Return its contribution to the account."""
        attempts = sum(len(stage.tasks_s) for stage in self.line.stages)
        return Totals(self.records, 1, self.tasks, attempts, container_ms(self.line))


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a trace.

    Attributes
    ----------
    format : str
        The reader's name.
    jobs : sequence of TimedJob
        The jobs that were kept.
    account : Account
        What was read, kept and left out.
    nodes : sequence of NodeLine
        The cluster's nodes, if the trace names them.
    conf : mapping of str to str
        The scheduler's settings for simulating these nodes.
    capacity : mapping of str to str
        The Capacity Scheduler's settings, without prefix, that the jobs need on any nodes.
    delays : DelaysSpec
        The delays of the AMs of these jobs, on any nodes.
    assumed : sequence of str
        Assumptions in place of data that the trace lacks.
    assumed_of_nodes : sequence of str
        The same for ``nodes`` and ``conf``; they do not apply if the user gives other nodes.
    unknown : sequence of str
        Missing data without which there is no verdict.
    """

    format: str
    jobs: Sequence[TimedJob]
    account: Account
    nodes: Sequence[NodeLine] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    delays: DelaysSpec = field(default_factory=DelaysSpec)
    assumed: Sequence[str] = ()
    assumed_of_nodes: Sequence[str] = ()
    unknown: Sequence[str] = ()


@runtime_checkable
class TraceFormat(Protocol):
    """A reader of one format. ``name``, ``versions``, ``lacks`` and ``assumes`` appear in the table of formats."""

    name: str
    versions: str
    lacks: str
    assumes: str

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a file with these first bytes, or a folder (no bytes), has this format."""
        ...

    def read(self, path: Path) -> Reading:
        """Read a file or folder of this format; bad records are left out and counted."""
        ...


@dataclass(frozen=True, slots=True)
class Assumptions:
    """A user's values for data that a format's files lack; None: the format's own assumption.

    Attributes
    ----------
    memory_mb, vcores : int
        Size of a container whose size the files do not give.
    am_memory_mb, am_vcores : int
        Size of each job's AM. Other systems have none: 0.
    queue_by : str
        The field of the files that determines the queue; ``none``: all jobs go to ``root.default``.
    machine_memory_mb, machine_vcores : int
        The machine that the files' normalised sizes are parts of.
    cpu_unit : float
        The value of the files' CPU field that equals one vcore.
    gpus_as_vcores : bool
        Whether a container's vcores are its GPUs instead of its CPUs.
    columns : tuple of str
        The names of the columns of a table without a line of names.
    from_s, until_s : float
        Only use jobs submitted in this half-open range: seconds of the trace's clock if that starts with the trace,
        else since the first submission.
    """

    memory_mb: int | None = None
    vcores: int | None = None
    am_memory_mb: int | None = None
    am_vcores: int | None = None
    queue_by: str | None = None
    machine_memory_mb: int | None = None
    machine_vcores: int | None = None
    cpu_unit: float | None = None
    gpus_as_vcores: bool | None = None
    columns: tuple[str, ...] | None = None
    from_s: float | None = None
    until_s: float | None = None

    def given(self) -> list[str]:
        """Return the fields that the user has set."""
        return [one.name for one in fields(self) if getattr(self, one.name) is not None]

    def master(self) -> MasterSpec:
        """Return the size of a job's AM: the user's value, or else nothing."""
        memory_mb = self.am_memory_mb or 0
        vcores = self.am_vcores if self.am_vcores is not None else int(memory_mb > 0)
        return MasterSpec(memory_mb=memory_mb, vcores=vcores)

    def includes(self, submitted_s: float) -> bool:
        """Return whether a job with this submission is in the user's range."""
        return (self.from_s is None or submitted_s >= self.from_s) and (
            self.until_s is None or submitted_s < self.until_s
        )


#: A reader's assumptions if the user sets nothing.
NOTHING_SET = Assumptions()


@runtime_checkable
class ConvertibleFormat(TraceFormat, Protocol):
    """A reader whose assumptions can be set, and whose traces may have several tables.

    Attributes
    ----------
    kind : str
        The name for ``yarnfair data convert``.
    tables : sequence of str
        The tables that it reads, each with whether it is required.
    settable : mapping of str to str
        The fields of `Assumptions` that this format leaves open, each with its default assumption.
    queues : sequence of str
        The values of ``queue_by``; the first is the default.
    """

    kind: str
    tables: Sequence[str]
    settable: Mapping[str, str]
    queues: Sequence[str]

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the files of one trace; bad records are left out and counted."""
        ...


@dataclass(slots=True)
class Collector:
    """Gathers jobs and counts what is left out while a reader works.

    The reader counts ``read`` independently of what it keeps, and `finish` compares both.
    """

    jobs: dict[str, TimedJob] = field(default_factory=dict)
    read: Totals = field(default_factory=Totals)
    left_out: dict[str, Totals] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    tasks: int = 0

    def count(self, totals: Totals) -> None:
        """Count a part of the input, whether or not it is kept."""
        self.read += totals

    def leave_out(self, reason: str, totals: Totals, where: str = "") -> None:
        """Count a part of the input that is not kept, with the position of the first of its kind."""
        if not any((totals.records, totals.jobs, totals.tasks, totals.attempts)):
            return
        if reason not in self.left_out and len(self.left_out) >= _MOST_REASONS:
            reason = f"{UNREADABLE}: other reasons"
        self.left_out[reason] = self.left_out.get(reason, Totals()) + totals
        if where:
            self.examples.setdefault(reason, where)

    def keep(self, job: TimedJob, where: str = "") -> None:
        """Keep a job; a second one of the same name is left out."""
        if job.line.job in self.jobs:
            self.leave_out(DUPLICATE, job.totals(), where)
        else:
            self.jobs[job.line.job] = job
            self.places[job.line.job] = where

    def add(self, records: int, where: str, build: Callable[[], TimedJob | str]) -> bool:
        """Count a job that these records describe, and keep the result of ``build``.

        ``build`` raises BadRecord, or returns why the job is left out. Returns False if it is not kept.
        """
        self.count(Totals(jobs=1))
        try:
            made = build()
        except BadRecord as error:
            made = f"{UNREADABLE}: {error}"
        if isinstance(made, str):
            self.leave_out(made, Totals(records=records, jobs=1), where)
            return False
        totals = made.totals()
        self.count(Totals(0, 0, totals.tasks, totals.attempts, totals.container_ms))
        before = len(self.jobs)
        self.keep(made, where)
        return len(self.jobs) > before

    def rest_unread(self, path: Path, lines: int, why: str) -> str:
        """Count the unreadable rest of a file, whose size is unknown."""
        self.count(Totals(records=1))
        self.leave_out(f"{UNREADABLE}: the rest of the file ({why})", Totals(records=1), f"{path}:{lines + 1}")
        return f"what stands in {path.name} after line {lines:,} ({why})"

    def leave_out_attempts(self, missing: Mapping[str, int], where: str, *, tasks: bool = False) -> None:
        """Count attempts of a job that are not kept, by reason; with ``tasks`` each of them was a separate task."""
        for reason, count in missing.items():
            totals = Totals(tasks=count if tasks else 0, attempts=count)
            self.count(totals)
            self.leave_out(reason, totals, where)

    def expect(
        self,
        tasks: int,
        where: str,
        hint: str = "give a part of the file: the lines before this one, some of the days, or the smaller jobs",
    ) -> None:
        """Count tasks of a wanted job before they are listed. Raises InputError for more than fit in memory."""
        self.tasks += tasks
        if self.tasks > MOST_TASKS:
            raise InputError(
                f"the jobs up to here have more than {MOST_TASKS:,} tasks, too many to be played one by one",
                where=where,
                hint=hint,
            )

    def finish(
        self,
        name: str,
        *,
        nodes: Sequence[NodeLine] = (),
        conf: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] | None = None,
        delays: DelaysSpec | None = None,
        assumed: Iterable[str] = (),
        assumed_of_nodes: Iterable[str] = (),
        unknown: Iterable[str] = (),
    ) -> Reading:
        """Return the reading. Raises AccountingError if some input is neither kept nor left out."""
        self.settle()
        kept = total(job.totals() for job in self.jobs.values())
        named = {
            f"{reason}; first: {self.examples[reason]}"
            if reason in self.examples and reason.startswith(UNREADABLE)
            else reason: totals
            for reason, totals in self.left_out.items()
        }
        return Reading(
            name,
            list(self.jobs.values()),
            Account(self.read, kept, named),
            nodes,
            conf or {},
            capacity or {},
            delays or DelaysSpec(),
            [*assumed],
            [*assumed_of_nodes],
            [*unknown],
        )

    def settle(self) -> None:
        """Leave out jobs that do not form one trace with the others: by their times, then by their queues."""
        self._within_one_span()
        self._in_leaves()

    def _drop(self, job: str, reason: str) -> None:
        self.leave_out(f"{UNREADABLE}: {reason}", self.jobs.pop(job).totals(), self.places[job])

    def _within_one_span(self) -> None:
        """If times are further apart than a trace can be long, keep the range that most jobs have."""
        longest_ms = round(1000 * LONGEST_S)
        times = sorted(job.submitted_ms for job in self.jobs.values())
        if not times:
            return
        most, begin = max((bisect_right(times, at + longest_ms) - i, -at) for i, at in enumerate(times))
        begin = -begin
        if most < len(times):
            for name, job in list(self.jobs.items()):
                if not begin <= job.submitted_ms <= begin + longest_ms:
                    self._drop(name, f"submitted more than {LONGEST_S:g} s from the other jobs")
        for name, job in list(self.jobs.items()):
            last_s = max(job.line.started_s or 0.0, job.line.finished_s or 0.0)
            if job.submitted_ms - begin + 1000 * last_s > longest_ms:
                self._drop(name, f"ended more than {LONGEST_S:g} s after the first submission")

    def _in_leaves(self) -> None:
        """Leave out jobs of queues that have both jobs and child queues: those of the part with fewer jobs."""
        below: Counter[str] = Counter()
        own: dict[str, list[str]] = {}
        for name, job in self.jobs.items():
            own.setdefault(job.line.queue, []).append(name)
        for queue, jobs in own.items():
            for depth in range(1, queue.count(".") + 1):
                below[queue.rsplit(".", depth)[0]] += len(jobs)
        # From the top down: a queue that was left out is no longer a parent of another.
        for queue in sorted(own, key=lambda queue: queue.count(".")):
            if not below[queue] or not own[queue]:
                continue
            if len(own[queue]) <= below[queue]:
                gone, why = [queue], f"its queue {queue[:100]} has queues below it, with more jobs"
            else:
                gone = [other for other in own if other.startswith(f"{queue}.")]
                why = f"its queue is below {queue[:100]}, which has more jobs"
            for other in gone:
                for name in own[other]:
                    self._drop(name, why)
                own[other] = []


def missing_queues(without_queue: int, jobs: int) -> list[str]:
    """Return the missing data if at least half of the jobs have no queue; otherwise nothing."""
    return ["the trace names no queue"] if without_queue and 2 * without_queue >= jobs else []


class BadRecord(ValueError):
    """A record of a trace that cannot be a job."""


def queue_path(queue: str) -> str:
    """Return the full path of the queue that a record names.

    Raises
    ------
    BadRecord
        The queue cannot have jobs.
    """
    path = full_name(queue)
    if queue == ROOT or not all(_QUEUE_NAME.fullmatch(part) for part in path.split(".")):
        raise BadRecord(f"queue {queue[:100]!r} is no name of a queue that has jobs")
    return path


def bad_line(error: ValidationError) -> BadRecord:
    """Explain why a job's figures make no line of a trace."""
    first = error.errors()[0]
    return BadRecord(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def timed_job(
    job: str,
    *,
    queue: str | None,
    user: str | None,
    name: str | None,
    load: Mapping[str, Any],
    submitted_ms: int,
    started_ms: int | None,
    finished_ms: int | None,
    tasks: int,
    records: int = 1,
) -> TimedJob:
    """Return a MapReduce job of a trace.

    Raises
    ------
    BadRecord
        The figures make no line of a trace: an impossible queue, a name that is too long, times out of range.
    """
    try:
        line = JobLine(
            job=job,
            queue=queue_path(queue or "default"),
            user=user or "unknown",
            name=(name or "")[:1000],
            kind="mapreduce",
            submit_s=0.0,
            started_s=None if started_ms is None else max(started_ms - submitted_ms, 0) / 1000.0,
            finished_s=None if finished_ms is None else max(finished_ms - submitted_ms, 0) / 1000.0,
            **load,
        )
    except ValidationError as error:
        raise bad_line(error) from None
    return TimedJob(submitted_ms, line, tasks, records)


def milliseconds(value: object) -> int | None:
    """Return a time in milliseconds since 1970; None if the value is missing, -1 or not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 < value < LATEST_MS else None


def text_of(value: object) -> str | None:
    """Return a text, which Avro's JSON may wrap in its type; None if the value is no text or is empty."""
    if isinstance(value, Mapping):
        value = value.get("string")
    return value if isinstance(value, str) and value.strip() else None
