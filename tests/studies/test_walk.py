"""The pages of the walks are what their templates give, but for what commands printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from studies import walk, walk_as_is
from studies.walk import SCHEDULERS

ROOT = Path(__file__).resolve().parents[2]
_CELL = re.compile(r"\{\w+\}")


def pieces(template: str, words: dict[str, str]) -> list[str]:
    """Return the text of a page between what commands printed, in order."""
    for name, text in words.items():
        template = template.replace(f"{{{name}}}", text)
    return [piece.replace("{{", "{").replace("}}", "}").strip() for piece in _CELL.split(template)]


@pytest.mark.parametrize(
    ("page", "template", "words"),
    [
        *((each.words["page"], walk.PAGE, dict(each.words)) for each in SCHEDULERS.values()),
        (
            "docs/how-to/switch-it-on-as-is.md",
            f"{walk_as_is.PAGE}\n{walk_as_is.ASYNCHRONOUS_PART}",
            {"hints": walk_as_is.hints()},
        ),
    ],
)
def test_a_new_walk_keeps_what_stands_on_its_page(page: str, template: str, words: dict[str, str]) -> None:
    """A paragraph that was added to a page alone would be lost when its walk is made again."""
    rest = (ROOT / page).read_text()
    for piece in pieces(template, words):
        _, found, rest = rest.partition(piece)
        assert found == piece, piece
    assert not rest.strip(), rest


def test_each_part_of_the_page_as_is_can_be_made_again_alone() -> None:
    page = (ROOT / "docs/how-to/switch-it-on-as-is.md").read_text()
    first = page.partition(walk_as_is.HEADING)[0]
    assert walk_as_is.with_former_part(first, page) == page
    cells = dict.fromkeys(re.findall(r"\{(async_\w+)\}", walk_as_is.ASYNCHRONOUS_PART), "printed\n")
    again = walk_as_is.asynchronous_part(cells, page)
    assert again.startswith(first)
    assert again.count(walk_as_is.HEADING) == 1
    assert walk_as_is.asynchronous_part(cells, first) == again
