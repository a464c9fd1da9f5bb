"""One MR-cluster in virtual time: its nodes, slots, FIFO queue of jobs, task durations and metrics.

A task's duration is fixed when it starts; it depends on how many tasks then share the disks that it uses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from harness.systems.fawkes.shares import Metrics
from harness.systems.fawkes.simulator.model import ClusterSetup, Constants, MRJob, NodeKind

MAP, REDUCE = 0, 1
#: Order in which slots are filled: core nodes first, because they hold the input.
_ORDER: dict[NodeKind, int] = {"core": 0, "transient-core": 1, "transient": 2}


@dataclass(slots=True, eq=False)
class Node:
    """A node of an MR-cluster.

    ``own_gb`` is the output that tasks wrote here first. ``spread_at`` is `Cluster.spread_gb` at the time it joined: it
    holds only replicas that were written later.
    """

    id: int
    kind: NodeKind
    free: list[int]
    running: dict[int, Task] = field(default_factory=dict)
    own_gb: float = 0.0
    spread_at: float = 0.0
    leaving: bool = False


@dataclass(slots=True, eq=False)
class Task:
    """One running attempt of a task."""

    id: int
    job: JobRun
    kind: int
    index: int
    node: Node
    started_s: float
    alive: bool = True


@dataclass(slots=True, eq=False)
class JobRun:
    """A submitted job.

    ``todo`` lists, for maps and for reduces, the indices of tasks that have not started or have to start again;
    ``left`` counts tasks that have not ended. ``early`` are reduces that started before the last map ended. ``maps`` is
    the number of maps.
    """

    spec: MRJob
    number: int
    submitted_s: float
    ready_s: float
    todo: list[list[int]]
    left: list[int]
    reduce_s: float
    maps: int
    early: list[Task] = field(default_factory=list)
    started_s: float | None = None
    finished_s: float | None = None

    @property
    def tasks_waiting(self) -> int:
        """The number of tasks that have not started."""
        return len(self.todo[MAP]) + len(self.todo[REDUCE])

    def may_start(self, kind: int, slow_start: float) -> bool:
        """Whether tasks of a kind may start. Reduces may once the fraction ``slow_start`` of the maps has ended."""
        return kind == MAP or self.maps - self.left[MAP] >= slow_start * self.maps


class Cluster:
    """The state of one MR-cluster between events."""

    def __init__(self, setup: ClusterSetup, constants: Constants, seed: int) -> None:
        self.setup, self.constants, self.seed = setup, constants, seed
        self.nodes: dict[int, Node] = {}
        self.queue: list[JobRun] = []  # submitted and not finished, in order of submission
        self.active = False
        self.running = [0, 0]
        self.output_gb = 0.0
        #: GB of second and third replicas that each storage node has received so far.
        self.spread_gb = 0.0
        self.done_jobs: deque[float] = deque()
        self.done_tasks: deque[float] = deque()
        self.replicating_until = -1.0
        self.replicating = 0
        self.numbers = 0
        self.killed = 0
        self.started = 0

    # --- nodes ---

    def add(self, node_id: int, kind: NodeKind) -> None:
        """Add a node."""
        slots = [self.constants.map_slots, self.constants.reduce_slots]
        self.nodes[node_id] = Node(node_id, kind, slots, spread_at=self.spread_gb)

    def usable(self) -> list[Node]:
        """The nodes that are not leaving."""
        return [node for node in self.nodes.values() if not node.leaving]

    def storage(self) -> list[Node]:
        """Return the nodes that store output and are not leaving."""
        return [node for node in self.nodes.values() if node.kind != "transient" and not node.leaving]

    def stored_gb(self, node: Node) -> float:
        """Return the data stored on a node, GB; 0 on transient nodes."""
        return node.own_gb + self.spread_gb - node.spread_at if node.kind != "transient" else 0.0

    def to_release(self, count: int) -> list[Node]:
        """Return the `count` nodes that leave first.

        Transient nodes come first, then transient-core nodes, those with the least stored data first. Core nodes never
        leave.
        """
        found = [node for node in self.usable() if node.kind != "core"]
        found.sort(key=lambda node: (node.kind != "transient", self.stored_gb(node), -node.id))
        return found[:count]

    def kill(self, node: Node) -> None:
        """Kill the node's running tasks; they wait to be started again."""
        for task in node.running.values():
            task.alive = False
            self.running[task.kind] -= 1
            task.job.todo[task.kind].append(task.index)
            self.killed += 1
        node.running.clear()

    def leave_s(self, leaving: list[Node], now_s: float) -> list[float]:
        """Return the time at which each leaving node has replicated its data, s; until the last, disks are slower.

        The data of the nodes are copied in the given order, at the common rate of all pairs of sender and receiver.
        """
        staying = len(self.storage())
        pairs = max(min((staying + len(leaving)) / 2, staying), 1.0)
        moved, times = 0.0, []
        for node in leaving:
            moved += self.stored_gb(node)
            times.append(now_s + moved / (pairs * self.constants.replication_gb_s))
        if moved > 0:
            self.replicating_until = max(self.replicating_until, times[-1])
            self.replicating = min(len(leaving), staying)
        return times

    # --- jobs and tasks ---

    def submit(self, job: MRJob, submitted_s: float, now_s: float) -> JobRun:
        """Submit a job and return its state."""
        maps = job.profile.maps(job.input_gb, self.constants)
        reduces = job.profile.reduces(job.input_gb)
        # Indices are popped from the end, so the list is reversed to start the first task first.
        todo = [list(range(maps - 1, -1, -1)), list(range(reduces - 1, -1, -1))]
        ready_s = now_s + self.constants.job_setup_s
        run = JobRun(
            job, self.numbers, submitted_s, ready_s, todo, [maps, reduces], job.profile.one_reduce_s(job.input_gb), maps
        )
        self.numbers += 1
        self.queue.append(run)
        return run

    def start(self, now_s: float) -> Iterator[tuple[float, Task]]:
        """Fill free slots in FIFO order (Hadoop 1's FIFO scheduler) and yield (end time, task) for each end now known.

        Durations are computed after all tasks that start now have started, so that the first task of a wave does not
        run as if it were alone. A reduce that starts before the job's last map has ended holds its slot and copies map
        output; its end becomes known when the last map ends.
        """
        started: list[Task] = []
        copied: list[Task] = []
        for job in self.queue:
            if job.early and job.left[MAP] == 0:
                copied += [task for task in job.early if task.alive]
                job.early = []
        for kind in (MAP, REDUCE):
            waiting = [
                job
                for job in self.queue
                if job.todo[kind] and job.ready_s <= now_s and job.may_start(kind, self.constants.slow_start)
            ]
            if not waiting:
                continue
            open_nodes = sorted(
                (node for node in self.nodes.values() if node.free[kind] and not node.leaving),
                key=lambda node: (_ORDER[node.kind], node.id),
            )
            at = 0
            for job in waiting:
                todo = job.todo[kind]
                while todo and at < len(open_nodes):
                    node = open_nodes[at]
                    if not node.free[kind]:
                        at += 1
                        continue
                    node.free[kind] -= 1
                    task = Task(self.started, job, kind, todo.pop(), node, now_s)
                    self.started += 1
                    node.running[task.id] = task
                    self.running[kind] += 1
                    if job.started_s is None:
                        job.started_s = now_s
                    if kind == REDUCE and job.left[MAP]:
                        job.early.append(task)
                    else:
                        started.append(task)
                if at >= len(open_nodes):
                    break
        if started or copied:
            pace = self._pace(now_s)
            for task in started:
                yield now_s + self._task_s(task, pace), task
            for task in copied:
                # Copying takes the fraction ``shuffle`` and may be over by now; sorting and reducing start after the
                # last map ends.
                own_s = self._task_s(task, pace)
                copy_s = own_s * task.job.spec.profile.shuffle
                yield max(now_s, task.started_s + copy_s) + own_s - copy_s, task

    def _pace(self, now_s: float) -> tuple[float, float, float]:
        """Return the factors by which reading input, writing output and crossing the network take longer than alone.

        Disks work at reference speed while they serve at most as many tasks as their nodes have slots. Nodes that hand
        on their data slow down the disks of the nodes that receive them.
        """
        c = self.constants
        kinds = [node.kind for node in self.usable()]
        core = max(kinds.count("core"), 1)
        storage = max(core + kinds.count("transient-core"), 1)
        busy = 1.0 + (self.replicating / storage if now_s < self.replicating_until else 0.0)
        inputs = storage if self.setup.everywhere else core
        read = max(1.0, self.running[MAP] / (inputs * c.map_slots)) * busy
        write = max(1.0, self.running[REDUCE] / (storage * c.reduce_slots)) * busy
        far = 1.0 + c.wan * (1.0 - 1.0 / self.setup.sites)
        # Replicas of the output cross the network too, so writing slows down with it.
        return read, write * far, far

    def _task_s(self, task: Task, pace: tuple[float, float, float]) -> float:
        profile = task.job.spec.profile
        read, write, far = pace
        if task.kind == MAP:
            own = profile.map_s * (1.0 - profile.read + profile.read * read)
        else:
            still = 1.0 - profile.shuffle - profile.write
            own = task.job.reduce_s * (still + profile.shuffle * far + profile.write * write)
        return round(own * (1.0 + self.constants.spread * self._draw(task)), 3)

    def _draw(self, task: Task) -> float:
        """Return a number uniform in [-1, 1] that is fixed by seed, MR-cluster, job and task.

        It does not depend on the policy, so that all policies run the same tasks.
        """
        x = (self.seed * 0x9E3779B97F4A7C15 + task.job.number * 0xBF58476D1CE4E5B9) & _MASK
        x = (x ^ (task.index * 2 + task.kind + 1) * 0x94D049BB133111EB) & _MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        return 2.0 * ((x ^ (x >> 31)) >> 11) / (1 << 53) - 1.0

    def end(self, task: Task, now_s: float) -> bool:
        """Record the end of a task and return whether its job has ended too."""
        job = task.job
        node = task.node
        del node.running[task.id]
        node.free[task.kind] += 1
        self.running[task.kind] -= 1
        job.left[task.kind] -= 1
        self.done_tasks.append(now_s)
        if task.kind == REDUCE:
            profile = job.spec.profile
            out = profile.output * job.spec.input_gb / profile.reduces(job.spec.input_gb)
            self.output_gb += out
            if node.kind != "transient":
                node.own_gb += out
            copies = self.constants.replicas - (node.kind != "transient")
            self.spread_gb += copies * out / max(len(self.storage()), 1)
        if job.left[REDUCE] == 0 and job.left[MAP] == 0:
            job.finished_s = now_s
            self.queue.remove(job)
            self.done_jobs.append(now_s)
            return True
        return False

    # --- metrics ---

    def metrics(self, now_s: float, period_s: float, reference_s: Mapping[tuple[str, float], float]) -> Metrics:
        """Return the metrics that FAWKES samples (section 4.3).

        Completions are those of the last `period_s` seconds.
        """
        for done in (self.done_jobs, self.done_tasks):
            while done and done[0] <= now_s - period_s:
                done.popleft()
        waiting = [job for job in self.queue if job.started_s is None]
        nodes = len(self.usable())
        slots = nodes * (self.constants.map_slots + self.constants.reduce_slots)
        storage = len(self.storage()) * self.constants.storage_gb
        slowdowns = [
            (now_s - job.submitted_s) / reference_s.get((job.spec.profile.name, job.spec.input_gb), 1.0)
            for job in self.queue
        ]
        return Metrics(
            waiting_jobs=len(waiting),
            waiting_gb=sum(job.spec.input_gb for job in waiting),
            waiting_tasks=sum(job.tasks_waiting for job in self.queue),
            running_jobs=len(self.queue) - len(waiting),
            running_tasks=sum(self.running),
            processor=sum(self.running) / slots if slots else 0.0,
            disk=min(self.output_gb / storage, 1.0) if storage else 0.0,
            slowdown=sum(slowdowns) / len(slowdowns) if slowdowns else 0.0,
            completed_jobs=len(self.done_jobs),
            completed_tasks=len(self.done_tasks),
        )


_MASK = (1 << 64) - 1
