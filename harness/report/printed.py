"""Figures for print: a group of the report's charts as PDF, SVG or PNG, and its data as CSV. `page` defines the charts.

matplotlib, an optional extra, draws them and is imported on demand. The same runs give the same bytes with the same
version of matplotlib, whatever the user's own matplotlib settings are.
"""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.errors import CallError, InputError, nearest
from harness.base.extras import install_hint
from harness.base.outputs import STANDARD_OUTPUT, write_output
from harness.report.charts import Chart
from harness.report.data import load_runs
from harness.report.figures import Group
from harness.report.gallery import gallery_of_runs
from harness.report.heat_map import WHITE_TEXT_FROM, HeatMap, colour_of, short_number, shortened
from harness.report.kinds import content_of
from harness.report.svg import (
    COLOURS,
    BarChart,
    Line,
    LineChart,
    cut_words,
    dashes,
    layers,
    log_ticks,
    needed_y_range,
    nice_ticks,
    number,
)

FORMATS = (".pdf", ".svg", ".png")
#: Widths in mm: one column of a journal for a single chart, a whole page for several.
COLUMN_MM, PAGE_MM = 84.0, 174.0
#: Limits of the width: narrower figures are unreadable, wider ones are not for print.
WIDTHS_MM = (40.0, 600.0)
#: A narrower chart (in mm) cannot be placed beside another one.
NARROWEST_MM = 60.0
_MM = 1 / 25.4
#: Inches: height of a legend row, and width of a letter in it.
_ROW, _LETTER = 0.16, 0.062

#: All settings of a figure's appearance, on top of matplotlib's own defaults.
_LOOK: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],  # included in matplotlib
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "lines.scale_dashes": False,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,  # text stays text, as journals require
    "svg.fonttype": "path",  # the same in every viewer
    "svg.hashsalt": "yarnfair",  # otherwise its ids are random
    "savefig.dpi": 300,
    "text.parse_math": False,  # a queue may have a $ in its name
    "path.simplify": False,
}


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of runs, by name, and a remark if they do not show every run."""

    groups: Mapping[str, Group]
    remark: str

    def chosen(self, name: str, charts: Sequence[str] = ()) -> Group:
        """Return the figure of a name, with the charts of these titles or all. Raises CallError for an unknown name."""
        if name not in self.groups:
            raise CallError(f"no figure {name[:60]!r} of these runs", where="--figure", hint=_offer(name, self.groups))
        group = self.groups[name]
        titles = [chart.title for chart in group.charts]
        for title in charts:
            if title not in titles:
                raise CallError(f"no chart {title[:60]!r} in {name}", where="--chart", hint=_offer(title, titles))
        return replace(group, charts=[chart for chart in group.charts if not charts or chart.title in charts])


def _offer(word: str, known: Sequence[str] | Mapping[str, Group]) -> str:
    like = nearest(word, known)
    return f"did you mean {like!r}?" if like else f"there are: {', '.join(known)}"


@dataclass(frozen=True, slots=True)
class Written:
    """A written figure: its file, its data's file, and matplotlib's warnings (characters that its font lacks)."""

    figure: Path
    #: None if the figure was written to standard output.
    data: Path | None
    remarks: Sequence[str]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure for notebook programs: shown as SVG or, if they cannot, by its title."""

    title: str
    svg: str

    def __repr__(self) -> str:
        return f"<figure: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg


def figures_of(run_dirs: Sequence[Path]) -> Figures:
    """Return every group of charts in the report of these run directories, and the papers' figures that they support.

    Raises
    ------
    InputError
        As in `render_report`; also if the runs have no charts.
    """
    runs = load_runs([Path(directory) for directory in run_dirs])
    if not runs:
        raise InputError("no runs to draw", hint="give directories that `yarnfair run` has written")
    content = content_of(runs)
    found: dict[str, Group] = {}
    for part in content.parts:
        for group in part.groups:
            found[group.ident if group.ident not in found else f"{part.ident}-{group.ident}"] = group
    found |= gallery_of_runs(runs)
    if not found:
        raise InputError("these runs have no charts", where=str(runs[0].path), hint="run them to their end")
    return Figures(found, content.drawn)


def write_figure(group: Group, out: Path, width_mm: float | None = None) -> Written:
    """Draw the group into `out` (its suffix selects the format), and write its data beside it with the suffix .csv.

    ``-`` means an SVG on standard output, without data.

    ``width_mm``: of the whole figure; None: COLUMN_MM for one chart, PAGE_MM for several.

    Raises
    ------
    CallError
        The suffix is not in FORMATS.
    InputError
        matplotlib is not installed, or a file cannot be written.
    """
    kind = ".svg" if out == STANDARD_OUTPUT else out.suffix.lower()
    if kind not in FORMATS:
        raise CallError(f"no such format: {out.name[:60]}", where="-o", hint=f"end it in {', '.join(FORMATS)}")
    image, remarks = _drawn(group, kind.removeprefix("."), width_mm)
    data = None if out == STANDARD_OUTPUT else out.with_suffix(".csv")
    if data is not None:
        write_output(data, table_of(group), hint="choose another -o FILE")
    write_output(out, image, hint="choose another -o FILE")
    return Written(out, data, remarks)


def picture(group: Group, width_mm: float | None = None) -> Picture:
    """Draw the group for a notebook. Raises InputError if matplotlib is not installed."""
    image, _ = _drawn(group, "svg", width_mm)
    return Picture(group.title, image.decode("utf-8"))


def table_of(group: Group) -> str:
    """Return the points of every chart, before clipping at an axis: one row per point, as CSV with a header.

    Areas are not stacked. For bars, ``x`` is their label. For a heat map, ``x`` is the value of the horizontal setting,
    ``series`` names the vertical setting and its value, and ``y`` is the cell's value, empty if it has none.
    ``y_low_95`` and ``y_high_95`` are the 95 % interval of a mean over seeds, empty if y is not such a mean.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["chart", "series", "x_quantity", "x", "y_quantity", "y", "y_low_95", "y_high_95"])
    for chart in group.charts:
        for point in _points(chart):
            ys = ["" if y is None or not math.isfinite(y) else y for y in (point.y, point.low, point.high)]
            quantity = chart.quantity if isinstance(chart, HeatMap) else chart.y_label
            rows.writerow([chart.title, point.series, point.x_quantity, point.x, quantity, *ys])
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of a chart; ``low`` and ``high``: the 95 % interval of a mean over seeds."""

    series: str
    x_quantity: str
    x: float | str
    y: float | None
    low: float | None = None
    high: float | None = None


def _points(chart: Chart) -> Iterator[_Point]:
    if isinstance(chart, HeatMap):
        for cell in chart.cells():
            ends: tuple[float | None, float | None] = (None, None)
            if cell.value is not None and cell.half_width > 0:
                ends = (cell.value - cell.half_width, cell.value + cell.half_width)
            name = f"{chart.y_label} {chart.rows[cell.row]}"
            yield _Point(name, chart.x_label, chart.columns[cell.column], cell.value, *ends)
        return
    if isinstance(chart, BarChart):
        for k, series in enumerate(chart.series):
            for g, (name, row) in enumerate(zip(chart.groups, chart.values, strict=True)):
                y, half = row[k], chart.half_width(g, k)
                low, high = (y - half, y + half) if y is not None and half > 0 else (None, None)
                yield _Point(series, "", name, y, low, high)
        return
    for line in chart.lines:
        curve = line.curve
        nothing = [None] * len(curve.x)
        lows, highs = (nothing if border is None else border.tolist() for border in (curve.low, curve.high))
        for x, y, low, high in zip(curve.x.tolist(), curve.y.tolist(), lows, highs, strict=True):
            yield _Point(line.name, chart.x_label, x, y, low, high)


def _drawn(group: Group, kind: str, width_mm: float | None) -> tuple[bytes, list[str]]:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "figures for print need matplotlib, which is not installed", hint=install_hint("plot")
        ) from None
    count = len(group.charts)
    width = (width_mm or (COLUMN_MM if count == 1 else PAGE_MM)) * _MM
    columns = max(1, min(count, 2, int(width / (NARROWEST_MM * _MM))))
    rows = math.ceil(count / columns)
    shown = {style for chart in group.charts for style in chart.shown}
    names = [(name, style) for name, style in group.legend.names if style in shown]
    across = max(1, int(width / (0.45 + _LETTER * max((len(name) for name, _ in names), default=1))))
    height = rows * min(width / columns * 0.62, 2.6) + math.ceil((len(names) + 1) / across) * _ROW
    with warnings.catch_warnings(record=True) as said, matplotlib.rc_context():
        warnings.simplefilter("always")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        figure = Figure(figsize=(width, height), layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False)
        for k, chart in enumerate(group.charts):
            at = places[k // columns][k % columns]
            _draw(at, chart)
            if count > 1:
                # A remark on clipping is placed between the chart and its title.
                at.set_title(chart.title, pad=11 if _cut(chart) or isinstance(chart, HeatMap) else 5)
            if k % columns and chart.y_label == group.charts[k - 1].y_label:
                at.set_ylabel("")
            if k + columns < count:
                at.set_xlabel("")
        for k in range(count, rows * columns):
            places[k // columns][k % columns].set_visible(False)
        _legend(figure, group, names, across)
        image = io.BytesIO()
        metadata: dict[str, Any] = {"Title": group.title, **_UNDATED.get(kind, {})}
        figure.savefig(image, format=kind, metadata=metadata)
    return image.getvalue(), list(dict.fromkeys(str(one.message).split("\n")[0] for one in said))


# matplotlib writes the time into these.
_UNDATED: Mapping[str, Mapping[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


def _line_look(style: int) -> dict[str, Any]:
    marks = dashes(style)
    return {"color": COLOURS[style % len(COLOURS)], "linestyle": (0, marks) if marks else "solid"}


_LEVEL: Mapping[str, Any] = {"color": "#777777", "linewidth": 0.7, "linestyle": (0, (1.5, 1.5))}


def _legend(figure: Any, group: Group, names: Sequence[tuple[str, int]], across: int) -> None:
    """Draw the legend: the charts' content, then level lines, below all charts, which share it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    filled = any(chart.filled for chart in group.charts)
    handles: list[Any] = [
        Patch(color=COLOURS[style % len(COLOURS)]) if filled else Line2D([], [], **_line_look(style))
        for _, style in names
    ]
    levels = list(dict.fromkeys(text for chart in group.charts for _, text in chart.levels if text))
    handles += [Line2D([], [], **_LEVEL) for _ in levels]
    texts = [name for name, _ in names] + levels
    if texts:
        figure.legend(handles, texts, loc="outside lower center", ncols=min(across, len(texts)), handlelength=2.4)


def _draw(at: Any, chart: Chart) -> None:
    """Draw the chart into a matplotlib ``Axes``."""
    at.set_ylabel(chart.y_label)
    if isinstance(chart, BarChart):
        _bars(at, chart)
    elif isinstance(chart, HeatMap):
        _cells(at, chart)
    else:
        at.set_xlabel(chart.x_label)
        _lines(at, chart)
    for level, _ in chart.levels:
        at.axhline(level, zorder=1.5, **_LEVEL)


def _cut(chart: Chart) -> str:
    words = cut_words(chart) if isinstance(chart, LineChart) else ""
    return f"cut: {words}" if words else ""


def _axis(axis: Any, low: float, high: float, scale: str = "linear") -> None:
    """Set the page's ticks: round numbers in their shortest form."""
    ticks = log_ticks(low, high) if scale == "log" else nice_ticks(low, high)
    axis.set_ticks(ticks, [number(tick) for tick in ticks])
    axis.set_tick_params(which="minor", length=0)


def _lines(at: Any, chart: LineChart) -> None:
    at.set_xscale(chart.x_scale)
    at.set_yscale(chart.y_scale)
    low, high = chart.y_range or needed_y_range(chart)
    if chart.stacked:
        x, borders = layers(chart)
        for line, below, above in borders:
            colour = COLOURS[line.style % len(COLOURS)]
            at.fill_between(x, below, above, color=colour, alpha=0.45, linewidth=0)
            at.plot(x, above, linewidth=0.5, color=colour)
    for line in () if chart.stacked else chart.lines:
        # As on the page, values beyond an axis are drawn at its border, and the chart says so.
        marks = {"marker": "o", "markersize": 2.6} if chart.marks else {}
        _interval(at, chart, line, low, high)
        at.plot(
            line.curve.x, np.clip(line.curve.y, low, high), clip_on=not chart.marks, **_line_look(line.style), **marks
        )
    if chart.x_range is not None:
        at.set_xlim(*chart.x_range)
    elif not chart.marks:
        at.margins(x=0)
    at.set_ylim(low, high)
    _axis(at.yaxis, low, high, chart.y_scale)
    left, right = at.get_xlim()
    _axis(at.xaxis, left, right, chart.x_scale)
    for moment, text in chart.moments:
        at.axvline(moment, **_LEVEL)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        at.annotate(text, (moment, 1), (2, -2), va="top", **place)
    look = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": 5.5, "color": "#444444"}
    at.annotate(_cut(chart), (1, 1), (0, 1), ha="right", **look)


def _interval(at: Any, chart: LineChart, line: Line, low: float, high: float) -> None:
    """Draw the 95 % interval around a mean: bars at marks, otherwise a band along the curve."""
    curve, colour = line.curve, COLOURS[line.style % len(COLOURS)]
    if curve.low is None or curve.high is None:
        return
    ends = [np.clip(border, low, high) for border in (curve.low, curve.high)]
    if chart.marks:
        at.vlines(curve.x, *ends, color=colour, linewidth=0.7, clip_on=False)
    else:
        at.fill_between(curve.x, *ends, color=colour, alpha=0.18, linewidth=0)


def _bars(at: Any, chart: BarChart) -> None:
    width = 0.84 / max(len(chart.series), 1)
    for k in range(len(chart.series)):
        heights = [row[k] if row[k] is not None else math.nan for row in chart.values]
        places = [g - 0.42 + (k + 0.5) * width for g in range(len(chart.groups))]
        at.bar(places, heights, width * 0.9, color=COLOURS[chart.shown[k] % len(COLOURS)])
        if chart.half_widths:
            halves = [chart.half_width(g, k) for g in range(len(chart.groups))]
            at.errorbar(places, heights, halves, fmt="none", ecolor="#000000", elinewidth=0.6, capsize=1.2)
    at.axhline(0.0, color="#000000", linewidth=0.6)
    long = max((len(name) for name in chart.groups), default=0) * len(chart.groups) > 40
    at.set_xticks(range(len(chart.groups)), chart.groups, rotation=30 if long else 0, ha="right" if long else "center")
    at.grid(visible=False, axis="x")
    _axis(at.yaxis, *at.get_ylim())


def _cells(at: Any, chart: HeatMap) -> None:
    """Draw the cells of a heat map, each with its number, and its interval if it is a mean over seeds."""
    from matplotlib.patches import Rectangle

    at.set_xlabel(chart.x_label)
    for cell in chart.cells():
        look: dict[str, Any] = {"hatch": "////", "edgecolor": "#cccccc", "facecolor": "#ffffff"}
        if cell.part is not None:
            look = {"facecolor": colour_of(cell.part), "edgecolor": "#ffffff"}
        at.add_patch(Rectangle((cell.column - 0.5, cell.row - 0.5), 1, 1, linewidth=0.6, **look))
        text = "\n".join(part for part in (cell.text, cell.interval_text) if part)
        colour = "#ffffff" if cell.part is not None and cell.part >= WHITE_TEXT_FROM else "#000000"
        size = min(6.0, 6.0 * 8 / len(chart.columns))
        at.text(cell.column, cell.row, text, ha="center", va="center", fontsize=size, color=colour)
    at.set_xlim(-0.5, len(chart.columns) - 0.5)
    at.set_ylim(len(chart.rows) - 0.5, -0.5)
    at.set_xticks(range(len(chart.columns)), [shortened(name) for name in chart.columns])
    at.set_yticks(range(len(chart.rows)), [shortened(name) for name in chart.rows])
    at.grid(visible=False)
    at.set_frame_on(False)
    at.tick_params(length=0)
    low, high = chart.extremes()
    at.annotate(
        f"{chart.quantity}: {short_number(low)} (pale) to {short_number(high)} (dark)",
        (1, 1),
        (0, 1),
        ha="right",
        fontsize=5.5,
        color="#444444",
        xycoords="axes fraction",
        textcoords="offset points",
    )
