"""The table of Hadoop's releases against the list of artefacts, and what chooses one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from harness.base.errors import CallError, InputError
from harness.cli import main
from harness.clusters import daemon_site, jars
from harness.clusters.state import ClusterSpec
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
    new, usual = jars.find("3.5.0"), jars.find()
    assert new != usual
    assert usual == jars.find(DEFAULT)
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert "-Dhadoop.version=3.5.0 -Dhadoop.programs.version=3.4.2" in first
    assert f"-Dhadoop.version={DEFAULT}" in second
    monkeypatch.setenv("HADOOP_LIB", str(usual))
    assert jars.find() == usual
    with pytest.raises(InputError, match=r"HADOOP_LIB does not have Hadoop 3\.5\.0"):
        jars.find("3.5.0")


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
