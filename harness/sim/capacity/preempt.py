"""Preemption: selects containers of queues above their share, and kills them after a waiting time.

Follows ProportionalCapacityPreemptionPolicy, ReservedContainerCandidatesSelector, FifoCandidatesSelector,
CapacitySchedulerPreemptionUtils of Hadoop 3.4.2. In each round (`edit`), selectors choose containers one after the
other. A container that was marked long enough ago and is chosen again is killed.

Chosen items are stored in the scratch array ``pw`` (`ideal.scratch`): a container as its slot, a reservation as -1
minus the slot of its node.
"""

from __future__ import annotations

import numpy as np

from harness.sim.attempts import complete, give_back
from harness.sim.capacity.containers import drop_reservation
from harness.sim.capacity.ideal import compute_ideal, look_at_queues, scratch
from harness.sim.capacity.order import app_before, look_at_stale
from harness.sim.capacity.resources import compare, compare_in, fits, positive, ratio, times
from harness.sim.capacity.state import (
    FAILED,
    KILLED,
    MARKED,
    MUT_AMLAST,
    MUT_HASHORDER,
    MUT_PERROUND,
    MUT_PREEMPT,
    NEED_ROOM,
    PREEMPTED,
    RESERVATION_KILLED,
    VICTIM,
    State,
)
from harness.sim.containers import app_hash, free_if_gone, log, log_container
from harness.sim.kernel import kernel

_LONG_MAX = 2**63 - 1
_MASK = 0xFFFFFFFF

# Regions of the scratch array; `_KEYS` takes the space of two regions.
_HEAP, _APPS, _AMS, _NODES, _RESERVED, _CHOSEN, _KEYS, _ATTEMPTS, _COUNTS, _PLACES = 0, 2, 3, 4, 5, 6, 7, 9, 10, 11
REGIONS = 12

# Keys by which a heap is ordered.
_BY_TURN, _BY_KEY, _BY_ID, _BY_NUMBER = 0, 1, 2, 3


# --- heaps in the scratch array; the last element comes first


@kernel
def _after(s: State, by: int, x: int, y: int) -> bool:
    """Return whether x precedes y in a heap, which is so if x follows y in Hadoop's ascending order."""
    if by == _BY_TURN:
        return app_before(s, y, x)
    if by == _BY_NUMBER:
        return x > y
    c, d = s.c[x], s.c[y]
    if by == _BY_KEY:
        if c.priority != d.priority:
            return c.priority > d.priority
        if c.alloc_id != d.alloc_id:
            return c.alloc_id > d.alloc_id
    if c.app_id != d.app_id:
        return c.app_id > d.app_id
    if c.attempt != d.attempt:
        return c.attempt > d.attempt
    return c.cid > d.cid


@kernel
def _sift(s: State, by: int, at: int, n: int, place: int) -> None:
    w = s.pw
    x = w[at + place]
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and _after(s, by, w[at + child + 1], w[at + child]):
            child += 1
        if not _after(s, by, w[at + child], x):
            break
        w[at + place] = w[at + child]
        place = child
    w[at + place] = x


@kernel
def _heapify(s: State, by: int, at: int, n: int) -> None:
    for place in range(n // 2 - 1, -1, -1):
        _sift(s, by, at, n, place)


@kernel
def _pop(s: State, by: int, at: int, n: int) -> int:
    """Remove and return the first element of a heap of n elements."""
    w = s.pw
    first = w[at]
    w[at] = w[at + n - 1]
    _sift(s, by, at, n - 1, 0)
    return first


@kernel
def _sort(s: State, at: int, n: int) -> None:
    """Sort numbers in place, ascending."""
    _heapify(s, _BY_NUMBER, at, n)
    for left in range(n, 1, -1):
        s.pw[at + left - 1] = _pop(s, _BY_NUMBER, at, left)


# --- hash tables


@kernel
def _bucket(s: State, h: int, n: int) -> int:
    """Return the bucket of a key in a java.util.HashMap to which n entries were added one by one."""
    cap = 16
    while 4 * n > 3 * cap:
        cap *= 2
    return (h ^ (h >> 16)) & (cap - 1) if s.g[0].mutations & MUT_HASHORDER == 0 else 0


@kernel
def _identity(s: State, one: int) -> tuple[int, int, int]:
    """Return the application, the attempt and the number of a container or reservation."""
    if one >= 0:
        x = s.c[one]
        return x.app_id, x.attempt, x.cid
    node = s.n[-1 - one]
    a = s.a[node.res_app]
    return a.id, a.attempt, node.res_cid


@kernel
def _attempt_hash(s: State, app_id: int, attempt: int) -> int:
    """Return ApplicationAttemptId.hashCode as an unsigned 32-bit number."""
    return ((347671 * ((347671 * 5501 + app_hash(s, app_id)) & _MASK)) + attempt) & _MASK


@kernel
def _by_hash(s: State, first: int, end: int) -> int:
    """List the items chosen from `first` to `end` in the order of a Map<ApplicationAttemptId, Set<RMContainer>>.

    The sorted keys are stored behind the result; the lower 24 bits of a key are the index of the item.
    """
    w = s.pw
    chosen, keys = scratch(s, _CHOSEN), scratch(s, _KEYS)
    attempts, counts, places = scratch(s, _ATTEMPTS), scratch(s, _COUNTS), scratch(s, _PLACES)
    n = 0
    for k in range(first, end):
        app_id, attempt, _ = _identity(s, w[chosen + k])
        j = n - 1
        while j >= 0:
            of_id, of_attempt, _ = _identity(s, w[attempts + j])
            if of_id == app_id and of_attempt == attempt:
                break
            j -= 1
        if j < 0:
            j = n
            w[attempts + j], w[counts + j] = w[chosen + k], 0
            n += 1
        w[counts + j] += 1
        w[keys + k] = j
    for j in range(n):
        app_id, attempt, _ = _identity(s, w[attempts + j])
        w[places + j] = (_bucket(s, _attempt_hash(s, app_id, attempt), n) << 24) | j
    _sort(s, places, n)
    for place in range(n):
        w[attempts + (w[places + place] & 0xFFFFFF)] = place
    for k in range(first, end):
        j = w[keys + k]
        app_id, attempt, cid = _identity(s, w[chosen + k])
        h = (31 * ((cid ^ (cid >> 32)) & _MASK) + _attempt_hash(s, app_id, attempt)) & _MASK
        w[keys + k] = (w[attempts + j] << 44) | (_bucket(s, h, w[counts + j]) << 24) | k
    _sort(s, keys + first, end - first)
    return keys + first


# --- choosing


@kernel
def _is_chosen(s: State, c: int) -> bool:
    return s.m[c].serial == s.c[c].serial and s.m[c].round == s.g[0].round


@kernel
def _is_chosen_there(s: State, ni: int, n: int) -> bool:
    """Return whether a node's reservation is among the n chosen items."""
    at = scratch(s, _CHOSEN) + n - 1
    while at >= scratch(s, _CHOSEN) and s.pw[at] != -1 - ni:
        at -= 1
    return at >= scratch(s, _CHOSEN)


@kernel
def _leaf_of(s: State, c: int) -> int:
    """Return the leaf of a container on a node; its application may have ended."""
    return s.a[s.c[c].app].q if s.c[c].live == 1 else s.m[c].q


@kernel
def _choose(s: State, one: int, n: int) -> None:
    """Record a container or a reservation as the n-th choice of this round."""
    s.pw[scratch(s, _CHOSEN) + n] = one
    if one >= 0:
        m = s.m[one]
        if m.serial != s.c[one].serial:
            m.serial, m.since = s.c[one].serial, -1
        m.round = s.g[0].round


@kernel
def _try(s: State, k: int, one: int, mb: int, vcores: int, n: int) -> int:
    """Choose a container or reservation of leaf k if the leaf must still lose resources; return the new value of `n`.

    Follows CapacitySchedulerPreemptionUtils.tryPreemptContainerAndDeductResToObtain.
    """
    g, p = s.g[0], s.p[k]
    if p.obtain_mb == 0:
        p.obtain_mb = -1
    if p.obtain_vcores == 0:
        p.obtain_vcores = -1
    if not positive(s, p.obtain_mb, p.obtain_vcores) or not fits(s, mb, vcores, g.allowed_mb, g.allowed_vcores):
        return n
    if g.conservative == 1:
        if p.obtain_mb <= 0 or (g.drf == 1 and p.obtain_vcores <= 0):
            return n
    else:
        left_mb, left_vcores = max(p.obtain_mb - mb, 0), max(p.obtain_vcores - vcores, 0)
        if compare(s, left_mb, left_vcores, max(p.obtain_mb, 0), max(p.obtain_vcores, 0)) >= 0:
            return n
    p.obtain_mb -= mb
    p.obtain_vcores -= vcores
    g.allowed_mb -= mb
    g.allowed_vcores -= vcores
    if compare(s, p.obtain_mb, p.obtain_vcores, 0, 0) <= 0:
        p.obtains = 0
    _choose(s, one, n)
    return n + 1


@kernel
def _reservations(s: State, i: int) -> int:
    """Write an application's reserved nodes to the scratch array in Hadoop's hash order; return the number."""
    w, at, keys = s.pw, scratch(s, _RESERVED), scratch(s, _KEYS)
    n_keys, h = 0, s.a[i].held_head
    while h >= 0:
        n_keys += 1
        h = s.h[h].next
    n, h = 0, s.a[i].held_head
    while h >= 0:
        e = s.h[h]
        folded = (e.alloc_id ^ (e.alloc_id >> 32)) & _MASK
        code = (961 * ((517861 * 9511 + e.priority) & _MASK) + 31 * folded) & _MASK
        outer = _bucket(s, code, n_keys)
        # Keys in the same bucket are in order of time.
        earlier, d = 0, s.a[i].held_head
        while d >= 0:
            if s.h[d].seq < e.seq:
                earlier += 1
            d = s.h[d].next
        turn, ni = 0, e.head
        while ni >= 0:
            inner = (s.n[ni].hash ^ (s.n[ni].hash >> 16)) & (e.cap - 1)
            w[keys + 2 * n] = (outer << 32) | earlier
            w[keys + 2 * n + 1] = (inner << 32) | turn
            w[at + n] = ni
            k = n
            while k > 0 and (
                w[keys + 2 * k - 2] > w[keys + 2 * k]
                or (w[keys + 2 * k - 2] == w[keys + 2 * k] and w[keys + 2 * k - 1] > w[keys + 2 * k + 1])
            ):
                for place in (keys + 2 * k, keys + 2 * k + 1):
                    before = w[place - 2]
                    w[place - 2] = w[place]
                    w[place] = before
                before = w[at + k - 1]
                w[at + k - 1] = w[at + k]
                w[at + k] = before
                k -= 1
            n += 1
            turn += 1
            ni = s.n[ni].res_next
        h = e.next
    return n


@kernel
def _from_app(s: State, k: int, i: int, n: int, skipped: int, between: int) -> tuple[int, int]:
    """Choose reservations, then containers, of application i; the last key and the latest container come first.

    Follows FifoCandidatesSelector.preemptFrom.

    Parameters
    ----------
    n
        Number of items chosen so far in this round.
    skipped
        Number of AMs of this leaf that were skipped so far.
    between
        Number of items that earlier selectors chose.

    Returns
    -------
    tuple of int
        The new values of `n` and `skipped`.
    """
    g, p, w = s.g[0], s.p[k], s.pw
    n_reserved = _reservations(s, i)
    reserved, killed = scratch(s, _RESERVED), scratch(s, _NODES)
    for at in range(n_reserved):
        if p.obtains == 0:
            return n, skipped
        ni = w[reserved + at]
        if between > 0 and _is_chosen_there(s, ni, n):
            continue
        n = _try(s, k, -1 - ni, s.n[ni].res_mb, s.n[ni].res_vcores, n)
        if g.observe == 0:
            w[killed + 1 + w[killed]] = ni
            w[killed] += 1
    heap, ams, n_live = scratch(s, _HEAP), scratch(s, _AMS), 0
    c = s.a[i].live_head
    while c >= 0:
        w[heap + n_live] = c
        n_live += 1
        c = s.c[c].a_next
    _heapify(s, _BY_KEY, heap, n_live)
    for left in range(n_live, 0, -1):
        if p.obtains == 0:
            return n, skipped
        c = _pop(s, _BY_KEY, heap, left)
        x = s.c[c]
        if _is_chosen(s, c):
            continue
        if x.am == 1 and g.mutations & MUT_AMLAST == 0:
            w[ams + skipped] = c
            skipped += 1
            continue
        n = _try(s, k, c, x.mb, x.vcores, n)
    return n, skipped


@kernel
def _from_leaf(s: State, k: int, n: int, between: int) -> int:
    """Choose items of one leaf: latest applications first, AMs last; return the new number of choices.

    Follows FifoCandidatesSelector.
    """
    q, p, w = s.q[k], s.p[k], s.pw
    look_at_stale(s, k)
    p.obtains = 1 if compare(s, p.obtain_mb, p.obtain_vcores, 0, 0) > 0 else 0
    if p.obtains == 0:
        return n
    apps, n_apps = scratch(s, _APPS), 0
    i = q.act_head
    while i >= 0:
        w[apps + n_apps] = i
        n_apps += 1
        i = s.a[i].act_next
    _heapify(s, _BY_TURN, apps, n_apps)
    skipped = 0
    for left in range(n_apps, 0, -1):
        if p.obtains == 0:
            break
        n, skipped = _from_app(s, k, _pop(s, _BY_TURN, apps, left), n, skipped, between)
    mb, vcores = 0, 0
    ams = scratch(s, _AMS)
    for at in range(ams, ams + skipped):
        mb += s.c[w[at]].mb
        vcores += s.c[w[at]].vcores
    most_mb, most_vcores = times(q.eff_mb, q.eff_vcores, q.am_pct)
    for at in range(ams, ams + skipped):
        if p.obtains == 0 or compare(s, mb, vcores, most_mb, most_vcores) <= 0:
            break
        x = s.c[w[at]]
        before = n
        n = _try(s, k, w[at], x.mb, x.vcores, n)
        if n > before:
            mb -= x.mb
            vcores -= x.vcores
    return n


@kernel
def _from_leaves(s: State, n: int) -> int:
    """Choose items of all leaves, after other selectors chose n items; return the new number of choices.

    Follows FifoCandidatesSelector.selectCandidates.
    """
    others = n
    for at in range(s.g[0].n_leaves):
        if s.p[s.takes[at]].disabled == 0:
            n = _from_leaf(s, s.takes[at], n, others)
    return n


@kernel
def _deduct(s: State, n: int) -> bool:
    """Subtract the n chosen containers from the amounts that are still to be preempted from their leaves.

    Follows CapacitySchedulerPreemptionUtils.deductPreemptableResourcesBasedSelectedCandidates.
    Returns False where Hadoop throws: containers know their queue by its short name, which several queues may share.
    """
    g, w = s.g[0], s.pw
    if n == 0:
        return True
    chosen, keys = scratch(s, _CHOSEN), _by_hash(s, 0, n)
    for place in range(keys, keys + n):
        one = w[chosen + (w[place] & 0xFFFFFF)]
        if one >= 0:
            ni, k, mb, vcores = s.c[one].node, _leaf_of(s, one), s.c[one].mb, s.c[one].vcores
        else:
            ni = -1 - one
            k, mb, vcores = s.a[s.n[ni].res_app].q, s.n[ni].res_mb, s.n[ni].res_vcores
        if s.n[ni].alive == 0:
            continue
        p = s.p[k]
        if p.nameless == 1:
            return False
        if compare_in(s, g.label_mb, g.label_vcores, p.obtain_mb, p.obtain_vcores, mb, vcores) > 0:
            p.obtain_mb -= mb
            p.obtain_vcores -= vcores
        if compare_in(s, g.label_mb, g.label_vcores, p.obtain_mb, p.obtain_vcores, 0, 0) < 0:
            p.obtain_mb, p.obtain_vcores = 0, 0
    return True


# --- room for reservations


@kernel
def _room_for(s: State, ni: int, n: int, really: bool) -> tuple[bool, float, int]:
    """Choose containers to preempt for a node's reservation.

    Follows ReservedContainerCandidatesSelector.getPreemptionCandidatesOnNode.
    Returns whether the node's reservation could be served, the cost of that, and the new number of choices (`really`).
    """
    g, node, w = s.g[0], s.n[ni], s.pw
    mb, vcores = node.avail_mb, node.avail_vcores
    if fits(s, node.res_mb, node.res_vcores, mb, vcores):
        return False, 0.0, n
    heap, n_here = scratch(s, _HEAP), 0
    c = node.c_head
    while c >= 0:
        w[heap + n_here] = c
        n_here += 1
        c = s.c[c].n_next
    _heapify(s, _BY_ID, heap, n_here)
    cost_mb, cost_vcores, chosen, enough = 0, 0, n, False
    for left in range(n_here, 0, -1):
        c = _pop(s, _BY_ID, heap, left)
        x = s.c[c]
        if x.am == 1:
            continue
        p = s.p[_leaf_of(s, c)]
        # Hadoop does not find a queue whose short name several queues have.
        if p.obtains == 0 or p.nameless == 1 or not fits(s, x.mb, x.vcores, p.obtain_mb, p.obtain_vcores):
            continue
        if not fits(s, x.mb, x.vcores, g.allowed_mb, g.allowed_vcores):
            continue
        if really:
            p.obtain_mb -= x.mb
            p.obtain_vcores -= x.vcores
            g.allowed_mb -= x.mb
            g.allowed_vcores -= x.vcores
        if not _is_chosen(s, c):
            if really:
                w[scratch(s, _CHOSEN) + chosen] = c
                chosen += 1
            cost_mb += x.mb
            cost_vcores += x.vcores
        mb += x.mb
        vcores += x.vcores
        if fits(s, node.res_mb, node.res_vcores, mb, vcores):
            enough = True
            break
    if not enough:
        # Hadoop restores the amount that the queue could lose, but not the amount that this round may still take.
        for at in range(n, chosen):
            c = w[scratch(s, _CHOSEN) + at]
            x, p = s.c[c], s.p[_leaf_of(s, c)]
            p.obtain_mb += x.mb
            p.obtain_vcores += x.vcores
        return False, 0.0, n
    for at in range(n, chosen):
        _choose(s, w[scratch(s, _CHOSEN) + at], at)
    return True, np.float64(ratio(s, cost_mb, cost_vcores, node.res_mb, node.res_vcores)), chosen


@kernel
def _for_reservations(s: State, n: int) -> int:
    """Choose containers that make room for reservations, the cheapest node first; return the new number of choices.

    Follows ReservedContainerCandidatesSelector.
    """
    g, w = s.g[0], s.pw
    for at in range(g.n_leaves):
        p = s.p[s.takes[at]]
        p.obtains = 1 if p.disabled == 0 and compare(s, p.obtain_mb, p.obtain_vcores, 0, 0) > 0 else 0
    cap = 16
    while 4 * g.nodes_peak > 3 * cap:
        cap *= 2
    # Nodes in the order of ClusterNodeTracker's HashMap<NodeId, N>.
    nodes, keys, found = scratch(s, _RESERVED), scratch(s, _KEYS), 0
    for ni in range(len(s.n)):
        node = s.n[ni]
        if node.alive == 0 or node.res_app < 0:
            continue
        possible, cost, _ = _room_for(s, ni, n, False)
        if not possible:
            continue
        key = ((node.hash ^ (node.hash >> 16)) & (cap - 1)) << 32
        key |= node.seq
        k = found
        while k > 0 and (s.cost[k - 1] > cost or (s.cost[k - 1] == cost and w[keys + k - 1] > key)):
            s.cost[k], w[keys + k], w[nodes + k] = s.cost[k - 1], w[keys + k - 1], w[nodes + k - 1]
            k -= 1
        s.cost[k], w[keys + k], w[nodes + k] = cost, key, ni
        found += 1
    for at in range(found):
        _, _, n = _room_for(s, w[nodes + at], n, True)
    return n


# --- a round


@kernel
def _carry_out(s: State, first: int, end: int, wait_ms: int, now: int, kills: int) -> int:
    """Mark the items that one selector has chosen, or kill those that were marked long enough ago.

    Containers to kill are written to the scratch array from `_NODES` on, behind the reservations; returns their number.
    """
    g, w = s.g[0], s.pw
    if first == end:
        return kills
    chosen, keys = scratch(s, _CHOSEN), _by_hash(s, first, end)
    for place in range(keys, keys + end - first):
        one = w[chosen + (w[place] & 0xFFFFFF)]
        if one < 0:
            ni = -1 - one
            e = s.log[log(s, now, VICTIM, s.n[ni].res_app, ni)]
            e.why, e.cid = MARKED, s.n[ni].res_cid
            continue
        m = s.m[one]
        if m.since >= 0 and m.since < g.forgotten_ms:
            m.since = -1
        if m.since < 0:
            m.since = now
            log_container(s, now, VICTIM, one, MARKED)
        elif m.since + wait_ms <= now:
            m.since = -1
            log_container(s, now, VICTIM, one, KILLED)
            w[scratch(s, _APPS) + kills] = one
            kills += 1
    return kills


@kernel
def edit(s: State, now: int) -> int:
    """Run one round of the policy; return how many containers and reservations it ended, NEED_ROOM, or FAILED.

    A failed round has ended reservations at most. As in Hadoop, the monitor tries again in the next round.
    """
    g, w = s.g[0], s.pw
    if len(w) < scratch(s, REGIONS) or len(s.m) < len(s.c) or len(s.cost) < len(s.n):
        return NEED_ROOM
    g.round += 1
    look_at_queues(s)
    g.allowed_mb, g.allowed_vcores = times(g.cluster_mb, g.cluster_vcores, g.per_round)
    if g.mutations & MUT_PERROUND:
        g.allowed_mb, g.allowed_vcores = g.cluster_mb, g.cluster_vcores
    reservations = scratch(s, _NODES)
    w[reservations] = 0
    n = 0
    if g.by_reservations == 1:
        compute_ideal(s, True, False)
        n = _for_reservations(s, n)
    for_room = n
    compute_ideal(s, g.with_reserved == 1, False)
    failed = not _deduct(s, n)
    if not failed:
        n = _from_leaves(s, n)
    between = n
    if g.balance == 1 and not failed:
        compute_ideal(s, False, True)
        failed = not _deduct(s, n)
        if not failed:
            n = _from_leaves(s, n)
    if g.observe == 1 or g.mutations & MUT_PREEMPT:
        return FAILED if failed else 0
    if failed:
        n = 0
    # Only scratch state has changed so far, so the caller can enlarge the arrays and repeat the round.
    chosen, unfetched = scratch(s, _CHOSEN), 0
    for at in range(chosen, chosen + n):
        if w[at] >= 0 and s.c[w[at]].acquired == 0:
            unfetched += 1
    if g.n_log + 2 * n + 2 * w[reservations] > len(s.log) or g.n_free_r < unfetched:
        return NEED_ROOM
    for at in range(1, 1 + w[reservations]):
        ni = w[reservations + at]
        e = s.log[log(s, now, VICTIM, s.n[ni].res_app, ni)]
        e.why, e.cid = RESERVATION_KILLED, s.n[ni].res_cid
    kills = 0
    if not failed:
        kills = _carry_out(s, 0, for_room, g.wait_ms, now, kills)
        kills = _carry_out(s, for_room, between, g.wait_ms, now, kills)
        kills = _carry_out(s, between, n, g.balance_wait_ms if g.balance_wait_ms > 0 else g.wait_ms, now, kills)
        g.forgotten_ms = max(g.forgotten_ms, now - 2 * g.wait_ms)
    for at in range(1, 1 + w[reservations]):
        if s.n[w[reservations + at]].res_app >= 0:
            drop_reservation(s, w[reservations + at], now)
    killed = scratch(s, _APPS)
    for at in range(killed, killed + kills):
        c = w[at]
        if s.c[c].live == 1:
            held_ms = now - s.c[c].start_ms
            g.killed_n += 1
            g.killed_mb_ms += held_ms * s.c[c].mb
            g.killed_vcore_ms += held_ms * s.c[c].vcores
            complete(s, c, PREEMPTED, now, True)
        elif s.c[c].acquired == 0 and s.a[s.c[c].app].alive == 1 and s.a[s.c[c].app].id == s.c[c].app_id:
            # The container has ended since it was marked, and its request was restored then. Hadoop restores it a
            # second time, for the application's current attempt.
            give_back(s, c)
        free_if_gone(s, c)
    return FAILED if failed else kills + w[reservations]


@kernel
def next_round_ms(s: State) -> int:
    """Return the time of the policy's next round, ms; the largest long if preemption is off."""
    g = s.g[0]
    return g.round_ms if g.preemption == 1 else _LONG_MAX


@kernel
def run_rounds(s: State, now: int) -> int:
    """Run all rounds that are due at `now`; return how many containers and reservations they ended, or NEED_ROOM."""
    g = s.g[0]
    killed = 0
    while g.round_ms <= now:
        done = edit(s, now)
        if done == NEED_ROOM:
            return NEED_ROOM
        killed += max(done, 0)
        # A monitor applies a changed interval one round late.
        g.round_ms += g.armed_ms
        g.armed_ms = g.interval_ms
    return killed
