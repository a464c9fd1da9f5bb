"""Whose weights an allocation file holds: the administrator's are found where a controller has written its own."""

from __future__ import annotations

from pathlib import Path

from harness.control.config import EnforceConfig
from harness.control.entitled import of_config, of_file
from harness.control.file_actuator import FileActuator
from harness.control.lease import Lease, lease_place
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.yarn.files import LocalStore
from tests.control.driven import FILE


def controlled(folder: Path, *, told: bool = True) -> tuple[Path, FileActuator]:
    path = folder / "fair.xml"
    path.write_bytes(FILE.replace(b"<weight>1<", b"<weight>3<", 1))
    place = LocalStore(path)
    actuator = FileActuator(place)
    actuator.read()
    actuator.write(actuator.prepare(Attributes({"root.a": 900.0, "root.b": 100.0})))
    lease = Lease(lease_place(place), "me", 30.0, lambda: 1000.0)
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
    lease_place(LocalStore(path)).remove()
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
        lease = Lease(lease_place(LocalStore(path)), identity, 30.0, lambda: 2000.0)
        lease_place(LocalStore(path)).remove()
        lease.hold()
        lease.keep(actuator.document())
        assert of_config(config) == {**wanted, "root.c": 1.0}
        actuator.write(actuator.original())
        actuator.forget()
        store.commit(documents=actuator.document())
    lease_place(LocalStore(path)).remove()
    path.write_bytes(opened)
    assert of_config(config) == wanted
