"""What nodes and AMs tell the scheduler: nodes that join and leave, heartbeats, containers that exit, releases."""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

import numpy as np

from harness.sim.containers import by_hash, forget_reports, free_if_gone, join, node_maximum, node_release, report_done
from harness.sim.fair.assign import attempt
from harness.sim.fair.containers import complete, mark_asks, unlink_preempted, unreserve
from harness.sim.fair.order import place_all
from harness.sim.fair.shares import steady_shares
from harness.sim.fair.state import ALL_SHARES, ASSIGNED, FINISHED, IGNORED, LOST, NEED_ROOM, RELEASED, S
from harness.sim.fair.turns import seat_all, stir, view_of
from harness.sim.java import to_long
from harness.sim.kernel import kernel

_INT_MAX = 2**31 - 1


@kernel
def resolve_limits(s: S) -> None:
    """Maximum shares, those in per cent of the cluster included: never below the minimum (FSQueue.getMaxShare)."""
    g = s.g[0]
    for k in range(g.n_queues):
        q = s.q[s.order[k]]
        mb, vcores = q.raw_max_mb, q.raw_max_vcores
        if q.max_is_pct == 1:
            mb = to_long(g.cluster_mb * q.pct_mb)
            vcores = min(to_long(g.cluster_vcores * q.pct_vcores), _INT_MAX)
        q.max_mb, q.max_vcores = max(mb, q.min_mb), max(vcores, q.min_vcores)


@kernel
def cluster_changed(s: S) -> None:
    """After a node has come or gone, or the queues have changed: limits, steady shares, everybody's place."""
    g = s.g[0]
    resolve_limits(s)
    allowed = np.int64(np.ceil(np.float32(g.n_nodes) * g.reservable_ratio))
    g.reservations_allowed = max(allowed, 0)
    steady_shares(s)
    g.shares_dirty, g.demand_dirty = ALL_SHARES, 1
    g.asks_head = -1
    for k in range(g.n_leaves):
        s.q[s.leaves[k]].asks_dirty = 0
        mark_asks(s, s.leaves[k])
        stir(s, s.leaves[k])
        place_all(s, s.leaves[k])
    seat_all(s)


@kernel
def add_node(s: S, ni: int, now: int) -> int:
    """A node registers (or is back, empty). Shares change at the next update."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 1:
        return IGNORED
    join(s, ni)
    node.pre_head, node.pre_mb, node.pre_vcores = -1, 0, 0
    g.nodes_peak = max(g.nodes_peak, g.n_nodes)
    if g.node_max_known == 0:
        node_maximum(s)
    g.node_max_mb, g.node_max_vcores = max(g.node_max_mb, node.total_mb), max(g.node_max_vcores, node.total_vcores)
    root = s.q[0]
    root.steady_mb, root.steady_vcores = g.cluster_mb, g.cluster_vcores
    cluster_changed(s)
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores
    return 0


@kernel
def remove_node(s: S, ni: int, now: int) -> int:
    """A node is lost: its containers complete at once (LOST), its reservation is given up."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if g.n_log + node.n_c + 4 > len(s.log) or g.n_free_r < node.n_c:
        return NEED_ROOM
    n = by_hash(s, node.c_head, False, node.map_cap, s.work, 0)
    for k in range(n):
        c = s.work[k]
        complete(s, c, LOST, now, True)
        node_release(s, c, True)
    forget_reports(s, ni, n)
    if node.res_app >= 0:
        unreserve(s, ni, now)
    while node.pre_head >= 0:
        unlink_preempted(s, ni, -1, node.pre_head)
    node.alive = 0
    g.n_nodes -= 1
    g.cluster_mb -= node.total_mb
    g.cluster_vcores -= node.total_vcores
    node_maximum(s)
    root = s.q[0]
    root.steady_mb, root.steady_vcores = g.cluster_mb, g.cluster_vcores
    cluster_changed(s)
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores
    return 0


@kernel
def can_skip(s: S, ni: int) -> bool:
    """Whether a heartbeat of this node now would change nothing, so that it may be left out altogether."""
    node = s.n[ni]
    if node.n_launch > 0 or node.n_done > 0 or node.res_app >= 0 or node.pre_head >= 0:
        return False
    return s.q[0].n_cand == 0 or view_of(s, node.avail_mb, node.avail_vcores) < 0


@kernel
def _heartbeat_room(s: S, ni: int) -> bool:
    """Room for all that one heartbeat can do."""
    g, node = s.g[0], s.n[ni]
    most = 1
    if g.assign_multiple == 1 or node.pre_head >= 0:
        free = node.avail_mb
        c = node.done_head
        while c >= 0:
            free += s.c[c].mb
            c = s.c[c].d_next
        most = max(free, 0) // max(g.min_mb, 1) + 2
    return g.n_free_c >= most and g.n_log + 2 * most + node.n_done + 8 <= len(s.log) and g.n_free_r >= node.n_done


@kernel
def heartbeat(s: S, ni: int, now: int) -> int:
    """A node's heartbeat: it reports launched and completed containers, then its space is given out.

    The number of containers assigned, NEED_ROOM, or IGNORED for a node that is not there.
    """
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if not _heartbeat_room(s, ni):
        return NEED_ROOM
    node.hb += 1
    node.n_launch = 0
    if node.n_done > 0:
        left = 0
        c = node.done_head
        node.done_head, node.done_tail, node.n_done = -1, -1, 0
        while c >= 0:
            x = s.c[c]
            after = x.d_next
            x.hb_left -= 1
            if x.hb_left > 0:
                left += 1
                report_done(s, c, x.hb_left)
            else:
                x.done = 0
                if x.live == 1:
                    complete(s, c, FINISHED, now, False)
                node_release(s, c, True)
                free_if_gone(s, c)
            c = after
    before = g.n_log
    count = attempt(s, ni, now)
    if g.manual_acquire == 1 and count > 0:
        for k in range(before, g.n_log):
            if s.log[k].kind == ASSIGNED and s.log[k].am == 1:
                pull(s, s.log[k].app)
    return count


@kernel
def release(s: S, c: int, now: int) -> int:
    """The AM gives a container back: usage falls at once, the node's space as `node_release` has it."""
    x = s.c[c]
    if x.alive == 0 or x.live == 0 or x.acquired == 0:
        return IGNORED
    if s.g[0].n_log + 2 > len(s.log) or s.g[0].n_free_r < 1:
        return NEED_ROOM
    complete(s, c, RELEASED, now, True)
    free_if_gone(s, c)
    return 0


@kernel
def pull(s: S, i: int) -> None:
    """The AM fetches what it has been given (needed only where `manual_acquire` is 1)."""
    c = s.a[i].live_head
    while c >= 0:
        x = s.c[c]
        if x.acquired == 0:
            x.acquired = 1
            x.acq_hb = s.n[x.node].hb
            if s.g[0].launch == 1:
                s.n[x.node].n_launch += 1
        c = x.a_next
