"""MapReduce jobs as lines of a trace: container sizes by a job's configuration, stages by its attempts.

The rules are Hadoop's own (3.4.2): ``JobConf.getMemoryRequired``, ``TaskAttemptImpl.populateResourceCapability`` and
``YARNRunner.generateResourceRequests``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from harness.model.resources import Resource
from harness.traces.spec import DelaysSpec

#: Hadoop's defaults (mapred-default.xml and MRJobConfig of 3.4.2).
_TASK_MB, _MASTER_MB, _VCORES = 1024, 1536, 1
_HEAP_RATIO = 0.8
#: Reduces are requested when this fraction of the maps has ended, in Hadoop 0.20, too.
SLOW_START = 0.05
#: The default heartbeat interval of a MapReduce AM.
MASTER_HEARTBEAT_S = 1.0
#: The behaviour of Hadoop's own nodes and AMs that run MapReduce: the time after which a NodeManager reports a
#: container's end (the middle of the measured range, docs/reference/simulator.md); an AM acts on an answer at once.
HADOOPS_DELAYS = DelaysSpec(end_heartbeat_ms=20, am_response_heartbeats=0)
#: The mean time that a replayed AM takes to notice the end of its last task: half of its own heartbeat.
_NOTICED_S = MASTER_HEARTBEAT_S / 2
#: The priorities of the AM's asks (RMContainerAllocator).
MAP_PRIORITY, REDUCE_PRIORITY = 20, 10
#: Names in Hadoop 1 with the same meaning.
_DEPRECATED = {
    "mapred.job.map.memory.mb": "mapreduce.map.memory.mb",
    "mapred.job.reduce.memory.mb": "mapreduce.reduce.memory.mb",
    "mapred.map.child.java.opts": "mapreduce.map.java.opts",
    "mapred.reduce.child.java.opts": "mapreduce.reduce.java.opts",
    "mapred.reduce.slowstart.completed.maps": "mapreduce.job.reduce.slowstart.completedmaps",
}
_EITHER_HEAP = "mapred.child.java.opts"
_HEAP_RATIO_KEY = "mapreduce.job.heap.memory-mb.ratio"
_SLOW_START_KEY = "mapreduce.job.reduce.slowstart.completedmaps"
_HEAP = re.compile(r"(?:^|\s)-Xmx(\d+)([gGmMkK]?)(?=\s|$)")
_AMOUNT = re.compile(r"([0-9]+) ?([a-zA-Z]*)")
#: Units of a resource's amount, in MiB (org.apache.hadoop.yarn.util.UnitsConversionUtil).
_IN_MIB = {
    "": 1.0,
    "k": 1e3 / 2**20,
    "M": 1e6 / 2**20,
    "G": 1e9 / 2**20,
    "T": 1e12 / 2**20,
    "P": 1e15 / 2**20,
    "Ki": 2**-10,
    "Mi": 1.0,
    "Gi": 2.0**10,
    "Ti": 2.0**20,
    "Pi": 2.0**30,
}


@dataclass(frozen=True, slots=True)
class ContainerSizes:
    """The container sizes of a job, and its slow start.

    Attributes
    ----------
    master, map, reduce : Resource
        Size of the AM's, a map's and a reduce's container.
    slow_start : float
        The fraction of the maps that must be complete before reduces are asked for.
    assumed : tuple of str
        Names of the sizes (``master``, ``map``, ``reduce``) whose memory the configuration does not give, so that
        Hadoop's default or a rule of thumb is used.
    """

    master: Resource
    map: Resource
    reduce: Resource
    slow_start: float
    assumed: tuple[str, ...]


def heap_mb(options: str | None) -> int | None:
    """Return the maximum heap of a JVM by its options, in MiB; None if they do not set one."""
    found = _HEAP.findall(options or "")
    if not found:
        return None
    # The last option wins, as in the JVM.
    digits, unit = found[-1]
    if len(digits) > 15:
        return None
    factor = {"g": 1024.0, "m": 1.0, "k": 1 / 1024, "": 1 / 2**20}[unit.lower()]
    return max(int(int(digits) * factor), 0) or None


def container_sizes(
    configuration: Iterable[tuple[str, object]], *, heaps_mb: Mapping[str, int | None] | None = None
) -> ContainerSizes:
    """Return the container sizes of a MapReduce job.

    Parameters
    ----------
    configuration : iterable of (name, value)
        The job's configuration, as far as it is known. Values that are not numbers count as missing.
    heaps_mb : mapping of str to int, optional
        Heap of a map's and of a reduce's JVM in MiB, if only that is known (Rumen). The container's size is then the
        heap divided by Hadoop's default ratio of 0.8.

    Returns
    -------
    ContainerSizes
        By ``mapreduce.KIND.resource.NAME``, else ``mapreduce.KIND.memory.mb``; if the latter is not above 0, the heap
        divided by ``mapreduce.job.heap.memory-mb.ratio``; else Hadoop's defaults.
    """
    given: dict[str, str] = {}
    for name, value in configuration:
        if value is not None:
            given.setdefault(_DEPRECATED.get(name, name), str(value).strip())
    ratio = _number(given.get(_HEAP_RATIO_KEY)) or _HEAP_RATIO
    ratio = ratio if ratio <= 1 else _HEAP_RATIO
    slow_start = _number(given.get(_SLOW_START_KEY), zero=True)
    sizes: dict[str, Resource] = {}
    assumed: list[str] = []
    for kind, prefix, memory, vcores in (
        ("master", "yarn.app.mapreduce.am.resource", "yarn.app.mapreduce.am.resource.mb",
         "yarn.app.mapreduce.am.resource.cpu-vcores"),
        ("map", "mapreduce.map.resource", "mapreduce.map.memory.mb", "mapreduce.map.cpu.vcores"),
        ("reduce", "mapreduce.reduce.resource", "mapreduce.reduce.memory.mb", "mapreduce.reduce.cpu.vcores"),
    ):  # fmt: skip
        mb = _amount(given.get(f"{prefix}.memory-mb")) or _amount(given.get(f"{prefix}.memory"))
        mb = mb or _whole(given.get(memory))
        if mb is None and kind != "master":
            heap = heap_mb(given.get(f"mapreduce.{kind}.java.opts", given.get(_EITHER_HEAP)))
            if heap is not None:
                mb = math.ceil(heap / ratio)
        if mb is None:
            assumed.append(kind)
            heap = (heaps_mb or {}).get(kind)
            mb = math.ceil(heap / _HEAP_RATIO) if heap else _MASTER_MB if kind == "master" else _TASK_MB
        cores = _amount(given.get(f"{prefix}.vcores")) or _whole(given.get(vcores)) or _VCORES
        sizes[kind] = Resource(mb, cores)
    return ContainerSizes(
        **sizes,
        slow_start=SLOW_START if slow_start is None else min(slow_start, 1.0),
        assumed=tuple(assumed),
    )


def _number(text: str | None, *, zero: bool = False) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if (value > 0 or (zero and value == 0)) and value < 2**31 else None


def _whole(text: str | None) -> int | None:
    value = _number(text)
    return int(value) if value is not None and value >= 1 else None


def _amount(text: str | None) -> int | None:
    """Return an amount with its unit, such as ``3Gi``; memory without a unit is in MiB."""
    found = _AMOUNT.fullmatch(text or "")
    if found is None or found[2] not in _IN_MIB or len(found[1]) > 15:
        return None
    value = int(int(found[1]) * _IN_MIB[found[2]])
    return value if 0 < value < 2**31 else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a task, which held one container.

    Attributes
    ----------
    kind : str
        ``map`` or ``reduce``.
    start_ms, end_ms : int
        Milliseconds since 1970.
    master : int
        The number of the AM attempt that started it, from 1 on.
    task : str
        The task's id; '': the attempt is a task of its own.
    shuffled_ms : int
        When a reduce had the output of all maps, milliseconds since 1970; 0: not known.
    """

    kind: str
    start_ms: int
    end_ms: int
    master: int = 1
    task: str = ""
    shuffled_ms: int = 0

    @property
    def held_ms(self) -> int:
        """Return the milliseconds for which it held its container."""
        return self.end_ms - self.start_ms


@dataclass(slots=True)
class _Stage:
    name: str
    kind: str
    attempts: list[Attempt] = field(default_factory=list)


def load_of(attempts: Iterable[Attempt], sizes: ContainerSizes) -> dict[str, Any]:
    """Return ``am`` and ``stages`` of a job's line in a trace.

    Every attempt, successful or not, is one task of the line, in order of its start, because it held a container for as
    long. An attempt that began after an earlier one of the same task had ended repeats that one; an attempt that began
    before (a speculative copy) runs beside it. Attempts that a second AM started wait for all that the first one had
    started. What reduces waited for maps is told apart from their work (`waits_of`).
    """
    stages: dict[tuple[int, str], _Stage] = {}
    ordered = sorted(attempts, key=lambda one: (one.master, one.kind, one.start_ms))
    first = ordered[0].master if ordered else 1
    for attempt in ordered:
        name = attempt.kind if attempt.master == first else f"{attempt.kind}.{attempt.master}"
        stages.setdefault((attempt.master, attempt.kind), _Stage(name, attempt.kind)).attempts.append(attempt)
    lines: list[dict[str, Any]] = []
    for (master, kind), stage in stages.items():
        before = [one.name for (number, _), one in stages.items() if number < master]
        maps = stages.get((master, "map")) if kind == "reduce" else None
        size = sizes.map if kind == "map" else sizes.reduce
        lines.append(
            {
                "name": stage.name,
                "memory_mb": size.memory_mb,
                "vcores": size.vcores,
                "tasks_s": [one.held_ms / 1000.0 for one in stage.attempts],
                "after": [maps.name] if maps is not None else before,
                "slow_start": sizes.slow_start if maps is not None else 1.0,
                "priority": MAP_PRIORITY if kind == "map" else REDUCE_PRIORITY,
            }
        )
        if maps is not None:
            waits = waits_of(stage.attempts, maps.attempts)
            if waits.tail:
                lines[-1] |= {"waits_s": list(waits.waits_s), "tail": waits.tail}
        retry_of = retries(stage.attempts)
        if any(before is not None for before in retry_of):
            lines[-1]["retry_of"] = retry_of
    return {"am": _demand(sizes.master), "stages": lines or [_no_tasks(sizes)]}


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the reduces of a job waited for its maps, and how much of their work had to wait.

    Attributes
    ----------
    waits_ms : tuple of int
        For each attempt, the milliseconds of its time in which it did nothing but wait.
    tail : float
        The fraction (0 to 1) of their work that they do only after the last map.
    """

    waits_ms: tuple[int, ...]
    tail: float

    @property
    def waits_s(self) -> tuple[float, ...]:
        """The same times in seconds, as a trace has them."""
        return tuple(wait / 1000.0 for wait in self.waits_ms)


def waits_of(reduces: Sequence[Attempt], maps: Sequence[Attempt]) -> Waits:
    """Return what reduces that began before the last map's end waited for it.

    Such a reduce fetches what maps have written and waits for the next ones; it sorts and reduces after the last one.
    So all that it did after the last map's end is work that must wait, its tail. Of the time before, only as much is
    work as a reduce takes from its start to the end of its shuffle where no map is left: the mean of the job's reduces
    that began later and whose shuffle's end is known. Without such reduces it is not known and counts as no work.

    Parameters
    ----------
    reduces, maps : sequence of Attempt
        The attempts of one AM.

    Returns
    -------
    Waits
        An attempt that began after the last map, or ended before (a killed one), did not wait.
    """
    last_ms = max(one.end_ms for one in maps)
    early = [one.start_ms < last_ms < one.end_ms for one in reduces]
    begun_ms = [one.shuffled_ms - one.start_ms for one in reduces if last_ms <= one.start_ms <= one.shuffled_ms]
    begin_ms = fmean(begun_ms) if begun_ms else 0.0
    waits_ms = tuple(
        max(round(last_ms - one.start_ms - begin_ms), 0) if waited else 0
        for one, waited in zip(reduces, early, strict=True)
    )
    after_ms = sum(one.end_ms - last_ms for one, waited in zip(reduces, early, strict=True) if waited)
    worked_ms = sum(one.held_ms - wait for one, wait, waited in zip(reduces, waits_ms, early, strict=True) if waited)
    return Waits(waits_ms, round(after_ms / worked_ms, 6) if worked_ms else 0.0)


def retries(attempts: Sequence[Attempt]) -> list[int | None]:
    """Return for each attempt which earlier one it repeats.

    MapReduce's AM asks for another attempt of a task when one has failed or was killed (``TaskImpl`` of Hadoop 3.4.2),
    and for a speculative one while one runs.

    Parameters
    ----------
    attempts : sequence of Attempt
        In order of their starts.

    Returns
    -------
    list
        An index in `attempts`: the attempt of the same task that ended last before this one began and that no other one
        repeats; None if there is none.
    """
    found: list[int | None] = []
    last_of: dict[str, list[int]] = {}
    for at, attempt in enumerate(attempts):
        lasts = last_of.setdefault(attempt.task, []) if attempt.task else []
        ended = [one for one in lasts if attempts[one].end_ms <= attempt.start_ms]
        before = max(ended, key=lambda one: attempts[one].end_ms, default=None)
        if before is not None:
            lasts.remove(before)
        lasts.append(at)
        found.append(before)
    return found


def master_alone(sizes: ContainerSizes) -> dict[str, Any]:
    """Return ``am`` and ``stages`` of a job that ran completely in its AM's container."""
    return {"am": _demand(sizes.master), "stages": [_no_tasks(sizes)]}


def _no_tasks(sizes: ContainerSizes) -> dict[str, Any]:
    return {"name": "map", **_demand(sizes.map), "tasks_s": []}


def _demand(size: Resource) -> dict[str, int]:
    return {"memory_mb": size.memory_mb, "vcores": size.vcores}


def am_end_s(attempts: Sequence[Attempt], finished_ms: int, began_ms: int) -> float:
    """Return the seconds for which a job's AM outlives its tasks (``am_end_s`` of a trace).

    Parameters
    ----------
    attempts : sequence of Attempt
        The attempts that held containers; none for a job that ran completely in its AM's container.
    finished_ms, began_ms : int
        When the job ended, and when its AM was ready to work.

    Returns
    -------
    float
        The time, minus what a replayed AM takes to notice the end of its last task, plus the pauses between two AMs.
    """
    if not attempts:
        return max(finished_ms - began_ms, 0) / 1000.0
    after_ms = finished_ms - max(one.end_ms for one in attempts) + _restart_pause_ms(attempts)
    return round(max(after_ms / 1000.0 - _NOTICED_S, 0.0), 3)


def _restart_pause_ms(attempts: Sequence[Attempt]) -> int:
    """Return the total milliseconds between the end of one AM's attempts and the start of the next one's."""
    pause, end = 0, None
    for master in sorted({one.master for one in attempts}):
        own = [one for one in attempts if one.master == master]
        if end is not None:
            pause += max(min(one.start_ms for one in own) - end, 0)
        end = max(*(one.end_ms for one in own), end or 0)
    return pause
