"""MapReduce's master in whole runs: whom it kills reduces for, and that its looks hide no standstill."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.jobs import Duration, JobSpec, Stage, TaskFaults
from harness.model.resources import Resource
from harness.sim.simulate import simulate
from harness.sim.tasks import KILLED
from harness.yarn.fair.parse import parse_allocations

ONE = Resource(1024, 1)
NO_AM_LIMIT = '<allocations><queue name="a"/><queueMaxAMShareDefault>-1</queueMaxAMShareDefault></allocations>'


def early(cases: Any, name: str, maps: int, reduces: int, slow_start: float, **more: Any) -> JobSpec:
    """A job whose reduces are asked for when so many of its maps have ended."""
    stages = (
        Stage("map", maps, ONE, cases.lognormal(3.0, 0.8)),
        Stage("reduce", reduces, ONE, cases.constant(60.0), after=("map",), slow_start=slow_start, priority=10),
    )
    return JobSpec(name, "root.a", "mapreduce", ONE, stages, **more)


@pytest.mark.parametrize("seed", range(5))
def test_no_reduce_is_killed_for_a_copy_whose_original_has_ended(cases: Any, seed: int) -> None:
    faults = TaskFaults(speculation=True, speculation_factor=1.2)
    setup = cases.setup([early(cases, "j", 30, 40, 0.05)], count=6, faults=faults, seed=seed)
    tasks = simulate(setup).tasks
    reduces, maps = tasks["stage"] == 0, tasks["stage"] == 1  # by priority
    last_map_ms = int(tasks["end_ms"][maps].max())
    killed = reduces & (tasks["outcome"] == KILLED)
    assert int(maps.sum()) > 30  # maps were copied
    assert not (tasks["end_ms"][killed] > last_map_ms).any()


@pytest.mark.parametrize("slow_start", [0.0, 0.05, 1.0])
def test_masters_that_fill_the_cluster_are_noticed_while_they_look_at_their_reduces(
    cases: Any, slow_start: float
) -> None:
    jobs = [early(cases, "first", 8, 2, slow_start)]
    jobs += [early(cases, f"j{i}", 3, 2, slow_start, submit_s=5.0) for i in range(8)]
    setup = cases.setup(jobs, count=1, allocations=parse_allocations(NO_AM_LIMIT), time_limit_s=50_000.0)
    result = simulate(setup)
    assert "wait for tasks' containers" in result.stuck
    assert result.end_s < 1000.0


@pytest.mark.parametrize(("tail", "ends_later_s"), [(0.0, 0.0), (0.5, 10.0), (1.0, 20.0)])
def test_an_early_reduce_works_its_tail_after_the_last_map(cases: Any, tail: float, ends_later_s: float) -> None:
    """Reduces of 20 s begin 80 s before the last map ends: what is left then is their tail, not nothing."""
    stages = (
        Stage("map", 2, ONE, Duration("listed", values_s=(20.0, 120.0))),
        Stage("reduce", 2, ONE, cases.constant(20.0), after=("map",), slow_start=0.05, priority=10, tail=tail),
    )
    job = JobSpec("j", "root.a", "mapreduce", ONE, stages)
    tasks = simulate(cases.setup([job], count=2)).tasks
    reduces = tasks["stage"] == 0
    last_map_ms = int(tasks["end_ms"][~reduces].max())
    assert (tasks["start_ms"][reduces] < last_map_ms - 50_000).all()
    later = (tasks["end_ms"][reduces] - last_map_ms) / 1000
    # The end of the last map's container becomes known at a heartbeat of its node.
    assert ((later >= ends_later_s) & (later <= ends_later_s + 1.1)).all()


def test_a_reduce_that_begins_after_the_last_map_takes_its_time_whatever_its_tail(cases: Any) -> None:
    stages = (
        Stage("map", 2, ONE, cases.constant(20.0)),
        Stage("reduce", 2, ONE, cases.constant(20.0), after=("map",), priority=10, tail=0.5),
    )
    tasks = simulate(cases.setup([JobSpec("j", "root.a", "mapreduce", ONE, stages)], count=2)).tasks
    reduces = tasks["stage"] == 0
    assert (tasks["end_ms"][reduces] - tasks["start_ms"][reduces] == 20_000).all()


def test_decisions_of_masters_are_recorded_without_a_script(cases: Any) -> None:
    """The same ones as beside a script, and under the Capacity Scheduler too, which has no scripts."""
    job = early(cases, "j", 20, 6, 0.05)
    alone = simulate(cases.setup([job], count=2, record_masters=True))
    assert alone.script is None
    assert alone.masters == simulate(cases.setup([job], count=2, record_script=True)).masters
    capacity = simulate(cases.setup([job], count=2, record_masters=True, scheduler="capacity"))
    assert capacity.masters
    assert {one["app"] for one in capacity.masters} == {1}
    assert simulate(cases.setup([job], count=2)).masters is None
