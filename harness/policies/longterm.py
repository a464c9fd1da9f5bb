"""Base of ``ltrf``, ``naive-hltrf`` and ``hltrf``: settings, horizon, T_wait, weights from outside.

Each policy's own rule is in its own file. Sources: LTYARN sections 5-6 (Algorithms 1 and 2, eq. 7), tang-thesis 5.5.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.base.errors import CallError
from harness.base.sums import left_fold_sum
from harness.model.plan import LedgerSettings, Order, Plan, SchedulingPolicy
from harness.model.resources import Resource
from harness.model.snapshot import (
    BACKLOG,
    LAST_START,
    MB,
    PENDING_MB,
    PENDING_N,
    PENDING_VC,
    TASK_MS,
    TASKS,
    VC,
    Figures,
    LateViews,
    QueueShape,
    QueueView,
    Snapshot,
)
from harness.policies.base import LedgerView, Policy, flag, number, word
from harness.policies.limits import SMALLEST_MB, limit_of
from harness.policies.tree import Tree, entitled_tree, entitled_tree_by
from harness.policies.weighing import WeighingSettings
from harness.policies.weights import (
    GRID_MAX,
    GRID_MIN,
    Basis,
    CompiledWeighing,
    leaf_parts,
    lift,
    long_term_shares,
    named,
    share_weights,
    usage_of,
    weighing,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The horizon from outside, in mean task lengths (docs/decisions/horizon.md).
HORIZON_TASKS = 4.0
#: The assumed mean task length until a task has ended, seconds (LTYARN's Fig. 11a shows 23.6 s).
TASK_S_AT_FIRST = 20.0
#: Larger mean task lengths are ignored as invalid, seconds (30 years).
LONGEST_TASK_S = 1e9


@dataclass(frozen=True, slots=True)
class LongTermSettings:
    """Settings of every long-term policy. Times are seconds (on paper: steps)."""

    resource: str = word(
        "memory",
        "memory",
        "vcores",
        "dominant",
        doc="what is accumulated; dominant: queues get the scheduling policy drf",
    )
    discount: float = number(
        1.0, at_least=0, at_most=1, doc="eta of thesis eq. 5.7: the part counted of what exceeds S_i"
    )
    round: float = number(
        math.inf, above=0, infinite=True, doc="L of eq. 5.12: accumulation starts anew every L; inf: never"
    )
    half_life: float = number(
        math.inf, above=0, infinite=True, doc="what was used this long ago counts half; inf: memory does not fade"
    )
    window: float = number(
        math.inf, above=0, infinite=True, doc="only what was used within this time counts (a sliding window)"
    )
    pseudo: bool = flag(doc="pseudo accumulated resources for late arrivals, eq. 5.10, frozen at the arrival")
    horizon_s: float | str = number(
        "auto",
        at_least=0,
        infinite=True,
        words=("auto",),
        doc="H; auto: 0 in the scheduler and on paper, from outside four mean task lengths, at least the period",
    )
    quantum_s: float | None = number(
        None, at_least=0, doc="assumed execution time Q of running tasks, in the simulator; none: the plain integral"
    )
    adaptive_quantum: bool = flag(
        doc="LTYARN's Quantum Updater, in the simulator: quantum_s is only where the self-tuning begins (Fig. 4)"
    )
    quantum_over: str = word(
        "all",
        "all",
        "unfinished",
        doc="applications whose mean is a leaf's Q: all (6.2.1), unfinished ones (caption of Fig. 4)",
    )
    node_weight: str = word(
        "speed",
        "speed",
        "none",
        doc="delta of thesis eq. 5.9: a container counts as often as its node's speed says; in the simulator, "
        "without a horizon",
    )
    shares: str = word(
        "leaves", "leaves", "levels", doc="S_i of eq. 2: by the leaves' own weights, or by the tree's, level by level"
    )
    fit: str = word(
        "next",
        "next",
        "wait",
        doc="inside, where the task of the queue whose turn it is does not fit: serve the next queue, or wait",
    )


@dataclass(frozen=True, slots=True)
class HierarchicalSettings(LongTermSettings):
    """Settings of ``hltrf``: those of every long-term policy, and its own."""

    t_wait: float | str = number(
        10.0, at_least=0, infinite=True, words=("auto",), doc="T_wait of Algorithm 2; auto: T_avg / n_task (eq. 7)"
    )
    n_task: float = number(10.0, above=0, doc="N_task of eq. 7: tasks that a starved queue is to have running")
    affinity: float = number(
        1.0,
        at_least=0,
        at_most=1,
        doc="lending affinity: 1 level by level, 0 leaves flat; from outside, and inside with a horizon",
    )
    lift: str = word("min_share", "min_share", "weight", doc="what lifts a starved path from outside")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The compiled weighing for queues and a capacity; None: `LongTermPolicy.plan` has to be called."""

    shape: QueueShape
    capacity: Resource
    weighing: CompiledWeighing | None


class LongTermPolicy(Policy):
    """Base class of the long-term policies. Subclasses define the affinity and T_wait."""

    Settings: ClassVar[type] = LongTermSettings
    settings: LongTermSettings
    gives_back: ClassVar[bool] = True
    #: Whether `weigh` may be used. Each class declares this itself, because a subclass may plan differently.
    weighs: ClassVar[bool] = False
    #: The order of the last plan, kept because it changes only with T_wait.
    _order: Order | None = None
    #: What `weigh` needs besides its arguments, for the shape and capacity of the last figures.
    _prepared: _Prepared | None = None

    @abstractmethod
    def affinity(self) -> float:
        """Return the affinity: 0 means that all leaves are filled together, 1 that the tree is filled by level."""

    def t_wait_s(self, snapshot: Snapshot) -> float | None:
        """Return T_wait in seconds; None if no leaf ever counts as starved."""
        return None

    def lifts_weights(self) -> bool:
        """Return whether a starved leaf is served by raising the weights on its path."""
        return True

    def dues_are_flat(self) -> bool:
        """Return whether the leaves' dues are computed from their own weights, regardless of the tree."""
        return self.ignores_tree and self.settings.shares == "leaves"

    def check_outside(self) -> None:
        """Check that the policy can act from outside. Raises CallError."""
        if self.settings.fit == "wait":
            raise CallError(
                f"policy {self.name} from outside cannot wait for a task to fit: the stock scheduler allocates",
                where="--set fit",
                hint="leave it out, or give it to the policy inside the scheduler alone",
            )

    def ledger_settings(self) -> LedgerSettings:
        """Return the settings of this policy's ledger, which are constant."""
        s = self.settings
        if s.window != math.inf and (s.half_life != math.inf or s.round != math.inf or s.pseudo):
            raise CallError(
                "a sliding window goes with neither half_life nor round nor pseudo",
                where="--set",
                hint="a tumbling window is round=...; drop one of them",
            )
        return LedgerSettings(
            resource=s.resource,  # type: ignore[arg-type]
            discount=s.discount,
            round_s=None if math.isinf(s.round) else s.round,
            pseudo=s.pseudo,
            quantum_s=s.quantum_s,
            adaptive_quantum=s.adaptive_quantum,
            quantum_over=s.quantum_over,  # type: ignore[arg-type]
            node_weight=s.node_weight,  # type: ignore[arg-type]
            shares=s.shares,  # type: ignore[arg-type]
            half_life_s=None if math.isinf(s.half_life) else s.half_life,
            window_s=None if math.isinf(s.window) else s.window,
        )

    def horizon_s(self, snapshot: Snapshot) -> float:
        """Return the horizon H that is used from outside, seconds."""
        given = self.settings.horizon_s
        if given != "auto":
            return float(given)
        return max(HORIZON_TASKS * mean_task_s(snapshot), snapshot.period_s)

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return an order by accumulated resources (inside), and the weights (from outside)."""
        affinity = self.affinity()
        given = self.settings.horizon_s
        t_wait = self.t_wait_s(snapshot)
        order = self._order
        if order is None or order.t_wait_s != t_wait:
            order = self._order = Order(
                measure="accumulated",
                flat=self.ignores_tree,
                t_wait_s=t_wait,
                horizon_s=0.0 if given == "auto" else float(given),
                affinity=affinity,
                waits=self.settings.fit == "wait",
                ledger=self.ledger_settings(),
            )
        tree = entitled_tree(snapshot, self.settings.shares)
        if not tree.leaves:
            return Plan(order=order)
        horizon = self.horizon_s(snapshot)
        used = used_by_queue(tree, ledger)
        resource = self.settings.resource
        shares = self._shares(tree, snapshot, ledger, basis_of(tree, snapshot, used, resource, horizon), affinity)
        weights = share_weights(tree, shares)
        reasons: dict[str, str] = {}
        min_shares: Mapping[str, Resource] = {}
        if t_wait is not None and t_wait != math.inf:
            late = starved(tree, snapshot, t_wait)
            if late:
                limit = f"T_wait {t_wait:g} s: lifted"
                for q in late:
                    reasons[tree.names[q]] = f"has waited {waited_s(snapshot, tree, q):.1f} s, {limit}"
                if self.lifts_weights():
                    self._lift(tree, snapshot, weights, late)
            min_shares = self._min_shares(tree, snapshot, late, used, t_wait)
        drf: Mapping[str, SchedulingPolicy] = (
            dict.fromkeys(tree.names, "drf") if self.settings.resource == "dominant" else {}
        )
        return Plan(
            order=order, weights=named(tree, weights), min_shares=min_shares, scheduling_policies=drf, reasons=reasons
        )

    def weigh(
        self, figures: Figures, columns: NDArray[np.float64], before: NDArray[np.float64], period_s: float
    ) -> NDArray[np.float64] | None:
        """Compute the weights with compiled code from arrays; None if `plan` has to be called."""
        known = self._prepared
        if known is None or known.shape is not figures.shape or known.capacity is not figures.capacity:
            known = self._prepared = _Prepared(figures.shape, figures.capacity, self._compiled_weighing(figures))
        if known.weighing is None:
            return None
        since_ms = -math.inf
        t_wait_s = float(getattr(self.settings, "t_wait", math.inf))
        if t_wait_s != math.inf:
            # The same comparison as in `starved`, rounded to milliseconds.
            since_ms = (figures.time_s - (t_wait_s - min(period_s, t_wait_s) / 2)) * 1000.0 + 1.0
        return known.weighing.weights(figures, columns, before, period_s, since_ms)

    def _compiled_weighing(self, figures: Figures) -> CompiledWeighing | None:
        """Return the compiled weighing for queues and a capacity; None if `plan` has to be called."""
        settings, t_wait = self.settings, getattr(self.settings, "t_wait", math.inf)
        if not vars(type(self)).get("weighs") or settings.resource == "dominant" or type(t_wait) is str:
            return None
        horizon = -1.0 if settings.horizon_s == "auto" else float(settings.horizon_s)
        if horizon in (0.0, math.inf):
            return None
        memory = settings.resource == "memory"
        capacity = figures.capacity.memory_mb if memory else figures.capacity.vcores
        constants = WeighingSettings(
            held=MB if memory else VC,
            pending=PENDING_MB if memory else PENDING_VC,
            capacity=float(max(capacity, 1)),
            horizon_s=horizon,
            longest_task_s=LONGEST_TASK_S,
            horizon_tasks=HORIZON_TASKS,
            first_task_s=TASK_S_AT_FIRST,
            affinity=float(self.affinity()),
            lowest=GRID_MIN,
            highest=GRID_MAX,
        )
        return weighing(entitled_tree_by(figures.shape, settings.shares), constants)

    def _shares(self, tree: Tree, snapshot: Snapshot, ledger: LedgerView, basis: Basis, affinity: float) -> list[float]:
        """Return each queue's fraction of its parent's share, for the weights from outside."""
        return long_term_shares(tree, basis, affinity)

    def _lift(self, tree: Tree, snapshot: Snapshot, weights: list[float], late: list[int]) -> None:
        dominant = self.settings.resource == "dominant"
        queues = [snapshot.queues[name] for name in tree.names]
        usage = [usage_of(queue.allocated, snapshot.capacity, dominant) for queue in queues]
        sizes = [0.0] * len(queues)
        for q in late:
            sizes[q] = usage_of(next_container(queues[q], snapshot.capacity), snapshot.capacity, dominant)
        lift(tree, snapshot, weights, late, usage, sizes)

    def _min_shares(
        self, tree: Tree, snapshot: Snapshot, late: list[int], used: list[float], t_wait_s: float
    ) -> Mapping[str, Resource]:
        return {}


def parts_over_horizon(order: Order, snapshot: Snapshot, ledger: LedgerView) -> Mapping[str, float]:
    """Return queue path -> its share, for an order with a horizon inside the scheduler (flat: parents have 0).

    The queue with demand and the smallest allocation / share gets the next container, among siblings or, with a flat
    order, among all leaves. From outside, the same shares are written as rounded weights.
    """
    tree = entitled_tree(snapshot, order.ledger.shares)
    basis = basis_of(tree, snapshot, used_by_queue(tree, ledger), order.ledger.resource, order.horizon_s)
    parts = leaf_parts(tree, basis) if order.flat else long_term_shares(tree, basis, order.affinity)
    return dict(zip(tree.names, parts, strict=True))


def used_by_queue(tree: Tree, ledger: LedgerView) -> list[float]:
    """Return the accumulated resources u of every queue in the tree's order; for a parent, the sum of its leaves'."""
    counted, names = ledger.counted(), tree.names
    used = [0.0] * len(names)
    for q in tree.leaves:
        value = counted.get(names[q], 0.0)
        # A ledger with invalid values must not hang or crash the scheduler through this policy.
        used[q] = value if 0.0 <= value < math.inf else 0.0
    return tree.sum_up(used)


def capacity_of(snapshot: Snapshot, resource: str) -> float:
    """Return R in the ledger's unit: MiB, vcores, or 1 for the dominant resource; at least 1 (for an empty cluster)."""
    return 1.0 if resource == "dominant" else max(snapshot.capacity.amount(resource, snapshot.capacity), 1.0)


def demands(tree: Tree, snapshot: Snapshot, resource: str) -> tuple[list[float], list[bool]]:
    """Return each queue's demand in units of the resource, and whether it demands more than it holds."""
    if isinstance(snapshot.queues, LateViews) and resource != "dominant":
        held, pending = (MB, PENDING_MB) if resource == "memory" else (VC, PENDING_VC)
        rows = snapshot.queues.rows
        found = [float(row[held] + row[pending]) for row in rows]
        return found, [row[PENDING_MB] > 0 or row[PENDING_VC] > 0 for row in rows]
    pairs = [(queue.demand, queue.allocated) for queue in map(snapshot.queues.__getitem__, tree.names)]
    found = [demand.amount(resource, snapshot.capacity) for demand, _ in pairs]
    return found, [demand.memory_mb > held.memory_mb or demand.vcores > held.vcores for demand, held in pairs]


def basis_of(tree: Tree, snapshot: Snapshot, used: Sequence[float], resource: str, horizon_s: float) -> Basis:
    """Return the input of a water-filling for a snapshot (see `harness.policies.weights.Basis`)."""
    return Basis(used, capacity_of(snapshot, resource), horizon_s, *demands(tree, snapshot, resource))


def mean_task_s(snapshot: Snapshot) -> float:
    """Return T_avg of LTYARN eq. (7): the mean of the leaves' mean task lengths; TASK_S_AT_FIRST if none is known."""
    queues = snapshot.queues
    if isinstance(queues, LateViews):
        leaves = zip(queues.rows, queues.shape[1], strict=True)
        means = [row[TASK_MS] / (1000.0 * row[TASKS]) for row, (_, leaf, _) in leaves if leaf and row[TASKS]]
    else:
        means = [q.mean_task_s for q in queues.values() if q.leaf and q.mean_task_s is not None]
    known = [mean for mean in means if 0.0 < mean < LONGEST_TASK_S]
    return left_fold_sum(known) / len(known) if known else TASK_S_AT_FIRST


def is_demanding(queue: QueueView) -> bool:
    """Return whether a leaf waits for containers."""
    return queue.backlog_since_s is not None or queue.pending_containers > 0


def waited_s(snapshot: Snapshot, tree: Tree, leaf: int) -> float:
    """Return the seconds since a leaf got its last container or its backlog began, whichever is later.

    0 if the leaf has no pending requests.
    """
    return _waited_s(snapshot.queues[tree.names[leaf]], snapshot.time_s)


def _waited_s(queue: QueueView, now_s: float) -> float:
    backlog_s, last_s = queue.backlog_since_s, queue.last_start_s
    if backlog_s is None:
        begins_s = last_s if queue.pending_containers > 0 else None
    else:
        begins_s = backlog_s if last_s is None or last_s < backlog_s else last_s
    return 0.0 if begins_s is None else max(now_s - begins_s, 0.0)


def _begins_ms(row: list[int]) -> float:
    """Return the time since which a leaf waits, ms, from its row of a simulation's figures (inf: it does not wait)."""
    if row[BACKLOG] < 0:
        return row[LAST_START] if row[PENDING_N] > 0 and row[LAST_START] >= 0 else math.inf
    return max(row[BACKLOG], row[LAST_START])


def starved(tree: Tree, snapshot: Snapshot, t_wait_s: float) -> list[int]:
    """Return the demanding leaves that have waited T_wait (LTYARN Algorithm 2, with >=), for a controller from outside.

    The controller acts only at ticks. It acts up to half a period early (at most half of T_wait), so that a leaf is
    served every T_wait on average, as inside, and at the latest at the tick after T_wait.
    """
    t_wait_s -= min(snapshot.period_s, t_wait_s) / 2
    queues, names, now_s = snapshot.queues, tree.names, snapshot.time_s
    leaves: Sequence[int] = tree.leaves
    if isinstance(queues, LateViews):
        # Select the leaves by their figures first, rounded to milliseconds. Usually there is none, and no view is
        # created.
        since_ms, rows = (now_s - t_wait_s) * 1000.0 + 1.0, queues.rows
        leaves = [q for q in leaves if _begins_ms(rows[q]) <= since_ms]
    found = []
    for q in leaves:
        queue = queues[names[q]]
        last_s = queue.last_start_s
        if last_s is not None and now_s - last_s < t_wait_s:
            continue  # the upper bound of its waiting time is below T_wait
        waited_s = _waited_s(queue, now_s)
        if waited_s >= t_wait_s and waited_s > 0 and may_grow(tree, snapshot, q):
            found.append(q)
    return found


def may_grow(tree: Tree, snapshot: Snapshot, leaf: int) -> bool:
    """Return whether the maximum shares allow a leaf one more container; otherwise it does not count as waiting.

    Allocations of other queues below the same ancestor are ignored, because the leaf waits for their containers.
    """
    queue = snapshot.queues[tree.names[leaf]]
    # A ResourceManager caps a queue's demand at its maximum share, but not the number of its pending containers.
    held, capacity = queue.allocated, snapshot.capacity
    if queue.pending_containers > 0 and queue.demand == held:
        return False
    size = next_container(queue, capacity)
    memory, vcores = held.memory_mb + size.memory_mb, held.vcores + size.vcores
    while leaf >= 0:
        limit = limit_of(snapshot.queues[tree.names[leaf]], capacity)
        if memory > limit.memory_mb or vcores > limit.vcores:
            return False
        leaf = tree.parent[leaf]
    return True


def next_container(queue: QueueView, capacity: Resource) -> Resource:
    """Return the mean size of a leaf's pending containers (1 GiB and 1 vcore if the snapshot does not show it)."""
    if queue.pending_containers <= 0:
        return Resource(SMALLEST_MB, 1)
    count, demand, held = queue.pending_containers, queue.demand, queue.allocated
    # A demand that was capped at the maximum share is only a lower bound.
    smallest_mb = SMALLEST_MB if demand.memory_mb >= limit_of(queue, capacity).memory_mb else 1
    return Resource(
        max((demand.memory_mb - held.memory_mb) // count, smallest_mb),
        max((demand.vcores - held.vcores) // count, 1),
    )
