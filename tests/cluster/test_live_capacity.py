"""The Capacity Scheduler of a ResourceManager, real or served by the simulator, steered through its store and its file.

Traps keep the controller from writing until they are mended; what is written is in force; release gives all back.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.clusters.doctor import examine_rm
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.control.capacity_actuator import CapacityActuator
from harness.control.config import EnforceConfig
from harness.control.reports import TickReport
from harness.control.rm_poller import open_rm_poller
from harness.control.wall import Controller
from harness.experiments.served import with_file
from harness.ledger.store import LedgerStore
from harness.model.jobs import NodeSpec
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.rest import RestServer
from harness.sim.serve.rpc import RpcServer
from harness.sim.setup import SimSetup
from harness.traces.recording import record_rm
from harness.yarn.capacity.source import FileSource, StoreSource
from harness.yarn.errors import Refused
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmAddress, RmClient
from tests.cluster.enforcing import until

pytestmark = pytest.mark.xdist_group("capacity")
LOCAL = pytest.param("local", marks=[pytest.mark.java, pytest.mark.live])

P = "yarn.scheduler.capacity."
FILE = """<?xml version="1.0"?>
<!-- the administrator's -->
<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>a,b,g</value></property>
  <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>1w</value></property>
  <property><name>yarn.scheduler.capacity.root.b.capacity</name><value>2.0w</value></property>
  <property><name>yarn.scheduler.capacity.root.g.capacity</name><value>1w</value></property>
  <property><name>yarn.scheduler.capacity.root.g.queues</name><value>x,y</value></property>
  <property><name>yarn.scheduler.capacity.root.g.x.capacity</name><value>30</value></property>
  <property><name>yarn.scheduler.capacity.root.g.y.capacity</name><value>70</value></property>
  <property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>10</value></property>
</configuration>
"""
SIZES = {"minimum-allocation-mb": 256, "maximum-allocation-mb": 4096, "maximum-allocation-vcores": 16}
MENDED = {f"{P}root.{q}.{key}": value for q in ("a", "b", "g.x", "g.y")
          for key, value in (("maximum-applications", "1000"), ("user-limit-factor", "-1"))}  # fmt: skip


@dataclass
class Rm:
    client: RmClient
    file: Path
    folder: Path

    def config(self, **more: object) -> EnforceConfig:
        return EnforceConfig.model_validate(
            {"policy": "ltrf", "settings": {"horizon_s": 20}, "ledger": str(self.folder / "ledger.db"), **more}
        )

    @contextlib.contextmanager
    def controller(self, **more: object) -> Iterator[Controller]:
        config = self.config(**more)
        with LedgerStore(config.ledger_path()) as store:
            controller = Controller(
                config.control_settings(),
                self.client,
                config.actuator_opener(self.client)(store.document),
                store,
                config.make_policy(),
                open_observer=open_rm_poller,
            )
            yield controller
            controller.close()

    def settings(self) -> dict[str, float | None]:
        return {path: queue.setting for path, queue in self.client.rest.scheduler().queues.items() if path != "root"}

    def submit(self, queue: str, count: int, seconds: float) -> list[str]:
        return [
            self.client.rest.submit(Submission("sleep", queue, f"sleep {seconds}", Resource(512, 1)))
            for _ in range(count)
        ]


def cluster(folder: Path, **properties: str) -> Iterator[Rm]:
    (folder / "queues.xml").write_text(FILE)
    spec = ClusterSpec(nodes=1, memory_mb=4096, vcores=16, scheduler="capacity",
                       allocations=str(folder / "queues.xml"), properties=properties)  # fmt: skip
    one = LocalCluster(StateFolder(folder / "state"))
    try:
        status = one.up(spec, timeout_s=170)
        with RmClient([status.address]) as client:
            yield Rm(client, Path(status.scheduler_folder) / "capacity-scheduler.xml", folder)
    finally:
        left = one.down()
    assert left == []


def simulated(folder: Path, **properties: str) -> Iterator[Rm]:
    """The same cluster, simulated, behind real sockets, its time the wall clock's."""
    file = folder / "capacity-scheduler.xml"
    file.write_text(FILE)
    conf = {f"yarn.scheduler.{what}": str(value) for what, value in SIZES.items()}
    nothing = parse_allocations("<allocations/>")
    setup = SimSetup((NodeSpec("n1", 4096, 16),), nothing, jobs=[], conf={**conf, **properties}, scheduler="capacity")
    served = LiveCluster(with_file(setup, file), file)
    rest, admin, client = RestServer(served), RpcServer(served), RpcServer(served)
    parts = (served, rest, admin, client)
    for part in parts:
        part.start()
    try:
        with RmClient([RmAddress.of(rest.url, admin=str(admin.address), client=str(client.address))]) as rm:
            until(lambda: rm.rest.metrics().active_nodes == 1, "the node is there")
            yield Rm(rm, file, folder)
    finally:
        for part in parts:
            part.stop()


@pytest.fixture(scope="module", params=[LOCAL, "sim"])
def backend(request: pytest.FixtureRequest) -> Callable[..., Iterator[Rm]]:
    """What brings a cluster up: local processes of Hadoop, or the simulator."""
    return {"local": cluster, "sim": simulated}[request.param]


@pytest.fixture(scope="module")
def store(backend: Callable[..., Iterator[Rm]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rm]:
    yield from backend(tmp_path_factory.mktemp("store"), **{"yarn.scheduler.configuration.store.class": "memory"})


@pytest.fixture(scope="module")
def file(backend: Callable[..., Iterator[Rm]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rm]:
    yield from backend(tmp_path_factory.mktemp("file"))


def kinds(report: TickReport) -> list[str]:
    return sorted({alarm.kind for alarm in report.alarms})


ORIGINAL = {"root.a": 1.0, "root.b": 2.0, "root.g": 1.0, "root.g.x": 30.0, "root.g.y": 70.0}


def test_a_tiny_share_refuses_applications_until_the_trap_is_mended(store: Rm) -> None:
    source = StoreSource(store.client.rest.http)
    at = source.write({f"{P}root.a.capacity": "0.0001w", f"{P}root.b.capacity": "9000w"}, source.read())
    [refused] = store.submit("root.a", 1, 1)
    assert until(lambda: store.client.rest.app(refused).final_status == "FAILED", "refused")
    assert "already has 0 applications, cannot accept" in store.client.rest.app(refused).diagnostics
    at = source.write(dict.fromkeys([f"{P}root.a.maximum-applications"], "1000"), at)
    [taken] = store.submit("root.a", 1, 1)
    until(lambda: store.client.rest.app(taken).state in ("ACCEPTED", "RUNNING", "FINISHED", "FAILED"), "taken")
    assert "cannot accept" not in store.client.rest.app(taken).diagnostics
    names = [f"{P}root.a.capacity", f"{P}root.b.capacity", f"{P}root.a.maximum-applications"]
    source.write(dict(zip(names, ("1w", "2.0w", None), strict=True)), at)
    until(lambda: store.client.rest.app(taken).final, "ended")


def test_one_user_is_held_to_the_share_of_an_idle_cluster_until_the_trap_is_mended(store: Rm) -> None:
    """4 GiB, of which root.a's share is a quarter: two containers of 512 MiB, one above it at most."""

    def holds() -> int:
        return store.client.rest.scheduler().queues["root.a"].containers_allocated

    source = StoreSource(store.client.rest.http)
    ids = store.submit("root.a", 8, 30)
    until(lambda: holds() >= 2, "containers")
    time.sleep(3)
    assert holds() <= 3
    at = source.write({f"{P}root.a.user-limit-factor": "-1"}, source.read())
    until(lambda: holds() == 8, "the whole of the idle cluster", timeout_s=30)
    assert store.client.rest.scheduler().queues["root"].used == Resource(8 * 512, 8), "the RM says nothing of the root"
    source.write({f"{P}root.a.user-limit-factor": None}, at)
    for identity in ids:
        store.client.rest.kill(identity)


def test_a_trace_has_the_scheduler_its_limits_and_the_users(store: Rm) -> None:
    recorded = record_rm(store.client)
    header, jobs = recorded.header, recorded.jobs
    assert header.scheduler == "capacity"
    said = header.capacity
    assert said is not None
    assert (said["root.a.user-limit-factor"], said["root.b.maximum-capacity"]) == ("1", "100")
    assert (said["root.a.maximum-am-resource-percent"], said["root.b.maximum-applications"]) == ("10", "5000")
    assert header.queues["root.g.y"].weight == 70.0
    assert {job.user for job in jobs} == {"dr.who"}, "who submits over REST without a name"


def test_nothing_is_written_while_a_trap_is_open(store: Rm) -> None:
    before = StoreSource(store.client.rest.http).read()
    with store.controller() as controller:
        report = controller.tick()
    assert kinds(report) == ["note", "trap"]
    assert {alarm.text.split(":")[0] for alarm in report.alarms} == {"maximum-applications", "user-limit-factor", "acl"}
    assert not report.wrote
    assert StoreSource(store.client.rest.http).read() == before


def test_a_shadow_names_the_traps_as_long_as_they_are_open_and_a_harmless_one_once(store: Rm) -> None:
    """They are to be found before anything is switched on."""
    with store.controller(mode="shadow") as controller:
        said = [[alarm.text.split(":")[0] for alarm in controller.tick().alarms] for _ in range(3)]
    blocking = ["maximum-applications", "user-limit-factor"]
    assert said == [[*blocking, "acl"], blocking, blocking]


def test_a_dry_run_says_from_which_share(store: Rm) -> None:
    said = store.folder / "dry.yaml"
    said.write_text(
        f"policy: static\nledger: {store.folder}/dry.db\naccept: [maximum-applications, user-limit-factor]\n"
    )
    command = [sys.executable, "-m", "harness", "enforce", "--rm", store.client.rms[0].rest, "--config", str(said)]
    done = subprocess.run([*command, "--dry-run", "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shares = json.loads(done.stdout)["shares"]
    assert (shares["root.b"]["before"], shares["root.g.y"]["before"]) == pytest.approx((0.5, 0.7))


@pytest.mark.parametrize("backend", [LOCAL], indirect=True, scope="module")
def test_doctor_names_the_traps_and_the_views_show_the_capacities(store: Rm) -> None:
    command = [sys.executable, "-m", "harness"]
    state = ["--backend", "local", "--state", str(store.folder / "state")]
    status = subprocess.run([*command, "cluster", "status", *state], capture_output=True, text=True, timeout=60)
    assert f"capacity file {store.file}" in status.stdout, status.stderr
    doctor = subprocess.run([*command, "cluster", "doctor", *state], capture_output=True, text=True, timeout=60)
    assert "user-limit-factor" in doctor.stdout, doctor.stderr
    assert "allocation-file" not in doctor.stdout
    found = {finding.check: finding.result for finding in examine_rm(store.client.rms[0].rest)}
    assert (found["maximum-applications"], found["user-limit-factor"], found["acl"]) == ("problem", "problem", "note")
    rm = ["--rm", store.client.rms[0].rest]
    explained = subprocess.run([*command, "explain", "root.b", *rm], capture_output=True, text=True, timeout=60)
    assert explained.returncode == 0, explained.stderr
    assert "Entitled to 50.0 % of the cluster" in explained.stdout
    shown = subprocess.run([*command, "top", "--once", *rm], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^  y +17\.5 ", shown.stdout, re.M), shown.stdout


@pytest.mark.parametrize("which", ["store", "file"])
@pytest.mark.usefixtures("backend")
def test_shares_are_in_force_and_everything_goes_back(which: str, request: pytest.FixtureRequest) -> None:
    rm: Rm = request.getfixturevalue(which)
    if which == "store":
        source: StoreSource | FileSource = StoreSource(rm.client.rest.http)
        source.write(MENDED, source.read())
        config: dict[str, object] = {}
    else:
        lines = "".join(f"<property><name>{n}</name><value>{v}</value></property>\n" for n, v in MENDED.items())
        rm.file.write_text(FILE.replace("</configuration>", f"{lines}</configuration>"))
        rm.client.refresh_queues()
        config = {"capacity_file": str(rm.file)}
    given, bytes_ = rm.settings(), rm.file.read_bytes()
    assert given == pytest.approx(ORIGINAL)
    with rm.controller(**config) as controller:
        first = controller.tick()
        assert (first.wrote, {alarm.text.split(":")[0] for alarm in first.alarms}) == (False, {"acl"})
        ids = rm.submit("root.b", 8, 20)

        def steered() -> bool:
            controller.tick()
            return (rm.settings()["root.a"] or 0) > 1.05

        until(steered, "root.a is given more than it had", timeout_s=40, every_s=1.0)
        last = controller.tick()
        assert not last.alarms
        now = rm.settings()
        assert now["root.b"] is not None
        assert now["root.b"] < 2.0, "b used more than its share"
        assert sum(now[path] or 0 for path in ("root.a", "root.b", "root.g")) == pytest.approx(4.0, rel=1e-3)
        assert (now["root.g.x"] or 0) + (now["root.g.y"] or 0) == pytest.approx(100.0)
        controller.release()
    assert rm.settings() == pytest.approx(given)
    assert rm.file.read_bytes() == bytes_
    for identity in ids:
        rm.client.rest.kill(identity)


def test_under_control_nobody_is_refused_and_a_lone_user_has_the_whole_cluster(store: Rm) -> None:
    rest = store.client.rest
    source = StoreSource(rest.http)
    before = {name: source.read().values.get(name) for name in MENDED}
    source.write(MENDED, source.read())
    with store.controller() as controller:
        controller.tick()
        first = store.submit("root.a", 12, 300)
        until(lambda: rest.metrics().containers_allocated == 8, "a has all")
        others = store.submit("root.b", 8, 300) + store.submit("root.g.x", 4, 300)

        def falls() -> bool:
            controller.tick()
            return (store.settings()["root.a"] or 1.0) < 0.7

        until(falls, "root.a pays back", timeout_s=90, every_s=1.0)
        for identity in (*first, *others):
            rest.kill(identity)
        late = store.submit("root.a", 40, 300)
        until(lambda: rest.metrics().containers_allocated == 8, "a has all again")
        used = []
        for _ in range(10):
            controller.tick()
            used.append(rest.scheduler().queues["root"].used.memory_mb / rest.metrics().total.memory_mb)
            assert (store.settings()["root.a"] or 4.0) <= 1.0, "its capacity is a quarter of that, or less"
            time.sleep(1.0)
        assert sum(used) / len(used) >= 0.99
        found = [rest.app(identity) for identity in late]
        assert {app.state for app in found} <= {"ACCEPTED", "RUNNING"}, [app.diagnostics for app in found if app.final]
        for identity in late:
            rest.kill(identity)
        controller.release()
    source.write(before, source.read())


def test_a_lift_by_priority_is_in_force_and_goes_back(store: Rm) -> None:
    source = StoreSource(store.client.rest.http)
    policy = f"{P}root.ordering-policy"
    before = source.write({policy: "priority-utilization"}, source.read())
    actuator = CapacityActuator(source)
    actuator.read()
    actuator.max_shares(Resource(4096, 16))
    shares = {"root.a": 1.0, "root.b": 2.0, "root.g": 1.0, "root.g.x": 30.0, "root.g.y": 70.0}
    prepared = actuator.prepare(
        Attributes(shares, min_shares={"root.g": Resource(512, 1), "root.g.x": Resource(512, 1)})
    )
    actuator.write(prepared)
    actuator.confirm(store.client, prepared.in_force, timeout_s=10, every_s=0.1)
    assert (source.read().values[f"{P}root.g.priority"], source.read().values[f"{P}root.g.x.priority"]) == ("1", "1")
    actuator.write(actuator.original())
    assert source.read().values == before.values
    source.write({policy: None}, source.read())


def test_a_change_that_the_rm_refuses_changes_nothing_and_is_said(store: Rm) -> None:
    source = StoreSource(store.client.rest.http)
    before = source.read()
    with pytest.raises(Refused, match="Illegal weight"):
        source.write({f"{P}root.a.capacity": "20000w"}, before)
    assert source.read() == before


def test_the_wrong_key_for_the_scheduler_is_one_line(store: Rm, file: Rm) -> None:
    from harness.base.errors import InputError

    with pytest.raises(InputError, match="has the Capacity Scheduler"):
        store.config(allocation_file="/nowhere.xml").actuator_opener(store.client)
    with pytest.raises(InputError, match="cannot be changed over REST"):
        file.config().actuator_opener(file.client)
