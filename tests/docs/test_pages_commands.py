"""Commands that the pages show can be called as they stand: each passes its parser. Nothing is run."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from harness.cli import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
#: Programs of ours that are called as modules.
MODULES = ("python -m harness.", "python -m studies.")
#: What stands for something of the user's.
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\.\.\.|\[-")


class Parsed(Exception):
    """The parser let the arguments pass."""


def commands(page: Path) -> Iterator[str]:
    """Calls of modules wherever they stand; those of `yarnfair` in blocks and in the figures' column of commands."""
    for line in page.read_text(encoding="utf-8").replace("\\\n", "").splitlines():
        yield from (text for text in re.findall(r"`([^`]*)`", line) if text.startswith(MODULES))
        cells = line.strip("| ").split(" | ")
        if line.startswith("|") and page.name.startswith("figures") and len(cells) > 1:
            yield from (text for text in re.findall(r"`([^`]*)`", cells[1]) if text.startswith("yarnfair "))
        shown = re.match(r"(?:    )?\$ (.*)|    (yarnfair .*|python -m (?:harness|studies).*)", line)
        if shown is not None:
            yield (shown.group(1) or shown.group(2)).removesuffix("&").strip()


CALLS = sorted(
    {
        (page.relative_to(ROOT).as_posix(), text)
        for page in PAGES
        for text in commands(page)
        if not PLACEHOLDER.search(text)
    }
)


def walked(group: click.Command, words: list[str], name: str) -> click.Context:
    """Parses the words as click would, down to the command itself, and calls nothing. ClickException when they fail."""
    parent: click.Context | None = None
    while isinstance(group, click.Group):
        parent = click.Context(group, parent=parent, info_name=name)
        found = group.get_command(parent, words[0]) if words else None
        assert found is not None, f"no command {words[:1]} of {name}"
        group, name, words = found, words[0], words[1:]
    return group.make_context(name, list(words), parent=parent)


def parse(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(text, comments=True)
    for at, word in enumerate(words):
        if word in ("&&", ";", "|"):
            parse(shlex.join(words[at + 1 :]), monkeypatch)
            words = words[:at]
            break
    try:
        if words[0] == "yarnfair":
            walked(cli, words[1:], "yarnfair")
        elif words[:2] == ["python", "-m"] and words[2].startswith(("harness.", "studies.")):
            module(words[2], words[3:], monkeypatch)
    except click.BadParameter as error:
        if "does not exist" not in error.format_message():  # files of the user's are not here
            raise


def module(name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = importlib.import_module(name)
    if hasattr(loaded, "__path__"):
        loaded = importlib.import_module(f"{name}.__main__")
    groups = [
        value for key, value in vars(loaded).items() if isinstance(value, click.Command) and key in ("study", "cli")
    ]
    if not groups and isinstance(getattr(loaded, "main", None), click.Command):
        groups = [loaded.main]
    if groups:
        walked(groups[0], arguments, name)
        return

    original = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, *given: Any, **named: Any) -> None:
        original(parser, *given, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(Parsed):
        loaded.main(arguments)


@pytest.mark.parametrize(("page", "text"), CALLS)
def test_a_command_on_a_page_passes_its_parser(
    page: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        parse(text, monkeypatch)
    except SystemExit:
        pytest.fail(f"{text}: {capsys.readouterr().err.strip().splitlines()[-1]}")
    except click.ClickException as error:
        pytest.fail(f"{text}: {error.format_message()}")


@pytest.mark.parametrize(
    "wrong",
    ["python -m studies.control_times effect", "yarnfair order", "yarnfair run ltyarn --polcy fair"],
)
def test_a_command_that_does_not_would_be_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((SystemExit, click.UsageError)):
        parse(wrong, monkeypatch)
