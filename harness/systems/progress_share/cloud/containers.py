"""A Docker cluster in the role of a cloud: core nodes, billed accelerators that join and leave, jobs that compute.

An instance type becomes a CPU limit and the resources that a NodeManager advertises (`node_type`); an hour becomes
``hour_s`` seconds. harness.systems.progress_share.cloud.real decides which nodes exist at which time. Times are seconds
since 1970.
"""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import RunInvalid, RunTimedOut, YarnfairError
from harness.clusters.accelerators import Accelerators, JoinedNode, NodeType
from harness.clusters.compose import DockerCluster
from harness.clusters.state import ClusterSpec
from harness.experiments.real.cluster import own_cluster
from harness.experiments.real.curves import JobRun
from harness.jobs.replay import ReplayOptions
from harness.jobs.submit import NODE_PROPERTIES, Replayer, scheduler_address
from harness.model.data import data_path
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.systems.progress_share.cloud.driver import InstanceType, Query, billed_hours, release_at_h
from harness.systems.progress_share.cloud.spec import DockerCloud
from harness.yarn.answers import FINAL_STATES
from harness.yarn.rmclient import RmClient

QUEUE = "root.production"
#: Container memory is a multiple of this, MiB.
STEP_MB = 64
#: Resources of an application master: memory but no vcore, because it computes next to nothing.
MASTER = Resource(STEP_MB, 0)
_PYTHON = "/usr/bin/python3"
_FOLLOW_S = 0.5
_MOST_TRIES = 3
#: Time before the end of the paid hour at which accelerators are removed, because removal takes time: a fraction of the
#: hour, but at most a number of seconds.
_BEFORE_END = (0.05, 3.0)
_ALLOCATIONS = """<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queue name="root">
    <queue name="production"><schedulingPolicy>fifo</schedulingPolicy></queue>
  </queue>
</allocations>
"""


@dataclass(slots=True)
class Held:
    """An accelerator node and its billing. ``left_s`` is None until it leaves."""

    node: JoinedNode
    kind: InstanceType
    left_s: float | None = None

    def billed_h(self, hour_s: float) -> int:
        """Return the started hours until it left or, if it has not left, until now; at least 1."""
        end_s = time.time() if self.left_s is None else self.left_s
        return max(billed_hours((end_s - self.node.joined_s) / hour_s), 1)

    def dollars(self, hour_s: float) -> float:
        """Return the price of the billed hours, dollars."""
        return self.billed_h(hour_s) * self.kind.price_hour

    def release_s(self, idle_since_s: float, hour_s: float) -> float:
        """Return the time at which the node should be released, in seconds since 1970.

        It is shortly before the end of the hour that has been paid for.
        """
        started_s = self.node.joined_s
        hours = release_at_h(0.0, max(idle_since_s - started_s, 0.0) / hour_s)
        return started_s + hours * hour_s - min(_BEFORE_END[0] * hour_s, _BEFORE_END[1])


@dataclass(frozen=True, slots=True)
class Served:
    """The result of queries that were submitted together: begin and end (seconds since 1970), and their jobs."""

    began_s: float
    ended_s: float
    jobs: Sequence[JobRun]


@dataclass(frozen=True, slots=True)
class Task:
    """Tasks of one query, which run on one node (``host``) or on any node (None)."""

    name: str
    count: int
    demand: Resource
    command: str
    host: str | None = None


@dataclass(slots=True)
class Cloud:
    """The cluster while an experiment runs on it.

    ``events`` lists joins and departures of nodes for decisions.jsonl.
    """

    docker: DockerCloud
    accelerators: Accelerators
    client: RmClient
    replayer: Replayer
    folder: str
    core_hosts: Sequence[str]
    document: Mapping[str, Any]
    progress: Callable[[str], None]
    events: list[dict[str, Any]] = field(default_factory=list)
    _jobs: int = 0

    # --- nodes ---

    def join(self, kind: InstanceType, count: int) -> list[Held]:
        """Add accelerators, wait until they have joined, and return them."""
        if count == 0:
            return []
        ordered_s = time.time()
        nodes = self.accelerators.grow(node_type(kind, self.docker), count, timeout_s=300.0)
        for node in nodes:
            self.events.append(
                {
                    "time_s": node.joined_s,
                    "event": "joined",
                    "node": node.name,
                    "type": kind.name,
                    "after_s": round(node.joined_s - ordered_s, 3),
                }
            )
        return [Held(node, kind) for node in nodes]

    def leave(self, held: Sequence[Held]) -> None:
        """Remove accelerators: drain them, then stop them. They are billed until the call."""
        now = time.time()
        for one in held:
            one.left_s = now
        killed = self.accelerators.shrink([one.node.name for one in held], drain_s=60.0)
        for one in held:
            self.events.append(
                {
                    "time_s": now,
                    "event": "left",
                    "node": one.node.name,
                    "type": one.kind.name,
                    "billed_h": one.billed_h(self.docker.hour_s),
                    "killed": killed[one.node.name],
                }
            )

    def release(self, held: Sequence[Held], idle_since_s: float) -> None:
        """Wait for the end of the paid hours of accelerators, and remove each one then."""
        hour_s = self.docker.hour_s
        left = list(held)
        while left:
            at_s = min(one.release_s(idle_since_s, hour_s) for one in left)
            time.sleep(max(at_s - time.time(), 0.0))
            # Nodes that joined together leave together.
            going = [one for one in left if one.release_s(idle_since_s, hour_s) <= at_s + 1.0]
            self.leave(going)
            left = [one for one in left if one not in going]

    # --- jobs ---

    def serve(self, jobs: Sequence[tuple[str, Sequence[Task]]]) -> Served:
        """Submit jobs together, in this order, wait until all have ended, and return the result.

        Raises RunInvalid if a job fails, and RunTimedOut if they exceed the time limit; the jobs are then killed.
        """
        runs, stages = [], {}
        for name, tasks in jobs:
            self._jobs += 1
            spec = JobSpec(
                f"{name}-{self._jobs}",
                QUEUE,
                "mapreduce",
                MASTER,
                tuple(Stage(task.name, task.count, task.demand, Duration("constant", value_s=1.0)) for task in tasks),
                name=name,
            )
            runs.append(JobRun(spec))
            stages[spec.id] = tasks
        began_s = time.time()
        try:
            for run in runs:
                self._submit(run, stages[run.spec.id], began_s)
            self._follow(runs, stages, began_s + self.docker.time_limit_s)
        except BaseException:
            # Raise the first error, not one from killing: the cluster is stopped with its applications anyway.
            with contextlib.suppress(YarnfairError):
                self.replayer.kill_all()
            raise
        failed = next((run for run in runs if run.failed), None)
        if failed is not None:
            told = failed.record.why or (failed.status.diagnostics if failed.status else "")
            raise RunInvalid(f"{failed.spec.id} failed: {' '.join(told.split())[:300]}")
        return Served(began_s, max(run.finished_s for run in runs), runs)

    def _submit(self, run: JobRun, tasks: Sequence[Task], began_s: float) -> None:
        programs = {task.name: task.command for task in tasks}
        hosts = {task.name: task.host for task in tasks if task.host is not None}
        run.tries += 1
        run.submitted_s = began_s if math.isnan(run.submitted_s) else run.submitted_s
        run.app_id = self.replayer.submit(run.spec, programs=programs, hosts=hosts)

    def _follow(self, runs: Sequence[JobRun], stages: Mapping[str, Sequence[Task]], end_s: float) -> None:
        while True:
            for run in runs:
                if run.ended or run.app_id is None:
                    continue
                status = run.status = self.client.rest.app(run.app_id)
                if status.launched_ms:
                    run.started_s = status.launched_ms / 1000.0
                if status.state in FINAL_STATES:
                    run.ended, run.finished_s = True, status.finished_ms / 1000.0
                    run.failed = status.final_status != "SUCCEEDED"
                    run.record = self.replayer.record(run.spec.id)
                elif run.lost.seen(status, time.monotonic()) and run.tries < _MOST_TRIES:
                    self.client.rest.kill(status.id)
                    self._submit(run, stages[run.spec.id], run.submitted_s)
            if all(run.ended for run in runs):
                return
            if time.time() >= end_s:
                raise RunTimedOut(
                    f"the queries have not ended after {self.docker.time_limit_s:g} s",
                    hint="raise docker.time_limit_s, or ask for less",
                )
            time.sleep(_FOLLOW_S)

    def warm_up(self, hosts: Sequence[str]) -> None:
        """Run one container on each node before any measurement.

        Java then has loaded its classes, and a broken cluster is noticed early.
        """
        tasks = [Task(f"warm-{at}", 1, Resource(STEP_MB, 1), "true", host) for at, host in enumerate(hosts, start=1)]
        self.serve([("warm-up", tasks)])

    def task(self, query: Query, count: int, *, name: str = "task", host: str | None = None) -> Task:
        """Return `count` tasks of a query."""
        work = self.docker.tasks[query.name]
        command = f"{_PYTHON} -S -E {self.folder}/work.py {work.program} {work.size}"
        return Task(name, count, demand(query, self.docker), command, host)


def node_type(kind: InstanceType, docker: DockerCloud) -> NodeType:
    """Return the node type that represents an instance type.

    It has one vcore per core, and memory and a CPU limit that are scaled as the experiment says.
    """
    memory_mb = max(int(kind.memory_gb * docker.mb_per_gb), STEP_MB)
    return NodeType(kind.name, memory_mb, kind.cores, round(kind.cu * docker.cpus_per_cu, 4))


def demand(query: Query, docker: DockerCloud) -> Resource:
    """Return the container size of a query's tasks: one vcore, and memory rounded up to a multiple of `STEP_MB`."""
    return Resource(max(math.ceil(query.memory_gb * docker.mb_per_gb / STEP_MB), 1) * STEP_MB, 1)


@contextlib.contextmanager
def open_cloud(docker: DockerCloud, core: tuple[InstanceType, int], progress: Callable[[str], None]) -> Iterator[Cloud]:
    """Start a cluster with the core pool, and remove it completely when the context ends."""
    kind = node_type(core[0], docker)
    spec = ClusterSpec(
        nodes=core[1],
        memory_mb=kind.memory_mb,
        vcores=kind.vcores,
        minimum_allocation_mb=STEP_MB,
        properties={
            **NODE_PROPERTIES,
            "yarn.scheduler.minimum-allocation-vcores": "0",
            "yarn.resource-types.memory-mb.increment-allocation": str(STEP_MB),
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
        },
    )
    with (
        own_cluster("docker", spec, _ALLOCATIONS, progress) as (cluster, own),
        RmClient([own.address], own.http) as client,
    ):
        assert isinstance(cluster, DockerCluster)
        options = ReplayOptions(rm=scheduler_address(client.rest), seed=0, am_heartbeat_ms=500)
        replayer = Replayer(client.rest, own.shared, options, tag=f"cloud-{uuid.uuid4().hex[:12]}", python=own.python)
        own.shared.write({"work.py": data_path("workloads", "cloud", "work.py").read_bytes()})
        accelerators = Accelerators(cluster, progress=progress)
        info, hosts = client.rest.info(), accelerators.core_hosts()
        document = {"id": info.id, "version": info.version, **own.document}
        cloud = Cloud(docker, accelerators, client, replayer, own.shared.path, hosts, document, progress)
        progress("warming up: one small job")
        cloud.warm_up(cloud.core_hosts)
        accelerators.limit_core(kind.cpus)
        yield cloud
