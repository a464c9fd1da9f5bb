"""The wall-clock driver, tick by tick, on a ResourceManager in memory whose true consumption is known."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.control.reports import TickReport
from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore, read_decisions, read_documents
from harness.policies import make_policy
from harness.yarn.errors import BadAnswer
from harness.yarn.fair.parse import parse_allocations
from tests.control.driven import FILE, actuator_of, controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import MemoryPlace, RmModel, silence


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


def test_who_reads_the_ledger_while_it_is_written_sees_the_weights_before_and_their_decision(tmp_path: Path) -> None:
    rm = rm_with_load()
    ledger, seen, load = tmp_path / "ledger.db", [], rm.refresh_queues

    def loads() -> float:
        seen.append(read_documents(ledger, ["look"]).get("look"))
        if len(seen) == 3:
            raise silence()
        return load()

    rm.refresh_queues = loads  # type: ignore[method-assign]
    with controlled(rm, tmp_path) as controller:
        for _ in range(3):
            stood, before = in_force(rm), read_documents(ledger, ["look"]).get("look")
            controller.tick()
            assert seen[-1] == before
            assert before is None or {path: before["queues"][path]["weight"] for path in stood} == stood
            for _ in range(10):
                rm.start("x")
            rm.now_s += 60.0
    # A look is kept too when what it led to could not be done.
    assert read_documents(ledger, ["look"])["look"]["time_s"] == rm.now_s - 60.0
    assert len(seen) == 3


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        for _ in range(5):
            controller.tick()
            rm.now_s += 5
    assert len(rm.place.writes) == 1
    assert rm.refreshes == 1


def test_before_3_4_nothing_is_written_until_nobody_wants_to_read_it_back(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.version = "3.3.6"
    for mode in ("full", "shadow"):
        with controlled(rm, tmp_path, mode=mode) as controller:
            report = controller.tick()
        (trap,) = report.alarms
        assert trap.kind == "trap"
        assert trap.text.startswith("read-back: Hadoop 3.3 tells nobody its queues' weights")
        assert "set read_back: false" in trap.text
    assert rm.place.writes == []
    with controlled(rm, tmp_path, read_back=False) as controller:
        assert controller.tick().alarms == ()
    assert len(rm.place.writes) == 1


def test_the_first_decision_after_a_restart_tells_what_stood_in_the_file(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        for _ in range(10):
            rm.start("x")
        rm.now_s += 50.0
        assert controller.tick().before == {}
    stood = in_force(rm)
    assert stood["root.a"] < stood["root.b"]
    with controlled(rm, tmp_path) as controller:
        rm.now_s += 50.0
        report = controller.tick()
        assert report.before == stood
        assert report.record is not None
        rm.now_s += 50.0
        assert controller.tick().before == {}


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
        managed, rm.place.data = rm.place.data, FILE
        rm.restart()
        rm.place.data = managed
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
            report = controller.tick()
            assert kinds(report) == {"not-in-force"}
            assert report.effect_s is None, "what was not read back is not in force"
            rm.now_s += 5
        rm.loads = True
        assert controller.tick().alarms == ()
        assert in_force(rm)["root.a"] == 500.0
        # Somebody refreshes another file, and puts ours back: only the RM's answer shows it.
        managed, rm.place.data = rm.place.data, FILE
        rm.refresh_queues()
        rm.place.data = managed
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


def test_a_dry_run_touches_nothing(tmp_path: Path) -> None:
    rm = rm_with_load()
    with LedgerStore(tmp_path / "l.db") as store:
        controller = Controller(
            ControlSettings(),
            rm,
            actuator_of(rm, store),
            store,
            make_policy("ltrf"),
            open_observer=open_rm_poller,
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
