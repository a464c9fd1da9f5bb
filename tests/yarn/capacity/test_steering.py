"""A plan as a Capacity Scheduler's properties: minimum shares as capacities, maxima below maxima."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.plan import Plan
from harness.model.resources import Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import queue_tree
from harness.yarn.capacity.steering import Steering, lifted

SETTINGS = {
    "root.queues": "a,g",
    "root.a.capacity": "1w",
    "root.g.capacity": "1w",
    "root.g.maximum-capacity": "50",
    "root.g.queues": "x,y",
    "root.g.x.capacity": "40",
    "root.g.y.capacity": "60",
}
PREFIXED = {PREFIX + key: value for key, value in SETTINGS.items()}
STEERING = Steering(queue_tree(PREFIXED, source="test"), PREFIXED, {}, Resource(1000, 10), "test")


def test_minimum_shares_that_take_all_become_the_capacities() -> None:
    parts = lifted({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 0.7, "b": 0.2, "c": 0.1})
    assert [parts[name] / 3 for name in "abc"] == pytest.approx([0.7, 0.2, 0.1])


def test_a_lift_that_takes_another_below_its_minimum_lifts_that_too() -> None:
    parts = lifted({"a": 1.0, "b": 1.0, "c": 2.0}, {"a": 0.6, "b": 0.2})
    assert [parts[name] / 4 for name in "abc"] == pytest.approx([0.6, 0.2, 0.2])


SHARES = st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-3, 1e3), min_size=1)
LEAST = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 2))


@given(SHARES, LEAST)
@example({"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 5e-324})
def test_each_has_its_least_part_if_there_is_enough_and_nobody_has_nothing(
    weights: dict[str, float], least: dict[str, float]
) -> None:
    least = {name: part for name, part in least.items() if name in weights}
    found = lifted(weights, least)
    assert sum(found.values()) == pytest.approx(sum(weights.values()))
    assert all(weight > 0 or least.get(name) == 0 for name, weight in found.items())
    whole = sum(weights.values())
    if sum(least.values()) <= 0.9:
        assert all(found[name] / whole >= part * (1 - 1e-9) for name, part in least.items())
    untouched = [name for name in weights if name not in least]
    for one, other in pairwise(untouched):
        assert found[one] / found[other] == pytest.approx(weights[one] / weights[other])


def test_a_maximum_share_is_a_part_of_what_the_parent_may_have() -> None:
    plan = Plan(max_shares={"root.a": Resource(250, 2), "root.g.x": Resource(225, 1)})
    assert STEERING.wanted(plan).values == {
        "root.a": {"maximum-capacity": "25"},
        "root.g.x": {"maximum-capacity": "45"},
    }


def test_a_maximum_share_is_not_below_the_capacity_which_hadoop_refuses() -> None:
    plan = Plan(max_shares={"root.g.x": Resource(100, 1)})
    assert STEERING.wanted(plan).values == {"root.g.x": {"maximum-capacity": "40"}}


def test_a_maximum_share_beside_absolute_resources_is_absolute() -> None:
    """Hadoop ignores a percentage there."""
    settings = {f"{PREFIX}root.queues": "a,b"}
    settings |= {f"{PREFIX}root.{name}.capacity": "[memory=400,vcores=4]" for name in "ab"}
    steering = Steering(queue_tree(settings, source="x"), settings, {}, Resource(1000, 10), "x")
    plan = Plan(max_shares={"root.a": Resource(600, 2), "root.b": Resource(100, 1)})
    assert steering.wanted(plan).values == {
        "root.a": {"maximum-capacity": "[memory=600,vcores=4]"},
        "root.b": {"maximum-capacity": "[memory=400,vcores=4]"},
    }


def test_a_minimum_share_is_one_of_what_the_parent_is_guaranteed() -> None:
    weights = {"root.a": 1.0, "root.g": 1.0, "root.g.x": 1.0, "root.g.y": 1.0}
    wanted = STEERING.wanted(Plan(weights=weights, min_shares={"root.g.x": Resource(400, 1)}))
    assert wanted.values["root.g.x"]["capacity"] == "80"
    assert wanted.values["root.a"]["capacity"] == "1w"
    assert wanted.problems == []


ALL = {"root.a": 1.0, "root.g": 1.0, "root.g.x": 1.0, "root.g.y": 1.0}
LIFT = Plan(weights=ALL, min_shares={"root.g": Resource(100, 1), "root.g.x": Resource(100, 1)})


def priorities(settings: dict[str, str]) -> dict[str, str]:
    values = {**PREFIXED, **{PREFIX + key: value for key, value in settings.items()}}
    found = Steering(queue_tree(values, source="test"), values, {}, Resource(1000, 10), "test").wanted(LIFT)
    return {path: texts["priority"] for path, texts in found.values.items() if "priority" in texts}


def test_a_lifted_queue_comes_first_where_queues_are_ordered_by_priority() -> None:
    by_priority = {"root.ordering-policy": "priority-utilization"}
    assert priorities(by_priority) == {"root.g": "1", "root.g.x": "1"}, "a parent does as the one above it"
    assert priorities({**by_priority, "root.a.priority": "4"}) == {"root.g": "5", "root.g.x": "1"}
    assert priorities({**by_priority, "root.g.ordering-policy": "utilization"}) == {"root.g": "1"}


@pytest.mark.parametrize("policy", ["utilization", "", None])
def test_without_that_policy_no_priority_is_written(policy: str | None) -> None:
    assert priorities({} if policy is None else {"root.ordering-policy": policy}) == {}
