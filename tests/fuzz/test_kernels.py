"""Single kernels against plain Python, on arrays that are exactly as large as they have to be.

With a check of every index (``YARNFAIR_CHECKED=1``) an access outside is an error here; tests/fuzz/planted.toml plants
some.
"""

from __future__ import annotations

import heapq
import random
from typing import Any, NamedTuple

import numpy as np
import pytest

from harness.base.errors import InternalError
from harness.sim import ends
from harness.sim.arrays import Arrays, Column, Record, zeros
from harness.sim.containers import by_hash
from harness.sim.events import E_ACT, pop, push
from harness.sim.fair import state as fair
from harness.sim.kernel import kernel
from harness.sim.lists import linked, pool, stacked
from harness.sim.loop import rebuild_ring
from harness.sim.tasks import put_redo, take_redo
from harness.sim.world import BLOCK, NEVER, World, new_world
from harness.sim.world import linked as chain


class _Member(Record, lines=False):
    before: int
    after: int
    next: int


class _List(Record, lines=False):
    head: int
    tail: int
    free: int
    left: int


class _Fields(NamedTuple):
    members: Column[_Member]
    lists: Column[_List]


class Lists(Arrays, _Fields):  # type: ignore[misc]
    pass


def lists(size: int) -> Lists:
    made = Lists.empty(members=size, lists=1)
    made.lists["head"] = made.lists["tail"] = -1
    made.lists["free"], made.lists["left"] = chain(made.members, 0, -1), size
    return made


_insert, _remove = linked("head", "tail", "before", "after")
_push, _drop = stacked("head", "before", "after")
_take, _free = pool("free", "next", "left")


@kernel
def _insert_behind(t: Any, i: int, behind: int) -> None:
    _insert(t.members, t.lists[0], i, behind)


@kernel
def _remove_from(t: Any, i: int) -> None:
    _remove(t.members, t.lists[0], i)


@kernel
def _push_to(t: Any, i: int) -> None:
    _push(t.members, t.lists[0], i)


@kernel
def _drop_from(t: Any, i: int) -> None:
    _drop(t.members, t.lists[0], i)


@kernel
def _take_one(t: Any) -> int:
    taken: int = _take(t.members, t.lists[0])
    return taken


@kernel
def _free_one(t: Any, i: int) -> None:
    _free(t.members, t.lists[0], i)


def _members(t: Lists) -> list[int]:
    found, i = [], int(t.lists["head"][0])
    while i >= 0:
        found.append(i)
        i = int(t.members["after"][i])
    return found


def test_a_doubly_linked_list_is_a_list() -> None:
    rng, t, plain = random.Random(1), lists(12), list[int]()
    for _ in range(200):
        free = [i for i in range(12) if i not in plain]
        if free and (not plain or rng.random() < 0.6):
            i, at = rng.choice(free), rng.randrange(len(plain) + 1)
            _insert_behind(t, i, plain[at - 1] if at else -1)
            plain.insert(at, i)
        else:
            i = rng.choice(plain)
            _remove_from(t, i)
            plain.remove(i)
        assert _members(t) == plain
        assert int(t.lists["tail"][0]) == (plain[-1] if plain else -1)


def test_a_stack_is_a_list() -> None:
    rng, t, plain = random.Random(2), lists(12), list[int]()
    for _ in range(200):
        free = [i for i in range(12) if i not in plain]
        if free and (not plain or rng.random() < 0.6):
            i = rng.choice(free)
            _push_to(t, i)
            plain.insert(0, i)
        else:
            i = rng.choice(plain)
            _drop_from(t, i)
            plain.remove(i)
        assert _members(t) == plain


def test_a_pool_gives_each_slot_once_and_says_when_it_is_empty() -> None:
    t = lists(5)
    assert sorted(_take_one(t) for _ in range(5)) == list(range(5))
    with pytest.raises(InternalError, match="no free slot left in the list 'free'"):
        _take_one(t)
    _free_one(t, 3)
    assert _take_one(t) == 3


def test_the_heap_orders_events_and_says_when_it_is_full() -> None:
    rng = random.Random(3)
    world = World.empty(g=1, heap_t=40, heap_v=40)
    plain: list[tuple[int, int]] = []
    for _ in range(400):
        if len(plain) < 40 and (not plain or rng.random() < 0.55):
            time, slot = rng.randrange(20), rng.randrange(1000)
            push(world, time, E_ACT, 0, slot)
            heapq.heappush(plain, (time, slot))
        else:
            time = int(world.heap_t[0])
            assert (time, pop(world) & 0xFFFFFFFF) == heapq.heappop(plain)
    while len(plain) < 40:
        push(world, 0, E_ACT, 0, 0)
        heapq.heappush(plain, (0, 0))
    with pytest.raises(InternalError, match="no free place left in its heap"):
        push(world, 0, E_ACT, 0, 0)


@pytest.mark.parametrize("taken", [(0, BLOCK, 2 * BLOCK), (2 * BLOCK, BLOCK, 0)])
def test_the_ends_of_a_node_come_in_their_order(taken: tuple[int, ...]) -> None:
    """``taken``: in which order blocks are taken; the one at the end of the memory is full and not the first, or is."""
    rng = random.Random(4)
    containers = 3 * (BLOCK - 1)
    world = new_world(1, 1, containers=containers)
    # Exactly the blocks that one node with so many containers takes.
    exact = zeros(3 * BLOCK, world.ends.dtype)
    exact["c"][list(taken)] = [*taken[1:], -1]
    world = world._replace(ends=exact)
    world.g["ends_free"] = taken[0]
    times: dict[int, int] = {}
    now = 0
    for _ in range(30):
        for c in sorted(set(range(containers)) - times.keys()):
            ends.into_node(world, c, 0)
            times[c] = now + rng.randrange(1, 60)
            ends.set_end(world, c, times[c])
        now += rng.randrange(40)
        due = sorted((time, c) for c, time in times.items() if time <= now)
        assert ends.ended_by(world, 0, now) == len(due)
        assert world.scratch[: len(due)].tolist() == [c for _, c in due]
        gone = [c for _, c in due]
        if len(times) > 40:
            left = sorted(times.keys() - set(gone))
            # The soonest are what a block remembers.
            gone += {*rng.sample(left, 2), *sorted(left, key=lambda c: times[c])[:3]}
        for c in gone:
            ends.out_of_node(world, c)
            del times[c]
        assert int(world.nodes["next_end_ms"][0]) <= min(times.values(), default=NEVER)
    for c in sorted(set(range(containers)) - times.keys()):
        ends.into_node(world, c, 0)
    with pytest.raises(InternalError, match="no free block left"):
        ends.into_node(world, 0, 0)


def test_attempts_that_are_asked_for_again_come_in_their_order() -> None:
    world = new_world(1, 1, containers=1)
    redo = zeros(4, world.redo.dtype)
    world = world._replace(redo=redo)
    world.g["redo_free"], world.g["redo_left"] = chain(redo, 0, -1), 4
    for _ in range(3):
        for task in range(4):
            put_redo(world, 0, 0, task, 1, 0, -1)
        assert [int(redo["task"][take_redo(world, 0, 0)]) for _ in range(4)] == [0, 1, 2, 3]
        assert int(world.g["redo_left"][0]) == 4


def test_containers_stand_in_their_buckets_in_the_order_of_their_coming() -> None:
    s = fair.State.empty(zeros, g=1, c=9, a=1, work=9)
    s.c["cid"] = rng = np.random.default_rng(5).permutation(9) + 1
    s.c["n_next"] = [*range(1, 9), -1]
    found = by_hash(s, 0, False, 4, s.work, 0)
    assert found == 9
    assert sorted(s.work.tolist()) == list(range(9))
    assert len(set(rng.tolist())) == 9


def test_the_ring_of_heartbeats_begins_with_the_next_one() -> None:
    world = new_world(6, 1, containers=1)
    world.nodes["up"], world.nodes["phase_ms"] = 1, [500, 0, 300, 300, 999, 20]
    world.g["node_hb_ms"] = 1000
    for now, first in ((0, 1), (1, 5), (301, 0), (999, 4), (1000, 1), (1999, 4)):
        rebuild_ring(world, now)
        assert world.ring.tolist() == [1, 5, 2, 3, 0, 4]
        assert int(world.ring[int(world.g["ring_at"][0])]) == first
    world.nodes["phase_ms"] = 0
    rebuild_ring(world, 1)
    assert (int(world.g["ring_at"][0]), int(world.g["ring_base_ms"][0])) == (0, 1000)
