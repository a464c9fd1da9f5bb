"""Two real ResourceManagers in HA and their nodes, as processes of this machine: killed, frozen and begun again.

Who is active is switched by hand (``rmadmin -transitionToActive``), their state lies in a folder that both share.
"""

from __future__ import annotations

import getpass
import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.base.errors import InputError, YarnfairError
from harness.clusters import daemons, jars, processes, site
from harness.clusters.daemons import free_ports
from harness.yarn import rpc
from harness.yarn.capacity.properties import ASYNCHRONOUS
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from harness.yarn.rmclient import RmAddress

_PORTS = {
    "http": "webapp.address",
    "client": "address",
    "admin": "admin.address",
    "scheduler": "scheduler.address",
    "tracker": "resource-tracker.address",
}
_HA = "org.apache.hadoop.ha.HAServiceProtocol"
_STORE = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"


def recovery(folder: Path) -> dict[str, str]:
    """Properties with which a ResourceManager keeps its state in a folder, and goes on with what runs."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": _STORE,
        "yarn.resourcemanager.fs.state-store.uri": f"file://{folder}",
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
    }


def node_properties(folder: Path, host: str = "127.0.0.1", *, port: int = 0, memory_mb: int = 4096) -> dict[str, str]:
    """A NodeManager with what it keeps in this folder."""
    addresses = ("localizer.address", "webapp.address", "collector-service.address")
    return {
        "yarn.nodemanager.hostname": host,
        "yarn.nodemanager.address": f"{host}:{port}",
        **{f"yarn.nodemanager.{name}": f"{host}:0" for name in addresses},
        "yarn.nodemanager.resource.memory-mb": str(memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": "16",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,PATH,{processes.MARK}",
    }


class Pair:
    """``rm1``, ``rm2`` and the nodes ``nm1``, ``nm2`` ... of a folder.

    Parameters
    ----------
    folder : where their configuration, logs and the nodes' folders lie.
    file : their allocation file.
    more : properties besides.
    nodes : how many nodes, of `memory_mb` each.
    capacity : they have the Capacity Scheduler, with this ``capacity-scheduler.xml``.
    """

    def __init__(
        self,
        folder: Path,
        file: Path,
        more: Mapping[str, str],
        *,
        nodes: int = 0,
        memory_mb: int = 4096,
        capacity: str | None = None,
    ) -> None:
        self.folder, self.mark = folder, f"pair-{folder}"
        processes.stop([], self.mark)  # what a run that was killed has left
        self.processes: dict[str, processes.Process] = {}
        self._commands: dict[str, list[str]] = {}
        self._capacity = capacity
        node_names = [f"nm{number}" for number in range(1, nodes + 1)]
        ports = free_ports([*(f"{name}{number}" for name in _PORTS for number in (1, 2)), *node_names])
        properties = {
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
            "yarn.resourcemanager.ha.automatic-failover.enabled": "false",
            "yarn.resourcemanager.cluster-id": "pair",
            "yarn.resourcemanager.scheduler.class": daemons.SCHEDULERS["capacity" if capacity else "fair"].java_class,
            ASYNCHRONOUS: "false",  # the default since Hadoop 3.5
            "yarn.scheduler.fair.allocation.file": str(file),
            **more,
        }
        for number in (1, 2):
            properties[f"yarn.resourcemanager.hostname.rm{number}"] = "127.0.0.1"
            for name, key in _PORTS.items():
                properties[f"yarn.resourcemanager.{key}.rm{number}"] = f"127.0.0.1:{ports[f'{name}{number}']}"
        self.rms = tuple(
            RmAddress.of(
                f"http://127.0.0.1:{ports[f'http{number}']}",
                **{name: f"127.0.0.1:{ports[f'{name}{number}']}" for name in ("admin", "client")},
            )
            for number in (1, 2)
        )
        lib = jars.find()
        for number in (1, 2):
            self._configure(f"rm{number}", daemons.RM, {**properties, "yarn.resourcemanager.ha.id": f"rm{number}"}, lib)
        for name in node_names:
            own = node_properties(folder / name, port=ports[name], memory_mb=memory_mb)
            self._configure(name, daemons.NM, {**properties, **own}, lib)

    def _configure(self, name: str, main: str, properties: Mapping[str, str], lib: Path) -> None:
        conf = self.folder / name
        conf.mkdir(parents=True, exist_ok=True)
        site.write(conf / "yarn-site.xml", site.render(properties))
        if self._capacity:
            site.write(conf / "capacity-scheduler.xml", self._capacity)
        site.write(conf / "core-site.xml", site.render({"hadoop.tmp.dir": str(conf / "tmp")}))
        site.write(conf / "log4j.properties", site.LOG4J)
        self._commands[name] = ["java", *daemons.java_words(main, str(conf), f"{conf}:{lib}/*", 256)]

    @property
    def parts(self) -> list[str]:
        """All names."""
        return list(self._commands)

    def log(self, name: str) -> Path:
        """Where a part writes its log."""
        return self.folder / f"{name}.log"

    def start(self, name: str) -> None:
        """Starts a part that does not run."""
        environment = {**os.environ, processes.MARK: self.mark}
        self.processes[name] = processes.start(
            self._commands[name], environment=environment, folder=self.folder, log=self.log(name)
        )

    def alive(self, name: str) -> bool:
        """Whether a part runs, or stands still."""
        return name in self.processes and self.processes[name].alive

    def signal(self, name: str, number: signal.Signals) -> None:
        """A signal to one part; its containers stay."""
        process = self.processes[name]
        process.signal_group(number)
        if number == signal.SIGKILL:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, 0)

    def switch(self, rm: RmAddress, *, active: bool, timeout_s: float = 180.0) -> None:
        """What ``rmadmin -transitionToActive`` or ``-transitionToStandby`` does."""
        method = "transitionToActive" if active else "transitionToStandby"
        by_user = rpc.field(1, rpc.field(1, 0))
        rpc.call(rm.admin, _HA, method, by_user, user=getpass.getuser(), timeout_s=timeout_s)

    def wait(self, timeout_s: float = 90.0) -> None:
        """Until both ResourceManagers answer. InputError when they do not."""
        end = time.monotonic() + timeout_s
        with RestClient([rm.rest for rm in self.rms], HttpOptions(attempts=1)) as client:
            for number, rm in enumerate(self.rms, start=1):
                while True:
                    with suppress(YarnfairError):
                        client.info_of(rm.rest)
                        break
                    if time.monotonic() > end or not self.alive(f"rm{number}"):
                        raise InputError(f"rm{number} does not start", where=str(self.log(f"rm{number}")))
                    time.sleep(0.3)

    def stop(self) -> list[int]:
        """Ends all of it; the numbers of processes that are left, normally none."""
        for process in self.processes.values():
            process.signal_group(signal.SIGCONT)
        return processes.stop(list(self.processes.values()), self.mark)


def none_left(left: Collection[object], folder: Path) -> None:
    """InputError where ending a folder's processes has left some."""
    if left:
        raise InputError(f"processes are left: {left}", where=str(folder), hint="end them by hand")


@contextmanager
def start_pair(
    folder: Path, more: Mapping[str, str], *, node: bool = False, capacity: str | None = None
) -> Iterator[Pair]:
    """Two ResourceManagers on standby, with these properties besides, and a NodeManager (4 GB) that knows both.

    Their allocation file is ``fair-scheduler.xml`` in the folder; ``capacity``: they have the Capacity Scheduler, with
    this ``capacity-scheduler.xml``. Raises InputError when they do not start, or something of them cannot be ended.
    """
    pair = Pair(folder, folder / "fair-scheduler.xml", more, nodes=int(node), capacity=capacity)
    try:
        for name in pair.parts:
            pair.start(name)
        pair.wait()
        yield pair
    finally:
        none_left(pair.stop(), folder)
