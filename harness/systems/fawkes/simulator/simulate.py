"""The event loop: jobs are submitted, tasks end, nodes change hands, and every period T the manager decides.

The same setup always gives the same result. Events at one instant have a fixed order: ends of tasks, node moves, new
requests and jobs, the sample, then the update that uses the sample.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.systems.fawkes.manager import Command, Manager, Remove, Start, Update
from harness.systems.fawkes.simulator.cluster import Cluster, JobRun, Node, Task
from harness.systems.fawkes.simulator.model import MRJob, Setup

_TASK, _DRAINED, _SAVED, _LOADED, _REQUEST, _SUBMIT, _WAKE, _SAMPLE, _UPDATE = range(9)


@dataclass(frozen=True, slots=True)
class JobRow:
    """One submitted job. Times are seconds since the start, or None if the job did not start or end."""

    cluster: str
    job: str
    profile: str
    input_gb: float
    submitted_s: float
    started_s: float | None
    finished_s: float | None
    tasks: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One MR-cluster in one sample: nodes held, the leaving ones among them, jobs, tasks and weight."""

    time_s: float
    cluster: str
    nodes: int
    leaving: int
    waiting_jobs: int
    running_jobs: int
    waiting_tasks: int
    running_tasks: int
    weight: float


@dataclass(slots=True)
class Result:
    """The result of a simulation.

    ``makespan_s`` is the end of the last job. ``finished`` is False if the time limit ended the simulation.
    """

    jobs: list[JobRow] = field(default_factory=list)
    samples: list[SampleRow] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    reconfigurations: int = 0
    nodes_moved: int = 0
    killed_tasks: int = 0
    replicated_gb: float = 0.0
    overall: dict[str, float] = field(default_factory=dict)
    makespan_s: float = 0.0
    finished: bool = True
    node_s: float = 0.0
    slot_s: float = 0.0
    task_events: int = 0
    last_drained_s: float = 0.0


class Simulation:
    """One simulation. Call `run` only once."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.policy = setup.policy
        self.manager = Manager(setup.nodes, setup.policy) if setup.policy is not None else None
        self.period_s = float(setup.policy.settings.period) if setup.policy is not None else 60.0
        self.clusters = {c.name: Cluster(c, setup.constants, setup.seed + at) for at, c in enumerate(setup.clusters)}
        self.growth = setup.growth
        self.pool = list(range(setup.nodes - 1, -1, -1))  # popped from the end, so that the lowest number is used first
        self.targets: dict[str, int] = {}
        self.heap: list[tuple[float, int, int, Any]] = []
        self.order = itertools.count()
        self.now_s = 0.0
        self.result = Result()
        self.left = sum(len(c.jobs) for c in setup.clusters)
        #: Jobs with unfinished predecessors: id -> [job, number of them]. ``followers`` has the reverse: id -> waiting
        #: jobs.
        self.held: dict[str, dict[str, list[Any]]] = {c.name: {} for c in setup.clusters}
        self.followers: dict[str, dict[str, list[str]]] = {c.name: {} for c in setup.clusters}
        self.early: dict[str, list[tuple[MRJob, float]]] = {c.name: [] for c in setup.clusters}
        self.unsettled = len(setup.clusters)  # number of pending requests and of nodes that are leaving
        self.runs: dict[str, list[JobRun]] = {c.name: [] for c in setup.clusters}

    def push(self, at_s: float, what: int, value: Any) -> None:
        """Schedule an event at time `at_s` (s)."""
        heapq.heappush(self.heap, (at_s, what, next(self.order), value))

    def run(self) -> Result:
        """Simulate until every job has ended, or until the time limit.

        Without a policy, the simulation also waits until every leaving node has left.
        """
        for cluster in self.setup.clusters:
            for job in cluster.jobs:
                for before in job.after:
                    self.followers[cluster.name].setdefault(before, []).append(job.id)
                if job.after:
                    self.held[cluster.name][job.id] = [job, len(job.after)]
            self.push(cluster.arrival_s, _REQUEST, cluster.name)
            if not cluster.from_activation:
                self._schedule_jobs(cluster.name, 0.0)
        self.push(self.setup.sample_s, _SAMPLE, None)
        if self.manager is not None:
            self.push(self.period_s, _UPDATE, None)
        while self.heap and (self.left or (self.manager is None and self.unsettled)):
            now = self.heap[0][0]
            if now > self.setup.time_limit_s:
                self.result.finished = False
                break
            self._pass(now)
            touched: set[str] = set()
            while self.heap and self.heap[0][0] == now:
                _, what, _, value = heapq.heappop(self.heap)
                self._happen(what, value, touched)
            for name in sorted(touched):
                self._start(name)
        self._close()
        return self.result

    def _pass(self, now: float) -> None:
        """Advance to time `now` and add the node-seconds and slot-seconds that have passed."""
        passed = now - self.now_s
        if passed > 0:
            self.result.node_s += passed * sum(len(c.nodes) for c in self.clusters.values())
            self.result.slot_s += passed * sum(c.running[0] + c.running[1] for c in self.clusters.values())
            self.now_s = now

    def _happen(self, what: int, value: Any, touched: set[str]) -> None:
        if what == _TASK:
            name, task = value
            if task.alive:
                self._task_ended(name, task)
                touched.add(name)
        elif what == _SUBMIT:
            name, job = value
            self._submit(name, job, self.now_s)
            touched.add(name)
        elif what == _WAKE:
            touched.add(value)
        elif what == _SAMPLE:
            self._sample()
        elif what == _UPDATE:
            assert self.manager is not None
            self.push(self.now_s + self.period_s, _UPDATE, None)
            before = self.manager.reconfigurations
            commands = self.manager.update(self.now_s)
            if self.manager.reconfigurations > before:
                self._note("", "resized")
            self._obey(commands)
            touched.update(self.clusters)
        elif what == _REQUEST:
            self.unsettled -= 1
            self._request(value)
            touched.update(self.clusters)
        elif what == _LOADED:
            self._activate(value)
            touched.add(value)
        elif what == _DRAINED:
            name, node = value
            self.unsettled -= 1
            self._free(name, node)
            self.result.last_drained_s = self.now_s
            self._tell_and_grant()
            touched.update(self.clusters)
        else:
            self._saved(value)
            touched.update(self.clusters)

    def _note(self, name: str, what: str) -> None:
        self.result.events.append((self.now_s, name, what))

    # --- MR-clusters come and go ---

    def _request(self, name: str) -> None:
        cluster = self.clusters[name]
        self._note(name, "requested")
        if self.manager is None:
            for kind, count in (("core", cluster.setup.core), *cluster.setup.fixed):
                for _ in range(count):
                    cluster.add(self.pool.pop(), kind)  # type: ignore[arg-type]
            self._activate(name)
            return
        self._obey(self.manager.request(name, cluster.setup.core, self.now_s))

    def _activate(self, name: str) -> None:
        cluster = self.clusters[name]
        cluster.active = True
        self._note(name, "active")
        if self.manager is not None:
            self._obey(self.manager.loaded(name, self.now_s))
        if cluster.setup.from_activation and not cluster.numbers and not self.early[name]:
            self._schedule_jobs(name, self.now_s)
        early, self.early[name] = self.early[name], []
        for job, submitted_s in early:
            self._submit(name, job, submitted_s)
        if cluster.setup.shrink_by:
            for node in cluster.usable():
                cluster.nodes[node.id].own_gb = cluster.setup.shrink_gb if node.kind == "transient-core" else 0.0
            self._release(name, cluster.setup.shrink_by)

    def _saved(self, name: str) -> None:
        cluster = self.clusters[name]
        assert self.manager is not None
        for node in list(cluster.nodes.values()):
            self._free(name, node)
        cluster.output_gb = cluster.spread_gb = 0.0
        self._note(name, "removed")
        commands = self.manager.removed(name, self.now_s)
        self.targets.pop(name, None)
        self._obey(commands)
        if self.early[name]:
            self.unsettled += 1
            self.push(self.now_s, _REQUEST, name)  # jobs were submitted while it was being removed
        self._tell_and_grant()

    # --- nodes ---

    def _obey(self, commands: Sequence[Command]) -> None:
        assert self.manager is not None
        resize = False
        for command in commands:
            if isinstance(command, Remove):
                cluster = self.clusters[command.name]
                cluster.active = False
                self._note(command.name, "idle")
                save_s = cluster.output_gb / (cluster.setup.core * self.setup.constants.load_gb_s)
                self.push(self.now_s + save_s, _SAVED, command.name)
            elif isinstance(command, Start):
                setup = self.clusters[command.name].setup
                load_s = 0.0 if setup.ready else setup.data_gb / (setup.core * self.setup.constants.load_gb_s)
                self.push(self.now_s + load_s, _LOADED, command.name)
            else:
                resize = True
        if resize:
            self.targets = self.manager.targets()
            for name, target in self.targets.items():
                surplus = len(self.clusters[name].usable()) - target
                if surplus > 0:
                    self._release(name, surplus)
            self._tell_and_grant()

    def _release(self, name: str, count: int) -> None:
        """Release nodes: empty ones at once (instant preemption), others after replication (delayed preemption)."""
        cluster = self.clusters[name]
        delayed: list[Node] = []
        for node in cluster.to_release(count):
            cluster.kill(node)
            if cluster.stored_gb(node) > 0:
                delayed.append(node)
            else:
                self._free(name, node)
        for node in delayed:
            node.leaving = True
            self.result.replicated_gb += cluster.stored_gb(node)
        for node, at_s in zip(delayed, cluster.leave_s(delayed, self.now_s), strict=True):
            self.unsettled += 1
            self.push(at_s, _DRAINED, (name, node))

    def _free(self, name: str, node: Node) -> None:
        cluster = self.clusters[name]
        if cluster.nodes.get(node.id) is node:
            cluster.kill(node)
            del cluster.nodes[node.id]
            self.pool.append(node.id)
            self.pool.sort(reverse=True)
            self.result.nodes_moved += 1

    def _tell_and_grant(self) -> None:
        """Give free nodes to MR-clusters below their targets, and report the held nodes to the manager.

        MR-clusters that wait for core nodes come first, then growing ones, both in the order of their requests.
        """
        if self.manager is None:
            return
        members = sorted(self.manager.members.values(), key=lambda member: member.state != "waiting")
        for member in members:
            cluster = self.clusters[member.name]
            missing = self.targets.get(member.name, 0) - len(cluster.usable())
            kind = "core" if member.state == "waiting" else self.growth
            for _ in range(min(missing, len(self.pool))):
                cluster.add(self.pool.pop(), kind)  # type: ignore[arg-type]
        counts = [(name, len(self.clusters[name].nodes)) for name in self.manager.members]
        commands = self.manager.holds(counts, self.now_s)
        if commands:
            self._obey(commands)

    # --- jobs ---

    def _schedule_jobs(self, name: str, from_s: float) -> None:
        for job in self.clusters[name].setup.jobs:
            if not job.after:
                self.push(from_s + job.submit_s, _SUBMIT, (name, job))

    def _submit(self, name: str, job: MRJob, submitted_s: float) -> None:
        cluster = self.clusters[name]
        if not cluster.active:
            self.early[name].append((job, submitted_s))
            if self.manager is not None and name not in self.manager.members and name in self._gone():
                self._obey(self.manager.request(name, cluster.setup.core, self.now_s))
                self._note(name, "requested")
            return
        self.runs[name].append(cluster.submit(job, submitted_s, self.now_s))
        self.push(self.now_s + self.setup.constants.job_setup_s, _WAKE, name)

    def _gone(self) -> set[str]:
        assert self.manager is not None
        return set(self.manager.overall)

    def _start(self, name: str) -> None:
        cluster = self.clusters[name]
        if cluster.active:
            for end_s, task in cluster.start(self.now_s):
                self.push(end_s, _TASK, (name, task))

    def _task_ended(self, name: str, task: Task) -> None:
        self.result.task_events += 1
        if not self.clusters[name].end(task, self.now_s):
            return
        self.left -= 1
        self.result.makespan_s = self.now_s
        for follower in self.followers[name].get(task.job.spec.id, ()):
            held = self.held[name][follower]
            held[1] -= 1
            if held[1] == 0:
                self.push(self.now_s, _SUBMIT, (name, held[0]))

    # --- samples and results ---

    def _sample(self) -> None:
        self.push(self.now_s + self.setup.sample_s, _SAMPLE, None)
        for name, cluster in self.clusters.items():
            metrics = cluster.metrics(self.now_s, self.period_s, self.setup.reference_s)
            weight = 0.0
            if self.manager is not None and name in self.manager.members:
                member = self.manager.members[name]
                weight = float(member.weight) if member.state == "active" else 0.0
                if member.state == "active":
                    self.manager.sample(name, metrics)
            self.result.samples.append(
                SampleRow(
                    self.now_s,
                    name,
                    len(cluster.nodes),
                    len(cluster.nodes) - len(cluster.usable()),
                    int(metrics.waiting_jobs) + len(self.early[name]),
                    int(metrics.running_jobs),
                    int(metrics.waiting_tasks),
                    int(metrics.running_tasks),
                    weight,
                )
            )

    def _close(self) -> None:
        result = self.result
        for name, runs in self.runs.items():
            for run in runs:
                spec = run.spec
                tasks = spec.profile.maps(spec.input_gb, self.setup.constants) + spec.profile.reduces(spec.input_gb)
                result.jobs.append(
                    JobRow(
                        name,
                        spec.id,
                        spec.profile.name,
                        spec.input_gb,
                        run.submitted_s,
                        run.started_s,
                        run.finished_s,
                        tasks,
                    )
                )
        result.killed_tasks = sum(cluster.killed for cluster in self.clusters.values())
        if self.manager is not None:
            self.manager.holds((), self.now_s)
            result.updates, result.reconfigurations = self.manager.updates, self.manager.reconfigurations
            found = dict(self.manager.overall)
            for name, member in self.manager.members.items():
                found[name] = found.get(name, 0) + member.overall
            result.overall = {name: float(d) for name, d in found.items()}


def simulate(setup: Setup) -> Result:
    """Simulate one setup and return its result."""
    return Simulation(setup).run()
