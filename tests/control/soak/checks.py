"""What must hold, whatever goes wrong: looked at after every write, every tick, and when all faults have ended.

The world knows the truth; nothing here asks the controller what it believes without holding that against it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.control.clocks import CLOCK_TOLERANCE_S
from harness.control.reports import TickReport
from harness.ledger.groups import paths_above
from tests.control.soak import edits
from tests.control.soak.capacities import UNITS
from tests.control.soak.process import Process
from tests.control.soak.ticks import UNSEEN, Ticks
from tests.control.soak.violated import Violated

if TYPE_CHECKING:
    from tests.control.soak.world import World

#: Alarms that say that a controller could not see or do something.
_EXCUSES = frozenset({"not-in-force", "actuation", "rm", "foreign", "file", "lease", "ledger", "late"}) | UNSEEN
#: What an application may have used since its figure was kept.
_CACHE_S = 3.0
#: Why an application is not counted whole that was there before a look, and not in its list.
_LATE = "older than the last look"
_WARNING = re.compile(r" (?:warning ([\w-]+): (.*)|info ([\w-]+): (?:mended|no longer its affair: [^\n]*))\n")


def _top(path: str) -> str:
    """Return the queue below the root at or above a path."""
    return ".".join(path.split(".")[:2])


class Checks:
    """The invariants of one history."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: Whether figures are shown as they are: no lie since the last look that was taken.
        self.truthful = True
        #: Controllers whose last look was shown something wrong.
        self._lied_to: set[str] = set()
        self.calm = False
        self.root_dropped = False
        self._lease_until_s = -1.0
        self._signs: dict[str, float] = {}
        #: Who signed the lease last.
        self._lease_owner = ""
        self._reported: dict[tuple[str, str], float] = {}
        self._counted: dict[tuple[str, str], float] = {}
        self._counted_s: dict[tuple[str, str], float] = {}
        self._known: dict[str, set[str]] = {}
        #: By process: what each leaf had used at the last report.
        self._plain: dict[str, dict[str, float]] = {}
        #: The same at the last tick, whether its report was kept or not.
        self._latest: dict[str, dict[str, float]] = {}
        self._active: dict[str, set[str]] = {}
        #: By process: the leaves of the last report, and those whose account is a part of their parent's.
        self._heirs: dict[str, tuple[set[str], set[str]]] = {}
        self._wrong: dict[str, tuple[float, int]] = {}
        self._said: dict[str, dict[str, dict[str, float]]] = {}
        self._identity: dict[str, str] = {}
        self._gap: dict[str, float] = {}
        self._good_s: dict[str, float] = {}
        self._sums: dict[tuple[str, str], float] = {}
        self._empty: dict[str, bool] = {}
        #: Controller -> leaves that have been active: at their first activity they are credited.
        self._arrived: dict[str, set[str]] = {}
        self._told_rootless: set[str] = set()
        #: Weights that somebody has written in the midst of a tick.
        self._foreign: dict[str, float] = {}
        #: Controller -> what it has said of somebody else's edits.
        self.foreign_said: dict[str, set[str]] = {}
        self._ticks = Ticks(world)
        #: Controller -> when it last asked for applications, and what each queue held then, MiB.
        self._asked: dict[str, tuple[float, dict[str, int]]] = {}
        #: Controller and queue -> how much the queue may have been told beyond what it has used, MiB-seconds.
        self.most_assumed: dict[tuple[str, str], float] = {}

    def begun(self, process: Process) -> None:
        """A process has begun: its log knows of no alarm."""
        self._said.pop(process.name, None)
        process.log.taken()
        self._ticks.begun(process)

    def ended(self, process: Process, words: str) -> None:
        """A holder was ended from outside: unless another one goes on, or its own file cannot be written, the file is
        the administrator's. That its ledger cannot be written is no reason."""
        world = self.world
        if ("another controller" in words or "spare" in words) and not self._is_held_by_another(process):
            raise Violated(f"{process.name} was ended, and nobody else has the lease: {words}")
        if "another controller" in words or "spare" in words or process.file_error or world.broken:
            return
        if world.plan.store or world.intruder_seen or self.root_dropped:
            return  # a store is written by the ResourceManager, which may be down
        if world.words.read(world.file.read()) != world.words.read(world.pristine):
            raise Violated(f"{process.name} was ended, and what it has written stays: {words}")

    def _is_held_by_another(self, process: Process) -> bool:
        """Whether somebody else runs or has signed the lease, or nobody can know who has."""
        world = self.world
        others = any(other.running for other in world.processes if other is not process)
        signed = any(name != process.name for name in self._signs)
        return others or signed or world.agenda.now_s < world.lease_lost_until_s

    def restored(self, process: Process) -> None:
        """A process begins with an older copy of its ledger: what it had counted since is to be counted once more."""
        # A queue that the copy lacks begins its account anew when it is shown again, which may be much later: what it
        # had used before is gone where the ResourceManager has forgotten its applications (seed 1700085).
        for accounts in (self._counted, self._reported, self._sums):
            for key in [key for key in accounts if key[0] == process.name]:
                del accounts[key]
        self._known.pop(process.name, None)
        self._active.pop(process.name, None)

    def stopped(self, process: Process) -> None:
        """A process has ended by itself: it gives no sign of life any more."""
        self._signs.pop(process.name, None)

    def may_be_lied_to(self) -> bool:
        """Whether all have seen the truth since the last lie: one that goes on and on for somebody is believed."""
        return self.truthful and not any(p.running and p.name in self._lied_to for p in self.world.processes)

    def changed_in_a_look(self, process: Process, weights: Mapping[str, float]) -> None:
        """Somebody writes these weights between two answers to this controller."""
        self._foreign.update(weights)
        self._ticks.edited(process)

    def lease_disturbed(self) -> None:
        """Somebody has written nonsense where the lease stands: who holds it is anybody's guess for a while."""
        self._signs.clear()
        world, settings = self.world, self.world.plan.settings
        self._lease_until_s = world.agenda.now_s + settings.lease_s
        world.lease_lost_until_s = self._lease_until_s + 3 * settings.period_s

    # --- at every write ---

    def replaced(self, path: Path, process: Process) -> None:
        writes = path.parent == self.world.file.path.parent
        # One that was killed with its values in the file gives them back, if it begins as a shadow.
        if process.settings.mode == "shadow" and writes and not process.left_over:
            raise Violated(f"{process.name} is a shadow, and writes {path.name}")
        if path == self.world.file.path:
            self._file_written(process)
        elif path == self.world.lease_path:
            self._lease_written(process)

    def _file_written(self, process: Process) -> None:
        world, data = self.world, self.world.file.read()
        if world.broken and (process.disk.dead or data == world.broken_data):
            return  # what stands there is not its doing, or it stood there before
        try:
            differs = self._differs(data)
        except edits.Unreadable as error:
            raise Violated(f"an invalid file is readable: {error}: {data[:200]!r}") from None
        if differs:
            raise Violated(f"the file is not the administrator's: {differs}")
        if process.disk.dead:
            return
        if process.controller.released.given_back:
            raise Violated(f"{process.name} has released, and writes the file")
        self._kept(process, data)
        lease_s = process.settings.lease_s
        if lease_s and process.controller.settings.lease_s and world.agenda.now_s > self._lease_until_s:
            for other, signed_s in self._signs.items():
                age_s = world.agenda.now_s - signed_s
                if other != process.name and age_s < lease_s * 0.95:
                    raise Violated(f"{process.name} writes {age_s:.1f} s after {other} renewed its lease")
        world.writer = process.name

    def _differs(self, data: bytes) -> str:
        world = self.world
        if self.root_dropped or world.plan.settings.ad_hoc == "name":
            world.words.read(data)
            return ""
        return str(world.words.only_owned_differ(data, world.pristine))

    def _kept(self, process: Process, data: bytes) -> None:
        """No weight from a ledger that was not kept."""
        if not process.controller.holds or not process.running:
            return
        managed = process.store.document("ours") or {}
        baseline = process.store.document("baseline") or {}
        words = self.world.words
        for path, queue in words.read(data).items():
            known = managed.get(path, {}).get(words.SHARE)
            if queue.weight == self._foreign.get(path):
                continue
            if known is None or queue.weight in [edits.float32(w) for w in map(words.number, known) if w is not None]:
                continue
            before = words.number(baseline.get(path, {}).get(words.SHARE))
            if queue.weight != edits.float32(1.0 if before is None else before):
                raise Violated(f"{path} has the weight {queue.weight:g}, the ledger knows {known}")

    def _lease_written(self, process: Process) -> None:
        try:
            said = json.loads(self.world.lease_path.read_bytes())
        except ValueError:
            self._signs.pop(process.name, None)
            return
        owner = said.get("owner")
        before, self._lease_owner = self._lease_owner, owner or ""
        if owner:
            # Whose own name stands there may go on, though it does not know yet that it is the holder.
            self._ticks.signs(process, takes=before != owner)
            self._signs[process.name] = self.world.agenda.now_s
        else:
            self._signs.pop(process.name, None)

    # --- at every tick ---

    def ticked(self, process: Process, report: TickReport) -> None:
        world, met = self.world, self.world.wire.met(process.name)
        kinds = {alarm.kind for alarm in report.alarms}
        if report.snapshot is None and not kinds & (UNSEEN | {"policy"}):
            raise Violated(f"{process.name} saw nothing and raised no alarm")
        if process.controller.actuator.baseline and not met.asked and not kinds & {"policy"}:
            raise Violated(f"{process.name} has not looked at the RM: {sorted(kinds)}")
        accounts = process.controller.accounts
        if report.snapshot is not None:
            self._good_s[process.name] = world.agenda.now_s
            if accounts._shown_s == accounts.looked_s and met.lies == 0 and "app" not in kinds:
                world.lost.looked(process.name, process.begun_s)
        if met.lies:
            world.lost.lied()
            self._lied_to.add(process.name)
        elif report.snapshot is not None:
            self._lied_to.discard(process.name)
        self._emptied(process, kinds)
        self._rootless(process, kinds)
        # Who has released writes nothing, and knows no entitlements until the next look at the file.
        if report.record is not None and process.settings.mode == "bounded" and not report.released:
            self.apart(process, report.record.attributes.weights)
        self._log(process, report)
        if kinds & {"ledger"}:
            process.unkept = True
        elif report.snapshot is not None:
            # A tick that saw nothing keeps nothing: a ledger that was deleted, and is there again before its process
            # ends, lacks what was counted meanwhile (seed 1000043).
            process.unkept = False
            world.wire.kept(process.name)
        if process.settings.mode == "shadow":
            self._signs.pop(process.name, None)  # it had signed to give back what an earlier run had written
        self._assumed(process, report)
        self._late(process)
        self._accounts(process, report)
        self._ticks.ticked(process, report, kinds, truthful=self.truthful)
        self._foreign.clear()
        self._in_force(process, report, kinds)
        self._memory(process)
        if met.lies == 0 and report.snapshot is not None and "app" not in kinds:
            self.truthful = True
        if report.snapshot is not None and process.begun_rm == world.active.standing():
            rm = f"{world.active.host} {world.active.started_ms}"
            before = self._identity.get(process.name, rm)
            if before != rm and "rm" not in kinds and met.lies == 0 and process.deaths == 0:
                seen = process.controller._look.identity or []
                if seen[:1] == [world.active.base] and seen[2] != world.active.started_ms:
                    raise Violated(f"{process.name} has not noticed that {rm} answers")
            self._identity[process.name] = rm

    def _emptied(self, process: Process, kinds: set[str]) -> None:
        """A list of applications that cannot be empty, or that is for the first time, is doubted aloud."""
        met, accounts = self.world.wire.met(process.name), process.controller.accounts
        if met.listless and not kinds & (UNSEEN | {"rm"}):
            raise Violated(f"{process.name} takes an answer without a list for an empty one")
        emptied = 0 < met.lists == met.emptied
        new, self._empty[process.name] = not self._empty.get(process.name, False), emptied
        if not emptied or kinds & (UNSEEN | {"rm"}) or not (accounts.apps or self.world.cluster.apps):
            return
        if met.showed or (new and process.looked and not process.died_since_tick):
            raise Violated(f"{process.name} takes an empty list of applications, and raises no alarm")

    def _rootless(self, process: Process, kinds: set[str]) -> None:
        """That the root's element has gone is said: an RM that reads such a file may end."""
        if not self.root_dropped:
            self._told_rootless.discard(process.name)
        elif kinds & {"foreign", "file"}:
            self._told_rootless.add(process.name)
        elif (
            process.name not in self._told_rootless
            and process.controller.holds
            and process.turns > 1
            and process.begun_s > self.world.file.since_s
        ):
            raise Violated(f"the root's element is gone, and {process.name} raises no alarm")

    def _taken_by_hand(self, process: Process, text: str) -> None:
        """Beside another controller that no lease announces, no weight that only a controller computes is taken.

        Percentages and amounts may be: where the entitlements do not go together any more, what stands there counts.
        """
        world = self.world
        if not world.intruder_seen or process.settings.lease_s or world.plan.capacity not in ("", "weight"):
            return
        for queue, share in re.findall(r"of (root\.[\w.-]+) is ([\d.e+-]+)w? \(taken as its entitlement\)", text):
            if float(f"{float(share):.3g}") != float(share):
                raise Violated(f"{process.name} takes {share} for the entitlement of {queue}, which no person writes")

    def _log(self, process: Process, report: TickReport) -> None:
        """An alarm that lasts is not a line in every period."""
        said, now_s = self._said.setdefault(process.name, {}), process.clock.monotonic()
        lines = [(m[1] or m[3], m[2]) for m in _WARNING.finditer(process.log.taken())]
        for kind, text in lines:
            if text is None:
                if said.pop(kind, None) is None:
                    raise Violated(f"{process.name} says again that {kind} is mended")
                continue
            if kind == "foreign":
                self.foreign_said.setdefault(process.name, set()).add(text)
                self._taken_by_hand(process, text)
            texts = said.setdefault(kind, {})
            if now_s - texts.get(text, -1e9) < 290:
                raise Violated(f"{process.name} says in every period: {kind}: {text}")
            texts[text] = now_s
            process.warnings += 1
        kinds = {alarm.kind for alarm in report.alarms}
        lasting = {(alarm.kind, " ".join(alarm.text.split())) for alarm in report.alarms}
        for kind, texts in said.items():
            for text in [text for text in texts if (kind, text) not in lasting]:
                del texts[text]
        for kind in kinds - said.keys():
            raise Violated(f"the alarm {kind} is not in the log of {process.name}")
        for kind in said.keys() - kinds:
            if kind not in ("rm", "foreign", "note", "config"):
                raise Violated(f"the log of {process.name} does not say that {kind} has ended")
            del said[kind]

    def _accounts(self, process: Process, report: TickReport) -> None:
        world, accounts, met = self.world, process.controller.accounts, self.world.wire.met(process.name)
        if not process.looked and accounts.looked_s is not None:
            process.looked = True
            self._begin_accounts(process, sure=met.lies == 0 and self.truthful and world.lost.window is None)
            self._known[process.name] = {q.name for q in report.snapshot.leaves()} if report.snapshot else set()
        for queue, account in accounts.queues.items():
            key, now = (process.name, queue), account.reported[0]
            if now < self._reported.get(key, 0.0) - 1e-3 and not process.died_since_tick:
                raise Violated(f"{process.name}: what {queue} has used fell from {self._reported[key]} to {now}")
            self._reported[key] = now
            if account.memory_mb_s < self._sums.get(key, 0.0) - 1e-3 and not process.died_since_tick:
                raise Violated(f"{process.name}: what {queue} was shown to have used fell")
            self._sums[key] = account.memory_mb_s
            if now < account.memory_mb_s - 1e-3:
                raise Violated(f"{process.name}: {queue} is reported less than it was shown")
        process.died_since_tick = False
        sure = (
            process.baseline is not None
            and met.lies == 0
            and not any(a.kind == "app" for a in report.alarms)
            and self.truthful
            and not world.lost.any()
        )
        if sure and report.snapshot is not None and accounts._shown_s == accounts.looked_s:
            self._equal(process)
        self._ledger(process, report)

    def _late(self, process: Process) -> None:
        """Whom a list should have shown before counts only from the list that does: another cluster's applications may
        look like that. Of this cluster's that happens to those that a wrong list has hidden, and to nobody else."""
        wire = self.world.wire
        for app, why in process.controller.accounts.refused.items():
            if _LATE in why and app in self.world.cluster.by_id:
                if app not in wire.hidden.get(process.name, ()):
                    raise Violated(f"{process.name} does not count what {app} has used, and every list has shown it")
                if process.baseline is not None:
                    process.baseline[app] = wire.shown.get(process.name, {}).get(app, (0, 0))

    def _assumed(self, process: Process, report: TickReport) -> None:
        """How much a queue may have been told beyond what it has used: what it held for as long as nobody asked for
        applications, which is seldom while answers are slow, and as long as an RM keeps a figure."""
        if report.snapshot is None:
            return
        accounts, now_s, name = process.controller.accounts, self.world.agenda.now_s, process.name
        holds: dict[str, int] = {}
        for app in self.world.cluster.apps.values():
            holds[app.queue] = holds.get(app.queue, 0) + app.held[0]
        asked_s, before = self._asked.get(name, (process.begun_s, {}))
        for queue in before.keys() | holds.keys():
            key = (name, queue)
            most = max(before.get(queue, 0), holds.get(queue, 0)) * (now_s - asked_s + 2 * _CACHE_S)
            self.most_assumed[key] = max(self.most_assumed.get(key, 0.0), most)
        if accounts._shown_s == accounts.looked_s:
            self._asked[name] = process.begun_s, holds

    def _begin_accounts(self, process: Process, *, sure: bool) -> None:
        """What a ledger's first look showed is what it counts from."""
        world = self.world
        if not sure:
            process.baseline = None
        elif world.lost.any():
            # Figures lack what an RM has lost, and the ledger is not to count that.
            now_s = world.agenda.now_s
            process.baseline = {app.id: app.truth(now_s) for app in world.cluster.by_id.values()}
            for app in world.cluster.apps.values():
                slack = process.baseline_slack.get(app.queue, 0.0) + app.held[0] * (now_s - process.begun_s + _CACHE_S)
                process.baseline_slack[app.queue] = slack
        else:
            # Whom the RM has forgotten by then no list shows: what they had used is nothing that this ledger counts.
            forgotten = (world.cluster.by_id[app] for app in world.active.forgotten)
            process.baseline = {app.id: app.truth(world.agenda.now_s) for app in forgotten}
            process.baseline.update(world.wire.last_list.get(process.name, {}))

    def _equal(self, process: Process) -> None:
        """To the MiB second, what lists of applications have shown."""
        shown = self.shown(process)
        for queue, account in process.controller.accounts.queues.items():
            memory, vcores = shown.get(queue, (0, 0))
            if (account.memory_mb_s, account.vcore_s) != (memory, vcores):
                has = f"{account.memory_mb_s:.0f} MiB s and {account.vcore_s:.0f} vcore s"
                raise Violated(f"{process.name}: {queue} has {has}, the RM showed {memory} and {vcores}")
        for queue, (used, _) in shown.items():
            if used and queue not in process.controller.accounts.queues:
                raise Violated(f"{process.name}: {queue} has no account, the RM showed {used} MiB s")

    def shown(self, process: Process) -> dict[str, tuple[int, int]]:
        """Queue -> what its applications have used since the ledger's first look, as they were shown."""
        sums: dict[str, tuple[int, int]] = {}
        told, first = self.world.wire.shown.get(process.name, {}), process.baseline or {}
        for app in (*self.world.cluster.ended, *self.world.cluster.apps.values()):
            if app.id in told:
                (memory, vcores), before = told[app.id], first.get(app.id, (0, 0))
                sum_of = sums.get(app.queue, (0, 0))
                sums[app.queue] = (sum_of[0] + memory - before[0], sum_of[1] + vcores - before[1])
        return sums

    def _ledger(self, process: Process, report: TickReport) -> None:
        """What is counted never falls, and a queue that is new is owed nothing for the time before it existed."""
        ledger, snapshot = process.controller.core.ledger, report.snapshot
        if ledger is None or snapshot is None:
            return
        counted, known = ledger.counted(), self._known.setdefault(process.name, set())
        plain = dict(ledger.plain())
        self._of_parents(process, counted, plain)
        # As of the last report: a tick that was killed after it may have let a newcomer begin already. A queue that was
        # away for a while was reported long ago.
        fades = {leaf: self._fade(process, leaf) for leaf in counted}
        reported = {leaf: self._counted.get((process.name, leaf), value) for leaf, value in counted.items()}
        for leaf, value in counted.items():
            key = (process.name, leaf)
            if value < self._counted.get(key, 0.0) * fades[leaf] * (1 - 1e-9) - 1e-3:
                raise Violated(f"{process.name}: {leaf} had counted {self._counted[key]:.2f}, now {value:.2f}")
        if ledger.settings.resource == "memory":
            for leaf, value in plain.items():
                account = process.controller.accounts.queues.get(leaf)
                if value > (0.0 if account is None else account.reported[0]) * (1 + 1e-9) + 1e-3:
                    raise Violated(f"{process.name}: {leaf} has counted {value:.0f}, more than it has used")
        if not any(alarm.kind == "ledger" for alarm in report.alarms):
            # What a full disk kept from the ledger is reported again later: both figures are of the same report.
            self._plain[process.name] = dict(plain)
            self._counted.update({(process.name, leaf): value for leaf, value in counted.items()})
            self._counted_s.update({(process.name, leaf): process.begun_s for leaf in counted})
        active = {q.name for q in snapshot.leaves() if q.demand.memory_mb > 0}
        before = self._active.setdefault(process.name, set())
        weights = {q.name: q.weight for q in snapshot.leaves()}
        others = [reported[leaf] * fades[leaf] / weights[leaf] for leaf in active & known & before if leaf in counted]
        # What is created below a parent that had leaves has a part of the parent's account.
        last, heirs = self._heirs.setdefault(process.name, (set(), set()))
        parents = {path for leaf in last for path in (leaf, *paths_above(leaf))}
        heirs |= {leaf for leaf in counted.keys() - last if not parents.isdisjoint({leaf, *paths_above(leaf)})}
        self._heirs[process.name] = (set(counted), heirs)
        for leaf in active - known - before - heirs:
            if others and counted.get(leaf, 0.0) / weights[leaf] < min(others) * 0.999:
                raise Violated(f"{process.name}: {leaf} is new and owed for the time before it existed")
        before |= active

    def _of_parents(self, process: Process, counted: Mapping[str, float], plain: Mapping[str, float]) -> None:
        """Creations and removals below a parent change no parent's account; those of its leaves may pass to others."""
        # Leaves that the Fair Scheduler creates have a weight of their own each, so that their parent has more.
        sums = bool(self.world.plan.capacity)
        used_before = self._plain.get(process.name, {})
        # A leaf may have used more before it was removed than the last report that was kept shows.
        latest = self._latest.setdefault(process.name, {})
        latest.update(plain)
        last = {leaf: value for (name, leaf), value in self._counted.items() if name == process.name}
        tops = {_top(leaf) for leaf in counted}
        ledger = process.controller.core.ledger
        assert ledger is not None
        arrived = {leaf for leaf, account in ledger._held().items() if account.arrived}
        anew = arrived - self._arrived.get(process.name, set())
        self._arrived[process.name] = arrived
        for top in sorted(tops):
            before = {leaf: value for leaf, value in last.items() if _top(leaf) == top}
            now = {leaf: value for leaf, value in counted.items() if _top(leaf) == top}
            if before.keys() == now.keys() or not before:
                continue
            had, has = sum(before.values()), sum(now.values())
            used = sum(max(latest[leaf] - used_before.get(leaf, 0.0), 0.0) for leaf in {*before, *now} & latest.keys())
            # Who is active for the first time in this tick is credited with what others have had (seed 2000536).
            used += sum(now[leaf] for leaf in before.keys() & now.keys() & anew)
            least = had * min(self._fade(process, leaf) for leaf in before)
            if sums and not least * (1 - 1e-9) - 1e-3 <= has <= (had + used) * (1 + 1e-9) + 1e-3:
                raise Violated(
                    f"{process.name}: {top} had counted {had:.2f} with {sorted(before)}, used {used:.2f}, "
                    f"and has {has:.2f} with {sorted(now)}"
                )
            for leaf in before:
                del self._counted[process.name, leaf]

    def _fade(self, process: Process, leaf: str) -> float:
        """What part of what a leaf had counted is left since its last report at least: memory fades with time that has
        passed, whatever a machine's clock says."""
        half_life_s = float(self.world.plan.sets.get("half_life", "inf"))
        passed_s = self.world.agenda.now_s - self._counted_s.get((process.name, leaf), 0.0)
        # The first look of a start takes a clock that is wrong by less than the tolerance for right (seeds 1000220 and
        # 1000335).
        anew = self._counted_s.get((process.name, leaf), 0.0) < process.started_s
        set_s = CLOCK_TOLERANCE_S if anew else 0.0
        # Clocks drift by a hundredth.
        return float(0.5 ** ((passed_s * 1.02 + 1.0 + set_s) / half_life_s))

    def _in_force(self, process: Process, report: TickReport, kinds: set[str]) -> None:
        """What is said to be in force is; what is not is an alarm before long."""
        world, controller = self.world, process.controller
        wanted = controller._in_force
        if not controller.holds or world.writer != process.name or not wanted or process.released:
            self._wrong.pop(process.name, None)
            return
        has = world.active.weights()
        wrong = [q for q, w in wanted.items() if q in has and edits.float32(w) != has[q]]
        if report.effect_s is not None and wrong and not world.changed_in_tick:
            raise Violated(f"{process.name} says that {wrong[0]} is in force; the RM has {has[wrong[0]]:g}")
        if not wrong or kinds & _EXCUSES:
            self._wrong.pop(process.name, None)
            return
        since_s, loads = self._wrong.setdefault(process.name, (world.agenda.now_s, world.active.loads))
        if process.settings.refresh == "poll" and world.active.loads != loads:
            # Each write has its own time to be found.
            self._wrong[process.name] = (world.agenda.now_s, world.active.loads)
            return
        poll_s = 60.0 if process.settings.refresh == "poll" else 0.0
        most_s = process.settings.verify_every_s + 2.5 * process.settings.period_s + 1.0 + poll_s
        if world.agenda.now_s - since_s > most_s:
            raise Violated(
                f"{process.name}: {wrong[0]} is not in force for {world.agenda.now_s - since_s:.0f} s, no alarm"
            )

    def _memory(self, process: Process) -> None:
        if process.ticks % 16:
            return
        world, controller = self.world, process.controller
        now_s = world.agenda.now_s
        ended = world.cluster.ended
        kept_s = 300.0 + 2 * controller.settings.full_look_every_s + 100.0 + self.silent_s(process)
        shown = [app for app in ended[-world.active.retained :] if app.id not in world.active.forgotten]
        gone = [app for app in ended if (app.ended_s or 0.0) > now_s - kept_s]
        most = len({app.id for app in (*shown, *gone)}) + len(world.cluster.apps) + 20
        # Since when somebody is missing is not kept: who begins waits once more.
        most += sum(count for at_s, count in world.forgotten if max(at_s, process.started_s) > now_s - kept_s)
        if len(controller.accounts.apps) > most:
            raise Violated(f"{process.name} remembers {len(controller.accounts.apps)} applications, {most} are enough")
        final = controller._look._watcher._final or {}
        late = sum((app.ended_s or 0.0) > now_s - 130.0 - self.silent_s(process) for app in ended) + 20
        last = ended[-1].ended_s or 0.0 if ended else 0.0
        late = max(late, sum((app.ended_s or 0.0) > last - 130.0 for app in ended) + 20)
        if len(final) > late:
            raise Violated(
                f"the watcher of {process.name} remembers {len(final)} ended applications, {late} are enough"
            )
        db = process.store._db
        decisions = db.execute("SELECT count(*) FROM decisions").fetchone()[0]
        if decisions > world.most_decisions + 1:
            raise Violated(f"{decisions} decisions are kept, {world.most_decisions} are enough")
        rows = db.execute("SELECT count(*) FROM apps").fetchone()[0]
        if rows > len(controller.accounts.apps) + 50 and not process.ledger_error:
            raise Violated(f"{rows} applications are kept, {len(controller.accounts.apps)} are known")

    def silent_s(self, process: Process) -> float:
        """For how long a controller has seen nothing of late, at most."""
        gap = self.world.agenda.now_s - self._good_s.get(process.name, 0.0)
        self._gap[process.name] = max(self._gap.get(process.name, 0.0), gap)
        return self._gap[process.name]

    def _listed(self) -> Collection[str]:
        return self.world.words.read(self.world.file.read()).keys()

    def apart(self, holder: Process, weights: Mapping[str, float]) -> None:
        """Weights of siblings are no further apart than the bound lets them, by their entitlements."""
        theirs = holder.controller.actuator.configured_weights()
        unit = UNITS.get(self.world.plan.capacity, 0.0)
        levels: dict[str, list[tuple[float, float]]] = {}
        for path, weight in weights.items():
            if path not in theirs and self.world.broken:
                # It came with a file that an unreadable one has replaced: its entitlement is not known.
                continue
            if path not in theirs and self.world.plan.capacity and path not in self._listed():
                # An RM with an older configuration shows a queue that the file does not list any more: nothing is
                # written for it, and its entitlement is not known (seed 9700076).
                continue
            own = max(theirs.get(path, 1.0), 1e-9)
            levels.setdefault(path.rpartition(".")[0], []).append(((weight - unit) / own, (weight + unit) / own))
        for parent, parts in levels.items():
            most, least = max(low for low, _ in parts), min(high for _, high in parts)
            if most > least * holder.settings.max_ratio * 1.002:
                raise Violated(f"below {parent or 'root'} weights are {most / least:.3f} apart")
