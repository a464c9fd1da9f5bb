"""docker/ as files, and `up` without a daemon: what is set is handed on, what could not be ended is not forgotten."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from harness.base.errors import InputError
from harness.clusters import compose, daemon_site, jars, local, site
from harness.clusters.compose import SOURCES_LABEL, DockerCluster, image_sources, why_failed
from harness.clusters.daemons import SCHEDULERS
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.model.data import data_path
from harness.yarn.releases import DEFAULT, RELEASES

COMPOSE = data_path("docker", "compose.yaml")
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
SITE = data_path("docker", "conf", "yarn-site.xml")
_CLASS = "yarn.resourcemanager.scheduler.class"
_ATTRIBUTES = "yarn.node-attribute.fs-store.root-dir"


def test_whatever_a_cluster_sets_compose_hands_on(tmp_path: Path) -> None:
    state = ClusterState("docker", "mark", ClusterSpec(), ports={"http": 1, "client": 2, "admin": 3})
    environment = DockerCluster(StateFolder(tmp_path))._environment(state)
    ours = {name for name, value in environment.items() if os.environ.get(name) != value}
    assert "DISK_HEALTH_CHECKER" in ours
    assert ours - set(re.findall(r"\$\{([A-Z_]+)", COMPOSE.read_text())) == set()


def test_whatever_a_site_file_takes_from_the_environment_every_daemon_has() -> None:
    """A variable that a service does not pass on is the default for ever."""
    values = [value for path in SITE.parent.glob("*.xml") for value in site.read(path).values()]
    wanted = set(re.findall(r"\$\{env\.([A-Z_]+)", " ".join(values))) - {"HOSTNAME"}
    assert {"NM_VCORES", "DISK_HEALTH_CHECKER"} <= wanted
    for name in ("rm", "nm", "history", "namenode", "datanode", "hive"):
        assert wanted - set(SERVICES[name]["environment"]) == set(), name


def test_the_images_settings_are_those_of_other_clusters(tmp_path: Path) -> None:
    """A property that a local cluster has and containers lack would be a difference between backends."""
    cluster = LocalCluster(StateFolder(tmp_path))
    ports = dict.fromkeys(["http", "client", "admin", "scheduler", "tracker", "nm1"], 1)
    (tmp_path / "nm1").mkdir()
    cluster._write_site(tmp_path / "nm1", ClusterSpec(), ports, "x", tmp_path / "nm1")
    of_local, of_image = set(site.read(tmp_path / "nm1" / "yarn-site.xml")), site.read(SITE)
    # Containers have an address each, with the usual ports; names and addresses of one host are the others' matter.
    own = {
        *(name for name in of_local if name.endswith(".address")),
        "yarn.scheduler.include-port-in-node-name",
        "yarn.resourcemanager.connect.retry-interval.ms",
        "yarn.nodemanager.delete.debug-delay-sec",
        # A container's file system is its own.
        "yarn.node-attribute.fs-store.root-dir",
    }
    assert of_local - own - set(of_image) == set()
    of_remote = {
        *daemon_site.rm_properties(ClusterSpec(), "/h"),
        *daemon_site.node_properties(ClusterSpec(), "h", "/h"),
    }
    assert of_remote - own - set(of_image) - {name for name in of_remote if name.endswith(".address")} == set()
    for scheduler, kind in ((name, one.java_class) for name, one in SCHEDULERS.items()):
        spec = ClusterSpec(scheduler=scheduler)
        assert daemon_site.rm_properties(spec, "/h")[_CLASS] == kind
        state = ClusterState("docker", "mark", spec, ports={**ports, "client": 2, "admin": 3})
        assert DockerCluster(StateFolder(tmp_path))._environment(state)["SCHEDULER_CLASS"] == kind
    assert of_image[_CLASS] == f"${{env.SCHEDULER_CLASS:-{SCHEDULERS['fair'].java_class}}}"
    assert of_image["yarn.scheduler.maximum-allocation-vcores"] == of_image["yarn.nodemanager.resource.cpu-vcores"]


def test_two_clusters_on_one_host_share_no_folder_of_node_attributes() -> None:
    """By Hadoop's default all ResourceManagers of a user have one: two that begin at once break each other."""
    of_each = [daemon_site.rm_properties(ClusterSpec(), home)[_ATTRIBUTES] for home in ("/opt/one", "/opt/two")]
    assert of_each == ["file:///opt/one/tmp/node-attribute", "file:///opt/two/tmp/node-attribute"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_says_when_it_is_ready(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]


def test_a_history_server_waits_for_the_namenode_where_there_is_one() -> None:
    assert SERVICES["history"]["depends_on"] == {"namenode": {"condition": "service_healthy", "required": False}}


@pytest.mark.parametrize("kind", [LocalCluster, DockerCluster])
def test_up_does_not_forget_what_it_could_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LocalCluster] | type[DockerCluster]
) -> None:
    monkeypatch.setattr(local, "java_program", lambda: "java")
    monkeypatch.setattr(jars, "find", lambda **_: tmp_path)
    monkeypatch.setattr(DockerCluster, "_check_tools", lambda _: None)
    monkeypatch.setattr(DockerCluster, "_status", lambda *_: None)
    monkeypatch.setattr(kind, "_clean", lambda *_: [4711])
    cluster = kind(StateFolder(tmp_path / "state"))
    before = ClusterState("local" if kind is LocalCluster else "docker", "the-old-mark", ClusterSpec())
    with cluster.folder.lock():
        cluster.folder.save(before)
    with pytest.raises(InputError, match=r"an earlier cluster could not be ended: .*4711"):
        cluster.up(ClusterSpec())
    assert cluster.folder.load() == before


def test_a_build_that_fails_says_what_its_step_said_and_what_a_tls_proxy_needs() -> None:
    # As BuildKit prints it where Maven Central's certificate is not trusted.
    told = """#8 CACHED
#11 [rm jars 7/7] RUN mvn -q -B dependency:copy-dependencies
#11 1.617 \x1b[0m\x1b[0m[ERROR] No plugin found for prefix 'dependency' in the current project -> [Help 1]
#11 10.29 [ERROR]
#11 ERROR: executor failed running [/bin/sh -c mvn]: exit code: 1
failed to solve: executor failed running [/bin/sh -c mvn]: exit code: 1
"""
    why, hint = why_failed(told, build=True)
    assert why.startswith("[ERROR] No plugin found for prefix 'dependency'")
    assert hint is not None
    assert str(data_path("docker", "certs")) in hint
    why, _ = why_failed(f"#9 2.0 curl: (60) SSL certificate problem: unable to get local issuer\n{told}", build=True)
    assert why.startswith("curl: (60) SSL certificate problem")
    assert why_failed("", build=True)[0] == "no reason given"
    taken = "Error response from daemon: port is already allocated"
    assert why_failed(taken, build=False) == (taken, "free the port or give another")


class Docker:
    """A Docker daemon with images and one running ResourceManager."""

    def __init__(self, label: str | None, running: str = "") -> None:
        self.image = SimpleNamespace(id="sha256:1", tags=[IMAGE], labels={SOURCES_LABEL: label} if label else {})
        self.running = SimpleNamespace(
            name="x-rm-1",
            labels={"com.docker.compose.service": "rm"},
            image=SimpleNamespace(id="sha256:2", labels={SOURCES_LABEL: running}),
        )
        self.images = SimpleNamespace(list=lambda name: [self.image])
        self.containers = SimpleNamespace(list=lambda **_: [self.running])


#: As Compose reads it where nothing is set.
IMAGE: str = yaml.safe_load(COMPOSE.read_text())["x-image"]["image"].replace(f"${{HADOOP_VERSION:-{DEFAULT}}}", DEFAULT)


def on(docker: Docker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[DockerCluster, ClusterState, list[str]]:
    @contextlib.contextmanager
    def client() -> Iterator[Docker]:
        yield docker

    monkeypatch.setattr(compose, "docker_client", client)
    called: list[str] = []
    monkeypatch.setattr(DockerCluster, "_compose", lambda self, state, *given, **_: called.append(given[0]))
    return DockerCluster(StateFolder(folder)), ClusterState("docker", "mark", ClusterSpec()), called


@pytest.mark.parametrize(("label", "builds"), [("", True), ("of other files", True), (None, True), ("same", False)])
def test_an_image_of_other_files_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str | None, builds: bool
) -> None:
    label = image_sources() if label == "same" else label
    cluster, state, called = on(Docker(label), tmp_path, monkeypatch)
    cluster._build(state)
    assert called == (["build"] if builds else [])
    assert (
        cluster._environment(ClusterState("docker", "m", ClusterSpec(), ports={"http": 1, "client": 2, "admin": 3}))[
            "YARNFAIR_SOURCES"
        ]
        == image_sources()
    )


@pytest.mark.parametrize("version", [None, *RELEASES])
def test_each_release_has_an_image_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    # There is one of the default alone, built from the same files.
    cluster, state, called = on(Docker(image_sources()), tmp_path, monkeypatch)
    ports = {"http": 1, "client": 2, "admin": 3}
    state = replace(state, spec=ClusterSpec(hadoop=version), ports=ports)
    cluster._build(state)
    assert called == ([] if version in (None, DEFAULT) else ["build"])
    environment = cluster._environment(state)
    release = RELEASES[version or DEFAULT]
    assert environment["HADOOP_VERSION"] == release.version
    assert environment["HADOOP_PROGRAMS_VERSION"] == release.programs


def test_compose_and_the_dockerfile_hand_the_release_to_maven() -> None:
    image = yaml.safe_load(COMPOSE.read_text())["x-image"]
    usual = RELEASES[DEFAULT]
    wanted = {"HADOOP_VERSION": usual.version, "HADOOP_PROGRAMS_VERSION": usual.programs}
    assert image["build"]["args"] == {name: f"${{{name}:-{value}}}" for name, value in wanted.items()}
    assert image["image"] == f"yarnfair/yarn:${{HADOOP_VERSION:-{usual.version}}}"
    lines = (COMPOSE.parent / "Dockerfile").read_text().splitlines()
    for name, value in wanted.items():
        assert f"ARG {name}={value}" in lines
    (maven,) = [line for line in lines if "-Dhadoop.version" in line]
    assert "-Dhadoop.version=$HADOOP_VERSION -Dhadoop.programs.version=$HADOOP_PROGRAMS_VERSION" in maven


def test_a_cluster_that_runs_another_image_is_refused_and_its_image_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, state, _ = on(Docker(None, running="of other files"), tmp_path, monkeypatch)
    with pytest.raises(InputError, match="built from other files"):
        cluster._check_image(state)
    cluster, state, _ = on(Docker(None, running=image_sources()), tmp_path, monkeypatch)
    cluster._check_image(state)
    monkeypatch.setattr(cluster, "known", lambda: state)
    assert cluster.software() == {"image": "sha256:2", "image_sources": image_sources()}


def test_the_images_hash_is_of_what_it_is_built_from(tmp_path: Path) -> None:
    copy = tmp_path / "docker"
    shutil.copytree(COMPOSE.parent, copy)
    before = image_sources(copy)
    assert before == image_sources()
    (copy / "certs" / "site.crt").write_text("x")
    assert image_sources(copy) == before
    for name in ("Dockerfile", "pom.xml", "entrypoint.sh", "conf/yarn-site.xml"):
        text = (copy / name).read_text()
        (copy / name).write_text(text + "\n")
        assert image_sources(copy) != before, name
        (copy / name).write_text(text)
    copied = re.findall(r"^COPY (?!--from)(?:--chmod=755 )?(\S+)", (copy / "Dockerfile").read_text(), re.M)
    own = {name.strip("/") for name in copied} - {"certs", "hive-pom.xml", "tez-pom.xml", "hive/conf", "hive/hive.sh"}
    assert own == {"pom.xml", "conf", "scheduler", "entrypoint.sh"}, "a new file of the image is part of its hash"
