"""Lists of records: what goes in comes out in the list's order, whatever goes out in between."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

from harness.sim.arrays import Arrays, Column, Int32, Record
from harness.sim.kernel import kernel
from harness.sim.lists import chained, keyed, linked, stacked


class _Whole(Record):
    first: Int32
    last: Int32
    top: Int32
    asks: Int32


class _Member(Record):
    before: Int32
    after: Int32
    above: Int32
    below: Int32
    priority: Int32
    alloc_id: int
    next: Int32


class _Given(NamedTuple):
    whole: Column[_Whole]
    m: Column[_Member]


class Given(Arrays, _Given):  # type: ignore[misc]
    pass


_insert, _remove = linked("first", "last", "before", "after")
_push, _pull = stacked("top", "above", "below")
_find, _into_asks = keyed("asks")
_out_of_asks = chained("asks", "next")


@kernel
def _in(t: Given, i: int, behind: int) -> None:
    _insert(t.m, t.whole[0], i, behind)
    _push(t.m, t.whole[0], i)
    _into_asks(t.m, t.whole[0], i)


@kernel
def _out(t: Given, i: int) -> None:
    _remove(t.m, t.whole[0], i)
    _pull(t.m, t.whole[0], i)
    _out_of_asks(t.m, t.whole[0], i)


@kernel
def _found(t: Given, priority: int, alloc_id: int) -> int:
    return _find(t.m, t.whole[0], priority, alloc_id)  # type: ignore[no-any-return]


def _walk(t: Given, head: str, after: str) -> list[int]:
    found, i = [], int(t.whole[head][0])
    while i >= 0:
        found.append(i)
        i = int(t.m[after][i])
    return found


def test_lists_are_what_python_lists_would_be() -> None:
    draw = random.Random(3)
    t: Any = Given(np.full(1, -1, _Whole.dtype), np.zeros(12, _Member.dtype))
    for i in range(12):
        t.m[i]["priority"], t.m[i]["alloc_id"] = draw.randrange(3), i
    line: list[int] = []
    stack: list[int] = []
    for _ in range(400):
        i = draw.randrange(12)
        if i in line:
            _out(t, i)
            line.remove(i)
            stack.remove(i)
        else:
            behind = draw.choice([-1, *line])
            _in(t, i, behind)
            line.insert(0 if behind < 0 else line.index(behind) + 1, i)
            stack.insert(0, i)
        assert _walk(t, "first", "after") == line
        assert _walk(t, "last", "before") == line[::-1]
        assert _walk(t, "top", "below") == stack
        ordered = sorted(line, key=lambda i: (int(t.m["priority"][i]), i))
        assert _walk(t, "asks", "next") == ordered
        for i in range(12):
            assert _found(t, int(t.m["priority"][i]), i) == (i if i in line else -1)
