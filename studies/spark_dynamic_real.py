"""Spark applications with dynamic allocation on a real local cluster: run them, keep what Spark and YARN say of them.

    python -m studies.spark_dynamic_real FOLDER --phases 20

Each phase submits a few applications that are drawn with the phase's number as seed: jobs of sleeping tasks with pauses
between them, some with a shuffle, with bounds and timeouts of their own. ``FOLDER/phase-N`` has the event logs as Spark
wrote them and ``apps.json``, the ResourceManager's figures. `studies.spark_dynamic` compares them with the simulator.
"""

from __future__ import annotations

import argparse
import getpass
import json
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.clusters.local import LocalCluster
from harness.clusters.shared import LocalFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.jobs.spark import installation
from harness.jobs.spark.catalogue import programs
from harness.jobs.spark.plan import Input, Plan, SparkPlace, SparkSizes, plan, property_file
from harness.jobs.submit import scheduler_address
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from studies.result import in_one_line

NODES, NODE_MB, NODE_VCORES = 2, 6144, 8
QUEUES = ("a", "b")
APPLICATIONS = 3
#: How the logs of a phase are written: in turn, so that every form is a real one.
FORMS: tuple[dict[str, str], ...] = (
    {},
    {"spark.eventLog.compress": "true", "spark.eventLog.compression.codec": "zstd"},
    {"spark.eventLog.compress": "true", "spark.eventLog.compression.codec": "lz4"},
    {"spark.eventLog.compress": "true", "spark.eventLog.compression.codec": "snappy"},
    {"spark.eventLog.rolling.enabled": "true", "spark.eventLog.rolling.maxFileSize": "10m"},
)

PROGRAM = b"""
import json, sys, time
from pyspark import SparkContext

with open(sys.argv[1]) as file:
    call = json.load(file)
sc = SparkContext()


def sleeping(seconds):
    def work(number, values):
        time.sleep(seconds[number])
        return iter([(number, 1)])

    return work


for job in call["jobs"]:
    time.sleep(job["pause_s"])
    times, then = job["tasks_s"], job["then_s"]
    found = sc.parallelize(range(len(times)), len(times)).mapPartitionsWithIndex(sleeping(times))
    if then:
        found = found.partitionBy(len(then)).mapPartitionsWithIndex(sleeping(then))
    found.count()
sc.stop()
"""


def drawn(rng: random.Random) -> tuple[list[dict[str, Any]], dict[str, str], int]:
    """Jobs of one application, its properties, and the cores of its executors."""
    jobs = []
    for _ in range(rng.randint(1, 3)):
        mean_s = rng.choice((1.0, 3.0, 6.0))
        shuffle = rng.random() < 0.3
        jobs.append(
            {
                "pause_s": rng.choice((0.0, 1.0, 4.0, 12.0)),
                "tasks_s": [round(rng.uniform(0.5, 1.5) * mean_s, 3) for _ in range(rng.randint(1, 14))],
                "then_s": [round(rng.uniform(0.5, 2.0), 3) for _ in range(rng.randint(1, 4))] if shuffle else [],
            }
        )
    least = rng.choice((0, 0, 1, 2))
    properties = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least + rng.choice((0, 0, 1))),
        "spark.dynamicAllocation.maxExecutors": str(rng.choice((3, 6, 100))),
        "spark.dynamicAllocation.executorIdleTimeout": rng.choice(("3s", "8s", "60s")),
        "spark.dynamicAllocation.schedulerBacklogTimeout": rng.choice(("1s", "1s", "3s")),
        "spark.dynamicAllocation.executorAllocationRatio": rng.choice(("1.0", "1.0", "0.5")),
    }
    return jobs, properties, rng.choice((1, 1, 2))


def planned(phase: int, number: int, rng: random.Random, place: SparkPlace, logs: Path) -> Plan:
    """One application of a phase, ready to be submitted."""
    jobs, properties, cores = drawn(rng)
    queue = f"root.{rng.choice(QUEUES)}"
    more = {**properties, **FORMS[phase % len(FORMS)]}
    return sleeping(f"phase-{phase}-{number}", queue, jobs, more, cores, place, logs)


def sleeping(
    name: str,
    queue: str,
    jobs: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    cores: int,
    place: SparkPlace,
    logs: Path,
) -> Plan:
    """A Spark application of sleeping tasks with dynamic allocation, ready to be submitted.

    Parameters
    ----------
    name, queue
        Its name, and the queue's full path.
    jobs
        Its jobs: ``pause_s`` before one, ``tasks_s``, and ``then_s`` after a shuffle.
    properties
        More of its properties, as those of dynamic allocation.
    cores
        An executor's cores.
    place
        Where Spark is.
    logs
        The folder for the event log.
    """
    program = programs()["kmeans"]
    found = plan(
        program,
        program.settings_with({}),
        SparkSizes(executors=2, executor_mb=768, executor_cores=cores, am_mb=896),
        place,
        Input(place.work, (), 1, 1),
        queue=queue,
        name=name,
        tags=[name],
        source=PROGRAM,
        properties={
            **properties,
            "spark.app.name": name,
            "spark.yarn.queue": queue,
            "spark.eventLog.dir": f"file://{logs}",
            "spark.default.parallelism": "2",
        },
    )
    own = {key: value for key, value in found.properties.items() if key != "spark.executor.instances"}
    files = {
        **found.files,
        f"{name}.json": json.dumps({"jobs": list(jobs)}).encode(),
        f"{name}.properties": property_file(own).encode(),
    }
    return Plan(found.submission, files, found.answer, found.log, own)


def run_phase(phase: int, rest: RestClient, place: SparkPlace, folder: Path) -> None:
    """Submit a phase's applications, wait for them, keep what is said of them."""
    rng = random.Random(phase)
    logs = folder / f"phase-{phase}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    shared = LocalFolder(Path(place.work))
    apps = []
    for number in range(APPLICATIONS):
        one = planned(phase, number, rng, place, logs)
        shared.write(one.files)
        apps.append(rest.submit(one.submission))
        time.sleep(rng.choice((0.0, 3.0, 8.0)))
    until = time.monotonic() + 600
    while time.monotonic() < until:
        states = [rest.app(app) for app in apps]
        if all(one.final for one in states):
            break
        time.sleep(0.5)
    document = [
        {
            "app": one.id,
            "queue": one.queue,
            "user": "user",
            "started_ms": one.started_ms,
            "launched_ms": one.launched_ms,
            "finished_ms": one.finished_ms,
            "memory_seconds": one.memory_seconds,
            "vcore_seconds": one.vcore_seconds,
            "status": one.final_status,
        }
        for one in states
    ]
    (logs / "apps.json").write_text(json.dumps(document, indent=1))
    print(f"phase {phase}: {[one.final_status for one in states]}", flush=True)


@in_one_line("spark_dynamic_real")
def main(arguments: Sequence[str] | None = None) -> int:
    """Bring the cluster up, run the phases, take it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--phases", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    allocations = folder / "allocations.xml"
    queues = "".join(f'<queue name="{name}"/>' for name in QUEUES)
    allocations.write_text(f"<allocations><queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>{queues}</allocations>")
    cluster = LocalCluster(StateFolder(folder / "state"))
    try:
        spec = ClusterSpec(nodes=NODES, memory_mb=NODE_MB, vcores=NODE_VCORES, allocations=str(allocations))
        status = cluster.up(spec, timeout_s=300)
        with RestClient([status.address.rest], HttpOptions(user=getpass.getuser())) as rest:
            work = folder / "work"
            work.mkdir(exist_ok=True)
            place = SparkPlace(str(installation.find()), str(work), sys.executable, scheduler_address(rest), True)
            for phase in range(given.first, given.first + given.phases):
                run_phase(phase, rest, place, folder)
    finally:
        cluster.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
