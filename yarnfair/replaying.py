"""Simulates a recorded trace under other policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.base.errors import CallError
from harness.policies.base import Policy
from yarnfair.experiments import Experiment, checked_seeds, named_policies, run
from yarnfair.results import Runs


def replay(
    trace: str | Path,
    policies: Sequence[str | type[Policy]] = (),
    *,
    seeds: Sequence[int] = (),
    cluster: str | Path | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
) -> Runs:
    """Simulate a recorded trace under each policy.

    Parameters
    ----------
    trace
        A trace of ``yarnfair record``, a run directory, SLS', Rumen's, a log in the Standard Workload
        Format, a table of jobs (CSV), or a folder of job history files.
    policies
        Names (``fair``, ``ltrf@outside``) or policy classes; by default the trace's own scheduler as it is, and
        ``ltrf@outside`` beside it.
    seeds
        Seeds of the heartbeats' phases; by default 1.
    cluster
        For a trace of another tool: the file with its nodes and queues.
    out
        The folder of the run directories; by default ``runs/replay-NAME``.
    processes
        Number of simulations at once; by default one per core.

    Returns
    -------
    Runs
        One run per policy and seed.

    Raises
    ------
    InputError
        The trace cannot be simulated.
    CallError
        A policy is neither a name nor a class.
    """
    from harness.predict.foreign import played_trace
    from harness.predict.replay import write_experiment
    from harness.results.folders import Contents, claimed, files_identity, free_folder

    named = named_policies(policies)
    wanted = checked_seeds(seeds)
    for policy in named:
        if not isinstance(policy, str):
            raise CallError(
                f"no name of a policy: {str(policy)[:80]}",
                where="policies",
                hint="give names (ltrf, ltrf@outside) or classes; settings stand in an experiment file",
            )
    path = Path(trace)
    files = [path, *([Path(cluster)] if cluster is not None else [])]
    contents = Contents("replay", path.stem, files_identity(files, None, ()))
    folder = Path(out) if out is not None else free_folder(Path("runs") / f"replay-{path.stem}", contents)
    with claimed(folder, contents):
        found = played_trace(path, None if cluster is None else Path(cluster), folder / "trace.jsonl")
        kind = found.header.scheduler or "fair"
        experiment = Experiment(write_experiment(found, folder, schedulers=(kind,), policies=named))
    # With the Capacity Scheduler, the file has the call's policies already.
    chosen = named if kind == "fair" else ()
    return run(experiment, chosen, seeds=wanted, out=folder, processes=processes, contents=contents)
