"""A campaign's state in SQLite: its cells and the state of each. Every change is written before it takes effect.

The file stays consistent whatever kills the process; a cell that was running is found as running and runs again.
Changes go to SQLite's write-ahead log without waiting for the disk (two waits per cell took longer than a short cell).
If the machine itself fails, the last cells may be found as running although they had ended; they run again too.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.base.errors import InputError
from harness.base.files import holding
from harness.experiments.campaign.spec import Cell

FORMAT = 1
State = Literal["waiting", "running", "done", "failed"]
#: Names of the state file: of a campaign, and of the single experiment of `yarnfair run`.
FILE, RUN_FILE = "campaign.sqlite", ".run.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cells (
  id TEXT PRIMARY KEY, position INTEGER NOT NULL, current INTEGER NOT NULL, name TEXT NOT NULL,
  experiment TEXT NOT NULL, hash TEXT NOT NULL,
  variant TEXT NOT NULL, policy TEXT NOT NULL, seed INTEGER NOT NULL, backend TEXT NOT NULL,
  repeat INTEGER NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, exit INTEGER, why TEXT,
  may_retry INTEGER NOT NULL DEFAULT 0, started REAL, ended REAL, wall_s REAL
);
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of one cell."""

    id: str
    name: str
    experiment: str
    policy: str
    state: State
    attempts: int
    exit: int | None
    why: str | None
    may_retry: bool
    wall_s: float | None


class CampaignState:
    """The state file of one campaign's folder."""

    def __init__(self, out: Path, name: str = FILE) -> None:
        """Open or create the file.

        Raises InputError if it is not a campaign's, or the folder cannot be written.
        """
        self.out, self.path = out, out / name
        self._ahead = False
        try:
            out.mkdir(parents=True, exist_ok=True)
            # Autocommit: each statement is a separate transaction.
            self.db = sqlite3.connect(self.path, isolation_level=None, timeout=30.0)
            self.db.executescript(_TABLES)
            known = self.get("format")
            if known is None:
                self.set("format", str(FORMAT))
            elif known != str(FORMAT):
                raise InputError(f"a campaign of format {known}", where=str(self.path), hint="choose another --out")
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"cannot be used for a campaign: {error}", where=str(self.path), hint="choose another --out"
            ) from None

    def close(self) -> None:
        """Close the file; merge the write-ahead log so that one file remains."""
        if self._ahead:
            # Merge into one file, also for readers without write permission; not while another process has it open.
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.close()

    def get(self, key: str) -> str | None:
        """Return the value of a key; None if it is not set."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row is not None else None

    def set(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def adopt(self, cells: Sequence[Cell]) -> list[str]:
        """Set the campaign's cells.

        New cells wait. Known cells keep their state, except that running ones wait again and do not lose the attempt.
        Returns the ids of cells that no longer belong to the campaign.
        """
        # A runner of a campaign calls this first; readers leave the file as it is.
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self._ahead = True
        with self._transaction():
            self.db.execute("UPDATE cells SET current = 0")
            for position, cell in enumerate(cells):
                self.db.execute(
                    "INSERT INTO cells (id, position, current, name, experiment, hash, variant, policy, seed, backend,"
                    " repeat, state) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')"
                    " ON CONFLICT (id) DO UPDATE SET current = 1, position = excluded.position",
                    (
                        cell.id,
                        position,
                        cell.name,
                        cell.experiment,
                        cell.hash,
                        cell.variant.name,
                        cell.variant.policy,
                        cell.variant.seed,
                        cell.backend,
                        cell.repeat,
                    ),
                )
            # The campaign was killed while they ran, which is not a failed attempt of theirs.
            self.db.execute(
                "UPDATE cells SET state = 'waiting', attempts = MAX(attempts - 1, 0) WHERE state = 'running'"
            )
        rows = self.db.execute("SELECT id FROM cells WHERE current = 0").fetchall()
        return [str(row[0]) for row in rows]

    def forget(self, id_: str) -> None:
        """Delete a cell."""
        self.db.execute("DELETE FROM cells WHERE id = ?", (id_,))

    def again(self, id_: str) -> None:
        """Let a cell run again."""
        self.db.execute(
            "UPDATE cells SET state = 'waiting', attempts = 0, exit = NULL, why = NULL WHERE id = ?", (id_,)
        )

    def begin(self, id_: str) -> int:
        """Record that a cell runs; return the number of the attempt."""
        row = self.db.execute(
            "UPDATE cells SET state = 'running', attempts = attempts + 1, started = ?, why = NULL WHERE id = ?"
            " RETURNING attempts",
            (time.time(), id_),
        ).fetchone()
        return int(row[0])

    def waits(self, id_: str, why: str | None = None) -> None:
        """Put a cell back to waiting, to be tried again."""
        self.db.execute("UPDATE cells SET state = 'waiting', why = ? WHERE id = ?", (why, id_))

    def interrupted(self, id_: str) -> None:
        """Put an interrupted cell back to waiting; the attempt does not count."""
        self.db.execute(
            "UPDATE cells SET state = 'waiting', why = 'interrupted', attempts = MAX(attempts - 1, 0) WHERE id = ?",
            (id_,),
        )

    def end(self, id_: str, *, exit_code: int, why: str | None, may_retry: bool, wall_s: float | None) -> None:
        """Record how an attempt at a cell ended: `exit_code` 0 is success; `wall_s` in seconds."""
        state: State = "done" if exit_code == 0 else "failed"
        self.db.execute(
            "UPDATE cells SET state = ?, exit = ?, why = ?, may_retry = ?, ended = ?, wall_s = ? WHERE id = ?",
            (state, exit_code, why, int(may_retry), time.time(), wall_s, id_),
        )

    def standings(self) -> list[Standing]:
        """Return the state of the campaign's cells in their order."""
        rows = self.db.execute(
            "SELECT id, name, experiment, policy, state, attempts, exit, why, may_retry, wall_s FROM cells"
            " WHERE current = 1 ORDER BY position"
        )
        return [replace(standing, may_retry=bool(standing.may_retry)) for standing in (Standing(*row) for row in rows)]

    def walls(self) -> dict[tuple[str, str, str], list[float]]:
        """Return wall-clock times of finished cells by (experiment's hash, policy, backend)."""
        found: dict[tuple[str, str, str], list[float]] = {}
        for hash_, policy, backend, wall_s in self.db.execute(
            "SELECT hash, policy, backend, wall_s FROM cells WHERE state = 'done' AND wall_s IS NOT NULL"
        ):
            found.setdefault((hash_, policy, backend), []).append(wall_s)
        return found


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Lock the folder for one `campaign run`, until the process ends.

    Raises InputError if another process holds the lock.
    """
    hint = "wait for it, or choose another --out"
    busy = InputError("another `yarnfair run` or `campaign run` works here", where=str(out), hint=hint)
    with holding(out / ".lock", busy=busy, hint="choose another --out"):
        yield
