"""A policy's own keys: compiled they are the policy's own, to the last bit, and so is every decision."""

from __future__ import annotations

import gc
import itertools
import math
import time
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from harness.base.errors import InputError
from harness.bench.run import LOADED, LOADED_CONF, LOADED_LEAVES, ByUsage
from harness.model.jobs import NodeSpec, Stage
from harness.model.plan import Order, Plan
from harness.model.resources import Resource
from harness.policies.base import Policy
from harness.policies.user_file import users_mistakes
from harness.sim import keyed
from harness.sim.simulate import Simulation
from harness.yarn.fair.parse import parse_allocations


class Single(Policy):
    """Everything that a key may be made of: names, settings, shares, what may be None, time, branches."""

    name = "single"

    def plan(self, snapshot: Any, ledger: Any) -> Plan:
        return Plan(order=Order(measure="keys", flat=True))

    def favour(self, name: str) -> float:
        return {"a": 0.5, "c": 0.75}.get(name.rpartition(".")[2], 1.0)

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        waited = 0.0 if queue.backlog_since_s is None else snapshot.time_s - queue.backlog_since_s
        length = 15.0 if queue.mean_task_s is None else queue.mean_task_s
        held = max(queue.allocated.memory_mb - queue.min_share.memory_mb, 0) - abs(3 - queue.pending_containers)
        share = queue.allocated.dominant_share(snapshot.capacity)
        return held * self.favour(queue.name) / queue.weight - min(waited, 3 * length) + counted * 1e-6 + share


class Levels(Single):
    """By levels: what all below a queue hold and have used."""

    def plan(self, snapshot: Any, ledger: Any) -> Plan:
        return Plan(order=Order(measure="keys", flat=False))

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return (queue.allocated.memory_mb + counted / 60) / queue.weight - 1.5 * queue.running_apps


class Together(Single):
    """`keys`: each against what all hold together; one is not named."""

    def keys(self, snapshot: Any, ledger: Any) -> dict[str, float]:
        leaves = [queue for queue in snapshot.queues.values() if queue.leaf]
        whole = sum(queue.allocated.memory_mb for queue in leaves) + 1
        used = ledger.counted()
        return {
            queue.name: queue.allocated.memory_mb / whole + used[queue.name] / 1e9
            for queue in leaves
            if not queue.name.endswith("d")
        }


class Branching(Together):
    def keys(self, snapshot: Any, ledger: Any) -> dict[str, float]:
        return {q.name: max(q.allocated.memory_mb, 4096) for q in snapshot.queues.values() if q.leaf}


class Often(Single):
    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return sum(abs(counted - 1000.0 * n) for n in range(7))


class Rooted(Single):
    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return math.sqrt(queue.allocated.memory_mb)


class Remembering(Single):
    calls = 0

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        Remembering.calls += 1
        return Remembering.calls % 7 + 0.0 * queue.allocated.memory_mb


class Dividing(Single):
    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return 1.0 / queue.allocated.memory_mb


class Tuned(Single):
    bias = 1.0

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return self.bias * queue.allocated.memory_mb


def tuned() -> Tuned:
    """One that is changed after it was made: another one of its kind answers otherwise."""
    made = Tuned()
    made.bias = -1.0
    return made


class CountsCalls(Single):
    """Answers otherwise from its 3,000th call on: after many more equal answers than are compared."""

    def __init__(self, settings: Any = None, exact: Any = None) -> None:
        super().__init__(settings, exact)
        self.calls = 0

    def later(self) -> bool:
        self.calls += 1
        return self.calls > 3000

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return queue.allocated.memory_mb * (-1.0 if self.later() else 1.0)


class CountsInItsClass(CountsCalls):
    total = 0

    def later(self) -> bool:
        type(self).total += 1
        return type(self).total > 3000


_SEEN: list[int] = []


class CountsInItsModule(CountsCalls):
    def later(self) -> bool:
        _SEEN.append(1)
        return len(_SEEN) > 3000


class CountsInADefault(CountsCalls):
    def later(self, seen: list[int] = []) -> bool:  # noqa: B006 - that is the mistake
        seen.append(1)
        return len(seen) > 3000


class KeepsAnIterator(CountsCalls):
    def __init__(self, settings: Any = None, exact: Any = None) -> None:
        super().__init__(settings, exact)
        self.counter = itertools.count()

    def later(self) -> bool:
        return next(self.counter) > 3000


class Hysteresis(Single):
    """What a queue held long ago decides, and a leaf holds that much late in the run only."""

    def __init__(self, settings: Any = None, exact: Any = None) -> None:
        super().__init__(settings, exact)
        self.crowded = False

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        if snapshot.time_s > 60:
            self.crowded = True
        elif snapshot.time_s < 30:
            self.crowded = False
        return queue.allocated.memory_mb * (-1.0 if self.crowded else 1.0)


class LooksAtAClock(Single):
    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return queue.allocated.memory_mb * (-1.0 if time.time() < 0 else 1.0)


class WritesText(Single):
    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return len(f"{queue.allocated.memory_mb}")


class PlansWithMemory(Single):
    """Its plan, made each ten seconds, decides how the keys that follow are meant."""

    replans = True
    turned = False

    def plan(self, snapshot: Any, ledger: Any) -> Plan:
        self.turned = snapshot.time_s > 100
        return super().plan(snapshot, ledger)

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return queue.allocated.memory_mb * (-1.0 if self.turned else 1.0)


class AsksForTypes(Single):
    """`isinstance` of a figure is as in Python."""

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        held = queue.allocated.memory_mb
        return (held if isinstance(held, int) else 0.0) + (counted if isinstance(counted, float) else -1e9) * 1e-6


def load(cases: Any, policy: Policy) -> Any:
    """All features under load; nodes join and leave meanwhile, so that shares in percent change."""
    jobs = []
    for i in range(24):
        size = Resource(1536, 1) if i % 8 == 0 else Resource(1024, 1)
        stage = Stage("map", 60, size, cases.lognormal(2.0))
        jobs.append(
            replace(cases.mapreduce(f"j{i}", "a", 1), queue=LOADED_LEAVES[i % 4], stages=(stage,), submit_s=3.0 * i)
        )
    nodes = [NodeSpec(f"n{i}", 8192, 8) for i in range(8)]
    nodes += [NodeSpec("late", 8192, 8, join_s=40.0), NodeSpec("gone", 8192, 8, leave_s=60.0)]
    made = cases.setup(jobs, policy=policy, allocations=parse_allocations(LOADED), nodes=tuple(nodes))
    return replace(made, conf=LOADED_CONF, time_limit_s=400.0)


def both(cases: Any, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Simulation]:
    """The results in Python and compiled, and how the latter ended."""
    monkeypatch.setattr(keyed, "_COMPARED", 8)
    plain = Simulation(load(cases, policy)).run()
    compiled = Simulation(load(cases, policy))
    compiled.keyed.compile()
    return plain, compiled.run(), compiled


def assert_equal(one: Any, other: Any) -> None:
    assert (one.events, one.heartbeats, one.end_s) == (other.events, other.heartbeats, other.end_s)
    for name, column in one.tasks.items():
        assert np.array_equal(column, other.tasks[name]), name
    for entry in fields(one.samples):
        x, y = getattr(one.samples, entry.name), getattr(other.samples, entry.name)
        if isinstance(x, np.ndarray):
            assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), entry.name


@pytest.mark.parametrize(
    "policy", [Single(), Levels(), Together(), ByUsage(), AsksForTypes()], ids=lambda p: type(p).__name__
)
def test_every_decision_is_the_same(cases: Any, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled, simulation = both(cases, policy, monkeypatch)
    assert compiled.keys_in_python == ""
    assert int(simulation.world.g["keys_at"][0]) != 0  # compiled to the end, also after nodes have come and gone
    assert_equal(plain, compiled)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Often(), "branches on figures too often"),
        (Branching(), "branches on figures"),
        (Rooted(), "TypeError"),
        (Remembering(), "remembers something"),
        (tuned(), "not of the snapshot and the ledger alone"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_cannot_be_compiled_is_asked_for_and_said(
    cases: Any, policy: Policy, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed, "WORTH", 10)
    simulation = Simulation(load(cases, policy))
    result = simulation.run()
    assert why in result.keys_in_python
    assert result.events > 1000
    assert int(simulation.world.g["keys_at"][0]) == 0


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (CountsCalls, "remembers something"),
        (CountsInItsClass, "remembers something"),
        (CountsInItsModule, "remembers something"),
        (CountsInADefault, "remembers something"),
        (KeepsAnIterator, "keeps an iterator"),
        (Hysteresis, "remembers something"),
        (LooksAtAClock, "calls time"),
        (WritesText, "writes a figure as text"),
        (PlansWithMemory, "remembers something"),
    ],
)
def test_who_answers_otherwise_later_is_asked_to_the_end(
    cases: Any, policy: type[Policy], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answers are equal; the run is the one in Python all the same, and says why it took longer."""
    monkeypatch.setattr(keyed, "_COMPARED", 8)

    def run(compiled: bool) -> Any:
        _SEEN.clear()
        CountsInADefault.later.__defaults__[0].clear()  # type: ignore[index]
        CountsInItsClass.total = 0
        # As a policy of a user's is made: with its settings.
        simulation = Simulation(load(cases, policy()))
        if issubclass(policy, PlansWithMemory):
            simulation.on_tick = simulation.replan
            simulation.world.g["next_tick_ms"] = 10_000
        if compiled:
            simulation.keyed.compile()
        return simulation.run()

    plain, compiled = run(False), run(True)
    assert plain.keys_in_python == ""
    assert why in compiled.keys_in_python
    assert_equal(plain, compiled)


def test_a_garbage_collection_during_the_trace_is_not_the_policy_s_doing(
    cases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others register callbacks that read a clock (Hypothesis does), and a collection may begin anywhere."""

    def reads_a_clock(phase: str, info: dict[str, int]) -> None:
        time.perf_counter()

    thresholds = gc.get_threshold()
    gc.callbacks.append(reads_a_clock)
    gc.set_threshold(1)
    try:
        plain, compiled, _ = both(cases, Single(), monkeypatch)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(reads_a_clock)
    assert compiled.keys_in_python == ""
    assert gc.isenabled()
    assert_equal(plain, compiled)


def test_a_division_by_zero_is_the_policy_s_own_mistake(cases: Any) -> None:
    simulation = Simulation(load(cases, Dividing()))
    simulation.keyed.compile()
    with pytest.raises((ZeroDivisionError, InputError)), users_mistakes():
        simulation.run()


class LaterNan(Single):
    """A number for the first 60 s of the run, which the compiled function makes; then NaN."""

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        far = float("inf") if snapshot.time_s > 60 else 0.0
        return queue.allocated.memory_mb + (far - far)


class LaterNone(Single):
    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return None if snapshot.time_s > 60 else queue.allocated.memory_mb


class NoneOfParents(Single):
    """Of leaves alone, as the order compares leaves alone."""

    def key(self, queue: Any, counted: float, snapshot: Any) -> Any:
        return queue.allocated.memory_mb if queue.leaf else None


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("policy", "answer"), [(LaterNan(), "nan"), (LaterNone(), "None")])
def test_a_key_that_is_no_number_ends_the_run_compiled_or_not(
    cases: Any, policy: Policy, answer: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed, "_COMPARED", 8)
    simulation = Simulation(load(cases, policy))
    if compiled:
        simulation.keyed.compile()
    with pytest.raises(InputError, match=rf"key\(\) returns {answer} for root\.[a-z.]+, which is not a number"):
        simulation.run()
    traced = compiled and answer == "nan"
    assert (int(simulation.world.g["keys_at"][0]) != 0) == traced


def test_keys_of_queues_that_are_not_compared_may_be_none(cases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled, simulation = both(cases, NoneOfParents(), monkeypatch)
    assert int(simulation.world.g["keys_at"][0]) != 0
    assert_equal(plain, compiled)
