"""Run directories are written as the run goes on: readable after a crash, and no different for it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from harness.base.files import read_json
from harness.experiments.resolve import load_experiment, variants_of
from harness.experiments.run import run_experiment
from harness.results.store import RunDirectory, WriteThrottle

# Few tasks over many hours: the engine pauses every virtual hour, which is when tables are written.
HOURS = """
experiment: hours
cluster: {nodes: [{count: 2, memory_mb: 4096, vcores: 4}]}
max_am_share: -1.0
queues: {a: {}, b: {}}
workloads:
  a:
    inline:
      kind: sequence
      submission: {every_s: 3000}
      rounds: 18
      am: &am {memory_mb: 1024, vcores: 1}
      task: &task {demand: {memory_mb: 1024, vcores: 1}, duration: {lognormal: {mean_s: 300, sigma: 0.5}}}
      jobs: [{name: x, maps: 9}]
  b: {inline: {kind: sequence, submission: {think_s: 2000}, rounds: 18, am: *am, task: *task,
      jobs: [{name: y, maps: 4, reduces: 1}]}}
policies: [fair, ltrf@outside]
period_s: 120
sample_s: SAMPLE
"""


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    path = tmp_path / "hours.yaml"
    path.write_text(HOURS.replace("SAMPLE", "20"))
    return path


def _run(path: Path, out: Path) -> None:
    loaded = load_experiment(str(path))
    run_experiment(loaded, variants_of(loaded), out, processes=1)


def test_writing_on_the_way_changes_nothing(hours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(hours, tmp_path / "plain")
    # Progress is reported at a pause of the engine when 0.2 s have passed since the last report: here at most of them.
    clock = itertools.count(0, 0.02)
    monkeypatch.setattr("harness.sim.simulate.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(WriteThrottle, "LEAST_S", 0.0)
    monkeypatch.setattr(WriteThrottle, "TIMES", 0.0)
    sizes: list[int] = []
    write = RunDirectory.write_table

    def counting(self: RunDirectory, name: str, table: pd.DataFrame) -> None:
        if name == "allocations.parquet":
            sizes.append(len(table))
        write(self, name, table)

    monkeypatch.setattr(RunDirectory, "write_table", counting)
    _run(hours, tmp_path / "often")
    grown = [b for a, b in itertools.pairwise(sizes) if b > a]
    assert len(grown) > 10, "tables were not written on the way"
    for variant in ("fair", "ltrf@outside"):
        for name in ("jobs.parquet", "allocations.parquet", "decisions.jsonl"):
            plain, often = (tmp_path / kind / variant / name for kind in ("plain", "often"))
            assert plain.read_bytes() == often.read_bytes(), f"{variant}/{name}"


def test_a_killed_run_leaves_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(
        HOURS.replace("SAMPLE", "1")
        .replace("rounds: 18", "rounds: 5000")
        .replace("policies:", "limits: {time_limit_s: 1.0e+8}\npolicies:")
    )
    command = [sys.executable, "-m", "harness", "run", str(path), "--policy", "fair", "--no-report", "--jobs", "1"]
    out = tmp_path / "out"
    with subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.DEVNULL, start_new_session=True) as process:
        end = time.monotonic() + 300
        curves = out / "fair" / "allocations.parquet"
        # The first tables may be of the first moment.
        while not ((out / "fair" / "summary.json").exists() and pq.read_metadata(curves).num_rows > 100):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
    info, summary = (read_json(out / "fair" / name) for name in ("run.json", "summary.json"))
    assert info["exit"] is None
    assert summary["finished"] is False
    rows, jobs = (pd.read_parquet(out / "fair" / name) for name in ("allocations.parquet", "jobs.parquet"))
    assert len(rows) > 100
    assert rows["allocated_mb"].max() > 0
    assert jobs["finished_s"].notna().any()
    assert rows["time_s"].max() < 15_000_000
