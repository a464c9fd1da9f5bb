"""Standard Workload Format: one line of 18 numbers a job, as the Parallel Workloads Archive publishes logs.

The format's definition (version 2.2) is the archive's: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.base.files import read_text
from harness.traces.accounting import UNREADABLE, Totals
from harness.traces.formats.base import BadRecord, Collector, Reading, TimedJob, bad_line, missing_queues
from harness.traces.recorded import JobLine, NodeLine, StageLine, full_name
from harness.traces.spec import DemandSpec

MAX_BYTES = 1 << 30
MAX_PROCESSORS = 1_000_000
#: What a processor's container holds where the log says nothing of memory.
DEFAULT_MB = 1024
#: The format knows no masters: as small a one as can be.
MASTER = DemandSpec(memory_mb=1, vcores=1)
_FIELDS = 18
_COMPLETED, _CANCELLED, _PARTS = 1, 5, (2, 3, 4)

NEVER_RAN = "jobs that never ran"
PART = "parts of checkpointed jobs, whose whole is a line of its own"


@dataclass(frozen=True, slots=True)
class _Job:
    """A line. Times are in seconds, memory in KiB a processor; None: unknown (-1)."""

    number: int
    submit_s: float
    wait_s: float | None
    run_s: float | None
    processors: int | None
    memory_kb: float | None
    status: int
    user: int | None
    queue: int | None


class Swf:
    """Reader of the Standard Workload Format."""

    name = "SWF"
    versions = "Standard Workload Format 2.2 (Parallel Workloads Archive)"
    lacks = "weights of queues; memory of nodes; what the tasks of a job are"
    assumes = "a container of 1 vcore a processor for the job's whole run; 1,024 MB where memory is unknown"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the file has comments after semicolons, then 18 numbers a line."""
        lines = [line for line in head.decode("latin-1").splitlines() if line.strip()]
        data = [line.split() for line in lines if not line.startswith(";")]
        # The last line may be cut.
        whole = data[:-1] or data
        return bool(whole) and all(len(words) == _FIELDS and _are_numbers(words) for words in whole[:3])

    def read(self, path: Path) -> Reading:
        """Read the log."""
        text = read_text(path, MAX_BYTES, hint="check the path, or split the file")
        collector = Collector()
        comments: dict[str, list[str]] = {}
        without_queue = without_memory = 0
        for at, line in enumerate(text.splitlines(), 1):
            if line.startswith(";"):
                key, colon, value = line.lstrip("; \t").partition(":")
                if colon:
                    comments.setdefault(key.strip(), []).append(value.strip())
                continue
            if not line.strip():
                continue
            where = f"{path}:{at}"
            collector.count(Totals(records=1, jobs=1))
            try:
                job = _job_of(line)
                reason = _never_ran(job)
                made = None if reason else _timed(job, _names_of(comments))
            except BadRecord as error:
                collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1, jobs=1), where)
                continue
            if made is None:
                collector.leave_out(reason, Totals(records=1, jobs=1), where)
                continue
            totals = made.totals()
            collector.count(Totals(0, 0, totals.tasks, totals.attempts, totals.container_ms))
            collector.keep(made, where)
            without_queue += job.queue is None
            without_memory += job.memory_kb is None
        assumed = [
            "each job is one container of 1 vcore a processor, all for its whole run",
            *(
                f"{what} ({count:,} jobs)"
                for what, count in (
                    ("jobs without a queue are in root.default", without_queue),
                    (f"containers of unknown memory have {DEFAULT_MB:,} MB", without_memory),
                )
                if count
            ),
        ]
        unknown = missing_queues(without_queue, len(collector.jobs))
        nodes = _nodes(comments, [job.line for job in collector.jobs.values()])
        return collector.finish(self.name, nodes=nodes, assumed=assumed, unknown=unknown)


def _are_numbers(words: list[str]) -> bool:
    try:
        return all(math.isfinite(float(word)) for word in words)
    except ValueError:
        return False


def _job_of(line: str) -> _Job:
    """A line's numbers. Raises BadRecord."""
    words = line.split()
    if len(words) != _FIELDS:
        raise BadRecord(f"{len(words)} numbers in a line, not {_FIELDS}")
    if not _are_numbers(words):
        raise BadRecord("a word that is not a number")
    values = [float(word) for word in words]

    def known(at: int) -> float | None:
        """The field of this number in the definition, which counts from 1; None for one that is unknown."""
        return values[at - 1] if values[at - 1] >= 0 else None

    def whole(at: int) -> int | None:
        value = known(at)
        return None if value is None else int(value)

    submit_s = known(2)
    if submit_s is None:
        raise BadRecord("no time of submission")
    processors = whole(5) or whole(8)
    memory_kb = known(7) or known(10)
    return _Job(
        number=int(values[0]),
        submit_s=submit_s,
        wait_s=known(3),
        run_s=known(4),
        processors=processors,
        memory_kb=memory_kb,
        status=int(values[10]),
        user=whole(12),
        queue=whole(15),
    )


def _never_ran(job: _Job) -> str:
    """Why a job held nothing; '' for one that ran."""
    if job.status in _PARTS:
        return PART
    if not job.run_s or not job.processors:
        return NEVER_RAN
    return ""


def _timed(job: _Job, names: Mapping[int, str]) -> TimedJob:
    """A job that ran, as a line. Raises BadRecord."""
    processors, run_s = job.processors or 0, job.run_s or 0.0
    if processors > MAX_PROCESSORS:
        raise BadRecord(f"more than {MAX_PROCESSORS:,} processors")
    memory_mb = DEFAULT_MB if job.memory_kb is None else max(math.ceil(job.memory_kb / 1024), 1)
    queue = "default" if job.queue is None else names.get(job.queue, f"queue{job.queue}")
    try:
        line = JobLine(
            job=str(job.number),
            queue=full_name(queue),
            user="unknown" if job.user is None else f"user{job.user}",
            kind="dag",
            submit_s=0.0,
            am=MASTER,
            stages=[StageLine(name="run", memory_mb=memory_mb, vcores=1, tasks_s=[round(run_s, 3)] * processors)],
            started_s=job.wait_s,
            finished_s=None if job.wait_s is None else round(job.wait_s + run_s, 3),
        )
    except ValidationError as error:
        raise bad_line(error) from None
    return TimedJob(round(1000 * job.submit_s), line, processors)


def _names_of(comments: Mapping[str, list[str]]) -> dict[int, str]:
    """Names of queues, from comments such as ``; Queue: 2 batch``; only those that are names in YARN, too."""
    found: dict[int, str] = {}
    for value in comments.get("Queue", ()):
        if match := re.fullmatch(r"(\d{1,9})\s+([A-Za-z0-9_-]{1,100})(\s.*)?", value):
            found[int(match[1])] = match[2]
    several = {name for name, count in Counter(found.values()).items() if count > 1}
    return {number: name for number, name in found.items() if name not in several}


def _nodes(comments: Mapping[str, list[str]], jobs: list[JobLine]) -> list[NodeLine]:
    """The machine of the comments ``MaxProcs`` and ``MaxNodes``; empty where they do not say."""

    def number(key: str) -> int:
        match = re.match(r"\d{1,9}", (comments.get(key) or [""])[0])
        return int(match[0]) if match else 0

    processors, count = number("MaxProcs"), number("MaxNodes")
    processors = processors or count
    if not processors:
        return []
    count = count if 0 < count <= processors else 1
    most_mb = max((stage.memory_mb for job in jobs for stage in job.stages), default=DEFAULT_MB)
    each, more = divmod(processors, count)
    sizes = [(each, count - more), (each + 1, more)]
    try:
        return [NodeLine(count=n, memory_mb=vcores * most_mb, vcores=vcores) for vcores, n in sizes if n and vcores]
    except ValidationError:
        # A machine that cannot be is none: the user has to give its nodes.
        return []
