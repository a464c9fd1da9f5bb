"""Runs an experiment's variants, side by side in processes, a run directory each; speed-ups and exit codes at the end.

What one run is, is its backend's business (harness.experiments.simulated); what is printed, harness.cli.run's.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base import errors
from harness.base.errors import CallError, YarnfairError
from harness.base.files import plain, read_json, write_json
from harness.clusters.backends import BACKENDS as REAL_BACKENDS
from harness.clusters.backends import backend_class
from harness.experiments.resolve import LoadedExperiment, Variant
from harness.experiments.simulated import Outcome, Step, capacity_of, check_stages, run_variant
from harness.jobs.workloads.programs import ProgramsWorkload
from harness.results.store import RunDirectory
from harness.results.summary import add_speedups

if TYPE_CHECKING:
    from harness.experiments.real.cluster import Target

#: What ``run --backend`` takes.
BACKENDS = ("sim", *REAL_BACKENDS)
INTERRUPTED = 130

OnStep = Callable[[Variant, Step], None]
#: Carries one variant out: harness.experiments.simulated.run_variant, or a real backend's.
Runner = Callable[[LoadedExperiment, Variant, RunDirectory, Callable[[Step], None] | None], Outcome]


@dataclass(slots=True)
class Ended:
    """One run of the experiment: where it is, its summary, how it ended."""

    variant: Variant
    path: Path
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    why: str | None = None

    def document(self) -> dict[str, Any]:
        """As ``run --json`` prints it."""
        return {
            **self.variant.identity(),
            "directory": str(self.path),
            "exit": self.exit_code,
            **({"why": self.why} if self.why else {}),
            "summary": plain(self.summary),
        }


def check_backend(name: str) -> None:
    """Raises CallError for a backend that is unknown."""
    if name not in BACKENDS:
        raise CallError(f"no backend {name[:40]!r}", where="--backend", mend="one of " + ", ".join(BACKENDS))


def check_programs(experiment: LoadedExperiment, backend: str) -> None:
    """Raises CallError for a backend on which an experiment's programs cannot run."""
    engines = () if backend == "sim" else backend_class(backend).engines
    for load in experiment.loads:
        if isinstance(load.workload.spec, ProgramsWorkload) and not engines:
            mend = f"use --backend {' or '.join(name for name in REAL_BACKENDS if backend_class(name).engines)}"
            if backend == "sim":
                mend += "; `yarnfair replay` simulates what such a run has recorded"
            raise CallError(f"queue {load.queue} runs programs that compute", where=f"--backend {backend}", mend=mend)
    if engines and "hive" not in engines:
        from harness.experiments.real.programs import has_hive

        if has_hive(experiment):
            raise CallError(
                "Hive's queries run on clusters of this machine's processes",
                where=f"--backend {backend}",
                mend="use --backend local, or Spark's (tpch-q...)",
            )


def output_folder(experiment: LoadedExperiment, out: Path | None, backend: str = "sim") -> Path:
    """Where the run directories go: ``--out``, or ``runs/<experiment>-<hash8>`` below the working directory.

    Real backends have their name behind it.
    """
    name = f"{experiment.spec.experiment}-{experiment.hash[:8]}" + ("" if backend == "sim" else f"-{backend}")
    return out if out is not None else Path("runs") / name


def _open(experiment: LoadedExperiment, variant: Variant, path: Path, backend: str) -> RunDirectory:
    return RunDirectory(
        path,
        {
            **variant.identity(),
            "backend": backend,
            "capacity_mb": capacity_of(experiment).memory_mb,
            "capacity_vcores": capacity_of(experiment).vcores,
            "hash": experiment.hash,
            "experiment": dict(experiment.resolved),
        },
    )


def run_experiment(
    experiment: LoadedExperiment,
    variants: Sequence[Variant],
    folder: Path,
    *,
    backend: str = "sim",
    processes: int | None = None,
    on_step: OnStep | None = None,
    on_end: Callable[[Ended], None] | None = None,
    target: Target | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
    runner: Runner | None = None,
) -> list[Ended]:
    """Runs all variants; results do not depend on how many run side by side.

    On a real backend they run one after another on one cluster, brought up for them or the given `target`, or with
    a `runner` that has one; `on_progress` is told what it does meanwhile.

    Raises what a run raises (its directory then carries the exit code), and KeyboardInterrupt (130).
    """
    check_backend(backend)
    check_programs(experiment, backend)
    if backend == "sim":
        check_stages(experiment)
    runs = [Ended(variant, folder / variant.name) for variant in variants]
    workers = min(len(runs), processes if processes is not None else os.cpu_count() or 1)
    try:
        if runner is not None:
            _one_by_one(experiment, runs, backend, on_step, on_end, runner)
        elif backend != "sim":
            from harness.experiments.real.cluster import Target
            from harness.experiments.real.runner import real_runner

            with real_runner(experiment, variants, backend, target or Target(), on_progress) as runner:
                _one_by_one(experiment, runs, backend, on_step, on_end, runner)
        elif workers <= 1:
            _one_by_one(experiment, runs, backend, on_step, on_end)
        else:
            _side_by_side(experiment, runs, backend, workers, on_step, on_end)
    except BaseException as error:
        code = error.exit_code if isinstance(error, YarnfairError) else 1
        _close(runs, INTERRUPTED if isinstance(error, KeyboardInterrupt) else code, error)
        raise
    _close(runs, None, None)
    return runs


def _one_by_one(
    experiment: LoadedExperiment,
    runs: Sequence[Ended],
    backend: str,
    on_step: OnStep | None,
    on_end: Callable[[Ended], None] | None,
    runner: Runner = run_variant,
) -> None:
    for run in runs:

        def step(at: Step, variant: Variant = run.variant) -> None:
            if on_step is not None:
                on_step(variant, at)

        directory = _open(experiment, run.variant, run.path, backend)
        outcome = runner(experiment, run.variant, directory, step)
        run.summary, run.exit_code, run.why = outcome.summary, outcome.exit_code, outcome.why
        if on_end is not None:
            on_end(run)


def plainness(variant: Variant) -> tuple[bool, bool, bool, int]:
    """A sort key by which that variant of a policy comes first which others are held against: inside, as it is."""
    return variant.mode == "outside", variant.in_rm, variant.poll, len(variant.settings)


def _close(runs: Sequence[Ended], exit_code: int | None, error: BaseException | None) -> None:
    """Speed-ups into the summaries of what ended, exit codes into every ``run.json`` that was begun."""
    # A run that failed or was cut off says nothing of how long its jobs take.
    static: dict[int, dict[str, Any]] = {}
    for run in sorted(runs, key=lambda run: plainness(run.variant)):
        if run.variant.policy == "static" and run.exit_code == 0 and run.summary:
            static.setdefault(run.variant.seed, run.summary)
    for run in runs:
        info_path = run.path / "run.json"
        if not info_path.exists():
            continue
        if run.exit_code is not None:
            run.summary = add_speedups(run.summary, static.get(run.variant.seed))
            write_json(run.path / "summary.json", run.summary)
        info = read_json(info_path)
        if run.exit_code is None and (info.get("exit") is not None or info.get("variant") != run.variant.name):
            continue  # left there by an earlier call, not begun in this one
        RunDirectory.close(
            run.path,
            run.exit_code if run.exit_code is not None else exit_code if exit_code is not None else 1,
            run.why if run.exit_code is not None else _in_words(error),
        )


def _in_words(error: BaseException | None) -> str | None:
    if error is None:
        return None
    if isinstance(error, YarnfairError):
        return error.line()
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"


# --- processes --------------------------------------------------------------------------------------------------------


def _worker(experiment: LoadedExperiment, backend: str, link: Connection) -> None:
    """Runs what comes over the link until None comes. Interrupts are the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = link.recv()
        except EOFError:
            return
        if task is None:
            return
        at, variant, path = task
        try:
            directory = _open(experiment, variant, path, backend)
            outcome = run_variant(experiment, variant, directory, partial(_send_step, link, at))
            link.send(("end", at, outcome))
        except YarnfairError as error:
            link.send(("error", at, (type(error).__name__, error.what, error.where, error.mend)))
        except Exception:
            link.send(("crash", at, traceback.format_exc()))


def _send_step(link: Connection, at: int, step: Step) -> None:
    link.send(("step", at, step))


@dataclass(slots=True)
class _Worker:
    process: Any
    link: Connection
    at: int | None = None


def _side_by_side(
    experiment: LoadedExperiment,
    runs: Sequence[Ended],
    backend: str,
    count: int,
    on_step: OnStep | None,
    on_end: Callable[[Ended], None] | None,
) -> None:
    # spawn: a fresh interpreter, whatever threads the caller has.
    context = multiprocessing.get_context("spawn")
    workers: list[_Worker] = []
    waiting = list(range(len(runs)))

    def give(worker: _Worker) -> None:
        worker.at = waiting.pop(0) if waiting else None
        run = runs[worker.at] if worker.at is not None else None
        worker.link.send((worker.at, run.variant, run.path) if run is not None else None)

    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_worker, args=(experiment, backend, theirs), daemon=True)
            process.start()
            theirs.close()
            workers.append(_Worker(process, ours))
            give(workers[-1])
        while any(worker.at is not None for worker in workers):
            for link in wait([worker.link for worker in workers if worker.at is not None]):
                worker = next(worker for worker in workers if worker.link is link)
                _answer(worker, runs, on_step, on_end, give)
    finally:
        for worker in workers:
            if worker.at is not None:
                worker.process.terminate()
            worker.process.join(10)
            worker.link.close()


def _answer(
    worker: _Worker,
    runs: Sequence[Ended],
    on_step: OnStep | None,
    on_end: Callable[[Ended], None] | None,
    give: Callable[[_Worker], None],
) -> None:
    assert worker.at is not None
    run = runs[worker.at]
    try:
        kind, _, what = worker.link.recv()
    except (EOFError, OSError):
        raise YarnfairError(
            f"the process that ran {run.variant.name} died", where=str(run.path), mend="is there enough memory?"
        ) from None
    if kind == "step":
        if on_step is not None:
            on_step(run.variant, what)
        return
    if kind == "end":
        run.summary, run.exit_code, run.why = what.summary, what.exit_code, what.why
        if on_end is not None:
            on_end(run)
        give(worker)
        return
    if kind == "error":
        name, text, where, mend = what
        raise _error_class(name)(text, where=where, mend=mend)
    raise RuntimeError(f"{run.variant.name}: {what}")


def _error_class(name: str) -> type[YarnfairError]:
    found: Mapping[str, Any] = vars(errors)
    cls = found.get(name, YarnfairError)
    return cls if isinstance(cls, type) and issubclass(cls, YarnfairError) else YarnfairError
