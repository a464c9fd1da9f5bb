"""``phases.json`` of a run directory: each number of its summary in every phase of heartbeats and control.

`yarnfair replay` writes it: a prediction is the mean over the phases, with the smallest and the largest value as its
band. The directory's tables and ``summary.json`` are of one phase.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import plain, read_whole, write_text
from harness.results.comparison import found_at

FILE = "phases.json"
#: Numbers that depend on the machine's clock.
_NOT_KEPT = "wall_s"
#: Maximum size: some 10,000 queues in twenty phases take 60 MB.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Phases:
    """The summaries of one variant, phase by phase; the k-th of each variant has the same phase.

    ``mean``, ``low``, ``high`` have the form of a summary; a number that is missing in some phase is None.
    """

    count: int
    #: In the form of a summary, with a list in place of each number.
    figures: Mapping[str, Any]

    @cached_property
    def mean(self) -> dict[str, Any]:
        """Return each number's mean over the phases."""
        return each(self.figures, mean_of)

    @cached_property
    def low(self) -> dict[str, Any]:
        """Return each number's smallest value."""
        return each(self.figures, min)

    @cached_property
    def high(self) -> dict[str, Any]:
        """Return each number's largest value."""
        return each(self.figures, max)

    def span(self, *keys: str) -> tuple[float, float] | None:
        """Return the smallest and the largest value; None if the number is not known in every phase."""
        low, high = (found_at(found, keys) for found in (self.low, self.high))
        return None if low is None or high is None else (low, high)

    def changes(self, other: Phases, *keys: str) -> list[float] | None:
        """Return the relative difference from the other's number, phase by phase.

        None if it is unknown or the base is 0.
        """
        pairs = (found_at(self.figures, keys), found_at(other.figures, keys))
        if not all(isinstance(values, list) and None not in values for values in pairs) or self.count != other.count:
            return None
        return None if 0 in pairs[1] else [mine / its - 1.0 for mine, its in zip(*pairs, strict=True)]

    @property
    def said(self) -> str:
        """Return the explanation of values with brackets."""
        return f"means of {self.count} phases of heartbeats and control (smallest to largest)"


def span(phases: Phases | None, *keys: str) -> tuple[float, float] | None:
    """Return `Phases.span`; None if there are no phases."""
    return None if phases is None else phases.span(*keys)


def write_phases(folder: Path, summaries: Sequence[Mapping[str, object]]) -> None:
    """Write ``phases.json`` into a run directory. ``summaries``: those of the variant, one per phase.

    Raises InputError if the disk refuses.
    """
    document = {"phases": len(summaries), "figures": listed(summaries)}
    write_text(folder / FILE, json.dumps(plain(document), ensure_ascii=False, allow_nan=False) + "\n")


def read_phases(folder: Path) -> Phases | None:
    """Read a run directory's file; None if it has none. Raises InputError for a damaged file."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        document = json.loads(read_whole(path, _MOST_BYTES))
        found = Phases(document["phases"], document["figures"])
        sound = found.count > 0 and _sound(found.figures, found.count)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise InputError("not readable as figures by phase", where=str(path), hint="replay the trace again")
    return found


def listed(summaries: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Merge documents of one form into one, with a list in place of each number (None: not a number there).

    A value that is not a number in any document is left out.
    """
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for summary in summaries for key in summary if key != _NOT_KEPT):
        values = [summary.get(key) for summary in summaries]
        if all(isinstance(value, Mapping) for value in values):
            found[key] = listed(values)  # type: ignore[arg-type]
        elif any(map(_number, values)):
            found[key] = [value if _number(value) else None for value in values]
    return found


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sound(figures: Mapping[str, object], count: int) -> bool:
    return all(
        _sound(value, count)
        if isinstance(value, Mapping)
        else isinstance(value, list) and len(value) == count and all(one is None or _number(one) for one in value)
        for value in figures.values()
    )


def each(figures: Mapping[str, Any], of: Callable[[Sequence[float]], Any]) -> dict[str, Any]:
    """Apply ``of`` to each list of numbers (`listed`); None if a number is not known everywhere."""
    return {
        key: each(value, of) if isinstance(value, Mapping) else None if None in value else of(value)
        for key, value in figures.items()
    }


def mean_of(values: Sequence[float]) -> float:
    """Return the mean. A count that is equal in each phase stays an integer."""
    return values[0] if min(values) == max(values) else sum(values) / len(values)
