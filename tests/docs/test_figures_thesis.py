"""Every table and figure of the thesis' chapters 3 and 4 has a row in docs/figures.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "figures.md"
HEADING = "## Chapters 3 and 4 of the thesis"
#: The chapters' last table and figure.
LAST = {"Table": {3: 5, 4: 5}, "Fig.": {3: 10, 4: 18}}
WANTED = [
    f"{kind} {c}.{n}" for kind, chapters in LAST.items() for c, last in chapters.items() for n in range(1, last + 1)
]


def named() -> set[str]:
    """What the rows' first cells name; ``Figs. 4.1 to 4.8`` is eight figures."""
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    found = set()
    for line in section.splitlines():
        cell = line.strip().strip("|").split("|")[0].partition(":")[0] if line.startswith("|") else ""
        kind = None
        for word in re.findall(r"Tables?|Figs?\.|\d\.\d+(?: to \d\.\d+)?", cell):
            if word[0] in "TF":
                kind = "Table" if word.startswith("Table") else "Fig."
                continue
            first, _, last = word.partition(" to ")
            chapter, low = map(int, first.split("."))
            high = int(last.split(".")[1]) if last else low
            found |= {f"{kind} {chapter}.{number}" for number in range(low, high + 1)}
    return found


@pytest.mark.parametrize("what", WANTED)
def test_it_has_a_row(what: str) -> None:
    assert what in named()


def test_nothing_is_named_that_the_thesis_does_not_have() -> None:
    assert {name for name in named() if name not in WANTED} == set()
