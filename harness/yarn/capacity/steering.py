"""Convert a policy's plan to a Capacity Scheduler's properties, for real RMs and for the simulator.

Weights become capacities of the present type, minimum shares become larger capacities (and priorities, if these order
the queues), maximum shares become maximum capacities. Parts that the Capacity Scheduler cannot express are reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.model.plan import Attributes
from harness.model.queues import ROOT
from harness.model.resources import UNBOUNDED, Resource
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.capacity.queues import PERCENT_UNIT, Capacity, CapacityQueue, capacities, read_capacity, read_maximum

CAPACITY, MAXIMUM, PRIORITY = "capacity", "maximum-capacity", "priority"
#: The properties of a queue that a controller may write.
WRITTEN = (CAPACITY, MAXIMUM, PRIORITY)
_CALCULATOR = f"{PREFIX}resource-calculator"
#: Smallest fraction of a parent's share that its children without a minimum share get together.
_ROOM = 0.1
#: Smallest such fraction if the weights of these children are almost zero: one unit of a percentage.
_LEAST_ROOM = PERCENT_UNIT / 100.0


def counts_dominant(settings: Mapping[str, str]) -> bool:
    """Return whether the Capacity Scheduler compares dominant shares with these properties (with their prefix).

    Hadoop's ``DefaultResourceCalculator``, which is also the default, counts memory only. A third-party calculator
    counts as dominant if its name says so.
    """
    return "Dominant" in (settings.get(_CALCULATOR) or "")


def moved_resources(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the absolute resources that a controller changes with these properties (with their prefix).

    These are the resources by which the scheduler compares queues. Guarantees of other resources, such as GPUs, or
    vcores if only memory is compared, stay unchanged.
    """
    return ("memory", "vcores") if counts_dominant(settings) else ("memory",)


@dataclass(slots=True)
class Wanted:
    """The properties that result from a plan.

    Parameters
    ----------
    values
        Queue -> key of a property -> text to be written.
    in_force
        Queue -> its resulting capacity, as a number.
    problems
        Descriptions of the parts of the plan that cannot be written.
    """

    values: dict[str, dict[str, str]] = field(default_factory=dict)
    in_force: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def put(self, path: str, key: str, text: str) -> None:
        """Set a value of a queue."""
        self.values.setdefault(path, {})[key] = text


@dataclass(frozen=True, slots=True)
class Steering:
    """A tree of queues as its administrator configured it.

    settings
        All properties, with their prefix.
    originals
        The administrator's texts that differ from ``settings``: queue -> key -> text (None: not there).
    cluster
        The cluster's resources; zero while unknown.
    """

    tree: Mapping[str, CapacityQueue]
    settings: Mapping[str, str]
    originals: Mapping[str, Mapping[str, str | None]]
    cluster: Resource
    source: str

    def text(self, path: str, key: str) -> str | None:
        """Return the administrator's text of a property."""
        known = self.originals.get(path, {})
        return known[key] if key in known else self.settings.get(f"{PREFIX}{path}.{key}")

    def capacity(self, path: str) -> Capacity:
        """Return the administrator's capacity of a queue."""
        return read_capacity(self.text(path, CAPACITY), f"{self.source}: {path}")

    def most(self, path: str) -> float:
        """Return the fraction of the cluster that the administrator's maximum allows a queue."""
        part, at = 1.0, path
        while at != ROOT:
            text = self.text(at, MAXIMUM)
            limit = read_maximum(text)
            if limit is not None and limit.amounts is None:
                part *= limit.value / 100.0
            at = at.rpartition(".")[0]
        return part

    def wanted(self, plan: Attributes) -> Wanted:
        """Return the properties for this plan."""
        found = Wanted()
        self._capacities(plan, found)
        self._priorities(plan, found)
        for path, most in plan.max_shares.items():
            if path in self.tree and (text := self._maximum(path, most, plan.max_shares, found)):
                found.put(path, MAXIMUM, text)
        for path, policy in plan.scheduling_policies.items():
            if problem := self._policy_problem(path, policy):
                found.problems.append(problem)
        found.problems = list(dict.fromkeys(found.problems))
        return found

    def _capacities(self, plan: Attributes, found: Wanted) -> None:
        new: dict[str, Capacity] = {}
        for parent in self.tree.values():
            weights = {child: plan.weights[child] for child in parent.children if child in plan.weights}
            if not weights:
                continue
            old = {child: self.capacity(child) for child in parent.children}
            missing = [child for child in parent.children if child not in weights]
            if parent.fixed or missing:
                why = parent.fixed or f"{missing[0]} has no share in the plan"
                found.problems.append(f"the children of {parent.path} keep their capacities: {why}")
                continue
            above = new.get(parent.path)
            total = above if above is not None and above.amounts is not None else None
            least = {child: plan.min_shares[child].memory_mb for child in weights if child in plan.min_shares}
            if least and (parent_mb := self._guaranteed(parent.path, new)) > 0:
                weights = lifted(weights, {child: memory_mb / parent_mb for child, memory_mb in least.items()})
            leaves = {child: self._leaves(child) for child in parent.children}
            most = self._limits(parent, plan)
            for child, capacity in capacities(weights, old, total, self.moved(), leaves, most).items():
                new[child] = capacity
                same = capacity == old[child]
                found.put(child, CAPACITY, (self.text(child, CAPACITY) if same else None) or capacity.text())
                found.in_force[child] = capacity.entitlement

    def _limits(self, parent: CapacityQueue, plan: Attributes) -> dict[str, Capacity]:
        """Return the administrator's maximum capacities of a parent's children, which bound what can be written.

        Hadoop refuses absolute resources above the maximum, and a queue cannot use the part of a percentage above it.
        Children whose maximum the plan sets are left out, because their maximum is written together with the capacity.
        """
        planned = {child for child in parent.children if plan.max_shares.get(child, UNBOUNDED) != UNBOUNDED}
        found = {child: read_maximum(self.text(child, MAXIMUM)) for child in parent.children if child not in planned}
        return {child: limit for child, limit in found.items() if limit is not None}

    def _leaves(self, path: str) -> int:
        """Return the number of leaves at and below a queue."""
        children = self.tree[path].children
        return sum(map(self._leaves, children)) if children else 1

    def moved(self) -> tuple[str, ...]:
        """Return the absolute resources that a controller changes (`moved_resources`)."""
        return moved_resources(self.settings)

    def _priorities(self, plan: Attributes, found: Wanted) -> None:
        """Give queues with a minimum share a priority above that of their siblings.

        The Capacity Scheduler compares priorities of siblings below their guarantee if the parent orders by priority
        (docs/decisions/weights.md).
        """
        for parent in self.tree.values():
            lifts = [child for child in parent.children if child in plan.min_shares]
            if lifts and not parent.fixed and self._ordered_by_priority(parent.path):
                above = max(self._priority(child) for child in parent.children) + 1
                for child in lifts:
                    found.put(child, PRIORITY, str(above))

    def _ordered_by_priority(self, path: str) -> bool:
        """Return whether a parent orders its children by priority; the setting is inherited."""
        text = self.settings.get(f"{PREFIX}{path}.ordering-policy")
        if text is None and path != ROOT:
            return self._ordered_by_priority(path.rpartition(".")[0])
        return (text or "").strip() == "priority-utilization"

    def _priority(self, path: str) -> int:
        try:
            return int(self.text(path, PRIORITY) or 0)
        except ValueError:
            return 0

    def _guaranteed(self, path: str, new: Mapping[str, Capacity]) -> int:
        """Return a parent's guaranteed memory with these capacities, MiB."""
        part, at = 1.0, path
        while at != ROOT:
            above = self.tree[at].parent or ROOT
            siblings = {q: (new.get(q) or self.capacity(q)).entitlement for q in self.tree[above].children}
            part *= siblings[at] / (sum(siblings.values()) or 1.0)
            at = above
        return int(self.cluster.memory_mb * part)

    def _maximum(self, path: str, most: Resource, all_: Mapping[str, Resource], found: Wanted) -> str | None:
        """Return a maximum share as a percentage of the parent's maximum, or as absolute resources; None: unchanged.

        Hadoop refuses a maximum below the queue's capacity, and ignores a percentage beside absolute resources.
        """
        planned = found.values.get(path, {}).get(CAPACITY)
        capacity = self.capacity(path) if planned is None else read_capacity(planned, path)
        if most != UNBOUNDED and (least := capacity.amounts) is not None:
            amounts = {"memory": most.memory_mb, "vcores": most.vcores}
            return Capacity("absolute", amounts={key: max(amounts[key], least.get(key, 0)) for key in amounts}).text()
        parent = path.rpartition(".")[0]
        above = all_[parent].memory_mb if parent in all_ else self.cluster.memory_mb * self.most(parent)
        if most == UNBOUNDED or above <= 0:
            return None
        least_percent = capacity.value if capacity.mode == "percent" else 0.0
        return Capacity("percent", min(max(100.0 * most.memory_mb / above, least_percent), 100.0)).text()

    def _policy_problem(self, path: str, policy: str) -> str:
        queue = self.tree.get(path)
        if policy == "drf":
            needs = f"dominant shares need {_CALCULATOR} DominantResourceCalculator"
            return "" if counts_dominant(self.settings) else needs
        if queue is None or queue.children:
            return ""
        has = (self.settings.get(f"{PREFIX}{path}.ordering-policy") or "fifo").strip()
        return "" if has == policy else f"{path} has the ordering policy {has}, the policy wants {policy}"


def lifted(weights: Mapping[str, float], least: Mapping[str, float]) -> dict[str, float]:
    """Return siblings' weights that guarantee each queue its minimum fraction of the parent, if it has one.

    The Fair Scheduler serves a queue below its minimum share first. In the Capacity Scheduler a larger capacity has
    this effect, because a queue below its guarantee precedes queues above theirs. The other queues keep their ratio and
    at least a small part. Fractions that sum to more than 1 are scaled down.
    """
    whole = sum(weights.values())
    parts = {path: weight / whole for path, weight in weights.items()}
    lifts: set[str] = set()
    while short := {path for path in least if path not in lifts and least[path] > parts[path]}:
        lifts |= short
        others = [path for path in weights if path not in lifts]
        kept = sum(least.get(path, 0.0) for path in others) or _ROOM
        room = min(max(kept, _LEAST_ROOM), _ROOM) if others else 0.0
        total = sum(least[path] for path in lifts)
        scale = min(1.0, (1.0 - room) / total) if others else 1.0 / total
        rest, below = 1.0 - scale * total, sum(weights[path] for path in others)
        parts = {
            path: scale * least[path] if path in lifts else weight * rest / below for path, weight in weights.items()
        }
    return {path: part * whole for path, part in parts.items()} if lifts else dict(weights)
