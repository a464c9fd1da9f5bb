"""Task durations: portable arithmetic, distributions, and independence of the order of drawing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from harness.sim.durations import (
    EMPIRICAL,
    EXPONENTIAL,
    LOGNORMAL,
    UNIFORM,
    draw_ms,
    exp_portable,
    job_key,
    log_portable,
    normal_quantile,
    unit,
    whole_ms,
)

NONE = np.zeros(1)


def test_normal_quantile_is_that_of_the_library() -> None:
    for p in [*np.linspace(1e-9, 1 - 1e-9, 501), *(10.0 ** -np.arange(2, 16))]:
        assert normal_quantile(p) == pytest.approx(special.ndtri(p), rel=2e-15, abs=2e-15)


def test_exp_and_log() -> None:
    for x in np.linspace(-40, 40, 401):
        assert exp_portable(x) == pytest.approx(math.exp(x), rel=1e-15)
        assert log_portable(math.exp(x)) == pytest.approx(x, rel=1e-14, abs=1e-15)
    assert exp_portable(800.0) == math.inf
    assert exp_portable(-800.0) == 0.0


@pytest.mark.parametrize(
    ("kind", "a", "b", "reference"),
    [
        (LOGNORMAL, 2.0, 0.6, stats.lognorm(0.6, scale=math.exp(2.0))),
        (EXPONENTIAL, 20.0, 0.0, stats.expon(scale=20.0)),
        (UNIFORM, 3.0, 9.0, stats.uniform(3.0, 6.0)),
    ],
)
def test_draws_follow_their_distribution(kind: int, a: float, b: float, reference: stats.rv_frozen) -> None:
    key = job_key(7, "job")
    seconds = [draw_ms(unit(key, 0, task, 0, 0), kind, a, b, NONE, 0, 0) / 1000 for task in range(3000)]
    assert stats.kstest(seconds, reference.cdf).pvalue > 0.001


def test_empirical_takes_each_value_alike() -> None:
    values = np.array([1.0, 2.0, 4.0])
    key = job_key(1, "e")
    drawn = [draw_ms(unit(key, 0, task, 0, 0), EMPIRICAL, 0, 0, values, 0, 3) for task in range(3000)]
    counts = [drawn.count(v * 1000) for v in values]
    assert sum(counts) == 3000
    assert stats.chisquare(counts).pvalue > 0.001


def test_streams_are_independent_and_depend_on_seed_and_job() -> None:
    key = job_key(1, "a")
    base = np.array([unit(key, 0, t, 0, 0) for t in range(2000)])
    for other in (
        [unit(key, 1, t, 0, 0) for t in range(2000)],
        [unit(key, 0, t, 1, 0) for t in range(2000)],
        [unit(key, 0, t, 0, 1) for t in range(2000)],
        [unit(job_key(2, "a"), 0, t, 0, 0) for t in range(2000)],
        [unit(job_key(1, "b"), 0, t, 0, 0) for t in range(2000)],
        [*base[1:].tolist(), 0.5],
    ):
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.08
    assert stats.kstest(base, "uniform").pvalue > 0.001


def test_known_draws_do_not_change() -> None:
    """The same on every machine and in every version: results are compared byte for byte."""
    key = job_key(42, "job_1")
    assert key == 0x2B4EB859D8ABC56E
    ms = [whole_ms(draw_ms(unit(key, 0, t, 0, 0), LOGNORMAL, 2.9, 0.5, NONE, 0, 0)) for t in range(4)]
    assert ms == [65360, 21180, 20691, 20266]


def test_rounding() -> None:
    assert whole_ms(0.2) == 1
    assert whole_ms(1.5) == 2
    assert whole_ms(math.inf) == 1 << 40
    assert whole_ms(math.nan) == 1 << 40
