"""Tables of a run's ended jobs, samples and task attempts, collected in blocks while the simulation runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.model.jobs import JobSpec
from harness.model.queues import QueueTree
from harness.sim.arrays import Column
from harness.sim.longterm_state import LongTermRecord
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
from harness.sim.world import NEVER, EndedJobRecord, TaskLogRecord, World

_INT32_MAX = 2**31 - 1
_ROOM_BYTES = 2_000_000


class JobTable:
    """Table of jobs with one row per job, in the order in which the jobs were read."""

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

    def take(self, world: World) -> np.ndarray:
        """Move the ended jobs out of the world; return their records."""
        n = int(world.g["ended_n"][0])
        block: np.ndarray = world.ended[:n].copy()
        world.g["ended_n"] = 0
        self._ended.append(block)
        return block

    def forget(self) -> None:
        """Drop the records that `take` has returned, for callers that store them themselves."""
        self._ended.clear()

    def columns(self, world: World) -> dict[str, Any]:
        """Return the columns of the table by name; unfinished jobs have their values so far.

        Their resources include what their running containers have used, as an RM counts them.
        """
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

        ended = np.concatenate(self._ended) if self._ended else np.zeros(0, EndedJobRecord.dtype)
        fill(ended["row"], ended, ended["finished_ms"] / 1000.0)
        slots = np.flatnonzero(world.jobs["state"] > 0)
        live, runs = world.jobs[slots], world.runs[world.runs["live"] == 1]
        held_ms = int(world.g["now"][0]) - runs["granted_ms"]
        for key, amount in (("mb_ms", "mb"), ("vc_ms", "vc")):
            running = np.zeros(len(world.jobs), np.int64)
            np.add.at(running, runs["job"], held_ms * runs[amount])
            live[key] += running[slots]
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

    Parameters
    ----------
    tree
        The queues.
    order
        The scheduler's slots of the queues, in the tree's order.
    share
        Each queue's S_i / R, by path.
    scale
        Factor that converts the simulator's integrals to the unit of the result.
    quanta
        Whether tasks have assumed execution times.
    uneven
        Whether shares computed level by level differ from shares by the leaves' own weights.
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
        #: Blocks of (times, integers, reals, weights), with the queues in the scheduler's order. Integers have 32 bits
        #: if the values allow it; of the reals, only the first `_kept` columns are stored.
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self._kept = F_QUANTUM + 1 if quanta else F_DUE_FLAT + 1 if uneven else F_DUE + 1

    @staticmethod
    def rows(queues: int) -> int:
        """Return the number of samples that the world holds at a time; it is chosen so that they fit in the caches."""
        return min(max(_ROOM_BYTES // (96 * queues), 16), 512)

    def take(self, world: World) -> None:
        """Move the samples out of the world, in compact form because access to new memory costs the most."""
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
    """Table of task attempts with one row per attempt (only with ``record_tasks``)."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []

    def take(self, world: World) -> None:
        """Move the task log out of the world."""
        n = int(world.g["task_n"][0])
        self._blocks.append(world.tasklog[:n].copy())
        world.g["task_n"] = 0

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table by name; times are in ms of virtual time."""
        log = np.concatenate(self._blocks) if self._blocks else np.zeros(0, TaskLogRecord.dtype)
        named = {"job": log["row"]}
        for name in ("stage", "task", "attempt", "node", "granted_ms", "start_ms", "end_ms", "outcome"):
            named[name] = log[name].copy()
        return named


def mean_between_ends(tree: QueueTree, order: Sequence[int], x: Column[LongTermRecord]) -> dict[str, float]:
    """Return the mean time between two container ends below each queue, by path.

    Parameters
    ----------
    tree, order
        The queues, and the scheduler's slots of these queues.
    x
        The scheduler's long-term values (``S.x``).

    Returns
    -------
    dict of str to float
        Seconds; NaN if fewer than two containers have ended.
    """
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
    tree: QueueTree, order: Sequence[int], x: Column[LongTermRecord], now_ms: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return each leaf's longest time with outstanding containers and no grant, and when it ended, seconds.

    Parameters
    ----------
    tree, order
        The queues, and the scheduler's slots of these queues.
    x
        The scheduler's long-term values (``S.x``).
    now_ms
        The present time, ms; a wait that still lasts counts up to it.
    """
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
