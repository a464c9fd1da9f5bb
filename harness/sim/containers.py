"""Containers on their nodes, and the log: what the simulated schedulers do alike.

The state `s` is either scheduler's: its records of containers, nodes, asks and of the log have the same fields.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from typing import Any

import numpy as np

from harness.sim.kernel import kernel

#: The order of hash tables is switched off (for the tests that must notice); the bit is the same in both schedulers.
MUT_HASHORDER = 1 << 16


@kernel
def log(s: Any, now: int, kind: int, app: int, node: int) -> int:
    """A new log record, its fields 0 but for these; the caller has made sure of room."""
    k = s.g[0].n_log
    s.g[0].n_log = k + 1
    e = s.log[k]
    e.t, e.kind, e.app, e.node = now, kind, app, node
    e.why, e.c, e.serial, e.n, e.am, e.from_reservation, e.for_app, e.kill_ms = 0, -1, -1, 0, 0, 0, -1, 0
    e.app_id = s.a[app].id if app >= 0 else -1
    e.attempt = s.a[app].attempt if app >= 0 else -1
    return k


@kernel
def log_container(s: Any, now: int, kind: int, c: int, why: int) -> int:
    """A log record about a container."""
    x = s.c[c]
    k = log(s, now, kind, x.app, x.node)
    e = s.log[k]
    e.why, e.c, e.serial, e.n, e.cid, e.mb, e.vcores, e.priority, e.am = (
        why,
        c,
        x.serial,
        x.n,
        x.cid,
        x.mb,
        x.vcores,
        x.priority,
        x.am,
    )
    e.from_reservation, e.start_ms, e.tag = x.from_reservation, x.start_ms, x.tag
    return k


@kernel
def find_ask(s: Any, i: int, priority: int, alloc_id: int) -> int:
    """The outstanding ask of an application under a key, or -1."""
    r = s.a[i].req_head
    while r >= 0:
        if s.r[r].priority == priority and s.r[r].alloc_id == alloc_id:
            return r
        r = s.r[r].next
    return -1


@kernel
def is_launched(s: Any, c: int) -> bool:
    """Whether the node has reported the container as launched."""
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
def report_done(s: Any, c: int, heartbeats: int) -> None:
    """The node will report the container completed at its `heartbeats`-th heartbeat from now."""
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
def free_if_gone(s: Any, c: int) -> None:
    """Recycle a container's slot once nobody refers to it."""
    x = s.c[c]
    if x.alive == 1 and x.live == 0 and x.on_node == 0 and x.done == 0 and x.kill_due == 0:
        x.alive = 0
        x.free_next = s.g[0].free_c
        s.g[0].free_c = c
        s.g[0].n_free_c += 1


@kernel
def node_release(s: Any, c: int, by_node: bool) -> None:
    """SchedulerNode.releaseContainer: a launched container's space is free only when the node says so."""
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
    if x.n_prev >= 0:
        s.c[x.n_prev].n_next = x.n_next
    else:
        node.c_head = x.n_next
    if x.n_next >= 0:
        s.c[x.n_next].n_prev = x.n_prev
    else:
        node.c_tail = x.n_prev


@kernel
def by_hash(s: Any, first: int, of_app: bool, cap: int, work: np.ndarray, at: int) -> int:
    """Containers of a node (or an application) in the order of a Java hash table of `cap` buckets.

    Written to work[at:]; the number of them. In a bucket they stand in order of insertion. Hash: ContainerId.hashCode.
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
def app_hash(s: Any, app_id: int) -> int:
    """ApplicationId.hashCode, as an unsigned 32-bit number."""
    ts = s.g[0].cluster_ts
    folded = (ts ^ (ts >> 32)) & 0xFFFFFFFF
    first = (371237 * 6521 + folded) & 0xFFFFFFFF
    return ((371237 * first) + app_id) & 0xFFFFFFFF


@kernel
def attempt_hash(s: Any, c: int) -> int:
    """ApplicationAttemptId.hashCode of a container's attempt, as an unsigned 32-bit number."""
    x = s.c[c]
    return ((347671 * ((347671 * 5501 + app_hash(s, x.app_id)) & 0xFFFFFFFF)) + x.attempt) & 0xFFFFFFFF
