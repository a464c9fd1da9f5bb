"""Rumen traces (the JSON of Hadoop's ``TraceBuilder`` and ``Folder``): one object a job, one after another.

Every attempt that held a container is kept, whatever its result. Sizes come from ``jobProperties``; ``jobMapMB`` and
``jobReduceMB`` are the heaps of the JVMs, not the containers (``org.apache.hadoop.tools.rumen.JobBuilder``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.traces.accounting import BACKWARDS, NEVER_STARTED, NO_END, NO_START, NOTHING_RAN, UNREADABLE, Totals
from harness.traces.formats.base import BadRecord, Collector, Reading, TimedJob, milliseconds, missing_queues, timed_job
from harness.traces.formats.concatenated import damaged_objects
from harness.traces.mapreduce import HADOOPS_DELAYS, Attempt, am_end_s, container_sizes, load_of, master_alone


class Rumen:
    """Reader of Rumen traces."""

    name = "Rumen"
    versions = "Rumen's JSON of Hadoop 0.21 to 3.x"
    lacks = "nodes, weights of queues, what containers took besides the attempts' times"
    assumes = "a container of the JVM's heap / 0.8 where jobProperties does not give its size"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file's beginning looks like a Rumen trace."""
        return b'"mapTasks"' in head or b'"jobID"' in head

    def read(self, path: Path) -> Reading:
        """Read the trace."""
        collector = Collector()
        broken: list[str] = []
        without_queue = without_sizes = 0
        for record in damaged_objects(path, collector, broken):
            if record.value is None:
                collector.count(Totals(records=1, jobs=1))
                collector.leave_out(UNREADABLE, Totals(records=1, jobs=1), record.where)
                continue
            try:
                found, assumed = _job(record.value, collector)
            except (BadRecord, TypeError, ValueError, AttributeError, KeyError):
                # The failed conversion has added nothing to the account, so the record counts as one job.
                collector.count(Totals(records=1, jobs=1))
                collector.leave_out(UNREADABLE, Totals(records=1, jobs=1), record.where)
                continue
            if found is None:
                continue
            without_sizes += assumed
            without_queue += not record.value.get("queue")
            collector.keep(found, record.where)
        unknown = [*missing_queues(without_queue, len(collector.jobs)), *broken]
        assumptions = [
            f"{what} ({count:,} jobs)"
            for what, count in (
                ("jobs without a queue are in root.default", without_queue),
                ("container sizes: the JVM's heap / 0.8, or Hadoop's defaults", without_sizes),
            )
            if count
        ]
        return collector.finish(self.name, delays=HADOOPS_DELAYS, assumed=assumptions, unknown=unknown)


def _job(item: Mapping[str, Any], collector: Collector) -> tuple[TimedJob | None, bool]:
    """Return a job, counted in the collector, and whether its sizes are assumed.

    None for a job of which nothing ran.
    """
    submitted = milliseconds(item.get("submitTime"))
    finished = milliseconds(item.get("finishTime"))
    launched = milliseconds(item.get("launchTime"))
    job = item.get("jobID")
    if not isinstance(job, str) or not job or submitted is None:
        raise BadRecord("no job id, or no time of submission")
    read, kept, left_out, tasks = Totals(records=1, jobs=1), [], dict[str, Totals](), 0
    for kind in ("map", "reduce"):
        for number, task in enumerate(item.get(f"{kind}Tasks") or []):
            own, reasons = _attempts(kind, task, finished, f"{kind} {number}")
            count = Totals(tasks=1, attempts=len(own) + len(reasons), container_ms=sum(one.held_ms for one in own))
            read += count
            kept += own
            for reason in reasons:
                left_out[reason] = left_out.get(reason, Totals()) + Totals(attempts=1)
            if own:
                tasks += 1
            else:
                reason = reasons[0] if reasons else NEVER_STARTED
                left_out[reason] = left_out.get(reason, Totals()) + Totals(tasks=1)
    properties = item.get("jobProperties")
    sizes = container_sizes(
        [(str(name), value) for name, value in properties.items()] if isinstance(properties, Mapping) else (),
        heaps_mb={kind: _heap(item.get(f"job{kind.title()}MB")) for kind in ("map", "reduce")},
    )
    load = load_of(kept, sizes) if kept else master_alone(sizes)
    if finished is not None:
        load["am_end_s"] = am_end_s(kept, finished, launched if launched is not None else submitted)
        if item.get("outcome") == "KILLED":
            load["lifetime_s"] = max(finished - submitted, 0) / 1000.0
    found = timed_job(
        job,
        queue=_name(item.get("queue")),
        user=_name(item.get("user")),
        name=_name(item.get("jobName")),
        load=load,
        submitted_ms=submitted,
        started_ms=launched,
        finished_ms=finished,
        tasks=tasks,
    )
    collector.count(read)
    for reason, totals in left_out.items():
        collector.leave_out(reason, totals)
    if not kept and (launched is None or finished is None):
        collector.leave_out(NOTHING_RAN, found.totals())
        return None, False
    return found, bool({one.kind for one in kept} & set(sizes.assumed))


def _attempts(kind: str, task: Mapping[str, Any], job_end: int | None, name: str) -> tuple[list[Attempt], list[str]]:
    """Return the attempts of a task that held a container, and the reason why each other one is left out."""
    listed = task.get("attempts") or []
    if not listed and milliseconds(task.get("startTime")) is not None:
        listed = [task]
    kept, reasons = [], []
    task_end = milliseconds(task.get("finishTime"))
    for attempt in listed:
        start = milliseconds(attempt.get("startTime"))
        end = milliseconds(attempt.get("finishTime")) or task_end or job_end
        if start is None:
            reasons.append(NO_START)
        elif end is None:
            reasons.append(NO_END)
        elif end < start:
            reasons.append(BACKWARDS)
        else:
            shuffled = milliseconds(attempt.get("shuffleFinished")) or 0
            kept.append(Attempt(kind, start, end, task=name, shuffled_ms=shuffled))
    return kept, reasons


def _heap(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31 else None


def _name(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) and str(value).strip() else None
