"""The engines of programs by name, and every program by name: one package and one line per engine (`ENGINES`)."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping

from harness.base.errors import CallError
from harness.jobs.engines.base import Engine, Program

#: By name: "module:class", imported on demand.
ENGINES: dict[str, str] = {
    "mapreduce": "harness.jobs.mapreduce.engine:MapReduce",
    "spark": "harness.jobs.spark.engine:Spark",
    "hive": "harness.jobs.hive.engine:Hive",
}


@functools.cache
def engine(name: str) -> Engine:
    """Return the engine of a name in `ENGINES`."""
    found: Engine = pkgutil.resolve_name(ENGINES[name])()
    return found


def every() -> Mapping[str, Program]:
    """Return all programs by name, engine by engine."""
    return {name: program for one in map(engine, ENGINES) for name, program in one.programs().items()}


def groups() -> Mapping[str, tuple[str, ...]]:
    """Return names that mean several programs, one after another."""
    return {name: members for one in map(engine, ENGINES) for name, members in one.groups.items()}


def members(name: str) -> tuple[str, ...]:
    """Return the programs of a name: a group's, or else the name itself."""
    return groups().get(name.lower(), (name,))


def engine_of(program: str) -> Engine:
    """Return the engine of a program. Raises CallError for an unknown name, or a name of several programs."""
    for one in map(engine, ENGINES):
        if program.lower() in one.programs():
            return one
    if program.lower() in groups():
        names = ", ".join(members(program))
        raise CallError(f"{program} stands for several programs", hint=f"give one of {names}")
    known = [*engine("mapreduce").programs(), "tpch-q1 ... tpch-q22", "hive-q1 ... hive-q22", "kmeans", "als"]
    raise CallError(f"no application {program[:40]!r}", hint=f"one of {', '.join([*known, *groups()])}")


def find(name: str) -> Program:
    """Return a program by its name. Raises CallError as `engine_of`."""
    return engine_of(name).programs()[name.lower()]
