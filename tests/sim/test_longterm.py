"""The compiled ledger and quantum against their reference definitions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ledger import Ledger, Usage
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.plan import LedgerSettings, QueueOrder
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim import longterm_kernels as lt
from harness.sim.setup import Delays
from harness.sim.simulate import Simulation, simulate
from harness.yarn.fair.parse import parse_allocations
from tests.ledger.quantum import Quantum

LEAVES = ("root.a", "root.b", "root.c", "root.d")

changes = st.lists(
    st.tuples(
        st.integers(0, 40_000),  # ms until then
        st.integers(0, 3),  # leaf
        st.integers(0, 40),  # containers
        st.integers(0, 5),  # asks
    ),
    min_size=1,
    max_size=25,
)


@given(
    changes=changes,
    resource=st.sampled_from(["memory", "vcores", "dominant"]),
    discount=st.sampled_from([1.0, 0.5, 0.0]),
    length=st.sampled_from([None, 7.0, 60.0]),
    pseudo=st.booleans(),
    fading=st.sampled_from([{}, {}, {"half_life": 20.0}, {"window": 13.0}, {"window": 300.0}]),
)
@settings(max_examples=60, deadline=None)
def test_counted_resources_are_those_of_the_ledger(
    cases_module: Any,
    changes: Any,
    resource: str,
    discount: float,
    length: float | None,
    pseudo: bool,
    fading: dict[str, float],
) -> None:
    if "window" in fading:
        length, pseudo = None, False
    given_settings = {"resource": resource, "discount": str(discount), "pseudo": str(pseudo)}
    if length is not None:
        given_settings["round"] = str(length)
    given_settings |= {name: str(value) for name, value in fading.items()}
    weights = {"root.a": 1.0, "root.b": 2.0, "root.c": 1.0, "root.d": 0.5}
    setup = cases_module.setup([], policy=make_policy("ltrf", given_settings), entitlements=weights)
    simulation = Simulation(setup)
    S = simulation.scheduler.S
    S.g["cluster_mb"], S.g["cluster_vcores"] = 40960, 80
    lt.settle_all(S, 0)
    slots = [simulation.scheduler.queue_index(path) for path in LEAVES]
    reference = Ledger(
        LedgerSettings(
            resource=resource,
            discount=discount,
            round_s=length,
            pseudo=pseudo,  # type: ignore[arg-type]
            half_life_s=fading.get("half_life"),
            window_s=fading.get("window"),
        ),
        weights,
        Resource(40960, 80),
    )
    used = dict.fromkeys(LEAVES, (0, 0))
    asked = dict.fromkeys(LEAVES, 0)
    now = 0

    def observe(until: int) -> None:
        """The reference takes an interval's mean rate: it is shown every begin of a round on the way."""
        nonlocal now
        stops = [until]
        if length is not None:
            ms = round(length * 1000)
            stops = [*range((now // ms + 1) * ms, until, ms), until]
        for stop in stops:
            amounts = {
                leaf: Usage(mb * (stop - now) / 1000, vc * (stop - now) / 1000) for leaf, (mb, vc) in used.items()
            }
            active = [leaf for leaf in LEAVES if used[leaf][0] or asked[leaf]]
            reference.observe(stop / 1000, amounts, active)
            now = stop

    for wait, which, containers, asks in changes:
        observe(now + wait)
        leaf, slot = LEAVES[which], slots[which]
        used[leaf], asked[leaf] = (containers * 1024, containers * 2), asks
        S.q["usage_mb"][slot], S.q["usage_vcores"][slot] = used[leaf]
        S.q["pending_mb"][slot], S.q["pending_vcores"][slot] = asks * 1024, asks
        lt.settle(S, slot, now)
        observe(now)
        lt.roll_rounds(S, now)
        for name, index in zip(LEAVES, slots, strict=True):
            counted = lt.total_of(S, index, now) / 1000
            assert counted == pytest.approx(reference.counted()[name], rel=1e-9, abs=1e-6), (name, now)


@pytest.fixture(scope="session")
def cases_module(cases: Any) -> Any:
    return cases


def _contended(cases: Any) -> list[JobSpec]:
    """Two leaves that compete from the start and one that comes later, none with demand without end."""
    tasks = {"a": (300, 0.0), "b": (160, 0.0), "c": (90, 40.0)}
    return [
        JobSpec(q, f"root.{q}", "mapreduce", Resource(), (Stage("m", n, cases.ONE, cases.lognormal(2.3)),), submit_s=at)
        for q, (n, at) in tasks.items()
    ]


def test_an_endless_horizon_in_the_scheduler_is_memoryless(cases: Any) -> None:
    """H -> infinity: every task starts when and where the Fair Scheduler starts it."""
    ours = simulate(cases.setup(_contended(cases), policy=make_policy("ltrf", {"horizon_s": "inf"}))).tasks
    fair = simulate(cases.setup(_contended(cases), policy="fair")).tasks
    assert ours is not None
    assert fair is not None
    for column in ("job", "task", "node", "granted_ms"):
        assert ours[column].tolist() == fair[column].tolist(), column


def test_a_horizon_in_the_scheduler_pays_back_gently(cases: Any) -> None:
    """Whoever comes late is owed: served first under LTRF, over the horizon with one, not at all without memory."""
    waits = {}
    for horizon in ("0", "60", "inf"):
        policy = make_policy("ltrf", {"horizon_s": horizon})
        result = simulate(cases.setup(_contended(cases), policy=policy))
        ended = dict(zip(result.jobs["id"], result.jobs["finished_s"], strict=True))
        waits[horizon] = ended["c"]
    assert waits["0"] < waits["60"] < waits["inf"]


def test_fixed_quantum_counts_running_tasks_ahead(cases: Any) -> None:
    """Between grant and report, each container counts demand x max(Q - elapsed, 0) more than it has used."""
    stages = (Stage("map", 60, cases.ONE, Duration("uniform", low_s=2, high_s=40)),)
    job = JobSpec("j", "root.a", "mapreduce", Resource(), stages)
    policy = make_policy("ltrf", {"quantum_s": "20"})
    simulation = Simulation(cases.setup([job], policy=policy))
    result = simulation.run()
    tasks = result.tasks
    assert tasks is not None
    phases = simulation.world.nodes["phase_ms"][tasks["node"]]
    reported = phases + -(-(tasks["end_ms"] - phases) // 1000) * 1000
    column = result.samples.queues.index("root.a")
    seen = 0
    for at, time_s in enumerate(result.samples.time_s[:-1]):
        now = round(time_s * 1000)
        alive = (tasks["granted_ms"] <= now) & (reported > now)
        ahead = 1024 * np.maximum(20_000 - (now - tasks["granted_ms"][alive]), 0).sum() / 1000
        counted = result.samples.counted[at, column] - result.samples.accumulated[at, column]
        assert counted == pytest.approx(ahead, abs=0.01)
        seen += int(alive.sum())
    assert seen > 60


def test_adaptive_quantum_settles_on_the_tasks_length(cases: Any) -> None:
    jobs = [
        JobSpec(f"j{i}", "root.a", "mapreduce", Resource(), (Stage("map", 40, cases.ONE, cases.constant(10.0)),))
        for i in range(3)
    ]
    policy = make_policy("ltrf", {"quantum_s": "600", "adaptive_quantum": "true"})
    simulation = Simulation(cases.setup(jobs, policy=policy))
    simulation.run()
    S = simulation.scheduler.S
    leaf = simulation.scheduler.queue_index("root.a")
    # What the scheduler sees of a task of 10 s: from the grant to the report of its end.
    assert 10_000 <= S.x["q_ms"][leaf] <= 14_000
    samples = simulation.samples.samples()
    assert samples.quantum_s is not None
    seen = samples.quantum_s[:, samples.queues.index("root.a")]
    assert seen[0] == 600
    assert seen[-1] == S.x["q_ms"][leaf] / 1000
    assert S.x["q_ms"][0] == S.x["q_ms"][leaf]
    assert abs(S.x["ahead_a"][leaf]) == 0 == S.x["ahead_b"][leaf]


@pytest.mark.parametrize("over", ["all", "unfinished"])
def test_adaptive_quanta_are_those_of_the_ledger(cases: Any, over: str) -> None:
    """A queue's Q is the mean over its applications, also over those of which no task has ended (LTYARN Fig. 4)."""
    groups = '<allocations><queue name="g"><queue name="a"/><queue name="b"/></queue><queue name="c"/></allocations>'
    jobs = [
        JobSpec(
            f"{queue}{i}",
            f"root.{queue}",
            "mapreduce",
            Resource(),
            (Stage("map", 3 + 9 * i, cases.ONE, cases.constant(3.0 + 5 * i + len(queue))),),
            submit_s=7.0 * i,
        )
        for queue in ("g.a", "g.b", "c")
        for i in range(5)
    ]
    settings_ = {"quantum_s": "100", "adaptive_quantum": "true", "quantum_over": over}
    setup = cases.setup(
        jobs, policy=make_policy("ltrf", settings_), allocations=parse_allocations(groups, source="test")
    )
    simulation = Simulation(setup)
    result = simulation.run()
    tasks, table = result.tasks, result.jobs
    assert tasks is not None
    assert result.samples.quantum_s is not None
    parents = {"root": None, "root.g": "root", "root.g.a": "root.g", "root.g.b": "root.g", "root.c": "root"}
    quantum = Quantum(100, True, parents, ended=over == "all")
    phases = simulation.world.nodes["phase_ms"][tasks["node"]]
    reported = phases + -(-(tasks["end_ms"] - phases) // 1000) * 1000
    events: list[tuple[float, int, int, int]] = []
    for row in range(len(table["id"])):
        events.append((table["submitted_s"][row], 0, row, 0))
        events.append((table["finished_s"][row], 3, row, 0))
    for i, row in enumerate(tasks["job"]):
        events.append((tasks["granted_ms"][i] / 1000, 1, int(row), i))
        events.append((reported[i] / 1000, 2, int(row), i))
    events.sort()
    at = 0
    names = result.samples.queues
    for k, time_s in enumerate(result.samples.time_s):
        while at < len(events) and events[at][0] <= time_s:
            when, kind, row, task = events[at]
            at += 1
            if kind == 0:
                quantum.add_app(row, table["queue"][row])
            elif kind == 1:
                quantum.start(row, task, when, 1.0)
            elif kind == 2:
                quantum.finish(row, task, when)
            else:
                quantum.remove_app(row)
        for queue in ("root.g.a", "root.g.b", "root.c", "root.g", "root"):
            value = result.samples.quantum_s[k, names.index(queue)]
            if not math.isnan(value):
                assert value == pytest.approx(quantum.quantum_s(queue), abs=1e-6), (time_s, queue)


@given(speed=st.sampled_from([0.5, 2.0, 4.0]), resource=st.sampled_from(["memory", "vcores", "dominant"]))
@settings(max_examples=6, deadline=None)
@pytest.mark.parametrize("discount", [1.0, 0.25])
def test_nodes_count_by_their_speed(cases_module: Any, speed: float, resource: str, discount: float) -> None:
    """Thesis eq. (5.9): what a container uses counts delta times, delta being its node's speed."""
    cases = cases_module
    nodes = (*cases.nodes(2, vcores=3, speed=speed), *(replace(node, name=node.name + "s") for node in cases.nodes(2)))
    nodes = (*nodes, replace(nodes[0], name="late", join_s=20.0, leave_s=60.0))
    stages = (Stage("map", 30, cases.ONE, cases.constant(7.0)),)
    jobs = [
        JobSpec(f"{q}{i}", f"root.{q}", "mapreduce", Resource(), stages, submit_s=11.0 * i)
        for q in "ab"
        for i in range(2)
    ]
    policy = make_policy("ltrf", {"resource": resource, "discount": str(discount)})
    simulation = Simulation(cases.setup(jobs, policy=policy, nodes=nodes, resource=resource))
    result = simulation.run()
    tasks = result.tasks
    assert tasks is not None
    phases = simulation.world.nodes["phase_ms"][tasks["node"]]
    reported = phases + -(-(tasks["end_ms"] - phases) // 1000) * 1000
    left = np.array([60_000 if node.leave_s else 1 << 40 for node in nodes])[tasks["node"]]
    ends = np.minimum(reported, left)
    delta = np.array([node.speed for node in nodes])
    queues = [result.jobs["queue"][row] for row in tasks["job"]]
    size = {"memory": 1024.0, "vcores": 1.0}
    instants = sorted({0, 20_000, 60_000, *tasks["granted_ms"].tolist(), *ends.tolist()})
    counted = {"root.a": 0.0, "root.b": 0.0}
    for begin, end in itertools.pairwise(instants):
        there = [n for n, node in enumerate(nodes) if not node.leave_s or 20_000 <= begin < 60_000]
        whole = {k: sum(delta[n] * getattr(nodes[n], a) for n in there) for k, a in _AMOUNTS.items()}
        live = (tasks["granted_ms"] <= begin) & (ends > begin)
        for leaf in counted:
            held = sum(delta[tasks["node"][i]] for i in np.flatnonzero(live) if queues[i] == leaf)
            if resource == "dominant":
                rate, due = max(held * size[k] / whole[k] for k in whole), 0.25
            else:
                rate, due = held * size[resource], whole[resource] / 4
            counted[leaf] += (min(rate, due) + discount * max(rate - due, 0.0)) * (end - begin) / 1000
    last = dict(zip(result.samples.queues, result.samples.counted[-1], strict=True))
    assert {leaf: last[leaf] for leaf in counted} == pytest.approx(counted)
    plain = make_policy("ltrf", {"node_weight": "none"})
    samples = simulate(cases.setup(jobs, policy=plain, nodes=nodes)).samples
    assert samples.counted[-1, 1] == pytest.approx(samples.accumulated[-1, 1])


_AMOUNTS = {"memory": "memory_mb", "vcores": "vcores"}


def test_two_identical_queues_go_side_by_side_with_the_quantum_alone(cases: Any) -> None:
    """Without it a queue is charged only as its tasks run: whoever is behind takes the whole cluster in turn."""

    def apart(settings_: dict[str, str]) -> float:
        jobs = [cases.mapreduce(f"{q}0", q, 2000, seconds=20.0) for q in "ab"]
        samples = simulate(cases.setup(jobs, policy=make_policy("ltrf", settings_), time_limit_s=400.0)).samples
        held = samples.allocated_mb[:, [samples.queues.index("root.a"), samples.queues.index("root.b")]]
        whole = held.sum(axis=1) > 0.9 * samples.capacity_mb
        return float(np.median(np.abs(held[whole, 0] - held[whole, 1]) / samples.capacity_mb[whole]))

    assert apart({"quantum_s": "20", "adaptive_quantum": "true"}) < 0.1
    assert apart({}) > 0.5


def _two_waves(cases: Any, policy: str, settings_: dict[str, str], alone_s: float) -> Any:
    """a alone for a while, then all four with more than the cluster can hold."""
    jobs = [cases.mapreduce("a0", "a", 3000, seconds=10.0)]
    jobs += [cases.mapreduce(f"{q}1", q, 2000, seconds=10.0, submit_s=alone_s) for q in "bcd"]
    return cases.setup(jobs, policy=make_policy(policy, settings_), time_limit_s=600.0)


def test_ltrf_pays_back_what_fair_does_not(cases: Any) -> None:
    fair = simulate(_two_waves(cases, "fair", {}, 120.0)).samples
    ltrf = simulate(_two_waves(cases, "ltrf", {}, 120.0)).samples
    last = fair.time_s == 590.0
    used = {
        name: [samples.accumulated[last, samples.queues.index(f"root.{q}")][0] for q in "abcd"]
        for name, samples in (("fair", fair), ("ltrf", ltrf))
    }
    # The 40 containers less what is lost between tasks; memoryless, all that was borrowed is kept.
    assert used["fair"][0] - used["fair"][1] > 0.7 * 120 * 40 * 1024
    # Long-term, all four end within two tasks' lengths of a queue's share.
    assert max(used["ltrf"]) - min(used["ltrf"]) < 2 * 12 * 10 * 1024


def test_a_horizon_in_the_scheduler_does_not_starve_the_debtor(cases: Any) -> None:
    waits = {}
    for horizon in ("0", "200"):
        result = simulate(_two_waves(cases, "ltrf", {"horizon_s": horizon}, 45.0))
        waits[horizon] = result.max_wait_s["root.a"]
    assert waits["200"] < 0.5 * waits["0"]


def test_t_wait_bounds_the_wait_of_the_one_with_the_least(cases: Any) -> None:
    two_groups = (
        '<allocations><queue name="g"><queue name="a"/><queue name="b"/></queue>'
        '<queue name="h"><queue name="c"/></queue></allocations>'
    )
    from harness.yarn.fair.parse import parse_allocations

    jobs = [cases.mapreduce("a0", "g.a", 4000, seconds=10.0)]
    jobs += [
        cases.mapreduce("b1", "g.b", 2000, seconds=10.0, submit_s=300.0),
        cases.mapreduce("c1", "h.c", 4000, seconds=10.0, submit_s=300.0),
    ]
    waits = {}
    for policy, more in (("naive-hltrf", {}), ("hltrf", {"t_wait": "5"}), ("hltrf", {"t_wait": "inf"})):
        setup = cases.setup(
            jobs,
            policy=make_policy(policy, more),
            time_limit_s=500.0,
            allocations=parse_allocations(two_groups, source="test"),
        )
        waits[policy, more.get("t_wait")] = simulate(setup).max_wait_s["root.g.b"]
    assert waits["naive-hltrf", None] == waits["hltrf", "inf"] > 100
    # T_wait, and then until a container ends: all tasks take 10 s here and end in bunches.
    assert waits["hltrf", "5"] < 5 + 12


@pytest.mark.parametrize(
    ("limit", "on"),
    [
        ("<maxResources>2048 mb, 2 vcores</maxResources>", "a"),
        ("<maxResources>2048 mb, 2 vcores</maxResources>", "inner"),
        ("<maxRunningApps>1</maxRunningApps>", "a"),
        ("<maxRunningApps>1</maxRunningApps>", "inner"),
        ("<maxAMShare>0.01</maxAMShare>", "a"),
    ],
)
def test_who_is_at_a_limit_does_not_lift_its_group_for_ever(cases: Any, limit: str, on: str) -> None:
    """a has the least and asks for more than it, or its parent, may have: b is no reason to come before c and d."""
    from harness.yarn.fair.parse import parse_allocations

    limits = {"a": "", "inner": "", on: limit}
    groups = (
        f'<allocations><queue name="g"><queue name="inner">{limits["inner"]}<queue name="a">{limits["a"]}</queue>'
        '</queue><queue name="b"/></queue><queue name="h"><queue name="c"/><queue name="d"/></queue></allocations>'
    )
    # One application that asks for all that it cannot have, or two of which one may run.
    first = 1 if "Apps" in limit else 300
    jobs = [cases.mapreduce("a0", "g.inner.a", first, seconds=900.0)]
    jobs += [cases.mapreduce("a1", "g.inner.a", 300, submit_s=1.0)]
    jobs += [cases.mapreduce(f"{q}0", f"{g}.{q}", 3000, submit_s=5.0) for g, q in (("g", "b"), ("h", "c"), ("h", "d"))]
    setup = cases.setup(
        jobs,
        policy=make_policy("hltrf", {"t_wait": "5"}),
        time_limit_s=400.0,
        allocations=parse_allocations(groups, source="test"),
    )
    samples = simulate(setup).samples
    last = samples.time_s == samples.time_s.max()
    used = {q: samples.accumulated[last, samples.queues.index(f"root.{q}")][0] for q in ("g.b", "h.c", "h.d")}
    # Two groups of one weight: with a's two containers, b has had what c and d have had together.
    assert used["g.b"] < 1.2 * (used["h.c"] + used["h.d"])
    assert used["h.c"] == pytest.approx(used["h.d"], rel=0.1)


def test_long_term_order_between_the_applications_of_a_leaf(cases: Any) -> None:
    jobs = [cases.mapreduce("old", "a", 3000, seconds=10.0), cases.mapreduce("new", "a", 3000, submit_s=300.0)]
    used = {}
    for policy in ("fair", "ltrf"):
        setup = cases.setup(jobs, policy="ltrf", queue_orders={"root.a": QueueOrder(policy)}, time_limit_s=480.0)
        result = simulate(setup)
        assert result.tasks is not None
        late = result.tasks["granted_ms"] > 330_000
        used[policy] = int((late & (result.tasks["job"] == 1)).sum() - (late & (result.tasks["job"] == 0)).sum())
    assert abs(used["fair"]) < 60
    assert used["ltrf"] > 200


def _mixed_sizes(cases: Any, fit: str, policy: str = "ltrf") -> Any:
    """a's tasks take a quarter of a node, b's a whole one; b comes late, when a holds everything."""
    small = cases.mapreduce("a0", "a", 4000, seconds=10.0)
    large = cases.mapreduce("b0", "b", 40, seconds=10.0, submit_s=60.0)
    stage = replace(large.stages[0], demand=Resource(4096, 1))
    jobs = [small, replace(large, stages=(stage,))]
    made = make_policy(policy, {"fit": fit})
    return simulate(cases.setup(jobs, policy=made, time_limit_s=400.0, mode="inside")).samples


def _first_large_task_s(samples: Any) -> float:
    b = samples.allocated_mb[:, samples.queues.index("root.b")]
    return next((float(t) for t, mb in zip(samples.time_s, b, strict=True) if mb > 4096), math.inf)


@pytest.mark.parametrize("policy", ["ltrf", "naive-hltrf", "hltrf"])
def test_where_the_chosen_queues_task_does_not_fit_all_wait(cases: Any, policy: str) -> None:
    """LTYARN Algorithm 1, line 13. b's tasks need a whole node: a refills every quarter that becomes free, unless the
    node waits for b, whose accumulated resources are the least."""
    assert _first_large_task_s(_mixed_sizes(cases, "wait", policy=policy)) < 60.0 + 25.0
    assert _first_large_task_s(_mixed_sizes(cases, "next", policy=policy)) == math.inf


def test_waiting_leaves_idle_what_others_could_use(cases: Any) -> None:
    """The price: from b's arrival until its first tasks the nodes drain; serving the next queue keeps them full."""

    def used(fit: str) -> float:
        samples = _mixed_sizes(cases, fit)
        return float(samples.allocated_mb[(samples.time_s > 62) & (samples.time_s < 72), 0].mean())

    assert used("wait") < 0.9 * used("next")


def test_who_is_at_a_limit_is_not_waited_for(cases: Any) -> None:
    """b asks for more than its maximum lets it have: waiting for it would stop the cluster."""
    jobs = [cases.mapreduce("a0", "a", 400, seconds=10.0), cases.mapreduce("b0", "b", 400, seconds=10.0)]
    file = cases.FOUR.replace('name="b"/>', 'name="b"><maxResources>2048 mb,2 vcores</maxResources></queue>')
    found = {}
    for fit in ("next", "wait"):
        policy = make_policy("ltrf", {"fit": fit})
        made = cases.setup(jobs, policy=policy, time_limit_s=100.0, mode="inside")
        samples = simulate(replace(made, allocations=parse_allocations(file))).samples
        found[fit] = float(samples.allocated_mb[samples.time_s > 20, samples.queues.index("root.a")].mean())
    assert found["wait"] == found["next"] > 30_000


def test_who_has_asked_since_the_last_update_only_is_not_waited_for(cases: Any) -> None:
    """b1 comes at 65 s; Hadoop's update() sees its ask at 80 s and serves it not before that. All of a's tasks end at
    about 70 s: were a node to wait for b1, a would get nothing for 10 s."""
    large = cases.mapreduce("b0", "b", 40)  # more than b's maximum: b has its turn, and is passed over
    large = replace(large, stages=(replace(large.stages[0], demand=Resource(4096, 1)),))
    jobs = [cases.mapreduce("a0", "a", 4000), large, cases.mapreduce("b1", "b", 1, submit_s=65.0)]
    limits = "<maxResources>3072 mb,3 vcores</maxResources><maxAMShare>-1.0</maxAMShare>"
    file = parse_allocations(cases.FOUR.replace('name="b"/>', f'name="b">{limits}</queue>'))
    slow = replace(Delays(), update_ms=20_000)
    found = {}
    for fit in ("next", "wait"):
        policy = make_policy("ltrf", {"fit": fit})
        samples = simulate(cases.setup(jobs, policy=policy, allocations=file, delays=slow, time_limit_s=100.0)).samples
        used = samples.allocated_mb
        assert used[samples.time_s > 85, samples.queues.index("root.b")].max() > 1024  # b1 has been served then
        between = (samples.time_s > 73) & (samples.time_s < 79)
        found[fit] = float(used[between, samples.queues.index("root.a")].mean())
    assert found["wait"] == found["next"] > 30_000
