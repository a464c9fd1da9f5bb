"""Check whether a cluster can have given the usage that a ResourceManager shows. Pure arithmetic."""

from __future__ import annotations

import math

from harness.model.resources import Resource

#: A figure may be this much older than its poll: twice the time for which a ResourceManager caches it
#: (SchedulerApplicationAttempt.MEM_AGGREGATE_ALLOCATION_CACHE_MSECS).
_OLDER_S = 6.0


def most_used(capacity: Resource, seconds: float, *, mib_a_vcore: float = 1.0) -> tuple[float, float]:
    """Return the MiB-seconds and vcore-seconds that a cluster can give at most in ``seconds``.

    If only memory is scheduled, containers may hold more vcores than the cluster has, but at most one per
    ``mib_a_vcore`` MiB.
    """
    within_s = max(seconds + _OLDER_S, 0.0)
    memory, vcores = capacity.memory_mb * within_s, capacity.vcores * within_s
    return memory, max(vcores, memory / mib_a_vcore)


def too_much(
    memory_mb_s: float, vcore_s: float, seconds: float, capacity: Resource, *, mib_a_vcore: float = 1.0
) -> str:
    """Explain why a cluster cannot have given this usage in ``seconds`` ('': it can, or that is not known)."""
    most = most_used(capacity, seconds, mib_a_vcore=mib_a_vcore)
    if not math.isfinite(seconds) or (memory_mb_s <= most[0] and vcore_s <= most[1]):
        return ""
    used = f"{memory_mb_s:,.0f} MiB s and {vcore_s:,.0f} vcore s"
    return f"{used} in {seconds:,.0f} s are more than the cluster could give"
