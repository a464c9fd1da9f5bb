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

#: What a reader has to know of a simulation of a cluster that places containers asynchronously.
ASYNCHRONOUS_CLUSTER = (
    "the cluster places containers asynchronously, the simulator at heartbeats: there, an application that asks first "
    "may take an empty cluster whole, so waits and shares may differ from those of every replay; record it with "
    "yarn.scheduler.capacity.schedule-asynchronously.enable=false, without which `enforce` writes nothing"
)
#: The same if the recording does not say which of both the cluster does.
SYNCHRONOUS = (
    "containers are placed at heartbeats: the recording does not say whether the cluster places them asynchronously, "
    "the default since Hadoop 3.5, which no replay does (where you know it, write `asynchronous` into its first line)"
)
#: If more than this fraction of the container time, the jobs or the attempts is left out, the rest may be another load.
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
    """Return the sum of totals."""
    result = Totals()
    for part in parts:
        result += part
    return result


def container_ms(job: JobLine) -> int:
    """Return the milliseconds for which the tasks of a job hold their containers, without the AM's container."""
    return sum(round(1000 * seconds) for stage in job.stages for seconds in stage.held_s())


class AccountingError(AssertionError):
    """A reader lost something: its input is not what it kept plus what it left out."""


@dataclass(frozen=True, slots=True)
class Account:
    """What a reader read, kept, and left out by reason.

    Raises
    ------
    AccountingError
        ``read`` is not ``kept`` plus the sum of ``left_out``.
    """

    read: Totals
    kept: Totals
    left_out: Mapping[str, Totals]

    def __post_init__(self) -> None:
        accounted = self.kept + total(self.left_out.values())
        if accounted != self.read:
            raise AccountingError(f"read {self.read}, but kept and left out {accounted}")

    def lines(self) -> list[LeftOutLine]:
        """Return what was left out, in the form of a trace's first line."""
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
    """Describe in one sentence what a trace lacks of its original; empty if nothing was left out."""
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
    """Return when the last of the ended applications ended; None if no end is known."""
    return max((job.finished_s for job in jobs if job.finished_s is not None), default=None)


def lived_s(job: JobLine, end_s: float | None = None) -> float:
    """Return the seconds that an application ran, from its start (or its submission, if only that is known).

    ``end_s``: the assumed end of an application without a known end; None: the result is then 0.
    """
    began_s = job.submit_s if job.started_s is None else job.started_s
    until_s = job.finished_s if job.finished_s is not None else end_s
    return 0.0 if until_s is None else max(until_s - began_s, 0.0)


def executors_mb(executors: ExecutorsLine) -> float:
    """Return what Spark's executors held on average during the application; if unknown, the sum of all of them, MB."""
    return executors.count * executors.memory_mb if executors.held_mb is None else executors.held_mb


def work_of(job: JobLine, end_s: float | None = None) -> float:
    """Return the MB-seconds of a job's tasks, or of its executors during its whole run (`lived_s`)."""
    if job.executors is None:
        return math.fsum(stage.memory_mb * math.fsum(stage.tasks_s) for stage in job.stages)
    return executors_mb(job.executors) * lived_s(job, end_s)


def held_by(job: JobLine, end_s: float | None = None) -> float:
    """Return the MB-seconds of an application's containers, including its AM's.

    This is YARN's count, if the trace has it; otherwise it is computed from the tasks' times, which exclude the time
    that a container is held before and after its task.

    ``end_s``: the assumed end of an application without a known end, as for `lived_s`.
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
    """How much of a trace's work is known task by task.

    applications : number of all applications.
    by_sums : number of applications whose total usage only is known, which are simulated as equal tasks.
    known : the fraction of what they held (MB-seconds, `held_by`) that is known task by task.
    """

    applications: int
    by_sums: int
    known: float

    @classmethod
    def of(cls, jobs: Iterable[JobLine]) -> Shape:
        """Create it from the jobs of a trace."""
        listed = list(jobs)
        sums = [job for job in listed if job.detail == "integrals"]
        end_s = last_end_s(listed)
        total = math.fsum(held_by(job, end_s) for job in listed)
        by_sums = math.fsum(held_by(job, end_s) for job in sums)
        return cls(len(listed), len(sums), 1.0 - by_sums / total if total else float(not sums))

    def line(self) -> str:
        """Describe it in words."""
        if not self.by_sums:
            return f"of {self.applications} applications the shape of all is known, task by task"
        part = f"{100 * (1 - self.known):.0f} % of the work"
        return (
            f"of {self.applications} applications {self.by_sums} are known only by sums, {part}: their shape is "
            "assumed (equal tasks, as many as they held on average)"
        )


def account_lines(header: Header, jobs: Iterable[JobLine], *, played: bool = True) -> list[str]:
    """Return what a reader of a prediction has to know about its trace.

    The lines cover how much of the work is known task by task, what was left out, assumed or unknown, and whether that
    may change the prediction. ``played``: whether the trace is simulated, and not only counted.
    """
    listed = list(jobs)
    left_out = left_out_sentence(header.left_out)
    return [
        Shape.of(listed).line(),
        *([left_out] if left_out else []),
        *(f"assumed: {what}" for what in assumed_of(header, played=played)),
        *(f"not known: {what}" for what in header.unknown),
        *(f"unsure: {why}" for why in unsure_because(header, listed, played=played)),
    ]


def assumed_of(header: Header, *, played: bool) -> list[str]:
    """Return what a trace assumes, and what a simulation of it assumes in addition (``played``)."""
    unseen = played and header.scheduler == "capacity" and header.asynchronous is None
    return [*header.assumed, *([SYNCHRONOUS] if unseen else [])]


def unsure_because(header: Header, jobs: Iterable[JobLine], *, played: bool = True) -> list[str]:
    """Explain why a prediction from this trace may be wrong for the whole load; empty if nothing speaks for that.

    ``played``: whether the trace is simulated, and not only counted.
    """
    found = [ASYNCHRONOUS_CLUSTER] if played and header.asynchronous else []
    if may_change_the_answer(header.left_out, jobs):
        found.append(
            f"more than {100 * NEGLIGIBLE:.0f} % of the jobs, the attempts or the container time were left out, and "
            "the rest may show another load"
        )
    if header.unknown:
        found.append("what the trace does not say may change every figure")
    return found


def account_of(header: Header, jobs: Iterable[JobLine], *, played: bool = True) -> dict[str, Any]:
    """Return what `account_lines` says, for ``--json``, without empty lists."""
    listed_jobs = list(jobs)
    found = {
        "left_out": [line.model_dump() for line in header.left_out if line.reason not in NOT_MISSING],
        "assumed": assumed_of(header, played=played),
        "unknown": list(header.unknown),
        "unsure": unsure_because(header, listed_jobs, played=played),
    }
    return {"shape": asdict(Shape.of(listed_jobs)), **{name: listed for name, listed in found.items() if listed}}


def may_change_the_answer(lines: Iterable[LeftOutLine], jobs: Iterable[JobLine]) -> bool:
    """Return whether a non-negligible part of the jobs, the attempts or the container time was left out.

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


#: Reasons that all readers share.
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
#: Reasons that lose nothing of the load: the AM's container holds what ran in it, nodes are not jobs, and the user
#: excluded the rest.
NOT_MISSING = frozenset((UBER, NODES, NOT_WANTED))
