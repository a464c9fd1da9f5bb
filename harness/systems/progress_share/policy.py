"""The policy ``progress-share``: fair shares are measured as progress (HotCloud 2011, section 3.1).

A free slot goes to the job that is due, or to one that runs significantly faster on it. The policy chooses a job for
each slot, so it works where slots have types: in scenarios and experiments of computing rates. Fair Scheduler weights
cannot express a preference for nodes; on a real cluster and in the YARN simulator, its plan is therefore that of
``fair`` (docs/reference/progress-share.md says what that loses).

According to the paper each job receives its fair share, but the paper's exception for a job with a significantly higher
rate breaks this (docs/decisions/progress-share-guarantee.md). The setting ``guarantee`` keeps the fair share.
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
    """The job furthest below its share gets the slot, unless another job is significantly faster on it.

    "Furthest below" is the smallest progress share over weight. To compare the rates of two jobs, each rate is divided
    by the job's mean rate over the cluster (`harness.systems.progress_share.rates.affinity`), so that a job that is
    faster everywhere has no preference. On a YARN cluster the plan is that of ``fair``, because weights cannot prefer a
    node.
    """

    name = "progress-share"
    Settings: ClassVar[type] = ProgressShareSettings
    settings: ProgressShareSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the entitlements as weights."""
        return Plan(order=Order(measure="stock"), weights=entitlement_weights(snapshot))

    @property
    def calibrates(self) -> bool:
        """Whether computing rates are measured before they decide which job gets a slot."""
        return self.settings.calibrate

    def slot_choice(self) -> Choose:
        """Return the function that chooses the job for a slot."""
        return self.choose

    def choose(
        self, slot: str, jobs: Sequence[JobView], types: Sequence[NodeType], free: Mapping[str, int]
    ) -> JobView | None:
        """Return the job that gets a slot of type `slot`, or None without jobs.

        ``free`` has the number of free slots of each type, including the offered one.
        """
        if not jobs:
            return None
        # Calibration: first, each job runs one task on each node type (section 3.1.2).
        for job in jobs:
            if job.rates[slot] is None and slot not in job.tried:
                return job
        rates = {job.name: known_rates(job) for job in jobs}
        share = {job.name: progress_share(job.held, rates[job.name], types) for job in jobs}
        # As in the Fair Scheduler, jobs below their minimum share come first, by the fraction of the minimum that
        # they have; then all others by weight.
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
        """Return the job that gets the slot by the paper's rule.

        This is ``due``, unless another job's rate on the slot is significantly higher.
        """
        if self.settings.preference == float("inf"):
            return due
        wanted = self.exact["preference"] * affinity(slot, rates[due.name], types)
        suited = max(jobs, key=lambda job: (affinity(slot, rates[job.name], types), job is due))
        # The other job must also be at least as fast here as on average (affinity 1). Among equal affinities `max`
        # prefers the job that is due.
        if suited is not due and affinity(slot, rates[suited.name], types) >= max(wanted, Fraction(1)):
            return suited
        return due


#: Number of ways to assign slots that are tried before a fair share counts as unattainable.
MOST_WAYS = 200_000


def attainable(needs: Sequence[tuple[Fraction, Mapping[str, Fraction], int]], free: Mapping[str, int]) -> bool:
    """Return whether the free slots can give every job the progress share that it still needs, in whole slots.

    ``needs`` has for each job: the missing progress share, the progress share that a slot of each type adds, and its
    waiting tasks. ``free`` is the number of free slots by type. The result is exact, except that it is False after more
    than `MOST_WAYS` tries.
    """
    names = list(free)
    ways = 0

    @cache
    def within(at: int, left: tuple[int, ...]) -> bool:
        nonlocal ways
        if at == len(needs):
            return True
        need, brings, tasks = needs[at]
        # Of the last type, only the smallest sufficient number of slots needs to be tried.
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
