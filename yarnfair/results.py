"""Runs as tables: the results of `run`, `replay` and `load`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.base.stats import half_width_95
from harness.results.catalogue import metric_of
from harness.results.tables import Results
from harness.results.tables import load as load_results

if TYPE_CHECKING:
    from harness.report.printed import Figures, Picture
    from yarnfair.comparing import Comparison

#: The default metrics of `Runs.summary`.
METRICS = ("makespan_s", "mean_completion_s", "sharing_loss_integral", "sharing_benefit")


class Runs:
    """Run directories as pandas tables.

    Parameters
    ----------
    results
        The result of `harness.results.load`.
    folder
        The folder of the runs; None if they come from several.

    Notes
    -----
    Columns end in their unit: ``_s`` (seconds), ``_mb`` (MiB), ``_vcores``, ``resource_seconds`` (MiB-seconds, or the
    unit of the experiment's resource). A column without one is a ratio or a count.
    """

    def __init__(self, results: Results, folder: Path | None = None) -> None:
        self._results, self.folder = results, folder

    def __len__(self) -> int:
        return len(self._results.records)

    def __repr__(self) -> str:
        variants = ", ".join(self.variants)
        return f"<{len(self)} run(s) of {variants}>"

    def _repr_html_(self) -> str:
        """Show means with 95 % intervals, in a notebook."""
        return str(self.summary().to_html(index=False, float_format="{:,.4g}".format))

    @property
    def directories(self) -> list[Path]:
        """The run directories, in the order of the tables."""
        return [record.path for record in self._results.records]

    @property
    def variants(self) -> list[str]:
        """The variants (a policy, where it acts, its settings), in the order of the runs."""
        return list(dict.fromkeys(record.variant for record in self._results.records))

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run: its identity, settings as ``setting.NAME``, and every number of its summary."""
        return self._results.runs

    @property
    def queues(self) -> pd.DataFrame:
        """One row per run and leaf queue."""
        return self._results.queues

    @property
    def jobs(self) -> pd.DataFrame:
        """One row per run and job."""
        return self._results.jobs

    @property
    def allocations(self) -> pd.DataFrame:
        """One row per run, sample and queue: the queue's allocation and demand."""
        return self._results.allocations

    @property
    def decisions(self) -> pd.DataFrame:
        """One row per run and decision of its controller."""
        return self._results.decisions

    def summary(self, metrics: Sequence[str] = ()) -> pd.DataFrame:
        """Compute the mean of metrics over the seeds of each variant, with 95 % intervals.

        Parameters
        ----------
        metrics
            Names of numeric columns of `runs`; by default makespan, mean completion time, sharing loss and benefit,
            as far as the runs have them.

        Returns
        -------
        pandas.DataFrame
            Columns ``variant``, ``metric``, ``unit``, ``n`` (seeds), ``mean``, ``low`` and ``high`` (Student's t
            interval; NaN for one seed).
        """
        table = self.runs
        wanted = list(metrics) or [name for name in METRICS if name in table]
        rows: list[dict[str, Any]] = []
        for variant, own in table.groupby("variant", sort=False):
            for name in wanted:
                values = own[name].dropna().astype(float).tolist()
                mean = sum(values) / len(values) if values else float("nan")
                half = half_width_95(values) if len(values) > 1 else float("nan")
                rows.append(
                    {
                        "variant": variant,
                        "metric": name,
                        "unit": metric_of(name).unit,
                        "n": len(values),
                        "mean": mean,
                        "low": mean - half,
                        "high": mean + half,
                    }
                )
        return pd.DataFrame(rows, columns=["variant", "metric", "unit", "n", "mean", "low", "high"])

    def compare(self, reference: str | None = None, correction: str = "bh") -> Comparison:
        """Compare the variants with each other; see `yarnfair.compare`.

        Parameters
        ----------
        reference
            The variant to compare with.
        correction
            The correction for multiple tests: ``bh`` (Benjamini-Hochberg), ``holm`` or ``none``.
        """
        from yarnfair.comparing import compare

        return compare(self, reference=reference, correction=correction)

    @cached_property
    def _figures(self) -> Figures:
        from harness.report.printed import figures_of

        return figures_of(self.directories)

    @property
    def figure_names(self) -> list[str]:
        """The names of figures that `figure` draws: the report's, and those of the papers that the runs support."""
        return list(self._figures.groups)

    def figure(self, name: str, width_mm: float = 120.0) -> Picture:
        """Draw a figure of the runs, as ``yarnfair plot`` does; a notebook shows it.

        Parameters
        ----------
        name
            One of `figure_names`.
        width_mm
            Its width in millimetres.

        Returns
        -------
        Picture
            A picture that a notebook displays (SVG). Needs the extra ``plot`` (matplotlib).
        """
        from harness.report.printed import picture

        return picture(self._figures.chosen(name), width_mm=width_mm)


def load(*paths: str | Path | Iterable[str | Path]) -> Runs:
    """Load run directories as tables.

    Parameters
    ----------
    *paths
        Run directories, or folders of them (also a campaign's).

    Returns
    -------
    Runs
        The runs, sorted by path.

    Raises
    ------
    InputError
        A path has no run, or a run is damaged.

    Examples
    --------
    >>> import yarnfair
    >>> yarnfair.load("nothing/there")
    Traceback (most recent call last):
    ...
    harness.base.errors.InputError: nothing/there: no such run; give directories that `yarnfair run` has written, ...
    """
    only = paths[0] if len(paths) == 1 else None
    return Runs(load_results(*paths), Path(only) if isinstance(only, str | Path) else None)


#: The same function, under a name that says what is loaded.
load_runs = load
