"""The commands that the page of the Docker cluster shows for a first job end well."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.clusters.compose import DockerCluster
from harness.clusters.state import ClusterSpec, StateFolder

# Beside the other clusters of containers: an image is built once.
pytestmark = [pytest.mark.docker, pytest.mark.live, pytest.mark.xdist_group("live-rm")]


def test_the_distributed_shell_runs_on_the_release_of_the_image(tmp_path: Path) -> None:
    """It failed with a NoClassDefFoundError: it needs Jersey 1's client, which Hadoop 3.5 does not contain."""
    cluster = DockerCluster(StateFolder(tmp_path / "state"))
    try:
        status = cluster.up(ClusterSpec(nodes=1, memory_mb=2048), timeout_s=600)
        done = subprocess.run(
            [
                *("docker", "exec", str(status.rm.runs_as), "entrypoint.sh", "distributedshell"),
                *("-shell_command", "sleep 2", "-num_containers", "2"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Application completed successfully" in done.stdout
    finally:
        assert cluster.down() == []
