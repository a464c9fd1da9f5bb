"""What nodes and AMs tell the scheduler: nodes that join and leave, heartbeats, containers that exit, releases."""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.capacity.assign import attempt
from harness.sim.capacity.capacities import refresh, set_floors
from harness.sim.capacity.containers import complete, drop_reservation
from harness.sim.capacity.resources import has_room, positive
from harness.sim.capacity.state import ASSIGNED, FINISHED, IGNORED, LOST, NEED_ROOM, RELEASED, S
from harness.sim.capacity.users import show_headroom
from harness.sim.containers import by_hash, forget_reports, free_if_gone, join, node_maximum, node_release, report_done
from harness.sim.kernel import kernel


@kernel
def refresh_room(s: S, more: int) -> bool:
    """Room in the log for every application that a change of the cluster may activate, and `more`."""
    waiting = 0
    for at in range(s.g[0].n_leaves):
        waiting += s.q[s.leaves[at]].n_waiting
    return s.g[0].n_log + waiting + more <= len(s.log)


@kernel
def add_node(s: S, ni: int, now: int) -> int:
    """A node registers (or is back, empty): capacities and limits follow at once."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 1:
        return IGNORED
    if not refresh_room(s, 2):
        return NEED_ROOM
    join(s, ni)
    g.label_mb, g.label_vcores = g.cluster_mb, g.cluster_vcores
    node_maximum(s)
    refresh(s, now)
    return 0


@kernel
def remove_node(s: S, ni: int, now: int) -> int:
    """A node is lost: its containers complete at once (LOST), its reservation is given up."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if not refresh_room(s, node.n_c + 4) or g.n_free_r < node.n_c or len(s.work) <= node.n_c:
        return NEED_ROOM
    g.label_mb -= node.total_mb
    g.label_vcores -= node.total_vcores
    set_floors(s)
    n = by_hash(s, node.c_head, False, node.map_cap, s.work, 0)
    for k in range(n):
        c = s.work[k]
        complete(s, c, LOST, now, True)
        node_release(s, c, True)
    forget_reports(s, ni, n)
    if node.res_app >= 0:
        drop_reservation(s, ni, now)
    node.alive = 0
    g.n_nodes -= 1
    g.cluster_mb, g.cluster_vcores = g.label_mb, g.label_vcores
    node_maximum(s)
    refresh(s, now)
    return 0


@kernel
def can_skip(s: S, ni: int) -> bool:
    """Whether a heartbeat of this node would change nothing, so that it may be left out altogether."""
    g, node = s.g[0], s.n[ni]
    if node.n_launch > 0 or node.n_done > 0 or node.res_app >= 0:
        return False
    if not has_room(s, node.avail_mb, node.avail_vcores, g.min_mb, g.min_vcores):
        return True
    return not positive(s, s.q[0].pending_mb, s.q[0].pending_vcores)


@kernel
def _heartbeat_room(s: S, ni: int) -> bool:
    """Room for all that one heartbeat can do."""
    g, node = s.g[0], s.n[ni]
    most = 1
    if g.multi == 1 and g.off_max > 1 and g.con_max != 1:
        free = node.avail_mb
        c = node.done_head
        while c >= 0:
            free += s.c[c].mb
            c = s.c[c].d_next
        most = max(free, 0) // max(g.min_mb, 1) + 2
    return (
        g.n_free_c >= most
        and g.n_free_h >= 1
        and g.n_log + 2 * most + node.n_done + 8 <= len(s.log)
        and g.n_free_r >= node.n_done
    )


@kernel
def heartbeat(s: S, ni: int, now: int) -> int:
    """A node's heartbeat: it reports launched and completed containers, then its space is given out.

    0, NEED_ROOM, or IGNORED for a node that is not there.
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
    before = g.n_log
    attempt(s, ni, now)
    if g.manual_acquire == 1 or g.limited == 1:
        for k in range(before, g.n_log):
            if s.log[k].kind == ASSIGNED and g.manual_acquire == 0:
                show_headroom(s, s.log[k].app)
            elif s.log[k].kind == ASSIGNED and s.log[k].am == 1:
                pull(s, s.log[k].app)
    return 0


@kernel
def release(s: S, c: int, now: int) -> int:
    """The AM gives a container back: usage falls at once, the node's space when the node says so."""
    x = s.c[c]
    if x.alive == 0 or x.live == 0 or x.acquired == 0:
        return IGNORED
    if s.g[0].n_log + 2 > len(s.log) or s.g[0].n_free_r < 1:
        return NEED_ROOM
    complete(s, c, RELEASED, now, True)
    show_headroom(s, x.app)
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
    show_headroom(s, i)
