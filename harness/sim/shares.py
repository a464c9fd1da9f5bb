"""Steady and instantaneous fair shares of a whole queue tree, as a ResourceManager's FSQueue objects would show them.

Walks the tree with each parent's policy; the arithmetic among siblings is harness.sim.scheduler.shares.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from harness.model.errors import InputError
from harness.model.queues import JAVA_INT_MAX, ROOT, Queue, QueueTree
from harness.model.resources import Resource
from harness.sim.scheduler.shares import HANGS, compute_shares


@dataclass(frozen=True, slots=True)
class FairShares:
    """Of one queue: counting all siblings (steady), and only those with runnable applications (instantaneous)."""

    steady: Resource
    instantaneous: Resource


def fair_shares(tree: QueueTree, cluster: Resource, active: Collection[str] | None = None) -> dict[str, FairShares]:
    """Fair shares of every queue in a fresh ResourceManager with a cluster of this size.

    Parameters
    ----------
    tree : the queues.
    cluster : sum of the nodes.
    active : paths of the leaves with runnable applications, their ancestors follow; None: all leaves.

    A parent whose policy is fair shares out memory only: its children's vcores stay 0. A parent without leaves below is
    never active. InputError where the ResourceManager would hang.

    Source: FSParentQueue.updateInternal, recomputeSteadyShares; FairSharePolicy, DominantResourceFairnessPolicy.
    """
    running = {queue.path for queue in tree.leaves() if active is None or queue.path in active}
    for path in list(running):
        parent = tree[path].parent
        while parent is not None:
            running.add(parent)
            parent = tree[parent].parent
    everybody = {queue.path for queue in tree}
    steady = _walk(tree, cluster, everybody, "steady")
    instantaneous = _walk(tree, cluster, running, "instantaneous")
    return {path: FairShares(steady[path], instantaneous[path]) for path in steady}


def _walk(tree: QueueTree, cluster: Resource, counted: set[str], kind: str) -> dict[str, Resource]:
    shares = {ROOT: cluster}
    children: dict[str, list[Queue]] = {}
    for queue in tree:
        if queue.parent is not None:
            children.setdefault(queue.parent, []).append(queue)
    for parent in tree:
        below = children.get(parent.path, [])
        if not below:
            continue
        # A tree has no fifo parent with children: the RM does not make one.
        shared_vcores = parent.policy == "drf"
        limits = [queue.max_share(cluster) for queue in below]
        total = shares[parent.path]
        memory = _level(
            parent,
            below,
            total.memory_mb,
            [queue.min_share.memory_mb for queue in below],
            [limit.memory_mb for limit in limits],
            counted,
            f"{kind} memory",
        )
        vcores = [0] * len(below)
        if shared_vcores:
            vcores = _level(
                parent,
                below,
                total.vcores,
                [queue.min_share.vcores for queue in below],
                [limit.vcores for limit in limits],
                counted,
                f"{kind} vcores",
            )
        for queue, memory_mb, cores in zip(below, memory, vcores, strict=True):
            shares[queue.path] = Resource(memory_mb, min(cores, JAVA_INT_MAX))
    return shares


def _level(
    parent: Queue,
    below: list[Queue],
    total: int,
    min_share: list[int],
    max_share: list[int],
    counted: set[str],
    what: str,
) -> list[int]:
    count = len(below)
    share = np.zeros(count, dtype=np.int64)
    outcome = compute_shares(
        total,
        np.array([queue.weight for queue in below], dtype=np.float32),
        np.array(min_share, dtype=np.int64),
        np.array(max_share, dtype=np.int64),
        np.array([queue.path in counted for queue in below], dtype=np.bool_),
        share,
        np.zeros(count, dtype=np.bool_),
        count,
    )
    if outcome == HANGS:
        wrong = ", ".join(queue.path for queue in below if queue.weight != queue.weight and queue.path in counted)
        raise InputError(
            f"the ResourceManager would hang here: its search for the {what} shares below {parent.path} never ends, "
            f"because {wrong} has the weight NaN",
            where=f"queue {parent.path}",
            mend="give these queues finite weights",
        )
    return [int(value) for value in share]
