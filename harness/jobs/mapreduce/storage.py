"""Where a program's inputs and output lie: folders that this machine and all nodes see alike, or folders in HDFS.

Hadoop reads and writes either by itself; this machine reaches HDFS by WebHDFS, to look before a job starts.
"""

from __future__ import annotations

from harness.base.errors import InputError
from harness.jobs.data.generate import how_to_make, usable
from harness.jobs.data.targets import HdfsTarget, Target

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
