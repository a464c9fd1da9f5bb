"""Heat maps as inline SVG: one metric over two settings, with a cell for each pair of values.

Each cell shows its number if there is room, so a map can be read without colours. Colours are the same on light and
dark backgrounds: a cell is opaque, and its text colour fits the cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from harness.report.svg import RIGHT, TOP, WIDTH, lettering, number, whole

#: The colours of the smallest and of the largest value; others are interpolated.
PALEST, DARKEST = (0xE6, 0xF0, 0xFA), (0x00, 0x3C, 0x6E)
#: Cells from this fraction of the range on have white text, others black text, both with a contrast of 4.5:1 or more.
WHITE_TEXT_FROM = 0.66
#: The text of a cell without a value.
NO_VALUE = "\u2013"
#: Widths of a letter in the two text sizes, and the maximum length of a row label.
_LETTER, _SMALL_LETTER, _LONGEST = 6.6, 5.9, 12
_ROW, _TALL_ROW, _STEPS = 26, 36, 24


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A quantity over two settings: ``values[row][column]``; None is a cell without a value."""

    title: str
    #: The setting below the columns, and the setting beside the rows.
    x_label: str
    y_label: str
    #: The quantity and its unit.
    quantity: str
    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float | None]]
    #: For each of ``values``, the number of runs in the mean.
    counts: Sequence[Sequence[int]]
    #: For each of ``values`` half of its 95 % interval, 0 for a single run.
    half_widths: Sequence[Sequence[float]]
    #: The values with the palest and the darkest colour. None: the map's smallest and largest.
    range: tuple[float, float] | None = None
    filled: ClassVar[bool] = True
    levels: ClassVar[tuple[tuple[float, str], ...]] = ()

    @property
    def shown(self) -> list[int]:
        """Return the styles of its legend: none, because colours represent values here."""
        return []

    @property
    def several(self) -> bool:
        """Return whether some cell is a mean of several runs."""
        return any(count > 1 for row in self.counts for count in row)

    def extremes(self) -> tuple[float, float]:
        """Return the ends of the colour scale."""
        if self.range is not None:
            return self.range
        present = [value for row in self.values for value in row if value is not None]
        return min(present, default=0.0), max(present, default=1.0)

    def cells(self) -> Iterator[Cell]:
        """Return every cell, row by row."""
        low, high = self.extremes()
        for r, row in enumerate(self.values):
            for c, value in enumerate(row):
                part = None if value is None else (value - low) / (high - low) if high > low else 0.0
                yield Cell(r, c, value, self.half_widths[r][c], self.counts[r][c], part)

    def name_of(self, cell: Cell) -> str:
        """Return the two settings' values of a cell."""
        return f"{self.x_label} {self.columns[cell.column]}, {self.y_label} {self.rows[cell.row]}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its position, value, half of its 95 % interval, number of runs; ``part``: darkness from 0 to 1."""

    row: int
    column: int
    value: float | None
    half_width: float
    count: int
    part: float | None

    @property
    def text(self) -> str:
        """Return the value with three digits, or the sign for no value."""
        return NO_VALUE if self.value is None else short_number(self.value)

    @property
    def interval_text(self) -> str:
        """Return half of the interval as ``± 0.12``; '' if the value is of one run or none."""
        return f"\u00b1 {short_number(self.half_width)}" if self.half_width > 0 else ""

    @property
    def words(self) -> str:
        """Describe the cell in words."""
        if self.value is None:
            return "no value"
        mean = f", mean of {self.count} runs" if self.count > 1 else ""
        return f"{self.text} {self.interval_text}".strip() + mean


def short_number(value: float) -> str:
    """Format a number with three digits."""
    return number(float(f"{value:.3g}"))


def colour_of(part: float) -> str:
    """Return the colour at a fraction (0 to 1) of the scale."""
    mixed = (round(pale + (dark - pale) * part) for pale, dark in zip(PALEST, DARKEST, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def shortened(label: str, most: int = _LONGEST) -> str:
    """Truncate a label to the maximum length."""
    return label if len(label) <= most else f"{label[: most - 1]}\u2026"


def heat_map(chart: HeatMap, ident: str) -> str:
    """Draw the map as an ``<svg>`` element; `ident` makes its ids unique in the page."""
    rows = [shortened(row) for row in chart.rows]
    left = 30 + _LETTER * max((len(row) for row in rows), default=1)
    width = (WIDTH - RIGHT - left) / max(len(chart.columns), 1)
    height = _TALL_ROW if chart.several else _ROW
    bottom = TOP + height * len(rows)
    cells = list(chart.cells())
    room = max((max(_LETTER * len(c.text), _SMALL_LETTER * len(c.interval_text)) for c in cells), default=0) <= width
    body = []
    for cell in cells:
        x, y = left + cell.column * width, TOP + cell.row * height
        fill = 'class="hn"' if cell.part is None else f'fill="{colour_of(cell.part)}"'
        told = escape(f"{chart.name_of(cell)}: {cell.words}")
        body.append(
            f'<rect {fill} x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{width - 1:.1f}" height="{height - 1}">'
            f"<title>{told}</title></rect>"
        )
        if not room and cell.part is not None:
            continue
        kind = "" if cell.part is None else " hl" if cell.part >= WHITE_TEXT_FROM else " hd"
        middle, line = f"{x + width / 2:.1f}", y + height / 2 + 4
        if cell.interval_text:
            body.append(lettering(f"b{kind}", middle, f"{line + 8:.1f}", cell.interval_text))
            line -= 6
        body.append(lettering(f"t{kind}", middle, f"{line:.1f}", cell.text))
    for r, row in enumerate(rows):
        body.append(lettering("t", f"{left - 5:.1f}", f"{TOP + (r + 0.5) * height + 4:.1f}", row, "end"))
    longest = max((len(shortened(column)) for column in chart.columns), default=1)
    every = max(1, math.ceil(_LETTER * (longest + 1) / width))
    for c, column in enumerate(chart.columns):
        if c % every == 0:
            body.append(lettering("t", f"{left + (c + 0.5) * width:.1f}", bottom + 15, shortened(column)))
    middle = f"{(TOP + bottom) / 2:g}"
    body.append(lettering("l", 11, middle, chart.y_label, turned=f' transform="rotate(-90 11 {middle})"'))
    body.append(lettering("l", f"{(left + WIDTH - RIGHT) / 2:.1f}", bottom + 33, chart.x_label))
    body += _scale(chart, bottom + 48)
    listed = "; ".join(f"{chart.name_of(cell)}: {cell.words}" for cell in cells) or "no data"
    description = f"{chart.quantity} over {chart.x_label} (across) and {chart.y_label} (down). {listed}."
    return whole(ident, chart.title, description, [f'<g class="h">{"".join(body)}</g>'], height=bottom + 66)


def _scale(chart: HeatMap, top: int) -> list[str]:
    """Draw the colour scale: the smallest value, a bar from pale to dark, the largest value, the quantity."""
    low, high = chart.extremes()
    texts = short_number(low), short_number(high)
    start = 8 + _LETTER * len(texts[0])
    step = 90 / _STEPS
    bar = [
        f'<rect fill="{colour_of((k + 0.5) / _STEPS)}" x="{start + k * step:.2f}" y="{top}" width="{step + 0.3:.2f}" '
        'height="10"/>'
        for k in range(_STEPS)
    ]
    end = start + 95
    return [
        lettering("t", 4, top + 9, texts[0], "start"),
        *bar,
        lettering("t", f"{end:.1f}", top + 9, f"{texts[1]}   {chart.quantity}", "start"),
    ]
