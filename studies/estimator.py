"""The estimator against real runs: a few jobs in every order on a YARN (tang-thesis section 3.4.3.5, Fig. 3.10).

``python -m studies.estimator run OUT`` runs the orders, ``... compare OUT`` prints one JSON record. What is
run is ``experiments/papers/mrorder/estimator.yaml``; orders that OUT already holds are not run again. Real makespan and
total completion time count from the submission; the estimator is told each job's numbers of tasks and their mean times:

declared    as the experiment draws them
history     as the first order's run had them (how long a task held its container); the others are judged by it
own         each task's time in the very run: what is left is the scheduling itself
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import click
import pandas as pd

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.experiments.kind import Target
from harness.experiments.real.runner import real_runner
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of, load_experiment
from harness.experiments.run import run_experiment
from harness.experiments.simulated import node_sizes
from harness.model.jobs import JobSpec
from harness.systems.mrorder.earlier_runs import EarlierRuns, earlier_runs
from harness.systems.mrorder.ordering import Estimate, Slots, estimate, estimate_tasks
from harness.systems.mrorder.policy import MROrder
from harness.systems.mrorder.submissions import as_mapreduce, slots_of
from studies.result import write

EXPERIMENT = "estimator"
#: More jobs have too many orders to run them all.
MOST_JOBS = 5
HOWS = ("declared", "history", "own")
FIGURES = ("makespan_s", "total_completion_time_s")


def chosen(count: int, jobs: int) -> list[tuple[int, ...]]:
    """So many of all orders of 0 to jobs - 1, spread evenly over them as they stand in a dictionary."""
    every = list(permutations(range(jobs)))
    count = min(count, len(every))
    return [every[at * len(every) // count] for at in range(count)]


def order_name(order: Sequence[int]) -> str:
    """``2-1-3-4``: the jobs by their places in the file, counted from 1."""
    return "-".join(str(job + 1) for job in order)


def order_variants(experiment: LoadedExperiment, count: int) -> list[Variant]:
    """One run an order: all jobs are there, and are submitted in it."""
    jobs = _listed(experiment)
    found = []
    for order in chosen(count, len(jobs)):
        listed = ",".join(jobs[at].id for at in order)
        settings = {"when": "pnj", "jobs": len(jobs), "ordering": f"order:{listed}"}
        found.append(Variant(order_name(order), "mrorder", "inside", settings, experiment.spec.seeds[0], 15.0))
    return found


def _listed(experiment: LoadedExperiment) -> list[JobSpec]:
    jobs = list(jobs_of(experiment, experiment.spec.seeds[0])[0])
    if not 2 <= len(jobs) <= MOST_JOBS:
        what = f"{len(jobs)} jobs"
        raise InputError(what, where=experiment.document.file, hint=f"give 2 to {MOST_JOBS}: every order may be run")
    return jobs


# --- comparing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Case:
    """One run: the jobs in their order, what they took, and each one's tasks (maps, reduces)."""

    jobs: tuple[JobSpec, ...]
    real: dict[str, float]
    first_grant_s: float
    tasks: tuple[tuple[list[Fraction], list[Fraction]], ...]
    most: tuple[int, int]


def read_case(folder: Path, jobs: Sequence[JobSpec]) -> _Case:
    """A finished run of one order.

    Raises InputError where it is none.
    """
    try:
        rounds = [json.loads(line) for line in (folder / "decisions.jsonl").read_text(encoding="utf-8").splitlines()]
        (order,) = (found["order"] for found in rounds if "order" in found)
        done, tasks = (pd.read_parquet(folder / f"{name}.parquet") for name in ("jobs", "tasks"))
        by_id = {job.id: job for job in jobs}
        ordered = tuple(by_id[name] for name in order)
        completion = done.set_index("job").loc[list(order), "completion_s"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"no run of one order: {error}", where=str(folder), hint="run it again") from None
    tasks = tasks[tasks["outcome"] == "finished"]
    sides = []
    for job in ordered:
        own = tasks[tasks["job"] == job.id].sort_values("task")
        maps = own["stage"] == "map"
        sides.append((_held(own[maps]), _held(own[~maps])))
    maps = tasks["stage"] == "map"
    return _Case(
        ordered,
        {"makespan_s": float(completion.max()), "total_completion_time_s": float(completion.sum())},
        float(tasks["granted_s"].min()),
        tuple(sides),
        (most_at_once(tasks[maps]), most_at_once(tasks[~maps])),
    )


def _held(tasks: pd.DataFrame) -> list[Fraction]:
    held = tasks["ended_s"] - tasks["granted_s"]
    return [Fraction(round(max(float(seconds), 0.0) * 1000), 1000) for seconds in held]


def most_at_once(tasks: pd.DataFrame) -> int:
    """The most tasks that held a container at the same time, from its grant to the end of the task's own process."""
    events = sorted([*((t, 1) for t in tasks["granted_s"]), *((t, -1) for t in tasks["ended_s"])])
    running = most = 0
    for _, step in events:
        running += step
        most = max(most, running)
    return most


def compare(experiment: LoadedExperiment, folder: Path) -> dict[str, Any]:
    """The record's values: each order's real figures, the three estimates, their errors.

    Raises InputError for a folder without runs of this experiment that ended well.
    """
    jobs = _listed(experiment)
    queue = MROrder().dispatching_queue()
    slots = slots_of(queue, jobs, node_sizes(experiment))
    names = [order_name(order) for order in permutations(range(len(jobs)))]
    ran = [name for name in names if (folder / name / "run.json").is_file() and _well(folder / name, experiment)]
    if not ran:
        raise InputError("no run of an order that ended well", where=str(folder), hint="run them first")
    history = earlier_runs([folder / ran[0]])
    orders: dict[str, Any] = {}
    for name in ran:
        case = read_case(folder / name, jobs)
        found: dict[str, Any] = {
            "jobs": [job.name for job in case.jobs],
            "real": {key: round(value, 3) for key, value in case.real.items()},
            "first_grant_s": round(case.first_grant_s, 3),
            "most_maps_at_once": case.most[0],
            "most_reduces_at_once": case.most[1],
        }
        for how, estimated in _estimates(case, history, slots).items():
            value = (float(estimated.makespan), float(estimated.total_completion_time))
            found[how] = {key: round(one, 3) for key, one in zip(FIGURES, value, strict=True)}
        orders[name] = found
    return {
        "orders": len(orders),
        "map_slots": slots.maps,
        "reduce_slots": slots.reduces,
        "history_of": ran[0],
        "errors": errors(orders, ran[0]),
        "runs": orders,
    }


def _well(folder: Path, experiment: LoadedExperiment) -> bool:
    info = read_json(folder / "run.json")
    return info.get("exit") == 0 and info.get("hash") == experiment.hash


def _estimates(case: _Case, history: EarlierRuns, slots: Slots) -> dict[str, Estimate]:
    maps, reduces = zip(*case.tasks, strict=True)
    return {
        "declared": estimate([as_mapreduce(job) for job in case.jobs], slots),
        "history": estimate([history.estimate(job) for job in case.jobs], slots),
        "own": estimate_tasks(maps, reduces, slots),
    }


def errors(orders: dict[str, Any], history_of: str) -> dict[str, Any]:
    """Errors of the three estimates over the orders; of ``history`` without the run that it comes from."""
    others = {name: found for name, found in orders.items() if name != history_of} or orders
    return {how: {key: _errors(others if how == "history" else orders, how, key) for key in FIGURES} for how in HOWS}


def _errors(orders: dict[str, Any], how: str, key: str) -> dict[str, float]:
    """Of the estimate, as part of the real figure: mean (signed), mean absolute, greatest; and the rank correlation."""
    pairs = [(found[how][key], found["real"][key]) for found in orders.values()]
    off = [guess / real - 1 for guess, real in pairs]
    found = {
        "mean": round(math.fsum(off) / len(off), 4),
        "mean_absolute": round(math.fsum(map(abs, off)) / len(off), 4),
        "greatest": round(max(map(abs, off)), 4),
    }
    if len(pairs) > 2:
        guesses, reals = (pd.Series(side).rank() for side in zip(*pairs, strict=True))
        if guesses.nunique() > 1 and reals.nunique() > 1:
            found["rank_correlation"] = round(float(guesses.corr(reals)), 4)
    return found


# --- the command ------------------------------------------------------------------------------------------------------


@click.group()
def study() -> None:
    """The estimator of `yarnfair order` against runs of every order."""


@study.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--backend", type=click.Choice(["local", "docker"]), default="local", show_default=True)
@click.option("--orders", type=click.IntRange(1, 120), default=24, show_default=True, help="How many of all orders.")
@click.option("--now", type=click.IntRange(1, 120), default=120, help="At most so many at once; the rest another time.")
@click.option("--experiment", "name", default=EXPERIMENT, show_default=True, help="Another file of the kind.")
def run(out: Path, backend: str, orders: int, now: int, name: str) -> None:
    """Run the orders that OUT does not hold yet, on a cluster that is brought up for them."""
    experiment = load_experiment(name)
    left = [
        variant
        for variant in order_variants(experiment, orders)
        if not ((out / variant.name / "run.json").is_file() and _well(out / variant.name, experiment))
    ][:now]

    def say(text: str) -> None:
        click.echo(text, err=True)

    if not left:
        return
    with real_runner(experiment, left, backend, Target(), say) as runner:
        for variant in left:
            # Each by itself: what has been run stands, whatever happens to the others.
            (one,) = run_experiment(experiment, [variant], out, backend=backend, runner=runner)
            say(f"{variant.name}: {one.summary.get('makespan_s', 0):.1f} s" + (f" ({one.why})" if one.why else ""))


@study.command(name="compare")
@click.argument("out", type=click.Path(path_type=Path, exists=True))
@click.option("--experiment", "name", default=EXPERIMENT, show_default=True, help="Another file of the kind.")
def compare_(out: Path, name: str) -> None:
    """Print what the runs in OUT took and what the estimator says of them."""
    values = compare(load_experiment(name), out)
    command = "python -m studies.estimator run OUT; python -m studies.estimator compare OUT"
    write(None, command, values)


if __name__ == "__main__":
    study()
