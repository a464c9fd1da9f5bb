"""Offline job ordering of MapReduce jobs on map and reduce slots (tang-thesis section 3.3). Pure.

The search (numba) is imported from harness.policies.ordering.search by who needs it; nothing here is heavy.
"""

from harness.policies.ordering.bounds import lower_bound, upper_bound, upper_bound_as_printed
from harness.policies.ordering.estimator import Estimate, estimate, estimate_tasks, executed
from harness.policies.ordering.greedy import GREEDY
from harness.policies.ordering.jobs import MapReduceJob, Slots, parse_jobs

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
