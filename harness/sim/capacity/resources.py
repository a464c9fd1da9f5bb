"""Hadoop's resource calculators: Default compares memory only, Dominant compares shares of the cluster.

Follows DefaultResourceCalculator, DominantResourceCalculator and Resources of Hadoop 3.4.2. ``G.drf`` selects one. With
the default calculator, functions that round return 1 vcore (0 vcores for no memory).
"""

from __future__ import annotations

import numpy as np

from harness.sim.calculator import dominant_compare, top_share
from harness.sim.capacity.state import State
from harness.sim.java import single, to_long
from harness.sim.kernel import kernel

_F0 = single(0.0)


@kernel
def div32(a: float, b: float) -> float:
    """Divide a float32 by a float32 as Java does."""
    x, y = single(a), single(b)
    if y == _F0:
        return single(np.nan) if x == _F0 or x != x else (single(np.inf) if x > _F0 else single(-np.inf))
    return single(x / y)


@kernel
def compare_in(s: State, total_mb: int, total_vcores: int, mb: int, vcores: int, to_mb: int, to_vcores: int) -> int:
    """Compare two resources in a cluster of the given size (ResourceCalculator.compare): return 1, 0 or -1."""
    if s.g[0].drf == 0:
        return 1 if mb > to_mb else (-1 if mb < to_mb else 0)
    return dominant_compare(total_mb, total_vcores, mb, vcores, to_mb, to_vcores)


@kernel
def compare(s: State, mb: int, vcores: int, to_mb: int, to_vcores: int) -> int:
    """Compare two resources in the scheduler's present cluster (ResourceCalculator.compare): return 1, 0 or -1."""
    g = s.g[0]
    return compare_in(s, g.cluster_mb, g.cluster_vcores, mb, vcores, to_mb, to_vcores)


@kernel
def smaller(s: State, mb: int, vcores: int, other_mb: int, other_vcores: int) -> tuple[int, int]:
    """Return the smaller of two resources, the first if both are equal (Resources.min)."""
    if compare(s, mb, vcores, other_mb, other_vcores) <= 0:
        return mb, vcores
    return other_mb, other_vcores


@kernel
def fits(s: State, mb: int, vcores: int, into_mb: int, into_vcores: int) -> bool:
    """Return whether a resource fits into another one (Resources.fitsIn)."""
    return mb <= into_mb and (s.g[0].drf == 0 or vcores <= into_vcores)


@kernel
def has_room(s: State, free_mb: int, free_vcores: int, mb: int, vcores: int) -> bool:
    """Return whether ResourceCalculator.computeAvailableContainers is above 0."""
    if s.g[0].drf == 0:
        return free_mb >= mb
    return (mb == 0 or free_mb >= mb) and (vcores == 0 or free_vcores >= vcores)


@kernel
def positive(s: State, mb: int, vcores: int) -> bool:
    """Return whether memory or vcores are above 0."""
    return mb > 0 or (s.g[0].drf == 1 and vcores > 0)


@kernel
def _ratio1(a: int, b: int) -> float:
    if a == 0 and b == 0:
        return _F0
    return div32(single(a), single(b))


@kernel
def ratio(s: State, mb: int, vcores: int, of_mb: int, of_vcores: int) -> float:
    """Return the ratio of two resources as float32 (ResourceCalculator.ratio)."""
    first = _ratio1(mb, of_mb)
    if s.g[0].drf == 0:
        return first
    return max(_F0, max(first, _ratio1(vcores, of_vcores)))


@kernel
def divide(s: State, total_mb: int, total_vcores: int, mb: int, vcores: int, by_mb: int, by_vcores: int) -> float:
    """Divide two resources in a cluster of the given size, as float32 (ResourceCalculator.divide)."""
    if s.g[0].drf == 0:
        return _ratio1(mb, by_mb)
    x = top_share(mb, vcores, total_mb, total_vcores)
    y = top_share(by_mb, by_vcores, total_mb, total_vcores)
    if y == 0:
        return single(np.nan) if x == 0 else single(np.inf)
    return single(x / y)


@kernel
def _toward_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -((-a) // b)


@kernel
def _up1(x: int, step: int) -> int:
    return _toward_zero(x + step - 1, step) * step if step != 0 else 0


@kernel
def _down1(x: int, step: int) -> int:
    return _toward_zero(x, step) * step if step != 0 else 0


@kernel
def _one(mb: int) -> tuple[int, int]:
    return mb, (1 if mb > 0 else 0)


@kernel
def round_up(s: State, mb: int, vcores: int) -> tuple[int, int]:
    """Round up to multiples of the minimum allocation."""
    g = s.g[0]
    if g.drf == 0:
        return _one(_up1(mb, g.min_mb))
    return _up1(mb, g.min_mb), _up1(vcores, g.min_vcores)


@kernel
def round_down(s: State, mb: int, vcores: int) -> tuple[int, int]:
    """Round toward 0 to multiples of the minimum allocation."""
    g = s.g[0]
    if g.drf == 0:
        return _one(_down1(mb, g.min_mb))
    return _down1(mb, g.min_mb), _down1(vcores, g.min_vcores)


@kernel
def times_up(s: State, mb: int, vcores: int, by: float) -> tuple[int, int]:
    """Multiply by a factor and round up to multiples of the minimum (ResourceCalculator.multiplyAndNormalizeUp)."""
    g = s.g[0]
    factor = np.float64(by)
    if g.drf == 0:
        return _one(_up1(to_long(mb * factor + 0.5), g.min_mb))
    return (
        _up1(to_long(np.ceil(np.float64(single(mb * factor)))), g.min_mb),
        _up1(to_long(np.ceil(np.float64(single(vcores * factor)))), g.min_vcores),
    )


@kernel
def times(mb: int, vcores: int, by: float) -> tuple[int, int]:
    """Multiply each resource by a double and truncate toward 0 (Resources.multiply)."""
    return to_long(mb * np.float64(by)), to_long(vcores * np.float64(by))


@kernel
def _ceil32(x: int, by: float) -> int:
    if by == _F0:
        return 0
    return to_long(np.ceil(np.float64(div32(single(x), by))))


@kernel
def divide_up(s: State, mb: int, vcores: int, by: float) -> tuple[int, int]:
    """Divide by a float32 and round up (ResourceCalculator.divideAndCeil); a division by 0 gives 0."""
    if s.g[0].drf == 0:
        return _one(_ceil32(mb, by))
    return _ceil32(mb, by), _ceil32(vcores, by)


@kernel
def hundredth_up(s: State, mb: int, vcores: int) -> tuple[int, int]:
    """Divide by 100 and round up (ResourceCalculator.divideAndCeil)."""
    mb, vcores = _toward_zero(mb + 99, 100), _toward_zero(vcores + 99, 100)
    return _one(mb) if s.g[0].drf == 0 else (mb, vcores)


@kernel
def normalize(s: State, leaf: int, mb: int, vcores: int) -> tuple[int, int]:
    """Return an ask's size as the scheduler accepts it: multiples of the minimum, at most the maximum allocation."""
    g = s.g[0]
    top_mb, top_vcores = g.conf_max_mb, g.conf_max_vcores
    if g.max_by_nodes == 1 and g.node_max_known == 1:
        top_mb, top_vcores = min(top_mb, g.node_max_mb), min(top_vcores, g.node_max_vcores)
    mb = min(_up1(max(mb, g.min_mb), g.min_mb), top_mb)
    if g.drf == 0:
        return _one(mb)
    return mb, min(_up1(max(vcores, g.min_vcores), g.min_vcores), top_vcores)


@kernel
def has_none_of(s: State, leaf: int, mb: int, vcores: int) -> bool:
    """Return whether a leaf's maximum is 0 for a requested resource; the scheduler itself does not check this."""
    return False
