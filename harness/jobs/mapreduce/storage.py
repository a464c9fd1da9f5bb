"""Where a program's inputs and output lie: folders that this machine and all nodes see alike, or folders in HDFS.

Hadoop reads and writes either by itself; this machine reaches HDFS by WebHDFS, to look before a job starts, to fetch
what a check or a history needs, and to take away what staged a job.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from harness.base.errors import CallError, InputError
from harness.jobs.data.generate import check_whole, read_manifest
from harness.jobs.data.targets import FolderTarget, HdfsTarget, Target
from harness.yarn.errors import Refused
from harness.yarn.webhdfs import missing

_NO = "{}[]*?\\, \t\n"
#: Nor are these in a URI, which the files are that YARN localises.
_NOT_IN_URIS = _NO + '%#"<>^`|'


def target_of(place: Path | Target) -> Target:
    """A folder, however it is named."""
    return FolderTarget(place) if isinstance(place, Path) else place


def uri_of(target: Target, default_fs: str) -> str:
    """How Hadoop calls a folder on a cluster with this ``fs.defaultFS``. Raises CallError, and what HDFS raises."""
    if any(c in target.name for c in _NO):
        raise CallError(f"{target.name!r}: Hadoop's paths have no blanks, commas or * ? [ ] {{ }}", where="--input")
    if isinstance(target, HdfsTarget):
        return f"{target.hdfs.file_system()}{target.folder}"
    assert isinstance(target, FolderTarget)
    path = str(target.folder.absolute())
    return path if default_fs.startswith("file:") else f"file://{path}"


def check_path(path: str) -> None:
    """Raises InputError for a path below which a job cannot have its files."""
    if any(c in path for c in _NOT_IN_URIS):
        raise InputError(
            "Hadoop's paths have no blanks, commas or * ? [ ] { } % # \" < > ^ ` |",
            where=path,
            mend="choose another folder (data of experiments lie below $XDG_CACHE_HOME)",
        )


def beside(target: Target, name: str) -> Target:
    """A folder beside another one, or with something behind its name."""
    if isinstance(target, HdfsTarget):
        return replace(target, folder=str(PurePosixPath(target.folder).with_name(name)))
    assert isinstance(target, FolderTarget)
    return FolderTarget(target.folder.absolute().with_name(name))


def last_name(target: Target) -> str:
    """The last part of a folder's path."""
    return PurePosixPath(target.folder if isinstance(target, HdfsTarget) else str(target.name)).name


def exists(target: Target) -> bool:
    """Whether something is there."""
    if isinstance(target, HdfsTarget):
        return target.hdfs.status(target.folder) is not None
    assert isinstance(target, FolderTarget)
    return target.folder.exists()


def remove(target: Target) -> None:
    """Takes a folder away, if it is there."""
    if isinstance(target, HdfsTarget):
        target.hdfs.delete(target.folder)
        return
    assert isinstance(target, FolderTarget)
    shutil.rmtree(target.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The files of an input: name -> bytes."""

    target: Target
    files: Mapping[str, int]

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(self.files.values())


def open_data(target: Target, kind: str) -> DataSet:
    """An input of a kind of data. Raises InputError for data of another kind, incomplete data, or none."""
    manifest = read_manifest(target)
    if manifest is not None and manifest.kind != kind:
        raise InputError(f"a data set of {manifest.kind}", where=target.name, mend=f"give one of {kind}")
    if manifest is not None:
        return DataSet(target, check_whole(target, manifest))
    files = {name: size for name, size in target.sizes().items() if name.startswith("part-")}
    if not files:
        raise InputError(
            "no part-* files",
            where=target.name,
            mend=f"make them: yarnfair data generate {kind} --size 10MB --out {target.name}",
        )
    return DataSet(target, files)


def fetch(target: Target, names: Sequence[str], folder: Path) -> list[Path]:
    """Files as they lie on this machine: where they are, or copied into a folder."""
    if isinstance(target, FolderTarget):
        return [target.folder / name for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        assert isinstance(target, HdfsTarget)
        target.hdfs.download(target.path(name), folder / name)
    return [folder / name for name in names]


def fetch_output(target: Target, folder: Path) -> Path:
    """A job's output as a folder of this machine."""
    if isinstance(target, FolderTarget):
        return target.folder.absolute()
    fetch(target, target.names(), folder)
    return folder


def fetch_histories(target: HdfsTarget, folder: Path) -> None:
    """The history files below a folder of HDFS, into one of this machine."""
    for path in _below(target, target.folder):
        if path.endswith(".jhist"):
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(InputError):
                target.hdfs.download(path, folder / PurePosixPath(path).name)


def _below(target: HdfsTarget, folder: str) -> Iterator[str]:
    try:
        rows = target.hdfs.listing(folder)
    except Refused as error:
        if missing(error):
            return
        raise
    for row in rows:
        if row.folder:
            yield from _below(target, f"{folder}/{row.name}")
        else:
            yield f"{folder}/{row.name}"
