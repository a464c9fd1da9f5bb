"""Regression checks on runs of the simulator: what is injected is caught, what is unchanged raises no alarm.

The engine's own speed is measured and slowed for real; the long ones of these have the numbers that the documents name.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.bench import run as bench
from harness.cli import main
from harness.experiments.resolve import load_experiment
from harness.results.baseline import BENCH_MARGIN, Baseline, record
from harness.results.check import check
from harness.results.runs import RunRecord, read_run
from studies.check_power import simulated
from tests.experiments.campaigning import EXPERIMENT

pytestmark = pytest.mark.xdist_group("regressions")
BASELINES = Path(__file__).resolve().parents[1] / "baselines"
PAIRS = 100
#: Seeds that one baseline is made of.
OF = 10


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, printed.out, printed.err


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny.yaml"
    path.write_text(yaml.safe_dump(EXPERIMENT))
    return path


def false_alarms(pairs: list[tuple[list[RunRecord], RunRecord]]) -> int:
    """How many of the pairs (runs to record, an unchanged run with another seed) raise any alarm."""
    return sum(bool(check([run], Baseline("b", record(known))).alarms) for known, run in pairs)


def test_unchanged_runs_with_other_seeds_raise_no_alarms(tiny: Path) -> None:
    """100 pairs drawn from 60 runs; the long test has 100 pairs that share no run."""
    experiment = load_experiment(str(tiny))
    pool = [simulated(experiment, "ltrf", seed) for seed in range(1, 61)]
    rng = random.Random(1)
    pairs = []
    for _ in range(PAIRS):
        chosen = rng.sample(pool, OF + 1)
        pairs.append((chosen[:OF], chosen[OF]))
    assert false_alarms(pairs) <= 1


@pytest.mark.long
@pytest.mark.parametrize("policy", ["fair", "ltrf", "ltrf@outside"])
def test_100_pairs_without_a_common_run_raise_at_most_one_alarm(policy: str, tiny: Path) -> None:
    experiment = load_experiment(str(tiny))
    pairs = []
    for pair in range(PAIRS):
        seeds = range(pair * (OF + 1) + 1, (pair + 1) * (OF + 1) + 1)
        runs = [simulated(experiment, policy, seed) for seed in seeds]
        pairs.append((runs[:OF], runs[OF]))
    assert false_alarms(pairs) <= 1


def change(path: Path, factor: float, *keys: str) -> None:
    """Makes one figure of a summary another."""
    summary: dict[str, Any] = json.loads((path / "summary.json").read_text())
    at: Any = summary
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] *= factor
    (path / "summary.json").write_text(json.dumps(summary))


def test_a_worse_policy_and_a_lost_job_are_caught(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, *more: str) -> Path:
        code, _, err = call(
            capsys, "run", tiny, "--policy", "ltrf", "--no-report", "--jobs", 1, "--out", tmp_path / name, *more
        )
        assert code == 0, err
        return tmp_path / name / "ltrf"

    file = tmp_path / "b.json"
    assert call(capsys, "baseline", run("base"), "-o", file)[0] == 0
    assert call(capsys, "check", run("same"), "--baseline", file)[0] == 0
    # Another rule behind the same name and seed.
    other = run("other", "--set", "horizon_s=400")
    assert read_run(other).summary != read_run(tmp_path / "base" / "ltrf").summary
    assert call(capsys, "check", other, "--baseline", file)[0] == 3
    # 10 % worse in one named metric.
    worse = run("worse")
    change(worse, 1.1, "queues", "root.a", "mean_completion_s")
    code, _, err = call(capsys, "check", worse, "--baseline", file)
    assert (code, "1 metric(s)" in err, "mean_completion_s[root.a]" in err) == (3, True, True)
    # A job that is not there, and one that failed.
    lost = run("lost")
    change(lost, 2 / 3, "queues", "root.b", "jobs")
    code, _, err = call(capsys, "check", lost, "--baseline", file)
    assert (code, "jobs[root.b]" in err) == (3, True)
    failed = yaml.safe_dump({**EXPERIMENT, "faults": {"failure": 1.0, "max_attempts": 1}})
    (tmp_path / "tiny.yaml").write_text(failed)
    code, _, _ = call(capsys, "run", tmp_path / "tiny.yaml", "--policy", "ltrf", "--no-report", "--out", tmp_path / "f")
    assert code == 4
    assert call(capsys, "check", tmp_path / "f" / "ltrf", "--baseline", file)[0] == 4


def bench_file(path: Path, ratio: float) -> Path:
    path.write_text(json.dumps({"engine": {"fair": {"events_per_s": ratio * 1e7, "core_ratio": ratio}}}))
    return path


def test_a_slower_engine_is_caught_as_a_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = bench_file(tmp_path / "bench.json", 0.122)
    file = tmp_path / "b.json"
    assert call(capsys, "baseline", base, "-o", file)[0] == 0
    assert call(capsys, "check", bench_file(tmp_path / "1.json", 0.122 * 0.95), "--baseline", file)[0] == 0
    assert call(capsys, "check", bench_file(tmp_path / "2.json", 0.122 * 1.3), "--baseline", file)[0] == 0
    code, _, err = call(capsys, "check", bench_file(tmp_path / "3.json", 0.122 * 0.8), "--baseline", file)
    assert (code, "engine.fair.core_ratio" in err) == (3, True)
    assert BENCH_MARGIN < 0.2


def test_the_last_releases_figures_hold_the_next_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `make bench-check` does, with figures instead of a measurement: each policy's ratio counts by itself."""
    recorded = BASELINES.parents[1] / "docs" / "records" / "bench.json"
    values = json.loads(recorded.read_text())["values"]
    engine = values["engine"]
    file, found = tmp_path / "b.json", tmp_path / "found.json"
    assert call(capsys, "baseline", recorded, "-o", file)[0] == 0

    def held(slow: str | None) -> tuple[int, str]:
        ratios = {
            name: {**row, "core_ratio": row["core_ratio"] * (0.8 if name == slow else 0.95)}
            for name, row in engine.items()
        }
        found.write_text(json.dumps({**values, "engine": ratios}))
        code, _, err = call(capsys, "check", found, "--baseline", file)
        return code, err

    assert held(None)[0] == 0
    for name in engine:
        code, err = held(name)
        assert (code, f"engine.{name}.core_ratio" in err) == (3, True), err


def test_size_cost_and_idle_workers_are_held_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each in its own direction: events a step, steps, the part of the workers' time that cells have."""
    good = {
        "engine": {"fair": {"core_ratio": 0.02}},
        "scale": {"nodes_50000": {"core_ratio": 0.006, "nodes": 50_000}},
        "cost": {"tick_ltrf_1000": 100.0},
        "cells": {"cells": 1000, "dask": {"busy": 0.95, "own_s": 0.1}},
    }
    base, file, found = tmp_path / "bench.json", tmp_path / "b.json", tmp_path / "found.json"
    base.write_text(json.dumps({"values": good}))
    assert call(capsys, "baseline", base, "-o", file)[0] == 0
    for place, key, value in (
        ("scale", "nodes_50000", {"core_ratio": 0.004, "nodes": 50_000}),
        ("cost", "tick_ltrf_1000", 130.0),
        ("cells", "dask", {"busy": 0.7, "own_s": 0.1}),
    ):
        found.write_text(json.dumps({**good, place: {**good[place], key: value}}))
        code, _, err = call(capsys, "check", found, "--baseline", file)
        assert (code, f"{place}.{key}" in err) == (3, True), err
    found.write_text(json.dumps({**good, "cost": {"tick_ltrf_1000": 70.0}}))
    assert call(capsys, "check", found, "--baseline", file)[0] == 0


@pytest.mark.long
def test_an_engine_made_20_per_cent_slower_is_caught_by_its_measured_ratio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is measured, then measured with a clock by which it takes a quarter longer (80 % of the speed), the
    calibration loop not."""

    def measured() -> float:
        return float(bench.measure_engine("fair", events=200_000)["core_ratio"])

    file = tmp_path / "b.json"
    base = bench_file(tmp_path / "base.json", measured())
    assert call(capsys, "baseline", base, "-o", file)[0] == 0
    assert call(capsys, "check", bench_file(tmp_path / "same.json", measured()), "--baseline", file)[0] == 0
    clock = time.process_time
    with monkeypatch.context() as patched:
        patched.setattr(bench.time, "process_time", lambda: clock() * 1.25)
        slow = measured()
    assert call(capsys, "check", bench_file(tmp_path / "slow.json", slow), "--baseline", file)[0] == 3


@pytest.mark.parametrize("name", ["ltyarn", "ltyarn-hierarchy"])
def test_the_projects_experiments_are_as_recorded(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """LTYARN's macro experiments against tests/baselines; docs/how-to/check-for-regressions.md says how to record them
    anew after a change that is meant."""
    out = tmp_path / name
    assert call(capsys, "run", name, "--no-report", "--jobs", 1, "--out", out)[0] == 0
    code, printed, err = call(capsys, "check", out, "--baseline", BASELINES / f"{name}.json")
    assert code == 0, printed + err
