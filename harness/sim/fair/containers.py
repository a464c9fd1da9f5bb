"""A container's life in the scheduler: allocated, completed, freed by its node; reservations; the log of it all.

Facts: FSAppAttempt.allocate/containerCompleted/reserve/unreserve, SchedulerNode, FSSchedulerNode of Hadoop 3.4.2. A
node frees a container that it has been told is launched only when the node itself reports it completed.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.containers import (
    end_container,
    find_ask,
    link_ask,
    log_container,
    log_reservation,
    new_container,
    node_release,
    report_done,
    settle_given,
    unlink_ask,
)
from harness.sim.fair.longterm import demand_changed, usage_changed
from harness.sim.fair.order import place
from harness.sim.fair.state import (
    ASSIGNED,
    COMPLETED,
    RESERVED,
    UNRESERVED,
    S,
)
from harness.sim.fair.turns import seat, seat_late, seat_path
from harness.sim.kernel import kernel


@kernel
def mark_dirty(s: S, i: int) -> None:
    """The next update looks at this application's demand."""
    if s.a[i].dirty == 0:
        s.a[i].dirty = s.g[0].dirty_head + 2
        s.g[0].dirty_head = i


@kernel
def mark_asks(s: S, leaf: int) -> None:
    """The next update looks for the leaf's smallest ask."""
    if s.q[leaf].asks_dirty == 0:
        s.q[leaf].asks_dirty = s.g[0].asks_head + 2
        s.g[0].asks_head = leaf


@kernel
def change_usage(s: S, i: int, now: int, mb: int, vcores: int) -> None:
    """Usage of an application, its queues and the cluster, by a container more (or less, if negative)."""
    x = s.a[i]
    if s.g[0].hooks != 0:
        usage_changed(s, x.q, now, mb, vcores)
    x.usage_mb += mb
    x.usage_vcores += vcores
    p = x.q
    while p >= 0:
        q = s.q[p]
        q.usage_mb += mb
        q.usage_vcores += vcores
        p = q.parent
    seat_path(s, x.q)
    s.g[0].alloc_mb += mb
    s.g[0].alloc_vcores += vcores
    mark_dirty(s, i)


@kernel
def change_pending(s: S, i: int, now: int, mb: int, vcores: int) -> None:
    """Outstanding asks of an application and its leaf, in resources."""
    x = s.a[i]
    if s.g[0].hooks != 0:
        demand_changed(s, x.q, now, mb, vcores)
    x.pending_mb += mb
    x.pending_vcores += vcores
    s.q[x.q].pending_mb += mb
    s.q[x.q].pending_vcores += vcores
    seat_late(s, x.q)
    mark_dirty(s, i)


@kernel
def drop_ask(s: S, i: int, r: int) -> None:
    """Remove an ask from an application's list (its count and size have been taken off already)."""
    unlink_ask(s, i, r)
    mark_asks(s, s.a[i].q)


@kernel
def put_ask(s: S, i: int, priority: int, alloc_id: int) -> int:
    """A new ask (count 0) at its place in an application's list; the caller has made sure of room."""
    x = s.a[i]
    r = link_ask(s, i, priority, alloc_id)
    # The hash table that Hadoop keeps asks in: its size decides the order in which preemption looks at them.
    while 4 * x.n_req >= 3 * x.req_cap:
        x.req_cap *= 2
    return r


@kernel
def _fulfil_preempted(s: S, i: int, ni: int, mb: int, vcores: int) -> None:
    """FSSchedulerNode.allocateContainer: what was preempted here for this application is paid out."""
    node = s.n[ni]
    before, p = -1, node.pre_head
    while p >= 0:
        e = s.p[p]
        if e.app == i and e.serial == s.a[i].serial:
            paid_mb, paid_vcores = min(e.mb, mb), min(e.vcores, vcores)
            e.mb -= paid_mb
            e.vcores -= paid_vcores
            node.pre_mb -= paid_mb
            node.pre_vcores -= paid_vcores
            if e.mb == 0 and e.vcores == 0:
                unlink_preempted(s, ni, before, p)
            return
        before, p = p, e.next


@kernel
def unlink_preempted(s: S, ni: int, before: int, p: int) -> None:
    """Take a record out of a node's list of resources preempted for somebody."""
    if before < 0:
        s.n[ni].pre_head = s.p[p].next
    else:
        s.p[before].next = s.p[p].next
    s.p[p].next = s.g[0].free_p
    s.g[0].free_p = p
    s.g[0].n_free_p += 1


@kernel
def allocate(s: S, i: int, r: int, ni: int, now: int, reserved: bool) -> int:
    """Give application i a container for its ask r on a node where it fits; the slot of the container."""
    g, x, ask, node = s.g[0], s.a[i], s.r[r], s.n[ni]
    mb, vcores = ask.mb, ask.vcores
    ask_mb, ask_vcores, priority, alloc_id = mb, vcores, ask.priority, ask.alloc_id
    if reserved:
        mb, vcores = node.res_mb, node.res_vcores
    g.least_mb, g.least_vcores = min(g.least_mb, mb), min(g.least_vcores, vcores)
    c = new_container(s, i, ni, mb, vcores, now)
    e = s.c[c]
    e.priority, e.alloc_id, e.ask_mb, e.ask_vcores, e.ask_count = priority, alloc_id, ask_mb, ask_vcores, 1
    if reserved:
        e.cid, e.from_reservation = node.res_cid, 1
    else:
        x.cid += 1
        e.cid, e.from_reservation = x.cid, 0
    ask.count -= 1
    x.n_asks -= 1
    if ask.count == 0:
        drop_ask(s, i, r)
    change_pending(s, i, now, -ask_mb, -ask_vcores)
    change_usage(s, i, now, mb, vcores)
    if reserved:
        unreserve(s, ni, now)
    if node.pre_head >= 0 and (mb != 0 or vcores != 0):
        _fulfil_preempted(s, i, ni, mb, vcores)
    if x.managed == 1 and x.am_running == 0:
        x.am_running, x.am_mb, x.am_vcores = 1, ask_mb, ask_vcores
        s.q[x.q].am_mb += ask_mb
        s.q[x.q].am_vcores += ask_vcores
        seat(s, x.q)
    g.last_mb, g.last_vcores, g.last_c = ask_mb, ask_vcores, c
    place(s, i)
    log_container(s, now, ASSIGNED, c, 0)
    return c


@kernel
def reserve(s: S, i: int, r: int, ni: int, now: int) -> None:
    """Reserve a node for application i's ask r; uses up a container id."""
    x, node, ask = s.a[i], s.n[ni], s.r[r]
    x.cid += 1
    s.g[0].serial += 1
    node.res_app, node.res_serial, node.res_cid = i, s.g[0].serial, x.cid
    node.res_mb, node.res_vcores, node.res_priority, node.res_alloc_id = ask.mb, ask.vcores, ask.priority, ask.alloc_id
    x.n_reserved += 1
    place(s, i)
    log_reservation(s, now, RESERVED, ni)


@kernel
def unreserve(s: S, ni: int, now: int) -> None:
    """Give up a node's reservation."""
    node = s.n[ni]
    log_reservation(s, now, UNRESERVED, ni)
    i = node.res_app
    s.a[i].n_reserved -= 1
    node.res_app = -1
    place(s, i)


@kernel
def complete(s: S, c: int, why: int, now: int, killed: bool) -> None:
    """AbstractYarnScheduler.completedContainer for a container that is live or was (`killed`: not by itself)."""
    g, x = s.g[0], s.c[c]
    if x.live == 1:
        i = x.app
        a = s.a[i]
        end_container(s, c)
        if x.marked == 1:
            x.marked = 0
            a.preempt_mb -= x.mb
            a.preempt_vcores -= x.vcores
        log_container(s, now, COMPLETED, c, why)
        change_usage(s, i, now, -x.mb, -x.vcores)
        if killed and x.acquired == 1 and x.launched == 1 and x.done == 0:
            report_done(s, c, g.cleanup_heartbeats)
        if x.acquired == 0:
            give_back(s, c, now)
        place(s, i)
    node_release(s, c, False)
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores


@kernel
def give_back(s: S, c: int, now: int) -> None:
    """The request of a container that its AM never fetched is outstanding again, with the size it had."""
    x = s.c[c]
    i = x.app
    r = find_ask(s.r, s.a[i], x.priority, x.alloc_id)
    count = x.ask_count
    if r >= 0:
        count = s.r[r].count + 1
        settle_given(s, r)
    elif count > 0:
        r = put_ask(s, i, x.priority, x.alloc_id)
    else:
        return
    e = s.r[r]
    change_pending(s, i, now, count * x.ask_mb - e.count * e.mb, count * x.ask_vcores - e.count * e.vcores)
    s.a[i].n_asks += count - e.count
    e.count, e.mb, e.vcores, e.given, e.given_serial = count, x.ask_mb, x.ask_vcores, c, x.serial
    lower_bounds(s, i, x.ask_mb, x.ask_vcores)


@kernel
def lower_bounds(s: S, i: int, mb: int, vcores: int) -> None:
    """An ask of this size may be outstanding in application i's leaf."""
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
