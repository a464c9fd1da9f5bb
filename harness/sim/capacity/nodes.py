"""The effect of cluster changes on the queues, and the test whether a node's heartbeat can have an effect.

harness.sim.nodes handles the nodes' reports.
"""

from __future__ import annotations

from harness.sim.capacity.capacities import refresh, set_floors
from harness.sim.capacity.resources import fits, has_room, positive
from harness.sim.capacity.state import State
from harness.sim.kernel import kernel


@kernel
def refresh_room(s: State, more: int) -> bool:
    """Return whether the log has room for the activations after a cluster change, and for `more` other records."""
    waiting = 0
    for at in range(s.g[0].n_leaves):
        waiting += s.q[s.leaves[at]].n_waiting
    return s.g[0].n_log + waiting + more <= len(s.log)


@kernel
def joined(s: State, ni: int) -> None:
    """Add the capacity of a node that has joined to the default partition."""
    g = s.g[0]
    g.label_mb, g.label_vcores = g.cluster_mb, g.cluster_vcores
    g.nodes_peak = max(g.nodes_peak, g.n_nodes)


@kernel
def leaves(s: State, ni: int) -> None:
    """Subtract the capacity of a node that is about to be lost from the default partition's."""
    g, node = s.g[0], s.n[ni]
    g.label_mb -= node.total_mb
    g.label_vcores -= node.total_vcores
    set_floors(s)


@kernel
def changed(s: State, now: int) -> None:
    """Recompute capacities and limits at once, after a node has joined, left or changed."""
    g = s.g[0]
    g.label_mb, g.label_vcores = g.cluster_mb, g.cluster_vcores
    refresh(s, now)


@kernel
def most_rounds(s: State, ni: int) -> int:
    """Return an upper bound of the containers that one heartbeat may assign (`assign.attempt`), regardless of asks."""
    g = s.g[0]
    most = max(g.off_max, 1) if g.multi == 1 else 1
    return min(most, max(g.con_max, 1)) if g.con_max != -1 else most


@kernel
def counts_vcores(s: State) -> bool:
    """Return whether vcores count, which is so under the DominantResourceCalculator."""
    return s.g[0].drf == 1


@kernel
def overcommitted(s: State, mb: int, vcores: int) -> bool:
    """Return whether a node with these free resources (negative if overcommitted) is overcommitted."""
    return not fits(s, 0, 0, mb, vcores)


@kernel
def may_reserve(s: State) -> bool:
    """Return whether there is room for one more reservation."""
    return s.g[0].n_free_h >= 1


@kernel
def tells_headroom(s: State) -> bool:
    """Return whether an AM's request for its headroom has an effect (`users.show_headroom`)."""
    return s.g[0].limited == 1


@kernel
def can_skip(s: State, ni: int) -> bool:
    """Return whether a heartbeat of this node would change nothing, so that it can be skipped."""
    g, node = s.g[0], s.n[ni]
    if node.n_launch > 0 or node.n_done > 0 or node.res_app >= 0 or node.draining == 1 or node.over == 1:
        return False
    if not has_room(s, node.avail_mb, node.avail_vcores, g.min_mb, g.min_vcores):
        return True
    return not positive(s, s.q[0].pending_mb, s.q[0].pending_vcores)
