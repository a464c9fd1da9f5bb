"""The controller's clock on a real machine. Virtual time and tests have clocks of their own."""

from __future__ import annotations

import time


class SteadyClock:
    """Seconds since 1970 that never go back, whatever happens to the machine's time."""

    def __init__(self) -> None:
        self._base_s = 0.0
        self.set(self.host_s())

    def host_s(self) -> float:
        """What the machine's clock shows now."""
        return time.time()

    def set(self, now_s: float) -> None:
        """Begin at this moment. Only before anything has been counted by this clock."""
        self._base_s = now_s - time.monotonic()

    def __call__(self) -> float:
        return self._base_s + time.monotonic()
