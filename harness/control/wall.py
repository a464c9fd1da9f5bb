"""The controller: the control core driven by the wall clock, on a real ResourceManager or `yarnfair sim serve`.

    with RmClient([address]) as client, LedgerStore(path) as store:
        actuator = FileActuator.restored(open_store("/etc/hadoop/fair-scheduler.xml"), store.document)
        settings, policy = ControlSettings(period_s=5), make_policy("ltrf")
        Controller(settings, client, actuator, store, policy, open_observer=open_rm_poller).run(stop_event)

One `tick` is one control period: poll the RM and the allocation file, account, decide, write changes, refresh, read
back. A tick never raises for external failures: it reports alarms, and the weights in force stay unchanged.

A document that the product's own validation refuses (harness.control.gate) is never written. If the RM refuses a
document all the same, the administrator's values are written instead within the same tick.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, Self

from harness.base.errors import YarnfairError
from harness.base.files import plain
from harness.base.words import counted
from harness.control.actuator import Prepared
from harness.control.changes import Entitled, amount, debts
from harness.control.clock import SteadyClock
from harness.control.clocks import Clocks, ClocksDiffer, read_clocks
from harness.control.core import ControlCore
from harness.control.entitled import check_entitlements
from harness.control.events import (
    Action,
    Actuated,
    ObservationFailed,
    Observe,
    RaiseAlarm,
    ReadBack,
    Record,
    Refresh,
    Shown,
    Tick,
    Write,
)
from harness.control.gate import in_short
from harness.control.giveback import LOCATION, restore_left
from harness.control.identity import ClusterFacts, OtherCluster
from harness.control.interfaces import Actuator, Observer, ObserverContext
from harness.control.kept import decision_document, look_document
from harness.control.poll import POLL_EFFECT_S, POLL_WRITE_GAP_S
from harness.control.preemption import LOOKS_BEFORE_A_KILL
from harness.control.reports import Alarm, TickReport
from harness.control.settings import ControlSettings
from harness.control.tenure import ClientT, Tenure
from harness.control.unpaid import UnpaidDebts
from harness.ledger.store import LedgerStore, StoreFull
from harness.model.plan import Attributes
from harness.model.resources import ZERO, Resource
from harness.model.snapshot import Snapshot
from harness.policies.base import CountedLedger, Policy
from harness.yarn.answers import ClusterInfo
from harness.yarn.capacity.traps import Trap, preemption_bound
from harness.yarn.errors import Refused
from harness.yarn.files import always
from harness.yarn.rmclient import NotEffective

#: The delay before a document that the RM refuses, or shows differently, is tried again starts at one period and
#: doubles up to `_SHORT_DELAY_S`. From then on it is `_DELAY_PART` of the time since the first failure, up to
#: `_LONG_DELAY_S`: the end of a condition that lasts for minutes is noticed within a tenth of its time, and one that
#: lasts for good costs few writes and refreshes.
_SHORT_DELAY_S, _DELAY_PART, _LONG_DELAY_S = 30.0, 0.1, 600.0
#: Longest time for which restored values are waited for in the RM, seconds.
_RESTORED_S = 1.0
#: Kinds of alarms of a tick that could not read or write. A lease holder does not renew its lease in such a tick.
_BLIND = frozenset({"observation", "clock", "cluster", "actuation", "ledger", "file"})
#: Kinds of alarms about lasting conditions. They are repeated until a tick has checked that the condition has ended.
_LASTING = frozenset(
    {"ad-hoc", "actuation", "not-in-force", "ledger", "trap", "invalid", "file", "app", "policy", "clock", "cluster"}
    | {"unpaid", "config"}
)
#: Lasting alarms that are irrelevant to a controller that does not write.
_OF_A_WRITER = ("ad-hoc", "actuation", "not-in-force", "unpaid")


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A document that the RM refused, or showed differently, and the delay before the next attempt.

    Parameters
    ----------
    kind, reason
        Kind and text of the alarm that reports the refusal.
    until_s
        Time of the next attempt, seconds on the controller's clock.
    since_s
        Time of the first of the failures in a row.
    edits
        The actuator's count of edits at the time of the refusal. A further edit ends the delay.
    queues
        The queues for which the decision had attributes. A decision about other queues ends the delay.
    """

    kind: str
    reason: str
    until_s: float
    since_s: float
    edits: int
    queues: frozenset[str]


class Controller(Tenure[ClientT]):
    """Enforce one policy on one cluster.

    Parameters
    ----------
    settings : ControlSettings
        Period, guards and other settings of the controller.
    client : ClientT
        The cluster's client. It is only passed to ``actuator`` and ``open_observer``.
    actuator : Actuator
        Reads and writes the scheduler's configuration; restored from ``store``.
    store : LedgerStore
        The ledger. The controller continues from its stored state.
    policy : Policy
        The policy to enforce.
    open_observer : Callable
        Creates the observer of the cluster from the client and an `ObserverContext`.
    on_tick : Callable
        Called with the report after every tick.
    clock : Callable or None
        Returns the time in seconds and never goes back (None: `SteadyClock`). It is compared with the RM's clock at the
        first poll (harness.control.clocks).
    dry_run : bool
        Decide without writing or refreshing. The prepared document is stored in ``prepared``.
    """

    def __init__(
        self,
        settings: ControlSettings,
        client: ClientT,
        actuator: Actuator[ClientT],
        store: LedgerStore,
        policy: Policy,
        *,
        open_observer: Callable[[ClientT, ObserverContext], Observer],
        on_tick: Callable[[TickReport], None] = lambda _: None,
        clock: Callable[[], float] | None = None,
        dry_run: bool = False,
    ) -> None:
        core = ControlCore(
            policy,
            period_s=settings.period_s,
            write_gap_s=POLL_WRITE_GAP_S if settings.refresh == "poll" else 0.0,
            read_back=settings.read_back,
            remember=True,
            max_ratio=None if settings.mode == "full" else settings.max_ratio,
            write_threshold=settings.write_threshold,
            preemption_budget_mb_s=settings.preemption_budget_mb_s,
        )
        super().__init__(settings, client, actuator, store, core, dry_run=dry_run)
        self.policy, self.on_tick = policy, on_tick
        self._policy_document = [policy.name, plain(asdict(policy.settings))]
        self.accounts = store.accounts()
        if settings.count_earlier and self.accounts.looked_s is None:
            self.accounts.looked_s = 0.0
        if (state := store.document("ledger")) is not None:
            self.core.resume(state, store.document("consumed") or {})
        self._clock_given = clock
        self.clock = clock or SteadyClock()
        #: Description of somebody else's edit since the last poll, if the guard `foreign_edit` is on ('': no edit).
        self._edited = ""
        #: Whether this machine's clock has been compared with the RM's and the ledger's.
        self._clock_compared = False
        #: The document of the last decision (available with `dry_run`).
        self.prepared: Prepared | None = None
        #: The queues of the last poll (None: no poll yet).
        self._queues: frozenset[str] | None = None
        self._in_force: Mapping[str, float] = {}
        self._written_s = -math.inf
        self._verified_s = -math.inf
        self._decided = False
        #: Alarms for the next tick (`announce`).
        self._announced: list[Alarm] = []
        #: Traps that block nothing and have been reported.
        self._noted: set[str] = set()
        #: Alarms of the last tick about lasting conditions (`_LASTING`).
        self._lasting: tuple[Alarm, ...] = ()
        #: Kinds of alarms whose conditions this tick has checked.
        self._looked_for: set[str] = set()
        self._unpaid = UnpaidDebts.restored(store.document("unpaid"))
        self.core.killed.restore(store.document("killed"))
        #: The RM's last refusal (None: none since the last verified write).
        self._refused: _Refusal | None = None
        #: Delay before the next attempt after a further refusal, seconds.
        self._refused_gap_s = settings.period_s
        #: The queues of the decision that is being carried out.
        self._deciding: frozenset[str] = frozenset()
        #: Whether the RM had not loaded the file at the last read-back, so that the file was written again (`poll`).
        self._touched = False
        rm = store.document("rm")
        known = rm if isinstance(rm, list) else None
        self.open_observer = open_observer
        self._look: Observer = open_observer(
            client,
            ObserverContext(
                settings=settings,
                clock=self.clock,
                accounts=self.accounts,
                identity=known,
                capacity=_capacity(state),
                facts=ClusterFacts.restored(store.document("cluster")),
                on_info=self._compare_clocks,
                on_queues=self._read_with,
            ),
        )
        self.recognise_cluster()
        #: Report of the current tick, filled as the tick proceeds.
        self._tick = TickReport(0.0)
        #: Time of the current tick's decision, seconds (None: not decided yet).
        self._decided_s: float | None = None
        #: Whether the ledger knows of all edits that the configuration was found to have.
        self._ownership_kept = True

    # --- public methods ---

    def remade(self, settings: ControlSettings, policy: Policy) -> Self:
        """Return a controller with other settings that replaces this one and continues with the same ledger."""
        made = type(self)(
            settings,
            self.client,
            self.actuator.reopened(self.store.document),
            self.store,
            policy,
            open_observer=self.open_observer,
            on_tick=self.on_tick,
            clock=self._clock_given,
        )
        made._follow(self)
        made._unpaid = self._unpaid
        return made

    def recognise_cluster(self) -> None:
        """Make the actuator check, with this controller's observer, which cluster answers before it reads a store."""
        self.actuator.recognise_by(self._look.check_cluster)

    def check_entitlements(self) -> None:
        """Check that the queues that the configuration gives entitlements exist or have existed. Queries the RM.

        Raises CallError for an unknown queue, with the most similar names, and request errors.
        """
        entitlements = self.settings.entitlements
        if not entitlements:
            return
        known = {*self._look.queues(), *self.actuator.departed, *self.actuator.baseline}
        state = self.store.document("ledger") or {}
        for part in ("weights", "departed"):
            known.update(state.get(part) or {})
        with contextlib.suppress(YarnfairError):
            # The file may name queues that the RM has not loaded yet.
            known |= self.actuator.names()
        if text := check_entitlements(entitlements, known, self.settings.accept):
            self.announce("note", text)

    def announce(self, kind: str, text: str) -> None:
        """Add an alarm to the next tick."""
        self._announced.append(Alarm(kind, text))

    def run(self, stop: threading.Event) -> None:
        """Tick every period until `stop` is set. A tick that takes longer than the period delays the next."""
        while not stop.is_set():
            begun = time.monotonic()
            self.tick()
            stop.wait(max(begun + self.settings.period_s - time.monotonic(), 0.0))

    def tick(self) -> TickReport:
        """Run one control period now."""
        self._tick = tick = TickReport(self.clock())
        tick.values_name = self.actuator.values_name.partition(" ")[0]
        self._decided_s = None
        tick.alarms, self._announced = tuple(self._announced), []
        self._hold()
        self._told_to_go_on()
        self._check_copy()
        self._restore_left_over()
        actions: list[Action] = self.core.handle(Tick(tick.time_s))
        while actions:
            actions = self._carry_out(actions)
        if self.actuator.beside is not None:
            for text in self.actuator.beside.remarks():
                self._alarm("note", text)
        if not any(alarm.kind in _BLIND for alarm in tick.alarms):
            self._good_s = time.monotonic()
        if not self._ownership_kept:
            self._keep_ownership()
        self._let_last()
        ledger = self.core.ledger
        tick.took_s = self.clock() - tick.time_s
        tick.counted = dict(ledger.counted()) if ledger is not None else {}
        tick.consumed = self.accounts.consumed()
        tick.shadow, tick.released = self.shadow, self.released.why
        self._decided |= tick.record is not None
        self.on_tick(tick)
        return tick

    # --- events and actions ---

    def _alarm(self, kind: str, text: str) -> None:
        self._tick.alarms += (Alarm(kind, text),)

    def _checked(self, *kinds: str) -> None:
        """Record that this tick has checked the conditions of these kinds of alarms; those not raised have ended."""
        self._looked_for.update(kinds)

    def _let_last(self) -> None:
        """Repeat the lasting alarms whose conditions this tick has not checked."""
        raised = {alarm.kind for alarm in self._tick.alarms}
        # Some alarms concern only the controller that writes. A controller that reaches the cluster without holding the
        # lease drops them. A controller that cannot reach the cluster keeps them: it lost the lease for that reason and
        # cannot know whether the conditions have ended.
        if (not self.holds and not raised & _BLIND) or self.shadow:
            lasting = {alarm.kind for alarm in self._lasting}
            self._tick.dropped = frozenset(_OF_A_WRITER) & lasting - raised - self._looked_for
            self._checked(*_OF_A_WRITER)
        for alarm in self._lasting:
            if alarm.kind not in raised | self._looked_for:
                self._tick.alarms += (alarm,)
        self._lasting = tuple(alarm for alarm in self._tick.alarms if alarm.kind in _LASTING)
        self._looked_for = set()

    def _carry_out(self, actions: list[Action]) -> list[Action]:
        """Carry out the core's actions; return the actions that follow."""
        following: list[Action] = []
        write: Write | None = None
        for action in actions:
            if isinstance(action, RaiseAlarm):
                self._alarm(action.kind, action.text)
            elif isinstance(action, Observe):
                following += self._observe()
            elif isinstance(action, Write):
                write = action
            elif isinstance(action, Record):
                self._tick.record = action
            elif isinstance(action, ReadBack):
                following += self._read_back()
        # The record is the last action, but must be stored before anything is written.
        if write is not None and any(isinstance(action, Refresh) for action in actions):
            following += self._actuate(write.attributes)
        return following

    # --- observing ---

    def _recognise(self, client: ClientT) -> None:
        self._look.check_cluster()

    def _observe(self) -> list[Action]:
        try:
            self._read()
            if not self._decided:
                self._tick.before = self.actuator.present()
            if refusals := self.actuator.refusals():
                what = f"the administrator's own configuration would be refused: {in_short(refusals)}"
                self._alarm("invalid", f"{what}; nothing is written until it is corrected")
            self._checked("file", "invalid")
        except ClocksDiffer as error:
            return self.core.handle(ObservationFailed(self.clock(), error.line(), "clock"))
        except OtherCluster as error:
            # The other cluster's store holds another administrator's queues: do not remember them.
            return self.core.handle(ObservationFailed(self.clock(), error.line(), "cluster"))
        except YarnfairError as error:
            if not self.actuator.baseline:
                # Without the file no entitlement is known.
                return self.core.handle(ObservationFailed(self.clock(), error.line()))
            # The weights in force stay unchanged, and accounting continues.
            self._alarm("file", error.line())
        if self.holds:
            for danger in self.actuator.dangers():
                self._alarm("foreign", f"somebody else wrote {self._document}: {danger}")
        try:
            observed = self._look.look(self.actuator)
        except ClocksDiffer as error:
            return self.core.handle(ObservationFailed(self.clock(), error.line(), "clock"))
        except OtherCluster as error:
            return self.core.handle(ObservationFailed(self.clock(), error.line(), "cluster"))
        except YarnfairError as error:
            self._guard(self.clock(), self._guards.answered(self._look.answer_s), seen=False)
            return self.core.handle(ObservationFailed(self.clock(), error.line()))
        self._tick.snapshot = snapshot = observed.snapshot
        self._tick.guaranteed = observed.guaranteed
        now_s, from_s = snapshot.time_s, observed.preempted_from_s
        self.core.killed.observe(now_s, observed.preempted, rm_age_s=now_s - from_s)
        self._tick.preempted_mb_s = self.core.killed.lost_mb_s(snapshot.time_s)
        self._checked("app", "policy", "clock", "cluster")
        look = self._look
        passed = self._guards.look(snapshot, look.refused, look.latest_end_ms, look.answer_s) or self._edited
        self._edited = ""
        self._guard(self.clock(), passed, seen=True)
        if self.settings.count_earlier and self.core.ledger is None:
            # Accounting covers the time since the first of these applications was started.
            self.core.start_s = self._look.earliest_s
        if self._look.news:
            self._alarm("rm", f"{self._look.news}: its queues are written and read back again")
            self.core.forget_written()
            self._in_force, self._verified_s = {}, -math.inf
            self._try_again()
            # A restarted ResourceManager has read yarn-site.xml again, which may have switched preemption on.
            self.actuator.forget_traps()
        if skipped := self._look.skipped:
            shown = "; ".join(f"{app}: {why}" for app, why in list(skipped.items())[:3])
            self._alarm("app", f"skipped {counted(len(skipped), 'application')} with figures that cannot be: {shown}")
        if self.holds or self.shadow or self.dry_run:
            self._tell_traps()
        else:
            self._checked("trap")
        actions = [*self._settle(), *self.core.handle(observed)]
        self._tell_unpaid(snapshot)
        if not any(isinstance(action, Write) for action in actions):
            self._keep()
            if self._verification_due():
                actions += self._read_back()
        return actions

    def _compare_clocks(self, info: ClusterInfo) -> None:
        """Compare this machine's clock with the RM's and the ledger's before accounting begins. Raises ClocksDiffer."""
        if self._clock_compared:
            return
        clock, looked_s = self.clock, self.accounts.looked_s
        steady = clock if isinstance(clock, SteadyClock) else None
        host_s = clock() if steady is None else steady.host_s()
        kept = self.store.document("clocks")
        kept_rm_s = kept[1] if isinstance(kept, list) and kept[0] == looked_s else None
        # With `count_earlier`, a ledger without a poll starts at 0.
        kept_s = looked_s or None
        reading = read_clocks(Clocks(host_s, info.clock_s, kept_s, kept_rm_s), self.settings.trust_clock)
        if reading.note:
            self._alarm("note", reading.note)
        if reading.shift_s:
            self.accounts.shift(reading.shift_s)
            self.core.shift(reading.shift_s)
            self.actuator.shift(reading.shift_s)
        if steady is not None:
            steady.set(reading.now_s)
        self._clock_compared = True

    def _read_with(self, queues: Collection[str]) -> None:
        """Read the configuration again in a poll that shows other queues than the last one.

        An administrator may have edited queues since this tick has read the configuration. The accounts of queues that
        come and go are divided by their entitlements, once and for all, so both have to be of the same moment.
        """
        before, self._queues = self._queues, frozenset(queues)
        if before is not None and before != self._queues:
            # A configuration that cannot be read now raises an alarm at the next tick.
            with contextlib.suppress(YarnfairError):
                self._read()

    def _read(self) -> None:
        """Read the configuration, and report drift of managed values. Raises what reading raises."""
        if self.holds and not self.dry_run and (text := restore_left(self.actuator, self.store)):
            self._alarm("note", text)
        self._catch_up()
        drift = self.actuator.read(words_lost=self._words_lost)
        if drift and self.holds:
            self._ownership_kept = False
            shown = "; ".join(edit.line() for edit in drift[:5])
            more = f" and {len(drift) - 5} more" if len(drift) > 5 else ""
            self._alarm("foreign", f"somebody else wrote {self._document}: {shown}{more}")
            self.core.forget_written()
            if self.settings.guards.foreign_edit:
                self._edited = f"somebody else wrote {self._document} ({shown}{more})"

    @property
    def _document(self) -> str:
        """Return the name of the written configuration for messages."""
        return "the scheduler's configuration" if self.actuator.scheduler else "the allocation file"

    def _tell_traps(self) -> None:
        """Report traps.

        A blocking trap is reported until it is removed, also to a shadow, where a configuration is tried first. Any
        other trap is reported once, and again when its text changes, for example when unknown preemption turns out to
        be on.
        """
        try:
            traps = self._traps()
        except YarnfairError:
            return  # a controller that writes queries again and reports the error
        self._checked("trap")
        for trap in traps:
            if trap.blocking:
                self._alarm("trap", trap.line())
            elif trap.line() not in self._noted:
                self._alarm("note", trap.line())
        self._noted = {trap.line() for trap in traps if not trap.blocking}

    def _tell_unpaid(self, snapshot: Snapshot) -> None:
        """Report debts that stay unpaid for long because the weights must not trigger preemption.

        Only the controller that writes reports them: a shadow or a standby limits no weights.
        """
        core, ledger = self.core, self.core.ledger
        if ledger is None or not self.holds or self.shadow:
            return
        if core.preemption is None and "trap" not in self._looked_for:
            return  # whether the scheduler preempts is not known in this tick
        self._checked("unpaid")
        if not self.policy.gives_back:
            return
        owed: Mapping[str, float] = {}
        accumulated = 0.0
        if core.held:
            by_leaf = CountedLedger.of(ledger).by_leaf
            accumulated = sum(by_leaf.values())
            queues = {queue.name: Entitled.of(queue) for queue in snapshot.queues.values()}
            owed = debts(by_leaf, queues, flat=self.policy.dues_are_flat(), newcomers=ledger.newcomers())
        unit, whole = ledger.settings.resource, snapshot.capacity
        capacity = {"memory": whole.memory_mb, "vcores": whole.vcores}.get(unit, 1)
        text = self._unpaid.look(
            snapshot.time_s, core.held, owed, accumulated=accumulated, capacity=capacity, unit=unit
        )
        if text:
            self._alarm("unpaid", text)

    def _traps(self) -> tuple[Trap, ...]:
        """Return the traps that were not accepted, and set the core's preemption rule from them.

        The read-back trap is irrelevant without `read_back`.
        """
        accepted = self.settings.accept if self.settings.read_back else {*self.settings.accept, "read-back"}
        found = self.actuator.traps(self.client, self._look.hadoop)
        open_ = tuple(trap for trap in found if trap.name not in accepted)
        # If the administrator accepts preemption, the policy's shares need no bounds against it.
        self.core.preemption = preemption_bound(open_)
        return tuple(self._under_settings(trap) for trap in open_)

    def _under_settings(self, trap: Trap) -> Trap:
        """Return the trap of preemption as it is under this configuration; any other trap unchanged.

        A budget lets shares move below what queues use. With a long period neither the bounds nor the budget hold: a
        queue that grows between two looks beyond a share which was lowered is preempted before the share can follow.
        """
        if trap.preemption is None:
            return trap
        what, hint, wait_s = trap.what, trap.hint, trap.preemption.wait_s
        budget, period_s = self.settings.preemption_budget_mb_s, self.settings.period_s
        if budget > 0:
            what = (
                f"{what.partition(':')[0]}: these move below what queues use while it has killed work of less "
                f"than {amount(budget, 'memory')} within the last hour (`preemption_budget_mb_s`)"
            )
        if LOOKS_BEFORE_A_KILL * period_s > wait_s:
            what += (
                f"; but preemption kills after {wait_s:g} s, and the controller looks only every {period_s:g} s, so "
                "that more may be killed of queues that grow in between"
            )
            if wait_s > 0:
                hint = f"set period_s to {wait_s / LOOKS_BEFORE_A_KILL:g} at most, or {hint}"
        return replace(trap, what=what, hint=hint)

    # --- writing ---

    def _actuate(self, attributes: Attributes) -> list[Action]:
        """Write, refresh, and report the result to the core."""
        tick = self._tick
        tick.creating = self.actuator.creating
        self._decided_s = self.clock()
        others = chain.from_iterable(attributes.all_but_weights)
        self._deciding = frozenset((*attributes.weights, *others))
        if self.shadow and not self.dry_run:
            # A shadow treats the decision as written, so that it is logged again only when it changes.
            self.core.handle(Actuated(self.clock()))
            self._keep(tick.record)
            return []
        if not self.holds and not self.dry_run:
            return self._passive()
        reached, decided_by = False, self.core.preemption
        try:
            if not self.dry_run and (
                self.actuator.refusals() or self._waits() or any(trap.blocking for trap in self._traps())
            ):
                return self._passive()
            if self.core.preemption != decided_by:
                # The decision was made under another preemption rule than the scheduler's present one.
                return self._passive()
            if self.settings.ad_hoc == "name" and tick.snapshot is not None:
                leaves = {q.name: q.running_apps > 0 or q.demand != ZERO for q in tick.snapshot.leaves()}
                self.actuator.name_queues(leaves, tick.snapshot.time_s)
            prepared = self.prepared = self.actuator.prepare(attributes)
            self._checked("ad-hoc")
            for problem in prepared.problems:
                self._alarm("ad-hoc", problem)
            if problems := () if self.actuator.refusals() else self.actuator.problems_of(prepared):
                return self._take_back(f"not written, the ResourceManager would refuse it: {in_short(problems)}")
            if self.dry_run:
                return self._passive()
            # Store the values in the ledger before they are in the file, so that a killed controller recognises its own
            # values.
            if not self._keep(look=False):
                return self.core.handle(
                    Actuated(self.clock(), ok=False, reason="not written: the ledger cannot be kept")
                )
            if self._lease is not None and not self._told(self._lease):
                return self._passive()
            self.actuator.write(prepared, self._lease.lasts if self._lease is not None else always)
            reached, tick.wrote, tick.written = True, prepared.changed, dict(prepared.in_force)
            self._in_force, self._written_s = prepared.in_force, self.clock()
            if self.settings.refresh == "rpc":
                self.actuator.load(self.client)
            self._checked("actuation")
        except YarnfairError as error:
            # Only a scheduler's own store refuses values before anything is in force. A file that cannot be written
            # leaves the old file in place.
            if isinstance(error, Refused) and (reached or self.actuator.beside is None):
                return self._take_back(error.line())
            tick.record = None
            following = self.core.handle(Actuated(self.clock(), ok=False, reason=error.line()))
            self._keep()
            return following
        following = self.core.handle(Actuated(self.clock()))
        self._keep(tick.record)
        return following

    def _waits(self) -> bool:
        """Return whether the next attempt after a refusal is not due yet; if so, the alarm is repeated."""
        if self._refused is None:
            return False
        refused = self._refused
        if self.clock() >= refused.until_s:
            return False
        if self.actuator.edits != refused.edits or self._deciding != refused.queues:
            return False
        self._alarm(refused.kind, refused.reason)
        return True

    def _take_back(self, reason: str) -> list[Action]:
        """Restore the administrator's values after the RM refused a document, and report this to the core."""
        tick = self._tick
        tick.record = None
        if not self.dry_run:
            reason = f"{reason}; {self._restored()}"
            self._hold_off("actuation", reason)
        following = self.core.handle(Actuated(self.clock(), ok=False, reason=reason))
        self._keep()
        return following

    def _hold_off(self, kind: str, reason: str) -> None:
        """Delay the next attempt after a refusal, or after the RM has shown other values than those written."""
        now_s, queues = self.clock(), self._deciding
        since_s = now_s if self._refused is None else self._refused.since_s
        long_s = min((now_s - since_s) * _DELAY_PART, _LONG_DELAY_S)
        gap_s = max(self._refused_gap_s, long_s)
        self._refused = _Refusal(kind, reason, now_s + gap_s, since_s, self.actuator.edits, queues)
        self._refused_gap_s = min(2 * self._refused_gap_s, max(_SHORT_DELAY_S, self.settings.period_s))

    def _try_again(self) -> None:
        """End the delay after a refusal: nothing is known about the RM's next answer."""
        self._refused, self._refused_gap_s = None, self.settings.period_s

    def _restored(self) -> str:
        """Write the administrator's values as one unit, refresh and read back; return a description of the result."""
        try:
            self._read()
            original = self.actuator.original()
            if not self._keep(look=False):
                return "the administrator's own values are not restored: the ledger cannot be kept"
            self.actuator.write(original, self._lease.lasts if self._lease is not None else always)
            self._tick.wrote |= original.changed
            self._in_force, self._written_s = original.in_force, self.clock()
            if self.settings.refresh == "rpc":
                self.actuator.load(self.client)
                if self.settings.read_back:
                    timeout_s = min(self.settings.effect_s, _RESTORED_S)
                    self.actuator.confirm(self.client, original.in_force, timeout_s=timeout_s, every_s=0.02)
        except YarnfairError as error:
            return f"the administrator's own values are not in force either: {error.line()}"
        return "the administrator's own values are restored"

    def _passive(self) -> list[Action]:
        """Drop this tick's decision without writing it; the next tick decides again. A dry run keeps the record."""
        self._tick.record = self._tick.record if self.dry_run else None
        self.core.handle(Actuated(self.clock()))
        self.core.forget_written()
        self._keep()
        return []

    def _settle(self) -> list[Action]:
        """If the RM polls the file, delay the next write until the RM can have loaded the last one; then verify it.

        With more frequent writes, a poll might never find a file that is old enough to be loaded.
        """
        if self.settings.refresh != "poll":
            return []
        still = self.clock() >= self._written_s + POLL_WRITE_GAP_S
        self.core.write_gap_s = POLL_WRITE_GAP_S if still else math.inf
        return self._read_back() if still and self._verified_s <= self._written_s else []

    def _read_back(self) -> list[Action]:
        """Compare the weights in force with the written ones; return the core's actions."""
        if self.dry_run or self.shadow or not self.settings.read_back:
            return []
        wanted, written = self._in_force, self.core.written
        poll, age_s = self.settings.refresh == "poll", self.clock() - self._written_s
        if written is None or (poll and age_s < POLL_WRITE_GAP_S):
            return []
        decided_s = None if poll else self._decided_s
        wrong, others = "", {}
        try:
            try:
                limit_s = 0.0 if decided_s is None else self.settings.effect_s
                self.actuator.confirm(self.client, wanted, timeout_s=limit_s, every_s=0.02)
                shown = dict(written.weights)
                if self.actuator.writes_more:
                    others = self.actuator.differences(self.client)
            except NotEffective as error:
                if poll and age_s < POLL_EFFECT_S:
                    self.core.write_gap_s = math.inf
                    return []
                wrong, queues = error.line(), self.actuator.in_force(self.client)
                # The file may hold scaled weights; queues that match are reported with the core's own weights.
                shown = {
                    path: weight if path not in error.wrong else queues.get(path, math.nan)
                    for path, weight in written.weights.items()
                }
        except YarnfairError as error:
            self._alarm("not-in-force", f"cannot be read back: {error.line()}")
            return []
        now = self.clock()
        self._verified_s = now
        self._checked("not-in-force")
        differs = bool(wrong or others)
        if decided_s is not None and not differs:
            self._tick.effect_s = now - decided_s
        if not differs and (poll or decided_s is not None):
            self._try_again()
        # An RM that polls has perhaps missed the file, so it is written again once before it is taken back.
        touches, self._touched = poll and differs and self.holds and not self._touched, poll and differs
        if touches:
            self._touch()
        following = self.core.handle(Shown(now, shown))
        if wrong:
            # The core compares its own weights: a file may have multiples of them, capacities are in other units, and
            # queues of which the decision says nothing may differ as well.
            self.core.forget_written()
            following = [RaiseAlarm("not-in-force", wrong)]
        if others:
            self.core.forget_written()
            following.append(RaiseAlarm("not-in-force", in_short([f"{queue}: {why}" for queue, why in others.items()])))
        if differs and self.holds and not touches and (poll or decided_s is not None):
            self._tick.record = None
            reasons = [action.text for action in following if isinstance(action, RaiseAlarm)]
            words = f"what was written is taken back: {self._restored()}"
            following.append(RaiseAlarm("not-in-force", words))
            self._hold_off("not-in-force", "; ".join((*reasons, words)))
        return following

    def _touch(self) -> None:
        """Rewrite the file unchanged.

        An RM that was loading while the file was replaced considers the new file loaded, and loads it only when its
        modification time is newer.
        """
        with self._alarmed("actuation"):
            self.actuator.touch()
            self._checked("actuation")

    def _verification_due(self) -> bool:
        if self.settings.refresh == "poll" and self._verified_s <= self._written_s:
            return False  # `_settle` reads back at every poll
        return self._verified_s + self.settings.verify_every_s <= self.clock()

    # --- the ledger ---

    def _keep(self, record: Record | None = None, *, look: bool = True) -> bool:
        """Store the accounts, the managed values and a decision in the ledger; return whether that succeeded.

        ``look``: also store the last poll for readers of the ledger. It is left out while the weights are not loaded
        yet.
        """
        ledger = self.core.ledger
        documents: dict[str, Any] = {
            "rm": self._look.identity,
            **self.actuator.document(),
            "policy": self._policy_document,
            # A shadow must know that an earlier run has written, until those values are restored.
            "wrote": self._left_over if self.settings.mode == "shadow" else self.holds or None,
            "cluster": self._look.facts.document(),
            "unpaid": self._unpaid.document(),
            "killed": self.core.killed.document(),
            "clocks": [self.accounts.looked_s, self._look.clock_s],
            "look": self._seen() if look else None,
        }
        if documents["look"] is None:
            del documents["look"]
        if self.holds and self.settings.mode != "shadow" and self.actuator.beside is not None:
            documents[LOCATION] = self.actuator.beside.location()
        if ledger is not None:
            documents["ledger"] = ledger.state()
            documents["consumed"] = {queue: list(used) for queue, used in self.core.consumed().items()}
        try:
            decision = decision_document(record, self.actuator.creating)
            self.store.commit(accounts=self.accounts, documents=documents, decision=decision)
        except StoreFull as error:
            self._alarm("ledger", error.line())
            return False
        self._checked("ledger")
        self._ownership_kept = True
        return True

    def _keep_ownership(self) -> None:
        """Store to whom the values belong, in a tick that found an edit and stores nothing else.

        After such a tick, the entitlement that the log has announced would be lost with a restart.
        """
        try:
            self.store.commit(documents=self.actuator.document())
        except StoreFull as error:
            self._alarm("ledger", error.line())
            return
        self._ownership_kept = True

    def _weights_in_force(self) -> Mapping[str, float]:
        """Return the weights for readers of the ledger: the written ones; for a shadow, those in the configuration."""
        if self.shadow and not self.dry_run:
            with contextlib.suppress(YarnfairError):
                return self.actuator.present()
        return self.core.written.weights if self.core.written is not None else {}

    def _preemption(self, snapshot: Snapshot) -> dict[str, float] | None:
        """Return the work killed by preemption and its budget, MiB·s; None if the core has no preemption rule."""
        if self.core.preemption is None:
            return None
        killed = self.core.killed
        return {"budget_mb_s": killed.budget_mb_s, "lost_mb_s": killed.lost_mb_s(snapshot.time_s)}

    def _seen(self) -> dict[str, Any] | None:
        """Return the last poll for readers of the ledger."""
        snapshot, ledger = self._tick.snapshot, self.core.ledger
        if snapshot is None or ledger is None:
            return None
        return look_document(
            snapshot,
            self._weights_in_force(),
            self._tick.guaranteed,
            self.actuator.creating,
            period_s=self.settings.period_s,
            began_s=ledger.start_s,
            holds=self.holds,
            preemption=self._preemption(snapshot),
            mode=self.settings.mode,
            scheduler=self.actuator.scheduler,
            released=self.released.why,
            released_s=self.released.since_s,
            alarms=[[alarm.kind, alarm.text] for alarm in self._tick.alarms],
        )


def _capacity(ledger: Any) -> Resource:
    """Return the cluster's capacity from a stored ledger; zero if there is none."""
    try:
        return Resource(*ledger["capacity"])
    except (KeyError, TypeError):
        return ZERO
