"""The comparison of an experiment's runs as plain text of 80 columns. Tables of the report are harness.report's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 80
_LABEL, _CELL = 29, 12


def _number(value: Any, digits: int) -> str:
    return f"{value:,.{digits}f}" if isinstance(value, int | float) and not isinstance(value, bool) else "-"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."


def _columns(labels: Sequence[str]) -> list[str]:
    """Labels that fit a column, each different from the others: the common beginnings go first."""
    short = [_cut(label.replace("@outside", "@out"), _CELL - 1) for label in labels]
    if len(set(short)) == len(short):
        return short
    return [_cut(f"{at + 1}:{label}", _CELL - 1) for at, label in enumerate(labels)]


def over_seeds(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summaries of runs that differ in the seed as one: arithmetic means, null where one of them has null."""
    if len(summaries) == 1:
        return dict(summaries[0])
    return {key: _mean_of([summary.get(key) for summary in summaries]) for key in summaries[0]}


def _mean_of(values: Sequence[Any]) -> Any:
    if all(isinstance(value, Mapping) for value in values):
        return {key: _mean_of([value.get(key) for value in values]) for key in values[0]}
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return sum(values) / len(values)
    return None


def comparison(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Lines of at most 80 columns: measures down, runs across, four at a time. `runs`: (label, summary).

    What each measure is: docs/how-results-are-computed.md.
    """
    lines: list[str] = []
    columns = _columns([label for label, _ in runs])
    at_once = (WIDTH - _LABEL) // _CELL
    for first in range(0, len(runs), at_once):
        block = runs[first : first + at_once]
        if lines:
            lines.append("")
        lines.append(" " * _LABEL + "".join(f"{label:>{_CELL}}" for label in columns[first : first + at_once]))
        for title, key, digits in (
            ("makespan (s)", "makespan_s", 0),
            ("sharing benefit, mean", "sharing_benefit", 3),
            ("sharing loss, mean", "sharing_loss", 3),
            ("sharing loss integral (s)", "sharing_loss_integral", 1),
            ("last sharing loss (s)", "last_loss_s", 0),
        ):
            lines.append(_line(title, [_number(summary.get(key), digits) for _, summary in block]))
        for name in ("memory", "vcores"):
            used = [(summary.get("utilisation") or {}).get(name) for _, summary in block]
            lines.append(
                _line(f"{name} used (%)", [_number(x * 100 if isinstance(x, float) else None, 1) for x in used])
            )
        for title, key, digits in (
            ("soft fairness degree", "soft_fairness", 2),
            ("  by Theorem 1", "theta", 2),
            ("cost ($)", "cost_dollars", 2),
        ):
            if any(summary.get(key) is not None for _, summary in block):
                lines.append(_line(title, [_number(summary.get(key), digits) for _, summary in block]))
        queues = list(dict.fromkeys(name for _, summary in block for name in summary.get("queues", {})))
        for title, key, digits in (
            ("fairness degree", "fairness_degree", 3),
            ("speed-up over static", "speedup_over_static", 2),
            ("mean completion (s)", "mean_completion_s", 0),
            ("whole workload (s)", "workload_s", 0),
        ):
            lines.append(title)
            for queue in queues:
                values = [summary.get("queues", {}).get(queue, {}).get(key) for _, summary in block]
                name = "  " + queue.removeprefix("root.")
                lines.append(_line(name, [_number(value, digits) for value in values]))
    if any(column != label for column, (label, _) in zip(columns, runs, strict=True)):
        lines += [
            "",
            *(f"{column}: {label}" for column, (label, _) in zip(columns, runs, strict=True) if column != label),
        ]
    return [line.rstrip() for line in lines]


def _line(title: str, cells: Sequence[str]) -> str:
    return f"{_cut(title, _LABEL - 1):<{_LABEL}}" + "".join(f"{cell:>{_CELL}}" for cell in cells)
