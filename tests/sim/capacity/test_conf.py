"""Settings of the Capacity Scheduler: what is read, what Hadoop would refuse, what is not covered and refused."""

from __future__ import annotations

import pytest

from harness.base.errors import InputError
from harness.sim.capacity.api import Scheduler
from harness.sim.capacity.conf import properties, read_conf
from harness.sim.decide import decider

TWO = {"root.queues": "a,b", "root.a.capacity": "60", "root.b.capacity": "40"}


def test_values_are_read_as_hadoop_has_them() -> None:
    conf = read_conf(
        {
            **TWO,
            "root.a.maximum-capacity": "80",
            "root.a.ordering-policy": "fair",
            "user-limit-factor": "2",
            "root.b.user-limit-factor": "-1",
            "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        }
    )
    a, b = conf.root.children
    assert (round(a.capacity, 6), round(a.maximum, 6), a.policy) == (0.6, 0.8, "fair")
    assert (a.user_limit_factor, b.user_limit_factor) == (2.0, -1.0)
    assert conf.dominant


def test_xml_and_objects_say_the_same() -> None:
    rows = "".join(
        f"<property><name>yarn.scheduler.capacity.{key}</name><value>{value}</value></property>"
        for key, value in TWO.items()
    )
    assert properties(f"<configuration>{rows}</configuration>") == properties(TWO) == TWO


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"root.b.capacity": "50"}, "sum to 110 per cent"),
        ({"root.b.capacity": "1w"}, "mixes kinds"),
        ({"root.a.capacity": "2w", "root.b.capacity": "[memory=0]"}, "mixes kinds"),
        ({"root.b.capacity": "-1"}, "out of range"),
        ({"root.b.capacity": "x"}, "no capacity"),
        ({"root.a.capacity": "-2w"}, "Illegal weight"),
        ({"root.a.state": "HALTED"}, "no state"),
        ({"root.a.ordering-policy": "priority-utilization"}, "not covered"),
        ({"root.a.capacity": "[memory=1024,yarn.io/gpu=1]", "root.b.capacity": "[memory=1,vcores=1]"}, "not covered"),
        ({"root.a.accessible-node-labels": "gpu"}, "node labels"),
        ({"root.a.auto-create-child-queue.enabled": "true"}, "auto-created"),
        ({"schedule-asynchronously.enable": "true"}, "asynchronous"),
        ({"root.a.max-parallel-apps": "0x3"}, "not an integer"),
        ({"root.a.maximum-allocation": "memory-mb=1024,vcores=1"}, "as a vector"),
        ({"legacy-queue-mode.enabled": "false"}, "queue mode"),
        ({"root.a.user-settings.u.weight": "2"}, "weights of users"),
        ({"resource-calculator": "my.Calculator"}, "not covered"),
        ({"root.queues": ""}, "no queues"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_conf({**TWO, **change})
    assert words in caught.value.line()


def test_a_queues_largest_container_is_its_own_its_parents_or_the_schedulers() -> None:
    own = {"root.maximum-allocation-mb": "4096", "root.a.maximum-allocation-vcores": "2"}
    conf = read_conf({**TWO, **own}, largest=(8192, 4))
    assert [queue.largest for queue in conf.queues()] == [(4096, 4), (4096, 2), (4096, 4)]
    with pytest.raises(InputError, match="8193 is above yarn"):
        read_conf({**TWO, "root.a.maximum-allocation-mb": "8193"}, largest=(8192, 4))


def test_a_leafs_largest_container_is_raised_but_never_lowered() -> None:
    scheduler = Scheduler({}, {**TWO, "root.a.maximum-allocation-mb": "4096"}, [])
    scheduler.reconfigure({**TWO, "root.a.maximum-allocation-mb": "6144"}, 0)
    assert scheduler.largest_of("root.a") == (6144, 4)
    with pytest.raises(InputError, match="becomes smaller"):
        scheduler.reconfigure({**TWO, "root.a.maximum-allocation-mb": "4096"}, 0)
    assert scheduler.largest_of("root.a") == (6144, 4)
    assert scheduler.largest_of("root.b") is None, "it has none of its own"


def test_a_setting_that_asks_for_nothing_is_let_pass() -> None:
    more = read_conf({**TWO, "root.a.accessible-node-labels": "*", "schedule-asynchronously.enable": "false"})
    assert list(more.queues()) == list(read_conf(TWO).queues())


def test_queues_that_appear_while_it_runs_are_an_error_of_that_event() -> None:
    change = {"root.queues": "a,b,c", "root.c.capacity": "0"}
    answer = decider({"capacity": TWO, "events": [{"t": 5, "reconfigure": change}]}).run()
    assert [record["t"] for record in answer["errors"]] == [5]
    assert "root.c appears" in answer["errors"][0]["error"]


WEIGHTS = {"root.queues": "a,b", "root.a.capacity": "1w", "root.b.capacity": "1w"}


#: A change of root.a -> effective memory of root.a, its most, effective memory of root.b after it, and after another
#: change that does not touch these. Hadoop 3.4.2's class answered so, on a node of 10 GiB.
@pytest.mark.parametrize(
    ("given", "key", "value", "first", "then"),
    [
        (TWO, "maximum-capacity", "50", (6144, 5120, 4096), (6144, 5120, 4096)),
        (TWO, "maximum-capacity", "101", (6144, 10342, 4096), (6144, 10342, 4096)),
        (TWO, "maximum-capacity", "-1", (6144, 10240, 4096), (6144, 10240, 4096)),
        (TWO, "maximum-capacity", "-5", (6144, 0, 4096), (6144, 0, 4096)),
        (TWO, "maximum-capacity", "NaN", (6144, 0, 4096), (6144, 0, 4096)),
        (TWO, "capacity", "NaN", (0, 10240, 4096), (0, 10240, 4096)),
        (WEIGHTS, "capacity", "NaNw", (5120, 10240, 5120), (5120, 10240, 5120)),
        (WEIGHTS, "capacity", "-1w", (5120, 10240, 10240), (0, 10240, 10240)),
        (WEIGHTS, "capacity", "0w", (5120, 10240, 10240), (0, 10240, 10240)),
    ],
)
def test_what_nobody_means_is_taken_as_hadoop_takes_it(
    given: dict[str, str], key: str, value: str, first: tuple[int, ...], then: tuple[int, ...]
) -> None:
    events: list[dict[str, object]] = [
        {"t": 5, "node": "n0"},
        {"t": 10, "reconfigure": {f"root.a.{key}": value}},
        {"t": 11, "shares": True},
        {"t": 12, "reconfigure": {"root.a.user-limit-factor": "1"}},
        {"t": 13, "shares": True},
    ]
    nodes = [{"name": "n0", "memory_mb": 10240, "vcores": 10}]
    answer = decider({"capacity": given, "nodes": nodes, "events": events}).run()
    assert answer["errors"] == []
    found = {record["t"]: record["queues"] for record in answer["shares"]}
    for time, wanted in ((11, first), (13, then)):
        a, b = found[time]["root.a"], found[time]["root.b"]
        assert (a["eff_mb"], a["eff_max_mb"], b["eff_mb"]) == wanted


@pytest.mark.parametrize(("weight", "parts"), [("NaNw", (0, 0)), ("-1w", (0, 10240))])
def test_a_weight_that_is_none_from_the_start(weight: str, parts: tuple[int, int]) -> None:
    events = [{"t": 5, "node": "n0"}, {"t": 6, "shares": True}]
    nodes = [{"name": "n0", "memory_mb": 10240, "vcores": 10}]
    given = {**WEIGHTS, "root.a.capacity": weight}
    queues = decider({"capacity": given, "nodes": nodes, "events": events}).run()["shares"][0]["queues"]
    assert (queues["root.a"]["eff_mb"], queues["root.b"]["eff_mb"]) == parts
