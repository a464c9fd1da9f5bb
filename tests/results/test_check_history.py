"""`check --history`: lasting changes are found and dated, noise is not, among many metrics too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.results.check import check_history
from harness.results.runs import RunRecord
from tests.results.conftest import Write, call, noisy


def history(write: Write, levels: list[float], name: str = "h") -> None:
    rng = np.random.default_rng(5)
    for at, level in enumerate(levels):
        day = f"2026-{1 + at // 28:02d}-{1 + at % 28:02d}T00:00:00+00:00"
        makespan = level * (1 + 0.01 * float(rng.normal()))
        write(f"{name}/{at:03d}", seed=at, start=day, makespan_s=makespan, mean_completion_s=100 + float(rng.normal()))


def test_a_lasting_change_of_the_history_is_dated(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(write, [1000.0] * 15 + [1100.0] * 12)
    code, out, err = call(capsys, "check", tmp_path / "h" / "026", "--history", tmp_path / "h")
    assert (code, "makespan_s" in err, "mean_completion" in err) == (3, True, False)
    assert "2026-01-16" in out


def test_a_change_that_was_undone_or_is_for_the_better_is_told_only(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(write, [1000.0] * 12 + [1100.0] * 12 + [1000.0] * 12)
    code, out, _ = call(capsys, "check", tmp_path / "h" / "035", "--history", tmp_path / "h")
    assert code == 0
    assert "not for the worse by now" in out
    history(write, [1000.0] * 12 + [900.0] * 12, "better")
    assert call(capsys, "check", tmp_path / "better" / "023", "--history", tmp_path / "better")[0] == 0


def made_up(levels: dict[str, list[float]], variants: int = 4, metrics: int = 40) -> list[RunRecord]:
    """Runs of several policies with so many metrics each, all noise but those of the first policy's `levels`."""
    rng = np.random.default_rng(11)
    count = len(next(iter(levels.values())))
    out = []
    for variant, at in np.ndindex(variants, count):
        queues = {f"root.q{k}": {"mean_completion_s": 100 + float(rng.normal())} for k in range(metrics - len(levels))}
        own: dict[str, Any] = {
            key: values[at] if variant == 0 else 1000 + float(rng.normal()) for key, values in levels.items()
        }
        info = {
            "variant": f"v{variant}",
            "experiment": "e",
            "backend": "docker",
            "hash": "h",
            "exit": 0,
            "start": f"{at:04}",
        }
        out.append(RunRecord(Path(f"h/v{variant}-{at}"), info, {**own, "queues": queues}))
    return out


def test_a_doubled_makespan_is_found_among_160_metrics() -> None:
    rng = np.random.default_rng(3)
    found = check_history(made_up({"makespan_s": [*rng.normal(1000, 5, 12), *rng.normal(2000, 5, 12)]}))
    assert len(found.held) == 160
    (alarm,) = found.alarms
    assert (alarm.variant, alarm.key.key, alarm.verdict) == ("v0", "makespan_s", "worse")
    assert {one.verdict for one in found.held if one is not alarm} == {"fine"}


def test_what_no_change_could_show_is_not_said_to_be_fine() -> None:
    """Nine runs against nine are too few for 160 metrics; four against four even for one."""
    rng = np.random.default_rng(3)
    for half, variants, metrics, words in (
        (9, 4, 40, "one metric among 160"),
        (4, 1, 1, "one metric among 1"),
        (3, 1, 1, ""),
    ):
        levels = {"makespan_s": [*rng.normal(1000, 5, half), *rng.normal(2000, 5, half)]}
        held = check_history(made_up(levels, variants, metrics)).held
        assert {one.verdict for one in held} == {"not judged"}
        assert all("too short to see a change" in one.words and words in one.words for one in held)
    held = check_history(made_up({"makespan_s": [1000.0] * 30}, 1, 1)).held
    assert [(one.verdict, one.words) for one in held] == [("fine", "the same in every run")]


def test_histories_without_a_change_raise_no_alarm() -> None:
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        assert not check_history(made_up({"makespan_s": rng.normal(1000, 5, 24).tolist()}, 1, 6)).alarms


@pytest.mark.parametrize(
    ("levels", "alarm", "said"),
    [
        ((100, 150, 140), True, "still worse than 100.0 s before"),
        ((100, 50, 90), True, ""),
        ((100, 150, 100), False, "not for the worse by now"),
        ((100, 150, 90), False, "not for the worse by now"),
        ((100, 90), False, "not for the worse by now"),
        ((100, 150), True, ""),
        ((10_000, 10_050), False, "worse, but by less than matters"),
    ],
)
def test_a_change_for_the_worse_is_undone_when_the_best_level_is_back(
    levels: tuple[float, ...], alarm: bool, said: str
) -> None:
    rng = np.random.default_rng(4)
    values = [float(level + 0.01 * rng.normal()) for level in levels for _ in range(12)]
    (held,) = check_history(made_up({"makespan_s": values}, 1, 1)).held
    assert held.words.startswith("changed from ")
    assert (held.alarm, said in held.words) == (alarm, True), held.words
    if alarm:
        assert held.recorded == pytest.approx(min(levels[:-1]), abs=0.1)


def test_different_experiments_of_one_name_have_histories_of_their_own() -> None:
    runs = made_up({"makespan_s": [1000.0 + at % 3 for at in range(12)]}, 1, 1)
    others = made_up({"makespan_s": [2000.0 + at % 3 for at in range(12)]}, 1, 1)
    others = [RunRecord(run.path / "other", {**run.info, "hash": "other"}, run.summary) for run in others]
    found = check_history([*runs, *others])
    assert [one.verdict for one in found.held] == ["fine", "fine"]
    (remark,) = found.remarks
    assert "2 different experiments of that name (h, other)" in remark


@pytest.mark.parametrize(("start", "left_out"), [("9", True), ("0005", False), ("", False)])
def test_an_experiment_that_another_one_has_replaced_raises_no_alarm_for_ever(start: str, left_out: bool) -> None:
    """Its last level stays as it is. Those that take turns, or have no times, are judged all the same."""
    rng = np.random.default_rng(3)
    worse = made_up({"makespan_s": [*rng.normal(1000, 5, 12), *rng.normal(2000, 5, 12)]}, 1, 1)
    after = made_up({"makespan_s": rng.normal(500, 5, 12).tolist()}, 1, 1)
    later = [RunRecord(run.path / "new", {**run.info, "hash": "new", "start": start}, run.summary) for run in after]
    found = check_history([*worse, *later])
    assert (len(found.held), len(found.alarms)) == ((1, 0) if left_out else (2, 1))
    said = "e, v0 on docker: 24 runs up to 0023 (of hash h) are left out: later runs of that name are of another"
    assert any(remark.startswith(said) for remark in found.remarks) == left_out


def test_a_metric_that_the_latest_run_does_not_have_is_named() -> None:
    runs = made_up({"makespan_s": [1000.0 + at % 3 for at in range(12)], "last_loss_s": [300.0] * 12}, 1, 2)
    without = {key: value for key, value in runs[-1].summary.items() if key != "makespan_s"}
    last = RunRecord(runs[-1].path, runs[-1].info, without)
    (remark,) = check_history([*runs[:-1], last]).remarks
    assert remark.endswith(f"the latest run does not have makespan (last in {runs[-2].path})"), remark


def test_history_takes_several_folders_and_goes_with_a_baseline(
    write: Write, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history(write, [1000.0] * 20, "one")
    history(write, [1001.0] * 4, "two")
    run = noisy(write, "new", 78)
    places = (tmp_path / "one", tmp_path / "two")
    code, out, _ = call(capsys, "check", run, "--history", *places, "--baseline", recorded, "--json")
    assert code == 0
    hows = {one["how"] for one in json.loads(out)["metrics"]}
    assert "history of 25 runs" in hows
    assert "spread of 10 runs" in hows
