"""Real clusters that do not get going, and `up` killed half way: what is said, what the doctor finds, what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.clusters.doctor import examine_cluster
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-trouble")]


def belongs_to(folder: Path) -> list[str]:
    """Command lines of processes that run in or for a folder."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode() if entry.isdigit() else ""
        except OSError:
            continue
        if f"{folder}/" in line:
            found.append(line)
    return found


def test_a_broken_allocation_file_ends_the_rm_and_up_says_why(tmp_path: Path) -> None:
    (tmp_path / "broken.xml").write_text("<allocations><queue")
    state = tmp_path / "state"
    cluster = LocalCluster(StateFolder(state))
    with pytest.raises(InputError, match="rm ended: ") as caught:
        cluster.up(ClusterSpec(nodes=1, allocations=str(tmp_path / "broken.xml")), timeout_s=120)
    assert "\n" not in caught.value.line()
    assert belongs_to(state) == []
    assert cluster.status() is None
    assert not state.exists()


def test_a_time_limit_that_is_too_short(tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-m", "harness", "cluster", "up", "--backend", "local", "--nodes", "1"]
    done = subprocess.run(
        [*command, "--state", str(state), "--timeout", "1", "--json"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 5, done.stderr
    assert done.stdout == ""
    assert "did not come up in time" in done.stderr.splitlines()[-1]
    assert belongs_to(state) == []
    assert not state.exists()


def test_up_killed_half_way_and_up_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-m", "harness", "cluster"]
    where = ["--backend", "local", "--state", str(state), "--json"]
    first = subprocess.Popen([*command, "up", *where, "--nodes", "1"], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while len(belongs_to(state)) < 2:  # up itself, and the RM or a node
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.5)
        first.send_signal(signal.SIGKILL)
        first.wait(timeout=20)
        orphans = belongs_to(state)
        assert orphans, "the daemons survive their starter"
        again = subprocess.run([*command, "up", *where, "--nodes", "1"], capture_output=True, text=True, timeout=200)
        assert again.returncode == 0, again.stderr
        document = json.loads(again.stdout)
        assert document["up"]
        assert document["nodes_running"] == 1
        assert len(belongs_to(state)) == 2, "one RM and one NodeManager, and nothing of the first attempt"
        seen = subprocess.run([*command, "status", *where], capture_output=True, text=True, timeout=60)
        assert seen.returncode == 0
        assert json.loads(seen.stdout)["rm"]["id"] == document["rm"]["id"]
    finally:
        down = subprocess.run([*command, "down", *where], capture_output=True, text=True, timeout=100)
    assert down.returncode == 0, down.stderr
    assert json.loads(down.stdout)["left_behind"] == []
    assert belongs_to(state) == []
    assert not state.exists()


def test_an_unhealthy_node_and_a_minimum_allocation_above_the_nodes(tmp_path: Path) -> None:
    cluster = LocalCluster(StateFolder(tmp_path / "state"))
    properties = {
        # A disk that is fuller than this: any.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "0.001",
        "yarn.nodemanager.disk-health-checker.interval-ms": "1000",
    }
    spec = ClusterSpec(nodes=1, memory_mb=2048, disk_checks=True, properties=properties)
    try:
        with pytest.raises(InputError, match=r"is UNHEALTHY: .*space"):
            cluster.up(spec, timeout_s=120, keep=True)
        status = cluster.status()
        assert status is not None
        found = {f.check: f for f in examine_cluster(status) if f.result == "problem"}
        assert "UNHEALTHY" in found["nodes"].what
        assert "90 %" in str(found["nodes"].hint)
        # Again in the same folder, with healthy disks: now the RM sends the node away as too small.
        smallest = {"yarn.scheduler.minimum-allocation-mb": "3000", "yarn.scheduler.maximum-allocation-mb": "4000"}
        with pytest.raises(InputError, match="satisfy minimum allocations"):
            cluster.up(ClusterSpec(nodes=1, memory_mb=2048, properties=smallest), timeout_s=120, keep=True)
        status = cluster.status()
        assert status is not None
        problems = [f for f in examine_cluster(status) if f.result == "problem"]
        assert problems[0].check == "minimum-allocation"
        assert "minimum-allocation-mb" in str(problems[0].hint)
    finally:
        assert cluster.down() == []
