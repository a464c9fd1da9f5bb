"""How near the simulator's MapReduce master comes to Hadoop's on a real cluster, for docs/figures.md.

    python -m studies.mapreduce_real FOLDER
    python -m studies.mapreduce_master FOLDER --command "..." -o docs/records/mapreduce-master.json

Every job of every run is compared three times. First, each decision that a real master logged is recomputed by the
rules of `harness.sim.mapreduce`. Second, each headroom that it was told is computed again from the real run's
containers (`studies.mapreduce_replayed`). Third, the jobs of a run are simulated together on the same cluster under the
same scheduler. The simulation is given the measured durations of their tasks, but not when these were requested or ran,
and the requests of the simulated master over time are compared with those of the real one. `BAND` and `BEATS` were set
before the first comparison. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.jobs.engines.attempts import Attempt
from harness.model.jobs import Duration, JobSpec, NodeSpec, mapreduce_stages
from harness.model.resources import Resource
from harness.sim.mapreduce import reached_slow_start, schedule_reduces, to_preempt
from harness.sim.setup import Delays, MapReduceMaster, SimResult, SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations
from studies.allocator_log import Decision
from studies.mapreduce_real import ALLOCATIONS, AM_MB, CAPACITIES, NODE_MB, NODE_VCORES, NODES, TASK_MB
from studies.mapreduce_replayed import replayed
from studies.mapreduce_runs import CONF, Ran, read_run
from studies.result import in_one_line, write

#: The largest relative difference that is within the band, for a completion time and for requests over time. It is the
#: same as for `sim-against-real`.
BAND = 0.05
#: The largest difference within the band for the time of the first request of a reduce, heartbeats of the master (1 s).
BEATS = 2
_DIGITS = 4
#: Courses that are compared over time.
_OVER_TIME = ("maps_asked", "reduces_asked", "reduces_held")
_RAMPUP_LIMIT, _PREEMPTION_LIMIT = MapReduceMaster().rampup_limit, MapReduceMaster().preemption_limit
#: After the process of a task has ended, its node reports this at once (a heartbeat of its own).
END_HEARTBEAT_MS = 20


# --- a run that was measured ------------------------------------------------------------------------------------------


def told_before_exit_s(ran: Ran) -> float:
    """Return by how much a map's report reached its master before YARN knew of the end of its container; median, s."""
    ends = [(ran.held[one.container].to_ms, one.ended_ms) for one in ran.finished("map")]
    return round(statistics.median((to - told) / 1000 for to, told in ends if to is not None), 2)


# --- its decisions, recomputed ----------------------------------------------------------------------------------------


class Recomputed(NamedTuple):
    """Numbers of a master's decisions: all, those that are equal when recomputed, and those that changed something."""

    decisions: int
    equal: int
    changes: int


def is_equal(decision: Decision, maps: int, slow_start: float) -> bool:
    """Return whether the simulator's rules have the same result."""
    after = decision.after
    scheduled, pending = after.reduces_asked - decision.change, after.pending + decision.change
    sizes = (TASK_MB, 1, TASK_MB, 1)
    room = (decision.room_mb, decision.room_vcores, 1)
    if decision.to_preempt is not None:
        # The numbers after the decision no longer include the requests that it took back and the reduces that it
        # preempted. They make no difference here, because in no run did the headroom leave room for one of them.
        waiting, held = after.maps_asked, after.reduces_held
        count = to_preempt(waiting, after.maps_held, waiting, 0, 0, held, *sizes, *room, _PREEMPTION_LIMIT)
        return count == decision.to_preempt
    if not decision.started:
        return decision.change == 0 and not reached_slow_start(maps, after.maps_done, slow_start)
    completed = maps if decision.share is None else round(decision.share * maps)
    of_maps = (maps, completed, after.maps_asked, scheduled, after.maps_held, after.reduces_held)
    return schedule_reduces(*of_maps, *sizes, pending, *room, _RAMPUP_LIMIT) == decision.change


def recomputed(ran: Ran) -> Recomputed:
    """Recompute every logged decision."""
    maps, slow_start = int(ran.told["maps"]), float(ran.told["slow_start"])
    made = ran.log.decisions
    return Recomputed(
        len(made),
        sum(is_equal(one, maps, slow_start) for one in made),
        sum(one.change != 0 or one.to_preempt is not None for one in made),
    )


# --- the same jobs, simulated -----------------------------------------------------------------------------------------


def job_of(ran: Ran, number: int, zero_ms: int, *, tails: bool = True) -> JobSpec:
    """Return a real job as input of the simulator: its submission, the durations of its tasks, its master's own times.

    The duration of a map is from the assignment of its container until the ResourceManager knew of its end. The
    duration of a reduce excludes the time in which it waited for maps. It is the sum of two parts: the time from the
    assignment to the end of the shuffle of reduces that began after the last map, and the time after its own shuffle,
    which is the stage's tail (unless ``tails`` is False).
    """
    log, held, maps, reduces = ran.log, ran.held, ran.finished("map"), ran.finished("reduce")
    last_map_ms = max(one.ended_ms for one in maps)

    def ended_ms(one: Attempt) -> int:
        # The last tasks' containers may still be there when the master ends.
        ends = held[one.container].to_ms
        return one.ended_ms if ends is None else ends - END_HEARTBEAT_MS

    maps_s = [(ended_ms(one) - log.assigned_ms[one.container]) / 1000 for one in maps]
    until_shuffled = [
        (one.shuffled_ms - log.assigned_ms[one.container]) / 1000
        for one in reduces
        if log.assigned_ms[one.container] >= last_map_ms
    ]
    starts = [(one.started_ms - log.assigned_ms[one.container]) / 1000 for one in maps]
    # If every reduce waited for maps, the first part is taken to be as long as the start of a map.
    begin_s = statistics.fmean(until_shuffled or starts)
    rest_s = [(ended_ms(one) - one.shuffled_ms) / 1000 for one in reduces]
    first_ms = log.states[0].at_ms
    am_ms = min(own.from_ms for own in held.values())
    last_ms = max(ended_ms(one) for one in (*maps, *reduces))
    size = Resource(TASK_MB, 1)
    of_map, of_reduce = mapreduce_stages(
        len(maps),
        len(reduces),
        (size, Duration("listed", values_s=tuple(max(one, 0.001) for one in maps_s))),
        (size, Duration("listed", values_s=tuple(max(begin_s + one, 0.001) for one in rest_s))),
        float(ran.told["slow_start"]),
    )
    return JobSpec(
        f"job{number}",
        ran.told["queue"],
        "mapreduce",
        Resource(AM_MB, 1),
        (of_map, replace(of_reduce, tail=statistics.fmean(rest_s) / (begin_s + statistics.fmean(rest_s)) * tails)),
        submit_s=(ran.submitted_ms - zero_ms) / 1000,
        am_start_s=(first_ms - am_ms) / 1000,
        am_end_s=max(int(ran.told["finished_ms"]) - last_ms, 0) / 1000,
    )


def played(jobs: Sequence[JobSpec], scheduler: str, *, seed: int = 0) -> SimResult:
    """Simulate the jobs of a run on the study's cluster."""
    setup = SimSetup(
        nodes=tuple(NodeSpec(f"n{at}", NODE_MB, NODE_VCORES) for at in range(NODES)),
        allocations=parse_allocations(ALLOCATIONS),
        jobs=list(jobs),
        conf=CONF,
        scheduler=scheduler,
        capacity=CAPACITIES if scheduler == "capacity" else {},
        capacity_complete=scheduler == "capacity",
        delays=Delays(am_response_heartbeats=0, end_heartbeat_ms=END_HEARTBEAT_MS),
        record_tasks=True,
        record_masters=True,
        seed=seed,
    )
    return simulate(setup)


# --- what a master asks for over time ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """What one master did, real or simulated; times since its job's submission, s.

    Parameters
    ----------
    at_s
        Times at which something changed, and the end of the job.
    maps_asked
        Maps that wait for a container, from each time on.
    reduces_asked
        Reduces that have been asked for, those that have a container or have ended included.
    reduces_held
        Reduces that have a container.
    first_reduce_s, maps_done
        When the first reduce was asked for, and how many maps had ended by then.
    early
        The number of reduces that had a container when the last map ended.
    early_s
        The time that reduces held containers before that, s.
    ramped_down, preempted
        How many asks for reduces were taken back, and how many reduces were preempted.
    """

    at_s: NDArray[np.float64]
    maps_asked: NDArray[np.int64]
    reduces_asked: NDArray[np.int64]
    reduces_held: NDArray[np.int64]
    first_reduce_s: float
    maps_done: int
    early: int
    early_s: float
    ramped_down: int
    preempted: int
    completion_s: float


class _Row(NamedTuple):
    at_s: float
    maps_asked: int
    pending: int
    reduces_held: int
    maps_done: int


def _course(
    rows: Sequence[_Row],
    reduces: int,
    spans: Sequence[tuple[float, float]],
    last_map_s: float,
    completion_s: float,
    preempted: int,
) -> Course:
    asked = [reduces - row.pending for row in rows]
    first = next(at for at, number in enumerate(asked) if number > 0)
    down = sum(max(one - other, 0) for one, other in pairwise(asked))
    return Course(
        np.array([*(row.at_s for row in rows), completion_s]),
        np.array([*(row.maps_asked for row in rows), 0]),
        np.array([*asked, 0]),
        np.array([*(row.reduces_held for row in rows), 0]),
        rows[first].at_s,
        rows[first].maps_done,
        sum(begin < last_map_s < end for begin, end in spans),
        sum(min(end, last_map_s) - begin for begin, end in spans if begin < last_map_s),
        down - preempted,
        preempted,
        completion_s,
    )


def real_course(ran: Ran) -> Course:
    """What a real master did."""
    zero = ran.submitted_ms
    rows = [_Row((s.at_ms - zero) / 1000, s.maps_asked, s.pending, s.reduces_held, s.maps_done) for s in ran.log.states]
    end = ran.completion_s
    spans = []
    for one in ran.attempts:
        if one.kind == "reduce" and one.container in ran.log.assigned_ms:
            ends = ran.held[one.container].to_ms or one.ended_ms
            spans.append(((ran.log.assigned_ms[one.container] - zero) / 1000, (ends - zero) / 1000))
    last_map_s = (max(one.ended_ms for one in ran.finished("map")) - zero) / 1000
    return _course(rows, int(ran.told["reduces"]), spans, last_map_s, end, ran.log.preempted)


def simulated_course(result: SimResult, number: int, job: JobSpec) -> Course:
    """What the simulated master of a job did. ``number``: its place among the jobs, in order of their submission."""
    assert result.masters is not None
    assert result.tasks is not None
    submitted, reduces = float(result.jobs["submitted_s"][number]), job.stages[1].tasks
    tasks = result.tasks
    own = np.asarray(tasks["job"]) == number
    stage, outcome = np.asarray(tasks["stage"])[own], np.asarray(tasks["outcome"])[own]
    start, end = (np.asarray(tasks[name])[own] / 1000 - submitted for name in ("start_ms", "end_ms"))
    # Stages are numbered by priority: reduces first.
    is_map = stage == 1
    last_map_s = float(end[is_map & (outcome == 0)].max())
    assert job.am_start_s is not None
    first_s = float(result.jobs["started_s"][number]) - submitted + job.am_start_s
    # Applications are numbered from 1. With a slow start of 1 no decision is recorded, and the reduces are asked for at
    # the master's first heartbeat after the last map.
    pending = [
        (one["t"] / 1000 - submitted, one["pending"] + one["scheduled"] - one["to_schedule"])
        for one in result.masters
        if one["app"] == number + 1
    ] or [(0.0, reduces), (first_s + math.ceil(last_map_s + END_HEARTBEAT_MS / 1000 - first_s), 0)]
    times = sorted({first_s, *(at for at, _ in pending), *start.tolist(), *end.tolist()})
    rows = [
        _Row(
            at,
            int((start[is_map] > at).sum()),
            next((number for when, number in reversed(pending) if when <= at), reduces),
            int(((start[~is_map] <= at) & (end[~is_map] > at)).sum()),
            int((end[is_map] <= at).sum()),
        )
        for at in times
        if at >= first_s
    ]
    spans = list(zip(start[~is_map].tolist(), end[~is_map].tolist(), strict=True))
    completion_s = float(result.jobs["finished_s"][number]) - submitted
    preempted = int(((outcome == 2) & ~is_map).sum())
    return _course(rows, reduces, spans, last_map_s, completion_s, preempted)


def headroom_differences(ran: Ran, result: SimResult, number: int) -> list[float]:
    """Return how far the headrooms of a real and of the simulated master are from each other, MB.

    One value for each decision of the real master from the first reduces that both have asked for until the last map of
    either has a container: in this time both decide at every heartbeat.
    """
    assert result.masters is not None
    zero_ms = 1000 * float(result.jobs["submitted_s"][number])
    told = [one for one in result.masters if one["app"] == number + 1]
    begun = [one["t"] - zero_ms for one in told if one["to_schedule"] + one["held"]]
    waiting = [one["t"] - zero_ms for one in told if one["waiting_maps"]]
    if not begun or not waiting:
        return []
    found = []
    for decision in ran.log.decisions:
        at = decision.at_ms - ran.submitted_ms
        if decision.share is not None and decision.after.maps_asked and begun[0] <= at <= waiting[-1]:
            last = next(one for one in reversed(told) if one["t"] - zero_ms <= at)
            found.append(float(abs(decision.room_mb - last["room_mb"])))
    return found


def difference(real: Course, simulated: Course, name: str) -> float:
    """Integral of the absolute difference of two courses, as a fraction of the real one's integral."""
    at = np.unique(np.concatenate([real.at_s, simulated.at_s]))
    width = np.diff(at)

    def values(course: Course) -> NDArray[np.int64]:
        place = np.searchsorted(course.at_s, at[:-1], side="right") - 1
        return np.where(place >= 0, getattr(course, name)[np.maximum(place, 0)], 0)

    of_real = values(real)
    total = float((of_real * width).sum())
    return float((np.abs(of_real - values(simulated)) * width).sum()) / total if total else 0.0


# --- the record -------------------------------------------------------------------------------------------------------


def compared(folder: Path, *, tails: bool = True) -> list[dict[str, Any]]:
    """Return the comparison of each job of a run; ``tails``: whether reduces work only after the last map."""
    told, ran = read_run(folder)
    zero_ms = min(one.submitted_ms for one in ran)
    jobs = [job_of(one, at, zero_ms, tails=tails) for at, one in enumerate(ran)]
    result = played(jobs, told["scheduler"])
    found = []
    for at, one in enumerate(ran):
        real, simulated = real_course(one), simulated_course(result, at, jobs[at])
        again = recomputed(one)
        found.append(
            {
                "run": folder.name,
                "scenario": told["scenario"],
                "scheduler": told["scheduler"],
                "job": at,
                "load_average": told["load_average"]["mean"],
                "decisions": again.decisions,
                "decisions_equal": again.equal,
                "changes": again.changes,
                "headroom_not_logged": one.log.without_room,
                "told_before_exit_s": told_before_exit_s(one),
                "headroom_difference_mb": headroom_differences(one, result, at),
                **{
                    name: {"real": _short(getattr(real, name)), "simulated": _short(getattr(simulated, name))}
                    for name in (
                        *("completion_s", "first_reduce_s", "maps_done", "early", "early_s"),
                        *("ramped_down", "preempted"),
                    )
                },
                "completion_difference": round(abs(simulated.completion_s / real.completion_s - 1), _DIGITS),
                **{f"{name}_difference": round(difference(real, simulated, name), _DIGITS) for name in _OVER_TIME},
            }
        )
    return found


def _short(value: float) -> float:
    return round(value, 1) if isinstance(value, float) else value


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "mean": round(statistics.fmean(values), _DIGITS),
        "median": round(statistics.median(values), _DIGITS),
        "largest": round(max(values), _DIGITS),
        "within": sum(value <= BAND for value in values),
    }


def summary(jobs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the differences over jobs, and how many jobs are within the band."""
    found: dict[str, Any] = {"jobs": len(jobs)}
    for name in ("completion", *_OVER_TIME):
        found[name] = _spread([one[f"{name}_difference"] for one in jobs])
    late = [abs(one["first_reduce_s"]["simulated"] - one["first_reduce_s"]["real"]) for one in jobs]
    found["first_reduce"] = {
        "largest_s": round(max(late), 1),
        "within": sum(value <= BEATS for value in late),
    }
    found["decisions"] = {name: sum(one[key] for one in jobs) for name, key in _DECISIONS.items()}
    return found


_DECISIONS = {
    "all": "decisions",
    "equal": "decisions_equal",
    "changes": "changes",
    "headroom_not_logged": "headroom_not_logged",
}


def headrooms(jobs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return by scheduler how often the real and the simulated headroom are the same, and their mean difference.

    The lists of single differences leave the jobs' documents.
    """
    found: dict[str, list[float]] = {}
    for job in jobs:
        found.setdefault(job["scheduler"], []).extend(job.pop("headroom_difference_mb"))
    return {
        scheduler: {
            "compared": len(values),
            "same": sum(value == 0 for value in values),
            "mean_mb": round(statistics.fmean(values), 1),
        }
        for scheduler, values in found.items()
        if values
    }


def replays(folders: Sequence[Path]) -> dict[str, dict[str, int]]:
    """Return by scheduler how much of the runs comes out the same if they are replayed with their real times."""
    found: dict[str, dict[str, int]] = {}
    for folder in folders:
        told, ran = read_run(folder)
        of_scheduler = found.setdefault(told["scheduler"], {})
        for name, number in asdict(replayed(folder, told["scheduler"], ran)).items():
            of_scheduler[name] = of_scheduler.get(name, 0) + number
    return found


def against_itself(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the differences between real runs of the same scenario and scheduler, in the form of `summary`."""
    by_scenario: dict[str, list[list[Course]]] = {}
    for folder in folders:
        courses = [real_course(one) for one in read_run(folder)[1]]
        by_scenario.setdefault(folder.name.rpartition(".")[0], []).append(courses)
    pairs = [
        pair
        for repeats in by_scenario.values()
        for one, other in itertools.combinations(repeats, 2)
        for pair in zip(one, other, strict=True)
    ]
    values = {
        "completion": [abs(other.completion_s / one.completion_s - 1) for one, other in pairs],
        **{name: [difference(one, other, name) for one, other in pairs] for name in _OVER_TIME},
    }
    return {"pairs": len(pairs), **{name: _spread(found) for name, found in values.items() if found}}


@in_one_line("mapreduce_master")
def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--command", default="")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    folders = sorted(path.parent for path in given.folder.glob("*/run.json"))
    jobs, without = ([one for folder in folders for one in compared(folder, tails=tails)] for tails in (True, False))
    again = replays(folders)
    lags = [one["told_before_exit_s"] for one in jobs]
    values = {
        "band": BAND,
        "heartbeats": BEATS,
        "load_average": {
            "least": min(one["load_average"] for one in jobs),
            "most": max(one["load_average"] for one in jobs),
        },
        "told_before_exit_s": {"least": min(lags), "most": max(lags)},
        "headroom": headrooms(jobs),
        "replayed": again,
        "all": summary(jobs),
        "without_tails": summary(without),
        "real_against_real": against_itself(folders),
        "runs": jobs,
    }
    write(given.output, given.command, values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
