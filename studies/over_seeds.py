"""One measurement repeated over seeds: each of its figures becomes a mean with an interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Student's t, two-sided 95 %, by degrees of freedom from 1.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_DIGITS = 4


def half_width_95(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of independent values, as if they were normal (Student's t); 0 for one."""
    if len(values) < 2:
        return 0.0
    return half_width_of(statistics.stdev(values) / math.sqrt(len(values)), len(values))


def half_width_of(standard_error: float, count: int) -> float:
    """The same from the mean's standard error and the number of values, at least two."""
    # Beyond the table its last entry, which is a little too wide.
    return _T95[min(count - 1, len(_T95)) - 1] * standard_error


def spread(values: Sequence[float]) -> dict[str, float]:
    """``mean``, ``ci95`` (half the interval's width; of several values only), ``min``, ``max``."""
    figures = {"mean": statistics.fmean(values), "min": min(values), "max": max(values)}
    if len(values) > 1:
        figures["ci95"] = half_width_95(values)
    return {name: round(figure, _DIGITS) for name, figure in figures.items()}


def merged(documents: Sequence[Any]) -> Any:
    """Documents of the same shape as one: a number that differs between them becomes its `spread`, others stay.

    Raises ValueError where the shapes or what is not a number differ.
    """
    first = documents[0]
    if isinstance(first, Mapping):
        if any(list(document) != list(first) for document in documents):
            raise ValueError(f"other keys than {list(first)}")
        return {key: merged([document[key] for document in documents]) for key in first}
    if isinstance(first, list):
        if any(len(document) != len(first) for document in documents):
            raise ValueError(f"not always {len(first)} entries")
        return [merged([document[at] for document in documents]) for at in range(len(first))]
    if all(document == first for document in documents):
        return first
    if any(isinstance(document, bool) or not isinstance(document, int | float) for document in documents):
        raise ValueError(f"{first!r} is not the same under every seed")
    return spread(documents)


def over_seeds(measure: Callable[[int], dict[str, Any]], seeds: int) -> dict[str, Any]:
    """What `measure` gives for the seeds 1 to `seeds`, merged; ``seeds`` says how many."""
    return {"seeds": seeds, **merged([measure(seed) for seed in range(1, seeds + 1)])}


def mean_of(figure: float | Mapping[str, float]) -> float:
    """The figure, or the mean of a spread."""
    return float(figure["mean"]) if isinstance(figure, Mapping) else float(figure)


def shown(figure: float | Mapping[str, float], form: str = ".2f", unit: str = "", factor: float = 1.0) -> str:
    """A cell of a table: the figure, or the mean and half the interval's width."""
    mean = f"{factor * mean_of(figure):{form}}"
    if isinstance(figure, Mapping) and "ci95" in figure:
        return f"{mean} ± {factor * figure['ci95']:{form}}{unit}"
    return f"{mean}{unit}"
