"""A clock that is wrong at the controller's start: nothing fades by time that has not passed, and a person is told."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from harness.cli import enforce
from harness.control import opened
from harness.control.clocks import CLOCK_TOLERANCE_S, Clocks, ClocksDiffer, read_clocks
from harness.control.config import read_config
from harness.control.wall import Controller
from harness.ledger.decay import SlidingWindow
from harness.policies import make_policy
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.source import Configuration
from harness.yarn.http import HttpOptions, date_of
from harness.yarn.rest import RestClient
from tests.control.driven import controlled, kinds, rm_with_load
from tests.control.rm_model import CapacityRmModel, RmModel
from tests.control.soak import capacities
from tests.control.test_gate import file
from tests.yarn.fake_server import FakeServer, http

MONTH_S = 30 * 86_400.0
DECAYS = {"half_life": "86400"}


def owed_rm(folder: Path, ahead_s: float = 0.0) -> tuple[RmModel, dict[str, float]]:
    """A cluster whose queue a has used everything for an hour, and what counts of it in the ledger."""
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, folder, sets=DECAYS, clock=lambda: rm.now_s + ahead_s, trust_clock="host") as controller:
        for _ in range(60):
            controller.tick()
            rm.now_s += 60.0
        report = controller.tick()
        rm.now_s += 10.0
        return rm, dict(report.counted)


@pytest.mark.parametrize("ahead_s", [MONTH_S, -MONTH_S, 10 * 365 * 86_400.0])
def test_a_start_with_a_wrong_clock_forgets_nothing_and_says_so(tmp_path: Path, ahead_s: float) -> None:
    rm, owed = owed_rm(tmp_path)
    written = rm.place.data
    with controlled(rm, tmp_path, sets=DECAYS, clock=lambda: rm.now_s + ahead_s) as controller:
        for _ in range(3):
            report = controller.tick()
            (alarm,) = report.alarms
            assert alarm.kind == "clock"
            assert "--trust-clock" in alarm.text
            assert not report.wrote
            rm.now_s += 5.0
        assert rm.place.data == written
    with controlled(rm, tmp_path, sets=DECAYS) as controller:
        report = controller.tick()
        assert report.alarms == ()
        assert report.counted["root.a"] == pytest.approx(owed["root.a"], rel=0.03)


def test_a_clock_that_is_set_right_while_the_controller_waits_lets_it_begin(tmp_path: Path) -> None:
    rm, _ = owed_rm(tmp_path)
    ahead = [MONTH_S]
    with controlled(rm, tmp_path, sets=DECAYS, clock=lambda: rm.now_s + ahead[0]) as controller:
        assert kinds(controller.tick()) == {"clock"}
        ahead[0] = 0.0
        rm.now_s += 5.0
        assert kinds(controller.tick()) == set()


def test_an_administrator_says_which_clock_is_right(tmp_path: Path) -> None:
    rm, owed = owed_rm(tmp_path)
    wrong = lambda: rm.now_s + MONTH_S  # noqa: E731
    with controlled(rm, tmp_path, sets=DECAYS, clock=wrong, trust_clock="host") as controller:
        report = controller.tick()
        # It is as the administrator wanted it: a month has passed.
        assert report.counted["root.a"] < 0.01 * owed["root.a"]


def test_a_ledger_that_an_earlier_run_left_ahead_is_moved_back_and_fades_by_what_the_rm_saw_pass(
    tmp_path: Path,
) -> None:
    rm, owed = owed_rm(tmp_path, ahead_s=MONTH_S)
    rm.now_s += 3590.0
    with controlled(rm, tmp_path, sets=DECAYS) as controller:
        report = controller.tick()
        (alarm,) = report.alarms
        assert (alarm.kind, "30.0 days ahead" in alarm.text) == ("note", True)
        # Application x went on for the hour, and what counted before has faded for one hour of a day's half-life.
        hour = 4096 * 3600
        assert report.counted["root.a"] == pytest.approx(owed["root.a"] * 0.5 ** (1 / 24) + hour, rel=0.03)
        rm.now_s += 5.0
        assert controller.tick().alarms == ()
    with controlled(rm, tmp_path, sets=DECAYS) as controller:
        assert controller.accounts.looked_s == rm.now_s
        rm.now_s += 5.0
        assert controller.tick().alarms == ()


def test_an_rm_that_does_not_show_its_clock_stops_nobody(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.clock_ahead_s = None
    with controlled(rm, tmp_path, clock=lambda: rm.now_s + MONTH_S) as controller:
        assert controller.tick().alarms == ()


def test_time_that_only_this_machine_saw_pass_does_not_count() -> None:
    """Both clocks are right now, and the ledger was kept by one that was 30 days behind."""
    reading = read_clocks(Clocks(host_s=5e6, rm_s=5e6, kept_s=5e6 - MONTH_S, kept_rm_s=5e6 - 20.0))
    assert reading.now_s == 5e6
    assert reading.shift_s == MONTH_S - 20.0
    assert "no more than that counts" in reading.note


def test_a_small_step_back_is_followed_without_a_word() -> None:
    reading = read_clocks(Clocks(host_s=1000.0, rm_s=1000.0, kept_s=1007.0, kept_rm_s=998.0))
    assert (reading.now_s, reading.shift_s, reading.note) == (1000.0, -9.0, "")


def test_a_long_absence_that_all_clocks_agree_on_is_worth_a_word() -> None:
    reading = read_clocks(Clocks(host_s=MONTH_S, rm_s=MONTH_S, kept_s=10.0, kept_rm_s=10.0))
    assert (reading.shift_s, "faded" in reading.note) == (0.0, True)


@pytest.mark.parametrize("side", [1, -1])
def test_clocks_that_differ_by_less_than_kerberos_bears_are_the_same(side: int) -> None:
    at = 1e9
    assert read_clocks(Clocks(at, at + side * (CLOCK_TOLERANCE_S - 1), at - 5, at - 5)).shift_s == 0.0
    with pytest.raises(ClocksDiffer):
        read_clocks(Clocks(at, at + side * (CLOCK_TOLERANCE_S + 1), at - 5, at - 5))


def test_a_window_that_is_moved_counts_the_same_and_forgets_at_the_same_age() -> None:
    still, moved = SlidingWindow(640.0, 0.0), SlidingWindow(640.0, 0.0)
    for window in (still, moved):
        window.add(100.0, 3.0)
    moved.shift(1e6)
    assert moved.amount() == still.amount()
    for window, ahead in ((still, 0.0), (moved, 1e6)):
        window.add(700.0 + ahead, 0.0)
    # Moving is exact to one part of 10 s.
    assert moved.amount() == pytest.approx(still.amount(), abs=3.0 * 10)


def test_the_rms_clock_is_read_of_its_answer() -> None:
    info = {"clusterInfo": {"id": 1, "startedOn": 1, "state": "STARTED", "haState": "ACTIVE"}}
    info["clusterInfo"]["resourceManagerVersion"] = "3.4.2"
    at = "Sat, 31 Jan 2026 12:00:00 GMT"
    with FakeServer(http(200, info, Date=at), http(200, info)) as server, RestClient([server.url], HttpOptions()) as rm:
        assert rm.info().clock_s == 1_769_860_800.0
        assert rm.info().clock_s is None
    # Hadoop's server sends it twice.
    assert date_of({"Date": f"{at}, {at}"}) == 1_769_860_800.0
    assert date_of({"Date": "yesterday"}) is None
    assert time.time() > 1_769_860_800.0


def with_store(rm: CapacityRmModel, folder: Path) -> AbstractContextManager[Controller]:
    return controlled(rm, folder, mode="full", accept=frozenset({"user-limit-factor"}))


def test_a_store_is_released_though_the_rms_clock_has_been_set_meanwhile(tmp_path: Path) -> None:
    rm = CapacityRmModel(file(a="40", b="60"), store=True)
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    rm.start("x", 4096)
    before = rm.data()
    with with_store(rm, tmp_path) as controller:
        for _ in range(5):
            controller.tick()
            rm.now_s += 60.0
        assert rm.data() != before
    rm.clock_ahead_s = MONTH_S
    with with_store(rm, tmp_path) as controller:
        assert kinds(controller.tick()) == {"clock"}
        controller.stop("release")
    assert rm.data() == before


def test_an_entitlement_that_is_taken_while_the_clock_is_wrong_outlives_the_process(tmp_path: Path) -> None:
    """The tick that takes it keeps nothing else; another controller's values may stand there at the next start."""
    rm = CapacityRmModel(file(a="4w", b="6w"), store=True)
    assert rm.store is not None
    rm.submit("x", "root.a")
    rm.start("x", 4096)
    rm.submit("y", "root.b").pending = 3

    def written(a: str, b: str) -> Configuration:
        return Configuration(capacities.properties(file(a=a, b=b)), (rm.store.now.mark or 0) + 1)  # type: ignore[union-attr]

    with with_store(rm, tmp_path) as controller:
        for _ in range(5):
            controller.tick()
            rm.now_s += 60.0
    rm.clock_ahead_s = MONTH_S
    with with_store(rm, tmp_path) as controller:
        rm.store.now = written("5w", capacities.properties(rm.data())[f"{PREFIX}root.b.capacity"])
        alarms = {alarm.kind: alarm.text for alarm in controller.tick().alarms}
        assert alarms.keys() == {"foreign", "clock"}
        assert "capacity of root.a is 5w (taken as its entitlement)" in alarms["foreign"]
    rm.store.now = written("4.5678w", "6.4322w")
    with with_store(rm, tmp_path) as controller:
        controller.tick()
        assert controller.actuator.configured_weights() == pytest.approx(
            {"root.a": 100 * 5 / 11, "root.b": 100 * 6 / 11}
        )


def test_clocks_are_compared_before_a_store_is_read_where_another_rm_answers(tmp_path: Path) -> None:
    rm = CapacityRmModel(file(a="40", b="60"), store=True)
    with with_store(rm, tmp_path) as controller:
        controller.tick()
    rm.clock_ahead_s = MONTH_S
    with with_store(rm, tmp_path) as controller:
        # The same RM as before: nothing is counted here.
        controller.actuator.read()
        rm.restart()
        with pytest.raises(ClocksDiffer):
            controller.actuator.read()


def test_a_refused_reload_leaves_the_check_of_the_cluster_to_the_running_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = CapacityRmModel(file(a="40", b="60"), store=True)
    config_file = tmp_path / "enforce.yaml"
    config_file.write_text(
        f"policy: fair\nallocation_file: {tmp_path}/f.xml\nledger: {tmp_path}/ledger.db\nqueues: {{root.nope: 3}}\n"
    )
    monkeypatch.setattr(opened, "counting_policy", lambda *_: (make_policy("fair"), None))
    with with_store(rm, tmp_path) as controller:
        controller.tick()
        config = read_config(config_file)
        _, same = enforce._reloaded(config, config_file, None, controller, "")  # type: ignore[arg-type]
        assert same is controller
        assert "not reloaded" in controller.tick().alarms[0].text
        assert rm.store is not None
        assert rm.store.recognise == controller._look.check_cluster
