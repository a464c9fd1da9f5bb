"""``hltrf``: starvation-aware hierarchical long-term fairness (LTYARN Algorithm 2), affinity a setting."""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.model.resources import ZERO, Resource
from harness.model.snapshot import Snapshot
from harness.policies.longterm import HierarchicalSettings, LongTermPolicy, mean_task_s, next_container
from harness.policies.tree import Tree


class Hltrf(LongTermPolicy):
    """As ``naive-hltrf``, but a demanding leaf that has waited T_wait is served first.

    In the scheduler and on paper that is the leaf with the smallest accumulated / weight (Algorithm 2, with >=: the
    strict > of the paper misses Theorem 1). From outside every demanding leaf is watched, the debtor included, and the
    path of one that has waited T_wait is lifted until it has been served (docs/decisions/weights.md).
    """

    name = "hltrf"
    Settings = HierarchicalSettings
    settings: HierarchicalSettings

    def shape(self) -> tuple[bool, float]:
        # Theorem 1: with T_wait = 0 every allocation is LTRF's, so from outside the leaves are filled flat.
        return False, 0.0 if self.settings.t_wait == 0 else self.settings.affinity

    def t_wait_s(self, snapshot: Snapshot) -> float | None:
        t_wait = self.settings.t_wait
        if t_wait == "auto":
            return mean_task_s(snapshot) / self.settings.n_task
        return float(t_wait)

    def lifts_weights(self) -> bool:
        return self.settings.lift == "weight"

    def _min_shares(self, tree: Tree, snapshot: Snapshot, late: list[int]) -> Mapping[str, Resource]:
        if self.settings.lift != "min_share" or self.settings.t_wait == math.inf:
            return {}
        queues = [snapshot.queues[name] for name in tree.names]
        # What the administrator guarantees stays; a lifted queue is below its minimum until it has one container more.
        least = [queue.min_share for queue in queues]
        for leaf in late:
            extra = next_container(queues[leaf])
            for q in tree.path(leaf):
                base = least[q] if least[q] != queues[q].min_share else queues[q].allocated
                least[q] = base + extra
        return {
            tree.names[q]: Resource(
                max(least[q].memory_mb, queues[q].min_share.memory_mb), max(least[q].vcores, queues[q].min_share.vcores)
            )
            for q in range(1, len(queues))
            if least[q] != ZERO
        }
