"""The paths of Spark, data and a run's files on the nodes: local files in place, or copies in the containers' volume.

A local cluster's nodes see this machine's files. Docker's containers share one volume: Spark's folder and data sets are
copied into it once for each cluster (and marked when they are complete), so that images and mounts stay independent of
them.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from harness.base.errors import InputError
from harness.clusters.shared import ContainerFolder, LocalFolder, SharedFolder
from harness.jobs.data.generate import TPCH, TPCH_TABLES, FolderTarget, how_to_make, usable
from harness.jobs.spark import installation
from harness.jobs.spark.catalogue import SparkProgram
from harness.jobs.spark.plan import Input

#: The memory of a NodeManager besides its containers, MiB.
NODE_MB = 300
#: Arrow's names of types -> Spark's.
_TYPES = {"int64": "bigint", "int32": "int", "date32[day]": "date", "double": "double"}
_TYPES |= dict.fromkeys(("string", "large_string", "string_view"), "string")
_NOT_IN_PATHS = "{}[]*?\\, \t\n'\"$:"


def check_limit(at_once_mb: int, limit_mb: int | None, where: str) -> None:
    """Refuse an amount of memory that does not fit into the container in which a node runs.

    ``at_once_mb``: the memory that a node's containers may use together. ``limit_mb``: the memory of the container in
    which the node runs (None: it does not run in one). Raises InputError.
    """
    if limit_mb is not None and at_once_mb + NODE_MB > limit_mb:
        raise InputError(
            f"memory is short: {at_once_mb} MB of containers and the NodeManager may be on one node, whose container "
            f"is limited to {limit_mb} MB",
            where=where,
            hint=f"bring the cluster up with NM_MEM_LIMIT={at_once_mb + NODE_MB}m in the environment, or with nodes "
            "that offer less memory",
        )


def read_input(program: SparkProgram, folder: Path) -> Input:
    """Check and return a local data set. Raises InputError for one that cannot be used."""
    kind = program.data[0]
    where = str(folder)
    if any(character in _NOT_IN_PATHS for character in where):
        what = "Hadoop's paths have no blanks, quotes, commas or : $ * ? [ ] { }"
        raise InputError(what, where=where, hint="choose another folder")
    make = how_to_make(kind, where)
    if not folder.is_dir():
        raise InputError("no such folder", where=where, hint=make)
    manifest = usable(FolderTarget(folder), kind)
    pattern = "*.parquet" if kind == TPCH else "part-*"
    files = sorted(path for path in folder.glob(pattern) if path.is_file())
    if kind == TPCH:
        if lacking := [table for table in TPCH_TABLES if not any(path.stem == table for path in files)]:
            raise InputError(f"no {', '.join(f'{table}.parquet' for table in lacking)}", where=where, hint=make)
        if manifest is None:
            raise InputError("no manifest.json, which says the scale factor", where=where, hint=make)
    elif not files:
        raise InputError("no part-* files", where=where, hint=make)
    size = sum(path.stat().st_size for path in files)
    wanted = manifest.size if manifest is not None else size
    schemas = {path.stem: _schema(path) for path in files if kind == TPCH and path.stem in TPCH_TABLES}
    return Input(str(folder.absolute()), tuple(path.name for path in files), size, wanted, schemas)


def _schema(path: Path) -> str:
    """Return a parquet file's columns with Spark's types. Raises InputError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        what = f"no parquet that can be read: {str(error)[:200]}"
        raise InputError(what, where=str(path), hint="generate the data set again") from None
    names = []
    for column in found:
        kind = column.type
        if pa.types.is_decimal(kind):
            name = f"decimal({kind.precision},{kind.scale})"
        elif str(kind) in _TYPES:
            name = _TYPES[str(kind)]
        else:
            what = f"{column.name} is {kind}, which no query of TPC-H reads"
            raise InputError(what, where=str(path), hint="generate the data set again")
        names.append(f"{column.name} {name}")
    return ", ".join(names)


_COPYING = threading.Lock()


class SparkNodes:
    """The view of a cluster's nodes: this machine's files in place, or copies in the volume that containers mount.

    Raises InputError for hosts over SSH, to which nothing is copied.
    """

    def __init__(self, shared: SharedFolder) -> None:
        if not isinstance(shared, LocalFolder | ContainerFolder):
            what = "Spark's programs run on local clusters and in containers only"
            raise InputError(what, where=shared.path, hint="use --backend local or docker")
        self.volume = shared if isinstance(shared, ContainerFolder) else None

    def home(self, progress: Callable[[str], None]) -> str:
        """Return Spark's folder on the nodes, downloaded and copied if necessary. Raises InputError, RunTimedOut."""
        found = installation.find(progress=progress)
        if self.volume is None:
            return str(found)
        files = [path for part in ("jars", "python/lib") for path in sorted((found / part).iterdir())]
        return _copied(self.volume, found, files, f"spark-{installation.version()}", progress)

    def data(self, found: Input, progress: Callable[[str], None]) -> Input:
        """Return a local data set with its path on the nodes, copied if necessary. Raises InputError."""
        if self.volume is None:
            return found
        folder = Path(found.path)
        files = [folder / name for name in found.files]
        of = hashlib.sha256()
        for path in files:
            status = path.stat()
            of.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
        return replace(found, path=_copied(self.volume, folder, files, f"data-{of.hexdigest()[:16]}", progress))

    def node_limit_mb(self) -> int | None:
        """Return the smallest memory limit of the containers in which nodes run, MiB; None if there is no limit."""
        return None if self.volume is None else self.volume.node_limit_mb()


def _copied(
    volume: ContainerFolder, source: Path, files: Sequence[Path], name: str, progress: Callable[[str], None]
) -> str:
    """Copy files below `source` to the folder `name` of the volume; return its path there."""
    container, root = volume.container, str(PurePosixPath(volume.path).parent)
    to = f"{root}/{name}"
    with _COPYING, volume.errors():
        if container.exec_run(["test", "-d", to]).exit_code == 0:
            return to
        progress(f"copying {source} into the cluster's volume (once)")
        part = f".{name}.{os.getpid()}"
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for path in files:
                    entry = archive.gettarinfo(path, f"{part}/{path.relative_to(source)}")
                    entry.mode, entry.uid, entry.gid, entry.uname, entry.gname = 0o644, 0, 0, "", ""
                    with path.open("rb") as content:
                        archive.addfile(entry, content)
            packed.seek(0)
            container.put_archive(root, packed)
        done = container.exec_run(["mv", "-T", f"{root}/{part}", to], user="root")
        if done.exit_code:
            raise InputError(f"Docker: {done.output.decode(errors='replace')[:200]}", where=to)
    return to
