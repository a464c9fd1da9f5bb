"""Comparisons of runs of MR-clusters as plain text of 80 columns. The measures: docs/reference/fawkes.md."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from harness.experiments.kind import Ended, Loaded, by_variant

WIDTH, _LABEL, _CELL = 80, 29, 12


def mean_at(summaries: Sequence[Mapping[str, Any]], *keys: str) -> float | None:
    """The mean over summaries of what stands at a path of keys, or None where one of them has nothing there."""
    values = []
    for summary in summaries:
        found: Any = summary
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, int | float):
            return None
        values.append(float(found))
    return statistics.fmean(values) if values else None


Column = tuple[str, list[dict[str, Any]]]


def _table(columns: Sequence[Column], rows: Sequence[tuple[str, tuple[str, ...], int]]) -> list[str]:
    """Measures down, runs across, four at a time. A row: (title, path of keys, digits)."""
    lines: list[str] = []
    at_once = (WIDTH - _LABEL) // _CELL
    names = [name.removeprefix("fawkes-") for name, _ in columns]
    heads = names if all(len(name) < _CELL for name in names) else [f"({at})" for at in range(1, len(names) + 1)]
    for first in range(0, len(columns), at_once):
        block = columns[first : first + at_once]
        if lines:
            lines.append("")
        lines.append(" " * _LABEL + "".join(f"{head:>{_CELL}}" for head in heads[first : first + at_once]))
        for title, keys, digits in rows:
            cells = [mean_at(summaries, *keys) for _, summaries in block] if keys else []
            shown = "".join(f"{'-' if c is None else format(c, f',.{digits}f'):>{_CELL}}" for c in cells)
            lines.append(f"{title:<{_LABEL}}{shown}".rstrip())
    if heads is not names:
        lines += ["", *(f"{head}: {name}" for head, name in zip(heads, names, strict=True))]
    return lines


def policies(_: Loaded, ended: Sequence[Ended]) -> list[str]:
    """The lines of a comparison of policies."""
    columns = list(by_variant(ended).items())
    clusters = list(columns[0][1][0]["queues"]) if columns else []
    rows: list[tuple[str, tuple[str, ...], int]] = [
        ("makespan (s)", ("makespan_s",), 0),
        ("job slowdown, mean", ("mean_slowdown",), 2),
        ("job slowdown, median", ("median_slowdown",), 2),
    ]
    for title, key, digits in (
        ("mean slowdown", "mean_slowdown", 2),
        ("mean completion (s)", "mean_completion_s", 0),
        ("last job ends (s)", "last_end_s", 0),
        ("most nodes", "max_nodes", 0),
        ("overall discrimination (s)", "overall_discrimination_s", 1),
    ):
        rows.append((title, (), 0))
        rows += [(f"  {name}"[: _LABEL - 1], ("queues", name, key), digits) for name in clusters]
    rows += [
        ("reconfigurations", ("reconfigurations",), 1),
        ("nodes that changed hands", ("nodes_moved",), 1),
        ("tasks killed", ("killed_tasks",), 1),
        ("data replicated (GB)", ("replicated_gb",), 1),
        ("nodes held (part)", ("utilisation", "nodes"), 3),
        ("slots in use (part)", ("utilisation", "slots"), 3),
        ("global discrimination, mean", ("global_discrimination", "mean"), 1),
    ]
    return _table(columns, rows)


def layouts(_: Loaded, ended: Sequence[Ended]) -> list[str]:
    """The lines of a comparison of layouts, beside their reference."""
    columns = list(by_variant(ended).items())
    applications = list(columns[0][1][0]["applications"]) if columns else []
    rows: list[tuple[str, tuple[str, ...], int]] = []
    for title, key, digits in (
        ("time (s)", "runtime_s", 0),
        ("over the reference", "over_reference", 3),
        ("speed-up", "speedup", 2),
        ("nodes have left after (s)", "left_after_s", 0),
    ):
        if any(
            mean_at(summaries, "applications", a, key) is not None for a in applications for _, summaries in columns
        ):
            rows.append((title, (), 0))
            rows += [(f"  {name}"[: _LABEL - 1], ("applications", name, key), digits) for name in applications]
    if any(mean_at(summaries, "idle", "per_node_s") for _, summaries in columns):
        rows.append(("idle: a node leaves in (s)", ("idle", "per_node_s"), 1))
    return _table(columns, rows)
