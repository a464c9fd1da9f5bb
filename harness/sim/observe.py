"""Observation of a running simulation: a policy's `Snapshot`, and consumed and counted resources.

The values are computed once per control tick, in one compiled pass over the queues, and then read from lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.base.quick import fast_constructor
from harness.model.queues import QueueTree
from harness.model.resources import Resource
from harness.model.snapshot import (
    APPS,
    APPS_DONE,
    BACKLOG,
    LAST_START,
    MB,
    MB_MS,
    OLDEST,
    PENDING_MB,
    PENDING_N,
    PENDING_VC,
    TASK_MS,
    TASKS,
    VC,
    VC_MS,
    WAITING,
    Figures,
    LateViews,
    QueueShape,
    QueueView,
    Snapshot,
)
from harness.sim.kernel import kernel
from harness.sim.longterm_kernels import advance, roll_rounds, total_of
from harness.sim.state import SchedulerState
from harness.sim.world import J_RUNNING, J_SUBMITTED, NEVER, SPARK, World

_COLUMNS = 16
#: Number of columns from which a `QueueView` is made; the others change even while nothing happens.
_VIEWED = MB_MS


_view, _resource, _snapshot, _figures = (
    fast_constructor(QueueView),
    fast_constructor(Resource),
    fast_constructor(Snapshot),
    fast_constructor(Figures),
)


@kernel
def fill(S: SchedulerState, W: World, ints: NDArray[np.int64], reals: NDArray[np.float64], now: int, jobs: int) -> None:
    """Write the present values of all queues and the cluster into two tables.

    Parameters
    ----------
    ints : array of shape (queues + 1, 16)
        Receives the integer columns of `harness.model.snapshot` by queue slot, parents as sums over their leaves. The
        last row gets the cluster's memory (MiB) and vcores.
    reals : array of shape (queues, 2)
        Receives counted and assumed future resources, in the ledger's measure times ms.
    now
        The present time, ms.
    jobs
        0: omit the columns that need job data.
    """
    n = S.xg[0].n
    roll_rounds(S, now)
    for i in range(len(ints)):
        for k in range(_COLUMNS):
            ints[i, k] = 0
    ints[len(ints) - 1, 0] = S.g[0].cluster_mb
    ints[len(ints) - 1, 1] = S.g[0].cluster_vcores
    for i in range(n):
        ints[i, BACKLOG] = -1
        ints[i, LAST_START] = -1
        ints[i, OLDEST] = -1
        reals[i, 0] = 0.0
        reals[i, 1] = 0.0
    for j in range(len(W.jobs) if jobs == 1 else 0):
        job = W.jobs[j]
        if job.state != J_RUNNING and job.state != J_SUBMITTED:
            continue
        wanted = 0
        if job.am_ms == NEVER:
            wanted = 1
            ints[job.queue, WAITING] += 1
        elif job.kind == SPARK:
            wanted = job.ex_wanted
        else:
            for s in range(job.stages):
                wanted += W.stages[j, s].wanted
        if wanted > 0:
            ints[job.queue, PENDING_N] += wanted
            old = ints[job.queue, OLDEST]
            if old < 0 or job.submit_ms < old:
                ints[job.queue, OLDEST] = job.submit_ms
    for k in range(S.g[0].n_leaves):
        leaf = S.leaves[k]
        advance(S, leaf, now)
        q, x = S.q[leaf], S.x[leaf]
        ints[leaf, BACKLOG] = x.backlog_ms
        ints[leaf, LAST_START] = x.last_start_ms
        counted = total_of(S, leaf, now)
        ahead = max(x.ahead_a - now * x.ahead_b, 0.0) if x.ahead_b > 0.0 else 0.0
        ints[leaf, APPS_DONE] = x.apps_done
        pending_n = ints[leaf, PENDING_N]
        i = leaf
        while i >= 0:
            ints[i, MB] += q.usage_mb
            ints[i, VC] += q.usage_vcores
            ints[i, PENDING_MB] += q.pending_mb
            ints[i, PENDING_VC] += q.pending_vcores
            ints[i, APPS] += q.n_run if i == leaf else 0
            ints[i, TASKS] += x.tasks_done
            ints[i, TASK_MS] += x.task_ms
            ints[i, MB_MS] += x.mb_ms
            ints[i, VC_MS] += x.vc_ms
            reals[i, 0] += counted
            reals[i, 1] += ahead
            if i != leaf:
                ints[i, PENDING_N] += pending_n
            i = S.q[i].parent


class Seen(NamedTuple):
    """The result of one poll.

    Parameters
    ----------
    snapshot
        The snapshot that a policy receives.
    rows
        Integers that `fill` has written, by the queue's slot in the scheduler.
    reals
        Counted and assumed future resources, by the same slots, in the measure times milliseconds.
    """

    snapshot: Snapshot
    rows: list[list[int]]
    reals: NDArray[np.float64]


class Observer:
    """Makes snapshots of one run.

    Parameters
    ----------
    tree
        The queues.
    order
        The scheduler's slots of the queues, in the tree's order.
    entitlements
        Entitlements by path; 1.0 if a queue has none.
    size
        Number of rows of the scheduler's table of queues.
    look_at
        The scheduler's compiled `fill`.
    """

    def __init__(
        self,
        tree: QueueTree,
        order: list[int],
        entitlements: Mapping[str, float],
        size: int,
        look_at: Callable[[int, int, NDArray[np.int64], NDArray[np.float64], int], None],
    ) -> None:
        self._look_at = look_at
        self._queues = [
            (q.path, q.parent, q.leaf, float(entitlements.get(q.path, 1.0)), index)
            for q, index in zip(tree, order, strict=True)
        ]
        self._limits = {q.path: (q.min_share, q.max_limit) for q in tree}
        #: Values that rarely change between polls (a change replaces the list), and the cluster's capacity at the last
        #: poll.
        self.static: list[Any] = []
        self.capacity: Resource | None = None
        #: Values of the last poll and of the one before; the last row is the cluster's MiB and vcores.
        self._ints, self._before = np.zeros((2, size + 1, _COLUMNS), np.int64)
        self._reals = np.zeros((size, 2))
        self.leaves = [q.path for q in tree if q.leaf]
        self._order = order
        self._rows_at = np.array(order, np.int64)
        self._leaves_at = np.array([index for q, index in zip(tree, order, strict=True) if q.leaf], np.int64)
        self._names = {path: place for place, (path, *_) in enumerate(self._queues)}
        rows = tuple([(parent, leaf, weight) for _, parent, leaf, weight, _ in self._queues])
        self._shape = QueueShape(tuple(self._names), rows, "float")
        #: The same values as lists of rows, if a caller has needed them in this form.
        self._rows: list[list[int]] | None = None
        self._rows_before: list[list[int]] | None = None
        #: The values from which the last views were made, and the views; a queue with equal values keeps its view.
        self._viewed: dict[str, list[int]] = {}
        self._views: dict[str, QueueView] = {}
        self._views_of: list[Any] | None = None

    def limits_changed(self, path: str, least: Resource | None, limit: Any | None) -> None:
        """Note that a queue's minimum or maximum share was rewritten."""
        old = self._limits[path]
        self._limits[path] = (old[0] if least is None else least, old[1] if limit is None else limit)
        self.capacity = None

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the tables that `fill` writes in one poll."""
        return np.zeros_like(self._ints), np.zeros_like(self._reals)

    def look(self, S: SchedulerState, W: World, now_ms: int) -> Figures:
        """Poll the present values."""
        self._ints, self._before = self._before, self._ints
        self._rows, self._rows_before = None, self._rows
        self._look_at(S.address, W.address, self._ints, self._reals, now_ms)
        memory, vcores = self._ints[-1, :2].tolist()
        capacity = self.capacity
        if capacity is None or capacity.memory_mb != memory or capacity.vcores != vcores:
            capacity = self.capacity = Resource(memory, vcores)
            self.static = [
                (path, parent, leaf, weight, index, self._limits[path][0], self._limits[path][1].resolve(capacity))
                for path, parent, leaf, weight, index in self._queues
            ]
        return _figures(now_ms / 1000.0, capacity, self._shape, self._ints, self._rows_at, self._leaves_at)  # type: ignore[no-any-return]

    def snapshot(self, S: SchedulerState, W: World, now_ms: int, period_s: float) -> Seen:
        """Poll the present values and return the snapshot that a policy receives."""
        return self.seen(self.look(S, W, now_ms), period_s)

    def seen(self, figures: Figures, period_s: float) -> Seen:
        """Return the policy's snapshot of the values of the last poll."""
        rows = self._rows = self._ints.tolist()
        before = self._rows_before or self._before.tolist()
        queues = LateViews(
            self._shape,
            self._names,
            [rows[i] for i in self._order],
            partial(self._views_at, self.static, rows, before),
        )
        return Seen(_snapshot(figures.time_s, figures.capacity, queues, period_s), rows, self._reals)

    def _views_at(self, static: list[Any], rows: list[list[int]], rows_before: list[list[int]]) -> dict[str, QueueView]:
        """Return the views of a poll, given its values and those of the poll before."""
        before, views = (self._viewed, self._views) if self._views_of is static else ({}, {})
        queues: dict[str, QueueView] = {}
        viewed: dict[str, list[int]] = {}
        for path, parent, leaf, weight, index, least, most in static:
            row, last = rows[index], rows_before[index]
            # Container ends are counted since the poll before, so they are compared too.
            compared = viewed[path] = [
                *row[:_VIEWED],
                row[APPS_DONE] - last[APPS_DONE],
                row[TASKS] - last[TASKS],
            ]
            if compared == before.get(path):
                queues[path] = views[path]
                continue
            mb, vc = row[MB], row[VC]
            ended_apps, ended_tasks = compared[_VIEWED:] if leaf else (None, None)
            queues[path] = _view(
                path,
                parent,
                leaf,
                weight,
                _resource(mb, vc),
                _resource(mb + row[PENDING_MB], vc + row[PENDING_VC]),
                least,
                most,
                row[PENDING_N],
                row[APPS],
                row[BACKLOG] / 1000.0 if row[BACKLOG] >= 0 else None,
                row[LAST_START] / 1000.0 if row[LAST_START] >= 0 else None,
                row[TASK_MS] / (1000.0 * row[TASKS]) if row[TASKS] else None,
                row[OLDEST] / 1000.0 if row[OLDEST] >= 0 else None,
                row[WAITING],
                ended_apps,
                ended_tasks,
                None,
            )
        self._views, self._viewed, self._views_of = queues, viewed, static
        return queues

    def consumed(self, rows: list[list[int]]) -> dict[str, tuple[float, float]]:
        """Return leaf -> MiB-seconds and vcore-seconds since the start."""
        return {
            path: (rows[index][MB_MS] / 1000.0, rows[index][VC_MS] / 1000.0)
            for path, _, leaf, _, index in self._queues
            if leaf
        }

    def counted(self, reals: NDArray[np.float64]) -> dict[str, float]:
        """Return leaf -> counted resources, measure-seconds."""
        values = (reals[:, 0] / 1000.0).tolist()
        return {path: values[index] for path, _, leaf, _, index in self._queues if leaf}

    def ahead(self, reals: NDArray[np.float64]) -> dict[str, float]:
        """Return leaf -> assumed future use of its running tasks, measure-seconds."""
        values = (reals[:, 1] / 1000.0).tolist()
        return {path: values[index] for path, _, leaf, _, index in self._queues if leaf}
