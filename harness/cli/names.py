"""Shell completion: names of experiments, policies, scenarios and files of jobs; file names if no name matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _offered(names: Sequence[str], incomplete: str) -> list[CompletionItem]:
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def brought(what: str) -> Complete:
    """Complete names of the project's ``experiments``, ``scenarios`` or ``jobs``."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from harness.model.brought import names

        return _offered(names(what), incomplete)

    return complete


def policies(_context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last policy of a list with commas; offer NAME@outside if NAME is complete."""
    from harness.policies.registry import policy_names

    before, comma, last = incomplete.rpartition(",") if parameter.multiple else ("", "", incomplete)
    names = policy_names()
    if parameter.multiple and (last in names or "@" in last):
        names = [*names, f"{last.partition('@')[0]}@outside"]
    found = _offered(names, last)
    return [CompletionItem(before + comma + item.value, type=item.type) for item in found]
