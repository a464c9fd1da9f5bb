"""docs/how-to/usage.md: the statements on the page are what the commands print of the run that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "usage.md"


def test_the_statements_on_the_page_are_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page showed a statement in which applications that still ran when the run was cut were charged too little."""
    monkeypatch.chdir(tmp_path)
    statement, paid = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    run, _, rest = statement.partition("\n...\n")
    command, _, shown = rest.partition("\n")

    def printed(line: str) -> tuple[list[str], list[str]]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(line.removeprefix("$ yarnfair ").split())
        assert not stop.value.code
        captured = capsys.readouterr()
        return captured.err.splitlines(), captured.out.splitlines()

    printed(run)
    notes, lines = printed(command)
    assert shown.splitlines() == [*notes, *lines]
    command, _, shown = paid.partition("\n...\n")
    assert printed(command)[1] == [*lines, *shown.splitlines()]
