"""The scheduler's update: demands, fair shares of queues and applications, steady shares.

Follows ComputeFairShares, FSQueue/FSLeafQueue/FSParentQueue.update* and FifoPolicy of Hadoop 3.4.2. Hadoop recomputes
everything twice a second. Here values that cannot have changed are not recomputed; the results are the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.sim.arrays import Column, at_address
from harness.sim.containers import free_app
from harness.sim.enforcer import let_all_run
from harness.sim.fair.order import place, place_all
from harness.sim.fair.starvation import find_starved
from harness.sim.fair.state import ALL_SHARES, DRF, FIFO, SOME_SHARES, QueueRecord, State
from harness.sim.fair.turns import invalidate, seat, seat_all
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel

_LONG_MAX = 2**63 - 1
_ITERATIONS = 25

_STATE = at_address(State)


@kernel
def share_at(weight: float, ratio: float, low: int, high: int) -> int:
    """Return weight * ratio, clamped to `low`..`high` and truncated to a long (ComputeFairShares.computeShare)."""
    share = np.float64(weight) * ratio
    if share != share:
        return 0
    share = max(share, np.float64(low))
    share = min(share, np.float64(high))
    return to_long(share)


@kernel
def _add(x: int, y: int) -> int:
    return _LONG_MAX if x > _LONG_MAX - y else x + y


@kernel
def _fixed(q: Column[QueueRecord], i: int, vcores: bool, steady: bool) -> int:
    """Return the fixed share of a queue that takes no part in the division, or -1 if it takes part."""
    x = q[i]
    low, high = (x.min_vcores, x.max_vcores) if vcores else (x.min_mb, x.max_mb)
    if high <= 0:
        return 0
    if not steady and x.n_run <= 0:
        return 0
    if x.weight <= 0:
        return max(low, 0)
    return -1


@kernel
def _used(q: Column[QueueRecord], first: int, ratio: float, vcores: bool, steady: bool) -> int:
    taken = 0
    i = first
    while i >= 0:
        x = q[i]
        if _fixed(q, i, vcores, steady) < 0:
            low, high = (x.min_vcores, x.max_vcores) if vcores else (x.min_mb, x.max_mb)
            taken = _add(taken, share_at(x.weight, ratio, low, high))
            if taken == _LONG_MAX:
                break
        i = x.next_sibling
    return taken


@kernel
def _set_share(q: Column[QueueRecord], i: int, vcores: bool, steady: bool, share: int) -> None:
    if steady:
        if vcores:
            q[i].steady_vcores = share
        else:
            q[i].steady_mb = share
    elif vcores:
        q[i].fair_vcores = share
    else:
        q[i].fair_mb = share


@kernel
def queue_shares(q: Column[QueueRecord], parent: int, vcores: bool, steady: bool) -> None:
    """Divide a parent's fair share of one resource among its children.

    ``vcores``: divide vcores instead of memory. ``steady``: divide the steady share instead of the instantaneous one.
    """
    first = q[parent].first_child
    taken, total_max, free = 0, 0, 0
    i = first
    while i >= 0:
        x = q[i]
        fixed = _fixed(q, i, vcores, steady)
        if fixed >= 0:
            _set_share(q, i, vcores, steady, fixed)
            taken = _add(taken, fixed)
        else:
            free += 1
            total_max = _add(total_max, x.max_vcores if vcores else x.max_mb)
        i = x.next_sibling
    if free == 0:
        return
    if steady:
        whole = q[parent].steady_vcores if vcores else q[parent].steady_mb
    else:
        whole = q[parent].fair_vcores if vcores else q[parent].fair_mb
    total = min(total_max, max(whole - taken, 0))
    top = 1.0
    while _used(q, first, top, vcores, steady) < total and top < 1e300:
        top *= 2.0
    left, right = 0.0, top
    for _ in range(_ITERATIONS):
        mid = (left + right) / 2.0
        planned = _used(q, first, mid, vcores, steady)
        if planned == total:
            right = mid
            break
        if planned < total:
            left = mid
        else:
            right = mid
    i = first
    while i >= 0:
        x = q[i]
        if _fixed(q, i, vcores, steady) < 0:
            low, high = (x.min_vcores, x.max_vcores) if vcores else (x.min_mb, x.max_mb)
            _set_share(q, i, vcores, steady, share_at(x.weight, right, low, high))
        i = x.next_sibling


@kernel
def steady_shares(s: State) -> None:
    """Recompute the steady shares of all queues below the root (FSParentQueue.recomputeSteadyShares).

    The caller that changes nodes sets the root's own steady share.
    """
    for k in range(s.g[0].n_queues):
        p = s.order[k]
        if s.q[p].leaf == 0:
            queue_shares(s.q, p, False, True)
            if s.q[p].policy == DRF:
                queue_shares(s.q, p, True, True)


@kernel
def reweigh(state: int, weights: NDArray[np.float64]) -> int:
    """Apply a reload that changes only weights.

    ``state``: address of the state. ``weights``: rows of (queue slot, weight).
    """
    s = _STATE(state)
    for k in range(len(weights)):
        s.q[np.int64(weights[k, 0])].weight = single(weights[k, 1])
    s.g[0].shares_dirty = ALL_SHARES
    steady_shares(s)
    seat_all(s)
    return 0


@kernel
def _used_by_apps(s: State, leaf: int, ratio: float) -> int:
    g, q = s.g[0], s.q[leaf]
    if g.size_weight == 0:
        one = share_at(1.0, ratio, 0, _LONG_MAX)
        return _LONG_MAX if one > _LONG_MAX // q.n_run else one * q.n_run
    taken = 0
    i = q.run_head
    while i >= 0:
        x = s.a[i]
        if x.weight > 0:
            taken = _add(taken, share_at(x.weight, ratio, 0, _LONG_MAX))
            if taken == _LONG_MAX:
                break
        i = x.run_next
    return taken


@kernel
def _app_ratio(s: State, leaf: int, total: int) -> float:
    top = 1.0
    while _used_by_apps(s, leaf, top) < total and top < 1e300:
        top *= 2.0
    left, right = 0.0, top
    for _ in range(_ITERATIONS):
        mid = (left + right) / 2.0
        planned = _used_by_apps(s, leaf, mid)
        if planned == total:
            right = mid
            break
        if planned < total:
            left = mid
        else:
            right = mid
    return right


@kernel
def _app_shares(s: State, leaf: int) -> None:
    """Divide a leaf's fair share among its runnable applications (FSLeafQueue.updateInternal)."""
    q = s.q[leaf]
    if q.n_run == 0:
        return
    if q.policy == FIFO:
        first, i = q.run_head, q.run_head
        while i >= 0:
            if s.a[i].start_ms < s.a[first].start_ms:
                first = i
            i = s.a[i].run_next
        s.a[first].fair_mb, s.a[first].fair_vcores = q.fair_mb, q.fair_vcores
        return
    for vcores in range(2 if q.policy == DRF else 1):
        some = s.g[0].size_weight == 0
        if not some:
            i = q.run_head
            while i >= 0:
                if s.a[i].weight > 0:
                    some = True
                    break
                i = s.a[i].run_next
        total = q.fair_vcores if vcores == 1 else q.fair_mb
        ratio = _app_ratio(s, leaf, max(total, 0)) if some else 0.0
        i = q.run_head
        while i >= 0:
            x = s.a[i]
            share = share_at(x.weight, ratio, 0, _LONG_MAX) if x.weight > 0 else 0
            if vcores == 1:
                x.fair_vcores = share
            else:
                x.fair_mb = share
            i = x.run_next


@kernel
def refresh_demand(s: State, i: int) -> None:
    """Set an application's demand to its usage plus its outstanding asks (FSAppAttempt.updateDemand)."""
    x = s.a[i]
    q = s.q[x.q]
    mb, vcores = x.usage_mb + x.pending_mb, x.usage_vcores + x.pending_vcores
    q.sum_mb += mb - x.demand_mb
    q.sum_vcores += vcores - x.demand_vcores
    x.demand_mb, x.demand_vcores = mb, vcores
    if s.g[0].size_weight == 1:
        x.weight = single(np.log1p(np.float64(mb)) / np.log(2.0))
        q.members_dirty = 1
        s.g[0].shares_dirty = max(s.g[0].shares_dirty, SOME_SHARES)
    else:
        x.weight = single(1.0)


@kernel
def _set_demand(s: State, p: int) -> bool:
    """Set a queue's demand to the sum below it, limited by its maximum share; return whether it has changed."""
    q = s.q[p]
    mb, vcores = min(q.sum_mb, q.max_mb), min(q.sum_vcores, q.max_vcores)
    if mb == q.demand_mb and vcores == q.demand_vcores:
        return False
    q.demand_mb, q.demand_vcores = mb, vcores
    if q.leaf == 1:
        invalidate(s, p)
    seat(s, p)
    return True


@kernel
def _demand_up(s: State, leaf: int) -> None:
    """Update the demands of a leaf and its ancestors after a change of an application's demand."""
    p = leaf
    while p >= 0:
        q = s.q[p]
        mb, vcores = q.demand_mb, q.demand_vcores
        if not _set_demand(s, p):
            return
        if q.parent >= 0:
            above = s.q[q.parent]
            above.sum_mb += q.demand_mb - mb
            above.sum_vcores += q.demand_vcores - vcores
        p = q.parent


@kernel
def _demands(s: State) -> None:
    g = s.g[0]
    i = g.dirty_head
    g.dirty_head = -1
    while i >= 0:
        x = s.a[i]
        after = x.dirty - 2
        x.dirty = 0
        if x.alive == 1:
            refresh_demand(s, i)
            place(s, i)
            _demand_up(s, x.q)
        else:
            free_app(s.a, g, i)
        i = after
    if g.demand_dirty == 0:
        return
    g.demand_dirty = 0
    for k in range(g.n_queues - 1, -1, -1):
        p = s.order[k]
        q = s.q[p]
        if q.leaf == 0:
            q.sum_mb, q.sum_vcores = 0, 0
            c = q.first_child
            while c >= 0:
                q.sum_mb += s.q[c].demand_mb
                q.sum_vcores += s.q[c].demand_vcores
                c = s.q[c].next_sibling
        _set_demand(s, p)


@kernel
def _ask_bounds(s: State, leaf: int) -> None:
    """Recompute the smallest outstanding ask of a leaf, of all applications and of waiting AMs.

    Between updates these values are lower bounds.
    """
    q = s.q[leaf]
    q.asks_dirty = 0
    q.ask_min_mb, q.ask_min_vcores, q.am_min_mb, q.am_min_vcores = _LONG_MAX, _LONG_MAX, _LONG_MAX, _LONG_MAX
    i = q.run_head
    while i >= 0:
        x = s.a[i]
        r = x.req_head
        if r >= 0 and x.managed == 1 and x.am_running == 0:
            q.am_min_mb, q.am_min_vcores = min(q.am_min_mb, s.r[r].mb), min(q.am_min_vcores, s.r[r].vcores)
        while r >= 0:
            q.ask_min_mb, q.ask_min_vcores = min(q.ask_min_mb, s.r[r].mb), min(q.ask_min_vcores, s.r[r].vcores)
            r = s.r[r].next
        i = x.run_next
    seat(s, leaf)


@kernel
def _bounds_above(s: State, leaf: int) -> None:
    """Recompute the smallest asks below each ancestor of a leaf, after those of the leaf."""
    p = s.q[leaf].parent
    while p >= 0:
        q = s.q[p]
        mb, vcores = _LONG_MAX, _LONG_MAX
        c = q.first_child
        while c >= 0:
            mb, vcores = min(mb, s.q[c].ask_min_mb), min(vcores, s.q[c].ask_min_vcores)
            c = s.q[c].next_sibling
        if mb == q.ask_min_mb and vcores == q.ask_min_vcores:
            return
        q.ask_min_mb, q.ask_min_vcores = mb, vcores
        seat(s, p)
        p = q.parent


@kernel
def _forget_turned(s: State, p: int) -> None:
    """Reset the ``turned`` flags of a queue's children, whose shares are recomputed now."""
    s.q[p].n_turned = 0
    c = s.q[p].first_child
    while c >= 0:
        s.q[c].turned = 0
        c = s.q[c].next_sibling


@kernel
def update(s: State, now: int) -> int:
    """Recompute demands and shares, and queue starved applications for `preempt.preempt_pass`.

    Follows FairScheduler.update.
    """
    g = s.g[0]
    if g.hadoop_2_2 == 1:
        g.holds_apps = 0
        let_all_run(s, now)
        g.holds_apps = 1
    _demands(s)
    if g.shares_dirty != 0:
        every = g.shares_dirty == ALL_SHARES
        g.shares_dirty = 0
        root = s.q[0]
        root.fair_mb, root.fair_vcores = g.cluster_mb, g.cluster_vcores
        for k in range(g.n_queues):
            p = s.order[k]
            q = s.q[p]
            same = q.fair_mb == q.seen_mb and q.fair_vcores == q.seen_vcores
            if not every and same and q.members_dirty == 0 and q.n_turned == 0:
                continue
            q.members_dirty, q.seen_mb, q.seen_vcores = 0, q.fair_mb, q.fair_vcores
            if q.leaf == 0:
                _forget_turned(s, p)
                queue_shares(s.q, p, False, False)
                if q.policy == DRF:
                    queue_shares(s.q, p, True, False)
            else:
                _app_shares(s, p)
                invalidate(s, p)
                if g.reservations_allowed > 0 and g.large_asks == 1:
                    place_all(s, p)
                seat(s, p)
    leaf = g.asks_head
    g.asks_head = -1
    while leaf >= 0:
        after = s.q[leaf].asks_dirty - 2
        _ask_bounds(s, leaf)
        _bounds_above(s, leaf)
        leaf = after
    g.avail_mb, g.avail_vcores = g.cluster_mb - g.alloc_mb, g.cluster_vcores - g.alloc_vcores
    find_starved(s, now)
    return 0


@kernel
def is_settled(s: State) -> bool:
    """Return whether `update` would change nothing, now or later, as long as nothing else happens."""
    g = s.g[0]
    clean = g.dirty_head < 0 and g.demand_dirty == 0 and g.shares_dirty == 0 and g.asks_head < 0
    # With preemption, an update also checks how long applications have waited.
    return clean and g.preemption == 0
