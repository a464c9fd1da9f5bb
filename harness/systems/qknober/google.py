"""Loads of the vector simulator: Google's 2011 cluster trace, read strictly, and a similar synthetic load.

The trace (clusterdata-2011-2) has no header; its schema.csv names the columns. Times are in microseconds, requests are
fractions of the largest machine. As in QKnober section 7.3, the first users by name are taken; a task lasts from the
beginning of its first to the end of its last interval in task_usage, and is submitted when it starts.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.base.errors import InputError, reason
from harness.base.files import open_whole
from harness.systems.qknober.simulator import VectorLoad

TASK_EVENTS, TASK_USAGE, MACHINE_EVENTS = 13, 20, 6
_SUBMIT = 0
_ADD, _REMOVE = 0, 1
#: The time that the trace uses for events after its end.
_OUTSIDE_US = 2**63 - 1
#: Reasons why tasks (or machines) are not in the load, and the name of the count of users without any task in it.
NO_USAGE, OUTSIDE_PART = "tasks without recorded usage", "tasks outside the chosen part"
NO_REQUEST, TOO_LARGE = "tasks that ask for nothing", "tasks larger than any machine"
NO_CAPACITY = "machines without a capacity"
USERS = "users without a task in the load"


def rows(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of a table of the trace (``.csv`` or ``.csv.gz``).

    Raises InputError for a line with another number of columns.
    """
    try:
        with (
            open_whole(path) as stored,
            gzip.open(stored) if path.suffix == ".gz" else stored as table,
            io.TextIOWrapper(table, newline="", encoding="utf-8") as file,
        ):
            for number, fields in enumerate(csv.reader(file), start=1):
                if len(fields) != columns:
                    raise InputError(
                        f"has {len(fields)} columns, not {columns}",
                        where=f"{path}:{number}",
                        hint="give a table of the 2011 trace as it is, without header",
                    )
                yield number, fields
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        what = f"cannot be read: {reason(error)}"
        raise InputError(what, where=str(path), hint="give a table of the 2011 trace (.csv or .csv.gz)") from error


def _figure(path: Path, line: int, text: str, what: str, *, optional: bool = False) -> float:
    if optional and not text:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{what} is {text[:40]!r}", where=f"{path}:{line}", hint="a number of at least 0")
    return value


def _whole(path: Path, line: int, text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError(f"{what} is {text[:40]!r}", where=f"{path}:{line}", hint="a whole number")
    return int(text)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a trace: some of its machines, drawn by the seed, and the tasks that begin in a time window.

    ``machines`` is their number (None: all). ``start_h`` is the beginning of the window in hours after the first task
    of the chosen users; ``hours`` is its length (None: until the end).
    """

    machines: int | None = None
    start_h: float = 0.0
    hours: float | None = None
    seed: int = 1


WHOLE = Part()


def read_trace(
    machine_events: Path,
    task_events: Iterable[Path],
    task_usage: Iterable[Path],
    *,
    users: int,
    disk: float = 0.52,
    part: Part = WHOLE,
) -> VectorLoad:
    """Return the tasks of the first ``users`` users with their CPU, memory and disk.

    Users are sorted by name, as in the paper. Machines are those that the trace adds at time 0. Its machine_events have
    no disk capacity, so every machine gets ``disk`` (the paper's 520.0 units over 1,000 machines). Tasks that request
    nothing, tasks larger than every machine, tasks without usage, and tasks outside the ``part`` are left out;
    ``left_out`` of the load counts them. Raises InputError for damaged tables or an empty load.
    """
    machines: dict[str, tuple[float, float]] = {}
    without_capacity = 0
    for line, fields in rows(machine_events, MACHINE_EVENTS):
        if _whole(machine_events, line, fields[0], "the time") == 0 and fields[2] == str(_ADD):
            cpu = _figure(machine_events, line, fields[4], "the CPU capacity", optional=True)
            memory = _figure(machine_events, line, fields[5], "the memory capacity", optional=True)
            if cpu > 0 and memory > 0:
                machines[fields[1]] = (cpu, memory)
            else:
                without_capacity += 1
    if not machines:
        what = "adds no machine at its beginning"
        raise InputError(what, where=str(machine_events), hint="give the trace's first part of machine_events")
    servers = np.array([(cpu, memory, disk) for cpu, memory in machines.values()])
    if part.machines is not None and part.machines > len(servers):
        raise InputError(
            f"has {len(servers)} machines at its beginning, not {part.machines}",
            where=str(machine_events),
            hint="ask for fewer",
        )
    if part.machines is not None:
        drawn = np.random.default_rng([part.seed]).choice(len(servers), part.machines, replace=False)
        servers = servers[np.sort(drawn)]
    wanted: dict[tuple[str, str], tuple[str, tuple[float, float, float]]] = {}
    for path in task_events:
        for line, fields in rows(path, TASK_EVENTS):
            if _whole(path, line, fields[5], "the event type") == _SUBMIT:
                demand = tuple(
                    _figure(path, line, fields[at], what, optional=True)
                    for at, what in ((9, "the CPU request"), (10, "the memory request"), (11, "the disk request"))
                )
                wanted.setdefault((fields[2], fields[3]), (fields[6], demand))  # type: ignore[arg-type]
    chosen = {name: i for i, name in enumerate(sorted({user for user, _ in wanted.values()})[:users])}
    begins: dict[tuple[str, str], int] = {}
    ends: dict[tuple[str, str], int] = {}
    for path in task_usage:
        for line, fields in rows(path, TASK_USAGE):
            key = (fields[2], fields[3])
            if key in wanted and wanted[key][0] in chosen:
                begin, end = _whole(path, line, fields[0], "the start"), _whole(path, line, fields[1], "the end")
                if end < begin or end >= _OUTSIDE_US:
                    raise InputError("ends before it starts", where=f"{path}:{line}", hint="is the file damaged?")
                begins[key] = min(begin, begins.get(key, begin))
                ends[key] = max(end, ends.get(key, end))
    if not begins:
        raise InputError(
            f"has no usage of a task of its first {users} users",
            where=str(next(iter(task_usage), "task_usage")),
            hint="give the parts of task_events and task_usage that belong together",
        )
    from_us = min(begins.values()) + int(part.start_h * 3_600_000_000)
    until_us = _OUTSIDE_US if part.hours is None else from_us + int(part.hours * 3_600_000_000)
    begins = {key: begin for key, begin in begins.items() if from_us <= begin < until_us}
    if not begins:
        raise InputError(
            f"no task of its first {users} users begins in that window",
            where=str(next(iter(task_usage), "task_usage")),
            hint="begin earlier, or give more hours",
        )
    earliest = min(begins.values())
    found = []
    left_out = dict.fromkeys((NO_USAGE, OUTSIDE_PART, NO_REQUEST, TOO_LARGE), 0)
    submitted = sum(1 for user, _ in wanted.values() if user in chosen)
    left_out[NO_USAGE] = submitted - len(ends)
    left_out[OUTSIDE_PART] = len(ends) - len(begins)
    for key, begin in begins.items():
        user, demand = wanted[key]
        if max(demand) <= 0:
            left_out[NO_REQUEST] += 1
        elif not (servers >= np.array(demand)).all(axis=1).any():
            left_out[TOO_LARGE] += 1
        else:
            length = max(1, (ends[key] - begin) // 1000)
            found.append(((begin - earliest) // 1000, key, chosen[user], length, demand))
    found.sort()
    left_out[NO_CAPACITY] = without_capacity
    left_out[USERS] = len(chosen) - len({row[2] for row in found})
    jobs = {name: i for i, name in enumerate(dict.fromkeys(row[1][0] for row in found))}
    return VectorLoad(
        servers=servers,
        weights=np.ones(len(chosen)),
        user=np.array([row[2] for row in found], np.int64),
        submit_ms=np.array([row[0] for row in found], np.int64),
        duration_ms=np.array([row[3] for row in found], np.int64),
        demand=np.array([row[4] for row in found], float).reshape(len(found), 3),
        job=np.array([jobs[row[1][0]] for row in found], np.int64),
        left_out={reason: count for reason, count in left_out.items() if count},
    )


#: Machine shapes of the 2011 trace: CPU, memory, and their number among 12,583 machines (Reiss et al. 2012, Table 1).
SHAPES = (
    (0.50, 0.50, 6732),
    (0.50, 0.25, 3863),
    (0.50, 0.75, 1001),
    (1.00, 1.00, 795),
    (0.25, 0.25, 126),
    (0.50, 0.12, 52),
    (0.50, 0.03, 5),
    (0.50, 0.97, 5),
    (1.00, 0.50, 3),
    (0.50, 0.06, 1),
)
#: Total CPU, memory and disk of 1,000 machines, in the trace's units (QKnober section 7.3.1).
TOTALS = (527.5, 513.2, 520.0)


@dataclass(frozen=True, slots=True)
class Shape:
    """The assumptions of a synthetic load on its tasks. QKnober publishes none of these values.

    Pairs are the ends of a uniform distribution. ``size`` is the demand for each resource in the trace's units (the
    largest machine has 1). ``drawn`` says whether the size is drawn for each job (demands within a user are diverse,
    QKnober C2) or once per user for all its jobs. ``heavy`` is a factor on one random resource, drawn with the size
    (None: no factor). ``spread`` is the sigma of a job's demand around its size. ``mean_s`` is a user's mean task
    duration in seconds, ``spread_s`` the sigma of durations around it. ``median_tasks``, ``tasks_sigma`` and
    ``most_tasks`` describe the number of tasks of a job (log-normal, with a maximum).
    """

    size: tuple[float, float] = (0.02, 0.10)
    drawn: Literal["job", "user"] = "job"
    heavy: tuple[float, float] | None = None
    spread: float = 0.3
    mean_s: tuple[float, float] = (600.0, 3600.0)
    spread_s: float = 0.5
    median_tasks: float = 12.0
    tasks_sigma: float = 1.0
    most_tasks: int = 200


SHAPE = Shape()


def synthetic(
    *,
    users: int,
    machines: int = 1000,
    hours: float = 24.0,
    load: float = 1.2,
    seed: int = 1,
    uneven: float = 0.5,
    shape: Shape = SHAPE,
) -> VectorLoad:
    """Return a SYNTHETIC load, not Google's data: it resembles the trace and needs no files.

    Machines have the trace's shapes in the trace's proportions, scaled to the paper's totals; all have the same disk.
    Users have equal weights and different amounts of work (log-normal with sigma ``uneven``; 0: equal amounts). Jobs
    arrive at random during the ``hours``; all tasks of a job have the same demand. Durations are scaled so that the
    total demand for the scarcest resource is ``load`` times its capacity over that time. All figures except machines
    and totals are assumptions (`Shape`).
    """
    rng = np.random.default_rng([seed, users])
    shares = np.array([count for _, _, count in SHAPES], float)
    counts = np.floor(shares / shares.sum() * machines).astype(int)
    counts[0] += machines - counts.sum()
    servers = np.repeat(np.array([(cpu, memory, 0.52) for cpu, memory, _ in SHAPES]), counts, axis=0)
    servers *= np.array(TOTALS) * machines / 1000 / servers.sum(axis=0)
    span_ms = int(hours * 3_600_000)
    parts = rng.lognormal(0.0, uneven, users)
    parts /= parts.sum()
    capacity = servers.sum(axis=0)
    user, submit, duration, demand = [], [], [], []
    room = servers.max(axis=0) * 0.9

    def drawn_size() -> npt.NDArray[np.float64]:
        found = rng.uniform(*shape.size, 3)
        if shape.heavy is not None:
            found[rng.integers(3)] *= rng.uniform(*shape.heavy)
        return found

    for i in range(users):
        of_the_user = drawn_size()
        mean_s = rng.uniform(*shape.mean_s)
        work = 0.0
        while work < parts[i] * load:
            tasks = min(shape.most_tasks, int(rng.lognormal(math.log(shape.median_tasks), shape.tasks_sigma)) + 1)
            typical = of_the_user if shape.drawn == "user" else drawn_size()
            need = np.minimum(typical * rng.lognormal(0.0, shape.spread, 3), room)
            at = int(rng.uniform(0, span_ms))
            lengths_ms = rng.lognormal(math.log(mean_s), shape.spread_s, tasks) * 1000
            user += [i] * tasks
            submit += [at] * tasks
            duration += lengths_ms.tolist()
            demand += [need] * tasks
            work += float(lengths_ms.sum()) / span_ms * float((need / capacity).max())
    sizes, lengths = np.array(demand), np.array(duration, float)
    asked = (sizes * lengths[:, None]).sum(axis=0) / (capacity * span_ms)
    lengths *= load / asked.max()
    order = np.argsort(np.array(submit), kind="stable")
    return VectorLoad(
        servers=servers,
        weights=np.ones(users),
        user=np.array(user, np.int64)[order],
        submit_ms=np.array(submit, np.int64)[order],
        duration_ms=np.maximum(1000, lengths).astype(np.int64)[order],
        demand=sizes[order],
    )
