"""The compiled rules of `harness.systems.qknober.simulator` place what the policies divide: one server, everything
asked for at once.

Demands, capacities and weights are such that floats hold them exactly, so that ties are ties on both sides. In half of
the instances demands are so coarse that they often are: of equal affinities the lower s_i / w_i comes first.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from harness.policies import make_policy
from harness.policies.vectors import Filling, VectorScenario, VectorUser, fair_level, fill_lowest_first
from harness.systems.qknober.division import whole_tasks
from harness.systems.qknober.simulator import RULES, VectorLoad, simulate

CAPACITY = 64
WEIGHTS = 16


def scenario(draws: random.Random, rule: str, step: int) -> VectorScenario:
    """Two to five users of one to three resources, demands in multiples of a step; under ``static`` a task fits into
    its user's own part."""
    m, n = draws.randint(1, 3), draws.randint(2, 5)
    cuts = sorted(draws.sample(range(1, WEIGHTS), n - 1))
    weights = [b - a for a, b in zip([0, *cuts], [*cuts, WEIGHTS], strict=True)]
    users = []
    for i, weight in enumerate(weights):
        most = CAPACITY * weight // WEIGHTS if rule == "static" else CAPACITY // 3
        step = min(step, most)
        task = [Fraction(step * draws.randint(0, most // step)) for _ in range(m)]
        task[draws.randrange(m)] = Fraction(step * draws.randint(1, most // step))
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


@pytest.mark.parametrize("rule", RULES)
def test_the_compiled_rules_are_the_policies(rule: str) -> None:
    draws = random.Random(f"one server/{rule}")
    tried = 0
    for number in range(1200):
        given = scenario(draws, rule, 1 if number % 2 else 7)
        knob = Fraction(draws.randint(0, 8), 8)
        if not any(user.tasks for user in given.users):
            continue
        wanted = [int(count) for count in by_policy(given, rule, knob)]
        assert compiled(given, rule, float(knob)) == wanted, f"instance {number}: {given}, knob {knob}"
        tried += 1
    assert tried >= 1100
