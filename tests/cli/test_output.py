"""Lines that are too long for a terminal are broken there, and nowhere else; NAME=VALUE options."""

from __future__ import annotations

import sys

import pytest

from harness.base.errors import CallError
from harness.cli.output import echo_wrapped, named_values

LINE = "  name             " + "what it is, in a good many words " * 4


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_a_terminal_has_lines_of_its_width_with_all_words(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    echo_wrapped(LINE, hang=19)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns for line in lines)
    assert " ".join(lines).split() == LINE.split()
    assert lines[0].startswith("  name")
    assert all(line.startswith(" " * min(19, columns // 2)) for line in lines[1:])


def test_a_file_has_the_line_whole(capsys: pytest.CaptureFixture[str]) -> None:
    echo_wrapped(LINE)
    assert capsys.readouterr().out == LINE + "\n"


def test_settings_from_the_command_line() -> None:
    assert named_values(["a=1", " b = 2=3 "]) == {"a": "1", "b": "2=3"}
    with pytest.raises(CallError, match="given twice"):
        named_values(["a=1", "a=4"])
    with pytest.raises(CallError, match="write name=value"):
        named_values(["t_wait"])
