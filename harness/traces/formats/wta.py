"""The Workflow Trace Archive's parquet files: workflows, each a job whose tasks wait for others.

Columns are as https://github.com/atlarge-research/wta-tools (``objects/task.py``, ``objects/workflow.py``) writes them:
a trace is a folder with ``tasks/schema-1.0/*.parquet`` and ``workflows/schema-1.0/*.parquet``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.documents import LONGEST_S
from harness.base.errors import InputError
from harness.base.files import open_whole, reading
from harness.traces.accounting import NOTHING_RAN, UNREADABLE, Totals
from harness.traces.formats.base import (
    NOTHING_SET,
    Assumptions,
    BadRecord,
    Collector,
    Reading,
    TimedJob,
    missing_queues,
)
from harness.traces.formats.tables import COUNT_VCORES, Work, job_of, joined_sentence, size_of

_TASK = ("id", "ts_submit", "runtime", "resource_amount_requested", "parents", "workflow_id")
_TASK_MORE = ("wait_time", "user_id", "group_id")
_WORKFLOW = ("id", "ts_submit", "task_count")
_MAGIC = b"PAR1"
_BATCH = 65_536
#: The submission of a workflow is only known after all tables have been read, so each task is kept in memory until
#: then.
_FEWER = "give fewer of the files of tasks: --from and --until choose among the workflows only after all tasks are read"


@dataclass(frozen=True, slots=True)
class _Task:
    """One task. Times are in milliseconds."""

    id: int
    submit_ms: int
    wait_ms: int
    run_ms: int
    vcores: int
    parents: tuple[int, ...]


@dataclass(slots=True)
class _Workflow:
    where: str
    tasks: list[_Task] = field(default_factory=list)
    user: int = -1
    group: int = -1
    submit_ms: int | None = None
    records: int = 0


class Wta:
    """Reader of the Workflow Trace Archive."""

    name = "WTA"
    versions = "Workflow Trace Archive, schema 1.0: `tasks` and, if wanted, `workflows` in parquet"
    lacks = "nodes; queues; masters; the unit of memory (memory_requested is not read)"
    assumes = (
        "1,024 MB a task; a vcore a unit of `resource_amount_requested`; masters that hold nothing; `root.default`"
    )
    kind = "wta"
    tables = ("tasks (needed)", "workflows")
    settable: Mapping[str, str] = {
        "memory_mb": "1024: of each task",
        "cpu_unit": "1: how much of resource_amount_requested is one vcore",
        "queue_by": "none; else group or user",
        "am_memory_mb": "0",
        "am_vcores": "0",
    }
    queues = ("none", "group", "user")

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the path is a parquet file of tasks, or a folder with such files below ``tasks``."""
        if not head:
            return path.is_dir() and any((path / "tasks").rglob("*.parquet"))
        return head.startswith(_MAGIC) and set(_TASK) <= set(_columns(path))

    def read(self, path: Path) -> Reading:
        """Read one file, or a folder of the archive."""
        return self.read_files([path])

    def read_files(self, paths: Sequence[Path], assumed: Assumptions = NOTHING_SET) -> Reading:
        """Read the tables batch by batch. Memory use: one entry for each task."""
        collector = Collector()
        workflows: dict[int, _Workflow] = {}
        kinds = {"tasks": 0}
        files = [file for path in paths for file in _files(path)]
        tables = {file: set(_columns(file)) for file in files}
        for file, columns in tables.items():
            if set(_TASK) <= columns:
                kinds["tasks"] += 1
                _read_tasks(file, columns, assumed, collector, workflows)
        for file, columns in tables.items():
            if set(_TASK) <= columns:
                continue
            if set(_WORKFLOW) <= columns:
                _read_workflows(file, collector, workflows)
            elif not columns:
                collector.count(Totals(records=1))
                collector.leave_out(f"{UNREADABLE}: no parquet file, or a damaged one", Totals(records=1), str(file))
        if not kinds["tasks"]:
            raise InputError(
                f"no tasks: no file has the columns {', '.join(_TASK)}",
                where=str(paths[0]),
                hint="give the folder of the trace, or the files of tasks/schema-1.0",
            )
        clock_ms = min((_submitted_ms(one) for one in workflows.values() if one.tasks), default=0)
        joined: list[str] = []
        without_queue = 0
        for name, workflow in workflows.items():
            number = {"user": workflow.user, "group": workflow.group}.get(assumed.queue_by or "none", -1)
            queue = f"{assumed.queue_by}{number}" if number >= 0 else ""
            made = collector.add(
                workflow.records,
                workflow.where,
                partial(_timed, name, workflow, queue, clock_ms, assumed, collector, joined),
            )
            without_queue += made and not queue
        return collector.finish(
            self.name,
            capacity=COUNT_VCORES,
            assumed=[
                f"each task is a container of {assumed.memory_mb or 1024:,} MB, and of a vcore for each "
                f"{assumed.cpu_unit or 1:g} of resource_amount_requested, rounded up; both count "
                "(DominantResourceCalculator)",
                *joined_sentence(joined),
            ],
            unknown=missing_queues(without_queue, len(collector.jobs)),
        )


def _files(path: Path) -> list[Path]:
    with reading(path):
        if not path.is_dir():
            return [path]
        return sorted(one for one in path.rglob("*.parquet") if one.is_file())


def _columns(path: Path) -> list[str]:
    """Return the columns of a parquet file; empty for a damaged or other file."""
    with contextlib.suppress(pa.ArrowException, OSError, ValueError), open_whole(path) as stream:
        return list(pq.read_schema(stream).names)
    return []


def _rows(file: Path, columns: Sequence[str], collector: Collector) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows, each with its location; of a damaged file only the damaged part is left out."""
    with reading(file), open_whole(file) as stream:
        try:
            parquet = pq.ParquetFile(stream)
            groups = [parquet.metadata.row_group(at).num_rows for at in range(parquet.num_row_groups)]
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"is damaged: {str(error)[:80]}", where=str(file), hint="fetch it again") from None
        first = 0
        for group, count in enumerate(groups):
            at = first
            try:
                for batch in parquet.iter_batches(batch_size=_BATCH, row_groups=[group], columns=list(columns)):
                    for row in batch.to_pylist():
                        at += 1
                        collector.count(Totals(records=1))
                        yield f"{file}, row {at}", row
            except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
                rest = max(first + count - at, 1)
                collector.count(Totals(records=rest))
                why = f"{UNREADABLE}: a damaged part of the file ({str(error)[:60]})"
                collector.leave_out(why, Totals(records=rest), f"{file}, row {at + 1}")
            first += count


def _read_tasks(
    file: Path, columns: set[str], assumed: Assumptions, collector: Collector, workflows: dict[int, _Workflow]
) -> None:
    for where, row in _rows(file, [*_TASK, *(name for name in _TASK_MORE if name in columns)], collector):
        try:
            workflow = _whole(row, "workflow_id", least=-(2**63))
            task = _Task(
                _whole(row, "id", least=-(2**63)),
                _whole(row, "ts_submit", most=int(1e6 * LONGEST_S)),
                max(_whole(row, "wait_time", missing=0, least=-1), 0),
                _whole(row, "runtime", most=int(1000 * LONGEST_S)),
                _vcores(row, assumed),
                _parents(row),
            )
            user, group = (_whole(row, name, missing=-1, least=-(2**31)) for name in ("user_id", "group_id"))
        except BadRecord as error:
            collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), where)
            continue
        found = workflows.setdefault(workflow, _Workflow(where))
        collector.expect(1, where, _FEWER)
        found.records += 1
        found.tasks.append(task)
        found.user, found.group = max(found.user, user), max(found.group, group)


def _read_workflows(file: Path, collector: Collector, workflows: dict[int, _Workflow]) -> None:
    for where, row in _rows(file, _WORKFLOW, collector):
        try:
            found = workflows.get(_whole(row, "id", least=-(2**63)))
            submit_ms = _whole(row, "ts_submit", most=int(1e6 * LONGEST_S))
        except BadRecord as error:
            collector.leave_out(f"{UNREADABLE}: {error}", Totals(records=1), where)
            continue
        if found is None:
            collector.leave_out("workflows without a task", Totals(records=1), where)
            continue
        found.records += 1
        found.submit_ms = submit_ms


def _whole(
    row: Mapping[str, object], name: str, *, missing: int | None = None, least: int = 0, most: int = 2**63
) -> int:
    """Return a column as a whole number in this range. Raises BadRecord."""
    value = row.get(name)
    if value is None and missing is not None:
        return missing
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadRecord(f"{name} is {str(value)[:40]}, not a whole number from {least} to {most}")
    return value


def _vcores(row: Mapping[str, object], assumed: Assumptions) -> int:
    value = row.get("resource_amount_requested")
    if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
        raise BadRecord(f"resource_amount_requested is {str(value)[:40]}")
    # The archive writes -1 for unknown values.
    amount = None if value is None or value < 0 else value / (assumed.cpu_unit or 1.0)
    return size_of(None, amount, 1024, 1)[1]


def _parents(row: Mapping[str, object]) -> tuple[int, ...]:
    value = row.get("parents")
    if value is None:
        return ()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
        raise BadRecord("parents is no list of ids")
    return tuple(value)


def _submitted_ms(workflow: _Workflow) -> int:
    first = min(task.submit_ms for task in workflow.tasks)
    return first if workflow.submit_ms is None else min(workflow.submit_ms, first)


def _timed(
    name: int,
    workflow: _Workflow,
    queue: str,
    clock_ms: int,
    assumed: Assumptions,
    collector: Collector,
    joined: list[str],
) -> TimedJob | str:
    if not workflow.tasks:
        return NOTHING_RAN
    memory_mb = assumed.memory_mb or 1024
    works = [
        Work(
            f"task-{task.id}",
            memory_mb,
            task.vcores,
            (task.run_ms / 1000.0,),
            (),
            frozenset(f"task-{parent}" for parent in task.parents),
        )
        for task in workflow.tasks
    ]
    begin_ms = min(task.submit_ms + task.wait_ms for task in workflow.tasks)
    end_ms = max(task.submit_ms + task.wait_ms + task.run_ms for task in workflow.tasks)
    return job_of(
        str(name),
        works,
        assumed,
        queue=queue,
        user=f"user{workflow.user}" if workflow.user >= 0 else "",
        submitted_s=_submitted_ms(workflow) / 1000.0,
        clock_s=clock_ms / 1000.0,
        started_s=begin_ms / 1000.0,
        finished_s=end_ms / 1000.0,
        tasks=len(workflow.tasks),
        records=workflow.records,
        joined=joined,
    )
