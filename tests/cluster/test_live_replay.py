"""Experiments on real containers: what `yarnfair run --backend local|docker` promises, and recording what ran."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.experiments.real.abandoned import clean_abandoned
from harness.experiments.resolve import jobs_of, load_experiment
from harness.jobs.replay import durations_ms, stages_in_order
from harness.traces.recorded import read_trace
from harness.yarn.adminrpc import effective_queues
from harness.yarn.releases import DEFAULT
from harness.yarn.rmclient import RmClient
from tests.cluster.local_clusters import Given, given_cluster

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-replay")]

EXPERIMENT = """
experiment: tiny
cluster: {nodes: [{count: 2, memory_mb: 8192, vcores: 16}]}
conf: {yarn.scheduler.reservation-threshold.increment-multiple: 3}
max_am_share: -1.0
queues: {a: {}, b: {}, c: {}}
workloads:
  a:
    inline:
      kind: sequence
      submission: {every_s: 6}
      rounds: ROUNDS
      slow_start: 0.5
      tail: 0.5
      am: &am {memory_mb: 1024}
      task: &task {demand: {memory_mb: 1024}, duration: {lognormal: {mean_s: SECONDS, sigma: 0.4}}}
      jobs: [{name: mr, maps: 8, reduces: 2}]
  b:
    inline:
      kind: sequence
      submission: {think_s: 1}
      rounds: ROUNDS
      am: *am
      task: *task
      jobs: [{name: dag, stages: [{name: s, tasks: 4}, {name: t, tasks: 2, after: [s]}]}]
  c:
    inline:
      kind: sequence
      submission: {think_s: 1}
      am: *am
      task: *task
      jobs:
        - name: spark
          executors: {count: 2, slots: 2, demand: {memory_mb: 1024}}
          stages: [{name: u, tasks: 6}, {name: v, tasks: 2, after: [u]}]
policies: [fair]
period_s: 2
sample_s: 0.5
delays: {node_heartbeat_ms: 200, am_heartbeat_ms: 500, am_response_heartbeats: 0}
limits: {time_limit_s: 200}
"""


def experiment(folder: Path, *, seconds: float = 1.5, rounds: int = 2, more: str = "") -> Path:
    path = folder / "tiny.yaml"
    path.write_text(EXPERIMENT.replace("SECONDS", str(seconds)).replace("ROUNDS", str(rounds)) + more)
    return path


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given]:
    folder = tmp_path_factory.mktemp("replay")
    text = '<?xml version="1.0"?><allocations><queue name="mine"/></allocations>'
    with given_cluster(folder, experiment(folder), text, memory_mb=8192, minimum_mb=1024, timeout_s=170) as found:
        yield found


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


def check_run(path: Path, folder: Path) -> None:
    """A run directory like the simulator's, with every task that was asked for and no other."""
    info, summary = (json.loads((folder / name).read_text()) for name in ("run.json", "summary.json"))
    assert info["exit"] == 0, info.get("why")
    assert info["cluster"]["version"] == DEFAULT
    assert info["cluster"]["id"] > 10**12
    assert {"am_start_ms", "container_start_ms"} <= set(info["measured"])
    assert summary["finished"] is True
    tasks, jobs, curves = (pd.read_parquet(folder / f"{name}.parquet") for name in ("tasks", "jobs", "allocations"))
    listed = {job.id: job for job in jobs_of(load_experiment(str(path)), info["seed"])[0]}
    assert set(jobs["job"]) == set(listed)
    for identity, job in listed.items():
        own = tasks[(tasks["job"] == identity) & (tasks["outcome"] == "finished")]
        drawn = dict(zip([s.name for s in stages_in_order(job)], durations_ms(job, info["seed"]), strict=True))
        for stage in job.stages:
            done = own[own["stage"] == stage.name].set_index("task")
            assert sorted(done.index) == list(range(stage.tasks)), f"{identity} {stage.name}"
            for number, [(ms, _)] in enumerate(drawn[stage.name]):
                ended_s, earliest_s = done.loc[number, "ended_s"], done.loc[number, "started_s"] + ms / 1000
                if stage.tail:  # it works so much of its time after the last map
                    earliest_s = max(earliest_s, own[own["stage"] == "map"]["ended_s"].max() + stage.tail * ms / 1000)
                assert ended_s > earliest_s - 0.005, "a task that ended too soon"
                assert ended_s < earliest_s + 3
            for before in stage.after:
                last = own[own["stage"] == before]["ended_s"].max()
                assert (done["ended_s"] >= last).all()
    containers = tasks[tasks["queue"] != "root.c"]["container"]
    assert containers.is_unique
    ordered = tasks[tasks["queue"] != "root.c"]
    for earlier, later in (("asked", "granted"), ("granted", "heard"), ("heard", "started"), ("ended", "told")):
        assert (ordered[f"{earlier}_s"] <= ordered[f"{later}_s"] + 0.005).all(), (earlier, later)
    # What the samples add up to is what the RM counted.
    root = curves[curves["queue"] == "root"]
    assert root["accumulated_mb_s"].iloc[-1] == pytest.approx(jobs["memory_mb_s"].sum(), rel=0.1)
    assert root["allocated_mb"].max() <= 16384


def test_on_the_capacity_scheduler_too(tmp_path: Path) -> None:
    path = experiment(tmp_path, rounds=1)
    variants = ("capacity,scheduler=capacity", "ltrf@outside,scheduler=capacity")
    uses = "[{policy: capacity, scheduler: capacity}, {policy: ltrf, mode: outside, scheduler: capacity}]"
    path.write_text(path.read_text().replace("policies: [fair]", f"policies: {uses}"))
    ran = call("run", str(path), "--backend", "local", "--no-report", "--out", str(tmp_path / "out"))
    assert ran.returncode == 0, ran.stderr
    for variant in variants:
        check_run(path, tmp_path / "out" / variant)
        header = read_trace(tmp_path / "out" / variant / "trace.jsonl").header
        assert (header.scheduler, header.capacity) == ("capacity", {})
    decisions = _lines(tmp_path / "out" / variants[1] / "decisions.jsonl")
    assert [found for found in decisions if "weights" in found]
    assert not [found for found in decisions if found.get("alarm") in ("trap", "not-in-force")]


def test_the_same_experiment_on_real_containers(given: Given, tmp_path: Path) -> None:
    path, before = experiment(tmp_path), given.file.read_bytes()
    ran = call(
        "run", str(path), "--backend", "local", "--policy", "fair,ltrf", "--out", str(tmp_path / "out"), *given.options
    )
    assert ran.returncode == 0, ran.stderr
    for variant in ("fair", "ltrf@outside"):
        check_run(path, tmp_path / "out" / variant)
        assert (tmp_path / "out" / variant / "report.html").stat().st_size > 10_000
    decisions = _lines(tmp_path / "out" / "ltrf@outside" / "decisions.jsonl")
    written = [found for found in decisions if "weights" in found]
    assert len(written) >= 2
    assert all(found["effect_s"] < 10 for found in written)
    assert not [found for found in decisions if found.get("alarm") == "not-in-force"]
    curves = pd.read_parquet(tmp_path / "out" / "ltrf@outside" / "allocations.parquet")
    assert curves[curves["queue"] == "root.a"]["weight"].nunique() >= 2
    # Somebody's cluster: its own queues are back, nothing runs.
    assert given.file.read_bytes() == before
    # What ran is a trace, which the simulator plays.
    trace = tmp_path / "out" / "fair" / "trace.jsonl"
    assert {job.detail for job in read_trace(trace).jobs} == {"tasks"}
    folder = tmp_path / "replayed"
    against = tmp_path / "out" / "fair"
    options = ["--policy", "fair", "--out", str(folder), "--against", str(against), "--no-report", "--json"]
    again = call("replay", str(trace), *options)
    assert again.returncode == 0, again.stderr
    (difference,) = json.loads(again.stdout)["against"]
    assert difference["jobs"] == 5
    assert difference["completion_difference"] < 0.5
    # So does what only the RM knows of it.
    recorded = call("record", "--rm", given.address.rest, "-o", str(tmp_path / "rm.jsonl"), "--json")
    assert recorded.returncode == 0, recorded.stderr
    assert json.loads(recorded.stdout)["detail"]["integrals"] >= 10
    found = read_trace(tmp_path / "rm.jsonl")
    recorded_jobs = {job.job for job in found.jobs}
    with RmClient([given.address]) as client:
        # One that was killed, as a warm-up whose master does not come, is no part of a trace.
        counted = sum(app.vcore_seconds for app in client.rest.apps() if app.id in recorded_jobs)
    assert counted > 100
    cut = sum(
        sum(sum(stage.tasks_s) for stage in job.stages) + (job.finished_s or 0) - (job.started_s or 0)
        for job in found.jobs
    )
    assert cut == pytest.approx(counted, rel=0.15)


def test_a_cluster_whose_file_never_named_the_root_keeps_its_root(given: Given) -> None:
    # An RM that has read <queue name="root"> and then a file without it deletes its root with the last empty queue.
    assert b'name="root"' not in given.file.read_bytes()
    assert given.address.client is not None
    end = time.monotonic() + 60
    while "root.a" in (queues := effective_queues(given.address.client, user="root")):
        assert time.monotonic() < end, "the RM has not tidied up its queues"
        time.sleep(0.5)
    time.sleep(1)
    assert set(effective_queues(given.address.client, user="root")) == {"root", "root.mine"} == set(queues)


def test_jobs_that_fail_make_the_run_invalid(given: Given, tmp_path: Path) -> None:
    path = experiment(tmp_path, seconds=0.3, rounds=1, more="faults: {failure: 1.0, max_attempts: 2}\n")
    ran = call("run", str(path), "--backend", "local", "--no-report", "--out", str(tmp_path / "out"), *given.options)
    assert ran.returncode == 4, ran.stderr
    assert "failed 2 times" in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
    jobs = pd.read_parquet(tmp_path / "out" / "fair" / "jobs.parquet")
    assert jobs["failed"].all()


@pytest.mark.parametrize("how", ["interrupted", "timed out"])
def test_what_is_cut_short_kills_its_jobs_and_keeps_what_it_measured(given: Given, tmp_path: Path, how: str) -> None:
    path, out = experiment(tmp_path, seconds=20), tmp_path / "out"
    if how == "timed out":
        path.write_text(path.read_text().replace("time_limit_s: 200", "time_limit_s: 8"))
    command = [sys.executable, "-m", "harness", "run", str(path), "--backend", "local", "--no-report"]
    with subprocess.Popen(
        [*command, "--out", str(out), *given.options], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        if how == "interrupted":
            end = time.monotonic() + 120
            while not _holds(out / "fair" / "allocations.parquet"):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.2)
            os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=150)
    assert process.returncode == (130 if how == "interrupted" else 5), told
    assert "Traceback" not in told
    info = json.loads((out / "fair" / "run.json").read_text())
    assert info["exit"] == process.returncode
    curves, jobs = (pd.read_parquet(out / "fair" / name) for name in ("allocations.parquet", "jobs.parquet"))
    assert curves["allocated_mb"].max() > 0
    assert len(jobs) >= 3
    with RmClient([given.address]) as client:
        assert client.rest.apps(states=("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")) == []


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _holds(path: Path) -> bool:
    try:
        return bool(pd.read_parquet(path)["allocated_mb"].max() > 0)
    except (OSError, ValueError):
        return False


@pytest.mark.docker
def test_a_cluster_of_containers_is_brought_up_for_a_run(tmp_path: Path) -> None:
    path, out = experiment(tmp_path, rounds=1), tmp_path / "out"
    ran = call("run", str(path), "--backend", "docker", "--no-report", "--out", str(out))
    assert ran.returncode == 0, ran.stderr
    check_run(path, out / "fair")
    assert clean_abandoned() == []
