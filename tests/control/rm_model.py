"""A ResourceManager in memory, in virtual time, whose true consumption is known: for tests of what looks at one.

Figures behave as Hadoop 3.4.2's: what ended is exact, what runs is kept for 3 s, a container that ends renews it. It is
no stand-in for a real RM (those tests are in tests/cluster); it is there to count exactly and to fail on command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from harness.model.resources import ZERO, Resource
from harness.yarn import adminrpc, jmx
from harness.yarn.adminrpc import EffectiveQueue
from harness.yarn.answers import AppList, AppStatus, ClusterInfo
from harness.yarn.capacity.source import Configuration, ConfigurationSource, FileSource
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.fair.manager import queue_tree
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.files import ConfigStore, FileChanged, always
from harness.yarn.queue_answers import CAPACITY as CAPACITY_SCHEDULER
from harness.yarn.queue_answers import QueueStatus, SchedulerStatus
from harness.yarn.rmclient import NotEffective
from tests.control.soak import capacities

CAPACITY = Resource(100 * 1024, 100)


@dataclass
class Container:
    size: Resource
    began_s: float
    ended_s: float | None = None

    def used(self, until_s: float, since_s: float = 0.0) -> tuple[int, int]:
        """As the RM counts: whole milliseconds, whole results."""
        end = until_s if self.ended_s is None else min(self.ended_s, until_s)
        ms = round(max(end - max(self.began_s, since_s), 0.0) * 1000)
        return self.size.memory_mb * ms // 1000, self.size.vcores * ms // 1000


@dataclass
class App:
    queue: str
    submitted_s: float = 0.0
    containers: list[Container] = field(default_factory=list)
    final: bool = False
    finished_s: float = 0.0
    pending: int = 0
    cached_s: float = -1e9
    cached: tuple[int, int] = (0, 0)
    #: What an RM that began anew does not know of: containers that ended before, and those whose node is not back.
    forgotten: set[int] = field(default_factory=set)
    #: What its figures say beyond the truth.
    lie: tuple[int, int] = (0, 0)

    def live(self) -> list[Container]:
        return [c for c in self.containers if c.ended_s is None and id(c) not in self.forgotten]

    def held(self) -> Resource:
        return sum((c.size for c in self.live()), ZERO)

    def figure(self, now_s: float) -> tuple[int, int]:
        ended = [c.used(now_s) for c in self.containers if c.ended_s is not None and id(c) not in self.forgotten]
        if now_s - self.cached_s > 3.0:
            live = [c.used(now_s) for c in self.live()]
            self.cached, self.cached_s = (sum(m for m, _ in live), sum(v for _, v in live)), now_s
        return sum(m for m, _ in ended) + self.cached[0], sum(v for _, v in ended) + self.cached[1]


class MemoryPlace(ConfigStore):
    """An allocation file in memory that can fail on command."""

    name = "memory"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.writes: list[bytes] = []
        self.fail: Exception | None = None
        #: The other files of its folder.
        self.others: dict[str, MemoryPlace] = {}

    def read(self) -> bytes:
        return self.data

    @property
    def file_name(self) -> str:
        return "memory.xml"

    def beside(self, name: str) -> MemoryPlace:
        return self.others.setdefault(name, MemoryPlace(b""))

    def remove(self) -> None:
        self.data = b""

    def _put(self, data: bytes, still: Callable[[], None] = always) -> None:
        still()
        if self.fail is not None:
            raise self.fail
        self.data = data
        self.writes.append(data)


class RmModel:
    """The RM and a client for it in one. ``down`` makes every call fail; ``answers`` overrides single ones."""

    def __init__(self, place: MemoryPlace, now_s: float = 1000.0) -> None:
        self.place, self.now_s = place, now_s
        self.apps: dict[str, App] = {}
        self.began_ms = 1
        self.version = "3.4.2"
        #: By how much its clock is ahead of the true time (None: it does not show its clock).
        self.clock_ahead_s: float | None = 0.0
        self.began_s = now_s
        self.down: Exception | None = None
        self.refreshes = 0
        #: Whether the RM takes the file when it is told to.
        self.loads = True
        #: Whether its queues keep their scheduling policies whatever the file says; what it cuts maximum shares to.
        self.keeps_policies = False
        self.policies: dict[str, str] = {}
        self.caps: Resource | None = None
        self.extra_queues: list[str] = []
        #: Hosts of its nodes (empty: it does not show them).
        self.hosts: list[str] = []
        #: Its `yarn.resourcemanager.cluster-id` ("": it has none).
        self.cluster_id = ""
        #: Applications of which the list of all says nonsense -> why.
        self.senseless: dict[str, str] = {}
        #: Applications that it has refused: they failed before they had a container.
        self.refused: set[str] = set()
        #: Whether the list of applications is empty, whatever there is.
        #: Application -> the memory-seconds that preemption has killed of it.
        self.preempted: dict[str, int] = {}
        self.hides_apps = False
        #: Whether its JMX page shows how many containers each queue was given and has given back.
        self.counts = False
        #: How often it renews that page.
        self.counts_every_s = 0.0
        self._counted: tuple[float, list[dict[str, Any]]] = (-1e9, [])
        self._load()
        http = SimpleNamespace(current="http://rm", request=self._jmx)
        self.rest = SimpleNamespace(
            http=http,
            info=self._info,
            scheduler=self._scheduler,
            apps=self._apps,
            nodes=self._nodes,
            properties=dict,
        )
        self.rms = [SimpleNamespace(rest="http://rm")]

    # --- what happens on the cluster ---

    def clock(self) -> float:
        return self.now_s

    def submit(self, app: str, queue: str) -> App:
        self.apps[app] = found = App(queue, self.now_s)
        return found

    def start(self, app: str, memory_mb: int = 1024, vcores: int = 1) -> Container:
        container = Container(Resource(memory_mb, vcores), self.now_s)
        self.apps[app].containers.append(container)
        return container

    def end(self, app: str, container: Container) -> None:
        container.ended_s = self.now_s
        self.apps[app].cached_s = -1e9

    def finish(self, app: str) -> None:
        found = self.apps[app]
        for container in found.live():
            self.end(app, container)
        found.final, found.finished_s, found.pending = True, self.now_s, 0

    def restart(self) -> None:
        """The RM begins anew and recovers its applications; no node is back yet."""
        self.began_ms += 1
        self.began_s = self.now_s
        self._load()
        for app in self.apps.values():
            app.forgotten |= {id(c) for c in app.containers} if not app.final else set()
            app.cached_s = -1e9

    def node_back(self, containers: list[Container]) -> None:
        """A node shows the recovering RM its containers: those that run, and those that ended while it was away."""
        known = {id(c): c for c in containers if c.ended_s is None or c.ended_s >= self.began_s}
        for app in self.apps.values():
            # As Hadoop: only a container that has ended renews the figure of what runs.
            if any(known[i].ended_s is not None for i in app.forgotten & known.keys()):
                app.cached_s = -1e9
            app.forgotten -= known.keys()

    def truth(self, queue: str) -> tuple[float, float]:
        """What a queue has really used."""
        used = [c.used(self.now_s) for app in self.apps.values() if app.queue == queue for c in app.containers]
        return float(sum(m for m, _ in used)), float(sum(v for _, v in used))

    # --- what a client sees ---

    def _load(self) -> None:
        self.file = parse_allocations(self.place.read())
        self.tree = queue_tree(self.file)
        if not self.keeps_policies:
            self.policies = {queue.path: queue.policy for queue in self.tree}

    def _maximum(self, path: str) -> Resource:
        """As Hadoop shows it: raised to the minimum share, cut to the cluster."""
        most = self.file.max_resources(path).resolve(CAPACITY).at_least(self.file.min_resources(path))
        cut = self.caps or CAPACITY
        return Resource(min(most.memory_mb, cut.memory_mb), min(most.vcores, cut.vcores))

    def _check(self) -> None:
        if self.down is not None:
            raise self.down

    def _info(self) -> ClusterInfo:
        self._check()
        clock_s = None if self.clock_ahead_s is None else self.now_s + self.clock_ahead_s
        return ClusterInfo(self.began_ms, self.began_ms, "STARTED", "ACTIVE", self.version, clock_s)

    def _nodes(self, **_: Any) -> list[Any]:
        self._check()
        return [SimpleNamespace(host=host) for host in self.hosts]

    def _jmx(self, _method: str = "GET", path: str = "/jmx", **_: Any) -> Any:
        if path == "/conf":
            if not self.cluster_id:
                raise Refused("HTTP 404", status=404)
            return SimpleNamespace(document={"property": {"value": self.cluster_id}}, url="http://rm/conf")
        if not self.counts:
            raise Refused("HTTP 404", status=404)
        if self.now_s - self._counted[0] >= self.counts_every_s:
            self._counted = (self.now_s, self._beans())
        return SimpleNamespace(document={"beans": self._counted[1]}, url="http://rm/jmx")

    def _beans(self) -> list[dict[str, Any]]:
        beans = []
        for path in (queue.path for queue in self.tree):
            given = [c for a in self.apps.values() if (a.queue + ".").startswith(path + ".") for c in a.containers]
            beans.append(
                {
                    "name": ",".join((jmx.BEANS, *(f"q{at}={name}" for at, name in enumerate(path.split("."))))),
                    "AggregateContainersAllocated": len(given),
                    "AggregateContainersReleased": sum(c.ended_s is not None for c in given),
                }
            )
        return beans

    def _scheduler(self) -> SchedulerStatus:
        self._check()
        queues = {queue.path: (queue.parent, queue.leaf) for queue in self.tree}
        for path in self.extra_queues:
            queues[path] = (path.rpartition(".")[0], True)
        found = {}
        for path in sorted(queues, key=lambda path: path.split(".")):
            parent, leaf = queues[path]
            inside = [a for a in self.apps.values() if (a.queue + ".").startswith(path + ".") and not a.final]
            held = sum((a.held() for a in inside), ZERO)
            pending = sum(a.pending for a in inside)
            found[path] = QueueStatus(
                path=path,
                parent=parent,
                leaf=leaf,
                policy=self.policies.get(path, "fair"),
                minimum=self.file.min_resources(path),
                maximum=self._maximum(path),
                used=held,
                am_maximum=CAPACITY,
                demand=held + Resource(1024, 1) * pending,
                steady_share=ZERO,
                fair_share=ZERO,
                reserved=ZERO,
                containers_allocated=sum(len(a.live()) for a in inside),
                containers_pending=pending,
                max_apps=100,
                pending_apps=0,
                active_apps=len(inside),
                preemptable=True,
            )
        return SchedulerStatus("fairScheduler", CAPACITY, found)

    def _apps(self, *, states: Any = (), finished_from_ms: int | None = None) -> AppList:
        self._check()
        if self.hides_apps:
            return AppList()
        found, skipped = AppList(), self.senseless
        found.skipped = skipped
        for name, app in self.apps.items():
            if name in skipped:
                continue
            state = "RUNNING" if not app.final else "FAILED" if name in self.refused else "FINISHED"
            if states and state not in states:
                continue
            if finished_from_ms is not None and app.finished_s * 1000 < finished_from_ms:
                continue
            memory, vcores = (figure + more for figure, more in zip(app.figure(self.now_s), app.lie, strict=True))
            found.append(
                AppStatus(
                    id=name,
                    user="u",
                    name=name,
                    queue=app.queue,
                    state=state,
                    final_status="",
                    type="",
                    tags=frozenset(),
                    progress_percent=0.0,
                    started_ms=1,
                    launched_ms=0 if name in self.refused else 1,
                    finished_ms=round(app.finished_s * 1000),
                    allocated=app.held(),
                    reserved=ZERO,
                    running_containers=len(app.live()),
                    memory_seconds=memory,
                    vcore_seconds=vcores,
                    preempted_memory_seconds=self.preempted.get(name, 0),
                    diagnostics="",
                    elapsed_ms=round(((app.finished_s if app.final else self.now_s) - app.submitted_s) * 1000),
                )
            )
        return found

    def refresh_queues(self) -> float:
        self._check()
        self.refreshes += 1
        if self.loads:
            self._load()
        return 0.001

    def effective_queues(self) -> Mapping[str, EffectiveQueue]:
        self._check()
        return {queue.path: EffectiveQueue(queue.path, queue.parent, queue.weight, ZERO, 1) for queue in self.tree}

    def weights(self, status: SchedulerStatus) -> dict[str, float]:
        if status.type == CAPACITY_SCHEDULER:
            return {path: queue.setting for path, queue in status.queues.items() if queue.setting is not None}
        return {path: queue.weight for path, queue in self.effective_queues().items()}

    def weights_or_why(self, status: SchedulerStatus) -> tuple[dict[str, float] | None, str]:
        return self.weights(status), ""

    def confirm_weights(self, wanted: Mapping[str, float], *, timeout_s: float = 5.0, every_s: float = 0.05) -> float:
        if wrong := adminrpc.weights_differ(wanted, dict(self.effective_queues())):
            raise NotEffective(wrong, where="rm", waited_s=timeout_s)
        return 0.001


class MemoryStore(ConfigurationSource):
    """A Capacity Scheduler's own store, which refuses what its ResourceManager would not start with."""

    name = "store"

    def __init__(self, data: bytes) -> None:
        self.now = Configuration(capacities.properties(data), 1)
        #: Queues -> why the RM refuses them, beside what it refuses in any case ('': it does not).
        self.rule: Callable[[Mapping[str, capacities.Queue]], str] = lambda _: ""

    def read(self) -> Configuration:
        self.recognise()
        return self.now

    def write(
        self, changes: Mapping[str, str | None], before: Configuration, still: Callable[[], None] = always
    ) -> Configuration:
        self.recognise()
        still()
        if before != self.now:
            raise FileChanged("somebody else changed it", where=self.name)
        values = {name: value for name, value in {**self.now.values, **changes}.items() if value is not None}
        self.put(values)
        return self.now

    def put(self, values: Mapping[str, str]) -> None:
        """Change it as somebody does who uses the RM's call."""
        try:
            why = self.rule(capacities.read(capacities.stored(values)))
        except capacities.Unreadable as error:
            why = str(error)
        if why:
            raise Refused(f"HTTP 400: {why}", status=400)
        self.now = Configuration(dict(values), self.now.mark + 1)

    def load(self, client: Any) -> None:
        """Nothing: what is put is in force."""

    def shown(self, configuration: Configuration, changes: Mapping[str, str | None]) -> tuple[bytes, bytes]:
        after = {name: value for name, value in {**configuration.values, **changes}.items() if value is not None}
        return capacities.stored(configuration.values), capacities.stored(after)


class CapacityRmModel(RmModel):
    """`RmModel` with a Capacity Scheduler: it refuses to load a file with which it would not start.

    ``source`` is where its configuration is kept: the file, or a store (``store``).
    """

    def __init__(self, data: bytes, *, store: bool = False, now_s: float = 1000.0) -> None:
        self.store = MemoryStore(data) if store else None
        #: As `MemoryStore.rule`, of a file.
        self.rule: Callable[[Mapping[str, capacities.Queue]], str] = lambda _: ""
        super().__init__(MemoryPlace(data), now_s)
        self.source: ConfigurationSource = self.store or FileSource(self.place)
        self.rest.properties = dict

    def data(self) -> bytes:
        """The configuration as it is kept now."""
        return capacities.stored(self.store.now.values) if self.store is not None else self.place.data

    def _load(self) -> None:
        try:
            queues = capacities.read(self.data())
            why = self.rule(queues)
        except capacities.Unreadable as error:
            why = str(error)
        if why:
            raise Refused(f"IOException: Failed to re-init queues: {why}", exception="IOException")
        self.queues = queues

    def starts(self) -> bool:
        """Whether it would start with what is kept now."""
        try:
            capacities.read(self.data())
        except capacities.Unreadable:
            return False
        return True

    def settings(self) -> dict[str, float]:
        """The capacities in force."""
        queues = capacities.read(self.data()) if self.store is not None else self.queues
        return {path: queue.weight for path, queue in queues.items() if path != "root"}

    def _scheduler(self) -> SchedulerStatus:
        self._check()
        shown = capacities.read(self.data()) if self.store is not None else self.queues
        found = {}
        for path, queue in sorted(shown.items(), key=lambda item: item[0].split(".")):
            inside = [a for a in self.apps.values() if (a.queue + ".").startswith(path + ".") and not a.final]
            held = sum((a.held() for a in inside), ZERO)
            pending = sum(a.pending for a in inside)
            found[path] = QueueStatus(
                path=path,
                parent=queue.parent or None,
                leaf=queue.leaf,
                policy="fifo" if queue.leaf else "utilization",
                minimum=ZERO,
                maximum=CAPACITY,
                used=held,
                am_maximum=CAPACITY,
                demand=held + Resource(1024, 1) * pending,
                steady_share=ZERO,
                fair_share=ZERO,
                reserved=ZERO,
                containers_allocated=sum(len(a.live()) for a in inside),
                containers_pending=pending,
                max_apps=100,
                pending_apps=0,
                active_apps=len(inside),
                preemptable=True,
                setting=queue.weight,
            )
        return SchedulerStatus("capacityScheduler", CAPACITY, found)

    def confirm_settings(self, wanted: Mapping[str, float], *, timeout_s: float = 5.0, every_s: float = 0.05) -> float:
        has = self.settings()
        wrong = {
            path: f"it has {has.get(path)}"
            for path, value in wanted.items()
            if path != "root" and not math.isclose(has.get(path, math.nan), value, rel_tol=1e-6)
        }
        if wrong:
            raise NotEffective(wrong, where="rm", waited_s=timeout_s)
        return 0.001


def silence() -> Unreachable:
    return Unreachable("nothing answers", where="http://rm")
