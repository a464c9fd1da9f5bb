"""How true is what `yarnfair assess` predicts? Five loads, written down beforehand, on real containers.

    python -m studies.assessed run runs/assessed
    python -m studies.assessed measure runs/assessed -o docs/records/assessed.json
    python -m studies.assessed run runs/assessed-spark --programs
    python -m studies.assessed measure runs/assessed-spark --programs -o docs/records/assessed-spark.json

`run` brings up one local cluster of three nodes. Each load is recorded under `fair`, assessed, and run twice under the
recommended policy (without a recommendation once under ``ltrf@outside``, to see that there was nothing to gain). Every
run has the machine's load average beside it (``machine.json``). Called again, it goes on with what is missing.

`measure` holds the predictions against what happened: by queue the direction, and the mean completion time. Then every
run under control is simulated by its own trace in twenty phases of heartbeats and control: is each job, and each queue,
inside the band of the phases?

With ``--programs`` all this of a load with Spark's own programs, which compute, in place of the five.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.files import read_json
from harness.control.settings import MAX_RATIO
from studies.assessed_loads import LOADS, PROGRAMS, Load, experiment
from studies.assessed_measure import measure
from studies.real_runs import call, local_cluster, one_run, write_experiment_file
from studies.result import in_one_line, write

#: Runs under a recommended policy.
REPEATS = 2


def write_loads(folder: Path, loads: Mapping[str, Load] = LOADS) -> None:
    """The loads' experiment files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, load in loads.items():
        for changed in (False, True)[: 2 if load.after else 1]:
            document = experiment(name, changed=changed, max_ratio=MAX_RATIO)
            write_experiment_file(file_of(folder, name, changed), document)


def file_of(folder: Path, name: str, changed: bool) -> Path:
    return folder / f"{name}{'-after' if changed else ''}.yaml"


def assessment(folder: Path, name: str, recorded: Path) -> dict[str, Any]:
    """What `assess` says of a recording, asked once."""
    path = folder / f"{name}-assess" / "assess.json"
    if not path.exists():
        call("assess", str(recorded / "trace.jsonl"), "--json", "-o", str(path.parent))
    found: dict[str, Any] = read_json(path)
    return found


def recommended(found: dict[str, Any]) -> list[str]:
    """The options of `run` for what an assessment recommends; without a recommendation what it might have been."""
    best = found["recommended"]
    settings = best.get("settings", {})
    options = [f"--set={key}={value:g}" for key, value in settings.items()]
    return [f"--policy={best.get('policy', 'ltrf')}@outside", *options]


def run(folder: Path, loads: Mapping[str, Load] = LOADS) -> None:
    """All real runs, first one of each, then the repeats."""
    write_loads(folder, loads)
    with local_cluster(folder, file_of(folder, next(iter(loads)), False)) as given:
        for repeat in range(1, REPEATS + 1):
            for name, load in loads.items():
                recorded = one_run(folder / f"{name}-fair", file_of(folder, name, False), ["--policy=fair"], given)
                said = assessment(folder, name, recorded)
                if repeat > 1 and not said["recommended"]:
                    continue
                changed = bool(load.after)
                file = file_of(folder, name, changed)
                if changed:
                    one_run(folder / f"{name}-fair-after", file, ["--policy=fair"], given)
                one_run(folder / f"{name}-recommended-{repeat}", file, recommended(said), given)


@in_one_line("assessed")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.assessed", description=__doc__)
    parser.add_argument("what", choices=("run", "measure"))
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="run directories")
    parser.add_argument("-o", "--out", type=Path, help="the record [standard output]")
    parser.add_argument("--programs", action="store_true", help="the load with Spark's own programs, not the five")
    given = parser.parse_args(arguments)
    loads = PROGRAMS if given.programs else LOADS
    if given.what == "run":
        run(given.folder, loads)
    else:
        of = "runs/assessed-spark --programs" if given.programs else "runs/assessed"
        commands = (f"python -m studies.assessed {what} {of}" for what in ("run", "measure"))
        write(given.out, "; ".join(commands), measure(given.folder, loads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
