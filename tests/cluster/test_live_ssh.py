"""A cluster on two hosts over real sshd: up, tunnels, a dropped connection, a host that dies, adopt, release, down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest

from harness.base.errors import InputError
from harness.cli import main
from harness.clusters.inventory import Inventory, read_inventory
from harness.clusters.ssh import SshCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.rmclient import RmClient
from tests import sshlab

pytestmark = [pytest.mark.sshd, pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("ssh-cluster")]

ALLOCATIONS = '<allocations><queue name="a"><weight>{a}</weight></queue><queue name="b"/></allocations>'

EXPERIMENT = """
experiment: tiny
cluster: {nodes: [{count: 2, memory_mb: 4096, vcores: 8}]}
max_am_share: -1.0
queues: {a: {}, b: {}}
workloads:
  a: &load
    inline:
      kind: sequence
      submission: {every_s: 3}
      rounds: 2
      am: {memory_mb: 1024}
      task: {demand: {memory_mb: 1024}, duration: {constant_s: 1}}
      jobs: [{name: mr, maps: 5, reduces: 1}]
  b: *load
policies: [fair]
sample_s: 0.5
delays: {node_heartbeat_ms: 200, am_heartbeat_ms: 500}
limits: {time_limit_s: 200}
"""


@dataclass(frozen=True)
class Remote:
    """The cluster, its hosts, and how it was when it came up."""

    lab: sshlab.Lab
    inventory: Path
    cluster: SshCluster
    came_up: ClusterStatus


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("ssh")
    allocations = folder / "allocations.xml"
    allocations.write_text(ALLOCATIONS.format(a="3.0"))
    with sshlab.lab(folder) as lab:
        for name in ("one", "two"):
            lab.add(name)
        inventory = lab.inventory({"one": ["rm", "nm"], "two": ["nm"]})
        cluster = SshCluster(StateFolder(folder / "state"), read_inventory(inventory))
        spec = ClusterSpec(memory_mb=1024, allocations=str(allocations), expiry_ms=5000)
        try:
            came_up = cluster.up(spec, timeout_s=600)
            yield Remote(lab, inventory, cluster, came_up)
        finally:
            for server in lab.servers.values():
                if not server.pid:
                    server.start()
            assert cluster.down() == []
        for name in ("one", "two"):
            kept = [path.name for path in (folder / name / "opt" / "yf").iterdir()]
            assert all(entry.startswith("lib-") for entry in kept), kept


def weight_of_a(remote: Remote) -> float:
    with RmClient([remote.came_up.address]) as client:
        return client.effective_queues()["root.a"].weight


def eventually(check: object, timeout_s: float = 40.0) -> None:
    end = time.monotonic() + timeout_s
    while not check():  # type: ignore[operator]
        assert time.monotonic() < end, "not in time"
        time.sleep(0.5)


def test_it_comes_up_with_all_its_nodes(remote: Remote) -> None:
    status = remote.came_up
    assert status.up
    assert [part.name for part in status.parts] == ["nm one", "nm two"]
    assert all(part.memory_mb and part.memory_mb > 30 for part in [status.rm, *status.parts])
    assert weight_of_a(remote) == 3.0


def test_a_weight_written_over_ssh_takes_effect(remote: Remote) -> None:
    place = remote.cluster.place()
    before = place.read()
    place.write(ALLOCATIONS.format(a="5.0").encode(), before=before)
    with RmClient([remote.came_up.address]) as client:
        client.refresh_queues()
    assert weight_of_a(remote) == 5.0


def test_a_dropped_connection_is_opened_again(remote: Remote) -> None:
    for server in remote.lab.servers.values():
        server.cut()
    eventually(lambda: remote.cluster.status() is not None and remote.cluster.status().up)  # type: ignore[union-attr]
    assert weight_of_a(remote) == 5.0


def test_nothing_is_copied_twice(remote: Remote) -> None:
    """A second cluster's installation on the same hosts finds the jars there."""
    said: list[str] = []
    inventory = read_inventory(remote.inventory)
    from harness.clusters import jars
    from harness.clusters.remote_host import digest_of, install

    lib = jars.find()
    install(inventory.hosts[1], lib, f"lib-{digest_of(lib)}", said.append)
    assert said == []


def test_one_with_the_capacity_scheduler(remote: Remote, tmp_path: Path) -> None:
    # The hosts of the other cluster, which have all that is needed: only "one" is asked to run anything.
    both = read_inventory(remote.inventory)
    inventory = Inventory(tuple(replace(host, roles=("rm", "nm") * (host.name == "one")) for host in both.hosts))
    cluster = SshCluster(StateFolder(tmp_path / "state"), inventory)
    try:
        status = cluster.up(ClusterSpec(nodes=1, memory_mb=1024, scheduler="capacity"), timeout_s=200)
        state = cluster.folder.load()
        assert status.up
        assert state is not None
        path = str(state.remote["scheduler_file"])
        assert Path(path).name == "capacity-scheduler.xml"
        assert status.enforce is not None
        assert status.enforce["capacity_file"].endswith(path)
        place = cluster.place()
        before = place.read()
        place.write(before.replace(b">-1<", b">2<"), before=before)
        with RmClient([status.address]) as client:
            client.refresh_queues()
            found = client.rest.scheduler()
        assert (found.type, "root.default" in found.queues) == (CAPACITY, True)
        # Adopted it is known for what it is.
        adopted = SshCluster(StateFolder(tmp_path / "adopted"), inventory)
        known = adopted.adopt((remote.lab.servers["one"].address, state.remote["ports"]["http"]), path)
        assert known.enforce is not None
        assert known.enforce["capacity_file"].endswith(path)
        assert not adopted.release()
    finally:
        assert cluster.down() == []


def test_an_adopted_cluster_gets_its_file_back(remote: Remote, tmp_path: Path) -> None:
    theirs = remote.cluster.place().read()
    state = remote.cluster.folder.load()
    assert state is not None
    path, ports = str(state.remote["scheduler_file"]), state.remote["ports"]
    address = remote.lab.servers["one"].address
    adopted = SshCluster(StateFolder(tmp_path / "adopted"), read_inventory(remote.inventory))
    status = adopted.adopt(
        (address, ports["http"]), path, admin=(address, ports["admin"]), client=(address, ports["client"])
    )
    assert status.info is not None
    with pytest.raises(InputError, match="adopted, not brought up"):
        adopted.down()
    adopted.place().write(ALLOCATIONS.format(a="7.0").encode())
    with RmClient([status.address]) as client:
        client.refresh_queues()
        assert client.effective_queues()["root.a"].weight == 7.0
    assert adopted.release()
    assert remote.cluster.place().read() == theirs
    assert not (tmp_path / "adopted").exists()
    left = [entry.name for entry in Path(path).parent.iterdir() if "yarnfair" in entry.name]
    assert left == []


def test_a_host_that_dies_is_named(remote: Remote) -> None:
    remote.lab.servers["two"].stop()
    status = remote.cluster.status()
    assert status is not None
    assert not status.up
    (dead,) = [part for part in status.parts if part.name == "nm two"]
    assert dead.runs_as is None
    assert "no connection" in (dead.last_words or "")
    remote.lab.servers["two"].start()
    eventually(lambda: remote.cluster.status().up)  # type: ignore[union-attr]


def test_an_experiment_runs_on_the_hosts(
    remote: Remote, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`yarnfair run --backend ssh`: a cluster of its own beside the other one, jobs on both hosts, nothing left."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT)
    arguments = ["run", str(path), "--backend", "ssh", "--inventory", str(remote.inventory), "--json", "--no-report"]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--out", str(tmp_path / "runs")])
    told = capsys.readouterr()
    assert stop.value.code == 0, told.err
    (run,) = json.loads(told.out)["runs"]
    assert all(queue["failed"] == 0 and queue["jobs"] == 2 for queue in run["summary"]["queues"].values())
    tasks = pd.read_parquet(Path(run["directory"]) / "tasks.parquet")
    assert len(tasks) >= 2 * 2 * 6
    assert not list(Path("/tmp").glob("yarnfair-replay-*"))
    code = 0
    try:
        main([*arguments[:-2], "--set", "x=1", "--rm", "http://127.0.0.1:1"])
    except SystemExit as wrong:
        code = int(wrong.code or 0)
    assert code == 2


# --- campaigns --------------------------------------------------------------------------------------------------------

CAMPAIGN = """
campaign: hosts
experiments: [tiny.yaml]
policies: [fair, ltrf@outside]
backends: [lab]
clusters: {lab: {backend: ssh, inventory: INVENTORY}}
retries: RETRIES
"""


@dataclass(frozen=True)
class Campaign:
    """A campaign of two cells on the hosts, as a user calls it."""

    file: Path
    out: Path
    environment: dict[str, str]

    @contextlib.contextmanager
    def running(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        """`campaign run`, ended at the latest with the context."""
        command = [sys.executable, "-m", "harness", "campaign", "run", str(self.file), "--out", str(self.out), *more]
        with subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(300)

    def states(self) -> list[str]:
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.out / 'campaign.sqlite'}?mode=ro", uri=True)) as db:
                return [row[0] for row in db.execute("SELECT state FROM cells ORDER BY position")]
        except sqlite3.Error:
            return []

    def loaded(self, variant: str) -> bool:
        """Whether containers of this cell have been seen."""
        for path in self.out.glob(f"cells/*/{variant}/allocations.parquet"):
            with contextlib.suppress(OSError, ValueError):
                return bool(pd.read_parquet(path)["allocated_mb"].max() > 0)
        return False

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        told, _ = process.communicate(timeout=1500)
        assert "Traceback" not in told
        return process.returncode, told

    def runs(self) -> list[Path]:
        return sorted(path.parent for path in self.out.glob("cells/*/*/run.json"))


@pytest.fixture
def campaign(remote: Remote, tmp_path: Path) -> Iterator[Callable[[int], Campaign]]:
    """Makes the campaign; afterwards nothing of its cluster is left on any host."""
    before = {name: marks(server) for name, server in remote.lab.servers.items()}
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}

    def make(retries: int) -> Campaign:
        (tmp_path / "tiny.yaml").write_text(EXPERIMENT.replace("rounds: 2", "rounds: 3"))
        text = CAMPAIGN.replace("INVENTORY", str(remote.inventory)).replace("RETRIES", str(retries))
        (tmp_path / "campaign.yaml").write_text(text)
        return Campaign(tmp_path / "campaign.yaml", tmp_path / "out", environment)

    yield make
    assert {name: marks(server) for name, server in remote.lab.servers.items()} == before
    assert not list(Path("/tmp").glob("yarnfair-replay-*"))


def marks(server: sshlab.Server) -> set[str]:
    """The clusters that have a folder on a host."""
    return {path.name for path in (server.folder / "opt" / "yf").iterdir() if not path.name.startswith("lib-")}


def check_cells(found: Campaign) -> None:
    """Both cells done, all jobs' records collected, no file by half."""
    assert found.states() == ["done", "done"]
    assert len(found.runs()) == 2
    for run in found.runs():
        info, summary = (json.loads((run / name).read_text()) for name in ("run.json", "summary.json"))
        assert (info["exit"], info["place"]) == (0, "lab")
        assert all((queue["jobs"], queue["failed"]) == (3, 0) for queue in summary["queues"].values())
        tasks = pd.read_parquet(run / "tasks.parquet")
        assert (tasks["outcome"] == "finished").sum() >= 2 * 3 * 6
    assert not [path for path in found.out.rglob("*") if path.name.endswith((".part", ".tmp"))]


@pytest.mark.long
def test_a_campaign_outlives_dropped_connections_and_a_host_that_is_slow(
    remote: Remote, campaign: Callable[[int], Campaign]
) -> None:
    found = campaign(2)
    with found.running() as process:
        eventually(lambda: found.loaded("fair") or process.poll() is not None, 900)
        for server in remote.lab.servers.values():
            server.cut()
        with remote.lab.servers["two"].frozen():
            time.sleep(5)  # as long as it is slow
        eventually(lambda: found.loaded("ltrf@outside") or process.poll() is not None, 900)
        remote.lab.servers["one"].cut()
        code, told = found.end(process)
    assert code == 0, told
    check_cells(found)
    assert told.count("2 of 2 nodes RUNNING") == 1 + told.count("tried again"), "one cluster for both cells"


def kill_daemons(campaign: Campaign, name: str) -> int:
    """Ends the processes of the campaign's cluster on one host, as a host that loses its power does."""
    state = campaign.environment["XDG_STATE_HOME"]
    known = [json.loads(path.read_text())["mark"] for path in Path(state).glob("yarnfair/runs/*/cluster/cluster.json")]
    killed = 0
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            words = environment.read_bytes().split(b"\0")
            if any(f"YARNFAIR_CLUSTER={mark}-{name}".encode() in words for mark in known):
                os.kill(int(environment.parent.name), signal.SIGKILL)
                killed += 1
    return killed


@pytest.mark.long
def test_a_host_that_dies_fails_cells_in_one_line_each(remote: Remote, campaign: Callable[[int], Campaign]) -> None:
    found, dead = campaign(0), remote.lab.servers["two"]
    with found.running() as process:
        eventually(lambda: found.loaded("fair"), 900)
        dead.stop()
        assert kill_daemons(found, "two") > 0
        code, told = found.end(process)
    assert code == 4, told
    # What ran may have ended on the other host; what came after it found a node missing.
    assert found.states()[1] == "failed"
    failed = [line for line in told.splitlines() if "failed" in line]
    assert any("1 of 2 nodes run" in line or "no connection" in line for line in failed), told
    for run in found.runs():
        assert json.loads((run / "run.json").read_text())["exit"] is not None
    dead.start()
    with found.running("--retry-failed") as process:
        code, told = found.end(process)
    assert code == 0, told
    check_cells(found)


@pytest.mark.long
def test_a_campaign_killed_on_a_cluster_goes_on(remote: Remote, campaign: Callable[[int], Campaign]) -> None:
    found = campaign(1)
    with found.running() as process:
        eventually(lambda: found.loaded("ltrf@outside"), 1200)
        process.kill()
        process.wait(60)
    starts = {run.name: json.loads((run / "run.json").read_text())["start"] for run in found.runs()}
    with found.running() as process:
        code, told = found.end(process)
    assert code == 0, told
    check_cells(found)
    again = {run.name: json.loads((run / "run.json").read_text())["start"] for run in found.runs()}
    assert again["fair"] == starts["fair"], "what was done is not done again"
    assert again["ltrf@outside"] != starts["ltrf@outside"]
