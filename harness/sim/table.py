"""Data kept during a simulated run: ended jobs, samples, the task log, as arrays that are collected in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.model.jobs import JobSpec
from harness.model.queues import QueueTree
from harness.sim.loop import (
    F_ACC,
    F_COUNTED,
    F_DUE,
    F_DUE_FLAT,
    F_QUANTUM,
    F_WEIGHT,
    I_DEMAND_MB,
    I_DEMAND_VC,
    I_FAIR_MB,
    I_MB,
    I_RUNNING,
    I_VC,
)
from harness.sim.setup import Samples
from harness.sim.world import ENDED, NEVER, TASKLOG, W

_INT32_MAX = 2**31 - 1
_ROOM_BYTES = 2_000_000


class JobTable:
    """One row per job, in the order in which jobs were read."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.names: list[str] = []
        self.queues: list[str] = []
        self.kinds: list[str] = []
        self._ended: list[np.ndarray] = []

    def add(self, job: JobSpec) -> int:
        """Add a job that was read; return its row."""
        self.ids.append(job.id)
        self.names.append(job.name)
        self.queues.append(job.queue)
        self.kinds.append(job.kind)
        return len(self.ids) - 1

    def take(self, world: W) -> np.ndarray:
        """Move the ended jobs out of the world; return their records."""
        n = int(world.g["ended_n"][0])
        block = world.ended[:n].copy()
        world.g["ended_n"] = 0
        self._ended.append(block)
        return block

    def forget(self) -> None:
        """Drop the records that were taken, for callers that keep them themselves."""
        self._ended.clear()

    def columns(self, world: W) -> dict[str, Any]:
        """Return the whole table; rows of unfinished jobs have their values so far."""
        n = len(self.ids)
        times = {name: np.full(n, math.nan) for name in ("submitted_s", "started_s", "finished_s", "task_s")}
        sums = {name: np.zeros(n) for name in ("memory_mb_s", "vcore_s")}
        counts = {name: np.zeros(n, np.int64) for name in ("tasks", "attempts_failed")}
        failed = np.zeros(n, bool)

        def fill(rows: Any, part: Any, finished: Any) -> None:
            for name, key in (("submitted_s", "submit_ms"), ("started_s", "first_am_ms")):
                values = part[key if key in (part.dtype.names or ()) else "started_ms"]
                times[name][rows] = np.where(values < NEVER, values / 1000.0, math.nan)
            times["finished_s"][rows] = finished
            done = part["tasks_done"]
            with np.errstate(divide="ignore", invalid="ignore"):
                times["task_s"][rows] = np.where(done > 0, part["task_ms"] / (1000.0 * done), math.nan)
            sums["memory_mb_s"][rows] = part["mb_ms"] / 1000.0
            sums["vcore_s"][rows] = part["vc_ms"] / 1000.0
            counts["tasks"][rows] = done
            counts["attempts_failed"][rows] = part["failed_attempts"]
            failed[rows] = part["failed"] == 1

        ended = np.concatenate(self._ended) if self._ended else np.zeros(0, ENDED)
        fill(ended["row"], ended, ended["finished_ms"] / 1000.0)
        live = world.jobs[world.jobs["state"] > 0]
        fill(live["row"], live, math.nan)
        return {
            "id": self.ids,
            "name": self.names,
            "queue": self.queues,
            "kind": self.kinds,
            "submitted_s": times["submitted_s"],
            "started_s": times["started_s"],
            "finished_s": times["finished_s"],
            "tasks": counts["tasks"],
            "failed": failed,
            "attempts_failed": counts["attempts_failed"],
            **sums,
            "task_s": times["task_s"],
        }


class SampleLog:
    """Samples of the queues over time.

    ``order``: the scheduler's queue indices in the tree's order; ``quanta``: whether there are quanta; ``uneven``:
    whether shares level by level differ from shares by the leaves' own weights.
    """

    def __init__(
        self,
        tree: QueueTree,
        order: list[int],
        share: dict[str, float],
        scale: float,
        *,
        quanta: bool = False,
        uneven: bool = False,
    ) -> None:
        self._quanta, self._uneven = quanta, uneven
        self._tree, self._order, self._share, self._scale = tree, np.array(order), share, scale
        #: Rows of (times, integers, reals, weights), with queues in the scheduler's order; integers as 32 bits where
        #: they fit, and the first `_kept` of the reals.
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self._kept = F_QUANTUM + 1 if quanta else F_DUE_FLAT + 1 if uneven else F_DUE + 1

    @staticmethod
    def rows(queues: int) -> int:
        """Return how many samples the world holds, chosen so that they stay in the caches."""
        return min(max(_ROOM_BYTES // (96 * queues), 16), 512)

    def take(self, world: W) -> None:
        """Move the samples out of the world in compact form, because touching new memory costs the most."""
        n = int(world.g["sample_n"][0])
        if n:
            ints = world.samp_i[:n]
            wide = max(int(ints.max()), -int(ints.min())) > _INT32_MAX
            self._blocks.append(
                (
                    world.samp_t[:n].copy(),
                    ints.astype(np.int64 if wide else np.int32),
                    world.samp_f[:n, :, : self._kept].copy(),
                    world.samp_f[:n, :, F_WEIGHT].astype(np.float32),  # in the scheduler's order
                )
            )
        world.g["sample_n"] = 0

    def samples(self) -> Samples:
        """Return all samples."""
        times = np.concatenate([block[0] for block in self._blocks] or [np.zeros((0, 3), np.int64)])
        order, none = self._order, np.zeros((0, len(self._order)))

        def integers(column: int) -> np.ndarray:
            return np.concatenate([none.astype(np.int64), *(block[1][:, order, column] for block in self._blocks)])

        def reals(column: int) -> np.ndarray:
            return np.concatenate([none, *(block[2][:, order, column] for block in self._blocks)])

        quantum = reals(F_QUANTUM) if self._quanta else None
        return Samples(
            queues=tuple(queue.path for queue in self._tree),
            leaf=np.array([queue.leaf for queue in self._tree]),
            share_fraction=np.array([self._share[queue.path] for queue in self._tree]),
            time_s=times[:, 0] / 1000.0,
            capacity_mb=times[:, 1].copy(),
            capacity_vcores=times[:, 2].copy(),
            allocated_mb=integers(I_MB),
            allocated_vcores=integers(I_VC),
            demand_mb=integers(I_DEMAND_MB),
            demand_vcores=integers(I_DEMAND_VC),
            fair_share_mb=integers(I_FAIR_MB),
            weight=np.concatenate([none, *(block[3][:, order] for block in self._blocks)]),
            accumulated=reals(F_ACC) * (self._scale / 1000.0),
            counted=reals(F_COUNTED) / 1000.0,
            due=reals(F_DUE) * (self._scale / 1000.0),
            due_flat=reals(F_DUE_FLAT) * (self._scale / 1000.0) if self._uneven else None,
            running=integers(I_RUNNING),
            quantum_s=None if quantum is None else np.where(quantum >= 0, quantum / 1000.0, math.nan),
        )


class TaskLog:
    """One row per attempt (only with ``record_tasks``)."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []

    def take(self, world: W) -> None:
        """Move the task log out of the world."""
        n = int(world.g["task_n"][0])
        self._blocks.append(world.tasklog[:n].copy())
        world.g["task_n"] = 0

    def columns(self) -> dict[str, Any]:
        """Return the whole log."""
        log = np.concatenate(self._blocks) if self._blocks else np.zeros(0, TASKLOG)
        named = {"job": log["row"]}
        for name in ("stage", "task", "attempt", "node", "granted_ms", "start_ms", "end_ms", "outcome"):
            named[name] = log[name].copy()
        return named


def mean_between_ends(tree: QueueTree, order: Sequence[int], x: Any) -> dict[str, float]:
    """Return the mean seconds between two container ends below each queue (NaN: fewer than two); `x`: S.x."""
    found: dict[str, tuple[int, int, int]] = {}
    for leaf, i in zip(tree, order, strict=True):
        if not leaf.leaf or int(x["ends"][i]) == 0:
            continue
        path: str | None = leaf.path
        while path is not None:
            ends, first, last = found.get(path, (0, int(x["first_end_ms"][i]), 0))
            first, last = min(first, int(x["first_end_ms"][i])), max(last, int(x["last_end_ms"][i]))
            found[path] = (ends + int(x["ends"][i]), first, last)
            path = tree[path].parent
    gaps = {queue.path: math.nan for queue in tree}
    for path, (ends, first, last) in found.items():
        if ends >= 2:
            gaps[path] = (last - first) / 1000.0 / (ends - 1)
    return gaps


def longest_waits(
    tree: QueueTree, order: Sequence[int], x: Any, now_ms: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return each leaf's longest time with pending containers and no grant, and when it ended, seconds; `x`: S.x."""
    waits, ends = {}, {}
    for queue, index in zip(tree, order, strict=True):
        if not queue.leaf:
            continue
        at = x[index]
        longest, ended = int(at["max_wait_ms"]), int(at["max_wait_at_ms"])
        begun = max(int(at["backlog_ms"]), int(at["last_start_ms"]))
        if int(at["backlog_ms"]) >= 0 and now_ms - begun > longest:
            longest, ended = now_ms - begun, now_ms
        waits[queue.path], ends[queue.path] = longest / 1000.0, ended / 1000.0
    return waits, ends
