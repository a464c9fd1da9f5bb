"""What a shell completes: names of experiments, policies, scenarios and files of jobs; files where none begins so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _offered(names: Sequence[str], incomplete: str) -> list[CompletionItem]:
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def brought(what: str) -> Complete:
    """Completes what the project brings: ``experiments``, ``scenarios``, ``jobs``."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from harness.model.brought import names

        return _offered(names(what), incomplete)

    return complete


def policies(_context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the last of the policies named with commas between; NAME@outside once NAME is whole."""
    from harness.policies.registry import policy_names

    before, comma, last = incomplete.rpartition(",") if parameter.multiple else ("", "", incomplete)
    names = policy_names()
    if parameter.multiple and (last in names or "@" in last):
        names = [*names, f"{last.partition('@')[0]}@outside"]
    found = _offered(names, last)
    return [CompletionItem(before + comma + item.value, type=item.type) for item in found]
