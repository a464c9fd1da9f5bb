"""The durable ledger: one SQLite file that one controller writes while other processes may read it.

Every `commit` is one transaction: a process killed at any moment leaves either the state before it or the state after
it. The file stores accounts of applications and queues (harness.ledger.accounts), named documents (the ledger, the
administrator's attributes, the last poll), and the decisions. This module contains no policy and no arithmetic.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from harness.base.errors import InputError
from harness.ledger.accounts import AppAccount, QueueAccount, RmAccounts
from harness.ledger.ledger import Usage
from harness.model.resources import Resource

FORMAT = 3
#: Maximum number of stored decisions: the latest, a week's minutes (10,080) and a year's hours (8,760).
MOST_DECISIONS = 30_000
#: Number of latest decisions that are all kept. Earlier decisions are thinned (`_thin`).
LATEST_DECISIONS = 10_000
#: (age, interval), seconds: of decisions of at least this age, one is kept per interval.
_THINNED_S = ((0.0, 60.0), (7 * 86_400.0, 3600.0))
#: Number of new decisions after which old ones are thinned.
_THIN_EVERY = 100
_DELETE_OLDEST = (
    "DELETE FROM decisions WHERE number <= (SELECT number FROM decisions ORDER BY number DESC LIMIT 1 OFFSET ?)"
)
_SCHEMA = """
CREATE TABLE documents (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE apps (
  id TEXT PRIMARY KEY, queue TEXT NOT NULL, memory_mb_s INTEGER NOT NULL, vcore_s INTEGER NOT NULL,
  moved_s REAL NOT NULL, held_mb INTEGER NOT NULL, held_vcores INTEGER NOT NULL, final INTEGER NOT NULL,
  fallen_s REAL, lost_from_s REAL,
  lost_held_mb INTEGER NOT NULL DEFAULT 0, lost_held_vcores INTEGER NOT NULL DEFAULT 0,
  started_s REAL, behind_mb_s REAL NOT NULL DEFAULT 9e999, behind_vcore_s REAL NOT NULL DEFAULT 9e999) WITHOUT ROWID;
CREATE TABLE queues (
  path TEXT PRIMARY KEY, memory_mb_s REAL NOT NULL, vcore_s REAL NOT NULL,
  reported_mb_s REAL NOT NULL, reported_vcore_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE decisions (number INTEGER PRIMARY KEY AUTOINCREMENT, time_s REAL NOT NULL, content TEXT NOT NULL);
"""
#: Upgrades of earlier formats: format -> statements that convert it to the next one.
_LACKING = {
    1: """
ALTER TABLE apps ADD COLUMN lost_held_mb INTEGER NOT NULL DEFAULT 0;
ALTER TABLE apps ADD COLUMN lost_held_vcores INTEGER NOT NULL DEFAULT 0;
""",
    2: """
ALTER TABLE apps ADD COLUMN started_s REAL;
ALTER TABLE apps ADD COLUMN behind_mb_s REAL NOT NULL DEFAULT 9e999;
ALTER TABLE apps ADD COLUMN behind_vcore_s REAL NOT NULL DEFAULT 9e999;
""",
}
#: Leaves unchanged documents alone: most have not changed, and rewriting them would cost disk writes.
_KEEP_DOCUMENT = (
    "INSERT INTO documents VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET content = excluded.content WHERE content <> excluded.content"
)
_text = json.JSONEncoder(ensure_ascii=False).encode


#: Documents that record who owns the values in the scheduler's configuration (`harness.control.ownership`).
OWNERSHIP = (
    *("baseline", "ours", "named", "texts", "departed", "written", "returned"),
    *("generation", "from_copy"),
)


class StoreFull(InputError):
    """The ledger could not be written (disk full, permission lost); the file keeps its last state.

    Opening a ledger raises it if the disk is full or fails, because a later attempt may succeed.
    """


class LedgerStore:
    """The ledger file of one controller.

    Raises InputError if the file cannot be used: another controller is using it, it is damaged, or it is no ledger.
    Raises StoreFull if its disk is full or fails, or if an existing ledger cannot be written (read-only disk, revoked
    permissions).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock(path)
        try:
            self._db = _connect(path, keeps=True)
            try:
                self._prepare()
                #: The highest ``generation`` that this ledger has stored, according to its lock file. A ledger whose
                #: document has a lower one is an older copy.
                self.seen_generation = self._read_lock()[0]
                #: Content that this process last wrote to the lock file.
                self._locked = b""
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Further calls have no effect."""
        # Everything was committed; release the lock even if SQLite fails.
        with contextlib.suppress(sqlite3.Error):
            self._db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def identity(self) -> str:
        """ID created with the file; it distinguishes controllers."""
        return str(self.document("identity"))

    def _prepare(self) -> None:
        with _errors(self.path, keeps=True):
            self._check_writable()
            #: Identity of the open file: after a deletion or replacement, further writes would be lost.
            self._file = _file_of(self.path)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and tables == 0:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")
                self.commit(documents={"identity": uuid.uuid4().hex})
            elif version in _LACKING:
                added = "".join(_LACKING[known] for known in range(version, FORMAT))
                self._db.executescript(f"BEGIN; {added} PRAGMA user_version={FORMAT}; COMMIT;")
            elif version != FORMAT:
                raise InputError(
                    "no ledger of this version of yarnfair", where=str(self.path), hint="give another file"
                )
            # Commits must survive a power failure.
            self._db.execute("PRAGMA synchronous=FULL")
            bad = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if bad != "ok":
                raise sqlite3.DatabaseError(bad)

    def _check_writable(self) -> None:
        """Raise if the file is not writable; SQLite would open it without an error and fail at the first write."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")

    def document(self, name: str) -> Any:
        """Return a named document; None if there is none."""
        with _errors(self.path):
            row = self._db.execute("SELECT content FROM documents WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def accounts(self) -> RmAccounts:
        """Return the stored accounts."""
        with _errors(self.path):
            apps = {row.id: _account(row) for row in map(_AppRow._make, self._db.execute("SELECT * FROM apps"))}
            queues = {
                row[0]: QueueAccount(row[1], row[2], Usage(row[3], row[4]))
                for row in self._db.execute("SELECT * FROM queues")
            }
        looked = self.document("looked_s")
        return RmAccounts(apps, queues, looked_s=None if looked is None else float(looked))

    def _thin(self, latest: int, now_s: float) -> None:
        """Thin old decisions: keep the latest, of earlier ones one a minute, and after a week one an hour.

        With a decision every five seconds, 10,000 of them reach back 14 hours. Thinned, the table covers over a year.
        """
        limit = latest - min(LATEST_DECISIONS, MOST_DECISIONS)
        for age_s, every_s in _THINNED_S:
            old = "number <= ? AND time_s <= ?"
            self._db.execute(
                f"DELETE FROM decisions WHERE {old} AND number NOT IN "
                f"(SELECT MAX(number) FROM decisions WHERE {old} GROUP BY CAST(time_s / ? AS INTEGER))",
                (limit, now_s - age_s, limit, now_s - age_s, every_s),
            )

    def commit(
        self,
        *,
        accounts: RmAccounts | None = None,
        documents: Mapping[str, Any] | None = None,
        decision: Mapping[str, Any] | None = None,
    ) -> None:
        """Store everything in one transaction. ``accounts``: only changes since the last commit are written.

        Raises StoreFull if that fails; nothing was stored then, and the caller may try again later.
        """
        self._check_there()
        texts = {name: _text(content) for name, content in (documents or {}).items()}
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                if accounts is not None:
                    self._keep(accounts)
                self._db.executemany(_KEEP_DOCUMENT, list(texts.items()))
                if decision is not None:
                    added = self._db.execute(
                        "INSERT INTO decisions (time_s, content) VALUES (?, ?)",
                        (decision["time_s"], _text(decision)),
                    ).lastrowid
                    if (added or 0) % _THIN_EVERY == 0:
                        self._thin(added or 0, float(decision["time_s"]))
                    self._db.execute(_DELETE_OLDEST, (MOST_DECISIONS,))
        except (sqlite3.Error, OSError) as error:
            hint = _ROOM if _disk_fails(error) else None
            raise StoreFull(f"the ledger cannot be written: {error}", where=str(self.path), hint=hint) from None
        if accounts is not None:
            accounts.saved()
        generation = (documents or {}).get("generation")
        if isinstance(generation, int):
            self._write_lock(generation, texts)

    def latest_ownership(self) -> dict[str, Any] | None:
        """Return the `OWNERSHIP` documents of `seen_generation` from the lock file; a copy of the ledger lacks them.

        None if the lock file does not contain them, because an earlier version of this program wrote it or because only
        part of it reached the disk.
        """
        generation, text = self._read_lock()
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        right = isinstance(found, dict) and found.get("generation") == generation == self.seen_generation
        return found if right else None

    def _read_lock(self) -> tuple[int, bytes]:
        """Return the generation of this ledger in the lock file (0: none), and the text of the documents there."""
        try:
            data = os.pread(self._lock, os.fstat(self._lock).st_size, 0)
            first, _, rest = data.partition(b"\n")
            known = json.loads(first or b"{}")
            if known["identity"] == self.identity:
                return int(known["generation"]), rest.partition(b"\n")[0]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        return 0, b""

    def _write_lock(self, generation: int, texts: Mapping[str, str]) -> None:
        """Write the generation and the ownership to the lock file, which restoring a copy of the ledger keeps."""
        if generation < self.seen_generation:
            return
        self.seen_generation = generation
        first = json.dumps({"identity": self.identity, "generation": generation})
        rest = ", ".join(f"{json.dumps(name)}: {text}" for name, text in texts.items() if name in OWNERSHIP)
        data = f"{first}\n{{{rest}}}\n".encode()
        if data == self._locked:
            return
        # A failure is harmless, because the lease beside the scheduler's file contains the same documents.
        with contextlib.suppress(OSError):
            whole = os.pwrite(self._lock, data, 0) == len(data)
            os.ftruncate(self._lock, len(data))
            # After a partial write, the next commit writes the file again.
            self._locked = data if whole else b""

    def _check_there(self) -> None:
        """Raise StoreFull if the open file is no longer the one at the path."""
        now = _file_of(self.path)
        if now != self._file:
            what = "deleted" if now is None else "replaced by another file"
            raise StoreFull(
                f"the ledger was {what} while it was in use: what is counted now is kept nowhere",
                where=str(self.path),
                hint="stop the controller before touching its ledger; restart it now to go on with what is there",
            )

    def _keep(self, accounts: RmAccounts) -> None:
        self._db.executemany("DELETE FROM apps WHERE id = ?", [(app,) for app in accounts.gone_apps])
        changed = [(app, accounts.apps[app]) for app in accounts.changed_apps]
        self._db.executemany(
            f"INSERT OR REPLACE INTO apps VALUES (?{', ?' * 14})",
            [(app, *_kept_of(account), *account.behind) for app, account in changed],
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO queues VALUES (?, ?, ?, ?, ?)",
            [
                (path, q.memory_mb_s, q.vcore_s, *q.reported)
                for path in accounts.changed_queues
                for q in (accounts.queues[path],)
            ],
        )
        self._db.execute(_KEEP_DOCUMENT, ("looked_s", _text(accounts.looked_s)))


#: Attributes stored in an application's columns, in order, except its ID and the two columns of `behind`.
_kept_of = attrgetter(
    *("queue", "memory_mb_s", "vcore_s", "moved_s", "held.memory_mb", "held.vcores", "final"),
    *("fallen_s", "lost_from_s", "lost_held.memory_mb", "lost_held.vcores", "started_s"),
)


class _AppRow(NamedTuple):
    """A row of the table ``apps``, in the order of its columns. NULL is None."""

    id: str
    queue: str
    memory_mb_s: int
    vcore_s: int
    moved_s: float
    held_mb: int
    held_vcores: int
    final: int
    fallen_s: float | None
    lost_from_s: float | None
    lost_held_mb: int
    lost_held_vcores: int
    started_s: float | None
    behind_mb_s: float
    behind_vcore_s: float


def _account(row: _AppRow) -> AppAccount:
    """Convert a row to an account; the inverse of `_kept_of`."""
    held = Resource(row.held_mb, row.held_vcores)
    account = AppAccount(row.queue, row.memory_mb_s, row.vcore_s, row.moved_s, held, bool(row.final))
    account.fallen_s, account.lost_from_s = row.fallen_s, row.lost_from_s
    account.lost_held = Resource(row.lost_held_mb, row.lost_held_vcores)
    account.started_s, account.behind = row.started_s, Usage(row.behind_mb_s, row.behind_vcore_s)
    return account


def copy_ledger(source: Path, target: Path) -> None:
    """Copy a ledger and its lock file's content; the copy is consistent even while a controller writes the ledger.

    Raises InputError.
    """
    with _reader(source) as db, _errors(source), contextlib.closing(sqlite3.connect(target)) as copy:
        db.backup(copy)
    with contextlib.suppress(OSError):
        _lock_file(target).write_bytes(_lock_file(source).read_bytes())


def is_in_use(path: Path) -> bool:
    """Return whether a controller is using a ledger, as far as its lock can be read."""
    try:
        handle = os.open(_lock_file(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def write_document(path: Path, name: str, content: object) -> None:
    """Store a named document in an existing ledger, even while a controller is using it. Raises InputError."""
    with contextlib.closing(_connect(path)) as db, _errors(path):
        db.execute(_KEEP_DOCUMENT, (name, _text(content)))


def read_documents(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Read named documents in one transaction (None: no such document). A controller may be writing the ledger."""
    with _reader(path) as db:
        rows = dict(db.execute(f"SELECT * FROM documents WHERE name IN ({','.join('?' * len(names))})", list(names)))
    return {name: json.loads(rows[name]) if name in rows else None for name in names}


def read_decisions(path: Path, *, most: int = 100) -> list[dict[str, Any]]:
    """Read the latest decisions, oldest first."""
    with _reader(path) as db:
        rows = db.execute("SELECT content FROM decisions ORDER BY number DESC LIMIT ?", (most,)).fetchall()
    return [json.loads(row[0]) for row in reversed(rows)]


@contextlib.contextmanager
def _reader(path: Path) -> Iterator[sqlite3.Connection]:
    if not os.path.isfile(path):
        raise InputError("no such ledger", where=str(path), hint=_OTHER_FILE)
    with _errors(path), contextlib.closing(_look_into(path)) as db:
        yield db


def _look_into(path: Path) -> sqlite3.Connection:
    """Open a read-only connection.

    SQLite needs files beside a ledger in write-ahead mode. A reader without permission to create them opens the ledger
    as immutable, which is correct only while no write-ahead log exists. A running controller always has one.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    db = sqlite3.connect(address, uri=True)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        db.close()
        if path.with_name(path.name + "-wal").exists():
            raise
        db = sqlite3.connect(f"{address}&immutable=1", uri=True)
    except BaseException:
        db.close()
        raise
    return db


_ROOM = "make room on its disk, or mend it"
_RIGHTS = "run as the user who may write it and its folder, or make both writable"
_OTHER_FILE = "give the `ledger` of the controller's configuration"


@contextlib.contextmanager
def _errors(path: Path, *, keeps: bool = False) -> Iterator[None]:
    """Convert errors of SQLite and of file access. ``keeps``: the caller writes the ledger.

    For a writer, a ledger that is not writable raises StoreFull like a full disk, because a later attempt may succeed.
    """
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError) as error:
        if _disk_fails(error):
            raise StoreFull(f"the ledger cannot be opened: {error}", where=str(path), hint=_ROOM) from None
        if keeps and (_read_only(error) or (_not_allowed(error) and path.exists())):
            raise StoreFull(f"the ledger cannot be written: {error}", where=str(path), hint=_RIGHTS) from None
        raise InputError(f"the ledger cannot be read: {error}", where=str(path), hint=_hint(error)) from None


def _disk_fails(error: Exception) -> bool:
    """Return whether the ledger's disk is full or broken, while the ledger itself is intact."""
    # The lowest byte of SQLite's extended codes is the basic code.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return full or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def _not_allowed(error: Exception) -> bool:
    """Return whether a file is not writable, because its disk is read-only or it is another user's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    refused = code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
    return refused or getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EROFS)


def _read_only(error: Exception) -> bool:
    """Return whether a ledger that could be opened is not writable."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY


def _file_of(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path (None: there is no file)."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _hint(error: Exception) -> str:
    """Return the hint for an error.

    Moving the ledger away loses its accounts, so it is suggested only for a damaged ledger.
    """
    if not isinstance(error, sqlite3.OperationalError):
        return "move it away to begin a new one"
    text = str(error)
    if "locked" in text or "busy" in text:
        return "it is in use: try again"
    if "no such table" in text or "no such column" in text:
        return _OTHER_FILE
    return "ask as the user who may write it and its folder"


def _connect(path: Path, *, keeps: bool = False) -> sqlite3.Connection:
    with _errors(path, keeps=keeps):
        # The controller's thread creates the connection and its main thread may close it, but never at the same time.
        return sqlite3.connect(path, isolation_level=None, timeout=10.0, check_same_thread=False)


def _lock_file(path: Path) -> Path:
    """Return the file beside a ledger that is locked while a controller uses it."""
    return path.with_name(path.name + ".lock")


def _lock(path: Path) -> int:
    """Take an exclusive lock on a file beside the ledger; the system releases it when the process ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(_lock_file(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if _disk_fails(error):
            raise StoreFull(f"the ledger cannot be opened: {reason}", where=str(path), hint=_ROOM) from None
        if isinstance(error, OSError) and _not_allowed(error) and path.exists():
            raise StoreFull(f"the ledger cannot be written: {reason}", where=str(path), hint=_RIGHTS) from None
        raise InputError(
            f"cannot be used: {reason}", where=str(path), hint="give a file in a folder of yours"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise InputError(
            "another controller is at work with this ledger", where=str(path), hint="stop it, or give another ledger"
        ) from None
    return handle
