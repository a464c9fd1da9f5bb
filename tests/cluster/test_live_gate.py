"""No document is left where a real ResourceManager reads it with which that ResourceManager would not start.

An administrator edits his queues while a controller is at work, and the scheduling policies that a policy wants are not
those that Hadoop allows everywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.base.errors import YarnfairError
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.control.config import EnforceConfig
from harness.control.rm_poller import open_rm_poller
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore
from harness.model.resources import Resource
from harness.yarn.capacity.source import StoreSource
from harness.yarn.rest import Submission
from harness.yarn.rmclient import RmClient
from harness.yarn.validation import check_document
from tests.cluster.enforcing import until
from tests.cluster.parts import kill_part, start_part

pytestmark = [pytest.mark.java, pytest.mark.live, pytest.mark.xdist_group("gate")]

P = "yarn.scheduler.capacity."


@dataclass
class Rm:
    cluster: LocalCluster
    client: RmClient
    file: Path
    folder: Path

    @contextlib.contextmanager
    def controller(self, **more: object) -> Iterator[Controller]:
        ledger = str(self.folder / "ledger.db")
        config = EnforceConfig.model_validate({"policy": "ltrf", "ledger": ledger, **more})
        with LedgerStore(config.ledger_path()) as store:
            actuator, policy = config.actuator_opener(self.client)(store.document), config.make_policy()
            settings = config.control_settings()
            controller = Controller(settings, self.client, actuator, store, policy, open_observer=open_rm_poller)
            yield controller
            controller.close()

    def queues(self) -> set[str]:
        return set(self.client.rest.scheduler().queues)

    def policies(self) -> set[str]:
        return {queue.policy.lower() for queue in self.client.rest.scheduler().queues.values()}

    def settings(self) -> dict[str, float | None]:
        return {path: queue.setting for path, queue in self.client.rest.scheduler().queues.items() if path != "root"}

    def restart(self) -> None:
        """The ResourceManager dies, and starts with what lies there."""

        def answers() -> bool:
            with contextlib.suppress(YarnfairError):
                self.client.refresh_queues()
                return self.client.rest.metrics().active_nodes == 1
            return False

        def ended() -> bool:
            state = self.cluster.folder.load()
            return state is not None and not state.processes["rm"].alive

        kill_part(self.cluster, "rm")
        until(ended, "the RM is dead", 20)
        start_part(self.cluster, "rm")
        until(answers, "the RM starts again", 90)


def brought_up(folder: Path, scheduler: str, file: str, **properties: str) -> Iterator[Rm]:
    (folder / "queues.xml").write_text(file)
    spec = ClusterSpec(
        nodes=1,
        memory_mb=4096,
        vcores=16,
        scheduler=scheduler,
        allocations=str(folder / "queues.xml"),
        properties=properties,
    )
    one = LocalCluster(StateFolder(folder / "state"))
    name = "capacity-scheduler.xml" if scheduler == "capacity" else "fair-scheduler.xml"
    try:
        status = one.up(spec, timeout_s=170)
        with RmClient([status.address]) as client:
            yield Rm(one, client, Path(status.scheduler_folder) / name, folder)
    finally:
        left = one.down()
    assert left == []


def percentages(**shares: str) -> dict[str, str]:
    """Properties of leaves below the root, without a trap."""
    found = {"global-queue-max-application": "1000", "maximum-am-resource-percent": "1000"}
    found["root.queues"] = ",".join(shares)
    for name, share in shares.items():
        found |= {f"root.{name}.capacity": share, f"root.{name}.user-limit-factor": "-1"}
    return {P + name: value for name, value in found.items()}


def as_file(values: dict[str, str]) -> str:
    rows = "".join(f"  <property><name>{n}</name><value>{v}</value></property>\n" for n, v in values.items())
    return f'<?xml version="1.0"?>\n<!-- ours -->\n<configuration>\n{rows}</configuration>\n'


def steered(rm: Rm, controller: Controller) -> None:
    """Until the capacities in force are not the administrator's."""
    before = rm.settings()
    for _ in range(6):
        rm.client.rest.submit(Submission("sleep", "root.a", "sleep 15", Resource(512, 1)))

    def moved() -> bool:
        controller.tick()
        return rm.settings() != before

    until(moved, "the controller writes", 60, 1.0)


def test_an_ordinary_edit_of_queues_on_percentages_loads_and_goes_back(tmp_path: Path) -> None:
    """50, 25, 25 became 30, 25, 25, 20; the controller made 120 of it, and the RM did not start any more."""
    theirs = as_file(percentages(a="30", b="25", c="25", d="20"))
    for rm in brought_up(tmp_path, "capacity", as_file(percentages(a="50", b="25", c="25"))):
        with rm.controller(capacity_file=str(rm.file)) as controller:
            steered(rm, controller)
            rm.file.write_text(theirs)
            rm.client.refresh_queues()
            for _ in range(3):
                report = controller.tick()
                assert {alarm.kind for alarm in report.alarms} <= {"foreign", "note"}
                assert check_document(rm.file.read_bytes(), source="written").valid
                rm.client.refresh_queues()
            assert rm.queues() == {"root", "root.a", "root.b", "root.c", "root.d"}
            rm.restart()
            controller.tick()
            assert controller.stop("release") == "stopped; the administrator's own capacities are in force"
        assert rm.file.read_text() == theirs
        assert rm.settings() == pytest.approx({"root.a": 30, "root.b": 25, "root.c": 25, "root.d": 20})
        rm.restart()
        assert rm.settings() == pytest.approx({"root.a": 30, "root.b": 25, "root.c": 25, "root.d": 20})


def test_a_store_is_given_back_with_what_the_administrator_has_changed_in_it(tmp_path: Path) -> None:
    """The release got HTTP 400, and the controller's capacities stayed."""
    stores = {"yarn.scheduler.configuration.store.class": "memory"}
    for rm in brought_up(tmp_path, "capacity", as_file(percentages(a="50", b="25", c="25")), **stores):
        source = StoreSource(rm.client.rest.http)
        with rm.controller() as controller:
            steered(rm, controller)
            new = {f"{P}root.{name}.capacity": value for name, value in (("a", "30"), ("b", "30"), ("c", "40"))}
            source.write(dict(new), source.read())
            report = controller.tick()
            assert {alarm.kind for alarm in report.alarms} <= {"foreign", "note"}
            assert controller.actuator.configured_weights() == pytest.approx({"root.a": 30, "root.b": 30, "root.c": 40})
            assert controller.stop("release") == "stopped; the administrator's own capacities are in force"
        assert rm.settings() == pytest.approx({"root.a": 30, "root.b": 30, "root.c": 40})


UNROOTED = '<allocations>\n  <queue name="a"><weight>2.0</weight></queue>\n  <queue name="b"/>\n</allocations>\n'
ROOTED = UNROOTED.replace("<allocations>", '<allocations>\n<queue name="root">').replace(
    "</allocations>", "</queue>\n</allocations>"
)


def test_scheduling_policies_are_written_only_where_a_fair_scheduler_allows_them(tmp_path: Path) -> None:
    """Below a root of fair, leaves got drf: the RM showed fair everywhere, and made no queue after its restart."""
    for rm in brought_up(tmp_path, "fair", UNROOTED):
        for file, shown in ((UNROOTED, {"fair"}), (ROOTED, {"drf"})):
            rm.file.write_text(file)
            rm.client.refresh_queues()
            with rm.controller(policy="drf", allocation_file=str(rm.file)) as controller:
                report = controller.tick()
                assert {alarm.kind for alarm in report.alarms} <= {"ad-hoc", "rm"}
                assert report.effect_s is not None
                assert check_document(rm.file.read_bytes(), source="written").valid
                assert rm.policies() == shown
                rm.restart()
                assert {"root.a", "root.b"} <= rm.queues()
                assert rm.policies() == shown
                words = controller.stop("release")
                assert words == "stopped; the administrator's own weights and limits are in force"
            assert rm.file.read_text() == file
            assert rm.policies() == {"fair"}
