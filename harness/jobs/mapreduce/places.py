"""The storage of a program's inputs, files and output: folders that all nodes see under the same path, or HDFS.

Based on the folders of harness.clusters.shared, which replayed load uses, too: on this machine, or in a Docker volume.
Hadoop reads and writes both directly; this machine accesses HDFS by WebHDFS, to check it before a job starts.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from harness.base.errors import CallError, InputError
from harness.base.files import reading, writing
from harness.clusters.shared import OPEN_MODE, ContainerFolder, LocalFolder, SharedFolder
from harness.jobs.data.generate import how_to_make, usable
from harness.jobs.data.targets import HdfsTarget, Target
from harness.yarn.errors import Refused
from harness.yarn.rest import LocalFile
from harness.yarn.webhdfs import missing

#: Characters that must not be in the URIs of files that YARN localises.
_NOT_IN_URIS = "{}[]*?\\, \t\n" + '%#"<>^`|'


def uri_of(target: HdfsTarget) -> str:
    """Return Hadoop's URI of a folder in HDFS. Raises the errors of HDFS."""
    return f"{target.hdfs.file_system()}{target.folder}"


def check_path(path: str) -> None:
    """Raise InputError for a path below which a job cannot have its files."""
    if any(c in path for c in _NOT_IN_URIS):
        raise InputError(
            "Hadoop's paths have no blanks, commas or * ? [ ] { } % # \" < > ^ ` |",
            where=path,
            hint="choose another folder (data of experiments lie below $XDG_CACHE_HOME)",
        )


def part_sizes(target: Target) -> dict[str, int]:
    """Return the sizes in bytes of a data set's files, by name. Raises InputError."""
    return {name: size for name, size in target.sizes().items() if name.startswith("part-")}


def open_data(target: Target, kind: str) -> dict[str, int]:
    """Return the files of an input of the given kind of data, name -> bytes.

    Raises InputError for data of another kind, incomplete data, or none.
    """
    files = part_sizes(target)
    if usable(target, kind) is None and not files:
        raise InputError("no part-* files", where=target.name, hint=how_to_make(kind, target.name))
    return files


class StagingPlace(ABC):
    """A folder that all nodes see under the same path. Names are relative to it, with ``/``."""

    path: str

    @abstractmethod
    def write(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> dict[str, LocalFile]:
        """Write files and empty folders, which everybody may write into.

        Return the files in the form that YARN localises.

        Raises InputError.
        """

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the files in a folder; empty if there is no such folder. Raises InputError."""

    @abstractmethod
    def fetch(self, folder: str, suffix: str = "") -> dict[str, bytes]:
        """Return the files below a folder whose names end in `suffix`, by relative path.

        Empty if there is no such folder.

        Raises InputError.
        """

    @abstractmethod
    def remove(self, folder: str) -> None:
        """Remove a folder. Raises InputError."""

    def copy(self, folder: str, to: Path) -> None:
        """Copy the content of a folder into a local one. Raises InputError."""
        for name, content in self.fetch(folder).items():
            with writing(to / name):
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                (to / name).write_bytes(content)

    def give(self, folder: str, output: Path | Target) -> None:
        """Move a folder to the target that the user named; it must not exist yet. Raises InputError."""
        assert isinstance(output, Path)
        self.copy(folder, output)

    def data(self, folder: Path, name: str) -> str:
        """Return the path on the nodes of a local data set, which is copied there as ``name`` if necessary."""
        there = self.sizes(name)
        files = {file.name: file for file in sorted(folder.iterdir()) if file.is_file()}
        if any(there.get(found) != file.stat().st_size for found, file in files.items()):
            for found, file in files.items():
                self.write({f"{name}/{found}": file.read_bytes()})
        return f"{self.path}/{name}"


def place_of(shared: SharedFolder) -> StagingPlace:
    """Return the place of a shared folder. Raises CallError for one in which programs cannot run."""
    if isinstance(shared, LocalFolder):
        return LocalStore(shared.folder)
    if isinstance(shared, ContainerFolder):
        return ContainerPlace(shared)
    raise CallError("programs run on --backend local and docker", where="--backend", hint="choose one of them")


class LocalStore(StagingPlace):
    """A folder of this machine."""

    file_system = "file:///"

    def __init__(self, folder: Path, *, data_as_it_is: bool = True) -> None:
        self.folder, self.path, self._as_it_is = folder.absolute(), str(folder.absolute()), data_as_it_is

    def write(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> dict[str, LocalFile]:
        """Write files and empty folders; return each file's URI, size and modification time."""
        found = {}
        with writing(self.path):
            for name in folders:
                _open_folders(self.folder, name)
            for name, content in files.items():
                _open_folders(self.folder, str(PurePosixPath(name).parent))
                file = self.folder / name
                file.write_bytes(content)
                file.chmod(0o644)
                state = file.stat()
                found[name] = LocalFile(f"file:{file}", state.st_size, state.st_mtime_ns // 1_000_000)
        return found

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file in a folder, by name."""
        at = self.folder / folder
        with reading(at):
            return {file.name: file.stat().st_size for file in at.iterdir() if file.is_file()} if at.is_dir() else {}

    def fetch(self, folder: str, suffix: str = "") -> dict[str, bytes]:
        """Return the content of each file below a folder whose name ends in `suffix`."""
        at = self.folder / folder
        with reading(at):
            return {
                str(file.relative_to(at)): file.read_bytes()
                for file in sorted(at.rglob(f"*{suffix}"))
                if file.is_file()
            }

    def remove(self, folder: str) -> None:
        """Remove a folder; errors are ignored."""
        shutil.rmtree(self.folder / folder, ignore_errors=True)

    def give(self, folder: str, output: Path | Target) -> None:
        """Move a folder to the output path."""
        assert isinstance(output, Path)
        with writing(output):
            output.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self.folder / folder, output)

    def data(self, folder: Path, name: str) -> str:
        """Return the path of a data set: nodes on this machine read it in its present place."""
        return str(folder.absolute()) if self._as_it_is else super().data(folder, name)


class HdfsPlace(StagingPlace):
    """A folder in HDFS, which this machine accesses by WebHDFS.

    Nodes read this machine's files in their present place.
    """

    def __init__(self, target: HdfsTarget) -> None:
        self._hdfs, self._folder, self.path = target.hdfs, target.folder, uri_of(target)
        #: The file system: ``hdfs://host:port``.
        self.file_system = self.path.removesuffix(target.folder)

    def _at(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    def write(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> dict[str, LocalFile]:
        """Write files and empty folders; return each file's URI, size and modification time."""
        found = {}
        for name in folders:
            self._hdfs.make_folder(self._at(name))
        for name, content in files.items():
            self._hdfs.write(self._at(name), content)
            state = self._hdfs.status(self._at(name))
            assert state is not None
            found[name] = LocalFile(f"{self.path}/{name}", state.size, state.modified_ms)
        return found

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file in a folder, by name."""
        return HdfsTarget(self._hdfs, self._at(folder)).sizes()

    def fetch(self, folder: str, suffix: str = "") -> dict[str, bytes]:
        """Return the content of each file below a folder whose name ends in `suffix`."""
        return {
            name: self._hdfs.read(self._at(f"{folder}/{name}")) for name in self._below(folder) if name.endswith(suffix)
        }

    def _below(self, folder: str) -> Iterator[str]:
        """Return the files below a folder, with relative names."""
        try:
            rows = self._hdfs.listing(self._at(folder))
        except Refused as error:
            if missing(error):
                return
            raise
        for row in rows:
            if row.folder:
                yield from (f"{row.name}/{name}" for name in self._below(f"{folder}/{row.name}"))
            else:
                yield row.name

    def remove(self, folder: str) -> None:
        """Remove a folder."""
        self._hdfs.delete(self._at(folder))

    def give(self, folder: str, output: Path | Target) -> None:
        """Move a folder to the output target in HDFS."""
        assert isinstance(output, HdfsTarget)
        self._hdfs.rename(self._at(folder), output.folder)

    def data(self, folder: Path, name: str) -> str:
        """Return the folder's absolute path: the nodes read this machine's files where they lie."""
        return str(folder.absolute())


def _open_folders(root: Path, name: str) -> None:
    """Create a folder and its missing parents, writable for the containers' user, who may be another user."""
    at = root
    at.mkdir(parents=True, exist_ok=True)
    for part in ("", *PurePosixPath(name).parts):
        at = at / part
        if not at.is_dir():
            at.mkdir(exist_ok=True)
            os.chmod(at, OPEN_MODE)


class ContainerPlace(StagingPlace):
    """A folder in a volume that all containers of a Docker cluster mount."""

    def __init__(self, shared: ContainerFolder) -> None:
        self.shared, self.path = shared, shared.path

    def write(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> dict[str, LocalFile]:
        """Write files and empty folders; return each file's URI, size and modification time."""
        now = self.shared.put(files, folders)
        return {name: LocalFile(f"file:{self.path}/{name}", len(files[name]), now * 1000) for name in files}

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file in a folder, by name."""
        return {name: size for name, size, _ in self.shared.members(folder, contents=False) if "/" not in name}

    def fetch(self, folder: str, suffix: str = "") -> dict[str, bytes]:
        """Return the content of each file below a folder whose name ends in `suffix`."""
        return {name: content for name, _, content in self.shared.members(folder) if name.endswith(suffix)}

    def remove(self, folder: str) -> None:
        """Remove a folder."""
        self.shared.remove(folder)
