"""Whatever administrators do to their queues: no file is written with which a ResourceManager would not start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.model.resources import Resource
from harness.yarn.errors import Refused
from harness.yarn.validation import check_document
from tests.control.driven import actuator_of, controlled, kinds, rm_with_load
from tests.control.rm_model import CapacityRmModel
from tests.control.soak import capacities

PREFIX = capacities.PREFIX


def file(**shares: str) -> bytes:
    """A Capacity Scheduler's file of leaves below the root, without a trap."""
    values = {"global-queue-max-application": "10000", "maximum-am-resource-percent": "1000"}
    values |= {"root.queues": ",".join(shares)}
    for name, share in shares.items():
        values |= {f"root.{name}.capacity": share, f"root.{name}.user-limit-factor": "-1"}
    return capacities.stored({PREFIX + name: value for name, value in values.items()})


BEFORE = file(a="50", b="25", c="25")


def enforced(rm: CapacityRmModel, controller: Controller) -> None:
    """Let the controller move the capacities away from the administrator's."""
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    controller.tick()
    for _ in range(10):
        rm.start("x")
    rm.now_s += 60.0
    assert controller.tick().alarms == ()
    assert rm.settings() != {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}


def put(rm: CapacityRmModel, data: bytes) -> None:
    """The administrator replaces his configuration, and has it in force."""
    if rm.store is not None:
        rm.store.put(capacities.properties(data))
    else:
        rm.place.data = data
        rm._load()


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize(
    "theirs",
    [file(a="30", b="25", c="25", d="20"), file(a="60", b="40"), file(a="30", b="30", c="40"), file(d="50", c="50")],
    ids=["one more", "one less", "others", "renamed"],
)
def test_an_administrators_new_queues_are_steered_and_given_back(tmp_path: Path, theirs: bytes, store: bool) -> None:
    rm = CapacityRmModel(BEFORE, store=store)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        put(rm, theirs)
        for _ in range(3):
            rm.now_s += 5.0
            report = controller.tick()
            assert kinds(report) <= {"foreign"}
            assert rm.starts()
            assert check_document(rm.data(), source="kept").valid
        assert report.alarms == ()
        assert rm.settings().keys() == capacities.read(theirs).keys() - {"root"}
        assert controller.stop("release") == "stopped; the administrator's own capacities are in force"
        assert rm.data() == capacities.stored(capacities.properties(theirs))


def test_a_configuration_that_the_rm_would_refuse_is_named_and_left_alone(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        rm.place.data = broken = file(a="30", b="25", c="25", d="10")
        for _ in range(3):
            rm.now_s += 5.0
            report = controller.tick()
            assert "invalid" in kinds(report)
            (text,) = [alarm.text for alarm in report.alarms if alarm.kind == "invalid"]
            assert "sum to 90" in text
            assert "nothing is written until it is corrected" in text
            assert report.record is None
            assert rm.place.data == broken
        put(rm, file(a="30", b="25", c="25", d="20"))
        rm.now_s += 5.0
        report = controller.tick()
        assert report.wrote
        assert kinds(report) <= {"foreign"}
        assert rm.starts()


@pytest.mark.parametrize("store", [False, True])
def test_what_the_rm_refuses_is_taken_back_within_the_same_tick(tmp_path: Path, store: bool) -> None:
    """It has a reason that validation does not know; the administrator's own values are restored as a unit."""
    rm = CapacityRmModel(BEFORE, store=store)
    refuses = rm.store or rm
    theirs = capacities.stored(capacities.properties(BEFORE))
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        refuses.rule = lambda queues: "root.a has too little" if queues["root.a"].weight < 50.0 else ""
        for _ in range(3):
            for _ in range(10):
                rm.start("x")
            rm.now_s += 60.0
            report = controller.tick()
            (text,) = [alarm.text for alarm in report.alarms if alarm.kind == "actuation"]
            assert "root.a has too little" in text
            assert "the administrator's own values are restored" in text
            assert report.record is None
            assert rm.settings() == {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}
            assert capacities.stored(capacities.properties(rm.data())) == theirs
        # It is not tried again in every period, and the alarm lasts.
        tried: list[bool] = []
        refuses.rule = lambda _: str(tried.append(True) or "no")
        rm.now_s += 5.0
        assert kinds(controller.tick()) == {"actuation"}
        assert tried == []
        refuses.rule = lambda _: ""
        rm.now_s += 60.0
        assert controller.tick().alarms == ()
        assert rm.settings()["root.a"] < 50.0


def test_a_plan_that_makes_no_valid_file_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rm = CapacityRmModel(BEFORE)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        from harness.yarn.capacity import queues

        right = queues._percentages
        monkeypatch.setattr(queues, "_percentages", lambda shares, old, most: right(shares, old, most) | wrong(old))
        rm.now_s += 60.0
        rm.start("x")
        report = controller.tick()
        (text,) = [alarm.text for alarm in report.alarms if alarm.kind == "actuation"]
        assert "the ResourceManager would refuse it" in text
        assert rm.place.data == BEFORE, "what is owned is restored as a unit"
        assert rm.settings() == {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}


def wrong(old: Mapping[str, Any]) -> dict[str, Any]:
    """One sibling with more than there is."""
    from harness.yarn.capacity.queues import Capacity

    return {next(iter(old)): Capacity("percent", 99.0)}


def test_a_dry_run_shows_what_would_be_refused_and_touches_nothing(tmp_path: Path) -> None:
    from harness.ledger.store import LedgerStore
    from harness.policies import make_policy

    rm = CapacityRmModel(BEFORE)
    rm.place.data = broken = file(a="50", b="25", c="20")
    with LedgerStore(tmp_path / "ledger.db") as store:
        policy = make_policy("ltrf", {"horizon_s": "100"})
        settings = ControlSettings(period_s=5.0)
        controller = Controller(
            settings,
            rm,
            actuator_of(rm, store),
            store,
            policy,
            open_observer=open_rm_poller,
            clock=rm.clock,
            dry_run=True,  # type: ignore[arg-type]
        )
        assert "invalid" in kinds(controller.tick())
    assert rm.place.data == broken


def test_a_refusal_of_the_place_itself_leaves_what_stands_there(tmp_path: Path) -> None:
    rm = CapacityRmModel(BEFORE)
    with controlled(rm, tmp_path) as controller:
        enforced(rm, controller)
        stood = rm.place.data
        rm.place.fail = Refused("HTTP 403: permission denied", status=403)
        rm.now_s += 60.0
        rm.start("x")
        report = controller.tick()
        assert kinds(report) == {"actuation"}
        assert "restored" not in report.alarms[0].text
        assert rm.place.data == stood


UNROOTED = b"""<allocations>
  <queue name="a"><weight>2</weight></queue>
  <queue name="b"/>
</allocations>
"""
ROOTED = b"""<allocations>
  <queue name="root"><queue name="a"><weight>2</weight></queue><queue name="b"/></queue>
</allocations>
"""


@pytest.mark.parametrize("policy", ["drf", "ltrf"])
@pytest.mark.parametrize(("data", "drf"), [(UNROOTED, False), (ROOTED, True)], ids=["root unnamed", "root named"])
def test_policies_are_written_only_where_the_rm_makes_the_queues(
    tmp_path: Path, policy: str, data: bytes, drf: bool
) -> None:
    """Leaves got drf below a root of fair: the RM showed fair everywhere, and had no queues after its restart."""
    rm = rm_with_load(data)
    sets = {"resource": "dominant"} if policy == "ltrf" else None
    with controlled(rm, tmp_path, policy=policy, sets=sets) as controller:
        for _ in range(3):
            report = controller.tick()
            assert kinds(report) <= {"ad-hoc", "rm"}
            rm.now_s += 5.0
            assert check_document(rm.place.data, source="written").valid
            rm.restart()
            assert {queue.path for queue in rm.tree} == {"root", "root.a", "root.b"}
        assert {queue.policy for queue in rm.tree} == {"drf" if drf else "fair"}
        controller.stop("release")
        assert rm.place.data == data


def test_a_policy_that_the_rm_does_not_show_is_an_alarm_and_taken_back(tmp_path: Path) -> None:
    """It says that the file is loaded and keeps the policies that its queues had."""
    rm = rm_with_load(ROOTED)
    rm.keeps_policies = True
    with controlled(rm, tmp_path, policy="drf") as controller:
        report = controller.tick()
        assert kinds(report) == {"not-in-force"}
        assert any("its scheduling policy is fair, not drf" in alarm.text for alarm in report.alarms)
        assert any("taken back" in alarm.text for alarm in report.alarms)
        assert report.record is None
        assert report.effect_s is None
        assert rm.place.data == ROOTED
        rm.now_s += 1.0
        assert kinds(controller.tick()) == {"not-in-force"}, "the alarm lasts until it is tried again"
        rm.keeps_policies = False
        rm.now_s += 60.0
        assert controller.tick().alarms == ()
        assert {queue.policy for queue in rm.tree} == {"drf"}


def test_a_limit_that_the_rm_does_not_show_is_an_alarm_and_taken_back(tmp_path: Path) -> None:
    rm = rm_with_load(ROOTED)
    refresh = rm.refresh_queues

    def cuts() -> float:
        rm.caps = Resource(10, 1)
        return refresh()

    rm.refresh_queues = cuts  # type: ignore[method-assign]
    with controlled(rm, tmp_path, policy="static") as controller:
        report = controller.tick()
        assert kinds(report) == {"not-in-force"}
        assert "max resources" in report.alarms[0].text
        assert rm.place.data == ROOTED
