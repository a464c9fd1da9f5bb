"""Two controllers and one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import InputError
from harness.control.file_actuator import FileActuator
from harness.control.giveback import adopt
from harness.control.lease import HeldByAnother, Lease, lease_of, lease_store
from harness.yarn.files import TEMPORARY, LocalStore
from harness.yarn.sftp import SftpStore
from harness.yarn.stores import WebHdfsStore
from tests.control.rm_model import MemoryPlace


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def pair(folder: Path) -> tuple[Lease, Lease, Time]:
    time, place = Time(), lease_store(LocalStore(folder / "fair-scheduler.xml"))
    return Lease(place, "one", 30.0, time), Lease(place, "two", 30.0, time), time


def test_the_second_waits_until_the_first_is_silent_for_the_leases_time(tmp_path: Path) -> None:
    one, two, time = pair(tmp_path)
    one.hold()
    for time.now in (0.0, 20.0, 40.0, 60.0):
        one.hold()
        with pytest.raises(HeldByAnother, match="another controller writes this file"):
            two.hold()
    time.now = 89.0
    with pytest.raises(HeldByAnother, match="wait: 30 s after its last sign of life it is taken over"):
        two.hold()  # in the same words each time: a spare says this in every period
    time.now = 90.0
    two.hold()
    time.now = 100.0
    with pytest.raises(HeldByAnother):
        one.hold()


def test_given_back_it_is_free_at_once_and_a_restart_goes_on_at_once(tmp_path: Path) -> None:
    one, two, time = pair(tmp_path)
    one.hold()
    again = Lease(one.store, "one", 30.0, time)
    again.hold()
    again.give_back()
    two.hold()
    # What is no longer one's own cannot be given back.
    one.give_back()
    with pytest.raises(HeldByAnother):
        Lease(one.store, "one", 30.0, time).hold()


@pytest.mark.parametrize("content", [b"", b"torn {", b"[1]", b'{"owner": 7}', b'{"owner": "x", "lease_s": "long"}'])
def test_a_lease_that_cannot_be_read_is_nobodys_or_ends(tmp_path: Path, content: bytes) -> None:
    one, _, time = pair(tmp_path)
    one.store.write(content)
    try:
        one.hold()
    except HeldByAnother:
        time.now = 31.0
        one.hold()
    assert json.loads(one.store.read())["owner"] == "one"


def test_who_knows_nothing_of_the_file_waits_where_the_lease_cannot_be_read(tmp_path: Path) -> None:
    """The holder lives and writes its words there again: the newcomer would take its weights for entitlements."""
    one, two, time = pair(tmp_path)
    one.hold()
    one.keep({"baseline": {}, "ours": {}})
    one.store.write(b"torn {")
    with pytest.raises(HeldByAnother, match="another controller may hold it; wait"):
        two.hold(waits=True)
    time.now = 11.0
    one.hold()
    with pytest.raises(HeldByAnother, match="another controller writes this file"):
        two.hold(waits=True)
    assert two.announced_by == "one"
    # Nobody writes it again: it is nobody's.
    one.store.write(b"torn {")
    for time.now in (12.0, 41.0):
        with pytest.raises(HeldByAnother):
            two.hold(waits=True)
    time.now = 42.0
    two.hold(waits=True)
    assert json.loads(two.store.read())["owner"] == "two"


def test_a_spare_waits_where_the_lease_of_the_holder_that_it_saw_is_gone(tmp_path: Path) -> None:
    """Somebody deletes the lease; a start that has seen no holder takes it at once."""
    one, two, time = pair(tmp_path)
    one.hold()
    with pytest.raises(HeldByAnother):
        two.hold(waits=True)
    one.store.remove()
    with pytest.raises(HeldByAnother, match="the lease is gone: another controller may hold it; wait"):
        two.hold(waits=True)
    time.now = 11.0
    one.hold()
    with pytest.raises(HeldByAnother, match="another controller writes this file"):
        two.hold(waits=True)
    one.store.remove()
    for time.now in (12.0, 41.0):
        with pytest.raises(HeldByAnother, match="is gone"):
            two.hold(waits=True)
    time.now = 42.0
    two.hold(waits=True)
    one.store.remove()
    Lease(one.store, "three", 30.0, time).hold(waits=True)


def test_who_may_not_take_it_does_not(tmp_path: Path) -> None:
    one, two, time = pair(tmp_path)
    with pytest.raises(InputError, match="does not sign the lease, one that nobody holds"):
        two.hold(take=False)
    one.hold()
    for time.now in (0.0, 100.0):
        with pytest.raises(HeldByAnother):
            two.hold(take=False)
    two.hold()
    time.now = 120.0
    two.hold(take=False)  # it is its own
    again = Lease(two.store, "two", 30.0, time)
    with pytest.raises(InputError, match="does not sign the lease, its own"):
        again.hold(take=False)


def test_no_folder_is_told(tmp_path: Path) -> None:
    lease = Lease(lease_store(LocalStore(tmp_path / "none" / "f.xml")), "one", 30.0, Time())
    with pytest.raises(InputError, match="cannot"):
        lease.hold()


def test_it_lies_beside_the_file_wherever_that_is() -> None:
    assert lease_store(SftpStore("h", "/etc/fs.xml")).name == "sftp://h/etc/.fs.xml.lease"
    assert lease_store(WebHdfsStore("http://nn:9870", "/conf/fs.xml")).name == "http://nn:9870/conf/.fs.xml.lease"


def test_a_holder_without_a_ledger_that_goes_on_knows_whose_the_values_are(tmp_path: Path) -> None:
    """It had taken over, could not keep its ledger, and was killed; meanwhile the administrator wrote a weight."""
    one, two, time = pair(tmp_path)
    place = MemoryPlace(b"<allocations><queue name='a'><weight>5</weight></queue></allocations>")
    announced = {"baseline": {"root.a": {"weight": 2.0}}, "ours": {"root.a": {"weight": [5.0]}}, "named": {}}
    one.hold()
    one.keep(announced)
    with pytest.raises(HeldByAnother):
        two.hold()
    time.now = 31.0
    two.hold()
    place.data = place.data.replace(b"5", b"7")
    for data, expected in ((place.data, 7.0), (place.data.replace(b"7", b"5"), 2.0)):
        for lease in (Lease(two.store, "two", 30.0, time), Lease(two.store, "three", 30.0, time)):
            if lease.owner == "three":
                two.give_back()
            lease.hold()
            place.data = data
            actuator = FileActuator(place)
            adopt(actuator, SimpleNamespace(identity=lease.owner), lease)  # type: ignore[arg-type]
            actuator.read()
            assert actuator.configured_weights()["root.a"] == expected
            if lease.owner == "three":
                lease.give_back()
                two.hold()


@pytest.mark.parametrize("stands", [b"{", b"null", b"\0" * 400, None])
def test_who_begins_beside_nonsense_in_place_of_a_lease_takes_no_weight_for_an_entitlement(
    stands: bytes | None, tmp_path: Path
) -> None:
    """A spare whose ledger knows of no writing was killed before it kept the holder's words (real faults, seed 404)."""
    one, two, _ = pair(tmp_path)
    place = MemoryPlace(b"<allocations><queue name='a'><weight>3</weight></queue></allocations>")
    if stands is not None:
        one.store.write(stands)
    two.hold()
    actuator = FileActuator(place, baseline={"root.a": {"weight": 2.0}})
    found = actuator.read(words_lost=two.words_lost)
    assert [foreign.text for foreign in found] == ([] if stands is None else ["3.0"])
    assert actuator.configured_weights()["root.a"] == (3.0 if stands is None else 2.0)
    # Signed, it is a lease again.
    assert two._read()[1]["owner"] == "two"
    assert not two.words_lost


def test_what_the_holder_says_of_the_file_is_known_to_the_next_one(tmp_path: Path) -> None:
    one, two, time = pair(tmp_path)
    one.hold()
    one.keep({"baseline": {"root.a": {"weight": 2.0}}})
    with pytest.raises(HeldByAnother):
        two.hold()
    assert (two.announced, two.announced_by) == ({"baseline": {"root.a": {"weight": 2.0}}}, "one")
    one.give_back()
    two.hold()
    assert (two.announced, two.announced_by) == (one.announced, "one")
    # Whoever has lost the lease is told so before it writes the file.
    with pytest.raises(HeldByAnother, match="has taken over"):
        one.keep({})
    time.now = 40.0
    two.keep({})
    assert Lease(two.store, "three", 30.0, time)._read()[1]["said_by"] == "two"


def test_a_holder_does_not_pass_on_what_somebody_else_wrote_where_its_lease_stands(tmp_path: Path) -> None:
    one, two, time = pair(tmp_path)
    one.hold()
    one.keep({"baseline": {"root.a": {"weight": 2.0}}})
    one.store.write(json.dumps({"said": {"baseline": 3}, "said_by": "somebody"}).encode())
    time.now = 11.0
    one.hold()
    with pytest.raises(HeldByAnother):
        two.hold()
    assert (two.announced, two.announced_by) == ({"baseline": {"root.a": {"weight": 2.0}}}, "one")


def test_what_a_killed_spare_has_left_is_removed_with_the_lease(tmp_path: Path) -> None:
    one = lease_of(LocalStore(tmp_path / "fair-scheduler.xml"), "one", 30.0, Time())
    assert one.standby is not None
    one.hold()
    left = tmp_path / f".{one.standby.file_name}{TEMPORARY}killed"
    left.write_bytes(b"{")
    one.end()
    assert not left.exists()


@pytest.mark.parametrize("late", ["spare", "holder"])
def test_who_signs_late_over_a_slow_network_replaces_nothing_newer(late: str, tmp_path: Path) -> None:
    """A holder that comes back and a spare that takes over look at the same old lease; one of them is slower."""
    one, two, time = pair(tmp_path)
    one.hold()
    with pytest.raises(HeldByAnother):
        two.hold()
    time.now = 31.0
    slow, fast = (two, one) if late == "spare" else (one, two)

    class Slow(LocalStore):
        def _put_over(self, data: bytes, before: bytes | None, still: Callable[[], None]) -> None:
            fast.hold()  # while this is on its way
            super()._put_over(data, before, still)

    place = slow.store
    slow.store = Slow(Path(place.name))
    with pytest.raises(HeldByAnother, match="another controller has just signed the lease"):
        slow.hold()
    assert json.loads(place.read())["owner"] == fast.owner
    slow.store = place
    time.now = 32.0
    with pytest.raises(HeldByAnother):
        slow.keep({})
    fast.keep({})


def test_what_could_not_be_said_is_said_before_the_file_is_written(tmp_path: Path) -> None:
    one, _, _ = pair(tmp_path)
    one.hold()

    class Full(LocalStore):
        def _put_over(self, data: bytes, before: bytes | None, still: Callable[[], None]) -> None:
            raise InputError("No space left on device")

    place = one.store
    one.store = Full(Path(place.name))
    with pytest.raises(InputError, match="No space left"):
        one.keep({"baseline": {"root.a": {"weight": 2.0}}})
    one.store = place
    one.keep({"baseline": {"root.a": {"weight": 2.0}}})
    assert json.loads(place.read())["said"] == {"baseline": {"root.a": {"weight": 2.0}}}
