"""Water-filling: optimal by comparison with a linear program, exact on fractions, and its two limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from harness.policies.filling import Joining, satisfied, water_fill

USED = st.lists(st.floats(0, 1e9), min_size=1, max_size=8)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[float], list[float], float, float]:
    used = draw(USED)
    entitlements = draw(st.lists(st.floats(0.01, 100), min_size=len(used), max_size=len(used)))
    return used, entitlements, draw(st.floats(1, 1e6)), draw(st.floats(1, 1e4))


@settings(max_examples=150, deadline=None)
@given(problems())
def test_feasible(problem: tuple[list[float], list[float], float, float]) -> None:
    used, entitlements, capacity, horizon = problem
    x = water_fill(used, entitlements, capacity, horizon)
    assert all(-1e-9 * capacity <= amount <= capacity * (1 + 1e-9) for amount in x)
    assert sum(x) == pytest.approx(capacity, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_smallest_level_is_the_linear_program_s(problem: tuple[list[float], list[float], float, float]) -> None:
    used, entitlements, capacity, horizon = problem
    x = water_fill(used, entitlements, capacity, horizon)
    n = len(used)
    # In units of H R: maximise z subject to (u_i / HR + y_i) / w_i >= z, sum y = 1, 0 <= y <= 1.
    scaled = np.array(used) / (horizon * capacity)
    rows = np.hstack([np.diag(-1 / np.array(entitlements)), np.ones((n, 1))])
    answer = linprog(
        np.array([0.0] * n + [-1.0]),
        A_ub=rows,
        b_ub=scaled / entitlements,
        A_eq=np.array([[1.0] * n + [0.0]]),
        b_eq=[1.0],
        bounds=[(0, 1)] * n + [(None, None)],
    )
    assert answer.status == 0
    ours = min((u + amount / capacity) / w for u, amount, w in zip(scaled, x, entitlements, strict=True))
    assert ours == pytest.approx(-answer.fun, rel=1e-5, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_all_who_get_something_reach_the_same_level_and_no_one_else_is_below_it(
    problem: tuple[list[float], list[float], float, float],
) -> None:
    """The conditions of optimality, on exact fractions: no tolerance."""
    used, entitlements, capacity, horizon = problem
    u, w = [Fraction(value) for value in used], [Fraction(value) for value in entitlements]
    x = water_fill(u, w, Fraction(capacity), Fraction(horizon))
    assert sum(x) == Fraction(capacity)
    levels = [(a + Fraction(horizon) * b) / c for a, b, c in zip(u, x, w, strict=True)]
    served = {level for level, amount in zip(levels, x, strict=True) if amount > 0}
    assert len(served) == 1
    assert min(levels) == served.pop()


def test_horizon_zero_is_ltrf() -> None:
    assert water_fill([3.0, 1.0, 2.0], [1.0, 1.0, 1.0], 12.0, 0.0) == [0, 12, 0]
    assert water_fill([1.0, 2.0, 9.0], [1.0, 2.0, 1.0], 12.0, 0.0) == [4, 8, 0]  # equal keys share by entitlement


def test_horizon_infinite_is_memoryless() -> None:
    assert water_fill([3.0, 1e9], [1.0, 3.0], 12.0, math.inf) == [3, 9]


def test_longer_horizons_move_towards_memoryless() -> None:
    shares = [water_fill([100.0, 0.0], [1.0, 1.0], 10.0, horizon)[0] for horizon in (5.0, 20.0, 80.0, 1e6)]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(5.0, rel=1e-4)


def test_of_nothing() -> None:
    assert water_fill([], [], 10.0, 1.0) == []
    assert water_fill([5.0], [2.0], 10.0, 0.0) == [10.0]


@settings(max_examples=150, deadline=None)
@given(problems(), st.floats(0, 1e9), st.floats(0.01, 100))
def test_joining_is_filling_with_one_more(
    problem: tuple[list[float], list[float], float, float], used: float, entitlement: float
) -> None:
    others, entitlements, capacity, horizon = problem
    for length in (0.0, horizon, math.inf):
        whole = water_fill([*others, used], [*entitlements, entitlement], capacity, length)[-1] / capacity
        assert Joining(others, entitlements, capacity, length).part(used, entitlement) == pytest.approx(
            whole, rel=1e-6, abs=1e-7
        )


@given(
    queues=st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.1, 10), st.floats(0, 300)), min_size=2, max_size=30),
    amount=st.floats(10, 2000),
    horizon=st.sampled_from([1.0, 80.0, 5000.0, math.inf]),
)
def test_who_has_enough_is_found_in_one_sweep(
    queues: list[tuple[float, float, float]], amount: float, horizon: float
) -> None:
    """The same as filling again and again without those who have enough."""
    used, entitlements, demands = (list(column) for column in zip(*queues, strict=True))
    short, left = list(range(len(queues))), amount
    while short:
        x = water_fill([used[i] for i in short], [entitlements[i] for i in short], left, horizon)
        enough = {i for i, part in zip(short, x, strict=True) if demands[i] <= part}
        if not enough:
            break
        left -= sum(demands[i] for i in enough)
        short = [i for i in short if i not in enough]
        if left <= 0:
            return  # all that is left is rounding
    found = satisfied(used, entitlements, demands, amount, horizon)
    wrong = [i for i in range(len(queues)) if found[i] != (i not in short)]
    # Whoever is on the edge may fall to either side.
    for i in wrong:
        x = water_fill([used[k] for k in {*short, i}], [entitlements[k] for k in {*short, i}], max(left, 1e-9), horizon)
        assert min(abs(demands[i] - part) for part in x) <= 1e-6 * amount + 1e-9
