"""``yarnfair order``: an execution order for MapReduce jobs, and its makespan and total completion time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from harness.base.sums import plain
from harness.cli import names
from harness.cli.output import Number, json_option, named_values, print_result, say

if TYPE_CHECKING:
    from harness.systems.mrorder.ordering.estimator import Estimate
    from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots

ALGORITHMS = ("given", "mk_jr", "mk_tct_jr", "tct", "optimal", "worst", "mrorder")
MAX_SLOTS = 10**9


@click.command()
@click.argument("jobs_file", metavar="JOBS.csv", type=click.Path(), shell_complete=names.brought("jobs"))
@click.option("--map-slots", type=click.IntRange(0, MAX_SLOTS), required=True, help="Map slots of the cluster.")
@click.option("--reduce-slots", type=click.IntRange(0, MAX_SLOTS), required=True, help="Reduce slots of the cluster.")
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    required=True,
    help="How the order is found; mrorder: online, as jobs arrive.",
)
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
@click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting of mrorder, such as target=tct.")
@json_option
def order(
    *,
    jobs_file: str,
    map_slots: int,
    reduce_slots: int,
    algorithm: str,
    objective: str | None,
    time_limit_s: float | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compute an execution order for the jobs of JOBS.csv on map and reduce slots under FIFO, and its completion times.

    JOBS.csv is a file, or a name of `yarnfair list jobs`. Its columns are job, maps, map_seconds, reduces,
    reduce_seconds. Optional columns: arrival_seconds (for mrorder), map_task_seconds and reduce_task_seconds (the times
    of single tasks).
    """
    from harness.model.brought import named
    from harness.systems.mrorder.ordering import Slots

    for option, value, of in (
        ("--objective", objective, "optimal"),
        ("--time-limit", time_limit_s, "optimal"),
        ("--set", settings or None, "mrorder"),
    ):
        if value is not None and algorithm != of:
            say(f"{option} is for --algorithm {of}, {algorithm} ignores it")
    path = str(named("jobs", jobs_file))
    jobs = _read(path)
    slots = Slots(map_slots, reduce_slots)
    slots.check(jobs)
    if algorithm == "mrorder":
        document = _online(jobs, slots, settings, path)
        print_result(as_json, document, _online_lines(document))
        return
    if jobs[0].arrival_s is not None:
        say(f"arrival_seconds is for --algorithm mrorder, {algorithm} takes all jobs as there at 0")
    document, further = _offline(jobs, slots, algorithm, objective, time_limit_s)
    print_result(as_json, document, [*_lines(document), *further])


def _offline(
    jobs: tuple[MapReduceJob, ...], slots: Slots, algorithm: str, objective: str | None, time_limit_s: float | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the answer if all jobs are submitted at time 0, and further lines of its text."""
    from harness.systems.mrorder.ordering import (
        GREEDY,
        estimate,
        executed,
        lower_bound,
        upper_bound,
        upper_bound_as_printed,
    )
    from harness.systems.mrorder.ordering.bounds import by_its_tasks, delta, delta_as_printed

    document: dict[str, Any] = {}
    if algorithm == "optimal":
        from harness.systems.mrorder.ordering.search import optimal

        deadline = time.monotonic() + (60.0 if time_limit_s is None else time_limit_s)
        best = optimal(
            jobs, slots, "tct" if objective == "tct" else "makespan", stop=lambda: time.monotonic() >= deadline
        )
        indices = best.order
        document = {
            "objective": objective or "makespan",
            "proven": best.proven,
            "best_possible": plain(best.bound),
            "nodes": best.nodes,
        }
        if not best.proven:
            unit = "makespan" if document["objective"] == "makespan" else "total completion time"
            say(
                f"stopped before the order was proven optimal: its {unit} is {float(best.value):.12g} s, "
                f"that of any order at least {float(best.bound):.12g} s"
            )
    else:
        indices = GREEDY[algorithm](jobs, slots)
    ordered = [jobs[index] for index in indices]
    found = executed(ordered, slots)
    bounds = {
        "lower_bound": plain(lower_bound(jobs, slots)),
        "upper_bound": plain(upper_bound(ordered, slots)),
    }
    document = {
        "algorithm": algorithm,
        "order": [job.name for job in ordered],
        **_costs(found),
        "completions": {job.name: plain(end) for job, end in zip(ordered, found.completions, strict=True)},
        **bounds,
        **document,
    }
    printed = plain(upper_bound_as_printed(ordered, slots))
    upper = f"of this order          {bounds['upper_bound']:.12g} s or less (the thesis prints {printed:.12g})"
    further = [f"makespan of any order  {bounds['lower_bound']:.12g} s or more", upper]
    if algorithm == "mk_jr" and all(
        job == by_its_tasks(job) for job in jobs
    ):  # the bound is for MK_JR by the tasks' own averages
        factors = [f"{1 + float(of(jobs, slots)):.4g}" for of in (delta, delta_as_printed)]
        further.append(f"over the best order's  {factors[0]} times or less (the thesis prints {factors[1]})")
    if any(job.varies for job in jobs):
        # The search uses the averages only.
        alike = [replace(job, map_task_s=None, reduce_task_s=None) for job in ordered]
        averages = estimate(alike, slots)
        document["by_averages"] = {
            **_costs(averages),
            "lower_bound": plain(lower_bound(alike, slots)),
            "upper_bound": plain(upper_bound(alike, slots)),
        }
        by = document["by_averages"]
        further += [
            "by the averages, which the order goes by:",
            f"makespan               {by['makespan']:.12g} s",
            f"total completion time  {by['total_completion_time']:.12g} s",
        ]
    if "proven" in document:
        what = {"makespan": "makespan", "tct": "total completion time"}[document["objective"]]
        if document["proven"]:
            further.append(f"no order has a smaller {what} ({document['nodes']} partial orders looked at)")
        else:
            further.append(f"no order has a {what} below {document['best_possible']:.12g} s; this may not be the best")
    return document, further


def _costs(found: Estimate) -> dict[str, Any]:
    return {"makespan": plain(found.makespan), "total_completion_time": plain(found.total_completion_time)}


def _online(jobs: tuple[MapReduceJob, ...], slots: Slots, settings: tuple[str, ...], path: str) -> dict[str, Any]:
    """Return the answer if jobs arrive over time: MROrder's rounds, compared with submission on arrival."""
    from harness.base.errors import CallError, InputError
    from harness.policies.registry import make_policy
    from harness.systems.mrorder.ordering import executed
    from harness.systems.mrorder.ordering.online import dispatch

    given = named_values(settings)
    for name, why in _NOT_HERE.items():
        if name in given:
            raise CallError(f"{name} has no meaning here: {why}", where="--set", hint="leave it out")
    arrivals = [(job, job.arrival_s) for job in jobs if job.arrival_s is not None]
    if not arrivals:
        what = "no column arrival_seconds, and mrorder orders jobs as they arrive"
        raise InputError(what, where=path, hint="add it, or take another --algorithm")
    arrivals.sort(key=lambda one: one[1])
    from harness.systems.mrorder.policy import MROrder

    policy = make_policy("mrorder", given)
    assert isinstance(policy, MROrder)
    queue = policy.dispatching_queue()
    out = dispatch(arrivals, slots, queue.when, queue.ordering)
    ordered = [one.job for one in out]
    answers = []
    for one, released in (
        (ordered, [s.submitted_s for s in out]),
        ([j for j, _ in arrivals], [t for _, t in arrivals]),
    ):
        found = executed(one, slots, released)
        flow = [end - (job.arrival_s or 0) for job, end in zip(one, found.completions, strict=True)]
        answers.append(
            {
                **_costs(found),
                "total_flow_time": plain(sum(flow, Fraction(0))),
                "completions": {job.name: plain(end) for job, end in zip(one, found.completions, strict=True)},
            }
        )
    return {
        "algorithm": "mrorder",
        "order": [job.name for job in ordered],
        **answers[0],
        "arrivals": {one.job.name: plain(one.arrived_s) for one in out},
        "submitted": {one.job.name: plain(one.submitted_s) for one in out},
        "rounds": {one.job.name: one.round for one in out},
        "as_they_arrive": answers[1],
    }


#: Settings of the policy that are not allowed here, because the file or an option gives the value or a cluster is
#: needed.
_NOT_HERE = {
    "eager": "it waits for jobs' ends on a real cluster",
    "history": "the averages are the file's",
    "map_slots": "--map-slots says it",
    "reduce_slots": "--reduce-slots says it",
}


def _online_lines(document: dict[str, Any]) -> Iterator[str]:
    width = max(3, *(len(name) for name in document["order"]))
    yield f"{'job':<{width}}  {'round':>5}  {'arrives, s':>12}  {'submitted, s':>12}  {'ends at, s':>14}"
    for name in document["order"]:
        yield (
            f"{name:<{width}}  {document['rounds'][name]:>5}  {document['arrivals'][name]:>12.12g}  "
            f"{document['submitted'][name]:>12.12g}  {document['completions'][name]:>14.12g}"
        )
    submitted = document["as_they_arrive"]
    for key, what in (
        ("makespan", "makespan"),
        ("total_completion_time", "total completion time"),
        ("total_flow_time", "from arrival to end, sum"),
    ):
        yield f"{what:<25}{document[key]:.12g} s (submitted as they arrive: {submitted[key]:.12g} s)"


def _read(path: str) -> tuple[MapReduceJob, ...]:
    from harness.base.files import read_text
    from harness.systems.mrorder.ordering.jobs import parse_jobs

    # A spreadsheet may write a byte order mark before the name of the first column.
    return parse_jobs(read_text(path, hint="name a readable CSV file").removeprefix("\ufeff"), path)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    ends: dict[str, int | float] = document["completions"]
    width = max(3, *(len(name) for name in ends))
    yield f"{'job':<{width}}  {'ends at, s':>14}"
    for name, end in ends.items():
        yield f"{name:<{width}}  {end:>14.12g}"
    yield f"makespan               {document['makespan']:.12g} s"
    yield f"total completion time  {document['total_completion_time']:.12g} s"
