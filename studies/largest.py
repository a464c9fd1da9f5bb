"""One simulation larger than any: 50,000 nodes and a day of 100 million tasks, on one core: docs/reference/bench.md.

    python -m studies.largest -o FILE

The bench's engine load (harness/bench/run.py) under ``ltrf`` with 10,000 applications, and tasks so long that a
day has some 100 million of them. Memory and time are taken hour by hour, so that a growth would be seen.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import Any

from harness.bench.run import engine_load, peak_mb
from harness.bench.scale import memory_of
from harness.model.jobs import Duration
from harness.policies.registry import make_policy
from harness.sim.simulate import Simulation
from studies.result import main_of

NODES, APPLICATIONS, TASK_S, DAY_S = 50_000, 10_000, 620.0, 86_400.0


def measure(nodes: int = NODES, applications: int = APPLICATIONS, hours: int = 24) -> dict[str, Any]:
    """``hourly``: events (container starts and ends), CPU seconds, peak MiB of the process, mean allocation."""
    setup = engine_load(make_policy("ltrf", {}), nodes, 0.001, applications)
    tasks = Duration("lognormal", mu=math.log(TASK_S) - 0.125, sigma=0.5)
    jobs = [replace(job, stages=tuple(replace(stage, duration=tasks) for stage in job.stages)) for job in setup.jobs]
    simulation = Simulation(replace(setup, jobs=jobs, sample_s=60.0))
    g = simulation.world.g
    simulation.run()  # compiled now
    hourly, before = [], 0
    for hour in range(hours):
        g["limit_ms"] = round((hour + 1) * DAY_S / 24 * 1000)
        began = time.process_time()
        samples = simulation.run().samples
        took_s = time.process_time() - began
        events = int(g["started"][0] + g["ended"][0])
        root = samples.queues.index("root")
        last = samples.time_s > hour * DAY_S / 24
        hourly.append(
            {
                "events": events - before,
                "cpu_s": round(took_s, 1),
                "peak_mb": round(peak_mb()),
                "load": round(float((samples.allocated_mb[last, root] / samples.capacity_mb[last]).mean()), 4),
            }
        )
        before = events
        print(hour + 1, hourly[-1], file=sys.stderr, flush=True)
    return {
        "nodes": nodes,
        "applications": applications,
        "virtual_s": hours * DAY_S / 24,
        "tasks": int(g["ended"][0]),
        "events": before,
        "cpu_s": round(sum(hour["cpu_s"] for hour in hourly), 1),
        "peak_mb": hourly[-1]["peak_mb"],
        "mb_per_1000": memory_of(simulation, nodes),
        "hourly": hourly,
    }


main = main_of("largest", __doc__, measure)


if __name__ == "__main__":
    sys.exit(main())
