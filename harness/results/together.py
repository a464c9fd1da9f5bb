"""Compares several runs with several recorded ones: one test for all metrics of all policies.

With some fifty metrics, separate bounds would have to be so wide that a 10 % slower run is within them. This
permutation test reassigns the runs to the two sides and counts how often any metric differs as much; it is exact for
any distribution. docs/decisions/check-power.md reports its power and error rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.base.stats import least_together
from harness.base.stats import together as dealt_anew
from harness.results.baseline import Entry, Spread, held_by_spread
from harness.results.catalogue import Key
from harness.results.runs import RunRecord

#: The probability that unchanged runs raise any alarm in this test, over all metrics of all policies.
ALPHA = 0.005
#: An entry's name and one of its metrics.
Of = tuple[tuple[str, str, str], Key]


@dataclass(frozen=True, slots=True)
class Column:
    """One metric on both sides, run by run; greater is worse."""

    of: Of
    before: Sequence[float]
    after: Sequence[float]


def together(held: Sequence[tuple[Entry, Sequence[RunRecord]]]) -> dict[Of, tuple[float, bool]]:
    """Return (p, alarm or not) for each metric of the entries that this test supports.

    Entries with equal numbers of recorded and of checked runs are permuted together, run by run in the order of seeds,
    because the policies of one seed share its load. Not supported: too few runs to reach a p of ALPHA, baselines
    without the runs' own values, and entries with a margin.
    """
    families: dict[tuple[int, int], list[Column]] = {}
    for entry, runs in held:
        columns = _columns(entry, runs) if entry.margin is None else []
        if columns:
            families.setdefault((len(entry.runs), len(runs)), []).extend(columns)
    able = [size for size in families if least_together(*size) <= ALPHA]
    found: dict[Of, tuple[float, bool]] = {}
    for size in able:
        own, alpha = families[size], ALPHA / len(able)
        if least_together(*size) > alpha:
            continue
        p = dealt_anew(np.array([one.before for one in own]).T, np.array([one.after for one in own]).T)
        found.update({one.of: (value, value <= alpha) for one, value in zip(own, p.tolist(), strict=True)})
    return found


def _columns(entry: Entry, runs: Sequence[RunRecord]) -> list[Column]:
    before = _in_order([(run.get("seed"), run.get("repeat", 1)) for run in entry.runs])
    after = _in_order([(run.seed, run.repeat) for run in runs])
    return [
        _column((entry.name, key), spread, [spread.values[k] for k in before], [runs[k].values[key] for k in after])
        for key, spread in entry.spread.items()
        if held_by_spread(key) and spread.values and all(key in run.values for run in runs)
    ]


def _in_order(seeds: Sequence[tuple[object, object]]) -> list[int]:
    """Return positions in the order of seeds and repeats; runs without a seed keep their order."""
    return sorted(range(len(seeds)), key=lambda k: tuple(x if isinstance(x, int) else -1 for x in seeds[k]))


def _column(of: Of, spread: Spread, before: Sequence[float], after: Sequence[float]) -> Column:
    """Convert to a logarithmic scale if all values have one sign, as for a bound by spread."""
    worse = 1.0 if of[1].metric.better == "lower" else -1.0
    values = np.array([*before, *after])
    if (values > 0).all():
        values = np.log(values)
    elif (values < 0).all():
        values = -np.log(-values)
    scaled = (worse * values).tolist()
    return Column(of, scaled[: len(before)], scaled[len(before) :])
