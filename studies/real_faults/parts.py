"""What a piece runs on: a pair of ResourceManagers, a load, two controllers, the disks and relays that faults break."""

from __future__ import annotations

import heapq
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from harness.base.errors import YarnfairError
from harness.clusters import processes
from harness.control.settings import MAX_RATIO
from harness.ledger.store import read_documents
from harness.yarn.errors import Unreachable
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from harness.yarn.rmclient import RmClient
from studies.pair import Pair, recovery
from studies.real_faults import server
from studies.real_faults.controllers import Controller
from studies.real_faults.disk import Disk
from studies.real_faults.guard import Guard
from studies.real_faults.load import Load, Used
from studies.real_faults.relay import Relay

THEIRS = b"""<?xml version="1.0"?>
<allocations>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <!-- the administrator's -->
  <queue name="a"><weight> 2.0 </weight><maxRunningApps>50</maxRunningApps></queue>
  <queue name="b"/>
  <queue name="c"><weight>1</weight></queue>
</allocations>
"""
PERIOD_S, LEASE_S = 5.0, 15.0
#: So often an RM is told to become active, a second apart, before it is begun again.
MOST_TRIES = 10
#: How controllers reach the allocation file, by pieces in turn.
PLACES = ("sftp", "file")
NODES, _NODE_MB = 2, 2048
_OPTIONS = HttpOptions(attempts=1, connect_timeout_s=1.0, read_timeout_s=4.0, deadline_s=8.0)


@dataclass
class ExecutorEvent:
    """What a piece has to tell."""

    rounds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    #: Seconds from the last fault's end until all was well, by round.
    calm_after_s: list[float] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    replaced: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)
    accounts: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    released: bool = False
    place: str = "file"
    seconds: float = 0.0


class Parts:
    """A cluster, a load, two controllers and what stands between them, and what faults do with them. A context: within
    it all runs."""

    period_s, lease_s = PERIOD_S, LEASE_S

    def __init__(
        self, folder: Path, seed: int, number: int, known: dict[str, Used], say: Callable[[str], None]
    ) -> None:
        self.folder, self.rng, self._say = folder, random.Random(f"{seed} {number}"), say
        #: How controllers reach the allocation file.
        self.place = PLACES[(number - 1) % len(PLACES)] if server.installed() else "file"
        self.sftp: server.SftpServer | None = None
        self.sftp_relay: Relay | None = None
        self.told = ExecutorEvent()
        self.file_disk = Disk(folder / "scheduler", folder / "kept" / "scheduler", 1024)
        self.ledger_disk = Disk(folder / "ledgers", folder / "kept" / "ledgers", 24 * 1024)
        self.file = self.file_disk.folder / "fair-scheduler.xml"
        self._stack = ExitStack()
        self._known, self._number = known, number
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._occupied: set[str] = set()
        self._edit = b""
        self._lock, self._switching = threading.RLock(), threading.Lock()
        self._wanted_up: set[str] = set()
        self.active = "rm1"
        self._made_active: processes.Process | None = None
        #: How often in a row the wanted one did not become active.
        self._failed = 0
        self._interrupted = False

    # --- it begins and ends ---

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _begin(self) -> None:
        folder, stack = self.folder, self._stack
        for disk in (self.file_disk, self.ledger_disk):
            disk.mount()
            stack.callback(disk.keep)
        if not self.file.exists():
            self.file.write_bytes(THEIRS)
        properties = {
            **recovery(folder / "rmstate"),
            "yarn.scheduler.minimum-allocation-mb": "256",
            "yarn.scheduler.increment-allocation-mb": "256",
            "yarn.scheduler.maximum-allocation-mb": str(_NODE_MB),
            "yarn.nm.liveness-monitor.expiry-interval-ms": "30000",
            "yarn.resourcemanager.connect.retry-interval.ms": "1000",
            "yarn.resourcemanager.max-completed-applications": "10000",
            # Else a master that sleeps longer than its heartbeats may be away is killed.
            "yarn.am.liveness-monitor.expiry-interval-ms": "600000",
        }
        cluster = folder / "cluster"
        self.pair = Pair(cluster, self.file, properties, nodes=NODES, memory_mb=_NODE_MB)
        self.nodes = [name for name in self.pair.parts if name.startswith("nm")]
        stack.callback(self._end_cluster)
        for name in self.pair.parts:
            self.pair.log(name).unlink(missing_ok=True)
            self.up(name)
        self.pair.wait(180.0)
        self._relays()
        direct = [rm.rest for rm in self.pair.rms]
        self.client = stack.enter_context(RmClient(list(self.pair.rms), _OPTIONS, rpc_timeout_s=8.0))
        rest = stack.enter_context(RestClient(direct, _OPTIONS))
        self.load = Load(rest, self.rng.randrange(2**31), self._known)
        tender = threading.Thread(target=self._tend, daemon=True)
        self._tended = threading.Event()
        stack.callback(tender.join, timeout=60)
        stack.callback(self._tended.set)
        tender.start()
        self._until(self._all_nodes, 120.0, "the nodes are there")
        self.guard = Guard(self.file, THEIRS, MAX_RATIO, LEASE_S, self.violated)
        self.guard.begin()
        stack.callback(self.guard.end)
        config = {
            "policy": "ltrf",
            "allocation_file": self._sftp() if self.place == "sftp" else str(self.file),
            "period_s": PERIOD_S,
            "lease_s": LEASE_S,
            "rms": [
                {"rest": f"http://{relays['rest'].address}", **{k: relays[k].address for k in ("admin", "client")}}
                for relays in self.relays.values()
            ],
        }
        self.controllers = [
            Controller(
                name,
                folder / "controllers",
                self.ledger_disk.folder / f"{name}.db",
                config,
                {processes.MARK: self.pair.mark, **({"HOME": str(self.sftp.home)} if self.sftp else {})},
            )
            for name in ("one", "two")
        ]
        for one in self.controllers:
            stack.callback(one.kill)
            one.start()
        # Both have looked at a cluster without work: their ledgers begin at the RM's own figures.
        self._until(lambda: all(self._looked(one) for one in self.controllers), 120.0, "the controllers look")
        self.load.begin()
        stack.callback(self.load.end)

    def _sftp(self) -> str:
        """The allocation file's name over SFTP, by way of a relay."""
        self.sftp = server.SftpServer(self.folder / "sftp", self.pair.mark)
        self._stack.callback(self.sftp.stop)
        self.sftp.start()
        self.sftp_relay = Relay(self.sftp.port, self.rng.randrange(2**31))
        self._stack.callback(self.sftp_relay.close)
        self.sftp.known_at(self.sftp_relay.port)
        return self.sftp.place(self.sftp_relay.port, self.file)

    def _relays(self) -> None:
        self.relays: dict[str, dict[str, Relay]] = {}
        for name, rm in zip(("rm1", "rm2"), self.pair.rms, strict=True):
            ports = {"rest": urlsplit(rm.rest).port or 0, "admin": rm.admin.port, "client": rm.client.port}
            self.relays[name] = {key: Relay(port, self.rng.randrange(2**31)) for key, port in ports.items()}
        rewrites = {
            urlsplit(rm.rest).netloc.encode(): relays["rest"].address.encode()
            for rm, relays in zip(self.pair.rms, self.relays.values(), strict=True)
        }
        for relays in self.relays.values():
            relays["rest"].rewrites = rewrites
            for relay in relays.values():
                self._stack.callback(relay.close)

    def _end_cluster(self) -> None:
        self._wanted_up.clear()
        if left := self.pair.stop():
            self.violated(f"processes are left: {left}")

    def _until(self, true: Callable[[], bool], timeout_s: float, what: str) -> None:
        end = time.monotonic() + timeout_s
        while not true():
            if time.monotonic() > end:
                raise YarnfairError(f"not within {timeout_s:g} s: {what}", where=str(self.folder))
            time.sleep(0.5)

    def _all_nodes(self) -> bool:
        with suppress(YarnfairError):
            return self.running_nodes() == NODES
        return False

    def running_nodes(self) -> int:
        """How many nodes run. The ``activeNodes`` of an RM (3.4.2) counts some twice that came back."""
        return len(self.client.rest.nodes(("RUNNING",)))

    @staticmethod
    def _looked(one: Controller) -> bool:
        one.events()
        if not one.ledger.exists():
            return False
        with suppress(YarnfairError):
            return read_documents(one.ledger, ["looked_s"])["looked_s"] is not None
        return False

    # --- what faults do ---

    def violated(self, text: str) -> None:
        """Something that must hold does not."""
        text = text.replace(str(self.folder), "")  # a record says nothing of where on a machine it was made
        if len(self.told.violations) < 200:
            self.told.violations.append(f"round {self.told.rounds}: {text}")
        self._say(f"VIOLATED: {text}")

    def note(self, text: str) -> None:
        """A line of the run's log."""
        self._say(text)

    def later(self, in_s: float, do: Callable[[], None]) -> None:
        """Does something in some seconds, or when all faults end."""
        heapq.heappush(self._agenda, (time.monotonic() + in_s, next(self._order), do))

    def occupied(self, *parts: str) -> bool:
        """Whether a fault goes on at one of these parts."""
        return any(part in self._occupied for part in parts)

    def some_controller(self, rng: random.Random) -> Controller | None:
        """One at which no fault goes on, by chance; None where the one that chance meets has one."""
        one = rng.choice(self.controllers)
        return None if self.occupied(one.name) else one

    def some_node(self, rng: random.Random) -> str | None:
        """As `some_controller`, of the nodes."""
        name = rng.choice(self.nodes)
        return None if self.occupied(name) else name

    def occupy(self, part: str, lasts_s: float, end: Callable[[], object]) -> None:
        """A fault at this part goes on for so long."""
        self._occupied.add(part)

        def over() -> None:
            self._occupied.discard(part)
            end()

        self.later(lasts_s, over)

    def down(self, name: str, how: signal.Signals) -> None:
        """A part of the cluster dies and stays dead."""
        with self._lock:
            self._wanted_up.discard(name)
        self.pair.signal(name, how)

    def up(self, name: str) -> None:
        """A part of the cluster is begun again."""
        with self._lock:
            self._wanted_up.add(name)
            if not self.pair.alive(name):
                self.pair.start(name)

    @staticmethod
    def partner(name: str) -> str:
        """The other ResourceManager."""
        return "rm2" if name == "rm1" else "rm1"

    def want(self, name: str) -> None:
        """This one is to be active."""
        with self._lock:
            self.active, self._made_active = name, None

    def fail_over(self) -> None:
        """The active one hands over to its partner, as an administrator does it."""
        # Nothing that makes the one active may still be on its way: both would be.
        with self._switching:
            before = self.active
            try:
                self.pair.switch(self._rm(before), active=False, timeout_s=20.0)
            except YarnfairError as error:
                self.note(f"{before} does not become standby ({error.line()}): it is killed")
                self.down(before, signal.SIGKILL)
                self.up(before)
            self.want(self.partner(before))

    def _rm(self, name: str) -> Any:
        return self.pair.rms[int(name[2:]) - 1]

    def holder(self) -> Controller | None:
        """Whose the lease was last, whether or not it lives."""
        owner = self.guard.signed[-1].owner if self.guard.signed else ""
        return next((one for one in self.controllers if owner and one.identity() == owner), None)

    def edit(self, data: bytes) -> None:
        """Somebody changes what a controller has written, and expects it to write its own again."""
        self._edit = data
        self.put_file(data)

    def edited(self) -> bool:
        """Whether an `edit` stands still. Who has not written over it may hand over, but not die then: to a spare that
        has only just begun it would be what the administrator wrote after the holder's death, and rightly so."""
        with suppress(OSError):
            return self._edit == self.file.read_bytes()
        return False

    def put_file(self, data: bytes) -> None:
        """Somebody else replaces the allocation file."""
        self.guard.put(data)
        away = self.file.with_name("edited.xml")
        away.write_bytes(data)
        away.rename(self.file)

    def held_file(self) -> bytes:
        """The allocation file as a controller has written it, while one that runs holds it; else nothing."""
        with suppress(OSError, YarnfairError):
            data, one = self.file.read_bytes(), self.holder()
            if one is None or not one.running or one.frozen or one.stopping or self.edited():
                return b""
            if data in self.guard.seen and time.monotonic() > self.guard.disturbed_until_s:
                return data
        return b""

    # --- the hand that keeps the cluster going ---

    def _tend(self) -> None:
        """Starts what ended by itself and makes the wanted RM active, again and again."""
        while not self._tended.wait(1.0):
            with self._lock:
                for name in self._wanted_up:
                    if not self.pair.alive(name):
                        self.note(f"{name} has ended by itself")
                        self.told.ended.append(name)
                        self.pair.start(name)
            with self._switching:
                self._make_active()

    def _make_active(self) -> None:
        with self._lock:
            wanted = self.active
            process = self.pair.processes.get(wanted)
            done = process is not None and process == self._made_active
        if process is None or not process.alive or (done and self._is_active(wanted)):
            return
        partner = self.partner(wanted)
        if self.pair.alive(partner) and self._is_active(partner, otherwise=False):
            self.note(f"{partner} is active and {wanted} is to be: {partner} is killed")
            self.pair.signal(partner, signal.SIGKILL)
        try:
            self.pair.switch(self._rm(wanted), active=True, timeout_s=30.0)
        except Unreachable:
            return  # it is not up yet
        except YarnfairError as error:
            # An RM (3.4.2) that failed to become active once, say because a port was taken, has registered its queues'
            # metrics, and fails at each further try: an administrator begins it again.
            self._failed += 1
            if self._failed > MOST_TRIES:
                self.note(f"{wanted} does not become active ({error.line()[:200]}): it is killed")
                self.told.ended.append(f"{wanted} did not become active")
                self.pair.signal(wanted, signal.SIGKILL)
                self._failed = 0
            return
        self._failed = 0
        with self._lock:
            if self.active == wanted and self.pair.processes.get(wanted) == process:
                self._made_active = process

    def _is_active(self, name: str, *, otherwise: bool = True) -> bool:
        """Whether it says so; ``otherwise``: what is taken of one that does not answer."""
        try:
            with RestClient([self._rm(name).rest], _OPTIONS) as client:
                return client.info_of(self._rm(name).rest).active
        except YarnfairError:
            return otherwise
