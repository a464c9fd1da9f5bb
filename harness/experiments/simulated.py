"""The ``sim`` backend: one variant of an experiment on the virtual-time YARN, into its run directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError
from harness.experiments.resolve import LoadedExperiment, Variant, allocation_file, jobs_of, nodes_of
from harness.jobs.workloads import build_jobs
from harness.model.jobs import JobSpec, TaskFaults
from harness.model.resources import ZERO, Resource
from harness.policies.mrorder import MROrder
from harness.policies.registry import make_policy
from harness.results.metrics import ideal_alone_s, until
from harness.results.papers import Curves, cost_dollars, theorem_1
from harness.results.store import Pace, RunDirectory
from harness.results.summary import allocations_table, jobs_table, summarise

if TYPE_CHECKING:
    import pandas as pd

    from harness.sim.setup import Progress, SimResult, SimSetup

#: The RM's own period of looking at its allocation file (AllocationFileLoaderService).
POLL_S = 10.0
#: How often run.json is told how far the run has come, in wall seconds.
NOTE_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended. ``exit_code``: 0, 4 (jobs failed) or 5 (time limit); ``why`` says it in words."""

    summary: dict[str, Any]
    exit_code: int
    why: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """How far a run has come: virtual time in seconds, jobs ended and how many there are (None: not known)."""

    time_s: float
    jobs_done: int
    jobs: int | None


def setup_of(experiment: LoadedExperiment, variant: Variant, jobs: Iterable[JobSpec]) -> SimSetup:
    """What the simulator is given for one variant."""
    from harness.sim.setup import Delays, SimSetup

    spec = experiment.spec
    return SimSetup(
        nodes=nodes_of(spec),
        allocations=allocation_file(spec),
        jobs=jobs,
        entitlements=dict(experiment.weights),
        policy=make_policy(variant.policy, variant.settings),
        mode=variant.mode,
        period_s=variant.period_s,
        actuation_delay_s=spec.actuation.delay_s,
        poll_s=spec.actuation.poll_s or (POLL_S if variant.poll else 0.0),
        scheduler=variant.scheduler,
        capacity={
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in spec.capacity.items()
        },
        task_lengths=spec.actuation.task_lengths,
        conf=_texts(spec.conf),
        delays=Delays(**spec.delays.model_dump(exclude_none=True)),
        faults=TaskFaults(**spec.faults.model_dump()),
        resource=spec.resource,
        seed=variant.seed,
        sample_s=spec.sample_s,
        time_limit_s=spec.limits.duration_s or spec.limits.time_limit_s,
        stop_when_stuck=spec.limits.duration_s is None,
    )


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings as Hadoop writes them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}


def check_stages(experiment: LoadedExperiment) -> None:
    """Raises InputError for a job of more stages than the simulator takes."""
    from harness.sim.world import MAX_STAGES

    if experiment.spec.slots is not None:
        return
    for load in experiment.loads:
        if not load.workload.spec.has_stages:
            continue  # maps and reduces
        for job in build_jobs(load.workload, queue=load.queue, seed=0, scale=load.scale):
            if len(job.stages) > MAX_STAGES:
                where = load.workload.where().removesuffix(": ")
                mend = f"give at most {MAX_STAGES}, of all iterations together"
                raise InputError(f"job {job.id} ({job.name}) has {len(job.stages)} stages", where=where, mend=mend)


def capacity_of(experiment: LoadedExperiment) -> Resource:
    """All nodes together, whether they join late or leave early."""
    total = ZERO
    for group in experiment.spec.cluster.nodes:
        total = total + Resource(group.memory_mb, group.vcores) * group.count
    return total


def node_sizes(experiment: LoadedExperiment) -> list[Resource]:
    """What each node has, whether it joins late or leaves early."""
    return [Resource(node.memory_mb, node.vcores) for node in nodes_of(experiment.spec)]


def _noting(jobs: Iterable[JobSpec], capacity: Resource, alone_s: dict[str, float]) -> Iterator[JobSpec]:
    for job in jobs:
        alone_s[job.id] = ideal_alone_s(job, capacity)
        yield job


def simulate_variant(setup: SimSetup, on_progress: Callable[[Progress], None] | None = None) -> SimResult:
    """Runs the simulator: in the scheduler, or with the control core beside it for a policy from outside."""
    from harness.control.virtual import simulate_policy

    return simulate_policy(setup, on_progress=on_progress)


def run_variant(
    experiment: LoadedExperiment,
    variant: Variant,
    directory: RunDirectory,
    on_step: Callable[[Step], None] | None = None,
) -> Outcome:
    """One run, written into its directory (all but speed-ups over static, the report and the exit code)."""
    began, noted = time.perf_counter(), time.perf_counter()
    jobs, count = jobs_of(experiment, variant.seed)
    capacity = capacity_of(experiment)
    alone_s: dict[str, float] = {}
    if count is not None:
        listed = list(_noting(jobs, capacity, alone_s))
        jobs = listed
    else:
        jobs = _noting(jobs, capacity, alone_s)

    pace, arrived = Pace(), dict[str, float]()

    def on_progress(progress: Progress) -> None:
        nonlocal noted
        if on_step is not None:
            on_step(Step(progress.time_s, progress.jobs_done, count))
        if pace.due():
            with pace:
                _write(experiment, directory, progress.so_far(), alone_s, arrived)
        if time.perf_counter() - noted >= NOTE_EVERY_S:
            noted = time.perf_counter()
            directory.progress(time_s=progress.time_s, jobs_done=progress.jobs_done)

    jobs, arrived = held(variant, jobs, node_sizes(experiment))
    extra: dict[str, Any] = {}
    if experiment.spec.slots is None:
        result = simulate_variant(setup_of(experiment, variant, jobs), on_progress)
    else:
        from harness.experiments.slots import simulate_slots

        result, running, extra["slots"] = simulate_slots(
            experiment, variant, jobs, lambda ms, done: on_step and on_step(Step(ms / 1000.0, done, count))
        )
        directory.write_lines("slots.jsonl", running)
    summary, table = _write(experiment, directory, result, alone_s, arrived)
    summary.update(extra)
    summary.update(of_papers(experiment, variant, result))
    summary["wall_s"] = round(time.perf_counter() - began, 3)
    directory.write_summary(summary)
    if on_step is not None:
        on_step(Step(summary["makespan_s"], int(table["finished_s"].notna().sum()), count))
    exit_code, why = _verdict(experiment, result)
    return Outcome(summary, exit_code, why)


def _write(
    experiment: LoadedExperiment,
    directory: RunDirectory,
    result: SimResult,
    alone_s: Mapping[str, float],
    arrived: Mapping[str, float],
) -> tuple[dict[str, Any], pd.DataFrame]:
    """The tables and the summary of a result, of the whole run or of a run so far; summary and table of jobs."""
    put_arrivals(result, arrived)
    table = jobs_table(result, alone_s)
    directory.write_table("jobs.parquet", table)
    directory.write_table("allocations.parquet", allocations_table(result))
    directory.write_lines("decisions.jsonl", result.decisions)
    summary = summarise(result, table, list(experiment.leaves))
    directory.write_summary(summary)
    return summary, table


def held(
    variant: Variant, jobs: Iterable[JobSpec], nodes: Sequence[Resource]
) -> tuple[Iterable[JobSpec], dict[str, float]]:
    """The jobs as ``mrorder`` submits them, and when each came; under other policies as they are."""
    policy = make_policy(variant.policy, variant.settings)
    if not isinstance(policy, MROrder):
        return jobs, {}
    from harness.experiments.mrorder import hold

    return hold(policy, jobs, nodes)


def put_arrivals(result: SimResult, arrived: Mapping[str, float]) -> None:
    """Jobs that were held back count from when they came, not from when they were handed on."""
    if arrived:
        submitted = zip(result.jobs["id"], result.jobs["submitted_s"], strict=True)
        result.jobs["submitted_s"] = [arrived.get(job, time_s) for job, time_s in submitted]


def of_papers(experiment: LoadedExperiment, variant: Variant, result: SimResult) -> dict[str, float]:
    """What only some runs have: the bound of QKnober's Theorem 1 at a given knob; the cost of nodes with prices."""
    found: dict[str, float] = {}
    policy = make_policy(variant.policy, variant.settings)
    end_s = result.makespan_s if result.finished else result.end_s
    knob = policy.knob()
    if knob is not None:
        samples = result.samples
        columns = [samples.queues.index(queue) for queue in experiment.leaves]
        curves = Curves(samples, columns, until(samples.time_s, end_s))
        theta = theorem_1(curves, float(knob))
        if theta is not None:
            found["theta"] = theta
    cost = cost_dollars([group.model_dump() for group in experiment.spec.cluster.nodes], end_s)
    if cost is not None:
        found["cost_dollars"] = cost
    return found


def _verdict(experiment: LoadedExperiment, result: SimResult) -> tuple[int, str | None]:
    if result.stuck:
        return 4, f"it can never end: {result.stuck}"
    if not result.finished and experiment.spec.limits.duration_s is None:
        return 5, f"not ended after {experiment.spec.limits.time_limit_s:g} s of virtual time"
    if result.failed_jobs:
        return 4, f"{result.failed_jobs} job(s) failed"
    return 0, None
