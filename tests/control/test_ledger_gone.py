"""A ledger that is deleted or replaced while a controller is at work: an alarm, and nothing that cannot be kept."""

from __future__ import annotations

from pathlib import Path

from tests.control.driven import controlled, kinds, rm_with_load


def test_it_is_an_alarm_of_every_tick_and_no_weights_are_written(tmp_path: Path) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        rm.now_s += 5.0
        assert controller.tick().alarms == ()
        (tmp_path / "ledger.db").unlink()
        file = rm.place.data
        for _ in range(3):
            rm.now_s += 50.0
            report = controller.tick()
            assert "ledger" in kinds(report)
            assert any("was deleted while it was in use" in alarm.text for alarm in report.alarms)
            assert not report.wrote
        assert rm.place.data == file
