"""A Capacity Scheduler's ResourceManager: what it shows, and the store in which it may keep its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.control.soak import capacities
from tests.control.soak.cluster import App
from tests.control.soak.edits import Queue, Unreadable
from tests.control.soak.rm import Rm, SharedFile

_MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"


class Store(SharedFile):
    """The configuration in the RMs' own store, as a file that nobody can touch. ``version`` rises with each change."""

    def __init__(self, path: Path, now_s: Callable[[], float]) -> None:
        super().__init__(path, now_s)
        self._data, self.version = b"", 1
        #: Called when somebody beside the controllers has changed it, or somebody by the RM's call.
        self.on_put: Callable[[], None] = lambda: None
        self.on_change: Callable[[], None] = lambda: None

    def read(self) -> bytes:
        return self._data

    def begin(self, data: bytes) -> bytes:
        """What the administrator has put there first; as it is shown."""
        self._data = capacities.stored(capacities.properties(data))
        return self._data

    def put(self, data: bytes) -> None:
        self._data = capacities.stored(capacities.properties(data))
        self.version, self.edits = self.version + 1, self.edits + 1
        self.replaced()
        self.on_put()

    def change(self, body: Mapping[str, Any]) -> None:
        """What the call wants. Raises Unreadable: nothing is changed then."""
        values = capacities.properties(self._data)
        for queue in body["update-queue"]:
            for entry in queue["params"]["entry"]:
                name = f"{capacities.PREFIX}{queue['queue-name']}.{entry['key']}"
                values.pop(name, None)
                if entry["value"] is not None:
                    values[name] = entry["value"]
        data = capacities.stored(values)
        capacities.read(data)
        self._data, self.version = data, self.version + 1
        self.on_change()


class CapacityRm(Rm):
    """`Rm` with the other scheduler."""

    words = capacities
    below = "queues"
    #: Whether its yarn-site.xml had preemption on when it began.
    preempts = False

    def begin(self, *, recovers: bool, older: bytes | None = None) -> None:
        self.preempts = self.cluster.preempts
        super().begin(recovers=recovers, older=older)

    def poll(self) -> None:
        """This scheduler looks at its file when it is told to."""

    def changed(self, body: Mapping[str, Any]) -> bool:
        assert isinstance(self.file, Store)
        if self.drops_refresh:
            return True
        try:
            for _ in range(2 if self.twice else 1):
                self.file.change(body)
        except Unreadable:
            self.refused += 1
            return False
        self.load()
        return True

    def shows(self, page: str) -> dict[str, Any]:
        if page == "conf":
            site = {"yarn.admin.acl": "yarn", _MONITOR: str(self.preempts).lower()}
            return {"properties": [{"key": key, "value": value} for key, value in site.items()]}
        assert isinstance(self.file, Store)
        if page == "version":
            return {"versionID": str(self.file.version)}
        values = capacities.properties(self.file.read())
        return {"property": [{"name": name, "value": value} for name, value in values.items()]}

    def _tree(self) -> dict[str, Queue]:
        """Those of the file, and those that a parent has made."""
        shown = dict(self.queues)
        for path in self.cluster.ad_hoc:
            parent = path.rpartition(".")[0]
            if parent in shown:
                form = capacities.kind(shown[parent])
                shown[path] = Queue(path, parent, True, capacities.TEMPLATE[form], 0, (("kind", form),))
        return shown

    def _part(self, queue: Queue) -> float:
        """What a queue is guaranteed of the cluster."""
        parts = capacities.entitlements(self._loaded)
        if queue.path in parts:
            return parts[queue.path] / 100.0
        made = [path for path in self.cluster.ad_hoc if path.rpartition(".")[0] == queue.parent]
        own = 1.0 / len(made) if capacities.kind(queue) == "w" else queue.weight / 100.0
        return parts[queue.parent] / 100.0 * own

    def _document(self, root: dict[str, Any]) -> dict[str, Any]:
        return {**root, "type": "capacityScheduler"}

    def _queue(self, queue: Queue, apps: list[App]) -> dict[str, Any]:
        holds = self._holds(apps)
        cluster = {"memory": self.cluster.capacity_mb, "vCores": self.cluster.capacity_vcores}
        form, part = capacities.kind(queue), self._part(queue)
        nothing = {"memory": 0, "vCores": 0}
        # As Hadoop: of absolute resources, the part of the parent's is shown as a capacity.
        above = self._part(self._tree()[queue.parent]) if queue.parent else 1.0
        setting = queue.weight if form == "%" else 100.0 * part / above if form == "a" else 0.0
        guaranteed = {"memory": int(cluster["memory"] * part), "vCores": int(cluster["vCores"] * part)}
        configured = {"memory": int(queue.weight), "vCores": capacities.vcores(queue)} if form == "a" else nothing
        pending = {"memory": holds.wanted_mb, "vCores": holds.wanted_vcores}
        used = {"memory": holds.mb, "vCores": holds.vcores}
        shown: dict[str, Any] = {
            "queueName": queue.path.rpartition(".")[2],
            "queuePath": queue.path,
            "capacity": setting,
            "weight": queue.weight if form == "w" else -1.0,
            "isAbsoluteResource": form == "a",
            "orderingPolicyInfo": "fifo" if queue.leaf else "utilization",
            "capacities": {
                "queueCapacitiesByPartition": [
                    {
                        "partitionName": "",
                        "configuredMinResource": configured,
                        "effectiveMinResource": guaranteed if queue.path != "root" else cluster,
                        "effectiveMaxResource": cluster,
                    }
                ]
            },
            "resources": {
                "resourceUsagesByPartition": [
                    {
                        "partitionName": "",
                        "used": used,
                        "pending": pending,
                        "reserved": nothing,
                        "amUsed": nothing,
                        "amLimit": cluster,
                    }
                ]
            },
            "allocatedContainers": holds.containers,
            "pendingContainers": holds.waiting,
            "reservedContainers": 0,
            "preemptionDisabled": True,
            "queuePriority": 0,
        }
        if queue.leaf:
            shown |= {
                "type": "capacitySchedulerLeafQueueInfo",
                "maxApplications": 10_000,
                "numPendingApplications": 0,
                "numActiveApplications": len(apps),
            }
        return shown
