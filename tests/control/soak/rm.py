"""Two ResourceManagers that share a cluster and a state store: what each knows, has loaded, and shows.

Figures behave as Hadoop 3.4.2's: what ended is exact, what runs is kept for 3 s, a container that ends renews it. An RM
that begins anew knows ended applications by its store, of live ones what their nodes tell it when they are back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tests.control.soak import edits
from tests.control.soak.clock import EPOCH_S
from tests.control.soak.cluster import NODE_MB, NODE_VCORES, App, Cluster, Container
from tests.control.soak.edits import Queue

#: The RM's own poll of its allocation file, and how long the file has to have been still.
POLL_S, STILL_S = 10.0, 5.0
CACHE_S = 3.0
_NOTHING = {"memory": 0, "vCores": 0}


@dataclass
class _Known:
    """What an RM does not know of an application, and what it has kept of what runs."""

    lost: tuple[int, int] = (0, 0)
    hidden: set[Container] = field(default_factory=set)
    cached_s: float = -1e9
    cached: tuple[int, int] = (0, 0)


class _Holds(NamedTuple):
    """What applications of a queue hold and wait for."""

    containers: int
    mb: int
    vcores: int
    waiting: int
    wanted_mb: int
    wanted_vcores: int


class SharedFile:
    """The allocation file as everybody sees it. ``mark`` rises and ``since_s`` is set whenever it is replaced."""

    def __init__(self, path: Path, now_s: Callable[[], float]) -> None:
        self.path, self._now_s = path, now_s
        self.mark, self.since_s = 0, 0.0
        #: How often somebody who is no controller wrote it.
        self.edits = 0

    def replaced(self) -> None:
        self.mark, self.since_s = self.mark + 1, self._now_s()

    def read(self) -> bytes:
        return self.path.read_bytes() if self.path.is_file() else b""

    def put(self, data: bytes) -> None:
        """As an editor that replaces the file whole."""
        other = self.path.with_name("edited")
        other.write_bytes(data)
        other.replace(self.path)
        self.edits += 1
        self.replaced()


class Rm:
    """One of the pair. ``up``: it answers; ``frozen``: it takes calls and says nothing."""

    #: How its configuration is read; under which name a queue's answer has the queues below it.
    words: ModuleType = edits
    below = "childQueues"

    def __init__(self, host: str, cluster: Cluster, file: SharedFile) -> None:
        self.host, self.base, self.cluster, self.file = host, f"http://{host}:8088", cluster, file
        self.up = self.active = True
        self.frozen = False
        self.drops_refresh = self.twice = False
        self.late_refresh_s = 0.0
        self.started_ms = 0
        self.known: dict[str, _Known] = {}
        self.queues: dict[str, Queue] = {}
        self.loaded_mark = -1
        #: Whether that was another file than the one that lies there.
        self.loaded_older = False
        self.loads = self.refused = 0
        self.given: dict[str, list[int]] = {}
        self.forgotten: set[str] = set()
        #: Application -> what preemption has killed of it since this RM began, MiB-seconds.
        self.preempted: dict[str, int] = {}
        self._loaded = b""
        #: What it says of its configuration.
        self.site: dict[str, str] = {}
        self.nodes_named = "node"
        #: Applications that have ended, as they are shown from then on.
        self._over: dict[str, dict[str, Any]] = {}
        self.retained = 400

    # --- its life ---

    def begin(self, *, recovers: bool, older: bytes | None = None) -> None:
        """It becomes active: knows of the cluster what its store and the nodes say."""
        self.started_ms = self._ms(self.cluster.agenda.now_s)
        self.known, self.given, self.preempted = {}, {}, {}
        if recovers:
            for app in self.cluster.apps.values():
                self.known[app.id] = _Known((app.ended_mb_s, app.ended_vcore_s), set(app.containers))
        self.load(older)

    def standing(self) -> tuple[str, int, bool]:
        """Which RM this is, since when, and whether it answers."""
        return self.base, self.started_ms, self.up and not self.frozen

    def node_back(self, node: int) -> list[tuple[str, Container]]:
        """A node tells what runs on it, and what ended there since this RM began: application and container."""
        told: list[tuple[str, Container]] = []
        for app, known in self.known.items():
            back = {c for c in known.hidden if c.node == node}
            known.hidden -= back
            told += [(app, container) for container in back]
            # As Hadoop: only a container that has ended renews the figure of what runs.
            if any(c.ended_s is not None for c in back):
                known.cached_s = -1e9
        return told

    def load(self, data: bytes | None = None) -> bool:
        """Reads its allocation file (or takes this for it); what it cannot read changes nothing."""
        try:
            data_now = self.file.read() if data is None else data
            queues = self.words.read(data_now)
        except edits.Unreadable:
            self.refused += 1
            return False
        self.loaded_mark, self.loaded_older = self.file.mark, data is not None
        self.loads += 1
        self.queues, self._loaded = queues, data_now
        if self.active:
            self.cluster.queues = queues
            self.cluster.assign()
        return True

    def poll(self) -> None:
        """Every `POLL_S`."""
        still = self.cluster.agenda.now_s - self.file.since_s > STILL_S
        if self.up and not self.frozen and self.loaded_mark != self.file.mark and still:
            self.load()

    def refresh(self) -> None:
        """What the admin call does."""
        if self.drops_refresh:
            return
        if self.late_refresh_s:
            self.cluster.agenda.after(self.late_refresh_s, lambda: self.load() and None)
            return
        self.load()
        if self.twice:
            self.load()

    # --- what it shows ---

    def weights(self) -> dict[str, float]:
        """What is in force."""
        return {q.path: q.weight for q in self._tree().values()}

    def _tree(self) -> dict[str, Queue]:
        shown = dict(self.queues)
        for path in self.cluster.ad_hoc:
            parent = path.rpartition(".")[0]
            if path not in shown and parent in shown:
                shown[path] = Queue(path, parent, True, 1.0, 0, ())
        return shown

    def _ms(self, true_s: float) -> int:
        return round((EPOCH_S + true_s) * 1000)

    def figure(self, app: App) -> tuple[int, int]:
        """memorySeconds and vcoreSeconds as they are shown now."""
        if app.stored is not None:
            return app.stored
        now_s = self.cluster.agenda.now_s
        known = self.known.setdefault(app.id, _Known())
        if now_s - known.cached_s > CACHE_S:
            live = [c.used(now_s) for c in app.containers if c not in known.hidden]
            known.cached, known.cached_s = (sum(m for m, _ in live), sum(v for _, v in live)), now_s
        memory = app.ended_mb_s - known.lost[0] + known.cached[0]
        vcores = app.ended_vcore_s - known.lost[1] + known.cached[1]
        for container in known.hidden:
            if container.ended_s is not None:
                late = container.used(now_s)
                memory, vcores = memory - late[0], vcores - late[1]
        return memory, vcores

    def ended(self, app: App, _container: Container) -> None:
        """A container has ended."""
        self.known.setdefault(app.id, _Known()).cached_s = -1e9
        self.given.setdefault(app.queue, [0, 0])[1] += 1

    def started(self, app: App, _container: Container) -> None:
        self.given.setdefault(app.queue, [0, 0])[0] += 1

    def info(self) -> dict[str, Any]:
        state = "ACTIVE" if self.active else "STANDBY"
        return {
            "clusterInfo": {
                "id": self.started_ms,
                "startedOn": self.started_ms,
                "state": "STARTED",
                "haState": state,
                "resourceManagerVersion": "3.4.2",
            }
        }

    def scheduler(self) -> dict[str, Any]:
        tree = self._tree()
        inside: dict[str, list[App]] = {path: [] for path in tree}
        for app in self.cluster.apps.values():
            path = app.queue
            while path:
                if path in inside:
                    inside[path].append(app)
                path = path.rpartition(".")[0]
        below: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(tree, key=lambda p: -p.count(".")):
            queue = tree[path]
            shown = self._queue(queue, inside[path])
            if path in below:
                shown[self.below] = {"queue": below[path]}
            if path == "root":
                return {"scheduler": {"schedulerInfo": self._document(shown)}}
            below.setdefault(queue.parent, []).append(shown)
        raise AssertionError("no root")

    def _document(self, root: dict[str, Any]) -> dict[str, Any]:
        return {"type": "fairScheduler", "rootQueue": root}

    def _holds(self, apps: list[App]) -> _Holds:
        containers = sum(len(a.containers) for a in apps)
        for app in apps:
            if (known := self.known.get(app.id)) is not None and known.hidden:
                containers -= len(known.hidden.intersection(app.containers))
        held = [self.held(a) for a in apps]
        return _Holds(
            containers,
            sum(h[0] for h in held),
            sum(h[1] for h in held),
            sum(a.waiting for a in apps),
            sum(a.waiting * a.task_mb for a in apps),
            sum(a.waiting * a.task_vcores for a in apps),
        )

    def _queue(self, queue: Queue, apps: list[App]) -> dict[str, Any]:
        holds = self._holds(apps)
        cluster = {"memory": self.cluster.capacity_mb, "vCores": self.cluster.capacity_vcores}
        # As Hadoop: raised to the minimum share, cut to the cluster.
        memory, vcores = queue.most or (cluster["memory"], cluster["vCores"])
        most = {
            "memory": min(max(memory, queue.min_mb), cluster["memory"]),
            "vCores": min(max(vcores, queue.min_vcores), cluster["vCores"]),
        }
        shown: dict[str, Any] = {
            "queueName": queue.path,
            "schedulingPolicy": queue.policy,
            "minResources": {"memory": queue.min_mb, "vCores": queue.min_vcores},
            "maxResources": most,
            "usedResources": {"memory": holds.mb, "vCores": holds.vcores},
            "amUsedResources": _NOTHING,
            "amMaxResources": cluster,
            "demandResources": {"memory": holds.mb + holds.wanted_mb, "vCores": holds.vcores + holds.wanted_vcores},
            "steadyFairResources": _NOTHING,
            "fairResources": _NOTHING,
            "reservedResources": _NOTHING,
            "allocatedContainers": holds.containers,
            "pendingContainers": holds.waiting,
            "reservedContainers": 0,
            "maxApps": 100,
        }
        if queue.path == "root":
            shown["clusterResources"] = cluster
        if queue.leaf:
            shown |= {"type": "fairSchedulerLeafQueueInfo", "numPendingApps": 0, "numActiveApps": len(apps)}
        return shown

    def held(self, app: App) -> tuple[int, int]:
        known = self.known.get(app.id)
        if known is None or not known.hidden:
            return app.held
        live = [c for c in app.containers if c not in known.hidden]
        return sum(c.memory_mb for c in live), sum(c.vcores for c in live)

    def looked_at(self) -> None:
        """Somebody's page shows all applications: what is computed for it is kept."""
        for app in (*self.cluster.apps.values(), *self.cluster.ended[-self.retained :]):
            self.figure(app)

    def apps(self, states: Collection[str], ended_from_ms: int | None) -> list[tuple[App, dict[str, Any]]]:
        found, now_s = [], self.cluster.agenda.now_s
        if not states or "RUNNING" in states:
            found += [(app, self._app(app)) for app in self.cluster.apps.values()]
            found += [(app, self._app(app)) for app in self.cluster.ended[-40:] if app.shown_ended_s > now_s]
        if not states or "FINISHED" in states:
            for app in reversed(self.cluster.ended[-self.retained :]):
                if app.shown_ended_s > now_s:
                    continue
                if ended_from_ms is not None and self._ms(app.ended_s or 0.0) < ended_from_ms:
                    break
                if app.id not in self.forgotten:
                    found.append((app, self._app(app)))
        return found

    def _app(self, app: App) -> dict[str, Any]:
        if app.id in self._over:
            return dict(self._over[app.id])  # what is wrong with an answer is put into it
        shown = self._shown(app)
        if app.stored is not None and app.shown_ended_s <= self.cluster.agenda.now_s:
            self._over[app.id] = dict(shown)
        return shown

    def _shown(self, app: App) -> dict[str, Any]:
        now_s = self.cluster.agenda.now_s
        held, vcores = self.held(app)
        memory_s, vcore_s = self.figure(app)
        over = app.ended_s is not None and app.shown_ended_s <= now_s
        return {
            "id": app.id,
            "user": "u",
            "name": "n",
            "queue": app.queue,
            "state": "FAILED" if app.refused else "FINISHED" if over else "RUNNING",
            "finalStatus": "FAILED" if app.refused else "SUCCEEDED" if over else "UNDEFINED",
            "progress": 50.0,
            "startedTime": self._ms(app.submitted_s),
            "launchTime": 0 if app.refused else self._ms(app.submitted_s),
            "finishedTime": self._ms(app.ended_s or 0.0) if over else 0,
            "elapsedTime": round((((app.ended_s or 0.0) if over else now_s) - app.submitted_s) * 1000),
            "allocatedMB": -1 if over else held,
            "allocatedVCores": -1 if over else vcores,
            "runningContainers": -1 if over else len(app.containers),
            "memorySeconds": memory_s,
            "vcoreSeconds": vcore_s,
            **({"preemptedMemorySeconds": lost} if (lost := self.preempted.get(app.id)) else {}),
        }

    def nodes(self) -> dict[str, Any]:
        """The nodes that have registered with it."""
        running = [n for n, alive in enumerate(self.cluster.alive) if alive and self.cluster.registered[n]]
        return {"nodes": {"node": [_node(f"{self.nodes_named}{n}", self.cluster.free_mb[n]) for n in running]}}

    def property(self, name: str) -> dict[str, Any]:
        """One property of its configuration; the reader takes an answer without one for none."""
        return {"property": {"name": name, "value": self.site[name]}} if name in self.site else {}

    def shows(self, page: str) -> dict[str, Any]:
        """Its own properties, and what a Capacity Scheduler's RM has beside these pages."""
        if page == "conf":
            return {"properties": [{"key": key, "value": value} for key, value in self.site.items()]}
        raise AssertionError(f"nobody asks for {page}")

    def changed(self, body: Mapping[str, Any]) -> bool:
        """The call that changes a store; whether it was taken."""
        raise AssertionError("a Fair Scheduler has no store")

    def jmx(self) -> dict[str, Any]:
        sums: dict[str, list[int]] = {}
        for path, (given, back) in self.given.items():
            while path:
                total = sums.setdefault(path, [0, 0])
                total[0], total[1] = total[0] + given, total[1] + back
                path = path.rpartition(".")[0]
        tree = self._tree()
        return {"beans": [_bean(path, *sums.get(path, (0, 0))) for path in tree]}


def _node(name: str, free_mb: int) -> dict[str, Any]:
    return {
        "rack": "/default-rack",
        "state": "RUNNING",
        "id": f"{name}:45454",
        "nodeHostName": name,
        "nodeHTTPAddress": f"{name}:8042",
        "lastHealthUpdate": 0,
        "version": "3.4.2",
        "healthReport": "",
        "numContainers": 0,
        "usedMemoryMB": NODE_MB - free_mb,
        "availMemoryMB": free_mb,
        "usedVirtualCores": 0,
        "availableVirtualCores": NODE_VCORES,
    }


def _bean(path: str, given: int, back: int) -> dict[str, Any]:
    name = ",".join(f"q{n}={part}" for n, part in enumerate(path.split(".")))
    return {
        "name": f"Hadoop:service=ResourceManager,name=QueueMetrics,{name}",
        "AggregateContainersAllocated": given,
        "AggregateContainersReleased": back,
    }


def shown_figures(found: list[tuple[App, dict[str, Any]]]) -> Mapping[str, tuple[int, int]]:
    """What a list of applications says that they have used."""
    return {app.id: (said["memorySeconds"], said["vcoreSeconds"]) for app, said in found}
