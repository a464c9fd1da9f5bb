"""The papers' measures: worked by hand, and properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.results.metrics import (
    expected_s,
    fairness_degree,
    ideal_alone_s,
    integral,
    last_loss_s,
    mean,
    percentile,
    sharing_benefit_and_loss,
    slowdown,
    time_mean,
    until,
)

ONE = Resource(1024, 1)


def test_fairness_degree_by_hand() -> None:
    # Two queues with S = 50 of 100. Until t = 2: A uses 20 of a demand of 20, B 80 of 100. Until t = 4: each has
    # demand without end; A gets 50, B 50.
    accumulated = np.array([[0, 0], [40, 160], [140, 260]])
    due = np.array([[0, 0], [2 * 20, 2 * 50], [40 + 100, 100 + 100]])
    rho = fairness_degree(accumulated, due)
    assert rho.tolist() == [[1, 1], [1, 1.6], [1, 1.3]]
    benefit, loss = sharing_benefit_and_loss(rho)
    assert benefit.tolist() == pytest.approx([0, 0.6, 0.3])
    assert loss.tolist() == [0, 0, 0]


def test_loss_and_benefit_do_not_cancel() -> None:
    benefit, loss = sharing_benefit_and_loss(np.array([[1.5, 0.75, 1.0, 0.5]]))
    assert (benefit[0], loss[0]) == (0.5, -0.75)


def test_the_thesis_counterexample() -> None:
    # 3 units, B demands 1 and C 2 a step; A arrives at step 10 with 100 (thesis Theorem 5.4 does not hold): under LTRF
    # A takes all from step 10 on, so at step 12 B has 9 of the 12 that it would have had alone.
    assert fairness_degree(9.0, 12.0) == 0.75


def test_nothing_due_is_one() -> None:
    assert fairness_degree([0.0, 5.0], [0.0, 0.0]).tolist() == [1, 1]


def test_integrals_and_means_by_hand() -> None:
    t, v = [0, 1, 3], [0, -1, -1]
    assert integral(t, v) == -2.5
    assert time_mean(t, v) == pytest.approx(-2.5 / 3)
    assert (integral([5], [7]), time_mean([5], [7]), time_mean([], [])) == (0, 7, 0)


def test_last_loss_is_strictly_below_a_hundredth() -> None:
    assert last_loss_s([0, 1, 2, 3], [0, -0.5, -0.011, -0.01]) == 2
    assert last_loss_s([0, 1], [0, -0.01]) == 0


def test_until_takes_one_sample_beyond_an_end_between_two() -> None:
    assert [until([0, 1, 2, 3], end) for end in (-1, 0, 1, 1.5, 3, 9)] == [1, 1, 2, 3, 4, 4]


def test_means_and_percentiles() -> None:
    assert mean([1, 2, 6]) == 3
    assert mean([]) is None
    assert percentile([1, 2, 3, 4, 5], 95) == pytest.approx(4.8)
    assert percentile([], 95) is None


def test_a_percentile_is_that_of_numpy_to_the_last_bit() -> None:
    random = np.random.default_rng(1)
    for _ in range(500):
        values = random.normal(size=random.integers(1, 30)) * 10.0 ** random.integers(-3, 6)
        percent = float(random.choice([0, 5, 50, 95, 99, 100, random.uniform(0, 100)]))
        assert percentile(values, percent) == float(np.percentile(values, percent))
    assert math.isnan(percentile([1.0, math.nan], 50) or 0.0)


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (Duration("constant", value_s=3), 3),
        (Duration("exponential", value_s=4), 4),
        (Duration("uniform", low_s=2, high_s=6), 4),
        (Duration("empirical", values_s=(1.0, 2.0, 6.0)), 3),
        (Duration("lognormal", mu=math.log(20) - 0.125, sigma=0.5), 20),
    ],
)
def test_expected_durations(duration: Duration, seconds: float) -> None:
    assert expected_s(duration) == pytest.approx(seconds)


def job(kind: str, *stages: Stage, **more: object) -> JobSpec:
    return JobSpec(id="j", queue="root.q", kind=kind, am=ONE, stages=stages, **more)  # type: ignore[arg-type]


def test_ideal_alone_by_hand() -> None:
    room = Resource(5 * 1024, 5)  # the AM and four tasks
    maps = Stage("map", 9, ONE, Duration(value_s=10))  # three waves
    reduces = Stage("reduce", 2, ONE, Duration(value_s=7), ("map",), 0.1)
    assert ideal_alone_s(job("mapreduce", maps), room) == 30
    assert ideal_alone_s(job("mapreduce", maps, reduces), room) == 30, "reduces that began early end with the last map"
    sorts = Stage("reduce", 2, ONE, Duration(value_s=7), ("map",), 0.1, tail=0.5)
    assert ideal_alone_s(job("mapreduce", maps, sorts), room) == 33.5, "and work their tails after it"
    late = Stage("reduce", 2, ONE, Duration(value_s=7), ("map",), 1.0)
    assert ideal_alone_s(job("mapreduce", maps, late), room) == 37
    spark = job("spark", Stage("s", 12, ONE, Duration(value_s=5)), executors=100, executor_demand=ONE, executor_slots=2)
    assert ideal_alone_s(spark, room) == 10  # four executors fit, two slots each: 8 at once
    assert ideal_alone_s(job("service", lifetime_s=60.0), room) == 60


def test_slowdown() -> None:
    assert slowdown(30, 20) == 1.5
    assert math.isnan(slowdown(30, 0))
    assert math.isnan(slowdown(math.nan, 20))


# Integrals of MiB over milliseconds: nothing smaller than a thousandth.
amounts = st.integers(0, 10**15).map(lambda thousandths: thousandths / 1000)
curves = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=amounts)


@settings(deadline=None, max_examples=60)
@given(curves, st.data())
def test_loss_is_never_positive_nor_benefit_negative(accumulated: np.ndarray, data: st.DataObject) -> None:
    due = data.draw(arrays(np.float64, accumulated.shape, elements=amounts))
    rho = fairness_degree(accumulated, due)
    benefit, loss = sharing_benefit_and_loss(rho)
    assert (rho >= 0).all()
    assert (benefit >= 0).all()
    assert (loss <= 0).all()
    assert (loss >= -rho.shape[1]).all()
    assert benefit + loss == pytest.approx((rho - 1).sum(axis=1), rel=1e-9, abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 100), st.lists(st.floats(0, 200), min_size=3, max_size=3)), min_size=1, max_size=8
    )
)
def test_a_static_partition_in_a_fluid_model_has_neither_benefit_nor_loss(
    spans: list[tuple[float, list[float]]],
) -> None:
    """LTYARN section 4.2: alone, g_i = min(d_i, S_i) at every time, so rho = 1 and Psi = Omega = 0."""
    share = 50.0
    accumulated, due = np.zeros(3), np.zeros(3)
    for length, demand in spans:
        got = np.minimum(demand, share)  # what a static partition hands out
        accumulated += length * got
        due += length * np.minimum(demand, share)
    rho = fairness_degree(accumulated[None], due[None])
    benefit, loss = sharing_benefit_and_loss(rho)
    assert rho.tolist() == [[1, 1, 1]]
    assert (benefit[0], loss[0]) == (0, 0)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-1, 0), min_size=2, max_size=20))
def test_the_integral_is_bounded_by_the_largest_value(values: list[float]) -> None:
    times = list(range(len(values)))
    assert min(values) * times[-1] - 1e-9 <= integral(times, values) <= max(values) * times[-1] + 1e-9
