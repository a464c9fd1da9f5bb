"""Spark's dynamic allocation in the simulator: when executors are asked for, kept, given back, and asked for again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.model.jobs import DynamicAllocation, JobSpec, NodeSpec, Stage, most_executors
from harness.sim.setup import Delays, SimResult
from harness.sim.simulate import simulate

EXECUTOR_MB = 1024
#: Nodes tell of themselves every 100 ms, and masters and executors begin at once: what is left is dynamic allocation's.
QUICK = Delays(
    node_heartbeat_ms=100, am_heartbeat_ms=1000, am_response_heartbeats=0, am_start_ms=0, container_start_ms=0
)


def spark(cases: Any, *stages: Stage, slots: int = 1, name: str = "s", **settings: Any) -> JobSpec:
    dynamic = DynamicAllocation(**settings)
    most = most_executors(dynamic, sum(stage.tasks for stage in stages), slots)
    size = replace(cases.ONE, memory_mb=EXECUTOR_MB)
    return JobSpec(
        name, "root.a", "spark", cases.ONE, tuple(stages), executors=most, executor_demand=size, executor_slots=slots,
        dynamic=dynamic,
    )  # fmt: skip


def played(cases: Any, *jobs: JobSpec, **more: Any) -> SimResult:
    more = {"count": 20, "delays": QUICK, "sample_s": 0.1, **more}
    result = simulate(cases.setup(list(jobs), **more))
    assert result.finished
    return result


def executors_at(result: SimResult, seconds: float) -> int:
    """How many executors the first queue's application held then, its master's container not counted."""
    samples = result.samples
    at = int(np.searchsorted(samples.time_s, seconds + 1e-6)) - 1
    held = int(samples.allocated_mb[at, samples.queues.index("root.a")])
    return (held - 1024) // EXECUTOR_MB if held else 0


def test_more_are_asked_for_twice_as_many_each_time_while_tasks_wait(cases: Any) -> None:
    stage = Stage("x", 60, cases.ONE, cases.constant(100.0))
    result = played(cases, spark(cases, stage, backlog_s=3.0, sustained_s=2.0))
    begun = float(result.jobs["started_s"][0])
    found = [executors_at(result, begun + after) for after in (2.9, 4.5, 6.5, 8.5, 10.5, 12.5, 14.5)]
    assert found == [0, 1, 3, 7, 15, 31, 60]


@pytest.mark.parametrize(
    ("settings", "slots", "expected"),
    [
        ({}, 1, 12),
        ({}, 5, 3),
        ({"ratio": 0.5}, 1, 6),
        ({"most": 4}, 1, 4),
        ({"least": 15, "initial": 15}, 1, 15),
    ],
)
def test_there_are_as_many_as_the_tasks_could_use_within_the_bounds(
    cases: Any, settings: dict[str, Any], slots: int, expected: int
) -> None:
    stage = Stage("x", 12, cases.ONE, cases.constant(40.0))
    result = played(cases, spark(cases, stage, slots=slots, **settings))
    assert executors_at(result, float(result.jobs["started_s"][0]) + 30.0) == expected


def paused(cases: Any, seconds: float, **leaves: Any) -> tuple[Stage, ...]:
    """Ten tasks, a pause of the driver, and three more."""
    first = Stage("x", 10, cases.ONE, cases.constant(20.0), **leaves)
    return first, Stage("y", 3, cases.ONE, cases.constant(20.0), after=("x",), delay_s=seconds)


@pytest.mark.parametrize(
    ("settings", "leaves", "kept"),
    [
        ({}, {}, 0),
        ({"least": 2, "initial": 2}, {}, 2),
        ({"idle_s": 90.0}, {}, 10),
        ({"tracks_shuffles": True}, {"shuffles": True}, 10),
        ({"tracks_shuffles": True, "shuffle_s": 20.0}, {"shuffles": True}, 0),
        ({"tracks_shuffles": False}, {"shuffles": True}, 0),
        ({}, {"caches": True}, 10),
        ({"cached_s": 20.0}, {"caches": True}, 0),
    ],
)
def test_idle_executors_are_given_back_unless_something_keeps_them(
    cases: Any, settings: dict[str, Any], leaves: dict[str, Any], kept: int
) -> None:
    result = played(cases, spark(cases, *paused(cases, 60.0, **leaves), **{"idle_s": 10.0, **settings}))
    assert result.tasks is not None
    stage = np.asarray(result.tasks["stage"])
    ended = float(np.asarray(result.tasks["end_ms"])[stage == 0].max()) / 1000.0
    # The executors that came first have been idle for some seconds more than the last ones.
    assert executors_at(result, ended + 4.0) == 10, "none has been idle for so long"
    assert executors_at(result, ended + 50.0) == kept
    first = float(np.asarray(result.tasks["start_ms"])[stage == 1].min()) / 1000.0
    waited = first - ended - 60.0
    if kept:
        assert waited == pytest.approx(0.0, abs=0.01)
    else:
        assert 1.0 <= waited <= 1.8, "asked for after a second, heard of at the allocator's next look"


def test_an_executor_that_works_again_is_not_idle(cases: Any) -> None:
    """Pauses shorter than the timeout take none away, however many there are."""
    stages = [Stage("0", 4, cases.ONE, cases.constant(5.0))]
    for n in range(1, 6):
        stages.append(Stage(str(n), 4, cases.ONE, cases.constant(5.0), after=(str(n - 1),), delay_s=8.0))
    result = played(cases, spark(cases, *stages, idle_s=10.0))
    end = float(result.jobs["finished_s"][0])
    begun = float(result.jobs["started_s"][0])
    assert {executors_at(result, at) for at in np.arange(begun + 12.0, end - 1.0, 0.5)} == {4}


def test_what_is_not_needed_any_more_is_not_asked_for(cases: Any) -> None:
    """A cluster that is full: most of what was asked for is cancelled when the tasks have run elsewhere."""
    other = cases.mapreduce("o", "b", 7, seconds=200.0)
    stage = Stage("x", 8, cases.ONE, cases.constant(4.0))
    tail = Stage("y", 1, cases.ONE, cases.constant(300.0), after=("x",))
    result = played(cases, other, replace(spark(cases, stage, tail), submit_s=5.0), count=3)
    begun, freed = float(result.jobs["started_s"][1]), float(result.jobs["finished_s"][0])
    before = executors_at(result, begun + 30.0)
    assert 1 <= before < 8, "there was room for a few"
    assert executors_at(result, freed + 20.0) <= before, "the room that came was of no use"


def test_executors_that_are_lost_come_back(cases: Any) -> None:
    machines = tuple(NodeSpec(f"n{i}", 4096, 8, leave_s=30.0 if i < 2 else None) for i in range(6))
    stage = Stage("x", 8, cases.ONE, cases.constant(60.0))
    result = played(cases, spark(cases, stage), nodes=machines)
    begun = float(result.jobs["started_s"][0])
    assert executors_at(result, begun + 20.0) == 8
    assert result.jobs["tasks"][0] == 8
    assert result.tasks is not None
    outcomes = np.asarray(result.tasks["outcome"])
    assert executors_at(result, 40.0 + begun) == 8
    assert (outcomes == 2).any(), "some task was lost with its node"


def test_it_is_the_same_each_time_and_ends_with_all_tasks_done(cases: Any) -> None:
    jobs = [
        replace(
            spark(cases, *paused(cases, 15.0), slots=1 + n % 2, name=f"s{n}", idle_s=5.0, least=n % 3, initial=n % 3),
            submit_s=3.0 * n,
        )
        for n in range(8)
    ]
    first, second = (played(cases, *jobs, count=4) for _ in range(2))
    assert first.jobs["finished_s"].tolist() == second.jobs["finished_s"].tolist()
    assert first.jobs["tasks"].tolist() == [13] * 8
    assert first.samples.allocated_mb[-1].max() == 0 or first.finished


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"least": 3, "initial": 2}, "in this order"),
        ({"ratio": 1.5}, "ratio of executors"),
        ({"backlog_s": 0.0}, "no time"),
    ],
)
def test_settings_that_cannot_be_are_refused(cases: Any, settings: dict[str, Any], word: str) -> None:
    job = replace(spark(cases, Stage("x", 1, cases.ONE, cases.constant(1.0))), dynamic=DynamicAllocation(**settings))
    with pytest.raises(InputError) as refused:
        simulate(cases.setup([job]))
    assert word in refused.value.line()
