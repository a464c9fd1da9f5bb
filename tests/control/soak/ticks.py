"""What must hold at the end of every tick beside accounts and alarms: what a controller believes, whom it asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.control.reports import TickReport
from harness.model.plan import WEIGHT_MIN
from harness.model.snapshot import QueueView
from tests.control.soak.capacities import UNITS
from tests.control.soak.capacity_rm import CapacityRm
from tests.control.soak.preempting import HOUR_S
from tests.control.soak.process import Process
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World

#: Alarms that say why nothing was seen: of the RM, of the clocks, of another cluster's RM.
UNSEEN = frozenset({"observation", "clock", "cluster"})
#: Alarms after which a tick has not done all that it was to do.
_BLIND = frozenset({"actuation", "ledger", "file"}) | UNSEEN
#: How the alarm begins of what the gate before every write has kept from the file.
_REFUSED = "not written, the ResourceManager would refuse it"


def parts_of_the_cluster(queues: Mapping[str, QueueView], weights: Mapping[str, float]) -> dict[str, float]:
    """What weights give each queue of the cluster; nothing of those in a group of which one is left out."""
    found = {"root": 1.0}
    for name, queue in queues.items():
        group = [other for other in queues if queues[other].parent == queue.parent]
        if queue.parent in found and all(other in weights for other in group):
            found[name] = found[queue.parent] * weights[name] / sum(weights[other] for other in group)
    return found


@dataclass
class _ShownLosses:
    """The work lost by preemption that a controller was shown: since when it counts, by application, and when."""

    since_s: float
    of_apps: dict[str, float]
    losses: list[tuple[float, float]] = field(default_factory=list)
    #: What the last tick ended with.
    standing: dict[str, float] = field(default_factory=dict)

    def show(self, now_s: float, of_apps: Mapping[str, float]) -> None:
        """Take note of what a look has shown."""
        lost = sum(max(mb_s - self.of_apps.get(app, 0.0), 0.0) for app, mb_s in of_apps.items())
        self.losses.append((now_s, lost))
        self.of_apps.update(of_apps)

    def within(self, seconds: float, now_s: float) -> float:
        """Return the work that was lost within the last ``seconds``, MiB-seconds."""
        return sum(lost for at_s, lost in self.losses if at_s > now_s - seconds)


class Ticks:
    """The invariants of one tick."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._good_s: dict[str, float] = {}
        #: Controller -> when its last look began, if it showed refused applications as they are.
        self._watched_s: dict[str, float] = {}
        #: Controller -> when it had last looked at all applications when something was shown wrong.
        self._lied: dict[str, float] = {}
        #: Controller -> in how many more good ticks it has to say that somebody has changed what is its own.
        self._edited: dict[str, int] = {}
        #: Controller -> how often others had changed the store when its last good tick began.
        self._seen_edits: dict[str, int] = {}
        #: Controller -> what its last tick said that is not in force.
        self._missed: dict[str, set[str]] = {}
        #: Controller -> the losses by preemption that it was shown.
        self._shown_lost: dict[str, _ShownLosses] = {}

    def begun(self, process: Process) -> None:
        self._good_s[process.name] = self.world.agenda.now_s
        self._edited.pop(process.name, None)
        self._seen_edits.pop(process.name, None)

    def edited(self, process: Process) -> None:
        """Somebody changes what is the holder's while it looks and writes."""
        if process is self.world.processes[0] and process.controller.holds and process.settings.mode != "shadow":
            self._edited.setdefault(process.name, 2)

    def signs(self, process: Process, *, takes: bool) -> None:
        """A controller writes its lease, or takes it: only one that sees and can write says so. A shadow signs while it
        gives back what an earlier run has left."""
        lease_s, now_s = process.settings.lease_s, self.world.agenda.now_s
        if not process.ticking or process.controller._tick.snapshot is not None:
            return
        if process.settings.mode == "shadow" or not (takes or process.controller.holds):
            return
        blind_s = process.begun_s - self._good_s.get(process.name, now_s)
        if blind_s > lease_s * 0.36 + 1.0:
            raise Violated(f"{process.name} signs its lease, and has seen or written nothing for {blind_s:.0f} s")

    def ticked(self, process: Process, report: TickReport, kinds: set[str], *, truthful: bool) -> None:
        # Who writes nothing because the ResourceManager would refuse it sees all: another one would do no better.
        refused = all(a.text.startswith(_REFUSED) for a in report.alarms if a.kind == "actuation")
        # An alarm of a write lasts until the next write: a tick that had none to make has done all that it was to do.
        refused |= process.controller.core.last_write_s < report.time_s
        if not kinds & (_BLIND - {"actuation"} if refused else _BLIND):
            self._good_s[process.name] = self.world.agenda.now_s
            if self.world.preempting is not None and process.controller.holds:
                self.world.preempting.seen()
        self._sources(process, report, kinds)
        self._guarded(process, report, kinds)
        self._believed(process, kinds)
        self._put_again(process, report, kinds)
        self._told(process, report, kinds)
        self._blamed(process, report, kinds)
        self._left(process, kinds)
        if self.world.preempting is not None:
            self.world.preempting.check()
            self._within_budget(process, report, kinds)
        elif self.world.plan.seventh:
            self._kept(process, report, kinds)
        if self._whole(process) and truthful and report.snapshot is not None and "app" not in kinds:
            self._ended(process)

    def _sources(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """One look is of one RM; and it does not depend on what one can do without."""
        met, rm = self.world.wire.met(process.name), self.world.active.standing()
        if report.snapshot is not None and len(met.sources) > 1:
            raise Violated(f"{process.name} has taken one look at two RMs: {sorted(met.sources)}")
        undisturbed = rm == process.begun_rm and rm[2] and not self.world.broken
        if (
            report.snapshot is None
            and met.troubled == {"jmx"}
            # A list is doubted where the RM has forgotten all that ended, and nothing runs (seed 3000401).
            and (self.world.cluster.apps or "observation" not in kinds)
            and undisturbed
            # A request whose wait was held up by another one's tick is not complete in time (seed 2700009).
            and not process.held_up
            and not kinds & {"policy", "clock", "cluster"}
        ):
            raise Violated(f"{process.name} saw nothing, though only the RM's JMX page went wrong")

    def _kept(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """Beside preemption nobody is given much less than it uses and is entitled to: the rest would be killed."""
        rm, core = self.world.active, process.controller.core
        assert isinstance(rm, CapacityRm)
        if report.snapshot is None or core.written is None or not process.controller.holds or kinds & {"policy", "rm"}:
            return
        if not rm.preempts or rm.standing() != process.begun_rm:
            return
        queues = report.snapshot.queues
        entitled = {name: queue.weight for name, queue in queues.items()}
        due, given = parts_of_the_cluster(queues, entitled), parts_of_the_cluster(queues, core.written.weights)
        for name, part in given.items():
            used = queues[name].allocated.memory_mb / report.snapshot.capacity.memory_mb
            # What ends by itself is at most a quarter, and preemption ignores a tenth.
            if part < min(due[name], 0.7 * used) - 0.01:
                words = f"it uses {used:.2f} of the cluster, and its due is {due[name]:.2f}"
                raise Violated(f"{process.name} gives {name} {part:.2f} beside preemption: {words}")

    def _within_budget(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """Shares expose no more to preemption than the rest of the budget: what it would kill, times how long it ran.

        The rest is what the losses that the controller was shown leave of the budget. A container has run for as long
        as a task of its queue lasts, for a period at least, and for an hour where that is not known.
        """
        rm, core, settings = self.world.active, process.controller.core, process.settings
        assert isinstance(rm, CapacityRm)
        if report.snapshot is None or rm.standing() != process.begun_rm or self.world.wire.met(process.name).lies:
            return
        # What ended applications have lost is shown in some looks only.
        counters = {app: float(mb_s) for app, mb_s in rm.preempted.items() if app in self.world.cluster.apps}
        shown = self._shown_lost.get(process.name)
        if shown is None or shown.since_s != core.killed._began_s:
            shown = self._shown_lost[process.name] = _ShownLosses(core.killed._began_s, dict(counters))
        # A kill within this tick may have come after its look: it counts from the next one on.
        # The counters of a restarted RM begin at 0.
        before = {app: min(mb_s, counters[app]) for app, mb_s in shown.standing.items() if app in counters}
        shown.show(process.begun_s, before)
        shown.standing = counters
        if core.written is None or not process.controller.holds or not rm.preempts or kinds - {"unpaid", "app"}:
            return
        queues, whole_mb = report.snapshot.queues, report.snapshot.capacity.memory_mb
        due = parts_of_the_cluster(queues, {name: queue.weight for name, queue in queues.items()})
        given = parts_of_the_cluster(queues, core.written.weights)
        leaves = {leaf.name: leaf.allocated.memory_mb for leaf in report.snapshot.leaves() if leaf.name in given}
        # As beside no budget (`_kept`).
        exposed_mb = whole_mb * sum(
            max(min(due[name], 0.7 * mb / whole_mb) - 0.01 - given[name], 0.0) for name, mb in leaves.items()
        )
        lasts = {name: queues[name].mean_task_s for name in leaves}
        work = sum(
            mb * (HOUR_S if (task_s := lasts[name]) is None else max(task_s, settings.period_s))
            for name, mb in leaves.items()
        )
        mean_s = work / max(sum(leaves.values()), 1)
        # Times of looks and of snapshots differ by less than a period.
        lost = shown.within(HOUR_S - settings.period_s, process.begun_s)
        left = max(settings.preemption_budget_mb_s - lost, 0.0)
        if exposed_mb * mean_s > left + 1.0:
            words = f"containers last {mean_s:.0f} s, and {left:.0f} MiB s are left of the budget"
            raise Violated(f"{process.name} exposes {exposed_mb:.0f} MiB to preemption: {words}")

    def _guarded(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """Who holds the file releases when the RM refuses more than a guard lets pass, and not before."""
        limit, accounts, world = process.settings.guards.refused_per_hour, process.controller.accounts, self.world
        refused = [app for app in world.cluster.ended if app.refused]
        why = process.controller.released.why
        if why.startswith("the ResourceManager refused") and (limit is None or len(refused) <= limit):
            raise Violated(f"{process.name} has released, {why}: {len(refused)} were refused")
        if limit is None or not process.controller.holds or process.settings.mode == "shadow":
            return
        looked = report.snapshot is not None and accounts._shown_s == accounts.looked_s
        if not looked or kinds & {"app", "rm"} or world.wire.met(process.name).lies or process.turns < 2:
            self._watched_s.pop(process.name, None)
            return
        # Those that came between two looks of which nothing was wrong.
        since_s = max(self._watched_s.get(process.name, process.begun_s), process.resumed_s)
        # Whom the RM has forgotten it does not show (seed 1000315).
        shown = [app.ended_s or 0.0 for app in refused if app.id not in world.active.forgotten]
        new = [at_s for at_s in shown if since_s < at_s < process.begun_s]
        self._watched_s[process.name] = process.begun_s
        if len(new) > limit and not process.released and world.active.standing() == process.begun_rm:
            raise Violated(f"{process.name} has not released, {len(new)} applications were refused")

    def _believed(self, process: Process, kinds: set[str]) -> None:
        """What a controller takes for written stands in the file."""
        world, controller = self.world, process.controller
        written, edited = controller.core.written, world.file.edits != process.begun_edits
        if written is None or not controller.holds or controller.shadow or world.writer != process.name:
            return
        # What it could not write it says: of a queue that an RM with an older configuration does not show, above all.
        if world.broken or edited or kinds & {"file", "ad-hoc"} or world.ad_hoc_seen:
            return
        if world.plan.capacity and written.min_shares:
            return  # capacities are larger by them
        if world.plan.store and "cluster" in kinds:
            return  # another cluster's store is not read (seed 2000353)
        file = world.words.read(world.file.read())
        if not world.plan.capacity:
            for path, wanted in written.scheduling_policies.items():
                if path in file and file[path].policy != wanted:
                    raise Violated(f"{process.name} has written {wanted} for {path}, the file has {file[path].policy}")
            for path, least in written.min_shares.items():
                if path in file and (file[path].min_mb, file[path].min_vcores) != (least.memory_mb, least.vcores):
                    raise Violated(f"{process.name} has written {least} for {path}, the file has {file[path].min_mb}")
        # Siblings' weights count against each other: the file may hold all of them multiplied.
        parts: dict[str, list[tuple[float, float, str]]] = {}
        # Absolute resources are one MiB for each leaf at least.
        unit = UNITS.get(world.plan.capacity, 0.0)
        floor = 8.0 if world.plan.capacity == "absolute" else WEIGHT_MIN * 1.001
        # Where one is the least that a queue can have, the others were multiplied without it.
        for path in (path for path in written.weights.keys() & file.keys() if file[path].weight > floor):
            weight = max(written.weights[path], 1e-9)
            part = (file[path].weight - unit) / weight, (file[path].weight + unit) / weight
            parts.setdefault(path.rpartition(".")[0], []).append((*part, path))
        for found in parts.values():
            least, (most, _, path) = min(high for _, high, _ in found), max(found)
            if most > least * 1.001:
                text = f"{path} has {file[path].weight:g} in the file, not {written.weights[path]:g}"
                raise Violated(f"{process.name} is wrong about what it has written: {text}")

    def _put_again(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """With the RM's own poll: a file that it has not loaded is replaced, or it would never load it."""
        world = self.world
        if process.settings.refresh != "poll" or not process.controller.holds or world.broken:
            return
        if kinds & {"actuation", "file", "lease", "ledger"}:
            return
        if process.controller._verified_s < report.time_s:
            return  # nothing was read back in this tick: an alarm lasts until it is
        missed = [a for a in report.alarms if a.kind == "not-in-force" and "cannot be read back" not in a.text]
        # An alarm lasts until a tick has seen that it is over: the file was put again when it was raised.
        before, self._missed[process.name] = self._missed.get(process.name, set()), {a.text for a in missed}
        missed = [a for a in missed if a.text not in before]
        if missed and world.file.since_s < process.begun_s:
            raise Violated(f"{process.name} leaves a file that the RM has not loaded as it is: {missed[0].text}")

    def _told(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """That somebody else has changed a capacity is said, whenever he did: it is written over."""
        left = self._edited.get(process.name)
        if left is None:
            return
        said = any("somebody else" in alarm.text for alarm in report.alarms)
        if said or process.released or self.world.intruded or not process.controller.holds:
            del self._edited[process.name]
        elif report.snapshot is not None and not kinds & _BLIND:
            if left == 0:
                raise Violated(f"somebody changed a capacity that {process.name} had written, and it does not say so")
            self._edited[process.name] = left - 1

    def _blamed(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """Nobody is said to have changed a store that nobody has: what was answered and lost is known as such."""
        world = self.world
        if not world.plan.store or world.intruder_seen:
            return
        if "foreign" in kinds and self._seen_edits.get(process.name) == world.file.edits:
            raise Violated(f"{process.name} says that somebody else changed the store, and nobody has")
        if report.snapshot is not None and not kinds & _BLIND:
            self._seen_edits[process.name] = process.begun_edits

    def _left(self, process: Process, kinds: set[str]) -> None:
        """What a killed run left in the file goes when it begins as a shadow; that its ledger is deleted it says."""
        world = self.world
        deleted_s = process.deleted_s
        if deleted_s is not None and process.begun_s > deleted_s and not kinds & (UNSEEN | {"ledger"}):
            raise Violated(f"the ledger of {process.name} is deleted, and it does not say so")
        alone = not any(other.running and other is not process for other in world.processes)
        if process.settings.mode != "shadow" or not process.left_over:
            return
        if not alone:
            # What stands there once it has given all back is another's (seed 3000283).
            process.left_over = process.controller._left_over
            return
        if process.controller._left_over and process.turns < 2:
            return
        if kinds & _BLIND or world.broken or world.file.since_s > process.begun_s:
            return
        if world.words.read(world.file.read()) != world.words.read(world.pristine):
            raise Violated(f"{process.name} is a shadow, and what it wrote before it was killed is still in the file")
        if not process.controller._left_over:
            # All is given back: whoever puts an older file in its place afterwards does so himself (seed 3000310).
            process.left_over = False

    def _whole(self, process: Process) -> bool:
        """Whether all applications have been shown since something was shown wrong: who ended long ago is in few
        lists."""
        full_s = process.controller._look._full_look_s
        if self.world.wire.met(process.name).lies:
            self._lied[process.name] = full_s
        elif self._lied.get(process.name) != full_s:
            self._lied.pop(process.name, None)
        return process.name not in self._lied

    def _ended(self, process: Process) -> None:
        """Who was shown as ended is known to have ended."""
        world, accounts = self.world, process.controller.accounts
        if world.wire.met(process.name).lies or accounts._shown_s != accounts.looked_s:
            return
        live, by_id = world.cluster.apps, world.cluster.by_id
        for name, account in accounts.apps.items():
            if account.final or name in live or account.missing_s is not None:
                continue
            if by_id[name].shown_ended_s < process.begun_s and name not in world.active.forgotten:
                raise Violated(f"{process.name} does not know that {name} has ended")
