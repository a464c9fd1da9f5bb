"""A second controller without a lease: its momentary shares do not stay entitlements (seeds 274 and 2000473)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.rivals import SOON
from harness.model.plan import Attributes
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import LocalStore

CAPACITY_FILE = """<?xml version="1.0"?>
<configuration>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>a,g</value></property>
  <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>{a}</value></property>
  <property><name>yarn.scheduler.capacity.root.g.capacity</name><value>{g}</value></property>
</configuration>
"""
FAIR_FILE = """<?xml version="1.0"?>
<allocations>
  <queue name="a"><weight>{a}</weight></queue>
  <queue name="g"><weight>{g}</weight></queue>
</allocations>
"""


def _fair(path: Path) -> FileActuator:
    return FileActuator(LocalStore(path))


def _capacity(path: Path) -> CapacityActuator:
    return CapacityActuator(FileSource(LocalStore(path)))


class _Two:
    """A controller whose file another one writes, too."""

    def __init__(self, path: Path, text: str, make: type | object, own: tuple[str, str]) -> None:
        self.path, self.text = path, text
        self.rival(*own)
        self.actuator = make(path)  # type: ignore[operator]
        assert self.actuator.read() == []

    def rival(self, a: str, g: str) -> None:
        self.path.write_text(self.text.format(a=a, g=g))

    def writes(self, a: float, g: float) -> None:
        self.actuator.write(self.actuator.prepare(Attributes({"root.a": a, "root.g": g})))

    def looks(self) -> list[str]:
        return [drift.line() for drift in self.actuator.read()]

    @property
    def own(self) -> list[object]:
        return [self.actuator.baseline[path][self.actuator.SHARE] for path in ("root.a", "root.g")]


@pytest.fixture
def percent(tmp_path: Path) -> _Two:
    return _Two(tmp_path / "capacity-scheduler.xml", CAPACITY_FILE, _capacity, ("30", "70"))


@pytest.fixture
def weighted(tmp_path: Path) -> _Two:
    return _Two(tmp_path / "capacity-scheduler.xml", CAPACITY_FILE, _capacity, ("3w", "7w"))


def test_a_round_share_among_another_controllers_computed_ones_is_withdrawn(percent: _Two) -> None:
    percent.writes(3.001, 6.999)
    percent.rival("30.1413", "69.8587")
    assert "looks like a share that a controller computed" in percent.looks()[0]
    percent.writes(3.002, 6.998)
    percent.rival("30.15", "69.85")
    assert percent.looks() == [
        "capacity of root.a is 30.15 (taken as its entitlement)",
        "capacity of root.g is 69.85 (taken as its entitlement)",
    ]
    percent.writes(3.003, 6.997)
    percent.rival("30.3163", "69.6837")
    lines = percent.looks()
    assert "capacity of root.a is not taken as its entitlement any more: 30.15 was another controller's; " in lines[1]
    assert "while another controller writes here; yours stays 30 as before" in lines[2]
    assert percent.own == ["30", "70"]
    percent.writes(3.003, 6.997)
    percent.rival("30.3", "69.7")
    assert "while another controller writes here" in percent.looks()[0]
    assert percent.own == ["30", "70"]
    percent.actuator.write(percent.actuator.original())
    assert percent.path.read_text() == CAPACITY_FILE.format(a="30", g="70")


def test_the_fair_schedulers_original_text_comes_back_with_a_withdrawn_entitlement(tmp_path: Path) -> None:
    fair = _Two(tmp_path / "fair-scheduler.xml", FAIR_FILE, _fair, (" 3.0 ", "7"))
    fair.writes(301.125, 698.875)
    fair.rival("302.5625", "697.4375")
    fair.looks()
    fair.writes(301.125, 698.875)
    fair.rival("250", "700")
    assert "taken as its entitlement" in fair.looks()[0]
    fair.rival("303.5625", "696.4375")
    fair.looks()
    assert fair.own == [3.0, 7.0]
    fair.actuator.write(fair.actuator.original())
    assert fair.path.read_text() == FAIR_FILE.format(a=" 3.0 ", g="7")


def test_an_entitlement_taken_before_is_no_silent_way_in_for_another_controllers_shares(weighted: _Two) -> None:
    weighted.writes(3.001, 6.999)
    g = weighted.actuator.managed["root.g"]["capacity"][-1]
    weighted.rival("4w", g)
    assert weighted.looks() == ["capacity of root.a is 4w (taken as its entitlement)"]
    weighted.actuator.rivals.reads += 2 * SOON
    weighted.rival("3.9w", "6.9876w")
    assert any("root.a is 3.9w, which looks like a share" in line for line in weighted.looks())
    assert weighted.own == ["4w", "7w"]


def test_an_unwritten_share_that_changes_beside_written_ones_is_reported(weighted: _Two) -> None:
    weighted.writes(3.001, 6.999)
    g = weighted.actuator.managed["root.g"]["capacity"][-1]
    for share in ("4w", "4.1w"):
        weighted.rival(share, g)
        assert weighted.looks() == [f"capacity of root.a is {share} (taken as its entitlement)"]
    assert weighted.own == ["4.1w", "7w"]


def test_a_person_who_writes_a_round_share_after_an_odd_one_is_heard(percent: _Two) -> None:
    percent.writes(3.001, 6.999)
    percent.rival("33.3456", "66.6544")
    assert "to change it, write a round share" in percent.looks()[0]
    percent.writes(3.001, 6.999)
    percent.rival("33", "67")
    assert percent.looks() == [
        "capacity of root.a is 33 (taken as its entitlement)",
        "capacity of root.g is 67 (taken as its entitlement)",
    ]
    for _ in range(3 * SOON):
        percent.writes(3.001, 6.999)
        percent.looks()
    assert percent.own == ["33", "67"]


def test_with_a_lease_nothing_of_this_applies(percent: _Two) -> None:
    percent.actuator.leased = True
    percent.writes(3.001, 6.999)
    for a, g in (("30.1413", "69.8587"), ("30.1633", "69.8367"), ("35", "65")):
        percent.rival(a, g)
        lines = percent.looks()
    assert lines[0] == "capacity of root.a is 35 (taken as its entitlement)"
