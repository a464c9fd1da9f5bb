"""An allocation file on a host that speaks SFTP, replaced whole or not at all."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import shlex
import stat
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError, reason
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import MAX_BYTES, TEMPORARY, AllocationPlace, Readers, always, left_by, unreadable
from harness.yarn.ssh_proxy import Proxy, proxy_command

if TYPE_CHECKING:
    import paramiko

# What goes wrong is told by our errors; paramiko's threads would print tracebacks into a service's log.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class SftpPlace(AllocationPlace):
    """A file on a host that speaks SFTP. Keys come from the agent and ~/.ssh, settings from ~/.ssh/config (ProxyJump
    and ProxyCommand too). Mode, owner and group stay, the POSIX ACL where commands may be run there; a symbolic link
    stays one.

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

    @property
    def file_name(self) -> str:
        return posixpath.basename(self.path)

    def beside(self, name: str) -> SftpPlace:
        return replace(self, path=posixpath.join(posixpath.dirname(self.path), name))

    @contextlib.contextmanager
    def _session(self) -> Iterator[paramiko.SFTPClient]:
        import paramiko

        # What is named here comes before the file's, also where a ProxyCommand has %p and %r.
        own = "".join(f"{key} {value}\n" for key, value in (("Port", self.port), ("User", self.user)) if value)
        config = paramiko.SSHConfig.from_text(own)
        # No file, or one that paramiko cannot read (it knows less than OpenSSH): the address is all there is.
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
                raise Refused("the host's key differs from the one in known_hosts", where=self.name) from None
            except paramiko.AuthenticationException as error:
                mend = "give a key that the host accepts (ssh-add, ~/.ssh/config)"
                raise Refused(f"login refused: {reason(error)}", where=self.name, mend=mend) from None
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

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        with self._session() as session:
            target, old = old_over_sftp(session, self.path)
            folder, last = posixpath.split(target)
            temporary = posixpath.join(folder, f".{last}{TEMPORARY}{uuid.uuid4().hex[:12]}")
            try:
                with session.open(temporary, "wb") as file:
                    # Nobody reads it before it is known who may.
                    session.chmod(temporary, 0o600)
                    file.set_pipelined(True)
                    file.write(data)
                if session.stat(temporary).st_size != len(data):
                    raise InputError("the copy is incomplete (is the disk full?)", where=self.name)
                become_over_sftp(session, temporary, old, self.name)
                if old is not None:
                    _keep_acl_over_ssh(session, target, temporary, self.name, self.timeout_s)
                still()
                # The protocol's own rename refuses to replace; OpenSSH's extension is POSIX' rename.
                session.posix_rename(temporary, target)
            except BaseException:
                # What went wrong first is raised; `clear` sweeps what is left.
                with contextlib.suppress(Exception):
                    session.remove(temporary)
                raise

    def remove(self) -> None:
        # Gone already is removed too.
        with self._session() as session, contextlib.suppress(FileNotFoundError):
            session.remove(session.normalize(self.path) or self.path)

    def clear(self) -> int:
        with self._session() as session:
            folder, last = posixpath.split(session.normalize(self.path) or self.path)
            left = [name for name in session.listdir(folder) if left_by(name, last)]
            for name in left:
                session.remove(posixpath.join(folder, name))
        return len(left)


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


def _keep_acl_over_ssh(session: paramiko.SFTPClient, old: str, new: str, where: str, timeout_s: float) -> None:
    """Gives a new file the old one's POSIX ACL. SFTP knows none: the host's own commands do it, where they may be run.

    InputError where the host has the commands and they fail.
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
        with contextlib.closing(transport.open_session(timeout=timeout_s)) as shell:
            shell.settimeout(timeout_s)
            shell.exec_command(command)
            shell.shutdown_write()
            told = shell.recv(64)
    except (paramiko.SSHException, OSError, EOFError):
        return  # an account that may only transfer files
    if told.strip() == b"lost":
        mend = "run setfacl on that host by hand to see why, or take the ACL from the file"
        raise InputError("not replaced: its ACL cannot be kept", where=where, mend=mend)


def _owner(told: paramiko.SFTPAttributes) -> tuple[int, int] | None:
    return None if told.st_uid is None or told.st_gid is None else (told.st_uid, told.st_gid)
