"""MapReduce's master in whole runs: whom it kills reduces for, and that its looks hide no standstill."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.jobs import JobSpec, Stage, TaskFaults
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
