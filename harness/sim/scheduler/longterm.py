"""Orders beyond Hadoop's inside the scheduler: the keys of queues, and the hooks that keep their integrals.

The kernels call these hooks only when ``G.hooks`` is not 0, and ``refresh_keys`` only in the KEYED order modes.
"""

from __future__ import annotations

from numba import njit

from harness.sim.scheduler.state import S


@njit(cache=True)
def refresh_keys(s: S, now: int) -> None:
    """Set Q.key of every queue before a choice: smaller is served first. Here memory used per weight."""
    for i in range(s.g[0].n_queues):
        q = s.q[i]
        if q.alive:
            q.key = q.usage_mb / q.weight if q.weight > 0 else 1e300


@njit(cache=True)
def usage_changed(s: S, leaf: int, now: int, delta_mb: int, delta_vcores: int) -> None:
    """A leaf's usage is about to change by so much (called before the change)."""


@njit(cache=True)
def demand_changed(s: S, leaf: int, now: int, delta_mb: int, delta_vcores: int) -> None:
    """A leaf's pending asks are about to change by so much (called before the change)."""
