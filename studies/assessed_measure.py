"""What `studies.assessed` makes of its runs: predictions against what happened, runs under control in their bands."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.experiments.resolve import Variant
from harness.predict.playing import PHASES, simulate_phase
from harness.predict.replay import write_experiment
from harness.predict.verdict import MOST_ERROR, NOTICEABLE
from harness.results.summary import jobs_table
from harness.traces.recorded import read_trace
from studies.assessed_loads import LOADS, Load
from studies.real_runs import ended

#: Above this load average a run counts as taken on a busy machine.
BUSY = 4.0
_DIGITS = 4


def measure(folder: Path, of: Mapping[str, Load] = LOADS) -> dict[str, Any]:
    """All loads of a folder. Raises InputError where a run is missing."""
    loads = {name: _load(folder, name, load) for name, load in of.items()}
    controlled = {
        run.name: in_band(directory)
        for run in sorted(folder.glob("*-recommended-*"))
        if run.is_dir() and (directory := ended(run)) is not None
    }
    return {
        "loads": loads,
        **counted(loads, of),
        "verdicts_right": sum(load["verdict"] == load["expected"] for load in loads.values()),
        "under_control": controlled,
        **held(controlled),
    }


def held(controlled: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """How much of the runs under control is in its band. ``with_exact``: of the runs that were simulated with exact
    figures, too, how much is inside with those of an RM's caches, and how much with exact ones."""

    def count(runs: list[Mapping[str, Any]]) -> dict[str, int]:
        return {
            "jobs_inside": sum(one["jobs_inside"] for one in runs),
            "jobs": sum(one["jobs"] for one in runs),
            "queues_inside": sum(row["inside"] for one in runs for row in one["queues"].values()),
            "queues_held": sum(len(one["queues"]) for one in runs),
        }

    twice = [one for one in controlled.values() if "exact" in one]
    exact = {f"exact_{key}": sum(one["exact"][key] for one in twice) for key in ("jobs_inside", "queues_inside")}
    every = count(list(controlled.values()))
    chance = {
        what: by_chance([one["further"][f"{what}_inside"] for one in controlled.values()], every[f"{what}_inside"])
        for what in ("jobs", "queues")
    }
    return {**every, "by_chance": chance, "with_exact": {"runs": len(twice), **count(twice), **exact}}


def by_chance(further: Sequence[Sequence[int]], inside: int) -> dict[str, float]:
    """How many a perfect model would hold. ``further``: run by run, of each phase how many lie in the others' band.

    The jobs of one run go together, so a run is one draw: of its phases any, each alike likely. Of the sum over all
    runs: ``expected``, ``least`` (fewer have a chance of at most 5 %), and ``chance`` of as few as ``inside`` or fewer.
    """
    sums = np.ones(1)
    for counts in further:
        one = np.bincount(np.asarray(counts, dtype=np.int64))
        sums = np.convolve(sums, one / one.sum())
    upto = np.cumsum(sums)
    return {
        "expected": round(float(np.arange(len(sums)) @ sums), 1),
        "least": int(np.searchsorted(upto, 0.05, side="right")),
        "chance": round(float(upto[min(inside, len(upto) - 1)]), _DIGITS),
    }


def counted(loads: Mapping[str, Mapping[str, Any]], of: Mapping[str, Load]) -> dict[str, int]:
    """How many predictions were made, and were right. Who answers *unsure* predicts nothing: that is a caution.

    ``cautions``: loads; ``cautions_unchanged``: those of them that stayed as they were recorded, of ``unchanged``.
    """
    cautions = [name for name, load in loads.items() if load["verdict"] == "unsure"]
    judged = [row for name, load in loads.items() if name not in cautions for row in load["queues"].values()]
    return {
        "directions_right": sum(row["direction_right"] for row in judged),
        "within": sum(row["within"] for row in judged),
        "queues": len(judged),
        "cautions": len(cautions),
        "cautions_unchanged": sum(not of[name].after for name in cautions),
        "unchanged": sum(not of[name].after for name in loads),
        "cautioned_queues": sum(len(loads[name]["queues"]) for name in cautions),
        "cautioned_wrong": sum(
            not row["direction_right"] for name in cautions for row in loads[name]["queues"].values()
        ),
    }


def _load(folder: Path, name: str, load: Load) -> dict[str, Any]:
    changed = bool(load.after)
    said = read_json(folder / f"{name}-assess" / "assess.json")
    recorded = _means(folder / f"{name}-fair")
    before = _means(folder / f"{name}-fair-after") if changed else recorded
    runs = [_means(path) for path in sorted(folder.glob(f"{name}-recommended-*")) if ended(path) is not None]
    if not runs:
        raise InputError("no run under the recommended policy", where=f"{folder}/{name}", hint="run it first")
    # Without a recommendation: what it expected of the policy that ran to see, where it tried that.
    names = (said["recommended"].get("name"), "ltrf@outside", "fair")
    best = next(said["policies"][one] for one in names if one in said["policies"])
    queues = {}
    for queue, row in best["queues"].items():
        queues[queue] = judged(row, before[queue], [run[queue] for run in runs], changed=changed)
    return {
        "why": load.why,
        "expected": load.expected,
        "verdict": said["verdict"],
        "recommended": said["recommended"].get("name"),
        "reproduction_error": said["reproduction_error"],
        "lines": said["lines"],
        "runs": len(runs),
        "machine": {run.name: _machine(run) for run in sorted(folder.glob(f"{name}-*")) if ended(run) is not None},
        "recorded_s": recorded,
        "queues": queues,
    }


def judged(row: Mapping[str, Any], before_s: float, took_s: Sequence[float], *, changed: bool) -> dict[str, Any]:
    """One queue's prediction against what happened. ``row``: of `assess` (``mean_completion_s``, ``change`` and bands).

    ``before_s``: mean completion under `fair` of the load as it was when the recommended policy ran; ``took_s``: of
    each run under that. Where the load changed since the recording, the change is what was predicted, not the time: it
    is applied to ``before_s``. The direction is right where both changes have one sign, or both are below what is worth
    a word (`NOTICEABLE`). ``within``: the mean of the runs is at most 15 % off, or by what two of them differ.
    """
    mean_s = sum(took_s) / len(took_s)
    change = mean_s / before_s - 1.0
    predicted_s = before_s * (1.0 + row["change"]) if changed else row["mean_completion_s"]
    off = predicted_s / mean_s - 1.0
    apart = (max(took_s) - min(took_s)) / mean_s
    small = abs(row["change"]) < NOTICEABLE and abs(change) < NOTICEABLE
    return {
        "before_s": round(before_s, 2),
        "predicted_s": round(predicted_s, 2),
        "took_s": [round(one, 2) for one in took_s],
        "predicted_change": round(row["change"], _DIGITS),
        "predicted_change_band": [round(one, _DIGITS) for one in row["change_band"]],
        "change": round(change, _DIGITS),
        "off": round(off, _DIGITS),
        "runs_apart": round(apart, _DIGITS),
        "direction_right": bool(small or row["change"] * change > 0),
        "within": bool(abs(off) <= max(MOST_ERROR, apart)),
    }


def _means(run: Path) -> dict[str, float]:
    """Mean completion time by queue of a real run, seconds."""
    directory = ended(run)
    if directory is None:
        raise InputError("no run that ended well", where=str(run), hint="run it first")
    table = pd.read_parquet(directory / "jobs.parquet")
    means = table.groupby("queue", observed=True)["completion_s"].mean()
    return {str(queue): round(float(value), 2) for queue, value in means.items()}


def _machine(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(run / "machine.json")
    return {**found, "busy": found["mean"] > BUSY}


def in_band(directory: Path, phases: int = PHASES) -> dict[str, Any]:
    """A real run under control, simulated by its own trace under its own policy in many phases: what lies inside.

    By job and by queue (mean completion): ``took_s``, the band's ends, and ``inside``. Of twenty phases' bands a
    further phase lies inside with 19 in 21. ``further``: of each phase, and one more, how many of its jobs and queues
    are in the band of the others. ``exact``: the same if the controller saw exact figures, not those that an
    RM's caches show.
    """
    run = read_json(directory / "run.json")
    # Its sampler asks the RM for applications, too.
    policy, asked_s = run["policy"], float(run.get("experiment", {}).get("sample_s", 0.0))
    table = pd.read_parquet(directory / "jobs.parquet").set_index("job")
    variant = Variant("own", policy["name"], "outside", policy["settings"], 0, policy.get("period_s", 5.0))
    with tempfile.TemporaryDirectory() as work:
        experiment = write_experiment(read_trace(directory / "trace.jsonl"), Path(work), sample_s=1.0)
        played, exact = (
            [
                jobs_table(simulate_phase(str(experiment), variant, seed, asked_s=asked), {}).set_index("job")
                for seed in range(1, phases + (2 if asked == asked_s else 1))
            ]
            for asked in (asked_s, None)
        )
    further = _further(table, played)
    del played[phases:]
    jobs, queues = _inside(table, played)
    exact_jobs, exact_queues = _inside(table, exact)
    late = {queue: _late(table, played, queue) for queue in queues}
    return {
        "jobs": len(jobs),
        "jobs_inside": sum(one["inside"] for one in jobs.values()),
        "most_outside": max(one["beyond"] for one in jobs.values()),
        "further": further,
        "exact": {
            "jobs_inside": sum(one["inside"] for one in exact_jobs.values()),
            "most_outside": max(one["beyond"] for one in exact_jobs.values()),
            "queues_inside": sum(one["inside"] for one in exact_queues.values()),
        },
        "queues": {queue: {**one, **late[queue]} for queue, one in queues.items()},
        "by_job": jobs,
    }


def _inside(table: pd.DataFrame, played: Sequence[pd.DataFrame]) -> tuple[dict[str, Any], dict[str, Any]]:
    """By job and by queue: what it took, and the band."""
    times = pd.DataFrame({seed: one["completion_s"] for seed, one in enumerate(played)})
    took = {str(job): float(value) for job, value in table["completion_s"].items()}
    jobs = {str(job): _held(took[str(job)], list(row)) for job, row in times.iterrows()}
    queues = {
        queue: _held(float(own["completion_s"].mean()), list(times.loc[own.index].mean()))
        for queue, own in table.groupby(table["queue"].astype(str))
    }
    return jobs, queues


def _further(table: pd.DataFrame, played: Sequence[pd.DataFrame]) -> dict[str, list[int]]:
    """Each phase held in the band of the others, as a real run is."""
    jobs, queues = [], []
    for at, one in enumerate(played):
        others = [*played[:at], *played[at + 1 :]]
        found = _inside(table.assign(completion_s=one["completion_s"].reindex(table.index)), others)
        jobs.append(sum(row["inside"] for row in found[0].values()))
        queues.append(sum(row["inside"] for row in found[1].values()))
    return {"jobs_inside": jobs, "queues_inside": queues}


def _held(took_s: float, phases_s: Sequence[float]) -> dict[str, Any]:
    low, high = min(phases_s), max(phases_s)
    beyond = max(low - took_s, took_s - high, 0.0) / took_s
    return {
        "took_s": round(took_s, 2),
        "band_s": [round(low, 2), round(high, 2)],
        "mean_s": round(sum(phases_s) / len(phases_s), 2),
        "inside": beyond == 0.0,
        "beyond": round(beyond, _DIGITS),
    }


def _late(table: pd.DataFrame, played: Sequence[pd.DataFrame], queue: str) -> dict[str, float]:
    """Mean seconds from submission to the master's start, real and simulated."""
    own = table[table["queue"].astype(str) == queue]
    simulated = pd.concat([one.loc[own.index] for one in played])
    return {
        "started_after_s": round(float((own["started_s"] - own["submitted_s"]).mean()), 2),
        "simulated_started_after_s": round(float((simulated["started_s"] - simulated["submitted_s"]).mean()), 2),
    }
