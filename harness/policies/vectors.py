"""Several resources on paper: users with a demand vector per task, in exact arithmetic (QKnober, section 5).

Throughout, i is a user and k a resource. ``b_ik`` is user i's use of resource k, as a fraction of the capacity, per
unit of the dominant share s_i: d_ik / r_k relative to the largest of them, so that the largest b_ik of a user is 1.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from harness.base.errors import InputError

#: One value per resource, in the order of the scenario.
Vector = tuple[Fraction, ...]

#: Maximum number of comparisons, after which a scenario ends with an error instead of running for hours.
MAX_LOOKS = 20_000_000


@dataclass(frozen=True, slots=True)
class VectorUser:
    """A user: entitlement w_i (above 0), demand of one task, number of tasks (None: unlimited)."""

    name: str
    weight: Fraction
    task: Vector
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class VectorScenario:
    """Capacities r_k (above 0) by resource, and users in byte order of their names. Every user demands something."""

    resources: tuple[str, ...]
    capacity: Vector
    users: tuple[VectorUser, ...]

    def dominant(self, user: VectorUser) -> Fraction:
        """Return the dominant share of one task."""
        return max(d / r for d, r in zip(user.task, self.capacity, strict=True))

    def direction(self, user: VectorUser) -> Vector:
        """Return b_i: fractions of the capacities per unit of dominant share."""
        dominant = self.dominant(user)
        return tuple(d / r / dominant for d, r in zip(user.task, self.capacity, strict=True))


@dataclass(frozen=True, slots=True)
class Division:
    """Number of tasks per user (fractions unless integral), and further results of the policy.

    ``theta`` is Theorem 1's bound (None: the policy has none). ``notes``: further values by name, for the output.
    """

    tasks: tuple[Fraction, ...]
    theta: Fraction | None = None
    notes: dict[str, Fraction] = field(default_factory=dict)


class Counter:
    """A counter that aborts a division after too many comparisons."""

    def __init__(self) -> None:
        self.looks = 0

    def look(self, count: int) -> None:
        """Count comparisons; raise InputError if there are too many."""
        self.looks += count
        if self.looks > MAX_LOOKS:
            raise InputError(f"is not done after {MAX_LOOKS:,} comparisons", hint="fewer users or tasks")


def fair_level(directions: Sequence[Vector], weights: Sequence[Fraction], idle: Sequence[Fraction]) -> Fraction:
    """Return 1 / phi of eq. (11): the level s_i / w_i at which DRF exhausts the first resource.

    ``idle``: the fraction of each resource that is left.
    """
    totals = [sum((w * b[k] for b, w in zip(directions, weights, strict=True)), Fraction(0)) for k in range(len(idle))]
    return min(h / total for h, total in zip(idle, totals, strict=True) if total)


def theorem_1(directions: Sequence[Vector], weights: Sequence[Fraction], rho: Fraction) -> Fraction:
    """Return theta of Theorem 1: the bound of differences of s_i / w_i between users with unlimited tasks.

    It is the largest s'_i / w_i that a user reaches by taking all that the fairness-oriented stage leaves. The paper
    sets it to 0 at rho = 1, which is correct only if all users demand the bottleneck resource.
    """
    left = _left(directions, weights, rho)
    return max(
        min(h / used for h, used in zip(left, b, strict=True) if used) / w
        for b, w in zip(directions, weights, strict=True)
    )


def knob_for(directions: Sequence[Vector], weights: Sequence[Fraction], theta: Fraction) -> Fraction:
    """Return the smallest rho at which Theorem 1 bounds the differences by ``theta`` (section 7.2.1), in closed form.

    Returns 1 if no knob reaches it (users that do not demand the bottleneck).
    """
    level = fair_level(directions, weights, [Fraction(1)] * len(directions[0]))
    rho = Fraction(0)
    used = [
        sum((w * b[k] for b, w in zip(directions, weights, strict=True)), Fraction(0))
        for k in range(len(directions[0]))
    ]
    for b, w in zip(directions, weights, strict=True):
        # It is enough that one resource limits the user.
        rho = max(
            rho, min((1 - theta * w * part) / (level * total) for part, total in zip(b, used, strict=True) if part)
        )
    return min(rho, Fraction(1))


def theorem_2(directions: Sequence[Vector], weights: Sequence[Fraction]) -> Fraction:
    """Return the smallest rho with which every user has at least its own share (Theorem 2): phi / sum of weights."""
    return 1 / (fair_level(directions, weights, [Fraction(1)] * len(directions[0])) * sum(weights, Fraction(0)))


def _left(directions: Sequence[Vector], weights: Sequence[Fraction], rho: Fraction) -> list[Fraction]:
    """Return the capacity fractions that the fairness-oriented stage leaves idle (right side of (17), over r_k)."""
    m = len(directions[0])
    level = rho * fair_level(directions, weights, [Fraction(1)] * m)
    return [
        1 - level * sum((w * b[k] for b, w in zip(directions, weights, strict=True)), Fraction(0)) for k in range(m)
    ]


def soft_fairness(scenario: VectorScenario, tasks: Sequence[Fraction]) -> Fraction:
    """Return the largest difference of s_i / w_i between two users that have tasks (eq. 12)."""
    levels = [
        count * scenario.dominant(user) / user.weight
        for user, count in zip(scenario.users, tasks, strict=True)
        if user.tasks != 0
    ]
    return max(levels) - min(levels) if levels else Fraction(0)


def utilisation(scenario: VectorScenario, tasks: Sequence[Fraction]) -> Vector:
    """Return allocation / capacity, by resource."""
    return tuple(
        sum((count * user.task[k] for user, count in zip(scenario.users, tasks, strict=True)), Fraction(0)) / r
        for k, r in enumerate(scenario.capacity)
    )


# --- divisible tasks ---


def static_shares(scenario: VectorScenario) -> tuple[Fraction, ...]:
    """Return each user's number of tasks if every user, active or not, has a fixed share of every resource."""
    total = sum((user.weight for user in scenario.users), Fraction(0))
    found = []
    for user in scenario.users:
        count = user.weight / total / scenario.dominant(user)
        found.append(count if user.tasks is None else min(count, Fraction(user.tasks)))
    return tuple(found)


def progressive_filling(scenario: VectorScenario) -> tuple[Fraction, ...]:
    """Divide by weighted DRF with divisible tasks: raise s_i / w_i of all users together.

    A user stops when it has all its tasks or when a resource that it demands is exhausted.
    """
    m = len(scenario.resources)
    users = scenario.users
    directions = [scenario.direction(user) for user in users]
    # The level at which a user has all its tasks; None: never.
    ends = [None if u.tasks is None else u.tasks * scenario.dominant(u) / u.weight for u in users]
    finishing = sorted((end, i) for i, end in enumerate(ends) if end is not None)
    levels: list[Fraction | None] = [None] * len(users)
    slopes = [sum((u.weight * b[k] for u, b in zip(users, directions, strict=True)), Fraction(0)) for k in range(m)]
    left = [Fraction(1)] * m
    level = Fraction(0)
    rising = len(users)

    def stop(i: int) -> None:
        nonlocal rising
        if levels[i] is None:
            levels[i] = level
            rising -= 1
            for k in range(m):
                slopes[k] -= users[i].weight * directions[i][k]

    next_end = 0
    while rising:
        step = min(h / slope for h, slope in zip(left, slopes, strict=True) if slope)
        while next_end < len(finishing) and levels[finishing[next_end][1]] is not None:
            next_end += 1
        if next_end < len(finishing):
            step = min(step, finishing[next_end][0] - level)
        level += step
        left = [h - step * slope for h, slope in zip(left, slopes, strict=True)]
        while next_end < len(finishing) and finishing[next_end][0] <= level:
            stop(finishing[next_end][1])
            next_end += 1
        for k in range(m):
            if not left[k] and slopes[k]:
                for i, b in enumerate(directions):
                    if b[k]:
                        stop(i)
    return tuple(
        (found or Fraction(0)) * user.weight / scenario.dominant(user)
        for found, user in zip(levels, users, strict=True)
    )


# --- whole tasks ---


class Filling:
    """Whole tasks on one large server: allocations and idle resources."""

    def __init__(self, scenario: VectorScenario, counts: Sequence[int] | None = None) -> None:
        self.scenario = scenario
        self.users = scenario.users
        # Express capacities and tasks as integers, in units of their common divisor: ten times faster than fractions.
        self.unit: list[tuple[int, ...]] = [
            _whole([u.task[k] for u in self.users] + [r]) for k, r in enumerate(scenario.capacity)
        ]
        m = len(scenario.resources)
        self.task = [tuple(self.unit[k][i] for k in range(m)) for i in range(len(self.users))]
        self.capacity = [self.unit[k][-1] for k in range(m)]
        self.counts = list(counts) if counts is not None else [0] * len(self.users)
        self.idle = [
            self.capacity[k] - sum(c * task[k] for c, task in zip(self.counts, self.task, strict=True))
            for k in range(m)
        ]
        self.per_task = [scenario.dominant(user) / user.weight for user in self.users]
        squares = lcm(*(r * r for r in self.capacity))
        self.scale = [squares // (r * r) for r in self.capacity]
        self.counter = Counter()

    def level(self, i: int) -> Fraction:
        """Return s_i / w_i."""
        return self.counts[i] * self.per_task[i]

    def fits(self, i: int) -> bool:
        """Return whether the user has a task that fits."""
        tasks = self.users[i].tasks
        if tasks is not None and self.counts[i] >= tasks:
            return False
        return all(need <= idle for need, idle in zip(self.task[i], self.idle, strict=True))

    def give(self, i: int, count: int = 1) -> None:
        """Give a user tasks and subtract them from the idle resources."""
        self.counter.look(1)
        self.counts[i] += count
        self.idle = [idle - count * need for idle, need in zip(self.idle, self.task[i], strict=True)]

    def affinity(self, i: int) -> int:
        """Return a multiple of the dot product of the task's demand and the idle resources.

        Both are taken as fractions of the capacity. The factor is the same for all users.
        """
        return sum(need * idle * scale for need, idle, scale in zip(self.task[i], self.idle, self.scale, strict=True))

    def result(self) -> tuple[Fraction, ...]:
        """Return each user's number of tasks."""
        return tuple(Fraction(count) for count in self.counts)


def _whole(values: Sequence[Fraction]) -> tuple[int, ...]:
    common = lcm(*(value.denominator for value in values))
    return tuple(value.numerator * (common // value.denominator) for value in values)


def to_whole(scenario: VectorScenario, tasks: Sequence[Fraction]) -> Filling:
    """Round a division of divisible tasks to whole tasks: down, and then half a task or more up if it still fits.

    Users with the finest tasks (smallest dominant share of a task / weight) are rounded up first. This is the rule
    behind the paper's Figures 1 and 3 (91 and 109; 58, 71 and 71). Filling up task by task, lowest s_i / w_i first,
    agrees with Figure 1 but gives 59, 71 and 70 in Figure 3 (docs/decisions/qknober.md).
    """
    filling = Filling(scenario, [int(count) for count in tasks])
    for i in sorted(range(len(tasks)), key=lambda i: (filling.per_task[i], i)):
        if tasks[i] - filling.counts[i] >= Fraction(1, 2) and filling.fits(i):
            filling.give(i)
    return filling


def fill_lowest_first(filling: Filling) -> None:
    """Give idle resources task by task to the lowest s_i / w_i whose task fits, ties by name."""
    waiting = [(filling.level(i), i) for i in range(len(filling.users))]
    heapq.heapify(waiting)
    while waiting:
        _, i = heapq.heappop(waiting)
        filling.counter.look(4)
        # Idle resources only shrink, so a task that does not fit now never fits.
        if filling.fits(i):
            filling.give(i)
            heapq.heappush(waiting, (filling.level(i), i))
