"""Guards: when one is passed, by the pure core."""

from __future__ import annotations

from typing import Any

from harness.control.guards import Guards, GuardWatch, entitled_shares
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot

HOUR_MS = 3_600_000


def queue(name: str, held_mb: int = 0, **more: Any) -> QueueView:
    return QueueView(name, name.rpartition(".")[0], True, allocated=Resource(held_mb, 1), ended_containers=0, **more)


def look(
    watch: GuardWatch, now_s: float, *queues: QueueView, refused: dict[str, int] | None = None, **more: Any
) -> str:
    root = QueueView("root", None, False)
    snapshot = Snapshot(now_s, Resource(100, 100), {q.name: q for q in (root, *queues)})
    return watch.look(snapshot, refused or {}, more.get("latest_ms", 0), more.get("answer_s", 0.0))


def test_a_queue_below_its_entitlement_waits_for_so_long() -> None:
    watch = GuardWatch(Guards(longest_wait_s=60))
    starved = queue("root.a", 10, backlog_since_s=0.0), queue("root.b", 90)
    assert look(watch, 1000.0, *starved) == "", "what it waited before weights were in force does not count"
    assert look(watch, 1060.0, *starved) == ""
    assert look(watch, 1061.0, *starved) == (
        "root.a has waited 61 s for a container, more than 60 s, and holds 10 % of the cluster; its part is 50 %"
    )
    served = queue("root.a", 10, backlog_since_s=0.0, last_start_s=1050.0), queue("root.b", 90)
    assert look(watch, 1061.0, *served) == "", "its last container is not so long ago"
    rich = queue("root.a", 50, backlog_since_s=0.0), queue("root.b", 50)
    assert look(watch, 2000.0, *rich) == "", "it has its entitlement"
    watch.begin()
    assert look(watch, 2000.0, *starved) == "", "told to go on, it counts anew"


def test_without_counts_of_containers_only_a_queue_that_holds_nothing_is_known_to_wait() -> None:
    def blind(held_mb: int) -> QueueView:
        return QueueView("root.a", "root", True, allocated=Resource(held_mb, 1), backlog_since_s=0.0)

    watch = GuardWatch(Guards(longest_wait_s=60))
    look(watch, 0.0, blind(10), queue("root.b"))
    assert look(watch, 100.0, blind(10), queue("root.b")) == ""
    assert look(watch, 100.0, blind(0), queue("root.b")).startswith("root.a has waited 100 s")


def test_refused_applications_count_once_for_an_hour_from_the_first_look_on() -> None:
    watch = GuardWatch(Guards(refused_per_hour=1))
    a, b = queue("root.a"), queue("root.b")
    assert look(watch, 0.0, a, b, refused={"old1": 5, "old2": 6}, latest_ms=6) == ""
    assert look(watch, 1.0, a, b, refused={"old1": 5, "x": 7}, latest_ms=7) == ""
    assert look(watch, 2.0, a, b, refused={"x": 7}, latest_ms=7) == ""
    late = 7 + HOUR_MS
    assert look(watch, 3.0, a, b, refused={"y": late}, latest_ms=late) == "", "x is an hour ago"
    assert look(watch, 4.0, a, b, refused={"z": late + 1}, latest_ms=late + 1) == (
        "the ResourceManager refused 2 applications within an hour, at last z"
    )


def test_three_slow_answers_in_a_row_and_no_fewer() -> None:
    watch = GuardWatch(Guards(rm_response_s=2))
    slow = [look(watch, 0.0, queue("root.a"), answer_s=s) for s in (3.0, 3.0, 1.0, 3.0, 3.0)]
    assert slow == [""] * 5
    assert watch.answered(3.5) == "the ResourceManager took 3.5 s to answer, 3 times in a row more than 2 s"


def test_no_guard_is_ever_passed_where_none_is_set() -> None:
    watch = GuardWatch(Guards())
    for now_s in (0.0, 1e9):
        starved = queue("root.a", backlog_since_s=0.0), queue("root.b", 100)
        assert look(watch, now_s, *starved, refused={str(i): 9 for i in range(99)}, latest_ms=9, answer_s=1e6) == ""


def test_entitled_shares_go_down_the_tree_or_by_the_leaves_alone() -> None:
    queues = [
        QueueView("root", None, False),
        QueueView("root.g", "root", False, weight=3.0),
        QueueView("root.g.a", "root.g", True, weight=1.0),
        QueueView("root.g.b", "root.g", True, weight=3.0),
        QueueView("root.c", "root", True, weight=1.0),
    ]
    snapshot = Snapshot(0.0, Resource(1, 1), {q.name: q for q in queues})
    assert entitled_shares(snapshot, flat=False) == {"root.g.a": 0.1875, "root.g.b": 0.5625, "root.c": 0.25}
    assert entitled_shares(snapshot, flat=True) == {"root.g.a": 0.2, "root.g.b": 0.6, "root.c": 0.2}
