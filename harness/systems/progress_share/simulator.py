"""Exact simulation in virtual time of a cluster with slots of several types; events are starts and ends of tasks.

Free slots are offered one after another, types in the scenario's order, until the policy chooses no job. A task keeps
its slot until it ends. Source of the model: HotCloud 2011, section 3.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction

from harness.base.errors import InputError
from harness.systems.progress_share.rates import Choose, JobView, RateJob, RatesScenario, progress_share

#: Maximum number of tasks; a larger scenario is an error.
MAX_TASKS = 200_000


@dataclass(frozen=True, slots=True)
class Interval:
    """The state from ``start_s`` to ``end_s``.

    ``contended`` is True if all jobs of the scenario have arrived, none has ended, and each has waiting tasks.
    """

    start_s: Fraction
    end_s: Fraction
    held: dict[str, dict[str, int]]
    progress_share: dict[str, Fraction]
    contended: bool


@dataclass(frozen=True, slots=True)
class RatesResult:
    """The result of one simulation; times in seconds by job."""

    intervals: list[Interval]
    started_s: dict[str, Fraction]
    completed_s: dict[str, Fraction]

    @property
    def makespan_s(self) -> Fraction:
        """When the last job completes, seconds."""
        return max(self.completed_s.values(), default=Fraction(0))


@dataclass(slots=True)
class _Job:
    spec: RateJob
    view: JobView
    started: int = 0
    done: int = 0
    #: By node type: number of ended tasks and the sum of their durations, s. None: rates are given.
    ended: dict[str, tuple[int, Fraction]] | None = None

    def next_work(self) -> Fraction:
        work = self.spec.each_s[self.started] if self.spec.each_s else self.spec.work_s
        self.started += 1
        return work


def simulate_rates(scenario: RatesScenario, choose: Choose, *, calibrate: bool = False) -> RatesResult:
    """Run the jobs to their ends.

    With ``calibrate``, a job's rate on a node type is unknown until one of its tasks has ended there. The rate is then
    1 over the mean completion time of its tasks there, which is all that a scheduler can observe (section 3.1.2).
    Raises InputError for a scenario that is too large or never ends.
    """
    if sum(job.tasks for job in scenario.jobs) > MAX_TASKS:
        raise InputError(f"has more than {MAX_TASKS:,} tasks", hint="lower tasks")
    free = {kind.name: kind.slots for kind in scenario.types}
    arrivals = sorted(scenario.jobs, key=lambda job: (job.submit_s, job.name.encode()))
    present: list[_Job] = []
    running: list[tuple[Fraction, int, str, str, Fraction]] = []
    by_name: dict[str, _Job] = {}
    intervals: list[Interval] = []
    started_s: dict[str, Fraction] = {}
    completed_s: dict[str, Fraction] = {}
    now, serial, coming = Fraction(0), 0, 0
    while True:
        while running and running[0][0] == now:
            _, _, name, kind, began = heapq.heappop(running)
            job = by_name[name]
            free[kind] += 1
            job.view.held[kind] -= 1
            job.done += 1
            if job.ended is not None:
                count, seconds = job.ended.get(kind, (0, Fraction(0)))
                job.ended[kind] = count + 1, seconds + (now - began)
                job.view.rates[kind] = (count + 1) / job.ended[kind][1]
            if job.done == job.spec.tasks:
                completed_s[name] = now
                present.remove(job)
        while coming < len(arrivals) and arrivals[coming].submit_s <= now:
            spec = arrivals[coming]
            coming += 1
            if spec.tasks == 0:
                started_s[spec.name] = completed_s[spec.name] = now
                continue
            known = {kind.name: None if calibrate else spec.rates[kind.name] for kind in scenario.types}
            view = JobView(spec.name, spec.weight, spec.tasks, dict.fromkeys(free, 0), known, min_share=spec.min_share)
            job = _Job(spec, view, ended={} if calibrate else None)
            by_name[spec.name] = job
            present.append(job)
            present.sort(key=lambda entry: entry.spec.name.encode())
        for node_type in scenario.types:
            while free[node_type.name]:
                candidates = [entry.view for entry in present if entry.view.pending]
                chosen = choose(node_type.name, candidates, scenario.types, free)
                if chosen is None:
                    break
                job = by_name[chosen.name]
                work = job.next_work()
                free[node_type.name] -= 1
                chosen.pending -= 1
                chosen.held[node_type.name] += 1
                chosen.tried.add(node_type.name)
                started_s.setdefault(chosen.name, now)
                serial += 1
                end = now + work / job.spec.rates[node_type.name]
                heapq.heappush(running, (end, serial, chosen.name, node_type.name, now))
        following = [running[0][0]] if running else []
        if coming < len(arrivals):
            following.append(arrivals[coming].submit_s)
        if not following:
            if present:
                raise InputError("never ends: slots stay free while tasks wait")
            break
        until = min(following)
        if present and until > now:
            intervals.append(
                Interval(
                    now,
                    until,
                    {entry.spec.name: dict(entry.view.held) for entry in present},
                    {
                        entry.spec.name: progress_share(entry.view.held, entry.spec.rates, scenario.types)
                        for entry in present
                    },
                    len(present) == len(scenario.jobs) and all(entry.view.pending for entry in present),
                )
            )
        now = until
    return RatesResult(intervals, started_s, completed_s)
