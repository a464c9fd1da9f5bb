"""Intrusive linked lists of the records of an array: fields of the records hold the slots of their neighbours.

Each function creates the kernels of one list, given the names of its link fields. The kernels take the array of the
members, the record with the list's head (``whole``), and a member's slot; -1 means none. Callers update everything
else, such as counts and flags. The free slots of an array also form a list, a `pool`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harness.base.errors import InternalError
from harness.base.machine_code import CHECKED
from harness.sim.arrays import Column, poisoner
from harness.sim.kernel import kernel

#: ``(members, g) -> i``
Take = Callable[[Column[Any], Any], int]
#: ``(members, whole, i)``
ChangeList = Callable[[Column[Any], Any, int], None]
#: ``(members, whole, i, behind)``
InsertBehind = Callable[[Column[Any], Any, int, int], None]
#: ``(members, whole, priority, alloc_id) -> i``
Find = Callable[[Column[Any], Any, int, int], int]

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _named(function: _Kernel, *fields: str) -> _Kernel:
    """Compile a kernel under a name made from its list's fields, because the cache identifies compiled code by name."""
    kind = function.__qualname__.partition(".")[0]
    function.__qualname__ = "_".join((kind, function.__name__, *fields))
    return kernel(function)


def pool(head: str, link: str, count: str, kept: str | None = "") -> tuple[Take, ChangeList]:
    """Create the kernels that take a slot from a free list and return one to it.

    Callers check beforehand that enough slots are free, and return NEED_ROOM otherwise. An empty list is therefore a
    defect, and it is checked because index -1 would be memory in front of the array.

    Parameters
    ----------
    head, count : str
        Fields of the globals: the first free slot (-1: none), and the number of free slots.
    link : str
        Field of a free slot that holds the next one.
    kept : str or None
        Fields, separated by spaces, that may still be read once a slot is free. The checked build overwrites all other
        fields; None: it overwrites no field.

    Returns
    -------
    take : kernel
        ``take(members, g)`` returns a slot and raises InternalError if none is free.
    free : kernel
        ``free(members, g, i)`` returns slot i to the list.
    """
    empty = f"the simulator's engine has no free slot left in the list {head!r}"

    def take(members: Column[Any], g: Any) -> int:
        i: int = g[head]
        if i < 0:
            raise InternalError(empty)
        g[head] = members[i][link]
        g[count] -= 1
        return i

    def free(members: Column[Any], g: Any, i: int) -> None:
        members[i][link] = g[head]
        g[head] = i
        g[count] += 1

    if not CHECKED or kept is None:
        return _named(take, head), _named(free, head)
    poison = poisoner(frozenset((link, *kept.split())))

    def free_poisoned(members: Column[Any], g: Any, i: int) -> None:
        poison(members, i)
        members[i][link] = g[head]
        g[head] = i
        g[count] += 1

    return _named(take, head), _named(free_poisoned, head)


def linked(head: str, tail: str, before: str, after: str) -> tuple[InsertBehind, ChangeList]:
    """Create the kernels of a doubly linked list with head and tail.

    ``insert(members, whole, i, behind)`` inserts i behind the member ``behind`` (-1: in front), and
    ``remove(members, whole, i)`` removes it. `before` and `after` are the link fields.
    """

    def insert(members: Column[Any], whole: Any, i: int, behind: int) -> None:
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

    def remove(members: Column[Any], whole: Any, i: int) -> None:
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


def stacked(head: str, before: str, after: str) -> tuple[ChangeList, ChangeList]:
    """Create the kernels of a doubly linked list without a tail: ``push`` in front, and ``remove``.

    Both take ``(members, whole, i)``.
    """

    def push(members: Column[Any], whole: Any, i: int) -> None:
        x, following = members[i], whole[head]
        x[before], x[after] = -1, following
        if following >= 0:
            members[following][before] = i
        whole[head] = i

    def remove(members: Column[Any], whole: Any, i: int) -> None:
        x = members[i]
        if x[before] < 0:
            whole[head] = x[after]
        else:
            members[x[before]][after] = x[after]
        if x[after] >= 0:
            members[x[after]][before] = x[before]

    return _named(push, head, after), _named(remove, head, after)


def chained(head: str, after: str) -> ChangeList:
    """Create the kernel ``remove(members, whole, i)`` of a singly linked list; it searches for i from the head."""

    def remove(members: Column[Any], whole: Any, i: int) -> None:
        if whole[head] == i:
            whole[head] = members[i][after]
            return
        p = whole[head]
        while members[p][after] != i:
            p = members[p][after]
        members[p][after] = members[i][after]

    return _named(remove, head, after)


def keyed(head: str) -> tuple[Find, ChangeList]:
    """Create the kernels of a singly linked list sorted by (priority, alloc_id), with the link field ``next``.

    ``find(members, whole, priority, alloc_id)`` returns the member with this key, or -1. ``insert(members, whole, i)``
    inserts i, whose key must be set and must not occur in another member.
    """

    def find(members: Column[Any], whole: Any, priority: int, alloc_id: int) -> int:
        p: int = whole[head]
        while p >= 0:
            if members[p].priority == priority and members[p].alloc_id == alloc_id:
                return p
            p = members[p].next
        return -1

    def insert(members: Column[Any], whole: Any, i: int) -> None:
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
