"""Decision scripts in which nodes are resized, decommissioned gracefully and recommissioned, besides all else."""

from __future__ import annotations

import random
from typing import Any

#: What happens to a node.
KINDS = ("resize", "drain", "gone", "back")


def with_node_sizes(script: dict[str, Any], seed: int) -> dict[str, Any]:
    """The script with such changes of a third of its nodes."""
    rng = random.Random(seed)
    end = max(event["t"] for event in script["events"])
    more: list[dict[str, Any]] = []
    for node in rng.sample(script["nodes"], max(3, len(script["nodes"]) // 3)):
        name, t, kind = node["name"], rng.randrange(end // 8, end // 2), rng.choice(KINDS)
        if kind == "resize":
            factor = rng.choice((0.25, 0.5, 1.5, 2))
            size = {"memory_mb": int(node["memory_mb"] * factor), "vcores": max(1, int(node["vcores"] * factor))}
            more.append({"t": t, "resize": name, **size})
            continue
        more.append({"t": t, "decommission": name})
        if kind == "gone":
            more.append({"t": t + rng.randrange(5000, 60_000), "lost": name})
        elif kind == "back":
            size = {"memory_mb": node["memory_mb"], "vcores": node["vcores"]}
            more.append({"t": t + rng.randrange(1000, 40_000), "resize": name, **size})
    events = [*script["events"], *(event for event in more if event["t"] <= end)]
    return {**script, "events": sorted(events, key=lambda event: event["t"])}
