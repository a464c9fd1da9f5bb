"""Runs real MapReduce jobs with early reduces on a local cluster, and keeps what their masters and YARN log.

    python -m studies.mapreduce_real FOLDER

Each scenario of `SCENARIOS` is run under each scheduler of `SCHEDULERS`. The jobs' tasks sleep for known times (Hadoop
Streaming). ``FOLDER/SCENARIO.SCHEDULER.TURN`` holds for each job what its master logged of its decisions
(RMContainerAllocator and RMContainerRequestor at INFO), its history, what the ResourceManager logged of its containers,
and in ``run.json`` what the REST API said. `studies.mapreduce_master` compares these runs with the simulator.
"""

from __future__ import annotations

import argparse
import getpass
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from harness.base.errors import RunInvalid, RunTimedOut
from harness.base.files import write_json
from harness.clusters import site
from harness.clusters.local import LocalCluster
from harness.clusters.state import ClusterSpec, StateFolder
from harness.jobs.mapreduce import staging
from harness.jobs.mapreduce.catalogue import HadoopJob, uri
from harness.jobs.mapreduce.engine import streaming_jar
from harness.jobs.mapreduce.places import LocalStore
from harness.model.resources import Resource
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from studies.result import in_one_line

NODES, NODE_MB, NODE_VCORES = 2, 2560, 16
#: The container of a master and of a task, MiB.
AM_MB, TASK_MB = 512, 512
SCHEDULERS = ("fair", "capacity")
#: The queues a and b may take all, but beside b the queue a is entitled to a fifth only; the queue ``small`` may take a
#: master and five tasks.
ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="a"/>
  <queue name="b"><weight>4</weight></queue>
  <queue name="small"><maxResources>3072 mb, 32 vcores</maxResources></queue>
</allocations>
"""
#: The same queues for the Capacity Scheduler: its properties, without their common prefix.
CAPACITIES = {
    "root.queues": "a,b,small",
    "root.a.capacity": "18",
    "root.b.capacity": "72",
    "root.small.capacity": "10",
    "root.small.maximum-capacity": "60",
    **{f"root.{name}.user-limit-factor": "-1" for name in ("a", "b", "small")},
    "maximum-am-resource-percent": "1.0",
    "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}
_TIMEOUT_S = 420.0

#: Sleeps for as long as its number's place in a list says, after it has read its input.
PROGRAM = b"""
import os, sys, time

times = [float(one) for one in sys.argv[1].split(",")]
sys.stdin.buffer.read()
number = int(os.environ["mapreduce_task_partition"])
time.sleep(times[number])
for key in range(64):
    print(f"{key}\\t{number}")
"""


@dataclass(frozen=True)
class Job:
    """One job of a scenario.

    Parameters
    ----------
    queue
        The full path of its queue.
    maps_s, reduces_s
        How long the program of each task sleeps, s.
    slow_start
        ``mapreduce.job.reduce.slowstart.completedmaps``.
    after_s
        Its submission, counted from the scenario's start, s.
    """

    queue: str
    maps_s: tuple[float, ...]
    reduces_s: tuple[float, ...]
    slow_start: float = 0.05
    after_s: float = 0.0


def _times(seed: int, count: int, least_s: float, most_s: float) -> tuple[float, ...]:
    rng = random.Random(seed)
    return tuple(round(rng.uniform(least_s, most_s), 2) for _ in range(count))


#: What is run: alone with and without early reduces, in a queue smaller than the job, and with a later job in another
#: queue that takes the containers of ended maps, so that the early reduces of the first job leave its maps nothing.
SCENARIOS: dict[str, tuple[Job, ...]] = {
    "slow start 0.05": (Job("root.a", _times(1, 24, 8, 14), _times(2, 6, 6, 9)),),
    "slow start 1": (Job("root.a", _times(1, 24, 8, 14), _times(2, 6, 6, 9), slow_start=1.0),),
    "small queue": (Job("root.small", _times(3, 16, 8, 14), _times(4, 8, 6, 9)),),
    "two queues": (
        Job("root.a", _times(5, 28, 8, 14), _times(6, 8, 6, 9)),
        Job("root.b", _times(7, 20, 8, 14), _times(8, 2, 6, 9), after_s=45.0),
    ),
}


def run_name(scenario: str, scheduler: str, turn: int) -> str:
    """Return the name of a run's folder."""
    return f"{scenario.replace(' ', '_')}.{scheduler}.{turn}"


def hadoop_job(job: Job, program: Path, output: str) -> HadoopJob:
    """Return a job of sleeping tasks for Hadoop Streaming."""
    run = f"{sys.executable} -S -E {program.name}"
    stream = "org.apache.hadoop.streaming"
    reads, writes = f"{stream}.io.TextOutputReader", f"{stream}.io.TextInputWriter"
    found = {
        "mapred.input.format.class": "org.apache.hadoop.mapred.TextInputFormat",
        "mapred.mapper.class": f"{stream}.PipeMapper",
        "mapred.map.runner.class": f"{stream}.PipeMapRunner",
        "mapred.reducer.class": f"{stream}.PipeReducer",
        "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
        "mapreduce.job.output.value.class": "org.apache.hadoop.io.Text",
        "mapreduce.job.reduces": str(len(job.reduces_s)),
        "mapreduce.output.fileoutputformat.outputdir": uri(output),
        # A job that is given its input as splits reads no folder; the maps' order is the splits' order.
        "mapreduce.task.timeout": "600000",
    }
    for kind, times in (("map", job.maps_s), ("reduce", job.reduces_s)):
        found[f"stream.{kind}.streamprocessor"] = quote_plus(f"{run} {','.join(map(str, times))}")
        found[f"stream.{kind}.input.writer.class"] = writes
        found[f"stream.{kind}.output.reader.class"] = reads
    return HadoopJob(found, (program,))


def submit(rest: RestClient, work: Path, job: Job, name: str) -> str:
    """Submit a job; return its application's id. Its files are in a folder of this name below ``work``."""
    place, jar = LocalStore(work), streaming_jar()
    identity = rest.new_application().id
    classes = rest.properties(defaults=False)
    class_path = classes.get("mapreduce.application.classpath") or classes["yarn.application.classpath"]
    user = getpass.getuser()
    folder = f"{work}/{name}"
    cluster = staging.Cluster(class_path, (str(jar),), f"{folder}/staging", f"{folder}/history", user)
    staged = cluster.folder(identity).removeprefix(f"{place.path}/")
    cached = place.write({f"{staged}/sleep.py": PROGRAM}, [f"{name}/history"])
    sized = staging.Sized(Resource(TASK_MB, 1), Resource(TASK_MB, 1), Resource(AM_MB, 1))
    properties = staging.job_xml(
        hadoop_job(job, work / staged / "sleep.py", f"{folder}/out"),
        sized,
        cluster,
        queue=job.queue,
        name=name,
        work=f"{place.path}/{staged}",
        slow_start=job.slow_start,
        cached={"sleep.py": cached[f"{staged}/sleep.py"]},
        properties={"fs.defaultFS": "file:///"},
    )
    # One line for each map.
    place.write({f"{name}/input": b"x\n" * len(job.maps_s)})
    splits = [staging.Split(f"{folder}/input", 2 * at, 2) for at in range(len(job.maps_s))]
    split, meta = staging.split_files(splits, new_api=False)
    content = {"job.split": split, "job.splitmetainfo": meta, "job.xml": site.render(properties).encode()}
    written = place.write({f"{staged}/{part}": body for part, body in content.items()})
    asked = staging.submission(sized, cluster, written[f"{staged}/job.xml"], queue=job.queue, name=name, tags=[name])
    # RMContainerAllocator logs its decisions at INFO.
    return rest.submit(replace(asked, command=asked.command.replace("WARN,CLA", "INFO,CLA")), identity)


def outstanding(rest: RestClient, app: str) -> dict[str, int]:
    """Return how many containers of each priority the ResourceManager still owes an application."""
    found: dict[str, int] = {}
    answer: Any = rest.http.request("GET", f"/ws/v1/cluster/apps/{app}", repeatable=True).document
    for one in answer["app"].get("resourceRequests") or []:
        if one["resourceName"] == "*":
            priority = one["priority"]
            number = priority["priority"] if isinstance(priority, dict) else priority
            found[str(number)] = found.get(str(number), 0) + int(one["numContainers"])
    return found


def master_log(userlogs: Sequence[Path], app: str) -> list[str]:
    """Return the lines of the log of an application's master. Raises RunInvalid."""
    for folder in userlogs:
        # A container that was reserved before may have taken the first number.
        for path in sorted((folder / app).glob("container_*/syslog")):
            text = path.read_text(errors="replace")
            if ".rm.RMContainerAllocator" in text:
                return text.splitlines()
    raise RunInvalid(f"no log of the master of {app}", hint="run it again")


def run_scenario(name: str, rest: RestClient, work: Path, state: Path, out: Path) -> dict[str, Any]:
    """Run a scenario's jobs, write into ``out`` what was logged of them, and return what the REST API said."""
    jobs, zero = SCENARIOS[name], time.time()
    apps: list[str] = []
    polled: list[list[dict[str, Any]]] = [[] for _ in jobs]
    loads = [os.getloadavg()[0]]
    until = time.monotonic() + _TIMEOUT_S
    try:
        while True:
            while len(apps) < len(jobs) and time.time() - zero >= jobs[len(apps)].after_s:
                apps.append(submit(rest, work, jobs[len(apps)], f"job{len(apps)}"))
            states = [rest.app(app) for app in apps]
            for at, status in enumerate(states):
                if not status.final:
                    polled[at].append({"at_ms": round(time.time() * 1000), "owed": outstanding(rest, apps[at])})
            if len(apps) == len(jobs) and all(status.final for status in states):
                break
            if time.monotonic() > until:
                raise RunTimedOut(f"{name} has not ended in {_TIMEOUT_S:.0f} s", hint="run it on an idle machine")
            loads.append(os.getloadavg()[0])
            time.sleep(0.5)
    except BaseException:
        rest.kill_all([rest.app(app) for app in apps])
        raise
    for status in states:
        if status.final_status != "SUCCEEDED":
            raise RunInvalid(f"{status.id} of {name}: {status.final_status}: {status.diagnostics}")
    for at, app in enumerate(apps):
        keep_logs(app, work / f"job{at}", state, out / f"job{at}")
    return {
        "scenario": name,
        "load_average": {
            "first": round(loads[0], 2),
            "mean": round(sum(loads) / len(loads), 2),
            "highest": round(max(loads), 2),
        },
        "jobs": [
            {
                "queue": job.queue,
                "maps": len(job.maps_s),
                "reduces": len(job.reduces_s),
                "slow_start": job.slow_start,
                "app": status.id,
                "submitted_ms": status.started_ms,
                "launched_ms": status.launched_ms,
                "finished_ms": status.finished_ms,
                "memory_mb_s": status.memory_seconds,
                "polled": seen,
            }
            for job, status, seen in zip(jobs, states, polled, strict=True)
        ],
    }


def keep_logs(app: str, folder: Path, state: Path, out: Path) -> None:
    """Keep an ended job's history, and the lines about it in the logs of its master and of the ResourceManager."""
    out.mkdir(parents=True)
    (history,) = list((folder / "history").rglob("*.jhist")) or list((folder / "staging").rglob("*.jhist"))
    shutil.copy(history, out / "history.jhist")
    log = master_log(sorted(state.glob("nm*/userlogs")), app)
    (out / "master.log").write_text("\n".join(line for line in log if ".rm.RMContainer" in line) + "\n")
    mark = app.replace("application", "container")
    with (state / "logs" / "rm.log").open(errors="replace") as lines:
        own = [line for line in lines if "RMContainerImpl" in line and mark in line]
    (out / "containers.log").write_text("".join(own))


def bring_up(folder: Path, scheduler: str) -> tuple[LocalCluster, ClusterSpec]:
    """Return a cluster that is not up yet, and what it is to be."""
    if scheduler == "fair":
        queues = folder / "fair-scheduler.xml"
        queues.write_text(ALLOCATIONS)
    else:
        queues = folder / "capacity-scheduler.xml"
        queues.write_text(site.render({f"yarn.scheduler.capacity.{key}": value for key, value in CAPACITIES.items()}))
    spec = ClusterSpec(
        nodes=NODES,
        memory_mb=NODE_MB,
        vcores=NODE_VCORES,
        scheduler=scheduler,
        allocations=str(queues),
    )
    return LocalCluster(StateFolder(folder / f"state-{scheduler}")), spec


def wanted(folder: Path, scheduler: str, turns: int, chosen: Sequence[str]) -> list[tuple[str, int]]:
    """Return the runs that the folder lacks, as scenario and turn, in order of turns."""
    every = [(name, turn) for turn in range(turns) for name in chosen]
    return [one for one in every if not (folder / run_name(one[0], scheduler, one[1]) / "run.json").exists()]


@in_one_line("mapreduce_real")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, on a cluster for each scheduler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=2, help="runs of each scenario")
    parser.add_argument("--scheduler", choices=SCHEDULERS, action="append", help="only this one")
    parser.add_argument("--scenario", choices=list(SCENARIOS), action="append", help="only this one")
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for scheduler in given.scheduler or SCHEDULERS:
        left = wanted(folder, scheduler, given.turns, given.scenario or list(SCENARIOS))
        if not left:
            continue
        cluster, spec = bring_up(folder, scheduler)
        try:
            status = cluster.up(spec, timeout_s=300)
            with RestClient([status.address.rest], HttpOptions(user=getpass.getuser())) as rest:
                for name, turn in left:
                    work = folder / "work" / f"{scheduler}-{turn}-{name.replace(' ', '_')}"
                    shutil.rmtree(work, ignore_errors=True)
                    work.mkdir(parents=True)
                    out = folder / run_name(name, scheduler, turn)
                    shutil.rmtree(out, ignore_errors=True)
                    found = run_scenario(name, rest, work, cluster.folder.folder, out)
                    write_json(out / "run.json", {"scheduler": scheduler, **found})
                    took = [(one["finished_ms"] - one["submitted_ms"]) / 1000 for one in found["jobs"]]
                    print(f"{scheduler}, {name}, {turn}: {took} s, load {found['load_average']}", flush=True)
        finally:
            cluster.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
