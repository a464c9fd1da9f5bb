"""The drawings of docs/gallery: each figure of the papers that has values, drawn from the records (`make figures`).

What each shows is defined in `harness.report.gallery.panels`, since `yarnfair plot` draws the same figures from runs.
Sentences stand in studies/pages/gallery.md, with their figures by reference.
"""

from __future__ import annotations

from html import escape

from harness.report.gallery.panels import Panel, Values, bars
from harness.report.svg import COLOURS, HEIGHT, WIDTH, BarChart, bar_chart

_LEGEND_ROW = 17
_STYLE = (
    "text{font-family:sans-serif;fill:#1b1f24}.t{font-size:12px}.l{font-size:12.5px}.b{font-size:10.5px}"
    ".g{stroke:#e3e6ea;fill:none}.a{stroke:#1b1f24;fill:none}.v{stroke:#5b636d;stroke-dasharray:1.5 3;fill:none}"
)


def drawing(name: str, panel: Panel, values: Values) -> str:
    """The panel as an SVG file: legible on any ground, without a page's styles."""
    drawn = bars(panel, values)
    styles = panel.styles
    columns: list[list[float | None]] = [list(column) for column in zip(*drawn.values(), strict=True)]
    levels = (panel.level,) if panel.level is not None else ()
    chart = BarChart(panel.title, panel.y_label, panel.groups, list(drawn), columns, levels, panel.digits, styles)
    body = bar_chart(chart, name).partition(">")[2]
    top = _LEGEND_ROW * len(drawn) + 6
    legend = "".join(
        f'<rect x="64" y="{k * _LEGEND_ROW - top + 4}" width="14" height="10" fill="{COLOURS[style]}"/>'
        f'<text class="t" x="84" y="{k * _LEGEND_ROW - top + 13}">{escape(series)}</text>'
        for k, (series, style) in enumerate(zip(drawn, styles, strict=True))
    )
    ground = f'<rect x="0" y="{-top}" width="{WIDTH}" height="{HEIGHT + top}" fill="#fff"/>'
    return (
        f'<svg viewBox="0 {-top} {WIDTH} {HEIGHT + top}" width="{WIDTH * 3 // 2}" role="img" '
        f'aria-labelledby="{name}-t {name}-d" xmlns="http://www.w3.org/2000/svg"><style>{_STYLE}</style>'
        f"{ground}{legend}{body}\n"
    )
