"""Bound weights so that preemption kills hardly any container that it would not kill under the entitlements. No I/O.

With preemption, containers of a queue above its share are killed if another queue below its share waits. Two bounds on
the shares prevent such kills. Both are fractions of the cluster:

- A queue's lower bound is its entitlement or its reduced usage, whichever is smaller. The usage is reduced by the
  amount that preemption ignores or the amount expected to end before preemption kills, whichever is larger. The amount
  that ends is rounded down to whole containers, because a share half a container below the usage exposes a whole
  container to preemption.
- While any queue exceeds its entitlement by more than preemption ignores, every queue has an upper bound: its
  entitlement, or its usage plus its part of the amount that ends in time, whichever is larger. A larger share would be
  filled by killing containers of other queues.

A budget of killed work (harness.control.killed) widens both bounds by the fraction of the cluster that may be killed.

If a ratio bounds the weights of siblings as well (harness.control.bound), the result respects both: a parent's lower
bound is raised until its children's bounds fit into it.

Facts: ProportionalCapacityPreemptionPolicy, PreemptableResourceCalculator of Hadoop 3.4.2.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
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
#: Fraction of the amount ignored by preemption that the lower bound uses. The rest absorbs rounding of weights and
#: guarantees, because usage that exceeds the ignored amount by a rounding error costs a whole container.
_MARGIN = 0.9
#: Minimum number of control periods between the marking of a container and its kill. The bounds follow the usage at the
#: last look. If a queue grows right after that, its containers may be marked at once; the next look must then raise its
#: share, and the new share must be in force before they are killed.
LOOKS_BEFORE_A_KILL = 2
#: A queue is held back if its share within the bounds is less than this fraction of its share in the policy's plan.
_HELD_BACK = 0.9


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A waiting leaf that gets less within the bounds than in the policy's plan.

    Parameters
    ----------
    planned
        The leaf's fraction of the cluster by the policy's weights.
    given
        The leaf's fraction of the cluster by the weights within the bounds.
    due
        The leaf's fraction of the cluster by the entitlements.
    above_due
        Whether the leaf's usage exceeds ``due`` by at least a container, so that its debt is being paid.
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
    """Return weights as close to a plan's as the bounds allow; the weights of siblings keep their sum.

    The entitlements themselves are within the bounds at every level, so a solution always exists. If the plan omits one
    of several siblings, the others keep the plan's weights.

    Parameters
    ----------
    weights
        The plan's weights.
    snapshot
        The queues, parents before children, with the entitlements as weights.
    rule
        The scheduler's preemption rule.
    max_ratio
        The bound M of the plan's weights (`harness.control.bound.bounded`), which the result respects, too. None: there
        is no such bound.
    spare
        The fraction of the cluster whose containers may be killed (`harness.control.killed.KilledWork.spare`). The
        bounds are widened by this fraction, first for the leaves whose plan is furthest below their usage.
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
            # The parent is entitled to nothing, so there are no bounds for its children: keep the plan's weights.
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
            # The parent's share is 0, so there is nothing to divide.
            given.update(dict.fromkeys(names, 0.0))
            continue
        unit = left_fold_sum(weights[name] for name in names) / whole
        # If a weight would leave the valid range, scale all siblings by one factor, which preserves their shares.
        over = max(parts) * unit / WEIGHT_MAX
        under = WEIGHT_MIN / (min(part for part in parts if part > 0.0) * unit)
        unit *= 1.0 / over if over > 1.0 else min(max(under, 1.0), 1.0 / over)
        for name, part in zip(names, parts, strict=True):
            given[name], found[name] = part, grid_weight(part * unit)
    return found


def held_back(
    planned: Mapping[str, float], given: Mapping[str, float], snapshot: Snapshot, rule: PreemptionRule
) -> dict[str, HeldBack]:
    """Return the waiting leaves whose share by `within_use` is clearly smaller than their share in the policy's plan.

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


def held_parents(
    planned: Mapping[str, float], given: Mapping[str, float], snapshot: Snapshot, held: Collection[str]
) -> dict[str, float]:
    """Return the parents of leaves in ``held`` whose own share is clearly smaller than in the policy's plan.

    The other parameters are those of `held_back`. Returns the parents' shares in the plan, as fractions of the cluster.
    """
    children = _children(snapshot)
    plan, have = (_parts(weights, children) for weights in (planned, given))
    above: dict[str, float] = {}
    for leaf in held:
        at = snapshot.queues[leaf].parent
        while at is not None and at in planned:
            if have[at] < _HELD_BACK * plan[at]:
                above[at] = plan[at]
            at = snapshot.queues[at].parent
    return above


def _children(snapshot: Snapshot) -> dict[str, list[QueueView]]:
    """Return the children of each parent, parents before their children; "" is the parent of the root."""
    found: dict[str, list[QueueView]] = {}
    for queue in snapshot.queues.values():
        found.setdefault(queue.parent or "", []).append(queue)
    return found


def _parts(weights: Mapping[str, float], children: Mapping[str, Sequence[QueueView]]) -> dict[str, float]:
    """Return the fraction of the cluster that each queue gets by its weight; 0 for a queue without a weight."""
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

    A parent's bound is at least the sum of its children's bounds. With dominant shares, the children's usages may sum
    to more than the parent's usage. The ratio ``most`` between siblings raises the bounds of children with less usage.
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
    """Return an amount as a fraction of the cluster: of its memory, or the dominant share if the rule compares that."""
    memory = amount.memory_mb / max(snapshot.capacity.memory_mb, 1)
    return max(memory, amount.vcores / max(snapshot.capacity.vcores, 1)) if rule.dominant else memory


def _used(queue: QueueView, snapshot: Snapshot, rule: PreemptionRule) -> float:
    """Return a queue's usage as a fraction of the cluster."""
    return _part(queue.allocated, snapshot, rule)


def _asked(queue: QueueView, snapshot: Snapshot, rule: PreemptionRule) -> float:
    """Return the mean size of a queue's pending containers, as a fraction of the cluster; 0 if none is pending.

    It stands for the size of the running containers, which a snapshot does not contain.
    """
    if queue.pending_containers <= 0:
        return 0.0
    return max(_part(queue.demand - queue.allocated, snapshot, rule), 0.0) / queue.pending_containers


def _whole(part: float, one: float) -> float:
    """Round ``part`` down to whole containers of size ``one``, both fractions of the cluster; 0 if ``one`` is 0."""
    return math.floor(part / one + _NOISE) * one if one > 0.0 else 0.0


def _ending(snapshot: Snapshot, used: Mapping[str, float], one: float, rule: PreemptionRule) -> dict[str, float]:
    """Return the part of each queue's usage that ends before preemption kills, as a fraction of the cluster.

    It is 0 for a queue with unknown task lengths, and while no queue has pending containers.

    Parameters
    ----------
    snapshot
        The queues.
    used
        Each queue's usage, as a fraction of the cluster.
    one
        Largest mean size of a queue's pending containers, as a fraction of the cluster. The result is a multiple of it.
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
    """Divide ``spare`` among the leaves whose plan is below their usage; return the part that no leaf needs.

    Parameters
    ----------
    ending
        Queue -> fraction of the cluster in containers that end before preemption kills (`_ending`). The part of
        ``spare`` given to a leaf is added for the leaf and all queues above it.
    planned, due, used
        Queue -> fraction of the cluster by the plan, by the entitlements, and in use.
    snapshot
        The queues.
    one
        Size of a container, as a fraction of the cluster. A share less than a container below the usage exposes a whole
        container.
    spare
        The fraction of the cluster whose containers may be killed.
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
    # Find the last step at which the sum of the parts does not exceed the total.
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
