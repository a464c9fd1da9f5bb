"""FAWKES from outside on a real Fair Scheduler: its shares are written and in force, and containers move for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.clusters.local import LocalCluster
from harness.clusters.shared import LocalFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.control.file_actuator import FileActuator
from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.experiments.real.curves import LostMaster
from harness.jobs.replay import ReplayOptions
from harness.jobs.submit import NODE_PROPERTIES, Replayer, scheduler_address
from harness.ledger.store import LedgerStore
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy, policy_names
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import ConfigStore
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmClient
from harness.yarn.stores import open_store

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("live-weighting")]

FAIR = "yarn.scheduler.fair"
LEAVES = ("root.c-1", "root.c-2", "root.c-3")
SIZE = Resource(1024, 1)
ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <defaultMinSharePreemptionTimeout>2</defaultMinSharePreemptionTimeout>
  <queue name="root">
    <queue name="c-1"/><queue name="c-2"/><queue name="c-3"/>
  </queue>
</allocations>
"""


@dataclass(frozen=True)
class Running:
    """The cluster, its allocation file, and who submits."""

    client: RmClient
    place: ConfigStore
    replayer: Replayer
    folder: Path

    def controller(self, name: str, **settings: str) -> Controller:
        store = LedgerStore(self.folder / f"{name}-{time.monotonic_ns()}.sqlite")
        control = ControlSettings(period_s=5.0, task_lengths=True)
        actuator, policy = FileActuator.restored(self.place, store.document), make_policy(name, settings)
        return Controller(control, self.client, actuator, store, policy, open_observer=open_rm_poller)

    def minima(self) -> dict[str, Resource]:
        queues = self.client.rest.scheduler().queues
        return {path: queues[path].minimum for path in LEAVES}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("weighting")
    (folder / "allocations.xml").write_text(ALLOCATIONS)
    spec = ClusterSpec(
        nodes=2,
        memory_mb=6144,
        vcores=6,
        minimum_allocation_mb=1024,
        preemption=True,
        allocations=str(folder / "allocations.xml"),
        properties={
            **NODE_PROPERTIES,
            "yarn.scheduler.increment-allocation-mb": "1024",
            f"{FAIR}.preemption": "true",
            f"{FAIR}.preemption.cluster-utilization-threshold": "0.5",
            f"{FAIR}.waitTimeBeforeKill": "500",
            f"{FAIR}.am.preemption": "false",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        },
    )
    cluster = LocalCluster(StateFolder(folder / "state"))
    try:
        status = cluster.up(spec, timeout_s=170)
        with RmClient([status.address], HttpOptions(user="alice")) as client:
            place = open_store(str(Path(status.scheduler_folder) / "fair-scheduler.xml"))
            options = ReplayOptions(rm=scheduler_address(client.rest), seed=1, am_heartbeat_ms=300)
            replayer = Replayer(client.rest, LocalFolder(folder / "shared"), options, tag="weighting")
            yield Running(client, place, replayer, folder)
    finally:
        left = cluster.down()
    assert left == []


@pytest.fixture(autouse=True)
def nothing_left(running: Running) -> Iterator[None]:
    """Each test finds the cluster empty, also after one that failed."""
    yield
    running.replayer.kill_all()


def until(what: str, met: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def job(name: str, queue: str, tasks: int, seconds: float, kind: str = "mapreduce") -> JobSpec:
    stage = Stage("map", tasks, SIZE, Duration("constant", value_s=seconds))
    lifetime_s = seconds if kind == "service" else None
    return JobSpec(name, queue, kind, SIZE, (stage,), lifetime_s=lifetime_s)  # type: ignore[arg-type]


def fills(running: Running, made: JobSpec) -> str:
    """The job's application once its queue holds the whole cluster; submitted anew when the RM has lost its master."""
    rest = running.client.rest
    for attempt in range(1, 4):
        identity = running.replayer.submit(replace(made, id=f"{made.id}-{attempt}"))
        lost, end = LostMaster(), time.monotonic() + 120
        while not lost.seen(rest.app(identity), time.monotonic()):
            if rest.scheduler().queues[made.queue].used.memory_mb == 12288:
                return identity
            assert time.monotonic() < end, f"{made.queue} does not get it all"
            time.sleep(0.2)
        running.replayer.kill_all()
    raise AssertionError("three masters were lost")


def test_every_weighting_writes_minimum_shares_that_the_scheduler_then_goes_by(running: Running) -> None:
    before = parse_allocations(running.place.read(), source="file")
    # All of it: while containers start, a weighting that looks at what waits changes its mind.
    fills(running, job("filler", "root.c-2", 20, 600.0))
    weightings = [name for name in policy_names() if name.startswith("fawkes-")]
    assert len(weightings) == 11
    found = {}
    for name in weightings:
        controller = running.controller(name)
        report = controller.tick()
        assert report.record is not None, name
        assert not report.alarms, name
        wanted = report.record.attributes.min_shares
        shown = running.minima()
        assert shown == {path: wanted[path] for path in LEAVES}, name
        assert sum(share.memory_mb for share in shown.values()) == (6144 if name == "fawkes-none" else 12288)
        # A balanced system stays as it is, whatever the weights are then.
        assert controller.tick().record is None, name
        found[name] = shown["root.c-2"].memory_mb
        controller.release()
        assert running.minima() == dict.fromkeys(LEAVES, Resource(0, 0))
        # An element that had nothing in it may be written in two tags now.
        assert parse_allocations(running.place.read(), source="file") == before
        controller.store.close()
    # Half of the cluster is core. Who waits gets all of the rest, under the policies that look at what waits.
    assert found["fawkes-none"] == 2048
    assert found["fawkes-eq"] == 4096
    for name in ("fawkes-td", "fawkes-dd", "fawkes-pu"):
        assert found[name] == 8192, name


def test_containers_move_for_a_minimum_share_and_only_for_it(running: Running) -> None:
    rest = running.client.rest
    rest_of = running.replayer
    until("the cluster is empty", lambda: rest.scheduler().queues["root"].used.memory_mb == 0)
    holder = fills(running, job("holder", "root.c-1", 11, 600.0, "service"))
    rest_of.submit(job("claimant", "root.c-2", 3, 2.0))
    until("c-2 asks", lambda: rest.scheduler().queues["root.c-2"].demand.memory_mb > 0)
    assert rest.app(holder).preempted_memory_seconds == 0
    controller = running.controller("fawkes-eq")
    report = controller.tick()
    assert report.record is not None
    assert running.minima()["root.c-2"].memory_mb == 4096
    # Its master and, one after another or side by side, its three tasks.
    until("the claimant ends", lambda: not any(app.name == "claimant" for app in rest_of.live()))
    assert rest_of.record("claimant").outcome == "finished"
    assert rest.app(holder).preempted_memory_seconds > 0
    # The master of the holder was spared.
    assert rest.app(holder).state == "RUNNING"
    controller.release()
    controller.store.close()
