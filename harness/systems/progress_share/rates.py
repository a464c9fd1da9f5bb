"""Slots of several node types, jobs with computing rates, and functions that rank jobs for a free slot.

Source: Lee, Chun, Katz, "Heterogeneity-Aware Resource Allocation and Scheduling in the Cloud" (HotCloud 2011), section
3. CR(s, j) is how fast slot type s runs a task of job j: a task of w seconds of work takes w / CR seconds. All
functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type and the number of its ``slots`` in the whole cluster."""

    name: str
    slots: int


@dataclass(frozen=True, slots=True)
class RateJob:
    """A job of ``tasks`` tasks of ``work_s`` seconds each at rate 1.

    ``rates`` maps a node type to CR, which is above 0.
    """

    name: str
    tasks: int
    work_s: Fraction
    rates: Mapping[str, Fraction]
    weight: Fraction = Fraction(1)
    submit_s: Fraction = Fraction(0)
    #: Minimum progress share of the job (section 3.1.2), from 0 to 1.
    min_share: Fraction = Fraction(0)
    #: Work of each task in seconds if it differs between tasks (then one entry per task).
    each_s: tuple[Fraction, ...] = ()


@dataclass(frozen=True, slots=True)
class RatesScenario:
    """The input of a simulation.

    ``types`` are in the order in which their free slots are offered; ``jobs`` are sorted by name.
    """

    types: tuple[NodeType, ...]
    jobs: tuple[RateJob, ...]


@dataclass(slots=True)
class JobView:
    """What a policy sees of a job that has arrived and has not ended.

    ``held`` is the number of running tasks by node type. ``rates`` is CR by node type. With calibration, a rate is None
    until a task of the job has ended on that type; measured rates are in tasks per second, so that only their ratios
    have a meaning. ``min_share`` is the minimum progress share of the job.
    """

    name: str
    weight: Fraction
    pending: int
    held: dict[str, int]
    rates: dict[str, Fraction | None]
    #: Node types on which a task of the job has started, whether or not it has ended.
    tried: set[str] = field(default_factory=set)
    min_share: Fraction = Fraction(0)

    @property
    def slots(self) -> int:
        """The number of slots that the job holds."""
        return sum(self.held.values())


#: Chooses a job for a free slot: (type of the slot, jobs with waiting tasks, node types, free slots by type) -> the
#: job, or None to leave the slot free.
Choose = Callable[[str, Sequence[JobView], Sequence[NodeType], Mapping[str, int]], JobView | None]


def known_rates(job: JobView) -> dict[str, Fraction]:
    """Return CR by node type.

    If any rate is unknown all count as 1, which makes the progress share the share of slots.
    """
    if any(rate is None for rate in job.rates.values()):
        return dict.fromkeys(job.rates, Fraction(1))
    return {name: rate for name, rate in job.rates.items() if rate is not None}


def progress_share(held: Mapping[str, int], rates: Mapping[str, Fraction], types: Sequence[NodeType]) -> Fraction:
    """Return PS(j) of eq. (1), from 0 to 1: the sum of rates of the slots that the job holds over that of all slots."""
    whole = sum((rates[kind.name] * kind.slots for kind in types), Fraction(0))
    mine = sum((rates[name] * count for name, count in held.items()), Fraction(0))
    return mine / whole if whole else Fraction(0)


def affinity(slot: str, rates: Mapping[str, Fraction], types: Sequence[NodeType]) -> Fraction:
    """Return a job's rate on a slot type divided by its mean rate over all slots: 1 if it runs equally fast on all."""
    slots = sum(kind.slots for kind in types)
    whole = sum((rates[kind.name] * kind.slots for kind in types), Fraction(0))
    return rates[slot] * slots / whole if whole else Fraction(1)


def fewest_slots(jobs: Sequence[JobView]) -> JobView | None:
    """Return the Hadoop Fair Scheduler's choice: the job with the smallest slots / weight, the first of equal ones."""
    return min(jobs, key=lambda job: Fraction(job.slots) / job.weight, default=None)
