"""Statistics of one measurement over seeds as stored in records: mean, smallest, largest, and the mean's interval."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from harness.base.stats import half_width_95

#: Decimal digits of a committed value.
DIGITS = 4


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return ``mean``, ``min``, ``max``, and for several values ``ci95``.

    ``ci95`` is half the width of the mean's 95 % interval.
    """
    figures = {"mean": statistics.fmean(values), "min": min(values), "max": max(values)}
    if len(values) > 1:
        figures["ci95"] = half_width_95(values)
    return {name: round(figure, DIGITS) for name, figure in figures.items()}


def mean_of(figure: float | Mapping[str, float]) -> float:
    """Return the value, or the mean of a spread."""
    return float(figure["mean"]) if isinstance(figure, Mapping) else float(figure)


def half_width_of(figure: float | Mapping[str, float]) -> float:
    """Return half of the 95 % interval of a spread's mean; 0 for a single value."""
    return float(figure.get("ci95", 0.0)) if isinstance(figure, Mapping) else 0.0
