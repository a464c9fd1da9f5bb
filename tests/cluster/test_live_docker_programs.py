"""Programs that compute on a cluster of containers: data and Spark are copied into its volume, answers come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from harness.clusters.compose import DockerCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.jobs.data.generate import FolderTarget, generate
from harness.yarn.rest import RestClient

# Copying Spark into a volume takes a minute or two of a core.
pytestmark = [pytest.mark.docker, pytest.mark.live, pytest.mark.long, pytest.mark.xdist_group("live-docker-programs")]
MEMORY_MB = 3072


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The state folder of a cluster of two nodes whose containers may take what the nodes offer; its RM."""
    folder = tmp_path_factory.mktemp("docker-programs")
    cluster = DockerCluster(StateFolder(folder / "state"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NM_MEM_LIMIT", f"{MEMORY_MB + 328}m")
        try:
            status = cluster.up(ClusterSpec(nodes=2, memory_mb=MEMORY_MB, vcores=4), timeout_s=600)
            yield folder, status.address.rest
        finally:
            left = cluster.down()
    assert left == []


def run(containers: tuple[Path, str], tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    folder, _ = containers
    return subprocess.run(
        [
            *(sys.executable, "-m", "harness", "job", "run", *words, "--backend", "docker"),
            *("--state", str(folder / "state"), "--json", "--tasks", str(tmp_path / "tasks.parquet")),
        ],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ},
    )


def test_mapreduces_programs(containers: tuple[Path, str], tmp_path: Path) -> None:
    data, output = tmp_path / "text", tmp_path / "out"
    generate("text", 60_000, 2, FolderTarget(data))
    # Two Hadoop jobs, the second of what the first has written.
    found = run(
        containers, tmp_path, *("grep", "--input", str(data), "--output", str(output), "--maps", "2", "--reduces", "1")
    )
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    assert document["answer"]["right"] is True
    assert [app["final_status"] for app in document["applications"]] == ["SUCCEEDED", "SUCCEEDED"]
    assert {kind: row["finished"] for kind, row in document["tasks"].items()} == {"map": 3, "reduce": 2}
    assert (output / "part-r-00000").stat().st_size > 0
    assert len(pd.read_parquet(tmp_path / "tasks.parquet")) == 5
    again = run(containers, tmp_path, "grep", "--input", str(data), "--output", str(output))
    assert again.returncode == 1
    assert "is there already" in again.stderr.splitlines()[-1]


def test_a_streaming_program_that_fails_says_why(containers: tuple[Path, str], tmp_path: Path) -> None:
    data = tmp_path / "text"
    generate("text", 20_000, 2, FolderTarget(data))
    words = ("--maps", "1", "--reduces", "1", "--python", "/nosuch/python", "--property", "mapreduce.map.maxattempts=1")
    found = run(containers, tmp_path, "sequencecount", "--input", str(data), "--output", str(tmp_path / "out"), *words)
    assert found.returncode == 4
    assert "/nosuch/python" in found.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    with RestClient([containers[1]]) as rest:
        assert all(app.final for app in rest.apps())


def test_a_query_by_spark(containers: tuple[Path, str], tmp_path: Path) -> None:
    data, output = tmp_path / "tpch", tmp_path / "out"
    generate("tpch", 5_000_000, 1, FolderTarget(data))
    words = ("--input", str(data), "--output", str(output), "--executors", "2")
    found = run(containers, tmp_path, "tpch-q6", *words)
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    assert document["answer"] == {"right": True, "records": 1, "wrong": None}
    assert document["tasks"]["executor"]["attempts"] == 2
    # A query by Hive has no form there.
    refused = run(containers, tmp_path, "hive-q6", "--input", str(data), "--output", str(tmp_path / "no"))
    assert refused.returncode == 1
    assert "run on clusters of this machine's processes" in refused.stderr.splitlines()[-1]
