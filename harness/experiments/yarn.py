"""Experiments on a YARN cluster: runs one variant in the simulator into its run directory, or on a real cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from harness.base.documents import YamlDocument
from harness.base.errors import CallError, InputError
from harness.base.machine_code import waited_s
from harness.clusters.backends import BACKENDS, backend_class
from harness.control.health import health_of_decisions
from harness.experiments.kind import (
    NEVER_ENDS,
    Ended,
    Kind,
    Outcome,
    Runner,
    Step,
    Target,
    by_variant,
    without_seed,
)
from harness.experiments.loads import program_loads
from harness.experiments.orders import check_orders
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of, load_experiment, variants_of
from harness.experiments.selection import EVERYTHING, Selection
from harness.experiments.simulated import check_held, held, of_papers, put_arrivals, setup_of, simulate_variant
from harness.jobs.workloads import build_jobs
from harness.model.brought import called
from harness.model.jobs import JobSpec
from harness.model.resources import Resource
from harness.policies.registry import policy_class
from harness.policies.static import Static
from harness.results.comparison import over_seeds
from harness.results.metrics import ideal_alone_s
from harness.results.sentences import Ran, reference, sentences
from harness.results.store import RunDirectory, WriteThrottle
from harness.results.summary import add_speedups, allocations_table, jobs_table, summarise

if TYPE_CHECKING:
    import pandas as pd

    from harness.sim.setup import Progress, SimResult

#: The result of a variant's jobs, additional summary values, and additional files of lines by name.
Simulated = tuple["SimResult", dict[str, Any], dict[str, list[dict[str, Any]]]]
OnProgress = Callable[["Progress"], None]
Stepped = Callable[[float, int], None]
#: Runs a variant's jobs.
Simulate = Callable[[LoadedExperiment, Variant, Iterable[JobSpec], OnProgress, Stepped], Simulated]


def check_stages(experiment: LoadedExperiment) -> None:
    """Raise InputError for a job with more stages than the simulator supports."""
    from harness.sim.world import MAX_STAGES

    if experiment.spec.slots is not None:
        return
    for load in experiment.loads:
        if not load.workload.spec.has_stages:
            continue  # its jobs have at most the stages of maps and reduces
        for job in build_jobs(load.workload, queue=load.queue, seed=0, scale=load.scale):
            if len(job.stages) > MAX_STAGES:
                where = load.workload.where().removesuffix(": ")
                hint = f"give at most {MAX_STAGES}, of all iterations together"
                raise InputError(f"job {job.id} ({job.name}) has {len(job.stages)} stages", where=where, hint=hint)


def _noting(jobs: Iterable[JobSpec], capacity: Resource, alone_s: dict[str, float]) -> Iterator[JobSpec]:
    for job in jobs:
        alone_s[job.id] = ideal_alone_s(job, capacity)
        yield job


def run_variant(
    experiment: LoadedExperiment,
    variant: Variant,
    directory: RunDirectory,
    on_step: Callable[[Step], None] | None,
    simulate: Simulate,
) -> Outcome:
    """Run one variant and write its directory (without speed-ups over static, the report and the exit code)."""
    began, waited = time.perf_counter(), waited_s()
    jobs, count = jobs_of(experiment, variant.seed)
    capacity = experiment.capacity
    alone_s: dict[str, float] = {}
    jobs = _noting(jobs, capacity, alone_s)
    if count is not None:
        jobs = list(jobs)

    # run.json holds the whole experiment, so that with a thousand queues a note of the progress takes its time too.
    pace, notes, arrived = WriteThrottle(), WriteThrottle(), dict[str, float]()

    def stepped(time_s: float, jobs_done: int) -> None:
        if on_step is not None:
            on_step(Step(time_s, jobs_done, count))

    def on_progress(progress: Progress) -> None:
        stepped(progress.time_s, progress.jobs_done)
        if pace.due():
            with pace:
                so_far, _ = _write(experiment, directory, progress.so_far(), alone_s, arrived)
                directory.write_summary(so_far)
        if notes.due():
            with notes:
                directory.progress(time_s=progress.time_s, jobs_done=progress.jobs_done)

    jobs, arrived = held(experiment, variant, jobs)
    result, extra, lines = simulate(experiment, variant, jobs, on_progress, stepped)
    for name, found in lines.items():
        directory.write_lines(name, found)
    summary, table = _write(experiment, directory, result, alone_s, arrived)
    summary.update(extra)
    summary.update(of_papers(experiment, variant.policy, variant.settings, result))
    # The time of compilation is subtracted, because it is not a property of this run.
    summary["wall_s"] = round(time.perf_counter() - began - (waited_s() - waited), 3)
    directory.write_summary(summary)
    stepped(summary["makespan_s"], int(table["finished_s"].notna().sum()))
    if variant.mode == "outside":
        lasted_s = result.makespan_s if result.finished else result.end_s
        health = health_of_decisions(result.decisions, period_s=variant.period_s, lasted_s=lasted_s)
        if health is not None:
            directory.note(control=health.document())
    exit_code, why = _verdict(experiment, result)
    return Outcome(summary, exit_code, why)


def _write(
    experiment: LoadedExperiment,
    directory: RunDirectory,
    result: SimResult,
    alone_s: Mapping[str, float],
    arrived: Mapping[str, float],
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Write the tables of a complete or partial result; return its summary and table of jobs."""
    put_arrivals(result, arrived)
    table = jobs_table(result, alone_s)
    directory.write_table("jobs.parquet", table)
    directory.write_table("allocations.parquet", allocations_table(result))
    directory.write_lines("decisions.jsonl", result.decisions)
    return summarise(result, table, list(experiment.leaves)), table


def _verdict(experiment: LoadedExperiment, result: SimResult) -> tuple[int, str | None]:
    if result.stuck:
        return 4, f"{NEVER_ENDS}: {result.stuck}"
    if not result.finished and experiment.spec.limits.duration_s is None:
        return 5, f"not ended after {experiment.spec.limits.time_limit_s:g} s of virtual time"
    if result.failed_jobs:
        return 4, f"{result.failed_jobs} job(s) failed"
    if result.keys_in_python:
        return 0, f"the policy's keys were asked for in Python, which is slow: {result.keys_in_python}"
    return 0, None


def plainness(variant: Variant) -> tuple[bool, bool, bool, int]:
    """Return a sort key that puts the best reference among a policy's variants first: inside, without settings."""
    return variant.mode == "outside", variant.in_rm, variant.poll, len(variant.settings)


def check_programs(experiment: LoadedExperiment, backend: str) -> None:
    """Raise CallError for a backend on which an experiment's programs cannot run."""
    engines = () if backend == "sim" else backend_class(backend).engines
    for load, spec in program_loads(experiment.loads):
        lacking = spec.engines().difference(engines)
        if lacking:
            able = [name for name in BACKENDS if lacking.issubset(backend_class(name).engines)]
            hint = f"use --backend {' or '.join(able)}"
            if backend == "sim":
                hint += "; `yarnfair replay` simulates what such a run has recorded"
            what = f"queue {load.queue} runs programs that compute, by {' and '.join(sorted(lacking))}"
            raise CallError(what, where=f"--backend {backend}", hint=hint)


class Yarn(Kind[LoadedExperiment, Variant]):
    """Experiment type: queues, workloads and policies on a YARN cluster."""

    name = "yarn"
    compiles = True
    backends = ("sim", *BACKENDS)

    def load(self, document: YamlDocument) -> LoadedExperiment:
        """Read and check an experiment file. Raises InputError."""
        return load_experiment(document.file, document)

    def variants(self, experiment: LoadedExperiment, asked: Selection = EVERYTHING) -> list[Variant]:
        """Return the runs that the file and the selection describe."""
        if not asked.real:
            return variants_of(experiment, policies=asked.policies, settings=asked.settings, seeds=asked.seeds)
        from harness.experiments.real.start import real_policies, real_variants

        policies = real_policies(experiment, asked.policies)
        return real_variants(variants_of(experiment, policies=policies, settings=asked.settings, seeds=asked.seeds))

    def check(
        self, experiment: LoadedExperiment, variants: Sequence[Variant], backend: str, target: Target | None
    ) -> None:
        """Check that the variants can run on the backend. Raises InputError or CallError."""
        check_programs(experiment, backend)
        if backend == "sim":
            check_stages(experiment)
            for variant in variants:
                check_orders(experiment, variant)
            check_held(experiment, variants)
        else:
            from harness.experiments.real.checks import check_experiment, check_policies
            from harness.experiments.real.cluster import check_target

            check_target(backend, target or Target())
            check_experiment(experiment, backend, target or Target())
            check_policies(variants, backend, target or Target())

    def size(self, experiment: LoadedExperiment, variant: Variant) -> int | None:
        """Return the number of containers that a simulated run starts; None if it is not known in advance."""
        jobs, count = jobs_of(experiment, variant.seed)
        return None if count is None else sum(1 + sum(stage.tasks for stage in job.stages) for job in jobs)

    def limits_s(self, experiment: LoadedExperiment) -> tuple[float | None, float | None]:
        """Return the planned duration and the time limit, seconds (None: none)."""
        limits = experiment.spec.limits
        return limits.duration_s, limits.time_limit_s

    def simulate(
        self,
        experiment: LoadedExperiment,
        variant: Variant,
        jobs: Iterable[JobSpec],
        on_progress: OnProgress,
        stepped: Stepped,
    ) -> Simulated:
        """Simulate the jobs."""
        return simulate_variant(setup_of(experiment, variant, jobs), on_progress), {}, {}

    def run_one(
        self,
        experiment: LoadedExperiment,
        variant: Variant,
        directory: RunDirectory,
        on_step: Callable[[Step], None] | None = None,
    ) -> Outcome:
        """Simulate one variant and write its run directory."""
        return run_variant(experiment, variant, directory, on_step, self.simulate)

    def on_cluster(
        self,
        experiment: LoadedExperiment,
        variants: Sequence[Variant],
        backend: str,
        target: Target,
        says: Callable[[str], None],
    ) -> AbstractContextManager[Runner]:
        """Return a context that runs variants on a real cluster."""
        from harness.experiments.real.runner import real_runner

        return real_runner(experiment, variants, backend, target, says)

    def beside(self, experiment: LoadedExperiment, ended: Sequence[Ended]) -> None:
        """Add speed-ups over static partitioning with the same seed."""
        # A run that failed or was cut off shows nothing about the duration of its jobs.
        static: dict[int, dict[str, Any]] = {}
        for run in sorted(ended, key=lambda run: plainness(run.variant_as(Variant))):
            if run.variant.policy == "static" and run.exit_code == 0:
                static.setdefault(run.variant.seed, run.summary)
        for run in ended:
            run.summary = add_speedups(run.summary, static.get(run.variant.seed))

    def sentences(self, experiment: LoadedExperiment, ended: Sequence[Ended]) -> list[str]:
        """Return the conclusions about the runs that succeeded, as sentences."""
        well = [run for run in ended if run.exit_code == 0]
        return sentences(called("experiments", experiment.document.file), _ran(well))

    def reference(self, ended: Sequence[Ended]) -> str | None:
        """Return the name of the variant that others are compared with; None if there is none."""
        return reference(_ran(ended))


def _ran(ended: Sequence[Ended]) -> list[Ran]:
    """Return one entry per variant, with its runs over all seeds."""
    of = {without_seed(run.variant): run.variant_as(Variant) for run in ended}
    return [
        Ran(
            name,
            policy_class(of[name].policy).gives_back,
            of[name].mode == "outside",
            over_seeds(summaries),
            "horizon_s" in of[name].settings,
            ":" in of[name].policy,
            {run.variant.seed: run.summary for run in ended if without_seed(run.variant) == name},
            of[name].scheduler,
            of[name].policy != Static.name,
        )
        for name, summaries in by_variant(ended).items()
    ]


KIND = Yarn()
