"""The tournaments of queues: order followed in time against order made anew at each choice, skipped heartbeats."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.model.jobs import Duration, JobSpec, NodeSpec, Stage
from harness.model.resources import Resource
from harness.policies.registry import make_policy
from harness.sim.fair import api
from harness.sim.setup import SimResult, SimSetup
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

CONF = {"yarn.scheduler.fair.preemption": "true", "yarn.scheduler.minimum-allocation-mb": "512"}


def a_setup(seed: int, policy: str, settings: dict[str, Any] | None = None) -> SimSetup:
    """Some 40 leaves on up to three levels, with minima, maxima and asks of several sizes, and more work than room."""
    rng = random.Random(seed)
    rows, leaves = [], []
    for group in range(6):
        inner = []
        for i in range(rng.choice((3, 7, 10))):
            limits = rng.choice(("", "", "<minResources>2048 mb, 2 vcores</minResources>"))
            limits += rng.choice(("", "", "<maxResources>6144 mb, 6 vcores</maxResources>"))
            inner.append(f'<queue name="q{i}">{limits}</queue>')
            leaves.append(f"root.g{group}.q{i}")
        most = rng.choice(("", "<maxResources>20480 mb, 20 vcores</maxResources>"))
        rows.append(f'<queue name="g{group}">{most}{"".join(inner)}</queue>')
    jobs = []
    for i, leaf in enumerate(leaves * 2):
        size = Resource(rng.choice((512, 1024, 1024, 2048)), rng.choice((1, 1, 2)))
        work = Stage("map", rng.randint(5, 40), size, Duration("lognormal", mu=1.5, sigma=0.7))
        jobs.append(JobSpec(f"j{i}", leaf, "mapreduce", Resource(512, 1), (work,), submit_s=rng.uniform(0, 60)))
    return SimSetup(
        nodes=tuple(NodeSpec(f"n{i}", 8192, 8) for i in range(10)),
        allocations=parse_allocations(f"<allocations>{''.join(rows)}</allocations>", source="test"),
        jobs=sorted(jobs, key=lambda job: job.submit_s),
        policy=make_policy(policy, settings or {}),
        entitlements={leaf: rng.choice((1.0, 2.0, 0.3)) for leaf in leaves},
        conf=CONF,
        seed=seed,
        record_tasks=True,
    )


def same(one: SimResult, other: SimResult) -> None:
    assert one.finished
    assert other.finished
    assert one.tasks is not None
    assert other.tasks is not None
    for name, column in one.tasks.items():
        np.testing.assert_array_equal(column, other.tasks[name], err_msg=name)


@pytest.mark.parametrize(
    "seed", [1, 2, pytest.param(3, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("ltrf", {}),
        ("naive-hltrf", {}),
        ("hltrf", {"t_wait": 3.0}),
        ("ltrf", {"round": 40.0, "pseudo": True, "fit": "wait"}),
    ],
)
def test_order_followed_in_time_is_the_order_of_the_moment(
    policy: str, settings: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "FOLLOWED", 10**9)
    made_anew = simulate(a_setup(seed, policy, settings))
    monkeypatch.setattr(api, "FOLLOWED", 0)
    same(made_anew, simulate(a_setup(seed, policy, settings)))


@pytest.mark.parametrize("policy", ["fair", "drf", "hltrf"])
def test_a_heartbeat_that_is_passed_over_would_have_changed_nothing(policy: str) -> None:
    setup = a_setup(5, policy)
    passed = simulate(setup)
    assert passed.heartbeats_skipped > 0
    same(passed, simulate(replace(setup, skip_heartbeats=False)))
