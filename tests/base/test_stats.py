"""Tests, intervals and corrections against scipy and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from harness.base.stats import (
    adjusted,
    change_points,
    interval_paired,
    interval_unpaired,
    least_change_p,
    least_together,
    level_of_each,
    rank_sum,
    ranks,
    signed_rank,
    together,
)


def test_ranks_share_ties() -> None:
    assert ranks([3, 1, 3, 2]).tolist() == [3.5, 1, 3.5, 2]


@pytest.mark.parametrize("seed", range(5))
def test_the_tests_agree_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0, 1, 6), rng.normal(0.8, 1, 7)
    assert rank_sum(a, b).p == pytest.approx(scipy.stats.mannwhitneyu(a, b, method="exact").pvalue)
    d = rng.normal(0.5, 1, 9)
    assert signed_rank(d).p == pytest.approx(scipy.stats.wilcoxon(d, method="exact").pvalue)


def test_what_is_drawn_is_near_what_is_counted() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 25), rng.normal(0.6, 1, 25)
    drawn = rank_sum(a, b)
    assert drawn.p == pytest.approx(scipy.stats.mannwhitneyu(a, b).pvalue, abs=0.01)
    assert drawn.p == rank_sum(a, b).p, "the same runs give the same answer"


def test_directions_and_least_p() -> None:
    assert rank_sum([1, 2, 3], [4, 5, 6]).sign == 1
    assert rank_sum([1, 2, 3], [4, 5, 6]).p == pytest.approx(0.1)
    assert rank_sum([1, 2, 3], [4, 5, 6]).least_p == pytest.approx(0.1)
    assert signed_rank([-1.0] * 5).p == pytest.approx(2 / 32)
    assert signed_rank([-1.0] * 5).sign == -1
    assert signed_rank([0.0, 0.0]).p == 1


def test_intervals_contain_what_they_should() -> None:
    low, high = interval_paired([1.0, 2.0, 3.0, 4.0, 5.0]) or (0, 0)
    assert 1 <= low <= 3 <= high <= 5
    assert interval_paired([1.0]) is None
    assert interval_unpaired([1.0, 2.0], [1.0]) is None
    hits = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        found = interval_unpaired(rng.normal(0, 1, 30), rng.normal(1, 1, 30))
        assert found is not None
        hits += found[0] <= 1 <= found[1]
    assert hits >= 88, "a 95 % interval of 30 values holds the truth at least nine times of ten"


def test_corrections_by_hand_and_by_scipy() -> None:
    p = [0.01, 0.04, 0.03, 0.5]
    assert adjusted(p, "holm") == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert adjusted(p, "bh") == pytest.approx(scipy.stats.false_discovery_control(p).tolist())
    assert adjusted(p, "none") == p
    assert adjusted([], "bh") == []


def test_change_points_by_construction() -> None:
    rng = np.random.default_rng(1)
    steps = np.concatenate([rng.normal(100, 2, 20), rng.normal(115, 2, 15), rng.normal(100, 2, 15)])
    found = change_points(steps, 0.01)
    assert [abs(point.at - place) <= 1 for point, place in zip(found, (20, 35), strict=True)] == [True, True]
    assert found[0].before == pytest.approx(100, abs=2)
    assert found[0].after == pytest.approx(115, abs=2)


def test_no_change_point_where_nothing_changes() -> None:
    alarms = sum(bool(change_points(np.random.default_rng(seed).normal(0, 1, 30), 0.005)) for seed in range(100))
    assert alarms <= 3
    assert change_points([5.0] * 40, 0.01) == []
    assert change_points([1, 2, 3], 0.01) == []


@pytest.mark.parametrize("metrics", [1, 99, 101, 115, 1000, 100_000])
def test_a_clear_change_is_seen_however_many_metrics_are_held(metrics: int) -> None:
    rng = np.random.default_rng(2)
    half = 10 if metrics < 1000 else 18
    values = np.concatenate([rng.normal(100, 0.01, half), rng.normal(200, 0.01, half)])
    (point,) = change_points(values, 0.005 / metrics)
    assert point.at == half
    assert 0 < point.p <= 0.005 / metrics


def test_the_least_p_of_a_change_is_the_share_of_the_clearest_arrangements() -> None:
    """8 values: 2 of 70 choices of four. With ties fewer arrangements differ. Constant or short: none."""
    assert least_change_p(range(8)) == pytest.approx(2 / 70)
    assert least_change_p([1] * 6 + [2] * 6) == pytest.approx(2 / 924)
    assert least_change_p([0] * 39 + [7]) == pytest.approx(2 / 40)
    assert least_change_p([5] * 40) == least_change_p(range(7)) == 1
    # 16 values: the halves, and their stretches within that leave four on both sides.
    choices = [set(chosen) for chosen in itertools.combinations(range(16), 8)]
    clearest = [set(range(8)), set(range(8, 16)), set(range(4, 12)), {*range(4), *range(12, 16)}]
    assert least_change_p(range(16)) == pytest.approx(sum(chosen in clearest for chosen in choices) / len(choices))
    assert change_points(np.repeat([1.0, 2.0], 8) + 0.01 * np.arange(16), 1.001 * least_change_p(range(16)))
    assert not change_points(np.repeat([1.0, 2.0], 8) + 0.01 * np.arange(16), 0.999 * least_change_p(range(16)))


def test_tests_that_cannot_err_do_not_count() -> None:
    assert level_of_each([1e-6] * 10, 0.01) == pytest.approx(0.001)
    assert level_of_each([1e-6] * 10 + [1.0] * 500 + [0.03] * 40, 0.01) == pytest.approx(0.001)
    assert level_of_each([0.5, 1.0], 0.01) == 0.01
    assert level_of_each([], 0.01) == 0.01
    level = level_of_each([4e-5] * 400, 0.01)
    assert level < 4e-5, "none can reach what so many of them need"


# --- many metrics at once ---------------------------------------------------------------------------------------------


def test_many_metrics_together_by_hand() -> None:
    """Every way to deal the rows anew, gone through one by one."""
    rng = np.random.default_rng(5)
    before, after = rng.normal(0, 1, (4, 3)), rng.normal([0, 1.5, -1], 1, (3, 3))
    rows = np.concatenate([before, after])

    def difference(chosen: tuple[int, ...]) -> np.ndarray:
        rest = [k for k in range(7) if k not in chosen]
        return (rows[list(chosen)].mean(axis=0) - rows[rest].mean(axis=0)) / rows.std(axis=0)

    seen = difference((4, 5, 6))
    greatest = [difference(chosen).max() for chosen in itertools.combinations(range(7), 3)]
    expected = [np.mean([one >= own - 1e-9 for one in greatest]) if own > 0 else 1.0 for own in seen]
    assert together(before, after).tolist() == pytest.approx(expected)
    assert least_together(4, 3) == pytest.approx(1 / 35)


def test_one_metric_alone_has_the_p_of_scipys_permutation_test() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(0, 1, 6), rng.normal(0.8, 1, 5)
    known = scipy.stats.permutation_test(
        (b, a), lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), alternative="greater",
        vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    assert together(a[:, None], b[:, None])[0] == pytest.approx(known.pvalue)


def test_columns_without_a_difference_say_nothing() -> None:
    before, after = np.array([[7.0, 1.0], [7.0, 2.0]]), np.array([[7.0, 5.0], [7.0, 6.0]])
    assert together(before, after).tolist() == [1.0, pytest.approx(1 / 6)]
    assert together(np.full((2, 1), 1e300), np.full((2, 1), 1e300)).tolist() == [1.0]
    assert together(np.zeros((2, 0)), np.zeros((2, 0))).tolist() == []


def test_many_runs_are_dealt_by_drawing() -> None:
    rng = np.random.default_rng(8)
    before, after = rng.normal(0, 1, (15, 2)), rng.normal([0.0, 3.0], 1, (15, 2))
    p = together(before, after)
    assert p[1] == least_together(15, 15) < 1e-4
    assert p[0] > 0.05
    assert together(before, after).tolist() == p.tolist()


def test_all_metrics_together_err_as_seldom_as_said() -> None:
    """Heavy tails, and metrics that hang together: at a level of 5 % some 40 of 800 unchanged pairs are taken for
    changed, at most 58 (three standard deviations)."""
    rng = np.random.default_rng(9)
    mixed = rng.normal(size=(6, 6))
    wrong = 0
    for _ in range(800):
        rows = np.exp(rng.standard_t(3, size=(8, 6)) @ mixed * 0.3)
        wrong += bool((together(rows[:4], rows[4:]) <= 0.05).any())
    assert 10 < wrong < 58


def test_intervals_are_those_of_scipys_bootstrap_to_the_last_bit() -> None:
    random = np.random.default_rng(7)
    for count, other in ((2, 3), (3, 12), (12, 2), (13, 30), (50, 7)):
        for digits in (None, 1, 0):  # with ties, and with few values at all
            a, b = random.normal(size=count), random.normal(1.0, size=other)
            a, b = (a, b) if digits is None else (np.round(a, digits), np.round(b, digits))
            told = {"n_resamples": 4000, "confidence_level": 0.95, "method": "percentile"}
            paired = scipy.stats.bootstrap(
                (a,), np.median, rng=np.random.default_rng(20_161), **told
            ).confidence_interval
            assert interval_paired(a) == (paired.low, paired.high)
            apart = scipy.stats.bootstrap(
                (a, b),
                lambda x, y, axis: np.median(y, axis=axis) - np.median(x, axis=axis),
                rng=np.random.default_rng(20_161),
                **told,
            ).confidence_interval
            assert interval_unpaired(a, b) == (apart.low, apart.high)
    assert interval_paired([2.0, 2.0, 2.0]) == (2.0, 2.0)
