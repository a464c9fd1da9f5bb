"""The queue tree's shape in index form, for policies that traverse it at every tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from harness.base.sums import left_fold_sum
from harness.model.snapshot import QueueShape, Snapshot


@dataclass(frozen=True, slots=True)
class Tree:
    """Queues by index in the order of the snapshot (parents before children, siblings by name).

    Values have the type of the snapshot's weights: floats, or fractions on paper.

    ``entitlement`` is w_i; ``share`` the queue's fraction of the cluster level by level (the product, down the path, of
    weight / sum of the siblings' weights); ``flat_share`` a leaf's fraction by eq. (2) over the weights of all leaves
    (0 for parents).
    """

    names: tuple[str, ...]
    parent: tuple[int, ...]  # -1 for root
    children: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]  # queues with children, from the root down
    leaves: tuple[int, ...]
    entitlement: tuple[float, ...]
    share: tuple[float, ...]
    flat_share: tuple[float, ...]
    index: Mapping[str, int]
    #: Leaf and its own weight.
    weights: tuple[tuple[str, float], ...]
    #: The tree as arrays for compiled code, created on demand (`harness.policies.weights`).
    arrays: list[Any] = field(default_factory=list, compare=False, repr=False)

    def path(self, queue: int) -> list[int]:
        """Return the queue and its ancestors without root, from the queue upwards."""
        found = []
        while self.parent[queue] >= 0:
            found.append(queue)
            queue = self.parent[queue]
        return found

    def sum_up(self, leaf_values: list[float]) -> list[float]:
        """Convert values of leaves (0 for parents) to values of all queues; a parent gets the sum of its leaves'."""
        total = list(leaf_values)
        parent = self.parent
        for queue in range(len(total) - 1, 0, -1):
            total[parent[queue]] += total[queue]
        return total


def tree_of(snapshot: Snapshot) -> Tree:
    """Return the shape of a snapshot's tree from a cache, because shapes rarely change."""
    if _last.tree is not None and _last.snapshot is snapshot:
        return _last.tree
    shape: QueueShape | None = getattr(snapshot.queues, "shape", None)
    if shape is None:
        rows = tuple([(queue.parent, queue.leaf, queue.weight) for queue in snapshot.queues.values()])
        shape = QueueShape(tuple(snapshot.queues), rows, type(rows[0][2]).__name__)
    tree = _tree_by(shape)
    _last.snapshot = snapshot
    return tree


@dataclass(slots=True)
class _Last:
    """The last tree: a cache of one entry, because the shape is usually the same as at the last tick."""

    #: The last snapshot, kept because the accounts and the plan of one tick use the same one.
    snapshot: Snapshot | None = None
    shape: QueueShape | None = None
    tree: Tree | None = None
    #: The tree with entitlements level by level, once requested.
    by_levels: Tree | None = None


_last = _Last()


def _tree_by(shape: QueueShape) -> Tree:
    # A comparison takes less time than hashing.
    if _last.tree is None or _last.shape != shape:
        _last.shape, _last.tree, _last.by_levels = shape, _build(*shape), None
    return _last.tree


def entitled_tree(snapshot: Snapshot, shares: str) -> Tree:
    """Return the tree with entitlements w_i of eq. (2) as ``shares`` selects (see `harness.model.plan.LedgerSettings`).

    With ``levels``, every queue's entitlement is its fraction of the cluster level by level. The entitlements of
    siblings are then in the ratio of their weights, and those of all leaves in the ratio of their dues.
    """
    return _entitled(tree_of(snapshot), shares)


def entitled_tree_by(shape: QueueShape, shares: str) -> Tree:
    """Return `entitled_tree` for a shape."""
    _last.snapshot = None
    return _entitled(_tree_by(shape), shares)


def _entitled(tree: Tree, shares: str) -> Tree:
    if shares != "levels":
        return tree
    if _last.by_levels is None:
        _last.by_levels = _by_levels(tree)
    return _last.by_levels


def leaf_weights(snapshot: Snapshot, shares: str) -> tuple[tuple[str, float], ...]:
    """Return (leaf, w_i of eq. (2)) of all leaves, as ``shares`` selects (`entitled_tree`)."""
    tree = tree_of(snapshot)
    return tuple([(tree.names[q], tree.share[q]) for q in tree.leaves]) if shares == "levels" else tree.weights


def _by_levels(tree: Tree) -> Tree:
    leaves = frozenset(tree.leaves)
    own = tuple(part if q in leaves else 0 for q, part in enumerate(tree.share))
    return replace(tree, entitlement=tree.share, flat_share=own, arrays=[])


@lru_cache(maxsize=64)
def _build(names: tuple[str, ...], rows: tuple[tuple[str | None, bool, float], ...], _kind: str) -> Tree:
    index = {name: position for position, name in enumerate(names)}
    parent = tuple(-1 if row[0] is None else index[row[0]] for row in rows)
    if any(above >= own for own, above in enumerate(parent)) or parent.count(-1) != 1:
        raise ValueError("a snapshot names the root first and parents before their children")
    children: list[list[int]] = [[] for _ in names]
    for own, above in enumerate(parent):
        if above >= 0:
            children[above].append(own)
    entitlement = tuple(row[2] for row in rows)
    share: list[float] = [1] * len(names)
    for siblings in children:
        total = left_fold_sum(entitlement[child] for child in siblings)
        for child in siblings:
            share[child] = share[parent[child]] * (entitlement[child] / total if total > 0 else 1 / len(siblings))
    # A queue without children is not necessarily a leaf: it may be an empty parent.
    leaves = tuple(own for own, row in enumerate(rows) if row[1] and parent[own] >= 0)
    leaf_total = left_fold_sum(entitlement[leaf] for leaf in leaves)
    flat: list[float] = [0] * len(names)
    for leaf in leaves:
        flat[leaf] = entitlement[leaf] / leaf_total if leaf_total > 0 else 1 / len(leaves)
    return Tree(
        names=names,
        parent=parent,
        children=tuple(tuple(siblings) for siblings in children),
        parents=tuple(own for own, siblings in enumerate(children) if siblings),
        leaves=leaves,
        entitlement=entitlement,
        share=tuple(share),
        flat_share=tuple(flat),
        index=index,
        weights=tuple([(name, row[2]) for name, row in zip(names, rows, strict=True) if row[1]]),
    )
