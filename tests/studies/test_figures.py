"""The pages of figures: each value stands under a key of a record, and the pages are what the records give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.report.gallery.keys import expanded, found
from studies import figures
from studies.figures import DOCS, REFERENCE, SOURCES, TABLES, rendered

PAGES = sorted(path.name for path in SOURCES.glob("*.md"))
RECORD = {
    "fair": {"makespan_s": {"mean": 1234.5, "min": 1200.0, "max": 1300.0, "ci95": 12.25}, "part": 0.126, "6/2": 7},
    "ltrf": {"makespan_s": {"mean": 900.0, "min": 900.0, "max": 900.0}, "rows": [1, 2]},
    "hash": "x",
}


@pytest.fixture
def records(tmp_path: Path) -> Path:
    (tmp_path / "one.json").write_text(json.dumps({"command": "c", "version": "1", "values": RECORD}))
    return tmp_path


def line(text: str, records: Path) -> str:
    return (
        rendered(f"{text} [r](records/one.json)", "page.md", records)
        .splitlines()[1]
        .removesuffix(" [r](records/one.json)")
    )


def test_every_table_stands_on_a_page_and_every_page_of_figures_has_a_source() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.md"))
    assert [name for name in TABLES if f"{{table {name}}}" not in sources] == []
    assert sorted([*(path.name for path in DOCS.glob("figures*.md")), "gallery.md"]) == PAGES


def test_every_record_is_shown_somewhere() -> None:
    shown = set(re.findall(r"records/([\w-]+)\.json", "".join(p.read_text() for p in DOCS.rglob("*.md"))))
    assert sorted(path.stem for path in (DOCS / "records").glob("*.json") if path.stem not in shown) == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{fair/makespan_s:,.0f} s", "1,234 s"),
        ("{fair/makespan_s/min:.1f}", "1200.0"),
        ("{fair/makespan_s:±.1f}", "1234.5 ± 12.2"),
        ("{fair/part*100:.1f} %", "12.6 %"),
        ("{fair/6~12:.0f}", "7"),
        ("{[fair;ltrf]/makespan_s:.0f}", "1234, 900"),
        ("{ltrf/rows/[0;1]:.0f}", "1, 2"),
        ("{least [fair;ltrf]/makespan_s:.0f}", "900"),
        ("{one#ltrf/rows/1:.0f}", "2"),
        ("`{a, b}` stays", "`{a, b}` stays"),
    ],
)
def test_references(source: str, text: str, records: Path) -> None:
    assert line(source, records) == text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{fair/makespans:.0f}", "makespan_s"),
        ("{ltrf/rows/2:.0f}", "0 to 1"),
        ("{hash:.0f}", "no number"),
        ("{fair:.0f}", "no number"),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_with_its_line(source: str, words: str, records: Path) -> None:
    with pytest.raises(InputError, match=words) as error:
        rendered(f"\n\n{source} [r](records/one.json)", "page.md", records)
    assert "page.md:3" in error.value.line()


def test_a_row_that_links_to_no_record_has_no_references(records: Path) -> None:
    with pytest.raises(InputError, match="links to 0 records"):
        rendered("{fair/part:.0f}", "page.md", records)


def test_stars_are_every_key_that_has_the_rest() -> None:
    assert sorted(figures.every({"x": {"a": {"n": 1}, "b/c": {"n": 2}, "d": {"m": 3}}}, "x/*/n")) == [1, 2]
    assert found({"a": [{"b": 5}]}, "a/0/b") == 5
    assert expanded("a[1;2]/b[x;y]") == ["a1/bx", "a1/by", "a2/bx", "a2/by"]
    assert expanded("mean_s[Sort]") == ["mean_s[Sort]"]


def test_a_changed_record_changes_every_row_that_names_it(tmp_path: Path) -> None:
    for name in PAGES:
        source = (SOURCES / name).read_text(encoding="utf-8")
        for row in source.splitlines():
            for record in re.findall(r"records/([\w-]+)\.json", row) if REFERENCE.search(row) else ():
                changed = json.loads((DOCS / "records" / f"{record}.json").read_text(encoding="utf-8"))
                changed["values"] = _other(changed["values"])
                (tmp_path / f"{record}.json").write_text(json.dumps(changed))
                before = rendered(row, name, DOCS / "records").splitlines()[1]
                after = rendered(row, name, tmp_path).splitlines()[1]
                plain = re.sub(r"`[^`]*`", "", before)
                same = [a for a, b in zip(plain.split(), re.sub(r"`[^`]*`", "", after).split(), strict=True) if a == b]
                assert len(same) < len(plain.split()), row


def _other(value: object) -> object:
    if isinstance(value, dict):
        return {key: _other(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_other(item) for item in value]
    return value * 3 + 7 if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_the_command_says_what_is_stale_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], records: Path
) -> None:
    for folder in ("pages", "docs/records"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs" / "records" / "one.json").write_text((records / "one.json").read_text())
    (tmp_path / "pages" / "p.md").write_text("{one#fair/part:.2f}\n")
    (tmp_path / "docs" / "p.md").write_text("0.12\n")
    monkeypatch.setattr(figures, "SOURCES", tmp_path / "pages")
    monkeypatch.setattr(figures, "DOCS", tmp_path / "docs")
    assert figures.main(["--check"]) == 3
    assert "p.md" in capsys.readouterr().err
    assert figures.main([]) == 0
    assert (tmp_path / "docs" / "p.md").read_text().endswith("0.13\n")
    assert figures.main(["--check"]) == 0
