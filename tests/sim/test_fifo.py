"""The FIFO scheduler in a run: applications one after the other; what does not apply to it is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.serve.simulation import LiveSimulation
from harness.sim.setup import SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

_ONE = '<allocations><queue name="default"{}>{}</queue></allocations>'


def job(name: str, at_s: float, tasks: int = 40) -> JobSpec:
    stage = Stage("map", tasks, Resource(1024, 1), Duration("lognormal", mu=2.0, sigma=0.4))
    am = Resource(1024, 1)
    return JobSpec(id=name, name=name, queue="root.default", kind="mapreduce", am=am, stages=(stage,), submit_s=at_s)


def setup(**changes: Any) -> SimSetup:
    made = SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 4096, 1) for i in range(4)),
        allocations=parse_allocations(_ONE.format("", "")),
        jobs=[job("first", 0.0), job("second", 1.0), job("third", 2.0)],
        scheduler="fifo",
        policy=make_policy("fifo"),
        record_tasks=True,
        time_limit_s=2000.0,
    )
    return replace(made, **changes)


def test_an_application_waits_until_those_before_it_ask_for_nothing() -> None:
    result = simulate(setup())
    assert result.finished
    tasks = result.tasks
    assert tasks is not None
    spans = [
        (tasks["granted_ms"][tasks["job"] == row].min(), tasks["granted_ms"][tasks["job"] == row].max())
        for row in range(3)
    ]
    assert spans[0][1] <= spans[1][0]
    assert spans[1][1] <= spans[2][0]


def test_vcores_are_no_limit() -> None:
    # Four containers of a vcore each run on a node of one.
    samples = simulate(setup()).samples
    assert samples.allocated_vcores[:, samples.queues.index("root.default")].max() == 16
    assert samples.capacity_vcores.max() == 4


def test_a_heartbeat_that_is_passed_over_would_have_changed_nothing() -> None:
    loaded = setup(jobs=[job(f"j{i}", 7.0 * i, 25) for i in range(8)])
    passed = simulate(loaded)
    assert passed.heartbeats_skipped > 0
    other = simulate(replace(loaded, skip_heartbeats=False))
    assert passed.tasks is not None
    assert other.tasks is not None
    for name, column in passed.tasks.items():
        np.testing.assert_array_equal(column, other.tasks[name], err_msg=name)


_WEIGHT, _LIMIT = _ONE.format("", "<weight>2.0</weight>"), _ONE.format("", "<maxRunningApps>1</maxRunningApps>")
_TWO = '<allocations><queue name="default"/><queue name="other"/></allocations>'
_REFUSED = {
    "another queue": ({"allocations": parse_allocations(_TWO)}, "no queue root.other"),
    "a weight": ({"allocations": parse_allocations(_WEIGHT)}, "weight of queue root.default has no meaning"),
    "an entitlement": ({"entitlements": {"root.default": 2.0}}, "the weight of queue root.default has no meaning"),
    "a limit": ({"allocations": parse_allocations(_LIMIT)}, "max_running_apps of queue root.default has no meaning"),
    "a property": ({"conf": {"yarn.scheduler.fair.preemption": "true"}}, "yarn.scheduler.fair.preemption is another"),
    "a capacity": (
        {"capacity": {"root.default.capacity": "100"}},
        "root.default.capacity is a setting of",
    ),
    "a policy": ({"policy": make_policy("ltrf")}, "policy ltrf orders queues or applications"),
    "drf": ({"policy": make_policy("drf")}, "policy drf orders queues or applications"),
    "a script": ({"record_script": True}, "recorded scripts are the Fair Scheduler's"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_what_does_not_apply_is_refused_by_name(name: str) -> None:
    changes, words = _REFUSED[name]
    with pytest.raises(InputError, match=words) as error:
        simulate(setup(**changes))
    assert error.value.where == "scheduler: fifo"
    assert error.value.hint


def test_enforcement_is_refused_by_name() -> None:
    from harness.control.virtual import simulate_policy

    with pytest.raises(InputError, match="policy ltrf has nothing to write"):
        simulate_policy(setup(policy=make_policy("ltrf"), mode="outside"))


def test_a_served_cluster_with_it_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="a simulated ResourceManager with the FIFO scheduler is not covered"):
        LiveSimulation(setup())
