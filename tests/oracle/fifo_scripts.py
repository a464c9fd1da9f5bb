"""Random decision scripts for the FIFO scheduler: those of `scripts`, without what it does not look at.

Queues, weights, limits, updates and reloads go; what comes, asks, ends, fails and is lost stays. Half of the
applications come in another order than that of their ids.
"""

from __future__ import annotations

import random
from typing import Any

from tests.oracle import scripts
from tests.oracle.scripts import Plan

#: What of `scripts` a script can have here.
FEATURES = frozenset(
    ("am", "bigasks", "cleanup", "hashes", "increments", "keys", "late", "loss", "manual", "neverlaunched", "release")
) | {"restart", "ids", "minimum"}
_OTHERS = ("update", "reload", "check")


def random_plan(seed: int, **sizes: Any) -> Plan:
    """A plan whose features depend on the seed."""
    found = scripts.random_plan(seed, **sizes)
    rng = random.Random(f"fifo features {seed}")
    own = {name for name in ("ids", "minimum") if rng.random() < 0.5}
    return Plan(**{**vars(found), "features": (found.features & FEATURES) | own})


def make_script(plan: Plan) -> dict[str, Any]:
    """The script of a plan."""
    rng = random.Random(f"fifo {plan.seed}")
    made = scripts.make_script(Plan(**{**vars(plan), "features": plan.features - {"ids", "minimum"}}))
    events = [event for event in made["events"] if not any(kind in event for kind in _OTHERS)]
    if plan.shares != "none":
        every = max(len(events) // 200, 1)
        shown = [{"t": event["t"], "shares": True} for event in events[::every]]
        events = sorted([*events, *shown], key=lambda event: event["t"])
    apps = [event for event in events if "app" in event]
    if "ids" in plan.features:
        ids = list(range(1, len(apps) + 1))
        rng.shuffle(ids)
        for event, number in zip(apps, ids, strict=True):
            event["id"] = number
    conf = {key: value for key, value in made["conf"].items() if not key.startswith("yarn.scheduler.fair.")}
    if "minimum" in plan.features:
        conf["yarn.scheduler.minimum-allocation-mb"] = str(rng.choice((1, 100, 512, 1536)))
    options = {**made["options"], "shares": "all" if plan.shares != "none" else "none"}
    return {"scheduler": "fifo", "conf": conf, "options": options, "nodes": made["nodes"], "events": events}
