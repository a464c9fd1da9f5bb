"""A ledger that is deleted or replaced while a controller is at work: an alarm, and nothing that cannot be kept."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from harness.base.errors import YarnfairError
from tests.control.driven import FILE, controlled, in_force, kinds, rm_with_load


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


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_it_stops_no_release(tmp_path: Path, how: str) -> None:
    rm = rm_with_load()
    rm.start("x", 4096)
    with controlled(rm, tmp_path, lease_s=30.0) as controller:
        for _ in range(5):
            controller.tick()
            rm.now_s += 60.0
        assert rm.place.data != FILE
        path = tmp_path / "ledger.db"
        if how == "deleted":
            path.unlink()
        else:
            (tmp_path / "new").write_bytes(path.read_bytes())
            os.replace(tmp_path / "new", path)
        rm.now_s += 5.0
        controller.tick()
        with contextlib.suppress(YarnfairError):
            # That the ledger could not be kept is said; the file comes first.
            controller.stop("release")
        assert rm.place.data == FILE
        assert in_force(rm) == {"root.a": 1.0, "root.b": 1.0}
