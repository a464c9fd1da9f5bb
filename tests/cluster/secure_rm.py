"""ResourceManagers as large sites have them: Kerberos on RPC and REST, TLS, ACLs on administration; a KDC beside them.

Their NodeManagers run containers by Hadoop's DefaultContainerExecutor, all as the user of the tests: the
LinuxContainerExecutor of a real site is a setuid program that belongs to root. Tokens and tickets
are the same.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import YarnfairError
from harness.clusters import daemons, jars, processes, site
from harness.clusters.daemons import free_ports
from harness.yarn import rpc
from harness.yarn.capacity.properties import ASYNCHRONOUS
from harness.yarn.errors import Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.kerberos import Login
from harness.yarn.rmclient import RmAddress, RmClient
from studies.pair import node_properties
from tests.yarn.kdc import REALM, Kdc, kdc
from tests.yarn.tls import Authority, Signed

ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="a"><weight>3.0</weight></queue>
  <queue name="b"><weight>1.0</weight></queue>
</allocations>
"""
_RPC = {
    "client": "address",
    "admin": "admin.address",
    "scheduler": "scheduler.address",
    "tracker": "resource-tracker.address",
}
#: How long the cookie is good by which Hadoop knows who has authenticated. Short, or tickets would hardly be needed.
COOKIE_S = 3


@dataclass(frozen=True)
class SecureRm:
    """``ctl`` may administer it, ``alice`` may not; ``file`` has its queues. Of two, ``addresses`` has both."""

    kdc: Kdc
    authority: Authority
    addresses: tuple[RmAddress, ...]
    file: Path
    folder: Path
    processes: list[processes.Process]

    @property
    def address(self) -> RmAddress:
        return self.addresses[0]

    def principal(self, name: str) -> dict[str, str]:
        """As ``http.kerberos`` of a configuration has it."""
        return {"principal": f"{name}@{REALM}", "keytab": str(self.kdc.folder / f"{name}.keytab")}

    def access(self, name: str) -> list[str]:
        """The options of a call as this principal, its cluster named by --rm."""
        words = [*("--rm", self.address.rest), *("--ca-file", str(self.authority.file))]
        return words + [word for key, value in self.principal(name).items() for word in (f"--{key}", value)]

    def configured(self, name: str) -> dict[str, Any]:
        """`rms` and `http` of a controller's configuration."""
        rms = [{"rest": one.rest, "admin": str(one.admin), "client": str(one.client)} for one in self.addresses]
        return {"rms": rms, "http": {"ca_file": str(self.authority.file), "kerberos": self.principal(name)}}

    def client(self, name: str, **more: Any) -> RmClient:
        """A client with the tickets of this principal."""
        given = {"ca_file": str(self.authority.file), "attempts": 1, **more}
        return RmClient(self.addresses, HttpOptions(auth="spnego", **self.principal(name), **given))

    def switch(self, number: int, *, active: bool) -> None:
        """What ``rmadmin -transitionToActive`` or ``-transitionToStandby`` does, as ``ctl``."""
        method = "transitionToActive" if active else "transitionToStandby"
        admin, login = self.addresses[number].admin, Login(**self.principal("ctl"))
        by_user = rpc.field(1, rpc.field(1, 0))
        rpc.call(
            admin, "org.apache.hadoop.ha.HAServiceProtocol", method, by_user, user="ctl", timeout_s=180, login=login
        )

    def log(self) -> str:
        return "".join(file.read_text(errors="replace")[-3000:] for file in sorted(self.folder.glob("*.log")))


@contextlib.contextmanager
def secure_rm(
    folder: Path,
    *,
    scheduler: str = "fair",
    queues: str = ALLOCATIONS,
    rms: int = 1,
    nodes: int = 0,
    more: Mapping[str, str] | None = None,
) -> Iterator[SecureRm]:
    """One that answers, or two on standby. ``KRB5_CONFIG`` of the process has to be the KDC's ``conf``.

    ``more``: further properties of YARN.
    """
    mark = f"test-{os.getpid()}-{time.time_ns()}"
    started: list[processes.Process] = []
    with kdc(folder) as realm:
        servers = [f"{name}/localhost@{REALM}" for name in ("rm", "nm", "HTTP")]
        keytab = realm.keytab("servers.keytab", *servers)
        for name in ("ctl", "alice"):
            realm.keytab(f"{name}.keytab", f"{name}@{REALM}")
        authority = Authority(folder)
        file = folder / "scheduler" / daemons.SCHEDULERS[scheduler].file_name
        file.parent.mkdir()
        file.write_text(queues)
        ids = [f"rm{number + 1}" for number in range(rms)]
        ports = free_ports(f"{name}.{one}" for one in ids for name in ("http", *_RPC))
        yarn = {
            **_rm_properties(ids, ports, keytab),
            "yarn.resourcemanager.scheduler.class": daemons.SCHEDULERS[scheduler].java_class,
            ASYNCHRONOUS: "false",  # the default since Hadoop 3.5
            "yarn.scheduler.fair.allocation.file": str(file),
            **(more or {}),
        }
        shown = authority.signed("localhost")

        def start(name: str, main: str, own: Mapping[str, str]) -> None:
            conf = folder / name
            conf.mkdir()
            _write_site(conf, {**yarn, **own}, keytab, shown)
            words = daemons.java_words(main, str(conf), f"{conf}:{file.parent}:{jars.find()}/*", 256)
            command = ["java", f"-Djava.security.krb5.conf={realm.conf}", *words]
            environment = {**os.environ, processes.MARK: mark}
            log = folder / f"{name}.log"
            started.append(processes.start(command, environment=environment, folder=folder, log=log))

        addresses = []
        for one in ids:
            own = {name: f"localhost:{ports[f'{name}.{one}']}" for name in ("client", "admin")}
            addresses.append(RmAddress.of(f"https://localhost:{ports[f'http.{one}']}", **own))
        found = SecureRm(realm, authority, tuple(addresses), file, folder, started)
        try:
            for one in ids:
                start(one, daemons.RM, {"yarn.resourcemanager.ha.id": one} if rms > 1 else {})
            for number in range(1, nodes + 1):
                start(f"nm{number}", daemons.NM, _nm_properties(folder / f"nm{number}", keytab))
            _wait(found, nodes if rms == 1 else 0, by_rpc=scheduler == "fair")
            yield found
        finally:
            assert processes.stop(started, mark) == []


def _wait(found: SecureRm, nodes: int, *, by_rpc: bool) -> None:
    """Until they answer; ``by_rpc``: on their RPC, too, which says nothing of the Capacity Scheduler's queues."""
    with found.client("ctl") as client:
        end = time.monotonic() + 600
        while True:
            try:
                for one in found.addresses:
                    client.rest.info_of(one.rest)
                if len(found.addresses) == 1:
                    # Of one, that it is active.
                    client.rest.info()
                    if by_rpc:
                        client.effective_queues()
                    if client.rest.metrics().active_nodes < nodes:
                        raise Unreachable("not all nodes are there")
                return
            except YarnfairError:
                assert time.monotonic() < end, found.log()
                assert all(process.alive for process in found.processes), found.log()
                time.sleep(0.3)


def _rm_properties(ids: Sequence[str], ports: Mapping[str, int], keytab: Path) -> dict[str, str]:
    found = {
        "yarn.http.policy": "HTTPS_ONLY",
        "yarn.resourcemanager.hostname": "localhost",
        "yarn.resourcemanager.principal": f"rm/localhost@{REALM}",
        "yarn.resourcemanager.keytab": str(keytab),
        "yarn.resourcemanager.webapp.spnego-principal": f"HTTP/localhost@{REALM}",
        "yarn.resourcemanager.webapp.spnego-keytab-file": str(keytab),
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "ctl",
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.scheduler.increment-allocation-mb": "256",
        "yarn.nodemanager.principal": f"nm/localhost@{REALM}",
        "yarn.nodemanager.keytab": str(keytab),
    }
    if len(ids) > 1:
        found |= {
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": ",".join(ids),
            "yarn.resourcemanager.ha.automatic-failover.enabled": "false",
            "yarn.resourcemanager.cluster-id": "pair",
        }
    for one in ids:
        end = f".{one}" if len(ids) > 1 else ""
        found[f"yarn.resourcemanager.webapp.https.address{end}"] = f"localhost:{ports[f'http.{one}']}"
        found |= {
            f"yarn.resourcemanager.{key}{end}": f"localhost:{ports[f'{name}.{one}']}" for name, key in _RPC.items()
        }
    return found


def _nm_properties(folder: Path, keytab: Path) -> dict[str, str]:
    executor = "org.apache.hadoop.yarn.server.nodemanager.DefaultContainerExecutor"
    return {
        **node_properties(folder, "localhost"),
        "yarn.nodemanager.webapp.https.address": "localhost:0",
        "yarn.nodemanager.container-executor.class": executor,
        "yarn.nodemanager.webapp.spnego-principal": f"HTTP/localhost@{REALM}",
        "yarn.nodemanager.webapp.spnego-keytab-file": str(keytab),
    }


def _write_site(conf: Path, yarn: Mapping[str, str], keytab: Path, shown: Signed) -> None:
    store = conf / "server.p12"
    store.write_bytes(shown.pkcs12("of-a-test"))
    core = {
        "hadoop.tmp.dir": str(conf / "tmp"),
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": "authentication,integrity,privacy",
        "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
        "hadoop.http.authentication.kerberos.keytab": str(keytab),
        "hadoop.http.authentication.token.validity": str(COOKIE_S),
        "hadoop.http.authentication.simple.anonymous.allowed": "false",
    }
    tls = {
        "ssl.server.keystore.location": str(store),
        "ssl.server.keystore.type": "PKCS12",
        "ssl.server.keystore.password": "of-a-test",
        "ssl.server.keystore.keypassword": "of-a-test",
    }
    for name, properties in (("core-site", core), ("yarn-site", yarn), ("ssl-server", tls)):
        site.write(conf / f"{name}.xml", site.render(properties))
    site.write(conf / "log4j.properties", site.LOG4J)
