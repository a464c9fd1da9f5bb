"""Our engines against Hadoop's FairScheduler, CapacityScheduler and FifoScheduler, on random decision scripts.

``YARNFAIR_ORACLE_SCRIPTS`` is their number for each scheduler (with CI=true 60, 40 and 40, else 20, 10 and 10; 1,000 in
`make test-long`), ``YARNFAIR_ORACLE_SEED`` the first seed. Each has at least 20 nodes, 30 applications and 2,000
assignments.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.sim.decide import decider
from tests.oracle import capacity_scripts, fifo_scripts, scripts
from tests.oracle.decisions import counts, decisions, differences
from tests.oracle.node_sizes import with_node_sizes

MAKERS: dict[str, Any] = {"fair": scripts, "capacity": capacity_scripts, "fifo": fifo_scripts}
#: So few that CI has time for all else, and enough that each feature has a script (which is tested below).
_IN_CI = {"fair": 60, "capacity": 40, "fifo": 40}
_SHORT = _IN_CI if os.environ.get("CI") == "true" else {"fair": 20, "capacity": 10, "fifo": 10}
SCRIPTS = {name: int(os.environ.get("YARNFAIR_ORACLE_SCRIPTS") or _SHORT[name]) for name in MAKERS}
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)
PER_JVM = 20
LEAST = 2000


def _plan(scheduler: str, seed: int, attempt: int) -> Any:
    # Every fifth script has its shares compared after each update too.
    plan = MAKERS[scheduler].random_plan(seed, shares="queues" if seed % 5 == 0 else "none")
    plan.tasks += 40 * attempt
    plan.apps += 30 * attempt
    plan.seconds += 200 * attempt
    return plan


def _large_enough(scheduler: str, seeds: range, folder: Path) -> list[tuple[Any, Any, Any]]:
    """Plans with their scripts in base events and Hadoop's decisions; those with few assignments get more work."""
    done: dict[int, tuple[Any, Any, Any]] = {}
    for attempt in range(6):
        left = [seed for seed in seeds if seed not in done]
        plans = [_plan(scheduler, seed, attempt) for seed in left]
        pairs = decisions([MAKERS[scheduler].make_script(plan) for plan in plans], folder) if left else []
        for plan, (script, theirs) in zip(plans, pairs, strict=True):
            if len(theirs["assignments"]) >= LEAST:
                done[plan.seed] = (plan, script, theirs)
    assert len(done) == len(seeds), f"too few assignments for seeds {[seed for seed in seeds if seed not in done]}"
    return [done[seed] for seed in seeds]


@pytest.mark.java
@pytest.mark.parametrize(
    ("scheduler", "first"), [(name, first) for name in MAKERS for first in range(SEED, SEED + SCRIPTS[name], PER_JVM)]
)
def test_every_decision_is_hadoops(scheduler: str, first: int, tmp_path: Path, record_property: Any) -> None:
    seeds = range(first, min(first + PER_JVM, SEED + SCRIPTS[scheduler]))
    played: Counter[str] = Counter()
    assignments: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failures = []
    for plan, script, theirs in _large_enough(scheduler, seeds, tmp_path):
        assert len(script["nodes"]) >= 20
        assert sum("app" in event for event in script["events"]) >= 30
        found = differences(theirs, decider(script).run())
        if found:
            failures.append(f"seed {plan.seed}, {sorted(plan.features)}: {'; '.join(found)}")
        for feature in plan.features:
            played[f"{scheduler} {feature}"] += 1
            assignments[f"{scheduler} {feature}"] += len(theirs["assignments"])
        kinds += counts(script, theirs)
    # Plain dicts: the property travels between test processes.
    found_by = {"by": dict(played), "assignments": dict(assignments), "kinds": dict(kinds)}
    record_property("oracle", {"scripts": len(seeds), **found_by})
    assert not failures, "\n".join(failures)


@pytest.mark.java
@pytest.mark.parametrize("scheduler", MAKERS)
def test_resized_and_decommissioned_nodes_are_scheduled_as_hadoop_does(scheduler: str, tmp_path: Path) -> None:
    """The Fair Scheduler kills what it assigns to a node while that drains; the Capacity Scheduler assigns nothing.

    With the Capacity Scheduler's preemption in all its scripts (seed 2 marks containers on a node that drains), among
    them one (seed 11) in which a node that was recommissioned is overbooked and kills what it has too much of.
    """
    makers, seeds = MAKERS[scheduler], range(SEED, SEED + 5)
    plans = [makers.random_plan(seed, shares="queues" if seed % 2 else "none") for seed in seeds]
    if scheduler == "capacity":
        plans.append(makers.random_plan(SEED + 10, shares="queues"))
        for plan in plans:
            plan.features |= {"preemption"}
    asked = [with_node_sizes(makers.make_script(plan), plan.seed) for plan in plans]
    played = decisions(asked, tmp_path)
    assert sum("decommission" in event for script, _ in played for event in script["events"]) > 10
    assert sum("resize" in event for script, _ in played for event in script["events"]) > 10
    assert scheduler != "capacity" or sum(len(theirs["preempted"]) for _, theirs in played) > 500
    for plan, (script, theirs) in zip(plans, played, strict=True):
        assert len(theirs["assignments"]) > 1000
        assert differences(theirs, decider(script).run()) == [], plan.seed


@pytest.mark.java
def test_a_reservation_computes_no_user_limit(tmp_path: Path) -> None:
    """Nor does an assignment that its master fetches later: the limit of a user's masters follows another count."""
    plan = capacity_scripts.random_plan(109)
    plan.features = (plan.features | {"preemption"}) - {"resize"}
    [(script, theirs)] = decisions([capacity_scripts.make_script(plan)], tmp_path)
    assert "manual" in plan.features
    assert len(theirs["assignments"]) > 1000
    assert differences(theirs, decider(script).run()) == []


@pytest.mark.java
@pytest.mark.parametrize(
    ("queues", "seed"),
    [(200, 1), (1000, 2), *(pytest.param(300 + 90 * n, n, marks=pytest.mark.long) for n in range(3, 9))],
)
def test_with_many_queues_every_decision_is_hadoops(queues: int, seed: int, tmp_path: Path) -> None:
    for attempt in range(6):
        plan = scripts.random_plan(
            seed, apps=queues, tasks=20 + 20 * attempt, nodes=40, seconds=200 + 200 * attempt, queues=queues
        )
        # What the order of queues depends on, in every one of them.
        plan.features |= {"weights", "min", "max", "amshare", "am", "preemption", "drf"}
        [(script, theirs)] = decisions([scripts.make_script(plan)], tmp_path)
        if len(theirs["assignments"]) >= LEAST:
            break
    assert len(theirs["assignments"]) >= LEAST
    assert differences(theirs, decider(script).run()) == []


@pytest.mark.java
def test_shares_of_more_vcores_than_an_int_holds_are_shown_as_hadoop_shows_them(tmp_path: Path) -> None:
    limits = {
        "maximum-allocation-vcores": "2147483647",
        "maximum-allocation-mb": "8192",
        "minimum-allocation-mb": "512",
    }
    node = {"name": "n1", "rack": "/r", "memory_mb": 8192, "vcores": 2_000_000_000}
    drf = "<schedulingPolicy>drf</schedulingPolicy>"
    asked = {
        "conf": {f"yarn.scheduler.{key}": text for key, text in limits.items()},
        "options": {"shares": "all", "resource_types": "conf"},
        "allocations": f"<allocations><queue name='root'>{drf}<queue name='a'/></queue></allocations>",
        "nodes": [node],
        "events": [
            {"t": 0, "node": "n1"},
            {"t": 0, "app": "x", "queue": "root.a", "user": "u"},
            {"t": 1, "ask": "x", "count": 3, "memory_mb": 1024, "vcores": 2_000_000_000},
            {"t": 2, "update": True},
        ],
    }
    [(script, theirs)] = decisions([asked], tmp_path)
    assert theirs["shares"][0]["apps"]["x"]["demand_vcores"] == 2**31 - 1
    assert differences(theirs, decider(script).run()) == []


@pytest.mark.parametrize("scheduler", MAKERS)
def test_every_feature_has_its_scripts(scheduler: str) -> None:
    # A hundred seeds exercise each feature several times, those of CI at least once.
    seen: Counter[str] = Counter()
    for seed in range(1, 101):
        seen.update(MAKERS[scheduler].random_plan(seed).features)
        if seed == _IN_CI[scheduler]:
            in_ci = set(seen)
    assert min(seen.values()) >= 5, seen
    assert in_ci == seen.keys()
