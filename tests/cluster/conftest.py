"""Real clusters for the tests in this folder: one of local processes, one of containers, two ResourceManagers in HA.

Each is brought up once for the tests of a module and taken down after them, whatever happens. `live` marks what ran
against a real ResourceManager: the summary of a test run counts those.
"""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.clusters import site
from harness.clusters.compose import DockerCluster
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient
from studies.pair import Pair, start_pair

ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="a"><weight>{a}</weight></queue>
  <queue name="b"><weight>{b}</weight><queue name="c"/></queue>
</allocations>
"""
EXTRA = "<configuration/>"


@dataclass(frozen=True)
class AnyRm:
    """Something that answers as a ResourceManager: a client for it, and where it reads its allocation file."""

    client: RmClient
    file: Path

    def write(self, text: str) -> None:
        """Puts an allocation file where the RM reads it."""
        site.write(self.file, text)


@dataclass(frozen=True)
class Live(AnyRm):
    """A running cluster: the object that manages it besides, and how it was when it came up."""

    cluster: LocalCluster | DockerCluster
    came_up: ClusterStatus


def bring_up(cluster: LocalCluster | DockerCluster, folder: Path) -> Iterator[Live]:
    allocations = folder / "allocations.xml"
    allocations.write_text(ALLOCATIONS.format(a="3.0", b="1.0"))
    with zipfile.ZipFile(folder / "extra.jar", "w") as jar:
        jar.writestr("extra.xml", EXTRA)
    spec = ClusterSpec(
        nodes=2,
        memory_mb=2048,
        allocations=str(allocations),
        properties={"yarn.scheduler.fair.allow-undeclared-pools": "false"},
        jars=(str(folder / "extra.jar"),),
    )
    try:
        status = cluster.up(spec, timeout_s=170)
        with RmClient([status.address], HttpOptions(user="alice")) as client:
            yield Live(client, Path(status.scheduler_folder) / "fair-scheduler.xml", cluster, status)
    finally:
        left = cluster.down()
    assert left == []


def serve_simulated(folder: Path) -> Iterator[AnyRm]:
    """The same cluster, simulated, behind real sockets, its time the wall clock's."""
    from harness.model.jobs import NodeSpec
    from harness.sim.serve.live import LiveCluster
    from harness.sim.serve.rest import RestServer
    from harness.sim.serve.rpc import RpcServer
    from harness.sim.setup import SimSetup
    from harness.yarn.fair.parse import parse_allocations

    text = ALLOCATIONS.format(a="3.0", b="1.0")
    file = folder / "fair-scheduler.xml"
    file.write_text(text)
    conf = {
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.scheduler.increment-allocation-mb": "256",
        "yarn.scheduler.maximum-allocation-mb": "2048",
        "yarn.scheduler.fair.allow-undeclared-pools": "false",
    }
    nodes = tuple(NodeSpec(f"n{number}", 2048, 4) for number in (1, 2))
    cluster = LiveCluster(SimSetup(nodes=nodes, allocations=parse_allocations(text), jobs=[], conf=conf), file)
    rest, admin, client = RestServer(cluster), RpcServer(cluster), RpcServer(cluster)
    parts = (cluster, rest, admin, client)
    for part in parts:
        part.start()
    address = RmAddress.of(rest.url, admin=str(admin.address), client=str(client.address))
    try:
        with RmClient([address], HttpOptions(user="alice"), rpc_timeout_s=60.0) as rm:
            end = time.monotonic() + 20
            while rm.rest.metrics().active_nodes < len(nodes):
                assert time.monotonic() < end
                time.sleep(0.05)
            yield AnyRm(rm, file)
    finally:
        for part in parts:
            part.stop()


#: Where the tests of `live` run. Only what ran against a real ResourceManager is marked, and counted.
REAL = [
    pytest.param("local", marks=[pytest.mark.java, pytest.mark.live]),
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.live]),
]
#: The same cases against a served simulation: for tests that need nothing but an RM.
# Behind the real ones: pytest groups tests by the number of a parameter, and the last real one takes its cluster down.
ANY = [*REAL, pytest.param("sim")]


@pytest.fixture(scope="module", params=REAL)
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnyRm]:
    """A cluster of two nodes with the queues a (weight 3) and b.c (b: weight 1), on each backend."""
    folder = tmp_path_factory.mktemp(f"live-{request.param}")
    if request.param == "sim":
        yield from serve_simulated(folder)
        return
    backend = LocalCluster if request.param == "local" else DockerCluster
    if request.param == "docker" and os.environ.get("CI") != "true":
        from harness.clusters.compose import docker_client

        try:
            with docker_client():
                pass
        except InputError as error:
            pytest.skip(error.what)
    yield from bring_up(backend(StateFolder(folder / "state")), folder)


@pytest.fixture
def rm_pair(tmp_path: Path) -> Iterator[Pair]:
    """Two real ResourceManagers, both on standby."""
    site.write(tmp_path / "fair-scheduler.xml", ALLOCATIONS.format(a="3.0", b="1.0"))
    with start_pair(tmp_path, {}) as pair:
        yield pair
