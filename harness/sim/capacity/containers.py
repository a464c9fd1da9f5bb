"""Updates of queues and users after a change of an application's containers, asks or reservations.

Follows AbstractLeafQueue, FiCaSchedulerApp and FiCaSchedulerNode of Hadoop 3.4.2. The change itself is made in
harness.sim.attempts.
"""

from __future__ import annotations

from harness.sim.capacity.order import mark_stale, place_app, place_child, stats
from harness.sim.capacity.resources import positive
from harness.sim.capacity.state import State
from harness.sim.capacity.users import sleep, use, wake
from harness.sim.containers import hold, let_go, link_ask, unlink_ask
from harness.sim.kernel import kernel
from harness.sim.lists import chained, keyed, pool

#: An application's reservations by key.
find_held, _into_held = keyed("held_head")
_out_of_held = chained("held_head", "next")
_take_held, _free_held = pool("free_h", "next", "n_free_h")

# --- asks


@kernel
def change_pending(s: State, i: int, mb: int, vcores: int) -> None:
    """Change the outstanding resources of an application and its queues."""
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
def put_ask(s: State, i: int, priority: int, alloc_id: int) -> int:
    """Insert a new ask (count 0) into an application's list, in order; the caller has reserved the space."""
    x = s.a[i]
    r = link_ask(s, i, priority, alloc_id)
    if x.n_req == 1:
        place_app(s, i)
    s.q[x.q].stuck = 0
    wake(s, i)
    return r


@kernel
def drop_ask(s: State, i: int, r: int) -> None:
    """Remove an ask from an application's list."""
    unlink_ask(s, i, r)
    if s.a[i].n_req == 0:
        place_app(s, i)


@kernel
def asked(s: State, i: int, count: int, mb: int, vcores: int) -> None:
    """Update the queues after an application has changed the number of containers that it asks for."""
    x = s.a[i]
    q = s.q[x.q]
    if x.req_head < 0:
        sleep(s, i)
    q.stuck = 0
    if q.sized == 1 and (x.managed == 0 or x.am_running == 1):
        mark_stale(s, i)


# --- usage


@kernel
def charge(s: State, i: int, mb: int, vcores: int) -> None:
    """Add to (or, if negative, subtract from) the usage of the application's queues and its user."""
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
def _count_reserved(s: State, i: int, mb: int, vcores: int) -> None:
    """Add to (or, if negative, subtract from) the reserved resources of an application."""
    x = s.a[i]
    x.reserved_mb += mb
    x.reserved_vcores += vcores
    p = x.q
    while p >= 0:
        s.q[p].reserved_mb += mb
        s.q[p].reserved_vcores += vcores
        p = s.q[p].parent


@kernel
def reserve(s: State, i: int, r: int, ni: int, now: int) -> None:
    """Reserve a node for application i's ask r. The caller charges the queue and the user."""
    x, node, ask = s.a[i], s.n[ni], s.r[r]
    h = find_held(s.h, x, ask.priority, ask.alloc_id)
    if h < 0:
        h = _take_held(s.h, s.g[0])
        e = s.h[h]
        e.app, e.priority, e.alloc_id, e.n, e.cap, e.head, e.tail = i, ask.priority, ask.alloc_id, 0, 16, -1, -1
        e.seq = s.g[0].serial
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
    _count_reserved(s, i, ask.mb, ask.vcores)
    hold(s, i, r, ni, now)


@kernel
def unreserve(s: State, ni: int, now: int) -> None:
    """Remove a node's reservation; the usage of queue and user is not changed here."""
    node = s.n[ni]
    i, h = let_go(s, ni, now), node.res_h
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
        _free_held(s.h, s.g[0], h)
    _count_reserved(s, i, -node.res_mb, -node.res_vcores)


@kernel
def drop_reservation(s: State, ni: int, now: int) -> None:
    """End a reservation without a container, and reduce the usage of its queue and user."""
    node = s.n[ni]
    i, mb, vcores = node.res_app, node.res_mb, node.res_vcores
    unreserve(s, ni, now)
    mark_stale(s, i)
    charge(s, i, -mb, -vcores)


@kernel
def drop_reservations(s: State, i: int, now: int) -> None:
    """End all reservations of an application, in the order of Hadoop's hash tables."""
    x = s.a[i]
    while x.held_head >= 0:
        h = s.h[x.held_head]
        best, lowest, ni = -1, 0, h.head
        while ni >= 0:
            bucket = (s.n[ni].hash ^ (s.n[ni].hash >> 16)) & (h.cap - 1)
            if best < 0 or bucket < lowest:
                best, lowest = ni, bucket
            ni = s.n[ni].res_next
        drop_reservation(s, best, now)


# --- containers


@kernel
def freed(s: State, c: int) -> None:
    """Reduce the usage of the application, its queues and its user after a container has completed."""
    x = s.c[c]
    if s.g[0].by_reservations == 1:
        s.m[c].q = s.a[x.app].q
    s.a[x.app].used_mb -= x.mb
    s.a[x.app].used_vcores -= x.vcores
    mark_stale(s, x.app)
    charge(s, x.app, -x.mb, -x.vcores)
