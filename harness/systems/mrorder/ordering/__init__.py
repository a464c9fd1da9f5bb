"""Offline job ordering of MapReduce jobs on map and reduce slots (tang-thesis section 3.3). All functions are pure.

harness.systems.mrorder.ordering.search has the exact search. It needs numba, so callers import it only when they use
it.
"""

from harness.systems.mrorder.ordering.bounds import lower_bound, upper_bound, upper_bound_as_printed
from harness.systems.mrorder.ordering.estimator import Estimate, estimate, estimate_tasks, executed
from harness.systems.mrorder.ordering.greedy import GREEDY
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots, parse_jobs

__all__ = [
    "GREEDY",
    "Estimate",
    "MapReduceJob",
    "Slots",
    "estimate",
    "estimate_tasks",
    "executed",
    "lower_bound",
    "parse_jobs",
    "upper_bound",
    "upper_bound_as_printed",
]
