"""``decay-kai``: KAI Scheduler's time-aware fairness. Weights that shrink with what was used.

KAI Scheduler documentation, "Time Aware Fairness": resources beyond deserved quotas are divided in proportion to

    P_i = max(0, W_i + k (W_i - U_i))

where W_i is the weight relative to the siblings that still ask, and U_i the usage relative to the cluster's capacity in
a sliding or tumbling window; with a half-life, recent usage counts more. The rest that satisfied queues leave is
divided in a next round, in which the others' W and P are recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.base.errors import CallError
from harness.ledger.decay import LN2, half_life_factor
from harness.model.plan import LedgerSettings
from harness.model.snapshot import Snapshot
from harness.policies.base import number, word
from harness.policies.decay import DAY_S, DecayPolicy, by_shares, share_keys
from harness.policies.limits import limit_of
from harness.policies.longterm import capacity_of
from harness.policies.tree import Tree


@dataclass(frozen=True, slots=True)
class Asking:
    """A queue's input of the division: its weight, its total request, and U."""

    weight: float
    request: float
    usage: float


def portions(queues: Mapping[int, Asking], k: float) -> dict[int, float]:
    """Return the unnormalised P_i of queues that all have unsatisfied requests."""
    total = sum(queue.weight for queue in queues.values())
    if total <= 0:
        return dict.fromkeys(queues, 0.0)
    return {q: max(0.0, queue.weight / total + k * (queue.weight / total - queue.usage)) for q, queue in queues.items()}


def divide(amount: float, k: float, queues: Mapping[int, Asking]) -> tuple[dict[int, float], dict[int, float]]:
    """Divide an amount as KAI does, in rounds; return (allocations, offers), in the amount's unit.

    An offer exceeds the allocation if the queue requests less. If all requests are satisfied, the offers are those of
    the first round, because the remainder does not determine an order. An amount stays undivided if every P is 0. KAI
    allocates whole units (millicores, bytes, GPUs); here an amount is divisible.
    """
    given = dict.fromkeys(queues, 0.0)
    offered = dict.fromkeys(queues, 0.0)
    asking = {q: queue for q, queue in queues.items() if queue.request > 0}
    left, first = amount, portions(asking, k)
    while asking and left > 0:
        parts = portions(asking, k)
        whole = sum(parts.values())
        if whole <= 0:
            break
        share, satisfied = left, []
        for q, queue in asking.items():
            offer = share * parts[q] / whole
            got = min(offer, queue.request - given[q])
            offered[q] = given[q] + offer
            given[q] += got
            left -= got
            if queue.request - given[q] <= 0 or got < offer:
                satisfied.append(q)
        if not satisfied:
            break
        for q in satisfied:
            del asking[q]
    whole = sum(first.values())
    if not asking and whole > 0:
        offered.update({q: amount * part / whole for q, part in first.items()})
    return given, offered


@dataclass(frozen=True, slots=True)
class KaiSettings:
    """Settings of KAI Scheduler's policy, with its names; times in seconds."""

    resource: str = word("vcores", "memory", "vcores", "dominant", doc="whose usage is remembered")
    k: float = number(1.0, at_least=0, doc="kValue: how much usage matters; 0 is memoryless")
    window: float = number(7 * DAY_S, above=0, infinite=True, doc="windowSize")
    window_type: str = word("sliding", "sliding", "tumbling", doc="windowType")
    half_life: float = number(math.inf, above=0, infinite=True, doc="halfLifePeriod; inf: none")


class DecayKai(DecayPolicy):
    """KAI Scheduler's time-based fairshare: a weight shrinks by past use.

    From outside: the shares as weights.

    U is relative to the cluster's capacity over the same time. If every P is 0, the shares are the weights.

    A sliding window and a half-life cannot be combined, because a half-life well below the window makes the window
    irrelevant.
    """

    name = "decay-kai"
    Settings: ClassVar[type] = KaiSettings
    settings: KaiSettings  # type: ignore[assignment]

    def ledger_settings(self) -> LedgerSettings:
        """Return the ledger's window or half-life. Raises CallError for both at once."""
        s = self.settings
        sliding = s.window_type == "sliding" and s.window != math.inf
        half_life = None if s.half_life == math.inf else s.half_life
        if sliding and half_life is not None:
            # A requested half-life replaces the default window.
            if s.window != KaiSettings().window:
                raise CallError(
                    "a sliding window goes with no half_life",
                    where="--set",
                    hint="set window=inf, or window_type=tumbling, or drop half_life",
                )
            sliding = False
        return LedgerSettings(
            resource=s.resource,  # type: ignore[arg-type]
            half_life_s=half_life,
            window_s=s.window if sliding else None,
            round_s=s.window if s.window_type == "tumbling" and s.window != math.inf else None,
        )

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """Return U: usage relative to the cluster's capacity over the remembered time."""
        available = capacity * self._remembered_s(time_s)
        return counted / available if available > 0 else 0.0

    def _remembered_s(self, time_s: float) -> float:
        """Return the counted amount of a constant usage of 1 since the start, seconds."""
        s, ledger = self.settings, self.ledger_settings()
        since = time_s
        if ledger.round_s is not None:
            since = time_s % s.window or s.window
            since = min(since, time_s)
        if ledger.half_life_s is not None:
            return (1.0 - half_life_factor(since, s.half_life)) * s.half_life / LN2
        return since if ledger.window_s is None else min(since, s.window)

    def offers(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        """Return the offer of the division to every queue, level by level, in units of the resource.

        The root's offer is the capacity. A queue without requests is offered what it would get if it also had requests,
        because its next request may come before the next poll. If every P is 0, the offers follow the weights.
        """
        k, capacity = self.settings.k, capacity_of(snapshot, self.settings.resource)
        requests = self._requests(tree, snapshot)
        found = [0.0] * len(tree.names)
        amount = [0.0] * len(tree.names)
        found[0] = amount[0] = capacity
        for above in tree.parents:
            siblings = {
                q: Asking(float(tree.entitlement[q]), requests[q], self.figure(snapshot.time_s, counted[q], capacity))
                for q in tree.children[above]
            }
            given, offered = divide(amount[above], k, siblings)
            asking = {q: queue for q, queue in siblings.items() if queue.request > 0}
            if asking and not any(offered.values()):
                whole = sum(queue.weight for queue in asking.values())
                for q, queue in asking.items():
                    offered[q] = amount[above] * (queue.weight / whole if whole > 0 else 1.0 / len(asking))
                    given[q] = min(offered[q], queue.request)
            for q, queue in siblings.items():
                if q not in asking:
                    # If no queue has requests, assume that all have.
                    beside = {**asking, q: queue} if asking else siblings
                    parts = portions(beside, k)
                    whole = sum(parts.values())
                    part = parts[q] / whole if whole > 0 else 0.0
                    given[q] = amount[above] * part
                    # Scale the offer so that the queue gets the fraction `part` of the sum of all offers and its own.
                    offered[q] = given[q] / max(1.0 - part, 1e-3) if asking else given[q]
                found[q], amount[q] = offered[q], given[q]
        return found

    def _requests(self, tree: Tree, snapshot: Snapshot) -> list[float]:
        """Return each queue's total request, including running containers, within its limit; a parent's is the sum."""
        asks = [0.0] * len(tree.names)
        for q in tree.leaves:
            view = snapshot.queues[tree.names[q]]
            within = view.demand.within(limit_of(view, snapshot.capacity))
            asks[q] = within.amount(self.settings.resource, snapshot.capacity)
        return tree.sum_up(asks)

    def _weights(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float]) -> list[float]:
        return by_shares(tree, self.offers(tree, snapshot, counted))

    def _keys(self, tree: Tree, snapshot: Snapshot, counted: Sequence[float], held: Sequence[float]) -> list[float]:
        unit = 1.0 if self.settings.resource != "dominant" else 1.0 / max(snapshot.capacity.vcores, 1)
        return share_keys(self.offers(tree, snapshot, counted), held, unit)
