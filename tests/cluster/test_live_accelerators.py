"""Accelerators on a real Docker cluster: nodes of several types join, compute at their rates, and leave again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.clusters.accelerators import Accelerators, NodeType
from harness.clusters.compose import DockerCluster, docker_client
from harness.clusters.shared import ContainerFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.experiments.real.abandoned import clean_abandoned
from harness.jobs.replay import ReplayOptions
from harness.jobs.submit import NODE_PROPERTIES, Replayer, scheduler_address
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmClient

pytestmark = [pytest.mark.docker, pytest.mark.live, pytest.mark.xdist_group("live-accelerators")]

SIZE = Resource(128, 1)
#: More vcores than an accelerator here has: masters stay on the core node, whatever leaves.
MASTER = Resource(128, 3)
#: An experiment that is over soon: an hour of half a minute.
SMALL = """
kind: cloud
experiment: small
period_h: 4
queries:
  Crypto: {work_cu_h: 2, memory_gb: 0.4}
  Sort: {work_cu_h: 1, memory_gb: 2.0}
configurations:
  1m1: {core: {m1.large: 1}}
driver: {core: {m1.large: 1}, types: [c1.medium, m2.2xlarge], deadline_h: 0.01, most: 1}
docker:
  hour_s: 30
  cpus_per_cu: 0.05
  tasks:
    Crypto: {program: crypto, size: 100000, count: 4}
    Sort: {program: sort, size: 50000, count: 2}
  periods: 1
  waves: 1
"""


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


@dataclass(frozen=True)
class Running:
    state: Path
    cluster: DockerCluster
    client: RmClient
    replayer: Replayer

    def grow(self, kind: str, cpus: float, nodes: int = 1) -> list[dict[str, Any]]:
        options = ["--type", kind, "--cpus", str(cpus), "--nodes", str(nodes), "--memory-mb", "1024", "--vcores", "2"]
        ran = call("cluster", "grow", "--state", str(self.state), *options, "--timeout", "300", "--json")
        assert ran.returncode == 0, ran.stderr
        joined: list[dict[str, Any]] = json.loads(ran.stdout)["joined"]
        return joined

    def shrink(self, *arguments: str) -> dict[str, int]:
        ran = call("cluster", "shrink", "--state", str(self.state), *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        left: dict[str, int] = json.loads(ran.stdout)["left"]
        return left

    def job(self, name: str, host: str, tasks: int, command: str) -> str:
        stage = Stage("task", tasks, SIZE, Duration("constant", value_s=1.0))
        job = JobSpec(name, "root.default", "mapreduce", MASTER, (stage,))
        return self.replayer.submit(job, programs={"task": command}, hosts={"task": host})

    def until_ended(self, *names: str) -> None:
        until("the jobs end", lambda: not {app.name for app in self.replayer.live()} & set(names))


def until(what: str, met: Callable[[], bool], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, what
        time.sleep(0.3)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("accelerators")
    spec = ClusterSpec(nodes=1, memory_mb=1024, vcores=6, minimum_allocation_mb=128, properties=dict(NODE_PROPERTIES))
    state = StateFolder(folder / "state")
    cluster = DockerCluster(state)
    try:
        status = cluster.up(spec, timeout_s=300)
        loaded = state.load()
        assert loaded is not None
        with docker_client() as engine, RmClient([status.address], HttpOptions(user="alice")) as client:
            labels = [f"com.docker.compose.project={loaded.mark}", "com.docker.compose.service=rm"]
            shared = ContainerFolder(engine.containers.list(filters={"label": labels})[0], "/shared/test")
            options = ReplayOptions(rm=scheduler_address(client.rest), seed=0, am_heartbeat_ms=500)
            replayer = Replayer(client.rest, shared, options, tag="accelerators", python="/usr/bin/python3")
            shared.write({"work.py": data_path("workloads", "cloud", "work.py").read_bytes()})
            yield Running(folder / "state", cluster, client, replayer)
    finally:
        left = cluster.down()
    assert left == []


def test_nodes_of_types_join_compute_and_leave(running: Running) -> None:
    slow, fast = running.grow("slow", 0.25)[0], running.grow("fast", 1.0)[0]
    assert (slow["name"], fast["name"]) == ("slow-1", "fast-1")
    nodes = {node.id: node for node in running.client.rest.nodes(("RUNNING",))}
    assert len(nodes) == 3
    assert nodes[slow["id"]].total == nodes[fast["id"]].total == Resource(1024, 2)
    status = running.cluster.status()
    assert status is not None
    assert (status.up, status.wanted) == (True, 3)
    assert {"slow-1", "fast-1"} < {part.name for part in status.parts}
    # Each type's rate, measured by running the same task on it: the limits are four to one. On a machine with other
    # work a task may take longer than its limit makes it, never shorter: the quickest of three tells.
    command = "/usr/bin/python3 -S -E /shared/test/work.py crypto 1000000"
    running.job("on-slow", slow["host"], 3, command)
    running.job("on-fast", fast["host"], 3, command)
    running.until_ended("on-slow", "on-fast")
    took = {}
    for name, node in (("on-slow", slow), ("on-fast", fast)):
        record = running.replayer.record(name)
        assert record.outcome == "finished", record.why
        assert {task.node for task in record.tasks} == {node["id"]}
        took[name] = min(task.ended_ms - task.started_ms for task in record.tasks)
    assert took["on-slow"] > took["on-fast"]
    # A node that leaves lets end what runs there, and takes nothing new. The master may be there, too: before its task
    # is, the node must not leave, or the task waits for it for ever.
    identity = running.job("drained", slow["host"], 1, "sleep 8")
    until("its master and its task run", lambda: running.client.rest.app(identity).running_containers == 2)
    assert running.shrink("--type", "slow", "--drain", "120") == {"slow-1": 0}
    running.until_ended("drained")
    assert {task.outcome for task in running.replayer.record("drained").tasks} == {"finished"}
    assert slow["id"] not in {node.id for node in running.client.rest.nodes(("RUNNING",))}
    assert {node.state for node in running.client.rest.nodes(("SHUTDOWN",)) if node.id == slow["id"]} == {"SHUTDOWN"}
    # Without a drain it goes at once, and what ran there is killed.
    identity = running.job("killed", fast["host"], 1, "sleep 600")
    until("its master and its task run", lambda: running.client.rest.app(identity).running_containers == 2)
    assert running.shrink("fast-1", "--drain", "0") == {"fast-1": 1}
    # As lost, or as ended by a signal: whatever the node could still tell.
    gone = {"killed", "failed"}
    until("the master hears of it", lambda: bool({t.outcome for t in running.replayer.record("killed").tasks} & gone))
    running.client.rest.kill(identity)
    after = running.cluster.status()
    assert after is not None
    assert (after.up, after.wanted, len(after.parts)) == (True, 1, 1)


def test_names_are_taken_once_and_unknown_ones_are_errors(running: Running) -> None:
    accelerators = Accelerators(running.cluster)
    kind = NodeType("small", 512, 1, 0.5)
    first = [node.name for node in accelerators.grow(kind, 2, timeout_s=300)]
    assert first == ["small-1", "small-2"]
    with pytest.raises(InputError, match=r"small-1, small-2"):
        accelerators.shrink(["small-1", "small-9"])
    accelerators.shrink(["small-1"], drain_s=30)
    assert [name for name, of in accelerators.nodes().items() if of == "small"] == ["small-2"]
    # `down` of the fixture takes the other one away with the cluster.
    assert [node.name for node in accelerators.grow(kind, 1, timeout_s=300)] == ["small-1"]


@pytest.mark.long
def test_the_driver_measures_grows_serves_and_shrinks(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    out = tmp_path / "out"
    ran = call("run", str(tmp_path / "small.yaml"), "--backend", "docker", "--out", str(out), "--json")
    assert ran.returncode == 0, ran.stderr
    runs = {run["variant"]: run["summary"] for run in json.loads(ran.stdout)["runs"]}
    driver = runs["driver"]
    # c1.medium is too small for Sort, in the model and for YARN.
    assert driver["rates"]["Sort"]["c1.medium"] == 0
    assert all(rate > 0 for name, rate in driver["rates"]["Sort"].items() if name != "c1.medium")
    assert all(rate > 0 for rate in driver["rates"]["Crypto"].values())
    # No deadline like this can be met: it takes what ends soonest.
    (period,) = driver["periods"].values()
    assert sum(period["accelerators"].values()) == 1
    assert (period["meets_deadline"], period["billed_h"] >= 1) == (False, True)
    assert period["cost_dollars"] > 4 * 0.34
    assert driver["accelerators_left"] == runs["1m1"]["accelerators_left"] == 0
    assert runs["1m1"]["cost_dollars"] >= 4 * 0.34
    events = [json.loads(line) for line in (out / "driver" / "decisions.jsonl").read_text().splitlines()]
    assert sum(event.get("event") == "joined" for event in events) >= 2
    assert {event["node"] for event in events if event.get("event") == "joined"} == {
        event["node"] for event in events if event.get("event") == "left"
    }
    tasks = pd.read_parquet(out / "driver" / "tasks.parquet")
    # Calibration: the cores of three types for Crypto, of two for Sort; then the queries.
    assert (tasks["outcome"] == "finished").sum() == (2 + 2 + 4) + (2 + 4) + 4 + 2
    assert json.loads((out / "1m1" / "run.json").read_text())["exit"] == 0
    assert clean_abandoned() == []
