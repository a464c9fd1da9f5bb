"""Did the recorded load stay as it was? The work of the recording's halves compared, queue by queue. Pure.

A prediction holds for a load like the recorded one. Where the load changed while it was recorded, nobody knows which of
the two goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: So much of the work, queue by queue, may one half have more of than the other.
MOST_MOVED = 0.2
#: ... or more, as long as it is no more than so many standard deviations above what chance would make of it.
CHANCE = 2.0

#: Mean and variance of the absolute value of a standard normal.
_MEAN, _VARIANCE = math.sqrt(2.0 / math.pi), 1.0 - 2.0 / math.pi


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How the halves of a recording differ.

    moved : work that one half has more of than the other, queue by queue, as a part of all; 0: alike, 1: all other.
    beyond : how far that is above its mean if each application came in either half by chance, standard deviations.
    queue : the one that moved most; ``before``, ``after``: its part of the work in the first and in the second half.
    """

    moved: float
    beyond: float
    queue: str
    before: float
    after: float

    @property
    def changed(self) -> bool:
        """Whether the load became another one while it was recorded, as far as that can be told."""
        return self.moved > MOST_MOVED and self.beyond > CHANCE


def steadiness(applications: Iterable[tuple[float, str, float]]) -> Steadiness | None:
    """Of applications (submitted at, s; queue; work in any unit). None where they say nothing: no time, or no work."""
    listed = list(applications)
    times = [at for at, _, _ in listed]
    if not times or min(times) == max(times):
        return None
    middle = (min(times) + max(times)) / 2
    halves: tuple[dict[str, float], dict[str, float]] = ({}, {})
    squares: dict[str, float] = {}
    for at, queue, work in listed:
        half = halves[at >= middle]
        half[queue] = half.get(queue, 0.0) + work
        squares[queue] = squares.get(queue, 0.0) + work * work
    first, second = (math.fsum(half.values()) for half in halves)
    if first + second <= 0:
        return None
    apart = {queue: abs(halves[1].get(queue, 0.0) - halves[0].get(queue, 0.0)) for queue in sorted(squares)}
    most = max(apart, key=lambda name: apart[name])
    moved, by_chance = math.fsum(apart.values()), _MEAN * math.fsum(math.sqrt(square) for square in squares.values())
    return Steadiness(
        moved / (first + second),
        (moved - by_chance) / math.sqrt(_VARIANCE * math.fsum(squares.values())),
        most,
        halves[0].get(most, 0.0) / first if first else 0.0,
        halves[1].get(most, 0.0) / second if second else 0.0,
    )
