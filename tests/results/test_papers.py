"""Measures of the other papers over curves whose figures are known."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.results.papers import (
    Curves,
    adjusted_shares,
    cost_dollars,
    discrimination_s,
    fairness_error,
    measures,
    soft_fairness,
    soft_fairness_p95,
    theorem_1,
)

PEERS = Path(__file__).parents[1] / "oracle" / "peers"
#: Golden.md's Example 1: 200 CPU, 1000 GB; a task of A takes <1, 6>, one of B <1, 2>.
CPU, MEMORY = 200, 1000


def curves(held: Any, demand: Any, times: Any = (0.0, 10.0), weights: Any = (1.0, 1.0)) -> Curves:
    """``held``, ``demand``: tasks of A and B by sample."""
    need = np.array([[6, 1], [2, 1]])
    held, demand = np.asarray(held), np.asarray(demand)
    samples: Any = SimpleNamespace(
        time_s=np.array(times),
        share_fraction=np.array(weights) / sum(weights),
        capacity_mb=np.full(len(times), MEMORY),
        capacity_vcores=np.full(len(times), CPU),
        allocated_mb=held * need[:, 0],
        allocated_vcores=held * need[:, 1],
        demand_mb=demand * need[:, 0],
        demand_vcores=demand * need[:, 1],
    )
    return Curves(samples, [0, 1], len(times))


def test_soft_fairness_of_the_paper_s_full_utilisation() -> None:
    """A <150, 900>, B <50, 100>: dominant shares 0.9 and 0.25 of weights 1/2, both with tasks without end."""
    found = curves([[150, 50]] * 2, [[1000, 1000]] * 2)
    assert soft_fairness(found) == pytest.approx((0.9 - 0.25) / 0.5)


def test_fairness_errors_are_armadas_own() -> None:
    """A thousand answers of Armada's functions: tests/oracle/peers/README.md."""
    cases = json.loads(gzip.decompress((PEERS / "armada.json.gz").read_bytes()))["cases"]
    assert len(cases) == 1000
    for case in cases:
        weight, demand = np.array(case["weights"]), np.array([case["demands"]])
        share = adjusted_shares(weight, demand)
        assert share[0].tolist() == pytest.approx(case["shares"], abs=1e-12)
        short = float(np.maximum(share[0] - np.array(case["held"]), 0.0).sum())
        assert short == pytest.approx(case["fairness_error"], abs=1e-12)


def test_the_fairness_error_of_who_waits() -> None:
    """A holds 0.9 and B 0.25, each is due a half: B has a quarter less. Who wants no more has no less."""
    assert fairness_error(curves([[150, 50]] * 2, [[1000, 1000]] * 2)) == pytest.approx(0.5 - 0.25)
    assert fairness_error(curves([[150, 50]] * 2, [[1000, 50]] * 2)) == 0
    assert fairness_error(curves([[150, 50]] * 2, [[150, 50]] * 2)) is None
    # Half of the time B has its half.
    half = curves([[150, 50], [83, 100], [83, 100]], [[1000, 1000]] * 3, times=(0.0, 10.0, 20.0))
    assert fairness_error(half) == pytest.approx((0.5 - 0.25) / 2, abs=0.002)


def test_only_who_waits_is_treated_unfairly_and_only_that_time_counts() -> None:
    assert soft_fairness(curves([[150, 50]] * 2, [[150, 50]] * 2)) is None
    # B wants no more: the lowest of those who wait is A itself.
    assert soft_fairness(curves([[150, 50]] * 2, [[1000, 50]] * 2)) == 0
    found = curves([[150, 50], [0, 50], [0, 50]], [[150, 1000], [0, 50], [0, 50]], times=(0.0, 1.0, 100.0))
    assert soft_fairness(found) == pytest.approx((0.9 - 0.25) / 0.5), "one second of a hundred is contended"


def test_the_95th_percentile_is_of_the_time_in_which_somebody_waits() -> None:
    """A gap of 1.3 for 6 s of 100, of 0.2 otherwise; for 4 s of 100 it is not reached. Calm time does not count."""
    held, asked = [[100, 100], [150, 50], [1, 0], [1, 0]], [[1000, 1000], [1000, 1000], [1, 0], [1, 0]]
    rare, often = (soft_fairness_p95(curves(held, asked, times=(0.0, at, 100.0, 1000.0))) for at in (96.0, 94.0))
    assert (rare, often) == (pytest.approx(0.2), pytest.approx(1.3))


@pytest.mark.parametrize(("rho", "theta"), [(0.0, 1.0), (0.5, 0.6), (1.0, 0.0)])
def test_theorem_1_of_example_1(rho: float, theta: float) -> None:
    """Golden.md has theta 1.0, 0.6, 0 for equal weights of 1; with weights that sum to 1 it is twice that."""
    idle = curves([[0, 0]] * 2, [[10_000, 10_000]] * 2)
    assert theorem_1(idle, rho) == pytest.approx(2 * theta, abs=1e-9)


def test_a_full_cluster_still_has_a_bound() -> None:
    full = curves([[100, 100]] * 2, [[100, 10_000]] * 2)
    assert theorem_1(full, 0.0) == pytest.approx(2.0)


def test_discrimination_balances_while_all_is_held() -> None:
    """FAWKES, eq. (2): A holds the whole cluster for 10 s, then B for 30 s."""
    need_all = [[1000 // 6, 0], [0, 200], [0, 200]]
    gained = discrimination_s(curves(need_all, need_all, times=(0.0, 10.0, 40.0)))
    assert gained[0] == pytest.approx(10 * (0.996 - 0.5) - 30 * 0.5)
    assert gained[1] == pytest.approx(-10 * 0.5 + 30 * 0.5)
    whole, queues = measures(curves(need_all, need_all, times=(0.0, 10.0, 40.0)), ["a", "b"])
    mean = sum(gained) / 2
    assert whole["overall_discrimination_variance"] == pytest.approx(sum((g - mean) ** 2 for g in gained) / 2)
    assert queues["a"]["progress_share"]["mean"] == pytest.approx(0.996), "only while it wants anything"
    assert queues["b"]["progress_share"]["mean"] == 1.0


def test_below_share_counts_waiting_time_only() -> None:
    """B waits for 10 s with a quarter of the cluster, then for 30 s with all of it."""
    found = curves([[100, 50], [0, 200], [0, 200]], [[100, 500], [0, 500], [0, 500]], times=(0.0, 10.0, 40.0))
    _, queues = measures(found, ["a", "b"])
    assert queues["b"]["progress_share"]["below_share"] == pytest.approx(0.25)
    assert queues["a"]["progress_share"]["below_share"] is None, "it never waits"


def test_nothing_and_nobody() -> None:
    nothing = curves([[0, 0]], [[0, 0]], times=(0.0,))
    assert measures(nothing, ["a", "b"])[0] == {
        "soft_fairness": None,
        "fairness_error": None,
        "overall_discrimination_variance": 0.0,
    }
    assert theorem_1(nothing, 0.5) is None


def test_cost_is_by_the_started_hour() -> None:
    group = {"count": 5, "price_hour": 0.34, "join_s": 0.0, "leave_s": None}
    assert cost_dollars([group], 3600.0) == pytest.approx(1.70)
    assert cost_dollars([group], 3601.0) == pytest.approx(3.40)
    late = {"count": 2, "price_hour": 1.0, "join_s": 3000.0, "leave_s": 7000.0}
    assert cost_dollars([group, late], 10_000.0) == pytest.approx(5 * 0.34 * 3 + 2 * 2)
    assert cost_dollars([group, {"count": 1, "join_s": 0.0, "leave_s": None}], 10.0) is None
    assert math.isclose(cost_dollars([late], 100.0) or 0.0, 0.0), "it had not come"
