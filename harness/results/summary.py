"""From a simulated run's result to ``summary.json`` and the two tables of a run directory. Writes nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.base.errors import InputError
from harness.results.bound import last_unavoidable_s, least_loss
from harness.results.catalogue import metrics
from harness.results.metrics import (
    Floats,
    fairness_degree,
    integral,
    last_loss_s,
    mean,
    percentile,
    sharing_benefit_and_loss,
    slowdown,
    time_mean,
    until,
)
from harness.results.papers import Curves, measures

if TYPE_CHECKING:
    from harness.sim.setup import SimResult

T = TypeVar("T")


def jobs_table(result: SimResult, alone_s: Mapping[str, float]) -> pd.DataFrame:
    """Return one row per job, in order of submission (columns: docs/how-results-are-computed.md).

    ``alone_s``: ideal time alone by job id, for known jobs (otherwise the slowdown is NaN).
    """
    jobs = result.jobs
    submitted = np.asarray(jobs["submitted_s"], dtype=np.float64)
    finished = np.asarray(jobs["finished_s"], dtype=np.float64)
    ids = [str(job) for job in jobs["id"]]
    completion = finished - submitted
    return pd.DataFrame(
        {
            "job": ids,
            "type": [str(name) for name in jobs["name"]],
            "queue": [str(queue) for queue in jobs["queue"]],
            "kind": [str(kind) for kind in jobs["kind"]],
            "submitted_s": submitted,
            "started_s": np.asarray(jobs["started_s"], dtype=np.float64),
            "finished_s": finished,
            "completion_s": completion,
            "slowdown": [
                slowdown(float(took), alone_s.get(job, math.nan)) for job, took in zip(ids, completion, strict=True)
            ],
            "tasks": np.asarray(jobs["tasks"], dtype=np.int64),
            "failed": np.asarray(jobs["failed"], dtype=bool),
            "memory_mb_s": np.asarray(jobs["memory_mb_s"], dtype=np.float64),
            "vcore_s": np.asarray(jobs["vcore_s"], dtype=np.float64),
            "mean_task_s": np.asarray(jobs["task_s"], dtype=np.float64),
        }
    )


def allocations_table(result: SimResult) -> pd.DataFrame:
    """Return one row per sample and queue, including parents (columns: docs/how-results-are-computed.md)."""
    samples = result.samples
    times, queues = len(samples.time_s), len(samples.queues)
    names = np.tile(np.arange(queues), times)

    def flat(values: object, kind: type) -> Any:
        return np.asarray(values).reshape(times * queues).astype(kind, copy=False)

    share_mb = np.outer(samples.capacity_mb, samples.share_fraction)
    further = {} if samples.quantum_s is None else {"quantum_s": flat(samples.quantum_s, np.float64)}
    return pd.DataFrame(
        {
            "time_s": np.repeat(np.asarray(samples.time_s, dtype=np.float64), queues),
            "queue": pd.Categorical.from_codes(names, categories=pd.Index(samples.queues)),
            "allocated_mb": flat(samples.allocated_mb, np.int64),
            "allocated_vcores": flat(samples.allocated_vcores, np.int64),
            "demand_mb": flat(samples.demand_mb, np.int64),
            "demand_vcores": flat(samples.demand_vcores, np.int64),
            "share_mb": flat(share_mb, np.float64),
            "fair_share_mb": flat(samples.fair_share_mb, np.int64),
            "weight": flat(samples.weight, np.float64),
            "accumulated_mb_s": flat(samples.accumulated, np.float64),
            "counted_mb_s": flat(samples.counted, np.float64),
            "due_mb_s": flat(samples.due, np.float64),
            **({} if samples.due_flat is None else {"due_by_leaf_weights_mb_s": flat(samples.due_flat, np.float64)}),
            "running": flat(samples.running, np.int64),
            **further,
        },
        copy=False,
    )


def summarise(result: SimResult, jobs: pd.DataFrame, queues: list[str]) -> dict[str, Any]:
    """Return ``summary.json``; ``speedup_over_static`` needs another run and is null until `add_speedups`.

    ``queues``: the experiment's leaves, full paths. Curves are used up to the makespan, or up to the run's end if it
    was cut (then ``makespan_s`` is that end, and jobs without an end are in no mean).
    """
    samples = result.samples
    column = {queue: at for at, queue in enumerate(samples.queues)}
    at = [column[queue] for queue in queues]
    end_s = result.makespan_s if result.finished else result.end_s
    count = until(samples.time_s, end_s)
    time_s = np.asarray(samples.time_s, dtype=np.float64)[:count]
    accumulated = samples.accumulated[:count][:, at]
    rho = fairness_degree(accumulated, samples.due[:count][:, at])
    flat = None if samples.due_flat is None else fairness_degree(accumulated, samples.due_flat[:count][:, at])
    # The same dues and the same total service, divided optimally (docs/decisions/lower-bound.md).
    total = accumulated.sum(axis=1)
    least = least_loss(samples.due[:count][:, at], total)
    curves = Curves(samples, at, count)
    whole, of_queues = measures(curves, queues)
    jobs_of = _jobs_by_queue(jobs, queues)
    summary: dict[str, Any] = {
        "makespan_s": end_s,
        **_sharing(time_s, rho),
        **({} if flat is None else {"by_leaf_weights": _sharing(time_s, flat)}),
        "least_loss_integral": integral(time_s, least),
        "last_unavoidable_loss_s": last_unavoidable_s(time_s, least),
        "utilisation": _utilisation(result, count),
        **({} if result.preempted is None else {"preempted": asdict(result.preempted)}),
        **whole,
        "queues": {
            queue: {
                **jobs_of[i],
                "resource_seconds": float(samples.accumulated[count - 1, column[queue]]) if count else 0.0,
                "fairness_degree": float(rho[-1, i]) if count else 1.0,
                **({} if flat is None or not count else {"fairness_degree_by_leaf_weights": float(flat[-1, i])}),
                "speedup_over_static": None,
                "max_wait_s": result.max_wait_s.get(queue, 0.0),
                "max_wait_at_s": result.max_wait_at_s.get(queue, 0.0),
                **of_queues[queue],
            }
            for i, queue in enumerate(queues)
        },
        "mean_between_ends_s": dict(sorted(result.mean_between_ends_s.items())),
        "finished": bool(result.finished),
        "events": int(result.events),
        "wall_s": result.wall_s,
    }
    _add_computed(summary, curves, jobs)
    return summary


def _add_computed(summary: dict[str, Any], curves: Curves, jobs: pd.DataFrame) -> None:
    """Add the metrics that bring their own rule (`Metric.compute`, `Metric.of_jobs`).

    A value that is no finite number is stored as None. Raises InputError for a rule that fails, and for a key that the
    summary has already or whose place the rule cannot fill.
    """
    for metric in metrics():
        if metric.compute is not None and metric.of_jobs is not None:
            hint = "give it one of the two rules, or make two metrics of it"
            raise InputError("has both compute= and of_jobs=", where=f"metric {metric.key}", hint=hint)
        if metric.compute is not None:
            _add_value(summary, metric.key, metric.key, metric.compute, curves)
        elif metric.of_jobs is not None and metric.key.startswith("queues."):
            for queue, values in summary["queues"].items():
                name = metric.key.removeprefix("queues.")
                _add_value(values, name, metric.key, metric.of_jobs, jobs[jobs["queue"] == queue])
        elif metric.of_jobs is not None:
            _add_value(summary, metric.key, metric.key, metric.of_jobs, jobs)


def _add_value(target: dict[str, Any], name: str, key: str, rule: Callable[[T], float | None], given: T) -> None:
    """Store the value of a metric's rule under a name, which must be new and without dots."""
    where = f"metric {key}"
    if "." in name or name in target:
        hint = (
            "give it a key of its own without dots: NAME, or queues.NAME for a rule over each queue's jobs (of_jobs=)"
        )
        raise InputError("a rule cannot compute this key", where=where, hint=hint)
    try:
        value = rule(given)
    except Exception as error:  # any exception of an installed package
        what = f"its rule fails: {type(error).__name__}: {error}"
        raise InputError(what, where=where, hint="mend the package that adds it") from error
    target[name] = None if value is None or not math.isfinite(value) else float(value)


def _sharing(time_s: Floats, rho: Floats) -> dict[str, float]:
    """Return gains and losses by sharing, from the queues' fairness degrees over time (LTYARN eqs. 4 and 5)."""
    benefit, loss = sharing_benefit_and_loss(rho)
    return {
        "sharing_benefit": time_mean(time_s, benefit),
        "sharing_loss": time_mean(time_s, loss),
        "sharing_loss_integral": integral(time_s, np.abs(loss)),
        "last_loss_s": last_loss_s(time_s, loss),
    }


def _utilisation(result: SimResult, count: int) -> dict[str, float]:
    """Return time means of allocated / capacity of the whole cluster, over the first `count` samples, as steps."""
    samples = result.samples
    root = samples.queues.index("root")
    steps = np.diff(np.asarray(samples.time_s, dtype=np.float64)[:count])
    shares = {}
    for name, allocated, capacity in (
        ("memory", samples.allocated_mb, samples.capacity_mb),
        ("vcores", samples.allocated_vcores, samples.capacity_vcores),
    ):
        used = math.fsum((np.asarray(allocated, dtype=np.float64)[: len(steps), root] * steps).tolist())
        there = math.fsum((np.asarray(capacity, dtype=np.float64)[: len(steps)] * steps).tolist())
        shares[name] = used / there if there > 0 else 0.0
    return shares


def _jobs_by_queue(jobs: pd.DataFrame, queues: Sequence[str]) -> list[dict[str, Any]]:
    """Return the summary of each queue's jobs, in the order of ``queues``.

    The table is sorted by queue once: a search for each queue's rows would take time proportional to queues times jobs.
    """
    number = {queue: at for at, queue in enumerate(queues)}
    of = np.array([number.get(queue, -1) for queue in jobs["queue"]], dtype=np.int64)
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(len(queues) + 1)).tolist()
    names = ("submitted_s", "finished_s", "completion_s", "slowdown")
    columns = {name: jobs[name].to_numpy(dtype=np.float64)[order] for name in names}
    failed = jobs["failed"].to_numpy(dtype=bool)[order]
    return [
        _jobs_of({name: column[begin:end] for name, column in columns.items()}, failed[begin:end])
        for begin, end in itertools.pairwise(bounds)
    ]


def _jobs_of(own: Mapping[str, Floats], failed: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the summary of one queue's jobs, given as columns."""
    ended = ~np.isnan(own["finished_s"]) & ~failed
    jobs, count, lost = len(failed), int(np.count_nonzero(ended)), int(np.count_nonzero(failed))
    completion, slowdowns = own["completion_s"][ended], own["slowdown"][ended]
    whole = count > 0 and count + lost == jobs
    return {
        "jobs": jobs,
        "ended": count,
        "failed": lost,
        "mean_completion_s": mean(completion),
        "p95_completion_s": percentile(completion, 95),
        "mean_slowdown": mean(slowdowns[~np.isnan(slowdowns)]),
        # The duration of the whole workload, from the first submission to the last end; unknown if it was cut.
        "workload_s": float(own["finished_s"][ended].max() - own["submitted_s"].min()) if whole else None,
    }


def open_jobs(queue: Mapping[str, object]) -> float:
    """Return how many jobs of a queue's summary had neither ended nor failed; 0 if the number of ended ones is unknown.

    The number may be fractional if the summary is a mean of several.
    """
    jobs, ended, failed = (queue.get(key) for key in ("jobs", "ended", "failed"))
    if not (isinstance(jobs, int | float) and isinstance(ended, int | float)):
        return 0
    return jobs - ended - (failed if isinstance(failed, int | float) else 0)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def add_speedups(summary: dict[str, Any], static: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the summary with each queue's speed-up over static partitioning.

    A speed-up is mean completion under static / mean completion here (``workload_``: duration of the whole workload).

    It is null if either is unknown, or the experiment has no static run (LTYARN Fig. 8; both with the same seed); also
    if jobs of the queue were open at the end of either run, because then different jobs ended in them.
    """
    queues = {}
    for name, own in summary["queues"].items():
        alone = (static or {}).get("queues", {}).get(name, {})
        if open_jobs(own) or open_jobs(alone):
            alone = {}
        queues[name] = {
            **own,
            "speedup_over_static": _ratio(alone.get("mean_completion_s"), own.get("mean_completion_s")),
            "workload_speedup_over_static": _ratio(alone.get("workload_s"), own.get("workload_s")),
        }
    return {**summary, "queues": queues}
