"""A piece of the run: a cluster, two controllers, rounds of faults with a calm after each, at its end the accounts."""

from __future__ import annotations

import heapq
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.base.errors import YarnfairError
from harness.clusters import processes
from harness.control.settings import MAX_RATIO
from harness.ledger.store import LedgerStore, read_documents
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.http import HttpOptions
from harness.yarn.rest import RestClient
from harness.yarn.rmclient import RmClient
from studies.real_faults import faults
from studies.real_faults.cluster import Pair, recovery
from studies.real_faults.controllers import Controller
from studies.real_faults.disk import Disk
from studies.real_faults.guard import Guard
from studies.real_faults.load import QUEUES, Load, Used
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
_NODES, _NODE_MB = 2, 2048
#: Faults of a round go on for so long, and come at this mean distance.
_ROUND_S, _BETWEEN_S = (120.0, 240.0), 9.0
#: After the last fault all must be well within two periods and what faults leave behind: a lease of a dead holder, the
#: start of an RM and of a controller, answers that are waited for, what was not asked for after slow answers.
CALM_S = 120.0
_OPTIONS = HttpOptions(attempts=1, connect_timeout_s=1.0, read_timeout_s=4.0, deadline_s=8.0)


@dataclass
class Told:
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
    seconds: float = 0.0


class Piece:
    """The parts of a piece, and what faults do with them. A context: within it all runs."""

    period_s, lease_s = PERIOD_S, LEASE_S

    def __init__(
        self, folder: Path, seed: int, number: int, known: dict[str, Used], say: Callable[[str], None]
    ) -> None:
        self.folder, self.rng, self._say = folder, random.Random(f"{seed} {number}"), say
        self.told = Told()
        self.file_disk = Disk(folder / "scheduler", folder / "kept" / "scheduler", 1024)
        self.ledger_disk = Disk(folder / "ledgers", folder / "kept" / "ledgers", 24 * 1024)
        self.file = self.file_disk.folder / "fair-scheduler.xml"
        self._stack = ExitStack()
        self._known, self._number = known, number
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._occupied: set[str] = set()
        self._lock, self._switching = threading.RLock(), threading.Lock()
        self._wanted_up: set[str] = set()
        self.active = "rm1"
        self._made_active: processes.Process | None = None
        self._interrupted = False

    # --- it begins and ends ---

    def __enter__(self) -> Piece:
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
        self.pair = Pair(cluster, self.file, properties, nodes=_NODES, memory_mb=_NODE_MB)
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
            "allocation_file": str(self.file),
            "period_s": PERIOD_S,
            "lease_s": LEASE_S,
            "rms": [
                {"rest": f"http://{relays['rest'].address}", **{k: relays[k].address for k in ("admin", "client")}}
                for relays in self.relays.values()
            ],
        }
        self.controllers = [
            Controller(name, folder / "controllers", self.ledger_disk.folder / f"{name}.db", config, self.pair.mark)
            for name in ("one", "two")
        ]
        for one in self.controllers:
            stack.callback(one.kill)
            one.start()
        # Both have looked at a cluster without work: their ledgers begin at the RM's own figures.
        self._until(lambda: all(self._looked(one) for one in self.controllers), 120.0, "the controllers look")
        self.load.begin()
        stack.callback(self.load.end)

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
            return self.client.rest.metrics().active_nodes == _NODES
        return False

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

    def put_file(self, data: bytes) -> None:
        """Somebody else replaces the allocation file."""
        self.guard.put(data)
        away = self.file.with_name("edited.xml")
        away.write_bytes(data)
        away.rename(self.file)

    def held_file(self) -> bytes:
        """The allocation file as a controller has written it, while one that runs holds it; else nothing."""
        with suppress(OSError):
            data = self.file.read_bytes()
            owner = self.guard.signed[-1].owner if self.guard.signed else ""
            if owner and data in self.guard.seen and time.monotonic() > self.guard.disturbed_until_s:
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
        with suppress(YarnfairError):
            self.pair.switch(self._rm(wanted), active=True, timeout_s=30.0)
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

    # --- it goes on ---

    def interrupt(self) -> None:
        """Ends the faults now; the calm and the accounts still come."""
        self._interrupted = True

    def run(self, seconds: float) -> Told:
        """Rounds until the time is over, then the accounts."""
        begun = time.monotonic()
        next_sample_s = begun

        def go_on(until_s: float) -> None:
            nonlocal next_sample_s
            while time.monotonic() < until_s and not self._interrupted:
                self._step()
                if time.monotonic() >= next_sample_s:
                    self._sample(time.monotonic() - begun)
                    next_sample_s += 60.0
                time.sleep(0.2)

        while time.monotonic() - begun < seconds and not self._interrupted:
            self.told.rounds += 1
            round_end_s = min(time.monotonic() + self.rng.uniform(*_ROUND_S), begun + seconds)
            while time.monotonic() < round_end_s and not self._interrupted:
                self._fault()
                go_on(min(time.monotonic() + self.rng.expovariate(1 / _BETWEEN_S), round_end_s))
            self._calm()
            self._sample(time.monotonic() - begun)
        self._wind_up()
        self.told.replaced = self.guard.replaced
        self.told.seconds = round(time.monotonic() - begun, 1)
        return self.told

    def _step(self) -> None:
        while self._agenda and self._agenda[0][0] <= time.monotonic():
            heapq.heappop(self._agenda)[2]()
        for one in self.controllers:
            if words := one.died():
                # As systemd begins a service again. One that could not begin may say so and end.
                self.later(2.0, one.start)
                if one.begun or ": yarnfair: " not in words:
                    self.violated(words)
                else:
                    self.told.ended.append(words)
                    self.note(words)
            self._writes(one)

    def _writes(self, one: Controller) -> None:
        """Who says that it wrote held the lease then."""
        for event in one.events():
            if event["event"] in ("begin", "end", "release", "lease"):
                self.note(f"{one.name}: {event['level']} {event['event']}: {event['text'][:160]}")
            if event["event"] != "weights" or not event.get("wrote"):
                continue
            now, age_s = time.monotonic(), time.time() - _time_of(event["time"])
            to_s = now - age_s
            if to_s - event["took_s"] < self.guard.disturbed_until_s:
                continue
            owners = self.guard.owner_in(to_s - event["took_s"] - 0.5, to_s + 0.5)
            if self._identity(one) not in owners:
                self.violated(f"{one.name} wrote at {event['time']}, the lease was of {sorted(owners)}")

    def _identity(self, one: Controller) -> str:
        return str(read_documents(one.ledger, ["identity"])["identity"])

    def _fault(self) -> None:
        for _ in range(20):
            kind = faults.draw(self.rng)
            try:
                begun = faults.KINDS[kind][1](self, self.rng)
            except (OSError, YarnfairError) as error:
                self.note(f"{kind}: {type(error).__name__}: {error}")
                continue
            if begun is None:
                continue
            self.told.faults[kind] += 1
            self.note(f"fault {kind} at {begun.part} for {begun.lasts_s:.1f} s")
            self.occupy(begun.part, begun.lasts_s, begun.end)
            return

    def _heal(self) -> None:
        """All faults end, and all that lasts with them."""
        while self._agenda:
            _, _, do = heapq.heappop(self._agenda)
            do()
        for disk in (self.file_disk, self.ledger_disk):
            disk.writable(True)
            disk.empty()
        for name in self.pair.parts:
            self.up(name)
        for one in self.controllers:
            one.go_on()
            one.start()

    def _calm(self) -> None:
        """After the last fault all is well again within `CALM_S`."""
        self._heal()
        self.note("calm")
        begun = time.monotonic()
        time.sleep(2 * PERIOD_S)
        while wrong := self._wrong():
            if time.monotonic() - begun > CALM_S:
                self.violated(f"{CALM_S:g} s after the last fault: {wrong}")
                return
            self._step()
            time.sleep(1.0)
        self.told.calm_after_s.append(round(time.monotonic() - begun, 1))
        self.note(f"all is well after {self.told.calm_after_s[-1]} s")

    def _wrong(self) -> str:
        """What is not as it must be when nothing goes wrong; "" nothing."""
        for one in self.controllers:
            one.events()
            if not one.running:
                return f"{one.name} does not run"
        holder = self._holder()
        if holder is None:
            return "nobody holds the lease"
        for one in self.controllers:
            # A spare says that another one writes, and nothing else.
            lasting = one.alarms.keys() - (set() if one is holder else {"lease"})
            if lasting:
                return f"{one.name} says {', '.join(f'{kind}: {one.alarms[kind]}' for kind in sorted(lasting))}"
        data = self.file.read_bytes()
        if data not in self.guard.seen:
            return f"the file is none of a controller's: {data!r}"
        try:
            has = {path: queue.weight for path, queue in self.client.effective_queues().items() if path in QUEUES}
            nodes = self.client.rest.metrics().active_nodes
        except YarnfairError as error:
            return error.line()
        if nodes != _NODES:
            return f"{nodes} nodes"
        if sum(self._is_active(name, otherwise=False) for name in ("rm1", "rm2")) != 1:
            return "not one ResourceManager is active"
        file = parse_allocations(data)
        wanted = {path: float(file.weight(path) or 1.0) for path in QUEUES}
        if any(abs(has[path] - wanted[path]) > 1e-5 * wanted[path] for path in QUEUES):
            return f"in force is {has}, the file says {wanted}"
        return self.guard.apart(has)

    def _holder(self) -> Controller | None:
        owner = self.guard.signed[-1].owner if self.guard.signed else ""
        return next((one for one in self.controllers if owner and self._identity(one) == owner), None)

    def _sample(self, at_s: float) -> None:
        """Memory and sizes now."""
        sample: dict[str, Any] = {"at_s": round(at_s), "load_average": round(os.getloadavg()[0], 1)}
        for one in self.controllers:
            files = [path for path in one.ledger.parent.iterdir() if path.name.startswith(one.ledger.name)]
            sample[one.name] = {
                "memory_mb": one.memory_mb(),
                "log_bytes": one.log.stat().st_size if one.log.exists() else 0,
                "ledger_bytes": sum(path.stat().st_size for path in files),
            }
        for name in self.pair.parts:
            sample[name] = {"memory_mb": self.pair.processes[name].memory_mb()}
        with suppress(OSError):
            sample["lease_bytes"] = self.guard.lease.stat().st_size
        with suppress(YarnfairError):
            self.load.look(everything=True)
        sample["applications"] = len(self._known)
        self.told.samples.append(sample)

    # --- the end ---

    def _wind_up(self) -> None:
        """All applications end and are seen; the controllers are stopped, the file is the administrator's again."""
        self.note("winding up")
        self.load.end()

        def over() -> bool:
            with suppress(YarnfairError):
                return self.load.kill_all()
            return False

        self._until(over, 180.0, "all applications end")
        time.sleep(3 * PERIOD_S)
        self._calm()
        holder = self._holder()
        for one in sorted(self.controllers, key=lambda one: one is holder):
            # Stopped while a spare lives, the holder would hand over to it.
            if one is holder:
                time.sleep(LEASE_S + PERIOD_S)
            self._step()
            if (code := one.stop()) != 0:
                self.violated(f"{one.name} ended with {code}")
            self._writes(one)
        self.load.look(everything=True)
        left = sorted(path.name for path in self.file.parent.iterdir())
        data = self.file.read_bytes()
        self.told.released = data == THEIRS and left == [self.file.name]
        if not self.told.released:
            self.violated(f"released, and there are {left}, the file is {data!r}")
        used = self.load.used()
        for one in self.controllers:
            with LedgerStore(one.ledger) as store:
                queues = store.accounts().queues
            self.told.accounts[one.name] = {
                path: {
                    "ledger_mb_s": round(queues[path].memory_mb_s, 1) if path in queues else 0.0,
                    "rm_mb_s": last,
                    "rm_most_mb_s": most,
                }
                for path, (last, most) in used.items()
            }
        for name, accounts in self.told.accounts.items():
            for path, found in accounts.items():
                self.note(f"{name} {path}: {found}")
                if beyond(found):
                    self.violated(f"{name}: {path} is {beyond(found):+.0f} MiB s off: {found}")


def beyond(account: Mapping[str, float]) -> float:
    """How far a ledger's sum lies outside what the RM showed last and the most it ever showed, MiB-seconds; else 0.

    An RM that dies with a node forgets what that node's containers had used. What it had shown until then a ledger has
    counted, if its controller was there to see it. What is used while no RM answers is estimated: 3 %, and a moment.
    """
    has, least, most = account["ledger_mb_s"], account["rm_mb_s"], account["rm_most_mb_s"]
    for bound, off in ((least, min(has - least, 0.0)), (most, max(has - most, 0.0))):
        if abs(off) > 0.03 * bound + 1024:
            return off
    return 0.0


def _time_of(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
