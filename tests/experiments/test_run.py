"""``yarnfair run`` as users call it: run directories, exit codes, the same bytes for the same seed, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from harness.base.errors import RunInvalid
from harness.cli import main
from harness.cli.run import verdict
from harness.experiments.kind import NEVER_ENDS, Ended
from harness.report.data import load_run

ROOT = Path(__file__).resolve().parents[2]
TASK = {"demand": {"memory_mb": 1024}, "duration": {"lognormal": {"mean_s": 8, "sigma": 0.5}}}
EXPERIMENT = {
    "experiment": "small",
    "cluster": {"nodes": [{"count": 4, "memory_mb": 4096, "vcores": 8}]},
    "queues": {"a": {"weight": 1}, "b": {"weight": 1}},
    "max_am_share": -1.0,
    "workloads": {
        "a": {"inline": {
            "kind": "bins",
            "am": {"memory_mb": 1024},
            "arrivals": {"mean_gap_s": 10},
            "map": TASK,
            "reduce": TASK,
            "bins": [{"type": "few", "maps": 3, "jobs": 4}, {"type": "many", "maps": 30, "reduces": 2, "jobs": 2}],
        }},
        "b": {"inline": {
            "kind": "sequence",
            "am": {"memory_mb": 1024},
            "submission": {"think_s": 20},
            "task": TASK,
            "jobs": [{"name": "q", "stages": [{"name": "s", "tasks": 12}, {"name": "t", "tasks": 4, "after": ["s"]}]}],
            "rounds": 3,
        }},
    },
    "policies": ["static", "fair", "ltrf", {"policy": "ltrf", "mode": "outside", "period_s": 5}],
    "limits": {"time_limit_s": 5000},
}  # fmt: skip
FILES = [
    *("allocations.parquet", "debug.log", "decisions.jsonl", "jobs.parquet", "report.html", "run.json"),
    "summary.json",
]


def write(folder: Path, **changes: object) -> str:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, **changes}))
    return str(path)


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["run", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def without_wall(path: Path) -> dict[str, object]:
    summary: dict[str, object] = json.loads((path / "summary.json").read_text())
    del summary["wall_s"]
    return summary


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    assert call(write(folder), "--out", str(folder / "out"), "--jobs", "1") == 0
    return folder / "out"


def test_a_run_directory_for_each_policy_with_all_its_files(ran: Path) -> None:
    assert sorted(p.name for p in ran.iterdir() if p.is_dir()) == ["fair", "ltrf", "ltrf@outside", "static"]
    for directory in (p for p in ran.iterdir() if p.is_dir()):
        assert sorted(p.name for p in directory.iterdir()) == FILES
        info = json.loads((directory / "run.json").read_text())
        assert info["exit"] == 0
        assert info["end"] is not None
        assert info["experiment"]["workloads"]["root.b"]["workload"]["rounds"] == 3
        assert load_run(directory).counts
    assert (ran / "report.html").is_file()


def test_the_summary_has_the_promised_fields_and_agrees_with_the_tables(ran: Path) -> None:
    for directory in (p for p in ran.iterdir() if p.is_dir()):
        summary = json.loads((directory / "summary.json").read_text())
        assert {
            "makespan_s", "sharing_benefit", "sharing_loss", "sharing_loss_integral", "last_loss_s", "utilisation",
            "queues", "events", "wall_s",
        } <= set(summary)  # fmt: skip
        assert summary["sharing_benefit"] >= 0 >= summary["sharing_loss"]
        jobs = pd.read_parquet(directory / "jobs.parquet")
        curves = pd.read_parquet(directory / "allocations.parquet")
        assert summary["makespan_s"] == pytest.approx(jobs["finished_s"].max())
        for name, queue in summary["queues"].items():
            own = jobs[jobs["queue"] == name]
            assert (queue["jobs"], queue["failed"]) == (len(own), 0)
            assert queue["mean_completion_s"] == pytest.approx((own["finished_s"] - own["submitted_s"]).mean())
            last = curves[curves["queue"] == name].iloc[-1]
            assert queue["fairness_degree"] == pytest.approx(last["accumulated_mb_s"] / last["due_mb_s"])
            # What the queue's curve integrates to is what its jobs used.
            assert queue["resource_seconds"] == pytest.approx(own["memory_mb_s"].sum(), rel=1e-6)
        assert sum(summary["queues"][q]["jobs"] for q in summary["queues"]) == 6 + 3


def test_speed_ups_are_relative_to_static(ran: Path) -> None:
    static, ltrf = (json.loads((ran / name / "summary.json").read_text())["queues"] for name in ("static", "ltrf"))
    for queue in static:
        assert static[queue]["speedup_over_static"] == 1
        expected = static[queue]["mean_completion_s"] / ltrf[queue]["mean_completion_s"]
        assert ltrf[queue]["speedup_over_static"] == pytest.approx(expected)


def test_static_gives_no_queue_more_than_its_share(ran: Path) -> None:
    curves = pd.read_parquet(ran / "static" / "allocations.parquet")
    leaves = curves[curves["queue"].isin(["root.a", "root.b"])]
    assert (leaves["share_mb"] == 8192).all()
    assert (leaves["allocated_mb"] <= 8192).all()
    assert (leaves.groupby("queue", observed=True)["allocated_mb"].max() == 8192).all()


def test_a_static_partition_neither_gains_nor_loses_more_than_a_container(ran: Path) -> None:
    curves = pd.read_parquet(ran / "static" / "allocations.parquet")
    for queue in ("root.a", "root.b"):
        last = curves[curves["queue"] == queue].iloc[-1]
        assert last["accumulated_mb_s"] <= last["due_mb_s"] + 1e-6
        assert last["due_mb_s"] - last["accumulated_mb_s"] <= 1024 * last["time_s"]


def test_the_same_seed_gives_the_same_bytes_however_many_run_side_by_side(ran: Path, tmp_path: Path) -> None:
    assert call(write(tmp_path), "--out", str(tmp_path / "out"), "--jobs", "2", "--no-report") == 0
    for name in ("static", "fair", "ltrf", "ltrf@outside"):
        for file in ("jobs.parquet", "allocations.parquet", "decisions.jsonl"):
            assert (ran / name / file).read_bytes() == (tmp_path / "out" / name / file).read_bytes(), f"{name}/{file}"
        assert without_wall(ran / name) == without_wall(tmp_path / "out" / name)


def test_another_seed_gives_another_run(ran: Path, tmp_path: Path) -> None:
    assert call(write(tmp_path), "--policy", "fair", "--seed", "2", "--out", str(tmp_path / "out"), "--no-report") == 0
    assert without_wall(ran / "fair") != without_wall(tmp_path / "out" / "fair")


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = call(write(tmp_path), "--policy", "ltrf@outside", "--set", "period=2", "--set", "horizon_s=30", "--json",
                "--no-report", "--out", str(tmp_path / "out"))  # fmt: skip
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert code == 0
    (run,) = document["runs"]
    assert run["policy"] == {"name": "ltrf", "mode": "outside", "settings": {"horizon_s": "30"}, "period_s": 2.0}
    assert run["summary"]["queues"]["root.a"]["speedup_over_static"] is None, "no static run belongs to this call"
    lines = (tmp_path / "out" / run["variant"] / "decisions.jsonl").read_text().splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_the_comparison_fits_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(write(tmp_path), "--policy", "fair", "--no-report", "--out", str(tmp_path / "out")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("sharing loss integral") for line in lines)


def test_several_experiments_say_first_what_came_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**EXPERIMENT, "experiment": "other", "about": "Another load"}))
    arguments = (write(tmp_path), str(other), "--policy", "fair,ltrf@outside", "--no-report", "--out")
    assert call(*arguments, str(tmp_path / "out")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    said = [at for at, line in enumerate(lines) if line.startswith(("What changed: ", "What it cost: ", "What next: "))]
    tables = [at for at, line in enumerate(lines) if line.startswith("makespan (s)")]
    assert (len(said), len(tables)) == (6, 2)
    assert max(said) < min(tables)
    assert lines.count("other: Another load") == 2
    assert sorted(path.parent.name for path in (tmp_path / "out").glob("*/fair")) == ["other", "small"]


def test_a_policy_on_another_scheduler_is_credited_with_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a pair on one scheduler, the Capacity Scheduler's gain was said to be the policy's."""
    mine = {"policy": "ltrf", "mode": "outside", "scheduler": "capacity", "name": "mine"}
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, "policies": ["fair", mine]}))
    out = tmp_path / "out"
    assert call(str(path), "--out", str(out)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(
        "What changed: not comparable, because mine,scheduler=capacity ran on the Capacity Scheduler and fair on the "
    )
    (page,) = out.glob("*.html")
    assert "What changed" not in page.read_text(encoding="utf-8")


def test_failed_jobs_are_exit_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, faults={"failure": 1.0, "max_attempts": 1})
    assert call(path, "--policy", "fair", "--no-report", "--out", str(tmp_path / "out")) == 4
    error = capsys.readouterr().err.splitlines()[-1]
    assert "job(s) failed" in error
    assert json.loads((tmp_path / "out" / "fair" / "run.json").read_text())["exit"] == 4
    assert json.loads((tmp_path / "out" / "fair" / "summary.json").read_text())["queues"]["root.b"]["failed"] > 0


def test_the_time_limit_is_exit_code_5_but_a_planned_end_is_not(tmp_path: Path) -> None:
    path = write(tmp_path, limits={"time_limit_s": 30})
    assert call(path, "--policy", "fair", "--no-report", "--out", str(tmp_path / "out")) == 5
    assert json.loads((tmp_path / "out" / "fair" / "run.json").read_text())["exit"] == 5
    path = write(tmp_path, limits={"duration_s": 30})
    assert call(path, "--policy", "fair", "--no-report", "--out", str(tmp_path / "out")) == 0
    assert json.loads((tmp_path / "out" / "fair" / "summary.json").read_text())["makespan_s"] == 30


def test_a_wrong_call_leaves_nothing_behind(tmp_path: Path) -> None:
    for arguments in (["--policy", "nope"], ["--set", "t_wait"], ["--backend", "cloud"], ["--set", "x=1"]):
        assert call(write(tmp_path), "--out", str(tmp_path / "out"), *arguments) == 2
    assert not (tmp_path / "out").exists()


@contextmanager
def long_run(folder: Path, jobs: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A run that takes long enough to be interrupted, as soon as its first directory is there; its folder of runs."""
    inline = {**EXPERIMENT["workloads"]["b"]["inline"], "rounds": 20_000}  # type: ignore[index]
    path = write(folder, workloads={"b": {"inline": inline}}, limits={"time_limit_s": 1e8}, sample_s=100.0)
    out = folder / "out"
    command = [sys.executable, "-m", "harness", "run", path, "--policy", "fair", "--policy", "ltrf", "--jobs", jobs,
               "--no-report", "--out", str(out)]  # fmt: skip
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stderr=errors, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 300
            while not (out / "fair" / "run.json").exists():
                assert process.poll() is None, "it ended before it could be interrupted"
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield process, out
        finally:
            process.kill()
            process.wait(300)


@pytest.mark.parametrize(("jobs", "room"), [((), 3), (("--jobs", "2"), 2)])
def test_as_many_run_side_by_side_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: tuple[str, ...], room: int
) -> None:
    asked: list[int] = []

    def processes(count: int) -> None:
        asked.append(count)
        raise RunInvalid("seen")

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr("harness.experiments.campaign.executors.Processes", processes)
    call(write(tmp_path), "--out", str(tmp_path / "out"), "--no-report", *jobs)
    assert asked == [room]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_is_exit_code_130_and_leaves_readable_directories(tmp_path: Path, jobs: str) -> None:
    with long_run(tmp_path, jobs) as (process, out):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 130
    assert (tmp_path / "stderr").read_text().splitlines()[-1] == "yarnfair: interrupted"
    info = json.loads((out / "fair" / "run.json").read_text())
    assert (info["exit"], info["why"]) == (130, "interrupted")
    assert load_run(out / "fair").state.startswith("interrupted")


def test_a_killed_run_is_marked_unfinished_and_may_be_run_again(tmp_path: Path) -> None:
    with long_run(tmp_path, "1") as (process, out):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=300)
    assert json.loads((out / "fair" / "run.json").read_text())["exit"] is None
    assert load_run(out / "fair").state.startswith("unfinished")
    assert call(write(tmp_path), "--policy", "fair", "--no-report", "--out", str(out)) == 0
    assert json.loads((out / "fair" / "run.json").read_text())["exit"] == 0


def test_a_job_of_more_stages_than_the_simulator_takes_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = dict(EXPERIMENT["workloads"]["b"]["inline"])  # type: ignore[index]
    workload["jobs"] = [{**workload["jobs"][0], "iterations": 32}]
    path = write(tmp_path, workloads={"b": {"inline": workload}})
    assert call(path, "--out", str(tmp_path / "out"), "--policy", "fair", "--jobs", "1") == 1
    said = capsys.readouterr().err
    assert "has 64 stages" in said
    assert f"{path}:" in said
    assert not (tmp_path / "out" / "fair").exists()


@pytest.mark.parametrize(
    ("why", "hint"),
    [
        ("2 jobs failed", "look at jobs.parquet there"),
        (f"{NEVER_ENDS}: lower max_am_share", None),
        ("the policy never acted: no write took effect", "look at the alarms in decisions.jsonl there"),
    ],
)
def test_a_run_that_can_never_end_says_its_own_mend(why: str, hint: str | None) -> None:
    with pytest.raises(RunInvalid) as caught:
        verdict([Ended(SimpleNamespace(name="fair"), Path("run"), exit_code=4, why=why)])
    assert caught.value.hint == hint
