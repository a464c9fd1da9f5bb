"""A failing seed's schedule made short: faults are left out as long as something is still violated.

The world is made of the seed and each fault's random numbers are its own, so that what stays does as before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.control.soak import world
from tests.control.soak.faults import Fault

#: At most so many histories are tried.
MOST_TRIED = 120


def shortest(seed: int, schedule: Sequence[Fault], violation: str) -> list[Fault]:
    """A schedule, none of whose faults can be left out (or as far as `MOST_TRIED` go), that violates the same."""
    found, tried, parts = list(schedule), 0, 2
    while found and tried < MOST_TRIED:
        size = max(len(found) // parts, 1)
        for begin in range(0, len(found), size):
            shorter = found[:begin] + found[begin + size :]
            tried += 1
            if same(world.live(seed, shorter).violation, violation):
                found, parts = shorter, max(parts - 1, 2)
                break
            if tried >= MOST_TRIED:
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(found))
    return found


def same(one: str, other: str) -> bool:
    """Whether two violations are of one kind: figures and names apart."""
    return bool(one) and _words(one) == _words(other)


def _words(text: str) -> str:
    return re.sub(r"[\d.]+|root\S*|'[^']*'|b'.*", "", text)[:60]
