"""The wall-clock driver and the lease: spares, new ledgers, and whose the values in the file are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from harness.control.file_actuator import FileActuator
from harness.control.lease import HeldByAnother, Lease
from harness.control.released import go_on
from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore, StoreFull
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.policies import make_policy
from harness.yarn.fair.javanum import weight_text
from harness.yarn.fair.parse import parse_allocations
from tests.control.driven import FILE, controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import MemoryPlace, RmModel, silence


@contextmanager
def leased(rm: RmModel, folder: Path, place: MemoryPlace, clock: list[float], **settings: Any) -> Iterator[Controller]:
    folder.mkdir(exist_ok=True)
    with controlled(rm, folder, **settings) as controller:
        controller._lease = Lease(place, controller.store.identity, 30.0, lambda: clock[0])
        controller.holds = False
        yield controller


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("harness.control.wall.time.monotonic", lambda: now[0])
    return now


TWO_TO_ONE = FILE.replace(b"<weight>1</weight><maxRunningApps>", b"<weight>2</weight><maxRunningApps>")


def queue_b(file: bytes) -> bytes:
    """The element of queue b."""
    begin = file.index(b'<queue name="b">')
    end = file.index(b"</queue>", begin) + len(b"</queue>")
    return file[begin:end]


def test_a_spare_controller_knows_whose_the_weights_are(tmp_path: Path, clock: list[float]) -> None:
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        for _ in range(10):
            rm.start("x")
        for _ in range(4):
            rm.now_s += 20.0
            clock[0] += 5.0
            first.tick()
            report = spare.tick()
            assert kinds(report) == {"lease"}, "no word of somebody else's edits"
            assert spare.actuator.configured_weights()["root.a"] == 2.0
        assert in_force(rm)["root.a"] != 2.0
        # The first is killed; the spare takes over with the administrator's entitlements.
        clock[0] += 31.0
        rm.now_s += 31.0
        spare._good_s = clock[0]
        spare.tick()
        assert spare.holds
        assert spare.actuator.configured_weights() == {"root.a": 2.0, "root.b": 1.0}
        # The first comes back, with its own ledger: it has lost the lease and says so before it writes anything.
        rm.now_s += 20.0
        data = rm.place.data
        assert "lease" in kinds(first.tick())
        assert rm.place.data == data
        spare.release()
        settings = parse_allocations(rm.place.data).settings
        assert {path: settings[path].weight for path in ("root.a", "root.b")} == {"root.a": 2.0, "root.b": 1.0}
    # Given back, the file is the administrator's: a new ledger begins with what stands there.
    rm.place.data = FILE
    clock[0] += 60.0
    with leased(rm, tmp_path / "3", beside, clock) as third:
        third.tick()
        assert third.actuator.configured_weights()["root.a"] == 1.0


def test_a_spare_that_sees_no_resource_manager_takes_over_only_to_give_the_file_back(
    tmp_path: Path, clock: list[float]
) -> None:
    """The lease goes to who can do better (the soak, seed 920378)."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        for _ in range(10):
            rm.start("x")
        for _ in range(4):
            rm.now_s += 20.0
            clock[0] += 5.0
            first.tick()
            spare.tick()
        assert parse_allocations(rm.place.data).weight("root.a") != 2.0
        rm.down = silence()
        for _ in range(20):
            rm.now_s += 5.0
            clock[0] += 5.0
            assert "observation" in kinds(spare.tick())
        assert not spare.holds
        assert json.loads(beside.data)["owner"] == first.store.identity
        assert "the administrator's own weights" in spare.stop("release")
        assert parse_allocations(rm.place.data).weight("root.a") == 2.0


def test_a_new_ledger_beside_an_old_lease_takes_what_has_been_edited_since_for_the_administrators(
    tmp_path: Path, clock: list[float]
) -> None:
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first:
        for _ in range(10):
            rm.start("x")
        first.tick()
        rm.now_s += 60.0
        assert first.tick().wrote
    # Its ledger is lost; root.a has been edited meanwhile, root.b has not.
    rm.place.data = rm.place.data.replace(
        f"<weight>{weight_text(in_force(rm)['root.a'])}</weight>".encode(), b"<weight>5</weight>"
    )
    clock[0] += 60.0
    with leased(rm, tmp_path / "2", beside, clock) as second:
        second.tick()
        assert second.actuator.configured_weights() == {"root.a": 5.0, "root.b": 1.0}


def edited_after_a_write(rm: RmModel, holder: Controller, clock: list[float]) -> None:
    """The holder writes, and at once somebody writes a weight of root.a that the holder has not seen."""
    rm.now_s += 60.0
    clock[0] += 15.0
    assert holder.tick().wrote
    rm.place.data = rm.place.data.replace(
        f"<weight>{weight_text(in_force(rm)['root.a'])}</weight>".encode(), b"<weight>5</weight>"
    )


def test_an_edit_that_a_living_holder_has_not_seen_yet_is_an_entitlement_to_a_spare(
    tmp_path: Path, clock: list[float]
) -> None:
    """The holder would take it for one, too; it ends before it can."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        for _ in range(10):
            rm.start("x")
        first.tick()
        spare.tick()
        edited_after_a_write(rm, first, clock)
        assert kinds(spare.tick()) == {"lease"}
        assert spare.actuator.configured_weights() == {"root.a": 5.0, "root.b": 1.0}
        clock[0] += 31.0
        spare._good_s = clock[0]
        spare.tick()
        assert spare.holds
        assert spare.actuator.configured_weights() == {"root.a": 5.0, "root.b": 1.0}
        spare.release()
        assert parse_allocations(rm.place.data).settings["root.a"].weight == 5.0


def test_an_edit_that_a_holder_has_not_seen_before_it_hands_over_is_an_entitlement(
    tmp_path: Path, clock: list[float]
) -> None:
    """The spare has begun a moment ago: that the holder gives the lease back is the first sign of life that it sees."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        for _ in range(10):
            rm.start("x")
        first.tick()
        edited_after_a_write(rm, first, clock)
        assert kinds(spare.tick()) == {"lease"}
        first.close()
        clock[0] += 5.0
        spare.tick()
        assert spare.holds
        assert spare.actuator.configured_weights() == {"root.a": 5.0, "root.b": 1.0}
        spare.release()
        assert parse_allocations(rm.place.data).settings["root.a"].weight == 5.0


def test_a_write_that_takes_longer_than_the_lease_replaces_nothing(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file lies behind a slow network: a spare may have taken over before the new one is there."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    put = rm.place._put
    with leased(rm, tmp_path, beside, clock) as holder:
        for _ in range(10):
            rm.start("x")
        holder.tick()
        rm.now_s += 60.0
        clock[0] += 15.0
        before = rm.place.data

        def slowly(data: bytes, still: Callable[[], None]) -> None:
            clock[0] += 31.0
            put(data, still)

        monkeypatch.setattr(rm.place, "_put", slowly)
        report = holder.tick()
        assert not report.wrote
        assert [alarm.text for alarm in report.alarms if alarm.kind == "actuation"] == [
            f"{beside.name}: not written: it took longer than the lease lasts (30 s); "
            "the next round tries it again; where this lasts, make lease_s longer"
        ]
        assert rm.place.data == before


def test_a_look_that_takes_longer_than_the_lease_keeps_nobody_from_writing(tmp_path: Path, clock: list[float]) -> None:
    """Nobody has taken over: the lease is renewed before the file is written."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path, beside, clock) as only:
        for _ in range(10):
            rm.start("x")
        only.tick()
        rm.now_s += 60.0
        clock[0] += 15.0
        look = only._look.look

        def slowly(*given: Any, **named: Any) -> Any:
            clock[0] += 45.0
            return look(*given, **named)

        only._look.look = slowly  # type: ignore[method-assign]
        assert only.tick().wrote


@pytest.mark.parametrize(
    "nonsense", [b"{", b'{"owner": "somebody", "said": {"baseline": 3}, "said_by": "somebody", "lease_s": 5}']
)
def test_a_limit_whose_lease_was_overwritten_before_a_spare_read_it_is_not_the_administrators(
    tmp_path: Path, clock: list[float], nonsense: bytes
) -> None:
    """The holder writes one limit after another, and dies (soak, seed 20228)."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    first, its_lease = FileActuator(rm.place), Lease(beside, "first", 30.0, lambda: clock[0])

    def write(least: Resource) -> None:
        first.read()
        prepared = first.prepare(Attributes(min_shares={"root.b": least}))
        its_lease.keep(first.document())
        first.write(prepared)

    with leased(rm, tmp_path, beside, clock) as spare:
        its_lease.hold()
        for least in (Resource(100, 1), Resource(200, 2)):
            write(least)
            spare.tick()
        write(Resource(300, 3))
        beside.data = nonsense
        for _ in range(2):
            spare.tick()
            clock[0] += 31.0
            spare._good_s = clock[0]
        spare.tick()
        assert spare.holds
        spare.release()
        assert rm.place.data == TWO_TO_ONE


def test_a_spare_that_is_killed_while_it_takes_over_an_overwritten_lease_begins_with_what_it_knew(
    tmp_path: Path, clock: list[float]
) -> None:
    """The words that it had heard are older than the file (soak, seed 70)."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    first, its_lease = FileActuator(rm.place), Lease(beside, "first", 30.0, lambda: clock[0])
    with leased(rm, tmp_path, beside, clock) as spare:
        its_lease.hold()
        for weight in (3.0, 4.0):
            first.read()
            prepared = first.prepare(Attributes(weights={"root.a": weight, "root.b": 1.0}))
            its_lease.keep(first.document())
            first.write(prepared)
            if weight == 3.0:
                spare.tick()
        beside.data = b"{"
        assert spare._lease is not None
        spare._lease.hold()  # and it is killed
    with leased(rm, tmp_path, beside, clock) as again:
        again.tick()
        assert again.holds
        assert again.actuator.configured_weights() == {"root.a": 2.0, "root.b": 1.0}
        again.release()
        assert rm.place.data == TWO_TO_ONE


@pytest.mark.parametrize("shadow", [True, False], ids=["shadow", "dry run"])
def test_who_writes_nothing_beside_a_controller_knows_whose_the_weights_are(tmp_path: Path, shadow: bool) -> None:
    rm = rm_with_load(TWO_TO_ONE)
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    with controlled(rm, tmp_path / "1", lease_s=30.0) as first:
        for _ in range(10):
            rm.start("x")
        first.tick()
        rm.now_s += 60.0
        assert first.tick().wrote
        assert in_force(rm)["root.a"] != 2.0
        before = {name: place.data for name, place in rm.place.others.items()}
        with LedgerStore(tmp_path / "2" / "ledger.db") as store:
            how = ControlSettings(period_s=5.0, lease_s=30.0, mode="shadow" if shadow else "full")
            policy = make_policy("ltrf", {})
            actuator = FileActuator.restored(rm.place, store.document)
            second = Controller(
                how, rm, actuator, store, policy, open_observer=open_rm_poller, clock=rm.clock, dry_run=not shadow
            )  # type: ignore[arg-type]
            assert kinds(second.tick()) == set()
            assert second.actuator.configured_weights() == {"root.a": 2.0, "root.b": 1.0}
        assert {name: place.data for name, place in rm.place.others.items()} == before


@pytest.mark.parametrize("said", [{"baseline": 3}, {"baseline": {"root.a": {"weight": []}}, "ours": {}, "named": {}}])
def test_nonsense_in_the_lease_is_an_alarm(tmp_path: Path, clock: list[float], said: dict[str, Any]) -> None:
    rm, beside = rm_with_load(), MemoryPlace(json.dumps({"owner": "", "said": said, "said_by": "x"}).encode())
    with leased(rm, tmp_path / "1", beside, clock) as controller:
        assert "lease" in kinds(controller.tick())
        assert controller.actuator.configured_weights()["root.a"] == 1.0


def test_nonsense_in_the_lease_does_not_keep_a_holder_from_giving_the_file_back(
    tmp_path: Path, clock: list[float]
) -> None:
    """Nobody's weights are written in between: what stands in the lease is what was read there."""
    rm, beside = rm_with_load(), MemoryPlace(b"")
    before = rm.place.data
    with leased(rm, tmp_path / "1", beside, clock) as holder:
        for _ in range(4):
            rm.now_s += 20.0
            clock[0] += 5.0
            holder.tick()
        assert rm.place.data != before
        hostile = {"owner": "somebody", "count": 1, "lease_s": 5, "said": {"baseline": 3}, "said_by": "somebody"}
        beside.data = json.dumps(hostile).encode()
        told = []
        for _ in range(10):
            clock[0] += 5.0
            told.append(kinds(holder.tick()))
        assert {"lease"} in told
        assert told[-1] == set()
        assert holder.holds
        holder.release()
        assert rm.place.data == before


def test_a_holder_that_sees_nothing_gives_no_sign_of_life(tmp_path: Path, clock: list[float]) -> None:
    rm, beside = rm_with_load(), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        first.tick()
        rm.down = silence()
        for _ in range(10):
            clock[0] += 5.0
            assert "observation" in kinds(first.tick())
            with suppress(HeldByAnother):
                spare._lease.hold()  # type: ignore[union-attr]
        assert json.loads(beside.data)["owner"] == spare.store.identity


def test_a_holder_whose_disk_is_full_gives_no_sign_of_life_when_its_configuration_is_reloaded(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reload starts a new controller of the same ledger, which has seen as little as the one before (soak, seed
    2000132)."""
    rm, beside = rm_with_load(), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as holder:
        holder.tick()
        commit = holder.store.commit

        def full(*_: Any, **named: Any) -> None:
            raise StoreFull("no space left", where="ledger.db")

        monkeypatch.setattr(holder.store, "commit", full)
        for _ in range(3):
            clock[0] += 5.0
            assert "ledger" in kinds(holder.tick())
        signed = beside.data
        made = holder.remade(holder.settings, holder.policy)
        made._lease = Lease(beside, made.store.identity, 30.0, lambda: clock[0])
        made.holds = False
        for _ in range(4):
            clock[0] += 5.0
            assert {"ledger", "lease"} <= kinds(made.tick())
            assert beside.data == signed
            assert not made.holds
        monkeypatch.setattr(made.store, "commit", commit)
        for _ in range(2):
            clock[0] += 5.0
            made.tick()
        assert made.holds
        assert beside.data != signed


def test_a_spare_waits_where_the_lease_was_overwritten_while_its_holder_lives(
    tmp_path: Path, clock: list[float]
) -> None:
    """The holder had written a queue that the spare's ledger does not know (soak, seed 182): taken at once, that
    queue's momentary weight became its entitlement."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first:
        with leased(rm, tmp_path / "2", beside, clock) as spare:
            for _ in range(10):
                rm.start("x")
            first.tick()
            spare.tick()
        end, queue = b"</allocations>", b'<queue name="c"><weight> 1.0</weight></queue></allocations>'
        rm.place.data, own = rm.place.data.replace(end, queue), TWO_TO_ONE.replace(end, queue)
        rm.submit("z", "root.c").pending = 3
        for _ in range(2):
            rm.now_s += 60.0
            clock[0] += 5.0
            first.tick()
        assert parse_allocations(rm.place.data).weight("root.c") != 1.0
        beside.data = b"{"
        with leased(rm, tmp_path / "2", beside, clock) as again:
            for _ in range(4):
                rm.now_s += 5.0
                clock[0] += 5.0
                again.tick()
                assert not again.holds
                first.tick()
            first.close()
            clock[0] += 5.0
            again.tick()
            assert again.holds
            assert again.actuator.configured_weights() == {"root.a": 2.0, "root.b": 1.0, "root.c": 1.0}
            again.release()
            assert rm.place.data == own


def test_a_holder_that_gets_its_lease_back_does_not_take_its_old_weights_for_those_in_force(
    tmp_path: Path, clock: list[float]
) -> None:
    """The one that held it meanwhile has written others (soak, seed 1000210)."""
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with (
        leased(rm, tmp_path / "1", beside, clock) as first,
        leased(rm, tmp_path / "2", beside, clock, verify_every_s=1e6) as second,
    ):
        second.tick()
        wrote = second.actuator.configured_weights()
        assert second.core.written is not None
        clock[0] += 31.0
        first._good_s = clock[0]
        with suppress(HeldByAnother):
            first._lease.hold()  # type: ignore[union-attr]
        clock[0] += 31.0
        first._good_s = second._good_s = clock[0]
        first.tick()
        assert first.holds
        second.tick()
        assert not second.holds
        assert second.core.written is None
        first.actuator.read()
        first._lease.keep(first.actuator.document())  # type: ignore[union-attr]
        first.actuator.write(first.actuator.prepare(Attributes(weights={"root.a": 7.0, "root.b": 1.0})))
        first._lease.keep(first.actuator.document())  # type: ignore[union-attr]
        first.close()
        clock[0] += 5.0
        second.tick()
        assert second.holds
        assert second.actuator.configured_weights() == wrote
        assert parse_allocations(rm.place.data).weight("root.a") != 7.0


def test_a_holder_that_sees_nothing_gives_no_sign_of_life_when_it_is_told_to_go_on(
    tmp_path: Path, clock: list[float]
) -> None:
    """After a guard's release (soak, seed 49)."""
    rm, beside = rm_with_load(), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as holder:
        holder.tick()
        holder.released.begin(0.0, "a guard was passed")
        for blind in (False, True):
            rm.down = silence() if blind else None
            for _ in range(10):
                clock[0] += 5.0
                holder.tick()
            signed = beside.data
            go_on(tmp_path / "1" / "ledger.db")
            clock[0] += 5.0
            holder.tick()
            assert (beside.data == signed) == blind
            if not blind:
                holder.released.begin(0.0, "a guard was passed again")


def test_a_holder_that_sees_nothing_gives_no_sign_of_life_by_releasing_again(
    tmp_path: Path, clock: list[float]
) -> None:
    """The file is given back, and only the ResourceManager has yet to be told (soak, seed 439)."""
    rm, beside = rm_with_load(), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as holder:
        holder.tick()
        rm.down = silence()
        holder.released.begin(0.0, "a guard was passed")
        signs = []
        for _ in range(12):
            clock[0] += 5.0
            holder.tick()
            signs.append(beside.data)
        assert signs[0] != signs[1], "before, it signs"
        assert len(set(signs[6:])) == 1
        rm.down = None
        for _ in range(2):
            clock[0] += 5.0
            holder.tick()
        assert holder.released.given_back


def test_a_queue_that_was_commented_out_for_a_while_keeps_its_entitlement(tmp_path: Path) -> None:
    rm = rm_with_load(TWO_TO_ONE)
    with controlled(rm, tmp_path) as controller:
        for _ in range(10):
            rm.start("x")
        controller.tick()
        rm.now_s += 60.0
        controller.tick()
        whole = rm.place.data
        b = queue_b(whole)
        rm.place.data = whole.replace(b, b"<!-- away -->")
        rm.now_s += 5.0
        controller.tick()
        assert "root.b" not in controller.actuator.configured_weights()
    with controlled(rm, tmp_path) as controller:
        rm.now_s += 5.0
        controller.tick()
        rm.place.data = rm.place.data.replace(b"<!-- away -->", b)
        rm.now_s += 5.0
        controller.tick()
        assert controller.actuator.configured_weights() == {"root.a": 2.0, "root.b": 1.0}


def test_a_queue_that_was_commented_out_before_a_spare_took_over_keeps_its_entitlement(
    tmp_path: Path, clock: list[float]
) -> None:
    rm, beside = rm_with_load(TWO_TO_ONE), MemoryPlace(b"")
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        for _ in range(10):
            rm.start("x")
        for _ in range(4):
            rm.now_s += 20.0
            clock[0] += 5.0
            first.tick()
        whole = rm.place.data
        b = queue_b(whole)
        assert b"<weight>1<" not in b
        rm.place.data = whole.replace(b, b"<!-- away -->")
        for _ in range(2):
            rm.now_s += 20.0
            clock[0] += 5.0
            first.tick()
            spare.tick()
        # The first is killed while the queue is away; it comes back with the weight that was the first one's.
        clock[0] += 31.0
        rm.now_s += 31.0
        spare._good_s = clock[0]
        spare.tick()
        assert spare.holds
        rm.place.data = rm.place.data.replace(b"<!-- away -->", b)
        rm.now_s += 5.0
        clock[0] += 5.0
        spare.tick()
        assert spare.actuator.configured_weights() == {"root.a": 2.0, "root.b": 1.0}


@pytest.mark.parametrize("count_earlier", [False, True])
def test_what_was_used_before_the_first_look_counts_if_it_is_to(tmp_path: Path, count_earlier: bool) -> None:
    rm = rm_with_load()
    rm.start("x")
    rm.now_s += 50.0
    with controlled(rm, tmp_path, count_earlier=count_earlier) as controller:
        report = controller.tick()
        assert report.counted["root.a"] == pytest.approx(50.0 * 1024 if count_earlier else 0.0)
        assert report.counted["root.b"] == 0.0
