"""Whether a cluster can have given what a ResourceManager says that an application has used. Pure arithmetic."""

from __future__ import annotations

import math

from harness.model.resources import Resource

#: A figure may be older than the look that took it, by twice what a ResourceManager keeps one
#: (SchedulerApplicationAttempt.MEM_AGGREGATE_ALLOCATION_CACHE_MSECS).
_OLDER_S = 6.0


def most_used(capacity: Resource, seconds: float, *, mib_a_vcore: float = 1.0) -> tuple[float, float]:
    """The MiB-seconds and vcore-seconds that a cluster can have given within so many seconds.

    Where memory alone is scheduled, containers may hold more vcores than there are, but not more than one for every
    ``mib_a_vcore`` MiB.
    """
    within_s = max(seconds + _OLDER_S, 0.0)
    memory, vcores = capacity.memory_mb * within_s, capacity.vcores * within_s
    return memory, max(vcores, memory / mib_a_vcore)


def too_much(
    memory_mb_s: float, vcore_s: float, seconds: float, capacity: Resource, *, mib_a_vcore: float = 1.0
) -> str:
    """Why a cluster cannot have given so much within so many seconds, in words ('': it can, or nobody knows)."""
    most = most_used(capacity, seconds, mib_a_vcore=mib_a_vcore)
    if not math.isfinite(seconds) or (memory_mb_s <= most[0] and vcore_s <= most[1]):
        return ""
    used = f"{memory_mb_s:,.0f} MiB s and {vcore_s:,.0f} vcore s"
    return f"{used} in {seconds:,.0f} s are more than the cluster could give"
