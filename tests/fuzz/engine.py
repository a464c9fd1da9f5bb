"""Random decision scripts of base events, and random runs, with sizes and settings at the edge of what is allowed.

What is drawn: minimum allocations of 0, container limits below the minimum, increments of 1, clusters of one node, asks
for nothing of a resource, nodes without any, very different sizes beside each other, several containers a heartbeat.
"""

from __future__ import annotations

import random
from typing import Any

from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage, TaskFaults
from harness.model.resources import Resource
from harness.sim.setup import SimSetup
from harness.yarn.fair.parse import parse_allocations

_DRF = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
_LEAVES = ("root.a", "root.b.c", "root.b.d")


def _conf(rng: random.Random, least: int) -> dict[str, str]:
    """Properties of yarn-site.xml; `least`: the smallest minimum that the scheduler takes."""
    flag = lambda: rng.choice(("true", "false"))  # noqa: E731
    return {
        "yarn.scheduler.minimum-allocation-mb": str(rng.choice((least, least, 1, 7, 512, 1024))),
        "yarn.scheduler.minimum-allocation-vcores": str(rng.choice((least, least, 1, 2))),
        "yarn.scheduler.maximum-allocation-mb": str(rng.choice((1024, 4096, 2**31 - 1))),
        "yarn.scheduler.maximum-allocation-vcores": str(rng.choice((2, 4, 2**31 - 1))),
        "yarn.scheduler.increment-allocation-mb": str(rng.choice((1, 1, 3, 512))),
        "yarn.scheduler.increment-allocation-vcores": "1",
        "yarn.scheduler.fair.assignmultiple": rng.choice(("true", "true", "false")),
        "yarn.scheduler.fair.dynamic.max.assign": flag(),
        "yarn.scheduler.fair.max.assign": str(rng.choice((-1, -1, 0, 1, 3))),
        "yarn.scheduler.fair.preemption": flag(),
        "yarn.scheduler.fair.preemption.cluster-utilization-threshold": "0",
        "yarn.scheduler.fair.waitTimeBeforeKill": str(rng.choice((0, 100, 1000))),
        "yarn.scheduler.fair.waitTimeBeforeNextStarvationCheck": "100",
        "yarn.scheduler.fair.sizebasedweight": flag(),
        "yarn.scheduler.fair.reservable-nodes": str(rng.choice((0, 0.5, 1))),
        "yarn.scheduler.reservation-threshold.increment-multiple": str(rng.choice((0, 1, 2))),
    }


def _allocations(rng: random.Random) -> str:
    def settings(leaf: bool) -> str:
        parts = []
        if rng.random() < 0.4:
            sizes = (rng.choice((0, 1, 100, 1024)), rng.choice((0, 1, 2)))
            parts.append(f"<maxContainerAllocation>{sizes[0]} mb, {sizes[1]} vcores</maxContainerAllocation>")
        if rng.random() < 0.3:
            parts.append(f"<maxResources>{rng.choice((0, 2048, 8192))} mb, {rng.choice((0, 4))} vcores</maxResources>")
        if rng.random() < 0.3:
            parts.append(f"<minResources>{rng.choice((1, 2048))} mb, 1 vcores</minResources>")
        if rng.random() < 0.3:
            parts.append(f"<maxRunningApps>{rng.choice((0, 1, 2))}</maxRunningApps>")
        if leaf and rng.random() < 0.5:
            parts.append(f"<maxAMShare>{rng.choice(('-1.0', '0.1', '1.0'))}</maxAMShare>")
        parts.append(f"<weight>{rng.choice(('0.0', '1.0', '2.5'))}</weight>")
        policies = ("fair", "drf", "fifo") if leaf else ("fair", "drf")
        return "".join([*parts, f"<schedulingPolicy>{rng.choice(policies)}</schedulingPolicy>"])

    return (
        "<allocations><defaultFairSharePreemptionTimeout>1</defaultFairSharePreemptionTimeout>"
        "<defaultFairSharePreemptionThreshold>1.0</defaultFairSharePreemptionThreshold>"
        f"<defaultQueueSchedulingPolicy>{rng.choice(('fair', 'drf'))}</defaultQueueSchedulingPolicy>"
        f'<queue name="a">{settings(True)}</queue><queue name="b">{settings(False)}<queue name="c">{settings(True)}'
        f'</queue><queue name="d">{settings(True)}</queue></queue></allocations>'
    )


def _capacity(rng: random.Random) -> dict[str, str]:
    shares = rng.choice((("50", "50", "30", "70"), ("1w", "3w", "2w", "1w")))
    queues = ("a", "b", "b.c", "b.d")
    made = {f"root.{queue}.capacity": share for queue, share in zip(queues, shares, strict=True)}
    for leaf in ("a", "b.c", "b.d"):
        made[f"root.{leaf}.user-limit-factor"] = rng.choice(("-1", "1", "0.5"))
        made[f"root.{leaf}.ordering-policy"] = rng.choice(("fifo", "fair"))
        if rng.random() < 0.3:
            made[f"root.{leaf}.max-parallel-apps"] = str(rng.choice((1, 2)))
        if rng.random() < 0.2:
            made[f"root.{leaf}.maximum-applications"] = str(rng.choice((1, 3)))
    return {
        "root.queues": "a,b",
        "root.b.queues": "c,d",
        **made,
        "maximum-am-resource-percent": rng.choice(("1.0", "0.2")),
        "resource-calculator": rng.choice((_DRF, _DRF.replace("Dominant", "Default"))),
        "per-node-heartbeat.maximum-offswitch-assignments": str(rng.choice((1, 2, 1000))),
        "per-node-heartbeat.maximum-container-assignments": str(rng.choice((-1, 1, 500))),
        "reservations-continue-look-all-nodes": rng.choice(("true", "false")),
    }


def _size(rng: random.Random) -> tuple[int, int]:
    return rng.choice((0, 0, 1, 16, 1024, 3000)), rng.choice((0, 1, 1, 2))


def _node(rng: random.Random) -> tuple[int, int]:
    return rng.choice((0, 1, 700, 4096, 16384)), rng.choice((0, 1, 8, 300))


def random_script(seed: int, scheduler: str) -> dict[str, Any]:
    """A script of base events: some hundred, at random."""
    rng = random.Random(f"{scheduler} {seed}")
    count = rng.choice((1, 1, 2, 5))
    sizes = [_node(rng) for _ in range(count)]
    nodes = [{"name": f"n{i}", "memory_mb": mb, "vcores": vcores} for i, (mb, vcores) in enumerate(sizes)]
    events: list[dict[str, Any]] = [{"t": 0, "node": node["name"]} for node in nodes]
    apps: list[str] = []
    t = 0
    for _ in range(rng.choice((40, 150, 400))):
        t += rng.choice((0, 1, 50, 400))
        kinds = ("heartbeat",) * 8 + ("update",) * 3 + ("ask",) * 4 + ("finish",) * 6 + ("app",) * 3
        kind = rng.choice((*kinds, "release", "pull", "end", "restart", "lost", "node", "reload", "check"))
        node = rng.choice(nodes)["name"]
        if kind in ("heartbeat", "lost", "node"):
            events.append({"t": t, kind: node})
        elif kind in ("update", "check"):
            events.append({"t": t, kind: True})
        elif kind == "app" or not apps:
            apps.append(f"x{len(apps)}")
            event = {"t": t, "app": apps[-1], "queue": rng.choice(_LEAVES), "user": rng.choice("uv")}
            if rng.random() < 0.5:
                mb, vcores = _size(rng)
                event["am"] = {"memory_mb": mb, "vcores": vcores}
            events.append(event)
        elif kind == "ask":
            asks = []
            for _ in range(rng.choice((1, 1, 3))):
                mb, vcores = _size(rng)
                asked = {"priority": rng.choice((1, 2, 5)), "count": rng.choice((0, 1, 3, 40, 700))}
                asks.append({**asked, "memory_mb": mb, "vcores": vcores})
            events.append({"t": t, "ask": rng.choice(apps), "requests": asks})
        elif kind in ("finish", "release"):
            events.append({"t": t, kind: {"app": rng.choice(apps), "n": rng.choice((1, 2, 3, rng.randrange(1, 60)))}})
        elif kind == "reload":
            if scheduler == "fair":
                events.append({"t": t, "reload": _allocations(rng)})
        else:
            events.append({"t": t, kind: rng.choice(apps)})
    options: dict[str, Any] = {
        "resource_types": "conf",
        "shares": "none",
        "acquire": rng.choice(("auto", "auto", "manual")),
        "cleanup_heartbeats": rng.choice((1, 1, 3)),
        "launch": rng.choice(("next_heartbeat", "never")),
        "max_allocation": rng.choice(("nodes", "configured")),
    }
    made = {"conf": _conf(rng, int(scheduler != "fair")), "options": options, "nodes": nodes, "events": events}
    if scheduler == "fair":
        return {**made, "allocations": _allocations(rng)}
    return {**made, "capacity": _capacity(rng)}


def random_setup(seed: int, scheduler: str) -> SimSetup:
    """A run of some dozen jobs of all kinds, with failures and copies, on few nodes that come and go."""
    rng = random.Random(f"run {scheduler} {seed}")
    machines = []
    for i in range(rng.choice((1, 1, 3, 8))):
        leave = None if i == 0 or rng.random() < 0.6 else rng.uniform(5, 60)
        mb, vcores = rng.choice((2048, 4096, 16384)), rng.choice((4, 8, 300))
        machines.append(NodeSpec(f"n{i}", mb, vcores, join_s=0 if i == 0 else rng.choice((0, 10)), leave_s=leave))

    def size() -> Resource:
        return Resource(rng.choice((1, 64, 512, 1024)), rng.choice((0, 1, 1)))

    def lasting() -> Duration:
        return rng.choice((Duration("constant", value_s=rng.choice((0, 1, 5))), Duration("exponential", value_s=4)))

    jobs: list[JobSpec] = []
    for i in range(rng.choice((3, 12, 40))):
        kind = rng.choice(("mapreduce", "mapreduce", "dag", "spark", "service"))
        stages = [Stage("x", rng.choice((0, 1, 20, 200)), size(), lasting())]
        if kind in ("mapreduce", "dag") and rng.random() < 0.6:
            slow = rng.choice((0.0, 0.05, 1.0))
            stages.append(Stage("y", rng.choice((1, 5)), size(), lasting(), after=("x",), priority=10, slow_start=slow))
        am = rng.choice((Resource(0, 0), size()))
        job = JobSpec(
            id=f"j{i}",
            queue=rng.choice(_LEAVES),
            kind=kind,  # type: ignore[arg-type]
            am=am,
            stages=tuple(stages),
            submit_s=rng.choice((0.0, 3.0, 20.0)),
            after_job=f"j{rng.randrange(i)}" if i and rng.random() < 0.3 else None,
            lifetime_s=30.0 if kind == "service" else None,
            executors=rng.choice((1, 5)) if kind == "spark" else 0,
            executor_demand=size(),
            executor_slots=rng.choice((1, 4)),
        )
        jobs.append(job)
    allocations = (
        '<allocations><queue name="a"/><queue name="b"><queue name="c"/><queue name="d"/></queue></allocations>'
    )
    conf = _conf(rng, int(scheduler != "fair"))
    conf |= {"yarn.scheduler.maximum-allocation-mb": "16384", "yarn.scheduler.maximum-allocation-vcores": "300"}
    capacity = {} if scheduler == "fair" else {"per-node-heartbeat.maximum-offswitch-assignments": "1000"}
    faults = TaskFaults(
        failure=rng.choice((0.0, 0.1)), straggler=rng.choice((0.0, 0.2)), speculation=rng.random() < 0.5
    )
    return SimSetup(
        nodes=tuple(machines),
        allocations=parse_allocations(allocations),
        jobs=jobs,
        conf=conf,
        capacity=capacity,
        scheduler=scheduler,  # type: ignore[arg-type]
        faults=faults,
        seed=seed,
        time_limit_s=600.0,
        record_tasks=True,
        record_script=scheduler == "fair",
    )
