"""An allocation file on an SFTP host, replaced atomically."""

from __future__ import annotations

import contextlib
import posixpath
import shlex
import stat
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.base.errors import InputError, reason
from harness.yarn.errors import Unreachable
from harness.yarn.files import MAX_BYTES, TEMPORARY, ConfigStore, Readers, always, left_by, unreadable
from harness.yarn.ssh import Access, connected

if TYPE_CHECKING:
    import paramiko

#: Time limit of a command on the host, seconds.
_COMMAND_S = 15.0


class OverSftp(ConfigStore):
    """A file on an SFTP host; subclasses open the session.

    Mode, owner and group are preserved, and also the POSIX ACL if commands may be run on the host. A symbolic link is
    kept.
    """

    path: str

    @abstractmethod
    def _opened(self) -> AbstractContextManager[paramiko.SFTPClient]:
        """Open a session. Raises Refused, Unreachable, InputError."""

    @property
    def file_name(self) -> str:
        """The file's name."""
        return posixpath.basename(self.path)

    @contextlib.contextmanager
    def _session(self) -> Iterator[paramiko.SFTPClient]:
        import paramiko

        try:
            with self._opened() as session:
                yield session
        except (paramiko.SSHException, EOFError, TimeoutError) as error:
            raise Unreachable(f"the connection broke: {reason(error)}", where=self.name) from None
        except OSError as error:
            raise InputError(f"SFTP: {reason(error)}", where=self.name) from None

    def read(self) -> bytes:
        """Return the content. Raises InputError."""
        with self._session() as session, session.open(self.path, "rb") as file:
            file.prefetch()
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError("too large for an allocation file", where=self.name)
        return data

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        with self._session() as session:
            target, old = _old(session, self.path)
            folder, last = posixpath.split(target)
            temporary = posixpath.join(folder, f".{last}{TEMPORARY}{uuid.uuid4().hex[:12]}")
            try:
                with session.open(temporary, "wb") as file:
                    # Only the owner may read the temporary file until its permissions are set.
                    session.chmod(temporary, 0o600)
                    file.set_pipelined(True)
                    file.write(data)
                if session.stat(temporary).st_size != len(data):
                    raise InputError("the copy is incomplete (is the disk full?)", where=self.name)
                _become(session, temporary, old, self.name)
                if old is not None:
                    _keep_acl(session, target, temporary, self.name)
                still()
                # The protocol's own rename does not replace an existing file; OpenSSH's extension does.
                session.posix_rename(temporary, target)
            except BaseException:
                # The first error is raised; `clear` removes the leftovers.
                with contextlib.suppress(Exception):
                    session.remove(temporary)
                raise

    def remove(self) -> None:
        """Remove the file if it exists."""
        # A file that does not exist counts as removed.
        with self._session() as session, contextlib.suppress(FileNotFoundError):
            session.remove(session.normalize(self.path) or self.path)

    def clear(self) -> int:
        """Remove temporary files of interrupted writes; return their number."""
        with self._session() as session:
            folder, last = posixpath.split(session.normalize(self.path) or self.path)
            left = [name for name in session.listdir(folder) if left_by(name, last)]
            for name in left:
                session.remove(posixpath.join(folder, name))
        return len(left)


@dataclass(frozen=True)
class SftpStore(OverSftp):
    """A file on a host that this user reaches by SSH.

    Keys come from the agent and ~/.ssh, settings from ~/.ssh/config (ProxyJump and ProxyCommand too). A host that
    ~/.ssh/known_hosts does not know is refused.
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
        """The file's URL."""
        return f"sftp://{self.host}{self.path}"

    def beside(self, name: str) -> SftpStore:
        """Return the store of another file in the same folder."""
        return replace(self, path=posixpath.join(posixpath.dirname(self.path), name))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[paramiko.SFTPClient]:
        import paramiko

        access = Access(
            self.host, self.host, self.user, self.port, self.key_file, self.known_hosts, timeout_s=self.timeout_s
        )
        with connected(access, self.name, failed="no SFTP") as connection:
            try:
                session = connection.client.open_sftp()
            except (paramiko.SSHException, OSError, EOFError) as error:
                hint = "let its server speak SFTP"
                raise Unreachable(f"no SFTP: {reason(error)}", where=self.name, hint=hint) from None
            channel = session.get_channel()
            if channel is not None:
                channel.settimeout(self.timeout_s)
            yield session


def _old(session: paramiko.SFTPClient, path: str) -> tuple[str, paramiko.SFTPAttributes | None]:
    """Return the path after symbolic links are resolved, and the file's attributes (None: there is no file)."""
    target = session.normalize(path) or path
    try:
        return target, session.stat(target)
    except FileNotFoundError:
        return target, None


def _become(session: paramiko.SFTPClient, temporary: str, old: paramiko.SFTPAttributes | None, where: str) -> None:
    """Copy the old file's owner, group and mode to a new file. Raises InputError if a user would lose read access."""
    mode = 0o644 if old is None or old.st_mode is None else stat.S_IMODE(old.st_mode)
    wanted, has = _owner(old) if old is not None else None, _owner(session.stat(temporary))
    if wanted is not None and has is not None:  # otherwise there is no old file, or the server does not show owners
        # The protocol sets both at once, so the group is set together with the present owner.
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


def _keep_acl(session: paramiko.SFTPClient, old: str, new: str, where: str) -> None:
    """Copy the old file's POSIX ACL to a new file by commands on the host, if allowed, because SFTP has no ACLs.

    Raises InputError if the host has the commands and they fail.
    """
    import paramiko

    channel = session.get_channel()
    transport = channel.get_transport() if channel is not None else None
    if transport is None:
        return
    old, new = shlex.quote(old), shlex.quote(new)
    command = (
        "command -v getfacl setfacl >/dev/null || exit 0; "
        f"getfacl --omit-header --absolute-names -- {old} 2>/dev/null | setfacl --set-file=- -- {new} || echo lost"
    )
    try:
        with contextlib.closing(transport.open_session(timeout=_COMMAND_S)) as shell:
            shell.settimeout(_COMMAND_S)
            shell.exec_command(command)
            shell.shutdown_write()
            told = shell.recv(64)
    except (paramiko.SSHException, OSError, EOFError):
        return  # the account may only transfer files
    if told.strip() == b"lost":
        hint = "run setfacl on that host by hand to see why, or take the ACL from the file"
        raise InputError("not replaced: its ACL cannot be kept", where=where, hint=hint)


def _owner(told: paramiko.SFTPAttributes) -> tuple[int, int] | None:
    return None if told.st_uid is None or told.st_gid is None else (told.st_uid, told.st_gid)
