"""Long-term fairness between applications of a leaf, and choices of single queues (LTYARN eq. 6, 6.2.3; thesis 5.5)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.model.jobs import JobSpec, Stage
from harness.model.plan import QueueOrder
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.simulate import Simulation, simulate
from harness.yarn.fair.parse import parse_allocations

TREE = '<allocations><queue name="g"><queue name="a"/><queue name="b"/></queue><queue name="c"/></allocations>'


def job(cases: Any, name: str, queue: str, tasks: int, *, seconds: float = 5.0, submit_s: float = 0.0) -> JobSpec:
    """Without a master: what it holds are its tasks."""
    stages = (Stage("map", tasks, cases.ONE, cases.constant(seconds)),)
    return JobSpec(name, f"root.{queue}", "mapreduce", Resource(), stages, submit_s=submit_s, name=name)


def held(simulation: Simulation, tasks: Any) -> tuple[Any, Any]:
    """When each task's container was granted and dropped, in ms."""
    phases = simulation.world.nodes["phase_ms"][tasks["node"]]
    return tasks["granted_ms"], phases + -(-(tasks["end_ms"] - phases) // 1000) * 1000


def used(result: Any, simulation: Simulation, row: int, begin_s: float, end_s: float) -> float:
    """What a job's tasks used within a span, MiB s."""
    granted, dropped = held(simulation, result.tasks)
    own = result.tasks["job"] == row
    spans = np.minimum(dropped[own], end_s * 1000) - np.maximum(granted[own], begin_s * 1000)
    return 1024 * float(np.maximum(spans, 0).sum()) / 1000


def two(cases: Any, order: QueueOrder | None, policy: str = "ltrf", settings: Any = None, until: float = 200.0) -> Any:
    """Application `late` comes 60 s after `early` to the same leaf; both want more than the cluster."""
    jobs = [job(cases, "early", "a", 4000), job(cases, "late", "a", 4000, submit_s=60.0)]
    orders = {} if order is None else {"root.a": order}
    setup = cases.setup(jobs, policy=make_policy(policy, settings or {}), queue_orders=orders, time_limit_s=until)
    simulation = Simulation(setup)
    return simulation.run(), simulation


@pytest.mark.parametrize("policy", ["fair", "ltrf", "naive-hltrf"])
def test_applications_of_a_leaf_are_paid_back_where_it_says_so(cases: Any, policy: str) -> None:
    memoryless, first = two(cases, QueueOrder("fair"), policy)
    long_term, second = two(cases, QueueOrder("ltrf"), policy)
    apart = [
        used(result, simulation, 0, 0, 150) - used(result, simulation, 1, 0, 150)
        for result, simulation in ((memoryless, first), (long_term, second))
    ]
    assert apart[0] > 0.9 * 60 * 40 * 1024
    assert abs(apart[1]) < 2 * 5 * 40 * 1024


def test_applications_have_weights(cases: Any) -> None:
    result, simulation = two(cases, QueueOrder("ltrf", weights={"late": 3.0}), until=600.0)
    early, late = (used(result, simulation, row, 0, 600) for row in (0, 1))
    assert late == pytest.approx(3 * early, rel=0.02)


def test_a_leaf_has_rounds_of_its_own(cases: Any) -> None:
    """In the round from 100 s on what `early` had alone before counts for nothing."""
    result, simulation = two(cases, QueueOrder("ltrf", round_s=100.0))
    early, late = (used(result, simulation, row, 105, 195) for row in (0, 1))
    assert early == pytest.approx(late, rel=0.1)
    lasting, simulation = two(cases, QueueOrder("ltrf"))
    early, late = (used(lasting, simulation, row, 62, 110) for row in (0, 1))
    assert early < 0.3 * late


def test_pseudo_resources_make_a_late_application_begin_where_the_richest_is(cases: Any) -> None:
    result, simulation = two(cases, QueueOrder("ltrf"), settings={"pseudo": "true"})
    early, late = (used(result, simulation, row, 70, 195) for row in (0, 1))
    assert early == pytest.approx(late, rel=0.1)


@pytest.mark.parametrize("discount", [1.0, 0.25])
@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_what_is_counted_of_an_application(cases: Any, discount: float, speed: float) -> None:
    """Eqs. (5.7) to (5.9) with S_i = the leaf's share times omega_i over the weights of those that are there."""
    nodes = (*cases.nodes(2, speed=speed), *(replace(node, name=node.name + "s") for node in cases.nodes(2)))
    weights = {"x": 2.0, "y": 1.0}
    jobs = [job(cases, "x", "a", 300, seconds=7.0), job(cases, "y", "a", 300, seconds=9.0, submit_s=30.0)]
    policy = make_policy("ltrf", {"discount": str(discount)})
    orders = {"root.a": QueueOrder("ltrf", weights=weights)}
    simulation = Simulation(cases.setup(jobs, policy=policy, nodes=nodes, queue_orders=orders, time_limit_s=90.0))
    result = simulation.run()
    granted, dropped = held(simulation, result.tasks)
    delta = np.array([node.speed for node in nodes])
    share = 4096 * delta.sum() / 4
    S = simulation.scheduler.S
    for row, name in enumerate("xy"):
        slot = int(simulation.world.jobs["app"][row])
        settled = S.a["integral_ms"][slot]
        own = result.tasks["job"] == row
        live = S.c["alive"].astype(bool) & (S.c["app"] == slot)  # still running: not in the log of tasks
        begins = np.concatenate([granted[own], S.c["start_ms"][live]])
        ends = np.concatenate([dropped[own], np.full(live.sum(), 1 << 40)])
        weight = np.concatenate([delta[result.tasks["node"][own]], delta[S.c["node"][live]]])
        instants = sorted({0, 30_000, int(settled), *begins.astype(int).tolist(), *ends.astype(int).tolist()})
        counted = 0.0
        for begin, end in itertools.pairwise(t for t in instants if t <= settled):
            rate = 1024 * weight[(begins <= begin) & (ends > begin)].sum()
            due = share * weights[name] / (3.0 if begin >= 30_000 else 2.0)
            counted += (min(rate, due) + discount * max(rate - due, 0.0)) * (end - begin)
        assert S.a["integral"][slot] == pytest.approx(counted)


def test_a_parent_divides_as_it_says(cases: Any) -> None:
    """``scheduling_policy: fair`` on a parent: below it nobody is paid back; above it they are."""
    jobs = [job(cases, f"{q}0", q, 4000, submit_s=at) for q, at in (("g.a", 0.0), ("g.b", 60.0), ("c", 60.0))]

    def apart(order: QueueOrder | None, **more: Any) -> tuple[float, float]:
        setup = cases.setup(
            jobs,
            policy=make_policy("naive-hltrf", more),
            allocations=parse_allocations(TREE, source="test"),
            queue_orders={} if order is None else {"root.g": order},
            time_limit_s=400.0,
        )
        samples = simulate(setup).samples
        last = dict(zip(samples.queues, samples.accumulated[-2] / 1024, strict=True))
        return last["root.g.a"] - last["root.g.b"], last["root.g"] - last["root.c"]

    below, above = apart(None)
    assert abs(below) < 500
    assert abs(above) < 500
    below, above = apart(QueueOrder("fair"))
    assert below > 2000
    assert abs(above) < 500
    below, above = apart(QueueOrder("ltrf", round_s=100.0))
    assert below > 2000  # what a had before the second round is forgotten among a and b alone
    assert abs(above) < 500


def test_a_queue_has_a_quantum_of_its_own(cases: Any) -> None:
    jobs = [job(cases, f"{q}0", q, 60, seconds=8.0) for q in "ab"]
    orders = {"root.a": QueueOrder(quantum_s=30.0)}
    samples = simulate(cases.setup(jobs, policy=make_policy("ltrf", {}), queue_orders=orders)).samples
    assert samples.quantum_s is not None
    a, b = samples.queues.index("root.a"), samples.queues.index("root.b")
    assert samples.quantum_s[5, a] == 30
    assert samples.quantum_s[5, b] == 0
    assert samples.counted[5, a] > samples.accumulated[5, a]
    assert samples.counted[5, b] == samples.accumulated[5, b]
