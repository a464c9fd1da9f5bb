"""The result of a policy: the order of queues for a scheduler inside, and the attributes to write from outside.

Each policy provides both. Inside the scheduler (in the simulator, or on paper in ``yarnfair allocate``), the `Order` is
evaluated at every allocation. From outside, the `Plan`'s attributes are written to the stock scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from harness.model.queues import QueuePolicy
from harness.model.resources import Resource

ResourceName = Literal["memory", "vcores", "dominant"]
#: Scheduling policy inside a leaf (among its applications) or below a parent (among its children).
SchedulingPolicy = Literal["fair", "drf", "fifo", "ltrf"]
#: Scheduling policies that Hadoop's schedulers lack: they order by accumulated resources.
BY_ACCUMULATED: Final[frozenset[SchedulingPolicy]] = frozenset({"ltrf"})
#: The measure by which an order compares queues (see `Order`).
Measure = Literal["stock", "accumulated", "arrival", "keys"]
#: Whether a policy runs inside the scheduler or changes the attributes of a stock scheduler from outside.
Mode = Literal["inside", "outside"]

#: Range of Fair Scheduler weights (see docs/decisions/weights.md): outside of it, shares become wrong in float32.
WEIGHT_MIN, WEIGHT_MAX = 1e-3, 1e6


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Settings of the accounting of accumulated resources (tang-thesis section 5.5.1; LTYARN section 6.2).

    Parameters
    ----------
    resource
        The resource that is counted.
    discount
        eta of eq. (5.7): usage above the queue's share S_i counts with this factor.
    round_s
        Length L of a round, s (S-LTMM). None: one round without end (F-LTMM).
    pseudo
        Whether a queue that arrives late starts with pseudo accumulated resources (eqs. 5.10 and 5.16). They are fixed
        when the queue arrives, or when its round begins.
    quantum_s
        Assumed execution time Q of running tasks, s. None: the integral of the usage alone. With ``adaptive_quantum``,
        it is the initial value of the multi-level self-tuning, in which a leaf's Q is the mean over its applications.
    adaptive_quantum
        Whether Q is adapted to the measured task lengths.
    quantum_over
        Applications of a leaf over which Q is averaged: ``all``, or only the ``unfinished`` ones.
    half_life_s
        Usage of this age, s, counts half.
    window_s
        Only usage within the last ``window_s`` seconds counts (a sliding window; rounds are tumbling windows).
    count_due
        Whether each leaf's surplus is counted, too: its usage minus its due, the integral of min(d_i, S_i).
    node_weight
        With ``speed``, a container counts delta times its size (eq. 5.9), where delta is its node's speed; with
        ``none``, delta is 1. It has an effect only on accounts inside the scheduler.
    shares
        Whether w_i and S_i of eq. (2) are computed from the ``leaves``' own weights, or from the tree level by level
        (``levels``), like in the reported metrics.
    """

    resource: ResourceName = "memory"
    discount: float = 1.0
    round_s: float | None = None
    pseudo: bool = False
    quantum_s: float | None = None
    adaptive_quantum: bool = False
    quantum_over: Literal["all", "unfinished"] = "all"
    half_life_s: float | None = None
    window_s: float | None = None
    count_due: bool = False
    node_weight: Literal["speed", "none"] = "speed"
    shares: Literal["leaves", "levels"] = "leaves"

    def __post_init__(self) -> None:
        if self.window_s is not None and (self.half_life_s is not None or self.round_s is not None or self.pseudo):
            raise ValueError("a sliding window goes with neither a half-life nor rounds nor pseudo resources")


@dataclass(frozen=True, slots=True)
class Order:
    """A rule for the next container, which the engine evaluates at each allocation.

    measure
        ``stock``: the Fair Scheduler's own comparators, by the plan's weights and each queue's scheduling policy.
        ``accumulated``: smallest accumulated / weight first (LTRF, Algorithm 1), accumulated by the settings of
        ``ledger``. ``arrival``: the leaf with the oldest application that still asks for containers. ``keys``: the
        queue with the smallest key first; the policy's own ``keys()`` computes the keys at each allocation.
    flat
        True: all leaves are compared directly, and parents only impose limits. False: queues are compared level by
        level from the root; a parent's accumulated resources are the sum of its leaves'.
    t_wait_s
        H-LTRF (Algorithm 2): before each allocation the demanding leaf with the smallest accumulated / weight gets
        it if it has waited at least this long (None: never). 0 is LTRF, infinity the naive approach.
    horizon_s
        0: the papers' rule. Above 0: queues are ordered by usage / x, where x is the result of water-filling over this
        horizon (docs/decisions/horizon.md), recomputed at each scheduler update.
    waits
        LTYARN Algorithm 1, lines 8 to 13: if the next task of the first queue does not fit on a node, the node gives
        nothing to other queues. A queue at a limit, or with a request larger than the node, is skipped.
    affinity
        With a horizon: 1 fills level by level, 0 fills all leaves together, and values in between interpolate.
    """

    measure: Measure = "stock"
    flat: bool = False
    t_wait_s: float | None = None
    horizon_s: float = 0.0
    waits: bool = False
    affinity: float = 1.0
    ledger: LedgerSettings = field(default_factory=LedgerSettings)


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The order in which one queue serves its applications or children (LTYARN 6.2.3, thesis 5.5.2.3).

    ``policy``: for a leaf's applications ``fifo``, ``fair`` or ``drf`` (memoryless), or ``ltrf``; for a parent's
    children Hadoop's ``fair`` or ``drf``, or ``ltrf`` for the order of the run. None: not set. ``quantum_s``,
    ``round_s``: the queue's own Q_0 and L, seconds. ``weights``: name of an application -> omega_i (others have 1).
    """

    policy: SchedulingPolicy | None = None
    quantum_s: float | None = None
    round_s: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes written to the stock scheduler: everything that a policy declares, nothing else.

    Queues are full paths.

    A queue that is missing in one of the mappings keeps the administrator's value of that attribute. For example, a
    minimum share that one write has and the next does not returns to the configured one.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    min_shares: Mapping[str, Resource] = field(default_factory=dict)
    max_shares: Mapping[str, Resource] = field(default_factory=dict)
    scheduling_policies: Mapping[str, SchedulingPolicy] = field(default_factory=dict)

    @property
    def all_but_weights(
        self,
    ) -> tuple[Mapping[str, Resource], Mapping[str, Resource], Mapping[str, SchedulingPolicy]]:
        """All attributes except the weights: minimum shares, maximum shares and scheduling policies."""
        return self.min_shares, self.max_shares, self.scheduling_policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Attributes):
    """A policy's answer to one snapshot.

    ``weights`` are finite and within [WEIGHT_MIN, WEIGHT_MAX]. ``reasons`` explains why a queue gets its share (for
    ``explain``, ``decisions.jsonl``).
    """

    order: Order = field(default_factory=Order)
    reasons: Mapping[str, str] = field(default_factory=dict)


def hadoop_policy(policy: SchedulingPolicy | None) -> QueuePolicy | None:
    """Return a scheduling policy if Hadoop's schedulers have it; None for a policy that only the simulator has."""
    return None if policy is None or policy in BY_ACCUMULATED else cast(QueuePolicy, policy)
