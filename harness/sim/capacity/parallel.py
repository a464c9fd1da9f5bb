"""How many applications run side by side: max-parallel-apps of queues and users, and whose turn it is when one ends.

Facts: CSMaxRunningAppsEnforcer, AbstractLeafQueue.addApplicationAttempt of Hadoop 3.4.2. An application beyond a limit
is held back: it is neither waiting for its activation nor active. Where Hadoop loses count, so does this.
"""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.capacity.activation import activate
from harness.sim.capacity.order import join_waiting
from harness.sim.capacity.resources import compare
from harness.sim.capacity.state import MUT_PARALLEL, S
from harness.sim.capacity.users import count_apps, ensure_user
from harness.sim.kernel import kernel
from harness.sim.lists import linked

_NEVER = 2**63 - 1
_ALL = 2**31 - 1

#: A leaf's applications that are held back, and a user's.
_into_held_back, _out_of_held_back = linked("held_back_head", "held_back_tail", "back_prev", "back_next")
_into_own, _out_of_own = linked("own_head", "own_tail", "own_prev", "own_next")


@kernel
def release_room(s: S) -> int:
    """Records that the log may get when applications that were held back come in: one for each application at most."""
    g = s.g[0]
    return len(s.a) - g.n_free_app if g.n_held_back > 0 else 0


@kernel
def _check(s: S, i: int) -> bool:
    """checkRunnabilityWithUpdate: whether neither the user nor a queue has as many applications as may run."""
    x = s.a[i]
    person = s.u[s.u[x.uq].person]
    x.runnable = 1
    if s.g[0].mutations & MUT_PARALLEL:
        return True
    if person.n_runnable >= person.parallel:
        x.runnable = 0
    p = x.q
    while p >= 0:
        if s.q[p].n_runnable >= s.q[p].parallel:
            x.runnable = 0
        p = s.q[p].parent
    return x.runnable == 1


@kernel
def _count(s: S, i: int, by: int) -> None:
    """The user and all parents have so many runnable applications more; the leaf has a list of its own."""
    x = s.a[i]
    s.u[s.u[x.uq].person].n_runnable += by
    p = s.q[x.q].parent
    while p >= 0:
        s.q[p].n_runnable += by
        p = s.q[p].parent


@kernel
def _enter(s: S, i: int, now: int) -> None:
    """AbstractLeafQueue.addApplicationAttempt of a runnable one."""
    g, x = s.g[0], s.a[i]
    x.n_runnable += 1
    s.q[x.q].n_runnable += 1
    count_apps(s, x.uq, 1, 0)
    if x.waiting == 0:
        join_waiting(s, i)
    if compare(s, g.cluster_mb, g.cluster_vcores, 0, 0) > 0:
        activate(s, x.q, now)


@kernel
def _hold_back(s: S, i: int) -> None:
    x = s.a[i]
    q, person = s.q[x.q], s.u[s.u[x.uq].person]
    x.held_back = 1
    _into_held_back(s.a, q, i, q.held_back_tail)
    q.n_held_back += 1
    _into_own(s.a, person, i, person.own_tail)
    s.g[0].n_held_back += 1


@kernel
def _let_go(s: S, i: int) -> None:
    """The application is no longer held back."""
    x = s.a[i]
    if x.held_back == 0:
        return
    q, person = s.q[x.q], s.u[s.u[x.uq].person]
    x.held_back = 0
    _out_of_held_back(s.a, q, i)
    q.n_held_back -= 1
    _out_of_own(s.a, person, i)
    s.g[0].n_held_back -= 1


@kernel
def arrive(s: S, i: int, now: int) -> None:
    """A new attempt comes into its leaf: it waits for its activation, or is held back."""
    x = s.a[i]
    runs = _check(s, i)
    if runs:
        _count(s, i, 1)
    ensure_user(s, x.uq)
    if runs:
        _enter(s, i, now)
    else:
        _hold_back(s, i)


@kernel
def untrack(s: S, i: int) -> None:
    """The attempt goes out of its leaf's lists: that of the runnable ones, else that of those held back."""
    x = s.a[i]
    if x.n_runnable > 0:
        x.n_runnable -= 1
        s.q[x.q].n_runnable -= 1
    else:
        _let_go(s, i)


@kernel
def let_others_in(s: S, i: int, now: int) -> None:
    """updateRunnabilityOnAppRemoval: the attempt has gone; those that its place lets in come in.

    One for each list that is looked at: of each leaf below the highest queue that was full, and of the user.
    """
    x = s.a[i]
    if x.runnable == 0:
        _let_go(s, i)
        return
    _count(s, i, -1)
    if s.g[0].n_held_back == 0:
        return
    highest, p = -1, x.q
    while p >= 0:
        if s.q[p].n_runnable == s.q[p].parallel - 1:
            highest = p
        p = s.q[p].parent
    n = _gather(s, highest, 0) if highest >= 0 else 0
    person = s.u[s.u[x.uq].person]
    own = person.n_runnable == person.parallel - 1
    if own:
        s.work[n] = person.own_head
    _admit(s, n, own, n + 1 if own else n, now)


@kernel
def let_all_in(s: S, now: int) -> None:
    """updateRunnabilityOnReload: after a change of settings."""
    _admit(s, _gather(s, 0, 0), False, _ALL, now)


@kernel
def _gather(s: S, top: int, n: int) -> int:
    """The first of each list of a leaf below `top` on a way of queues with room, into work[n:]; the end of these."""
    work, stack = s.work, s.g[0].n_queues + 1
    at = stack
    work[at] = top
    while at >= stack:
        q = s.q[work[at]]
        at -= 1
        if q.n_runnable >= q.parallel:
            continue
        if q.leaf == 1:
            work[n] = q.held_back_head
            n += 1
        for back in range(q.n_kids):
            at += 1
            work[at] = s.kids[q.kids_off + q.n_kids - 1 - back]
    return n


@kernel
def _time(s: S, which: int) -> int:
    i = s.work[which]
    return s.a[i].start_ms if i >= 0 else _NEVER


@kernel
def _down(s: S, heap: int, n: int, which: int) -> None:
    """Java's PriorityQueue.siftDown from the root: its order of equal times is not that of their coming."""
    work, k = s.work, 0
    time = _time(s, which)
    while 2 * k + 1 < n:
        child = 2 * k + 1
        if child + 1 < n and _time(s, work[heap + child]) > _time(s, work[heap + child + 1]):
            child += 1
        if time <= _time(s, work[heap + child]):
            break
        work[heap + k] = work[heap + child]
        k = child
    work[heap + k] = which


@kernel
def _up(s: S, heap: int, k: int, which: int) -> None:
    work = s.work
    time = _time(s, which)
    while k > 0:
        above = (k - 1) // 2
        if time >= _time(s, work[heap + above]):
            break
        work[heap + k] = work[heap + above]
        k = above
    work[heap + k] = which


@kernel
def _admit(s: S, leaves: int, own: bool, most: int, now: int) -> None:
    """updateAppsRunnability: the lists' applications in order of time, as far as there is room and at most `most`.

    work[:leaves] has the first of each leaf's list, work[leaves] that of the user's if there is one (`own`).
    """
    work = s.work
    n = leaves + 1 if own else leaves
    heap = s.g[0].n_queues + 1
    done = 2 * heap
    for which in range(n):
        _up(s, heap, which, which)
    before, let_in = -1, 0
    while n > 0 and let_in < most:
        which = work[heap]
        i = work[which]
        if i < 0:
            break
        last = work[heap + n - 1]
        if n > 1:
            _down(s, heap, n - 1, last)
        work[which] = s.a[i].own_next if which == leaves else s.a[i].back_next
        _up(s, heap, n - 1, which)
        if i == before:
            continue
        if _check(s, i):
            _count(s, i, 1)
            ensure_user(s, s.a[i].uq)
            _enter(s, i, now)
            work[done + let_in] = i
            let_in += 1
        before = i
    for at in range(let_in):
        _let_go(s, work[done + at])
