"""``yarnfair order``: an execution order for MapReduce jobs, and what it costs."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from harness.cli import names
from harness.cli.output import Number, json_option, print_json

if TYPE_CHECKING:
    from harness.policies.ordering.jobs import MapReduceJob

ALGORITHMS = ("given", "mk_jr", "mk_tct_jr", "tct", "optimal", "worst")
MAX_SLOTS = 10**9


@click.command()
@click.argument("jobs_file", metavar="JOBS.csv", type=click.Path(), shell_complete=names.brought("jobs"))
@click.option("--map-slots", type=click.IntRange(0, MAX_SLOTS), required=True, help="Map slots of the cluster.")
@click.option("--reduce-slots", type=click.IntRange(0, MAX_SLOTS), required=True, help="Reduce slots of the cluster.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), required=True, help="How the order is found.")
@click.option(
    "--objective",
    type=click.Choice(["makespan", "tct"]),
    help="What optimal minimises: the makespan (default) or the total completion time.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=Number(0, 10**9),
    help="Seconds after which optimal settles for the best order found, and says how far it may be off. [default: 60]",
)
@json_option
def order(
    jobs_file: str,
    map_slots: int,
    reduce_slots: int,
    algorithm: str,
    objective: str | None,
    time_limit_s: float | None,
    as_json: bool,
) -> None:
    """An execution order for the jobs of JOBS.csv on map and reduce slots under FIFO, and what it costs.

    JOBS.csv is a file, or a name of `yarnfair list jobs`. Its columns: job, maps, map_seconds, reduces, reduce_seconds.
    """
    from harness.model.brought import named
    from harness.policies.ordering import GREEDY, Slots, estimate, lower_bound, upper_bound, upper_bound_as_printed
    from harness.policies.ordering.bounds import delta, delta_as_printed

    if algorithm != "optimal":
        for option, value in (("--objective", objective), ("--time-limit", time_limit_s)):
            if value is not None:
                click.echo(f"yarnfair: {option} is for --algorithm optimal, {algorithm} ignores it", err=True)
    jobs = _read(str(named("jobs", jobs_file)))
    slots = Slots(map_slots, reduce_slots)
    slots.check(jobs)
    document: dict[str, Any] = {}
    if algorithm == "optimal":
        from harness.policies.ordering.search import optimal

        deadline = time.monotonic() + (60.0 if time_limit_s is None else time_limit_s)
        best = optimal(
            jobs, slots, "tct" if objective == "tct" else "makespan", stop=lambda: time.monotonic() >= deadline
        )
        indices = best.order
        document = {
            "objective": objective or "makespan",
            "proven": best.proven,
            "best_possible": _number(best.bound),
            "nodes": best.nodes,
        }
        if not best.proven:
            unit = "makespan" if document["objective"] == "makespan" else "total completion time"
            click.echo(
                f"yarnfair: stopped before the order was proven optimal: its {unit} is {float(best.value):.12g} s, "
                f"that of any order at least {float(best.bound):.12g} s",
                err=True,
            )
    else:
        indices = GREEDY[algorithm](jobs, slots)
    ordered = [jobs[index] for index in indices]
    found = estimate(ordered, slots)
    document = {
        "algorithm": algorithm,
        "order": [job.name for job in ordered],
        "makespan": _number(found.makespan),
        "total_completion_time": _number(found.total_completion_time),
        "completions": {job.name: _number(end) for job, end in zip(ordered, found.completions, strict=True)},
        "lower_bound": _number(lower_bound(jobs, slots)),
        "upper_bound": _number(upper_bound(ordered, slots)),
        **document,
    }
    if as_json:
        print_json(document)
        return
    _print(document, _number(upper_bound_as_printed(ordered, slots)))
    if algorithm == "mk_jr":
        factors = [f"{1 + float(of(jobs, slots)):.4g}" for of in (delta, delta_as_printed)]
        click.echo(f"over the best order's  {factors[0]} times or less (the thesis prints {factors[1]})")


def _read(path: str) -> tuple[MapReduceJob, ...]:
    from harness.base.errors import InputError
    from harness.base.files import read_whole
    from harness.policies.ordering.jobs import parse_jobs

    try:
        text = read_whole(path).decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", where=path, mend="name a readable CSV file"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", where=path, mend="save it as UTF-8") from error
    return parse_jobs(text, path)


def _number(value: Fraction) -> int | float:
    """Seconds: a whole number as such, else the nearest float."""
    return int(value) if value.denominator == 1 else float(value)


def _print(document: dict[str, Any], printed: int | float) -> None:
    ends: dict[str, int | float] = document["completions"]
    width = max(3, *(len(name) for name in ends))
    click.echo(f"{'job':<{width}}  {'ends at, s':>14}")
    for name, end in ends.items():
        click.echo(f"{name:<{width}}  {end:>14.12g}")
    click.echo(f"makespan               {document['makespan']:.12g} s")
    click.echo(f"total completion time  {document['total_completion_time']:.12g} s")
    click.echo(f"makespan of any order  {document['lower_bound']:.12g} s or more")
    click.echo(f"of this order          {document['upper_bound']:.12g} s or less (the thesis prints {printed:.12g})")
    if "proven" in document:
        what = {"makespan": "makespan", "tct": "total completion time"}[document["objective"]]
        if document["proven"]:
            click.echo(f"no order has a smaller {what} ({document['nodes']} partial orders looked at)")
        else:
            click.echo(f"no order has a {what} below {document['best_possible']:.12g} s; this may not be the best")
