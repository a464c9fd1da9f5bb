"""Values of an experiment's runs over their seeds, under the keys of the committed records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.report.data import Run
from harness.report.gallery.spread import spread

#: (seed, index of the folder): real runs may be repeated with one seed.
Repeat = tuple[int, int]
Runs = dict[str, dict[Repeat, tuple[Path, dict[str, Any], dict[str, Any]]]]
#: Values of a summary that depend on the machine, or mean nothing alone.
LEFT_OUT = ("wall_s", "events", "finished")
#: LTYARN's naive hierarchy, during whose longest wait the tasks of the others are counted.
NAIVE = "ltyarn-naive"


def values_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the values of runs of one experiment in the form of that experiment's record.

    These are every number of the summaries over seeds, by variant; for H-LTRF also the tasks of a queue that would
    starve.
    """
    by_variant: Runs = {}
    for number, run in enumerate(runs):
        name = str(run.info["variant"]).removesuffix(f",seed={run.seed}")
        by_variant.setdefault(name, {})[run.seed or 0, number] = (run.path, dict(run.info), dict(run.summary))
    summaries = {name: [summary for _, _, summary in own.values()] for name, own in by_variant.items()}
    values: dict[str, Any] = {"variants": {name: numbers_of(own) for name, own in summaries.items()}}
    if NAIVE in by_variant and any("root.Group1.TPC-H" in one.get("queues", {}) for one in summaries[NAIVE]):
        quanta = {name: own for name, own in by_variant.items() if name.startswith("ltyarn")}
        values["running_tasks_of_TPC-H"] = running_tasks(_by_seed(quanta), "TPC-H", NAIVE)
    return values


def _by_seed(runs: Runs) -> Runs:
    """Return the runs of seeds that every variant has, so that they pair with the naive policy's."""
    seeds = set.intersection(*({seed for seed, _ in own} for own in runs.values()))
    return {name: {(seed, 0): run for (seed, _), run in own.items() if seed in seeds} for name, own in runs.items()}


def running_tasks(runs: Runs, queue: str, naive_run: str = "naive-hltrf") -> dict[str, Any]:
    """Return a leaf's running tasks while it starves under the naive policy (LTYARN Figs. 10c, 11b): mean, least, most.

    The span is the naive run's longest wait of that queue. Each is a mean over seeds; if there are several, ``ci95`` is
    half of the 95 % interval of the first.
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    for repeat, (_, _, naive) in runs[naive_run].items():
        leaf = next(name for name in naive["queues"] if name.rpartition(".")[2] == queue)
        end_s = naive["queues"][leaf]["max_wait_at_s"]
        begin_s = end_s - naive["queues"][leaf]["max_wait_s"]
        for name, own in runs.items():
            table = pd.read_parquet(own[repeat][0] / "allocations.parquet", columns=["time_s", "queue", "running"])
            inside = table[(table["queue"] == leaf) & table["time_s"].between(begin_s, end_s)]["running"]
            found.setdefault(name, []).append((float(inside.mean()), float(inside.min()), float(inside.max())))
    made: dict[str, Any] = {}
    for name, values in found.items():
        mean, least, most = (spread(column) for column in zip(*values, strict=True))
        made[name] = {**mean, "min": least["mean"], "max": most["mean"]}
    return made


def numbers_of(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return numbers as their spread (or the number if it never varies), and mappings likewise."""
    found: dict[str, Any] = {}
    for key, first in summaries[0].items():
        values = [one.get(key) for one in summaries]
        if isinstance(first, Mapping):
            found[key] = numbers_of([value or {} for value in values])
        elif key not in LEFT_OUT and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            figures = spread([float(v) for v in values if v is not None])
            found[key] = figures["mean"] if figures["min"] == figures["max"] else figures
    return found
