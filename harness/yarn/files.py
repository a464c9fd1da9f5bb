"""Where an RM's allocation file lies, and replacing it there whole or not at all: a folder, over SFTP, over WebHDFS.

What the file says is harness.yarn.fair's business, whether the RM took it harness.yarn.rmclient's. Every place
writes a temporary file beside the old one and renames it over: a reader sees the old file or the new one, never a part.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import pwd
import stat
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from harness.base.errors import CallError, InputError
from harness.yarn.errors import Refused, Unreachable, reason
from harness.yarn.http import HttpOptions
from harness.yarn.ssh_proxy import Proxy, proxy_command
from harness.yarn.webhdfs import WebHdfs

if TYPE_CHECKING:
    import paramiko

#: Far beyond any real allocation file (10,000 queues make some 3 MB).
MAX_BYTES = 64 << 20


class FileChanged(InputError):
    """The file is not the one that was read before: somebody else has written it since."""


class AllocationPlace(ABC):
    """A place where one allocation file lies. `name` is how messages call it."""

    name: str

    @abstractmethod
    def read(self) -> bytes:
        """The file's bytes. InputError (no such file, no permission, too large) or Unreachable."""

    @abstractmethod
    def _put(self, data: bytes) -> None:
        """Puts these bytes in the file's place in one step."""

    def write(self, data: bytes, *, before: bytes | None = None) -> None:
        """Replaces the file and reads it back.

        With `before` only when the file still has those bytes (FileChanged otherwise; between the look and the rename
        lies a moment). InputError or Unreachable: then the old file is there, whole.
        """
        if len(data) > MAX_BYTES:
            raise InputError(f"{len(data)} bytes are too many for an allocation file", where=self.name)
        if before is not None and self.read() != before:
            raise FileChanged(
                "the allocation file was changed by somebody else",
                where=self.name,
                mend="look at what changed; the next round starts from it",
            )
        self._put(data)
        if self.read() != data:
            raise FileChanged("another writer replaced the file at the same moment", where=self.name)

    def close(self) -> None:
        """Gives connections back."""
        return


@dataclass(frozen=True, slots=True)
class Readers:
    """Who may read a file: its owner and group (numbers), and its mode's permission bits."""

    uid: int
    gid: int
    mode: int

    def lost(self, uid: int, gid: int, *, owner_in_group: bool = False) -> str:
        """Who could not read it any more if the same mode came with this owner and group, in words; "": nobody.

        ``owner_in_group``: whether the old owner is known to be a member of the new group. Root reads everything.
        """
        if self.mode & stat.S_IROTH:
            return ""
        if gid != self.gid and self.mode & stat.S_IRGRP:
            return f"the group {self.gid}"
        by_group = owner_in_group and self.mode & stat.S_IRGRP
        if uid != self.uid and self.uid != 0 and self.mode & stat.S_IRUSR and not by_group:
            return f"its owner {self.uid}"
        return ""


def unreadable(lost: str, where: str) -> InputError:
    """The error of a file that is not replaced because `lost` could not read the new one."""
    return InputError(
        f"not replaced: {lost} could not read the new file (its owner and group cannot be set here)",
        where=where,
        mend="run as the file's owner or as a member of its group, or let others read it (chmod o+r)",
    )


def _owner(told: paramiko.SFTPAttributes) -> tuple[int, int] | None:
    return None if told.st_uid is None or told.st_gid is None else (told.st_uid, told.st_gid)


def _groups_of(uid: int) -> list[int]:
    """The groups of a user of this machine; none where it is not known here."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return []
    return os.getgrouplist(user.pw_name, user.pw_gid)


@dataclass(frozen=True)
class LocalPlace(AllocationPlace):
    """A file of this machine or of a mounted folder. Mode, owner and group stay; a symbolic link stays one.

    Where owner or group cannot be set and somebody could not read the file afterwards, it is not replaced.
    """

    path: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.path)

    def read(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise InputError("no ordinary file", where=self.name)
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {reason(error)}", where=self.name) from None
        if len(data) > MAX_BYTES:
            raise InputError("too large for an allocation file", where=self.name)
        return data

    def _put(self, data: bytes) -> None:
        try:
            target = Path(os.path.realpath(self.path))
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        except OSError as error:
            raise InputError(f"cannot write beside it: {reason(error)}", where=self.name) from None
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
                try:
                    old = target.stat()
                except FileNotFoundError:
                    # Others are to read it, the RM above all; a temporary file is its owner's only.
                    os.fchmod(out.fileno(), 0o644)
                else:
                    self._become(out.fileno(), old)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, target)
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            # A file that is a mount point itself cannot be renamed over.
            mend = "mount the folder that holds the file, not the file" if error.errno == 16 else None
            raise InputError(f"cannot be written: {reason(error)}", where=self.name, mend=mend) from None
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    def _become(self, handle: int, old: os.stat_result) -> None:
        """Gives a new file the old one's owner, group and mode. InputError where somebody could not read it then."""
        now = os.fstat(handle)
        if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(handle, old.st_uid, old.st_gid)
            except OSError:
                # Only root gives files away; who is a member of the group may give them to it.
                with contextlib.suppress(OSError):
                    os.fchown(handle, -1, old.st_gid)
            now = os.fstat(handle)
        mode = stat.S_IMODE(old.st_mode)
        member = now.st_uid != old.st_uid and now.st_gid in _groups_of(old.st_uid)
        if lost := Readers(old.st_uid, old.st_gid, mode).lost(now.st_uid, now.st_gid, owner_in_group=member):
            raise unreadable(lost, self.name)
        # Last: a change of the owner may take bits away.
        os.fchmod(handle, mode)


@dataclass(frozen=True)
class SftpPlace(AllocationPlace):
    """A file on a host that speaks SFTP. Keys come from the agent and ~/.ssh, settings from ~/.ssh/config (ProxyJump
    and ProxyCommand too). Mode, owner and group stay; a symbolic link stays one.

    A host that ~/.ssh/known_hosts does not know is refused.
    """

    host: str
    path: str
    port: int | None = None
    user: str | None = None
    timeout_s: float = 15.0
    key_file: str | None = None
    known_hosts: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"sftp://{self.host}{self.path}"

    @contextlib.contextmanager
    def _session(self) -> Iterator[paramiko.SFTPClient]:
        import paramiko

        # What is named here comes before the file's, also where a ProxyCommand has %p and %r.
        own = "".join(f"{key} {value}\n" for key, value in (("Port", self.port), ("User", self.user)) if value)
        config = paramiko.SSHConfig.from_text(own)
        with contextlib.suppress(OSError, UnicodeError, paramiko.ssh_exception.ConfigParseError):
            text = Path(os.path.expanduser("~/.ssh/config")).read_text(encoding="utf-8")
            config = paramiko.SSHConfig.from_text(own + text)
        said = config.lookup(self.host)
        host = said.get("hostname", self.host)
        try:
            port = int(said.get("port", 22))
        except ValueError:
            raise InputError(
                f"~/.ssh/config has no number for its port: {said['port'][:40]}", where=self.name
            ) from None
        through = proxy_command(said, host, port, timeout_s=self.timeout_s)
        keys: Any = None if self.key_file else said.get("identityfile")
        try:
            # Loaded here: paramiko tries a file as every kind of key and reports the last kind's complaint.
            key = paramiko.PKey.from_path(self.key_file) if self.key_file else None
        except (OSError, ValueError, TypeError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            raise InputError(f"no usable key: {reason(error)}", where=self.key_file) from None
        with contextlib.ExitStack() as stack:
            proxy = stack.enter_context(Proxy(through)) if through is not None else None
            client = stack.enter_context(paramiko.SSHClient())
            try:
                if self.known_hosts:
                    client.load_host_keys(self.known_hosts)
                else:
                    client.load_system_host_keys()
                client.set_missing_host_key_policy(paramiko.RejectPolicy())
                client.connect(
                    host,
                    port=port,
                    username=said.get("user"),
                    sock=proxy.socket if proxy is not None else None,
                    pkey=key,
                    key_filename=keys,
                    timeout=self.timeout_s,
                    banner_timeout=self.timeout_s,
                    auth_timeout=self.timeout_s,
                    allow_agent=self.key_file is None,
                    look_for_keys=self.key_file is None,
                )
                session = client.open_sftp()
            except paramiko.BadHostKeyException:
                raise Refused("the host key is another than known_hosts has", where=self.name) from None
            except paramiko.AuthenticationException as error:
                mend = "give a key that the host accepts (ssh-add, ~/.ssh/config)"
                raise Refused(f"not let in: {reason(error)}", where=self.name, mend=mend) from None
            except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
                mend = "check host, port and ~/.ssh/known_hosts (ssh-keyscan)"
                words = proxy.words() if proxy is not None else ""
                told = f"; its proxy says: {words}" if words else ""
                raise Unreachable(f"no SFTP: {reason(error)}{told}", where=self.name, mend=mend) from None
            channel = session.get_channel()
            if channel is not None:
                channel.settimeout(self.timeout_s)
            try:
                yield session
            except (paramiko.SSHException, EOFError, TimeoutError) as error:
                raise Unreachable(f"the connection broke: {reason(error)}", where=self.name) from None
            except OSError as error:
                raise InputError(f"SFTP: {reason(error)}", where=self.name) from None

    def read(self) -> bytes:
        with self._session() as session, session.open(self.path, "rb") as file:
            file.prefetch()
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError("too large for an allocation file", where=self.name)
        return data

    def _put(self, data: bytes) -> None:
        with self._session() as session:
            target, old = old_over_sftp(session, self.path)
            folder, last = posixpath.split(target)
            temporary = posixpath.join(folder, f".{last}.{uuid.uuid4().hex[:12]}")
            try:
                with session.open(temporary, "wb") as file:
                    # Nobody reads it before it is known who may.
                    session.chmod(temporary, 0o600)
                    file.set_pipelined(True)
                    file.write(data)
                if session.stat(temporary).st_size != len(data):
                    raise InputError("the copy is incomplete (is the disk full?)", where=self.name)
                become_over_sftp(session, temporary, old, self.name)
                # The protocol's own rename refuses to replace; OpenSSH's extension is POSIX' rename.
                session.posix_rename(temporary, target)
            except BaseException:
                with contextlib.suppress(Exception):
                    session.remove(temporary)
                raise


def old_over_sftp(session: paramiko.SFTPClient, path: str) -> tuple[str, paramiko.SFTPAttributes | None]:
    """The file that a path leads to, symbolic links followed, and what is known of it (None: there is none)."""
    target = session.normalize(path) or path
    try:
        return target, session.stat(target)
    except FileNotFoundError:
        return target, None


def become_over_sftp(
    session: paramiko.SFTPClient, temporary: str, old: paramiko.SFTPAttributes | None, where: str
) -> None:
    """Gives a new file the old one's owner, group and mode. InputError where somebody could not read it then."""
    mode = 0o644 if old is None or old.st_mode is None else stat.S_IMODE(old.st_mode)
    wanted, has = _owner(old) if old is not None else None, _owner(session.stat(temporary))
    if wanted is not None and has is not None:  # else there was none, or the server tells no owners
        # The protocol sets both at once: the group alone is "the owner that it has, and that group".
        for uid in dict.fromkeys((wanted[0], has[0])):
            if has == (uid, wanted[1]):
                break
            with contextlib.suppress(OSError):
                session.chown(temporary, uid, wanted[1])
                has = _owner(session.stat(temporary)) or has
                break
        if lost := Readers(*wanted, mode).lost(*has):
            raise unreadable(lost, where)
    session.chmod(temporary, mode)


@dataclass(frozen=True)
class WebHdfsPlace(AllocationPlace):
    """A file in HDFS, by WebHDFS: `base` is the NameNode's ``http://host:port``, `path` absolute in HDFS."""

    base: str
    path: str
    options: HttpOptions = field(default_factory=HttpOptions)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.base}{self.path}"

    @property
    def _hdfs(self) -> WebHdfs:
        return WebHdfs(self.base, self.options)

    def read(self) -> bytes:
        return self._hdfs.call("GET", self.path, "OPEN")

    def _put(self, data: bytes) -> None:
        permission = "644"
        with contextlib.suppress(Refused):
            before = self._hdfs.status(self.path)
            permission = permission if before is None else before.permission
        self._hdfs.write(self.path, data, permission=permission)


def open_place(text: str, options: HttpOptions | None = None) -> AllocationPlace:
    """A place by its name: a path, ``sftp://[user@]host[:port]/path``, ``webhdfs://`` or ``swebhdfs://host:port/path``.

    `options` are for WebHDFS. CallError for what is none of these.
    """
    if "://" not in text:
        if not text or "\0" in text:
            raise CallError("no path of an allocation file given")
        return LocalPlace(Path(text))
    mend = "give a path, sftp://[user@]host[:port]/path, webhdfs://host:port/path or swebhdfs://host:port/path"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise CallError(f"{text!r} is no place: {error}", mend=mend) from None
    path = unquote(parts.path)
    if not parts.hostname or not path.strip("/") or path.endswith("/") or parts.password is not None or parts.query:
        raise CallError(f"{text!r} names no file", mend=mend)
    if parts.scheme == "sftp":
        return SftpPlace(parts.hostname, path, port, parts.username)
    if parts.scheme in ("webhdfs", "swebhdfs"):
        scheme, usual = ("http", 9870) if parts.scheme == "webhdfs" else ("https", 9871)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        given = options or HttpOptions()
        if parts.username:
            given = replace(given, user=parts.username)
        return WebHdfsPlace(f"{scheme}://{host}:{port or usual}", path, given)
    raise CallError(f"{text!r} is no place for an allocation file", mend=mend)
