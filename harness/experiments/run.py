"""Runs one experiment, as a campaign of one experiment without a file (harness.experiments.campaign).

What a run does depends on the type of the experiment (harness.experiments.kind). harness.cli.run prints the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import CallError
from harness.experiments.campaign.clusters import Place, backends
from harness.experiments.campaign.executors import Executor, ExecutorEvent, InProcessExecutor, Processes, processes_of
from harness.experiments.campaign.run import Watch, ended_of, run_campaign
from harness.experiments.campaign.spec import Cell, of_one
from harness.experiments.kind import Ended, KindVariant, Loaded, Runner, Step, Target
from harness.results.folders import Contents, claim, earlier_runs, run_identity

__all__ = ["Ended", "check_backend", "output_folder", "run_experiment"]


def check_backend(name: str) -> None:
    """Raise CallError for an unknown backend."""
    if name not in backends():
        raise CallError(f"no backend {name[:40]!r}", where="--backend", hint="one of " + ", ".join(backends()))


def output_folder(experiment: Loaded, out: Path | None, backend: str = "sim") -> Path:
    """Return the folder of run directories: ``--out``, or ``runs/<experiment>-<hash8>`` below the working directory.

    The name of a real backend is appended.
    """
    name = f"{experiment.name}-{experiment.hash[:8]}" + ("" if backend == "sim" else f"-{backend}")
    return out if out is not None else Path("runs") / name


def run_experiment(
    experiment: Loaded,
    variants: Sequence[KindVariant],
    folder: Path,
    *,
    backend: str = "sim",
    processes: int | None = None,
    resume: bool = False,
    on_step: Callable[[Any, Step], None] | None = None,
    on_end: Callable[[Ended], None] | None = None,
    target: Target | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
    runner: Runner | None = None,
    workers: Processes | None = None,
    contents: Contents | None = None,
) -> list[Ended]:
    """Run all variants of an experiment; results do not depend on how many run in parallel.

    Runs that the same call left unfinished in the folder are resumed; ended ones run again, unless ``resume``. On a
    real backend, the variants run one after another on one cluster.

    Parameters
    ----------
    folder
        The folder of run directories.
    processes
        Number of simulations at once; None: the number of cores.
    resume
        Whether to keep ended runs.
    on_step, on_end
        Receive the progress and the result of each run.
    target
        The external cluster of a real backend; None: a cluster is started.
    on_progress
        Receives messages.
    runner
        Runs each variant instead of the experiment type's own runner.
    workers
        Processes for simulations, which stay for the next experiment.
    contents
        Description of the folder's content, if it is not the experiment's runs.

    Raises
    ------
    InputError
        The folder holds something else; nothing has run then.
    YarnfairError, KeyboardInterrupt
        A run failed or was interrupted; its directory has the exit code.
    """
    check_backend(backend)
    if runner is None:
        experiment.kind.check(experiment, variants, backend, target)
    identity = run_identity(experiment.hash, backend)
    claim(folder, contents or Contents("run", experiment.name, identity))
    if contents is None and (left := earlier_runs(folder, experiment.hash, [one.name for one in variants])):
        on_progress(f"{folder}: of an earlier version of {experiment.name}, and left as they are: {', '.join(left)}")
    campaign = of_one(experiment, variants, Place(backend, backend, target or Target()))
    room = min(len(variants), processes_of(processes) if workers is None else workers.room)
    here = runner is not None or backend != "sim" or room <= 1
    executor: Executor = InProcessExecutor(variants, runner) if here else workers or Processes(room)

    def end(cell: Cell, told: ExecutorEvent, state: str) -> None:
        ended = ended_of(cell, folder)
        if on_end is not None and ended is not None:
            on_end(ended)

    watch = Watch(
        says=lambda cell, text: on_progress(text),
        step=lambda cell, step: on_step(cell.variant, step) if on_step is not None else None,
        end=end,
    )
    fresh = False if resume else None
    keep = executor is workers
    run_campaign(campaign, folder, executor, clusters=executor, watch=watch, fresh=fresh, strict=True, keep=keep)
    return [ended for cell in campaign.cells if (ended := ended_of(cell, folder)) is not None]
