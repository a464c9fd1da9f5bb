"""All types of charts, and the single function that draws any of them as inline SVG."""

from __future__ import annotations

from harness.report.heat_map import HeatMap, heat_map
from harness.report.svg import BarChart, LineChart, bar_chart, line_chart

Chart = LineChart | BarChart | HeatMap


def drawing(chart: Chart, ident: str) -> str:
    """Draw a chart of any type as an ``<svg>`` element; `ident` makes its ids unique in the page."""
    if isinstance(chart, BarChart):
        return bar_chart(chart, ident)
    return heat_map(chart, ident) if isinstance(chart, HeatMap) else line_chart(chart, ident)
