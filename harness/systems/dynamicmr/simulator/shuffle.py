"""The network through which reduces fetch their input: a fluid model with even sharing and limits per node and cluster.

The module only computes the state of the fetches; the engine advances the time and requests the next end of a fetch.
"""

from __future__ import annotations

import math

from harness.systems.dynamicmr.simulator.model import Shuffle

#: MB below which a fetch counts as finished: less than the input of any task, more than rounding errors.
EPSILON_MB = 1e-6


class Network:
    """The fetches in progress, as key -> MB left. Times are in milliseconds."""

    def __init__(self, shuffle: Shuffle) -> None:
        self.limits = shuffle
        self.left: dict[int, float] = {}
        self.node_of: dict[int, int] = {}
        self.rate: dict[int, float] = {}  # MB/ms
        self.now = 0.0
        self.total_mb_s = 0.0
        self.peak_mb_s = 0.0
        self.moved_mb = 0.0
        #: Incremented at each change, so that an outdated planned end is recognised.
        self.version = 0

    def start(self, key: int, node: int, mb: float, now: int) -> None:
        """Start a fetch of `mb` MB into `node`."""
        self.advance(now)
        self.left[key] = mb
        self.node_of[key] = node
        self._share()

    def add(self, key: int, mb: float, now: int) -> None:
        """Add `mb` MB to a fetch in progress."""
        self.advance(now)
        self.left[key] += mb

    def stop(self, key: int, now: int) -> None:
        """Stop a fetch, whether finished or not. Do nothing if there is no such fetch."""
        if key not in self.left:
            return
        self.advance(now)
        del self.left[key], self.node_of[key]
        self._share()

    def advance(self, now: float) -> None:
        """Account for the data sent up to `now`."""
        passed = now - self.now
        if passed > 0:
            for key, rate in self.rate.items():
                sent = min(rate * passed, self.left[key])
                self.left[key] -= sent
                self.moved_mb += sent
            self.now = now
        self.version += 1

    def done(self) -> list[int]:
        """Return the finished fetches in the order in which they began."""
        return [key for key, left in self.left.items() if left <= EPSILON_MB]

    def next_end_ms(self) -> int | None:
        """Return the first whole millisecond by which a fetch will have finished if nothing changes.

        Returns None if there are no fetches.
        """
        if not self.left:
            return None
        first = min(max(left, 0.0) / self.rate[key] for key, left in self.left.items())
        return math.ceil(self.now + first - 1e-9)

    def _share(self) -> None:
        fetching: dict[int, int] = {}
        for node in self.node_of.values():
            fetching[node] = fetching.get(node, 0) + 1
        cluster = self.limits.cluster_mb_s / len(self.left) if self.left and self.limits.cluster_mb_s > 0 else 0.0
        total = 0.0
        self.rate = {}
        for key, node in self.node_of.items():
            own = self.limits.node_mb_s / fetching[node] if self.limits.node_mb_s > 0 else 0.0
            rate = min(x for x in (own, cluster) if x > 0)
            self.rate[key] = rate / 1000.0
            total += rate
        self.total_mb_s = total
        self.peak_mb_s = max(self.peak_mb_s, total)
