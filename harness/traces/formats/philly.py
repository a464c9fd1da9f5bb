"""Microsoft's Philly trace: jobs of deep learning on GPUs, with each attempt and the machines and GPUs that it held.

The schema is https://github.com/msr-fiddle/philly-traces: ``cluster_job_log`` is one JSON array.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import no_constant, reading
from harness.traces.accounting import (
    BACKWARDS,
    NEVER_STARTED,
    NO_END,
    NO_START,
    NODES,
    NOT_WANTED,
    NOTHING_RAN,
    UNREADABLE,
    Totals,
)
from harness.traces.formats.base import (
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    missing_queues,
)
from harness.traces.formats.compressed import plain_head, readable_bytes
from harness.traces.formats.tables import (
    COUNT_VCORES,
    Table,
    TableReader,
    Work,
    checked_nodes,
    files_in,
    job_of,
    joined_sentence,
    rows_of,
    table_of,
    whole,
)

MAX_BYTES = 1 << 30
MACHINES = Table(
    "cluster_machine_list",
    ("machineId", "number of GPUs", "single GPU mem"),
    frozenset(("machineId", "number of GPUs")),
    headed=True,
)
#: The beginning of the next job: its first key is one of these; attempts and their details have other keys.
_JOB = re.compile(r'\{\s*"(?:status|vc|jobid|submitted_time|user)"\s*:')
NO_GPUS = "attempts that do not say which GPUs they held"
_ENOUGH = (b'"jobid"', b'"attempts"', b'"submitted_time"')


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt: times in seconds since 1970, and the number of GPUs that it held on each machine."""

    begin_s: float
    end_s: float
    gpus: tuple[int, ...]


class Philly(TableReader):
    """Reader of ``cluster_job_log``."""

    name = "Philly"
    versions = "Microsoft's philly-traces: `cluster_job_log`, with it `cluster_machine_list`"
    lacks = "memory and CPUs of jobs and machines; masters; the time zone"
    assumes = (
        "a container of one vcore a GPU on each machine; 1,024 MB each; the virtual cluster is the queue; "
        "masters that hold nothing"
    )
    kind = "philly"
    tables = ("cluster_job_log (needed)", "cluster_machine_list")
    settable: Mapping[str, str] = {
        "queue_by": "vc: the virtual cluster; else user or none",
        "memory_mb": "1024: of each container",
        "machine_memory_mb": "of each machine: its GPUs times the memory of a container",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("vc", "user", "none")
    layout = (MACHINES,)

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file is a JSON array of jobs with attempts, or the list of machines."""
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and all(key in head for key in _ENOUGH):
            return True
        return super().recognises(path, head)

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the log and the list.

        Memory use: about three times the log's size when unpacked, at most 1 GiB of it.
        """
        collector = Collector()
        broken: list[str] = []
        sizes: Counter[tuple[int, int]] = Counter()
        parsed: list[tuple[str, dict[str, Any], float]] = []
        for path in files_in(paths):
            with reading(path):
                head = plain_head(path, 65_536)
            machines = table_of(path, head, self.layout)
            if machines is None:
                _read_log(path, collector, parsed, broken)
                continue
            for row in rows_of(machines, collector, broken):
                try:
                    gpus = None if row.fields is None else whole(row.fields, "number of GPUs", most=4096)
                    if not gpus:
                        raise BadRecord(row.problem or "a machine without a number of GPUs")
                except BadRecord as error:
                    collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), row.where)
                    continue
                collector.leave_out(NODES, Totals(records=1), row.where)
                memory_mb = assumed.machine_memory_mb or gpus * (assumed.memory_mb or 1024)
                sizes[(memory_mb, gpus)] += 1
        if not parsed and not collector.read.records:
            raise InputError("no job", where=str(paths[0]), hint="give cluster_job_log")
        clock_s = min((submitted_s for _, _, submitted_s in parsed), default=0.0)
        joined: list[str] = []
        without_queue = 0
        column = {"vc": "vc", "user": "user"}.get(assumed.queue_by or "vc")
        for where, job, submitted_s in parsed:
            queue = _text(job.get(column)) if column else ""
            kept = collector.add(
                1,
                where,
                partial(
                    _timed,
                    job,
                    queue,
                    submitted_s=submitted_s,
                    clock_s=clock_s,
                    assumed=assumed,
                    collector=collector,
                    where=where,
                    joined=joined,
                ),
            )
            without_queue += kept and not queue
        return collector.finish(
            self.name,
            nodes=checked_nodes(sizes),
            capacity=COUNT_VCORES,
            assumed=[
                f"each attempt is a container a machine, of one vcore a GPU and {assumed.memory_mb or 1024:,} MB; the "
                "next attempt begins when all of it have ended",
                "jobs that failed or were killed ran as long as their attempts did",
                "times are read as UTC: the trace's zone changes its clock once, by an hour",
                *joined_sentence(joined),
            ],
            assumed_of_nodes=["a machine has one vcore a GPU"] if sizes else [],
            unknown=[*missing_queues(without_queue, len(collector.jobs)), *broken],
        )


def _read_log(
    path: Path, collector: Collector, parsed: list[tuple[str, dict[str, Any], float]], broken: list[str]
) -> None:
    """Append (location, job, submission in seconds) to ``parsed`` for each readable job of the array.

    ``broken`` gets a sentence about the rest if the file ends early.
    """
    with reading(path, "check the path, or unpack it and give what can be read"):
        read = readable_bytes(path, MAX_BYTES)
    log = read.text("replace").removeprefix("\ufeff")
    if not log.lstrip().startswith("["):
        raise InputError("no JSON array of jobs", where=str(path), hint="give cluster_job_log as it was published")
    for where, value in _objects(path, log):
        collector.count(Totals(records=1))
        try:
            if not isinstance(value, dict):
                raise BadRecord(value)
            submitted_s = _seconds(value.get("submitted_time"))
            if submitted_s is None:
                raise BadRecord("no submitted_time")
        except BadRecord as error:
            collector.count(Totals(jobs=1))
            collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1, jobs=1), where)
            continue
        parsed.append((where, value, submitted_s))
    if read.broken:
        broken.append(collector.rest_unread(path, log.count("\n") + 1, read.broken))


def _objects(path: Path, log: str) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield the objects of the array, each with its location, or the reason why it cannot be read."""
    decoder = json.JSONDecoder(parse_constant=no_constant)
    position, counted, line = log.index("[") + 1, 0, 1
    while True:
        while position < len(log) and (log[position].isspace() or log[position] == ","):
            position += 1
        if position >= len(log) or log[position] == "]":
            return
        line += log.count("\n", counted, position)
        counted, where = position, f"{path}:{line}"
        try:
            value, position = decoder.raw_decode(log, position)
        except (ValueError, RecursionError) as error:
            following = _JOB.search(log, position + 1)
            position = following.start() if following is not None else len(log)
            yield where, str(error)[:80]
            continue
        yield where, value if isinstance(value, dict) else f"expected an object, found {type(value).__name__}"


def _text(value: object) -> str:
    return value if isinstance(value, str) and value != "None" else ""


def _seconds(value: object) -> float | None:
    """Return a time of the log (``2017-10-07 01:12:09``); None if it is missing.

    Raises BadRecord for any other text.
    """
    if value is None or value in ("", "None"):
        return None
    try:
        if not isinstance(value, str) or len(value) > 40:
            raise ValueError
        # Some times end with a time zone, which the others lack.
        found = datetime.strptime(re.sub(r" P[DS]T$", "", value), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise BadRecord(f"{str(value)[:40]!r} is no time as 2017-10-07 01:12:09") from None
    if found < 0:
        raise BadRecord(f"{value} is before 1970")
    return found


def _timed(
    job: Mapping[str, object],
    queue: str,
    *,
    submitted_s: float,
    clock_s: float,
    assumed: Assumptions,
    collector: Collector,
    where: str,
    joined: list[str],
) -> TimedJob | str:
    if not assumed.includes(submitted_s - clock_s):
        return NOT_WANTED
    name = _text(job.get("jobid"))
    if not name:
        raise BadRecord("no jobid")
    listed = job.get("attempts")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise BadRecord("attempts is no list of objects")
    if not listed:
        return NEVER_STARTED
    attempts: list[_Attempt] = []
    left_out: Counter[str] = Counter()
    for one in listed:
        gpus = _gpus(one.get("detail"))
        begin_s, end_s = _seconds(one.get("start_time")), _seconds(one.get("end_time"))
        if begin_s is None or end_s is None or end_s < begin_s:
            # An attempt without details of what it held still counts as an attempt.
            left_out[NO_START if begin_s is None else NO_END if end_s is None else BACKWARDS] += max(len(gpus), 1)
        elif gpus:
            attempts.append(_Attempt(begin_s, end_s, gpus))
        else:
            left_out[NO_GPUS] += 1
    collector.leave_out_attempts(left_out, where)
    if not attempts:
        return NOTHING_RAN
    attempts.sort(key=lambda attempt: attempt.begin_s)
    collector.expect(sum(len(attempt.gpus) for attempt in attempts), where)
    works: list[Work] = []
    before: frozenset[str] = frozenset()
    for number, attempt in enumerate(attempts, 1):
        by_size = Counter(attempt.gpus)
        works += [
            Work(
                f"attempt-{number}-of-{gpus}",
                assumed.memory_mb or 1024,
                gpus,
                (attempt.end_s - attempt.begin_s,) * count,
                (),
                before,
            )
            for gpus, count in sorted(by_size.items())
        ]
        before = frozenset(f"attempt-{number}-of-{gpus}" for gpus in by_size)
    return job_of(
        name,
        works,
        assumed,
        queue=queue,
        user=_text(job.get("user")),
        submitted_s=submitted_s,
        clock_s=clock_s,
        started_s=attempts[0].begin_s,
        finished_s=max(attempt.end_s for attempt in attempts),
        tasks=max(len(attempt.gpus) for attempt in attempts),
        records=1,
        joined=joined,
    )


def _gpus(detail: object) -> tuple[int, ...]:
    """Return how many GPUs an attempt held on each of its machines. Raises BadRecord."""
    if detail is None:
        return ()
    if not isinstance(detail, list) or not all(isinstance(one, dict) for one in detail):
        raise BadRecord("detail is no list of objects")
    found = []
    for one in detail:
        gpus = one.get("gpus")
        if not isinstance(gpus, list) or len(gpus) > 4096:
            raise BadRecord("gpus is no list")
        if gpus:
            found.append(len(gpus))
    return tuple(found)
