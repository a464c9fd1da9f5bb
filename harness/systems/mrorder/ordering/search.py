"""Search for the best order of a set of jobs: greedy orders, local search, then branch and bound until it is proven.

The search can be stopped at any time; it then returns the best order found and a bound that no order can beat. The
inner loops are in slot_kernel.py and search_kernel.py. The search has no clock; the caller decides when to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any, Literal

import numpy as np

from harness.base.errors import CallError
from harness.systems.mrorder.ordering.greedy import GREEDY, Order, mk_jr
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots, scaled
from harness.systems.mrorder.ordering.search_kernel import Instance, Memory, kernel

Objective = Literal["makespan", "tct"]

#: Greedy orders with which the search starts. Of equal ones the first is kept, so an optimal greedy order is the
#: result.
STARTS: dict[Objective, tuple[str, ...]] = {
    "makespan": ("mk_jr", "mk_tct_jr", "tct", "given", "worst"),
    "tct": ("tct", "mk_tct_jr", "mk_jr", "given", "worst"),
}

#: Number of bounds computed, or local moves tried, between two calls of `stop`; well below a second of compiled work.
CHUNK = 20_000
#: The same for uncompiled code, which is about a hundred times slower.
PLAIN_CHUNK = 200

#: Maximum number of jobs, because memory grows with the square of it.
MAX_JOBS = 1000


@dataclass(frozen=True)
class Optimum:
    """The best order found (indices of jobs), its value, and a bound that no order can beat, in seconds.

    `nodes` is the number of partial orders that were examined. If value and bound are equal, the order is optimal.
    """

    order: Order
    value: Fraction
    bound: Fraction
    nodes: int

    @property
    def proven(self) -> bool:
        """Whether the order is proven to be optimal."""
        return self.value == self.bound


def optimal(
    jobs: Sequence[MapReduceJob],
    slots: Slots,
    objective: Objective = "makespan",
    stop: Callable[[], bool] = lambda: False,
) -> Optimum:
    """Search for the order with the smallest makespan or total completion time.

    ``stop`` is called several times a second and ends the search if it returns True. Otherwise the same jobs always
    give the same order. Raises CallError if there are tasks of a kind but no slots for them, or more than MAX_JOBS
    jobs.
    """
    jobs = tuple(jobs)
    slots.check(jobs)
    if len(jobs) > MAX_JOBS:
        raise CallError(
            f"{len(jobs)} jobs are too many to search for the best order",
            hint=f"give at most {MAX_JOBS}, or take mk_jr, mk_tct_jr or tct",
        )
    search = _Search(jobs, slots, objective)
    search.begin()
    # Search without local moves first: it is enough for few jobs. For many jobs, good orders come from local search.
    done = search.bound_met() or search.branch(search.chunk)
    while not done and not search.bound_met() and not stop():
        search.improve()
        done = search.bound_met() or search.branch(4 * search.chunk)
    return search.result()


class _Search:
    """The arrays on which the kernel works, and the state of the search between calls of the kernel."""

    def __init__(self, jobs: tuple[MapReduceJob, ...], slots: Slots, objective: Objective) -> None:
        self._jobs, self._slots, self._objective = jobs, slots, objective
        n = len(jobs)
        times = scaled(jobs)
        # Every start is a sum of task times. In units of their greatest common divisor all times are still integers.
        unit = gcd(*times.map_times, *times.reduce_times) or 1
        self._unit_s = Fraction(unit, times.per_second)
        m, r = [job.maps for job in jobs], [job.reduces for job in jobs]
        a = [time // unit for time in times.map_times]
        b = [time // unit for time in times.reduce_times]
        map_slots, reduce_slots = max(1, slots.maps), max(1, slots.reduces)
        tails = [-(-r[j] // reduce_slots) * b[j] for j in range(n)]
        last = sum(-(-m[j] // map_slots) * a[j] + tails[j] for j in range(n)) + max([0, *a, *b])
        # No product or sum in the kernel exceeds this value.
        largest = (
            4 * max(last, 1) * max(map_slots * reduce_slots, n, map_slots * max([1, *m]), reduce_slots * max([1, *r]))
        )
        small = largest < 2**62
        self._kernel: Any = kernel(compiled=small)
        self.chunk = CHUNK if small else PLAIN_CHUNK
        kind: Any = np.int64 if small else object

        def zeros(*shape: int) -> Any:
            return np.zeros(shape, dtype=kind)

        def array(values: Sequence[Any]) -> Any:
            return np.array(values, dtype=kind)

        width = n + 3
        seen: dict[tuple[int, int, int, int], int] = {}
        twins = []
        for j, same in enumerate(zip(m, a, r, b, strict=True)):
            twins.append(seen.get(same, -1))
            seen[same] = j
        everyone = range(n)
        self._instance = Instance(
            jobs=array([m, a, r, b]),
            slots=array([slots.maps, slots.reduces]),
            by=np.array(
                [
                    mk_jr(jobs, slots),
                    sorted(everyone, key=lambda j: -tails[j]),
                    sorted(everyone, key=lambda j: m[j] * a[j]),
                    sorted(everyone, key=lambda j: r[j] * b[j]),
                ],
                dtype=np.int64,
            ),
            tails=array(tails),
            twins=np.array(twins, dtype=np.int64),
            total=objective == "tct",
            far=2**62 if small else 4 * largest,
        )
        self._memory = Memory(
            order=np.zeros(n, dtype=np.int64),
            used=np.zeros(n, dtype=np.int64),
            maps=zeros(n + 1, 3, width),
            reduces=zeros(n + 1, 5, width),
            released=zeros(n),
            nexts=zeros(n),
            soonest=zeros(n),
            stack=zeros(n, 3, max(2, n)),
            work=zeros(4, width),
        )
        self._memory.maps[0, 1, 0] = slots.maps
        self._memory.maps[0, 2, 0] = 1
        #: depth, best value, number of bounds computed
        self._state = zeros(3)
        self._best_order = np.zeros(n, dtype=np.int64)
        self._row = zeros(5, width)
        self._moves = np.zeros((2, width), dtype=np.int64)
        self._seed = 1
        self._complete = False

    def begin(self) -> None:
        """Compute the best greedy order, the bound at the root, and the root's children."""
        found: list[tuple[int, Order]] = []
        for name in STARTS[self._objective]:
            order = GREEDY[name](self._jobs, self._slots)
            found.append((int(self._kernel.value_of(np.array(order, dtype=np.int64), *self._valuation())), order))
        self._state[1], best = min(found, key=lambda item: item[0])
        self._best_order[:] = best
        self._root = int(self._kernel.settle(0, self._instance, self._memory))
        self._kernel.expand(0, self._state, self._instance, self._memory)

    def _valuation(self) -> tuple[Any, ...]:
        given = self._instance
        return given.jobs, given.slots, given.total, given.far, self._row, self._memory.work

    def branch(self, bounds: int) -> bool:
        """Continue the search for this many bounds. Return True if all orders have been examined or excluded."""
        until = int(self._state[2]) + bounds
        self._complete = bool(self._kernel.branch(self._state, self._best_order, self._instance, self._memory, until))
        return self._complete

    def improve(self) -> None:
        """Run a limited local search from the best order."""
        # The cost of evaluating an order grows with the number of jobs, the cost of a bound hardly does.
        trials = max(1, self.chunk // max(1, len(self._jobs) // 8))
        self._state[1], self._seed = self._kernel.improve(
            self._best_order, self._state[1], *self._valuation(), self._moves, self._seed, trials
        )

    def _bound(self) -> int:
        """Return a value that no order can beat: the smallest bound of the orders not examined, or the best value."""
        best = int(self._state[1])
        if self._complete:
            return best
        open_bounds = [
            int(self._memory.stack[depth, 1, at])
            for depth in range(int(self._state[0]) + 1)
            for at in range(int(self._memory.stack[depth, 2, 1]), int(self._memory.stack[depth, 2, 0]))
        ]
        return min([best, max(self._root, min(open_bounds, default=best))])

    def bound_met(self) -> bool:
        return self._bound() >= int(self._state[1])

    def result(self) -> Optimum:
        return Optimum(
            tuple(int(job) for job in self._best_order),
            int(self._state[1]) * self._unit_s,
            self._bound() * self._unit_s,
            int(self._state[2]),
        )
