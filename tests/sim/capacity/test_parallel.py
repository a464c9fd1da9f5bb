"""Parallel applications: who is held back, whose turn it is when one ends. Hadoop's class answered all of it so."""

from __future__ import annotations

from typing import Any

import pytest

from harness.sim.capacity.conf import read_conf
from harness.sim.decide import decider
from harness.yarn.capacity.convert import convert_allocations
from harness.yarn.fair.parse import parse_allocations

TREE = {
    "root.queues": "g,c",
    "root.g.queues": "a,b",
    **{f"root.{path}.capacity": "1w" for path in ("g", "c", "g.a", "g.b")},
    **{f"root.{path}.user-limit-factor": "-1" for path in ("c", "g.a", "g.b")},
    "maximum-am-resource-percent": "1",
}


def activated(limits: dict[str, str], apps: list[tuple[str, str, str]], more: list[dict[str, Any]]) -> list[Any]:
    """(time, application) of each activation; the applications (name, leaf, user) arrive one a millisecond from 1."""
    events: list[dict[str, Any]] = [{"t": 0, "node": "n0"}]
    events += [{"t": 1 + i, "app": name, "queue": leaf, "user": user} for i, (name, leaf, user) in enumerate(apps)]
    script = {
        "capacity": {**TREE, **limits},
        "nodes": [{"name": "n0", "memory_mb": 65536, "vcores": 64}],
        "events": events + more,
    }
    answer = decider(script).run()
    assert answer["errors"] == answer["rejected"] == []
    return [(record["t"], record["app"]) for record in answer["activations"]]


APPS = [("a1", "a", "u"), ("a2", "a", "v"), ("b1", "b", "u"), ("c1", "c", "w"), ("b2", "b", "v"), ("a3", "a", "w")]


@pytest.mark.parametrize(
    ("limits", "at_once", "after_a1"),
    [
        ({"root.g.a.max-parallel-apps": "1"}, ["a1", "b1", "c1", "b2"], ["a2"]),
        # The parent's place goes to the first who came, in whichever of its leaves; one for each leaf that is looked
        # at, as far as there is room.
        ({"root.g.max-parallel-apps": "2"}, ["a1", "a2", "c1"], ["b1"]),
        ({"root.max-parallel-apps": "3"}, ["a1", "a2", "b1"], ["c1"]),
        # A default is every queue's, the root's too.
        ({"max-parallel-apps": "2"}, ["a1", "a2"], ["b1"]),
        ({"user.max-parallel-apps": "1"}, ["a1", "a2", "c1"], ["b1"]),
        ({"user.u.max-parallel-apps": "1"}, ["a1", "a2", "c1", "b2", "a3"], ["b1"]),
        ({"root.g.a.max-parallel-apps": "0"}, ["b1", "c1", "b2"], []),
    ],
)
def test_as_many_run_as_may_and_the_next_comes_in_when_one_ends(
    limits: dict[str, str], at_once: list[str], after_a1: list[str]
) -> None:
    found = activated(limits, APPS, [{"t": 100, "end": "a1"}])
    assert [app for time, app in found if time < 100] == at_once
    assert [app for time, app in found if time == 100] == after_a1


def test_a_change_lets_in_those_who_have_room_now() -> None:
    change = {"t": 100, "reconfigure": {"root.g.max-parallel-apps": "4"}}
    found = activated({"root.g.max-parallel-apps": "1"}, APPS, [change])
    assert [app for _, app in found] == ["a1", "c1", "a2", "b1", "b2"]


def test_one_that_ends_before_its_turn_leaves_the_queue() -> None:
    more = [{"t": 100, "end": "a2"}, {"t": 200, "end": "a1"}]
    assert activated({"root.g.a.max-parallel-apps": "1"}, APPS, more)[-1] == (200, "a3")


def test_hadoop_forgets_a_user_with_the_end_of_one_that_was_held_back() -> None:
    # u's running application gets nothing, though the cluster is idle and it asks again.
    events: list[dict[str, Any]] = [{"t": 0, "node": "n0"}]
    events += [{"t": 1, "app": name, "queue": "a", "user": "u"} for name in ("a1", "a2")]
    events += [{"t": 1, "ask": "a1", "count": 2, "memory_mb": 1024}, {"t": 2, "end": "a2"}]
    events += [{"t": 1000 * n, "heartbeat": "n0"} for n in (1, 2)]
    events += [{"t": 2500, "ask": "a1", "priority": 2, "memory_mb": 1024}]
    events += [{"t": 3000, "heartbeat": "n0"}]
    script = {
        "capacity": {**TREE, "root.g.a.max-parallel-apps": "1"},
        "nodes": [{"name": "n0", "memory_mb": 65536, "vcores": 64}],
        "events": events,
    }
    answer = decider(script).run()
    assert answer["assignments"] == []


def test_what_convert_makes_of_limits_of_running_applications_is_taken() -> None:
    file = parse_allocations(
        '<allocations><queue name="a"><maxRunningApps>2</maxRunningApps></queue><queue name="b"/>'
        '<user name="u"><maxRunningApps>3</maxRunningApps></user>'
        "<userMaxAppsDefault>5</userMaxAppsDefault><queueMaxAppsDefault>9</queueMaxAppsDefault></allocations>"
    )
    wanted = {
        "root.a.max-parallel-apps": "2",
        "max-parallel-apps": "9",
        "user.max-parallel-apps": "5",
        "user.u.max-parallel-apps": "3",
    }
    made = convert_allocations(file, fixed_queues=True).properties
    assert wanted.items() <= made.items()
    conf = read_conf(made)
    a, b = conf.root.children
    assert (conf.root.parallel, a.parallel, b.parallel) == (9, 2, 9)
    assert [conf.user_parallel.of(user) for user in "uv"] == [3, 5]


def test_what_was_found_for_a_user_stands_after_he_was_forgotten_and_is_known_anew() -> None:
    # u is over his limit and refused; a2, which was held back, ends, and Hadoop forgets him; a3 comes in at the end of
    # a4 and makes him known anew, with nothing in use. The queue's users have not changed for it since: refused.
    events: list[dict[str, Any]] = [{"t": 0, "node": "n0"}]
    events += [{"t": 1, "app": name, "queue": "a", "user": user} for name, user in (("a1", "u"), ("a4", "v"))]
    events += [{"t": 2, "app": name, "queue": "a", "user": "u"} for name in ("a2", "a3")]
    events += [{"t": 3, "ask": "a1", "count": 9, "memory_mb": 4096}, {"t": 3, "ask": "a3", "memory_mb": 1024}]
    events += [{"t": 1000 * n, "heartbeat": "n0"} for n in range(1, 8)]
    events += [{"t": 7100, "end": "a2"}, {"t": 7200, "end": "a4"}]
    events += [{"t": 1000 * n, "heartbeat": "n0"} for n in (8, 9, 10)]
    # An end of a container is a change; what it leaves the user with is less than nothing.
    events += [{"t": 9500, "finish": {"app": "a1", "n": 1}}]
    script = {
        "capacity": {**TREE, "root.g.a.max-parallel-apps": "2", "root.g.a.user-limit-factor": "1"},
        "nodes": [{"name": "n0", "memory_mb": 65536, "vcores": 64}],
        "events": sorted(events, key=lambda event: event["t"]),
    }
    answer = decider(script).run()
    assert [(record["t"], record["app"]) for record in answer["assignments"]] == [
        *((1000 * n, "a1") for n in range(1, 6)),
        (10000, "a1"),
    ]
