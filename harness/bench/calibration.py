"""The reference for the engine's speed: a fixed compiled loop that runs right before and after each measured stretch.

The speed of a virtual machine changes within a second. This module does not measure the engine itself.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np


class Calibration:
    """A fixed compiled loop (a hash, a dependent memory access, a branch) on a table of ``kib`` KiB.

    Two table sizes are used. 8 MiB are in a cache shared by all cores, also by other virtual machines, whose work
    changes the loop's speed by a factor of up to six. 256 KiB fit into the core's own cache.
    """

    def __init__(self, kib: int) -> None:
        from harness.sim.durations import calibration_loop

        self._loop = calibration_loop
        self._table = np.arange(kib * 128, dtype=np.int64)
        calibration_loop(self._table, len(self._table))

    def steps_per_s(self, steps: int = 1_000_000) -> float:
        """Run the loop once now and return its steps per second."""
        began = process_time()
        self._loop(self._table, steps)
        return steps / (process_time() - began)


#: Table sizes of the two loops in KiB, for `calibration_ratio` and `core_ratio`.
SHARED, CORE = 8192, 256


def calibrate() -> float:
    """Return the steps per second of the loop on 256 KiB, the best of three runs."""
    loop = Calibration(CORE)
    return max(loop.steps_per_s(20_000_000) for _ in range(3))


def ratios(rates: list[float], steps: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return the median and the quartiles of the events per step of a calibration loop, for each loop.

    ``rates``: events per second of each stretch; ``steps``: loop -> its steps per second before the first stretch and
    after each. A stretch is compared with the harmonic mean of the two runs next to it.
    """
    found: dict[str, Any] = {}
    for name, speeds in steps.items():
        beside = [2 / (1 / before + 1 / after) for before, after in pairwise(speeds)]
        ratios = [rate / speed for rate, speed in zip(rates, beside, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        found[f"{name}_steps_per_s"] = round(statistics.median(speeds))
        found[f"{name}_ratio"] = round(middle, 6)
        found[f"{name}_quartiles"] = [round(low, 6), round(high, 6)]
    return found
