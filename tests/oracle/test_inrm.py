"""LTRF and H-LTRF inside the real FairScheduler decide as the simulator's do in its own, assignment by assignment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.sim.fair.decide import FairDecider
from tests.oracle.inrm import flattened, hadoops, ours, with_policy, without_policy
from tests.oracle.scripts import Plan, make_script

pytestmark = pytest.mark.java

FEATURES = frozenset({"weights", "am", "release", "late", "hashes"})
#: With what holds a leaf back that asks: it does not lift its group.
LIMITED = FEATURES | {"amshare", "maxapps", "max", "bigasks", "increments"}
#: (policy, settings, seed): flat and grouped queues, what is counted, rounds, discount, T_wait.
CASES: list[tuple[str, dict[str, str], int]] = [
    ("ltrf", {}, 11),
    ("ltrf", {"round_s": "30"}, 12),
    ("ltrf", {"discount": "0.5"}, 13),
    ("ltrf", {"resource": "vcores"}, 14),
    ("naive-hltrf", {}, 15),
    ("naive-hltrf", {"round_s": "45", "discount": "0.25"}, 16),
    ("hltrf", {"t_wait_s": "0"}, 17),
    ("hltrf", {"t_wait_s": "4"}, 18),
    ("hltrf", {"t_wait_s": "15", "resource": "dominant"}, 19),
    ("hltrf", {"t_wait_s": "inf"}, 20),
    ("ltrf", {"pseudo": "true"}, 21),
    ("naive-hltrf", {"pseudo": "true", "round_s": "40"}, 22),
    ("ltrf", {"quantum_s": "5"}, 23),
    ("ltrf", {"quantum_s": "10", "adaptive_quantum": "true"}, 24),
    ("naive-hltrf", {"quantum_s": "20", "adaptive_quantum": "true", "pseudo": "true", "round_s": "45"}, 25),
    ("hltrf", {"quantum_s": "8", "adaptive_quantum": "true", "t_wait_s": "6", "resource": "dominant"}, 26),
]
#: The same, with limits.
LIMITED_CASES: list[tuple[str, dict[str, str], int]] = [
    ("hltrf", {"t_wait_s": "0"}, 27),
    ("hltrf", {"t_wait_s": "0", "quantum_s": "8", "adaptive_quantum": "true"}, 28),
    ("hltrf", {"t_wait_s": "4"}, 29),
    ("hltrf", {"t_wait_s": "10", "resource": "dominant"}, 30),
]


def script_of(policy: str, seed: int, features: frozenset[str]) -> dict[str, Any]:
    script = make_script(Plan(seed, features, nodes=8, apps=30, seconds=120, tasks=25))
    return flattened(script, seed) if policy == "ltrf" else script


def test_the_same_assignments(tmp_path: Path) -> None:
    cases = [(*case, FEATURES) for case in CASES] + [(*case, LIMITED) for case in LIMITED_CASES]
    scripts = [with_policy(script_of(policy, seed, has), policy, settings) for policy, settings, seed, has in cases]
    total, unlike_fair = 0, 0
    for (policy, settings, seed, _), (explicit, theirs) in zip(cases, hadoops(scripts, tmp_path), strict=True):
        where = f"{policy} {settings} seed {seed}"
        assert theirs["errors"] == [], where
        mine = ours(explicit, policy, settings)["assignments"]
        for index, (a, b) in enumerate(zip(theirs["assignments"], mine, strict=False)):
            assert a == b, f"{where}: assignment {index}: inside Hadoop {a}, ours {b}"
        assert len(theirs["assignments"]) == len(mine), where
        total += len(mine)
        unlike_fair += mine != FairDecider(without_policy(explicit)).run()["assignments"]
    assert total > 3000
    assert unlike_fair == len(cases)
