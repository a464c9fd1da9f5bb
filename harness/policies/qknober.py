"""``qknober``: as efficient as can be while a part rho of fairness is kept (Tang, Yu, Li: QKnober)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import CallError
from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag, number
from harness.policies.fair import entitlement_weights
from harness.policies.qknober_paper import divide
from harness.policies.vectors import Division, VectorScenario


@dataclass(frozen=True, slots=True)
class QknoberSettings:
    rho: float | None = number(
        None, at_least=0, at_most=1, doc="the knob: the part of the DRF share that everybody keeps (none: 0.5)"
    )
    theta: float | None = number(
        None, at_least=0, doc="the soft fairness that is wanted, instead of rho: the knob is found from it"
    )
    integral: bool = flag(doc="on paper: whole tasks")


class Qknober(Policy):
    """Two stages: rho of everybody's DRF share, then the most efficient division of what is left."""

    name = "qknober"
    Settings = QknoberSettings

    def __init__(self, settings: Any = None, exact: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings, exact)
        if self.settings.rho is not None and self.settings.theta is not None:
            raise CallError(
                "rho and theta are both given", where="--set", mend="theta finds the knob: give one of them"
            )

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        return Plan(
            order=Order(measure="stock"),
            weights=entitlement_weights(snapshot),
            scheduling_policies=dict.fromkeys(snapshot.queues, "drf"),
        )

    def divide(self, scenario: VectorScenario) -> Division:
        from fractions import Fraction

        rho = self.exact.get("rho", Fraction(1, 2))
        return divide(scenario, rho, self.exact.get("theta"), self.settings.integral)
