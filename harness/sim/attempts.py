"""The asks, the containers and the end of an application's attempt, for all schedulers.

Follows SchedulerApplicationAttempt, AppSchedulingInfo and AbstractYarnScheduler of Hadoop 3.4.2, which Hadoop's
schedulers share as well. Each scheduler's package defines how a change affects queues and users (`harness.sim.ops`).
"""

from __future__ import annotations

from harness.sim import ops
from harness.sim.containers import (
    by_hash,
    end_container,
    find_ask,
    free_if_gone,
    log_container,
    new_container,
    node_release,
    report_done,
    settle_given,
)
from harness.sim.kernel import kernel
from harness.sim.state import COMPLETED, SchedulerState

# --- asks


@kernel
def _set_ask(s: SchedulerState, i: int, r: int, count: int, mb: int, vcores: int) -> None:
    """Set the number of outstanding containers of an ask, and the resources (MB, vcores) of each."""
    settle_given(s, r)
    g, e = s.g[0], s.r[r]
    if count > 0:
        g.least_ask_mb, g.least_ask_vcores = min(g.least_ask_mb, mb), min(g.least_ask_vcores, vcores)
    if e.mb != mb or e.vcores != vcores:
        ops.ask_resized(s, s.a[i].q)
    ops.change_pending(s, i, count * mb - e.count * e.mb, count * vcores - e.count * e.vcores)
    s.a[i].n_asks += count - e.count
    g.n_asked += count - e.count
    e.count, e.mb, e.vcores = count, mb, vcores


@kernel
def put(s: SchedulerState, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int) -> int:
    """Set an application's ask under a key; return its slot, or -1 if it is dropped because its count is 0."""
    r = find_ask(s.r, s.a[i], priority, alloc_id)
    if r < 0 and count > 0:
        r = ops.put_ask(s, i, priority, alloc_id)
    if r >= 0:
        _set_ask(s, i, r, max(count, 0), mb, vcores)
        if count <= 0:
            ops.drop_ask(s, i, r)
            r = -1
    ops.asked(s, i, count, mb, vcores)
    return r


@kernel
def give_back(s: SchedulerState, c: int) -> None:
    """Restore the request of a container that its AM never fetched, with the resources that were requested."""
    x = s.c[c]
    r = find_ask(s.r, s.a[x.app], x.priority, x.alloc_id)
    count = s.r[r].count + 1 if r >= 0 else x.ask_count
    r = put(s, x.app, x.priority, x.alloc_id, count, x.ask_mb, x.ask_vcores)
    if r >= 0:
        s.r[r].given, s.r[r].given_serial = c, x.serial


# --- containers


@kernel
def _usage_changed(s: SchedulerState, leaf: int, now: int, delta_mb: int, delta_vcores: int) -> None:
    """Before a grant, update the longest wait of the leaf and restart its waiting time; ignore other changes."""
    if delta_mb > 0 or delta_vcores > 0:
        x = s.x[leaf]
        begun = max(x.backlog_ms, x.last_start_ms)
        if begun >= 0 and now - begun > x.max_wait_ms:
            x.max_wait_ms = now - begun
            x.max_wait_at_ms = now
        x.last_start_ms = now


@kernel
def change_usage(s: SchedulerState, i: int, now: int, mb: int, vcores: int) -> None:
    """Add resources to the usage of an application, its queues and the cluster; negative amounts subtract them."""
    g, x = s.g[0], s.a[i]
    if g.hooks != 0:
        _usage_changed(s, x.q, now, mb, vcores)
    x.usage_mb += mb
    x.usage_vcores += vcores
    p = x.q
    while p >= 0:
        q = s.q[p]
        q.usage_mb += mb
        q.usage_vcores += vcores
        p = q.parent
    g.alloc_mb += mb
    g.alloc_vcores += vcores
    ops.used(s, i)


@kernel
def grant(s: SchedulerState, i: int, r: int, ni: int, mb: int, vcores: int, cid: int, reserved: bool, now: int) -> int:
    """Serve application i's ask r with a container on a node where it fits; return the slot of the container."""
    g, ask = s.g[0], s.r[r]
    c = new_container(s, i, ni, mb, vcores, now)
    e = s.c[c]
    e.cid, e.from_reservation = cid, 1 if reserved else 0
    e.priority, e.alloc_id, e.ask_mb, e.ask_vcores, e.ask_count = ask.priority, ask.alloc_id, ask.mb, ask.vcores, 1
    g.last_mb, g.last_vcores, g.last_c = ask.mb, ask.vcores, c
    ask.count -= 1
    s.a[i].n_asks -= 1
    g.n_asked -= 1
    if ask.count == 0:
        ops.drop_ask(s, i, r)
    ops.change_pending(s, i, -e.ask_mb, -e.ask_vcores)
    change_usage(s, i, now, mb, vcores)
    return c


@kernel
def complete(s: SchedulerState, c: int, why: int, now: int, killed: bool) -> None:
    """Complete a container: log it, reduce usage and restore an unfetched request, if it is live; then free its node.

    ``killed``: the container did not end by itself, so that its node still has to report its end. Follows
    AbstractYarnScheduler.completedContainer.
    """
    x = s.c[c]
    if x.live == 1:
        end_container(s, c)
        log_container(s, now, COMPLETED, c, why)
        change_usage(s, x.app, now, -x.mb, -x.vcores)
        if killed and x.acquired == 1 and x.launched == 1 and x.done == 0:
            report_done(s, c, s.g[0].cleanup_heartbeats)
        if x.acquired == 0:
            give_back(s, c)
        ops.freed(s, c)
    node_release(s, c, False)


# --- attempts


@kernel
def begin_attempt(s: SchedulerState, i: int, now: int) -> None:
    """Start an attempt without asks and containers."""
    g, x = s.g[0], s.a[i]
    g.serial += 1
    x.attempt += 1
    x.serial = g.serial
    x.alive, x.am_running, x.start_ms, x.cid, x.started, x.n_reserved = 1, 0, now, 0, 0, 0
    x.usage_mb, x.usage_vcores, x.pending_mb, x.pending_vcores = 0, 0, 0, 0
    x.n_asks, x.n_req, x.req_head, x.req_cap = 0, 0, -1, 16
    x.live_head, x.live_tail, x.n_live, x.live_cap = -1, -1, 0, 16


@kernel
def end_attempt(s: SchedulerState, i: int, why: int, now: int) -> None:
    """End an attempt: kill its live containers, give up its reservations, drop its asks."""
    x = s.a[i]
    n = by_hash(s, x.live_head, True, x.live_cap, s.work, 0)
    for k in range(n):
        c = s.work[k]
        complete(s, c, why, now, True)
        free_if_gone(s, c)
    ops.drop_reservations(s, i, now)
    while x.req_head >= 0:
        r = x.req_head
        _set_ask(s, i, r, 0, s.r[r].mb, s.r[r].vcores)
        ops.drop_ask(s, i, r)
