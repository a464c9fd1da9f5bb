"""The policies ``fair`` and ``capacity``: the memoryless fairness of Hadoop's schedulers, by entitlement."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy


class Fair(Policy):
    """Hadoop's Fair Scheduler as it is, memoryless: the entitlements are the weights.

    It is the reference with which other policies are compared.
    """

    name = "fair"
    stock_of = "fair"

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the entitlements as weights."""
        return Plan(order=Order(measure="stock"), weights=entitlement_weights(snapshot))


class Capacity(Fair):
    """Hadoop's Capacity Scheduler as it is, memoryless: the queue that uses least of its capacity comes first."""

    name = "capacity"
    stock_of = "capacity"


def entitlement_weights(snapshot: Snapshot) -> Mapping[str, float]:
    """Return every queue's entitlement as a Fair Scheduler weight: a float32 within [WEIGHT_MIN, WEIGHT_MAX]."""
    weights = {}
    for name, queue in snapshot.queues.items():
        if queue.parent is not None:
            bounded = min(max(queue.weight, WEIGHT_MIN), WEIGHT_MAX)
            # The nearest float32 of 1e-3 is above it, and 1e6 is a float32, so the range also holds after rounding.
            weights[name] = struct.unpack("<f", struct.pack("<f", bounded))[0]
    return weights
