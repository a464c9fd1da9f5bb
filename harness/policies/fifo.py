"""``fifo``: the oldest application that still asks for containers comes first, whoever's it is."""

from __future__ import annotations

import math

from harness.model.plan import WEIGHT_MAX, Order, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy
from harness.policies.tree import tree_of
from harness.policies.weights import GRID_MIN

#: From outside, ranks of age are this factor apart: four ranks from WEIGHT_MAX down to WEIGHT_MIN.
RANK_FACTOR = 1000.0
RANKS = 4


class Fifo(Policy):
    """In the scheduler: order by arrival. From outside, the nearest that weights allow.

    Siblings are ranked by the oldest asking application below them, and the ranks' weights lie a factor of 1,000 apart
    (from the fourth on they share the lowest): of any two ranks the older gets all it asks for, as long as it holds
    less than 1,000 times what the younger holds. Inside a leaf the scheduling policy is fifo. A queue that holds
    nothing still gets one container ahead of its turn, because usage / weight is then 0 whatever its weight.
    """

    name = "fifo"

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
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
                rank = min(ages.index(oldest[q]), RANKS - 1)
                if oldest[q] == math.inf and len(ages) > 1:
                    rank = RANKS - 1
                weights[tree.names[q]] = WEIGHT_MAX / RANK_FACTOR**rank
        # 1e-3 is not a float32: the grid's smallest weight is the lowest rank.
        return Plan(
            order=Order(measure="arrival"),
            weights={name: weight if weight >= 1 else GRID_MIN for name, weight in weights.items()},
            scheduling_policies={tree.names[q]: "fifo" for q in tree.leaves},
        )
