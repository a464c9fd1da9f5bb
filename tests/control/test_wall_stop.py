"""The wall-clock driver switched off: stopped, killed, or handed over to a spare."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.control.lease import Lease
from harness.control.wall import Controller
from harness.yarn.errors import NoActiveRm, Unreachable
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import LocalStore
from tests.control.driven import controlled, in_force, rm_with_load
from tests.control.rm_model import CapacityRmModel, MemoryPlace, RmModel
from tests.control.soak import capacities
from tests.control.test_gate import BEFORE, enforced

WRITTEN = b"""<?xml version="1.0"?>
<allocations>
  <queue name="a"><weight>2.0</weight><maxRunningApps>7</maxRunningApps></queue>
  <queue name="b"/>
</allocations>
"""


def contended(place: MemoryPlace | LocalStore) -> RmModel:
    rm = rm_with_load()
    rm.place = place  # type: ignore[assignment]
    rm.refresh_queues()
    for _ in range(10):
        rm.start("x")
    return rm


def turn(rm: RmModel, controller: Controller, seconds: float = 20.0) -> None:
    rm.now_s += seconds
    controller.tick()


def test_stopped_it_gives_back_every_byte_and_says_whether_it_is_in_force(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        turn(rm, controller)
        assert rm.place.data != WRITTEN
        assert controller.stop("release") == "stopped; the administrator's own weights and limits are in force"
    assert rm.place.data == WRITTEN
    assert in_force(rm)["root.a"] == 2.0
    assert [name for name, file in rm.place.others.items() if file.data] == []


def test_on_request_what_is_in_force_stays(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        turn(rm, controller)
        managed = rm.place.data
        assert controller.stop("hold") == "stopped; what is in force stays so"
    assert rm.place.data == managed != WRITTEN


def leases(clock: list[float], place: MemoryPlace, *controllers: Controller) -> None:
    for controller in controllers:
        sign = place.beside(".memory.xml.standby")
        at = place.beside(".memory.xml.lease")
        controller._lease = Lease(at, controller.store.identity, 30.0, lambda: clock[0], sign)
        controller.holds = False


@pytest.mark.parametrize("alive", [True, False])
def test_a_spare_that_lives_is_handed_over_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool) -> None:
    clock = [0.0]
    monkeypatch.setattr("harness.control.wall.time.monotonic", lambda: clock[0])
    place = MemoryPlace(WRITTEN)
    rm = contended(place)
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
    with controlled(rm, tmp_path / "1") as first, controlled(rm, tmp_path / "2") as spare:
        leases(clock, place, first, spare)
        for _ in range(8):
            clock[0] += 5.0
            turn(rm, first)
            turn(rm, spare, 0.0)
        assert first.holds
        assert not spare.holds

        def sleep(seconds: float) -> None:
            clock[0] += 5.0
            rm.now_s += 5.0
            if alive:
                spare.tick()

        words = first.stop("release", sleep)
        if alive:
            assert "a spare controller has taken over" in words
            assert spare.holds
            assert rm.place.data != WRITTEN
            assert "has the allocation file" in first.stop("release")
            assert spare.stop("release").endswith("in force")
        else:
            assert words.endswith("in force")
        assert rm.place.data == WRITTEN


def test_a_shadow_says_what_it_would_write_once_and_writes_nothing(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        turn(rm, controller)
        rm.now_s += 20.0
        report = controller.tick()
        assert report.record is not None
        assert report.shadow
        assert report.record.attributes.weights["root.a"] < 2.0 < 3.0
        assert report.consumed["root.a"][0] == 20.0 * 10 * 1024, "it accounts from its first look on"
        assert controller.tick().record is None, "said once"
        assert controller.stop("release") == "stopped; a shadow has written nothing"
    assert (rm.place.data, rm.refreshes) == (WRITTEN, 1)
    assert not any(place.writes for place in rm.place.others.values()), "beside the file neither"


def test_bounded_weights_stay_within_the_ratio_of_the_entitlements(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with controlled(rm, tmp_path, mode="bounded", max_ratio=2.0) as controller:
        for _ in range(5):
            turn(rm, controller, 400.0)
            weights = in_force(rm)
            assert 1.0 <= weights["root.b"] / (weights["root.a"] / 2.0) <= 2.0
        assert weights["root.b"] / (weights["root.a"] / 2.0) == pytest.approx(2.0, rel=1e-3)


def at_work(folder: Path, file: Path) -> None:
    """A process that controls as fast as it can, until it is killed."""
    rm = contended(LocalStore(file))
    rng = random.Random(1)
    with controlled(rm, folder, lease_s=30.0) as controller:
        for _ in range(10_000):
            rm.start(rng.choice("xy"))
            turn(rm, controller, rng.uniform(1.0, 60.0))


def wait_for_cpu(process: int, seconds: float) -> None:
    """Until a process has computed for so long: on a busy machine it comes to nothing in the same time."""
    # As clock_getcpuclockid(3) has it on Linux.
    clock, until_s = ~process << 3 | 2, time.monotonic() + 60.0
    while time.clock_gettime(clock) < seconds and time.monotonic() < until_s:
        time.sleep(0.001)


def kills(folder: Path, count: int) -> None:
    """Killed at any moment it leaves its weights or the administrator's file; the next one gives back every byte."""
    file = folder / "etc" / "fair-scheduler.xml"
    file.parent.mkdir()
    file.write_bytes(WRITTEN)
    rng, seen = random.Random(2), set()
    for _ in range(count):
        process = os.fork()
        if not process:
            try:
                at_work(folder, file)
            finally:
                os._exit(1)
        wait_for_cpu(process, rng.uniform(0.0, 0.25))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        seen.add(data := file.read_bytes())
        if data != WRITTEN:
            said = parse_allocations(data).settings
            assert all(1e-3 <= (said[path].weight or 1.0) <= 1e6 for path in ("root.a", "root.b"))
            assert said["root.a"].max_running_apps == 7
        if rng.random() < 0.5:
            with controlled(contended(LocalStore(file)), folder, lease_s=30.0) as controller:
                controller.release()
            assert file.read_bytes() == WRITTEN
            assert os.listdir(file.parent) == [file.name]
    assert len(seen) > 1, "some were killed with weights in force"


def test_killed_at_any_moment(tmp_path: Path) -> None:
    kills(tmp_path, 8)


@pytest.mark.long
def test_killed_at_many_moments(tmp_path: Path) -> None:
    kills(tmp_path, 100)


NO_ROOM = InputError("cannot be written: No space left on device", where="lease")


def killed_without_room(tmp_path: Path) -> RmModel:
    """A controller was killed after a write; since then its lease cannot be written."""
    rm = contended(MemoryPlace(WRITTEN))
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        turn(rm, controller)
    assert rm.place.data != WRITTEN
    rm.place.beside(".memory.xml.lease").fail = NO_ROOM
    return rm


def test_a_lease_that_cannot_be_written_keeps_nothing_from_being_given_back_at_a_stop(tmp_path: Path) -> None:
    """A controller that had not taken its own lease again ended with the weights in force, blaming another one."""
    rm = killed_without_room(tmp_path)
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        assert "the administrator's own weights and limits are in force" in controller.stop("release")
    assert rm.place.data == WRITTEN


def test_a_full_disk_is_no_other_controller(tmp_path: Path) -> None:
    """It ended with the exit code 0 and "another controller has the allocation file", where nobody had it."""
    rm = killed_without_room(tmp_path)
    rm.place.fail = InputError("cannot be written: No space left on device", where="memory.xml")
    with controlled(rm, tmp_path, lease_s=30.0) as controller, pytest.raises(InputError, match="No space left"):
        controller.stop("release")


@pytest.mark.parametrize("stale_s", [3.0, 12.0])
def test_a_store_that_shows_its_old_configuration_for_a_while_is_restored_all_the_same(
    tmp_path: Path, stale_s: float
) -> None:
    """Five attempts within a moment found the configuration changed, and a stop left the controller's capacities."""
    rm = CapacityRmModel(BEFORE, store=True)
    store = rm.store
    assert store is not None
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        old = store.now
        for _ in range(10):
            rm.start("x")
        turn(rm, controller, 60.0)
        assert store.now != old
        until_s, waited = rm.now_s + stale_s, list[float]()
        store.read = lambda: old if rm.now_s < until_s else store.now  # type: ignore[method-assign]

        def wait(seconds: float) -> None:
            waited.append(seconds)
            rm.now_s += seconds

        assert controller.stop("release", wait).endswith("the administrator's own capacities are in force")
        assert store.now.values == capacities.properties(BEFORE)
        assert sum(waited) <= 14.0


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_restore_that_is_not_answered_is_asked_for_again(tmp_path: Path, carried_out: bool) -> None:
    """The store had the administrator's capacities, and the stop said that it had not released (exit code 1)."""
    rm = CapacityRmModel(BEFORE, store=True)
    store = rm.store
    assert store is not None
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        put, lost = store.put, list[Mapping[str, str]]()

        def unanswered(values: Mapping[str, str]) -> None:
            if carried_out or lost:
                put(values)
            lost.append(values)
            if len(lost) == 1:
                raise Unreachable("no answer: (read timeout=2.0)")

        store.put = unanswered  # type: ignore[method-assign]
        words = controller.stop("release", lambda seconds: setattr(rm, "now_s", rm.now_s + seconds))
    assert words.endswith("the administrator's own capacities are in force")
    assert len(lost) == 2 - carried_out
    assert store.now.values == capacities.properties(BEFORE)


def test_a_refresh_that_is_not_answered_is_asked_for_again(tmp_path: Path) -> None:
    """A failover during a stop left the controller's weights in force until somebody refreshed (exit code 0)."""
    rm = contended(MemoryPlace(WRITTEN))
    with controlled(rm, tmp_path) as controller:
        turn(rm, controller)
        load, asked = rm.refresh_queues, list[float]()

        def failing_over() -> None:
            asked.append(rm.now_s)
            if len(asked) < 3:
                raise NoActiveRm("no active ResourceManager (STANDBY, STANDBY)")
            load()

        rm.refresh_queues = failing_over  # type: ignore[method-assign]
        waited = list[float]()
        assert "the administrator's own weights and limits are in force" in controller.stop("release", waited.append)
    assert sum(waited) <= 5.0
    assert rm.place.data == WRITTEN
