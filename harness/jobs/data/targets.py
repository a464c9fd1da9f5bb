"""The location of a data set: a folder of this machine (or a shared one), or a folder in HDFS."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import os
import posixpath
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import CallError, InputError
from harness.base.files import reading, writing
from harness.yarn.errors import Refused
from harness.yarn.http import HttpOptions
from harness.yarn.webhdfs import WebHdfs, missing, open_hdfs

_PIECE_BYTES = 1 << 20


class Target(ABC):
    """The location of a data set. File names are relative to it and may include a folder (``a/b``).

    Every method raises InputError if the location refuses.
    """

    name: str

    @abstractmethod
    def exists(self) -> bool:
        """Return whether it exists."""

    @abstractmethod
    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's bytes, piece by piece. Raises FileNotFoundError if there is none."""

    @abstractmethod
    def write(self, name: str, content: bytes | Path) -> None:
        """Write a file atomically, from given content or from a file of this machine."""

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Return a file's size in bytes; None if there is none."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files directly in it, by name; empty if it does not exist."""

    @abstractmethod
    def tidy(self, names: Collection[str]) -> None:
        """Remove leftovers of killed writers of these files, if they can be distinguished from files being written."""

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None if there is none."""
        try:
            return b"".join(self.pieces(name))
        except FileNotFoundError:
            return None

    def sha256(self, name: str) -> str | None:
        """Return a file's checksum without holding it in memory; None if there is none."""
        digest = hashlib.sha256()
        try:
            for piece in self.pieces(name):
                digest.update(piece)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    @contextlib.contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Provide a file as a local one for the duration of the context. Raises InputError if there is none."""
        with tempfile.TemporaryDirectory(prefix="yarnfair-data-") as folder:
            copy = Path(folder) / posixpath.basename(name)
            try:
                with copy.open("wb") as out:
                    for piece in self.pieces(name):
                        out.write(piece)
            except FileNotFoundError:
                raise InputError(
                    "no such file", where=f"{self.name}/{name}", hint="generate the data set again"
                ) from None
            except OSError as error:
                raise InputError(f"cannot be written: {error.strerror}", where=str(copy), hint="make room") from None
            yield copy


@dataclass(frozen=True)
class FolderTarget(Target):
    """A folder of this machine, or one that is shared."""

    folder: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        """The folder's path."""
        return str(self.folder)

    def exists(self) -> bool:
        """Whether the folder exists."""
        return self.folder.exists()

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's content piece by piece. Raises FileNotFoundError, InputError."""
        try:
            with (self.folder / name).open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    yield piece
        except FileNotFoundError:
            raise
        except OSError as error:
            where = str(self.folder / name)
            raise InputError(f"cannot be read: {error.strerror}", where=where, hint="check the path") from None

    def size(self, name: str) -> int | None:
        """Return a file's size in bytes; None if it does not exist."""
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return None

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file in the folder, by name."""
        with reading(self.folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            files = sorted(entry for entry in self.folder.iterdir() if entry.is_file())
            return {file.name: file.stat().st_size for file in files}
        return {}

    def tidy(self, names: Collection[str]) -> None:
        """Remove temporary files of these names that no process is writing any more."""
        for name in self.sizes():
            found = re.fullmatch(r"\.(.+)\.[a-z0-9_]{8}", name)
            if found is None or found[1] not in names:
                continue
            # A writer holds the file's lock until the file has its final name.
            with contextlib.suppress(OSError), (self.folder / name).open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (self.folder / name).unlink()

    def write(self, name: str, content: bytes | Path) -> None:
        """Write a file (bytes, or the content of a local file) and replace it atomically."""
        temporary, place = "", self.folder / name
        try:
            with writing(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
                with os.fdopen(handle, "wb") as out:
                    with contextlib.suppress(OSError):  # a file system without locks
                        fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if isinstance(content, bytes):
                        out.write(content)
                    else:
                        with content.open("rb") as source:
                            shutil.copyfileobj(source, out, _PIECE_BYTES)
                    out.flush()
                    os.chmod(temporary, 0o644)
                    os.replace(temporary, place)
        finally:
            if temporary:
                # The next writer removes leftovers.
                with contextlib.suppress(OSError):
                    os.unlink(temporary)

    @contextlib.contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Provide the file's local path. Raises InputError if it does not exist."""
        if self.size(name) is None:
            raise InputError("no such file", where=f"{self.name}/{name}", hint="generate the data set again")
        yield self.folder / name


@dataclass(frozen=True)
class HdfsTarget(Target):
    """A folder in HDFS, by WebHDFS, as the user of this process (or of ``webhdfs://USER@...``)."""

    hdfs: WebHdfs
    folder: str
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.hdfs.base}{self.folder}")

    def exists(self) -> bool:
        """Whether the folder exists."""
        return self.hdfs.status(self.folder) is not None

    def path(self, name: str) -> str:
        """Return a file's path in HDFS."""
        return posixpath.join(self.folder, name)

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's content piece by piece. Raises FileNotFoundError, Refused."""
        try:
            yield from self.hdfs.pieces(self.path(name))
        except Refused as error:
            if missing(error):
                raise FileNotFoundError(name) from None
            raise

    def size(self, name: str) -> int | None:
        """Return a file's size in bytes; None if it does not exist."""
        found = self.hdfs.status(self.path(name))
        return None if found is None or found.folder else found.size

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file in the folder, by name."""
        try:
            return {one.name: one.size for one in self.hdfs.listing(self.folder) if not one.folder}
        except Refused as error:
            if missing(error):
                return {}
            raise

    def tidy(self, names: Collection[str]) -> None:
        """No-op: WebHDFS cannot tell whether a file is still being written."""

    def write(self, name: str, content: bytes | Path) -> None:
        """Write a file: bytes, or the content of a local file."""
        if isinstance(content, bytes):
            self.hdfs.write(self.path(name), content)
            return
        with reading(content), content.open("rb") as source:
            self.hdfs.write(self.path(name), source)


def open_target(text: str, where: str = "--out") -> Target:
    """Open a location by its name: a folder, or ``webhdfs://host:port/folder``.

    Raises CallError; ``where``: the option.
    """
    if "://" not in text:
        if not text or "\0" in text:
            raise CallError("no folder given", where=where, hint="give its path")
        return FolderTarget(Path(text))
    try:
        # A DataNode that writes 16 MiB to a busy disk answers only when it is done.
        hdfs, folder = open_hdfs(text, HttpOptions(user=getpass.getuser(), read_timeout_s=120.0))
    except CallError as error:
        hint = "give a folder, or webhdfs://host:port/folder with the NameNode's web address"
        raise CallError(error.what, where=where, hint=hint) from None
    return HdfsTarget(hdfs, folder)


def target_of(place: Path | Target) -> Target:
    """Return a local folder as a target; a target is returned unchanged."""
    return FolderTarget(place) if isinstance(place, Path) else place
