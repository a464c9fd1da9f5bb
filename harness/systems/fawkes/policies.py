"""FAWKES' nine weighting policies (SIGMETRICS 2014, section 4.3), and the baselines None and EQ.

Each policy defines the metric y of an MR-cluster; its weight is y divided by the sum of all y (eq. 4).
`harness.systems.fawkes.manager` implements the mechanism around the policies (admission, updates every T, resizing only
above tau); `harness.systems.fawkes.shares` has the arithmetic.

In YARN a leaf queue takes the place of an MR-cluster: see `FawkesPolicy.plan`, and docs/reference/fawkes.md for what
this mapping loses.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from harness.base.errors import CallError
from harness.model.plan import Order, Plan
from harness.model.resources import UNBOUNDED, ZERO, Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import LedgerView, Policy, flag, number
from harness.policies.fair import entitlement_weights
from harness.policies.limits import limit_of
from harness.policies.static import largest_remainder
from harness.policies.tree import Tree, tree_of
from harness.systems.fawkes.shares import Metrics, Number, Weighting, global_discrimination, ideal_shares, weights_of


@dataclass(frozen=True, slots=True)
class FawkesSettings:
    """Settings of all FAWKES policies.

    ``tau`` is in squared seconds of the whole system (10 in section 5.3), ``period`` is T in seconds (60 or 120 in
    section 7).
    """

    tau: float = number(10.0, at_least=0, infinite=True, doc="global discrimination above which nodes move")
    period: float = number(60.0, above=0, doc="T: seconds between updates of the weights")
    core: float = number(0.5, at_least=0, at_most=1, doc="in YARN: part of the cluster that minimum shares take")


@dataclass(frozen=True, slots=True)
class UsageSettings(FawkesSettings):
    """Settings of RU: psi of eq. (5). The paper excludes 1 and 0, at which RU equals PU and DU, respectively."""

    psi: float = number(0.5, at_least=0, at_most=1, doc="weight of processor against disk usage")
    normalised: bool = flag(True, doc="each usage over its sum over the MR-clusters first")


@dataclass(frozen=True, slots=True)
class ThroughputSettings(FawkesSettings):
    """Settings of JT and TT: the base a of eq. (6)."""

    a: float = number(2.0, above=1, doc="base of p = a^-q")


def weighting_of(policy: Policy) -> Weighting:
    """Return the policy as a rule that divides nodes among MR-clusters. Raises CallError if it has no such rule."""
    if isinstance(policy, FawkesPolicy):
        return policy
    raise CallError(
        f"{policy.name} does not divide nodes among MR-clusters", where="--policy", hint="give a fawkes-... policy"
    )


class FawkesPolicy(Policy):
    """Base class of the weighting policies. `value` returns y of eq. (4) for one sample."""

    Settings: ClassVar[type] = FawkesSettings
    #: False for the baseline None, under which MR-clusters stay at their minimum shares.
    resizes: ClassVar[bool] = True

    @abstractmethod
    def value(self, metrics: Metrics) -> Number:
        """Return y of one sample, at least 0."""

    def values(self, metrics: Metrics) -> tuple[Number, ...]:
        """Return the values that are averaged over the samples of a period.

        By default this is y alone; a policy whose `weights` combines several averages returns several values.
        """
        return (self.value(metrics),)

    def weights(self, means: Mapping[str, tuple[Number, ...]]) -> dict[str, Number]:
        """Return w of every MR-cluster (eq. 4) from the means of its `values`."""
        return weights_of({name: mean[0] for name, mean in means.items()})

    # --- YARN: a leaf queue is an MR-cluster ---

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return a plan with minimum shares of the leaf queues.

        A minimum share is the part of the cluster's resources that FAWKES would give as nodes. The core share of a leaf
        is its entitlement S_i times the setting ``core`` times the cluster, and at least the administrator's minimum
        share. No leaf gets more than its maximum share. The rest follows the weights.

        Minimum shares in force stay as they are unless one period with them would give a global discrimination above
        tau. In the YARN simulator's scheduler and on paper, `keys` orders queues by usage over ideal share at every
        allocation instead, without T and tau.
        """
        tree = tree_of(snapshot)
        weights = self._weights(snapshot, tree)
        configured = {name: _configured(view) for name, view in snapshot.queues.items()}
        ideal = self._ideal(
            tree, weights, {name: configured[name].dominant_share(snapshot.capacity) for name in weights}
        )
        ideal = _limited(ideal, weights, _most(snapshot, weights), hand_on=self.resizes)
        present = _present_parts(snapshot, tree)
        reasons = {}
        if present is not None and self.resizes:
            held = {name: part - weights[name] for name, part in present.items()}
            over = global_discrimination({name: d * snapshot.period_s for name, d in held.items()})
            if not over > self.settings.tau:
                ideal = present
                reasons = {name: f"balanced: global discrimination {float(over):.3g} s^2" for name in weights}
        capacity = snapshot.capacity
        amounts = [Resource(0, 0)] * len(tree.names)
        parts = [float(part) for part in ideal.values()]
        # Round all parts together, so that they sum exactly to the total (under None: to the sum of the core shares).
        memory, vcores = (
            largest_remainder(min(round(sum(parts) * total), total), parts)
            for total in (capacity.memory_mb, capacity.vcores)
        )
        for at, (name, part) in enumerate(ideal.items()):
            own = Resource(memory[at], vcores[at])
            for queue in (tree.index[name], *_above(tree, tree.index[name])):
                amounts[queue] = amounts[queue] + own
            reasons.setdefault(name, f"weight {float(weights[name]):.3f}, minimum share {float(part):.3f}")
        return Plan(
            order=Order(measure="keys"),
            weights=entitlement_weights(snapshot),
            # Keep minimum shares within maximum shares: the scheduler raises a maximum that is below the minimum.
            min_shares={
                name: amounts[q].within(limit_of(snapshot.queues[name], capacity)).at_least(configured[name])
                for q, name in enumerate(tree.names)
                if q
            },
            reasons=reasons,
        )

    def keys(self, snapshot: Snapshot, ledger: LedgerView) -> Mapping[str, float]:
        """Return each queue's usage over its ideal share, both summed over its leaves; the lowest key is served first.

        Queues with an ideal share of 0 come last.
        """
        tree = tree_of(snapshot)
        ideal = self._ideal(tree, self._weights(snapshot, tree))
        parts = [0.0] * len(tree.names)
        used = [0.0] * len(tree.names)
        capacity = snapshot.capacity
        for name, part in ideal.items():
            leaf = tree.index[name]
            parts[leaf] = float(part)
            used[leaf] = snapshot.queues[name].allocated.dominant_share(capacity)
        parts, used = tree.sum_up(parts), tree.sum_up(used)
        return {
            name: use / part if part > 0 else 1e200 + use
            for name, part, use in zip(tree.names, parts, used, strict=True)
        }

    def _weights(self, snapshot: Snapshot, tree: Tree) -> dict[str, Number]:
        return self.weights({tree.names[q]: self.values(metrics_of(snapshot, tree.names[q])) for q in tree.leaves})

    def _ideal(
        self, tree: Tree, weights: Mapping[str, Number], configured: Mapping[str, Number] | None = None
    ) -> dict[str, Number]:
        core = self.settings.core
        least: dict[str, Number] = {
            tree.names[q]: max(tree.share[q] * core, (configured or {}).get(tree.names[q], 0)) for q in tree.leaves
        }
        return ideal_shares(1.0, weights, least) if self.resizes else least


def _above(tree: Tree, queue: int) -> list[int]:
    return [q for q in tree.path(queue) if q != queue]


def _configured(view: QueueView) -> Resource:
    """Return the administrator's minimum share of a queue.

    It is zero if the snapshot shows only the value in force, because the controller may have written that value.
    """
    return ZERO if view.min_share_in_force is None else view.min_share


def _most(snapshot: Snapshot, leaves: Iterable[str]) -> dict[str, Number]:
    """Return, for each leaf with a maximum share, the part of the cluster that it allows."""
    capacity, found = snapshot.capacity, {}
    for name in leaves:
        limit = limit_of(snapshot.queues[name], capacity)
        parts: list[Number] = []
        if limit.memory_mb < UNBOUNDED.memory_mb:
            parts.append(limit.memory_mb / capacity.memory_mb)
        if limit.vcores < UNBOUNDED.vcores:
            parts.append(limit.vcores / capacity.vcores)
        if parts:
            found[name] = min(parts)
    return found


def _limited(
    ideal: dict[str, Number], weights: Mapping[str, Number], most: Mapping[str, Number], *, hand_on: bool
) -> dict[str, Number]:
    """Return the parts, each reduced to its maximum in ``most``.

    With ``hand_on`` the excess is divided among the other leaves by their weights.
    """
    found, others = dict(ideal), set(ideal)
    while over := [name for name in found if name in most and found[name] > most[name]]:
        excess = sum(found[name] - most[name] for name in over)
        for name in over:
            found[name] = most[name]
            others.discard(name)
        total = sum(weights[name] for name in others)
        if hand_on:
            for name in others:
                found[name] = found[name] + excess * (weights[name] / total if total else 1 / len(others))
    return found


def _present_parts(snapshot: Snapshot, tree: Tree) -> dict[str, Number] | None:
    """Return the minimum shares in force as parts of the cluster, or None if they do not sum to the whole cluster."""
    # Compare memory, which has a fine granularity: on a small cluster whole vcores differ much from the exact parts.
    whole = max(snapshot.capacity.memory_mb, 1)
    parts: dict[str, Number] = {
        tree.names[q]: _in_force(snapshot.queues[tree.names[q]]).memory_mb / whole for q in tree.leaves
    }
    return parts if abs(sum(parts.values()) - 1.0) < 1e-3 else None


def _in_force(view: QueueView) -> Resource:
    return view.min_share if view.min_share_in_force is None else view.min_share_in_force


def metrics_of(snapshot: Snapshot, leaf: str) -> Metrics:
    """Return the metrics of a leaf queue in the form of an MR-cluster's metrics.

    Where YARN shows no such metric, the closest one replaces it. YARN shows no data volumes: requested memory replaces
    input data, and memory in use replaces disk usage. It knows no reference times: slowdown is the age of the oldest
    application with pending requests divided by the mean task length.
    """
    view: QueueView = snapshot.queues[leaf]
    granted = _in_force(view)
    share = Resource(max(granted.memory_mb, 1), max(granted.vcores, 1)) if granted.memory_mb else snapshot.capacity
    mean_s = view.mean_task_s if view.mean_task_s is not None and 0 < view.mean_task_s < math.inf else 1.0
    since = view.oldest_pending_app_s
    pending = max(view.pending_containers, 0)
    return Metrics(
        waiting_jobs=view.waiting_apps if view.waiting_apps is not None else pending,
        waiting_gb=max(view.demand.memory_mb - view.allocated.memory_mb, 0) / 1024,
        waiting_tasks=pending,
        running_jobs=view.running_apps,
        processor=min(view.allocated.vcores / max(share.vcores, 1), 1.0),
        disk=min(view.allocated.memory_mb / max(share.memory_mb, 1), 1.0),
        slowdown=max(snapshot.time_s - since, 0.0) / mean_s if since is not None and since == since else 0.0,
        completed_jobs=view.ended_apps if view.ended_apps is not None else 0,
        completed_tasks=view.ended_containers if view.ended_containers is not None else 0,
    )


class JobDemand(FawkesPolicy):
    """JD: the number of jobs that wait and have not started."""

    name = "fawkes-jd"

    def value(self, metrics: Metrics) -> Number:
        """Return the number of waiting jobs."""
        return metrics.waiting_jobs


class DataDemand(FawkesPolicy):
    """DD: the input data of the waiting jobs, GB."""

    name = "fawkes-dd"

    def value(self, metrics: Metrics) -> Number:
        """Return the input data of waiting jobs, GB."""
        return metrics.waiting_gb


class TaskDemand(FawkesPolicy):
    """TD: the number of waiting tasks, including those of running jobs."""

    name = "fawkes-td"

    def value(self, metrics: Metrics) -> Number:
        """Return the number of waiting tasks."""
        return metrics.waiting_tasks


class ProcessorUsage(FawkesPolicy):
    """PU: the fraction of an MR-cluster's slots in use."""

    name = "fawkes-pu"

    def value(self, metrics: Metrics) -> Number:
        """Return the fraction of the slots in use."""
        return metrics.processor


class DiskUsage(FawkesPolicy):
    """DU: output data divided by storage capacity."""

    name = "fawkes-du"

    def value(self, metrics: Metrics) -> Number:
        """Return output data divided by storage capacity."""
        return metrics.disk


class ResourceUsage(FawkesPolicy):
    """RU: psi PU + (1 - psi) DU (eq. 5).

    By default PU and DU are normalised first: each is divided by its sum over the MR-clusters, which gives the weights
    that the policies PU and DU would compute. With ``normalised=false`` the fractions themselves are added; the
    processor's fraction is usually much larger.
    """

    name = "fawkes-ru"
    Settings = UsageSettings
    settings: UsageSettings

    def value(self, metrics: Metrics) -> Number:
        """Return psi PU + (1 - psi) DU (eq. 5)."""
        psi: Number = self.exact["psi"]
        return psi * metrics.processor + (1 - psi) * metrics.disk

    def values(self, metrics: Metrics) -> tuple[Number, ...]:
        """Return (PU, DU) if they are normalised across MR-clusters, otherwise their combination."""
        return (metrics.processor, metrics.disk) if self.settings.normalised else (self.value(metrics),)

    def weights(self, means: Mapping[str, tuple[Number, ...]]) -> dict[str, Number]:
        """Return the weights (eq. 4) of the combined, normalised usages."""
        if not self.settings.normalised:
            return super().weights(means)
        psi: Number = self.exact["psi"]
        used = {at: {name: mean[at] for name, mean in means.items()} for at in (0, 1)}
        if not any(used[0].values()) and not any(used[1].values()):
            return weights_of(used[0])
        # If no MR-cluster has any usage of one kind, that kind contributes 0 to all; eq. (4) then divides by the
        # remaining sum.
        part = {at: weights_of(y) if any(y.values()) else dict.fromkeys(y, Fraction(0)) for at, y in used.items()}
        both = {name: psi * part[0][name] + (1 - psi) * part[1][name] for name in means}
        return weights_of(both if any(both.values()) else dict.fromkeys(means, Fraction(0)))


class JobSlowdown(FawkesPolicy):
    """JS: the mean slowdown of running and waiting jobs.

    A job's slowdown is the time since its submission divided by its execution time alone on the reference MR-cluster.
    """

    name = "fawkes-js"

    def value(self, metrics: Metrics) -> Number:
        """Return the mean slowdown of running and waiting jobs."""
        return metrics.slowdown


class JobThroughput(FawkesPolicy):
    """JT: a^-q with q = jobs completed in the last period T over jobs waiting (eq. 6).

    q is at most 1, and it is 1 if no job waits.
    """

    name = "fawkes-jt"
    Settings = ThroughputSettings

    def value(self, metrics: Metrics) -> Number:
        """Return a^-q for jobs (eq. 6)."""
        return throughput_weight(self.settings.a, metrics.completed_jobs, metrics.waiting_jobs)


class TaskThroughput(FawkesPolicy):
    """TT: a^-q with q = tasks completed in the last period T over tasks waiting (eq. 6), limited as in JT."""

    name = "fawkes-tt"
    Settings = ThroughputSettings

    def value(self, metrics: Metrics) -> Number:
        """Return a^-q for tasks (eq. 6)."""
        return throughput_weight(self.settings.a, metrics.completed_tasks, metrics.waiting_tasks)


class NoPolicy(FawkesPolicy):
    """The baseline None: MR-clusters stay at their minimum shares."""

    name = "fawkes-none"
    resizes = False

    def value(self, metrics: Metrics) -> Number:
        """Return 1 for every MR-cluster."""
        return Fraction(1)


class EqualShares(FawkesPolicy):
    """The baseline EQ: the nodes are divided equally among the active MR-clusters."""

    name = "fawkes-eq"

    def value(self, metrics: Metrics) -> Number:
        """Return 1 for every MR-cluster."""
        return Fraction(1)


def throughput_weight(a: float, completed: Number, waiting: Number) -> Number:
    """Return p = a^-q (eq. 6), between 1 (nothing completed) and 1 / a.

    The result is an exact fraction if q is 0 or 1.
    """
    q = min(Fraction(1), completed / Fraction(waiting)) if waiting > 0 else Fraction(1)
    if q in (0, 1):
        return 1 / Fraction(str(a)) if q else Fraction(1)
    return math.pow(a, -float(q))
