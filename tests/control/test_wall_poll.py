"""The wall-clock driver where the RM's own poll loads what it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.control.driven import controlled, in_force, kinds, rm_with_load
from tests.control.rm_model import RmModel


class Polling:
    """The RM's own poll, as AllocationFileLoaderService does it: every 10 s, a file that is newer than the last load
    and has been still for more than 5 s. ``phase_s``: of its polls; ``blind``: it finds nothing new."""

    def __init__(self, rm: RmModel, phase_s: float) -> None:
        self.rm, self.next_s, self.blind = rm, rm.now_s + phase_s, False
        self.modified_s = self.loaded_s = rm.now_s - 100.0
        self.loads = 0
        put = rm.place._put

        def timed(data: bytes, still: Callable[[], None]) -> None:
            put(data, still)
            self.modified_s = rm.now_s

        rm.place._put = timed  # type: ignore[method-assign]

    def until(self, now_s: float) -> None:
        while self.next_s <= now_s:
            if not self.blind and self.modified_s > self.loaded_s and self.next_s > self.modified_s + 5.0:
                self.rm._load()
                self.loads, self.loaded_s = self.loads + 1, self.next_s
            self.next_s += 10.0
        self.rm.now_s = now_s


@pytest.mark.parametrize("phase_s", [0.5, 2.5, 4.0, 4.9, 6.0, 9.5])
@pytest.mark.parametrize("period_s", [1.0, 5.0, 10.0])
def test_every_write_is_found_by_the_rms_own_poll_whatever_its_phase(
    tmp_path: Path, phase_s: float, period_s: float
) -> None:
    rm = rm_with_load()
    poll = Polling(rm, phase_s)
    with controlled(rm, tmp_path, refresh="poll", period_s=period_s) as controller:
        for step in range(round(120 / period_s)):
            rm.start("xy"[step // 3 % 2], 4096)
            assert controller.tick().alarms == ()
            poll.until(rm.now_s + period_s)
    assert rm.refreshes == 0
    written = len(rm.place.writes)
    assert written >= 4, "the weights change at every look"
    assert poll.loads >= written - 1, "all but the last one"


@pytest.mark.parametrize("period_s", [5.0, 10.0])
def test_a_poll_that_finds_nothing_is_an_alarm_however_often_the_weights_change(
    tmp_path: Path, period_s: float
) -> None:
    rm = rm_with_load()
    poll = Polling(rm, 3.0)
    poll.blind = True
    alarmed = []
    with controlled(rm, tmp_path, refresh="poll", period_s=period_s) as controller:
        for step in range(round(70 / period_s)):
            rm.start("xy"[step // 3 % 2], 4096)
            if kinds(controller.tick()) == {"not-in-force"}:
                alarmed.append(rm.now_s - 1000.0)
            poll.until(rm.now_s + period_s)
    assert alarmed[0] in (25.0, 30.0)
    assert len(alarmed) >= 2
    assert len(rm.place.writes) <= 6


def test_a_file_that_the_rm_takes_for_loaded_is_written_again_as_it_is(tmp_path: Path) -> None:
    rm = rm_with_load()
    poll = Polling(rm, 3.0)
    with controlled(rm, tmp_path, refresh="poll") as controller:
        controller.tick()
        # It was replaced while the RM was loading: what counts is when that ended.
        poll.loaded_s = rm.now_s + 0.5
        seen = []
        # The alarm lasts until the file has had the time to be found once more, and is read back.
        for _ in range(14):
            poll.until(rm.now_s + 5.0)
            seen.append(kinds(controller.tick()))
        assert {"not-in-force"} in seen
        assert seen[-3:] == [set()] * 3
        assert in_force(rm) == {"root.a": 500.0, "root.b": 500.0}
        assert set(rm.place.writes) == {rm.place.data}
