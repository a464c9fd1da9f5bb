"""The maximum share of a queue, which a written minimum share must not raise.

Hadoop's FSQueue.getMaxShare is the larger of a queue's maximum and its minimum share, in each resource.
"""

from __future__ import annotations

from harness.model.resources import UNBOUNDED, Resource
from harness.model.snapshot import QueueView

#: Hadoop's default for the smallest container (yarn.scheduler.minimum-allocation-mb), MiB.
SMALLEST_MB = 1024


def limit_of(queue: QueueView, capacity: Resource) -> Resource:
    """Return the queue's maximum share, at least its minimum share; UNBOUNDED in a resource without a limit.

    A ResourceManager caps the shown maxima at the cluster's size, so a maximum of that size means no limit.
    """
    most, least = queue.max_share, queue.min_share
    if most.memory_mb >= capacity.memory_mb and most.vcores >= capacity.vcores:
        return UNBOUNDED
    return Resource(
        UNBOUNDED.memory_mb if most.memory_mb >= capacity.memory_mb else max(most.memory_mb, least.memory_mb),
        UNBOUNDED.vcores if most.vcores >= capacity.vcores else max(most.vcores, least.vcores),
    )
