"""Whose weights an allocation file holds: the administrator's are found where a controller has written its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.control.capacity_actuator import CapacityActuator
from harness.control.config import EnforceConfig
from harness.control.entitled import of_config, of_file, written_capacities
from harness.control.file_actuator import FileActuator
from harness.control.lease import Lease, lease_store
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.yarn.capacity.convert import render_properties
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import LocalStore
from tests.control.driven import FILE


def controlled(folder: Path, *, told: bool = True) -> tuple[Path, FileActuator]:
    path = folder / "fair.xml"
    path.write_bytes(FILE.replace(b"<weight>1<", b"<weight>3<", 1))
    place = LocalStore(path)
    actuator = FileActuator(place)
    actuator.read()
    actuator.write(actuator.prepare(Attributes({"root.a": 900.0, "root.b": 100.0})))
    lease = Lease(lease_store(place), "me", 30.0, lambda: 1000.0)
    lease.hold()
    if told:
        lease.keep(actuator.document())
    return path, actuator


def test_a_controllers_lease_says_who_it_is_and_what_the_administrator_gave(tmp_path: Path) -> None:
    path, _ = controlled(tmp_path)
    holder, weights = of_file(str(path))
    assert holder.startswith("host ")
    assert weights == {"root.a": 3.0, "root.b": 1.0}


def test_a_controller_that_says_nothing_is_seen_all_the_same(tmp_path: Path) -> None:
    path, _ = controlled(tmp_path, told=False)
    holder, weights = of_file(str(path))
    assert holder
    assert weights is None


CAPACITIES = {
    "root.queues": "a,g",
    "root.a.capacity": "50",
    "root.g.capacity": "50",
    "root.g.queues": "x,y",
    "root.g.x.capacity": "60",
    "root.g.y.capacity": "40",
}


def steered(folder: Path) -> Path:
    """A capacity-scheduler.xml with a controller's capacities, and the controller's lease beside it."""
    path = folder / "capacity-scheduler.xml"
    path.write_text(render_properties(CAPACITIES))
    place = LocalStore(path)
    actuator = CapacityActuator(FileSource(place))
    actuator.read()
    plan = {"root.a": 21.0, "root.g": 79.0, "root.g.x": 13.7, "root.g.y": 71.3}
    actuator.write(actuator.prepare(Attributes(plan)))
    assert "21" in path.read_text()
    lease = Lease(lease_store(place), "me", 30.0, lambda: 1000.0)
    lease.hold()
    lease.keep(actuator.document())
    return path


ADMINISTRATORS = {"root.a": 50.0, "root.g": 50.0, "root.g.x": 30.0, "root.g.y": 20.0}


def test_a_capacity_schedulers_controller_says_what_the_administrator_gave(tmp_path: Path) -> None:
    path = steered(tmp_path)
    config = EnforceConfig(policy="ltrf", capacity_file=str(path), ledger=str(tmp_path / "l.db"))
    assert {p: w for p, w in of_config(config).items() if p != "root"} == pytest.approx(ADMINISTRATORS)
    holder, weights = of_file(str(path), capacity=True)
    assert holder.startswith("host ")
    assert weights is not None
    assert {p: w for p, w in weights.items() if p != "root"} == pytest.approx(ADMINISTRATORS)


def test_capacities_that_nobody_writes_by_hand_are_a_controllers() -> None:
    assert written_capacities({"root.a": 37.214298, "root.b": 62.785702}) == ["root.a", "root.b"]
    assert written_capacities({"root.a": 33.333302, "root.b": 12.5, "root.c": 50.0, "root.d": 14.285700}) == []


def test_where_no_controller_is_nobody_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "fair.xml"
    path.write_bytes(FILE)
    assert of_file(str(path)) == ("", None)
    assert of_file(str(tmp_path / "none.xml")) == ("", None)


def test_the_configurations_queues_come_before_the_administrators_weights(tmp_path: Path) -> None:
    path, actuator = controlled(tmp_path)
    config = EnforceConfig(
        policy="ltrf", allocation_file=str(path), ledger=str(tmp_path / "l.db"), queues={"root.b": 7.0}
    )
    assert of_config(config) == {"root.a": 3.0, "root.b": 7.0}
    lease_store(LocalStore(path)).remove()
    with LedgerStore(tmp_path / "l.db") as store:
        store.commit(documents=actuator.document())
    assert of_config(config) == {"root.a": 3.0, "root.b": 7.0}


def test_a_file_saved_after_the_stop_and_an_older_copy_of_the_ledger_do_not_change_entitlements(tmp_path: Path) -> None:
    path, actuator = controlled(tmp_path, told=False)
    config = EnforceConfig(policy="ltrf", allocation_file=str(path), ledger=str(tmp_path / "l.db"))
    wanted = {"root.a": 3.0, "root.b": 1.0}
    opened = path.read_bytes()
    with LedgerStore(tmp_path / "l.db") as store:
        identity = store.identity
        store.commit(documents=actuator.document())
        # The file goes on: a queue is added, and the ledger that says so is lost but for its copy.
        path.write_bytes(path.read_bytes().replace(b"</allocations>", b'<queue name="c"/></allocations>'))
        actuator.read()
        actuator.write(actuator.prepare(Attributes({"root.a": 800.0, "root.b": 100.0, "root.c": 4.8125})))
        lease = Lease(lease_store(LocalStore(path)), identity, 30.0, lambda: 2000.0)
        lease_store(LocalStore(path)).remove()
        lease.hold()
        lease.keep(actuator.document())
        assert of_config(config) == {**wanted, "root.c": 1.0}
        actuator.write(actuator.original())
        actuator.forget()
        store.commit(documents=actuator.document())
    lease_store(LocalStore(path)).remove()
    path.write_bytes(opened)
    assert of_config(config) == wanted
