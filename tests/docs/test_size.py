"""The book stays small enough to read: how many words of it people wrote.

Not counted: code and shown output, what a command makes (between ``made`` or ``planted`` comments), and rows of
figures' tables that `make figures` fills from the records. Comments, addresses of links and the cells' borders are no
words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.test_lines import PAGES, ROOT

#: Raised from 50,000 when the reference began to say what makes a run invalid; docs explain rather than compress.
WORDS = 55_000
#: Pages whose source, with the keys of the records, lies here.
SOURCES = ROOT / "studies" / "pages"
#: Around what a command makes; the group is there at its end.
MADE = re.compile(r"<!-- (?:made: [\w-]+|planted: begin|(end of made|planted: end)) -->")
NO_WORDS = re.compile(r"<!--.*?-->|\]\([^)]*\)")


def written(text: str, filled: bool = False) -> int:
    """Words of a page that people wrote. ``filled``: it is the source of a page whose tables records fill."""
    return sum(len(re.findall(r"\S*\w\S*", NO_WORDS.sub(" ", line))) for line in _lines(text, filled))


def _lines(text: str, filled: bool) -> Iterator[str]:
    code = made = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            code = not code
        elif marked := MADE.match(line):
            made = not marked[1]
        elif not (code or made or line.startswith("    ") or (filled and line.startswith("|") and "{" in line)):
            yield line


def page(path: Path) -> int:
    """Words that people wrote of one page of the book."""
    source = SOURCES / (path.relative_to(ROOT / "docs") if path.is_relative_to(ROOT / "docs") else path.name)
    return written((source if source.exists() else path).read_text(encoding="utf-8"), source.exists())


def test_the_book_has_at_most_so_many_words_that_people_wrote() -> None:
    found = {str(path.relative_to(ROOT)): page(path) for path in PAGES}
    assert sum(found.values()) <= WORDS, sorted(found.items(), key=lambda one: -one[1])[:10]


def test_what_is_made_or_shown_is_not_counted() -> None:
    made = "<!-- made: commands -->\n| a | b |\n<!-- end of made -->\n"
    assert written(f"Two words.\n\n    $ yarnfair run\n```\nout put\n```\n{made}| [one](of-a/page.md) | — |\n") == 3
    assert written("| mean | {variants/fair/loss:.1f} s |\n| drawings | none |\n", filled=True) == 2
