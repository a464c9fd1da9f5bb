"""The Fair Scheduler of a served cluster: placement, moves, its allocation file, and the RM's answers about queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.queues import JAVA_LONG_MAX
from harness.sim import world as w
from harness.sim.fair.move import move_app
from harness.sim.serve.values import resource
from harness.sim.served import NOT_ACTIVATED, Document, ServedScheduler
from harness.sim.state import NEED_ROOM
from harness.yarn import rpc
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.placement import FairPlacing, Placement, Submission


class ServedFairScheduler(ServedScheduler):
    """The Fair Scheduler of a served cluster; the allocation file is checked every 10 s."""

    java_class = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
    file_words, polls = "allocation file", True
    file_key = "allocation_file"
    share_field = "steady_mb"
    no_priority = "Update application priority is not supported in Fair Scheduler"
    explains_moves = True

    # --- applications ---

    def placed_in(self, name: str, user: str, app: str = "") -> Placement:
        """Return the queue in which the file's placement rules, or those that yarn-site.xml implies, place it."""
        conf = self.sim.scheduler.conf
        placing = FairPlacing(
            self.sim.scheduler.manager,
            allow_undeclared=conf.flag("yarn.scheduler.fair.allow-undeclared-pools", True),
            user_as_default=conf.flag("yarn.scheduler.fair.user-as-default-queue", True),
        )
        return placing.place(Submission(name, user, self.groups.get(user, ()), app))

    def leaf(self, name: str) -> str | None:
        """Return the full path of a leaf, creating it if needed; None if it is a parent or cannot be created."""
        slot = self.sim.scheduler.leaf_index(name)
        if slot is None:
            return None
        self.sim.queues_changed()
        path: str = self.sim.scheduler.queue_paths[slot]
        return path

    def no_leaf(self, placed: Placement, identity: str, user: str) -> str:
        """Return Hadoop's message for a submission that is placed in no leaf."""
        if placed.asked:
            return f"{placed.asked} is not a leaf queue"
        return f"Reject application {identity} submitted by user {user} application rejected by placement rules."

    def refused(self, path: str, identity: str) -> str:
        """Return Hadoop's message for a submission that is refused."""
        return f"Application {identity} failed"

    def why_waiting(self, app: int, user: str) -> str:
        """Return Hadoop's words: which limit of running applications, AMs or resources the application exceeds.

        Follows MaxRunningAppsEnforcer.canAppBeRunnable and FSAppAttempt.assignContainer.
        """
        S = self.sim.scheduler.S
        a = S.a[app]
        leaf = int(a["q"])
        q, path = S.q[leaf], self.sim.scheduler.queue_paths[leaf]
        if not a["runnable"]:
            of_user = S.u[a["user"]]["n_run"] >= S.u[a["user"]]["max_apps"]
            whose = f'The user "{user}"' if of_user else f'The queue "{path}"'
            return f"{NOT_ACTIVATED}{whose} has reached the maximum limit of runnable applications."
        if not a["managed"] or a["am_running"] or a["req_head"] < 0:
            return NOT_ACTIVATED
        ask = S.r[a["req_head"]]
        mb, vcores = int(ask["mb"]), int(ask["vcores"])
        asked = f"{NOT_ACTIVATED} (Resource request: <memory:{mb}, vCores:{vcores}> exceeds"
        limit = am_limit(q, S.g[0])
        if limit is not None and (int(q["am_mb"]) + mb > limit[0] or int(q["am_vcores"]) + vcores > limit[1]):
            return f"{asked} maximum AM resource allowed)."
        at = leaf
        while at >= 0:
            above = S.q[at]
            if int(above["usage_mb"]) + mb > int(above["max_mb"]) or int(above["usage_vcores"]) + vcores > int(
                above["max_vcores"]
            ):
                most = f"<memory:{int(q['max_mb'])}, vCores:{int(q['max_vcores'])}>"
                return f"{asked} current queue or its parents maximum resource allowed). Max share of queue: {most}"
            at = int(above["parent"])
        return NOT_ACTIVATED

    def move(self, job: int, leaf: str) -> bool:
        """Move an application to a leaf; return whether it could be moved."""
        sim = self.sim
        target = sim.scheduler.queue_slots.get(leaf)
        if target is None or not int(sim.scheduler.S.q["leaf"][target]):
            return False
        while True:
            code = move_app(sim.scheduler.S, int(sim.world.jobs["app"][job]), target, sim.now_ms)
            if code != NEED_ROOM:
                break
            sim.scheduler.grow()
            sim.world = w.with_room(sim.world, containers=len(sim.scheduler.S.c))
        if code != 0:
            return False
        sim.world.jobs["queue"][job] = target
        return True

    # --- configuration ---

    def load(self, text: str) -> None:
        """Apply an allocation file, which may add and remove queues."""
        allocations = parse_allocations(text)
        self.sim.allocations = allocations
        self.sim.scheduler.reload(allocations)
        self.sim.queues_changed()

    def tidy(self) -> None:
        """Remove empty ad hoc queues."""
        self.sim.scheduler.check()
        self.sim.queues_changed()

    def refresh(self, reload: Callable[[], bool]) -> None:
        """Report success whether or not the file could be loaded, as Hadoop 3.4 does."""
        reload()

    def properties(self, file: Path) -> dict[str, str]:
        """Return the scheduler's property for ``/conf``: the allocation file."""
        return {"yarn.scheduler.fair.allocation.file": str(file)}

    # --- REST and RPC answers ---

    def info(self) -> Document:
        """Return the scheduler's queues as the RM's REST answer."""
        return {"type": "fairScheduler", "rootQueue": self._tree()}

    def _tree(self) -> Document:
        sim = self.sim
        S = sim.scheduler.S
        g = S.g[0]
        cluster = (int(g["cluster_mb"]), int(g["cluster_vcores"]))
        least = (int(g["min_mb"]), int(g["conf_max_mb"]), int(g["min_vcores"]), int(g["conf_max_vcores"]))
        columns = {name: S.q[name].tolist() for name in S.q.dtype.names}
        reserved_mb, reserved_vc = np.zeros((2, len(S.a)), np.int64)
        for node in S.n[(S.n["alive"] == 1) & (S.n["res_app"] >= 0)]:
            reserved_mb[node["res_app"]] += node["res_mb"]
            reserved_vc[node["res_app"]] += node["res_vcores"]
        sums = self.sums(
            containers=S.a["n_live"],
            asks=S.a["n_asks"],
            idle=(S.a["runnable"] == 1) & (S.a["started"] == 0),
            reserved_n=S.a["n_reserved"],
            reserved_mb=reserved_mb,
            reserved_vc=reserved_vc,
        )

        def document(path: str) -> Document:
            i = sim.scheduler.queue_slots[path]
            q = {name: column[i] for name, column in columns.items()}
            leaf = bool(q["leaf"])
            known = bool(q["min_mb"] or q["min_vcores"])
            entry: Document = {"type": "fairSchedulerLeafQueueInfo"} if leaf else {}
            am_most = (am_limit(q, g) if leaf else None) or (0, 0)
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

    def queue_info(self, path: str, children: bool, recursive: bool) -> bytes | None:
        """Return a QueueInfoProto, filled as in FSQueue.getQueueInfo."""
        scheduler = self.sim.scheduler
        slot = scheduler.queue_slots.get(path)
        if slot is None:
            return None
        S = scheduler.S
        g, q = S.g[0], S.q[slot]
        total_mb, total_vc = int(g["cluster_mb"]), int(g["cluster_vcores"])
        steady_mb, fair_mb = int(q["steady_mb"]), int(q["fair_mb"])
        out = rpc.field(1, path)
        out += rpc.real(2, steady_mb / total_mb if total_mb else 0.0)
        out += rpc.real(4, int(q["usage_mb"]) / fair_mb if fair_mb else 0.0)
        out += rpc.field(5, 2)  # RUNNING
        if children:
            for child in scheduler.manager.created():
                if child.rpartition(".")[0] == path:
                    inner = self.queue_info(child, recursive, recursive)
                    out += rpc.field(6, inner if inner is not None else b"")
        most_mb, most_vc = min(int(q["max_mb"]), total_mb), min(int(q["max_vcores"]), total_vc)
        out += rpc.field(10, b"")
        out += rpc.field(11, 0 if int(q["preemptable"]) else 1)
        out += rpc.real(14, float(q["weight"]))
        out += rpc.field(17, "FairScheduler")
        # FSQueue writes the maximum's vcores in place of the minimum's.
        out += rpc.field(18, most_vc) + rpc.field(19, int(q["min_mb"]))
        out += rpc.field(21, most_mb) + rpc.field(22, 0) + rpc.field(23, 0)
        out += rpc.field(24, int(q["steady_vcores"])) + rpc.field(25, steady_mb)
        return out + rpc.field(27, int(q["max_apps"]))


_ANY = (0, JAVA_LONG_MAX, 0, JAVA_LONG_MAX)
_POLICY_NAMES: Mapping[int, str] = {0: "fair", 1: "drf", 2: "fifo", 3: "fair"}


def am_limit(q: Any, g: Any) -> tuple[int, int] | None:
    """Return what the AMs of a leaf may hold, MB and vcores, from its record and the globals; None: any amount.

    Follows FSLeafQueue.computeMaxAMResource, as the kernel `harness.sim.fair.limits.can_run_am` does.
    """
    share = float(q["max_am_share"])
    if abs(share + 1.0) < 0.0001:
        return None
    mb = int(q["fair_mb"]) or min(int(g["avail_mb"]), int(q["max_mb"]))
    vcores = int(q["fair_vcores"]) or min(int(g["avail_vcores"]), int(q["max_vcores"]))
    return min(math.ceil(mb * share), JAVA_LONG_MAX), min(math.ceil(vcores * share), JAVA_LONG_MAX)
