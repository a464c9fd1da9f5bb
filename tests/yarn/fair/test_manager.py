"""The queues that the RM makes: creation, ad hoc queues, reload, removal."""

from __future__ import annotations

import time

from harness.model.queues import AllocationFile, ResourceLimit
from harness.model.resources import UNBOUNDED, Resource
from harness.yarn.fair.manager import QueueManager, queue_tree
from harness.yarn.fair.parse import parse_allocations


def file(inside: str):  # type: ignore[no-untyped-def]
    return parse_allocations(f"<allocations>{inside}</allocations>")


def test_parents_come_before_children_and_siblings_by_name() -> None:
    tree = queue_tree(file('<queue name="b"><queue name="z"/><queue name="y"/></queue><queue name="a"/>'))
    assert [queue.path for queue in tree] == ["root", "root.a", "root.b", "root.b.y", "root.b.z"]
    assert [queue.path for queue in tree.leaves()] == ["root.a", "root.b.y", "root.b.z"]
    assert [queue.path for queue in tree.children("root.b")] == ["root.b.y", "root.b.z"]


def test_preemption_settings_are_inherited() -> None:
    tree = queue_tree(
        file(
            "<defaultMinSharePreemptionTimeout>9</defaultMinSharePreemptionTimeout>"
            '<queue name="g"><fairSharePreemptionThreshold>0.25</fairSharePreemptionThreshold>'
            "<allowPreemptionFrom>false</allowPreemptionFrom>"
            "<maxContainerAllocation>5 mb, 5 vcores</maxContainerAllocation>"
            '<queue name="a"><allowPreemptionFrom>true</allowPreemptionFrom></queue></queue>'
        )
    )
    a = tree["root.g.a"]
    assert (a.min_share_preemption_timeout_ms, a.fair_share_preemption_threshold, a.preemptable) == (9000, 0.25, False)
    assert a.max_container_allocation == Resource(5, 5)
    assert tree["root"].max_container_allocation == UNBOUNDED


def test_the_maximum_is_never_below_the_minimum() -> None:
    tree = queue_tree(
        file(
            '<queue name="a"><minResources>50 mb, 9 vcores</minResources><maxResources>10%</maxResources></queue>'
            '<queue name="b"><maxResources>memory-mb=70</maxResources></queue>'
        )
    )
    assert tree["root.a"].max_share(Resource(1000, 20)) == Resource(100, 9)
    # A maximum without vcores is one of -1 vcores to Hadoop, hence 0.
    assert tree["root.b"].max_share(Resource(1000, 20)) == Resource(70, 0)


def test_policies_that_do_not_fit_leave_queues_out() -> None:
    tree = queue_tree(
        file(
            '<queue name="a"><schedulingPolicy>drf</schedulingPolicy></queue>'
            '<queue name="b"><schedulingPolicy>fifo</schedulingPolicy><queue name="c"/></queue><queue name="d"/>'
        )
    )
    assert list(tree.queues) == ["root", "root.d"]
    assert {refused.path for refused in tree.refused} == {"root.a", "root.b"}


def test_ad_hoc_queues() -> None:
    manager = QueueManager(
        file(
            '<queue name="g" type="parent"><maxChildResources>7 mb, 7 vcores</maxChildResources></queue>'
            '<queue name="a"/>'
        )
    )
    assert manager.leaf("g.new.deep") == "root.g.new.deep"
    assert manager.leaf("g") is None
    assert manager.leaf("a.below") is None  # a leaf stands in the way
    tree = manager.tree()
    assert tree["root.g.new"].max_limit == ResourceLimit(Resource(7, 7))
    assert tree["root.g.new.deep"].max_limit == ResourceLimit(UNBOUNDED)
    assert tree["root.g.new.deep"].dynamic
    assert not tree["root.g"].dynamic
    manager.check(is_empty=lambda path: False)
    assert "root.g.new.deep" in manager.tree()
    manager.check(is_empty=lambda path: True)
    assert list(manager.tree().queues) == ["root", "root.a", "root.g"]


def test_reload() -> None:
    manager = QueueManager(file('<queue name="a"/><queue name="b"/>'))
    manager.load(file('<queue name="a"><weight>5</weight></queue><queue name="c"/>'))
    tree = manager.tree()
    # b is not in the file any more: it stays, as an ad hoc queue, until it is checked and empty.
    assert {queue.path: queue.dynamic for queue in tree if queue.parent} == {
        "root.a": False,
        "root.b": True,
        "root.c": False,
    }
    assert tree["root.a"].weight == 5.0
    manager.check(is_empty=lambda path: True)
    assert "root.b" not in manager.tree()


def test_a_leaf_becomes_a_parent_once_it_is_empty() -> None:
    manager = QueueManager(file('<queue name="a"/>'))
    busy = {"root.a"}
    manager.load(file('<queue name="a"><queue name="x"/></queue>'), is_empty=lambda path: path not in busy)
    assert manager.tree()["root.a"].leaf
    manager.check(is_empty=lambda path: path not in busy)
    assert "root.a.x" not in manager.tree()
    busy.clear()
    manager.check(is_empty=lambda path: path not in busy)
    assert list(manager.tree().queues) == ["root", "root.a", "root.a.x"]
    assert not manager.tree()["root.a"].leaf


def test_policies_of_existing_queues_are_set_as_far_as_they_fit() -> None:
    manager = QueueManager(file('<queue name="a"/>'))
    manager.load(file('<queue name="a"><schedulingPolicy>drf</schedulingPolicy></queue>'))
    assert manager.tree()["root.a"].policy == "fair"
    assert manager.tree().refused
    both = "<defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>"
    manager.load(file(both + '<queue name="a"/>'))
    assert (manager.tree()["root"].policy, manager.tree()["root.a"].policy) == ("drf", "drf")


def test_whether_a_queue_is_configured_does_not_take_longer_with_many_queues() -> None:
    names = tuple(f"root.q{number}" for number in range(100_000))
    file = AllocationFile(configured_leaves=names)
    began_s = time.process_time()
    assert all(file.configured(name) for name in names[-20_000:])
    assert not file.configured("root.other")
    assert time.process_time() - began_s < 2.0, "it was 20 s and more when all names were compared"
