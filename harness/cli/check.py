"""``yarnfair check``: runs against a baseline, and a history of runs against itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, RegressionFound, RunInvalid, RunTimedOut
from harness.cli.output import json_option, print_json

if TYPE_CHECKING:
    from harness.results.check import Checked


class _HistoryTakesSeveral(click.Command):
    """``--history A B C``: all that follows the option up to the next one belongs to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        out: list[str] = []
        within = False
        given = 0
        for arg in args:
            if arg == "--history":
                within, given = True, 0
                continue
            if arg.startswith("-") and arg != "-":
                if within and not given:
                    out.append("--history")
                within = False
            if within:
                out += ["--history", arg]
                given += 1
            else:
                out.append(arg)
        if within and not given:
            out.append("--history")
        return super().parse_args(ctx, out)


@click.command(cls=_HistoryTakesSeveral)
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--baseline", "recorded", type=click.Path(path_type=Path, dir_okay=False), help="The recorded bounds.")
@click.option(
    "--history",
    metavar="DIR...",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Runs of before: lasting changes.",
)
@click.option(
    "--acknowledge",
    "accepted",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Changes that are accepted (YAML).",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit XML.")
@json_option
def check(
    runs: tuple[Path, ...],
    recorded: Path | None,
    history: tuple[Path, ...],
    accepted: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Check runs against recorded bounds.

    RUN is a run directory or a folder of them, or a file of `yarnfair bench --json`. Exit codes: 3 when a metric is
    beyond its bound (it is named), 4 when a run does not count because jobs failed, 5 when it timed out.
    """
    import datetime

    from harness.results.acknowledge import read_acknowledgements
    from harness.results.baseline import read_baseline
    from harness.results.check import Checked, acknowledged, check_history
    from harness.results.check import check as checked_of
    from harness.results.junit import write_junit
    from harness.results.runs import read_runs

    if recorded is None and not history:
        raise CallError("nothing to check against", where="check", mend="give --baseline FILE or --history DIR...")
    if not runs and (recorded is not None or not history):
        raise CallError("no run to check", where="RUN", mend="give a run directory before the options")
    own = read_runs(runs)
    found = checked_of(own, read_baseline(recorded)) if recorded is not None else Checked()
    if history:
        before = read_runs([*history, *runs])
        past = check_history(before)
        found.held += past.held
        found.remarks += past.remarks
        if recorded is None:
            found.invalid += [(str(run.path), *bad) for run in own if (bad := run.invalid()) is not None]
    if accepted is not None:
        found = acknowledged(found, read_acknowledgements(accepted), datetime.date.today().isoformat())
    if junit is not None:
        write_junit(found, junit)
    for remark in found.remarks:
        click.echo(f"warning: {remark}", err=True)
    if as_json:
        print_json(_document(found))
    else:
        for line in _lines(found):
            click.echo(line)
    _verdict(found, recorded)


def _document(found: Checked) -> dict[str, Any]:
    return {
        "verdict": "invalid" if found.invalid else "regression" if found.alarms else "fine",
        "regressions": [one.document() for one in found.alarms],
        "invalid": [{"run": run, "exit": code, "why": why} for run, code, why in found.invalid],
        "metrics": [one.document() for one in found.held],
        "remarks": found.remarks,
    }


def _lines(found: Checked) -> list[str]:
    out = []
    for held in found.held:
        if held.alarm or held.verdict == "acknowledged" or held.words.startswith("changed from"):
            who = f"{held.experiment}, {held.variant}"
            out.append(f"{held.verdict:>12}  {who}: {held.key.title()}: {held.words}")
    out += [f"{'invalid':>12}  {run}: {why}" for run, _, why in found.invalid]
    counts: dict[str, int] = {}
    for held in found.held:
        counts[held.verdict] = counts.get(held.verdict, 0) + 1
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return [*out, f"{len(found.held)} metrics held: {listed or 'none'}"]


def _verdict(found: Checked, recorded: Path | None) -> None:
    if found.invalid:
        run, _, why = found.invalid[0]
        code = 5 if all(code == 5 for _, code, _ in found.invalid) else 4
        more = f" (and {len(found.invalid) - 1} more run(s))" if len(found.invalid) > 1 else ""
        error = RunTimedOut if code == 5 else RunInvalid
        raise error(f"{why}{more}", where=run, mend="its figures do not count; mend the run first")
    alarms = found.alarms
    if alarms:
        names = list(dict.fromkeys(held.key.text() for held in alarms))
        raise RegressionFound(
            f"{len(alarms)} metric(s) beyond what is recorded: {', '.join(names)}",
            where=str(recorded) if recorded is not None else "history",
            mend="mend the cause, record a new baseline, or accept it with --acknowledge",
        )
