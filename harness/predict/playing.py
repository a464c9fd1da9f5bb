"""Simulates a trace under a policy in many phases of heartbeats and control, from which a prediction's band is made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from harness.base.workers import worker_pool
from harness.control.settings import MAX_RATIO
from harness.control.virtual_figures import COUNTS_MS
from harness.predict.verdict import Outcome, Played

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    import pandas as pd

    from harness.experiments.resolve import LoadedExperiment, Variant
    from harness.model.jobs import JobSpec
    from harness.sim.setup import SimResult, SimSetup

T = TypeVar("T")

#: Step of the control phase as a fraction of the period; with the golden section, any number of phases spreads evenly.
_GOLDEN = 0.618033988749895
#: The same for the phase of the scheduler's update, with another number, so that the two are independent.
_PLASTIC = 0.7548776662466927
#: The same for an RM's caches: the shown container counts, and other clients' requests.
_SILVER, _BRONZE = 0.41421356237309503, 0.30277563773199456
#: Number of phases of a prediction's band, and the smallest number that makes a band.
PHASES, LEAST_PHASES = 20, 5
#: Time limit of all runs of a prediction together, seconds of the wall clock.
BUDGET_S = 45.0


def in_phase(setup: SimSetup, max_ratio: float | None, asked_s: float | None = 0.0) -> SimSetup:
    """Return the setup in the phase of its seed (from 1 on); external weights are bounded by ``max_ratio``.

    The controller's first poll comes a fraction of its period after the beginning. All jobs are submitted a fraction of
    the scheduler's update period later (in the first phase: unchanged). The reason is that a new application waits for
    the scheduler's next update (every 500 ms by default), whose phase is arbitrary on a real cluster, while the
    simulator's begins with the run. The controller sees an RM's cached values, with a phase of their own; ``asked_s``:
    period at which others ask for the applications (0: never; None: the values are exact).
    """
    seed, period_s = setup.seed, setup.period_s
    later_s = ((seed - 1) * _PLASTIC % 1.0) * setup.delays.update_ms / 1000.0
    outside = setup.mode == "outside"
    return replace(
        setup,
        jobs=[
            job if job.after_job is not None else replace(job, submit_s=job.submit_s + later_s) for job in setup.jobs
        ],
        max_ratio=max_ratio if outside else None,
        control_phase_s=(seed * _GOLDEN % 1.0) * period_s if outside else 0.0,
        counts_phase_s=(seed * _SILVER % 1.0) * COUNTS_MS / 1000 if outside and asked_s is not None else None,
        asked_s=(asked_s or 0.0) if outside else 0.0,
        asked_phase_s=(seed * _BRONZE % 1.0) * (asked_s or 0.0) if outside else 0.0,
    )


@lru_cache(maxsize=4)
def _loaded(experiment: str) -> LoadedExperiment:
    from harness.experiments.resolve import load_experiment

    return load_experiment(experiment)


@lru_cache(maxsize=4)
def _jobs(experiment: str) -> tuple[JobSpec, ...]:
    from harness.experiments.resolve import jobs_of

    jobs, _ = jobs_of(_loaded(experiment), 1)
    return tuple(jobs)


def simulate_phase(
    experiment: str,
    variant: Variant,
    seed: int,
    *,
    max_ratio: float | None = MAX_RATIO,
    sample_s: float | None = None,
    asked_s: float | None = 0.0,
) -> SimResult:
    """Simulate an experiment file in the phase of a seed (`in_phase`); ``max_ratio``: bound of external weights."""
    loaded, jobs = _loaded(experiment), _jobs(experiment)
    return _simulated(loaded, jobs, variant, seed, max_ratio=max_ratio, sample_s=sample_s, asked_s=asked_s)


def _simulated(
    experiment: LoadedExperiment,
    jobs: Sequence[JobSpec],
    variant: Variant,
    seed: int,
    *,
    max_ratio: float | None,
    sample_s: float | None = None,
    asked_s: float | None = 0.0,
) -> SimResult:
    from harness.experiments.simulated import setup_of, simulate_variant

    setup = in_phase(setup_of(experiment, replace(variant, seed=seed), jobs), max_ratio, asked_s)
    return simulate_variant(replace(setup, sample_s=sample_s or setup.sample_s))


def outcome_of(result: SimResult, experiment: LoadedExperiment, variant: Variant, ended: frozenset[str]) -> Outcome:
    """Return the numbers of one run. ``ended``: applications that ended in reality; others' times are not compared."""
    from harness.experiments.simulated import of_papers
    from harness.results.summary import jobs_table, summarise

    table = jobs_table(result, {})
    summary = summarise(result, table, list(experiment.leaves))
    summary.update(of_papers(experiment, variant.policy, variant.settings, result))
    means, everything = completions(table, ended)
    return Outcome(
        mean_s=means,
        all_s=everything,
        loss=float(summary["sharing_loss_integral"]),
        contended=float(contended(result).sum()) / max(int(busy(result).sum()), 1),
        utilisation=float(summary["utilisation"]["memory"]),
        wait_s=max((float(queue["max_wait_s"]) for queue in summary["queues"].values()), default=0.0),
        makespan_s=float(summary["makespan_s"]),
        unfinished=_unfinished(result),
        start_wait_s=_start_waits(table, ended),
        missing=_missing(table, ended),
        summary=summary,
    )


def _ended(table: pd.DataFrame) -> pd.Series[bool]:
    """Return for each application of a run whether it has ended without being failed or refused."""
    return table["completion_s"].notna() & ~table["failed"]


def _missing(table: pd.DataFrame, ended: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return queue -> those of these applications that have not ended."""
    own = table[table["job"].isin(ended) & ~_ended(table)]
    return {str(queue): tuple(map(str, names)) for queue, names in own.groupby("queue", observed=True)["job"]}


def _start_waits(table: pd.DataFrame, ended: frozenset[str]) -> dict[str, float]:
    """Return mean times from submission to the AM's start by queue, seconds, of those of these jobs that ended."""
    own = table[table["job"].isin(ended) & _ended(table)]
    waits = (own["started_s"] - own["submitted_s"]).groupby(own["queue"], observed=True).mean()
    return {str(queue): float(value) for queue, value in waits.items() if value == value}


def _unfinished(result: SimResult) -> str:
    """Explain why a run was cut before every application had ended; empty if it was not."""
    if result.stuck:
        return result.stuck
    if result.finished:
        return ""
    open_jobs = int(sum(1 for ended in result.jobs["finished_s"] if ended != ended))
    return f"{open_jobs} applications had not ended after {result.end_s:,.0f} s of virtual time"


def completions(table: pd.DataFrame, ended: frozenset[str]) -> tuple[dict[str, float], float]:
    """Return mean completion times (s) by queue and of all, for those of these jobs that ended; NaN if none did."""
    own = table[table["job"].isin(ended) & _ended(table)]
    by_queue = own.groupby("queue", observed=True)["completion_s"].mean()
    return {str(queue): float(value) for queue, value in by_queue.items()}, float(own["completion_s"].mean())


def busy(result: SimResult) -> Any:
    """Return for each sample whether any application holds or wants something. Shape: (times,)."""
    import numpy as np

    leaf = np.asarray(result.samples.leaf)
    return (np.asarray(result.samples.demand_mb)[:, leaf] > 0).any(axis=1)


def contended(result: SimResult) -> Any:
    """Return for each sample whether demand exceeds the cluster and a waiting queue is below its share.

    Shape: (times,).
    """
    import numpy as np

    samples = result.samples
    leaf = np.asarray(samples.leaf)
    short = np.zeros(len(samples.time_s), dtype=bool)
    full = np.zeros(len(samples.time_s), dtype=bool)
    for held, wanted, capacity in (
        (samples.allocated_mb, samples.demand_mb, samples.capacity_mb),
        (samples.allocated_vcores, samples.demand_vcores, samples.capacity_vcores),
    ):
        share = np.outer(capacity, samples.share_fraction)[:, leaf]
        mine, asks = np.asarray(held)[:, leaf], np.asarray(wanted)[:, leaf]
        full |= asks.sum(axis=1) > np.asarray(capacity)
        short |= ((asks > mine) & (mine < 0.95 * share)).any(axis=1)
    return full & short


def _play(experiment: str, ended: frozenset[str], max_ratio: float | None, variant: Variant, seed: int) -> Outcome:
    result = simulate_phase(experiment, variant, seed, max_ratio=max_ratio)
    return outcome_of(result, _loaded(experiment), variant, ended)


def _play_far(
    experiment: LoadedExperiment,
    jobs: Sequence[JobSpec],
    ended: frozenset[str],
    max_ratio: float | None,
    variant: Variant,
    seed: int,
) -> Outcome:
    """Like `_play`, where the experiment's files are not at hand."""
    result = _simulated(experiment, jobs, variant, seed, max_ratio=max_ratio)
    return outcome_of(result, experiment, variant, ended)


class Workers(Protocol):
    """Other machines that call functions."""

    #: Number of calls at once.
    threads: int

    def map(self, function: Callable[..., T], *columns: Sequence[object]) -> Iterator[T]:
        """Call a function, sent by pickle, with the elements of each column; yield the results in order."""


class PhaseRunner(Generic[T]):
    """Runs variants in many phases, in several processes if that is faster, or on other machines.

    How long a run takes is measured once (`first`, ``run_s``).

    Parameters
    ----------
    play
        Runs one variant in the phase that a seed stands for; it is sent to other processes, so it must be picklable.
    processes
        Number of processes on this machine (None: one a core).
    workers
        Other machines, which make all runs but the first. They get ``far()`` instead of ``play``: the same with all
        that it would read from files bound to it.
    far
        See ``workers``.
    """

    def __init__(
        self,
        play: Callable[[Variant, int], T],
        processes: int | None = None,
        *,
        workers: Workers | None = None,
        far: Callable[[], Callable[[Variant, int], T]] | None = None,
    ) -> None:
        self.processes = processes if processes is not None else os.cpu_count() or 1
        if workers is not None:
            self.processes = workers.threads
        self._workers, self._far = workers, far
        self.run_s = 0.0
        self._play = play
        self._pool: ProcessPoolExecutor | None = None
        self._open = ExitStack()
        self._known: dict[tuple[str, int], T] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        """End its processes; if the context ends by an exception, their runs are killed."""
        self._open.__exit__(*error)

    def first(self, variant: Variant) -> None:
        """Make one run in this process. The time that it takes is the estimate for all other runs."""
        self.warm(variant)
        begun = time.perf_counter()
        self._known[variant.name, 1] = self._play(variant, 1)
        self.run_s = time.perf_counter() - begun

    def warm(self, variant: Variant) -> None:
        """Compile and read everything before a run is timed."""

    def phases_within(self, budget_s: float, variants: int, *, besides: int = 0) -> int:
        """Return the number of phases that fit in the time with ``besides`` other runs; at least enough for a band."""
        able = budget_s * max(self.processes, 1) / max(self.run_s, 1e-3)
        return max(min(PHASES, int((able - besides) / variants)), LEAST_PHASES)

    def runs(
        self, variants: Sequence[Variant], phases: int, on_progress: Callable[[str], None] = lambda _: None
    ) -> list[list[T]]:
        """Run each variant (without seed) in this many phases; known runs are not repeated."""
        wanted = [(one, seed) for one in variants for seed in range(1, phases + 1)]
        open_ = [(one, seed) for one, seed in wanted if (one.name, seed) not in self._known]
        run: Callable[..., Iterable[T]] = map
        play = self._play
        if self._workers is not None and self._far is not None:
            run, play = self._workers.map, self._far()
        elif self.run_s * len(open_) > 6.0 and self.processes > 1:
            if self._pool is None:
                self._pool = self._open.enter_context(worker_pool(self.processes))
            run = self._pool.map
        outcomes = run(play, [one for one, _ in open_], [seed for _, seed in open_])
        for (one, seed), outcome in zip(open_, outcomes, strict=True):
            self._known[one.name, seed] = outcome
            on_progress(f"{one.name}, phase {seed} of {phases}")
        return [[self._known[one.name, seed] for seed in range(1, phases + 1)] for one in variants]


class Player(PhaseRunner[Outcome]):
    """Simulates candidates of one experiment file."""

    def __init__(
        self,
        experiment: str,
        ended: frozenset[str],
        max_ratio: float | None,
        processes: int | None = None,
        *,
        workers: Workers | None = None,
    ) -> None:
        def far() -> Callable[[Variant, int], Outcome]:
            return partial(_play_far, _loaded(experiment), _jobs(experiment), ended, max_ratio)

        super().__init__(partial(_play, experiment, ended, max_ratio), processes, workers=workers, far=far)
        self.experiment = experiment

    def warm(self, variant: Variant) -> None:
        """Compile and read in a run with few samples."""
        simulate_phase(self.experiment, variant, 1, sample_s=1e6)

    def play(
        self, variants: Sequence[Variant], phases: int, says: Callable[[str], None] = lambda _: None
    ) -> list[Played]:
        """Return each variant's outcomes, phase by phase."""
        found = self.runs(variants, phases, says)
        return [
            Played(one.name, one.policy, one.settings, outcomes) for one, outcomes in zip(variants, found, strict=True)
        ]
