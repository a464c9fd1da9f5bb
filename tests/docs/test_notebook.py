"""The notebook of docs/: its cells run, and print what stands there."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "compare-policies.ipynb"


def run_cells(sources: list[str]) -> list[tuple[str, str | None, str]]:
    """What each cell prints, and its last expression as text and drawn, as a notebook program would have them."""
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
        drawn = value._repr_svg_() if hasattr(value, "_repr_svg_") else ""
        found.append((printed.getvalue(), shown, drawn))
    return found


def stored(cell: dict[str, Any]) -> tuple[str, str | None, str]:
    text, value, drawn = "", None, ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            text += "".join(output["text"])
        else:
            value = "".join(output["data"]["text/plain"])
            drawn = "".join(output["data"].get("image/svg+xml", []))
    return text, value, drawn


def outline(svg: str) -> tuple[list[str], list[str]]:
    """A drawing's titles, its axes and legends. Lines and letters are left out: the same run may be drawn with other
    numbers of them, as labels fall."""
    titles = [title for title in re.findall(r"<dc:title>(.*?)</dc:title>", svg) if not title.startswith("Matplotlib v")]
    return titles, re.findall(r'id="((?:axes|legend)_\d+)"', svg)


@pytest.mark.xdist_group("regressions")
def test_the_notebook_shows_what_its_cells_give() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    given = run_cells(["".join(cell["source"]) for cell in cells])
    for cell, (*words, drawn) in zip(cells, given, strict=True):
        *shown, picture = stored(cell)
        assert words == shown, "".join(cell["source"])
        assert outline(drawn) == outline(picture), "".join(cell["source"])
    assert sum(bool(drawn) for *_, drawn in given) >= 2
