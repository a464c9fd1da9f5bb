"""Queues that come and go between the read of the configuration and the poll, or in the RM's file alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.control.wall import Controller
from tests.control.driven import controlled, kinds
from tests.control.rm_model import CapacityRmModel

SETTINGS: dict[str, Any] = {"mode": "full", "accept": frozenset({"maximum-applications", "user-limit-factor"})}
TOP = {"p": "50", "q": "50"}


def file(below: Mapping[str, str]) -> bytes:
    """A file with the queues ``p`` and ``q``, and these with their capacities below ``p``."""
    lists = {"queues": "p,q", "p.queues": ",".join(below)}
    values = {f"{name}.capacity": text for name, text in TOP.items()}
    values |= {f"p.{name}.capacity": text for name, text in below.items()}
    return b"<configuration>\n%b</configuration>\n" % b"".join(
        b"<property><name>yarn.scheduler.capacity.root.%b</name><value>%b</value></property>\n"
        % (name.encode(), value.encode())
        for name, value in (lists | values).items()
    )


BOTH, ONE, MORE = file({"x": "20", "y": "80"}), file({"x": "100"}), file({"x": "20", "y": "30", "z": "50"})


def busy() -> CapacityRmModel:
    rm = CapacityRmModel(BOTH)
    for app, queue in (("1", "root.p.x"), ("2", "root.p.y"), ("3", "root.q")):
        rm.submit(app, queue)
        rm.start(app, 20 * 1024)
    return rm


def edit(rm: CapacityRmModel, data: bytes) -> None:
    rm.place.data = data
    rm.refresh_queues()


def during_the_look(rm: CapacityRmModel, do: Callable[[], None]) -> None:
    """Do this when the next look asks for the queues, after the configuration was read."""
    answer = rm.rest.scheduler

    def scheduler() -> Any:
        rm.rest.scheduler = answer
        do()
        return answer()

    rm.rest.scheduler = scheduler


def turn(rm: CapacityRmModel, controller: Controller, times: int = 1) -> dict[str, float]:
    for _ in range(times):
        rm.now_s += 5.0
        report = controller.tick()
    assert "app" not in kinds(report)
    return dict(report.counted)


def counted(tmp_path: Path, data: bytes, *, within: bool) -> dict[str, float]:
    """What is counted after an edit before a look, or within it, and three further looks."""
    rm = busy()
    with controlled(rm, tmp_path, **SETTINGS) as controller:
        turn(rm, controller, 20)
        rm.finish("2")
        turn(rm, controller)
        if within:
            during_the_look(rm, lambda: edit(rm, data))
        else:
            edit(rm, data)
        return turn(rm, controller, 4)


@pytest.mark.parametrize("data", [ONE, MORE], ids=["deleted", "added"])
def test_an_edit_within_a_look_counts_as_one_before_it(tmp_path: Path, data: bytes) -> None:
    """With y deleted within a look, p lost four fifths of its account for good, and was owed that; a z that was added
    got another part of p's account than its own."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    within = counted(tmp_path / "two", data, within=True)
    assert within == pytest.approx(counted(tmp_path / "one", data, within=False))
    below = sum(amount for queue, amount in within.items() if queue.startswith("root.p."))
    # x has run for 24 looks since the first, and y for 19.
    assert below == pytest.approx(20 * 1024 * 5 * (24 + 19))


def test_a_queue_that_the_resource_manager_alone_does_not_have_takes_no_account_away(tmp_path: Path) -> None:
    """Of a pair of ResourceManagers one may read another file; after a failover p had lost most of its account."""
    rm = busy()
    with controlled(rm, tmp_path, **SETTINGS) as controller:
        before = turn(rm, controller, 20)
        rm.finish("2")
        there = rm.place.data
        edit(rm, ONE)
        rm.place.data, rm.loads = there, False
        after = turn(rm, controller, 4)
    whole = before["root.p.x"] + before["root.p.y"]
    assert after["root.p.x"] == pytest.approx(whole + 20 * 1024 * 20, rel=0.01)


def test_siblings_have_the_entitlement_of_a_queue_that_is_not_there(tmp_path: Path) -> None:
    rm = busy()
    with controlled(rm, tmp_path, **SETTINGS) as controller:
        turn(rm, controller, 2)
        there = rm.place.data
        edit(rm, ONE)
        rm.place.data, rm.loads = there, False
        rm.now_s += 5.0
        snapshot = controller.tick().snapshot
    assert snapshot is not None
    assert {queue.name: queue.weight for queue in snapshot.leaves()} == pytest.approx(
        {"root.p.x": 50.0, "root.q": 50.0}
    )
