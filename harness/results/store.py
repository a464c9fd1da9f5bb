"""A run directory on disk: opened unfinished, files replaced whole, closed with an exit code. Not what they hold.

``run.json`` is there from the first moment with ``"exit": null``; every file is written beside its place and moved
there, so a reader (or a crash, or kill -9) never meets half a file.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness.base.errors import InputError
from harness.base.files import plain, read_json, replace_file, write_json, write_text

if TYPE_CHECKING:
    import pandas as pd

#: Every file that a run directory may hold; what a new run in the same place removes first.
FILES = (
    "run.json",
    "summary.json",
    "phases.json",
    "jobs.parquet",
    "allocations.parquet",
    "tasks.parquet",
    "trace.jsonl",
    "decisions.jsonl",
    "slots.jsonl",
    "users.parquet",
    "ledger.sqlite",
    "ledger.sqlite-wal",
    "ledger.sqlite-shm",
    "ledger.sqlite.lock",
    "report.html",
)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """What the results depend on: our version, Python's and those of the numeric packages."""
    found = {"yarnfair": "", "python": platform.python_version()}
    for name in ("yarnfair", "numpy", "numba", "pandas", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """The machine that runs: system, processor, cores."""
    return {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()}


class Pace:
    """When to write again what has been gathered: seldom enough that writing takes a small part of the time.

    ::

        pace = Pace()
        while ...:
            if pace.due():
                with pace:
                    write everything
    """

    #: Not more often than this, and so many times as long as the last writing took.
    LEAST_S, TIMES = 2.0, 20.0

    def __init__(self) -> None:
        self._next = time.monotonic() + self.LEAST_S
        self._began = 0.0

    def due(self) -> bool:
        """Whether it is time."""
        return time.monotonic() >= self._next

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        ended = time.monotonic()
        self._next = ended + max(self.LEAST_S, self.TIMES * (ended - self._began))


class RunDirectory:
    """One run directory being written. Closed by `close`; until then it is marked unfinished."""

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Creates (or takes over) the directory and writes ``run.json`` with ``exit`` null.

        `identity` is what the run is: experiment resolved in full, its hash, policy, backend, seed ...

        Raises InputError when the directory holds something that is not a run, or cannot be written.
        """
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "run.json").exists() and any(p for p in path.iterdir() if not p.name.startswith(".")):
                raise InputError(
                    "the directory holds files that are not a run's", where=str(path), mend="choose another --out"
                )
            # run.json goes last: a crash in between leaves a directory that a new run may still take over.
            for name in reversed(FILES):
                (path / name).unlink(missing_ok=True)
            for left in path.glob(".*.*"):
                if left.is_file() and left.name.startswith(tuple(f".{name}." for name in FILES)):
                    left.unlink()
        except OSError as error:
            raise InputError(
                f"cannot be used for results: {error.strerror}", where=str(path), mend="choose another --out"
            ) from None
        self.info: dict[str, Any] = {
            **identity,
            "versions": versions(),
            "machine": machine(),
            "argv": sys.argv[1:],
            "start": _now(),
            "end": None,
            "exit": None,
        }
        write_json(path / "run.json", self.info)

    def note(self, **what: Any) -> None:
        """Adds to ``run.json`` what is known only now."""
        self.info.update(what)
        write_json(self.path / "run.json", self.info)

    def progress(self, **figures: Any) -> None:
        """Notes in ``run.json`` how far the run has come."""
        self.note(progress=figures)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_json(self.path / "summary.json", summary)

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """A parquet file; the same table gives the same bytes."""

        def write(temporary: Path) -> None:
            # No pandas index: its metadata would only repeat row numbers.
            table.to_parquet(temporary, engine="pyarrow", compression="zstd", index=False)

        replace_file(self.path / name, write)

    def write_text(self, name: str, text: str) -> None:
        """A text file, replaced whole."""
        write_text(self.path / name, text)

    def write_lines(self, name: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """A file of JSON objects, one a line."""

        def write(temporary: Path) -> None:
            with temporary.open("w", encoding="utf-8") as stream:
                for entry in entries:
                    stream.write(json.dumps(plain(entry), ensure_ascii=False, allow_nan=False) + "\n")

        replace_file(self.path / name, write)

    @staticmethod
    def close(path: Path, exit_code: int, why: str | None = None) -> None:
        """Closes a run directory: ``end`` and ``exit`` (the command's codes) in ``run.json``, and why, if not 0."""
        info = read_json(path / "run.json")
        info.pop("progress", None)
        info.update(end=_now(), exit=exit_code)
        if why is not None:
            info["why"] = why
        write_json(path / "run.json", info)
