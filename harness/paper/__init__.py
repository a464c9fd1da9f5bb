"""Scenarios on paper: one module a family reads its YAML and plays it, exactly, under a policy.

A new family is a module with what `Family` names, and its line in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from harness.base.errors import InputError
from harness.paper import clusters, rates, slots, steps, units, vectors
from harness.paper.reader import Fields, read_top
from harness.policies.base import Policy


class Answer(Protocol):
    """Who gets what."""

    def document(self) -> dict[str, Any]:
        """For ``--json``."""

    def table(self) -> str:
        """For people, within 80 columns where the names allow it."""


@dataclass(frozen=True, slots=True)
class Family:
    """``is_one``: whether a scenario with these fields is of the family. ``read`` gives what ``play`` takes."""

    is_one: Callable[[Fields], bool]
    read: Callable[[Fields], Any]
    play: Callable[[Any, Policy], Answer]


#: The first that a scenario is of reads it; the last one takes what is left, and says what is wrong with it.
FAMILIES = (
    Family(slots.is_slots, slots.read_slots, slots.allocate_slots),
    Family(rates.is_rates, rates.read_rates, rates.play_rates),
    Family(clusters.is_clusters, clusters.read_clusters, clusters.allocate_clusters),
    Family(vectors.is_vectors, vectors.read_vectors, vectors.divide),
    Family(lambda _: True, steps.read_steps, units.allocate),
)


def play(text: str, source: str, policy: Policy) -> Answer:
    """The scenario in a YAML text under a policy. ``source`` names the file in messages.

    Raises InputError for whatever is wrong with the scenario, CallError where the policy has no rule for its family.
    """
    top = read_top(text, source)
    family = next(family for family in FAMILIES if family.is_one(top))
    scenario = family.read(top)
    try:
        return family.play(scenario, policy)
    except InputError as error:
        raise InputError(error.what, where=error.where or source, mend=error.mend) from error
