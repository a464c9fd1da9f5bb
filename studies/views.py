"""What of a folder's runs a committed result keeps: figures over seeds, by variant.

`shares` is for YARN's runs (the papers' measures and ratios to a reference), `summary` keeps every number of the other
kinds' summaries, and `minimum_shares` is for policies that act through minimum shares and preemption.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.report.gallery.spread import DIGITS, spread
from harness.report.gallery.values import Repeat, Runs, numbers_of
from harness.results.metrics import fairness_degree, integral, sharing_benefit_and_loss

#: Measures of a summary that is kept, over seeds.
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
#: Moments of LTYARN's Fig. 6 that its text names.
FLOW_S = (80, 118, 204, 260)
#: What the names of variants on the other scheduler end with.
CAPACITY = ",scheduler=capacity"
NONE = "fawkes-none"


def _of(runs: Mapping[Repeat, tuple[Path, dict[str, Any], dict[str, Any]]], get: Callable[[Any], Any]) -> Any:
    values = [get(summary) for _, _, summary in runs.values()]
    return spread([float(value) for value in values]) if all(value is not None for value in values) else None


def _queue_figure(queue: str, key: str, summary: Mapping[str, Any]) -> Any:
    return summary["queues"][queue].get(key)


def shares(runs: Runs, name: str) -> dict[str, Any]:
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
    for reference, shown in _references(name):
        if reference in runs and reference != name and set(own) == set(runs[reference]):
            for key, short in (("sharing_loss_integral", "loss"), ("last_loss_s", "last_loss")):
                pairs = [(own[repeat][2][key], runs[reference][repeat][2][key]) for repeat in own]
                if all(below > 0 for _, below in pairs):
                    values[f"{short}_over_{shown}"] = spread([above / below for above, below in pairs])
                    ours, theirs = (sum(column) for column in zip(*pairs, strict=True))
                    values[f"{short}_sum_over_{shown}"] = round(ours / theirs, DIGITS)
    return values


def _references(name: str) -> list[tuple[str, str]]:
    """What a variant is compared with, and how its ratios call that."""
    found = [(reference, reference) for reference in REFERENCES]
    if name.endswith(CAPACITY):
        # The same control on the Fair Scheduler, and this scheduler as it is.
        same = "fair" if name.startswith("capacity") else name.removesuffix(CAPACITY)
        found += [(same, "fair_scheduler"), (f"capacity{CAPACITY}", "capacity")]
    return found


def differences(runs: Runs, name: str, other: str) -> dict[str, Any]:
    """Figures of one variant less another's, run by run of the same seed, with the interval of the mean; in how many of
    these runs the first has less loss."""
    own, theirs = runs[name], runs[other]
    repeats = sorted(set(own) & set(theirs))
    found: dict[str, Any] = {
        key: spread([own[repeat][2][key] - theirs[repeat][2][key] for repeat in repeats])
        for key in ("sharing_loss_integral", "last_loss_s", "sharing_benefit")
    }
    losses = [
        (own[repeat][2]["sharing_loss_integral"], theirs[repeat][2]["sharing_loss_integral"]) for repeat in repeats
    ]
    return {"runs": len(repeats), **found, "less_loss": sum(above < below for above, below in losses)}


def _beyond(summary: Mapping[str, Any], t_wait_s: float, period_s: float) -> float:
    """The greatest excess of a leaf's longest wait over T_wait + period + mean time between container ends in its
    parent's subtree (negative: within the bound)."""
    ends = summary["mean_between_ends_s"]
    return max(
        float(queue["max_wait_s"]) - t_wait_s - period_s - float(ends.get(name.rpartition(".")[0], 0.0))
        for name, queue in summary["queues"].items()
    )


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


def flow(runs: Runs, until_s: float = 260.0) -> dict[str, Any]:
    """LTYARN's Fig. 6, by variant and leaf, over seeds.

    When demand exceeds the leaf's share in at least half of the seeds (5 s at least), the most that it holds, of its
    share, and its accumulated resources in seconds of the whole cluster at `FLOW_S`.
    """
    columns = ["time_s", "queue", "allocated_mb", "demand_mb", "share_mb", "accumulated_mb_s"]
    found: dict[str, Any] = {}
    for name, own in runs.items():
        leaves: dict[str, list[tuple[pd.DataFrame, float]]] = {}
        for path, info, summary in own.values():
            table = pd.read_parquet(path / "allocations.parquet", columns=columns)
            for leaf in summary["queues"]:
                rows = table[(table["queue"] == leaf) & (table["time_s"] <= until_s)].set_index("time_s")
                leaves.setdefault(leaf, []).append((rows, info["capacity_mb"]))
        found[name] = {leaf: _flow_of(seeds) for leaf, seeds in leaves.items()}
    return found


def _flow_of(seeds: Sequence[tuple[pd.DataFrame, float]]) -> dict[str, Any]:
    """One leaf's figures, of each seed's samples and the cluster's memory."""
    above = pd.concat([rows["demand_mb"] > rows["share_mb"] for rows, _ in seeds], axis=1)
    over = above.index[2 * above.sum(axis=1) >= len(seeds)].to_numpy()
    periods = np.split(over, np.flatnonzero(np.diff(over) > 1.5) + 1) if len(over) else []
    held = [rows["allocated_mb"] / rows["share_mb"] for rows, _ in seeds]
    return {
        "overloaded_s": [[float(at[0]), float(at[-1])] for at in periods if at[-1] - at[0] >= 5.0],
        "most_of_share": spread([float(own.max()) for own in held]),
        "most_at_s": spread([float(own.index.to_numpy()[own.to_numpy().argmax()]) for own in held]),
        "accumulated_s": {
            f"{at}": spread([float(rows["accumulated_mb_s"][at]) / capacity for rows, capacity in seeds])
            for at in FLOW_S
        },
    }


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


def summary(runs: Runs, name: str) -> dict[str, Any]:
    """Every number of one variant's summaries, and slowdowns and times over those under None where it is there."""
    own = runs[name]
    values = numbers_of([found for _, _, found in own.values()])
    if NONE in runs:
        pairs = [(own[seed][2], runs[NONE][seed][2]) for seed in own]
        values["mean_slowdown_below_none"] = spread(
            [1 - ours["mean_slowdown"] / theirs["mean_slowdown"] for ours, theirs in pairs]
        )
        values["makespan_below_none"] = spread(
            [1 - ours["makespan_s"] / theirs["makespan_s"] for ours, theirs in pairs]
        )
        if "fawkes-td" in runs:
            values["seeds_in_which_no_other_is_better"] = sum(
                all(own[seed][2]["mean_slowdown"] <= other[seed][2]["mean_slowdown"] for other in runs.values())
                for seed in own
            )
            values["against_td"] = against_td(own, runs["fawkes-td"])
    return values


def against_td(own: Any, td: Any) -> dict[str, Any]:
    """A policy's mean job slowdown beside TD's, seed by seed: in how many TD is better, worse or the same, how much."""
    pairs = [(own[seed][2]["mean_slowdown"], td[seed][2]["mean_slowdown"]) for seed in own]
    return {
        "td_better": sum(theirs < ours for ours, theirs in pairs),
        "td_worse": sum(theirs > ours for ours, theirs in pairs),
        "same": sum(theirs == ours for ours, theirs in pairs),
        "td_below": spread([1 - theirs / ours for ours, theirs in pairs]),
    }


def minimum_shares(path: Path) -> dict[str, Any]:
    """Of one run: the papers' metrics, how often minimum shares were rewritten and what was killed for them, and how
    far a queue that asked was below its minimum share. InputError when the run did not end well."""
    info, found = read_json(path / "run.json"), read_json(path / "summary.json")
    # A run is closed with the last one of its call; what counts is that it ended, and all its jobs with it.
    if info.get("exit") not in (0, None) or not found["finished"] or any(q["failed"] for q in found["queues"].values()):
        raise InputError(f"the run did not end well (exit {info.get('exit')})", where=str(path), hint="run it again")
    lines = (path / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    decisions = [json.loads(line) for line in lines]
    curves = pd.read_parquet(path / "allocations.parquet")
    tasks = pd.read_parquet(path / "tasks.parquet") if (path / "tasks.parquet").is_file() else None
    written = [entry for entry in decisions if entry.get("min_shares")]
    queues = {}
    for name, queue in found["queues"].items():
        own = curves[curves["queue"] == name]
        killed = tasks[(tasks["queue"] == name) & (tasks["outcome"] == "killed")] if tasks is not None else None
        queues[name] = {
            "mean_completion_s": queue["mean_completion_s"],
            "mean_slowdown": queue["mean_slowdown"],
            "overall_discrimination_s": queue.get("overall_discrimination_s"),
            "below_minimum_share": shortfall(own, written, name, found["makespan_s"]),
            "tasks_killed": len(killed) if killed is not None else None,
            "seconds_killed": float((killed["ended_s"] - killed["started_s"]).sum()) if killed is not None else None,
        }
    # Queues do not have equally many jobs: the mean over all of them besides.
    jobs = pd.read_parquet(path / "jobs.parquet")
    effects = [entry["effect_s"] for entry in written if entry.get("effect_s") is not None]
    kept: dict[str, Any] = _rounded(
        {
            "makespan_s": found["makespan_s"],
            "mean_slowdown": float(jobs["slowdown"].mean()),
            "utilisation": found["utilisation"],
            "soft_fairness": found.get("soft_fairness"),
            "theta": found.get("theta"),
            "minimum_shares_written": len(written),
            "slowest_effect_s": max(effects, default=None),
            "masters_preempted": sum(entry.get("alarm") == "preempted-master" for entry in decisions),
            "queues": queues,
        }
    )
    return kept


def shortfall(own: pd.DataFrame, written: Sequence[dict[str, Any]], queue: str, end_s: float) -> float | None:
    """Of the minimum share (MiB) in force, or of the demand where that is less, the part that a queue lacked while it
    asked: mean over time. None without minimum shares."""
    if not written:
        return None
    since = np.array([entry["time_s"] for entry in written])
    least = np.array([entry["min_shares"].get(queue, [0, 0])[0] for entry in written], dtype=np.float64)
    own = own[own["time_s"] <= end_s]
    time_s = own["time_s"].to_numpy()
    at = np.searchsorted(since, time_s, side="right") - 1
    share = np.where(at >= 0, least[np.maximum(at, 0)], 0.0)
    held = own["allocated_mb"].to_numpy(dtype=np.float64)
    due = np.minimum(share, own["demand_mb"].to_numpy(dtype=np.float64))
    span = np.append(np.diff(time_s), 0.0)
    asked = float((due * span).sum())
    return float((np.maximum(due - held, 0.0) * span).sum()) / asked if asked > 0 else 0.0


def _rounded(value: Any) -> Any:
    """Numbers with as many digits as anybody reads."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
