"""The comparison of an experiment's runs as plain text of 80 columns. Tables of the report are harness.report's.

Up to four runs are columns, a row a measure. More runs, or names too long for a column, are rows: one a variant; of
a sweep with the measures that matter most.
Marks stand behind a value: ``+`` better than the reference by more than `SAME`, ``!`` worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.results.catalogue import Metric, metric_of, number
from harness.results.sentences import SAME, percent

WIDTH = 80
_LABEL, _CELL, _MOST = 27, 13, 4
#: The width of a label and of a cell with its band.
_BESIDE, _BANDED = 26, 27
#: Where runs are rows: the width of a cell, the most that a queue with a long name gets, and of the names at most.
_NARROW, _WIDEST, _NAMES = 11, 26, 47
#: Of so many runs rows show everything; of more what matters most, the report has all.
_ALL = 8
#: Of more queues than these, those whose figures fall most between the runs, and those whose figures rise most.
_MOST_QUEUES = 20
_KEYS = ("makespan_s", "sharing_loss_integral", "last_loss_s", "cost_dollars", "queues.mean_completion_s")

Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Row:
    """A measure: its title in a column's table and in the head of a column, and its value in a summary."""

    title: str
    head: str
    key: str
    digits: int
    of: Callable[[Summary], Any]

    def cell(self, summary: Summary, reference: Summary | None) -> str:
        """The value with its mark; a blank mark keeps the figures in line."""
        value = number(self.of(summary))
        if value is None:
            return "- "
        before = None if reference is None or reference is summary else number(self.of(reference))
        return f"{value:,.{self.digits}f}{_mark(metric_of(self.key), before, value)}"


def _mark(metric: Metric, before: float | None, value: float) -> str:
    """Blank where the difference is small: in proportion, or below what matters in the metric's unit."""
    if before is None or metric.better == "neither" or abs(value - before) <= max(SAME * abs(before), metric.matters):
        return " "
    return "+" if (value > before) == (metric.better == "higher") else "!"


def _whole(title: str, head: str, key: str, digits: int, scale: float = 1.0) -> _Row:
    def of(summary: Summary) -> Any:
        found: Any = summary
        for part in key.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found * scale if scale != 1.0 and isinstance(found, float) else found

    return _Row(title, head, key, digits, of)


def _of_queue(queue: str, key: str, digits: int) -> _Row:
    name = queue.removeprefix("root.")
    return _Row(f"  {name}", name, f"queues.{key}", digits, lambda summary: _queue(summary, queue).get(key))


def _queue(summary: Summary, queue: str) -> Mapping[str, Any]:
    found = (summary.get("queues") or {}).get(queue)
    return found if isinstance(found, Mapping) else {}


_WHOLE = (
    _whole("makespan (s)", "makespan (s)", "makespan_s", 0),
    _whole("sharing benefit, mean", "sharing benefit", "sharing_benefit", 3),
    _whole("sharing loss, mean", "mean loss", "sharing_loss", 3),
    _whole("sharing loss integral (s)", "sharing loss (s)", "sharing_loss_integral", 1),
    _whole("last sharing loss (s)", "last loss (s)", "last_loss_s", 0),
    _whole("memory used (%)", "memory (%)", "utilisation.memory", 1, 100.0),
    _whole("vcores used (%)", "vcores (%)", "utilisation.vcores", 1, 100.0),
    _whole("soft fairness degree", "soft fairness", "soft_fairness", 2),
    _whole("  by Theorem 1", "by Theorem 1", "theta", 2),
    _whole("cost ($)", "cost ($)", "cost_dollars", 2),
)
_QUEUES = (
    ("fairness degree", "fairness_degree", 3),
    ("speed-up over static", "speedup_over_static", 2),
    ("mean completion (s)", "mean_completion_s", 0),
    ("whole workload (s)", "workload_s", 0),
)


def over_seeds(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Summaries of runs that differ in the seed as one: arithmetic means, null where one of them has null."""
    if len(summaries) == 1:
        return dict(summaries[0])
    return {key: _mean_of([summary.get(key) for summary in summaries]) for key in summaries[0]}


def _mean_of(values: Sequence[Any]) -> Any:
    if all(isinstance(value, Mapping) for value in values):
        return {key: _mean_of([value.get(key) for value in values]) for key in values[0]}
    return None if any(number(value) is None for value in values) else sum(values) / len(values)


def comparison(runs: Sequence[tuple[str, Summary]], reference: str | None = None) -> list[str]:
    """Lines of at most 80 columns. `runs`: (label, summary); ``reference``: the label that marks go by.

    Measures without a value in any run are left out. What each measure is: docs/how-results-are-computed.md.
    """
    known = next((summary for label, summary in runs if label == reference), None)
    blocks = _blocks([summary for _, summary in runs])
    heads = [_wrapped(label.split(","), ",", _CELL) for label, _ in runs]
    if len(runs) <= _MOST and all(len(line) < _CELL for head in heads for line in head):
        cells = [
            (title, [(row.title, [row.cell(one, known) for _, one in runs]) for row in rows]) for title, rows in blocks
        ]
        lines = _columns(heads, cells, _LABEL, _CELL)
    else:
        lines = _rows(runs, known, blocks)
    return _ended(lines, reference if known is not None and len(runs) > 1 else None)


def _ended(lines: Sequence[str], reference: str | None) -> list[str]:
    """The lines, and what their marks mean. ``reference``: whom they go by; None: there are none."""
    legend = ["", f"+ better than {_cut(reference, 44)} by over {percent(SAME)}, ! worse"] if reference else []
    return [line.rstrip() for line in [*lines, *legend]]


def banded(runs: Sequence[tuple[str, Sequence[Summary]]], reference: str | None = None) -> list[str]:
    """The same table of runs in many phases: each measure's mean, and in brackets the smallest and the largest.

    `runs`: (label, the summaries of its phases). Two at most are columns; of more, or of long figures, each measure has
    a line a run.
    """
    means = [(label, over_seeds(summaries)) for label, summaries in runs]
    known = next((mean for label, mean in means if label == reference), None)

    def cell(row: _Row, at: int) -> str:
        values = [number(row.of(summary)) for summary in runs[at][1]]
        found = [value for value in values if value is not None]
        if len(found) < len(values) or not found:
            return "- "
        figure = row.cell(means[at][1], known)
        low, high = (f"{value:,.{row.digits}f}" for value in (min(found), max(found)))
        return f"{figure[:-1]} ({low} to {high}){figure[-1]}"

    blocks = [
        (title, [(row.title, [cell(row, at) for at in range(len(runs))]) for row in rows])
        for title, rows in _blocks([summary for _, summaries in runs for summary in summaries])
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


def _blocks(summaries: Sequence[Summary]) -> list[tuple[str, list[_Row]]]:
    """(title, its rows) of what has a value somewhere; the first block has no title."""

    def told(rows: Sequence[_Row]) -> list[_Row]:
        return [row for row in rows if any(number(row.of(summary)) is not None for summary in summaries)]

    queues = list(dict.fromkeys(name for summary in summaries for name in summary.get("queues") or {}))
    blocks = [("", told(_WHOLE))]
    for title, key, digits in _QUEUES:
        rows = told([_of_queue(queue, key, digits) for queue in queues])
        if (count := len(rows)) > _MOST_QUEUES:
            ranked = sorted(range(count), key=lambda at: _change(rows[at], summaries))
            ends = {*ranked[: _MOST_QUEUES // 2], *ranked[-_MOST_QUEUES // 2 :]}
            rows = [row for at, row in enumerate(rows) if at in ends]
            title = f"{title}: {_MOST_QUEUES} of {count:,} queues, least and greatest change"
        blocks.append((title, rows))
    return [block for block in blocks if block[1]]


def _change(row: _Row, summaries: Sequence[Summary]) -> float:
    """By what factor a measure changes from the first run to the one that is furthest from it."""
    values = [value for value in (number(row.of(summary)) for summary in summaries) if value is not None]
    if len(values) < 2 or values[0] <= 0:
        return 1.0
    return max((value / values[0] for value in values[1:]), key=lambda factor: abs(factor - 1.0))


def _wrapped(parts: Sequence[str], between: str, cell: int) -> list[str]:
    """Parts of a name in lines that fit a column of that width, as far as each part does."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) < cell:
            lines[-1] += f"{between}{part}"
        else:
            lines.append(part)
    return lines


def _heads(heads: Sequence[Sequence[str]], cell: int) -> list[str]:
    """Heads of some lines each, side by side, their last lines beside each other."""
    height = max(len(head) for head in heads)
    filled = [[""] * (height - len(head)) + list(head) for head in heads]
    return ["".join(f"{head[at] + ' ':>{cell}}" for head in filled) for at in range(height)]


def _columns(
    heads: Sequence[Sequence[str]], blocks: Sequence[tuple[str, Sequence[tuple[str, list[str]]]]], label: int, cell: int
) -> list[str]:
    """A column a run: blocks of (title, (a measure's title, a cell a run)), and the widths of both kinds of columns."""
    lines = [" " * label + line for line in _heads(heads, cell)]
    for title, rows in blocks:
        lines += [title] if title else []
        lines += [f"{_cut(of, label - 1):<{label}}" + "".join(f"{one:>{cell}}" for one in cells) for of, cells in rows]
    return lines


def _rows(
    runs: Sequence[tuple[str, Summary]], reference: Summary | None, blocks: Sequence[tuple[str, Sequence[_Row]]]
) -> list[str]:
    """A table a block, a row a variant; a name that is too long has lines of its own."""
    width = min(max(len(label) for label, _ in runs), _NAMES)
    lines: list[str] = []
    for title, all_rows in blocks:
        rows = [row for row in all_rows if row.key in _KEYS or len(runs) <= _ALL]
        longest = max((len(word) for row in rows for word in row.head.split()), default=0)
        cell = min(max(_NARROW, longest + 2), _WIDEST)
        at_once = max(1, (WIDTH - width) // cell)
        for first in range(0, len(rows), at_once):
            part = rows[first : first + at_once]
            heads = _heads(
                [_wrapped([_cut(word, cell - 1) for word in row.head.split()], " ", cell) for row in part], cell
            )
            lines += [""] if lines else []
            if len(title) > width:
                lines.append(title)
                title = ""
            lines += [" " * width + line for line in heads[:-1]]
            lines.append(f"{_cut(title, width):<{width}}{heads[-1]}")
            for label, summary in runs:
                *above, last = [label[at : at + WIDTH] for at in range(0, len(label), WIDTH)]
                if len(last) > width:
                    above, last = [*above, last], ""
                lines += above
                lines.append(f"{last:<{width}}" + "".join(f"{row.cell(summary, reference):>{cell}}" for row in part))
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."
