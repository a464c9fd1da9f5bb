"""The selection of an experiment's runs by a call, for all experiment types: ``--policy``, ``--set``, ``--seed``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from harness.base.documents import YamlDocument
from harness.base.errors import CallError, InputError, nearest

U = TypeVar("U")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Selection:
    """Policies, settings and seeds of a call (none: the file's). ``real``: the selected runs are on a real cluster."""

    policies: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    real: bool = False


#: Everything in the file.
EVERYTHING = Selection()


def chosen(
    uses: Sequence[U], names: Sequence[str], fits: Callable[[U, str], bool], otherwise: Callable[[str], U]
) -> list[U]:
    """Return the file's policy entries that a call names (none: all); an unknown name becomes an entry of its own.

    A policy with several entries selects all of them.
    """
    if not names:
        return list(uses)
    return [use for name in names for use in [one for one in uses if fits(one, name)] or [otherwise(name)]]


def merge_overrides(own: Mapping[str, object], given: Mapping[str, str], known: Collection[str]) -> dict[str, Any]:
    """Return a policy's settings, overridden by those of the call that it has."""
    return {**own, **{key: value for key, value in given.items() if key in known}}


def check_given(given: Collection[str], known: Collection[str], hint: str, policies: Sequence[str] = ()) -> None:
    """Raise CallError for a setting of the call that no policy has."""
    for key in given:
        if key not in known:
            named = f" ({', '.join(dict.fromkeys(policies))})" if policies else ""
            close = nearest(key, known)
            raise CallError(
                f"none of the policies{named} has a setting {key[:60]!r}",
                where="--set",
                hint=f"did you mean {close!r}? {hint}" if close else hint,
            )


def expand_seeds(variants: Sequence[V], seeds: Sequence[int], of_file: int | Sequence[int]) -> list[V]:
    """Return every variant with every seed; with several seeds, the seed is part of the name."""
    listed = [of_file] if isinstance(of_file, int) else of_file
    picked = list(dict.fromkeys(seeds or listed))
    several = len(picked) > 1
    return [
        replace(variant, seed=seed, name=f"{variant.name},seed={seed}" if several else variant.name)  # type: ignore
        for seed in picked
        for variant in variants
    ]


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first repeated element; None if all are distinct."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def check_names(names: Sequence[str], document: YamlDocument) -> None:
    """Raise InputError if two runs would have the same name, and so the same directory."""
    if (name := first_repeated(names)) is not None:
        hint = "list a policy once, or give one of them a name: of its own"
        raise InputError(f"two policies are named {name}", where=document.where(("policies",)), hint=hint)
