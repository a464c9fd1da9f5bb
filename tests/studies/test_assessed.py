"""The study of what `assess` predicts: how a prediction is judged, and a run that is held in the band of its phases."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from harness.experiments.resolve import Variant, load_experiment
from harness.predict.playing import simulate_phase
from harness.predict.replay import write_experiment
from harness.results.summary import jobs_table
from harness.traces.recorded import read_trace
from studies.assessed import file_of, recommended, write_loads
from studies.assessed_loads import LOADS
from studies.assessed_measure import by_chance, in_band, judged
from tests.predict.loads import OTHER_PHASE, contended, recording

ROOT = Path(__file__).resolve().parents[2]
ROW = {"mean_completion_s": 80.0, "change": -0.2, "change_band": [-0.25, -0.15]}


def test_every_load_can_be_run_and_what_changes_differs(tmp_path: Path) -> None:
    write_loads(tmp_path)
    for name, load in LOADS.items():
        before = load_experiment(str(file_of(tmp_path, name, False)))
        assert set(before.leaves) == {f"root.{queue}" for queue in load.queues}
        assert before.spec.actuation.max_ratio == 3.0
    assert [name for name, load in LOADS.items() if load.after] == ["changes"]
    changed = load_experiment(str(file_of(tmp_path, "changes", True)))
    assert changed.hash != load_experiment(str(file_of(tmp_path, "changes", False))).hash


def test_a_prediction_is_judged_by_sign_and_by_distance() -> None:
    right = judged(ROW, 100.0, [84.0, 80.0], changed=False)
    assert (right["direction_right"], right["within"]) == (True, True)
    assert right["off"] == pytest.approx(80 / 82 - 1, abs=1e-4)
    wrong = judged(ROW, 100.0, [110.0], changed=False)
    assert (wrong["direction_right"], wrong["within"]) == (False, False)
    # Two real runs that differ by more than the prediction is off.
    assert judged(ROW, 100.0, [80.0, 120.0], changed=False)["within"]


def test_too_little_to_speak_of_has_no_direction_and_a_prediction_of_nothing_is_held_to_it() -> None:
    nothing = {**ROW, "mean_completion_s": 100.0, "change": 0.0}
    assert judged(nothing, 100.0, [102.0], changed=False)["direction_right"]
    assert not judged(nothing, 100.0, [104.0], changed=False)["direction_right"]


def test_of_a_load_that_changed_the_change_is_predicted() -> None:
    found = judged(ROW, 200.0, [150.0], changed=True)
    assert (found["predicted_s"], found["change"]) == (160.0, -0.25)


def test_the_options_of_a_run_are_what_was_recommended() -> None:
    said = {"recommended": {"policy": "ltrf", "settings": {"horizon_s": 80.0}}}
    assert recommended(said) == ["--policy=ltrf@outside", "--set=horizon_s=80"]
    assert recommended({"recommended": {}}) == ["--policy=ltrf@outside"]


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_run_of_a_further_phase_is_in_its_band_and_a_slower_one_is_not(tmp_path: Path, factor: float) -> None:
    trace = recording(tmp_path, contended()[:6])
    variant = Variant("own", "ltrf", "outside", {"horizon_s": 80.0}, 0, 5.0)
    experiment = write_experiment(read_trace(trace), tmp_path / "making")
    table: pd.DataFrame = jobs_table(simulate_phase(str(experiment), variant, OTHER_PHASE), {})
    table["completion_s"] *= factor
    run = tmp_path / "run"
    run.mkdir()
    table.to_parquet(run / "jobs.parquet")
    (run / "trace.jsonl").write_bytes(trace.read_bytes())
    policy = {"name": "ltrf", "mode": "outside", "settings": {"horizon_s": 80.0}, "period_s": 5.0}
    (run / "run.json").write_text(json.dumps({"policy": policy}))
    found = in_band(run, 12)
    assert found["jobs"] == 6
    assert len(found["further"]["jobs_inside"]) == len(found["further"]["queues_inside"]) == 13
    # Whatever the run did, most of the phases' own jobs are in the band of the others.
    assert sum(found["further"]["jobs_inside"]) / (13 * 6) > 0.7
    if factor == 1.0:
        assert found["jobs_inside"] >= 4
        assert found["most_outside"] < 0.02
    else:
        assert found["jobs_inside"] == 0
        assert not any(row["inside"] for row in found["queues"].values())


def test_what_chance_holds_is_reckoned_run_by_run() -> None:
    # Two runs, each with both of its two jobs inside or none, like coins: 0, 2 or 4, with 1/4, 1/2, 1/4.
    coins = [[0, 2], [2, 0]]
    assert by_chance(coins, 2) == {"expected": 2.0, "least": 0, "chance": 0.75}
    assert by_chance(coins, 0)["chance"] == 0.25
    assert by_chance(coins, 4)["chance"] == 1.0
    # Jobs that are inside one by one, with 90 % each, are binomial.
    alone = [[1] * 9 + [0]] * 100
    found = by_chance(alone, 87)
    assert found["expected"] == 90.0
    assert found["least"] == 85
    assert found["chance"] == pytest.approx(0.1982, abs=1e-4)


def test_the_page_says_whether_the_record_differs_from_nine_of_ten() -> None:
    values = json.loads((ROOT / "docs/records/assessed.json").read_text())["values"]
    page = " ".join((ROOT / "docs/figures-assess.md").read_text().split())
    few = values["by_chance"]["jobs"]["chance"] < 0.05
    assert ("**fewer than chance explains." in page) == few
    assert ("no fewer than chance explains" in page) != few
