"""``mrorder``: holds arriving jobs back and submits them to a FIFO queue in a better order (tang-thesis section 3.4).

In the scheduler its plan is the stock order with FIFO leaves, which any YARN cluster can be configured to use. Before
the scheduler, harness.systems.mrorder.ordering.online decides which job is submitted when; `dispatching_queue`
configures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import cast

from harness.experiments.submissions import SubmissionQueue
from harness.model.plan import Plan, SchedulingPolicy
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy, flag, number, text, word
from harness.policies.fair import entitlement_weights
from harness.systems.dynamicmr.rules import Late, Rules
from harness.systems.mrorder.ordering.engines import engine
from harness.systems.mrorder.ordering.online import Dispatching, DispatchingQueue, When


@dataclass(frozen=True, slots=True)
class MROrderSettings:
    """The thesis' arguments (target, policy module, waiting-time threshold, number of jobs) and the estimates."""

    target: str = word("makespan", "makespan", "tct", doc="makespan or total completion time")
    when: str = word(
        "tp-ati", "pnj", "tp-fti", "tp-ati", doc="when to order: by number of jobs, fixed, adaptive interval"
    )
    interval_s: float = number(10.0, at_least=0.001, at_most=1e9, doc="Delta t: the (least) time between two rounds")
    jobs: float = number(7, at_least=1, at_most=1e6, doc="pnj: order as soon as this many jobs wait")
    most: float = number("inf", at_least=1, infinite=True, doc="most jobs a round")
    threshold: float = number(
        7, at_least=0, at_most=20, doc="up to this many jobs the best order is searched; then MK_JR, TCT"
    )
    ordering: str = text("auto", doc="auto, a rule of yarnfair order, order:JOB,JOB,..., or path/to/file.py:function")
    history: str = text("", doc="earlier runs or traces that estimates come from; none: the declared mean times")
    eager: bool = flag(False, doc="do not let the cluster idle: a round begins when all submitted jobs have ended")
    map_slots: float = number(0, at_least=0, at_most=1e9, doc="of the estimates; 0: what fits the cluster at once")
    reduce_slots: float = number(0, at_least=0, at_most=1e9, doc="of the estimates; 0: what fits the cluster at once")


class MROrder(Policy):
    """FIFO order in each leaf. The dispatching queue decides when each job is submitted."""

    name = "mrorder"
    Settings = MROrderSettings

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the entitlements as weights, with FIFO in every leaf."""
        leaves: Mapping[str, SchedulingPolicy] = {name: "fifo" for name, q in snapshot.queues.items() if q.leaf}
        return Plan(weights=entitlement_weights(snapshot), scheduling_policies=leaves)

    def slot_rules(self, *, speculation: bool) -> Rules:
        """Return the rules for MRv1 slots: FIFO, with or without speculation."""
        return Rules(late=Late(on=speculation), fifo=True)

    def submission_queue(self) -> SubmissionQueue:
        """Return the queue that the driver of an experiment puts in front of the cluster."""
        from harness.systems.mrorder.submissions import Submissions

        return Submissions(self.dispatching_queue())

    def dispatching_queue(self) -> DispatchingQueue:
        """Return the configuration of the dispatching queue: the policy module and its ordering engine.

        Raises CallError or InputError for a user's ordering that cannot be used.
        """
        s = self.settings
        most = inf if float(s.most) == inf else int(s.most)
        return DispatchingQueue(
            Dispatching(cast(When, s.when), s.interval_s, int(s.jobs), most, bool(s.eager)),
            engine(s.target, int(s.threshold), s.ordering),
            str(s.history),
            int(s.map_slots),
            int(s.reduce_slots),
        )
