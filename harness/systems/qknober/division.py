"""QKnober on paper: the two stages for users without end, round by round for finite tasks, whole tasks at the end.

Paper, sections 5.2.1 (both stages), 6.1 (C1: finite tasks, C2: whole tasks).
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
    """s_i / w_i of users without end who share ``idle`` (fractions of the capacities), and the fair part of it.

    Stage one: rho of what DRF would give, the same for everybody (14). Stage two: the most efficient division of what
    is left, users of one direction alike (15)-(17); of several the lexicographic max-min.
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
    """The whole policy: the knob as rho, or as the theta that is wanted (None: rho counts).

    Finite tasks (C1): all active users grow in proportion to the division of what is idle until one has all its tasks;
    the rest starts anew with what is then idle. Dominant shares stay those of the whole cluster.
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
    """Whole tasks (C2) from the divisible division: rounded, then one by one as Algorithm 1 has it.

    While somebody's fair part is not reached: to the lowest s_i / w_i among those. Then to the task with the greatest
    affinity to what is idle, ties to the lower s_i / w_i, then by name.
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
