"""QKnober on the synthetic load in the shape of Google's trace: the record behind docs/figures-qknober.md.

python -m studies.synthetic -o docs/records/qknober-synthetic.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.result import write

#: Which knobs each policy is run with; the first run is what speed-ups are over.
CALLS = (
    "--policy static --policy drf",
    "--policy tetris --knob 0.5 --knob 0",
    "--policy qknober --knob 0 --knob 0.2 --knob 0.5 --knob 1",
)
KEPT = ("policy", "knob", "makespan_s", "mean_completion_s", "utilisation_while_submitted", "soft_fairness", "theta")


def _called(arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "harness", "vectors", *arguments.split(), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def values(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The runs of all calls together, with each one's speed-up over static, over DRF and over QKnober at 1."""
    runs = [run for document in documents for run in document["runs"]]
    by_name = {(run["policy"], run["knob"]): run["makespan_s"] for run in runs}
    references = {
        "speedup": ("static", None),
        "speedup_over_rho_1": ("qknober", 1.0),
        "speedup_over_drf": ("drf", None),
    }
    return {
        "load": documents[0]["load"],
        "runs": [
            {key: run[key] for key in KEPT}
            | {name: round(by_name[of] / run["makespan_s"], 3) for name, of in references.items()}
            for run in runs
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.synthetic", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    command = "; ".join(f"yarnfair vectors {call} --json" for call in CALLS)
    found = values([_called(call) for call in CALLS])
    write(given.out, command, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
