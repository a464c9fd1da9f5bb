"""One measurement repeated over seeds: each of its figures becomes a mean with an interval, and a cell of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.report.gallery.spread import mean_of, spread


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


def shown(figure: float | Mapping[str, float], form: str = ".2f", unit: str = "", factor: float = 1.0) -> str:
    """A cell of a table: the figure, or the mean and half the interval's width."""
    mean = f"{factor * mean_of(figure):{form}}"
    if isinstance(figure, Mapping) and "ci95" in figure:
        return f"{mean} ± {factor * figure['ci95']:{form}}{unit}"
    return f"{mean}{unit}"
