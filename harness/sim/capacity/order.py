"""The order of a parent's children by used capacity, and of a leaf's applications by the leaf's policy.

Follows PriorityUtilizationQueueOrderingPolicy, FifoOrderingPolicy and FairOrderingPolicy of Hadoop 3.4.2. Hadoop sorts
all children at each assignment. Here each parent keeps a tournament tree of the children with outstanding asks, in
which a change of one child takes logarithmic time. Children without asks are never tried, because they would get
nothing in Hadoop either.
"""

from __future__ import annotations

import math

import numpy as np

from harness.sim.capacity.resources import divide, positive
from harness.sim.capacity.state import State
from harness.sim.java import single
from harness.sim.kernel import kernel
from harness.sim.lists import chained, linked

_F0, _F1 = single(0.0), single(1.0)
_LOG2 = math.log(2)

#: Lists of a leaf's applications: with asks, active, waiting for activation, and with changed usage.
_into_asks, _out_of_asks = linked("ask_head", "ask_tail", "ask_prev", "ask_next")
_into_active, _out_of_active = linked("act_head", "act_tail", "act_prev", "act_next")
into_waiting, out_of_waiting = linked("wait_head", "wait_tail", "wait_prev", "wait_next")
_out_of_stale = chained("stale_head", "stale_next")


# --- children of a parent


@kernel
def child_before(s: State, i: int, j: int) -> bool:
    """Return whether child i is tried before child j."""
    x, y = s.q[i], s.q[j]
    has_x, has_y = x.abs > _F0, y.abs > _F0
    if has_x != has_y:
        return has_x
    used_x, used_y = (x.used_cap, y.used_cap) if has_x else (x.abs_used, y.abs_used)
    if x.priority != y.priority and s.q[x.parent].policy == 1:
        if (used_x < _F1) != (used_y < _F1):
            return used_x < _F1
        return x.priority > y.priority
    if used_x != used_y:
        return used_x < used_y
    if x.conf_mb != 0 or x.conf_vcores != 0 or y.conf_mb != 0 or y.conf_vcores != 0:
        if x.conf_mb != y.conf_mb:
            return x.conf_mb > y.conf_mb
        if x.conf_vcores != y.conf_vcores:
            return x.conf_vcores > y.conf_vcores
    elif x.abs != y.abs:
        return x.abs > y.abs
    return x.pos < y.pos


@kernel
def _replay(s: State, p: int, at: int, who: int) -> None:
    """Recompute the tournament from a child's leaf node upward, after the child `who` has changed, joined or left."""
    off = s.q[p].tree_off
    tree = s.tree
    at >>= 1
    while at >= 1:
        left, right = tree[off + 2 * at], tree[off + 2 * at + 1]
        if left < 0:
            best = right
        elif right < 0:
            best = left
        else:
            best = right if child_before(s, right, left) else left
        before = tree[off + at]
        tree[off + at] = best
        if before == best and best != who:
            return
        at >>= 1


@kernel
def place_child(s: State, k: int) -> None:
    """Update a queue's position among its siblings, after a change of its usage, asks or capacity."""
    x = s.q[k]
    p = x.parent
    if p < 0:
        return
    at = s.q[p].tree_cap + x.pos
    off = s.q[p].tree_off
    want = k if positive(s, x.pending_mb, x.pending_vcores) else -1
    if want < 0 and s.tree[off + at] < 0:
        return
    s.tree[off + at] = want
    if s.q[p].tree_cap > 1:
        _replay(s, p, at, k)


@kernel
def exclude(s: State, k: int) -> None:
    """Exclude a child that got nothing from its parent's tournament, until the next `place_child`."""
    x = s.q[k]
    p = x.parent
    at = s.q[p].tree_cap + x.pos
    s.tree[s.q[p].tree_off + at] = -1
    if s.q[p].tree_cap > 1:
        _replay(s, p, at, k)


@kernel
def first_child(s: State, p: int) -> int:
    """Return the child that is tried next, or -1."""
    return s.tree[s.q[p].tree_off + 1]


@kernel
def stats(s: State, k: int) -> None:
    """Set the fractions of its capacity and of the cluster that a queue uses, in float32.

    Follows CSQueueUtils.updateUsedCapacity.
    """
    g, x = s.g[0], s.q[k]
    if not positive(s, g.label_mb, g.label_vcores):
        x.used_cap, x.abs_used = _F0, _F0
    else:
        mb, vcores = x.floor_mb, x.floor_vcores
        x.used_cap = divide(s, g.label_mb, g.label_vcores, x.used_mb, x.used_vcores, mb, vcores)
        x.abs_used = divide(s, g.label_mb, g.label_vcores, x.used_mb, x.used_vcores, g.label_mb, g.label_vcores)
    place_child(s, k)


# --- applications of a leaf


@kernel
def _fair_size(s: State, i: int) -> float:
    x = s.a[i]
    size = np.float64(x.cu)
    if s.q[x.q].sized == 1 and size != 0.0:
        weight = math.log1p(np.float64(x.cu + x.cp)) / _LOG2
        if weight != 0.0:
            size /= weight
    return size


@kernel
def app_before(s: State, i: int, j: int) -> bool:
    """Return whether application i of a leaf is tried before j."""
    x, y = s.a[i], s.a[j]
    if s.q[x.q].fair == 0:
        return x.priority > y.priority if x.priority != y.priority else x.id < y.id
    size_x, size_y = _fair_size(s, i), _fair_size(s, j)
    if size_x != size_y:
        return size_x < size_y
    if x.start_ms != y.start_ms:
        return x.start_ms < y.start_ms
    wants_x, wants_y = x.cu + x.cp > 0, y.cu + y.cp > 0
    if wants_x != wants_y:
        return wants_x
    return x.id < y.id


@kernel
def _unlink(s: State, i: int) -> None:
    x = s.a[i]
    _out_of_asks(s.a, s.q[x.q], i)
    x.in_asks = 0


@kernel
def _link(s: State, i: int, after: int) -> None:
    """Insert application i behind `after` (-1: at the head) in its leaf's ordered list."""
    x = s.a[i]
    _into_asks(s.a, s.q[x.q], i, after)
    x.in_asks = 1


@kernel
def place_app(s: State, i: int) -> None:
    """Update an application's position among its leaf's active applications with asks."""
    x = s.a[i]
    q = s.q[x.q]
    q.stuck = 0
    if x.active == 0 or x.req_head < 0:
        if x.in_asks == 1:
            _unlink(s, i)
        if x.active == 1 and x.seen == 0:
            q.unseen = 1
        return
    if x.in_asks == 0:
        after = q.ask_tail
        while after >= 0 and app_before(s, i, after):
            after = s.a[after].ask_prev
        _link(s, i, after)
        return
    after = x.ask_prev
    if after >= 0 and app_before(s, i, after):
        _unlink(s, i)
        while after >= 0 and app_before(s, i, after):
            after = s.a[after].ask_prev
        _link(s, i, after)
        return
    later = x.ask_next
    if later >= 0 and app_before(s, later, i):
        _unlink(s, i)
        while later >= 0 and app_before(s, later, i):
            after, later = later, s.a[later].ask_next
        _link(s, i, after)


@kernel
def order_anew(s: State, k: int) -> None:
    """Sort a leaf's applications from scratch, after a change of its policy."""
    q = s.q[k]
    i = q.ask_head
    while i >= 0:
        s.a[i].in_asks = 0
        i = s.a[i].ask_next
    q.ask_head = q.ask_tail = -1
    i = q.act_head
    while i >= 0:
        place_app(s, i)
        i = s.a[i].act_next


@kernel
def join_active(s: State, i: int) -> None:
    """Add application i to its leaf's active applications."""
    x = s.a[i]
    if x.active == 1:
        return
    q = s.q[x.q]
    x.active = 1
    _into_active(s.a, q, i, q.act_tail)
    q.n_active += 1
    q.n_run = q.n_active
    place_app(s, i)


@kernel
def leave_active(s: State, i: int) -> None:
    """Remove application i from its leaf's active applications."""
    x = s.a[i]
    q = s.q[x.q]
    x.active = 0
    _out_of_active(s.a, q, i)
    q.n_active -= 1
    q.n_run = q.n_active
    place_app(s, i)


@kernel
def join_waiting(s: State, i: int) -> None:
    """Add application i to the waiting list of its leaf: higher priority first, then by id."""
    x = s.a[i]
    q = s.q[x.q]
    after = q.wait_tail
    while after >= 0 and (
        s.a[after].priority < x.priority or (s.a[after].priority == x.priority and s.a[after].id > x.id)
    ):
        after = s.a[after].wait_prev
    into_waiting(s.a, q, i, after)
    x.waiting = 1
    q.n_waiting += 1


@kernel
def leave_waiting(s: State, i: int) -> None:
    """Remove application i from the waiting list."""
    x = s.a[i]
    q = s.q[x.q]
    out_of_waiting(s.a, q, i)
    x.waiting = 0
    q.n_waiting -= 1


@kernel
def mark_stale(s: State, i: int) -> None:
    """Mark an application whose cached usage the ordering policy ``fair`` must refresh before it is used again."""
    x = s.a[i]
    q = s.q[x.q]
    if q.fair == 0:
        return
    if x.stale == 0:
        x.stale_next = q.stale_head
        q.stale_head = i
    x.stale = 1


@kernel
def forget_stale(s: State, i: int) -> None:
    """Unmark an application, although its usage has changed."""
    if s.a[i].stale == 1:
        s.a[i].stale = 2


@kernel
def drop_stale(s: State, i: int) -> None:
    """Remove a leaving application from its leaf's list of applications with changed usage."""
    x = s.a[i]
    if x.stale == 0:
        return
    _out_of_stale(s.a, s.q[x.q], i)
    x.stale = 0


@kernel
def forget_all_stale(s: State, k: int) -> None:
    """Empty the list of applications with changed usage, for a new policy object; the cached usage is kept."""
    q = s.q[k]
    i = q.stale_head
    while i >= 0:
        s.a[i].stale = 0
        i = s.a[i].stale_next
    q.stale_head = -1


@kernel
def look_at_stale(s: State, k: int) -> None:
    """Reorder the applications with changed usage, and update their cached usage.

    As in Hadoop, an application that still waits for activation becomes active here. Follows
    AbstractComparatorOrderingPolicy.reorderScheduleEntities.
    """
    q = s.q[k]
    i = q.stale_head
    q.stale_head = -1
    while i >= 0:
        x = s.a[i]
        if x.stale == 1:
            x.cu, x.cp = x.used_mb, x.pending_mb
            if x.active == 0:
                join_active(s, i)
            else:
                place_app(s, i)
        x.stale = 0
        i = x.stale_next
