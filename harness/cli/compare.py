"""``yarnfair compare``: groups of runs against each other, as a table, JSON or a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.words import counted, folded
from harness.cli.output import OutputFile, json_option, print_result, warn

if TYPE_CHECKING:
    from harness.results.compare import Comparison, Contender, Row


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--reference",
    metavar="LABEL",
    help="The group to compare with [the first; among a folder's policies: fair, else static, drf, fifo, "
    "naive-hltrf, ltrf, hltrf, else the first of the table].",
)
@click.option(
    "--correction",
    type=click.Choice(["bh", "holm", "none"]),
    default="bh",
    show_default=True,
    help="For the number of metrics: Benjamini-Hochberg, Holm, or none.",
)
@click.option("--all", "everything", is_flag=True, help="Also metrics that have no better direction.")
@click.option("--html", "page", type=OutputFile(), help="Also write one HTML page.")
@json_option
def compare(
    runs: tuple[str, ...], reference: str | None, correction: str, everything: bool, page: Path | None, as_json: bool
) -> None:
    """Compare groups of repeated runs, metric by metric and queue by queue.

    RUN is a run directory, a folder of them, or LABEL=GLOB. Several folders or labels are compared with each other,
    variant by variant; one folder's variants with each other. Runs pair by their seeds where both groups have the same.
    """
    from harness.results.compare import compare as computed
    from harness.results.compare import document
    from harness.results.runs import groups

    chosen = groups(runs, reference)
    found = [computed(contest, correction=correction) for contest in chosen.contests]  # type: ignore[arg-type]
    if page is not None:
        from harness.report.comparing import write_page

        write_page(found, chosen.remarks, page)
    warn(chosen.remarks)
    told = {
        "contests": [document(one) for one in found],
        "remarks": list(chosen.remarks),
        "page": str(page) if page is not None else None,
    }
    said = [line for one in found for line in lines(one, everything)]
    print_result(as_json, told, said if page is None else [*said, f"page: {page}"])


#: Width of a metric's name beside its figures; a longer name has a line of its own, so that all lines fit 80 columns.
NAME = 32


def lines(comparison: Comparison, everything: bool = False) -> list[str]:
    """Return one contest as lines of usually 80 columns: for each contender its verdict, then the table."""
    from harness.results.compare import method, verdict_sentences

    reference = comparison.groups[0]
    out = [comparison.title] if comparison.title else []
    for group in comparison.groups[1:]:
        said = [f"{one.label} ({counted(len(one.runs), 'run')})" for one in (group, reference)]
        out += ["", " against ".join(said)]
        for sentence in verdict_sentences(comparison, group.label):
            out += folded(sentence, 80, hang=0).splitlines()
        out.append(f"{'':<{NAME}}{'reference':>10}{'median':>10}{'95 % of difference':>20}  p")
        for row in comparison.rows:
            own = next((one for one in row.contenders if one.label == group.label), None)
            if own is None or not (everything or row.judged):
                continue
            out += _row(row, own)
        out += folded(method(comparison, group.label), 80, hang=0).splitlines()
    return [line.rstrip() for line in out]


def _row(row: Row, own: Contender) -> list[str]:
    from harness.results.compare import number_text

    metric = row.key.metric
    title = row.key.title() + (f" ({metric.unit})" if metric.unit else "")
    interval = "-"
    if own.interval is not None:
        low, high = (number_text(x, metric.digits) for x in own.interval)
        interval = f"{low} to {high}"
    p = "-" if own.p_adjusted is None else "<0.001" if own.p_adjusted < 0.001 else f"{own.p_adjusted:.3f}"
    figures = (
        f"{number_text(row.median, metric.digits):>10}{number_text(own.median, metric.digits):>10}  {interval:>18}  {p}"
    )
    named = [f"{title:<{NAME}}{figures}"] if len(title) <= NAME else [title, f"{'':<{NAME}}{figures}"]
    return [*named, f"    {own.words}"]
