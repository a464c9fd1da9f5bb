"""Runs a scenario of steps under a policy: unit by unit, in exact arithmetic, in the order of the policy's plan.

The rule that the simulator evaluates at each allocation is evaluated here for each unit, slowly and exactly. Tasks last
one step, so assumed execution times (``quantum_s``) have no effect on paper.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from harness.base.errors import CallError, InputError
from harness.ledger.decay import LN2, half_life_factor
from harness.model.plan import Order
from harness.model.resources import Resource
from harness.model.snapshot import QueueView, Snapshot
from harness.paper.steps import Allocation, ScenarioQueue, StepsScenario
from harness.policies.base import CountedLedger, Policy, checked_keys, checked_plan
from harness.policies.capabilities import MeasuringPolicy
from harness.policies.tree import Tree, entitled_tree
from harness.policies.weights import Basis, leaf_parts, long_term_shares

#: Limit on comparisons, reached after about a minute: each unit counts UNIT_LOOKS plus one for each queue compared. A
#: scenario beyond it is an error.
MAX_LOOKS = 20_000_000
UNIT_LOOKS = 10

#: Exact numbers, never floats: integers where no fractions are needed (they are ten times faster), fractions elsewhere.
Exact = Fraction | int
MAX_STEPS = 1_000_000


@dataclass(slots=True)
class _Leaf:
    name: str
    path: str
    queue: int  # index in the tree
    path_up: tuple[int, ...]  # the queue and its ancestors
    weight: Fraction
    share: Fraction  # S_i, units per step, eq. (2)
    backlog: int = 0
    given: int = 0  # units in the current step
    total: int = 0
    counted: Exact = 0
    arrived: bool = False  # in the current round
    last_unit: int = 0  # step of its last unit (0: none yet)
    backlog_since: int = 0  # step at which its current backlog began
    #: [step, tasks] that wait, oldest first.
    waiting: deque[list[int]] = field(default_factory=deque)
    at_start: Exact | float = 0  # counted when this step began
    in_step: Exact = 0  # counted in this step
    past: deque[Exact] = field(default_factory=deque)  # counted per earlier step within the sliding window


class _Paper:
    """The state of a scenario between two units."""

    def __init__(self, scenario: StepsScenario, policy: Policy) -> None:
        self.scenario, self.policy = scenario, policy
        self.capacity = scenario.capacity
        self.views = _views(scenario)
        # Tasks last one step, so the mean task length is known from the beginning, and the order never changes.
        plan = checked_plan(policy, self._snapshot(0), CountedLedger())
        self.order: Order = plan.order
        self.tree: Tree = entitled_tree(self._snapshot(0), self.order.ledger.shares)
        leaf_weights = sum((Fraction(self.tree.entitlement[q]) for q in self.tree.leaves), Fraction(0))
        self.leaves: list[_Leaf] = []
        for q in self.tree.leaves:
            path, weight = self.tree.names[q], Fraction(self.tree.entitlement[q])
            share = self.capacity * weight / leaf_weights
            self.leaves.append(_Leaf(path.rpartition(".")[2], path, q, (*self.tree.path(q), 0), weight, share))
        # Flat comparisons break ties by the name of the leaf.
        self.leaves.sort(key=lambda leaf: leaf.name.encode())
        self.leaf_at = {leaf.queue: leaf for leaf in self.leaves}
        self.caps = {
            leaf.queue: plan.max_shares[leaf.path].memory_mb for leaf in self.leaves if leaf.path in plan.max_shares
        }
        self.discount = policy.exact.get("discount", _exactly(self.order.ledger.discount))
        round_s = self.order.ledger.round_s
        self.round = None if round_s is None else policy.exact.get("round", _exactly(round_s))
        self.half_life = self.order.ledger.half_life_s
        self.window = self._window()
        self.fades = self.half_life is not None or self.window is not None
        #: Amount that one unit adds to the counted resources; below 1 if it decays already within its step.
        self.unit: Exact | float = 1
        if self.half_life is not None:
            self.unit = (1.0 - half_life_factor(1.0, self.half_life)) * self.half_life / LN2
        t_wait = self.order.t_wait_s
        self.t_wait: Fraction | None = None  # None: starvation is not checked
        if t_wait is not None and t_wait != math.inf:
            self.t_wait = policy.exact.get("t_wait", _exactly(t_wait))
        self.horizon: Fraction | float = self.order.horizon_s
        if 0 < self.order.horizon_s < math.inf:
            self.horizon = policy.exact.get("horizon_s", _exactly(self.order.horizon_s))
        # Keys are u / w. Comparing u times the integer c / w gives the same order and is much faster.
        self.key_scale = _key_scales(self.tree)
        self.used: list[Exact] = [0] * len(self.tree.names)  # counted per queue, parents included
        self.units: list[int] = [0] * len(self.tree.names)  # units of the current step per queue
        self.demanding: list[int] = [0] * len(self.tree.names)  # demanding leaves below each queue, or 1
        self.fills: list[Fraction] = []
        self.step = 0
        self.looks = 0

    # --- a step ---

    def run_step(self, new: Mapping[str, int]) -> dict[str, int]:
        self.step += 1
        self._begin_round()
        if self.fades:
            self._fade()
        for leaf in self.leaves:
            count = new.get(leaf.name, 0)
            if count:
                if leaf.backlog == 0:
                    leaf.backlog_since = self.step
                    self._demand(leaf, 1)
                leaf.backlog += count
                leaf.waiting.append([self.step, count])
            leaf.given = 0
        self.units = [0] * len(self.tree.names)
        if self.order.ledger.pseudo:
            self._arrive()
        if self.order.horizon_s > 0:
            affinity = self.policy.exact.get("affinity", _exactly(self.order.affinity))
            used: list[float] = [Fraction(amount) for amount in self.used]  # type: ignore[misc]
            capacity: float = Fraction(self.capacity)  # type: ignore[assignment]
            basis = Basis(used, capacity, self.horizon)  # type: ignore[arg-type]
            if self.order.flat:
                shares = leaf_parts(self.tree, basis)
            else:
                shares = long_term_shares(self.tree, basis, affinity)  # type: ignore[arg-type]
            self.fills = [Fraction(part) for part in shares]
        choose = self._chooser()
        for _ in range(self.capacity):
            chosen = choose()
            if chosen is None:
                break
            self._give(chosen)
        return {leaf.name: leaf.given for leaf in sorted(self.leaves, key=lambda leaf: leaf.name.encode())}

    def _begin_round(self) -> None:
        if self.round is None or self.step == 1:
            return
        if (self.step - 1) // self.round > (self.step - 2) // self.round:
            for leaf in self.leaves:
                leaf.counted, leaf.arrived, leaf.in_step = 0, False, 0
            self.used = [0] * len(self.tree.names)

    def _window(self) -> Fraction | None:
        if self.order.ledger.window_s is None:
            return None
        window = self.policy.exact.get("window", _exactly(self.order.ledger.window_s))
        if window < 1:
            raise CallError(
                f"a window of {float(window):g} is shorter than a step", where="--set", hint="window=1 or more"
            )
        return window

    def _fade(self) -> None:
        """Decay all counted resources to the end of this step (harness.ledger.decay)."""
        amounts: list[Exact | float] = []
        for leaf in self.leaves:
            leaf.at_start = leaf.counted
            if self.half_life is not None:
                amounts.append(leaf.counted * half_life_factor(1.0, self.half_life))
                continue
            assert self.window is not None
            if self.step > 1:
                leaf.past.append(leaf.in_step)
            whole, part = divmod(self.window - 1, 1)
            while len(leaf.past) > whole + 1:
                leaf.past.popleft()
            kept = sum(leaf.past)
            if len(leaf.past) > whole:
                kept -= leaf.past[0] * (1 - part)
            leaf.in_step = 0
            amounts.append(kept)
        self.used = [0] * len(self.tree.names)
        for leaf, amount in zip(self.leaves, amounts, strict=True):
            leaf.counted = 0
            self._count(leaf, amount)  # type: ignore[arg-type]
            leaf.in_step = 0

    def _arrive(self) -> None:
        """Add pseudo accumulated resources at the first arrival in a round (thesis equation 5.16).

        See harness.ledger.ledger.
        """
        active = [leaf for leaf in self.leaves if leaf.backlog]
        highest = max((Fraction(leaf.counted) / leaf.weight for leaf in active if leaf.arrived), default=Fraction(0))
        for leaf in active:
            if not leaf.arrived:
                leaf.arrived = True
                self._count(leaf, leaf.weight * highest)

    def _give(self, leaf: _Leaf) -> None:
        self._look(UNIT_LOOKS)
        if self.discount == 1:
            amount: Exact = 1
        else:
            # Pro rata within a unit: of the unit from g to g + 1, the part above S_i is counted with the discount
            # (5.7).
            above = min(max(leaf.given + 1 - leaf.share, Fraction(0)), Fraction(1))
            amount = 1 - above + above * self.discount
        if self.half_life is not None:
            amount = amount * self.unit  # type: ignore[assignment]
        self._count(leaf, amount)
        leaf.given += 1
        leaf.total += 1
        leaf.backlog -= 1
        leaf.last_unit = self.step
        leaf.waiting[0][1] -= 1
        if leaf.waiting[0][1] == 0:
            leaf.waiting.popleft()
        for queue in leaf.path_up:
            self.units[queue] += 1
        if leaf.backlog == 0 or leaf.given >= self.caps.get(leaf.queue, leaf.given + 1):
            self._demand(leaf, -1)

    def _count(self, leaf: _Leaf, amount: Exact) -> None:
        leaf.counted += amount
        leaf.in_step += amount
        for queue in leaf.path_up:
            self.used[queue] += amount

    def _demand(self, leaf: _Leaf, change: int) -> None:
        for queue in leaf.path_up:
            self.demanding[queue] += change

    # --- who is next: one function per measure of harness.model.plan.Order ---

    def _chooser(self) -> Callable[[], _Leaf | None]:
        order = self.order
        if self.caps:
            for leaf in self.leaves:  # leaves at their cap in the last step demand again
                wants = leaf.backlog > 0 and self.caps.get(leaf.queue, 1) > 0
                self._demand(leaf, int(wants) - self.demanding[leaf.queue])
        if order.measure == "arrival":
            return self._oldest
        if order.measure == "keys":
            return self._by_own_keys
        if order.measure == "stock":
            return lambda: self._by_level(self._units_key)
        by_key = self._fill_key if order.horizon_s > 0 else self._counted_key
        if order.flat:
            return lambda: self._flat(by_key)
        if self.t_wait is not None:
            return lambda: self._starved() or self._by_level(by_key)
        return lambda: self._by_level(by_key)

    def _counted_key(self, queue: int) -> Exact:
        return self.used[queue] * self.key_scale[queue]

    def _units_key(self, queue: int) -> int:
        return self.units[queue] * self.key_scale[queue]

    def _fill_key(self, queue: int) -> tuple[int, Fraction]:
        """Return the units of this step over the filling's share.

        Queues with a share of 0 come last, by entitlement.
        """
        part = self.fills[queue]
        return (0, self.units[queue] / part) if part else (1, Fraction(self.units[queue] * self.key_scale[queue]))

    def _look(self, count: int) -> None:
        self.looks += count
        if self.looks > MAX_LOOKS:
            raise InputError(
                f"is not done after {MAX_LOOKS:,} comparisons, in step {self.step}",
                hint="lower capacity, arrivals or steps",
            )

    def _flat(self, key: Callable[[int], object]) -> _Leaf | None:
        self._look(len(self.leaves))
        candidates = [leaf for leaf in self.leaves if self.demanding[leaf.queue]]
        # min returns the first of equal leaves, and leaves are in byte order of their names.
        return min(candidates, key=lambda leaf: key(leaf.queue)) if candidates else None  # type: ignore[arg-type,return-value]

    def _by_level(self, key: Callable[[int], object]) -> _Leaf | None:
        if not self.demanding[0]:
            return None
        queue = 0
        while self.tree.children[queue]:
            candidates = [child for child in self.tree.children[queue] if self.demanding[child]]
            self._look(len(self.tree.children[queue]))
            queue = min(candidates, key=key)  # type: ignore[arg-type]
        return self.leaf_at[queue]

    def _starved(self) -> _Leaf | None:
        """Return the demanding leaf with the smallest counted / weight if it is starved, else None.

        This is H-LTRF's rule (LTYARN Algorithm 2, with >=).
        """
        leaf = self._flat(self._counted_key)
        assert self.t_wait is not None
        if leaf is not None and self.step - max(leaf.last_unit, leaf.backlog_since) >= self.t_wait:
            return leaf
        return None

    def _oldest(self) -> _Leaf | None:
        self._look(len(self.leaves))
        candidates = [leaf for leaf in self.leaves if self.demanding[leaf.queue]]
        return min(candidates, key=lambda leaf: leaf.waiting[0][0]) if candidates else None

    def _by_own_keys(self) -> _Leaf | None:
        self._look(100 * len(self.leaves))
        if not self.demanding[0]:
            return None
        if self.fades:
            # The YARN simulator and the controller sample decaying measures at intervals. Likewise the policy sees the
            # amounts from the beginning of the step.
            ledger = CountedLedger({leaf.path: float(leaf.at_start) for leaf in self.leaves})
            snapshot = replace(self._snapshot(self.step), time_s=self.step - 1.0)
        else:
            ledger = CountedLedger({leaf.path: float(leaf.counted) for leaf in self.leaves})
            snapshot = self._snapshot(self.step)
        keys = checked_keys(self.policy, snapshot, ledger, self.order.flat)

        def key(queue: int) -> Any:
            return keys.get(self.tree.names[queue], math.inf)

        return self._flat(key) if self.order.flat else self._by_level(key)

    # --- what the policy sees ---

    def _snapshot(self, step: int) -> Snapshot:
        """Return the state for the policy. Units represent MiB and vcores, steps represent seconds."""
        queues: dict[str, QueueView] = dict(self.views)
        if step:
            for leaf in self.leaves:
                view, given = self.views[leaf.path], leaf.given
                queues[leaf.path] = QueueView(
                    view.name,
                    view.parent,
                    True,
                    view.weight,
                    allocated=Resource(given, given),
                    demand=Resource(given + leaf.backlog, given + leaf.backlog),
                    pending_containers=leaf.backlog,
                    backlog_since_s=float(leaf.backlog_since) if leaf.backlog else None,
                    last_start_s=float(leaf.last_unit) if leaf.last_unit else None,
                    mean_task_s=1.0,
                    oldest_pending_app_s=float(leaf.waiting[0][0]) if leaf.waiting else None,
                )
        return Snapshot(float(step), Resource(self.capacity, self.capacity), queues, 1.0)


def allocate(scenario: StepsScenario, policy: Policy) -> Allocation:
    """Run the scenario under the policy and return the answer.

    Raises InputError if it would never end (a backlog that is never served) or take too long, CallError if a setting of
    the policy makes no sense on paper.
    """
    paper = _Paper(scenario, policy)
    steps: list[dict[str, int]] = []
    wanted = scenario.steps
    if wanted is not None and wanted > MAX_STEPS:
        raise InputError(f"asks for {wanted:,} steps", hint=f"{MAX_STEPS:,} at most")
    while True:
        done = len(steps)
        if wanted is not None:
            if done >= wanted:
                break
        elif done >= len(scenario.arrivals) and not any(leaf.backlog for leaf in paper.leaves):
            break
        if done >= MAX_STEPS:
            raise InputError(f"is not drained after {MAX_STEPS:,} steps", hint="give steps, or a larger capacity")
        given = paper.run_step(scenario.arrivals[done] if done < len(scenario.arrivals) else {})
        steps.append(given)
        if wanted is None and done >= len(scenario.arrivals) and not any(given.values()):
            stuck = [leaf.name for leaf in paper.leaves if leaf.backlog]
            if stuck:
                raise InputError(
                    f"{policy.name} never serves the tasks of {', '.join(stuck[:5])}",
                    hint="give steps: N to stop there",
                )
    leaves = sorted(paper.leaves, key=lambda leaf: leaf.name.encode())
    return Allocation(
        policy=policy.name,
        steps=steps,
        totals={leaf.name: leaf.total for leaf in leaves},
        counted={
            leaf.name: Fraction(_figure(policy, float(len(steps)), leaf.counted, float(scenario.capacity)))
            for leaf in leaves
        },
    )


def _views(scenario: StepsScenario) -> dict[str, QueueView]:
    views = {"root": QueueView("root", None, False, Fraction(1))}  # type: ignore[arg-type]

    def add(queue: ScenarioQueue, parent: str) -> None:
        path = f"{parent}.{queue.name}"
        leaf = not queue.children
        # The fraction replaces a float, because arithmetic on it is exact.
        views[path] = QueueView(path, parent, leaf, queue.weight, mean_task_s=1.0 if leaf else None)  # type: ignore[arg-type]
        for child in queue.children:
            add(child, path)

    for queue in scenario.queues:
        add(queue, "root")
    return views


def _key_scales(tree: Tree) -> list[int]:
    """Return integers in proportion to 1 / w for all queues."""
    weights = [Fraction(w) for w in tree.entitlement]
    common = math.lcm(*(w.numerator for w in weights))
    return [common // w.numerator * w.denominator for w in weights]


def _exactly(value: float) -> Fraction:
    if not math.isfinite(value):
        raise CallError(f"a setting of {value} makes no sense on paper", where="--set")
    return Fraction(str(value))


def _figure(policy: Policy, time_s: float, counted: Exact, capacity: float) -> Exact | float:
    """Return the amount by which a policy orders a leaf: its own measure, or else the accumulated resources."""
    if not isinstance(policy, MeasuringPolicy):
        return counted
    # The fraction replaces a float, so that the result is exact if the policy does not convert it.
    return policy.figure(time_s, counted, capacity)  # type: ignore[arg-type]
