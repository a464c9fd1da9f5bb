"""Committed records: what a folder of runs, or several that repeat the same experiment, come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.base.files import read_json, write_json
from studies import views
from studies.from_runs import collect, main, result


def run(folder: Path, variant: str, loss_s: float, *, seed: int = 1, name: str = "pairs", digest: str = "ab") -> None:
    """A finished run on a real cluster, as far as a record reads it."""
    queues = {"root.a": {"fairness_degree": 1.0, "mean_completion_s": 10.0, "max_wait_s": loss_s}}
    summary = {
        "makespan_s": 100.0,
        "sharing_benefit": 0.1,
        "sharing_loss_integral": loss_s,
        "last_loss_s": loss_s,
        "utilisation": {"memory": 0.5},
        "queues": queues,
    }
    info = {
        "exit": 0,
        "seed": seed,
        "variant": f"{variant},seed={seed}",
        "hash": digest,
        "experiment": {"experiment": name},
        "policy": {"settings": {}},
        "versions": {"yarnfair": "0"},
        "cluster": {"id": 7, "version": "3.4.2"},
        "machine": {"cores": 2},
    }
    (folder / variant).mkdir(parents=True)
    write_json(folder / variant / "run.json", info)
    write_json(folder / variant / "summary.json", summary)


def test_repeats_with_one_seed_are_spread_over_folders(tmp_path: Path) -> None:
    for folder, fair, ltrf in (("first", 20.0, 10.0), ("second", 30.0, 60.0)):
        run(tmp_path / folder, "fair", fair)
        run(tmp_path / folder, "ltrf", ltrf)
    out = tmp_path / "record.json"
    assert main([str(tmp_path / "first"), str(tmp_path / "second"), "--command", "twice", "-o", str(out)]) == 0
    found = read_json(out)
    variants = found["values"]["variants"]
    assert variants["fair"]["sharing_loss_integral"] == {"mean": 25.0, "min": 20.0, "max": 30.0, "ci95": 63.531}
    # Pair by pair: 10 / 20 and 60 / 30.
    assert variants["ltrf"]["loss_over_fair"] == {"mean": 1.25, "min": 0.5, "max": 2.0, "ci95": 9.5297}
    assert found["values"]["seeds"] == [1]
    assert found["values"]["hash"] == "ab"
    assert sorted(found["clusters"]) == [f"{v},seed=1,{f}" for v in ("fair", "ltrf") for f in ("first", "second")]


def test_an_experiment_that_was_edited_between_runs_is_named_by_both_hashes(tmp_path: Path) -> None:
    run(tmp_path / "first", "fair", 20.0, digest="ab")
    run(tmp_path / "second", "fair", 30.0, digest="cd")
    found = result([tmp_path / "first", tmp_path / "second"])
    assert found["values"]["hash"] == ["ab", "cd"]
    assert [run["hash"] for run in found["clusters"].values()] == ["ab", "cd"]


def test_runs_of_different_experiments_make_no_record(tmp_path: Path) -> None:
    run(tmp_path / "first", "fair", 20.0)
    run(tmp_path / "second", "fair", 30.0, name="others")
    with pytest.raises(InputError, match="different experiments: others, pairs"):
        result([tmp_path / "first", tmp_path / "second"])


def test_the_same_control_on_the_fair_scheduler_is_a_reference_of_the_capacity_schedulers() -> None:
    on_capacity = {shown: name for name, shown in views._references("ltrf@outside,period_s=1,scheduler=capacity")}
    assert on_capacity["fair_scheduler"] == "ltrf@outside,period_s=1"
    assert on_capacity["capacity"] == "capacity,scheduler=capacity"
    assert ("fair", "fair_scheduler") in views._references("capacity,scheduler=capacity")
    assert {shown for _, shown in views._references("ltrf@outside")} == set(views.REFERENCES)


def test_outside_is_held_against_inside_seed_by_seed(tmp_path: Path) -> None:
    for seed, inside, outside in ((1, 20.0, 10.0), (2, 6.0, 8.0), (3, 30.0, 6.0)):
        run(tmp_path / str(seed), "ltyarn-in-rm", inside, seed=seed)
        run(tmp_path / str(seed), "ltrf@outside", outside, seed=seed)
    found = result([tmp_path / str(seed) for seed in (1, 2, 3)])["values"]["outside_less_inside"]
    assert found["runs"] == 3
    assert found["less_loss"] == 2
    # -10, 2, -24: mean -32 / 3, and 4.303 standard errors of three.
    assert found["sharing_loss_integral"]["mean"] == pytest.approx(-32 / 3, abs=1e-3)
    assert found["sharing_loss_integral"]["ci95"] == pytest.approx(4.3027 * 13.0128 / 3**0.5, abs=1e-2)


def test_the_flow_of_ltyarns_first_minutes(tmp_path: Path) -> None:
    """Fig. 6: of 1000 MiB, a asks for more than its 250 from 10 to 20 s and at 100 s, and holds 600 at 15 s. Under two
    other seeds from 12 to 22 s and never, and it holds 700 at 21 s."""
    time_s = np.arange(300.0)
    folders = []
    for seed, begin, end, at, most in ((1, 10, 20, 15, 600.0), (2, 12, 22, 21, 700.0), (3, 400, 400, 21, 700.0)):
        folders.append(tmp_path / str(seed))
        run(folders[-1], "ltyarn", 1.0, name="ltyarn", seed=seed)
        (folder,) = folders[-1].iterdir()
        write_json(folder / "run.json", {**read_json(folder / "run.json"), "capacity_mb": 1000.0})
        demand = np.where((time_s >= begin) & (time_s <= end) | (time_s == 100), 900.0, 250.0)
        table = {"time_s": time_s, "demand_mb": demand, "share_mb": 250.0, "accumulated_mb_s": 500.0 * time_s * seed}
        held = np.where(time_s == at, most, np.where(time_s == 280, 1000.0, 100.0))
        pd.DataFrame({**table, "allocated_mb": held, "queue": "root.a"}).to_parquet(folder / "allocations.parquet")

    def flow(*paths: Path) -> dict[str, Any]:
        return dict(views.flow({"ltyarn": collect(*paths)["ltyarn"]})["ltyarn"]["root.a"])

    found = flow(folders[0])
    assert found["overloaded_s"] == [[10.0, 20.0]]
    assert (found["most_of_share"]["mean"], found["most_at_s"]["mean"]) == (2.4, 15.0)
    assert {at: own["mean"] for at, own in found["accumulated_s"].items()} == {
        "80": 40.0, "118": 59.0, "204": 102.0, "260": 130.0
    }  # fmt: skip
    found = flow(*folders)
    assert found["overloaded_s"] == [[12.0, 20.0]], "in at least half of the seeds"
    assert (found["most_of_share"]["mean"], found["most_of_share"]["max"]) == (2.6667, 2.8)
    assert (found["most_at_s"]["mean"], found["accumulated_s"]["80"]["mean"]) == (19.0, 80.0)
    # 40, 80, 120: 4.303 standard errors of three.
    assert found["accumulated_s"]["80"]["ci95"] == pytest.approx(4.3027 * 40 / 3**0.5, abs=1e-2)
