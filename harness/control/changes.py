"""Format a decision as changes of shares with their causes: ``b 25 -> 50 %: owed 8.7 GiB·h``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from harness.model.queues import upwards
from harness.model.snapshot import QueueView
from harness.policies.base import Policy

#: Amounts from this many GiB·s (vcore·s, cluster·s) on are shown in hours.
_IN_HOURS = 10_000.0
_UNITS = {"memory": "GiB", "vcores": "vcore", "dominant": "cluster"}
#: Fractions that differ by less than this are shown as unchanged.
SAME = 0.0005


@dataclass(frozen=True, slots=True)
class Entitled:
    """A queue's properties that the descriptions use.

    ``weight`` is its entitlement w_i, ``leaf`` whether it is a leaf, and ``asks`` whether it demands more than it
    holds.
    """

    weight: float
    leaf: bool
    asks: bool = True

    @classmethod
    def of(cls, queue: QueueView) -> Entitled:
        """Build the properties from a snapshot's view of a queue."""
        return cls(queue.weight, queue.leaf, queue.pending_containers > 0 or queue.demand != queue.allocated)


def amount(value: float, unit: str, beside: Collection[float] = ()) -> str:
    """Format accumulated resources (MiB s, vcore s, cluster s) in a unit that keeps the number short.

    ``beside``: the amounts that stand in the same text. The largest of all decides between seconds and hours, so that
    a reader can compare them.
    """
    scale = 1024.0 if unit == "memory" else 1.0
    hours = max(abs(value), *(abs(other) for other in beside), 0.0) / scale >= _IN_HOURS
    value /= scale * (3600.0 if hours else 1.0)
    name = f"{_UNITS.get(unit, unit)}·{'h' if hours else 's'}"
    return f"{value:,.1f} {name}" if abs(value) >= 0.1 or value == 0.0 else f"{value:.2g} {name}"


def percent(part: float) -> str:
    """Format a part as ``25 %``; below 10 % with one decimal."""
    return f"{100 * part:.0f} %" if part >= 0.0995 or part < SAME else f"{100 * part:.1f} %"


def parts(weights: Mapping[str, float]) -> dict[str, float]:
    """Queue -> its part of its sibling group's total weight."""
    sums: dict[str, float] = {}
    for queue, weight in weights.items():
        parent = queue.rpartition(".")[0]
        sums[parent] = sums.get(parent, 0.0) + weight
    return {queue: weight / (sums[queue.rpartition(".")[0]] or 1.0) for queue, weight in weights.items()}


def shares(queues: Mapping[str, Entitled], *, flat: bool) -> dict[str, float]:
    """Return queue -> the fraction of the cluster that it is entitled to.

    ``flat``: leaves are entitled by their own weights, regardless of the tree.
    """
    found: dict[str, float] = {"root": 1.0}
    if flat:
        leaves = {path: queue.weight for path, queue in queues.items() if queue.leaf}
        total = sum(leaves.values()) or 1.0
        below = summed({leaf: weight / total for leaf, weight in leaves.items()})
        return below | found
    own = parts({path: queue.weight for path, queue in queues.items() if path != "root"})
    for path in sorted(own, key=lambda path: path.count(".")):
        found[path] = found.get(path.rpartition(".")[0], 0.0) * own[path]
    return found


def summed(of_leaves: Mapping[str, float]) -> dict[str, float]:
    """Return the leaves' figures together with their sums for all queues above them."""
    found: dict[str, float] = {}
    for leaf, figure in of_leaves.items():
        for path in upwards(leaf):
            found[path] = found.get(path, 0.0) + figure
    return found


def debts(
    counted: Mapping[str, float],
    queues: Mapping[str, Entitled],
    *,
    flat: bool,
    newcomers: Collection[str] = (),
) -> dict[str, float]:
    """Return the debt that each queue is owed (negative: it owes), in the unit of ``counted``.

    ``newcomers``: leaves that have not been active yet. They are owed nothing, and their weights do not count.

    ``counted``: leaf -> accumulated resources. The debt is the queue's entitled share of all accumulated resources,
    less its own. ``flat``: leaves are entitled by their own weights, regardless of the tree.
    """
    queues = {path: queue for path, queue in queues.items() if path not in newcomers}
    own = summed({queue: used for queue, used in counted.items() if queue in queues and queues[queue].leaf})
    share = shares({path: queues[path] for path in own if path in queues}, flat=flat)
    everything = own.get("root", 0.0)
    return {path: share.get(path, 0.0) * everything - amount for path, amount in own.items() if path != "root"}


def debt_words(debt: float, whole: float, unit: str, beside: Collection[float] = ()) -> str:
    """Describe a queue's debt; '' if it is less than 0.1 % of the ``whole``. ``beside``: as in `amount`."""
    if whole <= 0 or abs(debt) < 0.001 * whole:
        return ""
    return f"{'owed' if debt > 0 else 'has had too much by'} {amount(abs(debt), unit, beside)}"


def is_below(queue: str, above: Collection[str]) -> bool:
    """Return whether a queue is below one of the queues ``above``."""
    return any(at in above for at in upwards(queue.rpartition(".")[0]))


@dataclass(frozen=True, slots=True)
class Change:
    """One queue's change in a decision, as parts of its siblings' total weight; ``before`` is None if not known."""

    queue: str
    before: float | None
    after: float
    why: str

    @property
    def moved(self) -> bool:
        """Whether the displayed part differs from before."""
        return self.before is None or percent(self.after) != percent(self.before)

    def line(self) -> str:
        """Describe the change for a person."""
        name = self.queue.removeprefix("root.")
        was = "" if self.before is None or not self.moved else f"{percent(self.before).removesuffix(' %')} -> "
        return f"{name} {was}{percent(self.after)}{': ' + self.why if self.why else ''}"


def changes(
    before: Mapping[str, float],
    after: Mapping[str, float],
    counted: Mapping[str, float],
    queues: Mapping[str, Entitled],
    reasons: Mapping[str, str],
    policy: Policy,
    newcomers: Collection[str] = (),
    held: Mapping[str, str] = MappingProxyType({}),
) -> list[Change]:
    """Return the change of every queue with a weight in a decision, with the policy's reason or the queue's debt."""
    was, will = parts(before), parts(after)
    owed = debts(counted, queues, flat=policy.dues_are_flat(), newcomers=newcomers) if policy.gives_back else {}
    settings = policy.ledger_settings()
    unit = settings.resource if settings is not None else "memory"
    whole = sum(counted.values())
    due = parts({queue: queues[queue].weight for queue in will if queue in queues})
    # Whether another queue below the same parent is owed resources and asks for more.
    claimed = {queue.rpartition(".")[0] for queue, debt in owed.items() if debt > 0 and queues[queue].asks}
    found = []
    for queue, part in will.items():
        why = reasons.get(queue, "")
        debt = owed.get(queue, 0.0)
        if not why:
            why = debt_words(debt, whole, unit, [owed.get(other, 0.0) for other in will])
            if queue in held:
                why = f"{why}; {held[queue]}" if why else held[queue]
            elif why and Change(queue, was.get(queue), part, "").moved and queue in due:
                asks, unclaimed = queues[queue].asks, queue.rpartition(".")[0] not in claimed
                why += _against(debt, was.get(queue), part, due[queue], asks=asks, unclaimed=unclaimed)
        found.append(Change(queue, was.get(queue), part, why))
    return found


def _against(debt: float, before: float | None, after: float, due: float, *, asks: bool, unclaimed: bool) -> str:
    """Explain why a queue's share falls although it is owed resources, or rises although it owes some.

    ``before``, ``after`` and ``due`` are fractions of the siblings' total weight. ``unclaimed``: no sibling that is
    owed resources asks for more. Returns '' if the share moves in the direction of the debt.
    """
    if before is None or (after > before) == (debt > 0):
        return ""
    if debt > 0:
        if not asks:
            return " (asks for no more now)"
        return " (gets it back more slowly)" if after > due + SAME else " (gets nothing back now)"
    if after < due - SAME:
        return " (gives it back more slowly)"
    if unclaimed:
        return " (takes what nobody who is owed asks for)"
    return " (gives nothing back now)" if after <= due + SAME else " (is above its part all the same)"
