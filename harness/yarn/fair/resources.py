"""Parse and format resource values of an allocation file in Hadoop's three notations.

``"50%"`` or ``"40% memory, 60% cpu"``; ``"memory-mb=1024, vcores=10"`` (also in percent); ``"1024 mb, 10 vcores"``.
Follows FairSchedulerConfiguration.parseResourceConfigValue of Hadoop 3.4.2, including its quirks.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX, ResourceLimit
from harness.model.resources import Resource
from harness.yarn.fair.javanum import parse_int, parse_long, percent_text, split, trim, wrap_int

_SPACE = r"[ \t\n\x0b\f\r]*"
_PERCENT = rf"(-?[0-9]+(?:\.[0-9]*)?){_SPACE}%{_SPACE}"
_VALUE = rf"(-?[0-9]+)(?:\.[0-9]*)?{_SPACE}"
#: The name of a resource type, with or without a prefix as in yarn.io/gpu.
_CUSTOM = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z][\w.-]+", re.ASCII)
#: Misspelt names that mean memory or vcores.
_OWN = re.compile(r"mem|cpu|core|mb$|gb$|ram")
_WITH_SPACES = re.compile(rf"-?[0-9]+(?:\.[0-9]*)?{_SPACE}[a-z]+{_SPACE}")


def parse_resources(text: str, *, missing: int = JAVA_LONG_MAX, extra_types: Collection[str] = ()) -> ResourceLimit:
    """Parse a resource value.

    Parameters
    ----------
    text : str
        The value as written in the file.
    missing : int
        Value of a resource that the ``name=value`` notation does not name (Hadoop: the largest long for maxima, 0 for
        minima). Hadoop truncates vcores to 32 bits, so the largest long becomes **-1 vcores**.
    extra_types : Collection[str]
        Names of further resource types that the ResourceManager knows; their values are validated and dropped.

    Raises
    ------
    ValueError
        Hadoop refuses the text; the message is Hadoop's reason.
    """
    if not trim(text):
        raise ValueError("the resource string is empty")
    if "=" in text:
        return _new_style(text, missing, extra_types)
    if "%" in text:
        return _percentages(text)
    return _old_style(text)


def custom_types(text: str) -> tuple[str, ...]:
    """Return names in a resource value that are further resource types, not misspellings of Hadoop's own two."""
    if "=" not in text:
        return ()
    names = [trim(part.partition("=")[0]) for part in text.split(",") if "=" in part]
    return tuple(name for name in dict.fromkeys(names) if _CUSTOM.fullmatch(name) and not _OWN.search(name.lower()))


def resource_text(limit: ResourceLimit | Resource) -> str:
    """Return a resource value in a notation from which Hadoop reads the same value."""
    if isinstance(limit, ResourceLimit):
        if limit.absolute is None:
            memory, vcores = percent_text(limit.memory_fraction), percent_text(limit.vcores_fraction)
            return f"{memory}%" if memory == vcores else f"{memory}% memory, {vcores}% cpu"
        limit = limit.absolute
    if limit.vcores < 0:
        return f"memory-mb={limit.memory_mb}"
    if limit.memory_mb <= JAVA_INT_MAX:
        return f"{limit.memory_mb} mb, {limit.vcores} vcores"
    return f"memory-mb={limit.memory_mb}, vcores={limit.vcores}"


def _new_style(text: str, missing: int, extra_types: Collection[str]) -> ResourceLimit:
    in_percent = "%" in text
    values: dict[str, int] = {"memory-mb": missing, "vcores": wrap_int(missing)}
    fractions = {"memory-mb": 1.0, "vcores": 1.0}
    for part in split(text, ","):
        pieces = split(part, "=")
        if len(pieces) != 2:
            raise ValueError(f"{text!r}: every resource must be of the form name=value")
        name, value = trim(pieces[0]), trim(pieces[1])
        if in_percent:
            fraction = _fraction(value, "")
        else:
            try:
                amount = parse_long(value)
            except ValueError:
                raise ValueError(f"{text!r}: {value!r} is not an integer") from None
            if amount < 0:
                raise ValueError(f"{text!r}: {name} must not be negative")
        if name not in values:
            # A name with a prefix is always a further resource type, whose value is not used here.
            if name in extra_types or ("/" in name and _CUSTOM.fullmatch(name)):
                continue
            raise ValueError(f"{text!r}: no resource is called {name!r} (memory-mb and vcores are)")
        if in_percent:
            fractions[name] = fraction
        else:
            values[name] = min(amount, JAVA_INT_MAX) if name == "vcores" else amount
    if in_percent:
        return ResourceLimit(None, fractions["memory-mb"], fractions["vcores"])
    return ResourceLimit(Resource(values["memory-mb"], values["vcores"]))


def _percentages(text: str) -> ResourceLimit:
    parts = split(text.lower(), ",")
    if len(parts) == 1:
        fraction = _fraction(trim(parts[0]), "")
        return ResourceLimit(None, fraction, fraction)
    return ResourceLimit(
        None,
        _fraction(_first_with(parts, "memory", text), "memory"),
        _fraction(_first_with(parts, "cpu", text), "cpu"),
    )


@lru_cache(4096)  # cached, because thousands of queues have the same few values
def _old_style(text: str) -> ResourceLimit:
    lower = text.lower()
    parts = split(lower, ",")
    if len(parts) != 2:
        parts = _WITH_SPACES.findall(lower)
        if len(parts) != 2:
            raise ValueError(f"{text!r} is not of the form 'X mb, Y vcores'")
    memory_mb = _amount(parts, "mb", text)
    if memory_mb < 0:
        raise ValueError(f"{text!r}: memory must not be negative")
    vcores = _amount(parts, "vcores", text)
    if vcores < 0:
        raise ValueError(f"{text!r}: vcores must not be negative")
    return ResourceLimit(Resource(memory_mb, vcores))


def _first_with(parts: list[str], word: str, text: str) -> str:
    for part in parts:
        if word in part:
            return trim(part)
    raise ValueError(f"{text!r} does not say how much {word}")


def _fraction(text: str, word: str) -> float:
    match = re.fullmatch(_PERCENT + re.escape(word), text)
    if not match:
        raise ValueError(f"{text!r} is not a percentage" + (f" of {word}" if word else ""))
    fraction = float(match[1]) / 100.0
    if fraction < 0:
        raise ValueError(f"{text!r}: a percentage must not be negative")
    return fraction


def _amount(parts: list[str], word: str, text: str) -> int:
    part = _first_with(parts, word, text)
    match = re.match(_VALUE + re.escape(word), part)
    if not match:
        raise ValueError(f"{text!r} has no amount of {word}")
    return parse_int(match[1])
