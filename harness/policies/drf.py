"""``drf``: dominant resource fairness, memoryless, as Hadoop has it (scheduling policy drf at every level)."""

from __future__ import annotations

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy
from harness.policies.fair import entitlement_weights


class Drf(Policy):
    """The stock order with the DRF comparator everywhere; the weights are the entitlements."""

    name = "drf"

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        return Plan(
            order=Order(measure="stock"),
            weights=entitlement_weights(snapshot),
            scheduling_policies=dict.fromkeys(snapshot.queues, "drf"),
        )
