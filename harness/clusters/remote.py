"""One host over SSH: commands, atomic file copies, tunnels. What runs on the host is decided elsewhere.

Host keys are checked strictly: a host that known_hosts does not know, or knows by another key, is refused. Keys come
from a file or the agent; no password is requested. Every wait has a time limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import posixpath
import shlex
import stat
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.debug import Timer, shown
from harness.base.errors import InputError, reason
from harness.base.files import reading
from harness.clusters.inventory import Host
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.ssh import Access, UnknownHost, connected

if TYPE_CHECKING:
    import fabric
    import paramiko

_LOG = logging.getLogger(__name__)
KEEPALIVE_S = 10
COMMAND_S = 60.0
#: Time limit for a file transfer without progress.
TRANSFER_S = 30.0
_CHUNK = 256 << 10


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command that has ended."""

    code: int
    out: str
    err: str


def quote(words: Mapping[str, str] | list[str] | tuple[str, ...]) -> str:
    """Quote the words of a command for a shell."""
    return " ".join(shlex.quote(word) for word in words)


class Remote:
    """A connection to one host, opened at first use and again after it broke. Not safe for several threads at once.

    Raises Refused (keys), Unreachable (no connection, or it broke), InputError (an error that the host reports).
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._connection: fabric.Connection | None = None
        self._sftp: paramiko.SFTPClient | None = None
        self._closing = contextlib.ExitStack()

    @property
    def name(self) -> str:
        """Return the host's name in the inventory and its address."""
        return f"{self.host.name} ({self.host.access.host})"

    # --- the connection ---

    def client(self) -> paramiko.SSHClient:
        """Return the open connection."""
        if self._connection is None or not self._connection.is_connected:
            self.close()
            with contextlib.ExitStack() as stack:
                between = stack.enter_context(_connected(self.host.jump)) if self.host.jump is not None else None
                self._connection = stack.enter_context(_connected(self.host.access, between))
                self._closing = stack.pop_all()
            self._connection.transport.set_keepalive(KEEPALIVE_S)
        client: paramiko.SSHClient = self._connection.client
        return client

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        # Closing a broken connection raises all kinds of errors; it is closed then.
        with contextlib.suppress(Exception):
            self._closing.close()
        self._sftp = self._connection = None

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _talking(self, doing: str, limit_s: float | None = None) -> Iterator[None]:
        """Raise Unreachable if the connection breaks, and InputError if the host refuses something.

        ``limit_s``: after this time the connection is closed, which ends every wait. This is needed if a host accepts
        the connection but sends nothing, because not all waits of paramiko have a time limit.
        """
        import paramiko

        silent = threading.Event()
        transport = self._connection.transport if self._connection is not None else None

        def give_up() -> None:
            silent.set()
            if transport is not None:
                transport.close()

        watch = threading.Timer(limit_s, give_up) if limit_s is not None else None
        if watch is not None:
            watch.daemon = True
            watch.start()
        try:
            yield
            if silent.is_set():
                raise TimeoutError  # if the connection is closed during a wait, paramiko reports the end of the data
        except (paramiko.SSHException, EOFError, TimeoutError, ConnectionError) as error:
            self.close()
            if silent.is_set() or isinstance(error, TimeoutError) or "timeout" in str(error).lower():
                hint = "look whether the host is overloaded, or waits in ~/.bashrc (`ssh HOST true`)"
                raise Unreachable(f"no answer in time while {doing}", where=self.name, hint=hint) from None
            raise Unreachable(
                f"the connection broke while {doing}: {reason(error)}", where=self.name, hint="try again"
            ) from None
        except OSError as error:
            if "closed" in str(error).lower():
                self.close()
                raise Unreachable(f"the connection broke while {doing}", where=self.name, hint="try again") from None
            raise InputError(f"{doing}: {reason(error)}", where=self.name) from None
        finally:
            if watch is not None:
                watch.cancel()

    # --- commands ---

    def run(self, command: str, *, timeout_s: float = COMMAND_S, stdin: str = "") -> Done:
        """Run a shell command to its end. Raises Unreachable if it does not end in time."""
        client, timer = self.client(), Timer()
        with self._talking("a command ran", timeout_s + self.host.access.timeout_s):
            _, out, err = client.exec_command(command, timeout=timeout_s)
            channel = out.channel
            if stdin:
                channel.sendall(stdin.encode())
            channel.shutdown_write()
            text, wrong = out.read(), err.read()
            code = channel.recv_exit_status()
            if code < 0:
                raise EOFError("it ended without an exit code")
        _LOG.debug("ssh %s: %s: exit code %s in %s: %s", self.name, shown(command), code, timer, shown(wrong or text))
        return Done(code, text.decode("utf-8", "replace"), wrong.decode("utf-8", "replace"))

    def check(self, command: str, what: str, *, timeout_s: float = COMMAND_S, stdin: str = "", hint: str = "") -> str:
        """Run a command that must succeed; return its output. InputError names its purpose and the host's message."""
        done = self.run(command, timeout_s=timeout_s, stdin=stdin)
        if done.code:
            words = (done.err or done.out).strip().splitlines()
            said = words[-1][:300] if words else f"exit code {done.code}"
            raise InputError(f"{what}: {said}", where=self.name, hint=hint or None)
        return done.out

    # --- files ---

    def sftp(self) -> paramiko.SFTPClient:
        """Return the SFTP session."""
        client = self.client()
        if self._sftp is None:
            with self._talking("SFTP began", self.host.access.timeout_s):
                self._sftp = self._closing.enter_context(client.open_sftp())
            channel = self._sftp.get_channel()
            if channel is not None:
                channel.settimeout(TRANSFER_S)
        return self._sftp

    def read(self, path: str, limit: int) -> bytes:
        """Return a file's bytes. Raises InputError if it does not exist or is too large."""
        session = self.sftp()
        with self._talking(f"{path} was read"):
            try:
                return self._bytes(session, path, limit)
            except (FileNotFoundError, PermissionError) as error:
                hint = "check the path, and that this user may read it"
                raise InputError(f"{path} cannot be read: {reason(error)}", where=self.name, hint=hint) from None

    def read_if_there(self, path: str, limit: int) -> bytes | None:
        """Return a file's bytes; None if it does not exist. Raises InputError if it is too large."""
        session = self.sftp()
        with self._talking(f"{path} was read"):
            try:
                return self._bytes(session, path, limit)
            except FileNotFoundError:
                return None

    def _bytes(self, session: paramiko.SFTPClient, path: str, limit: int) -> bytes:
        with session.open(path, "rb") as file:
            data: bytes = file.read(limit + 1)
        if len(data) > limit:
            raise InputError(f"{path} is larger than {limit} bytes", where=self.name, hint="is it this file?")
        return data

    def put(self, files: Mapping[str, bytes | Path], *, mode: int = 0o644) -> None:
        """Copy files to the host (path on the host -> its bytes, or a local file), each atomically.

        Checksums are compared on the host before any file is renamed to its final name.
        """
        _LOG.debug("sftp %s: put %s", self.name, shown(", ".join(files)))
        session = self.sftp()
        parts: dict[str, tuple[str, str]] = {}
        try:
            for target, source in files.items():
                folder, last = posixpath.split(target)
                part = posixpath.join(folder, f".{last}.{uuid.uuid4().hex[:12]}.part")
                parts[target] = (part, "")
                digest, size = hashlib.sha256(), 0
                with self._talking(f"{last} was copied"):
                    with session.open(part, "wb") as out:
                        if not mode & stat.S_IROTH:
                            session.chmod(part, 0o600)  # before the file has content that others could read
                        out.set_pipelined(True)
                        for piece in _pieces(source):
                            out.write(piece)
                            digest.update(piece)
                            size += len(piece)
                    if session.stat(part).st_size != size:
                        raise InputError(f"the copy of {last} is incomplete", where=self.name, hint="free space there")
                    session.chmod(part, mode)
                parts[target] = (part, digest.hexdigest())
            if not parts:
                return
            listed = "".join(f"{digest}  {part}\n" for part, digest in parts.values())
            self.check(
                "sha256sum --check --quiet -", "the copies' checksums", stdin=listed, timeout_s=300.0, hint="try again"
            )
            with self._talking("files were put in their places"):
                for target, (part, _) in parts.items():
                    session.posix_rename(part, target)
        except InputError as error:
            full = self._remove_quietly([part for part, _ in parts.values()])
            if isinstance(error, Unreachable | Refused) or not full:
                raise
            raise InputError(
                "files cannot be written: the disk is full", where=self.name, hint=f"free space in {full}"
            ) from None
        except BaseException:
            self._remove_quietly([part for part, _ in parts.values()])
            raise

    def _remove_quietly(self, paths: list[str]) -> str:
        """Remove the partial files of a failed copy (over a new connection if necessary).

        Return their folder if less than 64 KiB are free on its disk, otherwise an empty text.
        """
        try:
            folder = posixpath.dirname(paths[-1])
            free = self.run(
                f"df -Pk {shlex.quote(folder)} | tail -1; xargs -r rm -f --", stdin="\n".join(paths), timeout_s=15.0
            ).out
            return folder if int(free.split()[3]) < 64 else ""
        except (InputError, ValueError, IndexError):
            return ""


@contextlib.contextmanager
def _connected(access: Access, through: fabric.Connection | None = None) -> Iterator[fabric.Connection]:
    """Open a connection; raise Refused for a host that known_hosts does not know, because waiting does not help."""
    try:
        with connected(access, f"{access.name} ({access.host}:{access.port or 22})", through=through) as connection:
            yield connection
    except UnknownHost as error:
        raise Refused(error.what, where=error.where, hint=error.hint) from None


def _pieces(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with reading(source), source.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece
