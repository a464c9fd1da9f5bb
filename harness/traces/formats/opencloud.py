"""Jobs of a Hadoop 1 cluster as CSV, in the form in which Carnegie Mellon's OpenCloud published its job history.

According to the trace's page (https://ftp.pdl.cmu.edu/pub/datasets/hla/dataset.html), the tables were made from Hadoop
0.20's job history. So the columns have the names of its keys (``org.apache.hadoop.mapred.JobHistory.Keys``), in any
order and spelling (``JOBID``, ``job_id``, ``Job ID``). For files without a line of names the user gives the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from harness.traces.accounting import (
    BACKWARDS,
    NO_END,
    NO_START,
    NOT_MAPREDUCE,
    NOT_WANTED,
    NOTHING_RAN,
    UNREADABLE,
    Totals,
)
from harness.traces.formats.base import (
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    missing_queues,
)
from harness.traces.formats.tables import (
    Fields,
    Table,
    TableReader,
    Work,
    files_by_table,
    job_of,
    needed_files,
    number,
    rows_of,
    text,
    whole,
)
from harness.traces.mapreduce import MAP_PRIORITY, REDUCE_PRIORITY, SLOW_START, Attempt, waits_of
from harness.traces.recorded import NodeLine

#: OpenCloud's machines, as its page describes them.
NODES_COUNT, NODE_MB, NODE_VCORES = 64, 16_384, 8
CONTAINER_MB = 2048
JOBS = Table(
    "jobs",
    (),
    frozenset(("JOBID", "SUBMIT_TIME", "FINISH_TIME", "TOTAL_MAPS", "TOTAL_REDUCES")),
    headed=True,
)
ATTEMPTS = Table("attempts", (), frozenset(("JOBID", "TASK_TYPE", "TASKID", "START_TIME", "FINISH_TIME")), headed=True)
_KINDS = {"MAP": "map", "REDUCE": "reduce"}
_LONGEST_MS = 1e14


@dataclass(slots=True)
class _Job:
    """One job. Times are in milliseconds. ``attempts``: type of task -> (task, times) of each attempt."""

    where: str
    fields: Fields
    records: int = 1
    attempts: dict[str, list[tuple[str, float, float]]] = field(default_factory=dict)
    #: Reason -> attempts with impossible times.
    untimed: Counter[str] = field(default_factory=Counter)


class OpenCloud(TableReader):
    """Reader of Hadoop 1's jobs, and attempts of tasks, as CSV."""

    name = "OpenCloud"
    versions = "CSV of Hadoop 0.20's job history by the names of its keys: a table of jobs, with it one of attempts"
    lacks = "sizes of containers; queues where there is no column JOB_QUEUE; masters"
    assumes = (
        "OpenCloud's 64 nodes of 16,384 MB and 8 vcores; containers of 2,048 MB and 1 vcore; without a table of "
        "attempts equal tasks that fill the job's time, with one reduces that begin when 5 % of the maps have ended; "
        "masters that hold nothing"
    )
    kind = "opencloud"
    tables = ("jobs (needed)", "attempts")
    settable: Mapping[str, str] = {
        "columns": "of a table of jobs without a line of names: JOBID,USER,...",
        "queue_by": "queue: JOB_QUEUE; else user or none",
        "memory_mb": f"{CONTAINER_MB}: of each container",
        "vcores": "1: of each container",
        "machine_memory_mb": f"{NODE_MB}: of each of the {NODES_COUNT} nodes",
        "machine_vcores": f"{NODE_VCORES}: of each of the {NODES_COUNT} nodes",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("queue", "user", "none")
    layout = (JOBS, ATTEMPTS)

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the tables. Memory use: the rows of jobs, and one entry for each row of attempts."""
        files = files_by_table(paths, self.layout, self.name, assumed.columns)
        collector = Collector()
        broken: list[str] = []
        jobs: dict[str, _Job] = {}
        for file in needed_files(files, JOBS.name, self.name):
            for row in rows_of(file, collector, broken):
                name = "" if row.fields is None else text(row.fields, "JOBID")
                if row.fields is None or not name or name in jobs:
                    why = row.problem or ("no JOBID" if not name else "the same JOBID again")
                    collector.count(Totals(jobs=1))
                    collector.leave_out(f"{UNREADABLE}: {why}", Totals(records=1, jobs=1), row.where)
                    continue
                jobs[name] = _Job(row.where, row.fields)
        for file in files.get(ATTEMPTS.name, ()):
            for row in rows_of(file, collector, broken):
                _read_attempt(row.fields, row.problem, row.where, collector, jobs)
        clock_ms = min((time for job in jobs.values() if (time := _submitted_ms(job)) is not None), default=0.0)
        without_queue = assumed_shapes = reduces_with_maps = 0
        for name, job in jobs.items():
            queue = _queue_of(job.fields, assumed)
            made = collector.add(
                job.records,
                job.where,
                partial(_timed, name, job, queue, clock_ms, assumed, collector),
            )
            without_queue += made and not queue
            assumed_shapes += made and not job.attempts
            reduces_with_maps += made and len(job.attempts) > 1
        memory_mb, vcores = assumed.memory_mb or CONTAINER_MB, assumed.vcores or 1
        node_mb, node_vcores = assumed.machine_memory_mb or NODE_MB, assumed.machine_vcores or NODE_VCORES
        return collector.finish(
            self.name,
            nodes=[NodeLine(count=NODES_COUNT, memory_mb=node_mb, vcores=node_vcores)],
            assumed=[
                f"each task is a container of {memory_mb:,} MB and {vcores:,} vcores",
                *(
                    [
                        f"reduces are asked for when {100 * SLOW_START:g} % of their job's maps have ended (Hadoop's "
                        "default): what they waited for maps is in their time"
                    ]
                    if reduces_with_maps
                    else []
                ),
                *(
                    [
                        f"of {assumed_shapes:,} jobs without attempts, the tasks are equally long, and on all nodes "
                        "alone fill the time from LAUNCH_TIME to FINISH_TIME"
                    ]
                    if assumed_shapes
                    else []
                ),
            ],
            assumed_of_nodes=[f"{NODES_COUNT} nodes of {node_mb:,} MB and {node_vcores:,} vcores"],
            unknown=[*missing_queues(without_queue, len(collector.jobs)), *broken],
        )


def _read_attempt(
    fields: Fields | None, problem: str, where: str, collector: Collector, jobs: Mapping[str, _Job]
) -> None:
    try:
        if fields is None:
            raise BadRecord(problem)
        job = jobs.get(text(fields, "JOBID"))
        kind = _KINDS.get(text(fields, "TASK_TYPE").upper())
        begin_ms, end_ms = (number(fields, name, most=_LONGEST_MS) for name in ("START_TIME", "FINISH_TIME"))
    except BadRecord as error:
        collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), where)
        return
    if job is None or kind is None:
        why = "attempts of jobs that are not in the table" if job is None else NOT_MAPREDUCE
        collector.leave_out(why, Totals(records=1), where)
        return
    job.records += 1
    if not begin_ms or not end_ms or end_ms < begin_ms:
        # It is not known yet whether its job is included, so it is counted together with the job.
        job.untimed[NO_START if not begin_ms else NO_END if not end_ms else BACKWARDS] += 1
        return
    job.attempts.setdefault(kind, []).append((text(fields, "TASKID"), begin_ms, end_ms))


def _queue_of(fields: Fields, assumed: Assumptions) -> str:
    """Return the job's queue; '' if the table does not have it."""
    match assumed.queue_by or "queue":
        case "queue":
            return text(fields, "JOB_QUEUE") or text(fields, "QUEUE_NAME")
        case "user":
            return text(fields, "USER")
        case _:
            return ""


def _submitted_ms(job: _Job) -> float | None:
    try:
        return number(job.fields, "SUBMIT_TIME", most=_LONGEST_MS)
    except BadRecord:
        return None


def _timed(
    name: str, job: _Job, queue: str, clock_ms: float, assumed: Assumptions, collector: Collector
) -> TimedJob | str:
    submitted_ms, launched_ms, finished_ms = (
        number(job.fields, column, most=_LONGEST_MS) for column in ("SUBMIT_TIME", "LAUNCH_TIME", "FINISH_TIME")
    )
    counts = {
        "map": whole(job.fields, "TOTAL_MAPS") or 0,
        "reduce": whole(job.fields, "TOTAL_REDUCES") or 0,
    }
    if submitted_ms is None:
        raise BadRecord("no SUBMIT_TIME")
    if not assumed.includes((submitted_ms - clock_ms) / 1000.0):
        return NOT_WANTED
    collector.leave_out_attempts(job.untimed, job.where)
    memory_mb, vcores = assumed.memory_mb or CONTAINER_MB, assumed.vcores or 1
    works: list[Work] = []
    tasks = 0
    if job.attempts:
        attempts: dict[str, list[Attempt]] = {}
        for kind, parent in (("map", ""), ("reduce", "map")):
            listed = sorted(job.attempts.get(kind, ()), key=lambda one: one[1])
            attempts[kind] = [Attempt(kind, round(begin), round(end), task=task) for task, begin, end in listed]
            collector.expect(len(listed), job.where)
            last: dict[str, int] = {}
            retry_of: list[int | None] = []
            for at, (task, begin_ms, _) in enumerate(listed):
                before = last.get(task)
                retry_of.append(before if before is not None and listed[before][2] <= begin_ms else None)
                last[task] = at
            tasks += len(last)
            tasks_s = tuple((end - begin) / 1000.0 for _, begin, end in listed)
            if tasks_s:
                # A reduce waits for maps within its own time, so it may begin as early as it did.
                early, priority = (1.0, MAP_PRIORITY) if kind == "map" else (SLOW_START, REDUCE_PRIORITY)
                work = Work(kind, memory_mb, vcores, tasks_s, tuple(retry_of), frozenset((parent,)), early, priority)
                if kind == "reduce" and attempts["map"]:
                    waits = waits_of(attempts["reduce"], attempts["map"])
                    if waits.tail:
                        work = replace(work, waits_s=waits.waits_s, tail=waits.tail)
                works.append(work)
    elif finished_ms is None:
        return NO_END
    else:
        begin_ms = submitted_ms if launched_ms is None else launched_ms
        if finished_ms < begin_ms:
            return BACKWARDS
        node_mb, node_vcores = assumed.machine_memory_mb or NODE_MB, assumed.machine_vcores or NODE_VCORES
        slots = max(NODES_COUNT * min(node_mb // memory_mb, node_vcores // vcores), 1)
        waves = sum(-(-count // slots) for count in counts.values())
        tasks = sum(counts.values())
        collector.expect(tasks, job.where)
        for kind, parent in (("map", ""), ("reduce", "map")):
            if counts[kind]:
                each_s = (finished_ms - begin_ms) / 1000.0 / waves
                works.append(Work(kind, memory_mb, vcores, (each_s,) * counts[kind], (), frozenset((parent,))))
    if not works:
        return NOTHING_RAN
    return job_of(
        name,
        works,
        assumed,
        queue=queue,
        user=text(job.fields, "USER"),
        title=text(job.fields, "JOBNAME"),
        submitted_s=submitted_ms / 1000.0,
        clock_s=clock_ms / 1000.0,
        started_s=None if launched_ms is None else launched_ms / 1000.0,
        finished_s=None if finished_ms is None else finished_ms / 1000.0,
        tasks=tasks,
        records=job.records,
        joined=[],
        detail="tasks" if job.attempts else "integrals",
        kind="mapreduce" if job.attempts else "dag",
    )
