"""The drawings of docs/gallery: each figure of the papers that has values, drawn from the records (`make figures`).

What each shows is defined in `harness.report.gallery.panels`, since `yarnfair plot` draws the same figures from runs.
Sentences stand in studies/pages/gallery.md, with their figures by reference.
"""

from __future__ import annotations

from html import escape

from harness.report.gallery.panels import Panel, Values, bars, half_widths
from harness.report.svg import COLOURS, DARK_COLOURS, HEIGHT, WIDTH, BarChart, bar_chart

_LEGEND_ROW = 17
_STYLE = (
    "text{font-family:sans-serif;fill:#1b1f24}.t{font-size:12px}.l{font-size:12.5px}.b{font-size:10.5px}"
    ".g{stroke:#e3e6ea;fill:none}.a{stroke:#1b1f24;fill:none}.v{stroke:#5b636d;stroke-dasharray:1.5 3;fill:none}"
    ".e{stroke:#1b1f24;stroke-width:1.2;fill:none}"
    ".p{fill:#fff}@media (prefers-color-scheme:dark){.p{fill:#12161b}text{fill:#e6e9ee}.g{stroke:#2a3038}"
    ".a,.e{stroke:#e6e9ee}.v{stroke:#8b95a1}"
    + "".join(f"[fill='{light}']{{fill:{dark}}}" for light, dark in zip(COLOURS, DARK_COLOURS, strict=True))
    + "}"
)


def values_table(panel: Panel, values: Values) -> str:
    """Our values beside the paper's as a Markdown table; '' for a panel without any of the paper's."""
    if not panel.theirs:
        return ""
    halves = half_widths(panel, values)
    rows = [
        [name, *(_cell(height, half, panel.digits) for height, half in zip(heights, halves[name], strict=True))]
        for name, heights in bars(panel, values).items()
    ]
    head = [panel.y_label, *panel.groups]
    lines = [head, ["---", *("---:" for _ in panel.groups)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(height: float | None, half: float, digits: int) -> str:
    """Format a bar's value, with half of its 95 % interval if it is a mean over seeds."""
    if height is None:
        return "\u2013"
    text = f"{height:.{digits}f}"
    return f"{text} \u00b1 {half:.{digits}f}" if half > 0 else text


def drawing(name: str, panel: Panel, values: Values) -> str:
    """The panel as an SVG file: legible without a page's styles, in light and dark."""
    drawn, halves = bars(panel, values), half_widths(panel, values)
    styles = panel.styles
    columns: list[list[float | None]] = [list(column) for column in zip(*drawn.values(), strict=True)]
    levels = (panel.level,) if panel.level is not None else ()
    intervals = [list(column) for column in zip(*(halves[series] for series in drawn), strict=True)]
    several = any(half > 0 for row in intervals for half in row)
    chart = BarChart(
        panel.title,
        panel.y_label,
        panel.groups,
        list(drawn),
        columns,
        levels,
        panel.digits,
        styles,
        intervals if several else (),
    )
    body = bar_chart(chart, name).partition(">")[2]
    top = _LEGEND_ROW * len(drawn) + 6
    legend = "".join(
        f'<rect x="64" y="{k * _LEGEND_ROW - top + 4}" width="14" height="10" fill="{COLOURS[style]}"/>'
        f'<text class="t" x="84" y="{k * _LEGEND_ROW - top + 13}">{escape(series)}</text>'
        for k, (series, style) in enumerate(zip(drawn, styles, strict=True))
    )
    ground = f'<rect x="0" y="{-top}" width="{WIDTH}" height="{HEIGHT + top}" class="p"/>'
    return (
        f'<svg viewBox="0 {-top} {WIDTH} {HEIGHT + top}" width="{WIDTH * 3 // 2}" role="img" '
        f'aria-labelledby="{name}-t {name}-d" xmlns="http://www.w3.org/2000/svg"><style>{_STYLE}</style>'
        f"{ground}{legend}{body}\n"
    )
