"""A ResourceManager as large sites have it: Kerberos on RPC and REST, TLS, ACLs on administration; its KDC beside it.

It has no NodeManagers: these would need a container executor that belongs to root.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import YarnfairError
from harness.clusters import daemons, jars, processes, site
from harness.clusters.local import free_ports
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient
from tests.yarn.kdc import REALM, Kdc, kdc
from tests.yarn.tls import Authority, Signed

ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
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
    """``ctl`` may administer it, ``alice`` may not; ``file`` is its allocation file."""

    kdc: Kdc
    authority: Authority
    address: RmAddress
    file: Path
    folder: Path

    def principal(self, name: str) -> dict[str, str]:
        """As ``http.kerberos`` of a configuration has it."""
        return {"principal": f"{name}@{REALM}", "keytab": str(self.kdc.folder / f"{name}.keytab")}

    def client(self, name: str, **more: Any) -> RmClient:
        """A client with the tickets of this principal."""
        given = {"ca_file": str(self.authority.file), "attempts": 1, **more}
        return RmClient([self.address], HttpOptions(auth="spnego", **self.principal(name), **given))

    def log(self) -> str:
        return (self.folder / "rm.log").read_text(errors="replace")


@contextlib.contextmanager
def secure_rm(folder: Path) -> Iterator[SecureRm]:
    """One that answers. ``KRB5_CONFIG`` of the process has to be the KDC's ``conf``."""
    mark = f"test-{os.getpid()}-{time.time_ns()}"
    started: list[processes.Process] = []
    with kdc(folder) as realm:
        servers = realm.keytab("rm.keytab", f"rm/localhost@{REALM}", f"HTTP/localhost@{REALM}")
        for name in ("ctl", "alice"):
            realm.keytab(f"{name}.keytab", f"{name}@{REALM}")
        authority = Authority(folder)
        ports = free_ports(("http", *_RPC))
        file = folder / "scheduler" / "fair-scheduler.xml"
        file.parent.mkdir()
        file.write_text(ALLOCATIONS)
        _configure(folder, ports, servers, authority.signed("localhost"), file)
        words = daemons.java_words(daemons.RM, str(folder), f"{folder}:{jars.find()}/*", 256)
        environment = {**os.environ, processes.MARK: mark}
        command = ["java", f"-Djava.security.krb5.conf={realm.conf}", *words]
        own = {name: f"localhost:{ports[name]}" for name in ("client", "admin")}
        found = SecureRm(realm, authority, RmAddress.of(f"https://localhost:{ports['http']}", **own), file, folder)
        try:
            started.append(processes.start(command, environment=environment, folder=folder, log=folder / "rm.log"))
            with found.client("ctl") as client:
                end = time.monotonic() + 120
                while True:
                    try:
                        client.rest.info()
                        client.effective_queues()
                        break
                    except YarnfairError:
                        assert time.monotonic() < end, found.log()[-3000:]
                        assert started[0].alive, found.log()[-3000:]
                        time.sleep(0.3)
            yield found
        finally:
            assert processes.stop(started, mark) == []


def _configure(folder: Path, ports: dict[str, int], keytab: Path, shown: Signed, file: Path) -> None:
    store = folder / "server.p12"
    store.write_bytes(shown.pkcs12("of-a-test"))
    core = {
        "hadoop.tmp.dir": str(folder / "tmp"),
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": "authentication,integrity,privacy",
        "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
        "hadoop.http.authentication.kerberos.keytab": str(keytab),
        "hadoop.http.authentication.token.validity": str(COOKIE_S),
        "hadoop.http.authentication.simple.anonymous.allowed": "false",
    }
    yarn = {
        "yarn.http.policy": "HTTPS_ONLY",
        "yarn.resourcemanager.hostname": "localhost",
        "yarn.resourcemanager.webapp.https.address": f"localhost:{ports['http']}",
        **{f"yarn.resourcemanager.{key}": f"localhost:{ports[name]}" for name, key in _RPC.items()},
        "yarn.resourcemanager.principal": f"rm/localhost@{REALM}",
        "yarn.resourcemanager.keytab": str(keytab),
        "yarn.resourcemanager.webapp.spnego-principal": f"HTTP/localhost@{REALM}",
        "yarn.resourcemanager.webapp.spnego-keytab-file": str(keytab),
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "ctl",
        "yarn.resourcemanager.scheduler.class": daemons.SCHEDULERS["fair"][0],
        "yarn.scheduler.fair.allocation.file": str(file),
    }
    tls = {
        "ssl.server.keystore.location": str(store),
        "ssl.server.keystore.type": "PKCS12",
        "ssl.server.keystore.password": "of-a-test",
        "ssl.server.keystore.keypassword": "of-a-test",
    }
    for name, properties in (("core-site", core), ("yarn-site", yarn), ("ssl-server", tls)):
        site.write(folder / f"{name}.xml", site.render(properties))
    site.write(folder / "log4j.properties", site.LOG4J)
