"""The record of runs with minimum shares: the part of a share that was lacking, and runs that do not count."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from harness.experiments.real.schedulers import file_text
from harness.experiments.resolve import allocation_file, load_experiment
from harness.yarn.fair.parse import parse_allocations
from studies.from_runs import main
from studies.views import shortfall


def curve(*rows: tuple[float, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["time_s", "allocated_mb", "demand_mb"])


def test_what_a_queue_lacked_of_its_share_while_it_asked() -> None:
    written = [
        {"time_s": 10.0, "min_shares": {"root.a": [100, 1]}},
        {"time_s": 30.0, "min_shares": {"root.a": [50, 1]}},
    ]
    own = curve((0, 0, 500), (10, 40, 500), (20, 100, 500), (30, 40, 45), (40, 0, 0), (50, 0, 0))
    # Before there is a share, nothing is lacking; 60 of 100, none of 100, 5 of the 45 that it asks for, nothing.
    assert shortfall(own, written, "root.a", 50.0) == pytest.approx((60 + 0 + 5) / (100 + 100 + 45))
    assert shortfall(own, written, "root.b", 50.0) == 0.0
    assert shortfall(own, [], "root.a", 50.0) is None
    # What comes after the makespan does not count.
    assert shortfall(own, written, "root.a", 20.0) == pytest.approx(60 / 100)


def test_a_run_that_did_not_end_is_no_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = ["--view", "minimum-shares", "--command", "x", "-o", str(tmp_path / "record.json")]
    assert main([str(tmp_path), *target]) == 1
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(
        json.dumps(
            {
                "exit": 4,
                "experiment": {"experiment": "e"},
                "hash": "h",
                "machine": {},
                "backend": "local",
                "variant": "v",
            }
        )
    )
    (tmp_path / "run" / "summary.json").write_text(json.dumps({"finished": True, "queues": {}}))
    assert main([str(tmp_path), *target]) == 1
    assert "exit 4" in capsys.readouterr().err
    assert not (tmp_path / "record.json").exists()


def test_a_real_cluster_gets_the_timeout_that_minimum_shares_need() -> None:
    experiment = load_experiment("fawkes-real")
    file = parse_allocations(file_text(allocation_file(experiment.spec)).encode(), source="file")
    assert file.default_min_share_preemption_timeout_ms == 3000
