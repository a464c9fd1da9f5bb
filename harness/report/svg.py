"""Charts as inline SVG: curves, stacked areas, grouped bars. No data handling, page layout or scripts.

Written by hand instead of with a plotting library, because a page has dozens of charts: each has a few kilobytes, its
text is searchable and in the reader's own font, and curves differ in dashes as well as in colour, so they survive a
grey printer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import ClassVar, Literal

import numpy as np

from harness.report.curves import Curve, Floats, thin

WIDTH, HEIGHT = 420, 252
LEFT, RIGHT, TOP, BOTTOM = 64, 10, 10, 42
#: Width of a digit in a tick's text.
_DIGIT = 7.0
#: Dark enough on white for text contrast (4.5:1 or more), and distinguishable under common colour blindness.
COLOURS = ("#0060a8", "#b8430a", "#04704f", "#8b2a8b", "#7a5c00", "#444444", "#a31545", "#0b6a80")
#: Their counterparts on a dark background.
DARK_COLOURS = ("#58aef0", "#f08a50", "#3fc094", "#d884d8", "#d3b24a", "#b8b8b8", "#f0709a", "#52b9d0")
#: Approximate width of a letter of a tick's text.
_LETTER = 6.0
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3", "1.5 1.5", "6 2 2 2 2 2")


@dataclass(frozen=True, slots=True)
class Line:
    """One curve of a chart; `style` numbers its colour and dashes (the same queue has the same in every chart)."""

    name: str
    curve: Curve
    style: int


@dataclass(frozen=True, slots=True)
class LineChart:
    """Curves over one quantity. Titles are plain text; ``x_label`` and ``y_label`` name quantity and unit."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    y_scale: Literal["linear", "log"] = "linear"
    x_scale: Literal["linear", "log"] = "linear"
    #: Draw a dot at each point of the curves (for a few measured points instead of a time series).
    marks: bool = False
    #: (y, text) of reference lines: the static partition, zero.
    levels: Sequence[tuple[float, str]] = ()
    #: Stacked areas, the first at the bottom: the parts of a whole, and the rest. The axis of y ends at or above the
    #: level of the whole.
    stacked: bool = False
    #: (x, text) of marked moments.
    moments: Sequence[tuple[float, str]] = ()
    y_from_zero: bool = True
    #: Ranges of the axes (None: the range of the curves). Values beyond are drawn at the border, as the description
    #: says.
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None

    @property
    def filled(self) -> bool:
        """Return whether its colours fill areas."""
        return self.stacked

    @property
    def shown(self) -> list[int]:
        """Return the styles of its curves."""
        return [line.style for line in self.lines]


@dataclass(frozen=True, slots=True)
class BarChart:
    """Groups of bars: ``values[group][k]`` belongs to ``series[k]``; None is no bar."""

    title: str
    y_label: str
    groups: Sequence[str]
    series: Sequence[str]
    values: Sequence[Sequence[float | None]]
    levels: Sequence[tuple[float, str]] = ()
    digits: int = 2
    styles: Sequence[int] = field(default_factory=tuple)
    #: For each of ``values`` half of its 95 % interval, if it is a mean over seeds. Empty: no value is one.
    half_widths: Sequence[Sequence[float | None]] = field(default_factory=tuple)
    filled: ClassVar[bool] = True

    @property
    def shown(self) -> list[int]:
        """Return the styles of its series."""
        return list(self.styles) or list(range(len(self.series)))

    def half_width(self, group: int, series: int) -> float:
        """Return half of the 95 % interval of a bar; 0 if it is not a mean over seeds."""
        return (self.half_widths[group][series] or 0.0) if self.half_widths else 0.0

    def extremes(self) -> list[float]:
        """Return every finite value, including the ends of intervals, which an axis has to cover."""
        return [
            value + sign * self.half_width(g, k)
            for g, row in enumerate(self.values)
            for k, value in enumerate(row)
            if value is not None and math.isfinite(value)
            for sign in (-1.0, 1.0)
        ]


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers (1, 2, 2.5 or 5 times a power of ten apart) within [low, high]."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    rough = span / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten within [low, high]; with fewer than three of them, also 2 and 5 times these."""
    powers = range(math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9) + 1)
    ticks = [10.0**k for k in powers if low * 0.999 <= 10.0**k <= high * 1.001]
    if len(ticks) >= 3:
        return ticks[:: max(1, math.ceil(len(ticks) / 6))]
    fine = [f * 10.0**k for k in powers for f in (1, 2, 5)]
    return [t for t in fine if low * 0.999 <= t <= high * 1.001]


def number(value: float) -> str:
    """Format a tick's text as short as possible, with thousands separators."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}".replace("-", "\u2212")


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return relative line commands in tenths of a unit, one polyline per run of finite points."""
    runs: list[str] = []
    steps: list[str] = []
    at: tuple[int, int] | None = None
    for x, y in [*points, (math.nan, math.nan)]:
        if not (math.isfinite(x) and math.isfinite(y)):
            if at is not None:
                runs.append("".join(steps) if len(steps) > 1 else f"{steps[0]}h.1")
            at, steps = None, []
            continue
        now = (round(x * 10), round(y * 10))
        if at is None:
            steps = [f"M{now[0] / 10:g} {now[1] / 10:g}"]
        elif now != at:
            steps.append(f"{'l' if len(steps) == 1 else ' '}{(now[0] - at[0]) / 10:g} {(now[1] - at[1]) / 10:g}")
        at = now
    return "".join(runs).replace(" -", "-")


def lettering(kind: str, x: float | str, y: float | str, text: str, anchor: str = "middle", turned: str = "") -> str:
    """Return a text of a chart; ``kind``: its style class."""
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}"{turned}>{escape(text)}</text>'


def _along(value: float, low: float, high: float, *, log: bool) -> float:
    """Return the position of a value along an axis: 0 at its low end, 1 at its high end."""
    if log:
        value, low, high = math.log10(max(value, low)), math.log10(low), math.log10(high)
    return (value - low) / (high - low)


class _Frame:
    """Maps data to the drawing: the axes' ranges, scales, ticks."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], *, log: bool, log_x: bool = False, bottom: int = BOTTOM
    ) -> None:
        self.x0, self.x1 = x
        self.y0, self.y1 = y
        self.log, self.log_x = log, log_x
        self.low, self.high = HEIGHT - bottom, TOP

    def px(self, x: float) -> float:
        return LEFT + _along(x, self.x0, self.x1, log=self.log_x) * (WIDTH - LEFT - RIGHT)

    def py(self, y: float) -> float:
        return self.low - _along(y, self.y0, self.y1, log=self.log) * (self.low - self.high)

    def y_axis(self, label: str) -> list[str]:
        ticks = log_ticks(self.y0, self.y1) if self.log else nice_ticks(self.y0, self.y1)
        out = []
        for tick in ticks:
            at = f"{self.py(tick):.1f}"
            out.append(f'<path class="g" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>')
            out.append(lettering("t", LEFT - 5, f"{float(at) + 4:.1f}", number(tick), "end"))
        middle = f"{(self.low + self.high) / 2:g}"
        return [*out, lettering("l", 11, middle, label, turned=f' transform="rotate(-90 11 {middle})"')]

    def x_axis(self, label: str) -> list[str]:
        out = []
        for tick in log_ticks(self.x0, self.x1) if self.log_x else nice_ticks(self.x0, self.x1):
            at = f"{self.px(tick):.1f}"
            out.append(f'<path class="g" d="M{at} {self.high}V{self.low}"/>')
            # The last one ends inside the drawing: at the right edge of a page the rest would be cut off.
            text = number(tick)
            place = min(self.px(tick), WIDTH - _DIGIT * len(text) / 2)
            out.append(lettering("t", f"{place:.1f}", self.low + 15, text))
        return [*out, lettering("l", f"{(LEFT + WIDTH - RIGHT) / 2:g}", HEIGHT - 6, label)]

    def timed(self, axis: list[str], curves: list[str]) -> list[str]:
        """Group the axis of x and the curves, which the page's script replaces and stretches."""
        return [f'<g class="x">{"".join(axis[:-1])}</g>{axis[-1]}', f'<g class="z">{"".join(curves)}</g>']

    def border(self) -> str:
        return f'<path class="a" d="M{LEFT} {self.high}V{self.low}H{WIDTH - RIGHT}"/>'

    def levels(self, levels: Sequence[tuple[float, str]]) -> list[str]:
        return [
            f'<path class="v" d="M{LEFT} {self.py(y):.1f}H{WIDTH - RIGHT}"><title>{escape(text)}</title></path>'
            for y, text in levels
            if self.y0 <= y <= self.y1
        ]


def over_time(chart: object) -> bool:
    """Return whether x is time in seconds, on a linear axis."""
    return isinstance(chart, LineChart) and chart.x_label == "time (s)" and chart.x_scale == "linear"


def whole(
    ident: str,
    title: str,
    description: str,
    body: list[str],
    *,
    height: int = HEIGHT,
    times: tuple[float, float] | None = None,
) -> str:
    """Return the ``<svg>`` element. ``times``: the ends of the time axis, for the page's script."""
    data = f' data-t="{times[0]:g} {times[1]:g}"' if times is not None else ""
    head = (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{ident}-t {ident}-d"{data} '
        'xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{ident}-t">{escape(title)}</title><desc id="{ident}-d">{escape(description)}</desc>'
    )
    return head + "".join(body) + "</svg>"


def dashes(style: int) -> tuple[float, ...]:
    """Return the lengths of a curve's dashes and gaps; none: a solid line."""
    # From the ninth curve on, colours repeat with different dashes.
    return tuple(float(length) for length in DASHES[(style + style // len(COLOURS)) % len(DASHES)].split())


def stroke(style: int) -> str:
    """Return the attributes for a curve's colour and dashes."""
    dash = " ".join(f"{length:g}" for length in dashes(style))
    return f'stroke="{COLOURS[style % len(COLOURS)]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def swatch(style: int, *, filled: bool) -> str:
    """Return the sample in a legend: a short piece of the curve, or a small filled square."""
    fill = f'fill="{COLOURS[style % len(COLOURS)]}" d="M0 0H30V8H0z"'
    piece = fill if filled else f'class="c" d="M0 4H30" {stroke(style)}'
    return (
        '<svg class="swatch" viewBox="0 0 30 8" aria-hidden="true" xmlns="http://www.w3.org/2000/svg">'
        f"<path {piece}/></svg>"
    )


def describe(chart: LineChart) -> str:
    """Describe the chart in words for people who cannot see it: each curve's range and its end."""
    parts = []
    for line in chart.lines:
        if chart.stacked:
            # A mean over time, because the points of one curve are equally spaced.
            parts += [f"{line.name}: {number(float(line.curve.y.mean()))} on average"] if len(line.curve.x) else []
            continue
        finite = line.curve.y[np.isfinite(line.curve.y)]
        if len(finite):
            parts.append(
                f"{line.name}: from {number(float(finite.min()))} to {number(float(finite.max()))}, "
                f"at the end {number(float(finite[-1]))}"
            )
    text = "; ".join(parts) or "no data"
    cut = cut_words(chart)
    quantities = f"{chart.y_label} over {chart.x_label}" + (", on top of each other" if chart.stacked else "")
    return f"{quantities}. {text}." + (f" Cut at the axis: {cut}." if cut else "")


def cut_words(chart: LineChart) -> str:
    """Describe how far values exceed the axis of y, at whose border they are drawn; '' if none does."""
    if chart.y_range is None:
        return ""
    low, high = chart.y_range
    x_low, x_high = chart.x_range or (-math.inf, math.inf)
    shown = [
        line.curve.y[(line.curve.x >= x_low) & (line.curve.x <= x_high) & np.isfinite(line.curve.y)]
        for line in chart.lines
    ]
    values = np.concatenate(shown) if shown else np.empty(0)
    if not len(values):
        return ""
    least, most = number(float(f"{values.min():.3g}")), number(float(f"{values.max():.3g}"))
    if values.max() > high:
        return f"values reach from {least} to {most}" if values.min() < low else f"values reach {most}"
    return f"values go down to {least}" if values.min() < low else ""


def needed_y_range(chart: LineChart) -> tuple[float, float]:
    """Return the range of y for every curve and reference line, with a small margin.

    Charts side by side share their range.
    """
    if chart.stacked:
        tops = [above.max() for _, _, above in layers(chart)[1]]
        return (0.0, max(*(float(top) for top in tops), *(level for level, _ in chart.levels), 0.0) * 1.02)
    values = [line.curve.extremes() for line in chart.lines]
    everything = np.concatenate(values) if values else np.empty(0)
    if chart.y_scale == "log":
        everything = everything[everything > 0]
    if not len(everything):
        return (0.1, 1.0) if chart.y_scale == "log" else (0.0, 1.0)
    low, high = float(everything.min()), float(everything.max())
    if chart.y_scale == "log":
        return (low / 1.3, high * 1.3) if high / low < 10 else (low / 1.5, high * 1.5)
    for level, _ in chart.levels:
        low, high = min(low, level), max(high, level)
    if chart.y_from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1e-8 * max(abs(high), abs(low), 1e-9):
        pad = abs(high) or 1.0
        return (low - (0.0 if chart.y_from_zero and low >= 0 else pad), high + pad)
    pad = (high - low) * 0.04
    return (low if low == 0 else low - pad, high if high == 0 else high + pad)


def layers(chart: LineChart) -> tuple[Floats, list[tuple[Line, Floats, Floats]]]:
    """Return the positions on x of a stacked chart, and the lower and upper border of each area there.

    The curves may have different points; each is 0 beyond its ends.
    """
    lines = [line for line in chart.lines if len(line.curve.x)]
    x = np.unique(np.concatenate([line.curve.x for line in lines])) if lines else np.array([0.0, 1.0])
    found, below = [], np.zeros(len(x))
    for line in lines:
        above = below + np.interp(x, line.curve.x, line.curve.y, left=0.0, right=0.0)
        found.append((line, below, above))
        below = above
    return x, found


def line_chart(chart: LineChart, ident: str) -> str:
    """Draw the chart as an ``<svg>`` element; `ident` makes its ids unique in the page."""
    xs = [line.curve.x for line in chart.lines if len(line.curve.x)]
    if chart.x_range is not None:
        x_range = chart.x_range
    else:
        x_range = (min((float(x[0]) for x in xs), default=0.0), max((float(x[-1]) for x in xs), default=1.0))
    if x_range[1] <= x_range[0]:
        x_range = (x_range[0], x_range[0] + 1.0)
    frame = _Frame(
        x_range, chart.y_range or needed_y_range(chart), log=chart.y_scale == "log", log_x=chart.x_scale == "log"
    )
    moments: list[str] = []
    for at, text in chart.moments:
        if x_range[0] <= at <= x_range[1]:
            x = frame.px(at)
            anchor = "end" if x > WIDTH / 2 else "start"
            moments.append(f'<g class="m" data-x="{x:.1f}"><path class="v" d="M{x:.1f} {TOP}V{frame.low}"/>')
            moments += [lettering("t", f"{x + (-4 if anchor == 'end' else 4):.1f}", TOP + 11, text, anchor), "</g>"]
    axis, body = frame.x_axis(chart.x_label), _areas(chart, frame) if chart.stacked else _curves(chart, frame)
    timed = over_time(chart) and not chart.marks
    drawn_axis = frame.timed(axis, body) if timed else [*axis, *body]
    parts = [*frame.y_axis(chart.y_label), *frame.levels(chart.levels), *moments, *drawn_axis, frame.border()]
    return whole(ident, chart.title, describe(chart), parts, times=x_range if timed else None)


def _curves(chart: LineChart, frame: _Frame) -> list[str]:
    body: list[str] = []
    for line in chart.lines:
        inside = (line.curve.x >= frame.x0) & (line.curve.x <= frame.x1)
        values = np.clip(line.curve.y[inside], frame.y0, frame.y1)
        heights = np.array([frame.py(v) if math.isfinite(v) else math.nan for v in values.tolist()])
        drawn = Curve(line.curve.x[inside], heights)
        if not chart.marks:
            drawn = thin(drawn, tolerance=0.4)
        points = [(frame.px(a), b) for a, b in zip(drawn.x.tolist(), drawn.y.tolist(), strict=True)]
        body += _intervals(chart, line, frame)
        if points:
            body.append(
                f'<path class="c" d="{_path(points)}" {stroke(line.style)}><title>{escape(line.name)}</title></path>'
            )
        if chart.marks:
            colour = COLOURS[line.style % len(COLOURS)]
            body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in points]
    return body


def _intervals(chart: LineChart, line: Line, frame: _Frame) -> list[str]:
    """Draw the 95 % interval around a mean: bars at marks, otherwise a band along the curve."""
    curve, colour = line.curve, COLOURS[line.style % len(COLOURS)]
    if curve.low is None or curve.high is None:
        return []
    inside = (curve.x >= frame.x0) & (curve.x <= frame.x1) & np.isfinite(curve.low) & np.isfinite(curve.high)
    x = curve.x[inside]
    low, high = (
        np.array([frame.py(value) for value in np.clip(border[inside], frame.y0, frame.y1).tolist()])
        for border in (curve.low, curve.high)
    )
    if chart.marks:
        ends = zip(x.tolist(), low.tolist(), high.tolist(), strict=True)
        return [f'<path class="c" stroke="{colour}" d="M{frame.px(at):.1f} {a:.1f}V{b:.1f}"/>' for at, a, b in ends]
    borders = [thin(Curve(x, border), tolerance=0.6) for border in (high, low)]
    upper, lower = ([(frame.px(a), b) for a, b in zip(c.x.tolist(), c.y.tolist(), strict=True)] for c in borders)
    return [f'<path class="i" fill="{colour}" d="{_path(upper + lower[::-1])}z"/>'] if upper else []


def _areas(chart: LineChart, frame: _Frame) -> list[str]:
    body: list[str] = []
    x, borders = layers(chart)
    for line, *both in borders:
        lower, upper = (
            [(frame.px(a), frame.py(b)) for a, b in zip(x.tolist(), border.tolist(), strict=True)] for border in both
        )
        body.append(
            f'<path fill="{COLOURS[line.style % len(COLOURS)]}" fill-opacity=".45" '
            f'd="{_path(upper + lower[::-1])}z"><title>{escape(line.name)}</title></path>'
        )
        body.append(f'<path class="e" d="{_path(upper)}" {stroke(line.style)}/>')
    return body


def bar_chart(chart: BarChart, ident: str) -> str:
    """Draw grouped bars as an ``<svg>`` element, each with its value above it if there is room."""
    present = [v for row in chart.values for v in row if v is not None and math.isfinite(v)]
    ends = chart.extremes()
    low = min([0.0, *ends])
    high = max([*ends, *(level for level, _ in chart.levels)], default=1.0)
    pad = (high - low) * 0.1 or 1.0
    frame = _Frame((0.0, 1.0), (low - (pad if low < 0 else 0.0), high + pad), log=False, bottom=30)
    body = [*frame.y_axis(chart.y_label), *frame.levels(chart.levels)]
    group_width = (WIDTH - LEFT - RIGHT) / max(len(chart.groups), 1)
    bar_width = group_width * 0.84 / max(len(chart.series), 1)
    room = bar_width >= 4 + 6 * max((len(f"{value:,.{chart.digits}f}") for value in present), default=0)
    words = []
    for g, group in enumerate(chart.groups):
        start = LEFT + g * group_width + group_width * 0.08
        for k, name in enumerate(chart.series):
            value = chart.values[g][k]
            if value is None or not math.isfinite(value):
                continue
            zero, top = frame.py(0.0), frame.py(value)
            x = start + k * bar_width
            half = chart.half_width(g, k)
            text = f"{value:,.{chart.digits}f}".replace("-", "\u2212")
            told = f"{text} \u00b1 {half:,.{chart.digits}f}" if half else text
            words.append(f"{group}, {name}: {told}")
            body.append(
                f'<path fill="{COLOURS[chart.shown[k] % len(COLOURS)]}" d="M{x:.1f} {zero:.1f}V{top:.1f}'
                f'h{bar_width * 0.9:.1f}V{zero:.1f}z"><title>{escape(f"{group}, {name}: {told}")}</title></path>'
            )
            middle = x + bar_width * 0.45
            high_end, low_end = frame.py(value + half), frame.py(value - half)
            if half:
                body.append(f'<path class="e" stroke="currentColor" d="M{middle:.1f} {low_end:.1f}V{high_end:.1f}"/>')
            if room:
                y = (high_end if value >= 0 else zero) - 3
                body.append(lettering("b", f"{x + bar_width * 0.45:.1f}", f"{y:.1f}", text))
        room_for = max(int(group_width / _LETTER), 3)
        name = group if len(group) <= room_for else f"{group[: room_for - 1]}\u2026"
        body.append(lettering("t", f"{LEFT + (g + 0.5) * group_width:.1f}", HEIGHT - 12, name))
    body.append(frame.border())
    return whole(ident, chart.title, f"{chart.y_label}. {'; '.join(words) or 'no data'}.", body)
