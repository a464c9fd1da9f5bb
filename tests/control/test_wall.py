"""The wall-clock driver, tick by tick, on a ResourceManager in memory whose true consumption is known."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.control.lease import HeldByAnother, Lease
from harness.control.reports import TickReport
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore, read_decisions, read_documents
from harness.model.errors import InputError
from harness.policies import make_policy
from harness.yarn.allocation.parse import parse_allocations
from harness.yarn.allocation.render import weight_text
from harness.yarn.errors import BadAnswer
from tests.control.rm_model import MemoryPlace, RmModel, silence

FILE = b"""<allocations>
  <queue name="a"><weight>1</weight><maxRunningApps>7</maxRunningApps></queue>
  <queue name="b"><weight>1</weight></queue>
</allocations>
"""


@contextmanager
def controlled(
    rm: RmModel, folder: Path, policy: str = "ltrf", sets: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Controller]:
    with LedgerStore(folder / "ledger.db") as store:
        how = ControlSettings(**{"period_s": 5.0, **settings})
        made = make_policy(policy, {"horizon_s": "100", **(sets or {})} if policy == "ltrf" else sets)
        yield Controller(how, rm, rm.place, store, made, clock=rm.clock)  # type: ignore[arg-type]


def rm_with_load() -> RmModel:
    rm = RmModel(MemoryPlace(FILE))
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    return rm


def kinds(report: TickReport) -> set[str]:
    return {alarm.kind for alarm in report.alarms}


def in_force(rm: RmModel) -> dict[str, float]:
    return {queue.path: queue.weight for queue in rm.tree if queue.parent is not None}


def test_usage_moves_the_weights_and_each_is_in_force_and_recorded(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        assert controller.tick().record is not None
        for _ in range(10):
            rm.start("x")
        rm.now_s += 60.0
        report = controller.tick()
        assert report.record is not None
        assert report.wrote
        assert report.alarms == ()
        assert report.consumed["root.a"][0] == rm.truth("root.a")[0]
        weights = in_force(rm)
        assert weights["root.a"] < weights["root.b"]
        assert weights == pytest.approx(report.record.attributes.weights)
        assert parse_allocations(rm.place.data).settings["root.a"].max_running_apps == 7
    assert [set(made["changed"]) for made in read_decisions(tmp_path / "ledger.db")] == [{"root.a", "root.b"}] * 2
    look = read_documents(tmp_path / "ledger.db", ["look"])["look"]
    assert look["queues"]["root.b"]["pending"] == 3


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        for _ in range(5):
            controller.tick()
            rm.now_s += 5
    assert len(rm.place.writes) == 1
    assert rm.refreshes == 1


def test_entitlements_of_the_configuration_come_before_those_of_the_file(tmp_path: Path) -> None:
    rm = RmModel(MemoryPlace(FILE.replace(b"<weight>1<", b"<weight>3<", 1)))
    with controlled(rm, tmp_path, policy="fair", entitlements={"root.b": 6.0}) as controller:
        controller.tick()
    assert in_force(rm) == {"root.a": 3.0, "root.b": 6.0}


@pytest.mark.parametrize("fault", [silence(), BadAnswer("answer.scheduler is null, not an object", where="http://rm")])
def test_an_outage_changes_neither_weights_nor_what_is_counted_in_the_end(tmp_path: Path, fault: Exception) -> None:
    totals = []
    for broken in (False, True):
        rm = rm_with_load()
        for _ in range(4):
            rm.start("x")
        (tmp_path / str(broken)).mkdir()
        with controlled(rm, tmp_path / str(broken)) as controller:
            for at in range(40):
                rm.down = fault if broken and 10 <= at < 30 else None
                before = in_force(rm)
                report = controller.tick()
                if rm.down:
                    assert kinds(report) == {"observation"}
                    assert report.snapshot is None
                    rm.down = None
                    assert in_force(rm) == before
                rm.now_s += 5
            totals.append((report.consumed, in_force(rm), rm.truth("root.a")))
    assert totals[0] == totals[1]
    assert totals[0][0]["root.a"] == pytest.approx(totals[0][2], rel=0.05)


def test_an_rm_that_begins_anew_is_noticed_and_its_weights_are_verified(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 5
        # It comes back with another file than ours in its memory.
        ours, rm.place.data = rm.place.data, FILE
        rm.restart()
        rm.place.data = ours
        report = controller.tick()
        assert "rm" in kinds(report)
        assert in_force(rm) == {"root.a": 500.0, "root.b": 500.0}
        rm.now_s += 5
        assert controller.tick().alarms == ()


def test_weights_that_are_not_in_force_are_an_alarm_until_they_are(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        rm.loads = False
        for _ in range(3):
            assert kinds(controller.tick()) == {"not-in-force"}
            rm.now_s += 5
        rm.loads = True
        assert controller.tick().alarms == ()
        assert in_force(rm)["root.a"] == 500.0
        # Somebody refreshes another file, and puts ours back: only the RM's answer shows it.
        ours, rm.place.data = rm.place.data, FILE
        rm.refresh_queues()
        rm.place.data = ours
        rm.now_s += 5
        assert kinds(controller.tick()) == {"not-in-force"}
        rm.now_s += 5
        assert controller.tick().alarms == ()
        assert in_force(rm)["root.a"] == 500.0


def test_somebody_else_who_edits_the_file_keeps_what_is_his(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.place.data = rm.place.data.replace(b">7<", b">9<").replace(b"<weight>500<", b"<weight>2<")
        rm.now_s += 5
        report = controller.tick()
        assert kinds(report) == {"foreign"}
        file = parse_allocations(rm.place.data)
        assert file.settings["root.a"].max_running_apps == 9
        assert file.weight("root.a") == 500.0
        assert in_force(rm)["root.a"] == 500.0


def test_a_torn_file_is_left_alone_and_made_good_use_of_when_it_is_whole_again(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        good, rm.place.data = rm.place.data, rm.place.data[:40]
        for _ in range(10):
            rm.start("x")
        for _ in range(5):
            rm.now_s += 5
            report = controller.tick()
            assert "file" in kinds(report)
            assert report.snapshot is not None, "accounts go on"
            assert rm.place.data == good[:40]
            assert in_force(rm)["root.a"] == 500.0
        rm.place.data = good
        rm.now_s += 5
        assert controller.tick().alarms == ()
        assert in_force(rm)["root.a"] < in_force(rm)["root.b"]


def test_a_disk_that_is_full_keeps_the_old_file_in_force(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        before = rm.place.data
        rm.place.fail = InputError("cannot be written: No space left on device", where="memory")
        for _ in range(10):
            rm.start("x")
        rm.now_s += 30
        report = controller.tick()
        assert kinds(report) == {"actuation"}
        assert report.record is None
        assert rm.place.data == before
        rm.place.fail = None
        rm.now_s += 5
        assert controller.tick().wrote
    assert len(read_decisions(tmp_path / "ledger.db")) == 2, "what was not carried out is no decision"


def test_a_file_that_cannot_be_read_at_the_beginning_decides_nothing(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.place.data = b"<allocations><que"
    with controlled(rm, tmp_path) as controller:
        assert kinds(controller.tick()) == {"observation"}
        assert rm.place.writes == []


def test_queues_that_come_and_go(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.extra_queues.append("root.bob")
        rm.submit("z", "root.bob")
        rm.start("z", 4096)
        rm.now_s += 50
        report = controller.tick()
        assert report.counted["root.bob"] == 50 * 4096
        weights = in_force(rm)
        assert weights["root.a"] > 1.0, "bob has had more: his weight of 1 is to be the smallest"
        rm.finish("z")
        rm.extra_queues.clear()
        rm.now_s += 50
        assert "root.bob" not in controller.tick().counted
        rm.extra_queues.append("root.bob")
        rm.now_s += 50
        report = controller.tick()
        assert report.counted["root.bob"] == 50 * 4096, "who comes back is remembered"
        assert report.alarms == ()


def test_minimum_shares_are_lifted_and_given_back(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path, policy="hltrf", sets={"t_wait": "4"}) as controller:
        controller.tick()
        rm.now_s += 20
        report = controller.tick()
        assert report.record is not None
        assert "has waited" in report.record.reasons["root.b"]
        assert parse_allocations(rm.place.data).min_resources("root.b").memory_mb > 0
        rm.apps["y"].pending = 0
        rm.now_s += 5
        controller.tick()
        assert b"minResources" not in rm.place.data


def test_maximum_shares_of_static_and_their_release(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path, policy="static") as controller:
        controller.tick()
        assert rm.place.data.count(b"<maxResources>51200 mb, 50 vcores</maxResources>") == 2
        controller.release()
        assert parse_allocations(rm.place.data) == parse_allocations(FILE)
        assert in_force(rm) == {"root.a": 1.0, "root.b": 1.0}


class Polling:
    """The RM's own poll, as AllocationFileLoaderService does it: every 10 s, a file that is newer than the last load
    and has been still for more than 5 s. ``phase_s``: of its polls; ``blind``: it finds nothing new."""

    def __init__(self, rm: RmModel, phase_s: float) -> None:
        self.rm, self.next_s, self.blind = rm, rm.now_s + phase_s, False
        self.modified_s = self.loaded_s = rm.now_s - 100.0
        self.loads = 0
        put = rm.place._put

        def timed(data: bytes) -> None:
            put(data)
            self.modified_s = rm.now_s

        rm.place._put = timed  # type: ignore[method-assign]

    def until(self, now_s: float) -> None:
        while self.next_s <= now_s:
            if not self.blind and self.modified_s > self.loaded_s and self.next_s > self.modified_s + 5.0:
                self.rm._load()
                self.loads, self.loaded_s = self.loads + 1, self.next_s
            self.next_s += 10.0
        self.rm.now_s = now_s


@pytest.mark.parametrize("phase_s", [0.5, 2.5, 4.0, 4.9, 6.0, 9.5])
@pytest.mark.parametrize("period_s", [1.0, 5.0, 10.0])
def test_every_write_is_found_by_the_rms_own_poll_whatever_its_phase(
    tmp_path: Path, phase_s: float, period_s: float
) -> None:
    rm = rm_with_load()
    poll = Polling(rm, phase_s)
    with controlled(rm, tmp_path, refresh="poll", period_s=period_s) as controller:
        for step in range(round(120 / period_s)):
            rm.start("xy"[step // 3 % 2], 4096)
            assert controller.tick().alarms == ()
            poll.until(rm.now_s + period_s)
    assert rm.refreshes == 0
    written = len(rm.place.writes)
    assert written >= 4, "the weights change at every look"
    assert poll.loads >= written - 1, "all but the last one"


@pytest.mark.parametrize("period_s", [5.0, 10.0])
def test_a_poll_that_finds_nothing_is_an_alarm_however_often_the_weights_change(
    tmp_path: Path, period_s: float
) -> None:
    rm = rm_with_load()
    poll = Polling(rm, 3.0)
    poll.blind = True
    alarmed = []
    with controlled(rm, tmp_path, refresh="poll", period_s=period_s) as controller:
        for step in range(round(70 / period_s)):
            rm.start("xy"[step // 3 % 2], 4096)
            if kinds(controller.tick()) == {"not-in-force"}:
                alarmed.append(rm.now_s - 1000.0)
            poll.until(rm.now_s + period_s)
    assert alarmed[0] in (25.0, 30.0)
    assert len(alarmed) >= 2
    assert len(rm.place.writes) <= 6


def test_a_file_that_the_rm_takes_for_loaded_is_written_again_as_it_is(tmp_path: Path) -> None:
    rm = rm_with_load()
    poll = Polling(rm, 3.0)
    with controlled(rm, tmp_path, refresh="poll") as controller:
        controller.tick()
        # It was replaced while the RM was loading: what counts is when that ended.
        poll.loaded_s = rm.now_s + 0.5
        seen = []
        for _ in range(10):
            poll.until(rm.now_s + 5.0)
            seen.append(kinds(controller.tick()))
        assert {"not-in-force"} in seen
        assert seen[-3:] == [set()] * 3
        assert in_force(rm) == {"root.a": 500.0, "root.b": 500.0}
        assert set(rm.place.writes) == {rm.place.data}


def test_a_failover_while_reading_back_is_an_alarm_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        ours, rm.place.data = rm.place.data, FILE
        rm.refresh_queues()
        rm.place.data = ours
        asked: list[int] = []
        answer = rm.effective_queues

        def once() -> Mapping[str, Any]:
            asked.append(1)
            if len(asked) > 1:
                raise silence()
            return answer()

        monkeypatch.setattr(rm, "effective_queues", once)
        rm.now_s += 5
        report = controller.tick()
        assert len(asked) == 2
        assert kinds(report) == {"not-in-force"}
        monkeypatch.undo()
        for _ in range(2):
            rm.now_s += 5
            report = controller.tick()
        assert report.alarms == ()
        assert in_force(rm)["root.a"] == 500.0


class Pages:
    """The web server of an RM whose ``/jmx`` fails, and with ``pair`` a standby's, whose does not: an `HttpClient`."""

    def __init__(self, rm: RmModel, fault: Exception, takes_s: float = 0.0, *, pair: bool = False) -> None:
        self.rm, self.fault, self.takes_s, self.pair = rm, fault, takes_s, pair
        self.current, self.asked = "http://rm", 0

    def request(self, *_: Any, only: str | None = None, **__: Any) -> Any:
        self.asked += 1
        self.rm.now_s += self.takes_s
        if self.pair and only is None:
            self.current = "http://standby"
            return SimpleNamespace(document={"beans": []}, url="http://standby/jmx")
        raise self.fault


@pytest.mark.parametrize(("takes_s", "pause_s"), [(0.0, 300.0), (45.0, 450.0)])
def test_a_jmx_page_that_is_slow_or_broken_stops_nothing(tmp_path: Path, takes_s: float, pause_s: float) -> None:
    rm = rm_with_load()
    pages = rm.rest.http = Pages(rm, silence(), takes_s)
    with controlled(rm, tmp_path) as controller:
        for _ in range(10):
            rm.start("x")
        report = controller.tick()
        assert report.alarms == ()
        assert report.wrote
        asked_s = rm.now_s
        while pages.asked == 1:
            rm.now_s += 5.0
            assert controller.tick().alarms == ()
        assert rm.now_s - takes_s - asked_s == pause_s


def test_a_standby_that_shows_its_own_jmx_page_is_no_failover(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.rest.http = Pages(rm, silence(), pair=True)
    with controlled(rm, tmp_path) as controller:
        for _ in range(70):
            report = controller.tick()
            assert report.alarms == ()
            rm.now_s += 5.0
        assert controller._look.identity == ["http://rm", 1, 1]


def test_a_failover_in_the_middle_of_a_look_leaves_the_accounts_alone(tmp_path: Path) -> None:
    rm = rm_with_load()
    container = rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 50.0
        before = controller.tick().consumed
        scheduler = rm.rest.scheduler

        def turns() -> Any:
            rm.rest.http.current = "http://other"
            rm.restart()
            rm.node_back([container])
            return scheduler()

        rm.rest.scheduler = turns
        rm.now_s += 5.0
        report = controller.tick()
        assert kinds(report) == {"observation"}
        assert report.consumed == before
        rm.rest.scheduler = scheduler
        rm.now_s += 5.0
        assert kinds(controller.tick()) == {"rm"}
        rm.now_s += 5.0
        report = controller.tick()
        assert report.alarms == ()
        assert report.consumed["root.a"][0] == pytest.approx(rm.truth("root.a")[0])


def test_an_application_that_makes_no_sense_for_a_while_is_said_and_counted_in_the_end(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, tmp_path, full_look_every_s=10.0) as controller:
        controller.tick()
        for at in range(12):
            rm.now_s += 10.0
            rm.senseless = {"x": "memorySeconds is many"} if 3 <= at < 8 else {}
            report = controller.tick()
            assert kinds(report) == ({"app"} if rm.senseless else set())
            assert report.snapshot is not None
        assert report.consumed["root.a"][0] == pytest.approx(rm.truth("root.a")[0])


def test_a_dry_run_touches_nothing(tmp_path: Path) -> None:
    rm = rm_with_load()
    with LedgerStore(tmp_path / "l.db") as store:
        controller = Controller(
            ControlSettings(),
            rm,
            rm.place,
            store,
            make_policy("ltrf"),
            clock=rm.clock,
            dry_run=True,  # type: ignore[arg-type]
        )
        report = controller.tick()
        assert report.record is not None
        assert controller.prepared is not None
        assert controller.prepared.changed
    assert rm.place.writes == []
    assert rm.refreshes == 0


def test_another_policy_goes_on_with_the_accounts_or_says_that_it_cannot(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x")
    for policy, sets, counted in (
        ("ltrf", {}, 10 * 1024.0),
        ("naive-hltrf", {}, 20 * 1024.0),
        ("ltrf", {"resource": "vcores"}, 0.0),
    ):
        with controlled(rm, tmp_path, policy=policy, sets=sets) as controller:
            controller.tick()
            rm.now_s += 10
            report = controller.tick()
            if counted:
                assert report.counted["root.a"] == counted
            else:
                assert report.counted["root.a"] == 10.0
                assert report.consumed["root.a"][1] == 30.0


USERS = """
from harness.model.plan import Plan
from harness.policies.base import Policy


class Own(Policy):
    def plan(self, snapshot, ledger):
        {fault}
        demand = snapshot.queues["root.b"].demand.memory_mb
        return Plan(weights={{"root.a": 1.0, "root.b": 1.0 + demand / snapshot.capacity.memory_mb}})
"""


@pytest.mark.parametrize("fault", ["pass", "raise KeyError('root.c')", "1 / 0", "return None"])
def test_a_users_policy_keeps_its_ledger_whatever_its_plan_does(tmp_path: Path, fault: str) -> None:
    """It wants the real queues and a capacity; at a restart it may fail, and what was counted is still there then."""
    file = tmp_path / "own.py"
    rm = rm_with_load()
    rm.start("x")
    counted = []
    for part in ("pass", fault, "pass"):
        file.write_text(USERS.format(fault=part))
        with controlled(rm, tmp_path, policy=f"{file}:Own") as controller:
            for _ in range(2):
                report = controller.tick()
                assert kinds(report) == (set() if part == "pass" else {"policy"})
                rm.now_s += 10.0
            counted.append(report.counted.get("root.a"))
    assert counted[0] == 10 * 1024.0
    assert counted[2] == 50 * 1024.0


def test_run_stops_when_told(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path, period_s=0.05) as controller:
        stop, ticks = threading.Event(), []

        def on_tick(report: TickReport) -> None:
            ticks.append(report)
            if len(ticks) == 3:
                stop.set()

        controller.on_tick = on_tick
        controller.run(stop)
    assert len(ticks) == 3


class Killed(BaseException):
    """As if the process ended here."""


@pytest.mark.parametrize("seed", range(5))
def test_killed_at_any_step_and_started_again_it_counts_and_enforces_as_if_nothing_had_happened(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit, write, refresh and read-back is a place to die before or after."""
    outcomes = []
    for killing in (False, True):
        folder = tmp_path / str(killing)
        folder.mkdir()
        rm, rng = rm_with_load(), random.Random(seed)
        deaths = random.Random(1000 + seed)

        def deadly(thing: Any, name: str, deaths: random.Random = deaths, killing: bool = killing) -> None:
            real = getattr(thing, name)

            def wrapped(*args: Any, **options: Any) -> Any:
                if killing and deaths.random() < 0.04:
                    raise Killed
                answer = real(*args, **options)
                if killing and deaths.random() < 0.04:
                    raise Killed
                return answer

            monkeypatch.setattr(thing, name, wrapped)

        killed = step = 0
        with controlled(rm, folder) as controller:
            controller.tick()  # from here on it counts
        for thing, name in ((rm, "refresh_queues"), (rm, "confirm_weights"), (rm.place, "_put")):
            deadly(thing, name)
        while step < 25:
            with controlled(rm, folder) as controller:
                deadly(controller.store, "commit")
                try:
                    while step < 25:
                        if rng.random() < 0.5:
                            rm.start("x")
                        rm.now_s += 5.0
                        step += 1
                        report = controller.tick()
                        assert kinds(report) <= {"rm"}, report.alarms
                except Killed:
                    killed += 1
        monkeypatch.undo()
        rm.finish("x")
        rm.now_s += 10.0
        with controlled(rm, folder) as controller:
            report = controller.tick()
        assert report.consumed["root.a"] == pytest.approx(rm.truth("root.a"), rel=1e-9)
        outcomes.append({**in_force(rm), "counted": report.counted["root.a"]})
        assert bool(killed) == killing
    assert outcomes[0] == pytest.approx(outcomes[1])


def test_ad_hoc_queues_may_be_named_while_they_are_busy(tmp_path: Path) -> None:
    rm = RmModel(MemoryPlace(FILE.replace(b"</allocations>", b'<queue name="users" type="parent"/></allocations>')))
    given = rm.place.data
    with controlled(rm, tmp_path, ad_hoc="name") as controller:
        controller.tick()
        rm.extra_queues += ["root.users.alice", "root.users.bob"]
        rm.submit("z", "root.users.alice").pending = 2
        rm.start("z", 4096)
        rm.submit("w", "root.users.bob").pending = 2
        rm.now_s += 50
        controller.tick()
        assert {"root.users.alice", "root.users.bob"} <= set(rm.file.configured_leaves)
        rm.extra_queues.clear()
        rm.now_s += 50
        report = controller.tick()
        assert report.alarms == ()
        weights = in_force(rm)
        assert weights["root.users.alice"] < weights["root.users.bob"], "who has had more has the smaller weight"
        assert report.snapshot is not None
        assert report.snapshot.queues["root.users.bob"].weight == 1.0
    rm.finish("z")
    rm.submit("x", "root.a")
    # A controller that was restarted knows what it has named.
    with controlled(rm, tmp_path, ad_hoc="name") as controller:
        for _ in range(3):
            rm.now_s += 40
            rm.start("x")
            report = controller.tick()
            assert report.alarms == ()
        assert "root.users.alice" not in rm.file.configured_leaves, "idle for more than a minute"
        assert "root.users.bob" in rm.file.configured_leaves
        assert report.consumed["root.users.alice"][0] == 100 * 4096.0
        controller.release()
    assert parse_allocations(rm.place.data) == parse_allocations(given)


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


def test_a_spare_controller_knows_whose_the_weights_are(tmp_path: Path, clock: list[float]) -> None:
    rm, beside = rm_with_load(), MemoryPlace(b"")
    rm.place.data = TWO_TO_ONE
    rm._load()
    with leased(rm, tmp_path / "1", beside, clock) as first, leased(rm, tmp_path / "2", beside, clock) as spare:
        for _ in range(10):
            rm.start("x")
        for _ in range(4):
            rm.now_s += 20.0
            clock[0] += 5.0
            first.tick()
            report = spare.tick()
            assert kinds(report) == {"lease"}, "no word of somebody else's edits"
            assert spare.owner.configured_weights()["root.a"] == 2.0
        assert in_force(rm)["root.a"] != 2.0
        # The first is killed; the spare takes over with the administrator's entitlements.
        clock[0] += 31.0
        rm.now_s += 31.0
        spare._good_s = clock[0]
        spare.tick()
        assert spare.holds
        assert spare.owner.configured_weights() == {"root.a": 2.0, "root.b": 1.0}
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
        assert third.owner.configured_weights()["root.a"] == 1.0


def test_a_new_ledger_beside_an_old_lease_takes_what_has_been_edited_since_for_the_administrators(
    tmp_path: Path, clock: list[float]
) -> None:
    rm, beside = rm_with_load(), MemoryPlace(b"")
    rm.place.data = TWO_TO_ONE
    rm._load()
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
        assert second.owner.configured_weights() == {"root.a": 5.0, "root.b": 1.0}


@pytest.mark.parametrize("said", [{"baseline": 3}, {"baseline": {"root.a": {"weight": []}}, "ours": {}, "named": {}}])
def test_nonsense_in_the_lease_is_an_alarm(tmp_path: Path, clock: list[float], said: dict[str, Any]) -> None:
    rm, beside = rm_with_load(), MemoryPlace(json.dumps({"owner": "", "said": said, "said_by": "x"}).encode())
    with leased(rm, tmp_path / "1", beside, clock) as controller:
        assert "lease" in kinds(controller.tick())
        assert controller.owner.configured_weights()["root.a"] == 1.0


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


def test_a_queue_that_was_commented_out_for_a_while_keeps_its_entitlement(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.place.data = TWO_TO_ONE
    rm._load()
    with controlled(rm, tmp_path) as controller:
        for _ in range(10):
            rm.start("x")
        controller.tick()
        rm.now_s += 60.0
        controller.tick()
        whole = rm.place.data
        b = whole[whole.index(b'<queue name="b">') :]
        b = b[: b.index(b"</queue>") + len(b"</queue>")]
        rm.place.data = whole.replace(b, b"<!-- away -->")
        rm.now_s += 5.0
        controller.tick()
        assert "root.b" not in controller.owner.configured_weights()
    with controlled(rm, tmp_path) as controller:
        rm.now_s += 5.0
        controller.tick()
        rm.place.data = rm.place.data.replace(b"<!-- away -->", b)
        rm.now_s += 5.0
        controller.tick()
        assert controller.owner.configured_weights() == {"root.a": 2.0, "root.b": 1.0}


@pytest.mark.parametrize("count_earlier", [False, True])
def test_what_was_used_before_the_first_look_counts_if_it_is_to(tmp_path: Path, count_earlier: bool) -> None:
    rm = rm_with_load()
    rm.start("x")
    rm.now_s += 50.0
    with controlled(rm, tmp_path, count_earlier=count_earlier) as controller:
        report = controller.tick()
        assert report.counted["root.a"] == pytest.approx(50.0 * 1024 if count_earlier else 0.0)
        assert report.counted["root.b"] == 0.0
