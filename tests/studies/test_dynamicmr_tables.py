"""The pages of chapters 3 and 4 show what the committed records say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studies.dynamicmr_tables import TABLES, main, page_with_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", ["figures-dynamicmr.md", "figures-ordering.md"])
def test_pages_are_made_from_the_records(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert page_with_tables(page, DOCS / "records") == page


def test_every_table_stands_on_a_page_and_has_its_record() -> None:
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("figures-dynamicmr.md", "figures-ordering.md")]
    for marker, (record, _) in TABLES.items():
        assert any(f"<!-- {marker} -->" in page for page in pages), marker
        assert json.loads((DOCS / "records" / f"{record}.json").read_text())["command"]


def test_a_changed_record_changes_the_page(tmp_path: Path) -> None:
    record = json.loads((DOCS / "records" / "dynamicmr-outside.json").read_text())
    record["values"]["makespan_s"]["dynamicmr"] = 4321
    (tmp_path / "dynamicmr-outside.json").write_text(json.dumps(record))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- outside -->\n\n<!-- end -->\nafter\n")
    assert main([str(tmp_path), str(page)]) == 0
    text = page.read_text()
    assert "| dynamicmr | 4321 |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
