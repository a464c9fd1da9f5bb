"""The papers' measures over recorded curves: fairness degree, sharing benefit and loss, slowdown. Arithmetic only.

Curves are arrays over sample times. harness.results.store writes files, harness.results.summary builds summaries.
docs/how-results-are-computed.md defines each measure in words.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource

Floats = NDArray[np.float64]

#: A sharing loss degree below this counts as a loss in `last_loss_s`.
LOSS_THRESHOLD = -0.01


def fairness_degree(accumulated: ArrayLike, due: ArrayLike) -> Floats:
    """Return rho_i(t) of LTYARN eq. (3): what a queue got / what it would have got alone; 1 while nothing was due.

    Parameters
    ----------
    accumulated : integral of g_i up to each time, resource-seconds; any shape.
    due : integral of min(d_i, S_i) up to each time, the same shape and unit.
    """
    got, owed = np.asarray(accumulated, dtype=np.float64), np.asarray(due, dtype=np.float64)
    rho = np.ones(np.broadcast_shapes(got.shape, owed.shape))
    np.divide(got, owed, out=rho, where=owed > 0)
    return rho


def sharing_benefit_and_loss(rho: ArrayLike) -> tuple[Floats, Floats]:
    """Return Psi(t) and Omega(t) of LTYARN eqs. (4) and (5) from rho (times, queues): two arrays (times,)."""
    excess = np.asarray(rho, dtype=np.float64) - 1.0
    return np.maximum(excess, 0.0).sum(axis=-1), np.minimum(excess, 0.0).sum(axis=-1)


def integral(time_s: ArrayLike, values: ArrayLike) -> float:
    """Integrate over time by the trapezoid rule (the curves are continuous); 0 for fewer than two samples."""
    t, v = np.asarray(time_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(t) < 2:
        return 0.0
    # fsum: exact, so the same on every machine.
    return math.fsum(((v[1:] + v[:-1]) * np.diff(t)).tolist()) / 2.0


def time_mean(time_s: ArrayLike, values: ArrayLike) -> float:
    """Return the mean over time (trapezoid rule); the value itself for one sample, 0 for none."""
    t, v = np.asarray(time_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(t) == 0:
        return 0.0
    if t[-1] <= t[0]:
        return float(v[-1])
    return integral(t, v) / float(t[-1] - t[0])


def last_loss_s(time_s: ArrayLike, loss: ArrayLike) -> float:
    """Return the last sample's time with a sharing loss degree below -0.01; 0 if there is none."""
    late = np.flatnonzero(np.asarray(loss, dtype=np.float64) < LOSS_THRESHOLD)
    return float(np.asarray(time_s, dtype=np.float64)[late[-1]]) if len(late) else 0.0


def until(time_s: ArrayLike, end_s: float) -> int:
    """Return how many samples are at or before `end_s`, plus the next one if none is exactly there.

    That next sample stands for the end, at which nothing changes any more.
    """
    t = np.asarray(time_s, dtype=np.float64)
    count = int(np.searchsorted(t, end_s, side="right"))
    if count == 0 or (t[count - 1] < end_s and count < len(t)):
        count += 1
    return min(count, len(t))


def percentile(values: ArrayLike, percent: float) -> float | None:
    """Return a percentile with linear interpolation between the closest ranks; None without values.

    Equals `numpy.percentile` to the last bit, without its overhead of a tenth of a millisecond for a few values.
    """
    found = np.sort(np.asarray(values, dtype=np.float64))
    if len(found) == 0:
        return None
    if math.isnan(found[-1]):  # NaNs are sorted to the end
        return math.nan
    rank = (len(found) - 1) * (percent / 100.0)
    below = min(int(rank), len(found) - 1)
    low, high, part = float(found[below]), float(found[min(below + 1, len(found) - 1)]), rank - below
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)


def mean(values: ArrayLike) -> float | None:
    """Return the arithmetic mean; None without values. Summed exactly, so that the order of jobs does not matter."""
    found = np.asarray(values, dtype=np.float64)
    return math.fsum(found.tolist()) / len(found) if len(found) else None


def expected_s(duration: Duration) -> float:
    """Return the mean of a distribution of task durations, in seconds.

    Recorded attempts (``attempts``) of one task count together.
    """
    if duration.kind == "lognormal":
        return math.exp(duration.mu + duration.sigma**2 / 2)
    if duration.kind == "uniform":
        return (duration.low_s + duration.high_s) / 2
    if duration.kind in ("constant", "exponential"):
        return duration.value_s
    tasks = len(duration.attempts or duration.values_s)
    return math.fsum(duration.values_s) / tasks if tasks else 0.0


def _at_once(demand: Resource, room: Resource) -> int:
    """Return how many containers fit into the available resources; at least one."""
    limits = [have // need for need, have in ((demand.memory_mb, room.memory_mb), (demand.vcores, room.vcores)) if need]
    return max(1, min(limits, default=1))


def ideal_alone_s(job: JobSpec, capacity: Resource) -> float:
    """Return how long a job would take alone on the empty cluster, with expected task durations, seconds.

    Stage by stage in waves: ceil(tasks / containers that fit beside the AM) x mean duration; a stage begins when the
    fraction ``slow_start`` of the stages before it has ended, and ends no earlier than they do, its tasks' tails later.
    Spark: all slots of its executors at once. A service, or a killed job: its lifetime. Without scheduling delays and
    stragglers. This is the denominator of `slowdown`.
    """
    if job.kind == "service" or job.lifetime_s is not None:
        return job.lifetime_s or 0.0
    room = capacity - job.am
    begins: dict[str, float] = {}
    ends: dict[str, float] = {}

    def wide(stage: Stage) -> int:
        if job.kind == "spark":
            return max(1, min(job.executors, _at_once(job.executor_demand, room))) * max(1, job.executor_slots)
        return _at_once(stage.demand, room)

    for stage in job.stages:
        before = [name for name in stage.after if name in ends]
        begin = max((begins[n] + stage.slow_start * (ends[n] - begins[n]) for n in before), default=0.0)
        waves = -(-stage.tasks // wide(stage))
        begins[stage.name] = begin
        task_s = expected_s(stage.duration)
        ends[stage.name] = max([begin + waves * task_s, *(ends[n] + stage.tail * task_s for n in before)])
    # Rounded, because a C library's exp differs in the last place from machine to machine.
    return round(max(ends.values(), default=0.0), 9)


def slowdown(completion_s: float, alone_s: float) -> float:
    """Return completion time / the job's ideal time alone (`ideal_alone_s`); NaN if either is unknown or 0."""
    if not (math.isfinite(completion_s) and alone_s > 0):
        return math.nan
    return completion_s / alone_s
