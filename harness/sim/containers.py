"""Containers, asks, reservations and the log: kernels that all simulated schedulers share.

The state `s` may be that of any scheduler, because the records of containers, nodes, asks and log entries have the same
fields in all of them.
"""

from __future__ import annotations

from harness.base.errors import InternalError
from harness.sim.arrays import Column
from harness.sim.kernel import kernel
from harness.sim.lists import chained, keyed, linked, pool
from harness.sim.state import IGNORED, MUT_HASHORDER, RESERVED, UNRESERVED, WORLD, SchedulerState

#: Lists: an application's live containers, the containers on a node, and an application's asks.
_into_live, _out_of_live = linked("live_head", "live_tail", "a_prev", "a_next")
_onto_node, _off_node = linked("c_head", "c_tail", "n_prev", "n_next")
find_ask, _into_asks = keyed("req_head")
_out_of_asks = chained("req_head", "next")
#: Pools of free slots of applications, containers and asks.
_take_app, free_app = pool("free_app", "free_next", "n_free_app", kept="alive serial id")
_take_container, _free_container = pool("free_c", "free_next", "n_free_c", kept="alive serial")
_take_ask, _free_ask = pool("free_r", "next", "n_free_r")


@kernel
def log(s: SchedulerState, now: int, kind: int, app: int, node: int) -> int:
    """Append a log record and return its index. The caller has reserved its space.

    All other fields of the record are set to 0 or -1 (none). If the simulated world reads the log (``G.hooks`` is
    WORLD), only the fields that the world reads are set.
    """
    k = s.g[0].n_log
    if k >= len(s.log):
        raise InternalError("the simulator's engine has no free record left in its log")
    s.g[0].n_log = k + 1
    e = s.log[k]
    e.kind, e.app, e.node = kind, app, node
    if s.g[0].hooks == WORLD:
        return k
    e.t = now
    e.why, e.c, e.serial, e.n, e.am, e.from_reservation, e.for_app, e.kill_ms = 0, -1, -1, 0, 0, 0, -1, 0
    e.app_id = s.a[app].id if app >= 0 else -1
    e.attempt = s.a[app].attempt if app >= 0 else -1
    return k


@kernel
def log_container(s: SchedulerState, now: int, kind: int, c: int, why: int) -> int:
    """Append a log record about a container and return its index."""
    x = s.c[c]
    k = log(s, now, kind, x.app, x.node)
    e = s.log[k]
    e.why, e.c, e.mb, e.vcores, e.priority, e.am = why, c, x.mb, x.vcores, x.priority, x.am
    if s.g[0].hooks != WORLD:
        e.serial, e.n, e.cid = x.serial, x.n, x.cid
        e.from_reservation, e.start_ms = x.from_reservation, x.start_ms
    return k


@kernel
def is_launched(s: SchedulerState, c: int) -> bool:
    """Return whether the node has reported the container as launched."""
    x = s.c[c]
    if x.launched == 1:
        return True
    return (
        x.finishing == 0
        and x.live == 1
        and x.acquired == 1
        and s.g[0].launch == 1
        and s.n[x.node].alive == 1
        and s.n[x.node].hb > x.acq_hb
    )


@kernel
def report_done(s: SchedulerState, c: int, heartbeats: int) -> None:
    """Schedule the node's report that the container has completed, ``heartbeats`` heartbeats from now."""
    x = s.c[c]
    node = s.n[x.node]
    x.done, x.hb_left, x.d_next = 1, heartbeats, -1
    if node.done_tail >= 0:
        s.c[node.done_tail].d_next = c
    else:
        node.done_head = c
    node.done_tail = c
    node.n_done += 1


@kernel
def free_if_gone(s: SchedulerState, c: int) -> None:
    """Free a container's slot once nothing refers to it."""
    x = s.c[c]
    if x.alive == 1 and x.live == 0 and x.on_node == 0 and x.done == 0 and x.kill_due == 0:
        x.alive = 0
        _free_container(s.c, s.g[0], c)


@kernel
def node_release(s: SchedulerState, c: int, by_node: bool) -> None:
    """Free a container's resources on its node; those of a launched container only if ``by_node``.

    ``by_node``: the node itself has reported the container's end. Follows SchedulerNode.releaseContainer.
    """
    x = s.c[c]
    if x.on_node == 0:
        return
    x.node_marked = 0
    if not by_node and x.launched == 1:
        return
    node = s.n[x.node]
    x.on_node = 0
    node.avail_mb += x.mb
    node.avail_vcores += x.vcores
    node.n_c -= 1
    _off_node(s.c, node, c)


@kernel
def settle_given(s: SchedulerState, r: int) -> None:
    """Store the count of an ask that is about to change in the container whose restored request it is."""
    e = s.r[r]
    if e.given >= 0:
        if s.c[e.given].serial == e.given_serial:
            s.c[e.given].ask_count = e.count
        e.given = -1


@kernel
def log_reservation(s: SchedulerState, now: int, kind: int, ni: int) -> None:
    """Append a log record about a node's reservation."""
    node = s.n[ni]
    k = log(s, now, kind, node.res_app, ni)
    e = s.log[k]
    e.serial, e.cid, e.mb, e.vcores, e.priority = (
        node.res_serial,
        node.res_cid,
        node.res_mb,
        node.res_vcores,
        node.res_priority,
    )


@kernel
def hold(s: SchedulerState, i: int, r: int, ni: int, now: int) -> None:
    """Reserve a node for application i's ask r. The reserved container gets the next container number."""
    g, x, node, ask = s.g[0], s.a[i], s.n[ni], s.r[r]
    x.cid += 1
    x.n_reserved += 1
    g.serial += 1
    node.res_app, node.res_serial, node.res_cid = i, g.serial, x.cid
    node.res_mb, node.res_vcores, node.res_priority, node.res_alloc_id = ask.mb, ask.vcores, ask.priority, ask.alloc_id
    log_reservation(s, now, RESERVED, ni)


@kernel
def let_go(s: SchedulerState, ni: int, now: int) -> int:
    """Remove a node's reservation; return the application for which the node was reserved."""
    node = s.n[ni]
    log_reservation(s, now, UNRESERVED, ni)
    i = node.res_app
    s.a[i].n_reserved -= 1
    node.res_app = -1
    return i


@kernel
def new_app(s: SchedulerState, q: int, user: int, app_id: int, managed: int) -> int:
    """Create an application in leaf `q` and return its slot. The caller has reserved the space."""
    i = _take_app(s.a, s.g[0])
    x = s.a[i]
    x.q, x.user, x.id, x.managed = q, user, app_id, managed
    x.attempt, x.n, x.tag = 0, 0, 0
    return i


@kernel
def node_maximum(s: SchedulerState) -> None:
    """Set the maximum over all nodes of each resource (ClusterNodeTracker)."""
    g = s.g[0]
    g.node_max_mb, g.node_max_vcores, g.node_max_known = -1, -1, 0
    for k in range(len(s.n)):
        if s.n[k].alive == 1:
            g.node_max_known = 1
            g.node_max_mb = max(g.node_max_mb, s.n[k].total_mb)
            g.node_max_vcores = max(g.node_max_vcores, s.n[k].total_vcores)


@kernel
def container_exit(s: SchedulerState, c: int) -> int:
    """Let the process of a container exit. Its node reports this at its next heartbeat, before containers are assigned.

    Returns 0, or IGNORED if the container is not live, has exited already, or is unknown to its AM.
    """
    x = s.c[c]
    if x.alive == 0 or x.live == 0 or x.finishing == 1 or x.acquired == 0:
        return IGNORED
    if is_launched(s, c):
        x.launched = 1
    x.finishing = 1
    report_done(s, c, 1)
    return 0


@kernel
def link_ask(s: SchedulerState, i: int, priority: int, alloc_id: int) -> int:
    """Insert a new ask (count 0) into an application's list; return its slot. The caller has reserved the space."""
    g, x = s.g[0], s.a[i]
    r = _take_ask(s.r, g)
    e = s.r[r]
    e.app, e.priority, e.alloc_id, e.count, e.mb, e.vcores = i, priority, alloc_id, 0, 0, 0
    e.seq, e.given = g.req_seq, -1
    g.req_seq += 1
    _into_asks(s.r, x, r)
    x.n_req += 1
    # Capacity of the hash table in which Hadoop keeps asks: it decides the order in which preemption visits them.
    while 4 * x.n_req >= 3 * x.req_cap:
        x.req_cap *= 2
    return r


@kernel
def unlink_ask(s: SchedulerState, i: int, r: int) -> None:
    """Remove an ask from its application's list and free its slot."""
    settle_given(s, r)
    x = s.a[i]
    _out_of_asks(s.r, x, r)
    x.n_req -= 1
    _free_ask(s.r, s.g[0], r)


@kernel
def new_container(s: SchedulerState, i: int, ni: int, mb: int, vcores: int, now: int) -> int:
    """Create a container of application i on a node; return its slot. The caller has reserved the space."""
    g, x, node = s.g[0], s.a[i], s.n[ni]
    c = _take_container(s.c, g)
    e = s.c[c]
    g.serial += 1
    g.n_running += 1
    x.n += 1
    x.started = 1
    e.alive, e.app, e.n, e.node, e.mb, e.vcores = 1, i, x.n, ni, mb, vcores
    e.start_ms, e.live, e.on_node, e.finishing, e.done, e.launched = now, 1, 1, 0, 0, 0
    e.marked, e.node_marked, e.kill_due, e.serial, e.hb_left = 0, 0, 0, g.serial, 0
    e.app_id, e.attempt = x.id, x.attempt
    e.am = 1 if x.managed == 1 and x.am_running == 0 else 0
    e.acquired = 1 if g.manual_acquire == 0 or e.am == 1 else 0
    e.acq_hb = node.hb
    if e.acquired == 1 and g.launch == 1:
        node.n_launch += 1
    _into_live(s.c, x, c, x.live_tail)
    x.n_live += 1
    while 4 * x.n_live >= 3 * x.live_cap:
        x.live_cap *= 2
    _onto_node(s.c, node, c, node.c_tail)
    node.n_c += 1
    while 4 * node.n_c > 3 * node.map_cap:
        node.map_cap *= 2
    node.avail_mb -= mb
    node.avail_vcores -= vcores
    return c


@kernel
def end_container(s: SchedulerState, c: int) -> None:
    """Remove a container from its application's live containers. It stays on its node until `node_release`."""
    x = s.c[c]
    a = s.a[x.app]
    if is_launched(s, c):
        x.launched = 1
    x.live = 0
    s.g[0].n_running -= 1
    a.n_live -= 1
    _out_of_live(s.c, a, c)


@kernel
def forget_reports(s: SchedulerState, ni: int, n: int) -> None:
    """Drop the pending reports of a lost node, and free the slots of its `n` containers, which are in ``work[:n]``."""
    node = s.n[ni]
    while node.done_head >= 0:
        c = node.done_head
        node.done_head = s.c[c].d_next
        s.c[c].done = 0
        free_if_gone(s, c)
    for k in range(n):
        free_if_gone(s, s.work[k])
    node.done_tail, node.n_done = -1, 0


@kernel
def join(s: SchedulerState, ni: int) -> None:
    """Register a node without containers, and add its capacity to the cluster's."""
    g, node = s.g[0], s.n[ni]
    node.alive, node.avail_mb, node.avail_vcores = 1, node.total_mb, node.total_vcores
    node.hb, node.n_launch, node.c_head, node.c_tail, node.n_c, node.map_cap = 0, 0, -1, -1, 0, 16
    node.done_head, node.done_tail, node.n_done, node.res_app = -1, -1, 0, -1
    node.draining, node.over = 0, 0
    node.seq = g.node_seq
    g.node_seq += 1
    g.n_nodes += 1
    g.cluster_mb += node.total_mb
    g.cluster_vcores += node.total_vcores


@kernel
def by_hash(s: SchedulerState, first: int, of_app: bool, cap: int, work: Column[int], at: int) -> int:
    """Write the containers of a list to ``work[at:]`` in the order of a Java hash table; return their number.

    Parameters
    ----------
    first
        First container of the list; -1: the list is empty.
    of_app
        True for an application's list of live containers, False for a node's list.
    cap
        Number of buckets of the hash table. Containers of one bucket stay in the order of the list.

    Notes
    -----
    The hash code is ContainerId.hashCode.
    """
    n, c = 0, first
    while c >= 0:
        x = s.c[c]
        h = (31 * ((x.cid ^ (x.cid >> 32)) & 0xFFFFFFFF) + attempt_hash(s, c)) & 0xFFFFFFFF
        bucket = ((h ^ (h >> 16)) & (cap - 1)) if s.g[0].mutations & (MUT_HASHORDER) == 0 else 0
        k = at + n
        while k > at and work[k - 1] >> 32 > bucket:
            work[k] = work[k - 1]
            k -= 1
        work[k] = (bucket << 32) | c
        n += 1
        c = x.a_next if of_app else x.n_next
    for k in range(at, at + n):
        work[k] &= 0xFFFFFFFF
    return n


@kernel
def app_hash(s: SchedulerState, app_id: int) -> int:
    """Return ApplicationId.hashCode as an unsigned 32-bit number."""
    ts = s.g[0].cluster_ts
    folded = (ts ^ (ts >> 32)) & 0xFFFFFFFF
    first = (371237 * 6521 + folded) & 0xFFFFFFFF
    return ((371237 * first) + app_id) & 0xFFFFFFFF


@kernel
def attempt_hash(s: SchedulerState, c: int) -> int:
    """Return ApplicationAttemptId.hashCode of a container's attempt as an unsigned 32-bit number."""
    x = s.c[c]
    return ((347671 * ((347671 * 5501 + app_hash(s, x.app_id)) & 0xFFFFFFFF)) + x.attempt) & 0xFFFFFFFF
