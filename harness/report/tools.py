"""Shared by the pages of other experiment types: tables of variants, cells, bars. No page, no drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.report.data import Run
from harness.report.figures import Legend
from harness.report.svg import BarChart
from harness.report.tables import ABSENT, Head, Table, figure_text, means_said
from harness.report.variants import MOST_DRAWN, Variant, interval_text
from harness.results.comparison import Measure

#: Below a bar chart, names with up to this many characters in total fit beside each other.
ROOM_FOR_NAMES = 56


def first_seed(runs: Sequence[Run]) -> tuple[list[Run], str]:
    """Return the runs whose curves are drawn (one seed, at most MOST_DRAWN), and a remark if these are not all."""
    if not runs:
        return [], ""
    own = [run for run in runs if run.seed == runs[0].seed]
    shown = own[:MOST_DRAWN]
    if len(shown) == len(runs):
        return shown, ""
    said = f"Courses over time are drawn of {len(shown)} of the {len(runs)} runs"
    said += f" (seed {runs[0].seed})" if len(own) < len(runs) else ""
    return shown, said + ". Tables, bars and findings are of all of them."


def mean_text(variant: Variant, digits: int, *keys: str, scale: float = 1.0) -> str:
    """Return the mean, and with several seeds half of its 95 % interval; a dash if a seed has no number."""
    values = [value * scale for value in variant.values(*keys)]
    if not values or len(values) != len(variant.runs):
        return ABSENT
    return interval_text(values, lambda value: figure_text(value, digits))


def tables_of(caption: str, first: str, variants: Sequence[Variant], measures: Sequence[Measure]) -> list[Table]:
    """Return tables with one row per variant: one of the whole runs, and one for each metric of parts.

    Metrics that no variant has are left out.
    """
    summaries = [run.summary for variant in variants for run in variant.runs]
    wanted = [(caption, "", [one for one in measures if one.whole])]
    wanted += [(one.title, one.note, one.each(summaries)) for one in measures if not one.whole]
    found = []
    for title, note, columns in wanted:
        known = [column for column in columns if any(variant.values(*column.path) for variant in variants)]
        heads = [Head(first), *(Head(column.title.strip(), column.unit) for column in known)]
        rows = [[v.name, *(mean_text(v, c.digits, *c.path, scale=c.scale) for c in known)] for v in variants]
        if known:
            found.append(Table(title, heads, rows, means_said(variants) + note))
    return found


def every_number(caption: str, variants: Sequence[Variant]) -> list[Table]:
    """Return a table with one row per variant and a column for every number at the top two levels of a summary."""
    columns: dict[str, Measure] = {}
    for variant in variants:
        for name, value in variant.runs[0].summary.items():
            below = value if isinstance(value, Mapping) else ()
            if name != "wall_s":
                columns.setdefault(name, Measure(name, "", 3, name))
            for key in map(str, below):
                columns.setdefault(f"{name} {key}", Measure(f"{name} {key}", "", 3, f"{name}.*", name=key))
    return tables_of(caption, "run", variants, list(columns.values()))


def bars(
    title: str,
    y_label: str,
    variants: Sequence[Variant],
    things: Sequence[str],
    value_of: Callable[[Variant, str], float | None],
    *,
    short: Callable[[str], str] = str,
    levels: Sequence[tuple[float, str]] = (),
    digits: int = 2,
) -> tuple[BarChart, Legend] | None:
    """Return bars of each variant for each part (an MR-cluster, a job, a resource).

    Variants are side by side on the axis if their names fit; otherwise colours distinguish the first MOST_DRAWN of
    them. None if there is nothing to draw.
    """
    groups, series = [short(variant.name) for variant in variants], list(things)
    values = [[value_of(variant, thing) for thing in things] for variant in variants]
    if sum(len(name) + 1 for name in groups) > ROOM_FOR_NAMES:
        groups, series = list(things), [variant.name for variant in variants][:MOST_DRAWN]
        values = [list(row[:MOST_DRAWN]) for row in zip(*values, strict=True)]
    if not any(value is not None for row in values for value in row):
        return None
    legend = Legend([(name, k) for k, name in enumerate(series)])
    return BarChart(title, y_label, groups, series, values, levels, digits), legend


def per_cent(value: float | None, digits: int = 1) -> str:
    """Format a fraction as per cent."""
    return f"{figure_text(None if value is None else value * 100, digits)} %"
