"""docs/how-to/write-a-policy.md: the files on the page run on paper, in the scheduler and from outside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-a-policy.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = PAGE.read_text(encoding="utf-8")
    for name, block in zip(
        ("half.py", "two.yaml", "small.yaml"), re.findall(r"```(?:python|yaml)\n(.*?)```", text, re.DOTALL), strict=True
    ):
        (tmp_path / name).write_text(block)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(argv))
    return int(stop.value.code or 0), capsys.readouterr().out


def test_on_paper(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = call(capsys, "allocate", "two.yaml", "--policy", "half.py:Half")
    assert code == 0
    shown = re.search(r"\$ yarnfair allocate[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert out == shown.group(1)
    assert call(capsys, "allocate", "two.yaml", "--policy", "half.py:Half", "--set", "part=0")[0] == 2


def test_inside_and_from_outside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = ("fair", "half.py:Half", "half.py:Half@outside")
    argv = [x for name in policies for x in ("--policy", name)]
    code, out = call(capsys, "run", "small.yaml", *argv, "--out", "runs", "--no-report", "--json", "--jobs", "1")
    assert code == 0
    assert json.loads(out)
    got: list[Any] = []
    for path in sorted((folder / "runs").glob("*/summary.json")):
        queues = json.loads(path.read_text())["queues"]
        batch, interactive = (
            next(figures for name, figures in queues.items() if name.endswith(leaf))["resource_seconds"]
            for leaf in ("batch", "interactive")
        )
        got.append((path.parent.name, interactive / batch))
    assert len(got) == 3
    plain = next(ratio for name, ratio in got if "fair" in name)
    own = [ratio for name, ratio in got if "fair" not in name]
    # Twice the weight, inside and from outside; plain fairness gives both the same.
    assert plain == pytest.approx(1, rel=0.2)
    assert all(ratio > 1.4 for ratio in own)
