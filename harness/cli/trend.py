"""``yarnfair trend``: a nightly job's metrics over its runs. Parsing and printing only."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.errors import RunInvalid
from harness.cli.output import OutputFile, json_option, print_result, warn


@click.command(short_help="Each metric over a nightly job's runs, and where it changed.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--metrics", multiple=True, metavar="PATTERN", help="These only (* and ?), as makespan_s or mean_*.")
@click.option("--html", "page", type=OutputFile(), help="Also write one HTML page with charts.")
@json_option
def trend(runs: tuple[Path, ...], metrics: tuple[str, ...], page: Path | None, as_json: bool) -> None:
    """Show each metric over the runs of a nightly job, and with which run and commit it changed for good.

    RUN is a run directory or a folder of them. Runs of one experiment, policy and backend are one history, oldest
    first. `yarnfair check --history` makes exit codes of the same changes.
    """
    from harness.report.trend import document, grouped, lines, write_page
    from harness.results.acknowledge import fits
    from harness.results.history import histories
    from harness.results.judged import require_fitting
    from harness.results.runs import read_runs

    own = read_runs(runs)
    found, remarks = histories(own)
    if all(run.invalid() is not None for run in own):
        raise RunInvalid(f"none of {len(own)} run(s) counts", where=str(runs[0]), hint="`yarnfair check` says why")
    require_fitting((one.key for one in found), metrics)
    if metrics:
        found = [one for one in found if any(fits(pattern, one.key.text()) for pattern in metrics)]
    groups = grouped(found)
    if page is not None:
        write_page(page, groups, remarks, ", ".join(map(str, runs)))
    warn(remarks)
    print_result(as_json, document(groups, remarks), lines(groups), hang=10)
