"""Passing over what changes nothing gives the same results as letting each heartbeat and each update happen.

Random runs on both schedulers, some of them with long tasks and long idle times, in which most of the time is passed
over. ``make test-long`` compares 1,000 of each scheduler.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.base.errors import InputError
from harness.control.virtual import simulate_outside
from harness.model.jobs import Duration, JobSpec
from harness.policies import make_policy
from harness.sim.setup import SimSetup
from harness.sim.simulate import Simulation, simulate
from tests.fuzz.engine import random_setup
from tests.sim.conftest import digest

SCHEDULERS = ("fair", "capacity")
#: Seeds of each scheduler in a short run; a long one goes on from there.
SHORT, LONG, AT_ONCE = 40, 1000, 20
_POLICIES = ("fair", "ltrf", "hltrf")


def slower(duration: Duration, factor: float) -> Duration:
    return replace(duration, value_s=duration.value_s * factor)


def sparse(seed: int, scheduler: str) -> SimSetup:
    """A random run with longer tasks and longer times between them, sampled and controlled as often as it may be."""
    rng = random.Random(f"sparse {scheduler} {seed}")
    setup = random_setup(seed, scheduler)
    apart, long = rng.choice((1, 20, 1000)), rng.choice((1, 1, 60))

    def spread(job: JobSpec) -> JobSpec:
        stages = tuple(replace(stage, duration=slower(stage.duration, long)) for stage in job.stages)
        return replace(job, submit_s=job.submit_s * apart, stages=stages)

    outside = rng.random() < 0.3
    policy = rng.choice(_POLICIES) if outside or scheduler == "fair" else "capacity"
    return replace(
        setup,
        jobs=[spread(job) for job in setup.jobs],
        policy=make_policy(policy, {}),
        mode="outside" if outside else "inside",
        period_s=rng.choice((1.0, 5.0)),
        sample_s=rng.choice((1.0, 7.3, 100.0)),
        time_limit_s=10_000.0,
        record_script=False,
    )


def _seeds() -> list[object]:
    long = [pytest.param(n, marks=pytest.mark.long) for n in range(SHORT, LONG, AT_ONCE)]
    return [*range(0, SHORT, AT_ONCE), *long]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("first", _seeds())
def test_it_makes_no_difference(scheduler: str, first: int) -> None:
    compared, leapt = 0, 0
    for seed in range(first, first + AT_ONCE):
        setup = sparse(seed, scheduler)
        play = simulate_outside if setup.mode == "outside" else simulate
        try:
            passed = play(setup)
        except InputError:
            continue
        if not passed.finished:
            # One that stands still is noticed at a look, and looks follow what happens.
            continue
        every = play(replace(setup, skip_heartbeats=False))
        assert digest(passed) == digest(every), f"seed {seed}"
        assert passed.heartbeats + passed.heartbeats_skipped == every.heartbeats, f"seed {seed}"
        assert (passed.updates, passed.ticks) == (every.updates, every.ticks), f"seed {seed}"
        compared += 1
        leapt += passed.heartbeats_skipped
    assert compared > 5
    assert leapt > 1_000


def test_an_idle_year_takes_few_steps() -> None:
    """Three jobs in a year: neither heartbeats, nor updates, nor looks whether it stands still are made one by one."""
    setup = sparse(3, "fair")
    jobs = [replace(job, submit_s=i * 1e7, after_job=None) for i, job in enumerate(setup.jobs[:3])]
    # With preemption each update may look at how long applications have waited.
    setup = replace(setup, conf={})
    year = replace(setup, jobs=jobs, mode="inside", policy=make_policy("fair", {}), sample_s=1e6, time_limit_s=4e7)
    simulation = Simulation(year)
    result = simulation.run()
    assert result.finished
    assert result.updates > 3e7
    g = simulation.world.g
    one_by_one = int(g["skipped"][0]) + int(g["heartbeats"][0])
    assert one_by_one < 1e5 < 1e7 < int(g["leapt"][0])
