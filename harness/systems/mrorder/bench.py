"""The benchmark of ``yarnfair bench`` that times the search for the best order."""

from __future__ import annotations

import time

from harness.model.data import data_path
from harness.systems.mrorder.ordering import Slots, parse_jobs
from harness.systems.mrorder.ordering.search import Objective, optimal


def measure_order(limit_s: float) -> dict[str, float | int]:
    """Measure job ordering on the thesis' testbed (section 3.3.6).

    Returns ``jobs_9_s``, the seconds to find the best orders of Table 3.2's nine jobs for both objectives (the thesis
    needs 97 s), and ``jobs_in_60_s``, the largest number of jobs for which the search proves the best total completion
    time within `limit_s`. The jobs are the first ones of the testbed, and their number grows until a proof takes
    longer.
    """
    path = data_path("workloads", "ordering", "testbed-100.csv")
    jobs = parse_jobs(path.read_text(encoding="utf-8"), path.name)

    def searched(count: int, objective: Objective) -> tuple[float, bool]:
        begun = time.monotonic()
        found = optimal(jobs[:count], Slots(57, 19), objective, stop=lambda: time.monotonic() - begun > limit_s)
        return time.monotonic() - begun, found.proven

    searched(4, "makespan")  # compile before anything is timed
    nine_s = searched(9, "makespan")[0] + searched(9, "tct")[0]
    count = 1
    while searched(count + 1, "tct")[1]:
        count += 1
    return {"jobs_9_s": round(nine_s, 3), "jobs_in_60_s": count}
