"""LTRF and H-LTRF inside a real ResourceManager: built, named in the allocation file, at work on real containers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.inrm import with_policy
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.yarn.http import HttpOptions
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmAddress, RmClient

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-inrm")]

ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="a"><weight>2</weight></queue>
  <queue name="b"><queue name="c"/></queue>
</allocations>
"""


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, RmClient]]:
    folder = tmp_path_factory.mktemp("inrm")
    (folder / "allocations.xml").write_text(ALLOCATIONS)
    spec = ClusterSpec(nodes=1, memory_mb=1024, vcores=8, allocations=str(folder / "allocations.xml"))
    cluster = LocalCluster(StateFolder(folder / "state"))
    try:
        status = cluster.up(with_policy(spec, "hltrf", {"t_wait_s": "7", "observe_ms": "50"}), timeout_s=170)
        with RmClient([RmAddress.of(status.address.rest)], HttpOptions(user="alice")) as client:
            yield cluster, client
    finally:
        assert cluster.down() == []


def test_the_rm_orders_every_queue_by_it_with_these_settings(inside: tuple[LocalCluster, RmClient]) -> None:
    cluster, client = inside
    queues = client.rest.scheduler().queues
    assert {queues[name].policy for name in ("root", "root.a", "root.b", "root.b.c")} == {"hltrf"}
    log = cluster.log("rm").read_text()
    assert "resource=MEMORY discount=1.0 round_ms=0 t_wait_ms=7000 observe_ms=50" in log


def test_who_has_had_less_comes_first(inside: tuple[LocalCluster, RmClient], tmp_path: Path) -> None:
    """a has held all four containers for 15 s; when two fall free, b.c gets both, although a asks as well.

    Memoryless sharing would give each one: a's weight is twice b's.
    """
    _, client = inside
    rest = client.rest

    def submit(queue: str, command: str = "sleep 300") -> str:
        return rest.submit(Submission("sleeper", queue, command))

    def held(*queues: str) -> list[int]:
        found = rest.scheduler().queues
        return [found[queue].used.vcores for queue in queues]

    def wait(*wanted: int) -> None:
        end = time.monotonic() + 60
        while held("root.a", "root.b.c") != list(wanted):
            assert time.monotonic() < end, held("root.a", "root.b.c")
            time.sleep(0.1)

    over = tmp_path / "over"
    short = [submit("root.a", f"while [ ! -e {over} ]; do sleep 0.1; done") for _ in range(2)]
    long = [submit("root.a") for _ in range(2)]
    wait(4, 0)
    later = [submit("root.a") for _ in range(2)] + [submit("root.b.c") for _ in range(2)]
    time.sleep(15.0)
    assert held("root.a", "root.b.c") == [4, 0]
    over.touch()
    wait(2, 2)
    time.sleep(1.0)
    assert held("root.a", "root.b.c") == [2, 2]
    for identity in [*short, *long, *later]:
        rest.kill(identity)


@pytest.mark.long
def test_outside_loses_no_more_than_inside_on_replayed_load(tmp_path: Path) -> None:
    """experiments/from-outside/outside-real.yaml, LTRF inside the RM and from outside, one seed: some 11 minutes."""
    command = [sys.executable, "-m", "harness", "run", "outside-real", "--backend", "local", "--json"]
    options = ["--policy", "ltrf@outside", "--policy", "ltrf-in-rm", "--seed", "1", "--out", str(tmp_path)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-2000:]
    document: dict[str, Any] = json.loads(done.stdout)
    loss = {run["variant"]: run["summary"]["sharing_loss_integral"] for run in document["runs"]}
    assert loss["ltrf@outside"] <= loss["ltrf-in-rm"]
