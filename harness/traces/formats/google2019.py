"""Google's cluster traces of 2019 (version 3): events of collections and their instances, as exported to JSON or CSV.

The fields are those of https://github.com/google/cluster-data (``clusterdata_trace_format_v3.proto``): JSON lines, as
the trace's buckets have them, or CSV with a line of names, where ``resource_request.cpus`` may also be written
``resource_request_cpus`` or ``cpus``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.traces.accounting import NEVER_STARTED, NO_START, NODES, NOT_WANTED, NOTHING_RAN, UNREADABLE, Totals
from harness.traces.formats.base import (
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    missing_queues,
)
from harness.traces.formats.tables import (
    COUNT_VCORES,
    Fields,
    Table,
    TableReader,
    Work,
    checked_nodes,
    column_name,
    files_by_table,
    job_of,
    joined_sentence,
    needed_files,
    number,
    rows_of,
    size_of,
    text,
    whole,
)

#: Sizes are fractions of the largest machine, whose size is not published.
MACHINE_MB, MACHINE_VCORES = 262_144, 64
#: A time of 2^63 - 1: after the trace's end.
_NEVER_US = float(2**63 - 1)
_EVENTS = (
    "SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING",
    "UPDATE_RUNNING",
)  # fmt: skip
_SUBMIT, _ENABLE, _SCHEDULE, _ENDS, _RAN = 0, 2, 3, frozenset((4, 5, 6, 7, 8)), frozenset((4, 5, 6))
COLLECTIONS = Table(
    "collection_events",
    (),
    frozenset(("time", "type", "collection_id")),
    headed=True,
)
INSTANCES = Table(
    "instance_events",
    (),
    frozenset(("time", "type", "collection_id", "instance_index")),
    headed=True,
)
MACHINES = Table("machine_events", (), frozenset(("time", "type", "machine_id", "switch_id")), headed=True)
ALLOC_SETS = "alloc sets: reservations, in which jobs run"
#: Ranges of priorities, as named in the trace's documentation.
_TIERS = ((99, "free"), (115, "best-effort-batch"), (119, "mid"), (359, "production"))


@dataclass(slots=True)
class _Instance:
    """Events as (microseconds, order of reading, type); and the first requested size."""

    events: list[tuple[float, int, int]] = field(default_factory=list)
    cpus: float | None = None
    memory: float | None = None


@dataclass(slots=True)
class _Collection:
    where: str
    submitted_us: float | None = None
    enabled_us: float | None = None
    #: Whether other collections must finish before it may start.
    starts_after: bool = False
    user: str = ""
    title: str = ""
    priority: int | None = None
    alloc_set: bool = False
    instances: dict[int, _Instance] = field(default_factory=dict)
    records: int = 0


class Google2019(TableReader):
    """Reader of the events of Google's traces of 2019."""

    name = "Google 2019"
    versions = "clusterdata-2019: `collection_events`, `instance_events` and `machine_events`, as JSON lines or CSV"
    lacks = "sizes of machines; masters; queues"
    assumes = (
        "a largest machine of 262,144 MB and 64 vcores; the tier of its priority is a job's queue; masters that hold "
        "nothing; what runs when the trace begins or ends begins or ends with it; a collection that starts after "
        "others is submitted when it was enabled"
    )
    kind = "google-2019"
    tables = ("instance_events (needed)", "collection_events", "machine_events")
    settable: Mapping[str, str] = {
        "machine_memory_mb": f"{MACHINE_MB}: the machine of which memory is a part",
        "machine_vcores": f"{MACHINE_VCORES}: the machine of which cpus are a part",
        "memory_mb": "1024: of an instance without a request",
        "vcores": "1: of an instance without a request",
        "queue_by": "tier: of the priority; else user or none",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("tier", "user", "none")
    layout = (COLLECTIONS, INSTANCES, MACHINES)

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the events. Memory: one entry per event of an instance."""
        files = files_by_table(paths, self.layout, self.name)
        collector = Collector()
        broken: list[str] = []
        jobs: dict[str, _Collection] = {}
        last_us = 0.0
        needed_files(files, INSTANCES.name, self.name)
        order = 0
        for name in (COLLECTIONS.name, INSTANCES.name):
            for file in files.get(name, ()):
                for row in rows_of(file, collector, broken):
                    order += 1
                    try:
                        if row.fields is None:
                            raise BadRecord(row.problem)
                        time_us = _read_event(row.fields, row.where, jobs, order, name == INSTANCES.name)
                    except BadRecord as error:
                        collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
                        continue
                    if time_us < _NEVER_US:
                        last_us = max(last_us, time_us)
        machines: dict[str, tuple[int, int]] = {}
        for file in files.get(MACHINES.name, ()):
            for row in rows_of(file, collector, broken):
                try:
                    if row.fields is None:
                        raise BadRecord(row.problem)
                    size = _size(
                        _part(row.fields, "capacity", "cpus"), _part(row.fields, "capacity", "memory"), assumed
                    )
                except BadRecord as error:
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
                    continue
                collector.leave_out(NODES, Totals(records=1), row.where)
                if _part(row.fields, "capacity", "cpus"):
                    machines.setdefault(text(row.fields, "machine_id"), size)
        joined: list[str] = []
        cut, after_others = [0], [0]
        without_queue = 0
        while jobs:
            name, job = jobs.popitem()
            if job.alloc_set:
                # Alloc sets are not jobs: what runs in them requests its own resources.
                collector.leave_out(ALLOC_SETS, Totals(records=job.records), job.where)
                continue
            queue = {"tier": _tier(job.priority), "user": job.user}.get(assumed.queue_by or "tier", "")
            made = collector.add(
                job.records,
                job.where,
                partial(
                    _timed,
                    name,
                    job,
                    queue,
                    last_us=last_us,
                    assumed=assumed,
                    collector=collector,
                    joined=joined,
                    cut=cut,
                    after_others=after_others,
                ),
            )
            without_queue += made and not queue
        sizes: dict[tuple[int, int], int] = {}
        for size in machines.values():
            sizes[size] = sizes.get(size, 0) + 1
        memory_mb, vcores = assumed.machine_memory_mb or MACHINE_MB, assumed.machine_vcores or MACHINE_VCORES
        return collector.finish(
            self.name,
            nodes=checked_nodes(sizes),
            capacity=COUNT_VCORES,
            assumed=[
                f"sizes are parts of a machine of {memory_mb:,} MB and {vcores:,} vcores, rounded up to whole ones, "
                "and both count (DominantResourceCalculator)",
                "each instance keeps the size that it asked for first, and asks again after an eviction or a failure",
                *(
                    [f"what was running at the first or last event begins or ends with it ({cut[0]:,} attempts)"]
                    if cut[0]
                    else []
                ),
                *(
                    [
                        f"{after_others[0]:,} jobs that start after others (start_after_collection_ids) are submitted "
                        "when the trace enabled them, whenever a policy lets those others end"
                    ]
                    if after_others[0]
                    else []
                ),
                *(
                    []
                    if COLLECTIONS.name in files
                    else ["jobs are submitted with their first instance (no collection_events); users are unknown"]
                ),
                *joined_sentence(joined),
            ],
            assumed_of_nodes=["machines that were there at any time are there all the time"] if machines else [],
            unknown=[*missing_queues(without_queue, len(collector.jobs)), *broken],
        )


def _read_event(fields: Fields, where: str, jobs: dict[str, _Collection], order: int, of_instance: bool) -> float:
    """Record an event; return its time in microseconds. Raises BadRecord."""
    name = text(fields, "collection_id")
    time_us = number(fields, "time", most=_NEVER_US)
    kind = _event(text(fields, "type"))
    if not name or time_us is None:
        raise BadRecord("no collection_id or no time")
    priority = whole(fields, "priority")
    index = whole(fields, "instance_index", most=2**31 - 1) if of_instance else None
    if of_instance and index is None:
        raise BadRecord("no instance_index")
    cpus, memory = _part(fields, "resource_request", "cpus"), _part(fields, "resource_request", "memory")
    job = jobs.setdefault(name, _Collection(where))
    job.records += 1
    job.alloc_set = job.alloc_set or text(fields, "collection_type") in ("1", "ALLOC_SET")
    job.priority = priority if job.priority is None else job.priority
    if kind == _SUBMIT and (job.submitted_us is None or time_us < job.submitted_us):
        job.submitted_us = time_us
    if index is None:
        job.starts_after = job.starts_after or any(map(str.isdigit, text(fields, "start_after_collection_ids")))
        if kind == _ENABLE and (job.enabled_us is None or time_us < job.enabled_us):
            job.enabled_us = time_us
        job.user = job.user or text(fields, "user")
        job.title = job.title or text(fields, "collection_logical_name")
        return time_us
    instance = job.instances.setdefault(index, _Instance())
    if instance.cpus is None and instance.memory is None:
        instance.cpus, instance.memory = cpus, memory
    if kind == _SCHEDULE or kind in _ENDS:
        instance.events.append((time_us, order, kind))
    return time_us


def _event(word: str) -> int:
    """Return an event's number from its number or name. Raises BadRecord."""
    if word in _EVENTS:
        return _EVENTS.index(word)
    if word.isascii() and word.isdigit() and len(word) <= 2 and int(word) < len(_EVENTS):
        return int(word)
    raise BadRecord(f"type is {word[:40]!r}, none of the trace's events")


def _part(fields: Fields, outer: str, name: str) -> float | None:
    """Return a size as a fraction of the largest machine, from any spelling of its column. Raises BadRecord."""
    for column in (f"{outer}.{name}", f"{outer}_{name}", name):
        if column_name(column) in fields:
            return number(fields, column, most=1000.0)
    return None


def _size(cpus: float | None, memory: float | None, assumed: Assumptions) -> tuple[int, int]:
    return size_of(
        None if memory is None else memory * (assumed.machine_memory_mb or MACHINE_MB),
        None if cpus is None else cpus * (assumed.machine_vcores or MACHINE_VCORES),
        assumed.memory_mb or 1024,
        assumed.vcores or 1,
    )


def _tier(priority: int | None) -> str:
    if priority is None:
        return ""
    return next((name for most, name in _TIERS if priority <= most), "monitoring")


def _timed(
    name: str,
    job: _Collection,
    queue: str,
    *,
    last_us: float,
    assumed: Assumptions,
    collector: Collector,
    joined: list[str],
    cut: list[int],
    after_others: list[int],
) -> TimedJob | str:
    attempts = [(instance, *_spans(instance, last_us)) for instance in job.instances.values()]
    begin_us = [first for _, spans, _, _ in attempts for first, _ in spans]
    end_us = [last for _, spans, _, _ in attempts for _, last in spans]
    # An instance that waited for other collections requested nothing before these had ended.
    asked_us = job.enabled_us if job.starts_after else job.submitted_us
    known_us = [*begin_us, *([] if asked_us is None else [asked_us])]
    if not known_us and job.submitted_us is not None:
        known_us = [job.submitted_us]
    if known_us and not assumed.includes(min(known_us) / 1e6):
        return NOT_WANTED
    works: dict[tuple[int, int], tuple[list[float], list[int | None]]] = {}
    never = unknown_start = tasks = 0
    for instance, spans, no_start, was_cut in attempts:
        unknown_start += no_start
        if not spans:
            never += 1
            continue
        tasks += 1
        cut[0] += was_cut
        tasks_s, retry_of = works.setdefault(_size(instance.cpus, instance.memory, assumed), ([], []))
        for at, (first, last) in enumerate(spans):
            retry_of.append(len(tasks_s) - 1 if at else None)
            tasks_s.append((last - first) / 1e6)
    for reason, missing in ((NEVER_STARTED, Totals(tasks=never)), (NO_START, Totals(attempts=unknown_start))):
        collector.count(missing)
        collector.leave_out(reason, missing, job.where)
    if not works:
        return NOTHING_RAN
    collector.expect(len(begin_us), job.where)
    after_others[0] += job.starts_after
    return job_of(
        name,
        [
            Work(f"instances-{memory_mb}MB-{vcores}", memory_mb, vcores, tuple(tasks_s), tuple(retry_of))
            for (memory_mb, vcores), (tasks_s, retry_of) in works.items()
        ],
        assumed,
        queue=queue,
        user=job.user,
        title=job.title,
        submitted_s=min(known_us) / 1e6,
        clock_s=0.0,
        started_s=min(begin_us) / 1e6,
        finished_s=max(end_us) / 1e6,
        tasks=tasks,
        records=job.records,
        joined=joined,
    )


def _spans(instance: _Instance, last_us: float) -> tuple[list[tuple[float, float]], int, int]:
    """Return an instance's attempts in microseconds, the number of ends without start, and of truncated attempts."""
    spans: list[tuple[float, float]] = []
    begin_us: float | None = None
    no_start = was_cut = 0
    for time_us, _, kind in sorted(instance.events):
        if kind == _SCHEDULE:
            # A second start without an end in between: the first attempt counts until then.
            if begin_us is not None and time_us > begin_us:
                spans.append((begin_us, min(time_us, last_us)))
            begin_us = time_us
            was_cut += time_us == 0
        elif begin_us is None:
            # It was killed or lost while waiting; an eviction, failure or finish means that the start is missing.
            no_start += kind in _RAN
        else:
            was_cut += time_us >= _NEVER_US
            spans.append((begin_us, max(min(time_us, last_us), begin_us)))
            begin_us = None
    if begin_us is not None and begin_us < _NEVER_US:
        was_cut += 1
        spans.append((begin_us, max(last_us, begin_us)))
    return [span for span in spans if span[0] < _NEVER_US], no_start, was_cut
