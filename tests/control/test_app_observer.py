"""What is seen from one look to the next: backlogs, starts, the mean task length by Little's law."""

from __future__ import annotations

import pytest

from harness.control.app_observer import AppObserver
from harness.model.resources import Resource
from harness.model.snapshot import QueueView
from harness.yarn import jmx
from harness.yarn.errors import BadAnswer
from harness.yarn.jmx import Containers
from tests.control.rm_model import MemoryPlace, RmModel

FILE = b"<allocations><queue name='a'/><queue name='b'/></allocations>"


def seen(watcher: AppObserver, rm: RmModel, counts: dict[str, Containers] | None) -> QueueView:
    snapshot = watcher.snapshot(
        rm.now_s,
        rm.rest.scheduler(),
        rm.rest.apps(),
        entitlements={"root.a": 2.0},
        min_shares={"root.b": Resource(7, 7)},
        max_shares={},
        counts=counts,
        period_s=1.0,
    )
    assert snapshot.queues["root.b"].min_share == Resource(7, 7)
    return snapshot.queues["root.a"]


@pytest.mark.parametrize("every", [1, 7])
def test_the_mean_task_length_is_found_however_seldom_it_is_asked_for(every: int) -> None:
    rm, watcher = RmModel(MemoryPlace(FILE)), AppObserver()
    rm.submit("x", "root.a")
    rm.start("x")  # the AM
    ended = 0
    running = []
    for second in range(400):
        for container in [c for c in running if rm.now_s - c.began_s >= 12.0]:
            rm.end("x", container)
            running.remove(container)
            ended += 1
        running.append(rm.start("x"))
        counts = {"root.a": Containers(second + 2, ended)} if second % every == 0 else None
        queue = seen(watcher, rm, counts)
        rm.now_s += 1.0
    assert queue.mean_task_s == pytest.approx(12.0, rel=0.1)
    assert queue.weight == 2.0
    # Each second one ends and one starts, so that the queue holds as many as before: the counts tell.
    if every == 1:
        assert queue.last_start_s == rm.now_s - 1.0


def test_one_page_with_impossible_counts_leaves_the_mean_task_length_as_it_is() -> None:
    """Its ends would have outweighed those of thousands of tasks: a mean of 40 ns, for hours."""
    rm, watcher = RmModel(MemoryPlace(FILE)), AppObserver()
    rm.submit("x", "root.a")
    for _ in range(13):
        rm.start("x")
    for second in range(100):
        lie = 10**9 if second == 60 else 0
        queue = seen(watcher, rm, {"root.a": Containers(13 + second + lie, second + lie)})
        assert second < 2 or queue.mean_task_s == pytest.approx(12.0, rel=0.1)
        rm.now_s += 1.0


def test_the_ends_of_short_masters_are_no_tasks_ends() -> None:
    """Uber jobs beside a job of tasks of 12 s; alone, the masters are what a container's end means."""
    rm, watcher = RmModel(MemoryPlace(FILE)), AppObserver()
    ended, given, running, queue = 0, 0, [], None
    for second in range(400):
        if second == 200:
            rm.submit("x", "root.a")
            rm.start("x")  # the AM
            given += 1
        for app, container, length_s in list(running):
            if rm.now_s - container.began_s >= length_s:
                ended += 1
                running.remove((app, container, length_s))
                rm.finish(app) if app != "x" else rm.end(app, container)
        rm.submit(f"uber{second}", "root.a")
        running.append((f"uber{second}", rm.start(f"uber{second}"), 5.0))
        given += 1
        if second >= 200:
            running.append(("x", rm.start("x"), 12.0))
            given += 1
        queue = seen(watcher, rm, {"root.a": Containers(given, ended)})
        if second == 199:
            assert queue.mean_task_s == pytest.approx(5.0, rel=0.1)
        rm.now_s += 1.0
    assert queue is not None
    assert queue.mean_task_s == pytest.approx(12.0, rel=0.1)


def test_a_backlog_begins_and_ends_and_a_start_is_seen_without_counts() -> None:
    rm, watcher = RmModel(MemoryPlace(FILE)), AppObserver()
    rm.submit("x", "root.a")
    assert seen(watcher, rm, None).backlog_since_s is None
    rm.apps["x"].pending = 2
    rm.now_s += 5
    assert seen(watcher, rm, None).backlog_since_s == rm.now_s
    rm.now_s += 5
    rm.start("x")
    queue = seen(watcher, rm, None)
    assert (queue.backlog_since_s, queue.last_start_s) == (rm.now_s - 5, rm.now_s)
    assert queue.oldest_pending_app_s is not None
    rm.apps["x"].pending = 0
    assert seen(watcher, rm, None).backlog_since_s is None


def test_the_jmx_page_is_read_by_queue_and_users_are_passed_over() -> None:
    name = "Hadoop:service=ResourceManager,name=QueueMetrics"
    counts = {"AggregateContainersAllocated": 9, "AggregateContainersReleased": 4, "other": "NaN"}
    beans = [
        {"name": f"{name},q0=root,q1=a,q2=b c", **counts},
        {"name": f"{name},q0=root,user=bob", **counts},
        {"name": "java.lang:type=Memory"},
    ]
    assert jmx.parse({"beans": beans}, "rm") == {"root.a.b c": (9, 4)}
    for nonsense in ([], {}, {"beans": 7}, {"beans": [7]}, {"beans": [{"name": f"{name},q0=root"}]}):
        with pytest.raises(BadAnswer):
            jmx.parse(nonsense, "rm")


def test_what_ended_since_the_last_look_is_counted_once_and_masters_are_no_tasks() -> None:
    rm, watcher = RmModel(MemoryPlace(FILE)), AppObserver()
    for name in ("x", "y"):
        rm.submit(name, "root.a")
        rm.start(name)
    running = rm.start("x")
    first = seen(watcher, rm, {"root.a": Containers(3, 0)})
    assert (first.ended_apps, first.ended_containers) == (None, None)
    rm.now_s += 5
    assert seen(watcher, rm, {"root.a": Containers(3, 0)}).ended_containers == 0
    rm.now_s += 5
    rm.end("x", running)
    rm.finish("x")
    queue = seen(watcher, rm, {"root.a": Containers(3, 2)})
    assert (queue.ended_apps, queue.ended_containers) == (1, 1)
    # Shown again, also after a look that did not ask for those that ended.
    watcher.snapshot(
        rm.now_s, rm.rest.scheduler(), [], entitlements={}, min_shares={}, max_shares={}, counts=None, period_s=1.0
    )
    rm.now_s += 100
    rm.finish("y")
    queue = seen(watcher, rm, {"root.a": Containers(3, 3)})
    assert queue.ended_apps == 1
    rm.now_s += 5
    assert seen(watcher, rm, None).ended_apps == 0


def test_the_minimum_share_in_force_is_the_schedulers_whatever_the_administrator_configured() -> None:
    file = FILE.replace(b"'b'/>", b"'b'><minResources>512 mb, 2 vcores</minResources></queue>")
    rm, watcher = RmModel(MemoryPlace(file)), AppObserver()
    snapshot = watcher.snapshot(
        rm.now_s,
        rm.rest.scheduler(),
        [],
        entitlements={},
        min_shares={"root.b": Resource(7, 7)},
        max_shares={},
        counts=None,
        period_s=1.0,
    )
    queue = snapshot.queues["root.b"]
    assert queue.min_share == Resource(7, 7)
    assert queue.min_share_in_force == Resource(512, 2)
