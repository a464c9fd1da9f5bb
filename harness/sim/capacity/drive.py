"""A plain load for measurements: nodes that heartbeat in turn, containers that end after a random time."""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.capacity.nodes import container_exit, heartbeat
from harness.sim.capacity.state import ASSIGNED, NEED_ROOM, S
from harness.sim.kernel import kernel


@kernel
def drive(s: S, beat: int, beats: int, period_ms: int, shortest_ms: int, longest_ms: int) -> int:
    """Heartbeats number `beat` up to `beats`, the nodes in turn; the first that was not made (for want of room).

    A container's time is drawn evenly between the two bounds, from its serial number; it ends at its node's next
    heartbeat.
    """
    g = s.g[0]
    n = g.n_nodes
    while beat < beats:
        now = beat // n * period_ms + beat % n * period_ms // n
        ni = beat % n
        c = s.n[ni].c_head
        while c >= 0:
            x = s.c[c]
            if x.tag <= now and x.finishing == 0 and x.live == 1:
                container_exit(s, c)
            c = x.n_next
        if heartbeat(s, ni, now) == NEED_ROOM:
            return beat
        for k in range(g.n_log):
            e = s.log[k]
            if e.kind == ASSIGNED:
                drawn = (e.serial * 6364136223846793005 + 1442695040888963407) >> 33
                s.c[e.c].tag = now + shortest_ms + (drawn & 0x7FFFFFFF) % (longest_ms - shortest_ms)
        g.n_log = 0
        beat += 1
    return beat
