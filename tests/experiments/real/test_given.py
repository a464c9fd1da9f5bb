"""A given cluster's allocation file: back after every run, kill -9 and broken connections included; never over others'
changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.experiments.kind import Target
from harness.experiments.real import given as real_given
from harness.experiments.real.abandoned import clean_abandoned
from harness.experiments.real.cluster import open_cluster
from harness.experiments.resolve import load_experiment
from harness.yarn.errors import Unreachable
from harness.yarn.files import ConfigStore, LocalStore
from tests.yarn.fake_server import FakeServer, conf

BEFORE = b'<allocations><queue name="theirs"/></allocations>'
OURS = b"<allocations/>"
KILLED = """
import os, signal, sys
from pathlib import Path
from harness.experiments.real.given import given_file
with given_file(Path(sys.argv[1]), sys.argv[2], print) as place:
    for data in sys.argv[3:]:
        place.write(data.encode())
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs keep their folders."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "yarnfair" / "runs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fair-scheduler.xml"
    path.write_bytes(BEFORE)
    return path


def killed_run(root: Path, file: Path, *written: bytes) -> None:
    """A run that is killed -9 after it has replaced the file."""
    command = [sys.executable, "-c", KILLED, str(root), str(file), *(data.decode() for data in written)]
    assert subprocess.run(command, timeout=300).returncode == -signal.SIGKILL


def folders(root: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in root.iterdir() if path.is_dir())


@contextmanager
def opened(file: Path, tmp_path: Path, said: list[str]) -> Iterator[ConfigStore]:
    """As `yarnfair run --rm` opens it."""
    experiment = load_experiment("ltyarn-small")
    target = Target(
        "http://127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:1", allocations=str(file), shared=str(tmp_path / "shared")
    )
    with open_cluster(experiment, "local", target, said.append) as cluster:
        yield cluster.place


def test_it_is_back_after_a_run(root: Path, file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with opened(file, tmp_path, said) as place:
        place.write(OURS)
        assert file.read_bytes() == OURS
        (kept,) = root.glob("given-*")
        assert (kept / "before.xml").read_bytes() == BEFORE
        assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
        assert clean_abandoned() == [], "it is in use"
        with pytest.raises(InputError, match=f"process {os.getpid()}"), opened(file, tmp_path, said):
            pass
        assert file.read_bytes() == OURS
    assert file.read_bytes() == BEFORE
    assert folders(root) == []
    assert said == []


@pytest.mark.parametrize("by", ["clean_abandoned", "the next run there"])
def test_the_next_run_puts_back_what_a_killed_one_left(root: Path, file: Path, tmp_path: Path, by: str) -> None:
    killed_run(root, file, OURS, b"<allocations> </allocations>")
    assert file.read_bytes() != BEFORE
    said: list[str] = []
    if by == "clean_abandoned":
        assert len(clean_abandoned(said.append)) == 1
        assert said == []
    else:
        with opened(file, tmp_path, said) as place:
            assert place.read() == BEFORE
            place.write(OURS)
        assert "did not end in order" in said[0]
    assert file.read_bytes() == BEFORE
    assert folders(root) == []


@pytest.mark.parametrize("by", ["clean_abandoned", "the next run there"])
def test_what_somebody_has_changed_since_stays(root: Path, file: Path, tmp_path: Path, by: str) -> None:
    killed_run(root, file, OURS)
    changed = b'<allocations><queue name="new"/></allocations>'
    file.write_bytes(changed)
    said: list[str] = []
    if by == "clean_abandoned":
        assert clean_abandoned(said.append) == []
    else:
        with opened(file, tmp_path, said) as place:
            place.write(OURS)
    assert file.read_bytes() == changed
    (words,) = said
    assert "changed by somebody else" in words
    assert Path(words.rpartition(" ")[2]).read_bytes() == BEFORE
    # Said once; and what a later run writes is not taken for the killed one's.
    file.write_bytes(OURS)
    assert clean_abandoned(said.append) == []
    assert (len(said), file.read_bytes()) == (1, OURS)


def test_a_lock_that_cannot_be_had_is_said(root: Path, file: Path) -> None:
    killed_run(root, file, OURS)
    lock = root / ".given.lock"
    lock.unlink()
    lock.mkdir()
    said: list[str] = []
    assert clean_abandoned(said.append) == []
    (words,) = said
    assert "were not looked after: Is a directory" in words
    assert str(root) in words
    assert file.read_bytes() == OURS


def test_a_cluster_that_cannot_be_taken_down_is_said(root: Path) -> None:
    folder = root / "local-4194303-1"
    (folder / "cluster").mkdir(parents=True)
    (folder / "cluster" / "cluster.json").write_text("nonsense")
    said: list[str] = []
    assert clean_abandoned(said.append) == []
    (words,) = said
    assert "a killed run's cluster is not taken down: " in words
    assert f"`yarnfair cluster down --backend local --state {folder / 'cluster'}`" in words
    assert folder.is_dir()


def test_a_change_of_somebody_else_during_the_run_stays(root: Path, file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with opened(file, tmp_path, said) as place:
        place.write(OURS)
        file.write_bytes(b"<allocations>  </allocations>")
    assert file.read_bytes() == b"<allocations>  </allocations>"
    assert "changed by somebody else" in said[0]


def test_a_connection_that_is_down_at_the_end_is_told_of(
    root: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def down(*_: object) -> bytes:
        raise Unreachable("no connection", where="far")

    with monkeypatch.context() as patched, opened(file, tmp_path, said) as place:
        place.write(OURS)
        patched.setattr(LocalStore, "read", down)
    (words,) = said
    assert f"{file} could not be put back" in words
    assert "no connection" in words
    (kept,) = root.glob("given-*/before.xml")
    assert str(kept) in words
    assert file.read_bytes() == OURS
    # While it is down nothing runs there; afterwards the file is back, and not the experiment's taken for theirs.
    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "read", down)
        with pytest.raises(InputError, match="no connection"), opened(file, tmp_path, said):
            pass
    with opened(file, tmp_path, said) as place:
        assert place.read() == BEFORE
    assert file.read_bytes() == BEFORE
    assert folders(root) == []


def test_nothing_is_written_without_a_copy(root: Path, file: Path, tmp_path: Path) -> None:
    root.parent.mkdir(parents=True)
    root.write_text("no folder")
    with pytest.raises(InputError, match="cannot be kept"), opened(file, tmp_path, []):
        pass
    assert file.read_bytes() == BEFORE


def test_another_boots_process_is_gone(root: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number and start time may be somebody's again."""
    with monkeypatch.context() as patched:
        patched.setattr("harness.clusters.processes.boot_id", lambda: "another")
        root.mkdir(parents=True)
        kept = real_given._keep(root, str(file), BEFORE)
        kept.note(OURS)
    file.write_bytes(OURS)
    assert clean_abandoned() == [kept.folder.name]
    assert file.read_bytes() == BEFORE


@pytest.mark.parametrize(("given", "admin"), [(None, 18033), ("127.0.0.1:7", 7)])
def test_the_ports_that_nobody_names_the_rm_tells(root: Path, tmp_path: Path, given: str | None, admin: int) -> None:
    told = {"yarn.resourcemanager.admin.address": "rm:18033", "yarn.resourcemanager.address": "rm:18032"}
    experiment = load_experiment("contended")
    with FakeServer(conf(told)) as rm:
        target = Target(rm=rm.url, admin=given, shared=str(tmp_path / "shared"))
        with open_cluster(experiment, "local", target) as cluster:
            assert (cluster.address.admin.port, cluster.address.client.port) == (admin, 18032)
