"""The effect of cluster changes on the queues, and the test whether a node's heartbeat can have an effect.

harness.sim.nodes handles the nodes' reports.
"""

from __future__ import annotations

import numpy as np

from harness.sim.fair.containers import mark_asks, unlink_preempted
from harness.sim.fair.order import place_all
from harness.sim.fair.shares import steady_shares
from harness.sim.fair.state import ALL_SHARES, State
from harness.sim.fair.turns import invalidate, seat_all, view_of
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel

_INT_MAX = 2**31 - 1


@kernel
def resolve_limits(s: State) -> None:
    """Resolve maximum shares, including percentages of the cluster; never below the minimum (FSQueue.getMaxShare)."""
    g = s.g[0]
    for k in range(g.n_queues):
        q = s.q[s.order[k]]
        mb, vcores = q.raw_max_mb, q.raw_max_vcores
        if q.max_is_pct == 1:
            mb = to_long(g.cluster_mb * q.pct_mb)
            vcores = min(to_long(g.cluster_vcores * q.pct_vcores), _INT_MAX)
        q.max_mb, q.max_vcores = max(mb, q.min_mb), max(vcores, q.min_vcores)


@kernel
def cluster_changed(s: State) -> None:
    """Update limits, steady shares and all positions after a change of the nodes or the queues."""
    g = s.g[0]
    resolve_limits(s)
    allowed = int(np.ceil(single(g.n_nodes) * g.reservable_ratio))
    g.reservations_allowed = max(allowed, 0)
    steady_shares(s)
    g.shares_dirty, g.demand_dirty = ALL_SHARES, 1
    g.asks_head = -1
    for k in range(g.n_leaves):
        s.q[s.leaves[k]].asks_dirty = 0
        mark_asks(s, s.leaves[k])
        invalidate(s, s.leaves[k])
        place_all(s, s.leaves[k])
    seat_all(s)


@kernel
def joined(s: State, ni: int) -> None:
    """Initialise the Fair Scheduler's fields of a node that has joined: nothing is preempted on it."""
    g, node = s.g[0], s.n[ni]
    node.pre_head, node.pre_mb, node.pre_vcores = -1, 0, 0
    g.nodes_peak = max(g.nodes_peak, g.n_nodes)


@kernel
def leaves(s: State, ni: int) -> None:
    """Drop the records of resources preempted for applications on a node that is about to be lost."""
    while s.n[ni].pre_head >= 0:
        unlink_preempted(s, ni, s.n[ni].pre_head)


@kernel
def changed(s: State, now: int) -> None:
    """Update the queues after a node has joined, left or changed. Instantaneous shares change at the next update."""
    g, root = s.g[0], s.q[0]
    root.steady_mb, root.steady_vcores = g.cluster_mb, g.cluster_vcores
    cluster_changed(s)
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores


@kernel
def most_rounds(s: State, ni: int) -> int:
    """Return an upper bound of the containers that one heartbeat may assign, regardless of asks and free resources."""
    return _INT_MAX if s.g[0].assign_multiple == 1 or s.n[ni].pre_head >= 0 else 1


@kernel
def overcommitted(s: State, mb: int, vcores: int) -> bool:
    """Return whether a node with these free resources (MB, vcores; negative if overcommitted) is overcommitted.

    The Fair Scheduler uses the DefaultResourceCalculator here, which compares memory only, whatever the queues'
    policies.
    """
    return mb < 0


@kernel
def can_skip(s: State, ni: int) -> bool:
    """Return whether a heartbeat of this node would change nothing now, so that it can be skipped."""
    node = s.n[ni]
    if node.n_launch > 0 or node.n_done > 0 or node.res_app >= 0 or node.pre_head >= 0:
        return False
    if node.draining == 1 or node.over == 1:
        return False
    return s.q[0].n_cand == 0 or view_of(s, node.avail_mb, node.avail_vcores) < 0
