"""A run directory on disk: opened as unfinished, files written atomically, closed with an exit code.

``run.json`` exists from the beginning with ``"exit": null``; every file is written beside its place and renamed, so no
reader ever sees a partial file, even after a crash or kill -9.

A completed run keeps its directory until another one replaces it: a new run in the same place is written beside it
(``.NAME.new``), and the two are exchanged when the new one is complete. An interrupted run changes nothing.
"""

from __future__ import annotations

import contextlib
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
from harness.results.intact import KEY, digests

if TYPE_CHECKING:
    import pandas as pd

#: Every file that a run directory may have; a new run in the same place removes these first.
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


#: Exit codes of completed runs: success, jobs failed, timed out.
COMPLETE = (0, 4, 5)
#: Keys of ``run.json`` that must be equal for one run to replace another.
_SAME = ("hash", "variant", "backend", "place")


def staging_of(path: Path) -> Path:
    """Return the directory in which a run is written while an earlier, complete one is at `path`."""
    return path.with_name(f".{path.name}.new")


def earlier_of(path: Path) -> Path:
    """Return the directory in which a valid run is kept after an invalid run has replaced it."""
    return path.with_name(f".{path.name}.old")


def complete_run(path: Path) -> dict[str, Any] | None:
    """Return ``run.json`` of a completed run; None if there is none."""
    try:
        info = read_json(path / "run.json")
    except InputError:
        return None
    return info if info.get("exit") in COMPLETE else None


def settle(staged: Path, target: Path) -> Path:
    """Move a run written beside its place into it, if it is complete or the place has no complete run.

    Parameters
    ----------
    staged : the run's directory as it was written.
    target : its place. A valid run (exit 0) at this place is moved to `earlier_of` if the new one is invalid; any other
        run is removed.

    Returns
    -------
    Path
        The run's present directory.

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
    """Return the versions on which results depend: ours, Python's and those of the numeric packages."""
    found = {"yarnfair": "", "python": platform.python_version()}
    for name in ("yarnfair", "numpy", "numba", "pandas", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """Return a description of this machine: system, processor, cores."""
    return {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()}


class WriteThrottle:
    """Limits how often collected data is written, so that writing takes a small part of the time.

    ::

        throttle = WriteThrottle()
        while ...:
            if throttle.due():
                with throttle:
                    write everything
    """

    #: Minimum time between writes, absolutely and as a multiple of the duration of the last write.
    LEAST_S, TIMES = 2.0, 20.0

    def __init__(self) -> None:
        self._next = time.monotonic() + self.LEAST_S
        self._began = 0.0

    def due(self) -> bool:
        """Return whether it is time to write again."""
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
        path : the place of the run. If it has a complete run, ``self.path`` is a directory beside it until `close`.
        identity : the identity of the run: resolved experiment, its hash, policy, backend, seed ...

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
            # run.json is removed last: a crash in between leaves a directory that a new run may still take over.
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
        """Add values to ``run.json`` that only became known now."""
        self.info.update(what)
        write_json(self.path / "run.json", self.info)

    def progress(self, **figures: Any) -> None:
        """Record the run's progress in ``run.json``."""
        self.note(progress=figures)

    def write_summary(self, summary: Mapping[str, object]) -> None:
        """Write ``summary.json``."""
        write_json(self.path / "summary.json", summary)

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a parquet file; the same table gives the same bytes."""

        def write(temporary: Path) -> None:
            # No pandas index: its metadata would only repeat row numbers.
            table.to_parquet(temporary, engine="pyarrow", compression="zstd", index=False)

        replace_file(self.path / name, write)

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file atomically."""
        write_text(self.path / name, text)

    def write_lines(self, name: str, entries: Iterable[Mapping[str, object]]) -> None:
        """Write a file of JSON objects, one a line."""

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
        exit_code : the run's exit code.
        why : the reason if it is not 0.

        Returns
        -------
        Path
            The run's present directory: a complete run that was written beside an earlier one has replaced it.
        """
        info = read_json(path / "run.json")
        info.pop("progress", None)
        info.update(end=_now(), exit=exit_code)
        with contextlib.suppress(OSError):  # without digests, a reader checks less
            info[KEY] = digests(path)
        if why is not None:
            info["why"] = why
        write_json(path / "run.json", info)
        name = path.name.removeprefix(".").removesuffix(".new")
        target = path.with_name(name)
        return settle(path, target) if name and path == staging_of(target) else path


def _refuse_foreign(path: Path, before: Mapping[str, object], identity: Mapping[str, object]) -> None:
    """Raise InputError if a valid run of something else is at the path."""
    if before["exit"] != 0:
        return
    for key in _SAME:
        if key in before and key in identity and before[key] != identity[key]:
            experiment = before.get("experiment")
            name = experiment.get("experiment") if isinstance(experiment, Mapping) else None
            if key == "hash" and name == _name_of(identity):
                continue  # An edited experiment: a complete run replaces the run of the earlier version.
            what = f"experiment {name}, variant {before.get('variant')}, backend {before.get('backend')}"
            raise InputError(
                f"it holds another run ({what})", where=str(path), hint="choose another --out, or remove it"
            )


def _name_of(identity: Mapping[str, object]) -> Any:
    experiment = identity.get("experiment")
    return experiment.get("experiment") if isinstance(experiment, Mapping) else None
