"""What steering costs in killed work where preemption is on: left alone, steered without kills, and steered freely.

    python -m studies.preemption_budget -o docs/records/preemption-budget.json

The workloads of `experiments/outside-capacity.yaml` on 118 containers for 50 minutes, simulated under LTRF from outside
each 5 s, with tasks of 20 and of 40 s (preemption waits 15 s before it kills). `counted on P`: the controller keeps
shares near what is in use, and counts on the part P of what is expected to end in time.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.control.virtual import simulate_policy
from harness.experiments.resolve import jobs_of, load_experiment, variants_of
from harness.experiments.simulated import setup_of
from harness.model.jobs import JobSpec
from harness.model.preemption import PreemptionRule
from harness.results.summary import jobs_table, summarise
from studies.result import in_one_line, write

#: How much longer tasks are than those of the workloads (20 s), and how many fewer.
LONGER = (1.0, 2.0)
#: How shares are steered -> the rule of the controller; `left`: by nobody.
WAYS: dict[str, PreemptionRule | None] = {
    "left": None,
    **{f"counted on {part:g}": PreemptionRule(counted_on=part) for part in (0.0, 0.25, 0.5, 1.0)},
    "freely": None,
}


def longer(job: JobSpec, factor: float) -> JobSpec:
    """The job with longer tasks, and as many fewer of them."""
    stages = tuple(
        replace(
            stage,
            tasks=max(round(stage.tasks / factor), 1),
            duration=replace(stage.duration, mu=stage.duration.mu + math.log(factor)),
        )
        for stage in job.stages
    )
    return replace(job, stages=stages)


def run(way: str, factor: float, seed: int) -> dict[str, Any]:
    """One run's figures."""
    loaded = load_experiment("outside-capacity")
    mode = "inside" if way == "left" else "outside"
    chosen = [v for v in variants_of(loaded) if v.scheduler == "capacity" and v.mode == mode]
    variant = replace(chosen[0], seed=seed)
    jobs = [longer(job, factor) for job in jobs_of(loaded, seed)[0]]
    setup = setup_of(loaded, variant, jobs)
    conf = {**setup.conf, "yarn.resourcemanager.scheduler.monitor.enable": "true"}
    result = simulate_policy(replace(setup, conf=conf, period_s=5.0, preemption=WAYS[way]))
    summary = summarise(result, jobs_table(result, {}), list(loaded.leaves))
    killed = asdict(result.preempted) if result.preempted is not None else {}
    return {"loss": summary["sharing_loss_integral"], **killed}


@in_one_line("preemption_budget")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.preemption_budget", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    values: dict[str, Any] = {}
    for factor in LONGER:
        rows = {way: [run(way, factor, seed) for seed in range(1, given.seeds + 1)] for way in WAYS}
        values[f"tasks of {20 * factor:g} s"] = {
            way: {name: [row[name] for row in found] for name in ("loss", "containers", "memory_mb_s")}
            for way, found in rows.items()
        }
    write(given.out, "python -m studies.preemption_budget -o docs/records/preemption-budget.json", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
