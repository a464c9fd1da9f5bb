"""``mrorder`` in front of the simulator: jobs are held back and submitted as the dispatching queue says.

The estimates are the means that each stage's tasks are drawn from: what the history of many earlier runs would show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from harness.model.errors import CallError, InputError
from harness.model.jobs import JobSpec, Stage
from harness.model.resources import Resource
from harness.policies.mrorder import MROrder
from harness.policies.ordering import MapReduceJob, Slots
from harness.policies.ordering.online import dispatch
from harness.results.metrics import expected_s

#: Jobs of one round are submitted so far apart, in this order: FIFO goes by time, and the clock counts milliseconds.
GAP_MS = 1


def hold(policy: MROrder, jobs: Iterable[JobSpec], capacity: Resource) -> tuple[list[JobSpec], dict[str, float]]:
    """The jobs with the submissions that the policy gives them, and when each arrived (seconds by id).

    Raises InputError for jobs that wait for another's end, CallError where a policy's setting needs a live cluster.
    """
    if policy.settings.eager:
        what = "eager needs to be told when jobs end, and submissions in the simulator are planned beforehand"
        raise CallError(what, where="--set eager", mend="leave it out; it is for a real cluster's driver")
    found = sorted(jobs, key=lambda job: job.submit_s)
    if not found:
        return [], {}
    for job in found:
        if job.after_job is not None:
            what = f"it comes after {job.after_job}, whose end mrorder would have to know beforehand"
            raise InputError(what, where=f"job {job.id}", mend="submit at fixed times (every_s)")
    slots = _slots(policy, found, capacity)
    by_id = {job.id: job for job in found}
    arrivals = [(as_mapreduce(job), Fraction(str(job.submit_s))) for job in found]
    out: list[JobSpec] = []
    last_ms = -1
    for submission in dispatch(arrivals, slots, policy.dispatching(), policy.ordering()):
        last_ms = max(-(-submission.submitted_s * 1000 // 1), last_ms + GAP_MS)
        out.append(replace(by_id[submission.job.name], submit_s=float(last_ms) / 1000.0))
    return out, {job.id: job.submit_s for job in found}


def _slots(policy: MROrder, jobs: list[JobSpec], capacity: Resource) -> Slots:
    """Map and reduce slots of the estimates: as set, or as many of the first job's tasks as the cluster holds."""

    def fits(stage: Stage) -> int:
        need = stage.demand
        rooms = [capacity.memory_mb // need.memory_mb if need.memory_mb else 0]
        rooms += [capacity.vcores // need.vcores] if need.vcores else []
        return max(1, min(room for room in rooms if room))

    stages = [stage for job in jobs for stage in job.stages]
    first = [stage for stage in stages if not stage.after] or stages
    later = [stage for stage in stages if stage.after] or stages
    return Slots(
        int(policy.settings.map_slots) or fits(first[0]),
        int(policy.settings.reduce_slots) or fits(later[0]),
    )


def as_mapreduce(job: JobSpec) -> MapReduceJob:
    """A job as the ordering sees it: stages with nothing before them are its maps, the others its reduces.

    Each side keeps its number of tasks and its work; times to the microsecond.
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
