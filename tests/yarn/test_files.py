"""Where the allocation file lies: a folder, SFTP (paramiko's own server), WebHDFS (a server that redirects)."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import paramiko
import pytest

from harness.base.errors import CallError, InputError, YarnfairError
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import FileChanged, LocalPlace, Readers
from harness.yarn.http import HttpOptions
from harness.yarn.places import WebHdfsPlace, open_place
from harness.yarn.sftp import SftpPlace
from tests.yarn.fake_server import FakeServer, http

OLD, NEW = b"<allocations/>\n", b"<allocations>\n</allocations>\n" * 5000


def test_a_local_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "fair-scheduler.xml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    LocalPlace(path).write(NEW, before=OLD)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [item.name for item in tmp_path.iterdir()] == ["fair-scheduler.xml"]


OWNER, GROUP = 41234, 41235
#: Only root can make a file that belongs to others.
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes a file of another owner")


def deny_chown(monkeypatch: pytest.MonkeyPatch, *, group: bool) -> None:
    """From now on this process sets no owner, and a group only if `group`: as one that is not root."""
    fchown, chown = os.fchown, os.chown

    def allowed(uid: int, gid: int) -> None:
        if uid not in (-1, os.geteuid()) or not group:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def by_handle(handle: int, uid: int, gid: int) -> None:
        allowed(uid, gid)
        fchown(handle, uid, gid)

    def by_path(path: Any, uid: int, gid: int) -> None:
        allowed(uid, gid)
        chown(path, uid, gid)

    monkeypatch.setattr(os, "fchown", by_handle)
    monkeypatch.setattr(os, "chown", by_path)


def owned(path: Path, uid: int, gid: int, mode: int) -> Path:
    path.write_bytes(OLD)
    os.chown(path, uid, gid)
    path.chmod(mode)
    return path


def ownership(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@as_root
def test_owner_and_group_stay_and_the_group_alone_where_the_owner_cannot_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = owned(tmp_path / "f.xml", OWNER, GROUP, 0o640)
    LocalPlace(path).write(NEW)
    assert ownership(path) == (OWNER, GROUP, 0o640)
    path = owned(path, 0, GROUP, 0o640)
    deny_chown(monkeypatch, group=True)
    LocalPlace(path).write(NEW)
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
            LocalPlace(path).write(NEW)
        assert "chmod o+r" in caught.value.line()
        assert (ownership(path), path.read_bytes()) == ((uid, gid, mode), OLD)
    else:
        LocalPlace(path).write(NEW)
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
    LocalPlace(path).write(NEW)
    assert acl(path) == before
    assert f"user:{OWNER}:r--" in before


@pytest.mark.acl
def test_who_could_not_read_by_the_folders_default_acl_cannot_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    before = acl(path)
    subprocess.run(["setfacl", "-d", "-m", f"u:{OWNER}:r", str(tmp_path)], check=True)
    LocalPlace(path).write(NEW)
    assert acl(path) == before


def test_an_acl_that_cannot_be_kept_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)
    monkeypatch.setattr("harness.yarn.files.acl_of", lambda of: b"old" if of == path else None)

    def refused(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(InputError, match="its ACL cannot be kept"):
        LocalPlace(path).write(NEW)
    assert path.read_bytes() == OLD
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


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
        LocalPlace(path).write(NEW)
        os._exit(1)
    os.waitpid(process, 0)
    assert len(list(tmp_path.iterdir())) == len(others) + 2
    assert LocalPlace(path).clear() == 1
    assert LocalPlace(path).clear() == 0
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([*others, "f.xml"])
    LocalPlace(path).beside(".f.xml.lease").remove()
    LocalPlace(path).beside(".f.xml.lease").remove()
    assert not (tmp_path / ".f.xml.lease").exists()


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "real" / "file.xml"
    target.parent.mkdir()
    target.write_bytes(OLD)
    link = tmp_path / "link.xml"
    link.symlink_to(target)
    LocalPlace(link).write(NEW)
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
        LocalPlace(path).write(NEW)
        LocalPlace(path).write(OLD)
    stop.set()
    thread.join()
    assert seen <= {OLD, NEW}


def test_somebody_elses_change_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(b"theirs")
    with pytest.raises(FileChanged):
        LocalPlace(path).write(NEW, before=OLD)
    assert path.read_bytes() == b"theirs"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        LocalPlace(path).write(NEW)
    assert path.read_bytes() == OLD
    assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


def test_a_file_that_is_a_mount_point_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(OLD)

    def busy(*_: Any) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(InputError, match="mount the folder"):
        LocalPlace(path).write(NEW)


@pytest.mark.parametrize("path", ["no-such-folder/f.xml", "."])
def test_what_cannot_be_read_or_written_is_one_line(tmp_path: Path, path: str) -> None:
    place = LocalPlace(tmp_path / path)
    for act in (place.read, lambda: place.write(NEW, before=OLD)):
        with pytest.raises(InputError) as caught:
            act()
        assert "\n" not in caught.value.line()


class Folder(paramiko.SFTPServerInterface):
    """Serves the folder in `root`, as OpenSSH's server does as far as the client needs it."""

    root: Path
    full = False

    def _path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> Any:
        try:
            fd = os.open(self._path(path), flags, 0o666)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        handle = paramiko.SFTPHandle(flags)
        mode = "wb" if flags & os.O_WRONLY else "rb"
        handle.readfile = handle.writefile = os.fdopen(fd, mode)  # type: ignore[attr-defined]
        handle.stat = lambda: self.stat(path)  # type: ignore[method-assign]
        if Folder.full and "w" in mode:
            handle.write = lambda offset, data: paramiko.SFTP_OK  # type: ignore[method-assign]
        return handle

    def stat(self, path: str) -> Any:
        try:
            return paramiko.SFTPAttributes.from_stat(self._path(path).stat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    def chattr(self, path: str, attr: paramiko.SFTPAttributes) -> int:
        if attr.st_mode is not None:
            os.chmod(self._path(path), attr.st_mode)
        if attr.st_uid is not None and attr.st_gid is not None:
            try:
                os.chown(self._path(path), attr.st_uid, attr.st_gid)
            except PermissionError as error:
                return paramiko.SFTPServer.convert_errno(error.errno or 0)
        return paramiko.SFTP_OK

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        os.replace(self._path(oldpath), self._path(newpath))
        return paramiko.SFTP_OK

    def remove(self, path: str) -> int:
        self._path(path).unlink()
        return paramiko.SFTP_OK


class OneKey(paramiko.ServerInterface):
    def __init__(self, key: paramiko.PKey) -> None:
        self._key = key

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        good = username == "yarn" and key.asbytes() == self._key.asbytes()
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED


@pytest.fixture
def sftp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SftpPlace]:
    """An SFTP server of the loopback whose host key is known, with the file /etc/f.xml."""
    monkeypatch.setenv("HOME", str(tmp_path))
    host_key, user_key = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    user_key.write_private_key_file(str(tmp_path / "key"))
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "f.xml").write_bytes(OLD)
    Folder.root, Folder.full = root, False
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    port = listener.getsockname()[1]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {host_key.get_name()} {host_key.get_base64()}\n")
    stop = threading.Event()
    transports: list[paramiko.Transport] = []

    def serve() -> None:
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            transport = paramiko.Transport(connection)
            transport.add_server_key(host_key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Folder)
            transports.append(transport)
            try:
                transport.start_server(server=OneKey(user_key))
            except (paramiko.SSHException, EOFError, OSError):
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield SftpPlace(
        "127.0.0.1",
        "/etc/f.xml",
        port,
        "yarn",
        key_file=str(tmp_path / "key"),
        known_hosts=str(tmp_path / "known"),
        timeout_s=10,
    )
    stop.set()
    thread.join(timeout=10)
    for transport in transports:
        transport.close()
        transport.join(timeout=10)
    listener.close()


def test_over_sftp_the_file_is_replaced_and_keeps_its_mode(sftp: SftpPlace) -> None:
    path = Folder.root / "etc" / "f.xml"
    path.chmod(0o640)
    assert sftp.read() == OLD
    sftp.write(NEW, before=OLD)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(FileChanged):
        sftp.write(OLD, before=OLD)
    assert [item.name for item in path.parent.iterdir()] == ["f.xml"]


@as_root
def test_over_sftp_owner_and_group_stay_or_the_file_is_not_replaced(
    sftp: SftpPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = owned(Folder.root / "etc" / "f.xml", OWNER, GROUP, 0o640)
    sftp.write(NEW)
    assert (ownership(path), path.read_bytes()) == ((OWNER, GROUP, 0o640), NEW)
    owned(path, 0, GROUP, 0o640)
    with monkeypatch.context() as patch:
        deny_chown(patch, group=True)
        sftp.write(NEW)
    assert (ownership(path), path.read_bytes()) == ((0, GROUP, 0o640), NEW)
    for uid, lost in ((0, f"the group {GROUP}"), (OWNER, f"the group {GROUP}")):
        owned(path, uid, GROUP, 0o640)
        with monkeypatch.context() as patch:
            deny_chown(patch, group=False)
            with pytest.raises(InputError, match=f"{lost} could not read"):
                sftp.write(NEW)
        assert (ownership(path), path.read_bytes()) == ((uid, GROUP, 0o640), OLD)
    assert [item.name for item in path.parent.iterdir()] == ["f.xml"]


def test_over_sftp_a_symbolic_link_stays_one(sftp: SftpPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    # As OpenSSH's server does, whose real path has no links in it.
    real = lambda _, path: "/etc/f.xml" if path == "/etc/link.xml" else path  # noqa: E731
    monkeypatch.setattr(Folder, "canonicalize", real)
    (Folder.root / "etc" / "link.xml").symlink_to("f.xml")
    replace(sftp, path="/etc/link.xml").write(NEW, before=OLD)
    assert (Folder.root / "etc" / "link.xml").is_symlink()
    assert (Folder.root / "etc" / "f.xml").read_bytes() == NEW


def test_over_sftp_an_incomplete_copy_is_not_renamed(sftp: SftpPlace) -> None:
    Folder.full = True
    with pytest.raises(InputError, match="incomplete"):
        sftp.write(NEW)
    assert [(item.name, item.read_bytes()) for item in (Folder.root / "etc").iterdir()] == [("f.xml", OLD)]


def test_over_sftp_a_missing_file_or_folder_is_one_line(sftp: SftpPlace) -> None:
    with pytest.raises(InputError, match="No such file"):
        replace(sftp, path="/etc/none.xml").read()
    with pytest.raises(InputError, match="No such file"):
        replace(sftp, path="/none/f.xml").write(NEW)


def test_over_sftp_strangers_are_refused(sftp: SftpPlace, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(Unreachable, match="known_hosts"):
        replace(sftp, known_hosts=str(tmp_path / "empty")).read()
    with pytest.raises(Refused, match="not let in"):
        replace(sftp, user="root").read()
    with pytest.raises(InputError, match="no usable key"):
        replace(sftp, key_file=str(tmp_path / "empty")).read()
    other = paramiko.ECDSAKey.generate()
    (tmp_path / "wrong").write_text(f"[127.0.0.1]:{sftp.port} {other.get_name()} {other.get_base64()}\n")
    with pytest.raises(Refused, match="host key"):
        replace(sftp, known_hosts=str(tmp_path / "wrong")).read()


#: A program that leads its standard input and output to a host and port; `ssh` below is called as OpenSSH's is.
RELAY = """#!/bin/sh
exec {python} -c '
import os, select, socket, sys
link = socket.create_connection(tuple(sys.argv[1:3]))
while True:
    for end in select.select([0, link], [], [])[0]:
        data = os.read(0, 65536) if end == 0 else link.recv(65536)
        if not data:
            sys.exit()
        link.sendall(data) if end == 0 else os.write(1, data)
' {target}
"""


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def ssh_config(home: Path, text: str) -> None:
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh" / "config").write_text(text)


def test_over_sftp_through_a_proxy_command(sftp: SftpPlace, tmp_path: Path) -> None:
    relay = executable(tmp_path / "relay", RELAY.format(python=sys.executable, target='"$1" "$2"'))
    # Nobody answers at the port of the file: the one that the place names counts, for %p too.
    ssh_config(tmp_path, f"Host rm1\n HostName 127.0.0.1\n Port 1\n User nobody\n ProxyCommand {relay} %h %p\n")
    through = replace(sftp, host="rm1")
    through.write(NEW, before=OLD)
    assert sftp.read() == NEW
    ssh_config(tmp_path, "Host rm1\n ProxyCommand echo no way there >&2\n")
    with pytest.raises(Unreachable, match="its proxy says: no way there"):
        through.read()


def test_over_sftp_through_other_hosts(sftp: SftpPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = tmp_path / "call"
    text = RELAY.format(python=sys.executable, target=f"127.0.0.1 {sftp.port}")
    executable(tmp_path / "ssh", text.replace("exec ", f'echo "$@" >{call}; exec '))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ssh_config(tmp_path, "Host rm1\n HostName 127.0.0.1\n ProxyJump me@gate:2200\n")
    assert replace(sftp, host="rm1").read() == OLD
    assert call.read_text().split()[-4:] == ["-W", f"127.0.0.1:{sftp.port}", "--", "ssh://me@gate:2200"]


def test_over_sftp_nobody_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = SftpPlace("127.0.0.1", "/f", probe.getsockname()[1], "yarn", timeout_s=2)
        with pytest.raises(Unreachable) as caught:
            place.read()
    assert "\n" not in caught.value.line()


def test_over_webhdfs_data_goes_to_the_datanode_and_the_rename_replaces() -> None:
    told = http(200, {"FileStatus": {"pathSuffix": "", "type": "FILE", "length": 3, "permission": "640"}})
    with FakeServer(http(201), http(200, NEW)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        with FakeServer(told, to_data, http(200), to_data) as name:
            place = WebHdfsPlace(name.url, "/conf/f x.xml", HttpOptions(user="yarn"))
            place.write(NEW)
        assert data.requests[0].endswith(NEW)
        assert not any(NEW in request for request in name.requests), "the NameNode must not get the data"
        create, rename = name.lines()[1:3]
        assert "op=CREATE" in create
        assert "permission=640" in create
        assert create.startswith("PUT /webhdfs/v1/conf/.f%20x.xml.")
        assert "op=RENAME" in rename
        assert "renameoptions=OVERWRITE" in rename
        assert "destination=%2Fconf%2Ff+x.xml" in rename
        assert all("user.name=yarn" in line for line in name.lines())


def test_over_webhdfs_a_failed_rename_takes_the_copy_away() -> None:
    missing = {"RemoteException": {"exception": "FileNotFoundException", "message": "File does not exist: /f"}}
    denied = {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied"}}
    with FakeServer(http(201)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        replies = (http(404, missing), to_data, http(403, denied), http(200, {"boolean": True}))
        with FakeServer(*replies) as name, pytest.raises(Refused, match="Permission denied") as caught:
            WebHdfsPlace(name.url, "/f").write(NEW)
        assert caught.value.exception == "AccessControlException"
        assert name.lines()[-1].startswith("DELETE /webhdfs/v1/.f.")


def hdfs_status(owner: str, group: str, permission: str, *, acl: bool = False) -> bytes:
    told = {"pathSuffix": "", "type": "FILE", "length": 3, "permission": permission, "owner": owner, "group": group}
    return http(200, {"FileStatus": {**told, "aclBit": True} if acl else told})


def test_over_webhdfs_owner_group_and_acl_stay() -> None:
    entries = {"AclStatus": {"entries": ["user:carla:r--", "group::r-x"], "owner": "yarn", "group": "hadoop"}}
    with FakeServer(http(201), http(200, NEW)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        old, new = hdfs_status("yarn", "hadoop", "640", acl=True), hdfs_status("me", "me", "640")
        replies = (old, to_data, new, http(200), http(200), http(200, entries), http(200), old, http(200), to_data)
        with FakeServer(*replies) as name:
            WebHdfsPlace(name.url, "/f").write(NEW)
            asked = [line.split("op=")[1].split()[0] for line in name.lines()]
    assert asked[2:7] == [
        "GETFILESTATUS",
        "SETOWNER&owner=yarn&group=hadoop",
        "SETOWNER&group=hadoop",
        "GETACLSTATUS",
        "SETACL&aclspec=user%3A%3Arw-%2Cuser%3Acarla%3Ar--%2Cgroup%3A%3Ar-x%2Cmask%3A%3Ar--%2Cother%3A%3A---",
    ]
    assert asked[8].startswith("RENAME")


def test_over_webhdfs_a_file_that_its_group_could_not_read_afterwards_is_not_replaced() -> None:
    denied = http(403, {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied"}})
    with FakeServer(http(201)) as data:
        to_data = http(307, b"", Location=f"{data.url}/data")
        new = hdfs_status("me", "me", "640")
        replies = (hdfs_status("me", "hadoop", "640"), to_data, new, denied, new, http(200, {"boolean": True}))
        with FakeServer(*replies) as name, pytest.raises(InputError, match="the group hadoop could not read"):
            WebHdfsPlace(name.url, "/f").write(NEW)
        assert name.lines()[-1].startswith("DELETE /webhdfs/v1/.f.")


@pytest.mark.parametrize(
    "reply",
    [b"", http(500, b"<html>"), http(307, b""), http(307, b"", Location="file:///etc/passwd"), b"x" * 50, http(401)],
)
def test_over_webhdfs_nonsense_is_one_line(reply: bytes) -> None:
    with FakeServer(reply) as server:
        place = WebHdfsPlace(server.url, "/f", HttpOptions(read_timeout_s=1))
        for act in (place.read, lambda: place.write(NEW)):
            with pytest.raises(YarnfairError) as caught:
                act()
            assert "\n" not in caught.value.line()


def test_places_by_name(tmp_path: Path) -> None:
    assert open_place(str(tmp_path / "f")) == LocalPlace(tmp_path / "f")
    assert open_place("sftp://yarn@rm.example:2222/etc/f.xml") == SftpPlace("rm.example", "/etc/f.xml", 2222, "yarn")
    place = open_place("swebhdfs://nn/conf/f%20x.xml")
    assert isinstance(place, WebHdfsPlace)
    assert (place.base, place.path) == ("https://nn:9871", "/conf/f x.xml")
    with_user = open_place("webhdfs://yarn@nn:50070/f")
    assert isinstance(with_user, WebHdfsPlace)
    assert (with_user.base, with_user.options.user) == ("http://nn:50070", "yarn")


@pytest.mark.parametrize(
    "text", ["", "ftp://x/f", "sftp://host", "sftp://host/", "sftp:///f", "sftp://u:pw@h/f", "webhdfs://h:x/f", "a\0b"]
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(CallError):
        open_place(text)
