"""Preemption: select containers to kill for starved applications, and the time of each kill.

Follows FSPreemptionThread, FSAppAttempt.getStarvedResourceRequests of Hadoop 3.4.2. Hadoop's preemption thread runs in
parallel to the update; here `preempt_pass` runs right after it, with the applications in the order in which Hadoop's
PriorityBlockingQueue gives them out.
"""

from __future__ import annotations

import numpy as np

from harness.base.errors import InternalError
from harness.sim.attempts import complete, give_back
from harness.sim.containers import by_hash, free_if_gone, log_container
from harness.sim.fair.containers import take_preempted
from harness.sim.fair.order import compare
from harness.sim.fair.starvation import poll
from harness.sim.fair.state import NEED_ROOM, PREEMPTED, State
from harness.sim.java import single
from harness.sim.kernel import kernel
from harness.sim.state import VICTIM

_LONG_MAX = 2**63 - 1
_MASK = 0xFFFFFFFF
#: Fields that `_look_at_room` writes for each node.
_ROOM = 5


@kernel
def _app_of(s: State, c: int) -> int:
    """Return the application of a container, if the scheduler still has its attempt, or -1."""
    x = s.c[c]
    a = s.a[x.app]
    return x.app if a.alive == 1 and a.id == x.app_id else -1


@kernel
def _can_take(s: State, c: int, i: int, considered_mb: int, considered_vcores: int) -> bool:
    """Return whether application i may lose container c (FSAppAttempt.canContainerBePreempted).

    It must still hold its fair share without this container, its containers that are marked or wait for their kill, and
    the containers that this search has selected before (``considered_mb``, ``considered_vcores``).
    """
    x, a = s.c[c], s.a[i]
    q = s.q[a.q]
    if q.preemptable == 0 or (x.am == 1 and q.am_preemptable == 0) or x.live == 0 or x.marked == 1:
        return False
    mb = a.usage_mb - a.preempt_mb - x.mb - considered_mb
    vcores = a.usage_vcores - a.preempt_vcores - x.vcores - considered_vcores
    return compare(s, q.policy, mb, vcores, a.fair_mb, a.fair_vcores, True) >= 0


@kernel
def _free_on(s: State, ni: int) -> tuple[int, int]:
    """Return a node's free resources (MB, vcores), without those preempted for an application and those reserved."""
    node = s.n[ni]
    mb, vcores = node.avail_mb - node.pre_mb, node.avail_vcores - node.pre_vcores
    if node.res_app >= 0:
        mb -= node.res_mb
        vcores -= node.res_vcores
    return max(mb, 0), max(vcores, 0)


@kernel
def _victims_on(s: State, ni: int, mb: int, vcores: int, most_ams: int, at: int) -> tuple[int, int]:
    """Write to ``work[at:]`` containers of a node that must end so that (mb, vcores) fit there.

    Returns their number and the number of AMs among them; (-1, 0) if no such containers exist, or if ``most_ams`` or
    more of them would be AMs. Follows FSPreemptionThread.identifyContainersToPreemptOnNode.
    """
    node, w = s.n[ni], s.work
    total = by_hash(s, node.c_head, False, node.map_cap, w, at)
    # AMs come last, in the table's order; all others come first, in the reverse of that order.
    order = at + total
    n = 0
    for k in range(at + total - 1, at - 1, -1):
        if s.c[w[k]].am == 0:
            w[order + n] = w[k]
            n += 1
    for k in range(at, at + total):
        if s.c[w[k]].am == 1:
            w[order + n] = w[k]
            n += 1
    have_mb, have_vcores = _free_on(s, ni)
    taken, ams = 0, 0
    for k in range(order, order + n):
        c = w[k]
        x = s.c[c]
        if x.node_marked == 1:
            continue
        i = _app_of(s, c)
        if i < 0:
            continue
        considered_mb, considered_vcores = 0, 0
        for j in range(at, at + taken):
            if s.c[w[j]].app_id == x.app_id:
                considered_mb += s.c[w[j]].mb
                considered_vcores += s.c[w[j]].vcores
        if _can_take(s, c, i, considered_mb, considered_vcores):
            if x.am == 1:
                ams += 1
                if ams >= most_ams:
                    return -1, 0
            w[at + taken] = c
            taken += 1
            have_mb += x.mb
            have_vcores += x.vcores
        if mb <= have_mb and vcores <= have_vcores:
            return taken, ams
    return -1, 0


@kernel
def _by_app(s: State, at: int, n: int) -> None:
    """Sort the victims in work[at:] in the order of HashMap<ApplicationId, List>.values()."""
    w = s.work
    out = at + n
    apps, cap = 0, 16
    for k in range(at, at + n):
        seen = False
        for j in range(at, k):
            if s.c[w[j]].app_id == s.c[w[k]].app_id:
                seen = True
                break
        apps += 0 if seen else 1
    while 4 * apps > 3 * cap:
        cap *= 2
    m = 0
    for bucket in range(cap):
        for k in range(at, at + n):
            x = s.c[w[k]]
            h = s.a[x.app].hash
            if (h ^ (h >> 16)) & (cap - 1) != bucket:
                continue
            first = True
            for j in range(at, k):
                if s.c[w[j]].app_id == x.app_id:
                    first = False
                    break
            if first:
                for j in range(k, at + n):
                    if s.c[w[j]].app_id == x.app_id:
                        w[out + m] = w[j]
                        m += 1
    for k in range(n):
        w[at + k] = w[out + k]


@kernel
def _bucket(s: State, ni: int, cap: int) -> int:
    h = s.n[ni].hash
    return (h ^ (h >> 16)) & (cap - 1) if s.g[0].mutations & (1 << 16) == 0 else 0


@kernel
def _node_order(s: State, at: int) -> int:
    """Write live nodes to work[at:] in the order of ClusterNodeTracker's HashMap<NodeId, N>; return their number."""
    w = s.work
    cap = 16
    while 4 * s.g[0].nodes_peak > 3 * cap:
        cap *= 2
    # Counting sort by buckets; a bucket keeps the order of insertion.
    slots = at + len(s.n)
    for k in range(slots, slots + cap):
        w[k] = 0
    for ni in range(len(s.n)):
        if s.n[ni].alive == 1:
            w[slots + _bucket(s, ni, cap)] += 1
    n = 0
    for k in range(slots, slots + cap):
        here = w[k]
        w[k] = n
        n += here
    for k in range(at, at + n):
        w[k] = -1
    for ni in range(len(s.n)):
        if s.n[ni].alive == 0:
            continue
        bucket = _bucket(s, ni, cap)
        k = at + w[slots + bucket]
        w[slots + bucket] += 1
        # Places of other buckets may still be free.
        while k > at and w[k - 1] >= 0 and _bucket(s, w[k - 1], cap) == bucket and s.n[w[k - 1]].seq > s.n[ni].seq:
            w[k] = w[k - 1]
            k -= 1
        w[k] = ni
    return n


@kernel
def _preempted_here(s: State, ni: int, i: int, mb: int, vcores: int) -> None:
    """Record resources that kills will free on a node for application i.

    Follows FSSchedulerNode.addContainersForPreemption.
    """
    node = s.n[ni]
    node.pre_mb += mb
    node.pre_vcores += vcores
    last, p = -1, node.pre_head
    while p >= 0:
        if s.p[p].app == i and s.p[p].serial == s.a[i].serial:
            s.p[p].mb += mb
            s.p[p].vcores += vcores
            return
        last, p = p, s.p[p].next
    p = take_preempted(s.p, s.g[0])
    e = s.p[p]
    e.app, e.serial, e.mb, e.vcores, e.next = i, s.a[i].serial, mb, vcores, -1
    if last < 0:
        node.pre_head = p
    else:
        s.p[last].next = p


@kernel
def _gives(s: State, i: int, given: int) -> bool:
    """Return whether application i may lose a container of the smallest size that ever existed.

    The result is cached in work[given:] (-1: unknown). Each container marked in a pass reduces what the application may
    lose, so a result of False stays correct to the end of the pass.
    """
    g, a, w = s.g[0], s.a[i], s.work
    if w[given + i] < 0:
        mb, vcores = a.usage_mb - a.preempt_mb - g.least_mb, a.usage_vcores - a.preempt_vcores - g.least_vcores
        w[given + i] = 1 if compare(s, s.q[a.q].policy, mb, vcores, a.fair_mb, a.fair_vcores, True) >= 0 else 0
    return w[given + i] == 1


@kernel
def _look_at_room(s: State, ni: int, room: int, given: int) -> None:
    """Compute an upper bound of a node's free resources if all preemptable containers were taken.

    Each container is judged alone. Written to work[room:], for each node: MiB, vcores, number of pending kills at that
    time, and MiB and vcores without taking an AM. The bound only falls during a pass, so an old value is still valid.
    """
    w = s.work
    mb, vcores = _free_on(s, ni)
    ams_mb, ams_vcores = 0, 0
    c = s.n[ni].c_head
    while c >= 0:
        x = s.c[c]
        if x.live == 1 and x.marked == 0 and x.node_marked == 0 and _gives(s, x.app, given):
            i = _app_of(s, c)
            if i >= 0 and _can_take(s, c, i, 0, 0):
                mb, vcores = mb + x.mb, vcores + x.vcores
                if x.am == 1:
                    ams_mb, ams_vcores = ams_mb + x.mb, ams_vcores + x.vcores
        c = x.n_next
    at = room + _ROOM * ni
    w[at], w[at + 1], w[at + 2], w[at + 3], w[at + 4] = mb, vcores, s.g[0].kill_n, mb - ams_mb, vcores - ams_vcores


@kernel
def _one_container(s: State, i: int, mb: int, vcores: int, nodes_at: int, n_nodes: int, at: int, now: int) -> int:
    """Mark and log victims for one container of application i; return their number. They are killed later."""
    g, w = s.g[0], s.work
    best, best_n, most_ams = -1, 0, 2**31 - 1
    room = nodes_at + n_nodes
    given = room + _ROOM * len(s.n)
    hopeless = given + len(s.a)
    if mb >= w[hopeless] and vcores >= w[hopeless + 1]:
        return 0
    # Nodes before w[least + 2] had too little room for the smallest ask so far, so they have too little for this one.
    least = hopeless + 2
    larger = mb >= w[least] and vcores >= w[least + 1]
    searched, first = False, w[least + 2] if larger else 0
    for k in range(first, n_nodes):
        ni = w[nodes_at + k]
        here = room + _ROOM * ni
        if w[here] < 0:
            _look_at_room(s, ni, room, given)
        if mb > w[here] or vcores > w[here + 1]:
            continue
        if not searched and (not larger or (mb == w[least] and vcores == w[least + 1])):
            w[least], w[least + 1], w[least + 2] = mb, vcores, k
        searched = True
        if most_ams == 1 and (mb > w[here + 3] or vcores > w[here + 4]):
            continue  # look for a node without AMs among its victims
        n, ams = _victims_on(s, ni, mb, vcores, most_ams, at)
        if n >= 0:
            # Keep this node's victims at a place that the next node's search does not overwrite.
            best, best_n, most_ams = ni, n, ams
            for j in range(n):
                w[len(w) - 1 - j] = w[at + j]
            if ams == 0:
                break
        elif w[here + 2] != g.kill_n:
            _look_at_room(s, ni, room, given)
    if not searched:
        w[hopeless], w[hopeless + 1] = mb, vcores
    if best < 0 or best_n == 0:
        return 0
    for j in range(best_n):
        w[at + j] = w[len(w) - 1 - j]
    _by_app(s, at, best_n)
    freed_mb, freed_vcores = 0, 0
    for k in range(at, at + best_n):
        x = s.c[w[k]]
        if x.node_marked == 0:
            x.node_marked = 1
            freed_mb += x.mb
            freed_vcores += x.vcores
        x.marked, x.kill_due = 1, 1
        s.a[x.app].preempt_mb += x.mb
        s.a[x.app].preempt_vcores += x.vcores
        e = s.log[log_container(s, now, VICTIM, w[k], 0)]
        e.for_app, e.kill_ms = i, now + g.warn_ms
        if g.kill_n >= len(s.k):
            raise InternalError("the simulator's engine has no free place left in its ring of kills")
        kill = s.k[(g.kill_head + g.kill_n) % len(s.k)]
        kill.t, kill.c, kill.serial = now + g.warn_ms, w[k], x.serial
        g.kill_n += 1
    if freed_mb != 0 or freed_vcores != 0:
        _preempted_here(s, best, i, freed_mb, freed_vcores)
    w[room + _ROOM * best] = -1
    return best_n


@kernel
def _for_app(s: State, i: int, now: int, nodes_at: int, n_nodes: int) -> None:
    """Choose victims for one starved application, as FSPreemptionThread does.

    ``work[nodes_at:]`` contains the nodes. Behind them are, in this order: upper bounds of the nodes' free resources
    (`_look_at_room`), whether applications may lose containers (`_gives`), the smallest ask that fitted nowhere, the
    smallest ask that fitted together with the first node on which it may, and scratch space.
    """
    x, w = s.a[i], s.work
    base = nodes_at + n_nodes + _ROOM * len(s.n) + len(s.a) + 5
    left_mb, left_vcores = x.fstarve_mb + x.mstarve_mb, x.fstarve_vcores + x.mstarve_vcores
    # Asks in the order of Hadoop's ConcurrentHashMap<SchedulerRequestKey, ...>.
    n = 0
    r = x.req_head
    while r >= 0:
        e = s.r[r]
        folded = (e.alloc_id ^ (e.alloc_id >> 32)) & _MASK
        h = (961 * ((517861 * 9511 + e.priority) & _MASK) + 31 * folded) & _MASK
        bucket = (h ^ (h >> 16)) & 0x7FFFFFFF & (x.req_cap - 1)
        if s.g[0].mutations & (1 << 16):
            bucket = e.priority
        k = base + n
        while k > base and (
            w[k - 1] >> 32 > bucket or (w[k - 1] >> 32 == bucket and s.r[w[k - 1] & _MASK].seq > e.seq)
        ):
            w[k] = w[k - 1]
            k -= 1
        w[k] = (bucket << 32) | r
        n += 1
        r = e.next
    # FSAppAttempt.getStarvedResourceRequests: the requests are fixed before any victim is chosen.
    count = base + n
    for k in range(n):
        e = s.r[w[base + k] & _MASK]
        w[count + k] = 0
        if left_mb == 0 and left_vcores == 0:
            continue
        if e.mb == 0:
            fit = 0 if left_mb == 0 else 2**31 - 1
        else:
            fit = int(np.floor(single(left_mb) / single(e.mb)))
        if fit == 0:
            continue
        fit = min(fit, e.count)
        w[count + k] = fit
        left_mb, left_vcores = max(left_mb - fit * e.mb, 0), max(left_vcores - fit * e.vcores, 0)
    for k in range(n):
        e = s.r[w[base + k] & _MASK]
        for _ in range(w[count + k]):
            if _one_container(s, i, e.mb, e.vcores, nodes_at, n_nodes, count + n, now) == 0:
                break  # the next try would have the same result
    x.next_check_ms = now + s.g[0].starve_delay_ms


@kernel
def preempt_pass(s: State, now: int) -> int:
    """Choose victims for all starved applications that `update` has queued, and log them (VICTIM).

    `run_kills` kills them when they are due. Returns 0, or NEED_ROOM if an array is too small; then nothing is changed.
    """
    g = s.g[0]
    if g.heap_top == 0:
        return 0
    # No container is chosen twice, so there are never more victims than containers.
    if g.n_log + g.n_running + 2 > len(s.log) or g.kill_n + g.n_running > len(s.k):
        return NEED_ROOM
    if g.n_free_p < g.n_running + 1:
        return NEED_ROOM
    base = len(s.work) // 2
    nodes_at = base + len(s.a)
    n_nodes = _node_order(s, nodes_at)
    unknown = nodes_at + n_nodes
    hopeless = unknown + _ROOM * len(s.n) + len(s.a)
    for k in range(unknown, hopeless):
        s.work[k] = -1
    s.work[hopeless], s.work[hopeless + 1] = _LONG_MAX, _LONG_MAX
    s.work[hopeless + 2], s.work[hopeless + 3], s.work[hopeless + 4] = _LONG_MAX, _LONG_MAX, 0
    while True:
        i = poll(s, base)
        if i < 0:
            break
        _for_app(s, i, now, nodes_at, n_nodes)
    return 0


@kernel
def next_kill_ms(s: State) -> int:
    """Return the time at which the next chosen container is killed, ms; the largest long if none is chosen."""
    g = s.g[0]
    return s.k[g.kill_head].t if g.kill_n > 0 else _LONG_MAX


@kernel
def run_kills(s: State, now: int) -> int:
    """Kill all chosen containers that are due at `now`; return how many were still live, or NEED_ROOM."""
    g = s.g[0]
    killed = 0
    while g.kill_n > 0 and s.k[g.kill_head].t <= now:
        if g.n_log + 2 > len(s.log) or g.n_free_r < 1:
            return NEED_ROOM
        e = s.k[g.kill_head]
        g.kill_head = (g.kill_head + 1) % len(s.k)
        g.kill_n -= 1
        c = e.c
        x = s.c[c]
        x.kill_due = 0
        if x.live == 1:
            complete(s, c, PREEMPTED, now, True)
            killed += 1
        elif x.acquired == 0 and _app_of(s, c) >= 0:
            # The container has ended and its request was restored then; Hadoop restores it again, for the current
            # attempt.
            give_back(s, c)
        free_if_gone(s, c)
    return killed
