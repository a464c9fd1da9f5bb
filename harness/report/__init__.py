"""The HTML report: one self-contained page from run directories. harness.results computes the metrics.

::

    reading    files of a run directory as plain values
    data       run directories as the report reads them
    variants   runs grouped by variant, with means over seeds
    findings   what the runs show about the papers' findings
    first      the first screen: verdict, changes by queue
    curves     curves reduced to few points
    figures    which curves, in which unit
    hierarchy  the plots of groups, running tasks and starvation
    sweeps     charts over a setting in which runs differ
    heat_maps  maps over two settings in which runs differ
    charts     all types of charts; svg and heat_map draw them
    tables     the page's tables
    page       sections, words
    templating the templates, and how names break
    kinds      which page runs of another experiment type have
    tools      what the pages of other experiment types share
    printed    the page's charts as figures for print
    gallery    the papers' figures for print
    trace      a run for Perfetto
    comparing  the page of `compare --html`
    trend      the page and the text of `trend`
    demo       what `demo` shows
    serving    a page on a port of this machine
    whatif     the page of `whatif`
    live       the page of `top --serve` and of `enforce`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import InputError
from harness.base.outputs import write_output

if TYPE_CHECKING:
    from harness.report.data import Run
    from harness.report.findings import Finding

__all__ = ["Report", "render_report"]


@dataclass(frozen=True, slots=True)
class Report:
    """The written report: its path, its size in bytes, its runs and its findings."""

    path: Path
    size: int
    runs: Sequence[Run]
    findings: Sequence[Finding]


def render_report(run_dirs: Sequence[Path], out: Path) -> Report:
    """Write one self-contained HTML page about one or several runs to `out`.

    The same run directories give the same page byte for byte on one machine, at any time.

    Raises
    ------
    InputError
        A directory is not a run directory, a file in it is damaged, the runs are of several kinds, or `out` cannot be
        written. `out` is then as it was before.
    """
    from harness.model.brought import names
    from harness.report.data import load_runs
    from harness.report.kinds import content_of, findings_of
    from harness.report.page import render_page

    runs = load_runs([Path(directory) for directory in run_dirs])
    if not runs:
        raise InputError("no runs to report on", hint="give directories that `yarnfair run` has written")
    # A paper's findings are about its own load, so a user's experiment is not judged by them.
    brought = set(names("experiments"))
    papers = [run for run in runs if run.experiment in brought]
    findings = findings_of(papers)
    page = render_page(runs, findings, content_of(runs)).encode("utf-8")
    write_output(Path(out), page, hint="choose another -o FILE")
    return Report(Path(out), len(page), runs, findings)
