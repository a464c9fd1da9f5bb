"""How often `yarnfair check` cries wolf on real runs, and what it finds.

    python -m studies.check_real run runs/check-real
    python -m studies.check_real measure runs/check-real --without 4 -o docs/records/check-real.json

`run` brings up one local cluster of three nodes, and runs one load under `fair` twenty times, unchanged: each
difference is the machine's. Between them it runs the same load five times with tasks that take 10 % longer, and five
times with 20 %. Called again, it goes on with what is missing. Every run has the machine's load average beside it.

`measure` checks unchanged runs against unchanged ones: every ordered pair, one run against ten others and five against
five others (drawn 1,000 times, so draws share runs), and fives in the order in which they ran (what a nightly pipeline
does, and where a machine that drifts would show). The slowed runs are checked against draws of five and of ten.
``--without N``: the same once more without the first N unchanged runs, for a machine that settled only then.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.results.baseline import Baseline, record
from harness.results.check import check
from harness.results.runs import RunRecord, read_run
from studies.assessed_loads import COMMON, alike
from studies.check_power import SIDE, at_most, fails
from studies.real_runs import ended, local_cluster, one_run, write_experiment_file
from studies.result import in_one_line, write

RUNS = 20
SLOWER = (0.10, 0.20)
DRAWS = 1000
#: Mean length of a task, seconds.
_TASK_S = 6.0


def experiment(slower: float = 0.0) -> dict[str, Any]:
    """The experiment file; its tasks take ``slower`` (a part) longer. About a minute on three nodes."""
    task_s = _TASK_S * (1.0 + slower)
    return {
        "experiment": "check-real",
        "about": "one queue wants more than the cluster all the time, the other comes in bursts",
        **COMMON,
        "queues": {"steady": {}, "bursts": {}},
        "workloads": {
            "steady": alike(8, 5, maps=24, mean_s=task_s),
            "bursts": alike(20, 2, start_s=10, maps=20, mean_s=task_s),
        },
        "policies": ["fair"],
    }


def name_of(slower: float, number: int) -> str:
    return f"slower-{slower:g}-{number:02d}" if slower else f"unchanged-{number:02d}"


def schedule() -> list[tuple[float, int]]:
    """(slow-down, number) of every run in its order: after four unchanged runs one of each slow-down."""
    each = RUNS // SIDE
    order: list[tuple[float, int]] = []
    for block in range(SIDE):
        order += [(0.0, each * block + k) for k in range(1, each + 1)]
        order += [(slower, block + 1) for slower in SLOWER]
    return order


def run(folder: Path) -> None:
    """All real runs that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {slower: folder / f"{name_of(slower, 0)}.yaml" for slower in (0.0, *SLOWER)}
    for slower, file in files.items():
        write_experiment_file(file, experiment(slower))
    with local_cluster(folder, files[0.0]) as given:
        for slower, number in schedule():
            one_run(folder / name_of(slower, number), files[slower], ["--policy=fair"], given)


def measured(unchanged: Sequence[RunRecord], slowed: dict[float, Sequence[RunRecord]], seed: int = 1) -> dict[str, Any]:
    """Alarms among unchanged runs (in their order) and among slowed ones."""
    rng = random.Random(seed)
    pairs = list(permutations(unchanged, 2))
    drawn = [rng.sample(unchanged, 11) for _ in range(DRAWS)]
    blocks = [unchanged[k : k + SIDE] for k in range(0, len(unchanged) - SIDE + 1, SIDE)]
    in_order = list(permutations(blocks, 2))
    held = check(blocks[1], Baseline("recorded", record(blocks[0]))).held
    return {
        "metrics": len(held),
        "pairs": {"of": len(pairs), "false_alarms": sum(fails([one], [other]) for one, other in pairs)},
        "one_against_ten": _alarms([fails(runs[:10], runs[10:]) for runs in drawn]),
        "five_against_five": _alarms([fails(runs[:SIDE], runs[SIDE : 2 * SIDE]) for runs in drawn]),
        "fives_in_order": {"of": len(in_order), "false_alarms": sum(fails(one, other) for one, other in in_order)},
        "found": {
            f"{slower:g}": {
                "five": sum(fails(runs[:SIDE], own) for runs in drawn),
                "one": sum(fails(runs[:10], [own[k % len(own)]]) for k, runs in enumerate(drawn)),
                "of": len(drawn),
            }
            for slower, own in slowed.items()
        },
    }


def _alarms(failed: Sequence[bool]) -> dict[str, Any]:
    """Draws share runs: ``at_most`` is the bound as if they did not."""
    return {"of": len(failed), "false_alarms": sum(failed), "at_most": at_most(sum(failed), len(failed))}


def measure(folder: Path, without: int = 0) -> dict[str, Any]:
    """The record's values. Raises InputError where a run is missing."""
    runs: dict[float, list[RunRecord]] = {}
    loads = []
    for slower, number in schedule():
        one = folder / name_of(slower, number)
        directory = ended(one)
        if directory is None:
            raise InputError("no run that ended well", where=str(one), hint="run it first")
        runs.setdefault(slower, []).append(read_run(directory))
        loads.append(read_json(one / "machine.json")["mean"])
    unchanged = runs.pop(0.0)
    makespans_s = [float(one.summary["makespan_s"]) for one in unchanged]
    return {
        "runs": len(unchanged),
        "slowed": {f"{slower:g}": len(own) for slower, own in runs.items()},
        "makespan_s": [round(one, 2) for one in makespans_s],
        "load_average": {"least": min(loads), "most": max(loads)},
        **measured(unchanged, dict(runs)),
        **({"without_first": {"runs": without, **measured(unchanged[without:], dict(runs))}} if without else {}),
    }


@in_one_line("check_real")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.check_real", description=__doc__)
    parser.add_argument("what", choices=("run", "measure"))
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="run directories")
    parser.add_argument("--without", type=int, default=0, metavar="N", help="also without the first N unchanged runs")
    parser.add_argument("-o", "--out", type=Path, help="the record [standard output]")
    given = parser.parse_args(arguments)
    if given.what == "run":
        run(given.folder)
    else:
        commands = [f"python -m studies.check_real {what} runs/check-real" for what in ("run", "measure")]
        if given.without:
            commands[1] += f" --without {given.without}"
        write(given.out, "; ".join(commands), measure(given.folder, given.without))
    return 0


if __name__ == "__main__":
    sys.exit(main())
