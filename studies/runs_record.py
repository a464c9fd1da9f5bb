"""Committed records of experiments: folders of run directories as one small JSON file, for docs/figures.md.

    yarnfair run outside --no-report --out runs/outside
    python -m studies.runs_record runs/outside --command "yarnfair run outside ..." -o docs/records/outside.json

A record says which command made it, with which version, and holds the values; nothing is measured here.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.model.data import data_path
from harness.paper.rates import play_rates, read_rates
from harness.paper.reader import read_top
from harness.paper.steps import read_scenario
from harness.paper.units import allocate
from harness.policies import make_policy
from harness.results.catalogue import flat
from harness.results.metrics import fairness_degree, integral, sharing_benefit_and_loss
from harness.results.store import versions
from studies.record_file import record_main

#: Measures of a summary that a record keeps, over seeds.
MEASURES = (
    "makespan_s",
    "sharing_benefit",
    "sharing_loss",
    "sharing_loss_integral",
    "least_loss_integral",
    "last_loss_s",
    "last_unavoidable_loss_s",
)
QUEUE_MEASURES = (
    "fairness_degree",
    "mean_completion_s",
    "speedup_over_static",
    "workload_speedup_over_static",
    "max_wait_s",
)
#: What ratios are taken to, when it is among the runs.
REFERENCES = ("ltrf", "fair", "hltrf,t_wait=5", "naive-hltrf")
DIGITS = 4

#: (seed, which of the folders): real runs may be repeated with one seed.
Repeat = tuple[int, int]
Runs = dict[str, dict[Repeat, tuple[Path, dict[str, Any], dict[str, Any]]]]


def collect(*folders: Path) -> Runs:
    """Finished runs of folders: variant without its seed -> repeat -> (directory, run.json, summary.json).

    Raises InputError when there is none, one of them did not end well, or their experiments have different names.
    """
    runs: Runs = {}
    names = set()
    for number, path in ((n, path) for n, folder in enumerate(folders) for path in sorted(folder.glob("*/run.json"))):
        info = read_json(path)
        if info.get("exit") != 0:
            raise InputError(
                f"the run did not end well (exit {info.get('exit')})", where=str(path), mend="run it again"
            )
        seed = int(info["seed"])
        name = str(info["variant"]).removesuffix(f",seed={seed}")
        names.add(info["experiment"]["experiment"])
        runs.setdefault(name, {})[seed, number] = (path.parent, info, read_json(path.parent / "summary.json"))
    where = ", ".join(str(folder) for folder in folders)
    if not runs:
        raise InputError("no run directories", where=where, mend="run an experiment with --out first")
    if len(names) > 1:
        raise InputError(f"runs of different experiments: {', '.join(sorted(names))}", where=where, mend="give one's")
    return runs


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, least and greatest of some values; with several also the standard error of the mean."""
    found = {
        "mean": round(statistics.fmean(values), DIGITS),
        "min": round(min(values), DIGITS),
        "max": round(max(values), DIGITS),
    }
    if len(values) > 1:
        found["se"] = round(statistics.stdev(values) / len(values) ** 0.5, DIGITS)
    return found


def _of(runs: Mapping[Repeat, tuple[Path, dict[str, Any], dict[str, Any]]], get: Callable[[Any], Any]) -> Any:
    values = [get(summary) for _, _, summary in runs.values()]
    return spread([float(value) for value in values]) if all(value is not None for value in values) else None


def _queue_figure(queue: str, key: str, summary: Mapping[str, Any]) -> Any:
    return summary["queues"][queue].get(key)


def variant_values(runs: Runs, name: str) -> dict[str, Any]:
    """One variant's figures over its seeds, with ratios to each reference that is among the runs (seed by seed)."""
    own = runs[name]
    summary = next(iter(own.values()))[2]
    values: dict[str, Any] = {key: _of(own, methodcaller("get", key)) for key in MEASURES}
    values["memory_used"] = _of(own, lambda s: s["utilisation"]["memory"])
    values["queues"] = {
        queue: {key: _of(own, partial(_queue_figure, queue, key)) for key in QUEUE_MEASURES}
        for queue in summary["queues"]
    }
    values["longest_wait_s"] = _of(own, lambda s: max(queue["max_wait_s"] for queue in s["queues"].values()))
    info = next(iter(own.values()))[1]
    period_s = info["policy"].get("period_s", 0.0)
    t_wait = info["policy"]["settings"].get("t_wait")
    if t_wait is not None:
        values["wait_beyond_bound_s"] = _of(own, lambda s: _beyond(s, float(t_wait), period_s))
    for reference in REFERENCES:
        if reference in runs and reference != name and set(own) == set(runs[reference]):
            for key, short in (("sharing_loss_integral", "loss"), ("last_loss_s", "last_loss")):
                pairs = [(own[repeat][2][key], runs[reference][repeat][2][key]) for repeat in own]
                if all(below > 0 for _, below in pairs):
                    values[f"{short}_over_{reference}"] = spread([above / below for above, below in pairs])
                    ours, theirs = (sum(column) for column in zip(*pairs, strict=True))
                    values[f"{short}_sum_over_{reference}"] = round(ours / theirs, DIGITS)
    return values


def all_values(runs: Runs, name: str) -> dict[str, Any]:
    """Every number of one variant's summaries over its seeds, for kinds of experiments with measures of their own."""
    figures = [flat(summary) for _, _, summary in runs[name].values()]
    shared = [key for key in figures[0] if all(key in other for other in figures) and key.metric.deterministic]
    return {key.text(): _of(runs[name], lambda summary, key=key: flat(summary)[key]) for key in shared}  # type: ignore[misc]


def _beyond(summary: Mapping[str, Any], t_wait_s: float, period_s: float) -> float:
    """The greatest excess of a leaf's longest wait over T_wait + period + mean time between container ends in its
    parent's subtree (negative: within the bound)."""
    ends = summary["mean_between_ends_s"]
    return max(
        float(queue["max_wait_s"]) - t_wait_s - period_s - float(ends.get(name.rpartition(".")[0], 0.0))
        for name, queue in summary["queues"].items()
    )


def running_tasks(runs: Runs, queue: str) -> dict[str, Any]:
    """Running tasks of a leaf while it starves under the naive approach (LTYARN Figs. 10c, 11b): mean, least, most.

    The span is the naive run's longest wait of that queue; seeds are averaged.
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    for repeat, (_, _, naive) in runs["naive-hltrf"].items():
        leaf = next(name for name in naive["queues"] if name.rpartition(".")[2] == queue)
        end_s = naive["queues"][leaf]["max_wait_at_s"]
        begin_s = end_s - naive["queues"][leaf]["max_wait_s"]
        for name, own in runs.items():
            table = pd.read_parquet(own[repeat][0] / "allocations.parquet", columns=["time_s", "queue", "running"])
            inside = table[(table["queue"] == leaf) & table["time_s"].between(begin_s, end_s)]["running"]
            found.setdefault(name, []).append((float(inside.mean()), float(inside.min()), float(inside.max())))
    return {
        name: {
            key: round(statistics.fmean(column), DIGITS)
            for key, column in zip(("mean", "min", "max"), zip(*values, strict=True), strict=True)
        }
        for name, values in found.items()
    }


def falls(runs: Runs, until_s: float = 3600.0) -> dict[str, Any]:
    """How unsteady the counted accumulated resources are (thesis Fig. 5.7), by variant and leaf: their largest fall
    within 11 s and the sum of all falls from sample to sample, in seconds of the whole cluster, in the first hour."""
    found: dict[str, Any] = {}
    for name, own in runs.items():
        by_leaf: dict[str, tuple[list[float], list[float]]] = {}
        for path, info, summary in own.values():
            table = pd.read_parquet(path / "allocations.parquet", columns=["time_s", "queue", "counted_mb_s"])
            table = table[table["time_s"] <= until_s]
            for leaf in summary["queues"]:
                curve = table[table["queue"] == leaf]["counted_mb_s"].to_numpy() / info["capacity_mb"]
                largest, total = by_leaf.setdefault(leaf, ([], []))
                largest.append(float(max((curve[:-11] - curve[11:]).max(), 0.0)))
                total.append(abs(float(np.minimum(np.diff(curve), 0).sum())))
        found[name] = {
            leaf: {"largest_fall_in_11_s": spread(largest), "sum_of_falls": spread(total)}
            for leaf, (largest, total) in by_leaf.items()
        }
    return found


def early_loss(runs: Runs, until_s: float = 100.0) -> dict[str, Any]:
    """The sharing loss integral of the first `until_s` seconds, when the cluster fills: what is left of the whole is
    what a policy loses later."""
    found: dict[str, Any] = {}
    for name, own in runs.items():
        losses = []
        for path, _, summary in own.values():
            table = pd.read_parquet(
                path / "allocations.parquet", columns=["time_s", "queue", "accumulated_mb_s", "due_mb_s"]
            )
            table = table[table["queue"].isin(summary["queues"]) & (table["time_s"] <= until_s)]
            wide = table.pivot(index="time_s", columns="queue", values=["accumulated_mb_s", "due_mb_s"])
            rho = fairness_degree(wide["accumulated_mb_s"].to_numpy(), wide["due_mb_s"].to_numpy())
            losses.append(integral(wide.index.to_numpy(), -sharing_benefit_and_loss(rho)[1]))
        found[name] = spread(losses)
    return found


def record(folders: Sequence[Path], command: str) -> dict[str, Any]:
    """The record of folders of run directories, each of which repeats the same experiment."""
    runs = collect(*folders)
    _, info, summary = next(iter(next(iter(runs.values())).values()))
    hashes = {own["hash"] for repeats in runs.values() for _, own, _ in repeats.values()}
    values_of = variant_values if "sharing_benefit" in summary else all_values
    values: dict[str, Any] = {
        "experiment": info["experiment"]["experiment"],
        # More than one where the file was edited between runs that go together: each cluster below has its run's.
        "hash": hashes.pop() if len(hashes) == 1 else sorted(hashes),
        "seeds": sorted({seed for own in runs.values() for seed, _ in own}),
        "variants": {name: values_of(runs, name) for name in runs},
    }
    if "naive-hltrf" in runs and info["experiment"]["experiment"] == "t-wait":
        values["running_tasks_of_TPC-H"] = running_tasks(runs, "TPC-H")
    if info["experiment"]["experiment"] in ("outside", "outside-60s"):
        values["loss_integral_of_the_first_100_s"] = early_loss(runs)
    if info["experiment"]["experiment"] == "quantum":
        values["counted_in_the_first_hour"] = falls(runs)
    found: dict[str, Any] = {"command": command, "version": info["versions"]["yarnfair"], "values": values}
    if "cluster" in info:
        # A real one: what it was, which it was, and on what machine.
        found["clusters"] = {
            f"{name},seed={seed}" + (f",{folders[number].name}" if len(folders) > 1 else ""): {
                "id": own["cluster"]["id"],
                "hadoop": own["cluster"]["version"],
                "run": path.name,
                "hash": own["hash"],
            }
            for name, repeats in runs.items()
            for (seed, number), (path, own, _) in repeats.items()
        }
        found["machine"] = info.get("machine")
    return found


#: Worked examples of the papers: name, scenario in workloads/scenarios, policy, settings.
EXAMPLES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("table-1 fair", "ltyarn-table-1", "fair", {}),
    ("table-1 ltrf", "ltyarn-table-1", "ltrf", {}),
    ("thesis-table-5-1 ltrf", "thesis-table-5-1", "ltrf", {"discount": "0.5"}),
    ("fig-2 naive-hltrf", "ltyarn-fig-2", "naive-hltrf", {}),
    ("fig-2 hltrf t_wait=4", "ltyarn-fig-2", "hltrf", {"t_wait": "4"}),
)


def _rates_example(name: str) -> dict[str, Any]:
    """HotCloud 2011's two jobs on two slots of N1 and four of N2, without the single steps."""
    path = data_path("workloads", "scenarios", "progress-share.yaml")
    scenario = read_rates(*read_top(path.read_text(encoding="utf-8"), path.name))
    answer = play_rates(scenario, make_policy(name, {})).document()
    return {key: value for key, value in answer.items() if key != "steps"}


def examples() -> dict[str, Any]:
    """The papers' worked examples on paper, as ``yarnfair allocate`` answers them."""
    values: dict[str, Any] = {}
    for name, scenario, policy, settings in EXAMPLES:
        path = data_path("workloads", "scenarios", f"{scenario}.yaml")
        answer = allocate(read_scenario(path.read_text(encoding="utf-8"), path.name), make_policy(policy, settings))
        document, steps = answer.document(), answer.steps
        values[name] = {leaf: [step[leaf] for step in steps] for leaf in steps[0]}
        values[name]["totals"] = document["totals"]
        values[name]["counted"] = document["counted"]
        if scenario == "ltyarn-fig-2":
            values[name]["last step of the first wave"] = 27
            values[name]["first unit of B after step 28"] = next(
                number for number, step in enumerate(steps, start=1) if number >= 28 and step["B"] > 0
            )
    for policy in ("fair", "progress-share"):
        values[f"progress-share {policy}"] = _rates_example(policy)
    command = "python -m studies.runs_record examples -o docs/records/worked-examples.json"
    return {"command": command, "version": versions()["yarnfair"], "values": values}


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m studies.runs_record FOLDER...|examples --command TEXT -o FILE``."""

    def make(sources: list[Path], command: str) -> dict[str, Any]:
        return examples() if sources == [Path("examples")] else record(sources, command)

    return record_main("studies.runs_record", __doc__, make, arguments, many=True)


if __name__ == "__main__":
    sys.exit(main())
