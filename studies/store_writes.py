"""Thousands of writes to each kind of store of a real Capacity Scheduler's configuration, with another writer between.

    python -m studies.store_writes -o docs/records/store-writes.json

The writer is the controller's own (`CapacityActuator`). Now and then somebody else changes a capacity, or a setting
that the controller does not own, at any moment of a write: each such change has to be found, and one of a setting has
to stay. With ``zk`` there are two ResourceManagers, and the active one is killed three times; ZooKeeper elects.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, YarnfairError
from harness.base.files import read_json
from harness.clusters.local import LocalCluster
from harness.clusters.processes import Process
from harness.clusters.state import ClusterSpec, StateFolder
from harness.control.capacity_actuator import CapacityActuator
from harness.model.plan import Attributes
from harness.results.store import machine
from harness.yarn.capacity.properties import PREFIX, parse_configuration
from harness.yarn.capacity.queues import is_by_hand
from harness.yarn.capacity.source import ConfigurationSource, open_source
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import FileChanged, LocalStore
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmClient
from studies.pair import none_left, start_pair
from studies.result import write
from studies.zookeeper import zookeeper

KINDS = ("memory", "leveldb", "zk", "fs", "file")
QUEUES = [f"root.q{number}" for number in range(10)]
#: What only the other writer changes.
SETTING = f"{PREFIX}root.q1.maximum-capacity"
CAPACITY = f"{PREFIX}root.q0.capacity"
OPTIONS = HttpOptions(attempts=1, read_timeout_s=30, deadline_s=40)


def configuration() -> str:
    """Ten queues with weights, without traps."""
    said = {
        f"{PREFIX}root.queues": ",".join(path.removeprefix("root.") for path in QUEUES),
        f"{PREFIX}global-queue-max-application": "10000",
        **{f"{PREFIX}{path}.capacity": "1w" for path in QUEUES},
        **{f"{PREFIX}{path}.user-limit-factor": "-1" for path in QUEUES},
    }
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in said.items())
    return f"<configuration>\n{rows}</configuration>\n"


@dataclass
class Stand:
    """A running scheduler. ``rms``: its processes; ``fail``: kills the active one; None: nobody takes over."""

    client: RmClient
    source: ConfigurationSource
    file: Path | None
    rms: Callable[[], list[Process]]
    #: Opens what the other writer writes through: a client of its own.
    other: Callable[[], RmClient]
    fail: Callable[[], None] | None = None


@contextlib.contextmanager
def stand(kind: str, folder: Path) -> Iterator[Stand]:
    """A Capacity Scheduler with this kind of store."""
    folder.mkdir(parents=True)
    given = folder / "given.xml"
    given.write_text(configuration())
    name = "yarn.scheduler.configuration"
    properties = {f"{name}.store.class": kind}
    if kind == "leveldb":
        properties[f"{name}.leveldb-store.path"] = str(folder / "leveldb")
    elif kind == "fs":
        properties[f"{name}.fs.path"] = f"file://{folder}/fs"
    elif kind == "zk":
        yield from _pair(folder, properties)
        return
    cluster = LocalCluster(StateFolder(folder / "state"))
    spec = ClusterSpec(nodes=1, scheduler="capacity", allocations=str(given), properties=properties)
    try:
        status = cluster.up(spec, timeout_s=300)
        file = Path(status.scheduler_folder) / "capacity-scheduler.xml" if kind == "file" else None

        def rms() -> list[Process]:
            state = cluster.folder.load()
            assert state is not None
            return [state.processes["rm"]]

        def other() -> RmClient:
            return RmClient([status.address], OPTIONS)

        with other() as client:
            yield Stand(client, open_source(client, LocalStore(file) if file else None), file, rms, other)
    finally:
        none_left(cluster.down(), folder)


def _pair(folder: Path, properties: Mapping[str, str]) -> Iterator[Stand]:
    with zookeeper(folder / "zookeeper") as address:
        more = {
            **properties,
            "hadoop.zk.address": address,
            # The elector of Hadoop 3.5 reads this name alone.
            "yarn.resourcemanager.zk-address": address,
            "yarn.scheduler.configuration.store.max-logs": "0",
            "yarn.resourcemanager.ha.automatic-failover.enabled": "true",
            "yarn.resourcemanager.zk-timeout-ms": "4000",
        }
        (folder / "pair").mkdir()
        with start_pair(folder / "pair", more, capacity=configuration()) as pair:

            def other() -> RmClient:
                return RmClient(list(pair.rms), OPTIONS)

            with other() as client:

                def there() -> bool:
                    with contextlib.suppress(YarnfairError):
                        return client.rest.info().active
                    return False

                def fail() -> None:
                    active = next(n for n, rm in enumerate(pair.rms) if rm.rest == client.rest.http.current)
                    pair.signal(f"rm{active + 1}", signal.SIGKILL)
                    pair.start(f"rm{active + 1}")

                def rms() -> list[Process]:
                    return [pair.processes[name] for name in ("rm1", "rm2")]

                end = time.monotonic() + 60
                while not there():
                    if time.monotonic() > end:
                        raise InputError("no ResourceManager became active in a minute", where=str(folder / "pair"))
                    time.sleep(0.2)
                yield Stand(client, open_source(client, None), None, rms, other, fail)


def _foreign_weight(rng: random.Random) -> str:
    """A weight as another controller writes it. One that a person may have written is an entitlement from then on, and
    would not go back at the release."""
    while is_by_hand(value := f"{rng.uniform(1, 5):.4f}w"):
        pass
    return value


@dataclass
class Meddler:
    """Another writer, in a thread: one change at a random moment of the controller's rounds, then a wait until it may
    be known whether it was found."""

    stand: Stand
    every: int
    seed: int
    made: int = 0
    failed: int = 0
    #: The last value of the setting that the controller does not own, or the last two; one has to stay.
    settings: tuple[str | None, ...] = (None,)
    #: What is being changed, or was and nobody has said anything of it yet: the property.
    open: str | None = None
    #: Whether that change has been made, or (not ``sure``) its answer was lost in a failover.
    done: bool = False
    sure: bool = True
    rounds: int = 0
    round_s: float = 0.05
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until `stop`."""
        rng, client = random.Random(self.seed), self.stand.other()
        with client:
            while not self._stop.is_set():
                begun = self.rounds
                while self.rounds < begun + self.every and not self._stop.wait(0.002):
                    pass
                if self._stop.is_set() or self.open is not None:
                    continue
                time.sleep(rng.random() * self.round_s)
                mine = self.made % 2 == 0
                value = _foreign_weight(rng) if mine else f"{rng.uniform(50, 99):.4f}"
                name = CAPACITY if mine else SETTING
                self.done, self.sure, self.open = False, True, name
                before = self.settings
                if not mine:
                    self.settings = (*before, value)
                try:
                    self._change(client, name, value)
                except YarnfairError:
                    self.failed, self.sure = self.failed + 1, False
                else:
                    self.made += 1
                    if not mine:
                        self.settings = (value,)
                self.done = True

    def stop(self) -> None:
        self._stop.set()

    def _change(self, client: RmClient, name: str, value: str) -> None:
        if self.stand.file is not None:
            # As an administrator edits it: read, change, replace, refresh.
            for _ in range(100):
                place = LocalStore(self.stand.file)
                before = place.read()
                edited = parse_configuration(before, source="file").edited({name: value})
                try:
                    place.write(edited, before=before)
                except FileChanged:
                    continue
                client.refresh_queues()
                return
            raise FileChanged("a hundred times", where=str(self.stand.file))
        path, _, key = name.removeprefix(PREFIX).rpartition(".")
        entry = [{"queue-name": path, "params": {"entry": [{"key": key, "value": value}]}}]
        client.rest.http.request(
            "PUT", "/ws/v1/cluster/scheduler-conf", body={"update-queue": entry}, repeatable=False, words=True
        )


@dataclass
class Counted:
    """What a run has found."""

    writes: int = 0
    found: int = 0
    #: Somebody else's change that was said by nobody, or a setting of theirs that has gone.
    lost: list[str] = field(default_factory=list)
    #: What the controller had written, and was there no more, without anybody else having changed it.
    undone: list[str] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    took_ms: list[float] = field(default_factory=list)
    away_s: list[float] = field(default_factory=list)
    rm_mb: list[float] = field(default_factory=list)
    own_mb: list[float] = field(default_factory=list)


def run(kind: str, writes: int, *, every: int = 20, seed: int = 1, folder: Path | None = None) -> dict[str, Any]:
    """So many writes to a store of this kind; its figures."""
    with tempfile.TemporaryDirectory(prefix="yarnfair-stores-") as own, stand(kind, (folder or Path(own)) / kind) as at:
        return _figures(_run(at, writes, every, seed))


def _run(at: Stand, writes: int, every: int, seed: int) -> tuple[Counted, Meddler]:
    rng, counted = random.Random(seed), Counted()
    actuator, meddler = CapacityActuator(at.source), Meddler(at, every, seed)
    before = at.source.read().values
    actuator.read()
    kills = [writes * part // 4 for part in (1, 2, 3)] if at.fail is not None else []
    thread = threading.Thread(target=meddler.run, daemon=True)
    thread.start()
    down_since, began, looked, noticed = None, time.monotonic(), 0, False
    try:
        while counted.writes < writes:
            if kills and counted.writes >= kills[0]:
                kills.pop(0)
                assert at.fail is not None
                at.fail()
                down_since = time.monotonic()
            # What was changed before this round began: it cannot go through as if nothing were.
            known = meddler.open if meddler.done else None
            allowed, said = meddler.settings, False
            weights = {path: rng.uniform(0.5, 2.0) for path in QUEUES}
            begun = time.perf_counter()
            try:
                drift = actuator.read()
                if drift:
                    said = True
                prepared = actuator.prepare(Attributes(weights))
                actuator.write(prepared)
                actuator.load(at.client)
            except FileChanged:
                said = True
            except (Unreachable, Refused) as error:
                counted.failed[error.what] = counted.failed.get(error.what, 0) + 1
                # What was said before the call failed has been said.
                noticed = noticed or (said and CAPACITY in (known, meddler.open))
                time.sleep(0.2)
                continue
            else:
                took_s = time.perf_counter() - begun
                counted.writes += 1
                counted.took_ms.append(took_s * 1000)
                meddler.round_s = took_s
                if down_since is not None:
                    counted.away_s.append(time.monotonic() - down_since)
                    down_since = None
                if counted.writes % 100 == 0:
                    # Of the first, somebody else may have a say meanwhile.
                    rest = {path: value for path, value in prepared.in_force.items() if path != QUEUES[0]}
                    actuator.confirm(at.client, rest, timeout_s=30, every_s=0.05)
            if said and known is None and meddler.open is None:
                counted.undone.append(f"write {counted.writes}")
            noticed = noticed or (said and CAPACITY in (known, meddler.open))
            if known is not None:
                if known == CAPACITY:
                    counted.found += noticed
                    if not noticed and meddler.sure:
                        counted.lost.append(f"a capacity, before write {counted.writes}")
                noticed, meddler.open = False, None
            has = {} if actuator._now is None else actuator._now.values
            if has and has.get(SETTING) not in {*allowed, *meddler.settings}:
                counted.lost.append(f"a setting, before write {counted.writes}: {allowed} is {has.get(SETTING)}")
            meddler.rounds += 1
            if counted.writes >= looked + max(writes // 50, 1):
                looked = counted.writes
                counted.rm_mb.append(sum(process.memory_mb() or 0.0 for process in at.rms()))
                counted.own_mb.append(float(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20)
                print(counted.writes, round(time.monotonic() - began), counted.rm_mb[-1], file=sys.stderr, flush=True)
    finally:
        meddler.stop()
        thread.join(timeout=60)
    _give_back(at, actuator, before, meddler, counted)
    return counted, meddler


def _give_back(
    at: Stand, actuator: CapacityActuator, before: Mapping[str, str], meddler: Meddler, counted: Counted
) -> None:
    """As a release does; what is there then has to be what was, and the other writer's setting."""
    for _ in range(5):
        actuator.read()
        with contextlib.suppress(FileChanged):
            actuator.write(actuator.original())
            actuator.load(at.client)
            break
    now = at.source.read().values
    for name in sorted(before.keys() | now.keys()):
        if now.get(name) not in (meddler.settings if name == SETTING else (before.get(name),)):
            counted.lost.append(f"after the release {name} is {now.get(name)!r}, not {before.get(name)!r}")
    actuator.confirm(at.client, dict.fromkeys(QUEUES, 1.0), timeout_s=30, every_s=0.1)


def _figures(of: tuple[Counted, Meddler]) -> dict[str, Any]:
    counted, meddler = of
    part = max(len(counted.took_ms) // 10, 1)

    def times(values: Sequence[float]) -> dict[str, float]:
        ordered = sorted(values)
        return {
            "median": round(statistics.median(ordered), 1),
            "p99": round(ordered[int(0.99 * (len(ordered) - 1))], 1),
            "max": round(ordered[-1], 1),
        }

    def over_time(values: Sequence[float]) -> dict[str, float]:
        return {"first": round(values[0], 1), "half": round(values[len(values) // 2], 1), "last": round(values[-1], 1)}

    return {
        "writes": counted.writes,
        "changes_by_the_other": {
            "made": meddler.made,
            "not_answered": meddler.failed,
            "capacities_found": counted.found,
        },
        "lost": len(counted.lost),
        "undone": len(counted.undone),
        "examples": [*counted.lost[:5], *counted.undone[:5]],
        "write_ms": times(counted.took_ms),
        "first_tenth_ms": times(counted.took_ms[:part]),
        "last_tenth_ms": times(counted.took_ms[-part:]),
        "rm_mb": over_time(counted.rm_mb),
        "controller_mb": over_time(counted.own_mb),
        "failovers_away_s": [round(away, 1) for away in counted.away_s],
        "failed_calls": counted.failed,
    }


def main(argv: list[str] | None = None) -> int:
    """``python -m studies.store_writes -o FILE``; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.store_writes")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--writes", type=int, default=10_000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args(argv)
    # Kinds that were measured before stay.
    values: dict[str, Any] = read_json(given.out)["values"] if given.out and given.out.exists() else {}
    values["cores"] = machine()["cores"]
    for kind in given.kinds.split(","):
        values[kind] = run(kind, given.writes)
        values["load_average_at_the_end"] = [round(load, 1) for load in os.getloadavg()]
        write(given.out, f"nice -n -13 python -m studies.store_writes -o {given.out}", values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
