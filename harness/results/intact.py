"""Check whether the files of a run directory are still those that the run wrote.

When a run ends, ``run.json`` stores a digest of every table and list in its directory. `read_run` compares them, so
that a file that was truncated, damaged or replaced since makes the run invalid for every command that reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

#: The files with a digest. ``summary.json`` has none, because metrics that compare runs are added to it later.
TABLES = (
    "jobs.parquet",
    "allocations.parquet",
    "tasks.parquet",
    "users.parquet",
    "decisions.jsonl",
    "slots.jsonl",
)
#: The key of ``run.json``.
KEY = "files"
_MAGIC = b"PAR1"


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each of `TABLES` that the folder has. Raises OSError if the disk refuses."""
    return {name: _digest(folder / name) for name in TABLES if (folder / name).is_file()}


def damage_of(folder: Path, info: Mapping[str, object]) -> str:
    """Return which table of a run directory is missing or damaged; "" if none is.

    Parameters
    ----------
    folder : Path
        The run directory.
    info : mapping
        The content of its ``run.json``. Without digests, as of an earlier version of yarnfair, only the beginning and
        the end of each parquet file are checked.
    """
    known = info.get(KEY)
    if isinstance(known, Mapping):
        return next(filter(None, (_changed(folder / name, known[name]) for name in TABLES if name in known)), "")
    return next(filter(None, (_cut(folder / name) for name in TABLES if name.endswith(".parquet"))), "")


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _changed(path: Path, digest: object) -> str:
    try:
        if _digest(path) == digest:
            return ""
    except FileNotFoundError:
        return f"{path.name} is missing, which the run wrote: run it again"
    except OSError as error:
        return f"{path.name} cannot be read ({error.strerror}): check disk and rights, or run it again"
    return f"{path.name} is damaged or was changed since the run wrote it: run it again"


def _cut(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            begin = stream.read(4)
            stream.seek(-min(4, path.stat().st_size), 2)
            whole = begin == stream.read(4) == _MAGIC
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path.name} cannot be read ({error.strerror}): check disk and rights, or run it again"
    return "" if whole else f"{path.name} is damaged, it is not a whole parquet file: run it again"
