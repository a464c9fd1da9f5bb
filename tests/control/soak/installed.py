"""The product's modules meet a world instead of the system: their clocks, files, network and identities."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.control.soak.clock import DatetimeClass, MachineClock, TimeModule
from tests.control.soak.disk import Disk, OsModule, SqliteModule, TempfileModule
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World


@contextlib.contextmanager
def installed(world: World) -> Iterator[None]:
    """While this lasts."""
    here = MachineClock(world.agenda)

    def clock() -> MachineClock:
        return world.current.clock if world._acting else here

    def disk() -> Disk:
        return world.current.disk

    virtual = TimeModule(clock, world.wait)
    numbers = iter(range(10**9))
    host = SimpleNamespace(gethostname=lambda: f"host-{world.current.name}")

    def boot() -> str:
        return f"boot-{world.current.name}"

    def signature() -> dict[str, Any]:
        return {"pid": 1000 + world.current.deaths, "started": 1, "pids": "pids", "boot": boot()}

    def is_dead(signed: Mapping[str, Any]) -> bool:
        """Each controller has a machine of its own, on which one process runs at a time."""
        return signed.get("boot") == boot() and signed.get("pid") != signature()["pid"]

    identities = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"ledger-{world.current.name}-{next(numbers)}"))
    replaced: dict[str, Any] = {
        "harness.control.wall.time": virtual,
        "harness.control.tenure.time": virtual,
        "harness.control.clock.time": virtual,
        "harness.control.telemetry.datetime": DatetimeClass(clock),
        "harness.control.lease.this_process": signature,
        "harness.control.lease.boot_id": boot,
        "harness.control.lease.is_dead": is_dead,
        "harness.control.lease.socket": host,
        "harness.yarn.files.os": OsModule(disk),
        "harness.yarn.files.exchange": lambda one, other: disk().exchange(one, other),
        "harness.yarn.files.tempfile": TempfileModule(disk),
        "harness.ledger.store.sqlite3": SqliteModule(disk),
        "harness.ledger.store.uuid": identities,
        "harness.ledger.store.MOST_DECISIONS": world.most_decisions,
        "harness.yarn.http.open_session": world.wire.open_session,
        "harness.yarn.rpc.call": world.wire.rpc_call,
    }
    with contextlib.ExitStack() as stack:
        for name, value in replaced.items():
            stack.enter_context(mock.patch(name, value))
        yield


#: A seed that takes more CPU time hangs, and one that has waited for so long without any, seconds.
HANGS_S, WAITS_S = 150.0, 60.0


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """What waits for ever is a violation."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise Violated(f"it hangs: no end after {HANGS_S:g} s of CPU time")

    # Time is virtual: nothing here waits for anything, however busy the machine is.
    used_s = -1.0

    def waits(*_: object) -> None:
        nonlocal used_s
        before_s, used_s = used_s, time.process_time()
        if used_s - before_s < 1e-3:
            raise Violated(f"it hangs: it has waited for {WAITS_S:g} s")

    before = signal.signal(signal.SIGPROF, late), signal.signal(signal.SIGALRM, waits)
    signal.setitimer(signal.ITIMER_PROF, HANGS_S)
    signal.setitimer(signal.ITIMER_REAL, WAITS_S, WAITS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])
