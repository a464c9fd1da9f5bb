"""An older copy of the ledger, or of the scheduler's file, is told from the present one, and does no harm."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.giveback import release
from harness.control.settings import ControlSettings
from harness.control.values import is_round
from harness.ledger.store import OWNERSHIP, LedgerStore
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.yarn.fair.parse import parse_allocations
from tests.control.driven import FILE, controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import MemoryPlace, RmModel

WITH_C = FILE.replace(b"</allocations>", b'<queue name="c"><weight>2</weight></queue></allocations>')


def work(rm: RmModel, folder: Path, *, stop: bool = False, ticks: int = 8, **how: Any) -> list[Any]:
    """A controller works for a while, and is killed, or stopped."""
    reports = []
    with controlled(rm, folder, **{"lease_s": 30.0, "mode": "bounded", **how}) as controller:
        for _ in range(ticks):
            reports.append(controller.tick())
            rm.now_s += 60.0
        if stop:
            controller.stop("release")
    return reports


def copied(folder: Path) -> Callable[[], None]:
    """A copy of the ledger as it is now; a function that restores it."""
    shutil.copy(folder / "ledger.db", folder / "backup")

    def restore() -> None:
        for name in ("ledger.db-wal", "ledger.db-shm"):
            (folder / name).unlink(missing_ok=True)
        shutil.copy(folder / "backup", folder / "ledger.db")

    return restore


def weight(data: bytes, path: str) -> float:
    return parse_allocations(data).weight(path)


def edited(rm: RmModel, before: bytes, after: bytes) -> None:
    """The administrator edits the file as it is."""
    assert before in rm.place.data
    rm.place.data = rm.place.data.replace(before, after)
    rm.refresh_queues()


def test_a_queue_added_since_keeps_its_real_entitlement(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path)
    restore = copied(tmp_path)
    edited(rm, b"</allocations>", b'<queue name="c"><weight>2</weight></queue></allocations>')
    rm.submit("z", "root.c").pending = 5
    work(rm, tmp_path)
    assert weight(rm.place.data, "root.c") != 2.0
    restore()
    (report,) = work(rm, tmp_path, ticks=1)
    (alarm,) = [alarm for alarm in report.alarms if alarm.kind == "backup"]
    assert "the ledger is an older copy" in alarm.text
    assert report.snapshot.queues["root.c"].weight == 2.0
    (report,) = work(rm, tmp_path, ticks=1, stop=True)
    assert kinds(report) == set()
    assert weight(rm.place.data, "root.c") == 2.0
    assert b'<queue name="a"><weight>1</weight><maxRunningApps>7</maxRunningApps></queue>' in rm.place.data


def test_a_copy_that_begins_while_the_file_cannot_be_read_waits_for_it(tmp_path: Path) -> None:
    """What the lease announces can be held against the file only once that is there (soak, seed 3000293)."""
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path)
    restore = copied(tmp_path)
    edited(rm, b"</allocations>", b'<queue name="c"><weight>2</weight></queue></allocations>')
    rm.submit("z", "root.c").pending = 5
    work(rm, tmp_path)
    assert weight(rm.place.data, "root.c") != 2.0
    restore()
    whole = rm.place.data
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        rm.place.data = b"<allocations>"
        assert "lease" in kinds(controller.tick())
        rm.place.data = whole
        rm.now_s += 5.0
        assert "backup" in kinds(controller.tick())
        assert controller.actuator.configured_weights()["root.c"] == 2.0
        controller.release()
    assert weight(rm.place.data, "root.c") == 2.0


def test_static_limits_written_since_are_taken_back(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path, policy="fair")
    restore = copied(tmp_path)
    work(rm, tmp_path, policy="static")
    assert b"maxResources" in rm.place.data
    restore()
    reports = work(rm, tmp_path, policy="fair", ticks=2)
    assert "backup" in kinds(reports[0])
    assert b"maxResources" not in rm.place.data
    work(rm, tmp_path, policy="fair", stop=True, ticks=1)
    assert rm.place.data == FILE


def test_static_limits_written_since_are_no_administrators_without_a_lease(tmp_path: Path) -> None:
    """They stayed in the file for ever once a queue was added, and the ledger was restored (soak, seed 1000031)."""
    rm = rm_with_load()
    rm.start("x", 4096)
    how: dict[str, Any] = {"lease_s": 0.0, "policy": "static"}
    work(rm, tmp_path, ticks=2, **how)
    restore = copied(tmp_path)
    added = b'<queue name="c"><weight>5</weight></queue></allocations>'
    edited(rm, b"</allocations>", added)
    work(rm, tmp_path, ticks=3, **how)
    assert rm.place.data.count(b"maxResources>") == 6
    restore()
    (report,) = work(rm, tmp_path, ticks=1, **how)
    assert "backup" in kinds(report)
    work(rm, tmp_path, ticks=1, stop=True, **how)
    assert parse_allocations(rm.place.data) == parse_allocations(FILE.replace(b"</allocations>", added))


@pytest.mark.parametrize("lease_s", [0.0, 30.0])
def test_a_copy_from_before_a_release_does_not_override_what_the_administrator_wrote_since(
    tmp_path: Path, lease_s: float
) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path, lease_s=lease_s)
    restore = copied(tmp_path)
    work(rm, tmp_path, lease_s=lease_s, stop=True)
    assert rm.place.data == FILE
    edited(rm, b"<weight>1</weight><maxRunningApps>", b"<weight>3</weight><maxRunningApps>")
    rm.submit("w", "root.a").pending = 3
    restore()
    (report,) = work(rm, tmp_path, ticks=1, lease_s=lease_s)
    assert "backup" in kinds(report)
    assert report.snapshot.queues["root.a"].weight == 3.0
    work(rm, tmp_path, ticks=1, stop=True, lease_s=lease_s)
    assert weight(rm.place.data, "root.a") == 3.0


def test_without_a_lease_a_share_that_no_person_writes_is_not_taken_for_the_administrators(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    how = {"lease_s": 0.0, "sets": {"horizon_s": "20000"}}
    work(rm, tmp_path, ticks=1, **how)
    restore = copied(tmp_path)
    work(rm, tmp_path, ticks=5, **how)
    assert not is_round(weight(rm.place.data, "root.a"))
    restore()
    (report,) = work(rm, tmp_path, ticks=1, lease_s=0.0)
    assert "backup" in kinds(report)
    assert {q: report.snapshot.queues[q].weight for q in ("root.a", "root.b")} == {"root.a": 1.0, "root.b": 1.0}
    work(rm, tmp_path, ticks=1, stop=True, lease_s=0.0)
    assert rm.place.data == FILE


def test_a_copy_of_a_time_after_a_release_knows_whose_the_shares_are(tmp_path: Path) -> None:
    """It lists nothing as managed: a controller's momentary shares became the entitlements (soak, seed 3000060)."""
    rm = rm_with_load()
    rm.start("x", 4096)
    how = {"lease_s": 0.0, "sets": {"horizon_s": "20000"}}
    work(rm, tmp_path, ticks=1, stop=True, **how)
    assert rm.place.data == FILE
    restore = copied(tmp_path)
    work(rm, tmp_path, ticks=5, **how)
    assert not is_round(weight(rm.place.data, "root.a"))
    restore()
    (report,) = work(rm, tmp_path, ticks=1, **how)
    assert "backup" in kinds(report)
    assert {q: report.snapshot.queues[q].weight for q in ("root.a", "root.b")} == {"root.a": 1.0, "root.b": 1.0}
    work(rm, tmp_path, ticks=1, stop=True, **how)
    assert rm.place.data == FILE


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_copy_of_before_a_policy_knows_which_scheduling_policies_are_the_administrators(
    tmp_path: Path, goes_on: bool
) -> None:
    """`drf` is as much a person's word as a controller's; the lock file beside the ledger knows whose it is."""
    rooted = FILE.replace(b"<allocations>", b'<allocations><queue name="root">').replace(b"</alloc", b"</queue></alloc")
    rm = rm_with_load(rooted)
    rm.start("x", 4096)
    how: dict[str, Any] = {"lease_s": 0.0, "sets": {"resource": "dominant"}}
    work(rm, tmp_path, ticks=2, lease_s=0.0, policy="fair")
    restore = copied(tmp_path)
    work(rm, tmp_path, ticks=2, policy="ltrf", **how)
    assert rm.place.data.count(b"<schedulingPolicy>drf<") == 3
    restore()
    if goes_on:
        (report,) = work(rm, tmp_path, ticks=1, policy="ltrf", **how)
        (alarm,) = [alarm for alarm in report.alarms if alarm.kind == "backup"]
        assert "from the lock file beside it" in alarm.text
        work(rm, tmp_path, ticks=1, stop=True, policy="ltrf", **how)
    else:
        with LedgerStore(tmp_path / "ledger.db") as store:
            actuator = FileActuator.restored(rm.place, store.document)
            done = release(actuator, store, None, lambda: None, ControlSettings())
        assert [kind for kind, _ in done.notes] == ["backup"]
    assert rm.place.data == rooted


def test_a_copy_of_just_before_a_release_is_one(tmp_path: Path) -> None:
    """Nothing was prepared between them but the release itself."""
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path, lease_s=0.0)
    restore = copied(tmp_path)
    with LedgerStore(tmp_path / "ledger.db") as store:
        release(FileActuator.restored(rm.place, store.document), store, None, lambda: None, ControlSettings())
    assert rm.place.data == FILE
    restore()
    (report,) = work(rm, tmp_path, ticks=1, lease_s=0.0)
    assert "backup" in kinds(report)
    assert "foreign" not in kinds(report), "the administrator's own file is nobody's edit"


@pytest.mark.parametrize("damage", ["cut", "of an earlier version", "another generation"])
def test_a_lock_file_without_the_ownership_leaves_the_comparison_with_the_copy(tmp_path: Path, damage: str) -> None:
    """And that the ledger was a copy is known after a restart, too."""
    rm = rm_with_load()
    rm.start("x", 4096)
    how = {"lease_s": 0.0, "sets": {"horizon_s": "20000"}}
    work(rm, tmp_path, ticks=1, **how)
    restore = copied(tmp_path)
    work(rm, tmp_path, ticks=5, **how)
    lock = tmp_path / "ledger.db.lock"
    first, rest = lock.read_bytes().splitlines()
    known = json.loads(first)
    damaged = {
        "cut": lock.read_bytes()[:-20],
        "of an earlier version": first + b"\n",
        "another generation": json.dumps({**known, "generation": known["generation"] + 1}).encode() + b"\n" + rest,
    }
    restore()
    lock.write_bytes(damaged[damage])
    (report,) = work(rm, tmp_path, ticks=1, **how)
    (alarm,) = [alarm for alarm in report.alarms if alarm.kind == "backup"]
    assert "neither a lease nor its lock file" in alarm.text
    assert {q: report.snapshot.queues[q].weight for q in ("root.a", "root.b")} == {"root.a": 1.0, "root.b": 1.0}
    with LedgerStore(tmp_path / "ledger.db") as store:
        assert FileActuator.restored(rm.place, store.document).from_copy
    work(rm, tmp_path, ticks=1, stop=True, **how)
    assert rm.place.data == FILE
    with LedgerStore(tmp_path / "ledger.db") as store:
        assert not FileActuator.restored(rm.place, store.document).from_copy


def test_a_lock_file_that_was_written_in_part_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    texts = {"generation": 3}
    with LedgerStore(tmp_path / "ledger.db") as store:
        monkeypatch.setattr(os, "pwrite", lambda handle, data, at: whole(handle, data[:20], at))
        store.commit(documents=texts)
        assert store.latest_ownership() is None
        monkeypatch.setattr(os, "pwrite", whole)
        store.commit(documents=texts)
        assert store.latest_ownership() == texts


def test_all_that_says_whose_the_values_are_is_in_the_lock_file() -> None:
    assert {*FileActuator.document_names(), *CapacityActuator.document_names()} == {*OWNERSHIP}


def test_a_computed_limit_that_comes_back_after_a_copy_and_a_restart_is_no_administrators() -> None:
    """What was found out of the copy was forgotten by the next start."""
    place, again, whole = a_computed_limit_away()
    kept = json.loads(json.dumps(again.document()))
    again = FileActuator.restored(place, kept.get)
    place.data = whole
    again.read()
    again.write(again.original())
    assert place.data == THREE


def test_a_ledger_that_goes_on_is_no_copy(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    for stop in (False, True, False, True):
        for report in work(rm, tmp_path, ticks=3, stop=stop):
            assert "backup" not in kinds(report)
    # A new ledger at the same path is none of the old one's copies.
    (tmp_path / "ledger.db").unlink()
    assert "backup" not in kinds(work(rm, tmp_path, ticks=1)[0])
    assert json.loads((tmp_path / "ledger.db.lock").read_text().splitlines()[0])["generation"] >= 1


@pytest.mark.parametrize("when", ["last", "earlier"])
def test_a_file_opened_while_enforced_and_saved_after_the_stop_keeps_the_administrators_weights(
    tmp_path: Path, when: str
) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path)
    opened = rm.place.data
    work(rm, tmp_path, ticks=30 if when == "earlier" else 1)
    if when == "last":
        opened = rm.place.data
    work(rm, tmp_path, stop=True, ticks=1)
    assert rm.place.data == FILE
    # Saved from the editor, with a change that is the administrator's own.
    assert b"<maxRunningApps>7<" in opened
    rm.place.data = opened.replace(b"<maxRunningApps>7<", b"<maxRunningApps>9<")
    rm.refresh_queues()
    reports = work(rm, tmp_path, ticks=2)
    said = [alarm.text for alarm in reports[0].alarms if alarm.kind == "foreign"]
    assert any("which a controller wrote" in text and "`queues`" in text for text in said)
    assert {q: reports[0].snapshot.queues[q].weight for q in ("root.a", "root.b")} == {"root.a": 1.0, "root.b": 1.0}
    work(rm, tmp_path, stop=True, ticks=1)
    assert rm.place.data == FILE.replace(b"<maxRunningApps>7<", b"<maxRunningApps>9<")
    assert in_force(rm) == {"root.a": 1.0, "root.b": 1.0}


def test_limits_that_were_given_back_and_come_back_are_no_administrators(tmp_path: Path) -> None:
    place = MemoryPlace(FILE)
    with LedgerStore(tmp_path / "ledger.db") as store:
        actuator = FileActuator.restored(place, store.document)
        actuator.read()
        actuator.write(actuator.prepare(Attributes({"root.a": 4.8125}, max_shares={"root.a": Resource(777, 7)})))
        opened = place.data
        actuator.write(actuator.original())
        actuator.forget()
        assert place.data == FILE
        store.commit(documents=actuator.document())
        place.data = opened
        actuator = FileActuator.restored(place, store.document)
        assert {edit.attribute for edit in actuator.read()} == {"weight", "max_resources"}
        assert actuator.original().after == FILE


def test_a_weight_that_the_administrator_writes_after_a_release_is_his(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    work(rm, tmp_path, stop=True)
    rm.place.data = WITH_C.replace(b"<weight>1</weight><max", b"<weight>5</weight><max")
    rm.refresh_queues()
    (report,) = work(rm, tmp_path, ticks=1)
    assert kinds(report) == set()
    assert report.snapshot.queues["root.a"].weight == 5.0


THREE = b"""<allocations>
  <queue name="a"><weight>2</weight></queue>
  <queue name="b"><weight>3</weight></queue>
  <queue name="c"><weight>4</weight></queue>
</allocations>
"""


def minima(*memory_mb: int) -> Attributes:
    queues = ("root.a", "root.b", "root.c")
    return Attributes(min_shares={path: Resource(mb, 3) for path, mb in zip(queues, memory_mb, strict=True)})


def copy_of_minima(place: MemoryPlace, *since: Attributes) -> FileActuator:
    """What goes on from a copy of a ledger that was made before the last writes."""
    own = FileActuator(place)
    own.read()
    own.write(own.prepare(minima(8192, 8192, 8192)))
    copy = json.loads(json.dumps(own.document()))
    for attributes in since:
        own.write(own.prepare(attributes))
    return FileActuator.restored(place, copy.get)


def a_computed_limit_away() -> tuple[MemoryPlace, FileActuator, bytes]:
    """A copy of a ledger after it was compared with a file that lacks one computed limit; and the file with all."""
    place = MemoryPlace(THREE)
    again = copy_of_minima(place, minima(10923, 10923, 10922))
    whole = place.data
    place.data = whole.replace(b"10923 mb", b"8192 mb", 1)
    again.hold_against_file()
    again.read()
    return place, again, whole


def test_limits_that_have_nearly_all_changed_since_a_copy_are_no_administrators() -> None:
    """However round they are: a controller's thirds of 32 GiB were (soak, seed 2000213)."""
    place = MemoryPlace(THREE)
    again = copy_of_minima(place, minima(11264, 10752, 10752))
    again.hold_against_file()
    again.read()
    again.write(again.original())
    assert place.data == THREE


def test_one_round_limit_of_many_that_differs_from_a_copy_is_the_administrators() -> None:
    place = MemoryPlace(THREE)
    again = copy_of_minima(place)
    place.data = place.data.replace(b"8192 mb", b"5000 mb", 1)
    again.hold_against_file()
    again.read()
    again.write(again.original())
    settings = parse_allocations(place.data).settings
    assert settings["root.a"].min_resources is not None
    assert place.data.count(b"minResources>") == 2
    assert b"5000 mb" in place.data


def test_a_computed_limit_that_comes_back_after_a_copy_is_no_administrators() -> None:
    """A queue with it was away when the ledger was restored, and is put back into the file."""
    place, again, whole = a_computed_limit_away()
    place.data = whole
    again.read()
    again.write(again.original())
    assert place.data == THREE


def test_an_odd_limit_that_is_not_taken_after_a_copy_is_told() -> None:
    """It cannot be told from one that was written after the copy was made: the administrator has to hear it."""
    place, own, _ = a_computed_limit_away()
    own.write(own.prepare(minima(8192, 8192, 8192)))
    place.data = place.data.replace(b"8192 mb", b"5001 mb", 1)
    (edit,) = own.read()
    assert edit.text == (
        "[5001, 3], which a controller may have written after the copy of the ledger that was restored (to make it "
        "yours, write a round one, or stop this one and give the configuration back once with --release); yours stays "
        "unset as before"
    )
    own.write(own.prepare(minima(8192, 8192, 8192)))
    place.data = place.data.replace(b"8192 mb", b"5000 mb", 1)
    (edit,) = own.read()
    assert edit.text == "[5000, 3]"
    own.write(own.original())
    assert place.data == THREE.replace(
        b'<queue name="a"><weight>2</weight>',
        b'<queue name="a"><minResources>5000 mb, 3 vcores</minResources><weight>2</weight>',
    )
