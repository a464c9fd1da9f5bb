"""The Capacity Scheduler's preemption in a whole simulated cluster; its decisions are Hadoop's by tests/oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.sim.capacity.conf import read_conf
from harness.sim.setup import SimResult, SimSetup
from harness.sim.simulate import Simulation, simulate
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.fair.parse import parse_allocations

ON = {"yarn.resourcemanager.scheduler.monitor.enable": "true"}
KEY = "yarn.resourcemanager.monitor.capacity.preemption."
AT_ONCE = {**ON, f"{KEY}max_wait_before_kill": "2000", f"{KEY}natural_termination_factor": "1.0"}
#: Where a job's work is counted, each attempt is: (the job's row, its outcome 2: killed).
KILLED = 2


def setup(**more: Any) -> SimSetup:
    """Queue a fills the cluster with long tasks; queue b comes after 20 s."""
    work = Stage("map", 32, Resource(1024, 1), Duration("constant", 200.0))
    jobs = [
        JobSpec(f"j{i}", f"root.{queue}", "mapreduce", Resource(1024, 1), (work,), submit_s=at)
        for i, (queue, at) in enumerate((("a", 0.0), ("b", 20.0)))
    ]
    settings = {f"root.{queue}.user-limit-factor": "-1" for queue in "ab"} | {"maximum-am-resource-percent": "1"}
    made = SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 8192, 8) for i in range(4)),
        allocations=parse_allocations('<allocations><queue name="a"/><queue name="b"/></allocations>', source="test"),
        jobs=jobs,
        scheduler="capacity",
        capacity=settings,
        record_tasks=True,
        time_limit_s=2000.0,
    )
    return replace(made, **more)


def killed(result: SimResult) -> np.ndarray:
    assert result.tasks is not None
    return np.flatnonzero(np.asarray(result.tasks["outcome"]) == KILLED)


def test_a_queue_below_its_guarantee_gets_it_by_kills() -> None:
    waits, preempts = simulate(setup()), simulate(setup(conf=AT_ONCE))
    assert len(killed(waits)) == 0
    dead = killed(preempts)
    assert len(dead) > 5
    assert set(np.asarray(preempts.tasks["job"])[dead].tolist()) == {0}, "only a is above its guarantee"
    assert preempts.jobs["finished_s"][1] < waits.jobs["finished_s"][1]
    assert waits.preempted is None
    assert preempts.preempted is not None
    assert preempts.preempted.containers == len(dead)
    tasks = preempts.tasks
    held_s = (np.asarray(tasks["end_ms"])[dead] - np.asarray(tasks["granted_ms"])[dead]).sum() / 1000
    assert preempts.preempted.vcore_s == pytest.approx(held_s)
    assert preempts.preempted.memory_mb_s == pytest.approx(1024 * held_s)
    # What was killed is done again, and a's master lives on.
    assert preempts.finished
    assert preempts.failed_jobs == 0
    assert preempts.jobs["finished_s"][0] > waits.jobs["finished_s"][0]


def test_marked_containers_are_killed_no_sooner_than_they_may_be() -> None:
    result = simulate(setup(conf={**AT_ONCE, f"{KEY}max_wait_before_kill": "30000"}))
    ends = np.asarray(result.tasks["end_ms"])[killed(result)]
    # Marked at 21 s or later, in rounds each 3 s from the start of the cluster on.
    assert ends.min() >= 51_000
    assert set((ends % 3000).tolist()) == {0}


@pytest.mark.parametrize(
    "more",
    [
        {"conf": {**AT_ONCE, f"{KEY}observe_only": "true"}},
        {"conf": {**AT_ONCE, "yarn.resourcemanager.scheduler.monitor.policies": "x.y.AnotherPolicy"}},
        {"conf": {**AT_ONCE, "yarn.resourcemanager.scheduler.monitor.enable": "false"}},
        {"conf": AT_ONCE, "capacity": {**setup().capacity, "root.a.disable_preemption": "true"}},
        {"conf": AT_ONCE, "capacity": {**setup().capacity, "root.disable_preemption": "true"}},
        {"conf": {**AT_ONCE, f"{KEY}max_ignored_over_capacity": "1.5"}},
    ],
    ids=["observe_only", "another policy", "monitor off", "of the queue", "of root", "ignored"],
)
def test_nothing_is_killed_where_that_is_switched_off(more: dict[str, Any]) -> None:
    assert len(killed(simulate(setup(**more)))) == 0


def test_an_allocation_files_queue_that_is_not_preemptable_stays_so() -> None:
    text = (
        '<allocations><queue name="a"><allowPreemptionFrom>false</allowPreemptionFrom></queue>'
        '<queue name="b"/></allocations>'
    )
    made = setup(conf=AT_ONCE, allocations=parse_allocations(text, source="test"))
    assert len(killed(simulate(made))) == 0


def test_a_smaller_part_of_the_cluster_in_each_round_is_slower() -> None:
    ends = []
    for part in ("0.05", "1.0"):
        result = simulate(setup(conf={**AT_ONCE, f"{KEY}total_preemption_per_round": part}))
        ends.append(np.asarray(result.tasks["end_ms"])[killed(result)].max())
    assert ends[0] > ends[1] + 10_000


@pytest.mark.parametrize("on", [{}, ON], ids=["off", "on"])
def test_what_is_selected_by_reservations_is_kept_from_the_first_container_on(on: dict[str, str]) -> None:
    """With preemption off, too, where nothing looks at it."""
    running = Simulation(setup(conf={**on, f"{KEY}select_based_on_reserved_containers": "true"}))
    assert len(running.scheduler.S.m) >= len(running.scheduler.S.c) > 0
    result = simulate(setup(conf={**on, f"{KEY}select_based_on_reserved_containers": "true"}))
    assert not np.isnan(result.jobs["finished_s"]).any()


@pytest.mark.parametrize(
    ("conf", "capacity", "what"),
    [
        ({f"{KEY}intra-queue-preemption.enabled": "true"}, {}, "preemption inside queues"),
        (
            {},
            {"root.ordering-policy.priority-utilization.underutilized-preemption.enabled": "true"},
            "queues of higher priority",
        ),
        (
            {f"{PREFIX}ordering-policy.priority-utilization.underutilized-preemption.enabled": "true"},
            {},
            "queues of higher priority",
        ),
        ({f"{PREFIX}lazy-preemption-enabled": "true"}, {}, "lazy preemption"),
        ({f"{KEY}monitoring_interval": "0"}, {}, "no interval"),
        ({f"{KEY}total_preemption_per_round": "much"}, {}, "not a number"),
        ({f"{KEY}natural_termination_factor": "half"}, {}, "not a number"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(conf: dict[str, str], capacity: dict[str, str], what: str) -> None:
    made = setup(conf={**ON, **conf}, capacity={**setup().capacity, **capacity})
    with pytest.raises(InputError, match=what):
        simulate(made)
    read_conf({"root.queues": "a", "root.a.capacity": "100", **capacity})  # without preemption it means nothing
