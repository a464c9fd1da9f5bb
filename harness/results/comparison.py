"""The comparison of an experiment's runs as plain text of 80 columns. harness.report has the tables of the report.

Up to four runs are columns, with one row per metric. More runs, or names too long for a column, become rows, one per
variant; for a sweep, with the most important metrics only. Means over seeds have half of their 95 % interval. A mark
follows a value: ``+`` better than the reference by more than `SAME`, ``!`` worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.base.stats import half_width_95
from harness.results.catalogue import added_metrics, declared, metric_of, number
from harness.results.metric import Metric
from harness.results.sentences import SAME, percent

WIDTH = 80
_LABEL, _CELL, _MOST = 27, 13, 4
#: Widths of a label, and of a cell with its band.
_BESIDE, _BANDED = 26, 27
#: If runs are rows: the width of a cell, the maximum for a queue with a long name, and the maximum for names.
_NARROW, _WIDEST, _NAMES = 11, 26, 47
#: Up to this many runs, rows show everything; with more, only the most important metrics. The report has all.
_ALL = 8
#: With more queues than this, only those whose values fall or rise most between the runs are shown.
_MOST_QUEUES = 20

Summary = Mapping[str, Any]
#: Summaries of a variant's runs by seed.
Seeds = Mapping[Any, Summary]


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric in a table: of the whole run, or of each of its parts (queues, jobs, resources).

    ``key``: its path in a summary, levels joined by dots; a ``*`` matches each part's name, and ``name`` is the part
    (None: not expanded yet). ``scale``: factor. ``head``: a shorter title over a column. ``note``: text below it on a
    page. ``main``: whether a table of many runs has it, too. ``rare``: for parts; left out if it is 0 for all of them.
    """

    title: str
    unit: str
    digits: int
    key: str
    scale: float = 1.0
    head: str = ""
    note: str = ""
    main: bool = True
    rare: bool = False
    name: str | None = None

    @property
    def path(self) -> list[str]:
        """Return the keys that lead to it."""
        return [str(self.name) if part == "*" else part for part in self.key.split(".")]

    @property
    def metric(self) -> Metric:
        """Return the catalogue's metric of this measure."""
        return metric_of(self.key.replace("queues.*.", "queues."))

    @property
    def whole(self) -> bool:
        """Return whether it is one number: of the whole run, or of a named part."""
        return self.name is not None or "*" not in self.key

    def label(self, title: str) -> str:
        """Return a title with the unit; a part's table already names the part."""
        return f"{title} ({self.unit})" if self.unit and self.name is None else title

    def of(self, summary: Summary) -> float | None:
        """Return its value in a summary; None if there is no number."""
        value = number(found_at(summary, self.path))
        return None if value is None else value * self.scale

    def each(self, summaries: Sequence[Summary]) -> list[Measure]:
        """Return one measure for each part in a summary, named after the part."""
        above = self.path[: self.key.split(".").index("*")]
        parts = [found_at(summary, above) for summary in summaries]
        names = dict.fromkeys(name for found in parts if isinstance(found, Mapping) for name in found)
        each = [replace(self, name=name, title=name.removeprefix("root."), head="") for name in names]
        return [] if self.rare and not any(one.of(summary) for one in each for summary in summaries) else each

    def cell(
        self, summary: Summary, reference: Summary | None, seeds: Seeds | None = None, of_reference: Seeds | None = None
    ) -> str:
        """Return the value with its mark; a blank mark keeps the values aligned.

        Parameters
        ----------
        summary, reference
            Its run, or means over seeds, and what the mark compares with (None: nothing).
        seeds, of_reference
            The summaries of both by seed. The value then has half of its 95 % interval, and a mark only if the 95 %
            interval of the differences, seed by seed, excludes 0.
        """
        value = self.of(summary)
        if value is None:
            return "- "
        before = None if reference is None or reference is summary else self.of(reference)
        mark = _mark(self.metric, before, value)
        if mark != " " and not self._clear(seeds or {}, of_reference or {}):
            mark = " "
        half = half_width_95(self._values(seeds or {}))
        return f"{value:,.{self.digits}f}" + (f" \u00b1 {half:,.{self.digits}f}" if half > 0 else "") + mark

    def _values(self, seeds: Seeds) -> list[float]:
        return [value for value in map(self.of, seeds.values()) if value is not None]

    def _clear(self, seeds: Seeds, others: Seeds) -> bool:
        """Return whether the seeds agree on the direction of a difference; so does a single run.

        The sentences above the table go by relative changes. Where the mean of these has the other direction (one seed
        with a small value that grows manifold), a mark would contradict them.
        """
        pairs = [(self.of(seeds[seed]), self.of(others[seed])) for seed in seeds if seed in others]
        known = [(own, other) for own, other in pairs if own is not None and other is not None]
        differences = [own - other for own, other in known]
        if len(differences) < 2:
            return True
        mean = sum(differences) / len(differences)
        if all(other > 0 for _, other in known) and mean * sum(own / other - 1 for own, other in known) < 0:
            return False
        return half_width_95(differences) < abs(mean)


def shown(
    key: str,
    *,
    title: str | None = None,
    digits: int | None = None,
    percent: bool = False,
    head: str = "",
    note: str = "",
    main: bool = True,
    rare: bool = False,
    own: Sequence[Metric] = (),
) -> Measure:
    """Return a declared metric as a table shows it.

    Title, unit and digits are those of the metric's declaration, so that a change of it reaches every table.

    Parameters
    ----------
    key
        Its path in a summary; a ``*`` stands for each part's name.
    title, digits
        Where the table words it differently, or shows it more coarsely.
    percent
        Whether the table shows a part of 1 in percent.
    head, note, main, rare
        As in `Measure`.
    own
        The metrics that the calling package declares.

    Raises
    ------
    KeyError
        For a metric that is declared nowhere.
    """
    metric = declared(key, own)
    return Measure(
        title=metric.title if title is None else title,
        unit="%" if percent else metric.unit,
        digits=metric.digits if digits is None else digits,
        key=key,
        scale=100.0 if percent else 1.0,
        head=head,
        note=note,
        main=main,
        rare=rare,
    )


def found_at(summary: object, path: Iterable[str]) -> Any:
    """Return the value at a path of keys; None if there is none."""
    for key in path:
        summary = summary.get(key) if isinstance(summary, Mapping) else None
    return summary


def _mark(metric: Metric, before: float | None, value: float) -> str:
    """Return the mark; blank for a small difference.

    Small is a difference below `SAME` of the value before, or below the metric's smallest one that matters.
    """
    if before is None or abs(value - before) <= max(SAME * abs(before), metric.matters):
        return " "
    return {None: " ", False: "+", True: "!"}[metric.is_worse(value, before)]


#: Measures of runs of a YARN cluster.
YARN = (
    shown("makespan_s", digits=0),
    shown("sharing_benefit", head="sharing benefit", main=False),
    shown("sharing_loss", digits=3, head="mean loss", main=False),
    shown("sharing_loss_integral", digits=1, head="sharing loss"),
    shown("last_loss_s", head="last loss"),
    shown("utilisation.memory", title="memory used", digits=1, percent=True, head="memory", main=False),
    shown("utilisation.vcores", title="vcores used", digits=1, percent=True, head="vcores", main=False),
    shown("soft_fairness", digits=2, head="soft fairness", main=False),
    shown(
        "soft_fairness_p95", title="  exceeded in 5 % of the time", digits=2, head="exceeded in 5 % of time", main=False
    ),
    shown("theta", title="  by Theorem 1", digits=2, head="by Theorem 1", main=False),
    shown("cost_dollars"),
    shown("queues.*.fairness_degree", main=False),
    shown("queues.*.speedup_over_static", main=False),
    shown("queues.*.mean_completion_s", digits=0),
    shown("queues.*.workload_s", main=False),
)


def with_added(measures: Sequence[Measure]) -> Sequence[Measure]:
    """Return the measures; for runs on YARN, add the metrics of extensions that ask for a row.

    These have `Metric.in_comparison` set.
    """
    if measures is not YARN:
        return measures
    added = [metric for metric in added_metrics() if metric.in_comparison]
    return [*measures, *(Measure(one.title, one.unit, one.digits, one.key, main=False) for one in added)]


def over_seeds(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Merge summaries of runs that differ only in the seed: arithmetic means, null if one of them has null."""
    if len(summaries) == 1:
        return dict(summaries[0])
    return {key: _mean_of([summary.get(key) for summary in summaries]) for key in summaries[0]}


def _mean_of(values: Sequence[Any]) -> Any:
    if all(isinstance(value, Mapping) for value in values):
        return {key: _mean_of([value.get(key) for value in values]) for key in values[0]}
    return None if any(number(value) is None for value in values) else sum(values) / len(values)


def comparison(
    runs: Sequence[tuple[str, Summary]],
    reference: str | None = None,
    measures: Sequence[Measure] = YARN,
    seeds: Mapping[str, Seeds] | None = None,
) -> list[str]:
    """Return lines of at most 80 columns.

    Measures without a value in any run are left out. docs/how-results-are-computed.md defines the measures.

    Parameters
    ----------
    runs
        Label and summary of each run; with several seeds, the means over them.
    reference
        The label with which marks compare.
    measures
        What has a row or column.
    seeds
        By label, the summaries of a variant with several seeds (`Measure.cell`).
    """
    known = next((summary for label, summary in runs if label == reference), None)
    blocks = _blocks([summary for _, summary in runs], with_added(measures))
    of_seeds = seeds or {}

    def cell(row: Measure, at: int) -> str:
        label, summary = runs[at]
        return row.cell(summary, known, of_seeds.get(label), of_seeds.get(reference or ""))

    cells = [
        (title, [(_line(row), [cell(row, at) for at in range(len(runs))]) for row in rows]) for title, rows in blocks
    ]
    longest = max((len(text) for _, rows in cells for _, found in rows for text in found), default=0)
    width = max(_CELL, longest + 1)
    heads = [_wrapped(label.split(","), ",", width) for label, _ in runs]
    fits = len(runs) <= _MOST and _LABEL + len(runs) * width <= WIDTH
    if fits and all(len(line) < width for head in heads for line in head):
        lines = _columns(heads, cells, _LABEL, width)
    else:
        lines = _rows(runs, cell, blocks)
    several = any(len(own) > 1 for own in of_seeds.values())
    return _ended(lines, reference if known is not None and len(runs) > 1 else None, several=several)


def _ended(lines: Sequence[str], reference: str | None, *, several: bool = False) -> list[str]:
    """Append the meaning of the marks.

    Parameters
    ----------
    lines
        The table.
    reference
        The run with which the marks compare; None: there are no marks.
    several
        Whether values are means over several seeds.
    """
    legend = ["", f"+ better than {_cut(reference, 44)} by over {percent(SAME)}, ! worse"] if reference else []
    if legend and several:
        legend[-1] += ","
        legend.append("each where the 95 % interval of the differences, seed by seed, excludes 0")
    return [line.rstrip() for line in [*lines, *legend]]


def banded(runs: Sequence[tuple[str, Sequence[Summary]]], reference: str | None = None) -> list[str]:
    """Return the table for runs in many phases: each measure's mean, with the smallest and the largest in brackets.

    `runs`: (label, the summaries of its phases). At most two runs are columns; otherwise, or with long values, each
    measure has one line per run.
    """
    means = [(label, over_seeds(summaries)) for label, summaries in runs]
    known = next((mean for label, mean in means if label == reference), None)

    def cell(row: Measure, at: int) -> str:
        values = [row.of(summary) for summary in runs[at][1]]
        found = [value for value in values if value is not None]
        if len(found) < len(values) or not found:
            return "- "
        figure = row.cell(means[at][1], known)
        low, high = (f"{value:,.{row.digits}f}" for value in (min(found), max(found)))
        return f"{figure[:-1]} ({low} to {high}){figure[-1]}"

    blocks = [
        (title, [(_line(row), [cell(row, at) for at in range(len(runs))]) for row in rows])
        for title, rows in _blocks([summary for _, summaries in runs for summary in summaries], with_added(YARN))
    ]
    cells = [text for _, rows in blocks for _, found in rows for text in found]
    lines: list[str] = []
    if len(runs) <= 2 and max(map(len, (*cells, *(label for label, _ in runs)))) < _BANDED:
        lines = _columns([[label] for label, _ in runs], blocks, _BESIDE, _BANDED)
    else:
        width = min(max(len(label) for label, _ in runs), _NAMES)
        for title, rows in blocks:
            lines += [title] if title else []
            for of, found in rows:
                lines.append(of)
                lines += [
                    f"    {_cut(label, width):<{width}} {one:>27}" for (label, _), one in zip(runs, found, strict=True)
                ]
    return _ended(lines, reference if known is not None and len(runs) > 1 else None)


def _line(row: Measure) -> str:
    """Return the label of a line of a table."""
    return row.label(row.title) if row.name is None else f"  {row.title}"


def _blocks(summaries: Sequence[Summary], measures: Sequence[Measure]) -> list[tuple[str, list[Measure]]]:
    """Return (title, rows) for measures with a value somewhere; the first block, of whole runs, has no title."""

    def told(rows: Iterable[Measure]) -> list[Measure]:
        return [row for row in rows if any(row.of(summary) is not None for summary in summaries)]

    blocks = [("", told(measure for measure in measures if measure.whole))]
    for measure in measures:
        if measure.whole:
            continue
        rows, title = told(measure.each(summaries)), measure.label(measure.title)
        if (count := len(rows)) > _MOST_QUEUES:
            ranked = sorted(range(count), key=lambda at: _change(rows[at], summaries))
            ends = {*ranked[: _MOST_QUEUES // 2], *ranked[-_MOST_QUEUES // 2 :]}
            rows = [row for at, row in enumerate(rows) if at in ends]
            title = f"{title}: {_MOST_QUEUES} of {count:,} queues, least and greatest change"
        blocks.append((title, rows))
    return [block for block in blocks if block[1]]


def _change(row: Measure, summaries: Sequence[Summary]) -> float:
    """Return the factor by which a measure changes from the first run to the one that differs most."""
    values = [value for value in map(row.of, summaries) if value is not None]
    if len(values) < 2 or values[0] <= 0:
        return 1.0
    return max((value / values[0] for value in values[1:]), key=lambda factor: abs(factor - 1.0))


def _wrapped(parts: Sequence[str], between: str, cell: int) -> list[str]:
    """Wrap a name's parts into lines that fit a column of this width, as far as each part does."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) < cell:
            lines[-1] += f"{between}{part}"
        else:
            lines.append(part)
    return lines


def _heads(heads: Sequence[Sequence[str]], cell: int) -> list[str]:
    """Join multi-line heads side by side, aligned at their last lines."""
    height = max(len(head) for head in heads)
    filled = [[""] * (height - len(head)) + list(head) for head in heads]
    return ["".join(f"{head[at] + ' ':>{cell}}" for head in filled) for at in range(height)]


def _columns(
    heads: Sequence[Sequence[str]], blocks: Sequence[tuple[str, Sequence[tuple[str, list[str]]]]], label: int, cell: int
) -> list[str]:
    """Format one column per run.

    ``blocks``: (title, rows), where a row is (a measure's title, one cell per run); ``label`` and ``cell``: widths of
    the first column and of the others, in characters.
    """
    lines = [" " * label + line for line in _heads(heads, cell)]
    for title, rows in blocks:
        lines += [title] if title else []
        lines += [f"{_cut(of, label - 1):<{label}}" + "".join(f"{one:>{cell}}" for one in cells) for of, cells in rows]
    return lines


def _rows(
    runs: Sequence[tuple[str, Summary]],
    cell_of: Callable[[Measure, int], str],
    blocks: Sequence[tuple[str, Sequence[Measure]]],
) -> list[str]:
    """Format one table per block with one row per variant; a name that is too long has separate lines.

    ``cell_of``: the cell of a measure and of the run at a position.
    """
    width = min(max(len(label) for label, _ in runs), _NAMES)
    lines: list[str] = []
    for block, all_rows in blocks:
        rows = [row for row in all_rows if row.main or len(runs) <= _ALL]
        titles = [row.label(row.head or row.title) for row in rows]
        cells = [[cell_of(row, at) for row in rows] for at in range(len(runs))]
        words_of = [word for title in titles for word in title.split()]
        longest = max(map(len, (*words_of, *(text[:-1] for own in cells for text in own))), default=0)
        cell = min(max(_NARROW, longest + 2), _WIDEST)
        at_once = max(1, (WIDTH - width) // cell)
        for first in range(0, len(rows), at_once):
            words = [title.split() for title in titles[first : first + at_once]]
            heads = _heads([_wrapped([_cut(word, cell - 1) for word in own], " ", cell) for own in words], cell)
            lines += [""] if lines else []
            if len(block) > width:
                lines.append(block)
                block = ""
            lines += [" " * width + line for line in heads[:-1]]
            lines.append(f"{_cut(block, width):<{width}}{heads[-1]}")
            for at, (label, _) in enumerate(runs):
                *above, last = [label[k : k + WIDTH] for k in range(0, len(label), WIDTH)]
                if len(last) > width:
                    above, last = [*above, last], ""
                lines += above
                lines.append(
                    f"{last:<{width}}" + "".join(f"{text:>{cell}}" for text in cells[at][first : first + at_once])
                )
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."
