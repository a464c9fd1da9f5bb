"""The table of Hadoop's releases against the list of artefacts, and what chooses one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lxml import etree

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters import daemon_site, jars, local, remote_host
from harness.clusters.inventory import Host
from harness.clusters.state import ClusterSpec, StateFolder
from harness.experiments.kind import Target
from harness.experiments.real import cluster as real
from harness.experiments.resolve import load_experiment
from harness.model.data import data_path
from harness.yarn.releases import DEFAULT, RELEASES, release_of

_MAVEN = """#!/bin/sh
echo "$@" >> "$CALLS"
for word; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
mkdir -p "$out"
for name in yarn-server-resourcemanager yarn-server-nodemanager yarn-server-timelineservice \\
  mapreduce-client-shuffle common; do : > "$out/hadoop-$name-1.jar"; done
"""


def test_the_list_of_artefacts_is_the_defaults() -> None:
    root = etree.parse(str(data_path("docker", "pom.xml"))).getroot()
    usual = release_of(None).properties
    assert usual == RELEASES[DEFAULT].properties
    assert {name: root.findtext(f"{{*}}properties/{{*}}{name}") for name in usual} == usual


def test_a_release_that_is_not_there_is_a_wrong_call() -> None:
    with pytest.raises(CallError, match=r"no release 2\.7"):
        release_of("2.7")


def test_a_line_means_its_latest_release() -> None:
    assert release_of("3.5") == RELEASES["3.5.0"]
    assert release_of("3.4") == RELEASES["3.4.3"]
    assert [name for name, release in RELEASES.items() if release.asynchronous] == ["3.5.0"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--backend", "sim", "--hadoop", "3.5"], "an option of a real cluster"),
        (["--backend", "local", "--hadoop", "2.7"], "no release 2.7 of Hadoop"),
        (
            ["--backend", "local", "--hadoop", "3.5", "--rm", "http://rm:8088", "--shared", "/tmp"],
            "a given cluster has a release of its own",
        ),
    ],
)
def test_a_run_says_what_is_wrong_with_its_release(
    more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "tryout-real", "--policy", "fair", "--out", str(tmp_path / "out"), *more])
    assert ended.value.code != 0
    assert words in capsys.readouterr().err


def test_a_run_brings_up_a_cluster_of_its_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[ClusterSpec] = []

    @contextlib.contextmanager
    def own_cluster(backend: str, spec: ClusterSpec, *_: Any, **__: Any) -> Iterator[tuple[None, None]]:
        asked.append(spec)
        yield None, None

    monkeypatch.setattr(real, "own_cluster", own_cluster)
    experiment = load_experiment("tryout-real")
    for version in (None, "3.5"):
        with real.open_cluster(experiment, "local", Target(hadoop=version)):
            pass
    assert [spec.hadoop for spec in asked] == [None, "3.5.0"]


def test_each_release_has_jars_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mvn").write_text(_MAVEN)
    (tmp_path / "bin" / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("HADOOP_LIB", raising=False)
    older, usual = jars.find("3.4.2"), jars.find()
    assert older != usual
    assert usual == jars.find(DEFAULT)
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert "-Dhadoop.version=3.4.2 -Dhadoop.programs.version=3.4.2" in first
    assert f"-Dhadoop.version={DEFAULT}" in second
    monkeypatch.setenv("HADOOP_LIB", str(usual))
    assert jars.find() == usual
    with pytest.raises(InputError, match=r"HADOOP_LIB does not have Hadoop 3\.4\.2"):
        jars.find("3.4.2")


@pytest.mark.parametrize("preemption", [True, False])
def test_preemption_is_switched_by_the_schedulers_own_property(preemption: bool) -> None:
    text = str(preemption).lower()
    capacity = daemon_site.rm_properties(ClusterSpec(scheduler="capacity", preemption=preemption), "/h")
    assert capacity["yarn.resourcemanager.scheduler.monitor.enable"] == text
    fair = daemon_site.rm_properties(ClusterSpec(preemption=preemption), "/h")
    assert fair["yarn.scheduler.fair.preemption"] == text
    # The monitor's policy is the Capacity Scheduler's: with another scheduler the RM would end.
    assert "yarn.resourcemanager.scheduler.monitor.enable" not in fair


def test_scheduling_is_synchronous_unless_a_property_says_otherwise() -> None:
    name = "yarn.scheduler.capacity.schedule-asynchronously.enable"
    assert daemon_site.rm_properties(ClusterSpec(scheduler="capacity"), "/h")[name] == "false"
    # An empty text leaves it to Hadoop, whose default has changed.
    for text, shown in (("", None), ("true", "true")):
        spec = ClusterSpec(scheduler="capacity", properties={name: text, "yarn.acl.enable": ""})
        ports = dict.fromkeys(("http", "client", "admin", "scheduler", "tracker"), 1)
        own = daemon_site.rm_properties(spec, "/h")
        files = daemon_site.site_files(spec, own, rm="rm", ports=ports, home="/h", folder="/f", class_path="")
        root = etree.fromstring(files["yarn-site.xml"].encode())
        found = {item.findtext("name"): item.findtext("value") for item in root.iter("property")}
        assert found.get(name) == shown
        assert not found["yarn.acl.enable"], "it is none of ours"


def java_of(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{number}.0.1\"' >&2\n")
    (folder / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")


@pytest.mark.parametrize(("asked", "lib", "needed"), [(None, None, 17), ("3.4.2", None, 0), (None, "3.4.2", 0)])
def test_a_cluster_needs_the_java_of_its_release(
    asked: str | None, lib: str | None, needed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java 11 runs 3.4.2, by its name or as what HADOOP_LIB has; the default's classes it cannot load."""
    java_of(11, tmp_path, monkeypatch)
    monkeypatch.delenv("HADOOP_LIB", raising=False)
    if lib is not None:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / f"hadoop-common-{lib}.jar").write_text("")
        monkeypatch.setenv("HADOOP_LIB", str(tmp_path / "lib"))

    class Reached(Exception):
        """Java was found good enough."""

    def find(**_: Any) -> Path:
        raise Reached

    monkeypatch.setattr(local.jars, "find", find)
    up = local.LocalCluster(StateFolder(tmp_path / "state")).up
    if needed:
        with pytest.raises(InputError, match=rf"Hadoop {DEFAULT} needs Java {needed}, this machine has 11"):
            up(ClusterSpec(hadoop=asked))
        (found,) = [one for one in local.LocalCluster.examine(running=False) if one.check == "java"]
        assert (found.result, f"Hadoop {DEFAULT} needs {needed}" in found.what) == ("problem", True)
    else:
        with pytest.raises(Reached):
            up(ClusterSpec(hadoop=asked))


@pytest.mark.parametrize(("asked", "runs"), [(None, False), ("3.4.2", True)])
def test_a_host_needs_the_java_of_the_release(asked: str | None, runs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on a host that is reached over SSH, before anything is installed there."""

    class Host11:
        """A host that answers as one with Java 11."""

        name = "h1"

        def __init__(self, _: object) -> None: ...

        def __enter__(self) -> Host11:
            return self

        def __exit__(self, *_: object) -> None: ...

        def run(self, command: str) -> SimpleNamespace:
            assert command == "java -version"
            return SimpleNamespace(err='openjdk version "11.0.2"')

        def check(self, *_: object, **__: object) -> str:
            raise LookupError("its tools are asked for next")

    monkeypatch.setattr(remote_host, "Remote", Host11)
    monkeypatch.delenv("HADOOP_LIB", raising=False)
    host = cast(Host, SimpleNamespace(name="h1", java=None))
    with pytest.raises(
        LookupError if runs else InputError, match="asked" if runs else "needs Java 17, this host has 11"
    ):
        remote_host.examine(host, host, jars.release(asked), lambda _: None)
