"""Who is activated, and when, as Hadoop's class answers it."""

from __future__ import annotations

from typing import Any

from harness.sim.decide import decider


def script() -> dict[str, Any]:
    """Three applications, two of which the leaf's AM limit lets in; the third gets a container all the same, as its
    leaf orders by size and an ask puts it among the active ones. It ends when there is room for its AM."""
    leaf = {
        "capacity": "100",
        "user-limit-factor": "-1",
        "ordering-policy": "fair",
        "ordering-policy.fair.enable-size-based-weight": "true",
    }
    apps = ("one", "two", "three")
    return {
        "conf": {"yarn.scheduler.minimum-allocation-mb": 1024},
        "capacity": {"root.queues": "a", **{f"root.a.{key}": text for key, text in leaf.items()}},
        "nodes": [{"name": "n", "rack": "/r0", "memory_mb": 16384, "vcores": 16}],
        "events": [
            {"t": 0, "node": "n"},
            *({"t": 1, "app": app, "queue": "root.a", "user": app} for app in apps),
            *({"t": 2, "ask": app, "priority": 1, "count": 2, "memory_mb": 1024, "vcores": 1} for app in apps),
            *({"t": t, "heartbeat": "n"} for t in (10, 20, 30)),
            {"t": 70, "end": "three"},
        ],
    }


def test_an_application_that_has_ended_is_not_activated_though_it_still_waits() -> None:
    found = decider(script()).run()
    assert [record["app"] for record in found["assignments"]] == ["one", "two", "three"]
    assert [(record["t"], record["app"]) for record in found["activations"]] == [(1, "one"), (1, "two")]
