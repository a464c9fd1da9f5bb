"""Random decision scripts: clusters, queue trees and applications that exercise chosen features of the scheduler.

Scripts use the oracle's automatic extras (durations, ends), so that containers end whatever the scheduler decides; the
oracle writes them out as base events. As a program: one script on standard output::

    python -m tests.oracle.scripts --seed 7 [--features drf,min,...] > script.json
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass, field
from typing import Any

#: feature -> what it adds to a script
FEATURES = {
    "weights": "uneven weights (without: all 1)",
    "zero": "weights of 0: under drf Hadoop's comparator is no order then",
    "min": "minResources on some queues",
    "max": "maxResources on some queues, absolute and in per cent",
    "drf": "drf on the root and some subtrees",
    "fifo": "fifo on some leaves",
    "maxapps": "maxRunningApps on queues",
    "userlimit": "maxRunningApps of users",
    "amshare": "maxAMShare on leaves",
    "am": "applications with an AM; tasks are asked for after it runs",
    "reload": "weights and limits change by new allocation files",
    "loss": "nodes are lost and come back",
    "late": "some nodes join late",
    "bigasks": "asks near a node's size",
    "reservations": "nodes may be reserved (without: a threshold that nothing reaches)",
    "release": "AMs give containers back",
    "preemption": "preemption, with time-outs on queues",
    "assignmultiple": "several containers a heartbeat, dynamic or a fixed number",
    "sizeweight": "yarn.scheduler.fair.sizebasedweight",
    "increments": "odd sizes, minimum allocation and increments that round them",
    "restart": "an application whose AM is killed gets a new attempt (else it ends)",
    "adhoc": "applications in queues that no file names; empty ones are removed",
    "manual": "containers are fetched by the AM's own heartbeats only",
    "cleanup": "killed containers leave their node at its second or third heartbeat",
    "neverlaunched": "nodes never report containers as launched",
    "ties": "applications that start at the same instant, ids beyond 9999",
    "keys": "several asks at one priority (allocation request ids)",
    "files": "smallest and largest allocation by Hadoop's defaults, whatever the properties say: asks are clamped",
    "hashes": "a cluster timestamp and odd ports, for the orders of hash tables",
}
#: Features that most random scripts have, and the chance of each of the others.
COMMON = frozenset(
    (
        "weights",
        "min",
        "max",
        "drf",
        "fifo",
        "maxapps",
        "amshare",
        "am",
        "reload",
        "loss",
        "bigasks",
        "release",
        "increments",
        "reservations",
    )
)
RARE = {
    "preemption": 0.45,
    "assignmultiple": 0.35,
    "sizeweight": 0.25,
    "restart": 0.4,
    "adhoc": 0.2,
    "manual": 0.12,
    "cleanup": 0.25,
    "neverlaunched": 0.1,
    "ties": 0.3,
    "keys": 0.3,
    "hashes": 0.4,
    "files": 0.33,
    "late": 0.5,
    "userlimit": 0.5,
    "zero": 0.12,
}


@dataclass
class Plan:
    """What a script is to be like; sizes in nodes, applications, seconds, tasks of a typical ask.

    `queues`: so many leaves (0: a small tree).
    """

    seed: int
    features: frozenset[str]
    nodes: int = 24
    apps: int = 60
    seconds: int = 320
    tasks: int = 60
    heartbeat_ms: int = 1000
    update_ms: int = 500
    shares: str = "none"
    queues: int = 0


def random_plan(seed: int, **sizes: Any) -> Plan:
    """A plan whose features depend on the seed: each common one with 3 of 4, the rarer ones with their own chance."""
    rng = random.Random(f"features {seed}")
    chosen = {name for name in sorted(COMMON) if rng.random() < 0.75}
    chosen |= {name for name, chance in RARE.items() if rng.random() < chance}
    return Plan(seed, frozenset(chosen), **sizes)


@dataclass
class _Queue:
    name: str
    level: int
    policy: str
    children: list[_Queue] = field(default_factory=list)


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed)
        self.events: list[tuple[int, int, int, dict[str, Any]]] = []
        #: A container that ends before its AM has fetched it never ends for the scheduler.
        self.unfetched_ms = 4000 if self.has("manual") else 0
        self._cluster()
        self.root = self._wide() if plan.queues else self._tree("root", 0, self.has("drf"))
        self.leaves: list[str] = []
        self._collect(self.root, "root")

    def has(self, feature: str) -> bool:
        return feature in self.plan.features

    def _cluster(self) -> None:
        rng = self.rng
        kinds = rng.sample([(8192, 8), (16384, 16), (32768, 12), (24576, 6), (12288, 24)], rng.choice((2, 3)))
        self.nodes: list[dict[str, Any]] = []
        for index in range(self.plan.nodes):
            mb, vcores = rng.choice(kinds)
            name = f"node{index:02d}" if not self.has("hashes") else f"worker-{rng.randrange(10**6)}-{index}.example"
            self.nodes.append({"name": name, "rack": f"/r{index % 3}", "memory_mb": mb, "vcores": vcores})
        self.mb = sum(node["memory_mb"] for node in self.nodes)
        self.vcores = sum(node["vcores"] for node in self.nodes)
        self.big_mb = max(node["memory_mb"] for node in self.nodes)
        self.big_vcores = max(node["vcores"] for node in self.nodes)

    def _tree(self, name: str, level: int, drf: bool) -> _Queue:
        rng = self.rng
        queue = _Queue(name, level, "drf" if drf else "fair")
        if level < 3 and (level < 2 or rng.random() < 0.75):
            count = rng.randint(2, 4 if level == 0 else 3)
            queue.children = [
                self._tree(f"{'abc'[level]}{i}", level + 1, drf and rng.random() < 0.7) for i in range(count)
            ]
        elif self.has("fifo") and rng.random() < 0.25:
            queue.policy = "fifo"
        return queue

    def _wide(self) -> _Queue:
        """Many leaves: most beside each other in a few parents, the others at the ends of deep paths."""
        rng = self.rng
        drf = self.has("drf")
        root = _Queue("root", 0, "drf" if drf else "fair")
        left, group = self.plan.queues, 0
        while left > 0:
            parent = _Queue(f"g{group}", 1, "drf" if drf and rng.random() < 0.6 else "fair")
            root.children.append(parent)
            for depth in range(rng.choice((0, 0, 1, 8))):
                below = _Queue(f"d{depth}", min(2 + depth, 3), parent.policy)
                parent.children.append(below)
                parent = below
            count = min(left, rng.choice((1, 7, 40, 130)))
            for i in range(count):
                fifo = self.has("fifo") and rng.random() < 0.1
                parent.children.append(_Queue(f"q{group}x{i}", 3, "fifo" if fifo else "fair"))
            left -= count
            group += 1
        return root

    def _collect(self, queue: _Queue, path: str) -> None:
        if not queue.children:
            self.leaves.append(path)
        for child in queue.children:
            self._collect(child, f"{path}.{child.name}")

    # ---- the allocation file

    def _limit(self, low: float, high: float) -> str:
        rng = self.rng
        mb, vcores = rng.uniform(low, high), rng.uniform(low, high)
        style = rng.randrange(4)
        if style == 0:
            return f"{100 * mb:.1f}%"
        if style == 1:
            return f"{100 * mb:.1f}% memory, {100 * vcores:.1f}% cpu"
        return f"{int(self.mb * mb) // 256 * 256} mb, {max(1, int(self.vcores * vcores))} vcores"

    def _queue_xml(self, queue: _Queue) -> str:
        rng = self.rng
        x = [f'<queue name="{queue.name}">']
        if queue.level > 0:
            share = (0.5, 0.25, 0.12)[queue.level - 1]
            if self.has("weights"):
                weight = rng.choice(("1.0", "2.0", "3.0", "0.5", "1.5", f"{rng.uniform(0.2, 6):.2f}"))
                if self.has("zero") and rng.random() < 0.3:
                    weight = "0.0"
                x.append(f"<weight>{weight}</weight>")
            if self.has("min") and rng.random() < 0.35:
                mb = int(self.mb * share * rng.uniform(0.1, 0.7)) // 128 * 128
                x.append(
                    f"<minResources>{mb} mb, {int(self.vcores * share * rng.uniform(0.1, 0.7))} vcores</minResources>"
                )
            if self.has("max") and rng.random() < 0.3:
                x.append(f"<maxResources>{self._limit(share, share * 3)}</maxResources>")
            if self.has("maxapps") and rng.random() < 0.3:
                x.append(f"<maxRunningApps>{rng.randint(2, 12 if queue.children else 5)}</maxRunningApps>")
            if self.has("preemption"):
                if rng.random() < 0.5:
                    x.append(f"<fairSharePreemptionTimeout>{rng.randint(1, 12)}</fairSharePreemptionTimeout>")
                    x.append(f"<fairSharePreemptionThreshold>{rng.uniform(0.3, 1):.2f}</fairSharePreemptionThreshold>")
                if rng.random() < 0.5:
                    x.append(f"<minSharePreemptionTimeout>{rng.randint(1, 8)}</minSharePreemptionTimeout>")
                if rng.random() < 0.12:
                    x.append("<allowPreemptionFrom>false</allowPreemptionFrom>")
        if self.has("adhoc") and queue.children and rng.random() < 0.5:
            x.append(f"<maxChildResources>{self._limit(0.2, 0.6)}</maxChildResources>")
        x.append(f"<schedulingPolicy>{queue.policy}</schedulingPolicy>")
        if not queue.children and self.has("amshare") and rng.random() < 0.5:
            x.append(f"<maxAMShare>{rng.choice(('0.1', '0.2', '0.4', '0.7', '-1.0'))}</maxAMShare>")
        return "".join([*x, *map(self._queue_xml, queue.children), "</queue>"])

    def allocations(self) -> str:
        rng = self.rng
        x = ["<allocations>", self._queue_xml(self.root)]
        if self.has("preemption"):
            x.append(f"<defaultFairSharePreemptionTimeout>{rng.randint(3, 15)}</defaultFairSharePreemptionTimeout>")
            x.append(f"<defaultMinSharePreemptionTimeout>{rng.randint(3, 15)}</defaultMinSharePreemptionTimeout>")
        if self.has("userlimit"):
            x.append(f"<userMaxAppsDefault>{rng.randint(6, 12)}</userMaxAppsDefault>")
            x.append(f'<user name="u1"><maxRunningApps>{rng.randint(2, 5)}</maxRunningApps></user>')
        if not self.has("amshare"):
            x.append("<queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>")
        return "".join([*x, "</allocations>"])

    # ---- events

    def add(self, t: float, rank: int, **event: Any) -> None:
        """An event at t ms; `rank` orders those of one instant."""
        self.events.append((int(t), rank, len(self.events), {"t": int(t), **event}))

    def _nodes_and_updates(self, end: int) -> None:
        plan, rng = self.plan, self.rng
        for index, node in enumerate(self.nodes):
            late = self.has("late") and index >= plan.nodes * 3 // 4
            t = rng.randrange(0, end // 6) if late else 0
            self.add(t, 0, node=node["name"])
            phase = rng.randrange(plan.heartbeat_ms)
            first = t // plan.heartbeat_ms * plan.heartbeat_ms + phase
            for beat in range(first, end, plan.heartbeat_ms):
                if beat > t:
                    self.add(beat, 5, heartbeat=node["name"])
        for t in range(0, end, plan.update_ms):
            self.add(t, 4, update=True)
        if self.has("loss"):
            for node in rng.sample(self.nodes, max(1, plan.nodes // (3 if self.has("manual") else 8))):
                t = rng.randrange(end // 4, end * 3 // 4)
                self.add(t, 1, lost=node["name"])
                if rng.random() < 0.7:
                    self.add(t + rng.randrange(5000, 40000), 0, node=node["name"])
        if self.has("reload"):
            for _ in range(rng.randint(2, 4)):
                self.add(rng.randrange(end // 8, end * 7 // 8), 2, reload=None)
        if self.has("adhoc"):
            for t in range(10_000, end, 10_000):
                self.add(t, 2, check=True)

    def _size(self, big: bool) -> tuple[int, int]:
        rng = self.rng
        if big:
            mb = int(self.big_mb * rng.uniform(0.35, 1.0)) // 256 * 256
            return mb, rng.randint(1, max(1, self.big_vcores // 2))
        mb = rng.choice((512, 768, 1024, 1024, 1536, 2048, 2048, 3072, 4096))
        if self.has("increments") and rng.random() < 0.3:
            mb += rng.randint(-200, 200)
        return mb, rng.choice((1, 1, 1, 1, 2, 2, 3, 4))

    def _application(self, index: int, end: int) -> None:
        plan, rng = self.plan, self.rng
        name = f"app{index + 1:02d}"
        t = 0 if index < 4 else int(end * 0.75 * rng.random() ** 1.4)
        if self.has("ties"):
            t = t // 20_000 * 20_000
        queue = rng.choice(self.leaves)
        if self.has("adhoc") and rng.random() < 0.15:
            queue = f"root.a{rng.randrange(4)}.adhoc{rng.randrange(3)}"
        event: dict[str, Any] = {"app": name, "queue": queue, "user": f"u{rng.randint(1, 4)}"}
        if self.has("ties") and index == plan.apps // 2:
            event["id"] = 9990
        if self.has("am") and rng.random() < 0.85:
            event["am"] = {"memory_mb": rng.choice((512, 1024, 1536, 2048)), "vcores": 1}
            event["on_am_killed"] = "restart" if self.has("restart") else "end"
        elif self.has("am") and rng.random() < 0.3:
            event["managed"] = True
        event["auto_end"] = True
        self.add(t, 3, **event)
        priorities = rng.sample((1, 2, 3, 5, 8, 10, 20), rng.randint(1, 4))
        sizes: dict[tuple[int, int], tuple[int, int]] = {}
        asked = t
        for _ in range(rng.randint(1, 5)):
            priority = rng.choice(priorities)
            alloc_id = rng.randrange(3) if self.has("keys") else -1
            key = (priority, alloc_id)
            if key not in sizes or rng.random() < 0.2:
                sizes[key] = self._size(self.has("bigasks") and rng.random() < 0.12)
            mb, vcores = sizes[key]
            typical = int(plan.tasks * rng.choice((0.2, 0.5, 1, 1, 2)) * rng.uniform(0.6, 1.4)) + 1
            ask: dict[str, Any] = {
                "ask": name,
                "priority": priority,
                "count": rng.randint(1, 6) if mb > 4096 else typical,
                "memory_mb": mb,
                "vcores": vcores,
                "duration_ms": int(rng.choice((3, 6, 10, 20, 40)) * 1000 * rng.uniform(0.5, 1.5)) + self.unfetched_ms,
            }
            if alloc_id >= 0:
                ask["alloc_id"] = alloc_id
            if "am" in event:
                ask["after_am_ms"] = rng.choice((0, 500, 1500, 4000)) + (asked - t)
            self.add(asked, 3, **ask)
            asked += rng.randrange(500, end // 8)
        if self.has("release") and rng.random() < 0.4:
            for _ in range(rng.randint(1, 5)):
                self.add(t + rng.randrange(3000, 60000), 3, release={"app": name, "n": rng.randint(2, 30)})
        if self.has("manual"):
            for beat in range(t + 1000, end, rng.choice((1000, 2500, 4000))):
                self.add(beat, 3, pull=name)

    def _conf(self) -> dict[str, str]:
        rng = self.rng
        odd = self.has("increments")
        conf = {
            "yarn.scheduler.maximum-allocation-mb": str(self.big_mb),
            "yarn.scheduler.maximum-allocation-vcores": str(self.big_vcores),
            "yarn.scheduler.minimum-allocation-mb": str(rng.choice((256, 512, 1024)) if odd else 256),
            "yarn.scheduler.increment-allocation-mb": str(rng.choice((128, 256, 512, 1024)) if odd else 256),
            "yarn.scheduler.fair.assignmultiple": str(self.has("assignmultiple")).lower(),
            "yarn.scheduler.fair.preemption": str(self.has("preemption")).lower(),
        }
        if self.has("assignmultiple") and rng.random() < 0.5:
            conf["yarn.scheduler.fair.dynamic.max.assign"] = "false"
            conf["yarn.scheduler.fair.max.assign"] = str(rng.choice((-1, 2, 3, 5)))
        if self.has("sizeweight"):
            conf["yarn.scheduler.fair.sizebasedweight"] = "true"
        if not self.has("reservations"):
            conf["yarn.scheduler.reservation-threshold.increment-multiple"] = "1000000"
        elif rng.random() < 0.6:
            conf["yarn.scheduler.fair.reservable-nodes"] = str(rng.choice((0.05, 0.1, 0.3)))
        if self.has("preemption"):
            conf["yarn.scheduler.fair.preemption.cluster-utilization-threshold"] = str(rng.choice((0.0, 0.5, 0.8)))
            conf["yarn.scheduler.fair.waitTimeBeforeKill"] = str(rng.choice((1000, 3000, 15000)))
            conf["yarn.scheduler.fair.waitTimeBeforeNextStarvationCheck"] = str(rng.choice((2000, 10000)))
            if rng.random() < 0.2:
                conf["yarn.scheduler.fair.am.preemption"] = "false"
        return conf

    def script(self) -> dict[str, Any]:
        end = self.plan.seconds * 1000
        rng = self.rng
        self._nodes_and_updates(end)
        for index in range(self.plan.apps):
            self._application(index, end)
        first = self.allocations()
        events = [entry[3] for entry in sorted(self.events, key=lambda entry: entry[:3]) if entry[0] < end]
        for event in events:
            if "reload" in event:
                event["reload"] = self.allocations()
        options: dict[str, Any] = {
            "shares": self.plan.shares,
            "resource_types": "files" if self.has("files") else "conf",
        }
        conf = self._conf()
        if self.has("manual"):
            options["acquire"] = "manual"
        if self.has("cleanup"):
            options["cleanup_heartbeats"] = rng.choice((2, 3))
        if self.has("neverlaunched"):
            options["launch"] = "never"
        if self.has("hashes"):
            options["cluster_timestamp"] = rng.randrange(1_700_000_000_000, 1_800_000_000_000)
            options["node_port"] = rng.choice((45454, 8041, 34567))
        return {"conf": conf, "options": options, "allocations": first, "nodes": self.nodes, "events": events}


def make_script(plan: Plan) -> dict[str, Any]:
    """The script of a plan: the same plan gives the same script."""
    return _Writer(plan).script()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--features", default=None, help=f"comma-separated, of: {', '.join(FEATURES)}")
    parser.add_argument("--shares", default="queues", choices=("all", "queues", "none"))
    arguments = parser.parse_args()
    plan = random_plan(arguments.seed, shares=arguments.shares)
    if arguments.features is not None:
        plan.features = frozenset(filter(None, arguments.features.split(",")))
        if plan.features - FEATURES.keys():
            parser.error(f"unknown features: {', '.join(sorted(plan.features - FEATURES.keys()))}")
    print(json.dumps(make_script(plan)))


if __name__ == "__main__":
    main()
