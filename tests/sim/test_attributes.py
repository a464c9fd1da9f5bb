"""What a plan declares stands in the allocation file's values afterwards, and nothing else of it changes."""

from __future__ import annotations

from harness.model.plan import Attributes
from harness.model.queues import ResourceLimit
from harness.model.resources import Resource
from harness.sim.attributes import with_attributes
from harness.yarn.fair.parse import parse_allocations

FILE = parse_allocations(
    b"""<allocations>
<queue name="a"><weight>2</weight><maxRunningApps>3</maxRunningApps></queue>
<queue name="b"><minResources>100 mb, 1 vcores</minResources></queue>
</allocations>""",
    source="fair-scheduler.xml",
)


def test_each_attribute_of_a_queue_is_the_plans_where_it_has_one() -> None:
    made = with_attributes(
        FILE,
        Attributes(
            weights={"root.a": 0.1},
            min_shares={"root.a": Resource(512, 2)},
            max_shares={"root.b": Resource(1024, 4)},
            scheduling_policies={"root.a": "drf", "root.b": "ltrf"},
        ),
    )
    a, b = made.settings["root.a"], made.settings["root.b"]
    assert a.weight == 0.10000000149011612, "as float32"
    assert (a.min_resources, a.max_resources, a.scheduling_policy) == (Resource(512, 2), None, "drf")
    assert a.max_running_apps == 3
    assert (b.min_resources, b.scheduling_policy) == (Resource(100, 1), None), "the stock scheduler has no ltrf"
    assert b.max_resources == ResourceLimit(Resource(1024, 4))


def test_a_plan_that_declares_nothing_changes_nothing() -> None:
    assert with_attributes(FILE, Attributes()) == FILE
