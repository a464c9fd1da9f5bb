"""A release does not fail for reasons of our own: ledger, lease, a dead process; what it says of the rest is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.control.capacity_actuator import CapacityActuator
from harness.control.giveback import NotReleased, release
from harness.control.identity import OtherCluster
from harness.control.lease import HeldByAnother, Lease, lease_of
from harness.control.processes import is_dead, this_process
from harness.control.settings import ControlSettings
from harness.ledger.store import LedgerStore, StoreFull
from harness.yarn.files import LocalStore
from harness.yarn.rmclient import RmClient
from tests.control.driven import FILE, controlled, in_force, rm_with_load
from tests.control.rm_model import CapacityRmModel, MemoryPlace, silence
from tests.control.soak import capacities
from tests.control.test_gate import BEFORE, enforced

SETTINGS = ControlSettings(period_s=5.0)


def full(*_: object, **__: object) -> None:
    raise StoreFull("the ledger cannot be written: database or disk is full")


@pytest.mark.parametrize("store", [False, True])
def test_a_full_ledger_keeps_nobodys_capacities_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: bool
) -> None:
    """The file was restored, the RM kept 43/20/37, and a second try failed until there was room."""
    rm = CapacityRmModel(BEFORE, store=store)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        monkeypatch.setattr(controller.store, "commit", full)
        words = controller.stop("release")
        assert words.startswith("stopped; the administrator's own capacities are in force")
        assert "ledger: the ledger cannot be written" in words
    assert rm.settings() == {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}
    # The ledger still says that the controller's values stand there; the next start sees that they do not.
    monkeypatch.undo()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        assert controller.actuator.configured_weights() == pytest.approx(
            {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}
        )


def test_a_lease_that_cannot_be_written_keeps_nobodys_weights_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        controller.tick()
        assert in_force(rm) != {"root.a": 1.0, "root.b": 1.0}
        for beside in rm.place.others.values():
            beside.fail = StoreFull("No space left on device")
        controller._lease._renewed_s = None  # type: ignore[union-attr]
        words = controller.stop("release")
        assert "are in force" in words
        assert "lease:" in words
    assert rm.place.data == FILE
    assert in_force(rm) == {"root.a": 1.0, "root.b": 1.0}


def test_what_a_write_could_not_keep_of_the_file_is_a_note_of_its_period_and_of_the_release(tmp_path: Path) -> None:
    said = ["f.xml had another name (a hard link)"]

    class Place(MemoryPlace):
        def remarks(self) -> list[str]:
            return [said.pop()] if said and self.data != FILE else []

    rm = rm_with_load()
    rm.place = Place(FILE)
    with controlled(rm, tmp_path, lease_s=0.0) as controller:
        assert [alarm.text for alarm in controller.tick().alarms if alarm.kind == "note"] == [
            "f.xml had another name (a hard link)"
        ]
        rm.place.remarks = lambda: ["an attribute is lost"]  # type: ignore[method-assign]
        words = controller.stop("release")
    assert "are in force" in words
    assert "an attribute is lost" in words


def actuator_with_managed(rm: CapacityRmModel, folder: Path) -> tuple[CapacityActuator, LedgerStore]:
    """What is left of a controller that was killed."""
    with controlled(rm, folder) as controller:
        enforced(rm, controller)
    store = LedgerStore(folder / "ledger.db")
    return CapacityActuator.restored(rm.source, store.document), store


def none() -> RmClient | None:
    return None


def test_with_the_rm_down_what_is_said_of_the_file_has_been_checked(tmp_path: Path) -> None:
    """A file with which it does not start was called "in force when it starts", and the command exited with 0."""
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        rm.place.data = rm.place.data.replace(b"</configuration>", b"").rstrip() + (
            b"\n  <property><name>yarn.scheduler.capacity.root.a.ordering-policy</name><value>oldest</value></property>"
            b"\n</configuration>\n"
        )
        done = release(actuator, store, None, none, SETTINGS)
        assert done.failed
        assert "would refuse them" in done.words
        assert "oldest" in done.words
        assert "in force when it starts" not in done.words
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path / "again")
    with store:
        done = release(actuator, store, None, none, SETTINGS)
        assert not done.failed
        assert "in force when it starts" in done.words
        assert rm.place.data == BEFORE


def test_queues_that_do_not_sum_to_100_any_more_are_filled_up_and_that_is_said(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        values = capacities.properties(rm.place.data)
        values[f"{capacities.PREFIX}root.queues"] = "a,b"
        rm.place.data = capacities.stored(values)
        assert not rm.starts()
        done = release(actuator, store, None, lambda: rm, SETTINGS)  # type: ignore[arg-type,return-value]
        assert (done.failed, done.words) == (False, "the administrator's own capacities are in force")
        assert [text for kind, text in done.notes if kind == "release"] != []
        assert rm.starts()
        assert rm.settings() == pytest.approx({"root.a": 66.6667, "root.b": 33.3333})


def test_a_store_that_refuses_the_whole_is_given_back_as_far_as_it_goes(tmp_path: Path) -> None:
    inner = {f"{capacities.PREFIX}root.a.queues": "x,y"}
    inner |= {f"{capacities.PREFIX}root.a.{name}.capacity": "50" for name in "xy"}
    inner |= {f"{capacities.PREFIX}root.a.{name}.user-limit-factor": "-1" for name in "xy"}
    rm = CapacityRmModel(capacities.stored({**capacities.properties(BEFORE), **inner}), store=True)
    assert rm.store is not None
    rm.submit("x", "root.a.x")
    rm.submit("y", "root.b").pending = 3
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        for _ in range(10):
            rm.start("x")
        rm.now_s += 60.0
        controller.tick()
        assert rm.settings()["root.a.x"] != 50.0
        rm.store.rule = lambda queues: "reserved" if queues["root.a"].weight == 50.0 else ""
        with pytest.raises(NotReleased, match=r"below root the controller's stay: .*reserved"):
            controller.release()
        assert (rm.settings()["root.a.x"], rm.settings()["root.a.y"]) == (50.0, 50.0)
        rm.store.rule = lambda _: ""
        assert controller.release() == "the administrator's own capacities are in force"
    assert rm.settings()["root.a"] == 50.0


def test_an_rm_that_refuses_the_restored_file_is_said_and_the_file_is_restored(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        rm.rule = lambda _: "no"
        with pytest.raises(NotReleased, match=r"are written, but not in force: .*Failed to re-init queues"):
            controller.release()
        assert rm.place.data == BEFORE
        rm.rule = lambda _: ""
        assert controller.release() == "the administrator's own capacities are in force"


def test_the_next_release_succeeds_after_one_without_an_rm(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        rm.down = silence()
        assert "in force when it starts" in controller.release()
        assert rm.place.data == BEFORE


# --- another holder's lease ---

SIGNS = """
import sys, time
from pathlib import Path
from harness.control.lease import lease_of
from harness.yarn.files import LocalStore

lease = lease_of(LocalStore(Path(sys.argv[1])), "lost ledger", 30.0, time.monotonic)
lease.hold()
lease.keep({"baseline": {"root.a": {"weight": 2.0}}, "ours": {"root.a": {"weight": [5.0]}}})
print("signed", flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path) -> LocalStore:
    (tmp_path / "fair-scheduler.xml").write_bytes(FILE)
    return LocalStore(tmp_path / "fair-scheduler.xml")


def test_the_lease_of_a_process_that_died_on_this_host_is_taken_over_at_once(place: LocalStore, tmp_path: Path) -> None:
    """The ledger is lost too: a release was refused at 0, 35 and 70 s, though nobody was there."""
    process = subprocess.Popen([sys.executable, "-c", SIGNS, str(place.path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"signed\n"
    lease = lease_of(place, "new ledger", 30.0, lambda: 1000.0)
    with pytest.raises(HeldByAnother):
        lease.hold()
    process.kill()
    process.wait()
    process.stdout.close()
    again = lease_of(place, "new ledger", 30.0, lambda: 1001.0)
    again.hold()
    assert again.announced["baseline"] == {"root.a": {"weight": 2.0}}, "and whose the values are is known"


def test_only_a_signature_of_this_boot_and_namespace_is_known_to_be_dead() -> None:
    own = this_process()
    assert not is_dead(own)
    gone = {**own, "started": int(own["started"]) - 1}
    assert is_dead(gone), "another process has its number now"
    assert not is_dead({**gone, "boot": "another"})
    assert not is_dead({**gone, "pids": "pid:[1]"})
    assert not is_dead({"pid": 2**22 + 1, "host": "here"}), "a signature of an earlier version"
    assert not is_dead({**own, "pid": "7"})
    assert not is_dead({**own, "pid": 1, "started": None})


@pytest.mark.parametrize("again_s", [29.0, 31.0])
def test_how_long_a_lease_has_stood_still_is_remembered_by_the_next_process(
    place: LocalStore, tmp_path: Path, again_s: float
) -> None:
    other = Lease(place.beside(".fair-scheduler.xml.lease"), "elsewhere", 30.0, lambda: 7.0)
    other.hold()
    signed = json.loads(other.store.read())
    other.store.write(json.dumps({**signed, "boot": "of another host"}).encode())

    def tries(at_s: float) -> None:
        with LedgerStore(tmp_path / "new.db") as store:
            lease_of(place, store.identity, 30.0, lambda: at_s, store).hold()

    with pytest.raises(HeldByAnother, match="it is taken over, by the next try"):
        tries(100.0)
    if again_s < 30.0:
        with pytest.raises(HeldByAnother):
            tries(100.0 + again_s)
    else:
        tries(100.0 + again_s)
    # A sign of life meanwhile counts.
    other._renewed_s = None


def test_a_sign_of_life_between_two_tries_is_seen(place: LocalStore, tmp_path: Path) -> None:
    other = Lease(place.beside(".fair-scheduler.xml.lease"), "elsewhere", 30.0, lambda: 7.0)
    with LedgerStore(tmp_path / "new.db") as store:
        for at_s in (100.0, 140.0, 180.0):
            other._renewed_s = None
            other._renew(7.0, other._read()[0])
            other.store.write(other.store.read().replace(b'"boot": "', b'"boot": "x'))
            with pytest.raises(HeldByAnother):
                lease_of(place, store.identity, 30.0, lambda at_s=at_s: at_s, store).hold()  # type: ignore[misc]


def test_a_killed_controllers_weights_are_released_with_its_ledger_lost(tmp_path: Path) -> None:
    """As an operator does it: kill -9, the ledger is gone, `enforce --release`."""
    target = tmp_path / "fair-scheduler.xml"
    target.write_bytes(FILE.replace(b"<weight>1<", b"<weight>5<", 1))
    subprocess.run([sys.executable, "-c", SIGNS.replace("time.sleep(600)", ""), str(target)], check=True)
    config = tmp_path / "enforce.yaml"
    config.write_text(f"policy: ltrf\nallocation_file: {target}\nledger: {tmp_path / 'lost.db'}\n")
    command = [sys.executable, "-m", "harness", "enforce", "--config", str(config), "--release"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert b"<weight>2<" in target.read_bytes()
    assert "in force when it starts" in done.stderr


# --- a configuration that Hadoop reads and this program does not ---

INCLUDED = b'  <xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more.xml"/>\n</configuration>'


def with_reference(data: bytes) -> bytes:
    """The administrator has written a reference to another property as the capacity of ``root.c``."""
    place = b"root.c.capacity</name><value>"
    begin = data.index(place) + len(place)
    return data[:begin] + b"${share.of.c}" + data[data.index(b"<", begin) :]


def with_include(data: bytes) -> bytes:
    """The administrator has moved some properties into another file."""
    return data.replace(b"</configuration>", INCLUDED)


@pytest.mark.parametrize("edited", [with_include, with_reference])
def test_what_was_written_is_taken_out_of_a_file_that_cannot_be_read(
    tmp_path: Path, edited: Callable[[bytes], bytes]
) -> None:
    """The release failed, and the controller's capacities stayed in the file for good."""
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        assert rm.place.data != BEFORE
        rm.place.data = edited(rm.place.data)
        done = release(actuator, store, None, none, SETTINGS)
        assert rm.place.data == edited(BEFORE)
        assert not done.failed
        assert "root.a.capacity" in done.words
        assert "in force when it starts" in done.words
        assert "the file was not checked: " in done.words
        # What is in the file from now on is the administrator's.
        assert actuator.managed == {}


def test_a_file_that_cannot_be_read_is_loaded_and_what_the_rm_says_of_it_is_told(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        rm.place.data = with_reference(rm.place.data)
        done = release(actuator, store, None, lambda: rm, SETTINGS)  # type: ignore[arg-type,return-value]
        assert rm.place.data == with_reference(BEFORE)
        assert done.failed, "this model of a ResourceManager does not know references"
        assert "written, but not in force: " in done.words
        assert "${share.of.c}" in done.words


def test_another_clusters_rm_is_not_made_to_load_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    def other(_: object) -> None:
        raise OtherCluster("another cluster answers")

    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        rm.place.data = with_include(rm.place.data)
        done = release(actuator, store, None, lambda: rm, SETTINGS, recognise=other)  # type: ignore[arg-type,return-value]
        assert rm.place.data == with_include(BEFORE)
        assert done.failed
        assert "but not in force: another cluster answers" in done.words


def test_what_has_been_moved_out_of_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        values = capacities.properties(rm.place.data)
        del values[f"{capacities.PREFIX}root.b.capacity"]
        rm.place.data = with_include(capacities.stored(values))
        done = release(actuator, store, None, none, SETTINGS)
        assert done.failed
        assert f"{capacities.PREFIX}root.b.capacity cannot be given back" in done.words
        assert capacities.properties(rm.place.data.replace(INCLUDED, b"</configuration>")) == {
            key: value for key, value in capacities.properties(BEFORE).items() if ".root.b.capacity" not in key
        }
        assert actuator.managed != {}, "whose values those are is not forgotten"


def test_a_file_that_is_no_document_is_left_alone(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    actuator, store = actuator_with_managed(rm, tmp_path)
    with store:
        rm.place.data = half = rm.place.data[:-40]
        with pytest.raises(InputError, match="not well-formed"):
            release(actuator, store, None, none, SETTINGS)
        assert rm.place.data == half
        assert actuator.managed != {}
