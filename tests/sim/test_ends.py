"""The order in which processes end on a node, kept in blocks, against all containers sorted anew at each heartbeat."""

from __future__ import annotations

import random

import numpy as np
import pytest

from harness.sim.ends import ended_by, into_node, out_of_node, overdue, set_end
from harness.sim.world import BLOCK, NEVER, new_world, with_room

NODES = 3


def _blocks(world: object, first: int) -> list[int]:
    """A chain of blocks, by their numbers."""
    found = []
    while first >= 0:
        found.append(first // BLOCK)
        first = int(world.ends["c"][first])  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("killed", [0.005, 0.05])
@pytest.mark.parametrize("known", [1.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_what_has_ended_is_found_in_order(seed: int, known: float, killed: float) -> None:
    """``known``: how often an end becomes known (a reduce that waits for maps has none); ``killed``: who has to go."""
    rng = random.Random(seed)
    containers = 4 * BLOCK
    world = new_world(NODES, 1, containers=containers)
    live: dict[int, tuple[int, int]] = {}  # container -> (node, end)
    found: set[int] = set()  # of these, ended and told of
    grown, most = False, 0
    for now in range(600):
        if len(live) > NODES * BLOCK and not grown:
            containers, grown = 2 * containers, True
            world = with_room(world, containers=containers)
        for c in rng.sample(range(containers), 6):
            if c not in live:
                node = rng.randrange(NODES)
                world.runs["end_ms"][c] = NEVER
                into_node(world, c, node)
                live[c] = node, NEVER
            elif live[c][1] > now and rng.random() < known:
                # Not later than was known: a task whose stage opens, or that is beaten by its copy.
                at = min(live[c][1], now + rng.randrange(1, 200))
                set_end(world, c, at)
                live[c] = live[c][0], at
        for node in range(NODES):
            here = {c: end for c, (at, end) in live.items() if at == node}
            due = sorted((end, c) for c, end in here.items() if end <= now and c not in found)
            if world.nodes["next_end_ms"][node] > now:
                assert not due
                continue
            n = ended_by(world, node, now)
            assert [int(c) for c in world.scratch[:n]] == [c for _, c in due]
            later = [end for end in here.values() if end > now]
            assert world.nodes["next_end_ms"][node] == min(later, default=NEVER)
            most = max(most, n)
            # Those that have ended leave, and sometimes one that is killed.
            gone = [c for _, c in due] + [c for c in here if here[c] > now and rng.random() < killed]
            for c in rng.sample(gone, len(gone)):
                out_of_node(world, c)
                del live[c]
    assert grown
    assert most > 1
    world.nodes["up"] = 1
    assert not len(overdue(world, 600))
    first = min(end for _, end in live.values())
    assert sorted(overdue(world, first + 1)) == sorted(c for c, (_, end) in live.items() if end == first)
    assert sorted(overdue(world, NEVER)) == sorted(c for c, (_, end) in live.items() if end < NEVER)
    # No block is lost, none is in two chains.
    chains = [_blocks(world, int(world.nodes["head"][node])) for node in range(NODES)]
    chains.append(_blocks(world, int(world.g["ends_free"][0])))
    assert sorted(block for chain in chains for block in chain) == list(range(len(world.ends) // BLOCK))
    at_node = np.bincount([node for node, _ in live.values()], minlength=NODES)
    for node, (chain, count) in enumerate(zip(chains, at_node, strict=False)):
        assert (len(chain) - 1) * (BLOCK - 1) + int(world.nodes["filled"][node]) == count
