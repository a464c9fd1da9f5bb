"""A cluster on two hosts over real sshd: up, tunnels, a dropped connection, a host that dies, adopt, release, down."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from harness.cli import main
from harness.clusters.inventory import read_inventory
from harness.clusters.ssh import SshCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.model.errors import InputError
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
            came_up = cluster.up(spec, timeout_s=240)
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
