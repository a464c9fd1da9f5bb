"""docs/how-to/usage.md: the statement on the page is what the command prints of the run that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "usage.md"


def test_the_statement_on_the_page_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page showed a statement in which applications that still ran when the run was cut were charged too little."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    run, _, rest = block.partition("\n...\n")
    command, _, shown = rest.partition("\n")
    for line in (run, command):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(line.removeprefix("$ yarnfair ").split())
        assert not stop.value.code
    captured = capsys.readouterr()
    notes = [line.removeprefix("yarnfair: ") for line in captured.err.splitlines()]
    assert shown.splitlines() == [*notes, *captured.out.splitlines()]
