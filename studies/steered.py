"""How true is `yarnfair assess` on a Capacity Scheduler? Five loads, written down before, on real nodes.

    python -m studies.steered run runs/steered
    python -m studies.steered measure runs/steered -o docs/records/steered.json

`run` takes each load of `studies.steered_loads` on a real local cluster (`studies.planned` runs it): `yarnfair record
--follow` records it, `yarnfair assess` answers (before the next step begins), and the same load runs while `yarnfair
enforce` has the configuration that `assess` has written, in ``mode: bounded``. Without a recommendation ``ltrf`` runs,
to see whether there was something to gain. Then each load runs once more without a controller: by how much two such
runs differ is the noise. Called again, it goes on with what is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from harness.base.files import write_text
from harness.clusters.status import ClusterStatus
from harness.control.settings import MAX_RATIO
from studies.planned import one_run
from studies.planned_cluster import fresh
from studies.real_runs import call
from studies.result import in_one_line, write
from studies.steered_loads import ASKED_FOR, LOADS
from studies.steered_measure import measure


def run(folder: Path, loads: Sequence[str]) -> None:
    """The recorded runs, the answers, the runs under the controller, and last the repeats.

    An answer needs no cluster, so that it is computed while the next load runs.
    """
    with ThreadPoolExecutor(1) as pool:
        answers = {}
        for name in loads:
            _once(folder / name / "recorded")
            answers[name] = pool.submit(assessed, folder / name)
        for name in loads:
            answers[name].result()
            _once(folder / name / "steered", folder / name / "assess" / "enforce.yaml")
    for name in loads:
        _once(folder / name / "again")


def _once(own: Path, recommended: Path | None = None) -> None:
    """One real run, unless it is there."""
    if (own / "apps.json").exists():
        return
    print(f"{own.parent.name}, {own.name}", file=sys.stderr, flush=True)
    load = LOADS[own.parent.name]
    if recommended is None:
        one_run(fresh(own), load, "before")
        return
    one_run(
        fresh(own),
        replace(load, settings=ASKED_FOR),
        "before",
        lambda status: configuration(own, recommended, status),
    )


def assessed(own: Path) -> None:
    """What `assess` says of the recording, asked once and before the run under the controller."""
    if (own / "assess" / "assess.json").exists():
        return
    text = call("assess", str(own / "recorded" / "recording.jsonl"), "-o", str(fresh(own / "assess")))
    write_text(own / "assess.txt", text)


def configuration(own: Path, recommended: Path, status: ClusterStatus) -> Path:
    """The recommended configuration for the cluster that runs now: bounded, with its addresses, and files of its own.

    Without a recommendation it is that of ``ltrf`` with everything else as `assess` would write it.
    """
    document: dict[str, Any] = {"policy": "ltrf", "max_ratio": MAX_RATIO}
    if recommended.exists():
        document = yaml.safe_load(recommended.read_text(encoding="utf-8"))
    document |= {
        "mode": "bounded",
        "capacity_file": status.allocation_file,
        "ledger": str(own / "ledger.db"),
        "rms": [{"rest": status.address.rest, "admin": status.rpc("admin"), "client": status.rpc("client")}],
    }
    path = own / "enforce.yaml"
    write_text(path, yaml.safe_dump(document, sort_keys=False))
    return path


@in_one_line("steered")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.steered", description=__doc__)
    parser.add_argument("what", choices=("run", "measure"))
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the runs")
    parser.add_argument("--loads", default=",".join(LOADS), help="names of loads [all]")
    parser.add_argument("-o", "--out", type=Path, help="the record [standard output]")
    given = parser.parse_args(arguments)
    folder, loads = given.folder.absolute(), given.loads.split(",")
    if given.what == "run":
        run(folder, loads)
    else:
        commands = "; ".join(f"python -m studies.steered {what} runs/steered" for what in ("run", "measure"))
        write(given.out, commands, measure(folder, loads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
