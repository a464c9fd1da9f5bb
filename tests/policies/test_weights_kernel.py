"""The compiled filling gives the parts and weights that the plain one gives, to the last bit."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies import weights
from harness.policies.tree import Tree, tree_of


def _tree(rng: random.Random, size: int) -> Tree:
    """A tree of so many queues: flat, deep or between, now and then with a parent that has no children."""
    paths: list[str] = ["root"]
    parent_of: dict[str, str | None] = {"root": None}
    for i in range(size):
        above = rng.choice(paths) if rng.random() < 0.5 else rng.choice(paths[: 1 + len(paths) // 4])
        path = f"{above}.q{i:03}"
        parent_of[path] = above
        paths.append(path)
    paths.sort(key=lambda path: path.split("."))
    with_children = set(parent_of.values())
    queues = {
        path: QueueView(
            path,
            parent_of[path],
            path not in with_children and rng.random() > 0.03,
            weight=rng.choice([1.0, 1.0, 2.0, 0.5, rng.random() + 0.01, 1000.0, 1e-3]),
        )
        for path in paths
    }
    return tree_of(Snapshot(0.0, Resource(1, 1), queues))


@pytest.mark.parametrize("seed", range(12))
def test_the_same_parts_and_weights(seed: int) -> None:
    rng, compared, idle = random.Random(seed), 0, 0
    while compared < 40:
        tree = _tree(rng, rng.choice([1, 2, 3, 5, 17, 20, 40, 70, 200]))
        if not tree.leaves:
            continue
        compared += 1
        size = len(tree.names)
        capacity = rng.choice([1.0, 1024.0, 1e6, float(rng.randrange(1, 10**7))])
        horizon = rng.choice([1.0, 80.0, 1e-3, 1e5, rng.random() * 100])
        used, demand, waiting = [0.0] * size, [0.0] * size, [False] * size
        for q in tree.leaves:
            used[q] = rng.choice([0.0, 0.0, 5.0, rng.random() * capacity * horizon, rng.random() * 10, 1e12])
            demand[q] = rng.choice([0.0, capacity / size, rng.random() * capacity, float(rng.randrange(10))])
            waiting[q] = rng.random() < rng.choice([0.9, 0.5, 0.1])
        used, demand = tree.sum_up(used), tree.sum_up(demand)
        for q in reversed(range(size)):
            waiting[q] = waiting[q] or any(waiting[child] for child in tree.children[q])
        idle += not all(waiting)
        basis = weights.Basis(used, capacity, horizon, demand, waiting)
        for affinity in (0.0, 1.0, 0.3):
            plain = weights.plain_shares(tree, basis, affinity)
            found = weights.compiled_shares(tree, basis, affinity)
            assert np.array_equal(plain, found, equal_nan=True)
            many = [*found, *[float("nan"), 0.0, math.inf, 1e-9, 1e9] * 4]
            of_many = weights.share_weights(tree, many)
            assert of_many[1:] == [weights.grid_weight(weights.LEVEL_SUM * part) for part in many[1:]]
    assert idle > 5


def test_it_is_used_where_somebody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def compiled(tree: Tree, *_args: object) -> list[float]:
        called.append(tree)
        return [1.0] * len(tree.names)

    monkeypatch.setattr(weights, "compiled_shares", compiled)
    monkeypatch.setattr(weights, "_kernel", [])
    tree = _tree(random.Random(1), 200)
    size = len(tree.names)
    for used, horizon, times in ((False, 80.0, 0), (True, 0.0, 0), (True, math.inf, 0), (True, 80.0, 1)):
        if used:
            weights.use_compiled()
        weights.long_term_shares(tree, weights.Basis([0.0] * size, 1.0, horizon, [1.0] * size, [True] * size), 0.0)
        assert len(called) == times
