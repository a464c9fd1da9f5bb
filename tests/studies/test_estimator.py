"""The estimator against runs of every order, without a cluster: made-up run directories."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.experiments.resolve import jobs_of, load_experiment
from harness.experiments.simulated import node_sizes
from harness.model.jobs import JobSpec
from harness.systems.mrorder.ordering import Slots, estimate
from harness.systems.mrorder.policy import MROrder
from harness.systems.mrorder.submissions import as_mapreduce, slots_of
from studies import estimator


def test_orders_are_spread_over_all() -> None:
    assert estimator.chosen(24, 4) == list(permutations(range(4)))
    assert estimator.chosen(99, 4) == list(permutations(range(4)))
    assert [order[0] for order in estimator.chosen(4, 4)] == [0, 1, 2, 3]
    assert estimator.order_name((1, 0, 2)) == "2-1-3"


def _pretend(
    folder: Path, order: tuple[int, ...], jobs: list[JobSpec], hash_: str, slots: Slots, factor: float
) -> None:
    """A run directory of an ideal cluster whose tasks take `factor` times as long as declared."""
    ordered = [jobs[at] for at in order]
    seen = [as_mapreduce(one) for one in ordered]
    slow = [replace(one, map_s=one.map_s * Fraction(factor), reduce_s=one.reduce_s * Fraction(factor)) for one in seen]
    found = estimate(slow, slots)
    tasks: list[dict[str, Any]] = []
    for one in slow:
        last_map = float(one.map_s)
        for stage, count, took, begun in (
            ("map", one.maps, one.map_s, 0.0),
            ("reduce", one.reduces, one.reduce_s, last_map),
        ):
            for task in range(count):
                at = {"granted_s": begun, "started_s": begun, "ended_s": begun + float(took)}
                tasks.append({"job": one.name, "stage": stage, "task": task, "outcome": "finished", **at})
    folder.mkdir(parents=True)
    pd.DataFrame(tasks).to_parquet(folder / "tasks.parquet")
    ends = zip(ordered, found.completions, strict=True)
    rows = [{"job": o.id, "type": o.name, "kind": "mapreduce", "completion_s": float(end)} for o, end in ends]
    pd.DataFrame(rows).to_parquet(folder / "jobs.parquet")
    (folder / "decisions.jsonl").write_text(json.dumps({"round": 1, "order": [one.id for one in ordered]}) + "\n")
    (folder / "run.json").write_text(json.dumps({"exit": 0, "hash": hash_}))


def test_estimates_are_compared_with_what_runs_took(tmp_path: Path) -> None:
    experiment = load_experiment("estimator")
    jobs = list(jobs_of(experiment, 1)[0])
    slots = slots_of(MROrder().dispatching_queue(), jobs, node_sizes(experiment))
    assert slots == Slots(6, 2)
    for order in estimator.chosen(4, 4):
        _pretend(tmp_path / estimator.order_name(order), order, jobs, experiment.hash, slots, 1.25)
    # Of another experiment, and one that failed: neither counts.
    _pretend(tmp_path / "4-3-2-1", (3, 2, 1, 0), jobs, "another", slots, 9.0)
    values = estimator.compare(experiment, tmp_path)
    assert list(values["runs"]) == ["1-2-3-4", "2-1-3-4", "3-1-2-4", "4-1-2-3"]
    assert values["history_of"] == "1-2-3-4"
    for key in estimator.FIGURES:
        # All that differs from what was declared is 25 %, and the history of one run knows it.
        assert values["errors"]["declared"][key]["mean"] == pytest.approx(-0.2, abs=1e-4)
        assert values["errors"]["history"][key]["greatest"] < 0.01
        assert values["errors"]["own"][key]["greatest"] < 0.01
        assert values["errors"]["history"][key]["rank_correlation"] == pytest.approx(1, abs=0.2)


def test_a_folder_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run of an order"):
        estimator.compare(load_experiment("estimator"), tmp_path)


def test_more_jobs_than_orders_can_be_run_of_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "experiment: x\ncluster: {nodes: [{count: 1, memory_mb: 8192, vcores: 8}]}\nqueues: {a: {}}\n"
        "workloads: {a: {inline: {kind: sequence, submission: {every_s: 0}, rounds: 6, am: {memory_mb: 1024}, "
        "task: {demand: {memory_mb: 1024}, duration: {constant_s: 1}}, jobs: [{name: j, maps: 1}]}}}\n"
        "policies: [fair]\n"
    )
    with pytest.raises(InputError, match="6 jobs"):
        estimator.order_variants(load_experiment(str(path)), 4)


def test_at_most_so_many_at_once() -> None:
    table = pd.DataFrame({"granted_s": [0, 1, 2, 5], "ended_s": [2, 5, 4, 6]})
    assert estimator.most_at_once(table) == 2


def test_a_run_is_not_judged_by_its_own_history() -> None:
    def run(guess: float) -> dict[str, dict[str, float]]:
        real = dict.fromkeys(estimator.FIGURES, 100.0)
        return {"real": real, **{how: dict.fromkeys(estimator.FIGURES, guess) for how in estimator.HOWS}}

    found = estimator.errors({"1-2": run(150.0), "2-1": run(90.0), "1-3": run(110.0)}, "1-2")
    for key in estimator.FIGURES:
        assert found["history"][key]["greatest"] == 0.1
        assert found["declared"][key]["greatest"] == found["own"][key]["greatest"] == 0.5
    # One run alone has nothing else to be judged by.
    assert estimator.errors({"1-2": run(150.0)}, "1-2")["history"]["makespan_s"]["greatest"] == 0.5
