"""What a change of the cluster does to the queues, and whether a node's heartbeat can do anything.

What nodes tell is harness.sim.nodes' business.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.capacity.capacities import refresh, set_floors
from harness.sim.capacity.resources import fits, has_room, positive
from harness.sim.capacity.state import S
from harness.sim.kernel import kernel


@kernel
def refresh_room(s: S, more: int) -> bool:
    """Room in the log for every application that a change of the cluster may activate, and `more`."""
    waiting = 0
    for at in range(s.g[0].n_leaves):
        waiting += s.q[s.leaves[at]].n_waiting
    return s.g[0].n_log + waiting + more <= len(s.log)


@kernel
def joined(s: S, ni: int) -> None:
    """A node has come, in its partition, too."""
    g = s.g[0]
    g.label_mb, g.label_vcores = g.cluster_mb, g.cluster_vcores
    g.nodes_peak = max(g.nodes_peak, g.n_nodes)


@kernel
def leaves(s: S, ni: int) -> None:
    """Take a node that is about to be lost out of its partition's resources."""
    g, node = s.g[0], s.n[ni]
    g.label_mb -= node.total_mb
    g.label_vcores -= node.total_vcores
    set_floors(s)


@kernel
def changed(s: S, now: int) -> None:
    """A node has come, gone or changed: capacities and limits follow at once."""
    g = s.g[0]
    g.label_mb, g.label_vcores = g.cluster_mb, g.cluster_vcores
    refresh(s, now)


@kernel
def most_rounds(s: S, ni: int) -> int:
    """How many containers one heartbeat may assign, whatever is asked for and free (`assign.attempt`)."""
    g = s.g[0]
    most = max(g.off_max, 1) if g.multi == 1 else 1
    return min(most, max(g.con_max, 1)) if g.con_max != -1 else most


@kernel
def counts_vcores(s: S) -> bool:
    """Whether a container must fit into a node's vcores: not under the DefaultResourceCalculator."""
    return s.g[0].drf == 1


@kernel
def overcommitted(s: S, mb: int, vcores: int) -> bool:
    """Whether a node with this much free runs more than it has: where a reservation of a resized ask overbooks it."""
    return not fits(s, 0, 0, mb, vcores)


@kernel
def may_reserve(s: S) -> bool:
    """Return whether there is room for one more reservation."""
    return s.g[0].n_free_h >= 1


@kernel
def tells_headroom(s: S) -> bool:
    """Whether it matters when AMs are told their headroom (`users.show_headroom`)."""
    return s.g[0].limited == 1


@kernel
def can_skip(s: S, ni: int) -> bool:
    """Whether a heartbeat of this node would change nothing, so that it may be left out altogether."""
    g, node = s.g[0], s.n[ni]
    if node.n_launch > 0 or node.n_done > 0 or node.res_app >= 0 or node.draining == 1 or node.over == 1:
        return False
    if not has_room(s, node.avail_mb, node.avail_vcores, g.min_mb, g.min_vcores):
        return True
    return not positive(s, s.q[0].pending_mb, s.q[0].pending_vcores)
