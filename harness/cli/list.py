"""``yarnfair list``: what can be run, with a line each. Parsing and printing only."""

from __future__ import annotations

import re

import click

from harness.cli.output import json_option, print_result

#: The words of harness.model.brought.WHAT, and the policies.
WHAT = ("experiments", "policies", "workloads", "scenarios", "jobs")


#: The maximum length of a line's text.
_LINE = 120


@click.command("list", short_help="List experiments, policies, workloads, scenarios or jobs.", no_args_is_help=True)
@click.argument("what", type=click.Choice(WHAT))
@json_option
def list_(what: str, as_json: bool) -> None:
    """List what the project provides, one line each.

    \b
    experiments  for run, sim serve, shares, campaigns
    policies     for --policy; those of installed packages too
    workloads    for the workloads of an experiment file
    scenarios    for allocate
    jobs         for order
    """
    rows = _policies() if what == "policies" else _brought(what)
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {_line(about)}" for name, about in rows]
    print_result(as_json, [{"name": name, "about": about} for name, about in rows], lines, hang=width + 2)


def _line(about: str) -> str:
    """Return a text as one line.

    A long one is cut at the last colon or sentence's end that fits (--json has all of it).
    """
    if len(about) <= _LINE:
        return about
    ends = [found.start() for found in re.finditer(r"[.:] ", about) if found.start() <= _LINE]
    return about[: ends[-1]] if ends else about


def _brought(what: str) -> list[tuple[str, str]]:
    from harness.model.brought import brought

    return [(one.name, one.about) for one in brought(what)]


def _policies() -> list[tuple[str, str]]:
    from harness.policies.registry import about, policy_names

    return [(name, about(name)) for name in policy_names()]
