"""Java's conversions of numbers and strings: ``Float.parseFloat`` and related methods, with exact results.

Hadoop parses the numbers of its files with them ("0x1p3", "NaN" and "1f" are numbers; "1_000" and "inf" are not).
Every function raises ValueError where Java throws NumberFormatException.
"""

from __future__ import annotations

import ctypes
import math
import re
from decimal import Decimal
from functools import lru_cache

from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)(\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)[fFdD]?")
_INTEGER = re.compile(r"[+-]?\d+")
_BELOW_OR_AT_SPACE = "".join(map(chr, range(0x21)))


def trim(text: str) -> str:
    """Remove leading and trailing characters up to U+0020, as ``String.trim`` does."""
    return text.strip(_BELOW_OR_AT_SPACE)


def parse_boolean(text: str, default: bool) -> bool:
    """Parse a trimmed text as ``Configuration.getBoolean`` does.

    The words true and false may be in upper or lower case; any other text gives the default.
    """
    return {"true": True, "false": False}.get(text.lower(), default)


def split(text: str, separator: str) -> list[str]:
    """Split at a plain separator as ``String.split`` does: without trailing empty parts."""
    if separator not in text:
        return [text]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def float32(value: float) -> float:
    """Return the nearest float32 to a double (ties to even, beyond the range: infinity), as a Python float."""
    return float(ctypes.c_float(value).value)


@lru_cache(4096)
def parse_double(text: str) -> float:
    """Parse a double as ``Double.parseDouble`` does."""
    text = trim(text)
    unsigned = text.lstrip("+-") if text[:1] in ("+", "-") else text
    if unsigned in ("NaN", "Infinity") and len(text) - len(unsigned) <= 1:
        value = math.nan if unsigned == "NaN" else math.inf
        return -value if text[0] == "-" else value
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if (match := _HEX.fullmatch(text)) and (match[2] or match[4]):
        sign, whole, _, fraction, exponent = match.groups()
        digits, shift = whole + (fraction or ""), -4 * len(fraction or "")
        if not int(digits, 16):
            return -0.0 if sign == "-" else 0.0
        try:
            # Limit the exponent: with a larger one, every number of this length is 0 or infinite.
            bounded = max(-10_000 - 4 * len(digits), min(10_000 + 4 * len(digits), _long_digits(exponent)))
            value = float.fromhex(f"0x{digits}p{bounded + shift}")
        except OverflowError:
            value = math.inf
        return -value if sign == "-" else value
    raise ValueError(f"{text!r} is not a number")


def _long_digits(text: str) -> int:
    """Parse an integer of any length, clamped to the range that matters for an exponent."""
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").lstrip("0")
    return sign * (int(digits) if 0 < len(digits) < 12 else (10**12 if digits else 0))


def parse_float(text: str) -> float:
    """Parse a float as ``Float.parseFloat`` does: round to float32 once, not through a double."""
    value = parse_double(text)
    nearest = float32(value)
    if not math.isfinite(value) or value == nearest or not _DECIMAL.fullmatch(trim(text)):
        return nearest
    # If the rounded double is exactly halfway between two floats, the original text determines the nearest float.
    return _nearest_of_text(trim(text).rstrip("fFdD"), value, nearest)


def weight_text(weight: float) -> str:
    """Return the shortest decimal that Hadoop reads as this float32."""
    for digits in range(1, 18):
        text = f"{weight:.{digits}g}"
        if float32(float(text)) == weight:
            break
    plain = format(Decimal(text), "f")
    return plain if len(plain) <= 12 else text


def percent_text(fraction: float) -> str:
    """Return a percentage in plain decimals that gives this fraction when divided by 100 in doubles."""
    near = fraction * 100.0
    for value in (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)):
        for digits in range(1, 18):
            text = format(Decimal(f"{value:.{digits}g}"), "f")
            if float(text) / 100.0 == fraction:
                return text
    return format(Decimal(near), "f")


def _neighbour(value: float, up: bool) -> float:
    """Return the next float32 above or below a float32."""
    bits = ctypes.c_int32.from_buffer_copy(ctypes.c_float(value)).value
    if value == 0.0:
        bits = 1 if up else -0x7FFFFFFF
    elif (value > 0) == up:
        bits += 1
    else:
        bits -= 1
    return float(ctypes.c_float.from_buffer_copy(ctypes.c_int32(bits)).value)


def _nearest_of_text(text: str, value: float, nearest: float) -> float:
    if not math.isfinite(nearest):
        return nearest
    other = _neighbour(nearest, up=value > nearest)
    if not math.isfinite(other) or value - nearest != other - value:
        return nearest
    exact, halfway = Decimal(text), Decimal(value)
    if exact == halfway:
        return nearest
    low, high = min(nearest, other), max(nearest, other)
    return high if exact > halfway else low


def parse_int(text: str) -> int:
    """Parse an int as ``Integer.parseInt`` does."""
    return _parse_integer(text, JAVA_INT_MAX)


def parse_long(text: str) -> int:
    """Parse a long as ``Long.parseLong`` does."""
    return _parse_integer(text, JAVA_LONG_MAX)


def _parse_integer(text: str, limit: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not an integer")
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-").lstrip("0")
    value = sign * (int(digits or "0") if len(digits) < 25 else 10**25)
    if not -limit - 1 <= value <= limit:
        raise ValueError(f"{text!r} is beyond {limit}")
    return value


def wrap_long(value: int) -> int:
    """Wrap a product as Java's long arithmetic does (two's complement, silently)."""
    return (value + 2**63) % 2**64 - 2**63


def wrap_int(value: int) -> int:
    """Truncate a long as Java's (int) does (two's complement, silently)."""
    return (value + 2**31) % 2**32 - 2**31


def string_hash(text: str) -> int:
    """Return ``String.hashCode``, a signed 32-bit number that is computed from the UTF-16 units."""
    result = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for index in range(0, len(units), 2):
        result = (31 * result + units[index] + 256 * units[index + 1]) & 0xFFFFFFFF
    return wrap_int(result)


def hash_set_order(names: list[str]) -> list[str]:
    """Return the order in which a ``java.util.HashSet`` iterates over strings that were added in the given order.

    It iterates over the buckets in order, and within a bucket in the order of insertion. The table doubles when it is
    more than three quarters full, and when a bucket of a table with less than 64 buckets would hold more than 8
    strings. (In a larger table such a bucket becomes a tree, whose order is not reproduced here.)
    """
    size, buckets, count = 16, [[] for _ in range(16)], 0  # type: int, list[list[tuple[int, int, str]]], int
    seen: set[str] = set()

    def grow() -> None:
        nonlocal size, buckets
        entries = sorted(entry for bucket in buckets for entry in bucket)
        size *= 2
        buckets = [[] for _ in range(size)]
        for entry in entries:
            buckets[entry[1] & (size - 1)].append(entry)

    for name in names:
        if name in seen:
            continue
        seen.add(name)
        spread = string_hash(name) & 0xFFFFFFFF
        spread ^= spread >> 16
        bucket = buckets[spread & (size - 1)]
        bucket.append((count, spread, name))
        count += 1
        if len(bucket) > 8 and size < 64:
            grow()
        if count > size * 3 // 4:
            grow()
    return [name for bucket in buckets for _, _, name in bucket]
