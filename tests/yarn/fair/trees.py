"""Random queue trees in the format of ``yarnfair render``."""

from __future__ import annotations

import random
from typing import Any


def _amount(rng: random.Random) -> dict[str, int]:
    keys = rng.sample(["memory_mb", "vcores"], rng.randint(1, 2))
    return {key: rng.randint(0, 20) if key == "vcores" else rng.choice([0, 512, 4096, 3 * 10**9]) for key in keys}


def _limit(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        return _amount(rng)
    keys = rng.sample(["memory_percent", "vcores_percent"], rng.randint(1, 2))
    return {key: rng.choice([0, 10, 33.3, 66.67, 100, round(rng.uniform(0, 150), rng.randint(0, 9))]) for key in keys}


def _queue(rng: random.Random, depth: int, drf: bool, default: str) -> dict[str, Any]:
    parent = depth > 0 and rng.random() < 0.4
    said: dict[str, Any] = {}

    def say(key: str, value: Any, chance: float = 0.25) -> None:
        if rng.random() < chance:
            said[key] = value

    say("weight", rng.choice([1, 2, 0.1, 1e-3, 1e6, rng.uniform(0.01, 50), 0.30000001192092896]), 0.7)
    say("min_resources", _amount(rng))
    if "min_resources" not in said:
        say("max_resources", _limit(rng))
    say("max_child_resources", _limit(rng), 0.1)
    say("max_container_allocation", _amount(rng))
    say("max_running_apps", rng.randint(0, 40))
    say("min_share_preemption_timeout_s", rng.randint(0, 1000))
    say("fair_share_preemption_timeout_s", rng.randint(0, 10**9))
    say("fair_share_preemption_threshold", rng.choice([0, 1, 0.35, rng.random()]))
    say("allow_preemption_from", False)
    say("acl_submit_apps", rng.choice(["alice,bob admins", " ", "*", " ops", "a&b <c>"]))
    say("acl_administer_apps", "root")
    say("acl_list_reservations", "x")
    policies = ["drf", "fair"] if drf else ["fair"]
    policy = rng.choice(policies if parent else [*policies, "fifo"])
    if policy != default:
        said["scheduling_policy"] = policy
    if parent:
        children = {
            name: _queue(rng, depth - 1, drf and policy == "drf", default)
            for name in rng.sample("ABCDEF", rng.randint(0, 4))
        }
        said["children"] = children
    else:
        say("max_am_share", rng.choice([-1, 0.1, 1, rng.random()]))
        if policy != "fifo":
            # A reservable queue is made as a parent.
            say("reservation", True, 0.05)
    return said


def random_tree(rng: random.Random) -> dict[str, Any]:
    """A queue tree that ``render`` accepts."""
    drf = rng.random() < 0.5
    tree: dict[str, Any] = {
        "queues": {
            name: _queue(rng, 2, drf, "drf" if drf else "fair") for name in rng.sample("abcdéfg", rng.randint(1, 5))
        }
    }
    defaults: dict[str, Any] = {"scheduling_policy": "drf"} if drf else {}
    for key, value in (
        ("user_max_apps", 7),
        ("queue_max_apps", 9),
        ("queue_max_resources", {"memory_percent": 95.5}),
        ("queue_max_am_share", 0.7),
        ("min_share_preemption_timeout_s", 30),
        ("fair_share_preemption_timeout_s", 40),
        ("fair_share_preemption_threshold", 0.8),
    ):
        if rng.random() < 0.3:
            defaults[key] = value
    if defaults:
        tree["defaults"] = defaults
    if rng.random() < 0.3:
        tree["root"] = {"max_running_apps": 50, "acl_submit_apps": "all"}
    if rng.random() < 0.3:
        tree["users"] = {"alice": {"max_running_apps": 3}, "bób": {"max_running_apps": 0}}
    if rng.random() < 0.3:
        tree["placement"] = [
            {"rule": "specified", "create": False},
            {"rule": "nestedUserQueue", "create": False, "parent": {"rule": "primaryGroup", "create": False}},
            {"rule": "default", "queue": "root.a"},
        ]
    if rng.random() < 0.2:
        tree["reservations"] = {"planner": "x.Y", "agent": "x.Z", "policy": "x.P"}
    return tree
