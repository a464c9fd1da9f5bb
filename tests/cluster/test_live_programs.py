"""Programs that compute in an experiment on a real cluster: what `yarnfair run --backend local` promises of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from harness.traces.recorded import read_trace
from harness.yarn.releases import DEFAULT
from harness.yarn.rmclient import RmClient
from tests.cluster.local_clusters import Given, given_cluster

pytestmark = pytest.mark.xdist_group("live-programs")

EXPERIMENT = """
experiment: programs
cluster: {nodes: [{count: 2, memory_mb: 4096, vcores: 16}]}
conf:
  yarn.scheduler.minimum-allocation-mb: 256
  yarn.resource-types.memory-mb.increment-allocation: 256
  yarn.scheduler.reservation-threshold.increment-multiple: 5
max_am_share: -1.0
queues: {a: {}, b: {}, c: {}}
workloads:
  a:
    inline:
      kind: programs
      am: &am {memory_mb: 512}
      task: &task {memory_mb: 512}
      data: {uservisits: {kind: uservisits, size: 200KB}}
      arrivals: {mean_gap_s: 3}
      programs:
        - {type: sums, application: aggregation, input: [uservisits], maps: 3, reduces: 1}
        - {type: search, application: fbgrep, input: [uservisits], maps: 2, reduces: 1}
POLICIES
period_s: 2
delays: {node_heartbeat_ms: 300, am_heartbeat_ms: 500}
limits: {time_limit_s: 1500}
"""
#: Grep is two Hadoop jobs; k-means is Spark's.
MORE = """
  b:
    inline:
      kind: programs
      am: *am
      task: *task
      data: {text: {kind: text, size: 100KB}}
      submission: {think_s: 0}
      programs: [{application: grep, input: [text], maps: 1, reduces: 1}]
  c:
    inline:
      kind: programs
      am: {memory_mb: 1024}
      task: *task
      data: {points: {kind: points, size: 100KB}}
      submission: {think_s: 0}
      programs:
        - application: kmeans
          input: [points]
          executors: {count: 1, demand: {memory_mb: 1024}}
          settings: {iterations: "2"}
"""


def experiment(folder: Path, more: str = "") -> Path:
    path = folder / "programs.yaml"
    path.write_text(EXPERIMENT.replace("POLICIES", f"{more}policies: [ltrf@outside]"))
    return path


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given]:
    folder = tmp_path_factory.mktemp("programs")
    text = '<?xml version="1.0"?><allocations><queue name="root"><queue name="mine"/></queue></allocations>'
    with given_cluster(folder, experiment(folder), text, memory_mb=4096, minimum_mb=256) as found:
        yield found


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", *arguments]


@pytest.mark.java
@pytest.mark.live
@pytest.mark.long
def test_programs_run_and_are_measured(given: Given, tmp_path: Path) -> None:
    path, out = experiment(tmp_path, MORE), tmp_path / "out"
    ran = subprocess.run(
        command("run", str(path), "--backend", "local", "--out", str(out), *given.options),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stderr
    folder = out / "ltrf@outside"
    info = json.loads((folder / "run.json").read_text())
    engines = {engine["engine"]: engine for engine in info["programs"]["engines"]}
    assert set(engines) == {"MapReduce", "Spark"}
    assert info["programs"]["hadoop"] == DEFAULT
    assert engines["MapReduce"]["properties"]["mapreduce.map.memory.mb"] == "512"
    assert engines["Spark"]["spark"].startswith("4.")
    assert {data["kind"] for data in info["programs"]["data"]} == {"uservisits", "text", "points"}
    jobs, tasks = (pd.read_parquet(folder / f"{name}.parquet") for name in ("jobs", "tasks"))
    assert sorted(jobs["job"]) == ["a-0001", "a-0002", "b-0001", "b-0001.2", "c-0001"]
    assert not jobs["failed"].any()
    assert (jobs["memory_mb_s"] > 0).all()
    done = tasks[tasks["outcome"] == "finished"]
    counted = done.groupby(["job", "stage"]).size().to_dict()
    large = "a-0001" if (done["job"] == "a-0001").sum() == 4 else "a-0002"
    assert {name: counted[large, name] for name in ("map", "reduce")} == {"map": 3, "reduce": 1}
    assert (counted["b-0001", "map"], counted["b-0001.2", "map"], counted["b-0001.2", "reduce"]) == (1, 1, 1)
    assert any(job == "c-0001" and stage.startswith("stage_") for job, stage in counted)
    assert (done["ended_s"] > done["started_s"]).all()
    # Tasks lie within their jobs, reduces after maps, Grep's second job after its first.
    spans = jobs.set_index("job")
    for row in done.itertuples():
        assert spans.loc[row.job, "submitted_s"] < row.started_s
        assert row.ended_s < spans.loc[row.job, "finished_s"] + 2
    own = done[done["job"] == large]
    assert own[own["stage"] == "reduce"]["started_s"].min() > own[own["stage"] == "map"]["ended_s"].max()
    assert spans.loc["b-0001.2", "submitted_s"] >= spans.loc["b-0001", "finished_s"]
    # The controller was at work.
    decisions = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    assert any("weights" in decision for decision in decisions)
    # What ran is a trace, which the simulator plays.
    found = {job.job: job for job in read_trace(folder / "trace.jsonl").jobs}
    assert found["b-0001.2"].after_job == "b-0001"
    assert found["c-0001"].kind == "spark"
    again = subprocess.run(
        command(
            *("replay", str(folder / "trace.jsonl"), "--policy", "fair", "--out", str(tmp_path / "replayed")),
            *("--against", str(folder), "--no-report", "--json"),
        ),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert again.returncode == 0, again.stderr
    (difference,) = json.loads(again.stdout)["against"]
    assert difference["jobs"] == 5


HIVE = """
experiment: queries
cluster: {nodes: [{count: 2, memory_mb: 4096, vcores: 16}]}
conf:
  yarn.scheduler.minimum-allocation-mb: 256
  yarn.resource-types.memory-mb.increment-allocation: 256
  yarn.scheduler.reservation-threshold.increment-multiple: 5
max_am_share: -1.0
queues: {a: {}, b: {}}
workloads:
  a: &load
    inline:
      kind: programs
      am: {memory_mb: 768}
      task: {memory_mb: 768}
      data: {tpch: {kind: tpch, size: 2MB}}
      submission: {think_s: 0}
      programs:
        - {application: hive-q6, input: [tpch], maps: 1, reduces: 1}
        - {application: hive-q12, input: [tpch], maps: 2, reduces: 1, map_demand: {memory_mb: 1024}}
  b: *load
policies: [fair]
limits: {time_limit_s: 1500}
"""


@pytest.mark.java
@pytest.mark.live
@pytest.mark.long
def test_queries_by_hive_run_and_are_measured(given: Given, tmp_path: Path) -> None:
    path, out = tmp_path / "queries.yaml", tmp_path / "out"
    path.write_text(HIVE)
    ran = subprocess.run(
        command("run", str(path), "--backend", "local", "--no-report", "--out", str(out), *given.options),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stderr
    folder = out / "fair"
    (engine,) = json.loads((folder / "run.json").read_text())["programs"]["engines"]
    assert (engine["engine"], engine["hive"], engine["tez"]) == ("Hive on Tez", "4.0.1", "0.10.5")
    jobs, tasks = (pd.read_parquet(folder / f"{name}.parquet") for name in ("jobs", "tasks"))
    assert sorted(jobs["job"]) == ["a-0001", "a-0002", "b-0001", "b-0002"]
    assert not jobs["failed"].any()
    spans = jobs.set_index("job")
    # One after the other in each queue, the two queues side by side.
    for queue in ("a", "b"):
        assert spans.loc[f"{queue}-0002", "submitted_s"] >= spans.loc[f"{queue}-0001", "finished_s"]
    assert spans.loc["b-0001", "submitted_s"] < spans.loc["a-0001", "finished_s"]
    for row in tasks.itertuples():
        assert row.outcome == "finished"
        assert spans.loc[row.job, "submitted_s"] < row.started_s <= row.ended_s < spans.loc[row.job, "finished_s"] + 2
        assert row.stage.startswith(("map ", "reduce "))
    assert set(tasks["job"]) == set(jobs["job"])
    kinds = {line.job: line for line in read_trace(folder / "trace.jsonl").jobs}
    assert {line.kind for line in kinds.values()} == {"dag"}
    assert {stage.memory_mb for stage in kinds["a-0002"].stages} == {1024}
    assert all(line.am_start_s for line in kinds.values())
    assert [found.name for found in (Path(given.options[-1])).glob("hive-*")] == []


@pytest.mark.java
@pytest.mark.live
def test_a_clusters_own_queues_stay_as_they_are_and_answers_are_kept(given: Given, tmp_path: Path) -> None:
    text = experiment(tmp_path).read_text().replace("queues: {a: {}, b: {}, c: {}}", "queues: {mine: {}}")
    text = text.replace("  a:\n", "  mine:\n").replace("kind: programs", "kind: programs\n      answers: keep")
    text = text.replace("arrivals: {mean_gap_s: 3}", "submission: {think_s: 0}").replace("200KB", "20KB")
    path, out = tmp_path / "kept.yaml", tmp_path / "out"
    path.write_text(text.replace("ltrf@outside", "fair").replace("maps: 3", "maps: 1"))
    at = given.options.index("--allocations")
    call = command("run", str(path), "--backend", "local", "--out", str(out), "--no-report")
    call += given.options[:at] + given.options[at + 2 :]
    before = given.file.read_bytes()
    ran = subprocess.run(call, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr
    assert given.file.read_bytes() == before
    jobs = pd.read_parquet(out / "fair" / "jobs.parquet").set_index("job")
    assert set(jobs["queue"]) == {"root.mine"}
    assert not jobs["failed"].any()
    for job in ("mine-0001", "mine-0002"):
        assert list((out / "fair" / "answers" / job).glob("part-*"))
    # A queue that is not there is reported before anything runs, and what the folder holds stays as it was.
    path.write_text(path.read_text().replace("mine: {}}", "mine: {}, other: {}}"))
    kept = (out / "fair" / "jobs.parquet").read_bytes()
    ran = subprocess.run(call, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 1
    assert "no queue root.other" in ran.stderr.splitlines()[-1]
    assert (out / "fair" / "jobs.parquet").read_bytes() == kept


@pytest.mark.java
@pytest.mark.live
def test_interrupted_programs_end_and_what_was_measured_stays(given: Given, tmp_path: Path) -> None:
    path, out = experiment(tmp_path), tmp_path / "out"
    call = command("run", str(path), "--backend", "local", "--out", str(out), "--no-report", *given.options)
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            with RmClient([given.address]) as client:
                end = time.monotonic() + 600
                while not any(app.type == "MAPREDUCE" and app.state == "RUNNING" for app in client.rest.apps()):
                    assert running.poll() is None, running.communicate()[1]
                    assert time.monotonic() < end, "no master registered"
                    time.sleep(0.5)
                running.send_signal(signal.SIGINT)
                _, errors = running.communicate(timeout=300)
                assert running.returncode == 130, errors
                end = time.monotonic() + 120
                while not all(app.final for app in client.rest.apps()):
                    assert time.monotonic() < end, "something runs on"
                    time.sleep(0.5)
        finally:
            if running.poll() is None:
                running.kill()
    folder = out / "ltrf@outside"
    assert json.loads((folder / "run.json").read_text())["exit"] == 130
    assert len(pd.read_parquet(folder / "jobs.parquet")) >= 1
    assert (folder / "tasks.parquet").is_file()


@pytest.mark.parametrize("backend", ["sim", "ssh"])
def test_other_backends_refuse_programs_in_one_line(backend: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        command("run", str(experiment(tmp_path)), "--backend", backend, "--out", str(tmp_path / "out")),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 2
    assert "queue root.a runs programs that compute" in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
