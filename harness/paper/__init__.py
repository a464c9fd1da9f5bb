"""Scenarios on paper, solved exactly. One module per family of scenarios reads its YAML and runs it under a policy.

An extension adds a family by naming an instance of `Family` under ``scenarios`` (`harness.base.extensions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from harness.base.errors import InputError
from harness.base.extensions import extensions, load
from harness.paper import steps, units, vectors
from harness.paper.reader import Fields, read_top
from harness.policies.base import Policy


class Answer(Protocol):
    """The answer of a scenario: what each queue, job or user gets."""

    def document(self) -> dict[str, Any]:
        """Return the answer for ``--json``."""

    def table(self) -> str:
        """Return the answer as text, within 80 columns if the names allow it."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of scenarios.

    ``is_one`` returns whether a scenario with these fields belongs to the family. ``read`` returns the scenario that
    ``play`` runs under a policy.
    """

    is_one: Callable[[Fields], bool]
    read: Callable[[Fields], Any]
    play: Callable[[Any, Policy], Answer]


@cache
def families() -> tuple[Family, ...]:
    """Return all families, those of extensions first.

    The first that recognises a scenario reads it; the last accepts any.
    """
    added = [load(place) for extension in extensions() for place in extension.scenarios]
    return (
        *added,
        Family(vectors.is_vectors, vectors.read_vectors, vectors.divide),
        Family(lambda _: True, steps.read_steps, units.allocate),
    )


def play(text: str, source: str, policy: Policy) -> Answer:
    """Run the scenario in a YAML text under a policy. ``source`` is the name of the file in messages.

    Raises InputError for an invalid scenario, CallError if the policy has no rule for the scenario's family.
    """
    top = read_top(text, source)
    family = next(family for family in families() if family.is_one(top))
    scenario = family.read(top)
    try:
        return family.play(scenario, policy)
    except InputError as error:
        raise InputError(error.what, where=error.where or source, hint=error.hint) from error
