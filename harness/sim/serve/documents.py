"""The ResourceManager's JSON, as Hadoop 3.4.2 writes it for a Fair Scheduler: names, types, what is left out when.

Recorded answers of a real RM hold these functions to that (tests/sim/serve). What a simulated cluster cannot know (a
node's real memory, ports, logs) is there with the value of an idle one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.model.queues import JAVA_LONG_MAX
from harness.sim.serve.live import Held, LiveCluster
from harness.sim.serve.simulation import Application
from harness.sim.world import NEVER

Document = dict[str, Any]

VERSION = "3.4.2"
STATES = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED")
#: The states in the order in which the RM counts them (a hash table's).
_COUNTED = ("NEW", "RUNNING", "FINISHED", "SUBMITTED", "KILLED", "FAILED", "NEW_SAVING", "ACCEPTED")
_FINAL_STATUS = {"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "KILLED": "KILLED"}
_NO_TIMEOUT = {"type": "LIFETIME", "expiryTime": "UNLIMITED", "remainingTimeInSeconds": -1}
#: yarn.resourcemanager.am.max-attempts
_NODE_PORT, _NODE_HTTP_PORT = 45454, 8042
_BUILD = f"{VERSION}, simulated"


def _information(name: str, units: str, value: int, least: int, most: int) -> Document:
    return {
        "attributes": {},
        "maximumAllocation": most,
        "minimumAllocation": least,
        "name": name,
        "resourceType": "COUNTABLE",
        "units": units,
        "value": value,
    }


def resource(
    mb: int, vcores: int, bounds: tuple[int, int, int, int] = (0, JAVA_LONG_MAX, 0, JAVA_LONG_MAX)
) -> Document:
    """A resource; `bounds`: least and most memory, least and most vcores of the type."""
    return {
        "memory": mb,
        "vCores": vcores,
        "resourceInformations": {
            "resourceInformation": [
                _information("memory-mb", "Mi", mb, bounds[0], bounds[1]),
                _information("vcores", "", vcores, bounds[2], bounds[3]),
            ]
        },
    }


class Documents:
    """Writes the answers about one cluster. Each method brings its time up to date and holds its lock meanwhile."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        #: How clients reach the REST server, for the links in the answers.
        self.base = "http://localhost:8088"

    # --- the cluster ---

    def info(self) -> Document:
        """``/info``."""
        started = self.cluster.id
        return {
            "clusterInfo": {
                "id": started,
                "startedOn": started,
                "state": "STARTED",
                "haState": "ACTIVE",
                "rmStateStoreName": "org.apache.hadoop.yarn.server.resourcemanager.recovery.NullRMStateStore",
                "resourceManagerVersion": VERSION,
                "resourceManagerBuildVersion": _BUILD,
                "resourceManagerVersionBuiltOn": "2025-08-20T10:36Z",
                "hadoopVersion": VERSION,
                "hadoopBuildVersion": _BUILD,
                "hadoopVersionBuiltOn": "2025-08-20T10:30Z",
                "haZooKeeperConnectionState": "Could not find leader elector. "
                "Verify both HA and automatic failover are enabled.",
            }
        }

    def metrics(self) -> Document:
        """``/metrics``."""
        with self.cluster.lock:
            self.cluster.catch_up()
            sim = self.cluster.sim
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
                    "containersPending": int(apps["n_asks"].sum()),
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
        """``/scheduler``."""
        with self.cluster.lock:
            self.cluster.catch_up()
            return {"scheduler": {"schedulerInfo": {"type": "fairScheduler", "rootQueue": self._queue_tree()}}}

    def _queue_tree(self) -> Document:
        sim = self.cluster.sim
        S = sim.scheduler.S
        g = S.g[0]
        cluster = (int(g["cluster_mb"]), int(g["cluster_vcores"]))
        least = (int(g["min_mb"]), int(g["conf_max_mb"]), int(g["min_vcores"]), int(g["conf_max_vcores"]))
        columns = {name: S.q[name].tolist() for name in _QUEUE_COLUMNS}
        size = len(S.q)
        sums = {name: [0] * size for name in ("containers", "asks", "reserved_n", "reserved_mb", "reserved_vc", "idle")}
        parent = columns["parent"]

        def add(queue: int, **amounts: int) -> None:
            while queue >= 0:
                for name, amount in amounts.items():
                    sums[name][queue] += amount
                queue = parent[queue]

        apps = S.a[S.a["alive"] == 1]
        for queue, live, asks, runnable, started in zip(
            *(apps[name].tolist() for name in ("q", "n_live", "n_asks", "runnable", "started")), strict=True
        ):
            sums["containers"][queue] += live
            sums["asks"][queue] += asks
            sums["idle"][queue] += runnable and not started
        # Leaves so far: their sums go up the tree once.
        for leaf in S.leaves[: int(g["n_leaves"])].tolist():
            add(parent[leaf], containers=sums["containers"][leaf], asks=sums["asks"][leaf])
        for node in S.n[(S.n["alive"] == 1) & (S.n["res_app"] >= 0)]:
            at = int(S.a["q"][int(node["res_app"])])
            add(at, reserved_n=1, reserved_mb=int(node["res_mb"]), reserved_vc=int(node["res_vcores"]))

        def document(path: str) -> Document:
            i = sim.scheduler.queue_slots[path]
            q = {name: column[i] for name, column in columns.items()}
            leaf = bool(q["leaf"])
            known = bool(q["min_mb"] or q["min_vcores"])
            entry: Document = {"type": "fairSchedulerLeafQueueInfo"} if leaf else {}
            am_share = q["max_am_share"]
            am_most = (
                (int(q["fair_mb"] * am_share), int(q["fair_vcores"] * am_share)) if leaf and am_share >= 0 else (0, 0)
            )
            entry |= {
                "maxApps": q["max_apps"],
                "minResources": resource(q["min_mb"], q["min_vcores"], _ANY if known else least),
                "maxResources": resource(min(q["max_mb"], cluster[0]), min(q["max_vcores"], cluster[1])),
                "usedResources": resource(q["usage_mb"], q["usage_vcores"]),
                "amUsedResources": resource(q["am_mb"], q["am_vcores"]),
                "amMaxResources": resource(*am_most),
                "demandResources": resource(q["demand_mb"], q["demand_vcores"]),
                "steadyFairResources": resource(q["steady_mb"], q["steady_vcores"]),
                "fairResources": resource(q["fair_mb"], q["fair_vcores"]),
                "clusterResources": resource(*cluster),
                "reservedResources": resource(sums["reserved_mb"][i], sums["reserved_vc"][i]),
                "maxContainerAllocation": resource(
                    min(q["max_c_mb"], least[1]),
                    min(q["max_c_vcores"], least[3]),
                ),
                "pendingContainers": sums["asks"][i],
                "allocatedContainers": sums["containers"][i],
                "reservedContainers": sums["reserved_n"][i],
                "queueName": path,
                "schedulingPolicy": _POLICY_NAMES.get(q["policy"], "fair"),
                "preemptable": bool(q["preemptable"]),
            }
            if leaf:
                entry["numPendingApps"] = q["n_nonrun"] + sums["idle"][i]
                entry["numActiveApps"] = q["n_run"] - sums["idle"][i]
            elif children.get(path):
                entry["childQueues"] = {"queue": [document(child) for child in children[path]]}
            return entry

        children: dict[str, list[str]] = {}
        for path in sim.scheduler.manager.created():
            if path != "root":
                children.setdefault(path.rpartition(".")[0], []).append(path)
        return document("root")

    # --- nodes ---

    def nodes(self, states: Iterable[str] = ()) -> Document:
        """``/nodes``; without states all but the lost ones."""
        with self.cluster.lock:
            self.cluster.catch_up()
            wanted = {state.upper() for state in states} or {"RUNNING"}
            found = [self._node(i) for i in self._nodes_seen() if self._node_state(i) in wanted]
            return {"nodes": {"node": found} if found else {}}

    def node(self, name: str) -> Document | None:
        """``/nodes/{id}``; None: there is no such node."""
        with self.cluster.lock:
            self.cluster.catch_up()
            for i in self._nodes_seen():
                if self._node_id(i) == name:
                    return {"node": self._node(i)}
            return None

    def _nodes_seen(self) -> list[int]:
        """Nodes that are there or were."""
        now_s = self.cluster.sim.now_ms / 1000.0
        return [i for i, spec in enumerate(self.cluster.sim.setup.nodes) if spec.join_s <= now_s]

    def _node_state(self, i: int) -> str:
        return "RUNNING" if int(self.cluster.sim.scheduler.S.n["alive"][i]) else "LOST"

    def _node_id(self, i: int) -> str:
        return f"{self.cluster.sim.setup.nodes[i].name}:{_NODE_PORT}"

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
            "nodeHTTPAddress": f"{spec.name}:{_NODE_HTTP_PORT}" if up else "",
            "lastHealthUpdate": self.cluster.epoch(round(spec.join_s * 1000)),
            "version": VERSION,
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

    def application_id(self, app: Application) -> str:
        """``application_<time stamp>_<number>``."""
        return self.cluster.sim.name_of(app)

    def apps(self, keep: Callable[[Application, str], bool], *, limit: int | None, requests: bool) -> Document:
        """``/apps``: those that `keep` (application, state) wants, the youngest first."""
        with self.cluster.lock:
            self.cluster.catch_up()
            states = self.cluster.app_states()
            applications = self.cluster.sim.applications
            wanted = [
                applications[number]
                for number in sorted(applications, reverse=True)
                if keep(applications[number], states[number])
            ]
            writer = _AppWriter(self, self.cluster.held(), requests)
            found = [writer.document(app, states[app.number]) for app in wanted[:limit]]
            return {"apps": {"app": found} if found else {}}

    def app(self, app: Application, *, requests: bool) -> Document:
        """``/apps/{id}``."""
        with self.cluster.lock:
            self.cluster.catch_up()
            state = self.state(app)
            return {"app": _AppWriter(self, self.cluster.held(), requests).document(app, state)}

    def state(self, app: Application) -> str:
        """An application's state now."""
        with self.cluster.lock:
            self.cluster.catch_up()
            return app.state or self.cluster.app_states().get(app.number, "ACCEPTED")

    def statistics(self, states: Iterable[str], types: Iterable[str]) -> Document:
        """``/appstatistics``."""
        with self.cluster.lock:
            self.cluster.catch_up()
            wanted = {state.upper() for state in states}
            of_types = [name.lower() for name in types] or ["*"]
            counts = dict.fromkeys([s for s in _COUNTED if s in wanted or not wanted], 0)
            for number, state in self.cluster.app_states().items():
                kind = self.cluster.sim.applications[number].type.lower()
                if state in counts and (of_types == ["*"] or kind in of_types):
                    counts[state] += 1
            items = [{"state": s, "type": of_types[0], "count": count} for s, count in counts.items()]
            return {"appStatInfo": {"statItem": items}}

    def timeouts(self) -> Document:
        """``/apps/{id}/timeouts``: simulated applications have none."""
        return {"timeouts": {"timeout": [dict(_NO_TIMEOUT)]}}

    def attempts(self, app: Application) -> Document:
        """``/apps/{id}/appattempts``: the current one."""
        with self.cluster.lock:
            self.cluster.catch_up()
            state = self.state(app)
            return {"appAttempts": {"appAttempt": [self._attempt(app, state, app.node)]}}

    def _attempt(self, app: Application, state: str, node: int) -> Document:
        ended = bool(app.state)
        container = f"container_{self.cluster.id}_{app.number:04d}_01_000001"
        on_node = self.cluster.sim.setup.nodes[node].name if node >= 0 else ""
        http = f"{on_node}:{_NODE_HTTP_PORT}" if on_node else ""
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


class _AppWriter:
    """Writes applications as of one instant."""

    def __init__(self, owner: Documents, held: Held, requests: bool) -> None:
        self.owner, self.held, self.requests = owner, held, requests
        sim = owner.cluster.sim
        S = sim.scheduler.S
        self.jobs = {name: sim.world.jobs[name].tolist() for name in ("app", "first_am_ms", "tasks_done")}
        self.a = {name: S.a[name].tolist() for name in ("usage_mb", "usage_vcores", "n_live", "runnable", "n_reserved")}
        self.steady = S.q["steady_mb"].tolist()
        self.cluster_mb = int(S.g["cluster_mb"][0])

    def document(self, app: Application, state: str) -> Document:
        """One application."""
        owner, cluster = self.owner, self.owner.cluster
        sim = cluster.sim
        ended, identity = bool(app.state), owner.application_id(app)
        refused = ended and app.row < 0
        memory_s, vcore_s = cluster.account(app, self.held)
        slot = self.jobs["app"][app.slot] if not ended else -1
        node = app.node
        mb, vcores, containers = -1, -1, -1
        launched = app.launched_ms
        if not ended:
            mb, vcores, containers = (self.a[name][slot] for name in ("usage_mb", "usage_vcores", "n_live"))
            first = self.jobs["first_am_ms"][app.slot]
            launched = first if first < NEVER else -1
        elif refused:
            mb, vcores, containers = 0, 0, 0
        now = cluster.epoch(app.finished_ms if ended else sim.now_ms)
        started = cluster.epoch(app.submitted_ms)
        entry: Document = {
            "id": identity,
            "user": app.user,
            "name": app.name,
            "queue": app.queue,
            "state": state,
            "finalStatus": _FINAL_STATUS.get(state, "UNDEFINED"),
            "progress": self._progress(app, state),
        }
        if state == "RUNNING":
            entry |= {"trackingUI": "ApplicationMaster", "trackingUrl": f"{owner.base}/proxy/{identity}/"}
        elif ended and not refused:
            entry |= {"trackingUI": "History", "trackingUrl": f"{owner.base}/cluster/app/{identity}"}
        else:
            entry["trackingUI"] = "UNASSIGNED"
        entry |= {
            "diagnostics": app.diagnostics or self._why_waiting(app, state, slot, node),
            "clusterId": cluster.id,
            "applicationType": app.type,
            "applicationTags": ",".join(app.tags),
            "priority": 0,
            "startedTime": started,
            "launchTime": cluster.epoch(launched) if launched >= 0 else 0,
            "finishedTime": now if ended else 0,
            "elapsedTime": now - started,
        }
        if node >= 0 and not app.unmanaged:
            host = sim.setup.nodes[node].name
            container = f"container_{cluster.id}_{app.number:04d}_01_000001"
            http = f"{host}:{_NODE_HTTP_PORT}"
            entry["amContainerLogs"] = f"http://{http}/node/containerlogs/{container}/{app.user}"
            entry["amHostHttpAddress"] = http
            if state == "RUNNING" or (state == "FINISHED" and app.registers):
                entry["amRPCAddress"] = f"{host}:{_NODE_PORT + 1}"
            entry["masterNodeId"] = f"{host}:{_NODE_PORT}"
        else:
            entry["masterNodeId"] = ""
        steady = self.steady[sim.scheduler.queue_slots[app.queue]] if app.queue in sim.scheduler.queue_slots else 0
        reserved = -1 if ended and not refused else 0
        counts = not ended or memory_s or vcore_s
        entry |= {
            "allocatedMB": mb,
            "allocatedVCores": vcores,
            "reservedMB": reserved,
            "reservedVCores": reserved,
            "runningContainers": containers,
            "memorySeconds": memory_s,
            "vcoreSeconds": vcore_s,
            "queueUsagePercentage": 100.0 * mb / steady if mb > 0 and steady else 0.0,
            "clusterUsagePercentage": 100.0 * mb / self.cluster_mb if mb > 0 and self.cluster_mb else 0.0,
            "resourceSecondsMap": {"entry": {"key": "vcores", "value": str(vcore_s)}} if counts else {},
            "preemptedResourceMB": 0,
            "preemptedResourceVCores": 0,
            "numNonAMContainerPreempted": 0,
            "numAMContainerPreempted": 0,
            "preemptedMemorySeconds": 0,
            "preemptedVcoreSeconds": 0,
            "preemptedResourceSecondsMap": {},
        }
        if self.requests and not ended and (asks := self._requests(slot)):
            entry["resourceRequests"] = asks
        entry |= {
            "logAggregationStatus": "DISABLED",
            "unmanagedApplication": app.unmanaged,
            **({"appNodeLabelExpression": ""} if app.type == "YARN" else {}),
            "amNodeLabelExpression": "",
            **owner.timeouts(),
        }
        return entry

    def _progress(self, app: Application, state: str) -> float:
        if app.state:
            return 100.0 if state == "FINISHED" else 0.0
        return 100.0 * min(self.jobs["tasks_done"][app.slot] / app.tasks, 1.0) if app.tasks else 0.0

    def _why_waiting(self, app: Application, state: str, slot: int, node: int) -> str:
        """What the RM tells of an application whose master does not run yet."""
        if state != "ACCEPTED":
            return ""
        if node >= 0:
            return "AM container is launched, waiting for AM container to Register with RM"
        stamp = time.strftime(
            "%a %b %d %H:%M:%S +0000 %Y", time.gmtime(self.owner.cluster.epoch(app.submitted_ms) / 1000)
        )
        text = f"[{stamp}] Application is added to the scheduler and is not yet activated. "
        if slot >= 0 and not self.a["runnable"][slot]:
            text += f'The queue "{app.queue}" has reached the maximum limit of runnable applications.'
        return text

    def _requests(self, slot: int) -> list[Document]:
        """What an application asks for and has not got."""
        S = self.owner.cluster.sim.scheduler.S
        found, r = [], int(S.a["req_head"][slot])
        while r >= 0:
            ask = S.r[r]
            found.append(
                {
                    "priority": int(ask["priority"]),
                    "allocationRequestId": int(ask["alloc_id"]),
                    "resourceName": "*",
                    "capability": resource(int(ask["mb"]), int(ask["vcores"])),
                    "numContainers": int(ask["count"]),
                    "relaxLocality": True,
                    "nodeLabelExpression": "",
                    "executionTypeRequest": {"executionType": "GUARANTEED", "enforceExecutionType": False},
                }
            )
            r = int(ask["next"])
        return found


_ANY = (0, JAVA_LONG_MAX, 0, JAVA_LONG_MAX)
_POLICY_NAMES: Mapping[int, str] = {0: "fair", 1: "drf", 2: "fifo", 3: "fair"}
_QUEUE_COLUMNS = (
    "leaf",
    "parent",
    "policy",
    "max_apps",
    "min_mb",
    "min_vcores",
    "max_mb",
    "max_vcores",
    "max_c_mb",
    "max_c_vcores",
    "usage_mb",
    "usage_vcores",
    "am_mb",
    "am_vcores",
    "demand_mb",
    "demand_vcores",
    "steady_mb",
    "steady_vcores",
    "fair_mb",
    "fair_vcores",
    "max_am_share",
    "preemptable",
    "n_run",
    "n_nonrun",
)
