"""Alibaba's GPU trace of 2020 (PAI): jobs of machine learning, with the tasks of each.

Columns as https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020 lists them; the files have no line
of names (those stand in ``.header`` files beside them).
"""

from __future__ import annotations

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

#: 100 is one core, or one GPU.
UNIT = 100.0
_STATUSES = frozenset(("Running", "Terminated", "Failed", "Waiting"))
TASKS = Table(
    "pai_task_table",
    (
        "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
        "gpu_type",
    ),
    frozenset(("job_name", "task_name", "inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu")),
    frozenset(("inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu")),
    _STATUSES,
)  # fmt: skip
JOBS = Table(
    "pai_job_table",
    ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    frozenset(("job_name", "inst_id", "user", "status", "start_time", "end_time")),
    frozenset(("start_time", "end_time")),
    _STATUSES,
)
MACHINES = Table(
    "pai_machine_spec",
    ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),
    frozenset(("machine", "cap_cpu", "cap_mem", "cap_gpu")),
    frozenset(("cap_cpu", "cap_mem", "cap_gpu")),
    headed=True,
)
GPUS = "GPUs are not played: a container is its CPUs and memory"
GPUS_AS_VCORES = "vcores stand for GPUs, rounded up to whole ones; CPUs are not played"
WITHOUT_GPU = "containers without a GPU, which hold nothing where vcores stand for GPUs"


def machines_without_gpu(count: int) -> list[str]:
    """Describe the assumption about machines without vcores, because vcores stand for GPUs."""
    return [f"machines without a GPU are left out ({count:,})"] if count else []


@dataclass(frozen=True, slots=True)
class _Task:
    """A row of ``pai_task_table``: equal instances. Times in seconds; None: unknown."""

    name: str
    instances: int
    memory_mb: int
    vcores: int
    begin_s: float | None
    end_s: float | None
    has_gpu: bool

    def why_not(self, assumed: Assumptions) -> str:
        """Explain why its instances are left out; '' if they are used."""
        if assumed.gpus_as_vcores and not self.has_gpu:
            return WITHOUT_GPU
        if self.begin_s is None:
            return NO_START
        return NO_END if self.end_s is None else BACKWARDS if self.end_s < self.begin_s else ""


@dataclass(slots=True)
class _Job:
    where: str
    tasks: list[_Task] = field(default_factory=list)
    gpu_type: str = ""
    user: str = ""
    submitted_s: float | None = None
    records: int = 0


class AlibabaGpu2020(TableReader):
    """Reader of the tables of tasks, jobs and machines of Alibaba's GPU trace of 2020."""

    name = "Alibaba GPU 2020"
    versions = "cluster-trace-gpu-v2020: `pai_task_table.csv`, with it `pai_job_table.csv` and `pai_machine_spec.csv`"
    lacks = "queues; masters; GPUs as a resource of their own"
    assumes = (
        "instances that take as long as their task, all of a job's tasks at once; GPUs that are not played; "
        "masters that hold nothing; `root.default`"
    )
    kind = "alibaba-gpu-2020"
    tables = ("pai_task_table (needed)", "pai_job_table", "pai_machine_spec (with a line of names)")
    settable: Mapping[str, str] = {
        "queue_by": "none; else gpu-type or user",
        "gpus_as_vcores": "no: GPUs are not played",
        "memory_mb": "1024: of a task without plan_mem",
        "vcores": "1: of a task without plan_cpu",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("none", "gpu-type", "user")
    layout = (TASKS, JOBS, MACHINES)

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the tables. Memory: one entry per row of ``pai_task_table``."""
        files = files_by_table(paths, self.layout, self.name)
        collector = Collector()
        broken: list[str] = []
        jobs: dict[str, _Job] = {}
        for file in needed_files(files, TASKS.name, self.name):
            for row in rows_of(file, collector, broken):
                try:
                    if row.fields is None:
                        raise BadRecord(row.problem)
                    if not text(row.fields, "job_name"):
                        raise BadRecord("no job_name")
                    job = jobs.setdefault(text(row.fields, "job_name"), _Job(row.where))
                    job.records += 1
                    _add_task(job, row.fields, assumed)
                except BadRecord as error:
                    if row.fields is not None and text(row.fields, "job_name"):
                        job.records -= 1
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
        for file in files.get(JOBS.name, ()):
            for row in rows_of(file, collector, broken):
                try:
                    if row.fields is None:
                        raise BadRecord(row.problem)
                    submitted_s = number(row.fields, "start_time")
                except BadRecord as error:
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
                    continue
                known = jobs.get(text(row.fields, "job_name"))
                if known is None:
                    collector.leave_out("jobs that pai_task_table does not have", Totals(records=1), row.where)
                    continue
                known.records += 1
                known.user, known.submitted_s = text(row.fields, "user"), submitted_s
        sizes: Counter[tuple[int, int]] = Counter()
        without_gpu = 0
        for file in files.get(MACHINES.name, ()):
            for row in rows_of(file, collector, broken):
                try:
                    if row.fields is None:
                        raise BadRecord(row.problem)
                    cores = number(row.fields, "cap_gpu" if assumed.gpus_as_vcores else "cap_cpu")
                    memory_gb = number(row.fields, "cap_mem")
                    if memory_gb is None or cores is None:
                        raise BadRecord("a machine without cap_cpu, cap_gpu or cap_mem")
                    if cores:
                        sizes[size_of(1024.0 * memory_gb, cores, 1, 1)] += 1
                    else:
                        without_gpu += 1
                except BadRecord as error:
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
                    continue
                collector.leave_out(NODES, Totals(records=1), row.where)
        joined: list[str] = []
        without_queue = 0
        for name, job in jobs.items():
            queue = {"gpu-type": job.gpu_type, "user": job.user}.get(assumed.queue_by or "none", "")
            made = collector.add(
                job.records,
                job.where,
                partial(_timed, name, job, queue, assumed, collector, joined),
            )
            without_queue += made and not queue
        return collector.finish(
            self.name,
            nodes=checked_nodes(sizes),
            capacity=COUNT_VCORES,
            assumed=[
                "each instance takes as long as its task, and all of a job's tasks can begin at once",
                GPUS_AS_VCORES if assumed.gpus_as_vcores else GPUS,
                "vcores and MB are rounded up to whole ones, and both count (DominantResourceCalculator)",
                *(
                    []
                    if JOBS.name in files
                    else ["a job is submitted when its first task begins (no pai_job_table); users are unknown"]
                ),
                *joined_sentence(joined),
            ],
            assumed_of_nodes=machines_without_gpu(without_gpu) if assumed.gpus_as_vcores else [],
            unknown=[*missing_queues(without_queue, len(collector.jobs)), *broken],
        )


def _add_task(job: _Job, fields: Fields, assumed: Assumptions) -> None:
    instances = whole(fields, "inst_num")
    if instances is None:
        raise BadRecord("no inst_num")
    begin_s, end_s = number(fields, "start_time"), number(fields, "end_time")
    memory_gb = number(fields, "plan_mem")
    cpu, gpu = number(fields, "plan_cpu"), number(fields, "plan_gpu")
    figure = gpu if assumed.gpus_as_vcores else cpu
    memory_mb, vcores = size_of(
        None if memory_gb is None else 1024.0 * memory_gb,
        None if figure is None else figure / UNIT,
        assumed.memory_mb or 1024,
        assumed.vcores or 1,
    )
    job.gpu_type = job.gpu_type or text(fields, "gpu_type")
    name = text(fields, "task_name") or f"task-{len(job.tasks)}"
    job.tasks.append(_Task(name, instances, memory_mb, vcores, begin_s, end_s, bool(gpu)))


def _timed(
    name: str, job: _Job, queue: str, assumed: Assumptions, collector: Collector, joined: list[str]
) -> TimedJob | str:
    # For a job without usable tasks, the known task data decide whether it is wanted.
    played = [task for task in job.tasks if not task.why_not(assumed)] or job.tasks
    begun_s = [task.begin_s for task in played if task.begin_s is not None]
    known_s = [*begun_s, *([] if job.submitted_s is None else [job.submitted_s])]
    if known_s and not assumed.includes(min(known_s)):
        return NOT_WANTED
    works: list[Work] = []
    ends_s: list[float] = []
    missing: Counter[str] = Counter()
    for task in job.tasks:
        if why := task.why_not(assumed):
            missing[why] += task.instances
        elif task.instances and task.begin_s is not None and task.end_s is not None:
            collector.expect(task.instances, job.where)
            took_s = (task.end_s - task.begin_s,) * task.instances
            works.append(Work(task.name, task.memory_mb, task.vcores, took_s))
            ends_s.append(task.end_s)
    collector.leave_out_attempts(missing, job.where, tasks=True)
    if not works:
        return WITHOUT_GPU if set(missing) == {WITHOUT_GPU} else NOTHING_RAN
    return job_of(
        name,
        works,
        assumed,
        queue=queue,
        user=job.user,
        submitted_s=min(known_s),
        clock_s=0.0,
        started_s=min(begun_s),
        finished_s=max(ends_s),
        tasks=sum(len(work.tasks_s) for work in works),
        records=job.records,
        joined=joined,
    )
