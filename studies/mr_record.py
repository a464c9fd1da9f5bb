"""Committed records of experiments of MR-clusters, for docs/figures-fawkes.md.

    yarnfair run fawkes-d --out runs/fawkes-d
    python -m studies.mr_record runs/fawkes-d --command "yarnfair run fawkes-d" -o fawkes-d.json

Every number of a summary over the seeds (mean, least, greatest), and slowdowns and times over those under None.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.record_file import record_main
from studies.runs_record import Runs, collect, spread

#: What of a summary depends on the machine, or says nothing by itself.
LEFT_OUT = ("wall_s", "events", "finished")
NONE = "fawkes-none"


def _over_seeds(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers as their spread, mappings alike."""
    found: dict[str, Any] = {}
    for key, first in summaries[0].items():
        values = [summary[key] for summary in summaries]
        if isinstance(first, Mapping):
            found[key] = _over_seeds(values)
        elif key not in LEFT_OUT and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            figures = spread([float(v) for v in values])
            found[key] = figures["mean"] if figures["min"] == figures["max"] else figures
    return found


def record(folder: Path, command: str) -> dict[str, Any]:
    """The record of a folder of run directories. InputError where one did not end well."""
    runs: Runs = collect(folder)
    info = next(iter(next(iter(runs.values())).values()))[1]
    variants = {name: _over_seeds([summary for _, _, summary in own.values()]) for name, own in runs.items()}
    if NONE in runs:
        for name, own in runs.items():
            pairs = [(own[seed][2], runs[NONE][seed][2]) for seed in own]
            variants[name]["mean_slowdown_below_none"] = spread(
                [1 - ours["mean_slowdown"] / theirs["mean_slowdown"] for ours, theirs in pairs]
            )
            variants[name]["makespan_below_none"] = spread(
                [1 - ours["makespan_s"] / theirs["makespan_s"] for ours, theirs in pairs]
            )
            if "fawkes-td" in runs:
                variants[name]["seeds_in_which_no_other_is_better"] = sum(
                    all(own[seed][2]["mean_slowdown"] <= other[seed][2]["mean_slowdown"] for other in runs.values())
                    for seed in own
                )
    values = {
        "experiment": info["experiment"]["experiment"],
        "hash": info["hash"],
        "seeds": sorted({seed for own in runs.values() for seed, _ in own}),
        "variants": variants,
    }
    return {"command": command, "version": info["versions"]["yarnfair"], "values": values}


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m studies.mr_record FOLDER --command TEXT -o FILE``."""
    return record_main("studies.mr_record", __doc__, lambda found, by: record(found[0], by), arguments)


if __name__ == "__main__":
    sys.exit(main())
