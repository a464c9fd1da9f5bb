"""The schedulers' reactions to messages of nodes and AMs, as far as they are common to all schedulers.

Covers nodes that join, leave and change their capacity; heartbeats; asks, releases and fetched containers; and the end
of an attempt or an application. The package of each scheduler adds (`harness.sim.ops`) what a change of the cluster
does to its queues, and the assignment of a node's free resources.
"""

from __future__ import annotations

from harness.sim import ops
from harness.sim.attempts import complete, end_attempt, put
from harness.sim.containers import by_hash, forget_reports, free_if_gone, join, node_maximum, node_release, report_done
from harness.sim.enforcer import update_runnability_on_app_removal
from harness.sim.kernel import kernel
from harness.sim.state import (
    APP_END,
    ASSIGNED,
    FINISHED,
    IGNORED,
    INVALID_ASK,
    LOST,
    NEED_ROOM,
    PREEMPTED,
    RELEASED,
    UNHEARD,
    WORLD,
    SchedulerState,
)


@kernel
def add_node(s: SchedulerState, ni: int, now: int) -> int:
    """Register a node without containers. Returns 0, NEED_ROOM, or IGNORED if the node is registered already."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 1:
        return IGNORED
    if not ops.change_room(s, 2):
        return NEED_ROOM
    join(s, ni)
    if g.node_max_known == 0:
        node_maximum(s)
    g.node_max_mb, g.node_max_vcores = max(g.node_max_mb, node.total_mb), max(g.node_max_vcores, node.total_vcores)
    ops.node_joined(s, ni)
    ops.cluster_changed(s, now)
    return 0


@kernel
def remove_node(s: SchedulerState, ni: int, now: int) -> int:
    """Remove a lost node: complete its containers (LOST) and drop its reservation.

    Returns 0, NEED_ROOM, or IGNORED if the node is not registered.
    """
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if not ops.change_room(s, node.n_c + 4) or g.n_free_r < node.n_c or len(s.work) <= node.n_c:
        return NEED_ROOM
    ops.node_leaves(s, ni)
    n = by_hash(s, node.c_head, False, node.map_cap, s.work, 0)
    for k in range(n):
        c = s.work[k]
        complete(s, c, LOST, now, True)
        node_release(s, c, True)
    forget_reports(s, ni, n)
    if node.res_app >= 0:
        ops.drop_reservation(s, ni, now)
    node.alive = 0
    g.n_nodes -= 1
    g.cluster_mb -= node.total_mb
    g.cluster_vcores -= node.total_vcores
    node_maximum(s)
    ops.cluster_changed(s, now)
    return 0


@kernel
def _update_resource(s: SchedulerState, ni: int, mb: int, vcores: int, now: int) -> None:
    """Change a node's capacity, and with it its position in Hadoop's hash table of nodes.

    Follows AbstractYarnScheduler.updateNodeResource.
    """
    g, node = s.g[0], s.n[ni]
    more_mb, more_vcores = mb - node.total_mb, vcores - node.total_vcores
    if more_mb != 0 or more_vcores != 0:
        node.total_mb, node.total_vcores = mb, vcores
        node.avail_mb += more_mb
        node.avail_vcores += more_vcores
        g.cluster_mb += more_mb
        g.cluster_vcores += more_vcores
        node.seq = g.node_seq
        g.node_seq += 1
        node_maximum(s)
    ops.cluster_changed(s, now)


@kernel
def resize_node(s: SchedulerState, ni: int, mb: int, vcores: int, now: int) -> int:
    """Change a node's capacity (MB, vcores) and end its decommissioning. Returns 0, NEED_ROOM, or IGNORED.

    If the node was being decommissioned, containers that exceed its new capacity are killed now and at each later
    heartbeat, because RMNodeImpl.RecommissionNodeTransition sets an overcommit timeout of 0. On other nodes nothing is
    killed.
    """
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if not ops.change_room(s, 2 + node.n_c) or g.n_free_r < node.n_c or len(s.work) <= node.n_c:
        return NEED_ROOM
    if mb != node.total_mb or vcores != node.total_vcores:
        node.over = node.draining
    recommissioned = node.draining == 1
    node.draining = 0
    _update_resource(s, ni, mb, vcores, now)
    if recommissioned and node.over == 1 and ops.overcommitted(s, node.avail_mb, node.avail_vcores):
        _kill_overcommitted(s, ni, g.serial, g.n_log, now)
    return 0


@kernel
def drain_node(s: SchedulerState, ni: int) -> int:
    """Begin graceful decommissioning: from the next heartbeat on, the node's capacity is the sum of its containers."""
    node = s.n[ni]
    if node.alive == 0 or node.draining == 1:
        return IGNORED
    node.draining = 1
    return 0


@kernel
def _kill_overcommitted(s: SchedulerState, ni: int, mark: int, before: int, now: int) -> None:
    """Kill containers that exceed a node's capacity: the newest first, and running AMs last.

    Containers with a serial number above ``mark`` were assigned by this heartbeat (log records from ``before`` on). No
    AM has fetched them, so their requests are restored in the scheduler and no AM learns of them. Follows
    AbstractYarnScheduler.signalContainersIfOvercommitted.
    """
    g, node = s.g[0], s.n[ni]
    n = by_hash(s, node.c_head, False, node.map_cap, s.work, 0)
    for at in range(1, n):
        c = s.work[at]
        x = s.c[c]
        master = x.am == 1 and x.serial <= mark
        k = at
        while k > 0:
            y = s.c[s.work[k - 1]]
            other = y.am == 1 and y.serial <= mark
            if other < master or (other == master and y.start_ms >= x.start_ms):
                break
            s.work[k] = s.work[k - 1]
            k -= 1
        s.work[k] = c
    free_mb, free_vcores, victims = node.avail_mb, node.avail_vcores, 0
    while victims < n and ops.overcommitted(s, free_mb, free_vcores):
        x = s.c[s.work[victims]]
        free_mb += x.mb
        free_vcores += x.vcores
        victims += 1
    for k in range(victims):
        c = s.work[k]
        x = s.c[c]
        fresh = x.serial > mark
        if fresh and x.acquired == 1:
            x.acquired = 0
            if g.launch == 1:
                node.n_launch -= 1
        if x.live == 1:
            complete(s, c, PREEMPTED, now, True)
        if fresh and g.hooks == WORLD:
            for at in range(before, g.n_log):
                if s.log[at].c == c:
                    s.log[at].kind = UNHEARD
        free_if_gone(s, c)


@kernel
def _heartbeat_room(s: SchedulerState, ni: int) -> bool:
    """Return whether all pools and the log have enough free slots for one heartbeat.

    The number of containers that a heartbeat assigns is bounded by the number of rounds, by the outstanding asks, and
    by the node's free resources divided by the smallest ask. The configured minimum allocation is no such bound: it may
    be 0, and the maximum allocation of a queue or a node, to which asks are clamped, may be smaller.
    """
    g, node = s.g[0], s.n[ni]
    most = ops.most_rounds(s, ni)
    if most > 1:
        free_mb, free_vcores = node.avail_mb, node.avail_vcores
        c = node.done_head
        while c >= 0:
            free_mb += s.c[c].mb
            free_vcores += s.c[c].vcores
            c = s.c[c].d_next
        most = min(most, g.n_asked + node.n_done)
        if g.least_ask_mb > 0:
            most = min(most, max(free_mb, 0) // g.least_ask_mb)
        if g.least_ask_vcores > 0 and ops.counts_vcores(s):
            most = min(most, max(free_vcores, 0) // g.least_ask_vcores)
    room = g.n_log + 2 * most + node.n_done + 8 <= len(s.log)
    if node.draining == 1 or node.over == 1:
        kills = 2 * most + 2 * node.n_done + node.n_c + 8
        room = room and ops.change_room(s, kills) and len(s.work) > node.n_c + most and g.n_free_r >= node.n_c + most
    return g.n_free_c >= most and room and g.n_free_r >= node.n_done and ops.may_reserve(s)


@kernel
def heartbeat(s: SchedulerState, ni: int, now: int) -> int:
    """Process a node's heartbeat: handle launched and completed containers, then assign its free resources.

    Returns the result of the scheduler's `attempt_scheduling` (number of containers assigned, or for the Capacity
    Scheduler of rounds), NEED_ROOM, or IGNORED for a node that is not registered.
    """
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if not _heartbeat_room(s, ni):
        return NEED_ROOM
    node.hb += 1
    node.n_launch = 0
    if node.n_done > 0:
        c = node.done_head
        node.done_head, node.done_tail, node.n_done = -1, -1, 0
        while c >= 0:
            x = s.c[c]
            after = x.d_next
            x.hb_left -= 1
            if x.hb_left > 0:
                report_done(s, c, x.hb_left)
            else:
                x.done = 0
                if x.live == 1:
                    complete(s, c, FINISHED, now, False)
                node_release(s, c, True)
                free_if_gone(s, c)
            c = after
    before, mark = g.n_log, g.serial
    # AbstractYarnScheduler.nodeUpdate sends kills as events to the scheduler, which handles them after this heartbeat.
    over = node.over == 1 and node.draining == 0 and ops.overcommitted(s, node.avail_mb, node.avail_vcores)
    held_mb, held_vcores = node.total_mb - node.avail_mb, node.total_vcores - node.avail_vcores
    count = ops.attempt_scheduling(s, ni, now)
    if node.draining == 1 and (held_mb != node.total_mb or held_vcores != node.total_vcores):
        # The containers that this heartbeat has just assigned do not count as running yet.
        _update_resource(s, ni, held_mb, held_vcores, now)
        node.over = 1
        if ops.overcommitted(s, node.avail_mb, node.avail_vcores):
            _kill_overcommitted(s, ni, mark, before, now)
    elif over:
        _kill_overcommitted(s, ni, mark, before, now)
    if g.manual_acquire == 1 or ops.tells_headroom(s):
        for k in range(before, g.n_log):
            if s.log[k].kind == ASSIGNED and g.manual_acquire == 0:
                ops.show_headroom(s, s.log[k].app)
            elif s.log[k].kind == ASSIGNED and s.log[k].am == 1:
                pull(s, s.log[k].app)
    return count


@kernel
def ask(s: SchedulerState, i: int, priority: int, alloc_id: int, count: int, mb: int, vcores: int) -> int:
    """Set the number of outstanding containers of an application under the key (priority, alloc_id).

    Parameters
    ----------
    alloc_id
        Allocation ID; -1 if the AM gives none.
    count
        Number of containers; 0 cancels the ask.
    mb, vcores
        Resources of each container before normalisation, MB and vcores.

    Returns
    -------
    int
        0, NEED_ROOM, IGNORED, or INVALID_ASK if the queue's maximum is 0 for a requested resource.
    """
    x = s.a[i]
    if x.alive == 0:
        return IGNORED
    if s.g[0].n_free_r < 1:
        return NEED_ROOM
    if ops.has_none_of(s, x.q, mb, vcores):
        return INVALID_ASK
    mb, vcores = ops.normalize(s, x.q, mb, vcores)
    put(s, i, priority, alloc_id, count, mb, vcores)
    ops.show_headroom(s, i)
    return 0


@kernel
def release(s: SchedulerState, c: int, now: int) -> int:
    """Release a container at its AM's request. Returns 0, NEED_ROOM, or IGNORED if the AM does not hold it.

    Usage falls at once; `node_release` determines when the node's resources become free.
    """
    x = s.c[c]
    if x.alive == 0 or x.live == 0 or x.acquired == 0:
        return IGNORED
    if s.g[0].n_log + 2 > len(s.log) or s.g[0].n_free_r < 1:
        return NEED_ROOM
    complete(s, c, RELEASED, now, True)
    ops.show_headroom(s, x.app)
    free_if_gone(s, c)
    return 0


@kernel
def pull(s: SchedulerState, i: int) -> None:
    """Let an AM fetch its granted containers. This call is necessary only if ``G.manual_acquire`` is 1."""
    c = s.a[i].live_head
    while c >= 0:
        x = s.c[c]
        if x.acquired == 0:
            x.acquired = 1
            x.acq_hb = s.n[x.node].hb
            if s.g[0].launch == 1:
                s.n[x.node].n_launch += 1
        c = x.a_next
    ops.show_headroom(s, i)


@kernel
def _end_room(s: SchedulerState, i: int) -> bool:
    """Return whether all arrays have enough free slots for the end of an attempt and the start of a new one."""
    g, x = s.g[0], s.a[i]
    room = g.n_log + x.n_live + x.n_reserved + ops.end_records(s, i) + 8 <= len(s.log)
    return room and g.n_free_r >= x.n_live + 1 and g.n_free_app >= 1 and len(s.work) > x.n_live + 1


@kernel
def _end_attempt(s: SchedulerState, i: int, now: int) -> None:
    """End an attempt with its containers and asks, and start waiting applications that may now run."""
    end_attempt(s, i, APP_END, now)
    ops.remove_attempt(s, i, now)
    x = s.a[i]
    if x.runnable == 1:
        update_runnability_on_app_removal(s, x.q, x.user, now)


@kernel
def end_app(s: SchedulerState, i: int, now: int) -> int:
    """End an application and kill its live containers (APP_END). Returns 0, NEED_ROOM or IGNORED."""
    if s.a[i].alive == 0:
        return IGNORED
    if not _end_room(s, i):
        return NEED_ROOM
    _end_attempt(s, i, now)
    ops.app_ended(s, i)
    return 0


@kernel
def restart_app(s: SchedulerState, i: int, am_mb: int, am_vcores: int, now: int) -> int:
    """Restart a failed application: end its attempt as `end_app` does, then start a new attempt in the same slot.

    The new attempt has no asks besides the one for its AM. The counter `n` of containers continues. Returns 0,
    NEED_ROOM or IGNORED.
    """
    if s.a[i].alive == 0:
        return IGNORED
    if not _end_room(s, i):
        return NEED_ROOM
    _end_attempt(s, i, now)
    ops.new_attempt(s, i, am_mb, am_vcores, now)
    return 0
