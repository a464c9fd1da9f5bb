"""Sources of the pages of figures: a row that claims a value names the key of a committed record."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from studies.figures import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: The pages with rows of five columns: figure, command, ours, theirs, record.
PAGES = ("figures.md", "figures-fawkes.md", "figures-qknober.md")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?")
SETTINGS = re.compile(r"--(?:knob|seeds?|limit|step|most) [\d.]+")
NONE = ("—", "not:", "see ")


def rows() -> list[list[str]]:
    found = []
    for page in PAGES:
        for line in (ROOT / "studies" / "pages" / page).read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("|") and len(cells) == 5 and not set(cells[0]) <= set("-: ") and cells[2] != "ours":
                found.append(cells)
    return found


def claims(cells: list[str]) -> bool:
    """Whether a row claims a value of ours."""
    return not cells[2].startswith(NONE)


def typed(cell: str) -> list[str]:
    """Numbers that somebody typed: neither a reference to a record nor a setting in backticks."""
    return NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", REFERENCE.sub("", cell)))


def record_paths(cells: list[str]) -> list[Path]:
    return [DOCS / target for target in re.findall(r"\((records/[^)]+\.json)\)", cells[4])]


def test_the_pages_have_rows_that_claim_values() -> None:
    assert len([cells for cells in rows() if claims(cells)]) >= 150


@pytest.mark.parametrize("cells", [pytest.param(cells, id=cells[0][:40]) for cells in rows()])
def test_a_claimed_value_names_the_key_of_its_record(cells: list[str]) -> None:
    if not claims(cells):
        assert len(cells[2]) > 3 or cells[3], f"{cells[0]}: neither a value nor a reason"
        assert not REFERENCE.search(cells[2])
        return
    assert record_paths(cells), f"{cells[0]}: it claims {cells[2]!r} and names no record"
    assert REFERENCE.search(cells[2]), f"{cells[0]}: it claims {cells[2]!r} and names no key"
    assert typed(cells[2]) == [], f"{cells[0]}: typed, instead of a key of {cells[4]}"


@pytest.mark.parametrize("cells", [pytest.param(cells, id=cells[0][:40]) for cells in rows()])
def test_a_figures_command_has_the_settings_of_its_record(cells: list[str]) -> None:
    """Defaults written out: with other knobs, seeds or limits the command makes another figure."""
    if not cells[1].startswith("`"):
        return
    made = " ".join(json.loads(path.read_text(encoding="utf-8"))["command"] for path in record_paths(cells))
    assert [setting for setting in SETTINGS.findall(made) if setting not in cells[1]] == []


def test_a_typed_number_would_be_noticed() -> None:
    assert typed("{variants/fair/makespan_s:.0f} s, under `t_wait=4`: {a/b:.2f} ([why](x-2.md))") == []
    assert typed("{variants/fair/makespan_s:.0f} s, and 0.56 of it; −7") == ["0.56", "−7"]


@pytest.mark.parametrize("path", sorted((DOCS / "records").glob("*.json")), ids=lambda path: path.stem)
def test_every_record_says_what_made_it(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert {"command", "version", "values"} <= set(record)
    assert record["command"].strip()
    assert record["version"].strip()
