"""Converts a client's submission to a job of the simulator.

A simulated node runs no programs. The AM's environment variable YARNFAIR_JOB describes what an application does, as a
JSON object with its stages. Without it, the AM's command counts: ``sleep N`` is an AM that never registers and ends
after N seconds, as on a real cluster; ``exit N``, ``true`` and ``false`` end at once; any other command holds the AM's
container until it is killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from harness.base.documents import Seconds, Strict, YamlDocument, validated
from harness.base.errors import InputError
from harness.model.jobs import Duration, JobSpec, Stage
from harness.model.resources import Resource
from harness.sim.serve.simulation import Application

#: The environment variable that describes what an application does.
JOB_VARIABLE = "YARNFAIR_JOB"
_SLEEP = re.compile(r"^\s*(?:exec\s+)?sleep\s+(\d+(?:\.\d+)?)\s*$")
_EXIT = re.compile(r"^\s*(?:exit\s+\d+|true|false)\s*$")


Count = Annotated[int, Field(ge=0, le=1 << 30)]
Megabytes = Annotated[int, Field(ge=1, le=1 << 40)]


class Size(Strict):
    """The size of a container. Omitted values are those of the AM."""

    memory_mb: Megabytes | None = None
    vcores: Count | None = None

    def resource(self, otherwise: Resource) -> Resource:
        """Return the container's resource; omitted values come from `otherwise`."""
        return Resource(
            otherwise.memory_mb if self.memory_mb is None else self.memory_mb,
            otherwise.vcores if self.vcores is None else self.vcores,
        )


class StageGiven(Size):
    """A stage: a number of tasks with one duration, or a list of the tasks' durations, seconds."""

    name: str | None = None
    tasks: Count = 1
    duration_s: Seconds = 0.0
    durations_s: Annotated[list[Seconds], Field(min_length=1)] | None = None
    after: list[str] = Field(default_factory=list)
    slow_start: Annotated[float, Field(ge=0, le=1)] = 1.0

    def stage(self, at: int, am: Resource) -> Stage:
        """Return the stage at position `at`; omitted resources are those of the AM."""
        duration, tasks = Duration("constant", value_s=self.duration_s), self.tasks
        if self.durations_s is not None:
            duration, tasks = Duration("listed", values_s=tuple(self.durations_s)), len(self.durations_s)
        return Stage(
            name=self.name or f"s{at}",
            tasks=tasks,
            demand=self.resource(am),
            duration=duration,
            after=tuple(self.after),
            slow_start=self.slow_start,
            priority=at + 1,
        )


class JobGiven(Strict):
    """The content of the environment variable."""

    keys_page: ClassVar[str] = "docs/how-to/simulated-rm.md"

    kind: Literal["mapreduce", "spark", "dag", "service"] = "dag"
    stages: list[StageGiven] = Field(default_factory=list)
    executors: Count = 0
    executor: Size = Size()
    executor_slots: Annotated[int, Field(ge=1, le=4096)] = 1
    lifetime_s: Seconds | None = None


def _described(text: str, base: JobSpec) -> JobSpec:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})", where=JOB_VARIABLE) from None
    if not isinstance(said, dict):
        raise InputError("is not an object", where=JOB_VARIABLE)
    given = validated(JobGiven, YamlDocument(JOB_VARIABLE, said, {}))
    return replace(
        base,
        kind=given.kind,
        stages=tuple(stage.stage(at, base.am) for at, stage in enumerate(given.stages)),
        executors=given.executors,
        executor_demand=given.executor.resource(base.am),
        executor_slots=given.executor_slots,
        lifetime_s=given.lifetime_s,
    )


def _amount(value: Any, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise InputError(f"{what} is {str(value)[:40]!r}", where="the submission", hint=f"from 0 to {most:g}")
    return int(value)


def _entries(value: Any) -> list[Mapping[str, Any]]:
    """Return a JAXB list: ``{"entry": [...]}``, or one object instead of a list of one."""
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
    """Return a job, and a function that sets the remaining fields of its `Application`.

    Raises InputError for an invalid submission.
    """
    container = body.get("am-container-spec")
    spec = container if isinstance(container, dict) else {}
    size = body.get("resource")
    size = size if isinstance(size, dict) else {}
    am = Resource(
        _amount(size.get("memory", smallest.memory_mb), "memory", 1 << 40),
        _amount(size.get("vCores", smallest.vcores), "vCores", 1 << 30),
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
