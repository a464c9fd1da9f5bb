"""The FIFO scheduler's reactions to applications that arrive, ask and end, and to free space on a node.

Follows FifoScheduler, FifoAppAttempt and DefaultResourceCalculator of Hadoop 3.4.2.
"""

from __future__ import annotations

from harness.sim.attempts import begin_attempt, grant, put
from harness.sim.containers import free_app, link_ask, log_container, new_app, unlink_ask
from harness.sim.fifo.state import DEFAULT, MUT_IDS, MUT_ONE, MUT_PRIORITIES, MUT_VCORES, State
from harness.sim.kernel import kernel
from harness.sim.lists import linked
from harness.sim.state import ASSIGNED, NEED_ROOM

_INT_MAX = 2**31 - 1
#: List of the queue's applications with outstanding asks.
insert_asking, _remove_asking = linked("ask_head", "ask_tail", "ask_prev", "ask_next")

# --- asks


@kernel
def normalize(s: State, leaf: int, mb: int, vcores: int) -> tuple[int, int]:
    """Return the size of an ask as DefaultResourceCalculator.normalize sets it, with one vcore.

    Memory is rounded up to a multiple of the minimum, and is at most the maximum.
    """
    g = s.g[0]
    top = g.conf_max_mb
    if g.max_by_nodes == 1 and g.node_max_known == 1:
        top = min(top, g.node_max_mb)
    taken = min((max(mb, g.min_mb) + g.min_mb - 1) // g.min_mb * g.min_mb, top)
    if g.mutations & MUT_VCORES:
        return taken, vcores
    return taken, 1 if taken > 0 else 0


@kernel
def has_none_of(s: State, leaf: int, mb: int, vcores: int) -> bool:
    """Return False: the queue has no limits."""
    return False


@kernel
def put_ask(s: State, i: int, priority: int, alloc_id: int) -> int:
    """Insert a new ask (count 0) into an application's list, in order; the caller has reserved the space."""
    r = link_ask(s, i, priority, alloc_id)
    if s.a[i].n_req == 1:
        q = s.q[DEFAULT]
        behind = q.ask_tail
        while behind >= 0 and s.a[behind].id > s.a[i].id and s.g[0].mutations & MUT_IDS == 0:
            behind = s.a[behind].ask_prev
        insert_asking(s.a, q, i, behind)
    return r


@kernel
def drop_ask(s: State, i: int, r: int) -> None:
    """Remove an ask from an application's list."""
    unlink_ask(s, i, r)
    if s.a[i].n_req == 0:
        _remove_asking(s.a, s.q[DEFAULT], i)


@kernel
def change_pending(s: State, i: int, mb: int, vcores: int) -> None:
    """Change the outstanding resources of an application and the queue."""
    x, q = s.a[i], s.q[DEFAULT]
    x.pending_mb += mb
    x.pending_vcores += vcores
    q.pending_mb += mb
    q.pending_vcores += vcores


@kernel
def asked(s: State, i: int, count: int, mb: int, vcores: int) -> None:
    """Update the queue after an application has changed the number of containers that it asks for."""


# --- nodes


@kernel
def _serve_ask(s: State, i: int, r: int, ni: int, now: int) -> int:
    """Assign as many containers of an ask as fit in the node's memory; return their number.

    Follows FifoScheduler.assignContainer.
    """
    x, node, mb, vcores = s.a[i], s.n[ni], s.r[r].mb, s.r[r].vcores
    n = min(s.r[r].count, node.avail_mb // mb)
    if s.g[0].mutations & MUT_ONE:
        n = min(n, 1)
    for _ in range(n):
        x.cid += 1
        c = grant(s, i, r, ni, mb, vcores, x.cid, False, now)
        if x.managed == 1 and x.am_running == 0:
            x.am_running, x.am_mb, x.am_vcores = 1, mb, vcores
        log_container(s, now, ASSIGNED, c, 0)
    return n


@kernel
def attempt(s: State, ni: int, now: int) -> int:
    """Assign a node's free memory to applications in the order of their IDs; return the number of containers assigned.

    An application's asks are served in order until one does not fit. At the end, the headroom of all applications is
    updated. Follows FifoScheduler.assignContainers.
    """
    g, node = s.g[0], s.n[ni]
    if node.avail_mb < g.min_mb:
        return 0
    total, i = 0, s.q[DEFAULT].ask_head
    while i >= 0:
        following, r = s.a[i].ask_next, s.a[i].req_head
        while r >= 0:
            after = s.r[r].next
            n = _serve_ask(s, i, r, ni, now)
            total += n
            if n == 0 and g.mutations & MUT_PRIORITIES == 0:
                break
            r = after
        if node.avail_mb < g.min_mb:
            break
        i = following
    g.head_mb, g.head_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores
    g.told += 1
    g.n_untold = 0
    return total


@kernel
def can_skip(s: State, ni: int) -> bool:
    """Return whether a heartbeat of this node would change nothing, so that it can be skipped."""
    g, node = s.g[0], s.n[ni]
    if node.n_launch > 0 or node.n_done > 0 or node.draining == 1 or node.over == 1:
        return False
    if node.avail_mb < g.min_mb:
        return True
    if s.q[DEFAULT].ask_head >= 0 and node.avail_mb >= g.least_ask_mb:
        return False
    same = g.head_mb == g.cluster_mb - g.alloc_mb and g.head_vcores == g.cluster_vcores - g.alloc_vcores
    return same and g.n_untold == 0


@kernel
def most_rounds(s: State, ni: int) -> int:
    """Return how many containers one heartbeat may assign at most, whatever is asked for and free."""
    return _INT_MAX


# --- applications


@kernel
def new_attempt(s: State, i: int, am_mb: int, am_vcores: int, now: int) -> None:
    """Add an attempt (FifoScheduler.addApplicationAttempt); ask for the AM's container, unless ``am_mb`` < 0."""
    g, x = s.g[0], s.a[i]
    begin_attempt(s, i, now)
    x.runnable, x.am_mb, x.am_vcores = 1, 0, 0
    x.untold = 1 + g.told
    g.n_untold += 1
    s.q[DEFAULT].n_run += 1
    s.u[x.user].n_run += 1
    if x.managed == 1 and am_mb >= 0:
        mb, vcores = normalize(s, x.q, am_mb, am_vcores)
        put(s, i, 0, -1, 1, mb, vcores)


@kernel
def add_app(s: State, leaf: int, user: int, managed: bool, am_mb: int, am_vcores: int, app_id: int, now: int) -> int:
    """Add an application; return its slot, or NEED_ROOM. None is rejected. See `harness.sim.ops`."""
    g = s.g[0]
    if g.n_free_app < 1 or g.n_free_r < 1:
        return NEED_ROOM
    if app_id < 1:
        app_id = g.next_app_id
    g.next_app_id = max(g.next_app_id, app_id + 1)
    i = new_app(s, DEFAULT, user, app_id, 1 if managed else 0)
    x = s.a[i]
    x.integral, x.integral_ms, x.omega, x.kg, x.phi = 0.0, now, 1.0, 0.0, 0.0
    x.ahead_a, x.ahead_b, x.more_mb, x.more_vc = 0.0, 0.0, 0.0, 0.0
    new_attempt(s, i, am_mb, am_vcores, now)
    return i


@kernel
def remove_attempt(s: State, i: int, now: int) -> None:
    """Remove an attempt whose containers were killed and asks dropped (FifoScheduler.doneApplicationAttempt)."""
    x = s.a[i]
    x.alive = 0
    s.q[DEFAULT].n_run -= 1
    s.u[x.user].n_run -= 1


@kernel
def app_ended(s: State, i: int) -> None:
    """Free the slot of an application that has ended (FifoScheduler.doneApplication)."""
    free_app(s.a, s.g[0], i)


@kernel
def headroom(s: State, i: int) -> tuple[int, int, int]:
    """Return an application's headroom (MB, vcores), and 0 because vcores do not count.

    It is the cluster's free resources at the end of the last heartbeat that had free memory for a container; (0, 0) if
    there was no such heartbeat since the attempt began. Follows SchedulerApplicationAttempt.getHeadroom.
    """
    g = s.g[0]
    if s.a[i].untold == 1 + g.told:
        return 0, 0, 0
    return max(g.head_mb, 0), max(g.head_vcores, 0), 0
