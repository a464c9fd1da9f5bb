"""The core of the control loop: observe, account, decide, act. It is a state machine without I/O or a clock.

Drivers feed it events and carry out its actions: harness.control.virtual in virtual time, harness.control.wall on a
real cluster. It has one method per event, in the manner of dask's worker state machine.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from harness.control.bound import bounded
from harness.control.changes import amount, percent
from harness.control.events import (
    Action,
    Actuated,
    Event,
    ObservationFailed,
    Observe,
    Observed,
    RaiseAlarm,
    ReadBack,
    Record,
    Refresh,
    Shown,
    Tick,
    Write,
)
from harness.control.killed import KilledWork
from harness.control.preemption import HeldBack, held_back, held_parents, within_use
from harness.control.threshold import keep_small_changes
from harness.ledger import Ledger, Usage
from harness.ledger.ledger import LedgerState
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes, LedgerSettings
from harness.model.preemption import PreemptionRule
from harness.model.resources import ZERO, Resource
from harness.model.snapshot import Figures, Snapshot
from harness.policies.base import CountedLedger, Policy
from harness.policies.capabilities import FigurePolicy
from harness.policies.tree import leaf_weights

#: An observation or actuation that has not been answered after this many periods raises an alarm.
LATE_PERIODS = 3
#: Weights that differ by less than this fraction differ by rounding to the weight grid.
_SAME_WEIGHT = 2.0**-9


class ControlCore:
    """Decide which weights to write. ``handle(event)`` returns the actions in the order in which to carry them out.

    Parameters
    ----------
    policy : Policy
        The policy whose plan is enforced.
    period_s : float
        Control period in seconds. Policies see it in the snapshot.
    write_gap_s : float
        Minimum time between writes, in seconds: 0 if the driver refreshes the scheduler itself, and more than the poll
        period plus 5 s if the RM's own poll loads the file (harness.control.poll).
    read_back : bool
        Whether to compare the weights in force with the written ones after each write.
    start_s : float or None
        Time at which accounting begins, on the snapshots' clock (0 in virtual time). If None, accounting begins at the
        first observation, and earlier usage does not count.
    max_ratio : float or None
        Weights stay within this ratio of the entitlements (harness.control.bound). None: unbounded.
    write_threshold : float
        Siblings keep the weights that were written last while no share among them would change by this fraction or
        more (harness.control.threshold). 0: every change is written.
    remember : bool
        Whether a removed leaf keeps its account in case it reappears.
    preemption : PreemptionRule or None
        The scheduler's preemption, which the weights must not trigger (harness.control.preemption). None: the scheduler
        does not preempt, or the administrator accepts that it kills containers.
    preemption_budget_mb_s : float
        Amount of work that preemption may kill within any hour, in MiB·s (harness.control.killed). The driver adds the
        losses to `killed` before each observation.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        period_s: float,
        write_gap_s: float = 0.0,
        read_back: bool = False,
        start_s: float | None = None,
        max_ratio: float | None = None,
        write_threshold: float = 0.0,
        remember: bool = False,
        preemption: PreemptionRule | None = None,
        preemption_budget_mb_s: float = 0.0,
    ) -> None:
        if not (0 < period_s < math.inf):
            raise ValueError(f"period_s is {period_s}, not a finite number above 0")
        self.policy = policy
        self._weigh = policy.weigh if isinstance(policy, FigurePolicy) else None
        self.period_s = period_s
        self.write_gap_s = write_gap_s
        self.read_back = read_back
        self.start_s = start_s
        self.max_ratio = max_ratio
        self.write_threshold = write_threshold
        self.remember = remember
        self.preemption = preemption
        #: The work that preemption has killed within the last hour, and the budget.
        self.killed = KilledWork(preemption_budget_mb_s)
        #: Created at the first observation, from its leaves. Afterwards never None.
        self.ledger: Ledger | None = None
        #: The attributes written last; a plan that equals them is not written again. None: nothing was written yet, or
        #: the attributes in force are unknown.
        self.written: Attributes | None = None
        self.last_write_s = -math.inf
        #: The leaves with unmet demand that got less than the policy planned at the last decision, because a larger
        #: weight could have triggered preemption.
        self.held: Mapping[str, HeldBack] = {}
        #: The parents of such leaves that got less than planned, too -> their shares in the plan.
        self.held_above: Mapping[str, float] = {}
        #: The entitlements at the time `written` was decided; only filled if there is a write threshold.
        self._entitled: Mapping[str, float] = {}
        #: Since when an Observe has not been answered (None: none outstanding).
        self.observing_since_s: float | None = None
        #: Since when a Write has not been answered (None: none outstanding).
        self.actuating_since_s: float | None = None
        #: Last counters of removed leaves.
        self._consumed: dict[str, Usage] = {}
        #: The ledger's leaves, in the order of the rows of `_last` and `_shown_once`.
        self._leaves: tuple[str, ...] = ()
        #: (leaves, 2): the last counters, MiB-seconds and vcore-seconds.
        self._last: Any = np.zeros((0, 2))
        #: (leaves,): whether a leaf has shown a counter yet. None: all have.
        self._shown_once: Any = None
        #: Shape and capacity of the last observation; `decide` accepts only observations with the same shape and
        #: capacity. None: `decide` accepts none.
        self._like: tuple[Any, Any] | None = None
        #: `written`, and its weights in the order of that shape (None: `written` sets other attributes, too).
        self._in_order: tuple[Attributes | None, Any] = (None, None)
        #: An earlier controller's ledger and counters, until an observation shows how the policy accounts (`resume`).
        self._kept: tuple[LedgerState, Mapping[str, Sequence[float]]] | None = None
        #: Seconds by which the times of `_kept` have to be moved.
        self._shift_s = 0.0
        self._leaf_weights: tuple[tuple[str, float], ...] = ()
        self._capacity: Any = None
        #: min(d_i, S_i) at the last observation, if dues are counted.
        self._claims: dict[str, float] = {}

    def handle(self, event: Event) -> list[Action]:
        """Return the actions for an event. A failure of the policy or the cluster becomes a RaiseAlarm action."""
        if type(event) is Observed:
            return self._observed(event)
        if type(event) is Actuated:
            return self._actuated(event)
        if type(event) is Tick:
            return self._tick(event)
        if type(event) is Shown:
            return self._shown(event)
        if type(event) is ObservationFailed:
            self.observing_since_s = None
            return [RaiseAlarm(event.kind, event.reason)]
        raise TypeError(f"{type(event).__name__} is not an event of the control core")

    def consumed(self) -> Mapping[str, Usage]:
        """Return each leaf's counter at the time it was last accounted for, as `resume` expects it."""
        rows = zip(self._leaves, self._last.tolist(), strict=True)
        known = [True] * len(self._leaves) if self._shown_once is None else self._shown_once.tolist()
        present = {leaf: Usage(*row) for (leaf, row), shown in zip(rows, known, strict=True) if shown}
        return {**self._consumed, **present}

    def decide(self, figures: Figures) -> list[Action] | None:
        """Return the actions that `handle` returns for an `Observed`, from a simulation's arrays without queue views.

        Returns None if the caller has to call `handle` with the observation instead.
        """
        ledger, like = self.ledger, self._like
        if ledger is None or like is None or like[0] is not figures.shape or like[1] is not figures.capacity:
            return None
        now = figures.counters()
        ledger.observe_columns(figures.time_s, now - self._last, checked=True)
        self._last = now
        if self._in_order[0] is not self.written:
            self._in_order = self.written, _in_order(self.written, figures)
        before = self._in_order[1]
        found = None
        if before is not None and self._weigh is not None:
            found = self._weigh(figures, ledger.columns, before, self.period_s)
        if found is None:
            return None
        now_s = figures.time_s
        if found is before or now_s - self.last_write_s < self.write_gap_s:
            return []
        weights = dict(zip(figures.shape.names[1:], found[1:].tolist(), strict=True))
        actions = self._write(Attributes(weights), now_s, ledger.counted(), {})
        self._in_order = self.written, found.copy()
        return actions

    def resume(self, state: LedgerState, consumed: Mapping[str, Sequence[float]]) -> None:
        """Continue an earlier controller's accounts from the first observation on.

        Parameters
        ----------
        state : LedgerState
            The stored ledger (`Ledger.state`). If it does not match the policy's ledger settings, accounting restarts
            and an alarm reports this. If the policy fails, its settings are unknown and the stored accounts are kept.
        consumed : Mapping[str, Sequence[float]]
            Leaf -> its counter at the time of ``state``, in MiB-seconds and vcore-seconds.
        """
        self._kept = (state, consumed)

    def shift(self, seconds: float) -> None:
        """Move the times of the accounts given to `resume` by ``seconds``."""
        self._shift_s += seconds
        self.killed.shift(seconds)

    def forget_written(self) -> None:
        """Forget the written attributes, so that the next plan is written.

        Called when the weights in force are no longer known (RM restart, somebody else's edit).
        """
        self.written = None

    # --- one method per event ---

    def _tick(self, event: Tick) -> list[Action]:
        actions: list[Action] = []
        if self.observing_since_s is not None:
            waited = event.now_s - self.observing_since_s
            if waited < LATE_PERIODS * self.period_s:
                return []
            actions.append(RaiseAlarm("late", f"no answer to an observation for {waited:.1f} s: asking again"))
        if self.actuating_since_s is not None:
            waited = event.now_s - self.actuating_since_s
            if waited >= LATE_PERIODS * self.period_s:
                actions.append(RaiseAlarm("late", f"no answer to a write for {waited:.1f} s: it will be repeated"))
                self.actuating_since_s, self.written = None, None
        self.observing_since_s = event.now_s
        return [*actions, Observe()]

    def _observed(self, event: Observed) -> list[Action]:
        self.observing_since_s = None
        snapshot = event.snapshot
        alarms: list[Action] = []
        if self.ledger is None:
            try:
                settings = _counting(self.policy, snapshot)
            except Exception as error:
                return [self._failed(error)]
            alarms = self._begin(settings, snapshot)
        ledger = self.ledger
        if ledger is None:
            return alarms
        if problem := self._account(event, ledger):
            return [*alarms, RaiseAlarm("observation", problem)]
        now = snapshot.time_s
        if snapshot.period_s != self.period_s:
            snapshot = Snapshot(now, snapshot.capacity, snapshot.queues, self.period_s)
        counted = CountedLedger.of(ledger)
        before = self.written
        try:
            plan = self.policy.plan(snapshot, counted)
            wanted = Attributes(plan.weights, plan.min_shares, plan.max_shares, plan.scheduling_policies)
            # With preemption, an unchanged plan is bounded again, because the bounds depend on present usage.
            unchanged = wanted == before and self.preemption is None
            if self.preemption is None:
                self.held, self.held_above = {}, {}
            if unchanged or now - self.last_write_s < self.write_gap_s:
                return alarms
            sound, problem = _sound(wanted, snapshot)
            if self.max_ratio is not None and not problem:
                sound, problem = _sound(
                    replace(sound, weights=bounded(sound.weights, snapshot, self.max_ratio)), snapshot
                )
            if self.preemption is not None and not problem:
                if sound.min_shares:
                    problem = "its minimum shares would be filled by preemption (`accept: [preemption]`)"
                else:
                    planned = sound.weights
                    spare = self.killed.spare(snapshot)
                    sound = replace(
                        sound, weights=within_use(planned, snapshot, self.preemption, self.max_ratio, spare)
                    )
                    self.held = held_back(planned, sound.weights, snapshot, self.preemption)
                    self.held_above = held_parents(planned, sound.weights, snapshot, self.held)
            if self.write_threshold > 0 and not problem:
                sound = self._without_small_changes(sound, before, snapshot)
        except Exception as error:
            # A user's policy may raise or return anything; the cluster must keep its last good weights, and a person
            # must be told.
            return [*alarms, self._failed(error)]
        if problem:
            return [*alarms, RaiseAlarm("policy", f"{self.policy.name}: {problem}")]
        if sound == before:
            return alarms
        return [*alarms, *self._write(sound, now, counted.by_leaf, plan.reasons)]

    def _without_small_changes(self, sound: Attributes, before: Attributes | None, snapshot: Snapshot) -> Attributes:
        """Return the wanted attributes, with the written weights where the change is below `write_threshold`.

        Weights written for an earlier usage may by now exceed the bounds that keep preemption from killing containers.
        Such a sibling group gets its new weights. The groups below it are then checked again, because their parent's
        share has changed.
        """
        entitled = {name: queue.weight for name, queue in snapshot.queues.items()}
        kept = sound
        if before is not None:
            changed = {name.rpartition(".")[0] for name, _ in entitled.items() ^ self._entitled.items()}
            known = -1
            while len(changed) > known:
                known = len(changed)
                kept = keep_small_changes(sound, before, self.write_threshold, changed)
                if self.preemption is not None and kept != sound:
                    spare = self.killed.spare(snapshot)
                    within = within_use(kept.weights, snapshot, self.preemption, self.max_ratio, spare)
                    changed |= {
                        name.rpartition(".")[0]
                        for name, weight in kept.weights.items()
                        if abs(within[name] - weight) > _SAME_WEIGHT * weight
                    }
        if kept != before:
            self._entitled = entitled
        return kept

    def _write(
        self, wanted: Attributes, now_s: float, counted: Mapping[str, float], reasons: Mapping[str, str]
    ) -> list[Action]:
        newcomers = self.ledger.newcomers() if self.ledger is not None else frozenset()
        changed = _changed(self.written, wanted)
        budget = self.killed.budget_mb_s if self.preemption is not None else 0.0
        lost = self.killed.lost_mb_s(now_s) if self.preemption is not None else None
        kills = f"no more than {amount(budget, 'memory')} an hour" if budget > 0 else "hardly anything"
        held = {
            name: f"held back, so that preemption kills {kills} (else {percent(part)} of the cluster)"
            for name, part in {**self.held_above, **{name: one.planned for name, one in self.held.items()}}.items()
            if name in changed
        }
        record = Record(now_s, wanted, changed, counted, reasons, newcomers, held, lost)
        self.written, self.last_write_s, self.actuating_since_s = wanted, now_s, now_s
        return [Write(wanted), Refresh(), record]

    def _failed(self, error: Exception) -> RaiseAlarm:
        return RaiseAlarm("policy", f"{self.policy.name}: {type(error).__name__}: {error}")

    def _actuated(self, event: Actuated) -> list[Action]:
        self.actuating_since_s = None
        if not event.ok:
            self.written = None
            return [RaiseAlarm("actuation", event.reason or "a write failed")]
        return [ReadBack()] if self.read_back else []

    def _shown(self, event: Shown) -> list[Action]:
        if self.written is None:
            return []
        wrong = [
            f"{queue} has {event.weights.get(queue)} instead of {weight:g}"
            for queue, weight in self.written.weights.items()
            if event.weights.get(queue) != weight
        ]
        if not wrong:
            return []
        self.written = None
        return [RaiseAlarm("not-in-force", "; ".join(wrong[:5]) + ("; ..." if len(wrong) > 5 else ""))]

    # --- accounting ---

    def _begin(self, settings: LedgerSettings, snapshot: Snapshot) -> list[Action]:
        """Restore or create the ledger. If that fails, ``self.ledger`` stays None and the actions describe why."""
        alarms: list[Action] = []
        ledger: Ledger | None = None
        if self._kept is not None:
            state, counters = self._kept
            try:
                consumed = {queue: Usage(*used) for queue, used in counters.items()}
                ledger = Ledger.restored(state, settings)
                ledger.shift(self._shift_s)
                # A ledger whose time lies in the future would refuse every observation until that time.
                ledger.shift(min(snapshot.time_s - ledger.time_s, 0.0))
                self._consumed, self._capacity = consumed, Resource(*state["capacity"])
            except (KeyError, TypeError, ValueError) as error:
                text = f"what was counted so far does not fit this policy, counting begins anew ({error})"
                alarms = [RaiseAlarm("ledger", text)]
        if ledger is None:
            start_s = snapshot.time_s if self.start_s is None else self.start_s
            try:
                weights = dict(leaf_weights(snapshot, settings.shares))
                ledger = Ledger(settings, weights, snapshot.capacity, start_s=start_s)
            except ValueError as error:
                return [RaiseAlarm("observation", str(error))]
            self._leaf_weights, self._capacity = tuple(weights.items()), snapshot.capacity
        ledger.remember = self.remember
        self.ledger, self._kept = ledger, None
        return alarms

    def _account(self, event: Observed, ledger: Ledger) -> str:
        """Bring the ledger up to the observation; return what is wrong with the observation, or ''."""
        snapshot, consumed = event.snapshot, event.consumed
        try:
            weights = leaf_weights(snapshot, ledger.settings.shares)
            if weights != self._leaf_weights:
                ledger.set_weights(dict(weights))
                self._leaf_weights = weights
        except ValueError as error:
            return str(error)
        if snapshot.time_s < ledger.time_s:
            return f"the clock went back from {ledger.time_s:.3f} s to {snapshot.time_s:.3f} s"
        capacity, before = snapshot.capacity, self._capacity
        if event.counted_capacity is not None and ledger.settings.resource == "dominant":
            capacity = event.counted_capacity
        if before is not None and (before.memory_mb < 1 <= capacity.memory_mb or before.vcores < 1 <= capacity.vcores):
            # What was used until now was used on nodes that the last observation did not show.
            ledger.set_capacity(capacity)
        try:
            due = self._due(snapshot, ledger) if ledger.settings.count_due else None
            ledger.observe_columns(snapshot.time_s, self._used(consumed, ledger.leaves), event.active, due)
        except ValueError as error:
            return str(error)
        if capacity is not self._capacity:
            ledger.set_capacity(capacity)
            self._capacity = capacity
        if event.assumed is not None:
            ledger.assume(event.assumed)
        shape, settings = getattr(snapshot.queues, "shape", None), ledger.settings
        plain = self.max_ratio is None and not self.write_threshold and self.preemption is None
        told = shape is not None and plain and not (settings.count_due or settings.pseudo)
        self._like = (shape, snapshot.capacity) if told and event.assumed is None else None
        return ""

    def _used(self, consumed: Mapping[str, Usage], leaves: tuple[str, ...]) -> Any:
        """(leaves, 2): each leaf's usage since its counter was last accounted for."""
        if leaves is not self._leaves:
            self._consumed = dict(self.consumed())
            seen = [self._consumed.pop(leaf, None) for leaf in leaves]
            self._leaves = leaves
            self._last = np.array([used or (0.0, 0.0) for used in seen], np.float64).reshape(-1, 2)
            self._shown_once = np.array([used is not None for used in seen], np.bool_)
        shown: list[Any] = [consumed.get(leaf) for leaf in leaves]
        here = None
        if None in shown:
            here = np.array([used is not None for used in shown], np.bool_)
            shown = [used or (0.0, 0.0) for used in shown]
        now = np.fromiter(chain.from_iterable(shown), np.float64, 2 * len(leaves)).reshape(-1, 2)
        before, known = self._last, self._shown_once
        used = now - before
        back = (used < 0.0).any(axis=1)
        if back.any():
            # The RM has forgotten applications: their usage since the last observation is lost.
            used[back if known is None else back & known] = 0.0
        if here is not None:
            used[~here] = 0.0
            now[~here] = before[~here]
            if known is not None:
                self._shown_once = known | here
        elif known is not None:
            self._shown_once = None
        self._last = now
        return used

    def _due(self, snapshot: Snapshot, ledger: Ledger) -> Any:
        """Return the integral of min(d_i, S_i) since the last observation for each leaf, as an array (leaves,).

        The change between two observations is assumed to be linear.
        """
        seconds = snapshot.time_s - ledger.time_s
        resource, capacity = ledger.settings.resource, snapshot.capacity
        claims: dict[str, float] = {}
        for leaf, _ in self._leaf_weights:
            claims[leaf] = min(snapshot.queues[leaf].demand.amount(resource, capacity), ledger.share(leaf))
        before, self._claims = self._claims, claims
        return np.array([(claim + before.get(leaf, claim)) / 2 * seconds for leaf, claim in claims.items()])


def _counting(policy: Policy, snapshot: Snapshot) -> LedgerSettings:
    """Return the ledger settings of a policy.

    Raises whatever a user's policy raises, and TypeError or ValueError for an invalid result.
    """
    settings = policy.ledger_settings()
    if settings is None:
        settings = policy.plan(snapshot, CountedLedger()).order.ledger
    if not isinstance(settings, LedgerSettings):
        raise TypeError(f"its order's ledger is {type(settings).__name__}, not LedgerSettings")
    # The constructor validates the settings.
    Ledger(settings, {}, ZERO)
    return settings


def _in_order(written: Attributes | None, figures: Figures) -> Any:
    """Return the weights in the figures' order, with 1 for the root; None if there are other attributes."""
    if written is None or any(written.all_but_weights):
        return None
    if tuple(written.weights) != figures.shape.names[1:]:
        return None
    return np.array([1.0, *written.weights.values()])


def _sound(wanted: Attributes, snapshot: Snapshot) -> tuple[Attributes, str]:
    """Return the attributes with weights rounded to float32, and why they cannot be written ('': they can)."""
    values, queues = wanted.weights.values(), snapshot.queues
    right = wanted.weights.keys() <= queues.keys() and {float}.issuperset(map(type, values))
    # A NaN passes min and max but makes the sum NaN. Weights are checked one by one only if something is wrong.
    if not (right and values and min(values) >= WEIGHT_MIN and max(values) <= WEIGHT_MAX and sum(values) > 0):
        for queue, weight in wanted.weights.items():
            if queue not in queues:
                return wanted, f"a weight for {queue}, which is not a queue"
            if not isinstance(weight, int | float) or not (WEIGHT_MIN <= weight <= WEIGHT_MAX):
                return wanted, f"weight {weight!r} of {queue} is not within [{WEIGHT_MIN:g}, {WEIGHT_MAX:g}]"
    weights = dict(zip(wanted.weights, array("f", wanted.weights.values()), strict=True))
    return Attributes(weights, wanted.min_shares, wanted.max_shares, wanted.scheduling_policies), ""


def _changed(before: Attributes | None, after: Attributes) -> tuple[str, ...]:
    """Return the queues of which any attribute differs."""
    if before is None:
        return tuple(sorted({*after.weights, *chain.from_iterable(after.all_but_weights)}))
    changed: dict[str, None] = {}
    both = ((one.weights, *one.all_but_weights) for one in (before, after))
    for old, new in zip(*both, strict=True):
        for queue, value in new.items():
            if old.get(queue) != value:
                changed[queue] = None
        if len(old) != len(new):
            changed.update(dict.fromkeys(queue for queue in old if queue not in new))
    return tuple(changed)
