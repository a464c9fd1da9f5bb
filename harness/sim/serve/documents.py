"""The ResourceManager's JSON, as Hadoop 3.4.2 writes it: names, types, and when a field is omitted.

Tests compare these functions with recorded answers of a real RM (tests/sim/serve). Fields that a simulated cluster has
no data for (a node's real memory use, ports, logs) have the values of an idle node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.sim.serve.app_documents import AppWriter
from harness.sim.serve.live import LiveCluster
from harness.sim.serve.simulation import Application
from harness.sim.serve.values import NODE_HTTP_PORT, NODE_PORT, resource
from harness.sim.served import Document

STATES = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED")
#: The states in the order in which the RM counts them (a hash table's order).
_COUNTED = ("NEW", "RUNNING", "FINISHED", "SUBMITTED", "KILLED", "FAILED", "NEW_SAVING", "ACCEPTED")


class Documents:
    """Writes the answers about one cluster.

    Each method updates the cluster's time and holds its lock during the call.
    """

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        #: The address by which clients reach the REST server, for links in the answers.
        self.base = "http://localhost:8088"

    # --- the cluster ---

    def info(self) -> Document:
        """Return ``/info``."""
        started, version = self.cluster.id, self.cluster.release.version
        return {
            "clusterInfo": {
                "id": started,
                "startedOn": started,
                "state": "STARTED",
                "haState": "ACTIVE",
                "rmStateStoreName": "org.apache.hadoop.yarn.server.resourcemanager.recovery.NullRMStateStore",
                "resourceManagerVersion": version,
                "resourceManagerBuildVersion": f"{version}, simulated",
                "resourceManagerVersionBuiltOn": "2025-08-20T10:36Z",
                "hadoopVersion": version,
                "hadoopBuildVersion": f"{version}, simulated",
                "hadoopVersionBuiltOn": "2025-08-20T10:30Z",
                "haZooKeeperConnectionState": "Could not find leader elector. "
                "Verify both HA and automatic failover are enabled.",
            }
        }

    def metrics(self) -> Document:
        """Return ``/metrics``."""
        with self.cluster.now() as sim:
            S = sim.scheduler.S
            g, apps, nodes = S.g[0], S.a[S.a["alive"] == 1], S.n
            up = nodes["alive"] == 1
            there = sim.world.nodes["up"] == 1
            lost = sum(
                1 for spec, is_up in zip(sim.setup.nodes, there, strict=True) if not is_up and self._has_left(spec)
            )
            reserved = nodes[up & (nodes["res_app"] >= 0)]
            total_mb, total_vc = int(g["cluster_mb"]), int(g["cluster_vcores"])
            used_mb, used_vc = int(g["alloc_mb"]), int(g["alloc_vcores"])
            started = int((apps["started"] == 1).sum())
            containers = int(apps["n_live"].sum())
            asked = int(apps["n_asks"].sum())
            return {
                "clusterMetrics": {
                    "appsSubmitted": sim.submitted,
                    "appsCompleted": sim.counts["FINISHED"],
                    "appsPending": len(apps) - started,
                    "appsRunning": started,
                    "appsFailed": sim.counts["FAILED"],
                    "appsKilled": sim.counts["KILLED"],
                    "reservedMB": int(reserved["res_mb"].sum()),
                    "availableMB": total_mb - used_mb,
                    "allocatedMB": used_mb,
                    "pendingMB": int(apps["pending_mb"].sum()),
                    "reservedVirtualCores": int(reserved["res_vcores"].sum()),
                    "availableVirtualCores": total_vc - used_vc,
                    "allocatedVirtualCores": used_vc,
                    "pendingVirtualCores": int(apps["pending_vcores"].sum()),
                    "containersAllocated": containers,
                    "containersReserved": len(reserved),
                    "containersPending": asked,
                    "totalMB": total_mb,
                    "utilizedMB": 0,
                    "totalVirtualCores": total_vc,
                    "utilizedVirtualCores": 0,
                    "utilizedMBPercent": 0,
                    "utilizedVirtualCoresPercent": 0,
                    "rmSchedulerBusyPercent": 0,
                    "totalNodes": int(up.sum()),
                    "lostNodes": lost,
                    "unhealthyNodes": 0,
                    "decommissioningNodes": 0,
                    "decommissionedNodes": 0,
                    "rebootedNodes": 0,
                    "activeNodes": int(up.sum()),
                    "shutdownNodes": 0,
                    "containerAssignedPerSecond": 0,
                    "totalAllocatedContainersAcrossPartition": 0,
                    "crossPartitionMetricsAvailable": False,
                    "rmEventQueueSize": 0,
                    "schedulerEventQueueSize": 0,
                }
            }

    def _has_left(self, spec: Any) -> bool:
        return spec.leave_s is not None and spec.leave_s * 1000 <= self.cluster.sim.now_ms

    # --- queues ---

    def scheduler(self) -> Document:
        """Return ``/scheduler``."""
        with self.cluster.now() as sim:
            return {"scheduler": {"schedulerInfo": sim.served.info()}}

    # --- nodes ---

    def nodes(self, states: Iterable[str] = ()) -> Document:
        """Return ``/nodes``; without given states, all nodes but lost ones."""
        with self.cluster.now():
            wanted = {state.upper() for state in states} or {"RUNNING"}
            found = [self._node(i) for i in self._nodes_seen() if self._node_state(i) in wanted]
            return {"nodes": {"node": found} if found else {}}

    def node(self, name: str) -> Document | None:
        """Return ``/nodes/{id}``; None: there is no such node."""
        with self.cluster.now():
            for i in self._nodes_seen():
                if self._node_id(i) == name:
                    return {"node": self._node(i)}
            return None

    def _nodes_seen(self) -> list[int]:
        """Return the nodes that are or were registered."""
        now_s = self.cluster.sim.now_ms / 1000.0
        return [i for i, spec in enumerate(self.cluster.sim.setup.nodes) if spec.join_s <= now_s]

    def _node_state(self, i: int) -> str:
        return "RUNNING" if int(self.cluster.sim.scheduler.S.n["alive"][i]) else "LOST"

    def _node_id(self, i: int) -> str:
        return f"{self.cluster.sim.setup.nodes[i].name}:{NODE_PORT}"

    def _node(self, i: int) -> Document:
        spec, n = self.cluster.sim.setup.nodes[i], self.cluster.sim.scheduler.S.n[i]
        up = self._node_state(i) == "RUNNING"
        free = (int(n["avail_mb"]), int(n["avail_vcores"])) if up else (0, 0)
        total = (spec.memory_mb, spec.vcores)
        used = (total[0] - free[0], total[1] - free[1]) if up else (0, 0)
        return {
            "rack": spec.rack,
            "state": "RUNNING" if up else "LOST",
            "id": self._node_id(i),
            "nodeHostName": spec.name,
            "nodeHTTPAddress": f"{spec.name}:{NODE_HTTP_PORT}" if up else "",
            "lastHealthUpdate": self.cluster.epoch(round(spec.join_s * 1000)),
            "version": self.cluster.release.version,
            "healthReport": "",
            "numContainers": int(n["n_c"]) if up else 0,
            "usedMemoryMB": used[0],
            "availMemoryMB": free[0],
            "usedVirtualCores": used[1],
            "availableVirtualCores": free[1],
            "memUtilization": 0.0,
            "cpuUtilization": 0.0,
            "numRunningOpportContainers": 0,
            "usedMemoryOpportGB": 0,
            "usedVirtualCoresOpport": 0,
            "numQueuedContainers": 0,
            "allocationTags": {},
            "resourceUtilization": {
                "nodePhysicalMemoryMB": 0,
                "nodeVirtualMemoryMB": 0,
                "nodeCPUUsage": 0.0,
                "aggregatedContainersPhysicalMemoryMB": 0,
                "aggregatedContainersVirtualMemoryMB": 0,
                "containersCPUUsage": 0.0,
            },
            "usedResource": resource(*used),
            "availableResource": resource(*free),
            "nodeAttributesInfo": {},
            "totalResource": resource(*total),
        }

    # --- applications ---

    def apps(self, keep: Callable[[Application, str], bool], *, limit: int | None, requests: bool) -> Document:
        """Return ``/apps``: the applications for which `keep` (application, state) is true, newest first."""
        with self.cluster.now():
            states = self.cluster.app_states()
            applications = self.cluster.sim.applications
            wanted = [
                applications[number]
                for number in sorted(applications, reverse=True)
                if keep(applications[number], states[number])
            ]
            writer = AppWriter(self.cluster, self.base, self.cluster.held(), requests)
            found = [writer.document(app, states[app.number]) for app in wanted[:limit]]
            return {"apps": {"app": found} if found else {}}

    def app(self, app: Application, *, requests: bool) -> Document:
        """Return ``/apps/{id}``."""
        with self.cluster.now():
            state = self.state(app)
            return {"app": AppWriter(self.cluster, self.base, self.cluster.held(), requests).document(app, state)}

    def state(self, app: Application) -> str:
        """Return an application's present state."""
        with self.cluster.now():
            return app.state or self.cluster.app_states().get(app.number, "ACCEPTED")

    def statistics(self, states: Iterable[str], types: Iterable[str]) -> Document:
        """Return ``/appstatistics``."""
        with self.cluster.now():
            wanted = {state.upper() for state in states}
            of_types = [name.lower() for name in types] or ["*"]
            counts = dict.fromkeys([s for s in _COUNTED if s in wanted or not wanted], 0)
            for number, state in self.cluster.app_states().items():
                kind = self.cluster.sim.applications[number].type.lower()
                if state in counts and (of_types == ["*"] or kind in of_types):
                    counts[state] += 1
            items = [{"state": s, "type": of_types[0], "count": count} for s, count in counts.items()]
            return {"appStatInfo": {"statItem": items}}

    def attempts(self, app: Application) -> Document:
        """Return ``/apps/{id}/appattempts``, with the current attempt only."""
        with self.cluster.now():
            state = self.state(app)
            return {"appAttempts": {"appAttempt": [self._attempt(app, state, app.node)]}}

    def _attempt(self, app: Application, state: str, node: int) -> Document:
        ended = bool(app.state)
        container = f"container_{self.cluster.id}_{app.number:04d}_01_000001"
        on_node = self.cluster.sim.setup.nodes[node].name if node >= 0 else ""
        http = f"{on_node}:{NODE_HTTP_PORT}" if on_node else ""
        return {
            "id": 1,
            "startTime": self.cluster.epoch(app.submitted_ms),
            "finishedTime": self.cluster.epoch(app.finished_ms) if ended else 0,
            **(
                {
                    "containerId": container,
                    "nodeHttpAddress": http,
                    "nodeId": self._node_id(node),
                    "logsLink": f"http://{http}/node/containerlogs/{container}/{app.user}",
                }
                if on_node
                else {"nodeHttpAddress": "", "nodeId": "", "logsLink": ""}
            ),
            "blacklistedNodes": "",
            "nodesBlacklistedBySystem": "",
            "appAttemptId": f"appattempt_{self.cluster.id}_{app.number:04d}_000001",
            "exportPorts": "null",
            "appAttemptState": {"ACCEPTED": "LAUNCHED" if on_node else "SCHEDULED"}.get(state, state),
        }
