"""``yarnfair plan``: what a change of the scheduler's configuration does to each queue. Parsing and printing only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CallError, RegressionFound
from harness.cli.output import (
    OutputFile,
    cluster_option,
    dask_workers,
    executor_option,
    jobs_option,
    json_option,
    print_result,
    say,
)

if TYPE_CHECKING:
    from harness.predict.changes import Case


@click.command(short_help="What a change of the scheduler's configuration does to each queue.")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--before", required=True, metavar="FILE", help="The scheduler's file that is in force.")
@click.option("--after", metavar="FILE", help="The new one [that of --before].")
@click.option("--nodes", type=int, default=0, metavar="+N|-N", help="So many nodes more or fewer after the change.")
@click.option(
    "--submit",
    metavar="K=V,...",
    help="An application more: queue=Q,tasks=N,task_s=S[,memory_mb=M][,vcores=N][,user=U][,at_s=S], or like=ID.",
)
@click.option(
    "--fail-if",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Exit with 3 if it holds or cannot be judged (repeat it): 'wait(prod) > +10%', 'completion(*) > 600s', "
    "'refused(*) > 0'.",
)
@click.option("--junit", type=OutputFile(), help="Also write JUnit XML: a case for each rule and queue.")
@click.option("--html", "page", type=OutputFile(), help="Also write one HTML page.")
@click.option(
    "--drop", is_flag=True, help="Leave out the settings of both files that the simulator does not cover, and say so."
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="USER=GROUP,...",
    help="A user's groups, the primary one first (repeat it), for placement rules that ask for them.",
)
@click.option(
    "--place",
    type=click.Choice(["rules", "spread"]),
    default="rules",
    show_default=True,
    help="Place applications by the files' rules, or spread them over the leaves.",
)
@click.option(
    "--phases",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Phases of heartbeats that make the band of each figure [20, fewer of long traces].",
)
@cluster_option
@jobs_option
@executor_option
@json_option
def plan(
    *,
    trace: Path,
    before: str,
    after: str | None,
    nodes: int,
    submit: str | None,
    rules: tuple[str, ...],
    junit: Path | None,
    page: Path | None,
    drop: bool,
    groups: tuple[str, ...],
    place: Any,
    phases: int | None,
    cluster: Path | None,
    jobs: int | None,
    executor: str | None,
    as_json: bool,
) -> None:
    """Simulate TRACE under two configurations of the scheduler, and say what changes for each queue.

    Both files are checked as `yarnfair validate` does. Either is an allocation file or a capacity-scheduler.xml. TRACE
    is one of `yarnfair record`, a run directory, or a trace of others. The load stays as it was recorded.

    Exit code 3: a rule of --fail-if holds in one phase or more, or cannot be judged.
    """
    from harness.cli.scheduler_file import groups_of
    from harness.predict.answer import answer
    from harness.predict.plan_words import lines_of

    if junit is not None and not rules:
        raise CallError("--junit has no case without --fail-if", where="--junit", hint="give a rule")
    with dask_workers(executor) as workers:
        found = answer(
            trace,
            before,
            after,
            nodes=nodes,
            submit=submit,
            rules=rules,
            place=place,
            drop=drop,
            groups=groups_of(groups),
            phases=phases,
            cluster=cluster,
            processes=jobs,
            workers=workers,
            on_finding=say,
        )
    done, cases, there = found.planned, found.cases, after or before
    red = [case for case in cases if not case.passes]
    if junit is not None:
        _write_junit(junit, cases, f"{before} to {there}")
    if page is not None:
        from harness.predict.plan_page import write_page

        write_page(page, done, cases, str(trace))
    lines = [*lines_of(done), *_rule_lines(cases)]
    if not as_json:
        lines = [*(f"note: {note}" for note in done.notes), *lines]
    print_result(as_json, found.document, lines, hang=4)
    if red:
        raise RegressionFound(
            f"{len(red)} of {len(cases)} case(s) of --fail-if are not fine: "
            + "; ".join(f"{case.verdict}: {case.words()}" for case in red[:5]),
            where=there,
            hint="change the file, or the rule",
        )


def _rule_lines(cases: Sequence[Case]) -> list[str]:
    """Return lines for the outcome of every rule; for a rule on each queue, only the queues with a notable outcome."""
    lines = [f"{case.verdict}: {case.words()}" for case in cases if not case.passes or case.rule.queue != "*"]
    fine = sum(case.passes for case in cases)
    return [*lines, f"{len(cases)} case(s) of --fail-if: {fine} fine"] if cases else lines


def _write_junit(path: Path, cases: Sequence[Case], change: str) -> None:
    from harness.results.junit import OneCase, write_cases

    listed = [
        OneCase("yarnfair.plan", case.name(), case.passes, f"{case.verdict}: {case.words()}", kind=case.verdict)
        for case in cases
    ]
    write_cases("yarnfair plan", change, listed, path)
