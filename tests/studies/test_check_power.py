"""The study of false alarms and of what is found: its record keeps what the documents promise; the study in short."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from harness.experiments.resolve import load_experiment
from studies.check_power import SIDE, at_most, fails, measured, simulated

RECORD = Path(__file__).resolve().parents[2] / "docs" / "records" / "check-power.json"
pytestmark = pytest.mark.xdist_group("regressions")


def test_the_record_keeps_what_is_promised() -> None:
    """At most 1 % false alarms of 1,000 pairs; five seeds a side find 10 % in 9 of 10."""
    values = json.loads(RECORD.read_text(encoding="utf-8"))["values"]
    assert (values["side"], values["pairs"]) == (5, 1000)
    for own in values["policies"].values():
        assert own["five"]["false_alarms"] <= 10
        assert own["one"]["false_alarms"] <= 10
        assert own["five"]["found"]["0.1"] >= 0.9 * values["slowed"]
        assert own["five"]["found"]["0.2"] >= 0.9 * values["slowed"]


def test_sixty_runs_show_the_same() -> None:
    """The study in short: 100 unchanged pairs drawn from 60 runs (so they share runs), and ten slowed ones."""
    experiment = load_experiment("ltyarn-small")
    pool = [simulated(experiment, "fair", seed) for seed in range(1, 61)]
    rng = random.Random(1)
    drawn = [rng.sample(pool, 2 * SIDE) for _ in range(100)]
    assert sum(fails(runs[:SIDE], runs[SIDE:]) for runs in drawn) <= 2
    slow = [simulated(experiment, "fair", seed, 0.10) for seed in range(1001, 1051)]
    assert sum(fails(drawn[k][:SIDE], slow[SIDE * k : SIDE * (k + 1)]) for k in range(10)) >= 8


def test_the_study_can_be_made_anew() -> None:
    found = measured("fair", pairs=2, slowed=1)
    assert found["metrics"] > 30
    assert found["five"].keys() == found["one"].keys() == {"false_alarms", "at_most", "found"}
    assert list(found["five"]["found"]) == ["0.02", "0.05", "0.1", "0.2"]


def test_the_rate_that_few_alarms_allow() -> None:
    assert at_most(0, 1000) == pytest.approx(1 - 0.05 ** (1 / 1000), abs=1e-4)  # the rule of three
    assert 4 / 1000 < at_most(4, 1000) < 0.01
