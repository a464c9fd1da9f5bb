"""The record of how near the simulator comes to real containers, for docs/figures.md.

    yarnfair run sim-against-real --backend local --out runs/real
    python -m studies.sim_against_real runs/real --command "..." -o docs/records/sim-against-real.json

Every real run's trace (task times and what the cluster's parts took, no completion times) is simulated under the policy
of every real run of the folder, and compared with that run. Of further folders, with repeats of the same experiment,
each run is simulated under its own policy, and repeats are compared with each other: how far a real cluster is from
itself. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.experiments.resolve import load_experiment, variants_of
from harness.experiments.run import run_experiment
from harness.predict.replay import against, write_experiment
from harness.traces.recorded import read_trace
from studies.result import in_one_line, write

_DIGITS = 4


def compare(trace_of: Path, real: Path, folder: Path) -> dict[str, Any]:
    """The trace of one real run, simulated under the policy of another, against that other one."""
    info = read_json(real / "run.json")
    policy = info["policy"]
    name = f"{policy['name']}@outside" if policy["mode"] == "outside" else str(policy["name"])
    trace = read_trace(trace_of / "trace.jsonl")
    path = write_experiment(trace, folder, sample_s=0.5, schedulers=(trace.header.scheduler or "fair",))
    loaded = load_experiment(str(path))
    settings = {key: str(value) for key, value in policy["settings"].items()}
    if "period_s" in policy:
        settings["period"] = str(policy["period_s"])
    (variant,) = variants_of(loaded, policies=[name], settings=settings, seeds=[int(info["seed"])])
    (ended,) = run_experiment(loaded, [variant], folder, processes=1)
    return _rounded(against(ended.path, real))


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    del found["completion_difference_by_job"]
    return {
        key: {queue: round(value, _DIGITS) for queue, value in content.items()}
        if isinstance(content, dict)
        else round(content, _DIGITS)
        if isinstance(content, float)
        else content
        for key, content in found.items()
    }


def _runs(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The real runs of a folder: variant -> (run directory, run.json). InputError where one did not end well."""
    found = {path.parent.name: (path.parent, read_json(path)) for path in sorted(folder.glob("*/run.json"))}
    if not found:
        raise InputError("no run directories", where=str(folder), hint="run an experiment on a real backend first")
    for path, info in found.values():
        if info.get("exit") != 0 or "cluster" not in info:
            raise InputError(f"exit {info.get('exit')}, or no real run", where=str(path), hint="run it again")
    return found


def measure(folders: Sequence[Path]) -> dict[str, Any]:
    """Every pair of real runs of the first folder; what the others, its repeats, add.

    Raises InputError when a folder has no runs, one did not end well, or repeats are not of the same experiment.
    """
    repeats = [_runs(folder) for folder in folders]
    runs = repeats[0]
    first = next(iter(runs.values()))[1]
    for folder, again in zip(folders, repeats, strict=True):
        if again.keys() != runs.keys() or any(info["hash"] != first["hash"] for _, info in again.values()):
            raise InputError("not a repeat of the first folder", where=str(folder), hint="run the same experiment")
    pairs, simulated, real = {}, [], []
    with tempfile.TemporaryDirectory() as work:
        for one, (trace_of, _) in runs.items():
            for other, (path, _) in runs.items():
                pairs[f"trace of {one}, policy of {other}"] = compare(trace_of, path, Path(work) / one / other)
        for number, again in enumerate(repeats[1:]):
            simulated.append(
                {name: compare(path, path, Path(work) / str(number) / name) for name, (path, _) in again.items()}
            )
    for one_of, other_of in itertools.combinations(repeats, 2):
        real.append({name: _rounded(against(one_of[name][0], other_of[name][0])) for name in runs})
    return {
        "experiment": first["experiment"]["experiment"],
        "hash": first["hash"],
        "machine": first["machine"],
        "clusters": [{name: info["cluster"]["id"] for name, (_, info) in again.items()} for again in repeats],
        "measured": {name: info["measured"] for name, (_, info) in runs.items()},
        "differences": pairs,
        "differences_of_repeats": simulated,
        "real_against_real": real,
    }


@in_one_line("sim_against_real")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.sim_against_real", description=__doc__)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="run directories")
    parser.add_argument("--command", default="", help="what made the runs")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    write(given.out, given.command, measure(given.folders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
