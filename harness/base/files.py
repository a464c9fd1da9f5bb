"""Files written whole: filled beside their place and moved there, so that no reader meets half of one."""

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

#: More than any file that users write by hand or that a run leaves for others to read.
MOST_BYTES = 64 << 20
#: renameat2(2): AT_FDCWD and RENAME_EXCHANGE.
_HERE, _EXCHANGE = -100, 2
_HANDED_OVER = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


@contextlib.contextmanager
def reading(where: str | Path, hint: str = "check the path") -> Iterator[None]:
    """Inside, a user's file or folder is read. Raises InputError where the system refuses, and for text in no UTF-8."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(where), hint="save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot be read: {reason(error)}", where=str(where), hint=hint) from None


@contextlib.contextmanager
def writing(where: str | Path, hint: str = "check disk and rights") -> Iterator[None]:
    """Inside, a file or folder of a user's is written. Raises InputError where the system refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {reason(error)}", where=str(where), hint=hint) from None


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[TextIO]:
    """Hold a file's lock while the context lasts; the lock is released when the process ends.

    The file is created if it does not exist, and is open for appending. Raises OSError; BlockingIOError where another
    process holds the lock and ``wait`` is False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle


@contextlib.contextmanager
def holding(path: Path, *, busy: InputError | None = None, hint: str = "check disk and rights") -> Iterator[None]:
    """`locked` for what users ask for: waits for who has it; with ``busy``: raises that instead.

    Raises InputError where the file cannot be made.
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
    """Lets `write` fill a temporary file beside `path`, then moves it there. Raises OSError when the disk refuses.

    ``mode`` None: that of the file that is replaced, or what the umask gives a new one.
    ``sync``: it is on the disk when this returns.
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
        # What went wrong before is what the caller hears.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _create_beside(path: Path, permissions: int) -> Path:
    """An empty file of a new name in the folder of `path`. Raises OSError."""
    while True:
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, permissions))
            return temporary


def exchange(one: str | Path, other: str | Path) -> bool:
    """Two files change names, in one step; False where this system or file system cannot do that (Linux can)."""
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
    """`put_file` for files that users ask for. Raises InputError when the disk refuses."""
    with writing(path, hint):
        try:
            put_file(path, write, mode=mode, sync=sync)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from None


def open_whole(path: str | Path) -> BufferedReader:
    """A user's file to be read: an ordinary one, or what a shell hands over as one (/dev/stdin, /dev/fd/N).

    Raises OSError, with the reason as ``strerror``: also for what is no ordinary file (a pipe would be waited for, a
    device has no end), and for a path that cannot be one.
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
    """All of a user's file (`open_whole`). Raises OSError, also for more than ``most`` bytes."""
    with open_whole(path) as file:
        status, expected = os.fstat(file.fileno()), most
        if stat.S_ISREG(status.st_mode):
            expected = min(status.st_size, most)
        # A buffer of the size that is asked for is made first; 64 MiB of it cost more than the file.
        data = file.read(expected + 1)
        if expected < len(data) <= most:
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes")
    return data


def read_text(path: str | Path, most: int = MOST_BYTES, *, hint: str = "check the path") -> str:
    """All of a user's text. Raises InputError where it cannot be read, is no UTF-8, or has more than ``most`` bytes."""
    with reading(path, hint):
        return read_whole(path, most).decode("utf-8")


def plain(value: object) -> Any:
    """The value as JSON has it: numbers that are not finite become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def no_constant(name: str) -> float:
    """For readers of JSON: what is no number there (NaN, Infinity) is an error."""
    raise ValueError(f"{name} is not a number")


def json_text(document: Mapping[str, object]) -> str:
    """A JSON document as the files of this package have it: indented, in UTF-8, null for what is not finite."""
    return json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """One JSON document, replaced whole."""
    write_text(path, json_text(document))


def write_text(path: Path, text: str) -> None:
    """A text file in UTF-8, replaced whole."""
    write_bytes(path, text.encode())


def write_bytes(
    path: Path, content: bytes, *, mode: int | None = 0o644, sync: bool = False, hint: str = "check disk and rights"
) -> None:
    """A file replaced whole; the rest as of `replace_file`."""

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    replace_file(path, write, mode=mode, sync=sync, hint=hint)


def read_json(path: Path, hint: str = "run the experiment again") -> dict[str, Any]:
    """A JSON object, of a run directory unless `hint` says how else such a file comes about.

    Raises InputError when it is missing or damaged.
    """
    try:
        found = json.loads(read_whole(path).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {reason(error)}", where=str(path), hint=hint) from None
    if not isinstance(found, dict):
        raise InputError("not a JSON object", where=str(path), hint=hint)
    return found
