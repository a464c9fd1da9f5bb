"""Runs that can never end stop at once and say who waits for what; all others go on."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.jobs import JobSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

FULL = '<allocations><queue name="a"/><queueMaxAMShareDefault>-1</queueMaxAMShareDefault></allocations>'


def many_queues(count: int) -> str:
    return "<allocations>" + "".join(f'<queue name="q{i}"/>' for i in range(count)) + "</allocations>"


def job(cases: Any, name: str, queue: str, am_mb: int = 1024, **more: Any) -> JobSpec:
    stages = (Stage("map", 3, Resource(1024, 1), cases.constant(10.0)),)
    return JobSpec(name, f"root.{queue}", "mapreduce", Resource(am_mb, 1), stages, **more)


@pytest.mark.parametrize("mode", ["inside", "outside"])
def test_masters_that_fill_the_cluster_end_the_run_at_once(cases: Any, mode: str) -> None:
    from harness.control.virtual import simulate_policy

    jobs = [job(cases, f"j{i}", "a", submit_s=500.0) for i in range(30)]
    setup = cases.setup(jobs, count=5, allocations=parse_allocations(FULL), policy=make_policy("fair", {}), mode=mode)
    result = simulate_policy(setup)
    assert not result.finished
    assert result.end_s < (900.0 if mode == "inside" else 5000.0)
    assert "20 application(s) of root.a wait for tasks' containers of 1,024 MiB and 1 vcores" in result.stuck
    assert "20 masters hold 20,480 of 20,480 MiB" in result.stuck
    assert "lower max_am_share" in result.stuck


def test_a_thousand_queues_whose_am_share_is_below_a_masters_size(cases: Any) -> None:
    jobs = [job(cases, f"j{i}", f"q{i}") for i in range(1000)]
    result = simulate(cases.setup(jobs, count=100, allocations=parse_allocations(many_queues(1000))))
    # Nodes on which nobody may start anything are passed over.
    assert result.heartbeats < 1000
    assert result.end_s < 300.0
    assert "wait for their masters' containers of 1,024 MiB" in result.stuck
    assert "its masters may hold 205 MiB (0.5 of its fair share of 410 MiB)" in result.stuck
    assert "to -1 (no limit)" in result.stuck
    assert "and 997 more" in result.stuck


def test_a_share_that_would_do_is_named(cases: Any) -> None:
    text = many_queues(4).replace(
        "</allocations>", "<queueMaxAMShareDefault>0.1</queueMaxAMShareDefault></allocations>"
    )
    jobs = [job(cases, f"j{i}", f"q{i}") for i in range(4)]
    result = simulate(cases.setup(jobs, count=4, allocations=parse_allocations(text)))
    assert "set its max_am_share (maxAMShare) to 0.25" in result.stuck


def test_what_is_only_slow_goes_on(cases: Any) -> None:
    stages = (Stage("map", 3, Resource(1024, 1), cases.constant(50_000.0)),)
    late = JobSpec("late", "root.b", "mapreduce", Resource(1024, 1), stages, submit_s=200_000.0)
    jobs = [JobSpec("slow", "root.a", "mapreduce", Resource(1024, 1), stages), late]
    result = simulate(cases.setup(jobs, count=2))
    assert result.finished
    assert result.stuck == ""


def test_preemption_has_an_hour_to_move_masters(cases: Any) -> None:
    text = FULL.replace('<queue name="a"/>', '<queue name="a"/><queue name="b"/>').replace(
        "</allocations>",
        "<defaultFairSharePreemptionTimeout>600</defaultFairSharePreemptionTimeout>"
        "<defaultFairSharePreemptionThreshold>1.0</defaultFairSharePreemptionThreshold></allocations>",
    )
    conf = {
        "yarn.scheduler.fair.preemption": "true",
        "yarn.scheduler.fair.preemption.cluster-utilization-threshold": "0",
    }
    jobs = [job(cases, f"j{i}", "a") for i in range(12)] + [job(cases, "k", "b", submit_s=60.0)]
    result = simulate(cases.setup(jobs, count=3, allocations=parse_allocations(text), conf=conf, time_limit_s=3000.0))
    assert result.stuck == ""
    assert result.end_s == 3000.0
