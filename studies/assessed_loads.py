"""Loads by which the predictions of `yarnfair assess` are held against real containers (studies.assessed).

They were written down before anything was run. Each is short (two to five minutes) and small: three nodes, 24
containers of 1 GB. Each queue's name says what it does. `LOADS` are replayed, their tasks sleep; `PROGRAMS` compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TASK = {"memory_mb": 1024, "vcores": 1}
_EXECUTORS = {"count": 6, "slots": 1, "demand": {"memory_mb": 2048, "vcores": 1}}


@dataclass(frozen=True, slots=True)
class Load:
    """One load. ``expected``: the answer of `assess`. ``after``: the queues' workloads that are others after the
    recording. ``why``: what it is for. ``node_mb``: memory of each of the three nodes."""

    why: str
    expected: str
    queues: Mapping[str, Mapping[str, Any]]
    workloads: Mapping[str, Mapping[str, Any]]
    after: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    node_mb: int = 8192


def alike(every_s: float, rounds: int, *, start_s: float = 0.0, mean_s: float = 10.0, **job: Any) -> dict[str, Any]:
    """A queue's workload: ``rounds`` jobs alike, one every so many seconds."""
    return {
        "start_s": start_s,
        "inline": {
            "kind": "sequence",
            "submission": {"every_s": every_s},
            "rounds": rounds,
            "slow_start": 1.0,
            "am": _TASK,
            "task": {"demand": _TASK, "duration": {"lognormal": {"mean_s": mean_s, "sigma": 0.3}}},
            "jobs": [{"name": "job", **job}],
        },
    }


LOADS: Mapping[str, Load] = {
    "quiet": Load(
        "nobody waits for anybody",
        "no",
        {"steady": {}, "bursts": {}},
        {"steady": alike(20, 6, maps=4, mean_s=8), "bursts": alike(20, 6, start_s=10, maps=6, mean_s=8)},
    ),
    "spark": Load(
        "applications that hold executors from their start to their end, beside MapReduce",
        "yes",
        {"steady": {}, "spark": {}},
        {
            "steady": alike(12, 7, maps=26),
            "spark": alike(
                30,
                4,
                start_s=20,
                executors={"count": 18, "slots": 1, "demand": _TASK},
                stages=[{"name": "work", "tasks": 36}],
            ),
        },
    ),
    "changes": Load(
        "after the recording the steady queue has shorter jobs more often, and a third queue comes",
        "yes",
        {"steady": {}, "bursts": {}, "late": {}},
        {
            "steady": alike(13, 7, maps=28),
            "bursts": alike(40, 3, start_s=15, maps=36),
            "late": alike(60, 2, maps=6),
        },
        {"steady": alike(9, 10, maps=18), "late": alike(45, 3, start_s=30, maps=20)},
    ),
    "bursts": Load(
        "one queue wants more than the cluster all the time, the other comes in bursts",
        "yes",
        {"steady": {}, "bursts": {}},
        {"steady": alike(11, 8, maps=26), "bursts": alike(42, 3, start_s=25, maps=34)},
    ),
    "weights": Load(
        "three queues of unequal weights: production in bursts, queries in stages, and ad hoc work that never ends",
        "yes",
        {"production": {"weight": 2}, "queries": {}, "adhoc": {}},
        {
            "production": alike(45, 3, start_s=20, maps=30, reduces=4),
            "queries": alike(
                25, 4, stages=[{"name": "scan", "tasks": 12}, {"name": "join", "tasks": 6, "after": ["scan"]}]
            ),
            "adhoc": alike(12, 7, maps=24),
        },
    ),
}

#: Real Spark beside replayed MapReduce, on smaller nodes: its executors really take memory. An application wants 13 of
#: the 18 GB and holds them to its end; its driver begins when four fifths of its executors are there. Under `fair` only
#: its half of the cluster is sure.
PROGRAMS: Mapping[str, Load] = {
    "programs": Load(
        "Spark's own programs (k-means and TPC-H's Q9 by turns, six executors of 2 GB), beside replayed MapReduce",
        "yes",
        {"steady": {}, "spark": {}},
        {
            "steady": alike(14, 9, maps=20),
            "spark": {
                "start_s": 20,
                "inline": {
                    "kind": "programs",
                    "am": _TASK,
                    "task": _TASK,
                    "data": {"points": {"kind": "points", "size": "2MB"}, "tpch": {"kind": "tpch", "size": "5MB"}},
                    "submission": {"every_s": 50},
                    "rounds": 2,
                    "programs": [
                        {
                            "application": "kmeans",
                            "input": ["points"],
                            "executors": _EXECUTORS,
                            "maps": 12,
                            "reduces": 6,
                            "settings": {"iterations": "20"},
                        },
                        {
                            "application": "tpch-q9",
                            "input": ["tpch"],
                            "executors": _EXECUTORS,
                            "maps": 12,
                            "reduces": 6,
                        },
                    ],
                },
            },
        },
        node_mb=6144,
    ),
}

#: The cluster, and what every experiment on it has.
COMMON: Mapping[str, Any] = {
    "cluster": {"nodes": [{"count": 3, "memory_mb": 8192, "vcores": 32}]},
    "conf": {"yarn.scheduler.reservation-threshold.increment-multiple": 3},
    "max_am_share": -1.0,
    "seed": 1,
    "sample_s": 0.5,
    "delays": {"node_heartbeat_ms": 200, "am_heartbeat_ms": 500, "am_response_heartbeats": 0},
    "limits": {"time_limit_s": 900},
}


def experiment(name: str, *, changed: bool = False, max_ratio: float) -> dict[str, Any]:
    """The experiment file of a load. ``changed``: as it is after the recording."""
    load = {**LOADS, **PROGRAMS}[name]
    return {
        "experiment": f"assessed-{name}{'-after' if changed else ''}",
        "about": load.why,
        **COMMON,
        "cluster": {"nodes": [{"count": 3, "memory_mb": load.node_mb, "vcores": 32}]},
        "queues": {queue: dict(settings) for queue, settings in load.queues.items()},
        "workloads": {**load.workloads, **(load.after if changed else {})},
        "policies": ["fair", "ltrf@outside"],
        "period_s": 5,
        "actuation": {"task_lengths": "containers", "max_ratio": max_ratio},
    }
