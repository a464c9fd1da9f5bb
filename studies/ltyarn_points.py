"""A reading of LTYARN's load: the experiment ltyarn with some of what the papers leave open chosen otherwise.

A point says how long tasks take, how large containers are, how long clients wait between queries, when Facebook's jobs
come, how many of them may run at once, how many executors a Spark job holds, and more; with its defaults it is the
experiment itself. Each point runs under static partitioning, the Fair Scheduler and LTYARN (with its Quantum Updater).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from harness.control.virtual import simulate_policy
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of
from harness.experiments.simulated import setup_of
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.report.gallery.spread import spread
from harness.results.metrics import fairness_degree, last_loss_s, sharing_benefit_and_loss, time_mean, until
from harness.sim.setup import SimResult, SimSetup
from harness.yarn.fair.parse import parse_allocations

LEAVES = ("Facebook", "Purdue", "Spark", "TPC-H")
POLICIES: dict[str, dict[str, Any]] = {
    "static": {},
    "fair": {},
    "ltyarn": {"quantum_s": 20.0, "adaptive_quantum": True},
}
DIGITS = 4
#: Time limit of a run (seconds of virtual time); a run that reaches it has no figures.
_LONGEST_S = 200_000.0
#: The experiment's own values, which a point changes.
_FACEBOOK_MAP_S, _FACEBOOK_REDUCE_S = 10.5, 24.0
_FACEBOOK_MAPS, _FACEBOOK_REDUCES = 6514, 268
_SPLIT_MB = 64
_SMALL, _SMALL_S = 2, 6.0
_OTHERS_START_S = 20.0
_MULTIPLE = "yarn.scheduler.reservation-threshold.increment-multiple"


@dataclass(frozen=True, slots=True)
class Point:
    """One load. With the defaults it is that of the experiment ltyarn.

    Factors of the experiment's values: ``facebook_tasks``, ``purdue_tasks``, ``tpch_tasks``, ``spark_tasks`` (task
    times), ``purdue_reduce_tasks`` (times of Purdue's reduces, beside ``purdue_tasks``), ``tpch_counts`` (numbers of
    TPC-H's tasks), ``arrivals`` (Facebook's submission times), ``sigmas`` (the spread of all log-normal times).
    Values: ``container_mb`` of every container; ``tpch_think_s`` between two queries, ``spark_think_s`` between two
    programs (the paper prints 120 s); ``facebook_apps`` at once; ``executors`` of a Spark program; ``slow_start``
    and ``tail`` (the part of a reduce's work after the last map) of all MapReduce jobs; ``facebook_reduce_s``, the
    mean of Facebook's reduces (its maps and reduces keep their mean); ``purdue_split_mb`` (a map takes in
    proportion); ``purdue_reduces`` of a job; ``tpch_small_s`` of stages of one or two tasks; ``others_start_s`` of
    the other three queues; ``quantum_s``, LTYARN's Q_0; ``spark_order`` (``turns``, ``k-means`` or ``ALS`` first);
    ``reservation_multiple`` (from which multiple of the increment on Hadoop reserves nodes); ``am_share``
    (maxAMShare; -1: none); ``headroom`` (see MapReduceMaster); ``hadoop`` (see SimSetup).
    """

    facebook_tasks: float = 1.0
    purdue_tasks: float = 1.0
    tpch_tasks: float = 1.0
    spark_tasks: float = 1.0
    container_mb: int = 2048
    tpch_think_s: float = 0.0
    spark_think_s: float = 120.0
    arrivals: float = 1.0
    facebook_apps: int = 13
    executors: int = 100
    slow_start: float = 0.05
    tail: float = 0.0
    facebook_reduce_s: float = 24.0
    purdue_split_mb: int = 64
    purdue_reduces: int = 28
    purdue_reduce_tasks: float = 1.0
    tpch_counts: float = 1.0
    tpch_small_s: float = 6.0
    others_start_s: float = 20.0
    sigmas: float = 1.0
    quantum_s: float = 20.0
    spark_order: str = "turns"
    reservation_multiple: int = 3
    am_share: float = -1.0
    headroom: Literal["scheduler", "none"] = "scheduler"
    hadoop: Literal["2.2"] | None = None

    def key(self, seed: int) -> str:
        return json.dumps([*asdict(self).values(), seed])


def _longer(duration: Duration, factor: float, sigmas: float) -> Duration:
    """The duration with its mean times `factor`, and a log-normal one's sigma times `sigmas`."""
    sigma = duration.sigma * sigmas
    same_mean = (duration.sigma**2 - sigma**2) / 2 if duration.kind == "lognormal" and sigmas != 1.0 else 0.0
    return replace(
        duration,
        value_s=duration.value_s * factor,
        mu=duration.mu + math.log(factor) + same_mean,
        sigma=sigma,
        low_s=duration.low_s * factor,
        high_s=duration.high_s * factor,
        values_s=tuple(value * factor for value in duration.values_s),
    )


def _facebook(stage: Stage, point: Point) -> tuple[int, float]:
    """Number of tasks, and the factor of their time, of a stage of Facebook's jobs."""
    if stage.name == "reduce":
        return stage.tasks, point.facebook_tasks * point.facebook_reduce_s / _FACEBOOK_REDUCE_S
    map_s = _FACEBOOK_MAP_S - (point.facebook_reduce_s - _FACEBOOK_REDUCE_S) * _FACEBOOK_REDUCES / _FACEBOOK_MAPS
    return stage.tasks, point.facebook_tasks * map_s / _FACEBOOK_MAP_S


def _purdue(stage: Stage, point: Point) -> tuple[int, float]:
    if stage.name == "reduce":
        return point.purdue_reduces, point.purdue_tasks * point.purdue_reduce_tasks
    size = point.purdue_split_mb / _SPLIT_MB
    return round(stage.tasks / size), point.purdue_tasks * size


def _tpch(stage: Stage, point: Point) -> tuple[int, float]:
    if stage.tasks <= _SMALL:
        return stage.tasks, point.tpch_tasks * point.tpch_small_s / _SMALL_S
    return max(round(stage.tasks * point.tpch_counts), 1), point.tpch_tasks


def _spark(stage: Stage, point: Point) -> tuple[int, float]:
    return stage.tasks, point.spark_tasks


_OF = {"root.Facebook": _facebook, "root.Purdue": _purdue, "root.TPC-H": _tpch, "root.Spark": _spark}


def _stages(job: JobSpec, point: Point) -> tuple[Stage, ...]:
    stages = []
    for stage in job.stages:
        tasks, factor = _OF[job.queue](stage, point)
        stages.append(
            replace(
                stage,
                tasks=tasks,
                duration=_longer(stage.duration, factor, point.sigmas),
                demand=Resource(point.container_mb, stage.demand.vcores),
                slow_start=point.slow_start if job.kind == "mapreduce" and stage.after else stage.slow_start,
                tail=point.tail if job.kind == "mapreduce" and stage.after else stage.tail,
            )
        )
    return tuple(stages)


def _ordered(jobs: list[JobSpec], first: str) -> list[JobSpec]:
    """Spark's chain of programs with those named `first` before the others; each place keeps its job's id."""
    sorted_jobs = jobs if first == "turns" else sorted(jobs, key=lambda job: job.name != first)
    return [
        replace(
            place,
            name=job.name,
            stages=job.stages,
            executor_demand=job.executor_demand,
            executor_slots=job.executor_slots,
        )
        for place, job in zip(jobs, sorted_jobs, strict=True)
    ]


def jobs_at(jobs: Iterable[JobSpec], point: Point) -> list[JobSpec]:
    """The load of a point."""
    given = list(jobs)
    ordered = iter(_ordered([job for job in given if job.queue == "root.Spark"], point.spark_order))
    given = [next(ordered) if job.queue == "root.Spark" else job for job in given]
    size, made = Resource(point.container_mb, 1), []
    for job in given:
        job = replace(job, am=size, stages=_stages(job, point))
        if job.queue == "root.Facebook":
            made.append(replace(job, submit_s=job.submit_s * point.arrivals))
            continue
        if job.after_job is None:
            job = replace(job, submit_s=job.submit_s + point.others_start_s - _OTHERS_START_S)
        if job.queue == "root.TPC-H" and job.after_job is not None:
            job = replace(job, think_s=point.tpch_think_s)
        elif job.queue == "root.Spark":
            demand = Resource(point.container_mb, job.executor_demand.vcores)
            think_s = point.spark_think_s if job.after_job is not None else job.think_s
            job = replace(job, executors=point.executors, executor_demand=demand, think_s=think_s)
        made.append(job)
    return made


def _allocations(point: Point) -> Any:
    queues = "".join(
        f'<queue name="{leaf}"><maxRunningApps>{point.facebook_apps}</maxRunningApps></queue>'
        if leaf == "Facebook"
        else f'<queue name="{leaf}"/>'
        for leaf in LEAVES
    )
    return parse_allocations(
        f"<allocations><queueMaxAMShareDefault>{point.am_share}</queueMaxAMShareDefault>{queues}</allocations>"
    )


def setup_at(experiment: LoadedExperiment, point: Point, seed: int, policy: str) -> SimSetup:
    """The simulator's input at a point, under one of `POLICIES`."""
    jobs = jobs_at(jobs_of(experiment, seed)[0], point)
    settings = {**POLICIES[policy], "quantum_s": point.quantum_s} if policy == "ltyarn" else POLICIES[policy]
    variant = Variant(policy, "ltrf" if policy == "ltyarn" else policy, "inside", settings, seed, 15.0)
    setup = setup_of(experiment, variant, jobs)
    # Vcores are advertised so that they never limit: two for each container that a node's memory holds.
    nodes = [replace(node, vcores=max(node.vcores, 2 * node.memory_mb // point.container_mb)) for node in setup.nodes]
    return replace(
        setup,
        nodes=tuple(nodes),
        allocations=_allocations(point),
        time_limit_s=_LONGEST_S,
        conf={**setup.conf, _MULTIPLE: str(point.reservation_multiple)},
        mapreduce=replace(setup.mapreduce, headroom="none" if point.hadoop else point.headroom),
        hadoop=point.hadoop,
    )


def figures_of(result: SimResult, capacity_mb: float) -> dict[str, Any]:
    """Return a finished run's figures; speed-ups are ratios of two runs' ``whole_s``, or of their ``mean_job_s``."""
    samples, end_s = result.samples, result.makespan_s
    count = until(samples.time_s, end_s)
    columns = [samples.queues.index(f"root.{leaf}") for leaf in LEAVES]
    time_s = samples.time_s[:count]
    rho = fairness_degree(samples.accumulated[:count][:, columns], samples.due[:count][:, columns])
    benefit, loss = sharing_benefit_and_loss(rho)
    jobs = result.jobs
    taken: dict[str, list[tuple[float, float]]] = {leaf: [] for leaf in LEAVES}
    for queue, start, end in zip(jobs["queue"], jobs["submitted_s"], jobs["finished_s"], strict=True):
        taken[queue.removeprefix("root.")].append((float(start), float(end)))
    return {
        "makespan_s": round(end_s, 1),
        "sharing_loss": round(time_mean(time_s, loss), DIGITS),
        "sharing_benefit": round(time_mean(time_s, benefit), DIGITS),
        "last_loss_s": round(last_loss_s(time_s, loss), 1),
        "fairness_degree": {leaf: round(float(rho[-1, i]), DIGITS) for i, leaf in enumerate(LEAVES)},
        "loss_of": {
            leaf: round(time_mean(time_s, sharing_benefit_and_loss(rho[:, [i]])[1]), DIGITS)
            for i, leaf in enumerate(LEAVES)
        },
        # What was held, in seconds of the queue's share.
        "work_s": {
            leaf: round(float(samples.accumulated[count - 1, column]) * len(LEAVES) / capacity_mb, 3)
            for leaf, column in zip(LEAVES, columns, strict=True)
        },
        "whole_s": {
            leaf: round(max(end for _, end in jobs) - min(start for start, _ in jobs), 3)
            for leaf, jobs in taken.items()
        },
        "mean_job_s": {
            leaf: round(math.fsum(end - start for start, end in jobs) / len(jobs), 3) for leaf, jobs in taken.items()
        },
    }


def figures_at(experiment: LoadedExperiment, point: Point, seed: int) -> dict[str, dict[str, Any] | None]:
    """Return the figures of each policy's run at a point; None for a run that reached the time limit.

    They include ``speedup`` (over static partitioning, whole workload) if the run under static partitioning ended.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for name in POLICIES:
        setup = setup_at(experiment, point, seed, name)
        result = simulate_policy(setup)
        found[name] = figures_of(result, sum(node.memory_mb for node in setup.nodes)) if result.finished else None
    static = found["static"]
    for own in found.values():
        if own is not None and static is not None:
            own["speedup"] = {
                leaf: round(static["whole_s"][leaf] / whole_s, DIGITS) for leaf, whole_s in own["whole_s"].items()
            }
    return found


def over_runs(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the spreads of one policy's figures over runs; ``speedup`` only if every run has it."""
    figures: dict[str, Any] = {
        **{name: spread([run[name] for run in runs]) for name in ("sharing_loss", "last_loss_s", "makespan_s")},
        "lasts": spread([run["last_loss_s"] / run["makespan_s"] for run in runs]),
    }
    for name in ("fairness_degree", "speedup"):
        if all(name in run for run in runs):
            figures[name] = {leaf: spread([run[name][leaf] for run in runs]) for leaf in LEAVES}
    return figures


def most_speedup(fair: Mapping[str, Any], static: Mapping[str, Any], leaf: str) -> float:
    """The most that a queue with its fairness degrees can have gained over static partitioning, by its figures.

    For a queue that runs one job after another, with task times that do not depend on the policy:
    T_shared - T_static >= (1 / rho - 1 / rho_static) W / S (docs/decisions/where-it-matters.md).
    """
    slower = 1 / fair["fairness_degree"][leaf] - 1 / static["fairness_degree"][leaf]
    return float(static["whole_s"][leaf] / (static["whole_s"][leaf] + slower * fair["work_s"][leaf]))
