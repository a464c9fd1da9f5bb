"""Assignment of a node's free resources: the descent of the queue tree at a heartbeat.

Follows FSParentQueue/FSLeafQueue.assignContainer, FSAppAttempt.assignContainer and related methods, and FairScheduler
.attemptScheduling of Hadoop 3.4.2, for asks without locality. Kernels that try to serve a queue or an application
return NOTHING, TAKEN (a container was assigned) or HELD (the node was reserved).
"""

from __future__ import annotations

import numpy as np

from harness.sim.attempts import grant
from harness.sim.containers import find_ask, log_container
from harness.sim.fair.containers import find_preempted, reserve, unlink_preempted, unreserve
from harness.sim.fair.keys import refresh_app_keys, refresh_keys
from harness.sim.fair.limits import can_run_am, fits_in_max, over_am_share, within_max
from harness.sim.fair.order import (
    app_before,
    compare,
    heap_insert,
    heap_remove,
    is_starved,
    place,
)
from harness.sim.fair.state import KEYED_FLAT, LTRF, MUT_TIES, STOCK, State
from harness.sim.fair.turns import exclude, is_up, next_turn, restore, seat, view_of
from harness.sim.java import to_long
from harness.sim.kernel import kernel
from harness.sim.state import ASSIGNED

NOTHING, TAKEN, HELD = 0, 1, 2


@kernel
def _fulfil_preempted(s: State, i: int, ni: int, mb: int, vcores: int) -> None:
    """Reduce the resources preempted on this node for an application by its new container.

    Follows FSSchedulerNode.allocateContainer.
    """
    p = find_preempted(s, ni, i)
    if p < 0:
        return
    node, e = s.n[ni], s.p[p]
    paid_mb, paid_vcores = min(e.mb, mb), min(e.vcores, vcores)
    e.mb -= paid_mb
    e.vcores -= paid_vcores
    node.pre_mb -= paid_mb
    node.pre_vcores -= paid_vcores
    if e.mb == 0 and e.vcores == 0:
        unlink_preempted(s, ni, p)


@kernel
def _allocate(s: State, i: int, r: int, ni: int, now: int, reserved: bool) -> None:
    """Allocate a container for application i's ask r on a node where it fits (FSAppAttempt.allocate)."""
    g, x, node = s.g[0], s.a[i], s.n[ni]
    mb, vcores, cid = s.r[r].mb, s.r[r].vcores, x.cid + 1
    if reserved:
        mb, vcores, cid = node.res_mb, node.res_vcores, node.res_cid
    else:
        x.cid = cid
    g.least_mb, g.least_vcores = min(g.least_mb, mb), min(g.least_vcores, vcores)
    c = grant(s, i, r, ni, mb, vcores, cid, reserved, now)
    if reserved:
        unreserve(s, ni, now)
    if node.pre_head >= 0 and (mb != 0 or vcores != 0):
        _fulfil_preempted(s, i, ni, mb, vcores)
    if x.managed == 1 and x.am_running == 0:
        x.am_running, x.am_mb, x.am_vcores = 1, s.c[c].ask_mb, s.c[c].ask_vcores
        s.q[x.q].am_mb += x.am_mb
        s.q[x.q].am_vcores += x.am_vcores
        seat(s, x.q)
    place(s, i)
    log_container(s, now, ASSIGNED, c, 0)


@kernel
def serve(s: State, i: int, r: int, ni: int, now: int, reserved: bool) -> int:
    """Serve application i's ask r on a node: assign a container if it fits, or else reserve the node if allowed.

    ``reserved``: the ask is served from the node's reservation.
    """
    g, ask, node = s.g[0], s.r[r], s.n[ni]
    if ask.mb <= node.avail_mb and ask.vcores <= node.avail_vcores:
        _allocate(s, i, r, ni, now, reserved)
        return TAKEN
    if reserved:
        return NOTHING  # the reservation is kept
    if (
        node.res_app < 0
        and s.a[i].n_reserved < g.reservations_allowed
        and (g.hadoop_2_2 == 1 or is_starved(s, i))
        and compare(s, s.q[s.a[i].q].policy, ask.mb, ask.vcores, g.reserve_mb, g.reserve_vcores, False) >= 0
        and find_preempted(s, ni, i) < 0
    ):
        reserve(s, i, r, ni, now)
        g.last_mb, g.last_vcores = -1, 0
        return HELD
    return NOTHING


@kernel
def _usable(s: State, i: int, r: int, ni: int) -> bool:
    """Return whether an outstanding ask fits the node's total capacity and the queues' maxima (hasContainerForNode)."""
    ask = s.r[r]
    return ask.count > 0 and _fits_whole(s, r, ni) and fits_in_max(s, s.a[i].q, ask.mb, ask.vcores)


@kernel
def _fits_whole(s: State, r: int, ni: int) -> bool:
    """Return whether an ask fits the total capacity of a node. Hadoop 2.2 compares memory only."""
    ask, node = s.r[r], s.n[ni]
    return ask.mb <= node.total_mb and (s.g[0].hadoop_2_2 == 1 or ask.vcores <= node.total_vcores)


@kernel
def serve_app(s: State, i: int, ni: int, now: int) -> int:
    """Try to serve an application on a node: only its first ask that fits the node's capacity is tried.

    Follows FSAppAttempt.assignContainer.
    """
    if over_am_share(s, i):
        return NOTHING
    r = s.a[i].req_head
    while r >= 0:
        if _usable(s, i, r, ni):
            return serve(s, i, r, ni, now, False)
        r = s.r[r].next
    return NOTHING


@kernel
def _serve_ltrf(s: State, leaf: int, ni: int, now: int) -> int:
    """Serve a leaf's applications by ascending AppRecord.key, then start time, then name.

    The heaps are not in this order, so both are scanned as lists.
    """
    refresh_app_keys(s, leaf, now)
    q = s.q[leaf]
    n = 0
    for which in range(2):
        off, size = (q.heap_off, q.heap0_n) if which == 0 else (q.heap_off + q.heap_cap, q.heap1_n)
        for k in range(size):
            s.work[n] = s.heap[off + k]
            n += 1
    while n > 0:
        best = 0
        for k in range(1, n):
            x, y = s.a[s.work[k]], s.a[s.work[best]]
            if x.key < y.key or (x.key == y.key and app_before(s.a, s.work[k], s.work[best], True)):
                best = k
        answer = serve_app(s, s.work[best], ni, now)
        if answer != NOTHING:
            return answer
        n -= 1
        s.work[best] = s.work[n]
    return NOTHING


@kernel
def _serve_leaf(s: State, leaf: int, ni: int, now: int) -> int:
    """Try a leaf's applications in the policy's order until one gets a container or reserves the node.

    Follows FSLeafQueue.assignContainer.
    """
    q, node = s.q[leaf], s.n[ni]
    if q.n_reservable == 0 and (node.avail_mb < q.ask_min_mb or node.avail_vcores < q.ask_min_vcores):
        return NOTHING  # no application's ask fits, and none may reserve
    if q.policy == LTRF:
        return _serve_ltrf(s, leaf, ni, now)
    ties = s.g[0].mutations & MUT_TIES == 0
    waiting = q.heap1_n > 0 and can_run_am(s, leaf, q.am_min_mb, q.am_min_vcores)
    tried, answer = 0, NOTHING
    while True:
        i = s.heap[q.heap_off] if q.heap0_n > 0 else -1
        if waiting and q.heap1_n > 0:
            j = s.heap[q.heap_off + q.heap_cap]
            if i < 0 or app_before(s.a, j, i, ties):
                i = j
        if i < 0:
            break
        answer = serve_app(s, i, ni, now)
        if answer != NOTHING:
            break
        s.work[tried] = i | (np.int64(s.a[i].heap) << 40)
        tried += 1
        heap_remove(s, i)
    for k in range(tried):
        heap_insert(s, s.work[k] & 0xFFFFFFFF, s.work[k] >> 40)
    if tried > 0 and answer != NOTHING:
        seat(s, leaf)  # changes occurred while these applications were out of their heaps
    return answer


@kernel
def _waits(s: State, leaf: int, ni: int) -> bool:
    """Return whether the node must wait for the chosen leaf, because some ask of the leaf fits the node's capacity.

    Follows LTYARN Algorithm 1, line 13.
    """
    if s.xg[0].waits == 0:
        return False
    i = s.q[leaf].run_head
    while i >= 0:
        if s.a[i].heap >= 0 and not over_am_share(s, i):  # in a heap: update() has seen its ask
            r = s.a[i].req_head
            while r >= 0:
                if _usable(s, i, r, ni):
                    return True
                r = s.r[r].next
        i = s.a[i].run_next
    return False


@kernel
def _is_held(s: State, p: int) -> bool:
    """Return whether an ancestor of p exceeds its maximum; the flat tournament of all leaves does not check this."""
    p = s.q[p].parent
    while p >= 0:
        if not within_max(s, p):
            return True
        p = s.q[p].parent
    return False


@kernel
def _turn(s: State, v: int, p: int, lifted: int, now: int) -> int:
    """Return the child of p that is tried next in view v, or -1.

    The starved leaf `lifted` (-1: none) and its ancestors precede their siblings of the same tier.
    """
    c = next_turn(s, v, p, now)
    if lifted < 0 or c < 0:
        return c
    k = lifted
    while k >= 0 and s.seat[k].up != p:
        k = s.q[k].parent
    return k if k >= 0 and is_up(s, v, k) and s.seat[k].tier <= s.seat[c].tier else c


@kernel
def serve_root(s: State, ni: int, now: int) -> int:
    """Descend the tree from the root to assign one container or make one reservation on a node, if possible.

    Follows FSParentQueue.assignContainer.
    """
    g, node = s.g[0], s.n[ni]
    if s.q[0].n_cand == 0 or not within_max(s, 0):
        return NOTHING
    v = view_of(s, node.avail_mb, node.avail_vcores)
    if v < 0:
        return NOTHING
    if s.g[0].order_mode != STOCK and s.xg[0].waits == 1:
        v = view_of(s, 1 << 62, 1 << 62)  # select the first queue even if its task does not fit
        if v < 0:
            return NOTHING
    keyed, flat = g.order_mode != STOCK, g.order_mode == KEYED_FLAT
    lifted = refresh_keys(s, now) if keyed else -1
    p, answer, stopped = 0, NOTHING, False
    while not stopped:
        c = _turn(s, v, p, lifted, now)
        if c < 0:
            if p == 0:
                break
            exclude(s, v, p)
            p = s.q[p].parent
        elif s.q[c].leaf == 0:
            p = c
        else:
            if not (flat and _is_held(s, c)):
                answer = _serve_leaf(s, c, ni, now)
                stopped = answer != NOTHING or (keyed and _waits(s, c, ni))
            if answer == NOTHING:
                exclude(s, v, c)
    if g.n_aside > 0:
        restore(s, v)
    return answer


@kernel
def _clean_preempted(s: State, ni: int) -> None:
    """Remove a node's records of resources preempted for applications that have ended or are no longer starved.

    Follows FSSchedulerNode.cleanupPreemptionList.
    """
    node = s.n[ni]
    p = node.pre_head
    while p >= 0:
        e = s.p[p]
        after = e.next
        x = s.a[e.app]
        gone = x.alive == 0 or x.serial != e.serial
        if not gone:
            none = x.fstarve_mb == 0 and x.fstarve_vcores == 0 and x.mstarve_mb == 0 and x.mstarve_vcores == 0
            gone = none or not is_starved(s, e.app)
        if gone:
            node.pre_mb -= e.mb
            node.pre_vcores -= e.vcores
            unlink_preempted(s, ni, p)
        p = after


@kernel
def _serve_preempted(s: State, ni: int, now: int) -> int:
    """Serve the applications for which containers were killed on a node; return the number of containers assigned.

    Follows FairScheduler.assignPreemptedContainers.
    """
    _clean_preempted(s, ni)
    n, p = 0, s.n[ni].pre_head
    while p >= 0:
        s.work[n] = s.p[p].app
        n += 1
        p = s.p[p].next
    count = 0
    for k in range(n):
        i = s.work[k]
        mb, vcores = 0, 0
        p = find_preempted(s, ni, i)
        if p >= 0:
            mb, vcores = s.p[p].mb, s.p[p].vcores
        while mb != 0 or vcores != 0:
            if serve_app(s, i, ni, now) != TAKEN:
                break
            count += 1
            mb, vcores = max(mb - s.g[0].last_mb, 0), max(vcores - s.g[0].last_vcores, 0)
    return count


@kernel
def _serve_reserved(s: State, ni: int, now: int) -> int:
    """Serve a node's reservation; return the number of containers assigned, or -1 if the reservation was invalid.

    Follows FSAppAttempt.assignReservedContainer.
    """
    node = s.n[ni]
    i = node.res_app
    r = find_ask(s.r, s.a[i], node.res_priority, node.res_alloc_id)
    if s.g[0].hadoop_2_2 == 1:
        # It checks no maximum here, and compares the present ask with the node's space.
        if r < 0 or s.r[r].count == 0 or not _fits_whole(s, r, ni):
            unreserve(s, ni, now)
            return -1
        return 1 if serve(s, i, r, ni, now, True) == TAKEN else 0
    if r < 0 or not _usable(s, i, r, ni) or over_am_share(s, i):
        unreserve(s, ni, now)
        return -1
    if node.res_mb <= node.avail_mb and node.res_vcores <= node.avail_vcores:
        return 1 if serve(s, i, r, ni, now, True) == TAKEN else 0
    return 0


@kernel
def attempt(s: State, ni: int, now: int) -> int:
    """Assign a node's free resources; return the number of containers assigned (FairScheduler.attemptScheduling)."""
    g, node = s.g[0], s.n[ni]
    total = 0
    if node.pre_head >= 0:
        total += _serve_preempted(s, ni, now)
    valid = False
    if node.res_app >= 0:
        done = _serve_reserved(s, ni, now)
        if done >= 0:
            valid = True
            total += done
    if not valid:
        count, mb, vcores, half_mb, half_vcores = 0, 0, 0, 0, 0
        if g.assign_multiple == 1:
            half_mb, half_vcores = to_long(node.avail_mb * 0.5), to_long(node.avail_vcores * 0.5)
        while node.res_app < 0:
            answer = serve_root(s, ni, now)
            if answer == NOTHING:
                break
            if answer == TAKEN:
                total += 1
            count += 1
            mb += g.last_mb
            vcores += g.last_vcores
            if g.assign_multiple == 0:
                break
            if g.max_assign_dynamic == 1:
                if mb > half_mb or vcores > half_vcores:
                    break
            elif g.max_assign > 0 and count >= g.max_assign:
                break
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores
    return total
