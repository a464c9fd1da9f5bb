"""Traps of steering a real Capacity Scheduler: the harm that each does, and that it is gone once it is mended.

Limits of applications and of users: tests/cluster/test_live_capacity.py, of which these cluster helpers are.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.control.reports import TickReport
from harness.yarn.capacity.source import StoreSource
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import NotEffective, RmClient
from tests.cluster import test_live_capacity as capacity
from tests.cluster.enforcing import until
from tests.cluster.test_live_capacity import FILE, MENDED, P, Rm

pytestmark = [pytest.mark.live, pytest.mark.java, pytest.mark.xdist_group("live-traps")]

STORE = "yarn.scheduler.configuration"
PATH = "/ws/v1/cluster/scheduler-conf"
#: Without traps.
SAFE = FILE.replace(
    "</configuration>",
    "".join(f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in MENDED.items())
    + "</configuration>",
)


@contextlib.contextmanager
def scheduler(folder: Path, monkeypatch: pytest.MonkeyPatch, **properties: str) -> Iterator[Rm]:
    """A real Capacity Scheduler without traps, but for these properties."""
    monkeypatch.setattr(capacity, "FILE", SAFE)
    given = {f"{STORE}.store.class": "memory", **properties}
    with contextlib.contextmanager(capacity.cluster)(folder, **given) as rm:
        yield rm


def put(client: RmClient, **capacities: str) -> str:
    """A change as anybody may make it, without a look at what is there; what the RM says."""
    queues = [
        {"queue-name": f"root.{queue}", "params": {"entry": [{"key": "capacity", "value": text}]}}
        for queue, text in capacities.items()
    ]
    answer = client.rest.http.request("PUT", PATH, body={"update-queue": queues}, repeatable=False, words=True)
    return str(answer.document)


def traps(report: TickReport) -> set[str]:
    return {alarm.text.split(":")[0] for alarm in report.alarms if alarm.kind == "trap"}


def test_what_the_api_takes_without_a_word_the_controller_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scheduler(tmp_path, monkeypatch) as rm:
        source = StoreSource(rm.client.rest.http)
        good = source.read()
        # Mixed kinds are refused, and nothing changes.
        with pytest.raises(Refused):
            source.write({f"{P}root.a.capacity": "25"}, good)
        assert source.read() == good
        # An unknown queue is "successfully applied": read back, it is not there.
        assert "successfully" in put(rm.client, nobody="3w")
        with pytest.raises(NotEffective, match="no such queue"):
            rm.client.confirm_settings({"root.nobody": 3.0}, timeout_s=0)
        source.write({f"{P}root.nobody.capacity": None}, source.read())
        # So are weights that are none. A controller that runs says so and writes nothing until it is mended.
        for text in ("NaNw", "-1w"):
            with rm.controller() as controller:
                controller.tick()
                assert "successfully" in put(rm.client, a=text)
                report = controller.tick()
                assert not report.wrote
                assert {alarm.kind for alarm in report.alarms} - {"note", "foreign"}, report.alarms
                put(rm.client, a="1w")
                until(lambda c=controller: not {a.kind for a in c.tick().alarms} - {"note", "foreign"}, "it goes on")
        with rm.controller() as controller:
            assert {alarm.kind for alarm in controller.tick().alarms} == {"note"}


@pytest.mark.long
@pytest.mark.parametrize("enabled", ["false", "true"])
@pytest.mark.parametrize("admins", ["*", "warden"])
def test_anybody_changes_the_queues_unless_the_admin_acl_names_who_may(
    enabled: str, admins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scheduler(tmp_path, monkeypatch, **{"yarn.acl.enable": enabled, "yarn.admin.acl": admins}) as rm,
        RmClient(rm.client.rms, HttpOptions(user="mallory")) as mallory,
        RmClient(rm.client.rms, HttpOptions(user="warden")) as warden,
    ):
        # An RM with access control shows its configuration to its administrators alone.
        with Rm(warden, rm.file, rm.folder).controller() as controller:
            noted = {alarm.text.split(":")[0] for alarm in controller.tick().alarms}
        if admins == "*":
            assert "successfully" in put(mallory, a="9w", b="1w", g="1w")
            assert noted == {"acl"}
        else:
            with pytest.raises(Refused, match=r"not admin|Only admins"):
                put(mallory, a="9w", b="1w", g="1w")
            assert "successfully" in put(warden, a="2w", b="1w", g="1w")
            assert noted == set()


@pytest.mark.long
def test_validate_fails_on_leveldb_and_nobody_asks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {f"{STORE}.store.class": "leveldb", f"{STORE}.leveldb-store.path": str(tmp_path / "leveldb")}
    with scheduler(tmp_path, monkeypatch, **given) as rm:
        entry = {"queue-name": "root.a", "params": {"entry": [{"key": "capacity", "value": "2w"}]}}
        with pytest.raises((Refused, BadAnswer, Unreachable)):
            rm.client.rest.http.request("POST", f"{PATH}/validate", body={"update-queue": [entry]}, repeatable=True)
        source = StoreSource(rm.client.rest.http)
        source.write({f"{P}root.a.capacity": "2w"}, source.read())
        rm.client.confirm_settings({"root.a": 2.0}, timeout_s=30)


@pytest.mark.long
def test_preemption_kills_what_a_new_share_leaves_no_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def held(rm: Rm) -> int:
        return rm.client.rest.scheduler().queues["root.b"].containers_allocated

    for name, on in (("on", "true"), ("off", "false")):
        folder = tmp_path / name
        folder.mkdir()
        monitor = "yarn.resourcemanager.monitor.capacity.preemption"
        given = {
            "yarn.resourcemanager.scheduler.monitor.enable": on,
            f"{monitor}.monitoring_interval": "500",
            f"{monitor}.max_wait_before_kill": "1000",
            f"{monitor}.total_preemption_per_round": "1.0",
            f"{monitor}.natural_termination_factor": "1.0",
        }
        with scheduler(folder, monkeypatch, **given) as rm:
            rm.submit("root.b", 8, 300)
            until(lambda rm=rm: rm.client.rest.metrics().containers_allocated >= 8, "b holds the cluster", 90)
            rm.submit("root.a", 8, 300)
            with rm.controller() as controller:
                report = controller.tick()
            assert traps(report) == ({"preemption"} if on == "true" else set())
            put(rm.client, a="9000w", b="1w", g="1w")
            if on == "true":
                until(lambda rm=rm: held(rm) < 8, "containers of b are killed", 60)
            else:
                time.sleep(15)
                assert held(rm) == 8
