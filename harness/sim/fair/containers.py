"""Updates of the Fair Scheduler's queues after a change of an application's containers, asks or reservations.

Follows FSAppAttempt.containerCompleted/reserve/unreserve and FSSchedulerNode of Hadoop 3.4.2. The change itself is made
in harness.sim.attempts.
"""

from __future__ import annotations

from harness.sim.containers import hold, let_go, unlink_ask
from harness.sim.fair.order import place
from harness.sim.fair.state import State
from harness.sim.fair.turns import seat_late, seat_path
from harness.sim.kernel import kernel
from harness.sim.lists import chained, pool

#: List of resources preempted on a node, one record for each beneficiary.
_out_of_preempted = chained("pre_head", "next")
take_preempted, _free_preempted = pool("free_p", "next", "n_free_p")


@kernel
def mark_dirty(s: State, i: int) -> None:
    """Mark an application's demand for recomputation at the next update."""
    if s.a[i].dirty == 0:
        s.a[i].dirty = s.g[0].dirty_head + 2
        s.g[0].dirty_head = i


@kernel
def mark_asks(s: State, leaf: int) -> None:
    """Mark a leaf's smallest ask for recomputation at the next update."""
    if s.q[leaf].asks_dirty == 0:
        s.q[leaf].asks_dirty = s.g[0].asks_head + 2
        s.g[0].asks_head = leaf


@kernel
def used(s: State, i: int) -> None:
    """Update the order after an application's usage has changed."""
    seat_path(s, s.a[i].q)
    mark_dirty(s, i)


@kernel
def change_pending(s: State, i: int, mb: int, vcores: int) -> None:
    """Change the outstanding resources of an application and its leaf."""
    x = s.a[i]
    x.pending_mb += mb
    x.pending_vcores += vcores
    s.q[x.q].pending_mb += mb
    s.q[x.q].pending_vcores += vcores
    seat_late(s, x.q)
    mark_dirty(s, i)


@kernel
def drop_ask(s: State, i: int, r: int) -> None:
    """Remove an ask from an application's list."""
    unlink_ask(s, i, r)
    mark_asks(s, s.a[i].q)


@kernel
def find_preempted(s: State, ni: int, i: int) -> int:
    """Return the record of resources preempted on a node for application i's attempt, or -1."""
    p = s.n[ni].pre_head
    while p >= 0 and (s.p[p].app != i or s.p[p].serial != s.a[i].serial):
        p = s.p[p].next
    return p


@kernel
def unlink_preempted(s: State, ni: int, p: int) -> None:
    """Remove a record from a node's list of resources preempted for an application."""
    _out_of_preempted(s.p, s.n[ni], p)
    _free_preempted(s.p, s.g[0], p)


@kernel
def reserve(s: State, i: int, r: int, ni: int, now: int) -> None:
    """Reserve a node for application i's ask r."""
    hold(s, i, r, ni, now)
    place(s, i)


@kernel
def unreserve(s: State, ni: int, now: int) -> None:
    """Remove a node's reservation."""
    place(s, let_go(s, ni, now))


@kernel
def drop_reservations(s: State, i: int, now: int) -> None:
    """Remove all reservations of an application."""
    if s.a[i].n_reserved > 0:
        for ni in range(len(s.n)):
            if s.n[ni].alive == 1 and s.n[ni].res_app == i:
                unreserve(s, ni, now)


@kernel
def freed(s: State, c: int) -> None:
    """Update the order after a container has completed, because its application may now be tried earlier."""
    g, x = s.g[0], s.c[c]
    if x.marked == 1:
        x.marked = 0
        s.a[x.app].preempt_mb -= x.mb
        s.a[x.app].preempt_vcores -= x.vcores
    place(s, x.app)
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores


@kernel
def asked(s: State, i: int, count: int, mb: int, vcores: int) -> None:
    """Update the leaf after an application has changed the number of containers that it asks for."""
    g, x = s.g[0], s.a[i]
    if count > 0:
        if mb >= g.reserve_mb or vcores >= g.reserve_vcores:
            g.large_asks = 1
        if x.runnable == 1:
            lower_bounds(s, i, mb, vcores)
    place(s, i)


@kernel
def lower_bounds(s: State, i: int, mb: int, vcores: int) -> None:
    """Lower the bounds of the smallest asks, in application i's leaf and its ancestors, to the size of a new ask."""
    q = s.q[s.a[i].q]
    lower = False
    p = s.a[i].q
    while p >= 0:
        above = s.q[p]
        if mb < above.ask_min_mb or vcores < above.ask_min_vcores:
            above.ask_min_mb, above.ask_min_vcores = min(above.ask_min_mb, mb), min(above.ask_min_vcores, vcores)
            lower = True
        p = above.parent
    if s.a[i].managed == 1 and s.a[i].am_running == 0 and (mb < q.am_min_mb or vcores < q.am_min_vcores):
        q.am_min_mb, q.am_min_vcores = min(q.am_min_mb, mb), min(q.am_min_vcores, vcores)
        lower = True
    if lower:
        seat_path(s, s.a[i].q)
