"""``yarnfair check``: compares runs with a baseline, and the newest run of a history with the earlier ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, InputError, RegressionFound, RunInvalid, RunTimedOut
from harness.cli.output import Number, OutputFile, json_option, print_result, say, warn

if TYPE_CHECKING:
    from harness.results.check import Checked
    from harness.results.judged import Only


class _HistoryTakesSeveral(click.Command):
    """A command whose option ``--history`` takes all following arguments up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        out: list[str] = []
        within = False
        for arg in args:
            option = arg.startswith("-") and arg != "-"
            within = arg == "--history" if option else within
            if within and not option and out[-1] != "--history":
                out.append("--history")
            out.append(arg)
        return super().parse_args(ctx, out)


@click.command(cls=_HistoryTakesSeveral)
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--baseline", "recorded", type=click.Path(path_type=Path, dir_okay=False), help="The recorded bounds.")
@click.option(
    "--history",
    metavar="DIR...",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Earlier runs: find lasting changes.",
)
@click.option(
    "--acknowledge",
    "accepted",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Accepted changes (YAML).",
)
@click.option(
    "--metrics", multiple=True, metavar="PATTERN", help="Judge these only (* and ?), as makespan_s or mean_*."
)
@click.option(
    "--tolerance",
    type=Number(0, 10),
    default=0.0,
    help="Accept differences up to this part of the recorded value: 0.02 is 2 %.",
)
@click.option(
    "--only",
    type=click.Choice(["worse", "change", "any"]),
    default="change",
    show_default=True,
    help="What fails: worse figures; also changes of metrics without a better side; also better figures.",
)
@click.option("--require-judged", is_flag=True, help="End with 1 when a metric could not be judged.")
@click.option("--github", "on_github", is_flag=True, help="Also annotate for GitHub, on standard error.")
@click.option("--code-quality", type=OutputFile(), help="Also write GitLab's Code Quality report.")
@click.option("--junit", type=OutputFile(), help="Also write JUnit XML.")
@click.option(
    "--link",
    default="",
    metavar="URL",
    help="Where the page of `yarnfair trend` is: named in annotations and JUnit XML.",
)
@json_option
def check(
    *,
    runs: tuple[Path, ...],
    recorded: Path | None,
    history: tuple[Path, ...],
    accepted: Path | None,
    metrics: tuple[str, ...],
    tolerance: float,
    only: Only,
    require_judged: bool,
    on_github: bool,
    code_quality: Path | None,
    junit: Path | None,
    link: str,
    as_json: bool,
) -> None:
    """Check runs against recorded bounds.

    RUN is a run directory or a folder of them, or a file of `yarnfair bench --json`. All metrics of a variant that are
    beyond their bounds are one failure; the five worst are named. The last line says how much could be judged. Exit
    codes: 3 when there is a failure, 4 when a run does not count because jobs failed, 5 when it timed out.
    """
    import datetime

    from harness.results.acknowledge import read_acknowledgements
    from harness.results.baseline import read_baseline
    from harness.results.check import Checked, acknowledged, check_history
    from harness.results.check import check as checked_of
    from harness.results.judged import github, narrowed, require_fitting, write_code_quality
    from harness.results.junit import write_junit
    from harness.results.runs import read_runs

    if recorded is None and not history:
        raise CallError("nothing to check against", where="check", hint="give --baseline FILE or --history DIR...")
    if not runs and (recorded is not None or not history):
        raise CallError("no run to check", where="RUN", hint="give a run directory before the options")
    own = read_runs(runs)
    found = Checked()
    if recorded is not None:
        folder = any(path.is_dir() and not (path / "run.json").exists() for path in runs)
        found = checked_of(own, read_baseline(recorded), folder=folder, strict=require_judged)
    if history:
        before = read_runs([*history, *runs])
        past = check_history(before)
        found.held += past.held
        found.remarks += past.remarks
        if recorded is None:
            found.invalid += [
                (str(run.path), bad.exit_code, bad.reason) for run in own if (bad := run.invalid()) is not None
            ]
    if accepted is not None:
        found = acknowledged(found, read_acknowledgements(accepted), datetime.date.today().isoformat())
    if not found.invalid:
        require_fitting((one.key for one in found.held), metrics)
    found = narrowed(found, metrics=metrics, tolerance=tolerance, only=only)
    place = str(recorded if recorded is not None else history[0])
    if junit is not None:
        write_junit(found, junit, link, strict=require_judged)
    if code_quality is not None:
        write_code_quality(found, place, code_quality, link)
    for line in github(found, place, link, strict=require_judged) if on_github else ():
        click.echo(line, err=True)
    warn(found.remarks)
    print_result(as_json, _document(found, strict=require_judged), _lines(found, only))
    _verdict(found, recorded, require_judged)


def _document(found: Checked, *, strict: bool) -> dict[str, Any]:
    from harness.results.judged import failures

    left = strict and any(one.verdict == "not judged" for one in found.held)
    return {
        "verdict": "invalid" if found.invalid else "regression" if found.alarms else "not judged" if left else "fine",
        "judged": sum(one.verdict != "not judged" for one in found.held),
        "failures": [
            {"experiment": one.experiment, "variant": one.variant, "metrics": len(one.metrics), "words": one.words}
            for one in failures(found)
        ],
        "regressions": [one.document() for failure in failures(found) for one in failure.alarms],
        "invalid": [{"run": run, "exit": code, "why": why} for run, code, why in found.invalid],
        "metrics": [one.document() for one in found.held],
        "remarks": found.remarks,
    }


def _lines(found: Checked, only: Only) -> list[str]:
    """Return lines on failures, accepted changes and, unless ``only`` is worse, improvements and lasting changes."""
    from harness.results.judged import failures, good_lines

    out = []
    for failure in failures(found):
        out += failure.lines
    for held in found.held:
        if held.verdict == "acknowledged":
            who = f"{held.experiment}, {held.variant}"
            out.append(f"{held.verdict:>12}  {who}: {held.key.title()}: {held.words}")
    out += good_lines(found) if only != "worse" else []
    out += [f"{'invalid':>12}  {run}: {why}" for run, _, why in found.invalid]
    counts = Counter(held.verdict for held in found.held)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return [*out, f"{len(found.held)} metrics held: {listed or 'none'}"]


def _verdict(found: Checked, recorded: Path | None, require_judged: bool) -> None:
    """Raise the error that determines the exit code, if there is one.

    The last line on standard error tells in any case how much was judged.
    """
    from harness.results.check import NO_RUN
    from harness.results.judged import failures, judged

    if found.invalid:
        run, _, why = found.invalid[0]
        code = 5 if all(code == 5 for _, code, _ in found.invalid) else 4
        more = f" (and {len(found.invalid) - 1} more run(s))" if len(found.invalid) > 1 else ""
        error = RunTimedOut if code == 5 else RunInvalid
        raise error(f"{why}{more}", where=run, hint="its figures do not count; mend the run first")
    where = str(recorded) if recorded is not None else "history"
    failed = failures(found)
    if failed:
        names = list(dict.fromkeys(one.key.text() for failure in failed for one in failure.alarms))
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise RegressionFound(
            f"{len(failed)} failure(s), {len(names)} metric(s) beyond what is recorded: {listed} ({judged(found)})",
            where=where,
            hint="mend the cause, record a new baseline, or accept it with --acknowledge",
        )
    left = [one for one in found.held if one.verdict == "not judged"]
    if require_judged and left:
        hint = "record more runs (five show a spread), record with `baseline --margin`, or choose with --metrics"
        if any(one.key == NO_RUN for one in left):
            hint = "give the runs that the warnings above name, or record a new baseline with them, or without them"
        raise InputError(judged(found), where=where, hint=hint)
    say(f"{where}: {judged(found)}")
