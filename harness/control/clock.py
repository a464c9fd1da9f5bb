"""The controller's clock on a real machine. Simulations and tests use other clocks."""

from __future__ import annotations

import time


class SteadyClock:
    """Seconds since 1970 that never go back, even when the machine's time is changed."""

    def __init__(self) -> None:
        self._base_s = 0.0
        self.set(self.host_s())

    def host_s(self) -> float:
        """Return the present time of the machine's clock."""
        return time.time()

    def set(self, now_s: float) -> None:
        """Set the time. Call this only before accounting begins."""
        self._base_s = now_s - time.monotonic()

    def __call__(self) -> float:
        """Return the time, seconds since 1970."""
        return self._base_s + time.monotonic()
