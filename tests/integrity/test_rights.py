"""Who may replace programs that containers run, whether a job can run twice, and which jar an RM gets."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import YarnfairError
from harness.clusters import inrm, jars
from harness.clusters.hosts_folder import HostsFolder, _Member
from harness.clusters.shared import ContainerFolder, LocalFolder
from harness.jobs.mapreduce.places import LocalStore
from harness.jobs.replay import ReplayOptions
from harness.jobs.submit import Replayer
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.yarn.errors import Refused, Unreachable


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestFoldersWithPrograms:
    def test_of_this_machine(self, tmp_path: Path) -> None:
        folder = tmp_path / "shared"
        LocalFolder(folder).write({"am.py": b"code"})
        assert (mode(folder), mode(folder / "am.py")) == (0o1777, 0o644)

    def test_of_this_machine_a_link_that_somebody_has_put_there_is_not_written_through(self, tmp_path: Path) -> None:
        folder, victim = tmp_path / "shared", tmp_path / "victim"
        folder.mkdir()
        victim.write_text("before")
        (folder / "am.py").symlink_to(victim)
        LocalFolder(folder).write({"am.py": b"code"})
        assert victim.read_text() == "before"
        assert (folder / "am.py").read_bytes() == b"code"
        assert not (folder / "am.py").is_symlink()

    def test_of_programs(self, tmp_path: Path) -> None:
        LocalStore(tmp_path / "place").write({"code/mapper.py": b""}, ["output"])
        assert {mode(tmp_path / "place" / name) for name in ("code", "output")} == {0o1777}

    def test_of_a_volume_of_containers(self) -> None:
        packed: list[bytes] = []

        class Container:
            def put_archive(self, path: str, data: bytes) -> None:
                packed.append(data)

        ContainerFolder(Container(), "/shared/yarnfair").write({"am.py": b"code"})
        with tarfile.open(fileobj=io.BytesIO(packed[0])) as archive:
            assert {entry.name: entry.mode for entry in archive} == {"yarnfair": 0o1777, "yarnfair/am.py": 0o644}

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
    def test_of_other_hosts_and_a_folder_that_is_another_users_is_refused(self, tmp_path: Path) -> None:
        def folder_at(path: Path) -> HostsFolder:
            folder = HostsFolder([], str(path))
            folder._members.append(_Member(_Shell()))  # type: ignore[arg-type]
            return folder

        folder_at(tmp_path / "own").write({"am.py": b"code"})
        assert mode(tmp_path / "own") == 0o1777
        foreign = tmp_path / "foreign"
        foreign.mkdir()
        os.chown(foreign, 12345, 12345)
        with pytest.raises(YarnfairError):
            folder_at(foreign).write({"am.py": b"code"})
        assert list(foreign.iterdir()) == []


class _Shell:
    """A host that is this machine."""

    name = "here"

    def check(self, command: str, what: str, *, hint: str = "") -> str:
        if os.system(command):
            raise YarnfairError(what, where=self.name, hint=hint)
        return ""

    def put(self, files: Mapping[str, bytes]) -> None:
        for path, content in files.items():
            Path(path).write_bytes(content)


class _Rm:
    """A ResourceManager's REST API whose answers to submissions may get lost; it starts each id once."""

    def __init__(self, lost: int, error: Exception) -> None:
        self.lost, self.error = lost, error
        self.given, self.started = 0, []  # type: int, list[str]

    def new_application(self) -> Any:
        self.given += 1
        return type("New", (), {"id": f"application_1_{self.given:04}"})

    def submit(self, submission: Any, identity: str | None = None) -> str:
        identity = identity or self.new_application().id
        if identity not in self.started:
            self.started.append(identity)
        if self.lost:
            self.lost -= 1
            raise self.error
        return identity


def _replayer(rm: _Rm, folder: Path) -> tuple[Replayer, JobSpec]:
    options = ReplayOptions("localhost:1", 1)
    replayer = Replayer(rm, LocalFolder(folder), options, tag="tag")  # type: ignore[arg-type]
    am = Resource(512, 1)
    return replayer, JobSpec("job", "root.a", "mapreduce", am, (Stage("map", 1, am, Duration("constant", value_s=1)),))


def test_a_job_whose_submission_got_no_answer_is_submitted_under_the_same_id(tmp_path: Path) -> None:
    rm = _Rm(2, Unreachable("no answer"))
    replayer, job = _replayer(rm, tmp_path)
    for _ in range(2):
        with pytest.raises(Unreachable):
            replayer.submit(job)
    assert replayer.submit(job) == "application_1_0001"
    assert rm.started == ["application_1_0001"]
    # Submitted again on purpose, after its end, it is another application.
    assert replayer.submit(job) == "application_1_0002"


def test_a_job_that_was_refused_gets_another_id(tmp_path: Path) -> None:
    rm = _Rm(1, Refused("no such queue", status=400))
    replayer, job = _replayer(rm, tmp_path)
    with pytest.raises(Refused):
        replayer.submit(job)
    assert replayer.submit(job) == "application_1_0002"


def test_another_hadoop_gets_another_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("shutil.which", lambda _: None)
    (tmp_path / "cache").mkdir()
    asked: list[str] = []

    class Target(type(tmp_path)):  # type: ignore[misc]
        def exists(self, **words: Any) -> bool:
            asked.append(self.name)
            return True

    monkeypatch.setattr(jars, "cache_folder", lambda: Target(tmp_path / "cache"))
    for version in ("3.4.2", "3.5.0"):
        lib = tmp_path / version
        lib.mkdir()
        (lib / f"hadoop-yarn-server-resourcemanager-{version}.jar").touch()
        monkeypatch.setenv("HADOOP_LIB", str(lib))
        inrm.jar({"horizon_s": "80"})
        inrm.jar({"horizon_s": "80"})
    assert asked[0] == asked[1] != asked[2] == asked[3]
