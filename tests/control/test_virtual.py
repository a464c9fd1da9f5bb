"""What the simulated controller knows of the mean task length: exactly, or as an RM shows containers."""

from __future__ import annotations

from typing import Any

import pytest

from harness.control.virtual import simulate_outside
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.plan import Plan
from harness.model.resources import Resource
from harness.model.snapshot import Snapshot
from harness.policies.base import Policy
from harness.sim.setup import SimSetup
from harness.yarn.fair.parse import parse_allocations

ONE = Resource(1024, 1)
#: Two Spark applications, 60 tasks of 2 s in 4 executors of one slot: each executor lasts some 30 s.
TASKS, TASK_S, EXECUTORS = 60, 2.0, 4


class Watches(Policy):
    """Keeps what it is shown, decides nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[float, float | None]] = []

    def plan(self, snapshot: Snapshot, ledger: Any) -> Plan:
        self.seen.append((snapshot.time_s, snapshot.queues["root.a"].mean_task_s))
        return Plan()


def spark(name: str, **more: Any) -> JobSpec:
    stages = (Stage("work", TASKS, ONE, Duration("constant", value_s=TASK_S)),)
    return JobSpec(name, "root.a", "spark", ONE, stages, executors=EXECUTORS, executor_demand=ONE, **more)


def shown(lengths: str) -> tuple[list[tuple[float, float | None]], float]:
    """(time, mean task length) of each look, and when the first application had ended."""
    policy = Watches()
    setup = SimSetup(
        nodes=(NodeSpec("n0", 8192, 8),),
        allocations=parse_allocations('<allocations><queue name="a"/></allocations>'),
        jobs=[spark("one"), spark("two", after_job="one", think_s=20.0)],
        policy=policy,
        mode="outside",
        period_s=1.0,
        task_lengths=lengths,  # type: ignore[arg-type]
    )
    result = simulate_outside(setup)
    assert result.finished
    return policy.seen, float(result.jobs["finished_s"][0])


def test_the_work_of_tasks_is_known_as_soon_as_one_has_ended() -> None:
    seen, first_end_s = shown("work")
    known = [(at, mean) for at, mean in seen if mean is not None]
    assert known[0][0] < first_end_s / 2
    assert all(mean == pytest.approx(TASK_S) for _, mean in known)


def test_a_real_cluster_shows_containers_which_for_spark_are_executors() -> None:
    seen, first_end_s = shown("containers")
    known = [(at, mean) for at, mean in seen if mean is not None]
    assert first_end_s <= known[0][0] <= first_end_s + 2.0, "nothing of a Spark application ends before its end"
    # By Little's law: four executors' time over their four ends. The master's end is no task's end.
    held_s = TASKS * TASK_S
    between = [mean for at, mean in known if at < first_end_s + 20.0]
    assert between
    assert all(mean == pytest.approx(held_s / EXECUTORS, rel=0.2) for mean in between)
