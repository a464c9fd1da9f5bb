"""What a bound on the weights costs: the sharing loss integral against ``max_ratio``.

    python -m studies.bound -o docs/records/bound.json

The loads of experiments/outside.yaml (``ltrf``) and experiments/outside-hierarchy.yaml (``hltrf``, T_wait 5 s), from
outside, a control period of 15 s, weights within a ratio of the entitlements, and unbounded (``null``). Chosen is the
smallest ratio of the series from which on no loss integral is more than 10 % above the unbounded one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.files import write_json
from harness.base.stats import half_width_95
from harness.control.virtual import simulate_policy
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of, load_experiment
from harness.experiments.simulated import setup_of
from harness.policies.registry import make_policy
from harness.results.metrics import fairness_degree, integral, sharing_benefit_and_loss
from harness.results.store import versions

RATIOS: tuple[float | None, ...] = (1, 1.25, 1.5, 2, 3, 4, 8, 16, 64, None)
SEEDS = tuple(range(1, 11))
#: Name -> experiment, policy, its settings.
CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "outside": ("outside", "ltrf", {}),
    "outside-hierarchy": ("outside-hierarchy", "hltrf", {"t_wait": "5"}),
}
PERIOD_S = 15.0
WITHIN = 1.1
_DIGITS = 4


def measure(
    experiment: LoadedExperiment, policy: str, settings: Mapping[str, str], seed: int, max_ratio: float | None
) -> float:
    """The sharing loss integral of one run, seconds."""
    variant = Variant("measured", policy, "outside", dict(settings), seed, PERIOD_S)
    setup = setup_of(experiment, variant, list(jobs_of(experiment, seed)[0]))
    bounded = replace(setup, policy=make_policy(policy, settings), max_ratio=max_ratio)
    samples = simulate_policy(bounded).samples
    columns = [samples.queues.index(leaf) for leaf in experiment.leaves]
    rho = fairness_degree(samples.accumulated[:, columns], samples.due[:, columns])
    _, loss = sharing_benefit_and_loss(rho)
    return round(-integral(samples.time_s, loss), _DIGITS)


def chosen(over: Mapping[str, Mapping[str, float]]) -> float | None:
    """The smallest ratio from which on every case's loss is within `WITHIN` of the unbounded; None: no ratio is."""
    best: float | None = None
    for ratio in sorted((float(ratio) for ratio in next(iter(over.values())) if ratio != "null"), reverse=True):
        if any(ratios[f"{ratio:g}"] > WITHIN for ratios in over.values()):
            break
        best = ratio
    return best


def values(measured: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """The record's values, from case -> ratio (``null``: none) -> each seed's loss integral."""
    cases: dict[str, Any] = {}
    for case, by_ratio in measured.items():
        free = by_ratio["null"]
        cases[case] = {
            ratio: {
                "loss_integral": list(found),
                "mean": round(statistics.fmean(found), _DIGITS),
                "ci95": round(half_width_95(found), _DIGITS),
                "over_unbounded": round(sum(found) / sum(free), _DIGITS),
            }
            for ratio, found in by_ratio.items()
        }
    over = {case: {ratio: row["over_unbounded"] for ratio, row in rows.items()} for case, rows in cases.items()}
    return {"period_s": PERIOD_S, "chosen": chosen(over), "cases": cases}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.bound", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    given = parser.parse_args(arguments)
    measured: dict[str, dict[str, list[float]]] = {}
    for case, (name, policy, settings) in CASES.items():
        experiment = load_experiment(name)
        for ratio in RATIOS:
            found = [measure(experiment, policy, settings, seed, ratio) for seed in given.seeds]
            measured.setdefault(case, {})["null" if ratio is None else f"{ratio:g}"] = found
            print(f"{case}, {ratio}: {statistics.fmean(found):.1f}", file=sys.stderr, flush=True)
    seeds = "" if tuple(given.seeds) == SEEDS else f" --seeds {' '.join(map(str, given.seeds))}"
    command = f"python -m studies.bound{seeds} -o docs/records/{given.out.name}"
    document = {"seeds": given.seeds, **values(measured)}
    write_json(given.out, {"command": command, "version": versions()["yarnfair"], "values": document})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
