"""What a change of the scheduler's configuration does to each queue of a recorded load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd


class PlannedChange:
    """The answer of `plan`.

    Parameters
    ----------
    document
        What ``yarnfair plan --json`` prints.
    lines
        Its text.
    """

    def __init__(self, document: Mapping[str, Any], lines: Sequence[str]) -> None:
        self.document, self._lines = dict(document), list(lines)

    @property
    def verdict(self) -> str:
        """The result of the rules: ``fine``, ``unsure`` or ``regression``; ``fine`` without a rule."""
        return str(self.document["verdict"])

    @property
    def queues(self) -> pd.DataFrame:
        """One row per queue, the most changed first: its word, applications, and each value's mean before and after.

        Times are in seconds. A ``_change`` is relative to the value before; ``_low`` and ``_high`` are its smallest and
        largest value over all phases.
        """
        rows = []
        for one in self.document["queues"]:
            row = {name: one[name] for name in ("queue", "in", "applications", "word")}
            for name, figure in one.items():
                if not isinstance(figure, dict) or "word" not in figure:
                    continue
                for side in ("before", "after"):
                    row[f"{name}_{side}"] = figure[side]["mean"] if figure[side] is not None else None
                if name.endswith("_s"):
                    low, high = figure.get("change_band", (None, None))
                    row |= {f"{name}_change": figure.get("change"), f"{name}_low": low, f"{name}_high": high}
                    row[f"{name}_word"] = figure["word"]
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def rules(self) -> pd.DataFrame:
        """One row per rule and queue: the result, and whether it is fine."""
        columns = ["rule", "queue", "verdict", "value", "phases_beyond", "phases", "why"]
        return pd.DataFrame(self.document["fail_if"], columns=columns)

    def __repr__(self) -> str:
        return "\n".join(self._lines)

    def _repr_html_(self) -> str:
        """Show the answer and the table of queues, in a notebook."""
        from html import escape

        shown = ["queue", "word", "applications", "completion_s_before", "completion_s_after", "completion_s_change"]
        said = "".join(f"<p>{escape(note)}</p>" for note in self.document["notes"])
        return said + str(self.queues[shown].to_html(index=False, float_format="{:,.4g}".format, na_rep=""))


def plan(
    trace: str | Path,
    before: str | Path,
    after: str | Path | None = None,
    *,
    nodes: int = 0,
    submit: str | None = None,
    fail_if: Sequence[str] = (),
    place: Literal["rules", "spread"] = "rules",
    drop: bool = False,
    groups: Mapping[str, Sequence[str]] | None = None,
    phases: int | None = None,
    cluster: str | Path | None = None,
    processes: int | None = None,
) -> PlannedChange:
    """Say what a change of the scheduler's configuration does to each queue of a recorded load.

    Parameters
    ----------
    trace
        A trace of ``yarnfair record``, a run directory, SLS', Rumen's, a log in the Standard Workload
        Format, a table of jobs (CSV), or a folder of job history files.
    before
        The scheduler's file that is in force: an allocation file or a capacity-scheduler.xml.
    after
        The new one; by default the same.
    nodes
        The number of nodes to add (or remove, if negative) after the change.
    submit
        An additional application: ``queue=Q,tasks=N,task_s=S`` or ``like=ID``.
    fail_if
        Rules such as ``wait(prod) > +10%``. Their result is in ``verdict``; nothing is raised.
    place
        Place applications by the files' rules, or spread them over the leaves.
    drop
        Leave out the settings that the simulator does not cover.
    groups
        User to groups, the primary one first, for placement rules that use them.
    phases
        Number of phases of heartbeats; by default 20, fewer for long traces.
    cluster
        For a trace of another tool: the file with its nodes and queues.
    processes
        Number of simulations at once; by default one per core.

    Returns
    -------
    PlannedChange
        Every queue before and after, with bands and words.

    Raises
    ------
    CallError
        Nothing changes, or a rule or an application is invalid.
    InputError
        The trace cannot be simulated, or ``yarnfair validate`` refuses a file: its findings are in the message.
    """
    from harness.base.errors import InputError
    from harness.base.workers import main_not_imported
    from harness.predict.answer import FilesRefused, answer
    from harness.predict.plan_words import lines_of

    findings: list[str] = []
    try:
        with main_not_imported():
            found = answer(
                Path(trace),
                str(before),
                None if after is None else str(after),
                nodes=nodes,
                submit=submit,
                rules=fail_if,
                place=place,
                drop=drop,
                groups={user: tuple(own) for user, own in (groups or {}).items()},
                phases=phases,
                cluster=None if cluster is None else Path(cluster),
                processes=processes,
                on_finding=findings.append,
            )
    except FilesRefused as error:
        raise InputError(f"{error.what}: {'; '.join(findings)}", where=error.where, hint=error.hint) from None
    notes = [f"note: {note}" for note in (*findings, *found.planned.notes)]
    return PlannedChange(found.document, [*notes, *lines_of(found.planned), *(case.words() for case in found.cases)])
