"""Small simulated runs that the tests share, as the fixture ``cases``."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.policies.base import Policy
from harness.policies.registry import make_policy
from harness.sim.setup import SimResult, SimSetup
from harness.yarn.fair.parse import parse_allocations

#: Whether numba is the version that is pinned. With another, of requirements-lowest.txt, kernels are not linked
#: (harness.sim.whole), and what is tested of that has no meaning.
PINNED_NUMBA = f"\nnumba=={numba.__version__} " in (Path(__file__).parents[2] / "requirements.txt").read_text()
collect_ignore = [] if PINNED_NUMBA else ["test_whole.py"]


@pytest.fixture(scope="session")
def cases() -> ModuleType:
    return sys.modules[__name__]


FOUR = '<allocations><queue name="a"/><queue name="b"/><queue name="c"/><queue name="d"/></allocations>'
ONE = Resource(1024, 1)


def constant(seconds: float) -> Duration:
    return Duration("constant", value_s=seconds)


def lognormal(mu: float, sigma: float = 0.5) -> Duration:
    return Duration("lognormal", mu=mu, sigma=sigma)


def nodes(count: int, memory_mb: int = 4096, vcores: int = 8, **more: Any) -> tuple[NodeSpec, ...]:
    return tuple(NodeSpec(f"n{i}", memory_mb, vcores, **more) for i in range(count))


def mapreduce(name: str, queue: str, maps: int, reduces: int = 0, *, seconds: float = 10.0, **more: Any) -> JobSpec:
    stages = [Stage("map", maps, ONE, constant(seconds))]
    if reduces:
        stages.append(Stage("reduce", reduces, ONE, constant(seconds), after=("map",), priority=10))
    return JobSpec(id=name, queue=f"root.{queue}", kind="mapreduce", am=ONE, stages=tuple(stages), **more)


def setup(jobs: Any, *, count: int = 10, policy: str | Policy | None = None, **more: Any) -> SimSetup:
    made = SimSetup(
        nodes=nodes(count),
        allocations=parse_allocations(FOUR),
        jobs=jobs,
        policy=make_policy(policy, {}) if isinstance(policy, str) else policy,
        record_tasks=True,
    )
    return replace(made, **more)


def mixed(**more: Any) -> SimSetup:
    """All kinds of applications, nodes of two speeds that come and go."""
    jobs = []
    for i in range(10):
        stages = (
            Stage("map", 60, ONE, lognormal(2.9)),
            Stage("reduce", 10, ONE, Duration("exponential", value_s=20), after=("map",), slow_start=0.05, priority=10),
        )
        jobs.append(JobSpec(f"m{i}", "root.a", "mapreduce", ONE, stages, submit_s=i * 9.0))
    for i in range(5):
        stages = (
            Stage("x", 50, ONE, Duration("uniform", low_s=1, high_s=6)),
            Stage("y", 30, ONE, constant(3), after=("x",)),
            Stage("z", 10, ONE, lognormal(1), after=("y",)),
        )
        spark = JobSpec(f"s{i}", "root.b", "spark", ONE, stages, executors=8, executor_demand=Resource(2048, 2))
        jobs.append(replace(spark, executor_slots=2, after_job=f"s{i - 1}" if i else None, think_s=20))
    for i in range(5):
        stages = (
            Stage("a", 20, ONE, lognormal(2)),
            Stage("b", 15, ONE, lognormal(2)),
            Stage("c", 10, ONE, constant(9), after=("a", "b")),
            Stage("e", 1, ONE, constant(2), after=("c",)),
        )
        jobs.append(JobSpec(f"d{i}", "root.c", "dag", ONE, stages, submit_s=i * 15.0))
    held = (Stage("w", 12, ONE, Duration()),)
    jobs.append(JobSpec("service", "root.d", "service", ONE, held, lifetime_s=200, submit_s=5))
    jobs.append(JobSpec("endless", "root.d", "service", Resource(), held, submit_s=5))
    machines = tuple(
        NodeSpec(
            f"n{i}",
            4096,
            8,
            speed=1.0 if i % 3 else 0.5,
            join_s=0 if i < 25 else 30.0,
            leave_s=None if i % 10 else 100.0 + i,
        )
        for i in range(30)
    )
    return setup(jobs, nodes=machines, **more)


TASKS_OF_MIXED = 10 * 70 + 5 * 90 + 5 * 46


def digest(result: SimResult) -> str:
    """Of all that a result says, but the wall clock and the counts of heartbeats."""
    found = hashlib.sha256()
    for name, column in result.jobs.items():
        found.update(name.encode() + (repr(column).encode() if isinstance(column, list) else column.tobytes()))
    for name in result.samples.__dataclass_fields__:
        value = getattr(result.samples, name)
        found.update(repr(value).encode() if isinstance(value, tuple) else np.ascontiguousarray(value).tobytes())
    for name, column in (result.tasks or {}).items():
        found.update(name.encode() + column.tobytes())
    rest = (result.makespan_s, result.events, result.max_wait_s, result.max_wait_at_s, result.mean_between_ends_s)
    found.update(repr((rest, result.writes, result.decisions)).encode())
    return found.hexdigest()
