"""Fair Scheduler preemption: what a pass takes from one application counts for all its later victims."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.sim.decide import decider

CONF = {
    "yarn.scheduler.fair.preemption": "true",
    "yarn.scheduler.fair.preemption.cluster-utilization-threshold": "0.0",
    "yarn.scheduler.fair.waitTimeBeforeKill": "1000",
}
THREE = (
    '<allocations><queue name="a"/><queue name="b"/><queue name="c"/><queueMaxAMShareDefault>-1.0'
    "</queueMaxAMShareDefault><defaultFairSharePreemptionTimeout>1</defaultFairSharePreemptionTimeout>"
    "<defaultFairSharePreemptionThreshold>1.0</defaultFairSharePreemptionThreshold></allocations>"
)


def starving(nodes: int, holds: dict[str, int]) -> dict[str, Any]:
    """One container a node; each application fills its nodes in turn, then one more arrives in queue c and starves."""
    names = [f"n{i}" for i in range(nodes)]
    events: list[dict[str, Any]] = [{"t": 0, "node": name} for name in names]
    at, t = 0, 10
    for queue, count in holds.items():
        ask = {"priority": 1, "count": count, "memory_mb": 1024, "vcores": 1}
        events += [{"t": t, "app": queue, "queue": f"root.{queue}", "user": "u"}, {"t": t, "ask": queue, **ask}]
        events += [{"t": t, "update": True}]
        events += [{"t": t + 1, "heartbeat": name} for name in names[at : at + count]]
        at, t = at + count, t + 10
    events += [{"t": t, "app": "c", "queue": "root.c", "user": "u"}]
    events += [{"t": t, "ask": "c", "priority": 1, "count": nodes, "memory_mb": 1024, "vcores": 1}]
    events += [{"t": later, "update": True} for later in range(t, t + 3000, 500)]
    return {
        "conf": CONF,
        "options": {"shares": "none"},
        "allocations": THREE,
        "nodes": [{"name": name, "rack": "/r", "memory_mb": 1024, "vcores": 1} for name in names],
        "events": events,
    }


def test_no_application_falls_below_its_fair_share() -> None:
    # The fair share is 3 containers each.
    for holds in ({"a": 4, "b": 5}, {"a": 5, "b": 4}):
        out = decider(starving(9, holds)).run()
        taken = Counter(record["app"] for record in out["preempted"])
        assert {app: held - taken[app] for app, held in holds.items()} == {"a": 3, "b": 3}
