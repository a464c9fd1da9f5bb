"""QKnober on paper: both stages for unlimited demands, the rounds for finite tasks, and rounding to whole tasks.

Paper: section 5.2.1 (both stages) and section 6.1 (C1: finite tasks, C2: whole tasks).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from harness.policies.vectors import (
    Counter,
    Division,
    Vector,
    VectorScenario,
    fair_level,
    knob_for,
    theorem_1,
    theorem_2,
    to_whole,
)
from harness.systems.qknober.packing import pack


def two_stages(
    directions: Sequence[Vector], weights: Sequence[Fraction], idle: Sequence[Fraction], rho: Fraction
) -> tuple[list[Fraction], Fraction]:
    """Return s_i / w_i of users with unlimited demands who share ``idle``, and their fair part.

    ``idle`` are fractions of the capacities. Stage one gives every user the same fair part: rho times what DRF would
    give (14). Stage two divides the rest most efficiently, with equal gains for users of one direction of demand
    (15)-(17); if several divisions are most efficient, it takes the lexicographic max-min of them.
    """
    m = len(idle)
    fair = rho * fair_level(directions, weights, idle)
    left = [
        h - fair * sum((w * b[k] for b, w in zip(directions, weights, strict=True)), Fraction(0))
        for k, h in enumerate(idle)
    ]
    groups: dict[Vector, Fraction] = {}
    for b, w in zip(directions, weights, strict=True):
        groups[b] = groups.get(b, Fraction(0)) + w
    extra = dict(zip(groups, pack([[w * b[k] for k in range(m)] for b, w in groups.items()], left), strict=True))
    return [fair + extra[b] for b in directions], fair


def divide(scenario: VectorScenario, rho: Fraction | None, theta: Fraction | None, integral: bool) -> Division:
    """Divide the cluster by the whole policy. The knob is ``rho``; if ``theta`` is given, rho is computed from it.

    Finite tasks (C1): the idle resources are divided, and all active users grow in proportion to their parts until one
    has all its tasks. The others then divide what is still idle in the same way. Dominant shares are always fractions
    of the whole cluster. With ``integral``, the numbers of tasks are whole (C2).
    """
    directions = [scenario.direction(user) for user in scenario.users]
    weights = [user.weight for user in scenario.users]
    with_tasks = [i for i, user in enumerate(scenario.users) if user.tasks != 0]
    if not with_tasks:
        return Division(tuple(Fraction(0) for _ in scenario.users), Fraction(0))
    at_first = [directions[i] for i in with_tasks], [weights[i] for i in with_tasks]
    if theta is not None:
        rho = knob_for(*at_first, theta)
    assert rho is not None
    per_level = [w / scenario.dominant(user) for w, user in zip(weights, scenario.users, strict=True)]
    tasks = [Fraction(0)] * len(scenario.users)
    fair_tasks = [Fraction(0)] * len(scenario.users)
    idle = [Fraction(1)] * len(scenario.resources)
    active = with_tasks
    counter = Counter()
    while active:
        counter.look(20 * len(active) * len(idle) ** 2)
        levels, fair = two_stages([directions[i] for i in active], [weights[i] for i in active], idle, rho)
        part = Fraction(1)
        for i, level in zip(active, levels, strict=True):
            wanted = scenario.users[i].tasks
            if wanted is not None and level:
                part = min(part, (wanted - tasks[i]) / (level * per_level[i]))
        for i, level in zip(active, levels, strict=True):
            tasks[i] += part * level * per_level[i]
            fair_tasks[i] += part * fair * per_level[i]
            grown = part * level * weights[i]
            idle = [h - grown * b for h, b in zip(idle, directions[i], strict=True)]
        if part == 1:
            break
        active = [
            i
            for i in active
            if tasks[i] != scenario.users[i].tasks and all(h for h, b in zip(idle, directions[i], strict=True) if b)
        ]
    if integral:
        tasks = list(whole_tasks(scenario, tasks, fair_tasks))
    notes = {"rho": rho, "sharing_incentive_rho": theorem_2(*at_first)}
    return Division(tuple(tasks), theorem_1(*at_first, rho), notes)


def whole_tasks(
    scenario: VectorScenario, tasks: Sequence[Fraction], fair_tasks: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """Round a division to whole tasks (C2), then add single tasks in the order of Algorithm 1.

    While users are below their fair parts, the next task goes to the one of them with the lowest s_i / w_i. After that
    it goes to the user whose task has the greatest affinity to the idle resources; ties go to the lower s_i / w_i, then
    by name.
    """
    filling = to_whole(scenario, tasks)
    candidates = [i for i in range(len(scenario.users)) if filling.fits(i)]
    while candidates:
        filling.counter.look(10 * len(candidates))
        below = [i for i in candidates if filling.counts[i] < fair_tasks[i]]
        if below:
            chosen = min(below, key=lambda i: (filling.level(i), i))
        else:
            chosen = min(candidates, key=lambda i: (-filling.affinity(i), filling.level(i), i))
        filling.give(chosen)
        candidates = [i for i in candidates if filling.fits(i)]
    return filling.result()
