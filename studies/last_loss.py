"""When the last sharing loss comes, and when it can come at the earliest: the record behind docs/decisions/horizon.md.

    python -m studies.last_loss -o docs/records/last-loss.json

The load of experiments/outside.yaml (tasks of 20 s) or outside-60s.yaml. Per seed and control period: LTRF decided at
every allocation, LTRF from outside with and without ``reserve_s=auto``, and, queue by queue, a controller that puts
this queue before all others from the first tick on at which anything is known: the most that an order of the queues
can do for it from then on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.control.virtual import simulate_policy
from harness.experiments.resolve import LoadedExperiment, Variant, jobs_of, load_experiment
from harness.experiments.simulated import setup_of
from harness.model.plan import WEIGHT_MAX, Mode, Plan
from harness.model.snapshot import Snapshot
from harness.policies.base import LedgerView, Policy
from harness.policies.registry import make_policy
from harness.results.metrics import fairness_degree, integral, last_loss_s, sharing_benefit_and_loss
from studies.result import write

PERIODS_S = (1.0, 15.0, 60.0)
#: Where putting one queue first is tried: at one second nothing is left to explain.
FIRST_PERIODS_S = (15.0, 60.0)
SEEDS = tuple(range(1, 11))
_DIGITS = 4


class First(Policy):
    """One leaf before all others, from the second tick on: at the first nothing has been seen yet."""

    name = "first"

    def __init__(self, leaf: str) -> None:
        super().__init__()
        self.leaf = leaf

    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        if snapshot.time_s <= 0:
            return Plan(weights={})
        path = self.leaf
        above = {path} | {path[:i] for i, char in enumerate(path) if char == "."}
        return Plan(
            weights={
                name: WEIGHT_MAX if name in above else 1.0
                for name, queue in snapshot.queues.items()
                if queue.parent is not None
            }
        )


def measure(experiment: LoadedExperiment, seed: int, mode: Mode, policy: Policy, period_s: float) -> dict[str, Any]:
    """One run: loss integral, last loss, and each leaf's own last loss, in seconds."""
    variant = Variant("measured", "ltrf", mode, {}, seed, period_s)
    setup = setup_of(experiment, variant, list(jobs_of(experiment, seed)[0]))
    samples = simulate_policy(replace(setup, policy=policy)).samples
    columns = [samples.queues.index(leaf) for leaf in experiment.leaves]
    rho = fairness_degree(samples.accumulated[:, columns], samples.due[:, columns])
    _, loss = sharing_benefit_and_loss(rho)
    return {
        "loss_integral": round(-integral(samples.time_s, loss), _DIGITS),
        "last_loss_s": last_loss_s(samples.time_s, loss),
        "queues": {
            leaf.removeprefix("root."): last_loss_s(samples.time_s, rho[:, i] - 1.0)
            for i, leaf in enumerate(experiment.leaves)
        },
    }


def of_seed(experiment: LoadedExperiment, seed: int) -> dict[str, dict[str, Any]]:
    """All rules of one seed, by name."""
    found = {"inside": measure(experiment, seed, "inside", make_policy("ltrf"), 1.0)}
    for period_s in PERIODS_S:
        for reserve in ("0", "auto"):
            policy = make_policy("ltrf", {"reserve_s": reserve})
            name = f"outside, {period_s:g} s, reserve {reserve}"
            found[name] = measure(experiment, seed, "outside", policy, period_s)
    for period_s in FIRST_PERIODS_S:
        firsts = {}
        for leaf in experiment.leaves:
            own = measure(experiment, seed, "outside", First(leaf), period_s)["queues"]
            firsts[leaf.removeprefix("root.")] = own[leaf.removeprefix("root.")]
        found[f"first, {period_s:g} s"] = {"last_loss_s": max(firsts.values()), "queues": firsts}
    return found


def values(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The record's values: each rule's figures seed by seed, and over LTRF inside."""
    rules: dict[str, Any] = {}
    seeds = list(by_seed)
    inside = [by_seed[seed]["inside"] for seed in seeds]
    late = sum(one["last_loss_s"] for one in inside)
    for name in by_seed[seeds[0]]:
        ours = [by_seed[seed][name] for seed in seeds]
        rule: dict[str, Any] = {
            "last_loss_s": [one["last_loss_s"] for one in ours],
            "last_loss_sum_s": sum(one["last_loss_s"] for one in ours),
            "last_loss_sum_over_inside": round(sum(one["last_loss_s"] for one in ours) / late, _DIGITS),
            "queues_last_loss_s": {queue: [one["queues"][queue] for one in ours] for queue in ours[0]["queues"]},
        }
        if "loss_integral" in ours[0]:
            ratios = [one["loss_integral"] / ref["loss_integral"] for one, ref in zip(ours, inside, strict=True)]
            rule["loss_integral"] = [one["loss_integral"] for one in ours]
            rule["loss_integral_over_inside"] = round(statistics.fmean(ratios), _DIGITS)
            rule["loss_integral_sum_over_inside"] = round(
                sum(one["loss_integral"] for one in ours) / sum(ref["loss_integral"] for ref in inside), _DIGITS
            )
        rules[name] = rule
    return {"seeds": seeds, "rules": rules}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.last_loss", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--experiment", choices=("outside", "outside-60s"), default="outside")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    given = parser.parse_args(arguments)
    experiment = load_experiment(given.experiment)
    by_seed = {}
    for seed in given.seeds:
        by_seed[seed] = of_seed(experiment, seed)
        print(f"seed {seed}", file=sys.stderr, flush=True)
    words = ["" if given.experiment == "outside" else f" --experiment {given.experiment}"]
    words.append("" if tuple(given.seeds) == SEEDS else f" --seeds {' '.join(map(str, given.seeds))}")
    command = f"python -m studies.last_loss{''.join(words)} -o docs/records/{given.out.name}"
    found = {"experiment": given.experiment, **values(by_seed)}
    write(given.out, command, found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
