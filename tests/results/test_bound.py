"""Lower bounds of the sharing loss: never above what any policy loses, and met where that is possible."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.results.bound import Floats, last_unavoidable_s, least_loss
from harness.results.metrics import fairness_degree, integral, sharing_benefit_and_loss
from harness.sim.setup import SimSetup

ONE = Resource(1024, 1)
QUEUES = ("a", "b", "c")
POLICIES = (("fair", "inside"), ("ltrf", "inside"), ("fifo", "inside"), ("static", "inside"), ("ltrf", "outside"))


def freed(time_s: ArrayLike, ends_s: ArrayLike, sizes: ArrayLike, arrival_s: float) -> Floats:
    """sum_k theta_k (t - max(e_k, a))^+: what containers that end at e_k can have given up to t to whoever came at a.

    Parameters
    ----------
    time_s : (times,).
    ends_s, sizes : of the containers that run at the arrival, and of what is free (end: the arrival itself).
    arrival_s : when the first of those whom it may serve came.
    """
    t = np.asarray(time_s, dtype=np.float64)
    begins = np.maximum(np.asarray(ends_s, dtype=np.float64), arrival_s)
    weight = np.asarray(sizes, dtype=np.float64)
    order = np.argsort(begins)
    begins, weight = begins[order], weight[order]
    # Of the k that have ended by t: t x sum(theta) - sum(theta e).
    count = np.searchsorted(begins, t, side="right")
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    moments = np.concatenate([[0.0], np.cumsum(weight * begins)])
    given: Floats = np.maximum(t * sums[count] - moments[count], 0.0)
    return given


def first_contention_loss(
    time_s: ArrayLike, ends_s: ArrayLike, sizes: ArrayLike, arrivals_s: ArrayLike, shares: ArrayLike
) -> Floats:
    """The least abs(Omega) after queues came to a cluster that others hold, for any scheduler that kills nothing.

    Parameters
    ----------
    time_s : (times,), all within the window in which each newcomer asks for at least its share whatever it has got.
    ends_s, sizes : of the containers that run when the first newcomer comes (what is free: that moment).
    arrivals_s, shares : a_j and S_j of the newcomers, (queues,).
    """
    t = np.asarray(time_s, dtype=np.float64)
    arrivals, share = np.asarray(arrivals_s, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    due = np.maximum(t[:, None] - arrivals, 0.0) * share
    most = np.stack([freed(t, ends_s, sizes, float(at)) for at in arrivals], axis=1)
    return least_loss(due, freed(t, ends_s, sizes, float(arrivals.min())), most)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    due=st.lists(st.integers(0, 1000), min_size=3, max_size=3),
    most=st.lists(st.integers(0, 1000), min_size=3, max_size=3),
    served=st.integers(0, 3000),
    division=st.lists(st.floats(0, 1), min_size=3, max_size=3),
)
def test_no_division_loses_less(due: list[int], most: list[int], served: int, division: list[float]) -> None:
    least = least_loss([due], [served], [most])[0]
    given_ = np.minimum(np.array(division) * served / max(sum(division), 1e-3), most)
    rho = fairness_degree(given_, due)
    assert least <= np.maximum(1 - rho, 0).sum() + 1e-9


def test_the_best_division_is_the_greedy_one() -> None:
    # 10 due and 30 due, 12 to give: 10 to the first, 2 to the second; a grid finds nothing better.
    least = least_loss([[10.0, 30.0]], [12.0])[0]
    assert least == pytest.approx(1 - 2 / 30)
    grid = min(max(1 - x / 10, 0) + max(1 - (12 - x) / 30, 0) for x in np.linspace(0, 12, 1201))
    assert least == pytest.approx(grid)
    assert least_loss([[0.0, 0.0]], [0.0]).tolist() == [0.0]


def test_freed_counts_from_the_end_or_the_arrival() -> None:
    assert freed([5.0, 10.0, 20.0], [4.0, 12.0], [1.0, 2.0], 6.0).tolist() == [0.0, 4.0, 14.0 + 16.0]


def _setup(seed: int, first: int, newcomers: dict[str, float], policy: str, mode: Any) -> SimSetup:
    from harness.yarn.fair.parse import parse_allocations

    length = Duration("lognormal", mu=2.0, sigma=0.6)
    jobs = [JobSpec("a", "root.a", "mapreduce", Resource(), (Stage("map", first, ONE, length),))]
    jobs += [
        JobSpec(q, f"root.{q}", "mapreduce", Resource(), (Stage("map", 400, ONE, length),), submit_s=at)
        for q, at in newcomers.items()
    ]
    file = "<allocations>" + "".join(f'<queue name="{q}"/>' for q in QUEUES) + "</allocations>"
    return SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 3072, 8) for i in range(4)),
        allocations=parse_allocations(file),
        jobs=jobs,
        policy=make_policy(policy, {}),
        mode=mode,
        seed=seed,
        sample_s=0.5,
        record_tasks=True,
    )


@given(seed=st.integers(0, 10**6), gap_ms=st.integers(0, 15_000), at_ms=st.integers(15_000, 30_000))
@example(seed=0, gap_ms=0, at_ms=15_500)
@settings(max_examples=4, deadline=None)
def test_no_policy_beats_the_bound_of_the_first_contention(seed: int, gap_ms: int, at_ms: int) -> None:
    """A cluster of 12 containers that one queue holds; two others come. Until `at` all work-conserving runs are one.

    They come at whole milliseconds, as in every run: the simulator rounds to them, and a sample in the same millisecond
    would see no time pass where the bound counts a part of it.
    """
    from harness.control.virtual import simulate_policy

    at, gap = at_ms / 1000, gap_ms / 1000
    newcomers = {"b": at, "c": at + gap}
    bounds, losses = set(), {}
    for policy, mode in POLICIES:
        result = simulate_policy(replace(_setup(seed, 400, newcomers, policy, mode), time_limit_s=at + 60))
        tasks, samples = result.tasks, result.samples
        assert tasks is not None
        window = (samples.time_s >= at) & (samples.time_s <= at + 55)
        columns = [samples.queues.index(f"root.{q}") for q in QUEUES]
        rho = fairness_degree(samples.accumulated[:, columns], samples.due[:, columns])
        _, omega = sharing_benefit_and_loss(rho)
        losses[policy, mode] = integral(samples.time_s[window], -omega[window])
        if policy == "static":
            continue  # its maxima leave containers idle: the cluster at `at` is another one
        # What runs at the arrival, in this run; tasks that were killed by the run's end run on.
        running = (tasks["granted_ms"] < at * 1000) & (tasks["end_ms"] > at * 1000)
        assert running.sum() + 1 >= 9
        ends = np.concatenate([tasks["end_ms"][running] / 1000.0, np.full(12 - int(running.sum()), at)])
        share = 12 * 1024 / 3
        least = first_contention_loss(
            samples.time_s[window], ends, np.full(12, 1024.0), list(newcomers.values()), [share, share]
        )
        found = integral(samples.time_s[window], least)
        bounds.add(round(found, 6))
        assert found <= losses[policy, mode] + 1e-6, (policy, mode)
        assert (least <= -omega[window] + 1e-6).all(), (policy, mode)
        # What the same dues and the same total service leave to divide.
        total = samples.accumulated[:, columns].sum(axis=1)
        again = least_loss(samples.due[:, columns], total)
        assert (again <= -omega + 1e-6).all()
    assert min(bounds) > 0


def test_the_last_unavoidable_loss() -> None:
    assert last_unavoidable_s([1.0, 2.0, 3.0], [0.5, 0.02, 0.005]) == 2.0
    assert last_unavoidable_s([1.0], [0.0]) == 0.0


def test_every_bound_is_reached_somewhere() -> None:
    """One newcomer, one container of the others': serving it whenever something ends loses exactly the bound."""
    t = np.linspace(0, 20, 201)
    least = first_contention_loss(t, [4.0, 8.0], [1.0, 1.0], [0.0], [1.0])
    served = np.maximum(t - 4, 0) + np.maximum(t - 8, 0)
    expected = np.maximum(1 - np.divide(served, t, out=np.ones_like(t), where=t > 0), 0)
    assert least == pytest.approx(expected)
    for ends in product((1.0, 9.0), repeat=2):
        assert (first_contention_loss(t, ends, [1.0, 1.0], [0.0], [1.0])[10:] <= 1).all()
