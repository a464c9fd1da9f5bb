"""The generated parts of docs/reference are what the code gives, and what they are made of is there."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
import pytest

from harness.base.documents import Strict
from harness.cli import cli
from studies.reference import PAGES, PART, PARTS, keys_of, made

MADE = [path for path in sorted(PAGES.glob("*.md")) if PART.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.stem)
def test_a_page_is_what_the_code_gives(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert made(page) == page, "make reference"


def test_every_part_stands_on_a_page() -> None:
    assert {part[2] for path in MADE for part in PART.finditer(path.read_text(encoding="utf-8"))} == set(PARTS)


def test_a_key_that_nothing_is_said_about_is_noticed() -> None:
    class Half(Strict):
        said: int
        """Of this one something is said."""
        unsaid: int = 3

    with pytest.raises(KeyError, match="unsaid"):
        keys_of(Half)


def test_the_commands_can_be_listed_once_list_was_called() -> None:
    """The module harness.cli.list takes the name `list` in harness.cli once it is imported."""
    importlib.import_module("harness.cli.list")
    assert "list" in cli.list_commands(click.Context(cli))
