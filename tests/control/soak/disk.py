"""A machine's disk under the real file and ledger code: each write, sync and rename may fail, take long or be the last.

Files are real ones in a folder in memory (links, pipes and modes are the system's own); this stands between the code
and the system's calls. What a loss of power takes away is modelled: bytes that were not synced, renames whose folder
was not. SQLite's file is a real one too: Python gives no hold on SQLite's own writes, so that a crash takes a copy of
the ledger's files at that moment, with pages of a broken transaction behind them, and goes on from the copy.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.base import files


class Killed(BaseException):
    """The process ended here."""


class Disk:
    """What one machine's calls meet. ``on_replaced`` is told of every file that was moved to its place."""

    def __init__(self, name: str, wait: Callable[[float], None], on_replaced: Callable[[Path], None]) -> None:
        self._name = name
        self._wait, self._on_replaced = wait, on_replaced
        self._numbers = itertools.count()
        #: The operation at which the process is killed (None: none), counted down; whether power goes too.
        self.kill_in: int | None = None
        self.power = False
        self.dead = False
        #: Seconds that each operation takes.
        self.slow_s = 0.0
        #: What each write meets ("" nothing): the allocation file's folder, the ledger's.
        self.file_error = self.ledger_error = ""
        self.rng = random.Random(0)
        self.on_kill: Callable[[], None] = lambda: None
        self._unsynced: dict[str, None] = {}
        self._renames: list[tuple[str, bytes | None]] = []
        self.operations = 0

    def step(self) -> None:
        """One operation of the disk."""
        if self.dead:
            raise Killed
        self.operations += 1
        if self.slow_s:
            self._wait(self.slow_s)
        if self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in < 0:
                self.kill()

    def kill(self) -> None:
        self.dead, self.kill_in = True, None
        self.on_kill()
        if self.power:
            self._lose_power()
        raise Killed

    def _lose_power(self) -> None:
        """What was not synced is there in part; a rename whose folder was not synced may not have been."""
        for path, before in reversed(self._renames):
            if self.rng.random() < 0.5:
                if before is None:
                    Path(path).unlink(missing_ok=True)
                else:
                    Path(path).write_bytes(before)
                self._unsynced.pop(path, None)
                self._on_replaced(Path(path))
        for path in self._unsynced:
            if os.path.isfile(path):
                data = Path(path).read_bytes()
                Path(path).write_bytes(data[: self.rng.randrange(len(data) + 1)])
                self._on_replaced(Path(path))

    # --- what harness.yarn.files and harness.base.files call ---

    def check(self, error: str) -> None:
        if error == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if error == "read-only":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def mkstemp(self, *, dir: Any, prefix: str, suffix: str = "") -> tuple[int, str]:
        self.step()
        self.check("read-only" if self.file_error == "read-only" else "")
        path = os.path.join(str(dir), f"{prefix}{self._name}-{next(self._numbers):06d}{suffix}")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._unsynced[path] = None
        return handle, path

    def write(self, handle: int, data: bytes) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        half = self.rng.randrange(len(data) + 1)
        if self.file_error == "full" or (self.kill_in == 0 and self.rng.random() < 0.5):
            os.write(handle, data[:half])
        self.step()
        self.check(self.file_error)
        os.write(handle, data)
        self._unsynced[path] = None
        if path.endswith((".xml", ".lease", ".standby")):
            self._on_replaced(Path(path))

    def fsync(self, handle: int) -> None:
        self.step()
        path = os.readlink(f"/proc/self/fd/{handle}")
        if os.path.isdir(path):
            self._renames.clear()
        else:
            self._unsynced.pop(path, None)
            # What was renamed is known by its new name.

    def replace(self, old: str, new: Any) -> None:
        self._rename(old, str(new), os.replace)

    def exchange(self, one: Any, other: Any) -> bool:
        if not os.path.isfile(other):
            return False
        self._rename(str(one), str(other), files.exchange)
        return True

    def _rename(self, old: str, target: str, rename: Callable[[str, str], object]) -> None:
        self.step()
        self.check("read-only" if self.file_error == "read-only" else "")
        before = Path(target).read_bytes() if os.path.isfile(target) else None
        rename(old, target)
        if old in self._unsynced:
            del self._unsynced[old]
            self._unsynced[target] = None
        self._renames.append((target, before))
        self._on_replaced(Path(target))

    def unlink(self, path: Any) -> None:
        self.step()
        os.unlink(path)


class OsModule:
    """Stands where a module has imported `os`; the disk of the machine that is at work answers for files."""

    def __init__(self, disk: Callable[[], Disk]) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fdopen(self, handle: int, mode: str) -> Any:
        return _Out(handle, self._disk())

    def write(self, handle: int, data: bytes) -> int:
        self._disk().write(handle, data)
        return len(data)

    def fsync(self, handle: int) -> None:
        self._disk().fsync(handle)

    def replace(self, old: str, new: Any) -> None:
        self._disk().replace(str(old), new)

    def unlink(self, path: Any) -> None:
        self._disk().unlink(path)


class TempfileModule:
    """Stands where a module has imported `tempfile`."""

    def __init__(self, disk: Callable[[], Disk]) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(tempfile, name)

    def mkstemp(self, **where: Any) -> tuple[int, str]:
        return self._disk().mkstemp(**where)


class _Out:
    """A file that is being written."""

    def __init__(self, handle: int, disk: Disk) -> None:
        self._handle, self._disk = handle, disk

    def __enter__(self) -> _Out:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def write(self, data: bytes) -> None:
        self._disk.write(self._handle, data)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        return self._handle


class SqliteModule:
    """Stands where the ledger's store has imported `sqlite3`."""

    def __init__(self, disk: Callable[[], Disk]) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)

    def connect(self, path: Any, **options: Any) -> Any:
        return LedgerConnection(sqlite3.connect(path, **options), self._disk())


class LedgerConnection:
    """A connection whose transactions may fail or be a process' last deed."""

    def __init__(self, real: sqlite3.Connection, disk: Disk) -> None:
        self._real, self._disk = real, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, *given: Any) -> Any:
        if statement.startswith("BEGIN"):
            self._step()
        elif statement.startswith("INSERT"):
            self._check()
        return self._real.execute(statement, *given)

    def executemany(self, statement: str, rows: Any) -> Any:
        self._check()
        return self._real.executemany(statement, rows)

    def __enter__(self) -> LedgerConnection:
        self._real.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        if error[0] is None:
            self._step()
        elif issubclass(error[0], Killed):
            return False
        ended = self._real.__exit__(*error)
        if error[0] is None:
            self._step()
        return ended

    def close(self) -> None:
        self._real.close()

    def _step(self) -> None:
        self._disk.step()
        self._check()

    def _check(self) -> None:
        if self._disk.ledger_error == "full":
            raise sqlite3.OperationalError("database or disk is full")
        if self._disk.ledger_error == "read-only":
            raise sqlite3.OperationalError("attempt to write a readonly database")
