"""What is used, reserved and asked for, and every change of it: containers, reservations, asks.

Facts: AbstractLeafQueue, FiCaSchedulerApp, AppSchedulingInfo, FiCaSchedulerNode of Hadoop 3.4.2.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.capacity.order import drop_stale, mark_stale, place_app, place_child, stats
from harness.sim.capacity.resources import positive
from harness.sim.capacity.state import (
    ASSIGNED,
    COMPLETED,
    RESERVED,
    UNRESERVED,
    S,
)
from harness.sim.capacity.users import sleep, use, wake
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
from harness.sim.fair.longterm import usage_changed
from harness.sim.kernel import kernel
from harness.sim.lists import chained, keyed

#: An application's reservations by key.
find_held, _into_held = keyed("held_head")
_out_of_held = chained("held_head", "next")

# --- asks


@kernel
def change_pending(s: S, i: int, mb: int, vcores: int) -> None:
    """Outstanding asks of an application and its queues, in resources."""
    x = s.a[i]
    x.pending_mb += mb
    x.pending_vcores += vcores
    p = x.q
    while p >= 0:
        q = s.q[p]
        before = positive(s, q.pending_mb, q.pending_vcores)
        q.pending_mb += mb
        q.pending_vcores += vcores
        if before != positive(s, q.pending_mb, q.pending_vcores):
            place_child(s, p)
        p = q.parent


@kernel
def put_ask(s: S, i: int, priority: int, alloc_id: int) -> int:
    """A new ask (count 0) at its place in an application's list; the caller has made sure of room."""
    x = s.a[i]
    r = link_ask(s, i, priority, alloc_id)
    if x.n_req == 1:
        place_app(s, i)
    s.q[x.q].stuck = 0
    return r


@kernel
def drop_ask(s: S, i: int, r: int) -> None:
    """Remove an ask from an application's list."""
    unlink_ask(s, i, r)
    if s.a[i].n_req == 0:
        place_app(s, i)


# --- use


@kernel
def charge(s: S, i: int, mb: int, vcores: int) -> None:
    """The application's queues and its user use so much more (or less)."""
    x = s.a[i]
    leaf = s.q[x.q]
    leaf.used_mb += mb
    leaf.used_vcores += vcores
    stats(s, x.q)
    use(s, x.uq, mb, vcores)
    p = leaf.parent
    while p >= 0:
        q = s.q[p]
        q.used_mb += mb
        q.used_vcores += vcores
        stats(s, p)
        p = q.parent


# --- reservations


@kernel
def reserve(s: S, i: int, ni: int, priority: int, alloc_id: int, mb: int, vcores: int, now: int) -> None:
    """A node is reserved; uses up a container id. What it costs queue and user is not counted here."""
    g, x, node = s.g[0], s.a[i], s.n[ni]
    h = find_held(s.h, x, priority, alloc_id)
    if h < 0:
        h = g.free_h
        e = s.h[h]
        g.free_h = e.next
        g.n_free_h -= 1
        e.app, e.priority, e.alloc_id, e.n, e.cap, e.head, e.tail = i, priority, alloc_id, 0, 16, -1, -1
        _into_held(s.h, x, h)
    e = s.h[h]
    e.again = 0
    e.n += 1
    while 4 * e.n > 3 * e.cap:
        e.cap *= 2
    node.res_h, node.res_next = h, -1
    if e.tail >= 0:
        s.n[e.tail].res_next = ni
    else:
        e.head = ni
    e.tail = ni
    x.cid += 1
    x.n_held += 1
    g.serial += 1
    node.res_app, node.res_serial, node.res_cid, node.res_mb, node.res_vcores = i, g.serial, x.cid, mb, vcores
    node.res_priority, node.res_alloc_id = priority, alloc_id
    x.reserved_mb += mb
    x.reserved_vcores += vcores
    p = x.q
    while p >= 0:
        s.q[p].reserved_mb += mb
        s.q[p].reserved_vcores += vcores
        p = s.q[p].parent
    log_reservation(s, now, RESERVED, ni)


@kernel
def unreserve(s: S, ni: int, now: int) -> None:
    """Give up a node's reservation; what queue and user use is not changed here."""
    g, node = s.g[0], s.n[ni]
    log_reservation(s, now, UNRESERVED, ni)
    i, h = node.res_app, node.res_h
    x, e = s.a[i], s.h[h]
    before, p = -1, e.head
    while p != ni:
        before, p = p, s.n[p].res_next
    if before < 0:
        e.head = node.res_next
    else:
        s.n[before].res_next = node.res_next
    if e.tail == ni:
        e.tail = before
    e.n -= 1
    e.again = 0
    if e.n == 0:
        _out_of_held(s.h, x, h)
        e.next = g.free_h
        g.free_h = h
        g.n_free_h += 1
    x.n_held -= 1
    x.reserved_mb -= node.res_mb
    x.reserved_vcores -= node.res_vcores
    p = x.q
    while p >= 0:
        s.q[p].reserved_mb -= node.res_mb
        s.q[p].reserved_vcores -= node.res_vcores
        p = s.q[p].parent
    node.res_app = -1


@kernel
def drop_reservation(s: S, ni: int, now: int) -> None:
    """A reservation ends without a container: queue and user use less."""
    node = s.n[ni]
    i, mb, vcores = node.res_app, node.res_mb, node.res_vcores
    unreserve(s, ni, now)
    mark_stale(s, i)
    charge(s, i, -mb, -vcores)


# --- containers


@kernel
def _change_usage(s: S, i: int, mb: int, vcores: int, now: int) -> None:
    """What containers alone use; for the world around the scheduler."""
    g, x = s.g[0], s.a[i]
    g.alloc_mb += mb
    g.alloc_vcores += vcores
    if g.hooks != 0:
        usage_changed(s, x.q, now, mb, vcores)
    x.usage_mb += mb
    x.usage_vcores += vcores
    p = x.q
    while p >= 0:
        q = s.q[p]
        q.usage_mb += mb
        q.usage_vcores += vcores
        p = q.parent


@kernel
def place_container(s: S, i: int, r: int, ni: int, mb: int, vcores: int, cid: int, reserved: bool, now: int) -> None:
    """Application i's ask r is served by a container on a node. What it costs queue and user is not counted here."""
    g, x, ask = s.g[0], s.a[i], s.r[r]
    ask_mb, ask_vcores = ask.mb, ask.vcores
    c = new_container(s, i, ni, mb, vcores, now)
    e = s.c[c]
    e.cid, e.from_reservation = cid, 1 if reserved else 0
    e.priority, e.alloc_id, e.ask_mb, e.ask_vcores, e.ask_count = ask.priority, ask.alloc_id, ask_mb, ask_vcores, 1
    x.am_running = 1
    _change_usage(s, i, mb, vcores, now)
    ask.count -= 1
    if ask.count == 0:
        drop_ask(s, i, r)
        if x.req_head < 0:
            sleep(s, i)
    change_pending(s, i, -ask_mb, -ask_vcores)
    x.used_mb += ask_mb
    x.used_vcores += ask_vcores
    g.last_mb, g.last_vcores, g.last_c = ask_mb, ask_vcores, c
    log_container(s, now, ASSIGNED, c, 0)


@kernel
def complete(s: S, c: int, why: int, now: int, killed: bool) -> None:
    """AbstractYarnScheduler.completedContainer for a container that is live or was (`killed`: not by itself)."""
    g, x = s.g[0], s.c[c]
    if x.live == 1:
        i = x.app
        a = s.a[i]
        end_container(s, c)
        _change_usage(s, i, -x.mb, -x.vcores, now)
        log_container(s, now, COMPLETED, c, why)
        if killed and x.acquired == 1 and x.launched == 1 and x.done == 0:
            report_done(s, c, g.cleanup_heartbeats)
        if x.acquired == 0:
            give_back(s, c)
        a.used_mb -= x.mb
        a.used_vcores -= x.vcores
        mark_stale(s, i)
        charge(s, i, -x.mb, -x.vcores)
    node_release(s, c, False)


@kernel
def give_back(s: S, c: int) -> None:
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
        wake(s, i)
    else:
        return
    e = s.r[r]
    change_pending(s, i, count * x.ask_mb - e.count * e.mb, count * x.ask_vcores - e.count * e.vcores)
    e.count, e.mb, e.vcores, e.given, e.given_serial = count, x.ask_mb, x.ask_vcores, c, x.serial


@kernel
def forget_app(s: S, i: int) -> None:
    """Recycle an application's slot, unless a ghost of it stands in a list."""
    x = s.a[i]
    drop_stale(s, i)
    x.alive = 0
    if x.active == 1 or x.waiting == 1:
        x.ghost = 1
        return
    x.free_next = s.g[0].free_app
    s.g[0].free_app = i
    s.g[0].n_free_app += 1
