"""Statistics of repeated runs: intervals, permutation tests on ranks, correction for many tests.

scipy is used where it computes the same. The rank tests are our own, because scipy's exact ones do not support ties,
and its permutation test doubles the smaller tail, which differs if ties make the rank sums asymmetric.

Everything is deterministic: random numbers come from a generator with a fixed seed, so the same runs give the same
result.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Correction = Literal["bh", "holm", "none"]

#: Up to this number all arrangements are enumerated; beyond it this many are drawn.
ARRANGEMENTS = 20_000
RESAMPLES = 4_000
_SEED = 20_161


@dataclass(frozen=True, slots=True)
class Test:
    """A two-sided test: its name, p, the smallest p that this number of values can give, and the observed direction."""

    name: str
    p: float
    least_p: float
    sign: int


def half_width_95(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of the mean of independent normal values (Student's t); 0 for one value."""
    count = len(values)
    if count < 2:
        return 0.0
    from scipy.stats import t

    return float(t.isf(0.025, count - 1)) * statistics.stdev(values) / math.sqrt(count)


def means_and_half_widths_95(rows: Floats) -> tuple[Floats, Floats]:
    """Return the mean of each column, and half of its 95 % interval.

    Parameters
    ----------
    rows
        Independent values, one per row: at least two rows by any number of columns. NaN in a column makes both of its
        results NaN.

    Returns
    -------
    tuple
        Means and half widths (Student's t, as `half_width_95`), one per column.
    """
    from scipy.stats import t

    count = len(rows)
    return rows.mean(axis=0), float(t.isf(0.025, count - 1)) * rows.std(axis=0, ddof=1) / math.sqrt(count)


def ranks(values: ArrayLike) -> Floats:
    """Return ranks from 1; equal values share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(np.asarray(values, dtype=np.float64)), dtype=np.float64)


def _p(sums: Floats, seen: float, drawn: bool) -> float:
    extreme = int((np.abs(sums) >= abs(seen) - 1e-9).sum())
    # The observed arrangement counts among the drawn ones, so that p is never 0.
    return (extreme + 1) / (len(sums) + 1) if drawn else extreme / len(sums)


def signed_rank(differences: ArrayLike) -> Test:
    """Wilcoxon's signed-rank test as a permutation test over the signs of paired differences; zeros are left out."""
    d = np.asarray(differences, dtype=np.float64)
    d = d[d != 0]
    name = "signed ranks"
    if len(d) == 0:
        return Test(name, 1.0, 1.0, 0)
    r = ranks(np.abs(d))
    seen = float((np.sign(d) * r).sum())
    all_of = 2 ** len(d)
    if all_of <= ARRANGEMENTS:
        signs = 1.0 - 2.0 * ((np.arange(all_of)[:, None] >> np.arange(len(d))) & 1)
    else:
        signs = _signs(len(d))
    drawn = all_of > ARRANGEMENTS
    least = 1 / (ARRANGEMENTS + 1) if drawn else 2 / all_of
    return Test(name, _p(signs @ r, seen, drawn), min(1.0, least), int(np.sign(seen)))


def rank_sum(reference: ArrayLike, contender: ArrayLike) -> Test:
    """The Mann-Whitney test as a permutation test over the assignment to groups; ties share ranks."""
    a, b = np.asarray(reference, dtype=np.float64), np.asarray(contender, dtype=np.float64)
    name = "rank sums"
    if len(a) == 0 or len(b) == 0:
        return Test(name, 1.0, 1.0, 0)
    r = ranks(np.concatenate([a, b]))
    count, own = len(r), len(b)
    centre = own * (count + 1) / 2
    seen = float(r[len(a) :].sum()) - centre
    all_of = math.comb(count, own)
    drawn = all_of > ARRANGEMENTS
    sums = r[_dealt(count, own) if drawn else _choices(count, own)].sum(axis=1)
    least = 1 / (ARRANGEMENTS + 1) if drawn else min(1.0, 2 / all_of)
    return Test(name, _p(sums - centre, seen, drawn), least, int(np.sign(seen)))


@lru_cache(maxsize=1)
def _signs(count: int) -> Floats:
    """Return `ARRANGEMENTS` random sign vectors, one per row, the same for every metric of a contest."""
    return np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(ARRANGEMENTS, count))


@lru_cache(maxsize=8)
def _choices(count: int, own: int) -> NDArray[np.int64]:
    """Return every choice of `own` of `count` positions, one per row. Every metric of a contest asks for the same."""
    return np.array(list(itertools.combinations(range(count), own)), dtype=np.int64)


@lru_cache(maxsize=2)
def _dealt(count: int, own: int) -> NDArray[np.uint32]:
    """Return `ARRANGEMENTS` random choices of `own` of `count` positions, one per row, the same for all metrics."""
    rng = np.random.default_rng(_SEED)
    return np.array([rng.permutation(count)[:own] for _ in range(ARRANGEMENTS)], dtype=np.uint32)


def least_together(before: int, after: int) -> float:
    """Return the smallest p that `together` can give for this number of runs."""
    all_of = math.comb(before + after, after)
    return 1 / (ARRANGEMENTS + 1) if all_of > ARRANGEMENTS else 1 / all_of


def together(before: Floats, after: Floats) -> Floats:
    """Test many metrics of repeated runs at once; return p of each column.

    One-sided: p is small if `after` (k runs by m metrics) is above `before` (n by m). Whole rows are permuted between
    the sides, so metrics stay together; a column's p is the frequency with which the largest difference of all columns
    (in standard deviations of the column) is at least the column's own. So the probability that any column of two
    unchanged sides has p <= alpha is at most alpha, for any dependence and any distribution of the metrics (Westfall
    and Young, Resampling-Based Multiple Testing, 1993: single-step maxT). Columns without any difference have p = 1.
    """
    rows = np.concatenate([before, after])
    count, own = len(rows), len(after)
    away = rows - rows.mean(axis=0)
    size = np.sqrt((away**2).sum(axis=0))
    varies = size > 1e-12 * np.abs(rows).max(axis=0, initial=0.0)
    away = np.divide(away, size, out=np.zeros_like(away), where=varies)
    drawn = math.comb(count, own) > ARRANGEMENTS
    if drawn:
        rng = np.random.default_rng(_SEED)
        chosen = np.argsort(rng.random((ARRANGEMENTS, count)), axis=1)[:, :own]
    else:
        chosen = _choices(count, own)
    sides = np.zeros((len(chosen), count))
    np.put_along_axis(sides, chosen, 1.0, axis=1)
    greatest = np.sort((sides @ away).max(axis=1, initial=0.0))
    seen = away[len(before) :].sum(axis=0)
    extreme = len(greatest) - np.searchsorted(greatest, seen - 1e-9)
    p = (extreme + drawn) / (len(greatest) + drawn)
    return np.where(varies & (seen > 0), p, 1.0)


@lru_cache(maxsize=2)
def _resamples(*counts: int) -> tuple[NDArray[np.int64], ...]:
    """Return the resampling indices that `scipy.stats.bootstrap` would draw for samples of these sizes.

    They depend only on the sizes, so all metrics of a comparison share them.
    """
    rng = np.random.default_rng(_SEED)
    return tuple(rng.integers(0, count, (RESAMPLES, count)) for count in counts)


def _medians(sample: Floats, drawn: NDArray[np.int64]) -> Floats:
    """Return the median of each resample, given as rows of positions in the sample.

    Partitions the ranks, which are short integers, in place of the values: that is several times faster.
    """
    order = np.argsort(sample, kind="stable")
    rank = np.empty(len(sample), dtype=np.uint16 if len(sample) <= 2**16 else np.uint32)
    rank[order] = np.arange(len(sample), dtype=rank.dtype)
    middle = (len(sample) - 1) // 2, len(sample) // 2
    parted = np.partition(rank[drawn], sorted(set(middle)), axis=1)
    low, high = (sample[order[parted[:, at]]] for at in middle)
    return low if middle[0] == middle[1] else (low + high) / 2


def _interval(sample: Floats, medians: Floats, confidence: float) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a statistic, given its values for all resamples."""
    from scipy.stats import bootstrap

    found = bootstrap(  # type: ignore[call-overload]  # scipy takes whatever has such a distribution
        (sample,),
        np.median,
        n_resamples=0,
        confidence_level=confidence,
        method="percentile",
        bootstrap_result=SimpleNamespace(bootstrap_distribution=medians),
    ).confidence_interval
    return float(found.low), float(found.high)


def interval_paired(differences: ArrayLike, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the percentile bootstrap interval of the median of paired differences; None for fewer than two pairs."""
    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2:
        return None
    if (d == d[0]).all():
        return float(d[0]), float(d[0])
    return _interval(d, _medians(d, _resamples(len(d))[0]), confidence)


def interval_unpaired(
    reference: ArrayLike, contender: ArrayLike, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Return the percentile bootstrap interval of the difference of two medians.

    None if a group has fewer than two values.
    """
    a, b = np.asarray(reference, dtype=np.float64), np.asarray(contender, dtype=np.float64)
    if len(a) < 2 or len(b) < 2:
        return None
    of_a, of_b = _resamples(len(a), len(b))
    return _interval(a, _medians(b, of_b) - _medians(a, of_a), confidence)


def adjusted(p: Sequence[float], correction: Correction = "bh") -> list[float]:
    """Return p-values corrected for multiple tests.

    Benjamini-Hochberg (``bh``, false discovery rate) or Holm (any error).
    """
    count = len(p)
    if correction == "none" or count == 0:
        return list(p)
    if correction == "holm":
        order = sorted(range(count), key=lambda at: p[at])
        out = [1.0] * count
        running = 0.0
        for place, at in enumerate(order):
            running = max(running, min(1.0, (count - place) * p[at]))
            out[at] = running
        return out
    from scipy.stats import false_discovery_control

    return [float(one) for one in false_discovery_control(p)]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A lasting change within a series: position of its first value, the medians before and after, p."""

    at: int
    before: float
    after: float
    p: float


#: Maximum number of values that are searched for changes: the latest.
LONGEST = 120
#: Minimum number of values on both sides of a change.
SHORTEST = 4


def change_points(values: ArrayLike, alpha: float, shortest: int = SHORTEST) -> list[ChangePoint]:
    """Return the positions where the level of a series changes, by circular binary segmentation over ranks.

    In each segment, the stretch is searched whose ranks differ most from the rest (normalised by the chance variation
    for its length). It is accepted if fewer than `alpha` of the segment's permutations have one at least as clear; both
    of its ends are then cuts. A cut leaves `shortest` values on both sides. Only the latest LONGEST values are used;
    positions count from the first given value.
    """
    given = np.asarray(values, dtype=np.float64)
    skipped = max(0, len(given) - LONGEST)
    found = given[skipped:]
    cuts: dict[int, float] = {}
    waiting = [(0, len(found))]
    while waiting:
        low, high = waiting.pop()
        cut = _stretch(found[low:high], alpha, shortest)
        if cut is not None:
            edges = [low + at for at in cut[0] if 0 < at < high - low]
            cuts.update(dict.fromkeys(edges, cut[1]))
            bounds = [low, *edges, high]
            waiting += list(itertools.pairwise(bounds))
    places = sorted(cuts)
    edges = [0, *places, len(found)]
    return [
        ChangePoint(
            skipped + at,
            float(np.median(found[edges[k] : at])),
            float(np.median(found[at : edges[k + 2]])),
            cuts[at],
        )
        for k, at in enumerate(places)
    ]


def least_change_p(values: ArrayLike, shortest: int = SHORTEST) -> float:
    """Return the smallest possible p of a change of level in a series of this length and number of equal values.

    Returns 1 if no change can be detected at all. With a smaller `alpha`, `change_points` finds nothing.
    """
    given = np.asarray(values, dtype=np.float64)[-LONGEST:]
    n = len(given)
    if n < 2 * shortest or (given == given[0]).all():
        return 1.0
    # The clearest arrangement has the lower half on one side of a cut, and there are as many of these as stretches.
    i, j = _stretches(n, shortest)
    halves = int(np.isin(j - i, (n // 2, n - n // 2)).sum())
    alike = np.unique(given, return_counts=True)[1]
    arrangements = math.lgamma(n + 1) - sum(math.lgamma(count + 1) for count in alike.tolist())
    return min(1.0, max(2 * halves / math.comb(n, n // 2), 2 * math.exp(-arrangements)))


def level_of_each(least: Sequence[float], alpha: float) -> float:
    """Return the level for each of several tests with given smallest possible p, so that their joint error is `alpha`.

    Tarone's correction: tests that cannot reach the level (least p above it) are not counted, because they cannot err.
    """
    count = 1
    while sum(p <= alpha / count for p in least) > count:
        count += 1
    return alpha / count


@lru_cache(maxsize=64)
def _stretches(n: int, shortest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all stretches [i, j) of n values that leave no piece shorter than `shortest`."""
    i, j = np.triu_indices(n + 1, k=shortest)
    # A stretch that ends at n is left out, because its complement, which begins at 0, gives the same two pieces.
    able = ((i == 0) | (i >= shortest)) & (n - j >= shortest)
    return i[able], j[able]


def _clearest(r: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Return, for each row of ranks, the largest normalised difference of a stretch, and this stretch."""
    n = r.shape[1]
    sums = np.zeros((len(r), n + 1))
    np.cumsum(r - (n + 1) / 2, axis=1, out=sums[:, 1:])
    length = j - i
    z = np.abs(sums[:, j] - sums[:, i]) / np.sqrt(length * (n - length) * (n + 1) / 12.0)
    best = z.argmax(axis=1)
    return z[np.arange(len(z)), best], best


@lru_cache(maxsize=4)
def _sums(doubled: tuple[int, ...]) -> Floats:
    """Count the ways in which k of some doubled ranks (integers) add up to s: [k, s], for k up to half of them."""
    most = len(doubled) // 2
    ways = np.zeros((most + 1, sum(sorted(doubled)[len(doubled) - most :]) + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        ways[1:, rank:] = ways[1:, rank:] + ways[:-1, : ways.shape[1] - rank]
    return ways


def _chance(own: Floats, seen: float, i: NDArray[np.int64], j: NDArray[np.int64]) -> float:
    """Return an upper bound of the probability that any stretch of permuted ranks is as clear as `seen`.

    It is the sum of the stretches' exact probabilities, from the rank sums of all choices of each length. Unlike drawn
    permutations it has no smallest value, and for small probabilities it is almost exact.
    """
    n = len(own)
    ways = _sums(tuple(sorted(round(2 * rank) for rank in own.tolist())))
    sums = np.arange(ways.shape[1])
    of_length = np.bincount(np.minimum(j - i, n - (j - i)), minlength=n // 2 + 1)
    chance = 0.0
    for length in np.flatnonzero(of_length).tolist():
        # A stretch and its complement deviate equally.
        away = seen * math.sqrt(length * (n - length) * (n + 1) / 12.0)
        far = np.abs(sums / 2 - length * (n + 1) / 2) >= away - 1e-9
        chance += float(of_length[length]) * float(ways[length, far].sum()) / math.comb(n, length)
    return min(1.0, chance)


def _stretch(values: Floats, alpha: float, shortest: int) -> tuple[tuple[int, int], float] | None:
    n = len(values)
    if n < 2 * shortest or (values == values[0]).all():
        return None
    i, j = _stretches(n, shortest)
    own = ranks(values)
    seen, which = _clearest(own[None, :], i, j)
    found = (int(i[which[0]]), int(j[which[0]]))
    rng = np.random.default_rng(_SEED)
    # Enough permutations to detect p below alpha; drawn in parts, because most series need few.
    most, at_once = min(ARRANGEMENTS, max(999, math.ceil(10 / alpha))), 200
    extreme = drawn = 0
    while drawn < most:
        shuffled = rng.permuted(np.broadcast_to(own, (at_once, n)), axis=1)
        extreme += int((_clearest(shuffled, i, j)[0] >= seen[0] - 1e-9).sum())
        drawn += at_once
        if extreme > 10 + alpha * most:
            return None
        if drawn == at_once:
            # A clear case needs no more permutations; p below their resolution is decided by the bound.
            chance = _chance(own, float(seen[0]), i, j)
            if chance <= alpha:
                return found, chance
            if (most + 1) * alpha < 1:
                return None
    p = (extreme + 1) / (drawn + 1)
    return (found, p) if p <= alpha else None
