"""What the pages' Python examples import is there."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def imports(page: Path) -> list[tuple[str, str]]:
    """The modules and names that a page's blocks of Python import from the project."""
    found = []
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        try:
            tree = ast.parse(textwrap.dedent(block))
        except SyntaxError:  # a fragment, or a console's session
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("harness", "yarnfair"):
                found += [(str(node.module), name.name) for name in node.names]
    return found


def test_some_pages_have_examples() -> None:
    assert sum(bool(imports(page)) for page in PAGES) > 3


@pytest.mark.parametrize("page", [page for page in PAGES if imports(page)], ids=lambda page: page.name)
def test_an_examples_imports_are_there(page: Path) -> None:
    missing = [
        f"from {module} import {name}"
        for module, name in imports(page)
        if not hasattr(importlib.import_module(module), name)
        and not (ROOT / module.replace(".", "/") / f"{name}.py").exists()
    ]
    assert not missing
