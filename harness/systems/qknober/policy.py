"""``qknober``: most efficient division subject to a fraction rho of every fair share (Tang, Yu, Li: QKnober)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harness.base.errors import CallError
from harness.model.plan import Order, Plan
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import LedgerView, Policy, flag, number
from harness.policies.tree import Tree, tree_of
from harness.policies.vectors import Division, VectorScenario
from harness.policies.weights import named, share_weights
from harness.systems.qknober.division import divide
from harness.systems.qknober.two_resources import Direction, knob_for, targets

RHO_AT_FIRST = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class QknoberSettings:
    """Settings of QKnober."""

    rho: float | None = number(
        None, at_least=0, at_most=1, doc="the knob: the part of the DRF share that everybody keeps (none: 0.5)"
    )
    theta: float | None = number(
        None,
        at_least=0,
        doc="soft fairness that is wanted, instead of rho, which is found from it (in YARN by weights whose sum is 1)",
    )
    integral: bool = flag(doc="with several resources on paper: whole tasks")


class Qknober(Policy):
    """QKnober in two stages: each leaf queue gets rho times its DRF share; the rest is divided most efficiently.

    Inside a scheduler it follows Algorithm 1. While any leaf with demand is below its fair part (stage one), the leaf
    with the lowest s_i / w_i is served first. Otherwise the leaf with the smallest ratio of s_i to its target is served
    first; the target is what both stages together give it.

    On a cluster it sets weights in proportion to the targets, with the scheduling policy ``drf``. Leaves take the place
    of the paper's users. w_i is a leaf's entitled part of the cluster, the product over the levels of the queue tree.
    """

    name = "qknober"
    Settings = QknoberSettings
    settings: QknoberSettings

    def __init__(self, settings: Any = None, exact: Mapping[str, Fraction] | None = None) -> None:
        super().__init__(settings, exact)
        if self.settings.rho is not None and self.settings.theta is not None:
            raise CallError(
                "rho and theta are both given", where="--set", hint="theta finds the knob: give one of them"
            )

    def knob(self) -> Fraction | None:
        """Return the knob rho, or None if it is computed from theta."""
        return self.exact.get("rho", RHO_AT_FIRST) if self.settings.theta is None else None

    def divide(self, scenario: VectorScenario) -> Division:
        """Return each user's number of tasks in the scenario."""
        rho = self.exact.get("rho", RHO_AT_FIRST)
        return divide(scenario, rho, self.exact.get("theta"), self.settings.integral)

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Divide the cluster as if every queue with any demand had unlimited demand.

        A queue with a small demand now must keep its weight for tasks that arrive before the next plan. The scheduler
        gives what the queue does not use to others.
        """
        tree = tree_of(snapshot)
        order = Order(measure="keys", flat=True)
        if not tree.leaves:
            return Plan(order=order)
        known, directions, entitled = self._users(tree, snapshot)
        shares = [0.0] * len(tree.names)
        # A queue without demand has no direction. It gets the mean level of the others times its entitlement.
        level = 1.0
        if known:
            levels, fair = targets(directions, entitled, [math.inf] * len(known), self._knob(directions, entitled))
            reasons = {}
            for q, w, s, part in zip(known, entitled, levels, fair, strict=True):
                shares[q] = s * w
                reasons[tree.names[q]] = f"fair part {part * w:.4f} of the cluster, efficient part {(s - part) * w:.4f}"
            level = sum([s * w for s, w in zip(levels, entitled, strict=True)]) / sum(entitled)
        else:
            reasons = {}
        held = set(known)
        for q in tree.leaves:
            if q not in held:
                shares[q] = tree.share[q] * level
        return Plan(
            order=order,
            weights=named(tree, share_weights(tree, tree.sum_up(shares))),
            scheduling_policies=dict.fromkeys(snapshot.queues, "drf"),
            reasons=reasons,
        )

    def keys(self, snapshot: Snapshot, ledger: LedgerView) -> Mapping[str, float]:
        """Return the keys of Algorithm 1; the lowest key is served first.

        The key of a leaf below its fair part is s_i / w_i. The keys of other leaves are larger than all of these, in
        the order of s_i / w_i divided by the leaf's result of both stages.
        """
        tree = tree_of(snapshot)
        known, directions, entitled = self._users(tree, snapshot)
        if not known:
            return {}
        queues = [snapshot.queues[tree.names[q]] for q in known]
        capacity = snapshot.capacity
        demands = [v.demand.dominant_share(capacity) / w for v, w in zip(queues, entitled, strict=True)]
        wanted, fair = targets(directions, entitled, demands, self._knob(directions, entitled))
        found = {}
        for view, w, target, part in zip(queues, entitled, wanted, fair, strict=True):
            level = view.allocated.dominant_share(capacity) / w
            # s_i is at most 1, so a level below a fair part is at most 1 / w_i.
            after = 2.0 / min(entitled)
            found[view.name] = level if level < part else after + (level / target if target > 0 else after + level)
        return found

    def _knob(self, directions: list[Direction], entitled: list[float]) -> float:
        if self.settings.theta is not None:
            return knob_for(directions, entitled, self.settings.theta)
        return float(self.exact.get("rho", RHO_AT_FIRST))

    def _users(self, tree: Tree, snapshot: Snapshot) -> tuple[list[int], list[Direction], list[float]]:
        """Return the leaves that hold or want resources, their directions of mean demand (C2) and entitlements."""
        capacity = snapshot.capacity
        if capacity.memory_mb <= 0 or capacity.vcores <= 0:
            return [], [], []
        held = Resource(
            sum([snapshot.queues[tree.names[q]].allocated.memory_mb for q in tree.leaves]),
            sum([snapshot.queues[tree.names[q]].allocated.vcores for q in tree.leaves]),
        )
        idle = capacity - held
        known, directions, entitled = [], [], []
        for q in tree.leaves:
            mean = mean_demand(snapshot.queues[tree.names[q]], idle)
            x, y = mean[0] / capacity.memory_mb, mean[1] / capacity.vcores
            most = max(x, y)
            if most > 0:
                known.append(q)
                directions.append((x / most, y / most))
                entitled.append(float(tree.share[q]) or 1e-9)
        return known, directions, entitled


def mean_demand(queue: QueueView, idle: Resource) -> tuple[float, float]:
    """Return a vector (memory, vcores) in proportion to a queue's mean demand (C2).

    It is the allocated resources plus the fraction of the pending ones that fits into the idle resources. The paper
    counts pending tasks in their order until the cluster is full; a snapshot has only their sum, so a fraction of that
    is taken. At least one container's worth is counted, so that a new queue's demand is known even if the cluster is
    full.
    """
    pending_x = max(0, queue.demand.memory_mb - queue.allocated.memory_mb)
    pending_y = max(0, queue.demand.vcores - queue.allocated.vcores)
    part = 1.0
    if pending_x > 0:
        part = min(part, max(idle.memory_mb, 0) / pending_x)
    if pending_y > 0:
        part = min(part, max(idle.vcores, 0) / pending_y)
    part = max(part, 1.0 / max(queue.pending_containers, 1))
    return queue.allocated.memory_mb + part * pending_x, queue.allocated.vcores + part * pending_y
