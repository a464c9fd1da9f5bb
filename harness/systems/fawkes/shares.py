"""The arithmetic of FAWKES as pure functions: weights, discrimination, rounding to nodes, room for new MR-clusters.

Source: Ghit, Yigitbasi, Iosup, Epema: "Balanced Resource Allocations Across Multiple Dynamic MapReduce Clusters",
SIGMETRICS 2014, sections 4.1 and 4.2. All functions accept floats, and fractions for exact results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

#: Exact fractions on paper, floats in the simulator.
Number = Fraction | float
K = TypeVar("K", bound=str)


@dataclass(frozen=True, slots=True)
class Metrics:
    """One sample of an MR-cluster's metrics; ``completed_...`` count completions, the other values hold at the instant.

    ``processor`` is the fraction of its slots in use, ``disk`` its output data divided by its storage capacity, both
    from 0 to 1. ``slowdown`` is the mean, over running and waiting jobs, of the time since submission divided by the
    execution time alone on the reference MR-cluster; 0 if there are no such jobs.
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
        """Whether no job or task runs or waits."""
        return not (self.waiting_jobs or self.waiting_tasks or self.running_jobs or self.running_tasks)


class Weighting(Protocol):
    """Interface of a rule that divides nodes among MR-clusters (`harness.systems.fawkes.policies` implements it)."""

    name: ClassVar[str]
    settings: Any
    exact: Mapping[str, Fraction]
    #: False if MR-clusters stay at their minimum shares.
    resizes: ClassVar[bool]

    def values(self, metrics: Metrics) -> tuple[Number, ...]:
        """Return the values that are averaged over the samples of a period."""

    def weights(self, means: Mapping[str, tuple[Number, ...]]) -> dict[str, Number]:
        """Return w of every MR-cluster (eq. 4) from the means of its `values`."""


def weights_of(samples: Mapping[K, Number]) -> dict[K, Number]:
    """Return the weights w_i = y_i / sum of y of eq. (4), or equal weights if all y are 0.

    Negative, infinite and NaN values count as 0.
    """
    sound = {name: y if y == y and 0 < y < math.inf else Fraction(0) for name, y in samples.items()}
    total = sum(sound.values(), Fraction(0))
    if not total or total == math.inf:
        return {name: Fraction(1, len(sound)) for name in sound}
    return {name: y / total for name, y in sound.items()}


def temporal_discrimination(fractions: Mapping[K, Number], weights: Mapping[K, Number]) -> dict[K, Number]:
    """Return d_i = c_i - w_i (eq. 1): the fraction of the system that an MR-cluster holds, minus its weight."""
    return {name: fractions[name] - weight for name, weight in weights.items()}


def global_discrimination(interval: Mapping[K, Number]) -> Number:
    """Return E[D^2] (eq. 3), in squared seconds of the whole system; 0 without MR-clusters.

    This equals the variance of the D_i while all nodes are held, because they then sum to 0. While nodes are idle the
    two differ: the variance is 0 if all MR-clusters have equally little, so a single MR-cluster could never grow (see
    docs/decisions/fawkes.md). `variance` computes the variance.
    """
    if not interval:
        return Fraction(0)
    return sum((d * d for d in interval.values()), Fraction(0)) / len(interval)


def variance(interval: Mapping[K, Number]) -> Number:
    """Return E[D^2] - E[D]^2 of the discriminations, in squared seconds of the whole system; 0 without MR-clusters."""
    if not interval:
        return Fraction(0)
    mean = sum(interval.values(), Fraction(0)) / len(interval)
    return sum(((d - mean) * (d - mean) for d in interval.values()), Fraction(0)) / len(interval)


def ideal_shares(capacity: Number, weights: Mapping[K, Number], least: Mapping[K, Number]) -> dict[K, Number]:
    """Divide the capacity in proportion to the weights with each minimum share respected, unrounded (section 4.2.1).

    An MR-cluster whose proportional part is below its minimum gets the minimum, and the others divide the rest by
    weight; this repeats until no part is below a minimum. If the weights of those who divide are all 0, they get equal
    parts. Minima that exceed the capacity are returned unchanged; admission prevents this case.
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
    """Round `ideal_shares` to whole nodes by largest remainder (ties by name), keeping the sum.

    The sum is the capacity, or the sum of the minima if that is larger.
    """
    ideal = ideal_shares(capacity, weights, least)
    nodes = {name: int(share) for name, share in ideal.items()}
    room = max(capacity - sum(nodes.values()), 0)
    by_remainder = sorted(ideal, key=lambda name: (nodes[name] - ideal[name], name.encode()))
    for name in by_remainder[:room]:
        nodes[name] += 1
    return nodes


def make_room(wanted: int, held: Mapping[K, int], least: Mapping[K, int], weights: Mapping[K, Number]) -> dict[K, int]:
    """Return how many nodes each active MR-cluster gives up so that a new one gets `wanted` nodes (section 4.2.1).

    MR-clusters above their minimum shares give in proportion to their weights, and never go below the minimum. If their
    weights are all 0, they give in proportion to their nodes above the minimum. Numbers are whole nodes, ties by name.
    The total is less than `wanted` only if fewer nodes are held above the minima.
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
