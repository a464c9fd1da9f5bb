"""Job files for the replayed load (workloads/replay), and its records of what ran: writes and reads both.

The duration of each task is drawn exactly as in the simulator (harness.sim.durations), from the run's seed: a job
sleeps on a real cluster for as many milliseconds as it works in the simulator. harness.jobs.submit submits the jobs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, Stage, TaskFaults, decided_by_hadoop
from harness.sim.durations import (
    KINDS,
    LISTED,
    STREAM_DURATION,
    STREAM_FAILS,
    STREAM_FAILS_AT,
    STREAM_STRAGGLES,
    draw_ms,
    job_key,
    unit,
    whole_ms,
)
from harness.sim.setup import MapReduceMaster

#: The number of attempts whose times are drawn in advance if tasks may fail; later attempts repeat the last of them.
_DRAWN_ATTEMPTS = 4
NO_FAULTS = TaskFaults()
BY_DEFAULT = MapReduceMaster()
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The behaviour of an AM of the replayed load.

    ``rm`` is the ResourceManager's scheduler address (HOST:PORT) as the nodes see it; ``am_heartbeat_ms``,
    ``am_response_heartbeats`` and ``reduce_preempt_ms`` are those of `harness.sim.setup.Delays`; ``mapreduce``
    determines when MapReduce's AMs request reduces.
    """

    rm: str
    seed: int
    am_heartbeat_ms: int = 1000
    am_response_heartbeats: int = 0
    reduce_preempt_ms: int = 5000
    faults: TaskFaults = NO_FAULTS
    mapreduce: MapReduceMaster = BY_DEFAULT


def stages_in_order(job: JobSpec) -> list[Stage]:
    """Return the stages in the simulator's order: by priority; stages of equal priority keep the order of the job."""
    return sorted(job.stages, key=lambda stage: stage.priority)


def durations_ms(job: JobSpec, seed: int, faults: TaskFaults = NO_FAULTS) -> list[list[list[tuple[int, bool]]]]:
    """Return the durations of all attempts: [stage][task][attempt] -> (ms, whether the attempt then fails)."""
    key, drawn = job_key(seed, job.id), _DRAWN_ATTEMPTS if faults.failure > 0 else 1
    return [
        [
            [_attempt(key, at, stage.duration, task, n, faults) for n in range(repeats + drawn)]
            for task, repeats in enumerate(_repeats(stage))
        ]
        for at, stage in enumerate(stages_in_order(job))
    ]


def _repeats(stage: Stage) -> list[int]:
    """Return the number of recorded unsuccessful attempts of each task."""
    return [count - 1 for count in stage.duration.attempts] or [0] * stage.tasks


def _attempt(key: int, at: int, duration: Duration, task: int, attempt: int, faults: TaskFaults) -> tuple[int, bool]:
    kind, a, b = KINDS.index(duration.kind), duration.value_s, 0.0
    if duration.kind == "lognormal":
        a, b = duration.mu, duration.sigma
    elif duration.kind == "uniform":
        a, b = duration.low_s, duration.high_s
    values = np.asarray(duration.values_s, dtype=np.float64)
    repeated = False
    if kind == LISTED:
        first, count = task, 1
        if duration.attempts:
            first, count = sum(duration.attempts[:task]), duration.attempts[task]
        ms, repeated = float(values[first + min(attempt, count - 1)]) * 1000.0, attempt < count - 1
    else:
        ms = draw_ms(unit(key, at, task, attempt, STREAM_DURATION), kind, a, b, values, 0, len(values))
    if faults.straggler > 0 and unit(key, at, task, attempt, STREAM_STRAGGLES) < faults.straggler:
        ms *= faults.straggler_factor
    fails = not repeated and faults.failure > 0 and unit(key, at, task, attempt, STREAM_FAILS) < faults.failure
    if fails:
        ms *= unit(key, at, task, attempt, STREAM_FAILS_AT)
    return int(whole_ms(ms)), fails or repeated


def job_file(
    job: JobSpec,
    options: ReplayOptions,
    records: str,
    *,
    programs: Mapping[str, str] = NOTHING,
    hosts: Mapping[str, str] = NOTHING,
) -> str:
    """Return the job file for one job's AM (workloads/replay/am.py reads it); ``records``: the file that the AM writes.

    ``programs``: stage -> a shell command that its tasks run instead of sleeping. ``hosts``: stage -> the only node
    where they may run. Raises InputError for a job with features that the replay does not support.
    """
    if options.faults.speculation:
        raise InputError(
            "speculative copies are not replayed",
            where="faults.speculation",
            hint="set it to false, or use --backend sim",
        )
    if job.dynamic is not None or any(stage.delay_s for stage in job.stages):
        raise InputError(
            "dynamic allocation and the pauses of Spark's driver are not replayed",
            where=f"job {job.id!r}",
            hint="use --backend sim",
        )
    if any(character.isspace() for character in options.rm + records):
        raise InputError("a path or address with white space in it", where=records, hint="use a folder without")
    stages = stages_in_order(job)
    rank = {stage.name: at for at, stage in enumerate(stages)}
    lines = [
        f"id {_word(job.id)}",
        f"kind {job.kind}",
        f"rm {options.rm}",
        f"records {records}",
        f"heartbeat_ms {options.am_heartbeat_ms}",
        f"lag_heartbeats {options.am_response_heartbeats}",
        f"reduce_preempt_ms {options.reduce_preempt_ms}",
        f"max_attempts {options.faults.max_attempts}",
    ]
    master = options.mapreduce
    maps, reduces = decided_by_hadoop(job, stages, master.running_map_limit, master.running_reduce_limit)
    if maps >= 0:
        delays_s = (master.preempt_delay_s, master.unconditional_preempt_delay_s)
        settings = (
            *(maps, reduces, master.rampup_limit, master.preemption_limit),
            *(round(delay_s * 1000) for delay_s in delays_s),
            *(master.running_map_limit, master.running_reduce_limit, master.headroom),
        )
        lines.append(f"mapreduce {' '.join(str(setting) for setting in settings)}")
    if job.kind == "spark":
        size = job.executor_demand
        lines += [
            f"executors {job.executors}",
            f"executor_slots {job.executor_slots}",
            f"executor_mb {size.memory_mb}",
            f"executor_vcores {size.vcores}",
        ]
    if job.lifetime_s is not None:
        lines.append(f"lifetime_ms {whole_ms(job.lifetime_s * 1000)}")
    for stage in stages:
        after = ",".join(str(rank[name]) for name in stage.after) or "-"
        size = stage.demand
        lines.append(
            f"stage {_word(stage.name)} {size.memory_mb} {size.vcores} {stage.slow_start!r} {after} {stage.tasks}"
            f" {stage.tail!r}"
        )
    lines += [f"program {rank[name]} {program}" for name, program in programs.items()]
    lines += [f"host {rank[name]} {host}" for name, host in hosts.items()]
    for at, tasks in enumerate(durations_ms(job, options.seed, options.faults) if job.kind != "service" else []):
        repeats = _repeats(stages[at])
        for first in range(0, len(tasks), 100):
            words = (
                ",".join(
                    f"{ms}{'r' if number < repeats[task] else 'f' if fails else ''}"
                    for number, (ms, fails) in enumerate(attempts)
                )
                for task, attempts in enumerate(tasks[first : first + 100], start=first)
            )
            lines.append(f"tasks {at} {' '.join(words)}")
    return "\n".join([*lines, "end", ""])


def _word(text: str) -> str:
    """Return a name as one word."""
    return re.sub(r"\s+", "_", text) or "-"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One attempt of a task, as the AM recorded it. Milliseconds since 1970, by the nodes' clocks.

    ``asked``: the AM sent the attempt's ask (Spark: the task began). ``granted``: the RM allocated the container.
    ``heard``: the AM received it. ``launched``: the node received it. ``started``, ``ended``: the task's own process
    began and ended its work. ``told``: the AM was notified of the end.
    """

    stage: int
    task: int
    attempt: int
    container: str
    node: str
    asked_ms: int
    granted_ms: int
    heard_ms: int
    launched_ms: int
    started_ms: int
    ended_ms: int
    told_ms: int
    outcome: str  # finished, failed, killed


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The record of one AM. Times are 0 for steps that it did not reach; ``why``: the reason of a failed job.

    ``executors_ms``: when each executor of a Spark program had registered.
    """

    master: str = ""
    submitted_ms: int = 0
    first_heartbeat_ms: int = 0
    ended_ms: int = 0
    outcome: str = ""
    why: str = ""
    tasks: tuple[TaskRecord, ...] = ()
    troubles: tuple[str, ...] = ()
    executors_ms: tuple[int, ...] = ()


def read_records(text: str, where: str) -> JobRecord:
    """Read a record file, even if it is incomplete (a last line without an end is left out).

    Raises InputError with file and line for anything that is not a record.
    """
    found: dict[str, Any] = {}
    tasks: list[TaskRecord] = []
    troubles: list[str] = []
    for line, words in _lines(text):
        try:
            kind = words[0]
            if kind == "task":
                tasks.append(_task(words[1:]))
            elif kind == "master":
                found.update(master=words[1], submitted_ms=int(words[2]), first_heartbeat_ms=int(words[3]))
            elif kind == "end":
                why = words[3].replace("_", " ") if words[3] != "-" else ""
                found.update(ended_ms=int(words[1]), outcome=words[2], why=why)
            elif kind == "trouble":
                troubles.append(" ".join(words[1:]))
            else:
                raise ValueError(kind)
        except (ValueError, IndexError):
            raise InputError(
                f"{' '.join(words)[:60]!r} is not a record of the replayed load",
                where=f"{where}:{line}",
                hint="the file is damaged",
            ) from None
    return JobRecord(tasks=tuple(tasks), troubles=tuple(troubles), **found)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    complete = text[: text.rfind("\n") + 1]
    for number, line in enumerate(complete.splitlines(), start=1):
        if line.strip():
            yield number, line.split()


def _task(words: Sequence[str]) -> TaskRecord:
    if len(words) != 13 or words[12] not in ("finished", "failed", "killed"):
        raise ValueError(words)
    stage, task, attempt = map(int, words[:3])
    times = [int(word) for word in words[5:12]]
    if not all(0 <= time < math.inf for time in times):
        raise ValueError(words)
    asked, granted, heard, launched, started, ended, told = times
    return TaskRecord(
        stage, task, attempt, words[3], words[4], asked, granted, heard, launched, started, ended, told, words[12]
    )
