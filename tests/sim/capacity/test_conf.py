"""Settings of the Capacity Scheduler: what is read, what Hadoop would refuse, what is not covered and refused."""

from __future__ import annotations

import pytest

from harness.base.errors import InputError
from harness.sim.capacity.conf import properties, read_conf
from harness.sim.decide_capacity import decider

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
        ({"root.b.capacity": "-1"}, "out of range"),
        ({"root.b.capacity": "x"}, "no capacity"),
        ({"root.a.maximum-capacity": "50"}, "below the queue's capacity"),
        ({"root.a.state": "HALTED"}, "no state"),
        ({"root.a.ordering-policy": "priority-utilization"}, "not covered"),
        ({"root.a.capacity": "[memory=1024,yarn.io/gpu=1]", "root.b.capacity": "[memory=1,vcores=1]"}, "not covered"),
        ({"root.a.accessible-node-labels": "gpu"}, "node labels"),
        ({"root.a.auto-create-child-queue.enabled": "true"}, "auto-created"),
        ({"schedule-asynchronously.enable": "true"}, "asynchronous"),
        ({"root.a.max-parallel-apps": "3"}, "max-parallel-apps"),
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


def test_a_setting_that_asks_for_nothing_is_let_pass() -> None:
    read_conf({**TWO, "root.a.accessible-node-labels": "*", "schedule-asynchronously.enable": "false"})


def test_preemption_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="preemption is not covered"):
        decider({"capacity": TWO, "events": [{"t": 0, "preempt": True}]}).run()


def test_queues_that_appear_while_it_runs_are_an_error_of_that_event() -> None:
    change = {"root.queues": "a,b,c", "root.c.capacity": "0"}
    answer = decider({"capacity": TWO, "events": [{"t": 5, "reconfigure": change}]}).run()
    assert [record["t"] for record in answer["errors"]] == [5]
    assert "root.c appears" in answer["errors"][0]["error"]
