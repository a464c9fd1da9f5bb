"""Our engine against Hadoop's FairScheduler class, on random decision scripts made here and now.

``YARNFAIR_ORACLE_SCRIPTS`` is their number (200 with CI=true, else 20), ``YARNFAIR_ORACLE_SEED`` the first seed.
Each has at least 20 nodes, 3 levels of queues, 30 applications and 2,000 assignments.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.sim.decide import Decider
from tests.oracle.decisions import counts, decisions, differences
from tests.oracle.scripts import Plan, make_script, random_plan

SCRIPTS = int(os.environ.get("YARNFAIR_ORACLE_SCRIPTS") or (200 if os.environ.get("CI") == "true" else 20))
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)
PER_JVM = 20
LEAST = 2000


def _plan(seed: int, attempt: int) -> Plan:
    # Every fifth script has its shares compared after each update too.
    plan = random_plan(seed, shares="queues" if seed % 5 == 0 else "none")
    plan.tasks += 40 * attempt
    plan.apps += 30 * attempt
    plan.seconds += 200 * attempt
    return plan


def _large_enough(seeds: range, folder: Path) -> list[tuple[Plan, Any, Any]]:
    """Plans with their scripts in base events and Hadoop's decisions; those with few assignments get more work."""
    done: dict[int, tuple[Plan, Any, Any]] = {}
    for attempt in range(6):
        left = [seed for seed in seeds if seed not in done]
        plans = [_plan(seed, attempt) for seed in left]
        pairs = decisions([make_script(plan) for plan in plans], folder) if left else []
        for plan, (script, theirs) in zip(plans, pairs, strict=True):
            if len(theirs["assignments"]) >= LEAST:
                done[plan.seed] = (plan, script, theirs)
    assert len(done) == len(seeds), f"too few assignments for seeds {[seed for seed in seeds if seed not in done]}"
    return [done[seed] for seed in seeds]


@pytest.mark.java
@pytest.mark.parametrize("first", range(SEED, SEED + SCRIPTS, PER_JVM))
def test_every_decision_is_hadoops(first: int, tmp_path: Path, record_property: Any) -> None:
    seeds = range(first, min(first + PER_JVM, SEED + SCRIPTS))
    scripts: Counter[str] = Counter()
    assignments: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failures = []
    for plan, script, theirs in _large_enough(seeds, tmp_path):
        assert len(script["nodes"]) >= 20
        assert sum("app" in event for event in script["events"]) >= 30
        found = differences(theirs, Decider(script).run())
        if found:
            failures.append(f"seed {plan.seed}, {sorted(plan.features)}: {'; '.join(found)}")
        for feature in plan.features:
            scripts[feature] += 1
            assignments[feature] += len(theirs["assignments"])
        kinds += counts(script, theirs)
    # Plain dicts: the property travels between test processes.
    found_by = {"by": dict(scripts), "assignments": dict(assignments), "kinds": dict(kinds)}
    record_property("oracle", {"scripts": len(seeds), **found_by})
    assert not failures, "\n".join(failures)


def test_every_feature_has_its_scripts() -> None:
    # Whatever the number of scripts in a run, a hundred seeds exercise each feature several times.
    seen: Counter[str] = Counter()
    for seed in range(1, 101):
        seen.update(random_plan(seed).features)
    assert min(seen.values()) >= 5, seen
