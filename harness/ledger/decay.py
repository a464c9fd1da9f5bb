"""Decay of accounted usage: half-life and sliding window. Pure arithmetic, the same on every machine.

Half-life: usage from d seconds ago counts 0.5^(d / half-life). For a constant rate g over an interval of d seconds

    D(t + d) = D(t) beta + g (1 - beta) / lambda,    beta = 0.5^(d / half-life),    lambda = ln 2 / half-life

so that lambda D is the smoothed usage of HTCondor's priorities and of Kueue's admission fair sharing, whatever their
sampling interval, and D itself Slurm's decayed usage in resource-seconds.

Sliding window: only usage within the last W seconds counts. It is kept in `WINDOW_PARTS` equal parts; the oldest part,
which lies only partly in the window, counts pro rata. The ledger's rounds are tumbling windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

#: Parts of a sliding window.
WINDOW_PARTS = 64
LN2 = math.log(2.0)


def half_life_factor(interval_s: float, half_life_s: float) -> float:
    """0.5^(interval / half-life), from operations that every machine rounds alike (libm's exp2 is not one of them)."""
    halvings = interval_s / half_life_s
    if halvings > 1080.0:
        return 0.0
    whole = math.floor(halvings + 0.5)
    r = -(halvings - whole) * LN2
    p = 1.0
    for i in range(16, 0, -1):
        p = 1.0 + p * r / i
    return math.ldexp(p, -whole)


class SlidingWindow:
    """The amounts within the ``length_s`` seconds before the latest time passed to `add`."""

    __slots__ = ("_at", "_part_s", "_parts", "_time_s", "_total")

    def __init__(self, length_s: float, start_s: float) -> None:
        self._part_s = length_s / WINDOW_PARTS
        # The part being filled, the 63 before it, and the one that is leaving the window.
        self._parts = [0.0] * (WINDOW_PARTS + 1)
        self._at = math.floor(start_s / self._part_s)
        self._time_s = start_s
        self._total = 0.0

    def add(self, until_s: float, rate: float) -> None:
        """Add a constant rate per second from the latest time until ``until_s``."""
        while True:
            end = (self._at + 1) * self._part_s
            stop = min(until_s, end)
            if stop > self._time_s:
                amount = (stop - self._time_s) * rate
                self._parts[self._at % len(self._parts)] += amount
                self._total += amount
                self._time_s = stop
            if until_s < end:
                return
            # A gap longer than the window leaves nothing of the earlier amounts.
            ahead = math.floor(until_s / self._part_s) - self._at
            if rate == 0 and ahead > len(self._parts):
                self._parts = [0.0] * len(self._parts)
                self._at += ahead
                self._total = 0.0
                self._time_s = until_s
                return
            self._at += 1
            left = self._at % len(self._parts)
            self._parts[left] = 0.0
            # Recompute the sum: updating it by differences would accumulate rounding errors.
            self._total = math.fsum(self._parts)

    def amount(self) -> float:
        """Return the amount in the window at the latest time."""
        into = (self._time_s - self._at * self._part_s) / self._part_s
        oldest = self._parts[(self._at + 1) % len(self._parts)]
        return max(self._total - oldest * min(max(into, 0.0), 1.0), 0.0)

    def shift(self, seconds: float) -> None:
        """Move all times by ``seconds`` (accurate to one part of the window: `WINDOW_PARTS`)."""
        held = [self._parts[(self._at - age) % len(self._parts)] for age in range(len(self._parts))]
        self._time_s += seconds
        self._at = math.floor(self._time_s / self._part_s)
        for age, amount in enumerate(held):
            self._parts[(self._at - age) % len(self._parts)] = amount

    @property
    def time_s(self) -> float:
        """The latest time."""
        return self._time_s

    def parts(self) -> list[float]:
        """Return the amounts of the parts, from the one that is leaving the window to the present one."""
        return [self._parts[(self._at + 1 + k) % len(self._parts)] for k in range(len(self._parts))]

    def set_parts(self, parts: Sequence[float]) -> None:
        """Replace the amounts of the `parts`."""
        for k, amount in enumerate(parts):
            self._parts[(self._at + 1 + k) % len(self._parts)] = amount
        self._total = math.fsum(parts)

    def state(self) -> list[Any]:
        """Return all that `restored` needs, as plain JSON values."""
        return [self._part_s, self._parts, self._at, self._time_s, self._total]

    @classmethod
    def restored(cls, state: Sequence[Any]) -> SlidingWindow:
        """Restore the window of a `state`. Raises ValueError or TypeError for an invalid one."""
        part_s, parts, at, time_s, total = state
        if len(parts) != WINDOW_PARTS + 1:
            raise ValueError(f"a window of {len(parts)} parts")
        window = cls(float(part_s) * WINDOW_PARTS, float(time_s))
        window._part_s = float(part_s)
        window._parts, window._at, window._total = [float(part) for part in parts], int(at), float(total)
        return window
