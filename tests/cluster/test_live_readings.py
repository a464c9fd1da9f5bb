"""`record`, `usage` and `assess` on real clusters with features that the controller refuses, or that nobody steers.

What is read there is what the ResourceManager counts: nothing of it depends on the feature.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient
from tests.cluster.enforcing import until
from tests.cluster.readings import read_only

pytestmark = [pytest.mark.live, pytest.mark.java, pytest.mark.xdist_group("live-readings")]

_MONITOR = "yarn.resourcemanager.scheduler.monitor"
_MANAGING = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueManagementDynamicEditPolicy"
_CREATES = "auto-create-child-queue"
_STORE = "yarn.scheduler.configuration"
_FAIR = (
    "<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>"
    "<queue name='a'/><queue name='b' type='parent'/></allocations>"
)
#: What is tried -> the queues that applications are submitted to, the Capacity Scheduler's properties below their
#: prefix, and the ResourceManager's own.
CAPACITY: dict[str, tuple[list[str], dict[str, str], dict[str, str]]] = {
    "preemption": (["root.a", "root.b"], {}, {f"{_MONITOR}.enable": "true"}),
    "asynchronous": (["root.a", "root.b"], {"schedule-asynchronously.enable": "true"}, {}),
    "multi-node": (
        ["root.a", "root.b"],
        {
            "multi-node-placement-enabled": "true",
            "multi-node-sorting.policy": "default",
            "multi-node-sorting.policy.names": "default",
            "multi-node-sorting.policy.default.class": (
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.ResourceUsageMultiNodeLookupPolicy"
            ),
        },
        {},
    ),
    "flexible": (
        ["root.a", "root.b"],
        {
            "legacy-queue-mode.enabled": "false",
            "root.queues": "a,b,c",
            "root.a.capacity": "[memory=2048,vcores=25%]",
            "root.b.capacity": "1w",
            "root.c.capacity": "25",
        },
        {},
    ),
    "created-managed": (
        # An application that names no queue is placed into a queue of its user, which the scheduler creates.
        ["root.a", "default"],
        {
            "queue-mappings": "u:%user:root.b.%user",
            "root.b.capacity": "50",
            "root.a.capacity": "50",
            f"root.b.{_CREATES}.enabled": "true",
            "root.b.leaf-queue-template.capacity": "50",
        },
        {f"{_MONITOR}.enable": "true", f"{_MONITOR}.policies": _MANAGING},
    ),
    "created-v2": (["root.a", "root.b.new"], {"root.b.auto-queue-creation-v2.enabled": "true"}, {}),
    "leveldb": (
        ["root.a"],
        {},
        {f"{_STORE}.store.class": "leveldb", f"{_STORE}.leveldb-store.path": "{folder}/leveldb"},
    ),
    "fs": (["root.a"], {}, {f"{_STORE}.store.class": "fs", f"{_STORE}.fs.path": "file://{folder}/fs"}),
}
#: Of the Fair Scheduler, likewise.
FAIR: dict[str, tuple[list[str], dict[str, str]]] = {
    "ad-hoc": (["root.a", "root.b.new"], {}),
    "continuous": (["root.a"], {"yarn.scheduler.fair.continuous-scheduling-enabled": "true"}),
    "preemption": (["root.a"], {"yarn.scheduler.fair.preemption": "true"}),
}


@contextlib.contextmanager
def cluster(folder: Path, scheduler: str, text: str, properties: Mapping[str, str]) -> Iterator[RmClient]:
    """A node, a scheduler with this file, and the client of its ResourceManager."""
    (folder / "queues.xml").write_text(text)
    spec = ClusterSpec(nodes=1, memory_mb=4096, vcores=16, scheduler=scheduler,  # type: ignore[arg-type]
                       allocations=str(folder / "queues.xml"), properties=dict(properties))  # fmt: skip
    one = LocalCluster(StateFolder(folder / "state"))
    try:
        status = one.up(spec, timeout_s=300)
        with RmClient([status.address]) as client:
            yield client
    finally:
        left = one.down()
    assert left == []


def ran(client: RmClient, queues: list[str]) -> None:
    """Two applications of some seconds in each queue, to their ends."""
    rest = client.rest
    ids = [
        rest.submit(Submission("sleep", queue, f"sleep {seconds}", Resource(memory, 1)))
        for queue in queues
        for seconds, memory in ((2, 512), (4, 768))
    ]
    until(lambda: all(rest.app(identity).final for identity in ids), "all have ended", timeout_s=300)
    assert all(rest.app(identity).memory_seconds > 0 for identity in ids), [rest.app(one) for one in ids]


@pytest.mark.parametrize("tried", CAPACITY)
def test_on_the_capacity_scheduler(tried: str, tmp_path: Path) -> None:
    queues, values, properties = CAPACITY[tried]
    said = {
        "root.queues": "a,b",
        "root.a.capacity": "1w",
        "root.b.capacity": "1w",
        "maximum-am-resource-percent": "1",
        "schedule-asynchronously.enable": "false",
        **values,
    }
    rows = "".join(
        f"<property><name>{PREFIX}{name}</name><value>{value}</value></property>" for name, value in said.items()
    )
    here = {name: value.format(folder=tmp_path) for name, value in properties.items()}
    with cluster(tmp_path, "capacity", f"<configuration>{rows}</configuration>", here) as client:
        ran(client, queues)
        read_only(client, ["--rm", client.rest.http.current], tmp_path)


@pytest.mark.parametrize("tried", FAIR)
def test_on_the_fair_scheduler(tried: str, tmp_path: Path) -> None:
    queues, properties = FAIR[tried]
    with cluster(tmp_path, "fair", _FAIR, properties) as client:
        ran(client, queues)
        read_only(client, ["--rm", client.rest.http.current], tmp_path)
