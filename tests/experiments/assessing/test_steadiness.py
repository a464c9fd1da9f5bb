"""Halves of a recording compared: what is steady, what changed, and what may be chance."""

from __future__ import annotations

import random

import pytest

from harness.experiments.assessing.steadiness import steadiness


def regular(queue: str, every_s: float, work: float, from_s: float, until_s: float) -> list[tuple[float, str, float]]:
    return [(from_s + every_s * n, queue, work) for n in range(int((until_s - from_s) / every_s))]


def test_a_load_that_goes_on_alike_is_steady() -> None:
    found = steadiness(regular("root.a", 10, 5.0, 0, 1000) + regular("root.b", 50, 30.0, 5, 1005))
    assert found is not None
    assert found.moved < 0.05
    assert not found.changed


def test_a_queue_that_comes_in_the_second_half_is_a_change() -> None:
    found = steadiness(regular("root.a", 10, 5.0, 0, 1000) + regular("root.b", 20, 20.0, 500, 1000))
    assert found is not None
    assert (found.queue, found.before) == ("root.b", 0.0)
    assert found.after == pytest.approx(2 / 3, abs=0.01)
    assert found.changed


def test_twice_the_load_in_the_same_mixture_is_a_change() -> None:
    once = [(at, f"root.{q}", 5.0) for q in "ab" for at, _, _ in regular("", 20, 0.0, 0, 500)]
    twice = [(at, f"root.{q}", 5.0) for q in "ab" for at, _, _ in regular("", 5, 0.0, 500, 1000)]
    found = steadiness(once + twice)
    assert found is not None
    assert found.moved == pytest.approx(0.6, abs=0.01)
    assert found.changed


def test_three_bursts_fall_into_halves_by_chance() -> None:
    """The load `bursts` of docs/figures-assess.md: the work of the halves differs by a quarter."""
    found = steadiness(regular("root.steady", 11, 260.0, 0, 88) + regular("root.bursts", 42, 340.0, 25, 151))
    assert found is not None
    assert found.moved > 0.2
    assert not found.changed


@pytest.mark.parametrize("queues", [2, 10, 50])
def test_applications_that_come_at_any_time_are_seldom_taken_for_a_change(queues: int) -> None:
    seen = 0
    for seed in range(200):
        draw = random.Random(seed)
        found = steadiness((draw.random(), f"root.{draw.randrange(queues)}", draw.expovariate(1.0)) for _ in range(400))
        assert found is not None
        seen += found.changed
    assert seen <= 10


def test_nothing_is_said_of_nothing() -> None:
    assert steadiness([]) is None
    assert steadiness([(5.0, "root.a", 1.0), (5.0, "root.b", 1.0)]) is None
    assert steadiness([(5.0, "root.a", 0.0), (6.0, "root.b", 0.0)]) is None
