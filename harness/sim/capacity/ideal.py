"""The first half of the preemption policy: each queue's ideal allocation, and the amount to preempt from it.

Follows TempQueuePerPartition, AbstractPreemptableResourceCalculator and PreemptableResourceCalculator of Hadoop 3.4.2.
Hadoop keeps the queues in sets by identity hash, whose order is random in a real ResourceManager. Here they are in the
order of the children, which is the order in Hadoop if all hashes are equal.
"""

from __future__ import annotations

import numpy as np

from harness.sim.capacity.resources import compare, compare_in, div32, divide, positive, times
from harness.sim.capacity.state import MUT_IGNORED, MUT_NATURAL, State
from harness.sim.capacity.users import ensure_user, refresh_limit
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel

_F0, _F1 = single(0.0), single(1.0)
_INT_MAX = 2147483647.0


@kernel
def scratch(s: State, region: int) -> int:
    """Return the offset of a region in preemption's scratch array; each region has room for every slot of any kind."""
    return region * (len(s.c) + len(s.n) + len(s.a) + len(s.q) + 4 * len(s.u))


# --- usage and demand of queues


@kernel
def _leaf_wants(s: State, k: int) -> None:
    """Set a leaf's outstanding resources within its user limits, with reserved resources and without.

    Follows AbstractLeafQueue.getTotalPendingResourcesConsideringUserLimit.
    """
    q, p, w = s.q[k], s.p[k], s.pw
    p.pending_mb, p.pending_vcores, p.unreserved_mb, p.unreserved_vcores = 0, 0, 0, 0
    if q.act_head < 0:
        return
    of_users = scratch(s, 0)
    i = q.act_head
    while i >= 0:
        at = of_users + 4 * s.a[i].uq
        w[at], w[at + 1], w[at + 2], w[at + 3] = 0, 0, 0, 0
        i = s.a[i].act_next
    i = q.act_head
    while i >= 0:
        x = s.a[i]
        ensure_user(s, x.uq)
        at = of_users + 4 * x.uq
        w[at] += max(x.pending_mb, 0)
        w[at + 1] += max(x.pending_vcores, 0)
        w[at + 2] += max(x.pending_mb - x.reserved_mb, 0)
        w[at + 3] += max(x.pending_vcores - x.reserved_vcores, 0)
        i = x.act_next
    refresh_limit(s, k)
    i = q.act_head
    while i >= 0:
        x = s.a[i]
        u = s.u[x.uq]
        mb, vcores = max(q.U_mb - u.used_mb, 0), max(q.U_vcores - u.used_vcores, 0)
        at = of_users + 4 * x.uq
        p.pending_mb += min(mb, w[at])
        p.pending_vcores += min(vcores, w[at + 1])
        p.unreserved_mb += min(mb, w[at + 2])
        p.unreserved_vcores += min(vcores, w[at + 3])
        w[at], w[at + 1], w[at + 2], w[at + 3] = 0, 0, 0, 0
        i = x.act_next


@kernel
def look_at_queues(s: State) -> None:
    """Set each queue's demand; a parent's is the sum of its children's.

    Follows ProportionalCapacityPreemptionPolicy.cloneQueues.
    """
    for at in range(s.g[0].n_queues - 1, -1, -1):
        k = s.order[at]
        p = s.p[k]
        p.obtain_mb, p.obtain_vcores, p.obtains = 0, 0, 0
        p.ideal_mb, p.ideal_vcores, p.excess_mb, p.excess_vcores = 0, 0, 0, 0
        p.norm_mb, p.norm_vcores = 0.0, 0.0
        if s.q[k].leaf == 1:
            _leaf_wants(s, k)
            continue
        p.pending_mb, p.pending_vcores, p.unreserved_mb, p.unreserved_vcores = 0, 0, 0, 0
        for place in range(s.q[k].n_kids):
            x = s.p[s.kids[s.q[k].kids_off + place]]
            p.pending_mb += x.pending_mb
            p.pending_vcores += x.pending_vcores
            p.unreserved_mb += x.unreserved_mb
            p.unreserved_vcores += x.unreserved_vcores


@kernel
def guaranteed(s: State, k: int) -> tuple[int, int]:
    """Return a queue's guaranteed resources, MiB and vcores (TempQueuePerPartition.getGuaranteed)."""
    g, q = s.g[0], s.q[k]
    if q.eff_mb != 0 or q.eff_vcores != 0:
        return q.eff_mb, q.eff_vcores
    return times(g.label_mb, g.label_vcores, q.abs)


@kernel
def _most(s: State, k: int) -> tuple[int, int]:
    """Return a queue's maximum resources, MiB and vcores (TempQueuePerPartition.getMax)."""
    g, q = s.g[0], s.q[k]
    if q.effmax_mb != 0 or q.effmax_vcores != 0:
        return q.effmax_mb, q.effmax_vcores
    return times(g.label_mb, g.label_vcores, q.abs_max)


@kernel
def _set_extras(s: State) -> None:
    """Set the usage of each queue above its guarantee, split into its preemptable part and the rest.

    Follows TempQueuePerPartition.updatePreemptableExtras.
    """
    g = s.g[0]
    for at in range(g.n_queues - 1, -1, -1):
        k = s.order[at]
        q, p = s.q[k], s.p[k]
        mb, vcores = guaranteed(s, k)
        mb, vcores = q.used_mb - mb, q.used_vcores - vcores
        if compare_in(s, g.label_mb, g.label_vcores, mb, vcores, 0, 0) < 0:
            mb, vcores = 0, 0
        p.fixed_mb, p.fixed_vcores, p.loose_mb, p.loose_vcores = 0, 0, 0, 0
        if q.leaf == 1:
            if p.disabled == 1:
                p.fixed_mb, p.fixed_vcores = mb, vcores
            else:
                p.loose_mb, p.loose_vcores = mb, vcores
            continue
        loose_mb, loose_vcores = 0, 0
        for place in range(q.n_kids):
            x = s.p[s.kids[q.kids_off + place]]
            loose_mb += x.loose_mb
            loose_vcores += x.loose_vcores
        more = compare_in(s, g.label_mb, g.label_vcores, loose_mb, loose_vcores, mb, vcores)
        if more < 0:
            p.fixed_mb, p.fixed_vcores = mb - loose_mb, vcores - loose_vcores
        if more <= 0:
            p.loose_mb, p.loose_vcores = loose_mb, loose_vcores
        else:
            p.loose_mb, p.loose_vcores = mb, vcores


# --- java.util.PriorityQueue in pw[at:], in which the queue furthest below its guarantee comes first


@kernel
def _part_reached(s: State, k: int, total_mb: int, total_vcores: int) -> float:
    mb, vcores = guaranteed(s, k)
    if compare_in(s, total_mb, total_vcores, mb, vcores, 0, 0) <= 0:
        return _INT_MAX
    return np.float64(divide(s, total_mb, total_vcores, s.p[k].ideal_mb, s.p[k].ideal_vcores, mb, vcores))


@kernel
def _java_compare(x: float, y: float) -> int:
    """Return the result of Double.compare for values that are not below 0; NaN is greater than all others."""
    if x != x or y != y:
        return (1 if x != x else 0) - (1 if y != y else 0)
    return 1 if x > y else (-1 if x < y else 0)


@kernel
def _by_need(s: State, i: int, j: int, total_mb: int, total_vcores: int) -> int:
    """Return a number below 0 if queue i comes before j (AbstractPreemptableResourceCalculator.TQComparator)."""
    x, y = _part_reached(s, i, total_mb, total_vcores), _part_reached(s, j, total_mb, total_vcores)
    first, second = 0, 0
    if s.q[s.q[i].parent].policy == 1:
        first, second = s.q[i].priority, s.q[j].priority
    if first != second and ((x < 1.0 and y < 1.0) or (x >= 1.0 and y >= 1.0)):
        return 1 if second > first else -1
    return _java_compare(x, y)


@kernel
def _offer_to_heap(s: State, at: int, n: int, k: int, total_mb: int, total_vcores: int) -> None:
    """Insert queue k into a heap of n elements, like PriorityQueue.offer."""
    w = s.pw
    while n > 0:
        above = (n - 1) >> 1
        if _by_need(s, k, w[at + above], total_mb, total_vcores) >= 0:
            break
        w[at + n] = w[at + above]
        n = above
    w[at + n] = k


@kernel
def _poll_heap(s: State, at: int, n: int, total_mb: int, total_vcores: int) -> int:
    """Remove and return the first element of a heap of n elements, like PriorityQueue.poll."""
    w = s.pw
    first, last = w[at], w[at + n - 1]
    n -= 1
    place = 0
    while place < n >> 1:
        child = 2 * place + 1
        if child + 1 < n and _by_need(s, w[at + child], w[at + child + 1], total_mb, total_vcores) > 0:
            child += 1
        if _by_need(s, last, w[at + child], total_mb, total_vcores) <= 0:
            break
        w[at + place] = w[at + child]
        place = child
    if n > 0:
        w[at + place] = last
    return first


# --- ideal allocation of each queue


@kernel
def _norm_of(s: State, k: int, way: int, n: int, own: int, sum_own: int, sum_abs: float, before: float) -> float:
    if way == 1:
        return np.float64(div32(s.q[k].abs, sum_abs)) if sum_abs != _F0 else before
    if way == 2:
        return np.float64(div32(_F1, single(n)))
    return 0.0 if sum_own == 0 else np.float64(div32(single(own), single(sum_own)))


@kernel
def _way(own_0: bool, sum_0: bool, has_abs: bool, way: int) -> int:
    """Return how a resource is divided: 0 by guarantees, 1 by absolute capacities, 2 evenly; 1 is final."""
    if way == 1 or (own_0 and has_abs and not sum_0):
        return 1
    return 2 if sum_0 else way


@kernel
def _normalise(s: State, at: int, n: int, evenly: bool) -> None:
    """Normalise the guarantees of the queues in the heap (AbstractPreemptableResourceCalculator.resetCapacity)."""
    w = s.pw
    mb, vcores, parts = 0, 0, _F0
    for k in range(at, at + n):
        more_mb, more_vcores = guaranteed(s, w[k])
        mb += more_mb
        vcores += more_vcores
        parts = single(parts + s.q[w[k]].abs)
    way_mb, way_vcores = (2, 2) if evenly or parts == _F0 else (0, 0)
    if not evenly:
        for k in range(at, at + n):
            own_mb, own_vcores = guaranteed(s, w[k])
            has_abs = s.q[w[k]].abs != _F0
            way_mb = _way(own_mb == 0, mb == 0, has_abs, way_mb)
            way_vcores = _way(own_vcores == 0, vcores == 0, has_abs, way_vcores)
    for k in range(at, at + n):
        own_mb, own_vcores = guaranteed(s, w[k])
        p = s.p[w[k]]
        p.norm_mb = _norm_of(s, w[k], way_mb, n, own_mb, mb, parts, p.norm_mb)
        p.norm_vcores = _norm_of(s, w[k], way_vcores, n, own_vcores, vcores, parts, p.norm_vcores)


@kernel
def _part_of(s: State, k: int, mb: int, vcores: int) -> tuple[int, int]:
    """Multiply by a queue's normalised guarantees and round up (ResourceCalculator.multiplyAndNormalizeUp)."""
    p = s.p[k]
    if s.g[0].drf == 0:
        mb = to_long(mb * p.norm_mb + 0.5)
        return mb, 1 if mb > 0 else 0
    return to_long(np.ceil(mb * p.norm_mb)), to_long(np.ceil(vcores * p.norm_vcores))


@kernel
def _takes(
    s: State, k: int, mb: int, vcores: int, total_mb: int, total_vcores: int, reserved: bool, balance: bool
) -> tuple[int, int]:
    """Add to a queue's ideal allocation the part of an offer that it accepts; return that part (MB, vcores).

    Follows TempQueuePerPartition.offer.
    """
    q, p = s.q[k], s.p[k]
    most_mb, most_vcores = _most(s, k)
    more_mb = q.used_mb + (p.pending_mb if reserved else p.unreserved_mb) - p.ideal_mb
    more_vcores = q.used_vcores + (p.pending_vcores if reserved else p.unreserved_vcores) - p.ideal_vcores
    if compare_in(s, total_mb, total_vcores, mb, vcores, more_mb, more_vcores) <= 0:
        more_mb, more_vcores = mb, vcores
    more_mb = min(max(most_mb - p.ideal_mb, 0), more_mb)
    more_vcores = min(max(most_vcores - p.ideal_vcores, 0), more_vcores)
    if q.leaf == 1 and not balance:
        top_mb, top_vcores = guaranteed(s, k)
        if compare_in(s, total_mb, total_vcores, q.used_mb, q.used_vcores, top_mb, top_vcores) >= 0:
            top_mb, top_vcores = q.used_mb, q.used_vcores
        top_mb, top_vcores = top_mb - p.ideal_mb, top_vcores - p.ideal_vcores
        if compare_in(s, total_mb, total_vcores, top_mb, top_vcores, 0, 0) < 0:
            top_mb, top_vcores = 0, 0
        if compare_in(s, total_mb, total_vcores, more_mb, more_vcores, top_mb, top_vcores) > 0:
            more_mb, more_vcores = top_mb, top_vcores
    more_mb, more_vcores = min(max(more_mb, 0), mb), min(max(more_vcores, 0), vcores)
    p.ideal_mb += more_mb
    p.ideal_vcores += more_vcores
    return more_mb, more_vcores


@kernel
def _above_zero(s: State, k: int, total_mb: int, total_vcores: int) -> bool:
    mb, vcores = guaranteed(s, k)
    return compare_in(s, total_mb, total_vcores, mb, vcores, 0, 0) > 0


@kernel
def _distribute(
    s: State, k: int, left_mb: int, left_vcores: int, with_guarantee: bool, reserved: bool, balance: bool
) -> tuple[int, int]:
    """Distribute resources among the children with (or without) a guarantee; return the remainder for the other group.

    Like Hadoop, this subtracts from the remainder only the first amount that it assigns. Follows
    AbstractPreemptableResourceCalculator.computeFixpointAllocation.
    """
    q, w = s.q[k], s.pw
    total_mb, total_vcores = s.p[k].ideal_mb, s.p[k].ideal_vcores
    heap, chosen, n = scratch(s, 0), scratch(s, 1), 0
    for place in range(q.n_kids):
        child = s.kids[q.kids_off + place]
        if _above_zero(s, child, total_mb, total_vcores) != with_guarantee:
            continue
        x, p = s.q[child], s.p[child]
        mb, vcores = guaranteed(s, child)
        if compare_in(s, total_mb, total_vcores, x.used_mb, x.used_vcores, mb, vcores) > 0:
            p.ideal_mb = min(mb, x.used_mb) + p.fixed_mb
            p.ideal_vcores = min(vcores, x.used_vcores) + p.fixed_vcores
        else:
            p.ideal_mb, p.ideal_vcores = x.used_mb, x.used_vcores
        left_mb -= p.ideal_mb
        left_vcores -= p.ideal_vcores
        wants_mb, wants_vcores = x.used_mb + p.pending_mb, x.used_vcores + p.pending_vcores
        if compare_in(s, total_mb, total_vcores, p.ideal_mb, p.ideal_vcores, wants_mb, wants_vcores) < 0:
            _offer_to_heap(s, heap, n, child, total_mb, total_vcores)
            n += 1
    seen_mb, seen_vcores, given = left_mb, left_vcores, False
    while n > 0 and compare_in(s, total_mb, total_vcores, left_mb, left_vcores, 0, 0) > 0:
        _normalise(s, heap, n, not with_guarantee)
        n_chosen = 0
        while n > 0:
            child = _poll_heap(s, heap, n, total_mb, total_vcores)
            n -= 1
            w[chosen + n_chosen] = child
            n_chosen += 1
            if n == 0 or _by_need(s, child, w[heap], total_mb, total_vcores) < 0:
                break
        round_mb, round_vcores = left_mb, left_vcores
        for at in range(chosen, chosen + n_chosen):
            if not positive(s, left_mb, left_vcores):
                break
            child = w[at]
            mb, vcores = _part_of(s, child, round_mb, round_vcores)
            mb, vcores = min(mb, left_mb), min(vcores, left_vcores)
            mb, vcores = _takes(s, child, mb, vcores, total_mb, total_vcores, reserved, balance)
            if compare_in(s, total_mb, total_vcores, mb, vcores, 0, 0) > 0:
                _offer_to_heap(s, heap, n, child, total_mb, total_vcores)
                n += 1
            if not given:
                seen_mb, seen_vcores, given = left_mb - mb, left_vcores - vcores, True
            left_mb, left_vcores = max(left_mb - mb, 0), max(left_vcores - vcores, 0)
    return seen_mb, seen_vcores


@kernel
def _share_out(s: State, k: int, reserved: bool, balance: bool) -> None:
    """Divide a parent's ideal resources among its children, and set the children's excess.

    Follows PreemptableResourceCalculator.computeIdealResourceDistribution.
    """
    g, q = s.g[0], s.q[k]
    total_mb, total_vcores = s.p[k].ideal_mb, s.p[k].ideal_vcores
    mb, vcores = _distribute(s, k, total_mb, total_vcores, True, reserved, balance)
    without = False
    for place in range(q.n_kids):
        without = without or not _above_zero(s, s.kids[q.kids_off + place], total_mb, total_vcores)
    if without and compare_in(s, total_mb, total_vcores, mb, vcores, 0, 0) > 0:
        _distribute(s, k, mb, vcores, False, reserved, balance)
    mb, vcores = 0, 0
    for place in range(q.n_kids):
        child = s.kids[q.kids_off + place]
        x, p = s.q[child], s.p[child]
        if compare_in(s, total_mb, total_vcores, x.used_mb, x.used_vcores, p.ideal_mb, p.ideal_vcores) > 0:
            mb += x.used_mb - p.ideal_mb
            vcores += x.used_vcores - p.ideal_vcores
    by = _F1
    if compare_in(s, total_mb, total_vcores, mb, vcores, g.allowed_mb, g.allowed_vcores) > 0:
        by = divide(s, total_mb, total_vcores, g.allowed_mb, g.allowed_vcores, mb, vcores)
    for place in range(q.n_kids):
        _set_excess(s, s.kids[q.kids_off + place], by, total_mb, total_vcores)


@kernel
def _set_excess(s: State, k: int, by: float, total_mb: int, total_vcores: int) -> None:
    """Set a queue's excess: the part ``by`` of its preemptable usage (TempQueuePerPartition.assignPreemption)."""
    q, p = s.q[k], s.p[k]
    mb, vcores = guaranteed(s, k)
    all_mb, all_vcores = q.used_mb + p.pending_mb, q.used_vcores + p.pending_vcores
    if compare_in(s, total_mb, total_vcores, all_mb, all_vcores, mb, vcores) <= 0:
        mb, vcores = all_mb, all_vcores
    if compare_in(s, total_mb, total_vcores, mb, vcores, p.ideal_mb, p.ideal_vcores) < 0:
        mb, vcores = p.ideal_mb, p.ideal_vcores
    p.excess_mb, p.excess_vcores = 0, 0
    if compare_in(s, total_mb, total_vcores, q.used_mb, q.used_vcores, mb, vcores) > 0:
        p.excess_mb, p.excess_vcores = times(q.used_mb - mb, q.used_vcores - vcores, by)


@kernel
def _up(s: State, mb: int, vcores: int, by: float) -> tuple[int, int]:
    """Multiply by a factor and round up to whole numbers (ResourceCalculator.multiplyAndNormalizeUp)."""
    if s.g[0].drf == 0:
        mb = to_long(mb * by + 0.5)
        return mb, 1 if mb > 0 else 0
    return to_long(np.ceil(np.float64(single(mb * by)))), to_long(np.ceil(np.float64(single(vcores * by))))


@kernel
def compute_ideal(s: State, reserved: bool, balance: bool) -> None:
    """Compute the ideal allocation of each queue, and from it the amount to preempt from each leaf.

    `reserved`: count reservations as demand. `balance`: queues may also grow beyond their guarantees. Follows
    PreemptableResourceCalculator.computeIdealAllocation.
    """
    g = s.g[0]
    _set_extras(s)
    s.p[0].ideal_mb, s.p[0].ideal_vcores = guaranteed(s, 0)
    for at in range(g.n_queues):
        k = s.order[at]
        if s.q[k].leaf == 0:
            _share_out(s, k, reserved, balance)
    for at in range(g.n_leaves):
        k = s.takes[at]
        q, p = s.q[k], s.p[k]
        if p.disabled == 1:
            continue
        mb, vcores = guaranteed(s, k)
        mb, vcores = times(mb, vcores, 1.0 + (0.0 if g.mutations & MUT_IGNORED else g.ignored))
        p.obtain_mb, p.obtain_vcores = 0, 0
        if compare(s, q.used_mb, q.used_vcores, mb, vcores) > 0:
            mb, vcores = p.excess_mb, p.excess_vcores
            if not reserved and compare(s, mb, vcores, 0, 0) > 0:
                mb, vcores = _up(s, mb, vcores, 1.0 if g.mutations & MUT_NATURAL else g.natural)
            p.obtain_mb, p.obtain_vcores = mb, vcores
