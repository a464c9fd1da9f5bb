"""Accumulated resources of queues and applications, as exact integrals over time, for all schedulers.

This is the compiled version of harness.ledger, and tests compare both. harness.sim.fair.keys computes the queues' keys
from these values. The simulator calls `settle` after each change of a leaf's allocation or asks. Integrals are exact:
at each change they advance with the values since the last settlement.

Sources: LTYARN Algorithms 1 and 2, section 6.2; tang-thesis eqs. (5.7), (5.10)-(5.16).
"""

from __future__ import annotations

import math

from harness.sim import ops
from harness.sim.durations import exp_portable
from harness.sim.kernel import kernel
from harness.sim.longterm_state import DOMINANT, MEMORY
from harness.sim.state import SchedulerState

_LN2 = math.log(2.0)


@kernel
def measured(s: SchedulerState, kind: int, mb: int, vc: int) -> float:
    """Return resources as one number in a measure.

    Parameters
    ----------
    kind
        MEMORY, VCORES or DOMINANT.
    mb, vc
        The resources, MiB and vcores.

    Returns
    -------
    float
        MiB, vcores, or the dominant share of the cluster (0 to 1).
    """
    if kind == MEMORY:
        return float(mb)
    if kind == DOMINANT:
        r = s.xg[0]
        return max(mb / r.r_mb if r.r_mb > 0 else 0.0, vc / r.r_vc if r.r_vc > 0 else 0.0)
    return float(vc)


@kernel
def whole(s: SchedulerState, kind: int) -> float:
    """Return the cluster's capacity in the measure ``kind``: MiB, vcores, or 1.0 for dominant shares."""
    if kind == MEMORY:
        return s.xg[0].r_mb
    if kind == DOMINANT:
        return 1.0
    return s.xg[0].r_vc


@kernel
def weighed(s: SchedulerState, mb: float, vc: float) -> float:
    """Return node-weighted resources (MiB, vcores) in the ledger's measure.

    A dominant share is a share of the weighted cluster.
    """
    xg = s.xg[0]
    if xg.ledger == MEMORY:
        return float(mb)
    if xg.ledger == DOMINANT:
        r_mb, r_vc = xg.r_mb + xg.more_mb, xg.r_vc + xg.more_vc
        return max(mb / r_mb if r_mb > 0.0 else 0.0, vc / r_vc if r_vc > 0.0 else 0.0)
    return float(vc)


@kernel
def counted_whole(s: SchedulerState) -> float:
    """Return the node-weighted capacity of the cluster in the ledger's measure."""
    xg = s.xg[0]
    if xg.ledger == MEMORY:
        return xg.r_mb + xg.more_mb
    if xg.ledger == DOMINANT:
        return 1.0
    return xg.r_vc + xg.more_vc


@kernel
def counted_rate(s: SchedulerState, leaf: int) -> float:
    """Return the rate at which a leaf's allocation is counted: g' of eq. (5.7), in the ledger's measure.

    The allocation beyond S_i counts with the factor eta.
    """
    x, xg = s.x[leaf], s.xg[0]
    if xg.discount == 1.0:
        return x.kg
    due = x.own_share * counted_whole(s)
    return x.kg if x.kg <= due else due + (x.kg - due) * xg.discount


@kernel
def advance(s: SchedulerState, leaf: int, now: int) -> None:
    """Advance a leaf's integrals to `now` (ms) with the allocation and demand since its last settlement."""
    x, xg = s.x[leaf], s.xg[0]
    dt = now - x.t_ms
    if dt <= 0:
        return
    x.acc += dt * x.g
    x.mb_ms += dt * x.mb
    x.vc_ms += dt * x.vc
    total = whole(s, xg.measure)
    x.due += dt * min(x.d, x.share * total)
    x.due_flat += dt * min(x.d, x.flat_share * total)
    since = max(x.t_ms, xg.round_start_ms)
    if now > since:
        rate = counted_rate(s, leaf)
        if xg.half_life_ms > 0.0:
            beta = exp_portable(-_LN2 * (now - since) / xg.half_life_ms)
            x.counted = x.counted * beta + rate * (1.0 - beta) * xg.half_life_ms / _LN2
            x.phi *= beta
        elif xg.part_ms > 0.0:
            _slide(s, leaf, since, now, rate)
        else:
            x.counted += (now - since) * rate
    x.t_ms = now


@kernel
def _slide(s: SchedulerState, leaf: int, since: int, now: int, rate: float) -> None:
    """Count a constant rate from `since` to `now` (ms) in a leaf's sliding window, which then ends at `now`.

    Compiled version of harness.ledger.decay.
    """
    x, part_ms = s.x[leaf], s.xg[0].part_ms
    ring = s.win.shape[1]
    ahead = math.floor(now / part_ms) - x.win_at
    if rate == 0.0 and ahead > ring:
        for i in range(ring):
            s.win[leaf, i] = 0.0
        x.win_at += ahead
        since = now
    at = float(since)
    while True:
        end = (x.win_at + 1) * part_ms
        stop = min(float(now), end)
        if stop > at:
            s.win[leaf, x.win_at % ring] += (stop - at) * rate
            at = stop
        if now < end:
            break
        x.win_at += 1
        s.win[leaf, x.win_at % ring] = 0.0
    total = 0.0
    for i in range(ring):
        total += s.win[leaf, i]
    into = (now - x.win_at * part_ms) / part_ms
    x.counted = max(total - s.win[leaf, (x.win_at + 1) % ring] * min(max(into, 0.0), 1.0), 0.0)


@kernel
def roll_rounds(s: SchedulerState, now: int) -> None:
    """Begin a new round if one is due (eq. 5.12): reset counted resources and treat active leaves as just arrived."""
    xg = s.xg[0]
    if xg.own_end_ms > 0:
        _roll_own_rounds(s, now)
    if xg.round_ms == 0 or now < xg.round_end_ms:
        return
    rounds = (now - xg.round_end_ms) // xg.round_ms + 1
    begins = xg.round_end_ms + (rounds - 1) * xg.round_ms
    for i in range(s.g[0].n_leaves):
        leaf = s.leaves[i]
        x = s.x[leaf]
        advance(s, leaf, begins)
        x.counted = 0.0
        x.phi = 0.0
        x.arrived = 1 if x.d > 0 else 0
    for i in range(xg.n):
        s.x[i].base = 0.0
    xg.round_start_ms = begins
    xg.round_end_ms = begins + xg.round_ms
    for i in range(s.g[0].n_leaves):
        ops.counted_anew(s, s.leaves[i])


@kernel
def _roll_own_rounds(s: SchedulerState, now: int) -> None:
    """Begin the rounds that are due of queues with their own round length.

    The children of such a queue are compared by the resources counted since its round began.
    """
    xg = s.xg[0]
    while xg.own_end_ms <= now:
        begins = xg.own_end_ms
        for i in range(s.g[0].n_leaves):
            leaf = s.leaves[i]
            advance(s, leaf, begins)
            s.x[leaf].sum = s.x[leaf].counted + s.x[leaf].phi
        sum_up(s)
        soonest = begins
        for p in range(xg.n):
            at = s.x[p]
            if at.own_round_ms == 0:
                continue
            if at.own_end_ms == begins:
                for child in range(xg.n):
                    if s.q[child].parent == p:
                        s.x[child].base = s.x[child].sum
                at.own_end_ms += at.own_round_ms
            if soonest == begins or at.own_end_ms < soonest:
                soonest = at.own_end_ms
        xg.own_end_ms = soonest


@kernel
def total_of(s: SchedulerState, leaf: int, now: int) -> float:
    """Return f_i(now) of eq. (5.13), in the ledger's measure times ms.

    It is the sum of counted resources, pseudo resources, and the assumed future use of running tasks.
    """
    x, xg = s.x[leaf], s.xg[0]
    since = max(x.t_ms, xg.round_start_ms)
    if now > since and xg.part_ms > 0.0:
        advance(s, leaf, now)
        since = now
    total = x.counted + x.phi
    if now > since:
        rate = counted_rate(s, leaf)
        if xg.half_life_ms > 0.0:
            beta = exp_portable(-_LN2 * (now - since) / xg.half_life_ms)
            total = total * beta + rate * (1.0 - beta) * xg.half_life_ms / _LN2
        else:
            total += (now - since) * rate
    if x.ahead_b > 0.0:
        total += max(x.ahead_a - now * x.ahead_b, 0.0)
    return total


@kernel
def settle(s: SchedulerState, leaf: int, now: int) -> None:
    """Advance a leaf's integrals to `now` (ms) and store its new allocation and demand, after a change of either."""
    xg = s.xg[0]
    if xg.on == 0:
        return
    roll_rounds(s, now)
    advance(s, leaf, now)
    q, x = s.q[leaf], s.x[leaf]
    mb, vc = q.usage_mb, q.usage_vcores
    x.mb = mb
    x.vc = vc
    x.g = measured(s, xg.measure, mb, vc)
    x.d = measured(s, xg.measure, mb + q.pending_mb, vc + q.pending_vcores)
    if xg.weighted == 1:
        x.kg = weighed(s, mb + x.more_mb, vc + x.more_vc)
    else:
        x.kg = x.g if xg.ledger == xg.measure else measured(s, xg.ledger, mb, vc)
    asking = 1 if q.pending_mb > 0 or q.pending_vcores > 0 else 0
    if asking != x.pending:
        if asking == 1:
            x.backlog_ms = now
        else:
            x.backlog_ms = -1
        x.pending = asking
    if xg.pseudo == 1 and x.arrived == 0 and x.d > 0:
        _arrive(s, leaf, now)
    ops.counted_anew(s, leaf)


@kernel
def settle_all(s: SchedulerState, now: int) -> None:
    """Settle every leaf after a change of the cluster's capacity in ``G``."""
    for i in range(s.g[0].n_leaves):
        advance(s, s.leaves[i], now)
    s.xg[0].r_mb = s.g[0].cluster_mb
    s.xg[0].r_vc = s.g[0].cluster_vcores
    for i in range(s.g[0].n_leaves):
        settle(s, s.leaves[i], now)


@kernel
def _arrive(s: SchedulerState, leaf: int, now: int) -> None:
    """Set the pseudo accumulated resources of a leaf that becomes active in the round (eq. 5.16)."""
    highest = 0.0
    for i in range(s.g[0].n_leaves):
        k = s.leaves[i]
        x = s.x[k]
        if x.arrived == 1 and x.d > 0:
            highest = max(highest, total_of(s, k, now) / x.entitlement)
    s.x[leaf].arrived = 1
    s.x[leaf].phi = s.x[leaf].entitlement * highest


@kernel
def container_started(s: SchedulerState, leaf: int, app: int, now: int, is_am: bool) -> None:
    """Update a leaf's counters and integrals after one of its containers was granted; its usage has already changed."""
    x = s.x[leaf]
    x.starts += 1
    if not is_am:
        x.running += 1
    settle(s, leaf, now)
    if x.by_apps == 1:
        settle_app(s, leaf, app, now)


@kernel
def container_ended(s: SchedulerState, leaf: int, app: int, now: int, was_am: bool) -> None:
    """Update a leaf's counters and integrals after one of its containers ended; its usage has already changed."""
    x = s.x[leaf]
    if x.ends == 0:
        x.first_end_ms = now
    x.ends += 1
    x.last_end_ms = now
    if not was_am:
        x.running -= 1
    settle(s, leaf, now)
    if x.by_apps == 1:
        settle_app(s, leaf, app, now)


@kernel
def task_ended(s: SchedulerState, leaf: int, work_ms: int) -> None:
    """Count a finished task of a leaf, which worked for `work_ms` (ms)."""
    s.x[leaf].tasks_done += 1
    s.x[leaf].task_ms += work_ms


@kernel
def settle_app(s: SchedulerState, leaf: int, app: int, now: int) -> None:
    """Advance an application's integral to `now` (ms) and store its present allocation.

    Follows equations 5.7 to 5.13 of the thesis, with the leaf's L. The application's S_i is the leaf's S_i times the
    application's fraction of the total weight of the leaf's applications.
    """
    a, x, xg = s.a[app], s.x[leaf], s.xg[0]
    if x.app_round_ms > 0:
        begins = now // x.app_round_ms * x.app_round_ms
        if a.integral_ms < begins:
            a.integral = 0.0
            a.phi = 0.0
            a.integral_ms = begins
    dt = now - a.integral_ms
    if dt > 0:
        rate = a.kg
        if xg.discount != 1.0 and x.omega > 0.0:
            due = x.own_share * counted_whole(s) * a.omega / x.omega
            if rate > due:
                rate = due + (rate - due) * xg.discount
        a.integral += dt * rate
        a.integral_ms = now
    a.kg = weighed(s, a.usage_mb + a.more_mb, a.usage_vcores + a.more_vc)


@kernel
def app_total(s: SchedulerState, app: int, now: int) -> float:
    """Return f_i / omega_i of an application that has been settled at `now` (eqs. 6, 5.11)."""
    a = s.a[app]
    total = a.integral + a.phi
    if a.ahead_b > 0.0:
        total += max(a.ahead_a - now * a.ahead_b, 0.0)
    return total / a.omega


@kernel
def sum_up(s: SchedulerState) -> None:
    """Set LongTermRecord.sum of each parent to the sum over the leaves below it."""
    n = s.xg[0].n
    for i in range(n):
        if s.q[i].leaf == 0:
            s.x[i].sum = 0.0
    for i in range(s.g[0].n_leaves):
        leaf = s.leaves[i]
        amount = s.x[leaf].sum
        above = s.q[leaf].parent
        while above >= 0:
            s.x[above].sum += amount
            above = s.q[above].parent
