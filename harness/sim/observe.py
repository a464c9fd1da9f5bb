"""What an observer sees of the running simulation: a `Snapshot`, consumed resources, counted resources.

Made once a control tick, so it is one compiled pass over the queues and then values from lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.base.quick import quick
from harness.model.queues import QueueTree
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.sim.arrays import at_address
from harness.sim.capacity.state import S as CapacityState
from harness.sim.fair.longterm import advance, roll_rounds, total_of
from harness.sim.fair.state import S as FairState
from harness.sim.kernel import kernel
from harness.sim.world import J_RUNNING, J_SUBMITTED, NEVER, SPARK
from harness.sim.world import W as World

_COLUMNS = 16
(
    _MB,
    _VC,
    _PENDING_MB,
    _PENDING_VC,
    _PENDING_N,
    _APPS,
    _BACKLOG,
    _LAST_START,
    _OLDEST,
    _TASKS,
    _TASK_MS,
    _WAITING,
    _APPS_DONE,
    _MB_MS,
    _VC_MS,
    _AHEAD,
) = range(_COLUMNS)
#: What a `QueueView` is made of; the others go on while nothing happens.
_VIEWED = _MB_MS


_view, _resource = quick(QueueView), quick(Resource)

_FAIR, _CAPACITY, _W = at_address(FairState), at_address(CapacityState), at_address(World)


@kernel
def look_at(state: int, world: int, ints: Any, reals: Any, now: int) -> Any:
    """Fill (queues + 1, 16) integers and (queues, 2) reals: parents as the sum of their leaves, then the cluster.

    The scheduler's state and the world are given by their addresses.
    """
    _look(_FAIR(state), _W(world), ints, reals, now)


@kernel
def look_at_capacity(state: int, world: int, ints: Any, reals: Any, now: int) -> Any:
    """`look_at` on the Capacity Scheduler."""
    _look(_CAPACITY(state), _W(world), ints, reals, now)


@kernel
def _look(S: Any, W: Any, ints: Any, reals: Any, now: int) -> Any:
    n = S.xg[0].n
    roll_rounds(S, now)
    ints[:, :] = 0
    ints[len(ints) - 1, 0] = S.g[0].cluster_mb
    ints[len(ints) - 1, 1] = S.g[0].cluster_vcores
    for i in range(n):
        ints[i, _BACKLOG] = -1
        ints[i, _LAST_START] = -1
        ints[i, _OLDEST] = -1
        reals[i, 0] = 0.0
        reals[i, 1] = 0.0
    for j in range(len(W.jobs)):
        job = W.jobs[j]
        if job.state != J_RUNNING and job.state != J_SUBMITTED:
            continue
        wanted = 0
        if job.am_ms == NEVER:
            wanted = 1
            ints[job.queue, _WAITING] += 1
        elif job.kind == SPARK:
            wanted = job.ex_wanted
        else:
            for s in range(job.stages):
                wanted += W.stages[j, s].wanted
        if wanted > 0:
            ints[job.queue, _PENDING_N] += wanted
            old = ints[job.queue, _OLDEST]
            if old < 0 or job.submit_ms < old:
                ints[job.queue, _OLDEST] = job.submit_ms
    for k in range(S.g[0].n_leaves):
        leaf = S.leaves[k]
        advance(S, leaf, now)
        q, x = S.q[leaf], S.x[leaf]
        ints[leaf, _BACKLOG] = x.backlog_ms
        ints[leaf, _LAST_START] = x.last_start_ms
        counted = total_of(S, leaf, now)
        ahead = max(x.ahead_a - now * x.ahead_b, 0.0) if x.ahead_b > 0.0 else 0.0
        ints[leaf, _APPS_DONE] = x.apps_done
        pending_n = ints[leaf, _PENDING_N]
        i = leaf
        while i >= 0:
            ints[i, _MB] += q.usage_mb
            ints[i, _VC] += q.usage_vcores
            ints[i, _PENDING_MB] += q.pending_mb
            ints[i, _PENDING_VC] += q.pending_vcores
            ints[i, _APPS] += q.n_run if i == leaf else 0
            ints[i, _TASKS] += x.tasks_done
            ints[i, _TASK_MS] += x.task_ms
            ints[i, _MB_MS] += x.mb_ms
            ints[i, _VC_MS] += x.vc_ms
            reals[i, 0] += counted
            reals[i, 1] += ahead
            if i != leaf:
                ints[i, _PENDING_N] += pending_n
            i = S.q[i].parent


class Observer:
    """Snapshots of one run. ``tree``: the queues; ``order``: their indices in the scheduler, in the tree's order."""

    def __init__(self, tree: QueueTree, order: list[int], entitlements: Mapping[str, float], size: int) -> None:
        self._queues = [
            (q.path, q.parent, q.leaf, float(entitlements.get(q.path, 1.0)), index)
            for q, index in zip(tree, order, strict=True)
        ]
        self._limits = {q.path: (q.min_share, q.max_limit) for q in tree}
        self._static: list[Any] = []
        self._capacity: Resource | None = None
        self._ints = np.zeros((size + 1, _COLUMNS), np.int64)  # the last row: the cluster's MiB and vcores
        self._reals = np.zeros((size, 2))
        self.leaves = [q.path for q in tree if q.leaf]
        #: Applications and tasks that had ended at the last look, by leaf.
        self._ended: dict[str, tuple[int, int]] = {}
        #: What the last views were made of, by the scheduler's index, and the views: a queue in which nothing happened
        #: keeps its own. Without what is made of one look alone.
        self._viewed: list[Any] = []
        self._views: dict[str, QueueView] = {}

    def limits_changed(self, path: str, least: Resource | None, limit: Any | None) -> None:
        """A queue's minimum or maximum share was rewritten."""
        old = self._limits[path]
        self._limits[path] = (old[0] if least is None else least, old[1] if limit is None else limit)
        self._capacity = None

    def snapshot(self, S: Any, W: Any, now_ms: int, period_s: float) -> tuple[Snapshot, list[list[int]], Any]:
        """(snapshot, rows of integers, counted and ahead in measure x ms) by the scheduler's queue index."""
        look = look_at_capacity if isinstance(S, CapacityState) else look_at
        look(S.address, W.address, self._ints, self._reals, now_ms)
        rows = self._ints.tolist()
        memory, vcores = rows[-1][:2]
        capacity = self._capacity
        if capacity is None or capacity.memory_mb != memory or capacity.vcores != vcores:
            capacity = self._capacity = Resource(memory, vcores)
            self._viewed = [None] * len(rows)
            self._static = [
                (path, parent, leaf, weight, index, self._limits[path][0], self._limits[path][1].resolve(capacity))
                for path, parent, leaf, weight, index in self._queues
            ]
        before = self._viewed
        viewed = self._ints[:, :_VIEWED].tolist()
        if viewed == before:
            return Snapshot(now_ms / 1000.0, capacity, self._views, period_s), rows, self._reals
        queues, self._viewed, views = {}, viewed, self._views
        for path, parent, leaf, weight, index, least, most in self._static:
            if viewed[index] == before[index]:
                queues[path] = views[path]
                continue
            row = rows[index]
            mb, vc = row[_MB], row[_VC]
            ended_apps = ended_tasks = None
            if leaf:
                apps_before, tasks_before = self._ended.get(path, (0, 0))
                ended_apps, ended_tasks = row[_APPS_DONE] - apps_before, row[_TASKS] - tasks_before
                self._ended[path] = (row[_APPS_DONE], row[_TASKS])
            queues[path] = _view(
                path,
                parent,
                leaf,
                weight,
                _resource(mb, vc),
                _resource(mb + row[_PENDING_MB], vc + row[_PENDING_VC]),
                least,
                most,
                row[_PENDING_N],
                row[_APPS],
                row[_BACKLOG] / 1000.0 if row[_BACKLOG] >= 0 else None,
                row[_LAST_START] / 1000.0 if row[_LAST_START] >= 0 else None,
                row[_TASK_MS] / (1000.0 * row[_TASKS]) if row[_TASKS] else None,
                row[_OLDEST] / 1000.0 if row[_OLDEST] >= 0 else None,
                row[_WAITING],
                ended_apps,
                ended_tasks,
                None,
            )
            if ended_apps or ended_tasks:
                # Ends are those since the snapshot before: the next one has others.
                viewed[index] = None
        self._views = queues
        return Snapshot(now_ms / 1000.0, capacity, queues, period_s), rows, self._reals

    def consumed(self, rows: list[list[int]]) -> dict[str, tuple[float, float]]:
        """Leaf -> MiB-seconds and vcore-seconds since the start."""
        return {
            path: (rows[index][_MB_MS] / 1000.0, rows[index][_VC_MS] / 1000.0)
            for path, _, leaf, _, index in self._queues
            if leaf
        }

    def counted(self, reals: Any) -> dict[str, float]:
        """Leaf -> counted resources, measure-seconds."""
        values = (reals[:, 0] / 1000.0).tolist()
        return {path: values[index] for path, _, leaf, _, index in self._queues if leaf}

    def ahead(self, reals: Any) -> dict[str, float]:
        """Leaf -> what its running tasks are assumed to use yet, measure-seconds."""
        values = (reals[:, 1] / 1000.0).tolist()
        return {path: values[index] for path, _, leaf, _, index in self._queues if leaf}
