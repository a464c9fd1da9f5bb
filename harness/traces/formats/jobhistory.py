"""Job history files of MapReduce 2 (``.jhist``, in either of Avro's forms), one file or a folder of them.

``mapreduce.jobhistory.jhist.format`` determines the form: ``json`` has one event a line; ``binary`` (Hadoop 3's
default) is read by `harness.traces.formats.avro_events`. The events are processed in the same way.

Every attempt that held a container is kept, whether it succeeded, failed or was killed; a killed job ends when it was
killed. Sizes come from the job's configuration, which MapReduce writes beside the file. Events follow
``org.apache.hadoop.mapreduce.jobhistory`` of Hadoop 0.23 to 3.x. No network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import reading
from harness.traces.accounting import (
    BACKWARDS,
    NEVER_STARTED,
    NO_END,
    NO_START,
    NOT_MAPREDUCE,
    NOTHING_RAN,
    UBER,
    UNREADABLE,
    Totals,
)
from harness.traces.formats.avro_events import BINARY, avro_events
from harness.traces.formats.base import BadRecord, Collector, Reading, TimedJob, milliseconds, text_of, timed_job
from harness.traces.formats.compressed import PlainLines, plain_head, readable_bytes
from harness.traces.mapreduce import (
    HADOOPS_DELAYS,
    MASTER_HEARTBEAT_S,
    Attempt,
    ContainerSizes,
    am_end_s,
    container_sizes,
    load_of,
    master_alone,
)

_SCHEMA, _HEAD = '{"type":"record"', "Avro-Json"
#: A job's id in Hadoop's form, which is also the name of its configuration's file.
_JOB = re.compile(r"job_\d{1,20}_\d{1,20}")
_LARGEST_BYTES = 1 << 30
#: A history file's name, with or without the suffix of a compressed file.
_FILE = re.compile(r".*\.jhist(\.(gz|bz2|zst|zstd|lz4))?")
_KINDS = {"MAP": "map", "REDUCE": "reduce"}
#: Values of ``jobStatus`` for a killed job (``JobState`` of Hadoop 3.4.2).
_KILLED = "KILLED"


class JobHistory:
    """Reader of job history files."""

    name = "job history"
    versions = "MapReduce 2 (Hadoop 0.23 to 3.x), Avro-Json and Avro-Binary"
    lacks = "nodes, weights of queues, what containers took besides the attempts' times"
    assumes = "Hadoop's default container sizes where no JOB_conf.xml stands beside the file"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the path looks like job history files; `head` is the file's beginning."""
        if path.is_dir():
            return bool(_files_of(path))
        return head.startswith((_HEAD.encode(), BINARY)) or b'"type":"JOB_SUBMITTED"' in head or b"jobhistory." in head

    def read(self, path: Path) -> Reading:
        """Read the files."""
        files = _files_of(path) if path.is_dir() else [path]
        collector = Collector()
        broken: list[str] = []
        assumed: dict[str, int] = {}
        for file in files:
            _read_file(file, collector, assumed, broken)
        said = [f"{what} ({count:,})" for what, count in assumed.items()]
        return collector.finish(self.name, delays=HADOOPS_DELAYS, assumed=said, unknown=broken)


def _files_of(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*.jhist*") if _FILE.fullmatch(one.name))


@dataclass(slots=True)
class _Attempt:
    task: str
    kind: str
    start_ms: int | None = None
    end_ms: int | None = None
    shuffled_ms: int | None = None


@dataclass(slots=True)
class _Task:
    kind: str
    end_ms: int | None = None
    winner: str | None = None
    attempts: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _History:
    """The events of one file."""

    records: int = 0
    #: For a truncated compressed file: the number of readable lines, and the reason.
    lines: int = 0
    broken: str = ""
    unreadable: int = 0
    first_unreadable: str = ""
    submitted: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    masters_ms: list[int] = field(default_factory=list)
    launched_ms: int | None = None
    finished_ms: int | None = None
    killed: bool = False
    uber: bool = False
    tasks: dict[str, _Task] = field(default_factory=dict)
    attempts: dict[str, _Attempt] = field(default_factory=dict)

    def take(self, kind: str, event: Mapping[str, object]) -> None:
        """Add one event. Raises KeyError or TypeError for an event without a field that its type requires."""
        match kind:
            case "JobSubmitted":
                self.submitted = event
                self.queue = self.queue or text_of(event.get("jobQueueName"))
            case "JobQueueChange":
                # The queue in which the ResourceManager placed it, whatever the client requested.
                self.queue = text_of(event["jobQueueName"]) or self.queue
            case "AMStarted":
                if (start := milliseconds(event["startTime"])) is not None:
                    self.masters_ms.append(start)
            case "JobInited":
                self.launched_ms = milliseconds(event.get("launchTime")) or self.launched_ms
                self.uber = self.uber or event.get("uberized") is True
            case "JobFinished" | "JobUnsuccessfulCompletion":
                self.finished_ms = milliseconds(event["finishTime"])
                self.killed = text_of(event.get("jobStatus")) == _KILLED
            case "TaskStarted":
                self._task(event)
            case "TaskAttemptStarted":
                self._attempt(event).start_ms = milliseconds(event["startTime"])
            case "MapAttemptFinished" | "ReduceAttemptFinished" | "TaskAttemptFinished":
                attempt = self._attempt(event)
                attempt.end_ms = milliseconds(event["finishTime"])
                attempt.shuffled_ms = milliseconds(event.get("shuffleFinishTime"))
            case "TaskAttemptUnsuccessfulCompletion":
                self._attempt(event).end_ms = milliseconds(event["finishTime"])
            case "TaskFinished" | "TaskFailed":
                task = self._task(event)
                task.end_ms = milliseconds(event["finishTime"])
                task.winner = text_of(event.get("successfulAttemptId"))
                if task.winner is None and kind == "TaskFinished" and event.get("status") == "SUCCEEDED":
                    # Files of Hadoop 0.23 do not show which attempt succeeded: the last one is assumed.
                    task.winner = task.attempts[-1] if task.attempts else None

    def _task(self, event: Mapping[str, object]) -> _Task:
        name = _identity(event["taskid"])
        return self.tasks.setdefault(name, _Task(str(event.get("taskType", "MAP"))))

    def _attempt(self, event: Mapping[str, object]) -> _Attempt:
        name, task = _identity(event["attemptId"]), _identity(event["taskid"])
        if name not in self.attempts:
            kind = str(event.get("taskType", "MAP"))
            self.attempts[name] = _Attempt(task, kind)
            self.tasks.setdefault(task, _Task(kind)).attempts.append(name)
        return self.attempts[name]

    def settle_ends(self) -> int:
        """Set ends that no event of the attempt shows; return how many were assumed.

        A task's successful attempt ends with its task. MapReduce kills the other attempts of a task when one succeeds,
        and all attempts of a job when it ends.
        """
        assumed = 0
        for name, attempt in self.attempts.items():
            if attempt.end_ms is not None or attempt.start_ms is None:
                continue
            task = self.tasks[attempt.task]
            end = task.end_ms if task.end_ms is not None else self.finished_ms
            if end is not None and end >= attempt.start_ms:
                attempt.end_ms = end
                assumed += name != task.winner
        return assumed


def _identity(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("an id is a text")
    return value


def _events(path: Path, history: _History) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (type, event) of each valid record; the others are counted in ``history``.

    Raises InputError if the file is in the binary form and its schema cannot be read.
    """
    with reading(path):
        binary = plain_head(path, len(BINARY)) == BINARY
    return _of_binary(path, history) if binary else _of_lines(path, history)


def _of_binary(path: Path, history: _History) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with reading(path):
        whole = readable_bytes(path, _LARGEST_BYTES)
    history.lines, history.broken = whole.data.count(b"\n"), whole.broken
    for found in avro_events(whole.data):
        history.records += 1
        if found.fields is None:
            history.unreadable += 1
            history.first_unreadable = history.first_unreadable or f"{path}, byte {found.at:,}"
        else:
            yield found.record.rpartition(".")[2], found.fields


def _of_lines(path: Path, history: _History) -> Iterator[tuple[str, Mapping[str, Any]]]:
    lines = PlainLines(path)
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > _LARGEST_BYTES:
            raise InputError(f"larger than {_LARGEST_BYTES >> 30} GiB when unpacked")
        # Hadoop 0.23 writes a space before each event. The second line is the events' schema.
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith((_SCHEMA, _HEAD)):
            continue
        history.records += 1
        try:
            ((name, event),) = json.loads(text)["event"].items()
            if not isinstance(event, dict):
                raise TypeError(name)
            yield name.rpartition(".")[2], event
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            history.unreadable += 1
            history.first_unreadable = history.first_unreadable or f"{path}:{lines.number}"
    history.lines, history.broken = lines.number, lines.broken


def _read_file(path: Path, collector: Collector, assumed: dict[str, int], broken: list[str]) -> None:
    if not path.is_file():
        return _whole_file(collector, f"{UNREADABLE}: not an ordinary file", path)
    if path.stat().st_size > _LARGEST_BYTES:
        return _whole_file(collector, f"{UNREADABLE}: larger than {_LARGEST_BYTES >> 30} GiB", path)
    history = _History()
    try:
        for kind, event in _events(path, history):
            try:
                history.take(kind, event)
            except (KeyError, TypeError, ValueError):
                history.unreadable += 1
                history.first_unreadable = history.first_unreadable or f"{path}, an event {kind}"
    except InputError as error:
        return _whole_file(collector, f"{UNREADABLE}: {error.what}", path)
    if history.broken:
        broken.append(collector.rest_unread(path, history.lines, history.broken))
    job = text_of(history.submitted.get("jobid"))
    submitted_ms = milliseconds(history.submitted.get("submitTime"))
    ended_by_others = history.settle_ends()
    read, kept, left_out = _split(history)
    collector.count(replace(read, records=history.records, jobs=1))
    collector.leave_out(UNREADABLE, Totals(records=history.unreadable), history.first_unreadable)
    readable = history.records - history.unreadable
    for reason, totals in left_out.items():
        collector.leave_out(reason, totals)
    tasks = read.tasks - sum(totals.tasks for totals in left_out.values())
    remaining = Totals(readable, 1, tasks, len(kept), sum(one.held_ms for one in kept))
    if job is None or submitted_ms is None:
        return collector.leave_out("file without a job's submission", remaining, str(path))
    if not kept and not history.uber and (history.finished_ms is None or not history.masters_ms):
        return collector.leave_out(NOTHING_RAN, remaining, str(path))
    sizes = _configured(path.with_name(f"{job}_conf.xml")) if _JOB.fullmatch(job) else container_sizes(())
    try:
        found = _job(job, submitted_ms, history, kept, sizes, tasks=tasks, records=readable)
    except BadRecord as error:
        return collector.leave_out(f"not a job of a trace ({error})", remaining, str(path))
    # If only the AM ran, only its size matters.
    if ({one.kind for one in kept} or {"master"}) & set(sizes.assumed):
        what = "jobs whose container sizes are Hadoop's defaults, since no configuration of theirs gives them"
        assumed[what] = assumed.get(what, 0) + 1
    if ended_by_others:
        what = "attempts whose end is not recorded and is taken to be that of their task or job"
        assumed[what] = assumed.get(what, 0) + ended_by_others
    return collector.keep(found, str(path))


def _whole_file(collector: Collector, reason: str, path: Path) -> None:
    collector.count(Totals(jobs=1))
    collector.leave_out(reason, Totals(jobs=1), str(path))


def _split(history: _History) -> tuple[Totals, list[Attempt], dict[str, Totals]]:
    """Return a file's tasks and attempts: counted, kept, and left out by reason."""
    left_out: dict[str, Totals] = {}
    kept: list[Attempt] = []
    kept_tasks: set[str] = set()
    dropped_tasks: dict[str, str] = {}
    container_ms = 0
    masters = sorted(history.masters_ms)
    for attempt in history.attempts.values():
        start, end = attempt.start_ms, attempt.end_ms
        reason = (
            NOT_MAPREDUCE
            if attempt.kind not in _KINDS
            else UBER
            if history.uber
            else NO_START
            if start is None
            else NO_END
            if end is None
            else BACKWARDS
            if end < start
            else None
        )
        if reason is not None or start is None or end is None:
            reason = reason or NO_END
            left_out[reason] = left_out.get(reason, Totals()) + Totals(attempts=1)
            dropped_tasks.setdefault(attempt.task, reason)
            continue
        container_ms += end - start
        number = max(sum(1 for began in masters if began <= start), 1)
        shuffled = attempt.shuffled_ms or 0
        kept.append(Attempt(_KINDS[attempt.kind], start, end, number, attempt.task, shuffled))
        kept_tasks.add(attempt.task)
    for name in history.tasks:
        if name not in kept_tasks:
            reason = dropped_tasks.get(name, NEVER_STARTED)
            left_out[reason] = left_out.get(reason, Totals()) + Totals(tasks=1)
    return Totals(tasks=len(history.tasks), attempts=len(history.attempts), container_ms=container_ms), kept, left_out


def _job(
    job: str,
    submitted_ms: int,
    history: _History,
    kept: list[Attempt],
    sizes: ContainerSizes,
    *,
    tasks: int,
    records: int,
) -> TimedJob:
    load = master_alone(sizes) if history.uber or not kept else load_of(kept, sizes)
    masters = sorted(history.masters_ms)
    started_ms = masters[0] if masters else history.launched_ms
    launched_ms, finished_ms = history.launched_ms, history.finished_ms
    began_ms = started_ms
    if launched_ms is not None and (before := [one for one in masters if one <= launched_ms]):
        # As in a recording: it asks for its tasks at the heartbeat after the initialisation of the job.
        load["am_start_s"] = round((launched_ms - before[-1]) / 1000.0 + MASTER_HEARTBEAT_S / 2, 3)
        began_ms = masters[0] + launched_ms - before[-1]
    if finished_ms is not None:
        load["am_end_s"] = am_end_s([] if history.uber else kept, finished_ms, began_ms or submitted_ms)
        if history.killed:
            load["lifetime_s"] = max(finished_ms - submitted_ms, 0) / 1000.0
    return timed_job(
        job,
        queue=history.queue,
        user=text_of(history.submitted.get("userName")),
        name=text_of(history.submitted.get("jobName")),
        load=load,
        submitted_ms=submitted_ms,
        started_ms=started_ms,
        finished_ms=finished_ms,
        tasks=tasks,
        records=records,
    )


def _configured(path: Path) -> ContainerSizes:
    """Return container sizes by a job's configuration; Hadoop's defaults if it is missing or unreadable."""
    from lxml import etree

    if not path.is_file():
        return container_sizes(())
    try:
        root = etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    except (OSError, etree.XMLSyntaxError):
        return container_sizes(())
    return container_sizes((str(one.findtext("name")), one.findtext("value")) for one in root.iter("property"))
