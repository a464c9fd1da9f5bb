"""The study of false alarms on real runs: what it runs, in which order, and how it counts alarms."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from harness.experiments.resolve import jobs_of, load_experiment
from studies import check_real
from studies.check_power import simulated
from studies.real_runs import write_experiment_file

pytestmark = pytest.mark.xdist_group("regressions")


def test_slowed_runs_stand_between_the_unchanged_ones() -> None:
    order = check_real.schedule()
    assert Counter(slower for slower, _ in order) == {0.0: 20, 0.1: 5, 0.2: 5}
    assert len({check_real.name_of(*one) for one in order}) == 30
    assert [slower for slower, _ in order[:6]] == [0.0, 0.0, 0.0, 0.0, 0.1, 0.2]


def test_a_slow_down_is_in_every_task_and_in_nothing_else(tmp_path: Path) -> None:
    jobs = {}
    for slower in (0.0, 0.1):
        file = tmp_path / f"{slower}.yaml"
        write_experiment_file(file, check_real.experiment(slower))
        jobs[slower] = jobs_of(load_experiment(str(file)), 1)[0]
    assert len(jobs[0.0]) == len(jobs[0.1]) == 7
    for before, after in zip(jobs[0.0], jobs[0.1], strict=True):
        assert before.submit_s == after.submit_s
        for one, slow in zip(before.stages, after.stages, strict=True):
            assert slow.tasks == one.tasks
            # Log-normal: a mean that is 10 % longer is a shift of mu.
            assert slow.duration.mu == pytest.approx(one.duration.mu + math.log(1.1))
            assert slow.duration.sigma == one.duration.sigma


def test_alarms_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the simulator stand for real ones: few alarms among unchanged runs, most slow-downs of 20 % found."""
    monkeypatch.setattr(check_real, "DRAWS", 20)
    experiment = load_experiment("ltyarn-small")
    unchanged = [simulated(experiment, "fair", seed) for seed in range(1, 16)]
    slowed = [simulated(experiment, "fair", seed, 0.2) for seed in range(101, 106)]
    found = check_real.measured(unchanged, {0.2: slowed})
    assert found["pairs"] == {"of": 15 * 14, "false_alarms": 0}
    assert found["fives_in_order"]["of"] == 6
    assert found["five_against_five"]["of"] == found["one_against_ten"]["of"] == 20
    assert found["five_against_five"]["false_alarms"] <= 1
    assert found["found"]["0.2"]["five"] >= 18
