"""How true is what `yarnfair plan` and `yarnfair usage` say? Changes of capacities, written down before, on real nodes.

    python -m studies.planned run runs/planned
    python -m studies.planned measure runs/planned -o docs/records/planned.json

`run` takes each load of `studies.planned_loads` under the configuration before its change, on a real local cluster with
the Capacity Scheduler: `yarnfair record --follow` records it, `yarnfair plan` predicts what the change does (the answer
is in ``plan.json`` before the next step begins), and the same load runs under the new configuration. Tasks sleep in
real containers; Spark's applications are Spark's own, with dynamic allocation. Called again, it goes on with what is
missing.

`measure` holds each figure of each queue against what happened, and `yarnfair usage` against the ResourceManager's own
``memorySeconds``.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import write_json, write_text
from harness.clusters.local import LocalCluster
from harness.clusters.shared import LocalFolder
from harness.clusters.state import ClusterSpec, StateFolder
from harness.clusters.status import ClusterStatus
from harness.jobs.replay import ReplayOptions
from harness.jobs.spark import installation
from harness.jobs.spark.plan import SparkPlace
from harness.jobs.submit import NODE_PROPERTIES, Replayer, scheduler_address
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from studies.planned_cluster import (
    BelowDue,
    Beside,
    Command,
    MasterHistory,
    add_node,
    decommission,
    fresh,
    spark_history,
)
from studies.planned_loads import LOADS, NODE_MB, NODE_VCORES, NODES, SPARK, Load
from studies.planned_measure import measure
from studies.real_runs import call, machine_beside
from studies.result import in_one_line, write
from studies.spark_dynamic_real import sleeping

SIDES = ("before", "after")
#: An application may take so long after the last one was submitted, seconds.
_MOST_S = 600.0


def run(folder: Path) -> None:
    """Each load: the real run before the change, the prediction, the real run after it."""
    for name, load in LOADS.items():
        own = folder / name
        for side in SIDES:
            if not (own / side / "apps.json").exists():
                print(f"{name}, {side} the change", file=sys.stderr, flush=True)
                one_run(fresh(own / side), load, side)
            if side == "before":
                predicted(own)
            usage(own / side)


def predicted(own: Path) -> None:
    """What `plan` says of the change, asked once and before it happens."""
    if (own / "plan.json").exists():
        return
    words = [
        "plan",
        str(own / "before" / "recording.jsonl"),
        "--before",
        str(own / "before" / "capacity-scheduler.xml"),
    ]
    write_text(own / "after.xml", LOADS[own.name].file("after"))
    words += ["--after", str(own / "after.xml")]
    write_text(own / "plan.txt", call(*words))
    write_text(own / "plan.json", call(*words, "--json"))


def usage(own: Path) -> None:
    """The statement of a recording, asked once."""
    if not (own / "usage.json").exists():
        write_text(own / "usage.json", call("usage", str(own / "recording.jsonl"), "--every", "day", "--json"))


def one_run(own: Path, load: Load, side: str, configuration: Callable[[ClusterStatus], Path] | None = None) -> None:
    """A load on a real cluster of its own, recorded; what the ResourceManager then says of it is kept.

    ``configuration``: the file of a controller, which runs beside the load (`enforce`); None: no controller.
    """
    file, exclude = own / "capacity-scheduler.xml", own / "exclude"
    write_text(file, load.file(side))
    write_text(exclude, "")
    cluster = LocalCluster(StateFolder(own / "state"))
    try:
        spec = ClusterSpec(
            nodes=NODES,
            memory_mb=NODE_MB,
            vcores=NODE_VCORES,
            scheduler="capacity",
            allocations=str(file),
            properties={**NODE_PROPERTIES, "yarn.resourcemanager.nodes.exclude-path": str(exclude)},
        )
        status = cluster.up(spec, timeout_s=300)
        with (
            machine_beside(own / "machine.json"),
            RestClient([status.address.rest], HttpOptions(user=getpass.getuser())) as rest,
        ):
            config = None if configuration is None else configuration(status)
            _played(own, load, side, rest, cluster, config)
    finally:
        cluster.down()


def _played(own: Path, load: Load, side: str, rest: RestClient, cluster: LocalCluster, config: Path | None) -> None:
    state = cluster.folder.load()
    if state is None:
        raise InputError("the cluster is gone", where=str(own), hint="run it again")
    work, logs = own / "work", own / "events"
    work.mkdir()
    logs.mkdir()
    shared = LocalFolder(work)
    replayer = Replayer(rest, shared, ReplayOptions(scheduler_address(rest), 1, 1000, 1), tag=f"planned-{own.name}")
    # So that `record` asks for its history, as of MapReduce's own.
    replayer.type = "MAPREDUCE"
    jobs = {job.id: job for part in load.jobs for job in part.specs()}
    steps: list[tuple[float, Callable[[], object]]] = [
        (job.submit_s, partial(replayer.submit, job)) for job in jobs.values()
    ]
    if load.spark is not None:
        place = SparkPlace(str(installation.find()), str(work), sys.executable, scheduler_address(rest), True)
        for number, at_s in enumerate(load.spark.times()):
            one = _spark(load, number, place, logs)
            shared.write(one.files)
            steps.append((at_s, partial(rest.submit, one.submission)))
    with contextlib.ExitStack() as stack:
        beside = stack.enter_context(Beside())
        if load.joins_s is not None:
            steps.append((load.joins_s, partial(beside.start, lambda: add_node(state, own / "state"))))
        if load.leaves_s is not None:
            leave = partial(decommission, state, own / "state" / "conf", own / "exclude")
            steps.append((load.leaves_s, partial(beside.start, leave)))
        words = ["--rm", rest.http.current, "--history", stack.enter_context(MasterHistory(replayer, jobs)).url]
        if load.spark is not None:
            words += ["--spark-history", stack.enter_context(spark_history(logs))]
        if config is not None:
            words += ["--config", str(config)]
            stack.callback(Command(own / "enforce.txt", "enforce", "--config", str(config)).stop)
        follow = ("record", "--follow", str(own / "recording.jsonl"), "--every", "1", *words)
        stack.callback(Command(own / "record.txt", *follow).stop)
        time.sleep(3.0)
        below = BelowDue(load.shares(side))
        _until_all_ended(steps, rest, below, beside)
        time.sleep(8.0)  # the histories learn of the last ends
    apps = [
        {
            "app": one.id,
            "name": one.name,
            "queue": one.queue if one.queue.startswith("root.") else f"root.{one.queue}",
            "wait_s": (one.launched_ms - one.started_ms) / 1000.0,
            "completion_s": (one.finished_ms - one.started_ms) / 1000.0,
            "memory_seconds": one.memory_seconds,
            "status": one.final_status,
        }
        for one in sorted(rest.apps(), key=lambda one: one.started_ms)
    ]
    write_json(own / "below.json", below.seconds)
    write_json(own / "samples.json", {"samples": below.samples})
    write_json(own / "apps.json", {"apps": apps})


def _spark(load: Load, number: int, place: SparkPlace, logs: Path) -> Any:
    own = load.spark
    assert own is not None
    jobs = [
        {
            "pause_s": own.pause_s if job else 0.0,
            "tasks_s": [round(own.task_s * (0.75 + 0.5 * task / tasks), 3) for task in range(tasks)],
            "then_s": [],
        }
        for job, tasks in enumerate(own.tasks)
    ]
    properties = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.maxExecutors": str(own.most),
        "spark.dynamicAllocation.executorIdleTimeout": f"{own.idle_s}s",
    }
    return sleeping(f"spark-{number}", SPARK, jobs, properties, 1, place, logs)


def _until_all_ended(
    steps: Sequence[tuple[float, Callable[[], object]]], rest: RestClient, below: BelowDue, beside: Beside
) -> None:
    """Take each step at its time, look at the queues each second, and wait until every application has ended.

    A step that takes long goes ``beside``, so that the next submission is not late. Raises what failed there.
    """
    left = sorted(steps, key=lambda one: one[0])
    begun_s = time.monotonic()
    while True:
        now_s = time.monotonic() - begun_s
        while left and left[0][0] <= now_s:
            left.pop(0)[1]()
        below.poll(rest.scheduler(), time.monotonic())
        if beside.ended() and not left and all(app.final for app in rest.apps()):
            return
        if now_s > _MOST_S:
            raise InputError("applications do not end", where=rest.http.current, hint="look at the cluster's logs")
        wake_s = min(now_s + 1.0, left[0][0] if left else now_s + 1.0)
        time.sleep(max(wake_s - (time.monotonic() - begun_s), 0.0))


@in_one_line("planned")
def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line, and no file."""
    parser = argparse.ArgumentParser(prog="python -m studies.planned", description=__doc__)
    parser.add_argument("what", choices=("run", "measure"))
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the runs")
    parser.add_argument("-o", "--out", type=Path, help="the record [standard output]")
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    if given.what == "run":
        run(folder)
    else:
        commands = "; ".join(f"python -m studies.planned {what} runs/planned" for what in ("run", "measure"))
        write(given.out, commands, measure(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
