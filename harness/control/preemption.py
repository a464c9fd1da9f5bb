"""Bound weights so that preemption takes hardly any container that it would not take under the entitlements. Pure.

With preemption, a share decides more than which queue gets the next container: a queue's use beyond its share is killed
for another queue that waits below its own share. Two bounds prevent this, both in fractions of the cluster:

- A queue's share is never below the smaller of its entitlement and its use, minus what preemption ignores and what ends
  by itself before anything is killed. What ends is counted in whole containers, rounded down, because a share that is
  half a container below the use exposes a whole container to preemption.
- While any queue exceeds its entitlement by more than preemption ignores, no queue's share is above the larger of its
  entitlement and its use, plus its part of what ends by itself in time: a larger share would be filled by killing.

A budget of killed work (harness.control.killed) loosens both bounds by the part of the cluster that may be killed.

Where a ratio bounds the weights of siblings as well (harness.control.bound), both hold: a parent keeps enough for all
of its children to have their part of it.

Facts: ProportionalCapacityPreemptionPolicy, PreemptableResourceCalculator of Hadoop 3.4.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.base.sums import left_fold_sum
from harness.control.bound import ROUNDING, entitlement
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.preemption import PreemptionRule
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.weights import grid_weight

#: Fractions of the cluster that differ by less are equal.
_NOISE = 1e-9
#: The fraction of what preemption ignores that is used. The rest absorbs the rounding of weights and guarantees: use
#: that exceeds the ignored amount by a rounding error costs a whole container.
_MARGIN = 0.9
#: A queue is held back if the bounds leave it less than this part of what the policy gives it.
_HELD_BACK = 0.9


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A waiting leaf to which the bounds give less than its policy does.

    Parameters
    ----------
    planned
        Its fraction of the cluster by the policy's weights.
    given
        Its fraction of the cluster by the weights within the bounds.
    due
        Its fraction of the cluster by the entitlements.
    above_due
        Whether it uses more than its due by at least a container, so that a debt is being paid.
    """

    planned: float
    given: float
    due: float
    above_due: bool


def within_use(
    weights: Mapping[str, float],
    snapshot: Snapshot,
    rule: PreemptionRule,
    max_ratio: float | None = None,
    spare: float = 0.0,
) -> dict[str, float]:
    """Return weights as near to a plan's as the bounds allow; the weights of siblings keep their sum.

    The entitlements themselves are within the bounds at every level, so a solution always exists. If the plan omits one
    of several siblings, all of them keep their weights.

    Parameters
    ----------
    weights
        The plan's weights.
    snapshot
        The queues, parents before children, with the entitlements as weights.
    rule
        The scheduler's preemption rule.
    max_ratio
        The bound M of the plan's weights (`harness.control.bound.bounded`); the result respects it, too. None: there is
        no such bound.
    spare
        The fraction of the cluster that may be killed (`harness.control.killed.KilledWork.spare`). The bounds give way
        by so much, first where the plan is furthest below what is in use.
    """
    children = _children(snapshot)
    most = math.inf if max_ratio is None else max(max_ratio * (1.0 - 2 * ROUNDING), 1.0)
    due = _parts({queue.name: queue.weight for queue in snapshot.queues.values()}, children)
    used = {name: _used(queue, snapshot, rule) for name, queue in snapshot.queues.items()}
    one = max((_asked(queue, snapshot, rule) for queue in snapshot.leaves()), default=0.0)
    ending = _ending(snapshot, used, one, rule)
    if spare > 0:
        ending["root"] += _exposed(ending, _parts(weights, children), due, used, snapshot, one, spare)
    borrowed = any(used[queue.name] > (1.0 + rule.ignored) * due[queue.name] + _NOISE for queue in snapshot.leaves())
    least = _least(snapshot, children, due, used, ending, rule, most)
    found, given = dict(weights), dict(due)
    for parent, siblings in children.items():
        names = [queue.name for queue in siblings]
        if parent == "" or any(name not in weights for name in names):
            continue
        if due[parent] <= 0.0:
            # Of nothing no child is entitled to a part: the plan's weights stay as they are.
            total = left_fold_sum(weights[name] for name in names)
            given.update({name: given[parent] * weights[name] / total for name in names})
            continue
        group = [entitlement(queue) for queue in siblings]
        low = _raised([least[name] for name in names], group, most)
        high = [math.inf] * len(names)
        if borrowed:
            waiting = sum(queue.pending_containers > 0 for queue in siblings)
            more = _whole(ending["root"] / max(waiting, 1), one)
            high = _lowered([max(due[name], used[name] + more) for name in names], group, most)
        parts = _fill([weights[name] for name in names], low, high, given[parent])
        whole = left_fold_sum(parts)
        if whole <= 0.0:
            # Below a queue without any entitlement there is nothing to divide.
            given.update(dict.fromkeys(names, 0.0))
            continue
        unit = left_fold_sum(weights[name] for name in names) / whole
        # Where a weight would leave the range, one factor for all keeps the parts.
        over = max(parts) * unit / WEIGHT_MAX
        under = WEIGHT_MIN / (min(part for part in parts if part > 0.0) * unit)
        unit *= 1.0 / over if over > 1.0 else min(max(under, 1.0), 1.0 / over)
        for name, part in zip(names, parts, strict=True):
            given[name], found[name] = part, grid_weight(part * unit)
    return found


def held_back(
    planned: Mapping[str, float], given: Mapping[str, float], snapshot: Snapshot, rule: PreemptionRule
) -> dict[str, HeldBack]:
    """Return the waiting leaves to which `within_use` gave clearly less of the cluster than the policy did.

    Parameters
    ----------
    planned
        The policy's weights.
    given
        The weights within the bounds.
    snapshot
        The queues, with the entitlements as weights.
    rule
        The scheduler's preemption rule.
    """
    entitled = {queue.name: queue.weight for queue in snapshot.queues.values()}
    children = _children(snapshot)
    due, plan, have = (_parts(weights, children) for weights in (entitled, planned, given))
    found = {}
    for leaf in snapshot.leaves():
        name = leaf.name
        if leaf.pending_containers <= 0 or name not in planned or have[name] >= _HELD_BACK * plan[name]:
            continue
        above = _used(leaf, snapshot, rule) >= due[name] + _asked(leaf, snapshot, rule) - _NOISE
        found[name] = HeldBack(plan[name], have[name], due[name], above)
    return found


def _children(snapshot: Snapshot) -> dict[str, list[QueueView]]:
    """Return the children of each parent, parents before their children; "" is the parent of the root."""
    found: dict[str, list[QueueView]] = {}
    for queue in snapshot.queues.values():
        found.setdefault(queue.parent or "", []).append(queue)
    return found


def _parts(weights: Mapping[str, float], children: Mapping[str, Sequence[QueueView]]) -> dict[str, float]:
    """Return the part of the cluster that each queue's weight gives it; a queue without a weight gets nothing."""
    found = {queue.name: 1.0 for queue in children.get("", ())}
    for parent, below in children.items():
        total = left_fold_sum(weights.get(queue.name, 0.0) for queue in below)
        for queue in below if parent else ():
            found[queue.name] = found[parent] * weights.get(queue.name, 0.0) / total if total > 0 else 0.0
    return found


def _least(
    snapshot: Snapshot,
    children: Mapping[str, Sequence[QueueView]],
    due: Mapping[str, float],
    used: Mapping[str, float],
    ending: Mapping[str, float],
    rule: PreemptionRule,
    most: float,
) -> dict[str, float]:
    """Return the lower bound of each queue's share, as a fraction of the cluster.

    A parent keeps at least what its children keep together: by the dominant resource, they may use more in sum than
    the parent does. The ratio ``most`` between siblings raises the bounds of the children that use less.
    """
    found: dict[str, float] = {}
    for name in reversed(list(snapshot.queues)):
        own = min(used[name] / (1.0 + _MARGIN * rule.ignored), used[name] - ending[name])
        inside = children.get(name, ())
        low = [found[queue.name] for queue in inside]
        below = left_fold_sum(_raised(low, [entitlement(queue) for queue in inside], most))
        found[name] = min(due[name], max(own, below))
    return found


def _raised(low: Sequence[float], entitled: Sequence[float], most: float) -> list[float]:
    """Raise siblings' lower bounds so that, relative to their entitlements, none is below the highest / ``most``."""
    top = max((least / own for least, own in zip(low, entitled, strict=True)), default=0.0)
    return [max(least, top / most * own) for least, own in zip(low, entitled, strict=True)]


def _lowered(high: Sequence[float], entitled: Sequence[float], most: float) -> list[float]:
    """Lower siblings' upper bounds so that, relative to their entitlements, none is above ``most`` x the lowest."""
    bottom = min((bound / own for bound, own in zip(high, entitled, strict=True)), default=0.0)
    return [
        min(bound, bottom * most * own if bottom > 0.0 else bound) for bound, own in zip(high, entitled, strict=True)
    ]


def _part(amount: Resource, snapshot: Snapshot, rule: PreemptionRule) -> float:
    """Return an amount as a fraction of the cluster."""
    memory = amount.memory_mb / max(snapshot.capacity.memory_mb, 1)
    return max(memory, amount.vcores / max(snapshot.capacity.vcores, 1)) if rule.dominant else memory


def _used(queue: QueueView, snapshot: Snapshot, rule: PreemptionRule) -> float:
    """Return a queue's use as a fraction of the cluster."""
    return _part(queue.allocated, snapshot, rule)


def _asked(queue: QueueView, snapshot: Snapshot, rule: PreemptionRule) -> float:
    """Return the mean size of the containers that a queue asks for, as a fraction of the cluster; 0 without asks.

    A snapshot has no sizes of running containers; the requested ones belong to the same applications.
    """
    if queue.pending_containers <= 0:
        return 0.0
    return max(_part(queue.demand - queue.allocated, snapshot, rule), 0.0) / queue.pending_containers


def _whole(part: float, one: float) -> float:
    """Round an amount down to whole containers of a size; 0 if the size is unknown. Fractions of the cluster."""
    return math.floor(part / one + _NOISE) * one if one > 0.0 else 0.0


def _ending(snapshot: Snapshot, used: Mapping[str, float], one: float, rule: PreemptionRule) -> dict[str, float]:
    """Return how much of each queue's use ends by itself before anything is killed, as a fraction of the cluster.

    It is 0 for a queue with unknown task lengths, and while no queue asks for a container.

    Parameters
    ----------
    snapshot
        The queues.
    used
        Each queue's use, as a fraction of the cluster.
    one
        The size of the largest requested container, as a fraction of the cluster; what ends is counted in multiples of
        it.
    rule
        The scheduler's preemption rule.
    """
    found = dict.fromkeys(snapshot.queues, 0.0)
    for leaf in snapshot.leaves():
        if leaf.mean_task_s:
            expected = rule.counted_on * -math.expm1(-rule.wait_s / leaf.mean_task_s) * used[leaf.name]
            part = _whole(expected, one)
            name: str | None = leaf.name
            while name is not None:
                found[name] += part
                name = snapshot.queues[name].parent
    return found


def _exposed(
    ending: dict[str, float],
    planned: Mapping[str, float],
    due: Mapping[str, float],
    used: Mapping[str, float],
    snapshot: Snapshot,
    one: float,
    spare: float,
) -> float:
    """Divide ``spare`` among the leaves that the plan puts below their use; return the part that no leaf needs.

    Parameters
    ----------
    ending
        By queue, the part of the cluster in containers that end by themselves in time. The part that may be killed is
        added to it, for these leaves and all queues above them.
    planned, due, used
        Fractions of the cluster by the plan, by the entitlements, and in use.
    snapshot
        The queues.
    one
        The size of a container: a share that is a part of one below the use exposes a whole one.
    spare
        The fraction of the cluster that may be killed.
    """
    below = {leaf.name: min(due[leaf.name], used[leaf.name]) - ending[leaf.name] for leaf in snapshot.leaves()}
    wanted = {name: part - planned[name] for name, part in below.items() if part - planned[name] > _NOISE}
    for name in sorted(wanted, key=lambda name: (-wanted[name], name)):
        needed = math.ceil(wanted[name] / one - _NOISE) * one if one > 0.0 else wanted[name]
        part = wanted[name]
        if needed > spare + _NOISE:
            needed = part = _whole(spare, one)
        spare -= needed
        at: str | None = name
        while at is not None:
            ending[at] += part
            at = snapshot.queues[at].parent
        if spare <= _NOISE:
            break
    return max(spare, 0.0)


def _fill(weights: Sequence[float], low: Sequence[float], high: Sequence[float], total: float) -> list[float]:
    """Divide a total in the ratio of the weights, with each part within its bounds."""

    def at(level: float) -> list[float]:
        return [min(max(level * w, least), most) for w, least, most in zip(weights, low, high, strict=True)]

    bounds = [bound / w for w, *both in zip(weights, low, high, strict=True) for bound in both]
    steps = [0.0, *sorted({step for step in bounds if 0.0 < step < math.inf})]
    first, last = 0, len(steps)
    # The last step at which the sum of the parts does not exceed the total.
    while last - first > 1:
        middle = (first + last) // 2
        if left_fold_sum(at(steps[middle])) <= total:
            first = middle
        else:
            last = middle
    found = at(steps[first])
    # Up to the next step, the sum grows by the parts that are at neither bound. The comparison repeats the divisions by
    # which the steps were computed, so that rounding cannot put a part on the wrong side of its bound.
    level = steps[first]
    free = [w for w, least, most in zip(weights, low, high, strict=True) if least / w <= level < most / w]
    slope, missing = left_fold_sum(free), total - left_fold_sum(found)
    return at(level + missing / slope) if slope > 0 and missing > 0 else found
