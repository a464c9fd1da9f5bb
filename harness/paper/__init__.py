"""Scenarios on paper: one module a family reads its YAML and plays it, exactly, under a policy.

A new family is an instance of `Family` that an extension names under ``scenarios`` (`harness.base.extensions`).
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


@cache
def families() -> tuple[Family, ...]:
    """All families, those of extensions first. The first that recognises a scenario reads it; the last takes any."""
    added = [load(place) for extension in extensions() for place in extension.scenarios]
    return (
        *added,
        Family(vectors.is_vectors, vectors.read_vectors, vectors.divide),
        Family(lambda _: True, steps.read_steps, units.allocate),
    )


def play(text: str, source: str, policy: Policy) -> Answer:
    """The scenario in a YAML text under a policy. ``source`` names the file in messages.

    Raises InputError for whatever is wrong with the scenario, CallError where the policy has no rule for its family.
    """
    top = read_top(text, source)
    family = next(family for family in families() if family.is_one(top))
    scenario = family.read(top)
    try:
        return family.play(scenario, policy)
    except InputError as error:
        raise InputError(error.what, where=error.where or source, hint=error.hint) from error
