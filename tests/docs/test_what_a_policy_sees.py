"""The page on what a policy sees names every field of it, and its error is the one that is printed."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.plan import Plan
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.base import LedgerView

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "what-a-policy-sees.md"

MINE = """
from harness.model.plan import Order, Plan
from harness.policies.base import Policy


class Mine(Policy):
    name = "mine"

    def plan(self, snapshot, ledger):
        return Plan(order=Order(measure="keys", flat=True))

    def key(self, queue, counted, snapshot):
        return None
"""


def test_every_field_is_on_the_page_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    first_cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name.removesuffix("()") for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    fields = {field.name for cls in (QueueView, Snapshot) for field in dataclasses.fields(cls)}
    assert named == fields | {name for name in vars(LedgerView) if name in ("counted", "start_s")}


def test_the_parts_of_a_plan_are_those_of_the_class() -> None:
    (call,) = re.findall(r"`Plan\(([^)]*)\)`", PAGE.read_text(encoding="utf-8"))
    named = {part.partition("=")[0].strip() for part in call.split(",")}
    assert named <= {field.name for field in dataclasses.fields(Plan)}


def test_the_error_is_the_one_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    with pytest.raises(SystemExit):
        main(["allocate", "ltyarn-table-1", "--policy", "mine.py:Mine"])
    line = capsys.readouterr().err.strip()
    shown = [one for one in PAGE.read_text(encoding="utf-8").splitlines() if one.startswith("yarnfair: ")]
    assert [re.sub(r"mine\.py:\d+", "", line)] == [re.sub(r"mine\.py:\d+", "", one) for one in shown]
