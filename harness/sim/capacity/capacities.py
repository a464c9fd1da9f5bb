"""Capacities and limits from the root down, after the cluster or the configuration has changed.

Follows AbstractParentQueue.updateClusterResource, CSQueueUtils, AbstractLeafQueue of Hadoop 3.4.2, legacy queue mode.
"""

from __future__ import annotations

import numpy as np

from harness.sim.capacity.activation import activate
from harness.sim.capacity.order import child_before, forget_all_stale, order_anew, stats
from harness.sim.capacity.resources import compare, compare_in, div32, divide, positive, round_down, smaller, times
from harness.sim.capacity.state import MUT_MAXAPPS, State
from harness.sim.capacity.users import refresh_limit, sum_ratios
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel

_F0, _F1, _F100 = single(0.0), single(1.0), single(100.0)
_INT_MAX = 2**31 - 1


@kernel
def set_floors(s: State) -> None:
    """Set the base of each queue's used capacity: its effective capacity, but at least the smallest container."""
    g = s.g[0]
    for k in range(g.n_queues):
        _set_floor(s, s.order[k])


@kernel
def _set_floor(s: State, k: int) -> None:
    g, q = s.g[0], s.q[k]
    q.fair_mb = q.eff_mb
    if compare_in(s, g.label_mb, g.label_vcores, q.eff_mb, q.eff_vcores, g.min_mb, g.min_vcores) >= 0:
        q.floor_mb, q.floor_vcores = q.eff_mb, q.eff_vcores
    else:
        q.floor_mb, q.floor_vcores = g.min_mb, g.min_vcores


@kernel
def child_limit(
    s: State, k: int, limit_mb: int, limit_vcores: int, blocked_mb: int, blocked_vcores: int, child: int
) -> tuple[int, int]:
    """Return the limit that a parent passes to a child: its own limit minus the amounts blocked for other children."""
    q, x = s.q[k], s.q[child]
    return round_down(
        s,
        limit_mb - blocked_mb - q.used_mb + x.used_mb,
        limit_vcores - blocked_vcores - q.used_vcores + x.used_vcores,
    )


@kernel
def leaf_limit(s: State, k: int, limit_mb: int, limit_vcores: int) -> tuple[int, int]:
    """Return the limit from which a leaf's AM limit is computed."""
    q = s.q[k]
    mb, vcores = round_down(s, q.effmax_mb, q.effmax_vcores)
    return smaller(s, mb, vcores, limit_mb, limit_vcores)


@kernel
def _finite(x: float) -> float:
    return _F0 if np.isinf(x) else single(x)


@kernel
def _effective(s: State, k: int) -> None:
    g, q = s.g[0], s.q[k]
    if q.absolute == 0:
        q.eff_mb, q.eff_vcores = times(g.label_mb, g.label_vcores, q.abs)
        q.effmax_mb, q.effmax_vcores = times(g.label_mb, g.label_vcores, q.abs_max)
        return
    p = s.q[q.parent]
    q.eff_mb, q.eff_vcores = q.conf_mb, q.conf_vcores
    if p.scaled & 1:
        q.eff_mb = to_long(np.float64(single(single(q.conf_mb) * p.scale_mb)))
    if p.scaled & 2:
        q.eff_vcores = to_long(np.float64(single(single(q.conf_vcores) * p.scale_vcores)))
    top_mb, top_vcores = p.confmax_mb, p.confmax_vcores
    if top_mb == 0 and top_vcores == 0:
        top_mb, top_vcores = p.effmax_mb, p.effmax_vcores
    q.effmax_mb, q.effmax_vcores = top_mb, top_vcores
    if (q.confmax_mb != 0 or q.confmax_vcores != 0) and compare_in(
        s, g.label_mb, g.label_vcores, q.confmax_mb, q.confmax_vcores, top_mb, top_vcores
    ) <= 0:
        q.effmax_mb, q.effmax_vcores = q.confmax_mb, q.confmax_vcores
    total_mb, total_vcores = g.cluster_mb, g.cluster_vcores
    q.cap = _finite(divide(s, total_mb, total_vcores, q.eff_mb, q.eff_vcores, p.eff_mb, p.eff_vcores))
    q.max = _finite(divide(s, total_mb, total_vcores, q.effmax_mb, q.effmax_vcores, p.effmax_mb, p.effmax_vcores))
    q.abs, q.abs_max = single(q.cap * p.abs), single(q.max * p.abs_max)


@kernel
def _max_apps(s: State, k: int, system: int, of_queue: int) -> None:
    """Set how many applications the leaf accepts, in total and per user."""
    q = s.q[k]
    n = q.own_max_apps
    base = min(of_queue, system) if of_queue > 0 else system
    if n < 0:
        n = base if of_queue > 0 and q.absolute == 0 else max(to_long(np.float64(single(single(base) * q.abs))), -1)
    if s.g[0].mutations & MUT_MAXAPPS:
        n = _INT_MAX
    q.max_apps = min(n, _INT_MAX)
    q.max_user_apps = q.max_apps
    if q.ulf != single(-1.0) and s.g[0].mutations & MUT_MAXAPPS == 0:
        of_user = single(single(single(n) * div32(q.mulp, _F100)) * q.ulf)
        q.max_user_apps = min(q.max_apps, to_long(np.float64(of_user)))


@kernel
def _norms(s: State, k: int) -> None:
    """Set the normalised weights of a parent's children; their sum is computed in float32 in the children's order."""
    q = s.q[k]
    if q.any_weight == 0:
        return
    total = _F0
    for at in range(q.n_kids):
        weight = s.q[s.kids[q.kids_off + at]].weight
        if not weight < _F0:  # a NaN makes the sum 1, and the normalised weights stay as they were
            total = single(total + weight)
    if abs(np.float64(total)) > 1e-6:
        for at in range(q.n_kids):
            x = s.q[s.kids[q.kids_off + at]]
            x.norm = div32(x.weight, total)


@kernel
def _scale(s: State, k: int) -> None:
    """Scale down the absolute capacities of children if their sum exceeds the parent's."""
    g, q = s.g[0], s.q[k]
    mb, vcores = 0, 0
    for at in range(q.n_kids):
        x = s.q[s.kids[q.kids_off + at]]
        mb += x.conf_mb
        vcores += x.conf_vcores
    q.scaled = 0
    if q.parent < 0 and g.label_mb == 0 and g.label_vcores == 0:
        return
    if compare(s, q.eff_mb, q.eff_vcores, mb, vcores) < 0:
        if mb != 0:
            q.scale_mb = div32(single(q.eff_mb), single(mb))
            q.scaled |= 1
        if vcores != 0:
            q.scale_vcores = div32(single(q.eff_vcores), single(vcores))
            q.scaled |= 2


@kernel
def rebuild_trees(s: State) -> None:
    """Rebuild the tournament tree of every parent."""
    for at in range(s.g[0].n_queues):
        k = s.order[at]
        q = s.q[k]
        if q.leaf == 1:
            continue
        off, cap = q.tree_off, q.tree_cap
        for place in range(cap):
            child = s.kids[q.kids_off + place] if place < q.n_kids else -1
            if child >= 0 and not positive(s, s.q[child].pending_mb, s.q[child].pending_vcores):
                child = -1
            s.tree[off + cap + place] = child
        for node in range(cap - 1, 0, -1):
            left, right = s.tree[off + 2 * node], s.tree[off + 2 * node + 1]
            if left < 0 or (right >= 0 and child_before(s, right, left)):
                left = right
            s.tree[off + node] = left


@kernel
def refresh(s: State, now: int) -> None:
    """Recompute capacities and limits of all queues from the root down, and activate applications.

    Follows updateClusterResource.
    """
    g = s.g[0]
    for at in range(g.n_queues):
        k = s.order[at]
        q = s.q[k]
        above, above_max = _F1, _F1
        if q.parent >= 0:
            above, above_max = s.q[q.parent].abs, s.q[q.parent].abs_max
        part = max(q.cap, q.norm)
        if part > _F0:
            q.abs = single(part * above)
        if q.max > _F0:
            q.abs_max = single(q.max * above_max)
        if q.parent < 0:
            q.lim_mb, q.lim_vcores = g.label_mb, g.label_vcores
        if q.leaf == 0:
            _norms(s, k)
        if q.parent < 0:
            q.eff_mb, q.eff_vcores = g.label_mb, g.label_vcores
            q.effmax_mb, q.effmax_vcores = g.label_mb, g.label_vcores
        else:
            _effective(s, k)
        _set_floor(s, k)
        if q.leaf == 1:
            _max_apps(s, k, g.system_apps, g.queue_apps)
            q.L_mb, q.L_vcores = leaf_limit(s, k, q.lim_mb, q.lim_vcores)
            sum_ratios(s, k)
            stats(s, k)
            activate(s, k, now)
            q.version += 1
            if q.n_active > 0:
                refresh_limit(s, k)
            i = q.act_head
            while i >= 0:
                if s.u[s.a[i].uq].in_map == 1:
                    s.a[i].seen = 1
                i = s.a[i].act_next
            q.stuck = 0
            continue
        _scale(s, k)
        stats(s, k)
        mb, vcores = smaller(s, q.lim_mb, q.lim_vcores, q.effmax_mb, q.effmax_vcores)
        for place in range(q.n_kids):
            child = s.kids[q.kids_off + place]
            s.q[child].lim_mb, s.q[child].lim_vcores = child_limit(s, k, mb, vcores, 0, 0, child)
    rebuild_trees(s)


@kernel
def configured(s: State) -> None:
    """Reset those values of every leaf that a re-initialisation of Hadoop's scheduler resets; `refresh` follows."""
    g = s.g[0]
    for at in range(g.n_leaves):
        k = s.leaves[at]
        q = s.q[k]
        q.L_mb, q.L_vcores = g.cluster_mb, g.cluster_vcores
        forget_all_stale(s, k)
        order_anew(s, k)
        q.version += 1
        q.on_weight = single(q.n_on)
