"""The record of runs whose policies act through minimum shares and preemption, for docs/figures-fawkes.md.

    yarnfair run fawkes-real --backend local --out runs/fawkes-real
    python -m studies.weighting_record runs/fawkes-real --command "..." -o docs/records/fawkes-real.json

Of each run directory: the papers' metrics of summary.json, how often minimum shares were rewritten and what was killed
for them, and how far a queue that asked was below its minimum share. Nothing is measured here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.results.store import versions
from studies.record_file import record_main

_DIGITS = 4


def one(path: Path) -> dict[str, Any]:
    """What a run directory says. Raises InputError when the run did not end well."""
    info, summary = read_json(path / "run.json"), read_json(path / "summary.json")
    # A run is closed with the last one of its call; what counts is that it ended, and all its jobs with it.
    if (
        info.get("exit") not in (0, None)
        or not summary["finished"]
        or any(q["failed"] for q in summary["queues"].values())
    ):
        raise InputError(f"the run did not end well (exit {info.get('exit')})", where=str(path), mend="run it again")
    lines = (path / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    decisions = [json.loads(line) for line in lines]
    curves = pd.read_parquet(path / "allocations.parquet")
    tasks = pd.read_parquet(path / "tasks.parquet") if (path / "tasks.parquet").is_file() else None
    written = [entry for entry in decisions if entry.get("min_shares")]
    queues = {}
    for name, queue in summary["queues"].items():
        own = curves[curves["queue"] == name]
        killed = tasks[(tasks["queue"] == name) & (tasks["outcome"] == "killed")] if tasks is not None else None
        queues[name] = {
            "mean_completion_s": queue["mean_completion_s"],
            "mean_slowdown": queue["mean_slowdown"],
            "overall_discrimination_s": queue.get("overall_discrimination_s"),
            "below_minimum_share": shortfall(own, written, name, summary["makespan_s"]),
            "tasks_killed": len(killed) if killed is not None else None,
            "seconds_killed": float((killed["ended_s"] - killed["started_s"]).sum()) if killed is not None else None,
        }
    # Queues do not have equally many jobs: the mean over all of them besides.
    jobs = pd.read_parquet(path / "jobs.parquet")
    effects = [entry["effect_s"] for entry in written if entry.get("effect_s") is not None]
    return {
        "makespan_s": summary["makespan_s"],
        "mean_slowdown": float(jobs["slowdown"].mean()),
        "utilisation": summary["utilisation"],
        "soft_fairness": summary.get("soft_fairness"),
        "theta": summary.get("theta"),
        "minimum_shares_written": len(written),
        "slowest_effect_s": max(effects, default=None),
        "masters_preempted": sum(entry.get("alarm") == "preempted-master" for entry in decisions),
        "queues": queues,
    }


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


def rounded(value: Any) -> Any:
    """Numbers with as many digits as anybody reads."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


def record(folder: Path, command: str) -> dict[str, Any]:
    """All runs of a folder. Raises InputError when there is none, or one did not end well."""
    paths = sorted(path.parent for path in folder.glob("*/run.json"))
    if not paths:
        raise InputError("no run directories", where=str(folder), mend="run the experiment first")
    infos = [read_json(path / "run.json") for path in paths]
    return {
        "command": command,
        "version": versions()["yarnfair"],
        "values": {
            "experiment": infos[0]["experiment"]["experiment"],
            "hash": infos[0]["hash"],
            "machine": infos[0]["machine"],
            "backend": infos[0]["backend"],
            "variants": {info["variant"]: rounded(one(path)) for info, path in zip(infos, paths, strict=True)},
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m studies.weighting_record FOLDER --command TEXT -o FILE``."""
    return record_main("studies.weighting_record", __doc__, lambda found, by: record(found[0], by), argv)


if __name__ == "__main__":
    sys.exit(main())
