"""Killed in `bounded` and started again as `shadow`: what was left in force is given back, or it is said loudly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.control.explain import explain
from harness.control.view import from_ledger
from tests.control.driven import FILE, controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import MemoryPlace, RmModel


def killed(folder: Path, *, lease_s: float = 30.0, mode: str = "bounded") -> RmModel:
    """A cluster with the weights of a controller that is no more: nobody closed it."""
    folder.mkdir(exist_ok=True)
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, folder, lease_s=lease_s, mode=mode) as controller:
        for _ in range(30):
            controller.tick()
            rm.now_s += 30.0
    if mode != "shadow":
        assert rm.place.data != FILE
    return rm


@pytest.mark.parametrize("lease_s", [0.0, 30.0])
def test_a_shadow_gives_back_what_was_left(tmp_path: Path, lease_s: float) -> None:
    rm = killed(tmp_path, lease_s=lease_s)
    with controlled(rm, tmp_path, lease_s=lease_s, mode="shadow") as controller:
        report = controller.tick()
        (alarm,) = report.alarms
        assert alarm.kind == "note"
        assert "was killed and had left its weights: the administrator's own weights and limits" in alarm.text
        assert rm.place.data == FILE
        assert in_force(rm) == {"root.a": 1.0, "root.b": 1.0}
        for _ in range(3):
            rm.now_s += 5.0
            assert controller.tick().alarms == ()
        assert controller.stop("release") == "stopped; a shadow has written nothing"
    assert rm.place.data == FILE
    # And nobody takes it for left over once more.
    rm.place.data = FILE.replace(b"<weight>1</weight>", b"<weight>3</weight>", 1)
    with controlled(rm, tmp_path, lease_s=lease_s, mode="shadow") as controller:
        assert controller.tick().alarms == ()
    assert b"<weight>3</weight>" in rm.place.data


def test_a_controller_that_becomes_a_shadow_gives_back_what_it_wrote_itself(tmp_path: Path) -> None:
    """It said that an earlier run was killed, which nobody had done."""
    rm = killed(tmp_path)
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        controller.tick()
        assert rm.place.data != FILE
        controller.close()
        shadow = controller.remade(replace(controller.settings, mode="shadow"), controller.core.policy)
        (alarm,) = shadow.tick().alarms
        assert alarm.text.startswith("this controller had left its weights when it was reloaded as a shadow: the admin")
        assert rm.place.data == FILE


def test_what_cannot_be_given_back_is_said_at_every_look_and_at_the_end(tmp_path: Path) -> None:
    rm = killed(tmp_path)
    rm.place.fail = InputError("no room", where="memory")
    left = rm.place.data
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        for _ in range(2):
            report = controller.tick()
            assert "actuation" in kinds(report)
            assert any("is still in force" in alarm.text for alarm in report.alarms)
            rm.now_s += 5.0
        assert rm.place.data == left
        with pytest.raises(InputError, match="no room"):
            controller.stop("release")
    # What was not given back is known to the next run too.
    rm.place.fail = None
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        assert kinds(controller.tick()) == {"note"}
    assert rm.place.data == FILE


def test_a_shadow_beside_a_controller_at_work_leaves_its_weights_alone(tmp_path: Path) -> None:
    rm = killed(tmp_path / "one")
    left = rm.place.data
    (tmp_path / "two").mkdir()
    for _ in range(2):
        with controlled(rm, tmp_path / "two", lease_s=30.0, mode="shadow") as controller:
            controller.tick()
            rm.now_s += 5.0
            controller.tick()
        assert rm.place.data == left


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock of the lease."""
    now = [1000.0]
    monkeypatch.setattr("harness.control.tenure.time.monotonic", lambda: now[0])
    return now


def lease_of(rm: RmModel) -> MemoryPlace:
    return rm.place.beside(".memory.xml.lease")


SOMEBODY = b'{"owner": "somebody", "host": "elsewhere", "pid": 1, "count": %d, "lease_s": 30}'


def test_a_shadow_takes_over_from_a_holder_that_shows_no_life_and_gives_back(
    tmp_path: Path, clock: list[float]
) -> None:
    """Whose name stands in the lease may be dead, or nobody: a controller that lives renews it."""
    rm = killed(tmp_path)
    left = rm.place.data
    lease_of(rm).data = SOMEBODY % 1
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        for _ in range(6):
            report = controller.tick()
            assert "still in force: memory: another controller writes this file" in " ".join(
                a.text for a in report.alarms
            )
            assert rm.place.data == left
            clock[0] += 5.0
            rm.now_s += 5.0
        assert "was killed and had left its weights: the administrator's" in controller.tick().alarms[0].text
    assert rm.place.data == FILE


def test_a_shadow_leaves_what_it_left_to_a_holder_that_lives(tmp_path: Path, clock: list[float]) -> None:
    rm = killed(tmp_path)
    left = rm.place.data
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        for count in range(12):
            lease_of(rm).data = SOMEBODY % count
            alarms = controller.tick().alarms
            if count == 1:
                assert "another controller has taken over" in alarms[0].text
            assert count == 0 or {alarm.kind for alarm in alarms} <= {"note"}
            clock[0] += 5.0
            rm.now_s += 5.0
        assert controller.stop("release") == "stopped; a shadow has written nothing"
    assert rm.place.data == left


def test_a_shadow_that_is_stopped_before_it_could_tell_says_who_has_the_file(
    tmp_path: Path, clock: list[float]
) -> None:
    rm = killed(tmp_path)
    left = rm.place.data
    lease_of(rm).data = SOMEBODY % 1
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        controller.tick()
        assert controller.stop("release") == "stopped; another controller has the allocation file"
    assert rm.place.data == left
    # The next run knows that something is left.
    clock[0] += 40.0
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        controller.tick()
    assert rm.place.data == FILE


def test_a_dry_run_in_shadow_gives_nothing_back(tmp_path: Path) -> None:
    rm = killed(tmp_path)
    left = rm.place.data
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow", dry_run=True) as controller:
        controller.tick()
    assert rm.place.data == left


def test_explain_shows_a_shadows_weights_as_they_are(tmp_path: Path) -> None:
    rm = killed(tmp_path)
    with controlled(rm, tmp_path, lease_s=30.0, mode="shadow") as controller:
        for _ in range(2):
            controller.tick()
            rm.now_s += 5.0
    view = from_ledger(tmp_path / "ledger.db", rm.now_s)
    assert {path: row.weight for path, row in view.queues.items() if row.leaf} == {"root.a": 1.0, "root.b": 1.0}
    words = " ".join(explain(view, "root.a"))
    assert "Weight 1, 50.0 % of its siblings' sum" in words
    assert "writes nothing" in words
