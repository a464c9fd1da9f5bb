"""Hadoop's SLS JSON traces (jobs and nodes) as `JobSpec` and `NodeSpec` values. Does not read Rumen traces.

The format is that of hadoop-sls 3.4.2 ("SLS JSON input file format" and "Simulator input topology file format" of its
manual): a file of JSON objects one after another, one for each job (or rack of nodes). A task's duration is
``duration.ms`` or ``container.end.ms`` - ``container.start.ms``; sizes are ``container.memory-mb`` and
``container.vcores`` (by default hadoop-sls' own). As in SLS' MapReduce AM, reduces are asked for when the last map has
ended. Hosts are not used: asks are for any node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.errors import InputError
from harness.base.files import no_constant, read_text
from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource

#: hadoop-sls 3.4.2's defaults for containers and AMs: yarn.sls.container.* and yarn.sls.am.*
DEFAULT_CONTAINER = Resource(1024, 1)
DEFAULT_AM = Resource(1024, 1)
#: The defaults for a node.
DEFAULT_NODE = Resource(10240, 10)
#: The maximum size of one file; a longer one must be split, or is a mistake.
MAX_BYTES = 1 << 30
MAX_TASKS = 10_000_000
MAX_MS = 1 << 40

_SPACE = " \t\r\n"


def objects(path: Path, text: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (location, object) for each JSON object of a file of concatenated ones; ``text``: its content, if known."""
    if text is None:
        text = read_text(path, MAX_BYTES, hint="check the path, or split the file")
    decoder = json.JSONDecoder(parse_constant=no_constant)
    at = start = found = 0
    line = 1
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at == len(text):
            break
        line += text.count("\n", start, at)
        start, place = at, f"{path}:{line}"
        try:
            value, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                raise InputError(
                    "the trace ends inside the object that begins here", where=place, hint="the file is truncated"
                ) from None
            raise InputError(
                f"not JSON: {error.msg}", where=f"{path}:{error.lineno}", hint="mend the syntax there"
            ) from None
        except (ValueError, RecursionError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InputError(f"not usable JSON: {what}", where=place, hint="mend this object") from None
        if not isinstance(value, dict):
            raise InputError(f"expected an object, found {type(value).__name__}", where=place, hint="see SLS' manual")
        found += 1
        yield place, value
    if not found:
        raise InputError("the trace is empty", where=str(path), hint="give a file with at least one object")


def _whole(item: dict[str, Any], key: str, place: str, *, low: int, high: int, default: int | None = None) -> int:
    """Return a whole number of ``item``; SLS writes numbers as numbers or as strings."""
    if key not in item:
        if default is None:
            raise InputError(f"{key} is missing", where=place, hint=f"add {key}")
        return default
    value = item[key]
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value.strip(), re.ASCII):
        value = int(value) if len(value) <= 24 else high + 1
    if isinstance(value, float) and value == value and abs(value) < 2**53 and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{key} is {str(value)[:40]!r}, not a whole number", where=place, hint=f"mend {key}")
    if not low <= value <= high:
        raise InputError(f"{key} is {str(value)[:40]}, outside {low} .. {high}", where=place, hint=f"mend {key}")
    return value


def _text(item: dict[str, Any], key: str, place: str, default: str | None) -> str:
    value = item.get(key, default)
    if value is None:
        raise InputError(f"{key} is missing", where=place, hint=f"add {key}")
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"{key} is {str(value)[:40]!r}, not a name", where=place, hint=f"mend {key}")
    return str(value)


def _resource(item: dict[str, Any], prefix: str, place: str, default: Resource) -> Resource:
    """Return the size in ``prefix``memory-mb (older traces: ``prefix``memory) and ``prefix``vcores."""
    memory_key = f"{prefix}memory-mb" if f"{prefix}memory-mb" in item else f"{prefix}memory"
    return Resource(
        _whole(item, memory_key, place, low=1, high=1 << 40, default=default.memory_mb),
        _whole(item, f"{prefix}vcores", place, low=1, high=1 << 30, default=default.vcores),
    )


def _stages(tasks: list[Any], place: str) -> tuple[Stage, ...]:
    """Return a job's tasks, grouped by type, priority and size; reduces follow the last map."""
    groups: dict[tuple[int, int, Resource], list[float]] = {}
    total = 0
    for index, task in enumerate(tasks):
        at = f"{place}, job.tasks[{index}]"
        if not isinstance(task, dict):
            raise InputError(f"expected an object, found {type(task).__name__}", where=at, hint="see SLS' manual")
        kind = _text(task, "container.type", at, "map")
        if kind not in ("map", "reduce"):
            raise InputError(f"container.type is {kind[:40]!r}", where=at, hint="map or reduce")
        if "duration.ms" in task or "container.duration.ms" in task:
            key = "duration.ms" if "duration.ms" in task else "container.duration.ms"
            life_ms = _whole(task, key, at, low=0, high=MAX_MS)
        else:
            start_ms = _whole(task, "container.start.ms", at, low=0, high=MAX_MS)
            end_ms = _whole(task, "container.end.ms", at, low=0, high=MAX_MS)
            if end_ms < start_ms:
                raise InputError("container.end.ms is before container.start.ms", where=at, hint="swap them")
            life_ms = end_ms - start_ms
        count = _whole(task, "count", at, low=1, high=MAX_TASKS, default=1)
        total += count
        if total > MAX_TASKS:
            raise InputError(f"more than {MAX_TASKS} tasks in one job", where=at, hint="mend count")
        priority = _whole(task, "container.priority", at, low=0, high=1 << 20, default=20)
        size = _resource(task, "container.", at, DEFAULT_CONTAINER)
        groups.setdefault((0 if kind == "map" else 1, priority, size), []).extend([life_ms / 1000.0] * count)
    names: dict[tuple[int, int, Resource], str] = {}
    for group in groups:
        base = ("map", "reduce")[group[0]]
        taken = sum(1 for name in names.values() if name.startswith(base))
        names[group] = base if not taken else f"{base}{taken + 1}"
    maps = tuple(name for key, name in names.items() if key[0] == 0)
    return tuple(
        Stage(
            name=names[key],
            tasks=len(lives),
            demand=key[2],
            duration=Duration(kind="listed", values_s=tuple(lives)),
            after=maps if key[0] == 1 else (),
            priority=key[1],
        )
        for key, lives in groups.items()
    )


@dataclass(frozen=True, slots=True)
class SlsJob:
    """One object of an SLS trace.

    Attributes
    ----------
    spec : JobSpec
        The job; its id is empty if the trace gives none, or if the object stands for several jobs.
    count : int
        The number of equal jobs that it stands for.
    end_s : float or None
        When it ended, seconds from the trace's zero; None if unknown (missing, 0, before the start).
    names_queue : bool
        Whether the object names a queue.
    """

    spec: JobSpec
    count: int
    end_s: float | None
    names_queue: bool


def is_job(item: dict[str, Any]) -> bool:
    """Return whether an object describes jobs, and not only nodes."""
    return "job.tasks" in item or not ("num.nodes" in item or "rack" in item)


def job_of(item: dict[str, Any], place: str) -> SlsJob:
    """Return the job of one object. Raises InputError with its location for an invalid field."""
    if _text(item, "am.type", place, "mapreduce") not in ("mapreduce", "stream", "dag"):
        raise InputError(f"am.type {str(item['am.type'])[:40]!r}", where=place, hint="mapreduce, stream or dag")
    tasks = item.get("job.tasks")
    if not isinstance(tasks, list) or not tasks:
        raise InputError("job.tasks is missing or empty", where=place, hint="add at least one task")
    count = _whole(item, "job.count", place, low=1, high=1_000_000, default=1)
    name = _text(item, "job.id", place, None) if "job.id" in item and count == 1 else ""
    queue = _text(item, "job.queue.name", place, "default")
    start_ms = _whole(item, "job.start.ms", place, low=0, high=MAX_MS, default=0)
    end_ms = _whole(item, "job.end.ms", place, low=-1, high=MAX_MS, default=0)
    spec = JobSpec(
        id=name,
        queue=queue if queue == "root" or queue.startswith("root.") else f"root.{queue}",
        kind="mapreduce",
        am=_resource(item, "am.", place, DEFAULT_AM),
        stages=_stages(tasks, place),
        user=_text(item, "job.user", place, "default"),
        name=name,
        submit_s=start_ms / 1000.0,
    )
    return SlsJob(spec, count, end_ms / 1000.0 if end_ms > start_ms else None, "job.queue.name" in item)


def load_jobs(path: str | Path) -> list[JobSpec]:
    """Return the jobs of an SLS JSON trace, by start time (seconds from the trace's own zero).

    A queue without ``root.`` is below root. Raises InputError with file and line for a file that is empty, truncated,
    not JSON, or has an invalid field.
    """
    path = Path(path)
    jobs: list[JobSpec] = []
    seen: dict[str, str] = {}
    numbered = 0
    for place, item in objects(path):
        if not is_job(item):
            continue
        if "job.queue.name" not in item:
            raise InputError("job.queue.name is missing", where=place, hint="add job.queue.name")
        found = job_of(item, place)
        if len(jobs) + found.count > 10_000_000:
            raise InputError("more than 10,000,000 jobs in one trace", where=place, hint="mend job.count")
        for _ in range(found.count):
            while not found.spec.id and str(numbered) in seen:
                numbered += 1
            name = found.spec.id or str(numbered)
            numbered += 1
            if name in seen:
                raise InputError(f"job.id {name!r} also appears at {seen[name]}", where=place, hint="rename one")
            seen[name] = place
            jobs.append(replace(found.spec, id=name, name=name))
    if not jobs:
        raise InputError("the trace has no job", where=str(path), hint="is it a file of nodes?")
    jobs.sort(key=lambda job: job.submit_s)
    return jobs


def load_nodes(path: str | Path, text: str | None = None) -> list[NodeSpec]:
    """Return the nodes of an SLS topology file (racks of nodes), or ``num.nodes`` / ``num.racks`` of a trace.

    ``text``: the file's content, if it differs from the file on disk (which was compressed).
    """
    path, default = Path(path), DEFAULT_NODE
    nodes: list[NodeSpec] = []
    seen: set[str] = set()
    for place, item in objects(path, text):
        if "num.nodes" in item:
            racks = _whole(item, "num.racks", place, low=1, high=1_000_000, default=1)
            for index in range(_whole(item, "num.nodes", place, low=1, high=1_000_000)):
                nodes.append(
                    NodeSpec(f"node{index}", default.memory_mb, default.vcores, rack=f"/default-rack{index % racks}")
                )
            continue
        if "nodes" not in item:
            if "job.tasks" in item:
                continue
            raise InputError("neither nodes nor num.nodes", where=place, hint="see SLS' manual")
        rack = "/" + _text(item, "rack", place, "default-rack").lstrip("/")
        if not isinstance(item["nodes"], list):
            raise InputError("nodes is not a list", where=place, hint="see SLS' manual")
        for index, node in enumerate(item["nodes"]):
            at = f"{place}, nodes[{index}]"
            if not isinstance(node, dict):
                raise InputError(f"expected an object, found {type(node).__name__}", where=at, hint="see SLS' manual")
            name = _text(node, "node", at, None)
            if name in seen:
                raise InputError(f"node {name!r} twice", where=at, hint="rename one")
            seen.add(name)
            size = _resource(node, "", at, default)
            nodes.append(NodeSpec(name, size.memory_mb, size.vcores, rack=rack))
    if not nodes:
        raise InputError("the file has no node", where=str(path), hint="is it a file of jobs?")
    return nodes
