"""The controller on ResourceManagers of other releases of Hadoop, with either scheduler: steered, and given back.

One older release is tried with each change (the default's is everywhere else), the others in `make test-long`. Of a
release that is not in the product's table the jars are the daemons' alone: some other artefacts cannot be had.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from harness.clusters import jars
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.traces.recording import record_rm
from harness.yarn.capacity.source import StoreSource
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.releases import RELEASES
from harness.yarn.rmclient import RmClient
from tests.cluster import test_live_capacity as capacity
from tests.cluster.enforcing import until
from tests.cluster.readings import read_only
from tests.cluster.test_live_capacity import MENDED, P, Rm

pytestmark = [pytest.mark.live, pytest.mark.java, pytest.mark.xdist_group("live-versions")]

#: Release -> the kinds of capacity that it has.
VERSIONS = {
    "3.2.4": ("percent", "absolute"),
    "3.3.6": ("percent", "absolute"),
    "3.4.1": ("weight", "percent", "absolute"),
    "3.4.2": ("weight", "percent", "absolute"),
    "3.5.0": ("weight", "percent", "absolute"),
}
#: The release that is no long test, and how its Capacity Scheduler is configured there.
OLDER, OLDER_CAPACITY = "3.4.2", ("file", "weight")
STORE = "yarn.scheduler.configuration.store"
#: The kind -> the capacities of root.a, root.b, root.g; root.g.x and root.g.y.
CAPACITIES = {
    "weight": ("1w", "2w", "1w", "30", "70"),
    "percent": ("25", "50", "25", "30", "70"),
    "absolute": (
        *("[memory=1024,vcores=4]", "[memory=2048,vcores=8]", "[memory=1024,vcores=4]"),
        *("[memory=512,vcores=2]", "[memory=512,vcores=2]"),
    ),
}
FAIR = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="a"><weight>1.0</weight></queue>
  <!-- the administrator's -->
  <queue name="b"><weight>2.0</weight></queue>
</allocations>
"""


def libraries(version: str, tmp_path: Path) -> Path:
    """The jars of a release: those of `--hadoop`, or the daemons'."""
    if version in RELEASES:
        return jars.find(version)
    names = ("yarn-server-resourcemanager", "yarn-server-nodemanager", "yarn-server-timelineservice")
    names = (*names, "mapreduce-client-shuffle")
    rows = "".join(
        f"<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for name in names
    )
    pom = tmp_path / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>yarnfair</groupId><artifactId>hadoop-jars</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{rows}</dependencies></project>"
    )
    return jars.find_set(f"hadoop-{version}", pom, tuple(f"hadoop-{name}-{version}" for name in names))


@pytest.fixture
def release(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    version: str = request.param
    monkeypatch.setenv("HADOOP_LIB", str(libraries(version, tmp_path)))
    return version


def described(kind: str, no_limit: str) -> str:
    """capacity-scheduler.xml with capacities of a kind, without traps where that factor is no limit of users."""
    paths = ("root.a", "root.b", "root.g", "root.g.x", "root.g.y")
    said = {
        f"{P}root.queues": "a,b,g",
        f"{P}root.g.queues": "x,y",
        f"{P}maximum-am-resource-percent": "10",
        # The default until Hadoop 3.5.
        f"{P}schedule-asynchronously.enable": "false",
        **{f"{P}{path}.capacity": text for path, text in zip(paths, CAPACITIES[kind], strict=True)},
        **{name: no_limit if name.endswith("-factor") else value for name, value in MENDED.items()},
    }
    rows = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n" for name, value in said.items()
    )
    return f"<configuration>\n  <!-- the administrator's -->\n{rows}</configuration>\n"


def no_limit(release: str) -> str:
    """The user-limit-factor that holds nobody back."""
    return "-1" if release >= "3.4" else "1000"


def guaranteed(rm: Rm) -> dict[str, int]:
    """What the RM holds each queue to be entitled to, MiB."""
    return {path: queue.steady_share.memory_mb for path, queue in rm.client.rest.scheduler().queues.items()}


def settles(rm: Rm, more: dict[str, object], busy: str = "root.b") -> None:
    """Under load in root.b (submitted to as `busy`), root.a is given more than it had; a release gives all back.

    What was used is then recorded, stated and assessed.
    """
    before = guaranteed(rm)
    with rm.controller(**more) as controller:
        first = controller.tick()
        assert {alarm.kind for alarm in first.alarms} <= {"note"}, first.alarms
        ids = rm.submit(busy, 8, 30)

        def steered() -> bool:
            report = controller.tick()
            assert {alarm.kind for alarm in report.alarms} <= {"note"}, report.alarms
            return guaranteed(rm)["root.a"] > 1.05 * before["root.a"]

        until(steered, "root.a is given more than it had", timeout_s=60, every_s=1.0)
        controller.release()
    # An RM that nothing is read back from may take the file a moment later.
    until(lambda: guaranteed(rm) == pytest.approx(before, abs=1), "all is as it was", timeout_s=30)
    for identity in ids:
        rm.client.rest.kill(identity)
    until(lambda: all(rm.client.rest.app(identity).final for identity in ids), "all have ended")
    read_only(rm.client, ["--rm", rm.client.rest.http.current], rm.folder)


def once_or_long(release: str, *more: str) -> Any:
    """A row of parameters, which is a long test unless it is the one for each change."""
    short = release == OLDER and more in ((), OLDER_CAPACITY)
    return pytest.param(release, *more, marks=() if short else pytest.mark.long)


@pytest.mark.parametrize(
    ("release", "store", "kind"),
    [
        once_or_long(release, store, kind)
        for release, kinds in VERSIONS.items()
        for store in ("file", "memory")
        for kind in kinds
    ],
    indirect=["release"],
)
def test_the_capacity_scheduler(
    release: str, store: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = described(kind, no_limit(release))
    monkeypatch.setattr(capacity, "FILE", file)
    properties = {} if store == "file" else {f"{STORE}.class": store}
    with contextlib.contextmanager(capacity.cluster)(tmp_path, **properties) as rm:
        assert rm.client.rest.info().version == release
        # Before 3.4 an application is shown under the name that it was submitted under; 3.2 knows no paths.
        busy = "root.b" if release >= "3.4" else "b"
        settles(rm, {"capacity_file": str(rm.file)} if store == "file" else {}, busy)
        assert {job.queue for job in record_rm(rm.client).jobs} == {"root.b"}
        assert rm.file.read_text() == file


@pytest.mark.long
@pytest.mark.parametrize("release", ["3.3.6"], indirect=True)
def test_before_3_4_a_factor_of_minus_1_refuses_every_application(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "FILE", described("percent", "-1"))
    with contextlib.contextmanager(capacity.cluster)(tmp_path, **{f"{STORE}.class": "memory"}) as rm:
        (refused,) = rm.submit("root.a", 1, 1)
        until(lambda: rm.client.rest.app(refused).final_status == "FAILED", "refused")
        assert "cannot accept submission" in rm.client.rest.app(refused).diagnostics
        with rm.controller() as controller:
            report = controller.tick()
        assert not report.wrote
        (said,) = [alarm.text for alarm in report.alarms if alarm.kind == "trap"]
        assert "refuses every application" in said
        assert f"set {P}root.a.user-limit-factor to {no_limit(release)}" in said
        source = StoreSource(rm.client.rest.http)
        source.write({name: no_limit(release) for name in MENDED if name.endswith("-factor")}, source.read())
        (taken,) = rm.submit("root.a", 1, 1)
        until(lambda: rm.client.rest.app(taken).state in ("ACCEPTED", "RUNNING", "FINISHED"), "taken")
        with rm.controller() as controller:
            assert "trap" not in {alarm.kind for alarm in controller.tick().alarms}


@pytest.mark.parametrize("release", [once_or_long(release) for release in VERSIONS], indirect=True)
def test_the_fair_scheduler(release: str, tmp_path: Path) -> None:
    (tmp_path / "queues.xml").write_text(FAIR)
    spec = ClusterSpec(nodes=1, memory_mb=4096, vcores=16, allocations=str(tmp_path / "queues.xml"))
    cluster = LocalCluster(StateFolder(tmp_path / "state"))
    try:
        status = cluster.up(spec, timeout_s=300)
        with RmClient([status.address]) as client:
            assert client.rest.info().version == release
            rm = Rm(client, Path(status.scheduler_folder) / "fair-scheduler.xml", tmp_path)
            config: dict[str, object] = {"allocation_file": str(rm.file)}
            if release < "3.4":
                with rm.controller(**config) as controller:
                    report = controller.tick()
                (trap,) = [alarm.text for alarm in report.alarms if alarm.kind == "trap"]
                assert (report.wrote, trap.split(":")[0]) == (False, "read-back")
                config["read_back"] = False
            settles(rm, config)
            assert rm.file.read_text() == FAIR
            assert parse_allocations(rm.file.read_bytes())
    finally:
        assert cluster.down() == []
