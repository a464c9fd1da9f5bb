"""Simulated caches of a ResourceManager: the figures that a controller sees are as old as these caches.

Hadoop 3.4.2 caches two figures. The usage of an application's running containers is recomputed on a request after more
than 3 s, or when one of its containers has ended (``SchedulerApplicationAttempt.getRunningAggregateAppResourceUsage``).
The container counts on the JMX page are renewed every 10 s (``MetricsSourceAdapter``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.ledger.accounts import CACHE_S
from harness.sim.world import J_RUNNING, J_SUBMITTED, NEVER

#: Renewal period of the counts (the period of Hadoop's metrics system).
COUNTS_MS = 10_000
_CACHE_MS = round(CACHE_S * 1000)


class ShownEnds:
    """The number of ended containers per leaf at the last renewal. ``phase_ms``: time of the first renewal."""

    def __init__(self, leaves: Mapping[str, int], phase_ms: int) -> None:
        self._leaves, self.next_ms = dict(leaves), phase_ms
        self._shown = dict.fromkeys(leaves, 0)

    def renew(self, scheduler: Any, now_ms: int) -> None:
        """Renew the counts if that is due."""
        if now_ms >= self.next_ms:
            self.next_ms += COUNTS_MS * ((now_ms - self.next_ms) // COUNTS_MS + 1)
            ends = scheduler.S.x["ends"]
            self._shown = {path: int(ends[index]) for path, index in self._leaves.items()}

    def pass_over(self, until_ms: int) -> None:
        """Skip all renewals before ``until_ms`` except the last, because nothing changes until then."""
        self.next_ms += max((until_ms - self.next_ms) // COUNTS_MS, 0) * COUNTS_MS

    def __getitem__(self, leaf: str) -> int:
        return self._shown[leaf]


class ShownUse:
    """The lag of the accounts that a controller derives from cached application figures.

    Parameters
    ----------
    asked_ms : int
        Period at which other clients request the list of applications, ms (0: none does).
    phase_ms : int
        Time of the first such request, ms.
    """

    def __init__(self, asked_ms: int, phase_ms: int) -> None:
        self._asked_ms = asked_ms
        self.next_ms = phase_ms if asked_ms else NEVER
        self._looked_ms = -1
        #: (slots, 5), the cached figures per job slot: generation of the slot; MiB x ms of ended containers; total
        #: MiB x ms and vcore x ms; time of the renewal, ms.
        self._of = np.zeros((0, 5), np.int64)

    def asked(self, world: object, scheduler: object, now_ms: int) -> None:
        """Simulate another client's request if that is due."""
        if now_ms >= self.next_ms:
            self.next_ms += self._asked_ms * ((now_ms - self.next_ms) // self._asked_ms + 1)
            self._renew(world, scheduler, now_ms)

    def pass_over(self, until_ms: int) -> None:
        """Skip all other clients' requests before ``until_ms`` except the last: nothing changes until then."""
        if self._asked_ms:
            self.next_ms += max((until_ms - self.next_ms) // self._asked_ms, 0) * self._asked_ms

    def behind(self, world: Any, scheduler: Any, now_ms: int) -> dict[int, tuple[float, float]]:
        """Simulate the controller's request; return the lag in MiB-seconds and vcore-seconds by scheduler queue index.

        A figure that was not renewed since the previous poll does not lag, because the ledger then adds the usage of
        the held resources.
        """
        used = self._renew(world, scheduler, now_ms)
        jobs, at = world.jobs, self._of[:, 4]
        late = (jobs["gen"] == self._of[:, 0]) & (at > self._looked_ms) & (at < now_ms) & _live(jobs)
        self._looked_ms = now_ms
        found: dict[int, tuple[float, float]] = {}
        for slot in np.flatnonzero(late):
            memory, vcores = found.get(queue := int(jobs["queue"][slot]), (0.0, 0.0))
            more = (used[slot] - self._of[slot, 2:4]) / 1000.0
            found[queue] = (memory + float(more[0]), vcores + float(more[1]))
        return found

    def _renew(self, world: Any, scheduler: Any, now_ms: int) -> Any:
        """Return each slot's usage so far, and cache it for slots whose figure is renewed."""
        jobs, runs = world.jobs, world.runs[: len(scheduler.S.c)]
        if len(self._of) < len(jobs):
            more = np.full((len(jobs) - len(self._of), 5), -1, np.int64)
            self._of = np.concatenate([self._of, more])
        live = runs[runs["live"] == 1]
        used = np.stack([jobs["mb_ms"], jobs["vc_ms"]], axis=1)
        held_ms = now_ms - live["granted_ms"]
        np.add.at(used, live["job"], np.stack([held_ms * live["mb"], held_ms * live["vc"]], axis=1))
        of = self._of
        due = (of[:, 0] != jobs["gen"]) | (of[:, 1] != jobs["mb_ms"]) | (now_ms - of[:, 4] > _CACHE_MS)
        due &= _live(jobs)
        of[due, 0], of[due, 1], of[due, 4] = jobs["gen"][due], jobs["mb_ms"][due], now_ms
        of[due, 2:4] = used[due]
        return used


def _live(jobs: Any) -> Any:
    return (jobs["state"] == J_SUBMITTED) | (jobs["state"] == J_RUNNING)
