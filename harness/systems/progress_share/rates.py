"""Slots of several node types, jobs with computing rates, and who gets a slot that has become free. Pure.

Source: Lee, Chun, Katz, "Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud" (HotCloud 2011), section
3. CR(s, j) is how fast slot type s runs a task of job j; a task of w seconds of work takes w / CR seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class NodeType:
    """``slots`` of this type are in the cluster (all of its nodes' together)."""

    name: str
    slots: int


@dataclass(frozen=True, slots=True)
class RateJob:
    """``tasks`` of ``work_s`` seconds each at rate 1; ``rates``: node type -> CR, all above 0."""

    name: str
    tasks: int
    work_s: Fraction
    rates: Mapping[str, Fraction]
    weight: Fraction = Fraction(1)
    submit_s: Fraction = Fraction(0)
    #: The least progress share that it is to have (section 3.1.2), 0 to 1.
    min_share: Fraction = Fraction(0)
    #: Work of each task where they differ (then as many as ``tasks``).
    each_s: tuple[Fraction, ...] = ()


@dataclass(frozen=True, slots=True)
class RatesScenario:
    """Node types in the order in which free slots are offered; jobs by name."""

    types: tuple[NodeType, ...]
    jobs: tuple[RateJob, ...]


@dataclass(slots=True)
class JobView:
    """What a policy sees of a job that has arrived and is not done.

    ``held``: running tasks by node type. ``rates``: CR by node type as far as it is known; None for a type on which
    none of its tasks has ended yet (calibration), where rates are not given. Measured ones are tasks a second; only
    their proportions say anything. ``min_share``: the least progress share that the job is to have.
    """

    name: str
    weight: Fraction
    pending: int
    held: dict[str, int]
    rates: dict[str, Fraction | None]
    #: Types on which a task has been started, running or ended.
    tried: set[str] = field(default_factory=set)
    min_share: Fraction = Fraction(0)

    @property
    def slots(self) -> int:
        """The number of slots that the job holds."""
        return sum(self.held.values())


#: (type of the free slot, jobs with tasks waiting, node types, free slots by type) -> who gets it; None: nobody.
Choose = Callable[[str, Sequence[JobView], Sequence[NodeType], Mapping[str, int]], JobView | None]


def known_rates(job: JobView) -> dict[str, Fraction]:
    """CR by type; while one is unknown all count the same, so that the progress share is the slot share."""
    if any(rate is None for rate in job.rates.values()):
        return dict.fromkeys(job.rates, Fraction(1))
    return {name: rate for name, rate in job.rates.items() if rate is not None}


def progress_share(held: Mapping[str, int], rates: Mapping[str, Fraction], types: Sequence[NodeType]) -> Fraction:
    """PS(j) of eq. (1): the rates of the slots that the job holds over those of all slots, 0 to 1."""
    whole = sum((rates[kind.name] * kind.slots for kind in types), Fraction(0))
    mine = sum((rates[name] * count for name, count in held.items()), Fraction(0))
    return mine / whole if whole else Fraction(0)


def affinity(slot: str, rates: Mapping[str, Fraction], types: Sequence[NodeType]) -> Fraction:
    """A slot type's rate for a job over the job's mean rate on the cluster: 1 where all slots are alike to it."""
    slots = sum(kind.slots for kind in types)
    whole = sum((rates[kind.name] * kind.slots for kind in types), Fraction(0))
    return rates[slot] * slots / whole if whole else Fraction(1)


def fewest_slots(jobs: Sequence[JobView]) -> JobView | None:
    """The Hadoop Fair Scheduler's choice: slots / weight, ties by name (the first)."""
    return min(jobs, key=lambda job: Fraction(job.slots) / job.weight, default=None)
