"""What nodes and AMs tell the scheduler, either one: nodes that join and leave, heartbeats, releases, what AMs fetch.

What a scheduler does besides, when its cluster changes or gives out a node's space, stands in its own room.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from typing import Any

from harness.sim.capacity import assign as cs_assign
from harness.sim.capacity import containers as cs_containers
from harness.sim.capacity import nodes as cs_nodes
from harness.sim.capacity.state import S as CapacityState
from harness.sim.capacity.users import show_headroom as cs_show_headroom
from harness.sim.containers import (
    IGNORED,
    by_hash,
    forget_reports,
    free_if_gone,
    join,
    node_maximum,
    node_release,
    report_done,
)
from harness.sim.fair import assign as fs_assign
from harness.sim.fair import containers as fs_containers
from harness.sim.fair import nodes as fs_nodes
from harness.sim.fair.state import ASSIGNED, FINISHED, LOST, NEED_ROOM, RELEASED
from harness.sim.kernel import either, kernel


def of_scheduler(fair: Any, capacity: Any) -> Any:
    """One of two kernels, told apart by the state's type when the caller is compiled."""
    return either(lambda state: capacity if state == CapacityState.compiled_type() else fair)


_attempt = of_scheduler(fs_assign.attempt, cs_assign.attempt)
_complete = of_scheduler(fs_containers.complete, cs_containers.complete)
_drop_reservation = of_scheduler(fs_containers.unreserve, cs_containers.drop_reservation)
_change_room = of_scheduler(fs_nodes.change_room, cs_nodes.refresh_room)
_joined = of_scheduler(fs_nodes.joined, cs_nodes.joined)
_leaves = of_scheduler(fs_nodes.leaves, cs_nodes.leaves)
_changed = of_scheduler(fs_nodes.changed, cs_nodes.changed)
_gives_many = of_scheduler(fs_nodes.gives_many, cs_nodes.gives_many)
_may_reserve = of_scheduler(fs_nodes.may_reserve, cs_nodes.may_reserve)
_tells_headroom = of_scheduler(fs_nodes.tells_headroom, cs_nodes.tells_headroom)
_show_headroom = of_scheduler(fs_nodes.show_headroom, cs_show_headroom)


@kernel
def add_node(s: Any, ni: int, now: int) -> int:
    """A node registers (or is back, empty)."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 1:
        return IGNORED
    if not _change_room(s, 2):
        return NEED_ROOM
    join(s, ni)
    if g.node_max_known == 0:
        node_maximum(s)
    g.node_max_mb, g.node_max_vcores = max(g.node_max_mb, node.total_mb), max(g.node_max_vcores, node.total_vcores)
    _joined(s, ni)
    _changed(s, now)
    return 0


@kernel
def remove_node(s: Any, ni: int, now: int) -> int:
    """A node is lost: its containers complete at once (LOST), its reservation is given up."""
    g, node = s.g[0], s.n[ni]
    if node.alive == 0:
        return IGNORED
    if not _change_room(s, node.n_c + 4) or g.n_free_r < node.n_c or len(s.work) <= node.n_c:
        return NEED_ROOM
    _leaves(s, ni)
    n = by_hash(s, node.c_head, False, node.map_cap, s.work, 0)
    for k in range(n):
        c = s.work[k]
        _complete(s, c, LOST, now, True)
        node_release(s, c, True)
    forget_reports(s, ni, n)
    if node.res_app >= 0:
        _drop_reservation(s, ni, now)
    node.alive = 0
    g.n_nodes -= 1
    g.cluster_mb -= node.total_mb
    g.cluster_vcores -= node.total_vcores
    node_maximum(s)
    _changed(s, now)
    return 0


@kernel
def _heartbeat_room(s: Any, ni: int) -> bool:
    """Room for all that one heartbeat can do."""
    g, node = s.g[0], s.n[ni]
    most = 1
    if _gives_many(s, ni):
        free = node.avail_mb
        c = node.done_head
        while c >= 0:
            free += s.c[c].mb
            c = s.c[c].d_next
        most = max(free, 0) // max(g.min_mb, 1) + 2
    room = g.n_log + 2 * most + node.n_done + 8 <= len(s.log)
    return g.n_free_c >= most and room and g.n_free_r >= node.n_done and _may_reserve(s)


@kernel
def heartbeat(s: Any, ni: int, now: int) -> int:
    """A node's heartbeat: it reports launched and completed containers, then its space is given out.

    How often it was, NEED_ROOM, or IGNORED for a node that is not there.
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
                    _complete(s, c, FINISHED, now, False)
                node_release(s, c, True)
                free_if_gone(s, c)
            c = after
    before = g.n_log
    count = _attempt(s, ni, now)
    if g.manual_acquire == 1 or _tells_headroom(s):
        for k in range(before, g.n_log):
            if s.log[k].kind == ASSIGNED and g.manual_acquire == 0:
                _show_headroom(s, s.log[k].app)
            elif s.log[k].kind == ASSIGNED and s.log[k].am == 1:
                pull(s, s.log[k].app)
    return count


@kernel
def release(s: Any, c: int, now: int) -> int:
    """The AM gives a container back: usage falls at once, the node's space as `node_release` has it."""
    x = s.c[c]
    if x.alive == 0 or x.live == 0 or x.acquired == 0:
        return IGNORED
    if s.g[0].n_log + 2 > len(s.log) or s.g[0].n_free_r < 1:
        return NEED_ROOM
    _complete(s, c, RELEASED, now, True)
    _show_headroom(s, x.app)
    free_if_gone(s, c)
    return 0


@kernel
def pull(s: Any, i: int) -> None:
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
    _show_headroom(s, i)
