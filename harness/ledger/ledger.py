"""Accumulated resources per leaf, as LTYARN section 6.2 and tang-thesis section 5.5.1 count them. Pure arithmetic.

This is the reference definition: the simulator's compiled twin (harness.sim.longterm_kernels) is tested against it.
Assumed execution times are computed in harness.sim.quantum. harness.ledger.store keeps a ledger on disk.

Counted usage
-------------
Time is divided into rounds of length L that begin at t_s (eq. 5.12; without L there is a single round). For each
interval of constant usage g_i of a leaf i, the ledger counts

    g'_i = min(g_i, S_i) + eta * max(g_i - S_i, 0)                                    (5.7)
    f_i(t) = integral from t_s to t of g'_i + phi_i (+ the assumed future usage of its running tasks, 5.15)   (5.13)

with S_i = R w_i / sum of w_k over all leaves (eq. 2), by their own weights.

phi_i, the pseudo accumulated resources (eq. 5.16), is 0 unless ``pseudo`` is set; then it is fixed at the leaf's round
arrival, the first moment of the round at which it is active, to

    phi_i = w_i * max f_k / w_k over the leaves k active at that moment that arrived earlier in the round

or 0 where there are none. Two points differ from the text, see docs/decisions/pseudo-accumulated.md: the maximum is
taken once, not anew at each t, and of f / w, not of f (the same for equal weights).

With a half-life, the integral of g' and phi decay (harness.ledger.decay); with a sliding window, only usage within the
window counts. A tumbling window is a round.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from harness.base.sums import left_fold_sum
from harness.ledger.decay import LN2, SlidingWindow, half_life_factor
from harness.ledger.groups import Figures, Group, divided, groups, paths_above
from harness.model.plan import LedgerSettings
from harness.model.resources import Resource

#: An array of shape (leaves,) or (leaves, 2).
Floats = npt.NDArray[np.float64]


class Usage(NamedTuple):
    """A leaf's usage in MiB-seconds and vcore-seconds."""

    memory_mb_s: float = 0.0
    vcore_s: float = 0.0


class LedgerState(TypedDict):
    """A ledger as plain JSON values, from `Ledger.state` to `Ledger.restored`."""

    #: The fields of `LedgerSettings`.
    settings: dict[str, Any]
    #: When the ledger began, and the last observation, in seconds.
    start_s: float
    time_s: float
    #: Number of the present round.
    round: int
    #: MiB and vcores of the cluster.
    capacity: list[int]
    #: Leaf -> entitlement.
    weights: dict[str, float]
    #: Leaf -> its account. ``departed``: the accounts of removed leaves.
    accounts: dict[str, list[Any]]
    departed: dict[str, list[Any]]


#: Rows of a ledger's columns (one column per leaf): see `_Account`.
COUNTED, PSEUDO, ASSUMED, PLAIN, SURPLUS = range(5)


@dataclass(slots=True)
class _Account:
    """One leaf's account outside the columns: the form stored on disk and used when the set of leaves changes."""

    counted: float = 0.0  # integral of g' since the round began
    pseudo: float = 0.0  # phi, fixed when the leaf is first active in the round
    arrived: bool = False  # active at some moment of this round
    assumed: float = 0.0  # future usage that running tasks are assumed to have
    plain: float = 0.0  # integral of g since the ledger began: eq. (1), whatever the settings
    surplus: float = 0.0  # integral of g - min(d, S) since the round began, where dues are counted
    window: SlidingWindow | None = None
    late: bool = False  # joined an existing ledger, and has not been active yet
    passed_on: bool = False  # of a removed leaf: what it had is also in its siblings' accounts

    def state(self) -> list[Any]:
        window = None if self.window is None else self.window.state()
        figures = [self.counted, self.pseudo, self.arrived, self.assumed, self.plain, window, self.surplus, self.late]
        return [*figures, self.passed_on]

    def figures(self, time_s: float) -> Figures:
        """Return the figures that are divided among leaves: pseudo resources, and usage or the window's parts."""
        if self.window is None:
            return np.array([self.pseudo, self.counted])
        self.window.add(max(time_s, self.window.time_s), 0.0)
        return np.array([self.pseudo, *self.window.parts()])

    def take(self, figures: Figures) -> None:
        """Set the account to divided `figures`."""
        self.pseudo = float(figures[0])
        if self.window is None:
            self.counted = float(figures[1])
        else:
            self.window.set_parts(figures[1:].tolist())
            self.counted = self.window.amount()

    @classmethod
    def restored(cls, state: Sequence[Any]) -> _Account:
        # Older ledgers lack the surplus (added with dues) or the flags.
        known = [*state, *(0.0, False, False)[len(state) - 6 :]]
        counted, pseudo, arrived, assumed, plain, window, surplus, late, passed_on = known[:9]
        figures = (float(counted), float(pseudo), bool(arrived), float(assumed), float(plain), float(surplus))
        if not all(math.isfinite(figure) for figure in figures):
            raise ValueError("a figure of an account is not finite")
        return cls(*figures, None if window is None else SlidingWindow.restored(window), bool(late), bool(passed_on))


def _check_weights(weights: Mapping[str, float]) -> None:
    for leaf, weight in weights.items():
        if not (0 < weight < math.inf):
            raise ValueError(f"the entitlement of {leaf} is {weight}, not a finite number above 0")


class Ledger:
    """Counted accumulated resources of each leaf.

    Parameters
    ----------
    settings : LedgerSettings
        Resource, rounds, discount and decay; times in seconds.
    weights : Mapping[str, float]
        Leaf path -> entitlement w_i > 0, for all leaves, active or not.
    capacity : Resource
        R at the start. `set_capacity` changes it.
    start_s : float
        Start of the ledger and of its first round, seconds.
    """

    def __init__(
        self, settings: LedgerSettings, weights: Mapping[str, float], capacity: Resource, *, start_s: float = 0.0
    ) -> None:
        _check_weights(weights)
        if settings.round_s is not None and not settings.round_s > 0:
            raise ValueError(f"round_s is {settings.round_s}, not above 0")
        for name, value in (("half_life_s", settings.half_life_s), ("window_s", settings.window_s)):
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} is {value}, not a finite number above 0")
        self.settings = settings
        self._settings_document = asdict(settings)
        self._weights = dict(weights)
        self._weight_sum: float = left_fold_sum(self._weights.values())
        self._capacity = capacity
        #: Time of the last observation. Invariant: never decreases.
        self.time_s = start_s
        self._hold({leaf: self._new_account() for leaf in weights})
        #: Whether removed leaves keep their account in case they reappear. A new round resets it like all others.
        self.remember = False
        self._start_s = start_s
        self._round = 0  # index of the round that time_s lies in

    def _new_account(self) -> _Account:
        account = _Account()
        if self.settings.window_s is not None:
            account.window = SlidingWindow(self.settings.window_s, self.time_s)
        return account

    def _hold(self, accounts: Mapping[str, _Account], gone: Mapping[str, _Account] | None = None) -> None:
        """Set the leaves and their accounts; ``gone``: accounts of removed leaves that may reappear."""
        held = [*accounts.values(), *(gone or {}).values()]
        self.leaves, self._gone = tuple(accounts), tuple(gone or {})
        self._place = {leaf: k for k, leaf in enumerate(accounts)}
        figures = np.array([[a.counted, a.pseudo, a.assumed, a.plain, a.surplus] for a in held]).reshape(-1, 5).T
        self._all = np.ascontiguousarray(figures, dtype=np.float64)
        #: The figures: one row each (COUNTED ...), one column per leaf in the order of ``leaves``. Updated in place.
        #: `_all` and the three lists continue with the removed leaves.
        self.columns = self._all[:, : len(accounts)]
        self._arrived, self._late = [a.arrived for a in held], [a.late for a in held]
        self._windows, self._passed_on = [a.window for a in held], [a.passed_on for a in held]

    def _held(self) -> dict[str, _Account]:
        """Return leaf -> account, including the accounts of removed leaves."""
        leaves = (*self.leaves, *self._gone)
        flags = zip(self._arrived, self._windows, self._late, self._passed_on, strict=True)
        return {
            leaf: _Account(counted, pseudo, arrived, assumed, plain, surplus, window, late, passed_on)
            for leaf, (counted, pseudo, assumed, plain, surplus), (arrived, window, late, passed_on) in zip(
                leaves, self._all.T.tolist(), flags, strict=True
            )
        }

    def _newcomer(self) -> _Account:
        account = self._new_account()
        account.late = self.remember and self.time_s > self._start_s
        return account

    def set_capacity(self, capacity: Resource) -> None:
        """Set R from the last observation on."""
        self._capacity = capacity

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Set the entitlements from the last observation on. New leaves start with 0; missing ones are removed.

        With ``remember`` set, leaves that reappear continue with their account, and a new leaf is owed nothing for the
        time before it existed. A new leaf beside others below a parent gets a part of the parent's account, and that
        of a removed leaf passes to its siblings, because what a parent has had is its own, whatever children the
        scheduler creates (`harness.ledger.groups`). Any other new leaf gets, at its first activity, the pseudo
        accumulated resources of eq. (5.16).
        """
        _check_weights(weights)
        before = self._weights
        self._weights = dict(weights)
        self._weight_sum = left_fold_sum(self._weights.values())
        known = self._held()
        if self.remember:
            self._regroup(known, before)
        here = {leaf: known.pop(leaf) if leaf in known else self._newcomer() for leaf in weights}
        self._hold(here, {leaf: known[leaf] for leaf in known if self.remember or leaf in self._gone})

    def _regroup(self, known: dict[str, _Account], before: Mapping[str, float]) -> None:
        """Divide the accounts of the parents whose leaves have changed anew (`harness.ledger.groups`).

        ``known``: leaf -> account, those of removed leaves included. ``before``: the entitlements so far.
        """
        weights = self._weights
        if before.keys() == weights.keys():
            return
        above = {path for leaf in self.leaves for path in (leaf, *paths_above(leaf))}
        for leaf in self._gone:
            # Older versions kept the account of a removed leaf beside those of its siblings.
            known[leaf].passed_on |= any(path in above for path in paths_above(leaf))
        sources = [leaf for leaf, account in known.items() if not account.passed_on]
        before = self._own_weights(before)
        for group in groups(sources, weights):
            self._divide(group, known, before)
        for leaf in weights:
            if leaf in known:
                known[leaf].passed_on = False

    def _growth(self, group: Group, before: Mapping[str, float]) -> float:
        """Return the factor by which a parent's entitlement has changed because leaves were created or removed.

        ``before``: the entitlements so far; empty if they say nothing about that (`_own_weights`).
        """
        was = left_fold_sum(before.get(leaf, 0.0) for leaf in group.before)
        return left_fold_sum(self._weights[leaf] for leaf in group.members) / was if was > 0 else 1.0

    def _own_weights(self, before: Mapping[str, float]) -> Mapping[str, float]:
        """Return the entitlements so far if every created leaf has brought its own, otherwise nothing.

        If leaves are entitled by their own weights, regardless of the tree, a parent is entitled to more with each
        leaf, and its siblings' weights stay as they are. Otherwise, a created leaf's weight is a part of its parent's.
        """
        weights = self._weights
        own = self.settings.shares == "leaves"
        return before if own and all(before[leaf] == weights[leaf] for leaf in weights if leaf in before) else {}

    def _divide(self, group: Group, known: dict[str, _Account], before: Mapping[str, float]) -> None:
        """Give each present leaf of a group its part of the parent's account."""
        weights, own, growth = self._weights, [known[leaf] for leaf in group.before], self._growth(group, before)
        latest_s = max((a.window.time_s for a in own if a.window is not None), default=self.time_s)
        figures = {leaf: known[leaf].figures(latest_s) for leaf in (*group.before, *group.members) if leaf in known}
        total = np.sum([figures[leaf] for leaf in group.before], axis=0) * growth
        found = divided(group, total, figures, weights, lambda parent: self._growth(parent, before))
        surplus = left_fold_sum(account.surplus for account in own) * growth
        whole = left_fold_sum(weights[leaf] for leaf in group.members)
        for leaf in group.removed:
            known[leaf].passed_on = True
        for leaf in group.members:
            if leaf not in known:
                account = known[leaf] = self._new_account()
                account.arrived, account.late = any(a.arrived for a in own), all(a.late for a in own)
                account.surplus = surplus * (weights[leaf] / whole)
        old = group.staying or [leaf for leaf in group.members if leaf in figures]
        rest = surplus - left_fold_sum(known[leaf].surplus for leaf in group.members)
        among = left_fold_sum(weights[leaf] for leaf in old)
        for leaf in group.members:
            account = known[leaf]
            if leaf in old:
                account.surplus += rest * (weights[leaf] / among)
            account.take(found[leaf])

    def observe(
        self,
        time_s: float,
        used: Mapping[str, tuple[float, float]],
        active: Collection[str] = (),
        due: Mapping[str, float] | None = None,
    ) -> None:
        """Account for the usage since the last observation.

        Parameters
        ----------
        time_s : float
            Time of the observation, seconds. If it equals the time of the last observation, only ``active`` is used.
        used : Mapping[str, tuple[float, float]]
            Leaf -> usage in the interval (MiB-seconds, vcore-seconds), assumed to be spread evenly; this is exact if
            the allocation was constant. An interval that contains the start of a round is split there, pro rata.
        active : Collection[str]
            Leaves with pending or running tasks at ``time_s``; needed only by ``pseudo`` and for new leaves.
        due : Mapping[str, float] or None
            Leaf -> integral of min(d_i, S_i) over the interval, resource-seconds (None: dues are not counted).

        Raises
        ------
        ValueError
            If ``time_s`` is earlier than the last observation, or ``used`` has an unknown leaf or an invalid amount.
        """
        usage = np.zeros((len(self.leaves), 2))
        place = self._place
        for leaf, amounts in used.items():
            if leaf not in place:
                raise ValueError(f"{leaf} is not a leaf of this ledger")
            usage[place[leaf]] = amounts
        owed = None
        if due is not None:
            owed = np.full(len(self.leaves), math.nan)
            for leaf, amount in due.items():
                owed[place[leaf]] = amount
        self.observe_columns(time_s, usage, active, owed)

    def observe_columns(
        self,
        time_s: float,
        usage: Floats,
        active: Collection[str] = (),
        due: Floats | None = None,
        *,
        checked: bool = False,
    ) -> None:
        """Like `observe`, with the usage as a (leaves, 2) array in the order of ``leaves``, 0 for no usage.

        ``due``: one number per leaf (NaN: its due is not known). ``checked``: the caller guarantees that every amount
        is finite and not negative.
        """
        interval = time_s - self.time_s
        if not interval >= 0:
            raise ValueError(f"time went back from {self.time_s} s to {time_s} s")
        amounts = None
        if interval > 0:
            # Validate before changing anything, so that an invalid usage is refused as a whole.
            amounts = self._measured(usage, checked)
        length = self.settings.round_s
        fraction = 1.0
        if length is not None:
            current = math.floor((time_s - self._start_s) / length)
            if current > self._round:
                self._round = current
                began = self._start_s + current * length
                self._all[[COUNTED, PSEUDO, SURPLUS]] = 0.0
                self._arrived, self._late = [False] * len(self._late), [False] * len(self._late)
                fraction = (time_s - began) / interval if interval > 0 else 1.0
        if amounts is not None:
            self._add(time_s, amounts, interval * fraction, fraction)
            if due is not None:
                self._owe(due, amounts, interval, fraction)
        self.time_s = time_s
        if active:
            self._join(active)
            if self.settings.pseudo:
                self._arrive(active)

    def _add(self, time_s: float, amounts: Floats, counted_s: float, fraction: float) -> None:
        """Add usage to the accounts; a ``fraction`` of it, the last ``counted_s`` seconds, lies in this round."""
        settings, columns = self.settings, self.columns
        columns[PLAIN] += amounts
        if fraction != 1.0:
            amounts = amounts * fraction
        if settings.discount != 1.0:
            # Discount the mean rate, which is exact while the allocation is constant.
            dues = np.array([self.share(leaf) for leaf in self.leaves]) * counted_s
            beyond = dues + (amounts - dues) * settings.discount
            amounts = np.where(amounts <= dues, amounts, beyond)
        if settings.half_life_s is None and settings.window_s is None:
            columns[COUNTED] += amounts
        elif counted_s > 0:
            self._fade(time_s, counted_s, amounts)

    def _owe(self, due: Floats, amounts: Floats, interval_s: float, fraction: float) -> None:
        """Add each leaf's usage beyond its due in an interval; a ``fraction`` of the interval lies in this round."""
        half_life = self.settings.half_life_s
        beta = 1.0 if half_life is None else half_life_factor(interval_s * fraction, half_life)
        surplus = self.columns[SURPLUS]
        self.columns[SURPLUS] = np.where(np.isnan(due), surplus, surplus * beta + (amounts - due) * fraction)

    def _fade(self, now_s: float, interval_s: float, amounts: Any) -> None:
        """Decay the accounts over an interval in which ``amounts`` were added at a constant rate."""
        if self.settings.window_s is not None:
            rates = [*(amounts / interval_s).tolist(), *[0.0] * len(self._gone)]
            for k, (window, rate) in enumerate(zip(self._windows, rates, strict=True)):
                assert window is not None
                window.add(now_s, rate)
                self._all[COUNTED, k] = window.amount()
            return
        half_life = self.settings.half_life_s
        assert half_life is not None
        beta = half_life_factor(interval_s, half_life)
        self._all[COUNTED] *= beta
        self.columns[COUNTED] += amounts / interval_s * (1.0 - beta) * half_life / LN2
        self._all[PSEUDO] *= beta

    def assume(self, assumed: Mapping[str, float]) -> None:
        """Set the assumed future usage of running tasks: leaf -> resource-seconds (harness.sim.quantum)."""
        for leaf, amount in assumed.items():
            self.columns[ASSUMED, self._place[leaf]] = amount

    def counted(self) -> Mapping[str, float]:
        """Return f_i of every leaf, in resource-seconds (resource ``dominant``: seconds of the whole cluster)."""
        columns = self.columns
        return dict(zip(self.leaves, (columns[COUNTED] + columns[PSEUDO] + columns[ASSUMED]).tolist(), strict=True))

    def surplus(self) -> Mapping[str, float]:
        """Return each leaf's usage minus its due in this round, resource-seconds; 0 if dues are not counted."""
        return dict(zip(self.leaves, self.columns[SURPLUS].tolist(), strict=True))

    def plain(self) -> Mapping[str, float]:
        """Return the integral of the allocation since the start, eq. (1): no discount, rounds or pseudo resources."""
        return dict(zip(self.leaves, self.columns[PLAIN].tolist(), strict=True))

    @property
    def start_s(self) -> float:
        """Start of the ledger, seconds."""
        return self._start_s

    def share(self, leaf: str) -> float:
        """Return the present S_i of eq. (2), in resource units."""
        resource, whole = self.settings.resource, self._capacity
        total = 1.0 if resource == "dominant" else whole.amount(resource, whole)
        return total * self._weights[leaf] / self._weight_sum

    def state(self) -> LedgerState:
        """Return all that `restored` needs to continue, as plain JSON values."""
        accounts = self._held()
        return {
            "settings": self._settings_document,
            "start_s": self._start_s,
            "round": self._round,
            "time_s": self.time_s,
            "capacity": [self._capacity.memory_mb, self._capacity.vcores],
            "weights": dict(self._weights),
            "accounts": {leaf: accounts[leaf].state() for leaf in self.leaves},
            "departed": {leaf: accounts[leaf].state() for leaf in self._gone},
        }

    def shift(self, seconds: float) -> None:
        """Move all times by ``seconds``, after their clock was found to be wrong. Accounts do not decay."""
        self.time_s += seconds
        self._start_s += seconds
        for window in self._windows:
            if window is not None:
                window.shift(seconds)

    @classmethod
    def restored(cls, state: LedgerState, settings: LedgerSettings) -> Ledger:
        """Restore the ledger of a `state`, and count with `settings` from now on.

        Usage counted so far is kept. Raises ValueError if the resource (different units) or the length of the sliding
        window (different parts) has changed; ValueError, KeyError or TypeError for an invalid state.
        """
        for name in ("resource", "window_s"):
            before, now = state["settings"][name], getattr(settings, name)
            if before != now:
                raise ValueError(f"counted so far with {name} {before}, from now on with {now}")
        ledger = cls(settings, state["weights"], Resource(*state["capacity"]), start_s=float(state["start_s"]))
        same_rounds = state["settings"]["round_s"] == settings.round_s
        ledger.time_s = float(state["time_s"])
        elapsed = ledger.time_s - ledger._start_s
        ledger._round = (
            int(state["round"]) if same_rounds else 0 if settings.round_s is None else int(elapsed // settings.round_s)
        )
        accounts = {leaf: _Account.restored(state["accounts"][leaf]) for leaf in state["weights"]}
        ledger._hold(accounts, {leaf: _Account.restored(account) for leaf, account in state["departed"].items()})
        return ledger

    def _measured(self, usage: Floats, checked: bool) -> Floats:
        """Return the usage in the settings' resource. Raises ValueError if it is out of range."""
        if not checked and not (usage.min(initial=0.0) >= 0 and usage.max(initial=0.0) < math.inf):
            for memory, vcores in usage.tolist():
                if not (0 <= memory < math.inf and 0 <= vcores < math.inf):
                    raise ValueError(f"a usage of {memory} MiB-seconds and {vcores} vcore-seconds is out of range")
        resource, memory, vcores = self.settings.resource, usage[:, 0], usage[:, 1]
        if resource == "memory":
            return memory
        if resource == "vcores":
            return vcores
        r = self._capacity
        nothing = np.zeros(len(usage))
        return np.maximum(memory / r.memory_mb if r.memory_mb else nothing, vcores / r.vcores if r.vcores else nothing)

    def newcomers(self) -> frozenset[str]:
        """Return the leaves that joined an existing ledger and have not been active yet: nothing is owed to them."""
        # `_late` is longer than `leaves`: the flags of removed leaves follow.
        return frozenset(leaf for leaf, late in zip(self.leaves, self._late, strict=False) if late)

    def _join(self, active: Collection[str]) -> None:
        """Give leaves that are new to the ledger their pseudo accumulated resources.

        In proportion to its weight, a new leaf gets the highest count among the other active leaves, or among all
        other leaves if none of them is active.
        """
        place, is_late = self._place, self._late
        late = [leaf for leaf in active if is_late[place[leaf]]]
        if not late:
            return
        known = [leaf for leaf in self.leaves if not is_late[place[leaf]]]
        self._begin(late, [leaf for leaf in active if not is_late[place[leaf]]] or known)

    def _arrive(self, active: Collection[str]) -> None:
        """Give leaves that are active for the first time in the round their pseudo accumulated resources."""
        newcomers = [leaf for leaf in active if not self._arrived[self._place[leaf]]]
        if newcomers:
            self._begin(newcomers, [leaf for leaf in active if self._arrived[self._place[leaf]]])

    def _begin(self, leaves: Collection[str], beside: Collection[str]) -> None:
        """Set phi of leaves to the highest count per weight among the leaves ``beside`` them, times their weight."""
        counted, weights = self.counted(), self._weights
        highest = max((counted[leaf] / weights[leaf] for leaf in beside), default=0.0)
        for leaf in leaves:
            at = self._place[leaf]
            self._late[at], self._arrived[at] = False, True
            self.columns[PSEUDO, at] = weights[leaf] * highest
