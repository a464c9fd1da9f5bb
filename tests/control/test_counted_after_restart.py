"""Dominant shares after a restart of the ResourceManager, whose nodes come back one after another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.resources import Resource
from harness.yarn.queue_answers import SchedulerStatus
from tests.control.driven import controlled, rm_with_load
from tests.control.rm_model import CAPACITY, silence

DOMINANT = {"resource": "dominant", "half_life": "inf"}


@pytest.mark.parametrize("there", [0.0, 0.01, 0.5])
def test_what_was_used_while_an_rm_was_away_counts_as_a_part_of_the_whole_cluster(tmp_path: Path, there: float) -> None:
    """The first look after a restart shows few nodes. Divided by these, it would count many times, or not at all."""
    rm = rm_with_load()
    shown, part = rm.rest.scheduler, 1.0

    def scheduler() -> SchedulerStatus:
        whole = Resource(int(CAPACITY.memory_mb * part), int(CAPACITY.vcores * part))
        return replace(shown(), capacity=whole)

    rm.rest.scheduler = scheduler
    first, later = [rm.start("x", 10240, 10) for _ in range(4)], [rm.start("y", 10240, 10) for _ in range(4)]
    with controlled(rm, tmp_path, sets=DOMINANT) as controller:
        for _ in range(20):
            report = controller.tick()
            rm.now_s += 5
        rm.down = silence()
        for _ in range(60):
            controller.tick()
            rm.now_s += 5
        rm.down = None
        rm.restart()
        part = there
        controller.tick()
        for back in (first, later):
            # What their nodes bring is in the figures before the last nodes are there.
            rm.node_back(back)
            rm.now_s += 5
            controller.tick()
        part = 1.0
        for _ in range(10):
            report = controller.tick()
            rm.now_s += 5
        seconds = rm.now_s - 5 - 1000.0
        for queue in ("root.a", "root.b"):
            assert report.counted[queue] == pytest.approx(0.4 * seconds, rel=0.1)


def test_a_cluster_that_is_smaller_for_good_counts_as_it_is(tmp_path: Path) -> None:
    """Ten minutes after the restart, nodes that have not come back are lost."""
    rm = rm_with_load()
    shown, part = rm.rest.scheduler, 1.0
    rm.rest.scheduler = lambda: replace(
        shown(), capacity=Resource(int(CAPACITY.memory_mb * part), int(CAPACITY.vcores * part))
    )
    containers = [rm.start("x", 10240, 10)]
    with controlled(rm, tmp_path, sets=DOMINANT) as controller:
        controller.tick()
        rm.now_s += 5
        rm.restart()
        rm.node_back(containers)
        part = 0.5
        for _ in range(125):
            before = controller.tick()
            rm.now_s += 5
        for _ in range(20):
            report = controller.tick()
            rm.now_s += 5
        assert report.counted["root.a"] - before.counted["root.a"] == pytest.approx(20 * 5 * 0.2, rel=0.02)


def test_a_cluster_whose_first_nodes_come_counts_from_then_on(tmp_path: Path) -> None:
    """What was used between a look without nodes and the next one counted as nothing."""
    rm = rm_with_load()
    shown, part = rm.rest.scheduler, 0
    rm.rest.scheduler = lambda: replace(shown(), capacity=CAPACITY if part else Resource(0, 0))
    with controlled(rm, tmp_path, sets=DOMINANT, period_s=30.0, lease_s=90.0) as controller:
        controller.tick()
        part = 1
        rm.start("x", 10240, 10)
        rm.now_s += 30
        assert controller.tick().counted["root.a"] == pytest.approx(3.0, rel=0.01)
