"""Real clusters for the tests in this folder: one of local processes, one of containers, two ResourceManagers in HA.

Each is brought up once for the tests of a module and taken down after them, whatever happens. `live` marks what ran
against a real ResourceManager: the summary of a test run counts those.
"""

from __future__ import annotations

import contextlib
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.base.errors import InputError, YarnfairError
from harness.clusters import daemons, jars, processes, site
from harness.clusters.compose import DockerCluster
from harness.clusters.local import LocalCluster, free_ports
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.yarn import rpc
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient

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


@dataclass(frozen=True)
class Pair:
    """Two ResourceManagers in HA, switched by hand."""

    rms: tuple[RmAddress, RmAddress]
    processes: list[processes.Process]
    #: Starts one of them anew (0 or 1) that has ended, with the configuration that it had.
    restart: Callable[[int], None]

    def switch(self, rm: RmAddress, *, active: bool) -> None:
        """What ``rmadmin -transitionToActive`` or ``-transitionToStandby`` does."""
        method = "transitionToActive" if active else "transitionToStandby"
        by_user = rpc.field(1, rpc.field(1, 0))
        rpc.call(
            rm.admin, "org.apache.hadoop.ha.HAServiceProtocol", method, by_user, user=processes_user(), timeout_s=180
        )


def processes_user() -> str:
    import getpass

    return getpass.getuser()


_KEYS = {
    "http": "webapp.address",
    "client": "address",
    "admin": "admin.address",
    "scheduler": "scheduler.address",
    "tracker": "resource-tracker.address",
}


@pytest.fixture
def rm_pair(tmp_path: Path) -> Iterator[Pair]:
    """Two real ResourceManagers, both on standby."""
    site.write(tmp_path / "fair-scheduler.xml", ALLOCATIONS.format(a="3.0", b="1.0"))
    with start_pair(tmp_path, {}) as pair:
        yield pair


@contextlib.contextmanager
def start_pair(
    folder: Path, more: Mapping[str, str], *, node: bool = False, capacity: str | None = None
) -> Iterator[Pair]:
    """Two ResourceManagers on standby, with these properties besides, and a NodeManager (4 GB) that knows both.

    Their allocation file is ``fair-scheduler.xml`` in the folder; ``capacity``: they have the Capacity Scheduler, with
    this ``capacity-scheduler.xml``.
    """
    mark = f"test-{os.getpid()}-{time.time_ns()}"
    ports = free_ports(f"{name}{number}" for name in _KEYS for number in (1, 2))
    properties = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
        "yarn.resourcemanager.ha.automatic-failover.enabled": "false",
        "yarn.resourcemanager.cluster-id": "pair",
        "yarn.resourcemanager.scheduler.class": daemons.SCHEDULERS["capacity" if capacity else "fair"][0],
        "yarn.scheduler.fair.allocation.file": str(folder / "fair-scheduler.xml"),
        **more,
    }
    for number in (1, 2):
        properties[f"yarn.resourcemanager.hostname.rm{number}"] = "127.0.0.1"
        for name, key in _KEYS.items():
            properties[f"yarn.resourcemanager.{key}.rm{number}"] = f"127.0.0.1:{ports[f'{name}{number}']}"
    lib = jars.find()
    started: list[processes.Process] = []

    def configure(name: str, own: Mapping[str, str]) -> None:
        conf = folder / name
        conf.mkdir()
        site.write(conf / "yarn-site.xml", site.render({**properties, **own}))
        if capacity:
            site.write(conf / "capacity-scheduler.xml", capacity)
        site.write(conf / "core-site.xml", site.render({"hadoop.tmp.dir": str(conf / "tmp")}))
        site.write(conf / "log4j.properties", site.LOG4J)

    def start(name: str, main: str) -> processes.Process:
        conf = folder / name
        command = ["java", *daemons.java_words(main, str(conf), f"{conf}:{lib}/*", 256)]
        environment = {**os.environ, processes.MARK: mark}
        return processes.start(command, environment=environment, folder=folder, log=folder / f"{name}.log")

    def restart(which: int) -> None:
        started[which] = start(f"rm{which + 1}", daemons.RM)

    rms = []
    try:
        for number in (1, 2):
            configure(f"rm{number}", {"yarn.resourcemanager.ha.id": f"rm{number}"})
            started.append(start(f"rm{number}", daemons.RM))
            rpc_ports = {name: f"127.0.0.1:{ports[f'{name}{number}']}" for name in ("admin", "client")}
            rms.append(RmAddress.of(f"http://127.0.0.1:{ports[f'http{number}']}", **rpc_ports))
        if node:
            configure("nm", node_properties(folder / "nm"))
            started.append(start("nm", daemons.NM))
        pair = Pair((rms[0], rms[1]), started, restart)
        with RmClient(rms, HttpOptions(attempts=1)) as client:
            end = time.monotonic() + 90
            for rm in rms:
                while True:
                    try:
                        client.rest.info_of(rm.rest)
                        break
                    except YarnfairError:
                        assert time.monotonic() < end, "the ResourceManagers do not start"
                        assert all(process.alive for process in started)
                        time.sleep(0.3)
        yield pair
    finally:
        assert processes.stop(started, mark) == []


def node_properties(folder: Path, host: str = "127.0.0.1") -> dict[str, str]:
    """A NodeManager of 4 GB with what it keeps in this folder."""
    addresses = ("address", "localizer.address", "webapp.address", "collector-service.address")
    return {
        "yarn.nodemanager.hostname": host,
        **{f"yarn.nodemanager.{name}": f"{host}:0" for name in addresses},
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "16",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,PATH,{processes.MARK}",
    }
