"""A controller on a ResourceManager in memory, and what its ticks come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.reports import TickReport
from harness.control.rm_poller import open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore
from harness.policies import make_policy
from tests.control.rm_model import MemoryPlace, RmModel

FILE = b"""<allocations>
  <queue name="a"><weight>1</weight><maxRunningApps>7</maxRunningApps></queue>
  <queue name="b"><weight>1</weight></queue>
</allocations>
"""


@contextmanager
def controlled(
    rm: RmModel,
    folder: Path,
    policy: str = "ltrf",
    sets: Mapping[str, str] | None = None,
    *,
    clock: Callable[[], float] | None = None,
    dry_run: bool = False,
    **settings: Any,
) -> Iterator[Controller]:
    """``clock``: of the controller's machine (None: it is right, as the RM's is)."""
    with LedgerStore(folder / "ledger.db") as store:
        how = ControlSettings(**{"period_s": 5.0, **settings})
        made = make_policy(policy, {"horizon_s": "100", **(sets or {})} if policy == "ltrf" else sets)
        actuator = actuator_of(rm, store)
        yield Controller(
            how, rm, actuator, store, made, open_observer=open_rm_poller, clock=clock or rm.clock, dry_run=dry_run
        )  # type: ignore[arg-type]


def actuator_of(rm: RmModel, store: LedgerStore) -> FileActuator | CapacityActuator:
    """The actuator of what the model's scheduler reads."""
    source = getattr(rm, "source", None)
    if source is not None:
        return CapacityActuator.restored(source, store.document)
    return FileActuator.restored(rm.place, store.document)


def rm_with_load(file: bytes = FILE) -> RmModel:
    rm = RmModel(MemoryPlace(file))
    rm.submit("x", "root.a")
    rm.submit("y", "root.b").pending = 3
    return rm


def kinds(report: TickReport) -> set[str]:
    return {alarm.kind for alarm in report.alarms}


def in_force(rm: RmModel) -> dict[str, float]:
    return {queue.path: queue.weight for queue in rm.tree if queue.parent is not None}
