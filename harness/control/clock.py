"""The controller's clock on a real machine. Virtual time and tests have clocks of their own."""

from __future__ import annotations

import time


class SteadyClock:
    """Seconds since 1970 that never go back, whatever happens to the machine's time."""

    def __init__(self, *, not_before_s: float = 0.0) -> None:
        self._base_s = max(time.time(), not_before_s) - time.monotonic()

    def __call__(self) -> float:
        return self._base_s + time.monotonic()
