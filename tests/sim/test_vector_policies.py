"""The compiled rules of `harness.sim.vector` place what the policies divide: one server, everything asked for at once.

Demands, capacities and weights are such that floats hold them exactly, so that ties are ties on both sides. One
difference is known and left out here: of equal affinities QKnober's policy takes the lower s_i / w_i, the servers take
the first user.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from harness.policies import make_policy
from harness.policies.qknober_paper import whole_tasks
from harness.policies.vectors import Filling, VectorScenario, VectorUser, fair_level, fill_lowest_first
from harness.sim.vector import RULES, VectorLoad, simulate

CAPACITY = 64
WEIGHTS = 16


def scenario(draws: random.Random, rule: str) -> VectorScenario:
    """Two to five users of one to three resources; under ``static`` a task fits into its user's own part."""
    m, n = draws.randint(1, 3), draws.randint(2, 5)
    cuts = sorted(draws.sample(range(1, WEIGHTS), n - 1))
    weights = [b - a for a, b in zip([0, *cuts], [*cuts, WEIGHTS], strict=True)]
    users = []
    for i, weight in enumerate(weights):
        most = CAPACITY * weight // WEIGHTS if rule == "static" else CAPACITY // 3
        task = [Fraction(draws.randint(0, most)) for _ in range(m)]
        task[draws.randrange(m)] = Fraction(draws.randint(1, most))
        users.append(VectorUser(f"u{i}", Fraction(weight), tuple(task), draws.randint(0, 40)))
    names = ("vcores", "memory_gb", "disk")[:m]
    return VectorScenario(names, (Fraction(CAPACITY),) * m, tuple(users))


def compiled(given: VectorScenario, rule: str, knob: float) -> list[int]:
    """Tasks by user that run at once."""
    rows = [(i, user) for i, user in enumerate(given.users) for _ in range(user.tasks or 0)]
    load = VectorLoad(
        servers=np.array([[float(r) for r in given.capacity]]),
        weights=np.array([float(user.weight) for user in given.users]),
        user=np.array([i for i, _ in rows], np.int64),
        submit_ms=np.zeros(len(rows), np.int64),
        duration_ms=np.full(len(rows), 10_000, np.int64),
        demand=np.array([[float(need) for need in user.task] for _, user in rows]),
    )
    run = simulate(load, rule, knob, sample_s=1.0)
    held = zip(run.shares[0], given.users, strict=True)
    return [round(float(share) / float(given.dominant(user))) for share, user in held]


def by_policy(given: VectorScenario, rule: str, knob: Fraction) -> Sequence[Fraction]:
    if rule == "drf":
        # From an empty server: the policy itself fills up what the divisible division leaves.
        filling = Filling(given)
        fill_lowest_first(filling)
        return filling.result()
    if rule == "static":
        return [Fraction(int(count)) for count in make_policy("static").divide(given).tasks]
    if rule == "tetris":
        return make_policy("tetris", {"f": str(float(knob))}).divide(given).tasks
    # Algorithm 1 from an empty server, too.
    return whole_tasks(given, [Fraction(0)] * len(given.users), fair_tasks(given, knob))


def fair_tasks(given: VectorScenario, knob: Fraction) -> list[Fraction]:
    """What the fairness-oriented stage gives the users that have tasks (eq. 11)."""
    asking = [user for user in given.users if user.tasks]
    total = sum(user.weight for user in given.users)
    level = fair_level(
        [given.direction(user) for user in asking],
        [user.weight / total for user in asking],
        [Fraction(1)] * len(given.capacity),
    )
    return [knob * level * user.weight / total / given.dominant(user) for user in given.users]


def has_ties(given: VectorScenario, fair: Sequence[Fraction]) -> bool:
    """Whether two users' tasks have the greatest affinity at some step of Algorithm 1."""
    filling = Filling(given)
    while candidates := [i for i in range(len(given.users)) if filling.fits(i)]:
        below = [i for i in candidates if filling.counts[i] < fair[i]]
        if below:
            filling.give(min(below, key=lambda i: (filling.level(i), i)))
            continue
        most = max(filling.affinity(i) for i in candidates)
        best = [i for i in candidates if filling.affinity(i) == most]
        if len(best) > 1:
            return True
        filling.give(best[0])
    return False


@pytest.mark.parametrize("rule", RULES)
def test_the_compiled_rules_are_the_policies(rule: str) -> None:
    draws = random.Random(f"one server/{rule}")
    tried = 0
    for number in range(600):
        given = scenario(draws, rule)
        knob = Fraction(draws.randint(0, 8), 8)
        if not any(user.tasks for user in given.users):
            continue
        if rule == "qknober" and has_ties(given, fair_tasks(given, knob)):
            continue
        wanted = [int(count) for count in by_policy(given, rule, knob)]
        assert compiled(given, rule, float(knob)) == wanted, f"instance {number}: {given}, knob {knob}"
        tried += 1
    assert tried >= 500
