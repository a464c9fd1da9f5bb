"""What masters and drivers write of their tasks, as a run's records; a Spark program's stages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.experiments.real.curves import JobRun, tasks_table
from harness.experiments.real.programs import ProgramLoad, container_overhead_s
from harness.experiments.real.trace import run_jobs
from harness.jobs.engines.attempts import Attempt
from harness.jobs.engines.base import ProgramJob
from harness.jobs.mapreduce.history import record_of
from harness.jobs.replay import JobRecord
from harness.jobs.spark.programs import record_of as spark_record
from harness.jobs.spark.programs import stages_of
from harness.jobs.workloads.programs import ProgramsWorkload
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.traces.recorded import JobLine
from harness.traces.spec import DelaysSpec, ProgramSpec
from harness.yarn.answers import AppStatus

JOB = "1700000000000_0007"


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "event": {f"org.apache.hadoop.mapreduce.jobhistory.{kind}": fields}})


def started(kind: str, number: int, at: int, launched: int) -> list[str]:
    letter = kind[0].lower()
    task = f"task_{JOB}_{letter}_{number:06d}"
    return [
        event("TaskStarted", taskid=task, taskType=kind, startTime=at, splitLocations=""),
        event(
            "TaskAttemptStarted",
            taskid=task,
            taskType=kind,
            attemptId=f"attempt_{JOB}_{letter}_{number:06d}_0",
            startTime=launched,
            trackerName="node1:40001",
            httpPort=8042,
            containerId=f"container_{number}",
        ),
    ]


HISTORY = [
    "Avro-Json",
    '{"type":"record"}',
    *started("MAP", 0, 1000, 1600),
    *started("MAP", 1, 1000, 1700),
    event("MapAttemptFinished", attemptId=f"attempt_{JOB}_m_000000_0", finishTime=4600),
    event("MapAttemptFinished", attemptId=f"attempt_{JOB}_m_000001_0", finishTime=5700),
    *started("REDUCE", 0, 5800, 6500),
    "",
    "{half a li",
]


def test_the_masters_history_as_a_record() -> None:
    found = record_of(HISTORY, reduces_first=True)
    first, second, reduce = found.tasks
    assert (first.stage, first.task, first.outcome) == (1, 0, "finished")
    assert (first.asked_ms, first.launched_ms, first.started_ms, first.ended_ms) == (1000, 1600, 1600, 4600)
    assert (second.task, second.ended_ms - second.started_ms) == (1, 4000)
    # Cut with its job: until the last that the history knows.
    assert (reduce.stage, reduce.outcome, reduce.started_ms, reduce.ended_ms) == (0, "killed", 6500, 6500)
    assert found.first_heartbeat_ms == 1000
    maps_only = record_of(HISTORY[:6], reduces_first=False)
    assert {task.stage for task in maps_only.tasks} == {0}


def test_nothing_written_is_an_empty_record() -> None:
    assert record_of([], reduces_first=True) == JobRecord()


def status(**values: Any) -> AppStatus:
    fields: dict[str, Any] = {name: _zero(kind) for name, kind in AppStatus.__annotations__.items()}
    return AppStatus(**{**fields, "state": "FINISHED", "final_status": "SUCCEEDED", **values})


def _zero(kind: Any) -> Any:
    text = str(kind)
    if "Resource" in text:
        return Resource()
    if "tuple" in text or "Sequence" in text:
        return ()
    return 0 if text in ("int", "float") else ""


def test_what_containers_were_held_beyond_their_tasks() -> None:
    size = Resource(500, 1)
    stage = Stage("map", 2, size, Duration("constant", value_s=1.0))
    spec = JobSpec("a-1", "root.a", "mapreduce", Resource(1000, 1), (stage,))
    record = record_of(HISTORY[:8], reduces_first=False)  # 3 s and 4 s
    # The master held 1000 MB for 10 s; two containers of 500 MB the tasks' 7 s and 1.5 s each besides.
    counted = 1000 * 10 + 500 * (7 + 2 * 1.5)
    job = JobRun(spec, status=status(launched_ms=5000, finished_ms=15_000, memory_seconds=int(counted)), record=record)
    assert container_overhead_s(job) == pytest.approx(1.5)
    job.status = status(launched_ms=5000, finished_ms=15_000, memory_seconds=100)
    assert container_overhead_s(job) == 0
    job.status = None
    assert container_overhead_s(job) == 0


def attempt(kind: str, name: str, start: int, end: int, outcome: str = "finished") -> Attempt:
    return Attempt("application_1_1", kind, name, f"{name}_0", "container_5", "n:8042", start, end, outcome=outcome)


def spark_spec(memory_mb: int, executors: int = 2) -> JobSpec:
    """A driver and executors of one size, before it is known which stages there were."""
    size = Resource(memory_mb, 1)
    stages = (Stage("tasks", 1, Resource(1, 1), Duration()),)
    return JobSpec("s-1", "root.s", "spark", size, stages, executors=executors, executor_demand=size)


def test_a_spark_programs_stages_and_the_driver_between_them() -> None:
    attempts = [
        attempt("executor", "executor_1", 10_000, 40_000),
        attempt("task", "stage_0001_0_task_000000", 20_000, 23_000),
        attempt("task", "stage_0000_0_task_000001", 12_000, 16_000),
        attempt("task", "stage_0000_0_task_000000", 12_000, 15_000),
        attempt("task", "stage_0002_0_task_000000", 25_000, 0, "unknown"),
    ]
    spec = spark_spec(1024, executors=1)
    stages = stages_of(attempts, spec, status(finished_ms=43_000))
    assert [(stage.name, stage.duration.values_s) for stage in stages] == [
        ("driver 0", (2.0,)),
        ("stage_0000_0", (3.0, 4.0)),
        ("driver 1", (4.0,)),
        ("stage_0001_0", (3.0,)),
        ("driver 2", (2.0,)),
        ("stage_0002_0", (0.001,)),
        ("driver 3", (18.0,)),
    ]
    assert [stage.after for stage in stages[:3]] == [(), ("driver 0",), ("stage_0000_0",)]
    # The record numbers the stages alike, whatever the order of the log.
    job = JobRun(JobSpec("s-1", "root.s", "spark", Resource(), stages), record=spark_record(attempts))
    table = tasks_table([job], 0)
    assert sorted(zip(table["stage"], table["task"], table["outcome"], strict=True)) == [
        ("stage_0000_0", 0, "finished"),
        ("stage_0000_0", 1, "finished"),
        ("stage_0001_0", 0, "finished"),
        ("stage_0002_0", 0, "killed"),
    ]
    assert stages_of([], spec, None) == ()


def test_stages_side_by_side_are_one() -> None:
    """Two inputs of a join: a second stage begins before the first has ended."""
    attempts = [
        attempt("executor", "executor_1", 10_000, 40_000),
        attempt("executor", "executor_2", 11_000, 40_000),
        attempt("task", "stage_0000_0_task_000000", 12_000, 16_000),
        attempt("task", "stage_0001_0_task_000000", 12_500, 13_000),
        attempt("task", "stage_0000_0_task_000001", 13_000, 14_000),
        attempt("task", "stage_0002_0_task_000000", 16_000, 17_000),
    ]
    spec = spark_spec(1024)
    stages = stages_of(attempts, spec, status(finished_ms=17_000))
    assert [(stage.name, stage.duration.values_s) for stage in stages] == [
        ("driver 0", (1.0,)),
        ("stage_0000_0+stage_0001_0", (4.0, 0.5, 1.0)),
        ("driver 1", (0.001,)),
        ("stage_0002_0", (1.0,)),
    ]
    job = JobRun(JobSpec("s-1", "root.s", "spark", Resource(), stages), record=spark_record(attempts, 9000))
    assert (job.record.first_heartbeat_ms, job.record.executors_ms) == (9000, (10_000, 11_000))
    table = tasks_table([job], 0)
    assert sorted(zip(table["stage"], table["task"], table["ended_s"], strict=True)) == [
        ("stage_0000_0+stage_0001_0", 0, 16.0),
        ("stage_0000_0+stage_0001_0", 1, 13.0),
        ("stage_0000_0+stage_0001_0", 2, 14.0),
        ("stage_0002_0", 0, 17.0),
    ]


def test_a_driver_begins_with_four_fifths_of_its_executors_or_half_a_minute_after_it_was_made() -> None:
    """CoarseGrainedSchedulerBackend.isReady of Spark 4.0.5: the half minute begins with the driver, not with the first
    executor."""
    work = attempt("task", "stage_0000_0_task_000000", 50_000, 55_000)

    def first_s(asked: int, *registered: int) -> float:
        executors = [attempt("executor", f"executor_{n}", at, 60_000) for n, at in enumerate(registered)]
        stages = stages_of([*executors, work], spark_spec(1024, executors=5), status(finished_ms=60_000), asked)
        return stages[0].duration.values_s[0]

    assert first_s(10_000, 14_000, 15_000, 16_000, 17_000, 49_000) == 33.0  # the fourth of five
    assert first_s(10_000, 20_000, 21_000) == 10.0  # at 40 s
    assert first_s(10_000, 20_000, 21_000, 22_000, 45_000) == 10.0
    assert first_s(0, 20_000, 21_000) == 0.001  # nobody knows: with its first task


def load_of(spec: JobSpec, application: str) -> ProgramLoad:
    executors = {"count": spec.executors, "demand": {"memory_mb": 1000}} if spec.kind == "spark" else None
    program: dict[str, Any] = {"application": application, "input": ["d"], "maps": 2, "executors": executors}
    workload = ProgramsWorkload.model_validate(
        {
            "kind": "programs",
            "am": {"memory_mb": 1000},
            "task": {"memory_mb": 500},
            "data": {"d": {"kind": "text", "size": "1KB"}},
            "submission": {"think_s": 0},
            "programs": [{key: value for key, value in program.items() if value is not None}],
        }
    )
    one = ProgramSpec.model_validate(workload.programs[0].model_dump())
    return ProgramLoad([ProgramJob("mapreduce", spec, one, (), workload.sizing(), 2, 0, spec.executors, 1, 1, spec.id)])


def line_of(job: JobRun, application: str) -> JobLine:
    job.submitted_s = 0.0
    (line,) = load_of(job.spec, application).lines(
        run_jobs([job], 1), [job], DelaysSpec(node_heartbeat_ms=400, am_heartbeat_ms=1000)
    )
    return line


def test_a_mapreduce_master_and_its_containers_have_their_own_overheads() -> None:
    stage = Stage("map", 2, Resource(500, 1), Duration("constant", value_s=1.0))
    spec = JobSpec("a-1", "root.a", "mapreduce", Resource(1000, 1), (stage,))
    record = record_of(HISTORY[:8], reduces_first=False)
    # Launched a second before its first task was scheduled, through 4.3 s after the last had ended.
    counted = 1000 * 10 + 500 * (7 + 2 * 1.5)
    app = status(launched_ms=1, finished_ms=10_001, memory_seconds=int(counted))
    line = line_of(JobRun(spec, status=app, record=record), "wordcount")
    # Half of both heartbeats, 0.7 s, is the simulator's own of the containers and of the end; half of the master's
    # passes until it asks.
    assert line.stages[0].tasks_s == [3.0, 4.0]
    assert line.stages[0].starts_s == [0.8, 0.8]
    assert line.am_start_s == pytest.approx(0.999 + 0.5)
    assert line.am_end_s == pytest.approx(10.001 - 5.7 - 0.7)
    assert (line.spec().am_start_s, line.spec().am_end_s) == (line.am_start_s, line.am_end_s)


def test_a_spark_driver_and_its_executors_have_their_own_overheads() -> None:
    attempts = [
        attempt("executor", "executor_1", 10_000, 40_000),
        attempt("executor", "executor_2", 12_000, 40_000),
        attempt("task", "stage_0000_0_task_000000", 13_000, 16_000),
    ]
    spec = spark_spec(1000)
    # Up to 20 s; the executors had registered 10 and 8 s before, and were held 4 s longer each.
    counted = 1000 * 19 + 1000 * (8 + 10 + 2 * 4)
    app = status(launched_ms=1000, finished_ms=20_000, memory_seconds=counted)
    spec = replace(spec, stages=stages_of(attempts, spec, app))
    line = line_of(JobRun(spec, status=app, record=spark_record(attempts, 6000)), "kmeans")
    assert line.am_start_s == 5.0
    assert line.executors is not None
    assert line.executors.start_s == pytest.approx(4.0 - 0.5)
    # 26 executor-seconds in the 19 s of its life.
    assert line.executors.held_mb == pytest.approx(1000 * 26 / 19, abs=0.001)
    assert line.spec().executor_start_s == line.executors.start_s
    assert line.am_end_s == 0
    # One that had done with fewer than it asked for.
    some = 1000 * 19 + 1000 * (10 + 4)
    fewer = JobRun(spec, status=replace(app, memory_seconds=some), record=spark_record(attempts[::2], 6000))
    executors = line_of(fewer, "kmeans").executors
    assert executors is not None
    assert executors.start_s == pytest.approx(4.0 - 0.5)
    # Cut before the executors came: what was measured, and no more.
    killed = replace(app, final_status="KILLED")
    cut = line_of(JobRun(spec, status=killed, record=spark_record(attempts[:1], 6000)), "kmeans")
    assert cut.executors is not None
    assert cut.executors.start_s is None
