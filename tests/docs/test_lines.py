"""Lines of text in docs/ and the README end at 120 columns: they are read as files, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
#: Lines that cannot be broken: tables, headings, pictures, comments, code by indentation.
WHOLE = ("|", "#", "![", "<!--", "    ")


def long_lines(text: str) -> list[str]:
    """Lines of text beyond 120 columns that could be broken: outside code, with a space within a line's reach."""
    found, code = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        code ^= line.lstrip().startswith("```")
        if code or len(line) <= 120 or line.startswith(WHOLE) or line.lstrip().startswith("|"):
            continue
        if re.search(r"\S\s+\S", re.sub(r"`[^`]*`", lambda span: "x" * len(span[0]), line)[:120]):
            found.append(f"{number}: {line[:60]}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_text_end_at_120_columns(page: Path) -> None:
    assert long_lines(page.read_text(encoding="utf-8")) == []


def test_a_long_line_is_found_and_what_cannot_be_broken_is_not() -> None:
    assert long_lines("a" * 60 + " " + "b" * 60) == ["1: " + "a" * 60]
    assert long_lines("```\n" + "a b " * 40 + "\n```\n| " + "a " * 90 + "|\n`" + "a " * 90 + "`") == []
