"""Heat maps as inline SVG text: one figure over two settings, a cell for each pair of their values.

Each cell has its number written in it where there is room, so that a map can be read without its colours. The colours
are the same on light and on dark paper: a cell is opaque, and its text is chosen for its colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from harness.report.svg import RIGHT, TOP, WIDTH, lettering, number, whole

#: The colours of the least and of the greatest value; those between lie on the line between the two.
PALEST, DARKEST = (0xE6, 0xF0, 0xFA), (0x00, 0x3C, 0x6E)
#: From this part of the range on a cell has white text, below it black text: both have a contrast of 4.5 : 1.
WHITE_TEXT_FROM = 0.66
#: What stands in a cell without a value.
NO_VALUE = "\u2013"
#: Widths of a letter in the two sizes of text, and the longest label that a row has.
_LETTER, _SMALL_LETTER, _LONGEST = 6.6, 5.9, 12
_ROW, _TALL_ROW, _STEPS = 26, 36, 24


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A quantity over two settings: ``values[row][column]``; None is a cell without a value."""

    title: str
    #: The setting whose values stand below the columns, and the one whose values stand beside the rows.
    x_label: str
    y_label: str
    #: The quantity and its unit.
    quantity: str
    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float | None]]
    #: How many runs' values each of ``values`` is the mean of.
    counts: Sequence[Sequence[int]]
    #: For each of ``values`` half of its 95 % interval, 0 where it is of one run.
    half_widths: Sequence[Sequence[float]]
    #: The values that have the palest and the darkest colour. None: the least and the greatest of the map.
    range: tuple[float, float] | None = None
    filled: ClassVar[bool] = True
    levels: ClassVar[tuple[tuple[float, str], ...]] = ()

    @property
    def shown(self) -> list[int]:
        """The styles that its legend needs: none, because colours stand for values here."""
        return []

    @property
    def several(self) -> bool:
        """Whether some cell is a mean of several runs."""
        return any(count > 1 for row in self.counts for count in row)

    def extremes(self) -> tuple[float, float]:
        """The ends of the scale of colours."""
        if self.range is not None:
            return self.range
        present = [value for row in self.values for value in row if value is not None]
        return min(present, default=0.0), max(present, default=1.0)

    def cells(self) -> Iterator[Cell]:
        """Every cell, row by row."""
        low, high = self.extremes()
        for r, row in enumerate(self.values):
            for c, value in enumerate(row):
                part = None if value is None else (value - low) / (high - low) if high > low else 0.0
                yield Cell(r, c, value, self.half_widths[r][c], self.counts[r][c], part)

    def name_of(self, cell: Cell) -> str:
        """The two settings' values of a cell."""
        return f"{self.x_label} {self.columns[cell.column]}, {self.y_label} {self.rows[cell.row]}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its place, value, half of its 95 % interval, number of runs; ``part``: how dark, from 0 to 1."""

    row: int
    column: int
    value: float | None
    half_width: float
    count: int
    part: float | None

    @property
    def text(self) -> str:
        """The value in three digits, or the sign for none."""
        return NO_VALUE if self.value is None else short_number(self.value)

    @property
    def interval_text(self) -> str:
        """Half of the interval as ``± 0.12``; '' where the value is of one run, or of none."""
        return f"\u00b1 {short_number(self.half_width)}" if self.half_width > 0 else ""

    @property
    def words(self) -> str:
        """All of it in words."""
        if self.value is None:
            return "no value"
        mean = f", mean of {self.count} runs" if self.count > 1 else ""
        return f"{self.text} {self.interval_text}".strip() + mean


def short_number(value: float) -> str:
    """A number in three digits."""
    return number(float(f"{value:.3g}"))


def colour_of(part: float) -> str:
    """The colour at a part (0 to 1) of the scale."""
    mixed = (round(pale + (dark - pale) * part) for pale, dark in zip(PALEST, DARKEST, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def shortened(label: str, most: int = _LONGEST) -> str:
    """A label with its end cut off where it is longer than that."""
    return label if len(label) <= most else f"{label[: most - 1]}\u2026"


def heat_map(chart: HeatMap, ident: str) -> str:
    """The map as an ``<svg>`` element; `ident` makes its ids unique in the page."""
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
    """The scale of colours: the least value, a bar from pale to dark, the greatest value, the quantity."""
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
