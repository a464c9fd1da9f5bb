"""Writes files atomically: filled beside their place and renamed, so that no reader sees a partial file."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO

from harness.base.errors import InputError, reason

#: Maximum size of files that users write by hand or that a run leaves for others.
MOST_BYTES = 64 << 20
#: renameat2(2): AT_FDCWD and RENAME_EXCHANGE.
_HERE, _EXCHANGE = -100, 2
_HANDED_OVER = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


@contextlib.contextmanager
def reading(where: str | Path, hint: str = "check the path") -> Iterator[None]:
    """Context for reading a user's file or folder.

    Raises InputError if the system refuses, and for text that is not UTF-8.
    """
    try:
        yield
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(where), hint="save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot be read: {reason(error)}", where=str(where), hint=hint) from None


@contextlib.contextmanager
def writing(where: str | Path, hint: str = "check disk and rights") -> Iterator[None]:
    """Context for writing a user's file or folder. Raises InputError if the system refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {reason(error)}", where=str(where), hint=hint) from None


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[TextIO]:
    """Hold a file's lock while the context lasts; the lock is released when the process ends.

    The file is created if it does not exist, and is open for appending. Raises OSError; BlockingIOError if another
    process holds the lock and ``wait`` is False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle


@contextlib.contextmanager
def holding(path: Path, *, busy: InputError | None = None, hint: str = "check disk and rights") -> Iterator[None]:
    """Hold a lock as `locked` does, for users' files: wait for the holder, or with ``busy`` raise that instead.

    Raises InputError if the file cannot be created.
    """
    with contextlib.ExitStack() as stack:
        with writing(path, hint):
            try:
                stack.enter_context(locked(path, wait=busy is None))
            except BlockingIOError:
                assert busy is not None
                raise busy from None
        yield


def put_file(
    path: Path,
    write: Callable[[Path], None],
    *,
    mode: int | None = 0o644,
    sync: bool = False,
) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it. Raises OSError if the disk refuses.

    ``mode`` None: the mode of the replaced file, or the umask's for a new one. ``sync``: whether it is on disk when
    this returns.
    """
    if mode is None and path.exists():
        mode = path.stat().st_mode & 0o7777
    # The kernel applies the umask (and a default ACL) to a file that is created with 0o666. To read the umask, a
    # process would have to change it, and files that other threads create at that moment would get wrong modes.
    temporary = _create_beside(path, 0o666 if mode is None else 0o600)
    try:
        write(temporary)
        if mode is not None:
            temporary.chmod(mode)
        if sync:
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        # The caller gets the first error.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _create_beside(path: Path, permissions: int) -> Path:
    """Create an empty file with a new name in the folder of `path`. Raises OSError."""
    while True:
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, permissions))
            return temporary


def exchange(one: str | Path, other: str | Path) -> bool:
    """Exchange the names of two files atomically; return False if this system or file system cannot (Linux can)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def replace_file(
    path: Path,
    write: Callable[[Path], None],
    *,
    mode: int | None = 0o644,
    sync: bool = False,
    hint: str = "check disk and rights",
) -> None:
    """Replace a file as `put_file` does, for users' files. Raises InputError if the disk refuses."""
    with writing(path, hint):
        try:
            put_file(path, write, mode=mode, sync=sync)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from None


def open_whole(path: str | Path) -> BufferedReader:
    """Open a user's file for reading: a regular file, or a shell's descriptor (/dev/stdin, /dev/fd/N).

    Raises OSError, with the reason as ``strerror``, also for other types of files (a pipe would block, a device has no
    end) and for an invalid path.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode) and (not str(path).startswith(_HANDED_OVER) or stat.S_ISDIR(mode)):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "no ordinary file")
    os.set_blocking(handle, True)
    return open(handle, "rb")


def read_whole(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Read a user's whole file (`open_whole`). Raises OSError, also for more than ``most`` bytes."""
    with open_whole(path) as file:
        status, expected = os.fstat(file.fileno()), most
        if stat.S_ISREG(status.st_mode):
            expected = min(status.st_size, most)
        # Python first allocates a buffer of the requested size; 64 MiB cost more than reading the file.
        data = file.read(expected + 1)
        if expected < len(data) <= most:
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes")
    return data


def read_text(path: str | Path, most: int = MOST_BYTES, *, hint: str = "check the path") -> str:
    """Read a user's whole text. Raises InputError if it is unreadable, not UTF-8, or larger than ``most`` bytes."""
    with reading(path, hint):
        return read_whole(path, most).decode("utf-8")


def plain(value: object) -> Any:
    """Return a value in JSON's types: numbers that are not finite become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def no_constant(name: str) -> float:
    """Reject NaN and Infinity, which are not numbers in JSON."""
    raise ValueError(f"{name} is not a number")


def json_text(document: Mapping[str, object]) -> str:
    """Return a JSON document as text, in the form of this package's files.

    Indented, with null for values that are not finite.
    """
    return json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Write one JSON document, replacing the file atomically."""
    write_text(path, json_text(document))


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    write_bytes(path, text.encode())


def write_bytes(
    path: Path, content: bytes, *, mode: int | None = 0o644, sync: bool = False, hint: str = "check disk and rights"
) -> None:
    """Write a file atomically; see `replace_file`."""

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    replace_file(path, write, mode=mode, sync=sync, hint=hint)


def read_json(path: Path, hint: str = "run the experiment again") -> dict[str, Any]:
    """Read a JSON object of a run directory; `hint` tells how such a file is made otherwise.

    Raises InputError if it is missing or damaged.
    """
    try:
        found = json.loads(read_whole(path).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {reason(error)}", where=str(path), hint=hint) from None
    if not isinstance(found, dict):
        raise InputError("not a JSON object", where=str(path), hint=hint)
    return found
