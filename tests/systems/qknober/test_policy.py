"""QKnober for YARN's two resources: the closed form against the exact program, decisions inside and from outside."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies import make_policy
from harness.policies.base import CountedLedger
from harness.policies.vectors import knob_for as knob_exactly
from harness.systems.qknober.division import two_stages as exactly
from harness.systems.qknober.two_resources import knob_for, targets, two_stages


@st.composite
def users(draw: st.DrawFn) -> tuple[list[tuple[Fraction, Fraction]], list[Fraction]]:
    directions = []
    for _ in range(draw(st.integers(1, 6))):
        x, y = draw(st.integers(0, 5)), draw(st.integers(0, 5))
        most = max(x, y)
        directions.append((Fraction(x, most), Fraction(y, most)) if most else (Fraction(1), Fraction(0)))
    return directions, [Fraction(draw(st.integers(1, 4))) for _ in directions]


@settings(deadline=None, max_examples=200)
@given(users(), st.integers(0, 4), st.integers(1, 5), st.integers(1, 5))
def test_the_closed_form_is_the_linear_program(
    given_users: tuple[list[tuple[Fraction, Fraction]], list[Fraction]], rho: int, x: int, y: int
) -> None:
    directions, weights = given_users
    idle = (Fraction(x, 5), Fraction(y, 5))
    exact, fair = exactly(directions, weights, idle, Fraction(rho, 4))
    floats = [(float(a), float(b)) for a, b in directions]
    found, part = two_stages(floats, [float(w) for w in weights], rho / 4, (float(idle[0]), float(idle[1])))
    assert found == pytest.approx([float(level) for level in exact], abs=1e-9)
    assert part == pytest.approx(float(fair))
    theta = Fraction(rho + 1, 7)
    assert knob_for(floats, [float(w) for w in weights], float(theta)) == pytest.approx(
        float(knob_exactly(directions, weights, theta)), abs=1e-9
    )


@settings(deadline=None, max_examples=150)
@given(users(), st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(0, 1))
def test_targets_fit_and_ask_for_no_more_than_is_wanted(
    given_users: tuple[list[tuple[Fraction, Fraction]], list[Fraction]], demands: list[float], rho: float
) -> None:
    directions = [(float(a), float(b)) for a, b in given_users[0]]
    weights = [float(w) for w in given_users[1]]
    demands = demands[: len(weights)]
    found, fair = targets(directions, weights, demands, rho)
    assert all(0 <= level <= demand + 1e-9 for level, demand in zip(found, demands, strict=True))
    assert all(part <= demand + 1e-9 for part, demand in zip(fair, demands, strict=True))
    for k in (0, 1):
        assert sum(s * w * b[k] for s, w, b in zip(found, weights, directions, strict=True)) <= 1 + 1e-9


def snapshot(**queues: tuple[float, Resource, Resource, int]) -> Snapshot:
    """Queues: weight, allocated, demand, pending containers. A cluster of 1,000 MiB and 200 vcores."""
    views = {"root": QueueView("root", None, False)}
    for name, (weight, allocated, demand, pending) in queues.items():
        path = f"root.{name}"
        views[path] = QueueView(path, "root", True, weight, allocated, demand, pending_containers=pending)
    return Snapshot(10.0, Resource(1000, 200), views, 15.0)


def test_weights_from_outside_are_example_1() -> None:
    """<1, 6> and <1, 2> without end at rho = 0: dominant shares of 0.9 and 0.25."""
    zero = Resource(0, 0)
    seen = snapshot(A=(1.0, zero, Resource(6000, 1000), 1000), B=(1.0, zero, Resource(2000, 1000), 1000))
    plan = make_policy("qknober", {"rho": "0"}).plan(seen, CountedLedger())
    assert plan.weights["root.A"] / plan.weights["root.B"] == pytest.approx(3.6, rel=1e-3)
    assert set(plan.scheduling_policies.values()) == {"drf"}
    fair = make_policy("qknober", {"rho": "1"}).plan(seen, CountedLedger())
    assert fair.weights["root.A"] == pytest.approx(fair.weights["root.B"], rel=1e-3)
    # A wanted theta finds the knob: 1.2 in units of a half each is 0.6.
    by_theta = make_policy("qknober", {"theta": "1.2"}).plan(seen, CountedLedger())
    by_rho = make_policy("qknober", {"rho": "0.5"}).plan(seen, CountedLedger())
    assert by_theta.weights == pytest.approx(by_rho.weights)


def test_an_idle_queue_keeps_a_weight_for_its_burst() -> None:
    zero = Resource(0, 0)
    seen = snapshot(A=(1.0, zero, Resource(6000, 1000), 1000), B=(1.0, zero, zero, 0))
    plan = make_policy("qknober", {"rho": "0.5"}).plan(seen, CountedLedger())
    assert plan.weights["root.B"] == pytest.approx(plan.weights["root.A"], rel=0.1)


def test_algorithm_1_fair_part_first() -> None:
    """Nobody below the fair part: the furthest below both stages' share. Below it: the lowest, whatever packs best."""
    policy = make_policy("qknober", {"rho": "0.5"})
    a, b = Resource(6000, 1000), Resource(2000, 1000)
    begin = policy.keys(snapshot(A=(1.0, Resource(60, 10), a, 900), B=(1.0, Resource(2, 1), b, 900)), CountedLedger())
    assert begin["root.B"] < begin["root.A"]
    # Fair parts are 3/11 = 0.27 each; A is to have 0.873, B 0.273.
    later = policy.keys(
        snapshot(A=(1.0, Resource(600, 100), a, 900), B=(1.0, Resource(112, 56), b, 900)), CountedLedger()
    )
    assert later["root.A"] < later["root.B"]
    assert policy.keys(snapshot(A=(1.0, Resource(0, 0), Resource(0, 0), 0)), CountedLedger()) == {}


def test_tetris_by_queues_aligns_with_what_is_idle() -> None:
    a, b = Resource(6000, 1000), Resource(2000, 1000)
    seen = snapshot(A=(1.0, Resource(60, 10), a, 990), B=(1.0, Resource(2, 1), b, 999))
    free = make_policy("tetris", {"f": "0"}).keys(seen, CountedLedger())
    assert free["root.A"] < free["root.B"]
    fair = make_policy("tetris", {"f": "1"}).keys(seen, CountedLedger())
    assert fair["root.B"] < fair["root.A"]
