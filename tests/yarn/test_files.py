"""Where the allocation file lies: a folder of this machine; places by name."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import CallError, InputError
from harness.base.files import exchange
from harness.yarn.files import FileChanged, LocalStore, Readers
from harness.yarn.sftp import SftpStore
from harness.yarn.stores import WebHdfsStore, open_store
from tests.yarn.owners import GROUP, NEW, OLD, OWNER, as_root, deny_chown, owned, ownership


def test_a_local_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "fair-scheduler.xml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    LocalStore(path).write(NEW, before=OLD)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [item.name for item in tmp_path.iterdir()] == ["fair-scheduler.xml"]


@as_root
def test_owner_and_group_stay_and_the_group_alone_where_the_owner_cannot_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = owned(tmp_path / "f.xml", OWNER, GROUP, 0o640)
    LocalStore(path).write(NEW)
    assert ownership(path) == (OWNER, GROUP, 0o640)
    path = owned(path, 0, GROUP, 0o640)
    deny_chown(monkeypatch, group=True)
    LocalStore(path).write(NEW)
    assert (ownership(path), path.read_bytes()) == ((0, GROUP, 0o640), NEW)


@as_root
@pytest.mark.parametrize(
    ("uid", "gid", "mode", "group", "lost"),
    [
        (0, GROUP, 0o640, False, f"the group {GROUP}"),
        (OWNER, GROUP, 0o600, True, f"its owner {OWNER}"),
        (OWNER, GROUP, 0o640, True, f"its owner {OWNER}"),
        (OWNER, GROUP, 0o644, False, ""),
        (0, GROUP, 0o600, False, ""),
    ],
)
def test_a_file_that_somebody_could_not_read_afterwards_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, gid: int, mode: int, group: bool, lost: str
) -> None:
    path = owned(tmp_path / "f.xml", uid, gid, mode)
    deny_chown(monkeypatch, group=group)
    if lost:
        with pytest.raises(InputError, match=f"{lost} could not read") as caught:
            LocalStore(path).write(NEW)
        assert "chmod o+r" in caught.value.line()
        assert (ownership(path), path.read_bytes()) == ((uid, gid, mode), OLD)
    else:
        LocalStore(path).write(NEW)
        assert path.read_bytes() == NEW
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


def test_who_reads_by_the_group_does_not_need_the_owner() -> None:
    readers = Readers(OWNER, GROUP, 0o640)
    assert readers.lost(7, GROUP, owner_in_group=True) == ""
    assert Readers(0, GROUP, 0o640).lost(7, GROUP) == "", "root reads everything"
    assert readers.lost(7, GROUP) == f"its owner {OWNER}"
    assert readers.lost(OWNER, 7, owner_in_group=True) == f"the group {GROUP}"
    assert Readers(OWNER, GROUP, 0o600).lost(7, GROUP, owner_in_group=True) == f"its owner {OWNER}"


def acl(path: Path) -> list[str]:
    """A file's ACL in words."""
    told = subprocess.run(["getfacl", "-cpE", "--", str(path)], capture_output=True, text=True, check=True).stdout
    return told.split()


@pytest.mark.acl
def test_who_may_read_by_the_acl_alone_may_read_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    path.chmod(0o600)
    subprocess.run(["setfacl", "-m", f"u:{OWNER}:r,g:{GROUP}:rw,m:rw", str(path)], check=True)
    before = acl(path)
    LocalStore(path).write(NEW)
    assert acl(path) == before
    assert f"user:{OWNER}:r--" in before


@pytest.mark.acl
def test_who_could_not_read_by_the_folders_default_acl_cannot_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    before = acl(path)
    subprocess.run(["setfacl", "-d", "-m", f"u:{OWNER}:r", str(tmp_path)], check=True)
    LocalStore(path).write(NEW)
    assert acl(path) == before


def test_an_acl_that_cannot_be_kept_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    monkeypatch.setattr("harness.yarn.files.acl_of", lambda of: b"old" if of == path else None)

    def refused(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(InputError, match="its ACL cannot be kept"):
        LocalStore(path).write(NEW)
    assert path.read_bytes() == OLD
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


@pytest.mark.acl
@pytest.mark.parametrize("before", [None, OLD])
def test_what_people_have_noted_on_the_file_stays(tmp_path: Path, before: bytes | None) -> None:
    """Its extended attributes: a replaced file had none of them any longer."""
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    noted = {"user.owner": b"team a", "user.empty": b""}
    for name, value in noted.items():
        os.setxattr(path, name, value)
    store = LocalStore(path)
    store.write(NEW, before=before)
    assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")} == noted
    assert store.remarks() == []


@pytest.mark.acl
def test_what_is_noted_on_a_file_that_its_owner_may_only_read_stays() -> None:
    """Whose mode keeps from writing may not set the attributes either."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.xml"
        path.write_bytes(OLD)
        os.setxattr(path, "user.note", b"1")
        path.chmod(0o444)
        process = os.fork()
        if not process:
            with contextlib.suppress(BaseException):
                if os.geteuid() == 0:
                    # Root may set them whatever the mode says.
                    os.chown(folder, OWNER, GROUP)
                    os.chown(path, OWNER, GROUP)
                    os.setgroups([])
                    os.setgid(GROUP)
                    os.setuid(OWNER)
                store = LocalStore(path)
                store.write(NEW)
                os._exit(len(store.remarks()))
            os._exit(9)
        assert os.waitpid(process, 0)[1] == 0
        assert (path.read_bytes(), os.getxattr(path, "user.note")) == (NEW, b"1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_an_attribute_that_cannot_be_kept_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel makes of the content, or grants a program, is not the new file's."""
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    old = {"security.ima": b"sum", "security.selinux": b"system_u:object_r:etc_t", "trusted.x": b"1", "user.note": b"2"}
    new: dict[str, bytes] = {"security.selinux": b"system_u:object_r:etc_t"}

    def of(where: Path | int) -> dict[str, bytes]:
        return new if isinstance(where, int) else old

    def set_one(where: Path | int, name: str, value: bytes) -> None:
        if name != "user.note":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        of(where)[name] = value

    monkeypatch.setattr("harness.yarn.files.acl_of", lambda _: None)
    monkeypatch.setattr(os, "listxattr", lambda where: list(of(where)))
    monkeypatch.setattr(os, "getxattr", lambda where, name: of(where)[name])
    monkeypatch.setattr(os, "setxattr", set_one)
    store = LocalStore(path)
    store.write(NEW)
    assert path.read_bytes() == NEW
    assert new == {"security.selinux": b"system_u:object_r:etc_t", "user.note": b"2"}
    (remark,) = store.remarks()
    assert remark == (
        f"{path}: its extended attribute trusted.x is lost, because it cannot be set on the new file: "
        "Operation not permitted"
    )
    assert store.remarks() == []


@pytest.mark.parametrize("before", [None, OLD])
def test_a_hard_link_that_is_cut_is_said_and_the_other_name_keeps_the_content(
    tmp_path: Path, before: bytes | None
) -> None:
    """A backup of hard links would be lost if the file were written in place; a name that is meant to follow is."""
    path, other = tmp_path / "f.xml", tmp_path / "backup.xml"
    path.write_bytes(OLD)
    os.link(path, other)
    store = LocalStore(path)
    store.write(NEW, before=before)
    assert (path.read_bytes(), other.read_bytes()) == (NEW, OLD)
    (remark,) = store.remarks()
    assert remark.startswith(f"{path} had another name (a hard link): it keeps the content of before")
    store.write(OLD)
    assert store.remarks() == []


def test_what_killed_writers_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    others = [".f.xml.swp", ".f.xml.original", ".f.xml.lease", ".other.xml.yarnfair-abc", "f.xml.yarnfair-x"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    process = os.fork()
    if not process:
        # Killed with the new file written and not yet in its place.
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        LocalStore(path).write(NEW)
        os._exit(1)
    os.waitpid(process, 0)
    assert len(list(tmp_path.iterdir())) == len(others) + 2
    assert LocalStore(path).clear() == 1
    assert LocalStore(path).clear() == 0
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([*others, "f.xml"])
    LocalStore(path).beside(".f.xml.lease").remove()
    LocalStore(path).beside(".f.xml.lease").remove()
    assert not (tmp_path / ".f.xml.lease").exists()


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "real" / "file.xml"
    target.parent.mkdir()
    target.write_bytes(OLD)
    link = tmp_path / "link.xml"
    link.symlink_to(target)
    LocalStore(link).write(NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW


def test_a_reader_never_sees_a_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    seen: set[bytes] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(path.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(50):
        LocalStore(path).write(NEW)
        LocalStore(path).write(OLD)
    stop.set()
    thread.join()
    assert seen <= {OLD, NEW}


def test_somebody_elses_change_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(b"theirs")
    with pytest.raises(FileChanged):
        LocalStore(path).write(NEW, before=OLD)
    assert path.read_bytes() == b"theirs"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        LocalStore(path).write(NEW)
    assert path.read_bytes() == OLD
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


def test_a_file_that_is_a_mount_point_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)

    def busy(*_: Any) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(InputError, match="mount the folder"):
        LocalStore(path).write(NEW)


@pytest.mark.parametrize("path", ["no-such-folder/f.xml", "."])
def test_what_cannot_be_read_or_written_is_one_line(tmp_path: Path, path: str) -> None:
    place = LocalStore(tmp_path / path)
    for act in (place.read, lambda: place.write(NEW, before=OLD)):
        with pytest.raises(InputError) as caught:
            act()
        assert "\n" not in caught.value.line()


def test_places_by_name(tmp_path: Path) -> None:
    assert open_store(str(tmp_path / "f")) == LocalStore(tmp_path / "f")
    assert open_store("sftp://yarn@rm.example:2222/etc/f.xml") == SftpStore("rm.example", "/etc/f.xml", 2222, "yarn")
    place = open_store("swebhdfs://nn/conf/f%20x.xml")
    assert isinstance(place, WebHdfsStore)
    assert (place.base, place.path) == ("https://nn:9871", "/conf/f x.xml")
    with_user = open_store("webhdfs://yarn@nn:50070/f")
    assert isinstance(with_user, WebHdfsStore)
    assert (with_user.base, with_user.options.user) == ("http://nn:50070", "yarn")


@pytest.mark.parametrize(
    "text", ["", "ftp://x/f", "sftp://host", "sftp://host/", "sftp:///f", "sftp://u:pw@h/f", "webhdfs://h:x/f", "a\0b"]
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(CallError):
        open_store(text)


def test_what_must_not_be_replaced_any_more_stays(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)

    def over() -> None:
        raise InputError("the lease is over")

    for before in (OLD, None):
        with pytest.raises(InputError, match="the lease is over"):
            LocalStore(path).write(NEW, before=before, still=over)
        assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("f.xml", OLD)]


class Racing(LocalStore):
    """Somebody replaces the file after it was looked at, at the last moment."""

    theirs: tuple[bytes, ...] = ()

    def _put_over(self, data: bytes, before: bytes | None, still: Callable[[], None]) -> None:
        for content in self.theirs:
            other = self.path.with_name("other")
            other.write_bytes(content)
            other.replace(self.path)
        super()._put_over(data, before, still)


def test_an_edit_between_the_look_and_the_rename_is_found_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    Racing(path).write(NEW, before=OLD)
    assert path.read_bytes() == NEW, "nobody was there"

    class Late(Racing):
        theirs = (b"theirs",)

    with pytest.raises(FileChanged, match="somebody else changed"):
        Late(path).write(OLD, before=NEW)
    assert path.read_bytes() == b"theirs"
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


def test_of_two_edits_at_that_moment_the_later_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second comes while the first is put back."""
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    calls: list[object] = []

    def meddling(one: str | Path, other: str | Path) -> bool:
        if len(calls) < 2:
            Path(other).write_bytes(b"first" if not calls else b"second")
        calls.append(other)
        return exchange(one, other)

    monkeypatch.setattr("harness.yarn.files.exchange", meddling)
    with pytest.raises(FileChanged):
        LocalStore(path).write(NEW, before=OLD)
    assert path.read_bytes() == b"second"
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]
