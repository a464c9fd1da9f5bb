"""Runs as a committed result: folders of run directories as one small JSON file, for the pages of figures.

    yarnfair run outside --no-report --out runs/outside
    python -m studies.from_runs runs/outside --command "yarnfair run outside ..." -o docs/records/outside.json

Several folders repeat the same experiment. A result says which command made it, with which version, and holds the
values; nothing is measured here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import read_json
from harness.report.gallery.values import Runs, running_tasks
from studies import views
from studies.result import in_one_line, write

VIEWS = ("shares", "summary", "minimum-shares")


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
                f"the run did not end well (exit {info.get('exit')})", where=str(path), hint="run it again"
            )
        seed = int(info["seed"])
        name = str(info["variant"]).removesuffix(f",seed={seed}")
        names.add(info["experiment"]["experiment"])
        runs.setdefault(name, {})[seed, number] = (path.parent, info, read_json(path.parent / "summary.json"))
    where = ", ".join(str(folder) for folder in folders)
    if not runs:
        raise InputError("no run directories", where=where, hint="run an experiment with --out first")
    if len(names) > 1:
        raise InputError(f"runs of different experiments: {', '.join(sorted(names))}", where=where, hint="give one's")
    return runs


def result(folders: Sequence[Path], view: str | None = None) -> dict[str, Any]:
    """The result of folders of run directories, each of which repeats the same experiment: ``version``, ``values``, and
    of real runs ``clusters`` and ``machine``. Without a view: `shares` for YARN's runs, else `summary`.
    """
    runs = collect(*folders)
    _, info, summary = next(iter(next(iter(runs.values())).values()))
    hashes = {own["hash"] for repeats in runs.values() for _, own, _ in repeats.values()}
    view = view or ("shares" if "sharing_benefit" in summary else "summary")
    values_of = views.shares if view == "shares" else views.summary
    values: dict[str, Any] = {
        "experiment": info["experiment"]["experiment"],
        # More than one where the file was edited between runs that go together: each cluster below has its run's.
        "hash": hashes.pop() if len(hashes) == 1 else sorted(hashes),
        "seeds": sorted({seed for own in runs.values() for seed, _ in own}),
        "variants": {name: values_of(runs, name) for name in runs},
    }
    if view == "shares":
        if "naive-hltrf" in runs and info["experiment"]["experiment"] == "t-wait":
            # Each way of counting against its own naive approach.
            quanta = {name: own for name, own in runs.items() if name.startswith("ltyarn")}
            plain = {name: own for name, own in runs.items() if name not in quanta}
            values["running_tasks_of_TPC-H"] = running_tasks(plain, "TPC-H")
            if quanta:
                values["running_tasks_of_TPC-H"] |= running_tasks(quanta, "TPC-H", "ltyarn-naive")
        if info["experiment"]["experiment"] in ("outside", "outside-60s"):
            values["loss_integral_of_the_first_100_s"] = views.early_loss(runs)
        if {"ltyarn-in-rm", "ltrf@outside"} <= set(runs):
            values["outside_less_inside"] = views.differences(runs, "ltrf@outside", "ltyarn-in-rm")
        if info["experiment"]["experiment"] == "ltyarn":
            values["first_260_s"] = views.flow({"ltyarn": runs["ltyarn"]})
        if info["experiment"]["experiment"] == "quantum":
            values["counted_in_the_first_hour"] = views.falls(runs)
    found: dict[str, Any] = {"version": info["versions"]["yarnfair"], "values": values}
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


def by_minimum_shares(folder: Path) -> dict[str, Any]:
    """Each run of a folder by itself. Raises InputError when there is none, or one did not end well."""
    paths = sorted(path.parent for path in folder.glob("*/run.json"))
    if not paths:
        raise InputError("no run directories", where=str(folder), hint="run the experiment first")
    infos = [read_json(path / "run.json") for path in paths]
    values = {
        "experiment": infos[0]["experiment"]["experiment"],
        "hash": infos[0]["hash"],
        "machine": infos[0]["machine"],
        "backend": infos[0]["backend"],
        "variants": {info["variant"]: views.minimum_shares(path) for info, path in zip(infos, paths, strict=True)},
    }
    return {"values": values}


@in_one_line("from_runs")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.from_runs", description=__doc__)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="run directories")
    parser.add_argument("--view", choices=VIEWS, help="what is kept of a run [shares for YARN's, else summary]")
    parser.add_argument("--command", default="", help="what made the runs")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    found = by_minimum_shares(given.folders[0]) if given.view == VIEWS[2] else result(given.folders, given.view)
    write(given.out, given.command, **found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
