"""A simulated run's directory as a trace: the same jobs with the same task times, which end when they ended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.predict.foreign import any_trace
from harness.traces.recorded import Trace

TASK = "{demand: {memory_mb: 1024}, duration: {lognormal: {mean_s: 8, sigma: 0.5}}}"
EXPERIMENT = f"""
experiment: small
cluster: {{nodes: [{{count: 3, memory_mb: 4096, vcores: 8}}]}}
queues: {{a: {{weight: 2}}, b: {{children: {{c: {{}}, d: {{}}}}}}}}
workloads:
  a:
    inline:
      kind: bins
      am: {{memory_mb: 1024}}
      arrivals: {{mean_gap_s: 10}}
      map: {TASK}
      reduce: {TASK}
      bins: [{{type: few, maps: 3, jobs: 4}}, {{type: many, maps: 20, reduces: 2, jobs: 2}}]
  c:
    inline:
      kind: sequence
      am: {{memory_mb: 1024}}
      submission: {{think_s: 20}}
      task: {TASK}
      jobs: [{{name: q, stages: [{{name: s, tasks: 12}}, {{name: t, tasks: 4, after: [s]}}]}}]
      rounds: 3
policies: [fair, ltrf, {{policy: capacity, scheduler: capacity}}]
"""


def yarnfair(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "small.yaml").write_text(EXPERIMENT)
    assert yarnfair("run", str(folder / "small.yaml"), "--seed", "3", "--out", str(folder / "out"), "--no-report") == 0
    return folder / "out"


def run_of(runs: Path, policy: str) -> Path:
    (found,) = [
        path.parent for path in runs.glob("*/run.json") if json.loads(path.read_text())["policy"]["name"] == policy
    ]
    return found


@pytest.mark.parametrize("policy", ["fair", "capacity"])
def test_its_trace_replayed_is_the_run(runs: Path, tmp_path: Path, policy: str) -> None:
    run = run_of(runs, policy)
    trace = any_trace(run, None, tmp_path / "trace.jsonl")
    assert isinstance(trace, Trace)
    assert (trace.header.scheduler, trace.header.queues["root.a"].weight) == (policy, 2.0)
    code = yarnfair(
        "replay", str(trace.path), "--policy", policy, "--seed", "3", "--phases", "0", "--out", str(tmp_path / "again"),
        "--no-report",
    )  # fmt: skip
    assert code == 0
    (again,) = (tmp_path / "again").glob("*/jobs.parquet")
    before, after = (pd.read_parquet(path).set_index("job") for path in (run / "jobs.parquet", again))
    assert len(before) == 9
    apart = (before["finished_s"] - after["finished_s"].reindex(before.index)).abs()
    assert apart.max() < 0.03 * before["finished_s"].max(), apart


def test_a_run_that_says_nothing_about_the_scheduler_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"under ltrf.*; give a run under fair"):
        any_trace(run_of(runs, "ltrf"), None, tmp_path / "trace.jsonl")
    assert not (tmp_path / "trace.jsonl").exists()
    other = tmp_path / "slots"
    other.mkdir()
    (other / "run.json").write_text('{"policy": {"name": "fair"}, "seed": 1, "experiment": {"kind": "slots"}}')
    with pytest.raises(InputError, match="no run of a YARN cluster"):
        any_trace(other, None, tmp_path / "trace.jsonl")


@pytest.mark.parametrize(("change", "said"), [(Path.unlink, "no such file"), (None, "not a readable parquet file")])
def test_a_run_without_its_jobs_is_refused_in_a_line(
    runs: Path, tmp_path: Path, change: Callable[[Path], None] | None, said: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_of(runs, "fair"), run)
    if change is None:
        (run / "jobs.parquet").write_bytes(b"PAR1 and no more")
    else:
        change(run / "jobs.parquet")
    with pytest.raises(InputError, match=rf"jobs\.parquet: {said}.*; "):
        any_trace(run, None, tmp_path / "trace.jsonl")


def test_a_workload_of_the_project_is_found_with_its_trace(tmp_path: Path) -> None:
    """``run.json`` names the trace as the workload's file does, which lies in none of the run's folders."""
    experiment = tmp_path / "facebook.yaml"
    experiment.write_text(
        """
experiment: facebook
cluster: {nodes: [{count: 3, memory_mb: 8192, vcores: 8}]}
queues: {a: {}}
workloads: {a: {use: facebook, but: {bins: [{type: few, maps: 3, jobs: 4}]}}}
policies: [fair]
"""
    )
    assert yarnfair("run", str(experiment), "--seed", "1", "--out", str(tmp_path / "out"), "--no-report") == 0
    trace = any_trace(run_of(tmp_path / "out", "fair"), None, tmp_path / "trace.jsonl")
    assert isinstance(trace, Trace)
    assert len(trace.jobs) == 4


def test_a_run_that_was_cut_is_charged_until_then(tmp_path: Path) -> None:
    """A Spark application holds its executors until it ends, which is after the end of the run."""
    spark = (
        "{inline: {kind: sequence, am: {memory_mb: 1024}, submission: {think_s: 20}, rounds: 1, "
        f"task: {TASK}, jobs: [{{name: s, executors: {{count: 3, demand: {{memory_mb: 1024, vcores: 1}}}}, "
        "stages: [{name: t, tasks: 2000}]}]}}"
    )
    upto = EXPERIMENT.partition("workloads:\n")[0] + f"workloads:\n  a: {spark}\n"
    (tmp_path / "cut.yaml").write_text(f"{upto}policies: [fair]\nlimits: {{duration_s: 300}}\n")
    yarnfair("run", str(tmp_path / "cut.yaml"), "--out", str(tmp_path / "out"), "--no-report")
    run = run_of(tmp_path / "out", "fair")
    trace = any_trace(run, None, tmp_path / "trace.jsonl")
    [job] = trace.jobs
    queue = json.loads((run / "summary.json").read_text())["queues"]["root.a"]
    assert job.counted_until_s == 300.0
    assert job.counted_mb_s == pytest.approx(queue["resource_seconds"], abs=0.01)
    assert job.counted_mb_s > 0.9 * 4 * 1024 * 300
