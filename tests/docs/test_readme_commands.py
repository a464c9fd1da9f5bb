"""The commands in README's table can be called as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from harness.cli import cli

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| (`yarnfair [^|]*(?:\\\|[^|]*)*)\|", re.MULTILINE)


def _command(words: list[str]) -> click.Command | None:
    """Return the command that these words name, and None where they leave the choice open (``up|status``)."""
    found: click.Command = cli
    for word in words:
        if not isinstance(found, click.Group):
            break
        inner = found.get_command(click.Context(found), word)
        if inner is None:
            return None
        found = inner
    return None if isinstance(found, click.Group) else found


@pytest.mark.parametrize(
    "shown",
    [part for row in _ROW.findall((ROOT / "README.md").read_text()) for part in re.findall(r"`([^`]*)`", row)],
)
def test_a_command_has_the_options_without_which_it_refuses(shown: str) -> None:
    """`yarnfair shares ALLOCATIONS.xml` answered with "Missing option '--memory-mb'", and four others likewise."""
    found = _command(shown.removeprefix("yarnfair ").split())
    if found is None:  # `cluster up\|status\|doctor\|down` names several
        return
    needed = [one for one in found.params if isinstance(one, click.Option) and one.required]
    missing = [one.opts[-1] for one in needed if not {*shown.split()} & {*one.opts}]
    assert not missing
