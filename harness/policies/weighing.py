"""The constant inputs of `harness.policies.weights_kernel`, for callers that have not loaded numba."""

from __future__ import annotations

from typing import NamedTuple


class WeighingSettings(NamedTuple):
    """The inputs of a compiled weighing that do not change from one call to the next.

    A NamedTuple, because compiled code cannot take a dataclass.
    """

    #: Columns of the figures whose sum is a queue's demand: what it holds, and what is pending.
    held: int
    pending: int
    #: The cluster's capacity in the ledger's resource.
    capacity: float
    #: The horizon H in seconds; below 0: ``horizon_tasks`` times the mean length of a task.
    horizon_s: float
    #: Means of this length or longer are ignored, seconds.
    longest_task_s: float
    horizon_tasks: float
    #: The mean length of a task as long as no mean is known, seconds.
    first_task_s: float
    #: 0: leaves are compared regardless of the tree, 1: level by level.
    affinity: float
    #: Range of the weights.
    lowest: float
    highest: float
