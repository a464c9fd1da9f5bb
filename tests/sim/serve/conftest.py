"""A served cluster in this process, its clock in the test's hand: sockets are real, time is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.model.jobs import NodeSpec
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.serve.rpc import RpcServer
from harness.sim.setup import SimSetup
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient

ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="a"><weight>{a}</weight><minResources>512 mb,1 vcores</minResources></queue>
  <queue name="b"><weight>{b}</weight>
    <queue name="c"/><queue name="d"><maxRunningApps>1</maxRunningApps></queue>
  </queue>
</allocations>
"""
CONF = {
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.increment-allocation-mb": "256",
    "yarn.scheduler.maximum-allocation-mb": "4096",
    "yarn.scheduler.maximum-allocation-vcores": "4",
}


@dataclass
class Served:
    """The cluster, its REST port, a client for it, and its clock."""

    cluster: LiveCluster
    rest: RestServer
    client: RmClient
    file: Path
    now: list[float]
    log: list[str] = field(default_factory=list)

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now[0] += seconds
        self.cluster.catch_up()

    def call(self, method: str, path: str, body: Any = None, **params: str) -> requests.Response:
        """One plain HTTP call, as any client makes it."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        url = self.rest.url + path
        return requests.request(
            method, url, params=params, data=data, headers=headers, allow_redirects=False, timeout=300
        )

    def submit(self, queue: str, *, command: str = "", job: Any = None, **more: Any) -> str:
        """Submit an application over REST; its id."""
        identity = str(self.call("POST", "/ws/v1/cluster/apps/new-application").json()["application-id"])
        container: dict[str, Any] = {"commands": {"command": command}}
        if job is not None:
            container["environment"] = {"entry": [{"key": "YARNFAIR_JOB", "value": json.dumps(job)}]}
        body = {
            "application-id": identity,
            "application-name": "sleeper",
            "application-type": "YARN",
            "application-tags": {"tag": ["One", "two"]},
            "queue": queue,
            "am-container-spec": container,
            "resource": {"memory": 256, "vCores": 1},
            **more,
        }
        answer = self.call("POST", "/ws/v1/cluster/apps", body, **{"user.name": "alice"})
        assert answer.status_code == 202, answer.text
        assert answer.headers["Location"] == f"{self.rest.url}/ws/v1/cluster/apps/{identity}"
        return identity


@pytest.fixture
def release() -> str | None:
    """The release of Hadoop as which the cluster answers; None: the default."""
    return None


@pytest.fixture
def served(tmp_path: Path, release: str | None) -> Iterator[Served]:
    """Two nodes of 4 GiB and 4 vcores, the queues a (weight 3) and b (1) with c and d, nothing running."""
    file = tmp_path / "fair-scheduler.xml"
    text = ALLOCATIONS.format(a=3.0, b=1.0)
    file.write_text(text)
    nodes = tuple(NodeSpec(f"n{i}", 4096, 4) for i in (1, 2))
    setup = SimSetup(nodes=nodes, allocations=parse_allocations(text), jobs=[], conf=CONF)
    now, log = [1.7e9], []
    cluster = LiveCluster(setup, file, completed=20, hadoop=release, clock=lambda: now[0], log=log.append)
    rest, admin, client = RestServer(cluster), RpcServer(cluster), RpcServer(cluster)
    for server in (rest, admin, client):
        server.start()
    address = RmAddress.of(rest.url, admin=str(admin.address), client=str(client.address))
    try:
        with RmClient([address], HttpOptions(user="alice")) as rm:
            found = Served(cluster, rest, rm, file, now, log)
            found.later(2)
            yield found
    finally:
        for server in (rest, admin, client):
            server.stop()
