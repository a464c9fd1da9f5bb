"""Finds the applications that are starved for their fair or minimum share, and queues them for preemption.

Follows FSLeafQueue.updateStarvedApps, FSAppAttempt.fairShareStarvation and FSStarvedApps of Hadoop 3.4.2.
"""

from __future__ import annotations

import numpy as np

from harness.sim.fair.order import app_before, compare, place
from harness.sim.fair.state import MUT_TIES, State
from harness.sim.fair.turns import invalidate
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel

_NEVER = 1 << 62
_FED, _HUNGRY, _STARVED = 0, 1, 2


@kernel
def _wanted(s: State) -> bool:
    """Return whether preemption may be tried (FairScheduler.shouldAttemptPreemption), in Java's floats."""
    g = s.g[0]
    if g.preemption == 0 or g.cluster_mb == 0 or g.cluster_vcores == 0:
        return False
    mb = single(g.alloc_mb) / single(g.cluster_mb)
    vcores = single(g.alloc_vcores) / single(g.cluster_vcores)
    return g.utilisation_threshold < max(mb, vcores)


@kernel
def _before(s: State, i: int, j: int) -> bool:
    """Return whether the starvation of i is at most that of j in both resources, by which Hadoop's comparator sorts.

    The comparator never reports that two applications are equal.
    """
    x, y = s.a[i], s.a[j]
    return x.fstarve_mb + x.mstarve_mb <= y.fstarve_mb + y.mstarve_mb and (
        x.fstarve_vcores + x.mstarve_vcores <= y.fstarve_vcores + y.mstarve_vcores
    )


@kernel
def _line_up(s: State, base: int, i: int) -> None:
    """Add an application that is not in the queue (FSStarvedApps.addStarvedApp, PriorityBlockingQueue.offer)."""
    w = s.work
    k = s.g[0].heap_top
    s.g[0].heap_top = k + 1
    while k > 0:
        above = (k - 1) >> 1
        if not _before(s, i, w[base + above]):
            break
        w[base + k] = w[base + above]
        k = above
    w[base + k] = i


@kernel
def poll(s: State, base: int) -> int:
    """Remove and return the first application of the queue, or -1 (PriorityBlockingQueue.poll)."""
    w = s.work
    n = s.g[0].heap_top - 1
    if n < 0:
        return -1
    s.g[0].heap_top = n
    first, x = w[base], w[base + n]
    k = 0
    while 2 * k + 1 < n:
        below = 2 * k + 1
        if below + 1 < n and not _before(s, w[base + below], w[base + below + 1]):
            below += 1
        if _before(s, x, w[base + below]):
            break
        w[base + k] = w[base + below]
        k = below
    if n > 0:
        w[base + k] = x
    return first


@kernel
def _sink(s: State, at: int, n: int, k: int, i: int) -> None:
    """Put i into position k of a heap of n applications in work[at:], or below that position."""
    w = s.work
    ties = s.g[0].mutations & MUT_TIES == 0
    while 2 * k + 1 < n:
        below = 2 * k + 1
        if below + 1 < n and app_before(s.a, w[at + below + 1], w[at + below], ties):
            below += 1
        if not app_before(s.a, w[at + below], i, ties):
            break
        w[at + k] = w[at + below]
        k = below
    w[at + k] = i


@kernel
def _first(s: State, at: int, left: int) -> int:
    """Remove the first element of a heap in work[at:], leaving `left` elements; it is stored behind them."""
    w = s.work
    i, last = w[at], w[at + left]
    if left > 0:
        _sink(s, at, left, 0, last)
    w[at + left] = i
    return i


@kernel
def _fair_starvation(s: State, i: int, now: int) -> int:
    """Update an application's starvation for its fair share (FSAppAttempt.fairShareStarvation).

    Returns _FED (not below its share), _HUNGRY (below it, but not for long enough) or _STARVED.
    """
    x = s.a[i]
    q = s.q[x.q]
    threshold = np.float64(q.fair_threshold)
    mb = min(to_long(x.fair_mb * threshold), x.demand_mb)
    vcores = min(to_long(x.fair_vcores * threshold), x.demand_vcores)
    starved = compare(s, q.policy, x.usage_mb, x.usage_vcores, mb, vcores, True) < 0
    if not starved:
        x.last_at_fair_ms = now
    if not starved or now - x.last_at_fair_ms < q.fair_timeout_ms:
        x.fstarve_mb, x.fstarve_vcores = 0, 0
    else:
        x.fstarve_mb, x.fstarve_vcores = max(mb - x.usage_mb, 0), max(vcores - x.usage_vcores, 0)
    if x.fstarve_mb != 0 or x.fstarve_vcores != 0:
        return _STARVED
    return _HUNGRY if starved else _FED


@kernel
def _foremost(s: State, leaf: int, at: int, n: int) -> int:
    """Return the first in order of n applications of a leaf in work[at:], or -1.

    If n is all of them, use the leaf's heaps.
    """
    q, w = s.q[leaf], s.work
    ties = s.g[0].mutations & MUT_TIES == 0
    if n == 0:
        return -1
    first = w[at]
    if n == q.heap0_n + q.heap1_n:
        if q.heap0_n > 0 and q.heap1_n > 0 and app_before(s.a, w[at + q.heap0_n], first, ties):
            first = w[at + q.heap0_n]
        return first
    for k in range(1, n):
        if app_before(s.a, w[at + k], first, ties):
            first = w[at + k]
    return first


@kernel
def _content(s: State, i: int) -> None:
    """Mark an application as not starved for the leaf's minimum share."""
    x = s.a[i]
    if x.mstarve_mb != 0 or x.mstarve_vcores != 0:
        x.mstarve_mb, x.mstarve_vcores = 0, 0
        place(s, i)


@kernel
def _starved_of_leaf(s: State, leaf: int, now: int, base: int, at: int) -> None:
    """Queue the starved applications of a leaf (FSLeafQueue.updateStarvedApps)."""
    q = s.q[leaf]
    w = s.work
    # Applications with demand whose next check is due, as a heap in the policy's order.
    n, later_ms = 0, _NEVER
    for which in range(2):
        off, size = (q.heap_off, q.heap0_n) if which == 0 else (q.heap_off + q.heap_cap, q.heap1_n)
        for k in range(off, off + size):
            next_ms = s.a[s.heap[k]].next_check_ms
            if now >= next_ms:
                w[at + n] = s.heap[k]
                n += 1
            else:
                later_ms = min(later_ms, next_ms)
    mb = max(min(q.min_mb, q.demand_mb) - q.usage_mb, 0)
    vcores = max(min(q.min_vcores, q.demand_vcores) - q.usage_vcores, 0)
    at_min = mb == 0 and vcores == 0
    if at_min:
        q.last_at_min_ms = now
    if now - q.last_at_min_ms < q.min_timeout_ms:
        mb, vcores = 0, 0
    first = _foremost(s, leaf, at, n)
    found = _FED if first < 0 else (_fair_starvation(s, first, now) if mb == 0 and vcores == 0 else _STARVED)
    if found != _STARVED:
        for k in range(n):
            _content(s, w[at + k])
        # Until something changes or a check becomes due, every further check would have this result. It would only
        # store the time for the minimum share and for the first application; `invalidate` stores these times later.
        s.seat[leaf].calm_until_ms = later_ms
        if first < 0:
            s.seat[leaf].calm = 1 if at_min else -1
        elif at_min and found == _FED:
            s.seat[leaf].calm = first + 2
        return
    for k in range(n // 2 - 1, -1, -1):
        _sink(s, at, n, k, w[at + k])
    left, lined_up = n, 0
    fair_mb, fair_vcores = 0, 0
    while left > 0:
        left -= 1
        i = _first(s, at, left)
        if _fair_starvation(s, i, now) != _STARVED:
            break
        _line_up(s, base, i)
        lined_up += 1
        fair_mb += s.a[i].fstarve_mb
        fair_vcores += s.a[i].fstarve_vcores
    mb, vcores = max(mb - fair_mb, 0), max(vcores - fair_vcores, 0)
    for k in range(n):
        wanted = mb != 0 or vcores != 0
        if wanted and n - k <= left:
            left -= 1
            _first(s, at, left)
        x = s.a[w[at + n - 1 - k]]
        had_mb, had_vcores = x.mstarve_mb, x.mstarve_vcores
        if not wanted:
            _content(s, w[at + n - 1 - k])
        else:
            want_mb = max(x.demand_mb - x.usage_mb - x.fstarve_mb, 0)
            want_vcores = max(x.demand_vcores - x.usage_vcores - x.fstarve_vcores, 0)
            if compare(s, q.policy, want_mb, want_vcores, mb, vcores, False) > 0:
                want_mb, want_vcores = max(want_mb - mb, 0), max(want_vcores - vcores, 0)
                mb, vcores = 0, 0
            else:
                mb, vcores = max(mb - want_mb, 0), max(vcores - want_vcores, 0)
            x.mstarve_mb, x.mstarve_vcores = want_mb, want_vcores
            if k >= lined_up:
                _line_up(s, base, w[at + n - 1 - k])
            if x.mstarve_mb != had_mb or x.mstarve_vcores != had_vcores:
                place(s, w[at + n - 1 - k])


@kernel
def find_starved(s: State, now: int) -> None:
    """Run the second half of FairScheduler.update: queue all starved applications."""
    g = s.g[0]
    g.heap_top = 0
    if _wanted(s):
        base = len(s.work) // 2
        for k in range(g.n_leaves):
            e = s.seat[s.leaves[k]]
            if e.calm == 0 or now >= e.calm_until_ms:
                invalidate(s, s.leaves[k])
                _starved_of_leaf(s, s.leaves[k], now, base, base // 2)
        g.starve_ms = now
