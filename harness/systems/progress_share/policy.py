"""``progress-share``: shares measured by progress, slots to the jobs that they suit (HotCloud 2011, section 3.1).

It chooses by slot, so it runs where slots have types: in scenarios and experiments of computing rates. Fair Scheduler
weights say nothing about nodes: from outside, and in the YARN simulator, its plan is ``fair``'s (what that loses:
docs/reference/progress-share.md).

The paper says that each job receives its fair share; its own exception, for a job with a significantly higher rate,
breaks that (docs/decisions/progress-share-guarantee.md). ``guarantee`` keeps it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag, number
from harness.policies.fair import entitlement_weights
from harness.systems.progress_share.rates import Choose, JobView, NodeType, affinity, known_rates, progress_share


@dataclass(frozen=True, slots=True)
class ProgressShareSettings:
    """Settings of progress share."""

    preference: float = number(
        1.75,
        at_least=1,
        infinite=True,
        doc="a rate this many times the chosen job's is significantly higher",
    )
    guarantee: bool = flag(doc="a slot passes nobody who could no longer get its fair share with the slots left")
    calibrate: bool = flag(doc="rates are not given: each job is measured with a task on each node type first")


class ProgressShare(Policy):
    """The job furthest below its share gets the slot, unless the slot suits another one significantly better.

    "Furthest below" is the smallest progress share over weight. Rates of different jobs are compared after each has
    been divided by the job's mean over the cluster (`harness.systems.progress_share.rates.affinity`): a job that is
    faster everywhere has no preference. On containers as ``fair``: weights cannot prefer a node.
    """

    name = "progress-share"
    Settings: ClassVar[type] = ProgressShareSettings
    settings: ProgressShareSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the entitlements as weights."""
        return Plan(order=Order(measure="stock"), weights=entitlement_weights(snapshot))

    @property
    def calibrates(self) -> bool:
        """Whether computing rates are measured before jobs are chosen by them."""
        return self.settings.calibrate

    def slot_choice(self) -> Choose:
        """Return the function that chooses the job for a slot."""
        return self.choose

    def choose(
        self, slot: str, jobs: Sequence[JobView], types: Sequence[NodeType], free: Mapping[str, int]
    ) -> JobView | None:
        """``free``: slots by type that nobody has, the offered one among them."""
        if not jobs:
            return None
        # Calibration: one task on each type of node, before anything else (section 3.1.2).
        for job in jobs:
            if job.rates[slot] is None and slot not in job.tried:
                return job
        rates = {job.name: known_rates(job) for job in jobs}
        share = {job.name: progress_share(job.held, rates[job.name], types) for job in jobs}
        # As in the fair scheduler: below its minimum first, by the part of it that a job has; then by weight.
        short = [job for job in jobs if share[job.name] < job.min_share]
        by_level = sorted(jobs, key=lambda job: share[job.name] / job.weight)
        due = min(short, key=lambda job: share[job.name] / job.min_share) if short else by_level[0]
        suited = self._suited(slot, jobs, types, rates, due)
        if not self.settings.guarantee:
            return suited
        weights = sum((job.weight for job in jobs), Fraction(0))
        need = {job.name: max(job.min_share, job.weight / weights) - share[job.name] for job in jobs}
        part = {
            job.name: {kind.name: progress_share({kind.name: 1}, rates[job.name], types) for kind in types}
            for job in jobs
        }
        left = {name: count - (name == slot) for name, count in free.items()}
        order = {job.name: job for job in (suited, due, *by_level)}
        for name, job in order.items():
            after = [
                (need[o.name] - (part[name][slot] if o is job else 0), part[o.name], o.pending - (o is job))
                for o in jobs
            ]
            if attainable([one for one in after if one[0] > 0], left):
                return job
        return due

    def _suited(
        self,
        slot: str,
        jobs: Sequence[JobView],
        types: Sequence[NodeType],
        rates: Mapping[str, Mapping[str, Fraction]],
        due: JobView,
    ) -> JobView:
        """The paper's rule: who is due, but for somebody with a significantly higher rate on the slot."""
        if self.settings.preference == float("inf"):
            return due
        wanted = self.exact["preference"] * affinity(slot, rates[due.name], types)
        suited = max(jobs, key=lambda job: (affinity(slot, rates[job.name], types), job is due))
        # Strictly more than all alike: where nobody prefers anything, the share decides.
        if suited is not due and affinity(slot, rates[suited.name], types) >= max(wanted, Fraction(1)):
            return suited
        return due


#: Ways to give out slots that are looked at before a fair share counts as out of reach.
MOST_WAYS = 200_000


def attainable(needs: Sequence[tuple[Fraction, Mapping[str, Fraction], int]], free: Mapping[str, int]) -> bool:
    """Whether the free slots can give every job the progress share that it needs, whole slots only.

    ``needs``: (what is missing, what a slot of each type brings, tasks waiting) of each job; ``free``: slots by type.
    Exact, but for more than `MOST_WAYS` ways (then: no).
    """
    names = list(free)
    ways = 0

    @cache
    def within(at: int, left: tuple[int, ...]) -> bool:
        nonlocal ways
        if at == len(needs):
            return True
        need, brings, tasks = needs[at]
        # Of the last type, the one worth looking at is the fewest that are enough.
        for counts in itertools.product(*(range(min(count, tasks) + 1) for count in left[:-1])):
            ways += 1
            if ways > MOST_WAYS:
                return False
            missing = need - sum((brings[name] * n for name, n in zip(names, counts, strict=False)), Fraction(0))
            last = max(0, -(-missing // brings[names[-1]]))
            if last <= left[-1] and sum(counts) + last <= tasks:
                after = (*(a - b for a, b in zip(left, counts, strict=False)), left[-1] - last)
                if within(at + 1, after):
                    return True
        return False

    return within(0, tuple(free[name] for name in names))
