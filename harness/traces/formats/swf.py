"""Standard Workload Format: one line of 18 numbers for each job, as the Parallel Workloads Archive publishes logs.

The archive has the format's definition (version 2.2): https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.base.documents import LONGEST_S
from harness.base.words import plain_number
from harness.model.resources import increments
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
from harness.traces.formats.compressed import PlainLines
from harness.traces.formats.tables import files_in, note_broken
from harness.traces.recorded import JobLine, NodeLine, StageLine
from harness.yarn.capacity.convert import DOMINANT

MAX_PROCESSORS = 1_000_000
#: Memory of a processor's container, in MB, if the log has no memory.
DEFAULT_MB = 1024
#: The log's scheduler started a whole job at once; by default the Fair Scheduler grants one container a heartbeat.
AT_ONCE = {"yarn.scheduler.fair.assignmultiple": "true", "yarn.scheduler.fair.dynamic.max.assign": "false"}
#: A processor takes one container, whatever its memory; by default the Capacity Scheduler compares memory only.
BY_PROCESSORS = {"resource-calculator": DOMINANT}
#: The names of comments in the format's definition.
_KEYS = re.compile(
    r";\s*(Version|Computer|Installation|Acknowledge|Information|Conversion|MaxJobs|MaxRecords|Preemption|"
    r"UnixStartTime|TimeZone|TimeZoneString|StartTime|EndTime|MaxNodes|MaxProcs|MaxRuntime|MaxMemory|AllowOveruse|"
    r"MaxQueues|Queues?|MaxPartitions|Partitions?)\s*:"
)
#: The number of lines of which most must be jobs, to recognise a log without such comments.
_SAMPLE = 20
_FIELDS = 18
_COMPLETED, _CANCELLED, _PARTS = 1, 5, (2, 3, 4)

NEVER_RAN = "jobs that never ran"
PART = "parts of checkpointed jobs, whose whole is a line of its own"


@dataclass(frozen=True, slots=True)
class _Job:
    """One line of the log. Times are in seconds, memory in KiB for each processor; None: unknown (-1)."""

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
    lacks = "weights of queues; memory of nodes; masters; what the tasks of a job are"
    assumes = "a container of 1 vcore a processor for the job's whole run; 1,024 MB where memory is unknown"
    kind = "swf"
    tables = ("the log (needed)",)
    settable: Mapping[str, str] = {
        "memory_mb": f"{DEFAULT_MB}: of a processor's container where the log does not say",
        "queue_by": "queue; else user or none",
        "am_memory_mb": "0: the processors of its machine are all for the jobs",
        "am_vcores": "0",
    }
    queues = ("queue", "user", "none")

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file has comments after semicolons, then 18 numbers a line."""
        lines = [line.strip() for line in _decoded(head).split("\n") if line.strip()]
        if any(_KEYS.match(line) for line in lines):
            return True
        data = [line.split() for line in lines if not line.startswith(";")]
        # The last line may be truncated.
        whole = (data[:-1] or data)[:_SAMPLE]
        good = sum(len(words) == _FIELDS and _are_numbers(words) for words in whole)
        return 2 * good > len(whole)

    def read(self, path: Path) -> Reading:
        """Read the log."""
        return self.read_files([path])

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read a log, which may consist of several files, line by line. Memory use: the jobs."""
        collector = Collector()
        comments: dict[str, list[str]] = {}
        without_queue: set[str] = set()
        without_memory: set[str] = set()
        broken: list[str] = []
        for path in files_in(paths):
            lines = PlainLines(path)
            for at, raw in enumerate(lines, 1):
                line = _decoded(raw).strip()
                if line.startswith(";"):
                    key, colon, value = line.lstrip("; \t").partition(":")
                    if colon:
                        comments.setdefault(key.strip(), []).append(value.strip())
                    continue
                if not line:
                    continue
                where = f"{path}:{at}"
                collector.count(Totals(records=1, jobs=1))
                try:
                    job = _job_of(line)
                    reason = _never_ran(job) if assumed.includes(job.submit_s) else NOT_WANTED
                    if not reason:
                        collector.expect(_checked(job), where)
                    made = None if reason else _timed(job, _names_of(comments), assumed)
                except BadRecord as error:
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1, jobs=1), where)
                    continue
                if made is None:
                    collector.leave_out(reason, Totals(records=1, jobs=1), where)
                    continue
                totals = made.totals()
                collector.count(Totals(0, 0, totals.tasks, totals.attempts, totals.container_ms))
                collector.keep(made, where)
                if made.line.queue == "root.default" and _names_no_queue(job, assumed):
                    without_queue.add(made.line.job)
                if job.memory_kb is None:
                    without_memory.add(made.line.job)
            note_broken(lines, collector, broken)
        collector.settle()
        sentences = [
            "each job is one container of 1 vcore a processor, all for its whole run; masters hold nothing",
            "vcores count on the Capacity Scheduler, too (DominantResourceCalculator)",
            *(
                f"{what} ({count:,} jobs)"
                for what, count in (
                    ("jobs without a queue are in root.default", len(without_queue & collector.jobs.keys())),
                    (
                        f"containers of unknown memory have {assumed.memory_mb or DEFAULT_MB:,} MB",
                        len(without_memory & collector.jobs.keys()),
                    ),
                )
                if count
            ),
        ]
        unknown = missing_queues(len(without_queue & collector.jobs.keys()), len(collector.jobs))
        nodes, of_nodes = _nodes(comments, [job.line for job in collector.jobs.values()])
        return collector.finish(
            self.name,
            nodes=nodes,
            conf=AT_ONCE,
            capacity=BY_PROCESSORS,
            assumed=sentences,
            assumed_of_nodes=of_nodes,
            unknown=[*unknown, *broken],
        )


def _decoded(content: bytes) -> str:
    """Decode the text of a log. Jobs consist of digits; comments may have any encoding."""
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


def _are_numbers(words: list[str]) -> bool:
    try:
        return all(math.isfinite(plain_number(word)) for word in words)
    except ValueError:
        return False


def _job_of(line: str) -> _Job:
    """Return a line's numbers as a job. Raises BadRecord."""
    words = line.split()
    if len(words) != _FIELDS:
        raise BadRecord(f"{len(words)} numbers in a line, not {_FIELDS}")
    if not _are_numbers(words):
        raise BadRecord("a word that is not a number")
    values = [float(word) for word in words]

    def known(at: int) -> float | None:
        """Return the field with this number in the definition, which counts from 1; None if it is unknown."""
        return values[at - 1] if values[at - 1] >= 0 else None

    def whole(at: int) -> int | None:
        value = known(at)
        return None if value is None else int(value)

    submit_s = known(2)
    if submit_s is None:
        raise BadRecord("no time of submission")
    if submit_s > 1000 * LONGEST_S:
        raise BadRecord("a time of submission out of all bounds")
    processors = whole(5) or whole(8)
    # No container has zero memory: logs without memory have 0 or -1.
    memory_kb = known(7) or known(10) or None
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
    """Return why a job held nothing; '' for one that ran."""
    if job.status in _PARTS:
        return PART
    if not job.run_s or not job.processors:
        return NEVER_RAN
    return ""


def _checked(job: _Job) -> int:
    """Return the processors of a job. Raises BadRecord for values that no machine has."""
    processors = job.processors or 0
    if processors > MAX_PROCESSORS:
        raise BadRecord(f"more than {MAX_PROCESSORS:,} processors")
    if job.memory_kb is not None and job.memory_kb > 1024 * MOST_MB:
        raise BadRecord(f"more than {MOST_MB:,} MB a processor")
    return processors


def _names_no_queue(job: _Job, assumed: Assumptions) -> bool:
    """Return whether the log lacks the value that determines a job's queue."""
    by = assumed.queue_by or Swf.queues[0]
    return by == "none" or (job.user if by == "user" else job.queue) is None


def _timed(job: _Job, names: Mapping[int, str], assumed: Assumptions) -> TimedJob:
    """Return a job that ran as a line of a trace. Raises BadRecord."""
    processors, run_s = job.processors or 0, job.run_s or 0.0
    default_mb = assumed.memory_mb or DEFAULT_MB
    memory_mb = default_mb if job.memory_kb is None else max(math.ceil(job.memory_kb / 1024), 1)
    if _names_no_queue(job, assumed):
        queue = "default"
    elif assumed.queue_by == "user":
        queue = f"user{job.user}"
    else:
        queue = names.get(job.queue or 0, f"queue{job.queue}")
    try:
        line = JobLine(
            job=str(job.number),
            queue=queue_path(queue),
            user="unknown" if job.user is None else f"user{job.user}",
            kind="dag",
            submit_s=0.0,
            am=assumed.master(),
            am_start_s=None if assumed.am_memory_mb else 0.0,
            stages=[StageLine(name="run", memory_mb=memory_mb, vcores=1, tasks_s=[round(run_s, 3)] * processors)],
            started_s=job.wait_s,
            finished_s=None if job.wait_s is None else round(job.wait_s + run_s, 3),
        )
    except ValidationError as error:
        raise bad_line(error) from None
    return TimedJob(round(1000 * job.submit_s), line, processors)


def _names_of(comments: Mapping[str, list[str]]) -> dict[int, str]:
    """Return the names of queues by number, read from comments such as ``Queue: 2 batch``.

    Only names that are valid in YARN are returned.
    """
    found: dict[int, str] = {}
    for value in comments.get("Queue", ()):
        if match := re.fullmatch(r"(\d{1,9})\s+([A-Za-z0-9_-]{1,100})(\s.*)?", value):
            found[int(match[1])] = match[2]
    several = {name for name, count in Counter(found.values()).items() if count > 1}
    return {number: name for number, name in found.items() if name not in several}


def _count_in(comments: Mapping[str, list[str]], key: str) -> int | None:
    """Return the number in a comment, with or without thousands separators; 0: unknown; None: it cannot be read."""
    text = (comments.get(key) or [""])[0]
    if not text or re.match(r"-\d", text):
        return 0
    match = re.match(r"(\d{1,3}(?:[,']\d{3})+|\d{1,9})(?=\s|$)", text)
    return int(re.sub("[,']", "", match[1])) if match else None


def _nodes(comments: Mapping[str, list[str]], jobs: list[JobLine]) -> tuple[list[NodeLine], list[str]]:
    """Return the nodes that the comments ``MaxProcs`` and ``MaxNodes`` describe, and what is assumed of them.

    Returns no nodes if the comments do not tell.
    """
    processors, count = _count_in(comments, "MaxProcs"), _count_in(comments, "MaxNodes")
    if processors is None or count is None:
        return [], []
    processors = processors or count
    if not processors:
        return [], []
    count = count if 0 < count <= processors else 1
    most_mb = max((stage.memory_mb for job in jobs for stage in job.stages), default=DEFAULT_MB)
    # Containers are rounded up to the scheduler's step, and each processor must hold one.
    step_mb = increments({}).memory_mb
    room_mb = -(-most_mb // step_mb) * step_mb
    each, more = divmod(processors, count)
    sizes = [(each, count - more), (each + 1, more)]
    try:
        nodes = [NodeLine(count=n, memory_mb=vcores * room_mb, vcores=vcores) for vcores, n in sizes if n and vcores]
    except ValidationError:
        # An impossible machine is ignored, so the user must give the nodes.
        return [], []
    assumed = [
        f"the nodes have {room_mb:,} MB a processor: the memory of the largest container, {most_mb:,} MB, in whole "
        f"steps of {step_mb:,} MB",
        "in one heartbeat a node is granted as many containers as it has room for",
    ]
    larger = [len(stage.tasks_s) for job in jobs for stage in job.stages if len(stage.tasks_s) > processors]
    if larger:
        assumed.append(
            f"the log's machine has {processors:,} processors and its largest job {max(larger):,}: containers of "
            f"{len(larger):,} jobs wait for others of the same job"
        )
    return nodes, assumed
