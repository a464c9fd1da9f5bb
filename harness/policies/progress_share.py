"""``progress-share``: shares measured by progress, slots to the jobs that they suit (HotCloud 2011, section 3.1).

It chooses by slot, so it runs where slots have types: in scenarios and experiments of computing rates. Fair Scheduler
weights say nothing about nodes: from outside, and in the YARN simulator, its plan is ``fair``'s (what that loses:
docs/reference/progress-share.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag, number
from harness.policies.fair import entitlement_weights
from harness.policies.rates import Choose, JobView, NodeType, affinity, known_rates, progress_share


@dataclass(frozen=True, slots=True)
class ProgressShareSettings:
    preference: float = number(
        1.5,
        at_least=1,
        infinite=True,
        doc="a rate so many times the chosen job's is significantly higher",
    )
    calibrate: bool = flag(doc="rates are not given: each job is measured with a task on each node type first")


class ProgressShare(Policy):
    """The job furthest below its share gets the slot, unless the slot suits another one significantly better.

    "Furthest below" is the smallest progress share over weight. Rates of different jobs are compared after each has
    been divided by the job's mean over the cluster (`harness.policies.rates.affinity`): a job that is faster everywhere
    has no preference.
    """

    name = "progress-share"
    Settings: ClassVar[type] = ProgressShareSettings
    settings: ProgressShareSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        return Plan(order=Order(measure="stock"), weights=entitlement_weights(snapshot))

    @property
    def calibrates(self) -> bool:
        return self.settings.calibrate

    def slot_choice(self) -> Choose:
        return self.choose

    def choose(self, slot: str, jobs: Sequence[JobView], types: Sequence[NodeType]) -> JobView | None:
        if not jobs:
            return None
        # Calibration: one task on each type of node, before anything else (section 3.1.2).
        for job in jobs:
            if job.rates[slot] is None and slot not in job.tried:
                return job
        rates = {job.name: known_rates(job) for job in jobs}
        due = min(jobs, key=lambda job: progress_share(job.held, rates[job.name], types) / job.weight)
        if self.settings.preference == float("inf"):
            return due
        wanted = self.exact["preference"] * affinity(slot, rates[due.name], types)
        suited = max(jobs, key=lambda job: (affinity(slot, rates[job.name], types), job is due))
        # Strictly more than all alike: where nobody prefers anything, the share decides.
        if suited is not due and affinity(slot, rates[suited.name], types) >= max(wanted, Fraction(1)):
            return suited
        return due
