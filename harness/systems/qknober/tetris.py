"""``tetris``: the best-packing task among those that are first by fairness (Grandl 2014; QKnober, section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, number
from harness.policies.fair import entitlement_weights
from harness.policies.tree import tree_of
from harness.policies.vectors import Division, Filling, VectorScenario


@dataclass(frozen=True, slots=True)
class TetrisSettings:
    """Settings of Tetris."""

    f: float = number(
        0.25, at_least=0, at_most=1, doc="fairness knob: only the first 1 - f of the sorted tasks compete"
    )


class Tetris(Policy):
    """Tetris: of the fairest pending tasks, the one that packs best is next.

    All pending tasks are sorted by dominant share / weight of their queue. Among the first max(1, ceil((1 - f) *
    pending)) tasks, the one with the greatest alignment (dot product of demand and idle resources) is next.

    In a YARN scheduler queues are ordered before a node is considered, so alignment is computed with the idle resources
    of the whole cluster. On a cluster that only takes weights, Tetris cannot be expressed: the plan is DRF, which is
    Tetris at f = 1 (docs/decisions/qknober.md). `harness.systems.qknober.simulator` runs Tetris on individual servers.
    """

    name = "tetris"
    Settings = TetrisSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the plan for a cluster: entitlements as weights under DRF, and in a scheduler the order by `keys`."""
        return Plan(
            order=Order(measure="keys", flat=True),
            weights=entitlement_weights(snapshot),
            scheduling_policies=dict.fromkeys(snapshot.queues, "drf"),
        )

    def keys(self, snapshot: Snapshot, ledger: LedgerView) -> Mapping[str, float]:
        """Return keys, of which the lowest is served first.

        Leaves with competing tasks come first, by decreasing alignment, then the others by share / weight.
        """
        tree = tree_of(snapshot)
        capacity = snapshot.capacity
        scale = (max(capacity.memory_mb, 1), max(capacity.vcores, 1))
        queues = [(q, snapshot.queues[tree.names[q]]) for q in tree.leaves]
        idle = [
            1 - sum([view.allocated.memory_mb for _, view in queues]) / scale[0],
            1 - sum([view.allocated.vcores for _, view in queues]) / scale[1],
        ]
        ordered = sorted(
            (view.allocated.dominant_share(capacity) / (float(tree.share[q]) or 1e-9), view.name, view)
            for q, view in queues
            if view.pending_containers > 0
        )
        first = max(1, math.ceil((1 - self.settings.f) * sum([view.pending_containers for _, _, view in ordered])))
        found = {}
        before = 0
        for level, name, view in ordered:
            if before < first:
                count = view.pending_containers
                x = (view.demand.memory_mb - view.allocated.memory_mb) / count / scale[0]
                y = (view.demand.vcores - view.allocated.vcores) / count / scale[1]
                found[name] = -(x * idle[0] + y * idle[1])
                before += count
            else:
                found[name] = 1.0 + level
        return found

    def divide(self, scenario: VectorScenario) -> Division:
        """Return each user's whole number of tasks in the scenario.

        Users with unlimited demand count equally when the competing tasks are determined; if there are any, users with
        finite demand count 0.
        """
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
        best: tuple[int, int] | None = None  # (affinity, -position in the order)
        before = 0
        for position, i in enumerate(ordered):
            # If none of the competing tasks fits, the next task that fits is taken, so that resources do not stay idle.
            if before >= first and best is not None:
                break
            before += pending[i]
            if filling.fits(i):
                candidate = (filling.affinity(i), -position)
                best = candidate if best is None else max(best, candidate)
        if best is None:
            return filling.result()
        filling.give(ordered[-best[1]])
