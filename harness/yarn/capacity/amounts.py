"""Parsers for capacities written as absolute resources and as vectors, with Hadoop's behaviour.

Hadoop parses ``[memory=8192,vcores=8]`` twice: ``CapacitySchedulerConfiguration`` as absolute resources, and
``QueueCapacityConfigParser`` as a vector, whose parts may also be weights and percentages. The two throw on different
texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping

from harness.model.queues import JAVA_LONG_MAX
from harness.yarn.fair.javanum import float32, parse_float, parse_long, split, trim, wrap_int

#: Absolute resources: resource name -> amount; a missing name counts as 0.
Amounts = Mapping[str, int]
MEMORY, VCORES = "memory-mb", "vcores"

_ABSOLUTE = re.compile(r"\[[\w.,\-_= /]+\]\n?", re.ASCII)
_VECTOR_PART = re.compile(r"[\w.,\-_% /]+", re.ASCII)
_UNIFORM = re.compile(r"([0-9.]+)(.*)")
_THOUSANDS = ("", "k", "M", "G", "T", "P")
#: Unit -> (numerator, denominator) of the conversion to the plain number (UnitsConversionUtil).
UNITS: dict[str, tuple[int, int]] = {
    "p": (1, 1000**4),
    "n": (1, 1000**3),
    "u": (1, 1000**2),
    "m": (1, 1000),
    **{unit: (1000**power, 1) for power, unit in enumerate(_THOUSANDS)},
    **{f"{unit}i": (1024**power, 1) for power, unit in zip(range(1, 6), ("K", "M", "G", "T", "P"), strict=True)},
}


def is_absolute(text: str | None) -> bool:
    """Return whether Hadoop parses a capacity as absolute resources."""
    return text is not None and _ABSOLUTE.fullmatch(text) is not None


def is_vector(text: str | None) -> bool:
    """Return whether Hadoop parses a capacity as a vector, whatever its parts (``isCapacityVectorFormat``)."""
    inner = _inside((text or "").replace(" ", ""))
    if inner is None:
        return False
    parts = inner.split("=")
    if len(parts) < 2 or any(_VECTOR_PART.fullmatch(part) is None for part in parts):
        return False
    # The text between two equals signs is the value of one part and the name of the next.
    return all(len(part) > 1 for part in parts[1:-1])


def _inside(text: str) -> str | None:
    """Return the text between the brackets; None if there are none."""
    text = text.removesuffix("\n")
    return text[1:-1] if len(text) > 2 and text.startswith("[") and text.endswith("]") else None


def convert(value: int, unit: str, target: str) -> int:
    """Convert like ``UnitsConversionUtil.convert``. Raises ValueError if a long overflows."""
    if unit == target:
        return value
    (numerator, denominator), (target_numerator, target_denominator) = UNITS[unit], UNITS[target]
    upper, lower = numerator * target_denominator, denominator * target_numerator
    limit = JAVA_LONG_MAX // upper if upper <= JAVA_LONG_MAX else 0
    if upper < lower:
        if limit < value:
            raise ValueError(f"{value}{unit} is too large")
        return _divided(value * upper, lower)
    if limit > value:
        return _divided(upper * value, lower)
    factor = upper // lower
    if JAVA_LONG_MAX // factor < value:
        raise ValueError(f"{value}{unit} is too large")
    return value * factor


def _divided(value: int, divisor: int) -> int:
    """Divide like Java's integers, towards zero."""
    return -(-value // divisor) if value < 0 else value // divisor


def _unit(text: str) -> str:
    """Return the letters at the end of a text; "" if there are none (``getUnits``)."""
    for index, char in enumerate(text):
        if char.isalpha() and text[index:].isalpha():
            return text[index:]
    return ""


def parse_absolute(text: str | None, types: Collection[str] = ()) -> dict[str, int]:
    """Parse absolute resources; empty if the text has none, or no memory.

    Parameters
    ----------
    text : str or None
        The capacity as written.
    types : Collection[str]
        Further resource types that the RM knows.

    Raises
    ------
    ValueError
        For a number that Hadoop throws on.
    """
    if text is None or not is_absolute(text):
        return {}
    found: dict[str, int] = {}
    for name, written in _pairs(text.removesuffix("\n")[1:-1]):
        name = trim(name)
        unit = _unit(written)
        if name not in ("memory", VCORES, MEMORY, *types) or unit not in UNITS:
            continue
        amount = parse_long(written[: len(written) - len(unit)])
        if unit:
            amount = convert(amount, unit, "Mi")
        found[MEMORY if name == "memory" else name] = wrap_int(amount) if name == VCORES else amount
    return found if found.get(MEMORY) else {}


def _pairs(inner: str) -> Iterator[tuple[str, str]]:
    """Split into ``name=value`` parts like Java's two splits; a part without a value is dropped."""
    for pair in split(trim(inner), ","):
        pieces = split(pair, "=")
        if len(pieces) > 1:
            yield pieces[0], pieces[1]


def unread(text: str, types: Collection[str] = ()) -> list[str]:
    """Return parts of absolute resources that Hadoop ignores: unknown name or unit, or no value."""
    inner = text.strip()[1:-1]
    found = []
    for pair in inner.split(","):
        name, _, written = pair.partition("=")
        known = trim(name) in ("memory", VCORES, MEMORY, *types)
        if not known or _unit(written) not in UNITS or not written or pair.count("=") > 1:
            found.append(pair)
    return found


def vector_kinds(text: str | None, *, root: bool, memory_needed: bool, types: Collection[str] = ()) -> set[str]:
    """Return the kinds of a capacity's parts according to the vector parser: percentage, absolute, weight.

    Parameters
    ----------
    memory_needed : whether a vector without memory counts as empty (Hadoop before 3.5).

    Raises
    ------
    ValueError
        For a number that Hadoop throws on.
    """
    if root:
        return {"percentage"}
    if text is None:
        return set()
    text = text.replace(" ", "")
    if is_vector(text):
        return set(vector_parts(text, memory_needed=memory_needed, types=types).values())
    uniform = _UNIFORM.match(text)
    if uniform is None or uniform[2] not in ("", "w"):
        return set()
    parse_float(uniform[1])
    return {"weight" if uniform[2] else "percentage"}


def vector_weight(text: str | None, *, memory_needed: bool, types: Collection[str] = ()) -> float | None:
    """Return the weight of a vector if all parts are the same weight (also valid in legacy mode); else None."""
    if text is None or not is_vector(text):
        return None
    if set(vector_parts(text, memory_needed=memory_needed, types=types).values()) != {"weight"}:
        return None
    inner = _inside(text.replace(" ", ""))
    assert inner is not None, "a vector is in brackets"
    values = {parse_float(written.removesuffix("w")) for _, written in _pairs(inner) if written.endswith("w")}
    return values.pop() if len(values) == 1 else None


def vector_parts(text: str, *, memory_needed: bool, types: Collection[str] = ()) -> dict[str, str]:
    """Return the kind of each resource's part in a vector; empty if Hadoop ignores the whole vector.

    ``text`` is a vector (`is_vector`). Raises ValueError for a number that Hadoop throws on.
    """
    inner = _inside(text.replace(" ", ""))
    assert inner is not None, "only vectors come here"
    kinds = dict.fromkeys((MEMORY, VCORES, *types), "absolute")
    memory = 0.0
    for name, written in _pairs(inner):
        suffix = re.sub(r"[0-9.]", "", written)
        if not written.endswith(suffix):
            continue
        value = parse_float(written[: len(written) - len(suffix)])
        kind = "absolute"
        if suffix in UNITS and suffix:
            whole = int(value) if math.isfinite(value) else JAVA_LONG_MAX
            value = float32(float(convert(whole, suffix, "Mi")))
        else:
            kind = {"%": "percentage", "w": "weight"}.get(suffix, "absolute")
        name = MEMORY if name == "memory" else name
        kinds[name] = kind
        memory = value if name == MEMORY else memory
    return {} if memory_needed and memory == 0 else kinds


def compare(
    left: Amounts, right: Amounts, *, dominant: bool, cluster: Amounts | None = None, types: Collection[str] = ()
) -> int:
    """Compare like ``Resources.lessThan`` and its variants under one of Hadoop's calculators: -1, 0 or 1.

    ``cluster``: the cluster's resources; None: no node has registered yet, as when the RM starts.
    """
    names = (MEMORY, VCORES, *types)
    ours, theirs = [left.get(name, 0) for name in names], [right.get(name, 0) for name in names]
    if not dominant:
        return (ours[0] > theirs[0]) - (ours[0] < theirs[0])
    if ours == theirs:
        return 0
    if cluster is None or not any(cluster.values()):
        greater = any(a > b for a, b in zip(ours, theirs, strict=True))
        less = any(a < b for a, b in zip(ours, theirs, strict=True))
        return 0 if greater and less else 1 if greater else -1
    shares = []
    for amounts in (ours, theirs):
        parts = [a / cluster[name] for a, name in zip(amounts, names, strict=True) if cluster.get(name)]
        shares.append(sorted(parts, reverse=True))
    return (shares[0] > shares[1]) - (shares[0] < shares[1])


def parse_container(text: str, types: Collection[str]) -> dict[str, int]:
    """Return the resources of a largest container as ``ResourceUtils.createResourceFromString`` reads them.

    Raises ValueError where it throws.
    """
    found: dict[str, int] = {}
    for part in split(trim(text), ","):
        part = trim(part)
        name, equals, value = part.partition("=")
        digits = value[: next((i for i, char in enumerate(value) if not char.isdigit()), len(value))]
        rest = value[len(digits) :]
        unit = rest[1:] if rest[:1].isspace() else rest
        if not equals or not name or not digits or "=" in value or (unit and not unit.replace("_", "a").isalnum()):
            raise ValueError(f"{part!r} is not of the form name=amount")
        if unit in ("M", "m"):
            unit = "Mi"
        elif unit in ("G", "g"):
            unit = "Gi"
        elif unit:
            raise ValueError(f"{part!r}: the units are M and G")
        amount = int(digits)
        name = {"memory": MEMORY, "gpu": "yarn.io/gpu", "fpga": "yarn.io/fpga"}.get(name, name)
        if name == MEMORY and unit in UNITS and (unit or part.startswith("memory=")):
            amount = convert(amount, unit, "Mi")
        if name not in (MEMORY, VCORES, *types):
            raise ValueError(f"there is no resource {name!r}")
        found[name] = amount
    return found


def any_amount(amounts: Amounts) -> bool:
    """Return whether any resource has an amount other than 0."""
    return any(amounts.values())


def amounts_text(amounts: Amounts) -> str:
    """Format amounts as in a configuration file: ``[memory=1024,vcores=1]``."""
    return "[" + ",".join(f"{'memory' if n == MEMORY else n}={amount}" for n, amount in amounts.items()) + "]"
