"""Controllers as processes: each on a machine of its own, with its ledger, until it is stopped or killed."""

from __future__ import annotations

import io
import random
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.base.errors import YarnfairError
from harness.cli.enforce import _Signals
from harness.control.capacity_actuator import CapacityActuator
from harness.control.events import Observed
from harness.control.file_actuator import FileActuator
from harness.control.guards import Guards
from harness.control.interfaces import Actuator, Entitlements, ObserverContext
from harness.control.released import go_on
from harness.control.reports import TickReport
from harness.control.rm_poller import RmPoller, open_rm_poller
from harness.control.settings import ControlSettings
from harness.control.telemetry import Log, Metrics, TickLog
from harness.control.wall import Controller
from harness.ledger.store import LedgerStore
from harness.policies import make_policy
from harness.yarn.capacity.source import FileSource, StoreSource
from harness.yarn.files import LocalStore
from harness.yarn.http import HttpOptions
from harness.yarn.rmclient import RmAddress, RmClient
from tests.control.soak.clock import MachineClock
from tests.control.soak.disk import Disk, Killed
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World


@dataclass(frozen=True)
class Backup:
    """A copy of a ledger, which applications the RM had forgotten by then, and when that was."""

    folder: Path
    forgotten: frozenset[str]
    #: When it was made.
    made_s: float


@dataclass(frozen=True)
class Plan:
    """What a seed's controllers are told."""

    policy: str
    sets: dict[str, str]
    settings: ControlSettings
    pair: bool
    nodes: int
    warm_apps: int
    #: How long tasks are, against a seed's usual ones; whether a spare stands by from the begin.
    tasks: float = 1.0
    spare: bool = False
    #: Whether all that comes has room, so that nothing begins when something ends.
    light: bool = False
    #: Whether a shadow looks on.
    shadow: bool = False
    #: Of a Capacity Scheduler: what its capacities are ("" a Fair Scheduler's); whether the RM keeps them in a store.
    capacity: Literal["", "weight", "percent", "absolute"] = ""
    store: bool = False
    #: Whether it is of the second regime (tests.control.soak.regime).
    second: bool = False
    #: Whether it is of the third, which has all of the second.
    third: bool = False
    #: Whether it is of the fourth, which has all of the third.
    fourth: bool = False
    #: Whether it is of the fifth, which has nothing of the second to fourth.
    fifth: bool = False
    #: Whether it is of the sixth, whose plans are those of the fifth.
    sixth: bool = False
    #: Whether one parent auto-creates its queues.
    creates: bool = False
    #: Whether it is of the seventh, which has nothing of the second to sixth; whether preemption is on at its begin.
    seventh: bool = False
    preempts: bool = False
    #: Whether it is of the eighth, which has all of the seventh, and whose preemption kills.
    eighth: bool = False
    #: Whether it is of the tenth, in which queues are taken off their parents' lists.
    tenth: bool = False

    @classmethod
    def drawn(cls, rng: random.Random) -> Plan:
        policy = rng.choices(("ltrf", "hltrf", "static", "fair"), (70, 12, 8, 10))[0]
        sets: dict[str, str] = {}
        if policy == "ltrf" and rng.random() < 0.7:
            sets["horizon_s"] = rng.choice(("100", "600", "3600"))
        if policy == "hltrf":
            sets["t_wait"] = rng.choice(("4", "30"))
        period_s = rng.choice((1.0, 2.0, 5.0, 5.0, 10.0, 15.0, 30.0, 60.0))
        lease_s = rng.choice((0.0, 3.0, 6.0)) * period_s
        settings = ControlSettings(
            period_s=period_s,
            refresh="poll" if rng.random() < 0.2 else "rpc",
            verify_every_s=rng.choice((period_s, 5.0, 30.0)),
            full_look_every_s=rng.choice((2 * period_s, 60.0, 600.0)),
            mode=rng.choice(("bounded", "bounded", "full")),
            max_ratio=rng.choice((1.5, 2.0, 4.0)),
            lease_s=max(lease_s, 15.0) if lease_s else 0.0,
            ad_hoc="name" if rng.random() < 0.2 else "scale",
        )
        pair, nodes, warm_apps = rng.random() < 0.6, rng.randint(2, 4), rng.choice((0, 0, 3))
        tasks, spare = rng.choice((1.0, 1.0, 30.0)), bool(lease_s) and rng.random() < 0.5
        light, shadow = rng.random() < 0.3, rng.random() < 0.15
        if rng.random() < 0.3:
            guards = Guards(
                longest_wait_s=rng.choice((None, 8 * period_s)),
                refused_per_hour=rng.choice((None, 2)),
                rm_response_s=rng.choice((None, 0.3)),
            )
            settings = replace(settings, guards=guards)
        return cls(policy, sets, settings, pair, nodes, warm_apps, tasks, spare, light, shadow)

    def of_scheduler(self, rng: random.Random) -> Plan:
        """One in five is of a Capacity Scheduler: no file that the RM polls, and no lease beside a store."""
        if rng.random() >= 0.2:
            return self
        capacity: Literal["weight", "percent"] = "weight" if rng.random() < 0.6 else "percent"
        store = rng.random() < 0.5
        settings = replace(self.settings, refresh="rpc", ad_hoc="scale")
        if store:
            settings = replace(settings, lease_s=0.0)
        return replace(self, settings=settings, capacity=capacity, store=store, spare=self.spare and not store)


@dataclass
class Sink(io.TextIOBase):
    """Where a log goes: counted, not kept."""

    lines: int = 0
    size: int = 0
    new: list[str] = field(default_factory=list)

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        self.size += len(text)
        self.new.append(text)
        return len(text)

    def flush(self) -> None:
        pass

    def taken(self) -> str:
        """What was written since this was last called."""
        text = "".join(self.new)
        self.new.clear()
        return text


@dataclass(eq=False)
class Process:
    """One controller. ``lease``: whether it asks for the lease at all."""

    name: str
    world: World
    settings: ControlSettings
    clock: MachineClock
    on_report: Callable[[Process, TickReport], None]
    wanted: bool = True
    running: bool = False
    ticking: bool = False
    ticks: int = 0
    #: Ticks since it was started, and when the last one began.
    turns: int = 0
    begun_s: float = 0.0
    #: When it was started last.
    started_s: float = 0.0
    #: As they were then: the RM that is active, and how often others had written the file.
    begun_rm: tuple[str, int, bool] = ("", 0, False)
    begun_edits: int = 0
    #: After its next death it is not begun again for so long, seconds.
    down_s: float = 0.0
    deaths: int = 0
    folder: Path = Path()
    log: Sink = field(default_factory=Sink)
    pause_s: float = 0.0
    #: Whether a wait within this tick lasted longer than it should have, because another one's tick ran meanwhile.
    held_up: bool = False
    #: What applications had used at the first look of this ledger (None: no look yet, or it cannot be told).
    baseline: dict[str, tuple[int, int]] | None = None
    #: Queue -> how far that may be from the truth, MiB-seconds.
    baseline_slack: dict[str, float] = field(default_factory=dict)
    looked: bool = False
    died_since_tick: bool = False
    warnings: int = 0
    file_error: str = ""
    ledger_error: str = ""
    slow_s: float = 0.0
    #: Whether it has given the file back, and not looked at it since: what it finds there is the administrator's to it.
    gave_back: bool = False
    #: Whether it was killed while its values stood in the file, and begins as a shadow.
    left_over: bool = False
    #: Whether it is to begin in another mode, or to come back from one.
    mode_changes: bool = False
    #: The older copy of its ledger with which it begins next.
    restored: Backup | None = None
    #: Since when its ledger has been deleted under it.
    deleted_s: float | None = None
    #: Whether its last tick that looked could not keep its accounts: what it counted then is lost when it ends.
    unkept: bool = False
    #: When it was told to go on after a guard's release.
    resumed_s: float = -1.0

    def __post_init__(self) -> None:
        self.folder = self.world.root / f"{self.name}-0"
        self.folder.mkdir()
        self.disk = self._new_disk()

    def _new_disk(self) -> Disk:
        disk = Disk(f"{self.name}{self.deaths}-{self.ticks}", self.world.agenda.pass_by, self.world.replaced)
        disk.rng = random.Random(f"{self.world.seed} {self.name} {self.deaths}")
        disk.on_kill = self._copy_ledger
        disk.file_error, disk.ledger_error, disk.slow_s = self.file_error, self.ledger_error, self.slow_s
        return disk

    def disturb(self, *, file_error: str = "", ledger_error: str = "", slow_s: float = 0.0) -> None:
        """What its disk does from now on."""
        self.file_error, self.ledger_error, self.slow_s = file_error, ledger_error, slow_s
        self.disk.file_error, self.disk.ledger_error, self.disk.slow_s = file_error, ledger_error, slow_s

    def _copy_ledger(self) -> None:
        """The ledger's files as they are at the moment of death."""
        new = self.world.root / f"{self.name}-{self.deaths + 1}"
        new.mkdir()
        connection = getattr(getattr(self, "store", None), "_db", None)
        for part in ("", "-wal"):
            source = self.folder / f"ledger.db{part}"
            if not part and self.deleted_s is not None:
                source = self.folder / "deleted.db"
            if source.exists():
                shutil.copyfile(source, new / f"ledger.db{part}")
        self._copy_lock_file(new)
        wal = new / "ledger.db-wal"
        if self.disk.power and wal.exists():
            synced = connection is None or connection.execute("PRAGMA synchronous").fetchone()[0] >= 2
            data = wal.read_bytes()
            if synced:
                # Pages of the transaction that was going on may lie behind what was kept.
                wal.write_bytes(data + self.disk.rng.randbytes(self.disk.rng.randrange(5000)))
            else:
                wal.write_bytes(data[: self.disk.rng.randrange(len(data) + 1)])

    def _copy_lock_file(self, new: Path) -> None:
        """What it has of the ledger is not synced: a loss of power may cut it anywhere."""
        lock = self.folder / "ledger.db.lock"
        if lock.exists():
            data, rng = lock.read_bytes(), random.Random(f"{self.world.seed} {self.name} {self.deaths} lock")
            cut = self.disk.power and rng.random() < 0.5
            (new / lock.name).write_bytes(data[: rng.randrange(len(data) + 1)] if cut else data)

    # --- its life ---

    def begin(self) -> None:
        """As the system's supervisor starts it. What keeps it from starting: it is tried again later."""
        if not self.wanted or self.running:
            return
        self.undelete_ledger()
        world = self.world
        self.disk = self._new_disk()
        with world.acting(self):
            try:
                self._open()
            except YarnfairError as error:
                world.note(f"{self.name} does not start: {error.line()}")
                self._close()
                world.agenda.after(max(self.settings.period_s, 5.0), self.begin)
                return
            except Killed:
                self._died()
                return
        self.running, self.turns, self.started_s = True, 0, world.agenda.now_s
        accounts = self.controller.accounts.apps

        def knows(app: str) -> tuple[int, int] | None:
            account = accounts.get(app)
            return None if account is None else (account.memory_mb_s, account.vcore_s)

        if self.restored is not None:
            knew = world.wire.gone_back(self.name, knows, self.restored.forgotten)
            world.lost.restored(knew, self.restored.made_s)
            self.restored = None
        world.lost.unkept(self.name, world.wire.forgotten(self.name, knows))
        self.turn()

    def _open(self) -> None:
        world = self.world
        self.store = LedgerStore(self.folder / "ledger.db")
        self.client = RmClient(
            [RmAddress.of(rm.base) for rm in world.rms],
            HttpOptions(user="yarn"),
            clock=self.clock.monotonic,
            sleep=world.wait,
        )
        policy = make_policy(world.plan.policy, dict(world.plan.sets))
        world.checks.begun(self)
        tick_log = TickLog(Log(self.log), policy, self.clock.monotonic)
        self.tick_log, metrics = tick_log, Metrics(self.clock.time)

        def on_tick(report: TickReport) -> None:
            metrics(report)
            tick_log(report)

        file, document = LocalStore(world.file.path), self.store.document
        actuator: Actuator[RmClient] = FileActuator.restored(file, document)
        if world.plan.capacity:
            source = StoreSource(self.client.rest.http) if world.plan.store else FileSource(file)
            actuator = CapacityActuator.restored(source, document)
        self.controller = Controller(
            self.settings,
            self.client,
            actuator,
            self.store,
            policy,
            open_observer=self._open_observer,
            on_tick=on_tick,
        )

    def _open_observer(self, client: RmClient, context: ObserverContext) -> RmPoller:
        """Return the product's poller of the RM; the simulated network is told while this process polls."""
        poller, wire = open_rm_poller(client, context), self.world.wire
        look = poller.look

        def observed(actuator: Entitlements) -> Observed:
            with wire.looking(self.name):
                return look(actuator)

        poller.look = observed  # type: ignore[method-assign]
        return poller

    def _close(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def turn(self) -> None:
        """One tick, and the next one a period later."""
        if not self.running or self.ticking:
            return
        world, begun_s = self.world, self.world.agenda.now_s
        self.ticking, world.changed_in_tick, self.begun_s = True, False, begun_s
        self.begun_rm, self.begun_edits, self.held_up = world.active.standing(), world.file.edits, False
        world.wire.begin_tick(self.name)
        with world.acting(self):
            try:
                report = self.controller.tick()
            except Killed:
                self.ticking = False
                self._died()
                return
            self.ticking = False
            self.gave_back &= not self.controller.actuator.baseline
            self.ticks += 1
            self.turns += 1
            self.on_report(self, report)
        world.wire.ticked()
        if self.running:
            world.agenda.at(max(begun_s + self.settings.period_s, world.agenda.now_s), self.turn)

    @property
    def released(self) -> bool:
        """Whether a guard has released, and nobody has told it to go on."""
        return self.running and bool(self.controller.released)

    def told_to_go_on(self) -> bool:
        """As `yarnfair enforce --resume`; whether it could be said."""
        if not self.released or self.ticking or self.ledger_error or self.deleted_s is not None:
            return False
        with self.world.acting(self):
            go_on(self.folder / "ledger.db")
        self.resumed_s = self.world.agenda.now_s
        return True

    def _died(self) -> None:
        self.running = False
        self._close()
        self.deaths += 1
        self.died_since_tick = True
        self.folder = self.world.root / f"{self.name}-{self.deaths}"
        self.world.note(f"{self.name} was killed")
        self.world.agenda.after(max(self.settings.period_s * 0.7, self.down_s), self.begin)
        self.down_s = 0.0

    def kill(self) -> None:
        """It ends at once, between two ticks."""
        self.disk.dead = True
        self._copy_ledger()
        self._died()

    def backed_up(self) -> Backup:
        """A copy of its ledger as it is now."""
        # Two copies may be made between two ticks.
        copy = Path(tempfile.mkdtemp(prefix=f"{self.name}-backup-{self.ticks}-", dir=self.world.root))
        for source in self.folder.glob("ledger.db*"):
            shutil.copyfile(source, copy / source.name)
        return Backup(copy, frozenset(self.world.active.forgotten), self.world.agenda.now_s)

    def restore_ledger(self, copy: Backup, *, whole: bool = False, cut: bool = False) -> None:
        """Somebody puts an older copy in place of its ledger, as a backup holds it: the database alone, or the
        ``whole`` folder with the lock file. ``cut``: that has lost, or never had, all but its first line."""
        lock = self.folder / "ledger.db.lock"
        if cut and lock.exists():
            lock.write_bytes(lock.read_bytes().partition(b"\n")[0] + b"\n")
        for part in ("", "-wal", "-shm", *([".lock"] if whole else [])):
            here, there = self.folder / f"ledger.db{part}", copy.folder / f"ledger.db{part}"
            here.unlink(missing_ok=True)
            if there.exists():
                shutil.copyfile(there, here)
        self.died_since_tick = True
        self.restored = copy

    def delete_ledger(self) -> None:
        """Somebody deletes its ledger; it can be undone."""
        (self.folder / "ledger.db").rename(self.folder / "deleted.db")
        self.deleted_s = self.world.agenda.now_s

    def undelete_ledger(self) -> None:
        self.deleted_s, deleted = None, self.folder / "deleted.db"
        if deleted.exists():
            deleted.replace(self.folder / "ledger.db")

    def signalled(self, name: str) -> None:
        """The system sends it a signal; what the product makes of it, and what an ended process leaves."""
        number = signal.Signals[f"SIG{name}"]
        self.world.note(f"{self.name} is sent SIG{name}")
        if number == _Signals.RELOAD:
            with self.world.acting(self):
                policy = make_policy(self.world.plan.policy, dict(self.world.plan.sets))
                self.controller = self.controller.remade(self.settings, policy)
        elif number in _Signals.ENDING:
            held = self.controller.holds and self.settings.mode != "shadow"
            words = self.end("release")
            if held and words:
                self.world.checks.ended(self, words)
        elif number == signal.SIGKILL:
            self.kill()
        else:
            raise Violated(f"{self.name} ends by SIG{name}, and what it has written stays in force")

    def end(self, how: str) -> str:
        """Stops it as an administrator does: ``release`` or ``hold``. Its words; "" where it was killed meanwhile."""
        if not self.running:
            return ""
        self.running, self.gave_back = False, how == "release"
        # What could not be kept is not known when it begins again.
        self.died_since_tick |= bool(self.ledger_error) or self.deleted_s is not None or self.unkept
        with self.world.acting(self):
            try:
                words = self.controller.stop("release" if how == "release" else "hold", self.world.wait)
            except YarnfairError as error:
                words = f"not {how}d: {error.line()}"
            except Killed:
                self._died()
                return ""
        self._close()
        self.world.checks.stopped(self)
        return words
