"""Reduces curves for a page: means over buckets and over seeds, and omission of points. Draws nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.base.stats import means_and_half_widths_95

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, y), x ascending; a NaN in y is a gap.

    ``low`` and ``high`` are the ends of the 95 % interval of the mean at each x, where y is a mean over several seeds.
    """

    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None

    def extremes(self) -> Floats:
        """Return every finite y, including the ends of intervals, which an axis has to cover."""
        values: Floats = np.concatenate([part for part in (self.y, self.low, self.high) if part is not None])
        return np.extract(np.isfinite(values), values)


def bucket_means(time_s: Floats, value: Floats, buckets: int) -> tuple[Curve, float]:
    """Return time-weighted means of a right-continuous step function over at most `buckets` equal spans of time.

    ``value[k]`` holds from ``time_s[k]`` to ``time_s[k + 1]`` (the last one has no width); a value that is not finite
    counts as 0 in a mean. Returns the curve at the middles of the buckets and the bucket's width in seconds (0: the
    samples are returned without averaging).
    """
    if len(time_s) <= buckets or time_s[-1] <= time_s[0]:
        return Curve(time_s, value), 0.0
    edges = np.linspace(time_s[0], time_s[-1], buckets + 1)
    clean = np.where(np.isfinite(value), value, 0.0)
    area = np.concatenate([[0.0], np.cumsum(clean[:-1] * np.diff(time_s))])
    at_edges = np.interp(edges, time_s, area)
    means = np.diff(at_edges) / np.diff(edges)
    return Curve((edges[:-1] + edges[1:]) / 2, means), float(edges[1] - edges[0])


def over_seeds(curves: Sequence[Curve], *, after_end: float | None = None) -> Curve:
    """Return the mean of several seeds' curves, with the 95 % interval of the mean at each time.

    Parameters
    ----------
    curves
        One per seed, none of them empty; their times may differ.
    after_end
        The value after a seed's last time (0 for what is then no longer held); None: its last value (for an integral,
        or a ratio of integrals).

    Returns
    -------
    Curve
        The mean at the times of the curve that ends last; a single curve is returned unchanged.
    """
    if len(curves) == 1:
        return curves[0]
    x = max(curves, key=lambda curve: (float(curve.x[-1]), len(curve.x))).x
    rows = np.array([np.interp(x, curve.x, curve.y, right=after_end) for curve in curves])
    mean, half = means_and_half_widths_95(rows)
    return Curve(x, mean, mean - half, mean + half)


def within(curve: Curve, *, low: float = -math.inf, high: float = math.inf) -> Curve:
    """Return the curve with its interval clipped to bounds that its quantity cannot exceed."""
    if curve.low is None or curve.high is None:
        return curve
    return replace(curve, low=np.clip(curve.low, low, high), high=np.clip(curve.high, low, high))


def thin(curve: Curve, *, tolerance: float) -> Curve:
    """Return the curve with fewer points, nowhere further than `tolerance` (in units of y) from the original.

    This is the Ramer-Douglas-Peucker algorithm with vertical distance, without recursion. Gaps (NaN) are kept; ``low``
    and ``high`` are left out.
    """
    count = len(curve.x)
    if count < 3:
        return curve
    keep = np.zeros(count, dtype=bool)
    finite = np.isfinite(curve.y)
    keep[~finite] = True
    starts = np.flatnonzero(finite & ~np.concatenate([[False], finite[:-1]]))
    ends = np.flatnonzero(finite & ~np.concatenate([finite[1:], [False]]))
    stack = list(zip(starts.tolist(), ends.tolist(), strict=True))
    for first, last in stack:
        keep[first] = keep[last] = True
    while stack:
        first, last = stack.pop()
        if last - first < 2:
            continue
        x, y = curve.x[first + 1 : last], curve.y[first + 1 : last]
        width = curve.x[last] - curve.x[first]
        slope = (curve.y[last] - curve.y[first]) / width if width else 0.0
        distance = np.abs(y - (curve.y[first] + slope * (x - curve.x[first])))
        worst = int(np.argmax(distance))
        if distance[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            stack += [(first, middle), (middle, last)]
    return Curve(curve.x[keep], curve.y[keep])


def steps(time_s: Floats, value: Floats, until_s: float) -> Curve:
    """Return a right-continuous step function as a polyline: only its changes, each with both corners."""
    if len(time_s) == 0:
        return Curve(time_s, value)
    changed = np.concatenate([[True], value[1:] != value[:-1]])
    at, level = time_s[changed], value[changed]
    x = np.repeat(at, 2)[1:]
    y = np.repeat(level, 2)[:-1]
    return Curve(np.append(x, max(until_s, float(at[-1]))), np.append(y, level[-1]))


def longest_true_s(time_s: Floats, holds: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the longest time span in which a sampled condition held: (length, from, to) in seconds; zeros if never.

    A sample represents the time until the next one.
    """
    turns = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]])))
    begins, ends = time_s[turns[::2]], time_s[np.minimum(turns[1::2], len(time_s) - 1)]
    lengths = ends - begins
    if not len(turns) or not lengths.max():
        return (0.0, 0.0, 0.0)
    longest = int(lengths.argmax())
    return float(lengths[longest]), float(begins[longest]), float(ends[longest])
