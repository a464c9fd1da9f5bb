"""What the engine's speed is held against: a fixed compiled loop, run right before and after each stretch.

A virtual machine's speed changes within a second. No measurement of the engine lives here.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np


class Calibration:
    """Steps a second of a fixed compiled loop (a hash, a dependent access, a branch), on a table of so many KiB.

    Two tables: 8 MiB lie in a cache that all cores share, neighbours of a virtual machine too, so that their work
    changes the figure up to sixfold; 256 KiB lie in the core's own.
    """

    def __init__(self, kib: int) -> None:
        from harness.sim.durations import calibration_loop

        self._loop = calibration_loop
        self._table = np.arange(kib * 128, dtype=np.int64)
        calibration_loop(self._table, len(self._table))

    def steps_per_s(self, steps: int = 1_000_000) -> float:
        """Once, now."""
        began = process_time()
        self._loop(self._table, steps)
        return steps / (process_time() - began)


#: The tables of the two loops, KiB: `calibration_ratio`, `core_ratio`.
SHARED, CORE = 8192, 256


def calibrate() -> float:
    """Steps a second of the loop on 256 KiB, the best of three."""
    loop = Calibration(CORE)
    return max(loop.steps_per_s(20_000_000) for _ in range(3))


def ratios(rates: list[float], steps: Mapping[str, list[float]]) -> dict[str, Any]:
    """Events for each step of the loops that ran right before and after each stretch: the median, and the quartiles."""
    found: dict[str, Any] = {}
    for name, speeds in steps.items():
        beside = [2 / (1 / before + 1 / after) for before, after in pairwise(speeds)]
        ratios = [rate / speed for rate, speed in zip(rates, beside, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        found[f"{name}_steps_per_s"] = round(statistics.median(speeds))
        found[f"{name}_ratio"] = round(middle, 6)
        found[f"{name}_quartiles"] = [round(low, 6), round(high, 6)]
    return found
