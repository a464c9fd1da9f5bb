"""Sums of floats that are equal in every Python version and in compiled code; exact numbers for JSON."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from fractions import Fraction
from typing import Any


def left_fold_sum(values: Iterable[object], start: object = 0) -> Any:
    """Return the sum of values, added one after the other from left to right.

    Since 3.12 Python's own `sum` compensates rounding errors: a simulation's last digits would depend on Python's
    version, and a compiled policy would differ from the plain one.
    """
    return functools.reduce(operator.add, values, start)


def plain(value: Fraction | float) -> int | float:
    """Convert an exact number for JSON: an integer, or else the nearest float."""
    return int(value) if isinstance(value, int | Fraction) and value.denominator == 1 else float(value)
