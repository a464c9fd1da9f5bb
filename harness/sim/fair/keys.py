"""Queue keys, computed before a choice: accumulated resources, horizon, arrival; and the leaf that has waited too long.

Sources: LTYARN Algorithms 1 and 2, section 6.2; tang-thesis eqs. (5.11)-(5.16).
"""

from __future__ import annotations

from harness.sim.fair.limits import may_grow
from harness.sim.fair.state import State
from harness.sim.fair.turns import latest, pass_over, seat_counted, seat_keys, seat_late
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import app_total, counted_rate, measured, roll_rounds, settle_app, sum_up, total_of
from harness.sim.longterm_state import RULE_ACCUMULATED, RULE_ARRIVAL, RULE_HORIZON, RULE_USER

#: Key of a queue that comes last.
LAST = 1e300
#: Key of a starved leaf and its path.
FIRST = -1.0


@kernel
def refresh_keys(s: State, now: int) -> int:
    """Compute every queue's key (QueueRecord.key) before a choice, unless keys vary with time.

    The queue with the smallest key is served first.

    Returns
    -------
    int
        With time-varying keys: the starved leaf that is lifted, which precedes its siblings together with its
        ancestors. -1 if there is none, and with other keys, which themselves contain the lift.
    """
    xg = s.xg[0]
    roll_rounds(s, now)
    rule = xg.rule
    # If all leaves are compared by accumulated resources, the leaf to lift is already the first one that may grow.
    lifts = xg.t_wait_ms >= 0 and not (xg.flat == 1 and rule == RULE_ACCUMULATED)
    if s.g[0].moving == 1:
        return _starved(s, now) if lifts else -1
    if rule == RULE_USER:
        return -1  # computed before the heartbeat
    if rule == RULE_ACCUMULATED:
        _accumulated_keys(s, now)
    elif rule == RULE_HORIZON:
        _horizon_keys(s)
    elif rule == RULE_ARRIVAL:
        _arrival_keys(s)
    if lifts:
        _lift_starved(s, now)
    seat_keys(s)
    return -1


@kernel
def _accumulated_keys(s: State, now: int) -> None:
    xg = s.xg[0]
    if xg.flat == 1:
        for i in range(s.g[0].n_leaves):
            leaf = s.leaves[i]
            total = total_of(s, leaf, now)
            s.x[leaf].sum = total
            s.q[leaf].key = total / s.x[leaf].entitlement
        return
    for i in range(s.g[0].n_leaves):
        s.x[s.leaves[i]].sum = total_of(s, s.leaves[i], now)
    sum_up(s)
    for i in range(xg.n):
        s.q[i].key = (s.x[i].sum - s.x[i].base) / s.x[i].entitlement


@kernel
def _horizon_keys(s: State) -> None:
    """Set keys to the allocation divided by the water-filled share.

    Queues with a share of 0 come after all others, ordered by allocation.
    """
    xg = s.xg[0]
    for i in range(s.g[0].n_leaves):
        leaf = s.leaves[i]
        s.x[leaf].sum = measured(s, xg.ledger, s.q[leaf].usage_mb, s.q[leaf].usage_vcores)
    sum_up(s)
    for i in range(xg.n):
        part = s.x[i].x
        s.q[i].key = s.x[i].sum / part if part > 0.0 else 1e200 + s.x[i].sum


@kernel
def _arrival_keys(s: State) -> None:
    """Set keys to the arrival time of the earliest application with asks below a queue."""
    for i in range(s.xg[0].n):
        s.q[i].key = LAST
    for i in range(s.g[0].n_leaves):
        leaf = s.leaves[i]
        first = LAST
        app = s.q[leaf].run_head
        while app >= 0:
            a = s.a[app]
            if (a.pending_mb > 0 or a.pending_vcores > 0) and a.start_ms < first:
                first = float(a.start_ms)
            app = a.run_next
        at = leaf
        while at >= 0:
            if first < s.q[at].key:
                s.q[at].key = first
            at = s.q[at].parent


@kernel
def _lift_starved(s: State, now: int) -> None:
    """Give the first key to the demanding leaf with the least counted / weight if it has waited for T_wait.

    Its ancestors get the same key. Follows LTYARN Algorithm 2.
    """
    best = -1
    least = 0.0
    for i in range(s.g[0].n_leaves):
        leaf = s.leaves[i]
        if s.q[leaf].pending_mb <= 0 and s.q[leaf].pending_vcores <= 0:
            continue
        if not may_grow(s, leaf):
            continue
        key = total_of(s, leaf, now) / s.x[leaf].entitlement
        if best < 0 or key < least or (key == least and s.q[leaf].rank < s.q[best].rank):
            best = leaf
            least = key
    if best < 0:
        return
    begun = max(s.x[best].backlog_ms, s.x[best].last_start_ms)
    if now - begun < s.xg[0].t_wait_ms:
        return
    at = best
    while at >= 0:
        s.q[at].key = FIRST
        at = s.q[at].parent


@kernel
def _starved(s: State, now: int) -> int:
    """Return the leaf that `_lift_starved` would lift, or -1, if keys vary with time."""
    g = s.g[0]
    found = latest(s, now)
    while found >= 0 and not may_grow(s, found):
        pass_over(s, found)
        s.aside[g.n_aside] = found
        g.n_aside += 1
        found = latest(s, now)
    for i in range(g.n_aside):
        seat_late(s, s.aside[i])
    g.n_aside = 0
    if found < 0:
        return -1
    begun = max(s.x[found].backlog_ms, s.x[found].last_start_ms)
    return found if now - begun >= s.xg[0].t_wait_ms else -1


@kernel
def counted_anew(s: State, leaf: int) -> None:
    """Update a leaf's time-varying key after a change of the rate at which its resources are counted."""
    if s.g[0].moving == 1:
        x = s.x[leaf]
        seat_counted(s, leaf, x.counted + x.phi, max(x.t_ms, s.xg[0].round_start_ms), counted_rate(s, leaf))


@kernel
def refresh_app_keys(s: State, leaf: int, now: int) -> None:
    """Set the keys of a leaf's applications under the policy ``ltrf``: accumulated resources divided by weight.

    The application with the smallest key is served first.
    """
    app = s.q[leaf].run_head
    while app >= 0:
        settle_app(s, leaf, app, now)
        s.a[app].key = app_total(s, app, now)
        app = s.a[app].run_next
