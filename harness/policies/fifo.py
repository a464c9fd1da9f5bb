"""``fifo``: the oldest application with pending requests comes first, regardless of its queue."""

from __future__ import annotations

import math

from harness.model.plan import Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy
from harness.policies.tree import tree_of
from harness.policies.weights import RANKS, rank_weight


class Fifo(Policy):
    """Serve queues in the order of arrival; from outside, in the nearest order that weights can express.

    Siblings are ranked by the oldest application with pending requests below them. The weights of consecutive ranks
    differ by a factor of 1,000 (from the fourth rank on, all have the lowest weight). Of two queues with different
    weights, the older one is served first as long as it holds less than 1,000 times what the younger one holds. Inside
    a leaf the scheduling policy is fifo. A queue that holds nothing still gets one container before its turn, because
    its usage / weight is 0 whatever its weight.
    """

    name = "fifo"

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Rank siblings by the time since which they have waited."""
        tree = tree_of(snapshot)
        oldest = [math.inf] * len(tree.names)
        for q in tree.leaves:
            since = snapshot.queues[tree.names[q]].oldest_pending_app_s
            if since is not None and since == since:
                for above in (q, *tree.path(q)):
                    oldest[above] = min(oldest[above], since)
        weights = {}
        for above in tree.parents:
            siblings = tree.children[above]
            ages = sorted({oldest[q] for q in siblings})
            for q in siblings:
                rank = ages.index(oldest[q])
                if oldest[q] == math.inf and len(ages) > 1:
                    rank = RANKS - 1
                weights[tree.names[q]] = rank_weight(rank)
        return Plan(
            order=Order(measure="arrival"),
            weights=weights,
            scheduling_policies={tree.names[q]: "fifo" for q in tree.leaves},
        )
