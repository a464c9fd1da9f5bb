"""Spark's event logs (2.4 to 4.x): one log, a folder of its parts, or a folder of logs, such as a history server's.

Every attempt of a task that began is kept, whether it succeeded, failed or was killed. Stages wait for their parents
and for the jobs that had ended when their own was submitted; the driver's time in between is kept. Events follow
``org.apache.spark.util.JsonProtocol``; container sizes follow harness.traces.spark. No network.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.base.documents import LONGEST_S
from harness.base.errors import InputError
from harness.base.errors import reason as reason_of
from harness.sim.world import MOST_CHAINED
from harness.traces.accounting import BACKWARDS, NEVER_STARTED, NO_END, NO_START, NOTHING_RAN, UNREADABLE, Totals
from harness.traces.formats.base import (
    MOST_MB,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    bad_line,
    missing_queues,
    queue_path,
)
from harness.traces.formats.event_logs import (
    LZ4,
    LZF_REFUSED,
    ROLLED,
    SNAPPY,
    Damaged,
    EventLog,
    beginning_of,
    first_bytes,
    is_lzf,
    lines_of,
    log_of,
)
from harness.traces.formats.spark_events import SparkLog, StageAttempt, TaskAttempt
from harness.traces.mapreduce import HADOOPS_DELAYS, Attempt, retries
from harness.traces.recorded import ExecutorsLine, JobLine, StageLine
from harness.traces.spark import (
    container_sizes,
    dynamic_allocation,
    fixed_executors,
    heartbeat_ms,
    registered_before_it_begins,
)
from harness.traces.spec import DynamicSpec, MasterSpec

#: The beginning of a line that is one of Spark's own events.
_EVENT = re.compile(rb'^(?:\xef\xbb\xbf| )*\{"Event": ?"SparkListener', re.MULTILINE)
#: File names that Spark gives to logs: application ids of YARN, of a standalone master or of a local run.
_NAMED = re.compile(r"(application_|app-|local-)\d.*")
#: The maximum number of an application's stages: as many as a line of a trace may have.
_MOST_STAGES = 1000
#: With more stages, those that ran side by side are joined, because the simulator supports dependencies of fewer only.
_MOST_DEPENDENT = 62
_LOCAL = "ran in one process, without YARN (spark.master is local)"
_TOO_MANY = f"applications of more than {_MOST_STAGES:,} stages"
_NO_SUBMISSION = "log without an application's start"


class SparkEventLog:
    """Reader of Spark's event logs."""

    name = "Spark event log"
    versions = "Spark 2.4 to 4.x; plain, zstd, lz4 or snappy; rolled ones; still being written"
    lacks = "nodes, weights of queues, when YARN took the application"
    assumes = "submitted when its driver began; the queue `default` where `spark.yarn.queue` is not set"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the path looks like event logs; `head` is the file's beginning, compressed or not."""
        if path.is_dir():
            return path.name.startswith(ROLLED) or any(not log.refused for log in _logs(path))
        if head.startswith((LZ4, SNAPPY)):
            # The first block of such a file may be larger than the beginning.
            with contextlib.suppress(OSError):
                return _is_log(beginning_of(path))
        return _is_log(first_bytes(head))

    def read(self, path: Path) -> Reading:
        """Read the logs."""
        logs = _logs(path) if path.is_dir() and not path.name.startswith(ROLLED) else iter((log_of(path),))
        collector = Collector()
        assumed: dict[str, set[str]] = {}
        unknown: dict[str, set[str]] = {}
        heartbeats: dict[str, int] = {}
        for log in logs:
            _read_log(log, collector, assumed, unknown, heartbeats)
        collector.settle()
        said = [f"{what} ({count:,})" for what, jobs in assumed.items() if (count := len(jobs & collector.jobs.keys()))]
        intervals = Counter(ms for job, ms in heartbeats.items() if job in collector.jobs)
        # A trace has one heartbeat interval for all AMs.
        beats = max(intervals, key=lambda ms: (intervals[ms], -ms), default=0)
        if len(intervals) > 1:
            others = len(collector.jobs) - intervals[beats]
            said.append(f"all masters send a heartbeat every {beats:,} ms (of {others:,} it is another interval)")
        without = len(assumed.get(_NO_QUEUE, set()) & collector.jobs.keys())
        return collector.finish(
            self.name,
            delays=HADOOPS_DELAYS.model_copy(update={"am_heartbeat_ms": beats}) if beats else HADOOPS_DELAYS,
            assumed=[SUBMITTED, *said] if collector.jobs else [],
            unknown=[
                *missing_queues(without, len(collector.jobs)),
                *(f"{what} ({n:,})" for what, jobs in unknown.items() if (n := len(jobs & collector.jobs.keys()))),
            ],
        )


SUBMITTED = "each application was submitted when its driver began (the log does not say when YARN took it)"
_NO_QUEUE = "applications without spark.yarn.queue are in root.default"
_NO_PROPERTIES = "applications without properties have containers of Spark's default sizes"
_UNENDED = "applications whose log has no end are played as far as they had come"
_LATER_ATTEMPT = "further attempts of an application are applications of their own"
_OTHER_MANAGER = "applications that another cluster manager ran have containers as YARN would give them"
_PROFILES = "stages with a resource profile of their own run in executors of the default one"
_UNPERSISTED = "executors keep cached blocks that the application has dropped"
_CUT_TASKS = "attempts whose end is not recorded ended with their executor or application"
_MERGED = f"applications of more than {_MOST_DEPENDENT} stages: those that ran side by side are one"
_JOINED = (
    f"applications of more than {MOST_CHAINED} stages with dynamic allocation: neighbours are one stage, of as many "
    "equal tasks as the largest of them has"
)
_COMPACTED = "the finished jobs of applications whose logs Spark has compacted"
_PARTS = "what stands in missing parts of applications' logs"


def _is_log(text: bytes) -> bool:
    """Return whether one of the lines is an event of Spark's; the first lines may be damaged."""
    return _EVENT.search(text) is not None


def _logs(folder: Path) -> Iterator[EventLog]:
    """Yield the logs of a folder and its subfolders, in order of their names.

    Files and folders that may be logs but cannot be read are yielded too, with `refused` set.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            found = sorted(here.iterdir())
        except OSError as error:
            if here == folder:
                raise
            yield EventLog(here, (), refused=reason_of(error))
            continue
        for one in found:
            if one.name.startswith("."):
                continue  # checksums and hidden files
            try:
                if not one.is_dir():
                    log = _log_in(one)
                    if log is not None:
                        yield log
                elif one.name.startswith(ROLLED):
                    yield log_of(one)
                elif not one.is_symlink():
                    waiting.append(one)
            except OSError as error:
                yield EventLog(one, (), refused=reason_of(error))


def _log_in(path: Path) -> EventLog | None:
    """Return the log in a file of a folder; None for another type of file. Raises OSError."""
    head = beginning_of(path)
    if is_lzf(head):
        return EventLog(path, (), refused=LZF_REFUSED)
    if _is_log(head):
        return log_of(path)
    return EventLog(path, (), refused="no event at its beginning") if _NAMED.fullmatch(path.name) else None


def _events(log: EventLog, found: SparkLog) -> Iterator[Mapping[str, Any]]:
    """Yield relevant events; count unreadable records in ``found``.

    Raises InputError for a file that cannot be read.
    """
    for path in log.files:
        number = 0
        try:
            for number, line in enumerate(lines_of(path), start=1):
                found.records += 1
                if line is not None and line.startswith(b'{"Event":"org.apache.spark.') and line.endswith(b"}"):
                    continue  # events of SQL and Streaming hold no container
                event = _parsed(line)
                if event is None:
                    _bad(found, f"{path.name}:{number}")
                else:
                    yield event
        except Damaged as error:
            # The file was still being written, or the disk has lost a part of it.
            found.records += 1
            _bad(found, f"{path.name}, after line {number:,}: {error}")


def _bad(found: SparkLog, where: str) -> None:
    found.unreadable += 1
    found.first_unreadable = found.first_unreadable or where


def _parsed(line: bytes | None) -> Mapping[str, Any] | None:
    try:
        event = json.loads(line or b"")
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("Event"), str) else None


def _read_log(
    log: EventLog,
    collector: Collector,
    assumed: dict[str, set[str]],
    unknown: dict[str, set[str]],
    heartbeats: dict[str, int],
) -> None:
    """Read one log into the collector. The other arguments receive, by application, assumptions and other remarks."""
    if log.refused:
        collector.count(Totals(jobs=1))
        return collector.leave_out(f"{UNREADABLE}: {log.refused}", Totals(jobs=1), str(log.path))
    found = SparkLog()
    try:
        for event in _events(log, found):
            try:
                found.take(event)
            except (KeyError, TypeError, ValueError, AttributeError):
                _bad(found, f"{log.path.name}, an event {str(event['Event'])[:60]}")
    except (InputError, OSError) as error:
        why = error.what if isinstance(error, InputError) else str(error.strerror)
        collector.count(Totals(found.records, jobs=1))
        return collector.leave_out(f"{UNREADABLE}: {why}", Totals(found.records, jobs=1), str(log.path))
    cut = found.settle_ends()
    read, kept, left_out = _split(found)
    collector.count(replace(read, records=found.records, jobs=1))
    collector.leave_out(UNREADABLE, Totals(records=found.unreadable), found.first_unreadable)
    for reason, totals in left_out.items():
        collector.leave_out(reason, totals)
    records = found.records - found.unreadable
    tasks = read.tasks - sum(totals.tasks for totals in left_out.values())
    remaining = Totals(records, 1, tasks, len(kept), sum(one.held_ms for _, one in kept))
    reason_not = _not_played(found, kept)
    if reason_not is not None:
        return collector.leave_out(reason_not, remaining, str(log.path))
    try:
        made, said = _made(found, kept, tasks, records)
    except BadRecord as error:
        return collector.leave_out(f"not a job of a trace ({error})", remaining, str(log.path))
    if cut:
        said.append(_CUT_TASKS)
    for what in said:
        assumed.setdefault(what, set()).add(made.line.job)
    for what, so in ((_COMPACTED, log.compacted), (_PARTS, log.missing)):
        if so:
            unknown.setdefault(what, set()).add(made.line.job)
    heartbeats.setdefault(made.line.job, heartbeat_ms(found.properties))
    return collector.keep(made, str(log.path))


_Kept = list[tuple[TaskAttempt, Attempt]]


def _split(found: SparkLog) -> tuple[Totals, _Kept, dict[str, Totals]]:
    """Return the totals of a log's tasks and attempts, the attempts that are kept, and what is left out by reason."""
    left_out: dict[str, Totals] = {}
    kept: _Kept = []
    every: set[tuple[tuple[int, int], int]] = set()
    kept_tasks: set[tuple[tuple[int, int], int]] = set()
    dropped: dict[tuple[tuple[int, int], int], str] = {}
    held_ms = 0
    for task in found.tasks.values():
        key = task.stage, task.index
        every.add(key)
        start, end = task.start_ms, task.end_ms
        if start is None or end is None or end < start:
            reason = NO_START if start is None else NO_END if end is None else BACKWARDS
            left_out[reason] = left_out.get(reason, Totals()) + Totals(attempts=1)
            dropped.setdefault(key, reason)
            continue
        held_ms += end - start
        kept.append((task, Attempt("task", start, end, task=str(task.index))))
        kept_tasks.add(key)
    for key in every - kept_tasks:
        reason = dropped.get(key, NEVER_STARTED)
        left_out[reason] = left_out.get(reason, Totals()) + Totals(tasks=1)
    return Totals(tasks=len(every), attempts=len(found.tasks), container_ms=held_ms), kept, left_out


def _not_played(found: SparkLog, kept: _Kept) -> str | None:
    """Return why a log yields no job of a trace; None if it does."""
    if found.started_ms is None:
        return _NO_SUBMISSION
    if found.properties.get("spark.master", "").startswith("local"):
        return _LOCAL
    if not kept and found.ended_ms is None:
        return NOTHING_RAN
    if len({task.stage for task, _ in kept}) > _MOST_STAGES:
        return _TOO_MANY
    return None


def _made(found: SparkLog, kept: _Kept, tasks: int, records: int) -> tuple[TimedJob, list[str]]:
    """Return the application as a job of a trace, and what was assumed of it. Raises BadRecord."""
    started_ms = found.started_ms or 0
    properties = found.properties
    said: list[str] = []
    sizes = container_sizes(properties, found.version)
    if max(sizes.executor.memory_mb, sizes.master.memory_mb) > MOST_MB:
        raise BadRecord(f"a container of more than {MOST_MB:,} MB")
    dynamic = dynamic_allocation(properties, found.version)
    ended_ms = found.ended_ms
    if ended_ms is not None and ended_ms < started_ms:
        raise BadRecord("it ends before it starts")
    asked_ms = max(found.asked_ms or started_ms, started_ms)
    initial = dynamic.initial if dynamic is not None else fixed_executors(properties)
    least, wait_s = registered_before_it_begins(properties, initial)
    begins_ms = _begins_ms(found, asked_ms, least, wait_s)
    last_ms = max([begins_ms, *(one.end_ms for _, one in kept)])
    until_ms = ended_ms if ended_ms is not None else max(found.last_known_ms(), last_ms)
    if until_ms - started_ms > 1000 * LONGEST_S:
        raise BadRecord("times that lie too far apart")
    name = found.application or "application"
    if found.attempt not in ("", "1"):
        name, said = f"{name}.{found.attempt}", [*said, _LATER_ATTEMPT]
    try:
        stages = _stages(found, kept, begins_ms, sizes.executor.memory_mb, sizes.executor.vcores)
        executors = ExecutorsLine(
            count=max(_most_at_once(found), 1 if dynamic is not None else initial),
            slots=sizes.slots,
            memory_mb=sizes.executor.memory_mb,
            vcores=sizes.executor.vcores,
            start_s=_start_s(found),
            least=least,
            wait_s=min(wait_s, LONGEST_S),
            dynamic=DynamicSpec.of(dynamic) if dynamic is not None else None,
            held_mb=_held_mb(found, kept, sizes.executor.memory_mb, started_ms, until_ms),
        )
        line = JobLine(
            job=name,
            queue=queue_path(properties.get("spark.yarn.queue") or "default"),
            user=found.user or "unknown",
            name=found.name[:1000],
            kind="spark",
            submit_s=0.0,
            am=MasterSpec(memory_mb=sizes.master.memory_mb, vcores=sizes.master.vcores),
            executors=executors,
            stages=stages,
            am_start_s=(asked_ms - started_ms) / 1000.0,
            am_end_s=max(until_ms - last_ms, 0) / 1000.0,
            started_s=0.0,
            finished_s=None if ended_ms is None else (ended_ms - started_ms) / 1000.0,
        )
    except ValidationError as error:
        raise bad_line(error) from None
    said += [
        what
        for what, so in (
            (_NO_QUEUE, "spark.yarn.queue" not in properties),
            (_NO_PROPERTIES, not properties),
            (_UNENDED, ended_ms is None),
            (_OTHER_MANAGER, not properties.get("spark.master", "yarn").startswith("yarn")),
            (_PROFILES, found.profiles),
            (_UNPERSISTED, dynamic is not None and found.unpersisted),
            (_MERGED, len({task.stage for task, _ in kept}) > _MOST_DEPENDENT),
            (_JOINED, dynamic is not None and len(stages) > MOST_CHAINED),
        )
        if so
    ]
    return TimedJob(started_ms, line, tasks, records), said


def _begins_ms(found: SparkLog, asked_ms: int, least: int, wait_s: float) -> int:
    """Return when the driver could begin with its first job, milliseconds.

    It waits for ``least`` executors, but no longer than ``wait_s`` after ``asked_ms``, and no longer than until the
    first job that the log shows.
    """
    registered = sorted(at for at, _ in found.executors.values())
    if least <= 0:
        return asked_ms
    latest = asked_ms + round(1000 * min(wait_s, LONGEST_S))
    first = [job.submitted_ms for job in found.jobs.values() if job.submitted_ms is not None]
    latest = min([latest, *first]) if first else latest
    return max(min(registered[least - 1], latest) if len(registered) >= least else latest, asked_ms)


def _most_at_once(found: SparkLog) -> int:
    """Return the maximum number of executors at one time."""
    changes = [(at, 1) for at, _ in found.executors.values()]
    changes += [(found.removed_ms[name], -1) for name in found.executors if name in found.removed_ms]
    most = now = 0
    for _, by in sorted(changes):
        now += by
        most = max(most, now)
    return most


def _held_mb(found: SparkLog, kept: _Kept, memory_mb: int, started_ms: int, until_ms: int) -> float | None:
    """Return the memory that executors held on average, in MB, from the application's start to its end.

    Without an end, up to the last time in its log. None if a task ran in an executor whose registration is not in the
    log.
    """
    if until_ms <= started_ms or any(task.executor not in found.executors for task, _ in kept):
        return None
    # A container is held from its grant on, before the executor in it registers.
    start_ms = round(1000 * (_start_s(found) or 0.0))
    held_ms = sum(
        max(min(found.removed_ms.get(name, until_ms), until_ms) - max(at - start_ms, started_ms), 0)
        for name, (at, _) in found.executors.items()
    )
    return round(memory_mb * held_ms / (until_ms - started_ms), 3)


def _start_s(found: SparkLog) -> float | None:
    """Return how long an executor took to start: the shortest time from its request until it accepted tasks.

    For the shortest time the grant came soon; on average, the grant takes half a node heartbeat longer. None if the log
    does not show when executors were requested (before Spark 3.4).
    """
    times = [at - asked for at, asked in found.executors.values() if asked is not None and at >= asked]
    return max(min(times) / 1000.0, 0.001) if times else None


def _stages(found: SparkLog, kept: _Kept, begins_ms: int, memory_mb: int, vcores: int) -> list[StageLine]:
    """Return the stages in the order of their submission, each with the stages for which it waited."""
    tasks: dict[tuple[int, int], list[Attempt]] = {}
    for task, attempt in kept:
        tasks.setdefault(task.stage, []).append(attempt)
    size = {"memory_mb": memory_mb, "vcores": vcores}
    if not tasks:
        return [StageLine(name="0", tasks_s=[], memory_mb=memory_mb, vcores=vcores)]
    for own in tasks.values():
        own.sort(key=lambda one: (one.start_ms, int(one.task)))
    spans = {key: _span(found.stages.get(key), own) for key, own in tasks.items()}
    order = sorted(tasks, key=lambda key: (spans[key][0], key))
    waits = _dependencies(found, order, spans)
    children = {parent for parents in found.parents.values() for parent in parents}
    if len(order) > _MOST_DEPENDENT:
        shuffling = {key for key in order if key[0] in children}
        caching = {key for key in order if found.stages.get(key, StageAttempt()).caches}
        return _chain(order, tasks, spans, begins_ms, size, shuffling, caching)
    lines = []
    for key in order:
        ready_ms = max([spans[one][1] for one in waits[key]], default=begins_ms)
        stage = found.stages.get(key, StageAttempt())
        lines.append(
            _line(
                _stage_name(key), tasks[key], size, [_stage_name(one) for one in waits[key]],
                spans[key][0] - ready_ms, shuffles=key[0] in children, caches=stage.caches,
            )
        )  # fmt: skip
    return lines


def _stage_name(key: tuple[int, int]) -> str:
    return str(key[0]) if not key[1] else f"{key[0]}.{key[1]}"


def _line(
    name: str, attempts: list[Attempt], size: Mapping[str, int], after: list[str], delay_ms: int,
    *, shuffles: bool, caches: bool,
) -> StageLine:  # fmt: skip
    before = retries(attempts)
    return StageLine(
        name=name,
        memory_mb=size["memory_mb"],
        vcores=size["vcores"],
        tasks_s=[one.held_ms / 1000.0 for one in attempts],
        retry_of=before if any(one is not None for one in before) else [],
        after=after,
        delay_s=max(delay_ms, 0) / 1000.0 or None,
        shuffles=shuffles or None,
        caches=caches or None,
    )


def _span(stage: StageAttempt | None, attempts: list[Attempt]) -> tuple[int, int]:
    """Return when a stage was submitted and when it had ended."""
    first, last = min(one.start_ms for one in attempts), max(one.end_ms for one in attempts)
    begun = first if stage is None or stage.submitted_ms is None else min(stage.submitted_ms, first)
    return begun, last


def _dependencies(
    found: SparkLog, order: list[tuple[int, int]], spans: Mapping[tuple[int, int], tuple[int, int]]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return for each stage the earlier ones for which it waits."""
    last_of: dict[int, tuple[int, int]] = {}
    for key in order:
        if key[0] not in last_of or spans[key][1] > spans[last_of[key[0]]][1]:
            last_of[key[0]] = key
    job_of = {number: name for name, job in sorted(found.jobs.items(), reverse=True) for number in job.stages}
    waits: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, key in enumerate(order):
        earlier = set(order[:at])
        above = {last_of[one] for one in _ran_before(found, key[0], last_of) if last_of[one] in earlier}
        # A retried stage waits for its previous attempt.
        above |= {one for one in earlier if one[0] == key[0]}
        above = {one for one in above if spans[one][1] <= spans[key][0]} or above
        if not above:
            above = _of_jobs_before(found, job_of.get(key[0]), spans[key][0], earlier, job_of, spans)
        waits[key] = sorted(above, key=order.index)
    return waits


def _ran_before(found: SparkLog, number: int, ran: Mapping[int, tuple[int, int]]) -> set[int]:
    """Return the nearest ancestors of a stage that ran. A skipped ancestor is replaced by its own parents."""
    result: set[int] = set()
    seen = {number}
    waiting = list(found.parents.get(number, ()))
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in ran:
            result.add(one)
        else:
            waiting += found.parents.get(one, ())
    return result


def _of_jobs_before(
    found: SparkLog,
    job: int | None,
    submitted_ms: int,
    earlier: set[tuple[int, int]],
    job_of: Mapping[int, int],
    spans: Mapping[tuple[int, int], tuple[int, int]],
) -> set[tuple[int, int]]:
    """Return the stages that had to end before a job was submitted, as far as the log shows.

    The driver submits a job after all stages that had ended before. Of these, a stage that had ended before another one
    began is left out, because that other stage waits for it.
    """
    own = found.jobs.get(job) if job is not None else None
    at = own.submitted_ms if own is not None and own.submitted_ms is not None else submitted_ms
    ended = {one for one in earlier if spans[one][1] <= at and job_of.get(one[0]) != job}
    if not ended:
        return set()
    latest_begin = max(spans[one][0] for one in ended)
    return {one for one in ended if spans[one][1] > latest_begin}


def _chain(
    order: list[tuple[int, int]],
    tasks: Mapping[tuple[int, int], list[Attempt]],
    spans: Mapping[tuple[int, int], tuple[int, int]],
    begins_ms: int,
    size: Mapping[str, int],
    shuffling: Set[tuple[int, int]],
    caching: Set[tuple[int, int]],
) -> list[StageLine]:
    """Return stages as a chain; stages that ran side by side are joined."""
    groups: list[list[tuple[int, int]]] = []
    until = 0
    for key in order:
        if groups and spans[key][0] < until:
            groups[-1].append(key)
        else:
            groups.append([key])
        until = max(until, spans[key][1])
    lines: list[StageLine] = []
    ready = begins_ms
    for group in groups:
        # Attempts of one task are matched by the task's name, so tasks of different stages need different names.
        attempts = sorted(
            (replace(one, task=f"{key} {one.task}") for key in group for one in tasks[key]),
            key=lambda one: (one.start_ms, one.task),
        )
        first, last = _stage_name(group[0]), _stage_name(group[-1])
        name = first if len(group) == 1 else f"{first} to {last}"
        begun = min(spans[key][0] for key in group)
        after = [lines[-1].name] if lines else []
        lines.append(
            _line(
                name, attempts, size, after, begun - ready,
                shuffles=not shuffling.isdisjoint(group), caches=not caching.isdisjoint(group),
            )
        )  # fmt: skip
        ready = max(spans[key][1] for key in group)
    return lines
