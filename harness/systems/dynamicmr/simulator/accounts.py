"""Usage, dues and waits of each pool over the time of a slot run, and samples of them. Makes no decisions."""

from __future__ import annotations

from collections.abc import Sequence

from harness.systems.dynamicmr.simulator.model import SlotSample
from harness.systems.dynamicmr.simulator.state import Pool

MAP, REDUCE = 0, 1


class Accounts:
    """The accounts of one run. Times are in ms, holdings and demands in units (`SlotCluster.units`)."""

    def __init__(self, pools: Sequence[Pool], weight: tuple[int, int]) -> None:
        self.pools, self.weight = pools, weight
        self.samples: list[SlotSample] = []
        #: Longest wait of each pool and when it ended, ms.
        self.longest: dict[str, tuple[int, int]] = dict.fromkeys((pool.name for pool in pools), (0, 0))
        self._until = 0

    def demand(self, pool: Pool) -> int:
        """Return the units that the pool holds or waits for."""
        waiting = 0
        for job in pool.jobs:
            waiting += job.maps_waiting * self.weight[MAP] + job.reduces_waiting * self.weight[REDUCE]
        return pool.held + waiting

    def pass_time(self, now: int) -> None:
        """Account for the time since the last event, in which nothing changed."""
        since, passed = self._until, now - self._until
        if passed <= 0:
            return
        self._until = now
        for pool in self.pools:
            if not pool.jobs:
                # The waiting tasks of a failed job are gone, so time without jobs is no wait.
                self.note_wait(pool, since, served=False)
                continue
            demand = self.demand(pool)
            pool.accumulated += pool.held * passed
            pool.due += min(float(demand), pool.share) * passed
            if demand > pool.held:
                if pool.waits_since < 0:
                    pool.waits_since = since
            else:
                self.note_wait(pool, since, served=False)

    def note_wait(self, pool: Pool, now: int, *, served: bool) -> None:
        """End a pool's wait at `now` (ms).

        ``served``: the pool got a slot, so that its next wait may begin now; otherwise it has no demand.
        """
        if pool.waits_since >= 0:
            length = now - pool.waits_since
            if length > self.longest[pool.name][0]:
                self.longest[pool.name] = (length, now)
        pool.waits_since = now if served else -1

    def close(self, now: int) -> None:
        """End the accounts at `now` (ms): waits that have not ended count up to then."""
        for pool in self.pools:
            self.note_wait(pool, now, served=False)

    def sample(self, now: int, shuffle_mb_s: float) -> None:
        """Add a sample of every pool's current state."""
        self.samples.append(
            SlotSample(
                now,
                [pool.running[MAP] for pool in self.pools],
                [pool.running[REDUCE] for pool in self.pools],
                [pool.held for pool in self.pools],
                [self.demand(pool) for pool in self.pools],
                [pool.accumulated for pool in self.pools],
                [pool.due for pool in self.pools],
                shuffle_mb_s,
            )
        )
