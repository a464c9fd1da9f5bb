"""Limits of a queue's allocation: maxima of resources, AM shares, and the asks known at the last update.

Follows FSQueue.fitsInMaxShare, FSLeafQueue.canRunAppAM and fetchAppsWithDemand, and FSAppAttempt.isOverAMShareLimit of
Hadoop 3.4.2. The plugin in the ResourceManager has a corresponding method (yarn-policy/, LeafView.mayGrow).
"""

from __future__ import annotations

import numpy as np

from harness.sim.fair.state import DRF, State
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel


@kernel
def within_max(s: State, p: int) -> bool:
    """Return whether a queue does not exceed its maximum."""
    q = s.q[p]
    return q.usage_mb <= q.max_mb and q.usage_vcores <= q.max_vcores


@kernel
def fits_in_max(s: State, leaf: int, mb: int, vcores: int) -> bool:
    """Return whether the leaf and its ancestors stay within their maxima with a further container (MB, vcores).

    Follows FSQueue.fitsInMaxShare. Hadoop 2.2 only checks that they do not exceed their maxima before it
    (FSQueue.assignContainerPreCheck there).
    """
    if s.g[0].hadoop_2_2 == 1:
        mb, vcores = 0, 0
    p = leaf
    while p >= 0:
        q = s.q[p]
        if q.usage_mb + mb > q.max_mb or q.usage_vcores + vcores > q.max_vcores:
            return False
        p = q.parent
    return True


@kernel
def can_run_am(s: State, leaf: int, mb: int, vcores: int) -> bool:
    """Return whether one more AM (MB, vcores) keeps the queue within its maxAMShare (FSLeafQueue.canRunAppAM)."""
    q = s.q[leaf]
    if abs(q.max_am_share - single(-1.0)) < 0.0001:
        return True
    limit_mb, limit_vcores = q.fair_mb, q.fair_vcores
    if limit_mb == 0:
        limit_mb = min(s.g[0].avail_mb, q.max_mb)
    if limit_vcores == 0:
        limit_vcores = min(s.g[0].avail_vcores, q.max_vcores)
    share = np.float64(q.max_am_share)
    return q.am_mb + mb <= to_long(np.ceil(limit_mb * share)) and q.am_vcores + vcores <= to_long(
        np.ceil(limit_vcores * share)
    )


@kernel
def over_am_share(s: State, i: int) -> bool:
    """Return whether the AM share does not admit an application's AM, which is its first ask.

    Also True if that ask is for 0 containers. Follows FSAppAttempt.isOverAMShareLimit.
    """
    x = s.a[i]
    if x.managed == 0 or x.am_running == 1 or x.req_head < 0:
        return False
    ask = s.r[x.req_head]
    return ask.count == 0 or not can_run_am(s, x.q, ask.mb, ask.vcores)


@kernel
def _am_held(s: State, leaf: int) -> bool:
    """Return whether all of the leaf's applications wait for an AM, and the AM share surely admits none of them."""
    q = s.q[leaf]
    if q.heap0_n > 0 or abs(q.max_am_share - single(-1.0)) < 0.0001:
        return False
    share = np.float64(q.max_am_share)
    return (q.fair_mb != 0 and q.am_min_mb > to_long(np.ceil(q.fair_mb * share)) - q.am_mb) or (
        q.fair_vcores != 0 and q.am_min_vcores > to_long(np.ceil(q.fair_vcores * share)) - q.am_vcores
    )


@kernel
def is_open(s: State, k: int) -> bool:
    """Return whether limits allow some ask below a queue to be served."""
    q = s.q[k]
    more_mb, more_vcores = q.ask_min_mb, q.ask_min_vcores
    if s.g[0].hadoop_2_2 == 1:
        more_mb, more_vcores = 0, 0  # see `fits_in_max`
    return (
        (q.leaf == 0 or q.n_cand > 0)
        and more_mb <= q.max_mb - q.usage_mb
        and more_vcores <= q.max_vcores - q.usage_vcores
        and not (q.leaf == 1 and _am_held(s, k))
    )


@kernel
def may_grow(s: State, leaf: int) -> bool:
    """Return whether a leaf would get a container now if some node had room for its asks.

    False if each of its applications with asks is blocked by a limit of running applications or of AMs, has asked only
    since the last update, or asks for more than the maxima of the leaf and its ancestors allow.
    """
    if not is_open(s, leaf):
        return False
    q = s.q[leaf]
    for at in range(q.heap0_n + q.heap1_n):
        i = s.heap[q.heap_off + at if at < q.heap0_n else q.heap_off + q.heap_cap + at - q.heap0_n]
        if over_am_share(s, i):
            continue
        r = s.a[i].req_head
        while r >= 0:
            if s.r[r].count > 0 and fits_in_max(s, leaf, s.r[r].mb, s.r[r].vcores):
                return True
            r = s.r[r].next
    return False


@kernel
def headroom(s: State, i: int) -> tuple[int, int, int]:
    """Return an application's headroom (MB, vcores), and 1 because the Fair Scheduler counts vcores.

    Follows FSAppAttempt.getHeadroom, the policies' getHeadroom, and getSchedulingResourceTypes.
    """
    g, q = s.g[0], s.q[s.a[i].q]
    mb = min(g.cluster_mb - g.alloc_mb, q.max_mb - q.usage_mb)
    vcores = min(g.cluster_vcores - g.alloc_vcores, q.max_vcores - q.usage_vcores)
    mb = min(mb, max(q.fair_mb - q.usage_mb, 0))
    if q.policy == DRF:
        vcores = min(vcores, max(q.fair_vcores - q.usage_vcores, 0))
    return mb, vcores, 1
