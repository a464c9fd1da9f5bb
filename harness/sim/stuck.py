"""Detects that a simulated cluster is stuck for ever. Each scheduler explains the reason (`why_stuck`).

The checks run in Python between two calls of the loop, at intervals of virtual time, and do not affect decisions.
"""

from __future__ import annotations

from harness.sim.events import E_ACT, E_REDUCE_CHECK, E_SPECULATE, kind_of, slot_of
from harness.sim.state import SchedulerState
from harness.sim.world import NEVER, World


class Stillness:
    """Detects that for some virtual time no event has been due and no container has started or ended.

    The compiled loop returns to Python if no container has started or ended between two checks. ``patience_ms``: how
    long this state must last.
    """

    def __init__(self, patience_ms: int) -> None:
        self._patience_ms = patience_ms
        self._events = -1
        self._since_ms: int | None = None

    def lasts(self, world: World) -> bool:
        """Return whether the state has lasted for ``patience_ms``; schedule the loop's next check."""
        g = world.g
        now, events = int(g["now"][0]), int(g["started"][0] + g["ended"][0])
        if now < int(g["pause_ms"][0]) or events != int(g["still_events"][0]):
            return False
        every_ms = int(g["still_ms"][0])
        due_ms = next_due_ms(world)
        if due_ms < NEVER:
            # Nothing can be detected before that. Checks stay multiples of the interval apart.
            g["pause_ms"] = now + every_ms * max(-(-(due_ms - now) // every_ms), 1)
            self._since_ms = None
            return False
        g["pause_ms"] = now + every_ms
        if self._since_ms is None or events != self._events:
            self._since_ms, self._events = now, events
        return now - self._since_ms >= self._patience_ms

    def last_move_s(self, S: SchedulerState, world: World) -> float:
        """Return the time at which a container was last granted or a job last ended, seconds."""
        return max(int(S.x["last_start_ms"].max()), int(world.g["last_end_ms"][0])) / 1000.0


def next_due_ms(world: World) -> int:
    """Return the time of the next event that may change something (a job arrives, a process ends, an AM acts), ms.

    NEVER if there is none.
    """
    g = world.g[0]
    count = int(g["heap_n"])
    events = zip(world.heap_t[:count].tolist(), world.heap_v[:count].tolist(), strict=True)
    ends = world.nodes["next_end_ms"][world.nodes["up"] == 1]
    return min(
        int(g["feed_ms"]),
        min((at_ms for at_ms, event in events if not _only_looks(world, event)), default=NEVER),
        int(ends.min(initial=NEVER)),
    )


def _only_looks(world: World, event: int) -> bool:
    """Return whether an event can change nothing as long as no container starts or ends.

    While maps wait, a MapReduce AM checks at each heartbeat whether reduces must make room for them
    (harness.sim.master). If no reduce holds a container or is requested, the check has no effect.
    """
    kind = kind_of(event)
    if kind != E_ACT:
        return kind in (E_REDUCE_CHECK, E_SPECULATE)
    slot = slot_of(event)
    job = world.jobs[slot]
    if int(job["maps_at"]) < 0 or int(job["reduces_at"]) < 0:
        return False
    maps, reduces = (world.stages[slot, int(job[name])] for name in ("maps_at", "reduces_at"))
    wait = int(maps["tasks"] - maps["next_task"] + maps["redo_n"]) > 0
    return wait and not int(maps["running"]) and not int(reduces["running"]) and not int(reduces["scheduled"])
