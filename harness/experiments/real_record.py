"""The record of how near the simulator comes to real containers, for docs/figures.md.

    yarnfair run sim-against-real --backend local --out runs/real
    python -m harness.experiments.real_record runs/real --command "..." -o docs/records/sim-against-real.json

Every real run's trace (task times and what the cluster's parts took, no completion times) is simulated under the policy
of every real run of the folder, and compared with that run. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.experiments.replaying import against, write_experiment
from harness.experiments.resolve import load_experiment, variants_of
from harness.experiments.run import run_experiment
from harness.jobs.recorded import read_trace
from harness.model.errors import InputError, YarnfairError
from harness.results.store import plain, read_json, versions, write_json

_DIGITS = 4


def compare(trace_of: Path, real: Path, folder: Path) -> dict[str, Any]:
    """The trace of one real run, simulated under the policy of another, against that other one."""
    info = read_json(real / "run.json")
    policy = info["policy"]
    name = f"{policy['name']}@outside" if policy["mode"] == "outside" else str(policy["name"])
    path = write_experiment(read_trace(trace_of / "trace.jsonl"), folder, sample_s=0.5)
    loaded = load_experiment(str(path))
    settings = {key: str(value) for key, value in policy["settings"].items()}
    if "period_s" in policy:
        settings["period"] = str(policy["period_s"])
    (variant,) = variants_of(loaded, policies=[name], settings=settings, seeds=[int(info["seed"])])
    (ended,) = run_experiment(loaded, [variant], folder, processes=1)
    found = against(ended.path, real)
    del found["completion_difference_by_job"]
    return {
        key: {queue: round(value, _DIGITS) for queue, value in content.items()}
        if isinstance(content, dict)
        else round(content, _DIGITS)
        if isinstance(content, float)
        else content
        for key, content in found.items()
    }


def record(folder: Path, command: str) -> dict[str, Any]:
    """Every pair of real runs of a folder.

    Raises InputError when there is none, or one did not end well.
    """
    runs = {path.parent.name: path.parent for path in sorted(folder.glob("*/run.json"))}
    if not runs:
        raise InputError("no run directories", where=str(folder), mend="run an experiment on a real backend first")
    infos = {name: read_json(path / "run.json") for name, path in runs.items()}
    for name, info in infos.items():
        if info.get("exit") != 0 or "cluster" not in info:
            raise InputError(f"exit {info.get('exit')}, or no real run", where=str(runs[name]), mend="run it again")
    pairs = {}
    with tempfile.TemporaryDirectory() as work:
        for one, trace_of in runs.items():
            for other, real in runs.items():
                pairs[f"trace of {one}, policy of {other}"] = compare(trace_of, real, Path(work) / one / other)
    first = next(iter(infos.values()))
    return {
        "command": command,
        "version": versions()["yarnfair"],
        "values": {
            "experiment": first["experiment"]["experiment"],
            "hash": first["hash"],
            "machine": first["machine"],
            "clusters": {name: info["cluster"]["id"] for name, info in infos.items()},
            "measured": {name: info["measured"] for name, info in infos.items()},
            "differences": pairs,
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m harness.experiments.real_record FOLDER --command TEXT -o FILE``."""
    parser = argparse.ArgumentParser(prog="python -m harness.experiments.real_record", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--command", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(argv)
    try:
        write_json(given.output, plain(record(given.folder, given.command)))
    except YarnfairError as error:
        print(f"real_record: {error.line()}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
