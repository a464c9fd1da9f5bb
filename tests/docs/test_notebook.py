"""The notebook of docs/: its cells run, and print what stands there."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "compare-policies.ipynb"


def run_cells(sources: list[str]) -> list[tuple[str, str | None]]:
    """What each cell prints, and its last expression as text, as a notebook program would have them."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    found = []
    for source in sources:
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        value = None
        with contextlib.redirect_stdout(printed), pd.option_context("display.width", 100):
            exec(compile(tree, "<cell>", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        shown = None
        if value is not None:
            with pd.option_context("display.width", 100, "display.max_columns", 20):
                shown = repr(value)
        found.append((printed.getvalue(), shown))
    return found


def stored(cell: dict[str, Any]) -> tuple[str, str | None]:
    text, value = "", None
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            text += "".join(output["text"])
        else:
            value = "".join(output["data"]["text/plain"])
    return text, value


@pytest.mark.xdist_group("regressions")
def test_the_notebook_shows_what_its_cells_give() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    given = run_cells(["".join(cell["source"]) for cell in cells])
    for cell, output in zip(cells, given, strict=True):
        assert output == stored(cell), "".join(cell["source"])
