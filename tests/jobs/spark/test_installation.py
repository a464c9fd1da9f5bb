"""Where Spark comes from: a folder that is given, the cache, or an archive of which the needed files are taken."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.jobs.spark import installation

FILES = {
    "deps/jars/spark-yarn_2.13-{v}.jar": b"yarn",
    "deps/jars/spark-sql_2.13-{v}.jar": b"sql",
    "deps/jars/spark-mllib_2.13-{v}.jar": b"ml",
    "lib/pyspark.zip": b"zip",
    "lib/py4j-0.10.9.9-src.zip": b"py4j",
    "deps/data/much.txt": b"not needed",
    "setup.py": b"not needed",
}


def archive(path: Path, version: str, without: str = "") -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, content in FILES.items():
            if without and without in name:
                continue
            entry = tarfile.TarInfo(f"pyspark-{version}/{name.format(v=version)}")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
        evil = tarfile.TarInfo("../deps/jars/spark-sql_evil.jar")
        packed.addfile(evil, io.BytesIO())
    return path


def test_what_is_needed_is_taken_out(tmp_path: Path) -> None:
    installation.unpack(archive(tmp_path / "a.tar.gz", installation.version()), tmp_path / "home")
    found = sorted(
        str(path.relative_to(tmp_path / "home")) for path in (tmp_path / "home").rglob("*") if path.is_file()
    )
    assert len(found) == 5
    assert "python/lib/pyspark.zip" in found
    assert installation.missing(tmp_path / "home") == []


def test_an_archive_without_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the archive has no jars/spark-mllib_\*"):
        installation.unpack(archive(tmp_path / "a.tar.gz", installation.version(), "mllib"), tmp_path / "home")
    with pytest.raises(InputError, match=r"has no jars/spark-yarn_\*-"):
        installation.unpack(archive(tmp_path / "b.tar.gz", "3.0.0"), tmp_path / "other")
    (tmp_path / "c.tar.gz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="no archive that can be read"):
        installation.unpack(tmp_path / "c.tar.gz", tmp_path / "third")


def test_a_folder_that_is_given_is_used_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(installation.GIVEN, str(tmp_path))
    with pytest.raises(InputError, match="YARNFAIR_SPARK has no jars/spark-yarn"):
        installation.find()
    installation.unpack(archive(tmp_path / "a.tar.gz", installation.version()), tmp_path / "home")
    monkeypatch.setenv(installation.GIVEN, str(tmp_path / "home"))
    assert installation.find() == tmp_path / "home"


def test_it_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(installation.GIVEN, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []

    def fetch(home: Path, timeout_s: float) -> None:
        calls.append(home)
        installation.unpack(archive(tmp_path / "a.tar.gz", installation.version()), home)

    monkeypatch.setattr(installation, "_fetch", fetch)
    said: list[str] = []
    assert installation.find(progress=said.append) == installation.find(progress=said.append) == installation.target()
    assert len(calls) == len(said) == 1
    assert installation.version() in said[0]


def test_a_release_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(installation.GIVEN, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # No index is asked: there is none.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(InputError, match="pip did not fetch Spark"):
        installation.find()
    assert not installation.target().exists()
    assert [path.name for path in installation.target().parent.iterdir()] == [".spark.lock"]
