"""LTYARN inside the ResourceManager against LTRF from outside on real containers: twenty pairs that were fixed before.

    python -m studies.outside_pairs FOLDER

Runs them on a cluster of its own (some two hours, unattended), then writes the record and the page. Called again it
goes on where it stopped: what has ended well is kept, what has failed runs again. It waits for a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.base.errors import CallError, InputError
from harness.base.files import read_json
from studies import figures
from studies.from_runs import result
from studies.result import in_one_line, write

#: Written down before the first of them ran, none of them looked at before; the seeds of outside-real-short are others.
EXPERIMENT, SEEDS, PAIRS = "outside-real-short", "101-120", 20
RECORD = "outside-pairs"
#: With more other work than this (1 min load average) measured differences are the other work's.
QUIET_LOAD = 1.0
#: A machine that has just done something else is given so long to become quiet.
PATIENCE_S = 600.0
#: Runs that fail are tried so often in one call.
ATTEMPTS = 3


def command(folder: Path) -> str:
    """What makes the runs."""
    return f"yarnfair run {EXPERIMENT} --backend local --seed {SEEDS} --jobs 1 --resume --no-report --out {folder}"


def wait_until_quiet(load: float = QUIET_LOAD, patience_s: float = PATIENCE_S, every_s: float = 10.0) -> None:
    """Returns once the load is low. CallError where it stays high."""
    until = time.monotonic() + patience_s
    while (now := os.getloadavg()[0]) > load:
        if time.monotonic() >= until:
            raise CallError(
                f"the machine is busy (load {now:.1f}, at most {load:g} is wanted)",
                where="outside_pairs",
                hint="stop what else runs, or measure all the same with --busy",
            )
        time.sleep(every_s)


def set_aside(runs: Path) -> list[str]:
    """Moves run directories that did not end well out of the way, so that they run again; their names."""
    moved = []
    for path in sorted(runs.glob("*/run.json")):
        if read_json(path).get("exit") == 0:
            continue
        aside = runs.parent / "failed" / f"{path.parent.name}-{time.time_ns()}"
        aside.parent.mkdir(exist_ok=True)
        path.parent.rename(aside)
        moved.append(path.parent.name)
    return moved


def measure(folder: Path, words: Sequence[str] | None = None) -> None:
    """Runs what is missing. InputError where runs fail again and again. ``words``: the command, by itself for tests."""
    runs = folder / "runs"
    for _ in range(ATTEMPTS):
        if runs.exists():
            set_aside(runs)
        given = shlex.split(command(runs)) if words is None else list(words)
        program = [sys.executable, "-m", "harness", *given[1:]] if given[0] == "yarnfair" else given
        done = subprocess.run(program, check=False)
        if done.returncode in (2, 130):  # a wrong call, or somebody interrupts
            raise InputError(f"exit {done.returncode}", where=" ".join(given), hint="see above; call it again to go on")
        if done.returncode == 0:
            return
    raise InputError(
        f"runs fail (exit {done.returncode})", where=str(runs), hint="see logs there; call it again to go on"
    )


def record(folder: Path, out: Path, pairs: int = PAIRS) -> None:
    """The record of all pairs. InputError where some are missing."""
    found = result([folder / "runs"])
    ran = found["values"]["outside_less_inside"]["runs"]
    if ran != pairs:
        raise InputError(f"{ran} of {pairs} pairs", where=str(folder), hint="call it again to go on")
    write(out, f"python -m studies.outside_pairs {folder.name}", **found)


@in_one_line("outside_pairs")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.outside_pairs", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the runs are; the same to go on")
    parser.add_argument("--busy", action="store_true", help="do not wait until the machine is quiet")
    given = parser.parse_args(arguments)
    if not given.busy:
        wait_until_quiet()
    given.folder.mkdir(parents=True, exist_ok=True)
    measure(given.folder)
    record(given.folder, figures.DOCS / "records" / f"{RECORD}.json")
    return figures.main([])


if __name__ == "__main__":
    sys.exit(main())
