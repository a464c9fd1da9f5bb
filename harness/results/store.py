"""A run directory on disk: opened unfinished, files replaced whole, closed with an exit code. Not what they hold.

``run.json`` is there from the first moment with ``"exit": null``; every file is written beside its place and moved
there, so a reader (or a crash, or kill -9) never meets half a file.

A run that ended keeps its directory until another one has ended in its place: a new run in the same place is written
beside it (``.NAME.new``) and the two are exchanged when the new one is complete. An interrupted one changes nothing.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness.base.errors import InputError
from harness.base.files import exchange, plain, read_json, replace_file, write_json, write_text
from harness.results.commits import commits

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
    "debug.log",
    "debug.log.1",
    "report.html",
)


#: Exit codes of runs that came to their end: fine, jobs failed, timed out.
COMPLETE = (0, 4, 5)
#: What two runs must have in common for one of them to replace the other.
_SAME = ("hash", "variant", "backend", "place")


def staging_of(path: Path) -> Path:
    """Where a run is written while an earlier, complete one stands at `path`."""
    return path.with_name(f".{path.name}.new")


def earlier_of(path: Path) -> Path:
    """Where a valid run is kept that a run which is not valid has replaced."""
    return path.with_name(f".{path.name}.old")


def complete_run(path: Path) -> dict[str, Any] | None:
    """What ``run.json`` says of a run that came to its end; None where there is none."""
    try:
        info = read_json(path / "run.json")
    except InputError:
        return None
    return info if info.get("exit") in COMPLETE else None


def settle(staged: Path, target: Path) -> Path:
    """Let a run that was written beside its place take it, when it is complete or nothing complete stands there.

    Parameters
    ----------
    staged : the run's directory as it was written.
    target : its place. A valid run (exit 0) that stands there is kept as `earlier_of` it when the new one is not valid;
        any other one is removed.

    Returns
    -------
    Path
        Where the run is now.

    Raises
    ------
    InputError
        The disk refuses.
    """
    try:
        before, now = complete_run(target), complete_run(staged)
        if before is None:
            shutil.rmtree(target, ignore_errors=True)
            os.replace(staged, target)
            return target
        if now is None:
            return staged
        kept = earlier_of(target)
        shutil.rmtree(kept, ignore_errors=True)
        if exchange(staged, target):
            os.replace(staged, kept)
        else:
            os.replace(target, kept)
            os.replace(staged, target)
        if before["exit"] != 0 or now["exit"] == 0:
            shutil.rmtree(kept, ignore_errors=True)
        return target
    except OSError as error:
        raise InputError(
            f"cannot take the place of the earlier run: {error.strerror}",
            where=str(target),
            hint="check disk and rights",
        ) from None


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


class WriteThrottle:
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
        """Whether it is time to write again."""
        return time.monotonic() >= self._next

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        ended = time.monotonic()
        self._next = ended + max(self.LEAST_S, self.TIMES * (ended - self._began))


class RunDirectory:
    """One run directory being written. Closed by `close`; until then it is marked unfinished."""

    def __init__(self, path: Path, identity: Mapping[str, object]) -> None:
        """Create the directory, or reuse it, and write ``run.json`` with ``exit`` null.

        Parameters
        ----------
        path : where the run is to be. Where a complete one stands there, ``self.path`` is a directory beside it until
            `close`.
        identity : what the run is: experiment resolved in full, its hash, policy, backend, seed ...

        Raises
        ------
        InputError
            The directory holds something that is not a run, or a valid run of something else; or it cannot be
            written.
        """
        before = complete_run(path)
        if before is not None:
            _refuse_foreign(path, before, identity)
            path = staging_of(path)
        self.path = path
        try:
            if before is not None:
                shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "run.json").exists() and any(p for p in path.iterdir() if not p.name.startswith(".")):
                raise InputError(
                    "the directory holds files that are not a run's", where=str(path), hint="choose another --out"
                )
            # run.json goes last: a crash in between leaves a directory that a new run may still take over.
            for name in reversed(FILES):
                (path / name).unlink(missing_ok=True)
            for left in path.glob(".*.*"):
                if left.is_file() and left.name.startswith(tuple(f".{name}." for name in FILES)):
                    left.unlink()
        except OSError as error:
            raise InputError(
                f"cannot be used for results: {error.strerror}", where=str(path), hint="choose another --out"
            ) from None
        self.info: dict[str, Any] = {
            **identity,
            "versions": versions(),
            "machine": machine(),
            "commits": commits(),
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

    def write_summary(self, summary: Mapping[str, object]) -> None:
        """Write ``summary.json``."""
        write_json(self.path / "summary.json", summary)

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """A parquet file; the same table gives the same bytes."""

        def write(temporary: Path) -> None:
            # No pandas index: its metadata would only repeat row numbers.
            table.to_parquet(temporary, engine="pyarrow", compression="zstd", index=False)

        replace_file(self.path / name, write)

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file as a whole."""
        write_text(self.path / name, text)

    def write_lines(self, name: str, entries: Iterable[Mapping[str, object]]) -> None:
        """A file of JSON objects, one a line."""

        def write(temporary: Path) -> None:
            with temporary.open("w", encoding="utf-8") as stream:
                for entry in entries:
                    stream.write(json.dumps(plain(entry), ensure_ascii=False, allow_nan=False) + "\n")

        replace_file(self.path / name, write)

    @staticmethod
    def close(path: Path, exit_code: int, why: str | None = None) -> Path:
        """Close a run directory: ``end`` and ``exit`` (the command's codes) in ``run.json``, and why, if not 0.

        Parameters
        ----------
        path : the directory as it was written.
        exit_code : the run's.
        why : why it is not 0.

        Returns
        -------
        Path
            Where the run is now: one that was written beside an earlier run takes its place when it is complete.
        """
        info = read_json(path / "run.json")
        info.pop("progress", None)
        info.update(end=_now(), exit=exit_code)
        if why is not None:
            info["why"] = why
        write_json(path / "run.json", info)
        name = path.name.removeprefix(".").removesuffix(".new")
        target = path.with_name(name)
        return settle(path, target) if name and path == staging_of(target) else path


def _refuse_foreign(path: Path, before: Mapping[str, object], identity: Mapping[str, object]) -> None:
    """Raises InputError where a valid run of something else stands."""
    if before["exit"] != 0:
        return
    for key in _SAME:
        if key in before and key in identity and before[key] != identity[key]:
            experiment = before.get("experiment")
            name = experiment.get("experiment") if isinstance(experiment, Mapping) else None
            if key == "hash" and name == _name_of(identity):
                continue  # An edited experiment: the run of its earlier version is replaced by a complete one.
            what = f"experiment {name}, variant {before.get('variant')}, backend {before.get('backend')}"
            raise InputError(
                f"it holds another run ({what})", where=str(path), hint="choose another --out, or remove it"
            )


def _name_of(identity: Mapping[str, object]) -> Any:
    experiment = identity.get("experiment")
    return experiment.get("experiment") if isinstance(experiment, Mapping) else None
