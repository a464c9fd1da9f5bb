"""The ResourceManager's JSON of applications, as Hadoop 3.4.2 writes it."""

from __future__ import annotations

import time

from harness.sim.serve.live import Held, LiveCluster
from harness.sim.serve.simulation import Application
from harness.sim.serve.values import FINAL_STATUS, NODE_HTTP_PORT, NODE_PORT, resource, timeouts
from harness.sim.served import NOT_ACTIVATED, Document
from harness.sim.world import NEVER
from harness.yarn.releases import JERSEY_2_SINCE


class AppWriter:
    """Writes the JSON documents of applications as of one instant."""

    def __init__(self, cluster: LiveCluster, base: str, held: Held, requests: bool) -> None:
        self.cluster, self.base, self.held, self.requests = cluster, base, held, requests
        sim = cluster.sim
        S = sim.scheduler.S
        self.jobs = {name: sim.world.jobs[name].tolist() for name in ("app", "first_am_ms", "tasks_done")}
        self.a = {name: S.a[name].tolist() for name in ("usage_mb", "usage_vcores", "n_live")}
        self.steady = S.q[sim.served.share_field].tolist()
        self.cluster_mb = int(S.g["cluster_mb"][0])

    def document(self, app: Application, state: str) -> Document:
        """Return the document of one application."""
        cluster = self.cluster
        sim = cluster.sim
        ended, identity = bool(app.state), sim.name_of(app)
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
            "finalStatus": FINAL_STATUS.get(state, "UNDEFINED"),
            "progress": self._progress(app, state),
        }
        if state == "RUNNING":
            entry |= {"trackingUI": "ApplicationMaster", "trackingUrl": f"{self.base}/proxy/{identity}/"}
        elif ended and not refused:
            entry |= {"trackingUI": "History", "trackingUrl": f"{self.base}/cluster/app/{identity}"}
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
            http = f"{host}:{NODE_HTTP_PORT}"
            entry["amContainerLogs"] = f"http://{http}/node/containerlogs/{container}/{app.user}"
            entry["amHostHttpAddress"] = http
            if state == "RUNNING" or (state == "FINISHED" and app.registers):
                entry["amRPCAddress"] = f"{host}:{NODE_PORT + 1}"
            entry["masterNodeId"] = f"{host}:{NODE_PORT}"
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
            "resourceSecondsMap": self._seconds(memory_s, vcore_s) if counts else {},
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
            **timeouts(),
        }
        return entry

    def _progress(self, app: Application, state: str) -> float:
        if app.state:
            return 100.0 if state == "FINISHED" else 0.0
        return 100.0 * min(self.jobs["tasks_done"][app.slot] / app.tasks, 1.0) if app.tasks else 0.0

    def _why_waiting(self, app: Application, state: str, slot: int, node: int) -> str:
        """Return the RM's diagnostics for an application whose AM does not run yet."""
        if state != "ACCEPTED":
            return ""
        if node >= 0:
            return "AM container is launched, waiting for AM container to Register with RM"
        stamp = time.strftime("%a %b %d %H:%M:%S +0000 %Y", time.gmtime(self.cluster.epoch(app.submitted_ms) / 1000))
        words = NOT_ACTIVATED if slot < 0 else self.cluster.sim.served.why_waiting(slot, app.user)
        return f"[{stamp}] {words}" if words else ""

    def _requests(self, slot: int) -> list[Document]:
        """Return the outstanding requests of an application."""
        S = self.cluster.sim.scheduler.S
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

    def _seconds(self, memory_s: int, vcore_s: int) -> Document:
        """Return the resource-seconds by resource type.

        Before Hadoop 3.5, the RM writes only the last entry, as text; since then it writes all entries, as numbers.
        """
        if self.cluster.release.hadoop < JERSEY_2_SINCE:
            return {"entry": {"key": "vcores", "value": str(vcore_s)}}
        return {"entry": [{"key": "memory-mb", "value": memory_s}, {"key": "vcores", "value": vcore_s}]}
