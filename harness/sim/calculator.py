"""Hadoop's DominantResourceCalculator for two resources, for the Fair and the Capacity Scheduler."""

from __future__ import annotations

import numpy as np

from harness.sim.kernel import kernel


@kernel
def _share(x: int, total: int) -> float:
    """Return used / total; infinite if the cluster has none of the resource."""
    return x / total if total != 0 else np.inf


@kernel
def dominant_compare(total_mb: int, total_vcores: int, mb: int, vcores: int, to_mb: int, to_vcores: int) -> int:
    """Compare two resources by their shares of a cluster: return 1, 0 or -1 (DominantResourceCalculator.compare)."""
    if mb == to_mb and vcores == to_vcores:
        return 0
    if total_mb == 0 and total_vcores == 0:
        more, less = mb > to_mb or vcores > to_vcores, mb < to_mb or vcores < to_vcores
        return 0 if more and less else (1 if more else -1)
    m0, v0 = _share(mb, total_mb), _share(vcores, total_vcores)
    m1, v1 = _share(to_mb, total_mb), _share(to_vcores, total_vcores)
    top0, low0 = (v0, m0) if v0 > m0 else (m0, v0)
    top1, low1 = (v1, m1) if v1 > m1 else (m1, v1)
    if top0 != top1:
        return 1 if top0 > top1 else -1
    if low0 != low1:
        return 1 if low0 > low1 else -1
    return 0


@kernel
def top_share(mb: int, vcores: int, total_mb: int, total_vcores: int) -> float:
    """Return the dominant share of resources in a cluster of the given size; a total of 0 is ignored."""
    top = 0.0
    if total_mb != 0:
        top = max(top, mb / total_mb)
    if total_vcores != 0:
        top = max(top, vcores / total_vcores)
    return top
