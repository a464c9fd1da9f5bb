"""Alibaba's cluster trace of 2018: its batch jobs, with the order of their tasks.

Columns as https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2018 (``schema.txt``) lists them; the files
have no line of names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.traces.accounting import BACKWARDS, NO_END, NO_START, NODES, NOT_WANTED, NOTHING_RAN, UNREADABLE, Totals
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
    COUNT_VCORES,
    Fields,
    Table,
    TableFile,
    TableReader,
    Work,
    checked_nodes,
    files_by_table,
    job_of,
    joined_sentence,
    needed_files,
    number,
    rows_of,
    size_of,
    text,
    whole,
)

#: The trace gives memory in per cent of its largest machine, whose size is not published.
MACHINE_MB = 262_144
#: 100 is one core, as the schema says.
CPU_UNIT = 100.0
_STATUSES = frozenset(("Ready", "Waiting", "Running", "Terminated", "Failed", "Cancelled", "Interrupted"))
TASKS = Table(
    "batch_task",
    ("task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time", "plan_cpu", "plan_mem"),
    frozenset(("task_name", "instance_num", "job_name", "start_time", "end_time", "plan_cpu", "plan_mem")),
    frozenset(("instance_num", "start_time", "end_time", "plan_cpu", "plan_mem")),
    _STATUSES,
)
INSTANCES = Table(
    "batch_instance",
    (
        "instance_name", "task_name", "job_name", "task_type", "status", "start_time", "end_time", "machine_id",
        "seq_no", "total_seq_no", "cpu_avg", "cpu_max", "mem_avg", "mem_max",
    ),
    frozenset(("instance_name", "task_name", "job_name", "start_time", "end_time", "seq_no")),
    frozenset(("start_time", "end_time", "seq_no", "total_seq_no", "cpu_avg", "cpu_max", "mem_avg", "mem_max")),
    _STATUSES,
)  # fmt: skip
MACHINES = Table(
    "machine_meta",
    ("machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size", "status"),
    frozenset(("machine_id", "cpu_num", "mem_size")),
    frozenset(("time_stamp", "failure_domain_1", "cpu_num", "mem_size")),
    frozenset(("USING", "IMPORT", "OFFLINE")),
)
ORPHANS = "instances of tasks that batch_task does not have"
NOT_LISTED = "instances that batch_task counts and batch_instance does not list"
#: ``R4_2_3``: the fourth task, which waits for the second and the third. ``task_...`` has no predecessors.
_ORDERED = re.compile(r"[A-Za-z]+(\d{1,9})((?:_\d{1,9})*)(?:_.*)?")


@dataclass(slots=True)
class _Task:
    """A row of ``batch_task``. Times in seconds; None: unknown."""

    name: str
    instances: int
    begin_s: float | None
    end_s: float | None
    memory_mb: int
    vcores: int

    def span(self) -> tuple[float, float] | None:
        """Return when its instances began and ended; None if unknown."""
        if self.begin_s is None or self.end_s is None or self.end_s < self.begin_s:
            return None
        return self.begin_s, self.end_s


@dataclass(slots=True)
class _Job:
    where: str
    tasks: list[_Task] = field(default_factory=list)
    #: By task: name and times of each listed instance.
    instances: dict[str, list[tuple[str, float, float]]] = field(default_factory=dict)
    #: By task: name of each listed instance with impossible times, and the reason.
    untimed: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    records: int = 0


class Alibaba2018(TableReader):
    """Reader of the batch tables of Alibaba's cluster trace of 2018."""

    name = "Alibaba 2018"
    versions = "cluster-trace-v2018: `batch_task.csv`, with it `batch_instance.csv` and `machine_meta.csv` if wanted"
    lacks = "queues; users; when a job was submitted; the size of the largest machine; masters"
    assumes = (
        "a job is submitted when its first task begins; a largest machine of 262,144 MB; without `batch_instance` "
        "instances that take as long as their task; masters that hold nothing; `root.default`"
    )
    kind = "alibaba-2018"
    tables = ("batch_task (needed)", "batch_instance", "machine_meta")
    settable: Mapping[str, str] = {
        "machine_memory_mb": f"{MACHINE_MB}: the largest machine's memory, of which plan_mem is a percentage",
        "memory_mb": "1024: of a task without plan_mem",
        "vcores": "1: of a task without plan_cpu",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("none",)
    layout = (TASKS, INSTANCES, MACHINES)

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the tables. Memory: the rows of ``batch_task``, and of ``batch_instance`` those of its jobs."""
        files = files_by_table(paths, self.layout, self.name)
        collector = Collector()
        broken: list[str] = []
        jobs: dict[str, _Job] = {}
        for file in needed_files(files, TASKS.name, self.name):
            _read_tasks(file, assumed, collector, jobs, broken)
        for file in files.get(INSTANCES.name, ()):
            _read_instances(file, collector, jobs, broken)
        machines: dict[str, tuple[int, int]] = {}
        for file in files.get(MACHINES.name, ()):
            _read_machines(file, assumed, collector, machines, broken)
        joined: list[str] = []
        without_instances = 0
        while jobs:
            # Jobs are processed one after another, so that their input is freed as early as possible.
            name, job = jobs.popitem()
            kept = collector.add(job.records, job.where, partial(_timed, name, job, assumed, collector, joined))
            if kept and INSTANCES.name in files:
                without_instances += sum(
                    task.name not in job.instances and task.instances > 0 and task.span() is not None
                    for task in job.tasks
                )
        nodes = checked_nodes(_counted(machines))
        machine_mb = assumed.machine_memory_mb or MACHINE_MB
        return collector.finish(
            self.name,
            nodes=nodes,
            capacity=COUNT_VCORES,
            assumed=[
                f"the largest machine has {machine_mb:,} MB, of which plan_mem is a percentage",
                "vcores and MB are rounded up to whole ones, and both count (DominantResourceCalculator)",
                "a job is submitted when its first task begins: its wait before that is not in the files",
                *([] if INSTANCES.name in files else ["each instance takes as long as its task (no batch_instance)"]),
                *(
                    [
                        f"of {without_instances:,} tasks of which batch_instance lists no instance with its times, "
                        "each takes as long as its task"
                    ]
                    if without_instances
                    else []
                ),
                *joined_sentence(joined),
            ],
            assumed_of_nodes=["machines that were there at any time are there all the time"] if nodes else [],
            unknown=[*missing_queues(len(collector.jobs), len(collector.jobs)), *broken],
        )


def _read_tasks(
    file: TableFile, assumed: Assumptions, collector: Collector, jobs: dict[str, _Job], broken: list[str]
) -> None:
    for row in rows_of(file, collector, broken):
        try:
            if row.fields is None:
                raise BadRecord(row.problem)
            job, task = _task_of(row.fields, assumed)
        except BadRecord as error:
            collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
            continue
        found = jobs.setdefault(job, _Job(row.where))
        found.records += 1
        found.tasks.append(task)


def _task_of(fields: Fields, assumed: Assumptions) -> tuple[str, _Task]:
    job = text(fields, "job_name")
    instances = whole(fields, "instance_num")
    if not job or instances is None:
        raise BadRecord("no job_name or no instance_num")
    share = number(fields, "plan_mem", most=100.0)
    cpu = number(fields, "plan_cpu")
    memory_mb, vcores = size_of(
        None if share is None else share / 100.0 * (assumed.machine_memory_mb or MACHINE_MB),
        None if cpu is None else cpu / CPU_UNIT,
        assumed.memory_mb or 1024,
        assumed.vcores or 1,
    )
    # 0: before or after the time range of the trace.
    begin_s, end_s = number(fields, "start_time") or None, number(fields, "end_time") or None
    return job, _Task(text(fields, "task_name"), instances, begin_s, end_s, memory_mb, vcores)


def _read_instances(file: TableFile, collector: Collector, jobs: dict[str, _Job], broken: list[str]) -> None:
    for row in rows_of(file, collector, broken):
        try:
            if row.fields is None:
                raise BadRecord(row.problem)
            job = jobs.get(text(row.fields, "job_name"))
            begin_s, end_s = number(row.fields, "start_time") or None, number(row.fields, "end_time") or None
        except BadRecord as error:
            collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
            continue
        if job is None:
            collector.leave_out("instances of jobs that batch_task does not have", Totals(records=1), row.where)
            continue
        # It is not known yet whether the job is wanted at all: in any case, the row is counted with its job.
        job.records += 1
        task, name = text(row.fields, "task_name"), text(row.fields, "instance_name")
        if begin_s is None or end_s is None or end_s < begin_s:
            reason = NO_START if begin_s is None else NO_END if end_s is None else BACKWARDS
            job.untimed.setdefault(task, []).append((name, reason))
        else:
            job.instances.setdefault(task, []).append((name, begin_s, end_s))


def _read_machines(
    file: TableFile,
    assumed: Assumptions,
    collector: Collector,
    machines: dict[str, tuple[int, int]],
    broken: list[str],
) -> None:
    for row in rows_of(file, collector, broken):
        try:
            if row.fields is None:
                raise BadRecord(row.problem)
            share, cores = number(row.fields, "mem_size", most=100.0), whole(row.fields, "cpu_num")
            if not share or not cores:
                raise BadRecord("a machine without cpu_num or mem_size")
            size = size_of(share / 100.0 * (assumed.machine_memory_mb or MACHINE_MB), cores, 1, 1)
        except BadRecord as error:
            collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
            continue
        collector.leave_out(NODES, Totals(records=1), row.where)
        machines.setdefault(text(row.fields, "machine_id"), size)


def _counted(machines: Mapping[str, tuple[int, int]]) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for size in machines.values():
        found[size] = found.get(size, 0) + 1
    return found


def _submitted_s(job: _Job) -> float | None:
    """Return when the first task began; for a job without usable tasks, as far as it is known."""
    begin_s = [first for task in job.tasks for _, first, _ in job.instances.get(task.name, ())]
    for task in job.tasks:
        if task.name not in job.instances and task.instances and (span := task.span()) is not None:
            begin_s.append(span[0])
    return min(begin_s or [task.begin_s for task in job.tasks if task.begin_s is not None], default=None)


def _leave_out_instances(job: _Job, collector: Collector) -> None:
    """Count listed instances that are unusable, and instances that batch_instance does not list."""
    known = {task.name for task in job.tasks}
    for name in sorted({*job.instances, *job.untimed} - known):
        # The row of their task was unreadable, so their size is unknown.
        held_ms = sum(round(1000 * (last - first)) for _, first, last in job.instances.get(name, ()))
        listed = [one for one, *_ in (*job.instances.get(name, ()), *job.untimed.get(name, ()))]
        orphans = Totals(tasks=len(set(listed)), attempts=len(listed), container_ms=held_ms)
        collector.count(orphans)
        collector.leave_out(ORPHANS, orphans, job.where)
    for task in job.tasks:
        untimed = job.untimed.get(task.name, [])
        collector.leave_out_attempts(Counter(reason for _, reason in untimed), job.where)
        if timed := job.instances.get(task.name):
            there = {one for one, _, _ in timed} | {one for one, _ in untimed}
            if task.instances > len(there):
                missing = {NOT_LISTED: task.instances - len(there)}
                collector.leave_out_attempts(missing, job.where, tasks=True)


def _timed(name: str, job: _Job, assumed: Assumptions, collector: Collector, joined: list[str]) -> TimedJob | str:
    submitted_s = _submitted_s(job)
    if submitted_s is not None and not assumed.includes(submitted_s):
        return NOT_WANTED
    _leave_out_instances(job, collector)
    works: list[Work] = []
    begin_s: list[float] = []
    end_s: list[float] = []
    tasks = 0
    numbered = {match[1]: task.name for task in job.tasks if (match := _ORDERED.fullmatch(task.name))}
    for task in job.tasks:
        listed = job.instances.get(task.name)
        if listed:
            collector.expect(len(listed), job.where)
            chains: dict[str, int] = {}
            retry_of: list[int | None] = []
            ordered = sorted(listed, key=lambda one: one[1])
            for at, (instance, _, _) in enumerate(ordered):
                # The same instance again: after the end of its first attempt it is a retry, before that a copy.
                before = chains.get(instance)
                retry_of.append(before if before is not None and ordered[before][2] <= ordered[at][1] else None)
                chains[instance] = at
            spans = tuple((first, last) for _, first, last in ordered)
            count = len(chains)
        elif (span := task.span()) is None:
            reason = NO_START if task.begin_s is None else NO_END if task.end_s is None else BACKWARDS
            collector.leave_out_attempts({reason: task.instances}, job.where, tasks=True)
            continue
        else:
            collector.expect(task.instances, job.where)
            spans = (span,) * task.instances
            retry_of = []
            count = task.instances
        if not spans:
            continue
        tasks += count
        begin_s += [first for first, _ in spans]
        end_s += [last for _, last in spans]
        works.append(
            Work(
                task.name,
                task.memory_mb,
                task.vcores,
                tuple(last - first for first, last in spans),
                tuple(retry_of),
                _parents(task.name, numbered),
            )
        )
    if not works:
        return NOTHING_RAN
    return job_of(
        name,
        works,
        assumed,
        queue="",
        user="",
        submitted_s=min(begin_s),
        clock_s=0.0,
        started_s=min(begin_s),
        finished_s=max(end_s),
        tasks=tasks,
        records=job.records,
        joined=joined,
    )


def _parents(name: str, numbered: Mapping[str, str]) -> frozenset[str]:
    """Return the tasks that a task of this name waits for, among those of its job by number."""
    match = _ORDERED.fullmatch(name)
    if match is None or name.startswith("task_"):
        return frozenset()
    return frozenset(numbered[at] for at in match[2].split("_") if at in numbered and numbered[at] != name)
