"""How much of a cluster is held by reduces that wait for maps: Facebook's day of 2010, by slow start.

    python -m studies.hoarding FB-2010_samples_24_times_1hr_0.tsv -o docs/records/hoarding.json

The trace is one of the SWIM workload repository's and too large for this one. Its day brings more than 100 nodes of 16
containers can do in eleven: a queue of jobs never ends before the last has come. Task times are those of
workloads/facebook/fb2009-day.yaml, the same for each job whatever the slow start is.

``container_s``: seconds of containers held by tasks. With a slow start of 1 no reduce waits for maps: all of it is
work, and heartbeats until an end is noticed. What is held besides, with another slow start, is reduces that wait.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.jobs.workloads import load_workload
from harness.jobs.workloads.swim import TraceWorkload
from harness.model.data import data_path
from harness.model.jobs import NodeSpec
from harness.sim.setup import SimSetup
from harness.sim.simulate import simulate
from harness.traces.swim import read_swim, swim_jobs
from harness.yarn.fair.parse import parse_allocations
from studies.result import in_one_line, write

#: Hadoop's default; and no reduce before the last map.
SLOW_STARTS = (0.05, 1.0)
NODES, CONTAINERS = 100, 16
#: Half of the cluster for masters, as by default: one queue.
QUEUES = '<allocations><queue name="all"/></allocations>'
LIMIT_S = 1e7


def measure(trace: Path, nodes: int = NODES) -> dict[str, Any]:
    """For each slow start: when the last job has ended, and what tasks have held."""
    model = load_workload(data_path("workloads", "facebook", "fb2009-day.yaml")).spec
    assert isinstance(model, TraceWorkload)
    rows = list(read_swim(trace))
    by_slow_start: dict[str, Any] = {}
    for slow_start in SLOW_STARTS:
        jobs = swim_jobs(
            iter(rows),
            queue="root.all",
            of_map=(model.map.demand.resource(), model.map.duration.duration()),
            of_reduce=(model.reduce.demand.resource(), model.reduce.duration.duration()),
            am=model.am.resource(),
            slow_start=slow_start,
        )
        setup = SimSetup(
            nodes=tuple(NodeSpec(f"n{at}", 1024 * CONTAINERS, CONTAINERS) for at in range(nodes)),
            allocations=parse_allocations(QUEUES),
            jobs=jobs,
            sample_s=3600.0,
            record_decisions=False,
            time_limit_s=LIMIT_S,
        )
        result = simulate(setup)
        ended_s = np.asarray(result.jobs["finished_s"], float)
        started_s = np.asarray(result.jobs["started_s"], float)
        held_s = float(np.sum(result.jobs["memory_mb_s"])) / model.am.resource().memory_mb
        by_slow_start[str(slow_start)] = {
            "open": int(np.isnan(ended_s).sum()),
            "makespan_s": round(result.end_s, 1),
            "container_s": round(held_s - float(np.nansum(ended_s - started_s))),
            "masters_s": round(float(np.nansum(ended_s - started_s))),
            "mean_completion_s": round(float(np.nanmean(ended_s - np.asarray(result.jobs["submitted_s"], float))), 1),
        }
    early, late = (by_slow_start[str(slow_start)]["container_s"] for slow_start in SLOW_STARTS)
    return {
        "nodes": nodes,
        "containers": nodes * CONTAINERS,
        "jobs": len(rows),
        "maps": sum(row.maps for row in rows),
        "reduces": sum(row.reduces for row in rows),
        "slow_start": by_slow_start,
        "waiting": round(1 - late / early, 4),
    }


@in_one_line("hoarding")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.hoarding", description=__doc__)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="FB-2010_samples_24_times_1hr_0.tsv of SWIM")
    parser.add_argument("-o", type=Path, metavar="FILE", help="where the record goes; without it: printed")
    given = parser.parse_args(arguments)
    write(given.o, f"python -m studies.hoarding {given.trace.name}", measure(given.trace))
    return 0


if __name__ == "__main__":
    sys.exit(main())
