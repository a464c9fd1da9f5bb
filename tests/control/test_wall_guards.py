"""The wall-clock driver past a guard: released once, said, and a shadow from then on until told to go on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from harness.cli import main
from harness.control.explain import explain
from harness.control.guards import Guards
from harness.control.released import go_on
from harness.control.view import from_ledger
from harness.control.wall import Controller
from harness.ledger.store import StoreFull
from tests.control.driven import controlled as driven
from tests.control.driven import in_force, kinds
from tests.control.rm_model import MemoryPlace, RmModel, silence
from tests.control.test_wall_stop import WRITTEN, contended, leases, turn

REFUSED = Guards(refused_per_hour=0)


def refuse(rm: RmModel, app: str = "bad") -> None:
    """An application that the RM fails before it has ever had a container."""
    rm.submit(app, "root.b")
    rm.finish(app)
    rm.refused.add(app)


def call(argv: list[str]) -> object:
    with pytest.raises(SystemExit) as end:
        main(argv)
    return end.value.code


def told(report: object, kind: str) -> str:
    return next(alarm.text for alarm in report.alarms if alarm.kind == kind)  # type: ignore[attr-defined]


def passed(rm: RmModel, controller: Controller, app: str = "bad") -> object:
    turn(rm, controller)
    assert rm.place.data != WRITTEN, "weights are in force"
    refuse(rm, app)
    rm.now_s += 20.0
    return controller.tick()


def test_somebody_elses_edit_is_an_entitlement_or_a_guard_as_configured(tmp_path: Path) -> None:
    for stops in (False, True):
        rm, folder = contended(MemoryPlace(WRITTEN)), tmp_path / str(stops)
        folder.mkdir()
        with driven(rm, folder, guards=Guards(foreign_edit=stops)) as controller:
            turn(rm, controller)
            assert rm.place.data != WRITTEN, "weights are in force"
            rm.place.data = re.sub(rb'<queue name="a"><weight>[^<]*', b'<queue name="a"><weight>7', rm.place.data)
            rm.now_s += 20.0
            report = controller.tick()
            assert "(taken as its entitlement)" in told(report, "foreign")
            assert bool(controller.released) == stops
            if stops:
                assert "somebody else wrote the allocation file (weight of root.a is 7.0" in told(report, "guard")
                # What was edited stays, what else the controller wrote is given back.
                assert rm.place.data == WRITTEN.replace(b"2.0", b"7")
                assert go_on(folder / "ledger.db")
                turn(rm, controller)
                turn(rm, controller)
                assert not controller.released
            else:
                assert "guard" not in kinds(report)
                assert controller.actuator.baseline["root.a"]["weight"] == 7.0
            assert rm.place.data != WRITTEN.replace(b"2.0", b"7")


def test_past_a_guard_it_releases_once_says_so_and_goes_on_as_a_shadow(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        report = passed(rm, controller)
        assert rm.place.data == WRITTEN
        assert in_force(rm)["root.a"] == 2.0
        assert told(report, "guard") == (
            "released, the ResourceManager refused 1 applications within an hour, at last bad; the administrator's own "
            "weights and limits are in force; `yarnfair enforce --resume` makes it go on"
        )
        assert report.shadow  # type: ignore[attr-defined]
        writes, refreshes = len(rm.place.writes), rm.refreshes
        for _ in range(5):
            rm.start("x")
            rm.now_s += 20.0
            report = controller.tick()
            assert kinds(report) == {"guard"}
        assert (len(rm.place.writes), rm.refreshes) == (writes, refreshes), "nothing is written any more"
        assert report.consumed["root.a"][0] > 0, "accounts go on"
        assert controller.stop("release") == "stopped; a guard had released, the file is the administrator's"


def test_it_stays_released_across_restarts_until_told_to_go_on(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        passed(rm, controller)
    for _ in range(2):
        with driven(rm, tmp_path, guards=REFUSED) as controller:
            rm.start("x")
            turn(rm, controller, 60.0)
            assert controller.tick().released
            assert rm.place.data == WRITTEN
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        turn(rm, controller)
        assert go_on(tmp_path / "ledger.db").startswith("the ResourceManager refused"), "while it is at work"
        rm.now_s += 60.0
        assert not controller.tick().released
        assert rm.place.data != WRITTEN, "it writes again"
        assert go_on(tmp_path / "ledger.db") == ""
        refuse(rm, "second")
        turn(rm, controller)
        assert rm.place.data == WRITTEN, "the guard stands again"


def test_a_release_that_fails_is_tried_again_and_known_before_it_is_done(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        turn(rm, controller)
        managed = rm.place.data
        rm.place.fail = StoreFull("the disk is full")
        refuse(rm)
        rm.now_s += 20.0
        assert "not given back yet: the disk is full" in told(controller.tick(), "guard")
        assert rm.place.data == managed
    rm.place.fail = None
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        turn(rm, controller)
        assert rm.place.data == WRITTEN, "killed in between, the next one gives back"


def test_a_release_that_the_ledger_cannot_keep_is_kept_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        turn(rm, controller)
        refuse(rm)
        rm.now_s += 20.0
        with monkeypatch.context() as full:

            def fail(**_: object) -> None:
                raise StoreFull("the ledger cannot be written")

            full.setattr(controller.store, "commit", fail)
            assert {"guard", "ledger"} <= kinds(controller.tick())
            assert controller.tick().released
        turn(rm, controller)
        assert rm.place.data == WRITTEN
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        turn(rm, controller)
        assert controller.tick().released


def test_an_rm_that_does_not_answer_in_time_is_told_of_it_when_it_does(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    shown = rm.rest.scheduler
    with driven(rm, tmp_path, guards=Guards(rm_response_s=5)) as controller:
        turn(rm, controller)

        def hang() -> None:
            rm.now_s += 20.0
            raise silence()

        rm.rest.scheduler = hang
        rm.down = None
        assert [bool(controller.tick().released) for _ in range(3)] == [False, False, True]
        assert rm.place.data == WRITTEN, "the file is given back whatever the RM does"
        rm.rest.scheduler = shown
        turn(rm, controller)
        assert in_force(rm)["root.a"] == 2.0
        assert controller.released.given_back


def test_a_queue_that_waits_too_long_under_the_weights_in_force(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=Guards(longest_wait_s=100)) as controller:
        for _ in range(5):
            turn(rm, controller)
            assert not controller.released
        turn(rm, controller)
        turn(rm, controller)
        assert controller.released.why.startswith("root.b has waited 120 s for a container")
        assert rm.place.data == WRITTEN


def test_a_shadow_and_a_dry_run_say_that_they_would_release(tmp_path: Path) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED, mode="shadow") as controller:
        turn(rm, controller)
        refuse(rm)
        rm.now_s += 20.0
        assert "past this guard it would release" in told(controller.tick(), "guard")
        assert not controller.released


def test_a_spare_that_takes_over_stays_released_and_goes_on_when_its_ledger_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("harness.control.tenure.time.monotonic", lambda: clock[0])
    rm = contended(place := MemoryPlace(WRITTEN))
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
    with (
        driven(rm, tmp_path / "1", guards=REFUSED) as first,
        driven(rm, tmp_path / "2", guards=REFUSED) as spare,
    ):
        leases(clock, place, first, spare)

        def both(times: int) -> None:
            for _ in range(times):
                clock[0] += 5.0
                turn(rm, first)
                turn(rm, spare, 0.0)

        both(8)
        refuse(rm)
        both(8)
        assert first.released
        assert rm.place.data == WRITTEN
        assert (first.holds, spare.holds) == (True, False), "the one that has released keeps the spare's hands off"
        for _ in range(12):  # the first is killed
            clock[0] += 5.0
            turn(rm, spare)
        assert spare.holds
        assert spare.released.why == first.released.why
        assert rm.place.data == WRITTEN
        go_on(tmp_path / "2" / "ledger.db")
        clock[0] += 5.0
        turn(rm, spare)
        assert rm.place.data != WRITTEN
        for _ in range(12):  # the spare is killed, the first is back: its ledger still says released
            clock[0] += 5.0
            turn(rm, first)
        assert first.holds
        assert not first.released, "what the last holder said is newer"


def test_explain_and_top_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED, mode="bounded") as controller:
        turn(rm, controller)
        view = from_ledger(tmp_path / "ledger.db")
        assert (view.mode, view.released) == ("bounded", "")
        passed(rm, controller)
    ledger = str(tmp_path / "ledger.db")
    view = from_ledger(tmp_path / "ledger.db")
    assert any(line.startswith("A guard released at ") for line in explain(view, "root.a"))
    assert call(["top", "--ledger", ledger, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["mode"] == "bounded"
    assert said["released"]["why"] == view.released != ""
    assert call(["top", "--ledger", ledger, "--once"]) == 0
    shown = capsys.readouterr().out
    assert " · released · " in shown
    assert "yarnfair enforce --resume" in shown.replace("\n", " ")
    assert call(["explain", "a", "--ledger", ledger, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["released"]["why"] == view.released


def test_resume_is_told_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "enforce.yaml"
    said = {"policy": "ltrf", "allocation_file": str(tmp_path / "f.xml"), "ledger": str(tmp_path / "ledger.db")}
    config.write_text(yaml.safe_dump(said))
    assert call(["enforce", "--config", str(config), "--resume"]) == 1
    assert "no such ledger" in capsys.readouterr().err
    rm = contended(MemoryPlace(WRITTEN))
    with driven(rm, tmp_path, guards=REFUSED) as controller:
        passed(rm, controller)
    assert call(["enforce", "--config", str(config), "--resume"]) == 0
    assert capsys.readouterr().out.startswith("goes on at its next look, or when it is started (released: the Res")
    assert call(["enforce", "--config", str(config), "--resume"]) == 0
    assert capsys.readouterr().out == "no guard has released\n"
    assert call(["enforce", "--config", str(config), "--resume", "--once"]) == 2
