"""The accounting identity of a reader: what a trace contains equals what was kept plus what was left out, by reason.

Every reader counts the records, jobs, tasks, attempts and container-milliseconds of its input as it meets them, and
again what it kept and what it left out. `Account` refuses figures that do not add up, so that a reader cannot drop
anything without naming it. No I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from harness.traces.recorded import ExecutorsLine, Header, JobLine, LeftOutLine

#: Above this part of the container time, of the jobs or of the attempts left out, the rest may show another load.
NEGLIGIBLE = 0.02


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of a part of a trace.

    Attributes
    ----------
    records : int
        Lines or objects of the file.
    jobs, tasks, attempts : int
        Applications, their tasks, and the attempts of these tasks, each of which held one container.
    container_ms : int
        Milliseconds for which the attempts held their containers, as far as the trace says.
    """

    records: int = 0
    jobs: int = 0
    tasks: int = 0
    attempts: int = 0
    container_ms: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def total(parts: Iterable[Totals]) -> Totals:
    """Sum of totals."""
    result = Totals()
    for part in parts:
        result += part
    return result


def container_ms(job: JobLine) -> int:
    """Milliseconds for which the tasks of a job hold their containers, the master's container not counted."""
    return sum(round(1000 * seconds) for stage in job.stages for seconds in stage.held_s())


class AccountingError(AssertionError):
    """A reader lost something: its input is not what it kept plus what it left out."""


@dataclass(frozen=True, slots=True)
class Account:
    """What a reader read, kept, and left out by reason.

    Raises
    ------
    AccountingError
        When ``read`` is not ``kept`` plus the sum of ``left_out``.
    """

    read: Totals
    kept: Totals
    left_out: Mapping[str, Totals]

    def __post_init__(self) -> None:
        accounted = self.kept + total(self.left_out.values())
        if accounted != self.read:
            raise AccountingError(f"read {self.read}, but kept and left out {accounted}")

    def lines(self) -> list[LeftOutLine]:
        """What was left out, as the first line of a trace stores it."""
        return [
            LeftOutLine(
                reason=reason,
                records=part.records,
                jobs=part.jobs,
                tasks=part.tasks,
                attempts=part.attempts,
                container_s=part.container_ms / 1000.0,
            )
            for reason, part in self.left_out.items()
        ]


def left_out_sentence(lines: Iterable[LeftOutLine]) -> str:
    """What a trace lacks of its original, in one sentence; empty where nothing was left out."""
    parts = []
    for line in lines:
        if line.reason in NOT_MISSING:
            continue
        counts = [
            f"{value:,} {name if value != 1 else name.removesuffix('s')}"
            for name, value in (("jobs", line.jobs), ("tasks", line.tasks), ("attempts", line.attempts))
            if value
        ]
        if line.container_s:
            counts.append(f"{line.container_s:,.0f} container-seconds")
        if not counts:
            counts.append(f"{line.records:,} record{'s' if line.records != 1 else ''}")
        parts.append(f"{', '.join(counts)} ({line.reason})")
    return f"left out of the trace: {'; '.join(parts)}" if parts else ""


def last_end_s(jobs: Iterable[JobLine]) -> float | None:
    """When the last application ended, of those that are known to have ended; None: none is."""
    return max((job.finished_s for job in jobs if job.finished_s is not None), default=None)


def lived_s(job: JobLine, end_s: float | None = None) -> float:
    """For how long an application ran, from its start (or its submission, where that is all that is known).

    ``end_s``: when one without an end is taken to have ended; None: as it began.
    """
    began_s = job.submit_s if job.started_s is None else job.started_s
    until_s = job.finished_s if job.finished_s is not None else end_s
    return 0.0 if until_s is None else max(until_s - began_s, 0.0)


def executors_mb(executors: ExecutorsLine) -> float:
    """What Spark's executors held on average while the application ran; where that is not known, all of them, MB."""
    return executors.count * executors.memory_mb if executors.held_mb is None else executors.held_mb


def work_of(job: JobLine, end_s: float | None = None) -> float:
    """MB-seconds of a job's tasks, or of its executors, in which the tasks run, for as long as it ran (`lived_s`)."""
    if job.executors is None:
        return math.fsum(stage.memory_mb * math.fsum(stage.tasks_s) for stage in job.stages)
    return executors_mb(job.executors) * lived_s(job, end_s)


def held_by(job: JobLine, end_s: float | None = None) -> float:
    """MB-seconds of an application's containers, its master's among them.

    What YARN counted, where the trace has it. Else the tasks' own times, which lack what a container holds before its
    task starts and after it ends.

    ``end_s``: when one without an end is taken to have ended; None: as it began.
    """
    if job.counted_mb_s is not None:
        return job.counted_mb_s
    held = (
        math.fsum(stage.memory_mb * math.fsum(stage.held_s()) for stage in job.stages)
        if job.executors is None
        else work_of(job, end_s)
    )
    return held + job.am.memory_mb * lived_s(job, end_s)


@dataclass(frozen=True, slots=True)
class Shape:
    """For how much of a trace's work it is known into which tasks it divides.

    applications : all of them.
    by_sums : how many are known only by what they used in all, and are played as equal tasks.
    known : the part of what they held (MB-seconds, `held_by`) that is known task by task.
    """

    applications: int
    by_sums: int
    known: float

    @classmethod
    def of(cls, jobs: Iterable[JobLine]) -> Shape:
        """Of the jobs of a trace."""
        listed = list(jobs)
        sums = [job for job in listed if job.detail == "integrals"]
        end_s = last_end_s(listed)
        total = math.fsum(held_by(job, end_s) for job in listed)
        by_sums = math.fsum(held_by(job, end_s) for job in sums)
        return cls(len(listed), len(sums), 1.0 - by_sums / total if total else float(not sums))

    def line(self) -> str:
        """In words."""
        if not self.by_sums:
            return f"of {self.applications} applications the shape of all is known, task by task"
        part = f"{100 * (1 - self.known):.0f} % of the work"
        return (
            f"of {self.applications} applications {self.by_sums} are known only by sums, {part}: their shape is "
            "assumed (equal tasks, as many as they held on average)"
        )


def account_lines(header: Header, jobs: Iterable[JobLine]) -> list[str]:
    """Return what a reader of a prediction has to know of its trace.

    For how much of the work the shape is known, what was left out, assumed, and is not known; and whether that may
    change what is predicted.
    """
    listed = list(jobs)
    left_out = left_out_sentence(header.left_out)
    return [
        Shape.of(listed).line(),
        *([left_out] if left_out else []),
        *(f"assumed: {what}" for what in header.assumed),
        *(f"not known: {what}" for what in header.unknown),
        *(f"unsure: {why}" for why in unsure_because(header, listed)),
    ]


def unsure_because(header: Header, jobs: Iterable[JobLine]) -> list[str]:
    """Why a prediction from this trace may be another than one from the whole; empty where it holds."""
    found = []
    if may_change_the_answer(header.left_out, jobs):
        found.append(
            f"more than {100 * NEGLIGIBLE:.0f} % of the jobs, the attempts or the container time were left out, and "
            "the rest may show another load"
        )
    if header.unknown:
        found.append("what the trace does not say may change every figure")
    return found


def account_of(header: Header, jobs: Iterable[JobLine]) -> dict[str, Any]:
    """The same for ``--json``; without the lists that are empty."""
    listed_jobs = list(jobs)
    found = {
        "left_out": [line.model_dump() for line in header.left_out if line.reason not in NOT_MISSING],
        "assumed": list(header.assumed),
        "unknown": list(header.unknown),
        "unsure": unsure_because(header, listed_jobs),
    }
    return {"shape": asdict(Shape.of(listed_jobs)), **{name: listed for name, listed in found.items() if listed}}


def may_change_the_answer(lines: Iterable[LeftOutLine], jobs: Iterable[JobLine]) -> bool:
    """Whether what was left out is more than a negligible part of the jobs, the attempts or the container time.

    An attempt whose container time is unknown counts by number, because it may have held its container for long.
    """
    listed = [line for line in lines if line.reason not in NOT_MISSING and line.reason != DUPLICATE]
    kept = list(jobs)
    work_s = sum(container_ms(job) for job in kept) / 1000.0
    attempts = sum(len(stage.tasks_s) for job in kept for stage in job.stages)
    for missing, present in (
        (sum(line.jobs for line in listed), len(kept)),
        (sum(line.attempts for line in listed), attempts),
        (sum(line.container_s for line in listed), work_s),
    ):
        if missing > NEGLIGIBLE * (missing + present):
            return True
    return False


#: Reasons that every reader uses alike.
DUPLICATE = "the same job again"
UBER = "ran inside the master's container (uber job)"
NO_START = "start unknown"
NO_END = "end unknown"
BACKWARDS = "ends before it starts"
NEVER_STARTED = "never got a container"
UNREADABLE = "cannot be read"
NOTHING_RAN = "job without a known attempt or end"
NOT_MAPREDUCE = "set-up and clean-up tasks of MapReduce 1"
NODES = "objects that describe nodes"
NOT_WANTED = "submitted outside of --from and --until"
#: Reasons for which nothing of the load is missing: the master's container holds what ran in it, nodes are no jobs, and
#: the user wanted no more.
NOT_MISSING = frozenset((UBER, NODES, NOT_WANTED))
