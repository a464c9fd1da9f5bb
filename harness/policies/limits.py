"""What a queue may hold at most. A minimum share that is written must not lift an administrator's maximum.

Hadoop's FSQueue.getMaxShare is the larger of a queue's maximum and its minimum share, in each resource.
"""

from __future__ import annotations

from harness.model.resources import UNBOUNDED, Resource
from harness.model.snapshot import QueueView

#: Hadoop's default for the smallest container (yarn.scheduler.minimum-allocation-mb), MiB.
SMALLEST_MB = 1024


def limit_of(queue: QueueView, capacity: Resource) -> Resource:
    """The queue's maximum share, not below its minimum share; UNBOUNDED in what it may hold all of the cluster's.

    A ResourceManager shows no larger maxima than the cluster, so one as large as that says nothing.
    """
    most, least = queue.max_share, queue.min_share
    if most.memory_mb >= capacity.memory_mb and most.vcores >= capacity.vcores:
        return UNBOUNDED
    return Resource(
        UNBOUNDED.memory_mb if most.memory_mb >= capacity.memory_mb else max(most.memory_mb, least.memory_mb),
        UNBOUNDED.vcores if most.vcores >= capacity.vcores else max(most.vcores, least.vcores),
    )
