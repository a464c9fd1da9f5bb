"""Virtual time: one true time, an agenda of what happens when, and each machine's own clocks."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

#: The true time 0 as seconds since 1970.
EPOCH_S = 1_700_000_000.0


class Agenda:
    """The true time, seconds from 0, and what is due when. Things due at one moment happen in the order of planning."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, time_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time_s, next(self._numbers), do))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self.at(self.now_s + seconds, do)

    def run_until(self, time_s: float) -> None:
        """All that is due until then. What takes time itself makes what follows late."""
        while self._due and self._due[0][0] <= time_s:
            due_s, _, do = heapq.heappop(self._due)
            self.now_s = max(self.now_s, due_s)
            do()
        self.now_s = max(self.now_s, time_s)

    def pass_by(self, seconds: float) -> None:
        """Time passes, and nobody else comes to his turn."""
        self.now_s += seconds


@dataclass
class MachineClock:
    """A machine's clocks: the time of day, which jumps, and the monotonic one, which drifts."""

    agenda: Agenda
    jumped_s: float = 0.0
    rate: float = 1.0
    _base_s: float = 1000.0
    _since_s: float = 0.0

    def monotonic(self) -> float:
        return self._base_s + (self.agenda.now_s - self._since_s) * self.rate

    def drift(self, rate: float) -> None:
        self._base_s, self._since_s, self.rate = self.monotonic(), self.agenda.now_s, rate

    def time(self) -> float:
        return EPOCH_S + self.agenda.now_s + self.jumped_s


class TimeModule:
    """Stands where a module has imported `time`; asks the clock of the machine that is at work."""

    def __init__(self, clock: Callable[[], MachineClock], sleep: Callable[[float], None]) -> None:
        self._clock, self.sleep = clock, sleep

    def monotonic(self) -> float:
        return self._clock().monotonic()

    perf_counter = monotonic

    def time(self) -> float:
        return self._clock().time()


class DatetimeClass:
    """Stands where a module has imported `datetime.datetime` for its `now`."""

    def __init__(self, clock: Callable[[], MachineClock]) -> None:
        self._clock = clock

    def now(self, zone: tzinfo = UTC) -> datetime:
        return datetime.fromtimestamp(self._clock().time(), zone)
