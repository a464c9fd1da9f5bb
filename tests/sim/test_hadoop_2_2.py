"""The Fair Scheduler of Hadoop 2.2, as far as it decides otherwise than that of present releases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.model.jobs import JobSpec, Stage
from harness.model.resources import Resource
from harness.sim.simulate import simulate
from harness.yarn.fair.parse import parse_allocations

ONE = Resource(1024, 1)
TWO_QUEUES = (
    '<allocations><queueMaxAMShareDefault>-1</queueMaxAMShareDefault><queue name="a"/><queue name="b"/></allocations>'
)


def setup_of(cases: Any, **more: Any) -> Any:
    """One node of two containers: a's master and its tasks in turn, and from second 5 on b's master that waits."""
    tasks = (Stage("map", 3, ONE, cases.constant(20.0)),)
    jobs = [
        JobSpec("first", "root.a", "mapreduce", ONE, tasks),
        JobSpec("second", "root.b", "mapreduce", ONE, tasks, submit_s=5.0),
    ]
    made = cases.setup(jobs, count=1, allocations=parse_allocations(TWO_QUEUES), **more)
    return replace(made, nodes=(replace(made.nodes[0], memory_mb=2048),))


def test_a_later_queue_waits_for_what_was_promised(cases: Any) -> None:
    """As in AppSchedulable.assignContainer of 2.2, every ask that does not fit reserves the node, whatever its size."""
    present = simulate(setup_of(cases)).jobs["started_s"]
    assert 20.0 <= present[1] < 25.0  # the queue that holds nothing is first
    promised = simulate(setup_of(cases, hadoop="2.2")).jobs["started_s"]
    assert promised[0] == present[0]
    assert 40.0 <= promised[1] < 45.0  # the container that ends at 20 s has been promised to a's second task


def test_it_is_refused_where_it_says_nothing(cases: Any) -> None:
    with pytest.raises(InputError, match="for the Fair Scheduler"):
        simulate(setup_of(cases, hadoop="2.2", scheduler="capacity"))
    with pytest.raises(InputError, match="of present releases"):
        simulate(setup_of(cases, hadoop="2.2", record_script=True))
