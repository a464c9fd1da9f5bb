"""Compares groups of runs with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pandas as pd

from harness.base.errors import CallError
from harness.results.compare import Comparison as Computed
from harness.results.compare import compare as compute
from harness.results.compare import verdict_sentences
from harness.results.runs import Group, groups, read_runs

CORRECTIONS = ("bh", "holm", "none")
_COLUMNS = (
    "metric",
    "queue",
    "unit",
    "contender",
    "n",
    "reference_median",
    "median",
    "difference",
    "low_95",
    "high_95",
    "p_adjusted",
    "verdict",
)


class RunDirectories(Protocol):
    """Arguments of a comparison other than paths, such as `yarnfair.Runs`."""

    folder: Path | None

    @property
    def directories(self) -> list[Path]:
        """The run directories."""


class Comparison:
    """The comparison of variants with a reference, metric by metric.

    Parameters
    ----------
    contests
        The contests as `harness.results.compare.compare` computed them.
    remarks
        What was left out, and why.
    """

    def __init__(self, contests: list[Computed], remarks: tuple[str, ...] = ()) -> None:
        self._contests, self.remarks = contests, remarks

    @property
    def reference(self) -> str:
        """The label of the group that the others are compared with."""
        return self._contests[0].groups[0].label

    @property
    def table(self) -> pd.DataFrame:
        """One row per metric, queue and contender.

        Columns: ``metric``, ``queue`` (empty: the whole run), ``unit``, ``contender``, ``n``, ``reference_median``,
        ``median``, ``difference`` (paired by seed: the median of the pairs' differences), ``low_95`` and ``high_95``
        (its interval), ``p_adjusted``, ``verdict``. Metrics without a better direction are left out.
        """
        rows = []
        for contest in self._contests:
            for row in contest.rows:
                for own in row.contenders if row.judged else ():
                    low, high = own.interval if own.interval is not None else (None, None)
                    figures = (own.n, row.median, own.median, own.difference, low, high, own.p_adjusted, own.verdict)
                    metric = row.key.metric
                    rows.append((row.key.key, row.key.queue or "", metric.unit, own.label, *figures))
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    @property
    def sentences(self) -> list[str]:
        """Sentences on what is better and what is worse, two for each contender."""
        return [
            f"{group.label} against {contest.groups[0].label}: " + " ".join(verdict_sentences(contest, group.label))
            for contest in self._contests
            for group in contest.groups[1:]
        ]

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        """Show the sentences and the clear differences, in a notebook."""
        from html import escape

        said = "".join(f"<p>{escape(one)}</p>" for one in self.sentences)
        table = self.table
        clear = table[table["verdict"].isin(["better", "worse"])]
        return said + str(clear.to_html(index=False, float_format="{:,.4g}".format, na_rep=""))


def compare(*runs: RunDirectories | str | Path, reference: str | None = None, correction: str = "bh") -> Comparison:
    """Compare groups of repeated runs, as ``yarnfair compare`` does.

    Parameters
    ----------
    *runs
        What `run` or `load` returned, folders of runs, or ``"LABEL=GLOB"``. The variants of one are compared with each
        other; several are compared with one another, variant by variant. Of a `Runs` only its own runs are used, even
        if its folder has others.
    reference
        The label of the group to compare with; by default the first, and among the policies of one folder ``fair``,
        else ``static``, ``drf``, ``fifo``, ``naive-hltrf``, ``ltrf``, ``hltrf``, else the first by name.
    correction
        The correction for multiple tests: ``bh`` (Benjamini-Hochberg), ``holm`` or ``none``.

    Returns
    -------
    Comparison
        Medians, differences with 95 % intervals, tests and verdicts.

    Raises
    ------
    CallError
        There is nothing to compare, or ``reference`` or ``correction`` is unknown.
    """
    if correction not in CORRECTIONS:
        raise CallError(f"no correction {correction!r}", hint=f"one of {', '.join(CORRECTIONS)}")
    arguments: list[str | Group] = []
    labels: set[str] = set()
    for number, one in enumerate(runs, 1):
        if isinstance(one, str | Path):
            arguments.append(str(one))
            continue
        label = one.folder.name if one.folder is not None else f"runs {number}"
        if label in labels:
            label += f" ({number})"
        labels.add(label)
        arguments.append(Group(label, read_runs(one.directories)))
    chosen = groups(arguments, reference)
    contests = [compute(contest, correction=correction) for contest in chosen.contests]  # type: ignore[arg-type]
    return Comparison(contests, tuple(chosen.remarks))
