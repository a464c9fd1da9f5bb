"""Recorded work without success: attempts of a task one after the other, jobs that end when they were killed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage, TaskFaults
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.setup import Delays, SimResult, SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

ONE = Resource(1024, 1)
FINISHED, FAILED, KILLED = range(3)
SCHEDULERS = ("fair", "capacity", "fifo")


def listed(*tasks: tuple[float, ...]) -> Duration:
    """Of each task the seconds of its attempts."""
    values = tuple(seconds for attempts in tasks for seconds in attempts)
    return Duration("listed", values_s=values, attempts=tuple(map(len, tasks)))


def stage(name: str, duration: Duration, **more: Any) -> Stage:
    return Stage(name, len(duration.attempts), ONE, duration, **more)


def played(*jobs: JobSpec, scheduler: str = "fair", **more: Any) -> SimResult:
    given: dict[str, Any] = {"nodes": tuple(NodeSpec(f"n{i}", 16_384, 16) for i in range(2))}
    if scheduler == "fifo":
        given["policy"] = make_policy("fifo")
    name = "default" if scheduler == "fifo" else "a"
    return simulate(
        SimSetup(
            allocations=parse_allocations(f'<allocations><queue name="{name}"/></allocations>'),
            jobs=[JobSpec(**{**_fields(job), "queue": f"root.{name}"}) for job in jobs],
            scheduler=scheduler,  # type: ignore[arg-type]
            record_tasks=True,
            delays=Delays(am_response_heartbeats=0),
            **{**given, **more},
        )
    )


def _fields(job: JobSpec) -> dict[str, Any]:
    return {name: getattr(job, name) for name in JobSpec.__dataclass_fields__}


def job(*stages: Stage, name: str = "j", kind: Any = "mapreduce", **more: Any) -> JobSpec:
    return JobSpec(name, "", kind, ONE, stages, **more)


def log(result: SimResult) -> list[tuple[int, int, int, int, int, int]]:
    """(stage, task, attempt, start, end, outcome), in order of the starts."""
    assert result.tasks is not None
    columns = [result.tasks[name] for name in ("stage", "task", "attempt", "start_ms", "end_ms", "outcome")]
    return sorted(
        (tuple(int(value) for value in row) for row in zip(*columns, strict=True)),  # type: ignore[misc]
        key=lambda row: (row[3], row),
    )


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_attempt_begins_when_the_one_that_it_repeats_has_ended(scheduler: str) -> None:
    result = played(job(stage("map", listed((10.0,), (100.0, 80.0, 60.0)))), scheduler=scheduler)
    found = log(result)
    assert [(task, attempt, end - start, outcome) for _, task, attempt, start, end, outcome in found] == [
        (0, 0, 10_000, FINISHED),
        (1, 0, 100_000, FAILED),
        (1, 1, 80_000, FAILED),
        (1, 2, 60_000, FINISHED),
    ]
    for before, after in itertools.pairwise(found[1:]):
        # It is heard of, asked for, granted, heard of again: each takes a heartbeat of a second at most.
        assert before[4] < after[3] <= before[4] + 4000
    assert 240 < result.jobs["finished_s"][0] < 255
    assert (int(result.jobs["tasks"][0]), int(result.jobs["attempts_failed"][0])) == (2, 2)


def test_however_many_attempts_are_recorded_the_job_goes_on() -> None:
    """Attempts that were killed do not count in Hadoop, and a job may allow more failures than is usual."""
    faults = TaskFaults(failure=1e-12, max_attempts=2)
    result = played(job(stage("map", listed((1.0,) * 9))), faults=faults)
    assert result.failed_jobs == 0
    assert [row[2] for row in log(result)] == list(range(9))


def test_an_attempt_that_was_lost_with_its_node_is_made_again_as_it_was() -> None:
    nodes = tuple(NodeSpec(f"n{i}", 1024, 1, leave_s=30.0 if i else None) for i in range(1, 3))
    master = NodeSpec("m", 1024, 1)
    tasks = stage(
        "map",
        listed((50.0, 7.0)),
    )
    last = NodeSpec("late", 1024, 1, join_s=40.0)
    result = played(job(tasks), nodes=(master, nodes[0], last))
    found = [(attempt, end - start, outcome) for _, _, attempt, start, end, outcome in log(result)]
    assert found[1:] == [(1, 50_000, FAILED), (2, 7_000, FINISHED)]
    assert (found[0][0], found[0][2]) == (0, KILLED)
    assert found[0][1] < 30_000


def test_a_reduce_that_failed_does_not_wait_for_the_last_map_and_the_next_attempt_does() -> None:
    maps, reduces = listed((20.0,), (200.0,)), listed((5.0, 5.0))
    stages = (stage("map", maps), stage("reduce", reduces, after=("map",), slow_start=0.5, priority=10))
    found = [row for row in log(played(job(*stages))) if row[0] == 0]
    (_, _, _, start, end, outcome), (_, _, _, again, last, finished) = found
    assert (end - start, outcome, finished) == (5000, FAILED, FINISHED)
    assert again < 60_000
    assert last > 200_000


def test_reduces_begin_by_the_part_of_the_tasks_that_ended_not_of_the_attempts() -> None:
    maps = listed((5.0,), (5.0, 5.0, 5.0, 5.0, 60.0))
    stages = (stage("map", maps), stage("reduce", listed((1.0,)), after=("map",), slow_start=1.0, priority=10))
    found = log(played(job(*stages, kind="dag")))
    reduce = next(row for row in found if row[0] == 0)
    assert reduce[3] > 80_000


def test_sparks_tasks_have_attempts_one_after_the_other_too() -> None:
    one = job(stage("x", listed((5.0,), (20.0, 10.0))), kind="spark", executors=2, executor_demand=ONE)
    found = [(task, end - start, outcome) for _, task, _, start, end, outcome in log(played(one))]
    assert found == [(0, 5000, FINISHED), (1, 20_000, FAILED), (1, 10_000, FINISHED)]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", ["mapreduce", "dag", "spark"])
def test_a_killed_job_ends_then_with_all_that_it_holds_and_asks_for(scheduler: str, kind: str) -> None:
    """40 tasks of 100 s on 31 containers: those of the second wave run when it is killed, and nothing goes on."""
    executors: dict[str, Any] = {"executors": 20, "executor_demand": ONE} if kind == "spark" else {}
    killed = job(stage("map", listed(*[(100.0,)] * 60)), kind=kind, lifetime_s=150.0, submit_s=7.0, **executors)
    after = job(stage("map", listed((10.0,))), name="after", submit_s=180.0)
    result = played(killed, after, scheduler=scheduler)
    assert result.jobs["finished_s"][0] == 157.0
    assert result.failed_jobs == 0
    assert result.tasks is not None
    own = result.tasks["job"] == 0
    assert result.tasks["start_ms"][own].max() < 157_000
    assert result.tasks["end_ms"][own].max() <= 157_000
    assert (result.tasks["outcome"][own] == KILLED).any()
    root = result.samples.queues.index("root")
    between = (result.samples.time_s > 158) & (result.samples.time_s < 180)
    assert between.any()
    assert not np.any(result.samples.allocated_mb[between, root])


def test_a_killed_job_whose_tasks_have_ended_waits_for_its_end() -> None:
    result = played(job(stage("map", listed((10.0,))), lifetime_s=90.0))
    assert result.jobs["finished_s"][0] == 90.0


def test_a_job_may_be_killed_before_it_has_a_master() -> None:
    first = job(stage("map", listed((100.0,))), name="first")
    killed = job(stage("map", listed((10.0,))), name="killed", submit_s=5.0, lifetime_s=20.0)
    result = played(first, killed, nodes=(NodeSpec("n", 2048, 2),))
    assert [round(float(seconds)) for seconds in result.jobs["finished_s"]][1] == 25
    assert result.jobs["finished_s"][0] > 100


@pytest.mark.parametrize(
    ("duration", "says"),
    [
        (Duration("listed", values_s=(1.0, 2.0), attempts=(2, 1)), "2 durations for 3 attempts"),
        (Duration("listed", values_s=(1.0, 2.0), attempts=(2,)), "attempts of 1 tasks for 2"),
        (Duration("listed", values_s=(1.0, 2.0), attempts=(2, 0)), "at least one"),
        (Duration("empirical", values_s=(1.0, 2.0), attempts=(1, 1)), "give attempts where listed"),
    ],
)
def test_attempts_that_cannot_be(duration: Duration, says: str) -> None:
    with pytest.raises(InputError, match=says):
        played(job(Stage("map", 2, ONE, duration)))
