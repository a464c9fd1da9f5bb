"""The wall-clock driver at failovers, slow or broken pages and figures that make no sense."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.control.file_actuator import FileActuator
from harness.yarn.errors import Refused
from tests.control.driven import FILE, controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import RmModel, silence


def test_a_failover_while_reading_back_is_an_alarm_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        managed, rm.place.data = rm.place.data, FILE
        rm.refresh_queues()
        rm.place.data = managed
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

    def request(self, _method: str, path: str, *, only: str | None = None, **_: Any) -> Any:
        if path == "/conf":
            raise Refused("HTTP 404", status=404)
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


def test_a_new_rm_that_is_slow_at_first_is_asked_again_at_the_next_look(tmp_path: Path) -> None:
    """What runs counts while it runs, and not ten times as long after an RM's first list, which took half a minute."""
    rm = rm_with_load()
    container = rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        for _ in range(2):
            controller.tick()
            rm.now_s += 5.0
        rm.restart()
        apps = rm.rest.apps

        def cold(*given: Any, **named: Any) -> Any:
            rm.now_s += 30.0
            rm.rest.apps = apps
            return apps(*given, **named)

        rm.rest.apps = cold
        assert kinds(controller.tick()) == {"rm"}
        rm.node_back([container])
        for _ in range(8):
            rm.now_s += 5.0
            report = controller.tick()
        assert report.consumed["root.a"][0] == pytest.approx(rm.truth("root.a")[0])


def test_a_look_that_fails_halfway_keeps_the_news_of_a_restart_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The administrator's limits may be unreadable for a moment: nothing is accounted for then, and nothing is lost."""
    rm = rm_with_load()
    container = rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 50.0
        before = controller.tick().consumed
        rm.restart()
        rm.node_back([container])

        def unreadable(*_: Any) -> Any:
            raise InputError("a maximum that is none")

        monkeypatch.setattr(FileActuator, "max_shares", unreadable)
        rm.now_s += 5.0
        report = controller.tick()
        assert kinds(report) == {"observation"}
        assert report.consumed == before
        monkeypatch.undo()
        rm.now_s += 5.0
        assert kinds(controller.tick()) == {"rm"}
