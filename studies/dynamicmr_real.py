"""What a stock YARN can be told of a job's maps and reduces at once, with real MapReduce (tang-thesis section 4.3.6).

``python -m studies.dynamicmr_real run OUT`` runs one program of the catalogue under each of `TOLD` on a
local cluster of one node, and ``... record OUT`` prints one JSON record. Runs that OUT already holds are not run again.
The same in the slot model: ``python -m studies.dynamicmr outside``.
"""

from __future__ import annotations

import getpass
import json
import os
import statistics
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from harness.base.errors import InputError, RunInvalid
from harness.clusters.local import LocalCluster
from harness.clusters.shared import LocalFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.experiments.real.cluster import RealCluster
from harness.experiments.real.single import Done, ProgramRunner
from harness.jobs.data.generate import FolderTarget, generate
from harness.jobs.engines.attempts import Attempt, attempts_table
from harness.jobs.engines.base import Request
from harness.yarn.http import HttpOptions
from studies.estimator import most_at_once
from studies.result import write

_SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"
_MAPS, _REDUCES = "mapreduce.job.running.map.limit", "mapreduce.job.running.reduce.limit"
#: Name -> what the job is told at its submission. The first is Hadoop's default.
TOLD: dict[str, dict[str, str]] = {
    "slow-start 0.05": {_SLOW_START: "0.05"},
    "slow-start 1": {_SLOW_START: "1.0"},
    "slow-start 0.05, running.reduce.limit 2": {_SLOW_START: "0.05", _REDUCES: "2"},
    "slow-start 1, running.reduce.limit 2": {_SLOW_START: "1.0", _REDUCES: "2"},
    "slow-start 0.05, running.map.limit 3": {_SLOW_START: "0.05", _MAPS: "3"},
}
PROGRAM, MAPS, REDUCES = "wordcount", 18, 6
#: Six containers of a task beside the master's.
CONTAINERS, TASK_MB = 6, 512
_DATA_BYTES = 2_000_000
_ALLOCATIONS = '<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault><queue name="a"/></allocations>'


def figures(attempts: Iterable[Attempt], seconds: float) -> dict[str, Any]:
    """One run's: seconds from submission to end, most at once of a kind, container seconds of reduces before the last
    map had ended (what early reduces hold while maps could run)."""
    table = attempts_table([a for a in attempts if a.outcome == "finished"], 0)
    held = table.rename(columns={"started_s": "granted_s"})
    maps, reduces = held[held["kind"] == "map"], held[held["kind"] == "reduce"]
    last = float(maps["ended_s"].max())
    early = (last - reduces["granted_s"]).clip(lower=0)
    return {
        "seconds": round(seconds, 1),
        "maps": len(maps),
        "reduces": len(reduces),
        "most_maps_at_once": most_at_once(maps),
        "most_reduces_at_once": most_at_once(reduces),
        "reduces_before_the_last_map_s": round(float(early.sum()), 1),
    }


def record(folder: Path) -> dict[str, Any]:
    """Each setting's figures, means over its runs; most at once: over all of them.

    Raises InputError for a folder without such runs.
    """
    values: dict[str, Any] = {}
    for name in TOLD:
        runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"{_file(name)}.*.json"))]
        if not runs:
            raise InputError(f"no run of {name!r}", where=str(folder), hint="run them first")
        values[name] = {
            "runs": len(runs),
            **{key: max(run[key] for run in runs) for key in ("most_maps_at_once", "most_reduces_at_once")},
            **{
                key: round(statistics.fmean(run[key] for run in runs), 1)
                for key in ("seconds", "reduces_before_the_last_map_s")
            },
        }
    return {"program": PROGRAM, "maps": MAPS, "reduces": REDUCES, "containers": CONTAINERS, "settings": values}


def _file(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")


def _one(client: ProgramRunner, data: Path, output: Path, properties: Mapping[str, str]) -> Done:
    request = Request(PROGRAM, (data,), output, "root.a", MAPS, REDUCES, TASK_MB, TASK_MB, properties=properties)
    (done,) = client.run(request)
    if done.why is not None:
        raise RunInvalid(done.why)
    if done.verdict is not None and done.verdict.wrong is not None:
        raise RunInvalid(f"the answer of {PROGRAM} is wrong: {done.verdict.wrong}", where=str(output))
    return done


@click.group()
def study() -> None:
    """Maps and reduces at once, as a stock YARN lets a job say it."""


@study.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--runs", type=click.IntRange(1, 100), default=2, show_default=True, help="Of each setting.")
def run(out: Path, runs: int) -> None:
    """Run each setting on a local cluster that is brought up for it, turn by turn: all meet the same machine."""
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    left = [(turn, name) for turn in range(runs) for name in TOLD if not (out / f"{_file(name)}.{turn}.json").is_file()]
    if not left:
        return
    if not (out / "text").exists():
        generate("text", _DATA_BYTES, 2, FolderTarget(out / "text"))
    allocations = out / "allocations.xml"
    allocations.write_text(_ALLOCATIONS, encoding="utf-8")
    cluster = LocalCluster(StateFolder(out / "state"))
    memory_mb = (CONTAINERS + 1) * TASK_MB
    spec = ClusterSpec(nodes=1, memory_mb=memory_mb, vcores=16, minimum_allocation_mb=256, allocations=str(allocations))
    try:
        status = cluster.up(spec, timeout_s=600)
        shared, http = LocalFolder(out), HttpOptions(user=getpass.getuser())
        client = ProgramRunner(RealCluster("local", status.address, None, shared, sys.executable, http=http))
        for turn, name in left:
            done = _one(client, out / "text", out / "outputs" / f"{_file(name)}.{turn}", TOLD[name])
            found = figures(done.attempts, done.seconds)
            click.echo(f"{name}: {found}", err=True)
            part = out / f".{_file(name)}.{turn}"
            part.write_text(json.dumps(found), encoding="utf-8")
            os.replace(part, out / f"{_file(name)}.{turn}.json")
    finally:
        cluster.down()


@study.command(name="record")
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
def record_(out: Path) -> None:
    """Print what the runs in OUT came to."""
    command = "python -m studies.dynamicmr_real run OUT; python -m studies.dynamicmr_real record OUT"
    write(None, command, record(out))


if __name__ == "__main__":
    study()
