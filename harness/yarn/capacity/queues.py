"""The Capacity Scheduler's configured queue tree, and the computation of capacities from siblings' shares.

Follows Hadoop 3.4.2 (CapacitySchedulerConfiguration, AbstractParentQueue, legacy queue mode): a queue's capacity is a
weight (``4w``), a percentage of its parent, or absolute resources (``[memory=8192,vcores=8]``); the children of a
parent use only one of the three; a weight is within [0, 10000]; percentages of siblings sum to 100 within 0.05, in
float32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from harness.base.errors import InputError
from harness.model.queues import ROOT
from harness.yarn.capacity.amounts import convert
from harness.yarn.capacity.properties import PREFIX
from harness.yarn.fair.javanum import float32

Mode = Literal["weight", "percent", "absolute"]

#: Hadoop's largest weight (MAXIMUM_CAPACITY_VALUE).
MOST_WEIGHT = 10_000.0
#: The smallest weight that is written. Smaller weights would not change the order, because every queue gets a
#: container.
LEAST_WEIGHT = 1e-4
#: Percentages are multiples of this unit; every queue gets at least one unit.
PERCENT_UNIT = 1e-4
#: Shares that maximum capacities determine are rounded down to `PERCENT_UNIT`, so their sum may be too small. Then
#: percentages are multiples of this unit, the finest that `Capacity.text` supports.
FINE_PERCENT_UNIT = 1e-6
#: Tolerance of the sum of the children's capacities, as a fraction of 1 (CapacitySchedulerConfiguration, PRECISION).
SUM_PRECISION = 0.0005
MAX_DEPTH = 64
_NUMBER = r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+\."
_AMOUNT = re.compile(r"([0-9]{1,12})(Mi|Gi|Ti|Pi|)", re.ASCII)
_WEIGHT = re.compile(rf"\+?({_NUMBER})w", re.ASCII)
_PERCENT = re.compile(rf"\+?({_NUMBER})%?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A queue's capacity: ``value`` of a weight or percentage; ``amounts`` of absolute resources."""

    mode: Mode
    value: float = 0.0
    amounts: Mapping[str, int] | None = None

    @property
    def entitlement(self) -> float:
        """Return the number by which siblings are compared: the weight, the percentage, or the memory in MiB."""
        return float(self.amounts.get("memory", 0)) if self.amounts is not None else self.value

    def text(self) -> str:
        """Return the text of the property."""
        if self.amounts is not None:
            return "[" + ",".join(f"{name}={amount}" for name, amount in self.amounts.items()) + "]"
        return _decimal(self.value) + ("w" if self.mode == "weight" else "")


@dataclass(frozen=True, slots=True)
class CapacityQueue:
    """A queue of the configuration."""

    path: str
    parent: str | None
    children: tuple[str, ...]
    capacity: Capacity
    #: Reason why the controller cannot change the capacities of this queue's children ('': it can).
    fixed: str = ""


def read_capacity(text: str | None, where: str) -> Capacity:
    """Parse a capacity. Raises InputError for an invalid one, or for an unknown type."""
    if text is None:
        raise InputError("a queue without a capacity", where=where, hint="set its capacity")
    words = "".join(text.split())
    if "${" in words:
        raise InputError(f"capacity {text[:60]!r} refers to another property", where=where, hint="write the number")
    if words.startswith("["):
        return Capacity("absolute", amounts=_amounts(words, text, where))
    # With white space around a weight, Hadoop parses it as a percentage and fails.
    if found := _WEIGHT.fullmatch(text):
        return _bounded("weight", found[1], MOST_WEIGHT, text, where)
    if found := _PERCENT.fullmatch(words):
        return _bounded("percent", found[1], 100.0, text, where)
    raise InputError(
        f"capacity {text[:60]!r} is not a weight, percentage or absolute resource",
        where=where,
        hint="write 2w, 40, or [memory=8192,vcores=8]",
    )


def read_maximum(text: str | None) -> Capacity | None:
    """Parse a maximum capacity: a percentage of the parent's, or absolute resources.

    Returns None if there is no limit: no text, Hadoop's default of -1, or an invalid number, which `validate` reports.
    """
    try:
        found = None if text is None else read_capacity(text, "maximum-capacity")
    except InputError:
        return None
    return None if found is None or found.mode == "weight" else found


def _bounded(mode: Mode, number: str, most: float, text: str, where: str) -> Capacity:
    value = float(number)
    if not 0 <= value <= most:
        raise InputError(f"capacity {text[:60]!r} is not within [0, {most:g}]", where=where, hint="write one that is")
    return Capacity(mode, value)


def _amounts(words: str, text: str, where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in words.strip("[]").split(","):
        name, _, amount = part.partition("=")
        read = _AMOUNT.fullmatch(amount)
        if read is None or not name or (read[2] and name == "vcores"):
            raise InputError(
                f"capacity {text[:60]!r} has more than plain amounts",
                where=where,
                hint="write [memory=8192,vcores=8], without percentages or weights in it",
            )
        # Hadoop converts every amount with a unit to MiB.
        found["memory" if name == "memory-mb" else name] = convert(int(read[1]), read[2], "Mi" if read[2] else "")
    if "memory" not in found:
        raise InputError(f"capacity {text[:60]!r} names no memory", where=where, hint="write [memory=8192,vcores=8]")
    return found


def queue_tree(values: Mapping[str, str], *, source: str) -> dict[str, CapacityQueue]:
    """Return the queues of these properties, root first, parents before children.

    Raises InputError with the property.
    """
    tree: dict[str, CapacityQueue] = {}
    waiting: list[tuple[str, str | None, int]] = [(ROOT, None, 0)]
    while waiting:
        path, parent, depth = waiting.pop(0)
        names = [name.strip() for name in values.get(f"{PREFIX}{path}.queues", "").split(",")]
        names = [name for name in names if name]
        for name in names:
            if "." in name or names.count(name) > 1 or depth >= MAX_DEPTH:
                raise InputError(f"queue {name[:60]!r} below {path} makes no sense", where=f"{source}: {path}.queues")
        where = f"{source}: {PREFIX}{path}.capacity"
        text = values.get(f"{PREFIX}{path}.capacity")
        capacity = Capacity("percent", 100.0) if parent is None else read_capacity(text, where)
        children = tuple(f"{path}.{name}" for name in names)
        tree[path] = CapacityQueue(path, parent, children, capacity, _fixed(values, path))
        waiting += [(child, path, depth + 1) for child in children]
    if not tree[ROOT].children and not flag(values, f"{ROOT}.auto-queue-creation-v2.enabled"):
        raise InputError(
            "no queues below root: the RM does not start", where=source, hint=f"name some in {PREFIX}root.queues"
        )
    for queue in tree.values():
        modes = {tree[child].capacity.mode for child in queue.children}
        if len(modes) > 1:
            raise InputError(
                f"the children of {queue.path} have {' and '.join(sorted(modes))} capacities",
                where=source,
                hint="give them capacities of one kind: Hadoop refuses a mixture",
            )
    return tree


def _fixed(values: Mapping[str, str], path: str) -> str:
    """Explain why a queue's settings prevent changes of its children's capacities ('': they do not)."""
    for key, what in (
        ("auto-create-child-queue.enabled", "it creates queues by itself (auto-create-child-queue)"),
        ("auto-queue-creation-v2.enabled", "it creates queues by itself (auto-queue-creation-v2)"),
    ):
        if flag(values, f"{path}.{key}"):
            return what
    return ""


def flag(values: Mapping[str, str], name: str) -> bool:
    """Return whether a property, named without the prefix, is true."""
    return values.get(f"{PREFIX}{name}", "").strip().lower() == "true"


def capacities(
    shares: Mapping[str, float],
    old: Mapping[str, Capacity],
    total: Capacity | None,
    moved: Collection[str] = ("memory",),
    leaves: Mapping[str, int] | None = None,
    most: Mapping[str, Capacity] | None = None,
) -> dict[str, Capacity]:
    """Return capacities of all children of a parent in the ratio of ``shares``, keeping their type.

    A child whose capacity is 0 keeps it: Hadoop serves it after all others in any case. Raises InputError if no such
    capacities exist.

    Parameters
    ----------
    shares : Mapping[str, float]
        Child -> its share, in any unit.
    old : Mapping[str, Capacity]
        Child -> its present capacity.
    total : Capacity or None
        The parent's absolute resources, if they have changed.
    moved : Collection[str]
        The absolute resources to divide again. Every queue keeps its amounts of the other resources.
    leaves : Mapping[str, int] or None
        Child that is a parent -> number of its leaves, each of which needs a part of its absolute resources.
    most : Mapping[str, Capacity] or None
        Child -> its maximum capacity. A child whose share exceeds it gets the maximum, and its siblings divide the
        rest.
    """
    mode = next(iter(old.values())).mode
    open_ = {path: share for path, share in shares.items() if old[path].entitlement > 0}
    if not open_ or (_alike(open_, old) and _fits(old, total, moved)):
        return dict(old)
    if mode == "weight":
        new = _weights(open_, old)
    elif mode == "percent":
        new = _percentages(open_, old, most or {})
    else:
        new = _absolute(open_, old, total, moved, leaves or {}, most or {})
    return {path: new.get(path, old[path]) for path in old}


def _alike(shares: Mapping[str, float], old: Mapping[str, Capacity]) -> bool:
    """Return whether the old capacities already have the ratios of ``shares``, within float32 precision."""
    ratios = [old[path].entitlement / share for path, share in shares.items()]
    return max(ratios) <= min(ratios) * (1 + 1e-6)


def _fits(old: Mapping[str, Capacity], total: Capacity | None, moved: Collection[str]) -> bool:
    """Return whether the siblings' amounts fit into the parent's changed absolute resources (None: unchanged)."""
    if total is None or total.amounts is None:
        return True
    return all(
        sum((capacity.amounts or {}).get(name, 0) for capacity in old.values()) <= total.amounts[name]
        for name in moved
        if name in total.amounts
    )


def _weights(shares: Mapping[str, float], old: Mapping[str, Capacity]) -> dict[str, Capacity]:
    """Return weights with the previous sum, so that their magnitude stays familiar to readers."""
    scale = sum(old[path].value for path in shares) / sum(shares.values())
    scale = min(scale, MOST_WEIGHT / max(shares.values()))
    return {
        path: Capacity("weight", round(max(share * scale, LEAST_WEIGHT), 6 if share * scale < 1 else 4))
        for path, share in shares.items()
    }


def _percentages(
    shares: Mapping[str, float], old: Mapping[str, Capacity], most: Mapping[str, Capacity]
) -> dict[str, Capacity]:
    if round(100.0 / PERCENT_UNIT) < len(shares):
        raise InputError(f"{len(shares)} queues are too many for percentages", hint="give them weights (1w)")
    percents = {path: limit.value for path, limit in most.items() if limit.amounts is None}
    for unit in (PERCENT_UNIT, FINE_PERCENT_UNIT):
        # Add a tolerance, because a binary fraction may be slightly below the decimal multiple of the unit.
        caps = {path: math.floor(value / unit + 1e-6) for path, value in percents.items()}
        least = dict.fromkeys(shares, round(PERCENT_UNIT / unit))
        given = _apportion_within(round(100.0 / unit), shares, least, caps)
        new = {path: Capacity("percent", count * unit) for path, count in given.items()}
        total = 0.0
        for path, before in old.items():
            total = float32(total + float32(float32(float(new.get(path, before).text())) / 100.0))
        if abs(total - 1.0) <= SUM_PRECISION / 2:
            return new
    raise InputError(f"the percentages sum to {total * 100:g} as Hadoop adds them up", hint="use weights (1w)")


def _absolute(
    shares: Mapping[str, float],
    old: Mapping[str, Capacity],
    total: Capacity | None,
    moved: Collection[str],
    leaves: Mapping[str, int],
    most: Mapping[str, Capacity],
) -> dict[str, Capacity]:
    amounts: dict[str, dict[str, int]] = {path: {} for path in shares}
    names = dict.fromkeys(name for capacity in old.values() for name in capacity.amounts or ())
    for name in names:
        has = {path: (old[path].amounts or {}).get(name, 0) for path in old}
        if name not in moved:
            for path in shares:
                if name in (old[path].amounts or {}):
                    amounts[path][name] = has[path]
            continue
        whole = sum(has[path] for path in shares)
        if total is not None and total.amounts is not None:
            # The parent's amount has changed, so the children cannot divide more than that.
            whole = min(whole, total.amounts.get(name, whole))
        taking = {path: share for path, share in shares.items() if has[path] > 0}
        if whole < sum(leaves.get(path, 1) for path in taking):
            raise InputError(f"{whole} of {name} cannot be shared by {len(taking)} queues and those below them")
        # A maximum of 0 means no maximum.
        caps = {path: limit.amounts[name] for path, limit in most.items() if limit.amounts and limit.amounts.get(name)}
        given = _apportion_within(whole, taking, leaves, caps) if taking else {}
        for path in shares:
            if name in (old[path].amounts or {}):
                amounts[path][name] = given.get(path, 0)
    return {path: Capacity("absolute", amounts=found) for path, found in amounts.items()}


def filled(old: Mapping[str, Capacity], open_: Collection[str], above: Capacity) -> dict[str, str]:
    """Return capacities with which some siblings divide what the others leave, in the ratio of their old capacities.

    Parameters
    ----------
    old : Mapping[str, Capacity]
        The capacities of all children of one parent.
    open_ : Collection[str]
        The children whose capacity may change.
    above : Capacity
        The parent's capacity.

    Returns
    -------
    dict[str, str]
        Child -> text of its new capacity; empty for weights, which are valid in any combination, and if the others
        leave nothing.
    """
    shares = {path: old[path].entitlement for path in open_ if old[path].entitlement > 0}
    modes = {capacity.mode for capacity in old.values()}
    if not shares or len(modes) != 1:
        return {}
    if modes == {"percent"}:
        rest = 100.0 - sum(capacity.value for path, capacity in old.items() if path not in shares)
        units = round(rest / PERCENT_UNIT)
        if units < len(shares):
            return {}
        return {
            path: Capacity("percent", count * PERCENT_UNIT).text() for path, count in _apportion(units, shares).items()
        }
    if modes == {"absolute"} and above.amounts is not None:
        return _cut(old, shares, above.amounts)
    return {}


def _cut(old: Mapping[str, Capacity], shares: Collection[str], whole: Mapping[str, int]) -> dict[str, str]:
    """Scale absolute resources down to the amounts that the parent has left; unchanged if they fit."""
    amounts = {path: dict(old[path].amounts or {}) for path in shares}
    for name, most in whole.items():
        fixed = sum((capacity.amounts or {}).get(name, 0) for path, capacity in old.items() if path not in shares)
        asked = sum(found.get(name, 0) for found in amounts.values())
        left = max(most - fixed, 0)
        if asked > left:
            for found in amounts.values():
                if name in found:
                    found[name] = found[name] * left // asked
    return {path: Capacity("absolute", amounts=found).text() for path, found in amounts.items()}


def is_by_hand(text: str) -> bool:
    """Return whether a person may have written this capacity. A controller writes four decimals, or any whole MiB.

    A written-out fraction such as 100 / 7 counts as a person's. So does an amount of memory with a unit or in multiples
    of 50 or 64 MiB.
    """
    if text.strip().startswith("["):
        return _amounts_by_hand(text)
    number = text.strip().rstrip("w%").strip()
    try:
        value = float(number)
    except ValueError:
        return True
    decimals = len(number.partition(".")[2])
    if decimals <= 2 or decimals != len(_decimal(value).partition(".")[2]):
        return True
    # A count of 0 would match every value near 0, such as the smallest share that a controller writes.
    parts = ((whole, round(value * whole / 100)) for whole in range(3, 17))
    return any(count > 0 and abs(value - count * 100 / whole) <= 10.0**-decimals for whole, count in parts)


def _amounts_by_hand(text: str) -> bool:
    for part in "".join(text.split()).strip("[]").split(","):
        name, _, amount = part.partition("=")
        if name in ("memory", "memory-mb") and amount.isdecimal():
            return int(amount) % 50 == 0 or int(amount) % 64 == 0
    return True


def _apportion_within(
    units: int, shares: Mapping[str, float], least: Mapping[str, int], most: Mapping[str, int]
) -> dict[str, int]:
    """Like `_apportion`, but limited to the maxima ``most``, as far as the others can take the rest."""
    held: dict[str, int] = {}
    while open_ := {path: share for path, share in shares.items() if path not in held}:
        needs = sum(least.get(path, 1) for path in open_)
        while units - sum(held.values()) < needs:
            held[max(held, key=lambda path: held[path] - least.get(path, 1))] -= 1
        given = _apportion(units - sum(held.values()), open_, least)
        limits = {path: max(most.get(path, units), least.get(path, 1)) for path in open_}
        over = {path: limits[path] for path, count in given.items() if count > limits[path]}
        if not over:
            return {path: {**held, **given}[path] for path in shares}
        held |= over
    return {path: held[path] for path in shares}


def _apportion(units: int, shares: Mapping[str, float], least: Mapping[str, int] | None = None) -> dict[str, int]:
    """Divide whole units in the ratio of the shares by the largest remainder method, with at least one for each."""
    whole = sum(shares.values())
    exact = {path: share / whole * units for path, share in shares.items()}
    given = {path: math.floor(part) for path, part in exact.items()}
    rest = units - sum(given.values())
    for path in sorted(exact, key=lambda path: given[path] - exact[path])[: max(rest, 0)]:
        given[path] += 1
    needs = {path: (least or {}).get(path, 1) for path in given}
    for path, need in needs.items():
        while given[path] < need:
            richest = max(given, key=lambda other: given[other] - needs[other])
            given[richest] -= 1
            given[path] += 1
    return given


def _decimal(value: float) -> str:
    """Format a number without an exponent, which not every version of Hadoop can read in a capacity."""
    return f"{value:.6f}".rstrip("0").rstrip(".") or "0"
