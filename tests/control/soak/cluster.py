"""The cluster as it really is: nodes, queues' applications, containers, and what each has truly used.

Containers go to the leaf that waits and has the least memory for its weight, level by level, as a Fair Scheduler does
in the large. The workload has random numbers of its own, so that a fault more or less does not change who comes.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.control.soak.clock import Agenda
from tests.control.soak.edits import Queue

NODE_MB, NODE_VCORES = 16 * 1024, 16
#: No more applications come while so many are there: a backlog without end tests nothing.
MOST_LIVE = 8


@dataclass(eq=False)
class Container:
    memory_mb: int
    vcores: int
    node: int
    began_s: float
    ended_s: float | None = None
    began_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.began_ms = round(self.began_s * 1000)

    def used(self, until_s: float) -> tuple[int, int]:
        """As the RM counts: whole milliseconds, whole results."""
        end_s = until_s if self.ended_s is None else min(self.ended_s, until_s)
        ms = max(round(end_s * 1000) - self.began_ms, 0)
        return self.memory_mb * ms // 1000, self.vcores * ms // 1000


@dataclass(eq=False)
class App:
    id: str
    queue: str
    submitted_s: float
    task_mb: int
    task_s: float
    waiting: int
    containers: list[Container] = field(default_factory=list)
    task_vcores: int = 1
    ended_s: float | None = None
    #: From when on the RM shows that it has ended: it saves that first.
    shown_ended_s: float = 0.0
    #: Its figure as the RM's store has it since its end (None: no RM saw its end).
    stored: tuple[int, int] | None = None
    #: Sums of ended containers, so that long ones need no list of them.
    ended_mb_s: int = 0
    ended_vcore_s: int = 0
    #: Whether the RM refused it: it failed before it was ever given a container.
    refused: bool = False
    #: What its containers hold: MiB and vcores.
    held: tuple[int, int] = (0, 0)

    def truth(self, now_s: float) -> tuple[int, int]:
        memory, vcores = self.ended_mb_s, self.ended_vcore_s
        for container in self.containers:
            used = container.used(now_s)
            memory, vcores = memory + used[0], vcores + used[1]
        return memory, vcores

    def takes(self, container: Container) -> None:
        self.containers.append(container)
        self.held = self.held[0] + container.memory_mb, self.held[1] + container.vcores

    def gives_back(self, container: Container) -> None:
        """A container has ended."""
        self.containers.remove(container)
        self.held = self.held[0] - container.memory_mb, self.held[1] - container.vcores
        memory, vcores = container.used(container.ended_s or 0.0)
        self.ended_mb_s, self.ended_vcore_s = self.ended_mb_s + memory, self.ended_vcore_s + vcores


class Cluster:
    """What runs. ``queues`` is what the active RM has loaded; ``on_end`` is told of each container and its end."""

    def __init__(
        self,
        agenda: Agenda,
        rng: random.Random,
        *,
        nodes: int,
        period_s: float,
        tasks: float = 1.0,
        light: bool = False,
    ) -> None:
        self.agenda, self.rng, self.period_s, self.tasks, self.light = agenda, rng, period_s, tasks, light
        self.alive = [True] * nodes
        #: Whether there is an RM that gives anything, and which nodes it knows.
        self.served, self.registered = True, [True] * nodes
        self.free_mb = [NODE_MB] * nodes
        self.apps: dict[str, App] = {}
        self.ended: list[App] = []
        self.by_id: dict[str, App] = {}
        self.queues: dict[str, Queue] = {}
        self.ad_hoc: list[str] = []
        self.arriving = True
        #: Whether nothing comes and nothing is given, though there is an RM.
        self.paused = False
        self.on_end: Callable[[App, Container], None] = lambda _app, _container: None
        self.on_start: Callable[[App, Container], None] = lambda _app, _container: None
        self.on_finish: Callable[[App], tuple[int, int] | None] = lambda _app: None
        #: Whether the RMs' own configuration, which they read when they begin, has preemption on.
        self.preempts = False
        #: How long the RM's store takes at most to save that an application has ended, seconds.
        self.saving_s = 0.3
        self._number = 0
        self._apart_s = period_s * rng.uniform(1.5, 4.0)
        agenda.after(0.0, self._arrive)

    @property
    def capacity_mb(self) -> int:
        return NODE_MB * sum(self.alive)

    @property
    def capacity_vcores(self) -> int:
        return NODE_VCORES * sum(self.alive)

    def leaves(self) -> list[str]:
        """Where applications may go."""
        return [q.path for q in self.queues.values() if q.leaf] + self.ad_hoc

    def _arrive(self) -> None:
        if self.arriving and not self.paused and len(self.apps) < MOST_LIVE and (leaves := self.leaves()):
            self.submit(self.rng.choice(leaves))
        self.agenda.after(self.rng.expovariate(1.0) * self._apart_s, self._arrive)

    def submit(self, queue: str) -> App:
        self._number += 1
        task_s = max(self.period_s * self.rng.uniform(0.3, 6.0) * self.tasks, 0.5)
        app = App(
            f"application_1699999999000_{self._number:04d}",
            queue,
            self.agenda.now_s,
            1024 * self.rng.randint(1, 3),
            task_s,
            self.rng.randint(1, 3 if self.light else 24),
            task_vcores=self.rng.randint(1, 3),
        )
        self.apps[app.id] = self.by_id[app.id] = app
        if self.served and not self.paused:
            self.start(app, 1024, master=True)
            self.assign()
        return app

    def refuse(self, queue: str) -> None:
        """An application that the RM does not take."""
        self._number += 1
        identity, now_s = f"application_1699999999000_{self._number:04d}", self.agenda.now_s
        app = App(identity, queue, now_s, 1024, 1.0, 0, ended_s=now_s, shown_ended_s=now_s, stored=(0, 0), refused=True)
        self.by_id[app.id] = app
        self.ended.append(app)

    def start(self, app: App, memory_mb: int, *, master: bool = False) -> bool:
        """A container on a node that has room: nodes' heartbeats come in any order."""
        first = self.rng.randrange(len(self.free_mb))
        for node in (*range(first, len(self.free_mb)), *range(first)):
            if self.alive[node] and self.registered[node] and self.free_mb[node] >= memory_mb:
                container = Container(memory_mb, 1 if master else app.task_vcores, node, self.agenda.now_s)
                app.takes(container)
                self.free_mb[node] -= memory_mb
                self.on_start(app, container)
                if not master:
                    length = app.task_s * self.rng.uniform(0.5, 1.5)
                    self.agenda.after(length, functools.partial(self._task_ended, app, container))
                return True
        return False

    def _task_ended(self, app: App, container: Container) -> None:
        if container.ended_s is None:
            self.end(app, container)
            self._maybe_over(app)
            self.assign()

    def end(self, app: App, container: Container) -> None:
        container.ended_s = self.agenda.now_s
        app.gives_back(container)
        if self.alive[container.node]:
            self.free_mb[container.node] += container.memory_mb
        self.on_end(app, container)

    def _maybe_over(self, app: App) -> None:
        if app.ended_s is None and not app.waiting and len(app.containers) <= 1:
            self.finish(app)

    def finish(self, app: App) -> None:
        for container in list(app.containers):
            self.end(app, container)
        app.waiting, app.ended_s = 0, self.agenda.now_s
        app.shown_ended_s = self.agenda.now_s + self.rng.random() * self.saving_s
        app.stored = self.on_finish(app)
        del self.apps[app.id]
        self.ended.append(app)

    def assign(self) -> None:
        """Gives what is free to who waits."""
        if not self.served or self.paused:
            return
        waiting: dict[str, list[App]] = {}
        for app in self.apps.values():
            if app.waiting:
                waiting.setdefault(app.queue, []).append(app)
        used = self._used() if waiting and max(self.free_mb) >= 1024 else {}
        while waiting and max(self.free_mb) >= 1024:
            queue = min(waiting, key=lambda one: (self._rank(one, used), one))
            app = waiting[queue][0]
            master = not app.containers
            size = 1024 if master else app.task_mb
            if not self.start(app, size, master=master):
                del waiting[queue]
                continue
            for path in _upwards(queue):
                used[path] = used.get(path, 0) + size
            app.waiting -= not master
            if not app.waiting:
                waiting[queue].pop(0)
                if not waiting[queue]:
                    del waiting[queue]

    def _used(self) -> dict[str, int]:
        used: dict[str, int] = {}
        for app in self.apps.values():
            held = app.held[0]
            for path in _upwards(app.queue):
                used[path] = used.get(path, 0) + held
        return used

    def _rank(self, queue: str, used: Mapping[str, int]) -> tuple[float, ...]:
        return tuple(
            used.get(path, 0) / max(self.queues[path].weight if path in self.queues else 1.0, 1e-9)
            for path in _upwards(queue)
        )

    def lose_node(self, node: int) -> None:
        """A node is gone with all that ran there; tasks wait again."""
        self.alive[node] = False
        for app in list(self.apps.values()):
            for container in [c for c in app.containers if c.node == node]:
                self.end(app, container)
                app.waiting += 1
        self.free_mb[node] = 0
        self.assign()

    def node_back(self, node: int) -> None:
        if not self.alive[node]:
            self.alive[node], self.free_mb[node] = True, NODE_MB
            self.assign()

    def truth(self, now_s: float) -> dict[str, tuple[int, int]]:
        """Queue -> what its applications have truly used."""
        sums: dict[str, tuple[int, int]] = {}
        for app in (*self.ended, *self.apps.values()):
            memory, vcores = app.truth(now_s)
            before = sums.get(app.queue, (0, 0))
            sums[app.queue] = (before[0] + memory, before[1] + vcores)
        return sums


@functools.cache
def _upwards(queue: str) -> tuple[str, ...]:
    """A queue and its parents, from below the root down."""
    parts = queue.split(".")
    return tuple(".".join(parts[:n]) for n in range(2, len(parts) + 1))
