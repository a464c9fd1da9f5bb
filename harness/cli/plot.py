"""``yarnfair plot``: a figure of the report for print, and its data as CSV."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import CallError, nearest
from harness.base.words import counted
from harness.cli.output import Number, OutputFile, echo_text, echo_wrapped, json_option, print_json, print_result, warn

if TYPE_CHECKING:
    from harness.report.printed import Figures


@click.command()
@click.argument("runs", metavar="[RUN...]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--figure",
    metavar="NAME",
    help="Which figure [without it: lists those that these runs have; without RUN: those of the papers].",
)
@click.option(
    "--chart", "charts", metavar="TITLE", multiple=True, help="Only the figure's chart of that title. May be repeated."
)
@click.option("--width", type=Number(40, 600), metavar="MM", help="Width in mm [84 for one chart, 174 for several].")
@click.option(
    "-o",
    "--out",
    metavar="FIG.pdf|svg|png",
    type=OutputFile(),
    help="The file to write; its data goes beside it, as FIG.csv. -: SVG on standard output.",
)
@json_option
def plot(
    runs: tuple[Path, ...],
    figure: str | None,
    charts: tuple[str, ...],
    width: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Draw a figure of the report for print, and write its data as CSV.

    RUN is a directory that `yarnfair run` has written, or one that holds several of them. The same runs give the same
    file, byte for byte. Needs matplotlib (the extra `plot`).

    A figure of the papers (docs/gallery.md), such as ltyarn-7, needs no RUN. Its runs are looked for in ./runs, then
    its record in build/records and docs/records. Where there is none, the error names the one command that makes them.
    """
    if (figure is None) != (out is None):
        hint = "give both, or neither for a list of figures"
        raise CallError("--figure and -o go together", hint=hint)
    if figure is None and (charts or width is not None):
        raise CallError("--chart and --width are of a figure", hint="give --figure NAME and -o FILE")
    from harness.report.gallery import PANELS, gallery_figure
    from harness.report.printed import Figures, figures_of, write_figure

    if not runs and figure is None:
        _list_papers(as_json)
        return
    if figure in PANELS:
        found = Figures({figure: gallery_figure(figure, runs)}, "")
    elif runs:
        found = figures_of(runs)
    else:
        near = nearest(figure or "", PANELS)
        hint = (
            f"did you mean {near!r}?"
            if near
            else "give RUN for a figure of the report; `yarnfair plot` lists the papers'"
        )
        raise CallError(f"no figure {(figure or '')[:60]!r} of the papers", where="--figure", hint=hint)
    if figure is None or out is None:
        _list(found, as_json)
        return
    group = found.chosen(figure, charts)
    written = write_figure(group, out, width)
    warn(written.remarks)
    # The remark (number of seeds, meaning of the bands, what is not drawn) belongs to the caption in a paper.
    group = replace(group, text=" ".join(filter(None, (group.text, found.remark))))
    if as_json:
        print_json(
            {
                "figure": figure,
                "title": group.title,
                "text": group.text,
                "charts": [chart.title for chart in group.charts],
                "file": str(written.figure),
                "data": str(written.data) if written.data is not None else None,
            }
        )
        return
    echo_wrapped(f"{group.title}: {group.text}")
    echo_text(" and ".join(str(path) for path in (written.figure, written.data) if path is not None))


def _list(found: Figures, as_json: bool) -> None:
    wide = max(len(name) for name in found.groups)
    rows, lines = [], []
    for name, group in found.groups.items():
        titles = [chart.title for chart in group.charts]
        rows.append({"figure": name, "title": group.title, "charts": titles})
        lines.append(f"{name:<{wide}}  {group.title} ({counted(len(titles), 'chart')})")
    print_result(as_json, {"figures": rows}, lines)


def _list_papers(as_json: bool) -> None:
    """List the papers' figures, each with the command that makes its runs or its record."""
    from harness.report.gallery import PANELS, command_of

    wide = max(len(name) for name in PANELS)
    rows = [{"figure": name, "title": panel.title, "command": command_of(name)} for name, panel in PANELS.items()]
    lines = [f"{row['figure']:<{wide}}  {row['title']}\n{'':<{wide}}  from: {row['command']}" for row in rows]
    print_result(as_json, {"figures": rows}, lines)
