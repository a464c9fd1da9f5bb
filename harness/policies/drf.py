"""``drf``: Hadoop's memoryless dominant resource fairness (scheduling policy drf at every level)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag
from harness.policies.fair import entitlement_weights
from harness.policies.vectors import (
    Division,
    VectorScenario,
    fill_lowest_first,
    progressive_filling,
    theorem_1,
    to_whole,
)


@dataclass(frozen=True, slots=True)
class DrfSettings:
    """Settings of DRF."""

    integral: bool = flag(doc="with several resources on paper: whole tasks")


class Drf(Policy):
    """Hadoop's Fair Scheduler with dominant resource fairness in every queue; the entitlements are the weights."""

    name = "drf"
    Settings = DrfSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the entitlements as weights, with ``drf`` in every queue."""
        return Plan(
            order=Order(measure="stock"),
            weights=entitlement_weights(snapshot),
            scheduling_policies=dict.fromkeys(snapshot.queues, "drf"),
        )

    def divide(self, scenario: VectorScenario) -> Division:
        """Divide by progressive filling, with ``integral`` in whole tasks.

        The result's theta is that of QKnober's Theorem 1 at rho = 1.
        """
        tasks = progressive_filling(scenario)
        if self.settings.integral:
            filling = to_whole(scenario, tasks)
            fill_lowest_first(filling)
            tasks = filling.result()
        users = [user for user in scenario.users if user.tasks != 0]
        if not users:
            return Division(tasks, Fraction(0))
        directions = [scenario.direction(user) for user in users]
        return Division(tasks, theorem_1(directions, [user.weight for user in users], Fraction(1)))
