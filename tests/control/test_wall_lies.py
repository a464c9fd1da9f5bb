"""A ResourceManager whose well-formed answers are wrong: what the controller believes and what it doubts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.control.largest import RECENT_S
from harness.model.resources import Resource
from harness.yarn.answers import AppList
from harness.yarn.errors import BadAnswer
from tests.control.driven import controlled, kinds, rm_with_load
from tests.control.rm_model import CAPACITY, RmModel, silence


def hour_old() -> RmModel:
    rm = rm_with_load()
    rm.start("x")
    rm.now_s += 3600
    return rm


@pytest.mark.parametrize("lie", ["no key", "empty"])
def test_a_list_without_its_applications_costs_no_account(tmp_path: Path, lie: str) -> None:
    rm = hour_old()
    with controlled(rm, tmp_path, full_look_every_s=1.0) as controller:
        for at in range(10):
            answer = rm.rest.apps
            if at == 5 and lie == "no key":
                rm.rest.apps = _without_key
            rm.hides_apps = at == 5 and lie == "empty"
            report = controller.tick()
            assert kinds(report) == ({"observation"} if at == 5 else set())
            rm.rest.apps = answer
            rm.now_s += 5
        assert report.consumed["root.a"][0] == 45 * 1024


def test_applications_under_their_queues_short_names_are_accounted_for(tmp_path: Path) -> None:
    """As a Capacity Scheduler before Hadoop 3.4 shows those that were submitted so."""
    rm = hour_old()
    answer = rm.rest.apps

    def short(**asked: Any) -> AppList:
        return AppList(replace(app, queue=app.queue.removeprefix("root.")) for app in answer(**asked))

    rm.rest.apps = short
    with controlled(rm, tmp_path, full_look_every_s=1.0) as controller:
        controller.tick()
        rm.now_s += 5
        assert controller.tick().consumed["root.a"][0] == 5 * 1024


def _without_key(**_: object) -> None:
    raise BadAnswer("answer has no apps", where="http://rm")


def test_an_empty_list_is_believed_where_the_queues_say_so_too_and_never_where_they_do_not(tmp_path: Path) -> None:
    rm = hour_old()
    with controlled(rm, tmp_path, full_look_every_s=1.0) as controller:
        controller.tick()
        rm.now_s += 5
        rm.hides_apps = True
        for _ in range(3):
            (alarm,) = controller.tick().alarms
            assert "the queues show 2" in alarm.text
            rm.now_s += 5
        rm.finish("x")
        rm.finish("y")
        (alarm,) = controller.tick().alarms
        assert "a moment ago it had 2" in alarm.text
        rm.now_s += 5
        assert controller.tick().alarms == ()


def test_a_counter_that_jumps_is_refused_and_said(tmp_path: Path) -> None:
    rm = hour_old()
    with controlled(rm, tmp_path) as controller:
        for at in range(10):
            rm.apps["x"].lie = (4_230_000_000, 4_000_000) if at == 5 else (0, 0)
            report = controller.tick()
            assert kinds(report) == ({"app"} if at == 5 else set())
            if report.alarms:
                assert "more than the cluster could give" in report.alarms[0].text
            rm.now_s += 5
        assert report.consumed["root.a"][0] == 45 * 1024


def test_held_resources_beyond_the_cluster_are_refused_and_said(tmp_path: Path) -> None:
    """They counted as used, once and for all: the queue would have had nothing for as long as its account lasts."""
    rm = hour_old()
    answer = rm.rest.apps

    def lying(**asked: Any) -> AppList:
        found = (replace(app, allocated=Resource(10**12, 10**9)) if app.id == "x" else app for app in answer(**asked))
        return AppList(found)

    with controlled(rm, tmp_path, mode="full") as controller:
        for at in range(10):
            rm.rest.apps = lying if at == 5 else answer
            # A figure that the RM has not renewed since the last look.
            rm.now_s += 2 if at == 5 else 5
            report = controller.tick()
            assert kinds(report) == ({"app"} if at == 5 else set())
            if report.alarms:
                assert "it holds 1,000,000,000,000 MiB" in report.alarms[0].text
        assert report.consumed["root.a"][0] == 42 * 1024


def sized(rm: RmModel, size: list[Resource]) -> None:
    """The cluster's capacity is the last one of ``size``."""
    answer = rm.rest.scheduler
    rm.rest.scheduler = lambda: replace(answer(), capacity=size[-1])


def test_a_cluster_that_has_shrunk_for_good_is_not_believed_what_its_former_size_could_give(tmp_path: Path) -> None:
    """The largest capacity ever shown was the bound, so a lie of the old size passed years after the nodes had gone."""
    rm = hour_old()
    size = [CAPACITY]
    sized(rm, size)
    lie = CAPACITY.memory_mb * 20
    with controlled(rm, tmp_path, period_s=30.0) as controller:
        controller.tick()
        rm.now_s += 30.0
        size.append(Resource(10 * 1024, 10))
        for _ in range(round(2 * RECENT_S / 30.0) + 2):
            assert controller.tick().alarms == ()
            rm.now_s += 30.0
        rm.apps["x"].lie = (lie, 0)
        report = controller.tick()
        assert kinds(report) == {"app"}
        assert "more than the cluster could give" in report.alarms[0].text
        rm.apps["x"].lie = (0, 0)
        before = controller.tick().consumed["root.a"][0]
        # Nodes that come back count in the poll that shows them.
        size.append(CAPACITY)
        for _ in range(90):
            rm.start("y")
        rm.now_s += 30.0
        report = controller.tick()
        assert report.alarms == ()
        assert report.consumed["root.b"][0] == pytest.approx(90 * 1024 * 30)
        assert report.consumed["root.a"][0] == before + 1024 * 30


def test_usage_from_before_an_outage_is_believed_though_the_cluster_is_smaller_after_it(tmp_path: Path) -> None:
    """Nobody looked for half a day: what the cluster of before gave in this time is no lie."""
    rm = hour_old()
    size = [CAPACITY]
    sized(rm, size)
    for _ in range(90):
        rm.start("y")
    with controlled(rm, tmp_path, period_s=30.0) as controller:
        controller.tick()
        rm.down = silence()
        for _ in range(20):
            rm.now_s += 2160.0
            assert kinds(controller.tick()) == {"observation"}
        rm.down = None
        size.append(Resource(10 * 1024, 10))
        for container in rm.apps["y"].live():
            rm.end("y", container)
        report = controller.tick()
        assert report.alarms == ()
        assert report.consumed["root.b"][0] == pytest.approx(90 * 1024 * 20 * 2160)
