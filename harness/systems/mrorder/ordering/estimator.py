"""Times of jobs in a given order: list scheduling of map and reduce slots under FIFO.

This is MREstimator and HSim of tang-thesis (sections 3.3.1.2 and 3.4.2.3): all jobs are submitted at time 0, a free
slot goes to the first job in the order with a waiting task, and a job's reduces wait for its last map. The arithmetic
is exact. Modules greedy and search choose the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise
from math import lcm

from harness.base.errors import CallError
from harness.systems.mrorder.ordering.jobs import MapReduceJob, Slots, scaled

#: Maximum number of tasks if any have their own times, because these are assigned to slots one by one.
MAX_FOLLOWED = 10**6


@dataclass(frozen=True)
class Estimate:
    """The times at which jobs end, in seconds; both tuples are in the order of the given jobs."""

    map_completions: tuple[Fraction, ...]
    completions: tuple[Fraction, ...]

    @property
    def makespan(self) -> Fraction:
        """C_max, the end of the last job, s (section 3.3.1.1)."""
        return max(self.completions, default=Fraction(0))

    @property
    def total_completion_time(self) -> Fraction:
        """C_tct, the sum of the jobs' completion times, s (section 3.3.1.1)."""
        return sum(self.completions, Fraction(0))


class SlotPool:
    """Slots of one kind, grouped by the time at which they become free.

    A batch of equal tasks splits at most one group, so there are never more groups than batches, for any number of
    slots and tasks.
    """

    def __init__(self, slots: int) -> None:
        #: (time at which the slots become free, number of slots), in strictly increasing order of time
        self.groups: list[tuple[int, int]] = [(0, slots)] if slots else []

    @property
    def free_at(self) -> int:
        """The time at which the first slot becomes free."""
        return self.groups[0][0]

    def idle_until(self, time: int) -> None:
        """Keep all slots that become free before `time` idle until then."""
        late = [group for group in self.groups if group[0] > time]
        count = sum(count for _, count in self.groups) - sum(count for _, count in late)
        self.groups = ([(time, count)] if count else []) + late

    def start(self, tasks: int, duration: int, before: int | None = None) -> tuple[int, int]:
        """Start up to `tasks` tasks of `duration` as early as slots are free, none at `before` or later.

        Returns how many tasks started, and when the last of them did (-1 if none).
        """
        if before is not None and self.free_at >= before:
            return 0, -1
        if duration == 0:
            return tasks, self.free_at
        if before is not None:
            room = sum(n * _waves(time, before, duration) for time, n in self.groups if time < before)
            tasks = min(tasks, room)
        if tasks == 0:
            return 0, -1
        # The groups that take part are those that become free before the last task starts: the longest prefix of groups
        # such that fewer than `tasks` tasks start before its last group is free.
        taking = len(self.groups)
        while True:
            level = self.groups[taking - 1][0]
            earlier = sum(n * _waves(time, level, duration) for time, n in self.groups[:taking])
            if earlier < tasks:
                break
            taking -= 1
        ready = sorted((time + _waves(time, level, duration) * duration, n) for time, n in self.groups[:taking])
        width = sum(n for _, n in ready)
        rounds, left = divmod(tasks - earlier - 1, width)
        left += 1
        busy: list[tuple[int, int]] = []
        last = 0
        for time, n in ready:
            now = time + rounds * duration
            used = min(left, n)
            if used:
                last = now
                left -= used
                busy.append((now + duration, used))
            if n > used:
                busy.append((now, n - used))
        merged: dict[int, int] = {}
        for time, n in busy + self.groups[taking:]:
            merged[time] = merged.get(time, 0) + n
        self.groups = sorted(merged.items())
        return tasks, last


def _waves(free: int, until: int, duration: int) -> int:
    """Return how many tasks of `duration` one slot starts from `free` on and before `until`."""
    return -((free - until) // duration) if until > free else 0


def estimate(jobs: Sequence[MapReduceJob], slots: Slots, released_s: Sequence[Fraction] | None = None) -> Estimate:
    """Return the completion times of `jobs` that a FIFO queue executes in this order.

    ``released_s`` has each job's submission time, in non-decreasing order; None: all are submitted at 0. A job's maps
    start no earlier than that, and after the maps of the jobs before it in the order. A job without maps has its
    reduces ready at its submission; a job without reduces ends with its last map. Raises CallError if there are tasks
    of a kind but no slots for them, ValueError if submission times decrease.
    """
    jobs = tuple(jobs)
    slots.check(jobs)
    begins = _never_falling(released_s, len(jobs))
    per_second = lcm(scaled(jobs).per_second, *(time.denominator for time in begins))
    pool = SlotPool(slots.maps)
    maps_end: list[int] = []
    for job, at in zip(jobs, begins, strict=True):
        release, time = int(at * per_second), int(job.map_s * per_second)
        if not job.maps:
            maps_end.append(release)
            continue
        pool.idle_until(release)  # no slot is wasted, because later jobs are submitted later
        maps_end.append(pool.start(job.maps, time)[1] + time)
    reduce_times = [int(job.reduce_s * per_second) for job in jobs]
    ends = _reduce_ends([job.reduces for job in jobs], reduce_times, maps_end, slots.reduces)
    return Estimate(
        tuple(Fraction(end, per_second) for end in maps_end), tuple(Fraction(end, per_second) for end in ends)
    )


def _never_falling(released_s: Sequence[Fraction] | None, count: int) -> Sequence[Fraction]:
    begins = [Fraction(0)] * count if released_s is None else released_s
    if any(later < earlier for earlier, later in pairwise(begins)):
        raise ValueError("submissions out of order")
    return begins


def _reduce_ends(reduces: list[int], times: Sequence[int], released: list[int], slots: int) -> list[int]:
    """Return when each job ends, given when its last map ends and its reduces are released."""
    ends = list(released)
    left = list(reduces)
    arrivals = sorted((released[job], job) for job in range(len(left)) if left[job])
    waiting: list[int] = []
    pool = SlotPool(slots)
    arrived = 0
    while waiting or arrived < len(arrivals):
        now = pool.free_at if waiting else max(pool.free_at, arrivals[arrived][0])
        while arrived < len(arrivals) and arrivals[arrived][0] <= now:
            heappush(waiting, arrivals[arrived][1])
            arrived += 1
        pool.idle_until(now)
        job = waiting[0]
        # The next job to be released may be before this one in the order, so decide again at its release.
        before = arrivals[arrived][0] if arrived < len(arrivals) else None
        started, last = pool.start(left[job], times[job], before)
        left[job] -= started
        ends[job] = last + times[job]
        if not left[job]:
            heappop(waiting)
    return ends


def executed(jobs: Sequence[MapReduceJob], slots: Slots, released_s: Sequence[Fraction] | None = None) -> Estimate:
    """Return the times of jobs in this order, by the tasks' own times where jobs have them, otherwise by averages.

    ``released_s`` is as in `estimate`. Raises CallError if there are too many tasks to be simulated one by one, and the
    errors of `estimate`.
    """
    jobs = tuple(jobs)
    if not any(job.varies for job in jobs):
        return estimate(jobs, slots, released_s)
    slots.check(jobs)
    count = sum(job.maps + job.reduces for job in jobs)
    if count > MAX_FOLLOWED:
        what = f"{count:_} tasks, some with times of their own: each would be followed by itself"
        raise CallError(what, hint=f"give at most {MAX_FOLLOWED:_} tasks, or averages alone")
    return estimate_tasks(
        [job.map_task_s if job.map_task_s is not None else (job.map_s,) * job.maps for job in jobs],
        [job.reduce_task_s if job.reduce_task_s is not None else (job.reduce_s,) * job.reduces for job in jobs],
        slots,
        released_s,
    )


def estimate_tasks(
    map_s: Sequence[Sequence[Fraction | int]],
    reduce_s: Sequence[Sequence[Fraction | int]],
    slots: Slots,
    released_s: Sequence[Fraction] | None = None,
) -> Estimate:
    """Return the same as `estimate` for tasks that differ within a job, given each map's and reduce's time in seconds.

    Tasks of a job start in the given order. It shows the effect of varying task times (section 3.3.6.4). ``released_s``
    has each job's submission time, in non-decreasing order (else ValueError); None: all are submitted at 0.
    """
    begins = _never_falling(released_s, len(map_s))
    maps_free = [Fraction(0)] * slots.maps
    maps_end = []
    for tasks, begin in zip(map_s, begins, strict=True):
        end = begin
        for time in tasks:
            done = max(maps_free[0], begin) + time
            heapreplace(maps_free, done)
            end = max(end, done)
        maps_end.append(end)
    ends = list(maps_end)
    free = [Fraction(0)] * slots.reduces
    arrivals = [(maps_end[job], job) for job, tasks in enumerate(reduce_s) if tasks]
    heapify(arrivals)
    waiting: list[tuple[int, int]] = []
    now = Fraction(0)
    while waiting or arrivals:
        now = max(now, free[0]) if waiting else max(now, free[0], arrivals[0][0])
        while arrivals and arrivals[0][0] <= now:
            heappush(waiting, (heappop(arrivals)[1], 0))
        job, task = waiting[0]
        done = now + reduce_s[job][task]
        heapreplace(free, done)
        ends[job] = max(ends[job], done)
        if task + 1 < len(reduce_s[job]):
            heapreplace(waiting, (job, task + 1))
        else:
            heappop(waiting)
    return Estimate(tuple(maps_end), tuple(ends))
