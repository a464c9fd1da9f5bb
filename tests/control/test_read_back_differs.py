"""A ResourceManager that goes on showing other values than those that it was given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.control.wall import Controller
from harness.yarn.capacity.source import Configuration
from harness.yarn.errors import Unreachable
from tests.control.driven import FILE, controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import CapacityRmModel, RmModel
from tests.control.soak import capacities
from tests.control.test_gate import file
from tests.control.test_wall_poll import Polling

SHARES = file(a="50", b="50")


class Stubborn:
    """A ResourceManager whose queue ``root.a`` keeps its value, whatever it loads, and what is written to it."""

    def __init__(self, where: str) -> None:
        self.stubborn, self.where = True, where
        self.writes = 0
        if where == "fair":
            self.rm: RmModel = rm_with_load()
            answer = self.rm.effective_queues

            def shown() -> Mapping[str, Any]:
                found = dict(answer())
                if self.stubborn:
                    found["root.a"] = replace(found["root.a"], weight=1.0)
                return found

            self.rm.effective_queues = shown  # type: ignore[method-assign]
        else:
            self.rm = capacity = CapacityRmModel(SHARES, store=where == "store")
            self.rm.submit("x", "root.a")
            self.rm.submit("y", "root.b").pending = 3
            settings = capacity.settings

            def kept() -> dict[str, float]:
                return settings() | ({"root.a": 50.0} if self.stubborn else {})

            capacity.settings = kept  # type: ignore[method-assign]
        for _ in range(10):
            self.rm.start("x")
        place = self.rm.place
        self.before = self.values()
        put = place._put
        if where == "store":
            store = self.rm.source  # type: ignore[attr-defined]
            change = store.write

            def changed(*args: Any) -> Any:
                self.writes += 1
                return change(*args)

            store.write = changed
        else:

            def written(*args: Any) -> None:
                self.writes += 1
                put(*args)

            place._put = written  # type: ignore[method-assign]

    def values(self) -> bytes:
        rm = self.rm
        return rm.data() if isinstance(rm, CapacityRmModel) else rm.place.data

    def passes(self, controller: Controller[Any], seconds: float, every_s: float = 5.0) -> list[set[str]]:
        """The alarms of the ticks of this time, while what is owed moves."""
        found = []
        for _ in range(round(seconds / every_s)):
            found.append(kinds(controller.tick()))
            self.rm.now_s += every_s
        return found


@pytest.mark.parametrize("where", ["fair", "file", "store"])
def test_a_value_that_never_comes_in_force_is_written_ever_more_seldom_and_told_all_the_time(
    tmp_path: Path, where: str
) -> None:
    """It was written, taken back and refreshed in every tick, twelve times a minute and for ever."""
    world = Stubborn(where)
    with controlled(world.rm, tmp_path) as controller:
        told = world.passes(controller, 300.0)
        assert all("not-in-force" in alarms for alarms in told[1:])
        assert world.values() == world.before, "what was written is taken back"
        # Two writes an attempt: after 5, 15, 35 and 65 seconds, and every 30 seconds from then on.
        assert 16 <= world.writes <= 28
        world.writes = 0
        told = world.passes(controller, 7200.0, every_s=30.0)
        assert all("not-in-force" in alarms for alarms in told)
        assert 40 <= world.writes <= 80, "each wait is a tenth of the time that it has lasted"
        assert world.values() == world.before
        # It heals by itself.
        world.stubborn = False
        assert world.passes(controller, 810.0, every_s=30.0)[-1] == set()
        assert world.values() != world.before


@pytest.mark.parametrize("where", ["fair", "file", "store"])
@pytest.mark.parametrize("event", ["restart", "edit", "reload"])
def test_what_differed_is_tried_again_at_once_where_something_has_changed(
    tmp_path: Path, where: str, event: str
) -> None:
    """An edit, a restarted ResourceManager or another configuration ends a wait of minutes."""
    world = Stubborn(where)
    with controlled(world.rm, tmp_path) as controller:
        world.passes(controller, 1200.0, every_s=30.0)
        before = world.writes
        for _ in range(60):
            if world.writes == before:
                world.passes(controller, 5.0)
        before = world.writes
        world.passes(controller, 10.0)
        assert world.writes == before, "it waits"
        world.stubborn = False
        rm = world.rm
        match event:
            case "restart":
                rm.restart()
            case "edit" if isinstance(rm, CapacityRmModel):
                values = capacities.properties(world.values()) | {
                    "yarn.scheduler.capacity.root.a.capacity": "40",
                    "yarn.scheduler.capacity.root.b.capacity": "60",
                }
                if rm.store is not None:
                    rm.store.put(values)
                else:
                    rm.place.data = capacities.stored(values)
            case "edit":
                rm.place.data = FILE.replace(b"<weight>1<", b"<weight>3<", 1)
            case "reload":
                controller = controller.remade(controller.settings, controller.policy)
        alarms = world.passes(controller, 10.0)
        assert world.writes > before
        assert alarms[-1] == set()


def test_restored_values_that_the_rm_does_not_show_are_not_said_to_be_restored(tmp_path: Path) -> None:
    """The alarm said that the administrator's own values were restored, while the RM still had the last weights."""
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        had = in_force(rm)
        for _ in range(10):
            rm.start("x")
        rm.now_s += 60.0
        rm.loads = False
        report = controller.tick()
        assert in_force(rm) == had
        text = "; ".join(alarm.text for alarm in report.alarms)
        assert "the administrator's own values are not in force either: " in text
        assert "restored" not in text


def test_a_difference_outside_the_decision_is_told_and_written_again(tmp_path: Path) -> None:
    """The RM showed the decision's weights, the file had multiples of them: nothing was written again, nor told."""
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        written = controller.core.written
        assert written is not None
        controller._in_force = {path: 2.0 * weight for path, weight in written.weights.items()}
        rm.now_s += controller.settings.verify_every_s + 1.0
        assert any("did not take effect" in alarm.text for alarm in controller.tick().alarms)
        assert controller.core.written is None, "the next tick writes it again"
        rm.now_s += 5.0
        assert controller.tick().alarms == ()


def test_a_file_that_the_rm_polls_is_taken_back_where_writing_it_again_did_not_help(tmp_path: Path) -> None:
    """The file was replaced every half a minute for ever, with values that the ResourceManager does not show."""
    world = Stubborn("fair")
    rm = world.rm
    with controlled(rm, tmp_path, refresh="poll") as controller:
        poll = Polling(rm, 3.0)
        told = []
        for _ in range(360):
            told.append(kinds(controller.tick()))
            poll.until(rm.now_s + 10.0)
        assert all("not-in-force" in alarms for alarms in told[6:])
        assert world.writes <= 80
        world.stubborn = False
        for _ in range(60):
            told.append(kinds(controller.tick()))
            poll.until(rm.now_s + 10.0)
        assert told[-1] == set()
        assert rm.place.data != world.before


def test_an_answer_with_the_old_configuration_ends_no_wait(tmp_path: Path) -> None:
    """What was written and taken back showed again for a moment, and was taken for an edit: the next attempt came."""
    world = Stubborn("store")
    assert isinstance(world.rm, CapacityRmModel)
    rm, store = world.rm, world.rm.store
    assert store is not None
    put, changes = store.put, [(-math.inf, store.now)]

    def putting(values: Mapping[str, str]) -> None:
        changes.append((rm.now_s, store.now))
        put(values)

    # What stood there before the last change is shown once more, five seconds later.
    def shown() -> Configuration:
        at_s, before = changes[-1]
        return before if 3.0 < rm.now_s - at_s < 7.0 else store.now

    store.put = putting  # type: ignore[method-assign]
    store.read = shown  # type: ignore[method-assign]
    with controlled(rm, tmp_path) as controller:
        world.passes(controller, 300.0)
        assert world.writes <= 28, "as without such answers"


@pytest.mark.parametrize("stale_s", [7.0, 40.0])
def test_a_store_that_answers_with_its_old_configuration_is_no_edit_and_costs_no_entitlement(
    tmp_path: Path, stale_s: float
) -> None:
    """Each old answer looked like an edit and ended the wait; a momentary share that had come back became his own."""
    rm = CapacityRmModel(file(a="50", b="25", c="25"), store=True)
    store = rm.store
    assert store is not None
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    put, settings, changes = store.put, rm.settings, [(-math.inf, store.now)]

    def putting(values: Mapping[str, str]) -> None:
        before = store.now
        put(values)
        changes.append((rm.now_s, before))

    def shown() -> Configuration:
        at_s, before = changes[-1]
        return before if rm.now_s < at_s + stale_s else store.now

    store.put = putting  # type: ignore[method-assign]
    store.read = shown  # type: ignore[method-assign]
    with controlled(rm, tmp_path) as controller:
        for at in range(120):
            if at % 4 == 0:
                rm.start("x")
            if at == 30:
                store.put(capacities.properties(file(a="40", b="35", c="25")))
            controller.tick()
            rm.now_s += 5.0
        rm.now_s += stale_s
        controller.tick()
        assert controller.actuator.configured_weights() == {"root.a": 40.0, "root.b": 35.0, "root.c": 25.0}
        assert len(changes) < 90, "a wait lasts although the old configuration is shown"
        rm.now_s += stale_s
        controller.stop("release", lambda seconds: setattr(rm, "now_s", rm.now_s + seconds))
        assert store.now.values == capacities.properties(file(a="40", b="35", c="25"))
        assert settings() == {"root.a": 40.0, "root.b": 35.0, "root.c": 25.0}


def test_a_write_that_is_carried_out_after_a_later_read_is_nobodys_edit(tmp_path: Path) -> None:
    """A busy store carried a request out after its client had given up: "somebody else wrote", of its own value."""
    rm = CapacityRmModel(file(a="50", b="25", c="25"), store=True)
    store = rm.store
    assert store is not None
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    put, late = store.put, list[Mapping[str, str]]()

    def slow(values: Mapping[str, str]) -> None:
        if not late:
            late.append(dict(values))
            raise Unreachable("no answer: (read timeout=2.0)")
        put(values)

    store.put = slow  # type: ignore[method-assign]
    told = set[str]()
    with controlled(rm, tmp_path) as controller:
        for at in range(6):
            rm.start("x")
            report = controller.tick()
            told |= {alarm.text for alarm in report.alarms if alarm.kind == "foreign"}
            rm.now_s += 5.0
            if at == 2:
                put(late[0])
        assert told == set()
        assert controller.actuator.configured_weights() == {"root.a": 50.0, "root.b": 25.0, "root.c": 25.0}
        controller.stop("release")
    assert store.now.values == capacities.properties(file(a="50", b="25", c="25"))
