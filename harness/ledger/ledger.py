"""Accumulated resources per leaf, as LTYARN section 6.2 and tang-thesis section 5.5.1 count them. Pure arithmetic.

This is the reference definition: the simulator's compiled twin (harness.sim.fair.longterm) is tested against it.
Assumed execution times are in harness.ledger.quantum; nothing is stored on disk here.

What is counted
---------------
Time is cut into rounds of length L that begin at t_s (eq. 5.12; one round for ever without L). Of what a leaf i used
since t_s the ledger counts, per interval of constant use g_i,

    g'_i = min(g_i, S_i) + eta * max(g_i - S_i, 0)                                    (5.7)
    f_i(t) = integral from t_s to t of g'_i + phi_i (+ what its running tasks are assumed to use yet, 5.15)   (5.13)

with S_i = R w_i / sum of w_k over all leaves (eq. 2), by their own weights.

phi_i, the pseudo accumulated resources (eq. 5.16), is 0 unless ``pseudo`` is set; then it is fixed at the leaf's round
arrival, the first moment of the round at which it is active, to

    phi_i = w_i * max f_k / w_k over the leaves k active at that moment that arrived earlier in the round

or 0 where there are none. Two points differ from the text, see docs/decisions/pseudo-accumulated.md: the maximum is
taken once, not anew at each t, and of f / w, not of f (the same for equal weights).

With a half-life, the integral of g' and phi fade as harness.ledger.decay has it; with a sliding window only what falls
into it counts. A tumbling window is a round.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from harness.base.sums import added
from harness.ledger.decay import LN2, SlidingWindow, half_life_factor
from harness.model.plan import LedgerSettings
from harness.model.resources import Resource


class Usage(NamedTuple):
    """What a leaf used since the last observation: MiB-seconds and vcore-seconds."""

    memory_mb_s: float = 0.0
    vcore_s: float = 0.0


@dataclass(slots=True)
class _Account:
    counted: float = 0.0  # integral of g' since the round began
    pseudo: float = 0.0  # phi, fixed at the round arrival
    arrived: bool = False  # active at some moment of this round
    assumed: float = 0.0  # what running tasks are assumed to use yet
    plain: float = 0.0  # integral of g since the ledger began: eq. (1), whatever the settings
    surplus: float = 0.0  # integral of g - min(d, S) since the round began, where dues are counted
    window: SlidingWindow | None = None
    late: bool = False  # joined a ledger that had begun, and has not been active yet

    def state(self) -> list[Any]:
        window = None if self.window is None else self.window.state()
        return [self.counted, self.pseudo, self.arrived, self.assumed, self.plain, window, self.surplus, self.late]

    @classmethod
    def restored(cls, state: Sequence[Any]) -> _Account:
        # Accounts that were kept before dues were counted have no surplus, and none before late ones say so.
        known = [*state, *(0.0, False)[len(state) - 6 :]]
        counted, pseudo, arrived, assumed, plain, window, surplus, late = known[:8]
        figures = (float(counted), float(pseudo), bool(arrived), float(assumed), float(plain), float(surplus))
        if not all(math.isfinite(figure) for figure in figures):
            raise ValueError("a figure of an account is not finite")
        return cls(*figures, None if window is None else SlidingWindow.restored(window), bool(late))


def _check_weights(weights: Mapping[str, float]) -> None:
    for leaf, weight in weights.items():
        if not (0 < weight < math.inf):
            raise ValueError(f"the entitlement of {leaf} is {weight}, not a finite number above 0")


class Ledger:
    """Counted accumulated resources of each leaf.

    Parameters
    ----------
    settings : how it counts; times in seconds.
    weights : leaf path -> entitlement w_i > 0. All leaves, active or not.
    capacity : R at the start; `set_capacity` follows a cluster that changes.
    start_s : when it begins; rounds are counted from here.
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
        self._weight_sum: float = added(self._weights.values())
        self._capacity = capacity
        #: Time of the last observation. Invariant: never decreases.
        self.time_s = start_s
        self._accounts = {leaf: self._new_account() for leaf in weights}
        #: Whether leaves that go keep their account for when they come back (until the round ends).
        self.remember = False
        self._departed: dict[str, _Account] = {}
        self._start_s = start_s
        self._round = 0  # index of the round that time_s lies in

    def _new_account(self) -> _Account:
        account = _Account()
        if self.settings.window_s is not None:
            account.window = SlidingWindow(self.settings.window_s, self.time_s)
        return account

    def _newcomer(self) -> _Account:
        account = self._new_account()
        account.late = self.remember and self.time_s > self._start_s
        return account

    def set_capacity(self, capacity: Resource) -> None:
        """R from the last observation on."""
        self._capacity = capacity

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Entitlements from the last observation on. New leaves begin with nothing; missing ones are forgotten.

        With ``remember`` set, leaves that come back go on where they were, and a new one is owed nothing for the time
        before it existed: at its first activity it gets the pseudo accumulated resources of eq. (5.16).
        """
        _check_weights(weights)
        self._weights = dict(weights)
        self._weight_sum = added(self._weights.values())
        before, departed = self._accounts, self._departed
        self._accounts = {leaf: before.get(leaf) or departed.pop(leaf, None) or self._newcomer() for leaf in weights}
        if self.remember:
            departed.update({leaf: account for leaf, account in before.items() if leaf not in weights})

    def observe(
        self,
        time_s: float,
        used: Mapping[str, tuple[float, float]],
        active: Collection[str] = (),
        due: Mapping[str, float] | None = None,
    ) -> None:
        """Account for what was used since the last observation.

        Parameters
        ----------
        time_s : now. Earlier than the last observation: ValueError. The same: only ``active`` is looked at.
        used : leaf -> usage in the interval, taken as spread evenly over it (exact if the allocation was constant).
            An interval that crosses the begin of a round is cut there, pro rata.
        active : leaves with pending or running tasks at ``time_s``; only ``pseudo`` needs them.
        due : leaf -> integral of min(d_i, S_i) over the interval, resource-seconds (None: dues are not counted).
        """
        interval = time_s - self.time_s
        if not interval >= 0:
            raise ValueError(f"time went back from {self.time_s} s to {time_s} s")
        length = self.settings.round_s
        fraction = 1.0
        if length is not None:
            current = math.floor((time_s - self._start_s) / length)
            if current > self._round:
                self._round = current
                began = self._start_s + current * length
                for account in (*self._accounts.values(), *self._departed.values()):
                    account.counted, account.pseudo, account.arrived, account.surplus = 0.0, 0.0, False, 0.0
                    account.late = False
                fraction = (time_s - began) / interval if interval > 0 else 1.0
        if interval > 0:
            self._add(time_s, used, interval * fraction, fraction)
            if due is not None:
                self._owe(due, used, interval, fraction)
        self.time_s = time_s
        if active:
            self._join(active)
            if self.settings.pseudo:
                self._arrive(active)

    def _add(self, time_s: float, used: Mapping[str, tuple[float, float]], counted_s: float, fraction: float) -> None:
        """Add what was used to the accounts; the last ``counted_s`` of it, a ``fraction``, lie in this round."""
        settings, accounts = self.settings, self._accounts
        discounts = settings.discount != 1.0
        window, half_life = settings.window_s is not None, settings.half_life_s
        beta = 1.0 if half_life is None else half_life_factor(counted_s, half_life)
        measure, memory_alone = self._measure, settings.resource == "memory"
        for leaf, usage in used.items():
            account = accounts.get(leaf)
            if account is None:
                raise ValueError(f"{leaf} is not a leaf of this ledger")
            plainly = memory_alone and 0 <= usage[0] < math.inf and 0 <= usage[1] < math.inf
            amount = usage[0] if plainly else measure(usage)
            account.plain += amount
            counted = amount * fraction
            if discounts:
                # Of the mean rate: exact while the allocation is constant.
                counted = self._discounted(counted, self._due(leaf) * counted_s)
            if half_life is None and not window:
                account.counted += counted
            elif counted_s > 0:
                self._fade(account, time_s, counted_s, counted, beta)
        if (window or half_life is not None) and counted_s > 0:
            absent = [account for leaf, account in accounts.items() if leaf not in used]
            for account in (*absent, *[account for leaf, account in self._departed.items() if leaf not in used]):
                self._fade(account, time_s, counted_s, 0.0, beta)

    def _owe(
        self, due: Mapping[str, float], used: Mapping[str, tuple[float, float]], interval_s: float, fraction: float
    ) -> None:
        """Add what each leaf got beyond its due in an interval, of which ``fraction`` lies in this round."""
        half_life = self.settings.half_life_s
        beta = 1.0 if half_life is None else half_life_factor(interval_s * fraction, half_life)
        for leaf, amount in due.items():
            account = self._accounts[leaf]
            got = self._measure(used[leaf]) if leaf in used else 0.0
            account.surplus = account.surplus * beta + (got - amount) * fraction

    def _fade(self, account: _Account, now_s: float, interval_s: float, amount: float, beta: float) -> None:
        """Let an account's memory fade over an interval in which ``amount`` was added at a constant rate.

        ``beta``: what a half-life leaves over the interval.
        """
        if account.window is not None:
            account.window.add(now_s, amount / interval_s)
            account.counted = account.window.amount()
            return
        half_life = self.settings.half_life_s
        assert half_life is not None
        account.counted = account.counted * beta + amount / interval_s * (1.0 - beta) * half_life / LN2
        account.pseudo *= beta

    def assume(self, assumed: Mapping[str, float]) -> None:
        """What running tasks are assumed to use yet: leaf -> resource-seconds (harness.ledger.quantum)."""
        for leaf, amount in assumed.items():
            self._accounts[leaf].assumed = amount

    def counted(self) -> Mapping[str, float]:
        """f_i of every leaf, resource-seconds of the settings' resource (``dominant``: seconds of the cluster)."""
        return {leaf: a.counted + a.pseudo + a.assumed for leaf, a in self._accounts.items()}

    def surplus(self) -> Mapping[str, float]:
        """What every leaf got beyond its due (negative: less) since the round began; 0 where dues are not counted."""
        return {leaf: account.surplus for leaf, account in self._accounts.items()}

    def plain(self) -> Mapping[str, float]:
        """The integral of the allocation since the start, eq. (1), without discount, rounds or pseudo resources."""
        return {leaf: account.plain for leaf, account in self._accounts.items()}

    @property
    def start_s(self) -> float:
        """When it began."""
        return self._start_s

    def share(self, leaf: str) -> float:
        """S_i of eq. (2) now, in resource units."""
        return self._due(leaf)

    def state(self) -> dict[str, Any]:
        """All that `restored` needs to go on, as plain JSON values."""
        return {
            "settings": self._settings_document,
            "start_s": self._start_s,
            "round": self._round,
            "time_s": self.time_s,
            "capacity": [self._capacity.memory_mb, self._capacity.vcores],
            "weights": dict(self._weights),
            "accounts": {leaf: account.state() for leaf, account in self._accounts.items()},
            "departed": {leaf: account.state() for leaf, account in self._departed.items()},
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], settings: LedgerSettings) -> Ledger:
        """The ledger of a `state`, counting from now on by `settings`.

        What has been counted stays. ValueError where another resource is counted now (the units differ) or another
        sliding window (the parts differ); ValueError, KeyError or TypeError for a state that is none.
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
        ledger._accounts = {leaf: _Account.restored(state["accounts"][leaf]) for leaf in state["weights"]}
        ledger._departed = {leaf: _Account.restored(account) for leaf, account in state["departed"].items()}
        return ledger

    def _due(self, leaf: str) -> float:
        resource = self.settings.resource
        if resource == "dominant":
            total = 1.0
        else:
            total = float(self._capacity.memory_mb if resource == "memory" else self._capacity.vcores)
        return total * self._weights[leaf] / self._weight_sum

    def _measure(self, usage: tuple[float, float]) -> float:
        memory, vcores = usage
        if not (0 <= memory < math.inf and 0 <= vcores < math.inf):
            raise ValueError(f"a usage of {memory} MiB-seconds and {vcores} vcore-seconds is out of range")
        resource = self.settings.resource
        if resource == "memory":
            return memory
        if resource == "vcores":
            return vcores
        r = self._capacity
        return max(memory / r.memory_mb if r.memory_mb else 0.0, vcores / r.vcores if r.vcores else 0.0)

    def _discounted(self, amount: float, due: float) -> float:
        discount = self.settings.discount
        if discount == 1.0 or amount <= due:
            return amount
        return due + (amount - due) * discount

    def _join(self, active: Collection[str]) -> None:
        """What leaves that are new to the ledger begin with: as much for their weight as the most that another active
        leaf has counted; of all leaves where no other is active."""
        accounts, weights = self._accounts, self._weights
        late = [leaf for leaf in active if accounts[leaf].late]
        if not late:
            return
        known = [leaf for leaf in accounts if not accounts[leaf].late]
        among = [leaf for leaf in active if not accounts[leaf].late] or known
        highest = max(
            ((accounts[k].counted + accounts[k].pseudo + accounts[k].assumed) / weights[k] for k in among), default=0.0
        )
        for leaf in late:
            accounts[leaf].late, accounts[leaf].arrived = False, True
            accounts[leaf].pseudo = weights[leaf] * highest

    def _arrive(self, active: Collection[str]) -> None:
        accounts, weights = self._accounts, self._weights
        newcomers = [leaf for leaf in active if not accounts[leaf].arrived]
        if not newcomers:
            return
        earlier = [leaf for leaf in active if accounts[leaf].arrived]
        highest = max(
            ((accounts[k].counted + accounts[k].pseudo + accounts[k].assumed) / weights[k] for k in earlier),
            default=0.0,
        )
        for leaf in newcomers:
            accounts[leaf].arrived = True
            accounts[leaf].pseudo = weights[leaf] * highest
