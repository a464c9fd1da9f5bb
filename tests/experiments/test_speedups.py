"""What speed-ups over static are held against: a static run that ended well, the plainest one, and the same jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from harness.experiments.campaign.run import _beside
from harness.experiments.campaign.spec import load_campaign
from harness.experiments.kind import Ended, Outcome, Step
from harness.experiments.resolve import LoadedExperiment, Variant, load_experiment, variants_of
from harness.experiments.run import run_experiment
from harness.experiments.yarn import plainness
from harness.results.store import RunDirectory
from tests.experiments.campaigning import EXPERIMENT

Given = Mapping[str, tuple[float, int]]


def load(folder: Path, **changes: Any) -> LoadedExperiment:
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, **changes}))
    return load_experiment(str(path))


def speedups(folder: Path, experiment: LoadedExperiment, given: Given) -> dict[str, float | None]:
    """Speed-ups of queue a, by variant, of runs whose mean completion and exit code are given."""

    def runner(
        _: LoadedExperiment, variant: Variant, directory: RunDirectory, step: Callable[[Step], None] | None
    ) -> Outcome:
        took, code = given[variant.name]
        summary = {"queues": {"root.a": {"jobs": 3, "ended": 3, "failed": 0, "mean_completion_s": took}}}
        directory.write_summary(summary)
        return Outcome(summary, code, "why" if code else None)

    ended = run_experiment(experiment, variants_of(experiment), folder / "out", runner=runner)
    for run in ended:
        assert json.loads((run.path / "summary.json").read_text()) == run.summary
    return {run.variant.name: run.summary["queues"]["root.a"]["speedup_over_static"] for run in ended}


@pytest.mark.parametrize("code", [4, 5])
def test_a_static_run_that_did_not_end_well_is_no_reference(code: int, tmp_path: Path) -> None:
    experiment = load(tmp_path)
    given: dict[str, tuple[float, int]] = {"static": (100.0, 0), "fair": (50.0, 0), "ltrf": (80.0, 0)}
    assert speedups(tmp_path, experiment, given) == {"static": 1, "fair": 2, "ltrf": 1.25}
    given["static"] = (100.0, code)
    assert speedups(tmp_path, experiment, given) == {"static": None, "fair": None, "ltrf": None}


def test_of_several_static_variants_the_plainest_counts(tmp_path: Path) -> None:
    outside = {"policy": "static", "mode": "outside"}
    varied = {"policy": "static", "settings": {"integral": True}, "name": "whole"}
    experiment = load(tmp_path, policies=[outside, varied, "static", {"policy": "static", "name": "again"}, "fair"])
    given = {"static@outside": (10.0, 0), "whole": (20.0, 0), "static": (100.0, 0), "again": (40.0, 0), "fair": (50, 0)}
    assert speedups(tmp_path, experiment, given)["fair"] == 2
    given["static"] = (100.0, 5)
    assert speedups(tmp_path, experiment, given)["fair"] == 0.8, "the next one that ended well"


def test_a_campaign_holds_its_cells_against_the_plainest_too(write: Any, tmp_path: Path) -> None:
    campaign = load_campaign(write(seeds=[1], policies=["static", "static@outside", "fair"]))
    took = {"static": 100.0, "static@outside": 10.0, "fair": 50.0}
    cells = {cell.variant.name: cell for cell in campaign.cells}
    for name, cell in cells.items():
        queues = {"root.a": {"jobs": 3, "ended": 3, "failed": 0, "mean_completion_s": took[name]}}
        RunDirectory(cell.directory(tmp_path), {"seed": 1, "cell": cell.id}).write_summary({"queues": queues})
        RunDirectory.close(cell.directory(tmp_path), 0)
    _beside(campaign, tmp_path, {cell.id: 0 for cell in campaign.cells})
    summary = json.loads((cells["fair"].directory(tmp_path) / "summary.json").read_text())
    assert summary["queues"]["root.a"]["speedup_over_static"] == 2


def test_inside_goes_before_outside_and_before_settings() -> None:
    plain = Variant("static", "static", "inside", {}, 1, 15.0)
    others = [replace(plain, settings={"integral": True}), replace(plain, in_rm=True), replace(plain, mode="outside")]
    assert sorted([*reversed(others), plain], key=plainness) == [plain, *others]


def test_where_jobs_were_open_there_is_no_speed_up(tmp_path: Path) -> None:
    """Cut after 40 s: not all jobs have ended, nor the same ones; the means stay, and how many jobs they are of."""
    experiment = load(tmp_path, limits={"duration_s": 40})
    ended: list[Ended] = run_experiment(experiment, variants_of(experiment), tmp_path / "out", processes=1)
    seen_open = False
    for run in ended:
        jobs = pd.read_parquet(run.path / "jobs.parquet")
        for name, queue in run.summary["queues"].items():
            own = jobs[jobs["queue"] == name]
            assert (queue["jobs"], queue["ended"]) == (len(own), int(own["finished_s"].notna().sum()))
            static = ended[0].summary["queues"][name]
            is_open = queue["ended"] < queue["jobs"]
            seen_open |= is_open
            assert (queue["workload_s"] is None) == is_open
            known = not is_open and static["ended"] == static["jobs"]
            assert (queue["speedup_over_static"] is not None) == known
            assert (queue["workload_speedup_over_static"] is not None) == known
            assert (queue["mean_completion_s"] is not None) == (queue["ended"] > 0)
    assert seen_open
