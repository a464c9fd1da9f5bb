"""Steady and instantaneous fair shares of a queue tree, as computed by the FSQueue objects of a ResourceManager.

Each parent divides by its own policy; harness.sim.fair.shares, the engine's code, computes the division.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from harness.base.errors import InputError
from harness.model.queues import JAVA_INT_MAX, Queue, QueueTree
from harness.model.resources import ZERO, Resource
from harness.sim.arrays import Column
from harness.sim.fair.shares import queue_shares
from harness.sim.fair.state import QueueRecord


@dataclass(frozen=True, slots=True)
class FairShares:
    """Fair shares of one queue: steady (among all siblings) and instantaneous (among those that run applications)."""

    steady: Resource
    instantaneous: Resource


def fair_shares(tree: QueueTree, cluster: Resource, active: Collection[str] | None = None) -> dict[str, FairShares]:
    """Return the fair shares of every queue in a fresh ResourceManager with a cluster of this size.

    Parameters
    ----------
    tree
        The queues.
    cluster
        Total resources of the nodes.
    active
        Paths of the leaves with runnable applications, which also activate their ancestors; None: all leaves.

    Returns
    -------
    dict of str to FairShares
        The shares by path. A parent with the policy fair divides memory only, so its children have 0 vcores. A parent
        without leaves below it is never active.

    Raises
    ------
    InputError
        The ResourceManager would hang with this tree.

    Notes
    -----
    Follows FSParentQueue.updateInternal and recomputeSteadyShares, FairSharePolicy and DominantResourceFairnessPolicy.
    """
    running = {queue.path for queue in tree.leaves() if active is None or queue.path in active}
    for path in list(running):
        parent = tree[path].parent
        while parent is not None:
            running.add(parent)
            parent = tree[parent].parent
    if any(math.isnan(queue.weight) for queue in tree):
        # The RM computes steady shares while it loads the file, before it has nodes: minimum shares alone may make it
        # hang.
        _compute(tree, ZERO, running)
    return _compute(tree, cluster, running)


def _compute(tree: QueueTree, cluster: Resource, running: set[str]) -> dict[str, FairShares]:
    queues, q = _records(tree, cluster, running)
    nan = bool(np.isnan(q["weight"]).any())
    for steady in (True, False):
        for at in np.flatnonzero(q["first_child"] >= 0).tolist():
            queue = queues[at]
            # No tree has a fifo parent with children, because the RM does not create one.
            for vcores in (False, True) if queue.policy == "drf" else (False,):
                if nan:
                    _check_level(queues, q, at, vcores, steady)
                queue_shares(q, at, vcores, steady)
                # Resource.setResourceValue limits vcores to an int.
                for field in ("fair_vcores", "steady_vcores"):
                    np.minimum(q[field], JAVA_INT_MAX, out=q[field])
    figures = [q[field].tolist() for field in ("steady_mb", "steady_vcores", "fair_mb", "fair_vcores")]
    return {
        queue.path: FairShares(Resource(steady_mb, steady_vcores), Resource(fair_mb, fair_vcores))
        for queue, steady_mb, steady_vcores, fair_mb, fair_vcores in zip(queues, *figures, strict=True)
    }


def _records(tree: QueueTree, cluster: Resource, running: set[str]) -> tuple[list[Queue], Column[QueueRecord]]:
    """Return the tree as the scheduler's queue records, with the fields that shares need."""
    queues = list(tree)
    index = {queue.path: at for at, queue in enumerate(queues)}
    q = cast("Column[QueueRecord]", np.zeros(len(queues), dtype=QueueRecord.dtype))
    q["first_child"] = -1
    q["next_sibling"] = -1
    limits = [queue.max_share(cluster) for queue in queues]
    q["weight"] = [queue.weight for queue in queues]
    q["min_mb"] = [queue.min_share.memory_mb for queue in queues]
    q["min_vcores"] = [queue.min_share.vcores for queue in queues]
    q["max_mb"] = [limit.memory_mb for limit in limits]
    q["max_vcores"] = [limit.vcores for limit in limits]
    q["n_run"] = [queue.path in running for queue in queues]
    last: dict[int, int] = {}
    for at, queue in enumerate(queues):
        if queue.parent is None:
            for kind in ("fair", "steady"):
                q[at][f"{kind}_mb"], q[at][f"{kind}_vcores"] = cluster.memory_mb, cluster.vcores
            continue
        parent = index[queue.parent]
        if parent in last:
            q[last[parent]]["next_sibling"] = at
        else:
            q[parent]["first_child"] = at
        last[parent] = at
    return queues, q


def _check_level(queues: list[Queue], q: NDArray[Any], parent: int, vcores: bool, steady: bool) -> None:
    """Raise InputError if ComputeFairShares would double its ratio for ever.

    The search ends when the participating queues use up the amount to divide. A queue with the weight NaN uses nothing
    at any ratio, so the search never ends if the maxima of the others are too small.
    """
    resource = "vcores" if vcores else "mb"
    taken, wanted, reachable = 0, 0, 0
    nan: list[str] = []
    at = int(q[parent]["first_child"])
    while at >= 0:
        weight, low, high = float(q[at]["weight"]), int(q[at][f"min_{resource}"]), int(q[at][f"max_{resource}"])
        if high > 0 and (steady or q[at]["n_run"]):
            if weight <= 0:
                taken += max(low, 0)
            else:
                wanted += high
                if math.isnan(weight):
                    nan.append(queues[at].path)
                else:
                    reachable += high
        at = int(q[at]["next_sibling"])
    whole = int(q[parent][("steady_" if steady else "fair_") + resource])
    if nan and reachable < min(wanted, max(whole - taken, 0)):
        path = queues[parent].path
        what = f"{'steady' if steady else 'instantaneous'} {'vcores' if vcores else 'memory'}"
        raise InputError(
            f"the ResourceManager would hang here: its search for the {what} shares below {path} never ends, "
            f"because {', '.join(nan)} has the weight NaN",
            where=f"queue {path}",
            hint="give these queues finite weights",
        )
