"""The allocation file over SFTP (paramiko's own server), through other hosts too."""

from __future__ import annotations

import os
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

from harness.base.errors import InputError
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import FileChanged
from harness.yarn.sftp import SftpStore
from tests.yarn.owners import GROUP, NEW, OLD, OWNER, as_root, deny_chown, owned, ownership


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
def sftp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SftpStore]:
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
    yield SftpStore(
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


def test_over_sftp_the_file_is_replaced_and_keeps_its_mode(sftp: SftpStore) -> None:
    path = Folder.root / "etc" / "f.xml"
    path.chmod(0o640)
    assert sftp.read() == OLD
    sftp.write(NEW, before=OLD)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(FileChanged):
        sftp.write(OLD, before=OLD)
    assert [item.name for item in path.parent.iterdir()] == ["f.xml"]


def test_over_sftp_an_edit_while_the_new_file_is_on_its_way_is_found_and_stays(
    sftp: SftpStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, chattr = Folder.root / "etc" / "f.xml", Folder.chattr

    def meanwhile(self: Folder, name: str, attr: paramiko.SFTPAttributes) -> int:
        path.write_bytes(b"theirs")
        return chattr(self, name, attr)

    monkeypatch.setattr(Folder, "chattr", meanwhile)
    with pytest.raises(FileChanged):
        sftp.write(NEW, before=OLD)
    assert [(item.name, item.read_bytes()) for item in path.parent.iterdir()] == [("f.xml", b"theirs")]


@as_root
def test_over_sftp_owner_and_group_stay_or_the_file_is_not_replaced(
    sftp: SftpStore, monkeypatch: pytest.MonkeyPatch
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


def test_over_sftp_a_symbolic_link_stays_one(sftp: SftpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # As OpenSSH's server does, whose real path has no links in it.
    real = lambda _, path: "/etc/f.xml" if path == "/etc/link.xml" else path  # noqa: E731
    monkeypatch.setattr(Folder, "canonicalize", real)
    (Folder.root / "etc" / "link.xml").symlink_to("f.xml")
    replace(sftp, path="/etc/link.xml").write(NEW, before=OLD)
    assert (Folder.root / "etc" / "link.xml").is_symlink()
    assert (Folder.root / "etc" / "f.xml").read_bytes() == NEW


def test_over_sftp_an_incomplete_copy_is_not_renamed(sftp: SftpStore) -> None:
    Folder.full = True
    with pytest.raises(InputError, match="incomplete"):
        sftp.write(NEW)
    assert [(item.name, item.read_bytes()) for item in (Folder.root / "etc").iterdir()] == [("f.xml", OLD)]


def test_over_sftp_a_missing_file_or_folder_is_one_line(sftp: SftpStore) -> None:
    with pytest.raises(InputError, match="No such file"):
        replace(sftp, path="/etc/none.xml").read()
    with pytest.raises(InputError, match="No such file"):
        replace(sftp, path="/none/f.xml").write(NEW)


def test_over_sftp_strangers_are_refused(sftp: SftpStore, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(Unreachable, match="known_hosts"):
        replace(sftp, known_hosts=str(tmp_path / "empty")).read()
    with pytest.raises(Refused, match="login refused"):
        replace(sftp, user="root").read()
    with pytest.raises(InputError, match="no usable key"):
        replace(sftp, key_file=str(tmp_path / "empty")).read()
    other = paramiko.ECDSAKey.generate()
    (tmp_path / "wrong").write_text(f"[127.0.0.1]:{sftp.port} {other.get_name()} {other.get_base64()}\n")
    with pytest.raises(Refused, match="host's key"):
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


def test_over_sftp_through_a_proxy_command(sftp: SftpStore, tmp_path: Path) -> None:
    relay = executable(tmp_path / "relay", RELAY.format(python=sys.executable, target='"$1" "$2"'))
    # Nobody answers at the port of the file: the one that the place names counts, for %p too.
    ssh_config(tmp_path, f"Host rm1\n HostName 127.0.0.1\n Port 1\n User nobody\n ProxyCommand {relay} %h %p\n")
    through = replace(sftp, host="rm1")
    through.write(NEW, before=OLD)
    assert sftp.read() == NEW
    ssh_config(tmp_path, "Host rm1\n ProxyCommand echo no way there >&2\n")
    with pytest.raises(Unreachable, match="its proxy says: no way there"):
        through.read()


def test_over_sftp_through_other_hosts(sftp: SftpStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = tmp_path / "call"
    text = RELAY.format(python=sys.executable, target=f"127.0.0.1 {sftp.port}")
    executable(tmp_path / "ssh", text.replace("exec ", f'echo "$@" >{call}; exec '))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ssh_config(tmp_path, "Host rm1\n HostName 127.0.0.1\n ProxyJump me@gate:2200\n")
    assert replace(sftp, host="rm1").read() == OLD
    assert call.read_text().split()[-4:] == ["-W", f"127.0.0.1:{sftp.port}", "--", "ssh://me@gate:2200"]


def test_over_sftp_a_connection_that_breaks_prints_no_traceback(tmp_path: Path) -> None:
    """Where no log is set up, as in a service."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60.0)
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        place = f"sftp://yarn@127.0.0.1:{server.getsockname()[1]}/f.xml"
        code = f"from harness.yarn.stores import open_store; open_store({place!r}).read()"
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True
        )
    assert "no SFTP: Error reading SSH protocol banner" in done.stderr.splitlines()[-1]
    assert "Exception (client)" not in done.stderr


def test_over_sftp_nobody_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = SftpStore("127.0.0.1", "/f", probe.getsockname()[1], "yarn", timeout_s=2)
        with pytest.raises(Unreachable) as caught:
            place.read()
    assert "\n" not in caught.value.line()
