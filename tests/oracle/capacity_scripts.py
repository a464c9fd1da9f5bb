"""Random decision scripts for the Capacity Scheduler: clusters, queue trees, users and applications of chosen features.

As `scripts` for the Fair Scheduler: automatic extras end containers whatever is decided. Siblings have different
capacities and weights that add up exactly, so that only the feature ``ties`` depends on the order of a hash map. As a
program: one script on standard output::

    python -m tests.oracle.capacity_scripts --seed 7 [--features drf,deep,...] > script.json
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from typing import Any

#: feature -> what it adds to a script
FEATURES = {
    "weights": "capacities as weights",
    "percent": "capacities in per cent",
    "absolute": "absolute capacities throughout the tree (one draw of the three kinds)",
    "drf": "DominantResourceCalculator",
    "deep": "three levels of queues, else one",
    "maxcap": "maximum-capacity on some queues",
    "userlimits": "user-limit-factor, minimum-user-limit-percent, six users; else neither limits",
    "amlimit": "maximum-am-resource-percent, globally and on leaves; else 1.0",
    "maxapps": "maximum-applications small on some leaves: rejections",
    "orderingfair": "ordering-policy fair on some leaves",
    "sizeweight": "with the size-based weight on some of these",
    "priorities": "queue priorities (priority-utilization) and application priorities",
    "am": "applications with an AM; tasks are asked for after it is assigned",
    "bigasks": "some asks near a node's size",
    "resize": "an ask replaces a former one of the same priority by another size",
    "reservations": "off: one size for everything, so that nothing is ever reserved",
    "nolook": "reservations-continue-look-all-nodes=false",
    "multi": "several containers per node heartbeat",
    "increments": "odd sizes, minimum allocations that round them",
    "reconfigure": "capacities and limits change",
    "refused": "some of these changes are refused",
    "stopped": "one leaf is stopped from the start, one is stopped and started by a change",
    "loss": "nodes are lost and come back",
    "release": "AMs give containers back",
    "restart": "an application whose AM is killed gets a new attempt (else it ends)",
    "ties": "siblings of equal capacity: the order of children decides, after a change that of a hash map",
    "keys": "several asks at one priority (allocation request ids)",
    "manual": "containers are fetched by the AM's own heartbeats only",
    "cleanup": "killed containers leave their node at its second or third heartbeat",
    "neverlaunched": "nodes never report containers as launched",
    "hashes": "a cluster timestamp and odd ports, for the orders of hash tables",
    "parallel": "few parallel applications: by default, of queues, parents and users; some end before it is their turn",
    "largest": "maximum-allocation of some queues: starvation is by it; lowered (refused) and raised by changes",
    "preemption": "the preemption policy runs every 3 s",
    "preemptmore": "with what it does besides: for reservations, beyond guarantees, conservatively",
}
#: Features that most random scripts have, and the chance of each of the others.
COMMON = frozenset(
    [
        "weights",
        "percent",
        "absolute",
        "drf",
        "deep",
        "maxcap",
        "userlimits",
        "amlimit",
        "maxapps",
        "orderingfair",
        "sizeweight",
        "priorities",
        "am",
        "bigasks",
        "reservations",
        "multi",
        "increments",
        "reconfigure",
        "loss",
        "release",
    ]
)
_RARE = 0.15


@dataclass(slots=True)
class CapacityPlan:
    """What one script is made from."""

    seed: int
    features: frozenset[str]
    nodes: int = 24
    apps: int = 60
    seconds: int = 400
    tasks: int = 50
    heartbeat_ms: int = 1000
    shares_ms: int = 5000
    shares: str = "none"


def random_plan(seed: int, *, shares: str = "none") -> CapacityPlan:
    """A plan with a random choice of features; the same seed gives the same plan."""
    draw = random.Random(seed * 7919 + 13)
    chosen = {f for f in FEATURES if draw.random() < (0.75 if f in COMMON else _RARE)}
    if "resize" in chosen:  # Hadoop's own usage goes wrong then, below 0, and with it this order
        chosen.discard("sizeweight")
    return CapacityPlan(seed, frozenset(chosen), shares=shares)


def make_script(plan: CapacityPlan) -> dict[str, Any]:
    """The script of a plan."""
    unknown = plan.features - FEATURES.keys()
    assert not unknown, unknown
    return _Maker(plan).make()


class _Maker:
    """One script in the making."""

    def __init__(self, plan: CapacityPlan) -> None:
        self.a, self.r = plan, random.Random(plan.seed)

    def has(self, feature: str) -> bool:
        return feature in self.a.features

    def cluster(self):
        kinds = self.r.sample([(8192, 8), (16384, 16), (32768, 12), (24576, 6), (12288, 24)], self.r.choice((2, 3)))
        self.nodes = []
        for i in range(self.a.nodes):
            mb, vc = self.r.choice(kinds)
            self.nodes.append({"name": f"node{i:02d}", "rack": f"/r{i % 3}", "memory_mb": mb, "vcores": vc})
        self.mb = sum(n["memory_mb"] for n in self.nodes)
        self.vc = sum(n["vcores"] for n in self.nodes)
        self.big = max(n["memory_mb"] for n in self.nodes)
        self.bigvc = max(n["vcores"] for n in self.nodes)

    def tree(self):
        r = self.r
        modes = [m for m in ("weights", "percent", "absolute") if self.has(m)] or ["weights"]
        self.absolute = r.choice(modes) == "absolute"
        relative = [m for m in modes if m != "absolute"] or ["weights"]
        deep = self.has("deep")

        def node(name, path, level):
            q = {"name": name, "path": path, "level": level, "kids": [], "mode": r.choice(relative)}
            if level == 0 or (deep and level < 3 and (level < 2 or r.random() < 0.6)):
                n = r.randint(2, 4) if level == 0 else r.randint(2, 3)
                q["kids"] = [node(f"{'abc'[level]}{i}", f"{path}.{'abc'[level]}{i}", level + 1) for i in range(n)]
            return q

        self.root = node("root", "root", 0)
        self.queues = []

        def walk(q):
            self.queues.append(q)
            for k in q["kids"]:
                walk(k)

        walk(self.root)
        self.leaves = [q for q in self.queues if not q["kids"]]
        # What stays over changes of configuration: shapes, not numbers.
        for q in self.queues:
            q["fair"] = not q["kids"] and self.has("orderingfair") and r.random() < 0.5
            q["sized"] = q["fair"] and self.has("sizeweight") and r.random() < 0.5

    def split(self, n, total, step):
        """n different multiples of step (equal ones with ties) that add up to total."""
        r, units = self.r, int(total / step + 1e-9)
        if self.has("ties"):
            base = units // n
            return [base * step] * (n - 1) + [(units - base * (n - 1)) * step]
        while True:
            w = [r.uniform(0.2, 3) for _ in range(n)]
            u = [max(1, int(units * x / sum(w))) for x in w]
            u[-1] = units - sum(u[:-1])
            if u[-1] > 0 and len(set(u)) == n:
                return [x * step for x in u]

    def capacity(self):
        """All properties that may change later; a dict."""
        r, p = self.r, {}

        def num(x):
            return (f"{x:.2f}").rstrip("0").rstrip(".")

        def res(mb, vc):
            return f"[memory={mb},vcores={vc}]"

        def walk(q, maxmb, maxvc):
            kids = q["kids"]
            if not kids:
                return
            if self.absolute:
                mbs, vcs = [size[k["path"]][0] for k in kids], [size[k["path"]][1] for k in kids]
            elif q["mode"] == "percent":
                caps = self.split(len(kids), 100, 0.5)
            else:
                caps = [1.5] * len(kids) if self.has("ties") else r.sample([x / 4 for x in range(1, 33)], len(kids))
            for i, k in enumerate(kids):
                P = k["path"] + "."
                kmb = kvc = kmm = kmv = 0
                if self.absolute:
                    kmb, kvc, kmm, kmv = mbs[i], vcs[i], maxmb, maxvc
                    p[P + "capacity"] = res(kmb, kvc)
                    if self.has("maxcap") and r.random() < 0.4:
                        f = r.uniform(1, 2.5)
                        kmm, kmv = max(kmb, min(maxmb, int(kmb * f))), max(kvc, min(maxvc, int(kvc * f)))
                        p[P + "maximum-capacity"] = res(kmm, kmv)
                else:
                    p[P + "capacity"] = num(caps[i]) + ("w" if q["mode"] == "weights" else "")
                    if self.has("maxcap") and r.random() < 0.4:
                        share = caps[i] / sum(caps) * 100
                        p[P + "maximum-capacity"] = num(min(100, share * r.uniform(1, 2.5)))
                walk(k, kmm, kmv)

        over = r.choice((0.7, 1, 1, 1.3))  # 1.3: the cluster cannot give all that is promised
        weight = {q["path"]: 1 if self.has("ties") else r.uniform(0.3, 3) for q in self.leaves}
        unit, size = over / sum(weight.values()), {}

        def sizes(q):  # a parent promises a little more than its children
            if q["kids"]:
                s = [sizes(k) for k in q["kids"]]
                slack = r.uniform(1, 1.15)
                mb, vc = int(sum(x[0] for x in s) * slack / 256 + 1) * 256, int(sum(x[1] for x in s) * slack) + 1
                for i, k in enumerate(q["kids"]):
                    if not self.has("ties") and s[i][0] in [x[0] for x in s[:i]]:
                        s[i] = size[k["path"]] = (s[i][0] - 256 * i or 64, s[i][1])
            else:
                w = weight[q["path"]] * unit
                mb, vc = max(2048, int(self.mb * w) // 256 * 256), max(1, int(self.vc * w))
            size[q["path"]] = (mb, vc)
            return size[q["path"]]

        sizes(self.root)
        walk(self.root, 10**9, 10**6)
        for q in self.queues[1:]:
            P = q["path"] + "."
            if self.has("priorities") and r.random() < 0.5:
                p[P + "priority"] = str(r.randint(0, 4))
            if q["kids"]:
                continue
            if self.has("userlimits"):
                if r.random() < 0.8:
                    p[P + "user-limit-factor"] = r.choice(("0.5", "1", "1.5", "2", "3", "-1"))
                if r.random() < 0.7:
                    p[P + "minimum-user-limit-percent"] = r.choice(("15", "25", "33", "50", "100"))
            if self.has("amlimit") and r.random() < 0.4:
                p[P + "maximum-am-resource-percent"] = r.choice(("0.1", "0.2", "0.35", "0.6", "1"))
            if self.has("maxapps") and r.random() < 0.25:
                p[P + "maximum-applications"] = str(r.randint(2, 6))
        if self.has("amlimit"):
            p["maximum-am-resource-percent"] = r.choice(("0.15", "0.25", "0.4"))
        if self.has("parallel"):
            self.parallel(p)
        return p

    def parallel(self, p):
        """Numbers of parallel applications, small enough to matter."""
        r, key = self.r, "max-parallel-apps"
        if r.random() < 0.3:
            p[key] = str(r.randint(6, 14))
        for q in self.queues:
            if r.random() < 0.5:
                p[f"{q['path']}.{key}"] = str(r.randint(8, 16) if q["level"] == 0 else r.randint(1, 7 - q["level"]))
        if r.random() < 0.4:
            p[f"user.{key}"] = str(r.randint(2, 6))
        for i in range(1, 5):
            if r.random() < 0.3:
                p[f"user.u{i}.{key}"] = str(r.randint(1, 4))

    def largest(self, add, end):
        """Largest containers, and changes of them."""
        r, p, key = self.r, {}, "maximum-allocation-"
        for q in self.queues:
            if r.random() < 0.6:
                p[f"{q['path']}.{key}mb"] = str(r.randint(2048, self.big))
            if r.random() < 0.3:
                p[f"{q['path']}.{key}vcores"] = str(r.randint(1, self.bigvc))
        leaf = r.choice(self.leaves)["path"]
        add(end * r.uniform(0.2, 0.5), 2, reconfigure={f"{leaf}.{key}mb": "1024"})
        add(end * r.uniform(0.2, 0.5), 2, reconfigure={f"{leaf}.{key}mb": str(self.big + 1)})
        add(end * r.uniform(0.5, 0.8), 2, reconfigure={f"{leaf}.{key}mb": str(self.big)})
        return p

    def preemption(self, add, end):
        """The policy's rounds and settings, which may change; drawn apart, so that the rest stays as it is."""
        r, key = random.Random(self.a.seed), "yarn.resourcemanager.monitor.capacity.preemption."
        for t in range(0, end, 3000):
            add(t, 7, preempt=True)
        p = {"yarn.resourcemanager.scheduler.monitor.enable": "true"}
        p[f"{key}max_wait_before_kill"] = r.choice(("0", "5000", "15000"))
        p[f"{key}total_preemption_per_round"] = r.choice(("0.05", "0.1", "0.3", "1.0"))
        p[f"{key}natural_termination_factor"] = r.choice(("0.2", "0.5", "1.0"))
        p[f"{key}max_ignored_over_capacity"] = r.choice(("0.0", "0.1", "0.3"))
        if r.random() < 0.1:
            p[f"{key}observe_only"] = "true"
        for q in self.queues:
            if r.random() < 0.15:
                p[f"{q['path']}.disable_preemption"] = r.choice(("true", "true", "false"))
        if self.has("preemptmore"):
            for name, chance in (
                ("select_based_on_reserved_containers", 0.6),
                ("additional_res_balance_based_on_reserved_containers", 0.4),
                ("preemption-to-balance-queue-after-satisfied.enabled", 0.5),
                ("conservative-drf", 0.3),
            ):
                if r.random() < chance:
                    p[key + name] = "true"
            p[f"{key}preemption-to-balance-queue-after-satisfied.max-wait-before-kill"] = "20000"
        if self.has("reconfigure"):
            leaf = r.choice(self.leaves)["path"]
            add(end * 0.5, 2, reconfigure={f"{leaf}.disable_preemption": "true", f"{key}max_wait_before_kill": "4000"})
        return p

    def fixed(self):
        """Properties that stay."""
        r, p = self.r, {}
        for q in self.queues:
            if q["kids"]:
                p[q["path"] + ".queues"] = ",".join(k["name"] for k in q["kids"])
        if self.has("priorities"):
            p["root.ordering-policy"] = "priority-utilization"
        for q in self.leaves:
            if q["fair"]:
                p[q["path"] + ".ordering-policy"] = "fair"
                if q["sized"]:
                    p[q["path"] + ".ordering-policy.fair.enable-size-based-weight"] = "true"
            if not self.has("userlimits"):
                p[q["path"] + ".user-limit-factor"] = "-1"
        if not self.has("amlimit"):
            p["maximum-am-resource-percent"] = "1.0"
        p["resource-calculator"] = "org.apache.hadoop.yarn.util.resource.%sResourceCalculator" % (
            "Dominant" if self.has("drf") else "Default"
        )
        if self.has("nolook"):
            p["reservations-continue-look-all-nodes"] = "false"
        if self.has("multi"):
            p["per-node-heartbeat.maximum-offswitch-assignments"] = str(r.choice((2, 3, 5, 20)))
            if r.random() < 0.6:
                p["per-node-heartbeat.maximum-container-assignments"] = str(r.choice((-1, 2, 3, 5)))
            if r.random() < 0.15:
                p["per-node-heartbeat.multiple-assignments-enabled"] = "false"
        return p

    def sized(self, path):
        return any(q["path"] == path and q["sized"] for q in self.leaves)

    def size(self, big):
        r = self.r
        if not self.has("reservations"):
            return (1024, 1)
        if big:
            return (int(self.big * r.uniform(0.35, 1.0)) // 256 * 256, r.randint(1, max(1, self.bigvc // 2)))
        mb = r.choice((512, 768, 1024, 1024, 1536, 2048, 2048, 3072, 4096))
        if self.has("increments") and r.random() < 0.3:
            mb += r.randint(-200, 200)
        return (mb, r.choice((1, 1, 1, 1, 2, 2, 3, 4)))

    def make(self):
        a, r = self.a, self.r
        self.cluster()
        self.tree()
        end = a.seconds * 1000
        ev = []  # (t, rank, event); rank orders events of one instant

        def add(t, rank, **e):
            ev.append((int(t), rank, len(ev), {"t": int(t), **e}))

        for i, n in enumerate(self.nodes):
            t = 0 if i < a.nodes * 3 // 4 else r.randrange(0, end // 6)
            add(t, 0, node=n["name"])
            phase = r.randrange(a.heartbeat_ms)
            for h in range(t // a.heartbeat_ms * a.heartbeat_ms + phase, end, a.heartbeat_ms):
                if h > t:
                    add(h, 5, heartbeat=n["name"])
        for t in range(a.shares_ms, end, a.shares_ms):
            add(t, 6, shares=True)
        add(end - 1, 7, check=True)
        if self.has("loss"):
            for n in r.sample(self.nodes, max(1, a.nodes // 8)):
                t = r.randrange(end // 4, end * 3 // 4)
                add(t, 1, lost=n["name"])
                if r.random() < 0.7:
                    add(t + r.randrange(5000, 40000), 0, node=n["name"])
        if self.has("reconfigure"):
            for _ in range(r.randint(2, 4)):
                add(r.randrange(end // 8, end * 7 // 8), 2, reconfigure=None)
        if self.has("refused"):
            q = r.choice(self.queues[1:])["path"]
            for bad in (
                {q + ".capacity": "-1"},
                {q + ".state": "HALTED"},
                {q + ".maximum-capacity": "[memory=1,vcores=1]", q + ".capacity": "[memory=2048,vcores=2]"},
                {"root.queues": "a0"},
            ):
                add(r.randrange(end // 8, end * 7 // 8), 2, reconfigure=bad)
        users = [f"u{i}" for i in range(1, 7 if self.has("userlimits") else 5)]
        names = []
        for i in range(a.apps):
            name = f"app{i + 1:02d}"
            names.append(name)
            t = 0 if i < 4 else int(end * 0.75 * r.random() ** 1.4)
            e = {"app": name, "queue": r.choice(self.leaves)["path"], "user": r.choice(users)}
            if self.has("priorities") and r.random() < 0.5:
                e["priority"] = r.randint(0, 5)
            if self.has("am") and r.random() < 0.85:
                e["am"] = {
                    "memory_mb": r.choice((512, 1024, 1536, 2048)) if self.has("reservations") else 1024,
                    "vcores": 1,
                }
                e["on_am_killed"] = "restart" if self.has("restart") else "end"
            e["auto_end"] = True
            add(t, 3, **e)
            # Hadoop loses its own order where such an application was let in before its activation.
            if self.has("priorities") and r.random() < 0.15 and not self.sized(e["queue"]):
                add(t + r.randrange(2000, 60000), 3, set_priority={"app": name, "value": r.randint(0, 5)})
            prios = r.sample((1, 2, 3, 5, 8, 10, 20), r.randint(1, 4))
            sizes, ta = {}, t
            for _w in range(r.randint(1, 5)):
                p = r.choice(prios)
                big = self.has("bigasks") and r.random() < 0.12
                if p not in sizes or (self.has("resize") and r.random() < 0.2):
                    sizes[p] = self.size(big)
                mb, vc = sizes[p]
                n = (
                    r.randint(1, 6)
                    if mb > 4096
                    else int(a.tasks * r.choice((0.2, 0.5, 1, 1, 2)) * r.uniform(0.6, 1.4)) + 1
                )
                q = {
                    "ask": name,
                    "priority": p,
                    "count": n,
                    "memory_mb": mb,
                    "vcores": vc,
                    # A container that ends before its AM has fetched it never ends for the scheduler.
                    "duration_ms": int(r.choice((3, 6, 10, 20, 40)) * 1000 * r.uniform(0.5, 1.5))
                    + (4000 if self.has("manual") else 0),
                }
                if self.has("keys"):
                    q["alloc_id"] = r.choice((0, 0, 1, 2))
                if "am" in e:
                    q["after_am_ms"] = r.choice((0, 500, 1500, 4000)) + (ta - t)
                add(ta, 3, **q)
                ta += r.randrange(500, end // 8)
            if self.has("manual"):
                for beat in range(t + r.randrange(1, 3000), end, 3000):
                    add(beat, 3, pull=name)
            if self.has("parallel") and r.random() < 0.3:
                add(t + r.randrange(0, 60000), 3, end=name)
            if self.has("release") and r.random() < 0.4:
                for _ in range(r.randint(1, 5)):
                    add(t + r.randrange(3000, 60000), 3, release={"app": name, "n": r.randint(2, 30)})
        first = {**self.fixed(), **self.capacity()}
        if self.has("largest"):
            first |= self.largest(add, end)
        if self.has("stopped"):
            stopped = r.choice(self.leaves)["path"] + ".state"
            first[stopped] = "STOPPED"
            q = r.choice(self.leaves)["path"] + ".state"
            add(end * 0.3, 2, reconfigure={q: "STOPPED"})
            add(end * 0.5, 2, reconfigure={q: "RUNNING"})
            if {f"{kid['path']}.state" for kid in self.root["kids"][1:]} <= {stopped, q}:
                # A queue that is stopped may go, and the tree does not change here.
                ev = [x for x in ev if x[3].get("reconfigure") != {"root.queues": "a0"}]
        if self.has("preemption"):
            first |= self.preemption(add, end)
        ev.sort(key=lambda x: x[:3])
        ev = [x[3] for x in ev if x[0] < end]
        now = dict(first)
        for e in ev:
            if "reconfigure" in e and e["reconfigure"] is None:
                new = self.capacity()
                d = {k: v for k, v in new.items() if now.get(k) != v}
                gone = (
                    "maximum-capacity",
                    "priority",
                    "user-limit-factor",
                    "minimum-user-limit-percent",
                    "maximum-applications",
                    "maximum-am-resource-percent",
                    "max-parallel-apps",
                )
                for k in now:
                    if (
                        k not in new
                        and "." in k
                        and k.rsplit(".", 1)[1] in gone
                        and (self.has("userlimits") or not k.endswith("user-limit-factor"))
                    ):
                        d[k] = None
                now.update(d)
                now = {k: v for k, v in now.items() if v is not None}
                e["reconfigure"] = d
        inc = self.has("increments") and self.has("reservations")
        conf = {
            "yarn.scheduler.maximum-allocation-mb": str(self.big),
            "yarn.scheduler.maximum-allocation-vcores": str(self.bigvc),
            "yarn.scheduler.minimum-allocation-mb": str(
                1024 if not self.has("reservations") else r.choice((256, 512, 1024)) if inc else 256
            ),
        }
        if self.has("priorities"):
            conf["yarn.cluster.max-application-priority"] = "5"
        options = {"shares": a.shares}
        if self.has("manual"):
            options["acquire"] = "manual"
        if self.has("cleanup"):
            options["cleanup_heartbeats"] = r.choice((2, 3))
        if self.has("neverlaunched"):
            options["launch"] = "never"
        if self.has("hashes"):
            options["cluster_timestamp"] = r.randrange(1_700_000_000_000, 1_800_000_000_000)
            options["node_port"] = r.choice((45454, 8041, 34567))
        return {"conf": conf, "options": options, "capacity": first, "nodes": self.nodes, "events": ev}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--features", help="exactly these, separated by commas [a random choice]")
    chosen = parser.parse_args()
    plan = random_plan(chosen.seed, shares="all")
    if chosen.features is not None:
        plan.features = frozenset(chosen.features.split(",")) - {""}
    print(json.dumps(make_script(plan)))


if __name__ == "__main__":
    main()
