"""What the pages of the other kinds share: runs by variant, means over seeds, cells, bars. No page, no drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.data import Run
from harness.report.figures import Legend
from harness.report.svg import BarChart
from harness.report.tables import ABSENT, Head, Table, figure_text
from harness.results.catalogue import number
from harness.results.comparison import Measure, found_at

#: Curves or bars of more runs than this would not be told apart.
MOST_DRAWN = 8
#: Under a bar chart names of up to so many characters find room beside each other, all in all.
ROOM_FOR_NAMES = 56


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing that was run, with all its seeds."""

    name: str
    runs: Sequence[Run]

    def values(self, *keys: str) -> list[float]:
        """What stands at a path of keys in the summaries, where it is a number."""
        found = []
        for run in self.runs:
            value = number_at(run.summary, *keys)
            if value is not None:
                found.append(value)
        return found

    def mean(self, *keys: str) -> float | None:
        """The mean over the seeds; None where a run has no number there."""
        values = self.values(*keys)
        return math.fsum(values) / len(values) if values and len(values) == len(self.runs) else None

    def setting(self, name: str) -> float | None:
        """A setting that is a finite number."""
        return number_at(self.runs[0].settings, name)


def number_at(summary: Mapping[str, Any], *keys: str) -> float | None:
    """The finite number at a path of keys."""
    return number(found_at(summary, keys))


def variants_of(runs: Sequence[Run]) -> list[Variant]:
    """The variants in the order of the runs; runs without a summary are left out."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        if run.summary:
            found.setdefault(run.variant_without_seed(), []).append(run)
    return [Variant(name, own) for name, own in found.items()]


def first_seed(runs: Sequence[Run]) -> tuple[list[Run], str]:
    """The runs whose courses are drawn (one seed, at most MOST_DRAWN), and what to say when these are not all."""
    if not runs:
        return [], ""
    own = [run for run in runs if run.seed == runs[0].seed]
    shown = own[:MOST_DRAWN]
    if len(shown) == len(runs):
        return shown, ""
    said = f"Courses over time are drawn of {len(shown)} of the {len(runs)} runs"
    said += f" (seed {runs[0].seed})" if len(own) < len(runs) else ""
    return shown, said + ". Tables, bars and findings are of all of them."


def spread_text(variant: Variant, digits: int, *keys: str, scale: float = 1.0) -> str:
    """The mean, and with several seeds the least and the greatest."""
    values = [value * scale for value in variant.values(*keys)]
    if not values or len(values) != len(variant.runs):
        return ABSENT
    mean = figure_text(math.fsum(values) / len(values), digits)
    if len(values) == 1 or min(values) == max(values):
        return mean
    return f"{mean} ({figure_text(min(values), digits)} to {figure_text(max(values), digits)})"


def seeds_note(variants: Sequence[Variant]) -> str:
    """What the cells of a table are."""
    most = max((len(variant.runs) for variant in variants), default=1)
    return f"Means over {most} seeds (least to greatest). " if most > 1 else ""


def tables_of(caption: str, first: str, variants: Sequence[Variant], measures: Sequence[Measure]) -> list[Table]:
    """What was measured, a row a variant: a table of the whole runs, and one for each measure of parts.

    What no variant has is left out.
    """
    summaries = [run.summary for variant in variants for run in variant.runs]
    wanted = [(caption, "", [one for one in measures if one.whole])]
    wanted += [(one.title, one.note, one.each(summaries)) for one in measures if not one.whole]
    found = []
    for title, note, columns in wanted:
        known = [column for column in columns if any(variant.values(*column.path) for variant in variants)]
        heads = [Head(first), *(Head(column.title.strip(), column.unit) for column in known)]
        rows = [[v.name, *(spread_text(v, c.digits, *c.path, scale=c.scale) for c in known)] for v in variants]
        if known:
            found.append(Table(title, heads, rows, seeds_note(variants) + note))
    return found


#: What matters of a run of YARN's, over its seeds.
_OF_SEEDS = (
    Measure("loss integral", "s", 1, "sharing_loss_integral"),
    Measure("last loss", "s", 0, "last_loss_s"),
    Measure("sharing loss", "", 3, "sharing_loss"),
    Measure("sharing benefit", "", 3, "sharing_benefit"),
    Measure("makespan", "s", 0, "makespan_s"),
)


def seed_tables(runs: Sequence[Run]) -> list[Table]:
    """Each variant over its seeds: mean, least and greatest of what matters. Nothing with one seed."""
    variants = variants_of([run for run in runs if run.counts and run.seed is not None and run.phases is None])
    if max((len(variant.runs) for variant in variants), default=0) < 2:
        return []
    return tables_of("Each policy over its seeds", "policy", variants, _OF_SEEDS)


def every_number(caption: str, variants: Sequence[Variant]) -> list[Table]:
    """A row a variant, a column for every number that a summary has at its top or one level below."""
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
    """Bars of each variant for each thing (an MR-cluster, a job, a resource).

    Variants stand side by side on the axis where their names find room there, else they are told apart by colour, the
    first MOST_DRAWN of them. None when there is nothing to draw.
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
    """A part as per cent."""
    return f"{figure_text(None if value is None else value * 100, digits)} %"
