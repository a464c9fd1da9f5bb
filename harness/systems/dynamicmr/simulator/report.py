"""Converts the result of a slot run to the simulator's `SimResult`, so that all results are stored and measured alike.

A slot is represented by its part of the node's memory and vcores: its weight divided by the sum of all weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.sim.setup import Samples, SimResult
from harness.systems.dynamicmr.simulator.model import SlotJobEnd, SlotResult, SlotRun


def as_sim_result(
    run: SlotRun,
    result: SlotResult,
    *,
    queues: Sequence[str],
    shares: Mapping[str, float],
    memory_mb: int,
    vcores: int,
    wall_s: float,
) -> SimResult:
    """Return the result as a `SimResult`.

    ``queues`` are root and the full paths of the pools; ``shares`` has S_i / capacity by path. ``memory_mb`` and
    ``vcores`` are totals of the cluster.
    """
    units = sum(run.cluster.units()[kind] * slots for kind, slots in enumerate(_slots(run)))
    mb, cores = memory_mb / units, vcores / units
    column = {name: at for at, name in enumerate(result.pools)}
    rows = len(result.samples)

    def table(of: Any, scale: float, kind: type) -> Any:
        values = np.zeros((rows, len(queues)))
        for row, sample in enumerate(result.samples):
            own = of(sample)
            values[row, 0] = sum(own)
            for at, queue in enumerate(queues[1:], start=1):
                values[row, at] = own[column[queue]] if queue in column else 0
        return (values * scale).round().astype(kind) if kind is np.int64 else values * scale

    share = np.array([shares[queue] for queue in queues])
    accumulated = table(lambda s: s.accumulated, mb / 1000.0, np.float64)
    due = table(lambda s: s.due, mb / 1000.0, np.float64)
    due[:, 0] = 0.0
    samples = Samples(
        queues=tuple(queues),
        leaf=np.array([queue != "root" for queue in queues]),
        share_fraction=share,
        time_s=np.array([sample.time_ms / 1000.0 for sample in result.samples]),
        capacity_mb=np.full(rows, memory_mb, dtype=np.int64),
        capacity_vcores=np.full(rows, vcores, dtype=np.int64),
        allocated_mb=table(lambda s: s.held, mb, np.int64),
        allocated_vcores=table(lambda s: s.held, cores, np.int64),
        demand_mb=table(lambda s: s.demand, mb, np.int64),
        demand_vcores=table(lambda s: s.demand, cores, np.int64),
        fair_share_mb=np.tile((share * memory_mb).round().astype(np.int64), (rows, 1)),
        weight=np.ones((rows, len(queues))),
        accumulated=accumulated,
        counted=accumulated,
        due=due,
        running=table(lambda s: [m + r for m, r in zip(s.maps, s.reduces, strict=True)], 1.0, np.int64),
    )
    return SimResult(
        jobs=_jobs(result.jobs, mb, cores),
        samples=samples,
        makespan_s=result.makespan_ms / 1000.0,
        end_s=result.end_ms / 1000.0,
        finished=result.finished,
        failed_jobs=result.failed_jobs,
        events=result.counts.starts + result.counts.ends,
        assignments=result.counts.starts,
        heartbeats=result.heartbeats,
        heartbeats_skipped=0,
        updates=0,
        ticks=0,
        max_wait_s={queue: result.longest_wait_ms.get(queue, 0) / 1000.0 for queue in queues[1:]},
        max_wait_at_s={queue: result.longest_wait_at_ms.get(queue, 0) / 1000.0 for queue in queues[1:]},
        mean_between_ends_s={},
        wall_s=wall_s,
    )


def figures(result: SlotResult) -> dict[str, Any]:
    """Return the figures that only slot runs have: locality, copies, kills, lending, and the network's peak."""
    counts = result.counts
    maps = counts.node_local + counts.rack_local + counts.remote
    return {
        "maps_started": maps,
        "node_local": counts.node_local / maps if maps else None,
        "rack_local": counts.rack_local / maps if maps else None,
        "speculative_maps": counts.speculative_maps,
        "speculative_reduces": counts.speculative_reduces,
        "speculative_won": counts.speculative_won,
        "killed_slow": counts.killed_slow,
        "attempts_failed": counts.failed,
        "reclaimed": counts.reclaimed,
        "maps_on_reduce_slots": counts.maps_on_reduce_slots,
        "reduces_on_map_slots": counts.reduces_on_map_slots,
        "prescheduled": counts.prescheduled,
        "most_maps": counts.most_maps,
        "most_reduces": counts.most_reduces,
        "shuffle_peak_mb_s": result.shuffle_peak_mb_s,
        "shuffle_mb": result.shuffle_mb,
    }


def lines(result: SlotResult) -> list[dict[str, Any]]:
    """Return each pool's running maps and reduces (the thesis' Fig. 4.9) and the shuffle's throughput by sample."""
    return [
        {
            "time_s": sample.time_ms / 1000.0,
            "maps": dict(zip(result.pools, sample.maps, strict=True)),
            "reduces": dict(zip(result.pools, sample.reduces, strict=True)),
            "shuffle_mb_s": round(sample.shuffle_mb_s, 3),
        }
        for sample in result.samples
    ]


def _slots(run: SlotRun) -> tuple[int, int]:
    return sum(node.map_slots for node in run.cluster.nodes), sum(node.reduce_slots for node in run.cluster.nodes)


def _jobs(jobs: Sequence[SlotJobEnd], mb: float, cores: float) -> dict[str, Any]:
    def seconds(time_ms: int) -> float:
        return time_ms / 1000.0 if time_ms >= 0 else math.nan

    return {
        "id": [job.id for job in jobs],
        "name": [job.name for job in jobs],
        "queue": [job.pool for job in jobs],
        "kind": ["mapreduce"] * len(jobs),
        "submitted_s": [seconds(job.submitted_ms) for job in jobs],
        "started_s": [seconds(job.started_ms) for job in jobs],
        "finished_s": [seconds(job.finished_ms) for job in jobs],
        "tasks": [job.tasks for job in jobs],
        "failed": [job.failed for job in jobs],
        "attempts_failed": [job.attempts_failed for job in jobs],
        "memory_mb_s": [job.unit_ms * mb / 1000.0 for job in jobs],
        "vcore_s": [job.unit_ms * cores / 1000.0 for job in jobs],
        "task_s": [job.task_ms / 1000.0 / job.tasks_ended if job.tasks_ended else math.nan for job in jobs],
    }
