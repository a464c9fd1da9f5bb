"""Accounts follow the scheduler: memory, or dominant shares where it compares these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from harness.control.actuator import BaseActuator
from harness.control.capacity_actuator import CapacityActuator
from harness.control.config import EnforceConfig
from harness.control.file_actuator import FileActuator
from harness.control.guards import Guards, GuardWatch
from harness.control.interfaces import Actuator
from harness.control.opened import Cluster, counting_policy
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.yarn.capacity.source import FileSource
from tests.control.rm_model import MemoryPlace
from tests.control.test_gate import file as capacity_file

CALCULATOR = "yarn.scheduler.capacity.resource-calculator"
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
DEFAULT = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
#: A Fair Scheduler's files -> by which resource it compares queues.
FAIR_FILES = {
    "<allocations><queue name='a'/></allocations>": "memory",
    "<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy><queue name='a'/></allocations>": (
        "dominant"
    ),
    "<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>"
    "<queue name='a'><schedulingPolicy>fair</schedulingPolicy></queue></allocations>": "memory",
}


def capacity_place(calculator: str | None) -> MemoryPlace:
    text = capacity_file(a="50", b="50")
    said = f"<property><name>{CALCULATOR}</name><value>{calculator}</value></property></configuration>"
    return MemoryPlace(text if calculator is None else text.replace(b"</configuration>", said.encode()))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LedgerStore]:
    with LedgerStore(tmp_path / "ledger.db") as made:
        yield made


def counted(
    actuator: BaseActuator, store: LedgerStore, settings: Mapping[str, Any] | None = None, policy: str = "ltrf"
) -> tuple[Any, str]:
    """What the policy accumulates on this cluster, and what is said of it."""
    config = EnforceConfig(policy=policy, settings=dict(settings or {}), allocation_file="x", ledger="x")
    own = cast("Actuator[object]", actuator)
    cluster = Cluster(
        client=None,
        open_actuator=lambda _: own,
        open_observer=cast("Any", None),
        address="",
        counted_resource=lambda _: actuator.counted_resource(),
    )
    made, words = counting_policy(config, cluster, own, store)
    return cast("Any", made.settings).resource, words


@pytest.mark.parametrize(("calculator", "resource"), [(None, "memory"), (DEFAULT, "memory"), (DOMINANT, "dominant")])
def test_a_capacity_schedulers_calculator_is_what_accounts_are_of(
    calculator: str | None, resource: str, store: LedgerStore
) -> None:
    actuator = CapacityActuator(FileSource(capacity_place(calculator)))
    found, words = counted(actuator, store)
    assert found == resource
    assert words == ("accounts are of the dominant resource, as the scheduler counts" if resource != "memory" else "")
    assert counted(actuator, store, {"resource": "memory"}) == ("memory", ""), "what is given is kept"
    assert counted(actuator, store, policy="decay-htcondor") == ("vcores", ""), "a copied system counts as it does"


@pytest.mark.parametrize("text", FAIR_FILES)
def test_a_fair_scheduler_counts_dominant_shares_where_all_its_queues_do(text: str, store: LedgerStore) -> None:
    assert counted(FileActuator(MemoryPlace(text.encode())), store)[0] == FAIR_FILES[text]


def test_a_policy_that_a_controller_wrote_is_not_how_the_administrator_counts() -> None:
    place = MemoryPlace(b"<allocations><queue name='root'><queue name='a'/></queue></allocations>")
    actuator = FileActuator(place)
    actuator.read()
    queues = ("root", "root.a")
    drf = Attributes(dict.fromkeys(queues[1:], 2.0), scheduling_policies=dict.fromkeys(queues, "drf"))
    actuator.write(actuator.prepare(drf))
    assert b"drf" in place.data
    assert actuator.counted_resource() == "memory"


def test_queues_that_have_the_policy_already_get_no_element() -> None:
    text = next(text for text, resource in FAIR_FILES.items() if resource == "dominant")
    actuator = FileActuator(MemoryPlace(text.encode()))
    actuator.read()
    drf = dict.fromkeys(("root", "root.a"), "drf")
    prepared = actuator.prepare(Attributes({"root.a": 2.0}, scheduling_policies=cast("Any", drf)))
    assert b"schedulingPolicy>" not in prepared.after
    assert b"<weight>2" in prepared.after


def test_while_the_configuration_cannot_be_read_it_counts_as_the_ledger_does(store: LedgerStore) -> None:
    place = capacity_place(DOMINANT)
    place.data = b"torn"
    actuator = CapacityActuator(FileSource(place))
    found, words = counted(actuator, store)
    assert found == "memory"
    assert words.startswith("accounts are of memory (what it counts cannot be read: ")
    store.commit(accounts=store.accounts(), documents={"policy": ["ltrf", {"resource": "dominant"}]})
    assert counted(actuator, store)[0] == "dominant", "or its accounts would be lost"


def test_a_guard_counts_what_a_queue_holds_as_the_scheduler_does() -> None:
    """All vcores are held at a fifth of the memory: nobody is below his due."""

    def passed(*, dominant: bool) -> str:
        watch = GuardWatch(Guards(longest_wait_s=60), dominant=dominant)
        queues = [QueueView("root", None, False)]
        for name in ("root.a", "root.b"):
            held = Resource(10, 50)
            queues.append(QueueView(name, "root", True, allocated=held, ended_containers=0, backlog_since_s=0.0))
        told = [watch.look(Snapshot(at, Resource(100, 100), {q.name: q for q in queues}), {}, 0, 0.0) for at in (0, 99)]
        return told[1]

    assert "holds 10 % of the cluster" in passed(dominant=False)
    assert passed(dominant=True) == ""
