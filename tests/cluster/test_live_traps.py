"""Traps of steering a real Capacity Scheduler: the harm that each does, and that it is gone once it is mended.

Limits of applications and of users: tests/cluster/test_live_capacity.py, of which these cluster helpers are.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clusters.doctor import examine_rm
from harness.control.capacity_actuator import CapacityActuator
from harness.control.reports import TickReport
from harness.model.plan import Attributes
from harness.yarn.capacity.source import StoreSource
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import NotEffective, RmClient
from studies.zookeeper import zookeeper
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
def scheduler(folder: Path, monkeypatch: pytest.MonkeyPatch, file: str = SAFE, **properties: str) -> Iterator[Rm]:
    """A real Capacity Scheduler without traps, but for these properties and what this file has."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(capacity, "FILE", file)
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
        # So is an unknown key; the queue stays as it is.
        source.write({f"{P}root.a.capacty": "3w"}, source.read())
        assert rm.settings()["root.a"] == 1.0
        source.write({f"{P}root.a.capacty": None}, source.read())
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
        monitor = "yarn.resourcemanager.monitor.capacity.preemption"
        given = {
            "yarn.resourcemanager.scheduler.monitor.enable": on,
            f"{monitor}.monitoring_interval": "500",
            f"{monitor}.max_wait_before_kill": "1000",
            f"{monitor}.total_preemption_per_round": "1.0",
            f"{monitor}.natural_termination_factor": "1.0",
        }
        with scheduler(tmp_path / name, monkeypatch, **given) as rm:
            rm.submit("root.b", 8, 300)
            until(lambda rm=rm: rm.client.rest.metrics().containers_allocated >= 8, "b holds the cluster", 90)
            rm.submit("root.a", 8, 300)
            with rm.controller() as controller:
                report = controller.tick()
            assert traps(report) == set()
            notes = {alarm.text.split(":")[0] for alarm in report.alarms if alarm.kind == "note"}
            assert ("preemption" in notes) == (on == "true")
            put(rm.client, a="9000w", b="1w", g="1w")
            if on == "true":
                until(lambda rm=rm: held(rm) < 8, "containers of b are killed", 60)
            else:
                time.sleep(15)
                assert held(rm) == 8


@pytest.mark.long
def test_the_zk_store_hangs_once_its_log_has_outgrown_zookeepers_largest_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred queues: by default the RM keeps the last thousand changes in one node of 1 MB."""
    paths = [f"root.q{number}" for number in range(200)]
    said = {
        f"{P}root.queues": ",".join(path.removeprefix("root.") for path in paths),
        f"{P}global-queue-max-application": "10000",
        f"{P}maximum-am-resource-percent": "1",
        **{f"{P}{path}.capacity": "1w" for path in paths},
        **{f"{P}{path}.user-limit-factor": "-1" for path in paths},
    }
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in said.items())
    for name, more in (("log", {}), ("none", {f"{STORE}.store.max-logs": "0"})):
        with zookeeper(tmp_path / f"zk-{name}") as address:
            given = {f"{STORE}.store.class": "zk", "hadoop.zk.address": address, **more}
            file = f"<configuration>\n{rows}</configuration>\n"
            with scheduler(tmp_path / name, monkeypatch, file, **given) as rm:
                with rm.controller() as controller:
                    assert traps(controller.tick()) == (set() if more else {"zk-log"})
                with RmClient(rm.client.rms, HttpOptions(attempts=1, read_timeout_s=15, deadline_s=20)) as client:
                    actuator, written = CapacityActuator(StoreSource(client.rest.http)), 0
                    with contextlib.suppress(Unreachable):
                        while written < 200:
                            actuator.read()
                            weights = {path: float(100 + (written + n) % 7) for n, path in enumerate(paths)}
                            actuator.write(actuator.prepare(Attributes(weights)))
                            written += 1
                assert written == 200 if more else 20 < written < 200, written


#: What is refused by name, besides what the other tests show the harm of: the file's lines, and the RM's own.
REFUSED = {
    f"{P}root.ordering-policy": "priority-utilization",
    f"{P}root.a.priority": "2",
    f"{P}root.b.auto-queue-creation-v2.enabled": "true",
    f"{P}schedule-asynchronously.enable": "true",
    f"{P}multi-node-placement-enabled": "true",
}


@pytest.mark.long
def test_what_control_was_not_measured_with_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"<property><name>{n}</name><value>{v}</value></property>\n" for n, v in REFUSED.items())
    file = SAFE.replace("</configuration>", f"{rows}</configuration>").replace(
        f"<property><name>{P}maximum-am-resource-percent</name><value>10</value></property>", ""
    )
    for flexible in (False, True):
        more = (
            f"<property><name>{P}legacy-queue-mode.enabled</name><value>{str(not flexible).lower()}</value></property>"
        )
        labels = {
            "yarn.node-labels.enabled": "true",
            "yarn.node-labels.fs-store.root-dir": f"file://{tmp_path}/labels-{flexible}",
        }
        with scheduler(
            tmp_path / str(flexible),
            monkeypatch,
            file.replace("</configuration>", f"{more}\n</configuration>"),
            **labels,
        ) as rm:
            named = {"priority", "node-labels", "asynchronous", "multi-node", *(["queue-mode"] if flexible else [])}
            found = {finding.check: finding.result for finding in examine_rm(rm.client.rms[0].rest)}
            assert {name for name in named if found.get(name) == "problem"} == named, found
            assert (found["auto-created"], found["am-limit"]) == ("note", "note"), found
            before = StoreSource(rm.client.rest.http).read()
            config = tmp_path / "enforce.yaml"
            config.write_text(f"policy: ltrf\nledger: {tmp_path}/{flexible}.db\n")
            command = [sys.executable, "-m", "harness", "enforce", "--rm", rm.client.rms[0].rest]
            for how in ("--dry-run", "--once"):
                done = subprocess.run(
                    [*command, "--config", str(config), how], capture_output=True, text=True, timeout=120
                )
                text = done.stdout + done.stderr
                assert [name for name in named if f"trap: {name}: " not in text] == [], text
                assert "until then nothing is written" in text
            assert StoreSource(rm.client.rest.http).read() == before


@pytest.mark.long
def test_a_priority_goes_before_shares_until_the_policy_is_utilization(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {f"{P}root.a.priority": "5", f"{P}root.b.capacity": "1w", f"{P}root.g.capacity": "1w"}
    for policy in ("priority-utilization", "utilization"):
        values = {**lines, f"{P}root.ordering-policy": policy}
        rows = "".join(f"<property><name>{n}</name><value>{v}</value></property>\n" for n, v in values.items())
        file = SAFE.replace(f"<property><name>{P}root.b.capacity</name><value>2.0w</value></property>", "").replace(
            "</configuration>", f"{rows}</configuration>"
        )
        with scheduler(tmp_path / policy, monkeypatch, file) as rm:
            with rm.controller() as controller:
                assert ("priority" in traps(controller.tick())) == (policy != "utilization")
            rm.submit("root.g.x", 8, 15)
            until(lambda rm=rm: rm.client.rest.metrics().containers_allocated >= 8, "g holds the cluster", 90)
            queue_of = dict.fromkeys(rm.submit("root.b", 8, 60), "b") | dict.fromkeys(rm.submit("root.a", 8, 60), "a")

            def order(rm: Rm = rm, queue_of: dict[str, str] = queue_of) -> list[str]:
                log = (rm.folder / "state" / "logs" / "rm.log").read_text(errors="replace")
                began = re.findall(r"container_(\d+_\d+)_01_000001 Container Transitioned from NEW to ALLOCATED", log)
                return [queue_of[f"application_{app}"] for app in began if f"application_{app}" in queue_of]

            until(lambda order=order: len(order()) >= 4, "g's containers end", 60)
            # A third of 4 GiB: its guarantee is reached with the third container of 512 MiB.
            first = "".join(order()[:4])
            assert first == "aaab" if policy != "utilization" else sorted(first) == ["a", "a", "b", "b"], first
