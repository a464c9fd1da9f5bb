"""MROrder's dispatching queue and policy module (tang-thesis section 3.4.2): a state machine without a clock.

Callers report events (`arrive`, `finish`, `clock`, `close`). Each call returns the submissions that are due, in the
order in which a FIFO queue is to receive them. `next_s` is when `clock` must be called next. The simulator, the studies
of chapter 3 and the driver of a real cluster all use it. Times are seconds of the caller's clock and must not decrease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf
from typing import Literal

from harness.systems.mrorder.ordering.bounds import flow_shop_makespan
from harness.systems.mrorder.ordering.engines import Ordering, engine
from harness.systems.mrorder.ordering.greedy import processing_times
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots

#: pnj: after a number of jobs. tp-fti: at a fixed interval (Algorithm 3). tp-ati: at an adaptive interval (Algorithm
#: 4).
When = Literal["pnj", "tp-fti", "tp-ati"]


@dataclass(frozen=True, slots=True)
class DispatchingQueue:
    """The configuration of a queue that holds jobs back until `when` and submits each round in the order of `ordering`.

    history
        Earlier runs or traces for the estimates, separated by commas; empty: estimates use the declared mean times.
    map_slots, reduce_slots
        Slots for the estimates; 0: as many as fit on the cluster at once.
    """

    when: Dispatching
    ordering: Ordering
    history: str = ""
    map_slots: int = 0
    reduce_slots: int = 0


@dataclass(frozen=True, slots=True)
class Dispatching:
    """When the policy module starts a round.

    when
        ``pnj``: as soon as `jobs` jobs wait. ``tp-fti``: every `interval_s`. ``tp-ati`` (the thesis' default): first
        after `interval_s`, then after the estimated duration of the previous round, but at least `interval_s`.
    most
        Maximum number of jobs per round; the others wait for the next round.
    eager
        Not in the thesis: a round also starts as soon as all submitted jobs have finished (needs calls of `finish`).
    """

    when: When = "tp-ati"
    interval_s: float = 10.0
    jobs: int = 7
    most: float = inf
    eager: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that is to be submitted now. `round` is the number of its ordering round, from 1."""

    job: MapReduceJob
    arrived_s: Fraction
    submitted_s: Fraction
    round: int


class Dispatcher:
    """The thesis' JobDispatchingQueue with its policy module. Jobs are identified by name."""

    def __init__(
        self, slots: Slots, how: Dispatching | None = None, order: Ordering | None = None, start_s: float = 0
    ) -> None:
        self.slots, self.how = slots, how or Dispatching()
        self.order = order if order is not None else engine("makespan")
        self.waiting: list[tuple[MapReduceJob, Fraction]] = []
        self.submitted: dict[str, bool] = {}  # name -> finished
        self.rounds = 0
        self._next: Fraction | None = None
        if self.how.when != "pnj":
            self._next = Fraction(start_s) + Fraction(self.how.interval_s)

    @property
    def next_s(self) -> Fraction | None:
        """The time at which `clock` must be called next; None: only other events can cause submissions."""
        return self._next

    def arrive(self, job: MapReduceJob, now_s: Fraction | float) -> list[Submission]:
        """Report the arrival of a job."""
        now = Fraction(now_s)
        out = self.clock(now, before=True)
        self.waiting.append((job, now))
        if self.how.when == "pnj":
            while len(self.waiting) >= self.how.jobs:
                out += self._round(now)
        elif self.how.eager and self.submitted and all(self.submitted.values()):
            out += self._round(now)
        return out

    def finish(self, name: str, now_s: Fraction | float) -> list[Submission]:
        """Report the end of a submitted job."""
        now = Fraction(now_s)
        out = self.clock(now)
        if name in self.submitted:
            self.submitted[name] = True
        if self.how.eager and self.waiting and all(self.submitted.values()):
            out += self._round(now)
        return out

    def clock(self, now_s: Fraction | float, *, before: bool = False) -> list[Submission]:
        """Report the time, and run every round that is due by now.

        With ``before``, rounds due exactly now are left for later.
        """
        now, out = Fraction(now_s), []
        while self._next is not None and (self._next < now if before else self._next <= now):
            if not self.waiting:
                # Skip all rounds without jobs at once, because an interval may be short. They are one interval apart.
                late, interval = now - self._next, Fraction(self.how.interval_s)
                self._next += interval * (ceil(late / interval) if before else floor(late / interval) + 1)
                break
            out += self._round(self._next)
        return out

    def close(self, now_s: Fraction | float) -> list[Submission]:
        """Report that no further jobs will arrive.

        Under ``pnj``, jobs that wait are then submitted although fewer than `jobs` of them wait.
        """
        out = self.clock(now_s)
        while self.waiting and self.how.when == "pnj":
            out += self._round(Fraction(now_s))
        return out

    def _round(self, now: Fraction) -> list[Submission]:
        """Run one round: order the waiting jobs and return their submissions (steps 2 to 5 of Algorithms 3 and 4)."""
        count = len(self.waiting) if self.how.most == inf else min(len(self.waiting), max(1, int(self.how.most)))
        if self.how.when == "pnj":
            count = min(len(self.waiting), max(count, 1))
        chosen, self.waiting = self.waiting[:count], self.waiting[count:]
        jobs = [job for job, _ in chosen]
        ordered = [chosen[index] for index in self.order(jobs, self.slots)] if len(jobs) > 1 else chosen
        wait = Fraction(self.how.interval_s)
        if self.how.when == "tp-ati":
            wait = max(wait, self._round_s([job for job, _ in ordered]))
        if self.how.when != "pnj":
            self._next = now + wait
        if not ordered:
            return []
        self.rounds += 1
        for job, _ in ordered:
            self.submitted[job.name] = False
        return [Submission(job, arrived, now, self.rounds) for job, arrived in ordered]

    def _round_s(self, jobs: Sequence[MapReduceJob]) -> Fraction:
        """Return T_A of step 5 of Algorithm 4, the estimated duration of the round, s."""
        return flow_shop_makespan([processing_times(job, self.slots) for job in jobs])


def dispatch(
    arrivals: Sequence[tuple[MapReduceJob, Fraction | float]],
    slots: Slots,
    how: Dispatching | None = None,
    order: Ordering | None = None,
) -> list[Submission]:
    """Return all submissions for arrivals that are known in advance, in order of time.

    The ends of jobs are not reported to the dispatcher.
    """
    machine = Dispatcher(slots, how, order)
    out: list[Submission] = []
    for job, arrived in arrivals:
        out += machine.arrive(job, arrived)
    last = Fraction(arrivals[-1][1]) if arrivals else Fraction(0)
    out += machine.close(last)
    while machine.waiting:
        assert machine.next_s is not None
        out += machine.clock(machine.next_s)
    return out
