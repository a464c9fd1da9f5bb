"""What a reader of a format answers, and the interface of a reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import ValidationError

from harness.traces.accounting import DUPLICATE, UNREADABLE, Account, Totals, container_ms, total
from harness.traces.recorded import JobLine, NodeLine, full_name

#: A clock's milliseconds beyond it are no time since 1970 (the year 5138).
LATEST_MS = 100_000_000_000_000


@dataclass(frozen=True, slots=True)
class TimedJob:
    """A job whose line has its times in seconds since it was submitted.

    Attributes
    ----------
    submitted_ms : int
        When it was submitted, by the trace's own clock.
    line : JobLine
        The job, with ``submit_s`` 0.
    tasks : int
        How many tasks its attempts belong to.
    records : int
        How many records of the file it was made of.
    """

    submitted_ms: int
    line: JobLine
    tasks: int
    records: int = 1

    def totals(self) -> Totals:
        """What it counts for in the account."""
        attempts = sum(len(stage.tasks_s) for stage in self.line.stages)
        return Totals(self.records, 1, self.tasks, attempts, container_ms(self.line))


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace as a reader understood it.

    Attributes
    ----------
    format : str
        The reader's name.
    jobs : sequence of TimedJob
        The jobs that were kept.
    account : Account
        What was read, kept and left out.
    nodes : sequence of NodeLine
        The cluster's nodes, where the trace names them.
    assumed : sequence of str
        What the trace does not say and what was taken in its place.
    unknown : sequence of str
        What the trace does not say and no verdict can do without.
    """

    format: str
    jobs: Sequence[TimedJob]
    account: Account
    nodes: Sequence[NodeLine] = ()
    assumed: Sequence[str] = ()
    unknown: Sequence[str] = ()


@runtime_checkable
class TraceFormat(Protocol):
    """A reader of one format. ``name``, ``versions``, ``lacks`` and ``assumes`` stand in the table of formats."""

    name: str
    versions: str
    lacks: str
    assumes: str

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a file with these first bytes, or a folder (no bytes), is of this format."""
        ...

    def read(self, path: Path) -> Reading:
        """Read a file or folder of this format; bad records are left out and counted."""
        ...


@dataclass(slots=True)
class Collector:
    """Gathers jobs and counts what is left out while a reader works.

    ``read`` is counted by the reader independently of what it keeps: `finish` holds one against the other.
    """

    jobs: dict[str, TimedJob] = field(default_factory=dict)
    read: Totals = field(default_factory=Totals)
    left_out: dict[str, Totals] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def count(self, totals: Totals) -> None:
        """Count something of the input, whatever becomes of it."""
        self.read += totals

    def leave_out(self, reason: str, totals: Totals, where: str = "") -> None:
        """Count something of the input that is not kept, with the place of the first of its kind."""
        if not any((totals.records, totals.jobs, totals.tasks, totals.attempts)):
            return
        self.left_out[reason] = self.left_out.get(reason, Totals()) + totals
        if where:
            self.examples.setdefault(reason, where)

    def keep(self, job: TimedJob, where: str = "") -> None:
        """Keep a job; one of the same name is left out."""
        if job.line.job in self.jobs:
            self.leave_out(DUPLICATE, job.totals(), where)
        else:
            self.jobs[job.line.job] = job

    def finish(
        self,
        name: str,
        *,
        nodes: Sequence[NodeLine] = (),
        assumed: Iterable[str] = (),
        unknown: Iterable[str] = (),
    ) -> Reading:
        """The reading. Raises AccountingError when something of the input is neither kept nor left out."""
        kept = total(job.totals() for job in self.jobs.values())
        named = {
            f"{reason}; first: {self.examples[reason]}"
            if reason in self.examples and reason.startswith(UNREADABLE)
            else reason: totals
            for reason, totals in self.left_out.items()
        }
        return Reading(name, list(self.jobs.values()), Account(self.read, kept, named), nodes, [*assumed], [*unknown])


def missing_queues(without_queue: int, jobs: int) -> list[str]:
    """What a trace does not say where at least half of its jobs have no queue; else nothing."""
    return ["the trace names no queue"] if without_queue and 2 * without_queue >= jobs else []


class BadRecord(ValueError):
    """A record of a trace that cannot be a job."""


def bad_line(error: ValidationError) -> BadRecord:
    """Why a job's figures make no line of a trace."""
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
    """A MapReduce job of a trace.

    Raises
    ------
    BadRecord
        When the figures make no line of a trace: a name that is too long, times out of range.
    """
    try:
        line = JobLine(
            job=job,
            queue=full_name(queue or "default"),
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


def milliseconds(value: Any) -> int | None:
    """A time since 1970 in milliseconds, or None for what is none (absent, -1, not a number)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 < value < LATEST_MS else None


def text_of(value: Any) -> str | None:
    """A text, which Avro's JSON may wrap in its type; None for what is none."""
    if isinstance(value, Mapping):
        value = value.get("string")
    return value if isinstance(value, str) and value.strip() else None
