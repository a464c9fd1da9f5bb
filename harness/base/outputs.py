"""The one writer of files that a user asks for (``-o``, ``--svg``, ``--junit`` ...), and the check that comes first.

The existing file decides how it is written. A regular file is replaced atomically, so that no reader sees a partial
file. A symbolic link is followed to its target. A device, a FIFO or an open descriptor (``/dev/stdout``, ``/dev/fd/3``,
``>(command)``) is opened and written, never replaced. ``-`` is standard output.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from harness.base.errors import InputError
from harness.base.files import put_file, writing

#: The name of standard output on command lines.
STANDARD_OUTPUT = Path("-")
#: Maximum number of links that are followed, as in Linux.
_MOST_LINKS = 40
_CHOOSE = "choose another path"


def is_standard_output(path: Path) -> bool:
    """Return whether a path means this process' standard output.

    ``-``, ``/dev/stdout``, ``/dev/fd/1`` or a link to them.
    """
    return path == STANDARD_OUTPUT or _descriptor_of(path) == 1


def write_output(path: Path, content: str | bytes, *, sync: bool = False, hint: str = _CHOOSE) -> int:
    """Write a file that a user asked for.

    Parameters
    ----------
    path : the file; missing parent folders are created. ``-`` is standard output.
    content : the whole content; text is written as UTF-8.
    sync : whether a regular file is on the disk when this returns.
    hint : how to fix a path that cannot be written.

    Returns
    -------
    int
        The number of bytes written.

    Raises
    ------
    InputError
        The path cannot be written, or the text has a lone surrogate, which JSON and file names may contain but UTF-8
        cannot. An existing regular file is then unchanged.

    Notes
    -----
    A file that is replaced keeps its mode; a new one gets what the umask leaves.
    """
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        around = ascii(error.object[max(error.start - 20, 0) : error.end])
        what = f"cannot be written: a name in it is no UTF-8 ({around})"
        raise InputError(what, where=str(path), hint="rename what is called so") from None

    def write(temporary: Path) -> None:
        temporary.write_bytes(data)

    with writing(path, hint):
        regular = _regular_target(path)
        if regular is not None:
            _put(regular, write, sync)
        else:
            with _opened(path) as stream:
                stream.write(data)
    return len(data)


def write_output_by(path: Path, write: Callable[[Path], None], *, hint: str = _CHOOSE) -> int:
    """Write a file that a user asked for by a function that fills a temporary file.

    Otherwise as `write_output`.
    """
    sizes: list[int] = []

    def measured(temporary: Path) -> None:
        write(temporary)
        sizes.append(temporary.stat().st_size)

    with writing(path, hint):
        regular = _regular_target(path)
        if regular is not None:
            _put(regular, measured, sync=False)
        else:
            # Filled first: the reader of a FIFO gets everything or nothing.
            with tempfile.TemporaryDirectory(prefix="yarnfair-output-") as folder:
                draft = Path(folder) / f"output{path.suffix}"
                measured(draft)
                with draft.open("rb") as filled, _opened(path) as stream:
                    shutil.copyfileobj(filled, stream)
    return sizes[0]


def check_output(path: Path, *, hint: str = _CHOOSE) -> None:
    """Check before anything is computed that a file can be written at a path.

    Raises
    ------
    InputError
        The name is not UTF-8, the path is a folder, or permissions are missing.
    """
    if path == STANDARD_OUTPUT:
        return
    with writing(path.as_posix().encode("utf-8", "backslashreplace").decode(), hint):
        check_name(path)
        target = _regular_target(path)
        if target is None:
            _require(os.access(path, os.W_OK), errno.EACCES)
            return
        _require(not target.is_dir(), errno.EISDIR)
        _check_folder(target.parent)


def check_output_folder(path: Path, *, hint: str = _CHOOSE) -> None:
    """Check before anything is computed that a folder exists, or can be created, and can be written.

    Raises
    ------
    InputError
        The name is not UTF-8, the path is not a folder, or permissions are missing.
    """
    with writing(path.as_posix().encode("utf-8", "backslashreplace").decode(), hint):
        check_name(path)
        _check_folder(path)


def check_name(path: Path) -> None:
    """Raise OSError for a path that UTF-8 cannot encode: documents and databases could not name it afterwards."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, "the name is not UTF-8") from None
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name holds a NUL character")


def _check_folder(folder: Path) -> None:
    existing = Path(os.path.abspath(folder))
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    _require(existing.exists(), errno.ENOENT)
    _require(existing.is_dir(), errno.ENOTDIR)
    if not os.access(existing, os.W_OK | os.X_OK):
        read_only = bool(os.statvfs(existing).f_flag & os.ST_RDONLY)
        _require(False, errno.EROFS if read_only else errno.EACCES)


def _require(holds: bool, number: int) -> None:
    if not holds:
        raise OSError(number, os.strerror(number))


def _put(target: Path, write: Callable[[Path], None], sync: bool) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        put_file(target, write, mode=None, sync=sync)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None


def _regular_target(path: Path) -> Path | None:
    """Return the regular file to replace or create, after following links.

    None for files that must be opened instead.
    """
    if path == STANDARD_OUTPUT or _descriptor_of(path) is not None:
        return None
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        # A dangling link: its target is created.
        return Path(os.path.realpath(path))
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return Path(os.path.realpath(path))
    return None


def _descriptor_of(path: Path) -> int | None:
    """Return the number of this process' descriptor that a path names; None if it names none."""
    own = {f"/proc/{os.getpid()}/fd", "/proc/self/fd", "/dev/fd"}
    current = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(current)
        if name.isdecimal() and (folder in own or os.path.realpath(folder) in own):
            return int(name)
        try:
            target = os.readlink(current)
        except OSError:
            return None
        current = os.path.normpath(os.path.join(os.path.realpath(folder), target))
    return None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a stream to a file that is not replaced: standard output, an open descriptor, a device or a FIFO."""
    if is_standard_output(path):
        sys.stdout.flush()
        stream: BinaryIO = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    number = _descriptor_of(path)
    # A duplicate continues at the descriptor's position; opening a regular file by its name would start at the
    # beginning.
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
    handle = os.dup(number) if number is not None else os.open(path, flags)
    with open(handle, "wb") as opened:
        yield opened
