"""What is drawn is what was measured: averages keep areas, thinning keeps its tolerance, ticks are round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.curves import Curve, bucket_means, longest_true_s, steps, thin
from harness.report.svg import BarChart, bar_chart, log_ticks, nice_ticks, number

values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=200)


@settings(deadline=None, max_examples=60)
@given(values, st.integers(1, 50))
def test_bucket_means_keep_the_area(samples: list[float], buckets: int) -> None:
    time_s = np.arange(len(samples), dtype=np.float64)
    value = np.array(samples)
    curve, width = bucket_means(time_s, value, buckets)
    if width:
        assert len(curve.x) == buckets
        area = float((value[:-1] * np.diff(time_s)).sum())
        assert float(curve.y.sum() * width) == pytest.approx(area, rel=1e-6, abs=1e-3)
    else:
        assert np.array_equal(curve.y, value)


@settings(deadline=None, max_examples=60)
@given(values, st.floats(0.01, 1e5))
def test_thinning_stays_within_its_tolerance(samples: list[float], tolerance: float) -> None:
    curve = Curve(np.arange(len(samples), dtype=np.float64), np.array(samples))
    few = thin(curve, tolerance=tolerance)
    assert len(few.x) <= len(curve.x)
    assert few.x[0] == curve.x[0]
    assert few.x[-1] == curve.x[-1]
    again = np.interp(curve.x, few.x, few.y)
    assert float(np.abs(again - curve.y).max()) <= tolerance * (1 + 1e-9) + 1e-9


def test_thinning_keeps_gaps() -> None:
    y = np.array([1.0, 1.0, 1.0, np.nan, 2.0, 2.0, 2.0])
    few = thin(Curve(np.arange(7.0), y), tolerance=0.1)
    assert few.x.tolist() == [0, 2, 3, 4, 6]
    assert np.isnan(few.y[2])


def test_steps_have_both_corners() -> None:
    curve = steps(np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.0, 5.0, 7.0, 7.0]), 4.0)
    assert curve.x.tolist() == [0, 2, 2, 4]
    assert curve.y.tolist() == [5, 5, 7, 7]


def test_the_longest_span_counts_until_the_next_sample() -> None:
    time_s = np.array([0.0, 1.0, 2.0, 5.0, 6.0])
    assert longest_true_s(time_s, np.array([True, False, True, False, True])) == (3.0, 2.0, 5.0)
    assert longest_true_s(time_s, np.zeros(5, dtype=bool)) == (0.0, 0.0, 0.0)
    assert longest_true_s(time_s, np.ones(5, dtype=bool)) == (6.0, 0.0, 6.0)


@settings(deadline=None, max_examples=100)
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_lie_inside_and_are_few(low: float, span: float) -> None:
    span = max(span, 1e-8 * abs(low))  # needed_y_range never asks for less
    ticks = nice_ticks(low, low + span)
    assert len(ticks) <= 8
    assert all(low - span * 1e-6 <= tick <= low + span * (1 + 1e-6) for tick in ticks)


@settings(deadline=None, max_examples=100)
@given(st.floats(1e-6, 1e6), st.floats(1.7, 1e9))
def test_logarithmic_ticks_lie_inside_and_are_few(low: float, ratio: float) -> None:
    ticks = log_ticks(low, low * ratio)
    assert len(ticks) <= 9
    assert all(low * 0.99 <= tick <= low * ratio * 1.01 for tick in ticks)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.25, "0.25"), (-1.5, "\u22121.5"), (12000, "12,000"), (2.5e7, "2.5e7")]
)
def test_numbers_on_axes_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_the_values_of_bars_have_the_separators_of_the_axis() -> None:
    """An axis said 1,500, a bar beside it 1300."""
    chart = BarChart("completion", "seconds", ["a"], ["now"], [[1299.8]], digits=0, half_widths=[[1000.4]])
    drawn = bar_chart(chart, "bars")
    assert "a, now: 1,300 \u00b1 1,000" in drawn
    assert ">1,300</text>" in drawn
