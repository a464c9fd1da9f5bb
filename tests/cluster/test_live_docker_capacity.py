"""A cluster of containers with the Capacity Scheduler: its file is edited here, and loaded there."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.compose import DockerCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.yarn.queue_answers import CAPACITY
from harness.yarn.rmclient import RmClient

# Beside the other clusters of containers: an image is built once.
pytestmark = [pytest.mark.docker, pytest.mark.live, pytest.mark.xdist_group("live-rm")]


def test_its_file_is_found_and_loaded(tmp_path: Path) -> None:
    cluster = DockerCluster(StateFolder(tmp_path / "state"))
    try:
        status = cluster.up(ClusterSpec(nodes=1, memory_mb=1024, scheduler="capacity"), timeout_s=600)
        assert status.up
        place = cluster.place()
        assert status.allocation_file.endswith("/scheduler/capacity-scheduler.xml")
        before = place.read()
        place.write(before.replace(b">default<", b">default,late<").replace(
            b"</configuration>",
            b"<property><name>yarn.scheduler.capacity.root.late.capacity</name><value>3w</value></property></configuration>",
        ), before=before)  # fmt: skip
        with RmClient([status.address]) as client:
            client.refresh_queues()
            found = client.rest.scheduler()
        assert found.type == CAPACITY
        assert {"root.default", "root.late"} <= set(found.queues)
    finally:
        assert cluster.down() == []
