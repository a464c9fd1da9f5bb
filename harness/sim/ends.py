"""The times at which processes on a node end, compiled.

A heartbeat determines which containers on its node have ended since the last one, so the ends of a node are stored
together in blocks. The first record of a block contains the earliest end in the block that no heartbeat has found yet,
and the next block. Each other record contains an end and its container. Only a node's first block may have free
records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.base.errors import InternalError
from harness.sim.kernel import kernel
from harness.sim.world import BLOCK, NEVER, World


@kernel
def into_node(W: World, c: int, node: int) -> None:
    """Add a container to a node's blocks, with an unknown end (NEVER)."""
    g, n, run = W.g[0], W.nodes[node], W.runs[c]
    if n.head < 0 or n.filled == BLOCK - 1:
        first = g.ends_free
        if first < 0:
            raise InternalError("the simulator's engine has no free block left for the ends of containers")
        g.ends_free = W.ends[first].c
        W.ends[first].ms, W.ends[first].c = NEVER, n.head
        n.head, n.filled = first, 0
    n.filled += 1
    run.node, run.at = node, n.head + n.filled
    W.ends[run.at].ms, W.ends[run.at].c = NEVER, c


@kernel
def _soonest_again(W: World, block: int, filled: int, least: int) -> None:
    """Recompute a block's earliest end that is not before `least` (earlier ones have been found)."""
    soonest = NEVER
    for at in range(block + 1, block + filled + 1):
        if least <= W.ends[at].ms < soonest:
            soonest = W.ends[at].ms
    W.ends[block].ms = soonest


@kernel
def out_of_node(W: World, c: int) -> None:
    """Remove a container from its node's blocks; the last record of the first block takes its place."""
    g, node = W.g[0], W.nodes[W.runs[c].node]
    at, first = W.runs[c].at, node.head
    block, last = at // BLOCK * BLOCK, first + node.filled
    gone, moved = W.ends[at].ms, W.ends[last].ms
    W.ends[at].ms, W.ends[at].c = moved, W.ends[last].c
    W.runs[W.ends[last].c].at = at
    node.filled -= 1
    if W.ends[block].ms == gone:
        _soonest_again(W, block, node.filled if block == first else BLOCK - 1, gone)
    if block != first:
        # A record from another block may end before every end that this block had, including the removed one.
        W.ends[block].ms = min(W.ends[block].ms, moved)
    if block != first and W.ends[first].ms == moved:
        _soonest_again(W, first, node.filled, moved)
    if node.filled == 0:
        node.head = W.ends[first].c
        node.filled = BLOCK - 1 if node.head >= 0 else 0
        W.ends[first].c = g.ends_free
        g.ends_free = first


@kernel
def set_end(W: World, c: int, at_ms: int) -> None:
    """Set the time at which the process of a container exits; it is not later than a time set before."""
    W.runs[c].end_ms = at_ms
    node, at = W.nodes[W.runs[c].node], W.runs[c].at
    block = at // BLOCK * BLOCK
    W.ends[at].ms = at_ms
    W.ends[block].ms = min(W.ends[block].ms, at_ms)
    node.next_end_ms = min(node.next_end_ms, at_ms)


@kernel
def ended_by(W: World, node: int, now: int) -> int:
    """Write the containers on a node whose processes have ended by `now` to W.scratch; return their number.

    They are ordered by the times of their ends. They stay in the node's blocks, but later calls do not find them again.
    """
    n, soonest = 0, NEVER
    first, filled = W.nodes[node].head, W.nodes[node].filled
    while first >= 0:
        if W.ends[first].ms <= now:
            left = NEVER
            for at in range(first + 1, first + filled + 1):
                end, c = W.ends[at].ms, W.ends[at].c
                if end > now:
                    left = min(left, end)
                    continue
                k = n
                while k > 0 and (
                    W.runs[W.scratch[k - 1]].end_ms > end
                    or (W.runs[W.scratch[k - 1]].end_ms == end and W.scratch[k - 1] > c)
                ):
                    W.scratch[k] = W.scratch[k - 1]
                    k -= 1
                W.scratch[k] = c
                n += 1
            W.ends[first].ms = left
        soonest = min(soonest, W.ends[first].ms)
        first, filled = W.ends[first].c, BLOCK - 1
    W.nodes[node].next_end_ms = soonest
    return n


def overdue(world: World, before_ms: int) -> NDArray[np.int64]:
    """Find the processes that ended before a time and that no heartbeat has found. Any such process is a defect.

    Parameters
    ----------
    world : W
        The state of a simulation between two events.
    before_ms : int
        Virtual time, ms; earlier than now by more than the longest time between two heartbeats of a node.

    Returns
    -------
    ndarray of int64
        The slots of their containers.
    """
    found = [np.empty(0, dtype=np.int64)]
    for node in np.flatnonzero((world.nodes["head"] >= 0) & (world.nodes["up"] == 1)):
        first, filled = int(world.nodes["head"][node]), int(world.nodes["filled"][node])
        while first >= 0:
            own = world.ends[first + 1 : first + filled + 1]
            found.append(own["c"][own["ms"] < before_ms].astype(np.int64))
            # All blocks but the first are full.
            first, filled = int(world.ends["c"][first]), BLOCK - 1
    return np.concatenate(found)
