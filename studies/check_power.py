"""How often `yarnfair check` cries wolf, and what it finds.

    python -m studies.check_power -o docs/records/check-power.json

Runs of experiments/papers/ltyarn/ltyarn-small.yaml in the simulator. A pair is five recorded runs and five checked
ones, all ten of different seeds; no run is in two pairs. Unchanged pairs differ in seeds alone: any failure is a false
alarm. Slowed pairs have their checked runs on nodes that take 2, 5, 10 or 20 % longer for every task, with seeds of
their own; their recorded sides are those of the first unchanged pairs. A check that fails has found it, whichever
metrics it names.

Beside it one run against ten: the ten of an unchanged pair are recorded, and the first of the next pair (or the first
slowed one) is checked. So neighbours share runs there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from harness.experiments.resolve import LoadedExperiment, jobs_of, load_experiment, variants_of
from harness.experiments.simulated import setup_of, simulate_variant
from harness.results.baseline import Baseline, record
from harness.results.check import check
from harness.results.metrics import ideal_alone_s
from harness.results.runs import RunRecord
from harness.results.summary import jobs_table, summarise
from studies.result import write

EXPERIMENT = "ltyarn-small"
POLICIES = ("fair",)
SIDE = 5
PAIRS = 1000
#: Slowed pairs of each slow-down.
SLOWED = 200
SLOWER = (0.02, 0.05, 0.10, 0.20)
#: Seeds of slowed runs begin here, for each slow-down anew: none is that of an unchanged run.
APART = 1_000_000


def simulated(experiment: LoadedExperiment, policy: str, seed: int, slower: float = 0.0) -> RunRecord:
    """One run, in memory; its nodes take ``slower`` (a part) longer for every task."""
    (variant,) = variants_of(experiment, policies=[policy], seeds=[seed])
    jobs = list(jobs_of(experiment, seed)[0])
    alone = {job.id: ideal_alone_s(job, experiment.capacity) for job in jobs}
    setup = setup_of(experiment, variant, jobs)
    setup = replace(setup, nodes=tuple(replace(node, speed=node.speed / (1 + slower)) for node in setup.nodes))
    result = simulate_variant(setup)
    summary = summarise(result, jobs_table(result, alone), list(experiment.leaves))
    name = experiment.spec.experiment
    info = {"variant": policy, "seed": seed, "backend": "sim", "experiment": name, "exit": 0, "hash": experiment.hash}
    return RunRecord(Path(f"{policy}-{seed}"), info, summary)


def fails(recorded: Sequence[RunRecord], checked: Sequence[RunRecord]) -> bool:
    """Whether the check of these runs against those fails."""
    return bool(check(checked, Baseline("recorded", record(recorded))).alarms)


def at_most(alarms: int, pairs: int) -> float:
    """The greatest rate that gives so few alarms with a probability of 5 % (Clopper and Pearson)."""
    from scipy.stats import beta

    return round(float(beta.ppf(0.95, alarms + 1, pairs - alarms)), 4)


def measured(policy: str, pairs: int = PAIRS, slowed: int = SLOWED, experiment: str = EXPERIMENT) -> dict[str, Any]:
    """False alarms and what is found, of one policy."""
    loaded = load_experiment(experiment)
    simulate = partial(simulated, loaded, policy)
    ten = [[simulate(seed) for seed in range(2 * SIDE * k + 1, 2 * SIDE * (k + 1) + 1)] for k in range(pairs)]
    five = sum(fails(runs[:SIDE], runs[SIDE:]) for runs in ten)
    one = sum(fails(runs, [after[0]]) for runs, after in zip(ten, [*ten[1:], ten[0]], strict=True))
    found: dict[str, Any] = {
        "five": {"false_alarms": five, "at_most": at_most(five, pairs), "found": {}},
        "one": {"false_alarms": one, "at_most": at_most(one, pairs), "found": {}},
    }
    for at, slower in enumerate(SLOWER, 1):
        slow = [
            [simulate(seed, slower) for seed in range(at * APART + SIDE * k, at * APART + SIDE * (k + 1))]
            for k in range(slowed)
        ]
        name = f"{slower:g}"
        found["five"]["found"][name] = sum(fails(ten[k][:SIDE], slow[k]) for k in range(slowed))
        found["one"]["found"][name] = sum(fails(ten[k], slow[k][:1]) for k in range(slowed))
    held = check(ten[0][SIDE:], Baseline("recorded", record(ten[0][:SIDE]))).held
    print(f"{policy}: {found}", file=sys.stderr, flush=True)
    return {"metrics": len(held), **found}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.check_power", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    with ProcessPoolExecutor(len(POLICIES), get_context("spawn")) as workers:
        policies = dict(zip(POLICIES, workers.map(measured, POLICIES), strict=True))
    values = {"experiment": EXPERIMENT, "side": SIDE, "pairs": PAIRS, "slowed": SLOWED, "policies": policies}
    write(given.out, f"python -m studies.check_power -o docs/records/{given.out.name}", values)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
