"""Observations of a real run in the form of the simulator's result: samples, jobs, tasks, waits.

The values come from the ResourceManager (allocated, demand, shares; applications' times and integrals) and from the
records of the replaying AMs. Integrals over samples use step functions: a value holds until the next poll.
"""

from __future__ import annotations

import contextlib
import math
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from harness.base.errors import YarnfairError
from harness.jobs.replay import JobRecord, TaskRecord, stages_in_order
from harness.model.jobs import JobSpec
from harness.model.queues import QueueTree
from harness.sim.longterm import flat_shares_of, is_uneven, shares_of
from harness.sim.setup import Samples, SimResult
from harness.yarn.answers import AppStatus
from harness.yarn.queue_answers import SchedulerStatus
from harness.yarn.rest import RestClient


class QueueCurves:
    """The queues over time, one row per poll."""

    def __init__(self, tree: QueueTree, entitlements: Mapping[str, float], resource: str) -> None:
        self.queues = tuple(queue.path for queue in tree)
        self.leaf = np.array([queue.leaf for queue in tree])
        share = shares_of(tree, entitlements)
        self.fraction = np.array([share[path] for path in self.queues])
        flat = flat_shares_of(tree, entitlements)
        self._flat = np.array([flat[path] for path in self.queues])
        self._uneven = is_uneven(tree, entitlements)
        self.resource = resource
        self._rows: dict[str, list[Any]] = defaultdict(list)
        self._accumulated = np.zeros(len(self.queues))
        self._due, self._due_flat = np.zeros(len(self.queues)), np.zeros(len(self.queues))
        #: Leaf -> (start, end) of each time with pending containers in which its number of containers did not rise.
        self._waits: dict[str, list[tuple[float, float]]] = {
            path: [] for path, leaf in zip(self.queues, self.leaf, strict=True) if leaf
        }
        self._asking: set[str] = set()
        self._containers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows["time_s"])

    def look(self, time_s: float, status: SchedulerStatus, weights: Mapping[str, float]) -> None:
        """Record one poll of the scheduler."""
        rows = self._rows
        if rows["time_s"] and time_s <= rows["time_s"][-1]:
            return
        if rows["time_s"]:
            step = time_s - rows["time_s"][-1]
            held, wanted = self._measured(rows["allocated"][-1]), self._measured(rows["demand"][-1])
            whole = self._measured([rows["capacity"][-1]])[0]
            self._accumulated = self._accumulated + held * step
            self._due = self._due + np.where(self.leaf, np.minimum(wanted, self.fraction * whole), 0.0) * step
            self._due_flat = self._due_flat + np.minimum(wanted, self._flat * whole) * step
        seen = [status.queues.get(path) for path in self.queues]
        rows["time_s"].append(time_s)
        rows["capacity"].append((status.capacity.memory_mb, status.capacity.vcores))
        allocated = [(q.used.memory_mb, q.used.vcores) if q else (0, 0) for q in seen]
        demand = [(q.demand.memory_mb, q.demand.vcores) if q else (0, 0) for q in seen]
        # The RM computes both values at slightly different times, but demand is at least the allocation.
        demand = [(max(d[0], a[0]), max(d[1], a[1])) for d, a in zip(demand, allocated, strict=True)]
        rows["allocated"].append(allocated)
        rows["demand"].append(demand)
        rows["fair"].append([q.fair_share.memory_mb if q else 0 for q in seen])
        rows["weight"].append([weights.get(path, 1.0) for path in self.queues])
        rows["running"].append([max(q.containers_allocated - q.active_apps, 0) if q else 0 for q in seen])
        rows["accumulated"].append(self._accumulated)
        rows["due"].append(self._due)
        rows["due_flat"].append(self._due_flat)
        for path in self._waits:
            self._wait(path, time_s, status)

    def _wait(self, path: str, time_s: float, status: SchedulerStatus) -> None:
        queue = status.queues.get(path)
        before, now = self._containers.get(path, 0), queue.containers_allocated if queue else 0
        self._containers[path] = now
        waits = self._waits[path]
        if queue is None or queue.containers_pending <= 0:
            self._asking.discard(path)
        elif path not in self._asking or now > before:
            self._asking.add(path)
            if waits and waits[-1][0] == waits[-1][1]:
                waits.pop()
            waits.append((time_s, time_s))
        else:
            waits[-1] = (waits[-1][0], time_s)

    def longest_waits(self, granted_s: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
        """Return leaf -> its longest wait for a container, and when that ended, in seconds.

        ``granted_s``: leaf -> known times of its grants, because a grant that coincides with an end does not change the
        number of containers.
        """
        found = {}
        for path, waits in self._waits.items():
            granted, longest = sorted(granted_s.get(path, ())), (0.0, 0.0)
            for since, until in waits:
                between = granted[bisect_right(granted, since) : bisect_left(granted, until)]
                for began, ended in pairwise((since, *between, until)):
                    if ended - began > longest[0]:
                        longest = ended - began, ended
            found[path] = longest
        return found

    def _measured(self, pairs: Sequence[tuple[int, int]]) -> Any:
        """Return an amount in the experiment's resource: MiB, vcores, or MiB of the dominant share."""
        values = np.asarray(pairs, dtype=np.float64)
        if self.resource == "memory":
            return values[:, 0]
        if self.resource == "vcores":
            return values[:, 1]
        memory, vcores = self._rows["capacity"][-1]
        return np.maximum(values[:, 0], values[:, 1] * (memory / vcores if vcores else 0.0))

    def samples(self) -> Samples:
        """Return all polls so far as samples."""
        rows, n = self._rows, len(self.queues)

        def table(name: str, kind: Any, *more: int) -> Any:
            return np.asarray(rows[name], dtype=kind).reshape(len(self), *more)

        allocated, demand = (table(name, np.int64, n, 2) for name in ("allocated", "demand"))
        capacity = table("capacity", np.int64, 2)
        return Samples(
            queues=self.queues,
            leaf=self.leaf,
            share_fraction=self.fraction,
            time_s=table("time_s", np.float64),
            capacity_mb=capacity[:, 0],
            capacity_vcores=capacity[:, 1],
            allocated_mb=allocated[:, :, 0],
            allocated_vcores=allocated[:, :, 1],
            demand_mb=demand[:, :, 0],
            demand_vcores=demand[:, :, 1],
            fair_share_mb=table("fair", np.int64, n),
            weight=table("weight", np.float64, n),
            accumulated=table("accumulated", np.float64, n),
            counted=table("accumulated", np.float64, n),
            due=table("due", np.float64, n),
            due_flat=table("due_flat", np.float64, n) if self._uneven else None,
            running=table("running", np.int64, n),
        )


#: Time after which an AM whose container the RM does not fetch is lost, seconds. The RM fetches the container twice:
#: when it adds the application, and again when it is notified of the allocation. If the scheduler has allocated the
#: container already in the first case, its answer is dropped; the second call then finds no container and is retried
#: for ever (RMAppAttemptImpl.ScheduleTransition, retryFetchingAMContainer).
LOST_MASTER_S = 10.0


class LostMaster:
    """Detects the loss of one application's AM."""

    def __init__(self) -> None:
        self._app, self._since_s = "", math.nan

    def seen(self, status: AppStatus, now_s: float) -> bool:
        """Record one more poll, and return whether the AM is lost.

        The AM is lost if the application has had a container, but no AM container, for `LOST_MASTER_S`.
        """
        waits = status.state == "ACCEPTED" and status.running_containers > 0 and not status.master_at
        if not waits or status.id != self._app:
            self._app, self._since_s = status.id, now_s if waits else math.nan
        elif math.isnan(self._since_s):
            self._since_s = now_s
        return now_s - self._since_s > LOST_MASTER_S


@dataclass(slots=True)
class JobRun:
    """One job on the real cluster."""

    spec: JobSpec
    due_s: float | None = None  # time of its submission (None: after another one)
    app_id: str | None = None
    status: AppStatus | None = None
    record: JobRecord = field(default_factory=JobRecord)
    tries: int = 0
    #: Number of tries that ended because the AM was preempted.
    preempted: int = 0
    #: Seconds from the start of the run; NaN until then.
    submitted_s: float = math.nan
    started_s: float = math.nan
    finished_s: float = math.nan
    ended: bool = False
    failed: bool = False
    lost: LostMaster = field(default_factory=LostMaster)

    @property
    def am_start_ms(self) -> int | None:
        """Return the time from the launch of the AM's container to its first heartbeat.

        None if it did not get that far.
        """
        if self.status is None or not self.status.launched_ms or not self.record.first_heartbeat_ms:
            return None
        return self.record.first_heartbeat_ms - self.status.launched_ms


def tasks_table(jobs: Sequence[JobRun], zero_ms: int) -> pd.DataFrame:
    """Return one row per attempt of a task, in seconds from the start of the run (docs/how-results-are-computed.md)."""
    rows = []
    for job in jobs:
        names = [stage.name for stage in stages_in_order(job.spec)]
        for task in job.record.tasks:
            told = {
                _column(name): (value - zero_ms) / 1000.0 if name.endswith("_ms") else value
                for name, value in asdict(task).items()
            }
            rows.append({"job": job.spec.id, "queue": job.spec.queue, **told, "stage": names[task.stage]})
    return pd.DataFrame(rows, columns=["job", "queue", *(_column(field.name) for field in fields(TaskRecord))])


def _column(field: str) -> str:
    return f"{field.removesuffix('_ms')}_s" if field.endswith("_ms") else field


def result_of(
    jobs: Sequence[JobRun],
    curves: QueueCurves,
    *,
    zero_ms: int,
    end_s: float,
    finished: bool,
    wall_s: float,
    decisions: list[dict[str, Any]],
) -> SimResult:
    """Return the run in the form of a simulator's result; jobs in the order of their submission.

    ``zero_ms``: the start of the run, in the records' time.
    """
    shown = [job for job in jobs if not math.isnan(job.submitted_s)]
    shown.sort(key=lambda job: job.submitted_s)
    done = [[task for task in job.record.tasks if task.outcome == "finished"] for job in shown]
    failed = [sum(task.outcome == "failed" for task in job.record.tasks) for job in shown]
    ends = [job.finished_s for job in shown if job.ended]
    waits = curves.longest_waits(_granted_s(shown, zero_ms))
    return SimResult(
        jobs={
            "id": [job.spec.id for job in shown],
            "name": [job.spec.name for job in shown],
            "queue": [job.spec.queue for job in shown],
            "kind": [job.spec.kind for job in shown],
            "submitted_s": [job.submitted_s for job in shown],
            "started_s": [job.started_s for job in shown],
            "finished_s": [job.finished_s if job.ended else math.nan for job in shown],
            "tasks": [len(tasks) for tasks in done],
            "failed": [job.failed for job in shown],
            "attempts_failed": failed,
            "memory_mb_s": [float(job.status.memory_seconds) if job.status else 0.0 for job in shown],
            "vcore_s": [float(job.status.vcore_seconds) if job.status else 0.0 for job in shown],
            "task_s": [
                math.fsum(t.ended_ms - t.started_ms for t in tasks) / (1000.0 * len(tasks)) if tasks else math.nan
                for tasks in done
            ],
        },
        samples=curves.samples(),
        makespan_s=max(ends, default=0.0),
        end_s=end_s,
        finished=finished,
        failed_jobs=sum(job.failed for job in shown),
        events=2 * sum(len(job.record.tasks) + job.ended for job in shown),
        assignments=sum(len(job.record.tasks) + 1 for job in shown),
        heartbeats=0,
        heartbeats_skipped=0,
        updates=0,
        ticks=0,
        max_wait_s={path: longest for path, (longest, _) in waits.items()},
        max_wait_at_s={path: at_s for path, (_, at_s) in waits.items()},
        mean_between_ends_s=_between_ends(shown, curves.queues),
        wall_s=round(wall_s, 3),
        decisions=decisions,
    )


def _granted_s(jobs: Sequence[JobRun], zero_ms: int) -> dict[str, list[float]]:
    """Return queue -> times of its grants: of AMs (their launch) and of containers with recorded tasks."""
    found: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        if not math.isnan(job.started_s):
            found[job.spec.queue].append(job.started_s)
        # An executor, or a Tez container, runs several tasks: it was granted before the first of them.
        first_ms: dict[str, int] = {}
        for task in job.record.tasks:
            if task.granted_ms:
                first_ms[task.container] = min(task.granted_ms, first_ms.get(task.container, task.granted_ms))
        found[job.spec.queue] += [(at_ms - zero_ms) / 1000.0 for at_ms in first_ms.values()]
    return found


def _between_ends(jobs: Sequence[JobRun], queues: Sequence[str]) -> dict[str, float]:
    found = {}
    for path in queues:
        ends = [
            task.ended_ms
            for job in jobs
            if job.spec.queue == path or job.spec.queue.startswith(f"{path}.")
            for task in job.record.tasks
        ]
        found[path] = (max(ends) - min(ends)) / 1000.0 / (len(ends) - 1) if len(ends) > 1 else math.nan
    return found


#: With fewer gaps between grants, a node's heartbeat period cannot be estimated.
_FEWEST_HEARTBEATS = 10


def _between_heartbeats(tasks: Sequence[TaskRecord], period_ms: int) -> list[float]:
    """Return times between consecutive heartbeats of a node, ms, from the grants, of which each heartbeat has one.

    Grants after a pause are left out, and so are those near the end of a container, because a node then sends an extra
    heartbeat. The list is empty if there are too few.
    """
    grants: dict[str, list[int]] = defaultdict(list)
    ends: dict[str, list[int]] = defaultdict(list)
    for task in tasks:
        grants[task.node].append(task.granted_ms)
        ends[task.node].append(task.ended_ms)
    found = []
    for node, times in grants.items():
        times.sort()
        for before, after in pairwise(times):
            regular = 0.75 * period_ms < after - before < 1.75 * period_ms
            if regular and not any(before - 0.25 * period_ms < end <= after for end in ends[node]):
                found.append(float(after - before))
    return found if len(found) >= _FEWEST_HEARTBEATS else []


def latencies(jobs: Sequence[JobRun], *, node_ms: int = 1000) -> dict[str, Any]:
    """Return the measured delays of this cluster's parts, in milliseconds: mean, median and 95th percentile.

    ``node_ms``: the configured heartbeat interval of nodes.
    """
    tasks = [
        task for job in jobs if job.spec.kind != "spark" for task in job.record.tasks if task.outcome == "finished"
    ]
    of = {
        "am_start_ms": [float(start_ms) for job in jobs if (start_ms := job.am_start_ms) is not None],
        # From the AM's request to the first moment of the task's own process.
        "container_start_ms": [float(task.started_ms - task.heard_ms) for task in tasks],
        # From the RM's grant until the AM receives it, and from the task's end until the AM receives that.
        "grant_heard_ms": [float(task.heard_ms - task.granted_ms) for task in tasks],
        "end_heard_ms": [float(task.told_ms - task.ended_ms) for task in tasks],
        # From one regular heartbeat of a node to the next.
        "between_heartbeats_ms": _between_heartbeats(tasks, node_ms),
    }
    return {
        name: {
            "mean": round(float(np.mean(values)), 1),
            "median": round(float(np.median(values)), 1),
            "p95": round(float(np.percentile(values, 95)), 1),
        }
        for name, values in of.items()
        if values
    }


# --- after the last container has ended ---

#: The time for which MapReduce's AMs remain after their jobs, plus a second until their nodes report their ends (s).
SETTLE_S = 6.0
SETTLE_LOOK_S = 0.25


def settle(jobs: Sequence[JobRun], rest: RestClient, *, wait_s: float = SETTLE_S) -> list[str]:
    """Read the usage of ended jobs' applications again when no container is left, or after ``wait_s``.

    The ResourceManager shows an application as FINISHED as soon as its AM has unregistered (RMServerUtils shows
    FINISHING as FINISHED). But the AM's container runs until its node reports its end, and the usage of running
    containers is up to 3 s old in every answer (SchedulerApplicationAttempt). Usage that is read so early would lack a
    tenth for a job of some seconds.

    Returns the applications whose usage stays as it was last seen, because the ResourceManager did not answer.
    """
    ended = [job for job in jobs if job.app_id is not None and job.status is not None and job.status.final]
    if not ended:
        return []
    until, unread = time.monotonic() + wait_s, []
    # A failure here needs no report: the requests below would fail, too, and they are reported.
    with contextlib.suppress(YarnfairError):
        while rest.metrics().containers_allocated > 0 and time.monotonic() < until:
            time.sleep(SETTLE_LOOK_S)
    for job in ended:
        assert job.app_id is not None
        try:
            job.status = rest.app(job.app_id)
        except YarnfairError:
            unread.append(job.app_id)
    return unread
