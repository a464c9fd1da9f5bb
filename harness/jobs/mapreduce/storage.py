"""Where a program's inputs and output lie: folders that this machine and all nodes see alike, or folders in HDFS.

Hadoop reads and writes either by itself; this machine reaches HDFS by WebHDFS, to look before a job starts, and to
fetch what a check needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.base.errors import InputError
from harness.jobs.data.generate import how_to_make, usable
from harness.jobs.data.targets import FolderTarget, HdfsTarget, Target

#: Not in a URI, which the files are that YARN localises.
_NOT_IN_URIS = "{}[]*?\\, \t\n" + '%#"<>^`|'


def uri_of(target: HdfsTarget) -> str:
    """How Hadoop calls a folder of HDFS. Raises what HDFS raises."""
    return f"{target.hdfs.file_system()}{target.folder}"


def check_path(path: str) -> None:
    """Raises InputError for a path below which a job cannot have its files."""
    if any(c in path for c in _NOT_IN_URIS):
        raise InputError(
            "Hadoop's paths have no blanks, commas or * ? [ ] { } % # \" < > ^ ` |",
            where=path,
            mend="choose another folder (data of experiments lie below $XDG_CACHE_HOME)",
        )


def part_sizes(target: Target) -> dict[str, int]:
    """Bytes of a data set's files by name. Raises InputError."""
    return {name: size for name, size in target.sizes().items() if name.startswith("part-")}


def open_data(target: Target, kind: str) -> dict[str, int]:
    """The files of an input of a kind of data, name -> bytes. Raises InputError for data of another kind, incomplete
    data, or none."""
    files = part_sizes(target)
    if usable(target, kind) is None and not files:
        raise InputError("no part-* files", where=target.name, mend=how_to_make(kind, target.name))
    return files


def fetch(target: Target, names: Sequence[str], folder: Path) -> list[Path]:
    """Files as they lie on this machine: where they are, or copied into a folder."""
    if isinstance(target, FolderTarget):
        return [target.folder / name for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        assert isinstance(target, HdfsTarget)
        target.hdfs.download(target.path(name), folder / name)
    return [folder / name for name in names]
