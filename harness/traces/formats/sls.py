"""Traces of Hadoop's scheduler load simulator (SLS): jobs with their containers' lives, and sometimes nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.base.errors import InputError
from harness.base.files import reading
from harness.traces import sls
from harness.traces.accounting import NODES, UNREADABLE, Totals
from harness.traces.formats.base import BadRecord, Collector, Reading, TimedJob, bad_line, missing_queues
from harness.traces.formats.compressed import readable_bytes
from harness.traces.formats.concatenated import damaged_objects
from harness.traces.recorded import NodeLine, job_line, nodes_by_size

_SIZE_KEYS = ("container.memory-mb", "container.memory")


class Sls:
    """Reader of SLS traces."""

    name = "SLS"
    versions = "hadoop-sls 2.3 to 3.4, its own JSON (not SYNTH)"
    lacks = "weights of queues; nodes but for num.nodes"
    assumes = "hadoop-sls' own sizes where none are given: containers 1,024 MB, 1 vcore; nodes 10,240 MB, 10 vcores"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file's beginning looks like an SLS trace."""
        # Spark's event logs have keys that contain "job.tasks", so a file whose first event is Spark's is excluded.
        keys = (b'"job.tasks"', b'"num.nodes"', b'"am.type"', b'"job.start.ms"')
        return b'"Event"' not in head and any(key in head for key in keys)

    def read(self, path: Path) -> Reading:
        """Read the trace."""
        collector = Collector()
        broken: list[str] = []
        number = without_queue = without_sizes = 0
        for record in damaged_objects(path, collector, broken):
            item = record.value
            collector.count(Totals(records=1))
            if item is None:
                collector.count(Totals(jobs=1))
                collector.leave_out(UNREADABLE, Totals(records=1, jobs=1), record.where)
                continue
            if not sls.is_job(item):
                # `_nodes` reads these.
                collector.leave_out(NODES, Totals(records=1))
                continue
            try:
                found = sls.job_of(item, record.where)
            except InputError as error:
                collector.count(Totals(jobs=1))
                collector.leave_out(f"{UNREADABLE}: {error.what[:80]}", Totals(records=1, jobs=1), record.where)
                continue
            without_queue += 0 if found.names_queue else found.count
            without_sizes += found.count if _lacks_sizes(item) else 0
            for copy in range(found.count):
                while not found.spec.id and str(number) in collector.jobs:
                    number += 1
                try:
                    job = _timed(found, found.spec.id or str(number), records=0 if copy else 1)
                except BadRecord as error:
                    collector.count(Totals(jobs=1))
                    collector.leave_out(
                        f"{UNREADABLE}: {error}", Totals(records=0 if copy else 1, jobs=1), record.where
                    )
                    continue
                totals = job.totals()
                collector.count(Totals(0, 1, totals.tasks, totals.attempts, totals.container_ms))
                collector.keep(job, record.where)
        assumed = [
            f"{what} ({count:,} jobs)"
            for what, count in (
                ("jobs without a queue are in root.default", without_queue),
                ("containers without a size have hadoop-sls' default of 1,024 MB", without_sizes),
            )
            if count
        ]
        unknown = [*missing_queues(without_queue, len(collector.jobs)), *broken]
        return collector.finish(self.name, nodes=_nodes(path), assumed=assumed, unknown=unknown)


def _timed(found: sls.SlsJob, name: str, *, records: int) -> TimedJob:
    spec = replace(found.spec, id=name, name=name, submit_s=0.0)
    finished_s = None if found.end_s is None else round(found.end_s - found.spec.submit_s, 3)
    try:
        line = job_line(spec, [stage.duration.values_s for stage in spec.stages], finished_s=finished_s)
    except ValidationError as error:
        raise bad_line(error) from None
    return TimedJob(round(1000 * found.spec.submit_s), line, sum(stage.tasks for stage in spec.stages), records)


def _lacks_sizes(item: dict[str, Any]) -> bool:
    return any(not any(key in task for key in _SIZE_KEYS) for task in item.get("job.tasks", []))


def _nodes(path: Path) -> list[NodeLine]:
    try:
        with reading(path):
            text = readable_bytes(path, sls.MAX_BYTES).text()
        return nodes_by_size((node.memory_mb, node.vcores) for node in sls.load_nodes(path, text))
    except InputError:
        return []
