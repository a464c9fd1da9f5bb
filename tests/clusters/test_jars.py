"""Jars by Maven: one mechanism for Hadoop's, for Streaming's and for sets like Hive's; here with a Maven of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.clusters import jars

MAVEN = """#!/bin/sh
for word; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
echo called >> "$CALLS"
mkdir -p "$out"; for name in $MAKES; do : > "$out/$name"; done
"""


@pytest.fixture
def pom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mvn").write_text(MAVEN)
    (tmp_path / "bin" / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("MAKES", "tool-1.2.jar")
    monkeypatch.delenv("HADOOP_LIB", raising=False)
    (tmp_path / "pom.xml").write_text("<project/>")
    return tmp_path / "pom.xml"


def test_a_set_is_resolved_once_for_each_pom(pom: Path, tmp_path: Path) -> None:
    said: list[str] = []
    found = jars.find_set("tools", pom, ("tool-",), progress=said.append)
    assert [path.name for path in found.iterdir()] == ["tool-1.2.jar"]
    assert jars.find_set("tools", pom, ("tool-",), progress=said.append) == found
    assert len(said) == 1
    pom.write_text("<project>another</project>")
    assert jars.find_set("tools", pom, ("tool-",)) != found
    assert (tmp_path / "calls").read_text().count("called") == 2


def test_one_jar_comes_from_the_given_folder_or_by_maven(
    pom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jars.find_one("tool-", pom).name == "tool-1.2.jar"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "tool-9.jar").touch()
    monkeypatch.setenv("HADOOP_LIB", str(tmp_path / "lib"))
    assert jars.find_one("tool-", pom) == tmp_path / "lib" / "tool-9.jar"


def test_what_maven_does_not_give_is_no_set(pom: Path) -> None:
    with pytest.raises(InputError, match="did not resolve"):
        jars.find_set("others", pom, ("other-",))


def test_without_maven_each_says_what_else_helps(pom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for call, hint in (
        (lambda: jars.find(), "set HADOOP_LIB"),
        (lambda: jars.find_one("tool-", pom), r"put tool-\*.jar into HADOOP_LIB"),
        (lambda: jars.find_set("tools", pom, ("tool-",)), "put the jars into .*/tools-"),
    ):
        with pytest.raises(InputError, match=f"no Maven.*{hint}"):
            call()
