"""The map of the papers: what it names exists, and every built-in policy and every experiment is on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.policies.registry import POLICIES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "map-of-the-papers.md"
EXPERIMENTS = {path.stem for path in (ROOT / "experiments").rglob("*.yaml")}
#: Policies that are in no paper.
ELSEWHERE = {"capacity"}


def rows() -> list[list[str]]:
    """Section, policy, files, experiment, figures."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and cells[1] != "policy" and not set(cells[0]) <= set("- "):
            found.append(cells)
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("cells", [pytest.param(cells, id=cells[0][:40]) for cells in rows()])
def test_what_a_row_names_exists(cells: list[str]) -> None:
    assert [name for name in names(cells[1]) if name not in POLICIES] == []
    assert names(cells[2]), f"{cells[0]}: no file"
    assert [name for name in names(cells[2]) if not (ROOT / name).exists()] == []
    assert [name for name in names(cells[3]) if name not in EXPERIMENTS] == []


def test_every_policy_and_experiment_is_on_the_map() -> None:
    assert set(POLICIES) - {name for cells in rows() for name in names(cells[1])} - ELSEWHERE == set()
    assert EXPERIMENTS - {name for cells in rows() for name in names(cells[3])} == set()
