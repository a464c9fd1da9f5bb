"""Where applications are placed in odd files, as Hadoop 3.4.2 places them (tests/oracle/test_placement.py asks it)."""

from __future__ import annotations

import pytest

from harness.yarn.capacity.convert import convert_allocations, render_properties
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.manager import QueueManager
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.placement import CapacityPlacing, FairPlacing, Submission

#: A queue below root that is called root.
ROOT_BELOW_ROOT = (
    "<allocations><queue name='root'><queue name='root'><queue name='prod'><queue name='dev'/></queue></queue>"
    "<queue name='x'/></queue></allocations>"
)


@pytest.mark.parametrize(
    ("queue", "placed"),
    [("default", "root.alice"), ("a", "root.a"), ("b", "root.b"), ("root.new", "root.new"), ("a.b", None)],
)
def test_a_policy_without_rules_is_that_of_yarn_site(queue: str, placed: str | None) -> None:
    file = parse_allocations(
        "<allocations><queue name='a'/><queuePlacementPolicy> </queuePlacementPolicy></allocations>"
    )
    assert FairPlacing(QueueManager(file)).place(Submission(queue, "alice", ("staff",))).queue == placed


@pytest.mark.parametrize(
    ("queue", "placed"),
    [
        ("default", "root.alice"),
        ("root.a", "root.a"),
        ("root.root.prod.dev", "root.root.prod.dev"),
        ("root.x", "root.x"),
        ("x", "root.x"),
        ("root.new", "root.new"),
    ],
)
def test_root_is_the_root_queue_also_beside_another_of_its_name(queue: str, placed: str) -> None:
    file = parse_allocations(ROOT_BELOW_ROOT)
    assert FairPlacing(QueueManager(file)).place(Submission(queue, "alice", ("staff",))).queue == placed
    document = render_properties(convert_allocations(file).properties).encode()
    values = {name: text for name, text in parse_configuration(document, source="x").values.items() if text}
    assert CapacityPlacing(Settings(values)).place(Submission(queue, "alice", ("staff",))).queue == placed
