"""The scheduler's file behind a symbolic link that the administrator switches to another folder, as releases are."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.giveback import give_back
from harness.control.lease import HeldByAnother, lease_of
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import LocalStore
from tests.control.driven import actuator_of, controlled, kinds
from tests.control.rm_model import CapacityRmModel, RmModel

FAIR = b"""<allocations>
  <queue name="a"><weight>2.0</weight></queue>
  <queue name="b"/>
</allocations>
"""
NAME = b"<property><name>yarn.scheduler.capacity.root.%b</name><value>%b</value></property>\n"
CAPACITY = b"".join(
    [
        b"<configuration>\n",
        *(NAME % one for one in ((b"queues", b"a,b"), (b"a.capacity", b"60"), (b"b.capacity", b"40.0"))),
        b"</configuration>\n",
    ]
)


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A file ``fs.xml`` in ``current``, which leads to the folder ``one``."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "fs.xml").write_bytes(FAIR)
    (tmp_path / "current").symlink_to("one")
    return tmp_path / "current" / "fs.xml"


def switch(link: Path, to: str) -> None:
    new = link.parent.with_name("new")
    new.symlink_to(to)
    os.replace(new, link.parent)


SETTINGS: dict[str, Any] = {"mode": "full", "accept": frozenset({"maximum-applications", "user-limit-factor"})}


class Linked(CapacityRmModel):
    """A Capacity Scheduler that reads the file to which a link leads."""

    def __init__(self, link: Path) -> None:
        self.link = link
        super().__init__(link.read_bytes())
        self.source = FileSource(LocalStore(link))

    def data(self) -> bytes:
        return self.link.read_bytes()


def rm_at(link: Path, *, capacity: bool = False) -> RmModel:
    rm = Linked(link) if capacity else RmModel(LocalStore(link))  # type: ignore[arg-type]
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    rm.start("x", 40 * 1024)
    return rm


def test_the_lease_is_where_the_link_leads_now(link: Path) -> None:
    """It stayed beside the former file, so that a second controller wrote the new one, too."""
    at_s = 0.0
    holder = lease_of(LocalStore(link), "one", 30.0, lambda: at_s)
    holder.hold()
    switch(link, "two")
    holder.keep({})
    with pytest.raises(HeldByAnother):
        lease_of(LocalStore(link), "another", 30.0, lambda: at_s).hold()
    at_s = 11.0
    switch(link, "one")
    holder.hold()
    with pytest.raises(HeldByAnother):
        lease_of(LocalStore(link), "another", 30.0, lambda: at_s).hold()


def test_a_file_that_a_link_no_longer_leads_to_has_the_administrators_weights_again(link: Path, tmp_path: Path) -> None:
    """The controller's weights stayed there for ever, and were in force after a rollback."""
    rm = rm_at(link)
    with controlled(rm, tmp_path, mode="full", lease_s=30.0) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
        assert (tmp_path / "one" / "fs.xml").read_bytes() != FAIR
        (tmp_path / "two" / "fs.xml").write_bytes(FAIR.replace(b"2.0", b"4"))
        switch(link, "two")
        rm.now_s += 5.0
        report = controller.tick()
        assert "note" in kinds(report)
        [text] = [alarm.text for alarm in report.alarms if "leads to another file" in alarm.text]
        assert text.endswith("has the administrator's own weights and limits again")
        assert (tmp_path / "one" / "fs.xml").read_bytes() == FAIR
        assert sorted(os.listdir(tmp_path / "one")) == ["fs.xml"]
        assert (tmp_path / "two" / "fs.xml").read_bytes() != FAIR.replace(b"2.0", b"4")
        assert ".fs.xml.lease" in os.listdir(tmp_path / "two")
        assert controller.actuator.configured_weights()["root.a"] == 4.0
        rm.now_s += 5.0
        assert not [alarm for alarm in controller.tick().alarms if "leads to another" in alarm.text]
        assert "in force" in controller.stop("release")
    assert (tmp_path / "two" / "fs.xml").read_bytes() == FAIR.replace(b"2.0", b"4")


def test_a_link_that_is_switched_just_before_the_release_leaves_nothing_behind(link: Path, tmp_path: Path) -> None:
    rm = rm_at(link)
    with controlled(rm, tmp_path, mode="full", lease_s=30.0) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
        assert (tmp_path / "one" / "fs.xml").read_bytes() != FAIR
        switch(link, "two")
        assert "has the administrator's own weights and limits again" in controller.stop("release")
    for folder in ("one", "two"):
        assert (tmp_path / folder / "fs.xml").read_bytes() == FAIR
        assert os.listdir(tmp_path / folder) == ["fs.xml"]


def test_a_file_that_somebody_has_edited_since_is_left_alone_and_told(link: Path, tmp_path: Path) -> None:
    rm = rm_at(link)
    with controlled(rm, tmp_path, mode="full", lease_s=30.0) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
        edited = FAIR.replace(b"2.0", b"7")
        (tmp_path / "one" / "fs.xml").write_bytes(edited)
        switch(link, "two")
        rm.now_s += 5.0
        assert any("may still have what was written there" in alarm.text for alarm in controller.tick().alarms)
        assert (tmp_path / "one" / "fs.xml").read_bytes() == edited
        controller.stop("release")


def test_capacities_behind_a_link_are_restored_as_well(link: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "fs.xml").write_bytes(CAPACITY)
    with LedgerStore(tmp_path / "ledger.db") as store:
        actuator = CapacityActuator.restored(FileSource(LocalStore(link)), store.document)
        actuator.read()
        actuator.write(actuator.prepare(Attributes({"root.a": 1.0, "root.b": 3.0})), lambda: None)
        assert (tmp_path / "one" / "fs.xml").read_bytes() != CAPACITY
        switch(link, "two")
        give_back(actuator, store, None)
    for folder in ("one", "two"):
        assert (tmp_path / folder / "fs.xml").read_bytes() == CAPACITY


@pytest.mark.parametrize("then", ["start", "shadow", "release", "dry run"])
@pytest.mark.parametrize("capacity", [False, True], ids=["fair", "capacity"])
def test_a_link_that_is_switched_after_a_kill_leaves_nothing_behind(
    link: Path, tmp_path: Path, then: str, capacity: bool
) -> None:
    """The controller's weights stayed for ever in the file to which the link had led, and a lease beside it."""
    data = CAPACITY if capacity else FAIR
    for folder in ("one", "two"):
        (tmp_path / folder / "fs.xml").write_bytes(data)
    rm = rm_at(link, capacity=capacity)
    with controlled(rm, tmp_path, lease_s=30.0, **SETTINGS) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
    left = (tmp_path / "one" / "fs.xml").read_bytes()
    assert left != data
    newer = data.replace(b"2.0", b"4").replace(b">60<", b">70<").replace(b">40.0<", b">30<")
    (tmp_path / "two" / "fs.xml").write_bytes(newer)
    switch(link, "two")
    rm = rm_at(link, capacity=capacity)
    if then == "release":
        with LedgerStore(tmp_path / "ledger.db") as store:
            actuator = actuator_of(rm, store)
            give_back(actuator, store, actuator.lease(store.identity, 30.0, lambda: 0.0, store))
    else:
        how = {**SETTINGS, "mode": "shadow"} if then == "shadow" else SETTINGS
        with controlled(rm, tmp_path, lease_s=30.0, dry_run=then == "dry run", **how) as controller:
            rm.now_s += 5.0
            report = controller.tick()
            if then == "dry run":
                assert (tmp_path / "one" / "fs.xml").read_bytes() == left
                return
            assert any("leads to another file" in alarm.text for alarm in report.alarms) or then == "shadow"
            rm.now_s += 5.0
            assert not [alarm for alarm in controller.tick().alarms if "leads to another" in alarm.text]
            controller.stop("release")
    assert (tmp_path / "one" / "fs.xml").read_bytes() == data
    assert (tmp_path / "two" / "fs.xml").read_bytes() == newer
    for folder in ("one", "two"):
        assert os.listdir(tmp_path / folder) == ["fs.xml"]


def test_what_an_administrator_wrote_into_the_file_of_before_stays(link: Path, tmp_path: Path) -> None:
    rm = rm_at(link)
    with controlled(rm, tmp_path, lease_s=30.0, **SETTINGS) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
    old = tmp_path / "one" / "fs.xml"
    ours = re.search(rb"<weight>([0-9.]+)</weight>", old.read_bytes())
    assert ours is not None
    old.write_bytes(old.read_bytes().replace(ours[0], b"<weight>7</weight>"))
    switch(link, "two")
    rm = rm_at(link)
    with LedgerStore(tmp_path / "ledger.db") as store:
        give_back(actuator_of(rm, store), store, None)
    assert old.read_bytes() == FAIR.replace(b"2.0", b"7")


def test_a_file_of_before_that_another_controller_has_is_left_to_it(link: Path, tmp_path: Path) -> None:
    rm = rm_at(link)
    with controlled(rm, tmp_path, lease_s=30.0, **SETTINGS) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
    old = tmp_path / "one" / "fs.xml"
    before = old.read_bytes()
    (tmp_path / "one" / ".fs.xml.lease").unlink()
    lease_of(LocalStore(old), "another", 30.0, lambda: 0.0).hold()
    switch(link, "two")
    rm = rm_at(link)
    with LedgerStore(tmp_path / "ledger.db") as store:
        give_back(actuator_of(rm, store), store, None)
    assert old.read_bytes() == before
    assert ".fs.xml.lease" in os.listdir(tmp_path / "one")


def test_a_link_that_is_switched_while_the_configuration_is_reloaded_leaves_nothing_behind(
    link: Path, tmp_path: Path
) -> None:
    """The actuator of the reloaded configuration had read nothing yet, and gave up on the file of before."""
    rm = rm_at(link)
    with controlled(rm, tmp_path, lease_s=30.0, **SETTINGS) as controller:
        for _ in range(3):
            rm.now_s += 5.0
            controller.tick()
        made = controller.remade(controller.settings, controller.policy)
        switch(link, "two")
        rm.now_s += 5.0
        made.tick()
        assert (tmp_path / "one" / "fs.xml").read_bytes() == FAIR
        made.stop("release")


def test_without_a_link_nothing_is_left(tmp_path: Path) -> None:
    place = LocalStore(tmp_path / "fs.xml")
    place.write(FAIR)
    assert place.left() is None
    actuator = FileActuator.restored(place, {}.get)
    actuator.read()
    assert place.left() is None
