"""The pages of figures are made, not written: an edit of one, or of a record, without `make figures` is noticed."""

from __future__ import annotations

import pytest

from studies.figures import DOCS, SOURCES, rendered


@pytest.mark.parametrize("name", sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.md")))
def test_a_page_is_what_its_source_and_the_records_give(name: str) -> None:
    page = rendered((SOURCES / name).read_text(encoding="utf-8"), name, DOCS / "records")
    assert (DOCS / name).read_text(encoding="utf-8") == page, f"edit studies/pages/{name}, then: make figures"
