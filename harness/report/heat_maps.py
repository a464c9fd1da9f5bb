"""Heat maps of an experiment's metrics over two settings that it varies, as means over seeds.

Runs are grouped as for charts over one setting (`sweeps`). If a third setting varies, each of its values gets a map.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harness.base.stats import half_width_95
from harness.report.data import Run
from harness.report.figures import Group, Legend
from harness.report.heat_map import HeatMap
from harness.report.svg import number
from harness.report.sweeps import FEWEST_VALUES, Measure, Together, belonging_together, label_of
from harness.report.variants import range_text

#: Maps of one metric, one for each combination of the other varying settings.
MOST_MAPS = 8
#: The colour scale covers at least this part of the largest value.
LEAST_SCALE = 0.1
#: How the colours of a map are scaled, for its readers.
SCALE = (
    "The colours cover at least the widest interval and a tenth of the largest value: cells of nearly one colour do "
    "not differ by more than chance or by much."
)
# An integer may be too large for a float.
_GREATEST = 1e300

#: The value of a setting that a run lacks but others of its policy have.
DEFAULT = "default"

#: A value of a setting: numbers sort by value, before words.
Value = float | str
#: The values of the row's and the column's setting of a cell.
Place = tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class _Grid:
    """The runs of one map by cell, and a description of the other settings' values."""

    rows: Sequence[Value]
    columns: Sequence[Value]
    cells: Mapping[Place, Sequence[Run]]
    others: str

    @property
    def is_map(self) -> bool:
        """Return whether both settings vary together: there are more cells with runs than in one row and one column."""
        most, least = max(len(self.rows), len(self.columns)), min(len(self.rows), len(self.columns))
        return least >= 2 and most >= FEWEST_VALUES and len(self.cells) > len(self.rows) + len(self.columns) - 1


def heat_map_groups(runs: Sequence[Run]) -> list[Group]:
    """Return maps of each metric (`Together.measures`) for each policy and each two settings that vary together."""
    groups: list[Group] = []
    for own in belonging_together(runs):
        values = {name: own_values for name, own_values in _values(own.runs).items() if len(own_values) > 1}
        for one, other in combinations(values, 2):
            # The setting with more values is horizontal, where there is more room.
            across, down = (one, other) if len(values[one]) >= len(values[other]) else (other, one)
            group = _group(own, across, down, [name for name in values if name not in (one, other)])
            if group is not None:
                groups.append(own.told_apart(group, len(groups)))
    return groups


def colour_range(maps: Sequence[HeatMap]) -> tuple[float, float]:
    """Return the values with the palest and the darkest colour of maps of one metric.

    The scale covers at least the widest interval and a tenth of the largest value. Otherwise cells that differ by
    chance, or by nothing that matters, would have the full contrast.
    """
    values = [value for one in maps for row in one.values for value in row if value is not None]
    halves = [half for one in maps for row in one.half_widths for half in row]
    low, high = min(values, default=0.0), max(values, default=1.0)
    least = max(2.0 * max(halves, default=0.0), LEAST_SCALE * max(abs(low), abs(high)))
    return low, max(high, low + least)


def _settings(run: Run) -> dict[str, Value]:
    """Return a run's settings that are numbers or words, and the control period if it acts from outside."""
    given = dict(run.settings)
    policy = run.info.get("policy")
    if run.mode == "outside" and isinstance(policy, Mapping):
        given.setdefault("period_s", policy.get("period_s"))
    found: dict[str, Value] = {}
    for name, value in given.items():
        if isinstance(value, str | bool):
            found[name] = _number_of(str(value))
        elif isinstance(value, int | float) and abs(value) < _GREATEST:
            found[name] = float(value)
    return found


def _number_of(word: str) -> Value:
    """Return a word that is a number as one: a setting that may also be a word is recorded as text (``"20"``)."""
    try:
        value = float(word)
    except ValueError:
        return word
    return value if abs(value) < _GREATEST else word


def _values(runs: Sequence[Run]) -> dict[str, list[Value]]:
    """Return the values of each setting among the runs: numbers by value, then words."""
    each = [_settings(run) for run in runs]
    names = dict.fromkeys(name for settings in each for name in settings)
    return {name: _sorted({settings.get(name, DEFAULT) for settings in each}) for name in names}


def _sorted(values: set[Value]) -> list[Value]:
    numbers = sorted(value for value in values if not isinstance(value, str))
    return [*numbers, *sorted(value for value in values if isinstance(value, str))]


def _word(value: Value) -> str:
    return value if isinstance(value, str) else number(value)


def _grids(runs: Sequence[Run], across: str, down: str, others: Sequence[str]) -> list[_Grid]:
    """Return a grid for each combination of the other varying settings, without grids with too few cells."""
    found: dict[str, dict[Place, list[Run]]] = {}
    for run in runs:
        values = _settings(run)
        rest = ", ".join(f"{label_of(name)} {_word(values.get(name, DEFAULT))}" for name in others)
        found.setdefault(rest, {}).setdefault((values.get(down, DEFAULT), values.get(across, DEFAULT)), []).append(run)
    grids = []
    for rest, cells in found.items():
        rows, columns = ({place[k] for place in cells} for k in (0, 1))
        grids.append(_Grid(_sorted(rows), _sorted(columns), cells, rest))
    return [grid for grid in grids if grid.is_map]


def _group(own: Together, across: str, down: str, others: Sequence[str]) -> Group | None:
    grids = _grids(own.runs, across, down, others)
    maps: list[HeatMap] = []
    for measure in own.measures:
        drawn = [_map(grid, measure, across, down) for grid in grids[:MOST_MAPS]]
        drawn = [one for one in drawn if any(value is not None for row in one.values for value in row)]
        # Maps of one metric share their colours, so that they can be compared by eye.
        maps += [replace(one, range=colour_range(drawn)) for one in drawn]
    if not maps:
        return None
    said = f"Each cell is one pair of values{_means(grids)}. The darker, the larger. {SCALE}"
    if any(value is None for one in maps for row in one.values for value in row):
        said += " A dash: no finished run has these values, or its runs have no such figure."
    if len(grids) > MOST_MAPS:
        said += f" Drawn are the first {MOST_MAPS} of {len(grids)} combinations of the other settings."
    return Group(
        f"map-{own.policy.replace('@', '-')}-{across}-{down}",
        f"{own.policy} over {label_of(across)} and {label_of(down)}",
        said,
        Legend(()),
        maps,
    )


def _means(grids: Sequence[_Grid]) -> str:
    """Describe how many seeds each cell averages, and how many runs if that is larger."""
    cells = [runs for grid in grids[:MOST_MAPS] for runs in grid.cells.values()]
    counts, seeds = [len(runs) for runs in cells], [len({run.seed for run in runs}) for runs in cells]
    if max(counts) == 1:
        return ", of one run"
    interval = ", with half of its 95 % interval"
    text = f", the mean over {range_text(seeds)} seed{'s' if max(seeds) > 1 else ''}"
    return f"{text}{interval}" if counts == seeds else f"{text} in {range_text(counts)} runs{interval}"


def _map(grid: _Grid, measure: Measure, across: str, down: str) -> HeatMap:
    values: list[list[float | None]] = []
    counts: list[list[int]] = []
    halves: list[list[float]] = []
    for row in grid.rows:
        of_cells = [
            [value for run in grid.cells.get((row, column), ()) if (value := measure.value_of(run)) is not None]
            for column in grid.columns
        ]
        values.append([math.fsum(cell) / len(cell) if cell else None for cell in of_cells])
        counts.append([len(cell) for cell in of_cells])
        halves.append([half_width_95(cell) for cell in of_cells])
    return HeatMap(
        f"{measure.title}, {grid.others}" if grid.others else measure.title,
        label_of(across),
        label_of(down),
        measure.label,
        [_word(column) for column in grid.columns],
        [_word(row) for row in grid.rows],
        values,
        counts,
        halves,
    )
