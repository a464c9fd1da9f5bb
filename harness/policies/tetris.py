"""``tetris``: the best-packing task among those that fairness puts first (Grandl 2014; QKnober, section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, number
from harness.policies.fair import entitlement_weights
from harness.policies.vectors import Division, Filling, VectorScenario


@dataclass(frozen=True, slots=True)
class TetrisSettings:
    f: float = number(
        0.25, at_least=0, at_most=1, doc="fairness knob: only the first 1 - f of the sorted tasks compete"
    )


class Tetris(Policy):
    """All pending tasks are sorted by dominant share / weight of their queue; among the first max(1, ceil((1 - f) *
    pending)) the one with the greatest alignment (dot product of demand and idle resources) is next.

    In YARN a queue's order cannot depend on the node's idle resources: `plan` is DRF, which is Tetris at f = 1
    (docs/decisions/qknober.md); with servers and placement it runs in ``yarnfair``'s vector simulator.
    """

    name = "tetris"
    Settings = TetrisSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        return Plan(
            order=Order(measure="stock"),
            weights=entitlement_weights(snapshot),
            scheduling_policies=dict.fromkeys(snapshot.queues, "drf"),
        )

    def divide(self, scenario: VectorScenario) -> Division:
        """Whole tasks. Users without end have equally many: beside them, finite ones count for nothing in the cut."""
        return Division(_fill(scenario, 1 - self.exact["f"]))


def _fill(scenario: VectorScenario, share: Fraction) -> tuple[Fraction, ...]:
    filling = Filling(scenario)
    users = scenario.users
    endless = any(user.tasks is None for user in users)
    while True:
        pending = {}
        for i, user in enumerate(users):
            if user.tasks is None or filling.counts[i] < user.tasks:
                pending[i] = (1 if user.tasks is None else 0) if endless else (user.tasks or 0) - filling.counts[i]
        first = max(1, math.ceil(share * sum(pending.values())))
        ordered = sorted(pending, key=lambda i: (filling.level(i), i))
        filling.counter.look(25 * len(ordered))
        best: tuple[int, int] | None = None  # alignment, and minus the position
        before = 0
        for position, i in enumerate(ordered):
            # If nothing that fits is among the first, the first that fits is next: resources are not left idle for it.
            if before >= first and best is not None:
                break
            before += pending[i]
            if filling.fits(i):
                candidate = (filling.affinity(i), -position)
                best = candidate if best is None else max(best, candidate)
        if best is None:
            return filling.result()
        filling.give(ordered[-best[1]])
