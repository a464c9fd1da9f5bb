"""Say whether long-term fairness would help a cluster whose load was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd


class Assessment:
    """The answer of `assess`.

    Parameters
    ----------
    document
        What ``yarnfair assess --json`` prints.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def verdict(self) -> str:
        """``yes``, ``no`` or ``unsure``."""
        return str(self.document["verdict"])

    @property
    def why(self) -> str:
        """The reason, in words."""
        return str(self.document["why"])

    @property
    def queues(self) -> pd.DataFrame:
        """One row per policy and queue: recorded and simulated mean completion time in seconds, and the change."""
        rows = []
        for policy, own in self.document["policies"].items():
            for queue, figures in own["queues"].items():
                numbers = {name: value for name, value in figures.items() if not isinstance(value, list)}
                rows.append({"policy": policy, "queue": queue, **numbers})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return "\n".join(self.document["lines"])

    def _repr_html_(self) -> str:
        """Show the answer and the table of queues, in a notebook."""
        from html import escape

        said = "".join(f"<p>{escape(line)}</p>" for line in self.document["lines"])
        return said + str(self.queues.to_html(index=False, float_format="{:,.4g}".format, na_rep=""))


def assess(
    trace: str | Path,
    *,
    cluster: str | Path | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    period_s: float = 5.0,
) -> Assessment:
    """Say whether long-term fairness would help: which queues gain or lose, and the cost.

    Parameters
    ----------
    trace
        A trace of ``yarnfair record``, a run directory, SLS', Rumen's, a log in the Standard Workload
        Format, a table of jobs (CSV), or a folder of job history files.
    cluster
        For a trace of another tool: the file with its nodes and queues.
    out
        The folder of the simulated experiment; by default ``runs/assess-NAME``.
    processes
        Number of simulations at once; by default one per core.
    period_s
        The controller's period in seconds.

    Returns
    -------
    Assessment
        The verdict, and the values behind it.

    Raises
    ------
    InputError
        The trace cannot be simulated.
    """
    from harness.base.workers import main_not_imported
    from harness.predict.assess import assess as assessed
    from harness.predict.foreign import played_trace
    from harness.predict.writing import document_of, fresh_folder
    from harness.results.folders import Contents, claim

    path = Path(trace)
    folder = fresh_folder(Path(out) if out is not None else Path("runs") / f"assess-{path.stem}")
    claim(folder, Contents("assess", path.stem, ""))
    found = played_trace(path, None if cluster is None else Path(cluster), folder / "trace.jsonl")
    with main_not_imported():
        done = assessed(
            found,
            folder,
            period_s=period_s,
            scheduler=found.header.scheduler or "fair",
            missing=[note.note for note in found.notes[:3]],
            processes=processes,
        )
    return Assessment(document_of(done, None))
