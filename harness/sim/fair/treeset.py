"""Java's TreeSet of a parent's children, for the rare comparators that are not a total order.

Follows java.util.TreeMap.put and fixAfterInsertion, and DominantResourceFairnessComparator2 of Hadoop 3.4.2. The latter
calls two queues equal if a share is NaN (0 / 0), so that a < b < c < a is possible.
"""

from __future__ import annotations

from harness.sim.fair.state import State
from harness.sim.kernel import kernel

#: Fields of a tree node in the scratch array: queue, left, right, parent, 1 if red.
_QUEUE, _LEFT, _RIGHT, _UP, _RED, _WORDS = 0, 1, 2, 3, 4, 5


@kernel
def _sign(x: float) -> int:
    """Return (int) Math.signum(x), which is 0 for NaN."""
    return 1 if x > 0 else (-1 if x < 0 else 0)


@kernel
def _before(s: State, i: int, j: int) -> bool:
    """Return whether queue i precedes j in Hadoop's comparator, which subtracts shares: NaN is equal to everything."""
    x, y = s.seat[i], s.seat[j]
    if x.tier != y.tier:
        return x.tier < y.tier
    res = _sign(x.k0 - y.k0)
    if res == 0:
        res = _sign(x.k1 - y.k1)
    return res < 0 if res != 0 else x.rank < y.rank


@kernel
def _rotate(s: State, root: int, n: int, side: int) -> int:
    """Rotate node n toward `side` (_LEFT or _RIGHT); return the new root."""
    w, other = s.work, _LEFT + _RIGHT - side
    r = w[n + other]
    w[n + other] = w[r + side]
    if w[r + side] >= 0:
        w[w[r + side] + _UP] = n
    up = w[n + _UP]
    w[r + _UP] = up
    if up < 0:
        root = r
    elif w[up + side] == n:
        w[up + side] = r
    else:
        w[up + other] = r
    w[r + side] = n
    w[n + _UP] = r
    return root


@kernel
def _insert(s: State, root: int, n: int) -> int:
    """Insert a new node into the tree; return the new root."""
    w = s.work
    p = root
    while True:
        side = _LEFT if _before(s, w[n + _QUEUE], w[p + _QUEUE]) else _RIGHT
        if w[p + side] < 0:
            break
        p = w[p + side]
    w[p + side] = n
    w[n + _UP] = p
    x = n
    while x != root and w[w[x + _UP] + _RED] == 1:
        up = w[x + _UP]
        top = w[up + _UP]
        side = _LEFT if w[top + _LEFT] == up else _RIGHT
        other = _LEFT + _RIGHT - side
        uncle = w[top + other]
        if uncle >= 0 and w[uncle + _RED] == 1:
            w[up + _RED] = w[uncle + _RED] = 0
            w[top + _RED] = 1
            x = top
            continue
        if w[up + other] == x:
            x = up
            root = _rotate(s, root, x, side)
            up = w[x + _UP]
        w[up + _RED] = 0
        w[top + _RED] = 1
        root = _rotate(s, root, top, other)
    w[root + _RED] = 0
    return root


@kernel
def first_in_treeset(s: State, p: int, places: int) -> int:
    """Return the first child in the set's order that still takes part (by its leaf in `places`), or -1."""
    w = s.work
    root, n = -1, 0
    k = s.q[p].first_child
    while k >= 0:
        w[n + _QUEUE], w[n + _LEFT], w[n + _RIGHT], w[n + _UP], w[n + _RED] = k, -1, -1, -1, 1
        if root < 0:
            root = n
            w[n + _RED] = 0
        else:
            root = _insert(s, root, n)
        n += _WORDS
        k = s.q[k].next_sibling
    at = root
    while at >= 0 and w[at + _LEFT] >= 0:
        at = w[at + _LEFT]
    while at >= 0:
        k = w[at + _QUEUE]
        if s.tree[places + s.seat[k].at] == k:
            return k
        if w[at + _RIGHT] >= 0:
            at = w[at + _RIGHT]
            while w[at + _LEFT] >= 0:
                at = w[at + _LEFT]
        else:
            while w[at + _UP] >= 0 and w[w[at + _UP] + _RIGHT] == at:
                at = w[at + _UP]
            at = w[at + _UP]
    return -1
