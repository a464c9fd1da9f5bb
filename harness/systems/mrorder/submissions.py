"""The dispatching queue of ``mrorder`` in front of the simulator or a real cluster.

For the simulator, all submissions are planned in advance (`hold`). The driver of a real cluster calls the queue
repeatedly (`Holding`). Estimates come from earlier runs (setting ``history``). Without these they are the means of the
distributions from which each stage's task times are drawn, to which the means of many earlier runs converge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError
from harness.model.jobs import JobSpec, Stage
from harness.model.resources import Resource
from harness.results.metrics import expected_s
from harness.systems.mrorder.earlier_runs import EarlierRuns, earlier_runs
from harness.systems.mrorder.ordering import MapReduceJob, Slots
from harness.systems.mrorder.ordering.online import Dispatcher, DispatchingQueue, Submission, dispatch

#: Time between submissions of jobs of one round, ms: FIFO sorts by submission time, which has this resolution.
GAP_MS = 1
#: Time after which the next job of a round is submitted at the latest, seconds. Normally it is submitted as soon as the
#: previous job's AM has registered, because a real cluster starts AMs in any order and serves the first requests first.
HAND_ON_S = 10.0


def hold(
    queue: DispatchingQueue, jobs: Iterable[JobSpec], nodes: Sequence[Resource]
) -> tuple[list[JobSpec], dict[str, float]]:
    """Return the jobs with the submission times that the queue decides, and the arrival of each (seconds by id).

    ``nodes`` are the sizes of the nodes, from which the numbers of slots are computed (`slots_of`). Raises InputError
    for jobs that wait for another job's end, CallError for a setting that needs a live cluster.
    """
    if queue.when.eager:
        what = "eager needs to be told when jobs end, and submissions in the simulator are planned beforehand"
        raise CallError(what, where="--set eager", hint="leave it out; it is for a real cluster's driver")
    found = sorted(jobs, key=lambda job: job.submit_s)
    if not found:
        return [], {}
    for job in found:
        if job.after_job is not None:
            what = f"it comes after {job.after_job}, whose end mrorder would have to know beforehand"
            raise InputError(what, where=f"job {job.id}", hint="submit at fixed times (every_s)")
    slots = slots_of(queue, found, nodes)
    by_id = {job.id: job for job in found}
    estimate = estimates(queue)
    arrivals = [(estimate(job), Fraction(str(job.submit_s))) for job in found]
    out: list[JobSpec] = []
    last_ms = -1
    for submission in dispatch(arrivals, slots, queue.when, queue.ordering):
        last_ms = max(-(-submission.submitted_s * 1000 // 1), last_ms + GAP_MS)
        out.append(replace(by_id[submission.job.name], submit_s=float(last_ms) / 1000.0))
    return out, {job.id: job.submit_s for job in found}


class Submissions:
    """The dispatching queue in the form that the drivers of experiments use (`harness.experiments.submissions`)."""

    def __init__(self, queue: DispatchingQueue) -> None:
        self.queue = queue

    def plan(
        self, jobs: Iterable[JobSpec], nodes: Sequence[Resource], slots: tuple[int, int] | None = None
    ) -> tuple[list[JobSpec], dict[str, float]]:
        """Plan as `hold` does.

        ``slots`` are MRv1's numbers of map and reduce slots; the policy's settings override them.
        """
        if slots is None:
            return hold(self.queue, jobs, nodes)
        maps, reduces = self.queue.map_slots or slots[0], self.queue.reduce_slots or slots[1]
        return hold(replace(self.queue, map_slots=maps, reduce_slots=reduces), jobs, nodes)

    def live(self, jobs: Sequence[JobSpec], nodes: Sequence[Resource]) -> Holding:
        """Return the queue in front of a real cluster."""
        return Holding(self.queue, jobs, nodes)


def history_of(queue: DispatchingQueue) -> EarlierRuns | None:
    """Return the earlier runs that the setting ``history`` names (paths separated by commas), or None if it is empty.

    Raises InputError if a path cannot be read.
    """
    paths = [Path(part.strip()) for part in queue.history.split(",") if part.strip()]
    return earlier_runs(paths) if paths else None


def estimates(queue: DispatchingQueue) -> Callable[[JobSpec], MapReduceJob]:
    """Return the function that estimates a job for the queue."""
    found = history_of(queue)
    return as_mapreduce if found is None else found.estimate


class Holding:
    """The dispatching queue in front of a real cluster: it receives arrivals and ends, and yields the jobs to submit.

    ``arrived`` has the arrival of each job in seconds since the start of the run. ``decisions`` has one entry per
    round.
    """

    def __init__(self, queue: DispatchingQueue, jobs: Sequence[JobSpec], nodes: Sequence[Resource]) -> None:
        self.history = history_of(queue)
        self.arrived: dict[str, float] = {}
        self.decisions: list[dict[str, Any]] = []
        self._estimate = as_mapreduce if self.history is None else self.history.estimate
        self._specs = {job.id: job for job in jobs}
        self._machine = Dispatcher(slots_of(queue, jobs, nodes), queue.when, queue.ordering)
        self._ready: deque[str] = deque()
        self._last: tuple[str, float] | None = None  # the job that was submitted last, and its submission time, s

    @property
    def next_s(self) -> float | None:
        """The time of the next round, in seconds since the start of the run; None: no round is planned."""
        due = self._machine.next_s
        return None if due is None else float(due)

    def arrive(self, job: JobSpec, now_s: float, came_s: float | None = None) -> None:
        """Report that a user submitted a job.

        ``came_s`` is its arrival if that was noticed late (a slow ResourceManager).
        """
        self.arrived[job.id] = now_s if came_s is None else came_s
        self._take(self._machine.arrive(self._estimate(job), now_s))
        if len(self.arrived) == len(self._specs):
            self._take(self._machine.close(now_s))

    def finish(self, job_id: str, now_s: float) -> None:
        """Report that a job has ended on the cluster."""
        self._take(self._machine.finish(job_id, now_s))

    def ready(self, now_s: float, under_way: Callable[[str], bool]) -> Iterator[str]:
        """Yield the ids of the jobs to submit now.

        ``under_way``: returns whether a job's AM has registered or has ended.
        """
        self._take(self._machine.clock(now_s))
        while self._ready:
            if self._last is not None and now_s < self._last[1] + HAND_ON_S and not under_way(self._last[0]):
                return
            # Remove the job only when the caller resumes the iteration, so that a failed submission is tried again.
            yield self._ready[0]
            self._last = (self._ready.popleft(), now_s)

    def _take(self, submissions: Sequence[Submission]) -> None:
        rounds: dict[int, list[Submission]] = {}
        for one in submissions:
            rounds.setdefault(one.round, []).append(one)
        for number, own in rounds.items():
            self._ready.extend(one.job.name for one in own)
            decision: dict[str, Any] = {
                "time_s": float(own[0].submitted_s),
                "round": number,
                "order": [one.job.name for one in own],
                "estimates": {one.job.name: self._shown(one.job) for one in own},
            }
            if self.history is not None:
                unknown = [n for n in decision["order"] if not self.history.knows(self._specs[n].name)]
                decision["without_history"] = unknown
            self.decisions.append(decision)

    @staticmethod
    def _shown(job: MapReduceJob) -> dict[str, float]:
        return {
            "maps": job.maps,
            "map_s": round(float(job.map_s), 3),
            "reduces": job.reduces,
            "reduce_s": round(float(job.reduce_s), 3),
        }


def slots_of(queue: DispatchingQueue, jobs: Sequence[JobSpec], nodes: Sequence[Resource]) -> Slots:
    """Return the numbers of map and reduce slots for the estimates.

    They are the settings or, for a setting of 0, how many tasks of the first job fit on the nodes at once. A task runs
    on one node. Tasks without a demand of their own run in executors: then the slots of all executors that fit are
    counted.
    """

    def fits(job: JobSpec, stage: Stage) -> int:
        inside = not (stage.demand.memory_mb or stage.demand.vcores)
        need, each = (job.executor_demand, job.executor_slots) if inside else (stage.demand, 1)
        return max(1, each * sum(_fit(need, node) for node in nodes))

    stages = [(job, stage) for job in jobs for stage in job.stages]
    first = [(job, stage) for job, stage in stages if not stage.after] or stages
    later = [(job, stage) for job, stage in stages if stage.after] or stages
    return Slots(
        queue.map_slots or fits(*first[0]),
        queue.reduce_slots or fits(*later[0]),
    )


def _fit(need: Resource, node: Resource) -> int:
    """Return how many containers of a size fit on a node; 0 for a container of size 0."""
    rooms = [node.memory_mb // need.memory_mb] if need.memory_mb else []
    rooms += [node.vcores // need.vcores] if need.vcores else []
    return min(rooms, default=0)


def as_mapreduce(job: JobSpec) -> MapReduceJob:
    """Return a job in the form of the ordering: stages without predecessors are its maps, all others its reduces.

    Both phases keep their numbers of tasks and their total work; times are rounded to microseconds.
    """
    first = [stage for stage in job.stages if not stage.after]
    later = [stage for stage in job.stages if stage.after]

    def side(stages: list[Stage]) -> tuple[int, Fraction]:
        tasks = sum(stage.tasks for stage in stages)
        work = sum(
            (stage.tasks * Fraction(round(expected_s(stage.duration) * 1e6), 10**6) for stage in stages), Fraction(0)
        )
        return tasks, work / tasks if tasks else Fraction(0)

    maps, map_s = side(first)
    reduces, reduce_s = side(later)
    return MapReduceJob(job.id, maps, map_s, reduces, reduce_s)
