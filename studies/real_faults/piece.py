"""A piece of the run: rounds of faults with a calm after each, at its end the accounts."""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from harness.base.errors import YarnfairError
from harness.ledger.store import LedgerStore
from harness.yarn.fair.parse import parse_allocations
from studies.real_faults import faults
from studies.real_faults.controllers import Controller
from studies.real_faults.load import QUEUES
from studies.real_faults.parts import LEASE_S, NODES, PERIOD_S, ExecutorEvent, Parts

#: Faults of a round go on for so long, and come at this mean distance.
_ROUND_S, _BETWEEN_S = (120.0, 240.0), 9.0
#: After the last fault all must be well within two periods and what faults leave behind: a lease of a dead holder, the
#: start of an RM and of a controller, answers that are waited for, what was not asked for after slow answers.
CALM_S = 120.0


class Piece(Parts):
    """Rounds of faults on the parts; what must hold is held against what is there."""

    def interrupt(self) -> None:
        """Ends the faults now; the calm and the accounts still come."""
        self._interrupted = True

    def run(self, seconds: float) -> ExecutorEvent:
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
        self.told.replaced, self.told.place = self.guard.replaced, self.place
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
        """Who says that it wrote held the lease then; nobody logs a traceback."""
        events = one.events()
        if one.tracebacks:
            self.violated(f"{one.name} logs {len(one.tracebacks)} tracebacks")
            one.tracebacks.clear()
        for event in events:
            if event["event"] in ("begin", "end", "release", "lease"):
                self.note(f"{one.name}: {event['level']} {event['event']}: {event['text'][:160]}")
            if event["event"] != "weights" or not event.get("wrote"):
                continue
            now, age_s = time.monotonic(), time.time() - _time_of(event["time"])
            to_s = now - age_s
            if to_s - event["took_s"] < self.guard.disturbed_until_s:
                continue
            owners = self.guard.owner_in(to_s - event["took_s"] - 0.5, to_s + 0.5)
            if one.identity() not in owners:
                self.violated(f"{one.name} wrote at {event['time']}, the lease was of {sorted(owners)}")

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
        if self.sftp is not None:
            self.sftp.start()
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
        holder = self.holder()
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
            nodes = self.running_nodes()
        except YarnfairError as error:
            return error.line()
        if nodes != NODES:
            return f"{nodes} nodes"
        if sum(self._is_active(name, otherwise=False) for name in ("rm1", "rm2")) != 1:
            return "not one ResourceManager is active"
        file = parse_allocations(data)
        wanted = {path: float(file.weight(path) or 1.0) for path in QUEUES}
        if any(abs(has[path] - wanted[path]) > 1e-5 * wanted[path] for path in QUEUES):
            return f"in force is {has}, the file says {wanted}"
        return self.guard.misnamed() or self.guard.apart(has, self.guard.named)

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
        holder = self.holder()
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
        wrong = self.guard.not_released(data)
        self.told.released = not wrong and left == [self.file.name]
        if not self.told.released:
            self.violated(f"released, and there are {left}, the file is {data!r}: {wrong or 'it is right'}")
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
