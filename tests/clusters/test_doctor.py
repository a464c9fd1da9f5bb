"""What the doctor finds, cause by cause: machine and settings, and a ResourceManager that answers as one in trouble."""

from __future__ import annotations

import email.utils
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters import doctor, local
from harness.clusters.doctor import Finding, Wanted
from harness.clusters.jars import missing
from harness.clusters.ssh import SshCluster
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.clusters.status import ClusterStatus, Part
from harness.yarn.answers import cluster_info, nodes
from harness.yarn.errors import Unreachable
from harness.yarn.files import ConfigStore, LocalStore
from harness.yarn.releases import DEFAULT
from harness.yarn.rmclient import RmAddress
from tests.ports import held_port
from tests.yarn.fake_server import FakeServer, http

RECORDED = Path(__file__).parents[1] / "yarn" / "recorded"
WANTED = Wanted("local", 2, 4096, 4, 256, 256, 128, False, {})


def problems(findings: Iterator[Finding] | list[Finding]) -> list[Finding]:
    found = [finding for finding in findings if finding.result == "problem"]
    assert all(finding.hint for finding in found), "every problem says how to mend it"
    return found


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a Java 17 and jars, whatever the real one has."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    java = bin_folder / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    lib = tmp_path / "lib"
    lib.mkdir()
    for prefix in missing(tmp_path / "none"):
        (lib / f"{prefix}{DEFAULT}.jar").write_text("")
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
    monkeypatch.setenv("HADOOP_LIB", str(lib))
    return tmp_path


def test_a_healthy_machine(tools: Path) -> None:
    findings = list(doctor.examine_machine(WANTED, tools / "state", running=False))
    assert [f for f in findings if f.result == "problem" and f.check != "disk"] == []
    assert {f.check for f in findings} == {"java", "jars", "ports", "memory", "disk"}


def test_a_taken_port(tools: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        wanted = replace(WANTED, ports={"http": port})
        (found,) = problems(doctor.examine_machine(wanted, tools, running=False))
        assert found.check == "ports"
        assert str(port) in found.what
        assert problems(doctor.examine_machine(wanted, tools, running=True)) == [], "its own port is taken rightly"
        with pytest.raises(InputError, match=f"port {port} is taken"):
            local.LocalCluster(StateFolder(tools / "state")).up(ClusterSpec(ports={"http": port}))


def test_no_java_an_old_java_a_silent_java(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tools / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_292\"' >&2\n")
    (old,) = problems(doctor.examine_machine(WANTED, tools, running=True))
    assert "Java 8 is too old" in old.what
    java.write_text("#!/bin/sh\nexit 1\n")
    (silent,) = problems(doctor.examine_machine(WANTED, tools, running=True))
    assert "does not say its version" in silent.what
    java.unlink()
    monkeypatch.setenv("PATH", str(tools / "bin"))
    (none,) = problems(doctor.examine_machine(WANTED, tools, running=True))
    assert none.what == "no Java on the PATH"


def test_no_jars_and_no_maven(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_LIB", str(tools))
    (wrong,) = problems(doctor.examine_machine(WANTED, tools, running=True))
    assert "HADOOP_LIB" in wrong.what
    monkeypatch.delenv("HADOOP_LIB")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tools / "cache"))
    monkeypatch.setenv("PATH", str(tools / "bin"))
    (none,) = problems(doctor.examine_machine(WANTED, tools, running=True))
    assert "no Maven" in none.what


def test_no_docker_and_a_daemon_that_does_not_answer(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = replace(WANTED, backend="docker")
    monkeypatch.setenv("PATH", str(tools / "bin"))
    (none,) = problems(doctor.examine_machine(wanted, tools, running=True))
    assert none.what == "no docker on the PATH"
    client = tools / "bin" / "docker"
    client.write_text("#!/bin/sh\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tools}/no.sock")
    found = problems(doctor.examine_machine(wanted, tools, running=True))
    assert [finding.check for finding in found] == ["compose", "docker"]
    assert "does not answer" in found[1].what


@pytest.mark.parametrize(("used", "checks", "result"), [(89, True, "fine"), (91, True, "problem"), (91, False, "note")])
def test_a_full_disk(tools: Path, monkeypatch: pytest.MonkeyPatch, used: int, checks: bool, result: str) -> None:
    space = SimpleNamespace(f_blocks=1000, f_bavail=1000 - used * 10)
    monkeypatch.setattr(os, "statvfs", lambda _: space)
    wanted = replace(WANTED, disk_checks=checks)
    (disk,) = [f for f in doctor.examine_machine(wanted, tools / "not" / "yet", running=True) if f.check == "disk"]
    assert disk.result == result
    assert f"{used} % full" in disk.what


def test_too_little_memory_for_the_daemons(tools: Path) -> None:
    wanted = replace(WANTED, nodes=500, nm_heap_mb=2**16)
    (found,) = problems(doctor.examine_machine(wanted, tools, running=False))
    assert found.check == "memory"


def test_memory_below_the_minimum_allocation(tmp_path: Path) -> None:
    found = problems(doctor.examine_settings(replace(WANTED, memory_mb=200), None))
    assert found[0].check == "minimum-allocation"
    assert "200 MB are below the minimum allocation of 256 MB" in found[0].what


@pytest.mark.parametrize(
    ("weight", "am_share", "am_mb", "said"),
    [
        # 8192 MB in all: b gets 819, half of it 409: one ApplicationMaster of 256 MB, not two.
        (9, 0.5, None, "no second application"),
        (9, 0.2, None, "no application"),
        (9, -1.0, None, None),
        (9, 0.7, None, None),
        (1, 0.5, None, None),
        (1, 0.5, 1536, "no second application"),
    ],
)
def test_an_am_share_too_small_for_a_second_application(
    tmp_path: Path, weight: float, am_share: float, am_mb: int | None, said: str | None
) -> None:
    file = tmp_path / "f.xml"
    file.write_text(
        f'<?xml version="1.0"?><allocations><queueMaxAMShareDefault>{am_share}</queueMaxAMShareDefault>'
        f'<queue name="a"><weight>{weight}</weight></queue><queue name="b"/></allocations>'
    )
    found = problems(doctor.examine_settings(replace(WANTED, am_memory_mb=am_mb), file))
    about = [finding.what for finding in found if "root.b" in finding.what]
    assert bool(about) == (said is not None)
    assert said is None or said in about[0]


def test_a_queue_whose_path_begins_another_ones_is_not_taken_for_named() -> None:
    named = "too small in root.q10, root.q11: raise it"
    assert not Finding("maximum", "note", named, queues=("root.q10", "root.q11")).shortened
    assert Finding("maximum", "note", named, queues=("root.q1", "root.q10", "root.q11")).shortened


def test_every_queue_with_too_little_room_is_named(tmp_path: Path) -> None:
    """The eleventh and all after it were left out in silence."""
    names = [f"q{at:02}" for at in range(13)]
    file = tmp_path / "f.xml"
    queues = "".join(f'<queue name="{name}"/>' for name in names)
    file.write_text(f"<allocations>{queues}</allocations>")
    found = [one for one in problems(doctor.examine_settings(WANTED, file)) if one.check == "am-share"]
    assert all(any(f"root.{name}" in one.what for one in found) for name in names)
    assert "3 queues more have room for at most one ApplicationMaster each" in found[-1].what


def test_a_broken_allocation_file(tmp_path: Path) -> None:
    (tmp_path / "f.xml").write_text("<allocations><queue")
    (found,) = problems(doctor.examine_settings(WANTED, tmp_path / "f.xml"))
    assert found.check == "allocation-file"


CAPACITY_FILE = """<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>a,b</value></property>
  <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>40</value></property>
  <property><name>yarn.scheduler.capacity.root.b.capacity</name><value>60</value></property>
</configuration>
"""


@pytest.mark.parametrize("name", ["capacity-scheduler.xml", "mine.xml"])
def test_a_capacity_schedulers_file_is_judged_as_one(tmp_path: Path, name: str) -> None:
    """By what it is: under another name it was read as an allocation file."""
    file = tmp_path / name
    file.write_text(CAPACITY_FILE)
    findings = list(doctor.examine_settings(WANTED, file))
    assert problems(findings) == []
    assert ("capacity-file", "fine") in {(finding.check, finding.result) for finding in findings}
    assert "user-limit-factor" in {finding.check for finding in findings if finding.result == "note"}
    file.write_text(CAPACITY_FILE.replace(">60<", ">50<"))
    (found,) = problems(doctor.examine_settings(WANTED, file))
    assert found.check == "capacity-file"
    assert "90" in found.what
    file.unlink()
    (found,) = problems(doctor.examine_settings(WANTED, file))
    assert found.result == "problem"


class Rm:
    """A ResourceManager's answers, recorded from a real one, to be changed into trouble."""

    def __init__(self) -> None:
        self.info = json.loads((RECORDED / "info.json").read_text())
        self.nodes = json.loads((RECORDED / "nodes.json").read_text())
        self.metrics = json.loads((RECORDED / "metrics.json").read_text())
        self.minimum: Any = {"property": {"key": "k", "value": "256"}}
        self.ahead_s = 0.0
        #: More pages: end of the path -> document, or a status.
        self.more: dict[str, Any] = {}

    def serve(self, connection: socket.socket, request: bytes) -> None:
        path = request.split(b" ")[1].decode()
        date = email.utils.formatdate(time.time() + self.ahead_s, usegmt=True)
        for name, document in {"/info": self.info, "/nodes": self.nodes, "/metrics": self.metrics}.items():
            if f"cluster{name}" in path:
                connection.sendall(http(200, document, Date=date))
                return
        for name, document in self.more.items():
            if path.partition("?")[0].endswith(name):
                connection.sendall(http(document) if isinstance(document, int) else http(200, document))
                return
        connection.sendall(http(200 if self.minimum else 404, self.minimum))


def examine(rm: Rm, **options: Any) -> list[Finding]:
    with FakeServer(rm.serve) as server:
        return list(doctor.examine_rm(server.url, **options))


def test_a_healthy_rm() -> None:
    findings = examine(Rm(), wanted_nodes=2)
    assert problems(findings) == []
    assert {finding.check for finding in findings} == {"rm", "clock", "nodes", "minimum-allocation"}


def test_an_unhealthy_node_with_a_full_disk() -> None:
    rm = Rm()
    node = rm.nodes["nodes"]["node"][0]
    node["state"] = "UNHEALTHY"
    node["healthReport"] = (
        "1/1 local-dirs usable space is below configured utilization percentage/no more usable space [ /d/local : used "
        "space above threshold of 90.0% ]"
    )
    (found,) = problems(examine(rm, wanted_nodes=2))
    assert found.check == "nodes"
    assert "90" in str(found.hint)


def test_missing_nodes() -> None:
    rm = Rm()
    rm.nodes["nodes"]["node"][0]["state"] = "LOST"
    (found,) = problems(examine(rm, wanted_nodes=2))
    assert "1 of 2 nodes are RUNNING" in found.what
    rm.nodes = {"nodes": None}
    (found,) = problems(examine(rm))
    assert found.what == "no node is RUNNING"


@pytest.mark.parametrize(("ahead_s", "word"), [(0.0, None), (-1.5, None), (30.0, "ahead"), (-3600.0, "behind")])
def test_clock_skew(ahead_s: float, word: str | None) -> None:
    rm = Rm()
    rm.ahead_s = ahead_s
    found = problems(examine(rm))
    assert [finding.check for finding in found] == ([] if word is None else ["clock"])
    assert word is None or word in found[0].what


def test_nodes_below_the_minimum_allocation() -> None:
    rm = Rm()
    rm.minimum = {"property": {"value": "8192"}}
    found = problems(examine(rm))
    assert {finding.check for finding in found} == {"minimum-allocation"}
    assert "4096 MB, below the minimum allocation of 8192 MB" in found[0].what


@pytest.mark.parametrize("answer", [None, [], {"property": {"value": "many"}}, {"property": None}])
def test_an_rm_that_does_not_tell_its_minimum(answer: Any) -> None:
    rm = Rm()
    rm.minimum = answer
    assert problems(examine(rm)) == []


def held(kind: str) -> Rm:
    """One whose queues are held by limits, each in its way, as recorded (tests/control/test_holds.py)."""
    rm, folder = Rm(), RECORDED / "held" / kind
    rm.more = {f"/{name}": json.loads((folder / f"{name}.json").read_text()) for name in ("scheduler", "apps")}
    rm.more["/scheduler-conf"] = rm.more["/scheduler-conf/version"] = 400
    rm.more["/conf"] = rm.more["/jmx"] = 404
    return rm


def test_a_stuck_queue_of_a_fair_scheduler() -> None:
    findings = [finding for finding in examine(held("fair")) if finding.check == "held"]
    assert {(finding.what.split()[0], finding.result) for finding in findings} == {
        ("root.am", "problem"),
        ("root.most", "note"),
        ("root.runs", "note"),
        ("root.dept.y", "note"),
        ("root.users", "note"),
    }
    (stuck,) = problems(findings)
    assert stuck.what.startswith("root.am waits and gets nothing: ApplicationMasters hold 0 of at most 144 MiB there")
    assert stuck.hint is not None
    assert stuck.hint.startswith("maxAMShare of root.am: set it in the allocation file to 0.36 or more")


def test_a_capacity_scheduler_whose_configuration_is_a_file(tmp_path: Path) -> None:
    """The default. Of a file the RM shows nothing but its queues, which tell the more harmful traps."""
    rm = held("capacity")
    findings = examine(rm)
    assert "HTTP 400" not in " ".join(f"{finding.what} {finding.hint}" for finding in findings)
    by_check = {finding.check: finding for finding in findings}
    assert any("keeps its configuration in a file" in finding.what for finding in findings)
    assert (by_check["user-limit-factor"].result, by_check["am-limit"].result) == ("problem", "note")
    assert "root.factor" in by_check["user-limit-factor"].what
    assert by_check["capacity"].what == "`enforce` writes nothing before this is mended: user-limit-factor"
    assert "maximum-applications" not in by_check
    (tmp_path / "c.xml").write_text(CAPACITY_FILE)
    findings = examine(rm, capacity_file=LocalStore(tmp_path / "c.xml"))
    assert "maximum-applications" in {finding.check for finding in findings}
    assert "keeps its configuration in a file" not in " ".join(finding.what for finding in findings)


def test_every_queue_that_a_text_leaves_out_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The texts name three queues; the others were told nowhere."""

    def told(*options: str) -> str:
        with FakeServer(held("capacity").serve) as server, pytest.raises(SystemExit):
            main(["cluster", "doctor", "--rm", server.url, *options])
        return capsys.readouterr().out

    checks = {row["check"]: row for row in json.loads(told("--json"))["checks"]}
    (row, all_) = (checks["am-limit"], checks["am-limit"]["queues"])
    assert len(all_) > 3
    assert f"{all_[2]} and {len(all_) - 3} more queue" in row["what"]
    assert row["settings"] == [f"yarn.scheduler.capacity.{queue}.maximum-am-resource-percent" for queue in all_]
    text = told()
    assert all_[-1] not in row["what"]
    assert f"--verbose and --json name all {len(all_)} queues" in text
    every = " ".join(told("--verbose").split())
    assert f"queues: {', '.join(all_)}" in every
    assert f"settings: {', '.join(row['settings'])}" in every
    assert "--verbose and --json name" not in every


@pytest.mark.parametrize("creation", ["legacy", "flexible"])
def test_a_template_that_the_rm_does_not_show_is_named(creation: str) -> None:
    """Its limits were left out in silence until the first queue was created from it."""
    rm = held("capacity")

    def unseen() -> list[str]:
        return [finding.what for finding in examine(rm) if "is not shown: its user-limit-factor" in finding.what]

    assert unseen() == []
    queues = rm.more["/scheduler"]["scheduler"]["schedulerInfo"]["queues"]["queue"]
    (parent,) = [queue for queue in queues if queue["queueName"] == "dept"]
    parent |= {"autoCreationEligibility": creation, "queues": {"queue": []}}
    (what,) = unseen()
    assert what.startswith("the template of the queues that root.dept creates is not shown: ")


def test_a_default_that_no_file_shows_is_no_problem(tmp_path: Path) -> None:
    """Since 3.5 scheduling is asynchronous by default: without the file nobody sees whether it switches that off."""
    rm = held("capacity")
    rm.info["clusterInfo"]["resourceManagerVersion"] = "3.5.0"
    found = {finding.check: finding for finding in examine(rm)}
    assert (found["asynchronous"].result, found["asynchronous"].what.split(",")[0]) == (
        "note",
        "it is not shown whether scheduling is asynchronous",
    )
    assert "asynchronous" not in found["capacity"].what
    # Each queue has a part for masters of its own there, and one setting mends one queue.
    assert str(found["am-limit"].hint).endswith("to 1000, and that of the others")
    (tmp_path / "c.xml").write_text(CAPACITY_FILE)
    found = {finding.check: finding for finding in examine(rm, capacity_file=LocalStore(tmp_path / "c.xml"))}
    assert found["asynchronous"].result == "problem"


def test_a_standby_is_told_as_one_and_the_active_rm_is_examined() -> None:
    rm, standby = Rm(), Rm()
    standby.info["clusterInfo"]["haState"] = "STANDBY"
    with FakeServer(rm.serve) as active:

        def passive(connection: socket.socket, request: bytes) -> None:
            path = request.split(b" ")[1].decode()
            if "/info" in path:
                connection.sendall(http(200, standby.info))
            else:
                connection.sendall(http(307, b"This is standby RM.", Location=f"{active.url}{path}"))

        with FakeServer(passive) as server:
            findings = list(doctor.examine_rm(server.url))
        told = [finding for finding in findings if finding.check == "rm"]
        assert [finding.result for finding in told] == ["note", "fine"]
        assert f"answers at {server.url} and is not the active one" in told[0].what
        assert told[1].what.endswith(f"is active at {active.url}")
        assert problems(findings) == []

    def alone(connection: socket.socket, request: bytes) -> None:
        path = request.split(b" ")[1].decode()
        there = b"Can't find any active RM. Will retry in next 2 seconds."
        connection.sendall(http(200, standby.info) if "/info" in path else http(200, there))

    with FakeServer(alone) as server:
        (found,) = problems(doctor.examine_rm(server.url))
    assert (
        "is not the active one (no active ResourceManager (STARTED, STANDBY)), and none that it names is" in found.what
    )


def test_no_rm() -> None:
    (found,) = problems(doctor.examine_rm(f"http://127.0.0.1:{held_port()}"))
    assert found.check == "rm"


def status(answers: Rm, url: str, tmp_path: Path, **changes: Any) -> ClusterStatus:
    info = cluster_info(answers.info, "x")
    base = ClusterStatus(
        backend="local",
        folder=str(tmp_path),
        scheduler_folder=str(tmp_path),
        address=RmAddress.of(url),
        wanted=2,
        rm=Part("rm", "1", 200.0, ":0"),
        parts=[Part("nm1", "2", 100.0, ":1"), Part("nm2", "3", 100.0, ":2")],
        others=[],
        info=info,
        nodes=[],
        problem=None,
        running_s=1.0,
        recorded_id=info.id,
    )
    return replace(base, **changes)


def test_another_rm_answers(tmp_path: Path) -> None:
    rm = Rm()
    (tmp_path / "fair-scheduler.xml").write_text("<allocations/>")
    with FakeServer(rm.serve) as server:
        assert problems(doctor.examine_cluster(status(rm, server.url, tmp_path))) == []
        for other in ({"recorded_id": 5}, {"rm": Part("rm", None, None, ":0")}):
            found = problems(doctor.examine_cluster(status(rm, server.url, tmp_path, **other)))
            assert "right-rm" in [finding.check for finding in found]


class FarPlace(ConfigStore):
    """A file on another host."""

    name = "master:/opt/yarnfair/x/scheduler/fair-scheduler.xml"

    def __init__(self, data: bytes | None) -> None:
        self.data = data

    def read(self) -> bytes:
        if self.data is None:
            raise Unreachable("no connection", where=self.name)
        return self.data

    def _put(self, data: bytes, last: object = None) -> None:
        raise AssertionError("the doctor writes nothing")


def test_a_cluster_on_other_hosts_is_examined_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its allocation file is read where it lies, its size is the nodes' own; this machine's Java and disk are nobody's
    business."""
    rm, folder = Rm(), StateFolder(tmp_path / "state")
    folder.folder.mkdir()
    folder.save(ClusterState("ssh", "mark", ClusterSpec(memory_mb=300), ports={"http": 1}))
    monkeypatch.setenv("PATH", "/nowhere")
    file = FarPlace(b"<allocations/>")
    monkeypatch.setattr(SshCluster, "place", lambda _: file)
    call = ["cluster", "doctor", "--backend", "ssh", "--state", str(folder.folder), "--json"]

    def checks() -> tuple[int, dict[str, str]]:
        with pytest.raises(SystemExit) as stop:
            main(call)
        found = json.loads(capsys.readouterr().out)["checks"]
        return int(stop.value.code or 0), {row["check"]: row["result"] for row in found}

    with FakeServer(rm.serve) as server:
        nodes_ = nodes(rm.nodes, "x")
        home = "/opt/yarnfair/x/scheduler"
        there = status(rm, server.url, tmp_path, backend="ssh", scheduler_folder=home, nodes=nodes_)
        monkeypatch.setattr(SshCluster, "status", lambda _: there)
        names = ("minimum-allocation", "am-share", "parts", "right-rm", "rm", "clock", "nodes")
        assert checks() == (0, dict.fromkeys(names, "fine"))
        for data in (b"<allocations", None):
            file.data = data
            code, results = checks()
            assert (code, results["allocation-file"]) == (1, "problem")


def test_before_up_a_cluster_on_other_hosts_needs_jars_and_ports_here(tools: Path) -> None:
    findings = list(doctor.examine_machine(replace(WANTED, backend="ssh"), tools / "state", running=False))
    assert {f.check: f.result for f in findings} == {"jars": "fine", "ports": "fine"}


def test_jars_are_not_copied_to_other_hosts(tmp_path: Path) -> None:
    (tmp_path / "x.jar").write_text("")
    cluster = SshCluster(StateFolder(tmp_path / "state"))
    with pytest.raises(CallError, match="jars for the ResourceManager on other hosts"):
        cluster.up(ClusterSpec(jars=(str(tmp_path / "x.jar"),)))
    assert not (tmp_path / "state").exists()


def test_an_allocation_file_from_the_future(tmp_path: Path) -> None:
    rm = Rm()
    file = tmp_path / "fair-scheduler.xml"
    file.write_text("<allocations/>")
    os.utime(file, (time.time() + 900, time.time() + 900))
    with FakeServer(rm.serve) as server:
        (found,) = problems(doctor.examine_cluster(status(rm, server.url, tmp_path)))
        assert found.check == "clock"
        file.unlink()
        (found,) = problems(doctor.examine_cluster(status(rm, server.url, tmp_path)))
        assert found.check == "allocation-file"
