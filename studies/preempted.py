"""How many containers a real Capacity Scheduler's preemption kills, steered and not.

    python -m studies.preempted -o docs/records/preempted.json

Two clusters side by side, each with three queues of one long job each: queue a works alone for a while, then b and c
come. One cluster is left alone, the other is steered under ``ltrf``, where the trap ``preemption`` has been accepted.
Once with Hadoop's own settings of preemption, once with those that take all that is over at once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from harness.base.files import read_json
from harness.clusters.local import LocalCluster
from harness.clusters.shared import LocalFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.jobs.replay import ReplayOptions
from harness.jobs.submit import NODE_PROPERTIES, Replayer, scheduler_address
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from studies.pair import none_left
from studies.result import in_one_line, write_times

QUEUES = ("root.a", "root.b", "root.c")
SIZE = Resource(512, 1)
_PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption"
#: Settings of preemption.
HOW: dict[str, dict[str, str]] = {
    "default": {},
    "at-once": {
        f"{_PREEMPTION}.natural_termination_factor": "1.0",
        f"{_PREEMPTION}.total_preemption_per_round": "1.0",
    },
}
PROPERTIES = {
    **NODE_PROPERTIES,
    "yarn.scheduler.configuration.store.class": "memory",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
}


def configuration() -> str:
    """Three queues with weights and without traps but preemption."""
    said = {
        "root.queues": "a,b,c",
        "global-queue-max-application": "10000",
        "maximum-am-resource-percent": "1000",
        **{f"{path}.capacity": "1w" for path in QUEUES},
        **{f"{path}.user-limit-factor": "-1" for path in QUEUES},
    }
    rows = "".join(
        f"<property><name>{PREFIX}{name}</name><value>{text}</value></property>" for name, text in said.items()
    )
    return f"<configuration>{rows}</configuration>"


def _job(queue: str) -> JobSpec:
    """More tasks than there is room for, of 20 to 40 s."""
    stage = Stage("map", 2000, SIZE, Duration("uniform", low_s=20.0, high_s=40.0))
    return JobSpec(queue.replace(".", "-"), queue, "mapreduce", SIZE, (stage,))


def _load(rest: RestClient, folder: Path, alone_s: float, seconds: float) -> int:
    """Queue a's job, then those of b and c; how many tasks ended by themselves."""
    options = ReplayOptions(rm=scheduler_address(rest), seed=1, am_heartbeat_ms=500)
    replayer = Replayer(rest, LocalFolder(folder / "shared"), options, tag="preempted")
    jobs = [_job(queue) for queue in QUEUES]
    replayer.submit(jobs[0])
    time.sleep(alone_s)
    for job in jobs[1:]:
        replayer.submit(job)
    time.sleep(seconds - alone_s)
    return sum(task.outcome == "finished" for job in jobs for task in replayer.record(job.id).tasks)


def run(folder: Path, how: str, *, steered: bool, alone_s: float, seconds: float) -> dict[str, Any]:
    """One cluster's figures."""
    folder.mkdir(parents=True)
    (folder / "given.xml").write_text(configuration())
    cluster = LocalCluster(StateFolder(folder / "state"))
    spec = ClusterSpec(
        nodes=2,
        memory_mb=4096,
        vcores=16,
        scheduler="capacity",
        allocations=str(folder / "given.xml"),
        properties={**PROPERTIES, **HOW[how]},
    )
    controller = None
    try:
        address = cluster.up(spec, timeout_s=300).address.rest
        config, log = folder / "enforce.yaml", folder / "enforce.log"
        config.write_text(
            yaml.safe_dump({"policy": "ltrf", "ledger": str(folder / "ledger.db"), "accept": ["preemption"]})
        )
        if steered:
            command = [sys.executable, "-m", "harness", "enforce", "--rm", address, "--config", str(config)]
            with log.open("w") as out:
                controller = subprocess.Popen(command, stdout=out, stderr=out)
        with RestClient([address], HttpOptions(attempts=3, deadline_s=30.0)) as rest:
            ended = _load(rest, folder, alone_s, seconds)
            answer = rest.http.request("GET", "/ws/v1/cluster/apps", repeatable=True).document
        rows: list[dict[str, Any]] = answer["apps"]["app"]
        return {
            "tasks_ended": ended,
            "tasks_killed": sum(row["numNonAMContainerPreempted"] for row in rows),
            "masters_killed": sum(row["numAMContainerPreempted"] for row in rows),
            "killed_by_queue": {row["queue"]: row["numNonAMContainerPreempted"] for row in rows},
            "memory_part_lost": round(
                sum(row["preemptedMemorySeconds"] for row in rows) / sum(row["memorySeconds"] for row in rows), 4
            ),
            "writes": log.read_text().count("in force after") if steered else 0,
        }
    finally:
        if controller is not None:
            controller.terminate()
            controller.wait(timeout=60)
        none_left(cluster.down(), folder)


def measure(how: str, *, alone_s: float, seconds: float) -> dict[str, Any]:
    """Both clusters' figures."""
    with tempfile.TemporaryDirectory(prefix="preempted-") as folder, ThreadPoolExecutor(2) as pool:
        times = {"alone_s": alone_s, "seconds": seconds}
        both = {
            name: pool.submit(run, Path(folder) / name, how, steered=name == "ltrf", **times)
            for name in ("left", "ltrf")
        }
        return {**times, **{name: found.result() for name, found in both.items()}}


@in_one_line("preempted")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.preempted", description=__doc__)
    parser.add_argument("--alone", type=float, default=60.0, help="how long queue a works alone, seconds")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long all of it is watched")
    parser.add_argument("--settings", default=",".join(HOW), help="settings of preemption, separated by commas")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    # What was measured before stays.
    values: dict[str, Any] = read_json(given.out)["values"] if given.out.exists() else {}
    for how in given.settings.split(","):
        values[how] = measure(how, alone_s=given.alone, seconds=given.seconds)
        write_times(given.out, "python -m studies.preempted -o docs/records/preempted.json", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
