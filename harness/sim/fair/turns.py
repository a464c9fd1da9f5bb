"""The order of queues: each parent keeps a tournament tree of the children that could get something.

Follows FSParentQueue.assignContainer, FairSharePolicy and DominantResourceFairnessPolicy (two resources) of Hadoop
3.4.2. Hadoop sorts all children into a TreeSet at each assignment. Here a change of one child takes time proportional
to the logarithm of their number, and only at the next choice: `seat` stores the key of a queue and marks the tree nodes
above it as stale; `next_turn` recomputes the stale ones.

The tree leaves out children that could get nothing: no application below has asks, the smallest ask would exceed the
queue's maximum, all applications wait for an AM that the AM share does not admit, or no ask fits the node and none may
reserve it. Hadoop tries these and gets nothing. The asks that fit differ from node to node: each set of sizes that fit
has a view with tournaments of its own.

Under long-term fairness keys vary with time. The result in a tree node then has an expiry, up to which its winner
surely wins, and is recomputed after that (a kinetic tournament). This is used if there are many queues (``G.moving``).

With zero weights, Hadoop's dominant shares become NaN and its comparator is no longer a total order; the TreeSet is
then built as Java builds it (harness.sim.fair.treeset).
"""

from __future__ import annotations

import math

import numpy as np

from harness.sim.fair.limits import is_open
from harness.sim.fair.state import DRF, MUT_TIES, STOCK, State
from harness.sim.fair.treeset import first_in_treeset
from harness.sim.kernel import kernel

_NEVER = 1 << 62
_STALE = -1
#: Two keys whose rates differ by less than this fraction are compared again after this time (ms). Rounding errors are
#: far smaller.
_ALIKE, _ALIKE_MS = 1e-12, 60_000


# --- keys of queues


@kernel
def _ratio(x: float, y: float) -> float:
    """Divide as Java divides doubles: the result of a division by zero is infinite or NaN."""
    if y != 0:
        return x / y
    return np.nan if x == 0 or x != x else (np.inf if x > 0 else -np.inf)


@kernel
def _fair_key(s: State, k: int) -> None:
    """Set a queue's key as FairShareComparator orders queues.

    Queues below their minimum share come first, by usage / minimum. The others follow by usage / weight, and queues
    without demand come last (not in Hadoop 2.2).
    """
    x, e = s.q[k], s.seat[k]
    low = min(x.min_mb, x.demand_mb)
    needy = x.usage_mb < low
    e.tier = 0 if needy else (2 if x.demand_mb == 0 and s.g[0].hadoop_2_2 == 0 else 1)
    e.k0 = x.usage_mb / np.float64(max(low, 1)) if needy else 0.0
    weight = np.float64(x.weight)
    # Weight 0 comes after all others, ordered by usage.
    e.k1 = x.usage_mb / weight if weight > 0 else (1.0 + x.usage_mb) * 1e200
    if s.g[0].hadoop_2_2 == 1:
        if needy:
            e.k1 = 0.0  # it compares them no further
        elif weight > 0:
            e.k1 = np.float64(np.float32(x.usage_mb) / np.float32(weight))  # it divides an int by a float


@kernel
def _drf_key(s: State, k: int) -> None:
    """Set a queue's key as DominantResourceFairnessComparator2 orders queues.

    Queues below their minimum share of the dominant resource come first. The shares are of the minimum for these queues
    and of the cluster, divided by the weight, for the others; the dominant share is compared first.
    """
    g, x, e = s.g[0], s.q[k], s.seat[k]
    mb, vcores = _ratio(x.usage_mb, g.cluster_mb), _ratio(x.usage_vcores, g.cluster_vcores)
    by_vcores = vcores > mb
    needy = x.usage_vcores < x.min_vcores if by_vcores else x.usage_mb < x.min_mb
    e.tier = 0 if needy else 1
    if needy:
        mb, vcores = _ratio(x.usage_mb, x.min_mb), _ratio(x.usage_vcores, x.min_vcores)
    else:
        weight = np.float64(x.weight)
        mb, vcores = _ratio(mb, weight), _ratio(vcores, weight)
    e.k0, e.k1 = (vcores, mb) if by_vcores else (mb, vcores)
    odd = 1 if mb != mb or vcores != vcores else 0
    if odd != e.odd:
        s.seat[e.up].n_odd += odd - e.odd
        e.odd = odd


@kernel
def _set_key(s: State, k: int) -> None:
    g, x, e = s.g[0], s.q[k], s.seat[k]
    if g.order_mode == STOCK or s.seat[e.up].stock == 1:
        if s.q[e.up].policy == DRF:
            _drf_key(s, k)
        else:
            _fair_key(s, k)
        return
    e.tier = 0 if x.usage_mb < min(x.min_mb, x.demand_mb) else 1
    if g.moving == 0:
        e.k0, e.k1 = x.key, 0.0


# --- the tournament trees


@kernel
def _mark(s: State, off: int, at: int) -> None:
    """Mark the tree nodes above a position as stale."""
    at >>= 1
    while at >= 1 and s.due[off + at] != _STALE:
        s.due[off + at] = _STALE
        at >>= 1


@kernel
def _mark_place(s: State, k: int) -> None:
    """Mark the tree nodes above a queue's leaf as stale in each view that it takes part in."""
    g, e = s.g[0], s.seat[k]
    for v in range(g.n_views):
        if (e.there >> v) & 1 == 1:
            _mark(s, v * g.span + s.seat[e.up].off, s.seat[e.up].cap + e.at)


@kernel
def _size_of(s: State, mb: int, vcores: int) -> int:
    """Return the index in ``sizes`` of a smallest ask; 0, which every view includes, if the table is full."""
    g = s.g[0]
    for i in range(1, g.n_sizes):
        if s.sizes[i].mb == mb and s.sizes[i].vcores == vcores:
            return i
    if g.n_sizes < len(s.sizes):
        i = g.n_sizes
        g.n_sizes = i + 1
    else:
        i = 1
        while i < len(s.sizes) and s.sizes[i].n > 0:
            i += 1
        if i == len(s.sizes):
            return 0
        for v in range(g.n_views):
            s.views[v].mask = -1  # it includes asks of other sizes
    s.sizes[i].mb, s.sizes[i].vcores, s.sizes[i].n = mb, vcores, 0
    return i


@kernel
def _seat_in(s: State, k: int, v: int, may: bool, same: bool) -> bool:
    """Update a queue's leaf in one view; return whether its parent became empty there or stopped being empty.

    `same`: its key has not changed.
    """
    e, q = s.seat[k], s.q[k]
    above = s.seat[e.up]
    there = 0
    if may:
        if q.leaf == 0:
            there = 1 if s.inside[v * len(s.q) + k] > 0 else 0
        elif q.n_reservable > 0 or (s.views[v].mask >> e.size) & 1 == 1:
            there = 1
    had = (e.there >> v) & 1
    if there == had and (same or there == 0):
        return False
    off = v * s.g[0].span + above.off
    moved = False
    if there != had:
        e.there ^= 1 << v
        s.tree[off + above.cap + e.at] = k if there == 1 else -1
        n = s.inside[v * len(s.q) + e.up] + 2 * there - 1
        s.inside[v * len(s.q) + e.up] = n
        moved = n == there
    _mark(s, off, above.cap + e.at)
    return moved


@kernel
def _seat_late(s: State, leaf: int, may: bool) -> None:
    g, q = s.g[0], s.q[leaf]
    if g.moving == 0 or g.late_cap == 0:
        return
    at = g.late_cap + s.seat[leaf].late_at
    want = leaf if may and (q.pending_mb > 0 or q.pending_vcores > 0) else -1
    if s.tree[g.late_off + at] != want:
        s.tree[g.late_off + at] = want
        _mark(s, g.late_off, at)


@kernel
def seat_late(s: State, leaf: int) -> None:
    """Update whether a leaf is a candidate for lifting. Candidates have asks; the least served one may be lifted.

    Leaves to which limits allow no assignment are no candidates. Of thousands of queues most may be blocked by their AM
    share, and each choice would have to check all of them.
    """
    if s.g[0].moving == 1 and s.g[0].late_cap > 0:
        _seat_late(s, leaf, is_open(s, leaf))


@kernel
def _seat_one(s: State, k: int) -> bool:
    """Update a queue's key and the views in which it takes part; return whether this may change its parent's."""
    e, q = s.seat[k], s.q[k]
    if e.up < 0 and q.leaf == 0:
        return False
    may = is_open(s, k)
    if q.leaf == 1:
        _seat_late(s, k, may)
    if e.up < 0:
        return False
    if q.leaf == 1:
        size = _size_of(s, q.ask_min_mb, q.ask_min_vcores) if may else -1
        if size != e.size:
            if e.size >= 0:
                s.sizes[e.size].n -= 1
            if size >= 0:
                s.sizes[size].n += 1
            e.size = size
    tier, k0, k1 = e.tier, e.k0, e.k1
    _set_key(s, k)
    same = e.tier == tier and e.k0 == k0 and e.k1 == k1
    moved = False
    for v in range(s.g[0].n_views):
        if _seat_in(s, k, v, may, same):
            moved = True
    return moved


@kernel
def seat(s: State, k: int) -> None:
    """Update a queue's position after a change of its asks, limits, demand or share."""
    while k >= 0 and _seat_one(s, k):
        k = s.seat[k].up


@kernel
def seat_path(s: State, k: int) -> None:
    """Update the positions of a queue and its ancestors after a change of their usage or bounds."""
    while k >= 0:
        _seat_one(s, k)
        k = s.q[k].parent


@kernel
def _clear(s: State, v: int) -> None:
    """Remove all queues from a view."""
    g = s.g[0]
    for i in range(g.n_queues):
        k = s.order[i]
        e = s.seat[k]
        e.there &= ~(1 << v)
        s.inside[v * len(s.q) + k] = 0
        for at in range(2 * e.cap):
            s.tree[v * g.span + e.off + at] = -1
            s.due[v * g.span + e.off + at] = _STALE if at < e.cap else _NEVER


@kernel
def view_of(s: State, mb: int, vcores: int) -> int:
    """Return the view of a node with this much space.

    It has the tournaments of the queues whose smallest ask fits in the space, or which may reserve the node.
    Returns -1 if no queue takes part. Few views are kept; the least recently used one is replaced.
    """
    g = s.g[0]
    mask, some = 1, g.n_reservable > 0 or s.sizes[0].n > 0
    for i in range(1, g.n_sizes):
        size = s.sizes[i]
        if size.mb <= mb and size.vcores <= vcores:
            mask |= 1 << i
            some = some or size.n > 0
    if not some:
        return -1
    g.n_looks += 1
    oldest = 0
    for v in range(g.n_views):
        if s.views[v].mask == mask:
            s.views[v].seen = g.n_looks
            return v if s.inside[v * len(s.q)] > 0 else -1
        if s.views[v].seen < s.views[oldest].seen:
            oldest = v
    v = oldest
    if g.n_views < len(s.views):
        v = g.n_views
        g.n_views = v + 1
    s.views[v].mask, s.views[v].seen = mask, g.n_looks
    _clear(s, v)
    for i in range(g.n_queues - 1, -1, -1):
        k = s.order[i]
        if s.seat[k].up >= 0:
            _seat_in(s, k, v, is_open(s, k), False)
    return v if s.inside[v * len(s.q)] > 0 else -1


@kernel
def seat_all(s: State) -> None:
    """Recompute the positions of all queues."""
    g = s.g[0]
    ties = g.mutations & MUT_TIES == 0
    for i in range(len(s.sizes)):
        s.sizes[i].n = 0
    g.n_sizes = max(g.n_sizes, 1)
    for i in range(g.n_queues):
        k = s.order[i]
        e = s.seat[k]
        e.there, e.n_odd, e.odd, e.size = 0, 0, 0, -1
        e.rank = s.q[k].rank if ties else -s.q[k].rank
        if g.moving == 1:
            e.weight = s.x[k].entitlement
            if s.q[k].leaf == 0:
                e.amount, e.rate, e.since_ms = 0.0, 0.0, 0
    for v in range(g.n_views):
        _clear(s, v)
    if g.moving == 1:
        for i in range(g.n_leaves):
            k = s.leaves[i]
            e = s.seat[k]
            p = s.q[k].parent
            while p >= 0:
                s.seat[p].amount += e.amount - e.since_ms * e.rate
                s.seat[p].rate += e.rate
                p = s.q[p].parent
        for i in range(g.n_queues):
            s.seat[s.order[i]].speed = s.seat[s.order[i]].rate / s.seat[s.order[i]].weight
        for at in range(2 * g.late_cap):
            s.tree[g.late_off + at] = -1
            s.due[g.late_off + at] = _STALE if at < g.late_cap else _NEVER
        for i in range(g.n_leaves):
            seat_late(s, s.leaves[i])
    for i in range(g.n_queues - 1, -1, -1):
        _seat_one(s, s.order[i])


@kernel
def seat_keys(s: State) -> None:
    """Recompute all keys, if only keys have changed since the positions were computed."""
    g = s.g[0]
    for i in range(g.n_queues):
        k = s.order[i]
        if s.seat[k].up < 0:
            continue
        _set_key(s, k)
        _mark_place(s, k)


@kernel
def _before(s: State, i: int, j: int) -> bool:
    x, y = s.seat[i], s.seat[j]
    if x.tier != y.tier:
        return x.tier < y.tier
    if x.k0 != y.k0:
        return x.k0 < y.k0
    if x.k1 != y.k1:
        return x.k1 < y.k1
    return x.rank < y.rank


@kernel
def _match(s: State, i: int, j: int, now: int, late: bool) -> tuple[int, int]:
    """Return which of two queues with time-varying keys comes first, and the time (exclusive, ms) up to which it does.

    ``late``: compare in the tournament of all leaves with asks, where tiers do not count.
    """
    x, y = s.seat[i], s.seat[j]
    if not late and x.tier != y.tier:
        return (i if x.tier < y.tier else j), _NEVER
    key_i = (x.amount + (now - x.since_ms) * x.rate) / x.weight
    key_j = (y.amount + (now - y.since_ms) * y.rate) / y.weight
    i_wins = key_i < key_j or (key_i == key_j and x.rank < y.rank)
    gap, closing = (key_j - key_i, x.speed - y.speed) if i_wins else (key_i - key_j, y.speed - x.speed)
    winner = i if i_wins else j
    if closing <= 0.0:
        return winner, _NEVER
    if closing <= _ALIKE * max(x.speed, y.speed):
        return winner, now + _ALIKE_MS
    sure = (gap - _ALIKE * (key_i + key_j)) / closing
    if sure <= 1.0:
        return winner, now + 1
    if sure >= 1e15:
        return winner, _NEVER
    return winner, now + math.floor(sure)


@kernel
def _play(s: State, off: int, now: int, late: bool) -> None:
    """Recompute the stale nodes of a tournament, lower ones first."""
    tree, due = s.tree, s.due
    moving = s.g[0].moving == 1
    at = 1
    while True:
        left, right = off + 2 * at, off + 2 * at + 1
        if due[left] <= now:
            at = 2 * at
            continue
        if due[right] <= now:
            at = 2 * at + 1
            continue
        until = min(due[left], due[right])
        i, j = tree[left], tree[right]
        if i < 0:
            tree[off + at] = j
        elif j < 0:
            tree[off + at] = i
        elif moving:
            winner, end = _match(s, i, j, now, late)
            tree[off + at] = winner
            until = min(until, end)
        else:
            tree[off + at] = j if _before(s, j, i) else i
        due[off + at] = until
        if at == 1:
            return
        at >>= 1


@kernel
def next_turn(s: State, v: int, p: int, now: int) -> int:
    """Return the child of p that is tried next in a view, or -1."""
    e = s.seat[p]
    off = v * s.g[0].span + e.off
    if e.n_odd > 0:
        return first_in_treeset(s, p, off + e.cap)
    if s.due[off + 1] <= now:
        _play(s, off, now, False)
    return s.tree[off + 1]


@kernel
def is_up(s: State, v: int, k: int) -> bool:
    """Return whether a queue takes part in a view and is not excluded."""
    e = s.seat[k]
    above = s.seat[e.up]
    return s.tree[v * s.g[0].span + above.off + above.cap + e.at] == k


@kernel
def exclude(s: State, v: int, k: int) -> None:
    """Exclude a queue that was tried without result, until `restore` is called."""
    g, e = s.g[0], s.seat[k]
    above = s.seat[e.up]
    off = v * g.span + above.off
    s.tree[off + above.cap + e.at] = -1
    _mark(s, off, above.cap + e.at)
    s.aside[g.n_aside] = k
    g.n_aside += 1


@kernel
def restore(s: State, v: int) -> None:
    """Restore all excluded queues."""
    g = s.g[0]
    for i in range(g.n_aside):
        k, e = s.aside[i], s.seat[s.aside[i]]
        above = s.seat[e.up]
        off = v * g.span + above.off
        if (e.there >> v) & 1 == 1:
            s.tree[off + above.cap + e.at] = k
        _mark(s, off, above.cap + e.at)
    g.n_aside = 0


@kernel
def invalidate(s: State, leaf: int) -> None:
    """Invalidate a leaf's starvation cache after a change.

    While the cache was valid, checks did not update `last_at_min_ms` and `last_at_fair_ms`; this does.
    """
    e, g = s.seat[leaf], s.g[0]
    if e.calm != 0:
        if e.calm > 0:
            s.q[leaf].last_at_min_ms = g.starve_ms
        if e.calm > 1:
            s.a[e.calm - 2].last_at_fair_ms = g.starve_ms
        e.calm = 0


# --- time-varying keys


@kernel
def seat_counted(s: State, leaf: int, amount: float, since_ms: int, rate: float) -> None:
    """Set a leaf's counted resources to `amount` at `since_ms`; they grow by `rate` per millisecond from then on."""
    e = s.seat[leaf]
    more = (amount - since_ms * rate) - (e.amount - e.since_ms * e.rate)
    faster = rate - e.rate
    e.amount, e.since_ms, e.rate, e.speed = amount, since_ms, rate, rate / e.weight
    if more == 0.0 and faster == 0.0:
        return
    if s.g[0].late_cap > 0:
        _mark(s, s.g[0].late_off, s.g[0].late_cap + e.late_at)
    k = leaf
    while k >= 0:
        e = s.seat[k]
        if k != leaf:
            e.amount += more
            e.rate += faster
            e.speed = e.rate / e.weight
        _mark_place(s, k)
        k = s.q[k].parent


@kernel
def latest(s: State, now: int) -> int:
    """Return the least served of the candidates for lifting, or -1."""
    g = s.g[0]
    if s.due[g.late_off + 1] <= now:
        _play(s, g.late_off, now, True)
    return s.tree[g.late_off + 1]


@kernel
def pass_over(s: State, leaf: int) -> None:
    """Exclude a leaf from `latest`, until `seat_late` is called for it."""
    g = s.g[0]
    at = g.late_cap + s.seat[leaf].late_at
    s.tree[g.late_off + at] = -1
    _mark(s, g.late_off, at)
