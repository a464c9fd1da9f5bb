"""QKnober on the synthetic load in the shape of Google's trace: the record behind docs/figures-qknober.md.

python -m studies.synthetic -o docs/records/qknober-synthetic.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.systems.qknober.google import synthetic
from harness.systems.qknober.simulator import VectorRun, simulate
from studies.result import write

#: (policy, knob) of each run; the first is what speed-ups are over.
RUNS = (
    ("static", None),
    ("drf", None),
    ("tetris", 0.5),
    ("tetris", 0.0),
    ("qknober", 0.0),
    ("qknober", 0.2),
    ("qknober", 0.5),
    ("qknober", 1.0),
)
LOAD: dict[str, Any] = {"machines": 1000, "hours": 24.0, "load": 1.2, "seed": 1, "users": 100}


def row(name: str, knob: float | None, run: VectorRun) -> dict[str, Any]:
    """One run as plain data."""
    return {
        "policy": name,
        "knob": knob,
        "makespan_s": round(run.makespan_s, 3),
        "mean_completion_s": round(run.mean_completion_s, 1),
        "utilisation_while_submitted": [round(x, 4) for x in run.busy],
        "soft_fairness": round(run.soft_fairness, 4),
        "theta": round(run.estimated_soft_fairness, 4) if name == "qknober" else None,
    }


def values(tasks: int, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The load and its runs, with each one's speed-up over static, over DRF and over QKnober at 1."""
    by_name = {(run["policy"], run["knob"]): run["makespan_s"] for run in runs}
    references = {
        "speedup": ("static", None),
        "speedup_over_rho_1": ("qknober", 1.0),
        "speedup_over_drf": ("drf", None),
    }
    return {
        "load": {"synthetic": True, **LOAD, "tasks": tasks},
        "runs": [
            run | {name: round(by_name[of] / run["makespan_s"], 3) for name, of in references.items()} for run in runs
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.synthetic", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    load = synthetic(**LOAD)
    runs = [row(name, knob, simulate(load, name, knob or 0.0)) for name, knob in RUNS]
    write(given.out, "python -m studies.synthetic", values(len(load.user), runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
