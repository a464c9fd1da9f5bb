"""Detects lasting changes of each metric over the runs of a nightly job, and the levels between them. Pure.

`check --history` (harness.results.check) makes alarms from it, `yarnfair trend` (harness.report.trend) a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.base.stats import LONGEST, SHORTEST, ChangePoint, change_points, least_change_p, level_of_each, rank_sum
from harness.base.words import counted
from harness.results.baseline import floor, held_by_spread, spread_of
from harness.results.catalogue import Key, in_order
from harness.results.compare import amount_text
from harness.results.runs import RunRecord, without_copies

#: The probability that a history without any change raises an alarm, over all metrics.
HISTORY_ALPHA = 0.005

#: The outcome of a history. ``worse``, ``better``: its last level differs relevantly from the best earlier one.
#: ``changed``: there was a change, but it was undone or is too small. ``same``: there was no change.
Word = Literal["worse", "better", "changed", "same", "too few runs"]
WORDS: tuple[Word, ...] = ("worse", "better", "changed", "too few runs", "same")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Runs in a row without a lasting change between them.

    Attributes
    ----------
    first, end : int
        Its runs are ``runs[first:end]`` of the history.
    median, least, greatest : float
        Statistics of their values, in the metric's unit.
    """

    first: int
    end: int
    median: float
    least: float
    greatest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One metric over the runs of one experiment, policy and backend.

    Attributes
    ----------
    series : tuple of RunRecord
        All valid runs, oldest first by their start.
    runs : tuple of RunRecord
        The runs with the metric, in the same order; at most the latest ``LONGEST``.
    length : int
        Number of runs with the metric.
    levels : tuple of Level
        The levels in order of time; one if nothing has changed.
    changes : tuple of ChangePoint
        The boundaries between levels.
    word : str
        The outcome (`Word`).
    best : float
        The median of the best level before the last one; of all runs if there is only one level.
    words : str
        A description in one clause.
    """

    experiment: str
    variant: str
    backend: str
    key: Key
    series: tuple[RunRecord, ...]
    runs: tuple[RunRecord, ...]
    length: int
    levels: tuple[Level, ...]
    changes: tuple[ChangePoint, ...]
    word: Word
    best: float
    words: str

    @property
    def values(self) -> list[float]:
        """Return the metric's value in each run."""
        return [run.values[self.key] for run in self.runs]

    @property
    def name(self) -> tuple[str, str, str]:
        """Return the experiment, the policy and the backend."""
        return self.experiment, self.variant, self.backend


def histories(runs: Iterable[RunRecord]) -> tuple[list[History], list[str]]:
    """Find the lasting changes of each metric.

    Parameters
    ----------
    runs : iterable of RunRecord
        Invalid runs and copies of runs are left out. Runs of one experiment (by hash), policy and backend form one
        history. An experiment that was replaced by later runs of its name is left out, too: its last level never
        changes, so its alarm could never end.

    Returns
    -------
    list of History
        One history for each metric with a bound by spread (`held_by_spread`).
    list of str
        Remarks for the reader.
    """
    series: dict[_Of, list[RunRecord]] = {}
    left_out = 0
    runs, copies = without_copies(runs)
    for run in runs:
        if run.invalid() is None:
            series.setdefault(_Of(run.experiment, run.variant, run.backend, run.hash), []).append(run)
        else:
            left_out += 1
    remarks = [f"{left_out} run(s) that do not count are left out"] if left_out else []
    for own in series.values():
        own.sort(key=lambda run: (run.start, str(run.path)))
    series, replaced = _without_replaced(series)
    remarks = [*_several_experiments(series), *replaced, *remarks, *(copy.remark for copy in copies)]
    tracks: list[_Track] = []
    for name, own in series.items():
        keys = in_order(key for run in own for key in run.values if held_by_spread(key))
        if not keys:
            remarks.append(f"{_named(name)}: {counted(len(own), 'run')} without any metric that has a history")
        ended = []
        for key in keys:
            having = [run for run in own if key in run.values]
            least = least_change_p([run.values[key] for run in having])
            tracks.append(_Track(_Series(name, tuple(own)), key, having, least))
            if having[-1] is not own[-1]:
                ended.append(f"{key.title()} (last in {_place(having[-1])})")
        if ended:
            more = f" and {len(ended) - 5} more" if len(ended) > 5 else ""
            remarks.append(f"{_named(name)}: the latest run does not have {', '.join(ended[:5])}{more}")
    # As in a check: all metrics together, each on its own side (a change to the better is no alarm).
    alpha = level_of_each([one.least_p for one in tracks], 2 * HISTORY_ALPHA)
    varying = sum(one.least_p < 1 for one in tracks)
    found = [
        _changing(one.series, one.key, one.runs, alpha)
        if one.least_p <= alpha
        else _unseen(one.series, one.key, one.runs, varying)
        for one in tracks
    ]
    return found, remarks


@dataclass(frozen=True, slots=True)
class _Of:
    """What the runs of one history have in common: names and the experiment's hash."""

    experiment: str
    variant: str
    backend: str
    hash: str

    @property
    def names(self) -> tuple[str, str, str]:
        """The experiment, the policy and the backend, whatever the experiment's hash is."""
        return self.experiment, self.variant, self.backend


@dataclass(frozen=True, slots=True)
class _Track:
    """One metric of a series: the runs that have it, oldest first, and the least p that a change in it can have."""

    series: _Series
    key: Key
    runs: Sequence[RunRecord]
    least_p: float


@dataclass(frozen=True, slots=True)
class _Series:
    """The runs of one experiment, policy and backend, oldest first."""

    name: _Of
    runs: tuple[RunRecord, ...]


def _named(name: _Of) -> str:
    return f"{name.experiment}, {name.variant}" + ("" if name.backend == "sim" else f" on {name.backend}")


def _place(run: RunRecord) -> str:
    return f"{run.path.parent.name}/{run.path.name}"


def _without_replaced(series: Mapping[_Of, list[RunRecord]]) -> tuple[dict[_Of, list[RunRecord]], list[str]]:
    """Leave out, with a remark, experiments whose last run started before the first run of another one of that name.

    Experiments of one name that alternate, such as those of a nightly sweep, all stay. So do runs with an unknown
    start.
    """
    kept: dict[_Of, list[RunRecord]] = {}
    remarks = []
    for name, own in series.items():
        last = own[-1].start
        others = [runs for other, runs in series.items() if other.names == name.names and other != name]
        if last and any(last < runs[0].start for runs in others):
            remarks.append(
                f"{_named(name)}: {counted(len(own), 'run')} up to {last[:10]} (of hash {name.hash[:12] or 'unknown'}) "
                "are left out: later runs of that name are of another experiment"
            )
        else:
            kept[name] = own
    return kept, remarks


def _several_experiments(series: Mapping[_Of, object]) -> list[str]:
    versions: dict[str, set[str]] = {}
    for name in series:
        versions.setdefault(name.experiment, set()).add(name.hash)
    return [
        f"the runs of {experiment} are of {len(hashes)} different experiments of that name "
        f"({', '.join(sorted(digest[:12] or 'no hash' for digest in hashes))}): each has a history of its own"
        for experiment, hashes in versions.items()
        if len(hashes) > 1
    ]


def _levels(values: Sequence[float], changes: Sequence[ChangePoint]) -> tuple[Level, ...]:
    edges = [0, *(change.at for change in changes), len(values)]
    return tuple(
        Level(
            first=first,
            end=end,
            median=median(values[first:end]),
            least=min(values[first:end]),
            greatest=max(values[first:end]),
        )
        for first, end in pairwise(edges)
    )


def _history(
    of: _Series,
    key: Key,
    runs: Sequence[RunRecord],
    word: Word,
    words: str,
    *,
    changes: Sequence[ChangePoint] = (),
    best: float | None = None,
    length: int,
) -> History:
    values = [run.values[key] for run in runs]
    return History(
        experiment=of.name.experiment,
        variant=of.name.variant,
        backend=of.name.backend,
        key=key,
        series=of.runs,
        runs=tuple(runs),
        length=length,
        levels=_levels(values, changes),
        changes=tuple(changes),
        word=word,
        best=median(values) if best is None else best,
        words=words,
    )


def _unseen(of: _Series, key: Key, runs: Sequence[RunRecord], varying: int) -> History:
    """Return a history in which no change could be detected: it is constant, or too short for this many metrics."""
    values = [run.values[key] for run in runs]
    word: Word = "too few runs"
    words = "too short to see a change"
    if len(values) >= 2 * SHORTEST:
        words += f" of one metric among {varying}"
        if min(values) == max(values):
            word, words = "same", "the same in every run"
    return _history(of, key, runs[-LONGEST:], word, words, length=len(runs), best=median(values))


def _changing(of: _Series, key: Key, runs: Sequence[RunRecord], alpha: float) -> History:
    length, runs = len(runs), runs[-LONGEST:]
    values = np.array([run.values[key] for run in runs])
    points = change_points(values, alpha)
    if not points:
        return _history(of, key, runs, "same", "no lasting change", length=length)
    metric = key.metric
    told = []
    for point in points:
        at = runs[point.at]
        told.append(
            f"from {amount_text(point.before, metric)} to {amount_text(point.after, metric)} with "
            f"{_place(at)} ({at.start[:10] or 'no date'}{f', commit {at.commit}' if at.commit else ''})"
        )
    *earlier, now = np.split(values, [point.at for point in points])
    best = (min if metric.better == "lower" else max)(earlier, key=lambda level: float(np.median(level)))
    worse, tail = _against(key, best, now)
    if worse and best is not earlier[-1]:
        tail = f"; still worse than {amount_text(float(np.median(best)), metric)} before"
    better = not worse and _better(key, best, now)
    return _history(
        of,
        key,
        runs,
        "worse" if worse else "better" if better else "changed",
        f"changed {', then '.join(told)}{tail}",
        changes=points,
        best=float(np.median(best)),
        length=length,
    )


def _against(key: Key, best: NDArray[np.float64], now: NDArray[np.float64]) -> tuple[bool, str]:
    """Return whether a changed series' last level is worse than its best earlier one, and a remark if not.

    The change itself was tested for all metrics together. This only tests whether it was undone, at HISTORY_ALPHA or
    the smallest p that this number of runs can give.
    """
    before, after = float(np.median(best)), float(np.median(now))
    test = rank_sum(best, now)
    if not key.metric.is_worse(after, before) or test.p > max(HISTORY_ALPHA, test.least_p):
        return False, "; not for the worse by now"
    if abs(after - before) < floor(key, spread_of(best.tolist())):
        return False, "; worse, but by less than matters"
    return True, ""


def _better(key: Key, best: NDArray[np.float64], now: NDArray[np.float64]) -> bool:
    """Return whether the last level is relevantly better than every earlier one."""
    before, after = float(np.median(best)), float(np.median(now))
    return bool(key.metric.is_worse(before, after)) and abs(after - before) >= floor(key, spread_of(best.tolist()))
