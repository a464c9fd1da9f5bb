"""The wall-clock driver: what a queue is owed for the time before it existed, and for the time in which it was idle."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.control.driven import controlled, in_force, rm_with_load


def test_a_queue_that_is_new_is_not_paid_back_for_the_time_before_it(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        for look in range(20):
            if look == 10:
                rm.place.data = rm.place.data.replace(b"</allocations>", b'<queue name="c"/></allocations>')
                rm._load()
                rm.submit("z", "root.c").pending = 5
            if look in (0, 10):
                for app in ("x", "y") if look == 0 else ("z",):
                    for _ in range(10):
                        rm.start(app)
            rm.now_s += 5.0
            controller.tick()
            weights = in_force(rm)
            parts = {queue: weight / sum(weights.values()) for queue, weight in weights.items()}
            assert parts == {queue: pytest.approx(1 / len(weights), abs=0.01) for queue in weights}
    assert len(parts) == 3


def test_an_idle_queue_does_not_pile_up_without_end(tmp_path: Path) -> None:
    """What is owed to it after a year is hardly more than after a week, with the half-life of a day."""
    owed = {}
    for days in (7, 365):
        folder = tmp_path / str(days)
        folder.mkdir()
        rm = rm_with_load()
        rm.finish("y")
        with controlled(rm, folder, sets={"half_life": "86400"}) as controller:
            controller.tick()
            for _ in range(10):
                rm.start("x")
            for _ in range(days):
                rm.now_s += 86_400.0
                report = controller.tick()
            owed[days] = report.counted["root.a"] - report.counted["root.b"]
    most = 10 * 1024 * 86_400.0 / math.log(2)
    assert owed[7] == pytest.approx(most * (1 - 2.0**-7), rel=1e-3)
    assert owed[365] == pytest.approx(most, rel=1e-3)
