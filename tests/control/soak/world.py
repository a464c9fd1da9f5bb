"""One seed's history: a world is made of it, disturbed by its schedule, healed, looked at, and wound up.

As TigerBeetle's simulator does, safety is looked at while faults go on, liveness after they have ended: chaos, calm,
once more, then all applications end, and the file is given back.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

from harness.control.reports import TickReport
from tests.control.soak import afterwards, capacities, edits, faults, regime
from tests.control.soak.capacity_rm import CapacityRm, Store
from tests.control.soak.checks import Checks
from tests.control.soak.clock import Agenda, MachineClock
from tests.control.soak.cluster import NODE_MB, NODE_VCORES, App, Cluster, Container
from tests.control.soak.disk import Killed
from tests.control.soak.ending import Ending
from tests.control.soak.faults import Fault
from tests.control.soak.installed import installed, watched
from tests.control.soak.lost import Lost
from tests.control.soak.preempting import Preempting
from tests.control.soak.process import Plan, Process
from tests.control.soak.rm import POLL_S, Rm, SharedFile
from tests.control.soak.violated import Violated
from tests.control.soak.wire import Wire

#: Rounds of chaos and calm, and how long chaos lasts, periods.
ROUNDS, CHAOS_PERIODS = 2, 70
#: Before the first fault.
WARM_PERIODS = 4


@dataclass
class History:
    """What came of a seed."""

    seed: int
    ticks: int = 0
    virtual_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    schedule: Sequence[Fault] = ()
    digest: str = ""


class World:
    """Everything of one seed. ``schedule`` None: drawn from the seed."""

    def __init__(self, seed: int, root: Path, schedule: Sequence[Fault] | None = None) -> None:
        self.seed, self.root = seed, root
        self.plan = plan = Plan.drawn(random.Random(f"{seed} plan")).of_scheduler(random.Random(f"{seed} scheduler"))
        if regime.FIFTH <= seed < regime.SEVENTH:
            self.plan = plan = regime.planned_fifth(plan, random.Random(f"{seed} fifth"))
        if regime.SIXTH <= seed < regime.SEVENTH:
            self.plan = plan = regime.planned_sixth(plan, random.Random(f"{seed} sixth"))
        if regime.SEVENTH <= seed < regime.TENTH:
            self.plan = plan = regime.planned_seventh(plan, random.Random(f"{seed} seventh"))
        if regime.EIGHTH <= seed < regime.TENTH:
            self.plan = plan = regime.planned_eighth(plan, random.Random(f"{seed} eighth"))
        if regime.NINTH <= seed < regime.TENTH:
            self.plan = plan = regime.planned_ninth(plan, random.Random(f"{seed} ninth"))
        if regime.SECOND <= seed < regime.FIFTH or seed >= regime.TENTH:
            self.plan = plan = regime.planned(plan, random.Random(f"{seed} second"))
        if regime.THIRD <= seed < regime.FIFTH:
            self.plan = plan = regime.planned_third(plan, random.Random(f"{seed} third"))
        if regime.FOURTH <= seed < regime.FIFTH:
            self.plan = plan = regime.planned_fourth(plan, random.Random(f"{seed} fourth"))
        if seed >= regime.TENTH:
            self.plan = plan = regime.planned_tenth(plan, random.Random(f"{seed} tenth"))
        #: Queues that were taken off their parents' lists, and whose properties are left.
        self.delisted: list[str] = []
        #: How the administrator's file is read and changed.
        self.words: ModuleType = capacities if plan.capacity else edits
        rng = random.Random(f"{seed} world")
        self.agenda = Agenda()
        self.history = History(seed)
        self._digest = hashlib.sha256()
        folder = root / "conf"
        folder.mkdir()
        name = "capacity-scheduler.xml" if plan.capacity else "fair-scheduler.xml"
        self.file = (Store if plan.store else SharedFile)(folder / name, lambda: self.agenda.now_s)
        self.lease_path = folder / f".{name}.lease"
        if plan.capacity:
            whole = (plan.nodes * NODE_MB, plan.nodes * NODE_VCORES)
            self.pristine = capacities.make(rng, plan.capacity, whole=whole, creates=plan.creates)
        else:
            self.pristine = edits.make(rng, ad_hoc=rng.random() < 0.4)
        if isinstance(self.file, Store):
            self.pristine = self.file.begin(self.pristine)
            self.file.on_put, self.file.on_change = self._reload, lambda: self.replaced(self.file.path)
        else:
            self.file.path.write_bytes(self.pristine)
        cluster_rng = random.Random(f"{seed} workload")
        self.cluster = Cluster(
            self.agenda,
            cluster_rng,
            nodes=plan.nodes,
            period_s=plan.settings.period_s,
            tasks=plan.tasks,
            light=plan.light,
        )
        self.cluster.preempts = plan.preempts
        kind = CapacityRm if plan.capacity else Rm
        self.rms: list[Rm] = [kind(f"rm{n}", self.cluster, self.file) for n in range(1, 3 if plan.pair else 2)]
        for rm in self.rms:
            rm.site = {"yarn.resourcemanager.cluster-id": "cluster"} if plan.pair else {}
        for rm in self.rms[1:]:
            rm.active = False
            rm.load()
        self.active.begin(recovers=False)
        if plan.eighth:
            # A ledger that begins beside a younger one takes the budget of killed work for spent.
            self.active.started_ms -= 2 * 3_600_000
        self.cluster.on_end, self.cluster.on_start = self._container_ended, self._container_started
        self.cluster.on_finish = self._finished
        self.wire = Wire(self.rms, self.wait, random.Random(f"{seed} network"), lambda: self.current.name)
        self.lost = Lost(self)
        self.checks, self.ending = Checks(self), Ending(self)
        #: Most that preemption has killed within an hour because of what controllers have written, MiB-seconds.
        self.most_killed = 0.0
        self.preempting = Preempting(self) if plan.eighth else None
        self.processes: list[Process] = []
        self._acting: list[Process] = []
        self.endings: dict[int, Callable[[], None]] = {}
        self.broken = self.intruded = self.intruder_seen = self.changed_in_tick = False
        self.poll_misses = self.new_queues = 0
        #: Whether anybody had a queue of his own.
        self.ad_hoc_seen = False
        #: Until when what a holder last said of the file may be lost to the others with its lease; until when
        #: somebody's edit can be told by that alone.
        self.lease_lost_until_s = self.foreign_until_s = 0.0
        #: When the RM forgot applications, and how many.
        self.forgotten: list[tuple[float, int]] = []
        self.most_assumed_mb_s = 0.0
        self.most_decisions = 8
        self.writer = ""
        #: The file as controllers wrote it since the administrator changed it last.
        self.versions: list[bytes] = []
        #: Whether somebody has put back one of them.
        self.older_seen = False
        self.last: dict[str, TickReport] = {}
        self._saved = self.broken_data = b""
        self._end_number = 0
        spans = [
            (WARM_PERIODS + n * 1000.0, WARM_PERIODS + n * 1000.0 + CHAOS_PERIODS) for n in range(ROUNDS)
        ]  # each round's times begin at a thousand of its own
        drawn = faults.drawn(random.Random(f"{seed} faults"), spans, plan)
        self.history.schedule = list(drawn if schedule is None else schedule)

    # --- who acts ---

    @property
    def current(self) -> Process:
        return self._acting[-1]

    @contextlib.contextmanager
    def acting(self, process: Process) -> Iterator[None]:
        self._acting.append(process)
        try:
            yield
        finally:
            self._acting.pop()

    @property
    def active(self) -> Rm:
        return next(rm for rm in self.rms if rm.active)

    @property
    def released(self) -> bool:
        """Whether a guard has released, and the file is the administrator's until somebody says to go on."""
        return any(process.released for process in self.processes)

    def wait(self, seconds: float) -> None:
        """The one who acts waits; whatever else is due happens meanwhile."""
        if self._acting:
            process = self.current
            seconds, process.pause_s = seconds + process.pause_s, 0.0
            if process.disk.dead:
                raise Killed
        acting, self._acting = self._acting, []
        end_s = self.agenda.now_s + max(seconds, 0.0)
        try:
            self.agenda.run_until(end_s)
        finally:
            self._acting = acting
        if acting and self.agenda.now_s > end_s + 1.0:
            # Another one's tick began while this one waited, and lasted longer.
            acting[-1].held_up = True

    def periods(self, rng: random.Random, least: float, most: float) -> float:
        """A time within so many periods, seconds."""
        return rng.uniform(least, most) * self.plan.settings.period_s

    def some(self, rng: random.Random) -> Process:
        return rng.choice(self.processes)

    # --- what is noted ---

    def note(self, text: str) -> None:
        text = text.replace(str(self.root), "")
        self._digest.update(f"{self.agenda.now_s:.6f} {text}\n".encode())
        if self.trace is not None:
            self.trace(f"{self.agenda.now_s:12.3f} {text}")

    trace: Callable[[str], None] | None = None

    def replaced(self, path: Path) -> None:
        """A controller's disk has moved a file to its place."""
        if path == self.file.path:
            self.file.replaced()
            if self.poll_misses:
                self.poll_misses -= 1
                self.active.loaded_mark = self.file.mark
            self.note(f"file {hashlib.sha256(self.file.read()).hexdigest()[:16]}")
        if self._acting:
            self.checks.replaced(path, self.current)
            if path == self.file.path and not self.broken:
                self.versions = [*self.versions[-9:], self.file.read()]

    def _container_ended(self, app: App, container: Container) -> None:
        self.lost.ended(app, container)
        for rm in self.rms:
            rm.ended(app, container)

    def _finished(self, app: App) -> tuple[int, int] | None:
        self.lost.finished(app)
        return self.active.figure(app) if self.active.up else None

    def _container_started(self, app: App, container: Container) -> None:
        self.lost.started(app, container.memory_mb)
        for rm in self.rms:
            rm.started(app, container)

    def _ticked(self, process: Process, report: TickReport) -> None:
        self.history.ticks += 1
        self.last[process.name] = report
        weights = "" if report.record is None else dict(report.record.attributes.weights)
        used = {queue: round(usage[0], 3) for queue, usage in report.consumed.items()}
        alarms = [(alarm.kind, alarm.text) for alarm in report.alarms]
        self.note(f"{process.name} tick {process.ticks} {weights} {used} {report.wrote} {alarms}")
        self.checks.ticked(process, report)

    # --- what faults need ---

    def restart(self, rng: random.Random, *, older: bytes | None = None) -> faults.End:
        rm = self.active
        if not rm.up:
            return False
        rm.up = self.cluster.served = False

        def begins() -> None:
            rm.up = self.cluster.served = True
            rm.begin(recovers=True, older=older)
            self.lost.back(self._nodes_return(rm, rng))

        self.lost.begin()
        return self.periods(rng, 0.1, 5), begins

    def fail_over(self, rng: random.Random) -> faults.End:
        old = self.active
        new = next(rm for rm in self.rms if rm is not old)
        if not new.up or not old.up:
            return False
        old.active, new.active = False, True
        new.begin(recovers=True)
        self.lost.begin()
        self.lost.back(self._nodes_return(new, rng))
        return None

    def _nodes_return(self, rm: Rm, rng: random.Random) -> float:
        """When the last one is back."""
        last_s, cluster, began_ms = 0.0, self.cluster, rm.started_ms
        cluster.registered = [False] * len(cluster.alive)

        def back(node: int) -> None:
            if rm.active and rm.started_ms == began_ms:
                self.lost.brought(rm.node_back(node))
                cluster.registered[node] = True
                cluster.assign()

        if rng.random() < 0.5:
            self.somebody_looks(60.0, rng.uniform(0.5, 4.0))
        for node in range(len(cluster.alive)):
            delay_s = rng.choice((0.0, rng.uniform(0.0, 10.0), rng.uniform(0.0, 60.0)))
            if self.plan.fifth:
                delay_s = rng.choice((rng.uniform(0.0, 5.0), rng.uniform(20.0, 60.0)))
            self.agenda.after(delay_s, functools.partial(back, node))
            last_s = max(last_s, delay_s)
        return self.agenda.now_s + last_s

    def somebody_looks(self, lasts_s: float, every_s: float) -> None:
        """A user's page shows all applications, again and again: what the RM computes for it, it keeps."""
        end_s = self.agenda.now_s + lasts_s

        def look() -> None:
            self.active.looked_at()
            if self.agenda.now_s < end_s:
                self.agenda.after(every_s, look)

        look()

    def spare_life(self, process: Process) -> None:
        process.disk.kill_in = None

    def second(self, rng: random.Random) -> faults.End:
        known = next((p for p in self.processes if p.name == "B"), None)
        if known is not None or self.wire.alien is not None:
            return False
        settings = self.plan.settings
        if not settings.lease_s and any(p.gave_back or p.released for p in self.processes):
            return False  # nobody could tell the intruder's weights from the administrator's
        process = Process("B", self, settings, MachineClock(self.agenda), self._ticked)
        process.clock.jumped_s = rng.choice((0.0, 5.0, -40.0))
        self.processes.append(process)
        process.begin()
        if settings.lease_s:
            return None
        self.intruded = self.intruder_seen = True

        def ends() -> None:
            if process.ticking:
                self.agenda.after(settings.period_s, ends)
                return
            process.wanted = False
            process.end("hold")
            self.intruded = False

        return self.periods(rng, 2, 8), ends

    def break_file(self, rng: random.Random, how: bytes | Callable[[str], None]) -> faults.End:
        if self.broken:
            return False
        self.broken, self._saved = True, self.file.read()
        path = self.file.path
        if isinstance(how, bytes):
            self.broken_data = how
            path.write_bytes(how)
        else:
            path.unlink()
            how(str(path))
        self.file.replaced()

        def whole() -> None:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            self.broken = self.checks.root_dropped = False
            # Meanwhile a shadow may have restored the administrator's values. These are not overwritten (seed 2000454).
            shadows = [p for p in self.processes if p.left_over and p.settings.mode == "shadow"]
            given_back = self.released or any(not p.controller._left_over for p in shadows)
            self.file.put(self.pristine if given_back else self._saved)

        return self.periods(rng, 0.5, 6), whole

    def foreign(self, lasts_s: float) -> None:
        """Somebody writes what only those who know whose the values are can tell from the administrator's."""
        settings = self.plan.settings
        self.foreign_until_s = self.agenda.now_s + lasts_s + settings.lease_s + 3 * settings.period_s

    def in_a_look(self, change: Callable[[], object]) -> None:
        """Somebody changes what is a controller's between two of its answers."""
        before, who = self.words.read(self.file.read()), self.current
        change()
        after = self.words.read(self.file.read())
        if changed := {path: queue.weight for path, queue in after.items() if queue != before.get(path)}:
            self.changed_in_tick = True
            self.checks.changed_in_a_look(who, changed)

    def when_whole(self, do: Callable[[], None]) -> None:
        if self.broken:
            self.agenda.after(self.plan.settings.period_s, lambda: self.when_whole(do))
        else:
            do()

    def edit(self, change: Callable[[bytes], bytes]) -> faults.End:
        """The administrator changes his file, and what the controller has in it stays."""
        if self.broken:
            return False
        self.pristine = change(self.pristine)
        if isinstance(self.file, Store):
            self.pristine = capacities.stored(capacities.properties(self.pristine))
        self.put(change(self.file.read()))
        self.changed_in_tick = True
        return None

    def put(self, data: bytes) -> None:
        """The administrator writes his file, and has it in force where no RM finds it by itself."""
        self.file.put(data)
        self.versions = []
        if self.plan.capacity and not self.plan.store:
            self._reload()

    def _reload(self) -> None:
        if self.active.up:
            self.active.load()

    def idle_leaf(self, rng: random.Random) -> str:
        """A leaf of the file without applications, of which there are others beside it."""
        queues = self.words.read(self.pristine)
        leaves = [q for q in queues.values() if q.leaf and self._alone(q, queues)]
        busy = {app.queue for app in self.cluster.apps.values()}
        idle = [q.path for q in leaves if q.path not in busy]
        return rng.choice(idle).rpartition(".")[2] if idle else ""

    def _alone(self, queue: edits.Queue, queues: dict[str, edits.Queue]) -> bool:
        return sum(q.parent == queue.parent for q in queues.values()) > 1 and len(queues) > 3

    def owned_leaves(self) -> list[str]:
        if not self.processes or not self.processes[0].running:
            return []
        managed = self.processes[0].controller.actuator.managed
        theirs = self.words.read(self.pristine)
        share = self.words.SHARE
        return [path for path, values in managed.items() if share in values and path in theirs and theirs[path].leaf]

    def truth_since(self, process: Process) -> dict[str, int]:
        """Queue -> what it has used since a ledger's first look."""
        sums: dict[str, int] = {}
        for app in (*self.cluster.ended, *self.cluster.apps.values()):
            used = app.truth(self.agenda.now_s)[0] - (process.baseline or {}).get(app.id, (0, 0))[0]
            sums[app.queue] = sums.get(app.queue, 0) + used
        return sums

    # --- the history ---

    def run(self) -> History:
        history = self.history
        try:
            with installed(self), watched():
                self._run()
        except Violated as error:
            history.violation = str(error)
        except Killed:
            raise AssertionError("a process was killed that did not act") from None
        except Exception as error:
            history.violation = f"{type(error).__name__}: {error} ({_place(error)})"
        history.violation = history.violation.replace(str(self.root), "")
        if history.violation:
            self.note(f"violated: {history.violation}")
        history.virtual_s, history.digest = self.agenda.now_s, self._digest.hexdigest()
        for process in self.processes:
            with contextlib.suppress(Exception):
                process._close()
        return history

    def _run(self) -> None:
        period_s = self.plan.settings.period_s
        if self.plan.spare:
            self.agenda.after(1.7 * period_s, lambda: self.second(random.Random(f"{self.seed} spare")))
        for _ in range(self.plan.warm_apps):
            self.cluster.submit(self.cluster.leaves()[0])
        if self.plan.shadow:
            self.agenda.after(2.3 * period_s, self._shadow)
        first = Process("A", self, self.plan.settings, MachineClock(self.agenda), self._ticked)
        self.processes.append(first)
        self.agenda.after(0.5, first.begin)
        self._poll()
        for n in range(ROUNDS):
            begun_s = self.agenda.now_s - n * 1000.0 * period_s
            mine = [f for f in self.history.schedule if n * 1000.0 <= f.at < (n + 1) * 1000.0]
            for fault in mine:
                self.agenda.at(begun_s + fault.at * period_s, lambda fault=fault: self._strike(fault))
            if mine or n == 0:
                self.agenda.run_until(self.agenda.now_s + (WARM_PERIODS + CHAOS_PERIODS) * period_s)
            afterwards.heal(self)
            afterwards.calm(self)
        afterwards.wind_up(self)

    def _shadow(self) -> None:
        """Another controller looks on, with a ledger of its own; it decides and writes nothing."""
        settings = replace(self.plan.settings, mode="shadow")
        self.processes.append(Process("S", self, settings, MachineClock(self.agenda), self._ticked))
        self.processes[-1].begin()

    def _poll(self) -> None:
        for rm in self.rms:
            rm.poll()
        self.agenda.after(POLL_S, self._poll)

    def _strike(self, fault: Fault) -> None:
        if not self.processes:
            return
        ending = faults.KINDS[fault.kind](self, random.Random(f"{self.seed} {fault.draw}"))
        if ending is False:
            return
        self.history.faults[fault.kind] += 1
        self.note(f"fault {fault}")
        if isinstance(ending, tuple):
            self._end_number += 1
            number, (seconds, end) = self._end_number, ending
            self.endings[number] = end
            self.agenda.after(seconds, lambda: self.end_fault(number))

    def end_fault(self, number: int) -> None:
        """A fault that lasts is over."""
        if (end := self.endings.pop(number, None)) is not None:
            self.note(f"end of fault {number}")
            end()


def _place(error: BaseException) -> str:
    found, at = "", error.__traceback__
    while at is not None:
        found = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}"
        at = at.tb_next
    return found


def live(seed: int, schedule: Sequence[Fault] | None = None, trace: Callable[[str], None] | None = None) -> History:
    """The history of a seed, in a folder in memory that is gone afterwards."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="soak-", dir=base))
    # A history ends within seconds: what it leaves is collected once, after it.
    collects = gc.isenabled()
    gc.disable()
    try:
        world = World(seed, root, schedule)
        world.trace = trace
        return world.run()
    finally:
        shutil.rmtree(root, ignore_errors=True)
        if collects:
            gc.enable()
            gc.collect()
