"""The engine reserves what one step can use at most: valid input never makes it write outside its arrays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.base.errors import InternalError
from harness.sim import nodes
from harness.sim import world as w
from harness.sim.decide import decider
from harness.sim.fair.entry import run_at
from harness.sim.script import Event
from harness.sim.simulate import Simulation

ROOT = Path(__file__).parents[2]

_MANY = {"yarn.scheduler.fair.assignmultiple": "true", "yarn.scheduler.fair.dynamic.max.assign": "false"}
_ZERO = {"yarn.scheduler.minimum-allocation-mb": "0", "yarn.scheduler.minimum-allocation-vcores": "0"}
_ONES = {"yarn.scheduler.increment-allocation-mb": "1", "yarn.scheduler.increment-allocation-vcores": "1"}
_DRF = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


def script(queue: str, node: dict[str, Any], ask: dict[str, Any], **conf: str) -> dict[str, Any]:
    """One node that is given to one application in one heartbeat."""
    return {
        "conf": {**_MANY, **_ONES, **conf},
        "options": {"resource_types": "conf", "shares": "none"},
        "allocations": f"<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>{queue}"
        "</allocations>",
        "nodes": [{"name": "n", **node}],
        "events": [
            {"t": 0, "node": "n"},
            {"t": 1, "app": "x", "queue": "root.a"},
            {"t": 2, "ask": "x", "requests": [{"priority": 1, **ask}]},
            {"t": 3, "update": True},
            {"t": 4, "heartbeat": "n"},
        ],
    }


_PLAIN = '<queue name="a"/>'
_LIMITED = '<queue name="a"><maxContainerAllocation>128 mb, 1 vcores</maxContainerAllocation></queue>'

#: Scripts in which one heartbeat assigns more containers than the configured minimum would let one expect.
_SCRIPTS = {
    "no memory": script(
        _PLAIN, {"memory_mb": 0, "vcores": 3000}, {"count": 3000, "memory_mb": 0, "vcores": 1}, **_ZERO
    ),
    "no vcores": script(
        _PLAIN, {"memory_mb": 3000, "vcores": 0}, {"count": 3000, "memory_mb": 1, "vcores": 0}, **_ZERO
    ),
    "limit": script(
        _LIMITED, {"memory_mb": 128 * 3000, "vcores": 3000}, {"count": 3000, "memory_mb": 1024, "vcores": 1}
    ),
}


def capacity_script() -> dict[str, Any]:
    """Asks are clamped to the largest node of their time, which is smaller than the minimum; a large node follows."""
    made = script(
        _PLAIN,
        {"memory_mb": 1, "vcores": 1},
        {"count": 3000, "memory_mb": 1024, "vcores": 1},
        **{"yarn.scheduler.minimum-allocation-mb": "1024"},
    )
    del made["allocations"]
    made["capacity"] = {
        "root.queues": "a",
        "root.a.capacity": "100",
        "root.a.user-limit-factor": "-1",
        "maximum-am-resource-percent": "1.0",
        "resource-calculator": _DRF,
        "per-node-heartbeat.maximum-offswitch-assignments": "5000",
        "per-node-heartbeat.maximum-container-assignments": "-1",
    }
    made["nodes"].append({"name": "large", "memory_mb": 4096, "vcores": 3000})
    made["events"][4:] = [{"t": 4, "node": "large"}, {"t": 5, "heartbeat": "large"}]
    return made


RUN = """
import json, sys
from harness.sim.decide import decider

print(json.dumps(decider(json.load(sys.stdin)).run()))
"""


def python(code: str, given: str = "") -> str:
    """What a process of its own prints: a fault of this kind ends the process, or never ends."""
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, timeout=900, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr[-800:]
    return done.stdout


@pytest.mark.parametrize("name", [*_SCRIPTS, "capacity"])
def test_one_heartbeat_assigns_all_that_fits_however_small_it_is(name: str) -> None:
    made = capacity_script() if name == "capacity" else _SCRIPTS[name]
    given = json.loads(python(RUN, json.dumps(made)))["assignments"]
    assert [one["n"] for one in given] == list(range(1, 3001))


FOLLOWERS = """
from tests.sim import conftest as cases
from harness.sim.simulate import simulate

first = cases.mapreduce("first", "a", 1)
others = [cases.mapreduce(f"j{i}", "b", 1, seconds=1.0, after_job="first") for i in range(6000)]
result = simulate(cases.setup([first, *others], count=100, sample_s=100.0))
print(result.finished, result.failed_jobs, len(result.jobs["id"]))
"""


def test_one_end_may_let_thousands_of_jobs_arrive() -> None:
    assert python(FOLLOWERS) == "True 0 6001\n"


MASTERS = """
from harness.model.jobs import TaskFaults
from harness.sim.simulate import simulate
from tests.sim import conftest as cases

jobs = [cases.mapreduce(f"j{i}", "a", 1, seconds=1.0) for i in range(5000)]
conf = {"yarn.scheduler.fair.assignmultiple": "true", "yarn.scheduler.fair.dynamic.max.assign": "false"}
allocations = cases.parse_allocations(
    '<allocations><queueMaxAMShareDefault>-1</queueMaxAMShareDefault><queue name="a"/></allocations>'
)
result = simulate(
    cases.setup(
        jobs,
        nodes=cases.nodes(1, 12_000 * 1024, 12_000),
        allocations=allocations,
        conf=conf,
        faults=TaskFaults(speculation=True),
        sample_s=100.0,
    )
)
print(result.finished, result.failed_jobs, result.assignments)
"""


def test_one_heartbeat_may_start_thousands_of_masters() -> None:
    assert python(MASTERS) == "True 0 10000\n"


KILLS = """
from dataclasses import replace

from harness.sim.simulate import Simulation
from tests.sim import conftest as cases

allocations = cases.parse_allocations(
    "<allocations><defaultFairSharePreemptionTimeout>1</defaultFairSharePreemptionTimeout>"
    "<defaultFairSharePreemptionThreshold>1</defaultFairSharePreemptionThreshold>"
    '<queue name="a"/><queue name="b"/></allocations>'
)
jobs = [
    cases.mapreduce("long", "a", 40, seconds=1000.0),
    cases.mapreduce("starved", "b", 10, seconds=10.0, submit_s=30.0),
]
conf = {
    "yarn.scheduler.fair.preemption": "true",
    "yarn.scheduler.fair.waitTimeBeforeKill": "1000",
    "yarn.scheduler.fair.preemption.cluster-utilization-threshold": "0",
}
setup = replace(cases.setup(jobs, allocations=allocations, conf=conf), time_limit_s=60.0)
sim = Simulation(setup)
sim.world.g["limit_ms"] = 30_000
while not int(sim.scheduler.S.g["kill_n"][0]):
    sim.world.g["limit_ms"] += 100
    sim.proceed()
# All asks' slots are in use when the kills fall due.
sim.scheduler.S.g["free_r"], sim.scheduler.S.g["n_free_r"] = -1, 0
sim.world.g["limit_ms"] = 50_000
sim.proceed()
print(int(sim.scheduler.S.g["kill_n"][0]), len(sim.scheduler.S.r) > 128)
"""


def test_kills_that_require_room_wait_for_it() -> None:
    assert python(KILLS) == "0 True\n"


def test_the_loop_returns_when_the_scheduler_has_more_containers_than_the_world(cases: ModuleType) -> None:
    sim = Simulation(cases.setup([cases.mapreduce("j", "a", 3)]))
    while run_at(sim.scheduler.S.address, sim.world.address) != w.NEED_JOBS:
        sim._grow()
    while len(sim.scheduler.S.c) == len(sim.world.runs):
        sim.scheduler.grow()
    assert run_at(sim.scheduler.S.address, sim.world.address) == w.NEED_ROOM
    sim._grow()
    assert len(sim.scheduler.S.c) == len(sim.world.runs)
    assert run_at(sim.scheduler.S.address, sim.world.address) == w.NEED_JOBS


def test_a_pool_that_is_empty_against_its_count_is_an_error_not_memory_in_front_of_it() -> None:
    made = decider(_SCRIPTS["no memory"])
    for event in made._list("events")[:-1]:
        made._dispatch(Event(0, event))
    made.sched.grow()
    made.sched._lengthen("log", 30_000)
    made.sched.S.g["free_c"], made.sched.S.g["n_free_c"] = -1, 10_000
    with pytest.raises(InternalError, match="no free slot left in the list 'free_c'"):
        nodes.heartbeat(made.sched.S, 0, 4)
