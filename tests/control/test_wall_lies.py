"""A ResourceManager whose well-formed answers are wrong: what the controller believes and what it doubts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.model.resources import Resource
from harness.yarn.answers import AppList
from harness.yarn.errors import BadAnswer
from tests.control.driven import controlled, kinds, rm_with_load
from tests.control.rm_model import RmModel


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
