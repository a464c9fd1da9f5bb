"""``yarnfair report``: one self-contained HTML page from run directories."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.errors import CallError
from harness.cli.output import OutputFile, json_option, print_result, warn


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", type=OutputFile(), help="The page to write.")
@click.option(
    "--trace",
    metavar="FILE",
    type=OutputFile(),
    help="Write a trace of one run for Perfetto there, and no page.",
)
@json_option
def report(runs: tuple[Path, ...], out: Path | None, trace: Path | None, as_json: bool) -> None:
    """Write one self-contained HTML page from run directories.

    RUN is a directory that `yarnfair run` has written, or one that holds several of them. Without -o the page is
    RUN/report.html; for several RUNs it is report.html in the folder that they have in common.
    """
    if trace is not None:
        _trace(runs, out, trace, as_json)
        return
    from harness.report import render_report

    written = render_report(list(runs), out or _default_out(runs))
    if not as_json:
        warn(f"{run.path}: {run.state}" for run in written.runs if run.state != "finished")
    document = {
        "report": str(written.path),
        "bytes": written.size,
        "runs": [
            {"directory": str(run.path), "label": run.label, "policy": run.policy, "state": run.state}
            for run in written.runs
        ],
        "findings": [
            {"title": f.title, "source": f.source, "rule": f.rule, "verdict": f.verdict, "evidence": f.evidence}
            for f in written.findings
        ],
    }
    lines = [f"{finding.verdict:>13}  {finding.title}" for finding in written.findings]
    print_result(as_json, document, [*lines, f"{written.path} ({written.size / 1e6:.1f} MB)"])


def _trace(runs: tuple[Path, ...], out: Path | None, trace: Path, as_json: bool) -> None:
    if len(runs) > 1 or out is not None:
        raise CallError("--trace takes one RUN and no -o", hint="give one run, and make the page by a second call")
    from harness.report.trace import write_trace

    written = write_trace(runs[0], trace)
    text = f"{trace} ({written.size / 1e6:.1f} MB, {written.events} events): open it at https://ui.perfetto.dev"
    print_result(as_json, {"trace": str(trace), "bytes": written.size, "events": written.events}, [text])


def _default_out(runs: tuple[Path, ...]) -> Path:
    if len(runs) == 1:
        return runs[0] / "report.html"
    parents = [path.resolve().parent for path in runs]
    common = parents[0]
    while not all(common == parent or common in parent.parents for parent in parents):
        common = common.parent
    return common / "report.html"
