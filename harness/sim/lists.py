"""Lists of records of an array, linked by slots in their own fields. Each list declares its link fields once.

Each function here makes kernels for one list. They take the array of the members, the record with the list's head, and
a member's slot; -1 means none. Callers update everything else, such as counts and flags. The free slots of an array are
a list, too: a `pool`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.base.errors import InternalError
from harness.base.machine_code import CHECKED
from harness.sim.arrays import poisoner
from harness.sim.kernel import kernel

Kernel = Callable[..., Any]


def _named(function: Kernel, *fields: str) -> Kernel:
    """Give the kernel a name made from its list's fields; compiled code is cached under this name."""
    kind = function.__qualname__.partition(".")[0]
    function.__qualname__ = "_".join((kind, function.__name__, *fields))
    return kernel(function)


def pool(head: str, link: str, count: str, kept: str | None = "") -> tuple[Kernel, Kernel]:
    """Create the kernels that take a slot from a free list and return one to it.

    The callers reserve what they need beforehand and return NEED_ROOM when there is too little. A list that is empty
    despite this is a defect: index -1 would be memory in front of the array.

    Parameters
    ----------
    head, count : fields of the globals: the first free slot (-1: none), the number of free slots.
    link : the field of a free slot that holds the next one.
    kept : the fields that may still be read once a slot is free. The checked build overwrites the others; None: none.

    Returns
    -------
    ``take(members, g)``, which returns the slot and raises InternalError if there is none; ``free(members, g, i)``.
    """
    empty = f"the simulator's engine has no free slot left in the list {head!r}"

    def take(members: Any, g: Any) -> Any:
        i = g[head]
        if i < 0:
            raise InternalError(empty)
        g[head] = members[i][link]
        g[count] -= 1
        return i

    def free(members: Any, g: Any, i: int) -> None:
        members[i][link] = g[head]
        g[head] = i
        g[count] += 1

    if not CHECKED or kept is None:
        return _named(take, head), _named(free, head)
    poison = poisoner(frozenset((link, *kept.split())))

    def free_poisoned(members: Any, g: Any, i: int) -> None:
        poison(members, i)
        members[i][link] = g[head]
        g[head] = i
        g[count] += 1

    return _named(take, head), _named(free_poisoned, head)


def linked(head: str, tail: str, before: str, after: str) -> tuple[Kernel, Kernel]:
    """Return ``insert(members, whole, i, behind)`` and ``remove(members, whole, i)`` of a doubly linked list.

    ``behind`` -1 inserts in front.
    """

    def insert(members: Any, whole: Any, i: int, behind: int) -> None:
        x = members[i]
        x[before] = behind
        if behind < 0:
            following = whole[head]
            whole[head] = i
        else:
            following = members[behind][after]
            members[behind][after] = i
        x[after] = following
        if following < 0:
            whole[tail] = i
        else:
            members[following][before] = i

    def remove(members: Any, whole: Any, i: int) -> None:
        x = members[i]
        if x[before] < 0:
            whole[head] = x[after]
        else:
            members[x[before]][after] = x[after]
        if x[after] < 0:
            whole[tail] = x[before]
        else:
            members[x[after]][before] = x[before]

    return _named(insert, head, after), _named(remove, head, after)


def stacked(head: str, before: str, after: str) -> tuple[Kernel, Kernel]:
    """Stack, never read from its end: return (``push(members, whole, i)``; ``remove(members, whole, i)``)."""

    def push(members: Any, whole: Any, i: int) -> None:
        x, following = members[i], whole[head]
        x[before], x[after] = -1, following
        if following >= 0:
            members[following][before] = i
        whole[head] = i

    def remove(members: Any, whole: Any, i: int) -> None:
        x = members[i]
        if x[before] < 0:
            whole[head] = x[after]
        else:
            members[x[before]][after] = x[after]
        if x[after] >= 0:
            members[x[after]][before] = x[before]

    return _named(push, head, after), _named(remove, head, after)


def chained(head: str, after: str) -> Kernel:
    """Singly linked list: return ``remove(members, whole, i)``, which searches from the head."""

    def remove(members: Any, whole: Any, i: int) -> None:
        if whole[head] == i:
            whole[head] = members[i][after]
            return
        p = whole[head]
        while members[p][after] != i:
            p = members[p][after]
        members[p][after] = members[i][after]

    return _named(remove, head, after)


def keyed(head: str) -> tuple[Kernel, Kernel]:
    """Return the operations of a list sorted by (priority, alloc_id), linked through ``next``.

    ``find(members, whole, priority, alloc_id)``; ``insert(members, whole, i)``, whose key must be set and must not
    occur in another member.
    """

    def find(members: Any, whole: Any, priority: int, alloc_id: int) -> Any:
        p = whole[head]
        while p >= 0:
            if members[p].priority == priority and members[p].alloc_id == alloc_id:
                return p
            p = members[p].next
        return -1

    def insert(members: Any, whole: Any, i: int) -> None:
        x = members[i]
        before, p = -1, whole[head]
        while p >= 0 and (members[p].priority, members[p].alloc_id) < (x.priority, x.alloc_id):
            before, p = p, members[p].next
        x.next = p
        if before < 0:
            whole[head] = i
        else:
            members[before].next = i

    return _named(find, head), _named(insert, head)
