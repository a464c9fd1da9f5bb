"""Order of applications: the comparators of the scheduling policies, and the heaps that keep a leaf's order.

Follows FairSharePolicy, DominantResourceFairnessPolicy (two resources), FifoPolicy of Hadoop 3.4.2. Hadoop sorts all
applications with demand into a TreeSet at each assignment; here each leaf keeps two heaps under the same comparator,
one of applications that may get containers and one of applications whose AM does not run yet. The first element of
Hadoop's TreeSet is at the top of one of the two.

Applications without an outstanding ask are not in the heaps. Hadoop may try them because of an outdated demand, but
they get nothing.
"""

from __future__ import annotations

import numpy as np

from harness.sim.arrays import Column
from harness.sim.calculator import dominant_compare, top_share
from harness.sim.fair.state import DRF, FAIR, MUT_STALE, MUT_TIES, AppRecord, State
from harness.sim.fair.turns import invalidate, seat
from harness.sim.kernel import kernel


@kernel
def app_before(a: Column[AppRecord], i: int, j: int, ties: bool) -> bool:
    """Return whether application i is tried before j of the same leaf (by keys, then start time, then name)."""
    x, y = a[i], a[j]
    if x.k0 != y.k0:
        return x.k0 < y.k0
    if x.k1 != y.k1:
        return x.k1 < y.k1
    if ties:
        if x.start_ms != y.start_ms:
            return x.start_ms < y.start_ms
        return x.name_key < y.name_key
    return x.name_key > y.name_key


@kernel
def _up(a: Column[AppRecord], heap: Column[int], off: int, pos: int, ties: bool) -> int:
    i = heap[off + pos]
    while pos > 0:
        above = (pos - 1) >> 1
        j = heap[off + above]
        if not app_before(a, i, j, ties):
            break
        heap[off + pos] = j
        a[j].heap_pos = pos
        pos = above
    heap[off + pos] = i
    a[i].heap_pos = pos
    return pos


@kernel
def _second_first(a: Column[AppRecord], i: int, j: int, ties: bool) -> int:
    """Return whether application j is tried before i, as 0 or 1; without branches, which a processor cannot predict."""
    x, y = a[i], a[j]
    same0, same1, same2 = x.k0 == y.k0, x.k1 == y.k1, (x.start_ms == y.start_ms) & ties
    named = ((y.name_key < x.name_key) & ties) | ((y.name_key > x.name_key) & (not ties))
    timed = (y.start_ms < x.start_ms) & ties
    last = timed | ((same2 | (not ties)) & named)
    return int((y.k0 < x.k0) | (same0 & ((y.k1 < x.k1) | (same1 & last))))


@kernel
def _down(a: Column[AppRecord], heap: Column[int], off: int, n: int, pos: int, ties: bool) -> None:
    i = heap[off + pos]
    while True:
        below = 2 * pos + 1
        if below >= n:
            break
        if below + 1 < n:
            below += _second_first(a, heap[off + below], heap[off + below + 1], ties)
        j = heap[off + below]
        if not app_before(a, j, i, ties):
            break
        heap[off + pos] = j
        a[j].heap_pos = pos
        pos = below
    heap[off + pos] = i
    a[i].heap_pos = pos


@kernel
def heap_insert(s: State, i: int, which: int) -> None:
    """Insert application i into one of its leaf's heaps (0 ready, 1 waiting for its AM); it must be in neither."""
    ties = s.g[0].mutations & MUT_TIES == 0
    q = s.q[s.a[i].q]
    if which == 0:
        off, n = q.heap_off, q.heap0_n
        q.heap0_n = n + 1
    else:
        off, n = q.heap_off + q.heap_cap, q.heap1_n
        q.heap1_n = n + 1
    s.heap[off + n] = i
    s.a[i].heap = which
    _up(s.a, s.heap, off, n, ties)


@kernel
def heap_remove(s: State, i: int) -> None:
    """Remove application i from its heap."""
    ties = s.g[0].mutations & MUT_TIES == 0
    x = s.a[i]
    q = s.q[x.q]
    if x.heap == 0:
        off, n = q.heap_off, q.heap0_n - 1
        q.heap0_n = n
    else:
        off, n = q.heap_off + q.heap_cap, q.heap1_n - 1
        q.heap1_n = n
    pos = x.heap_pos
    x.heap = -1
    if pos != n:
        s.heap[off + pos] = s.heap[off + n]
        if _up(s.a, s.heap, off, pos, ties) == pos:
            _down(s.a, s.heap, off, n, pos, ties)


@kernel
def _set_keys(s: State, i: int) -> int:
    """Set the key of an application; return -1 if it decreased, 1 if it increased, 0 if it is unchanged."""
    g, x = s.g[0], s.a[i]
    q = s.q[x.q]
    k0, k1 = x.k0, x.k1
    if q.policy == FAIR:
        x.k0 = 1.0 if x.demand_mb == 0 and g.hadoop_2_2 == 0 else 0.0
        x.k1 = x.usage_mb / np.float64(x.weight) if x.weight > 0 else np.float64(x.usage_mb)
        if g.hadoop_2_2 == 1 and x.weight > 0:
            x.k1 = np.float64(np.float32(x.usage_mb) / np.float32(x.weight))  # it divides an int by a float
    elif q.policy == DRF:
        mb = x.usage_mb / g.cluster_mb if g.cluster_mb > 0 else 0.0
        vcores = x.usage_vcores / g.cluster_vcores if g.cluster_vcores > 0 else 0.0
        weight = np.float64(x.weight) if x.weight > 0 else 1e-300
        if vcores > mb:
            x.k0, x.k1 = vcores / weight, mb / weight
        else:
            x.k0, x.k1 = mb / weight, vcores / weight
    else:
        x.k0, x.k1 = 0.0, 0.0
    if x.k0 == k0 and x.k1 == k1:
        return 0
    return -1 if x.k0 < k0 or (x.k0 == k0 and x.k1 < k1) else 1


@kernel
def _set_reservable(s: State, i: int, present: bool) -> None:
    """Update whether application i may reserve a node, and the counts of such applications.

    Without such applications, heartbeats of full nodes can be skipped.
    """
    from_before = s.a[i].reservable
    x = s.a[i]
    now_is = 0
    if present and s.g[0].reservations_allowed > x.n_reserved:
        r = x.req_head
        while r >= 0:
            ask = s.r[r]
            if compare(s, s.q[x.q].policy, ask.mb, ask.vcores, s.g[0].reserve_mb, s.g[0].reserve_vcores, False) >= 0:
                now_is = 1 if s.g[0].hadoop_2_2 == 1 or is_starved(s, i) else 0
                break
            r = ask.next
    if now_is != from_before:
        x.reservable = now_is
        s.g[0].n_reservable += now_is - from_before
        s.q[x.q].n_reservable += now_is - from_before


@kernel
def place(s: State, i: int) -> None:
    """Update application i's position in its leaf's heaps after any change of the application."""
    ties = s.g[0].mutations & MUT_TIES == 0
    x = s.a[i]
    invalidate(s, x.q)
    if s.g[0].mutations & MUT_STALE:
        s.q[x.q].sum_mb += x.usage_mb + x.pending_mb - x.demand_mb
        s.q[x.q].sum_vcores += x.usage_vcores + x.pending_vcores - x.demand_vcores
        x.demand_mb, x.demand_vcores = x.usage_mb + x.pending_mb, x.usage_vcores + x.pending_vcores
    want = -1
    if (
        x.alive == 1
        and x.runnable == 1
        and x.n_asks > 0
        and (s.g[0].hadoop_2_2 == 1 or x.demand_mb != x.usage_mb or x.demand_vcores != x.usage_vcores)
    ):
        want = 1 if x.managed == 1 and x.am_running == 0 else 0
    before = s.q[x.q].n_reservable
    if x.reservable == 1 or (want >= 0 and s.g[0].reservations_allowed > 0):
        _set_reservable(s, i, want >= 0)
    had = x.heap
    if want < 0 and had < 0:
        if before != s.q[x.q].n_reservable:
            seat(s, x.q)
        return
    if had >= 0 and had != want:
        heap_remove(s, i)
    if want >= 0:
        moved = _set_keys(s, i)
        if had != want:
            heap_insert(s, i, want)
        elif moved != 0:
            q = s.q[x.q]
            off, n = (q.heap_off, q.heap0_n) if want == 0 else (q.heap_off + q.heap_cap, q.heap1_n)
            if moved < 0:
                _up(s.a, s.heap, off, x.heap_pos, ties)
            else:
                _down(s.a, s.heap, off, n, x.heap_pos, ties)
    if (had < 0) != (want < 0):
        change = 1 if want >= 0 else -1
        p = x.q
        while p >= 0:
            s.q[p].n_cand += change
            p = s.q[p].parent
    if had != want or (before > 0) != (s.q[x.q].n_reservable > 0):
        seat(s, x.q)


@kernel
def place_all(s: State, leaf: int) -> None:
    """Call `place` for every runnable application of a leaf, after a change of a share, the cluster or the policy."""
    i = s.q[leaf].run_head
    while i >= 0:
        place(s, i)
        i = s.a[i].run_next


@kernel
def _sign(x: float) -> int:
    """Return (int) Math.signum(x), which is 0 for NaN."""
    return 1 if x > 0 else (-1 if x < 0 else 0)


@kernel
def compare(s: State, policy: int, mb: int, vcores: int, other_mb: int, other_vcores: int, single: bool) -> int:
    """Compare two resources (MB, vcores) by a queue's policy; return a number below, equal to or above 0.

    The policies compare memory, except for drf, which compares dominant shares and then the other shares (`single`:
    dominant shares only).
    """
    g = s.g[0]
    if policy != DRF:
        return 1 if mb > other_mb else (-1 if mb < other_mb else 0)
    if single and (g.cluster_mb != 0 or g.cluster_vcores != 0):
        top = top_share(mb, vcores, g.cluster_mb, g.cluster_vcores)
        return _sign(top - top_share(other_mb, other_vcores, g.cluster_mb, g.cluster_vcores))
    return dominant_compare(g.cluster_mb, g.cluster_vcores, mb, vcores, other_mb, other_vcores)


@kernel
def is_starved(s: State, i: int) -> bool:
    """Return whether an application is below its fair share of the last update, or starved for the minimum share.

    Follows FSAppAttempt.isStarved.
    """
    x = s.a[i]
    if x.mstarve_mb != 0 or x.mstarve_vcores != 0:
        return True
    return compare(s, s.q[x.q].policy, x.usage_mb, x.usage_vcores, x.fair_mb, x.fair_vcores, True) < 0
