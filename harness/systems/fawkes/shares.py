"""FAWKES' arithmetic: weights, discrimination, whole nodes from weights, room for a newcomer. Pure functions.

Source: Ghit, Yigitbasi, Iosup, Epema: "Balanced Resource Allocations Across Multiple Dynamic MapReduce Clusters",
SIGMETRICS 2014, sections 4.1 and 4.2. Everything works on floats and, exactly, on fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

#: Fractions on paper, floats in a simulation.
Number = Fraction | float
K = TypeVar("K", bound=str)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is sampled of an MR-cluster at one instant, or since the sample before (``completed_...``).

    ``processor`` and ``disk`` are parts of what it has (slots in use; output data over storage capacity), from 0 to 1.
    ``slowdown``: mean over running and waiting jobs of time since submission over execution time on the reference
    MR-cluster; 0 when there is no such job.
    """

    waiting_jobs: Number = 0
    waiting_gb: Number = 0
    waiting_tasks: Number = 0
    running_jobs: Number = 0
    running_tasks: Number = 0
    processor: Number = 0
    disk: Number = 0
    slowdown: Number = 0
    completed_jobs: Number = 0
    completed_tasks: Number = 0

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not (self.waiting_jobs or self.waiting_tasks or self.running_jobs or self.running_tasks)


class Weighting(Protocol):
    """What divides nodes among MR-clusters: one of FAWKES' weighting policies (`harness.systems.fawkes.policies`)."""

    name: ClassVar[str]
    settings: Any
    exact: Mapping[str, Fraction]
    #: False: MR-clusters stay at their minimum shares.
    resizes: ClassVar[bool]

    def values(self, metrics: Metrics) -> tuple[Number, ...]:
        """What is averaged over the samples of an interval."""

    def weights(self, means: Mapping[str, tuple[Number, ...]]) -> dict[str, Number]:
        """Return w of every MR-cluster (eq. 4) from the means of its `values`."""


def weights_of(samples: Mapping[K, Number]) -> dict[K, Number]:
    """w_i = y_i / sum of y (eq. 4); equal when all are 0. What is negative or not a number counts as 0."""
    sound = {name: y if y == y and 0 < y < math.inf else Fraction(0) for name, y in samples.items()}
    total = sum(sound.values(), Fraction(0))
    if not total or total == math.inf:
        return {name: Fraction(1, len(sound)) for name in sound}
    return {name: y / total for name, y in sound.items()}


def temporal_discrimination(fractions: Mapping[K, Number], weights: Mapping[K, Number]) -> dict[K, Number]:
    """d_i = c_i - w_i (eq. 1): what an MR-cluster has of the system, less what it is entitled to."""
    return {name: fractions[name] - weight for name, weight in weights.items()}


def global_discrimination(interval: Mapping[K, Number]) -> Number:
    """E[D^2] (eq. 3), seconds of the whole system squared; 0 for nobody.

    It is the variance of the D_i as long as all nodes are held, because they then sum to 0. While nodes are idle the
    two differ, and the variance would call it balance when everybody has equally little (one MR-cluster alone could
    never grow): see docs/decisions/fawkes.md. `variance` is the other one.
    """
    if not interval:
        return Fraction(0)
    return sum((d * d for d in interval.values()), Fraction(0)) / len(interval)


def variance(interval: Mapping[K, Number]) -> Number:
    """E[D^2] - E[D]^2 of the discriminations, seconds of the whole system squared; 0 for nobody."""
    if not interval:
        return Fraction(0)
    mean = sum(interval.values(), Fraction(0)) / len(interval)
    return sum(((d - mean) * (d - mean) for d in interval.values()), Fraction(0)) / len(interval)


def ideal_shares(capacity: Number, weights: Mapping[K, Number], least: Mapping[K, Number]) -> dict[K, Number]:
    """Capacity in proportion to the weights, nobody below its minimum share (section 4.2.1); not rounded.

    Who would get less than its minimum gets that, and the others divide the rest by their weights, until nobody does.
    Minima that exceed the capacity are kept as they are: admission sees to it that they do not. With weights that are
    all 0 among those who divide, they divide equally.
    """
    found: dict[K, Number] = {}
    short = dict(weights)
    left: Number = capacity
    while short:
        total = sum(short.values(), Fraction(0))
        parts = {name: left * w / total if total else left / Fraction(len(short)) for name, w in short.items()}
        below = [name for name, part in parts.items() if part < least.get(name, 0)]
        if not below:
            found.update(parts)
            break
        for name in below:
            found[name] = least[name]
            left -= least[name]
            del short[name]
        left = max(left, Fraction(0))
    return {name: found[name] for name in weights}


def whole_nodes(capacity: int, weights: Mapping[K, Number], least: Mapping[K, int]) -> dict[K, int]:
    """`ideal_shares` in whole nodes, summing to the capacity (or to the minima): largest remainder, ties by name."""
    ideal = ideal_shares(capacity, weights, least)
    nodes = {name: int(share) for name, share in ideal.items()}
    room = max(capacity - sum(nodes.values()), 0)
    by_remainder = sorted(ideal, key=lambda name: (nodes[name] - ideal[name], name.encode()))
    for name in by_remainder[:room]:
        nodes[name] += 1
    return nodes


def make_room(wanted: int, held: Mapping[K, int], least: Mapping[K, int], weights: Mapping[K, Number]) -> dict[K, int]:
    """How many nodes each active MR-cluster gives up so that a newcomer gets `wanted` (section 4.2.1).

    Those above their minimum shares give in proportion to their weights, nobody goes below its minimum; with weights
    of 0, in proportion to what they have above it. Whole nodes, ties by name. Less than `wanted` in all only if there
    is not more above the minima.
    """
    surplus = {name: max(held[name] - least.get(name, 0), 0) for name in held}
    given: dict[K, Number] = dict.fromkeys(held, 0)
    wanted = min(wanted, sum(surplus.values()))
    open_ = {name for name in held if surplus[name]}
    left: Number = Fraction(wanted)
    while open_ and left > 0:
        by = {name: weights.get(name, 0) for name in open_}
        if not any(by.values()):
            by = {name: surplus[name] for name in open_}
        total = sum(by.values(), Fraction(0))
        full = [name for name in open_ if left * by[name] / total >= surplus[name] - given[name]]
        if not full:
            for name in open_:
                given[name] = given[name] + left * by[name] / total
            break
        for name in full:
            left -= surplus[name] - given[name]
            given[name] = surplus[name]
            open_.discard(name)
    nodes = {name: min(int(part), surplus[name]) for name, part in given.items()}
    by_remainder = sorted(given, key=lambda name: (nodes[name] - given[name], name.encode()))
    missing = wanted - sum(nodes.values())
    for name in by_remainder:
        if missing > 0 and nodes[name] < surplus[name]:
            nodes[name] += 1
            missing -= 1
    return nodes
