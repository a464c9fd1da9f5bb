"""Metrics of the other papers, over the recorded curves of any run.

These are soft fairness (QKnober), discrimination (FAWKES), progress share (HotCloud 2011) and Armada's fairness error.
They are computed for every policy in the same way, so that policies of different papers can be compared. A queue
corresponds to QKnober's user, FAWKES' MR-cluster and HotCloud's job. docs/how-results-are-computed.md defines the
terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import pvariance
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.results.metrics import Floats

if TYPE_CHECKING:
    from harness.sim.setup import Samples

#: A queue counts as below its share if it holds less than this fraction of it, because a share is filled with whole
#: containers (29 of 29.5 on the papers' cluster), which are replaced at heartbeats.
BELOW = 0.95
#: At least this fraction of pending demand counts in a mean demand, so that demands are known even on a full cluster.
_LEAST_PENDING = 1e-6


class Curves:
    """The leaves over time as fractions of the cluster: arrays (samples, queues[, resources: memory, vcores]).

    ``span_s`` (samples,): the time that each sample represents. ``weight`` (queues,): entitlements, their sum 1.
    """

    def __init__(self, samples: Samples, columns: Sequence[int], count: int) -> None:
        self.span_s: Floats = np.append(np.diff(np.asarray(samples.time_s, dtype=np.float64)[:count]), 0.0)[:count]
        weight = np.asarray(samples.share_fraction, dtype=np.float64)[list(columns)]
        total = float(weight.sum())
        self.weight: Floats = weight / total if total > 0 else weight
        held, demand = [], []
        for allocated, asked, capacity in (
            (samples.allocated_mb, samples.demand_mb, samples.capacity_mb),
            (samples.allocated_vcores, samples.demand_vcores, samples.capacity_vcores),
        ):
            there = np.asarray(capacity, dtype=np.float64)[:count, None]
            there = np.where(there > 0, there, math.inf)
            held.append(np.asarray(allocated, dtype=np.float64)[:count][:, list(columns)] / there)
            demand.append(np.asarray(asked, dtype=np.float64)[:count][:, list(columns)] / there)
        self.held: Floats = np.stack(held, axis=-1)
        self.demand: Floats = np.maximum(np.stack(demand, axis=-1), self.held)
        self.dominant: Floats = self.held.max(axis=-1)
        self.waits: NDArray[np.bool_] = np.any(self.demand > self.held, axis=-1)
        # A queue of weight 0 is entitled to nothing: what it holds is not compared.
        self.level: Floats = np.divide(
            self.dominant, self.weight, out=np.zeros_like(self.dominant), where=self.weight > 0
        )


def _mean(span_s: Floats, values: Floats, where: Any = True) -> float | None:
    """Return the mean over time of a step function, over samples where a condition holds; None if it never holds."""
    spans = np.where(where, span_s, 0.0)
    total = math.fsum(spans.tolist())
    return math.fsum((spans * np.where(spans > 0, values, 0.0)).tolist()) / total if total > 0 else None


def _gaps(curves: Curves) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the largest s_i / w_i above the lowest of a waiting queue, by sample.

    The second result tells in which samples some queue waits.
    """
    lowest = np.where(curves.waits, curves.level, math.inf).min(axis=1)
    contended = np.isfinite(lowest)
    return np.maximum(curves.level.max(axis=1) - np.where(contended, lowest, 0.0), 0.0), contended


def soft_fairness(curves: Curves) -> float | None:
    """Return the soft fairness degree (QKnober, eq. 12).

    Each moment at which a queue waits has a difference: the largest s_i / w_i of all queues minus the smallest of those
    that wait, where s_i is the dominant share. Returns its mean over that time; None if no queue ever waits.
    """
    if not curves.level.size:
        return None
    gap, contended = _gaps(curves)
    return _mean(curves.span_s, gap, contended)


def soft_fairness_p95(curves: Curves) -> float | None:
    """Return the soft fairness degree that is exceeded in 5 % of the time in which some queue waits.

    Eq. 12 and Theorem 1 bound the largest difference, so theta is compared with this percentile. The true maximum
    occurs when a job without resources meets a full cluster, because tasks here are not preempted as in the theorem.
    """
    if not curves.level.size:
        return None
    gap, contended = _gaps(curves)
    spans = np.where(contended, curves.span_s, 0.0)
    total = float(spans.sum())
    if total <= 0:
        return None
    order = np.argsort(gap, kind="stable")
    return float(gap[order][np.searchsorted(np.cumsum(spans[order]), 0.95 * total)])


def theorem_1(curves: Curves, rho: float) -> float | None:
    """Return the time mean, while some queue waits, of Theorem 1's bound theta at this knob.

    It uses mean demands (C2): what each queue holds, plus as much of its pending demand as fits into idle resources.
    """
    if not curves.level.size:
        return None
    pending = curves.demand - curves.held
    idle = np.maximum(1.0 - curves.held.sum(axis=1), 0.0)[:, None, :]
    fits = np.divide(idle, pending, out=np.ones_like(pending), where=pending > 0).min(axis=-1, keepdims=True)
    mean = curves.held + np.clip(fits, _LEAST_PENDING, 1.0) * pending
    most = mean.max(axis=-1, keepdims=True)
    direction = np.divide(mean, most, out=np.zeros_like(mean), where=most > 0)
    used = (direction * curves.weight[None, :, None]).sum(axis=1)
    phi = used.max(axis=-1)
    left = np.maximum(1.0 - rho * np.divide(used, phi[:, None], out=np.zeros_like(used), where=phi[:, None] > 0), 0.0)
    alone = np.divide(left[:, None, :], direction, out=np.full_like(direction, math.inf), where=direction > 0).min(
        axis=-1
    )
    known = np.isfinite(alone) & (curves.weight > 0)[None, :]
    each = np.divide(alone, curves.weight[None, :], out=np.zeros_like(alone), where=known)
    return _mean(curves.span_s, each.max(axis=1), np.any(curves.waits, axis=1))


def adjusted_shares(weight: Floats, demand: Floats) -> Floats:
    """Return each queue's fair share after redistribution of others' unused shares, as Armada defines it.

    Shares follow the weights (queues,), limited by the demand (samples, queues). Redistribution is repeated five times,
    or until less than a hundredth is left.
    """
    share = np.zeros(demand.shape)
    open_ = np.broadcast_to(np.asarray(weight, dtype=np.float64), demand.shape).copy()
    left = np.ones(len(demand))
    for _ in range(5):
        goes_on = (left > 0.01)[:, None]
        whole = open_.sum(axis=1, keepdims=True)
        more = np.divide(open_, whole, out=np.zeros_like(open_), where=whole > 0) * left[:, None]
        share += np.where(goes_on, more, 0.0)
        over = np.where(goes_on, np.maximum(share - demand, 0.0), 0.0)
        share -= over
        open_[over > 0] = 0.0
        left = np.where(goes_on[:, 0], over.sum(axis=1), left)
    return share


def fairness_error(curves: Curves) -> float | None:
    """Return Armada's fairness error, as a fraction of the cluster.

    It is the time mean, while some queue waits, of the sum of queues' shortfalls from their adjusted fair shares. None
    if no queue ever waits.
    """
    share = adjusted_shares(curves.weight, curves.demand.max(axis=-1))
    short = np.maximum(share - curves.dominant, 0.0).sum(axis=1)
    return _mean(curves.span_s, short, np.any(curves.waits, axis=1))


def discrimination_s(curves: Curves) -> list[float]:
    """Return D_i of each queue over the whole run (FAWKES, eqs. 1 and 2), in seconds of the whole cluster.

    It is the integral of (held fraction of the cluster - w_i), with the entitlement as the weight w_i.
    """
    gained = (curves.dominant - curves.weight[None, :]) * curves.span_s[:, None]
    return [math.fsum(column.tolist()) for column in gained.T]


def progress_share(curves: Curves, queue: int) -> dict[str, float | None]:
    """Return a queue's progress share (HotCloud 2011) on nodes of one type, where it is its fraction of the cluster.

    Returns the mean while it wants anything, and the fraction of its waiting time in which it has less than its share.
    """
    wants = np.any(curves.demand[:, queue] > 0, axis=-1)
    below = (curves.dominant[:, queue] < BELOW * curves.weight[queue]).astype(np.float64)
    return {
        "mean": _mean(curves.span_s, curves.dominant[:, queue], wants),
        "below_share": _mean(curves.span_s, below, curves.waits[:, queue]),
    }


def measures(curves: Curves, queues: Sequence[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the values for a summary: of the whole run, and by queue."""
    gained = discrimination_s(curves)
    whole = {
        "soft_fairness": soft_fairness(curves),
        "fairness_error": fairness_error(curves),
        "overall_discrimination_variance": pvariance(gained) if gained else 0.0,
    }
    own = {
        queue: {"overall_discrimination_s": gained[at], "progress_share": progress_share(curves, at)}
        for at, queue in enumerate(queues)
    }
    return whole, own


def cost_dollars(groups: Sequence[Mapping[str, Any]], end_s: float) -> float | None:
    """Return the cost of the nodes from their start to the end of the run, billed per started hour (HotCloud 2011).

    ``groups``: `count`, `join_s`, `leave_s`, `price_hour` of an experiment's node groups; None if a price is missing.
    """
    total = 0.0
    for group in groups:
        if group.get("price_hour") is None:
            return None
        leave_s = group.get("leave_s")
        held_s = min(end_s, leave_s if leave_s is not None else end_s) - group.get("join_s", 0.0)
        total += group["count"] * group["price_hour"] * max(0, math.ceil(held_s / 3600))
    return total
