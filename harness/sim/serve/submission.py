"""What a client submits, as a job of the simulator.

A simulated node runs no programs. What an application does is told by the environment variable YARNFAIR_JOB of its
master: a JSON object with its stages. Without it the master's command is looked at: ``sleep N`` is a master that never
registers and ends after N seconds, as on a real cluster; anything else holds its master's container until it is killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.sim.serve.simulation import Application

#: The variable that tells what an application does.
JOB_VARIABLE = "YARNFAIR_JOB"
_SLEEP = re.compile(r"^\s*(?:exec\s+)?sleep\s+(\d+(?:\.\d+)?)\s*$")
_EXIT = re.compile(r"^\s*(?:exit\s+\d+|true|false)\s*$")
_KINDS = ("mapreduce", "spark", "dag", "service")


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{what} is not an object", where="the submission")
    return value


def _number(value: Any, what: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{what} is {str(value)[:40]!r}", where=JOB_VARIABLE, mend=f"from {least:g} to {most:g}")
    return value


def _stage(given: Any, at: int, size: Resource) -> Stage:
    where = f"stage {at}"
    fields = _object(given, where)
    unknown = set(fields) - {"name", "tasks", "memory_mb", "vcores", "duration_s", "durations_s", "after", "slow_start"}
    if unknown:
        raise InputError(f"{where} has an unknown key {sorted(unknown)[0]!r}", where=JOB_VARIABLE)
    durations = fields.get("durations_s")
    if durations is not None:
        if not isinstance(durations, list) or not durations:
            raise InputError(f"durations_s of {where} is not a list", where=JOB_VARIABLE)
        values = tuple(float(_number(value, f"a duration of {where}", 0, 1e9)) for value in durations)
        duration, tasks = Duration("listed", values_s=values), len(values)
    else:
        value_s = float(_number(fields.get("duration_s", 0), f"duration_s of {where}", 0, 1e9))
        duration = Duration("constant", value_s=value_s)
        tasks = int(_number(fields.get("tasks", 1), f"tasks of {where}", 0, 1 << 30))
    after = fields.get("after", [])
    if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
        raise InputError(f"after of {where} is not a list of names", where=JOB_VARIABLE)
    return Stage(
        name=str(fields.get("name", f"s{at}")),
        tasks=tasks,
        demand=Resource(
            int(_number(fields.get("memory_mb", size.memory_mb), f"memory_mb of {where}", 1, 1 << 40)),
            int(_number(fields.get("vcores", size.vcores), f"vcores of {where}", 0, 1 << 30)),
        ),
        duration=duration,
        after=tuple(after),
        slow_start=float(_number(fields.get("slow_start", 1.0), f"slow_start of {where}", 0, 1)),
        priority=at + 1,
    )


def _described(text: str, base: JobSpec) -> JobSpec:
    try:
        fields = _object(json.loads(text), JOB_VARIABLE)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})", where=JOB_VARIABLE) from None
    unknown = set(fields) - {"kind", "stages", "executors", "executor", "executor_slots", "lifetime_s"}
    if unknown:
        raise InputError(f"an unknown key {sorted(unknown)[0]!r}", where=JOB_VARIABLE)
    kind = fields.get("kind", "dag")
    if kind not in _KINDS:
        raise InputError(f"no kind {str(kind)[:40]!r}", where=JOB_VARIABLE, mend=f"one of {', '.join(_KINDS)}")
    stages = fields.get("stages", [])
    if not isinstance(stages, list):
        raise InputError("stages is not a list", where=JOB_VARIABLE)
    executor = _object(fields.get("executor", {}), "executor")
    lifetime = fields.get("lifetime_s")
    return JobSpec(
        id=base.id,
        queue=base.queue,
        kind=kind,
        am=base.am,
        stages=tuple(_stage(stage, at, base.am) for at, stage in enumerate(stages)),
        user=base.user,
        name=base.name,
        executors=int(_number(fields.get("executors", 0), "executors", 0, 1 << 30)),
        executor_demand=Resource(
            int(_number(executor.get("memory_mb", base.am.memory_mb), "memory_mb of the executor", 1, 1 << 40)),
            int(_number(executor.get("vcores", base.am.vcores), "vcores of the executor", 0, 1 << 30)),
        ),
        executor_slots=int(_number(fields.get("executor_slots", 1), "executor_slots", 1, 4096)),
        lifetime_s=None if lifetime is None else float(_number(lifetime, "lifetime_s", 0, 1e9)),
    )


def _entries(value: Any) -> list[Mapping[str, Any]]:
    """JAXB's lists: ``{"entry": [...]}``, or one object instead of a list of one."""
    inner = value.get("entry", []) if isinstance(value, dict) else []
    found = inner if isinstance(inner, list) else [inner]
    return [entry for entry in found if isinstance(entry, dict)]


def _tags(value: Any) -> tuple[str, ...]:
    inner = value.get("tag", []) if isinstance(value, dict) else []
    found = inner if isinstance(inner, list) else [inner]
    return tuple(dict.fromkeys(str(tag).lower() for tag in found if tag))


def job_of(
    body: Mapping[str, Any], *, identity: str, user: str, smallest: Resource
) -> tuple[JobSpec, Callable[[Application], None]]:
    """A job, and what completes the application as the RM knows it. InputError for what cannot be understood."""
    container = body.get("am-container-spec")
    spec = container if isinstance(container, dict) else {}
    size = body.get("resource")
    size = size if isinstance(size, dict) else {}
    am = Resource(
        int(_number(size.get("memory", smallest.memory_mb), "memory", 0, 1 << 40)),
        int(_number(size.get("vCores", smallest.vcores), "vCores", 0, 1 << 30)),
    )
    unmanaged = body.get("unmanaged-AM") is True or str(body.get("unmanaged-AM")).lower() == "true"
    if unmanaged:
        am = Resource(0, 0)
    name = str(body.get("application-name") or "N/A")
    queue = str(body.get("queue") or "root.default")
    base = JobSpec(id=identity, queue=queue, kind="service", am=am, stages=(), user=user, name=name)
    environment = {str(e.get("key")): str(e.get("value", "")) for e in _entries(spec.get("environment"))}
    commands = spec.get("commands")
    command = commands.get("command", "") if isinstance(commands, dict) else ""
    command = command[0] if isinstance(command, list) and command else command
    runs_s: float | None = None
    registers = False
    job = base
    if JOB_VARIABLE in environment:
        job, registers = _described(environment[JOB_VARIABLE], base), True
    elif found := _SLEEP.match(str(command)):
        runs_s = min(float(found.group(1)), 1e9)
    elif _EXIT.match(str(command)):
        runs_s = 0.0

    def complete(app: Application) -> None:
        app.type = str(body.get("application-type") or "YARN")
        app.tags = _tags(body.get("application-tags"))
        app.unmanaged = unmanaged
        app.registers = registers
        app.am_runs_s = runs_s

    return job, complete
