"""docs/figures.md: a row that claims a value has a committed record that holds it; nothing is run again here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The pages whose rows are held to their records.
PAGES = ("figures.md", "figures-fawkes.md", "figures-qknober.md")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?")
SETTINGS = re.compile(r"--(?:knob|seeds?|limit|step|most) [\d.]+")
NONE = ("—", "not:", "see ")


def rows() -> list[list[str]]:
    """Cells of each table row that has the five columns: figure, command, ours, theirs, record."""
    found = []
    for page in PAGES:
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("|") and len(cells) == 5 and not set(cells[0]) <= set("-: ") and cells[2] != "ours":
                found.append(cells)
    return found


def claims(cells: list[str]) -> bool:
    """Whether a row claims a value of ours."""
    return not cells[2].startswith(NONE)


def record_paths(cells: list[str]) -> list[Path]:
    return [DOCS / target for target in re.findall(r"\((records/[^)]+\.json)\)", cells[4])]


def numbers_in(value: Any) -> list[float]:
    """All numbers of a record, and those in its keys (seeds and settings are part of what is claimed)."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [float(value)]
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, list):
        return [float(len(value)), *(number for item in value for number in numbers_in(item))]
    return []


def unsupported(cell: str, known: list[float]) -> list[str]:
    """The numbers of a cell that are no value of the record, rounded as the cell writes them."""
    missing = []
    for text in NUMBER.findall(re.sub(r"`[^`]*`", "", cell)):
        plain = text.replace(",", "").replace("−", "-")
        digits = len(plain.partition(".")[2])
        # Written as a percentage or with its sign turned ("a loss of 0.007"), it is still that value.
        if not any(
            round(scale * value, digits) == float(plain) for value in known for scale in (1.0, -1.0, 100.0, -100.0)
        ):
            missing.append(text)
    return missing


def test_the_page_has_rows_that_claim_values() -> None:
    assert len([cells for cells in rows() if claims(cells)]) >= 8


@pytest.mark.parametrize("cells", [pytest.param(cells, id=cells[0][:40]) for cells in rows()])
def test_a_claimed_value_is_in_a_committed_record(cells: list[str]) -> None:
    if not claims(cells):
        assert len(cells[2]) > 3 or cells[3], f"{cells[0]}: neither a value nor a reason"
        return
    paths = record_paths(cells)
    assert paths, f"{cells[0]}: it claims {cells[2]!r} and names no record"
    known: list[float] = []
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["command"], path
        assert record["version"], path
        assert record["values"], path
        known += numbers_in(record["values"])
    assert not unsupported(cells[2], known), f"{cells[0]}: not in {', '.join(path.name for path in paths)}"


@pytest.mark.parametrize("cells", [pytest.param(cells, id=cells[0][:40]) for cells in rows()])
def test_a_figures_command_has_the_settings_of_its_record(cells: list[str]) -> None:
    """Defaults written out: with other knobs, seeds or limits the command makes another figure."""
    if not cells[1].startswith("`"):
        return
    made = " ".join(json.loads(path.read_text(encoding="utf-8"))["command"] for path in record_paths(cells))
    assert [setting for setting in SETTINGS.findall(made) if setting not in cells[1]] == []


def test_a_wrong_value_would_be_noticed() -> None:
    known = numbers_in({"a": {"mean": -0.0071}, "b": [373.0]})
    assert unsupported("a loss of 0.007, last at 373 s", known) == []
    assert unsupported("a loss of 0.008, last at 374 s", known) == ["0.008", "374"]
    assert unsupported("under `t_wait=4`: 373", known) == []
    assert unsupported("−0.0071", known) == []


@pytest.mark.parametrize("path", sorted((DOCS / "records").glob("*.json")), ids=lambda path: path.stem)
def test_every_record_says_what_made_it(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert {"command", "version", "values"} <= set(record)
    assert record["command"].strip()
    assert record["version"].strip()
