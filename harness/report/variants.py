"""Groups runs by variant with all seeds: means over seeds, and the selection of variants for a chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.base.stats import half_width_95
from harness.report.curves import Curve, over_seeds
from harness.report.data import Run, Series
from harness.results.catalogue import number
from harness.results.comparison import found_at

#: Curves or bars of more runs could not be distinguished.
MOST_DRAWN = 8
#: Maximum number of variants with curves on a page about several experiments.
MOST_OF_ALL = 24


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant that was run, with all its seeds."""

    name: str
    runs: Sequence[Run]

    def values(self, *keys: str) -> list[float]:
        """Return the numbers at a path of keys in the summaries."""
        found = []
        for run in self.runs:
            value = number_at(run.summary, *keys)
            if value is not None:
                found.append(value)
        return found

    def mean(self, *keys: str) -> float | None:
        """Return the mean over the seeds; None if a run has no number."""
        values = self.values(*keys)
        return math.fsum(values) / len(values) if values and len(values) == len(self.runs) else None

    def setting(self, name: str) -> float | None:
        """Return a setting that is a finite number."""
        return number_at(self.runs[0].settings, name)

    @property
    def first(self) -> Run:
        """Return its first seed's run, for content that is equal in all seeds or shows a single run."""
        return self.runs[0]

    @property
    def leaves(self) -> list[str]:
        """Return the leaves of any of its runs."""
        return list(dict.fromkeys(leaf for run in self.runs for leaf in run.leaves))

    def end_s(self) -> float:
        """Return the time of the last sample, in seconds, of its longest run."""
        return max(run.end_s() for run in self.runs)

    def course(
        self, queue: str, curve_of: Callable[[Run, Series], Curve | None], *, after_end: float | None = None
    ) -> Curve | None:
        """Return a queue's curve over time, over the seeds (`over_seeds`); None if a run has none."""
        found = []
        for run in self.runs:
            series = run.series.get(queue)
            curve = curve_of(run, series) if series is not None and len(series.time_s) else None
            if curve is None:
                return None
            found.append(curve)
        return over_seeds(found, after_end=after_end)


def number_at(summary: Mapping[str, object], *keys: str) -> float | None:
    """Return the finite number at a path of keys."""
    return number(found_at(summary, keys))


def variants_of(runs: Iterable[Run]) -> list[Variant]:
    """Return the variants in the order of the runs; runs without a summary are left out."""
    return grouped(run for run in runs if run.summary)


def grouped(runs: Iterable[Run]) -> list[Variant]:
    """Return the variants of all these runs, in order."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.variant_without_seed(), []).append(run)
    return [Variant(name, own) for name, own in found.items()]


def by_experiment(variants: Sequence[Variant]) -> list[tuple[str, list[Variant]]]:
    """Return the variants of each experiment in order, with an ending for a title: ``: NAME``, or '' for a single one.

    One experiment on two backends is one, since the same load may be compared on them.
    """
    found: dict[tuple[str, str], list[Variant]] = {}
    for one in variants:
        found.setdefault((one.first.experiment, one.first.hash), []).append(one)
    return [(f": {name}" if len(found) > 1 else "", own) for (name, _), own in found.items()]


def drawn_variants(runs: Sequence[Run]) -> tuple[list[Variant], str]:
    """Return the variants whose curves over time are drawn, at most `MOST_DRAWN` an experiment, and a remark on them.

    A curve is the mean over the seeds with valid runs. If none is valid, or if values are means over phases (which are
    the same for every seed), it is the first seed's.
    """
    found = []
    for variant in grouped(run for run in runs if run.leaves):
        counted = [run for run in variant.runs if run.counts and run.phases is None]
        found.append(Variant(variant.name, counted or variant.runs[:1]))
    experiments = by_experiment(found)
    # A page about many experiments has fewer of each, but the first of every one.
    most = max(1, min(MOST_DRAWN, MOST_OF_ALL // max(len(experiments), 1)))
    chosen = [own if len(own) <= most else _ends_of_sweeps(own) for _, own in experiments]
    kept = {one.name for own in chosen for one in own[:most]}
    shown = [one for one in found if one.name in kept]
    counts = [len(variant.runs) for variant in shown]
    said = []
    if len(shown) < len(found):
        thinned = sum(map(len, chosen)) < len(found)
        which = ": of a policy with many settings, those with the least and the largest sharing loss" if thinned else ""
        said.append(
            f"Courses over time and speed-ups are drawn of {len(shown)} of the {len(found)} variants{which}. Tables, "
            "findings and charts over settings are of all of them."
        )
    if max(counts, default=1) > 1:
        said.append(
            f"Courses over time are means over {range_text(counts)} seeds; the band around a curve is the 95 % "
            "interval of the mean. After the end of a run its ratios and integrals keep their last value, and it holds "
            "nothing."
        )
    return shown, " ".join(said)


def _ends_of_sweeps(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants, and of a policy with more than two the one with the least and with the largest sharing loss.

    Between them charts over the settings show more than another dozen of curves. Variants without a loss are ordered
    before the others.
    """
    by_policy: dict[tuple[str, str], list[Variant]] = {}
    for one in variants:
        by_policy.setdefault((one.first.policy, one.first.mode), []).append(one)

    def loss(one: Variant) -> float:
        mean = one.mean("sharing_loss_integral")
        return -math.inf if mean is None else mean

    ends = {end.name for own in by_policy.values() for end in (min(own, key=loss), max(own, key=loss))}
    return [one for one in variants if one.name in ends]


def range_text(counts: Sequence[int]) -> str:
    """Format as ``4``, or as ``3 to 4`` if the counts differ."""
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def interval_text(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Return the mean of several seeds' values and half of its 95 % interval, as ``mean ± half``.

    With one seed, return its value alone.
    """
    mean = write(math.fsum(values) / len(values))
    half = half_width_95(values)
    return f"{mean} \u00b1 {write(half)}" if half > 0 else mean
