"""What steering costs in killed work where preemption is on: left alone, steered without kills, and steered freely.

    python -m studies.preemption_budget -o docs/records/preemption-budget.json

The workloads of `experiments/outside-capacity.yaml` for 50 minutes, simulated under LTRF from outside each 5 s, with
tasks of 20 and of 40 s (preemption waits 15 s before it kills), on 118, 40 and 16 containers. `counted on P`: the
controller keeps shares near what is in use, and counts on the part P of what is expected to end in time. On few
containers the masters of all these applications alone fill a queue's share, for good; so these are also run with at
most two applications a queue.
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
from harness.report.gallery.spread import spread
from harness.results.summary import jobs_table, summarise
from studies.result import in_one_line, write

#: How much longer tasks are than those of the workloads (20 s), and how many fewer.
LONGER = (1.0, 2.0)
#: Of the cluster, and at most so many applications of a queue run (None: as the experiment has it).
CLUSTERS: tuple[tuple[int, int | None], ...] = ((118, None), (40, None), (40, 2), (16, None), (16, 2))
#: Two of them on a node.
_A_NODE = 2
#: How shares are steered -> the rule of the controller; `left`: by nobody.
WAYS: dict[str, PreemptionRule | None] = {
    "left": None,
    **{f"counted on {part:g}": PreemptionRule(counted_on=part) for part in (0.0, 0.25, 0.5, 1.0)},
    "freely": None,
}
#: Those of the smaller clusters.
FEW_WAYS = ("left", "counted on 0.25", "freely")


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


class NotSteered(RuntimeError):
    """A controller said that it did not do what is measured."""


def run(
    way: str,
    factor: float,
    seed: int,
    *,
    containers: int = 118,
    applications: int | None = None,
    budget_mb_s: float = 0.0,
) -> dict[str, Any]:
    """Return one run's figures.

    Parameters
    ----------
    way
        How shares are steered, of `WAYS`.
    factor
        How much longer tasks are.
    seed
        Of the workloads.
    containers
        How many the cluster has room for.
    applications
        At most so many of a queue run; None: as the experiment has it.
    budget_mb_s
        How much work may be killed within an hour (`preemption_budget_mb_s` of `enforce`).

    Raises
    ------
    NotSteered
        If the controller raised an alarm.
    """
    loaded = load_experiment("outside-capacity")
    mode = "inside" if way == "left" else "outside"
    chosen = [v for v in variants_of(loaded) if v.scheduler == "capacity" and v.mode == mode]
    variant = replace(chosen[0], seed=seed)
    jobs = [longer(job, factor) for job in jobs_of(loaded, seed)[0]]
    setup = setup_of(loaded, variant, jobs)
    allocations = setup.allocations
    if applications is not None:
        limited = {
            path: replace(queue, max_running_apps=applications) if path in loaded.leaves else queue
            for path, queue in allocations.settings.items()
        }
        allocations = replace(allocations, settings=limited)
    result = simulate_policy(
        replace(
            setup,
            nodes=setup.nodes[: containers // _A_NODE],
            allocations=allocations,
            conf={**setup.conf, "yarn.resourcemanager.scheduler.monitor.enable": "true"},
            period_s=5.0,
            preemption=WAYS[way],
            preemption_budget_mb_s=budget_mb_s,
        )
    )
    for decision in result.decisions:
        if "alarm" in decision:
            raise NotSteered(f"{way}, seed {seed}, {decision['time_s']:g} s: {decision['alarm']}: {decision['text']}")
    summary = summarise(result, jobs_table(result, {}), list(loaded.leaves))
    if result.preempted is None:
        raise NotSteered(f"{way}, seed {seed}: nothing was preempted by anybody: preemption is off")
    return {"loss": summary["sharing_loss_integral"], **asdict(result.preempted)}


@in_one_line("preemption_budget")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.preemption_budget", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    values: dict[str, Any] = {}
    for containers, applications in CLUSTERS:
        ways = WAYS if containers == CLUSTERS[0][0] else FEW_WAYS
        most = "" if applications is None else f", {applications} applications a queue"
        for factor in LONGER:
            rows = {
                way: [
                    run(way, factor, seed, containers=containers, applications=applications)
                    for seed in range(1, given.seeds + 1)
                ]
                for way in ways
            }
            values[f"{containers} containers, tasks of {20 * factor:g} s{most}"] = {
                way: {
                    name: {**spread(each), "each": each}
                    for name in ("loss", "containers", "memory_mb_s")
                    if (each := [row[name] for row in found])
                }
                for way, found in rows.items()
            }
    write(given.out, "python -m studies.preemption_budget -o docs/records/preemption-budget.json", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
