"""The ledger file: what is kept comes back, a killed writer leaves the state before or after, damage is told."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.ledger.accounts import GONE_S, AppObservation, RmAccounts
from harness.ledger.store import LedgerStore, StoreFull, _errors, copy_ledger, read_decisions, read_documents
from harness.model.resources import Resource

#: What a file of format 3 has beyond those before.
OF_3 = ("started_s", "behind_mb_s", "behind_vcore_s")


def filled(accounts: RmAccounts, at: int) -> None:
    accounts.observe(
        float(at), [AppObservation(f"x{n}", f"root.{n % 3}", at * 10, at, Resource(5, 1), False) for n in range(4)]
    )


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.db"
    with LedgerStore(path) as store:
        identity, accounts = store.identity, store.accounts()
        assert accounts.looked_s is None
        filled(accounts, 0)
        filled(accounts, 1)
        decision = {"time_s": 1.0, "weights": {"root.ä": 2.0}}
        store.commit(accounts=accounts, documents={"look": {"ü": [1, None]}}, decision=decision)
        filled(accounts, 2)
        store.commit(accounts=accounts)
    with LedgerStore(path) as store:
        again = store.accounts()
        assert store.identity == identity
        assert (again.apps, again.queues, again.looked_s) == (accounts.apps, accounts.queues, 2.0)
        assert again.consumed() == accounts.consumed()
    assert read_documents(path, ["look", "none"]) == {"look": {"ü": [1, None]}, "none": None}
    assert read_decisions(path) == [decision]
    copy_ledger(path, tmp_path / "copy.db")
    with LedgerStore(tmp_path / "copy.db") as store:
        assert store.identity == identity


@contextlib.contextmanager
def as_somebody_else() -> Iterator[None]:
    """Rights of a user whom nothing belongs to; of one who is not root, his own."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may read (pytest's own is closed to others)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_ledger_at_rest_is_read_by_who_may_write_nothing(open_folder: Path) -> None:
    path = open_folder / "l.db"
    with LedgerStore(path) as store:
        store.commit(documents={"look": 7}, decision={"time_s": 1.0})
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with as_somebody_else():
        assert read_documents(path, ["look"]) == {"look": 7}
        assert read_decisions(path) == [{"time_s": 1.0}]
    assert [file.name for file in open_folder.iterdir() if file.suffix != ".lock"] == ["l.db"]


def test_nobody_without_rights_is_told_to_move_a_sound_ledger_away(open_folder: Path) -> None:
    path = open_folder / "l.db"
    with LedgerStore(path) as store:
        store.commit(documents={"look": 7})
    (open_folder / "l.db.lock").chmod(0o666)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with as_somebody_else(), pytest.raises(InputError) as caught:
        LedgerStore(path)
    assert "move it away" not in caught.value.line()
    assert "as the user who may write it" in caught.value.line()
    # A log that a killed controller left may hold what the file does not: without it nothing is read.
    open_folder.chmod(0o755)
    path.chmod(0o000)
    path.with_name("l.db-wal").write_bytes(b"x" * 100)
    open_folder.chmod(0o555)
    with as_somebody_else(), pytest.raises(InputError) as caught:
        read_documents(path, ["look"])
    assert "move it away" not in caught.value.line()


def test_a_ledger_in_use_and_a_file_that_is_none(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(InputError, match="no such table") as caught:
        read_documents(tmp_path / "other.db", ["look"])
    assert "configuration" in caught.value.line()
    with pytest.raises(InputError, match="it is in use") as caught, _errors(tmp_path / "l.db"):
        raise sqlite3.OperationalError("database is locked")


def test_applications_that_are_gone_are_gone_from_the_file(tmp_path: Path) -> None:
    with LedgerStore(tmp_path / "l.db") as store:
        accounts = store.accounts()
        filled(accounts, 1)
        store.commit(accounts=accounts)
        accounts.forget(["x1"], 1.0)
        accounts.forget(["x1"], 1.0 + GONE_S)
        store.commit(accounts=accounts)
        assert set(store.accounts().apps) == {"x1"}


def test_one_controller_has_a_ledger(tmp_path: Path) -> None:
    with LedgerStore(tmp_path / "l.db"):
        with pytest.raises(InputError, match="another controller is at work"):
            LedgerStore(tmp_path / "l.db")
        # Whoever only looks may.
        assert read_documents(tmp_path / "l.db", ["identity"])["identity"]
    with LedgerStore(tmp_path / "l.db"):
        pass


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be taken for one" * 99, b"\0" * 5000])
def test_what_is_no_ledger_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "l.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match="the ledger cannot be read") as caught:
        LedgerStore(path)
    assert "\n" not in caught.value.line()
    with pytest.raises(InputError):
        read_documents(path, ["look"])
    assert path.read_bytes() == content


def test_another_version_and_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with LedgerStore(path) as store:
        store.commit(documents={f"d{n}": "x" * 3000 for n in range(50)})
    data = bytearray(path.read_bytes())
    data[8192:40000] = random.Random(1).randbytes(40000 - 8192)
    path.write_bytes(data)
    with pytest.raises(InputError, match="move it away"):
        LedgerStore(path)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(InputError, match="no ledger of this version"):
        LedgerStore(other)


@pytest.mark.parametrize(("version", "lacks"), [(1, ("lost_held_mb", "lost_held_vcores", *OF_3)), (2, OF_3)])
def test_a_ledger_of_a_format_before_is_brought_up_and_an_rms_recovery_is_kept(
    tmp_path: Path, version: int, lacks: tuple[str, ...]
) -> None:
    path = tmp_path / "l.db"
    with LedgerStore(path) as store:
        identity, accounts = store.identity, store.accounts()
        filled(accounts, 0)
        filled(accounts, 1)
        store.commit(accounts=accounts)
    with sqlite3.connect(path) as db:
        for column in lacks:
            db.execute(f"ALTER TABLE apps DROP COLUMN {column}")
        db.execute(f"PRAGMA user_version={version}")
    db.close()
    for _ in range(2):
        with LedgerStore(path) as store:
            again = store.accounts()
            assert (store.identity, again.apps, again.queues) == (identity, accounts.apps, accounts.queues)
    # The RM began anew, and the controller is restarted before the containers are back.
    with LedgerStore(path) as store:
        accounts = store.accounts()
        accounts.observe(5.0, [AppObservation("x1", "root.1", 0, 0, Resource(0, 0), False)], rm_began_anew=True)
        store.commit(accounts=accounts)
        again = store.accounts().apps["x1"]
        assert (again.lost_held, again.behind) == (Resource(5, 1), (10, 1))
        assert store.accounts().apps == accounts.apps


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used"):
        LedgerStore(tmp_path / "file" / "l.db")
    with pytest.raises(InputError, match="no such ledger"):
        read_documents(tmp_path / "none.db", ["look"])


def test_a_full_disk_keeps_the_last_state_and_later_all_is_made_up(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with LedgerStore(path) as store:
        accounts = store.accounts()
        filled(accounts, 0)
        store.commit(accounts=accounts)
        # SQLite's own limit refuses as a full disk does, with the same error.
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages}")
        filled(accounts, 1)
        with pytest.raises(StoreFull, match="full"):
            store.commit(accounts=accounts, documents={"big": "x" * 1_000_000})
        assert store.accounts().looked_s == 0.0
        store._db.execute("PRAGMA max_page_count=1000000")
        store.commit(accounts=accounts, documents={"big": "x"})
        assert store.accounts().consumed() == accounts.consumed()


#: Commits the same figure to an application, a queue and a document, over and over.
WRITER = """
import sys
from pathlib import Path
from harness.ledger.store import LedgerStore
from harness.ledger.accounts import AppObservation
from harness.model.resources import ZERO
with LedgerStore(Path(sys.argv[1])) as store:
    accounts = store.accounts()
    at = int(accounts.looked_s or 0)
    while True:
        at += 1
        accounts.observe(float(at), [AppObservation("x", "root.a", at, at, ZERO, False)])
        store.commit(accounts=accounts, documents={"at": at}, decision={"time_s": float(at)})
        print(at, flush=True)
"""


def kill_and_look(path: Path, rng: random.Random) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = int(process.stdout.readline())
        time.sleep(rng.uniform(0.0, 0.1))
        os.kill(process.pid, signal.SIGKILL)
        told = max([told, *(int(line) for line in process.stdout if line.endswith("\n"))])
    with LedgerStore(path) as store:
        accounts = store.accounts()
        at = store.document("at")
        assert at >= told, "what was told to be kept was lost"
        assert accounts.looked_s == at
        assert accounts.apps["x"].memory_mb_s == at
        # The first look sets the base: all after it counts.
        assert accounts.queues["root.a"].memory_mb_s == at - 1
    assert read_decisions(path, most=1) == [{"time_s": float(at)}]


def test_the_history_of_decisions_reaches_back_for_months(tmp_path: Path) -> None:
    """One each five seconds filled the table within 28 hours, one a minute within two weeks."""
    path, now_s = tmp_path / "l.db", 1_700_000_000.0
    moments = [now_s - 60.0 * minutes for minutes in range(90 * 1440, 1, -1)]
    with LedgerStore(path) as store:
        with store._db:
            store._db.execute("BEGIN")
            store._db.executemany(
                "INSERT INTO decisions (time_s, content) VALUES (?, ?)",
                ((at, json.dumps({"time_s": at})) for at in moments),
            )
        # Old decisions are thinned at each hundredth.
        assert len(moments) % 100 == 99
        for _ in range(3):
            moments.append(moments[-1] + 5.0)
            store.commit(decision={"time_s": moments[-1]})
    kept = [made["time_s"] for made in read_decisions(path, most=10**6)]
    assert len(kept) <= 20_000
    assert kept[-10_000:] == moments[-10_000:], "the latest are all there"
    assert moments[-1] - kept[0] > 60 * 86_400
    gaps = [later - earlier for earlier, later in itertools.pairwise(kept)]
    assert max(gaps) <= 7200.0
    week = [gap for at, gap in zip(kept, gaps, strict=False) if moments[-1] - at < 6 * 86_400]
    assert max(week) <= 120.0


def test_the_history_of_decisions_each_five_seconds_reaches_back_a_year(tmp_path: Path) -> None:
    path, now_s = tmp_path / "l.db", 1_700_000_000.0
    week_s, latest_s = now_s - 7 * 86_400.0, now_s - 50_000.0
    # What thinning has left of 370 days, and the latest 10,000 in full.
    moments = [
        *(week_s - 3600.0 * hours for hours in range(363 * 24, 0, -1)),
        *(week_s + 60.0 * minute for minute in range(int((latest_s - week_s) / 60))),
        *(latest_s + 5.0 * number for number in range(10_001)),
    ]
    with LedgerStore(path) as store:
        with store._db:
            store._db.execute("BEGIN")
            store._db.executemany(
                "INSERT INTO decisions (time_s, content) VALUES (?, ?)",
                ((at, json.dumps({"time_s": at})) for at in moments),
            )
        for _ in range(250):
            moments.append(moments[-1] + 5.0)
            store.commit(decision={"time_s": moments[-1]})
    kept = [made["time_s"] for made in read_decisions(path, most=10**6)]
    assert moments[-1] - kept[0] > 365 * 86_400
    assert max(later - earlier for earlier, later in itertools.pairwise(kept)) <= 7200.0


def test_a_writer_that_is_killed_leaves_one_whole_state(tmp_path: Path) -> None:
    for number in range(5):
        kill_and_look(tmp_path / "l.db", random.Random(number))


@pytest.mark.long
def test_a_writer_that_is_killed_fifty_times(tmp_path: Path) -> None:
    for number in range(50):
        kill_and_look(tmp_path / "l.db", random.Random(number))


def test_closing_twice_closes_nobody_elses_file(tmp_path: Path) -> None:
    store = LedgerStore(tmp_path / "l.db")
    store.close()
    with (tmp_path / "other").open("w") as other:
        store.close()
        other.write("still open")
    assert (tmp_path / "other").read_text() == "still open"
