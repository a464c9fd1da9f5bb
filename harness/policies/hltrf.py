"""``hltrf``: starvation-aware hierarchical long-term fairness (LTYARN Algorithm 2), affinity a setting."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop

from harness.model.resources import Resource
from harness.model.snapshot import Snapshot
from harness.policies.limits import limit_of
from harness.policies.longterm import (
    HierarchicalSettings,
    LongTermPolicy,
    is_demanding,
    may_grow,
    mean_task_s,
    next_container,
    waited_s,
)
from harness.policies.tree import Tree


class Hltrf(LongTermPolicy):
    """As ``naive-hltrf``, but a demanding leaf that has waited T_wait is served first.

    In the scheduler and on paper, only the demanding leaf with the smallest accumulated / weight whose limits allow
    another container is served first (Algorithm 2, with >=, because Theorem 1 does not hold with the paper's >). From
    outside, ``affinity`` interpolates between the weights of ``ltrf`` and ``naive-hltrf``, and the path of any
    demanding leaf that has waited T_wait is raised until the leaf has been served (docs/decisions/weights.md).
    """

    name = "hltrf"
    weighs = True
    Settings = HierarchicalSettings
    settings: HierarchicalSettings

    def affinity(self) -> float:
        """Return the configured affinity; 0 for T_wait = 0."""
        # Theorem 1: with T_wait = 0 every allocation is LTRF's, so all leaves are filled together.
        return 0.0 if self.settings.t_wait == 0 else self.settings.affinity

    @property
    def replans(self) -> bool:
        """Whether T_wait follows the measured task lengths, so that the plan is recomputed periodically."""
        return self.settings.t_wait == "auto"

    def t_wait_s(self, snapshot: Snapshot) -> float | None:
        """Return T_wait in seconds; for ``auto`` from the mean task length."""
        t_wait = self.settings.t_wait
        if t_wait == "auto":
            return mean_task_s(snapshot) / self.settings.n_task
        return float(t_wait)

    def lifts_weights(self) -> bool:
        """Return whether a starved leaf is served by raising the weights on its path."""
        return self.settings.lift == "weight"

    def _min_shares(
        self, tree: Tree, snapshot: Snapshot, late: list[int], used: list[float], t_wait_s: float
    ) -> Mapping[str, Resource]:
        """Return a minimum share for every queue on the path of a starved leaf: its allocation plus some containers.

        Algorithm 2's starved leaf (the demanding leaf with the smallest accumulated / weight) gets as many containers
        as it would hold inside: N_task = T_avg / T_wait (eq. 7). Other leaves get one. A leaf gets more if AMs may
        occupy these containers. No minimum exceeds the queue's maximum share, because the scheduler would raise the
        maximum to it.
        """
        if self.settings.lift != "min_share" or not late:
            return {}
        queues = [snapshot.queues[name] for name in tree.names]
        entitlement, names = tree.entitlement, tree.names
        demanding = [(used[q] / entitlement[q], names[q], q) for q in tree.leaves if is_demanding(queues[q])]
        # Usually the first leaf may grow, so the others' order does not matter.
        heapify(demanding)
        while not may_grow(tree, snapshot, poorest := heappop(demanding)[2]):
            pass
        capacity, parent = snapshot.capacity, tree.parent
        more: dict[int, tuple[int, int]] = {}
        for leaf in late:
            size = next_container(queues[leaf], capacity)
            held = queues[leaf].allocated.memory_mb // size.memory_mb
            # AMs may take half of a fair share (Hadoop's default), and a queue without containers starts with an AM. If
            # a leaf is still starved after its minimum share was raised, only AMs are pending, and no further AM fits.
            count = 1 if held else 2
            if waited_s(snapshot, tree, leaf) >= 2 * (t_wait_s + snapshot.period_s):
                count = held + 2
            if leaf == poorest and t_wait_s > 0:
                missing = round(mean_task_s(snapshot) / t_wait_s) - held
                count = max(count, min(missing, queues[leaf].pending_containers))
            memory_mb, vcores = size.memory_mb * count, size.vcores * count
            q = leaf
            while parent[q] >= 0:
                so_far = more.get(q)
                more[q] = (memory_mb, vcores) if so_far is None else (so_far[0] + memory_mb, so_far[1] + vcores)
                q = parent[q]
        found: dict[str, Resource] = {}
        for q, (memory_mb, vcores) in more.items():
            queue = queues[q]
            held_now, limit, least = queue.allocated, limit_of(queue, capacity), queue.min_share
            found[tree.names[q]] = Resource(
                max(min(held_now.memory_mb + memory_mb, limit.memory_mb), least.memory_mb),
                max(min(held_now.vcores + vcores, limit.vcores), least.vcores),
            )
        return found
