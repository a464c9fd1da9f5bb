"""Sizes and settings at the edge: the engine decides the same however small its arrays are at first, and never fails.

`make test-checked` runs these with a check of every index (``YARNFAIR_CHECKED=1``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.sim.capacity import decide as capacity_decide
from harness.sim.capacity import scheduler as capacity_scheduler
from harness.sim.decide import decider
from harness.sim.fair import decide as fair_decide
from harness.sim.fair import scheduler as fair_scheduler
from harness.sim.simulate import Simulation
from tests.fuzz.engine import random_script, random_setup

SCHEDULERS = ("fair", "capacity")
#: Seeds of each scheduler in a short run; a long one goes on from there.
SHORT, LONG, AT_ONCE = 40, 2000, 20


@contextmanager
def pools_of_one() -> Iterator[None]:
    """Schedulers begin with one slot of everything."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (fair_decide, fair_scheduler, capacity_decide, capacity_scheduler):
            patched.setattr(module, "Scheduler", functools.partial(module.Scheduler, apps=1, containers=1))
        yield


def decided(script: dict[str, Any]) -> Any:
    try:
        return decider(script).run()
    except InputError as error:
        return error.line()


def ran(seed: int, scheduler: str) -> Simulation | None:
    """A run that went to its end; None: it could not be, or was still going on at the time limit."""
    setup = random_setup(seed, scheduler)
    try:
        simulation = Simulation(setup)
        result = simulation.run()
    except InputError:
        return None
    if result.script is not None:
        # What the run asked of the scheduler, asked once more by itself, is decided alike.
        assert len(decider(result.script).run()["assignments"]) == result.assignments, f"seed {seed}"
    return simulation if result.finished else None


def _seeds() -> list[Any]:
    long = [pytest.param(n, marks=pytest.mark.long) for n in range(SHORT, LONG, AT_ONCE)]
    return [*range(0, SHORT, AT_ONCE), *long]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("first", _seeds())
def test_decisions_do_not_depend_on_the_room_at_first(scheduler: str, first: int) -> None:
    assigned = 0
    for seed in range(first, first + AT_ONCE):
        roomy = decided(random_script(seed, scheduler))
        with pools_of_one():
            assert decided(random_script(seed, scheduler)) == roomy, f"seed {seed}"
        assigned += 0 if isinstance(roomy, str) else len(roomy["assignments"])
    assert assigned > 100


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("first", _seeds())
def test_a_run_that_has_ended_has_given_every_slot_back(scheduler: str, first: int) -> None:
    ended = 0
    with pools_of_one():
        for seed in range(first, first + AT_ONCE):
            simulation = ran(seed, scheduler)
            if simulation is None:
                continue
            ended += 1
            g, w, world = simulation.scheduler.S.g[0], simulation.world.g[0], simulation.world
            endless = sum(job.kind == "service" and job.lifetime_s is None for job in simulation.setup.jobs)
            assert endless == 0
            left = (g["n_running"], g["n_asked"], g["alloc_mb"], g["alloc_vcores"], w["live_runs"])
            assert [int(one) for one in left] == [0] * 5, f"seed {seed}"
            assert int(w["redo_left"]) == len(world.redo), f"seed {seed}"
            dead = int((world.inner["dead"] == 1).sum())  # their events are yet to come
            assert len(world.inner) - int(w["inner_left"]) <= dead, f"seed {seed}"
    assert ended > 5
